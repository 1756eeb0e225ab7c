/* trainer.c - a training run: rows in parallel, their gradients added in order, one AdamW step. */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpinfer/process.h"
#include "base/file.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "kernels/gemm.h"
#include "train/adamw.h"
#include "train/checkpoint.h"
#include "train/export.h"
#include "train/packing.h"
#include "train/random.h"
#include "train/settings.h"
#include "train/tensors.h"

DPI_STRUCT_DEFAULTS(dpi_train_hooks, 0)

DPI_STRUCT_DEFAULTS(dpi_train_info, 0)

/* Rows that are computed before their gradients are added up: bounds the memory for gradients. A
 * constant, so that the order of additions does not depend on the number of threads. */
enum { WAVE = 16 };

struct dpi_train {
    dpi_train_config config;
    dpi_graph_shape shape;
    dpi_blas blas;
    dpi_graph_layout layout;
    const dpi_graph *graph;
    dpi_vocab_text vocab;
    dpi_corpus corpus, heldout; /* heldout.n = 0: none */
    dpi_packing packing;        /* of state.epoch */
    dpi_packing heldout_packing;
    dpi_checkpoint state;
    int64_t steps, n_rows;    /* n_rows: of epoch 0 */
    int32_t n_threads, n_slots;
    float *params, *m, *v;    /* [n_params] */
    float *slots[WAVE];       /* [n_slots][n_params] gradients of rows */
    float *sum;               /* slots[0], or an array of its own if there are several waves */
    double *blocks;           /* for dpi_gradient_square */
    dpi_row_buffer rows[WAVE];
    void **work;              /* [n_threads] */
};

/* ---- Creation -------------------------------------------------------------------------------- */

static dpi_status no_memory(dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for training");
}

static void set_shape(dpi_train *t) {
    const dpi_train_config *c = &t->config;
    t->shape = (dpi_graph_shape){
        .arch = &dpi_arch_llama,
        .n_layer = c->n_layer, .dim = c->dim, .n_head = c->n_head, .n_kv_head = c->n_kv_head,
        .ffn = c->ffn, .n_vocab = t->vocab.n, .context = c->context, .tied = c->tied,
        .rms_eps = 1e-5f, .rope_base = (float)c->rope_theta,
    };
    dpi_graph_layout_of(&t->shape, &t->layout);
}

/* An empty file beside `path`, which the caller removes; its name is for free. */
static dpi_status make_temporary(const char *path, char **name, dpi_error *err) {
    const int fd = dpi_file_make_beside(path, name);
    if (fd < 0)
        return dpi_fail(err, dpi_status_of_errno(errno), "cannot write a file beside %s: %s", path,
                        dpi_reason(errno));
    close(fd);
    return DPI_STATUS_OK;
}

/* The engine's own tokenizer on a file without weights, so that examples are encoded exactly as
 * prompts are at inference. */
static dpi_status load_tokenizer(const dpi_train *t, dpi_model **model, dpi_error *err) {
    char *path;
    dpi_model_options options;
    dpi_model_options_init(&options);
    options.use_mmap = 0;
    options.vocab_only = 1;
    DPI_TRY(make_temporary(t->config.checkpoint, &path, err));
    dpi_status status = dpi_export_gguf(path, &t->config, &t->shape, &t->vocab, NULL, err);
    if (status == DPI_STATUS_OK)
        status = dpi_model_open(path, &options, model, err);
    unlink(path);
    free(path);
    return status;
}

static dpi_status open_tokenizer(const dpi_train *t, dpi_model **model, dpi_error *err) {
    sigset_t signals;
    dpi_file_hold_signals(&signals);
    const dpi_status status = load_tokenizer(t, model, err);
    dpi_file_release_signals(&signals);
    return status;
}

static dpi_status read_data(dpi_train *t, dpi_error *err) {
    const dpi_train_config *c = &t->config;
    dpi_model *model;
    const char *paths[DPI_TRAIN_FILES], *heldout = c->heldout;
    int32_t n = 0;
    while (n < DPI_TRAIN_FILES && c->data[n][0])
        paths[n] = c->data[n], n++;
    DPI_TRY(open_tokenizer(t, &model, err));
    dpi_status status = dpi_corpus_read(model, t->vocab.eos, paths, n, c->context, t->n_threads,
                                        &t->corpus, err);
    if (status == DPI_STATUS_OK && heldout[0])
        status = dpi_corpus_read(model, t->vocab.eos, &heldout, 1, c->context, t->n_threads,
                                 &t->heldout, err);
    dpi_model_close(model);
    if (status == DPI_STATUS_OK && heldout[0])
        status = dpi_packing_create(&t->heldout, c->context, 0, 0, &t->heldout_packing, err);
    return status;
}

static dpi_status allocate(dpi_train *t, dpi_error *err) {
    size_t n = (size_t)t->layout.n_params, work = t->graph->work_size(&t->shape);
    int32_t rows = t->config.batch_tokens / t->config.context;
    t->n_slots = rows < WAVE ? rows : WAVE;
    t->params = dpi_calloc(n, sizeof *t->params);
    t->m = dpi_calloc(n, sizeof *t->m);
    t->v = dpi_calloc(n, sizeof *t->v);
    t->blocks = dpi_calloc(n / DPI_ADAMW_BLOCK + 1, sizeof *t->blocks);
    t->work = dpi_calloc((size_t)t->n_threads, sizeof *t->work);
    if (!t->params || !t->m || !t->v || !t->blocks || !t->work)
        return no_memory(err);
    for (int32_t i = 0; i < t->n_slots; i++) {
        DPI_TRY(dpi_row_buffer_create(t->config.context, &t->rows[i], err));
        t->slots[i] = dpi_calloc(n, sizeof *t->slots[i]);
        if (!t->slots[i])
            return no_memory(err);
    }
    t->sum = rows > WAVE ? dpi_calloc(n, sizeof *t->sum) : t->slots[0];
    if (!t->sum)
        return no_memory(err);
    for (int32_t i = 0; i < t->n_threads; i++) {
        t->work[i] = dpi_calloc(work, t->graph->real_size);
        if (!t->work[i])
            return no_memory(err);
        t->graph->work_init(&t->shape, t->work[i]);
    }
    return DPI_STATUS_OK;
}

static void init_matrix(float *w, int64_t n, double deviation, uint64_t *state) {
    for (int64_t i = 0; i < n; i++)
        w[i] = (float)(deviation * dpi_train_random_normal(state));
}

static void init_norm(float *w, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        w[i] = 1;
}

/* Matrices keep half the size of their input; those that add to the residual stream share its
 * growth (Radford et al. 2019, section 2.3). */
static void init_params(dpi_train *t) {
    const dpi_graph_shape *s = &t->shape;
    const dpi_graph_layout *at = &t->layout;
    const dpi_graph_places in = dpi_graph_places_of(s, 0); /* of each layer */
    uint64_t state = t->config.seed;
    double wide = 0.5 / sqrt(s->dim), down = 0.5 / sqrt(s->ffn), share = 1 / sqrt(2.0 * s->n_layer);
    init_matrix(t->params + at->embedding, (int64_t)s->n_vocab * s->dim, 0.02, &state);
    if (!s->tied)
        init_matrix(t->params + at->output, (int64_t)s->n_vocab * s->dim, 0.02, &state);
    init_norm(t->params + at->output_norm, s->dim);
    for (int32_t l = 0; l < s->n_layer; l++) {
        float *w = t->params + at->layers[l];
        init_norm(w + in.attn_norm.at, s->dim);
        init_matrix(w + in.wqkv, in.wo - in.wqkv, wide, &state);
        init_matrix(w + in.wo, in.ffn_norm.at - in.wo, wide * share, &state);
        init_norm(w + in.ffn_norm.at, s->dim);
        init_matrix(w + in.w_gate_up, in.w_down - in.w_gate_up, wide, &state);
        init_matrix(w + in.w_down, in.size - in.w_down, down * share, &state);
    }
}

static dpi_status pack_epoch(dpi_train *t, dpi_error *err) {
    dpi_packing_free(&t->packing);
    return dpi_packing_create(&t->corpus, t->config.context, t->config.seed, t->state.epoch,
                              &t->packing, err);
}

static int64_t steps_of(const dpi_train *t) {
    const dpi_train_config *c = &t->config;
    if (c->steps > 0)
        return c->steps;
    double rows = (double)(c->batch_tokens / c->context);
    return (int64_t)ceil(c->epochs * (double)t->n_rows / rows);
}

static dpi_status resume(dpi_train *t, dpi_error *err) {
    int32_t found;
    t->state = (dpi_checkpoint){.config_hash = dpi_train_config_hash(&t->config),
                                .data_hash = dpi_corpus_hash(&t->corpus),
                                .n_params = t->layout.n_params};
    t->state.data_hash = dpi_hash(t->state.data_hash, t->vocab.texts, t->vocab.n_bytes);
    DPI_TRY(pack_epoch(t, err));
    t->n_rows = t->packing.n_rows;
    t->steps = steps_of(t);
    float *const arrays[] = {t->params, t->m, t->v};
    DPI_TRY(dpi_checkpoint_read(t->config.checkpoint, &t->state, arrays, "steps, epochs, threads",
                                &found, err));
    if (!found && t->config.init[0])
        DPI_TRY(dpi_train_tensors_read(t->config.init, &t->shape, t->params, err));
    else if (!found)
        init_params(t);
    else if (t->state.epoch > 0)
        DPI_TRY(pack_epoch(t, err));
    if (t->state.step > t->steps)
        return dpi_fail(err, DPI_STATUS_ARG, "%s has done %lld steps, steps is %lld",
                        t->config.checkpoint, (long long)t->state.step, (long long)t->steps);
    return DPI_STATUS_OK;
}

static dpi_status create(dpi_train *t, dpi_error *err) {
    t->n_threads = dpi_process_threads(t->config.threads ? t->config.threads : dpi_processors());
    t->graph = dpi_graph_best();
    DPI_TRY(dpi_vocab_text_read(t->config.vocab, &t->vocab, err));
    set_shape(t);
    DPI_TRY(read_data(t, err));
    DPI_TRY(allocate(t, err));
    DPI_TRY(dpi_blas_open(&t->blas, t->n_threads, err));
    t->blas.set_n_threads(1); /* rows of a batch are computed in parallel */
    t->shape.blas = &t->blas;
    return resume(t, err);
}

dpi_status dpi_train_create(const dpi_train_config *config, dpi_train **train, dpi_error *err) {
    DPI_COPY_STRUCT(dpi_train_config, c, config, err);
    DPI_TRY(dpi_train_config_check(&c, err));
    if (!train)
        return dpi_fail(err, DPI_STATUS_ARG, "train must not be NULL");
    dpi_train *t = dpi_calloc(1, sizeof *t);
    if (!t)
        return no_memory(err);
    t->config = c;
    dpi_status status = create(t, err);
    if (status == DPI_STATUS_OK)
        *train = t;
    else
        dpi_train_free(t);
    return status;
}

void dpi_train_free(dpi_train *t) {
    if (!t)
        return;
    for (int32_t i = 0; t->work && i < t->n_threads; i++)
        free(t->work[i]);
    if (t->sum != t->slots[0])
        free(t->sum);
    for (int32_t i = 0; i < t->n_slots; i++) {
        dpi_row_buffer_free(&t->rows[i]);
        free(t->slots[i]);
    }
    free(t->work), free(t->blocks), free(t->params), free(t->m), free(t->v);
    dpi_packing_free(&t->packing);
    dpi_packing_free(&t->heldout_packing);
    dpi_corpus_free(&t->corpus);
    dpi_corpus_free(&t->heldout);
    dpi_vocab_text_free(&t->vocab);
    dpi_blas_close(&t->blas);
    free(t);
}

static int64_t positions_of(const dpi_corpus *c) { return c->n ? c->begins[c->n] - c->n : 0; }

dpi_status dpi_train_info_get(const dpi_train *t, dpi_train_info *info, dpi_error *err) {
    if (!t)
        return dpi_fail(err, DPI_STATUS_ARG, "train must not be NULL");
    DPI_CHECK_STRUCT(dpi_train_info, info, err);
    const dpi_train_info made = {
        .n_params = t->layout.n_params, .n_examples = t->corpus.n,
        .n_too_long = t->corpus.n_too_long, .n_tokens = positions_of(&t->corpus),
        .n_heldout = t->heldout.n, .n_rows = t->n_rows, .step = t->state.step, .steps = t->steps,
        .n_vocab = t->shape.n_vocab, .threads = t->n_threads,
    };
    dpi_struct_give(info, &made, sizeof made);
    return DPI_STATUS_OK;
}

/* ---- A step ---------------------------------------------------------------------------------- */

/* A place in the data: rows epoch after epoch. */
static dpi_status next_row(dpi_train *t, int64_t *index, dpi_error *err) {
    if (t->state.row == t->packing.n_rows) {
        t->state.epoch++;
        t->state.row = 0;
        DPI_TRY(pack_epoch(t, err));
    }
    *index = t->state.row++;
    return DPI_STATUS_OK;
}

/* What the rows of a step add up to. */
typedef struct totals {
    double loss, weight, operations;
    int64_t n_tokens;
} totals;

/* The gradient of the wave's summed loss goes to t->sum, added to what is there unless `first`.
 * It is divided by the total weight of the step later, when that is known. */
static void compute_wave(dpi_train *t, const dpi_row *rows, int32_t n, int first, totals *all) {
    double losses[WAVE];
#pragma omp parallel for schedule(dynamic, 1) num_threads(t->n_threads)
    for (int32_t i = 0; i < n; i++)
        losses[i] = t->graph->loss(&t->shape, t->params, &rows[i], 1, t->slots[i],
                                   t->work[omp_get_thread_num()]);
    dpi_gradient_sum(t->sum, !first, t->slots, n, t->layout.n_params, t->n_threads);
    for (int32_t i = 0; i < n; i++)
        all->loss += losses[i];
}

static void count_row(const dpi_train *t, const dpi_row *row, totals *all) {
    for (int32_t i = 0; i < row->n; i++)
        all->weight += (double)row->weights[i];
    all->n_tokens += row->n;
    all->operations += dpi_graph_flops(&t->shape, row);
}

static dpi_status compute_gradient(dpi_train *t, totals *all, dpi_error *err) {
    int32_t left = t->config.batch_tokens / t->config.context;
    for (int first = 1; left > 0; first = 0) {
        dpi_row rows[WAVE];
        int32_t n = left < t->n_slots ? left : t->n_slots;
        for (int32_t i = 0; i < n; i++) {
            int64_t index;
            DPI_TRY(next_row(t, &index, err));
            rows[i] = dpi_row_fill(&t->rows[i], &t->corpus, &t->packing, index,
                                   (float)t->config.prompt_weight);
            count_row(t, &rows[i], all);
        }
        compute_wave(t, rows, n, first, all);
        left -= n;
    }
    return DPI_STATUS_OK;
}

static void step_range(dpi_train *t, dpi_adamw *a, double scale, int64_t begin, int64_t n,
                       double weight_decay) {
    a->weight_decay = weight_decay;
    dpi_adamw_step(a, t->params + begin, t->m + begin, t->v + begin, t->sum + begin, scale, n,
                   t->n_threads);
}

static void update(dpi_train *t, double scale, const dpi_train_progress *p) {
    const dpi_train_config *c = &t->config;
    dpi_adamw a = {.lr = p->lr, .beta1 = c->beta1, .beta2 = c->beta2, .eps = 1e-8, .step = p->step};
    if (c->clip > 0 && p->grad_norm > c->clip)
        scale *= c->clip / p->grad_norm;
    /* Runs of matrices between the norms, which do not decay. */
    const dpi_graph_layout *at = &t->layout;
    const dpi_graph_places in = dpi_graph_places_of(&t->shape, 0); /* of each layer */
    int64_t dim = t->shape.dim, end = at->output_norm;
    step_range(t, &a, scale, 0, end, c->weight_decay);
    step_range(t, &a, scale, end, dim, 0);
    for (int32_t l = 0; l < t->shape.n_layer; l++) {
        int64_t layer = at->layers[l];
        step_range(t, &a, scale, layer + in.attn_norm.at, dim, 0);
        step_range(t, &a, scale, layer + in.wqkv, in.ffn_norm.at - in.wqkv, c->weight_decay);
        step_range(t, &a, scale, layer + in.ffn_norm.at, dim, 0);
        step_range(t, &a, scale, layer + in.w_gate_up, in.size - in.w_gate_up, c->weight_decay);
    }
}

static dpi_status train_step(dpi_train *t, dpi_train_progress *p, dpi_error *err) {
    const dpi_train_config *c = &t->config;
    totals all = {0};
    double begin = omp_get_wtime();
    *p = (dpi_train_progress){.step = t->state.step + 1, .steps = t->steps, .heldout_loss = NAN};
    int64_t decay_steps = c->decay_steps > 0 ? c->decay_steps : p->steps;
    p->lr = dpi_learning_rate(c->lr, c->lr_floor, c->warmup, p->step, decay_steps);
    DPI_TRY(compute_gradient(t, &all, err));
    if (all.weight > 0) {
        double square = dpi_gradient_square(t->sum, t->blocks, t->layout.n_params, t->n_threads);
        p->loss = all.loss / all.weight;
        p->grad_norm = sqrt(square) / all.weight;
        if (!isfinite(p->loss) || !isfinite(p->grad_norm))
            return dpi_fail(err, DPI_STATUS_NUMERIC,
                            "step %lld: loss %g, norm of the gradient %g; a lower lr may help",
                            (long long)p->step, p->loss, p->grad_norm);
        update(t, 1 / all.weight, p);
    }
    t->state.step = p->step;
    p->n_tokens = all.n_tokens;
    p->operations = all.operations;
    p->seconds = omp_get_wtime() - begin;
    return DPI_STATUS_OK;
}

/* ---- The run --------------------------------------------------------------------------------- */

static dpi_status save(const dpi_train *t, dpi_error *err) {
    const float *const arrays[] = {t->params, t->m, t->v};
    return dpi_checkpoint_write(t->config.checkpoint, &t->state, arrays, err);
}

/* What is due after a step, and the report of it. */
static dpi_status after_step(dpi_train *t, const dpi_train_hooks *hooks, dpi_train_progress *p,
                             dpi_error *err) {
    const dpi_train_config *c = &t->config;
    bool last = p->step == p->steps;
    int64_t n_tokens;
    if (t->heldout.n > 0 && (last || p->step % c->heldout_steps == 0))
        DPI_TRY(dpi_train_evaluate(t, c->heldout_rows, &p->heldout_loss, &n_tokens, err));
    if (last || p->step % c->checkpoint_steps == 0) {
        DPI_TRY(save(t, err));
        p->saved = 1;
    }
    if (hooks->on_step)
        hooks->on_step(hooks->user, p);
    return DPI_STATUS_OK;
}

dpi_status dpi_train_run(dpi_train *t, const dpi_train_hooks *given, dpi_error *err) {
    if (!t)
        return dpi_fail(err, DPI_STATUS_ARG, "train must not be NULL");
    DPI_COPY_STRUCT_IF(dpi_train_hooks, hooks, given, err);
    while (t->state.step < t->steps) {
        dpi_train_progress p;
        if (hooks.cancel && hooks.cancel(hooks.user)) {
            DPI_TRY(save(t, err));
            return dpi_fail(err, DPI_STATUS_CANCELLED, "stopped after step %lld of %lld",
                            (long long)t->state.step, (long long)t->steps);
        }
        DPI_TRY(train_step(t, &p, err));
        DPI_TRY(after_step(t, &hooks, &p, err));
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_train_evaluate(dpi_train *t, int64_t max_rows, double *loss, int64_t *n_tokens,
                              dpi_error *err) {
    if (!t || !loss || !n_tokens || max_rows < 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "train, loss and n_tokens must not be NULL, nor max_rows negative");
    if (t->heldout.n == 0)
        return dpi_fail(err, DPI_STATUS_STATE, "the configuration has no heldout file");
    int64_t n_rows = t->heldout_packing.n_rows;
    if (max_rows > 0 && max_rows < n_rows)
        n_rows = max_rows;
    double sum = 0, weight = 0;
    for (int64_t begin = 0; begin < n_rows; begin += t->n_slots) {
        int32_t n = (int32_t)(n_rows - begin < t->n_slots ? n_rows - begin : t->n_slots);
        double losses[WAVE], weights[WAVE];
#pragma omp parallel for schedule(dynamic, 1) num_threads(t->n_threads)
        for (int32_t i = 0; i < n; i++) {
            dpi_row row = dpi_row_fill(&t->rows[i], &t->heldout, &t->heldout_packing, begin + i, 0);
            totals all = {0};
            count_row(t, &row, &all);
            weights[i] = all.weight;
            losses[i] = t->graph->loss(&t->shape, t->params, &row, 1, NULL,
                                       t->work[omp_get_thread_num()]);
        }
        for (int32_t i = 0; i < n; i++) {
            sum += losses[i];
            weight += weights[i];
        }
    }
    *loss = sum / weight;
    *n_tokens = (int64_t)weight;
    return DPI_STATUS_OK;
}

/* By way of a file with the weights as they are. */
static dpi_status export_as(const dpi_train *t, const char *path, const char *type,
                            dpi_error *err) {
    char *exact;
    dpi_write_options options;
    dpi_write_options_init(&options);
    options.type = type;
    options.n_threads = t->n_threads;
    DPI_TRY(make_temporary(path, &exact, err));
    dpi_status status =
        dpi_export_gguf(exact, &t->config, &t->shape, &t->vocab, t->params, err);
    if (status == DPI_STATUS_OK)
        status = dpi_model_quantize(exact, path, &options, err);
    unlink(exact);
    free(exact);
    return status;
}

dpi_status dpi_train_export(const dpi_train *t, const char *path, const char *type,
                            dpi_error *err) {
    if (!t || !path || !type)
        return dpi_fail(err, DPI_STATUS_ARG, "train, path and type must not be NULL");
    sigset_t signals;
    dpi_file_hold_signals(&signals);
    const dpi_status status =
        strcmp(type, "F32") == 0
            ? dpi_export_gguf(path, &t->config, &t->shape, &t->vocab, t->params, err)
            : export_as(t, path, type, err);
    dpi_file_release_signals(&signals);
    return status;
}
