/* claim_kinds.h - a claim of each kind of work, for tests of claims. */
#ifndef DPI_CLAIM_KINDS_H
#define DPI_CLAIM_KINDS_H

#include "dpinfer/report.h"

typedef struct setting {
    const char *key;
    double value;
} setting;

enum { N_SETTINGS = 8 };

/* A claim of up to three mechanisms with these values, runs and data. */
typedef struct kind {
    const char *name;
    dpi_claim data; /* adjacency, M, units, labels, delta */
    struct {
        const char *mechanism, *text;
        int64_t n_runs;
        setting values[N_SETTINGS];
    } parts[3];
} kind;

extern const kind kinds[];
extern const int n_kinds;
const kind *kind_of(const char *name);

/* Not settled, and settled. */
dpi_claim unsettled(const kind *k);
dpi_claim claim_of(const kind *k);

/* Of the claims that are worded, and of one that is not. */
extern const dpi_wording wording, unworded;
/* Of the claims that have prompts. */
extern const char *const prompts;

/* The report of a claim, which has no texts; the caller frees it. */
char *report_of(const dpi_claim *claim);
/* How many fields of a report do not hold; SIZE_MAX: it is refused. */
size_t n_wrong(const char *text);

#endif
