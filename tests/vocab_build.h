/* vocab_build.h - small SPM vocabularies for tests: pieces with score and type, written as a GGUF
 * image and read back; encoding and decoding in one call.
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

/* The vocabulary of a shared file; skips the test if it is not there. */
static inline dpi_vocab *load_file(const char *relative) {
    dpi_gguf *gguf;
    dpi_vocab *vocab = NULL;
    dpi_error err = {0};
    require_data(relative);
    assert_ok(dpi_gguf_open(data_path(relative), true, &gguf, &err), &err);
    assert_ok(dpi_vocab_create(gguf, &vocab, &err), &err);
    dpi_gguf_close(gguf);
    return vocab;
}

/* ---- Encoding and decoding in one call ------------------------------------------------------ */

static inline int32_t *encode(const dpi_vocab *vocab, const char *text, size_t n_bytes, size_t *n) {
    dpi_error err = {0};
    size_t capacity = 4 * n_bytes + 5;
    int32_t *ids = malloc(capacity * sizeof *ids);
    assert_non_null(ids);
    assert_ok(dpi_vocab_encode(vocab, text, n_bytes, 0, ids, capacity, n, &err), &err);
    return ids;
}

/* The decoded text, NUL-terminated; the caller frees it. */
static inline char *decode(const dpi_vocab *vocab, const int32_t *ids, size_t n, size_t *n_bytes) {
    dpi_error err = {0};
    dpi_decoder *d;
    size_t used = 0, capacity = 256;
    char *out = malloc(capacity);
    assert_ok(dpi_vocab_decoder(vocab, &d, &err), &err);
    for (size_t i = 0; i <= n; i++) {
        const char *text;
        size_t n_text;
        if (i < n)
            assert_ok(dpi_decoder_push(d, ids[i], &text, &n_text, &err), &err);
        else
            dpi_decoder_finish(d, &text, &n_text);
        while (used + n_text + 1 > capacity)
            out = realloc(out, capacity *= 2);
        assert_non_null(out);
        memcpy(out + used, text, n_text);
        used += n_text;
    }
    dpi_decoder_free(d);
    out[used] = '\0';
    *n_bytes = used;
    return out;
}

static inline void check_ids(const dpi_vocab *vocab, const char *text, size_t n_bytes,
                      const int32_t *wanted, size_t n_wanted) {
    size_t n;
    int32_t *ids = encode(vocab, text, n_bytes, &n);
    bool same = n == n_wanted && memcmp(ids, wanted, n * sizeof *ids) == 0;
    if (!same) {
        print_error("\"%.*s\":", (int)n_bytes, text);
        for (size_t i = 0; i < n; i++)
            print_error(" %d", (int)ids[i]);
        print_error(" instead of");
        for (size_t i = 0; i < n_wanted; i++)
            print_error(" %d", (int)wanted[i]);
        print_error("\n");
    }
    free(ids);
    assert_true(same);
}

#define assert_ids(vocab, text, ...)                                                   \
    do {                                                                               \
        const int32_t ids_[] = {__VA_ARGS__};                                          \
        check_ids(vocab, text, strlen(text), ids_, sizeof ids_ / sizeof ids_[0]);      \
    } while (0)

static inline void check_text(const dpi_vocab *vocab, const int32_t *ids, size_t n, const char *wanted) {
    size_t n_bytes;
    char *text = decode(vocab, ids, n, &n_bytes);
    assert_string_equal(text, wanted);
    assert_int_equal(n_bytes, strlen(wanted));
    free(text);
}

#define assert_text(vocab, wanted, ...)                                   \
    do {                                                                  \
        const int32_t ids_[] = {__VA_ARGS__};                             \
        check_text(vocab, ids_, sizeof ids_ / sizeof ids_[0], wanted);    \
    } while (0)

static inline void check_round_trip(const dpi_vocab *vocab, const char *text, size_t n_bytes) {
    size_t n, n_back;
    int32_t *ids = encode(vocab, text, n_bytes, &n);
    char *back = decode(vocab, ids, n, &n_back);
    assert_int_equal(n_back, n_bytes);
    assert_memory_equal(back, text, n_bytes);
    free(back);
    free(ids);
}

#endif
