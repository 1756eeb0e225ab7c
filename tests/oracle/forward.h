/* forward.h - the oracle of the forward pass: logits in double precision, straight from the
 * definition, of the models of tiny_model.h. */
#ifndef DPI_ORACLE_FORWARD_H
#define DPI_ORACLE_FORWARD_H

#include "dpinfer.h"

/* Logits [n, n_vocab] after each of n tokens, in double, from `spec` and the model's weights.
 * added [n_layer, n_embd]: what is added to the residual stream after each layer; NULL: nothing. */
struct tiny_spec;
void oracle_logits(const struct tiny_spec *spec, const dpi_model *model, const int32_t *tokens,
                   int32_t n, const float *added, double *logits);
/* The residual stream [n, n_embd] behind the first n_layer layers, for free. */
double *oracle_states(const struct tiny_spec *spec, const dpi_model *model, const int32_t *tokens,
                      int32_t n, const float *added, int32_t n_layer);

#endif
