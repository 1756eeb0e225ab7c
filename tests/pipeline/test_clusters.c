/* Groups of similar records: what a unit's group follows from, and what is refused. Audit F has
 * whole releases and their neighbours, tests/tools/clusters.sh the command. */
#include "pipeline/release/release.h"
#include "tests/support/support.h"

enum { N = 24, K = 5 };

static dpi_model *model;
static char *letters[N];

static int open_all(void **state) {
    dpi_records *folder;
    dpi_error err;
    (void)state;
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, &err), &err);
    assert_ok(dpi_records_open(DPI_DOCUMENTS, NULL, &folder, &err), &err);
    for (size_t i = 0; i < N; i++) {
        size_t n_bytes;
        assert_ok(dpi_records_read(folder, i, &letters[i], &n_bytes, &err), &err);
    }
    dpi_records_close(folder);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++)
        dpi_private_free(letters[i]);
    dpi_model_close(model);
    return 0;
}

static dpi_release_options options_of(const dpi_records *records) {
    static const char task[] = "Write hospital discharge instructions.";
    dpi_release_options o;
    dpi_release_options_init(&o);
    o.model = model;
    o.records = records;
    o.batch = 2;
    o.n_texts = 2 * K;
    o.n_tokens = 240;
    o.n_clusters = K;
    o.session.n_threads = 1;
    o.prompts.public_prompt = (dpi_bytes){task, sizeof task - 1};
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    o.method.epsilon = 1;
    o.method.delta = 1e-3;
    return o;
}

/* The group of each of n texts, NULL a null record. */
static void groups_of(const char *const *texts, size_t n, int32_t *groups) {
    size_t n_bytes[N];
    dpi_records *records;
    dpi_release *r;
    dpi_error err;
    for (size_t i = 0; i < n; i++)
        n_bytes[i] = texts[i] ? strlen(texts[i]) : 0;
    assert_ok(dpi_records_create(texts, n_bytes, n, &records, &err), &err);
    const dpi_release_options o = options_of(records);
    assert_ok(dpi_release_open(&o, &r, &err), &err);
    assert_ok(dpi_release_begin(r, &err), &err);
    memcpy(groups, r->group_of, n * sizeof *groups);
    /* A text has records of its own group alone. */
    for (int32_t b = 0; b < 2 * K; b++) {
        dpi_batch batch;
        dpi_partition_batch(r->partition, b, &batch);
        for (size_t i = 0; i < batch.n_records; i++)
            assert_int_equal(groups[batch.records[i]], b / 2);
    }
    dpi_release_free(r);
    dpi_records_close(records);
}

/* The same records backwards, without every third one, with null ones and one twice. */
static void test_own_content(void **state) {
    (void)state;
    const char *some[N];
    int32_t all[N], groups[N], n_used = 0;
    bool used[K] = {false};
    groups_of((const char *const *)letters, N, all);
    for (int i = 0; i < N; i++) {
        assert_in_range(all[i], 0, K - 1);
        n_used += !used[all[i]];
        used[all[i]] = true;
    }
    /* How many groups the letters fall in depends on the instruction set: features differ in bits,
     * and so k-means ends elsewhere. */
    assert_true(n_used >= 2);
    for (int i = 0; i < N; i++)
        some[i] = i % 3 == 0 ? NULL : i == 7 ? letters[4] : letters[N - 1 - i];
    groups_of(some, N, groups);
    for (int i = 0; i < N; i++)
        assert_int_equal(groups[i], i % 3 == 0 ? -1 : i == 7 ? all[4] : all[N - 1 - i]);
    groups_of((const char *const *)&letters[9], 1, groups);
    assert_int_equal(groups[0], all[9]);
}

static void test_refusals(void **state) {
    (void)state;
    static const uint8_t key[DPI_RELEASE_KEY_BYTES] = {1};
    static const char *const names[] = {"a", "b"};
    static const char labelled[] = "A {label} letter.";
    const dpi_release_options good = options_of(NULL);
    const struct {
        dpi_release_options o;
        dpi_status status;
        const char *part;
    } cases[] = {
        {good, DPI_STATUS_OK, ""}, /* changed below */
        {good, DPI_STATUS_ARG, "add/remove"},
        {good, DPI_STATUS_ARG, "without subsample"},
        {good, DPI_STATUS_ARG, "label_names"},
        {good, DPI_STATUS_ARG, "{label}"},
        {good, DPI_STATUS_UNSUPPORTED, "one process"},
        {good, DPI_STATUS_UNSUPPORTED, "one process"},
        {good, DPI_STATUS_ARG, "2..10, the texts"},
        {good, DPI_STATUS_ARG, "n_clusters"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dpi_release_options o = cases[i].o;
        dpi_error err;
        o.n_records = 100;
        o.method.adjacency = i == 1 ? DPI_ADJACENCY_REPLACE_BY_NULL : DPI_ADJACENCY_ADD_REMOVE;
        o.method.subsample = i == 2 ? .5 : 0;
        if (i == 3) {
            o.n_labels = 2;
            o.label_names = names;
        }
        if (i == 4)
            o.prompts.public_prompt = (dpi_bytes){labelled, sizeof labelled - 1};
        o.key = i == 5 ? key : NULL;
        o.n_shards = i == 6 ? 2 : 0;
        o.n_clusters = i == 7 ? 2 * K + 1 : i == 8 ? 1 : K;
        if (cases[i].status == DPI_STATUS_OK)
            assert_ok(dpi_release_options_check(&o, &err), &err);
        else
            assert_error(dpi_release_options_check(&o, &err), cases[i].status, &err,
                         cases[i].part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_content),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
