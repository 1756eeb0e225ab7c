/* bench_kernels.c - every kernel of kernels.def alone: how fast it is, and what share of the
 * machine's limits that is, measured in the same run.
 *
 *   dpinfer-bench-kernels [-t THREADS] [-o md|csv|json|jsonl] [-i ISA,...] [-r ROWS,...] [-k WORD]
 *
 * Each thread works on its own arrays: in-cache ones that stay in its L2, streaming ones that come
 * from memory each time. Times are medians of REPEATS stretches of MIN_SECONDS. read_% is a share
 * of what memory gives, which data in caches may exceed. The calls are those of family_*.c. */
#include <getopt.h>
#include <jansson.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dp/exact/weights.h"
#include "dpinfer/bench.h"
#include "dpinfer/process.h"
#include "kernels/pack.h"
#include "tests/kernels/family.h"
#include "tools/terminal/cli.h"
#include "tools/terminal/table.h"

enum {
    N_IN = TIMED_N_IN,
    MAX_ROWS = TIMED_MAX_ROWS,
    CACHE_OUT = 64,         /* outputs in cache: 0.5 MiB of f32 */
    STREAM_BYTES = 1 << 28, /* weights in memory, of all threads: caches hold little */
    MAX_LIST = 16,
    REPEATS = 5,
};
static const double MIN_SECONDS = 0.01;

static bool is_int8(const family_kernel *f) {
    return f->is_product && dpi_type_find(f->type)->product == DPI_PRODUCT_Q;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static uint64_t weight_bytes(const family_kernel *f, int32_t n_out) {
    return dpi_type_row_bytes(dpi_type_find(f->type), N_IN) * (uint64_t)n_out;
}

static bool allocate(timed *t, const family_kernel *f) {
    enum { BLOCKS = MAX_ROWS * N_IN / DPI_Q8_BLOCK };
    uint64_t n_y = MAX_ROWS * (uint64_t)(t->n_out > N_IN ? t->n_out : N_IN);
    t->weights = dpi_map(weight_bytes(f, t->n_out));
    return t->weights && (t->x = dpi_calloc(MAX_ROWS * N_IN, sizeof *t->x)) &&
           (t->y = dpi_calloc(n_y, sizeof *t->y)) &&
           (t->f16 = dpi_calloc(MAX_ROWS * N_IN, sizeof *t->f16)) &&
           (t->q8.plain = dpi_calloc(BLOCKS, sizeof *t->q8.plain)) &&
           (t->q8.sums = dpi_calloc(BLOCKS, sizeof *t->q8.sums)) &&
           (t->q8.winograd = dpi_calloc(BLOCKS, sizeof *t->q8.winograd)) &&
           (t->sum = dpi_calloc(N_IN, sizeof *t->sum)) &&
           (t->null = dpi_calloc(N_IN, sizeof *t->null)) &&
           (t->weight = dpi_calloc(N_IN, sizeof *t->weight));
}

static bool timed_init(timed *t, const dpi_kernels *k, const family_kernel *f, int32_t rows,
                       int32_t n_out, dpi_weight_tables *tables) {
    *t = (timed){.k = k, .rows = rows, .n_out = n_out, .tables = tables->table};
    if (!allocate(t, f))
        return false;
    for (int32_t i = 0; i < MAX_ROWS * N_IN; i++) {
        t->x[i] = (float)(i % 37 - 18) / 18;
        t->f16[i] = (uint16_t)(0x3000 + i % 0x400);
    }
    for (int32_t i = 0; i < N_IN; i++)
        t->null[i] = (int64_t)(i % 101) << 16;
    /* Bytes below 0x40, every other one not below 0x3c: as an f16, a bfloat16 or a float they are
     * below 4 and not subnormal, which takes some processors 100 cycles. */
    for (uint64_t i = 0; i < weight_bytes(f, n_out); i++)
        t->weights[i] = (unsigned char)(i % 2 ? 0x3c + i % 3 : i * 7 % 61);
    t->form = DPI_Q8_PLAIN;
    if (is_int8(f) && dpi_type_find(f->type)->is_narrow)
        t->form =
            dpi_kernels_winograd(k, dpi_type_find(f->type), rows) ? DPI_Q8_WINOGRAD : DPI_Q8_NARROW;
    for (int32_t first = 0, n; first < rows && is_int8(f); first += n) {
        n = dpi_row_block(rows, first);
        dpi_q8 to = dpi_q8_at(&t->q8, first, N_IN);
        k->quantize_q8(&to, n, t->x + first * N_IN, N_IN, N_IN, t->form);
    }
    return true;
}

static void timed_free(timed *t, const family_kernel *f) {
    dpi_unmap(t->weights, weight_bytes(f, t->n_out));
    free(t->x), free(t->y), free(t->f16);
    free(t->q8.plain), free(t->q8.sums), free(t->q8.winograd);
    free(t->sum), free(t->null), free(t->weight);
}

/* ---- Timing ---------------------------------------------------------------------------------- */

static const char *yes_no(bool value) { return value ? "yes" : "no"; }

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one call while n_threads do the same; 0 without memory. */
static double seconds_of(const family_kernel *f, const dpi_kernels *k, int32_t rows, int32_t n_out,
                         int32_t n_threads) {
    double all[REPEATS];
    int failed = 0;
    dpi_weight_tables tables;
    dpi_weights_tables(&tables);
#pragma omp parallel num_threads(n_threads) reduction(+ : failed)
    {
        timed t;
        failed += !timed_init(&t, k, f, rows, n_out, &tables);
#pragma omp barrier
        int64_t calls = 1;
        /* -1: warm-up, and how many calls to time */
        for (int i = -1; i < REPEATS && !failed; i++) {
            double begin = omp_get_wtime();
            int64_t done = 0;
            do {
                f->call(f, &t);
                done++;
            } while (i < 0 ? omp_get_wtime() - begin < MIN_SECONDS : done < calls);
            if (i < 0)
                calls = done;
            else if (omp_get_thread_num() == 0)
                all[i] = (omp_get_wtime() - begin) / (double)calls;
        }
        timed_free(&t, f);
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

static int print_row(bench *b, const family_kernel *f, const dpi_kernels *k, int32_t rows,
                     bool stream) {
    int32_t n_out = CACHE_OUT;
    double row_bytes = (double)weight_bytes(f, 1);
    if (stream)
        n_out =
            (int32_t)(STREAM_BYTES / row_bytes / b->n_threads) / DPI_PANEL_ROWS * DPI_PANEL_ROWS;
    double seconds = seconds_of(f, k, rows, n_out, b->n_threads);
    if (seconds <= 0)
        return cli_no_memory("%s", f->name);
    double ops = f->is_product ? 2.0 * rows * N_IN * n_out : f->ops;
    double bytes = f->is_product ? row_bytes * n_out : f->bytes;
    ops *= b->n_threads / seconds;
    bytes *= b->n_threads / seconds;
    double peak = is_int8(f) && b->machine.int8_ops_per_second > 0 ? b->machine.int8_ops_per_second
                                                                   : b->machine.f32_ops_per_second;
    table *t = &b->table;
    table_text(t, "kernel", "%s", f->name);
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
    dpi_machine_init(&b->machine);
    dpi_cpu cpu;
    if (dpi_cpu_measure(&cpu, ERR) != DPI_STATUS_OK ||
        dpi_kernels_init(&k, isa, ERR) != DPI_STATUS_OK ||
        dpi_machine_measure(b->n_threads, isa, &b->machine, ERR) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, ERR);
    k.tuning = cpu.tuning;
    fprintf(stderr,
            "machine, %s, %d threads: reads %.1f GB/s, %.0f GOPS in 8 bits, %.0f GFLOPS; Winograd "
            "products of 4 bits up to %d rows: %s, with mins %s; of more: %s, with mins %s\n",
            dpi_isa_name(isa), b->n_threads, b->machine.read_bytes_per_second / 1e9,
            b->machine.int8_ops_per_second / 1e9, b->machine.f32_ops_per_second / 1e9,
            DPI_ROWS_FEW_MAX, yes_no(k.tuning.winograd[false][DPI_ROWS_FEW]),
            yes_no(k.tuning.winograd[true][DPI_ROWS_FEW]),
            yes_no(k.tuning.winograd[false][DPI_ROWS_MANY]),
            yes_no(k.tuning.winograd[true][DPI_ROWS_MANY]));
    int code = CLI_OK;
    const family_kernel *f;
    for (int32_t i = 0; (f = family_at(i)) && code == CLI_OK; i++) {
        if (!strstr(f->name, b->word))
            continue;
        if (!f->is_product)
            code = print_row(b, f, &k, 1, false);
        for (int r = 0; f->is_product && r < b->n_rows && code == CLI_OK; r++) {
            code = print_row(b, f, &k, b->rows[r], false);
            if (code == CLI_OK)
                code = print_row(b, f, &k, b->rows[r], true);
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
            return cli_fail(CLI_USAGE,
                            "-r: found '%s', allowed are up to %d numbers 1..%d between "
                            "commas",
                            text, MAX_LIST, MAX_ROWS);
        b->rows[b->n_rows++] = (int32_t)v;
        if (*end == '\0')
            return CLI_OK;
        p = end + 1;
    }
}

/* NULL: every ISA that this processor has but ref, which is the definition and not for speed. */
static int parse_isas(const char *text, bench *b) {
    b->n_isas = 0;
    for (int32_t isa = dpi_isa_next(DPI_ISA_REF); !text && isa != DPI_ISA_AUTO &&
                                                  b->n_isas < MAX_LIST; isa = dpi_isa_next(isa))
        b->isas[b->n_isas++] = isa;
    if (!text && b->n_isas == 0)
        b->isas[b->n_isas++] = DPI_ISA_REF;
    for (const char *p = text; p;) {
        size_t n = strcspn(p, ",");
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        if (b->n_isas == MAX_LIST ||
            dpi_isa_parse(name, &b->isas[b->n_isas++], ERR) != DPI_STATUS_OK)
            return cli_fail(CLI_USAGE,
                            "-i: found '%s', allowed are ref, avx2, avx512 and others that dpinfer "
                            "-h names, between commas",
                            text);
        p = p[n] ? p + n + 1 : NULL;
    }
    return CLI_OK;
}

static int parse(int argc, char **argv, bench *b) {
    static const char *const formats[] = {"md", "csv", "json", "jsonl"}; /* as in table_format */
    enum { ROWS, ISAS, FORMAT, WORD, THREADS };
    const char *given[] = {"1,5,9,17,33,40", NULL, "md", "", NULL};
    static const char letters[] = "riokt";
    for (int c; (c = getopt(argc, argv, "t:o:i:r:k:")) != -1;) {
        if (!strchr(letters, c))
            return cli_fail(CLI_USAGE, "options: -t THREADS -o md|csv|json|jsonl -i ISA,... "
                                       "-r ROWS,... -k WORD");
        given[strchr(letters, c) - letters] = optarg;
    }
    b->word = given[WORD];
    b->n_threads = given[THREADS] ? atoi(given[THREADS]) : dpi_processors();
    int f = 0;
    while (f < 4 && strcmp(given[FORMAT], formats[f]) != 0)
        f++;
    if (f == 4 || b->n_threads < 1 || b->n_threads > 1024)
        return cli_fail(CLI_USAGE, "-o is md, csv, json or jsonl, -t 1..1024");
    b->table.format = (table_format)f;
    int code = parse_rows(given[ROWS], b);
    return code == CLI_OK ? parse_isas(given[ISAS], b) : code;
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
