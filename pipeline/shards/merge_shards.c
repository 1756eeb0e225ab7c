/* merge_shards.c - the texts of all shards as those of one release. See dpinfer/shards.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "dpinfer/memory.h"
#include "pipeline/release/report.h"
#include "pipeline/shards/folder.h"
#include "pipeline/shards/shards.h"

/* What one folder of a shard is found to be. */
typedef struct shard {
    const char *folder; /* of the job; NULL: the shard was not found */
    bool over, complete;
    char *texts; /* its texts.jsonl */
    size_t n_bytes;
} shard;

struct dpi_merge {
    dpi_shards **jobs; /* [n_jobs] folders */
    size_t n_jobs;
    int32_t n_shards, n_texts, n_present;
    shard *shards; /* [n_shards] */
    dpi_merged_text *texts; /* [n_texts] */
    json_t **lines;         /* [n_texts] what they point into */
};

/* ---- Folders --------------------------------------------------------------------------------- */

static dpi_status open_jobs(dpi_merge *m, const char *const *folders, size_t n, dpi_error *err) {
    m->jobs = dpi_calloc(n, sizeof *m->jobs);
    if (!m->jobs)
        return dpi_no_memory(err, "the texts");
    for (; m->n_jobs < n; m->n_jobs++) {
        int32_t n_shards;
        DPI_TRY(dpi_shards_open(folders[m->n_jobs], &m->jobs[m->n_jobs], err));
        if (memcmp(m->jobs[m->n_jobs]->key, m->jobs[0]->key, sizeof m->jobs[0]->key) != 0 ||
            !json_equal(m->jobs[m->n_jobs]->root, m->jobs[0]->root)) {
            m->n_jobs++;
            return dpi_fail(err, DPI_STATUS_FORMAT, "%s and %s are not the same job", folders[0],
                            folders[m->n_jobs - 1]);
        }
        DPI_TRY(dpi_shards_count(folders[m->n_jobs], &n_shards, err));
        if (n_shards > 0 && m->n_shards > 0 && n_shards != m->n_shards) {
            m->n_jobs++;
            return dpi_fail(err, DPI_STATUS_FORMAT, "%s has %d shards, others have %d",
                            folders[m->n_jobs - 1], n_shards, m->n_shards);
        }
        m->n_shards = n_shards > 0 ? n_shards : m->n_shards;
    }
    return m->n_shards > 0 ? DPI_STATUS_OK
                           : dpi_fail(err, DPI_STATUS_STATE, "%s: no shard has begun", folders[0]);
}

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The texts of a shard that is over, as they were when it ended. */
static dpi_status read_shard(const dpi_shards *job, const char *folder, int32_t i, int32_t n,
                             shard *s, dpi_error *err) {
    char hex[DPI_DIGEST_HEX + 1];
    json_t *end;
    DPI_TRY(dpi_shards_load(job->key, folder, "shard.json", &end, err));
    const char *wanted = json_string_value(json_object_get(end, "texts"));
    const bool same = json_integer_value(json_object_get(end, "shard")) == i &&
                      json_integer_value(json_object_get(end, "n_shards")) == n;
    dpi_status status = dpi_folder_read(folder, "texts.jsonl", 0, &s->texts, &s->n_bytes, err);
    if (status == DPI_STATUS_OK)
        dpi_seal_bytes(job->key, "texts", s->texts, s->n_bytes, hex);
    if (status == DPI_STATUS_OK && !same)
        status = dpi_fail(err, DPI_STATUS_FORMAT, "%s holds another shard than its name says",
                          folder);
    if (status == DPI_STATUS_OK && (!wanted || strcmp(wanted, hex) != 0))
        status = dpi_fail(err, DPI_STATUS_FORMAT,
                          "%s/texts.jsonl is not what the shard has written", folder);
    s->over = true;
    s->complete = json_is_true(json_object_get(end, "complete"));
    json_decref(end);
    return status;
}

/* A shard that is in two folders has drawn its texts twice: one charge does not cover both. */
static dpi_status find_shard(dpi_merge *m, const dpi_shards *job, int32_t i, dpi_error *err) {
    shard *s = &m->shards[i];
    char *name, *folder, *end = NULL;
    DPI_TRY(dpi_shard_name(i, m->n_shards, &name, err));
    dpi_status status = dpi_folder_path(job->folder, name, &folder, err);
    free(name);
    if (status == DPI_STATUS_OK && is_folder(folder)) {
        if (s->folder)
            status = dpi_fail(err, DPI_STATUS_FORMAT,
                              "shard %d/%d is there twice: in %s and in %s", i, m->n_shards,
                              s->folder, job->folder);
        s->folder = job->folder;
        if (status == DPI_STATUS_OK)
            status = dpi_folder_path(folder, "shard.json", &end, err);
        if (status == DPI_STATUS_OK && access(end, F_OK) == 0)
            status = read_shard(job, folder, i, m->n_shards, s, err);
        free(end);
    }
    free(folder);
    return status;
}

static dpi_status find_shards(dpi_merge *m, dpi_error *err) {
    m->shards = dpi_calloc((size_t)m->n_shards, sizeof *m->shards);
    if (!m->shards)
        return dpi_no_memory(err, "the texts");
    for (size_t j = 0; j < m->n_jobs; j++)
        for (int32_t i = 0; i < m->n_shards; i++)
            DPI_TRY(find_shard(m, m->jobs[j], i, err));
    return DPI_STATUS_OK;
}

/* All shards that have not begun, are not over, or have stopped. */
static dpi_status name_missing(const dpi_merge *m, dpi_error *err) {
    enum { MOST = 20 };
    dpi_text list = {0};
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_shards; i++) {
        const shard *s = &m->shards[i];
        if (s->complete)
            continue;
        if (n++ < MOST)
            dpi_text_add(&list, "%s%d/%d %s", n > 1 ? ", " : "", i, m->n_shards,
                         !s->folder ? "has not begun"
                         : s->over  ? "has stopped early"
                                    : "is not over");
    }
    const dpi_status status =
        n == 0 ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_STATE, "%d of %d shards are missing: %s%s", n,
                          m->n_shards, list.data ? list.data : "", n > MOST ? ", ..." : "");
    free(list.data);
    return status;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* A line of shard i into its place. */
static dpi_status keep_line(dpi_merge *m, int32_t i, const char *line, size_t n, dpi_error *err) {
    json_t *object = json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    const json_t *index = json_object_get(object, "index"), *text = json_object_get(object, "text");
    const json_int_t at = json_is_integer(index) ? json_integer_value(index) : -1;
    if (at < 0 || at >= m->n_texts || at % m->n_shards != i || !json_is_string(text)) {
        json_decref(object);
        return dpi_fail(err, DPI_STATUS_FORMAT, "shard %d/%d holds a text that is none of its own",
                        i, m->n_shards);
    }
    if (m->lines[at]) {
        json_decref(object);
        return dpi_fail(err, DPI_STATUS_FORMAT, "text %lld is there twice", (long long)at);
    }
    m->lines[at] = object;
    m->n_present++;
    m->texts[at] = (dpi_merged_text){.text = json_string_value(text),
                                     .n_bytes = json_string_length(text),
                                     .line = line,
                                     .n_line = n,
                                     .label = json_string_value(
                                         json_object_get(object, "text_label")),
                                     .n_tokens = (int32_t)json_integer_value(
                                         json_object_get(object, "n_tokens")),
                                     .end = json_is_true(json_object_get(object, "ended"))
                                                ? DPI_END_EOG
                                                : DPI_END_LENGTH};
    return DPI_STATUS_OK;
}

static dpi_status keep_lines(dpi_merge *m, int32_t i, dpi_error *err) {
    const shard *s = &m->shards[i];
    const char *end = s->texts + s->n_bytes;
    for (const char *line = s->texts; line && line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        DPI_TRY(keep_line(m, i, line, (size_t)((next ? next : end) - line), err));
        line = next ? next + 1 : end;
    }
    return DPI_STATUS_OK;
}

static dpi_status keep_texts(dpi_merge *m, bool partial, dpi_error *err) {
    m->texts = dpi_calloc((size_t)m->n_texts, sizeof *m->texts);
    m->lines = dpi_calloc((size_t)m->n_texts, sizeof *m->lines);
    if (!m->texts || !m->lines)
        return dpi_no_memory(err, "the texts");
    for (int32_t i = 0; i < m->n_shards; i++)
        DPI_TRY(keep_lines(m, i, err));
    for (int32_t t = 0; t < m->n_texts && !partial; t++)
        if (!m->lines[t])
            return dpi_fail(err, DPI_STATUS_FORMAT, "text %d of %d is missing", t, m->n_texts);
    return DPI_STATUS_OK;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static dpi_status open_merge(dpi_merge *m, const char *const *folders, size_t n, bool partial,
                             dpi_error *err) {
    if (n == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "no folder of a job");
    DPI_TRY(open_jobs(m, folders, n, err));
    m->n_texts = dpi_report_run(m->jobs[0]->report)->n_texts;
    DPI_TRY(find_shards(m, err));
    if (!partial)
        DPI_TRY(name_missing(m, err));
    return keep_texts(m, partial, err);
}

dpi_status dpi_merge_open(const char *const *folders, size_t n_folders, int32_t partial,
                          dpi_merge **merge, dpi_error *err) {
    dpi_merge *m = dpi_calloc(1, sizeof *m);
    if (!m)
        return dpi_no_memory(err, "the texts");
    const dpi_status status = open_merge(m, folders, n_folders, partial != 0, err);
    if (status == DPI_STATUS_OK)
        *merge = m;
    else
        dpi_merge_close(m);
    return status;
}

void dpi_merge_close(dpi_merge *m) {
    if (!m)
        return;
    for (int32_t i = 0; m->shards && i < m->n_shards; i++)
        dpi_private_free(m->shards[i].texts);
    for (int32_t t = 0; m->lines && t < m->n_texts; t++)
        json_decref(m->lines[t]);
    for (size_t j = 0; j < m->n_jobs; j++)
        dpi_shards_close(m->jobs[j]);
    free(m->jobs);
    free(m->shards);
    free(m->texts);
    free(m->lines);
    free(m);
}

int32_t dpi_merge_count(const dpi_merge *m, int32_t *n_present) {
    *n_present = m->n_present;
    return m->n_texts;
}

dpi_status dpi_merge_text(const dpi_merge *m, int32_t i, dpi_merged_text *text, dpi_error *err) {
    DPI_TRY(dpi_check_range("text", i, 0, m->n_texts - 1, err));
    *text = m->texts[i];
    return DPI_STATUS_OK;
}

dpi_report *dpi_merge_report(const dpi_merge *m) { return m->jobs[0]->report; }
