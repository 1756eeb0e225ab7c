/* partition.c - see partition.h. */
#include "pipeline/partition.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/memory.h"

enum { KEY_BYTES = 16 };

struct dpi_partition {
    dpi_partition_options options;
    size_t n_records;
    uint8_t *key;      /* [KEY_BYTES] */
    /* Assigned or by label, else NULL; private. */
    int32_t *batch_of; /* [n_records] -1: in none */
    size_t *records;   /* [n_records] by batch, then in their order */
    size_t *begin;     /* [n_batches + 1] of a batch in records */
};

/* Random bytes from the library's source: a draw among 256 batches is one. */
static dpi_status draw_key(dpi_partition *p, dpi_error *err) {
    for (size_t i = 0; i < KEY_BYTES; i++) {
        int32_t byte;
        DPI_TRY(dpi_assign_secret(1, 256, p->options.random, p->options.random_user, &byte, err));
        p->key[i] = (uint8_t)byte;
    }
    return DPI_STATUS_OK;
}

static dpi_status make_key(dpi_partition *p, dpi_error *err) {
    p->key = dpi_key_alloc(KEY_BYTES);
    if (!p->key)
        return dpi_no_memory(err, "the batches");
    if (!p->options.key)
        return draw_key(p, err);
    memcpy(p->key, p->options.key, KEY_BYTES);
    return DPI_STATUS_OK;
}

dpi_status dpi_partition_create(const dpi_partition_options *options, size_t n_records,
                                dpi_partition **partition, dpi_error *err) {
    dpi_partition *p = dpi_private_malloc(sizeof *p);
    if (!p)
        return dpi_no_memory(err, "the batches");
    *p = (dpi_partition){.options = *options, .n_records = n_records};
    dpi_status status = DPI_STATUS_OK;
    const bool assigned = dpi_partition_is_assigned(p);
    if (assigned || options->by_label) {
        p->batch_of = n_records > SIZE_MAX / sizeof *p->batch_of
                          ? NULL
                          : dpi_private_malloc(n_records * sizeof *p->batch_of);
        status = !p->batch_of ? dpi_no_memory(err, "the batches")
                 : assigned   ? make_key(p, err)
                              : status;
    }
    if (status == DPI_STATUS_OK)
        *partition = p;
    else
        dpi_partition_free(p);
    return status;
}

void dpi_partition_free(dpi_partition *p) {
    if (!p)
        return;
    dpi_private_free(p->batch_of);
    dpi_private_free(p->records);
    dpi_private_free(p->begin);
    dpi_key_free(p->key, KEY_BYTES);
    dpi_private_free(p);
}

bool dpi_partition_is_assigned(const dpi_partition *p) {
    return p->options.by_content || p->options.subsample > 0;
}

dpi_status dpi_partition_assign(dpi_partition *p, size_t i, dpi_batch_range range,
                                const char *text, size_t n_bytes, int32_t *batch, dpi_error *err) {
    const dpi_partition_options *o = &p->options;
    *batch = -1;
    if (range.n > 0 && o->subsample > 0)
        DPI_TRY(dpi_assign_secret(o->subsample, range.n, o->random, o->random_user, batch, err));
    else if (range.n > 0 && text)
        DPI_TRY(dpi_assign_hash(p->key, text, n_bytes, range.n, batch, err));
    *batch += *batch >= 0 ? range.first : 0;
    p->batch_of[i] = *batch;
    return DPI_STATUS_OK;
}

void dpi_partition_put(dpi_partition *p, size_t i, int32_t batch) { p->batch_of[i] = batch; }

void dpi_partition_narrow(dpi_partition *p, size_t i, dpi_batch_range range) {
    const int64_t hash = p->batch_of[i];
    p->batch_of[i] = hash < 0 || range.n == 0
                         ? -1
                         : range.first + (int32_t)(hash * range.n / DPI_BATCHES_MOST);
}

/* Counting: where each batch begins, then each record into the next place of its batch. */
dpi_status dpi_partition_index(dpi_partition *p, dpi_error *err) {
    const size_t n_batches = (size_t)p->options.n_batches;
    p->begin = dpi_private_malloc((n_batches + 2) * sizeof *p->begin);
    p->records = dpi_private_malloc(p->n_records * sizeof *p->records);
    if (!p->begin || !p->records)
        return dpi_no_memory(err, "the batches");
    size_t *next = p->begin + 1; /* next[b]: begin of b, and at the end that of b + 1 */
    for (size_t b = 0; b < n_batches + 2; b++)
        p->begin[b] = 0;
    for (size_t i = 0; i < p->n_records; i++)
        if (p->batch_of[i] >= 0)
            next[p->batch_of[i] + 1]++;
    for (size_t b = 0; b < n_batches; b++)
        next[b + 1] += next[b];
    for (size_t i = 0; i < p->n_records; i++)
        if (p->batch_of[i] >= 0)
            p->records[next[p->batch_of[i]]++] = i;
    return DPI_STATUS_OK;
}

void dpi_partition_batch(const dpi_partition *p, int32_t b, dpi_batch *batch) {
    if (p->batch_of) {
        batch->records = p->records + p->begin[b];
        batch->first = 0;
        batch->n_records = p->begin[b + 1] - p->begin[b];
        return;
    }
    const size_t n_slots = (size_t)p->options.n_slots, first = (size_t)b * n_slots;
    *batch = (dpi_batch){.first = first};
    if (first < p->n_records)
        batch->n_records = p->n_records - first < n_slots ? p->n_records - first : n_slots;
}

size_t dpi_partition_largest(const dpi_partition *p) {
    const bool assigned = dpi_partition_is_assigned(p);
    size_t largest = assigned ? 0 : (size_t)p->options.n_slots;
    for (int32_t b = 0; assigned && b < p->options.n_batches; b++) {
        const size_t n = p->begin[b + 1] - p->begin[b];
        largest = n > largest ? n : largest;
    }
    return largest;
}
