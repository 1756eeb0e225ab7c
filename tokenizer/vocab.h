/* vocab.h - what the files of tokenizer/ share: the vocabulary's fields, the table of tokenizer
 * models, the output of encoding. Internal to this folder. */
#ifndef DPI_VOCAB_H
#define DPI_VOCAB_H

#include <stdbool.h>

#include "tokenizer/tokenizer.h"

/* U+2581, which stands for a space inside the tokens of some models. */
#define DPI_SPACE_MARK "\xe2\x96\x81"

/* tokenizer.ggml.token_type */
typedef enum dpi_token_type {
    DPI_TOKEN_UNDEFINED = 0,
    DPI_TOKEN_NORMAL = 1,
    DPI_TOKEN_UNKNOWN = 2,
    DPI_TOKEN_CONTROL = 3,
    DPI_TOKEN_USER_DEFINED = 4,
    DPI_TOKEN_UNUSED = 5,
    DPI_TOKEN_BYTE = 6,
} dpi_token_type;

typedef struct dpi_token {
    const char *text; /* in dpi_vocab.pool, not NUL-terminated */
    uint32_t n_bytes;
    float score;
    uint8_t type; /* a dpi_token_type */
    uint8_t byte; /* of a byte token: its value */
    bool is_eog;
} dpi_token;

/* Where encoding writes: counts every token, stores those that fit. */
typedef struct dpi_tokens {
    int32_t *ids; /* [capacity] */
    size_t capacity;
    size_t n;
} dpi_tokens;

static inline void dpi_tokens_push(dpi_tokens *out, int32_t id) {
    if (out->n < out->capacity)
        out->ids[out->n] = id;
    out->n++;
}

/* A tokenizer.ggml.model. A new one is a file with its encode function and a row of the table in
 * vocab.c. */
typedef struct dpi_vocab_kind {
    const char *model;
    int32_t bos, eos, unk; /* ids where the file gives none; -1: none */
    bool add_bos;          /* where the file does not say */
    bool add_space_prefix; /* where the file does not say; false: never */
    bool space_mark;       /* DPI_SPACE_MARK in a token stands for a space */
    bool byte_level;       /* texts of plain tokens are written as in bpe.c */
    bool needs_scores;     /* scores must be in the file */
    /* Reads what only this model has, once tokens and special ids are known. May change the
     * defaults of the flags. What it allocates is freed with the vocabulary, also on failure. */
    dpi_status (*load)(dpi_vocab *vocab, const dpi_gguf *gguf, dpi_error *err);
    /* Ids of a stretch of plain text without user-defined tokens (n_bytes >= 1). `prefix`: it
     * begins a text or follows a special token. Errors: MEMORY, ARG (too long). */
    dpi_status (*encode)(const dpi_vocab *vocab, const char *text, size_t n_bytes, bool prefix,
                         dpi_tokens *out, dpi_error *err);
} dpi_vocab_kind;

/* What models whose file lists merges need beyond the tokens. */
typedef struct dpi_bpe dpi_bpe;

/* A row of the index from text to id. */
typedef struct dpi_vocab_entry {
    uint64_t hash;
    int32_t id;
} dpi_vocab_entry;

struct dpi_vocab {
    const dpi_vocab_kind *kind;
    int32_t n_tokens;
    dpi_token *tokens; /* [n_tokens] */
    char *pool;        /* all texts */
    uint32_t max_bytes; /* of the longest token */
    /* Entries by bucket, then hash, then text; bucket b is [buckets[b], buckets[b + 1]). Binary
     * search in a bucket keeps a lookup O(log n_tokens) even for a file that was made to collide.
     * Empty texts have no entry. */
    dpi_vocab_entry *entries;
    int32_t n_entries;
    uint32_t *buckets; /* [2^bucket_bits + 1] */
    int32_t bucket_bits;
    int32_t *user_defined; /* [n_user_defined] ids, longest text first, then by id */
    int32_t n_user_defined;
    int32_t byte_ids[256]; /* -1 if there is none */
    bool byte_fallback;    /* SPM: all of them are there */
    dpi_bpe *bpe;          /* NULL where the file lists no merges */
    int32_t bos, eos, unk; /* -1 if none */
    bool add_bos, add_space_prefix;
    int32_t chat, nearest; /* as dpi_chat_recognise says, NONE without a template */
};

/* Polynomial hash of a text, from its last byte to its first, so that a window moves down by one
 * byte in O(1): hash(text[i, i + n)) = DPI_HASH_BASE * (hash(text[i + 1, i + n + 1)) -
 * text[i + n] * DPI_HASH_BASE^(n - 1)) + text[i]. */
#define DPI_HASH_BASE 0x9e3779b97f4a7c15u
static inline uint64_t dpi_text_hash(const char *text, size_t n_bytes) {
    uint64_t h = 0;
    for (size_t i = n_bytes; i > 0; i--)
        h = h * DPI_HASH_BASE + (unsigned char)text[i - 1];
    return h;
}

/* The token of exactly this text, of any type; -1 if there is none. */
int32_t dpi_vocab_find(const dpi_vocab *vocab, const char *text, size_t n_bytes);
int32_t dpi_vocab_find_hash(const dpi_vocab *vocab, const char *text, size_t n_bytes,
                            uint64_t hash);
/* The bucket of the index that a text of this hash is in. */
uint32_t dpi_vocab_bucket(const dpi_vocab *vocab, uint64_t hash);
/* Below 0, 0, above 0: the order of the token's text and this one, by length and then bytes. */
int dpi_token_compare(const dpi_token *token, const char *text, size_t n_bytes);

/* The same, but only what plain text may become: -1 for control, unknown and byte tokens, and in
 * byte-level BPE for unused ones. */
int32_t dpi_vocab_find_plain(const dpi_vocab *vocab, const char *text, size_t n_bytes);
/* Spaces for DPI_SPACE_MARK, in place: for an encoder that writes spaces so, the two are the same
 * text. How many bytes are left. */
size_t dpi_unmark_spaces(char *text, size_t n_bytes);
/* A name from a file for a message: cut to `size` with the NUL, '?' for control characters. */
void dpi_str_printable(dpi_str text, char *out, size_t size);

/* Ids of plain text that begins a text or follows a special token: user-defined tokens are cut
 * out first, the rest goes to the tokenizer model. n_bytes may be 0. */
dpi_status dpi_vocab_encode_plain(const dpi_vocab *vocab, const char *text, size_t n_bytes,
                                  dpi_tokens *out, dpi_error *err);
/* Sets the count; LIMIT if not all ids were stored. */
dpi_status dpi_tokens_finish(const dpi_tokens *out, size_t *n_tokens, dpi_error *err);

/* spm.c; _merges: by those of the file in place of scores. */
dpi_status dpi_spm_load(dpi_vocab *vocab, const dpi_gguf *gguf, dpi_error *err);
dpi_status dpi_spm_load_merges(dpi_vocab *vocab, const dpi_gguf *gguf, dpi_error *err);
dpi_status dpi_spm_encode(const dpi_vocab *vocab, const char *text, size_t n_bytes, bool prefix,
                          dpi_tokens *out, dpi_error *err);

/* bpe.c; _merges: them alone. */
dpi_status dpi_bpe_load_merges(dpi_vocab *vocab, const dpi_gguf *gguf, dpi_error *err);
/* The place in the file of the first merge that joins two tokens to one that text may become; -1:
 * there is none, or a token is -1. */
int32_t dpi_bpe_rank(const dpi_bpe *bpe, int32_t left, int32_t right);
dpi_status dpi_bpe_load(dpi_vocab *vocab, const dpi_gguf *gguf, dpi_error *err);
void dpi_bpe_free(dpi_bpe *bpe); /* NULL is allowed */
dpi_status dpi_bpe_encode(const dpi_vocab *vocab, const char *text, size_t n_bytes, bool prefix,
                          dpi_tokens *out, dpi_error *err);
/* The byte that a token's text (n_bytes >= 1) begins with, written in *used bytes; what is no
 * byte's character stands for itself. */
unsigned char dpi_bpe_next_byte(const char *text, size_t n_bytes, size_t *used);

#endif
