/* adamw.h - the sum of gradients, its norm, and the step of AdamW (Loshchilov and Hutter 2019).
 * Internal. Threads share fixed blocks of parameters, so no sum depends on how many there are. */
#ifndef DPI_TRAIN_ADAMW_H
#define DPI_TRAIN_ADAMW_H

#include <stdint.h>

enum { DPI_ADAMW_BLOCK = 1 << 14 }; /* parameters */

typedef struct dpi_adamw {
    double lr, beta1, beta2, eps, weight_decay;
    int64_t step; /* 1, 2, ...: for the bias correction */
    /* Above 0: v' is made smaller by noise, the variance of the noise in the gradient, and is least
     * then at least (Tang, Shpilevskiy and Lecuyer 2024). */
    double noise, least;
} dpi_adamw;

/* sum [n] = (add ? sum : 0) + slots[0] + ... in that order. `slots` may begin with `sum` itself. */
void dpi_gradient_sum(float *sum, int add, float *const *slots, int32_t n_slots, int64_t n,
                      int32_t n_threads);
/* The square of the norm; `blocks` is work space of (n + DPI_ADAMW_BLOCK - 1) / DPI_ADAMW_BLOCK. */
double dpi_gradient_square(const float *gradient, double *blocks, int64_t n, int32_t n_threads);
/* With g = scale gradient: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
 * x -= lr (m' / (sqrt(v') + eps) + weight_decay x), where ' corrects the bias. With noise
 * sqrt(max(v' - noise, least)) stands in place of sqrt(v') + eps. */
void dpi_adamw_step(const dpi_adamw *a, float *x, float *m, float *v, const float *gradient,
                    double scale, int64_t n, int32_t n_threads);

/* lr of step 1..steps: linear over `warmup` steps, then a cosine to `floor` at the last step. */
double dpi_learning_rate(double peak, double floor, int64_t warmup, int64_t step, int64_t steps);

#endif
