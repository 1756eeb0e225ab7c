/* release.c - the events of a release, see dpinfer/release.h. */
#include "pipeline/release/release.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"

static dpi_status tell_failure(const dpi_release *r, dpi_error *err) {
    if (err)
        *err = r->failure;
    return (dpi_status)r->failure.code;
}

dpi_status dpi_release_begin(dpi_release *r, dpi_error *err) {
    dpi_error why;
    if (r->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "the release has begun already");
    if (!r->options.records && r->claim.record_in_prompt)
        return dpi_fail(err, DPI_STATUS_STATE, "the release has no records: it is a plan");
    DPI_TRY(dpi_release_reserve(r, err)); /* on the disk before a record is read */
    DPI_TRY(dpi_release_begin_job(r, err));
    r->begun = true;
    dpi_status status = dpi_release_check_records(r, &why);
    if (status == DPI_STATUS_OK)
        status = dpi_release_make_batches(r, &why);
    if (status == DPI_STATUS_OK)
        status = dpi_release_make_places(r, &why);
    if (status == DPI_STATUS_OK)
        return status;
    if (!dpi_claim_is_assigned(&r->claim) && !r->options.journal)
        dpi_release_give_back(r); /* records by position are read with their texts */
    r->failure = why;
    r->failure.code = status;
    return tell_failure(r, err);
}

/* How many prompts a text has, and how many of them are read, is told where it is public. */
static void tell_prompt(const dpi_release *r, const dpi_release_text *text,
                        dpi_release_event *event) {
    const bool secret = dpi_claim_is_assigned(&r->claim);
    *event = (dpi_release_event){.type = DPI_EVENT_PROMPT, .index = text->index, .token = -1,
                                 .n_read = secret ? 0 : text->n_read,
                                 .n_prompts = secret ? 0 : text->n_prompts, .text = ""};
}

dpi_status dpi_release_advance(dpi_release *r, dpi_release_event *event, dpi_error *err) {
    if (!r->begun)
        DPI_TRY(dpi_release_begin(r, err));
    dpi_release_drop_told(r);
    for (;;) {
        if (dpi_release_tell(r, event))
            return DPI_STATUS_OK;
        if (!r->texts && r->failure.code != DPI_STATUS_OK)
            return tell_failure(r, err);
        if (!r->texts && dpi_release_is_last(r)) {
            *event = (dpi_release_event){
                .type = DPI_EVENT_NONE, .index = r->claim.n_texts, .token = -1, .text = ""};
            return DPI_STATUS_OK;
        }
        if (dpi_release_waits(r)) {
            dpi_release_wait(r);
            continue;
        }
        const dpi_release_text *reading = dpi_release_pass(r);
        if (reading && !dpi_release_has_event(r)) {
            tell_prompt(r, reading, event);
            return DPI_STATUS_OK;
        }
    }
}

void dpi_release_cancel(dpi_release *r) { atomic_store(&r->cancelled, 1); }

/* Whether the operator may be told how many records are of a kind. */
static bool is_count_told(const dpi_release *r) {
    const bool units = r->claim.method.max_per_unit > 0; /* how many records they have is theirs */
    return !dpi_claim_is_assigned(&r->claim) && !units;
}

int64_t dpi_release_null_records(const dpi_release *r) {
    return is_count_told(r) ? r->n_null : -1;
}

void dpi_release_progress_init(dpi_release_progress *progress) {
    *progress = (dpi_release_progress){.struct_size = sizeof *progress};
}

dpi_status dpi_release_progress_get(const dpi_release *r, dpi_release_progress *progress,
                                    dpi_error *err) {
    if (progress->struct_size != sizeof *progress)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "dpi_release_progress: struct_size is %zu, must be %zu",
                        progress->struct_size, sizeof *progress);
    const bool secret = dpi_claim_is_assigned(&r->claim);
    const int64_t n_prompts = (int64_t)dpi_release_n_texts(r) * r->options.session.n_seq;
    int64_t n_left = (int64_t)(dpi_release_n_texts(r) - r->n_ended) * r->claim.method.n_tokens;
    for (const dpi_release_text *t = r->texts; t; t = t->next)
        n_left -= t->place ? t->n_drawn : 0;
    *progress = (dpi_release_progress){.struct_size = sizeof *progress,
                                       .n_texts = dpi_release_n_texts(r),
                                       .n_begun = r->n_begun,
                                       .n_ended = r->n_ended,
                                       .n_prompts = secret ? 0 : n_prompts,
                                       .n_read = secret ? 0 : r->n_read,
                                       .n_drawn = r->n_drawn,
                                       .n_tokens_left = n_left};
    return DPI_STATUS_OK;
}

int32_t dpi_release_label_index(const dpi_release *r, int32_t text) {
    return r->labels.n > 0 ? dpi_labels_of_text(&r->labels, text) : -1;
}

const dpi_prompts *dpi_release_prompts(const dpi_release *r, int32_t label) {
    return r->prompts[label >= 0 && r->n_prompts > 1 ? label : 0];
}

void dpi_release_label(const dpi_release *r, int32_t index, const char **label, size_t *n_bytes) {
    const dpi_span none = {NULL, 0};
    const int32_t i = r->begun ? dpi_release_label_index(r, index) : -1;
    const dpi_span *name = i >= 0 ? &r->labels.names.at[i] : &none;
    *label = name->data;
    *n_bytes = name->n_bytes;
}

void dpi_release_free(dpi_release *r) {
    if (!r)
        return;
    if (!r->begun)
        dpi_release_give_back(r);
    dpi_release_end_ledger(r, r->begun || dpi_release_goes_on(r));
    dpi_release_free_texts(r);
    dpi_release_free_batches(r);
    dpi_sampler_free(r->sampler);
    dpi_session_free(r->session);
    dpi_wipe(&r->keyed, sizeof r->keyed);
    for (int32_t i = 0; i < r->n_prompts; i++)
        dpi_prompts_free(r->prompts[i]);
    free(r->prompts);
    dpi_labels_free(&r->labels);
    free(r);
}
