/* A pace from public texts: against texts drawn by hand, one session each; what stays as it was
 * given; that records change no bit of it; its place in claim, statement and report. */
#include <math.h>

#include "dp/account/pace.h"
#include "dpinfer/pace.h"
#include "dpinfer/release.h"
#include "dpinfer/report.h"
#include "tests/pipeline/records_of.h"

enum { T = 48, N_TEXTS = 3, K = 30, TIES = 8 };

static dpi_model *model;
static int32_t n_vocab, public_tokens[256];
static size_t n_public;
static const char task[] = "Write a support ticket.";

static dpi_sampler_options method_of(int32_t pace) {
    dpi_sampler_options o = ink_options(n_vocab, 4, T, 1, 2);
    o.top_k = K;
    o.pace = pace;
    return o;
}

/* The method with its pace. */
static dpi_sampler_options found(dpi_sampler_options o) {
    dpi_pace_search search;
    dpi_pace_search_init(&search);
    search.session = open_session(model, NULL, N_TEXTS, 256);
    search.public_tokens = public_tokens, search.n_public = n_public;
    search.n_texts = N_TEXTS;
    assert_ok(dpi_pace_find(&search, &o, ERR));
    for (int32_t i = 0; i < N_TEXTS; i++) /* empty again */
        assert_int_equal(dpi_session_length(search.session, i), 0);
    dpi_session_free(search.session);
    return o;
}

/* ---- By hand --------------------------------------------------------------------------------- */

/* All steps of all texts: probabilities of the 30 likeliest tokens, ties included, largest first
 * (0: no more), and how many steps of an average text this one is. */
static struct step {
    double p[K + TIES], weight;
    int text;
} steps[N_TEXTS * T];
static int n_steps;
static float *public_logits[N_TEXTS]; /* [lengths[i], n_vocab] */
static int32_t lengths[N_TEXTS];
static bool ended[N_TEXTS];

static int descending(const void *x, const void *y) {
    const float a = *(const float *)x, b = *(const float *)y;
    return (a < b) - (a > b);
}

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

/* The bits are those of dpi_pace_find: one stream, text after text in each step. A text that has
 * not ended counts as if it went on like this. */
static void draw_by_hand(void) {
    dpi_session *s[N_TEXTS];
    dpi_sampler_options plain = ink_options(n_vocab, 0, T * N_TEXTS, 1, 0);
    uint64_t state = 0x70616365;
    int32_t seq = 0, last[N_TEXTS];
    plain.method = DPI_METHOD_PLAIN;
    plain.top_k = K;
    plain.random = dpi_random_insecure, plain.random_user = &state;
    dpi_sampler *sampler = open_sampler(&plain);
    assert_ok(dpi_sampler_begin(sampler, ERR));
    for (int i = 0; i < N_TEXTS; i++) {
        public_logits[i] = malloc(T * (size_t)n_vocab * sizeof(float));
        s[i] = open_session(model, NULL, 1, 256);
        assert_ok(dpi_session_prefill(s[i], 0, public_tokens, n_public, NULL, ERR));
    }
    for (int k = 0; k < T * N_TEXTS; k++) {
        const int i = k % N_TEXTS;
        if (ended[i])
            continue;
        if (k >= N_TEXTS)
            assert_ok(dpi_session_step(s[i], 1, &seq, &last[i], ERR));
        const float *logits = dpi_session_logits(s[i], 0);
        shares_of(logits, steps[n_steps].p);
        steps[n_steps++].text = i;
        memcpy(public_logits[i] + (size_t)lengths[i]++ * (size_t)n_vocab, logits,
               (size_t)n_vocab * sizeof *logits);
        assert_ok(dpi_sampler_step(sampler, logits, NULL, &last[i], ERR));
        ended[i] = dpi_token_is_eog(model, last[i]);
    }
    for (int k = 0; k < n_steps; k++) {
        const int i = steps[k].text;
        steps[k].weight = (ended[i] ? 1 : (double)T / lengths[i]) / N_TEXTS;
    }
    for (int i = 0; i < N_TEXTS; i++)
        dpi_session_free(s[i]);
    dpi_sampler_free(sampler);
}

/* Steps with top <= theta of a text, on average, and in *rest their sum of 1 - top. */
static double average(double theta, double *rest) {
    double n = *rest = 0;
    for (const struct step *s = steps; s < steps + n_steps; s++)
        if (s->p[0] <= theta) {
            n += s->weight;
            *rest += s->weight * (1 - s->p[0]);
        }
    return n;
}

/* The quota of a theta, and its clip bound by a plan. */
static int32_t quota_of(double theta) {
    double rest;
    return (int32_t)fmax(1, fmin(ceil(average(theta, &rest)), T));
}

static double swing_of(dpi_sampler_options o, int32_t quota) {
    dpi_sampler_plan plan;
    o.pace = DPI_PACE_TOP, o.pace_theta = .5, o.pace_tokens = quota;
    dpi_sampler_plan_init(&plan);
    assert_ok(dpi_sampler_plan_make(&o, &plan, ERR));
    return plan.clip / o.tau;
}

/* What references that agree on a token move at the private steps: over tokens that they want with
 * weights p^.2, with C of T_p. A weak budget is as one that moves log weights by 1.5. */
static double moved(double theta, const dpi_sampler_options *o) {
    const double swing = swing_of(*o, quota_of(theta)) * fmax(1, 1.5 / swing_of(*o, quota_of(.5)));
    double sum = 0;
    for (const struct step *s = steps; s < steps + n_steps; s++) {
        double wanted = 0, gain = 0;
        for (int k = 0; s->p[0] <= theta && k < K + TIES; k++) {
            const double p = s->p[k], likelier = p * exp(2 * swing);
            wanted += pow(p, .2);
            gain += pow(p, .2) * (likelier / (likelier + 1 - p) - p);
        }
        sum += wanted > 0 ? gain / wanted * s->weight : 0;
    }
    return sum;
}

/* No other theta of the grid moves much more, and a smaller one moves less than 95 % of the most. A
 * larger budget has no smaller theta. */
TEST(test_theta_by_hand) {
    const double budgets[] = {1e-4, .01, 3, 30};
    double thetas[4];
    for (int b = 0; b < 4; b++) {
        dpi_sampler_options o = method_of(DPI_PACE_AUTO);
        o.rho = budgets[b];
        o = found(o);
        assert_int_equal(o.pace, DPI_PACE_TOP);
        assert_int_equal(o.pace_tokens, quota_of(o.pace_theta));
        const double of_found = moved(o.pace_theta, &o);
        double most = 0;
        for (int i = 10; i <= 19; i++) {
            assert_true(.95 * moved(.05 * i, &o) <= of_found * 1.01);
            most = fmax(most, moved(.05 * i, &o));
        }
        for (int i = 10; .05 * i < o.pace_theta - .01; i++)
            assert_true(moved(.05 * i, &o) < .96 * most);
        thetas[b] = o.pace_theta;
    }
    assert_true(fabs(thetas[0] - thetas[1]) < 1e-9 && thetas[1] <= thetas[2]);
    assert_true(thetas[2] < thetas[3] && thetas[3] > .7);
}

/* The steps of public texts that references could change by theta are T_p on average, whatever the
 * budget is: where all unsure steps could change alike, these are all private. */
TEST(test_change_by_hand) {
    const double budgets[] = {.01, 1, 10, 100};
    for (int b = 0; b < 4; b++) {
        dpi_sampler_options o = method_of(DPI_PACE_CHANGE);
        double n = 0;
        o.rho = budgets[b];
        o = found(o);
        const double swing = swing_of(o, o.pace_tokens);
        for (const struct step *s = steps; s < steps + n_steps; s++)
            n += dpi_pace_change(s->p[0], swing) >= o.pace_theta ? s->weight : 0;
        assert_true(n > .7 * o.pace_tokens && n <= o.pace_tokens + 1e-9);
    }
}

TEST(test_against_texts_by_hand) {
    double rest;
    dpi_sampler_options o = found(method_of(DPI_PACE_SHARE));
    average(1, &rest);
    assert_int_equal(o.free_top_k, DPI_PACE_FREE_TOP_K);
    assert_true(rest > 1 && fabs(o.pace_share - rest) <= .11);
    for (int32_t pace = 0; pace < 2; pace++) {
        o = method_of(pace ? DPI_PACE_TOP : DPI_PACE_SHARE);
        o.pace_theta = .7;
        o = found(o);
        const double n = average(.7, &rest);
        assert_true(o.pace_theta == .7);
        assert_true(pace ? o.pace_tokens >= n && o.pace_tokens < n + 1 + 1e-9
                         : fabs(o.pace_share - rest) <= .11);
    }
}

#define OWN_PACE_TEXTS __attribute__((cleanup(free_texts))) dpi_pace_texts
static void free_texts(dpi_pace_texts **texts) { dpi_pace_texts_free(*texts); }

/* The texts that a pace was found from. */
static dpi_pace_texts *texts_of(dpi_sampler_options o) {
    dpi_pace_search search;
    dpi_pace_texts *texts = NULL;
    dpi_pace_search_init(&search);
    search.session = open_session(model, NULL, N_TEXTS, 256);
    search.public_tokens = public_tokens, search.n_public = n_public;
    search.n_texts = N_TEXTS, search.texts = &texts;
    assert_ok(dpi_pace_find(&search, &o, ERR));
    dpi_session_free(search.session);
    return texts;
}

TEST(test_what_texts_are) {
    OWN_PACE_TEXTS *texts = texts_of(method_of(DPI_PACE_TOP));
    dpi_public_texts told;
    int32_t n_ended = 0, n_longest = 0, sum = 0;
    for (int i = 0; i < N_TEXTS; i++) {
        n_ended += ended[i], sum += lengths[i];
        n_longest = lengths[i] > n_longest ? lengths[i] : n_longest;
    }
    dpi_pace_texts_tell(texts, &told);
    assert_int_equal(told.n_texts, N_TEXTS);
    assert_int_equal(told.n_ended, n_ended);
    assert_int_equal(told.n_longest, n_longest);
    assert_int_equal(told.n_mean, (sum + N_TEXTS - 1) / N_TEXTS);
    assert_int_equal(told.are_same, 0);
    dpi_sampler_options sure = method_of(DPI_PACE_TOP);
    sure.top_k = 1; /* one token at each step */
    OWN_PACE_TEXTS *same = texts_of(sure);
    dpi_pace_texts_tell(same, &told);
    assert_int_equal(told.are_same, 1);
    dpi_pace_texts_tell(NULL, &told);
    assert_true(told.n_texts == 0 && told.are_same == 0);
    assert_null(texts_of(method_of(DPI_PACE_NONE))); /* none were drawn */
}

/* Texts by logits: of `first` tokens and of `second`, which the model has ended where it is set. */
static int32_t enough_of(int32_t first, int32_t second, int32_t is_ended) {
    const dpi_sampler_options o = method_of(DPI_PACE_TOP);
    OWN_PACE_TEXTS *texts = NULL;
    dpi_public_texts told;
    assert_ok(dpi_pace_texts_create(&o, &texts, ERR));
    assert_ok(dpi_pace_texts_add(texts, public_logits[0], first, 1, ERR));
    assert_ok(dpi_pace_texts_add(texts, public_logits[0], second, is_ended, ERR));
    dpi_pace_texts_tell(texts, &told);
    assert_int_equal(told.are_same, 0); /* what they say is not known */
    return told.n_enough;
}

TEST(test_enough_tokens) {
    assert_int_equal(enough_of(5, 5, 1), 8);  /* 7 */
    assert_int_equal(enough_of(5, 6, 1), 16); /* 9 */
    assert_int_equal(enough_of(21, 3, 1), 32);
    assert_int_equal(enough_of(22, 3, 1), 0); /* 40 is no quarter less than 48 */
    assert_int_equal(enough_of(5, 5, 0), 0);
}

/* Of the first tokens of the texts comes the pace of shorter ones, bit for bit. */
TEST(test_pace_of_another_setting) {
    const int32_t paces[] = {DPI_PACE_AUTO, DPI_PACE_TOP, DPI_PACE_CHANGE, DPI_PACE_SHARE};
    for (size_t k = 0; k < sizeof paces / sizeof *paces; k++) {
        OWN_PACE_TEXTS *texts = texts_of(method_of(paces[k]));
        for (int32_t n = T; n > 4; n -= 11) {
            dpi_sampler_options other = method_of(DPI_PACE_NONE);
            dpi_sampler_options shorter = method_of(paces[k]);
            other.n_tokens = shorter.n_tokens = n;
            other.n_ref = other.denominator = shorter.n_ref = shorter.denominator = n;
            shorter = found(shorter);
            assert_ok(dpi_pace_texts_settle_other(texts, &other, ERR));
            assert_memory_equal(&other, &shorter, sizeof other);
        }
        dpi_sampler_options longer = method_of(paces[k]);
        longer.n_tokens = T + 1;
        assert_error(dpi_pace_texts_settle_other(texts, &longer, ERR), ARG, "must be 1..48");
    }
}

/* From the logits of the same texts comes the same pace, bit for bit. */
TEST(test_logits_of_another_engine) {
    const int32_t paces[] = {DPI_PACE_AUTO, DPI_PACE_TOP, DPI_PACE_CHANGE, DPI_PACE_SHARE};
    for (size_t k = 0; k < sizeof paces / sizeof *paces; k++) {
        dpi_sampler_options o = method_of(paces[k]);
        const dpi_sampler_options by_session = found(o);
        OWN_PACE_TEXTS *texts = NULL;
        assert_ok(dpi_pace_texts_create(&o, &texts, ERR));
        assert_error(dpi_pace_texts_settle(texts, &o, ERR), ARG, "public texts: found none");
        public_logits[0][5] = NAN; /* such a text leaves nothing behind */
        const float kept = public_logits[1][5];
        assert_error(dpi_pace_texts_add(texts, public_logits[0], lengths[0], 0, ERR), NUMERIC, "");
        public_logits[0][5] = kept; /* the first tokens are drawn from the same logits */
        for (int i = 0; i < N_TEXTS; i++)
            assert_ok(dpi_pace_texts_add(texts, public_logits[i], lengths[i], ended[i], ERR));
        assert_ok(dpi_pace_texts_settle(texts, &o, ERR));
        assert_memory_equal(&o, &by_session, sizeof o);
    }
}

TEST(test_texts_that_cannot_be) {
    const dpi_sampler_options o = method_of(DPI_PACE_AUTO), none = method_of(DPI_PACE_NONE);
    OWN_PACE_TEXTS *texts = NULL, *closed = NULL;
    assert_ok(dpi_pace_texts_create(&o, &texts, ERR));
    assert_error(dpi_pace_texts_add(texts, public_logits[0], 0, 0, ERR), ARG, "n_tokens is 0");
    assert_error(dpi_pace_texts_add(texts, public_logits[0], T + 1, 0, ERR), ARG, "must be 1..48");
    assert_error(dpi_pace_texts_add(texts, public_logits[0], 1, 2, ERR), ARG, "ended is 2");
    for (int i = 0; i < DPI_PACE_TEXTS_MAX; i++)
        assert_ok(dpi_pace_texts_add(texts, public_logits[0], 1, 1, ERR));
    assert_error(dpi_pace_texts_add(texts, public_logits[0], 1, 1, ERR), LIMIT, "allowed 64");
    assert_ok(dpi_pace_texts_create(&none, &closed, ERR));
    assert_error(dpi_pace_texts_add(closed, public_logits[0], 1, 1, ERR), ARG, "is not open");
}

/* Nothing is open, and nothing is drawn: what comes of it. */
static dpi_sampler_options not_open(dpi_sampler_options o) {
    assert_int_equal(dpi_pace_is_open(&o), 0);
    assert_ok(dpi_pace_find(NULL, &o, ERR));
    return o;
}

TEST(test_what_is_given_stays) {
    dpi_sampler_options o = method_of(DPI_PACE_AUTO);
    o.rho = 0, o.epsilon = 3, o.delta = 1e-5;
    o.accountant = DPI_ACCOUNTANT_BR;
    o.free_top_k = 9;
    assert_int_equal(dpi_pace_is_open(&o), 1);
    o = found(o);
    assert_true(o.pace == DPI_PACE_TOP && o.free_top_k == 9);
    assert_true(o.pace_theta > 0 && o.pace_tokens > 0);
    const dpi_sampler_options same = not_open(o);
    assert_memory_equal(&same, &o, sizeof o);

    o = found(method_of(DPI_PACE_CHANGE));
    assert_true(o.pace_theta > 0 && o.pace_theta < 1 && o.pace_tokens > 0);
    const int32_t quota = o.pace_tokens;
    o.pace_tokens = 0; /* the same quota from that theta, or one close to it */
    assert_true(abs(found(o).pace_tokens - quota) <= 2);

    assert_int_equal(not_open(method_of(DPI_PACE_NONE)).pace, DPI_PACE_NONE);
    o = method_of(DPI_PACE_AUTO);
    o.method = DPI_METHOD_ADAPMIXED; /* it has no pace */
    assert_int_equal(not_open(o).pace, DPI_PACE_NONE);
}

/* amin: its quota is n_private; a sparse vector needs no pace. A quota that is given says top. */
TEST(test_kinds) {
    dpi_sampler_options o = method_of(DPI_PACE_AUTO);
    o.method = DPI_METHOD_AMIN;
    o.rho = 50;
    assert_int_equal(dpi_pace_is_open(&o), 1);
    o = found(o);
    assert_true(o.pace == DPI_PACE_TOP && o.pace_theta > 0 && o.pace_tokens == 0);
    assert_in_range(o.n_private, 1, T - 1);
    o = method_of(DPI_PACE_AUTO);
    o.method = DPI_METHOD_AMIN;
    o.svt_sigma = 2, o.svt_threshold = .3;
    o = not_open(o);
    assert_true(o.pace == DPI_PACE_NONE && o.n_private == 0);
    o = method_of(DPI_PACE_AUTO);
    o.pace_tokens = 7;
    o = found(o);
    assert_true(o.pace == DPI_PACE_TOP && o.pace_tokens == 7 && o.pace_theta > 0);
    o = method_of(DPI_PACE_AUTO);
    o.pace_share = 7;
    assert_int_equal(dpi_pace_is_open(&o), 0);
    o = found(o);
    assert_true(o.pace == DPI_PACE_SHARE && o.pace_share == 7 && o.pace_theta == 0);
}

/* ---- Releases -------------------------------------------------------------------------------- */

static dpi_release *open_release(const char *record, const dpi_grammar *grammar,
                                 const dpi_wording *wording) {
    const char *texts[8] = {record, record, record, record, record, record, record, record};
    dpi_records *records = records_of(texts, 8);
    dpi_release *release = NULL;
    dpi_release_options o;
    dpi_release_options_init(&o);
    o.model = model, o.records = records, o.grammar = grammar, o.wording = wording;
    o.n_tokens = T;
    o.method.rho = 1;
    o.prompts.public_prompt = (dpi_bytes){task, strlen(task)};
    assert_ok(dpi_release_open(&o, &release, ERR));
    dpi_records_close(records); /* open looks at their number alone */
    return release;
}

TEST(test_records_change_nothing) {
    dpi_release *a = open_release("x", NULL, NULL),
                *b = open_release("A much longer and very different one.", NULL, NULL);
    assert_memory_equal(dpi_release_run(a), dpi_release_run(b), sizeof(dpi_run));
    assert_true(dpi_release_run(a)->pace_texts >= 2);
    assert_true(dpi_release_run(a)->method.pace_tokens > 0);
    dpi_release_free(a);
    dpi_release_free(b);
}

/* The texts are of the form that those of the run have: a text of it has 14 tokens at most, and all
 * but the pieces of a word is forced, and free. */
TEST(test_grammar) {
    static const char text[] =
        "root ::= \"Subject: \" (\"printer\" | \"router\" | \"invoice\") \"\\n\"";
    dpi_grammar *grammar = NULL;
    assert_ok(dpi_grammar_parse(text, sizeof text - 1, &grammar, ERR));
    dpi_release *release = open_release("x", grammar, NULL),
                *any = open_release("x", NULL, NULL);
    assert_in_range(dpi_release_run(release)->method.pace_tokens, 1, 8);
    assert_true(dpi_release_run(any)->method.pace_tokens > 8);
    dpi_release_free(release);
    dpi_release_free(any);
    dpi_grammar_free(grammar);
}

/* Nor do they go on where those of the run end. */
TEST(test_wording) {
    dpi_wording w;
    dpi_wording_init(&w);
    w.max_words = 2;
    dpi_release *release = open_release("x", NULL, &w);
    assert_in_range(dpi_release_run(release)->method.pace_tokens, 1, 8);
    dpi_release_free(release);
}

TEST(test_statement_and_report) {
    dpi_release *release = open_release("x", NULL, NULL);
    const dpi_run *claim = dpi_release_run(release);
    dpi_report *report = NULL, *read = NULL;
    dpi_verification v = {.struct_size = sizeof v};
    char *statement, *text;
    size_t n;
    assert_ok(dpi_run_statement(claim, 1, &statement, ERR));
    assert_non_null(strstr(statement, "texts of the public prompt, which cost nothing"));
    assert_ok(dpi_report_create(claim, model, DPI_BUILTIN_MODEL, &report, ERR));
    assert_ok(dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n, ERR));
    assert_non_null(strstr(text, "before a record was read"));
    assert_ok(dpi_report_parse("r", text, n, &read, ERR));
    assert_ok(dpi_report_verify(read, NULL, NULL, &v, ERR));
    assert_int_equal(v.n_wrong, 0);
    dpi_verification_free(&v);
    free(statement), free(text);
    dpi_report_free(read);
    dpi_report_free(report);
    dpi_release_free(release);
}

SETUP {
    dpi_model_info info;
    dpi_model_info_init(&info);
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, ERR));
    assert_ok(dpi_model_info_get(model, &info, ERR));
    n_vocab = info.n_vocab;
    assert_ok(dpi_prompt_encode(model, DPI_CHAT_AUTO, NULL, 0, task, strlen(task), public_tokens,
                                256, &n_public, ERR));
    draw_by_hand();
}

TEARDOWN {
    for (int i = 0; i < N_TEXTS; i++)
        free(public_logits[i]);
    dpi_model_close(model);
}
