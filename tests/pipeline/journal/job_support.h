/* job_support.h - releases of a small model, and jobs of them that end and go on, in the folder of
 * the running test (ledger_support.h). */
#ifndef JOB_SUPPORT_H
#define JOB_SUPPORT_H

#include "dpinfer/journal.h"
#include "dpinfer/release.h"
#include "tests/pipeline/ledger/ledger_support.h"
#include "tests/support/tiny_model.h"

/* A release of one thread, without a chat template; its other options are the defaults. */
dpi_release_options small_release(const dpi_model *model, const dpi_records *records);
dpi_release *open_release(const dpi_release_options *o);
/* Those of a file of the folder with these lines (NULL: as it is); fields may be NULL. job_remove
 * closes them. */
dpi_records *make_records(const char *name, const char *lines, const char *unit_field,
                          const char *label_field);

/* ---- Jobs ------------------------------------------------------------------------------------ */

enum { JOB_TEXTS = 8, JOB_TOKENS = 64 }; /* at most */

/* What was told of each text. */
typedef struct told {
    int32_t token[JOB_TEXTS][JOB_TOKENS];
    int32_t n[JOB_TEXTS], end[JOB_TEXTS];
    int32_t n_all;
    char bytes[JOB_TEXTS][2048];
    size_t n_bytes[JOB_TEXTS];
} told;

/* The job of the running test: a model in a file, records in a file, and a folder. */
typedef struct job_bench {
    char folder[300], model_path[300];
    dpi_model *model;
    dpi_release_options o; /* of 4 texts of at most 8 tokens */
    int32_t every;         /* the journal's option; 0: its default */
} job_bench;
extern job_bench job;

/* At first, and when another job is to begin: with 16 records of 10 units "who". */
void job_make(void);
/* After each test, also of releases alone: and the folder. */
void job_remove(void);
/* Other lines of the records (NULL: as they are), with or without their units. */
void job_records(const char *lines, const char *unit_field);
/* One byte of the model's file: so it is another model, or that which it was. */
void job_flip_model(void);

/* A process of the job: one that makes it, or goes on with it. */
typedef struct process {
    dpi_journal *journal;
    dpi_release *release;
} process;
dpi_status job_start(process *p);
/* Until it fails, is over, or n tokens are told (-1: any number). Each told token must be on the
 * disk, as the journal says. */
dpi_status job_advance(const process *p, int32_t n, told *t);
void job_stop(process *p);

/* All three. */
dpi_status job_run(int32_t n, told *t);
/* A whole release without a job. */
void job_unbroken(told *t);

/* What was told of `part` is the beginning of `all`. */
void assert_begins(const told *part, const told *all);

#endif
