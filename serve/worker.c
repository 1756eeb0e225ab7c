/* worker.c - see worker.h. One lock guards the queue and what is told of answers; nothing is
 * computed under it. */
#include "serve/worker.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PIECE = 64, /* tokens of a prompt that are read between two steps of the other answers */
    REST_NANOSECONDS = 200000000, /* without anything to do: questions that come one after the
                                     other find their memory where it was */
};

struct worker {
    worker_options options;
    dpi_session *session;
    kept *kept; /* NULL: nothing is */
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* an answer waits, or the worker stops */
    answer *first, **last;  /* that wait */
    answer *prepared;       /* that are prepared, and not begun */
    int32_t n_preparing;    /* that have room and are not begun */
    bool is_stopping;
    bool has_rested; /* at_rest was called since the last answer */
    worker_counts counts;

    /* The thread's own. */
    answer **live; /* [n_live] that are drawn */
    dpi_generation **generations;
    dpi_generation_event *events;
    int32_t n_live;
    bool *is_used; /* [n_seq] sequences */
    int32_t n_seq;
    worker_memory memory;
};

/* ---- Answers --------------------------------------------------------------------------------- */

answer *answer_create(void) {
    answer *a = calloc(1, sizeof *a);
    if (a) {
        a->n_owners = 1;
        a->n_seq = 1;
        a->first_seq = -1;
    }
    return a;
}

bool answer_shape(answer *a, const dpi_model *model, const dpi_wording *wording,
                  dpi_grammar **grammar, refusal *why) {
    dpi_error err;
    a->grammar = *grammar;
    *grammar = NULL;
    dpi_status status = dpi_word_rules_create(wording, model, &a->rules, &err);
    if (status == DPI_STATUS_OK && a->grammar)
        status = dpi_mask_create(a->grammar, model, &a->mask, &err);
    if (status == DPI_STATUS_OK && a->grammar)
        status = dpi_mask_check_length(a->mask, a->method.n_tokens, &err);
    return status == DPI_STATUS_OK || refuse_error(why, &err);
}

/* With the lock held, or where nobody else has the answer. */
static void answer_drop(answer *a) {
    if (--a->n_owners > 0)
        return;
    for (int32_t i = 0; a->references && i < a->n_seq - 1; i++)
        dpi_private_free(a->references[i]);
    free(a->references);
    free(a->n_references);
    free(a->records);
    dpi_private_free(a->tokens);
    dpi_word_rules_free(a->rules);
    dpi_mask_free(a->mask);
    dpi_grammar_free(a->grammar);
    dpi_private_free(a->text);
    free(a);
}

void answer_leave(worker *w, answer *a) {
    if (!a)
        return;
    pthread_mutex_lock(&w->lock);
    a->is_left = true;
    a->wake = NULL;
    answer_drop(a);
    pthread_mutex_unlock(&w->lock);
}

void answer_forget(worker *w, answer *a) {
    pthread_mutex_lock(&w->lock);
    a->wake = NULL;
    pthread_mutex_unlock(&w->lock);
}

/* With the lock held. */
static void answer_wake(answer *a) {
    void (*wake)(void *user) = a->wake;
    if (!wake || (a->wakes_at_end && !a->is_over))
        return;
    a->wake = NULL;
    wake(a->user);
}

static void answer_end(answer *a, const refusal *failure) {
    if (failure)
        a->failure = *failure;
    a->is_over = true;
    answer_wake(a);
    if (a->ended)
        a->ended(a->owner);
}

static bool add_text(answer *a, const char *bytes, size_t n_bytes) {
    if (!dpi_private_grow(&a->text, &a->capacity, a->n_bytes + n_bytes, 1))
        return false;
    if (n_bytes > 0)
        memcpy(a->text + a->n_bytes, bytes, n_bytes);
    a->n_bytes += n_bytes;
    return true;
}

void answer_look(worker *w, answer *a, size_t from, answer_view *view) {
    pthread_mutex_lock(&w->lock);
    *view = (answer_view){.is_over = a->is_over, .n_drawn = a->n_drawn, .end = a->end,
                          .failure = a->failure};
    if (a->n_bytes > from && (view->text = dpi_private_malloc(a->n_bytes - from)) != NULL) {
        view->n_bytes = a->n_bytes - from;
        memcpy(view->text, a->text + from, view->n_bytes);
    }
    pthread_mutex_unlock(&w->lock);
}

bool answer_wait(worker *w, answer *a, bool whole, size_t known, void (*sleep)(void *user),
                 void (*wake)(void *user), void *user) {
    pthread_mutex_lock(&w->lock);
    const bool there = a->is_over || (!whole && a->n_bytes > known);
    if (!there) {
        a->wake = wake;
        a->user = user;
        a->wakes_at_end = whole;
        sleep(user);
    }
    pthread_mutex_unlock(&w->lock);
    return there;
}

/* ---- Sequences ------------------------------------------------------------------------------- */

/* The first of n free sequences in a row; -1: there are none. */
static int32_t find_sequences(const worker *w, int32_t n) {
    int32_t n_free = 0;
    for (int32_t i = 0; i < w->n_seq; i++) {
        n_free = w->is_used[i] ? 0 : n_free + 1;
        if (n_free == n)
            return i + 1 - n;
    }
    return -1;
}

static void mark_sequences(worker *w, const answer *a, bool is_used) {
    for (int32_t i = 0; i < a->n_seq; i++)
        w->is_used[a->first_seq + i] = is_used;
}

/* ---- Begin and end --------------------------------------------------------------------------- */

/* What was kept of the records of an answer; without memory for it nothing is used. */
static void find_kept(worker *w, answer *a) {
    if (!w->kept || !a->records)
        return;
    kept_count_answer(w->kept);
    a->prompt_seqs = calloc((size_t)a->n_seq, sizeof *a->prompt_seqs);
    a->n_held = calloc((size_t)a->n_seq, sizeof *a->n_held);
    for (int32_t i = 0; a->prompt_seqs && i < a->n_seq; i++)
        a->prompt_seqs[i] = i > 0 && a->n_held
                                ? kept_find(w->kept, a->records[i - 1], a->references[i - 1],
                                            a->n_references[i - 1], &a->n_held[i])
                                : -1;
}

/* Nothing is read from it any more. */
static void leave_kept(worker *w, answer *a) {
    for (int32_t i = 0; a->prompt_seqs && i < a->n_seq; i++)
        if (a->prompt_seqs[i] >= 0)
            kept_leave(w->kept, a->prompt_seqs[i]);
    free(a->prompt_seqs);
    free(a->n_held);
    a->prompt_seqs = a->n_held = NULL;
}

/* All prompts of an answer are read. A null one has no tokens in its sequence. */
static void keep_prompts(worker *w, answer *a) {
    leave_kept(w, a);
    for (int32_t i = 0; w->kept && a->records && i < a->n_seq - 1; i++) {
        const int32_t seq = a->first_seq + 1 + i;
        const size_t n = a->n_references[i];
        if (a->references[i] && n > 0 && dpi_session_length(w->session, seq) == (int32_t)n)
            kept_add(w->kept, a->records[i], a->references[i], n, seq);
    }
}

static dpi_status create_generation(worker *w, answer *a, dpi_error *err) {
    dpi_generation_options o;
    dpi_sampler_options method = a->method;
    if (a->is_seeded) {
        method.random = dpi_random_insecure;
        method.random_user = &a->bits;
    }
    dpi_status status = dpi_sampler_create(&method, &a->sampler, err);
    if (status != DPI_STATUS_OK)
        return status;
    dpi_generation_options_init(&o);
    o.session = w->session;
    o.sampler = a->sampler;
    o.public_tokens = a->tokens;
    o.n_public = a->n_tokens;
    o.reference_tokens = (const int32_t *const *)a->references;
    o.n_reference_tokens = a->n_references;
    o.n_ref = a->references ? a->method.n_ref : 0;
    o.n_prefix = a->n_prefix;
    o.rules = a->rules;
    o.mask = a->mask;
    find_kept(w, a);
    o.prompt_seqs = a->prompt_seqs;
    o.n_held = a->n_held;
    o.first_seq = a->first_seq;
    o.n_piece = PIECE;
    o.text = DPI_TEXT_PIECES;
    return dpi_generation_create(&o, &a->generation, err);
}

/* What the thread has of an answer. */
static void close_answer(worker *w, answer *a) {
    dpi_generation_free(a->generation);
    dpi_sampler_free(a->sampler);
    leave_kept(w, a);
    a->generation = NULL;
    a->sampler = NULL;
    if (a->first_seq >= 0)
        mark_sequences(w, a, false);
    a->first_seq = -1;
}

/* why NULL: it has come to its end. */
static void end_answer(worker *w, answer *a, const refusal *why) {
    close_answer(w, a);
    pthread_mutex_lock(&w->lock);
    w->counts.n_drawn = w->n_live + w->n_preparing;
    w->counts.n_tokens += a->n_drawn; /* not one by one: their pace may depend on records */
    answer_end(a, why);
    answer_drop(a);
    pthread_mutex_unlock(&w->lock);
}

static void begin_answer(worker *w, answer *a) {
    dpi_error err;
    refusal why = a->failure;
    if (!why.http && create_generation(w, a, &err) != DPI_STATUS_OK)
        refuse_error(&why, &err);
    if (why.http)
        end_answer(w, a, &why);
    else
        w->live[w->n_live++] = a;
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* With the lock held: the first answer that waits, where there is room for it; else NULL. */
static answer *find_room(worker *w) {
    answer *a = w->first;
    if (!a || w->n_live + w->n_preparing >= w->options.n_parallel)
        return NULL;
    const int32_t seq = find_sequences(w, a->n_seq);
    if (seq < 0)
        return NULL;
    a->first_seq = seq;
    mark_sequences(w, a, true);
    w->first = a->next;
    if (!w->first)
        w->last = &w->first;
    w->n_preparing += a->prepare != NULL;
    w->counts.n_waiting--;
    w->counts.n_drawn++;
    w->counts.n_answers++;
    w->counts.n_prompt_tokens += (int64_t)a->n_tokens;
    return a;
}

/* The same: one that is prepared. */
static answer *find_prepared(worker *w) {
    answer *a = w->prepared;
    if (a) {
        w->prepared = a->next;
        w->n_preparing--;
    }
    return a;
}

/* With the lock held. */
static void wait_for_change(worker *w) {
    struct timespec end;
    if (w->has_rested || !w->options.at_rest) {
        pthread_cond_wait(&w->changed, &w->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += REST_NANOSECONDS;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&w->changed, &w->lock, &end) == 0)
        return;
    w->has_rested = true;
    pthread_mutex_unlock(&w->lock);
    w->options.at_rest();
    pthread_mutex_lock(&w->lock);
}

/* What the thread does next: *a, if not NULL, has room, and is begun or else prepared. Answers get
 * room in the order in which they came. Waits where there is nothing to do; false where there never
 * will be. */
static bool next_answer(worker *w, answer **a, bool *is_prepared) {
    pthread_mutex_lock(&w->lock);
    for (;;) {
        *a = find_prepared(w);
        *is_prepared = *a != NULL;
        if (!*a)
            *a = find_room(w);
        if (*a || w->n_live > 0 || (w->is_stopping && w->n_preparing == 0 && !w->first))
            break;
        wait_for_change(w);
    }
    w->has_rested = w->has_rested && !*a;
    const bool goes_on = *a || w->n_live > 0;
    pthread_mutex_unlock(&w->lock);
    return goes_on;
}

void worker_prepared(worker *w, answer *a, const refusal *why) {
    pthread_mutex_lock(&w->lock);
    if (why)
        a->failure = *why;
    a->next = w->prepared;
    w->prepared = a;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* False: no memory for the text. */
static bool tell(answer *a, const dpi_generation_event *e) {
    if (e->type == DPI_EVENT_TOKEN)
        a->n_drawn = e->n_drawn;
    if (e->end != DPI_END_NONE)
        a->end = e->end;
    const bool ok = add_text(a, e->text, e->n_bytes);
    if (ok && e->n_bytes > 0)
        answer_wake(a);
    return ok;
}

/* What a pass did. Answers that are over leave. */
static void tell_all(worker *w, const dpi_error *err) {
    const dpi_error no_memory = {.code = DPI_STATUS_MEMORY, .message = "no memory for an answer"};
    for (int32_t i = w->n_live - 1; i >= 0; i--) {
        const dpi_generation_event *e = &w->events[i];
        dpi_error why = *err;
        why.code = e->status;
        pthread_mutex_lock(&w->lock);
        const bool ok = e->type == DPI_EVENT_ERROR || tell(w->live[i], e);
        pthread_mutex_unlock(&w->lock);
        if (e->type == DPI_EVENT_PROMPT && e->n_read == e->n_prompts)
            keep_prompts(w, w->live[i]);
        if (ok && e->type != DPI_EVENT_END && e->type != DPI_EVENT_ERROR)
            continue;
        answer *over = w->live[i];
        refusal failure;
        w->live[i] = w->live[--w->n_live];
        if (!ok || e->type == DPI_EVENT_ERROR)
            refuse_error(&failure, ok ? &why : &no_memory);
        end_answer(w, over, !ok || e->type == DPI_EVENT_ERROR ? &failure : NULL);
    }
}

/* Nobody waits for these. */
static void cancel_left(worker *w) {
    pthread_mutex_lock(&w->lock);
    for (int32_t i = 0; i < w->n_live; i++)
        if (w->live[i]->is_left)
            dpi_generation_cancel(w->live[i]->generation);
    pthread_mutex_unlock(&w->lock);
}

static void pass(worker *w) {
    dpi_error err = {0};
    cancel_left(w);
    for (int32_t i = 0; i < w->n_live; i++)
        w->generations[i] = w->live[i]->generation;
    dpi_status status = dpi_generation_advance(w->generations, w->n_live, w->events, &err);
    (void)status; /* the events have those of all */
    tell_all(w, &err);
}

static void *draw_answers(void *user) {
    worker *w = user;
    answer *a;
    bool is_prepared;
    while (next_answer(w, &a, &is_prepared)) {
        if (!a) {
            pass(w);
        } else if (a->prepare && !is_prepared) {
            a->prepare(a->owner);
        } else {
            begin_answer(w, a);
        }
    }
    return NULL;
}

/* ---- From outside ---------------------------------------------------------------------------- */

bool worker_submit(worker *w, answer *a, refusal *why) {
    bool ok = false;
    pthread_mutex_lock(&w->lock);
    if (w->is_stopping) {
        refuse(why, 503, NULL, "the server stops");
    } else if (w->counts.n_waiting + w->counts.n_drawn >=
               w->options.n_waiting + w->options.n_parallel) {
        refuse(why, 503, NULL, "%d answers are drawn and %d requests wait already",
               (int)w->counts.n_drawn, (int)w->counts.n_waiting);
    } else {
        a->n_owners++;
        *w->last = a;
        w->last = &a->next;
        w->counts.n_waiting++;
        pthread_cond_signal(&w->changed);
        ok = true;
    }
    pthread_mutex_unlock(&w->lock);
    return ok;
}

void worker_count(worker *w, worker_counts *counts) {
    pthread_mutex_lock(&w->lock);
    *counts = w->counts;
    pthread_mutex_unlock(&w->lock);
}

static dpi_status find_memory(worker *w, const dpi_session_options *session, dpi_error *err) {
    const dpi_model *model = w->options.model;
    dpi_model_info info;
    dpi_session_options search = w->options.session;
    uint64_t idle, most, searching = 0;
    dpi_model_info_init(&info);
    dpi_status status = dpi_model_info_get(model, &info, err);
    const int32_t n_ctx = session->n_ctx > 0 ? session->n_ctx : info.n_ctx_train;
    if (status == DPI_STATUS_OK)
        status = dpi_session_memory(model, session, 0, 0, &idle, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_memory(model, session, n_ctx, 0, &most, err);
    search.n_seq = w->options.n_searching;
    if (status == DPI_STATUS_OK && search.n_seq > 0)
        status = dpi_session_memory(model, &search, n_ctx, 0, &searching, err);
    if (status != DPI_STATUS_OK)
        return status;
    const uint64_t now = w->options.n_bytes;
    const int64_t more = session->n_kept > 0 ? w->options.kept_bytes : 0;
    w->memory = (worker_memory){(int64_t)(now + idle), more,
                                (int64_t)(now + most + searching) + more};
    return DPI_STATUS_OK;
}

dpi_status worker_create(const worker_options *options, worker **made, dpi_error *err) {
    worker *w = calloc(1, sizeof *w);
    *made = w;
    if (!w)
        goto no_memory;
    w->options = *options;
    w->last = &w->first;
    w->n_seq = options->n_parallel * options->n_seq_most;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->live = calloc((size_t)options->n_parallel, sizeof *w->live);
    w->generations = calloc((size_t)options->n_parallel, sizeof *w->generations);
    w->events = calloc((size_t)options->n_parallel, sizeof *w->events);
    w->is_used = calloc((size_t)w->n_seq, sizeof *w->is_used);
    if (!w->live || !w->generations || !w->events || !w->is_used)
        goto no_memory;
    dpi_session_options session = options->session;
    session.n_seq = w->n_seq;
    dpi_status status = kept_count(options->model, &session, options->kept_bytes,
                                   options->n_records, &session.n_kept, err);
    if (status == DPI_STATUS_OK)
        status = find_memory(w, &session, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_create(options->model, &session, &w->session, err);
    if (status == DPI_STATUS_OK && session.n_kept > 0)
        status = kept_create(w->session, options->model, &session, options->kept_bytes, &w->kept,
                             err);
    if (status != DPI_STATUS_OK)
        return status;
    w->has_thread = pthread_create(&w->thread, NULL, draw_answers, w) == 0;
    if (w->has_thread)
        return DPI_STATUS_OK;
    *err = (dpi_error){.code = DPI_STATUS_SYSTEM,
                       .message = "the system starts no thread for answers"};
    return DPI_STATUS_SYSTEM;
no_memory:
    *err = (dpi_error){.code = DPI_STATUS_MEMORY, .message = "no memory for answers"};
    return DPI_STATUS_MEMORY;
}

worker_memory worker_memory_get(const worker *w) { return w->memory; }
int32_t worker_n_ctx(const worker *w) { return dpi_session_n_ctx(w->session); }

void worker_stop(worker *w) {
    refusal why;
    refuse(&why, 503, NULL, "the server stops");
    pthread_mutex_lock(&w->lock);
    w->is_stopping = true;
    for (answer *a = w->first, *next; a; a = next) {
        next = a->next;
        answer_end(a, &why);
        answer_drop(a);
    }
    w->first = NULL;
    w->last = &w->first;
    w->counts.n_waiting = 0;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void worker_join(worker *w) {
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    w->has_thread = false;
}

void worker_free(worker *w) {
    if (!w)
        return;
    kept_free(w->kept);
    dpi_session_free(w->session);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w->live);
    free(w->generations);
    free(w->events);
    free(w->is_used);
    free(w);
}
