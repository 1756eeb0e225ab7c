/* pack_model.c - a model's matrices in the layout that the kernels read (pack.h), and back. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "dpinfer/process.h"
#include "base/mem.h"
#include "base/status.h"
#include "engine/model.h"

enum {
    ALIGNMENT = 64,
    FAULT_BYTES = 1 << 16, /* what Linux maps of a cached file around a page that is touched */
};

static uint64_t panel_bytes(const dpi_mat *mat) {
    return DPI_PANEL_ROWS * dpi_type_row_bytes(mat->type, mat->n_in);
}

static int64_t n_panels(const dpi_mat *mat) {
    return (mat->n_out + DPI_PANEL_ROWS - 1) / DPI_PANEL_ROWS;
}

void dpi_mat_row(const dpi_mat *mat, int64_t row, float *out) {
    if (!dpi_mat_is_packed(mat)) {
        uint64_t row_bytes = dpi_type_row_bytes(mat->type, mat->n_in);
        mat->type->dequantize(mat->data + (uint64_t)row * row_bytes, out, mat->n_in);
        return;
    }
    const unsigned char *panel = mat->packed + (uint64_t)(row / DPI_PANEL_ROWS) * panel_bytes(mat);
    int64_t n_blocks = mat->n_in / mat->type->block;
    unsigned char blocks[2 * DPI_MAX_BLOCK]; /* no type has more than 2 bytes a weight */
    int64_t at_once = (int64_t)sizeof blocks / mat->type->block_bytes;
    for (int64_t b = 0; b < n_blocks; b += at_once) {
        int64_t n = n_blocks - b < at_once ? n_blocks - b : at_once;
        dpi_panel_unpack(mat->type, panel, (int32_t)(row % DPI_PANEL_ROWS), b, n, n_blocks, blocks);
        mat->type->dequantize(blocks, out + b * mat->type->block, n * mat->type->block);
    }
}

/* Every matrix that is multiplied with, the largest last: packing looks at the time after each. The
 * embedding is only looked up, unless it is the output head as well. */
static dpi_mat *matrix_at(dpi_model *m, int32_t i) {
    enum { PER_LAYER = 7 };
    int32_t n = m->config.n_layer * PER_LAYER;
    if (i >= n)
        return i > n ? NULL : m->tied_output ? &m->embedding : &m->output;
    dpi_layer *l = &m->layers[i / PER_LAYER];
    dpi_mat *const mats[PER_LAYER] = {&l->wq, &l->wk, &l->wv, &l->wo, &l->w_gate, &l->w_up,
                                      &l->w_down};
    return mats[i % PER_LAYER];
}

static uint64_t padded_bytes(const dpi_mat *mat) {
    uint64_t n = (uint64_t)n_panels(mat) * panel_bytes(mat);
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void dpi_mat_pack(const dpi_mat *mat, int64_t begin, int64_t end, unsigned char *to) {
    uint64_t row_bytes = dpi_type_row_bytes(mat->type, mat->n_in);
    for (int64_t row = begin; row < end; row += DPI_PANEL_ROWS, to += panel_bytes(mat)) {
        int64_t left = mat->n_out - row;
        dpi_panel_pack(mat->type, mat->data + (uint64_t)row * row_bytes,
                       (int32_t)(left < DPI_PANEL_ROWS ? left : DPI_PANEL_ROWS),
                       mat->n_in / mat->type->block, to);
    }
}

static void pack(const dpi_model *m, const dpi_mat *mat, int32_t n_threads) {
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (int64_t g = 0; g < n_panels(mat); g++)
        dpi_mat_pack(mat, g * DPI_PANEL_ROWS, (g + 1) * DPI_PANEL_ROWS,
                     mat->packed + (uint64_t)g * panel_bytes(mat));
    atomic_store_explicit(mat->is_packed, true, memory_order_release);
    dpi_gguf_release(m->gguf, mat->data, (uint64_t)mat->n_out * panel_bytes(mat) / DPI_PANEL_ROWS);
}

/* Packs on until `seconds` have passed, or not at all while another thread does. */
static void pack_on(const dpi_model *m, double seconds) {
    dpi_packed *p = m->packed;
    if (atomic_flag_test_and_set(&p->busy))
        return;
    double end = omp_get_wtime() + seconds;
    int32_t n_threads = dpi_process_threads(dpi_processors());
    while (p->n_packed < p->n && (seconds == INFINITY || omp_get_wtime() < end))
        pack(m, p->mats[p->n_packed++], n_threads);
    if (p->n_packed == p->n)
        atomic_store(&p->is_done, true);
    atomic_flag_clear(&p->busy);
}

static dpi_packed *packed_create(int32_t n, uint64_t n_bytes) {
    dpi_packed *p = dpi_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    atomic_flag_clear(&p->busy);
    p->n_bytes = n_bytes;
    p->memory = dpi_map(n_bytes);
    p->mats = dpi_calloc((size_t)n, sizeof *p->mats);
    p->is_packed = dpi_calloc((size_t)n, sizeof *p->is_packed);
    if (!p->memory || !p->mats || !p->is_packed) {
        dpi_packed_free(p);
        return NULL;
    }
    return p;
}

void dpi_packed_free(dpi_packed *p) {
    if (!p)
        return;
    dpi_unmap(p->memory, p->n_bytes);
    free(p->mats);
    free(p->is_packed);
    free(p);
}

dpi_status dpi_model_pack(dpi_model *m, double seconds, dpi_error *err) {
    uint64_t total = 0;
    int32_t n = 0;
    /* No sum here can overflow: each matrix is in the file, and padding adds at most 15 rows. */
    for (int32_t i = 0; matrix_at(m, i); i++)
        if (dpi_type_is_packed(matrix_at(m, i)->type)) {
            total += padded_bytes(matrix_at(m, i));
            n++;
        }
    if (n == 0)
        return DPI_STATUS_OK;
    m->packed = packed_create(n, total);
    if (!m->packed)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for %llu bytes of weights",
                        (unsigned long long)total);
    dpi_packed *p = m->packed;
    unsigned char *to = p->memory;
    for (int32_t i = 0; matrix_at(m, i); i++) {
        dpi_mat *mat = matrix_at(m, i);
        if (!dpi_type_is_packed(mat->type))
            continue;
        mat->packed = to;
        mat->is_packed = &p->is_packed[p->n];
        p->mats[p->n++] = mat;
        to += padded_bytes(mat);
    }
    if (m->tied_output)
        m->output = m->embedding;
    pack_on(m, dpi_gguf_keeps(m->gguf) ? seconds : INFINITY);
    return DPI_STATUS_OK;
}

void dpi_model_before_pass(const dpi_model *m) {
    dpi_packed *p = m->packed;
    if (p && !atomic_load(&p->is_done) && atomic_fetch_add(&p->n_passes, 1) > 0)
        pack_on(m, INFINITY);
}

static uint64_t file_bytes(const dpi_mat *mat) {
    return (uint64_t)mat->n_out * dpi_type_row_bytes(mat->type, mat->n_in);
}

uint64_t dpi_model_unread_bytes(const dpi_model *model, int64_t n_tokens) {
    dpi_model m = *model;
    uint64_t n = 0;
    bool mapped = dpi_gguf_is_mapped(m.gguf);
    if (m.vocab_only)
        return 0;
    for (int32_t i = 0; matrix_at(&m, i); i++)
        if (matrix_at(&m, i)->packed ? !dpi_mat_is_packed(matrix_at(&m, i)) : mapped)
            n += file_bytes(matrix_at(&m, i));
    /* So many windows of the embedding are hit by n_tokens rows anywhere in it, on average. */
    double windows = (double)file_bytes(&m.embedding) / FAULT_BYTES;
    if (mapped && !m.tied_output)
        n += (uint64_t)(-expm1(-(double)n_tokens / windows) * windows * FAULT_BYTES);
    return n;
}
