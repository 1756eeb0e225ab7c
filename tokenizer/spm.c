/* spm.c - SentencePiece BPE: characters are merged, best score first, into tokens. In Gemma 4 the
 * file lists the merges, and the earliest of them is first. */
#include "tokenizer/vocab.h"

#include "base/mem.h"
#include "base/status.h"
#include "tokenizer/heap.h"

#include <string.h>

enum {
    MAX_TEXT_BYTES = 1 << 28, /* offsets and counts fit int32 after tripling */
    MARK_BYTES = sizeof DPI_SPACE_MARK - 1,
};

/* ---- Reading ------------------------------------------------------------------------------- */

dpi_status dpi_spm_load(dpi_vocab *v, const dpi_gguf *gguf, dpi_error *err) {
    int32_t n = 0;
    memset(v->byte_ids, 0xff, sizeof v->byte_ids); /* all -1 */
    for (int32_t i = 0; i < v->n_tokens; i++)
        if (v->tokens[i].type == DPI_TOKEN_BYTE) { /* each byte once: texts are distinct */
            v->byte_ids[v->tokens[i].byte] = i;
            n++;
        }
    v->byte_fallback = n == 256;
    if (!v->byte_fallback && v->unk < 0)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: %d of 256 byte tokens and no unknown token: some text has no ids",
                        dpi_gguf_name(gguf), (int)n);
    return DPI_STATUS_OK;
}

dpi_status dpi_spm_load_merges(dpi_vocab *v, const dpi_gguf *gguf, dpi_error *err) {
    DPI_TRY(dpi_spm_load(v, gguf, err));
    return dpi_bpe_load_merges(v, gguf, err);
}

/* ---- Encoding ------------------------------------------------------------------------------ */

/* A stretch of the text that will be one token. Neighbours touch. */
typedef struct symbol {
    int32_t prev, next; /* indices, -1 at the ends */
    uint32_t start;
    uint32_t n_bytes; /* 0: merged into its left neighbour */
    int32_t id;       /* -1: no token */
} symbol;

typedef struct merger {
    const dpi_vocab *vocab;
    char *text; /* [n_text], spaces replaced */
    uint32_t n_text;
    symbol *symbols; /* [n_symbols] */
    int32_t n_symbols;
    dpi_heap heap; /* [2 * n_symbols] */
} merger;

/* Bytes of the character that begins with this one, by its high bits alone: bytes that are not
 * UTF-8 become characters of their own and end up as byte tokens. */
static uint32_t char_bytes(char first) {
    static const uint8_t n[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    return n[(unsigned char)first >> 4];
}

/* Unsigned numbers that fall as scores rise: the bits of a float, by sign and magnitude. */
static uint32_t priority_of(float score) {
    uint32_t bits;
    score += 0.0f; /* -0 equals 0 */
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

/* Whether two neighbours may be merged, and how soon. */
static bool may_merge(const merger *m, const symbol *a, const symbol *b, uint32_t *priority) {
    const dpi_vocab *v = m->vocab;
    if (v->bpe) {
        const int32_t rank = dpi_bpe_rank(v->bpe, a->id, b->id);
        *priority = (uint32_t)rank;
        return rank >= 0;
    }
    const int32_t id = dpi_vocab_find_plain(v, m->text + a->start, a->n_bytes + b->n_bytes);
    *priority = id >= 0 ? priority_of(v->tokens[id].score) : 0;
    return id >= 0;
}

static void try_pair(merger *m, int32_t left, int32_t right) {
    if (left < 0 || right < 0)
        return;
    const symbol *a = &m->symbols[left], *b = &m->symbols[right];
    uint32_t priority;
    if (may_merge(m, a, b, &priority))
        dpi_heap_push(&m->heap, (dpi_pair){dpi_merge_key(priority, left), right,
                                            a->n_bytes + b->n_bytes});
}

static void merge_all(merger *m) {
    for (int32_t i = 1; i < m->n_symbols; i++)
        try_pair(m, i - 1, i);
    while (m->heap.n > 0) {
        dpi_pair best = dpi_heap_pop(&m->heap);
        int32_t left = dpi_merge_left(&best);
        symbol *a = &m->symbols[left], *b = &m->symbols[best.right];
        if (a->n_bytes == 0 || b->n_bytes == 0 || a->n_bytes + b->n_bytes != best.n_bytes)
            continue;
        a->n_bytes = best.n_bytes;
        a->id = dpi_vocab_find_plain(m->vocab, m->text + a->start, a->n_bytes);
        b->n_bytes = 0;
        a->next = b->next;
        if (b->next >= 0)
            m->symbols[b->next].prev = left;
        try_pair(m, a->prev, left);
        try_pair(m, left, a->next);
    }
}

static void emit_all(const merger *m, dpi_tokens *out) {
    const dpi_vocab *vocab = m->vocab;
    for (int32_t i = 0; i >= 0; i = m->symbols[i].next) {
        const char *text = m->text + m->symbols[i].start;
        uint32_t n_bytes = m->symbols[i].n_bytes;
        int32_t id = m->symbols[i].id;
        if (id >= 0)
            dpi_tokens_push(out, id);
        else if (!vocab->byte_fallback)
            dpi_tokens_push(out, vocab->unk);
        else
            for (uint32_t j = 0; j < n_bytes; j++)
                dpi_tokens_push(out, vocab->byte_ids[(unsigned char)text[j]]);
    }
}

static void put_space(char *text, uint32_t *n) {
    memcpy(text + *n, DPI_SPACE_MARK, MARK_BYTES);
    *n += MARK_BYTES;
}

/* Replaces spaces, after putting the prefix in front, and cuts the result into characters. */
static dpi_status prepare(merger *m, const char *text, size_t n_bytes, bool prefix,
                          dpi_error *err) {
    size_t n_text = n_bytes + (prefix ? MARK_BYTES : 0);
    for (size_t i = 0; i < n_bytes; i++)
        n_text += text[i] == ' ' ? MARK_BYTES - 1 : 0;
    m->text = dpi_calloc(n_text, 1);
    if (!m->text)
        return dpi_no_memory(err, "the tokens of a text");
    m->n_text = (uint32_t)n_text;
    uint32_t n = 0;
    if (prefix)
        put_space(m->text, &n);
    for (size_t i = 0; i < n_bytes; i++) {
        if (text[i] == ' ')
            put_space(m->text, &n);
        else
            m->text[n++] = text[i];
    }

    int32_t n_symbols = 0;
    for (uint32_t i = 0; i < n; i += char_bytes(m->text[i]))
        n_symbols++;
    m->symbols = dpi_calloc((size_t)n_symbols, sizeof *m->symbols);
    m->heap.items = dpi_calloc(2 * (size_t)n_symbols, sizeof *m->heap.items);
    if (!m->symbols || !m->heap.items)
        return dpi_no_memory(err, "the tokens of a text");
    for (uint32_t i = 0; i < n;) {
        uint32_t length = char_bytes(m->text[i]);
        if (length > n - i)
            length = n - i;
        int32_t k = m->n_symbols++;
        m->symbols[k] = (symbol){k - 1, k + 1 < n_symbols ? k + 1 : -1, i, length,
                                 dpi_vocab_find_plain(m->vocab, m->text + i, length)};
        i += length;
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_spm_encode(const dpi_vocab *vocab, const char *text, size_t n_bytes, bool prefix,
                          dpi_tokens *out, dpi_error *err) {
    if (n_bytes > MAX_TEXT_BYTES)
        return dpi_fail(err, DPI_STATUS_ARG, "a text is too long to encode: at most %d bytes",
                        (int)MAX_TEXT_BYTES);
    merger m = {.vocab = vocab};
    dpi_status status = prepare(&m, text, n_bytes, prefix && vocab->add_space_prefix, err);
    if (status == DPI_STATUS_OK) {
        merge_all(&m);
        emit_all(&m, out);
    }
    dpi_wipe_free(m.text, m.n_text);
    dpi_wipe_free(m.symbols, (size_t)m.n_symbols * sizeof *m.symbols);
    dpi_wipe_free(m.heap.items, 2 * (size_t)m.n_symbols * sizeof *m.heap.items);
    return status;
}
