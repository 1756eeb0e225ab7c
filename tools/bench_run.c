/* bench_run.c - see bench_run.h. */
#include "tools/bench_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const dpi_error *err) { return cli_fail_library(CLI_FAILED, err); }

/* ---- Memory --------------------------------------------------------------------------------- */

/* From here on the peak counts anew: what was measured before is not this setting's. */
static void reset_peak_rss(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5", f); /* if the kernel refuses, the peak is merely too high */
        fclose(f);
    }
}

/* ---- Numbers of a few runs -------------------------------------------------------------------- */

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

/* Of a copy: sorting must not part what belongs together. */
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

/* ---- One run ---------------------------------------------------------------------------------- */

typedef struct times {
    double pp, tg, sampler;
    double token;    /* the median draw with its step */
    double n_logits; /* computed by the steps */
} times;

static int32_t random_token(uint64_t *random, int32_t n_vocab) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((*random >> 33) % (uint64_t)n_vocab);
}

/* Random tokens, each sequence its own but for the prefix, which reference 1 computes for all. The
 * plain run reads the prompt of sequence 0. */
static int read_prompts(dpi_session *session, const bench_context *c, const bench_setting *s,
                        int32_t n_ref) {
    int32_t *tokens = dpi_private_malloc((size_t)s->n_prompt * sizeof *tokens);
    dpi_error err;
    if (!tokens)
        return cli_fail(CLI_FAILED, "out of memory for %d tokens", s->n_prompt);
    uint64_t random = 1;
    int code = CLI_OK;
    for (int32_t seq = 0; seq <= n_ref && code == CLI_OK; seq++) {
        int32_t n_shared = seq > 1 ? s->n_prefix : 0; /* they stand in `tokens` already */
        for (int32_t i = n_shared; i < s->n_prompt; i++)
            tokens[i] = random_token(&random, c->info.n_vocab);
        if ((n_shared > 0 &&
             dpi_session_fork(session, 1, seq, n_shared, &err) != DPI_STATUS_OK) ||
            dpi_session_prefill(session, seq, tokens + n_shared, (size_t)(s->n_prompt - n_shared),
                                NULL, &err) != DPI_STATUS_OK)
            code = fail(&err);
    }
    dpi_private_free(tokens);
    return code;
}

/* *partial: the step has computed all logits of sequence 0 only; then, whether the next one may. */
static int draw_token(dpi_session *session, dpi_sampler *sampler, int32_t n_ref, bool *partial,
                      times *t, int32_t *token) {
    const float *logits[4096], *public_logits = dpi_session_logits(session, 0);
    const int32_t *ids;
    int32_t n_ids;
    dpi_error err;
    double begin = bench_now();
    if (dpi_sampler_candidates(sampler, public_logits, &ids, &n_ids, &err) != DPI_STATUS_OK)
        return fail(&err);
    double found = bench_now();
    if (*partial && dpi_session_logits_at(session, 1, n_ref, ids, n_ids, &err) != DPI_STATUS_OK)
        return fail(&err);
    t->n_logits += *partial ? (double)n_ref * n_ids : 0;
    *partial = ids != NULL;
    for (int32_t i = 0; i < n_ref; i++)
        logits[i] = dpi_session_logits(session, i + 1);
    double computed = bench_now();
    if (dpi_sampler_step(sampler, public_logits, logits, token, &err) != DPI_STATUS_OK)
        return fail(&err);
    t->sampler += bench_now() - computed + found - begin;
    return CLI_OK;
}

/* Draws and steps as dpi_generate does; end-of-text tokens do not stop it, so that every run does
 * the same work. seconds [n_tokens]: of each token. */
static int draw_tokens(dpi_session *session, dpi_sampler *sampler, const bench_context *c,
                       const bench_setting *s, int32_t n_ref, times *t, double *seconds) {
    int32_t seqs[4097], tokens[4097], token;
    bool partial = false;
    dpi_error err;
    if (dpi_sampler_begin(sampler, &err) != DPI_STATUS_OK)
        return fail(&err);
    for (int32_t n = 0; n < s->n_tokens; n++) {
        double begin = bench_now();
        if (draw_token(session, sampler, n_ref, &partial, t, &token) != CLI_OK)
            return CLI_FAILED;
        for (int32_t i = 0; i <= n_ref; i++) {
            seqs[i] = i;
            tokens[i] = token;
        }
        int32_t n_whole = partial ? 1 : n_ref + 1;
        if (dpi_session_step_partial(session, n_ref + 1, seqs, tokens, n_whole, &err) !=
            DPI_STATUS_OK)
            return fail(&err);
        t->n_logits += (double)n_whole * c->info.n_vocab;
        seconds[n] = bench_now() - begin;
    }
    t->token = median_of(seconds, s->n_tokens);
    return CLI_OK;
}

static int run_once(dpi_session *session, dpi_sampler *sampler, const bench_context *c,
                    const bench_setting *s, int32_t n_ref, times *t) {
    double *seconds = malloc((size_t)s->n_tokens * sizeof *seconds);
    *t = (times){0};
    if (!seconds)
        return cli_fail(CLI_FAILED, "out of memory for the times of %d tokens", s->n_tokens);
    for (int32_t seq = 0; seq <= n_ref; seq++)
        dpi_session_reset(session, seq);
    double begin = bench_now();
    int code = read_prompts(session, c, s, n_ref);
    double middle = bench_now();
    if (code == CLI_OK)
        code = draw_tokens(session, sampler, c, s, n_ref, t, seconds);
    free(seconds);
    t->pp = middle - begin;
    t->tg = bench_now() - middle;
    for (int32_t seq = 0; seq <= n_ref; seq++)
        dpi_session_reset(session, seq);
    return code;
}

/* ---- All runs of a setting -------------------------------------------------------------------- */

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
    o.n_seq = s->n_ref + 1;
    o.n_ctx = s->n_prompt + s->n_tokens;
    o.n_threads = s->n_threads;
    dpi_error err;
    return dpi_session_create(c->model, &o, session, &err) == DPI_STATUS_OK ? CLI_OK : fail(&err);
}

static int open_sampler(const dpi_sampler_options *o, dpi_sampler **sampler) {
    dpi_error err;
    return dpi_sampler_create(o, sampler, &err) == DPI_STATUS_OK ? CLI_OK : fail(&err);
}

typedef struct runs {
    series pp, tg, all, sampler, token, overhead, overhead_all, overhead_token;
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
                  dpi_sampler *plain, dpi_sampler *private, runs *r) {
    for (int i = -1; i < c->n_repeats; i++) { /* -1: warm-up */
        times t, t_plain;
        dpi_machine machine;
        dpi_machine_init(&machine);
        dpi_error err;
        if (dpi_machine_measure(dpi_session_n_threads(session), c->session.isa, &machine, &err) !=
            DPI_STATUS_OK)
            return fail(&err);
        reset_peak_rss(); /* not what the measurement took */
        int code = run_once(session, plain, c, s, 0, &t_plain);
        t = t_plain;
        if (code == CLI_OK && private)
            code = run_once(session, private, c, s, s->n_ref, &t);
        if (code != CLI_OK)
            return code;
        uint64_t peak_rss = cli_memory("VmHWM");
        r->peak_rss = peak_rss > r->peak_rss ? peak_rss : r->peak_rss;
        if (i >= 0)
            keep_run(r, &t, &t_plain, machine.read_bytes_per_second);
        r->n_logits = t.n_logits;
    }
    return CLI_OK;
}

static void summarize(const runs *all, bench_result *r) {
    double rows = r->s.n_ref + 1, n_pp = r->s.n_prompt * rows, n_tg = r->s.n_tokens * rows;
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
    r->overhead_token = median(all->overhead_token);
    r->read_bytes_per_second = median(all->read);
    r->readable = median(all->readable);
    r->readable_token = median(all->readable_token);
    r->peak_rss = all->peak_rss;
}

int bench_measure(const bench_context *c, const bench_setting *s, bench_result *r) {
    dpi_session *session = NULL;
    dpi_sampler *plain = NULL, *private = NULL;
    dpi_sampler_options o = sampler_options(c, s, DPI_METHOD_PLAIN);
    dpi_sampler_plan plan;
    dpi_sampler_plan_init(&plan);
    dpi_error err;
    runs all = {0};
    *r = (bench_result){.s = *s};
    int code = open_session(c, s, &session);
    if (code == CLI_OK)
        code = open_sampler(&o, &plain);
    if (code == CLI_OK && s->method != DPI_METHOD_PLAIN) {
        o = sampler_options(c, s, s->method);
        if (dpi_sampler_plan_make(&o, &plan, &err) != DPI_STATUS_OK)
            code = fail(&err);
        else
            code = open_sampler(&o, &private);
    }
    if (code == CLI_OK)
        code = repeat(c, s, session, plain, private, &all);
    if (code == CLI_OK) {
        r->s.n_threads = dpi_session_n_threads(session);
        r->rho = plan.rho_total;
        r->clip = plan.clip;
        summarize(&all, r);
    }
    dpi_sampler_free(plain);
    dpi_sampler_free(private);
    dpi_session_free(session);
    return code;
}
