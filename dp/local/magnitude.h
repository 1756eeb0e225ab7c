/* magnitude.h - |z| of exact discrete Laplace noise z, many at a time and from few random bits.
 * Internal. The law is that of noise.h, and so is what is trusted: nothing but the bits.
 *
 * X uniform in (0, 1) gives m = floor(-s ln X), which is at least k exactly where X <= e^(-k/s):
 * m is geometric, P[m >= k] = e^(-k/s). The first 32 bits of X say m nearly always, by a logarithm
 * in integers whose error is bounded. Where they do not, 224 more bits are drawn, and powers of
 * e^(-1 / s) in 256 bits say it: a tie of X with one of them, to 2^-200, is left to chance. With a
 * fair sign, of which minus zero is refused, m is |z| with
 *     P[|z| = k] = 2 (1 - g) / (1 + g) g^k, half of that for k = 0, g = e^(-1 / s).
 * Source: inversion, as in Devroye 1986, II.2; dp/PRIVACY.md section 21.
 *
 * Time: depends on the bits and the scales. Threads: pure; tables are read alone. */
#ifndef DPI_MAGNITUDE_H
#define DPI_MAGNITUDE_H

#include <stdbool.h>

#include "dpinfer/status.h"
#include "kernels/exact.h"

enum { DPI_MAGNITUDE_CELLS = 512 };
#define DPI_MAGNITUDE_SCALE_MAX (INT64_C(1) << 22)

typedef struct dpi_magnitude_tables {
    uint64_t log[DPI_MAGNITUDE_CELLS];     /* ln(1 + i / 512) in units of 2^-44 */
    uint64_t inverse[DPI_MAGNITUDE_CELLS]; /* 2^72 / (2^31 + i 2^22) */
} dpi_magnitude_tables;

void dpi_magnitude_tables_fill(dpi_magnitude_tables *t);

/* *m = floor(-scale ln X) for every X in [u, u + 1) / 2^32. false: not all of them have the same.
 * scale in [1, DPI_MAGNITUDE_SCALE_MAX]. */
bool dpi_magnitude_of(const dpi_magnitude_tables *t, int64_t scale, uint32_t u, uint64_t *m);
/* The same for X = (u + more) / 2^32, more = more[0] 2^-32 + more[1] 2^-64 + ..., 7 of them. */
uint64_t dpi_magnitude_exactly(int64_t scale, uint32_t u, const uint32_t more[7]);

/* *sum = sum of z_i^2, of independent noise with scale[i], for i < n <= 2^14; scales in
 * [1, 2^42], those above DPI_MAGNITUDE_SCALE_MAX by dpi_noise_laplace. Errors: ENTROPY. */
dpi_status dpi_magnitude_squares(const dpi_magnitude_tables *t, const int64_t *scale, int32_t n,
                                 dpi_random_fn random, void *user, dpi_u128 *sum, dpi_error *err);

#endif
