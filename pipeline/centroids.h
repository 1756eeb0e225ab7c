/* centroids.h - groups of public vectors, and the group that a vector is nearest to. Internal.
 *
 * k-means (dpinfer/kmeans.h) of points [n_points, dim], of which each coordinate counts in units of
 * its standard deviation over the points. What comes out is a function of the points alone: the
 * same on each call. Trusted: the points follow from public data. Then so do the centroids, and the
 * group of a private vector follows from that vector and public data (dp/PRIVACY.md section 22).
 *
 * Threads: immutable once made. */
#ifndef DPI_CENTROIDS_H
#define DPI_CENTROIDS_H

#include "dpinfer/status.h"

typedef struct dpi_centroids dpi_centroids;

/* n_groups of the points, 1..n_points. Some may be equal where points are. Errors: NUMERIC (a point
 * is not finite), MEMORY. */
dpi_status dpi_centroids_make(const float *points, int32_t n_points, int32_t dim, int32_t n_groups,
                              dpi_centroids **centroids, dpi_error *err);
/* NULL is allowed. */
void dpi_centroids_free(dpi_centroids *centroids);

/* The group 0..n_groups-1 that x [dim] is nearest to, the first of several. All are looked at,
 * whatever x is; one that is not finite has a group too. */
int32_t dpi_centroids_nearest(const dpi_centroids *centroids, const float *x);

#endif
