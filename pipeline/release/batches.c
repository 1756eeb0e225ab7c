/* batches.c - the source of a release: its records as batches of prompts. All of it is private. See
 * source.h.
 *
 * A record is read once, and stays what it was when it was read: where its content says which batch
 * it goes to, its prompt is kept from then on, so that a file that changes meanwhile changes no
 * batch. Otherwise it is read when its text is drawn. A prompt is wiped after its text. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/exact/noise.h"
#include "dp/methods/method.h"
#include "dpinfer/memory.h"
#include "pipeline/release/source.h"

static size_t per_unit(const dpi_source *s) {
    return (size_t)dpi_sampler_per_unit(&s->plan->claim.method);
}

int32_t dpi_source_n_ref(const dpi_source *s) { return (int32_t)(s->n_slots / per_unit(s)); }

bool dpi_source_pays(const dpi_source *s, size_t unit) { return !s->pays || s->pays[unit]; }

int32_t dpi_source_label(const dpi_source *s, int32_t text) {
    return s->labels.n > 0 ? dpi_labels_of_text(&s->labels, text) : -1;
}

/* The label of a unit; -1: there are no labels, or it is in no text. */
static int32_t label_of(const dpi_source *s, size_t unit) {
    return s->group_of       ? s->group_of[unit]
           : s->labels.n > 0 ? dpi_labels_find(&s->labels, s->records, unit)
                             : -1;
}

/* The batches that a unit may be in. Its group is known when all of them are read: until then it is
 * any. */
static dpi_batch_range range_of(const dpi_source *s, size_t unit) {
    return s->group_of       ? (dpi_batch_range){.n = DPI_BATCHES_MOST}
           : s->labels.n > 0 ? dpi_labels_range(&s->labels, label_of(s, unit))
                           : (dpi_batch_range){.n = s->plan->claim.n_texts};
}

/* A unit goes to the batch that its ID says: where each record is its own unit, its content. */
static dpi_status assign_unit(dpi_source *s, size_t unit, const char *text, size_t n_bytes,
                              dpi_error *err) {
    int32_t batch;
    if (dpi_source_pays(s, unit) && dpi_records_has_units(s->records))
        dpi_records_unit_id(s->records, unit, &text, &n_bytes);
    return dpi_partition_assign(s->partition, unit, range_of(s, unit), text, n_bytes, &batch, err);
}

/* The text of the k-th record of a unit, freed with dpi_private_free (NULL: null, or there is
 * none), and with the first one the unit to its batch if there is one to find. */
static dpi_status read_text(dpi_source *s, size_t unit, size_t k, bool assign, char **text,
                            size_t *n_bytes, dpi_error *err) {
    const size_t i = dpi_records_of_unit(s->records, unit, k);
    *text = NULL;
    *n_bytes = 0;
    DPI_TRY(dpi_plan_check_cancelled(s->plan, "records are read", err));
    if (i == SIZE_MAX)
        return DPI_STATUS_OK;
    if (dpi_source_pays(s, unit))
        DPI_TRY(dpi_records_read(s->records, i, text, n_bytes, err));
    const dpi_status status =
        assign && k == 0 ? assign_unit(s, unit, *text, *n_bytes, err) : DPI_STATUS_OK;
    if (status != DPI_STATUS_OK) {
        dpi_private_free(*text);
        *text = NULL;
    }
    return status;
}

static dpi_status encode(const dpi_prompts *prompts, const char *text, size_t n_bytes,
                         dpi_prompt *prompt, dpi_error *err) {
    return dpi_prompts_encode(prompts, text, n_bytes, &prompt->tokens, &prompt->n_tokens, err);
}

/* The same record to its prompt. */
static dpi_status read_record(dpi_source *s, size_t unit, size_t k, bool assign,
                              const dpi_prompts *prompts, dpi_prompt *prompt, dpi_error *err) {
    char *text;
    size_t n_bytes;
    *prompt = (dpi_prompt){0};
    dpi_status status = read_text(s, unit, k, assign, &text, &n_bytes, err);
    if (status == DPI_STATUS_OK)
        status = encode(prompts, text, n_bytes, prompt, err);
    dpi_private_free(text);
    s->n_null += status == DPI_STATUS_OK && !prompt->tokens &&
                 dpi_records_of_unit(s->records, unit, k) != SIZE_MAX;
    return status;
}

/* ---- Which records make up which batch ------------------------------------------------------- */

static dpi_status keep_record(dpi_source *s, size_t unit, size_t k, dpi_kept *to, dpi_error *err) {
    *to = (dpi_kept){0};
    if (s->plan->options.n_released > 0) /* prompts follow from texts that come first */
        return read_text(s, unit, k, true, &to->text, &to->n_bytes, err);
    return read_record(s, unit, k, true, dpi_plan_prompts(s->plan, label_of(s, unit)), &to->prompt,
                       err);
}

static dpi_status keep_records(dpi_source *s, size_t n_units, dpi_error *err) {
    const size_t M = per_unit(s), n = n_units * M;
    s->kept = dpi_private_malloc(n * sizeof *s->kept);
    if (!s->kept)
        return dpi_no_memory(err, "the prompts of the records");
    for (; s->n_kept < n; s->n_kept++)
        DPI_TRY(keep_record(s, s->n_kept / M, s->n_kept % M, &s->kept[s->n_kept], err));
    return DPI_STATUS_OK;
}

static dpi_status find_group(dpi_source *s, size_t unit, dpi_groups *groups, dpi_error *err) {
    const dpi_kept *k = &s->kept[unit * per_unit(s)];
    dpi_prompt prompt = k->prompt;
    if (k->text)
        DPI_TRY(encode(dpi_plan_prompts(s->plan, -1), k->text, k->n_bytes, &prompt, err));
    const dpi_status status = dpi_groups_of_record(groups, &prompt, &s->group_of[unit], err);
    if (k->text)
        dpi_private_free(prompt.tokens);
    return status;
}

/* Groups of similar records: that of a unit is told by its first record. */
static dpi_status find_groups(dpi_source *s, size_t n_units, dpi_groups *groups, dpi_error *err) {
    s->group_of = dpi_private_malloc((n_units + 1) * sizeof *s->group_of);
    if (!s->group_of)
        return dpi_no_memory(err, "the groups of records");
    for (size_t u = 0; u < n_units; u++)
        s->group_of[u] = -1; /* not known yet */
    DPI_TRY(keep_records(s, n_units, err));
    for (size_t u = 0; u < n_units; u++) {
        DPI_TRY(dpi_plan_check_cancelled(s->plan, "records are read", err));
        DPI_TRY(find_group(s, u, groups, err));
    }
    return DPI_STATUS_OK;
}

static void narrow_batches(dpi_source *s, size_t n_units) {
    for (size_t u = 0; u < n_units; u++)
        dpi_partition_narrow(s->partition, u, dpi_labels_range(&s->labels, s->group_of[u]));
}

static dpi_status draw_all(dpi_source *s, size_t n_units, int32_t *batches, dpi_error *err) {
    for (size_t i = 0; i < n_units; i++)
        DPI_TRY(dpi_partition_assign(s->partition, i, range_of(s, i), NULL, 0, &batches[i], err));
    return dpi_books_keep_list(s->books, "batches", batches, n_units, err);
}

/* A job draws them once. */
static dpi_status draw_batches(dpi_source *s, size_t n_units, dpi_error *err) {
    int32_t *batches;
    DPI_TRY(dpi_books_kept_list(s->books, "batches", n_units, &batches, err));
    const bool kept = batches;
    for (size_t i = 0; kept && i < n_units; i++)
        dpi_partition_put(s->partition, i, batches[i]);
    if (!kept)
        batches = dpi_private_malloc(n_units * sizeof *batches + 1);
    dpi_status status = kept       ? DPI_STATUS_OK
                        : !batches ? dpi_no_memory(err, "the batches")
                                   : draw_all(s, n_units, batches, err);
    dpi_private_free(batches);
    return status;
}

/* Public labels: by position within the label, as many batches as the label has texts. */
static dpi_status put_in_batches(dpi_source *s, size_t n_units, dpi_error *err) {
    const size_t B = (size_t)s->plan->claim.method.denominator;
    size_t *n_before = dpi_private_malloc((size_t)s->labels.n * sizeof *n_before);
    if (!n_before)
        return dpi_no_memory(err, "the batches");
    for (int32_t i = 0; i < s->labels.n; i++)
        n_before[i] = 0;
    for (size_t u = 0; u < n_units; u++) {
        const int32_t label = label_of(s, u);
        const dpi_batch_range range = dpi_labels_range(&s->labels, label);
        const size_t batch = label >= 0 ? n_before[label]++ / B : 0;
        dpi_partition_put(s->partition, u,
                          batch < (size_t)range.n ? range.first + (int32_t)batch : -1);
    }
    dpi_private_free(n_before);
    return DPI_STATUS_OK;
}

/* Private labels: how many units have each, with noise, says how many texts it has. A count moves
 * by 1 where a unit comes or goes, and no other does. */
static dpi_status draw_shares(dpi_source *s, dpi_random_fn random, void *user, dpi_error *err) {
    const size_t n_units = dpi_records_unit_count(s->records), n = (size_t)s->labels.n;
    int64_t *count = dpi_private_malloc(n * sizeof *count);
    dpi_status status = count ? DPI_STATUS_OK : dpi_no_memory(err, "the labels");
    for (size_t i = 0; i < n && count; i++)
        count[i] = 0;
    for (size_t u = 0; u < n_units && count; u++) {
        const int32_t label = label_of(s, u);
        if (label >= 0 && dpi_source_pays(s, u))
            count[label]++;
    }
    for (size_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        int64_t noise;
        status = dpi_noise_gaussian(s->plan->claim.histogram, random, user, &noise, err);
        if (status == DPI_STATUS_OK)
            count[i] = count[i] + noise > 0 ? count[i] + noise : 0;
    }
    if (status == DPI_STATUS_OK)
        dpi_labels_share(count, NULL, s->labels.n, s->plan->claim.n_texts, s->labels.n_texts);
    dpi_private_free(count);
    if (status != DPI_STATUS_OK)
        return status;
    return dpi_books_keep_list(s->books, "shares", s->labels.n_texts, n, err);
}

/* A job draws it once: a second draw would be a second release. */
static dpi_status settle_shares(dpi_source *s, dpi_random_fn random, void *user, dpi_error *err) {
    const size_t n = (size_t)s->labels.n;
    int32_t *shares;
    DPI_TRY(dpi_books_kept_list(s->books, "shares", n, &shares, err));
    if (!shares)
        return draw_shares(s, random, user, err);
    memcpy(s->labels.n_texts, shares, n * sizeof *shares);
    dpi_private_free(shares);
    return DPI_STATUS_OK;
}

/* What a seed or the key of several processes says is the same each time. */
static const uint8_t *batch_key(const dpi_plan *plan) {
    const dpi_release_options *o = &plan->options;
    return o->journal && !o->seeded && !o->key ? dpi_journal_key(o->journal) : NULL;
}

static dpi_status make_partition(dpi_source *s, dpi_groups *groups, dpi_error *err) {
    const dpi_sampler_options *m = &s->plan->claim.method;
    dpi_partition_options o = {
        .n_batches = s->plan->claim.n_texts,
        .n_slots = m->denominator,
        .by_content = m->adjacency == DPI_ADJACENCY_ADD_REMOVE,
        .subsample = dpi_method_joining(m),
        .key = batch_key(s->plan),
        .by_label = s->labels.n > 0,
    };
    dpi_plan_random(s->plan, &s->bits, &o.random, &o.random_user);
    if (s->plan->options.key && !s->plan->options.seeded) { /* the same batches in each process */
        o.random = dpi_keyed_random;
        o.random_user = &s->keyed;
    }
    const size_t n_units = dpi_records_unit_count(s->records);
    DPI_TRY(dpi_partition_create(&o, n_units, &s->partition, err));
    if (groups)
        DPI_TRY(find_groups(s, n_units, groups, err));
    if (s->plan->claim.histogram > 0)
        DPI_TRY(settle_shares(s, o.random, o.random_user, err));
    if (s->group_of)
        narrow_batches(s, n_units);
    else if (dpi_partition_is_assigned(s->partition))
        DPI_TRY(o.subsample > 0 ? draw_batches(s, n_units, err) : keep_records(s, n_units, err));
    else if (o.by_label)
        DPI_TRY(put_in_batches(s, n_units, err));
    else
        return DPI_STATUS_OK;
    return dpi_partition_index(s->partition, err);
}

/* Of n slots of a batch those that this process has. */
static size_t own_slots(const dpi_source *s, size_t n) {
    const dpi_spread *part = s->plan->options.spread;
    if (!part)
        return n;
    const size_t index = (size_t)part->index, count = (size_t)part->count;
    return n > index ? (n - index + count - 1) / count : 0;
}

/* The labels of the plan, with numbers of texts of its own, as a histogram draws them. */
static dpi_status copy_labels(dpi_source *s, dpi_error *err) {
    const dpi_label_list *of_plan = &s->plan->labels;
    const size_t n_bytes = (size_t)of_plan->n * sizeof *of_plan->n_texts;
    if (of_plan->n == 0)
        return DPI_STATUS_OK;
    int32_t *n_texts = dpi_private_malloc(n_bytes);
    if (!n_texts)
        return dpi_no_memory(err, "the labels");
    memcpy(n_texts, of_plan->n_texts, n_bytes);
    s->labels = *of_plan;
    s->labels.n_texts = n_texts;
    return DPI_STATUS_OK;
}

dpi_status dpi_source_open(dpi_source *s, const dpi_books *books, dpi_groups *groups,
                           dpi_error *err) {
    s->books = books;
    s->n_slots = s->plan->claim.record_in_prompt; /* plain: one record, or none */
    DPI_TRY(copy_labels(s, err));
    if (!dpi_plan_is_plain(s->plan)) {
        DPI_TRY(make_partition(s, groups, err));
        s->n_slots = own_slots(s, dpi_partition_largest(s->partition)) * per_unit(s);
    }
    if (s->n_slots >= DPI_SEQUENCES_MAX) /* how many is secret */
        return dpi_fail(err, DPI_STATUS_LIMIT, "a batch has more than %d records: n_texts must be "
                                               "larger", DPI_SEQUENCES_MAX - 1);
    return DPI_STATUS_OK;
}

void dpi_source_init(dpi_source *s, const dpi_plan *plan) {
    *s = (dpi_source){.plan = plan, .records = plan->options.records};
    if (plan->options.key)
        memcpy(s->keyed.key, plan->options.key, sizeof s->keyed.key);
}

void dpi_source_set_payers(dpi_source *s, uint8_t *pays) {
    dpi_private_free(s->pays);
    s->pays = pays;
}

void dpi_source_free(dpi_source *s) {
    for (size_t i = 0; i < s->n_kept; i++) {
        dpi_private_free(s->kept[i].prompt.tokens);
        dpi_private_free(s->kept[i].text);
    }
    dpi_private_free(s->kept);
    dpi_private_free(s->group_of);
    dpi_partition_free(s->partition);
    dpi_private_free(s->labels.n_texts);
    dpi_private_free(s->pays);
    dpi_wipe(&s->keyed, sizeof s->keyed);
}

/* ---- One batch ------------------------------------------------------------------------------- */

/* A kept record has no other use. */
static dpi_status move_kept(dpi_kept *kept, const dpi_prompts *prompts, dpi_prompt *prompt,
                            dpi_error *err) {
    dpi_status status = DPI_STATUS_OK;
    *prompt = kept->prompt;
    if (kept->text)
        status = encode(prompts, kept->text, kept->n_bytes, prompt, err);
    dpi_private_free(kept->text);
    *kept = (dpi_kept){0};
    return status;
}

/* The k-th record of a unit into a slot: the kept one, or read afresh. */
static dpi_status fill_slot(dpi_source *s, const dpi_prompts *prompts, dpi_slots *to, size_t slot,
                            size_t unit, size_t k, dpi_error *err) {
    dpi_prompt prompt;
    DPI_TRY(s->kept ? move_kept(&s->kept[unit * per_unit(s) + k], prompts, &prompt, err)
                    : read_record(s, unit, k, false, prompts, &prompt, err));
    to->tokens[slot] = prompt.tokens;
    to->n_tokens[slot] = prompt.n_tokens;
    return DPI_STATUS_OK;
}

/* The one record of a plain release, for all texts of a place. */
static dpi_status load_reference(dpi_source *s, const dpi_prompts *prompts, dpi_slots *to,
                                 dpi_error *err) {
    if (s->plan->options.reference < 0 || to->tokens[0])
        return DPI_STATUS_OK;
    DPI_TRY(fill_slot(s, prompts, to, 0, (size_t)s->plan->options.reference, 0, err));
    return to->tokens[0] ? DPI_STATUS_OK
                         : dpi_fail(err, DPI_STATUS_FORMAT,
                                    "reference: the record is empty or unreadable");
}

dpi_status dpi_source_load(dpi_source *s, int32_t text, const dpi_prompts *prompts, dpi_slots *to,
                           dpi_error *err) {
    if (!prompts)
        prompts = dpi_plan_prompts(s->plan, dpi_source_label(s, text));
    if (dpi_plan_is_plain(s->plan))
        return load_reference(s, prompts, to, err);
    dpi_batch batch;
    dpi_partition_batch(s->partition, text, &batch);
    const dpi_spread *part = s->plan->options.spread;
    const size_t M = per_unit(s), step = part ? (size_t)part->count : 1;
    const size_t from = part ? (size_t)part->index : 0;
    for (size_t slot = 0; slot < own_slots(s, batch.n_records) * M; slot++) {
        const size_t u = from + slot / M * step;
        DPI_TRY(fill_slot(s, prompts, to, slot, batch.records ? batch.records[u] : batch.first + u,
                          slot % M, err));
    }
    return DPI_STATUS_OK;
}

void dpi_source_drop(const dpi_source *s, dpi_slots *to) {
    for (size_t slot = 0; slot < s->n_slots && to->tokens && to->n_tokens; slot++) {
        dpi_private_free(to->tokens[slot]);
        to->tokens[slot] = NULL;
        to->n_tokens[slot] = 0;
    }
}
