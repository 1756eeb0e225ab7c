/* quant_fit.h - the searches behind the quantisers: the scale (and offset) with which small
 * integers come closest to a block of weights, in weighted squared error. Private to quantize.c
 * and quantize_k.c. n <= DPI_MAX_BLOCK; x finite; w > 0. */
#ifndef DPI_QUANT_FIT_H
#define DPI_QUANT_FIT_H

#include <stdint.h>

/* x[i] ~ scale * q[i] + offset */
typedef struct dpi_fit {
    float scale, offset;
    float error; /* sum w (x - scale * q - offset)^2 */
} dpi_fit;

/* How much the error of a weight counts: more where it is large, since what a large weight
 * multiplies tends to matter. */
void dpi_fit_weights(float *w, const float *x, int n);

/* Scale for q in -half..half - 1 and no offset. Positive or negative: the largest |x| goes to the
 * side that has one value more. 0 if x is 0. */
dpi_fit dpi_fit_symmetric(const float *x, const float *w, int n, int half);

/* Scale >= 0 and offset for q in 0..top; with `at_most_zero`, offset <= 0. */
dpi_fit dpi_fit_affine(const float *x, const float *w, int n, int top, int at_most_zero);

/* The nearest q in low..high for each x with a given scale and offset; the weighted error. q may be
 * NULL. A scale of 0 gives the q nearest to 0. */
float dpi_fit_round(const float *x, const float *w, int n, float scale, float offset, int low,
                    int high, int8_t *q);

#endif
