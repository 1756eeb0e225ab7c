/* outside.c - see outside.h. */
#include "engine/outside.h"

#include "base/mem.h"
#include "base/status.h"

void dpi_outside_config(dpi_config *config, int32_t n_ctx) {
    config->n_layer = config->n_head = config->n_kv_head = 1;
    config->shapes[0] = (dpi_shape){.n_head = 1, .n_kv_head = 1, .head_dim_v = 1};
    config->n_ctx_train = config->n_ctx_max = n_ctx;
}

/* Where the token at a position is kept. */
static int32_t *place_of(const dpi_session *s, int32_t seq, int32_t pos) {
    int32_t *block = dpi_kv_v(&s->kv, seq, pos / DPI_KV_BLOCK, 0, 0);
    return block + pos % DPI_KV_BLOCK;
}

/* The logits of row r, after all tokens of its sequence up to it. */
static dpi_status compute(dpi_session *s, int32_t r, int32_t *tokens, dpi_error *err) {
    const int32_t n = s->row_pos[r] + 1;
    for (int32_t pos = 0; pos < n; pos++)
        tokens[pos] = *place_of(s, s->row_seq[r], pos);
    return s->model->logits(s->model->logits_user, tokens, n, s->dest[r], err);
}

dpi_status dpi_outside_head(dpi_session *s, const dpi_token_batch *batch, dpi_error *err) {
    int32_t longest = 0;
    dpi_status status = DPI_STATUS_OK;
    for (int32_t r = 0; r < batch->n_rows; r++)
        longest = s->row_pos[r] > longest ? s->row_pos[r] : longest;
    const size_t n_bytes = ((size_t)longest + 1) * sizeof(int32_t);
    int32_t *tokens = dpi_calloc(1, n_bytes);
    if (!tokens)
        return dpi_no_memory(err, "the tokens of a sequence");
    for (int32_t i = 0; i < batch->n_head && status == DPI_STATUS_OK; i++)
        status = compute(s, batch->head_first + i, tokens, err);
    dpi_wipe_free(tokens, n_bytes);
    return status;
}

dpi_status dpi_outside_forward(dpi_session *s, const dpi_token_batch *batch, dpi_error *err) {
    for (int32_t r = 0; r < batch->n_rows; r++)
        *place_of(s, s->row_seq[r], s->row_pos[r]) = s->row_token[r];
    return batch->n_head > 0 ? dpi_outside_head(s, batch, err) : DPI_STATUS_OK;
}
