/* mechanism.h - what can be done with records so that a guarantee is left, each kind described
 * once: plan, claim, statement, report, verification, ledger and completion are made from this and
 * know no mechanism by name.
 *
 * Everything that is returned is static and constant. Threads: pure functions. */
#ifndef DPINFER_MECHANISM_H
#define DPINFER_MECHANISM_H

#include "dpinfer/registry.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_mechanism_info {
    int32_t id;
    const char *name;   /* "votes": of claims */
    const char *title;  /* "noisy votes of units for candidates": in texts for people */
    const char *help;   /* one line, without a period at its end */
    const char *source; /* the paper; "" without one */
    const char *proof;  /* where its theorem is: "dp/PRIVACY.md section 25" */
    int32_t is_parallel; /* 1: its runs are over disjoint batches, and each unit is in one of them;
                            0: one after the other, each with all units */
    int32_t is_statistic; /* 1: it releases numbers by itself (statistic.h) */
    const char *runs;    /* what a run of it is, several of them: "texts" */
} dpi_mechanism_info;

/* Ids are 0..count-1, and those of one build: a claim has names. */
DPI_API int32_t dpi_mechanism_count(void);
/* *info of one that there is. */
DPI_API void dpi_mechanism_info_get(int32_t id, dpi_mechanism_info *info);
/* -1: there is no such one. */
DPI_API int32_t dpi_mechanism_find(const char *name);

/* The parameters of a mechanism in the order of a claim; those of the data (adjacency, delta,
 * records of a unit) are not among them. 0 and NULL if there is no such mechanism or parameter.
 * `offset` is of no use here: values stand in an array in this order. */
DPI_API int32_t dpi_mechanism_parameter_count(int32_t id);
DPI_API const dpi_parameter *dpi_mechanism_parameter_get(int32_t id, int32_t index);

#ifdef __cplusplus
}
#endif
#endif
