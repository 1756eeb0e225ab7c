/* batches.c - the records of a release as batches of prompts. All of it is private.
 *
 * A record is read once, and stays what it was when it was read: where its content says which batch
 * it goes to, its prompt is kept from then on, so that a file that changes meanwhile changes no
 * batch. Otherwise it is read when its text is drawn. A prompt is wiped after its text. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dp/exact/noise.h"
#include "dpinfer/memory.h"
#include "pipeline/release/release.h"

bool dpi_release_is_cancelled(const dpi_release *r) {
    const dpi_session_options *o = &r->options.session;
    return atomic_load(&r->cancelled) || (o->cancel && o->cancel(o->cancel_user));
}

static size_t per_unit(const dpi_release *r) {
    return r->claim.method.max_per_unit > 0 ? (size_t)r->claim.method.max_per_unit : 1;
}

int32_t dpi_release_n_ref(const dpi_release *r) { return (int32_t)(r->n_slots / per_unit(r)); }

/* The label of a unit; -1: there are no labels, or it is in no text. */
static int32_t label_of(const dpi_release *r, size_t unit) {
    return r->group_of       ? r->group_of[unit]
           : r->labels.n > 0 ? dpi_labels_find(&r->labels, r->options.records, unit)
                             : -1;
}

/* The batches that a unit may be in. Its group is known when all of them are read: until then it is
 * any. */
static dpi_batch_range range_of(const dpi_release *r, size_t unit) {
    return r->group_of       ? (dpi_batch_range){.n = DPI_BATCHES_MOST}
           : r->labels.n > 0 ? dpi_labels_range(&r->labels, label_of(r, unit))
                           : (dpi_batch_range){.n = r->claim.n_texts};
}

/* A unit goes to the batch that its ID says: where each record is its own unit, its content. */
static dpi_status assign_unit(dpi_release *r, size_t unit, const char *text, size_t n_bytes,
                              dpi_error *err) {
    int32_t batch;
    if (dpi_release_unit_pays(r, unit) && dpi_records_has_units(r->options.records))
        dpi_records_unit_id(r->options.records, unit, &text, &n_bytes);
    return dpi_partition_assign(r->partition, unit, range_of(r, unit), text, n_bytes, &batch, err);
}

/* Reads the k-th record of a unit to its prompt (NULL: null, or there is none), and with the first
 * one the unit to its batch if there is one to find. */
static dpi_status read_record(dpi_release *r, size_t unit, size_t k, bool assign,
                              dpi_prompt *prompt, dpi_error *err) {
    const size_t i = dpi_records_of_unit(r->options.records, unit, k);
    char *text = NULL;
    size_t n_bytes = 0;
    *prompt = (dpi_prompt){0};
    if (dpi_release_is_cancelled(r))
        return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while records are read");
    if (i == SIZE_MAX)
        return DPI_STATUS_OK;
    if (dpi_release_unit_pays(r, unit))
        DPI_TRY(dpi_records_read(r->options.records, i, &text, &n_bytes, err));
    dpi_status status = DPI_STATUS_OK;
    if (assign && k == 0)
        status = assign_unit(r, unit, text, n_bytes, err);
    if (status == DPI_STATUS_OK)
        status = dpi_prompts_encode(dpi_release_prompts(r, label_of(r, unit)), text, n_bytes,
                                    &prompt->tokens, &prompt->n_tokens, err);
    dpi_private_free(text);
    r->n_null += status == DPI_STATUS_OK && !prompt->tokens;
    return status;
}

/* ---- Which records make up which batch ------------------------------------------------------- */

static dpi_status keep_prompts(dpi_release *r, size_t n_units, dpi_error *err) {
    const size_t M = per_unit(r), n = n_units * M;
    r->kept = dpi_private_malloc(n * sizeof *r->kept);
    if (!r->kept)
        return dpi_no_memory(err, "the prompts of the records");
    for (; r->n_kept < n; r->n_kept++)
        DPI_TRY(read_record(r, r->n_kept / M, r->n_kept % M, true, &r->kept[r->n_kept], err));
    return DPI_STATUS_OK;
}

/* Groups of similar records: that of a unit is told by its first record. */
static dpi_status find_groups(dpi_release *r, size_t n_units, dpi_error *err) {
    dpi_groups *groups;
    DPI_TRY(dpi_groups_find(r, &groups, err)); /* before a record is read */
    r->group_of = dpi_private_malloc((n_units + 1) * sizeof *r->group_of);
    dpi_status status =
        r->group_of ? keep_prompts(r, n_units, err) : dpi_no_memory(err, "the groups of records");
    for (size_t u = 0; u < n_units && status == DPI_STATUS_OK; u++)
        status = dpi_release_is_cancelled(r)
                     ? dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while records are read")
                     : dpi_groups_of_record(groups, &r->kept[u * per_unit(r)], &r->group_of[u],
                                            err);
    dpi_groups_free(groups);
    return status;
}

static void narrow_batches(dpi_release *r, size_t n_units) {
    for (size_t u = 0; u < n_units; u++)
        dpi_partition_narrow(r->partition, u, dpi_labels_range(&r->labels, r->group_of[u]));
}

static dpi_status draw_all(dpi_release *r, size_t n_units, int32_t *batches, dpi_error *err) {
    for (size_t i = 0; i < n_units; i++)
        DPI_TRY(dpi_partition_assign(r->partition, i, range_of(r, i), NULL, 0, &batches[i], err));
    return dpi_release_keep_list(r, "batches", batches, n_units, err);
}

/* A job draws them once. */
static dpi_status draw_batches(dpi_release *r, size_t n_units, dpi_error *err) {
    int32_t *batches;
    DPI_TRY(dpi_release_kept_list(r, "batches", n_units, &batches, err));
    const bool kept = batches;
    for (size_t i = 0; kept && i < n_units; i++)
        dpi_partition_put(r->partition, i, batches[i]);
    if (!kept)
        batches = dpi_private_malloc(n_units * sizeof *batches + 1);
    dpi_status status = kept       ? DPI_STATUS_OK
                        : !batches ? dpi_no_memory(err, "the batches")
                                   : draw_all(r, n_units, batches, err);
    dpi_private_free(batches);
    return status;
}

/* Public labels: by position within the label, as many batches as the label has texts. */
static dpi_status put_in_batches(dpi_release *r, size_t n_units, dpi_error *err) {
    const size_t B = (size_t)r->claim.method.denominator;
    size_t *n_before = dpi_private_malloc((size_t)r->labels.n * sizeof *n_before);
    if (!n_before)
        return dpi_no_memory(err, "the batches");
    for (int32_t i = 0; i < r->labels.n; i++)
        n_before[i] = 0;
    for (size_t u = 0; u < n_units; u++) {
        const int32_t label = label_of(r, u);
        const dpi_batch_range range = dpi_labels_range(&r->labels, label);
        const size_t batch = label >= 0 ? n_before[label]++ / B : 0;
        dpi_partition_put(r->partition, u,
                          batch < (size_t)range.n ? range.first + (int32_t)batch : -1);
    }
    dpi_private_free(n_before);
    return DPI_STATUS_OK;
}

/* Private labels: how many units have each, with noise, says how many texts it has. A count moves
 * by 1 where a unit comes or goes, and no other does. */
static dpi_status draw_shares(dpi_release *r, dpi_random_fn random, void *user, dpi_error *err) {
    const size_t n_units = dpi_records_unit_count(r->options.records), n = (size_t)r->labels.n;
    int64_t *count = dpi_private_malloc(n * sizeof *count);
    dpi_status status = count ? DPI_STATUS_OK : dpi_no_memory(err, "the labels");
    for (size_t i = 0; i < n && count; i++)
        count[i] = 0;
    for (size_t u = 0; u < n_units && count; u++) {
        const int32_t label = label_of(r, u);
        if (label >= 0 && dpi_release_unit_pays(r, u))
            count[label]++;
    }
    for (size_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        int64_t noise;
        status = dpi_noise_gaussian(r->claim.histogram, random, user, &noise, err);
        if (status == DPI_STATUS_OK)
            count[i] = count[i] + noise > 0 ? count[i] + noise : 0;
    }
    if (status == DPI_STATUS_OK)
        dpi_labels_share(count, NULL, r->labels.n, r->claim.n_texts, r->labels.n_texts);
    dpi_private_free(count);
    return status == DPI_STATUS_OK ? dpi_release_keep_list(r, "shares", r->labels.n_texts, n, err)
                                   : status;
}

/* A job draws it once: a second draw would be a second release. */
static dpi_status settle_shares(dpi_release *r, dpi_random_fn random, void *user, dpi_error *err) {
    const size_t n = (size_t)r->labels.n;
    int32_t *shares;
    DPI_TRY(dpi_release_kept_list(r, "shares", n, &shares, err));
    if (!shares)
        return draw_shares(r, random, user, err);
    memcpy(r->labels.n_texts, shares, n * sizeof *shares);
    dpi_private_free(shares);
    return DPI_STATUS_OK;
}

static dpi_status make_partition(dpi_release *r, dpi_error *err) {
    const dpi_sampler_options *m = &r->claim.method;
    dpi_partition_options o = {
        .n_batches = r->claim.n_texts,
        .n_slots = m->denominator,
        .by_content = m->adjacency == DPI_ADJACENCY_ADD_REMOVE,
        .subsample = m->subsample,
        .key = dpi_release_batch_key(r),
        .by_label = r->labels.n > 0,
    };
    dpi_release_random(r, &r->bits, &o.random, &o.random_user);
    if (r->options.key && !r->options.seeded) { /* the same batches in each process */
        o.random = dpi_release_keyed_random;
        o.random_user = &r->keyed;
    }
    const size_t n_units = dpi_records_unit_count(r->options.records);
    DPI_TRY(dpi_partition_create(&o, n_units, &r->partition, err));
    if (r->options.n_clusters > 0)
        DPI_TRY(find_groups(r, n_units, err));
    if (r->claim.histogram > 0)
        DPI_TRY(settle_shares(r, o.random, o.random_user, err));
    if (r->group_of)
        narrow_batches(r, n_units);
    else if (dpi_partition_is_assigned(r->partition))
        DPI_TRY(o.subsample > 0 ? draw_batches(r, n_units, err) : keep_prompts(r, n_units, err));
    else if (o.by_label)
        DPI_TRY(put_in_batches(r, n_units, err));
    else
        return DPI_STATUS_OK;
    return dpi_partition_index(r->partition, err);
}

/* Of n slots of a batch those that this process has. */
static size_t own_slots(const dpi_release *r, size_t n) {
    const dpi_spread *s = r->options.spread;
    if (!s)
        return n;
    return n > (size_t)s->index ? (n - (size_t)s->index + (size_t)s->count - 1) / (size_t)s->count
                                : 0;
}

dpi_status dpi_release_make_batches(dpi_release *r, dpi_error *err) {
    r->n_slots = r->claim.record_in_prompt; /* plain: one record, or none */
    if (r->claim.method.method != DPI_METHOD_PLAIN) {
        DPI_TRY(make_partition(r, err));
        r->n_slots = own_slots(r, dpi_partition_largest(r->partition)) * per_unit(r);
    }
    if (r->n_slots >= DPI_SEQUENCES_MAX) /* how many is secret */
        return dpi_fail(err, DPI_STATUS_LIMIT, "a batch has more than %d records: n_texts must be "
                                               "larger", DPI_SEQUENCES_MAX - 1);
    return DPI_STATUS_OK;
}

void dpi_release_free_batches(dpi_release *r) {
    for (size_t i = 0; i < r->n_kept; i++)
        dpi_private_free(r->kept[i].tokens);
    dpi_private_free(r->kept);
    dpi_private_free(r->group_of);
    dpi_partition_free(r->partition);
    dpi_private_free(r->pays);
}

/* ---- One batch ------------------------------------------------------------------------------- */

/* The k-th record of a unit into a slot: the kept prompt, or a fresh one. */
static dpi_status fill_slot(dpi_release *r, dpi_place *place, size_t slot, size_t unit, size_t k,
                            dpi_error *err) {
    const size_t at = unit * per_unit(r) + k;
    dpi_prompt prompt;
    if (r->kept) {
        prompt = r->kept[at];
        r->kept[at] = (dpi_prompt){0};
    } else {
        DPI_TRY(read_record(r, unit, k, false, &prompt, err));
    }
    place->tokens[slot] = prompt.tokens;
    place->n_tokens[slot] = prompt.n_tokens;
    return DPI_STATUS_OK;
}

/* The one record of a plain release, for all texts of a place. */
static dpi_status load_reference(dpi_release *r, dpi_place *place, dpi_error *err) {
    if (r->options.reference < 0 || place->tokens[0])
        return DPI_STATUS_OK;
    DPI_TRY(fill_slot(r, place, 0, (size_t)r->options.reference, 0, err));
    return place->tokens[0] ? DPI_STATUS_OK
                            : dpi_fail(err, DPI_STATUS_FORMAT,
                                       "reference: the record is empty or unreadable");
}

dpi_status dpi_release_load_batch(dpi_release *r, int32_t index, dpi_place *place,
                                  dpi_error *err) {
    if (r->claim.method.method == DPI_METHOD_PLAIN)
        return load_reference(r, place, err);
    dpi_batch batch;
    dpi_partition_batch(r->partition, index, &batch);
    const dpi_spread *s = r->options.spread;
    const size_t M = per_unit(r), step = s ? (size_t)s->count : 1, from = s ? (size_t)s->index : 0;
    for (size_t slot = 0; slot < own_slots(r, batch.n_records) * M; slot++) {
        const size_t u = from + slot / M * step;
        DPI_TRY(fill_slot(r, place, slot, batch.records ? batch.records[u] : batch.first + u,
                          slot % M, err));
    }
    return DPI_STATUS_OK;
}

void dpi_release_drop_batch(const dpi_release *r, dpi_place *place) {
    for (size_t slot = 0; slot < r->n_slots && place->tokens && place->n_tokens; slot++) {
        dpi_private_free(place->tokens[slot]);
        place->tokens[slot] = NULL;
        place->n_tokens[slot] = 0;
    }
}
