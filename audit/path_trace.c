/* path_trace.c - one release, seen from where its random bits come from: when a token
 * is drawn, all logits and the sampler's sums are there. The audit then chooses the token, so that
 * neighbours go on with the same text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "dp/methods/method.h"
#include "audit/path.h"

/* ---- Hashes ---------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t x) {
    hash = (hash ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t n_bytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < n_bytes; i++)
        hash = mix(hash, p[i]);
    return mix(hash, n_bytes);
}

/* Of the logits at ids [n_ids], NULL: at 0..n_ids-1. Never 0. */
static uint64_t hash_row(const float *logits, const int32_t *ids, size_t n_ids) {
    uint64_t hash = 1;
    for (size_t i = 0; i < n_ids; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[ids ? (size_t)ids[i] : i], sizeof bits);
        hash = mix(hash, bits);
    }
    return hash | 1;
}

/* ---- Traces ---------------------------------------------------------------------------------- */

dpi_status dpi_path_trace_create(const path_world *w, path_trace *trace) {
    enum { STEPS = DPI_PATH_TEXTS * DPI_PATH_TOKENS };
    const size_t n = (size_t)w->n_vocab;
    *trace = (path_trace){0};
    dpi_u128 *weights = dpi_calloc(STEPS * n, sizeof(dpi_u128) + sizeof(int64_t) + sizeof(int32_t));
    if (!weights)
        return dpi_no_memory(w->audit->err, "%d steps of %zu tokens", STEPS, n);
    int64_t *sum = (int64_t *)(weights + STEPS * n);
    int32_t *support = (int32_t *)(sum + STEPS * n);
    trace->memory = weights;
    for (size_t i = 0; i < STEPS; i++) {
        path_text *x = &trace->text[i / DPI_PATH_TOKENS];
        x->weights[i % DPI_PATH_TOKENS] = weights + i * n;
        x->sum[i % DPI_PATH_TOKENS] = sum + i * n;
        x->support[i % DPI_PATH_TOKENS] = support + i * n;
    }
    return DPI_STATUS_OK;
}

void dpi_path_trace_free(path_trace *trace) {
    free(trace->memory);
    trace->memory = NULL;
}

/* Empties it for another release. */
static void clear(path_trace *trace) {
    trace->n_texts = 0;
    trace->events = trace->claim = 0;
    for (int32_t b = 0; b < DPI_PATH_TEXTS; b++) {
        path_text *x = &trace->text[b];
        x->n_seen = x->n_drawn = x->end = x->n_slots = 0;
        memset(x->row, 0, sizeof x->row);
    }
}

/* ---- What a draw sees ------------------------------------------------------------------------ */

typedef struct player {
    path_world *world;
    const path_setup *setup;
    path_trace *trace;
    const dpi_release *release; /* of one text at a time: it has one place */
    int32_t n_assigned; /* draws of keys and assignments so far */
} player;

/* c of a slot at token y, in units of 2^-20: `l` NULL is an empty slot. */
static int64_t contribution(const player *p, const float *l, double public_logit, int32_t y,
                            int64_t K) {
    if (!l && p->setup->adjacency != DPI_ADJACENCY_ZERO_OUT)
        return 0;
    const double d = ((l ? (double)l[y] : 0) - public_logit) * 1048576;
    return d >= (double)K ? K : d <= -(double)K ? -K : llrint(d);
}

/* The same of a unit, of which `rows` are the slots: the mean over those that are not empty. */
static int64_t unit_contribution(const player *p, const float *const *rows, double public_logit,
                                 int32_t y, int64_t K) {
    const int32_t M = p->setup->per_unit > 0 ? p->setup->per_unit : 1;
    int64_t sum = 0;
    int32_t n = 0;
    for (int32_t k = 0; k < M; k++) {
        sum += rows[k] ? contribution(p, rows[k], public_logit, y, K) : 0;
        n += rows[k] != NULL;
    }
    return n > 0 ? llrint((double)sum / n) : contribution(p, NULL, public_logit, y, K);
}

/* S is the sum over the units, and over nothing else. Logits are floats: a difference of two is off
 * by less than a unit. */
static void check_sums(const player *p, const float *const *rows, int32_t n_slots) {
    const dpi_sampler *s = p->release->texts.places[0].sampler;
    const float *public_row = dpi_session_logits(p->release->texts.session, 0);
    const int32_t M = p->setup->per_unit > 0 ? p->setup->per_unit : 1;
    bool same = true;
    for (size_t i = 0; i < s->n_support && same; i++) {
        const int32_t y = s->support[i];
        int64_t sum = 0;
        for (int32_t k = 0; k < n_slots; k += M)
            sum += unit_contribution(p, rows + k, (double)public_row[y], y, s->plan.K);
        same = llabs(sum - s->sum[i]) <= n_slots;
    }
    dpi_audit_hold(p->world->audit, same, "a sum is not that of the slots");
}

/* A free step has none of the slots in it. */
static void check_free(const player *p) {
    const dpi_sampler *s = p->release->texts.places[0].sampler;
    bool nothing = true;
    for (size_t i = 0; i < s->n_support; i++)
        nothing &= s->sum[i] == 0;
    dpi_audit_hold(p->world->audit, nothing, "a reference is in a free step");
}

static void record_step(player *p, path_text *x, int32_t t) {
    const dpi_sampler *s = p->release->texts.places[0].sampler;
    const dpi_session *session = p->release->texts.session;
    const size_t n = s->n_support;
    const float *rows[DPI_PATH_SLOTS] = {0};
    x->n_slots = (int32_t)p->release->source.n_slots;
    if (!dpi_audit_hold(p->world->audit, x->n_slots <= DPI_PATH_SLOTS, "there are too many slots"))
        x->n_slots = DPI_PATH_SLOTS;
    for (int32_t k = 0; k < x->n_slots && !s->is_free; k++)
        if (dpi_session_length(session, k + 1) > 0)
            rows[k] = dpi_session_logits(session, k + 1);
    x->is_free[t] = s->is_free;
    if (s->is_free)
        check_free(p);
    else
        check_sums(p, rows, x->n_slots);
    x->public_row[t] = hash_row(dpi_session_logits(session, 0), NULL, (size_t)p->world->n_vocab);
    for (int32_t k = 0; k < x->n_slots; k++)
        x->row[t][k] = rows[k] ? hash_row(rows[k], s->support, n) : 0;
    x->n_support[t] = n;
    memcpy(x->support[t], s->support, n * sizeof *s->support);
    memcpy(x->sum[t], s->sum, n * sizeof *s->sum);
    memcpy(x->weights[t], s->weights, n * sizeof *s->weights);
}

/* Picks a candidate from public numbers alone: one that ends a text, or one that does not. */
static size_t choose(const player *p, int32_t t, int32_t index) {
    const dpi_sampler *s = p->release->texts.places[0].sampler;
    const bool stop = t + 1 == p->setup->stop_after;
    size_t i = (size_t)(7 * t + 3 * index + 1) % s->n_support;
    for (size_t k = 0; k < s->n_support && t == 0 && !stop; k++)
        if (s->support[k] == p->world->last_word)
            return k;
    for (size_t k = 0; k < s->n_support; k++, i = (i + 1) % s->n_support)
        if ((dpi_token_is_eog(p->world->model, s->support[i]) != 0) == stop)
            return i;
    return 0;
}

static int32_t give_token(player *p, void *buffer) {
    const dpi_sampler *s = p->release->texts.places[0].sampler;
    const int32_t index = p->release->texts.drawn.texts[0]->index;
    uint64_t bits[DPI_DRAW_WORDS];
    path_text *x = index < DPI_PATH_TEXTS ? &p->trace->text[index] : NULL;
    const int32_t t = x ? x->n_seen : 0;
    const size_t chosen = choose(p, t, index);
    if (x && t < DPI_PATH_TOKENS) {
        record_step(p, x, t);
        x->token[t] = s->support[chosen];
        x->n_seen++;
    }
    dpi_audit_bits(s->weights, s->n_support, chosen, bits);
    memcpy(buffer, bits, sizeof bits);
    return 0;
}

/* Bits of keys and assignments: 16 draws of the key, then one for each record in its order. The
 * draws of a record that is not there are left out, so that those of the others are the same. */
static int32_t give_assignment(player *p, void *buffer, size_t n_bytes) {
    enum { KEY = 16 };
    const path_world *w = p->world;
    const dpi_audit_options *o = &w->audit->options;
    if (p->setup->bits == 0)
        return dpi_random_fill(o->random, o->random_user, buffer, n_bytes, NULL) == DPI_STATUS_OK
                   ? 0
                   : -1;
    int32_t at = p->n_assigned - KEY;
    for (int32_t i = 0; i < w->n_records && i <= at && dpi_path_draws(p->setup); i++)
        at += w->state[i] == PATH_GONE;
    uint64_t state = mix(p->setup->bits, (uint64_t)(at + KEY));
    p->n_assigned++;
    return dpi_random_insecure(&state, buffer, n_bytes);
}

/* dpi_random_fn. */
static int32_t give(void *user, void *buffer, size_t n_bytes) {
    player *p = user;
    return n_bytes == DPI_DRAW_WORDS * sizeof(uint64_t) ? give_token(p, buffer)
                                                        : give_assignment(p, buffer, n_bytes);
}

/* ---- A release ------------------------------------------------------------------------------- */

static dpi_bytes bytes_of(const char *string) { return (dpi_bytes){string, strlen(string)}; }

/* Private labels are named; prompts name that of their text. */
static void set_labels(const path_world *w, const path_setup *s, dpi_release_options *o) {
    static const char *const names[] = {"a", "b"};
    if (w->labels == DPI_LABELS_NONE)
        return;
    o->prompts.private_prompt = bytes_of(DPI_PATH_BEFORE "{reference}\n\n" DPI_PATH_TASK_LABEL);
    o->prompts.public_prompt = bytes_of(DPI_PATH_TASK_LABEL);
    o->n_labels = 2;
    o->label_names = names;
    o->histogram_rho = s->histogram;
}

void dpi_path_options(const path_world *w, const path_setup *s, const dpi_records *records,
                      dpi_release_options *o) {
    dpi_release_options_init(o);
    o->model = w->model;
    o->records = records;
    o->batch = s->batch;
    o->n_texts = s->n_texts;
    o->n_clusters = s->n_clusters;
    o->n_released = s->n_released;
    o->n_tokens = s->n_tokens;
    o->top_k = s->top_k < w->n_vocab ? s->top_k : w->n_vocab;
    o->method.pace = s->pace;
    o->method.tau = s->tau > 0 ? s->tau : 1;
    o->method.adjacency = s->adjacency;
    o->method.subsample = s->subsample;
    o->known_batches = !s->secret;
    o->method.max_per_unit = s->per_unit;
    o->method.epsilon = 3;
    o->method.delta = 1e-6;
    o->n_parallel = 1;
    o->session = w->audit->options.session;
    o->session.n_ctx = DPI_PATH_CTX;
    o->prompts.private_prompt = bytes_of(DPI_PATH_BEFORE "{reference}\n\n" DPI_PATH_TASK);
    o->prompts.public_prompt = bytes_of(DPI_PATH_TASK);
    o->prompts.max_reference_tokens = DPI_PATH_RECORD_TOKENS;
    set_labels(w, s, o);
}

/* What a caller is told. Where records are assigned, the size of a batch is private: then the
 * number of prompts that are read is no part of it. */
static void note_event(player *p, const dpi_release_event *e) {
    path_trace *trace = p->trace;
    const bool assigned = dpi_run_is_assigned(dpi_release_run(p->release));
    const int32_t told[] = {e->type,  e->index,   e->n_read, e->n_prompts,
                            e->token, e->n_drawn, e->end};
    if (e->type != DPI_EVENT_PROMPT || !assigned) {
        trace->events = hash_bytes(trace->events, told, sizeof told);
        trace->events = hash_bytes(trace->events, e->text, e->n_bytes);
    }
    dpi_audit_hold(p->world->audit, !assigned || e->n_prompts == 0,
                   "the number of records of a batch is told");
    if (e->type != DPI_EVENT_END)
        return;
    if (e->index < DPI_PATH_TEXTS) {
        const char *label;
        size_t n_bytes;
        dpi_release_label(p->release, e->index, &label, &n_bytes);
        trace->text[e->index].label = label && p->world->labels ? label[0] - 'a' : 0;
        trace->text[e->index].n_drawn = e->n_drawn;
        trace->text[e->index].end = e->end;
    }
    trace->n_texts++;
}

/* With a histogram: the epsilon of the texts and of noise of variance histogram / 256, together. */
static bool states_histogram(const dpi_run *c) {
    const double rho = c->plan.rho_total + (c->histogram > 0 ? 128. / c->histogram : 0);
    double epsilon;
    return c->histogram == 0 ||
           (dpi_zcdp_epsilon(rho, c->method.delta, &epsilon, NULL) == DPI_STATUS_OK &&
            dpi_run_epsilon(c) >= epsilon * (1 - 1e-12));
}

static dpi_status note_claim(player *p) {
    const dpi_run *claim = dpi_release_run(p->release);
    char *statement;
    dpi_audit_hold(p->world->audit, states_histogram(claim),
                   "the epsilon that is stated leaves the histogram out");
    DPI_TRY(dpi_run_statement(claim, 1, &statement, p->world->audit->err));
    p->trace->claim = hash_bytes(0, statement, strlen(statement));
    p->trace->plan = claim->plan;
    free(statement);
    return DPI_STATUS_OK;
}

/* A text is drawn with what the claim says, and not with what a caller has asked for. Free are the
 * number of slots, which may be secret, the bits and the instruction set. */
static void check_numbers(const player *p) {
    const dpi_sampler *s = p->release->texts.places[0].sampler;
    const dpi_sampler_plan *plan = &s->plan, *told = &p->trace->plan;
    const dpi_sampler_options *o = &s->options, *c = &dpi_release_run(p->release)->method;
    dpi_audit_hold(p->world->audit,
                   plan->K == told->K && plan->a == told->a && plan->eta == told->eta &&
                       plan->n_private == told->n_private,
                   "a text is drawn with other numbers than the claim has");
    dpi_audit_hold(p->world->audit,
                   o->method == c->method && o->n_vocab == c->n_vocab &&
                       o->n_tokens == c->n_tokens && o->top_k == c->top_k && o->tau == c->tau &&
                       o->adjacency == c->adjacency && o->accountant == c->accountant &&
                       o->denominator == c->denominator && o->center == c->center &&
                       o->subsample == c->subsample && o->allocation == c->allocation &&
                       o->max_per_unit == c->max_per_unit &&
                       o->pace == c->pace && o->pace_theta == c->pace_theta &&
                       o->pace_tokens == c->pace_tokens && o->pace_share == c->pace_share &&
                       o->free_top_k == c->free_top_k && o->free_tau == c->free_tau,
                   "a text is drawn with other options than the claim has");
}

/* What a caller may ask for at any time: neighbours have it in common. Where the size of a batch is
 * secret, neighbours read different numbers of prompts: what is asked meanwhile is not compared. */
static dpi_status note_progress(player *p, bool reading) {
    const bool assigned = dpi_run_is_assigned(dpi_release_run(p->release));
    dpi_release_progress now;
    dpi_release_progress_init(&now);
    DPI_TRY(dpi_release_progress_get(p->release, &now, p->world->audit->err));
    const int64_t told[] = {now.n_texts, now.n_begun, now.n_ended, now.n_prompts,
                            now.n_read,  now.n_drawn, now.n_tokens_left};
    if (!reading || !assigned)
        p->trace->events = hash_bytes(p->trace->events, told, sizeof told);
    dpi_audit_hold(p->world->audit, !assigned || (now.n_prompts == 0 && now.n_read == 0),
                   "progress tells the number of records of a batch");
    return DPI_STATUS_OK;
}

/* The number of null records: secret where batches are, and where units have several. */
static void check_nulls(const player *p) {
    const bool open =
        !dpi_run_is_assigned(dpi_release_run(p->release)) && p->world->n_units == 0;
    dpi_audit_hold(p->world->audit, open || dpi_release_null_records(p->release) == -1,
                   "the number of null records is told");
}

static dpi_status advance(player *p, dpi_release *release) {
    dpi_release_event e = {0};
    DPI_TRY(note_claim(p));
    do {
        DPI_TRY(dpi_release_advance(release, &e, p->world->audit->err));
        note_event(p, &e);
        check_numbers(p);
        DPI_TRY(note_progress(p, e.type == DPI_EVENT_PROMPT));
    } while (e.type != DPI_EVENT_NONE);
    check_nulls(p);
    return DPI_STATUS_OK;
}

/* A text ends where a token says so, or after n_tokens, whatever a record wants. */
static void check_ends(const player *p) {
    const path_setup *s = p->setup;
    for (int32_t b = 0; b < p->trace->n_texts && b < DPI_PATH_TEXTS; b++) {
        const path_text *x = &p->trace->text[b];
        const bool stops = s->stop_after > 0 && s->stop_after <= x->n_seen &&
                           dpi_token_is_eog(p->world->model, x->token[s->stop_after - 1]);
        const int32_t wanted = stops ? s->stop_after : s->n_tokens;
        dpi_audit_hold(p->world->audit,
                       x->n_drawn == wanted && x->n_seen == wanted &&
                           x->end == (stops ? DPI_END_EOG : DPI_END_LENGTH),
                       "a text ends for another reason than its tokens");
    }
}

/* One process: a whole release, or a shard of it, with the records opened anew. */
static dpi_status observe_shard(player *p, int32_t shard, const uint8_t *key) {
    dpi_release_options o;
    dpi_records *records = NULL;
    dpi_release *release = NULL;
    DPI_TRY(dpi_path_records_open(p->world, &records));
    dpi_path_options(p->world, p->setup, records, &o);
    o.method.random = give;
    o.method.random_user = p;
    o.shard = shard;
    o.n_shards = p->setup->n_shards;
    o.key = o.n_shards > 0 ? key : NULL;
    dpi_status status = dpi_release_open(&o, &release, p->world->audit->err);
    p->release = release;
    if (status == DPI_STATUS_OK)
        status = advance(p, release);
    dpi_release_free(release);
    dpi_path_records_close(p->world, records);
    return status;
}

/* The key of a job: of the setup, or new for each release. */
static dpi_status make_key(const path_world *w, const path_setup *s, uint8_t *key) {
    const dpi_audit_options *o = &w->audit->options;
    if (s->bits == 0)
        return dpi_random_fill(o->random, o->random_user, key, DPI_RELEASE_KEY_BYTES,
                               w->audit->err);
    memset(key, (int)s->bits, DPI_RELEASE_KEY_BYTES);
    return DPI_STATUS_OK;
}

dpi_status dpi_path_observe(path_world *w, const path_setup *setup, path_trace *trace) {
    player p = {.world = w, .setup = setup, .trace = trace};
    uint8_t key[DPI_RELEASE_KEY_BYTES];
    clear(trace);
    dpi_status status = make_key(w, setup, key);
    for (int32_t i = 0; i < (setup->n_shards > 0 ? setup->n_shards : 1); i++)
        if (status == DPI_STATUS_OK)
            status = observe_shard(&p, i, key);
    if (status == DPI_STATUS_OK)
        check_ends(&p);
    w->audit->result.n_cases++;
    return status;
}

/* ---- Layouts --------------------------------------------------------------------------------- */

/* The hash that a prompt and what was drawn after it must have at token t of a text. */
static dpi_status expected_row(path_world *w, const path_prompt *prompt, const path_text *x,
                               int32_t t, bool whole, uint64_t *hash) {
    dpi_session_reset(w->session, 0);
    DPI_TRY(dpi_session_prefill(w->session, 0, prompt->tokens, prompt->n, NULL, w->audit->err));
    for (int32_t k = 0; k < t; k++)
        DPI_TRY(dpi_session_step(w->session, 1, &(int32_t){0}, &x->token[k], w->audit->err));
    *hash = hash_row(dpi_session_logits(w->session, 0), whole ? NULL : x->support[t],
                     whole ? (size_t)w->n_vocab : x->n_support[t]);
    return DPI_STATUS_OK;
}

/* Which record each slot of a text has: by the logits of its first token, on the support that all
 * texts have there. */
static void find_records(const path_world *w, const path_text *x, const uint64_t *first,
                         int32_t *record) {
    for (int32_t k = 0; k < x->n_slots; k++) {
        record[k] = x->row[0][k] ? PATH_UNKNOWN : PATH_NO_RECORD;
        for (int32_t i = 0; i < w->n_records; i++)
            if (x->row[0][k] && x->row[0][k] == first[i] && w->state[i] == PATH_PRESENT)
                record[k] = i;
        dpi_audit_hold(w->audit, record[k] != PATH_UNKNOWN, "a slot has the logits of no record");
    }
}

static dpi_status check_later(path_world *w, const path_text *x, const int32_t *record) {
    for (int32_t t = 0; t < x->n_seen; t++) {
        uint64_t hash;
        DPI_TRY(expected_row(w, &w->public_prompt[x->label], x, t, true, &hash));
        dpi_audit_hold(w->audit, hash == x->public_row[t],
                       "the public logits are not those of the public prompt");
        for (int32_t k = 0; k < x->n_slots && t > 0; k++) {
            if (record[k] < 0)
                continue;
            DPI_TRY(expected_row(w, &w->prompt[record[k]], x, t, false, &hash));
            dpi_audit_hold(w->audit, hash == x->row[t][k],
                           "a slot goes on with the logits of no record");
        }
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_path_layout(path_world *w, const path_trace *trace, path_layout *layout) {
    uint64_t first[DPI_PATH_RECORDS] = {0};
    *layout = (path_layout){0};
    const int32_t n_texts = trace->n_texts < DPI_PATH_TEXTS ? trace->n_texts : DPI_PATH_TEXTS;
    for (int32_t b = 0; b < n_texts; b++) {
        const path_text *x = &trace->text[b];
        int32_t *record = layout->record[b];
        for (int32_t i = 0; i < w->n_records && (b == 0 || w->labels); i++)
            DPI_TRY(expected_row(w, &w->prompt[i], x, 0, false, &first[i]));
        dpi_audit_hold(w->audit,
                       w->labels ||
                           (x->n_support[0] == trace->text[0].n_support[0] &&
                            memcmp(x->support[0], trace->text[0].support[0],
                                   x->n_support[0] * sizeof(int32_t)) == 0),
                       "two texts begin with different supports");
        find_records(w, x, first, record);
        for (int32_t k = 0; k < x->n_slots; k++) {
            if (record[k] < 0)
                continue;
            layout->text[record[k]] = b;
            layout->slot[record[k]] = k;
            layout->n_places[record[k]]++;
        }
        DPI_TRY(check_later(w, x, record));
    }
    for (int32_t i = 0; i < w->n_records; i++)
        dpi_audit_hold(w->audit, layout->n_places[i] <= 1, "a record is in more than one place");
    return DPI_STATUS_OK;
}
