/* compose.h - the privacy loss of many steps: delta of a sum of independent losses.
 *
 * The law of the sum comes from one Fourier transform (Koskela, Jaelkoe and Honkela 2020), of the
 * law tilted by e^(lambda loss), so that what rounding does is small beside delta itself and not
 * only beside 1. Each error has a bound, which is part of the delta found: dp/PRIVACY.md section
 * 16. */
#ifndef DPI_PLD_COMPOSE_H
#define DPI_PLD_COMPOSE_H

#include <stddef.h>
#include <stdint.h>

#include "dp/pld/loss.h"

/* The smallest epsilon >= 0 that is found for delta after n_steps steps of `law`; INFINITY where
 * none is. The transform has at most n_max points. `law` is changed. delta in (0, 1), n_steps in
 * 1..2^30. Errors: MEMORY. */
DPI_MUST_CHECK dpi_status loss_sum_epsilon(loss_law *law, int32_t n_steps, double delta,
                                           size_t n_max, double *epsilon, dpi_error *err);

#endif
