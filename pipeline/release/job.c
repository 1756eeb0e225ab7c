/* job.c - the facts of a job: what the texts depend on is on the disk before a record is read, and
 * a release that goes on is held to it and to the same records. See books.h. */
#include <inttypes.h>
#include <nettle/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dp/methods/method.h"
#include "dpinfer/journal.h"
#include "dpinfer/memory.h"
#include "pipeline/claim/compare.h"
#include "pipeline/journal/digest.h"
#include "pipeline/release/books.h"
#include "pipeline/release/hash.h"
#include "pipeline/release/report.h"

enum { KEY_BYTES = DPI_JOURNAL_KEY_BYTES / 2 }; /* one half for batches, the other one for hashes */

/* ---- Facts ----------------------------------------------------------------------------------- */

static void hash_text(struct sha256_ctx *hash, dpi_bytes text) {
    const uint64_t n = text.data ? text.n_bytes + 1 : 0;
    sha256_update(hash, sizeof n, (const uint8_t *)&n);
    if (text.data)
        sha256_update(hash, text.n_bytes, (const uint8_t *)text.data);
}

/* What {label} stands for, and which texts are for which label; with the digest of the claim and
 * the room that the context leaves that is all that prompts depend on. */
static json_t *hash_labels(const dpi_plan *plan) {
    char hex[DPI_DIGEST_HEX + 1];
    struct sha256_ctx hash;
    sha256_init(&hash);
    for (int32_t i = 0; i < plan->labels.n; i++) {
        const dpi_span *name = &plan->labels.names.at[i];
        const int32_t n_texts = plan->claim.histogram > 0 ? 0 : plan->labels.n_texts[i];
        hash_text(&hash, (dpi_bytes){name->data, name->n_bytes});
        hash_text(&hash, dpi_labels_meaning(&plan->labels, i));
        sha256_update(&hash, sizeof n_texts, (const uint8_t *)&n_texts);
    }
    dpi_digest_end(&hash, hex);
    return json_string(hex);
}

/* Logits have the same bits with the same of these. */
static json_t *describe_engine(const dpi_plan *plan) {
    const dpi_session_options *s = &plan->options.session;
    return json_pack("{s:s, s:s, s:i, s:b, s:i, s:i}", "version", dpi_version(), "isa",
                     dpi_isa_name(s->isa == DPI_ISA_AUTO ? dpi_isa_best() : s->isa), "kv_type",
                     s->kv_type, "exact", s->exact, "prefill", s->prefill, "n_ctx", s->n_ctx);
}

static json_t *describe_parameters(const dpi_plan *plan) {
    dpi_run claim = plan->claim;
    claim.ledger = (dpi_claim_ledger){0}; /* what was spent before is no parameter of a job */
    return dpi_report_parameters(&claim);
}

/* Which texts of the release are those of the job; null: all. */
static json_t *describe_shard(const dpi_plan *plan) {
    return plan->options.n_shards > 0
               ? json_pack("[i, i]", (int)plan->options.shard, (int)plan->options.n_shards)
               : json_null();
}

/* What holds the job to its charge. A shard was paid for with all others. */
static json_t *describe_charge(const dpi_books *b) {
    const dpi_claim_ledger *l = &b->claim.ledger;
    if (!l->dataset[0] || b->plan->options.charged)
        return json_null();
    return json_pack("{s:s, s:I, s:I, s:I}", "dataset", l->dataset, "id", (json_int_t)b->charge,
                     "amount", (json_int_t)l->charge, "before", (json_int_t)l->before);
}

/* Appends the hash of a file that the model is changed by, and what it is multiplied with. */
static dpi_status describe_file(json_t *files, const char *path, const char *is, float scale,
                                dpi_error *err) {
    json_t *hash;
    DPI_TRY(dpi_hash_one(path, &hash, err));
    if (json_object_set_new(hash, "is", json_string(is)) == 0 &&
        json_object_set_new(hash, "scale", json_real((double)scale)) == 0 &&
        json_array_append(files, hash) == 0) {
        json_decref(hash);
        return DPI_STATUS_OK;
    }
    json_decref(hash);
    return dpi_no_memory(err, "the facts of a job");
}

/* What others follow from stands first, as a job that differs is told of the first difference: with
 * other prompts the pace that is found is another one. */
static dpi_status describe(const dpi_plan *plan, json_t **facts, dpi_error *err) {
    const dpi_model *model = plan->options.model;
    json_t *files;
    DPI_TRY(dpi_hash_model(plan->options.model_path, dpi_hash_count_files(model), &files, err));
    dpi_status status = DPI_STATUS_OK;
    if (dpi_model_adapter(model))
        status = describe_file(files, dpi_model_adapter(model), "adapter",
                               plan->info.adapter_scale, err);
    if (status == DPI_STATUS_OK && dpi_model_control_vector(model))
        status = describe_file(files, dpi_model_control_vector(model), "control vector",
                               plan->info.control_vector_scale, err);
    if (status != DPI_STATUS_OK) {
        json_decref(files);
        return status;
    }
    /* A seed is no secret of the records; as a text, as JSON has no unsigned integers. */
    char seed[24] = "";
    if (plan->options.seeded)
        snprintf(seed, sizeof seed, "%" PRIu64, plan->options.seed);
    *facts = json_pack("{s:o, s:o, s:s, s:s, s:o, s:o, s:i, s:s?, s:o, s:b}", "model", files,
                       "engine", describe_engine(plan), "wording", plan->claim.wording, "prompts",
                       plan->claim.prompts, "labels", hash_labels(plan), "parameters",
                       describe_parameters(plan), "reference", (int)plan->options.reference, "seed",
                       plan->options.seeded ? seed : NULL, "shard", describe_shard(plan), "keyed",
                       plan->options.key && dpi_run_is_assigned(&plan->claim));
    return *facts ? DPI_STATUS_OK : dpi_no_memory(err, "the facts of a job");
}

/* ---- A job that goes on ---------------------------------------------------------------------- */

static dpi_status differs(const char *name, const json_t *before, const json_t *now,
                          dpi_error *err) {
    size_t n;
    const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII;
    char *a = before ? dpi_json_text(before, flags, &n) : NULL;
    char *b = now ? dpi_json_text(now, flags, &n) : NULL;
    dpi_fail(err, DPI_STATUS_STATE,
             "the job cannot go on: %s was %.60s when it began, and is %.60s", name,
             a ? a : "not there", b ? b : "not there");
    free(a);
    free(b);
    return DPI_STATUS_STATE;
}

/* Names the first value that is not the same. The charge was none of those that are compared. */
static dpi_status compare(json_t *before, const json_t *now, dpi_error *err) {
    char path[DPI_JSON_PATH_MAX];
    const json_t *values[2];
    json_object_del(before, "charge");
    return dpi_json_difference(before, now, path, values)
               ? differs(path, values[0], values[1], err)
               : DPI_STATUS_OK;
}

static dpi_status parse_facts(const dpi_books *b, json_t **facts, dpi_error *err) {
    json_error_t why;
    *facts = json_loads(dpi_journal_facts(b->plan->options.journal), 0, &why);
    return *facts ? DPI_STATUS_OK : dpi_no_memory(err, "the facts of a job");
}

/* The charge is the one that the job was begun with, and counts. */
static dpi_status find_charge(const dpi_books *b, const json_t *facts, dpi_charge *charge,
                              dpi_error *err) {
    const json_t *c = json_object_get(facts, "charge");
    const char *dataset = json_string_value(json_object_get(c, "dataset"));
    const int64_t id = json_integer_value(json_object_get(c, "id"));
    if (!b->ledger != !dataset)
        return dpi_fail(err, DPI_STATUS_STATE, "the job cannot go on: it was begun %s a ledger",
                        dataset ? "with" : "without");
    if (!dataset)
        return DPI_STATUS_OK;
    if (!b->dataset || strcmp(dataset, b->dataset) != 0)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "the job cannot go on: it was charged to another dataset");
    dpi_charge_init(charge);
    DPI_TRY(dpi_ledger_charge_next(b->ledger, dataset, id - 1, charge, err));
    if (charge->id != id || !charge->counted ||
        charge->amount != json_integer_value(json_object_get(c, "amount")))
        return dpi_fail(
            err, DPI_STATUS_STATE,
            "the job cannot go on: the ledger does not have its charge, number %" PRId64, id);
    return DPI_STATUS_OK;
}

dpi_status dpi_books_find_charge(const dpi_books *b, dpi_charge *charge, dpi_error *err) {
    json_t *facts;
    DPI_TRY(parse_facts(b, &facts, err));
    const dpi_status status = find_charge(b, facts, charge, err);
    json_decref(facts);
    return status;
}

static dpi_status continue_job(const dpi_books *b, const json_t *now, dpi_error *err) {
    json_t *before;
    DPI_TRY(parse_facts(b, &before, err));
    const dpi_status status = compare(before, now, err);
    json_decref(before);
    return status;
}

static dpi_status begin_new(const dpi_books *b, json_t *facts, dpi_error *err) {
    size_t n_bytes;
    json_t *charge = describe_charge(b);
    if (!charge || json_object_set_new(facts, "charge", charge) != 0)
        return dpi_no_memory(err, "the facts of a job");
    char *text = dpi_json_text(facts, JSON_COMPACT | JSON_REAL_PRECISION(17), &n_bytes);
    if (!text)
        return dpi_no_memory(err, "the facts of a job");
    const dpi_status status = dpi_journal_begin(b->plan->options.journal, text, err);
    free(text);
    return status;
}

dpi_status dpi_books_begin_job(const dpi_books *b, dpi_error *err) {
    json_t *facts;
    if (!b->plan->options.journal)
        return DPI_STATUS_OK;
    DPI_TRY(describe(b->plan, &facts, err));
    const dpi_status status =
        dpi_books_goes_on(b) ? continue_job(b, facts, err) : begin_new(b, facts, err);
    json_decref(facts);
    return status;
}

/* ---- Records --------------------------------------------------------------------------------- */

/* NULL is told from no bytes. */
static void hash_private(struct hmac_sha256_ctx *hash, const char *text, size_t n_bytes) {
    const uint64_t n = text ? n_bytes + 1 : 0;
    hmac_sha256_update(hash, sizeof n, (const uint8_t *)&n);
    if (text)
        hmac_sha256_update(hash, n_bytes, (const uint8_t *)text);
}

/* Its ID, its label and which records it has. */
static void hash_unit(struct hmac_sha256_ctx *hash, const dpi_records *records, size_t unit) {
    const char *text;
    size_t n_bytes;
    dpi_records_unit_id(records, unit, &text, &n_bytes);
    hash_private(hash, text, n_bytes);
    dpi_records_unit_label(records, unit, &text, &n_bytes);
    hash_private(hash, text, n_bytes);
    uint64_t record = 0;
    for (size_t k = 0; record != UINT64_MAX; k++) {
        record = dpi_records_of_unit(records, unit, k);
        hmac_sha256_update(hash, sizeof record, (const uint8_t *)&record);
    }
}

/* All records and units, under the job's key: what tells other records from these, and nothing
 * else. */
static dpi_status hash_records(const dpi_books *b, uint8_t digest[SHA256_DIGEST_SIZE],
                               dpi_error *err) {
    const dpi_records *records = b->plan->options.records;
    struct hmac_sha256_ctx hash;
    hmac_sha256_set_key(&hash, KEY_BYTES, dpi_journal_key(b->plan->options.journal) + KEY_BYTES);
    for (size_t i = 0; i < dpi_records_count(records); i++) {
        char *text;
        size_t n_bytes;
        DPI_TRY(dpi_plan_check_cancelled(b->plan, "records are read", err));
        DPI_TRY(dpi_records_read(records, i, &text, &n_bytes, err));
        hash_private(&hash, text, n_bytes);
        dpi_private_free(text);
    }
    for (size_t u = 0; u < dpi_records_unit_count(records); u++)
        hash_unit(&hash, records, u);
    hmac_sha256_digest(&hash, SHA256_DIGEST_SIZE, digest);
    return DPI_STATUS_OK;
}

/* Data under a name: those that the job keeps, or these from now on. *same: they are the same. */
static dpi_status keep_or_compare(const dpi_books *b, const char *name, const void *data,
                                  size_t n_bytes, bool *same, dpi_error *err) {
    void *kept;
    size_t n_kept;
    *same = true;
    DPI_TRY(dpi_journal_kept(b->plan->options.journal, name, &kept, &n_kept, err));
    if (!kept)
        return dpi_journal_keep(b->plan->options.journal, name, data, n_bytes, err);
    *same = n_kept == n_bytes && memcmp(kept, data, n_bytes) == 0;
    dpi_private_free(kept);
    return DPI_STATUS_OK;
}

/* A record that has moved would be in a second batch, and one that has changed in the middle of a
 * text would be two. */
dpi_status dpi_books_check_records(const dpi_books *b, dpi_error *err) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    bool same;
    if (!b->plan->options.journal || !b->plan->options.records)
        return DPI_STATUS_OK;
    DPI_TRY(hash_records(b, digest, err));
    DPI_TRY(keep_or_compare(b, "records", digest, sizeof digest, &same, err));
    return same ? DPI_STATUS_OK
                : dpi_fail(err, DPI_STATUS_STATE,
                           "the job cannot go on: the records are not those that it began with");
}
