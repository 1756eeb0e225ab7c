/* vocab_build.h - small vocabularies for tests: pieces with score and type, written as a GGUF image
 * and read back; encoding and decoding in one call; golden files of token ids.
 *
 *     static pieces s;
 *     begin_pieces(&s, true);                 <unk> <s> </s> and the 256 byte tokens
 *     add(&s, MARK "a", -1, NORMAL);          id FIRST_EXTRA
 *     dpi_vocab *vocab = load_pieces(&s);
 *
 *     begin_bpe(&s);                          byte b is token b
 *     add(&s, "ab", 0, NORMAL);               id FIRST_BPE
 *     vocab = load_bpe(&s, "gpt-2", (const char *[]){"a b"}, 1);
 */
#ifndef DPI_VOCAB_BUILD_H
#define DPI_VOCAB_BUILD_H

#include "gguf/gguf.h"
#include "tests/support/gguf_build.h"
#include "tests/support/support.h"
#include "tokenizer/tokenizer.h"

/* tokenizer.ggml.token_type, from the specification */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6 };

#define MARK "\xe2\x96\x81" /* U+2581 */

typedef struct piece {
    const char *text;
    float score;
    int32_t type;
} piece;

enum { MAX_PIECES = 512, FIRST_BYTE = 3, FIRST_EXTRA = 259, FIRST_BPE = 256 };

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

/* The tokens and types of the pieces, and their scores if `scored`. */
static inline void build_tokens(gguf_build *b, const pieces *s, const char *model, bool scored) {
    const char *texts[MAX_PIECES];
    float scores[MAX_PIECES];
    int32_t types[MAX_PIECES];
    const size_t n = (size_t)s->n;
    for (size_t i = 0; i < n; i++) {
        texts[i] = s->p[i].text;
        scores[i] = s->p[i].score;
        types[i] = s->p[i].type;
    }
    build_string(b, "tokenizer.ggml.model", model);
    build_strings(b, "tokenizer.ggml.tokens", texts, n);
    build_array(b, "tokenizer.ggml.token_type", DPI_GGUF_I32, types, n, sizeof types[0]);
    if (scored)
        build_array(b, "tokenizer.ggml.scores", DPI_GGUF_F32, scores, n, sizeof scores[0]);
}

static inline void build_pieces(gguf_build *b, const pieces *s) {
    build_tokens(b, s, "llama", true);
}

/* ---- Byte-level BPE -------------------------------------------------------------------------- */

/* Bytes as GPT-2 writes them in tokens: itself if it is a printable character of Latin-1, else the
 * next of U+0100, U+0101, ... NUL-terminated; the caller's buffer holds 2 * n_bytes + 1. */
static inline char *bpe_text(const char *bytes, size_t n_bytes, char *out) {
    uint32_t chars[256], next = 256;
    for (uint32_t b = 0; b < 256; b++) {
        bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        chars[b] = printable ? b : next++;
    }
    char *p = out;
    for (size_t i = 0; i < n_bytes; i++) {
        uint32_t c = chars[(unsigned char)bytes[i]];
        if (c >= 0x80) {
            *p++ = (char)(0xc0 | c >> 6);
            *p++ = (char)(0x80 | (c & 0x3f));
        } else {
            *p++ = (char)c;
        }
    }
    *p = '\0';
    return out;
}

/* The tokens of the 256 bytes; what is added next has id FIRST_BPE. */
static inline void begin_bpe(pieces *s) {
    s->n = 0;
    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        add(s, bpe_text(&byte, 1, s->bytes[i]), 0, NORMAL);
    }
}

/* pre: NULL for none. */
static inline void build_bpe(gguf_build *b, const pieces *s, const char *pre,
                             const char *const *merges, size_t n_merges) {
    build_tokens(b, s, "gpt2", false);
    if (pre)
        build_string(b, "tokenizer.ggml.pre", pre);
    build_strings(b, "tokenizer.ggml.merges", merges, n_merges);
}

/* ---- Loading --------------------------------------------------------------------------------- */

/* Reads a vocabulary from an image; the image is gone afterwards. */
static inline dpi_status load_image(gguf_build *b, dpi_vocab **vocab, dpi_error *err) {
    build_end(b);
    dpi_gguf *gguf;
    assert_ok(dpi_gguf_open_buffer(b->data, b->n_bytes, &gguf, ERR));
    dpi_status status = dpi_vocab_create(gguf, vocab, err);
    dpi_gguf_close(gguf);
    build_free(b);
    return status;
}

/* That of a sound image; that of an image which must be refused with this status, a message with
 * `part` in it, and an offset or none. */
static inline dpi_vocab *accepted(gguf_build *b) {
    dpi_vocab *vocab = NULL;
    assert_ok(load_image(b, &vocab, ERR));
    return vocab;
}

static inline void refused(gguf_build *b, dpi_status wanted, const char *part, bool has_offset) {
    dpi_vocab *vocab = NULL;
    assert_status(load_image(b, &vocab, ERR), wanted, part);
    assert_null(vocab);
    assert_int_equal(ERR->offset != UINT64_MAX, has_offset);
}

/* The same of the image b that these statements build. */
#define LOAD(vocab, ...)                                                                           \
    do {                                                                                           \
        gguf_build b;                                                                              \
        build_begin(&b);                                                                           \
        __VA_ARGS__;                                                                               \
        vocab = accepted(&b);                                                                      \
    } while (0)
#define REFUSED(status, part, has_offset, ...)                                                     \
    do {                                                                                           \
        gguf_build b;                                                                              \
        build_begin(&b);                                                                           \
        __VA_ARGS__;                                                                               \
        refused(&b, DPI_STATUS_##status, part, has_offset);                                        \
    } while (0)

static inline dpi_vocab *load_pieces(const pieces *s) {
    dpi_vocab *vocab;
    LOAD(vocab, build_pieces(&b, s));
    return vocab;
}

static inline dpi_vocab *load_bpe(const pieces *s, const char *pre, const char *const *merges,
                                  size_t n_merges) {
    dpi_vocab *vocab;
    LOAD(vocab, build_bpe(&b, s, pre, merges, n_merges));
    return vocab;
}

/* The vocabulary of a shared file; skips the test if it is not there. */
static inline dpi_vocab *load_file(const char *relative) {
    dpi_gguf *gguf;
    dpi_vocab *vocab = NULL;
    require_data(relative);
    assert_ok(dpi_gguf_open(data_path(relative), true, &gguf, ERR));
    assert_ok(dpi_vocab_create(gguf, &vocab, ERR));
    dpi_gguf_close(gguf);
    return vocab;
}

/* ---- Encoding and decoding in one call ------------------------------------------------------ */

static inline int32_t *encode(const dpi_vocab *vocab, const char *text, size_t n_bytes, size_t *n) {
    size_t capacity = 4 * n_bytes + 5;
    int32_t *ids = malloc(capacity * sizeof *ids);
    assert_non_null(ids);
    assert_ok(dpi_vocab_encode(vocab, text, n_bytes, 0, ids, capacity, n, ERR));
    return ids;
}

/* Bytes of a text that shows that no step is quadratic: that would take hours, and end at the limit
 * of time of every test. */
enum { MANY = 1 << 22 };

/* The decoded text, NUL-terminated; the caller frees it. */
static inline char *decode(const dpi_vocab *vocab, const int32_t *ids, size_t n, size_t *n_bytes) {
    dpi_decoder *d;
    size_t capacity = 256, n_text;
    const char *text;
    char *out = malloc(capacity);
    *n_bytes = 0;
    assert_ok(dpi_vocab_decoder(vocab, &d, ERR));
    for (size_t i = 0; i <= n; i++) {
        if (i < n)
            assert_ok(dpi_decoder_push(d, ids[i], &text, &n_text, ERR));
        else
            dpi_decoder_finish(d, &text, &n_text);
        while (*n_bytes + n_text + 1 > capacity)
            out = realloc(out, capacity *= 2);
        assert_non_null(out);
        memcpy(out + *n_bytes, text, n_text);
        *n_bytes += n_text;
    }
    dpi_decoder_free(d);
    out[*n_bytes] = '\0';
    return out;
}

static inline void assert_same_ids(const int32_t *ids, size_t n, const int32_t *wanted,
                                   size_t n_wanted) {
    for (size_t i = 0; i < n && i < n_wanted; i++)
        if (ids[i] != wanted[i])
            fail_msg("token %zu is %d, must be %d", i, (int)ids[i], (int)wanted[i]);
    assert_int_equal(n, n_wanted);
}

static inline void check_ids(const dpi_vocab *vocab, const char *text, size_t n_bytes,
                             const int32_t *wanted, size_t n_wanted) {
    size_t n;
    int32_t *ids = encode(vocab, text, n_bytes, &n);
    if (n != n_wanted || memcmp(ids, wanted, n * sizeof *ids) != 0)
        print_error("\"%.*s\":\n", (int)n_bytes, text);
    assert_same_ids(ids, n, wanted, n_wanted);
    free(ids);
}

#define assert_ids(vocab, text, ...)                                                               \
    do {                                                                                           \
        const int32_t ids_[] = {__VA_ARGS__};                                                      \
        check_ids(vocab, text, strlen(text), ids_, sizeof ids_ / sizeof ids_[0]);                  \
    } while (0)

/* With BOS, if the vocabulary has it. */
#define assert_ids_bos(vocab, text, ...)                                                           \
    do {                                                                                           \
        const int32_t wanted_[] = {__VA_ARGS__};                                                   \
        int32_t ids_[64];                                                                          \
        size_t n_;                                                                                 \
        assert_ok(                                                                                 \
            dpi_vocab_encode(vocab, text, strlen(text), DPI_TOKENIZE_BOS, ids_, 64, &n_, ERR));    \
        assert_same_ids(ids_, n_, wanted_, sizeof wanted_ / sizeof *wanted_);                      \
    } while (0)

static inline void check_text(const dpi_vocab *vocab, const int32_t *ids, size_t n,
                              const char *wanted) {
    size_t n_bytes;
    char *text = decode(vocab, ids, n, &n_bytes);
    assert_string_equal(text, wanted);
    assert_int_equal(n_bytes, strlen(wanted));
    free(text);
}

#define assert_text(vocab, wanted, ...)                                                            \
    do {                                                                                           \
        const int32_t ids_[] = {__VA_ARGS__};                                                      \
        check_text(vocab, ids_, sizeof ids_ / sizeof ids_[0], wanted);                             \
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

/* A list of texts. */
static inline void check_round_trips(const dpi_vocab *vocab, const char *const *texts, size_t n) {
    for (size_t i = 0; i < n; i++)
        check_round_trip(vocab, texts[i], strlen(texts[i]));
}

/* ---- Golden files ---------------------------------------------------------------------------- */

/* The ids of one line; returns the start of the next. */
static inline char *parse_line(char *line, int32_t *ids, size_t capacity, size_t *n) {
    char *end = line + strcspn(line, "\n"), *after;
    for (*n = 0;; line = after) {
        long id = strtol(line, &after, 10); /* skips a line end, too */
        if (after == line || after > end)
            return *end ? end + 1 : end;
        assert_true(*n < capacity);
        ids[(*n)++] = (int32_t)id;
    }
}

/* Every string of `strings`, each followed by `separator`, has the ids of its line in `tokens`, and
 * comes back from them if `lossless`. n_separator: bytes of the separator, which may be NUL. */
static inline void check_golden(const dpi_vocab *vocab, const char *strings, const char *separator,
                                size_t n_separator, const char *tokens, int n_wanted,
                                bool lossless) {
    require_data(strings);
    size_t n_text, n_lines_bytes, n;
    char *text = read_file(data_path(strings), &n_text), *begin = text;
    char *lines = read_file(data_path(tokens), &n_lines_bytes), *line = lines;
    int32_t wanted[4096];
    int n_strings = 0;
    for (char *end = text; end + n_separator <= text + n_text; end++) {
        if (memcmp(end, separator, n_separator) != 0)
            continue;
        line = parse_line(line, wanted, 4096, &n);
        check_ids(vocab, begin, (size_t)(end - begin), wanted, n);
        if (lossless)
            check_round_trip(vocab, begin, (size_t)(end - begin));
        n_strings++;
        begin = end + n_separator;
        end = begin - 1;
    }
    assert_int_equal(n_strings, n_wanted); /* every separator in the file */
    assert_int_equal(*line, '\0');
    free(text);
    free(lines);
}

#define check_golden_strings(file, strings, tokens)                                                \
    do {                                                                                           \
        dpi_vocab *vocab_ = load_file(file);                                                       \
        check_golden(vocab_, strings, "\n__ggml_vocab_test__\n", 21, tokens, 46, true);            \
        dpi_vocab_free(vocab_);                                                                    \
    } while (0)
#define check_random_strings(file, tokens)                                                         \
    do {                                                                                           \
        dpi_vocab *vocab_ = load_file(file);                                                       \
        check_golden(vocab_, "tokenizer/random.strings", "", 1, tokens, 600, true);                \
        dpi_vocab_free(vocab_);                                                                    \
    } while (0)

#endif
