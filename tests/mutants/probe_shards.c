/* probe_shards.c - jobs, shards and merges, see probes.h. Real folders; the texts of a made-up
 * model. */
#include "tests/mutants/probes.h"

#include <sys/stat.h>
#include <unistd.h>

#include "dpinfer/shards.h"

static dpi_records *records, *others; /* of four, the last one is another */
static const char *model_file;        /* stands for the model's: of it only the hash is looked at */
static bool begun;                    /* the last shard has passed dpi_shards_begin */
static const int32_t *label_texts;    /* of the labels x and y; NULL: what follows from records */

static dpi_release_options options(const dpi_records *of) {
    dpi_release_options o = small_release(model, of);
    static const char *const names[] = {"x", "y"};
    o.batch = 1, o.n_tokens = 2, o.method.rho = .1;
    if (label_texts)
        o.n_labels = 2, o.label_names = names, o.label_texts = label_texts;
    return o;
}

static dpi_report *report_of(const dpi_release *release) {
    dpi_report *report;
    assert_ok(dpi_report_create(dpi_release_run(release), model, model_file, &report, ERR));
    return report;
}

/* A job that is charged to a dataset; NULL: to none. */
static dpi_status make_job(const char *name, const char *dataset) {
    dpi_release_options o = options(records);
    o.ledger = dataset ? the_ledger : NULL, o.dataset = dataset;
    dpi_release *release = open_release(&o);
    dpi_report *report = report_of(release);
    const dpi_status status = dpi_shards_create(path_in(folder, name), release, report, ERR);
    dpi_report_free(report);
    dpi_release_free(release);
    return status;
}

static int32_t crossed; /* 1: each shard has the texts of the other one */
static int32_t left_out = -1;
static int32_t end_of_shards = DPI_SHARD_COMPLETE;

static dpi_status write_texts(dpi_shards *shards, dpi_release *release) {
    dpi_release_event e = {0};
    FILE *f = fopen(dpi_shards_texts(shards), "w");
    assert_non_null(f);
    for (;;) {
        char *line;
        size_t n;
        assert_ok(dpi_release_advance(release, &e, ERR));
        if (e.type == DPI_EVENT_NONE)
            break;
        if (e.type != DPI_EVENT_END || e.index == left_out)
            continue;
        assert_ok(dpi_release_line(release, e.index ^ crossed, "a text", 6, e.n_drawn, e.end, &line,
                                   &n, ERR));
        fprintf(f, "%s\n", line);
        free(line);
    }
    assert_int_equal(fclose(f), 0);
    return dpi_shards_end(shards, end_of_shards, ERR);
}

/* A whole shard of the job "job". */
static dpi_status draw_shard(int32_t i, int32_t n, const dpi_records *of) {
    dpi_release_options o = options(of);
    dpi_release *release = NULL;
    dpi_report *report = NULL;
    dpi_shards *shards;
    begun = false;
    assert_ok(dpi_shards_open(path_in(folder, "job"), &shards, ERR));
    dpi_status status = dpi_shards_join(shards, i, n, &o, ERR);
    if (status == DPI_STATUS_OK)
        status = dpi_release_open(&o, &release, ERR);
    if (status == DPI_STATUS_OK) {
        report = report_of(release);
        status = dpi_shards_begin(shards, release, report, ERR);
        begun = status == DPI_STATUS_OK;
    }
    if (begun)
        status = write_texts(shards, release);
    dpi_release_free(release);
    dpi_report_free(report);
    dpi_shards_close(shards);
    return status;
}

/* Of one job, or of two folders; *n_present texts are there. */
static dpi_status merge(const char *second, int32_t *n_present) {
    const char *paths[] = {path_in(folder, "job"), second ? path_in(folder, second) : NULL};
    dpi_merge *m = NULL;
    const dpi_status status = dpi_merge_open(paths, second ? 2 : 1, 0, &m, ERR);
    if (status == DPI_STATUS_OK)
        dpi_merge_count(m, n_present);
    dpi_merge_close(m);
    return status;
}

/* `was` becomes `is` in the copy, both of one length; NULL: nothing does. */
static void copy_file(const char *from, const char *to, const char *was, const char *is) {
    size_t n;
    char *bytes = read_file(path_in(folder, from), &n), *at = was ? strstr(bytes, was) : NULL;
    assert_true(at || !was);
    if (at)
        memcpy(at, is, strlen(is));
    write_file(path_in(folder, to), bytes, n);
    chmod(path_in(folder, to), 0600);
    free(bytes);
}

static bool has_same_key(const char *first, const char *second) {
    size_t n, m;
    char *x = read_file(path_in(folder, first), &n), *y = read_file(path_in(folder, second), &m);
    assert_true(n >= 32 && m >= 32);
    const bool same = memcmp(x, y, 32) == 0;
    free(x);
    free(y);
    return same;
}

/* ---- What must hold -------------------------------------------------------------------------- */

/* rho .1 at order 5, and then nothing that would fit. */
static void check_charge(void) {
    char name[32];
    dpi_status status = DPI_STATUS_OK;
    new_ledger();
    add_dataset("shards", 2, 1e-5, DPI_SCOPE_DATASET);
    assert_ok(make_job("charged", "shards"));
    hold(info_of("shards").charged > 0, "the charge of a job comes back");
    for (int i = 0; i < 10 && status == DPI_STATUS_OK; i++) {
        snprintf(name, sizeof name, "charged-%d", i);
        status = make_job(name, "shards");
    }
    strcat(name, "/shards.json");
    hold(status == DPI_STATUS_BUDGET && access(path_in(folder, name), F_OK) != 0,
         "a job is made that its dataset has no budget for");
}

/* One process has the texts of the round before, and no other. */
static void check_rounds(void) {
    dpi_release_options o = options(records);
    o.n_released = 1;
    dpi_release *release = open_release(&o);
    dpi_report *report = report_of(release);
    hold(dpi_shards_create(path_in(folder, "rounds"), release, report, ERR) ==
                 DPI_STATUS_UNSUPPORTED && access(path_in(folder, "rounds"), F_OK) != 0,
         "a job of several processes has rounds");
    dpi_report_free(report);
    dpi_release_free(release);
}

static void hold_no_shard(int32_t i, int32_t n, const dpi_records *of, const char *fault) {
    hold(draw_shard(i, n, of) != DPI_STATUS_OK && !begun, fault);
}

static void check_begin(void) {
    int32_t n_present;
    assert_ok(make_job("job", NULL));
    assert_ok(draw_shard(0, 2, records));
    hold_no_shard(0, 2, records, "a shard begins twice");
    hold_no_shard(1, 3, records, "shards of another number begin");
    hold_no_shard(1, 2, others, "a shard begins with other records");
    hold(merge(NULL, &n_present) != DPI_STATUS_OK, "a missing shard is not noticed");
    assert_ok(draw_shard(1, 2, records));
}

/* The folder "copy" has shard 0, which "job" has too; then "job" has another key. */
static void check_merge(void) {
    static const char *const files[] = {"key", "shards.json", "count", "shard-0-of-2/texts.jsonl",
                                        "shard-0-of-2/shard.json"};
    int32_t n_present = 0;
    assert_ok(merge(NULL, &n_present));
    hold(n_present == 4, "a merge loses texts");
    mkdir(path_in(folder, "copy"), 0700);
    mkdir(path_in(folder, "copy/shard-0-of-2"), 0700);
    for (int i = 0; i < 5; i++) {
        char from[100], to[100];
        snprintf(from, sizeof from, "job/%s", files[i]);
        snprintf(to, sizeof to, "copy/%s", files[i]);
        copy_file(from, to, NULL, NULL);
    }
    hold(merge("copy", &n_present) != DPI_STATUS_OK, "a shard is merged twice");
    assert_ok(make_job("second", NULL));
    hold(!has_same_key("job/key", "second/key"), "two jobs have one key");
    copy_file("job/shards.json", "job/shards.json", "\"n_units\": 4", "\"n_units\": 5");
    hold(merge(NULL, &n_present) != DPI_STATUS_OK, "a claim that was changed becomes the report");
    copy_file("copy/shards.json", "job/shards.json", NULL, NULL);
    copy_file("second/key", "job/key", NULL, NULL);
    hold(merge(NULL, &n_present) != DPI_STATUS_OK, "shards of another key are merged");
}

/* Two new shards of four texts, which are not merged. */
static void hold_no_merge(const char *fault) {
    int32_t n_present;
    remove_dir(path_in(folder, "job"));
    assert_ok(make_job("job", NULL));
    assert_ok(draw_shard(0, 2, records));
    assert_ok(draw_shard(1, 2, records));
    hold(merge(NULL, &n_present) != DPI_STATUS_OK, fault);
}

/* Shards with seals that hold: all texts, in the wrong places; one that is not there; all of them,
 * and a shard that says that it has stopped. */
static void check_texts(void) {
    crossed = 1;
    hold_no_merge("a shard has texts that are none of its own");
    crossed = 0;
    for (left_out = 0; left_out < 4; left_out++)
        hold_no_merge("a text that is missing is not noticed");
    left_out = -1, end_of_shards = DPI_SHARD_STOPPED;
    hold_no_merge("shards that have stopped are taken for whole ones");
    end_of_shards = DPI_SHARD_COMPLETE;
}

/* Of people with labels: whose a record is, and which label it has, is that of the job for each
 * shard, though texts and numbers are the same. */
static void check_people(void) {
#define PEOPLE "who,kind,text\na,x,one\n"
    static const char people[] = PEOPLE "b,y,two\na,x,three\nc,x,four\nd,y,five\n";
    static const char *const rows[] = {
        PEOPLE "b,x,two\na,x,three\nc,y,four\nd,y,five\n", /* b and c have changed labels */
        PEOPLE "b,y,two\na,x,three\nc,x,four\ne,y,five\n", /* d is e */
        PEOPLE "b,y,two\nb,y,three\nc,x,four\nd,y,five\n", /* b has the second one of a */
    };
#undef PEOPLE
    static const int32_t texts[] = {2, 1}, other_texts[] = {1, 2};
    remove_dir(path_in(folder, "job"));
    label_texts = texts;
    records = make_records("people.csv", people, "who", "kind");
    assert_ok(make_job("job", NULL));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        hold_no_shard(0, 2, make_records("changed.csv", rows[i], "who", "kind"),
                      "a shard begins with records of other units or labels");
    label_texts = other_texts;
    hold_no_shard(0, 2, records, "a shard begins with other texts of the labels");
    label_texts = texts;
    assert_ok(draw_shard(0, 2, records));
    assert_ok(draw_shard(1, 2, records));
    label_texts = NULL;
}

TEST(shards) {
    static char file[300];
    snprintf(file, sizeof file, "%s/model", folder);
    write_file(model_file = file, "a model", 7);
    records = make_records("records.csv", "text\none\ntwo\nthree\nfour\n", NULL, NULL);
    others = make_records("others.csv", "text\none\ntwo\nthree\nfive\n", NULL, NULL);
    check_charge();
    check_rounds();
    check_begin();
    check_merge();
    check_texts();
    check_people();
}
