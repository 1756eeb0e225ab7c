/* attack_plot.h - what came of attacks as plots. */
#ifndef DPI_ATTACK_PLOT_H
#define DPI_ATTACK_PLOT_H

#include "audit/attack/attack.h"

/* One mechanism at one epsilon. */
typedef struct attack_row {
    int32_t mechanism;
    double epsilon;
    dpi_attack_result result;
} attack_row;

/* What `guess` is called in tables. */
const char *attack_guess_name(int guess);
/* Share of words that attackers do not guess right, and its interval. */
double attack_protection(const dpi_attack_result *result, int guess, double *low, double *high);

/* An SVG image on stdout: protection by epsilon, a panel for each attack and a line for each
 * mechanism. Rows of a mechanism follow each other, epsilon ascending. */
void attack_plot(const attack_row *rows, int n_rows);

#endif
