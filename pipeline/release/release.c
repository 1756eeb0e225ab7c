/* release.c - a release from its open to its end: the order in which its four objects do their
 * part. The charge is on the disk before a record is read. See release.h. */
#include "pipeline/release/release.h"

#include <stdlib.h>

#include "base/status.h"
#include "base/struct.h"
#include "base/text.h"
#include "pipeline/release/prompts_json.h"

/* ---- Open ------------------------------------------------------------------------------------ */

static int32_t is_cancelled(void *user) {
    const dpi_release *r = user;
    return atomic_load(&r->cancelled) || (r->cancel && r->cancel(r->cancel_user));
}

dpi_status dpi_release_open(const dpi_release_options *options, dpi_release **release,
                            dpi_error *err) {
    DPI_COPY_STRUCT(dpi_release_options, o, options, err);
    dpi_release *r = calloc(1, sizeof *r);
    if (!r)
        return dpi_no_memory(err, "a release");
    r->cancel = o.session.cancel;
    r->cancel_user = o.session.cancel_user;
    o.session.cancel = is_cancelled;
    o.session.cancel_user = r;
    const dpi_status status = dpi_plan_make(&o, &r->plan, err);
    if (status != DPI_STATUS_OK) {
        free(r);
        return status;
    }
    dpi_books_open(&r->books, &r->plan);
    dpi_source_init(&r->source, &r->plan);
    dpi_texts_init(&r->texts, &r->plan, &r->source, &r->books);
    *release = r;
    return DPI_STATUS_OK;
}

const dpi_run *dpi_release_run(const dpi_release *r) { return &r->books.claim; }

const dpi_wording *dpi_release_wording(const dpi_release *r) {
    return dpi_word_rules_wording(r->plan.rules);
}

const dpi_pace_texts *dpi_release_public_texts(const dpi_release *r) {
    return r->plan.public_texts;
}

dpi_status dpi_release_plan_get(const dpi_release *r, dpi_release_plan *plan, dpi_error *err) {
    return dpi_plan_needs(&r->plan, plan, err);
}

void dpi_release_cancel(dpi_release *r) { atomic_store(&r->cancelled, 1); }

void dpi_release_free(dpi_release *r) {
    if (!r)
        return;
    if (!r->books.begun)
        dpi_books_give_back(&r->books);
    dpi_books_end_ledger(&r->books, r->books.begun || dpi_books_goes_on(&r->books));
    dpi_texts_free(&r->texts);
    dpi_source_free(&r->source);
    dpi_plan_free(&r->plan);
    free(r);
}

/* ---- Groups of similar records --------------------------------------------------------------- */

static dpi_status read_public_texts(const dpi_release *r, dpi_release *plain, dpi_groups *groups,
                                    dpi_error *err) {
    dpi_text text = {0};
    dpi_status status = DPI_STATUS_OK;
    for (dpi_release_event e = {.type = DPI_EVENT_PROMPT};
         status == DPI_STATUS_OK && e.type != DPI_EVENT_NONE;) {
        status = dpi_plan_check_cancelled(&r->plan, "public texts are drawn", err);
        if (status == DPI_STATUS_OK)
            status = dpi_release_advance(plain, &e, err);
        if (status == DPI_STATUS_OK && (e.type == DPI_EVENT_TOKEN || e.type == DPI_EVENT_END))
            dpi_text_put(&text, e.text, e.n_bytes);
        if (status == DPI_STATUS_OK && e.type == DPI_EVENT_END) {
            status = text.failed ? dpi_no_memory(err, "public texts")
                                 : dpi_groups_add(groups, text.data ? text.data : "", text.n_bytes,
                                                  err);
            text.n_bytes = 0;
        }
    }
    free(text.data);
    return status;
}

static dpi_status add_public_texts(const dpi_release *r, dpi_groups *groups, dpi_error *err) {
    dpi_release_options o;
    dpi_release *plain;
    dpi_groups_texts(&r->plan, &o);
    DPI_TRY(dpi_release_open(&o, &plain, err));
    const dpi_status status = read_public_texts(r, plain, groups, err);
    dpi_release_free(plain);
    return status;
}

/* Before a record is read. *groups NULL: there are none. */
static dpi_status find_groups(const dpi_release *r, dpi_groups **groups, dpi_error *err) {
    *groups = NULL;
    if (r->plan.options.n_clusters == 0)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_groups_open(&r->plan, groups, err));
    DPI_TRY(add_public_texts(r, *groups, err));
    return dpi_groups_find(*groups, err);
}

/* ---- Begin ----------------------------------------------------------------------------------- */

dpi_status dpi_release_reserve(dpi_release *r, dpi_error *err) {
    uint8_t *pays;
    DPI_TRY(dpi_books_reserve(&r->books, &pays, err));
    if (pays)
        dpi_source_set_payers(&r->source, pays);
    return DPI_STATUS_OK;
}

dpi_status dpi_release_preview(dpi_release *r, dpi_error *err) {
    return dpi_books_preview(&r->books, err);
}

static dpi_status tell_failure(const dpi_release *r, dpi_error *err) {
    if (err)
        *err = r->texts.failure;
    return (dpi_status)r->texts.failure.code;
}

/* Records may be read. */
static dpi_status open_texts(dpi_release *r, dpi_error *err) {
    dpi_groups *groups;
    DPI_TRY(dpi_books_check_records(&r->books, err));
    dpi_status status = find_groups(r, &groups, err);
    if (status == DPI_STATUS_OK)
        status = dpi_source_open(&r->source, &r->books, groups, err);
    dpi_groups_free(groups);
    DPI_TRY(status);
    return dpi_texts_open(&r->texts, err);
}

dpi_status dpi_release_begin(dpi_release *r, dpi_error *err) {
    dpi_error why;
    if (r->books.begun)
        return dpi_fail(err, DPI_STATUS_STATE, "the release has begun already");
    if (!r->plan.options.records && r->plan.claim.record_in_prompt)
        return dpi_fail(err, DPI_STATUS_STATE, "the release has no records: it is a plan");
    DPI_TRY(dpi_release_reserve(r, err)); /* on the disk before a record is read */
    DPI_TRY(dpi_books_begin_job(&r->books, err));
    r->books.begun = true;
    const dpi_status status = open_texts(r, &why);
    if (status == DPI_STATUS_OK)
        return status;
    if (!dpi_run_is_assigned(&r->plan.claim) && !r->plan.options.journal)
        dpi_books_give_back(&r->books); /* records by position are read with their texts */
    r->texts.failure = why;
    r->texts.failure.code = status;
    return tell_failure(r, err);
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* How many prompts a text has, and how many of them are read, is told where it is public. */
static void tell_prompt(const dpi_release *r, const dpi_release_text *text,
                        dpi_release_event *event) {
    const bool secret = dpi_run_is_assigned(&r->plan.claim);
    *event = (dpi_release_event){.type = DPI_EVENT_PROMPT, .index = text->index, .token = -1,
                                 .n_read = secret ? 0 : text->n_read,
                                 .n_prompts = secret ? 0 : text->n_prompts, .text = ""};
}

dpi_status dpi_release_advance(dpi_release *r, dpi_release_event *event, dpi_error *err) {
    if (!r->books.begun)
        DPI_TRY(dpi_release_begin(r, err));
    dpi_texts_drop_told(&r->texts);
    for (;;) {
        if (dpi_texts_tell(&r->texts, event))
            return DPI_STATUS_OK;
        if (!r->texts.first && r->texts.failure.code != DPI_STATUS_OK)
            return tell_failure(r, err);
        if (!r->texts.first && dpi_texts_is_last(&r->texts)) {
            *event = (dpi_release_event){
                .type = DPI_EVENT_NONE, .index = r->plan.claim.n_texts, .token = -1, .text = ""};
            return DPI_STATUS_OK;
        }
        if (dpi_texts_waits(&r->texts)) {
            dpi_texts_wait(&r->texts);
            continue;
        }
        const dpi_release_text *reading = dpi_texts_pass(&r->texts);
        if (reading && !dpi_texts_has_event(&r->texts)) {
            tell_prompt(r, reading, event);
            return DPI_STATUS_OK;
        }
    }
}

/* Whether the operator may be told how many records are of a kind. */
static bool is_count_told(const dpi_release *r) {
    const dpi_run *c = &r->plan.claim;
    const bool units = c->method.max_per_unit > 0; /* how many records they have is theirs */
    return !dpi_run_is_assigned(c) && !units;
}

int64_t dpi_release_null_records(const dpi_release *r) {
    return is_count_told(r) ? r->source.n_null : -1;
}

DPI_STRUCT_DEFAULTS(dpi_release_progress, 0)

dpi_status dpi_release_progress_get(const dpi_release *r, dpi_release_progress *progress,
                                    dpi_error *err) {
    DPI_CHECK_STRUCT(dpi_release_progress, progress, err);
    const bool secret = dpi_run_is_assigned(&r->plan.claim);
    const int32_t n_texts = dpi_plan_n_texts(&r->plan);
    const int64_t n_prompts = (int64_t)n_texts * r->plan.options.session.n_seq;
    int64_t n_left = (int64_t)(n_texts - r->texts.n_ended) * r->plan.claim.method.n_tokens;
    for (const dpi_release_text *t = r->texts.first; t; t = t->next)
        n_left -= t->place ? t->n_drawn : 0;
    const dpi_release_progress made = {.n_texts = n_texts,
                                       .n_begun = r->texts.n_begun,
                                       .n_ended = r->texts.n_ended,
                                       .n_prompts = secret ? 0 : n_prompts,
                                       .n_read = secret ? 0 : r->texts.n_read,
                                       .n_drawn = r->texts.n_drawn,
                                       .n_tokens_left = n_left};
    dpi_struct_give(progress, &made, sizeof made);
    return DPI_STATUS_OK;
}

dpi_status dpi_release_prompts(const dpi_release *r, char **json, dpi_error *err) {
    return dpi_plan_prompts_json(&r->plan, json, err);
}

void dpi_release_label(const dpi_release *r, int32_t index, const char **label, size_t *n_bytes) {
    const dpi_span none = {NULL, 0};
    const int32_t i = r->books.begun ? dpi_source_label(&r->source, index) : -1;
    const dpi_span *name = i >= 0 ? &r->source.labels.names.at[i] : &none;
    *label = name->data;
    *n_bytes = name->n_bytes;
}
