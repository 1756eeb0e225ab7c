/* calibrate.c - the exponential mechanism with the exponent that a vocabulary allows. The theorem
 * is in dp/PRIVACY.md section 21. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/local/local.h"

/* What is computed here and what is drawn by differ by less than this, in epsilon: Theorem C. */
#define SLACK 0x1p-30
/* Weights have no floor above e^-69: there the theorem ends. */
#define H_MOST (INT64_C(69) << DPI_LOCAL_BITS)

static const double LN2 = 0x1.62e42fefa39efp-1;

/* For each y the largest and the least ln P(y | x) of the words so far. */
typedef struct range {
    double *high, *low; /* [n] */
    double *exponent;   /* [n] ln of weights of one row */
} range;

static bool range_create(range *r, size_t n) {
    *r = (range){
        .high = dpi_calloc(n, sizeof *r->high),
        .low = dpi_calloc(n, sizeof *r->low),
        .exponent = dpi_calloc(n, sizeof *r->exponent),
    };
    return r->high && r->low && r->exponent;
}

static void range_free(range *r) {
    free(r->high);
    free(r->low);
    free(r->exponent);
}

/* Every word, and x = -1: a word outside the vocabulary becomes all alike. */
static void add_rows(const dpi_local *l, int32_t thread, range *r) {
    const int32_t n = l->n;
    for (int32_t y = 0; y < n; y++)
        r->high[y] = r->low[y] = -log(n);
    for (int32_t x = thread; x < n; x += l->options.n_threads) {
        const uint32_t *row = l->distance + (size_t)x * (size_t)n;
        double sum = 0;
        for (int32_t y = 0; y < n; y++) {
            const int64_t score = dpi_local_score(row[y], (double)l->h, l->diameter, l->h);
            r->exponent[y] = ldexp((double)score, -DPI_LOCAL_BITS) * LN2;
            sum += exp(r->exponent[y]);
        }
        const double total = log(sum);
        for (int32_t y = 0; y < n; y++) {
            const double p = r->exponent[y] - total;
            r->high[y] = p > r->high[y] ? p : r->high[y];
            r->low[y] = p < r->low[y] ? p : r->low[y];
        }
    }
}

/* The largest loss of l->h, rounded up. `parts`: one for each thread. */
static double loss_of(const dpi_local *l, range *parts) {
    const int32_t n_parts = l->options.n_threads;
    double loss = 0;
#pragma omp parallel for num_threads(n_parts) schedule(static, 1)
    for (int32_t i = 0; i < n_parts; i++)
        add_rows(l, i, &parts[i]);
    for (int32_t y = 0; y < l->n; y++) {
        double high = parts[0].high[y], low = parts[0].low[y];
        for (int32_t i = 1; i < n_parts; i++) {
            high = fmax(high, parts[i].high[y]);
            low = fmin(low, parts[i].low[y]);
        }
        loss = fmax(loss, high - low);
    }
    return loss + SLACK;
}

static bool fits(dpi_local *l, int64_t h, double epsilon, range *parts) {
    l->h = h;
    return loss_of(l, parts) <= epsilon;
}

/* Only what was found to be within epsilon is kept: no loss needs to grow with h. */
static void find_exponent(dpi_local *l, double epsilon, range *parts) {
    int64_t low = l->h, high = l->h; /* Theorem L allows it */
    do {
        low = high;
        high = high < H_MOST / 2 ? 2 * high : H_MOST;
    } while (low < H_MOST && fits(l, high, epsilon, parts));
    while (high - low > low >> 14) {
        const int64_t middle = low + (high - low) / 2;
        *(fits(l, middle, epsilon, parts) ? &low : &high) = middle;
    }
    l->h = low;
}

dpi_status dpi_local_calibrate(dpi_local *l, double epsilon, dpi_error *err) {
    const int32_t n_parts = l->options.n_threads;
    range *parts = dpi_calloc((size_t)n_parts, sizeof *parts);
    bool ok = parts != NULL;
    for (int32_t i = 0; i < n_parts && ok; i++)
        ok = range_create(&parts[i], (size_t)l->n);
    if (ok)
        find_exponent(l, epsilon, parts);
    for (int32_t i = 0; i < n_parts && parts; i++)
        range_free(&parts[i]);
    free(parts);
    return ok ? DPI_STATUS_OK : dpi_no_memory(err, "the calibration of %d words", l->n);
}
