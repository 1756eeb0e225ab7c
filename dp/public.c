/* public.c - the half of a step that is a function of public data: P and V_k+. */
#include <math.h>

#include "method.h"
#include "status.h"

/* The difference is one double subtraction of two floats, the product is
 * exact, so every implementation gets the same integers. */
dpi_status dpi_public_fix(const float *logits, int32_t n, int64_t *fixed, int32_t *top,
                          dpi_error *err) {
    int32_t best = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!(fabs((double)logits[i]) <= DPI_LOGIT_MAX))
            return dpi_fail(err, DPI_STATUS_NUMERIC,
                            "public logit %d of %d is not finite or is beyond +-%g", i, n,
                            DPI_LOGIT_MAX);
        if (logits[i] > logits[best])
            best = i;
    }
    const double max = (double)logits[best], lowest = -DPI_LOGIT_MAX * DPI_UNIT;
    for (int32_t i = 0; i < n; i++) {
        double d = ((double)logits[i] - max) * DPI_UNIT;
        fixed[i] = dpi_round_even(d < lowest ? lowest : d);
    }
    if (top)
        *top = best;
    return DPI_STATUS_OK;
}

/* The k-th largest of fixed[n] (k in 1..n; duplicates count), by the digits of -P < 2^36 from the
 * top: three linear passes, whatever the values. */
static int64_t kth_largest(const int64_t *fixed, int32_t n, int32_t k) {
    enum { DIGIT_BITS = 12, N_DIGITS = 1 << DIGIT_BITS };
    int64_t prefix = 0; /* the digits found so far of the answer's -P */
    int64_t rank = k;   /* among the values that share them */
    for (int shift = 2 * DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
        int32_t count[N_DIGITS] = {0};
        for (int32_t i = 0; i < n; i++) {
            int64_t digits = -fixed[i] >> shift;
            if (digits >> DIGIT_BITS == prefix)
                count[digits & (N_DIGITS - 1)]++;
        }
        int64_t digit = 0;
        while (rank > count[digit])
            rank -= count[digit++];
        prefix = prefix << DIGIT_BITS | digit;
    }
    return -prefix;
}

size_t dpi_support_find(const int64_t *fixed, int32_t n, int32_t top_k, int64_t D, int64_t slack,
                        int32_t *support) {
    const int64_t least = top_k == 0 ? INT64_MIN : D * kth_largest(fixed, n, top_k) - slack;
    size_t n_support = 0;
    for (int32_t i = 0; i < n; i++)
        if (D * fixed[i] >= least)
            support[n_support++] = i;
    return n_support;
}
