/* kernels.c - every kernel of kernels.def alone: how fast it is, and what share of the machine's
 * limits that is, measured in the same run.
 *
 *   dpinfer-bench-kernels [-t THREADS] [-o md|csv|json|jsonl] [-i ISA,...] [-r ROWS,...] [-k WORD]
 *
 * Each thread works on its own arrays: in-cache ones that stay in its L2, streaming ones that come
 * from memory each time. Times are medians of REPEATS stretches of MIN_SECONDS. read_% is a share
 * of what memory gives, which data in caches may exceed. */
#include <getopt.h>
#include <jansson.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/bench.h"
#include "base/mem.h"
#include "dp/exact/weights.h"
#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "kernels/weight_types.h"
#include "tools/cli.h"
#include "tools/table.h"

enum {
    N_IN = 2048,          /* columns of the matrices, elements of the vectors */
    CACHE_OUT = 64,       /* outputs in cache: 0.5 MiB of f32 */
    STREAM_BYTES = 1 << 28, /* weights in memory, all threads together: caches hold little */
    MAX_ROWS = 64, MAX_LIST = 16, REPEATS = 5,
    HEADS = 8, HEAD_DIM = 64, /* of attention: query heads that share one KV head */
};
static const double MIN_SECONDS = 0.01;

/* What one thread works on. */
typedef struct work {
    const dpi_kernels *k;
    int32_t rows;   /* activations of a product; 1 otherwise */
    int32_t n_out;  /* outputs of a product */
    float *x, *y;   /* [MAX_ROWS, N_IN], [MAX_ROWS, n_out] and at least as long as x */
    uint16_t *half; /* [MAX_ROWS, N_IN] */
    dpi_q8 q8;
    int32_t form; /* of q8 */
    int64_t *sum, *null; /* [N_IN] of the sampler */
    dpi_u128 *weight;    /* [N_IN] */
    dpi_weight_tables tables;
    unsigned char *weights; /* [n_out, N_IN] of the kernel's type */
} work;

typedef struct timed {
    const char *name;
    uint32_t type; /* of the weights of a product; DPI_TYPE_F32 otherwise */
    bool is_product, in_int8;
    double ops, bytes; /* of one call that is no product: operations; bytes read and written */
    void (*call)(const work *w);
} timed;

/* ---- One call of each kernel ----------------------------------------------------------------- */

static void call_sum_squares(const work *w) { w->k->sum_squares(w->y, w->x, N_IN); }
static void call_scale(const work *w) { w->k->scale(w->y, w->x, w->x + N_IN, 0.5f, N_IN); }
static void call_rope(const work *w) {
    w->k->rope(w->y, w->x, N_IN / HEAD_DIM, HEAD_DIM, HEAD_DIM);
}
static void call_add(const work *w) { w->k->add(w->y, w->x, N_IN); }
static void call_swiglu(const work *w) { w->k->swiglu(w->y, w->x, N_IN); }
static void call_f16_to_f32(const work *w) { w->k->f16_to_f32(w->y, w->half, N_IN); }
static void call_f32_to_f16(const work *w) { w->k->f32_to_f16(w->half, w->x, N_IN); }
static void call_quantize_q8(const work *w) {
    w->k->quantize_q8(&w->q8, 1, w->x, N_IN, N_IN, DPI_Q8_PLAIN);
}
static void call_matmul_f32(const work *w) {
    w->k->matmul_f32(w->y, w->n_out, w->x, N_IN, w->rows, (const float *)(void *)w->weights, N_IN,
                     w->n_out);
}
static void call_attend_f32(const work *w) {
    float m[HEADS] = {0}, l[HEADS] = {0};
    const float *k = w->x + N_IN, *v = k + DPI_KV_BLOCK * HEAD_DIM;
    w->k->attend_f32(w->y, m, l, w->x, k, v, HEADS, DPI_KV_BLOCK, HEAD_DIM, HEAD_DIM, 0.125f, k, v);
}
static void call_attend_f16(const work *w) {
    float m[HEADS] = {0}, l[HEADS] = {0};
    const uint16_t *k = w->half, *v = k + DPI_KV_BLOCK * HEAD_DIM;
    w->k->attend_f16(w->y, m, l, w->x, k, v, HEADS, DPI_KV_BLOCK, HEAD_DIM, HEAD_DIM, 0.125f, k, v);
}
static void call_clip_add(const work *w) {
    w->k->clip_add(w->sum, w->x, w->x + N_IN, w->null, 0, 1 << 20, ~(uint64_t)0, N_IN);
}
static void call_clip_range(const work *w) {
    int64_t range[2] = {0, 0};
    w->k->clip_range(range, w->x, w->x + N_IN, w->null, 0, 1 << 20, N_IN);
}
static void call_exp2_weights(const work *w) {
    w->k->exp2_weights(w->weight, w->null, (uint64_t)1 << 26,
                       (const uint64_t(*)[256])w->tables.table, N_IN);
}
#define CALL_Q(name, id)                                                                          \
    static void call_##name(const work *w) {                                                      \
        dpi_q8 x = dpi_q8_in(&w->q8, w->form);                                                    \
        w->k->matmul_##name(w->y, w->n_out, &x, w->rows, w->weights, N_IN, w->n_out,              \
                             &w->k->tuning);                                                      \
    }
#define CALL_H(name, id)                                                                          \
    static void call_##name(const work *w) {                                                      \
        w->k->matmul_##name(w->y, w->n_out, w->x, N_IN, w->rows, w->weights, N_IN, w->n_out,      \
                             &w->k->tuning);                                                      \
    }
#define CALL_F32(name, id)
#define WEIGHT(NAME, name, id, block, bytes, quantize, product, ...) CALL_##product(name, id)
#include "kernels/weight_types.def"
#undef WEIGHT

#define ATTEND_OPS (4.0 * HEADS * DPI_KV_BLOCK * HEAD_DIM)
static const timed kernels[] = {
    {"sum_squares", DPI_TYPE_F32, false, false, 2.0 * N_IN, 4.0 * N_IN, call_sum_squares},
    {"scale", DPI_TYPE_F32, false, false, 2.0 * N_IN, 12.0 * N_IN, call_scale},
    {"rope", DPI_TYPE_F32, false, false, 3.0 * N_IN, 8.0 * N_IN, call_rope},
    {"add", DPI_TYPE_F32, false, false, N_IN, 12.0 * N_IN, call_add},
    {"swiglu", DPI_TYPE_F32, false, false, 5.0 * N_IN, 12.0 * N_IN, call_swiglu},
    {"f16_to_f32", DPI_TYPE_F32, false, false, N_IN, 6.0 * N_IN, call_f16_to_f32},
    {"f32_to_f16", DPI_TYPE_F32, false, false, N_IN, 6.0 * N_IN, call_f32_to_f16},
    {"quantize_q8", DPI_TYPE_F32, false, false, 16.0 * N_IN, 5.0 * N_IN, call_quantize_q8},
    {"attend_f32", DPI_TYPE_F32, false, false, ATTEND_OPS, 8.0 * DPI_KV_BLOCK * HEAD_DIM,
     call_attend_f32},
    {"attend_f16", DPI_TYPE_F32, false, false, ATTEND_OPS, 4.0 * DPI_KV_BLOCK * HEAD_DIM,
     call_attend_f16},
    {"clip_add", DPI_TYPE_F32, false, false, 6.0 * N_IN, 32.0 * N_IN, call_clip_add},
    {"clip_range", DPI_TYPE_F32, false, false, 6.0 * N_IN, 16.0 * N_IN, call_clip_range},
    {"exp2_weights", DPI_TYPE_F32, false, false, 12.0 * N_IN, 24.0 * N_IN, call_exp2_weights},
    {"matmul_f32", DPI_TYPE_F32, true, false, 0, 0, call_matmul_f32},
#define KERNEL_F32(name, id)
#define KERNEL_H(name, id) {"matmul_" #name, id, true, false, 0, 0, call_##name},
#define KERNEL_Q(name, id) {"matmul_" #name, id, true, true, 0, 0, call_##name},
#define WEIGHT(NAME, name, id, block, bytes, quantize, product, ...) KERNEL_##product(name, id)
#include "kernels/weight_types.def"
#undef WEIGHT
};
enum {
    N_KERNELS = sizeof kernels / sizeof *kernels,
#define KERNEL(name, parameters) +1
    N_LISTED = 0
#include "kernels/kernels.def"
#undef KERNEL
};
_Static_assert((int)N_KERNELS == (int)N_LISTED, "every kernel of kernels.def is timed");

/* ---- Arrays ---------------------------------------------------------------------------------- */

static bool work_init(work *w, const dpi_kernels *k, const timed *kernel, int32_t rows,
                      int32_t n_out) {
    enum { BLOCKS = N_IN / DPI_Q8_BLOCK };
    *w = (work){.k = k, .rows = rows, .n_out = n_out};
    uint64_t bytes = dpi_type_row_bytes(dpi_type_find(kernel->type), N_IN) * (uint64_t)n_out;
    uint64_t n_y = MAX_ROWS * (uint64_t)(n_out > N_IN ? n_out : N_IN);
    w->x = dpi_calloc(MAX_ROWS * N_IN, sizeof *w->x);
    w->y = dpi_calloc(n_y, sizeof *w->y);
    w->half = dpi_calloc(MAX_ROWS * N_IN, sizeof *w->half);
    w->q8.plain = dpi_calloc(MAX_ROWS * BLOCKS, sizeof *w->q8.plain);
    w->q8.sums = dpi_calloc(MAX_ROWS * BLOCKS, sizeof *w->q8.sums);
    w->q8.winograd = dpi_calloc(MAX_ROWS * BLOCKS, sizeof *w->q8.winograd);
    w->sum = dpi_calloc(N_IN, sizeof *w->sum);
    w->null = dpi_calloc(N_IN, sizeof *w->null);
    w->weight = dpi_calloc(N_IN, sizeof *w->weight);
    w->weights = dpi_map(bytes);
    if (!w->x || !w->y || !w->half || !w->q8.plain || !w->q8.sums || !w->q8.winograd || !w->sum ||
        !w->null || !w->weight || !w->weights)
        return false;
    for (int32_t i = 0; i < MAX_ROWS * N_IN; i++) {
        w->x[i] = (float)(i % 37 - 18) / 18;
        w->half[i] = (uint16_t)(0x3000 + i % 0x400);
    }
    for (int32_t i = 0; i < N_IN; i++)
        w->null[i] = (int64_t)(i % 101) << 16;
    dpi_weights_tables(&w->tables);
    /* Bytes below 0x40, every other one not below 0x3c: whatever they are read as, a half, a
     * bfloat16, a float, is below 4 and not subnormal, which takes some processors 100 cycles. */
    for (uint64_t i = 0; i < bytes; i++)
        w->weights[i] = (unsigned char)(i % 2 ? 0x3c + i % 3 : i * 7 % 61);
    w->form = DPI_Q8_PLAIN;
    if (dpi_type_find(kernel->type)->is_narrow)
        w->form = k->tuning.winograd && rows >= DPI_WINOGRAD_ROWS ? DPI_Q8_WINOGRAD : DPI_Q8_NARROW;
    for (int32_t first = 0, n; first < rows && kernel->in_int8; first += n) {
        n = dpi_row_block(rows, first);
        dpi_q8 block = dpi_q8_at(&w->q8, first, N_IN);
        k->quantize_q8(&block, n, w->x + first * N_IN, N_IN, N_IN, w->form);
    }
    return true;
}

static void work_free(work *w, const timed *kernel) {
    dpi_unmap(w->weights, dpi_type_row_bytes(dpi_type_find(kernel->type), N_IN) *
                              (uint64_t)w->n_out);
    free(w->x), free(w->y), free(w->half);
    free(w->q8.plain), free(w->q8.sums), free(w->q8.winograd);
    free(w->sum), free(w->null), free(w->weight);
}

/* ---- Timing ---------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one call while n_threads do the same; 0 without memory. */
static double seconds_of(const timed *kernel, const dpi_kernels *k, int32_t rows, int32_t n_out,
                         int32_t n_threads) {
    double all[REPEATS];
    int failed = 0;
#pragma omp parallel num_threads(n_threads) reduction(+ : failed)
    {
        work w;
        failed += !work_init(&w, k, kernel, rows, n_out);
#pragma omp barrier
        int64_t calls = 1;
        /* -1: warm-up, and how many calls to time */
        for (int i = -1; i < REPEATS && !failed; i++) {
            double begin = omp_get_wtime();
            int64_t done = 0;
            do {
                kernel->call(&w);
                done++;
            } while (i < 0 ? omp_get_wtime() - begin < MIN_SECONDS : done < calls);
            if (i < 0)
                calls = done;
            else if (omp_get_thread_num() == 0)
                all[i] = (omp_get_wtime() - begin) / (double)calls;
        }
        work_free(&w, kernel);
    }
    if (failed)
        return 0;
    qsort(all, REPEATS, sizeof *all, compare);
    return all[REPEATS / 2];
}

/* ---- The table ------------------------------------------------------------------------------- */

typedef struct bench {
    table table;
    dpi_machine machine;
    int32_t n_threads, isas[MAX_LIST], n_isas, rows[MAX_LIST], n_rows;
    const char *word; /* only kernels whose name holds it */
} bench;

static int print_row(bench *b, const timed *kernel, const dpi_kernels *k, int32_t rows,
                     bool stream) {
    int32_t n_out = CACHE_OUT;
    double row_bytes = (double)dpi_type_row_bytes(dpi_type_find(kernel->type), N_IN);
    if (stream)
        n_out =
            (int32_t)(STREAM_BYTES / row_bytes / b->n_threads) / DPI_PANEL_ROWS * DPI_PANEL_ROWS;
    double seconds = seconds_of(kernel, k, rows, n_out, b->n_threads);
    if (seconds <= 0)
        return cli_fail(CLI_FAILED, "out of memory for %s", kernel->name);
    double ops = kernel->is_product ? 2.0 * rows * N_IN * n_out : kernel->ops;
    double bytes = kernel->is_product ? row_bytes * n_out : kernel->bytes;
    ops *= b->n_threads / seconds;
    bytes *= b->n_threads / seconds;
    double peak = kernel->in_int8 && b->machine.int8_ops_per_second > 0
                      ? b->machine.int8_ops_per_second
                      : b->machine.f32_ops_per_second;
    table *t = &b->table;
    table_text(t, "kernel", "%s", kernel->name);
    table_text(t, "isa", "%s", dpi_isa_name(k->isa));
    table_number(t, "threads", 0, b->n_threads);
    table_number(t, "rows", 0, rows);
    table_text(t, "data", "%s", stream ? "memory" : "cache");
    table_number(t, "us", 2, 1e6 * seconds);
    table_number(t, "GOPS", 1, ops / 1e9);
    table_number(t, "peak_%", 1, peak > 0 ? 100 * ops / peak : 0);
    table_number(t, "GB/s", 2, bytes / 1e9);
    table_number(t, "read_%", 1, 100 * bytes / b->machine.read_bytes_per_second);
    table_print_row(t);
    return CLI_OK;
}

static int run_isa(bench *b, int32_t isa) {
    dpi_kernels k;
    dpi_error err;
    dpi_machine_init(&b->machine);
    dpi_cpu cpu;
    if (dpi_cpu_measure(&cpu, &err) != DPI_STATUS_OK ||
        dpi_kernels_init(&k, isa, &err) != DPI_STATUS_OK ||
        dpi_machine_measure(b->n_threads, isa, &b->machine, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    dpi_kernels_tune(&k, &cpu.tuning);
    fprintf(
        stderr,
        "machine, %s, %d threads: reads %.1f GB/s, %.0f GOPS in 8 bits, %.0f GFLOPS; %sWinograd "
        "products of 4 bits\n",
        dpi_isa_name(isa), b->n_threads, b->machine.read_bytes_per_second / 1e9,
        b->machine.int8_ops_per_second / 1e9, b->machine.f32_ops_per_second / 1e9,
        k.tuning.winograd ? "" : "no ");
    int code = CLI_OK;
    for (int i = 0; i < N_KERNELS && code == CLI_OK; i++) {
        if (!strstr(kernels[i].name, b->word))
            continue;
        if (!kernels[i].is_product)
            code = print_row(b, &kernels[i], &k, 1, false);
        for (int r = 0; kernels[i].is_product && r < b->n_rows && code == CLI_OK; r++) {
            code = print_row(b, &kernels[i], &k, b->rows[r], false);
            if (code == CLI_OK)
                code = print_row(b, &kernels[i], &k, b->rows[r], true);
        }
    }
    return code;
}

/* ---- The command line ------------------------------------------------------------------------ */

static int parse_rows(const char *text, bench *b) {
    b->n_rows = 0;
    for (const char *p = text;;) {
        char *end;
        long v = strtol(p, &end, 10);
        if (end == p || v < 1 || v > MAX_ROWS || (*end && *end != ',') || b->n_rows == MAX_LIST)
            return cli_fail(CLI_USAGE, "-r: found '%s', allowed are up to %d numbers 1..%d between "
                                       "commas", text, MAX_LIST, MAX_ROWS);
        b->rows[b->n_rows++] = (int32_t)v;
        if (*end == '\0')
            return CLI_OK;
        p = end + 1;
    }
}

/* NULL: every ISA that this processor has but ref, which is the definition and not for speed. */
static int parse_isas(const char *text, bench *b) {
    b->n_isas = 0;
    for (int32_t isa = DPI_ISA_AVX2; !text && isa <= dpi_isa_best() && b->n_isas < MAX_LIST; isa++)
        b->isas[b->n_isas++] = isa;
    if (!text && b->n_isas == 0)
        b->isas[b->n_isas++] = DPI_ISA_REF;
    for (const char *p = text; p;) {
        size_t n = strcspn(p, ",");
        char name[16];
        dpi_error err;
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        if (b->n_isas == MAX_LIST ||
            dpi_isa_parse(name, &b->isas[b->n_isas++], &err) != DPI_STATUS_OK)
            return cli_fail(CLI_USAGE,
                            "-i: found '%s', allowed are ref, avx2, avx512 and others that dpinfer "
                            "-h names, between commas", text);
        p = p[n] ? p + n + 1 : NULL;
    }
    return CLI_OK;
}

static int parse(int argc, char **argv, bench *b) {
    static const char *const formats[] = {"md", "csv", "json", "jsonl"}; /* as in table_format */
    const char *rows = "1,5,9,17,33,40", *isas = NULL, *format = "md";
    b->word = "";
    b->n_threads = dpi_processors();
    for (int c; (c = getopt(argc, argv, "t:o:i:r:k:")) != -1;) {
        if (c == 't')
            b->n_threads = atoi(optarg);
        else if (c == 'o')
            format = optarg;
        else if (c == 'i')
            isas = optarg;
        else if (c == 'r')
            rows = optarg;
        else if (c == 'k')
            b->word = optarg;
        else
            return cli_fail(CLI_USAGE, "options: -t THREADS -o md|csv|json|jsonl -i ISA,... "
                                       "-r ROWS,... -k WORD");
    }
    int f = 0;
    while (f < 4 && strcmp(format, formats[f]) != 0)
        f++;
    if (f == 4 || b->n_threads < 1 || b->n_threads > 1024)
        return cli_fail(CLI_USAGE, "-o is md, csv, json or jsonl, -t 1..1024");
    b->table.format = (table_format)f;
    int code = parse_rows(rows, b);
    return code == CLI_OK ? parse_isas(isas, b) : code;
}

int main(int argc, char **argv) {
    bench b = {0};
    cli_set_name("dpinfer-bench-kernels");
    json_set_alloc_funcs(dpi_private_malloc, dpi_private_free);
    int code = parse(argc, argv, &b);
    for (int i = 0; i < b.n_isas && code == CLI_OK; i++)
        code = run_isa(&b, b.isas[i]);
    if (code != CLI_USAGE)
        table_end(&b.table);
    return code;
}
