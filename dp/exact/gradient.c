#include "dp/exact/gradient.h"

#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/exact/normal.h"

__extension__ typedef unsigned __int128 u128;

int64_t dpi_gradient_bound(int64_t n) {
    int64_t half_root = (int64_t)(sqrt((double)n) / 2);
    while (4 * half_root * half_root < n) /* the root is within one of it */
        half_root++;
    while (half_root > 0 && 4 * (half_root - 1) * (half_root - 1) >= n)
        half_root--;
    return (INT64_C(1) << DPI_GRADIENT_SHIFT) + half_root + 1;
}

static bool too_long(const int32_t *z, int64_t n, int64_t bound) {
    u128 square = 0;
    for (int64_t i = 0; i < n; i++)
        square += (uint64_t)((int64_t)z[i] * z[i]);
    return square > (u128)bound * (u128)bound;
}

/* What floats do here decides how much of a gradient is kept, never how much it can move a sum. */
void dpi_gradient_add(const float *gradient, int64_t n, float clip, int32_t *scratch,
                      int64_t *sum) {
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(gradient[i]))
            square += (double)gradient[i] * gradient[i];
    const double norm = sqrt(square), one = INT64_C(1) << DPI_GRADIENT_SHIFT;
    const double scale = norm > clip ? one / norm : one / clip;
    for (int64_t i = 0; i < n; i++) {
        const double z = isfinite(gradient[i]) ? rint(gradient[i] * scale) : 0;
        scratch[i] = (int32_t)fmax(-2 * one, fmin(2 * one, z));
    }
    const int64_t bound = dpi_gradient_bound(n);
    while (too_long(scratch, n, bound))
        for (int64_t i = 0; i < n; i++)
            scratch[i] /= 2;
    for (int64_t i = 0; i < n; i++)
        sum[i] += scratch[i];
}

dpi_status dpi_gradient_noise(double sigma, int64_t n, dpi_random_fn random, void *user,
                              int64_t *sum, dpi_error *err) {
    if (!(sigma > 0 && sigma <= DPI_GRADIENT_NOISE_MAX))
        return dpi_fail(err, DPI_STATUS_ARG, "sigma is %g, must be above 0 and at most %g", sigma,
                        DPI_GRADIENT_NOISE_MAX);
    /* Rounded up: the noise is never less than was accounted for. */
    const double scaled = sigma * (double)dpi_gradient_bound(n) * (1 << DPI_NORMAL_SHIFT);
    const int64_t deviation = (int64_t)ceil(nextafter(scaled, INFINITY));
    enum { PART = 1024 };
    int64_t noise[PART];
    dpi_status status = DPI_STATUS_OK;
    for (int64_t i = 0; i < n && status == DPI_STATUS_OK; i += PART) {
        const int64_t m = n - i < PART ? n - i : PART;
        status = dpi_normal_rounded(deviation, random, user, noise, (size_t)m, err);
        for (int64_t j = 0; j < m && status == DPI_STATUS_OK; j++)
            sum[i + j] += noise[j];
    }
    dpi_wipe(noise, sizeof noise);
    if (status != DPI_STATUS_OK)
        dpi_wipe(sum, (size_t)n * sizeof *sum);
    return status;
}
