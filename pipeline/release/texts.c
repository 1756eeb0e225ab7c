/* texts.c - several texts of a release at a time, over one session. See texts.h.
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
#include "pipeline/released_text.h"
#include "pipeline/release/texts.h"

/* ---- Random bits ----------------------------------------------------------------------------- */

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

static dpi_status make_sampler(dpi_texts *x, dpi_place *place, dpi_error *err) {
    dpi_sampler_options o = x->plan->claim.method;
    o.n_ref = dpi_plan_is_plain(x->plan) ? 0 : dpi_source_n_ref(x->source);
    dpi_plan_random(x->plan, &place->bits, &o.random, &o.random_user);
    return dpi_sampler_create_planned(&o, &x->plan->sampler, &place->sampler, err);
}

static dpi_status make_place(dpi_texts *x, dpi_place *place, dpi_error *err) {
    place->prompts.tokens = calloc(x->source->n_slots + 1, sizeof *place->prompts.tokens);
    place->prompts.n_tokens = calloc(x->source->n_slots + 1, sizeof *place->prompts.n_tokens);
    if (!place->prompts.tokens || !place->prompts.n_tokens)
        return dpi_no_memory(err, "the prompts of a batch");
    return make_sampler(x, place, err);
}

static int32_t sequences_of_text(const dpi_texts *x) {
    return dpi_plan_is_plain(x->plan) ? 1 : (int32_t)x->source->n_slots + 1;
}

/* The slots of a text are those of the largest batch, and how many that are may be secret. How many
 * texts are drawn at a time shows in the order of events: it is what was settled from public
 * numbers, unless the largest batch is some 250 times what it should be. Then it is fewer, and none
 * fails. */
dpi_status dpi_texts_open(dpi_texts *x, dpi_error *err) {
    const int32_t n_seq = sequences_of_text(x);
    int32_t n = x->plan->options.n_parallel;
    n = n <= DPI_SEQUENCES_MAX / n_seq ? n : DPI_SEQUENCES_MAX / n_seq;
    n = n > 1 ? n : 1;
    dpi_session_options session = x->plan->options.session;
    DPI_TRY(dpi_rounds_open(&x->rounds, x->plan, err));
    session.n_seq = n * n_seq;
    DPI_TRY(dpi_session_create(x->plan->options.model, &session, &x->session, err));
    x->places = calloc((size_t)n, sizeof *x->places);
    x->drawn.texts = calloc((size_t)n, sizeof *x->drawn.texts);
    x->drawn.generations = calloc((size_t)n, sizeof *x->drawn.generations);
    x->drawn.events = calloc((size_t)n, sizeof *x->drawn.events);
    if (!x->places || !x->drawn.texts || !x->drawn.generations || !x->drawn.events)
        return dpi_no_memory(err, "the texts");
    while (x->n_places < n) {
        dpi_place *place = &x->places[x->n_places];
        place->first_seq = x->n_places++ * n_seq;
        DPI_TRY(make_place(x, place, err));
    }
    return DPI_STATUS_OK;
}

void dpi_texts_init(dpi_texts *x, const dpi_plan *plan, dpi_source *source, dpi_books *books) {
    const int32_t n_texts = plan->claim.n_texts, first = plan->options.shard;
    *x = (dpi_texts){.plan = plan, .source = source, .books = books,
                     .next = first < n_texts ? first : n_texts, .looked_at = -1};
}

static dpi_place *find_free_place(dpi_texts *x) {
    for (int32_t i = 0; i < x->n_places; i++)
        if (!x->places[i].generation)
            return &x->places[i];
    return NULL;
}

/* The prompt of a plain run's record stays, unless the next text has another one. */
static void empty_place(const dpi_texts *x, dpi_place *place) {
    dpi_generation_free(place->generation);
    place->generation = NULL;
    dpi_prompts_free(place->own);
    place->own = NULL;
    if (!dpi_plan_is_plain(x->plan) || x->plan->options.n_released > 0)
        dpi_source_drop(x->source, &place->prompts);
}

/* The generation of the text is over, or given up. */
static void leave_place(const dpi_texts *x, dpi_release_text *text) {
    if (text->place)
        empty_place(x, text->place);
    text->place = NULL;
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
static bool may_be_told(const dpi_texts *x, const dpi_waiting_event *e) {
    return e->sequence <= x->books->n_durable || x->books->lost;
}

/* The text whose event is told next; NULL: none waits, or none that the disk has. */
static dpi_release_text *find_event(const dpi_texts *x) {
    dpi_release_text *t = x->first;
    while (t && (t->n_told == t->n_events || !may_be_told(x, &t->events[t->n_told])))
        t = x->plan->options.as_drawn ? t->next : NULL;
    return t;
}

static bool is_drawing(const dpi_texts *x) {
    for (const dpi_release_text *t = x->first; t; t = t->next)
        if (t->place)
            return true;
    return x->failure.code == DPI_STATUS_OK && x->next < x->plan->claim.n_texts;
}

bool dpi_texts_waits(const dpi_texts *x) {
    return x->plan->options.journal && x->first && !x->books->lost && !is_drawing(x);
}

bool dpi_texts_has_event(const dpi_texts *x) { return find_event(x) != NULL; }

/* Passes over the tokens that the disk did not get. */
static void pass_over(const dpi_texts *x, dpi_release_text *t) {
    while (t->events[t->n_told].type == DPI_EVENT_TOKEN &&
           (t->n_lost > 0 || t->events[t->n_told].sequence > x->books->n_durable)) {
        t->n_bytes_told += t->events[t->n_told++].n_bytes;
        t->n_lost++;
    }
}

bool dpi_texts_tell(dpi_texts *x, dpi_release_event *event) {
    dpi_books_look(x->books);
    dpi_release_text *t = find_event(x);
    if (!t)
        return false;
    pass_over(x, t);
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

static void free_text(const dpi_texts *x, dpi_release_text *t) {
    leave_place(x, t);
    dpi_private_free(t->recalled);
    dpi_private_free(t->events);
    dpi_private_free(t->bytes);
    dpi_private_free(t);
}

void dpi_texts_drop_told(dpi_texts *x) {
    for (dpi_release_text **at = &x->first, *t; (t = *at) != NULL;)
        if (!t->place && t->n_told == t->n_events) {
            *at = t->next;
            free_text(x, t);
        } else {
            at = &t->next;
        }
}

void dpi_texts_free(dpi_texts *x) {
    for (dpi_release_text *t = x->first, *next; t; t = next) {
        next = t->next;
        free_text(x, t);
    }
    x->first = NULL;
    for (int32_t i = 0; i < x->n_places; i++) {
        dpi_source_drop(x->source, &x->places[i].prompts);
        dpi_sampler_free(x->places[i].sampler);
        free(x->places[i].prompts.tokens);
        free(x->places[i].prompts.n_tokens);
    }
    free(x->places);
    free(x->drawn.texts);
    free(x->drawn.generations);
    free(x->drawn.events);
    dpi_rounds_free(&x->rounds);
    dpi_session_free(x->session);
}

/* ---- Begin and stop -------------------------------------------------------------------------- */

/* The text `index` and those after it end where they are. Of the failures that of the first text is
 * kept. A text of which no token is drawn leaves nothing. */
static void stop(dpi_texts *x, int32_t index, dpi_status status, const dpi_error *why) {
    if (x->failure.code != DPI_STATUS_OK && index >= x->stopped_at)
        return;
    x->failure = *why;
    x->failure.code = status;
    x->stopped_at = index;
    for (dpi_release_text **at = &x->first, *t; (t = *at) != NULL;) {
        if (t->index >= index && t->place && t->n_drawn == 0) {
            *at = t->next;
            free_text(x, t);
            continue;
        }
        if (t->index >= index && t->place)
            dpi_generation_cancel(t->place->generation);
        at = &t->next;
    }
}

/* How a text with these tokens, of which the last one has come, ends; NONE: it goes on. */
static int32_t end_of(const dpi_texts *x, const dpi_released *released, const int32_t *tokens,
                      int32_t n) {
    const int32_t end =
        n > 0 ? dpi_released_end_of(released, x->plan->options.model, tokens[n - 1]) : DPI_END_NONE;
    return end == DPI_END_NONE && n == x->plan->claim.method.n_tokens ? DPI_END_LENGTH : end;
}

static const dpi_prompts *prompts_of(const dpi_texts *x, const dpi_place *place, int32_t index) {
    return place && place->own ? place->own
                               : dpi_plan_prompts(x->plan, dpi_source_label(x->source, index));
}

/* The text `index`, before its first token: the answer is the same in all of its prompts. */
static dpi_status open_released(const dpi_texts *x, int32_t index, int32_t text, dpi_released *r,
                                dpi_error *err) {
    const dpi_prompts *prompts = prompts_of(x, NULL, index);
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(prompts, &info, err));
    return dpi_released_open_ruled(x->plan->rules, text,
                                   dpi_prompts_public(prompts) + info.n_public - info.n_answer,
                                   (size_t)info.n_answer, 0, r, err);
}

static dpi_status push_all(dpi_released *r, const int32_t *tokens, int32_t n, dpi_error *err) {
    for (int32_t i = 0; i < n; i++)
        DPI_TRY(dpi_released_push(r, tokens[i], NULL, NULL, err));
    return DPI_STATUS_OK;
}

/* *drawn: an earlier process has drawn all of it. */
static dpi_status find_drawn(const dpi_texts *x, int32_t index, bool *drawn, dpi_error *err) {
    dpi_released released = {0};
    const int32_t *tokens;
    int32_t n;
    dpi_books_recall(x->books, index, &tokens, &n);
    *drawn = false;
    if (n == 0)
        return DPI_STATUS_OK;
    dpi_status status = open_released(x, index, DPI_TEXT_NONE, &released, err);
    if (status == DPI_STATUS_OK)
        status = push_all(&released, tokens, n, err);
    *drawn = status == DPI_STATUS_OK && end_of(x, &released, tokens, n) != DPI_END_NONE;
    dpi_released_close(&released);
    return status;
}

static dpi_status tell_again(const dpi_texts *x, dpi_release_text *t, dpi_released *released,
                             dpi_error *err) {
    dpi_generation_event e = {.type = DPI_EVENT_TOKEN};
    bool ok = true;
    for (int32_t i = 0; i < t->n_recalled && ok; i++) {
        e.token = t->recalled[i];
        DPI_TRY(dpi_released_push(released, e.token, &e.text, &e.n_bytes, err));
        ok = reserve_events(t) && add_event(t, &e, 0);
    }
    e = (dpi_generation_event){.type = DPI_EVENT_END, .token = -1, .text = "",
                               .end = end_of(x, released, t->recalled, t->n_recalled)};
    if (e.end != DPI_END_NONE)
        DPI_TRY(dpi_released_end(released, &e.text, &e.n_bytes, err));
    if (e.end != DPI_END_NONE)
        ok = ok && reserve_events(t) && add_event(t, &e, 0);
    return ok ? DPI_STATUS_OK : dpi_no_memory(err, "a text");
}

/* The tokens of an earlier process are told at once: the disk has them. The generation comes to
 * them later, for its caches. */
static dpi_status recall_tokens(const dpi_texts *x, dpi_release_text *t, dpi_error *err) {
    const int32_t *tokens;
    dpi_released released = {0};
    int32_t n;
    dpi_books_recall(x->books, t->index, &tokens, &n);
    if (n == 0)
        return DPI_STATUS_OK;
    t->recalled = dpi_private_malloc((size_t)n * sizeof *t->recalled);
    if (!t->recalled)
        return dpi_no_memory(err, "a text");
    memcpy(t->recalled, tokens, (size_t)n * sizeof *t->recalled);
    t->n_recalled = n;
    dpi_status status = open_released(x, t->index, DPI_TEXT_PIECES, &released, err);
    if (status == DPI_STATUS_OK)
        status = tell_again(x, t, &released, err);
    dpi_released_close(&released);
    return status;
}

/* A plain text continues the public prompt, or the private prompt of one record. */
static dpi_status create_generation(dpi_texts *x, dpi_place *place, const dpi_release_text *t,
                                    dpi_error *err) {
    const dpi_prompts *prompts = prompts_of(x, place, t->index);
    dpi_generation_options o;
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(prompts, &info, err));
    DPI_TRY(dpi_plan_steer(x->plan, x->session, place->first_seq, sequences_of_text(x),
                           dpi_source_label(x->source, t->index), err));
    dpi_generation_options_init(&o);
    o.session = x->session;
    o.sampler = place->sampler;
    o.first_seq = place->first_seq;
    o.text = DPI_TEXT_PIECES;
    o.recalled_tokens = t->recalled;
    o.n_recalled = t->n_recalled;
    o.mask = x->plan->mask;
    o.rules = x->plan->rules, o.n_answer = info.n_answer;
    o.public_tokens = dpi_prompts_public(prompts);
    o.n_public = (size_t)info.n_public;
    if (dpi_plan_is_plain(x->plan) && x->plan->claim.record_in_prompt) {
        o.public_tokens = place->prompts.tokens[0];
        o.n_public = place->prompts.n_tokens[0];
    } else if (!dpi_plan_is_plain(x->plan)) {
        o.reference_tokens = (const int32_t *const *)place->prompts.tokens;
        o.n_reference_tokens = place->prompts.n_tokens;
        o.n_ref = dpi_source_n_ref(x->source);
        o.n_prefix = (size_t)info.n_prefix;
        o.spread = x->plan->options.spread;
        o.number = x->next;
    }
    return dpi_generation_create(&o, &place->generation, err);
}

/* ---- Which text comes next ------------------------------------------------------------------- */

bool dpi_texts_is_last(const dpi_texts *x) { return x->next >= x->plan->claim.n_texts; }

/* The text x->next has begun. */
static void pass_on(dpi_texts *x) {
    const int32_t step = x->plan->options.n_shards > 0 ? x->plan->options.n_shards : 1;
    x->n_begun++;
    x->next_known = false;
    if (!x->plan->options.next_text)
        x->next = step < x->plan->claim.n_texts - x->next ? x->next + step : x->plan->claim.n_texts;
}

/* Finds the text that begins next. False: there is none. */
static bool find_next(dpi_texts *x) {
    if (x->plan->options.next_text && !x->next_known) {
        const int32_t next = x->plan->options.next_text(x->plan->options.next_user);
        x->next = next < 0 ? x->plan->claim.n_texts : next;
        x->next_known = true;
    }
    return !dpi_texts_is_last(x);
}

/* ---- Begin a text ---------------------------------------------------------------------------- */

static dpi_status make_text(dpi_texts *x, dpi_place *place, dpi_release_text *t, dpi_error *err) {
    DPI_TRY(recall_tokens(x, t, err));
    if (!place)
        return dpi_rounds_put(&x->rounds, t->index, t->bytes, t->n_bytes, err);
    DPI_TRY(dpi_rounds_prompts(&x->rounds, x->source, t->index, &place->own, err));
    DPI_TRY(dpi_source_load(x->source, t->index, place->own, &place->prompts, err));
    return create_generation(x, place, t, err);
}

/* place NULL: all of it is drawn. */
static dpi_status begin_text(dpi_texts *x, dpi_place *place, dpi_error *err) {
    dpi_release_text **last = &x->first;
    while (*last)
        last = &(*last)->next;
    dpi_release_text *t = dpi_private_malloc(sizeof *t);
    if (!t)
        return dpi_no_memory(err, "a text");
    *t = (dpi_release_text){.index = x->next};
    const dpi_status status = make_text(x, place, t, err);
    if (status != DPI_STATUS_OK) {
        free_text(x, t);
        return status;
    }
    t->place = place;
    x->n_ended += !place;
    x->n_drawn += t->n_recalled;
    *last = t;
    pass_on(x);
    return DPI_STATUS_OK;
}

/* One text reads its prompts at a time. */
static bool is_reading(const dpi_texts *x) {
    for (const dpi_release_text *t = x->first; t; t = t->next)
        if (t->place && (t->n_prompts == 0 || t->n_read < t->n_prompts))
            return true;
    return false;
}

/* The texts that the next one sees have begun before it: whether one of them is still drawn. */
static bool is_seen_drawn(const dpi_texts *x) {
    const dpi_batch_range seen = dpi_rounds_seen(&x->rounds, x->source, x->next);
    for (const dpi_release_text *t = x->first; t; t = t->next)
        if (t->place && t->index >= seen.first && t->index < seen.first + seen.n)
            return true;
    return false;
}

static void begin_next(dpi_texts *x) {
    dpi_error why;
    if (x->failure.code != DPI_STATUS_OK || !find_next(x))
        return;
    dpi_status status = DPI_STATUS_OK;
    if (x->looked_at != x->next)
        status = find_drawn(x, x->next, &x->next_is_drawn, &why);
    x->looked_at = x->next;
    const bool drawn = x->next_is_drawn;
    const bool waits = is_reading(x) || is_seen_drawn(x);
    dpi_place *place = status != DPI_STATUS_OK || drawn || waits ? NULL : find_free_place(x);
    if (status == DPI_STATUS_OK && (place || drawn))
        status = begin_text(x, place, &why);
    if (status == DPI_STATUS_OK)
        return;
    if (place)
        empty_place(x, place);
    stop(x, status == DPI_STATUS_CANCELLED ? 0 : x->next, status, &why);
}

void dpi_texts_wait(dpi_texts *x) {
    dpi_error why;
    const dpi_status status = dpi_books_wait(x->books, &why);
    if (status != DPI_STATUS_OK)
        stop(x, 0, status, &why);
}

/* ---- One pass -------------------------------------------------------------------------------- */

static void reserve_all(dpi_texts *x) {
    for (dpi_release_text *t = x->first; t; t = t->next)
        if (t->place && !reserve_events(t)) {
            stop(x, t->index, DPI_STATUS_MEMORY,
                 &(dpi_error){.message = "out of memory for a text"});
            return;
        }
}

/* All texts that are drawn, in their order. */
static void collect(dpi_texts *x) {
    dpi_pass_texts *p = &x->drawn;
    p->n = 0;
    for (dpi_release_text *t = x->first; t; t = t->next) {
        if (!t->place)
            continue;
        if (x->plan->options.seeded)
            t->place->bits = stream_of(x->plan->options.seed, t->index, t->n_drawn);
        p->texts[p->n] = t;
        p->generations[p->n++] = t->place->generation;
    }
}

/* What a pass did for one text. Errors: MEMORY; those of dpi_journal_put. */
static dpi_status note(dpi_texts *x, dpi_release_text *t, const dpi_generation_event *e,
                       dpi_error *err) {
    x->n_read += e->n_read - t->n_read;
    t->n_read = e->n_read;
    t->n_prompts = e->n_prompts;
    if (e->type != DPI_EVENT_TOKEN && e->type != DPI_EVENT_END)
        return DPI_STATUS_OK;
    if (e->type == DPI_EVENT_TOKEN && e->n_drawn <= t->n_recalled)
        return DPI_STATUS_OK; /* it is told already */
    int64_t sequence = 0;
    if (e->type == DPI_EVENT_TOKEN) { /* one that the journal does not take is not told */
        const dpi_status status = dpi_books_put(x->books, t->index, e->n_drawn - 1, e->token,
                                                e->end != DPI_END_NONE, &sequence, err);
        t->is_cut = status != DPI_STATUS_OK;
        DPI_TRY(status);
    }
    const bool ok = add_event(t, e, sequence);
    x->n_drawn += ok && e->type == DPI_EVENT_TOKEN;
    if (e->type == DPI_EVENT_END) {
        x->n_ended++;
        leave_place(x, t);
        if (ok)
            return dpi_rounds_put(&x->rounds, t->index, t->bytes, t->n_bytes, err);
    }
    return ok ? DPI_STATUS_OK : dpi_no_memory(err, "a text");
}

/* The first failure stops its text and those after it; a cancelled pass stops all. */
static const dpi_release_text *note_all(dpi_texts *x, dpi_status status, dpi_error *why) {
    const dpi_pass_texts *p = &x->drawn;
    const dpi_release_text *reading = NULL;
    int32_t failed = -1;
    for (int32_t i = 0; i < p->n; i++) {
        const dpi_generation_event *e = &p->events[i];
        dpi_status noted = (dpi_status)e->status;
        if (e->type != DPI_EVENT_ERROR)
            noted = note(x, p->texts[i], e, failed < 0 && status == DPI_STATUS_OK ? why : NULL);
        if (noted != DPI_STATUS_OK && failed < 0) {
            failed = p->texts[i]->index;
            status = noted;
        }
        if (e->type == DPI_EVENT_PROMPT)
            reading = p->texts[i];
    }
    if (status != DPI_STATUS_OK)
        stop(x, status == DPI_STATUS_CANCELLED || failed < 0 ? 0 : failed, status, why);
    return status == DPI_STATUS_OK ? reading : NULL;
}

const dpi_release_text *dpi_texts_pass(dpi_texts *x) {
    dpi_error why = {0};
    dpi_pass_texts *p = &x->drawn;
    if (dpi_plan_is_cancelled(x->plan))
        stop(x, 0, DPI_STATUS_CANCELLED, &(dpi_error){.message = "cancelled"});
    else
        begin_next(x);
    reserve_all(x);
    collect(x);
    if (p->n == 0)
        return NULL;
    return note_all(x, dpi_generation_advance(p->generations, p->n, p->events, &why), &why);
}
