#include "train/tuner.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "dp/exact/gradient.h"
#include "dp/exact/poisson.h"
#include "dpinfer/process.h"
#include "train/adamw.h"
#include "train/base.h"

/* What a thread works with. All of it is private between two steps' wipes. */
typedef struct lane {
    void *work;
    size_t work_bytes;
    float *row, *unit; /* [n_params] gradients: of a row, of all rows of a unit */
    int32_t *scratch;  /* [n_params] */
    int64_t *sum;      /* [n_params] */
    dpi_row_buffer buffer;
} lane;

struct dpi_tuner {
    dpi_tuner_options options;
    dpi_blas blas;
    const dpi_graph *graph;
    dpi_graph_shape shape;
    dpi_graph_layout layout;
    dpi_lora lora;
    dpi_base_tables tables;
    dpi_graph_base base;  /* the model's matrices */
    float *params;        /* norms, and the adapters behind them; with full all weights */
    float *adapters;      /* those; with full the weights */
    float *m, *v;         /* moments */
    float *released;      /* the last noisy sum, divided */
    lane *lanes;          /* [n_threads] */
    int64_t n_done, n_unchanged;
};

/* ---- Creation -------------------------------------------------------------------------------- */

static dpi_status no_memory(dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the training of adapters");
}

static dpi_status check_real(const char *name, double value, double above, double most,
                             dpi_error *err) {
    if (value > above && value <= most)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG, "%s is %g, must be above %g and at most %g", name, value,
                    above, most);
}

static dpi_status check(const dpi_tuner_options *o, dpi_error *err) {
    if (!o->full) {
        DPI_TRY(dpi_check_range("rank", o->rank, 1, 1024, err));
        DPI_TRY(dpi_lora_check_targets(o->model->config.arch, o->targets, err));
        DPI_TRY(check_real("alpha", o->alpha, 0, 1e6, err));
    }
    DPI_TRY(dpi_check_range("share", o->share, 1, DPI_POISSON_ONE, err));
    DPI_TRY(dpi_check_range("steps", o->n_steps, 1, INT32_MAX, err));
    DPI_TRY(dpi_check_range("warmup", o->n_warmup, 0, INT32_MAX, err));
    DPI_TRY(dpi_check_range("threads", o->n_threads, 1, 1024, err));
    DPI_TRY(check_real("clip", o->clip, 0, 1e6, err));
    DPI_TRY(check_real("expected units of a step", o->expected, 0, 1e12, err));
    if (!(o->lr >= 0 && o->lr <= 1 && o->lr_floor >= 0 && o->lr_floor <= o->lr))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "learning rates are %g to %g, must be in 0..1, the first the larger one",
                        o->lr, o->lr_floor);
    if (!(o->sigma >= 0 && o->sigma <= DPI_GRADIENT_NOISE_MAX))
        return dpi_fail(err, DPI_STATUS_ARG, "sigma is %g, must be 0 (not private) to %g",
                        o->sigma, DPI_GRADIENT_NOISE_MAX);
    return DPI_STATUS_OK;
}

static dpi_status allocate_lane(const dpi_tuner *t, lane *l, dpi_error *err) {
    const size_t n = (size_t)t->lora.n_params, n_work = t->graph->work_size(&t->shape);
    l->work_bytes = n_work * t->graph->real_size;
    l->work = dpi_calloc(n_work, t->graph->real_size);
    l->row = dpi_calloc(n, sizeof *l->row);
    l->unit = dpi_calloc(n, sizeof *l->unit);
    l->scratch = dpi_calloc(n, sizeof *l->scratch);
    l->sum = dpi_calloc(n, sizeof *l->sum);
    if (!l->work || !l->row || !l->unit || !l->scratch || !l->sum)
        return no_memory(err);
    t->graph->work_init(&t->shape, l->work);
    return dpi_row_buffer_create(t->shape.context, &l->buffer, err);
}

static dpi_status allocate(dpi_tuner *t, dpi_error *err) {
    const size_t n = (size_t)t->lora.n_params, n_before = (size_t)t->layout.n_params;
    t->params = dpi_calloc(t->options.full ? n : n_before + n, sizeof *t->params);
    t->m = dpi_calloc(n, sizeof *t->m);
    t->v = dpi_calloc(n, sizeof *t->v);
    t->released = dpi_calloc(n, sizeof *t->released);
    t->lanes = dpi_calloc((size_t)t->options.n_threads, sizeof *t->lanes);
    if (!t->params || !t->m || !t->v || !t->released || !t->lanes)
        return no_memory(err);
    t->adapters = t->options.full ? t->params : t->params + n_before;
    for (int32_t i = 0; i < t->options.n_threads; i++)
        DPI_TRY(allocate_lane(t, &t->lanes[i], err));
    return DPI_STATUS_OK;
}

/* Shape, layout and adapters: how large all is. */
static dpi_status measure_shape(dpi_tuner *t, dpi_error *err) {
    const dpi_tuner_options *o = &t->options;
    DPI_TRY(dpi_base_shape(o->model, o->n_positions, &t->tables, &t->shape, err));
    t->base = dpi_base_of(o->model);
    t->shape.base = o->full ? NULL : &t->base;
    dpi_graph_layout_of(&t->shape, &t->layout);
    if (o->full) {
        DPI_TRY(dpi_base_check_floats(o->model, err));
        t->lora.n_params = t->layout.n_params;
    } else {
        dpi_lora_of(&t->shape, o->rank, (float)o->alpha, o->targets, &t->lora);
        t->shape.lora = &t->lora;
    }
    t->graph = dpi_graph_best();
    return DPI_STATUS_OK;
}

static dpi_status create(dpi_tuner *t, dpi_error *err) {
    const dpi_tuner_options *o = &t->options;
    DPI_TRY(measure_shape(t, err));
    DPI_TRY(allocate(t, err));
    DPI_TRY(dpi_blas_open(&t->blas, o->n_threads, err));
    t->blas.set_n_threads(1); /* units are computed in parallel */
    t->shape.blas = &t->blas;
    if (o->full) {
        dpi_base_read(o->model, &t->shape, t->params);
    } else {
        dpi_base_norms(o->model, &t->shape, t->params);
        dpi_lora_init(&t->lora, &t->shape, o->seed, t->adapters);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_tuner_create(const dpi_tuner_options *options, dpi_tuner **tuner, dpi_error *err) {
    DPI_TRY(check(options, err));
    dpi_tuner *t = dpi_calloc(1, sizeof *t);
    if (!t)
        return no_memory(err);
    t->options = *options;
    t->options.n_threads = dpi_process_threads(options->n_threads);
    const dpi_status status = create(t, err);
    if (status == DPI_STATUS_OK)
        *tuner = t;
    else
        dpi_tuner_free(t);
    return status;
}

/* The process now; a product of rows x [m, k] with weights [n, k], all of them zeros. */
static uint64_t after_product(const dpi_blas *blas, int32_t m, int32_t n, int32_t k,
                              dpi_status *status, dpi_error *err) {
    uint64_t now = 0;
    float *x = dpi_calloc((size_t)m * (size_t)k, sizeof *x);
    float *w = dpi_calloc((size_t)n * (size_t)k, sizeof *w);
    float *y = dpi_calloc((size_t)m * (size_t)n, sizeof *y);
    if (x && w && y)
        blas->sgemm(DPI_BLAS_ROW_MAJOR, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, m, n, k, 1, x, k, w, k,
                    0, y, n);
    else
        *status = no_memory(err);
    free(x), free(w), free(y);
    dpi_process_memory(&now, NULL);
    return now;
}

/* What OpenBLAS takes is not written down anywhere: the library by a product of a few numbers, a
 * thread's buffer, in which it packs matrices, by one of the largest matrix. Where it cannot be
 * opened, dpi_tuner_create says so; the rest is told all the same. */
static dpi_status measure_blas(const dpi_tuner *t, dpi_tuner_memory *memory, dpi_error *err) {
    const dpi_graph_shape *s = &t->shape;
    const int32_t most = (1 << 20) / s->dim, rows = s->n_vocab > s->ffn ? s->n_vocab : s->ffn;
    dpi_status status = DPI_STATUS_OK;
    uint64_t before = 0;
    dpi_blas blas;
    dpi_process_memory(&before, NULL);
    if (dpi_blas_open(&blas, t->options.n_threads, NULL) != DPI_STATUS_OK)
        return DPI_STATUS_OK;
    blas.set_n_threads(1);
    const uint64_t loaded = after_product(&blas, 8, 8, 8, &status, err);
    const uint64_t used = after_product(&blas, s->context, s->base && most < rows ? most : rows,
                                        s->dim, &status, err);
    dpi_blas_close(&blas);
    memory->blas_bytes = loaded > before ? (int64_t)(loaded - before) : 0;
    memory->thread_bytes += used > loaded ? (int64_t)(used - loaded) : 0;
    return status;
}

dpi_status dpi_tuner_memory_of(const dpi_tuner_options *options, dpi_tuner_memory *memory,
                               dpi_error *err) {
    dpi_tuner t = {.options = *options};
    DPI_TRY(check(options, err));
    const dpi_status status = measure_shape(&t, err);
    if (status != DPI_STATUS_OK) {
        dpi_base_tables_free(&t.tables);
        return status;
    }
    t.options.n_threads = dpi_process_threads(options->n_threads);
    const int64_t n = t.lora.n_params, n_before = options->full ? 0 : t.layout.n_params;
    const size_t n_work = t.graph->work_size(&t.shape), real = sizeof(float);
    const int64_t n_biases = t.shape.biases ? t.shape.n_layer * dpi_graph_bias_size(&t.shape) : 0;
    *memory = (dpi_tuner_memory){
        .state_bytes = (n_before + n_biases + 4 * n) * (int64_t)real,
        .step_bytes = n * (int64_t)(sizeof(int64_t) + 3 * real),
        .thread_bytes = n * (int64_t)(2 * real + sizeof(int32_t) + sizeof(int64_t)) +
                        (int64_t)(n_work * t.graph->real_size)};
    dpi_base_tables_free(&t.tables);
    return measure_blas(&t, memory, err);
}

static void wipe_lane(const dpi_tuner *t, lane *l) {
    const size_t n = (size_t)t->lora.n_params;
    dpi_wipe(l->row, n * sizeof *l->row);
    dpi_wipe(l->unit, n * sizeof *l->unit);
    dpi_wipe(l->scratch, n * sizeof *l->scratch);
    dpi_wipe(l->sum, n * sizeof *l->sum);
}

/* Work space and rows are used by the next step, so they are wiped at the end. */
static void free_lane(const dpi_tuner *t, lane *l) {
    const size_t n = (size_t)t->shape.context;
    if (l->sum) /* the last one that is made */
        wipe_lane(t, l);
    if (l->buffer.weights) {
        dpi_wipe(l->buffer.tokens, n * sizeof *l->buffer.tokens);
        dpi_wipe(l->buffer.targets, n * sizeof *l->buffer.targets);
        dpi_wipe(l->buffer.begins, (n + 1) * sizeof *l->buffer.begins);
    }
    dpi_wipe_free(l->work, l->work_bytes);
    free(l->row), free(l->unit), free(l->scratch), free(l->sum);
    dpi_row_buffer_free(&l->buffer);
}

void dpi_tuner_free(dpi_tuner *t) {
    if (!t)
        return;
    for (int32_t i = 0; t->lanes && i < t->options.n_threads; i++)
        free_lane(t, &t->lanes[i]);
    free(t->lanes), free(t->params), free(t->m), free(t->v), free(t->released);
    dpi_base_tables_free(&t->tables);
    dpi_blas_close(&t->blas);
    free(t);
}

/* ---- The sum --------------------------------------------------------------------------------- */

/* The unit's gradient, clipped as one, into the lane's sum. */
static void add_unit(const dpi_tuner *t, lane *l, const dpi_tuner_units *units, int64_t unit,
                     uint64_t bits) {
    const int64_t n = t->lora.n_params;
    dpi_row row;
    int32_t k = 0;
    if (units->gradient && units->gradient(units->user, unit, l->unit))
        k = 1;
    for (; !units->gradient && units->row(units->user, unit, k, bits, &l->buffer, &row); k++) {
        float *gradient = k == 0 ? l->unit : l->row;
        t->graph->loss(&t->shape, t->params, &row, 1, gradient, l->work);
        for (int64_t i = 0; k > 0 && i < n; i++)
            l->unit[i] += l->row[i];
    }
    if (k > 0)
        dpi_gradient_add(l->unit, n, (float)t->options.clip, l->scratch, l->sum);
}

/* Each unit is one rank's, by its place. */
static bool is_own(const dpi_train_ranks *ranks, int64_t unit) {
    return !ranks || unit % ranks->count == ranks->index;
}

dpi_status dpi_tuner_sum(dpi_tuner *t, const dpi_tuner_units *units, const uint8_t *joins,
                         const uint64_t *bits, int64_t *sum, dpi_error *err) {
    const dpi_tuner_options *o = &t->options;
    const size_t n = (size_t)t->lora.n_params;
    atomic_bool cancelled = false;
    memset(sum, 0, n * sizeof *sum);
#pragma omp parallel for schedule(dynamic, 1) num_threads(o->n_threads)
    for (int64_t i = 0; i < units->n; i++) {
        if (!joins[i] || !is_own(o->ranks, i) ||
            atomic_load_explicit(&cancelled, memory_order_relaxed))
            continue;
        if (o->cancel && o->cancel(o->cancel_user))
            atomic_store(&cancelled, true);
        else
            add_unit(t, &t->lanes[omp_get_thread_num()], units, i, bits[i]);
    }
    for (int32_t k = 0; k < o->n_threads; k++) {
        for (size_t i = 0; i < n; i++)
            sum[i] += t->lanes[k].sum[i];
        wipe_lane(t, &t->lanes[k]);
    }
    if (!atomic_load(&cancelled))
        return DPI_STATUS_OK;
    dpi_wipe(sum, n * sizeof *sum);
    return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled");
}

/* ---- The step -------------------------------------------------------------------------------- */

static bool is_first(const dpi_tuner_options *o) { return !o->ranks || o->ranks->index == 0; }

static dpi_status share(const dpi_tuner_options *o, void *data, size_t n_bytes, dpi_error *err) {
    return o->ranks ? o->ranks->share(o->ranks->user, data, n_bytes, err) : DPI_STATUS_OK;
}

/* Who joins, and the bits of each unit: drawn once, by rank 0. */
static dpi_status draw_units(const dpi_tuner_options *o, size_t n_units, uint8_t *joins,
                             uint64_t *bits, dpi_error *err) {
    if (is_first(o)) {
        DPI_TRY(dpi_poisson_draw(o->share, n_units, o->random, o->random_user, joins, err));
        DPI_TRY(dpi_random_fill(o->random, o->random_user, bits, n_units * sizeof *bits, err));
    }
    DPI_TRY(share(o, joins, n_units * sizeof *joins, err));
    return share(o, bits, n_units * sizeof *bits, err);
}

/* sum [n_params] = that of the units that join, with noise; on rank 0. */
static dpi_status draw_sum(dpi_tuner *t, const dpi_tuner_units *units, int64_t *sum,
                           dpi_error *err) {
    const dpi_tuner_options *o = &t->options;
    const size_t n_units = (size_t)units->n;
    uint64_t *bits = dpi_calloc(n_units, sizeof *bits);
    uint8_t *joins = dpi_calloc(n_units, sizeof *joins);
    dpi_status status = bits && joins ? DPI_STATUS_OK : no_memory(err);
    if (status == DPI_STATUS_OK)
        status = draw_units(o, n_units, joins, bits, err);
    if (status == DPI_STATUS_OK)
        status = dpi_tuner_sum(t, units, joins, bits, sum, err);
    if (status == DPI_STATUS_OK && o->ranks)
        status = o->ranks->add(o->ranks->user, sum, t->lora.n_params, err);
    dpi_wipe_free(joins, n_units);
    dpi_wipe_free(bits, n_units * sizeof *bits);
    if (status == DPI_STATUS_OK && o->sigma > 0 && is_first(o)) /* once, of all ranks */
        status =
            dpi_gradient_noise(o->sigma, t->lora.n_params, o->random, o->random_user, sum, err);
    return status;
}

static bool all_finite(const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* Adam on what was released. Where that would not be finite the step is done without a change: its
 * noise is drawn and paid for, and a step that fails would be drawn again. */
static void update(dpi_tuner *t, float *kept) {
    const dpi_tuner_options *o = &t->options;
    const int64_t n = t->lora.n_params, step = t->n_done + 1;
    const size_t n_bytes = (size_t)n * sizeof *kept;
    const double noise = o->unbiased ? pow(o->sigma * o->clip / o->expected, 2) : 0;
    const dpi_adamw a = {
        .lr = dpi_learning_rate(o->lr, o->lr_floor, o->n_warmup, step, o->n_steps),
        .beta1 = .9, .beta2 = .999, .eps = 1e-8, .step = step,
        .noise = noise, .least = o->least * noise};
    float *const arrays[] = {t->adapters, t->m, t->v};
    for (int i = 0; i < 3; i++)
        memcpy(kept + i * n, arrays[i], n_bytes);
    dpi_adamw_step(&a, t->adapters, t->m, t->v, t->released, 1, n, o->n_threads);
    t->n_done = step;
    if (all_finite(t->adapters, n) && all_finite(t->m, n) && all_finite(t->v, n))
        return;
    t->n_unchanged++;
    for (int i = 0; i < 3; i++)
        memcpy(arrays[i], kept + i * n, n_bytes);
}

/* Moments are rank 0's alone. */
static dpi_status share_adapters(dpi_tuner *t, dpi_error *err) {
    DPI_TRY(share(&t->options, t->adapters, (size_t)t->lora.n_params * sizeof *t->adapters, err));
    return share(&t->options, &t->n_done, sizeof t->n_done, err);
}

dpi_status dpi_tuner_step(dpi_tuner *t, const dpi_tuner_units *units, dpi_error *err) {
    const dpi_tuner_options *o = &t->options;
    const size_t n = (size_t)t->lora.n_params;
    const double unit = o->clip / (double)(INT64_C(1) << DPI_GRADIENT_SHIFT) / o->expected;
    if (t->n_done == o->n_steps)
        return dpi_fail(err, DPI_STATUS_STATE, "all %lld steps are done", (long long)t->n_done);
    int64_t *sum = dpi_calloc(n, sizeof *sum);
    float *kept = dpi_calloc(3 * n, sizeof *kept);
    dpi_status status = sum && kept ? draw_sum(t, units, sum, err) : no_memory(err);
    if (status == DPI_STATUS_OK && is_first(o)) {
        for (size_t i = 0; i < n; i++)
            t->released[i] = (float)((double)sum[i] * unit);
        update(t, kept);
    }
    if (status == DPI_STATUS_OK)
        status = share_adapters(t, err);
    dpi_wipe_free(sum, n * sizeof *sum);
    free(kept);
    return status;
}

dpi_status dpi_tuner_share(dpi_tuner *t, dpi_error *err) { return share_adapters(t, err); }

/* ---- What comes of it ------------------------------------------------------------------------ */

const float *dpi_tuner_released(const dpi_tuner *t) { return t->released; }
const float *dpi_tuner_adapters(const dpi_tuner *t) { return t->adapters; }
const dpi_lora *dpi_tuner_lora(const dpi_tuner *t) { return &t->lora; }
const dpi_graph_shape *dpi_tuner_shape(const dpi_tuner *t) { return &t->shape; }
int64_t dpi_tuner_steps_done(const dpi_tuner *t) { return t->n_done; }
int64_t dpi_tuner_steps_unchanged(const dpi_tuner *t) { return t->n_unchanged; }

void dpi_tuner_state(const dpi_tuner *t, const float *arrays[3], int64_t *n_steps) {
    arrays[0] = t->adapters, arrays[1] = t->m, arrays[2] = t->v;
    *n_steps = t->n_done;
}

dpi_status dpi_tuner_restore(dpi_tuner *t, const float *const arrays[3], int64_t n_steps,
                             dpi_error *err) {
    const int64_t n = t->lora.n_params;
    float *const to[] = {t->adapters, t->m, t->v};
    DPI_TRY(dpi_check_range("steps done", n_steps, 0, t->options.n_steps, err));
    for (int i = 0; i < 3; i++)
        if (!all_finite(arrays[i], n))
            return dpi_fail(err, DPI_STATUS_NUMERIC, "the kept state is not finite");
    for (int i = 0; i < 3; i++)
        memcpy(to[i], arrays[i], (size_t)n * sizeof(float));
    t->n_done = n_steps;
    return DPI_STATUS_OK;
}

/* ---- How long it takes ----------------------------------------------------------------------- */

static double now(void) { return omp_get_wtime(); }

/* Noise of a part of the coordinates. */
static dpi_status measure_step(dpi_tuner *t, double *seconds, dpi_error *err) {
    enum { PART = 1 << 14 };
    const int64_t n = t->lora.n_params, part = n < PART ? n : PART;
    int64_t *sum = dpi_calloc((size_t)part, sizeof *sum);
    if (!sum)
        return no_memory(err);
    const double begin = now();
    const dpi_status status = t->options.sigma > 0
                                  ? dpi_gradient_noise(t->options.sigma, part, NULL, NULL, sum, err)
                                  : DPI_STATUS_OK;
    *seconds = (now() - begin) * (double)n / (double)part;
    dpi_wipe_free(sum, (size_t)part * sizeof *sum);
    return status;
}

dpi_status dpi_tuner_measure(dpi_tuner *t, double *gradient, double *step, dpi_error *err) {
    lane *l = &t->lanes[0];
    const int32_t n = t->shape.context;
    for (int32_t i = 0; i < n; i++) {
        l->buffer.tokens[i] = (int32_t)((int64_t)i * 7919 % t->shape.n_vocab);
        l->buffer.targets[i] = (int32_t)((int64_t)i * 104729 % t->shape.n_vocab);
        l->buffer.weights[i] = 1;
    }
    l->buffer.begins[0] = 0, l->buffer.begins[1] = n;
    const dpi_row row = {n, 1, l->buffer.begins, l->buffer.tokens, l->buffer.targets,
                         l->buffer.weights};
    for (int i = 0; i < 2; i++) { /* the first one brings memory in */
        const double begin = now();
        t->graph->loss(&t->shape, t->params, &row, 1, l->unit, l->work);
        dpi_gradient_add(l->unit, t->lora.n_params, (float)t->options.clip, l->scratch, l->sum);
        *gradient = now() - begin;
    }
    wipe_lane(t, l);
    return measure_step(t, step, err);
}

double dpi_tuner_loss(dpi_tuner *t, const dpi_row *row) {
    return t->graph->loss(&t->shape, t->params, row, 1, NULL, t->lanes[0].work);
}
