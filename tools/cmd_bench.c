/* cmd_bench.c - `dpinfer bench`: what private text costs beside plain text on this machine. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "facts.h"

enum { MAX_LIST = 16, MAX_REPEATS = 100 };

typedef struct int_list {
    int32_t v[MAX_LIST];
    int n;
} int_list;

/* One line of the table: a combination of the lists. */
typedef struct setting {
    const char *method; /* plain, invisibleink */
    int32_t n_ref, n_prompt, n_tokens, n_threads;
} setting;

typedef struct result {
    setting s;
    double t_pp, t_tg;       /* median seconds: all prompts; all steps with their draws */
    double t_sampler;        /* median seconds of the draws alone */
    double sd_pp, sd_tg;     /* sample standard deviations of the rates, tokens a second */
    double rho, clip;        /* 0 for plain */
    double overhead, overhead_all; /* beside plain: of a drawn token; prompts included */
    double peak_rss;         /* bytes, of the process so far */
} result;

typedef struct bench {
    const args *a;
    dpi_model *model;
    dpi_model_info info;
    dpi_machine machine; /* for the threads of the current setting */
    const char *format;
    int64_t n_repeats;
    int n_rows; /* printed so far */
} bench;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

/* ---- Memory --------------------------------------------------------------------------------- */

/* From here on the peak counts anew: what measuring the machine took is not the model's. */
static void reset_peak_rss(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5", f); /* if the kernel refuses, the peak is merely too high */
        fclose(f);
    }
}

/* Most memory held at once, in bytes; 0 where the system does not tell. */
static double peak_rss(void) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    double kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtod(line + 6, NULL);
    if (f)
        fclose(f);
    return kib * 1024;
}

/* ---- One run -------------------------------------------------------------------------------- */

static int fail(const dpi_error *err) { return cli_fail_library(CLI_FAILED, err); }

static dpi_sampler_options sampler_options(const bench *b, const setting *s) {
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    bool plain = strcmp(s->method, "plain") == 0;
    o.method = plain ? DPI_METHOD_PLAIN : DPI_METHOD_INVISIBLEINK;
    o.n_vocab = b->info.n_vocab;
    o.n_ref = plain ? 0 : s->n_ref;
    o.n_tokens = s->n_tokens;
    o.top_k = o.n_vocab < 100 ? o.n_vocab : 100;
    o.rho = b->a->v[OPT_RHO].given ? b->a->v[OPT_RHO].d : 0.5; /* decides no time */
    return o;
}

/* The prompts: random tokens, each sequence its own. */
static int read_prompts(dpi_session *session, const bench *b, const setting *s) {
    int32_t *tokens = private_malloc((size_t)s->n_prompt * sizeof *tokens);
    dpi_error err;
    if (!tokens)
        return cli_fail(CLI_FAILED, "out of memory for %d tokens", s->n_prompt);
    uint64_t random = 1;
    int code = CLI_OK;
    for (int32_t seq = 0; seq <= s->n_ref && code == CLI_OK; seq++) {
        for (int32_t i = 0; i < s->n_prompt; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            tokens[i] = (int32_t)((random >> 33) % (uint64_t)b->info.n_vocab);
        }
        if (dpi_session_prefill(session, seq, tokens, (size_t)s->n_prompt, NULL, &err) !=
            DPI_STATUS_OK)
            code = fail(&err);
    }
    private_free(tokens);
    return code;
}

/* Draws and steps; end-of-text tokens do not stop it, so that every run does the same work. */
static int draw_tokens(dpi_session *session, dpi_sampler *sampler, const setting *s,
                       double *t_sampler) {
    const float *logits[4096];
    int32_t seqs[4097], tokens[4097], token;
    dpi_error err;
    *t_sampler = 0;
    if (dpi_sampler_begin(sampler, &err) != DPI_STATUS_OK)
        return fail(&err);
    for (int32_t t = 0; t < s->n_tokens; t++) {
        for (int32_t i = 0; i < s->n_ref; i++)
            logits[i] = dpi_session_logits(session, i + 1);
        double begin = now();
        if (dpi_sampler_step(sampler, dpi_session_logits(session, 0), logits, &token, &err) !=
            DPI_STATUS_OK)
            return fail(&err);
        *t_sampler += now() - begin;
        for (int32_t i = 0; i <= s->n_ref; i++) {
            seqs[i] = i;
            tokens[i] = token;
        }
        if (dpi_session_step(session, s->n_ref + 1, seqs, tokens, &err) != DPI_STATUS_OK)
            return fail(&err);
    }
    return CLI_OK;
}

static int run_once(dpi_session *session, dpi_sampler *sampler, const bench *b, const setting *s,
                    double *t_pp, double *t_tg, double *t_sampler) {
    for (int32_t seq = 0; seq <= s->n_ref; seq++)
        dpi_session_reset(session, seq);
    double begin = now();
    int code = read_prompts(session, b, s);
    double middle = now();
    if (code == CLI_OK)
        code = draw_tokens(session, sampler, s, t_sampler);
    *t_pp = middle - begin;
    *t_tg = now() - middle;
    return code;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int64_t n) {
    qsort(x, (size_t)n, sizeof *x, compare);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Sample standard deviation of count / x[i]. */
static double deviation_of_rate(const double *x, int64_t n, double count) {
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        mean += count / x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        sum += (count / x[i] - mean) * (count / x[i] - mean);
    return n > 1 ? sqrt(sum / (double)(n - 1)) : 0;
}

static int run_setting(const bench *b, const setting *s, result *r) {
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.n_seq = s->n_ref + 1;
    o.n_ctx = s->n_prompt + s->n_tokens;
    o.n_threads = s->n_threads;
    dpi_error err;
    if (dpi_isa_parse(b->a->v[OPT_ISA].s, &o.isa, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    o.kv_type = b->a->v[OPT_KV].i ? DPI_KV_F32 : DPI_KV_F16;
    o.exact = b->a->v[OPT_EXACT].i != 0;
    dpi_sampler_options so = sampler_options(b, s);
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    dpi_session *session = NULL;
    dpi_sampler *sampler = NULL;
    double pp[MAX_REPEATS], tg[MAX_REPEATS], draws[MAX_REPEATS];
    *r = (result){.s = *s};
    int code = CLI_OK;
    if (dpi_session_create(b->model, &o, &session, &err) != DPI_STATUS_OK ||
        dpi_sampler_plan_make(&so, &plan, &err) != DPI_STATUS_OK ||
        dpi_sampler_create(&so, &sampler, &err) != DPI_STATUS_OK)
        code = fail(&err);
    for (int64_t i = -1; i < b->n_repeats && code == CLI_OK; i++) { /* -1: warm-up */
        double t[3];
        code = run_once(session, sampler, b, s, &t[0], &t[1], &t[2]);
        if (i >= 0)
            pp[i] = t[0], tg[i] = t[1], draws[i] = t[2];
    }
    dpi_sampler_free(sampler);
    dpi_session_free(session);
    if (code != CLI_OK)
        return code;
    double n_pp = (double)s->n_prompt * (s->n_ref + 1);
    r->sd_pp = deviation_of_rate(pp, b->n_repeats, n_pp);
    r->sd_tg = deviation_of_rate(tg, b->n_repeats, s->n_tokens);
    r->t_pp = median(pp, b->n_repeats);
    r->t_tg = median(tg, b->n_repeats);
    r->t_sampler = median(draws, b->n_repeats);
    if (so.method != DPI_METHOD_PLAIN)
        r->rho = plan.rho_total, r->clip = plan.clip;
    r->peak_rss = peak_rss();
    return CLI_OK;
}

/* ---- Tables --------------------------------------------------------------------------------- */

/* One value of a row: its name, and how it is printed; NULL format: a string. */
typedef struct column {
    const char *name, *format;
    const char *text;
    double value;
} column;

enum { MAX_COLUMNS = 32 };

static int make_columns(const bench *b, const result *r, column *c) {
    const setting *s = &r->s;
    double rows = s->n_ref + 1, n_pp = s->n_prompt * rows, n = s->n_tokens;
    double weights = (double)b->info.weight_bytes;
    static char size[32], params[32];
    snprintf(size, sizeof size, "%.2f GiB", weights / (1 << 30));
    snprintf(params, sizeof params, "%.2f B", (double)b->info.n_params / 1e9);
    double compute = 2.0 * (double)b->info.n_params * rows * n / r->t_tg;
    const column all[] = {
        {"model", NULL, b->info.name[0] ? b->info.name : b->info.architecture, 0},
        {"type", NULL, b->info.weight_types, 0},
        {"size", NULL, size, 0},
        {"params", NULL, params, 0},
        {"threads", "%.0f", NULL, s->n_threads},
        {"method", NULL, s->method, 0},
        {"B", "%.0f", NULL, s->n_ref},
        {"rho", "%.4g", NULL, r->rho},
        {"clip", "%.4g", NULL, r->clip},
        {"PP", "%.0f", NULL, s->n_prompt},
        {"TG", "%.0f", NULL, s->n_tokens},
        {"N_KV", "%.0f", NULL, (s->n_prompt + n) * rows},
        {"T_PP", "%.3f", NULL, r->t_pp},
        {"S_PP", "%.2f", NULL, n_pp / r->t_pp},
        {"sd_PP", "%.2f", NULL, r->sd_pp},
        {"T_TG", "%.3f", NULL, r->t_tg},
        {"step_ms", "%.2f", NULL, 1e3 * r->t_tg / n},
        {"out_t/s", "%.2f", NULL, n / r->t_tg},
        {"sd_out", "%.2f", NULL, r->sd_tg},
        {"fwd_t/s", "%.2f", NULL, rows * n / r->t_tg},
        {"overhead_x", "%.3f", NULL, r->overhead},
        {"overhead_all_x", "%.3f", NULL, r->overhead_all},
        {"sampler_%", "%.2f", NULL, 100 * r->t_sampler / r->t_tg},
        {"read_%", "%.1f", NULL,
         100 * weights * n / r->t_tg / b->machine.read_bytes_per_second},
        {"peak_%", "%.1f", NULL,
         b->machine.int8_ops_per_second > 0 ? 100 * compute / b->machine.int8_ops_per_second : 0},
        {"peak_rss_MiB", "%.0f", NULL, r->peak_rss / (1 << 20)},
    };
    memcpy(c, all, sizeof all);
    return (int)(sizeof all / sizeof all[0]);
}

/* Texts of a CSV stand in quotes, which are doubled within (RFC 4180). */
static void print_value(const column *c, bool csv) {
    if (c->format) {
        printf(c->format, c->value);
        return;
    }
    if (csv)
        putchar('"');
    for (const char *p = c->text; *p; p++) {
        if (csv && *p == '"')
            putchar('"');
        putchar(*p);
    }
    if (csv)
        putchar('"');
}

static void print_json_row(const column *c, int n) {
    json_t *object = json_object();
    for (int i = 0; i < n; i++) {
        bool is_count = c[i].format && strcmp(c[i].format, "%.0f") == 0;
        json_object_set_new(object, c[i].name,
                            !c[i].format ? facts_string(c[i].text)
                            : is_count   ? json_integer((json_int_t)c[i].value)
                                         : json_real(c[i].value));
    }
    char *line = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    printf("%s", line ? line : "{}");
    private_free(line);
    json_decref(object);
}

static void print_row(bench *b, const result *r) {
    column c[MAX_COLUMNS];
    int n = make_columns(b, r, c);
    if (strcmp(b->format, "json") == 0 || strcmp(b->format, "jsonl") == 0) {
        bool list = strcmp(b->format, "json") == 0;
        printf("%s", !list ? "" : b->n_rows ? ",\n " : "[");
        print_json_row(c, n);
        printf("%s", list ? "" : "\n");
    } else {
        bool md = strcmp(b->format, "md") == 0;
        if (b->n_rows == 0) {
            for (int i = 0; i < n; i++)
                printf("%s%s", md ? "| " : i ? "," : "", c[i].name), md ? printf(" ") : 0;
            printf("%s\n", md ? "|" : "");
            for (int i = 0; md && i < n; i++)
                printf("|%s", c[i].format ? "---:" : "---");
            printf("%s", md ? "|\n" : "");
        }
        for (int i = 0; i < n; i++) {
            printf("%s", md ? "| " : i ? "," : "");
            print_value(&c[i], !md);
            printf("%s", md ? " " : "");
        }
        printf("%s\n", md ? "|" : "");
    }
    fflush(stdout);
    b->n_rows++;
}

/* ---- The command ---------------------------------------------------------------------------- */

/* Plain, then every number of references, for one prompt length, text length and thread count. */
static int run_group(bench *b, const int_list *refs, int32_t n_prompt, int32_t n_tokens,
                     int32_t n_threads) {
    setting s = {"plain", 0, n_prompt, n_tokens, n_threads};
    result plain, r;
    int code = run_setting(b, &s, &plain);
    if (code != CLI_OK)
        return code;
    plain.overhead = plain.overhead_all = 1;
    print_row(b, &plain);
    s.method = "invisibleink";
    for (int i = 0; i < refs->n && code == CLI_OK; i++) {
        s.n_ref = refs->v[i];
        code = run_setting(b, &s, &r);
        r.overhead = r.t_tg / plain.t_tg;
        r.overhead_all = (r.t_pp + r.t_tg) / (plain.t_pp + plain.t_tg);
        if (code == CLI_OK)
            print_row(b, &r);
    }
    return code;
}

static int measure_machine(bench *b, int32_t n_threads) {
    dpi_error err;
    int32_t isa;
    b->machine.struct_size = sizeof b->machine;
    if (dpi_isa_parse(b->a->v[OPT_ISA].s, &isa, &err) != DPI_STATUS_OK ||
        dpi_machine_measure(n_threads, isa, &b->machine, &err) != DPI_STATUS_OK)
        return fail(&err);
    reset_peak_rss();
    fprintf(stderr, "machine, %d threads: reads %.1f GB/s, %.0f GOPS in 8 bits, %.0f GFLOPS\n",
            n_threads, b->machine.read_bytes_per_second / 1e9,
            b->machine.int8_ops_per_second / 1e9, b->machine.f32_ops_per_second / 1e9);
    return CLI_OK;
}

static int run_all(bench *b, const int_list *refs, const int_list *prompts, const int_list *tokens,
                   const int_list *threads) {
    int code = CLI_OK;
    for (int t = 0; t < threads->n && code == CLI_OK; t++) {
        code = measure_machine(b, threads->v[t]);
        for (int p = 0; p < prompts->n; p++)
            for (int n = 0; n < tokens->n && code == CLI_OK; n++)
                code = run_group(b, refs, prompts->v[p], tokens->v[n], threads->v[t]);
    }
    if (strcmp(b->format, "json") == 0)
        printf(b->n_rows ? "]\n" : "[]\n");
    return code;
}

static int bench_main(const args *a) {
    int_list refs, prompts, tokens, threads;
    bench b = {.a = a, .format = a->v[OPT_FORMAT].s, .n_repeats = a->v[OPT_REPEATS].i};
    int code = parse_list("-B", a->v[OPT_LIST_B].s, 1, 4096, &refs);
    if (code == CLI_OK)
        code = parse_list("-p", a->v[OPT_LIST_P].s, 1, 1 << 20, &prompts);
    if (code == CLI_OK)
        code = parse_list("-n", a->v[OPT_LIST_N].s, 1, 1 << 20, &tokens);
    if (code == CLI_OK)
        code = parse_list("-t", a->v[OPT_LIST_T].s, 0, 1024, &threads);
    dpi_model_options options;
    dpi_model_options_init(&options);
    options.use_mmap = !a->v[OPT_NO_MMAP].i;
    if (code == CLI_OK)
        code = cli_open_model(a->model, &options, &b.model, &b.info);
    if (code == CLI_OK)
        code = run_all(&b, &refs, &prompts, &tokens, &threads);
    dpi_model_close(b.model);
    return code;
}

const command command_bench = {
    .name = "bench", .bit = CMD_BENCH, .arguments = "MODEL", .takes_model = 1,
    .run = bench_main,
    .summary = "speed: private beside plain, and both beside the machine",
    .details =
        "For every combination of the lists -p, -n and -t: plain generation of one text, then\n"
        "private generation with each number of references of -B, on random tokens. Medians of\n"
        "-r runs after a warm-up. T_PP: seconds for all prompts; T_TG: for all drawn tokens;\n"
        "S_PP: prompt tokens a second; out_t/s: drawn tokens a second, fwd_t/s: sequences times\n"
        "that; overhead_x: T_TG beside plain, overhead_all_x: with the prompts; sampler_%:\n"
        "share of the draws in T_TG; read_% and peak_%: weights read, and 8-bit operations\n"
        "done, as a share of what this machine was measured to do in the same run.\n",
};
