/* release.c - the texts of a release, one after the other; see dpinfer/release.h. */
#include "pipeline/release/release.h"

#include <stdlib.h>

#include "base/status.h"

/* ---- Begin ----------------------------------------------------------------------------------- */

static int32_t ask_cancelled(void *user) { return dpi_release_is_cancelled(user); }

/* The slots of a session and its sampler are those of the largest batch. */
static dpi_status make_engine(dpi_release *r, dpi_error *err) {
    const bool plain = r->claim.method.method == DPI_METHOD_PLAIN;
    dpi_session_options session = r->options.session;
    session.n_seq = plain ? 1 : (int32_t)r->n_slots + 1;
    session.cancel = ask_cancelled;
    session.cancel_user = r;
    DPI_TRY(dpi_session_create(r->options.model, &session, &r->session, err));
    if (r->sampler)
        return DPI_STATUS_OK;
    dpi_sampler_options sampler = r->claim.method;
    sampler.n_ref = dpi_release_n_ref(r);
    sampler.random = r->options.method.random;
    sampler.random_user = r->options.method.random_user;
    return dpi_sampler_create(&sampler, &r->sampler, err);
}

/* Keeps what every further call returns. */
static dpi_status keep_failure(dpi_release *r, dpi_status status, const dpi_error *why) {
    r->failure = *why;
    r->failure.code = status;
    return status;
}

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
    r->begun = true;
    dpi_status status = dpi_release_make_batches(r, &why);
    if (status == DPI_STATUS_OK)
        status = make_engine(r, &why);
    if (status == DPI_STATUS_OK)
        return status;
    if (!dpi_claim_is_assigned(&r->claim))
        dpi_release_give_back(r); /* records by position are read with their texts */
    keep_failure(r, status, &why);
    return tell_failure(r, err);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* A plain text continues the public prompt, or the private prompt of one record. */
static dpi_status start_text(dpi_release *r, dpi_error *err) {
    const bool plain = r->claim.method.method == DPI_METHOD_PLAIN;
    DPI_TRY(dpi_release_load_batch(r, r->index, err));
    dpi_generation_options o;
    dpi_generation_options_init(&o);
    o.session = r->session;
    o.sampler = r->sampler;
    o.text = 1;
    o.public_tokens = dpi_prompts_public(r->prompts);
    o.n_public = (size_t)r->prompts_info.n_public;
    if (plain && r->claim.record_in_prompt) {
        o.public_tokens = r->tokens[0];
        o.n_public = r->n_tokens[0];
    } else if (!plain) {
        o.reference_tokens = (const int32_t *const *)r->tokens;
        o.n_reference_tokens = r->n_tokens;
        o.n_ref = dpi_release_n_ref(r);
        o.n_prefix = (size_t)r->prompts_info.n_prefix;
    }
    r->n_drawn = 0;
    return dpi_generation_create(&o, &r->generation, err);
}

static void end_text(dpi_release *r) {
    if (r->claim.method.method != DPI_METHOD_PLAIN)
        dpi_release_drop_batch(r);
    r->index++;
    r->ended = true;
}

/* The generation goes before the next one comes: until then its text is the event's. */
static void free_ended(dpi_release *r) {
    if (!r->ended)
        return;
    dpi_generation_free(r->generation);
    r->generation = NULL;
    r->ended = false;
}

static void fill_event(const dpi_release *r, const dpi_generation_event *e,
                       dpi_release_event *event) {
    const bool secret = dpi_claim_is_assigned(&r->claim);
    *event = (dpi_release_event){.type = e->type, .index = r->index, .token = e->token,
                                 .n_read = secret ? 0 : e->n_read,
                                 .n_prompts = secret ? 0 : e->n_prompts, .n_drawn = e->n_drawn,
                                 .end = e->end, .text = e->text, .n_bytes = e->n_bytes};
}

/* A failure ends the text. If a token of it is released, its END comes out. */
static dpi_status stop_text(dpi_release *r, dpi_status status, const dpi_error *why,
                            dpi_release_event *event, dpi_error *err) {
    dpi_generation_event e = {.text = ""};
    keep_failure(r, status, why);
    if (!r->generation || r->n_drawn == 0)
        return tell_failure(r, err);
    dpi_generation_cancel(r->generation);
    if (dpi_generation_advance(&r->generation, 1, &e, NULL) != DPI_STATUS_OK)
        return tell_failure(r, err);
    fill_event(r, &e, event);
    return DPI_STATUS_OK;
}

static dpi_status advance_text(dpi_release *r, dpi_generation_event *e, dpi_error *err) {
    if (dpi_release_is_cancelled(r))
        return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled");
    if (!r->generation)
        DPI_TRY(start_text(r, err));
    return dpi_generation_advance(&r->generation, 1, e, err);
}

dpi_status dpi_release_advance(dpi_release *r, dpi_release_event *event, dpi_error *err) {
    dpi_generation_event e = {.text = ""};
    dpi_error why;
    if (!r->begun)
        DPI_TRY(dpi_release_begin(r, err));
    if (r->failure.code != DPI_STATUS_OK)
        return tell_failure(r, err);
    free_ended(r);
    if (r->index == r->claim.n_texts) {
        *event = (dpi_release_event){.type = DPI_EVENT_NONE, .index = r->index, .token = -1,
                                     .text = ""};
        return DPI_STATUS_OK;
    }
    dpi_status status = advance_text(r, &e, &why);
    if (status != DPI_STATUS_OK)
        return stop_text(r, status, &why, event, err);
    fill_event(r, &e, event);
    r->n_drawn = e.n_drawn;
    if (e.type == DPI_EVENT_END)
        end_text(r);
    return DPI_STATUS_OK;
}

void dpi_release_cancel(dpi_release *r) { atomic_store(&r->cancelled, 1); }

int64_t dpi_release_null_records(const dpi_release *r) {
    const bool units = r->claim.method.max_per_unit > 0; /* how many records they have is theirs */
    return dpi_claim_is_assigned(&r->claim) || units ? -1 : r->n_null;
}

void dpi_release_free(dpi_release *r) {
    if (!r)
        return;
    if (!r->begun)
        dpi_release_give_back(r);
    dpi_generation_free(r->generation);
    dpi_release_free_batches(r);
    dpi_sampler_free(r->sampler);
    dpi_session_free(r->session);
    dpi_prompts_free(r->prompts);
    free(r);
}
