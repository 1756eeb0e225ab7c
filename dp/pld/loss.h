/* loss.h - the privacy loss of one step of the Gaussian mechanism on a Poisson sample, on a grid.
 *
 * Each unit joins with probability q; what joins has norm at most 1 and the noise the standard
 * deviation sigma. The worst neighbours (Zhu and Wang 2019; Balle, Barthe and Gaboardi 2018) are
 * P = (1-q) N(0, sigma^2) + q N(1, sigma^2) and Q = N(0, sigma^2), in both directions.
 *
 * The law of L = ln(dP/dQ) under P is put on the grid i * step: the mass of P and of Q between two
 * points goes to these two points, so that both masses stay as they are ("connect the dots",
 * Doroshenko et al. 2022). That spreads the likelihood ratio, which only helps who wants to tell P
 * from Q: each bound of the law on the grid, also after composition, bounds the true one. What
 * rounding can do is moved to the larger loss. dp/PRIVACY.md section 16. */
#ifndef DPI_PLD_LOSS_H
#define DPI_PLD_LOSS_H

#include <stddef.h>
#include <stdint.h>

#include "dpinfer/status.h"

typedef struct loss_law {
    double step;   /* of the grid */
    int64_t first; /* mass[i] stands at the loss (first + i) * step */
    size_t n;
    double *mass;    /* [n], of P; owned */
    double infinite; /* mass of P whose loss is counted as infinite */
} loss_law;

/* The direction: a unit that is removed (P has it) or added (Q has it). */
typedef enum loss_direction { LOSS_REMOVE = 0, LOSS_ADD = 1 } loss_direction;

/* Losses whose mass is below `tail` at either end: those above count as infinite, those below as
 * the smallest point of the grid. The grid has at most n_max points: *step grows if needed.
 * sigma > 0, q in (0, 1], tail in (0, 1). The caller frees law->mass. Errors: MEMORY. */
DPI_MUST_CHECK dpi_status loss_law_make(double sigma, double q, loss_direction direction,
                                        double step, double tail, size_t n_max, loss_law *law,
                                        dpi_error *err);
/* The distance from the smallest to the largest loss of that law, before the grid. */
double loss_range(double sigma, double q, double tail);

#endif
