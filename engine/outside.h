/* outside.h - logits that the caller computes (dpi_model_options.logits). Internal.
 *
 * A session keeps the tokens of each sequence where else it keeps keys and values: the one layer of
 * such a model has values of one number, which is the token. So forks, shared beginnings and wiping
 * are those of any model. */
#ifndef DPI_OUTSIDE_H
#define DPI_OUTSIDE_H

#include "engine/session.h"

/* The shape of such a model. */
void dpi_outside_config(dpi_config *config, int32_t n_ctx);
/* dpi_forward for such a model. Errors: the caller's; nothing is appended then. */
dpi_status dpi_outside_forward(dpi_session *session, const dpi_token_batch *batch, dpi_error *err);
/* dpi_forward_head: all logits of the rows. */
dpi_status dpi_outside_head(dpi_session *session, const dpi_token_batch *batch, dpi_error *err);

#endif
