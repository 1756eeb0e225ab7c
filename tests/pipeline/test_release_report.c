/* Claim, report and verification of releases: a report gives back its claim, and what it may not
 * say. */
#include "dpinfer/memory.h"
#include "dpinfer/report.h"
#include "tests/pipeline/release_texts.h"

static dpi_report *parse(const char *text) {
    dpi_report *report = NULL;
    assert_ok(dpi_report_parse("r", text, strlen(text), &report, ERR));
    return report;
}

/* The report of a release as JSON; the caller frees it. */
static char *report_text(const dpi_release *release) {
    dpi_report *report = NULL;
    char *text;
    size_t n_bytes;
    assert_ok(
        dpi_report_create(dpi_release_run(release), model, DPI_BUILTIN_MODEL, &report, ERR));
    assert_ok(dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n_bytes, ERR));
    dpi_report_free(report);
    return text;
}

/* A report gives back its claim, and holds; with another K it does not. */
static void check_report(const dpi_release_options *o) {
    dpi_release *release = open_release(o);
    dpi_verification v = {.struct_size = sizeof v};
    char *text = report_text(release), *at = strstr(text, "\"K\": "), *statement, *same;
    dpi_report *report = parse(text);
    dpi_run again = *dpi_report_run(report);
    assert_ok(dpi_run_settle(&again, ERR));
    assert_ok(dpi_run_statement(dpi_release_run(release), 1, &statement, ERR));
    assert_ok(dpi_run_statement(&again, 1, &same, ERR));
    assert_string_equal(statement, same);
    assert_ok(dpi_report_verify(report, DPI_BUILTIN_MODEL, NULL, &v, ERR));
    assert_int_equal(v.n_wrong, 0);
    assert_true(v.model_hashed && v.n_ok > 10);
    dpi_verification_free(&v);
    dpi_report_free(report);
    if (at) {
        at[5] = at[5] == '9' ? '8' : at[5] + 1;
        report = parse(text);
        assert_ok(dpi_report_verify(report, NULL, NULL, &v, ERR));
        assert_int_equal(v.n_wrong, 1);
        for (size_t i = 0; i < v.n_fields; i++)
            if (v.fields[i].verdict == DPI_VERDICT_WRONG)
                assert_string_equal(v.fields[i].path, "follows.mechanisms[0].K");
        dpi_verification_free(&v);
        dpi_report_free(report);
    }
    free(text), free(statement), free(same);
    dpi_release_free(release);
}

/* Each part of the prompts is in the claim's hash of them, and a report takes them in full. */
TEST(test_prompts) {
    static const dpi_bytes text = {"Write.", 6}, with_record = {"As {reference}.", 15},
                           odd = {"\"\\\b\f\n\r\t\x1f\x7f/\xc3\xa9", 12};
    static const dpi_turn turns[] = {{"Hi.", "Yes.", 3, 4}, {"Hi.", "Yes,", 3, 4}};
    char digests[13][DPI_DIGEST_HEX + 8];
    for (int i = 0; i < 13; i++) {
        dpi_release_options o = options_of(NULL);
        dpi_prompt_options *p = &o.prompts;
        char *json;
        dpi_report *report;
        *(i == 1 ? &p->public_prompt : i == 2 ? &p->query : i == 4 ? &p->description
                                                         : &(dpi_bytes){0}) = text;
        if (i == 3)
            p->system = odd;
        if (i == 5)
            p->private_prompt = with_record;
        if (i == 6 || i == 7 || i == 10)
            p->examples = i == 10 ? &with_record : &text, p->n_examples = 1;
        if (i == 11 || i == 12)
            p->turns = &turns[i - 11], p->n_turns = 1;
        p->example_in = i == 7;
        p->chat = i == 8 ? DPI_CHAT_NONE : DPI_CHAT_AUTO;
        p->max_reference_tokens += i == 9;
        dpi_release *release = open_release(&o);
        const dpi_run *run = dpi_release_run(release);
        assert_ok(dpi_release_prompts(release, &json, ERR));
        assert_ok(dpi_report_create(run, model, DPI_BUILTIN_MODEL, &report, ERR));
        assert_ok(dpi_report_prompts(report, json, ERR));
        dpi_private_free(json);
        dpi_report_free(report);
        strcpy(digests[i], run->prompts);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(digests[i], digests[k]);
        dpi_release_free(release);
    }
}

TEST(test_report) {
    const uint64_t seed = 1;
    dpi_release_options o = options_of(NULL);
    check_report(&o);
    o.method.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    check_report(&o);
    o = options_of(&seed);
    check_report(&o);
    for (int32_t method = 0; method < dpi_method_count(); method++) {
        o = options_of(NULL);
        assert_ok(dpi_method_defaults(method, &o.method, ERR));
        o.method.rho = 20, o.method.delta = 1e-6;
        o.method.acknowledge_not_dp = dpi_method_get(method)->needs_acknowledgement;
        check_report(&o);
    }
}

/* The texts of each label are counted, of the last one, too. */
TEST(test_report_labels) {
    static const char *const labels[] = {"kind a", "kind b", "kind a", "kind c",
                                         "kind d", "kind c", "kind a"};
    static const char *const wanted[] = {"\"kind a\": 3", "\"kind b\": 1", "\"kind c\": 2",
                                         "\"kind d\": 1"};
    const dpi_release_options o = options_of(NULL);
    dpi_release *release = open_release(&o);
    dpi_report *report;
    char *text;
    size_t n;
    assert_ok(dpi_report_create(dpi_release_run(release), NULL, NULL, &report, ERR));
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        assert_ok(dpi_report_text_add(report, labels[i], 3, DPI_END_EOG, ERR));
    assert_ok(dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n, ERR));
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_non_null(strstr(text, wanted[i]));
    free(text);
    dpi_report_free(report);
    dpi_release_free(release);
}

/* What a report may not say. */
TEST(test_report_refused) {
    const dpi_release_options o = options_of(NULL);
    dpi_release *release = open_release(&o);
    char *text = report_text(release), *at = strstr(text, "\"claim\": ");
    dpi_report *report = NULL;
    assert_non_null(at);
    at = strstr(at, "\"delta\": ");
    assert_non_null(at);
    memset(at + 9, '0', strcspn(at + 9, ",\n")); /* (0, 0)-DP */
    at[10] = '.';
    assert_error(dpi_report_parse("r", text, strlen(text), &report, ERR), ARG,
                 "delta: found 0, allowed 0 < x < 1");
    free(text);
    dpi_release_free(release);
    assert_error(dpi_report_parse("r", "{}", 2, &report, ERR), FORMAT,
                 "it has no 'dpinfer_report'");
}

SETUP { open_documents(); }
TEARDOWN { close_documents(); }
