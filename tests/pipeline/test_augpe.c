/* Private evolution: what is settled, written, voted for, charged and reported. */
#include "pipeline/augpe/augpe.h"

#include <ctype.h>
#include <math.h>

#include "dp/exact/votes.h"
#include "dp/mechanism/noisy_votes.h"
#include "tests/pipeline/people.h"

OWNED(dpi_augpe, dpi_augpe_free)
OWNED(dpi_grammar, dpi_grammar_free)

static dpi_augpe_options options_of(const dpi_records *records) {
    DEFAULTS(dpi_augpe_options, o);
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
    assert_ok(dpi_augpe_open(o, &f, ERR));
    return f;
}

/* Goes on to an event of this type. */
static void run_until(dpi_augpe *f, int32_t type) {
    dpi_augpe_event e = {0};
    do
        assert_ok(dpi_augpe_advance(f, &e, ERR));
    while (e.type != type);
}

static void run(dpi_augpe *f) { run_until(f, DPI_AUGPE_NONE); }

/* The first round, and then new candidates of a text in place of what was chosen. */
static void write_from(dpi_augpe *f, const char *const texts[3]) {
    dpi_augpe_event e;
    run_until(f, DPI_AUGPE_ROUND);
    for (int32_t i = 0; i < 3; i++) {
        dpi_augpe_empty(&f->chosen[i]);
        dpi_text_put(&f->chosen[i], texts[i], strlen(texts[i]));
    }
    while (f->phase == DPI_PHASE_WRITE)
        assert_ok(dpi_augpe_advance(f, &e, ERR));
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
TEST(test_settle) {
    dpi_claim c;
    dpi_claim_part *p = NULL;
    double *v = NULL;
    for (int32_t rounds = 1; rounds < 40; rounds += 3) {
        dpi_claim_init(&c);
        c.delta = 1e-6, c.n_units = 1000, c.adjacency = DPI_ADJACENCY_ADD_REMOVE;
        p = dpi_claim_add(&c, "votes");
        v = p->values;
        p->n_runs = rounds;
        v[DPI_VOTES_EPSILON] = 1, v[DPI_VOTES_TEXTS] = 10, v[DPI_VOTES_TOKENS] = 1;
        assert_ok(dpi_claim_settle(&c, ERR));
        /* R 16^2 / (2 s) */
        const long double rho = rounds * 32768.L / (long double)p->results[DPI_VOTES_VARIANCE];
        assert_true((long double)c.rho >= rho);
        assert_true(c.rho <= .0243561 && rho > .0243560 * .99);
        assert_true(c.epsilon <= 1 && c.epsilon > .99);
    }
    const dpi_claim good = c;
    v[DPI_VOTES_EPSILON] = 1e6; /* the least noise, which costs less */
    assert_ok(dpi_claim_settle(&c, ERR));
    assert_true(p->results[DPI_VOTES_VARIANCE] == 16 && c.rho >= 37 * 2048. && c.epsilon < 1e6);
#define REFUSES(change, part) c = good, change, assert_error(dpi_claim_settle(&c, ERR), ARG, part)
    REFUSES(c.n_units = 0, "units");
    REFUSES(c.delta = 2e-3, "delta");
    REFUSES(v[DPI_VOTES_RHO] = 1, "epsilon");
    REFUSES(v[DPI_VOTES_EPSILON] = .001, "rho");
    REFUSES(c.adjacency = DPI_ADJACENCY_ZERO_OUT, "adjacency");
    REFUSES(v[DPI_VOTES_CANDIDATES] = 1, "n_candidates");
    REFUSES(v[DPI_VOTES_THRESHOLD] = NAN, "threshold");
    REFUSES(v[DPI_VOTES_CHANGE] = 0, "change");
}

static void assert_not_opened(const dpi_augpe_options *o, const char *part) {
    dpi_augpe *f = NULL;
    assert_error(dpi_augpe_open(o, &f, ERR), ARG, part);
    assert_null(f);
}

/* With add-remove nothing of what is said follows from how many records there are. */
TEST(test_secret_number) {
    for (int32_t adjacency = DPI_ADJACENCY_REPLACE_BY_NULL; adjacency <= DPI_ADJACENCY_ADD_REMOVE;
         adjacency++) {
        char *json[2];
        for (int k = 0; k < 2; k++) {
            OWN(dpi_records) records = read_records(
                "number.csv", k ? "text\none\ntwo\nmore\n" : "text\none\ntwo\n", NULL);
            dpi_augpe_options o = options_of(records);
            o.adjacency = adjacency, o.n_units = 100;
            dpi_augpe *f = open_augpe(&o);
            assert_ok(dpi_claim_write(dpi_augpe_claim_of(f), &json[k], ERR));
            dpi_augpe_free(f);
        }
        assert_int_equal(strcmp(json[0], json[1]) == 0, adjacency == DPI_ADJACENCY_ADD_REMOVE);
        free(json[0]), free(json[1]);
    }
}

TEST(test_options) {
    dpi_augpe_options o;
#define REFUSES_OPTION(change, part) o = options_of(by_record), change, assert_not_opened(&o, part)
    REFUSES_OPTION((o.prompts.query = (dpi_bytes){"who?", 4}), "query");
    REFUSES_OPTION(o.n_parallel = 0, "n_parallel");
    REFUSES_OPTION(o.n_tokens = 1 << 20, "n_tokens");
    REFUSES_OPTION((o.variation_prompt = (dpi_bytes){"nothing", 7}), "{reference}");
    o.variation = DPI_AUGPE_CONTINUE, o.variation_prompt = (dpi_bytes){"{reference}", 11};
    assert_not_opened(&o, "variation");
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Each way to choose and to vary; the same texts with a seed, however many are written at a time,
 * and others with another seed. */
TEST(test_texts) {
    for (int way = 0; way < 6; way++) {
        uint64_t hash[3];
        for (int i = 0; i < 3; i++) {
            dpi_augpe_options o = options_of(by_person);
            o.variation = way % 3, o.selection = way / 3;
            o.n_candidates = way < 3 ? 3 : 1 + way % 2, o.n_lookahead = way % 2 ? 2 : 0;
            o.n_parallel = i == 1 ? 1 : 5, o.seed += i == 2;
            OWN(dpi_augpe) f = open_augpe(&o);
            const char *text = "x";
            size_t n;
            dpi_augpe_text(f, 0, &text, &n);
            assert_null(text); /* nothing is released yet */
            run(f);
            hash[i] = hash_texts(f);
            dpi_augpe_text(f, 3, &text, &n);
            assert_null(text);
        }
        assert_true(hash[0] == hash[1]);
        assert_true(hash[0] != hash[2]);
    }
}

static dpi_status write_nothing(void *user, const dpi_bytes *prompts, int32_t n, char **texts,
                                dpi_error *err) {
    (void)user, (void)prompts, (void)n, (void)texts, (void)err;
    return DPI_STATUS_OK;
}

/* CONTINUE leaves a beginning as it is, and a text has no more tokens than it may have. */
TEST(test_continue) {
    static const char text[] = "alpha beta gamma delta epsilon zeta eta theta";
    dpi_augpe_options o = options_of(by_record);
    o.variation = DPI_AUGPE_CONTINUE, o.change = .2, o.n_tokens = 60;
    OWN(dpi_augpe) f = open_augpe(&o);
    int n_whole = 0;
    write_from(f, (const char *const[]){text, text, text});
    for (int32_t i = dpi_augpe_first_new(f); i < f->n_all; i++) {
        const dpi_text *to = &f->candidates[i];
        assert_true(to->n_bytes > 22 && memcmp(to->data, "alpha beta gamma delta", 22) == 0);
        n_whole += to->n_bytes >= sizeof text - 1 && memcmp(to->data, text, sizeof text - 1) == 0;
    }
    assert_true(n_whole < f->n_all - dpi_augpe_first_new(f));
}

/* Whatever is varied, candidates are texts of the grammar, as 30 tokens are enough for it. CONTINUE
 * keeps a beginning, and the rest follows the grammar from there on, whether or not the tokens of
 * the beginning are those that would be drawn; a beginning that no text of it has does not stay. */
TEST(test_grammar) {
    static const char form[] = "root ::= [ab]{2,4} \" \" [0-9]{3} \" end\"";
    OWN(dpi_grammar) grammar = NULL;
    dpi_augpe_options o = options_of(by_record);
    assert_ok(dpi_grammar_parse(form, sizeof form - 1, &grammar, ERR));
    o.grammar = grammar, o.n_tokens = 30, o.change = .3;
    for (o.variation = 0; o.variation <= DPI_AUGPE_CONTINUE; o.variation++) {
        o.top_k = o.variation == DPI_AUGPE_CONTINUE ? 1 : o.top_k;
        OWN(dpi_augpe) f = open_augpe(&o);
        int n_kept = 0;
        write_from(f, (const char *const[]){"abab 555 end", "abab 555 end",
                                            "abab \xff"
                                            "55 end"});
        for (int32_t i = 0; i < f->n_all; i++) {
            const dpi_text *to = &f->candidates[i];
            int32_t accepts;
            assert_ok(dpi_grammar_accepts(grammar, to->data, to->n_bytes, &accepts, ERR));
            if (!accepts)
                fail_msg("variation %d: found '%s'", o.variation, to->data);
            n_kept += i >= dpi_augpe_first_new(f) && memcmp(to->data, "abab", 4) == 0;
        }
        assert_true(o.variation != DPI_AUGPE_CONTINUE || n_kept > 2);
        assert_int_equal(strlen(f->claim.grammar), 16);
    }
    o.variation = DPI_AUGPE_ANOTHER, o.write = write_nothing;
    assert_not_opened(&o, "grammar: found one with write");
}

static bool has(const dpi_text *text, const char *part) {
    for (size_t i = 0; i + strlen(part) <= text->n_bytes; i++)
        if (memcmp(text->data + i, part, strlen(part)) == 0)
            return true;
    return false;
}

static int words_of(const dpi_text *text) {
    int n = 0;
    for (size_t i = 0; i < text->n_bytes; i++)
        n += !isspace((unsigned char)text->data[i]) &&
             (i == 0 || isspace((unsigned char)text->data[i - 1]));
    return n;
}

/* Whatever is varied, candidates are worded: what CONTINUE keeps is part of the text, and the
 * answer is not. */
TEST(test_wording) {
    const dpi_bytes stop = {"t", 1}, ban = {"s", 1};
    const dpi_token_bias space = {.token = dpi_token_find(model, " ", 1), .bias = 7};
    dpi_wording w;
    dpi_wording_init(&w);
    w.answer = (dpi_bytes){"Text:", 5};
    w.stops = &stop, w.n_stops = 1, w.bans = &ban, w.n_bans = 1, w.max_words = 4;
    w.biases = &space, w.n_biases = 1;
    int n_last = 0, n_kept = 0;
    for (int32_t way = 0; way <= DPI_AUGPE_CONTINUE; way++) {
        dpi_augpe_options o = options_of(by_record);
        o.variation = way, o.wording = &w, o.n_tokens = 60, o.change = .2;
        OWN(dpi_augpe) f = open_augpe(&o);
        write_from(f, (const char *const[]){"alpha hi ah", "alpha hi ah", "alpha hi ah"});
        for (int32_t i = 0; i < f->n_all; i++) {
            const dpi_text *to = &f->candidates[i];
            assert_false(has(to, "t") || has(to, "s") || has(to, "Text:"));
            assert_in_range(words_of(to), 0, 4);
            n_last += words_of(to) == 4;
            n_kept += i >= dpi_augpe_first_new(f) && to->n_bytes > 4 &&
                      memcmp(to->data, "alpha", 5) == 0;
        }
        assert_int_equal(strlen(f->claim.wording), 64);
    }
    assert_true(n_last > 0 && n_kept > 3);
}

/* A description makes a list of texts in quotes, as in a run; with an answer of its own it does
 * not. */
TEST(test_described) {
    const dpi_bytes quote = {"\"", 1};
    dpi_augpe_options o = options_of(by_record);
    o.prompts.public_prompt = (dpi_bytes){NULL, 0};
    o.prompts.description = (dpi_bytes){"letter", 6};
    OWN(dpi_augpe) f = open_augpe(&o);
    const dpi_wording *w = dpi_augpe_wording(f);
    assert_true(w->n_stops == 1 && w->stops[0].n_bytes == 1 && w->stops[0].data[0] == '"');
    assert_true(w->answer.n_bytes == 2 && !w->ban_refusals); /* the model does not chat */
    run_until(f, DPI_AUGPE_LOOKING);
    for (int32_t i = 0; i < f->n_all; i++)
        assert_false(has(&f->candidates[i], "\""));
    dpi_wording own;
    dpi_wording_init(&own);
    own.answer = (dpi_bytes){"Text:", 5}, own.stops = &quote, own.n_stops = 1;
    o.wording = &own;
    OWN(dpi_augpe) g = open_augpe(&o);
    assert_true(dpi_augpe_wording(g)->n_stops == 1 && dpi_augpe_wording(g)->answer.n_bytes == 5);
    assert_string_not_equal(f->claim.wording, g->claim.wording);
    own.keep_answer = 1;
    assert_not_opened(&o, "keep_answer: found 1");
    own.keep_answer = 0, own.answer = (dpi_bytes){"{label}", 7};
    assert_not_opened(&o, "label: found {label}");
    own.answer = (dpi_bytes){"Text:", 5}, o.write = write_nothing;
    assert_not_opened(&o, "wording: found one with write");
    o.wording = NULL; /* a server has no tokens to hold to it */
    OWN(dpi_augpe) h = open_augpe(&o);
    assert_null(dpi_augpe_wording(h));
    assert_string_equal(h->claim.wording, "");
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
TEST(test_elsewhere) {
    for (int fails_at = 0; fails_at < 3; fails_at++) {
        elsewhere user = {.fails_at = fails_at};
        dpi_augpe_options o = options_of(by_record);
        o.write = write_text, o.write_user = &user, o.n_parallel = 4;
        o.variation_prompt = (dpi_bytes){"like {reference}!", 17};
        OWN(dpi_augpe) f = open_augpe(&o);
        dpi_augpe_event e = {0};
        dpi_status status = DPI_STATUS_OK;
        while (e.type != DPI_AUGPE_NONE && status == DPI_STATUS_OK)
            status = dpi_augpe_advance(f, &e, ERR);
        assert_int_equal(status, fails_at ? DPI_STATUS_IO : DPI_STATUS_OK);
        if (fails_at)
            assert_error(dpi_augpe_advance(f, &e, ERR), STATE, "failed before");
        else
            assert_true(user.n_public == 9 && user.n_varied == 12);
        assert_int_equal((int)dpi_claim_value(dpi_augpe_claim_of(f)->parts, "remote"), 1);
    }
}

/* ---- Records and charges --------------------------------------------------------------------- */

/* Which records have features: x. Records 0 to 2 are a's, 3 and 5 b's, 4 nobody's, 6 is c's. */
static void assert_features(const dpi_augpe *f, const char *wanted) {
    for (size_t i = 0; i < 7; i++)
        if (wanted[i] != '?')
            assert_int_equal(isfinite(f->records[i * (size_t)f->n_embd]) != 0, wanted[i] == 'x');
}

/* A unit that cannot pay votes nothing, in silence; one without an ID is null. */
TEST(test_units_pay) {
    static const char *const spent[] = {"a", "b", "c"}, *const read[] = {"...x.xx", "x.....x",
                                                                         "x..x.x."};
    for (int i = 0; i < 3; i++) {
        const void *const ids[] = {spent[i]};
        const size_t n_bytes[] = {1};
        uint8_t paid = 0;
        const dpi_ledger_units units = {.n = 1, .ids = ids, .n_bytes = n_bytes, .pays = &paid};
        OWN(dpi_ledger) ledger = open_ledger(10, 1e-4, DPI_SCOPE_UNIT);
        dpi_augpe_options o = options_of(by_person);
        DEFAULTS(dpi_charge_request, request);
        DEFAULTS(dpi_cost, cost);
        assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, 1.5, 0, ERR));
        request.cost = &cost, request.method = "outside", request.units = &units;
        assert_ok(dpi_ledger_reserve(ledger, "people", &request, NULL, ERR));
        o.seeded = 0, o.ledger = ledger, o.dataset = "people", o.max_per_unit = 2;
        OWN(dpi_augpe) f = open_augpe(&o);
        run(f);
        assert_features(f, read[i]);
        assert_true(f->claim.ledger.charge > 0 && f->claim.ledger.scope == DPI_SCOPE_UNIT);
    }
}

/* Null records, and those beyond M, have no features; candidates without any are left out. */
TEST(test_null_records) {
    dpi_augpe_options o = options_of(by_person);
    int64_t sum = 0;
    o.max_per_unit = 2;
    OWN(dpi_augpe) f = open_augpe(&o);
    run(f);
    assert_features(f, "x..x?xx"); /* of nobody: see below */
    assert_ok(dpi_augpe_count(f, ERR));
    for (int32_t i = 0; i < f->n_all; i++)
        sum += f->votes[i];
    assert_true(sum >= 3 * 16 && sum <= 3 * 16 + 6); /* 16, or 11 and 11, of a, b and c */
    memset(f->usable, 0, (size_t)f->n_all);
    assert_ok(dpi_augpe_count(f, ERR));
    for (int32_t i = 0; i < f->n_all; i++)
        assert_int_equal(f->votes[i], 0);
}

/* Memory that is missing at any place is an error, and nothing is lost or left. */
TEST(test_memory) {
    dpi_augpe_options o = options_of(by_person);
    o.n_texts = 1, o.n_candidates = 2, o.n_rounds = 2, o.n_tokens = 2, o.n_lookahead = 1;
    o.variation = DPI_AUGPE_BLANKS;
    dpi_status status = DPI_STATUS_MEMORY;
    for (int64_t n = 1; status == DPI_STATUS_MEMORY; n += 1 + n / 40) {
        OWN(dpi_augpe) f = NULL;
        dpi_augpe_event e = {0};
        fail_allocation(n);
        status = dpi_augpe_open(&o, &f, ERR);
        while (status == DPI_STATUS_OK && e.type != DPI_AUGPE_NONE)
            status = dpi_augpe_advance(f, &e, ERR);
        fail_allocation(0);
    }
    assert_int_equal(status, DPI_STATUS_OK);
}
