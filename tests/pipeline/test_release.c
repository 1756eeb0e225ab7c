/* A release from C: the texts of the command line, events, claim, report and verification. The model
 * is the built-in one, the records are the sample documents. */
#include <sys/stat.h>
#include <unistd.h>

#include "dpinfer/memory.h"
#include "dpinfer/release.h"
#include "dpinfer/report.h"
#include "tests/support/support.h"

enum { N_TOKENS = 12, TEXT_BYTES = 1 << 14 };

static dpi_model *model;
static dpi_records *documents;

/* ---- Texts ----------------------------------------------------------------------------------- */

static dpi_release_options options_of(uint64_t *seed) {
    dpi_release_options o;
    dpi_release_options_init(&o);
    o.model = model;
    o.records = documents;
    o.n_tokens = N_TOKENS;
    o.batch = 8;
    o.n_texts = 2;
    o.method.rho = 20;
    if (seed) {
        o.method.random = dpi_random_insecure;
        o.method.random_user = seed;
    }
    return o;
}

static dpi_release *open_release(const dpi_release_options *o) {
    dpi_release *release = NULL;
    dpi_error err;
    assert_ok(dpi_release_open(o, &release, &err), &err);
    return release;
}

/* All texts as `dpinfer run` writes them, and the rules that events follow. Frees the release. */
static void draw_texts(dpi_release *release, char *texts) {
    const dpi_claim *claim = dpi_release_claim(release);
    dpi_release_event e = {0};
    dpi_error err;
    int32_t n_drawn = 0, n_read = 0, n_ends = 0;
    size_t n = 0;
    for (;;) {
        assert_ok(dpi_release_advance(release, &e, &err), &err);
        if (e.type == DPI_EVENT_NONE)
            break;
        assert_int_equal(e.index, n_ends);
        if (e.type == DPI_EVENT_PROMPT && !dpi_claim_is_assigned(claim)) {
            assert_int_equal(e.n_read, ++n_read);
            assert_true(e.n_read <= e.n_prompts);
        } else if (e.type == DPI_EVENT_PROMPT) { /* the size of a batch is secret */
            assert_int_equal(e.n_read, 0);
            assert_int_equal(e.n_prompts, 0);
        } else if (e.type == DPI_EVENT_TOKEN) {
            assert_int_equal(e.n_drawn, ++n_drawn);
        } else {
            assert_int_equal(e.type, DPI_EVENT_END);
            assert_int_equal(e.n_drawn, n_drawn);
            assert_true(e.end == DPI_END_EOG || n_drawn == claim->method.n_tokens);
        }
        if (n_drawn == 1 && n_ends > 0 && e.type == DPI_EVENT_TOKEN)
            texts[n++] = '\n';
        memcpy(texts + n, e.text, e.n_bytes);
        n += e.n_bytes;
        if (e.type != DPI_EVENT_END)
            continue;
        if (n == 0 || texts[n - 1] != '\n')
            texts[n++] = '\n';
        n_ends++;
        n_drawn = n_read = 0;
    }
    texts[n] = '\0';
    assert_int_equal(n_ends, claim->n_texts);
    dpi_release_free(release);
}

static void run_command(const char *arguments, char *texts) {
    char line[1024];
    snprintf(line, sizeof line, "%s run %s %s %s 2>/dev/null", DPI_CLI, DPI_BUILTIN_MODEL,
             DPI_DOCUMENTS, arguments);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    size_t n = fread(texts, 1, TEXT_BYTES - 1, f);
    texts[n] = '\0';
    assert_int_equal(pclose(f), 0);
}

static void test_command_line(void **state) {
    (void)state;
    static char by_hand[TEXT_BYTES], wanted[TEXT_BYTES];
    uint64_t seed = 7;
    dpi_release_options o = options_of(&seed);
    draw_texts(open_release(&o), by_hand);
    run_command("--rho 20 -B 8 --num 2 -n 12 --seed 7", wanted);
    assert_string_equal(by_hand, wanted);

    seed = 8;
    o = options_of(&seed);
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    draw_texts(open_release(&o), by_hand);
    run_command("--rho 20 -B 8 --num 2 -n 12 --seed 8 --adjacency add-remove", wanted);
    assert_string_equal(by_hand, wanted);

    seed = 9;
    o = options_of(&seed);
    o.method.method = DPI_METHOD_PLAIN;
    o.reference = 2;
    draw_texts(open_release(&o), by_hand);
    run_command("--plain --reference 3 --num 2 -n 12 --seed 9", wanted);
    assert_string_equal(by_hand, wanted);
}

/* ---- Records --------------------------------------------------------------------------------- */

/* The files of a folder are taken away once a release by content has begun: each was read already,
 * and its texts are those of files that stay. */
static void test_read_once(void **state) {
    (void)state;
    static char with[TEXT_BYTES], without[TEXT_BYTES];
    char folder[256], path[512];
    dpi_error err;
    make_dir(folder, sizeof folder);
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/%d.txt", folder, i);
        write_file(path, "Patient number ", 14 + (size_t)i % 2);
    }
    for (int gone = 0; gone < 2; gone++) {
        uint64_t seed = 5;
        dpi_records *records = NULL;
        assert_ok(dpi_records_open(folder, NULL, &records, &err), &err);
        dpi_release_options o = options_of(&seed);
        o.records = records;
        o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
        dpi_release *release = open_release(&o);
        assert_ok(dpi_release_begin(release, &err), &err);
        for (int i = 0; i < 6 && gone; i++) {
            snprintf(path, sizeof path, "%s/%d.txt", folder, i);
            assert_int_equal(unlink(path), 0);
        }
        assert_int_equal(dpi_release_null_records(release), -1);
        draw_texts(release, gone ? without : with);
        dpi_records_close(records);
    }
    assert_string_equal(with, without);
    remove_dir(folder);
}

/* How many records there are must not decide whether a release by content succeeds. */
static void test_no_records(void **state) {
    (void)state;
    static char texts[TEXT_BYTES];
    dpi_records *none;
    dpi_release *release = NULL;
    dpi_error err;
    assert_ok(dpi_records_create(NULL, NULL, 0, &none, &err), &err);
    dpi_release_options o = options_of(NULL);
    o.records = none;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_FORMAT, &err, "no record");
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    release = open_release(&o);
    assert_int_equal(dpi_release_claim(release)->n_records, 0);
    draw_texts(release, texts);
    dpi_records_close(none);
}

/* Delta is held against public numbers: 2 texts of 8 records, whatever there are. */
static void test_delta(void **state) {
    (void)state;
    dpi_release *release = NULL;
    dpi_error err;
    dpi_release_options o = options_of(NULL);
    o.method.delta = .05;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_ARG, &err, "delta: found 0.05");
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    dpi_release_free(open_release(&o));
    o.method.delta = 1. / 16;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_ARG, &err, "delta: found 0.0625");
}

static void test_null_records(void **state) {
    (void)state;
    const char *some[] = {"a text", NULL, " ", "another"};
    const size_t n_bytes[] = {6, 0, 1, 7};
    dpi_records *records;
    dpi_error err;
    dpi_release_event e;
    assert_ok(dpi_records_create(some, n_bytes, 4, &records, &err), &err);
    dpi_release_options o = options_of(NULL);
    o.records = records;
    o.batch = 2;
    dpi_release *release = open_release(&o);
    do
        assert_ok(dpi_release_advance(release, &e, &err), &err);
    while (e.type != DPI_EVENT_NONE);
    assert_int_equal(dpi_release_null_records(release), 2);
    dpi_release_free(release);
    o.method.method = DPI_METHOD_PLAIN;
    o.reference = 1;
    release = open_release(&o);
    assert_error(dpi_release_advance(release, &e, &err), DPI_STATUS_FORMAT, &err, "is empty");
    dpi_release_free(release);
    o.reference = 4;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_ARG, &err, "allowed 0..3");
    dpi_records_close(records);
}

/* ---- Where it stops -------------------------------------------------------------------------- */

/* Advances to the n-th token. */
static void advance_to(dpi_release *release, int32_t n, dpi_release_event *e) {
    dpi_error err;
    do
        assert_ok(dpi_release_advance(release, e, &err), &err);
    while (e->type != DPI_EVENT_TOKEN || e->n_drawn < n);
}

static void expect_stopped(dpi_release *release, dpi_status wanted) {
    dpi_release_event e;
    dpi_error err;
    for (int i = 0; i < 3; i++)
        assert_error(dpi_release_advance(release, &e, &err), wanted, &err, "");
    dpi_release_free(release);
}

static void test_cancel(void **state) {
    (void)state;
    dpi_release_event e;
    dpi_error err;
    const dpi_release_options o = options_of(NULL);
    dpi_release *release = open_release(&o);
    advance_to(release, 3, &e);
    dpi_release_cancel(release);
    assert_ok(dpi_release_advance(release, &e, &err), &err);
    assert_int_equal(e.type, DPI_EVENT_END);
    assert_int_equal(e.end, DPI_END_CANCELLED);
    assert_int_equal(e.n_drawn, 3);
    expect_stopped(release, DPI_STATUS_CANCELLED);
    release = open_release(&o); /* while prompts are read there is no text that could end */
    assert_ok(dpi_release_advance(release, &e, &err), &err);
    assert_int_equal(e.type, DPI_EVENT_PROMPT);
    dpi_release_cancel(release);
    expect_stopped(release, DPI_STATUS_CANCELLED);
}

static void test_failure(void **state) {
    (void)state;
    limited_source source = {1, 4};
    dpi_release_event e;
    dpi_error err;
    dpi_release_options o = options_of(NULL);
    o.method.random = limited_bits;
    o.method.random_user = &source;
    dpi_release *release = open_release(&o);
    advance_to(release, 4, &e);
    assert_ok(dpi_release_advance(release, &e, &err), &err);
    assert_int_equal(e.type, DPI_EVENT_END);
    assert_int_equal(e.n_drawn, 4);
    expect_stopped(release, DPI_STATUS_ENTROPY);
}

static void test_order(void **state) {
    (void)state;
    dpi_release_event e;
    dpi_error err;
    dpi_release_options o = options_of(NULL);
    dpi_release *release = open_release(&o);
    assert_ok(dpi_release_begin(release, &err), &err);
    assert_error(dpi_release_begin(release, &err), DPI_STATUS_STATE, &err, "begun already");
    dpi_release_free(release);
    o.records = NULL;
    o.n_records = 100;
    o.n_texts = 0;
    release = open_release(&o); /* a plan */
    assert_int_equal(dpi_release_claim(release)->n_texts, 13);
    assert_error(dpi_release_advance(release, &e, &err), DPI_STATUS_STATE, &err, "it is a plan");
    dpi_release_plan plan = {.struct_size = sizeof plan};
    assert_ok(dpi_release_plan_get(release, &plan, &err), &err);
    assert_int_equal(plan.rows_per_step, 9);
    assert_true(plan.memory_bytes >= plan.session_bytes && plan.session_bytes > 0);
    dpi_release_free(release);
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_ARG, &err, "must be given");
}

/* ---- Claim, report, verification ------------------------------------------------------------- */

static dpi_report *parse(const char *text) {
    dpi_report *report = NULL;
    dpi_error err;
    assert_ok(dpi_report_parse("r", text, strlen(text), &report, &err), &err);
    return report;
}

/* A report gives back its claim, and holds; with another K it does not. */
static void check_report(const dpi_release_options *o) {
    dpi_release *release = open_release(o);
    dpi_claim claim = *dpi_release_claim(release), again;
    dpi_report *report = NULL;
    dpi_verification v = {.struct_size = sizeof v};
    char *text, *statement, *same;
    size_t n_bytes;
    dpi_error err;
    assert_ok(dpi_report_create(&claim, model, DPI_BUILTIN_MODEL, &report, &err), &err);
    assert_ok(dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n_bytes, &err), &err);
    dpi_report_free(report);
    report = parse(text);
    again = *dpi_report_claim(report);
    assert_ok(dpi_claim_settle(&again, &err), &err);
    assert_ok(dpi_claim_statement(&claim, 1, &statement, &err), &err);
    assert_ok(dpi_claim_statement(&again, 1, &same, &err), &err);
    assert_string_equal(statement, same);
    assert_ok(dpi_report_verify(report, DPI_BUILTIN_MODEL, &v, &err), &err);
    assert_int_equal(v.n_wrong, 0);
    assert_true(v.model_hashed && v.n_ok > 10);
    dpi_verification_free(&v);
    dpi_report_free(report);
    char *at = strstr(text, "\"K\": ");
    if (at) {
        at[5] = at[5] == '9' ? '8' : at[5] + 1;
        report = parse(text);
        assert_ok(dpi_report_verify(report, NULL, &v, &err), &err);
        assert_int_equal(v.n_wrong, 1);
        for (size_t i = 0; i < v.n_fields; i++)
            if (v.fields[i].verdict == DPI_VERDICT_WRONG)
                assert_string_equal(v.fields[i].path, "realised.K");
        dpi_verification_free(&v);
        dpi_report_free(report);
    }
    free(text), free(statement), free(same);
    dpi_release_free(release);
}

static void test_report(void **state) {
    (void)state;
    uint64_t seed = 1;
    dpi_error err;
    dpi_release_options o = options_of(NULL);
    check_report(&o);
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    check_report(&o);
    o = options_of(&seed);
    check_report(&o);
    for (int32_t method = 0; method < dpi_method_count(); method++) {
        o = options_of(NULL);
        assert_ok(dpi_method_defaults(method, &o.method, &err), &err);
        o.method.rho = 20;
        o.method.delta = 1e-6;
        o.method.acknowledge_not_dp = dpi_method_get(method)->needs_acknowledgement;
        check_report(&o);
    }
}

/* What a report may not say. */
static void test_report_refused(void **state) {
    (void)state;
    dpi_release_options o = options_of(NULL);
    dpi_release *release = open_release(&o);
    dpi_report *report = NULL;
    dpi_verification v = {.struct_size = sizeof v};
    char *text;
    size_t n_bytes;
    dpi_error err;
    assert_ok(dpi_report_create(dpi_release_claim(release), model, DPI_BUILTIN_MODEL, &report, &err),
              &err);
    assert_ok(dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n_bytes, &err), &err);
    dpi_report_free(report);
    char *at = strstr(text, "\"budget_delta\": ");
    assert_non_null(at);
    memset(at + 16, '0', strcspn(at + 16, ",\n")); /* (0, 0)-DP */
    at[17] = '.';
    report = parse(text);
    assert_error(dpi_report_verify(report, NULL, &v, &err), DPI_STATUS_ARG, &err, "delta");
    dpi_report_free(report);
    free(text);
    dpi_release_free(release);
    assert_error(dpi_report_parse("r", "{}", 2, &report, &err), DPI_STATUS_FORMAT, &err,
                 "it has no 'dpinfer_report'");
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* ---- Units ----------------------------------------------------------------------------------- */

/* The texts of a CSV file with the columns who and text. */
static void draw_units(const char *path, const char *content, int32_t adjacency, double subsample,
                       int32_t per_unit, char *texts) {
    dpi_records_options ro;
    dpi_records *records = NULL;
    dpi_error err;
    uint64_t seed = 11;
    dpi_records_options_init(&ro);
    ro.unit_field = "who";
    write_file(path, content, strlen(content));
    assert_ok(dpi_records_open(path, &ro, &records, &err), &err);
    dpi_release_options o = options_of(&seed);
    o.records = records;
    o.batch = 2;
    o.n_texts = 3;
    o.method.rho = subsample > 0 ? 0 : 20;
    o.method.epsilon = subsample > 0 ? 9 : 0;
    o.method.adjacency = adjacency;
    o.method.subsample = subsample;
    o.method.max_per_unit = per_unit;
    dpi_release *release = open_release(&o);
    const dpi_claim *claim = dpi_release_claim(release);
    assert_int_equal(claim->method.max_per_unit, per_unit > 0 ? per_unit : 4);
    assert_int_equal(claim->n_records, dpi_claim_is_assigned(claim) ? 0 : 6);
    assert_int_equal(dpi_release_null_records(release), -1);
    draw_texts(release, texts);
    dpi_records_close(records);
}

/* A person with the same letter several times, between others' letters, counts as with one letter,
 * in one text and slot; letters after the first M do not count, whoever else has how many. */
static void test_units(void **state) {
    (void)state;
    static const char once[] = "who,text\na,the printer is jammed\nb,my screen is black\n"
                               "c,no mail since noon\nd,the door is locked\ne,it is too cold\n"
                               "f,the lift is out of order\n";
    static const char several[] =
        "who,text\na,the printer is jammed\na,the printer is jammed\nb,my screen is black\n"
        "c,no mail since noon\na,the printer is jammed\nd,the door is locked\ne,it is too cold\n"
        "f,the lift is out of order\nd,the door is locked\na,the printer is jammed\n"
        "a,another letter\nf,\na,and another one\n";
    static const char other[] =
        "who,text\na,the printer is jammed\na,something else\nb,my screen is black\n"
        "c,no mail since noon\nd,the door is locked\ne,it is too cold\nf,the lift is out of order\n";
    static char x[TEXT_BYTES], y[TEXT_BYTES];
    char folder[256], path[512];
    make_dir(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/letters.csv", folder);
    for (int i = 0; i < 3; i++) {
        const int32_t adjacency = i == 1 ? DPI_ADJACENCY_ADD_REMOVE : DPI_ADJACENCY_REPLACE_BY_NULL;
        const double q = i == 2 ? .9 : 0;
        draw_units(path, once, adjacency, q, 0, x);
        draw_units(path, several, adjacency, q, 0, y);
        assert_string_equal(x, y);
        draw_units(path, other, adjacency, q, 1, y);
        assert_string_equal(x, y);
    }
    draw_units(path, other, DPI_ADJACENCY_REPLACE_BY_NULL, 0, 0, y);
    draw_units(path, once, DPI_ADJACENCY_REPLACE_BY_NULL, 0, 0, x);
    assert_string_not_equal(x, y); /* the second letter counts */
    remove_dir(folder);
}

static void test_units_refused(void **state) {
    (void)state;
    dpi_release_options o = options_of(NULL);
    dpi_release *release = NULL;
    dpi_error err;
    o.method.max_per_unit = 2;
    assert_error(dpi_release_open(&o, &release, &err), DPI_STATUS_ARG, &err,
                 "max_per_unit: found '2', allowed only with unit_field");
}

static int setup(void **state) {
    (void)state;
    dpi_error err;
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, &err), &err);
    assert_ok(dpi_records_open(DPI_DOCUMENTS, NULL, &documents, &err), &err);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dpi_records_close(documents);
    dpi_model_close(model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_line), cmocka_unit_test(test_read_once),
        cmocka_unit_test(test_no_records),   cmocka_unit_test(test_delta),
        cmocka_unit_test(test_null_records), cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_failure),      cmocka_unit_test(test_order),
        cmocka_unit_test(test_report),       cmocka_unit_test(test_report_refused),
        cmocka_unit_test(test_units),        cmocka_unit_test(test_units_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
