/* bench_run.c - see bench_run.h. */
#include "tools/command/bench_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/terminal/program_system.h"

static int fail(const dpi_error *err) { return cli_fail_library(CLI_FAILED, err); }

/* ---- Numbers of a few runs ------------------------------------------------------------------- */

typedef struct series {
    double x[BENCH_MAX_REPEATS];
    int n;
} series;

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts x. */
static double median_of(double *x, int32_t n) {
    qsort(x, (size_t)n, sizeof *x, compare);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Of a copy: sorting must not part the values of one run. */
static double median(series s) { return median_of(s.x, s.n); }

/* Of `count` tokens in each run's seconds. */
static bench_rate rate(const series *s, double count) {
    double mean = 0, sum = 0;
    for (int i = 0; i < s->n; i++)
        mean += count / s->x[i] / s->n;
    for (int i = 0; i < s->n; i++)
        sum += (count / s->x[i] - mean) * (count / s->x[i] - mean);
    return (bench_rate){mean, s->n > 1 ? sqrt(sum / (s->n - 1)) : 0};
}

/* ---- One run --------------------------------------------------------------------------------- */

typedef struct times {
    double pp, tg, sampler;
    double token;    /* the median draw with its step */
    double n_logits; /* computed by the steps */
    double pp_attention, tg_attention, pp_attention_operations; /* of pp, of tg: seconds */
} times;

static int32_t random_token(uint64_t *random, int32_t n_vocab) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((*random >> 33) % (uint64_t)n_vocab);
}

/* Texts side by side in one session, of which each has the next sequences. */
typedef struct bench_texts {
    int32_t n, n_ref, n_seq; /* n_seq: sequences from one text to the next */
    dpi_sampler *samplers[BENCH_MAX_TEXTS];
    dpi_sampler *probe; /* draws once more, for the time that it takes */
    dpi_generation *generations[BENCH_MAX_TEXTS];
    dpi_generation_event events[BENCH_MAX_TEXTS];
    int32_t *tokens;            /* [n, n_ref + 1, n_prompt] */
    const int32_t **references; /* [n, n_ref] */
    size_t *n_reference_tokens; /* [n_ref] */
    bool partial[BENCH_MAX_TEXTS]; /* the next step has all logits of the public sequence only */
} bench_texts;

/* Random tokens, each sequence its own but for the prefix, which a text's references share. */
static void make_prompts(bench_texts *x, const bench_context *c, const bench_setting *s) {
    const size_t n = (size_t)s->n_prompt;
    const int32_t rows = x->n_ref + 1;
    uint64_t random = 1;
    for (int32_t i = 0; i < x->n * rows; i++) {
        int32_t *tokens = x->tokens + (size_t)i * n, slot = i % rows;
        size_t n_shared = slot > 1 ? (size_t)s->n_prefix : 0;
        memcpy(tokens, slot > 1 ? tokens - n : tokens, n_shared * sizeof *tokens);
        for (size_t t = n_shared; t < n; t++)
            tokens[t] = random_token(&random, c->info.n_vocab);
        if (slot > 0) {
            x->references[i / rows * x->n_ref + slot - 1] = tokens;
            x->n_reference_tokens[slot - 1] = n;
        }
    }
}

/* End-of-text tokens do not stop them, so that every run does the same work. */
static int begin_texts(bench_texts *x, dpi_session *session, const bench_setting *s) {
    for (int32_t i = 0; i < x->n; i++) {
        dpi_generation_options o;
        dpi_error err;
        dpi_generation_options_init(&o);
        o.session = session;
        o.sampler = x->samplers[i];
        o.public_tokens = x->tokens + (size_t)i * (size_t)(x->n_ref + 1) * (size_t)s->n_prompt;
        o.n_public = (size_t)s->n_prompt;
        o.reference_tokens = x->references + (size_t)i * (size_t)x->n_ref;
        o.n_reference_tokens = x->n_reference_tokens;
        o.n_ref = x->n_ref;
        o.first_seq = i * x->n_seq;
        o.n_prefix = (size_t)s->n_prefix;
        o.ignore_eog = 1;
        x->partial[i] = false;
        x->events[i] = (dpi_generation_event){.n_prompts = 1};
        if (dpi_generation_create(&o, &x->generations[i], &err) != DPI_STATUS_OK)
            return fail(&err);
    }
    return CLI_OK;
}

static void end_texts(bench_texts *x) {
    for (int32_t i = 0; i < x->n; i++) {
        dpi_generation_free(x->generations[i]);
        x->generations[i] = NULL;
    }
}

/* What the last draw of a text costs, and logits that its step computed. */
static int probe_draw(bench_texts *x, int32_t i, dpi_session *session, const bench_context *c,
                      times *t) {
    const float *logits[4096] = {NULL};
    const float *public_logits = dpi_session_logits(session, i * x->n_seq);
    const int32_t *ids;
    int32_t n_ids, token;
    dpi_error err;
    for (int32_t k = 0; k < x->n_ref; k++)
        logits[k] = dpi_session_logits(session, i * x->n_seq + k + 1);
    if (dpi_sampler_tokens_left(x->probe) == 0 &&
        dpi_sampler_begin(x->probe, &err) != DPI_STATUS_OK)
        return fail(&err);
    double begin = cli_now();
    if (dpi_sampler_candidates(x->probe, public_logits, &ids, &n_ids, &err) != DPI_STATUS_OK ||
        dpi_sampler_step(x->probe, public_logits, logits, &token, &err) != DPI_STATUS_OK)
        return fail(&err);
    t->sampler += cli_now() - begin;
    t->n_logits += c->info.n_vocab + (double)x->n_ref * (x->partial[i] ? n_ids : c->info.n_vocab);
    x->partial[i] = ids != NULL;
    return CLI_OK;
}

static int advance(bench_texts *x, double *seconds) {
    dpi_error err;
    double begin = cli_now();
    dpi_status status = dpi_generation_advance(x->generations, x->n, x->events, &err);
    *seconds = cli_now() - begin;
    return status == DPI_STATUS_OK ? CLI_OK : fail(&err);
}

/* seconds [n_tokens]: of each step with its draws. The first token of a text comes without a step:
 * it is not counted. */
static int draw_tokens(bench_texts *x, dpi_session *session, const bench_context *c,
                       const bench_setting *s, times *t, double *seconds) {
    double first;
    int code = advance(x, &first);
    times ignored = {0};
    for (int32_t n = 0; n <= s->n_tokens && code == CLI_OK; n++) {
        if (n > 0) {
            code = advance(x, &seconds[n - 1]);
            t->tg += seconds[n - 1];
        }
        for (int32_t i = 0; i < x->n && code == CLI_OK; i++)
            code = probe_draw(x, i, session, c, n > 0 ? t : &ignored);
    }
    t->token = median_of(seconds, s->n_tokens);
    return code;
}

static int run_once(dpi_session *session, bench_texts *x, const bench_context *c,
                    const bench_setting *s, times *t) {
    double *seconds = calloc((size_t)s->n_tokens, sizeof *seconds), piece;
    double begin, begin_ops, read, read_ops, end, end_ops; /* attention, as the session counts it */
    *t = (times){0};
    if (!seconds)
        return cli_no_memory("the times of %d tokens", s->n_tokens);
    make_prompts(x, c, s);
    int code = begin_texts(x, session, s);
    dpi_session_attention(session, &begin, &begin_ops);
    while (code == CLI_OK && x->events[0].n_read < x->events[0].n_prompts) {
        code = advance(x, &piece);
        t->pp += piece;
    }
    dpi_session_attention(session, &read, &read_ops);
    if (code == CLI_OK)
        code = draw_tokens(x, session, c, s, t, seconds);
    dpi_session_attention(session, &end, &end_ops);
    t->pp_attention = read - begin;
    t->pp_attention_operations = read_ops - begin_ops;
    t->tg_attention = end - read;
    end_texts(x);
    free(seconds);
    return code;
}

/* ---- All runs of a setting ------------------------------------------------------------------- */

static dpi_sampler_options sampler_options(const bench_context *c, const bench_setting *s,
                                           int32_t method) {
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    o.method = method;
    o.n_vocab = c->info.n_vocab;
    o.n_ref = method == DPI_METHOD_PLAIN ? 0 : s->n_ref;
    o.n_tokens = s->n_tokens;
    o.top_k = c->top_k;
    o.rho = c->rho;
    o.isa = c->session.isa;
    return o;
}

static int open_session(const bench_context *c, const bench_setting *s, dpi_session **session) {
    dpi_session_options o = c->session;
    o.n_seq = s->n_texts * (s->n_ref + 1);
    o.n_ctx = s->n_prompt + s->n_tokens + 1;
    o.n_threads = s->n_threads;
    dpi_error err;
    return dpi_session_create(c->model, &o, session, &err) == DPI_STATUS_OK ? CLI_OK : fail(&err);
}

static int open_texts(const bench_context *c, const bench_setting *s, int32_t method,
                      bench_texts *x) {
    dpi_sampler_options o = sampler_options(c, s, method);
    dpi_error err;
    x->n = s->n_texts;
    x->n_ref = o.n_ref;
    x->n_seq = s->n_ref + 1;
    o.n_tokens++; /* the first one is not counted */
    for (int32_t i = 0; i <= x->n; i++)
        if (dpi_sampler_create(&o, i < x->n ? &x->samplers[i] : &x->probe, &err) != DPI_STATUS_OK)
            return fail(&err);
    size_t n_rows = (size_t)x->n * (size_t)(x->n_ref + 1);
    x->tokens = malloc(n_rows * (size_t)s->n_prompt * sizeof *x->tokens);
    x->references = calloc(n_rows, sizeof *x->references);
    x->n_reference_tokens = calloc((size_t)x->n_ref + 1, sizeof *x->n_reference_tokens);
    return x->tokens && x->references && x->n_reference_tokens
               ? CLI_OK
               : cli_no_memory("%zu prompts", n_rows);
}

static void close_texts(bench_texts *x) {
    for (int32_t i = 0; i < x->n; i++)
        dpi_sampler_free(x->samplers[i]);
    dpi_sampler_free(x->probe);
    free(x->tokens);
    free(x->references);
    free(x->n_reference_tokens);
}

typedef struct runs {
    series pp, tg, all, sampler, token, overhead, overhead_all, overhead_token;
    series pp_attention, tg_attention, pp_attention_rate;
    double n_logits; /* of the last run: in random text they change little */
    series read; /* bytes a second from memory just before */
    series readable, readable_token; /* those times t_tg, times t_token */
    uint64_t peak_rss;
} runs;

static void keep(series *s, double x) { s->x[s->n++] = x; }

static void keep_run(runs *r, const times *t, const times *plain, double read) {
    keep(&r->pp, t->pp);
    keep(&r->tg, t->tg);
    keep(&r->all, t->pp + t->tg);
    keep(&r->sampler, t->sampler);
    keep(&r->pp_attention, t->pp_attention / t->pp);
    keep(&r->tg_attention, t->tg_attention / t->tg);
    keep(&r->pp_attention_rate, t->pp_attention_operations / t->pp_attention);
    keep(&r->token, t->token);
    keep(&r->overhead, t->tg / plain->tg);
    keep(&r->overhead_all, (t->pp + t->tg) / (plain->pp + plain->tg));
    keep(&r->overhead_token, t->token / plain->token);
    keep(&r->read, read);
    keep(&r->readable, read * t->tg);
    keep(&r->readable_token, read * t->token);
}

/* A private run follows a plain one each time, and that a look at the memory: what the machine can
 * do changes from one minute to the next, and ratios are of neighbours. */
static int repeat(const bench_context *c, const bench_setting *s, dpi_session *session,
                  bench_texts *plain, bench_texts *private, runs *r) {
    for (int i = -1; i < c->n_repeats; i++) { /* -1: warm-up */
        times t, t_plain;
        dpi_machine machine;
        dpi_machine_init(&machine);
        dpi_error err;
        if (dpi_machine_measure(dpi_session_n_threads(session), c->session.isa, &machine, &err) !=
            DPI_STATUS_OK)
            return fail(&err);
        system_reset_peak(); /* not what the measurement took */
        int code = run_once(session, plain, c, s, &t_plain);
        t = t_plain;
        if (code == CLI_OK && private->n > 0)
            code = run_once(session, private, c, s, &t);
        if (code != CLI_OK)
            return code;
        uint64_t peak_rss;
        dpi_process_memory(NULL, &peak_rss);
        r->peak_rss = peak_rss > r->peak_rss ? peak_rss : r->peak_rss;
        if (i >= 0)
            keep_run(r, &t, &t_plain, machine.read_bytes_per_second);
        r->n_logits = t.n_logits;
    }
    return CLI_OK;
}

static void summarize(const runs *all, bench_result *r) {
    double rows = r->s.n_texts * (r->s.n_ref + 1.), n_pp = r->s.n_prompt * rows;
    double n_tg = r->s.n_tokens * rows;
    r->t_pp = median(all->pp);
    r->t_tg = median(all->tg);
    r->t_sampler = median(all->sampler);
    r->t_token = median(all->token);
    r->n_logits = all->n_logits;
    r->pp = rate(&all->pp, n_pp);
    r->tg = rate(&all->tg, n_tg);
    r->all = rate(&all->all, n_pp + n_tg);
    r->overhead = median(all->overhead);
    r->overhead_all = median(all->overhead_all);
    r->job = r->overhead_all / (r->s.n_ref + 1.);
    r->pp_attention = median(all->pp_attention);
    r->tg_attention = median(all->tg_attention);
    r->pp_attention_rate = median(all->pp_attention_rate);
    r->overhead_token = median(all->overhead_token);
    r->read_bytes_per_second = median(all->read);
    r->readable = median(all->readable);
    r->readable_token = median(all->readable_token);
    r->peak_rss = all->peak_rss;
}

int bench_measure(const bench_context *c, const bench_setting *s, bench_result *r) {
    dpi_session *session = NULL;
    bench_texts plain = {0}, private = {0};
    dpi_sampler_options o = sampler_options(c, s, s->method);
    dpi_sampler_plan plan;
    dpi_error err;
    runs all = {0};
    *r = (bench_result){.s = *s};
    dpi_sampler_plan_init(&plan);
    int code = open_session(c, s, &session);
    if (code == CLI_OK)
        code = open_texts(c, s, DPI_METHOD_PLAIN, &plain);
    if (code == CLI_OK && s->method != DPI_METHOD_PLAIN) {
        if (dpi_sampler_plan_make(&o, &plan, &err) != DPI_STATUS_OK)
            code = fail(&err);
        else
            code = open_texts(c, s, s->method, &private);
    }
    if (code == CLI_OK)
        code = repeat(c, s, session, &plain, &private, &all);
    if (code == CLI_OK) {
        r->s.n_threads = dpi_session_n_threads(session);
        r->rho = plan.rho_total;
        r->clip = plan.clip;
        summarize(&all, r);
    }
    close_texts(&plain);
    close_texts(&private);
    dpi_session_free(session);
    return code;
}
