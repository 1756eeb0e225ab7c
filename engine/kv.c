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

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* Appends a layer to the blocks of its kind. */
static bool place_layer(dpi_kv_cache *kv, const dpi_shape *shape, bool has_window,
                        dpi_kv_layer *l) {
    l->kind = has_window ? DPI_KV_WINDOW : DPI_KV_ALL;
    /* A head has fewer than 2^12 dimensions, a layer 2^12 heads: products stay under 2^64. */
    l->n_heads = shape->n_kv_head;
    l->k_line = (uint64_t)shape->head_dim * kv->item_bytes;
    l->v_line = (uint64_t)shape->head_dim_v * kv->item_bytes;
    l->k_head = l->k_line * DPI_KV_BLOCK;
    l->v_head = l->v_line * DPI_KV_BLOCK;
    uint64_t *end = &kv->block_bytes[l->kind];
    *end = *end ? *end : sizeof(block_head);
    l->k_at = *end - sizeof(block_head);
    l->v_at = l->k_at + (uint64_t)l->n_heads * l->k_head;
    return dpi_add_u64(*end, (uint64_t)l->n_heads * (l->k_head + l->v_head), end) &&
           *end <= PTRDIFF_MAX;
}

/* Appends a delta net to the state. n_tap <= 2^6, dim <= 2^12, all values <= 2^22 of at most 2^9
 * layers: it stays under 2^64. */
static void place_state(dpi_kv_cache *kv, const dpi_shape *shape, dpi_kv_layer *l) {
    const uint64_t n_values = (uint64_t)dpi_extent_of(shape, DPI_EXTENT_VALUES);
    l->past_at = kv->state_bytes / sizeof(float);
    l->s_at = l->past_at + (uint64_t)(shape->delta.n_tap - 1) *
                               (uint64_t)dpi_extent_of(shape, DPI_EXTENT_KEYS);
    kv->state_bytes = (l->s_at + (uint64_t)shape->delta.dim * n_values) * sizeof(float);
}

dpi_status dpi_kv_init(dpi_kv_cache *kv, const dpi_config *config, int32_t n_seq, int32_t n_ctx,
                       int32_t type, dpi_error *err) {
    *kv = (dpi_kv_cache){.type = type,
                         .n_seq = n_seq,
                         .n_ctx = n_ctx,
                         .max_blocks = n_ctx / DPI_KV_BLOCK + (n_ctx % DPI_KV_BLOCK != 0),
                         .n_layer = config->n_layer,
                         .window = config->window,
                         .item_bytes = type == DPI_KV_F32 ? sizeof(float) : sizeof(uint16_t)};
    kv->layers = dpi_calloc((size_t)config->n_layer, sizeof *kv->layers);
    kv->seqs = n_seq ? dpi_calloc((size_t)n_seq, sizeof *kv->seqs) : NULL;
    if (!kv->layers || (n_seq && !kv->seqs))
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the sequences");
    for (int32_t l = 0; l < config->n_layer; l++)
        if (config->kind[l] == DPI_LAYER_DELTA)
            place_state(kv, &config->shapes[l], &kv->layers[l]);
        else if (config->shapes[l].kv_back == 0 && /* else it has no keys of its own */
                 !place_layer(kv, &config->shapes[l], config->has_window[l], &kv->layers[l]))
            return dpi_fail(err, DPI_STATUS_LIMIT, "KV cache: block size overflows");
    return DPI_STATUS_OK;
}

void dpi_kv_free(dpi_kv_cache *kv) {
    for (int32_t i = 0; kv->seqs && i < kv->n_seq; i++)
        dpi_kv_reset(kv, i);
    free(kv->seqs), free(kv->layers);
    memset(kv, 0, sizeof *kv);
}

static int32_t blocks_for(int32_t length) {
    return length / DPI_KV_BLOCK + (length % DPI_KV_BLOCK != 0);
}

/* The first position that the row after `length` tokens sees in layers of a kind. */
static int32_t first_seen(const dpi_kv_cache *kv, int32_t kind, int32_t length) {
    return kind == DPI_KV_WINDOW && length >= kv->window ? length - kv->window + 1 : 0;
}

bool dpi_kv_bytes(const dpi_kv_cache *kv, int32_t n_seq, int32_t n_tokens, int32_t n_prefix,
                  uint64_t *n_bytes) {
    /* Each has a state, and one is pinned in the two that others are forked from. */
    const uint64_t states = (uint64_t)n_seq + (n_prefix > 0 && n_seq > 1 ? 2 : 0);
    if (!dpi_mul_u64(n_tokens > 0 ? states : 0, kv->state_bytes, n_bytes))
        return false;
    for (int32_t kind = 0; kind < DPI_KV_KINDS; kind++) {
        const uint64_t others = n_seq > 2 ? (uint64_t)n_seq - 2 : 0;
        uint64_t blocks = (uint64_t)blocks_for(n_tokens), bytes;
        /* A window may begin and end within a block. */
        const uint64_t in_window = kind == DPI_KV_WINDOW ? (uint64_t)blocks_for(kv->window) + 1 : 0;
        if (kind == DPI_KV_ALL || blocks <= in_window)
            blocks = blocks * (uint64_t)n_seq - (uint64_t)(n_prefix / DPI_KV_BLOCK) * others;
        else /* the two that others are forked from are pinned there */
            blocks = in_window * ((uint64_t)n_seq + (n_prefix > 0 && n_seq > 1 ? 2 : 0));
        if (!dpi_mul_u64(blocks, kv->block_bytes[kind], &bytes) ||
            !dpi_add_u64(*n_bytes, bytes, n_bytes))
            return false;
    }
    return true;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static bool make_table(const dpi_kv_cache *kv, dpi_kv_list *list) {
    if (!list->blocks)
        list->blocks = dpi_calloc((size_t)kv->max_blocks, sizeof *list->blocks);
    return list->blocks != NULL;
}

static bool make_state(const dpi_kv_cache *kv, unsigned char **state) {
    if (!*state && kv->state_bytes > 0)
        *state = dpi_calloc(1, kv->state_bytes);
    return *state || kv->state_bytes == 0;
}

static bool add_block(const dpi_kv_cache *kv, dpi_kv_kind kind, dpi_kv_list *list) {
    block_head *head = dpi_calloc(1, kv->block_bytes[kind]);
    if (!head)
        return false;
    head->n_users = 1;
    list->blocks[list->n++] = (unsigned char *)(head + 1);
    return true;
}

static void give_back(const dpi_kv_cache *kv, int32_t kind, dpi_kv_list *list, int32_t b) {
    if (!list->blocks[b])
        return;
    block_head *head = head_of(list->blocks[b]);
    if (--head->n_users == 0)
        dpi_wipe_free(head, kv->block_bytes[kind]);
    list->blocks[b] = NULL;
}

static dpi_status no_memory(const dpi_kv_cache *kv, int32_t kind, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a KV block of %llu bytes",
                    (unsigned long long)kv->block_bytes[kind]);
}

static dpi_status no_state(const dpi_kv_cache *kv, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a recurrent state of %llu bytes",
                    (unsigned long long)kv->state_bytes);
}

dpi_status dpi_kv_reserve(dpi_kv_cache *kv, int32_t seq, dpi_kv_kind kind, int32_t length,
                          dpi_error *err) {
    dpi_kv_list *list = &kv->seqs[seq].lists[kind];
    if (!make_state(kv, &kv->seqs[seq].state))
        return no_state(kv, err);
    if (kv->block_bytes[kind] == 0)
        return DPI_STATUS_OK;
    bool ok = make_table(kv, list);
    while (ok && (int64_t)list->n * DPI_KV_BLOCK < length)
        ok = add_block(kv, kind, list);
    return ok ? DPI_STATUS_OK : no_memory(kv, kind, err);
}

/* ---- Pins ------------------------------------------------------------------------------------ */

/* The state after a pin's tokens, if these are all. */
static void keep_state(const dpi_kv_cache *kv, const dpi_kv_seq *s) {
    for (int32_t i = 0; i < DPI_PINS_MAX; i++)
        if (s->pinned[i] && s->pins[i] == s->length)
            memcpy(s->pinned[i], s->state, kv->state_bytes);
}

dpi_status dpi_kv_pin(dpi_kv_cache *kv, int32_t seq, int32_t n_tokens, dpi_error *err) {
    dpi_kv_seq *s = &kv->seqs[seq];
    int32_t i = 0;
    while (i < DPI_PINS_MAX && s->pins[i] != 0 && s->pins[i] != n_tokens)
        i++;
    if (i == DPI_PINS_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "pin of a sequence that has %d of them",
                        (int)DPI_PINS_MAX);
    if (!make_state(kv, &s->pinned[i]))
        return no_state(kv, err);
    s->pins[i] = n_tokens;
    keep_state(kv, s);
    return DPI_STATUS_OK;
}

int32_t dpi_kv_until_pin(const dpi_kv_cache *kv, int32_t seq) {
    const dpi_kv_seq *s = &kv->seqs[seq];
    int32_t n = kv->n_ctx - s->length;
    for (int32_t i = 0; kv->state_bytes > 0 && i < DPI_PINS_MAX; i++)
        if (s->pins[i] > s->length && s->pins[i] - s->length < n)
            n = s->pins[i] - s->length;
    return n;
}

/* Whether a fork at one of the pins needs block b. */
static bool is_pinned(const dpi_kv_cache *kv, const dpi_kv_seq *s, int32_t b) {
    bool pinned = false;
    for (int32_t i = 0; i < DPI_PINS_MAX; i++)
        pinned |= b < blocks_for(s->pins[i]) &&
                  b >= first_seen(kv, DPI_KV_WINDOW, s->pins[i]) / DPI_KV_BLOCK;
    return pinned;
}

void dpi_kv_advance(dpi_kv_cache *kv, int32_t seq, int32_t n) {
    dpi_kv_seq *s = &kv->seqs[seq];
    dpi_kv_list *list = &s->lists[DPI_KV_WINDOW];
    s->length += n;
    keep_state(kv, s);
    const int32_t first = first_seen(kv, DPI_KV_WINDOW, s->length) / DPI_KV_BLOCK;
    for (; list->n_old < list->n && list->n_old < first; list->n_old++)
        if (!is_pinned(kv, s, list->n_old))
            give_back(kv, DPI_KV_WINDOW, list, list->n_old);
}

/* ---- Forks ----------------------------------------------------------------------------------- */

/* The state after the first n_tokens tokens; NULL: it is not known. */
static const unsigned char *state_after(const dpi_kv_seq *s, int32_t n_tokens) {
    const unsigned char *state = n_tokens == s->length ? s->state : NULL;
    for (int32_t i = 0; i < DPI_PINS_MAX; i++)
        state = s->pins[i] == n_tokens && s->pinned[i] ? s->pinned[i] : state;
    return state;
}

static bool is_forkable(const dpi_kv_cache *kv, const dpi_kv_seq *s, int32_t n_tokens) {
    const dpi_kv_list *list = &s->lists[DPI_KV_WINDOW];
    bool has_all = kv->state_bytes == 0 || state_after(s, n_tokens);
    for (int32_t b = first_seen(kv, DPI_KV_WINDOW, n_tokens) / DPI_KV_BLOCK;
         list->blocks && b < blocks_for(n_tokens); b++)
        has_all &= list->blocks[b] != NULL;
    return has_all;
}

int32_t dpi_kv_forkable(const dpi_kv_cache *kv, int32_t seq, int32_t n_tokens) {
    const dpi_kv_seq *s = &kv->seqs[seq];
    int32_t most = 0;
    if (is_forkable(kv, s, n_tokens))
        return n_tokens;
    for (int32_t i = 0; i < DPI_PINS_MAX; i++)
        if (s->pins[i] > most && s->pins[i] <= n_tokens && is_forkable(kv, s, s->pins[i]))
            most = s->pins[i];
    return most;
}

/* Copies the first n positions of a head's K, whose lines are [panel, dimension, position]. */
static void copy_k(const dpi_kv_cache *kv, uint64_t position_bytes, unsigned char *to,
                   const unsigned char *from, int32_t n) {
    const uint64_t panels = (uint64_t)n / DPI_KV_PANEL * DPI_KV_PANEL * position_bytes;
    const uint64_t rest = (uint64_t)n % DPI_KV_PANEL * kv->item_bytes;
    const uint64_t line = DPI_KV_PANEL * kv->item_bytes; /* one value of a panel's positions */
    memcpy(to, from, panels);
    for (uint64_t i = panels; rest > 0 && i < panels + DPI_KV_PANEL * position_bytes; i += line)
        memcpy(to + i, from + i, rest);
}

/* Copies the first n positions of a block. */
static void copy_positions(const dpi_kv_cache *kv, dpi_kv_kind kind, unsigned char *to,
                           const unsigned char *from, int32_t n) {
    for (const dpi_kv_layer *l = kv->layers; l < kv->layers + kv->n_layer; l++)
        for (int32_t h = 0; l->kind == kind && h < l->n_heads; h++) {
            const uint64_t k = l->k_at + (uint64_t)h * l->k_head;
            const uint64_t v = l->v_at + (uint64_t)h * l->v_head;
            copy_k(kv, l->k_line, to + k, from + k, n);
            memcpy(to + v, from + v, (uint64_t)n * l->v_line);
        }
}

static dpi_status fork_list(dpi_kv_cache *kv, dpi_kv_kind kind, const dpi_kv_list *from,
                            dpi_kv_list *to, int32_t n_tokens, dpi_error *err) {
    const int32_t n_full = n_tokens / DPI_KV_BLOCK, n_rest = n_tokens % DPI_KV_BLOCK;
    if (kv->block_bytes[kind] == 0)
        return DPI_STATUS_OK;
    if (!make_table(kv, to))
        return no_memory(kv, kind, err);
    to->n = to->n_old = first_seen(kv, (int32_t)kind, n_tokens) / DPI_KV_BLOCK;
    for (; to->n < n_full; to->n++) {
        to->blocks[to->n] = from->blocks[to->n];
        head_of(to->blocks[to->n])->n_users++;
    }
    if (n_rest > 0) {
        if (!add_block(kv, kind, to))
            return no_memory(kv, kind, err);
        copy_positions(kv, kind, to->blocks[n_full], from->blocks[n_full], n_rest);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_kv_fork(dpi_kv_cache *kv, int32_t from, int32_t to, int32_t n_tokens,
                       dpi_error *err) {
    const dpi_kv_seq *f = &kv->seqs[from];
    dpi_kv_seq *t = &kv->seqs[to];
    dpi_status status =
        make_state(kv, &t->state) ? DPI_STATUS_OK : no_state(kv, err);
    if (status == DPI_STATUS_OK && t->state)
        memcpy(t->state, state_after(f, n_tokens), kv->state_bytes);
    for (dpi_kv_kind kind = 0; status == DPI_STATUS_OK && kind < DPI_KV_KINDS; kind++)
        status = fork_list(kv, kind, &f->lists[kind], &t->lists[kind], n_tokens, err);
    if (status == DPI_STATUS_OK)
        t->length = n_tokens;
    else
        dpi_kv_reset(kv, to);
    return status;
}

void dpi_kv_reset(dpi_kv_cache *kv, int32_t seq) {
    dpi_kv_seq *s = &kv->seqs[seq];
    for (int32_t kind = 0; kind < DPI_KV_KINDS; kind++) {
        for (int32_t b = 0; b < s->lists[kind].n; b++)
            give_back(kv, kind, &s->lists[kind], b);
        free(s->lists[kind].blocks);
    }
    dpi_wipe_free(s->state, kv->state_bytes);
    for (int32_t i = 0; i < DPI_PINS_MAX; i++)
        dpi_wipe_free(s->pinned[i], kv->state_bytes);
    memset(s, 0, sizeof *s);
}
