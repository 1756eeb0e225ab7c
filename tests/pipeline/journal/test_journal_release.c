/* test_journal_release.c - releases that end anywhere and go on: the texts are those of one that
 * was never stopped, whatever the method keeps from token to token, and other inputs are refused.
 */
#include <unistd.h>

#include "dpinfer/isa.h"
#include "dpinfer/ledger.h"
#include "pipeline/release/release.h"
#include "tests/pipeline/journal/job_support.h"

/* ---- The same texts -------------------------------------------------------------------------- */

typedef struct kind {
    const char *name;
    void (*set)(job_bench *b);
} kind;

static void set_zcdp(job_bench *b) { (void)b; }
static void set_parallel(job_bench *b) { b->o.n_parallel = 3; }
static void set_center(job_bench *b) { b->o.method.center = 1; }
static void set_zero_out(job_bench *b) { b->o.method.adjacency = DPI_ADJACENCY_ZERO_OUT; }
static void set_br(job_bench *b) {
    b->o.method.accountant = DPI_ACCOUNTANT_BR;
    b->o.method.rho = 0;
    b->o.method.epsilon = 5;
}
/* Records that have spent their budget are null: what they have spent before the end counts. */
static void set_filter(job_bench *b) {
    b->o.method.accountant = DPI_ACCOUNTANT_FILTER;
    b->o.method.rho = .02;
    b->o.method.clip = 8;
}
static void set_top(job_bench *b) {
    b->o.method.pace = DPI_PACE_TOP;
    b->o.method.pace_theta = .9999;
    b->o.method.pace_tokens = 3; /* the text goes on free */
}
static void set_change(job_bench *b) {
    b->o.method.pace = DPI_PACE_CHANGE;
    b->o.method.pace_theta = 1e-6;
    b->o.method.pace_tokens = 3;
}
static void set_share(job_bench *b) {
    b->o.method.pace = DPI_PACE_SHARE;
    b->o.method.pace_share = 1;
}
static void set_units(job_bench *b) { job_records_open(b, true); }
static void set_add_remove(job_bench *b) { b->o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE; }
static void set_subsample(job_bench *b) {
    b->o.method.subsample = .5;
    b->o.method.rho = 0;
    b->o.method.epsilon = 5;
}
static void set_plain(job_bench *b) { b->o.method.method = DPI_METHOD_PLAIN; }
static void set_reference(job_bench *b) {
    b->o.method.method = DPI_METHOD_PLAIN;
    b->o.reference = 4;
}

static const kind kinds[] = {
    {"zcdp", set_zcdp},
    {"parallel", set_parallel},
    {"center", set_center},
    {"zero-out", set_zero_out},
    {"br", set_br},
    {"filter", set_filter},
    {"pace top", set_top},
    {"pace change", set_change},
    {"pace share", set_share},
    {"units", set_units},
    {"add/remove", set_add_remove},
    {"subsample", set_subsample},
    {"plain", set_plain},
    {"plain, a record", set_reference},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static void set_kind(job_bench *b, const kind *k) {
    job_bench_make(b);
    k->set(b);
    if (b->o.method.method == DPI_METHOD_PLAIN)
        b->o.batch = 0;
}

/* Ends after n tokens, then after `more` that are new, and so on. */
static void check_ends(const job_bench *b, const told *all, int32_t n, int32_t more,
                       const char *name) {
    told part;
    dpi_error err;
    for (int32_t last = n;; last += more) {
        const dpi_status status = job_run(b, last, &part, &err);
        if (status != DPI_STATUS_OK)
            fail_msg("%s: %s", name, err.message);
        assert_begins(&part, all);
        if (part.n_all < last || part.n_all == all->n_all)
            break;
    }
    assert_ok(job_run(b, -1, &part, &err), &err);
    assert_int_equal(part.n_all, all->n_all);
    assert_begins(&part, all);
    assert_begins(all, &part);
    remove_dir(b->folder);
}

static void test_same_texts(void **state) {
    (void)state;
    for (int k = 0; k < N_KINDS; k++) {
        job_bench b;
        told all;
        set_kind(&b, &kinds[k]);
        job_unbroken(&b, &all);
        assert_true(all.n_all > JOB_TOKENS);
        check_ends(&b, &all, 0, 3, kinds[k].name);
        check_ends(&b, &all, 5, 7, kinds[k].name);
        check_ends(&b, &all, all.n_all, 1, kinds[k].name);
        job_bench_remove(&b);
    }
}

/* With the system's random bits: what was told stays, and a record stays in its batch. */
static void list_batches(const dpi_release *r, size_t units[JOB_TEXTS][16], size_t n[JOB_TEXTS]) {
    for (int32_t i = 0; i < JOB_TEXTS; i++) {
        dpi_batch batch;
        dpi_partition_batch(r->partition, i, &batch);
        n[i] = batch.n_records;
        for (size_t k = 0; k < n[i]; k++)
            units[i][k] = batch.records[k];
    }
}

static void check_batches(job_bench *b) {
    size_t units[2][JOB_TEXTS][16], n[2][JOB_TEXTS];
    told part[2];
    dpi_error err;
    b->o.seeded = 0;
    for (int i = 0; i < 2; i++) {
        dpi_journal *journal;
        dpi_release *release;
        dpi_release_options o = b->o;
        assert_ok(job_open(b, &journal, &err), &err);
        o.journal = journal;
        assert_ok(dpi_release_open(&o, &release, &err), &err);
        assert_ok(job_advance(release, journal, i ? -1 : 11, &part[i], &err), &err);
        list_batches(release, units[i], n[i]);
        dpi_release_free(release);
        dpi_journal_close(journal);
    }
    assert_begins(&part[0], &part[1]);
    for (int32_t i = 0; i < JOB_TEXTS; i++) {
        assert_int_equal(n[0][i], n[1][i]);
        assert_memory_equal(units[0][i], units[1][i], n[0][i] * sizeof(size_t));
    }
}

static void test_batches_stay(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) { /* 16 records that fall into the same batches by chance: 4^-16 */
        job_bench b;
        job_bench_make(&b);
        (i % 2 ? set_subsample : set_add_remove)(&b);
        check_batches(&b);
        job_bench_remove(&b);
    }
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void assert_refused_job(const job_bench *b, const char *part) {
    told t;
    dpi_error err;
    assert_error(job_run(b, -1, &t, &err), DPI_STATUS_STATE, &err, part);
    assert_int_equal(t.n_all, 0);
}

static void test_changed(void **state) {
    (void)state;
    job_bench b;
    told t;
    dpi_error err;
    size_t n;
    job_bench_make(&b);
    b.o.seeded = 0;
    assert_ok(job_run(&b, 9, &t, &err), &err);
    const dpi_release_options o = b.o;
#define CHANGED(field, value, part)                                                                \
    b.o.field = value;                                                                             \
    assert_refused_job(&b, part);                                                                  \
    b.o = o
    CHANGED(n_tokens, 6, "parameters.T was 8 when it began, and is 6");
    CHANGED(top_k, 7, "parameters.top_k was");
    CHANGED(batch, 4, "parameters.");
    CHANGED(method.rho, 3, "parameters.budget_rho was");
    CHANGED(method.tau, 1.5, "parameters.tau was");
    CHANGED(session.kv_type, DPI_KV_F32, "engine.kv_type was");
    CHANGED(session.exact, 1, "engine.exact was");
    CHANGED(session.n_ctx, 100, "engine.n_ctx was");
    if (dpi_isa_best() != DPI_ISA_REF) {
        CHANGED(session.isa, DPI_ISA_REF, "engine.isa was");
    }
    CHANGED(seeded, 1, "parameters.randomness was");
    CHANGED(prompts.public_prompt, ((dpi_bytes){"Write", 5}), "prompts was");
    CHANGED(prompts.max_reference_tokens, 2, "prompts was");
#undef CHANGED
    /* The model, by one byte. */
    char *image = read_file(b.model_path, &n);
    image[n - 1] ^= 1;
    write_file(b.model_path, image, n);
    assert_refused_job(&b, "model was");
    image[n - 1] ^= 1;
    write_file(b.model_path, image, n);
    free(image);
    /* Records, by one byte, and in another order. */
    char *lines = read_file(b.records_path, &n);
    char *at = strstr(lines, "garden");
    at[0] = 'G';
    write_file(b.records_path, lines, n);
    job_records_open(&b, false);
    assert_refused_job(&b, "the records are not those that it began with");
    at[0] = 'g';
    const size_t line = strcspn(lines, "\n") + 1;
    char *turned = malloc(n);
    memcpy(turned, lines + line, n - line);
    memcpy(turned + n - line, lines, line);
    write_file(b.records_path, turned, n);
    job_records_open(&b, false);
    assert_refused_job(&b, "the records are not those that it began with");
    write_file(b.records_path, lines, n);
    job_records_open(&b, false);
    free(turned);
    free(lines);
    assert_ok(job_run(&b, -1, &t, &err), &err);
    job_bench_remove(&b);
}

static void test_methods_with_more(void **state) {
    (void)state;
    job_bench b;
    told t;
    dpi_error err;
    job_bench_make(&b);
    b.o.method.method = DPI_METHOD_AMIN;
    assert_error(job_run(&b, -1, &t, &err), DPI_STATUS_UNSUPPORTED, &err, "amin");
    b.o.method.method = DPI_METHOD_INVISIBLEINK;
    b.o.model_path = NULL;
    assert_error(job_run(&b, -1, &t, &err), DPI_STATUS_ARG, &err, "model_path");
    job_bench_remove(&b);
}

/* ---- One charge ------------------------------------------------------------------------------ */

static void open_dataset(job_bench *b, const char *path, int32_t scope, dpi_ledger **ledger) {
    dpi_ledger_options options;
    dpi_dataset_options dataset;
    dpi_error err;
    dpi_ledger_options_init(&options);
    options.create = 1;
    assert_ok(dpi_ledger_open(path, &options, ledger, &err), &err);
    dpi_dataset_options_init(&dataset);
    dataset.name = "letters";
    dataset.epsilon = 5;
    dataset.delta = 1e-5;
    dataset.scope = scope;
    assert_ok(dpi_ledger_add(*ledger, &dataset, &err), &err);
    b->o.ledger = *ledger;
    b->o.dataset = "letters";
    b->o.seeded = 0;
    b->o.method.rho = .1;
}

static dpi_dataset_info info_of(dpi_ledger *ledger) {
    dpi_dataset_info info;
    dpi_error err;
    dpi_dataset_info_init(&info);
    assert_ok(dpi_ledger_info(ledger, "letters", &info, &err), &err);
    return info;
}

static void test_one_charge(void **state) {
    (void)state;
    job_bench b;
    dpi_ledger *ledger;
    char path[300];
    told t, more;
    dpi_error err;
    for (int32_t scope = DPI_SCOPE_DATASET; scope <= DPI_SCOPE_UNIT; scope++) {
        job_bench_make(&b);
        if (scope == DPI_SCOPE_UNIT)
            job_records_open(&b, true);
        snprintf(path, sizeof path, "%s/ledger", b.root);
        open_dataset(&b, path, scope, &ledger);
        assert_ok(job_run(&b, 5, &t, &err), &err);
        const int64_t charged = info_of(ledger).charged;
        assert_true(charged > 0);
        for (int32_t n = 8; n < 20; n += 6) {
            assert_ok(job_run(&b, n, &more, &err), &err);
            assert_begins(&t, &more);
            t = more;
        }
        assert_ok(job_run(&b, -1, &more, &err), &err);
        assert_int_equal(info_of(ledger).charged, charged);
        assert_int_equal(info_of(ledger).n_charges, 1);
        /* Without its ledger, and with another one, it does not go on. */
        dpi_ledger_close(ledger);
        b.o.ledger = NULL;
        assert_refused_job(&b, "it was begun with a ledger");
        snprintf(path, sizeof path, "%s/other", b.root);
        open_dataset(&b, path, scope, &ledger);
        assert_refused_job(&b, "the ledger does not have its charge");
        assert_int_equal(info_of(ledger).n_charges, 0);
        dpi_ledger_close(ledger);
        job_bench_remove(&b);
    }
}

/* Records of the units in this order, p3 as another ID. */
static void write_letters(job_bench *b, bool upwards, const char *p3) {
    char lines[1024];
    size_t n = 0;
    for (int i = 0; i < 10; i++) {
        const int unit = upwards ? i : 9 - i;
        char id[8];
        snprintf(id, sizeof id, "p%d", unit);
        n += (size_t)snprintf(lines + n, sizeof lines - n,
                              "{\"text\": \"a day\", \"who\": \"%s\"}\n", unit == 3 ? p3 : id);
    }
    write_file(b->records_path, lines, n);
    job_records_open(b, true);
    b->o.n_texts = 3;
}

/* A process of the job that ends before it has read a record; whether the units pay whose IDs do
 * not begin with one of `without`. */
static void assert_payers(const job_bench *b, const char *without) {
    dpi_journal *journal;
    dpi_release *r;
    dpi_release_options o = b->o;
    dpi_error err;
    assert_ok(job_open(b, &journal, &err), &err);
    o.journal = journal;
    assert_ok(dpi_release_open(&o, &r, &err), &err);
    assert_ok(dpi_release_reserve(r, &err), &err);
    for (size_t unit = 0; unit < 9; unit++) {
        const char *id;
        size_t n_bytes;
        dpi_records_unit_id(b->records, unit, &id, &n_bytes);
        const bool is_without = (id[0] == 'q' && strchr(without, 'q')) ||
                                (id[0] == 'p' && strchr(without, id[1]));
        assert_int_equal(dpi_release_unit_pays(r, unit), !is_without);
    }
    assert_ok(dpi_release_begin_job(r, &err), &err);
    dpi_release_free(r);
    dpi_journal_close(journal);
}

/* p8 cannot pay. Who has paid is known by the ID, also where the records have changed before one
 * was read; p9 is in no batch upwards. */
static void test_payers(void **state) {
    (void)state;
    static const void *const ids[] = {"p8"};
    static const size_t n_bytes[] = {2};
    uint8_t pays;
    const dpi_ledger_units units = {.n = 1, .ids = ids, .n_bytes = n_bytes, .pays = &pays};
    job_bench b;
    dpi_ledger *ledger;
    dpi_charge_request request;
    dpi_cost cost;
    dpi_error err;
    char path[300];
    job_bench_make(&b);
    snprintf(path, sizeof path, "%s/ledger", b.root);
    open_dataset(&b, path, DPI_SCOPE_UNIT, &ledger);
    dpi_charge_request_init(&request);
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, .5, 0, &err), &err);
    request.cost = &cost;
    request.method = "outside";
    request.units = &units;
    assert_ok(dpi_ledger_reserve(ledger, "letters", &request, NULL, &err), &err);
    write_letters(&b, true, "p3");
    assert_payers(&b, "89");
    assert_payers(&b, "89");
    write_letters(&b, false, "p3");
    assert_payers(&b, "89");
    write_letters(&b, false, "q");
    assert_payers(&b, "89q");
    dpi_ledger_close(ledger);
    job_bench_remove(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_texts), cmocka_unit_test(test_batches_stay),
        cmocka_unit_test(test_changed),    cmocka_unit_test(test_methods_with_more),
        cmocka_unit_test(test_one_charge), cmocka_unit_test(test_payers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
