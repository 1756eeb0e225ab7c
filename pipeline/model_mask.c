/* model_mask.c - the vocabulary of a model as plain texts, and its mask (dpinfer/grammar.h). */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "engine/model.h"
#include "grammar/mask.h"
#include "pipeline/model_tokens.h"

/* tokens[n], their texts one after the other in `pool`; NULL: counts bytes alone. */
static size_t read_tokens(const dpi_vocab *vocab, int32_t n, dpi_mask_token *tokens,
                          uint8_t *pool) {
    uint8_t bytes[DPI_TOKEN_MAX_BYTES];
    size_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        const size_t n_bytes = dpi_vocab_token_bytes(vocab, i, bytes);
        if (pool) {
            memcpy(pool + at, bytes, n_bytes);
            tokens[i] = (dpi_mask_token){.bytes = n_bytes > 0 ? pool + at : NULL,
                                         .n_bytes = (uint32_t)n_bytes,
                                         .is_end = dpi_vocab_is_eog(vocab, i)};
        }
        at += n_bytes;
    }
    return at;
}

dpi_status dpi_model_tokens_read(const dpi_model *model, dpi_model_tokens *tokens, dpi_error *err) {
    const int32_t n = dpi_vocab_size(model->vocab);
    *tokens = (dpi_model_tokens){.n = n,
                                 .at = dpi_calloc((size_t)n, sizeof *tokens->at),
                                 .pool = dpi_calloc(read_tokens(model->vocab, n, NULL, NULL), 1)};
    if (!tokens->at || !tokens->pool) {
        dpi_model_tokens_free(tokens);
        return dpi_no_memory(err, "the texts of all tokens");
    }
    (void)read_tokens(model->vocab, n, tokens->at, tokens->pool);
    return DPI_STATUS_OK;
}

void dpi_model_tokens_free(dpi_model_tokens *tokens) {
    free(tokens->at);
    free(tokens->pool);
}

dpi_status dpi_mask_create(const dpi_grammar *grammar, const dpi_model *model, dpi_mask **mask,
                           dpi_error *err) {
    dpi_model_tokens tokens;
    if (!grammar || !model || !mask)
        return dpi_fail(err, DPI_STATUS_ARG, "the grammar, the model or the mask is NULL");
    DPI_TRY(dpi_model_tokens_read(model, &tokens, err));
    const dpi_status status = dpi_mask_make(grammar, tokens.at, tokens.n,
                                            dpi_vocab_drops_space(model->vocab), mask, err);
    dpi_model_tokens_free(&tokens);
    return status;
}
