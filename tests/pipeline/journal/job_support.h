/* job_support.h - releases of a small model, as jobs that end and go on. */
#ifndef JOB_SUPPORT_H
#define JOB_SUPPORT_H

#include "dpinfer/journal.h"
#include "dpinfer/release.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

enum { JOB_TEXTS = 4, JOB_TOKENS = 8 };

/* What was told of each text. */
typedef struct told {
    int32_t token[JOB_TEXTS][JOB_TOKENS];
    int32_t n[JOB_TEXTS], end[JOB_TEXTS];
    int32_t n_all;
    char bytes[JOB_TEXTS][256];
    size_t n_bytes[JOB_TEXTS];
} told;

/* A model in a file, records in a file, and a folder for a job. */
typedef struct job_bench {
    char root[256], folder[300], model_path[300], records_path[300];
    dpi_model *model;
    dpi_records *records; /* 16 of 10 units */
    dpi_release_options o;
} job_bench;

void job_bench_make(job_bench *b);
void job_bench_remove(job_bench *b);
/* Records with or without their units. */
void job_records_open(job_bench *b, bool units);

/* Opens the job in the folder: a new one, or that which has begun there. */
dpi_status job_open(const job_bench *b, dpi_journal **journal, dpi_error *err);
/* Advances until it fails, is over, or n tokens are told (-1: any number). Each told token must be
 * on the disk, as the journal says. */
dpi_status job_advance(dpi_release *release, dpi_journal *journal, int32_t n, told *t,
                       dpi_error *err);
/* A whole release without a job. */
void job_unbroken(const job_bench *b, told *t);
/* Until it is over or n tokens are told; then everything ends without a word. */
dpi_status job_run(const job_bench *b, int32_t n, told *t, dpi_error *err);

/* What was told of `part` is the beginning of `all`. */
void assert_begins(const told *part, const told *all);

#endif
