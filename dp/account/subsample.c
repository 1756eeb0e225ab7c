/* subsample.c - records to batches, and what a secret assignment is worth (docs/spec.md 4.4). */
#include <math.h>
#include <string.h>

#include "dpinfer/batch.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "dp/account/account.h"

enum { N_BATCHES_MAX = 1 << 30 };

static dpi_status check_batches(int32_t n_batches, dpi_error *err) {
    if (n_batches >= 1 && n_batches <= N_BATCHES_MAX)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG, "n_batches is %d, must be 1..%d", n_batches,
                    N_BATCHES_MAX);
}

/* floor(x n / 2^64): x in [0, 2^64) to [0, n), even but for n / 2^64. */
static int32_t scale_down(uint64_t x, int32_t n) {
    __extension__ typedef unsigned __int128 wide;
    return (int32_t)((wide)x * (uint64_t)n >> 64);
}

/* ---- SipHash-2-4: Aumasson and Bernstein 2012 ------------------------------------------------ */

static uint64_t rotate(uint64_t x, int n) { return x << n | x >> (64 - n); }

static uint64_t load_little(const uint8_t *p, size_t n_bytes) {
    uint64_t x = 0;
    for (size_t i = 0; i < n_bytes; i++)
        x |= (uint64_t)p[i] << (8 * i);
    return x;
}

static void sip_rounds(uint64_t v[4], int n) {
    for (int i = 0; i < n; i++) {
        v[0] += v[1];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[0] = rotate(v[0], 32);
        v[2] += v[3];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

static void sip_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
}

static uint64_t siphash(const uint8_t key[16], const uint8_t *data, size_t n_bytes) {
    const uint64_t k0 = load_little(key, 8), k1 = load_little(key + 8, 8);
    uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                     k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
    size_t i = 0;
    for (; n_bytes - i >= 8; i += 8)
        sip_word(v, load_little(data + i, 8));
    sip_word(v, load_little(data + i, n_bytes - i) | (uint64_t)n_bytes << 56);
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

dpi_status dpi_assign_hash(const uint8_t key[16], const void *id, size_t n_bytes, int32_t n_batches,
                           int32_t *batch, dpi_error *err) {
    if (!key || (!id && n_bytes > 0) || !batch)
        return dpi_fail(err, DPI_STATUS_ARG, "the key, the ID or the batch is NULL");
    DPI_TRY(check_batches(n_batches, err));
    *batch = scale_down(siphash(key, n_bytes > 0 ? id : key, n_bytes), n_batches);
    return DPI_STATUS_OK;
}

/* ---- Secret assignment ----------------------------------------------------------------------- */

static dpi_status check_q(double q, dpi_error *err) {
    return dpi_account_check("q", q, 1, false, err);
}

dpi_status dpi_assign_secret(double q, int32_t n_batches, dpi_random_fn random, void *random_user,
                             int32_t *batch, dpi_error *err) {
    if (!batch)
        return dpi_fail(err, DPI_STATUS_ARG, "the batch is NULL");
    DPI_TRY(check_q(q, err));
    DPI_TRY(check_batches(n_batches, err));
    uint64_t x[2];
    DPI_TRY(dpi_random_fill(random, random_user, x, sizeof x, err));
    /* q 2^64 is exact; truncated, so never more than q. */
    int joins = q >= 1 || x[0] < (uint64_t)ldexp(q, 64);
    int32_t drawn = scale_down(x[1], n_batches);
    *batch = joins ? drawn : -1;
    dpi_wipe(x, sizeof x);
    return DPI_STATUS_OK;
}

/* A few operations of relative error 2^-52 each. */
static const double UP = 1 + 0x1p-47, DOWN = 1 - 0x1p-47;

dpi_status dpi_subsample_outside(double epsilon, double delta, double q, double *epsilon_run,
                                 double *delta_run, dpi_error *err) {
    DPI_TRY(dpi_account_check("epsilon", epsilon, 1e6, false, err));
    DPI_TRY(dpi_account_check("delta", delta, 1, true, err));
    DPI_TRY(check_q(q, err));
    double outside = epsilon;
    if (q < 1 && epsilon < 700)
        outside = fmin(epsilon, UP * log1p(UP * (q * expm1(epsilon))));
    else if (q < 1) /* ln(q e^epsilon + 1 - q) <= epsilon + ln q + (1 - q) / (q e^epsilon) */
        outside = fmin(epsilon, epsilon * UP + log(q) * DOWN + UP * exp(-epsilon) / q);
    *epsilon_run = outside;
    *delta_run = q < 1 ? nextafter(q * delta, 1) : delta;
    return DPI_STATUS_OK;
}

dpi_status dpi_subsample_inside(double epsilon_run, double delta_run, double q, double *epsilon,
                                double *delta, dpi_error *err) {
    DPI_TRY(dpi_account_check("epsilon", epsilon_run, 1e6, false, err));
    DPI_TRY(dpi_account_check("delta", delta_run, 1, true, err));
    DPI_TRY(check_q(q, err));
    double inside_delta = q < 1 ? nextafter(delta_run / q, 0) : delta_run;
    if (!(inside_delta > 0 && inside_delta < 1))
        return dpi_fail(err, DPI_STATUS_ARG, "delta %g is not below q = %g", delta_run, q);
    double inside = epsilon_run;
    if (q < 1 && epsilon_run < 700 && isfinite(expm1(epsilon_run) / q))
        inside = fmax(epsilon_run, DOWN * log1p(DOWN * (expm1(epsilon_run) / q)));
    else if (q < 1) /* ln(1 + (e^x - 1) / q) >= x - ln q - (1 - q) e^-x / (1 - e^-x) */
        inside = fmax(epsilon_run, epsilon_run * DOWN - log(q) * DOWN - 2 * exp(-epsilon_run));
    *epsilon = fmin(inside, 1e6);
    *delta = inside_delta;
    return DPI_STATUS_OK;
}
