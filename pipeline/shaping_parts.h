/* shaping_parts.h - what is in a dpi_shaping, for shaping.c, which makes it, and shaped.c, which
 * looks it up. Internal. */
#ifndef DPI_SHAPING_PARTS_H
#define DPI_SHAPING_PARTS_H

#include "pipeline/shaping.h"

/* Tokens begin..end-1 of an order. */
typedef struct dpi_token_range {
    int32_t begin, end;
} dpi_token_range;

typedef struct dpi_ban {
    uint8_t *bytes;        /* [n_bytes] */
    uint32_t *border;      /* [n_bytes + 1] of its first k bytes: the longest end, shorter than k,
                              that it begins with */
    dpi_token_range *rest; /* [n_bytes] the tokens that begin with what its first k bytes lack: in
                              by_bytes; of a refusal's k = 0 in by_word */
    uint32_t n_bytes;
} dpi_ban;

struct dpi_shaping {
    int32_t n_tokens, n_words; /* 64 tokens are a word of a set */
    uint8_t *pool;             /* the bytes of all tokens */
    uint32_t *starts;          /* [n_tokens + 1] where those of a token stand in it */
    uint32_t max_bytes;        /* of a token */
    uint64_t *ends;            /* [n_words] tokens that end a text */
    uint64_t *never;           /* [n_words] tokens that never come: without text, or with a ban */
    int32_t *by_bytes;         /* [n_texts] the tokens that have a text, by their bytes, of which
                                  white space comes first */
    int32_t *by_word;          /* [n_texts] the same, by their bytes behind white space */
    int32_t n_texts;
    int32_t *several; /* [n_several] tokens with more than one word */
    int32_t n_several;
    dpi_ban *bans; /* [n_bans + n_refusals] */
    int32_t n_bans, n_refusals;
    int32_t no_repeat;
    bool masks;         /* some tokens may not come */
    float repeat_shift; /* of a token that has come; 0: none */
    dpi_token_bias *biases;
    int32_t n_biases;
};

/* The tokens of by_word, or of by_bytes, that begin with key [n_key >= 1]; whole: and have white
 * space or nothing behind it. */
dpi_token_range dpi_shaping_find(const dpi_shaping *s, bool by_word, bool whole, const uint8_t *key,
                                 size_t n_key);

static inline const uint8_t *dpi_shaping_text(const dpi_shaping *s, int32_t token, size_t *n) {
    *n = s->starts[token + 1] - s->starts[token];
    return s->pool + s->starts[token];
}

#endif
