/* pack_model.c - a model's matrices in the layout that the kernels read (pack.h), and back. */
#include <math.h>
#include <omp.h>

#include "mem.h"
#include "model.h"
#include "status.h"

enum {
    ALIGNMENT = 64,
    FAULT_BYTES = 1 << 16, /* what Linux maps of a cached file around a page that is touched */
};

static uint64_t group_bytes(const dpi_mat *mat) {
    return DPI_GROUP * dpi_type_row_bytes(mat->type, mat->n_in);
}

static int64_t n_groups(const dpi_mat *mat) { return (mat->n_out + DPI_GROUP - 1) / DPI_GROUP; }

void dpi_mat_row(const dpi_mat *mat, int64_t row, float *out) {
    if (!mat->layout) {
        uint64_t row_bytes = dpi_type_row_bytes(mat->type, mat->n_in);
        mat->type->dequantize(mat->data + (uint64_t)row * row_bytes, out, mat->n_in);
        return;
    }
    const unsigned char *group = mat->data + (uint64_t)(row / DPI_GROUP) * group_bytes(mat);
    int64_t n_blocks = mat->n_in / mat->type->block;
    unsigned char blocks[2 * DPI_MAX_BLOCK]; /* no type has more than 2 bytes a weight */
    int64_t at_once = (int64_t)sizeof blocks / mat->type->block_bytes;
    for (int64_t b = 0; b < n_blocks; b += at_once) {
        int64_t n = n_blocks - b < at_once ? n_blocks - b : at_once;
        dpi_unpack_blocks(mat->layout, group, (int32_t)(row % DPI_GROUP), b, n, n_blocks, blocks);
        mat->type->dequantize(blocks, out + b * mat->type->block, n * mat->type->block);
    }
}

/* Every matrix that is multiplied with. The embedding is only looked up, unless it is the output
 * head as well. */
static dpi_mat *matrix_at(dpi_model *m, int32_t i) {
    enum { PER_LAYER = 7 };
    if (i == 0)
        return m->tied_output ? &m->embedding : &m->output;
    i--;
    if (i >= m->config.n_layer * PER_LAYER)
        return NULL;
    dpi_layer *l = &m->layers[i / PER_LAYER];
    dpi_mat *const mats[PER_LAYER] = {&l->wq, &l->wk, &l->wv, &l->wo, &l->w_gate, &l->w_up,
                                      &l->w_down};
    return mats[i % PER_LAYER];
}

static uint64_t padded_bytes(const dpi_mat *mat) {
    uint64_t n = (uint64_t)n_groups(mat) * group_bytes(mat);
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void pack(dpi_mat *mat, const dpi_layout *layout, unsigned char *to) {
    uint64_t row_bytes = dpi_type_row_bytes(mat->type, mat->n_in), bytes = group_bytes(mat);
    int64_t groups = n_groups(mat), n_blocks = mat->n_in / mat->type->block;
#pragma omp parallel for schedule(static) num_threads(dpi_processors())
    for (int64_t g = 0; g < groups; g++) {
        int64_t left = mat->n_out - g * DPI_GROUP;
        dpi_pack_group(layout, mat->data + (uint64_t)(g * DPI_GROUP) * row_bytes,
                       (int32_t)(left < DPI_GROUP ? left : DPI_GROUP), n_blocks,
                       to + (uint64_t)g * bytes);
    }
    mat->data = to;
    mat->layout = layout;
}

dpi_status dpi_model_pack(dpi_model *m, dpi_error *err) {
    uint64_t total = 0;
    /* No sum here can overflow: each matrix is in the file, and padding adds at most 15 rows. */
    for (int32_t i = 0; matrix_at(m, i); i++)
        if (dpi_layout_find(matrix_at(m, i)->type->id))
            total += padded_bytes(matrix_at(m, i));
    if (total == 0)
        return DPI_STATUS_OK;
    m->packed = dpi_map(total);
    if (!m->packed)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for %llu bytes of weights",
                        (unsigned long long)total);
    m->packed_bytes = total;
    unsigned char *to = m->packed;
    for (int32_t i = 0; matrix_at(m, i); i++) {
        dpi_mat *mat = matrix_at(m, i);
        const dpi_layout *layout = dpi_layout_find(mat->type->id);
        if (!layout)
            continue;
        const unsigned char *from = mat->data;
        pack(mat, layout, to);
        dpi_gguf_release(m->gguf, from, (uint64_t)mat->n_out * group_bytes(mat) / DPI_GROUP);
        to += padded_bytes(mat);
    }
    if (m->tied_output)
        m->output = m->embedding;
    return DPI_STATUS_OK;
}

static uint64_t file_bytes(const dpi_mat *mat) {
    return (uint64_t)mat->n_out * dpi_type_row_bytes(mat->type, mat->n_in);
}

uint64_t dpi_model_unread_bytes(const dpi_model *model, int64_t n_tokens) {
    dpi_model m = *model;
    uint64_t n = 0;
    if (m.vocab_only || !dpi_gguf_is_mapped(m.gguf))
        return 0;
    for (int32_t i = 0; matrix_at(&m, i); i++)
        if (!matrix_at(&m, i)->layout)
            n += file_bytes(matrix_at(&m, i));
    /* So many windows of the embedding are hit by n_tokens rows anywhere in it, on average. */
    double windows = (double)file_bytes(&m.embedding) / FAULT_BYTES;
    if (!m.tied_output)
        n += (uint64_t)(-expm1(-(double)n_tokens / windows) * windows * FAULT_BYTES);
    return n;
}
