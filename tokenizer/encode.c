/* encode.c - what every tokenizer model shares on the way from text to ids: BOS, user-defined
 * tokens (the longest at the leftmost place first), the caller's buffer. The model itself is behind
 * dpi_vocab_kind.encode. */
#include "tokenizer/vocab.h"

#include "base/mem.h"
#include "base/status.h"

#include <string.h>

/* Work space of the search for user-defined tokens in one text. */
typedef struct cutter {
    const dpi_vocab *vocab;
    const char *text;
    size_t n_bytes;
    int32_t *begins; /* [n_bytes] the longest token that begins there, -1 if none */
} cutter;

/* Notes the user-defined tokens of n bytes where no longer one begins, from the end of the text. */
static void find_occurrences(cutter *c, size_t n) {
    uint64_t power = 1; /* of the byte that leaves the window */
    for (size_t i = 1; i < n; i++)
        power *= DPI_HASH_BASE;
    size_t start = c->n_bytes - n;
    uint64_t hash = dpi_text_hash(c->text + start, n);
    for (;;) {
        if (c->begins[start] < 0) {
            int32_t id = dpi_vocab_find_hash(c->vocab, c->text + start, n, hash);
            if (id >= 0 && c->vocab->tokens[id].type == DPI_TOKEN_USER_DEFINED)
                c->begins[start] = id;
        }
        if (start-- == 0)
            break;
        hash -= (unsigned char)c->text[start + n] * power;
        hash = hash * DPI_HASH_BASE + (unsigned char)c->text[start];
    }
}

/* Linear in the text for each length that occurs among the tokens, however many there are. */
static void find_all(cutter *c) {
    const dpi_vocab *v = c->vocab;
    uint32_t last = 0;
    for (int32_t i = 0; i < v->n_user_defined; i++) {
        uint32_t n = v->tokens[v->user_defined[i]].n_bytes;
        if (n != last && n <= c->n_bytes)
            find_occurrences(c, n);
        last = n;
    }
}

/* From left to right: a token where one begins, else the text up to the next. */
static dpi_status encode_pieces(const cutter *c, dpi_tokens *out, dpi_error *err) {
    const dpi_vocab *v = c->vocab;
    for (size_t i = 0; i < c->n_bytes;) {
        size_t end = i;
        if (c->begins[i] >= 0) {
            dpi_tokens_push(out, c->begins[i]);
            end = i + v->tokens[c->begins[i]].n_bytes;
        } else {
            while (end < c->n_bytes && c->begins[end] < 0)
                end++;
            DPI_TRY(v->kind->encode(v, c->text + i, end - i, true, out, err));
        }
        i = end;
    }
    return DPI_STATUS_OK;
}

static dpi_status encode_cut(const dpi_vocab *vocab, const char *text, size_t n_bytes,
                             dpi_tokens *out, dpi_error *err) {
    if (n_bytes > INT32_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "a text is too long to encode: at most %d bytes",
                        INT32_MAX);
    char *copy = dpi_calloc(n_bytes, 1);
    cutter c = {.vocab = vocab, .text = copy, .n_bytes = n_bytes};
    c.begins = dpi_calloc(n_bytes, sizeof *c.begins);
    dpi_status status;
    if (!copy || !c.begins) {
        status = dpi_no_memory(err, "the tokens of a text");
    } else {
        memcpy(copy, text, n_bytes);
        if (vocab->kind->space_mark)
            c.n_bytes = dpi_unmark_spaces(copy, n_bytes);
        memset(c.begins, 0xff, n_bytes * sizeof *c.begins); /* all -1 */
        find_all(&c);
        status = encode_pieces(&c, out, err);
    }
    dpi_wipe_free(copy, n_bytes);
    dpi_wipe_free(c.begins, n_bytes * sizeof *c.begins);
    return status;
}

dpi_status dpi_vocab_encode_plain(const dpi_vocab *vocab, const char *text, size_t n_bytes,
                                  dpi_tokens *out, dpi_error *err) {
    if (n_bytes == 0)
        return DPI_STATUS_OK;
    if (vocab->n_user_defined > 0)
        return encode_cut(vocab, text, n_bytes, out, err);
    return vocab->kind->encode(vocab, text, n_bytes, true, out, err);
}

dpi_status dpi_tokens_finish(const dpi_tokens *out, size_t *n_tokens, dpi_error *err) {
    *n_tokens = out->n;
    if (out->n > out->capacity)
        return dpi_fail(err, DPI_STATUS_LIMIT, "the text has more tokens than the buffer holds");
    return DPI_STATUS_OK;
}

dpi_status dpi_vocab_encode(const dpi_vocab *vocab, const char *text, size_t n_bytes, int32_t flags,
                            int32_t *tokens, size_t capacity, size_t *n_tokens, dpi_error *err) {
    if ((!text && n_bytes > 0) || (!tokens && capacity > 0) || !n_tokens)
        return dpi_fail(err, DPI_STATUS_ARG, "text, tokens and n_tokens must not be NULL");
    if (flags & ~DPI_TOKENIZE_BOS)
        return dpi_fail(err, DPI_STATUS_ARG, "flags is %d, must be 0 or %d", flags,
                        (int)DPI_TOKENIZE_BOS);
    dpi_tokens out = {tokens, capacity, 0};
    if ((flags & DPI_TOKENIZE_BOS) && vocab->add_bos)
        dpi_tokens_push(&out, vocab->bos);
    DPI_TRY(dpi_vocab_encode_plain(vocab, text, n_bytes, &out, err));
    return dpi_tokens_finish(&out, n_tokens, err);
}
