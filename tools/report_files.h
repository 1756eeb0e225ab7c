/* report_files.h - the files of --report. */
#ifndef DPI_REPORT_FILES_H
#define DPI_REPORT_FILES_H

#include "dpinfer/report.h"
#include "tools/options.h"

/* CLI_OK if every report could be written now, without leaving anything behind; else CLI_FAILED,
 * with a message. */
int report_files_probe(const args *a);

typedef struct report_files report_files;
/* Opens the files of --report; they appear when report_files_close keeps them. *files is NULL if
 * there are none. CLI_OK, or CLI_FAILED with a message. */
int report_files_open(const args *a, report_files **files);
/* Writes the report to each, in the form that its name says. */
int report_files_write(report_files *files, const dpi_report *report, bool complete);
/* Frees. `keep` = false drops what was written. */
int report_files_close(report_files *files, bool keep);

#endif
