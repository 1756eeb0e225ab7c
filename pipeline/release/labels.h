/* labels.h - which texts of a release are for which label. Internal.
 *
 * Texts are ordered by label. With public labels the units of a label make batches by their
 * position in it; with private ones a unit is assigned to one of its label's batches. Labels and
 * numbers of texts are public, and so are numbers of units with public labels. With private labels
 * units are counted only for a histogram with noise (dp/PRIVACY.md section 20).
 *
 *     dpi_labels_make(&options, batch, &labels, err);      before a record is read
 *     dpi_labels_share(counts, NULL, n, n_texts, shares);  with a histogram: when records may be
 *     dpi_labels_find(&labels, records, unit)              -1: the unit is in no text */
#ifndef DPI_RELEASE_LABELS_H
#define DPI_RELEASE_LABELS_H

#include <stdbool.h>

#include "dpinfer/release.h"
#include "pipeline/partition.h"
#include "pipeline/records/csv.h"

typedef struct dpi_label_list {
    int32_t n;        /* 0: there are no labels */
    dpi_spans names;  /* [n] */
    dpi_spans meanings; /* [n] what {label} stands for */
    int64_t *n_units; /* [n] public labels: units that have it */
    int32_t *n_texts; /* [n] */
} dpi_label_list;

/* The labels of the options, and unless there is a histogram their texts. `batch`: B. Errors: ARG
 * (a shortfall, what is missing), MEMORY; labels is to be freed after a failure, too. */
dpi_status dpi_labels_make(const dpi_release_options *options, int32_t reading, int32_t batch,
                           dpi_label_list *labels, dpi_error *err);
void dpi_labels_free(dpi_label_list *labels);

/* n_texts in proportion to counts [n], at most `most` [n] (NULL: any number) of each: the divisors
 * 1, 3, 5, .. of Sainte-Laguë. False: the limits allow fewer. */
bool dpi_labels_share(const int64_t *counts, const int64_t *most, int32_t n, int32_t n_texts,
                      int32_t *shares);

/* What the above is made of. A name of the list, by itself; its index, or -1. Errors: LIMIT,
 * MEMORY. */
DPI_MUST_CHECK dpi_status dpi_labels_add(dpi_label_list *labels, const char *name, size_t n_bytes,
                                         dpi_error *err);
int32_t dpi_labels_named(const dpi_label_list *labels, const char *name, size_t n_bytes);
/* Of public labels: n_units of each. Not `named`: labels that units have and the list has not are
 * added in the order in which they come. Errors: LIMIT, MEMORY. */
DPI_MUST_CHECK dpi_status dpi_labels_count(const dpi_records *records, bool named,
                                           dpi_label_list *labels, dpi_error *err);

/* The index of a unit's label; -1: it has none that is in the list. */
int32_t dpi_labels_find(const dpi_label_list *labels, const dpi_records *records, size_t unit);
/* What {label} stands for in the prompts of a label, the list's. */
dpi_bytes dpi_labels_meaning(const dpi_label_list *labels, int32_t index);
/* The batches of a label. Index -1: none. */
dpi_batch_range dpi_labels_range(const dpi_label_list *labels, int32_t index);
/* The label of a text. */
int32_t dpi_labels_of_text(const dpi_label_list *labels, int32_t text);
/* All texts. */
int64_t dpi_labels_texts(const dpi_label_list *labels);

#endif
