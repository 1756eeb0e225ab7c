/* kv.h - what the layers of a session keep of each sequence: KV caches, a list of blocks of
 * DPI_KV_BLOCK positions that grows with its tokens; and of delta nets a state of fixed size.
 * Internal.
 *
 * A block holds, for every layer of its kind, K [n_kv_head, DPI_KV_BLOCK / DPI_KV_PANEL, head_dim,
 * DPI_KV_PANEL] and then V [n_kv_head, DPI_KV_BLOCK, head_dim_v], as f16 or f32. Block b has
 * positions [b * DPI_KV_BLOCK, (b + 1) * DPI_KV_BLOCK): the softmax is split by position, never by
 * count (docs/spec.md section 3).
 *
 * Layers with a sliding window have blocks of their own, which are given back when no later row
 * sees them. So how far a sequence can be forked depends on how long it is: all of it, or where it
 * was pinned.
 *
 * Sequences that begin alike may share blocks, which are counted. Only full blocks are shared, and
 * positions that are held are never written again, so that no copy is ever needed on a write.
 *
 * A state is that after the last token, and cannot go back. At a pin it is kept. */
#ifndef DPI_KV_H
#define DPI_KV_H

#include "dpinfer/session.h"
#include "engine/config.h"
#include "kernels/kernels.h"

typedef enum dpi_kv_kind {
    DPI_KV_ALL,    /* layers that see every position */
    DPI_KV_WINDOW, /* layers that see the last ones */
    DPI_KV_KINDS
} dpi_kv_kind;

typedef struct dpi_kv_list {
    int32_t n;              /* blocks [0, n) are or were held */
    int32_t n_old;          /* of them [0, n_old) were looked at and given back, but for pins */
    unsigned char **blocks; /* [max_blocks] data of each block, NULL: given back; the block itself
                               begins before it */
} dpi_kv_list;

typedef struct dpi_kv_seq {
    int32_t length; /* tokens held */
    int32_t pins[DPI_PINS_MAX]; /* lengths at which it can be forked later; 0: none */
    unsigned char *state;       /* state_bytes; NULL: of no token, or of no delta net */
    unsigned char *pinned[DPI_PINS_MAX]; /* the same after pins[i] tokens, when it holds them */
    dpi_kv_list lists[DPI_KV_KINDS];
} dpi_kv_seq;

/* Where a layer is in a block of its kind. */
typedef struct dpi_kv_layer {
    dpi_kv_kind kind;
    uint64_t k_at, v_at;     /* bytes from the block's data */
    uint64_t k_head, v_head; /* bytes of a head */
    uint64_t k_line, v_line; /* bytes of all dimensions of a position */
    int32_t n_heads;
    uint64_t past_at, s_at; /* of a delta net: floats from the state's begin; n_heads is 0 */
} dpi_kv_layer;

/* What a delta net keeps of a sequence. */
typedef struct dpi_state {
    float *past; /* [n_tap - 1, 2 n_k_head dim + n_v_head dim_v] inputs of the filter, that of
                    position i at i % (n_tap - 1) */
    float *s;    /* [n_v_head, dim, dim_v], in blocks of columns (delta.c) */
} dpi_state;

typedef struct dpi_kv_cache {
    int32_t type; /* a dpi_kv */
    int32_t n_seq, n_ctx, max_blocks;
    int32_t n_layer, window; /* window: of those that have one */
    uint64_t item_bytes;
    uint64_t block_bytes[DPI_KV_KINDS]; /* allocated, with the count of users; 0: no layer has it */
    uint64_t state_bytes; /* of all delta nets; 0: there is none */
    dpi_kv_layer *layers; /* [n_layer] */
    dpi_kv_seq *seqs;     /* [n_seq] */
} dpi_kv_cache;

/* Zeroes *kv and makes it, the sequences empty. n_seq 0: sizes only. Errors: MEMORY, LIMIT. */
dpi_status dpi_kv_init(dpi_kv_cache *kv, const dpi_config *config, int32_t n_seq, int32_t n_ctx,
                       int32_t type, dpi_error *err);
/* Wipes and frees everything; a zeroed cache is allowed. */
void dpi_kv_free(dpi_kv_cache *kv);

/* Makes room for `length` tokens (<= n_ctx) in the layers of a kind. On MEMORY nothing that was
 * held is lost. */
dpi_status dpi_kv_reserve(dpi_kv_cache *kv, int32_t seq, dpi_kv_kind kind, int32_t length,
                          dpi_error *err);
/* Says that the first n_tokens tokens (no fewer than it holds) can be forked later. Errors: MEMORY,
 * LIMIT (too many). */
dpi_status dpi_kv_pin(dpi_kv_cache *kv, int32_t seq, int32_t n_tokens, dpi_error *err);
/* How many tokens may come at once: where a state is pinned the pass ends there. */
int32_t dpi_kv_until_pin(const dpi_kv_cache *kv, int32_t seq);
/* n tokens more are held. Gives back what no later row sees. */
void dpi_kv_advance(dpi_kv_cache *kv, int32_t seq, int32_t n);
/* The most of the first n_tokens tokens (at most its length) that dpi_kv_fork can give; 0: none. */
int32_t dpi_kv_forkable(const dpi_kv_cache *kv, int32_t seq, int32_t n_tokens);
/* Gives the empty sequence `to` the first n_tokens tokens of `from`, which are forkable: full
 * blocks are shared, the rest of the last one is copied. On MEMORY `to` is empty. */
dpi_status dpi_kv_fork(dpi_kv_cache *kv, int32_t from, int32_t to, int32_t n_tokens,
                       dpi_error *err);
/* Gives up blocks, states and pins of a sequence; what no other uses is wiped and freed. */
void dpi_kv_reset(dpi_kv_cache *kv, int32_t seq);

/* Most bytes of blocks and states while n_seq sequences grow to n_tokens tokens each, of which the
 * first n_prefix are forked from one of them to all but sequence 0. False: it overflows. */
bool dpi_kv_bytes(const dpi_kv_cache *kv, int32_t n_seq, int32_t n_tokens, int32_t n_prefix,
                  uint64_t *n_bytes);

/* Of a delta net. */
static inline dpi_state dpi_kv_state(const dpi_kv_cache *kv, int32_t seq, int32_t layer) {
    float *state = (float *)(void *)kv->seqs[seq].state;
    return (dpi_state){state + kv->layers[layer].past_at, state + kv->layers[layer].s_at};
}

/* Start of K or V of one head in one block. */
static inline void *dpi_kv_k(const dpi_kv_cache *kv, int32_t seq, int32_t block, int32_t layer,
                             int32_t head) {
    const dpi_kv_layer *l = &kv->layers[layer];
    return kv->seqs[seq].lists[l->kind].blocks[block] + l->k_at + (uint64_t)head * l->k_head;
}

static inline void *dpi_kv_v(const dpi_kv_cache *kv, int32_t seq, int32_t block, int32_t layer,
                             int32_t head) {
    const dpi_kv_layer *l = &kv->layers[layer];
    return kv->seqs[seq].lists[l->kind].blocks[block] + l->v_at + (uint64_t)head * l->v_head;
}

#endif
