/* kv.h - what the layers of a session keep of each sequence: KV caches, a list of blocks of
 * DPI_KV_BLOCK positions that grows with its tokens; and of delta nets a state of fixed size.
 * Internal.
 *
 * A block holds, for every layer with attention, K [n_kv_head, DPI_KV_BLOCK / DPI_KV_PANEL,
 * head_dim, DPI_KV_PANEL] and then V [n_kv_head, DPI_KV_BLOCK, head_dim_v], as f16 or f32. Block b
 * has positions [b * DPI_KV_BLOCK, (b + 1) * DPI_KV_BLOCK): the softmax is split by position, never
 * by count (docs/spec.md section 3).
 *
 * Sequences that begin alike may share blocks, which are counted. Only full blocks are shared, and
 * positions that are held are never written again, so that no copy is ever needed on a write.
 *
 * A state is that after the last token. It cannot go back: a sequence may keep one more, that after
 * some earlier token, from where others can begin. */
#ifndef DPI_KV_H
#define DPI_KV_H

#include "dpinfer/session.h"
#include "engine/config.h"
#include "kernels/kernels.h"

typedef struct dpi_kv_seq {
    int32_t length; /* tokens held */
    int32_t n_blocks;
    unsigned char **blocks; /* [max_blocks] data of each block; the block itself begins before it */
    unsigned char *state;   /* state_bytes; NULL: of no token */
    unsigned char *marked;  /* the same after n_marked tokens; NULL: none is kept */
    int32_t n_marked;
} dpi_kv_seq;

/* What a delta net keeps of a sequence. */
typedef struct dpi_state {
    float *past; /* [n_tap - 1, 2 n_k_head dim + n_v_head dim_v] inputs of the filter, that of
                    position i at i % (n_tap - 1) */
    float *s;    /* [n_v_head, dim, dim_v], in blocks of columns (delta.c) */
} dpi_state;

typedef struct dpi_kv_cache {
    int32_t type; /* a dpi_kv */
    int32_t n_seq, n_ctx, max_blocks;
    int32_t head_dim, head_dim_v;
    uint64_t item_bytes, k_bytes; /* k_bytes: all of K of one layer in a block */
    uint64_t layer_bytes, block_bytes; /* block_bytes: allocated, with the count of users */
    uint64_t past_items, state_items;  /* floats of one delta net; state_items: all of them */
    uint64_t state_bytes;              /* of all delta nets; 0: there is none */
    dpi_kv_seq *seqs; /* [n_seq] */
} dpi_kv_cache;

/* Sizes only. False if they overflow. */
bool dpi_kv_sizes(dpi_kv_cache *kv, const dpi_config *config, int32_t n_seq, int32_t n_ctx,
                  int32_t type);
/* dpi_kv_sizes, and the sequences, empty. Errors: MEMORY, LIMIT. */
dpi_status dpi_kv_init(dpi_kv_cache *kv, const dpi_config *config, int32_t n_seq, int32_t n_ctx,
                       int32_t type, dpi_error *err);
/* Wipes and frees everything; a zeroed cache is allowed. */
void dpi_kv_free(dpi_kv_cache *kv);

/* Makes room for `length` tokens (<= n_ctx). On MEMORY nothing that was held is lost. */
dpi_status dpi_kv_reserve(dpi_kv_cache *kv, int32_t seq, int32_t length, dpi_error *err);
/* Gives the empty sequence `to` the first n_tokens tokens of `from`, which are forkable: full
 * blocks are shared, the rest of the last one is copied. On MEMORY `to` is empty. */
dpi_status dpi_kv_fork(dpi_kv_cache *kv, int32_t from, int32_t to, int32_t n_tokens,
                       dpi_error *err);
/* Keeps the state of a sequence as it is now. Without delta nets: nothing. Errors: MEMORY (the
 * older one is gone). */
dpi_status dpi_kv_mark(dpi_kv_cache *kv, int32_t seq, dpi_error *err);
/* The most tokens, at most n_tokens, that dpi_kv_fork can give of a sequence. */
int32_t dpi_kv_forkable(const dpi_kv_cache *kv, int32_t from, int32_t n_tokens);
/* Gives up the states and the blocks of a sequence; what no other one uses is wiped and freed. */
void dpi_kv_reset(dpi_kv_cache *kv, int32_t seq);

/* Of the n-th delta net. */
static inline dpi_state dpi_kv_state(const dpi_kv_cache *kv, int32_t seq, int32_t n) {
    float *state = (float *)(void *)kv->seqs[seq].state + (uint64_t)n * kv->state_items;
    return (dpi_state){state, state + kv->past_items};
}

/* Start of K or V of one head in one block. `layer`: among those with attention. */
static inline void *dpi_kv_k(const dpi_kv_cache *kv, int32_t seq, int32_t block, int32_t layer,
                             int32_t head) {
    return kv->seqs[seq].blocks[block] + (uint64_t)layer * kv->layer_bytes +
           (uint64_t)head * DPI_KV_BLOCK * (uint64_t)kv->head_dim * kv->item_bytes;
}

static inline void *dpi_kv_v(const dpi_kv_cache *kv, int32_t seq, int32_t block, int32_t layer,
                             int32_t head) {
    return kv->seqs[seq].blocks[block] + (uint64_t)layer * kv->layer_bytes + kv->k_bytes +
           (uint64_t)head * DPI_KV_BLOCK * (uint64_t)kv->head_dim_v * kv->item_bytes;
}

#endif
