/* model_text.c - the public text functions: a model's vocabulary does the work. */
#include <string.h>

#include "base/status.h"
#include "engine/model.h"

dpi_status dpi_tokenize(const dpi_model *model, const char *text, size_t n_bytes, int32_t flags,
                        int32_t *tokens, size_t capacity, size_t *n_tokens, dpi_error *err) {
    return dpi_vocab_encode(model->vocab, text, n_bytes, flags, tokens, capacity, n_tokens, err);
}

dpi_status dpi_prompt_encode(const dpi_model *model, int32_t chat, const char *system,
                             size_t n_system, const char *user, size_t n_user, int32_t *tokens,
                             size_t capacity, size_t *n_tokens, dpi_error *err) {
    return dpi_vocab_encode_prompt(model->vocab, chat, system, n_system, user, n_user, tokens,
                                   capacity, n_tokens, err);
}

dpi_status dpi_turns_encode(const dpi_model *model, int32_t chat, const char *system,
                            size_t n_system, const dpi_turn *turns, size_t n_turns,
                            const char *user, size_t n_user, int32_t *tokens, size_t capacity,
                            size_t *n_tokens, dpi_error *err) {
    return dpi_vocab_encode_turns(model->vocab, chat, system, n_system, turns, n_turns, user,
                                  n_user, tokens, capacity, n_tokens, err);
}

int32_t dpi_token_is_eog(const dpi_model *model, int32_t token) {
    return dpi_vocab_is_eog(model->vocab, token);
}

int32_t dpi_token_find(const dpi_model *model, const char *text, size_t n_bytes) {
    uint8_t bytes[DPI_TOKEN_MAX_BYTES];
    int32_t token = 0;
    const int32_t n = dpi_vocab_size(model->vocab);
    while (token < n && (dpi_vocab_token_bytes(model->vocab, token, bytes) != n_bytes ||
                         memcmp(bytes, text, n_bytes) != 0))
        token++;
    return token < n ? token : -1;
}

int32_t dpi_token_bos(const dpi_model *model) { return dpi_vocab_bos(model->vocab); }

dpi_status dpi_decoder_create(const dpi_model *model, dpi_decoder **decoder, dpi_error *err) {
    return dpi_vocab_decoder(model->vocab, decoder, err);
}

dpi_status dpi_tokens_show(const dpi_model *model, const int32_t *tokens, size_t n_tokens,
                           char **text, dpi_error *err) {
    return dpi_vocab_show(model->vocab, tokens, n_tokens, text, err);
}
