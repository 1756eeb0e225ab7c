/* Claims of all mechanisms: what is written is read back, a report of each verifies, and whatever
 * is changed in one is refused or does not hold. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dp/exact/noise.h"
#include "dp/mechanism/mechanism.h"
#include "dp/mechanism/samplers.h"
#include "dpinfer/report.h"
#include "tests/pipeline/claim/claim_kinds.h"
#include "tests/support/own.h"
#include "tests/support/support.h"

OWNED(dpi_report, dpi_report_free)

/* ---- There and back -------------------------------------------------------------------------- */

/* The same bytes, and the same numbers to the last bit. */
TEST(test_written_and_read) {
    bool seen[64] = {false};
    for (int i = 0; i < n_kinds; i++) {
        OWN_ARRAY(char) one = NULL;
        OWN_ARRAY(char) two = NULL;
        const dpi_claim c = claim_of(&kinds[i]);
        dpi_claim again;
        assert_ok(dpi_claim_write(&c, &one, ERR));
        assert_ok(dpi_claim_read(one, strlen(one), &again, ERR));
        assert_ok(dpi_claim_write(&again, &two, ERR));
        assert_string_equal(one, two);
        assert_memory_equal(&c.epsilon, &again.epsilon, sizeof c.epsilon);
        assert_memory_equal(&c.rho, &again.rho, sizeof c.rho);
        for (int32_t k = 0; k < c.n_parts; k++) {
            assert_memory_equal(c.parts[k].values, again.parts[k].values,
                                sizeof c.parts[k].values);
            seen[c.parts[k].mechanism] = true;
        }
    }
    for (int32_t id = 0; id < dpi_mechanism_count(); id++)
        if (!seen[id])
            fail_msg("no claim of %s is tested", dpi_mechanism_name(id));
}

/* ---- Reports --------------------------------------------------------------------------------- */

TEST(test_reports_verify) {
    for (int i = 0; i < n_kinds; i++) {
        const dpi_claim c = claim_of(&kinds[i]);
        OWN_ARRAY(char) text = report_of(&c);
        if (n_wrong(text) != 0)
            fail_msg("the report of %s does not verify: %s", kinds[i].name, ERR->message);
        for (int32_t format = DPI_REPORT_MARKDOWN; format <= DPI_REPORT_HTML; format++) {
            OWN(dpi_report) report = NULL;
            OWN_ARRAY(char) shown = NULL;
            size_t n_bytes;
            assert_ok(dpi_report_of(&c, NULL, NULL, &report, ERR));
            assert_ok(dpi_report_wording(report, c.wording[0] ? &wording : &unworded, ERR));
            assert_ok(dpi_report_text(report, 1, format, &shown, &n_bytes, ERR));
            const char *stop = format == DPI_REPORT_HTML ? "\\n\\n" : "\\\\n\\\\n";
            assert_true((strstr(shown, stop) != NULL) == (c.wording[0] != 0));
            assert_true((strstr(shown, "NOT PRIVATE") != NULL) == !dpi_claim_is_private(&c));
        }
    }
}

/* What nothing can say but the operator: it may be changed. */
static bool is_believed(const char *path) {
    return strncmp(path, ".software", 9) == 0 || strcmp(path, ".complete") == 0 ||
           strncmp(path, ".meta", 5) == 0;
}

typedef struct forgery {
    json_t *root;
    const char *kind;
    bool is_slow;
    int n; /* changes, of which each SWEEP_STEP-th is tried */
} forgery;

/* What is neither claimed nor a number that follows is words, most of which all kinds have: a
 * change of the same words at the same place is tried once. */
static bool is_tried(const char *path, const char *how, const json_t *kept) {
    enum { MOST = 8000 };
    static uint64_t tried[MOST];
    static int n;
    uint64_t hash = 14695981039346656037u;
    OWN_ARRAY(char) words = kept ? json_dumps(kept, JSON_ENCODE_ANY) : NULL;
    const char *const parts[] = {path, how, words ? words : ""};
    for (int i = 0; i < 3; i++)
        for (const char *c = parts[i]; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 1099511628211u; /* FNV-1a */
    for (int i = 0; i < n; i++)
        if (tried[i] == hash)
            return true;
    assert_true(n < MOST);
    tried[n++] = hash;
    return false;
}

static void must_show(forgery *f, const char *path, const char *how, const json_t *kept) {
    const bool counts = strncmp(path, ".claim", 6) == 0 || strncmp(path, ".follows", 8) == 0;
    /* Where a loss is summed up for each: only where it is claimed, or another number is said to
     * follow. What several kinds claim of the same work is tried once. */
    const bool claimed = strncmp(path, ".claim.mechanisms[0]", 20) == 0;
    if (f->is_slow ? !counts || strcmp(how, "left out") == 0 : !counts && is_tried(path, how, kept))
        return;
    if (f->is_slow && claimed && is_tried(path, how, kept))
        return;
    if (f->n++ % SWEEP_STEP != 0)
        return;
    OWN_ARRAY(char) text = json_dumps(f->root, JSON_REAL_PRECISION(17));
    if (n_wrong(text) == 0 && !is_believed(path))
        fail_msg("%s: %s %s holds", f->kind, path, how);
}

/* Other values of the same type, and one of another. New references. */
static json_t *other_value(const json_t *v, int which) {
    char text[4000];
    if (which == 2)
        return json_is_array(v) ? json_object() : json_array();
    if (json_is_integer(v))
        return json_integer(json_integer_value(v) + (which ? 1 : -1));
    if (json_is_real(v))
        return json_real(which ? json_real_value(v) * (1 + 1e-5) + 1e-9
                               : json_real_value(v) / 2 - 1e-9);
    if (json_is_boolean(v))
        return which ? json_null() : json_boolean(json_is_false(v));
    if (json_is_null(v))
        return which ? json_integer(1) : json_real(.5);
    snprintf(text, sizeof text, "%sx", json_string_value(v));
    if (which)
        text[0] ^= 1;
    return json_string(text);
}

static void change_all(forgery *f, json_t *value, const char *path);

static void change_members(forgery *f, json_t *object, const char *path) {
    static const char *const which_way[] = {"as another value", "as a second one",
                                            "as another type"};
    json_t *members = json_copy(object), *kept;
    const char *name;
    char below[200];
    json_object_foreach(members, name, kept) {
        snprintf(below, sizeof below, "%s.%s", path, name);
        json_object_del(object, name);
        must_show(f, below, "left out", kept);
        const int n = json_is_object(kept) || json_is_array(kept) ? 0 : f->is_slow ? 1 : 3;
        for (int which = 0; which < n; which++) {
            json_object_set_new(object, name, other_value(kept, which));
            must_show(f, below, which_way[which], kept);
        }
        json_object_set(object, name, kept);
        change_all(f, kept, below);
    }
    json_decref(members);
    json_object_set_new(object, "more", json_integer(1));
    snprintf(below, sizeof below, "%s.more", path);
    must_show(f, below, "added", NULL);
    json_object_del(object, "more");
}

static void change_items(forgery *f, json_t *array, const char *path) {
    char below[200];
    for (size_t i = 0; i < json_array_size(array); i++) {
        snprintf(below, sizeof below, "%s[%zu]", path, i);
        json_t *kept = json_incref(json_array_get(array, i));
        json_array_remove(array, i);
        must_show(f, below, "left out", kept);
        json_array_insert(array, i, kept);
        if (json_is_string(kept)) {
            json_array_set_new(array, i, other_value(kept, 0));
            must_show(f, below, "as another value", kept);
            json_array_set(array, i, kept);
        }
        change_all(f, kept, below);
        json_decref(kept);
    }
    json_array_append_new(array, json_string("more"));
    must_show(f, path, "with one more", NULL);
    json_array_remove(array, json_array_size(array) - 1);
}

static void change_all(forgery *f, json_t *value, const char *path) {
    if (json_is_object(value))
        change_members(f, value, path);
    else if (json_is_array(value))
        change_items(f, value, path);
}

/* Which takes tens of milliseconds for each verification. */
static bool sums_up_losses(const dpi_claim *c, const char *name) {
    return dpi_claim_find(c, "gradients") || dpi_claim_find(c, "steering") ||
           strcmp(name, "exact composition") == 0 || strcmp(name, "one of many batches") == 0;
}

/* One change of any key, word or number of any report. */
TEST(test_any_change_shows) {
    for (int i = 0; i < n_kinds; i++) {
        const dpi_claim c = claim_of(&kinds[i]);
        OWN_ARRAY(char) text = report_of(&c);
        forgery f = {.root = json_loads(text, 0, NULL), .kind = kinds[i].name};
        f.is_slow = sums_up_losses(&c, kinds[i].name);
        change_all(&f, f.root, "");
        assert_int_equal(n_wrong(text), 0);
        assert_true(f.n > (i == 0 ? 250 : 30));
        json_decref(f.root);
    }
}

/* Each setting of a wording changes its digest, and so what job, shard and ledger are held to. */
TEST(test_every_setting) {
    enum { N = 16 };
    static const dpi_token_bias other[] = {{.token = 7, .bias = -1}, {.token = 0, .bias = 100}};
    dpi_wording all[N];
    char hex[N][sizeof((dpi_claim *)0)->wording];
    int n = 0;
#define WITH(change) all[n] = wording, all[n].change, n++
    WITH(answer.n_bytes = 9), WITH(keep_answer = 0), WITH(keep_space = 1), WITH(n_stops = 1);
    WITH(stops = wording.stops + 1), all[n - 1].n_stops = 1;
    WITH(min_words = 4), WITH(max_words = 41), WITH(n_bans = 0), WITH(bans = wording.bans + 1);
    WITH(ban_refusals = 1), WITH(no_repeat = 5), WITH(repeat_penalty = 1.2);
    WITH(biases = other), WITH(n_biases = 1);
#undef WITH
    all[n++] = wording, all[n++] = unworded;
    assert_int_equal(n, N);
    for (int i = 0; i < N; i++) {
        dpi_claim c;
        dpi_claim_init(&c);
        assert_ok(dpi_claim_bind_wording(&c, &all[i], ERR));
        strcpy(hex[i], c.wording);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(hex[i], hex[k]);
    }
    assert_string_equal(hex[N - 1], "");
}

/* ---- What no work can have done -------------------------------------------------------------- */

TEST(test_impossible) {
    dpi_claim c;
#define REFUSES(name, change, status, part)                                                        \
    c = unsettled(kind_of(name)), change, assert_error(dpi_claim_settle(&c, ERR), status, part)
    REFUSES("by position", c.parts[0].n_runs = 3, ARG, "runs is 3, must be at most 2");
    REFUSES("by position", c.delta = .2, ARG, "delta: found 0.2, allowed below 1 / units");
    REFUSES("by position", c.delta = 0, ARG, "delta: found 0");
    REFUSES("by position", c.adjacency = DPI_ADJACENCY_WORD, ARG, "adjacency");
    REFUSES("by position", c.labels = DPI_LABELS_PRIVATE, ARG, "n_labels");
    REFUSES("filter", (c.labels = DPI_LABELS_PRIVATE, c.n_labels = 1), ARG, "labels: found priv");
    REFUSES("by position", (c.labels = DPI_LABELS_PUBLIC, c.n_labels = 1), ARG,
            "unit: found one .txt file");
    REFUSES("by position", c.max_per_unit = 2, ARG, "unit: found one .txt file");
    REFUSES("paced", (void)!dpi_claim_set(&c.parts[0], "T", 3, ERR), ARG,
            "pace_tokens is 4, must be 0..3");
    REFUSES("by position", c.no_records = 1, ARG, "no_records");
    REFUSES("by position", c.pace_texts = 2, ARG, "pace_texts");
    REFUSES("paced", c.pace_texts = 65, ARG, "pace_texts is 65, must be 0..64");
    REFUSES("groups", c.cluster_texts = 49, ARG, "cluster_texts is 49, must be 12..48");
    REFUSES("groups", c.cluster_texts = 11, ARG, "cluster_texts is 11");
    REFUSES("groups", (c.n_labels = 1, c.cluster_texts = 9), ARG, "n_labels is 1, must be 2..4");
    REFUSES("groups", (c.n_labels = 5, c.cluster_texts = 60), ARG, "n_labels is 5");
    REFUSES("private labels", c.n_labels = 1025, ARG, "n_labels is 1025, must be 1..1024");
    REFUSES("private labels", c.parts[0].n_runs = 1000001, ARG, "runs is 1000001");
    REFUSES("plain", c.n_units = 3, ARG, "n_units is 3, must be 0..0");
    REFUSES("plain", c.no_records = 0, ARG, "n_units is 0, must be 1..");
    REFUSES("plain", c.delta = .3, ARG, "delta: found 0.3");
    REFUSES("plain", c.adjacency = DPI_ADJACENCY_WORD, ARG, "adjacency");
    REFUSES("adapmixed", c.adjacency = DPI_ADJACENCY_ZERO_OUT, ARG, "adjacency");
    REFUSES("by position", c.released = 2, ARG, "released: found 2, allowed 0..1");
    REFUSES("by position", c.released = -1, ARG, "released: found -1");
    REFUSES("counts", c.released = 1, ARG, "released: found 1, allowed 0..0");
    REFUSES("votes", c.released = 1, ARG, "released: found 1, allowed 0..0");
    REFUSES("by position", c.n_parts = 0, ARG, "n_parts");
    REFUSES("by position", c.parts[0].mechanism = 1000, ARG, "mechanism: found 1000");
    REFUSES("by position", (void)dpi_claim_add(&c, "histogram"), ARG, "histogram_rho");
    REFUSES("by position", strcpy(c.model_name, "a\x1b[2J"), ARG, "model");
    REFUSES("by position", strcpy(c.grammar, "12"), ARG, "grammar");
    REFUSES("by position", strcpy(c.wording, "12"), ARG, "wording");
    REFUSES("by position", strcpy(c.prompts, "12"), ARG, "prompts");
    REFUSES("drawn", c.delta = .1, ARG, "delta: found 0.1 with 2 texts of 3 records");
    REFUSES("drawn", c.n_units = 7, ARG, "n_units");
    REFUSES("private labels", c.parts[1].values[0] = DPI_NOISE_VARIANCE_FINE + 1, ARG, "histogram");
    REFUSES("private labels", c.parts[1].n_runs = 2, ARG, "runs");
    REFUSES("tang", c.adjacency = DPI_ADJACENCY_ZERO_OUT, ARG, "adjacency");
    REFUSES("counts", c.max_per_unit = 2, ARG, "M: found 2");
    REFUSES("counts", c.parts[0].n_runs = 65, ARG, "n_groups");
    REFUSES("gradients", c.n_units = 65, ARG, "sampling: found 0.25");
    REFUSES("gradients", c.n_units = 8, ARG, "expected: found 16");
    REFUSES("gradients", c.parts[0].values[0] = .01, ARG, "sigma: found 0.01");
    REFUSES("gradients", (c.parts[0].values[0] = 0, c.delta = 0), ARG, "delta: found 0");
    REFUSES("gradients", strcpy(c.parts[0].text, "00"), ARG, "tensors_sha256: found '00'");
    REFUSES("texts", c.parts[0].text[0] = '\0', ARG, "tensors_sha256: found ''");
    REFUSES("gradients", c.parts[0].values[5] = 3, ARG, "numbers: found 100, allowed is a mult");
    REFUSES("gradients", c.parts[0].values[7] = 1, ARG, "numbers: found 1, allowed");
    REFUSES("steering", c.parts[0].text[0] = 'x', ARG, "tensors_sha256");
    REFUSES("steering", c.parts[0].values[2] = 3, ARG, "numbers: found 100, allowed as many");
    REFUSES("a steered run", c.parts[1].values[0] = 0, ARG, "sigma: found 0");
    REFUSES("a steered run", c.adjacency = DPI_ADJACENCY_ADD_REMOVE, ARG, "n_units is 64");
    REFUSES("gradients", c.delta = .02, ARG, "delta: found 0.02");
    REFUSES("vectors of labels", c.n_labels = 3, ARG, "numbers: found 100");
    REFUSES("vectors of labels", c.labels = DPI_LABELS_PRIVATE, ARG, "labels: found private");
    REFUSES("vectors of labels", c.adjacency = DPI_ADJACENCY_ADD_REMOVE, ARG,
            "labels: found public");
    REFUSES("vectors of labels", c.parts[0].values[4] = 10, ARG, "rank: found 10, allowed fewer");
    REFUSES("vectors of labels", c.cluster_texts = 2, ARG, "cluster_texts");
    REFUSES("texts", c.parts[0] = c.parts[1], ARG, "mechanisms: found texts behind nothing");
    REFUSES("texts", c.parts[c.n_parts++] = c.parts[1], ARG, "mechanisms: found texts twice");
    REFUSES("texts", (c.parts[2] = claim_of(kind_of("gradients")).parts[1], c.n_parts = 3), ARG,
            "mechanisms: found one behind texts");
    REFUSES("by position", dpi_claim_add(&c, "texts")->values[0] = 20, ARG,
            "texts behind invisibleink");
    REFUSES("votes", dpi_claim_add(&c, "texts")->values[0] = 20, ARG, "texts behind votes");
    /* 6 records in batches of 3 are 6 batches at most, of so many labels. */
    REFUSES("exact composition", (c.labels = DPI_LABELS_PUBLIC, c.n_labels = 1000,
                                  c.parts[0].n_runs = 7), ARG, "runs is 7, must be at most 6");
    REFUSES("votes", c.n_units = 0, ARG, "units: found none, needed is one at least");
    REFUSES("word count", c.n_units = 0, ARG, "records is 0, must be 1..");
    REFUSES("word count", c.no_records = 1, ARG, "no_records is 1, must be 0..0");
    REFUSES("words", c.no_records = 1, ARG, "no_records is 1, must be 0..0");
    REFUSES("plain", (void)dpi_claim_add(&c, "counts"), ARG, "no_records is 1, must be 0..0");
    REFUSES("words", c.parts[0].values[1] = 4, ARG, "certificate_epsilon: found 5");
    REFUSES("words", c.parts[0].n_runs = 5, ARG, "n_words: found 20");
    REFUSES("words", c.parts[0].n_runs = 21, ARG, "n_words: found 20");
    REFUSES("words", (c.parts[0].values[10] = c.parts[0].values[11] = 0), ARG, "guess 0, which");
    REFUSES("words without a bound", c.delta = .3, ARG, "delta: found 0.3, allowed is 0");
    REFUSES("words", c.parts[0].text[0] = 'x', ARG, "vocabulary_hash");
    REFUSES("words", c.parts[0].values[11] = .79, ARG, "guess 0.79, which no vocabulary has");
    REFUSES("words", c.delta = 1e-6, ARG, "delta: found 1e-06, allowed is 0");
    REFUSES("words without a bound", c.parts[0].values[7] = 5, ARG, "infinite: there are groups");
    REFUSES("by position", (strcpy(c.ledger.dataset, "people"), c.ledger.epsilon = 9,
                            c.ledger.delta = 1e-5, c.ledger.order = 1), ARG, "order");
    REFUSES("by position", (strcpy(c.ledger.dataset, "people"), c.ledger.scope = DPI_SCOPE_UNIT),
            ARG, "the ledger's scope: found unit");
    REFUSES("by position", (strcpy(c.ledger.dataset, "a\x1b[2J"), c.ledger.epsilon = 9,
                            c.ledger.delta = 1e-5), ARG, "the ledger's dataset has 5 bytes");
}

/* A ledger counts no work with a seed. */
TEST(test_no_charge_without_guarantee) {
    dpi_claim c = unsettled(kind_of("seeded")), read;
    OWN_ARRAY(char) text = NULL;
    strcpy(c.ledger.dataset, "people");
    c.ledger.epsilon = 9, c.ledger.delta = 1e-5;
    assert_ok(dpi_renyi_order(9, 1e-5, &c.ledger.order, ERR));
    assert_ok(dpi_claim_settle(&c, ERR));
    assert_ok(dpi_claim_write(&c, &text, ERR));
    assert_error(dpi_claim_read(text, strlen(text), &read, ERR), FORMAT,
                 "claim.ledger: found one");
}

/* A second one would be settled with the budget of the first. */
TEST(test_one_sampler) {
    for (int i = 0; i < 2; i++) {
        dpi_claim c = unsettled(kind_of("by position"));
        dpi_claim_part *other = dpi_claim_add(&c, i ? "tang" : "invisibleink");
        *other = c.parts[0];
        other->mechanism = dpi_mechanism_find(i ? "tang" : "invisibleink");
        assert_error(dpi_claim_settle(&c, ERR), ARG, "behind invisibleink");
    }
}

/* Secrecy of batches is of the texts: a ledger must not count it for what else a claim has. */
TEST(test_cost_of_secret_batches_and_more) {
    static const char *const names[] = {"drawn", "one of many batches"};
    for (int i = 0; i < 2; i++) {
        dpi_claim c = claim_of(kind_of(names[i]));
        dpi_cost cost;
        assert_ok(dpi_claim_cost(&c, &cost, ERR));
        dpi_claim_part *counts = dpi_claim_add(&c, "counts");
        counts->epsilon = 1, counts->n_cost = 1;
        counts->cost[0] = (dpi_cost_part){.kind = DPI_COST_PURE, .n = 1, .x = 1};
        assert_error(dpi_claim_cost(&c, &cost, ERR), UNSUPPORTED, "secret batches are of the");
    }
}

/* Reads a claim of which one text is another one. */
static dpi_status read_changed(const char *whole, const char *from, const char *to) {
    char text[4000];
    dpi_claim claim;
    const char *at = strstr(whole, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
    return dpi_claim_read(text, strlen(text), &claim, ERR);
}

/* A claim of an older program has no `allocation`, and one without it stays as it was. */
TEST(test_allocation) {
    static const struct {
        const char *from, *to;
        dpi_status status;
        const char *part;
    } changes[] = {
        {"\"allocation\":2", "\"allocation\":3", DPI_STATUS_ARG, "allocation is 3, must be 2..2"},
        {"\"allocation\":2", "\"allocation\":1", DPI_STATUS_FORMAT,
         "claim.mechanisms[0].allocation is 1, must be 2..1073741824"},
        {"\"allocation\":2", "\"allocation\":0", DPI_STATUS_FORMAT, "allocation is 0"},
        {"\"add-remove\"", "\"replace-by-null\"", DPI_STATUS_ARG,
         "no work has such a claim: allocation is 2"},
    };
    const dpi_claim without = claim_of(kind_of("by position")),
                    with = claim_of(kind_of("one of many batches"));
    OWN_ARRAY(char) text = NULL;
    OWN_ARRAY(char) whole = NULL;
    assert_ok(dpi_claim_write(&without, &text, ERR));
    assert_null(strstr(text, "allocation"));
    assert_ok(dpi_claim_write(&with, &whole, ERR));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        assert_status(read_changed(whole, changes[i].from, changes[i].to), changes[i].status,
                      changes[i].part);
    }
    assert_true(with.rho == 0 && with.epsilon <= 2 && with.epsilon > 1.99);
}

/* By its name. */
TEST(test_refused_texts) {
    static const struct {
        const char *from, *to, *part;
    } changes[] = {
        {"\"version\":3", "\"version\":1", "claim.version is 1, must be an integer 3..3"},
        {"\"delta\":", "\"gamma\":", "claim.data has the unknown key 'gamma'"},
        {"\"M\":null,", "", "claim.data.M is missing, must be an integer 1..64"},
        {"\"M\":null", "\"M\":0", "claim.data.M is 0"},
        {"\"n_units\":6", "\"n_units\":6.5", "claim.data.n_units is 6.5"},
        {"\"runs\":2", "\"runs\":\"2\"", "claim.mechanisms[0].runs is \"2\""},
        {"\"invisibleink\"", "\"ink\"", "claim.mechanisms[0].mechanism is \"ink\""},
        {"\"T\":20", "\"T\":0", "claim.mechanisms[0].T is 0, must be 1..1048576"},
        {"\"zcdp\"", "\"zcd\"", "claim.mechanisms[0].accountant is \"zcd\", must be one of: zcdp"},
        {"\"subsample\":null", "\"subsample\":0", "claim.mechanisms[0].subsample is 0"},
        {"\"center\":false", "\"center\":0", "claim.mechanisms[0].center is 0"},
        {"\"getrandom\"", "\"dice\"", "claim.randomness is \"dice\""},
        {"\"ledger\":null", "\"ledger\":{}", "claim.ledger.dataset is missing"},
        {"{\"version\"", "{\"version\":3,\"version\"", "a claim is no JSON"},
    };
    const dpi_claim c = claim_of(kind_of("by position"));
    OWN_ARRAY(char) whole = NULL;
    assert_ok(dpi_claim_write(&c, &whole, ERR));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        assert_error(read_changed(whole, changes[i].from, changes[i].to), FORMAT, changes[i].part);
    }
}
