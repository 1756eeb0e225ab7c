/* A pace from public texts: against texts drawn by hand, one session each; what stays as it was
 * given; that records change no bit of it; its place in claim, statement and report. */
#include <math.h>

#include "dp/account/pace.h"
#include "dpinfer/pace.h"
#include "dpinfer/release.h"
#include "dpinfer/report.h"
#include "tests/support/support.h"

enum { T = 48, N_TEXTS = 3 };

static dpi_model *model;
static int32_t n_vocab;
static const char task[] = "Write a support ticket.";

static dpi_sampler_options method_of(int32_t pace) {
    dpi_sampler_options o = ink_options(n_vocab, 4, T, 1, 2);
    o.top_k = 30; /* K */
    o.pace = pace;
    return o;
}

static dpi_status find(dpi_sampler_options *o, dpi_error *err) {
    dpi_pace_search search;
    int32_t tokens[256];
    size_t n;
    dpi_pace_search_init(&search);
    search.session = open_session(model, NULL, N_TEXTS, 256);
    assert_ok(dpi_prompt_encode(model, DPI_CHAT_AUTO, NULL, 0, task, strlen(task), tokens, 256, &n,
                                err), err);
    search.public_tokens = tokens;
    search.n_public = n;
    search.n_texts = N_TEXTS;
    const dpi_status status = dpi_pace_find(&search, o, err);
    for (int32_t i = 0; i < N_TEXTS; i++) /* empty again */
        assert_int_equal(dpi_session_length(search.session, i), 0);
    dpi_session_free(search.session);
    return status;
}

/* ---- By hand --------------------------------------------------------------------------------- */

enum { K = 30, TIES = 8 };

static double tops[N_TEXTS][T];
static double all[N_TEXTS][T][K + TIES]; /* probabilities; 0: no more */
static int32_t lengths[N_TEXTS];
static bool ended[N_TEXTS];

static int descending(const void *x, const void *y) {
    const float a = *(const float *)x, b = *(const float *)y;
    return (a < b) - (a > b);
}

/* Probabilities of the 30 likeliest tokens, ties included, largest first. */
static void shares_of(const float *logits, double *p) {
    float *sorted = malloc((size_t)n_vocab * sizeof *sorted);
    double sum = 0;
    memcpy(sorted, logits, (size_t)n_vocab * sizeof *sorted);
    qsort(sorted, (size_t)n_vocab, sizeof *sorted, descending);
    for (int32_t i = 0; i < n_vocab && sorted[i] >= sorted[K - 1]; i++) {
        assert_true(i < K + TIES);
        p[i] = exp((double)sorted[i] - sorted[0]);
        sum += p[i];
    }
    for (int i = 0; i < K + TIES; i++)
        p[i] /= sum;
    free(sorted);
}

/* The bits are those of dpi_pace_find: one stream, text after text in each step. */
static void draw_by_hand(void) {
    dpi_session *s[N_TEXTS];
    dpi_sampler_options plain;
    uint64_t state = 0x70616365;
    int32_t tokens[256], seq = 0, last[N_TEXTS];
    size_t n;
    dpi_error err;
    dpi_sampler_options_init(&plain);
    plain.method = DPI_METHOD_PLAIN;
    plain.n_vocab = n_vocab;
    plain.n_tokens = T * N_TEXTS;
    plain.top_k = K;
    plain.random = dpi_random_insecure;
    plain.random_user = &state;
    dpi_sampler *sampler = open_sampler(&plain);
    assert_ok(dpi_sampler_begin(sampler, &err), &err);
    assert_ok(dpi_prompt_encode(model, DPI_CHAT_AUTO, NULL, 0, task, strlen(task), tokens, 256, &n,
                                &err), &err);
    for (int i = 0; i < N_TEXTS; i++) {
        s[i] = open_session(model, NULL, 1, 256);
        assert_ok(dpi_session_prefill(s[i], 0, tokens, n, NULL, &err), &err);
    }
    for (int t = 0; t < T; t++)
        for (int i = 0; i < N_TEXTS; i++) {
            if (ended[i])
                continue;
            if (t > 0)
                assert_ok(dpi_session_step(s[i], 1, &seq, &last[i], &err), &err);
            shares_of(dpi_session_logits(s[i], 0), all[i][lengths[i]]);
            tops[i][lengths[i]] = all[i][lengths[i]][0];
            lengths[i]++;
            assert_ok(dpi_sampler_step(sampler, dpi_session_logits(s[i], 0), NULL, &last[i], &err),
                      &err);
            ended[i] = dpi_token_is_eog(model, last[i]);
        }
    for (int i = 0; i < N_TEXTS; i++)
        dpi_session_free(s[i]);
    dpi_sampler_free(sampler);
}

/* Steps with top <= theta of a text, and their sum of 1 - top; on average. */
static void average(double theta, double *n, double *rest) {
    *n = *rest = 0;
    for (int i = 0; i < N_TEXTS; i++)
        for (int t = 0; t < lengths[i]; t++)
            if (tops[i][t] <= theta) {
                const double more = (ended[i] ? 1 : (double)T / lengths[i]) / N_TEXTS;
                *n += more;
                *rest += more * (1 - tops[i][t]);
            }
}

/* The quota of a theta, and its clip bound by a plan. */
static int32_t quota_of(double theta) {
    double n, rest;
    average(theta, &n, &rest);
    return (int32_t)fmax(1, fmin(ceil(n), T));
}

static double swing_of(const dpi_sampler_options *o, int32_t quota) {
    dpi_sampler_options at = *o;
    dpi_sampler_plan plan;
    dpi_error err;
    at.pace = DPI_PACE_TOP, at.pace_theta = .5, at.pace_tokens = quota;
    dpi_sampler_plan_init(&plan);
    assert_ok(dpi_sampler_plan_make(&at, &plan, &err), &err);
    return plan.clip / o->tau;
}

/* What references that agree on a token move at the private steps: over tokens that they want with
 * weights p^.2, with C of T_p. A weak budget is as one that moves log weights by 1.5. */
static double moved(double theta, const dpi_sampler_options *o) {
    const double swing = swing_of(o, quota_of(theta)) * fmax(1, 1.5 / swing_of(o, quota_of(.5)));
    double sum = 0;
    for (int i = 0; i < N_TEXTS; i++)
        for (int t = 0; t < lengths[i]; t++) {
            double wanted = 0, gain = 0;
            for (int k = 0; tops[i][t] <= theta && k < K + TIES; k++) {
                const double p = all[i][t][k], likelier = p * exp(2 * swing);
                wanted += pow(p, .2);
                gain += pow(p, .2) * (likelier / (likelier + 1 - p) - p);
            }
            sum += wanted > 0 ? gain / wanted * (ended[i] ? 1 : (double)T / lengths[i]) : 0;
        }
    return sum;
}

/* No other theta of the grid moves much more, and a smaller one moves less than 95 % of the most. A
 * larger budget has no smaller theta. */
static void test_theta_by_hand(void **state) {
    (void)state;
    const double budgets[] = {1e-4, .01, 3, 30};
    double thetas[4];
    for (int b = 0; b < 4; b++) {
        dpi_error err;
        dpi_sampler_options o = method_of(DPI_PACE_AUTO);
        o.rho = budgets[b];
        assert_ok(find(&o, &err), &err);
        assert_int_equal(o.pace, DPI_PACE_TOP);
        assert_int_equal(o.pace_tokens, quota_of(o.pace_theta));
        const double found = moved(o.pace_theta, &o);
        double most = 0;
        for (int i = 10; i <= 19; i++) {
            assert_true(.95 * moved(.05 * i, &o) <= found * 1.01);
            most = fmax(most, moved(.05 * i, &o));
        }
        for (int i = 10; .05 * i < o.pace_theta - .01; i++) {
            assert_true(moved(.05 * i, &o) < .96 * most);
        }
        thetas[b] = o.pace_theta;
    }
    assert_true(fabs(thetas[0] - thetas[1]) < 1e-9 && thetas[1] <= thetas[2]);
    assert_true(thetas[2] < thetas[3] && thetas[3] > .7);
}

/* The steps of public texts that references could change by theta are T_p on average, whatever the
 * budget is: where all unsure steps could change alike, these are all private. */
static void test_change_by_hand(void **state) {
    (void)state;
    const double budgets[] = {.01, 1, 10, 100};
    for (int b = 0; b < 4; b++) {
        dpi_error err;
        dpi_sampler_options o = method_of(DPI_PACE_CHANGE);
        double n = 0;
        o.rho = budgets[b];
        assert_ok(find(&o, &err), &err);
        const double swing = swing_of(&o, o.pace_tokens);
        for (int i = 0; i < N_TEXTS; i++)
            for (int t = 0; t < lengths[i]; t++)
                if (dpi_pace_change(tops[i][t], swing) >= o.pace_theta)
                    n += (ended[i] ? 1 : (double)T / lengths[i]) / N_TEXTS;
        assert_true(n > .7 * o.pace_tokens && n <= o.pace_tokens + 1e-9);
    }
}

static void test_against_texts_by_hand(void **state) {
    (void)state;
    double n, rest;
    dpi_error err;
    dpi_sampler_options o = method_of(DPI_PACE_SHARE);
    draw_by_hand();
    assert_ok(find(&o, &err), &err);
    average(1, &n, &rest);
    assert_int_equal(o.free_top_k, DPI_PACE_FREE_TOP_K);
    assert_true(rest > 1 && fabs(o.pace_share - rest) <= .11);

    o = method_of(DPI_PACE_SHARE);
    o.pace_theta = .7;
    assert_ok(find(&o, &err), &err);
    average(.7, &n, &rest);
    assert_true(o.pace_theta == .7 && fabs(o.pace_share - rest) <= .11);

    o = method_of(DPI_PACE_TOP);
    o.pace_theta = .7;
    assert_ok(find(&o, &err), &err);
    assert_true(o.pace_tokens >= n && o.pace_tokens < n + 1 + 1e-9);
}

static void test_what_is_given_stays(void **state) {
    (void)state;
    dpi_error err;
    dpi_sampler_options o = method_of(DPI_PACE_AUTO);
    o.rho = 0;
    o.epsilon = 3;
    o.delta = 1e-5;
    o.accountant = DPI_ACCOUNTANT_BR;
    o.free_top_k = 9;
    assert_int_equal(dpi_pace_is_open(&o), 1);
    assert_ok(find(&o, &err), &err);
    assert_int_equal(o.pace, DPI_PACE_TOP);
    assert_int_equal(o.free_top_k, 9);
    assert_true(o.pace_theta > 0 && o.pace_tokens > 0);
    assert_int_equal(dpi_pace_is_open(&o), 0);
    const dpi_sampler_options before = o;
    assert_ok(dpi_pace_find(NULL, &o, &err), &err); /* nothing is open: nothing is drawn */
    assert_memory_equal(&before, &o, sizeof o);

    o = method_of(DPI_PACE_CHANGE);
    assert_ok(find(&o, &err), &err);
    assert_true(o.pace_theta > 0 && o.pace_theta < 1 && o.pace_tokens > 0);
    const int32_t quota = o.pace_tokens;
    o.pace_tokens = 0; /* the same quota from that theta, or one close to it */
    assert_ok(find(&o, &err), &err);
    assert_true(abs(o.pace_tokens - quota) <= 2);

    o = method_of(DPI_PACE_NONE);
    assert_ok(dpi_pace_find(NULL, &o, &err), &err);
    assert_int_equal(o.pace, DPI_PACE_NONE);
    o.method = DPI_METHOD_ADAPMIXED;
    o.pace = DPI_PACE_AUTO; /* it has no pace */
    assert_int_equal(dpi_pace_is_open(&o), 0);
    assert_ok(dpi_pace_find(NULL, &o, &err), &err);
    assert_int_equal(o.pace, DPI_PACE_NONE);
}

/* amin: its quota is n_private; a sparse vector needs no pace. A quota that is given says top. */
static void test_kinds(void **state) {
    (void)state;
    dpi_error err;
    dpi_sampler_options o = method_of(DPI_PACE_AUTO);
    o.method = DPI_METHOD_AMIN;
    o.rho = 50;
    assert_int_equal(dpi_pace_is_open(&o), 1);
    assert_ok(find(&o, &err), &err);
    assert_int_equal(o.pace, DPI_PACE_TOP);
    assert_true(o.pace_theta > 0 && o.n_private > 0 && o.n_private < T && o.pace_tokens == 0);
    o = method_of(DPI_PACE_AUTO);
    o.method = DPI_METHOD_AMIN;
    o.svt_sigma = 2;
    o.svt_threshold = .3;
    assert_int_equal(dpi_pace_is_open(&o), 0);
    assert_ok(dpi_pace_find(NULL, &o, &err), &err);
    assert_true(o.pace == DPI_PACE_NONE && o.n_private == 0);
    o = method_of(DPI_PACE_AUTO);
    o.pace_tokens = 7;
    assert_ok(find(&o, &err), &err);
    assert_true(o.pace == DPI_PACE_TOP && o.pace_tokens == 7 && o.pace_theta > 0);
    o = method_of(DPI_PACE_AUTO);
    o.pace_share = 7;
    assert_int_equal(dpi_pace_is_open(&o), 0);
    assert_ok(find(&o, &err), &err);
    assert_true(o.pace == DPI_PACE_SHARE && o.pace_share == 7 && o.pace_theta == 0);
}

/* ---- Releases -------------------------------------------------------------------------------- */

static dpi_release *open_release(const char *record, const dpi_grammar *grammar) {
    const char *texts[8];
    size_t n_bytes[8];
    dpi_records *records = NULL;
    dpi_release *release = NULL;
    dpi_release_options o;
    dpi_error err;
    for (int i = 0; i < 8; i++) {
        texts[i] = record;
        n_bytes[i] = strlen(record);
    }
    assert_ok(dpi_records_create(texts, n_bytes, 8, &records, &err), &err);
    dpi_release_options_init(&o);
    o.model = model;
    o.records = records;
    o.n_tokens = T;
    o.method.rho = 1;
    o.grammar = grammar;
    o.prompts.public_prompt = (dpi_bytes){task, strlen(task)};
    assert_ok(dpi_release_open(&o, &release, &err), &err);
    dpi_records_close(records); /* open looks at their number alone */
    return release;
}

static void test_records_change_nothing(void **state) {
    (void)state;
    dpi_release *a = open_release("x", NULL),
                *b = open_release("A much longer and very different one.", NULL);
    assert_memory_equal(dpi_release_claim(a), dpi_release_claim(b), sizeof(dpi_claim));
    assert_true(dpi_release_claim(a)->pace_texts >= 2);
    assert_true(dpi_release_claim(a)->method.pace_tokens > 0);
    dpi_release_free(a);
    dpi_release_free(b);
}

/* The texts are of the form that those of the run have: a text of it has 14 tokens at most, and all
 * but the pieces of a word is forced, and free. */
static void test_grammar(void **state) {
    (void)state;
    static const char text[] =
        "root ::= \"Subject: \" (\"printer\" | \"router\" | \"invoice\") \"\\n\"";
    dpi_grammar *grammar = NULL;
    dpi_error err;
    assert_ok(dpi_grammar_parse(text, sizeof text - 1, &grammar, &err), &err);
    dpi_release *release = open_release("x", grammar), *any = open_release("x", NULL);
    assert_in_range(dpi_release_claim(release)->method.pace_tokens, 1, 8);
    assert_true(dpi_release_claim(any)->method.pace_tokens > 8);
    dpi_release_free(release);
    dpi_release_free(any);
    dpi_grammar_free(grammar);
}

static void test_statement_and_report(void **state) {
    (void)state;
    dpi_release *release = open_release("x", NULL);
    dpi_report *report = NULL, *read = NULL;
    dpi_verification v;
    char *text;
    size_t n;
    dpi_error err;
    assert_ok(dpi_claim_statement(dpi_release_claim(release), 1, &text, &err), &err);
    assert_non_null(strstr(text, "texts of the public prompt, which cost nothing"));
    free(text);
    const dpi_claim *claim = dpi_release_claim(release);
    assert_ok(dpi_report_create(claim, model, DPI_BUILTIN_MODEL, &report, &err), &err);
    assert_ok(dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n, &err), &err);
    assert_ok(dpi_report_parse("r", text, n, &read, &err), &err);
    dpi_verification_init(&v);
    assert_ok(dpi_report_verify(read, NULL, NULL, &v, &err), &err);
    assert_int_equal(v.n_wrong, 0);
    assert_non_null(strstr(text, "before a record was read"));
    dpi_verification_free(&v);
    free(text);
    dpi_report_free(read);
    dpi_report_free(report);
    dpi_release_free(release);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_texts_by_hand),
        cmocka_unit_test(test_theta_by_hand),
        cmocka_unit_test(test_change_by_hand),
        cmocka_unit_test(test_what_is_given_stays),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_records_change_nothing),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_statement_and_report),
    };
    dpi_model_info info;
    dpi_error err;
    dpi_model_info_init(&info);
    if (dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, &err) != DPI_STATUS_OK ||
        dpi_model_info_get(model, &info, &err) != DPI_STATUS_OK)
        return 1;
    n_vocab = info.n_vocab;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dpi_model_close(model);
    return failed;
}
