/* model_tokens.h - the vocabulary of a model as plain texts. Internal. */
#ifndef DPI_MODEL_TOKENS_H
#define DPI_MODEL_TOKENS_H

#include "dpinfer/model.h"
#include "grammar/mask.h"

typedef struct dpi_model_tokens {
    dpi_mask_token *at; /* [n] */
    int32_t n;
    uint8_t *pool; /* their bytes */
} dpi_model_tokens;

/* Errors: MEMORY. */
dpi_status dpi_model_tokens_read(const dpi_model *model, dpi_model_tokens *tokens, dpi_error *err);
void dpi_model_tokens_free(dpi_model_tokens *tokens);

#endif
