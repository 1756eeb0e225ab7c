#include "dp/exact/center.h"

#include <string.h>

#include "kernels/exact.h"

/* b where `mask` is all ones, a where it is 0. Hidden masks: compilers make branches and tables of
 * comparisons. */
static inline double choose(double a, double b, uint64_t mask) {
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    mask = dpi_mask_hide(mask);
    x = (x & ~mask) | (y & mask);
    memcpy(&a, &x, sizeof a);
    return a;
}

static inline double larger(double a, double b) { return choose(a, b, 0 - (uint64_t)(a < b)); }

/* The logit, or a number below all floats (and so of no weight) if it is not finite. */
static inline double finite_or_low(float logit) {
    uint32_t bits;
    memcpy(&bits, &logit, sizeof bits);
    uint64_t odd = (bits & 0x7f800000) == 0x7f800000;
    return choose((double)logit, -1e39, 0 - odd);
}

/* e^x, x <= 0; e^-700 below -700. e^x = 2^k e^r, |r| <= ln2 / 2; the series ends with r^13. */
static inline double exp_negative(double x) {
    static const double inverse[] = {1. / 6227020800,
                                     1. / 479001600,
                                     1. / 39916800,
                                     1. / 3628800,
                                     1. / 362880,
                                     1. / 40320,
                                     1. / 5040,
                                     1. / 720,
                                     1. / 120,
                                     1. / 24,
                                     1. / 6,
                                     1. / 2,
                                     1,
                                     1};
    const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    x = larger(x, -700);
    int64_t k = dpi_round_even(x * 0x1.71547652b82fep+0);
    double r = x - (double)k * ln2_high - (double)k * ln2_low, sum = inverse[0];
    for (size_t i = 1; i < sizeof inverse / sizeof *inverse; i++)
        sum = sum * r + inverse[i];
    uint64_t bits = (uint64_t)(k + 1023) << 52; /* k >= -1010 */
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

/* ln x for normal x > 0: x = 2^k m, m in [1, 2), ln m = 2 artanh((m - 1) / (m + 1)). */
static double log_positive(double x) {
    enum { N_TERMS = 18 }; /* 3^-37 / 37 is left out */
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    double k = (double)((int64_t)(bits >> 52) - 1023);
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    double z = (m - 1) / (m + 1), square = z * z, sum = 0;
    for (int i = N_TERMS - 1; i >= 0; i--)
        sum = sum * square + 1. / (2 * i + 1);
    return k * 0x1.62e42fefa39efp-1 + 2 * z * sum;
}

double dpi_log_mass(const float *logits, const int32_t *support, size_t n) {
    double top = finite_or_low(logits[support[0]]), sum = 0;
    for (size_t i = 1; i < n; i++)
        top = larger(top, finite_or_low(logits[support[i]]));
    for (size_t i = 0; i < n; i++)
        sum += exp_negative(finite_or_low(logits[support[i]]) - top);
    return top + log_positive(sum);
}
