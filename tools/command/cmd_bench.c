/* cmd_bench.c - `dpinfer bench`: what private text costs beside plain text on this machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/command/bench_run.h"
#include "tools/command/commands.h"
#include "tools/options/release_options.h"
#include "tools/terminal/table.h"

enum { MAX_LIST = 16, DEFAULT_TOP_K = 100 };

typedef struct int_list {
    int32_t v[MAX_LIST];
    int n;
} int_list;

typedef struct bench {
    bench_context c;
    int_list methods, refs, texts, prompts, tokens, threads;
    int32_t n_prefix;
    dpi_machine machine; /* for the threads of the current settings */
    /* seconds until the metadata and vocabulary are read, until the model is open, until the logits
     * of a first token are there, until those of a second are, and all weights in place */
    double t_vocab, t_load, t_first, t_second;
    double layer_params, head_params; /* weights that a token is multiplied with */
    double step_bytes;                /* weights that a step reads */
    bool float_weights;               /* products are in f32, not in 8 bits */
    table table;
    bench_result *results; /* Markdown: [n_results] for the tables at the end */
    int n_results;
} bench;

/* ---- Lists ---------------------------------------------------------------------------------- */

/* "1,8,32": numbers in [min, max]. */
static int parse_list(const char *name, const char *text, int32_t min, int32_t max, int_list *out) {
    out->n = 0;
    for (const char *p = text;;) {
        char *end;
        errno = 0;
        long v = strtol(p, &end, 10);
        if (end == p || errno || v < min || v > max || (*end != ',' && *end != '\0'))
            return cli_fail(CLI_USAGE, "%s: found '%s', allowed are numbers %d..%d between commas",
                            name, text, min, max);
        if (out->n == MAX_LIST)
            return cli_fail(CLI_USAGE, "%s: found '%s', allowed are at most %d numbers", name, text,
                            MAX_LIST);
        out->v[out->n++] = (int32_t)v;
        if (*end == '\0')
            return CLI_OK;
        p = end + 1;
    }
}

/* "plain,invisibleink": methods that need no acknowledgement. */
static int parse_methods(const char *text, int_list *out) {
    out->n = 0;
    for (const char *p = text;;) {
        char name[32];
        const size_t n = strcspn(p, ",");
        snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : 0, p);
        const dpi_method_info *m = dpi_method_find(name);
        if (!m || m->needs_acknowledgement || out->n == MAX_LIST)
            return cli_fail(CLI_USAGE, "--method: found '%s', allowed are names between commas: "
                                       "see 'dpinfer bench -h'", text);
        out->v[out->n++] = m->id;
        if (p[n] == '\0')
            return CLI_OK;
        p += n + 1;
    }
}

static int parse_lists(const args *a, bench *b) {
    int code = parse_methods(a->v[OPT_LIST_METHOD].s, &b->methods);
    if (code == CLI_OK)
        code = parse_list("-B", a->v[OPT_LIST_B].s, 1, 4096, &b->refs);
    if (code == CLI_OK)
        code = parse_list("--texts", a->v[OPT_LIST_TEXTS].s, 1, BENCH_MAX_TEXTS, &b->texts);
    if (code == CLI_OK)
        code = parse_list("-p", a->v[OPT_LIST_P].s, 1, 1 << 20, &b->prompts);
    if (code == CLI_OK)
        code = parse_list("-n", a->v[OPT_LIST_N].s, 1, 1 << 20, &b->tokens);
    return code == CLI_OK ? parse_list("-t", a->v[OPT_LIST_T].s, 0, 1024, &b->threads) : code;
}

/* ---- What a figure is a share of ------------------------------------------------------------- */

/* A token is multiplied with every weight but the embedding, which is only looked up unless it is
 * the output head as well; prompts use the head once. */
static int count_weights(bench *b) {
    const dpi_model_info *info = &b->c.info;
    double embedding = (double)info->n_vocab * info->n_embd;
    b->head_params = embedding;
    b->layer_params = (double)info->n_params - embedding * (info->tied_output ? 1 : 2);
    b->step_bytes = (double)info->weight_bytes;
    b->float_weights = info->weight_types[0] == 'F' || info->weight_types[0] == 'B' ||
                       b->c.session.exact;
    for (int64_t i = 0; !info->tied_output && i < dpi_model_tensor_count(b->c.model); i++) {
        const char *name, *type;
        int64_t shape[4];
        uint64_t offset, n_bytes;
        dpi_error err;
        if (dpi_model_tensor_get(b->c.model, i, &name, &type, shape, &offset, &n_bytes, &err) !=
            DPI_STATUS_OK)
            return cli_fail_library(CLI_FAILED, &err);
        if (strcmp(name, "token_embd.weight") == 0)
            b->step_bytes -= (double)n_bytes;
    }
    return CLI_OK;
}

static double peak_ops(const bench *b) {
    return b->float_weights || b->machine.int8_ops_per_second <= 0
               ? b->machine.f32_ops_per_second
               : b->machine.int8_ops_per_second;
}

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/* Bytes of K and V that one sequence reads on average in a step. */
static double kv_bytes(const bench *b, const bench_setting *s) {
    const dpi_model_info *info = &b->c.info;
    double item = b->c.session.kv_type == DPI_KV_F32 || b->c.session.exact ? 4 : 2;
    return (s->n_prompt + (s->n_tokens + 1) / 2.0) * info->n_layer * info->n_kv_head *
           (info->head_dim + info->head_dim_v) * item;
}

static void add_shares(bench *b, const bench_result *r) {
    table *t = &b->table;
    double rows = r->s.n_texts * (r->s.n_ref + 1.), n = r->s.n_tokens;
    double pp_ops = 2 * rows * (r->s.n_prompt * b->layer_params + b->head_params) / r->t_pp;
    double tg_ops =
        2 * (rows * n * b->layer_params + r->n_logits * b->c.info.n_embd) / r->t_tg;
    double tg_bytes = n * (b->step_bytes + rows * kv_bytes(b, &r->s));
    table_number(t, "sampler_%", 2, percent(r->t_sampler, r->t_tg));
    table_number(t, "pp_peak_%", 1, percent(pp_ops, peak_ops(b)));
    table_number(t, "pp_attn_%", 1, 100 * r->pp_attention);
    table_number(t, "pp_attn_peak_%", 1,
                 percent(r->pp_attention_rate, b->machine.f32_ops_per_second));
    table_number(t, "tg_peak_%", 1, percent(tg_ops, peak_ops(b)));
    table_number(t, "tg_attn_%", 1, 100 * r->tg_attention);
    table_number(t, "tg_read_%", 1, percent(tg_bytes, r->readable));
    table_number(t, "itl_read_%", 1, percent(tg_bytes / n, r->readable_token));
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void add_model(bench *b, const bench_result *r) {
    const dpi_model_info *info = &b->c.info;
    table *t = &b->table;
    const char *name = info->name[0] ? info->name : info->architecture;
    bool md = t->format == TABLE_MD;
    table_text(t, "model", md ? "%s %s" : "%s", name, info->weight_types);
    if (!md) {
        table_text(t, "type", "%s", info->weight_types);
        table_number(t, "size", 0, (double)info->weight_bytes);
        table_number(t, "params", 0, (double)info->n_params);
        table_number(t, "V", 0, info->n_vocab);
    } else {
        table_text(t, "size", "%.2f GiB", (double)info->weight_bytes / (1 << 30));
        table_text(t, "params", "%.2f B", (double)info->n_params / 1e9);
    }
    int32_t isa = b->c.session.isa == DPI_ISA_AUTO ? dpi_isa_best() : b->c.session.isa;
    table_text(t, "backend", "CPU %s", dpi_isa_name(isa));
    table_number(t, "threads", 0, r->s.n_threads);
}

static void add_private(bench *b, const bench_result *r) {
    table *t = &b->table;
    table_text(t, "method", "%s", dpi_method_get(r->s.method)->name);
    table_number(t, "B", 0, r->s.n_ref);
    if (b->texts.n > 1 || b->texts.v[0] > 1)
        table_number(t, "texts", 0, r->s.n_texts);
    table_number(t, "k", 0, b->c.top_k);
    table_number(t, "rho", 4, r->rho);
    table_number(t, "clip", 4, r->clip);
}

/* As llama-batched-bench: S are tokens of all sequences a second. */
static void add_batched(bench *b, const bench_result *r) {
    table *t = &b->table;
    double rows = r->s.n_texts * (r->s.n_ref + 1.), n_pp = r->s.n_prompt * rows;
    double n_tg = r->s.n_tokens * rows, n_out = (double)r->s.n_tokens * r->s.n_texts;
    table_number(t, "PP", 0, r->s.n_prompt);
    if (b->n_prefix > 0)
        table_number(t, "prefix", 0, r->s.n_prefix);
    table_number(t, "TG", 0, r->s.n_tokens);
    table_number(t, "N_KV", 0, n_pp + n_tg);
    table_number(t, "T_PP", 3, r->t_pp);
    table_number(t, "S_PP", 2, n_pp / r->t_pp);
    table_number(t, "T_TG", 3, r->t_tg);
    table_number(t, "S_TG", 2, n_tg / r->t_tg);
    table_number(t, "T", 3, r->t_pp + r->t_tg);
    table_number(t, "S", 2, (n_pp + n_tg) / (r->t_pp + r->t_tg));
    table_number(t, "step_ms", 2, 1e3 * r->t_tg / r->s.n_tokens);
    table_number(t, "out_t/s", 2, n_out / r->t_tg);
    table_number(t, "fwd_t/s", 2, n_tg / r->t_tg);
    table_number(t, "overhead_x", 3, r->overhead);
    table_number(t, "overhead_all_x", 3, r->overhead_all);
    table_number(t, "job_x", 3, r->job);
    table_number(t, "itl_ms", 2, 1e3 * r->t_token);
    table_number(t, "itl_x", 3, r->overhead_token);
    add_shares(b, r);
}

/* Every value there is, for programs: one row a setting. */
static void print_long_row(bench *b, const bench_result *r) {
    table *t = &b->table;
    add_model(b, r);
    table_text(t, "test", "pp%d+tg%d", r->s.n_prompt, r->s.n_tokens);
    table_spread(t, "t/s", 2, r->all.mean, r->all.deviation);
    table_spread(t, "pp_t/s", 2, r->pp.mean, r->pp.deviation);
    table_spread(t, "tg_t/s", 2, r->tg.mean, r->tg.deviation);
    add_private(b, r);
    add_batched(b, r);
    table_number(t, "peak_rss", 0, (double)r->peak_rss);
    table_number(t, "vocab_ms", 1, 1e3 * b->t_vocab);
    table_number(t, "load_ms", 1, 1e3 * b->t_load);
    table_number(t, "first_token_ms", 1, 1e3 * b->t_first);
    table_number(t, "second_token_ms", 1, 1e3 * b->t_second);
    table_number(t, "read_GB/s", 2, r->read_bytes_per_second / 1e9);
    table_number(t, "int8_GOPS", 1, b->machine.int8_ops_per_second / 1e9);
    table_number(t, "f32_GFLOPS", 1, b->machine.f32_ops_per_second / 1e9);
    table_print_row(t);
}

/* ---- Markdown: two tables -------------------------------------------------------------------- */

/* As llama-bench: one row a test. */
static void print_test_row(bench *b, const bench_result *r, const char *test, int32_t n,
                           const bench_rate *rate) {
    add_model(b, r);
    table_text(&b->table, "test", "%s%d", test, n);
    table_spread(&b->table, "t/s", 2, rate->mean, rate->deviation);
    table_print_row(&b->table);
}

static void print_tables(bench *b) {
    for (int i = 0; i < b->n_results; i++) {
        const bench_result *r = &b->results[i];
        if (r->s.method != DPI_METHOD_PLAIN)
            continue;
        print_test_row(b, r, "pp", r->s.n_prompt, &r->pp);
        print_test_row(b, r, "tg", r->s.n_tokens, &r->tg);
    }
    if (b->table.n_rows > 0)
        printf("\n");
    table_end(&b->table);
    for (int i = 0; i < b->n_results; i++) {
        table_number(&b->table, "threads", 0, b->results[i].s.n_threads);
        add_private(b, &b->results[i]);
        add_batched(b, &b->results[i]);
        table_number(&b->table, "peak_rss MiB", 0, (double)b->results[i].peak_rss / (1 << 20));
        table_print_row(&b->table);
    }
    printf("\nopened in %.0f ms, of them %.0f for the vocabulary; logits of a first token after "
           "%.0f ms, of a second, with all weights in place, after %.0f ms\n",
           1e3 * b->t_load, 1e3 * b->t_vocab, 1e3 * b->t_first, 1e3 * b->t_second);
}

/* ---- The command ---------------------------------------------------------------------------- */

static int measure(bench *b, const bench_setting *s) {
    bench_result r;
    int code = bench_measure(&b->c, s, &r);
    if (code != CLI_OK)
        return code;
    fprintf(stderr,
            "%s -B %d -p %d -n %d --texts %d: prompts %.1f t/s, %.2f ms a step with its draws, "
            "%.2f of plain\n",
            dpi_method_get(s->method)->name, s->n_ref, s->n_prompt, s->n_tokens, s->n_texts,
            r.pp.mean, 1e3 * r.t_tg / s->n_tokens, r.overhead);
    if (b->table.format == TABLE_MD)
        b->results[b->n_results++] = r;
    else
        print_long_row(b, &r);
    return CLI_OK;
}

/* Every method, the private ones with every number of references. */
static int measure_methods(bench *b, bench_setting s) {
    int code = CLI_OK;
    for (int m = 0; m < b->methods.n; m++) {
        s.method = b->methods.v[m];
        s.n_ref = s.n_prefix = 0;
        if (s.method == DPI_METHOD_PLAIN)
            code = measure(b, &s);
        for (int i = 0; s.method != DPI_METHOD_PLAIN && i < b->refs.n && code == CLI_OK; i++) {
            s.n_ref = b->refs.v[i];
            s.n_prefix = b->n_prefix < s.n_prompt ? b->n_prefix : s.n_prompt - 1;
            code = measure(b, &s);
        }
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

static int measure_machine(bench *b, int32_t n_threads) {
    dpi_error err;
    dpi_machine_init(&b->machine);
    if (dpi_machine_measure(n_threads, b->c.session.isa, &b->machine, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    fprintf(b->table.format == TABLE_MD ? stdout : stderr,
            "machine, %d threads: reads %.1f GB/s, %.0f GOPS in 8 bits, %.0f GFLOPS in f32\n\n",
            n_threads, b->machine.read_bytes_per_second / 1e9,
            b->machine.int8_ops_per_second / 1e9, b->machine.f32_ops_per_second / 1e9);
    return CLI_OK;
}

static int measure_all(bench *b) {
    int code = CLI_OK;
    for (int t = 0; t < b->threads.n && code == CLI_OK; t++) {
        code = measure_machine(b, b->threads.v[t]);
        for (int p = 0; p < b->prompts.n; p++)
            for (int n = 0; n < b->tokens.n; n++)
                for (int x = 0; x < b->texts.n && code == CLI_OK; x++)
                    code = measure_methods(b, (bench_setting){.n_texts = b->texts.v[x],
                                                              .n_prompt = b->prompts.v[p],
                                                              .n_tokens = b->tokens.v[n],
                                                              .n_threads = b->threads.v[t]});
    }
    if (b->table.format == TABLE_MD)
        print_tables(b);
    else
        table_end(&b->table);
    return code;
}

/* Opens the model and computes the logits of one token, as a run would begin; before that, the
 * vocabulary alone. */
static int measure_start(const args *a, bench *b, dpi_model **model) {
    dpi_model_options options = options_model(a);
    options.vocab_only = 1;
    double begin = cli_now();
    int code = cli_open_model(a->model, &options, model, NULL);
    if (code != CLI_OK)
        return code;
    b->t_vocab = cli_now() - begin;
    dpi_model_close(*model);
    *model = NULL;
    options.vocab_only = 0;
    begin = cli_now();
    code = cli_open_model(a->model, &options, model, &b->c.info);
    if (code != CLI_OK)
        return code;
    b->t_load = cli_now() - begin;
    b->c.model = *model;
    dpi_session *session;
    dpi_error err;
    int32_t token = 0;
    if (dpi_session_create(*model, &b->c.session, &session, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    double *const seconds[] = {&b->t_first, &b->t_second};
    for (int i = 0; i < 2 && code == CLI_OK; i++) {
        if (dpi_session_prefill(session, 0, &token, 1, NULL, &err) != DPI_STATUS_OK)
            code = cli_fail_library(CLI_FAILED, &err);
        *seconds[i] = cli_now() - begin;
    }
    for (int t = 0; t < b->threads.n; t++)
        if (b->threads.v[t] == 0)
            b->threads.v[t] = dpi_session_n_threads(session);
    dpi_session_free(session);
    return code;
}

static int bench_main(const args *a) {
    bench b = {.table.format = (table_format)a->v[OPT_FORMAT].i};
    dpi_model *model = NULL;
    int code = parse_lists(a, &b);
    if (code == CLI_OK)
        code = read_session_options(a, &b.c.session);
    if (code == CLI_OK)
        code = measure_start(a, &b, &model);
    if (code == CLI_OK)
        code = count_weights(&b);
    if (code == CLI_OK) {
        int32_t top_k = a->v[OPT_TOP_K].given ? (int32_t)a->v[OPT_TOP_K].i : DEFAULT_TOP_K;
        b.c.top_k = top_k < b.c.info.n_vocab ? top_k : b.c.info.n_vocab;
        b.c.rho = a->v[OPT_RHO].given ? a->v[OPT_RHO].d : 0.5;
        b.n_prefix = (int32_t)a->v[OPT_PREFIX].i;
        b.c.n_repeats = (int32_t)a->v[OPT_REPEATS].i;
        b.results = calloc((size_t)(b.methods.n * b.refs.n * b.texts.n * b.prompts.n *
                                    b.tokens.n * b.threads.n), sizeof *b.results);
        code = b.results ? measure_all(&b) : cli_no_memory("results");
    }
    free(b.results);
    dpi_model_close(model);
    return code;
}

const command command_bench = {
    .name = "bench", .bit = CMD_BENCH, .arguments = "MODEL", .takes_model = 1,
    .run = bench_main,
    .summary = "speed: private beside plain, and both beside the machine",
    .details =
        "Every combination of the lists --method, -B, --texts, -p, -n and -t, on random tokens:\n"
        "one run to warm up, then -r that count. Times are their medians, 't/s' mean and standard\n"
        "deviation. PP, TG: tokens of a prompt, drawn ones of a text; N_KV: of all sequences (B\n"
        "and the public one of each text); T_PP, T_TG: seconds for all prompts, for all drawn\n"
        "tokens with their draws; S_PP, S_TG: tokens of all sequences a second; out_t/s: drawn\n"
        "tokens of all texts a second, fwd_t/s: sequences of a text times that; overhead_x: T_TG\n"
        "beside that of plain texts just before it, overhead_all_x: with the prompts; job_x: with\n"
        "the prompts, beside a plain text for each sequence, one after the other; itl_ms: median\n"
        "time from a token of a text to its next one, which pauses of the machine do not move,\n"
        "itl_x: that beside the plain run's; sampler_%: share of the draws in T_TG; pp_peak_%,\n"
        "tg_peak_%, tg_read_%, itl_read_%: operations of the weights, weights and caches read in\n"
        "T_PP, T_TG or itl_ms, as a share of what this machine was measured to do, memory just\n"
        "before each run; pp_attn_%, tg_attn_%: attention's share of T_PP, of T_TG;\n"
        "pp_attn_peak_%: its operations in that time of T_PP, as a share of the f32 peak;\n"
        "peak_rss: most memory held (bytes; MiB in Markdown); vocab_ms, load_ms, first_token_ms,\n"
        "second_token_ms: from the start to the vocabulary alone, to the open\n"
        "model, to the logits of a first token and of a second, when all weights are in place.\n",
};
