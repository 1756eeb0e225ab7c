/* test_ledger_release.c - a release is charged before it reads a record, and what it pays stays
 * paid. */
#include "tests/pipeline/journal/job_support.h"
#include "tests/pipeline/ledger/ledger_support.h"

SETUP_EACH {
    job_make();
    make_ledger(DPI_SCOPE_DATASET);
}

TEARDOWN_EACH { job_remove(); }

/* Three tokens, each of which costs what the formula says. */
static dpi_release_options options(void) {
    dpi_records *records = make_records("four.csv", "text\none\ntwo\nthree\nfour\n", NULL, NULL);
    dpi_release_options o = small_release(job.model, records);
    o.batch = 2, o.n_tokens = 3, o.ledger = the_ledger, o.dataset = "letters";
    o.method.rho = .1, o.method.pace = DPI_PACE_NONE;
    return o;
}

/* All texts, with the charge there at the first event. */
TEST(test_paid_at_once) {
    const dpi_release_options o = options();
    dpi_release_event event = {.type = DPI_EVENT_PROMPT};
    dpi_release *release = open_release(&o);
    assert_int_equal(info_of("letters").n_charges, 0);
    assert_ok(dpi_release_begin(release, ERR));
    const int64_t charged = info_of("letters").charged;
    /* 3 steps of range sqrt(8 .1 / 3), by the formula: .465370 */
    assert_in_range(charged, (int64_t)(.4653 * DPI_LEDGER_ONE), (int64_t)(.46538 * DPI_LEDGER_ONE));
    while (event.type != DPI_EVENT_NONE)
        assert_ok(dpi_release_advance(release, &event, ERR));
    assert_int_equal(info_of("letters").charged, charged);
    const dpi_claim_ledger *claim = &dpi_release_run(release)->ledger;
    assert_string_equal(claim->dataset, "letters");
    assert_int_equal(claim->before, 0);
    assert_int_equal(claim->charge, charged);
    assert_int_equal(claim->order, 5);
    dpi_release_free(release);
    assert_int_equal(info_of("letters").charged, charged);
    /* A second run: reserve does it once. */
    release = open_release(&o);
    assert_ok(dpi_release_reserve(release, ERR));
    assert_ok(dpi_release_reserve(release, ERR));
    assert_ok(dpi_release_begin(release, ERR));
    assert_int_equal(dpi_release_run(release)->ledger.before, charged);
    dpi_release_free(release); /* begun, and no token drawn: it has paid */
    assert_int_equal(info_of("letters").charged, 2 * charged);
}

/* No record was read: the charge comes back. */
TEST(test_given_back) {
    const dpi_release_options o = options();
    dpi_release *release = open_release(&o);
    assert_ok(dpi_release_reserve(release, ERR));
    assert_true(info_of("letters").charged > 0);
    dpi_release_free(release);
    assert_int_equal(info_of("letters").charged, 0);
    assert_int_equal(info_of("letters").n_charges, 1);
}

static void assert_refuses(const dpi_release_options *o, dpi_status status, const char *part) {
    dpi_release *release = open_release(o);
    assert_status(dpi_release_begin(release, ERR), status, part);
    assert_int_equal(dpi_release_null_records(release), 0);
    dpi_release_free(release);
    assert_int_equal(info_of("letters").n_charges, 0);
}

TEST(test_refused) {
    uint64_t seed = 1;
    dpi_release_options o = options();
    o.method.rho = 1;
    assert_refuses(&o, DPI_STATUS_BUDGET, "'letters'");
    o = options();
    o.method.random = dpi_random_insecure, o.method.random_user = &seed;
    assert_refuses(&o, DPI_STATUS_UNSUPPORTED, "has none");
    o = options();
    o.dataset = "leters";
    assert_refuses(&o, DPI_STATUS_ARG, "it has 'letters'");
    make_ledger(DPI_SCOPE_UNIT);
    o = options();
    assert_refuses(&o, DPI_STATUS_ARG, "by their IDs");
}

/* A plan says what a run would say: of a budget that others have spent in part, too, and nothing
 * is charged. */
TEST(test_preview) {
    dpi_release_options o = options();
    int32_t n_fit = 0;
    for (int k = 0; k < 40; k++) {
        dpi_release *plan = open_release(&o), *release = open_release(&o);
        const int64_t before = info_of("letters").charged;
        const dpi_status planned = dpi_release_preview(plan, ERR);
        assert_int_equal(info_of("letters").charged, before);
        const dpi_status begun = dpi_release_begin(release, ERR);
        assert_true(planned == begun && (begun == DPI_STATUS_OK || begun == DPI_STATUS_BUDGET));
        n_fit += begun == DPI_STATUS_OK;
        dpi_release_free(plan), dpi_release_free(release);
    }
    assert_true(n_fit > 1 && n_fit < 40); /* it was spent */
}

/* A job without a ledger has its own, whose budget is at the delta of the run. */
TEST(test_own_ledger) {
    process p;
    told t;
    dpi_ledger *own;
    dpi_dataset_info info;
    job.o.seeded = 0, job.o.method.rho = .1;
    assert_ok(job_start(&p));
    assert_ok(job_advance(&p, 3, &t));
    job_stop(&p);
    assert_ok(open_ledger(path_in(job.folder, "ledger"), OPEN, &own));
    dpi_dataset_info_init(&info);
    assert_ok(dpi_ledger_info_at(own, 0, &info, ERR));
    dpi_ledger_close(own);
    assert_true(info.delta == job.o.method.delta);
    assert_true(info.n_charges == 1 && info.charged > 0);
    assert_true((double)info.charged > .99 * (double)info.budget); /* it is for this run */
}
