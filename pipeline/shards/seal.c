/* seal.c - see seal.h. */
#include "pipeline/shards/seal.h"

#include <nettle/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "dpinfer/shards.h"
#include "pipeline/journal/json_text.h"
#include "pipeline/release/release.h"
#include "pipeline/release/report.h"

typedef struct hmac_sha256_ctx digest;

static void begin(digest *d, const uint8_t *key, const char *purpose) {
    hmac_sha256_set_key(d, DPI_RELEASE_KEY_BYTES, key);
    hmac_sha256_update(d, strlen(purpose) + 1, (const uint8_t *)purpose);
}

/* With its length, so that two lists of values never give the same bytes. */
static void add(digest *d, const void *bytes, size_t n_bytes) {
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)n_bytes >> (8 * i));
    hmac_sha256_update(d, sizeof length, length);
    if (n_bytes > 0)
        hmac_sha256_update(d, n_bytes, bytes);
}

static void add_int(digest *d, int64_t value) { add(d, &value, sizeof value); }

static void finish(digest *d, char hex[DPI_DIGEST_HEX + 1]) {
    uint8_t bytes[SHA256_DIGEST_SIZE];
    hmac_sha256_digest(d, sizeof bytes, bytes);
    dpi_to_hex(bytes, sizeof bytes, hex);
    dpi_wipe(d, sizeof *d);
}

void dpi_seal_bytes(const uint8_t *key, const char *purpose, const void *bytes, size_t n_bytes,
                    char hex[DPI_DIGEST_HEX + 1]) {
    digest d;
    begin(&d, key, purpose);
    add(&d, bytes, n_bytes);
    finish(&d, hex);
}

static bool seal_of(const uint8_t *key, const json_t *object, char hex[DPI_DIGEST_HEX + 1]) {
    size_t n_bytes;
    char *text = dpi_json_text(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17),
                               &n_bytes);
    if (!text)
        return false;
    dpi_seal_bytes(key, "object", text, n_bytes, hex);
    free(text);
    return true;
}

/* ---- A release ------------------------------------------------------------------------------- */

/* The prompt of a record that is known shows what stands around any record. */
static dpi_status add_prompts(digest *d, const dpi_prompts *prompts, dpi_error *err) {
    static const char sample[] = "A record.";
    int32_t *tokens = NULL;
    size_t n_tokens = 0;
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(prompts, &info, err));
    DPI_TRY(dpi_prompts_encode(prompts, sample, strlen(sample), &tokens, &n_tokens, err));
    add(d, dpi_prompts_public(prompts), (size_t)info.n_public * sizeof *tokens);
    add(d, tokens, n_tokens * sizeof *tokens);
    dpi_private_free(tokens);
    add_int(d, info.n_prefix);
    add_int(d, info.n_limit);
    return DPI_STATUS_OK;
}

/* Which texts are for which label; with a histogram that follows from the records. */
static void add_labels(digest *d, const dpi_plan *plan) {
    for (int32_t i = 0; i < plan->labels.n; i++) {
        add(d, plan->labels.names.at[i].data, plan->labels.names.at[i].n_bytes);
        add_int(d, plan->claim.histogram > 0 ? 0 : plan->labels.n_texts[i]);
    }
}

dpi_status dpi_seal_prompts(const uint8_t *key, const dpi_plan *plan, char hex[DPI_DIGEST_HEX + 1],
                            dpi_error *err) {
    digest d;
    dpi_status status = DPI_STATUS_OK;
    begin(&d, key, "prompts");
    for (int32_t i = 0; i < plan->n_prompts && status == DPI_STATUS_OK; i++)
        status = add_prompts(&d, dpi_plan_prompts(plan, i), err);
    add_labels(&d, plan);
    add_int(&d, plan->options.session.n_ctx);
    add_int(&d, plan->options.session.kv_type);
    add_int(&d, plan->options.session.exact);
    finish(&d, hex);
    return status;
}

static void add_unit(digest *d, const dpi_records *records, size_t unit) {
    const char *id, *label;
    size_t n_bytes, i;
    dpi_records_unit_id(records, unit, &id, &n_bytes);
    add_int(d, id != NULL);
    add(d, id, id ? n_bytes : 0);
    dpi_records_unit_label(records, unit, &label, &n_bytes);
    add_int(d, label != NULL);
    add(d, label, label ? n_bytes : 0);
    for (size_t k = 0; (i = dpi_records_of_unit(records, unit, k)) != SIZE_MAX; k++)
        add_int(d, (int64_t)i);
}

static dpi_status add_records(digest *d, const dpi_plan *plan, dpi_error *err) {
    const dpi_records *records = plan->options.records;
    const size_t n = records ? dpi_records_count(records) : 0;
    add_int(d, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        char *text;
        size_t n_bytes;
        DPI_TRY(dpi_plan_check_cancelled(plan, "records are read", err));
        DPI_TRY(dpi_records_read(records, i, &text, &n_bytes, err));
        add_int(d, text != NULL);
        add(d, text, text ? n_bytes : 0);
        dpi_private_free(text);
    }
    for (size_t u = 0; records && u < dpi_records_unit_count(records); u++)
        add_unit(d, records, u);
    return DPI_STATUS_OK;
}

dpi_status dpi_seal_records(const uint8_t *key, const dpi_plan *plan, char hex[DPI_DIGEST_HEX + 1],
                            dpi_error *err) {
    digest d;
    begin(&d, key, "records");
    const dpi_status status = add_records(&d, plan, err);
    finish(&d, hex);
    return status;
}

/* Without the ledger, which one process has. */
static dpi_status seal_claim(const uint8_t *key, const dpi_plan *plan, const dpi_report *report,
                             char hex[DPI_DIGEST_HEX + 1], dpi_error *err) {
    dpi_run claim = plan->claim;
    claim.ledger = (dpi_claim_ledger){0};
    json_t *object = dpi_report_parameters(&claim);
    if (!object || json_object_set_new(object, "model", json_string(claim.model_name)) != 0 ||
        (report && json_object_set(object, "files", report->model) != 0) ||
        !seal_of(key, object, hex)) {
        json_decref(object);
        return dpi_no_memory(err, "a digest");
    }
    json_decref(object);
    return DPI_STATUS_OK;
}

dpi_status dpi_release_digest(const dpi_release *r, const dpi_report *report, int32_t what,
                              const uint8_t key[DPI_RELEASE_KEY_BYTES], char hex[65],
                              dpi_error *err) {
    return what == DPI_AGREE_CLAIM     ? seal_claim(key, &r->plan, report, hex, err)
           : what == DPI_AGREE_PROMPTS ? dpi_seal_prompts(key, &r->plan, hex, err)
                                       : dpi_seal_records(key, &r->plan, hex, err);
}

/* ---- A JSON object --------------------------------------------------------------------------- */

bool dpi_seal_json(const uint8_t *key, json_t *object) {
    char hex[DPI_DIGEST_HEX + 1];
    return seal_of(key, object, hex) && json_object_set_new(object, "seal", json_string(hex)) == 0;
}

bool dpi_seal_json_holds(const uint8_t *key, json_t *object) {
    char hex[DPI_DIGEST_HEX + 1];
    json_t *found = json_incref(json_object_get(object, "seal"));
    json_object_del(object, "seal");
    const bool holds = found && json_is_string(found) && seal_of(key, object, hex) &&
                       strcmp(json_string_value(found), hex) == 0;
    json_decref(found);
    return holds;
}
