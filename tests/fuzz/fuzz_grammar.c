/* fuzz_grammar.c - libFuzzer target: any bytes as a grammar, and as a text for it. What is parsed
 * can be followed: from each place some token goes on, and what ends is accepted. */
#include "grammar/mask.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_BYTES = 4096, N_TOKENS = 258, MAX_STEPS = 64 };

static dpi_mask *make_mask(const dpi_grammar *g) {
    static uint8_t bytes[256];
    static const uint8_t word[] = "ab";
    dpi_mask_token tokens[N_TOKENS] = {[256] = {.is_end = true}, [257] = {word, 2, false}};
    dpi_mask *mask = NULL;
    dpi_error err;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (uint8_t)i;
        tokens[i] = (dpi_mask_token){&bytes[i], 1, false};
    }
    require_ok(dpi_mask_make(g, tokens, N_TOKENS, false, &mask, &err));
    return mask;
}

/* A text whose choices are the bytes of the input. */
static void write_text(const dpi_grammar *g, const uint8_t *data, size_t n_bytes) {
    dpi_mask *mask = make_mask(g);
    dpi_mask_text *t = NULL;
    dpi_error err;
    char text[2 * MAX_STEPS];
    size_t n_text = 0;
    bool ended = false;
    require_ok(dpi_mask_text_create(mask, &t, &err));
    for (size_t i = 0; i < MAX_STEPS && !ended; i++) {
        const uint64_t *bits;
        int32_t n, token = 0;
        const dpi_status status = dpi_mask_text_allowed(t, &bits, &n, &err);
        if (status == DPI_STATUS_LIMIT) /* more ways than are followed */
            break;
        require(status == DPI_STATUS_OK && n > 0);
        for (int32_t left = n_bytes > 0 ? data[i % n_bytes] % n : 0;; token++)
            if ((bits[token / 64] >> (token % 64) & 1) && left-- == 0)
                break;
        require_ok(dpi_mask_text_push(t, token, &err));
        ended = token == 256;
        const char byte = (char)token;
        const size_t n_word = ended ? 0 : token == 257 ? 2 : 1;
        memcpy(text + n_text, token == 257 ? "ab" : &byte, n_word);
        n_text += n_word;
    }
    int32_t yes = 0;
    require(!ended || (dpi_grammar_accepts(g, text, n_text, &yes, &err) == DPI_STATUS_OK && yes));
    dpi_mask_text_free(t);
    dpi_mask_free(mask);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    dpi_grammar *g = NULL;
    dpi_error err = {0};
    int32_t yes;
    if (n_bytes > MAX_BYTES)
        return 0;
    if (!is_ok(dpi_grammar_parse((const char *)data, n_bytes, &g, &err), &err)) {
        require(!g);
        return 0;
    }
    require_ok(dpi_grammar_accepts(g, (const char *)data, n_bytes, &yes, &err));
    write_text(g, data, n_bytes);
    dpi_grammar_free(g);
    return 0;
}
