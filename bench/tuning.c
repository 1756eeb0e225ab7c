/* tuning.c - what privacy costs in a step of training, and how near its products are to what the
 * processor can do.
 *
 *     dpinfer-bench-tuning MODEL [POSITIONS UNITS ROUNDS THREADS]
 *
 * A step in which UNITS units of one row each join, with clipping and noise in integers
 * (train/tuner.h), beside the same rows without: gradients in floats, their sum, Adam. Both in
 * turns; medians. Rank 8, every matrix. The rate of rows counts the operations of a forward pass
 * and of a backward pass to the activations: two thirds of what training all weights takes. What
 * the processor can do is measured by OpenBLAS's product of two 1024 x 1024 matrices in each
 * thread, and by multiplications and additions alone. Prints a table in Markdown. */
#include <math.h>
#include <omp.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/bench.h"
#include "dpinfer/bench.h"
#include "train/adamw.h"
#include "train/base.h"
#include "train/tuner.h"

enum { RANK = 8, PEAK = 1024, ROUNDS_MAX = 99 };

typedef struct bench {
    dpi_model *model;
    int32_t n_positions, n_units, n_rounds, n_threads;
    int32_t *tokens; /* [n_units, n_positions + 1] */
    int32_t *begins; /* [2] */
    float *weights;  /* [n_positions], ones */
} bench;

static void *allocate(size_t n, size_t size) {
    void *p = calloc(n, size);
    if (!p)
        bench_die("memory", "there is none left");
    return p;
}

static double now(void) { return bench_seconds(CLOCK_MONOTONIC); }

static dpi_row row_of(const bench *b, int64_t unit) {
    const int32_t *tokens = b->tokens + unit * (b->n_positions + 1);
    return (dpi_row){b->n_positions, 1, b->begins, tokens, tokens + 1, b->weights};
}

static bool next_row(void *user, int64_t unit, int32_t k, uint64_t bits,
                     const dpi_row_buffer *buffer, dpi_row *row) {
    (void)bits, (void)buffer;
    *row = row_of(user, unit);
    return k == 0;
}

/* ---- The same without privacy ---------------------------------------------------------------- */

typedef struct plain {
    const dpi_graph *graph;
    dpi_graph_shape shape;
    dpi_graph_base base;
    dpi_graph_layout layout;
    dpi_lora lora;
    dpi_blas blas;
    dpi_base_tables tables;
    float *params, *m, *v, *sum;
    float **gradients; /* [n_units] */
    void **work;       /* [n_threads] */
} plain;

static void open_plain(const bench *b, plain *p) {
    dpi_error err;
    *p = (plain){.graph = dpi_graph_best()};
    bench_check(dpi_base_shape(b->model, b->n_positions, &p->tables, &p->shape, &err), &err);
    p->base = dpi_base_of(b->model);
    p->shape.base = &p->base;
    dpi_graph_layout_of(&p->shape, &p->layout);
    dpi_lora_of(&p->shape, RANK, 16, DPI_LORA_ALL, &p->lora);
    p->shape.lora = &p->lora;
    bench_check(dpi_blas_open(&p->blas, b->n_threads, &err), &err);
    p->blas.set_n_threads(1);
    p->shape.blas = &p->blas;
    const size_t n = (size_t)p->lora.n_params;
    p->params = allocate((size_t)p->layout.n_params + n, sizeof *p->params);
    p->m = allocate(n, sizeof *p->m), p->v = allocate(n, sizeof *p->v);
    p->sum = allocate(n, sizeof *p->sum);
    p->gradients = allocate((size_t)b->n_units, sizeof *p->gradients);
    for (int32_t i = 0; i < b->n_units; i++)
        p->gradients[i] = allocate(n, sizeof *p->gradients[i]);
    p->work = allocate((size_t)b->n_threads, sizeof *p->work);
    for (int32_t i = 0; i < b->n_threads; i++) {
        p->work[i] = allocate(p->graph->work_size(&p->shape), p->graph->real_size);
        p->graph->work_init(&p->shape, p->work[i]);
    }
    dpi_base_norms(b->model, &p->shape, p->params);
    dpi_lora_init(&p->lora, &p->shape, 1, p->params + p->layout.n_params);
}

static void close_plain(const bench *b, plain *p) {
    for (int32_t i = 0; i < b->n_units; i++)
        free(p->gradients[i]);
    for (int32_t i = 0; i < b->n_threads; i++)
        free(p->work[i]);
    free(p->gradients), free(p->work), free(p->params), free(p->m), free(p->v), free(p->sum);
    dpi_base_tables_free(&p->tables);
    dpi_blas_close(&p->blas);
}

/* Seconds of the rows, and of the step. */
static void step_plain(const bench *b, plain *p, double *rows, double *step) {
    const dpi_adamw a = {.lr = 1e-6, .beta1 = .9, .beta2 = .999, .eps = 1e-8, .step = 1};
    const double begin = now();
#pragma omp parallel for schedule(dynamic, 1) num_threads(b->n_threads)
    for (int32_t i = 0; i < b->n_units; i++) {
        const dpi_row row = row_of(b, i);
        p->graph->loss(&p->shape, p->params, &row, 1, p->gradients[i],
                       p->work[omp_get_thread_num()]);
    }
    *rows = now() - begin;
    dpi_gradient_sum(p->sum, 0, p->gradients, b->n_units, p->lora.n_params, b->n_threads);
    dpi_adamw_step(&a, p->params + p->layout.n_params, p->m, p->v, p->sum, 1. / b->n_units,
                   p->lora.n_params, b->n_threads);
    *step = now() - begin;
}

/* ---- With privacy ---------------------------------------------------------------------------- */

static dpi_tuner *open_tuner(const bench *b) {
    const dpi_tuner_options o = {
        .model = b->model, .rank = RANK, .alpha = 16, .targets = DPI_LORA_ALL, .seed = 1,
        .n_positions = b->n_positions, .n_threads = b->n_threads, .share = INT64_C(1) << 32,
        .expected = b->n_units, .clip = 1, .sigma = 1, .n_steps = 1 << 20, .lr = 1e-6};
    dpi_tuner *t;
    dpi_error err;
    bench_check(dpi_tuner_create(&o, &t, &err), &err);
    return t;
}

static double step_private(const bench *b, dpi_tuner *t) {
    const dpi_tuner_units units = {
        .n = b->n_units, .row = next_row, .user = (void *)(uintptr_t)b};
    dpi_error err;
    const double begin = now();
    bench_check(dpi_tuner_step(t, &units, &err), &err);
    return now() - begin;
}

/* ---- What the processor can do --------------------------------------------------------------- */

/* Operations a second of all threads. */
static double peak(const bench *b, const dpi_blas *blas) {
    const size_t n = PEAK * PEAK;
    float *all = allocate(3 * n * (size_t)b->n_threads, sizeof *all);
    double best = INFINITY;
    for (size_t i = 0; i < 3 * n * (size_t)b->n_threads; i++)
        all[i] = (float)(i % 7) - 3;
    for (int round = 0; round < 5; round++) {
        const double begin = now();
#pragma omp parallel for num_threads(b->n_threads)
        for (int32_t i = 0; i < b->n_threads; i++) {
            float *x = all + 3 * n * (size_t)i;
            blas->sgemm(DPI_BLAS_ROW_MAJOR, DPI_BLAS_PLAIN, DPI_BLAS_PLAIN, PEAK, PEAK, PEAK, 1, x,
                        PEAK, x + n, PEAK, 0, x + 2 * n, PEAK);
        }
        best = fmin(best, now() - begin);
    }
    free(all);
    return 2. * PEAK * PEAK * PEAK * b->n_threads / best;
}

/* Operations a second without reading anything. */
static double limit(const bench *b) {
    dpi_machine machine;
    dpi_error err;
    dpi_machine_init(&machine);
    bench_check(dpi_machine_measure(b->n_threads, DPI_ISA_AUTO, &machine, &err), &err);
    return machine.f32_ops_per_second;
}

static double memory_mb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* Weights and adapters, and each thread's: f32 gradients twice, integers, sums, work. */
static double predicted_mb(const bench *b, const plain *p) {
    const double n = (double)p->lora.n_params;
    const double lane = n * (4 + 4 + 4 + 8) +
                        (double)(p->graph->work_size(&p->shape) * p->graph->real_size);
    const double step = n * (8 + 12); /* the sum, and what Adam may go back to */
    return ((double)p->layout.n_params * 4 + n * 16 + step + b->n_threads * lane) / (1 << 20);
}

static void print_tables(bench *b) {
    double private_s[ROUNDS_MAX], plain_s[ROUNDS_MAX], rows_s[ROUNDS_MAX];
    plain p;
    dpi_tuner *t = open_tuner(b);
    const double before = memory_mb();
    step_private(b, t);
    const double own = memory_mb();
    open_plain(b, &p);
    step_plain(b, &p, &rows_s[0], &plain_s[0]);
    for (int i = 0; i < b->n_rounds; i++) {
        private_s[i] = step_private(b, t);
        step_plain(b, &p, &rows_s[i], &plain_s[i]);
    }
    const dpi_row row = row_of(b, 0);
    const double flops = dpi_graph_flops(&p.shape, &row) * 2 / 3 * b->n_units;
    const double most = peak(b, &p.blas);
    const double a = bench_median(private_s, b->n_rounds), c = bench_median(plain_s, b->n_rounds);
    const double rate = flops / bench_median(rows_s, b->n_rounds);
    printf("| what | value |\n|---|---:|\n");
    printf("| a private step of %d rows of %d positions, s | %.3f |\n", b->n_units, b->n_positions,
           a);
    printf("| the same without clipping and noise, s | %.3f |\n", c);
    printf("| ratio | %.3f |\n", a / c);
    printf("| rows, forward and backward, GFLOP/s | %.1f |\n", rate * 1e-9);
    printf("| products of 1024 x 1024, GFLOP/s | %.1f |\n", most * 1e-9);
    printf("| share | %.2f |\n", rate / most);
    const double f32 = limit(b);
    printf("| multiplications and additions alone, GFLOP/s | %.1f |\n", f32 * 1e-9);
    printf("| share | %.2f |\n", rate / f32);
    printf("| memory before the first private step, MB | %.0f |\n", before);
    printf("| memory after it, MB | %.0f |\n", own);
    printf("| predicted, beside the model's file, MB | %.0f |\n", predicted_mb(b, &p));
    close_plain(b, &p);
    dpi_tuner_free(t);
}

static int32_t argument(int argc, char **argv, int i, int32_t def, int32_t max) {
    const int value = argc > i ? atoi(argv[i]) : def;
    if (value < 1 || value > max)
        bench_die("argument", "must be 1 or more, and not that large");
    return value;
}

int main(int argc, char **argv) {
    bench b = {.model = NULL};
    dpi_model_info info;
    dpi_error err;
    uint64_t seed = 1;
    if (dpi_isa_openblas())
        setenv("OPENBLAS_CORETYPE", dpi_isa_openblas(), 0);
    if (argc < 2)
        bench_die("usage", "dpinfer-bench-tuning MODEL [POSITIONS UNITS ROUNDS THREADS]");
    b.n_positions = argument(argc, argv, 2, 256, 4096);
    b.n_units = argument(argc, argv, 3, 32, 4096);
    b.n_rounds = argument(argc, argv, 4, 5, ROUNDS_MAX);
    b.n_threads = argument(argc, argv, 5, omp_get_max_threads(), 1024);
    bench_check(dpi_model_open(argv[1], NULL, &b.model, &err), &err);
    dpi_model_info_init(&info);
    bench_check(dpi_model_info_get(b.model, &info, &err), &err);
    b.tokens = allocate((size_t)b.n_units * (size_t)(b.n_positions + 1), sizeof *b.tokens);
    b.weights = allocate((size_t)b.n_positions, sizeof *b.weights);
    b.begins = allocate(2, sizeof *b.begins);
    b.begins[1] = b.n_positions;
    for (int32_t i = 0; i < b.n_positions; i++)
        b.weights[i] = 1;
    for (int64_t i = 0; i < (int64_t)b.n_units * (b.n_positions + 1); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        b.tokens[i] = (int32_t)((seed >> 33) % (uint64_t)info.n_vocab);
    }
    print_tables(&b);
    free(b.tokens), free(b.weights), free(b.begins);
    dpi_model_close(b.model);
    return 0;
}
