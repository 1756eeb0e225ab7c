/* attention.c - the operations of a pass by heads: norms of heads, RoPE, the KV cache, attention
 * (pass.h).
 *
 * An item is one row's KV head with the query heads that share it; item = head * n_rows + row.
 * Threads have the same items in all of these operations. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "engine/pass.h"

_Static_assert(DPI_CHUNK % DPI_KV_BLOCK == 0, "prompt chunks do not straddle KV blocks");

/* This thread's items: [begin, end), `step` apart. */
typedef struct items {
    int64_t begin, end, step;
    bool own_heads; /* all rows of some heads: the thread itself has cached what they read of this
                       pass, and the result is columns of its own */
} items;

/* Heads of its own where all threads get as many, so that most of what a thread reads it has
 * computed itself. Else items go round, since later rows of a prompt have more to attend to. */
static items items_of(const dpi_pass *p) {
    const int32_t n_kv_head = p->shape->n_kv_head;
    const int64_t n = (int64_t)p->n_rows * n_kv_head;
    items own = {.step = 1, .own_heads = true};
    dpi_pass_share(p, n, &own.begin, &own.end);
    return n_kv_head % p->n_threads == 0 ? own : (items){p->thread, n, p->n_threads, false};
}

static int32_t head_of(const dpi_pass *p, int64_t item) { return (int32_t)(item / p->n_rows); }
static int32_t row_of(const dpi_pass *p, int64_t item) { return (int32_t)(item % p->n_rows); }

/* Of an array of n_head heads, the first of those of an item. */
static float *heads_at(const dpi_pass *p, dpi_rows x, int64_t item) {
    int64_t per_item = x.n / p->shape->n_kv_head;
    return dpi_pass_row(p, x, row_of(p, item)) + head_of(p, item) * per_item;
}

/* ---- Norms of heads -------------------------------------------------------------------------- */

/* One item's heads of x. `squares` NULL: each head by itself, else the sum of those of the row. */
static void norm_heads(const dpi_pass *p, dpi_rows x, int64_t item, const float *weight,
                       const float *squares) {
    const dpi_shape *c = p->shape;
    const double eps = (double)p->s->model->config.rms_eps;
    const dpi_kernels *k = &p->s->kernels;
    const int64_t per_item = x.n / c->n_kv_head;
    const double n = squares ? (double)x.n : (double)c->head_dim;
    float *head = heads_at(p, x, item);
    if (squares)
        weight += head_of(p, item) * per_item;
    for (int64_t i = 0; i < per_item; i += c->head_dim) {
        float sum = 0;
        if (!squares)
            k->sum_squares(&sum, head + i, c->head_dim);
        const double mean = (double)(squares ? *squares : sum) / n;
        k->scale(head + i, head + i, squares ? weight + i : weight,
                 (float)(1 / sqrt(mean + eps)), c->head_dim);
    }
}

void dpi_pass_norm_values(dpi_pass *p, dpi_rows v, dpi_rows z) {
    const int32_t n = p->shape->head_dim_v;
    const double eps = (double)p->s->model->config.rms_eps;
    dpi_pass_meet(p);
    const items mine = items_of(p);
    for (int64_t i = mine.begin; i < mine.end; i += mine.step) {
        const float *from = heads_at(p, z, i);
        float *to = heads_at(p, v, i), sum = 0;
        p->s->kernels.sum_squares(&sum, from, n);
        const float by = (float)(1 / sqrt((double)sum / n + eps));
        for (int32_t j = 0; j < n; j++)
            to[j] = by * from[j];
    }
}

void dpi_pass_norm_heads(dpi_pass *p, dpi_rows q, dpi_rows k, const float *q_weight,
                         const float *k_weight) {
    const bool whole = p->s->model->config.arch->norms_all_heads;
    dpi_pass_meet(p);
    int64_t begin = 0, end = 0;
    if (whole)
        dpi_pass_share(p, p->n_rows, &begin, &end);
    for (int64_t r = begin; r < end; r++) {
        float *squares = dpi_pass_row(p, p->s->work.qk_squares, r);
        p->s->kernels.sum_squares(&squares[0], dpi_pass_row(p, q, r), q.n);
        p->s->kernels.sum_squares(&squares[1], dpi_pass_row(p, k, r), k.n);
    }
    p->has_written = whole;
    dpi_pass_meet(p);
    const items mine = items_of(p);
    for (int64_t i = mine.begin; i < mine.end; i += mine.step) {
        const float *squares =
            whole ? dpi_pass_row(p, p->s->work.qk_squares, row_of(p, i)) : NULL;
        norm_heads(p, q, i, q_weight, squares);
        norm_heads(p, k, i, k_weight, squares ? squares + 1 : NULL);
    }
}

/* ---- RoPE ------------------------------------------------------------------------------------ */

void dpi_pass_rope(dpi_pass *p, dpi_rows q, dpi_rows k, dpi_rotation rotation) {
    const dpi_session *s = p->s;
    const dpi_config *c = &s->model->config;
    const dpi_shape *h = p->shape;
    void (*rotate)(float *, const float *, int32_t, int32_t, int32_t) =
        c->arch->rotates_halves ? s->kernels.rope_halves : s->kernels.rope;
    dpi_pass_meet(p);
    items mine = items_of(p);
    for (int64_t i = mine.begin; i < mine.end; i += mine.step) {
        const float *cs = dpi_pass_row(p, s->work.cs, row_of(p, i)) + (int32_t)rotation * c->n_rot;
        rotate(heads_at(p, q, i), cs, h->n_head / h->n_kv_head, h->head_dim, h->n_rot);
        if (k.n > 0)
            rotate(heads_at(p, k, i), cs, 1, h->head_dim, h->n_rot);
    }
}

/* ---- The KV cache ---------------------------------------------------------------------------- */

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
        uint16_t f16[AT_ONCE];
        int32_t some = n - i < AT_ONCE ? n - i : AT_ONCE;
        s->kernels.f32_to_f16(f16, x + i, some);
        for (int32_t k = 0; k < some; k++)
            ((uint16_t *)cache)[dpi_kv_k_at(at, i + k, n)] = f16[k];
    }
}

void dpi_pass_cache(dpi_pass *p, int32_t layer, dpi_rows k, dpi_rows v) {
    const dpi_session *s = p->s;
    const dpi_shape *c = p->shape;
    dpi_pass_meet(p); /* only where nothing has been done to q and k */
    items mine = items_of(p);
    for (int64_t i = mine.begin; i < mine.end; i += mine.step) {
        int32_t seq = s->row_seq[row_of(p, i)], pos = s->row_pos[row_of(p, i)];
        int32_t block = pos / DPI_KV_BLOCK, at = pos % DPI_KV_BLOCK, head = head_of(p, i);
        store_k(s, dpi_kv_k(&s->kv, seq, block, layer, head), at, heads_at(p, k, i), c->head_dim);
        store_v(s, dpi_kv_v(&s->kv, seq, block, layer, head), at, heads_at(p, v, i),
                c->head_dim_v);
    }
    /* In a step an item reads only what its own thread has cached. */
    p->has_written = p->batch->is_prompt && !mine.own_heads;
}

/* ---- Attention ------------------------------------------------------------------------------- */

/* The first position that row r sees. */
static int32_t first_of(const dpi_pass *p, int32_t layer, int32_t r) {
    const int32_t window = p->s->model->layers[layer].window, length = p->s->row_pos[r] + 1;
    return window > 0 && length > window ? length - window : 0;
}

/* What scores at a position are multiplied by. */
static float scale_at(const dpi_config *c, int32_t position) {
    if (c->temperature_scale == 0)
        return c->attention_scale;
    return (float)((double)c->attention_scale *
                   (1 + c->temperature_scale * log(1 + position / c->n_ctx_original)));
}

/* Heads that share K and V, of one row or of several that stand side by side. What they have of the
 * positions so far is acc / l. */
typedef struct heads {
    const float *q;
    float *acc, *m, *l;
    int32_t n;
} heads;

static heads heads_begin(heads of, int32_t head_dim_v) {
    memset(of.acc, 0, (size_t)of.n * (size_t)head_dim_v * sizeof *of.acc);
    for (int32_t h = 0; h < of.n; h++) {
        of.m[h] = -INFINITY;
        of.l[h] = 0;
    }
    return of;
}

/* Of `of`, those of row i of rows that have n heads each. */
static heads heads_of_row(const dpi_shape *c, heads of, int32_t i, int32_t n) {
    const int64_t at = (int64_t)i * n;
    return (heads){of.q + at * c->head_dim, of.acc + at * c->head_dim_v, of.m + at, of.l + at, n};
}

/* The first block that an item attends to, and the one after the last. */
static int32_t first_block(const dpi_pass *p, int32_t layer, int64_t item) {
    return first_of(p, layer, row_of(p, item)) / DPI_KV_BLOCK;
}
static int32_t end_block(const dpi_pass *p, int64_t item) {
    return p->s->row_pos[row_of(p, item)] / DPI_KV_BLOCK + 1;
}

/* Blocks [block, end) of the positions that an item attends to. `next` is the thread's next item;
 * the same after the last one. */
static void attend_to(const dpi_pass *p, heads of, int32_t layer, int64_t item, int32_t block,
                      int32_t end, int64_t next) {
    const dpi_session *s = p->s;
    const dpi_config *config = &s->model->config;
    const dpi_shape *c = p->shape;
    const int32_t head = head_of(p, item), row = row_of(p, item), seq = s->row_seq[row];
    const int32_t length = s->row_pos[row] + 1, first = first_of(p, layer, row);
    const float scale = scale_at(config, length - 1);
    for (int32_t at = block * DPI_KV_BLOCK; block < end; at += DPI_KV_BLOCK, block++) {
        const int32_t skipped = first > at ? first - at : 0;
        int32_t n = length - at < DPI_KV_BLOCK ? length - at : DPI_KV_BLOCK;
        void *k = dpi_kv_k(&s->kv, seq, block, layer, head);
        void *v = dpi_kv_v(&s->kv, seq, block, layer, head);
        void *next_k = k, *next_v = v; /* of a prompt: its rows share blocks, which stay in cache */
        if (!p->batch->is_prompt) {
            bool more = block + 1 < end;
            int32_t then = more ? seq : s->row_seq[row_of(p, next)];
            int32_t h = more ? head : head_of(p, next);
            int32_t b = more ? block + 1 : first_block(p, layer, next);
            next_k = dpi_kv_k(&s->kv, then, b, layer, h);
            next_v = dpi_kv_v(&s->kv, then, b, layer, h);
        }
        if (s->kv.type == DPI_KV_F32)
            s->kernels.attend_f32(of.acc, of.m, of.l, of.q, k, v, of.n, skipped, n, c->head_dim,
                                  c->head_dim_v, scale, config->attention_cap, next_k, next_v);
        else
            s->kernels.attend_f16(of.acc, of.m, of.l, of.q, k, v, of.n, skipped, n, c->head_dim,
                                  c->head_dim_v, scale, config->attention_cap, next_k, next_v);
    }
}

/* Divides by the sums of the softmax. to may be of.acc. */
static void heads_end(heads of, float *to, int32_t head_dim_v) {
    for (int32_t h = 0; h < of.n; h++) {
        float by = 1 / of.l[h];
        for (int32_t i = 0; i < head_dim_v; i++)
            to[h * head_dim_v + i] = of.acc[h * head_dim_v + i] * by;
    }
}

/* One item of a step. */
static void attend(const dpi_pass *p, dpi_rows y, int32_t layer, dpi_rows q, int64_t item,
                   int64_t next) {
    const dpi_shape *c = p->shape;
    const int32_t n_q = c->n_head / c->n_kv_head;
    float *ml = p->s->work.ml + p->thread * p->s->work.n_ml;
    heads of = {heads_at(p, q, item), heads_at(p, y, item), ml, ml + n_q, n_q};
    heads_begin(of, c->head_dim_v);
    attend_to(p, of, layer, item, first_block(p, layer, item), end_block(p, item), next);
    heads_end(of, of.acc, c->head_dim_v);
}

/* n items of a prompt, rows side by side of one head. Blocks that all of them see whole they attend
 * to together: K and V are read and widened once for several rows, though one head may have them.
 * A head gets the same bits so, since a kernel computes each head by itself. */
static void attend_rows(const dpi_pass *p, dpi_rows y, int32_t layer, dpi_rows q, int64_t item,
                        int32_t n) {
    const dpi_shape *c = p->shape;
    const dpi_work *w = &p->s->work;
    const int64_t last = item + n - 1;
    const int32_t n_q = c->n_head / c->n_kv_head, of_row = n_q * c->head_dim;
    float *ml = w->ml + p->thread * w->n_ml, *to = w->gathered + p->thread * w->n_gathered;
    float *acc = to + (int64_t)n * of_row;
    const heads all = heads_begin((heads){to, acc, ml, ml + n * n_q, n * n_q}, c->head_dim_v);
    for (int32_t i = 0; i < n; i++)
        memcpy(to + (int64_t)i * of_row, heads_at(p, q, item + i), (size_t)of_row * sizeof *to);
    const int32_t window = first_of(p, layer, row_of(p, last));
    const int32_t begin = (window + DPI_KV_BLOCK - 1) / DPI_KV_BLOCK;
    const int32_t whole = (p->s->row_pos[row_of(p, item)] + 1) / DPI_KV_BLOCK;
    const bool one_scale = p->s->model->config.temperature_scale == 0;
    const int32_t end = one_scale && whole > begin ? whole : begin;
    for (int32_t i = 0; i < n; i++) {
        const int32_t stop = end_block(p, item + i);
        attend_to(p, heads_of_row(c, all, i, n_q), layer, item + i,
                  first_block(p, layer, item + i), begin < stop ? begin : stop, item);
    }
    attend_to(p, all, layer, item, begin, end, item);
    for (int32_t i = 0; i < n; i++) {
        const heads row = heads_of_row(c, all, i, n_q);
        attend_to(p, row, layer, item + i, end, end_block(p, item + i), item);
        heads_end(row, heads_at(p, y, item + i), c->head_dim_v);
    }
}

/* Rows of heads [begin, end), DPI_ATTEND_ROWS at a time; of these every `step`th from `at` on. */
static void attend_prompt(const dpi_pass *p, dpi_rows y, int32_t layer, dpi_rows q, int64_t begin,
                          int64_t end, int64_t at, int64_t step) {
    const int64_t per_head = (p->n_rows + DPI_ATTEND_ROWS - 1) / DPI_ATTEND_ROWS;
    for (int64_t i = begin * per_head + at; i < end * per_head; i += step) {
        const int32_t row = (int32_t)(i % per_head) * DPI_ATTEND_ROWS;
        const int32_t left = p->n_rows - row;
        attend_rows(p, y, layer, q, i / per_head * p->n_rows + row,
                    left < DPI_ATTEND_ROWS ? left : DPI_ATTEND_ROWS);
    }
}

/* Multiplications and additions of a layer, for the scores and values of the positions in sight. */
static double operations(const dpi_pass *p, int32_t layer) {
    const dpi_shape *c = p->shape;
    double n_seen = 0;
    for (int32_t i = 0; i < p->n_rows; i++)
        n_seen += p->s->row_pos[i] + 1 - first_of(p, layer, i);
    return 2 * n_seen * c->n_head * (c->head_dim + c->head_dim_v);
}

void dpi_pass_attend(dpi_pass *p, dpi_rows y, int32_t layer, dpi_rows q) {
    items mine = items_of(p);
    if (p->batch->is_prompt && !mine.own_heads)
        p->has_written = true; /* rows that go together are not those that a thread has rotated */
    dpi_pass_meet(p);
    const double begin = p->thread == 0 ? dpi_seconds() : 0;
    if (p->batch->is_prompt && mine.own_heads)
        attend_prompt(p, y, layer, q, mine.begin / p->n_rows, mine.end / p->n_rows, 0, 1);
    else if (p->batch->is_prompt)
        attend_prompt(p, y, layer, q, 0, p->shape->n_kv_head, p->thread, p->n_threads);
    else
        for (int64_t i = mine.begin; i < mine.end; i += mine.step)
            attend(p, y, layer, q, i, i + mine.step < mine.end ? i + mine.step : i);
    p->has_written = true;
    /* The product that follows expects the thread's own columns, as dpi_pass_columns has them. */
    if (!mine.own_heads || y.n % (p->n_threads * DPI_Q8_BLOCK) != 0)
        dpi_pass_meet(p);
    if (p->thread == 0) {
        p->s->attention_seconds += dpi_seconds() - begin;
        p->s->attention_operations += operations(p, layer);
    }
}
