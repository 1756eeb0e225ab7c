/* job_json.c - the file job.json: what a job is. It is written once, before the first record is
 * read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/journal/digest.h"
#include "pipeline/journal/journal.h"
#include "pipeline/journal/json_text.h"

enum { KEY_HEX = 2 * DPI_JOURNAL_KEY_BYTES };

#define FORMAT_NAME "dpinfer job"

/* ---- Writing --------------------------------------------------------------------------------- */

/* SHA-256 of the object in its shortest form, names in order. False: out of memory. */
static bool digest(const json_t *object, char hex[DPI_DIGEST_HEX + 1]) {
    size_t n_bytes;
    char *text =
        dpi_json_text(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17), &n_bytes);
    if (!text)
        return false;
    dpi_digest(text, n_bytes, hex);
    free(text);
    return true;
}

static json_t *describe(const dpi_journal *j, const json_t *facts, const json_t *application) {
    char id[2 * DPI_JOURNAL_ID + 1], key[KEY_HEX + 1], hash[DPI_DIGEST_HEX + 1];
    dpi_to_hex(j->id, sizeof j->id, id);
    dpi_to_hex(j->key, sizeof j->key, key);
    json_t *job = json_pack("{s:s, s:i, s:s, s:s, s:O*, s:O}", "format", FORMAT_NAME, "version",
                            DPI_JOURNAL_VERSION, "id", id, "key", key, "application", application,
                            "facts", facts);
    if (!job || !digest(job, hash) || json_object_set_new(job, "sha256", json_string(hash)) != 0) {
        json_decref(job);
        return NULL;
    }
    return job;
}

/* NULL: no JSON object. */
static json_t *parse_object(const char *text) {
    json_error_t why;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (json_is_object(object))
        return object;
    json_decref(object);
    return NULL;
}

dpi_status dpi_job_write(const dpi_journal *j, const char *facts, dpi_error *err) {
    json_t *parsed = parse_object(facts);
    json_t *application = j->application ? parse_object(j->application) : NULL;
    if (!parsed || (j->application && !application)) {
        json_decref(parsed);
        json_decref(application);
        return dpi_fail(err, DPI_STATUS_ARG, "the facts of a job must be a JSON object");
    }
    json_t *job = describe(j, parsed, application);
    size_t n_bytes;
    char *text =
        job ? dpi_json_text(job, JSON_INDENT(1) | JSON_REAL_PRECISION(17), &n_bytes) : NULL;
    json_decref(parsed);
    json_decref(application);
    json_decref(job);
    if (!text)
        return dpi_no_memory(err, "a job");
    const dpi_status status = dpi_journal_write_file(j, "job.json", text, n_bytes, err);
    dpi_wipe_free(text, n_bytes); /* it has the key */
    return status;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static dpi_status malformed(const dpi_journal *j, const char *what, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s/job.json: %s", j->folder, what);
}

/* The hash holds. It leaves the object. */
static bool is_whole(json_t *job) {
    char hash[DPI_DIGEST_HEX + 1];
    const char *recorded = json_string_value(json_object_get(job, "sha256"));
    char copy[DPI_DIGEST_HEX + 1] = "";
    if (recorded)
        snprintf(copy, sizeof copy, "%s", recorded);
    json_object_del(job, "sha256");
    return recorded && digest(job, hash) && strcmp(hash, copy) == 0;
}

static char *text_of(const json_t *value) {
    size_t n_bytes;
    return json_is_object(value)
               ? dpi_json_text(value, JSON_COMPACT | JSON_REAL_PRECISION(17), &n_bytes)
               : NULL;
}

static dpi_status read_job(dpi_journal *j, json_t *job, dpi_error *err) {
    const char *format = json_string_value(json_object_get(job, "format"));
    const json_t *version = json_object_get(job, "version");
    if (!format || strcmp(format, FORMAT_NAME) != 0)
        return malformed(j, "this is no job", err);
    if (json_integer_value(version) > DPI_JOURNAL_VERSION)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "%s/job.json: version %" JSON_INTEGER_FORMAT
                        " of the format, this program knows %d",
                        j->folder, json_integer_value(version), DPI_JOURNAL_VERSION);
    if (!is_whole(job) ||
        !dpi_from_hex(json_string_value(json_object_get(job, "id")), j->id, sizeof j->id) ||
        !dpi_from_hex(json_string_value(json_object_get(job, "key")), j->key, sizeof j->key))
        return malformed(j, "it is damaged: its hash does not hold", err);
    const json_t *application = json_object_get(job, "application");
    j->facts = text_of(json_object_get(job, "facts"));
    j->application = text_of(application);
    return j->facts && (!application || j->application) ? DPI_STATUS_OK
                                                        : dpi_no_memory(err, "a job");
}

dpi_status dpi_job_read(dpi_journal *j, bool *found, dpi_error *err) {
    char *text;
    size_t n_bytes;
    json_error_t why;
    DPI_TRY(dpi_journal_read_file(j, "job.json", &text, &n_bytes, err));
    *found = text != NULL;
    if (!text)
        return DPI_STATUS_OK;
    json_t *job = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &why);
    dpi_private_free(text);
    const dpi_status status = json_is_object(job)
                                  ? read_job(j, job, err)
                                  : malformed(j, "it is damaged: this is no JSON object", err);
    json_decref(job);
    return status;
}
