#include "train/adamw.h"

#include <math.h>

static int64_t block_end(int64_t begin, int64_t n) {
    return begin + DPI_ADAMW_BLOCK < n ? begin + DPI_ADAMW_BLOCK : n;
}

void dpi_gradient_sum(float *sum, int add, float *const *slots, int32_t n_slots, int64_t n,
                      int32_t n_threads) {
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (int64_t b = 0; b < n; b += DPI_ADAMW_BLOCK)
        for (int32_t s = 0; s < n_slots; s++) {
            const float *slot = slots[s];
            int64_t end = block_end(b, n);
            if (s == 0 && !add)
                for (int64_t i = b; i < end; i++)
                    sum[i] = slot[i];
            else
                for (int64_t i = b; i < end; i++)
                    sum[i] += slot[i];
        }
}

double dpi_gradient_square(const float *gradient, double *blocks, int64_t n, int32_t n_threads) {
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (int64_t b = 0; b < n; b += DPI_ADAMW_BLOCK) {
        double sum = 0;
        int64_t end = block_end(b, n);
#pragma omp simd reduction(+ : sum)
        for (int64_t i = b; i < end; i++)
            sum += (double)gradient[i] * (double)gradient[i];
        blocks[b / DPI_ADAMW_BLOCK] = sum;
    }
    double total = 0;
    for (int64_t b = 0; b < n; b += DPI_ADAMW_BLOCK)
        total += blocks[b / DPI_ADAMW_BLOCK];
    return total;
}

void dpi_adamw_step(const dpi_adamw *a, float *x, float *m, float *v, const float *gradient,
                    double scale, int64_t n, int32_t n_threads) {
    float s = (float)scale, b1 = (float)a->beta1, b2 = (float)a->beta2;
    float rest1 = (float)(1 - a->beta1), rest2 = (float)(1 - a->beta2), eps = (float)a->eps;
    float rate = (float)(a->lr / (1 - pow(a->beta1, (double)a->step)));
    float unbias = (float)(1 / sqrt(1 - pow(a->beta2, (double)a->step)));
    float keep = (float)(1 - a->lr * a->weight_decay);
    const float noise = (float)a->noise, least = (float)a->least;
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (int64_t b = 0; b < n; b += DPI_ADAMW_BLOCK) {
        int64_t end = block_end(b, n);
        for (int64_t i = b; i < end; i++) {
            float g = s * gradient[i];
            m[i] = b1 * m[i] + rest1 * g;
            v[i] = b2 * v[i] + rest2 * g * g;
            const float root = noise > 0 ? sqrtf(fmaxf(v[i] * unbias * unbias - noise, least))
                                         : sqrtf(v[i]) * unbias + eps;
            x[i] = keep * x[i] - rate * m[i] / root;
        }
    }
}

double dpi_learning_rate(double peak, double floor, int64_t warmup, int64_t step, int64_t steps) {
    if (step <= warmup)
        return peak * (double)step / (double)warmup;
    double part = steps > warmup ? (double)(step - warmup) / (double)(steps - warmup) : 1;
    return floor + (peak - floor) * 0.5 * (1 + cos(3.141592653589793 * (part < 1 ? part : 1)));
}
