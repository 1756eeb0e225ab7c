/* mask.h - which tokens of a vocabulary a place of a grammar allows. Internal; dpinfer/grammar.h
 * has the public part, pipeline/model_mask.c makes a mask of a model.
 *
 * The bytes of all tokens are one tree, of which a place is compared with as much as it allows.
 * What a place allows is kept. */
#ifndef DPI_MASK_H
#define DPI_MASK_H

#include "grammar/grammar.h"

/* A vocabulary. */
typedef struct dpi_mask_token {
    const uint8_t *bytes; /* [n_bytes] what it adds to a text; NULL: it is never allowed, unless it
                             is an end */
    uint32_t n_bytes;
    bool is_end; /* of a text */
} dpi_mask_token;

/* `drops_space`: the first character of a text is lost if it is a space. The grammar stays the
 * caller's and must outlive the mask, tokens [n] are not kept. Errors: UNSUPPORTED, MEMORY. */
dpi_status dpi_mask_make(const dpi_grammar *grammar, const dpi_mask_token *tokens, int32_t n,
                         bool drops_space, dpi_mask **mask, dpi_error *err);

#endif
