#include "engine/kv.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"

/* Before a block's data, on a cache line of its own: how many sequences use it. */
typedef struct block_head {
    int32_t n_users;
    char pad[60];
} block_head;

static block_head *head_of(unsigned char *data) { return (block_head *)(void *)data - 1; }

/* n_tap <= 2^6, dim <= 2^12, all values of a layer <= 2^22: the products stay under 2^64. */
static void size_state(dpi_kv_cache *kv, const dpi_config *config) {
    const uint64_t n_layers = (uint64_t)dpi_config_count_layers(config, DPI_LAYER_DELTA);
    if (n_layers == 0)
        return;
    kv->past_items = (uint64_t)(config->delta.n_tap - 1) *
                     (uint64_t)dpi_extent_of(config, DPI_EXTENT_KEYS);
    kv->state_items = kv->past_items + (uint64_t)config->delta.dim *
                                           (uint64_t)dpi_extent_of(config, DPI_EXTENT_VALUES);
    kv->state_bytes = n_layers * kv->state_items * sizeof(float);
}

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
    size_state(kv, config);
    const uint64_t n_layers = (uint64_t)dpi_config_count_layers(config, DPI_LAYER_ATTENTION);
    return dpi_mul_u64(kv->layer_bytes, n_layers, &kv->block_bytes) &&
           dpi_add_u64(kv->block_bytes, sizeof(block_head), &kv->block_bytes) &&
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

static bool make_table(const dpi_kv_cache *kv, dpi_kv_seq *s) {
    if (!s->blocks)
        s->blocks = dpi_calloc((size_t)kv->max_blocks, sizeof *s->blocks);
    return s->blocks != NULL;
}

static bool make_state(const dpi_kv_cache *kv, unsigned char **state) {
    if (!*state && kv->state_bytes > 0)
        *state = dpi_calloc(1, kv->state_bytes);
    return *state || kv->state_bytes == 0;
}

static bool add_block(const dpi_kv_cache *kv, dpi_kv_seq *s) {
    block_head *head = dpi_calloc(1, kv->block_bytes);
    if (!head)
        return false;
    head->n_users = 1;
    s->blocks[s->n_blocks++] = (unsigned char *)(head + 1);
    return true;
}

static dpi_status no_memory(const dpi_kv_cache *kv, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a KV block of %llu bytes or a state of "
                    "%llu", (unsigned long long)kv->block_bytes,
                    (unsigned long long)kv->state_bytes);
}

dpi_status dpi_kv_reserve(dpi_kv_cache *kv, int32_t seq, int32_t length, dpi_error *err) {
    dpi_kv_seq *s = &kv->seqs[seq];
    bool ok = make_table(kv, s) && make_state(kv, &s->state);
    while (ok && (int64_t)s->n_blocks * DPI_KV_BLOCK < length)
        ok = add_block(kv, s);
    return ok ? DPI_STATUS_OK : no_memory(kv, err);
}

/* Copies the first n positions of a block. */
static void copy_positions(const dpi_kv_cache *kv, unsigned char *to, const unsigned char *from,
                           int32_t n) {
    const uint64_t k_dim = (uint64_t)kv->head_dim, v_dim = (uint64_t)kv->head_dim_v;
    /* A line of a K panel: one value of all positions. */
    const uint64_t line = DPI_KV_PANEL * kv->item_bytes;
    const uint64_t k_panels = (uint64_t)n / DPI_KV_PANEL * k_dim * line;
    const uint64_t k_rest = (uint64_t)n % DPI_KV_PANEL * kv->item_bytes;
    for (uint64_t layer = 0; layer < kv->block_bytes - sizeof(block_head);
         layer += kv->layer_bytes) {
        for (uint64_t at = layer; at < layer + kv->k_bytes;
             at += DPI_KV_BLOCK * k_dim * kv->item_bytes) {
            memcpy(to + at, from + at, k_panels);
            for (uint64_t i = at + k_panels; k_rest > 0 && i < at + k_panels + k_dim * line;
                 i += line)
                memcpy(to + i, from + i, k_rest);
        }
        for (uint64_t at = layer + kv->k_bytes; at < layer + kv->layer_bytes;
             at += DPI_KV_BLOCK * v_dim * kv->item_bytes)
            memcpy(to + at, from + at, (uint64_t)n * v_dim * kv->item_bytes);
    }
}

dpi_status dpi_kv_fork(dpi_kv_cache *kv, int32_t from, int32_t to, int32_t n_tokens,
                       dpi_error *err) {
    const dpi_kv_seq *f = &kv->seqs[from];
    dpi_kv_seq *t = &kv->seqs[to];
    int32_t n_full = n_tokens / DPI_KV_BLOCK, n_rest = n_tokens % DPI_KV_BLOCK;
    if (!make_table(kv, t) || !make_state(kv, &t->state)) {
        dpi_kv_reset(kv, to);
        return no_memory(kv, err);
    }
    if (t->state)
        memcpy(t->state, n_tokens == f->length ? f->state : f->marked, kv->state_bytes);
    for (; t->n_blocks < n_full; t->n_blocks++) {
        t->blocks[t->n_blocks] = f->blocks[t->n_blocks];
        head_of(t->blocks[t->n_blocks])->n_users++;
    }
    if (n_rest > 0) {
        if (!add_block(kv, t)) {
            dpi_kv_reset(kv, to);
            return no_memory(kv, err);
        }
        copy_positions(kv, t->blocks[n_full], f->blocks[n_full], n_rest);
    }
    t->length = n_tokens;
    return DPI_STATUS_OK;
}

dpi_status dpi_kv_mark(dpi_kv_cache *kv, int32_t seq, dpi_error *err) {
    dpi_kv_seq *s = &kv->seqs[seq];
    s->n_marked = 0;
    if (!s->state)
        return DPI_STATUS_OK;
    if (!make_state(kv, &s->marked))
        return no_memory(kv, err);
    memcpy(s->marked, s->state, kv->state_bytes);
    s->n_marked = s->length;
    return DPI_STATUS_OK;
}

int32_t dpi_kv_forkable(const dpi_kv_cache *kv, int32_t from, int32_t n_tokens) {
    const dpi_kv_seq *s = &kv->seqs[from];
    if (n_tokens >= s->length || kv->state_bytes == 0)
        return n_tokens < s->length ? n_tokens : s->length;
    return s->n_marked <= n_tokens ? s->n_marked : 0;
}

void dpi_kv_reset(dpi_kv_cache *kv, int32_t seq) {
    dpi_kv_seq *s = &kv->seqs[seq];
    dpi_wipe_free(s->state, kv->state_bytes);
    dpi_wipe_free(s->marked, kv->state_bytes);
    for (int32_t b = 0; b < s->n_blocks; b++) {
        block_head *head = head_of(s->blocks[b]);
        if (--head->n_users == 0)
            dpi_wipe_free(head, kv->block_bytes);
    }
    free(s->blocks);
    memset(s, 0, sizeof *s);
}
