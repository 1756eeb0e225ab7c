/* shards.c - the folder of a job: how it is made, joined, and left. See dpinfer/shards.h. */
#include "pipeline/shards/shards.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/claim/compare.h"
#include "pipeline/journal/journal.h"
#include "pipeline/journal/json_text.h"
#include "pipeline/release/release.h"
#include "pipeline/release/report.h"
#include "pipeline/shards/folder.h"

dpi_status dpi_shard_name(int32_t i, int32_t n, char **name, dpi_error *err) {
    return asprintf(name, "shard-%d-of-%d", i, n) >= 0 ? DPI_STATUS_OK
                                                       : dpi_no_memory(err, "the job");
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* What every shard is held to. */
static dpi_status describe(const uint8_t *key, const dpi_release *release, const dpi_report *report,
                           json_t **object, dpi_error *err) {
    char prompts[DPI_DIGEST_HEX + 1], records[DPI_DIGEST_HEX + 1], *text;
    size_t n_bytes;
    DPI_TRY(dpi_seal_prompts(key, &release->plan, prompts, err));
    DPI_TRY(dpi_seal_records(key, &release->plan, records, err));
    DPI_TRY(dpi_report_text(report, 0, DPI_REPORT_JSON, &text, &n_bytes, err));
    *object = json_pack("{s:i, s:s, s:s, s:o}", "dpinfer_shards", DPI_SHARDS_FORMAT, "prompts",
                        prompts, "records", records, "report", json_loadb(text, n_bytes, 0, NULL));
    free(text);
    return *object && dpi_seal_json(key, *object) ? DPI_STATUS_OK : dpi_no_memory(err, "the job");
}

static dpi_status write_json(const char *folder, const char *name, const json_t *object,
                             dpi_error *err) {
    size_t n_bytes;
    char *text = dpi_json_text(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &n_bytes);
    if (!text)
        return dpi_no_memory(err, "the job");
    const dpi_status status = dpi_folder_write(folder, name, text, n_bytes, err);
    free(text);
    return status;
}

/* shards.json comes last: a folder without it is no job. */
static dpi_status fill_folder(const char *folder, const uint8_t *key, const dpi_release *release,
                              const dpi_report *report, dpi_error *err) {
    json_t *object = NULL;
    dpi_status status = describe(key, release, report, &object, err);
    if (status == DPI_STATUS_OK)
        status = dpi_folder_write(folder, "key", key, DPI_RELEASE_KEY_BYTES, err);
    if (status == DPI_STATUS_OK)
        status = write_json(folder, "shards.json", object, err);
    json_decref(object);
    return status;
}

/* With scope UNIT each unit pays for itself, and one that cannot is null: which ones these are is
 * known to the process that has charged them, and to no shard. */
static dpi_status check_scope(const dpi_release *release, dpi_error *err) {
    dpi_dataset_info info;
    if (!release->books.ledger || !release->books.dataset)
        return DPI_STATUS_OK;
    dpi_dataset_info_init(&info);
    DPI_TRY(dpi_ledger_info(release->books.ledger, release->books.dataset, &info, err));
    return info.scope == DPI_SCOPE_DATASET
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                          "shards cannot be charged to '%s', whose scope is unit", info.name);
}

/* The folder is there. The charge is on the disk before a record is read, and stays from then
 * on. */
static dpi_status make_job(const char *folder, dpi_release *release, dpi_report *report,
                           dpi_error *err) {
    uint8_t key[DPI_RELEASE_KEY_BYTES];
    DPI_TRY(dpi_random_fill(NULL, NULL, key, sizeof key, err));
    dpi_status status = dpi_books_own_ledger(&release->books, folder, err);
    if (status == DPI_STATUS_OK)
        status = dpi_release_reserve(release, err);
    if (status == DPI_STATUS_OK)
        status = dpi_report_update(report, dpi_release_run(release), err);
    if (status == DPI_STATUS_OK) {
        release->books.charge = 0; /* it is the job's: not given back with the release */
        status = fill_folder(folder, key, release, report, err);
    }
    dpi_books_end_ledger(&release->books, status == DPI_STATUS_OK);
    dpi_wipe(key, sizeof key);
    return status;
}

dpi_status dpi_shards_create(const char *folder, dpi_release *release, dpi_report *report,
                          dpi_error *err) {
    if (release->books.begun)
        return dpi_fail(err, DPI_STATUS_STATE, "the release has begun already");
    DPI_TRY(check_scope(release, err));
    DPI_TRY(dpi_plan_check_shared(&release->plan.options, err));
    DPI_TRY(dpi_folder_make(folder, err));
    const dpi_status status = make_job(folder, release, report, err);
    if (status != DPI_STATUS_OK)
        rmdir(folder); /* if it is empty */
    return status;
}

/* ---- Opening --------------------------------------------------------------------------------- */

dpi_status dpi_shards_load(const uint8_t *key, const char *folder, const char *name,
                           json_t **object, dpi_error *err) {
    char *text;
    size_t n_bytes;
    DPI_TRY(dpi_folder_read(folder, name, 0, &text, &n_bytes, err));
    json_t *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, NULL);
    dpi_private_free(text);
    if (root && dpi_seal_json_holds(key, root)) {
        *object = root;
        return DPI_STATUS_OK;
    }
    json_decref(root);
    return dpi_fail(err, DPI_STATUS_FORMAT,
                    "%s/%s is not of this job: it was changed, or has another key", folder, name);
}

/* False: the folder is there, and has none. */
static bool has_key(const char *folder) {
    char *name;
    if (dpi_folder_path(folder, "key", &name, NULL) != DPI_STATUS_OK)
        return true; /* which fails again where it is read */
    const bool has = access(name, F_OK) == 0 || errno != ENOENT || access(folder, F_OK) != 0;
    free(name);
    return has;
}

static dpi_status read_key(dpi_shards *job, dpi_error *err) {
    char *bytes;
    size_t n_bytes;
    if (!has_key(job->folder))
        return dpi_fail(err, DPI_STATUS_IO, "%s is not the folder of a job in shards: it has no "
                        "file 'key'", job->folder);
    DPI_TRY(dpi_folder_read(job->folder, "key", 1, &bytes, &n_bytes, err));
    if (n_bytes == sizeof job->key)
        memcpy(job->key, bytes, n_bytes);
    dpi_private_free(bytes);
    return n_bytes == sizeof job->key
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_FORMAT, "%s/key has %zu bytes, allowed %zu", job->folder,
                          n_bytes, sizeof job->key);
}

static dpi_status read_report(dpi_shards *job, dpi_error *err) {
    char *name, *text;
    size_t n_bytes;
    const json_t *format = json_object_get(job->root, "dpinfer_shards");
    if (!json_is_integer(format) || json_integer_value(format) != DPI_SHARDS_FORMAT)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s/shards.json: this program knows dpinfer_shards %d", job->folder,
                        DPI_SHARDS_FORMAT);
    DPI_TRY(dpi_folder_path(job->folder, "shards.json", &name, err));
    text = dpi_json_text(json_object_get(job->root, "report"), JSON_REAL_PRECISION(17), &n_bytes);
    dpi_status status = text ? dpi_report_parse(name, text, n_bytes, &job->report, err)
                             : dpi_no_memory(err, "the job");
    if (status == DPI_STATUS_OK)
        dpi_report_reopen(job->report);
    free(text);
    free(name);
    return status;
}

static dpi_status open_job(dpi_shards *job, const char *folder, dpi_error *err) {
    DPI_TRY(dpi_folder_path(folder, NULL, &job->folder, err));
    DPI_TRY(read_key(job, err));
    DPI_TRY(dpi_shards_load(job->key, folder, "shards.json", &job->root, err));
    return read_report(job, err);
}

dpi_status dpi_shards_open(const char *folder, dpi_shards **job, dpi_error *err) {
    dpi_shards *j = dpi_private_malloc(sizeof *j);
    if (!j)
        return dpi_no_memory(err, "the job");
    *j = (dpi_shards){0};
    const dpi_status status = open_job(j, folder, err);
    if (status == DPI_STATUS_OK)
        *job = j;
    else
        dpi_shards_close(j);
    return status;
}

void dpi_shards_close(dpi_shards *j) {
    if (!j)
        return;
    dpi_report_free(j->report);
    json_decref(j->root);
    free(j->folder);
    free(j->shard_folder);
    free(j->texts);
    dpi_private_free(j);
}

/* ---- A shard --------------------------------------------------------------------------------- */

static dpi_status name_shard(dpi_shards *job, dpi_error *err) {
    char *name;
    free(job->shard_folder);
    free(job->texts);
    job->shard_folder = job->texts = NULL;
    DPI_TRY(dpi_shard_name(job->shard, job->n_shards, &name, err));
    dpi_status status = dpi_folder_path(job->folder, name, &job->shard_folder, err);
    free(name);
    if (status == DPI_STATUS_OK)
        status = dpi_folder_path(job->shard_folder, "texts.jsonl", &job->texts, err);
    return status;
}

dpi_status dpi_shards_join(dpi_shards *job, int32_t i, int32_t n, dpi_release_options *options,
                        dpi_error *err) {
    DPI_TRY(dpi_check_range("n_shards", n, 1, INT32_MAX, err));
    DPI_TRY(dpi_check_range("shard", i, 0, n - 1, err));
    const dpi_run *claim = dpi_report_run(job->report);
    job->shard = i;
    job->n_shards = n;
    DPI_TRY(name_shard(job, err));
    options->shard = i;
    options->n_shards = n;
    options->key = job->key;
    options->charged = claim->ledger.dataset[0] ? &claim->ledger : NULL;
    if (dpi_run_is_assigned(claim) && claim->method.allocation == 0) /* a ledger may have said so */
        options->known_batches = 1;
    return DPI_STATUS_OK;
}

const char *dpi_shards_folder(const dpi_shards *job) { return job->shard_folder; }

/* The last part of a path: what an option sets. */
static const char *key_of(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* The first that differs is named, as both have it: all of them are public. */
static dpi_status check_parameters(const json_t *found, const json_t *wanted, dpi_error *err) {
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(15);
    char path[DPI_JSON_PATH_MAX];
    const json_t *values[2];
    size_t n;
    if (!dpi_json_difference(found, wanted, path, values))
        return DPI_STATUS_OK;
    char *x = values[0] ? dpi_json_text(values[0], flags, &n) : NULL;
    char *y = values[1] ? dpi_json_text(values[1], flags, &n) : NULL;
    const dpi_status status = dpi_fail(err, DPI_STATUS_ARG, "%s: found %s, the job has %s",
                                       key_of(path), x ? x : "nothing", y ? y : "nothing");
    free(x);
    free(y);
    return status;
}

static dpi_status check_claim(const dpi_shards *job, const dpi_release *release, dpi_error *err) {
    json_t *found = dpi_report_parameters(dpi_release_run(release));
    json_t *wanted = dpi_report_parameters(dpi_report_run(job->report));
    const dpi_status status = found && wanted ? check_parameters(found, wanted, err)
                                              : dpi_no_memory(err, "the job");
    json_decref(found);
    json_decref(wanted);
    return status;
}

static dpi_status check_digest(const dpi_shards *job, const char *name, const char *hex,
                               dpi_error *err) {
    const char *wanted = json_string_value(json_object_get(job->root, name));
    return wanted && strcmp(wanted, hex) == 0
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_ARG, "the %s are not those of the job", name);
}

static dpi_status check_release(const dpi_shards *job, const dpi_release *release,
                                const dpi_report *report, dpi_error *err) {
    char hex[DPI_DIGEST_HEX + 1];
    if (!json_equal(report->model, job->report->model))
        return dpi_fail(err, DPI_STATUS_ARG, "the model is not that of the job");
    DPI_TRY(check_claim(job, release, err));
    DPI_TRY(dpi_seal_prompts(job->key, &release->plan, hex, err));
    DPI_TRY(check_digest(job, "prompts", hex, err));
    DPI_TRY(dpi_seal_records(job->key, &release->plan, hex, err));
    return check_digest(job, "records", hex, err);
}

dpi_status dpi_shards_count(const char *folder, int32_t *n_shards, dpi_error *err) {
    char *path, *text;
    size_t n_bytes;
    DPI_TRY(dpi_folder_path(folder, "count", &path, err));
    const bool is_there = access(path, F_OK) == 0 || errno != ENOENT;
    free(path);
    *n_shards = 0;
    if (!is_there)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_folder_read(folder, "count", 0, &text, &n_bytes, err));
    const long n = strtol(text, NULL, 10);
    dpi_private_free(text);
    if (n < 1 || n > INT32_MAX)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s/count holds no number of shards", folder);
    *n_shards = (int32_t)n;
    return DPI_STATUS_OK;
}

/* The first shard says how many there are: with two counts two shards would draw the same text. */
static dpi_status fix_count(const dpi_shards *job, dpi_error *err) {
    char text[16];
    int32_t n_shards;
    const int n_bytes = snprintf(text, sizeof text, "%d\n", job->n_shards);
    dpi_status status = dpi_folder_write(job->folder, "count", text, (size_t)n_bytes, err);
    if (status != DPI_STATUS_STATE)
        return status;
    DPI_TRY(dpi_shards_count(job->folder, &n_shards, err));
    return n_shards == job->n_shards
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_STATE, "%s was begun with %d shards, found %d",
                          job->folder, n_shards, job->n_shards);
}

/* Without a journal: the folder is the mark. */
static dpi_status mark_begun(const dpi_shards *job, dpi_error *err) {
    const dpi_status status = dpi_folder_make(job->shard_folder, err);
    if (status == DPI_STATUS_STATE)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "shard %d/%d has begun before (%s): its texts drawn a second time would "
                        "cost a second charge", job->shard, job->n_shards, job->shard_folder);
    return status;
}

/* Whether all texts of the shard are there, as they were when it ended. */
static dpi_status find_end(dpi_shards *job, bool *is_there, dpi_error *err) {
    char hex[DPI_DIGEST_HEX + 1], *text, *path;
    size_t n_bytes;
    json_t *end;
    DPI_TRY(dpi_folder_path(job->shard_folder, "shard.json", &path, err));
    *is_there = access(path, F_OK) == 0;
    free(path);
    if (!*is_there)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_shards_load(job->key, job->shard_folder, "shard.json", &end, err));
    const char *wanted = json_string_value(json_object_get(end, "texts"));
    if (json_is_true(json_object_get(end, "complete")) &&
        dpi_folder_read(job->shard_folder, "texts.jsonl", 0, &text, &n_bytes, NULL) ==
            DPI_STATUS_OK) {
        dpi_seal_bytes(job->key, "texts", text, n_bytes, hex);
        dpi_private_free(text);
        job->is_over = wanted && strcmp(wanted, hex) == 0;
    }
    json_decref(end);
    return DPI_STATUS_OK;
}

/* What killed processes have left of texts.jsonl: the journal has it. */
static dpi_status remove_parts(const dpi_shards *job, dpi_error *err) {
    static const char begin[] = "texts.jsonl.part-";
    dpi_status status = DPI_STATUS_OK;
    DIR *folder = opendir(job->shard_folder);
    const struct dirent *entry;
    while (folder && status == DPI_STATUS_OK && (entry = readdir(folder)))
        if (strncmp(entry->d_name, begin, strlen(begin)) == 0)
            status = dpi_folder_remove(job->shard_folder, entry->d_name, err);
    if (folder)
        closedir(folder);
    return status;
}

/* With a journal in the folder of the shard it goes on where that ends, and its texts are written
 * anew. An end that was not the last one goes first. */
static dpi_status go_on(dpi_shards *job, const dpi_journal *journal, dpi_error *err) {
    bool ended;
    if (!dpi_journal_is_in(journal, job->shard_folder))
        return dpi_fail(err, DPI_STATUS_ARG, "the journal of a shard must be in %s",
                        job->shard_folder);
    DPI_TRY(find_end(job, &ended, err));
    DPI_TRY(remove_parts(job, err));
    if (!ended || job->is_over)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_folder_remove(job->shard_folder, "shard.json", err));
    return dpi_folder_remove(job->shard_folder, "texts.jsonl", err);
}

dpi_status dpi_shards_begin(dpi_shards *job, const dpi_release *release, const dpi_report *report,
                         dpi_error *err) {
    if (job->n_shards == 0)
        return dpi_fail(err, DPI_STATUS_STATE, "a shard begins after dpi_shards_join");
    job->journal = release->plan.options.journal;
    DPI_TRY(check_release(job, release, report, err));
    DPI_TRY(fix_count(job, err));
    const dpi_status status =
        job->journal ? go_on(job, job->journal, err) : mark_begun(job, err);
    job->begun = status == DPI_STATUS_OK;
    return status;
}

int32_t dpi_shards_is_over(const dpi_shards *job) { return job->is_over; }

const char *dpi_shards_texts(const dpi_shards *job) { return job->texts; }

/* The texts are on the disk before their digest. */
static dpi_status write_end(const dpi_shards *job, bool complete, dpi_error *err) {
    char hex[DPI_DIGEST_HEX + 1], *text;
    size_t n_bytes;
    DPI_TRY(dpi_folder_sync(job->shard_folder, "texts.jsonl", err));
    DPI_TRY(dpi_folder_read(job->shard_folder, "texts.jsonl", 0, &text, &n_bytes, err));
    dpi_seal_bytes(job->key, "texts", text, n_bytes, hex);
    dpi_private_free(text);
    json_t *object = json_pack("{s:i, s:i, s:i, s:b, s:s}", "dpinfer_shard", DPI_SHARDS_FORMAT,
                               "shard", job->shard, "n_shards", job->n_shards, "complete",
                               complete, "texts", hex);
    dpi_status status = object && dpi_seal_json(job->key, object)
                            ? write_json(job->shard_folder, "shard.json", object, err)
                            : dpi_no_memory(err, "the job");
    json_decref(object);
    return status;
}

dpi_status dpi_shards_end(dpi_shards *job, int32_t end, dpi_error *err) {
    if (!job->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "a shard ends after its begin");
    if (job->is_over)
        return DPI_STATUS_OK;
    if (end != DPI_SHARD_UNDRAWN)
        return write_end(job, end == DPI_SHARD_COMPLETE, err);
    if (job->journal)
        return DPI_STATUS_OK;
    return rmdir(job->shard_folder) == 0
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_IO, "cannot remove %s: %s", job->shard_folder,
                          dpi_reason(errno));
}
