/* utility_run.c - texts of a setting, as releases of libdpinfer_full; see utility.h. */
#include "eval/utility.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/release.h"

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
    reference *refs;
    int32_t n_ref;
    kept_prompts *kept; /* NULL: no setting needed it yet */
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
    size_t n = strlen(user), capacity = 4 * n + DPI_PROMPT_FRAME;
    dpi_error err;
    *tokens = allocate(capacity * sizeof **tokens);
    return check(dpi_prompt_encode(model, DPI_CHAT_AUTO, NULL, 0, user, n, *tokens, capacity,
                                   n_tokens, &err), &err);
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
    m->o = o;
    if (load_references(m) == 0 && open_scorer(m, o->model, &m->own) == 0 &&
        (!o->judge || open_scorer(m, o->judge, &m->judge) == 0))
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
    for (int32_t i = 0; i < m->n_ref; i++)
        free(m->refs[i].text);
    free(m->refs);
    kept_prompts_close(m->kept);
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

/* k of a setting, 1..n_vocab. */
static int32_t top_k_of(const maker *m, const setting *s) {
    const bool own = s->kind == TEXT_PRIVATE && s->v->has_top_k;
    const int32_t k = own ? s->v->options.top_k : m->o->top_k;
    return k > 0 && k < m->own.n_vocab ? k : m->own.n_vocab;
}

/* Support and expansion always with the model's own logits; nats with the judge's if there is one,
 * of the text in its own tokens. */
static int score_sample(maker *m, const setting *s, double slack, sample *x) {
    if (score(&m->own, x->tokens, x->n_tokens, top_k_of(m, s), slack, x) != 0)
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

/* The n texts of a release. */
static int draw(dpi_release *release, sample *samples) {
    dpi_release_event e;
    dpi_error err;
    size_t n_text = 0;
    for (;;) {
        if (check(dpi_release_advance(release, &e, &err), &err) != 0)
            return -1;
        if (e.type == DPI_EVENT_NONE)
            return 0;
        sample *x = &samples[e.index];
        if (e.type == DPI_EVENT_PROMPT)
            n_text = 0;
        else
            sample_add_text(x, &n_text, e.text, e.n_bytes);
        if (e.type == DPI_EVENT_TOKEN)
            x->tokens[x->n_tokens++] = e.token;
        if (e.type == DPI_EVENT_END)
            x->ended = e.end == DPI_END_EOG;
    }
}

/* The release of a setting over references [n_order] in that order; `state` is that of its random
 * bits, so that texts are the same for a seed: the records are made up. */
static dpi_release_options options_of(const maker *m, const setting *s, uint64_t *state) {
    dpi_release_options o;
    dpi_release_options_init(&o);
    const char *task = m->d->tasks[0];
    o.model = m->own.model;
    o.n_tokens = m->o->n_tokens;
    o.top_k = top_k_of(m, s);
    o.session.n_threads = m->o->n_threads;
    o.prompts.public_prompt = (dpi_bytes){task, strlen(task)};
    o.method.method = DPI_METHOD_PLAIN;
    o.method.tau = m->o->tau;
    o.method.random = dpi_random_insecure;
    o.method.random_user = state;
    if (s->kind == TEXT_PRIVATE) {
        const dpi_sampler_options shared = o.method;
        o.method = s->v->options;
        o.method.tau = s->v->has_tau ? o.method.tau : shared.tau;
        o.method.random = shared.random;
        o.method.random_user = shared.random_user;
        o.method.epsilon = s->epsilon;
        o.method.delta = m->o->delta;
        o.batch = s->n_ref;
        o.n_records = m->n_ref;
    }
    return o;
}

static int release_texts(const maker *m, dpi_release_options *o, const int32_t *order,
                         size_t n_order, sample *samples) {
    const char **texts = allocate(n_order * sizeof *texts);
    size_t *n_bytes = allocate(n_order * sizeof *n_bytes);
    dpi_records *records = NULL;
    dpi_release *release = NULL;
    dpi_error err;
    for (size_t i = 0; i < n_order; i++) {
        texts[i] = m->refs[order[i]].text;
        n_bytes[i] = strlen(texts[i]);
    }
    int code = check(dpi_records_create(texts, n_bytes, n_order, &records, &err), &err);
    o->records = records;
    if (code == 0)
        code = check(dpi_release_open(o, &release, &err), &err);
    if (code == 0)
        code = draw(release, samples);
    dpi_release_free(release);
    dpi_records_close(records);
    free(texts);
    free(n_bytes);
    return code;
}

/* Each after a reference of its own. */
static int make_after_references(const maker *m, const setting *s, uint64_t *rng, uint64_t *state,
                                 sample *samples, int32_t n) {
    int code = 0;
    for (int32_t i = 0; i < n && code == 0; i++) {
        dpi_release_options o = options_of(m, s, state);
        samples[i].reference = (int32_t)corpus_below(rng, (uint32_t)m->n_ref);
        o.reference = 0;
        code = release_texts(m, &o, &samples[i].reference, 1, &samples[i]);
    }
    return code;
}

static void shuffle(int32_t *order, int32_t n, uint64_t *rng) {
    for (int32_t i = n - 1; i > 0; i--) {
        int32_t k = (int32_t)corpus_below(rng, (uint32_t)i + 1), moved = order[i];
        order[i] = order[k];
        order[k] = moved;
    }
}

/* What a release of all references settles a setting to; its random bits are the state's. */
static int settle(const maker *m, const setting *s, uint64_t *state, dpi_sampler_options *method,
                  dpi_sampler_plan *plan) {
    dpi_release_options o = options_of(m, s, state);
    dpi_release *release;
    dpi_error err;
    if (check(dpi_release_open(&o, &release, &err), &err) != 0)
        return -1;
    *method = dpi_release_run(release)->method;
    *plan = dpi_release_run(release)->plan;
    method->random = o.method.random;
    method->random_user = o.method.random_user;
    dpi_release_free(release);
    return 0;
}

/* The whole list of references in batches, shuffled anew when it is used up, until there are n
 * texts. */
static int make_private(maker *m, const setting *s, uint64_t *rng, uint64_t *state, sample *samples,
                        int32_t n, double *slack) {
    int32_t order[MAX_REFERENCES], n_texts, code;
    dpi_sampler_options method;
    dpi_sampler_plan plan;
    if (!m->kept)
        m->kept = kept_prompts_open(m->own.model, m->d->tasks[0], m->refs, m->n_ref, m->o);
    code = m->kept ? settle(m, s, state, &method, &plan) : -1;
    *slack = code == 0 ? 2 * plan.clip / s->n_ref : 0;
    for (int32_t i = 0; i < m->n_ref; i++)
        order[i] = i;
    for (int32_t done = 0; done < n && code == 0; done += n_texts) {
        n_texts = m->n_ref / s->n_ref < n - done ? m->n_ref / s->n_ref : n - done;
        shuffle(order, m->n_ref, rng);
        code = kept_prompts_draw(m->kept, &method, order, samples + done, n_texts);
    }
    return code;
}

static int make_public(const maker *m, const setting *s, uint64_t *state, sample *samples,
                       int32_t n) {
    dpi_release_options o = options_of(m, s, state);
    o.n_texts = n;
    return release_texts(m, &o, NULL, 0, samples);
}

/* Held-out attributes, but names that the model knows: unknown ones would make up most of the
 * perplexity. */
static int make_document(const maker *m, bool is_private, uint64_t *rng, sample *x) {
    int8_t values[CORPUS_ATTRIBUTES];
    corpus_law law = corpus_law_of(m->d, is_private ? CORPUS_PRIVATE : CORPUS_PUBLIC);
    corpus_draw(m->d, &law, true, rng, values);
    const char *unknown = corpus_write(m->d, values, false, rng, x->text);
    if (unknown)
        return fail("the grammar does not define", unknown);
    size_t n_bytes = strlen(x->text), n = 0;
    dpi_error err;
    x->ended = 1;
    x->tokens = realloc(x->tokens, (4 * n_bytes + 5) * sizeof *x->tokens);
    if (!x->tokens)
        abort();
    int code = check(dpi_tokenize(m->own.model, x->text, n_bytes, 0, x->tokens,
                                  4 * n_bytes + 5, &n, &err), &err);
    x->n_tokens = (int32_t)n;
    return code;
}

/* ---- A setting ------------------------------------------------------------------------------ */

/* *slack: what C moves a utility by at most, which widens the support; 0 without a budget. */
static int make_texts(maker *m, const setting *s, sample *samples, int32_t n, double *slack) {
    uint64_t rng = m->o->seed + 1000003u * (uint64_t)s->kind, state = ~m->o->seed;
    int code = 0;
    switch (s->kind) {
    case TEXT_PUBLIC:
        return make_public(m, s, &state, samples, n);
    case TEXT_REFERENCE:
        return make_after_references(m, s, &rng, &state, samples, n);
    case TEXT_PRIVATE:
        return make_private(m, s, &rng, &state, samples, n, slack);
    default:
        for (int32_t i = 0; i < n && code == 0; i++)
            code = make_document(m, s->kind == DOCUMENTS_PRIVATE, &rng, &samples[i]);
        return code;
    }
}

static void judge_text(const maker *m, sample *x) {
    corpus_read(x->text, strlen(x->text), &x->reading);
    for (int32_t i = 0; i < m->n_ref && !x->near_copy; i++)
        x->near_copy = is_near_copy(x->text, m->refs[i].text);
}

int maker_make(maker *m, const setting *s, sample *samples, int32_t n) {
    double slack = 0;
    for (int32_t i = 0; i < n; i++)
        samples[i] = (sample){.reference = -1,
                              .text = allocate(TEXT_BYTES),
                              .tokens = allocate((size_t)m->o->n_tokens * sizeof(int32_t))};
    int code = make_texts(m, s, samples, n, &slack);
    for (int32_t i = 0; i < n && code == 0; i++) {
        code = score_sample(m, s, slack, &samples[i]);
        judge_text(m, &samples[i]);
    }
    return code;
}

void samples_free(sample *samples, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        free(samples[i].text);
        free(samples[i].tokens);
    }
}
