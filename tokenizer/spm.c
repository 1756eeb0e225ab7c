/* spm.c - SentencePiece BPE: characters are merged, best score first, into tokens. */
#include "vocab.h"

#include "mem.h"
#include "status.h"

#include <string.h>

enum {
    MAX_TEXT_BYTES = 1 << 28, /* offsets and counts fit int32 after tripling */
    MARK_BYTES = sizeof DPI_SPACE_MARK - 1,
};

/* A stretch of the text that will be one token. Neighbours touch. */
typedef struct symbol {
    int32_t prev, next; /* indices, -1 at the ends */
    uint32_t start;
    uint32_t n_bytes; /* 0: merged into its left neighbour */
} symbol;

/* Two neighbours that together are a token. Stale once either of them has grown or gone. */
typedef struct bigram {
    float score;
    int32_t left, right;
    uint32_t n_bytes;
} bigram;

typedef struct merger {
    const dpi_vocab *vocab;
    char *text; /* [n_text], spaces replaced */
    uint32_t n_text;
    symbol *symbols; /* [n_symbols] */
    int32_t n_symbols;
    bigram *heap; /* [heap_capacity], the best first */
    size_t n_heap, heap_capacity;
} merger;

/* Bytes of the character that begins with this one, by its high bits alone: bytes that are not
 * UTF-8 become characters of their own and end up as byte tokens. */
static uint32_t char_bytes(char first) {
    static const uint8_t n[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    return n[(unsigned char)first >> 4];
}

static bool better(const bigram *a, const bigram *b) {
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static void heap_push(merger *m, bigram item) {
    size_t i = m->n_heap++;
    while (i > 0 && better(&item, &m->heap[(i - 1) / 2])) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = item;
}

static bigram heap_pop(merger *m) {
    bigram top = m->heap[0], last = m->heap[--m->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= m->n_heap)
            break;
        if (child + 1 < m->n_heap && better(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!better(&m->heap[child], &last))
            break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return top;
}

/* The token that plain text may become: never one that stands for something else than its text. */
static int32_t find_piece(const dpi_vocab *vocab, const char *text, uint32_t n_bytes) {
    int32_t id = dpi_vocab_find(vocab, text, n_bytes);
    if (id < 0)
        return -1;
    uint8_t type = vocab->tokens[id].type;
    bool special = type == DPI_TOKEN_CONTROL || type == DPI_TOKEN_UNKNOWN || type == DPI_TOKEN_BYTE;
    return special ? -1 : id;
}

static void try_pair(merger *m, int32_t left, int32_t right) {
    if (left < 0 || right < 0)
        return;
    const symbol *a = &m->symbols[left], *b = &m->symbols[right];
    uint32_t n_bytes = a->n_bytes + b->n_bytes;
    int32_t id = find_piece(m->vocab, m->text + a->start, n_bytes);
    if (id >= 0)
        heap_push(m, (bigram){m->vocab->tokens[id].score, left, right, n_bytes});
}

static void merge_all(merger *m) {
    for (int32_t i = 1; i < m->n_symbols; i++)
        try_pair(m, i - 1, i);
    while (m->n_heap > 0) {
        bigram best = heap_pop(m);
        symbol *a = &m->symbols[best.left], *b = &m->symbols[best.right];
        if (a->n_bytes == 0 || b->n_bytes == 0 || a->n_bytes + b->n_bytes != best.n_bytes)
            continue;
        a->n_bytes = best.n_bytes;
        b->n_bytes = 0;
        a->next = b->next;
        if (b->next >= 0)
            m->symbols[b->next].prev = best.left;
        try_pair(m, a->prev, best.left);
        try_pair(m, best.left, a->next);
    }
}

static void emit_all(const merger *m, dpi_tokens *out) {
    const dpi_vocab *vocab = m->vocab;
    for (int32_t i = 0; i >= 0; i = m->symbols[i].next) {
        const char *text = m->text + m->symbols[i].start;
        uint32_t n_bytes = m->symbols[i].n_bytes;
        int32_t id = find_piece(vocab, text, n_bytes);
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
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory to encode a text");
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
    /* Each pop makes room for one of the two pairs that a merge can bring, and there are fewer
     * merges than symbols: the heap never holds more than twice the symbols. */
    m->heap_capacity = 2 * (size_t)n_symbols;
    m->symbols = dpi_calloc((size_t)n_symbols, sizeof *m->symbols);
    m->heap = dpi_calloc(m->heap_capacity, sizeof *m->heap);
    if (!m->symbols || !m->heap)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory to encode a text");
    for (uint32_t i = 0; i < n;) {
        uint32_t length = char_bytes(m->text[i]);
        if (length > n - i)
            length = n - i;
        int32_t k = m->n_symbols++;
        m->symbols[k] = (symbol){k - 1, k + 1 < n_symbols ? k + 1 : -1, i, length};
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
    dpi_wipe_free(m.heap, m.heap_capacity * sizeof *m.heap);
    return status;
}
