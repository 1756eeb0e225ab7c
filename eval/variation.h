/* variation.h - total variation of shares. */
#ifndef DPI_EVAL_VARIATION_H
#define DPI_EVAL_VARIATION_H

#include <stdint.h>

/* Of p and q [n], each with sum 1: half of the sum of |p - q|, 0..1. */
double eval_variation(const double *p, const double *q, int32_t n);
/* Its mean over the rows of p and q [rows, n]. */
double eval_variation_mean(const double *p, const double *q, int32_t rows, int32_t n);

#endif
