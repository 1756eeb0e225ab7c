/* Private evolution: what is settled, written, voted for, charged and reported. */
#include "pipeline/augpe/augpe.h"

#include <math.h>

#include "dp/exact/votes.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static char dir[256];
static dpi_model *model;
static void *image;

/* Three records of person a, of which the second is empty, two of b, one without an ID, one of c.
 */
static const char people[] = "id,text\n"
                             "a,one of a\na,\na,three of a\nb,one of b\n,nobody\nb,two of b\n"
                             "c,a longer text of c\n";

static dpi_records *open_records(bool units) {
    dpi_records_options o;
    dpi_records *records;
    dpi_error err;
    write_file(path_in(dir, "people.csv"), people, sizeof people - 1);
    dpi_records_options_init(&o);
    o.unit_field = units ? "id" : NULL;
    assert_ok(dpi_records_open(path_in(dir, "people.csv"), &o, &records, &err), &err);
    return records;
}

static dpi_augpe_options options_of(const dpi_records *records) {
    dpi_augpe_options o;
    dpi_augpe_options_init(&o);
    o.model = model, o.records = records;
    o.n_texts = 3, o.n_candidates = 3, o.n_rounds = 3, o.n_tokens = 8;
    o.prompts.public_prompt = (dpi_bytes){"say", 3};
    o.prompts.chat = DPI_CHAT_NONE;
    o.rho = 1, o.delta = 1e-3;
    o.session.n_threads = 1;
    o.seeded = 1, o.seed = 7;
    return o;
}

static dpi_augpe *open_augpe(const dpi_augpe_options *o) {
    dpi_augpe *f;
    dpi_error err;
    assert_ok(dpi_augpe_open(o, &f, &err), &err);
    return f;
}

static void run(dpi_augpe *f) {
    dpi_augpe_event e = {0};
    dpi_error err;
    while (e.type != DPI_AUGPE_NONE)
        assert_ok(dpi_augpe_advance(f, &e, &err), &err);
}

static uint64_t hash_texts(const dpi_augpe *f) {
    uint64_t hash = 1;
    for (int32_t i = 0; i < f->options.n_texts; i++) {
        const char *text;
        size_t n;
        dpi_augpe_text(f, i, &text, &n);
        assert_non_null(text);
        assert_int_equal(strlen(text) <= n, 1);
        for (size_t k = 0; k < n; k++)
            hash = hash * 1099511628211u + (unsigned char)text[k];
    }
    return hash;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* rho at epsilon 1 and delta 1e-6 is .0243560 (docs/spec.md 4.1). */
static void test_settle(void **state) {
    (void)state;
    dpi_error err;
    dpi_augpe_claim c;
    for (int32_t rounds = 1; rounds < 40; rounds += 3) {
        dpi_augpe_claim_init(&c);
        c.epsilon = 1, c.delta = 1e-6, c.n_units = 1000;
        c.n_texts = 10, c.n_rounds = rounds, c.n_candidates = 4;
        c.change = .5, c.tau = 1, c.adjacency = DPI_ADJACENCY_ADD_REMOVE;
        assert_ok(dpi_augpe_settle(&c, &err), &err);
        /* R 16^2 / (2 s) */
        const long double rho = rounds * 32768.L / (long double)c.variance;
        assert_true((long double)c.rho_total >= rho);
        assert_true(c.rho_total <= .0243561 && rho > .0243560 * .99);
        assert_true(c.epsilon_total <= 1 && c.epsilon_total > .99);
    }
    const dpi_augpe_claim good = c;
    c.n_units = 0;
    assert_error(dpi_augpe_settle(&c, &err), DPI_STATUS_ARG, &err, "units");
    c = good, c.delta = 2e-3;
    assert_error(dpi_augpe_settle(&c, &err), DPI_STATUS_ARG, &err, "delta");
    c = good, c.rho = 1;
    assert_error(dpi_augpe_settle(&c, &err), DPI_STATUS_ARG, &err, "epsilon");
    c = good, c.epsilon = 1e6; /* the least noise, which costs less */
    assert_ok(dpi_augpe_settle(&c, &err), &err);
    assert_true(c.variance == 16 && c.rho_total >= 37 * 2048. && c.epsilon_total < 1e6);
    c = good, c.epsilon = .001;
    assert_error(dpi_augpe_settle(&c, &err), DPI_STATUS_ARG, &err, "rho");
    c = good, c.adjacency = DPI_ADJACENCY_ZERO_OUT;
    assert_error(dpi_augpe_settle(&c, &err), DPI_STATUS_ARG, &err, "adjacency");
    c = good, c.n_candidates = 1;
    assert_error(dpi_augpe_settle(&c, &err), DPI_STATUS_ARG, &err, "n_candidates");
    c = good, c.threshold = NAN;
    assert_error(dpi_augpe_settle(&c, &err), DPI_STATUS_ARG, &err, "threshold");
    c = good, c.change = 0;
    assert_error(dpi_augpe_settle(&c, &err), DPI_STATUS_ARG, &err, "change");
}

static void test_options(void **state) {
    (void)state;
    dpi_records *records = open_records(false);
    dpi_augpe_options o = options_of(records);
    dpi_augpe *f;
    dpi_error err;
    o.prompts.query = (dpi_bytes){"who?", 4};
    assert_error(dpi_augpe_open(&o, &f, &err), DPI_STATUS_ARG, &err, "query");
    o = options_of(records), o.n_parallel = 0;
    assert_error(dpi_augpe_open(&o, &f, &err), DPI_STATUS_ARG, &err, "n_parallel");
    o = options_of(records), o.n_tokens = 1 << 20;
    assert_error(dpi_augpe_open(&o, &f, &err), DPI_STATUS_ARG, &err, "n_tokens");
    o = options_of(records), o.variation = DPI_AUGPE_CONTINUE;
    o.variation_prompt = (dpi_bytes){"{reference}", 11};
    assert_error(dpi_augpe_open(&o, &f, &err), DPI_STATUS_ARG, &err, "variation");
    o = options_of(records), o.variation_prompt = (dpi_bytes){"nothing", 7};
    assert_error(dpi_augpe_open(&o, &f, &err), DPI_STATUS_ARG, &err, "{reference}");
    dpi_records_close(records);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Each way to choose and to vary; the same texts with a seed, however many are written at a time,
 * and others with another seed. */
static void test_texts(void **state) {
    (void)state;
    dpi_records *records = open_records(true);
    for (int way = 0; way < 6; way++) {
        uint64_t hash[3];
        for (int i = 0; i < 3; i++) {
            dpi_augpe_options o = options_of(records);
            o.variation = way % 3;
            o.selection = way / 3;
            o.n_candidates = way < 3 ? 3 : 1 + way % 2;
            o.n_lookahead = way % 2 ? 2 : 0;
            o.n_parallel = i == 1 ? 1 : 5;
            o.seed += i == 2;
            dpi_augpe *f = open_augpe(&o);
            const char *text = "x";
            size_t n;
            dpi_augpe_text(f, 0, &text, &n);
            assert_null(text); /* nothing is released yet */
            run(f);
            hash[i] = hash_texts(f);
            dpi_augpe_text(f, 3, &text, &n);
            assert_null(text);
            dpi_augpe_free(f);
        }
        assert_true(hash[0] == hash[1]);
        assert_true(hash[0] != hash[2]);
    }
    dpi_records_close(records);
}

static dpi_status write_nothing(void *user, const dpi_bytes *prompts, int32_t n, char **texts,
                                dpi_error *err) {
    (void)user, (void)prompts, (void)n, (void)texts, (void)err;
    return DPI_STATUS_OK;
}

/* CONTINUE leaves a beginning as it is, and a text has no more tokens than it may have. */
static void test_continue(void **state) {
    (void)state;
    dpi_records *records = open_records(false);
    static const char text[] = "alpha beta gamma delta epsilon zeta eta theta";
    dpi_augpe_options o = options_of(records);
    o.variation = DPI_AUGPE_CONTINUE, o.change = .2, o.n_tokens = 60;
    dpi_augpe *f = open_augpe(&o);
    dpi_augpe_event e = {0};
    dpi_error err;
    int n_whole = 0;
    while (e.type != DPI_AUGPE_ROUND)
        assert_ok(dpi_augpe_advance(f, &e, &err), &err);
    for (int32_t i = 0; i < 3; i++) { /* in the place of what was chosen */
        dpi_augpe_empty(&f->chosen[i]);
        dpi_text_put(&f->chosen[i], text, sizeof text - 1);
    }
    while (f->phase == DPI_PHASE_WRITE)
        assert_ok(dpi_augpe_advance(f, &e, &err), &err);
    for (int32_t i = dpi_augpe_first_new(f); i < f->n_all; i++) {
        const dpi_text *to = &f->candidates[i];
        assert_true(to->n_bytes > 22 && memcmp(to->data, "alpha beta gamma delta", 22) == 0);
        n_whole += to->n_bytes >= sizeof text - 1 && memcmp(to->data, text, sizeof text - 1) == 0;
    }
    assert_true(n_whole < f->n_all - dpi_augpe_first_new(f));
    dpi_augpe_free(f);
    dpi_records_close(records);
}

/* Whatever is varied, candidates are texts of the grammar, as 30 tokens are enough for it. CONTINUE
 * keeps a beginning, and the rest follows the grammar from there on, whether or not the tokens of
 * the beginning are those that would be drawn; a beginning that no text of it has does not stay. */
static void test_grammar(void **state) {
    (void)state;
    static const char form[] = "root ::= [ab]{2,4} \" \" [0-9]{3} \" end\"";
    static const char text[] = "abab 555 end";
    dpi_records *records = open_records(false);
    dpi_augpe_options o = options_of(records);
    dpi_grammar *grammar;
    dpi_error err;
    assert_ok(dpi_grammar_parse(form, sizeof form - 1, &grammar, &err), &err);
    o.grammar = grammar, o.n_tokens = 30, o.change = .3;
    for (o.variation = 0; o.variation <= DPI_AUGPE_CONTINUE; o.variation++) {
        o.top_k = o.variation == DPI_AUGPE_CONTINUE ? 1 : o.top_k;
        dpi_augpe *f = open_augpe(&o);
        dpi_augpe_event e = {0};
        int n_kept = 0;
        while (e.type != DPI_AUGPE_ROUND)
            assert_ok(dpi_augpe_advance(f, &e, &err), &err);
        for (int32_t i = 0; i < 3; i++) {
            dpi_augpe_empty(&f->chosen[i]);
            dpi_text_put(&f->chosen[i], text, sizeof text - 1);
        }
        f->chosen[2].data[5] = '\xff';
        while (f->phase == DPI_PHASE_WRITE)
            assert_ok(dpi_augpe_advance(f, &e, &err), &err);
        for (int32_t i = 0; i < f->n_all; i++) {
            const dpi_text *to = &f->candidates[i];
            int32_t accepts;
            assert_ok(dpi_grammar_accepts(grammar, to->data, to->n_bytes, &accepts, &err), &err);
            if (!accepts)
                fail_msg("variation %d: found '%s'", o.variation, to->data);
            n_kept += i >= dpi_augpe_first_new(f) && memcmp(to->data, "abab", 4) == 0;
        }
        assert_true(o.variation != DPI_AUGPE_CONTINUE || n_kept > 2);
        assert_int_equal(strlen(f->claim.grammar), 16);
        dpi_augpe_free(f);
    }
    o.variation = DPI_AUGPE_ANOTHER;
    o.write = write_nothing;
    dpi_augpe *f;
    assert_error(dpi_augpe_open(&o, &f, &err), DPI_STATUS_ARG, &err,
                 "grammar: found one with write");
    dpi_grammar_free(grammar);
    dpi_records_close(records);
}

/* ---- Elsewhere ------------------------------------------------------------------------------- */

typedef struct elsewhere {
    int n_calls, n_public, n_varied, fails_at;
} elsewhere;

static dpi_status write_text(void *user, const dpi_bytes *prompts, int32_t n, char **texts,
                             dpi_error *err) {
    elsewhere *e = user;
    for (int32_t i = 0; i < n; i++) {
        const bool is_public = prompts[i].n_bytes == 3 && memcmp(prompts[i].data, "say", 3) == 0;
        assert_true(is_public || memcmp(prompts[i].data, "like word ", 10) == 0);
        e->n_public += is_public, e->n_varied += !is_public;
        texts[i] = malloc(40);
        snprintf(texts[i], 40, "word %d %d", e->n_calls, i);
    }
    e->n_calls++;
    (void)err;
    return e->n_calls == e->fails_at ? DPI_STATUS_IO : DPI_STATUS_OK;
}

/* Prompts are public texts and candidates; who writes may fail at any call. */
static void test_elsewhere(void **state) {
    (void)state;
    dpi_records *records = open_records(false);
    for (int fails_at = 0; fails_at < 3; fails_at++) {
        elsewhere user = {.fails_at = fails_at};
        dpi_augpe_options o = options_of(records);
        o.write = write_text, o.write_user = &user, o.n_parallel = 4;
        o.variation_prompt = (dpi_bytes){"like {reference}!", 17};
        dpi_augpe *f = open_augpe(&o);
        dpi_augpe_event e = {0};
        dpi_error err;
        dpi_status status = DPI_STATUS_OK;
        while (e.type != DPI_AUGPE_NONE && status == DPI_STATUS_OK)
            status = dpi_augpe_advance(f, &e, &err);
        assert_int_equal(status, fails_at ? DPI_STATUS_IO : DPI_STATUS_OK);
        if (fails_at)
            assert_error(dpi_augpe_advance(f, &e, &err), DPI_STATUS_STATE, &err, "failed before");
        else
            assert_true(user.n_public == 9 && user.n_varied == 12);
        assert_int_equal(dpi_augpe_claim_of(f)->remote, 1);
        dpi_augpe_free(f);
    }
    dpi_records_close(records);
}

/* ---- Records and charges --------------------------------------------------------------------- */

static dpi_ledger *open_ledger(double epsilon, int32_t scope) {
    dpi_ledger_options options;
    dpi_dataset_options dataset;
    dpi_ledger *ledger;
    dpi_error err;
    remove(path_in(dir, "evolution.ledger"));
    dpi_ledger_options_init(&options);
    dpi_dataset_options_init(&dataset);
    options.create = 1;
    dataset.name = "people", dataset.epsilon = epsilon, dataset.delta = 1e-4;
    dataset.scope = scope;
    assert_ok(dpi_ledger_open(path_in(dir, "evolution.ledger"), &options, &ledger, &err), &err);
    assert_ok(dpi_ledger_add(ledger, &dataset, &err), &err);
    return ledger;
}

/* A unit that cannot pay votes nothing, in silence; one without an ID is null. */
static void test_units_pay(void **state) {
    (void)state;
    static const void *const ids[] = {"a"};
    static const size_t n_bytes[] = {1};
    uint8_t paid = 0;
    const dpi_ledger_units units = {.n = 1, .ids = ids, .n_bytes = n_bytes, .pays = &paid};
    dpi_ledger *ledger = open_ledger(10, DPI_SCOPE_UNIT);
    dpi_records *records = open_records(true);
    dpi_augpe_options o = options_of(records);
    dpi_charge_request request;
    dpi_cost cost;
    dpi_error err;
    dpi_charge_request_init(&request);
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, 1.5, 0, &err), &err);
    request.cost = &cost, request.method = "outside", request.units = &units;
    assert_ok(dpi_ledger_reserve(ledger, "people", &request, NULL, &err), &err);
    o.seeded = 0, o.ledger = ledger, o.dataset = "people", o.max_per_unit = 2;
    dpi_augpe *f = open_augpe(&o);
    run(f);
    /* Records 0 to 2 are a's, 3 and 5 b's, 4 nobody's, 6 is c's. */
    static const bool read[] = {false, false, false, true, false, true, true};
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(isfinite(f->records[i * (size_t)f->n_embd]) != 0, read[i]);
    assert_true(f->claim.ledger.charge > 0 && f->claim.ledger.scope == DPI_SCOPE_UNIT);
    dpi_augpe_free(f);
    dpi_records_close(records);
    dpi_ledger_close(ledger);
}

/* Null records, and those beyond M, have no features; candidates without any are left out. */
static void test_null_records(void **state) {
    (void)state;
    dpi_records *records = open_records(true);
    dpi_augpe_options o = options_of(records);
    int64_t sum = 0;
    dpi_error err;
    o.max_per_unit = 2;
    dpi_augpe *f = open_augpe(&o);
    run(f);
    static const bool read[] = {true, false, false, true, true, true, true};
    for (size_t i = 0; i < 7; i++)
        if (i != 4) /* of nobody: see below */
            assert_int_equal(isfinite(f->records[i * (size_t)f->n_embd]) != 0, read[i]);
    assert_ok(dpi_augpe_count(f, &err), &err);
    for (int32_t i = 0; i < f->n_all; i++)
        sum += f->votes[i];
    assert_true(sum >= 3 * 16 && sum <= 3 * 16 + 6); /* 16, or 11 and 11, of a, b and c */
    memset(f->usable, 0, (size_t)f->n_all);
    assert_ok(dpi_augpe_count(f, &err), &err);
    for (int32_t i = 0; i < f->n_all; i++)
        assert_int_equal(f->votes[i], 0);
    dpi_augpe_free(f);
    dpi_records_close(records);
}

static int n_failed_audits;

static void print_result(void *user, const dpi_audit_result *r) {
    (void)user;
    n_failed_audits += !r->passed;
    if (!r->passed)
        print_message("%s | %s | %s (%g)\n", r->audit, r->subject, r->failure, r->measured);
}

static void test_audit(void **state) {
    (void)state;
    dpi_audit_options o;
    dpi_error err;
    int32_t n_failed = 0;
    dpi_audit_options_init(&o);
    o.model = model, o.folder = path_in(dir, "");
    o.session.n_threads = 2;
    assert_ok(dpi_audit_augpe_run(&o, print_result, NULL, &n_failed, &err), &err);
    assert_int_equal(n_failed + n_failed_audits, 0);
}

/* ---- The report ------------------------------------------------------------------------------ */

static dpi_status verify(const char *text, dpi_ledger *ledger, dpi_verification *v, dpi_error *e) {
    return dpi_augpe_report_verify(text, strlen(text), NULL, NULL, ledger, v, e);
}

static void test_report(void **state) {
    (void)state;
    dpi_ledger *ledger = open_ledger(10, DPI_SCOPE_DATASET);
    dpi_records *records = open_records(true);
    dpi_augpe_options o = options_of(records);
    dpi_verification v;
    dpi_error err;
    char *text, *at;
    o.seeded = 0, o.ledger = ledger, o.dataset = "people", o.n_rounds = 2;
    dpi_augpe *f = open_augpe(&o);
    run(f);
    write_file(path_in(dir, "out"), "a text", 6);
    write_file(path_in(dir, "model.gguf"), image, 1000);
    char path[600], out[600];
    snprintf(path, sizeof path, "%s", path_in(dir, "model.gguf"));
    snprintf(out, sizeof out, "%s", path_in(dir, "out"));
    assert_ok(dpi_augpe_report(&f->claim, model, path, out, 1, &text, &err), &err);
    assert_int_equal(dpi_augpe_report_is(text, strlen(text)), 1);
    assert_ok(dpi_augpe_report_verify(text, strlen(text), path, out, ledger, &v, &err), &err);
    assert_true(v.n_wrong == 0 && v.n_ok > 7 && v.is_private);
    dpi_verification_free(&v);
    write_file(out, "b text", 6);
    assert_ok(dpi_augpe_report_verify(text, strlen(text), path, out, NULL, &v, &err), &err);
    assert_true(v.n_wrong == 1);
    dpi_verification_free(&v);
    /* A digit of each number that follows from the others. */
    static const char *const keys[] = {"\"variance\": ", "\"rho_round\": ", "\"rho_total\": ",
                                       "\"epsilon_total\": ", "\"charge\": "};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        at = strstr(text, keys[i]);
        assert_non_null(at);
        at += strlen(keys[i]) + 2;
        at += *at == '.';
        *at = *at == '5' ? '6' : '5';
        assert_ok(verify(text, NULL, &v, &err), &err);
        assert_true(v.n_wrong >= 1);
        dpi_verification_free(&v);
        free(text);
        assert_ok(dpi_augpe_report(&f->claim, model, path, out, 1, &text, &err), &err);
    }
    at = strstr(text, "\"complete\""); /* a key that no report has */
    memcpy(at, "\"complexe\"", 10);
    assert_error(verify(text, NULL, &v, &err), DPI_STATUS_FORMAT, &err, "complete");
    memcpy(at, "\"complete\"", 10);
    at = strstr(text, "\"program\"");
    memcpy(at, "\"progrem\"", 9);
    assert_ok(verify(text, NULL, &v, &err), &err);
    assert_true(v.n_wrong == 1);
    dpi_verification_free(&v);
    memcpy(at, "\"program\"", 9);
    at = strstr(text, "\"n_rounds\": 2");
    at[12] = '1'; /* a claim of half of the cost */
    assert_ok(verify(text, NULL, &v, &err), &err);
    assert_true(v.n_wrong >= 3);
    dpi_verification_free(&v);
    at[12] = '0';
    assert_error(verify(text, NULL, &v, &err), DPI_STATUS_ARG, &err, "n_rounds");
    assert_error(verify("{\"format\": \"dpinfer augpe\", \"version\": 1}", NULL, &v, &err),
                 DPI_STATUS_FORMAT, &err, "parameters");
    assert_error(verify("[]", NULL, &v, &err), DPI_STATUS_FORMAT, &err, "no report");
    free(text);
    dpi_augpe_free(f);
    dpi_records_close(records);
    dpi_ledger_close(ledger);
}

/* Memory that is missing at any place is an error, and nothing is lost or left. */
static void test_memory(void **state) {
    (void)state;
    dpi_records *records = open_records(true);
    dpi_augpe_options o = options_of(records);
    o.n_texts = 1, o.n_candidates = 2, o.n_rounds = 2, o.n_tokens = 2, o.n_lookahead = 1;
    o.variation = DPI_AUGPE_BLANKS;
    dpi_status status = DPI_STATUS_MEMORY;
    for (int64_t n = 1; status == DPI_STATUS_MEMORY; n += 1 + n / 40) {
        dpi_augpe *f = NULL;
        dpi_augpe_event e = {0};
        dpi_error err;
        fail_allocation(n);
        status = dpi_augpe_open(&o, &f, &err);
        while (status == DPI_STATUS_OK && e.type != DPI_AUGPE_NONE)
            status = dpi_augpe_advance(f, &e, &err);
        fail_allocation(0);
        dpi_augpe_free(f);
    }
    assert_int_equal(status, DPI_STATUS_OK);
    dpi_records_close(records);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settle),       cmocka_unit_test(test_options),
        cmocka_unit_test(test_texts),        cmocka_unit_test(test_continue),
        cmocka_unit_test(test_grammar),      cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_units_pay),    cmocka_unit_test(test_null_records),
        cmocka_unit_test(test_audit),        cmocka_unit_test(test_report),
        cmocka_unit_test(test_memory),
    };
    tiny_spec spec = tiny_default();
    make_dir(dir, sizeof dir);
    model = tiny_open(&spec, 1, &image);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dpi_model_close(model);
    free(image);
    remove_dir(dir);
    return failed;
}
