/* Statistics: word_count against counts by hand and the noise of the same bits; the order of charge
 * and records. The law of the noise: tests/dp/exact, audit/audit_counts.c. */
#include "dp/exact/noise.h"
#include "dpinfer/report.h"
#include "dpinfer/statistic.h"
#include "tests/pipeline/ledger/ledger_support.h"
#include "tests/pipeline/records_of.h"

SETUP_EACH { make_ledger(DPI_SCOPE_DATASET); }
TEARDOWN_EACH { folder_remove(); }

static const char *const texts[] = {"a fever, Fever and FEVER", "feverish", "no", NULL, "\xc3\xa9"
                                    "fever", "fever", "(fever)", "x fever9", ""};
enum { N = sizeof texts / sizeof *texts, HOLD = 3 };

static dpi_statistic_options options_of(const dpi_records *records, const char *const *values) {
    static const char *const keys[] = {"word", "budget_epsilon"};
    dpi_statistic_options o;
    dpi_statistic_options_init(&o);
    o.mechanism = "word_count", o.records = records, o.delta = 1e-3;
    o.keys = keys, o.values = values, o.n_values = 2;
    return o;
}

/* The number is the true one and the noise of the claim's variance by the same bits: each record
 * counts once, as a whole word in letters of any case, and a null record does not. */
TEST(test_number) {
    dpi_records *records = records_of(texts, N);
    dpi_statistic_options o = options_of(records, (const char *const[]){"feVer", "2"});
    o.seeded = 1;
    for (o.seed = 0; o.seed < 20; o.seed++) {
        dpi_statistic *s;
        const int64_t *numbers;
        int64_t noise;
        uint64_t bits = o.seed;
        int32_t n;
        char name[80];
        assert_ok(dpi_statistic_open(&o, &s, ERR));
        const dpi_claim *c = dpi_statistic_claim(s);
        assert_true(c->n_units == N && c->epsilon <= 2 && c->epsilon > 1.9);
        assert_ok(dpi_noise_gaussian(dpi_noise_variance_for(c->rho), dpi_random_insecure, &bits,
                                     &noise, ERR));
        assert_ok(dpi_statistic_release(s, &numbers, &n, ERR));
        assert_int_equal(n, 1);
        assert_int_equal(numbers[0], HOLD + noise);
        dpi_statistic_name(s, 0, name, sizeof name);
        assert_string_equal(name, "records with 'feVer'");
        assert_error(dpi_statistic_release(s, &numbers, &n, ERR), STATE, "released before");
        dpi_statistic_free(s);
    }
    dpi_records_close(records);
}

TEST(test_refusals) {
    dpi_records *records = records_of(texts, N);
    dpi_statistic *s;
    const struct {
        const char *mechanism, *word, *epsilon, *part;
    } refused[] = {
        {"counts", "a", "1", "'counts', which releases no numbers"},
        {"none", "a", "1", "'none', which releases no numbers"},
        {"word_count", "", "1", "word: found 0 bytes, allowed 1..79"},
        {"word_count", "a b", "1", "word: found 'a b', allowed are letters"},
        {"word_count", "a", "x", "epsilon is 'x'"},
        {"word_count", "a", "0", "epsilon is '0'"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        dpi_statistic_options o = options_of(
            records, (const char *const[]){refused[i].word, refused[i].epsilon});
        o.mechanism = refused[i].mechanism;
        assert_error(dpi_statistic_open(&o, &s, ERR), ARG, refused[i].part);
    }
    dpi_statistic_options o = options_of(records, (const char *const[]){"a", "1"});
    o.keys = (const char *const[]){"wort", "budget_epsilon"};
    assert_error(dpi_statistic_open(&o, &s, ERR), ARG, "wort: word_count has no such parameter");
    o = options_of(records, (const char *const[]){"a", "1"}), o.delta = .2;
    assert_error(dpi_statistic_open(&o, &s, ERR), ARG, "delta: found 0.2, allowed below 1 / units");
    o.delta = 1e-3, o.struct_size = 1;
    assert_error(dpi_statistic_open(&o, &s, ERR), ARG, "struct_size is 1");
    dpi_records_close(records);
}

/* The ledger has the cost before a record is read, once; without it nothing is read. */
TEST(test_charge) {
    dpi_records *records = records_of(texts, N);
    dpi_statistic *s;
    const int64_t *numbers;
    int32_t n;
    dpi_statistic_options o = options_of(records, (const char *const[]){"fever", "3"});
    o.ledger = the_ledger, o.dataset = "letters";
    assert_ok(dpi_statistic_open(&o, &s, ERR));
    assert_error(dpi_statistic_release(s, &numbers, &n, ERR), STATE, "not charged");
    assert_ok(dpi_statistic_reserve(s, ERR));
    assert_ok(dpi_statistic_reserve(s, ERR));
    const dpi_dataset_info info = info_of("letters");
    assert_true(info.n_charges == 1 && info.charged == dpi_statistic_claim(s)->ledger.charge &&
                info.charged > info.budget / 2);
    assert_ok(dpi_statistic_release(s, &numbers, &n, ERR));
    dpi_statistic_free(s);
    assert_ok(dpi_statistic_open(&o, &s, ERR)); /* a second one is over the budget */
    assert_error(dpi_statistic_reserve(s, ERR), BUDGET, "");
    assert_error(dpi_statistic_release(s, &numbers, &n, ERR), STATE, "not charged");
    dpi_statistic_free(s);
    o.seeded = 1;
    assert_error(dpi_statistic_open(&o, &s, ERR), ARG, "not with a ledger");
    dpi_records_close(records);
}

static dpi_report *report_of(const dpi_claim *c) {
    dpi_report *made, *read;
    char *text;
    size_t n;
    assert_ok(dpi_report_of(c, NULL, NULL, &made, ERR));
    assert_ok(dpi_report_text(made, 1, DPI_REPORT_JSON, &text, &n, ERR));
    assert_ok(dpi_report_parse("r.json", text, n, &read, ERR));
    dpi_report_free(made);
    free(text);
    return read;
}

/* The ledger has what was done with the charge: a report of other work at the same cost has no
 * charge, and a charge from outside fits any. */
TEST(test_claim_of_charge) {
    dpi_records *records = records_of(texts, N);
    dpi_statistic_options o = options_of(records, (const char *const[]){"fever", "3"});
    dpi_statistic *s;
    char *claim;
    dpi_claim read;
    o.ledger = the_ledger, o.dataset = "letters";
    assert_ok(dpi_statistic_open(&o, &s, ERR));
    assert_ok(dpi_statistic_reserve(s, ERR));
    assert_ok(dpi_ledger_charge_claim(the_ledger, 1, &claim, ERR));
    assert_ok(dpi_claim_read(claim, strlen(claim), &read, ERR));
    assert_true(strcmp(read.parts[0].text, "fever") == 0 && read.ledger.dataset[0] == '\0');
    free(claim);
    assert_error(dpi_ledger_charge_claim(the_ledger, 2, &claim, ERR), ARG, "no charge 2");
    assert_null(claim);
    dpi_claim other = *dpi_statistic_claim(s);
    dpi_report *own = report_of(&other);
    strcpy(other.parts[0].text, "cough");
    dpi_report *others = report_of(&other);
    other = *dpi_statistic_claim(s); /* of a dataset that may cost less, at the same order */
    other.ledger.epsilon *= 1 - 1e-9;
    assert_ok(dpi_claim_settle(&other, ERR));
    dpi_report *of_less = report_of(&other);
    assert_error(dpi_report_find_charge(of_less, the_ledger, ERR), STATE,
                 "the dataset of the ledger has epsilon");
    dpi_report_free(of_less);
    assert_ok(dpi_report_find_charge(own, the_ledger, ERR));
    assert_error(dpi_report_find_charge(others, the_ledger, ERR), STATE, "for other work");
    exec_sql(path, "UPDATE charge SET claim = ''");
    assert_ok(dpi_report_find_charge(others, the_ledger, ERR));
    dpi_report_free(own);
    dpi_report_free(others);
    dpi_statistic_free(s);
    dpi_records_close(records);
}
