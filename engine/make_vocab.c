#include "engine/make_vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "tokenizer/tokenizer.h"

enum {
    FIRST_BYTE = 3,
    FIRST_WORD = FIRST_BYTE + 256,
    MAX_TOKEN = 16, /* bytes of any token made here */
    /* tokenizer.ggml.token_type */
    TYPE_NORMAL = 1,
    TYPE_UNKNOWN = 2,
    TYPE_CONTROL = 3,
    TYPE_BYTE = 6,
};

/* Word `index` >= 1 in bijective base 26: a, b, ... z, aa, ab ... */
static void write_word(int32_t index, char *out) {
    char reversed[MAX_TOKEN];
    int n = 0;
    for (; index > 0; index = (index - 1) / 26)
        reversed[n++] = (char)('a' + (index - 1) % 26);
    for (int i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    out[n] = '\0';
}

static int32_t token_type(int32_t id) {
    return id == 0 ? TYPE_UNKNOWN
           : id < FIRST_BYTE ? TYPE_CONTROL
           : id < FIRST_WORD ? TYPE_BYTE : TYPE_NORMAL;
}

static void write_token(int32_t id, char out[MAX_TOKEN]) {
    static const char *const special[FIRST_BYTE] = {"<unk>", "<s>", "</s>"};
    static const char mark[] = "\xe2\x96\x81"; /* U+2581 stands for a space */
    int32_t k = id - FIRST_WORD;
    if (id < FIRST_BYTE) {
        strcpy(out, special[id]);
    } else if (id < FIRST_WORD) {
        snprintf(out, MAX_TOKEN, "<0x%02X>", (unsigned)(id - FIRST_BYTE) & 255);
    } else if (k % 2) { /* a, _a, b, _b ... after the mark alone */
        write_word((k + 1) / 2, out);
    } else {
        strcpy(out, mark);
        write_word(k / 2, out + strlen(mark));
    }
}

dpi_status dpi_synthetic_vocab_put(dpi_gguf_builder *w, int32_t n, dpi_error *err) {
    unsigned char *texts = dpi_calloc((size_t)n, sizeof(uint64_t) + MAX_TOKEN), *end = texts;
    float *scores = dpi_calloc((size_t)n, sizeof *scores);
    int32_t *types = dpi_calloc((size_t)n, sizeof *types);
    if (!texts || !scores || !types) {
        free(texts), free(scores), free(types);
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a vocabulary of %d tokens", (int)n);
    }
    for (int32_t id = 0; id < n; id++) {
        char text[MAX_TOKEN];
        write_token(id, text);
        uint64_t n_bytes = strlen(text);
        memcpy(end, &n_bytes, sizeof n_bytes);
        memcpy(end + sizeof n_bytes, text, n_bytes);
        end += sizeof n_bytes + n_bytes;
        types[id] = token_type(id);
        scores[id] = id < FIRST_WORD ? 0 : (float)(FIRST_WORD - id);
    }
    dpi_gguf_put_bool(w, "dpinfer.synthetic_vocabulary", true);
    dpi_gguf_put_string(w, "tokenizer.ggml.model", "llama");
    dpi_gguf_put_array(w, "tokenizer.ggml.tokens", DPI_GGUF_STRING, (uint64_t)n, texts,
                       (uint64_t)(end - texts));
    dpi_gguf_put_array(w, "tokenizer.ggml.scores", DPI_GGUF_F32, (uint64_t)n, scores,
                       (uint64_t)n * sizeof *scores);
    dpi_gguf_put_array(w, "tokenizer.ggml.token_type", DPI_GGUF_I32, (uint64_t)n, types,
                       (uint64_t)n * sizeof *types);
    dpi_gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    dpi_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 1);
    dpi_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 2);
    dpi_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", true);
    free(texts), free(scores), free(types);
    return DPI_STATUS_OK;
}

dpi_status dpi_vocab_source_open(const char *path, dpi_gguf **gguf, int32_t *n_vocab,
                                 dpi_error *err) {
    dpi_gguf *g;
    dpi_vocab *vocab;
    DPI_TRY(dpi_gguf_open(path, true, &g, err));
    dpi_status status = dpi_vocab_create(g, &vocab, err);
    if (status != DPI_STATUS_OK) {
        dpi_gguf_close(g);
        return status;
    }
    *n_vocab = dpi_vocab_size(vocab);
    *gguf = g;
    dpi_vocab_free(vocab);
    return DPI_STATUS_OK;
}

void dpi_vocab_source_put(dpi_gguf_builder *w, const dpi_gguf *gguf) {
    for (int64_t i = 0; i < dpi_gguf_kv_count(gguf); i++)
        if (strncmp(dpi_gguf_kv_at(gguf, i)->key, "tokenizer.", 10) == 0)
            dpi_gguf_put_kv(w, dpi_gguf_kv_at(gguf, i));
}
