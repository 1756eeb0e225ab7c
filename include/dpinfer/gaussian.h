/* gaussian.h - the cost of training: many steps of Gaussian noise, each on a random sample.
 *
 * In each step a unit joins with probability q, independently of all else (Poisson sampling); what
 * joins adds a vector whose norm is at most D, and noise of standard deviation sigma D is added to
 * each coordinate. Neighbours: one unit more or less. Part of libdpinfer_full. Pure functions.
 *
 * One exception to what the library promises: FFTW ends the process where it gets no memory for a
 * plan. PLD asks for that memory first, and gives MEMORY without it. It is not enough where another
 * thread has the last of it in between. */
#ifndef DPINFER_GAUSSIAN_H
#define DPINFER_GAUSSIAN_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DPI_GAUSSIAN_STEPS_MAX (1 << 24)

typedef enum dpi_gaussian_accountant {
    DPI_GAUSSIAN_RENYI = 0, /* Renyi divergences of integer orders (Mironov, Talwar, Zhang 2019) */
    DPI_GAUSSIAN_PLD = 1    /* the law of the privacy loss, by Fourier transforms: tighter */
} dpi_gaussian_accountant;

/* The noise multipliers that are accounted for. */
#define DPI_GAUSSIAN_SIGMA_MIN 0.1
#define DPI_GAUSSIAN_SIGMA_MAX 1e6

/* Set by dpi_gaussian_init, then changed field by field. */
typedef struct dpi_gaussian {
    size_t struct_size;
    double sigma;       /* noise multiplier, DPI_GAUSSIAN_SIGMA_MIN.._MAX */
    double sampling;    /* q in (0, 1]; 1: every unit, in every step */
    int32_t n_steps;    /* 1..DPI_GAUSSIAN_STEPS_MAX */
    int32_t accountant; /* a dpi_gaussian_accountant */
} dpi_gaussian;

/* sigma 1, sampling 1, 1 step, PLD. */
DPI_API void dpi_gaussian_init_size(dpi_gaussian *gaussian, size_t size);
#define dpi_gaussian_init(o) dpi_gaussian_init_size((o), sizeof *(o))

/* An upper bound of the epsilon at delta of all steps, in both directions. PLD: at most some 1e-4
 * of it above the truth where 2^18 points of a step and 2^21 of the sum are enough for that (with
 * 1e6 steps of q = 1e-4 some 5e-4), some 0.1 to 1 s, 5 s for so many steps. delta in [1e-100, 1).
 * INFINITY: no bound was found.
 * Errors: ARG, MEMORY. Source: dp/PRIVACY.md section 16. */
DPI_API DPI_MUST_CHECK dpi_status dpi_gaussian_epsilon(const dpi_gaussian *gaussian, double delta,
                                                       double *epsilon, dpi_error *err);

/* The smallest sigma in 0.1..1e6, but for 1e-6 of it, for which dpi_gaussian_epsilon is at most
 * `epsilon`; gaussian->sigma is not read. epsilon in (0, 1e6]. Time: some 20 times the above.
 * Errors: ARG (also where 1e6 is not enough), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_gaussian_sigma(const dpi_gaussian *gaussian, double epsilon,
                                                     double delta, double *sigma, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
