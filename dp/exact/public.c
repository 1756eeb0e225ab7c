/* public.c - the part of a step that is a function of public data: P and V_k+. */
#include <math.h>
#include <string.h>

#include "dp/exact/public.h"
#include "base/status.h"
#include "kernels/exact.h"

/* An integer of the same order as the float with these bits (-0 below 0). */
static inline int32_t order(int32_t bits) { return bits < 0 ? bits ^ INT32_MAX : bits; }

/* *max = the largest logit. Integer loops, which compilers turn into vectors. */
static dpi_status check(const float *logits, int32_t n, float *max, dpi_error *err) {
    int32_t top = INT32_MIN, largest = 0, bits;
    for (int32_t i = 0; i < n; i++) {
        memcpy(&bits, &logits[i], sizeof bits);
        const int32_t magnitude = bits & INT32_MAX;
        top = order(bits) > top ? order(bits) : top;
        largest = magnitude > largest ? magnitude : largest;
    }
    top = order(top); /* its own inverse */
    memcpy(max, &top, sizeof *max);
    const float limit = (float)DPI_LOGIT_MAX;
    memcpy(&bits, &limit, sizeof bits);
    if (largest <= bits)
        return DPI_STATUS_OK;
    int32_t i = 0;
    while (fabs((double)logits[i]) <= DPI_LOGIT_MAX)
        i++;
    return dpi_fail(err, DPI_STATUS_NUMERIC,
                    "public logit %d of %d is not finite or is beyond +-%g", i, n, DPI_LOGIT_MAX);
}

/* The difference is one double subtraction of two floats, the product is exact, so every
 * implementation gets the same integers. */
static inline int64_t fix(float logit, double max) {
    const double lowest = -DPI_LOGIT_MAX * DPI_UNIT;
    const double d = ((double)logit - max) * DPI_UNIT;
    return dpi_round_even(d < lowest ? lowest : d);
}

dpi_status dpi_public_fix(const float *logits, int32_t n, int64_t *fixed, int32_t *top,
                          dpi_error *err) {
    float largest;
    DPI_TRY(check(logits, n, &largest, err));
    for (int32_t i = 0; i < n; i++)
        fixed[i] = fix(logits[i], (double)largest);
    if (top) {
        *top = 0;
        while (logits[*top] != largest)
            ++*top;
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_public_fix_among(const float *logits, int32_t n, const int32_t *allowed,
                                int32_t n_allowed, int64_t *fixed, dpi_error *err) {
    DPI_TRY(dpi_public_fix(logits, n, fixed, NULL, err));
    float largest = logits[allowed[0]];
    for (int32_t i = 1; i < n_allowed; i++)
        largest = logits[allowed[i]] > largest ? logits[allowed[i]] : largest;
    for (int32_t i = 0; i < n_allowed; i++)
        fixed[allowed[i]] = fix(logits[allowed[i]], (double)largest);
    return DPI_STATUS_OK;
}

/* The k-th largest of values[which[i]], i < n (k in 1..n; duplicates count), by the digits of -P <
 * 2^36 from the top: six linear passes, whatever the values. */
static int64_t kth_largest(const int64_t *values, const int32_t *which, size_t n, int32_t k) {
    enum { DIGIT_BITS = 6, N_DIGITS = 1 << DIGIT_BITS };
    int64_t prefix = 0; /* the digits found so far of the answer's -P */
    int64_t rank = k;   /* among the values that share them */
    for (int shift = 5 * DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
        int32_t count[N_DIGITS] = {0};
        for (size_t i = 0; i < n; i++) {
            int64_t digits = -values[which[i]] >> shift;
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

/* A number that k or more of fixed[n] reach, as close below the k-th largest as one pass gets: the
 * k-th largest of the maxima of groups. INT64_MIN where there are too few groups. `room` is for n
 * indices. */
static int64_t lower_bound(const int64_t *fixed, int32_t n, int32_t k, int32_t *room) {
    enum { N_GROUPS = 512 };
    int64_t top[N_GROUPS];
    if (k > N_GROUPS || n < N_GROUPS)
        return INT64_MIN;
    memcpy(top, fixed, sizeof top);
    for (int32_t i = N_GROUPS; i + N_GROUPS <= n; i += N_GROUPS) /* the last ones may be left out */
        for (int32_t j = 0; j < N_GROUPS; j++)
            top[j] = fixed[i + j] > top[j] ? fixed[i + j] : top[j];
    for (int32_t j = 0; j < N_GROUPS; j++)
        room[j] = j;
    return kth_largest(top, room, N_GROUPS, k);
}

/* support = { y : D P(y) >= least } of the n `which` (NULL: all), in order; it may be `which`. */
static size_t select_from(const int64_t *fixed, const int32_t *which, size_t n, int64_t D,
                          int64_t least, int32_t *support) {
    size_t n_support = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t y = which ? which[i] : (int32_t)i;
        support[n_support] = y;
        n_support += D * fixed[y] >= least;
    }
    return n_support;
}

/* lower_bound among the n `which`. */
static int64_t lower_bound_among(const int64_t *fixed, const int32_t *which, int32_t n, int32_t k,
                                 int32_t *room) {
    enum { N_GROUPS = 512 };
    int64_t top[N_GROUPS];
    if (k > N_GROUPS || n < N_GROUPS)
        return INT64_MIN;
    for (int32_t i = 0; i < N_GROUPS; i++) {
        top[i] = fixed[which[i]];
        room[i] = i;
    }
    for (int32_t i = N_GROUPS; i < n; i++) {
        const int64_t value = fixed[which[i]];
        top[i % N_GROUPS] = value > top[i % N_GROUPS] ? value : top[i % N_GROUPS];
    }
    return kth_largest(top, room, N_GROUPS, k);
}

size_t dpi_support_find_among(const int64_t *fixed, const int32_t *which, int32_t n, int32_t top_k,
                              int64_t D, int64_t slack, int32_t *support) {
    if (top_k == 0 || top_k >= n) {
        memcpy(support, which, (size_t)n * sizeof *support);
        return (size_t)n;
    }
    const int64_t bound = lower_bound_among(fixed, which, n, top_k, support);
    const size_t n_support = select_from(fixed, which, (size_t)n, D,
                                         bound == INT64_MIN ? bound : D * bound - slack, support);
    const int64_t kth = kth_largest(fixed, support, n_support, top_k);
    return select_from(fixed, support, n_support, D, D * kth - slack, support);
}

size_t dpi_support_find(const int64_t *fixed, int32_t n, int32_t top_k, int64_t D, int64_t slack,
                        int32_t *support) {
    if (top_k == 0) {
        for (int32_t y = 0; y < n; y++)
            support[y] = y;
        return (size_t)n;
    }
    const int64_t bound = lower_bound(fixed, n, top_k, support);
    size_t n_support = select_from(fixed, NULL, (size_t)n, D,
                                   bound == INT64_MIN ? bound : D * bound - slack, support);
    const int64_t kth = kth_largest(fixed, support, n_support, top_k);
    return select_from(fixed, support, n_support, D, D * kth - slack, support);
}
