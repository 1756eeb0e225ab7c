/* Groups of similar records: what a unit's group follows from, and what is refused. Audits
 * of releases have whole ones and their neighbours, tests/tools/clusters.sh the command. */
#include <jansson.h>

#include "base/text.h"
#include "pipeline/release/release.h"
#include "tests/pipeline/records_of.h"
#include "tests/support/tiny_model.h"

enum { N = 24, K = 5 };

static void *image;
static dpi_model *model;
static char *letters[N];

SETUP {
    const tiny_spec spec = tiny_default();
    dpi_records *folder;
    model = tiny_open(&spec, 1, &image);
    assert_ok(dpi_records_open(DPI_DOCUMENTS, NULL, &folder, ERR));
    for (size_t i = 0; i < N; i++) {
        size_t n_bytes;
        assert_ok(dpi_records_read(folder, i, &letters[i], &n_bytes, ERR));
    }
    dpi_records_close(folder);
}

TEARDOWN {
    for (size_t i = 0; i < N; i++)
        dpi_private_free(letters[i]);
    dpi_model_close(model);
    free(image);
}

static dpi_release_options options_of(const dpi_records *records) {
    static const char task[] = "Write hospital discharge notes.";
    dpi_release_options o;
    dpi_release_options_init(&o);
    o.model = model, o.records = records;
    o.batch = 2, o.n_texts = 2 * K, o.n_clusters = K;
    o.n_tokens = 40;
    o.prompts.max_reference_tokens = 64;
    o.session.n_threads = 1;
    o.prompts.public_prompt = (dpi_bytes){task, sizeof task - 1};
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    o.method.epsilon = 1, o.method.delta = 1e-3;
    return o;
}

/* The group of each of n texts, NULL a null record. A text has records of its own group alone. */
static void groups_of(char *const *texts, size_t n, int32_t *groups) {
    dpi_records *records = records_of((const char *const *)texts, n);
    dpi_release *r;
    const dpi_release_options o = options_of(records);
    assert_ok(dpi_release_open(&o, &r, ERR));
    assert_ok(dpi_release_begin(r, ERR));
    memcpy(groups, r->source.group_of, n * sizeof *groups);
    for (int32_t b = 0; b < 2 * K; b++) {
        dpi_batch batch;
        dpi_partition_batch(r->source.partition, b, &batch);
        for (size_t i = 0; i < batch.n_records; i++)
            assert_int_equal(groups[batch.records[i]], b / 2);
    }
    dpi_release_free(r);
    dpi_records_close(records);
}

/* The same records backwards, without every third one, with null ones and one twice. */
TEST(test_own_content) {
    char *some[N];
    int32_t all[N], groups[N], n_used = 0;
    bool used[K] = {false};
    groups_of(letters, N, all);
    for (int i = 0; i < N; i++) {
        assert_in_range(all[i], 0, K - 1);
        n_used += !used[all[i]];
        used[all[i]] = true;
    }
    assert_true(n_used >= 2); /* three, of this model */
    for (int i = 0; i < N; i++)
        some[i] = i % 3 == 0 ? NULL : i == 7 ? letters[4] : letters[N - 1 - i];
    groups_of(some, N, groups);
    for (int i = 0; i < N; i++)
        assert_int_equal(groups[i], i % 3 == 0 ? -1 : i == 7 ? all[4] : all[N - 1 - i]);
    groups_of(&letters[9], 1, groups);
    assert_int_equal(groups[0], all[9]);
}

/* Units of two records, those of one after the other or all first ones before all second ones: the
 * first record tells the group. So it does where texts see those that were released before them. */
TEST(test_units) {
    enum { N_UNITS = 8 };
    int32_t all[N];
    groups_of(letters, N, all);
    for (int way = 0; way < 4; way++) {
        json_t *line = NULL;
        dpi_text lines = {0};
        dpi_records_options ro;
        dpi_records *records;
        dpi_release *r;
        dpi_records_options_init(&ro);
        ro.unit_field = "who";
        for (int i = 0; i < 2 * N_UNITS; i++) {
            const int unit = way % 2 ? i / 2 : i % N_UNITS, second = way % 2 ? i % 2 : i / N_UNITS;
            line = json_pack("{s:s, s:i}", "text", letters[second * N_UNITS + unit], "who", unit);
            char *json = json_dumps(line, JSON_COMPACT);
            dpi_text_add(&lines, "%s\n", json);
            json_decref(line);
            free(json);
        }
        assert_ok(dpi_records_open_buffer(lines.data, lines.n_bytes, DPI_RECORD_LINE, &ro, &records,
                                          ERR));
        dpi_release_options o = options_of(records);
        o.method.max_per_unit = 3, o.n_released = way < 2 ? 0 : 1;
        assert_ok(dpi_release_open(&o, &r, ERR));
        assert_ok(dpi_release_begin(r, ERR));
        assert_memory_equal(r->source.group_of, all, N_UNITS * sizeof *all);
        dpi_release_free(r);
        dpi_records_close(records);
        free(lines.data);
    }
}

static void expect(const dpi_release_options *o, dpi_status status, const char *part) {
    if (status == DPI_STATUS_OK)
        assert_ok(dpi_release_options_check(o, ERR));
    else
        assert_status(dpi_release_options_check(o, ERR), status, part);
}

TEST(test_refusals) {
    static const uint8_t key[DPI_RELEASE_KEY_BYTES] = {1};
    static const char *const names[] = {"a", "b"};
    static const char labelled[] = "A {label} letter.";
    dpi_release_options good = options_of(NULL), o;
    good.n_records = 100;
    expect(&good, DPI_STATUS_OK, "");
#define EXPECT(set, status, part) o = good, set, expect(&o, DPI_STATUS_##status, part)
    EXPECT(o.method.adjacency = DPI_ADJACENCY_REPLACE_BY_NULL, ARG, "add/remove");
    EXPECT(o.method.subsample = .5, ARG, "without subsample");
    EXPECT((o.n_labels = 2, o.label_names = names), ARG, "label_names");
    EXPECT((o.prompts.public_prompt = (dpi_bytes){labelled, sizeof labelled - 1}), ARG, "{label}");
    EXPECT(o.key = key, UNSUPPORTED, "one process");
    EXPECT(o.n_shards = 2, UNSUPPORTED, "one process");
    EXPECT(o.n_clusters = 2 * K + 1, ARG, "2..10, the texts");
    EXPECT(o.n_clusters = 1, ARG, "n_clusters");
}
