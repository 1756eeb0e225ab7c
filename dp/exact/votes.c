/* votes.c - see votes.h. */
#include "dp/exact/votes.h"

#include <math.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/exact/noise.h"

/* A NaN compares as not less, and so is never nearest. */
int32_t dpi_votes_nearest(const float *candidates, const uint8_t *usable, int32_t n, int32_t dim,
                          const double *weights, const float *x) {
    int32_t nearest = -1;
    double least = INFINITY;
    bool finite = true;
    for (int32_t k = 0; k < dim; k++)
        finite &= isfinite(x[k]) != 0;
    for (int32_t i = 0; i < n; i++) {
        const float *c = candidates + (size_t)i * (size_t)dim;
        double distance = 0;
        for (int32_t k = 0; k < dim; k++) {
            const double d = ((double)x[k] - (double)c[k]) * weights[k];
            distance += d * d;
        }
        if (usable[i] && distance < least)
            least = distance, nearest = i;
    }
    return finite ? nearest : -1;
}

/* The largest v with v^2 sum <= (DPI_VOTE_ONE c)^2; below 2^21. */
static int64_t share_of(int64_t c, int64_t sum) {
    int64_t v = 0;
    while ((v + 1) * (v + 1) * sum <= DPI_VOTE_ONE * DPI_VOTE_ONE * c * c)
        v++;
    return v;
}

void dpi_votes_add(const int32_t *nearest, int32_t n_records, int64_t *votes, int32_t n) {
    int64_t count[DPI_VOTE_RECORDS_MAX] = {0}, sum = 0; /* at the first record of each candidate */
    n_records = n_records < DPI_VOTE_RECORDS_MAX ? n_records : DPI_VOTE_RECORDS_MAX;
    for (int32_t j = 0; j < n_records; j++) {
        int32_t first = 0;
        while (nearest[first] != nearest[j])
            first++;
        count[first] += nearest[j] >= 0 && nearest[j] < n;
    }
    for (int32_t j = 0; j < n_records; j++)
        sum += count[j] * count[j];
    for (int32_t j = 0; j < n_records; j++)
        if (count[j] > 0)
            votes[nearest[j]] += share_of(count[j], sum);
    dpi_wipe(count, sizeof count);
}

dpi_status dpi_votes_release(int64_t *votes, int32_t n, int64_t variance, dpi_random_fn random,
                             void *user, dpi_error *err) {
    dpi_status status = DPI_STATUS_OK;
    for (int32_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        int64_t noise = 0;
        status = dpi_noise_gaussian(variance, random, user, &noise, err);
        votes[i] += noise;
        dpi_wipe(&noise, sizeof noise);
    }
    if (status != DPI_STATUS_OK)
        dpi_wipe(votes, (size_t)n * sizeof *votes);
    return status;
}

/* 2^8, so that the products are exact. */
_Static_assert(DPI_VOTE_ONE * DPI_VOTE_ONE == 256, "a power of two");

double dpi_rho_votes_bound(int64_t variance) { return 256 * dpi_rho_gaussian_bound(variance); }

int64_t dpi_votes_variance_for(double rho) { return dpi_noise_variance_for(rho / 256); }
