#include "kv.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "status.h"

bool dpi_kv_sizes(dpi_kv_cache *kv, const dpi_config *config, int32_t n_seq, int32_t n_ctx,
                  int32_t type) {
    memset(kv, 0, sizeof *kv);
    kv->type = type;
    kv->n_seq = n_seq;
    kv->n_ctx = n_ctx;
    kv->max_blocks = n_ctx / DPI_KV_BLOCK + (n_ctx % DPI_KV_BLOCK != 0);
    kv->head_dim = config->head_dim;
    kv->head_dim_v = config->head_dim_v;
    kv->item_bytes = type == DPI_KV_F32 ? sizeof(float) : sizeof(uint16_t);
    /* n_kv_head, head_dim < 2^17: the products below stay under 2^64. */
    uint64_t position = (uint64_t)config->n_kv_head * kv->item_bytes;
    kv->k_bytes = position * DPI_KV_BLOCK * (uint64_t)kv->head_dim;
    kv->layer_bytes = kv->k_bytes + position * DPI_KV_BLOCK * (uint64_t)kv->head_dim_v;
    return dpi_mul_u64(kv->layer_bytes, (uint64_t)config->n_layer, &kv->block_bytes) &&
           kv->block_bytes <= PTRDIFF_MAX;
}

dpi_status dpi_kv_init(dpi_kv_cache *kv, const dpi_config *config, int32_t n_seq, int32_t n_ctx,
                       int32_t type, dpi_error *err) {
    if (!dpi_kv_sizes(kv, config, n_seq, n_ctx, type)) {
        memset(kv, 0, sizeof *kv);
        return dpi_fail(err, DPI_STATUS_LIMIT, "KV cache: block size overflows");
    }
    kv->seqs = dpi_calloc((size_t)n_seq, sizeof *kv->seqs);
    if (!kv->seqs)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the sequences");
    return DPI_STATUS_OK;
}

void dpi_kv_free(dpi_kv_cache *kv) {
    for (int32_t i = 0; kv->seqs && i < kv->n_seq; i++)
        dpi_kv_reset(kv, i);
    free(kv->seqs);
    memset(kv, 0, sizeof *kv);
}

dpi_status dpi_kv_reserve(dpi_kv_cache *kv, int32_t seq, int32_t length, dpi_error *err) {
    dpi_kv_seq *s = &kv->seqs[seq];
    if (!s->blocks)
        s->blocks = dpi_calloc((size_t)kv->max_blocks, sizeof *s->blocks);
    while (s->blocks && (int64_t)s->n_blocks * DPI_KV_BLOCK < length) {
        unsigned char *block = dpi_calloc(1, kv->block_bytes);
        if (!block)
            break;
        s->blocks[s->n_blocks++] = block;
    }
    if (!s->blocks || (int64_t)s->n_blocks * DPI_KV_BLOCK < length)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a KV block of %llu bytes",
                        (unsigned long long)kv->block_bytes);
    return DPI_STATUS_OK;
}

void dpi_kv_reset(dpi_kv_cache *kv, int32_t seq) {
    dpi_kv_seq *s = &kv->seqs[seq];
    for (int32_t b = 0; b < s->n_blocks; b++)
        dpi_wipe_free(s->blocks[b], kv->block_bytes);
    free(s->blocks);
    memset(s, 0, sizeof *s);
}
