/* ops.c - the operations of a pass but attention (pass.h). */
#include <math.h>
#include <string.h>

#include "engine/pass.h"

_Static_assert((int)DPI_CHUNK == (int)DPI_GEMM_ROWS, "a prompt chunk is one fixed BLAS shape");

/* This thread's room for DPI_TILE_OUT rows of any matrix. */
static float *scratch_of(const dpi_pass *p) {
    const dpi_work *work = &p->s->work;
    return work->scratch + (int64_t)p->thread * DPI_TILE_OUT * work->max_in;
}

static int64_t n_tiles(const dpi_matrix *w) { return dpi_n_tiles(w->n_out); }

/* The columns [*begin, *end) of tiles [first, last). */
static void columns(const dpi_matrix *w, int64_t first, int64_t last, int64_t *begin,
                    int64_t *end) {
    *begin = first * DPI_TILE_OUT;
    *end = last * DPI_TILE_OUT < w->n_out ? last * DPI_TILE_OUT : w->n_out;
}

/* Prefetches what this thread reads first of a matrix. */
static void prefetch(const dpi_pass *p, const dpi_matrix *w) {
    int64_t begin, end;
    if (!w)
        return;
    dpi_pass_share(p, n_tiles(w), &begin, &end);
    columns(w, begin, end, &begin, &end);
    dpi_matrix_prefetch(w, begin, end);
}

/* ---- Inputs of products ---------------------------------------------------------------------- */

/* Brings the cache lines that this thread is about to fill into its own cache, all at once: stores
 * that fill them would wait for a few at a time. */
static void own_lines(void *p, size_t n_bytes) {
    enum { LINE = 64 };
    for (size_t i = 0; i < n_bytes; i += LINE)
        ((unsigned char *)p)[i] = 0;
}

/* This thread's columns of an input in 8 bits. */
static void quantize(const dpi_pass *p, const dpi_input *in, int32_t form) {
    int64_t begin, end;
    dpi_pass_columns(p, in->n, &begin, &end);
    for (int32_t first = 0, rows; first < in->n_rows; first += rows) {
        rows = dpi_row_block(in->n_rows, first);
        dpi_q8 to = dpi_q8_at(&p->s->work.q8, first, in->n);
        to = dpi_q8_from(&to, rows, begin);
        size_t n_blocks = (size_t)((end - begin) / DPI_Q8_BLOCK * rows);
        if (dpi_q8_has_plain(form)) {
            own_lines(to.plain, n_blocks * sizeof *to.plain);
            own_lines(to.sums, n_blocks * sizeof *to.sums);
        }
        if (dpi_q8_has_winograd(form))
            own_lines(to.winograd, n_blocks * sizeof *to.winograd);
        in->kernels->quantize_q8(&to, rows, in->x + (in->first + first) * in->n + begin, in->n,
                                 end - begin, form);
    }
}

/* BLAS where prompts go through it; NULL elsewhere. */
static const dpi_blas *blas_of(const dpi_pass *p) {
    return p->s->blas.sgemm && p->batch->is_prompt ? &p->s->blas : NULL;
}

/* Where the rows of a matrix's adapter stand. */
static float *low_of(const dpi_pass *p, const dpi_adapter *adapter, int64_t r) {
    return dpi_pass_row(p, p->s->work.low, r) +
           adapter->place * (int64_t)p->s->model->adapters->max_rank;
}

/* scale A x of every adapter among n matrices: each is one thread's. */
static void adapt_input(dpi_pass *p, dpi_rows x, const dpi_matrix *const *w, int32_t n) {
    const dpi_kernels *k = &p->s->kernels;
    for (int32_t i = 0; i < n; i++) {
        const dpi_adapter *adapter = w[i]->adapter;
        if (!adapter)
            continue;
        p->has_written = true;
        if (i % p->n_threads != p->thread)
            continue;
        k->matmul_f32(low_of(p, adapter, 0), p->s->work.low.n, dpi_pass_row(p, x, 0), x.n,
                      p->n_rows, adapter->a, x.n, adapter->rank);
        for (int32_t r = 0; r < p->n_rows; r++)
            for (int32_t j = 0; j < adapter->rank; j++)
                low_of(p, adapter, r)[j] *= adapter->scale;
    }
    dpi_pass_meet(p);
}

/* What some matrices multiply with: the rows of x, of which this thread has its own columns. All
 * threads have written theirs when it returns, and what adapters make of them. */
static dpi_input input_of(dpi_pass *p, dpi_rows x, const dpi_matrix *const *w, int32_t n) {
    dpi_session *s = p->s;
    dpi_input in = {.kernels = &s->kernels, .x = x.at, .n = x.n, .first = p->first,
                    .n_rows = p->n_rows, .is_exact = s->exact != 0};
    int32_t form = dpi_matrix_q8_form(&in, w, n);
    if (form >= 0) {
        quantize(p, &in, form);
        in.q8 = dpi_q8_in(&s->work.q8, form);
        p->has_written = true;
    }
    dpi_pass_meet(p);
    adapt_input(p, x, w, n);
    return in;
}

/* ---- Products -------------------------------------------------------------------------------- */

/* y += B low in columns [begin, end), begin that of a tile. */
static void adapt_output(const dpi_pass *p, const dpi_linear *l, int64_t begin, int64_t end) {
    const dpi_adapter *adapter = l->w->adapter;
    float *tile = p->s->work.head + (int64_t)p->thread * p->s->max_rows * DPI_TILE_OUT;
    for (int64_t o = begin, stop; o < end; o = stop) {
        stop = o + DPI_TILE_OUT < end ? o + DPI_TILE_OUT : end;
        p->s->kernels.matmul_f32(tile, DPI_TILE_OUT, low_of(p, adapter, 0), p->s->work.low.n,
                                 p->n_rows, adapter->b + o * adapter->rank, adapter->rank,
                                 (int32_t)(stop - o));
        for (int32_t r = 0; r < p->n_rows; r++)
            p->s->kernels.add(dpi_pass_row(p, l->y, r) + o, tile + r * DPI_TILE_OUT, stop - o);
    }
}

/* Tiles [first, last) of y = w x, with w's adapter and its bias. */
static void linear(const dpi_pass *p, const dpi_linear *l, const dpi_input *in, int64_t first,
                   int64_t last) {
    int64_t begin, end;
    columns(l->w, first, last, &begin, &end);
    dpi_matrix_multiply(l->w, in, dpi_pass_row(p, l->y, 0) + begin, l->y.n, begin, end,
                        scratch_of(p));
    if (l->w->adapter)
        adapt_output(p, l, begin, end);
    for (int32_t r = 0; l->w->bias && r < p->n_rows; r++)
        p->s->kernels.add(dpi_pass_row(p, l->y, r) + begin, l->w->bias + begin, end - begin);
}

/* Where tile i of several products is: tile *tile of product *which, with n of them from there on
 * in one piece. */
typedef struct tile_place {
    int32_t which;
    int64_t tile, n;
} tile_place;

/* Of q, k and v, or some of them, in the order of the heads that threads attend with: each thread's
 * share of q, then those of k and v. */
static tile_place place_by_heads(const dpi_pass *p, const dpi_linear *const *l, int32_t n_l,
                                 int64_t i) {
    int64_t parts = p->n_threads, all = 0;
    for (int32_t k = 0; k < n_l; k++) {
        all += n_tiles(l[k]->w);
        parts = n_tiles(l[k]->w) % p->n_threads == 0 ? parts : 1;
    }
    int64_t part = i / (all / parts);
    tile_place at = {0};
    i %= all / parts;
    for (; i >= n_tiles(l[at.which]->w) / parts; at.which++)
        i -= n_tiles(l[at.which]->w) / parts;
    at.n = n_tiles(l[at.which]->w) / parts;
    at.tile = part * at.n + i;
    at.n -= i;
    return at;
}

/* Of gate and up, which have the same columns: some of gate's, then those of up, so that a thread
 * computes both of its columns and still reads weights in long streams. */
static tile_place place_by_columns(const dpi_pass *p, const dpi_linear *const *l, int32_t n_l,
                                   int64_t i) {
    enum { STREAM = 16 }; /* tiles */
    (void)p, (void)n_l;
    int64_t first = i / (2 * STREAM) * STREAM, all = n_tiles(l[0]->w) - first;
    all = all < STREAM ? all : STREAM;
    i -= 2 * first;
    return (tile_place){i < all ? 0 : 1, first + i % all, all - i % all};
}

/* One product after the other. */
static tile_place place_in_order(const dpi_pass *p, const dpi_linear *const *l, int32_t n_l,
                                 int64_t i) {
    tile_place at = {0};
    (void)p, (void)n_l;
    for (; i >= n_tiles(l[at.which]->w); at.which++)
        i -= n_tiles(l[at.which]->w);
    at.tile = i;
    at.n = n_tiles(l[at.which]->w) - i;
    return at;
}

/* Several products of one input. */
static void linear_of_all(dpi_pass *p, const dpi_linear *const *l, int32_t n_l, dpi_rows x,
                          tile_place (*place)(const dpi_pass *, const dpi_linear *const *, int32_t,
                                             int64_t)) {
    const dpi_matrix *w[4];
    int64_t n_all = 0;
    for (int32_t k = 0; k < n_l; k++) {
        w[k] = l[k]->w;
        n_all += n_tiles(w[k]);
    }
    dpi_input in = input_of(p, x, w, n_l);
    in.blas = blas_of(p);
    dpi_tiles t = dpi_pass_tiles(p, n_all);
    for (int64_t i, last, n; dpi_tiles_next(&t, &i, &last);)
        for (; i < last; i += n) {
            tile_place at = place(p, l, n_l, i);
            n = at.n < last - i ? at.n : last - i;
            linear(p, l[at.which], &in, at.tile, at.tile + n);
        }
    prefetch(p, w[n_l - 1]->next);
    p->has_written = true;
}

void dpi_pass_project(dpi_pass *p, const dpi_linear *q, const dpi_linear *k, const dpi_linear *v,
                      dpi_rows x) {
    const dpi_linear *const all[] = {q, k, v}, *l[3];
    int32_t n = 0;
    for (int32_t i = 0; i < 3; i++)
        if (all[i]->w->type)
            l[n++] = all[i];
    linear_of_all(p, l, n, x, place_by_heads);
}

void dpi_pass_project_all(dpi_pass *p, const dpi_linear *const *products, int32_t n, dpi_rows x) {
    linear_of_all(p, products, n, x, place_in_order);
}

/* y = w x, all columns of it when it returns. */
static void product(dpi_pass *p, dpi_rows y, const dpi_matrix *w, dpi_rows x) {
    const dpi_linear l = {.y = y, .w = w};
    linear_of_all(p, (const dpi_linear *const[]){&l}, 1, x, place_by_heads);
    dpi_pass_meet(p);
}

/* This thread's columns of y = act(y) * up, `up` the columns from `first` on. */
static void gate(dpi_pass *p, dpi_rows y, dpi_rows up, int64_t first) {
    const dpi_kernels *k = &p->s->kernels;
    int64_t begin, end;
    dpi_pass_columns(p, y.n, &begin, &end);
    for (int32_t r = 0; r < p->n_rows; r++)
        (p->s->model->config.arch->has_gelu ? k->geglu : k->swiglu)(
            dpi_pass_row(p, y, r) + begin, dpi_pass_row(p, up, r) + first + begin, end - begin);
    p->has_written = true;
}

void dpi_pass_gated(dpi_pass *p, dpi_rows y, const dpi_matrix *w_gate, const dpi_matrix *w_up,
                    dpi_rows x) {
    const dpi_linear to_gate = {.y = y, .w = w_gate};
    const dpi_linear to_up = {.y = {p->s->work.up.at, y.n}, .w = w_up};
    linear_of_all(p, (const dpi_linear *const[]){&to_gate, &to_up}, 2, x, place_by_columns);
    dpi_pass_meet(p);
    gate(p, y, to_up.y, 0);
}

void dpi_pass_gate_input(dpi_pass *p, dpi_rows y, const dpi_matrix *w, dpi_rows x, dpi_rows inputs,
                         int32_t layer) {
    product(p, y, w, x);
    gate(p, y, inputs, layer * y.n);
}

/* ---- The residual stream --------------------------------------------------------------------- */

/* The sums of squares of row r of x, mostly the residual stream, in the columns of some tiles. They
 * are summed up by tiles so that which thread has computed which does not change a bit. */
static void sum_squares(const dpi_pass *p, dpi_rows to, dpi_rows x, int64_t r, int64_t first,
                        int64_t last) {
    float *squares = dpi_pass_row(p, to, r);
    for (int64_t i = first; i < last; i++) {
        int64_t at = i * DPI_TILE_OUT, left = x.n - at;
        p->s->kernels.sum_squares(squares + i, dpi_pass_row(p, x, r) + at,
                                  left < DPI_TILE_OUT ? left : DPI_TILE_OUT);
    }
}

/* 1 / sqrt(mean(x^2) + eps) of row r. */
static float by_norm(const dpi_pass *p, dpi_rows squares_of, dpi_rows x, int64_t r) {
    const float *squares = dpi_pass_row(p, squares_of, r);
    double sum = 0;
    for (int64_t i = 0; i < dpi_n_tiles(x.n); i++)
        sum += (double)squares[i];
    return (float)(1 / sqrt(sum / (double)x.n + (double)p->s->model->config.rms_eps));
}

static void multiply(float *x, float by, int64_t n) {
    for (int64_t i = 0; by != 1 && i < n; i++)
        x[i] *= by;
}

/* x += residual_scale * y in the columns of some tiles of W, and its sums of squares. */
static void add(const dpi_pass *p, dpi_rows x, const dpi_linear *l, int64_t first, int64_t last) {
    int64_t begin, end;
    columns(l->w, first, last, &begin, &end);
    for (int32_t r = 0; r < p->n_rows; r++) {
        multiply(dpi_pass_row(p, l->y, r) + begin, p->s->model->config.residual_scale, end - begin);
        p->s->kernels.add(dpi_pass_row(p, x, r) + begin, dpi_pass_row(p, l->y, r) + begin,
                          end - begin);
        sum_squares(p, p->s->work.squares, x, r, first, last);
    }
}

void dpi_pass_add_linear(dpi_pass *p, dpi_rows x, const dpi_matrix *w, dpi_rows in_rows) {
    const dpi_linear l = {.y = p->s->work.out, .w = w};
    dpi_input in = input_of(p, in_rows, &w, 1);
    in.blas = blas_of(p);
    dpi_tiles t = dpi_pass_tiles(p, n_tiles(w));
    for (int64_t first, last; dpi_tiles_next(&t, &first, &last);) {
        linear(p, &l, &in, first, last);
        if (dpi_tiles_stolen(&t))
            add(p, x, &l, first, last);
    }
    add(p, x, &l, t.begin, t.end);
    prefetch(p, w->next);
    p->has_written = true;
}

void dpi_pass_add_normed(dpi_pass *p, dpi_rows x, const dpi_matrix *w, dpi_rows in_rows,
                         const float *weight) {
    const dpi_work *work = &p->s->work;
    const dpi_linear l = {.y = work->out, .w = w};
    dpi_input in = input_of(p, in_rows, &w, 1);
    in.blas = blas_of(p);
    dpi_tiles t = dpi_pass_tiles(p, n_tiles(w));
    for (int64_t first, last; dpi_tiles_next(&t, &first, &last);) {
        linear(p, &l, &in, first, last);
        for (int32_t r = 0; r < p->n_rows; r++)
            sum_squares(p, work->out_squares, l.y, r, first, last);
    }
    prefetch(p, w->next);
    p->has_written = true;
    dpi_pass_meet(p);
    int64_t tile, end_tile, begin, end;
    dpi_pass_share(p, n_tiles(w), &tile, &end_tile);
    columns(w, tile, end_tile, &begin, &end);
    for (int32_t r = 0; r < p->n_rows; r++) {
        float *y = dpi_pass_row(p, l.y, r) + begin;
        p->s->kernels.scale(y, y, weight + begin, by_norm(p, work->out_squares, l.y, r),
                            end - begin);
        p->s->kernels.add(dpi_pass_row(p, x, r) + begin, y, end - begin);
        sum_squares(p, work->squares, x, r, tile, end_tile);
    }
    p->has_written = true;
}

void dpi_pass_rms_norm(dpi_pass *p, dpi_rows y, dpi_rows x, const float *weight) {
    int64_t begin, end;
    dpi_pass_meet(p);
    dpi_pass_columns(p, x.n, &begin, &end);
    for (int64_t r = 0; r < p->n_rows; r++)
        p->s->kernels.scale(dpi_pass_row(p, y, r) + begin, dpi_pass_row(p, x, r) + begin,
                            weight + begin, by_norm(p, p->s->work.squares, x, r), end - begin);
    p->has_written = true;
}

/* x = by x + shift [n_sets, x.n] in this thread's tiles, and its sums of squares; NULL: no shift.
 * Each row takes the set of its sequence. */
static void scale_and_shift(dpi_pass *p, dpi_rows x, float by, const float *shift) {
    int64_t tile, end_tile;
    dpi_pass_meet(p);
    dpi_pass_share(p, dpi_n_tiles(x.n), &tile, &end_tile);
    const int64_t begin = tile * DPI_TILE_OUT, end = end_tile * DPI_TILE_OUT;
    const int64_t n = (end < x.n ? end : x.n) - begin;
    for (int32_t r = 0; r < p->n_rows; r++) {
        multiply(dpi_pass_row(p, x, r) + begin, by, n);
        if (shift)
            p->s->kernels.add(dpi_pass_row(p, x, r) + begin,
                              shift + p->s->vectors[p->s->row_seq[p->first + r]] * x.n + begin, n);
        sum_squares(p, p->s->work.squares, x, r, tile, end_tile);
    }
    p->has_written = true;
}

void dpi_pass_scale(dpi_pass *p, dpi_rows x, float by) { scale_and_shift(p, x, by, NULL); }

void dpi_pass_shift(dpi_pass *p, dpi_rows x, const float *by) { scale_and_shift(p, x, 1, by); }

void dpi_pass_states(dpi_pass *p, dpi_rows x, const dpi_states *wanted, int32_t which) {
    double *sums = wanted->sums + (int64_t)which * x.n;
    int64_t begin, end;
    dpi_pass_meet(p);
    dpi_pass_columns(p, x.n, &begin, &end);
    for (int64_t r = 0; r < p->n_rows; r++) {
        const float *row = dpi_pass_row(p, x, r), by = by_norm(p, p->s->work.squares, x, r);
        for (int64_t i = begin; i < end; i++)
            sums[i] += (double)row[i] * (double)by;
        if (p->thread == 0)
            wanted->sizes[which] += 1 / (double)by;
    }
    p->has_written = true; /* x stays as it is until all have read it */
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* Cosines and sines of a position, in the order of the rotation's kernel. */
static void rotate_to(const dpi_session *s, dpi_rotation rotation, int32_t position, float *cs) {
    const bool in_halves = s->model->config.arch->rotates_halves;
    const int32_t half = s->model->n_rot[rotation] / 2, step = in_halves ? 1 : 2;
    const int32_t sines = in_halves ? half : 1;
    const double magnitude = s->magnitudes[rotation];
    const double *freqs = s->freqs + (int32_t)rotation * (s->model->config.n_rot / 2);
    for (int32_t i = 0; i < half; i++) {
        double angle = position * freqs[i];
        cs[step * i] = (float)(magnitude * cos(angle));
        cs[step * i + sines] = (float)(magnitude * sin(angle));
    }
}

void dpi_pass_embed(dpi_pass *p, dpi_rows x, const dpi_matrix *embedding) {
    dpi_session *s = p->s;
    const dpi_config *c = &s->model->config;
    int64_t begin, end;
    prefetch(p, embedding->next);
    dpi_pass_share(p, p->n_rows, &begin, &end);
    for (int64_t r = begin; r < end; r++) {
        float *cs = dpi_pass_row(p, s->work.cs, r);
        dpi_matrix_row(embedding, s->row_token[r], dpi_pass_row(p, x, r));
        multiply(dpi_pass_row(p, x, r), c->embedding_scale, x.n);
        sum_squares(p, s->work.squares, x, r, 0, dpi_n_tiles(x.n));
        for (int32_t i = 0; i < dpi_model_rotations(s->model); i++)
            rotate_to(s, (dpi_rotation)i, s->row_pos[r], cs + i * c->n_rot);
    }
    p->has_written = true;
}

/* One layer's columns of the inputs: z [n] is w x, e [n] the embedding of the token. */
static void layer_input(const dpi_pass *p, float *z, const float *e, const float *weight,
                        int32_t n) {
    const dpi_config *c = &p->s->model->config;
    const double by = 1 / sqrt((double)c->n_embd), embedding_by = sqrt((double)n);
    float sum = 0;
    p->s->kernels.sum_squares(&sum, z, n);
    const double norm = by / sqrt((double)sum * by * by / n + (double)c->rms_eps);
    for (int32_t i = 0; i < n; i++)
        z[i] = (float)((norm * (double)z[i] * (double)weight[i] + embedding_by * (double)e[i]) *
                       .70710678118654752);
}

void dpi_pass_inputs(dpi_pass *p, dpi_rows y, const dpi_matrix *w, dpi_rows x, const float *weight,
                     const dpi_matrix *embedding) {
    const dpi_session *s = p->s;
    const int32_t n_layer = s->model->config.n_layer, n = s->model->config.n_input;
    int64_t begin, end;
    dpi_pass_share(p, p->n_rows, &begin, &end);
    for (int64_t r = begin; r < end; r++)
        dpi_matrix_row(embedding, s->row_token[r], dpi_pass_row(p, s->work.input_embd, r));
    product(p, y, w, x);
    dpi_pass_share(p, (int64_t)p->n_rows * n_layer, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t r = i / n_layer, at = i % n_layer * n;
        layer_input(p, dpi_pass_row(p, y, r) + at, dpi_pass_row(p, s->work.input_embd, r) + at,
                    weight, n);
    }
    p->has_written = true;
}

void dpi_pass_select_head(dpi_pass *p) {
    p->first = p->batch->first + p->batch->head_first;
    p->n_rows = p->batch->n_head;
}

/* Logits y of tokens from `begin` on: what comes after the product. */
static void finish(const dpi_pass *p, const dpi_matrix *w, float *y, int64_t begin, int64_t n) {
    const dpi_config *c = &p->s->model->config;
    if (w->bias)
        p->s->kernels.add(y, w->bias + begin, n);
    multiply(y, c->logit_scale, n);
    if (c->final_cap > 0)
        p->s->kernels.soft_cap(y, c->final_cap, n);
}

/* Logits of tokens [begin, end). They go where each row's sequence keeps its own, those of several
 * rows through a tile. begin is a multiple of DPI_PANEL_ROWS. */
static void logits(const dpi_pass *p, const dpi_matrix *w, const dpi_input *in, int64_t begin,
                   int64_t end) {
    const dpi_session *s = p->s;
    float *const *dest = s->dest + p->batch->head_first;
    float *tile = s->work.head + (int64_t)p->thread * s->max_rows * DPI_TILE_OUT;
    end = end < w->n_out ? end : w->n_out;
    if (p->n_rows == 1) {
        dpi_matrix_multiply(w, in, dest[0] + begin, end - begin, begin, end, scratch_of(p));
        finish(p, w, dest[0] + begin, begin, end - begin);
        return;
    }
    for (int64_t o = begin, stop; o < end; o = stop) {
        stop = o + DPI_TILE_OUT < end ? o + DPI_TILE_OUT : end;
        dpi_matrix_multiply(w, in, tile, DPI_TILE_OUT, o, stop, scratch_of(p));
        for (int32_t r = 0; r < p->n_rows; r++) {
            finish(p, w, tile + r * DPI_TILE_OUT, o, stop - o);
            memcpy(dest[r] + o, tile + r * DPI_TILE_OUT, (size_t)(stop - o) * sizeof *tile);
        }
    }
}

/* Those of the panels that hold one of the ids. The n-th panel is thread n % n_threads's. */
static void logits_at(const dpi_pass *p, const dpi_matrix *w, const dpi_input *in,
                      const int32_t *ids, int32_t n_ids) {
    int64_t panel = -1, n_panels = 0;
    for (int32_t i = 0; i < n_ids; i++) {
        if (ids[i] / DPI_PANEL_ROWS == panel)
            continue;
        panel = ids[i] / DPI_PANEL_ROWS;
        if (n_panels++ % p->n_threads == p->thread)
            logits(p, w, in, panel * DPI_PANEL_ROWS, (panel + 1) * DPI_PANEL_ROWS);
    }
}

void dpi_pass_logits(dpi_pass *p, const dpi_matrix *w, dpi_rows x, const int32_t *ids,
                     int32_t n_ids) {
    dpi_input in = input_of(p, x, &w, 1);
    if (ids) {
        logits_at(p, w, &in, ids, n_ids);
        return;
    }
    dpi_tiles t = dpi_pass_tiles(p, n_tiles(w));
    for (int64_t first, last; dpi_tiles_next(&t, &first, &last);)
        logits(p, w, &in, first * DPI_TILE_OUT, last * DPI_TILE_OUT);
}

int64_t dpi_pass_logit_products(const dpi_matrix *w, const int32_t *ids, int32_t n_ids) {
    return (ids ? (int64_t)n_ids * DPI_PANEL_ROWS : w->n_out) * w->n_in;
}
