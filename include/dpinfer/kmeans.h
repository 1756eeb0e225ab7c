/* kmeans.h - groups of vectors: k-means. */
#ifndef DPINFER_KMEANS_H
#define DPINFER_KMEANS_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_kmeans_options {
    size_t struct_size;
    int32_t n_groups; /* 1..n_points; default 2 */
    int32_t n_starts; /* searches from other first centres, of which the best counts; default 5 */
    int32_t n_rounds; /* most rounds of one search; default 500 */
    int32_t uniform;  /* 1: the first centres are any points, as in most programs; 0 (default):
                         points with large distances, which end with better groups */
    uint64_t seed;        /* of the first centres; default 1 */
    dpi_cancel_fn cancel; /* asked once a round; may be NULL */
    void *cancel_user;
} dpi_kmeans_options;

DPI_API void dpi_kmeans_options_init_size(dpi_kmeans_options *options, size_t size);
#define dpi_kmeans_options_init(o) dpi_kmeans_options_init_size((o), sizeof *(o))

/* Groups of points [n_points, dim], so that the sum of squared distances from points to the mean of
 * their group is small: a local minimum. group [n_points] gets 0..n_groups-1, centres
 * [n_groups, dim] the means; equal points may give equal means. *squares is the sum; any of the
 * three may be NULL. The same bits on each call with the same seed.
 * Time: n_starts n_rounds n_points n_groups dim at most. The work memory is freed, not wiped.
 * Errors: ARG, NUMERIC (a point is not finite), MEMORY, CANCELLED.
 * Sources: Lloyd 1982; first centres after Arthur and Vassilvitskii 2007 ("k-means++"). */
DPI_API DPI_MUST_CHECK dpi_status dpi_kmeans(const double *points, int32_t n_points, int32_t dim,
                                             const dpi_kmeans_options *options, int32_t *group,
                                             double *centres, double *squares, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
