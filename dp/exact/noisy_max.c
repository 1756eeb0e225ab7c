/* noisy_max.c - see noisy_max.h. */
#include "dp/exact/noisy_max.h"

#include <math.h>

#include "dp/exact/normal.h"
#include "kernels/exact.h"

size_t dpi_noisy_max(const int64_t *values, const int64_t *noise, size_t n) {
    int64_t best = values[0] + noise[0];
    uint64_t index = 0;
    for (size_t i = 1; i < n; i++) {
        const int64_t value = values[i] + noise[i];
        const uint64_t is_more = dpi_mask_hide((uint64_t)((best - value) >> 63));
        index = ((uint64_t)i & is_more) | (index & ~is_more);
        best = (int64_t)(((uint64_t)value & is_more) | ((uint64_t)best & ~is_more));
    }
    return (size_t)index;
}

static double up(double x) { return nextafter(x, INFINITY); }

/* sigma as a double may be rounded, and is made smaller; the rest is rounded up. */
double dpi_rho_noisy_max_bound(int64_t D, int64_t sigma) {
    const double s = nextafter((double)sigma, 0);
    const double ratio = up(ldexp((double)D, DPI_NORMAL_SHIFT) / s);
    return up(ratio * ratio) / 2;
}
