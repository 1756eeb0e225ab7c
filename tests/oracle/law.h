/* law.h - the law of a step by brute force, from the definitions of docs/spec.md section 2: public
 * logits, candidates, what a reference adds, probabilities. */
#ifndef DPI_TEST_LAW_H
#define DPI_TEST_LAW_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LAW_VOCAB_MAX = 3000 };

typedef long double real;

static inline int law_descending(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* P: public logits below the largest, in units of 2^-20, and not below -10^4. */
static inline void law_public(const float *logits, int32_t n, int64_t *P) {
    float top = logits[0];
    for (int32_t y = 1; y < n; y++)
        top = fmaxf(top, logits[y]);
    for (int32_t y = 0; y < n; y++)
        P[y] = llrint(fmax(((double)logits[y] - (double)top) * 0x1p20, -1e4 * 0x1p20));
}

/* V_k+, ascending: D P(y) >= D P_(k) - slack. Returns how many. */
static inline int32_t law_support(const int64_t *P, int32_t n, int32_t k, int64_t D, int64_t slack,
                                  int32_t *support) {
    static int64_t sorted[LAW_VOCAB_MAX];
    int32_t n_support = 0;
    memcpy(sorted, P, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, law_descending);
    for (int32_t y = 0; y < n; y++)
        if (k == 0 || D * P[y] >= D * sorted[k - 1] - slack)
            support[n_support++] = y;
    return n_support;
}

/* What a reference adds whose logit is `difference` above the public one: clipped to K units. */
static inline int64_t law_contribution(double difference, int64_t K) {
    const double d = difference * 0x1p20;
    return !isfinite(d) ? 0 : d >= (double)K ? K : d <= -(double)K ? -K : llrint(d);
}

/* p[n] = probabilities of the tokens `ids` (NULL: all of 0..n-1) at temperature tau. A logit that
 * is not finite counts as `instead`; -INFINITY: it has no mass, and where none has, all are even.
 */
static inline void law_softmax(const float *logits, const int32_t *ids, int32_t n, real tau,
                               real instead, real *p) {
    real top = -INFINITY, sum = 0;
    for (int32_t i = 0; i < n; i++) {
        const float x = logits[ids ? ids[i] : i];
        top = fmaxl(top, p[i] = (isfinite(x) ? x : instead) / tau);
    }
    for (int32_t i = 0; i < n; i++)
        sum += p[i] = top > -INFINITY ? expl(p[i] - top) : 1;
    for (int32_t i = 0; i < n; i++)
        p[i] /= sum;
}

#endif
