/* audit_model.c - loss of a model: texts from neighbouring batches with the same history. At
 * every token the logits of the public prompt and of every record that both have are the same bits,
 * whatever else is in the batch, whatever other text shares the passes, and however many threads
 * there are; and the distributions are neighbours as audits of loss want them.
 *
 * The history is made the same by the bits that tokens are drawn with: the audit is the source of
 * random bits, called when the weights of the next token are there, and gives bits for a candidate
 * of its choice. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/lines.h"
#include "dpinfer/generation.h"
#include "base/mem.h"
#include "base/status.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"

/* Prompts of records begin alike, for more than a block of the KV cache, and the public one begins
 * as they do: a generation computes once what they have in common. */
enum { N_REF = 3, N_TOKENS = 3, N_SEQ = N_REF + 1, N_PREFIX = 67, N_SHARED = 4, N_PROMPT_MAX = 96 };

static const size_t lengths[N_SEQ] = {8, N_PREFIX + 9, N_PREFIX + 19, N_PREFIX + 3};

/* What the first text showed; [N_TOKENS] of everything. */
typedef struct trace {
    size_t n_vocab;
    float *logits;     /* [N_TOKENS, N_SEQ, n_vocab] */
    int64_t *fixed;    /* [N_TOKENS, n_vocab] */
    int32_t *support;  /* [N_TOKENS, n_vocab] */
    int64_t *sum;      /* [N_TOKENS, n_vocab] */
    dpi_u128 *weights; /* [N_TOKENS, n_vocab] */
    size_t n_support[N_TOKENS];
} trace;

typedef struct text {
    dpi_audit *audit;
    trace *trace;
    bool first;   /* records the trace; else it is compared with it */
    bool warming; /* another text than the one that is looked at */
    dpi_session *session;
    dpi_sampler *sampler;
    int32_t first_seq;
    dpi_generation *generation;
    bool present[N_REF];
    int32_t t; /* tokens drawn */
    double *max_ratio;
} text;

/* ---- What a draw sees ------------------------------------------------------------------------ */

static void record(text *x) {
    trace *r = x->trace;
    const dpi_sampler *s = x->sampler;
    const size_t n = r->n_vocab, at = (size_t)x->t * n;
    for (int32_t i = 0; i < N_SEQ; i++)
        memcpy(r->logits + N_SEQ * at + (size_t)i * n,
               dpi_session_logits(x->session, x->first_seq + i), n * sizeof *r->logits);
    memcpy(r->fixed + at, s->fixed, n * sizeof *r->fixed);
    memcpy(r->support + at, s->support, s->n_support * sizeof *r->support);
    memcpy(r->sum + at, s->sum, s->n_support * sizeof *r->sum);
    memcpy(r->weights + at, s->weights, s->n_support * sizeof *r->weights);
    r->n_support[x->t] = s->n_support;
}

static void compare_logits(const text *x) {
    const trace *r = x->trace;
    const size_t n = r->n_vocab, at = (size_t)x->t * n;
    for (int32_t i = 0; i < N_SEQ; i++) {
        if (i > 0 && !x->present[i - 1])
            continue;
        const float *l = dpi_session_logits(x->session, x->first_seq + i);
        const bool same =
            l && memcmp(l, r->logits + N_SEQ * at + (size_t)i * n, n * sizeof *l) == 0;
        dpi_audit_hold(x->audit, same,
                       i == 0 ? "a record changes the public logits"
                              : "a record changes the logits of another one");
    }
}

static void compare_distributions(const text *x) {
    const trace *r = x->trace;
    const dpi_sampler *s = x->sampler;
    const size_t n = r->n_vocab, at = (size_t)x->t * n, n_support = s->n_support;
    if (!dpi_audit_hold(x->audit,
                        memcmp(r->fixed + at, s->fixed, n * sizeof *s->fixed) == 0 &&
                            n_support == r->n_support[x->t] &&
                            memcmp(r->support + at, s->support, n_support * sizeof *s->support) ==
                                0,
                        "the supports of neighbours differ"))
        return;
    const dpi_distribution d = {.n_support = (int64_t)n_support, .weights = r->weights + at};
    const dpi_distribution e = {.n_support = (int64_t)n_support, .weights = s->weights};
    bool bounded = true;
    for (size_t i = 0; i < n_support; i++)
        bounded &= llabs(r->sum[at + i] - s->sum[i]) <= s->plan.K;
    dpi_audit_hold(x->audit, bounded, "|c| exceeds K");
    *x->max_ratio = fmax(*x->max_ratio, dpi_audit_loss_ratio(x->audit, &d, &e, s->plan.eta));
}

/* dpi_random_fn: looks at the step, then gives the bits of a candidate that a neighbour with the
 * same support takes too. */
static int32_t give(void *user, void *buffer, size_t n_bytes) {
    text *x = user;
    uint64_t bits[DPI_DRAW_WORDS];
    if (n_bytes != sizeof bits || x->t >= N_TOKENS)
        return -1;
    if (x->warming) {
        memset(buffer, 0, n_bytes);
        return 0;
    }
    if (x->first) {
        record(x);
    } else {
        compare_logits(x);
        compare_distributions(x);
    }
    const size_t n = x->sampler->n_support;
    dpi_audit_bits(x->sampler->weights, n, (size_t)(7 * x->t + 3) % n, bits);
    memcpy(buffer, bits, sizeof bits);
    x->t++;
    return 0;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static dpi_status open_sampler(text *x) {
    dpi_sampler_options po;
    dpi_sampler_options_init(&po);
    po.n_vocab = (int32_t)x->trace->n_vocab;
    po.n_ref = N_REF;
    po.n_tokens = N_TOKENS;
    po.top_k = po.n_vocab < 100 ? po.n_vocab : 100;
    po.rho = .5;
    po.random = give;
    po.random_user = x;
    return dpi_sampler_create(&po, &x->sampler, x->audit->err);
}

typedef struct prompts {
    int32_t tokens[N_SEQ][N_PROMPT_MAX];
    const int32_t *references[N_REF];
} prompts;

/* The same tokens for the same sequence and salt. */
static void make_prompts(const text *x, uint64_t salt, prompts *p) {
    dpi_audit random = {.seed = x->audit->options.seed + salt};
    for (int32_t i = 0; i < N_SEQ; i++) {
        for (size_t k = 0; k < lengths[i]; k++)
            p->tokens[i][k] = dpi_audit_below(&random, (int32_t)x->trace->n_vocab);
        if (i > 1)
            memcpy(p->tokens[i], p->tokens[1], N_PREFIX * sizeof *p->tokens[i]);
    }
    memcpy(p->tokens[0], p->tokens[1], N_SHARED * sizeof *p->tokens[0]);
    for (int32_t j = 0; j < N_REF; j++)
        p->references[j] = x->present[j] ? p->tokens[j + 1] : NULL;
}

static dpi_status begin_text(text *x, const prompts *p) {
    dpi_generation_options o;
    dpi_generation_options_init(&o);
    o.session = x->session;
    o.sampler = x->sampler;
    o.public_tokens = p->tokens[0];
    o.n_public = lengths[0];
    o.reference_tokens = p->references;
    o.n_reference_tokens = lengths + 1;
    o.n_ref = N_REF;
    o.first_seq = x->first_seq;
    o.n_prefix = N_PREFIX;
    return dpi_generation_create(&o, &x->generation, x->audit->err);
}

/* A text of the prompts of a salt. An end-of-text token may end it early. */
static dpi_status write_text(text *x, uint64_t salt) {
    prompts p;
    make_prompts(x, salt, &p);
    const dpi_generate_input input = {.struct_size = sizeof input,
                                      .public_tokens = p.tokens[0],
                                      .n_public = lengths[0],
                                      .reference_tokens = p.references,
                                      .n_reference_tokens = lengths + 1,
                                      .n_ref = N_REF,
                                      .n_prefix = N_PREFIX,
                                      .n_tokens = N_TOKENS};
    return dpi_generate(x->session, x->sampler, &input, NULL, NULL, x->audit->err);
}

/* The text that is looked at, and another one that shares its passes and is served first. */
static dpi_status write_beside(text *x, text *other) {
    prompts own, others;
    make_prompts(x, 0, &own);
    make_prompts(other, 2, &others);
    DPI_TRY(begin_text(x, &own));
    DPI_TRY(begin_text(other, &others));
    dpi_generation *const both[] = {other->generation, x->generation};
    dpi_generation_event events[2];
    for (int32_t n_ended = 0; n_ended < 2;) {
        DPI_TRY(dpi_generation_advance(both, 2, events, x->audit->err));
        n_ended += (events[0].type == DPI_EVENT_END) + (events[1].type == DPI_EVENT_END);
    }
    return DPI_STATUS_OK;
}

static void close_text(text *x) {
    dpi_generation_free(x->generation);
    dpi_sampler_free(x->sampler);
}

static dpi_status open_session(const dpi_audit *a, int32_t n_threads, dpi_session **session) {
    dpi_session_options so = a->options.session;
    so.n_seq = 2 * N_SEQ;
    so.n_ctx = 2 * (N_PROMPT_MAX + N_TOKENS);
    so.n_threads = n_threads;
    return dpi_session_create(a->options.model, &so, session, a->err);
}

/* How a text comes about: alone; after another batch's text, of which nothing may be left in the
 * session; beside another batch's text. */
typedef enum way { ALONE, AFTER, BESIDE } way;

static dpi_status write_as(text *x, text *other, way how) {
    DPI_TRY(open_sampler(x));
    if (how == AFTER) {
        x->warming = true;
        DPI_TRY(write_text(x, 1));
        x->warming = false;
    }
    if (how != BESIDE)
        return write_text(x, 0);
    x->first_seq = N_SEQ;
    DPI_TRY(open_sampler(other));
    return write_beside(x, other);
}

/* A text without record `missing` (-1: with all of them). */
static dpi_status run(dpi_audit *a, trace *r, way how, int32_t missing, int32_t n_threads,
                      double *max_ratio) {
    text x = {.audit = a, .trace = r, .first = how == ALONE, .max_ratio = max_ratio};
    text other = {.audit = a, .trace = r, .warming = true};
    dpi_session *session = NULL;
    for (int32_t j = 0; j < N_REF; j++) {
        x.present[j] = j != missing;
        other.present[j] = true;
    }
    dpi_status status = open_session(a, n_threads, &session);
    x.session = other.session = session;
    if (status == DPI_STATUS_OK)
        status = write_as(&x, &other, how);
    a->result.n_cases += x.t;
    close_text(&x);
    close_text(&other);
    dpi_session_free(session);
    return status;
}

static dpi_status run_all(dpi_audit *a, trace *r, double *max_ratio) {
    const int32_t n_threads = a->options.session.n_threads;
    DPI_TRY(run(a, r, ALONE, -1, n_threads, max_ratio));
    DPI_TRY(run(a, r, BESIDE, -1, 1, max_ratio));
    dpi_audit_hold(a, *max_ratio == 0,
                   "a text beside it, or the number of threads, changes the distribution");
    for (int32_t j = 0; j < N_REF; j++)
        DPI_TRY(run(a, r, j == 0 ? AFTER : BESIDE, j, j == 0 ? 1 : n_threads, max_ratio));
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_model(dpi_audit *a) {
    dpi_model_info info;
    dpi_model_info_init(&info);
    double max_ratio = 0;
    if (!a->options.model)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_model_info_get(a->options.model, &info, a->err));
    DPI_TRY(dpi_audit_begin(a, "loss", "the model's logits in texts"));
    const size_t n = (size_t)info.n_vocab;
    trace r = {.n_vocab = n,
               .logits = dpi_calloc(N_TOKENS * N_SEQ * n, sizeof *r.logits),
               .fixed = dpi_calloc(N_TOKENS * n, sizeof *r.fixed),
               .support = dpi_calloc(N_TOKENS * n, sizeof *r.support),
               .sum = dpi_calloc(N_TOKENS * n, sizeof *r.sum),
               .weights = dpi_calloc(N_TOKENS * n, sizeof *r.weights)};
    dpi_status status = DPI_STATUS_OK;
    if (!r.logits || !r.fixed || !r.support || !r.sum || !r.weights)
        status = dpi_no_memory(a->err, "the logits of %zu tokens", n);
    if (status == DPI_STATUS_OK)
        status = run_all(a, &r, &max_ratio);
    free(r.logits);
    free(r.fixed);
    free(r.support);
    free(r.sum);
    free(r.weights);
    DPI_TRY(status);
    dpi_audit_end(a, "largest loss / eta", max_ratio, 0, 1 + 1e-9);
    return DPI_STATUS_OK;
}
