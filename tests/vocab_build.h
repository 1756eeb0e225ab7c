/* vocab_build.h - small SPM vocabularies for tests: pieces with score and type, written as a GGUF
 * image and read back.
 *
 *     static pieces s;
 *     begin_pieces(&s, true);                 <unk> <s> </s> and the 256 byte tokens
 *     add(&s, MARK "a", -1, NORMAL);          id FIRST_EXTRA
 *     dpi_vocab *vocab = load_pieces(&s);
 */
#ifndef DPI_VOCAB_BUILD_H
#define DPI_VOCAB_BUILD_H

#include "gguf.h"
#include "gguf_build.h"
#include "support.h"
#include "tokenizer.h"

/* tokenizer.ggml.token_type, from the specification */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6 };

#define MARK "\xe2\x96\x81" /* U+2581 */

typedef struct piece {
    const char *text;
    float score;
    int32_t type;
} piece;

enum { MAX_PIECES = 512, FIRST_BYTE = 3, FIRST_EXTRA = 259 };

typedef struct pieces {
    piece p[MAX_PIECES];
    int32_t n;
    char bytes[256][8];
} pieces;

static inline void add(pieces *s, const char *text, float score, int32_t type) {
    assert_true(s->n < MAX_PIECES);
    s->p[s->n++] = (piece){text, score, type};
}

/* <unk> <s> </s> and, if wanted, the byte tokens; what is added next has id FIRST_EXTRA or 3. */
static inline void begin_pieces(pieces *s, bool bytes) {
    s->n = 0;
    add(s, "<unk>", 0, UNKNOWN);
    add(s, "<s>", 0, CONTROL);
    add(s, "</s>", 0, CONTROL);
    for (int i = 0; bytes && i < 256; i++) {
        snprintf(s->bytes[i], sizeof s->bytes[i], "<0x%02X>", i);
        add(s, s->bytes[i], 0, BYTE);
    }
}

static inline void build_pieces(gguf_build *b, const pieces *s) {
    const char *texts[MAX_PIECES];
    float scores[MAX_PIECES];
    int32_t types[MAX_PIECES];
    for (int32_t i = 0; i < s->n; i++) {
        texts[i] = s->p[i].text;
        scores[i] = s->p[i].score;
        types[i] = s->p[i].type;
    }
    size_t n = (size_t)s->n;
    build_string(b, "tokenizer.ggml.model", "llama");
    build_strings(b, "tokenizer.ggml.tokens", texts, n);
    build_array(b, "tokenizer.ggml.scores", DPI_GGUF_F32, scores, n, sizeof scores[0]);
    build_array(b, "tokenizer.ggml.token_type", DPI_GGUF_I32, types, n, sizeof types[0]);
}

/* Reads a vocabulary from an image; the image is gone afterwards. */
static inline dpi_status load_image(gguf_build *b, dpi_vocab **vocab, dpi_error *err) {
    build_end(b);
    dpi_gguf *gguf;
    assert_ok(dpi_gguf_open_buffer(b->data, b->n_bytes, &gguf, err), err);
    dpi_status status = dpi_vocab_create(gguf, vocab, err);
    dpi_gguf_close(gguf);
    build_free(b);
    return status;
}

static inline dpi_vocab *load_pieces(const pieces *s) {
    gguf_build b;
    dpi_vocab *vocab = NULL;
    dpi_error err = {0};
    build_begin(&b);
    build_pieces(&b, s);
    assert_ok(load_image(&b, &vocab, &err), &err);
    return vocab;
}

#endif
