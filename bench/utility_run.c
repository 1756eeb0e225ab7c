/* utility_run.c - texts of a setting, by libdpinfer's public interface; see utility.h. */
#include "bench/utility.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/prompt_texts.h"

typedef struct scorer {
    dpi_model *model;
    dpi_session *session; /* sequence 0: the public prompt; 1: that and a text */
    int32_t n_vocab;
    float *logits; /* after each token of a text */
    size_t n_logits;
    float *sorted;
} scorer;

struct maker {
    const maker_options *o;
    const corpus_domain *d;
    int32_t domain;
    scorer own, judge; /* judge.model NULL: own */
    dpi_session *session;
    dpi_decoder *decoder;
    reference *refs;
    int32_t n_ref;
    size_t n_prefix; /* tokens that all private prompts begin with */
    int32_t *public_tokens;
    size_t n_public;
    /* the text that is being made */
    sample *now;
    size_t n_text;
};

static int fail(const char *what, const char *why) {
    fprintf(stderr, "dpinfer-utility: %s: %s\n", what, why);
    return -1;
}

static int check(dpi_status status, const dpi_error *err) {
    return status == DPI_STATUS_OK ? 0 : fail("library", err->message);
}

static void *allocate(size_t n_bytes) {
    void *p = calloc(1, n_bytes ? n_bytes : 1);
    if (!p)
        abort();
    return p;
}

/* ---- References ----------------------------------------------------------------------------- */

static char *read_whole(const char *path) {
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    char *text = allocate(CORPUS_TEXT_BYTES);
    size_t n = fread(text, 1, CORPUS_TEXT_BYTES - 1, f);
    fclose(f);
    if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    return text;
}

static int load_values(const corpus_domain *d, const json_t *object, int8_t *values) {
    for (int32_t a = 0; a < d->n_attributes; a++) {
        const char *name = json_string_value(json_object_get(object, d->attributes[a].name));
        values[a] = -1;
        for (int32_t v = 0; name && v < d->attributes[a].n_values; v++)
            if (strcmp(d->attributes[a].values[v].name, name) == 0)
                values[a] = (int8_t)v;
        if (values[a] < 0)
            return fail("no such value of an attribute", name ? name : "(none)");
    }
    return 0;
}

/* One line of the attributes' file: {"file", "domain", "attributes"}. */
static int load_reference(maker *m, const char *line) {
    char path[4096];
    json_error_t why;
    json_t *object = json_loads(line, 0, &why);
    const char *file = json_string_value(json_object_get(object, "file"));
    const char *domain = json_string_value(json_object_get(object, "domain"));
    m->domain = domain ? corpus_domain_find(domain) : -1;
    if (!file || m->domain < 0) {
        json_decref(object);
        return fail(m->o->attributes, "a line has no \"file\" or no known \"domain\"");
    }
    m->d = corpus_domains[m->domain];
    reference *r = &m->refs[m->n_ref++];
    snprintf(path, sizeof path, "%s/%s", m->o->refs, file);
    r->text = read_whole(path);
    int code = r->text ? load_values(m->d, json_object_get(object, "attributes"), r->values)
                       : fail(path, strerror(errno));
    json_decref(object);
    return code;
}

enum { MAX_REFERENCES = 4096 };

static int load_references(maker *m) {
    FILE *f = fopen(m->o->attributes, "r");
    char *line = NULL;
    size_t size = 0;
    int code = f ? 0 : fail(m->o->attributes, strerror(errno));
    m->refs = allocate(MAX_REFERENCES * sizeof *m->refs);
    while (code == 0 && m->n_ref < MAX_REFERENCES && getline(&line, &size, f) > 0)
        code = load_reference(m, line);
    free(line);
    if (f)
        fclose(f);
    if (code == 0 && m->n_ref < m->o->max_ref)
        return fail(m->o->attributes, "fewer references than the largest B");
    return code;
}

/* ---- Prompts -------------------------------------------------------------------------------- */

static int encode(const dpi_model *model, const char *user, int32_t **tokens, size_t *n_tokens) {
    size_t n = strlen(user), capacity = 4 * n + 256;
    dpi_error err;
    *tokens = allocate(capacity * sizeof **tokens);
    return check(dpi_prompt_encode(model, DPI_CHAT_AUTO, NULL, 0, user, n, *tokens, capacity,
                                   n_tokens, &err), &err);
}

static int encode_prompts(maker *m) {
    const char *task = m->d->tasks[0];
    if (encode(m->own.model, task, &m->public_tokens, &m->n_public) != 0)
        return -1;
    for (int32_t i = 0; i < m->n_ref; i++) {
        char user[3 * CORPUS_TEXT_BYTES];
        reference *r = &m->refs[i];
        snprintf(user, sizeof user, DPI_CHAT_BEFORE "%s" DPI_CHAT_AFTER "%s", r->text, task);
        if (encode(m->own.model, user, &r->tokens, &r->n_tokens) != 0)
            return -1;
        size_t n = 0;
        while (n < r->n_tokens && n < m->refs[0].n_tokens &&
               r->tokens[n] == m->refs[0].tokens[n])
            n++;
        m->n_prefix = i == 0 || n < m->n_prefix ? n : m->n_prefix;
    }
    return 0;
}

/* ---- Opening -------------------------------------------------------------------------------- */

static int open_session(const maker *m, const dpi_model *model, int32_t n_seq,
                        dpi_session **session) {
    dpi_session_options options;
    dpi_error err;
    dpi_session_options_init(&options);
    options.n_seq = n_seq;
    options.n_threads = m->o->n_threads;
    return check(dpi_session_create(model, &options, session, &err), &err);
}

static int open_scorer(const maker *m, const char *path, scorer *s) {
    dpi_error err;
    dpi_model_info info;
    dpi_model_info_init(&info);
    if (check(dpi_model_open(path, NULL, &s->model, &err), &err) != 0 ||
        check(dpi_model_info_get(s->model, &info, &err), &err) != 0 ||
        open_session(m, s->model, 2, &s->session) != 0)
        return -1;
    int32_t *tokens = NULL;
    size_t n_tokens = 0;
    s->n_vocab = info.n_vocab;
    s->sorted = allocate((size_t)info.n_vocab * sizeof *s->sorted);
    int code = encode(s->model, m->d->tasks[0], &tokens, &n_tokens);
    if (code == 0)
        code = check(dpi_session_prefill(s->session, 0, tokens, n_tokens, NULL, &err), &err);
    free(tokens);
    return code;
}

maker *maker_open(const maker_options *o) {
    maker *m = allocate(sizeof *m);
    dpi_error err;
    m->o = o;
    if (load_references(m) == 0 && open_scorer(m, o->model, &m->own) == 0 &&
        (!o->judge || open_scorer(m, o->judge, &m->judge) == 0) && encode_prompts(m) == 0 &&
        open_session(m, m->own.model, o->max_ref + 1, &m->session) == 0 &&
        check(dpi_decoder_create(m->own.model, &m->decoder, &err), &err) == 0)
        return m;
    maker_close(m);
    return NULL;
}

static void close_scorer(scorer *s) {
    dpi_session_free(s->session);
    dpi_model_close(s->model);
    free(s->logits);
    free(s->sorted);
}

void maker_close(maker *m) {
    for (int32_t i = 0; i < m->n_ref; i++) {
        free(m->refs[i].text);
        free(m->refs[i].tokens);
    }
    free(m->refs);
    free(m->public_tokens);
    dpi_decoder_free(m->decoder);
    dpi_session_free(m->session);
    close_scorer(&m->judge);
    close_scorer(&m->own);
    free(m);
}

const corpus_domain *maker_domain(const maker *m) { return m->d; }

const reference *maker_references(const maker *m, int32_t *n_ref) {
    *n_ref = m->n_ref;
    return m->refs;
}

/* ---- Scoring -------------------------------------------------------------------------------- */

static int compare_down(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* A token against the logits before it: its nats, whether it is outside of Top-k, and how many
 * tokens V_k+ = {y: B p(y) >= B p_(k) - 2 C} has (docs/spec.md section 1, in floats). */
static void score_token(const scorer *s, const float *logits, int32_t token, int32_t top_k,
                        double slack, sample *x) {
    double max = -INFINITY, sum = 0;
    for (int32_t i = 0; i < s->n_vocab; i++)
        max = logits[i] > max ? logits[i] : max;
    for (int32_t i = 0; i < s->n_vocab; i++)
        sum += exp(logits[i] - max);
    x->nll += max + log(sum) - logits[token];
    x->n_scored++;
    if (top_k == 0)
        return;
    memcpy(s->sorted, logits, (size_t)s->n_vocab * sizeof *logits);
    qsort(s->sorted, (size_t)s->n_vocab, sizeof *s->sorted, compare_down);
    float kth = s->sorted[top_k - 1];
    x->n_outside += logits[token] < kth;
    for (int32_t i = 0; i < s->n_vocab && s->sorted[i] >= kth - slack; i++)
        x->n_support++;
}

/* top_k 0: the perplexity alone. */
static int score(scorer *s, const int32_t *tokens, int32_t n, int32_t top_k, double slack,
                 sample *x) {
    dpi_error err;
    size_t room = (size_t)n * (size_t)s->n_vocab;
    if (room > s->n_logits) {
        free(s->logits);
        s->logits = allocate(room * sizeof *s->logits);
        s->n_logits = room;
    }
    x->nll = 0;
    x->n_scored = 0;
    if (n == 0)
        return 0;
    if (check(dpi_session_fork(s->session, 0, 1, dpi_session_length(s->session, 0), &err), &err) ||
        check(dpi_session_prefill(s->session, 1, tokens, (size_t)n, s->logits, &err), &err))
        return -1;
    for (int32_t i = 0; i < n; i++)
        score_token(s, i == 0 ? dpi_session_logits(s->session, 0)
                              : s->logits + (size_t)(i - 1) * (size_t)s->n_vocab,
                    tokens[i], top_k, slack, x);
    return 0;
}

/* Support and expansion always with the model's own logits; nats with the judge's if there is one,
 * of the text in its own tokens. */
static int score_sample(maker *m, double slack, sample *x) {
    int32_t top_k = m->o->top_k < m->own.n_vocab ? m->o->top_k : m->own.n_vocab;
    if (score(&m->own, x->tokens, x->n_tokens, top_k, slack, x) != 0)
        return -1;
    if (!m->judge.model)
        return 0;
    size_t n_bytes = strlen(x->text), n = 0;
    int32_t *tokens = allocate((4 * n_bytes + 5) * sizeof *tokens);
    dpi_error err;
    int code = check(dpi_tokenize(m->judge.model, x->text, n_bytes, 0, tokens, 4 * n_bytes + 5, &n,
                                  &err), &err);
    if (code == 0)
        code = score(&m->judge, tokens, (int32_t)n, 0, 0, x);
    free(tokens);
    return code;
}

/* ---- Texts ---------------------------------------------------------------------------------- */

enum { TEXT_BYTES = 1 << 15 };

static void add_text(maker *m, const char *text, size_t n_bytes) {
    if (m->n_text + n_bytes >= TEXT_BYTES)
        n_bytes = TEXT_BYTES - 1 - m->n_text;
    memcpy(m->now->text + m->n_text, text, n_bytes);
    m->n_text += n_bytes;
}

static int32_t on_token(void *user, int32_t token) {
    maker *m = user;
    const char *text;
    size_t n_bytes;
    dpi_error err;
    m->now->tokens[m->now->n_tokens++] = token;
    if (dpi_decoder_push(m->decoder, token, &text, &n_bytes, &err) != DPI_STATUS_OK)
        return 1;
    add_text(m, text, n_bytes);
    return 0;
}

static int draw(maker *m, dpi_sampler *sampler, const dpi_generate_input *input) {
    dpi_generate_hooks hooks = {.struct_size = sizeof hooks, .on_token = on_token, .user = m};
    dpi_generate_result drawn = {.struct_size = sizeof drawn};
    dpi_error err;
    m->n_text = 0;
    int code = check(dpi_generate(m->session, sampler, input, &hooks, &drawn, &err), &err);
    const char *text;
    size_t n_bytes;
    dpi_decoder_finish(m->decoder, &text, &n_bytes);
    add_text(m, text, n_bytes);
    m->now->text[m->n_text] = '\0';
    m->now->ended = drawn.ended;
    return code;
}

static int make_plain(maker *m, dpi_sampler *sampler, uint64_t *rng, bool with_reference) {
    dpi_generate_input input = {.struct_size = sizeof input, .public_tokens = m->public_tokens,
                                .n_public = m->n_public, .n_tokens = m->o->n_tokens};
    if (with_reference) {
        m->now->reference = (int32_t)corpus_below(rng, (uint32_t)m->n_ref);
        input.public_tokens = m->refs[m->now->reference].tokens;
        input.n_public = m->refs[m->now->reference].n_tokens;
    }
    return draw(m, sampler, &input);
}

/* `order` is a shuffled list of the references, of which *n_used have been used. */
static int make_private(maker *m, dpi_sampler *sampler, uint64_t *rng, int32_t n_ref,
                        int32_t *order, int32_t *n_used) {
    const int32_t *tokens[MAX_REFERENCES];
    size_t n_tokens[MAX_REFERENCES];
    if (*n_used + n_ref > m->n_ref) {
        for (int32_t i = m->n_ref - 1; i > 0; i--) {
            int32_t k = (int32_t)corpus_below(rng, (uint32_t)i + 1), moved = order[i];
            order[i] = order[k];
            order[k] = moved;
        }
        *n_used = 0;
    }
    for (int32_t i = 0; i < n_ref; i++) {
        const reference *r = &m->refs[order[(*n_used)++]];
        tokens[i] = r->tokens;
        n_tokens[i] = r->n_tokens;
    }
    dpi_generate_input input = {.struct_size = sizeof input, .public_tokens = m->public_tokens,
                                .n_public = m->n_public, .reference_tokens = tokens,
                                .n_reference_tokens = n_tokens, .n_ref = n_ref,
                                .n_tokens = m->o->n_tokens, .n_prefix = m->n_prefix};
    return draw(m, sampler, &input);
}

/* Held-out attributes, but names that the model knows: unknown ones would make up most of the
 * perplexity. */
static int make_document(maker *m, bool is_private, uint64_t *rng) {
    int8_t values[CORPUS_ATTRIBUTES];
    corpus_law law = corpus_law_of(m->d, is_private ? CORPUS_PRIVATE : CORPUS_PUBLIC);
    corpus_draw(m->d, &law, true, rng, values);
    const char *unknown = corpus_write(m->d, values, false, rng, m->now->text);
    if (unknown)
        return fail("the grammar does not define", unknown);
    size_t n_bytes = strlen(m->now->text), n = 0;
    dpi_error err;
    m->now->ended = 1;
    m->now->tokens = realloc(m->now->tokens, (4 * n_bytes + 5) * sizeof *m->now->tokens);
    if (!m->now->tokens)
        abort();
    int code = check(dpi_tokenize(m->own.model, m->now->text, n_bytes, 0, m->now->tokens,
                                  4 * n_bytes + 5, &n, &err), &err);
    m->now->n_tokens = (int32_t)n;
    return code;
}

/* ---- A setting ------------------------------------------------------------------------------ */

static int open_sampler(const maker *m, const setting *s, uint64_t *state, dpi_sampler **sampler) {
    dpi_sampler_options o;
    dpi_error err;
    dpi_sampler_options_init(&o);
    o.method = DPI_METHOD_PLAIN;
    o.n_vocab = m->own.n_vocab;
    o.n_tokens = m->o->n_tokens;
    o.top_k = m->o->top_k < m->own.n_vocab ? m->o->top_k : m->own.n_vocab;
    o.tau = m->o->tau;
    o.random = dpi_random_insecure; /* the same texts for a seed: the records are made up */
    o.random_user = state;
    if (s->kind == TEXT_PRIVATE) {
        o.method = s->v->method;
        o.accountant = s->v->accountant;
        o.center = s->v->center;
        o.svt_threshold = m->o->threshold;
        o.svt_sigma = m->o->sigma;
        o.n_private = m->o->n_private;
        o.n_ref = o.denominator = s->n_ref;
        o.epsilon = s->epsilon;
        o.delta = m->o->delta;
    }
    return check(dpi_sampler_create(&o, sampler, &err), &err);
}

static int make_one(maker *m, const setting *s, dpi_sampler *sampler, uint64_t *rng,
                    int32_t *order, int32_t *n_used) {
    switch (s->kind) {
    case DOCUMENTS_PRIVATE: return make_document(m, true, rng);
    case DOCUMENTS_PUBLIC: return make_document(m, false, rng);
    case TEXT_PUBLIC: return make_plain(m, sampler, rng, false);
    case TEXT_REFERENCE: return make_plain(m, sampler, rng, true);
    default: return make_private(m, sampler, rng, s->n_ref, order, n_used);
    }
}

static void judge_text(const maker *m, sample *x) {
    corpus_read(x->text, strlen(x->text), &x->reading);
    for (int32_t i = 0; i < m->n_ref && !x->near_copy; i++)
        x->near_copy = is_near_copy(x->text, m->refs[i].text);
}

int maker_make(maker *m, const setting *s, sample *samples, int32_t n) {
    uint64_t rng = m->o->seed + 1000003u * (uint64_t)s->kind, drawn = ~m->o->seed;
    int32_t order[MAX_REFERENCES], n_used = MAX_REFERENCES;
    dpi_sampler *sampler = NULL;
    int code = open_sampler(m, s, &drawn, &sampler);
    const dpi_sampler_plan *plan = sampler ? dpi_sampler_plan_get(sampler) : NULL;
    double slack = s->kind == TEXT_PRIVATE && plan ? 2 * plan->clip / s->n_ref : 0;
    for (int32_t i = 0; i < m->n_ref; i++)
        order[i] = i;
    for (int32_t i = 0; i < n; i++)
        samples[i] = (sample){.reference = -1};
    for (int32_t i = 0; i < n && code == 0; i++) {
        m->now = &samples[i];
        m->now->text = allocate(TEXT_BYTES);
        m->now->tokens = allocate((size_t)m->o->n_tokens * sizeof *m->now->tokens);
        code = make_one(m, s, sampler, &rng, order, &n_used);
        if (code == 0)
            code = score_sample(m, slack, m->now);
        judge_text(m, m->now);
    }
    dpi_sampler_free(sampler);
    return code;
}

void samples_free(sample *samples, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        free(samples[i].text);
        free(samples[i].tokens);
    }
}
