/* pack_model.c - a model's matrices in panels (kernels/pack.h): where, when, and how far it is. The
 * largest matrix is the last: packing looks at the time after each. */
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

static int64_t n_panels(const dpi_matrix *w) {
    return (w->n_out + DPI_PANEL_ROWS - 1) / DPI_PANEL_ROWS;
}

static uint64_t panel_bytes(const dpi_matrix *w) {
    return DPI_PANEL_ROWS * dpi_type_row_bytes(w->type, w->n_in);
}

static uint64_t file_bytes(const dpi_matrix *w) {
    return (uint64_t)w->n_out * dpi_type_row_bytes(w->type, w->n_in);
}

static uint64_t padded_bytes(const dpi_matrix *w) {
    uint64_t n = (uint64_t)n_panels(w) * panel_bytes(w);
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void pack(const dpi_model *m, const dpi_matrix *w, int32_t n_threads) {
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (int64_t i = 0; i < n_panels(w); i++)
        dpi_matrix_pack(w, i * DPI_PANEL_ROWS, (i + 1) * DPI_PANEL_ROWS,
                        w->panels + (uint64_t)i * panel_bytes(w));
    atomic_store_explicit(w->is_packed, true, memory_order_release);
    dpi_gguf_release(m->gguf, w->rows, file_bytes(w));
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
    for (int32_t i = 0; dpi_model_matrix(m, i); i++)
        if (dpi_type_is_packed(dpi_model_matrix(m, i)->type)) {
            total += padded_bytes(dpi_model_matrix(m, i));
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
    for (int32_t i = 0; dpi_model_matrix(m, i); i++) {
        dpi_matrix *w = dpi_model_matrix(m, i);
        if (!dpi_type_is_packed(w->type))
            continue;
        w->panels = to;
        w->is_packed = &p->is_packed[p->n];
        p->mats[p->n++] = w;
        to += padded_bytes(w);
    }
    if (m->tied_output) {
        const float *bias = m->output.bias;
        m->output = m->embedding;
        m->output.bias = bias;
    }
    pack_on(m, dpi_gguf_keeps(m->gguf) ? seconds : INFINITY);
    return DPI_STATUS_OK;
}

void dpi_model_before_pass(const dpi_model *m) {
    dpi_packed *p = m->packed;
    if (p && !atomic_load(&p->is_done) && atomic_fetch_add(&p->n_passes, 1) > 0)
        pack_on(m, INFINITY);
}

/* So many bytes around n_tokens rows anywhere in a matrix are read, on average. */
static uint64_t bytes_of_rows(const dpi_matrix *w, int64_t n_tokens) {
    const double windows = (double)file_bytes(w) / FAULT_BYTES;
    return (uint64_t)(-expm1(-(double)n_tokens / windows) * windows * FAULT_BYTES);
}

uint64_t dpi_model_unread_bytes(const dpi_model *m, int64_t n_tokens) {
    uint64_t n = 0;
    const bool mapped = dpi_gguf_is_mapped(m->gguf);
    for (int32_t i = 0; dpi_model_matrix(m, i); i++)
        if (dpi_model_matrix(m, i)->panels ? !dpi_matrix_is_packed(dpi_model_matrix(m, i)) : mapped)
            n += file_bytes(dpi_model_matrix(m, i));
    if (mapped && !m->vocab_only && !m->tied_output)
        n += bytes_of_rows(&m->embedding, n_tokens);
    if (mapped && m->input_embedding.type)
        n += bytes_of_rows(&m->input_embedding, n_tokens);
    return n;
}
