/* forward.c - one pass through a LLaMA model for a batch of rows, top to bottom.
 *
 * One parallel region per pass; every function below is run by all threads, each taking its share
 * by (thread, n_threads) and of products the tiles that it comes to (tiles.h), with a barrier where
 * the next step reads what others wrote. Shares are cut between output columns or between rows and
 * heads, never inside a reduction, so that neither the thread count nor who came first can change a
 * bit. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "engine/session.h"

_Static_assert((int)DPI_CHUNK == (int)DPI_GEMM_ROWS, "a prompt chunk is one fixed BLAS shape");
_Static_assert(DPI_CHUNK % DPI_KV_BLOCK == 0, "prompt chunks do not straddle KV blocks");

typedef struct pass {
    dpi_session *s;
    const dpi_batch *batch;
    int32_t thread, n_threads;
    dpi_spin spin;
    int32_t n_jobs; /* that this thread has begun */
} pass;

/* Rows [first, first + n_rows) of one activation buffer, the input of products. Where a matrix
 * wants 8-bit activations, work.q8 holds the same rows. */
typedef struct input {
    const float *x; /* [buffer rows, n] */
    int64_t n;
    int32_t first, n_rows;
    int32_t form; /* of work.q8 */
} input;

/* Every thread of the pass gets here before any goes on. */
static void barrier(pass *p) {
    if (p->n_threads > 1)
        dpi_barrier_wait(&p->s->barrier, p->n_threads, &p->spin);
}

static void share(const pass *p, int64_t n, int64_t *begin, int64_t *end) {
    dpi_share(n, p->thread, p->n_threads, begin, end);
}

/* The kernel for 8-bit activations, where this matrix is to use one. */
static dpi_matmul_q_fn *q8_kernel(const dpi_session *s, const dpi_mat *w) {
    return s->exact || !w->packed ? NULL : dpi_kernels_matmul_q(&s->kernels, w->type->id);
}

/* The kernel for f32 activations and packed weights of 16 bits. */
static dpi_matmul_h_fn *h_kernel(const dpi_session *s, const dpi_mat *w) {
    return s->exact || !w->packed ? NULL : dpi_kernels_matmul_h(&s->kernels, w->type->id);
}

/* The shares of a pass's operation number n: there are two sets, of which one rests. */
static dpi_share_state *claims_of(const pass *p, int32_t n) {
    return p->s->claims + (n % 2 ? p->s->n_threads : 0);
}

/* This thread's part of them. */
static void clear_claims(const pass *p, int32_t n) {
    dpi_share_clear(&claims_of(p, n)[p->thread]);
}

/* The products that threads compute from one input between two barriers, in tiles of columns whose
 * bounds depend on the matrices alone. */
static dpi_tiles job(pass *p, int64_t n_tiles) {
    clear_claims(p, p->n_jobs + 1);
    return dpi_tiles_begin(claims_of(p, p->n_jobs++), n_tiles, p->thread, p->n_threads);
}

static int64_t n_tiles(const dpi_mat *w) { return dpi_n_tiles(w->n_out); }

/* The columns [*begin, *end) of tiles [first, last). */
static void columns(const dpi_mat *w, int64_t first, int64_t last, int64_t *begin, int64_t *end) {
    *begin = first * DPI_TILE_OUT;
    *end = last * DPI_TILE_OUT < w->n_out ? last * DPI_TILE_OUT : w->n_out;
}

/* Asks for the weights with which this thread will begin a product, which memory has time to bring
 * and kernels do not ask for, since they ask ahead. */
static void prefetch_next(const pass *p, const dpi_mat *w) {
    enum { LINE = 64, BYTES = 16384 };
    int64_t begin, end;
    share(p, n_tiles(w), &begin, &end);
    columns(w, begin, end, &begin, &end);
    uint64_t row_bytes = dpi_type_row_bytes(w->type, w->n_in);
    const unsigned char *at =
        (dpi_mat_is_packed(w) ? w->packed : w->data) + (uint64_t)begin * row_bytes;
    for (uint64_t i = 0; i < BYTES && i < (uint64_t)(end - begin) * row_bytes; i += LINE)
        __builtin_prefetch(at + i, 0, 2);
}

/* ---- Products -------------------------------------------------------------------------------- */

/* This thread's DPI_TILE_OUT rows of any matrix, on their way to a kernel. */
static float *tile_of(const pass *p) {
    const dpi_work *work = &p->s->work;
    return work->tile + (int64_t)p->thread * DPI_TILE_OUT * work->max_in;
}

/* Rows [o0, o1) of a matrix as f32: in place, or dequantised into this thread's tile. */
static const float *weights_f32(const pass *p, const dpi_mat *w, int64_t o0, int64_t o1) {
    const dpi_session *s = p->s;
    const unsigned char *rows = w->data + (uint64_t)o0 * dpi_type_row_bytes(w->type, w->n_in);
    if (w->type->id == DPI_TYPE_F32)
        return (const float *)(const void *)rows;
    float *tile = tile_of(p);
    if (w->type->id == DPI_TYPE_F16 && !w->packed)
        s->kernels.f16_to_f32(tile, (const uint16_t *)(const void *)rows, (o1 - o0) * w->n_in);
    else
        for (int64_t o = o0; o < o1; o++)
            dpi_mat_row(w, o, tile + (o - o0) * w->n_in);
    return tile;
}

/* Columns [o0, o1) as the kernels read them: the model's, or packed into this thread's tile. */
static const unsigned char *weights_packed(const pass *p, const dpi_mat *w, int64_t o0,
                                           int64_t o1) {
    if (dpi_mat_is_packed(w))
        return w->packed + (uint64_t)o0 * dpi_type_row_bytes(w->type, w->n_in);
    unsigned char *tile = (unsigned char *)tile_of(p); /* no weight has more bytes than an f32 */
    dpi_mat_pack(w, o0, o1, tile);
    return tile;
}

/* Whether kernels read the matrix where it is: any number of columns at once. Others go through
 * this thread's tile. */
static bool in_place(const dpi_session *s, const dpi_mat *w) {
    return (q8_kernel(s, w) || h_kernel(s, w)) && dpi_mat_is_packed(w);
}

/* y[r * y_stride + o - o0] = x[first + r] . w[o] for columns [o0, o1), at most DPI_TILE_OUT of
 * them unless they are read in place; o0 is a multiple of DPI_PANEL_ROWS. */
static void product(const pass *p, const dpi_mat *w, input in, float *y, int64_t y_stride,
                    int64_t o0, int64_t o1) {
    const dpi_session *s = p->s;
    int32_t n_out = (int32_t)(o1 - o0);
    dpi_matmul_q_fn *matmul_q = q8_kernel(s, w);
    dpi_matmul_h_fn *matmul_h = h_kernel(s, w);
    dpi_q8 q8 = dpi_q8_in(&s->work.q8, in.form);
    if (matmul_q)
        matmul_q(y, y_stride, &q8, in.n_rows, weights_packed(p, w, o0, o1), in.n, n_out,
                 &s->kernels.tuning);
    else if (matmul_h)
        matmul_h(y, y_stride, in.x + in.first * in.n, in.n, in.n_rows,
                 weights_packed(p, w, o0, o1), in.n, n_out,
                 &s->kernels.tuning);
    else
        s->kernels.matmul_f32(y, y_stride, in.x + in.first * in.n, in.n, in.n_rows,
                              weights_f32(p, w, o0, o1), in.n, n_out);
}

/* Tiles [first, last) of y = x W^T + bias. y is a buffer as in.x is. */
static void linear(const pass *p, const dpi_mat *w, const float *bias, input in, float *y,
                   int64_t first, int64_t last) {
    bool blas = p->s->blas.sgemm && p->batch->is_prompt && !q8_kernel(p->s, w);
    int64_t o, stop, at_once = !blas && in_place(p->s, w) ? last - first : 1;
    for (; first < last; first += at_once) {
        columns(w, first, first + at_once, &o, &stop);
        if (blas) /* all DPI_CHUNK rows of the buffer, used or not */
            dpi_gemm_f32(&p->s->blas, y + o, w->n_out, in.x, in.n, weights_f32(p, w, o, stop), in.n,
                         (int32_t)(stop - o));
        else
            product(p, w, in, y + in.first * w->n_out + o, w->n_out, o, stop);
        for (int32_t r = in.first; bias && r < in.first + in.n_rows; r++)
            p->s->kernels.add(y + r * w->n_out + o, bias + o, stop - o);
    }
}

/* The columns of an input of products that this thread prepares: whole blocks of 8-bit activations.
 * Columns, not rows: the rows of a block stand side by side in the same cache lines, and most of
 * these columns are those that the thread has computed. */
static void input_share(const pass *p, int64_t n, int64_t *begin, int64_t *end) {
    share(p, (n + DPI_Q8_BLOCK - 1) / DPI_Q8_BLOCK, begin, end);
    *begin *= DPI_Q8_BLOCK;
    *end = *end * DPI_Q8_BLOCK < n ? *end * DPI_Q8_BLOCK : n;
}

/* Takes the cache lines that this thread is about to fill from whoever has read them, all at once:
 * stores that fill them would wait for a few at a time. */
static void take_lines(void *p, size_t n_bytes) {
    enum { LINE = 64 };
    for (size_t i = 0; i < n_bytes; i += LINE)
        ((unsigned char *)p)[i] = 0;
}

/* Brings this thread's columns of an input into 8 bits if a matrix that reads it wants that; true
 * if so: others then have to wait for them. */
static bool quantize(const pass *p, input *in, const dpi_mat *const *mats, int n_mats) {
    const dpi_session *s = p->s;
    int n_wanted = 0, n_of_4_bits = 0;
    for (int i = 0; i < n_mats; i++)
        if (q8_kernel(s, mats[i])) {
            n_wanted++;
            n_of_4_bits += mats[i]->type->is_narrow;
        }
    if (n_wanted == 0)
        return false;
    bool folds = s->kernels.tuning.winograd && in->n_rows >= DPI_WINOGRAD_ROWS;
    in->form = n_of_4_bits == 0         ? DPI_Q8_PLAIN
               : !folds                 ? DPI_Q8_NARROW
               : n_of_4_bits < n_wanted ? DPI_Q8_BOTH
                                        : DPI_Q8_WINOGRAD;
    int64_t begin, end;
    input_share(p, in->n, &begin, &end);
    for (int32_t first = 0, rows; first < in->n_rows; first += rows) {
        rows = dpi_row_block(in->n_rows, first);
        dpi_q8 block = dpi_q8_at(&s->work.q8, first, in->n);
        block = dpi_q8_from(&block, rows, begin);
        size_t n_blocks = (size_t)((end - begin) / DPI_Q8_BLOCK * rows);
        if (dpi_q8_has_plain(in->form)) {
            take_lines(block.plain, n_blocks * sizeof *block.plain);
            take_lines(block.sums, n_blocks * sizeof *block.sums);
        }
        if (dpi_q8_has_winograd(in->form))
            take_lines(block.winograd, n_blocks * sizeof *block.winograd);
        s->kernels.quantize_q8(&block, rows, in->x + (in->first + first) * in->n + begin, in->n,
                               end - begin, in->form);
    }
    return true;
}

/* The sums of squares of row r of x in the columns of some tiles. They are summed up by tiles so
 * that who has computed which does not change a bit. */
static void sum_squares(const pass *p, int64_t r, int64_t first, int64_t last) {
    const dpi_session *s = p->s;
    int64_t n = s->model->config.n_embd;
    for (int64_t i = first; i < last; i++) {
        int64_t at = i * DPI_TILE_OUT, left = n - at;
        s->kernels.sum_squares(s->work.squares + r * dpi_n_tiles(n) + i, s->work.x + r * n + at,
                               left < DPI_TILE_OUT ? left : DPI_TILE_OUT);
    }
}

/* norm = RMSNorm(x) = x / sqrt(mean(x^2) + eps) * weight of some rows, also in 8 bits if a matrix
 * wants it. */
static input normalize(pass *p, const float *weight, const dpi_mat *const *mats, int n_mats,
                       int32_t first, int32_t n_rows) {
    dpi_session *s = p->s;
    const dpi_config *c = &s->model->config;
    input in = {s->work.norm, c->n_embd, first, n_rows, DPI_Q8_PLAIN};
    prefetch_next(p, mats[0]);
    int64_t n_squares = dpi_n_tiles(in.n), begin, end;
    input_share(p, in.n, &begin, &end);
    for (int64_t r = first; r < first + n_rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < n_squares; i++)
            sum += (double)s->work.squares[r * n_squares + i];
        s->kernels.scale(s->work.norm + r * in.n + begin, s->work.x + r * in.n + begin,
                         weight + begin, (float)(1 / sqrt(sum / (double)in.n + (double)c->rms_eps)),
                         end - begin);
    }
    quantize(p, &in, mats, n_mats);
    barrier(p);
    return in;
}

/* x += out in the columns of some tiles of W, and its sums of squares. */
static void add_out(const pass *p, const dpi_mat *w, input in, int64_t first, int64_t last) {
    const dpi_work *work = &p->s->work;
    int64_t begin, end;
    columns(w, first, last, &begin, &end);
    for (int32_t r = in.first; r < in.first + in.n_rows; r++) {
        p->s->kernels.add(work->x + r * w->n_out + begin, work->out + r * w->n_out + begin,
                          end - begin);
        sum_squares(p, r, first, last);
    }
}

/* x += W in + bias, with the input in 8 bits where W wants it. */
static void add_product(pass *p, const dpi_mat *w, const float *bias, input in) {
    dpi_tiles t = job(p, n_tiles(w));
    for (int64_t first, last; dpi_tiles_next(&t, &first, &last);) {
        linear(p, w, bias, in, p->s->work.out, first, last);
        if (dpi_tiles_stolen(&t))
            add_out(p, w, in, first, last);
    }
    add_out(p, w, in, t.begin, t.end);
    barrier(p);
}

/* ---- Attention ------------------------------------------------------------------------------- */

/* The KV heads of some rows, item = head * n_rows + row, that this thread attends with: [begin,
 * end), `step` apart. */
typedef struct items {
    int64_t begin, end, step;
    bool own_heads; /* all rows of some heads: what they read of this pass the thread itself has
                       cached, and what comes out are columns of its own */
} items;

/* Heads of its own where all threads get as many, so that most of what a thread reads it has
 * computed itself; else threads take items in turn, since later rows of a prompt have more to
 * attend to. */
static items items_of(const pass *p) {
    const dpi_config *c = &p->s->model->config;
    int64_t n = (int64_t)p->batch->n_rows * c->n_kv_head;
    items own = {.step = 1, .own_heads = true};
    share(p, n, &own.begin, &own.end);
    return c->n_kv_head % p->n_threads == 0 ? own : (items){p->thread, n, p->n_threads, false};
}

static void store_v(const dpi_session *s, void *cache, int32_t at, const float *x, int32_t n) {
    if (s->kv.type == DPI_KV_F32)
        memcpy((float *)cache + (int64_t)at * n, x, (size_t)n * sizeof *x);
    else
        s->kernels.f32_to_f16((uint16_t *)cache + (int64_t)at * n, x, n);
}

static void store_k(const dpi_session *s, void *cache, int32_t at, const float *x, int32_t n) {
    enum { AT_ONCE = 64 };
    if (s->kv.type == DPI_KV_F32) {
        for (int32_t i = 0; i < n; i++)
            ((float *)cache)[dpi_kv_k_at(at, i, n)] = x[i];
        return;
    }
    for (int32_t i = 0; i < n; i += AT_ONCE) {
        uint16_t half[AT_ONCE];
        int32_t some = n - i < AT_ONCE ? n - i : AT_ONCE;
        s->kernels.f32_to_f16(half, x + i, some);
        for (int32_t k = 0; k < some; k++)
            ((uint16_t *)cache)[dpi_kv_k_at(at, i + k, n)] = half[k];
    }
}

/* Rotates the KV head of an item and the query heads that share it, and caches its K and V. */
static void rotate_and_cache(const pass *p, int32_t layer, int64_t item) {
    dpi_session *s = p->s;
    const dpi_config *c = &s->model->config;
    int32_t index = (int32_t)(item % p->batch->n_rows), head = (int32_t)(item / p->batch->n_rows);
    int32_t r = p->batch->first + index, n_q = c->n_head / c->n_kv_head;
    int32_t seq = s->row_seq[index], pos = s->row_pos[index];
    int32_t block = pos / DPI_KV_BLOCK, at = pos % DPI_KV_BLOCK;
    const float *cs = s->work.cs + (int64_t)r * c->n_rot;
    float *q = s->work.q + ((int64_t)r * c->n_head + (int64_t)head * n_q) * c->head_dim;
    float *k = s->work.k + ((int64_t)r * c->n_kv_head + head) * c->head_dim;
    const float *v = s->work.v + ((int64_t)r * c->n_kv_head + head) * c->head_dim_v;
    s->kernels.rope(q, cs, n_q, c->head_dim, c->n_rot);
    s->kernels.rope(k, cs, 1, c->head_dim, c->n_rot);
    store_k(s, dpi_kv_k(&s->kv, seq, block, layer, head), at, k, c->head_dim);
    store_v(s, dpi_kv_v(&s->kv, seq, block, layer, head), at, v, c->head_dim_v);
}

/* att = softmax(q K^T / sqrt(head_dim)) V over positions 0..pos of an item, block by block. `next`
 * is the item that this thread takes next; the same if it was the last. */
static void attend(const pass *p, int32_t layer, int64_t item, int64_t next) {
    dpi_session *s = p->s;
    const dpi_config *c = &s->model->config;
    int32_t n_rows = p->batch->n_rows, next_head = (int32_t)(next / n_rows);
    int32_t index = (int32_t)(item % n_rows), head = (int32_t)(item / n_rows);
    int32_t next_seq = s->row_seq[next % n_rows];
    int32_t r = p->batch->first + index, n_q = c->n_head / c->n_kv_head;
    int32_t seq = s->row_seq[index], length = s->row_pos[index] + 1;
    const float *q = s->work.q + ((int64_t)r * c->n_head + (int64_t)head * n_q) * c->head_dim;
    float *att = s->work.att + ((int64_t)r * c->n_head + (int64_t)head * n_q) * c->head_dim_v;
    float *m = s->work.ml + (int64_t)p->thread * 2 * n_q, *l = m + n_q;
    float scale = 1.0f / sqrtf((float)c->head_dim);
    memset(att, 0, (size_t)n_q * (size_t)c->head_dim_v * sizeof *att);
    for (int32_t h = 0; h < n_q; h++) {
        m[h] = -INFINITY;
        l[h] = 0;
    }
    for (int32_t at = 0, block = 0; at < length; at += DPI_KV_BLOCK, block++) {
        int32_t n = length - at < DPI_KV_BLOCK ? length - at : DPI_KV_BLOCK;
        void *k = dpi_kv_k(&s->kv, seq, block, layer, head);
        void *v = dpi_kv_v(&s->kv, seq, block, layer, head);
        void *next_k = k, *next_v = v; /* of a prompt: its rows share blocks, which stay in cache */
        if (!p->batch->is_prompt) {
            bool more = at + n < length;
            int32_t then = more ? seq : next_seq, h = more ? head : next_head;
            next_k = dpi_kv_k(&s->kv, then, more ? block + 1 : 0, layer, h);
            next_v = dpi_kv_v(&s->kv, then, more ? block + 1 : 0, layer, h);
        }
        if (s->kv.type == DPI_KV_F32)
            s->kernels.attend_f32(att, m, l, q, k, v, n_q, n, c->head_dim, c->head_dim_v, scale,
                                  next_k, next_v);
        else
            s->kernels.attend_f16(att, m, l, q, k, v, n_q, n, c->head_dim, c->head_dim_v, scale,
                                  next_k, next_v);
    }
    for (int32_t h = 0; h < n_q; h++) {
        float by = 1 / l[h];
        for (int32_t i = 0; i < c->head_dim_v; i++)
            att[h * c->head_dim_v + i] *= by;
    }
}

/* Tile i of Q's, K's and V's, in the order of the heads that threads attend with: each thread's
 * share of Q, then those of K and V. *n: it and those that follow in that matrix. */
static const dpi_mat *q_k_or_v(const pass *p, const dpi_layer *layer, int64_t i, int64_t *tile,
                               int64_t *n) {
    const dpi_mat *mats[] = {&layer->wq, &layer->wk, &layer->wv};
    int64_t parts = p->n_threads, all = 0, part, m = 0;
    for (int k = 0; k < 3; k++) {
        all += n_tiles(mats[k]);
        parts = n_tiles(mats[k]) % p->n_threads == 0 ? parts : 1;
    }
    part = i / (all / parts);
    i %= all / parts;
    for (; i >= n_tiles(mats[m]) / parts; m++)
        i -= n_tiles(mats[m]) / parts;
    *tile = part * (n_tiles(mats[m]) / parts) + i;
    *n = n_tiles(mats[m]) / parts - i;
    return mats[m];
}

static void attention(pass *p, int32_t index) {
    dpi_session *s = p->s;
    const dpi_config *c = &s->model->config;
    const dpi_layer *layer = &s->model->layers[index];
    const dpi_mat *mats[] = {&layer->wq, &layer->wk, &layer->wv};
    input in = normalize(p, layer->attn_norm, mats, 3, p->batch->first, p->batch->n_rows);
    dpi_tiles t = job(p, n_tiles(&layer->wq) + n_tiles(&layer->wk) + n_tiles(&layer->wv));
    for (int64_t i, last; dpi_tiles_next(&t, &i, &last);)
        for (int64_t tile, n; i < last; i += n) {
            const dpi_mat *w = q_k_or_v(p, layer, i, &tile, &n);
            n = n < last - i ? n : last - i;
            if (w == &layer->wq)
                linear(p, w, layer->bq, in, s->work.q, tile, tile + n);
            else if (w == &layer->wk)
                linear(p, w, layer->bk, in, s->work.k, tile, tile + n);
            else
                linear(p, w, layer->bv, in, s->work.v, tile, tile + n);
        }
    prefetch_next(p, &layer->wo);
    barrier(p);
    items mine = items_of(p);
    for (int64_t i = mine.begin; i < mine.end; i += mine.step)
        rotate_and_cache(p, index, i);
    if (p->batch->is_prompt && !mine.own_heads)
        barrier(p); /* in a step an item reads only what its own thread has cached */
    for (int64_t i = mine.begin; i < mine.end; i += mine.step)
        attend(p, index, i, i + mine.step < mine.end ? i + mine.step : i);
    in.x = s->work.att;
    in.n = (int64_t)c->n_head * c->head_dim_v;
    bool own_columns = mine.own_heads && in.n % (p->n_threads * DPI_Q8_BLOCK) == 0;
    if (!own_columns)
        barrier(p);
    if (quantize(p, &in, (const dpi_mat *const[]){&layer->wo}, 1) || own_columns)
        barrier(p);
    add_product(p, &layer->wo, layer->bo, in);
}

/* ---- Feed-forward ---------------------------------------------------------------------------- */

/* Tile i of gate's and up's, which have the same columns: some of gate's, then those of up, so that
 * a thread computes both of its columns and still reads weights in long streams. *n: it and those
 * that follow in that matrix. */
static const dpi_mat *gate_or_up(const dpi_layer *layer, int64_t i, int64_t *tile, int64_t *n) {
    enum { STREAM = 16 }; /* tiles */
    int64_t first = i / (2 * STREAM) * STREAM, all = n_tiles(&layer->w_gate) - first;
    all = all < STREAM ? all : STREAM;
    i -= 2 * first;
    *tile = first + i % all;
    *n = all - i % all;
    return i < all ? &layer->w_gate : &layer->w_up;
}

/* gate = silu(gate) * up in this thread's columns. */
static void swiglu(const pass *p, int64_t n) {
    const dpi_work *work = &p->s->work;
    int64_t begin, end;
    input_share(p, n, &begin, &end);
    for (int32_t r = p->batch->first; r < p->batch->first + p->batch->n_rows; r++)
        p->s->kernels.swiglu(work->gate + r * n + begin, work->up + r * n + begin, end - begin);
}

static void feed_forward(pass *p, int32_t index) {
    dpi_session *s = p->s;
    const dpi_layer *layer = &s->model->layers[index];
    const dpi_mat *mats[] = {&layer->w_gate, &layer->w_up};
    input in = normalize(p, layer->ffn_norm, mats, 2, p->batch->first, p->batch->n_rows);
    dpi_tiles t = job(p, 2 * n_tiles(&layer->w_gate));
    for (int64_t i, last; dpi_tiles_next(&t, &i, &last);)
        for (int64_t tile, n; i < last; i += n) {
            const dpi_mat *w = gate_or_up(layer, i, &tile, &n);
            n = n < last - i ? n : last - i;
            linear(p, w, NULL, in, w == &layer->w_up ? s->work.up : s->work.gate, tile, tile + n);
        }
    prefetch_next(p, &layer->w_down);
    barrier(p);
    in.x = s->work.gate;
    in.n = s->model->config.n_ff;
    swiglu(p, in.n);
    quantize(p, &in, (const dpi_mat *const[]){&layer->w_down}, 1);
    barrier(p);
    add_product(p, &layer->w_down, NULL, in);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* x = embedding of each token; cosines and sines of each position. */
static void embed(pass *p) {
    dpi_session *s = p->s;
    const dpi_config *c = &s->model->config;
    int64_t begin, end;
    share(p, p->batch->n_rows, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t r = p->batch->first + i;
        dpi_mat_row(&s->model->embedding, s->row_token[i], s->work.x + r * c->n_embd);
        sum_squares(p, r, 0, dpi_n_tiles(c->n_embd));
        float *cs = s->work.cs + r * c->n_rot;
        for (int32_t j = 0; j < c->n_rot / 2; j++) {
            double angle = s->row_pos[i] * s->freqs[j];
            cs[2 * j] = (float)cos(angle);
            cs[2 * j + 1] = (float)sin(angle);
        }
    }
    barrier(p);
}

/* What the output head reads: the rows that want logits. */
static input head_input(pass *p) {
    const dpi_model *m = p->s->model;
    return normalize(p, m->output_norm, (const dpi_mat *const[]){&m->output}, 1,
                     p->batch->first + p->batch->head_first, p->batch->n_head);
}

/* Logits of at most n tokens from o on, a multiple of DPI_PANEL_ROWS. They go where each row's
 * sequence keeps its own, those of several rows through a tile, which n must not exceed. */
static void head_columns(const pass *p, input in, int64_t o, int64_t n) {
    const dpi_session *s = p->s;
    const dpi_mat *w = &s->model->output;
    float *const *dest = s->dest + p->batch->head_first;
    float *tile = s->work.head + (int64_t)p->thread * s->max_rows * DPI_TILE_OUT;
    int64_t stop = o + n < s->model->n_vocab ? o + n : s->model->n_vocab;
    if (in.n_rows == 1) {
        product(p, w, in, dest[0] + o, stop - o, o, stop);
        return;
    }
    product(p, w, in, tile, DPI_TILE_OUT, o, stop);
    for (int32_t r = 0; r < in.n_rows; r++)
        memcpy(dest[r] + o, tile + r * DPI_TILE_OUT, (size_t)(stop - o) * sizeof *tile);
}

/* All logits of the rows that want them. */
static void head(pass *p) {
    const dpi_mat *w = &p->s->model->output;
    if (p->batch->n_head == 0)
        return;
    input in = head_input(p);
    dpi_tiles t = job(p, n_tiles(w));
    for (int64_t first, last; dpi_tiles_next(&t, &first, &last);) {
        int64_t at_once = in.n_rows == 1 && in_place(p->s, w) ? last - first : 1;
        for (; first < last; first += at_once)
            head_columns(p, in, first * DPI_TILE_OUT, at_once * DPI_TILE_OUT);
    }
}

/* Those of the groups of columns that hold one of the ids, which ascend. Threads take turns. */
static void head_at(pass *p, const int32_t *ids, int32_t n_ids) {
    input in = head_input(p);
    int64_t group = -1, n_panels = 0;
    for (int32_t i = 0; i < n_ids; i++) {
        if (ids[i] / DPI_PANEL_ROWS == group)
            continue;
        group = ids[i] / DPI_PANEL_ROWS;
        if (n_panels++ % p->n_threads == p->thread)
            head_columns(p, in, group * DPI_PANEL_ROWS, DPI_PANEL_ROWS);
    }
}

/* Threads for so many multiply-adds: one if they are shorter than what waiting at barriers may cost
 * on a busy machine. */
static int32_t threads_for(const dpi_session *s, int64_t n) {
    return n < s->worth_sharing ? 1 : s->n_threads;
}

void dpi_forward(dpi_session *s, const dpi_batch *batch) {
    dpi_model_before_pass(s->model);
#pragma omp parallel num_threads(threads_for(s, s->n_weights * batch->n_rows))
    {
        pass p = {s, batch, omp_get_thread_num(), omp_get_num_threads(), {0}, 0};
        clear_claims(&p, 0);
        embed(&p);
        for (int32_t i = 0; i < s->model->config.n_layer; i++) {
            attention(&p, i);
            feed_forward(&p, i);
        }
        head(&p);
    }
}

void dpi_forward_head(dpi_session *s, const dpi_batch *batch, const int32_t *ids, int32_t n_ids) {
    int64_t n_columns = ids ? (int64_t)n_ids * DPI_PANEL_ROWS : s->model->n_vocab;
    int64_t n = n_columns * s->model->config.n_embd * batch->n_head;
#pragma omp parallel num_threads(threads_for(s, n))
    {
        pass p = {s, batch, omp_get_thread_num(), omp_get_num_threads(), {0}, 0};
        clear_claims(&p, 0);
        if (ids)
            head_at(&p, ids, n_ids);
        else
            head(&p);
    }
}
