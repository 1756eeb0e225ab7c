/* certify.h - the epsilon that a mechanism has on a vocabulary. Internal. The public contract is in
 * dpinfer/perturb.h, the formulas are in dp/PRIVACY.md section 21. Threads: pure. */
#ifndef DPI_CERTIFY_H
#define DPI_CERTIFY_H

#include "dp/local/local.h"
#include "dp/local/threshold.h"

dpi_status dpi_local_certify(const dpi_local *local, dpi_certificate *certificate, dpi_error *err);

/* What the rows of P(y | x) are computed with; one for each thread. */
typedef struct dpi_local_rows {
    const dpi_local *local;
    dpi_threshold_law law; /* rantext */
    dpi_local_list list;
    int32_t *order;   /* [n] words by distance */
    double *distance; /* [n] of them, ascending */
    double *worth;    /* [n] e^(score) of each, at one threshold */
} dpi_local_rows;

/* n_cells: of rantext's law, 64..4096; 0: as many as a certificate needs. */
dpi_status dpi_local_rows_create(const dpi_local *local, int32_t n_cells, dpi_local_rows *rows,
                                 dpi_error *err);
void dpi_local_rows_free(dpi_local_rows *rows);

/* row[y] = ln P(y | x), -INFINITY where it is 0; x = -1: a word that is not in the vocabulary. Of a
 * word that is KEPT or a NUMBER, too.
 * *n_candidates: how many words it is drawn from, as a mean. */
void dpi_local_row(dpi_local_rows *rows, int32_t x, double *row, double *n_candidates);

#endif
