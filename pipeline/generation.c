/* generation.c - texts as state machines: prompts into caches, logits into samplers, tokens out.
 *
 * What is released is a function of what the sampler draws. Only public things steer a text: the
 * number of slots, T, and the tokens already released; a null slot changes nothing but the time
 * that a step takes (which is out of scope, dp/PRIVACY.md). Of the references' logits only those of
 * the candidates are computed, where these are few; the public logits say which. Stopping at an
 * end-of-generation token is post-processing of a released token: it neither costs nor refunds
 * anything (docs/spec.md section 1).
 *
 * Texts share passes, never logits: a sequence's logits are the same bits whatever else is in the
 * pass (purity), and a text looks at its own sequences alone.
 *
 * The order inside of an advance: one step, then all draws, then prompts and ends. A prompt that is
 * read, and a sequence that is reset, would take away the activations that the draws after a step
 * may still need (dpi_session_logits_at); so none of them is needed when an advance returns. */
#include <stdlib.h>
#include <string.h>

#include "dpinfer.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"
#include "engine/session.h"
#include "pipeline/generation_options.h"
#include "pipeline/released_text.h"

typedef enum phase {
    READING, /* slot `slot` is next */
    DRAWING,
    ENDING, /* `end` is set, END was not told */
    OVER
} phase;

struct dpi_generation {
    dpi_generation_options options;
    dpi_released released;
    dpi_mask_text *masked; /* NULL: all tokens are allowed */
    int32_t n_vocab, n_tokens;
    int32_t n_references; /* prompts that may be there: n_ref times the records of a unit */
    phase phase;
    int32_t slot;  /* READING: the prompt that is read, 0 is the public one. Where a unit may have
                      several records, a slot is one of those here */
    size_t n_read; /* its tokens that are in the cache */
    int32_t first; /* slot of the first reference that was read; 0: none yet */
    int32_t *seqs; /* [n_active] sequences that hold tokens; the public one is the first */
    int32_t n_active;
    const float **logits; /* [n_references] NULL for null slots */
    int64_t *sums; /* spread: [DPI_SUMS_HEADER + n_vocab], private */
    bool begun;           /* the sampler's text is this one */
    bool current;         /* the logits are those after the last token */
    bool drawn;           /* `token` is drawn, and not yet told */
    bool partial;    /* the next step computes all logits of the public sequence only. Public */
    int32_t n_shifted; /* rows of seqs whose logits have got what the wording gives */
    bool incomplete; /* the step has left logits out, of the rows from first_row on */
    int32_t first_row;
    int32_t token;
    int32_t n_drawn; /* of them the last one may not be told */
    int32_t end;     /* a dpi_end */
};

/* ---- Prompts --------------------------------------------------------------------------------- */

static const int32_t *prompt_of(const dpi_generation *g, int32_t slot, size_t *n) {
    const dpi_generation_options *o = &g->options;
    *n = slot ? o->n_reference_tokens[slot - 1] : o->n_public;
    return slot ? o->reference_tokens[slot - 1] : o->public_tokens;
}

/* Most tokens of a prompt. */
static size_t room(const dpi_generation *g) {
    const int32_t n = dpi_session_n_ctx(g->options.session) - g->n_tokens;
    return n > 0 ? (size_t)n : 0;
}

/* A slot whose prompt cannot be read is null: whether a text fails depends on no record. */
static bool is_null(const dpi_generation *g, int32_t slot) {
    size_t n;
    const int32_t *tokens = prompt_of(g, slot, &n);
    if (!tokens || n == 0 || n > room(g))
        return true;
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= g->n_vocab)
            return true;
    return false;
}

/* Tokens that a prompt shares with another one, among the public ones it begins with. One token is
 * left to compute: it gives the logits. */
static int32_t in_common(const dpi_generation *g, int32_t slot, int32_t other) {
    size_t n_a, n_b, n = 0, most = g->options.n_prefix;
    const int32_t *a = prompt_of(g, slot, &n_a), *b = prompt_of(g, other, &n_b);
    while (n < most && n + 1 < n_a && n < n_b && a[n] == b[n])
        n++;
    return (int32_t)n;
}

/* Begins with what the public prompt, or the first reference, has computed of the same
 * beginning. */
static dpi_status share_prefix(dpi_generation *g, dpi_error *err) {
    int32_t from = 0, n = in_common(g, g->slot, 0);
    int32_t n_first = g->first ? in_common(g, g->slot, g->first) : 0;
    if (n_first > n) {
        from = g->first;
        n = n_first;
    }
    const int32_t seq = g->options.first_seq;
    n = dpi_session_forkable(g->options.session, seq + from, n);
    g->n_read = (size_t)n;
    return n ? dpi_session_fork(g->options.session, seq + from, seq + g->slot, n, err)
             : DPI_STATUS_OK;
}

/* The public prompt and the first reference are those that others begin with. */
static dpi_status pin_prefix(dpi_generation *g, size_t n, dpi_error *err) {
    const int32_t seq = g->options.first_seq + g->slot;
    const size_t n_prefix = g->options.n_prefix < n ? g->options.n_prefix : n;
    if (g->n_references == 0 || (g->slot > 0 && g->first > 0) || n_prefix == 0 ||
        n_prefix < g->n_read)
        return DPI_STATUS_OK;
    return dpi_session_pin(g->options.session, seq, (int32_t)n_prefix, err);
}

/* A prompt that a sequence of the caller's holds. Neither number is named: it may be a record's. */
static dpi_status fork_prompt(dpi_generation *g, int32_t held, size_t n, dpi_error *err) {
    dpi_session *session = g->options.session;
    if (dpi_session_length(session, held) != (int32_t)n)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "a sequence of prompt_seqs does not hold as many tokens as its prompt");
    DPI_TRY(dpi_session_fork(session, held, g->options.first_seq + g->slot, (int32_t)n, err));
    g->n_read = n;
    return DPI_STATUS_OK;
}

/* The beginning of a prompt that a sequence of the caller's holds. At least one token is left to
 * compute. */
static dpi_status fork_beginning(dpi_generation *g, int32_t held, size_t n, dpi_error *err) {
    dpi_session *session = g->options.session;
    int32_t n_held = g->options.n_held[g->slot];
    if (dpi_session_length(session, held) < n_held)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "a sequence of prompt_seqs does not hold as many tokens as n_held says");
    n_held = (size_t)n_held < n ? n_held : (int32_t)n - 1;
    n_held = dpi_session_forkable(session, held, n_held);
    if (n_held > 0)
        DPI_TRY(dpi_session_fork(session, held, g->options.first_seq + g->slot, n_held, err));
    g->n_read = (size_t)n_held;
    return DPI_STATUS_OK;
}

static dpi_status begin_prompt(dpi_generation *g, int32_t held, size_t n, dpi_error *err) {
    if (held >= 0 && (size_t)g->options.n_held[g->slot] > g->options.n_prefix)
        return fork_beginning(g, held, n, err);
    return g->slot > 0 ? share_prefix(g, err) : DPI_STATUS_OK;
}

static dpi_status read_piece(dpi_generation *g, dpi_error *err) {
    size_t n, n_piece = (size_t)g->options.n_piece;
    const int32_t *tokens = prompt_of(g, g->slot, &n);
    const int32_t held = g->options.prompt_seqs ? g->options.prompt_seqs[g->slot] : -1;
    if (held >= 0 && !g->options.n_held)
        return fork_prompt(g, held, n, err);
    if (g->n_read == 0) {
        DPI_TRY(begin_prompt(g, held, n, err));
        DPI_TRY(pin_prefix(g, n, err));
    }
    size_t left = n - g->n_read;
    left = n_piece > 0 && left > n_piece ? n_piece : left;
    DPI_TRY(dpi_session_prefill(g->options.session, g->options.first_seq + g->slot,
                                tokens + g->n_read, left, NULL, err));
    g->n_read += left;
    return DPI_STATUS_OK;
}

/* The prompt of the current slot, or a piece of it. After a failure its sequence is empty again. */
static dpi_status read_prompt(dpi_generation *g, dpi_error *err) {
    const int32_t seq = g->options.first_seq + g->slot;
    if (g->n_read == 0) {
        if (dpi_session_length(g->options.session, seq) != 0)
            return dpi_fail(err, DPI_STATUS_STATE,
                            "sequence %d is not empty: something else uses it, or did and did not "
                            "reset it",
                            (int)seq);
        g->seqs[g->n_active++] = seq;
    }
    dpi_status status = read_piece(g, err);
    if (status != DPI_STATUS_OK) {
        dpi_session_reset(g->options.session, seq);
        g->n_active--;
        g->n_read = 0;
    }
    return status;
}

static dpi_status read_slot(dpi_generation *g, dpi_generation_event *event, dpi_error *err) {
    size_t n = 0;
    if (g->slot == 0 || !is_null(g, g->slot)) {
        DPI_TRY(read_prompt(g, err));
        (void)prompt_of(g, g->slot, &n);
    }
    if (g->n_read == n) {
        if (n > 0 && g->first == 0)
            g->first = g->slot;
        g->slot++;
        g->n_read = 0;
    }
    if (g->slot > g->n_references) {
        g->phase = DRAWING;
        g->current = true;
    }
    event->type = DPI_EVENT_PROMPT;
    return DPI_STATUS_OK;
}

/* ---- Draws ----------------------------------------------------------------------------------- */

/* The references' logits of the candidates, where the step has left them out. Few candidates now
 * are the sign of few after the next token. */
static dpi_status complete_logits(dpi_generation *g, const float *public_logits, dpi_error *err) {
    const int32_t *ids = NULL;
    int32_t n_ids = 0;
    dpi_status status =
        dpi_worded_allow(g->masked, g->released.ruled, g->options.sampler, err);
    if (status == DPI_STATUS_OK)
        status = dpi_sampler_candidates(g->options.sampler, public_logits, &ids, &n_ids, err);
    if (g->incomplete) {
        /* After a failure all: another attempt comes when the activations are gone. */
        const bool failed = status != DPI_STATUS_OK;
        dpi_status completed =
            dpi_session_logits_at(g->options.session, g->first_row, g->n_active - 1,
                                  failed ? NULL : ids, n_ids, failed ? NULL : err);
        g->incomplete = false;
        status = failed ? status : completed;
    }
    g->partial = ids != NULL;
    return status;
}

/* The sampler is this text's alone: the begin of another one would give it a budget anew. */
static dpi_status check_sampler(const dpi_generation *g, dpi_error *err) {
    if (dpi_sampler_tokens_left(g->options.sampler) == g->n_tokens - g->n_drawn)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_STATE,
                    "the sampler of a text was used for something else before its end");
}

static dpi_status begin_sampler(dpi_generation *g, dpi_error *err) {
    const dpi_spread *spread = g->options.spread;
    dpi_part part;
    if (!spread)
        return dpi_sampler_begin(g->options.sampler, err);
    dpi_part_init(&part);
    part.index = spread->index;
    part.count = spread->count;
    part.text = g->options.number;
    return dpi_sampler_begin_part(g->options.sampler, &part, err);
}

/* The sums of this part go to part 0, and its token comes back. */
static dpi_status draw_spread(dpi_generation *g, const float *public_logits, dpi_error *err) {
    const dpi_spread *spread = g->options.spread;
    dpi_sampler *sampler = g->options.sampler;
    int32_t n, token = -1;
    DPI_TRY(dpi_sampler_partial(sampler, public_logits, g->logits, g->sums, &n, err));
    DPI_TRY(spread->add(spread->user, g->sums, n, err));
    dpi_status status = DPI_STATUS_OK;
    if (spread->index == 0)
        status = dpi_sampler_step_merged(sampler, public_logits, g->sums, n, &token, err);
    dpi_wipe(g->sums, (size_t)n * sizeof *g->sums);
    const dpi_status told =
        spread->token(spread->user, &token, status == DPI_STATUS_OK ? err : NULL);
    if (status != DPI_STATUS_OK || told != DPI_STATUS_OK)
        return status != DPI_STATUS_OK ? status : told;
    if (token < 0 || token >= g->n_vocab)
        return dpi_fail(err, DPI_STATUS_STATE, "the part of the text that draws has failed");
    g->token = token;
    return DPI_STATUS_OK;
}

/* Drawn, or booked a second time for a text that goes on. */
static dpi_status next_token(dpi_generation *g, const float *public_logits, dpi_error *err) {
    const dpi_generation_options *o = &g->options;
    if (g->n_drawn < o->n_recalled) {
        g->token = o->recalled_tokens[g->n_drawn];
        return dpi_sampler_recall(o->sampler, public_logits, g->logits, g->token, err);
    }
    return o->spread ? draw_spread(g, public_logits, err)
                     : dpi_sampler_step(o->sampler, public_logits, g->logits, &g->token, err);
}

/* What the wording gives tokens: once to each of the first n rows. */
static void shift_logits(dpi_generation *g, int32_t n) {
    for (; g->n_shifted < n; g->n_shifted++)
        dpi_worded_shift(g->released.ruled,
                         dpi_session_logits_row(g->options.session, g->seqs[g->n_shifted]));
}

static dpi_status draw(dpi_generation *g, dpi_error *err) {
    const dpi_generation_options *o = &g->options;
    const float *public_logits = dpi_session_logits(o->session, o->first_seq);
    if (!g->begun)
        DPI_TRY(begin_sampler(g, err));
    g->begun = true;
    shift_logits(g, 1); /* before the candidates: V_k+ is that of these logits */
    DPI_TRY(complete_logits(g, public_logits, err));
    shift_logits(g, g->n_active);
    DPI_TRY(check_sampler(g, err));
    for (int32_t i = 1; i < g->n_active; i++)
        g->logits[g->seqs[i] - o->first_seq - 1] = dpi_session_logits(o->session, g->seqs[i]);
    DPI_TRY(next_token(g, public_logits, err));
    g->n_drawn++;
    g->current = false;
    g->drawn = true;
    return DPI_STATUS_OK;
}

/* Releases the token that was drawn. */
static dpi_status tell(dpi_generation *g, dpi_generation_event *event, dpi_error *err) {
    /* The first that can fail, and then nothing is changed. */
    if (g->masked && !dpi_worded_is_cut(g->released.ruled))
        DPI_TRY(dpi_mask_text_push(g->masked, g->token, err));
    DPI_TRY(dpi_released_push(&g->released, g->token, &event->text, &event->n_bytes, err));
    g->drawn = false;
    g->end = dpi_released_end_of(&g->released, dpi_session_model(g->options.session), g->token);
    if (g->end == DPI_END_EOG && g->options.ignore_eog)
        g->end = DPI_END_NONE;
    if (g->end == DPI_END_NONE && g->n_drawn == g->n_tokens)
        g->end = DPI_END_LENGTH;
    if (g->end != DPI_END_NONE)
        g->phase = ENDING;
    event->type = DPI_EVENT_TOKEN;
    event->token = g->token;
    return DPI_STATUS_OK;
}

static dpi_status draw_and_tell(dpi_generation *g, dpi_generation_event *event, dpi_error *err) {
    if (!g->drawn)
        DPI_TRY(draw(g, err));
    return tell(g, event, err);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* All but the first n. */
static void reset_sequences(dpi_generation *g, int32_t n) {
    for (; g->n_active > n; g->n_active--)
        dpi_session_reset(g->options.session, g->seqs[g->n_active - 1]);
}

/* References whom no token asks any more: their caches go before the text ends. */
static void drop_references(dpi_generation *g) {
    if (g->phase != DRAWING || g->n_active < 2 ||
        dpi_sampler_needs_references(g->options.sampler))
        return;
    reset_sequences(g, 1);
    for (int32_t i = 0; i < g->n_references; i++)
        g->logits[i] = NULL;
}

static dpi_status tell_end(dpi_generation *g, dpi_generation_event *event, dpi_error *err) {
    reset_sequences(g, 0);
    DPI_TRY(dpi_released_end(&g->released, &event->text, &event->n_bytes, err));
    g->phase = OVER;
    event->type = DPI_EVENT_END;
    return DPI_STATUS_OK;
}

void dpi_generation_cancel(dpi_generation *g) {
    reset_sequences(g, 0);
    if (g->phase == READING || g->phase == DRAWING) {
        g->n_drawn -= g->drawn; /* a token that was not told is not released */
        g->drawn = false;
        g->phase = ENDING;
        g->end = DPI_END_CANCELLED;
    }
}

/* ---- Advance --------------------------------------------------------------------------------- */

typedef struct advance {
    dpi_generation *const *all; /* [n], NULL for a free place */
    int32_t n;
    dpi_generation_event *events;
    dpi_session *session; /* NULL: all places are free */
    dpi_status status; /* of the first failure */
    dpi_error *err;
} advance;

/* Where an error goes: only the first one is kept. */
static dpi_error *error_of(const advance *a) {
    return a->status == DPI_STATUS_OK ? a->err : NULL;
}

static void note(advance *a, int32_t i, dpi_status status) {
    if (status == DPI_STATUS_OK)
        return;
    a->events[i].type = DPI_EVENT_ERROR;
    a->events[i].status = (int32_t)status;
    if (a->status == DPI_STATUS_OK)
        a->status = status;
}

static bool has_step(const dpi_generation *g) {
    return g && g->phase == DRAWING && !g->current && !g->drawn;
}

static int32_t add_rows(const dpi_generation *g, int32_t begin, int32_t end, int32_t *seqs,
                        int32_t *tokens, int32_t n) {
    for (int32_t i = begin; i < end; i++, n++) {
        seqs[n] = g->seqs[i];
        tokens[n] = g->token;
    }
    return n;
}

/* The last tokens of all texts in one pass: first the rows with all logits, then, text by text,
 * those that wait for candidates. */
static dpi_status step_rows(const advance *a, int32_t n_rows, int32_t *seqs, int32_t *tokens,
                            dpi_error *err) {
    int32_t n = 0;
    for (int32_t i = 0; i < a->n; i++)
        if (has_step(a->all[i]))
            n = add_rows(a->all[i], 0, a->all[i]->partial ? 1 : a->all[i]->n_active, seqs, tokens,
                         n);
    const int32_t n_logits = n;
    for (int32_t i = 0; i < a->n; i++) {
        dpi_generation *g = a->all[i];
        if (!has_step(g) || !g->partial)
            continue;
        g->first_row = n;
        n = add_rows(g, 1, g->n_active, seqs, tokens, n);
    }
    return dpi_session_step_partial(a->session, n_rows, seqs, tokens, n_logits, err);
}

static void step(advance *a) {
    int32_t n_rows = 0;
    for (int32_t i = 0; i < a->n; i++)
        n_rows += has_step(a->all[i]) ? a->all[i]->n_active : 0;
    if (n_rows == 0)
        return;
    int32_t *rows = dpi_calloc(2 * (size_t)n_rows, sizeof *rows);
    dpi_status status = rows ? step_rows(a, n_rows, rows, rows + n_rows, a->err)
                             : dpi_no_memory(a->err, "the rows of a step");
    free(rows);
    for (int32_t i = 0; i < a->n; i++) {
        dpi_generation *g = a->all[i];
        if (!has_step(g))
            continue;
        note(a, i, status);
        if (status == DPI_STATUS_OK) {
            g->current = true;
            g->n_shifted = 0;
            g->incomplete = g->partial && g->n_active > 1;
        }
    }
}

/* *session = that of all generations. */
static dpi_status check_generations(dpi_generation *const *all, int32_t n,
                                    const dpi_generation_event *events, dpi_session **session,
                                    dpi_error *err) {
    if (!all || n < 1 || !events)
        return dpi_fail(err, DPI_STATUS_ARG, "no generations to advance, or no events");
    *session = NULL;
    for (int32_t i = 0; i < n; i++) {
        if (all[i] && *session && all[i]->options.session != *session)
            return dpi_fail(err, DPI_STATUS_ARG,
                            "generation %d is of another session than the first", (int)i);
        if (all[i])
            *session = all[i]->options.session;
    }
    return DPI_STATUS_OK;
}

/* What all events say. */
static void finish_event(const dpi_generation *g, dpi_generation_event *event) {
    event->n_read = g->slot;
    event->n_prompts = g->n_references + 1;
    event->n_drawn = g->n_drawn - g->drawn;
    event->end = g->end;
}

dpi_status dpi_generation_advance(dpi_generation *const *generations, int32_t n,
                                  dpi_generation_event *events, dpi_error *err) {
    advance a = {generations, n, events, NULL, DPI_STATUS_OK, err};
    DPI_TRY(check_generations(generations, n, events, &a.session, err));
    for (int32_t i = 0; i < n; i++)
        events[i] = (dpi_generation_event){.token = -1, .text = ""};
    step(&a);
    for (int32_t i = 0; i < n; i++) {
        dpi_generation *g = generations[i];
        if (g && g->phase == DRAWING && (g->current || g->drawn) &&
            events[i].type == DPI_EVENT_NONE)
            note(&a, i, draw_and_tell(g, &events[i], error_of(&a)));
    }
    for (int32_t i = 0; i < n; i++) {
        dpi_generation *g = generations[i];
        if (g && events[i].type == DPI_EVENT_TOKEN)
            drop_references(g);
        if (!g || events[i].type != DPI_EVENT_NONE)
            continue;
        if (g->phase == READING)
            note(&a, i, read_slot(g, &events[i], error_of(&a)));
        else if (g->phase == ENDING)
            note(&a, i, tell_end(g, &events[i], error_of(&a)));
    }
    for (int32_t i = 0; i < n; i++)
        if (generations[i])
            finish_event(generations[i], &events[i]);
    return a.status;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static dpi_status check_public(const dpi_generation *g, dpi_error *err) {
    if (g->options.n_public == 0 || !g->options.public_tokens)
        return dpi_fail(err, DPI_STATUS_ARG, "the public prompt has no tokens");
    if (g->options.n_public > room(g))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the public prompt: more than the %zu tokens that a context of %d leaves "
                        "beside %d drawn ones",
                        room(g), (int)dpi_session_n_ctx(g->options.session), (int)g->n_tokens);
    if (is_null(g, 0))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the public prompt has a token id out of range, must be 0..%d",
                        (int)g->n_vocab - 1);
    return DPI_STATUS_OK;
}

/* The model's vocabulary is the sampler's; the public prompt fits. */
static dpi_status check_fit(dpi_generation *g, dpi_error *err) {
    const dpi_sampler_options *s = dpi_sampler_options_get(g->options.sampler);
    dpi_model_info info;
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(dpi_session_model(g->options.session), &info, err));
    if (s->n_vocab != info.n_vocab)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler's n_vocab is %d, must be the model's %d",
                        (int)s->n_vocab, (int)info.n_vocab);
    g->n_vocab = info.n_vocab;
    g->n_tokens = s->n_tokens;
    return check_public(g, err);
}

static size_t n_sums(const dpi_generation *g) {
    return g->options.spread ? DPI_SUMS_HEADER + (size_t)g->n_vocab : 0;
}

static dpi_status allocate(dpi_generation *g, dpi_error *err) {
    const size_t n_seq = (size_t)g->n_references + 1;
    g->seqs = dpi_calloc(n_seq, sizeof *g->seqs);
    g->logits = dpi_calloc(n_seq, sizeof *g->logits);
    g->sums = dpi_calloc(n_sums(g), sizeof *g->sums);
    if (!g->seqs || !g->logits || !g->sums)
        return dpi_no_memory(err, "the sequences");
    const dpi_generation_options *o = &g->options;
    if (o->mask)
        DPI_TRY(dpi_mask_text_create_begun(o->mask, o->public_tokens + o->n_public - o->n_begun,
                                           (size_t)o->n_begun, &g->masked, err));
    if (o->rules)
        return dpi_released_open_ruled(o->rules, o->text,
                                       o->public_tokens + o->n_public - o->n_begun - o->n_answer,
                                       (size_t)o->n_answer, (size_t)o->n_begun, &g->released, err);
    const dpi_model *model = dpi_session_model(o->session);
    return dpi_released_open(model, o->text, g->n_tokens, &g->released, err);
}

dpi_status dpi_generation_create(const dpi_generation_options *options,
                                 dpi_generation **generation, dpi_error *err) {
    DPI_COPY_STRUCT(dpi_generation_options, o, options, err);
    DPI_TRY(dpi_generation_options_check(&o, err));
    dpi_generation *g = dpi_calloc(1, sizeof *g);
    if (!g)
        return dpi_no_memory(err, "a generation");
    g->options = o;
    g->n_references = o.n_ref * dpi_sampler_per_unit(dpi_sampler_options_get(o.sampler));
    dpi_status status = check_fit(g, err);
    if (status == DPI_STATUS_OK)
        status = allocate(g, err);
    if (status != DPI_STATUS_OK) {
        dpi_generation_free(g);
        return status;
    }
    *generation = g;
    return DPI_STATUS_OK;
}

void dpi_generation_free(dpi_generation *g) {
    if (!g)
        return;
    const size_t n_seq = (size_t)g->n_references + 1;
    dpi_generation_cancel(g);
    dpi_released_close(&g->released);
    dpi_mask_text_free(g->masked);
    dpi_wipe_free(g->seqs, n_seq * sizeof *g->seqs); /* which slots were null is private */
    dpi_wipe_free(g->logits, n_seq * sizeof *g->logits);
    dpi_wipe_free(g->sums, n_sums(g) * sizeof *g->sums);
    dpi_wipe_free(g, sizeof *g);
}
