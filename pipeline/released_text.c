/* released_text.c - see released_text.h. */
#include "pipeline/released_text.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"

dpi_status dpi_released_open(const dpi_model *model, int32_t text, int32_t n_most, dpi_released *r,
                             dpi_error *err) {
    if (text == DPI_TEXT_WHOLE) {
        r->tokens = dpi_calloc((size_t)n_most, sizeof *r->tokens);
        r->n_most = n_most;
        if (!r->tokens)
            return dpi_no_memory(err, "%d tokens", (int)n_most);
    }
    return text != DPI_TEXT_NONE ? dpi_decoder_create(model, &r->decoder, err) : DPI_STATUS_OK;
}

dpi_status dpi_released_open_ruled(const dpi_word_rules *rules, int32_t text, const int32_t *tokens,
                                   size_t n_answer, size_t n_begun, dpi_released *r,
                                   dpi_error *err) {
    r->text = text;
    DPI_TRY(dpi_worded_create(rules, tokens, n_answer, &r->ruled, err));
    for (size_t i = 0; i < n_begun; i++) /* shown with the first token that follows */
        DPI_TRY(dpi_worded_push(r->ruled, tokens[n_answer + i], err));
    return DPI_STATUS_OK;
}

static dpi_status push_ruled(dpi_released *r, int32_t token, const char **text, size_t *n_bytes,
                             dpi_error *err) {
    DPI_TRY(dpi_worded_push(r->ruled, token, err));
    if (r->text == DPI_TEXT_PIECES)
        dpi_worded_show(r->ruled, text, n_bytes);
    return DPI_STATUS_OK;
}

dpi_status dpi_released_push(dpi_released *r, int32_t token, const char **text, size_t *n_bytes,
                             dpi_error *err) {
    if (r->ruled)
        return push_ruled(r, token, text, n_bytes, err);
    if (!r->tokens)
        return r->decoder ? dpi_decoder_push(r->decoder, token, text, n_bytes, err)
                          : DPI_STATUS_OK;
    r->tokens[r->n++] = token;
    return DPI_STATUS_OK;
}

int32_t dpi_released_end_of(const dpi_released *r, const dpi_model *model, int32_t token) {
    return dpi_token_is_eog(model, token) ? DPI_END_EOG
           : r->ruled                     ? dpi_worded_end_of(r->ruled)
                                          : DPI_END_NONE;
}

/* Tokens as one text: here and not with each token, so that a failure can be tried again. */
static dpi_status put_tokens(dpi_released *r, dpi_error *err) {
    dpi_status status = DPI_STATUS_OK;
    const char *piece;
    size_t n_bytes;
    for (int32_t i = 0; i < r->n && status == DPI_STATUS_OK; i++) {
        status = dpi_decoder_push(r->decoder, r->tokens[i], &piece, &n_bytes, err);
        if (status == DPI_STATUS_OK)
            dpi_text_put(&r->whole, piece, n_bytes);
    }
    dpi_decoder_finish(r->decoder, &piece, &n_bytes);
    dpi_text_put(&r->whole, piece, n_bytes);
    if (status == DPI_STATUS_OK && r->whole.failed)
        status = dpi_no_memory(err, "the text of %d tokens", (int)r->n);
    return status;
}

static void free_whole(dpi_released *r) {
    free(r->whole.data);
    r->whole = (dpi_text){0};
}

dpi_status dpi_released_end(dpi_released *r, const char **text, size_t *n_bytes, dpi_error *err) {
    if (r->ruled && r->text != DPI_TEXT_NONE)
        return dpi_worded_end(r->ruled, text, n_bytes, err);
    if (r->tokens) {
        const dpi_status status = put_tokens(r, err);
        if (status != DPI_STATUS_OK) {
            free_whole(r);
            return status;
        }
        *text = r->whole.data ? r->whole.data : "";
        *n_bytes = r->whole.n_bytes;
    } else if (r->decoder) {
        dpi_decoder_finish(r->decoder, text, n_bytes);
    }
    return DPI_STATUS_OK;
}

void dpi_released_close(dpi_released *r) {
    dpi_worded_free(r->ruled);
    dpi_decoder_free(r->decoder);
    free(r->tokens);
    free_whole(r);
}
