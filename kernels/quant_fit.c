#include "kernels/quant_fit.h"

#include <math.h>
#include <stddef.h>

#include "kernels/weight_types.h"

void dpi_fit_weights(float *w, const float *x, int n) {
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    float rms = sqrtf(sum / (float)n);
    for (int i = 0; i < n; i++)
        w[i] = rms > 0 ? 1 + 0.5f * fabsf(x[i]) / rms : 1;
}

/* The nearest integer in low..high, as a float. */
static inline float nearest(float v, float low, float high) {
    v = v < low ? low : v > high ? high : v; /* so that the conversion cannot overflow */
    return (float)(int)(v - low + 0.5f) + low;
}

float dpi_fit_round(const float *x, const float *w, int n, float scale, float offset, int low,
                    int high, int8_t *q) {
    float inverse = scale != 0 ? 1 / scale : 0, error = 0, lowest = (float)low;
    float highest = (float)high, v[DPI_MAX_BLOCK];
    if (isinf(inverse)) /* a subnormal scale */
        inverse = 0;
#pragma omp simd reduction(+ : error)
    for (int i = 0; i < n; i++) {
        v[i] = nearest((x[i] - offset) * inverse, lowest, highest);
        float e = x[i] - (scale * v[i] + offset);
        error += w[i] * e * e;
    }
    for (int i = 0; q && i < n; i++)
        q[i] = (int8_t)v[i];
    return error;
}

/* ---- Symmetric ------------------------------------------------------------------------------- */

/* The best scale for the q that `inverse` gives: sum w x q / sum w q^2. Its gain (the error it
 * takes from sum w x^2) is the return value. */
static float try_inverse(const float *x, const float *w, int n, float inverse, int half,
                         float *scale) {
    float xq = 0, qq = 0;
#pragma omp simd reduction(+ : xq, qq)
    for (int i = 0; i < n; i++) {
        float q = nearest(x[i] * inverse, (float)-half, (float)(half - 1));
        xq += w[i] * x[i] * q;
        qq += w[i] * q * q;
    }
    *scale = qq > 0 ? xq / qq : 0;
    return xq * *scale;
}

dpi_fit dpi_fit_symmetric(const float *x, const float *w, int n, int half) {
    /* Steps of 1/8 around `half`; the one at -8 is half - 1 itself, so that weights that were
     * quantised before find their scale again. Clipping pays more where there are few values. */
    enum { FIRST = -8, LAST = 12 };
    float largest = 0, best = 0;
    dpi_fit fit = {0, 0, 0};
    for (int i = 0; i < n; i++)
        largest = fabsf(x[i]) > fabsf(largest) ? x[i] : largest;
    for (int k = FIRST; k <= LAST && largest != 0; k++) {
        float scale, inverse = -((float)half + (float)k / 8) / largest;
        if (isinf(inverse))
            break;
        float gain = try_inverse(x, w, n, inverse, half, &scale);
        if (gain > best) {
            best = gain;
            fit.scale = scale;
        }
    }
    fit.error = dpi_fit_round(x, w, n, fit.scale, 0, -half, half - 1, NULL);
    return fit;
}

/* ---- Affine ---------------------------------------------------------------------------------- */

/* Weighted linear regression of x on the q that `inverse` and `offset` give. The error is that of
 * those q: rounding again can only lower it. */
static dpi_fit regress(const float *x, const float *w, int n, int top, int at_most_zero,
                       float inverse, float offset) {
    float sw = 0, sx = 0, sq = 0, sxx = 0, sxq = 0, sqq = 0;
#pragma omp simd reduction(+ : sw, sx, sq, sxx, sxq, sqq)
    for (int i = 0; i < n; i++) {
        float q = nearest((x[i] - offset) * inverse, 0, (float)top);
        float wx = w[i] * x[i], wq = w[i] * q;
        sw += w[i];
        sx += wx;
        sq += wq;
        sxx += wx * x[i];
        sxq += wx * q;
        sqq += wq * q;
    }
    dpi_fit fit = {0, sx / sw, 0};
    float determinant = sw * sqq - sq * sq;
    if (determinant > 0) {
        fit.scale = (sw * sxq - sx * sq) / determinant;
        fit.offset = (sqq * sx - sq * sxq) / determinant;
    }
    if (at_most_zero && fit.offset > 0) {
        fit.offset = 0;
        fit.scale = sqq > 0 ? sxq / sqq : 0;
    }
    float a = fit.scale, b = fit.offset;
    fit.error = sxx - 2 * (a * sxq + b * sx) + a * a * sqq + 2 * a * b * sq + b * b * sw;
    return fit;
}

dpi_fit dpi_fit_affine(const float *x, const float *w, int n, int top, int at_most_zero) {
    enum { FIRST = -4, LAST = 12, ROUNDS = 2 };
    float low = x[0], high = x[0];
    for (int i = 1; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    if (at_most_zero && low > 0)
        low = 0;
    float inverse = 1 / (high - low);
    dpi_fit best = {0, at_most_zero && low > 0 ? 0 : low, INFINITY};
    if (!(high > low) || isinf(inverse))
        best.error = dpi_fit_round(x, w, n, 0, best.offset, 0, top, NULL);
    else
        for (int k = FIRST; k <= LAST; k++) { /* the range in top + k/4 steps, both ends clipped */
            float steps = (float)top + (float)k / 4;
            float offset = low + (high - low) * (steps - (float)top) / (2 * steps);
            dpi_fit fit = regress(x, w, n, top, at_most_zero, steps * inverse,
                                  at_most_zero && offset > 0 ? 0 : offset);
            if (fit.scale > 0 && fit.error < best.error)
                best = fit;
        }
    for (int i = 0; i < ROUNDS && best.scale > 0 && !isinf(1 / best.scale); i++) {
        dpi_fit fit = regress(x, w, n, top, at_most_zero, 1 / best.scale, best.offset);
        if (fit.scale > 0 && fit.error < best.error)
            best = fit;
    }
    return best;
}
