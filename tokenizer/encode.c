/* encode.c - what every tokenizer model shares on the way from text to ids: BOS, user-defined
 * tokens, the caller's buffer. The model itself is behind dpi_vocab_kind.encode. */
#include "tokenizer/vocab.h"

#include "base/mem.h"
#include "base/status.h"

#include <string.h>

enum { FREE = 0, TAIL = -1 }; /* states of a byte; a positive one is 1 + the token that begins */

/* Work space of the search for user-defined tokens in one text. */
typedef struct cutter {
    const dpi_vocab *vocab;
    const char *text;
    size_t n_bytes;
    int32_t *state; /* [n_bytes] */
    int32_t *next;  /* [n_bytes] next occurrence of the same token to the right, -1 at the end */
    int32_t *first; /* [n_user_defined] leftmost occurrence by rank, -1 if none */
} cutter;

/* Tokens are placed longest first, so what overlaps this window covers one of its ends. */
static bool is_free(const cutter *c, size_t start, size_t n_bytes) {
    return c->state[start] == FREE && c->state[start + n_bytes - 1] == FREE;
}

/* Chains the occurrences of all user-defined tokens of n bytes, from the end of the text. */
static void find_occurrences(cutter *c, size_t n) {
    uint64_t power = 1; /* of the byte that leaves the window */
    for (size_t i = 1; i < n; i++)
        power *= DPI_HASH_BASE;
    size_t start = c->n_bytes - n;
    uint64_t hash = dpi_text_hash(c->text + start, n);
    for (;;) {
        if (is_free(c, start, n)) {
            int32_t id = dpi_vocab_find_hash(c->vocab, c->text + start, n, hash);
            int32_t rank = id >= 0 ? c->vocab->tokens[id].rank : -1;
            if (rank >= 0) {
                c->next[start] = c->first[rank];
                c->first[rank] = (int32_t)start;
            }
        }
        if (start-- == 0)
            break;
        hash -= (unsigned char)c->text[start + n] * power;
        hash = hash * DPI_HASH_BASE + (unsigned char)c->text[start];
    }
}

static void place(cutter *c, int32_t id, int32_t first) {
    size_t n = c->vocab->tokens[id].n_bytes;
    for (int32_t i = first; i >= 0; i = c->next[i]) {
        if (!is_free(c, (size_t)i, n))
            continue;
        c->state[i] = 1 + id;
        for (size_t j = 1; j < n; j++)
            c->state[(size_t)i + j] = TAIL;
    }
}

/* The longest tokens first, those of one length by id, each from left to right. Linear in the text
 * for each length that occurs among the tokens, however many there are. */
static void place_all(cutter *c) {
    const dpi_vocab *v = c->vocab;
    for (int32_t rank = 0; rank < v->n_user_defined;) {
        uint32_t n = v->tokens[v->user_defined[rank]].n_bytes;
        int32_t end = rank;
        while (end < v->n_user_defined && v->tokens[v->user_defined[end]].n_bytes == n)
            end++;
        if (n <= c->n_bytes) {
            find_occurrences(c, n);
            for (int32_t r = rank; r < end; r++)
                place(c, v->user_defined[r], c->first[r]);
        }
        rank = end;
    }
}

static dpi_status encode_pieces(const cutter *c, dpi_tokens *out, dpi_error *err) {
    const dpi_vocab *v = c->vocab;
    for (size_t i = 0; i < c->n_bytes;) {
        size_t end = i;
        if (c->state[i] != FREE) {
            int32_t id = c->state[i] - 1;
            dpi_tokens_push(out, id);
            end = i + v->tokens[id].n_bytes;
        } else {
            while (end < c->n_bytes && c->state[end] == FREE)
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
    size_t n_user_defined = (size_t)vocab->n_user_defined;
    cutter c = {.vocab = vocab, .text = text, .n_bytes = n_bytes};
    c.state = dpi_calloc(n_bytes, sizeof *c.state);
    c.next = dpi_calloc(n_bytes, sizeof *c.next);
    c.first = dpi_calloc(n_user_defined, sizeof *c.first);
    dpi_status status;
    if (!c.state || !c.next || !c.first) {
        status = dpi_fail(err, DPI_STATUS_MEMORY, "no memory to encode a text");
    } else {
        memset(c.first, 0xff, n_user_defined * sizeof *c.first); /* all -1 */
        place_all(&c);
        status = encode_pieces(&c, out, err);
    }
    dpi_wipe_free(c.state, n_bytes * sizeof *c.state);
    dpi_wipe_free(c.next, n_bytes * sizeof *c.next);
    dpi_wipe_free(c.first, n_user_defined * sizeof *c.first);
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
