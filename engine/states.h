/* states.h - what the rows of a prompt have after layers, added up: what steering vectors are made
 * of. Internal. */
#ifndef DPI_STATES_H
#define DPI_STATES_H

#include "dpinfer/session.h"

/* The residual stream after some layers, control vectors included. */
typedef struct dpi_states {
    const int32_t *layers; /* [n_layers] from 0, ascending */
    int32_t n_layers;
    double *sums;  /* [n_layers, n_embd] += each row's state, divided by its root mean square */
    double *sizes; /* [n_layers] += each row's root mean square */
} dpi_states;

/* Appends tokens as dpi_session_prefill, without logits. Layers behind the last one of `states` are
 * not computed: what the sequence then holds is of use to this function alone. Rows are added in
 * the order of their positions, so that sums have the same bits with any number of threads. Errors:
 * those of dpi_session_prefill; UNSUPPORTED (a model whose logits others compute). */
DPI_MUST_CHECK dpi_status dpi_session_read_states(dpi_session *session, int32_t seq,
                                                  const int32_t *tokens, size_t n_tokens,
                                                  const dpi_states *states, dpi_error *err);

#endif
