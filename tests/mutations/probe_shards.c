/* probe_shards.c - see probe_shards.h. Real folders; the texts of a made-up model. */
#include "tests/mutations/probe_shards.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct world {
    const dpi_model *model;
    const char *folder;
    char file[400]; /* stands for the model's: of it only the hash is looked at */
    dpi_records *records, *others;
    dpi_ledger *ledger;
    bool begun; /* the last shard has passed dpi_shards_begin */
} world;

static void path_of(const world *w, const char *name, char path[400]) {
    snprintf(path, 400, "%s/%s", w->folder, name);
}

static void set_options(const world *w, const dpi_records *records, dpi_release_options *o) {
    dpi_release_options_init(o);
    o->model = w->model;
    o->records = records;
    o->batch = 1;
    o->n_tokens = 2;
    o->session.n_threads = 1;
    o->prompts.chat = DPI_CHAT_NONE;
    o->method.rho = .1;
    o->method.delta = 1e-3;
}

/* A job that is charged to a dataset; NULL: to none. */
static dpi_status make_job(const world *w, const char *name, const char *dataset) {
    char path[400];
    dpi_release_options o;
    dpi_release *release = NULL;
    dpi_report *report = NULL;
    path_of(w, name, path);
    set_options(w, w->records, &o);
    o.ledger = dataset ? w->ledger : NULL;
    o.dataset = dataset;
    dpi_status status = dpi_release_open(&o, &release, NULL);
    if (status == DPI_STATUS_OK)
        status = dpi_report_create(dpi_release_claim(release), w->model, w->file, &report, NULL);
    if (status == DPI_STATUS_OK)
        status = dpi_shards_create(path, release, report, NULL);
    dpi_report_free(report);
    dpi_release_free(release);
    return status;
}

static dpi_status write_texts(dpi_shards *job, dpi_release *release) {
    dpi_release_event e = {0};
    dpi_status status = DPI_STATUS_OK;
    FILE *f = fopen(dpi_shards_texts(job), "w");
    if (!f)
        return DPI_STATUS_IO;
    while (status == DPI_STATUS_OK) {
        status = dpi_release_advance(release, &e, NULL);
        if (status != DPI_STATUS_OK || e.type == DPI_EVENT_NONE)
            break;
        char *line = NULL;
        size_t n;
        if (e.type != DPI_EVENT_END)
            continue;
        status = dpi_release_line(release, e.index, "a text", 6, e.n_drawn, e.end, &line, &n, NULL);
        if (status == DPI_STATUS_OK && fprintf(f, "%s\n", line) < 0)
            status = DPI_STATUS_IO;
        free(line);
    }
    fclose(f);
    return status == DPI_STATUS_OK ? dpi_shards_end(job, DPI_SHARD_COMPLETE, NULL) : status;
}

/* A whole shard. */
static dpi_status draw_shard(world *w, const char *name, int32_t i, int32_t n,
                             const dpi_records *records) {
    char path[400];
    dpi_release_options o;
    dpi_release *release = NULL;
    dpi_report *report = NULL;
    dpi_shards *job = NULL;
    path_of(w, name, path);
    set_options(w, records, &o);
    dpi_status status = dpi_shards_open(path, &job, NULL);
    if (status == DPI_STATUS_OK)
        status = dpi_shards_join(job, i, n, &o, NULL);
    if (status == DPI_STATUS_OK)
        status = dpi_release_open(&o, &release, NULL);
    if (status == DPI_STATUS_OK)
        status = dpi_report_create(dpi_release_claim(release), w->model, w->file, &report, NULL);
    if (status == DPI_STATUS_OK)
        status = dpi_shards_begin(job, release, report, NULL);
    w->begun = status == DPI_STATUS_OK;
    if (status == DPI_STATUS_OK)
        status = write_texts(job, release);
    dpi_release_free(release);
    dpi_report_free(report);
    dpi_shards_close(job);
    return status;
}

static dpi_status merge(const world *w, const char *first, const char *second, int32_t *n_present) {
    char paths[2][400];
    dpi_merge *m = NULL;
    path_of(w, first, paths[0]);
    path_of(w, second ? second : first, paths[1]);
    const dpi_status status =
        dpi_merge_open((const char *const[]){paths[0], paths[1]}, second ? 2 : 1, 0, &m, NULL);
    if (status == DPI_STATUS_OK)
        dpi_merge_count(m, n_present);
    dpi_merge_close(m);
    return status;
}

/* `was` becomes `is` in the copy, both of one length; NULL: nothing does. */
static bool copy_file(const world *w, const char *from, const char *to, const char *was,
                      const char *is) {
    char path[400], target[400], bytes[1 << 16];
    path_of(w, from, path);
    path_of(w, to, target);
    FILE *in = fopen(path, "rb");
    size_t n = in ? fread(bytes, 1, sizeof bytes - 1, in) : 0;
    bytes[n] = '\0';
    if (in)
        fclose(in);
    char *at = was ? strstr(bytes, was) : NULL;
    if (at)
        memcpy(at, is, strlen(is));
    FILE *out = fopen(target, "wb");
    const bool done = out && n > 0 && fwrite(bytes, 1, n, out) == n && (at || !was);
    if (out)
        fclose(out);
    chmod(target, 0600);
    return done;
}

static bool same_keys(const world *w, const char *first, const char *second) {
    char path[400], x[32], y[32];
    path_of(w, first, path);
    FILE *f = fopen(path, "rb");
    const bool read = f && fread(x, 1, sizeof x, f) == sizeof x;
    if (f)
        fclose(f);
    path_of(w, second, path);
    FILE *g = fopen(path, "rb");
    const bool both = read && g && fread(y, 1, sizeof y, g) == sizeof y;
    if (g)
        fclose(g);
    return !both || memcmp(x, y, sizeof x) == 0;
}

/* ---- What must hold -------------------------------------------------------------------------- */

static int64_t charged(const world *w) {
    dpi_dataset_info info;
    dpi_dataset_info_init(&info);
    return dpi_ledger_info(w->ledger, "shards", &info, NULL) == DPI_STATUS_OK ? info.charged : -1;
}

/* rho .1 at order 5, and then nothing that would fit. */
static const char *check_charge(const world *w) {
    dpi_dataset_options o;
    char path[400];
    dpi_dataset_options_init(&o);
    o.name = "shards";
    o.epsilon = 2;
    o.delta = 1e-5;
    if (dpi_ledger_add(w->ledger, &o, NULL) != DPI_STATUS_OK ||
        make_job(w, "charged", "shards") != DPI_STATUS_OK)
        return "a job was refused";
    const int64_t before = charged(w);
    if (before <= 0)
        return "the charge of a job comes back";
    dpi_status status = DPI_STATUS_OK;
    for (int i = 0; i < 10 && status == DPI_STATUS_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "charged-%d", i);
        path_of(w, name, path);
        status = make_job(w, name, "shards");
    }
    strcat(path, "/shards.json");
    return status != DPI_STATUS_BUDGET || access(path, F_OK) == 0
               ? "a job is made that its dataset has no budget for"
               : NULL;
}

static const char *check_begin(world *w) {
    if (make_job(w, "job", NULL) != DPI_STATUS_OK ||
        draw_shard(w, "job", 0, 2, w->records) != DPI_STATUS_OK)
        return "a shard was refused";
    if (draw_shard(w, "job", 0, 2, w->records) == DPI_STATUS_OK || w->begun)
        return "a shard begins twice";
    if (draw_shard(w, "job", 1, 3, w->records) == DPI_STATUS_OK || w->begun)
        return "shards of another number begin";
    if (draw_shard(w, "job", 1, 2, w->others) == DPI_STATUS_OK || w->begun)
        return "a shard begins with other records";
    int32_t n_present;
    if (merge(w, "job", NULL, &n_present) == DPI_STATUS_OK)
        return "a missing shard is not noticed";
    return draw_shard(w, "job", 1, 2, w->records) == DPI_STATUS_OK ? NULL : "a shard was refused";
}

/* The folder "copy" has shard 0, which "job" has too; then it has another key. */
static const char *check_merge(const world *w) {
    static const char *const folders[] = {"copy", "copy/shard-0-of-2"};
    static const char *const files[] = {"key", "shards.json", "count", "shard-0-of-2/texts.jsonl",
                                        "shard-0-of-2/shard.json"};
    char path[400], from[100], to[100];
    int32_t n_present = 0;
    if (merge(w, "job", NULL, &n_present) != DPI_STATUS_OK || n_present != 4)
        return "a merge loses texts";
    for (int i = 0; i < 2; i++) {
        path_of(w, folders[i], path);
        mkdir(path, 0700);
    }
    for (int i = 0; i < 5; i++) {
        snprintf(from, sizeof from, "job/%s", files[i]);
        snprintf(to, sizeof to, "copy/%s", files[i]);
        if (!copy_file(w, from, to, NULL, NULL))
            return "a job cannot be copied";
    }
    if (merge(w, "job", "copy", &n_present) == DPI_STATUS_OK)
        return "a shard is merged twice";
    if (make_job(w, "second", NULL) != DPI_STATUS_OK || same_keys(w, "job/key", "second/key"))
        return "two jobs have one key";
    if (!copy_file(w, "job/shards.json", "job/shards.json", "\"T\": 2", "\"T\": 1"))
        return "a claim cannot be changed";
    if (merge(w, "job", NULL, &n_present) == DPI_STATUS_OK)
        return "a claim that was changed becomes the report";
    copy_file(w, "copy/shards.json", "job/shards.json", NULL, NULL);
    copy_file(w, "second/key", "job/key", NULL, NULL);
    return merge(w, "job", NULL, &n_present) == DPI_STATUS_OK ? "shards of another key are merged"
                                                              : NULL;
}

static bool open_world(world *w) {
    static const char *const texts[] = {"one", "two", "three", "four"};
    static const char *const changed[] = {"one", "two", "three", "five"};
    static const size_t n_bytes[] = {3, 3, 5, 4};
    dpi_ledger_options o;
    char path[400];
    dpi_ledger_options_init(&o);
    o.create = 1;
    path_of(w, "shards.ledger", path);
    path_of(w, "model", w->file);
    FILE *f = fopen(w->file, "wb");
    return f && fputs("a model", f) >= 0 && fclose(f) == 0 &&
           dpi_ledger_open(path, &o, &w->ledger, NULL) == DPI_STATUS_OK &&
           dpi_records_create(texts, n_bytes, 4, &w->records, NULL) == DPI_STATUS_OK &&
           dpi_records_create(changed, n_bytes, 4, &w->others, NULL) == DPI_STATUS_OK;
}

const char *probe_shards(const dpi_model *model, const char *folder) {
    world w = {.model = model, .folder = folder};
    const char *fault = open_world(&w) ? check_charge(&w) : "files cannot be made";
    if (!fault)
        fault = check_begin(&w);
    if (!fault)
        fault = check_merge(&w);
    dpi_ledger_close(w.ledger);
    dpi_records_close(w.records);
    dpi_records_close(w.others);
    return fault;
}
