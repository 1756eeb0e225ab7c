/* bpe.c - byte-level BPE: a text is cut into words (words.h), and the bytes of each are merged by
 * rank, the earliest merge of the file first.
 *
 * Tokens are stored as texts in which a printable character of Latin-1 stands for its own byte,
 * and U+0100 + n for the n-th of the others, so that no token holds a space or part of a
 * character. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "tokenizer/heap.h"
#include "tokenizer/vocab.h"
#include "tokenizer/words.h"

enum {
    MAX_MERGES = 1 << 22,     /* real files have below 500,000 */
    MAX_TEXT_BYTES = 1 << 28, /* positions fit int32 where every byte becomes U+FFFD */
};

/* By rank. result -1: the merge would make a token that text must not become. */
typedef struct rule {
    int32_t left, right, result;
} rule;

/* The rules of one left token are entries[first[left], first[left + 1]), by right, then rank. */
typedef struct entry {
    int32_t right, rank;
} entry;

struct dpi_bpe {
    dpi_words *words;
    bool whole_words;
    int32_t n_rules;
    rule *rules;     /* [n_rules] */
    entry *entries;  /* [n_rules] */
    uint32_t *first; /* [n_tokens + 1] */
};

/* ---- Bytes as characters -------------------------------------------------------------------- */

static uint32_t char_of_byte(unsigned char b) {
    if (b <= 0x20)
        return 0x100 + b;
    if (b >= 0x7f && b <= 0xa0)
        return 0x121 + b - 0x7f;
    return b == 0xad ? 0x143 : b;
}

static int32_t byte_of_char(uint32_t c) {
    uint32_t b = c < 0x100   ? c
                 : c < 0x121 ? c - 0x100
                 : c < 0x143 ? c - 0x121 + 0x7f
                             : 0xad;
    return c <= 0x143 && char_of_byte((unsigned char)b) == c ? (int32_t)b : -1;
}

/* Writes the character of a byte, two bytes at most; returns how many. */
static size_t put_char(unsigned char b, char *out) {
    uint32_t c = char_of_byte(b);
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = (char)(0xc0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3f));
    return 2;
}

unsigned char dpi_bpe_next_byte(const char *text, size_t n_bytes, size_t *used) {
    const unsigned char *s = (const unsigned char *)text;
    uint32_t c = s[0];
    *used = 1;
    if (c >= 0xc0 && c < 0xe0 && n_bytes > 1 && (s[1] & 0xc0) == 0x80) {
        c = (c & 0x1f) << 6 | (s[1] & 0x3f);
        *used = 2;
    } else if (c >= 0x80) {
        return s[0];
    }
    int32_t b = byte_of_char(c);
    if (b >= 0)
        return (unsigned char)b;
    *used = 1; /* no byte's character: a literal text */
    return s[0];
}

/* ---- Reading ------------------------------------------------------------------------------- */

static dpi_status no_memory(const dpi_gguf *gguf, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "%s: no memory for the vocabulary",
                    dpi_gguf_name(gguf));
}

static dpi_status load_words(dpi_vocab *v, const dpi_gguf *gguf, dpi_error *err) {
    const char *key = "tokenizer.ggml.pre";
    dpi_str name = {0};
    DPI_TRY(dpi_gguf_get_string(gguf, key, &name, NULL, err));
    const dpi_words_rule *found = dpi_words_rule_find(name);
    if (!found) {
        char printable[32], allowed[256];
        dpi_str_printable(name, printable, sizeof printable);
        dpi_words_rule_names(allowed, sizeof allowed);
        return dpi_fail_at(err, DPI_STATUS_UNSUPPORTED, dpi_gguf_find(gguf, key)->offset,
                           "%s: %s is \"%s\", which is not supported; must be one of %s",
                           dpi_gguf_name(gguf), key, printable, allowed);
    }
    v->bpe->whole_words = found->whole_words;
    v->add_bos = found->add_bos;
    return dpi_words_create(found, &v->bpe->words, err);
}

/* A byte that has no token is left out, as Hugging Face's tokenizers do: an unknown token would be
 * worse, because in some files that is the end of a text. */
static void load_byte_ids(dpi_vocab *v) {
    for (int b = 0; b < 256; b++) {
        char text[2];
        v->byte_ids[b] = dpi_vocab_find_plain(v, text, put_char((unsigned char)b, text));
    }
}

/* Splits "left right" and finds the three tokens. */
static bool find_rule(const dpi_vocab *v, dpi_str text, rule *r) {
    char joined[2 * DPI_TOKEN_MAX_BYTES];
    const char *space = text.n_bytes > 1 ? memchr(text.data + 1, ' ', text.n_bytes - 1) : NULL;
    if (!space || text.n_bytes > sizeof joined)
        return false;
    size_t n_left = (size_t)(space - text.data), n_right = (size_t)text.n_bytes - n_left - 1;
    memcpy(joined, text.data, n_left);
    memcpy(joined + n_left, space + 1, n_right);
    r->left = dpi_vocab_find(v, joined, n_left);
    r->right = dpi_vocab_find(v, joined + n_left, n_right);
    r->result = dpi_vocab_find_plain(v, joined, n_left + n_right);
    return r->left >= 0 && r->right >= 0 && dpi_vocab_find(v, joined, n_left + n_right) >= 0;
}

static dpi_status load_rules(dpi_vocab *v, const dpi_gguf *gguf, dpi_error *err) {
    const char *key = "tokenizer.ggml.merges";
    const dpi_gguf_kv *array = NULL;
    dpi_bpe *bpe = v->bpe;
    DPI_TRY(dpi_gguf_get_array(gguf, key, DPI_GGUF_STRING, &array, err));
    if (!array)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s is missing", dpi_gguf_name(gguf), key);
    if (array->n_items > MAX_MERGES)
        return dpi_fail_at(err, DPI_STATUS_FORMAT, array->offset,
                           "%s: %s has %" PRIu64 " merges, at most %d are allowed",
                           dpi_gguf_name(gguf), key, array->n_items, (int)MAX_MERGES);
    bpe->n_rules = (int32_t)array->n_items;
    bpe->rules = dpi_calloc((size_t)bpe->n_rules, sizeof *bpe->rules);
    if (!bpe->rules)
        return no_memory(gguf, err);
    uint64_t cursor = 0;
    for (int32_t i = 0; i < bpe->n_rules; i++) {
        dpi_str text = dpi_gguf_next_string(array, &cursor);
        if (!find_rule(v, text, &bpe->rules[i]))
            return dpi_fail_at(err, DPI_STATUS_FORMAT,
                               array->offset +
                                   (uint64_t)((const unsigned char *)text.data - array->data),
                               "%s: %s: merge %d is not two tokens with a space between them that "
                               "together are a token", dpi_gguf_name(gguf), key, (int)i);
    }
    return DPI_STATUS_OK;
}

static int compare_entry(const void *x, const void *y) {
    const entry *a = x, *b = y;
    if (a->right != b->right)
        return a->right < b->right ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static dpi_status index_rules(dpi_vocab *v, const dpi_gguf *gguf, dpi_error *err) {
    dpi_bpe *bpe = v->bpe;
    size_t n_tokens = (size_t)v->n_tokens;
    bpe->entries = dpi_calloc((size_t)bpe->n_rules, sizeof *bpe->entries);
    bpe->first = dpi_calloc(n_tokens + 1, sizeof *bpe->first);
    if (!bpe->entries || !bpe->first)
        return no_memory(gguf, err);
    for (int32_t i = 0; i < bpe->n_rules; i++)
        bpe->first[bpe->rules[i].left]++;
    for (size_t t = 1; t <= n_tokens; t++) /* now where the entries of each token end */
        bpe->first[t] += bpe->first[t - 1];
    for (int32_t i = bpe->n_rules - 1; i >= 0; i--)
        bpe->entries[--bpe->first[bpe->rules[i].left]] = (entry){bpe->rules[i].right, i};
    for (size_t t = 0; t < n_tokens; t++)
        qsort(bpe->entries + bpe->first[t], bpe->first[t + 1] - bpe->first[t], sizeof(entry),
              compare_entry);
    return DPI_STATUS_OK;
}

dpi_status dpi_bpe_load_merges(dpi_vocab *v, const dpi_gguf *gguf, dpi_error *err) {
    v->bpe = dpi_calloc(1, sizeof *v->bpe);
    if (!v->bpe)
        return no_memory(gguf, err);
    DPI_TRY(load_rules(v, gguf, err));
    return index_rules(v, gguf, err);
}

dpi_status dpi_bpe_load(dpi_vocab *v, const dpi_gguf *gguf, dpi_error *err) {
    DPI_TRY(dpi_bpe_load_merges(v, gguf, err));
    load_byte_ids(v);
    return load_words(v, gguf, err);
}

void dpi_bpe_free(dpi_bpe *bpe) {
    if (!bpe)
        return;
    dpi_words_free(bpe->words);
    free(bpe->rules);
    free(bpe->entries);
    free(bpe->first);
    free(bpe);
}

int32_t dpi_bpe_rank(const dpi_bpe *bpe, int32_t left, int32_t right) {
    if (left < 0 || right < 0)
        return -1;
    uint32_t low = bpe->first[left], high = bpe->first[left + 1], end = high;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (bpe->entries[mid].right < right)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == end || bpe->entries[low].right != right)
        return -1;
    const int32_t rank = bpe->entries[low].rank;
    return bpe->rules[rank].result >= 0 ? rank : -1;
}

/* ---- Encoding ------------------------------------------------------------------------------ */

enum { GONE = -2 }; /* id of a symbol that was merged into its left neighbour */

/* A stretch of the word that will be one token. */
typedef struct symbol {
    int32_t prev, next; /* indices, -1 at the ends */
    int32_t id;
} symbol;

typedef struct encoder {
    const dpi_vocab *vocab;
    dpi_tokens *out;
    symbol *symbols; /* [capacity] */
    dpi_heap heap;   /* [2 * capacity] */
    size_t capacity; /* bytes of the longest word so far, or more */
    char *text;      /* [max_bytes + 1] a word as the vocabulary writes it */
} encoder;

static void free_buffers(encoder *e) {
    dpi_wipe_free(e->symbols, e->capacity * sizeof *e->symbols);
    dpi_wipe_free(e->heap.items, 2 * e->capacity * sizeof *e->heap.items);
    e->symbols = NULL;
    e->heap.items = NULL;
}

static dpi_status reserve(encoder *e, size_t n_bytes, dpi_error *err) {
    if (n_bytes <= e->capacity)
        return DPI_STATUS_OK;
    free_buffers(e);
    e->capacity = n_bytes < 64 ? 64 : n_bytes; /* costs no more than the word itself */
    e->symbols = dpi_calloc(e->capacity, sizeof *e->symbols);
    e->heap.items = dpi_calloc(2 * e->capacity, sizeof *e->heap.items);
    if (!e->symbols || !e->heap.items)
        return dpi_no_memory(err, "the tokens of a text");
    return DPI_STATUS_OK;
}

/* The token that is the whole word, -1 if there is none. */
static int32_t find_word(const encoder *e, const char *word, size_t n_bytes) {
    size_t max_bytes = e->vocab->max_bytes, n = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        if (n >= max_bytes)
            return -1;
        n += put_char((unsigned char)word[i], e->text + n);
    }
    return dpi_vocab_find_plain(e->vocab, e->text, n);
}

static void try_pair(encoder *e, int32_t left, int32_t right) {
    if (left < 0 || right < 0)
        return;
    const dpi_bpe *bpe = e->vocab->bpe;
    int32_t rank = dpi_bpe_rank(bpe, e->symbols[left].id, e->symbols[right].id);
    if (rank >= 0)
        dpi_heap_push(&e->heap, (dpi_pair){dpi_merge_key((uint32_t)rank, left), right, 0});
}

static void merge_all(encoder *e, int32_t n_symbols) {
    symbol *symbols = e->symbols;
    for (int32_t i = 1; i < n_symbols; i++)
        try_pair(e, i - 1, i);
    while (e->heap.n > 0) {
        dpi_pair best = dpi_heap_pop(&e->heap);
        int32_t left = dpi_merge_left(&best), right = best.right;
        const rule *r = &e->vocab->bpe->rules[dpi_merge_priority(&best)];
        if (symbols[left].id != r->left || symbols[right].id != r->right)
            continue;
        int32_t next = symbols[right].next;
        symbols[left].id = r->result;
        symbols[left].next = next;
        symbols[right].id = GONE;
        if (next >= 0)
            symbols[next].prev = left;
        try_pair(e, symbols[left].prev, left);
        try_pair(e, left, next);
    }
}

static dpi_status encode_word(void *user, const char *word, size_t n_bytes, dpi_error *err) {
    encoder *e = user;
    int32_t id = e->vocab->bpe->whole_words ? find_word(e, word, n_bytes) : -1;
    if (id >= 0) {
        dpi_tokens_push(e->out, id);
        return DPI_STATUS_OK;
    }
    DPI_TRY(reserve(e, n_bytes, err));
    int32_t n = 0;
    for (size_t i = 0; i < n_bytes; i++) { /* what is left out lets its neighbours merge */
        id = e->vocab->byte_ids[(unsigned char)word[i]];
        if (id < 0)
            continue;
        e->symbols[n] = (symbol){n - 1, n + 1, id};
        n++;
    }
    if (n == 0)
        return DPI_STATUS_OK;
    e->symbols[n - 1].next = -1;
    merge_all(e, n);
    for (int32_t i = 0; i >= 0; i = e->symbols[i].next)
        dpi_tokens_push(e->out, e->symbols[i].id);
    return DPI_STATUS_OK;
}

dpi_status dpi_bpe_encode(const dpi_vocab *vocab, const char *text, size_t n_bytes, bool prefix,
                          dpi_tokens *out, dpi_error *err) {
    (void)prefix; /* no space is ever added: words begin with their own */
    if (n_bytes > MAX_TEXT_BYTES)
        return dpi_fail(err, DPI_STATUS_ARG, "a text is too long to encode: at most %d bytes",
                        (int)MAX_TEXT_BYTES);
    size_t n_text = (size_t)vocab->max_bytes + 1;
    encoder e = {.vocab = vocab, .out = out, .text = dpi_calloc(n_text, 1)};
    dpi_status status =
        e.text ? dpi_words_split(vocab->bpe->words, text, n_bytes, encode_word, &e, err)
               : dpi_no_memory(err, "the tokens of a text");
    free_buffers(&e);
    dpi_wipe_free(e.text, n_text);
    return status;
}
