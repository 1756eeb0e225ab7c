/* test_ledger_release.c - a release is charged before it reads a record, and what it pays stays
 * paid. */
#include "dpinfer/release.h"
#include "tests/pipeline/ledger/ledger_support.h"
#include "tests/support/tiny_model.h"

typedef struct setup {
    bench b;
    void *image;
    dpi_model *model;
    dpi_records *records;
    dpi_ledger *ledger;
    dpi_release_options o;
} setup;

static void make(setup *s, int32_t scope) {
    static const char *const texts[] = {"one", "two", "three", "four"};
    static const size_t n_bytes[] = {3, 3, 5, 4};
    const tiny_spec spec = tiny_default();
    dpi_error err;
    bench_make(&s->b);
    s->model = tiny_open(&spec, 1, &s->image);
    assert_ok(dpi_records_create(texts, n_bytes, 4, &s->records, &err), &err);
    s->ledger = open_ledger(s->b.path, 1);
    add_letters(s->ledger, scope);
    dpi_release_options_init(&s->o);
    s->o.model = s->model;
    s->o.records = s->records;
    s->o.batch = 2;
    s->o.n_tokens = 3;
    s->o.session.n_threads = 1;
    s->o.prompts.chat = DPI_CHAT_NONE;
    s->o.method.rho = .1;
    s->o.method.pace = DPI_PACE_NONE; /* each step costs what the formula says */
    s->o.ledger = s->ledger;
    s->o.dataset = "letters";
}

static void unmake(setup *s) {
    dpi_ledger_close(s->ledger);
    dpi_records_close(s->records);
    dpi_model_close(s->model);
    free(s->image);
    bench_remove(&s->b);
}

static dpi_release *open_release(const setup *s) {
    dpi_release *release = NULL;
    dpi_error err;
    assert_ok(dpi_release_open(&s->o, &release, &err), &err);
    return release;
}

/* All texts, with the charge there at the first event. */
static void test_paid_at_once(void **state) {
    (void)state;
    setup s;
    dpi_error err;
    dpi_release_event event = {.type = DPI_EVENT_PROMPT};
    make(&s, DPI_SCOPE_DATASET);
    dpi_release *release = open_release(&s);
    assert_int_equal(info_of(s.ledger, "letters").n_charges, 0);
    assert_ok(dpi_release_begin(release, &err), &err);
    const int64_t charged = info_of(s.ledger, "letters").charged;
    /* 3 steps of range sqrt(8 .1 / 3), by the formula: .465370 */
    assert_in_range(charged, (int64_t)(.4653 * DPI_LEDGER_ONE), (int64_t)(.46538 * DPI_LEDGER_ONE));
    while (event.type != DPI_EVENT_NONE)
        assert_ok(dpi_release_advance(release, &event, &err), &err);
    assert_int_equal(info_of(s.ledger, "letters").charged, charged);
    const dpi_claim_ledger *claim = &dpi_release_claim(release)->ledger;
    assert_string_equal(claim->dataset, "letters");
    assert_int_equal(claim->before, 0);
    assert_int_equal(claim->charge, charged);
    assert_int_equal(claim->order, 5);
    dpi_release_free(release);
    assert_int_equal(info_of(s.ledger, "letters").charged, charged);
    /* A second run: reserve does it once. */
    release = open_release(&s);
    assert_ok(dpi_release_reserve(release, &err), &err);
    assert_ok(dpi_release_reserve(release, &err), &err);
    assert_ok(dpi_release_begin(release, &err), &err);
    assert_int_equal(dpi_release_claim(release)->ledger.before, charged);
    dpi_release_free(release); /* begun, and no token drawn: it has paid */
    assert_int_equal(info_of(s.ledger, "letters").charged, 2 * charged);
    unmake(&s);
}

/* No record was read: the charge comes back. */
static void test_given_back(void **state) {
    (void)state;
    setup s;
    dpi_error err;
    make(&s, DPI_SCOPE_DATASET);
    dpi_release *release = open_release(&s);
    assert_ok(dpi_release_reserve(release, &err), &err);
    assert_true(info_of(s.ledger, "letters").charged > 0);
    dpi_release_free(release);
    assert_int_equal(info_of(s.ledger, "letters").charged, 0);
    assert_int_equal(info_of(s.ledger, "letters").n_charges, 1);
    unmake(&s);
}

static void test_refused(void **state) {
    (void)state;
    setup s;
    dpi_error err;
    uint64_t seed = 1;
    make(&s, DPI_SCOPE_DATASET);
    s.o.method.rho = 1;
    dpi_release *release = open_release(&s);
    assert_error(dpi_release_begin(release, &err), DPI_STATUS_BUDGET, &err, "'letters'");
    assert_int_equal(dpi_release_null_records(release), 0);
    dpi_release_free(release);
    s.o.method.rho = .1;
    s.o.method.random = dpi_random_insecure;
    s.o.method.random_user = &seed;
    release = open_release(&s);
    assert_error(dpi_release_begin(release, &err), DPI_STATUS_UNSUPPORTED, &err, "has none");
    dpi_release_free(release);
    s.o.method.random = NULL;
    s.o.dataset = "leters";
    release = open_release(&s);
    assert_error(dpi_release_begin(release, &err), DPI_STATUS_ARG, &err, "it has 'letters'");
    dpi_release_free(release);
    assert_int_equal(info_of(s.ledger, "letters").n_charges, 0);
    unmake(&s);
    make(&s, DPI_SCOPE_UNIT);
    release = open_release(&s);
    assert_error(dpi_release_begin(release, &err), DPI_STATUS_ARG, &err, "by their IDs");
    dpi_release_free(release);
    unmake(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paid_at_once),
        cmocka_unit_test(test_given_back),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
