/* cost_text.h - what a charge cost, as the text that a ledger keeps of it. Internal. */
#ifndef DPI_LEDGER_COST_TEXT_H
#define DPI_LEDGER_COST_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "dpinfer/account.h"

/* "range 500 0.0197; pure 3 0.2; subsample 0.01": from it the amount can be computed again. At most
 * size - 1 bytes. */
void dpi_cost_print(const dpi_cost *cost, char *text, size_t size);
/* The cost that has this text; false: no cost has it, or it was cut. */
bool dpi_cost_parse(const char *text, dpi_cost *cost);

/* The rho of a cost as zCDP, rounded up: a bounded range eta has eta^2/8, pure DP epsilon^2/2,
 * Gaussian noise 1/(2 sigma^2). What secret samples save is left out: without the secret a run
 * costs no less (dp/PRIVACY.md section 14). */
double dpi_cost_rho(const dpi_cost *cost);

#endif
