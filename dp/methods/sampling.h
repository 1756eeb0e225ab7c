/* sampling.h - how units come into the batches of texts, and what is proven of that. Internal. */
#ifndef DPI_METHODS_SAMPLING_H
#define DPI_METHODS_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "dpinfer/method.h"
#include "dpinfer/run.h"

/* Public texts that the centroids of groups of similar records are found from, for each group. */
enum { DPI_GROUP_TEXTS_LEAST = 4, DPI_GROUP_TEXTS_MOST = 16 };

typedef struct dpi_sampling {
    const char *texts_key; /* what messages call the number of texts */
    int64_t n_texts;
    int64_t n_units;       /* 0: there are none, or their number is secret */
    int32_t labels, n_labels, cluster_texts; /* as in a dpi_claim */
    bool has_histogram;    /* of units per label */
} dpi_sampling;

/* Refuses a delta of 1 / n_units and above: a mechanism that gives a record away has a chance then.
 * n_units: how many there are, or a public bound. max_per_unit: 0 where each record is one, for
 * the message. Errors: ARG. */
DPI_MUST_CHECK dpi_status dpi_delta_check(double delta, int64_t n_units, int32_t max_per_unit,
                                          dpi_error *err);

/* Refuses what is proven for no run of a method that reads records: delta at 1 / number of units
 * and above, labels of the wrong kind, a histogram that nobody can count, more texts than batches.
 * Errors: ARG. */
DPI_MUST_CHECK dpi_status dpi_sampling_check(const dpi_sampler_options *options,
                                             const dpi_sampling *sampling, dpi_error *err);

#endif
