/* What no work can have done, in a claim or in what a report has beside it: mechanisms that no work
 * has together, what a mechanism has no use for, outputs and charges that contradict the claim. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dp/mechanism/mechanism.h"
#include "dpinfer/generation.h"
#include "tests/pipeline/claim/claim_kinds.h"
#include "tests/support/own.h"
#include "tests/support/support.h"

OWNED(dpi_report, dpi_report_free)

/* ---- Claims ---------------------------------------------------------------------------------- */

/* Whether a list has a name as one of its words. */
static bool has_word(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

/* A part of that mechanism as some kind has it. */
static dpi_claim_part part_of(int32_t mechanism) {
    for (int i = 0; i < n_kinds; i++) {
        const dpi_claim c = unsettled(&kinds[i]);
        const dpi_claim_part *p = dpi_claim_find(&c, dpi_mechanism_name(mechanism));
        if (p)
            return *p;
    }
    fail();
    return (dpi_claim_part){0};
}

/* Any mechanism behind any claim, and in front of it. */
TEST(test_every_pair) {
    static const char *const behind[][2] = {{"gradients", "label_counts texts"},
                                            {"steering", "texts"},
                                            {"invisibleink", "histogram steering"},
                                            {"amin", "histogram steering"},
                                            {"tang", "histogram steering"}};
    for (int i = 0; i < n_kinds; i++)
        for (int32_t id = 0; id < dpi_mechanism_count(); id++) {
            const char *name = dpi_mechanism_name(id);
            dpi_claim last = unsettled(&kinds[i]), first = last;
            bool may_be = false;
            for (size_t k = 0; k < sizeof behind / sizeof *behind; k++)
                may_be = may_be || (dpi_claim_find(&last, behind[k][0]) == last.parts &&
                                    has_word(behind[k][1], name));
            if (!may_be || dpi_claim_find(&last, name)) {
                last.parts[last.n_parts++] = part_of(id);
                if (dpi_claim_settle(&last, ERR) == DPI_STATUS_OK)
                    fail_msg("%s has %s, too", kinds[i].name, name);
            }
            memmove(first.parts + 1, first.parts, (size_t)first.n_parts++ * sizeof *first.parts);
            first.parts[0] = part_of(id);
            const bool is_steered = strcmp(dpi_mechanism_name(first.parts[1].mechanism),
                                           "steering") == 0 && first.n_parts == 2;
            if (!is_steered && dpi_claim_settle(&first, ERR) == DPI_STATUS_OK)
                fail_msg("%s comes behind %s", kinds[i].name, name);
        }
}

/* Sets a field that a claim did not have; false: it has it. */
static bool set_field(dpi_claim *c, const char *key) {
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const dpi_claim before = *c;
    if (strcmp(key, "model") == 0 && !c->model_name[0])
        strcpy(c->model_name, "tiny");
    if (strcmp(key, "grammar") == 0 && !c->grammar[0])
        strcpy(c->grammar, "0123456789abcdef");
    if (strcmp(key, "wording") == 0 && !c->wording[0])
        strcpy(c->wording, hash);
    if (strcmp(key, "prompts") == 0 && !c->prompts[0])
        strcpy(c->prompts, hash);
    if (strcmp(key, "unit") == 0 && c->record_kind == DPI_RECORD_OTHER)
        c->record_kind = DPI_RECORD_ROW;
    if (strcmp(key, "n_units") == 0 && c->n_units == 0)
        c->n_units = 5;
    if (strcmp(key, "labels") == 0 && c->labels == 0)
        c->labels = DPI_LABELS_PUBLIC, c->n_labels = 2;
    if (strcmp(key, "pace_texts") == 0 && c->pace_texts == 0)
        c->pace_texts = 2;
    if (strcmp(key, "released") == 0 && c->released == 0)
        c->released = 1;
    if (strcmp(key, "no_records") == 0 && c->no_records == 0)
        c->no_records = 1;
    if (strcmp(key, "delta") == 0 && c->delta == 0)
        c->delta = 1e-3;
    return memcmp(&before, c, sizeof before) != 0;
}

/* Any field of the data in any claim that has none. */
TEST(test_every_field) {
    static const char *const used[][2] = {
        {"model", "invisibleink amin tang adapmixed plain votes gradients steering"},
        {"grammar", "invisibleink amin tang adapmixed plain votes texts"},
        {"wording", "invisibleink amin tang adapmixed plain votes texts"},
        {"prompts", "invisibleink amin tang adapmixed plain"},
        {"unit", "invisibleink amin tang adapmixed plain votes gradients steering counts "
                 "word_count"},
        {"n_units", "invisibleink amin tang adapmixed votes gradients steering counts word_count"},
        {"labels", "invisibleink amin tang adapmixed steering"},
        {"pace_texts", ""}, /* that have no pace */
        {"released", "invisibleink amin tang adapmixed plain"},
        {"no_records", "plain"},
        {"delta", "invisibleink amin tang adapmixed votes gradients steering counts word_count"}};
    int n = 0;
    for (int i = 0; i < n_kinds; i++)
        for (size_t k = 0; k < sizeof used / sizeof *used; k++) {
            dpi_claim c = unsettled(&kinds[i]);
            bool may_have = false;
            for (int32_t p = 0; p < c.n_parts; p++)
                may_have = may_have ||
                           has_word(used[k][1], dpi_mechanism_name(c.parts[p].mechanism));
            if (may_have || !set_field(&c, used[k][0]))
                continue;
            if (dpi_claim_settle(&c, ERR) == DPI_STATUS_OK)
                fail_msg("%s has %s", kinds[i].name, used[k][0]);
            n++;
        }
    assert_true(n > 60);
}

/* Texts are chosen by words alone, and words are of vectors of labels. */
TEST(test_best_of) {
    static const struct {
        const char *kind, *mechanism, *key;
        double value;
    } wrong[] = {{"texts", "texts", "best_of", 4},
                 {"steering", "texts", "best_of", 4},
                 {"words of labels", "steering", "words", 0},
                 {"steering", "steering", "words", 40},
                 {"a steered run", "steering", "words", 40},
                 {"a run with words", "steering", "numbers", 102}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        dpi_claim c = unsettled(kind_of(wrong[i].kind));
        for (int32_t p = 0; p < c.n_parts; p++)
            if (strcmp(dpi_mechanism_name(c.parts[p].mechanism), wrong[i].mechanism) == 0 &&
                dpi_claim_set(&c.parts[p], wrong[i].key, wrong[i].value, ERR) != DPI_STATUS_OK)
                fail_msg("%s: no %s", wrong[i].kind, wrong[i].key);
        if (dpi_claim_settle(&c, ERR) == DPI_STATUS_OK)
            fail_msg("%s has %s %g", wrong[i].kind, wrong[i].key, wrong[i].value);
    }
}

/* ---- Reports --------------------------------------------------------------------------------- */

typedef struct change {
    const char *from[2], *to[2]; /* the first place of each; NULL: no second one */
} change;

/* The text with its changes; the caller frees it. */
static char *changed(const char *text, const change *c) {
    char *now = strdup(text);
    for (int i = 0; i < 2 && c->from[i]; i++) {
        char *longer = NULL, *at = strstr(now, c->from[i]);
        if (!at)
            fail_msg("no %s", c->from[i]);
        assert_true(asprintf(&longer, "%.*s%s%s", (int)(at - now), now, c->to[i],
                             at + strlen(c->from[i])) > 0);
        free(now);
        now = longer;
    }
    return now;
}

/* The report holds, and with no change of a list it does. */
static void check_changes(const char *text, const change *changes, size_t n) {
    if (n_wrong(text) != 0)
        fail_msg("%zu fields do not hold: %s", n_wrong(text), ERR->message);
    for (size_t i = 0; i < n; i++) {
        OWN_ARRAY(char) now = changed(text, &changes[i]);
        if (n_wrong(now) == 0)
            fail_msg("%s as %s holds", changes[i].from[0], changes[i].to[0]);
    }
}
#define CHECK_CHANGES(text, list) check_changes(text, list, sizeof(list) / sizeof *(list))

typedef struct drawn {
    const char *label;
    int32_t n_tokens, end;
} drawn;

/* The report of a claim and its texts, on one line. */
static char *report_with(const dpi_claim *c, const drawn *all, int n, bool complete) {
    OWN(dpi_report) report = NULL;
    OWN_ARRAY(char) text = NULL;
    size_t n_bytes;
    assert_ok(dpi_report_of(c, NULL, NULL, &report, ERR));
    dpi_report_output_add(report, "some texts", n > 0 ? 10 : 0);
    for (int i = 0; i < n; i++)
        assert_ok(dpi_report_text_add(report, all[i].label, all[i].n_tokens, all[i].end, ERR));
    assert_ok(dpi_report_text(report, complete, DPI_REPORT_JSON, &text, &n_bytes, ERR));
    json_t *root = json_loadb(text, n_bytes, 0, NULL);
    char *line = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(root);
    return line;
}

/* A settled claim of three texts of at most 4 tokens about 6 units. */
static dpi_claim three_texts(int32_t labels) {
    dpi_claim c = unsettled(kind_of("by position"));
    c.labels = labels, c.n_labels = labels ? 2 : 0;
    c.record_kind = DPI_RECORD_LINE;
    c.parts[0].n_runs = 3;
    assert_ok(dpi_claim_set(&c.parts[0], "B", labels ? 3 : 2, ERR));
    assert_ok(dpi_claim_set(&c.parts[0], "T", 4, ERR));
    assert_ok(dpi_claim_settle(&c, ERR));
    return c;
}

static const drawn three[] = {{NULL, 1, DPI_END_EOG}, {NULL, 2, DPI_END_EOG},
                              {NULL, 4, DPI_END_LENGTH}};

TEST(test_outputs) {
    static const change changes[] = {
        {{"\"tokens\":7"}, {"\"tokens\":8"}},
        {{"\"ended\":2"}, {"\"ended\":1"}}, /* one that is cut has 4 tokens */
        {{"\"ended\":2"}, {"\"ended\":4"}},
        {{"\"lengths\":[1,0,0,0,0,1", "\"tokens\":7"}, /* no length is in the fourth bin */
         {"\"lengths\":[1,0,0,1,0,0", "\"tokens\":6"}},
        {{"\"lengths\":[1,0,0,0,0,1,0,0,0,0,0,0,0,0,0,1", "\"tokens\":7"},
         {"\"lengths\":[1,0,0,0,0,2,0,0,0,0,0,0,0,0,0,0", "\"tokens\":5"}},
        {{"\"lengths\":[1,", "\"tokens\":7"}, {"\"lengths\":[0,", "\"tokens\":6"}},
        {{"\"n_bytes\":10"}, {"\"n_bytes\":0"}},
        {{"\"n_bytes\":10"}, {"\"n_bytes\":-1"}},
        {{"\"form\":null,\"text_bytes\":null"}, {"\"form\":\"text\",\"text_bytes\":9"}},
        {{"\"form\":null,\"text_bytes\":null"}, {"\"form\":\"jsonl\",\"text_bytes\":11"}},
        {{"\"at_max_words\":null"}, {"\"at_max_words\":1"}}, /* there are none */
        {{"\"alike\":null"}, {"\"alike\":1"}},
        {{"\"alike\":null"}, {"\"alike\":4"}},
        {{"\"labels\":{}"}, {"\"labels\":{\"a\":3}"}},
    };
    const dpi_claim c = three_texts(0);
    OWN_ARRAY(char) text = report_with(&c, three, 3, true);
    CHECK_CHANGES(text, changes);
    /* A run that was stopped has fewer texts, and one that was broken off. */
    static const drawn two[] = {{NULL, 1, DPI_END_CANCELLED}, {NULL, 2, DPI_END_EOG}};
    static const change to_end[] = {{{"\"complete\":false"}, {"\"complete\":true"}}};
    OWN_ARRAY(char) stopped = report_with(&c, two, 2, false);
    CHECK_CHANGES(stopped, to_end);
}

TEST(test_labels) {
    static const drawn some[] = {{"a", 1, DPI_END_EOG}, {"b", 2, DPI_END_EOG},
                                 {"a", 4, DPI_END_LENGTH}};
    static const change changes[] = {
        {{"\"labels\":{\"a\":2,\"b\":1}"}, {"\"labels\":{\"a\":1,\"b\":1}"}},
        {{"\"labels\":{\"a\":2,\"b\":1}"}, {"\"labels\":{}"}},
        {{"\"labels\":{\"a\":2,\"b\":1}"}, {"\"labels\":{\"a\":3}"}}, /* would be 7 units */
        {{"\"labels\":{\"a\":2,\"b\":1}"}, {"\"labels\":{\" \":2,\"b\":1}"}},
        {{"\"labels\":{\"a\":2,\"b\":1}"}, {"\"labels\":{\"a\":1,\"b\":1,\"c\":1}"}},
    };
    const dpi_claim c = three_texts(DPI_LABELS_PUBLIC);
    OWN_ARRAY(char) text = report_with(&c, some, 3, true);
    CHECK_CHANGES(text, changes);
    /* A group of similar records has a number. */
    static const drawn grouped[] = {{"1", 20, DPI_END_LENGTH}, {"3", 20, DPI_END_LENGTH},
                                    {"1", 20, DPI_END_LENGTH}, {"2", 20, DPI_END_LENGTH}};
    static const change of_groups[] = {{{"\"labels\":{\"1\""}, {"\"labels\":{\"4\""}},
                                       {{"\"labels\":{\"1\""}, {"\"labels\":{\"01\""}},
                                       {{"\"labels\":{\"1\""}, {"\"labels\":{\"anna\""}}};
    const dpi_claim groups = claim_of(kind_of("groups"));
    OWN_ARRAY(char) of_numbers = report_with(&groups, grouped, 4, true);
    CHECK_CHANGES(of_numbers, of_groups);
    /* A unit is in one of two secret batches of its label: each label has as many. */
    static const drawn secret[] = {{"a", 20, DPI_END_LENGTH}, {"a", 20, DPI_END_LENGTH},
                                   {"b", 20, DPI_END_LENGTH}, {"b", 20, DPI_END_LENGTH}};
    static const change one_batch[] = {
        {{"\"labels\":{\"a\":2,\"b\":2}"}, {"\"labels\":{\"a\":3,\"b\":1}"}}};
    dpi_claim batches = unsettled(kind_of("one of many batches"));
    batches.labels = DPI_LABELS_PRIVATE, batches.n_labels = 2, batches.parts[0].n_runs = 4;
    OWN_ARRAY(char) of_batches = report_with(&batches, secret, 4, true);
    CHECK_CHANGES(of_batches, one_batch);
}

/* The third and last charge is the claim's, and is behind what the claim says of those before. */
TEST(test_charges) {
    static const change changes[] = {
        {{"2028-02-29"}, {"2027-02-29"}},
        {{"2028-02-29"}, {"2028-13-29"}},
        {{"2028-02-29"}, {"2028-00-29"}},
        {{"2028-02-29"}, {"2028-02-00"}},
        {{"2028-02-29"}, {"1969-02-28"}},
        {{"T23:59:60Z"}, {"T24:59:60Z"}},
        {{"T23:59:60Z"}, {"T23:60:60Z"}},
        {{"T23:59:60Z"}, {"T23:59:61Z"}},
        {{"T23:59:60Z"}, {"T23:59:60"}},
        {{"\"outside\""}, {"\"\""}},
        {{"\"outside\""}, {"\"\\u001b[2J\""}},
        {{"\"outside\""}, {"5"}},
        {{"\"charge\":0.25,\"after\":0.25"}, {"\"charge\":0.125,\"after\":0.25"}},
        {{"\"charge\":0.25,\"after\":0.25"}, {"\"charge\":0,\"after\":0"}},
        {{"\"charges\":[{", "\"method\":\"invisibleink\""},
         {"\"charges\":[{", "\"method\":\"tang\""}},
    };
    dpi_claim c = three_texts(0);
    char list[600], no_own[600];
    strcpy(c.ledger.dataset, "people");
    c.ledger.epsilon = 9, c.ledger.delta = 1e-5, c.ledger.before = 1LL << 38; /* .25 */
    assert_ok(dpi_renyi_order(9, 1e-5, &c.ledger.order, ERR));
    assert_ok(dpi_claim_settle(&c, ERR));
    const double own = (double)c.ledger.charge / DPI_LEDGER_ONE;
    const char *format = "\"charges\":[{\"date\":\"2028-02-29T23:59:60Z\",\"method\":\"outside\","
                         "\"charge\":0.25,\"after\":0.25}%s{\"date\":\"\",\"method\":"
                         "\"invisibleink\",\"charge\":%.17g,\"after\":%.17g}]";
    snprintf(list, sizeof list, format, ",", own, .25 + own);
    snprintf(no_own, sizeof no_own, format, ",", own / 2, .25 + own / 2);
    OWN_ARRAY(char) without = report_with(&c, NULL, 0, true);
    OWN_ARRAY(char) text = changed(without, &(change){{"\"charges\":[]"}, {list}});
    CHECK_CHANGES(text, changes);
    OWN_ARRAY(char) of_other = changed(without, &(change){{"\"charges\":[]"}, {no_own}});
    assert_true(n_wrong(of_other) == 1);
    /* More was charged before than the claim says; more than the budget; no ledger. */
    c.ledger.before = 1LL << 37;
    assert_ok(dpi_claim_settle(&c, ERR));
    OWN_ARRAY(char) less = report_with(&c, NULL, 0, true);
    OWN_ARRAY(char) less_before = changed(less, &(change){{"\"charges\":[]"}, {list}});
    assert_true(n_wrong(less) == 0 && n_wrong(less_before) == 1);
    const dpi_claim bare = three_texts(0);
    OWN_ARRAY(char) no_ledger = report_with(&bare, NULL, 0, true);
    OWN_ARRAY(char) charged = changed(no_ledger, &(change){{"\"charges\":[]"}, {list}});
    assert_true(n_wrong(charged) == 1);
}

TEST(test_software_and_model) {
    static const change changes[] = {
        {{"\"program\":\"dpinfer\""}, {"\"program\":\"another\""}},
        {{"\"version\":\"0"}, {"\"version\":\"x"}},
        {{"\"build\":\""}, {"\"build\":\"\\u001b[2J"}},
        {{"\"compiler\":\""}, {"\"compiler\":\"\\u202e"}},
        {{"\"commit\":\""}, {"\"commit\":5,\"more\":\""}},
        {{"},\"model\":", "\"sha256\":\""}, {"},\"model\":", "\"sha256\":\"x"}},
    };
    const dpi_claim c = three_texts(0);
    OWN_ARRAY(char) text = report_with(&c, NULL, 0, true);
    CHECK_CHANGES(text, changes);
    /* A model that nothing draws from, or without the vectors that it had. */
    static const char model[] =
        "\"model\":{\"name\":\"%s\",\"random_weights\":false,\"files\":[{\"n_bytes\":9,\"sha256\":"
        "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}]%s},\"output\":null";
    static const char vectors[] =
        ",\"control_vector\":{\"n_bytes\":9,\"sha256\":"
        "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}";
    static const struct {
        const char *kind, *name, *vectors;
        bool holds;
    } models[] = {{"a steered run", "tiny", vectors, true}, {"a steered run", "tiny", "", false},
                  {"steering", "tiny", "", true},           {"by position", "", "", true},
                  {"words", "", "", false},                 {"word count", "", "", false}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const dpi_claim of = claim_of(kind_of(models[i].kind));
        char section[500];
        snprintf(section, sizeof section, model, models[i].name, models[i].vectors);
        OWN_ARRAY(char) without = report_with(&of, NULL, 0, true);
        OWN_ARRAY(char) with =
            changed(without, &(change){{"\"model\":null,\"output\":null"}, {section}});
        assert_true((n_wrong(with) == 0) == models[i].holds);
    }
}

/* The digest is that of the section, whatever the section says. */
TEST(test_prompts) {
    static const char *const sections[] = {
        "{\"foo\":1}", "{\"chat\":\"none\"}",
        "{\"chat\":\"auto\",\"system\":null,\"turns\":[],\"public_prompt\":\"\",\"private_prompt\":"
        "null,\"description\":null,\"query\":null,\"examples\":[],\"example_in\":\"public\","
        "\"labels\":[],\"max_reference_tokens\":0}",
        "{\"chat\":\"none\",\"system\":null,\"turns\":[[\"a\"]],\"public_prompt\":\"\","
        "\"private_prompt\":null,\"description\":null,\"query\":null,\"examples\":[],"
        "\"example_in\":\"public\",\"labels\":[],\"max_reference_tokens\":0}",
        "{\"chat\":\"none\",\"system\":{\"bytes\":\"f\"},\"turns\":[],\"public_prompt\":\"\","
        "\"private_prompt\":null,\"description\":null,\"query\":null,\"examples\":[],"
        "\"example_in\":\"public\",\"labels\":[],\"max_reference_tokens\":0}",
        "{\"chat\":\"none\",\"system\":null,\"turns\":[],\"public_prompt\":\"\",\"private_prompt\":"
        "null,\"description\":null,\"query\":null,\"examples\":[],\"example_in\":\"public\","
        "\"labels\":[],\"max_reference_tokens\":-1}",
    };
    OWN(dpi_report) parsed = NULL;
    const dpi_claim c = claim_of(kind_of("by position"));
    OWN_ARRAY(char) text = report_with(&c, NULL, 0, true);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        char section[400];
        snprintf(section, sizeof section, "\"prompts\":%s,\"follows\"", sections[i]);
        OWN_ARRAY(char) now = changed(text, &(change){{"\"prompts\":null,\"follows\""}, {section}});
        assert_error(dpi_report_parse("r", now, strlen(now), &parsed, ERR), FORMAT, "prompts");
    }
}

/* Sections that have the digest of the claim, and contradict the rest of it. */
TEST(test_wording_of_other_work) {
    static const struct {
        const char *kind;
        int32_t released, token;
        size_t n_wrong;
    } cases[] = {
        {"worded", 0, 7, 0}, {"worded", 1, 7, 1}, {"worded", 0, 100, 1}, {"votes", 0, 7, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const dpi_token_bias bias = {.token = cases[i].token, .bias = 1};
        dpi_wording w = wording;
        dpi_claim c = unsettled(kind_of(cases[i].kind));
        OWN(dpi_report) report = NULL;
        OWN_ARRAY(char) text = NULL;
        size_t n_bytes;
        w.biases = &bias, w.n_biases = 1;
        c.released = cases[i].released;
        assert_ok(dpi_claim_bind_wording(&c, &w, ERR));
        assert_ok(dpi_report_of(&c, NULL, NULL, &report, ERR));
        assert_ok(dpi_report_wording(report, &w, ERR));
        assert_ok(dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n_bytes, ERR));
        assert_true(n_wrong(text) == cases[i].n_wrong);
    }
}
