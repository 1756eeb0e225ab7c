/* threshold.h - the law of RANTEXT's threshold, t = sqrt(sum of squares of Laplace noise), for its
 * certificate. Internal. Nothing that is drawn depends on it. Source: dp/PRIVACY.md section 21. */
#ifndef DPI_THRESHOLD_H
#define DPI_THRESHOLD_H

#include "dpinfer/status.h"

/* The law in cells, from edge[m] to edge[m + 1]. Inside of one ln P[t > at] is taken as linear. */
typedef struct dpi_threshold_law {
    int32_t n_cells;
    double *edge;         /* [n_cells + 1], ascending */
    double *above;        /* [n_cells + 1] P[t > edge], 1 at first */
    double mean_square;   /* of t */
    const int64_t *scale; /* [dim], the caller's */
    int32_t dim;
} dpi_threshold_law;

/* Of noise with these scales, in at most n_cells cells: most have like probabilities; a quarter of
 * them is in the upper tail, down to 1e-13, an eighth in the lower one. The law on integers is
 * taken as the one of real numbers. Errors: MEMORY. */
dpi_status dpi_threshold_law_make(const int64_t *scale, int32_t dim, int32_t n_cells,
                                  dpi_threshold_law *law, dpi_error *err);
void dpi_threshold_law_free(dpi_threshold_law *law);

/* About ln P[t > at] for `at` above the last edge: one coordinate is large, the others are as
 * usual. */
double dpi_threshold_tail(const dpi_threshold_law *law, double at);

#endif
