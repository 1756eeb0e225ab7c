/* Steering vectors, from records to the file: what is settled, charged, added, drawn, written. */
#include <jansson.h>
#include <math.h>

#include "base/mem.h"
#include "dp/exact/gradient.h"
#include "dp/mechanism/steering.h"
#include "dpinfer/drawing.h"
#include "dpinfer/finetune.h"
#include "dpinfer/gaussian.h"
#include "dpinfer/report.h"
#include "tests/pipeline/steering.h"

/* ---- What is settled ------------------------------------------------------------------------- */

TEST(test_settled) {
    dpi_steer_options o = say_options(by_record);
    DEFAULTS(dpi_gaussian, g);
    double epsilon;
    o.seeded = 0, o.sigma = 0, o.epsilon = 2;
    OWN(dpi_steer) s = open_steer(&o);
    const dpi_claim *c = dpi_steer_claim(s);
    g.sigma = dpi_claim_value(&c->parts[0], "sigma");
    assert_ok(dpi_gaussian_epsilon(&g, 1e-3, &epsilon, ERR));
    assert_true(c->epsilon == epsilon && epsilon <= 2 && epsilon > 1.999);
    assert_true(dpi_claim_is_private(c) && c->n_units == 7);
    o.epsilon = INFINITY;
    OWN(dpi_steer) infinite = open_steer(&o);
    assert_false(dpi_claim_is_private(dpi_steer_claim(infinite)));
    o.epsilon = 1, o.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.n_units = 100;
    OWN(dpi_steer) secret = open_steer(&o);
    assert_int_equal(dpi_steer_claim(secret)->n_units, 100);
}

TEST(test_refused) {
    dpi_steer_options o;
    dpi_steer *s = NULL;
    static const int32_t wrong[][2] = {{0, 1}, {1, 1}, {1, 2}};
#define REFUSES(change, part)                                                                      \
    o = say_options(by_record), change, assert_error(dpi_steer_open(&o, &s, ERR), ARG, part)
    REFUSES(o.delta = .2, "delta: found 0.2, allowed below 1 / units");
    REFUSES(o.epsilon = 1, "epsilon: found 1 with sigma 1.5");
    REFUSES(o.sigma = 0, "epsilon: found 0 with sigma 0"); /* no privacy is never the default */
    REFUSES(o.sigma = .01, "sigma: found 0.01");
    REFUSES(o.clip = 0, "clip: found 0");
    REFUSES(o.n_units = 5, "units: allowed with add-remove");
    REFUSES(o.adjacency = DPI_ADJACENCY_ADD_REMOVE, "units: found none");
    REFUSES(o.adjacency = DPI_ADJACENCY_ZERO_OUT, "adjacency: allowed are");
    REFUSES(o.n_public = 1, "n_public");
    o = say_options(by_record), o.description = (dpi_bytes){"notes", 5};
    assert_error(dpi_steer_open(&o, &s, ERR), ARG, "instruction and description: found both");
    o.instruction = (dpi_bytes){0}, o.description = (dpi_bytes){"{label}", 7};
    assert_error(dpi_steer_open(&o, &s, ERR), ARG, "description: found a {label}");
    REFUSES((o.layers = wrong[0], o.n_layers = 2), "layers: found 0, allowed are 1..1");
    REFUSES((o.layers = wrong[1], o.n_layers = 2), "layers: found 1, allowed");
    REFUSES((o.layers = wrong[2], o.n_layers = 2), "layers: found 2, allowed");
    dpi_adapters adapters = {0};
    dpi_model adapted = *model;
    adapted.adapters = &adapters;
    o = say_options(by_record), o.model = &adapted;
    assert_error(dpi_steer_open(&o, &s, ERR), UNSUPPORTED, "the model has an adapter");
    assert_null(s);
    OWN(dpi_records) alike = lines("alike.csv", "text\none\none\n", NULL);
    o = say_options(by_record), o.public_texts = alike;
    OWN(dpi_steer) same = open_steer(&o);
    assert_error(dpi_steer_release(same, ERR), STATE, "public texts were not read");
    assert_error(dpi_steer_prepare(same, ERR), ARG, "public texts: found 2 that have tokens");
    assert_error(dpi_steer_write(same, "x.gguf", -1, ERR), STATE, "no vectors were released");
}

/* ---- What is added --------------------------------------------------------------------------- */

/* What stands before a text. */
typedef struct asking {
    const char *instruction, *description; /* one of them; NULL: the other */
    int32_t n_positions;
} asking;

static const asking say = {"say", NULL, POSITIONS}, notes = {NULL, "notes", 3 * POSITIONS};

static void put_prompt(const asking *q, dpi_prompt_options *p) {
    p->chat = DPI_CHAT_NONE;
    if (q->instruction)
        p->public_prompt = (dpi_bytes){q->instruction, strlen(q->instruction)};
    else
        p->description = (dpi_bytes){q->description, strlen(q->description)},
        p->answer = (dpi_bytes){" \"", 2}, p->answer_end = (dpi_bytes){"\"", 1};
}

/* The mean state of a text after layer 1, by the oracle; false: it has no token. */
static bool state_of(const asking *q, const char *text, double state[N_EMBD]) {
    const tiny_spec spec = tiny_default();
    int32_t tokens[400];
    size_t n_public, n;
    dpi_prompts *prompts;
    DEFAULTS(dpi_prompt_options, p);
    DEFAULTS(dpi_prompts_info, info);
    put_prompt(q, &p);
    assert_ok(dpi_prompts_create(model, &p, q->n_positions, &prompts, ERR));
    assert_ok(dpi_prompts_info_get(prompts, &info, ERR));
    n_public = (size_t)info.n_public;
    memcpy(tokens, dpi_prompts_public(prompts), n_public * sizeof *tokens);
    dpi_prompts_free(prompts);
    assert_ok(dpi_tokenize(model, text, strlen(text), 0, tokens + n_public, 300, &n, ERR));
    if (n == 0)
        return false;
    const size_t n_most = (size_t)q->n_positions;
    n = n_public + n < n_most ? n_public + n : n_most;
    double *x = oracle_states(&spec, model, tokens, (int32_t)n, NULL, 2);
    memset(state, 0, N_EMBD * sizeof *state);
    for (size_t t = n_public; t < n; t++) {
        double square = 0;
        for (int i = 0; i < N_EMBD; i++)
            square += x[t * N_EMBD + (size_t)i] * x[t * N_EMBD + (size_t)i];
        const double size = sqrt(square / N_EMBD + (double)model->config.rms_eps);
        for (int i = 0; i < N_EMBD; i++)
            state[i] += x[t * N_EMBD + (size_t)i] / size / (double)(n - n_public);
    }
    free(x);
    return true;
}

static const char *const public_texts[N_PUBLIC] = {"abc", "some more", "and others"};

/* Of the public texts the mean, and the median distance from it. */
static double public_of(const asking *q, double mean[N_EMBD]) {
    double states[N_PUBLIC][N_EMBD], distances[N_PUBLIC];
    memset(mean, 0, N_EMBD * sizeof *mean);
    for (int t = 0; t < N_PUBLIC; t++) {
        assert_true(state_of(q, public_texts[t], states[t]));
        for (int i = 0; i < N_EMBD; i++)
            mean[i] += states[t][i] / N_PUBLIC;
    }
    for (int t = 0; t < N_PUBLIC; t++) {
        distances[t] = 0;
        for (int i = 0; i < N_EMBD; i++)
            distances[t] += pow(states[t][i] - mean[i], 2);
    }
    const double a = distances[0], b = distances[1], c = distances[2];
    return sqrt(fmax(fmin(a, b), fmin(fmax(a, b), c)));
}

/* += what a unit of these texts adds, in units of 2^-20 C; NULL ends them. */
static void add_unit(const asking *q, const char *const *texts, double clip,
                     double sum[N_EMBD]) {
    double mean[N_EMBD], vector[N_EMBD] = {0}, square = 0;
    const double spread = public_of(q, mean);
    int n = 0;
    for (; *texts; texts++) {
        double state[N_EMBD];
        if (!state_of(q, *texts, state))
            continue;
        for (int i = 0; i < N_EMBD; i++)
            vector[i] += (state[i] - mean[i]) / spread;
        n++;
    }
    for (int i = 0; i < N_EMBD && n > 0; i++) {
        vector[i] /= n;
        square += vector[i] * vector[i];
    }
    const double by = 0x1p20 / fmax(sqrt(square), clip);
    for (int i = 0; i < N_EMBD; i++)
        sum[i] += vector[i] * by;
}

/* The sum without noise is that of the units, each clipped after its records are joined: within
 * what 8-bit activations and 16-bit caches change. */
static void check_sum(const asking *q, const char *unit_field, int32_t max_per_unit, double clip,
                      const char *const units[][4], int n_units) {
    double wanted[N_EMBD] = {0}, error = 0, square = 0;
    OWN(dpi_records) records = open_people(unit_field);
    OWN(dpi_records) texts = lines("public.csv", PUBLIC_TEXTS, NULL);
    dpi_steer_options o = say_options(records);
    o.public_texts = texts, o.max_per_unit = max_per_unit, o.n_positions = q->n_positions;
    if (q->description)
        o.instruction = (dpi_bytes){0}, o.description = (dpi_bytes){q->description,
                                                                    strlen(q->description)};
    o.sigma = 0, o.epsilon = INFINITY, o.clip = clip;
    OWN(dpi_steer) s = released(&o);
    for (int u = 0; u < n_units; u++)
        add_unit(q, units[u], clip, wanted);
    for (int i = 0; i < N_EMBD; i++) {
        error += pow((double)s->sum[i] - wanted[i], 2);
        square += pow(wanted[i], 2);
    }
    if (!(error < 2e-3 * square))
        fail_msg("units by %s, clip %g: NMSE %g", unit_field ? unit_field : "record", clip,
                 error / square);
    for (int i = 0; i < N_EMBD; i++) { /* and the vectors are the mean, as long as states are */
        const double of_mean = (double)s->sum[i] / 0x1p20 * clip / (double)s->options.n_units *
                               s->at.spread[0] * s->at.size[0];
        assert_true(fabs((double)s->vectors[i] - of_mean) <= 1e-6 * fabs(of_mean));
    }
}

static const char *const long_text = "a long text of c that is cut where the positions end";

TEST(test_sum) {
    const char *const records[][4] = {{"one of a"}, {"three of a"}, {"one of b"},
                                      {"nobody"},   {"two of b"},   {long_text}};
    const char *const persons[][4] = {{"one of a", "three of a"}, {"one of b", "two of b"},
                                      {long_text}};
    const char *const firsts[][4] = {{"one of a"}, {"one of b"}, {long_text}};
    check_sum(&say, NULL, 4, 1, records, 6);
    check_sum(&say, NULL, 4, 100, records, 6);
    check_sum(&say, "id", 4, .5, persons, 3);
    check_sum(&say, "id", 4, 100, persons, 3);
    check_sum(&say, "id", 1, 1, firsts, 3);
    check_sum(&notes, NULL, 4, 1, records, 6);
}

static int64_t norm2_of(const int64_t *a, const int64_t *b) {
    int64_t square = 0;
    for (int i = 0; i < N_EMBD; i++)
        square += (a[i] - b[i]) * (a[i] - b[i]);
    return square;
}

/* A unit moves the sum by at most D, and others by nothing, whatever the clip bound is. */
TEST(test_sensitivity) {
    static const char all[] = "id,text\na,one of a\na,three of a\nb,one of b\nb,two of b\n",
                      some[] = "id,text\na,one of a\na,three of a\nb,\nb,\n",
                      other[] = "id,text\na,\na,\nb,one of b\nb,two of b\n";
    OWN(dpi_records) texts = lines("public.csv", PUBLIC_TEXTS, NULL);
    const int64_t bound = dpi_gradient_bound(N_EMBD);
    for (double clip = 1e-3; clip < 1e4; clip *= 100) {
        OWN(dpi_records) of_all = lines("all.csv", all, "id");
        OWN(dpi_records) of_some = lines("some.csv", some, "id");
        OWN(dpi_records) of_other = lines("other.csv", other, "id");
        dpi_steer_options o = say_options(of_all);
        o.public_texts = texts, o.sigma = 0, o.epsilon = INFINITY, o.clip = clip;
        OWN(dpi_steer) a = released(&o);
        o.records = of_some;
        OWN(dpi_steer) b = released(&o);
        o.records = of_other;
        OWN(dpi_steer) c = released(&o);
        const int64_t moved = norm2_of(a->sum, b->sum);
        assert_true(moved <= bound * bound && (clip > 1 || moved > bound * bound / 100 * 99));
        for (int i = 0; i < N_EMBD; i++) /* each unit by itself */
            assert_int_equal(a->sum[i], b->sum[i] + c->sum[i]);
    }
}

/* ---- The noise ------------------------------------------------------------------------------- */

/* Of the vector, in units of what a unit's may be. */
static double length_of(const dpi_steer *s) {
    double square = 0;
    for (int i = 0; i < N_EMBD; i++)
        square += pow((double)s->vectors[i], 2);
    return sqrt(square) / s->at.spread[0] / s->at.size[0] / s->options.clip;
}

/* Of records that are null the sum is noise alone: of variance (sigma D)^2, 64 numbers of 40 seeds;
 * the mean of 2,560 squares is off by 15 % once in 10^7 runs, and seeds are always the same. A
 * vector of noise alone is mostly left out. */
TEST(test_noise) {
    OWN(dpi_records) texts = lines("public.csv", PUBLIC_TEXTS, NULL);
    OWN(dpi_records) null = lines("null.csv", "text\n\n\n\"\"\n", NULL);
    double square = 0, sum = 0, of_number[N_EMBD] = {0};
    int n_kept = 0;
    dpi_steer_options o = say_options(null);
    o.public_texts = texts, o.sigma = 3;
    o.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.n_units = 10;
    const double deviation = 3 * (double)dpi_gradient_bound(N_EMBD);
    for (o.seed = 0; o.seed < 40; o.seed++) {
        OWN(dpi_steer) s = released(&o);
        for (int i = 0; i < N_EMBD; i++) {
            square += pow((double)s->sum[i] / deviation, 2);
            of_number[i] += pow((double)s->sum[i] / deviation, 2);
            sum += (double)s->sum[i] / deviation;
        }
        assert_int_equal(dpi_steer_drowned(s), length_of(s) == 0);
        n_kept += length_of(s) > 0;
    }
    assert_true(fabs(square / (40 * N_EMBD) - 1) < .15 && fabs(sum) / (40 * N_EMBD) < .11);
    assert_true(n_kept < 8); /* of 40: two deviations above noise, which are .03 of each */
    for (int i = 0; i < N_EMBD; i++) /* none is left out: below 8 once in 10^9 */
        assert_true(of_number[i] > 8);
    o.seeded = 0;
    OWN(dpi_steer) one = released(&o);
    OWN(dpi_steer) two = released(&o);
    assert_true(memcmp(one->sum, two->sum, N_EMBD * sizeof *one->sum) != 0);
}

/* A mean of clipped vectors is no longer than one, whatever the noise and the public number of
 * units make of it. */
TEST(test_length) {
    OWN(dpi_records) texts = lines("public.csv", PUBLIC_TEXTS, NULL);
    dpi_steer_options o = say_options(by_record);
    o.public_texts = texts, o.sigma = .2, o.clip = .5;
    o.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.n_units = 1;
    OWN(dpi_steer) few = released(&o);
    assert_true(length_of(few) > .999 && length_of(few) < 1.001);
    o.n_units = 100;
    OWN(dpi_steer) many = released(&o);
    assert_true(length_of(many) > .001 && length_of(many) < .1);
}

/* With another seed other noise; the same file with any number of threads. */
TEST(test_same) {
    char names[3][300];
    size_t n[3];
    char *found[3];
    for (int i = 0; i < 3; i++) {
        dpi_steer_options o = say_options(by_person);
        o.n_threads = 1 + i % 2, o.seed = i == 2 ? 43 : 42;
        OWN(dpi_steer) s = released(&o); /* public texts too are the seed's */
        snprintf(names[i], sizeof names[i], "%s", path_in(dir, i ? i == 1 ? "b" : "c" : "a"));
        assert_ok(dpi_steer_write(s, names[i], -1, ERR));
        found[i] = read_file(names[i], &n[i]);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(found[0], found[1], n[0]);
    assert_true(n[0] != n[2] || memcmp(found[0], found[2], n[0]) != 0);
    for (int i = 0; i < 3; i++)
        free(found[i]);
}

/* What the model writes of notes, with seed 42, as records; they are in quotes where they have
 * rules. */
static dpi_records *drawn_notes(bool quoted) {
    DEFAULTS(dpi_prompt_options, p);
    DEFAULTS(dpi_wording, w);
    DEFAULTS(dpi_drawing_options, d);
    const dpi_bytes stop = {"\"", 1};
    dpi_prompts *prompts;
    dpi_word_rules *rules;
    dpi_drawing *drawing;
    char lines_of[40000] = "";
    size_t n = 0;
    put_prompt(&notes, &p);
    w.answer = p.answer, w.stops = &stop, w.n_stops = 1;
    assert_ok(dpi_prompts_create(model, &p, notes.n_positions, &prompts, ERR));
    assert_ok(dpi_word_rules_create(&w, model, &rules, ERR));
    d.model = model, d.prompts = &prompts, d.n_prompts = 1, d.n_texts = N_DRAWN;
    d.rules = quoted ? rules : NULL;
    d.method.n_tokens = 24, d.seeded = 1, d.seed = 42;
    assert_ok(dpi_drawing_open(&d, &drawing, ERR));
    for (dpi_drawn_text t = {0}; t.index >= 0;) {
        assert_ok(dpi_drawing_next(drawing, &t, ERR));
        json_t *line = t.index < 0 ? NULL : json_pack("{s:s%}", "text", t.data, t.n_bytes);
        char *text = json_dumps(line, JSON_COMPACT);
        if (t.index >= 0)
            n += (size_t)snprintf(lines_of + n, sizeof lines_of - n, "%s\n", text ? text : "{}");
        json_decref(line);
        free(text);
    }
    dpi_drawing_free(drawing);
    dpi_word_rules_free(rules);
    dpi_prompts_free(prompts);
    return lines("notes.jsonl", lines_of, NULL);
}

/* Public texts of a description end where those of a run do. */
TEST(test_described_texts) {
    OWN(dpi_records) quoted = drawn_notes(true);
    OWN(dpi_records) loose = drawn_notes(false);
    const dpi_records *of[] = {NULL, quoted, loose};
    double mean[3][N_EMBD];
    for (int i = 0; i < 3; i++) {
        dpi_steer_options o = say_options(by_record);
        o.instruction = (dpi_bytes){0}, o.n_positions = notes.n_positions;
        o.description = (dpi_bytes){notes.description, strlen(notes.description)};
        o.n_public = N_DRAWN, o.n_public_tokens = 24, o.public_texts = of[i];
        OWN(dpi_steer) s = prepared(&o);
        memcpy(mean[i], s->at.mean, sizeof mean[i]);
    }
    assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
    assert_true(memcmp(mean[0], mean[2], sizeof mean[0]) != 0);
}

/* The file says what texts are, for who writes them. */
TEST(test_described) {
    const int32_t n_positions[] = {notes.n_positions, 257}, n_texts[] = {0, 257};
    for (int i = 0; i < 2; i++) { /* the latter: long ones */
        char name[300], *description;
        int32_t n_text;
        dpi_finetune_task task;
        dpi_steer_options o = say_options(by_record);
        o.instruction = (dpi_bytes){0}, o.n_positions = n_positions[i];
        o.description = (dpi_bytes){notes.description, strlen(notes.description)};
        OWN(dpi_steer) s = released(&o);
        snprintf(name, sizeof name, "%s.%d", path_in(dir, "described"), i);
        assert_ok(dpi_steer_write(s, name, -1, ERR));
        assert_ok(dpi_finetune_read_task(name, &task, ERR));
        assert_ok(dpi_finetune_read_description(name, &description, &n_text, ERR));
        assert_int_equal(n_text, n_texts[i]);
        dpi_claim claim;
        int32_t holds;
        assert_ok(dpi_finetune_read_claim(name, &claim, &holds, ERR));
        assert_true(holds);
        assert_null(task.instruction);
        assert_string_equal(description, notes.description);
        dpi_finetune_task_free(&task);
        free(description);
    }
}

/* ---- The charge ------------------------------------------------------------------------------ */

typedef struct watched {
    dpi_ledger *ledger;
    int64_t n_charges; /* when the first record is about to be read; -1: none is yet */
} watched;

static int32_t watch(void *user) {
    watched *w = user;
    DEFAULTS(dpi_dataset_info, info);
    if (w->n_charges < 0) {
        assert_ok(dpi_ledger_info(w->ledger, "people", &info, ERR));
        w->n_charges = info.n_charges;
    }
    return 0;
}

TEST(test_charged_first) {
    OWN(dpi_ledger) ledger = open_ledger(3, 1e-3, DPI_SCOPE_DATASET);
    OWN(dpi_records) texts = lines("public.csv", PUBLIC_TEXTS, NULL);
    watched w = {ledger, 0};
    dpi_steer_options o = say_options(by_person);
    o.seeded = 0, o.sigma = 0, o.epsilon = 2, o.public_texts = texts;
    o.ledger = ledger, o.dataset = "people", o.cancel = watch, o.cancel_user = &w;
    OWN(dpi_steer) s = prepared(&o);
    w.n_charges = -1;
    assert_ok(dpi_steer_release(s, ERR));
    assert_int_equal(w.n_charges, 1);
    assert_string_equal(dpi_steer_claim(s)->ledger.dataset, "people");
    DEFAULTS(dpi_dataset_info, info);
    assert_ok(dpi_ledger_info(ledger, "people", &info, ERR));
    const double sigma = dpi_claim_value(&dpi_steer_claim(s)->parts[0], "sigma");
    const double share = (double)info.charged / DPI_LEDGER_ONE / (info.order / (2 * sigma * sigma));
    assert_true(share >= 1 && share < 1.000001); /* of a Gaussian mechanism, at that order */
    assert_error(dpi_steer_release(s, ERR), STATE, "released already");
    OWN(dpi_steer) second = prepared(&o); /* no room is left, and no record is read */
    w.n_charges = -1;
    assert_error(dpi_steer_release(second, ERR), BUDGET, "");
    assert_int_equal(w.n_charges, -1);
    assert_null(second->sum);
    o.seeded = 1;
    dpi_steer *none = NULL;
    assert_error(dpi_steer_open(&o, &none, ERR), UNSUPPORTED, "a ledger counts guarantees");
}

/* Units that have paid enough are null. */
TEST(test_payers) {
    OWN(dpi_ledger) ledger = open_ledger(3, 1e-3, DPI_SCOPE_UNIT);
    OWN(dpi_records) texts = lines("public.csv", PUBLIC_TEXTS, NULL);
    OWN(dpi_records) of_a = lines("a.csv", "id,text\na,one of a\n", "id");
    dpi_steer_options o = say_options(of_a);
    o.seeded = 0, o.sigma = 0, o.epsilon = 2, o.public_texts = texts;
    o.ledger = ledger, o.dataset = "people";
    OWN(dpi_steer) first = released(&o);
    o.records = by_person;
    OWN(dpi_steer) s = released(&o);
    int n_pay = 0; /* b and c: not a, and nobody without an ID */
    for (size_t u = 0; u < dpi_records_unit_count(by_person); u++)
        n_pay += s->pays[u];
    assert_int_equal(n_pay, 2);
    assert_int_equal(s->pays[0], 0);
    /* What they add: by a sum without noise of those who pay. */
    int64_t sum[N_EMBD] = {0}, wanted[N_EMBD] = {0};
    dpi_example_format format = dpi_steer_format(s);
    for (int i = 0; i < 2; i++) {
        OWN(dpi_records) others = lines("o.csv", "id,text\na,\nb,one of b\n,\nb,two of b\nc,a long "
                                        "text of c that is cut where the positions end\n", "id");
        dpi_examples examples;
        dpi_reader reader;
        assert_ok(dpi_examples_read(i ? others : by_person, &format, &examples, ERR));
        assert_ok(dpi_reader_open(s, &reader, ERR));
        assert_ok(dpi_directions_add(&reader, &examples, i ? wanted : sum, ERR));
        dpi_reader_close(&reader);
        dpi_examples_free(&examples);
    }
    assert_memory_equal(sum, wanted, sizeof sum);
}

/* ---- The file -------------------------------------------------------------------------------- */

TEST(test_file) {
    dpi_steer_options o = say_options(by_person);
    dpi_verification v;
    dpi_model *other = NULL;
    const tiny_spec spec = tiny_default();
    OWN(dpi_steer) s = released(&o);
    const char *path = path_in(dir, "steer.gguf");
    dpi_claim c = written(s, path);
    assert_int_equal(dpi_claim_value(&c.parts[0], "numbers"), N_EMBD);
    /* It steers the model that it was made for, and no other one. */
    DEFAULTS(dpi_model_options, m);
    m.control_vector = path;
    OWN_ARRAY(void) own = NULL;
    size_t n_bytes;
    tiny_build(&spec, 5, &own, &n_bytes);
    assert_ok(dpi_model_open_buffer(own, n_bytes, &m, &other, ERR));
    assert_memory_equal(other->control->of[1], s->vectors, N_EMBD * sizeof(float));
    dpi_model_close(other);
    OWN_ARRAY(void) foreign = NULL;
    tiny_build(&spec, 6, &foreign, &n_bytes);
    assert_error(dpi_model_open_buffer(foreign, n_bytes, &m, &other, ERR), FORMAT,
                 "is of another model");
    /* One number more, and the claim does not hold. */
    size_t n;
    OWN_ARRAY(char) file = read_file(path, &n);
    char *key = memmem(file, n, DPI_BASE_MARK, strlen(DPI_BASE_MARK));
    assert_non_null(key);
    key[0] = 'D'; /* of which model it is it does not say */
    dpi_verification_init(&v);
    write_file(path, file, n);
    assert_error(dpi_claim_verify_file(path, &c, &v, ERR), ARG, DPI_BASE_MARK " says ''");
    key[0] = 'd';
    file[n - 3] ^= 1;
    write_file(path, file, n);
    assert_ok(dpi_claim_verify_file(path, &c, &v, ERR));
    assert_true(v.n_wrong == 1);
    dpi_verification_free(&v);
}
