/* report.h - the privacy report of a run: the checklist of Ponomareva et al. 2023, "How to DP-fy
 * ML", section 5.3.3, filled in, as one JSON object and as the same in Markdown.
 *
 * It may be released as it is. Every value is an option, a fact about the program or the model, or
 * follows from those; none is derived from what is in a record. The sections `parameters`,
 * `software`, `model` and the flag `complete` are what a reader has to believe; all others are
 * functions of `parameters`, made by report_make and nothing else, so that `dpinfer verify` can
 * make them a second time. README.md lists the keys. A change of a key or of a text changes
 * REPORT_SCHEMA. */
#ifndef DPI_REPORT_H
#define DPI_REPORT_H

#include <jansson.h>

#include "tools/job.h"

enum { REPORT_SCHEMA = 1 };

/* The whole report. Takes `software` and `model` (NULL: out of memory). NULL if out of memory. */
json_t *report_make(const job *j, bool complete, json_t *software, json_t *model);

/* This program: version, commit, compiler, type of build, SHA-256 of its file. NULL if out of
 * memory. */
json_t *report_software(void);
/* The model of a job, which was opened by `path`: name, size and SHA-256 of its files. CLI_OK or an
 * exit code with a message; the caller owns *model. */
int report_model(const job *j, const char *path, json_t **model);

/* Whether the number of records is public, and is there. */
bool report_tells_n_records(const job *j);
/* The section `parameters`: everything that the guarantee is computed from. */
json_t *report_parameters(const job *j);
/* The same back into a job, of which those fields are set that report_make reads; the plan is
 * not made. CLI_OK, or CLI_REPORT with a message. */
int report_read_parameters(const json_t *parameters, job *j);

/* The report in Markdown; the caller frees it with free. NULL if out of memory. */
char *report_markdown(const json_t *report);

/* ---- The files of --report (report_files.c) ------------------------------------------------- */

/* CLI_OK if every report could be written now, without leaving anything behind; else CLI_FAILED,
 * with a message. */
int report_files_probe(const args *a);

typedef struct report_files report_files;
/* Opens the files of --report; they appear when report_files_close keeps them. *files is NULL if
 * there are none. CLI_OK, or CLI_FAILED with a message. */
int report_files_open(const args *a, report_files **files);
/* Writes the report to each, in the form that its name asks for. */
int report_files_write(report_files *files, const json_t *report);
/* Frees. `keep` = false drops what was written. */
int report_files_close(report_files *files, bool keep);

#endif
