/* report_files.h - the files of --report. */
#ifndef DPI_REPORT_FILES_H
#define DPI_REPORT_FILES_H

#include "dpinfer/release.h"
#include "dpinfer/report.h"
#include "tools/options/options.h"
#include "tools/terminal/output.h"

/* CLI_OK if every report could be written, and signed, now, without leaving anything behind; else
 * CLI_FAILED or CLI_USAGE, with a message. */
int report_files_probe(const args *a);

/* A report of a claim of the release, with what the release says of its texts: wording, and with
 * --report-prompts prompts. *report is the caller's, also after a failure. CLI_OK or CLI_MODEL. */
int report_of_release(const args *a, const dpi_release *release, const dpi_run *claim,
                      const dpi_model *model, dpi_report **report);

/* What --meta says, into a report; NULL: there is none, which is refused. CLI_OK, or an exit code
 * with a message. */
int report_files_meta(const args *a, dpi_report *report);
/* Whether the key of --sign signs; without the option it does. CLI_OK or CLI_USAGE. */
int report_files_try_key(const args *a);

typedef struct report_files report_files;
/* Opens the files of --report; they appear with report_files_close. *files is NULL if
 * there are none. CLI_OK, or CLI_FAILED with a message. */
int report_files_open(const args *a, report_files **files);
/* Writes the report to each, in the form that its name says, instead of what was written before. */
int report_files_write(report_files *files, const dpi_report *report, bool complete);
/* Opens the files of --report, writes the report to each, and closes them. */
int report_files_all(const args *a, const dpi_report *report);
/* From now on what is written appears also when a signal ends the program. */
void report_files_keep(report_files *files);
/* Signs those that appear with the key, if it is not NULL. Frees. */
int report_files_close(report_files *files, output_end end, const char *key);

#endif
