/* batches.c - the records of a release as batches of prompts. All of it is private.
 *
 * A record is read once, and stays what it was when it was read: where its content says which batch
 * it goes to, its prompt is kept from then on, so that a file that changes meanwhile changes no
 * batch. Otherwise it is read when its text is drawn. A prompt is wiped after its text. */
#include <stdlib.h>

#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/release/release.h"

enum { MAX_SLOTS = 4096 }; /* sequences of a session, less the public one */

bool dpi_release_is_cancelled(const dpi_release *r) {
    const dpi_session_options *o = &r->options.session;
    return atomic_load(&r->cancelled) || (o->cancel && o->cancel(o->cancel_user));
}

/* Reads record i, to its prompt (NULL: null), and to its batch if there is one to find. */
static dpi_status read_record(dpi_release *r, size_t i, bool assign, dpi_prompt *prompt,
                              dpi_error *err) {
    char *text;
    size_t n_bytes;
    int32_t batch;
    *prompt = (dpi_prompt){0};
    if (dpi_release_is_cancelled(r))
        return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while records are read");
    DPI_TRY(dpi_records_read(r->options.records, i, &text, &n_bytes, err));
    dpi_status status = DPI_STATUS_OK;
    if (assign)
        status = dpi_partition_assign(r->partition, i, text, n_bytes, &batch, err);
    if (status == DPI_STATUS_OK && text)
        status = dpi_prompts_encode(r->prompts, text, n_bytes, &prompt->tokens, &prompt->n_tokens,
                                    err);
    dpi_private_free(text);
    r->n_null += status == DPI_STATUS_OK && !prompt->tokens;
    return status;
}

/* ---- Which records make up which batch ------------------------------------------------------- */

static dpi_status keep_prompts(dpi_release *r, size_t n_records, dpi_error *err) {
    r->kept = dpi_private_malloc(n_records * sizeof *r->kept);
    if (!r->kept)
        return dpi_fail(err, DPI_STATUS_MEMORY, "out of memory for the prompts of the records");
    for (; r->n_kept < n_records; r->n_kept++)
        DPI_TRY(read_record(r, r->n_kept, true, &r->kept[r->n_kept], err));
    return DPI_STATUS_OK;
}

static dpi_status draw_batches(dpi_release *r, size_t n_records, dpi_error *err) {
    int32_t batch;
    for (size_t i = 0; i < n_records; i++)
        DPI_TRY(dpi_partition_assign(r->partition, i, NULL, 0, &batch, err));
    return DPI_STATUS_OK;
}

static dpi_status make_partition(dpi_release *r, dpi_error *err) {
    const dpi_sampler_options *m = &r->claim.method;
    const dpi_partition_options o = {
        .n_batches = r->claim.n_texts,
        .n_slots = m->denominator,
        .by_content = m->adjacency == DPI_ADJACENCY_ADD_REMOVE,
        .subsample = m->subsample,
        .random = r->options.method.random,
        .random_user = r->options.method.random_user,
    };
    const size_t n_records = dpi_records_count(r->options.records);
    DPI_TRY(dpi_partition_create(&o, n_records, &r->partition, err));
    if (!dpi_partition_is_assigned(r->partition))
        return DPI_STATUS_OK;
    DPI_TRY(o.subsample > 0 ? draw_batches(r, n_records, err) : keep_prompts(r, n_records, err));
    return dpi_partition_index(r->partition, err);
}

dpi_status dpi_release_make_batches(dpi_release *r, dpi_error *err) {
    r->n_slots = r->claim.record_in_prompt; /* plain: one record, or none */
    if (r->claim.method.method != DPI_METHOD_PLAIN) {
        DPI_TRY(make_partition(r, err));
        r->n_slots = dpi_partition_largest(r->partition);
    }
    if (r->n_slots > MAX_SLOTS) /* how many is secret */
        return dpi_fail(err, DPI_STATUS_LIMIT, "a batch has more than %d records: n_texts must be "
                                               "larger", MAX_SLOTS);
    r->tokens = calloc(r->n_slots + 1, sizeof *r->tokens);
    r->n_tokens = calloc(r->n_slots + 1, sizeof *r->n_tokens);
    if (!r->tokens || !r->n_tokens)
        return dpi_fail(err, DPI_STATUS_MEMORY, "out of memory for the prompts of a batch");
    return DPI_STATUS_OK;
}

void dpi_release_free_batches(dpi_release *r) {
    dpi_release_drop_batch(r);
    for (size_t i = 0; i < r->n_kept; i++)
        dpi_private_free(r->kept[i].tokens);
    dpi_private_free(r->kept);
    dpi_partition_free(r->partition);
    free(r->tokens);
    free(r->n_tokens);
}

/* ---- One batch ------------------------------------------------------------------------------- */

/* Record i into a slot: the kept prompt, or a fresh one. */
static dpi_status fill_slot(dpi_release *r, size_t slot, size_t i, dpi_error *err) {
    dpi_prompt prompt;
    if (r->kept) {
        prompt = r->kept[i];
        r->kept[i] = (dpi_prompt){0};
    } else {
        DPI_TRY(read_record(r, i, false, &prompt, err));
    }
    r->tokens[slot] = prompt.tokens;
    r->n_tokens[slot] = prompt.n_tokens;
    return DPI_STATUS_OK;
}

/* The one record of a plain release, for all of its texts. */
static dpi_status load_reference(dpi_release *r, dpi_error *err) {
    if (r->options.reference < 0 || r->tokens[0])
        return DPI_STATUS_OK;
    DPI_TRY(fill_slot(r, 0, (size_t)r->options.reference, err));
    return r->tokens[0] ? DPI_STATUS_OK
                        : dpi_fail(err, DPI_STATUS_FORMAT,
                                   "reference: the record is empty or unreadable");
}

dpi_status dpi_release_load_batch(dpi_release *r, int32_t index, dpi_error *err) {
    if (r->claim.method.method == DPI_METHOD_PLAIN)
        return load_reference(r, err);
    dpi_batch batch;
    dpi_partition_batch(r->partition, index, &batch);
    for (size_t slot = 0; slot < batch.n_records; slot++)
        DPI_TRY(fill_slot(r, slot, batch.records ? batch.records[slot] : batch.first + slot, err));
    return DPI_STATUS_OK;
}

void dpi_release_drop_batch(dpi_release *r) {
    for (size_t slot = 0; slot < r->n_slots && r->tokens && r->n_tokens; slot++) {
        dpi_private_free(r->tokens[slot]);
        r->tokens[slot] = NULL;
        r->n_tokens[slot] = 0;
    }
}
