/* Claim, report and verification of releases: a report gives back its claim, and what it may not
 * say. */
#include "dpinfer/memory.h"
#include "dpinfer/report.h"
#include "tests/pipeline/release_texts.h"

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
    assert_ok(dpi_report_verify(report, DPI_BUILTIN_MODEL, NULL, &v, &err), &err);
    assert_int_equal(v.n_wrong, 0);
    assert_true(v.model_hashed && v.n_ok > 10);
    dpi_verification_free(&v);
    dpi_report_free(report);
    char *at = strstr(text, "\"K\": ");
    if (at) {
        at[5] = at[5] == '9' ? '8' : at[5] + 1;
        report = parse(text);
        assert_ok(dpi_report_verify(report, NULL, NULL, &v, &err), &err);
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
    const dpi_claim *claim = dpi_release_claim(release);
    assert_ok(dpi_report_create(claim, model, DPI_BUILTIN_MODEL, &report, &err), &err);
    assert_ok(dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n_bytes, &err), &err);
    dpi_report_free(report);
    char *at = strstr(text, "\"budget_delta\": ");
    assert_non_null(at);
    memset(at + 16, '0', strcspn(at + 16, ",\n")); /* (0, 0)-DP */
    at[17] = '.';
    report = parse(text);
    assert_error(dpi_report_verify(report, NULL, NULL, &v, &err), DPI_STATUS_ARG, &err, "delta");
    dpi_report_free(report);
    free(text);
    dpi_release_free(release);
    assert_error(dpi_report_parse("r", "{}", 2, &report, &err), DPI_STATUS_FORMAT, &err,
                 "it has no 'dpinfer_report'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_refused),
    };
    return cmocka_run_group_tests(tests, open_documents, close_documents);
}
