/* run_claim.h - the settled numbers of a run as a claim, and back. Internal. */
#ifndef DPI_RELEASE_RUN_CLAIM_H
#define DPI_RELEASE_RUN_CLAIM_H

#include <jansson.h>

#include "dpinfer/claim.h"

/* The settled numbers of a run that a claim has: dpi_claim_of_run back. */
void dpi_run_of_claim(const dpi_claim *claim, dpi_run *run);
/* The part of a claim of steering vectors as a run has it. */
void dpi_run_steered(const dpi_claim_part *steering, dpi_run *run);
/* The claim of a run as JSON. NULL if out of memory. */
json_t *dpi_report_parameters(const dpi_run *run);

/* What a claim says of texts: how many of them were written, and of how many tokens at most; 0: it
 * says nothing. */
int64_t dpi_claim_n_texts(const dpi_claim *claim);
int64_t dpi_claim_n_tokens(const dpi_claim *claim);

#endif
