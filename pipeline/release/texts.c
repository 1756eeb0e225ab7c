/* texts.c - several texts of a release at a time, over one session.
 *
 * Each text has a place: sequences of its own, a sampler of its own, and random bits of its own. So
 * a text is the same whatever is drawn beside it (purity), and --parallel decides time and memory
 * alone. A text begins when no other one reads prompts: the first words come as early as with one
 * text at a time.
 *
 * A failure belongs to one text. Those before it go on to their end, those after it end where they
 * are, and all that was drawn is told. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dp/methods/sampler.h"
#include "dpinfer/memory.h"
#include "pipeline/release/release.h"

static bool is_plain(const dpi_release *r) { return r->claim.method.method == DPI_METHOD_PLAIN; }

/* ---- Random bits ----------------------------------------------------------------------------- */

void dpi_release_random(const dpi_release *r, uint64_t *bits, dpi_random_fn *random, void **user) {
    *random = r->options.seeded ? dpi_random_insecure : r->options.method.random;
    *user = r->options.seeded ? bits : r->options.method.random_user;
}

/* Where the stream of a token begins: a function of the seed, the text and the token's place in it,
 * so that a text has the same bits in whatever order texts are drawn. The finaliser of
 * SplitMix64. */
static uint64_t stream_of(uint64_t seed, int64_t text, int64_t token) {
    const uint64_t words[] = {seed, (uint64_t)text, (uint64_t)token};
    uint64_t z = 0;
    for (int i = 0; i < 3; i++) {
        z += words[i] + 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
    }
    return z;
}

/* ---- Places ---------------------------------------------------------------------------------- */

static dpi_status make_sampler(dpi_release *r, dpi_place *place, dpi_error *err) {
    dpi_sampler_options o = r->claim.method;
    o.n_ref = is_plain(r) ? 0 : dpi_release_n_ref(r);
    dpi_release_random(r, &place->bits, &o.random, &o.random_user);
    /* The plan is there: to calibrate takes long with some accountants. */
    const dpi_sampler_plan *plan = r->sampler ? dpi_sampler_plan_get(r->sampler) : &r->claim.plan;
    return dpi_sampler_create_planned(&o, plan, &place->sampler, err);
}

static dpi_status make_place(dpi_release *r, dpi_place *place, dpi_error *err) {
    place->tokens = calloc(r->n_slots + 1, sizeof *place->tokens);
    place->n_tokens = calloc(r->n_slots + 1, sizeof *place->n_tokens);
    if (!place->tokens || !place->n_tokens)
        return dpi_no_memory(err, "the prompts of a batch");
    return make_sampler(r, place, err);
}

static int32_t is_cancelled(void *user) { return dpi_release_is_cancelled(user); }

/* The slots of a text are those of the largest batch, and how many that are may be secret. How many
 * texts are drawn at a time shows in the order of events: it is what was settled from public
 * numbers, unless the largest batch is some 250 times what it should be. Then it is fewer, and none
 * fails. */
dpi_status dpi_release_make_places(dpi_release *r, dpi_error *err) {
    const int32_t n_seq = is_plain(r) ? 1 : (int32_t)r->n_slots + 1;
    int32_t n = r->options.n_parallel;
    n = n <= DPI_SEQUENCES_MAX / n_seq ? n : DPI_SEQUENCES_MAX / n_seq;
    n = n > 1 ? n : 1;
    dpi_session_options session = r->options.session;
    session.n_seq = n * n_seq;
    session.cancel = is_cancelled;
    session.cancel_user = r;
    DPI_TRY(dpi_session_create(r->options.model, &session, &r->session, err));
    r->places = calloc((size_t)n, sizeof *r->places);
    r->pass.texts = calloc((size_t)n, sizeof *r->pass.texts);
    r->pass.generations = calloc((size_t)n, sizeof *r->pass.generations);
    r->pass.events = calloc((size_t)n, sizeof *r->pass.events);
    if (!r->places || !r->pass.texts || !r->pass.generations || !r->pass.events)
        return dpi_no_memory(err, "the texts");
    for (; r->n_places < n; r->n_places++) {
        r->places[r->n_places].first_seq = r->n_places * n_seq;
        DPI_TRY(make_place(r, &r->places[r->n_places], err));
    }
    dpi_sampler_free(r->sampler);
    r->sampler = NULL;
    return DPI_STATUS_OK;
}

static dpi_place *find_free_place(dpi_release *r) {
    for (int32_t i = 0; i < r->n_places; i++)
        if (!r->places[i].generation)
            return &r->places[i];
    return NULL;
}

/* The generation of the text is over, or given up. */
static void leave_place(const dpi_release *r, dpi_release_text *text) {
    dpi_place *place = text->place;
    if (!place)
        return;
    dpi_generation_free(place->generation);
    place->generation = NULL;
    text->place = NULL;
    if (!is_plain(r))
        dpi_release_drop_batch(r, place);
}

/* ---- Texts that wait ------------------------------------------------------------------------- */

/* For the events that a pass may give: a token, and an END whatever comes after it. */
static bool reserve_events(dpi_release_text *t) {
    return dpi_private_grow(&t->events, &t->capacity, t->n_events + 2, sizeof *t->events);
}

/* False: out of memory for its text. There is room for the event. */
static bool add_event(dpi_release_text *t, const dpi_generation_event *e, int64_t sequence) {
    const bool ok =
        !t->is_cut && dpi_private_grow(&t->bytes, &t->bytes_capacity, t->n_bytes + e->n_bytes, 1);
    if (!ok && e->type != DPI_EVENT_END) {
        t->is_cut = true;
        return false;
    }
    t->n_drawn += e->type == DPI_EVENT_TOKEN;
    t->events[t->n_events++] = (dpi_waiting_event){.type = e->type, .token = e->token,
                                                   .n_drawn = t->n_drawn,
                                                   .end = ok ? e->end : DPI_END_CANCELLED,
                                                   .n_bytes = ok ? e->n_bytes : 0,
                                                   .sequence = sequence};
    if (ok && e->n_bytes > 0)
        memcpy(t->bytes + t->n_bytes, e->text, e->n_bytes);
    t->n_bytes += ok ? e->n_bytes : 0;
    return true;
}

/* The disk has it, or never will: then it is passed over. */
static bool may_be_told(const dpi_release *r, const dpi_waiting_event *e) {
    return e->sequence <= r->n_durable || r->lost;
}

/* The text whose event is told next; NULL: none waits, or none that the disk has. */
static dpi_release_text *find_event(const dpi_release *r) {
    dpi_release_text *t = r->texts;
    while (t && (t->n_told == t->n_events || !may_be_told(r, &t->events[t->n_told])))
        t = r->options.as_drawn ? t->next : NULL;
    return t;
}

static bool is_drawing(const dpi_release *r) {
    for (const dpi_release_text *t = r->texts; t; t = t->next)
        if (t->place)
            return true;
    return r->failure.code == DPI_STATUS_OK && r->next < r->claim.n_texts;
}

bool dpi_release_waits(const dpi_release *r) {
    return r->options.journal && r->texts && !r->lost && !is_drawing(r);
}

bool dpi_release_has_event(const dpi_release *r) { return find_event(r) != NULL; }

/* Passes over the tokens that the disk did not get. */
static void pass_over(const dpi_release *r, dpi_release_text *t) {
    while (t->events[t->n_told].type == DPI_EVENT_TOKEN &&
           (t->n_lost > 0 || t->events[t->n_told].sequence > r->n_durable)) {
        t->n_bytes_told += t->events[t->n_told++].n_bytes;
        t->n_lost++;
    }
}

bool dpi_release_tell(dpi_release *r, dpi_release_event *event) {
    if (r->options.journal)
        r->n_durable = dpi_journal_durable(r->options.journal);
    dpi_release_text *t = find_event(r);
    if (!t)
        return false;
    pass_over(r, t);
    dpi_waiting_event *e = &t->events[t->n_told++];
    if (t->n_lost > 0) { /* its END */
        e->end = DPI_END_CANCELLED;
        e->n_drawn -= t->n_lost;
        e->n_bytes = 0;
    }
    *event = (dpi_release_event){.type = e->type, .index = t->index, .token = e->token,
                                 .n_drawn = e->n_drawn, .end = e->end,
                                 .text = e->n_bytes > 0 ? t->bytes + t->n_bytes_told : "",
                                 .n_bytes = e->n_bytes};
    t->n_bytes_told += e->n_bytes;
    return true;
}

static void free_text(const dpi_release *r, dpi_release_text *t) {
    leave_place(r, t);
    dpi_private_free(t->recalled);
    dpi_private_free(t->events);
    dpi_private_free(t->bytes);
    dpi_private_free(t);
}

void dpi_release_drop_told(dpi_release *r) {
    for (dpi_release_text **at = &r->texts, *t; (t = *at) != NULL;)
        if (!t->place && t->n_told == t->n_events) {
            *at = t->next;
            free_text(r, t);
        } else {
            at = &t->next;
        }
}

void dpi_release_free_texts(dpi_release *r) {
    for (dpi_release_text *t = r->texts, *next; t; t = next) {
        next = t->next;
        free_text(r, t);
    }
    r->texts = NULL;
    for (int32_t i = 0; i < r->n_places; i++) {
        dpi_release_drop_batch(r, &r->places[i]);
        dpi_sampler_free(r->places[i].sampler);
        free(r->places[i].tokens);
        free(r->places[i].n_tokens);
    }
    free(r->places);
    free(r->pass.texts);
    free(r->pass.generations);
    free(r->pass.events);
    dpi_mask_free(r->mask);
}

/* ---- Begin and stop -------------------------------------------------------------------------- */

/* The text `index` and those after it end where they are. Of the failures that of the first text is
 * kept. A text of which no token is drawn leaves nothing. */
static void stop(dpi_release *r, int32_t index, dpi_status status, const dpi_error *why) {
    if (r->failure.code != DPI_STATUS_OK && index >= r->stopped_at)
        return;
    r->failure = *why;
    r->failure.code = status;
    r->stopped_at = index;
    for (dpi_release_text **at = &r->texts, *t; (t = *at) != NULL;) {
        if (t->index >= index && t->place && t->n_drawn == 0) {
            *at = t->next;
            free_text(r, t);
            continue;
        }
        if (t->index >= index && t->place)
            dpi_generation_cancel(t->place->generation);
        at = &t->next;
    }
}

/* What an earlier process has drawn of a text: *tokens [*n]. */
static void find_recalled(const dpi_release *r, int32_t index, const int32_t **tokens, int32_t *n) {
    const dpi_release_options *o = &r->options;
    *n = 0;
    if (o->journal)
        dpi_journal_text(o->journal, index, tokens, n);
    else if (o->recalled)
        o->recalled(o->recalled_user, index, tokens, n);
}

/* How a text with these tokens ends; NONE: it goes on. */
static int32_t end_of(const dpi_release *r, const int32_t *tokens, int32_t n) {
    return n > 0 && dpi_token_is_eog(r->options.model, tokens[n - 1]) ? DPI_END_EOG
           : n == r->claim.method.n_tokens                           ? DPI_END_LENGTH
                                                                      : DPI_END_NONE;
}

/* All of it, by an earlier process. */
static bool is_drawn(const dpi_release *r, int32_t index) {
    const int32_t *tokens;
    int32_t n;
    find_recalled(r, index, &tokens, &n);
    return n > 0 && end_of(r, tokens, n) != DPI_END_NONE;
}

static dpi_status tell_again(const dpi_release *r, dpi_release_text *t, dpi_decoder *decoder,
                             dpi_error *err) {
    dpi_generation_event e = {.type = DPI_EVENT_TOKEN};
    bool ok = true;
    for (int32_t i = 0; i < t->n_recalled && ok; i++) {
        e.token = t->recalled[i];
        DPI_TRY(dpi_decoder_push(decoder, e.token, &e.text, &e.n_bytes, err));
        ok = reserve_events(t) && add_event(t, &e, 0);
    }
    e = (dpi_generation_event){.type = DPI_EVENT_END, .token = -1, .text = "",
                               .end = end_of(r, t->recalled, t->n_recalled)};
    if (e.end != DPI_END_NONE)
        dpi_decoder_finish(decoder, &e.text, &e.n_bytes);
    if (e.end != DPI_END_NONE)
        ok = ok && reserve_events(t) && add_event(t, &e, 0);
    return ok ? DPI_STATUS_OK : dpi_no_memory(err, "a text");
}

/* The tokens of an earlier process are told at once: the disk has them. The generation comes to
 * them later, for its caches. */
static dpi_status recall_tokens(const dpi_release *r, dpi_release_text *t, dpi_error *err) {
    const int32_t *tokens;
    dpi_decoder *decoder;
    int32_t n;
    find_recalled(r, t->index, &tokens, &n);
    if (n == 0)
        return DPI_STATUS_OK;
    t->recalled = dpi_private_malloc((size_t)n * sizeof *t->recalled);
    if (!t->recalled)
        return dpi_no_memory(err, "a text");
    memcpy(t->recalled, tokens, (size_t)n * sizeof *t->recalled);
    t->n_recalled = n;
    DPI_TRY(dpi_decoder_create(r->options.model, &decoder, err));
    const dpi_status status = tell_again(r, t, decoder, err);
    dpi_decoder_free(decoder);
    return status;
}

/* A plain text continues the public prompt, or the private prompt of one record. */
static dpi_status create_generation(dpi_release *r, dpi_place *place, const dpi_release_text *t,
                                    dpi_error *err) {
    const dpi_prompts *prompts = dpi_release_prompts(r, dpi_release_label_index(r, t->index));
    dpi_generation_options o;
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(prompts, &info, err));
    dpi_generation_options_init(&o);
    o.session = r->session;
    o.sampler = place->sampler;
    o.first_seq = place->first_seq;
    o.text = DPI_TEXT_PIECES;
    o.recalled_tokens = t->recalled;
    o.n_recalled = t->n_recalled;
    o.mask = r->mask;
    o.public_tokens = dpi_prompts_public(prompts);
    o.n_public = (size_t)info.n_public;
    if (is_plain(r) && r->claim.record_in_prompt) {
        o.public_tokens = place->tokens[0];
        o.n_public = place->n_tokens[0];
    } else if (!is_plain(r)) {
        o.reference_tokens = (const int32_t *const *)place->tokens;
        o.n_reference_tokens = place->n_tokens;
        o.n_ref = dpi_release_n_ref(r);
        o.n_prefix = (size_t)info.n_prefix;
        o.spread = r->options.spread;
        o.number = r->next;
    }
    return dpi_generation_create(&o, &place->generation, err);
}

/* ---- Which text comes next ------------------------------------------------------------------- */

int32_t dpi_release_n_texts(const dpi_release *r) {
    const dpi_release_options *o = &r->options;
    return o->n_shards > 0 ? (r->claim.n_texts - o->shard + o->n_shards - 1) / o->n_shards
                           : r->claim.n_texts;
}

bool dpi_release_is_last(const dpi_release *r) { return r->next >= r->claim.n_texts; }

/* The text r->next has begun. */
static void pass_on(dpi_release *r) {
    const int32_t step = r->options.n_shards > 0 ? r->options.n_shards : 1;
    r->n_begun++;
    r->next_known = false;
    if (!r->options.next_text)
        r->next = step < r->claim.n_texts - r->next ? r->next + step : r->claim.n_texts;
}

/* Finds the text that begins next. False: there is none. */
static bool find_next(dpi_release *r) {
    if (r->options.next_text && !r->next_known) {
        const int32_t next = r->options.next_text(r->options.next_user);
        r->next = next < 0 ? r->claim.n_texts : next;
        r->next_known = true;
    }
    return !dpi_release_is_last(r);
}

/* ---- Begin a text ---------------------------------------------------------------------------- */

static dpi_status make_text(dpi_release *r, dpi_place *place, dpi_release_text *t, dpi_error *err) {
    DPI_TRY(recall_tokens(r, t, err));
    if (!place)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_release_load_batch(r, r->next, place, err));
    return create_generation(r, place, t, err);
}

/* place NULL: all of it is drawn. */
static dpi_status begin_text(dpi_release *r, dpi_place *place, dpi_error *err) {
    dpi_release_text **last = &r->texts;
    while (*last)
        last = &(*last)->next;
    dpi_release_text *t = dpi_private_malloc(sizeof *t);
    if (!t)
        return dpi_no_memory(err, "a text");
    *t = (dpi_release_text){.index = r->next};
    const dpi_status status = make_text(r, place, t, err);
    if (status != DPI_STATUS_OK) {
        free_text(r, t);
        return status;
    }
    t->place = place;
    r->n_ended += !place;
    r->n_drawn += t->n_recalled;
    *last = t;
    pass_on(r);
    return DPI_STATUS_OK;
}

/* One text reads its prompts at a time. */
static bool is_reading(const dpi_release *r) {
    for (const dpi_release_text *t = r->texts; t; t = t->next)
        if (t->place && (t->n_prompts == 0 || t->n_read < t->n_prompts))
            return true;
    return false;
}

static void begin_next(dpi_release *r) {
    dpi_error why;
    if (r->failure.code != DPI_STATUS_OK || !find_next(r))
        return;
    const bool drawn = is_drawn(r, r->next);
    dpi_place *place = drawn || is_reading(r) ? NULL : find_free_place(r);
    const dpi_status status = place || drawn ? begin_text(r, place, &why) : DPI_STATUS_OK;
    if (status == DPI_STATUS_OK)
        return;
    if (!is_plain(r) && place)
        dpi_release_drop_batch(r, place);
    stop(r, status == DPI_STATUS_CANCELLED ? 0 : r->next, status, &why);
}

void dpi_release_wait(dpi_release *r) {
    dpi_error why;
    const dpi_status status = dpi_journal_wait(r->options.journal, 0, &why);
    if (status == DPI_STATUS_OK)
        return;
    r->n_durable = dpi_journal_durable(r->options.journal);
    r->lost = true;
    stop(r, 0, status, &why);
}

/* ---- One pass -------------------------------------------------------------------------------- */

static void reserve_all(dpi_release *r) {
    for (dpi_release_text *t = r->texts; t; t = t->next)
        if (t->place && !reserve_events(t)) {
            stop(r, t->index, DPI_STATUS_MEMORY,
                 &(dpi_error){.message = "out of memory for a text"});
            return;
        }
}

/* All texts that are drawn, in their order. */
static void collect(dpi_release *r) {
    dpi_pass *p = &r->pass;
    p->n = 0;
    for (dpi_release_text *t = r->texts; t; t = t->next) {
        if (!t->place)
            continue;
        if (r->options.seeded)
            t->place->bits = stream_of(r->options.seed, t->index, t->n_drawn);
        p->texts[p->n] = t;
        p->generations[p->n++] = t->place->generation;
    }
}

/* A token that the journal does not take is not told, nor what comes after it. */
static dpi_status write_token(const dpi_release *r, dpi_release_text *t,
                              const dpi_generation_event *e, int64_t *sequence, dpi_error *err) {
    if (!r->options.journal)
        return DPI_STATUS_OK;
    const dpi_status status =
        dpi_journal_put(r->options.journal, t->index, e->n_drawn - 1, e->token,
                        e->end != DPI_END_NONE, sequence, err);
    t->is_cut = status != DPI_STATUS_OK;
    return status;
}

/* What a pass did for one text. Errors: MEMORY; those of dpi_journal_put. */
static dpi_status note(dpi_release *r, dpi_release_text *t, const dpi_generation_event *e,
                       dpi_error *err) {
    r->n_read += e->n_read - t->n_read;
    t->n_read = e->n_read;
    t->n_prompts = e->n_prompts;
    if (e->type != DPI_EVENT_TOKEN && e->type != DPI_EVENT_END)
        return DPI_STATUS_OK;
    if (e->type == DPI_EVENT_TOKEN && e->n_drawn <= t->n_recalled)
        return DPI_STATUS_OK; /* it is told already */
    int64_t sequence = 0;
    if (e->type == DPI_EVENT_TOKEN)
        DPI_TRY(write_token(r, t, e, &sequence, err));
    const bool ok = add_event(t, e, sequence);
    r->n_drawn += ok && e->type == DPI_EVENT_TOKEN;
    if (e->type == DPI_EVENT_END) {
        r->n_ended++;
        leave_place(r, t);
    }
    return ok ? DPI_STATUS_OK : dpi_no_memory(err, "a text");
}

/* The first failure stops its text and those after it; a cancelled pass stops all. */
static const dpi_release_text *note_all(dpi_release *r, dpi_status status, dpi_error *why) {
    const dpi_pass *p = &r->pass;
    const dpi_release_text *reading = NULL;
    int32_t failed = -1;
    for (int32_t i = 0; i < p->n; i++) {
        const dpi_generation_event *e = &p->events[i];
        dpi_status noted = (dpi_status)e->status;
        if (e->type != DPI_EVENT_ERROR)
            noted = note(r, p->texts[i], e, failed < 0 && status == DPI_STATUS_OK ? why : NULL);
        if (noted != DPI_STATUS_OK && failed < 0) {
            failed = p->texts[i]->index;
            status = noted;
        }
        if (e->type == DPI_EVENT_PROMPT)
            reading = p->texts[i];
    }
    if (status != DPI_STATUS_OK)
        stop(r, status == DPI_STATUS_CANCELLED || failed < 0 ? 0 : failed, status, why);
    return status == DPI_STATUS_OK ? reading : NULL;
}

const dpi_release_text *dpi_release_pass(dpi_release *r) {
    dpi_error why = {0};
    dpi_pass *p = &r->pass;
    if (dpi_release_is_cancelled(r))
        stop(r, 0, DPI_STATUS_CANCELLED, &(dpi_error){.message = "cancelled"});
    else
        begin_next(r);
    reserve_all(r);
    collect(r);
    if (p->n == 0)
        return NULL;
    return note_all(r, dpi_generation_advance(p->generations, p->n, p->events, &why), &why);
}
