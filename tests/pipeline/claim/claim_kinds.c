/* claim_kinds.c - see claim_kinds.h. */
#include "tests/pipeline/claim/claim_kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/own.h"
#include "tests/support/support.h"

OWNED(dpi_report, dpi_report_free)

static const dpi_bytes texts[] = {{"\n\n", 2}, {"\xc3\xa9", 2}};
static const dpi_token_bias biases[] = {{.token = 7, .bias = -1.5}, {.token = 0, .bias = 100}};
const dpi_wording wording = {
    .struct_size = sizeof wording, .answer = {"Message: \"", 10}, .keep_answer = 1,
    .stops = texts, .n_stops = 2, .min_words = 3, .max_words = 40, .bans = texts, .n_bans = 1,
    .no_repeat = 4, .repeat_penalty = 1.1, .biases = biases, .n_biases = 2};
/* And its SHA-256, by coreutils. */
const char *const prompts =
    "{\"chat\":\"none\",\"system\":null,\"turns\":[[\"Hi.\",\"Yes.\"]],"
    "\"public_prompt\":\"Write.\",\"private_prompt\":null,\"description\":null,"
    "\"query\":{\"bytes\":\"ff00\"},"
    "\"examples\":[\"a \\\"\",\"b\"],\"example_in\":\"both\",\"labels\":[],"
    "\"max_reference_tokens\":9}";
static const char prompts_sha256[] =
    "a133e54537eb0a1b3cf7127bbdcd1d57090ae5bbb838c33faf3fe8f7e5332049";
const dpi_wording unworded = {.struct_size = sizeof unworded, .repeat_penalty = 1};

#define SAMPLER {"T", 20}, {"B", 3}, {"n_vocab", 100}
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
const kind kinds[] = {
    {"by position", {.n_units = 6, .delta = 1e-6, .record_kind = DPI_RECORD_FILE},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_rho", .5}}}}},
    {"paced", {.n_units = 6, .delta = 1e-6, .pace_texts = 3, .pace_given = 1},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_rho", .5}, {"pace", 1}, {"pace_theta", .5},
                                 {"pace_tokens", 4}, {"free_top_k", 5}}}}},
    {"exact composition", {.n_units = 6, .delta = 1e-6},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_epsilon", 4}, {"accountant", 1}}}}},
    {"filter", {.n_units = 6, .delta = 1e-6},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_rho", .5}, {"accountant", 2}}}}},
    {"drawn", {.adjacency = DPI_ADJACENCY_ADD_REMOVE, .delta = 1e-6},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_epsilon", 2}, {"subsample", .1}}}}},
    {"one of many batches", {.adjacency = DPI_ADJACENCY_ADD_REMOVE, .delta = 1e-6},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_epsilon", 2}, {"allocation", 2}}}}},
    {"private labels", {.adjacency = DPI_ADJACENCY_ADD_REMOVE, .delta = 1e-6, .max_per_unit = 2,
                        .labels = DPI_LABELS_PRIVATE, .n_labels = 2},
     {{"invisibleink", NULL, 4, {SAMPLER, {"budget_rho", .5}}},
      {"histogram", NULL, 1, {{"variance", 25600}}}}},
    {"worded", {.n_units = 6, .delta = 1e-6, .wording = "that of `wording`",
                .prompts = "that of `prompts`"},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_rho", .5}}}}},
    {"rounds", {.n_units = 6, .delta = 1e-6, .released = 1},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_rho", .5}}}}},
    {"groups", {.adjacency = DPI_ADJACENCY_ADD_REMOVE, .delta = 1e-6, .cluster_texts = 48,
                .labels = DPI_LABELS_PRIVATE, .n_labels = 3},
     {{"invisibleink", NULL, 4, {SAMPLER, {"budget_rho", .5}}}}},
    {"amin", {.n_units = 6, .delta = 1e-6},
     {{"amin", NULL, 2, {SAMPLER, {"budget_rho", .5}}}}},
    {"tang", {.n_units = 6, .delta = 1e-6}, {{"tang", NULL, 2, {SAMPLER, {"budget_rho", .5}}}}},
    {"adapmixed", {.n_units = 6, .delta = 1e-6},
     {{"adapmixed", NULL, 2, {SAMPLER, {"budget_rho", .5}}}}},
    {"plain", {.no_records = 1}, {{"plain", NULL, 2, {{"T", 20}, {"n_vocab", 100}}}}},
    {"seeded", {.n_units = 6, .delta = 1e-6, .randomness = DPI_RANDOMNESS_SEED},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_rho", .5}}}}},
    {"votes", {.n_units = 100, .delta = 1e-6, .max_per_unit = 4, .model_name = "tiny"},
     {{"votes", NULL, 5, {{"budget_epsilon", 1}, {"n_texts", 10}, {"T", 20}}}}},
    {"gradients", {.adjacency = DPI_ADJACENCY_ADD_REMOVE, .n_units = 64, .delta = 1e-4},
     {{"gradients", HASH, 6, {{"sigma", 2}, {"sampling", .25}, {"expected", 16}, {"rank", 1},
                              {"alpha", 16}, {"numbers", 100}}},
      {"label_counts", NULL, 1, {{"scale", 4}}}}},
    {"texts", {.adjacency = DPI_ADJACENCY_ADD_REMOVE, .n_units = 64, .delta = 1e-4},
     {{"gradients", HASH, 6, {{"sigma", 2}, {"sampling", .25}, {"expected", 16}, {"rank", 1},
                              {"alpha", 16}, {"numbers", 100}}},
      {"texts", NULL, 3, {{"T", 20}}}}},
    {"steering", {.n_units = 64, .delta = 1e-4, .max_per_unit = 4, .model_name = "tiny"},
     {{"steering", HASH, 1, {{"sigma", 2}, {"layers", 2}, {"numbers", 100}}},
      {"texts", NULL, 3, {{"T", 20}}}}},
    {"vectors of labels", {.n_units = 64, .delta = 1e-4, .model_name = "tiny",
                           .labels = DPI_LABELS_PUBLIC, .n_labels = 5},
     {{"steering", HASH, 1, {{"sigma", 2}, {"layers", 2}, {"numbers", 100}, {"rank", 9}}}}},
    {"words of labels", {.n_units = 64, .delta = 1e-4, .model_name = "tiny",
                         .labels = DPI_LABELS_PUBLIC, .n_labels = 5},
     {{"steering", HASH, 1, {{"sigma", 2}, {"layers", 2}, {"numbers", 100}, {"words", 40}}},
      {"texts", NULL, 3, {{"T", 20}, {"best_of", 4}}}}},
    {"a run with words", {.n_units = 64, .delta = 1e-4, .max_per_unit = 4, .model_name = "tiny",
                          .labels = DPI_LABELS_PUBLIC, .n_labels = 2},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_rho", .5}}},
      {"steering", HASH, 1, {{"sigma", 2}, {"layers", 2}, {"numbers", 100}, {"words", 40}}}}},
    {"a steered run", {.n_units = 64, .delta = 1e-4, .max_per_unit = 4, .model_name = "tiny"},
     {{"invisibleink", NULL, 2, {SAMPLER, {"budget_rho", .5}}},
      {"steering", HASH, 1,
       {{"sigma", 2}, {"layers", 2}, {"numbers", 100}, {"rank", 9}}}}},
    {"words", {.adjacency = DPI_ADJACENCY_WORD},
     {{"words", "0123456789abcdef", 12,
       {{"replaced_by", 3}, {"vocabulary_words", 50}, {"certificate_epsilon", 5},
        {"certificate_epsilon_finite", 5}, {"certificate_best_guess", .5}, {"n_documents", 2},
        {"n_words", 20}}}}},
    {"words without a bound", {.adjacency = DPI_ADJACENCY_WORD},
     {{"words", "0123456789abcdef", 12,
       {{"replaced_by", 2}, {"vocabulary_words", 50}, {"certificate_epsilon", INFINITY},
        {"certificate_epsilon_finite", 5}, {"certificate_best_guess", .5}, {"n_documents", 2},
        {"n_words", 20}}}}},
    {"counts", {.n_units = 50, .delta = 1e-6}, {{"counts", NULL, 3, {{"budget_epsilon", 1}}}}},
    {"word count", {.n_units = 50, .delta = 1e-6},
     {{"word_count", "fever", 1, {{"budget_epsilon", 1}}}}},
};
const int n_kinds = sizeof kinds / sizeof *kinds;

const kind *kind_of(const char *name) {
    for (int i = 0; i < n_kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    fail();
    return NULL;
}

dpi_claim unsettled(const kind *k) {
    dpi_claim c = k->data;
    c.struct_size = sizeof c;
    for (int i = 0; i < 3 && k->parts[i].mechanism; i++) {
        dpi_claim_part *p = dpi_claim_add(&c, k->parts[i].mechanism);
        assert_non_null(p);
        p->n_runs = k->parts[i].n_runs;
        if (k->parts[i].text)
            snprintf(p->text, sizeof p->text, "%s", k->parts[i].text);
        for (int j = 0; j < N_SETTINGS && k->parts[i].values[j].key; j++)
            assert_ok(dpi_claim_set(p, k->parts[i].values[j].key, k->parts[i].values[j].value,
                                      ERR));
    }
    if (c.wording[0])
        assert_ok(dpi_claim_bind_wording(&c, &wording, ERR));
    if (c.prompts[0])
        strcpy(c.prompts, prompts_sha256);
    return c;
}

dpi_claim claim_of(const kind *k) {
    dpi_claim c = unsettled(k);
    assert_ok(dpi_claim_settle(&c, ERR));
    return c;
}

char *report_of(const dpi_claim *c) {
    OWN(dpi_report) report = NULL;
    char *text;
    size_t n_bytes;
    assert_ok(dpi_report_of(c, NULL, NULL, &report, ERR));
    if (c->wording[0]) { /* which it must be told */
        assert_error(dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n_bytes, ERR), STATE,
                     "wording");
        assert_ok(dpi_report_wording(report, &wording, ERR));
    }
    if (c->prompts[0]) { /* which it may be told */
        assert_error(dpi_report_prompts(report, "{\"system\":null}", ERR), ARG, "prompts: found");
        assert_error(dpi_report_prompts(report, "null", ERR), FORMAT, "no JSON object");
        assert_ok(dpi_report_prompts(report, prompts, ERR));
    }
    assert_ok(dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n_bytes, ERR));
    return text;
}

size_t n_wrong(const char *text) {
    OWN(dpi_report) report = NULL;
    dpi_verification v;
    dpi_verification_init(&v);
    if (dpi_report_parse("r.json", text, strlen(text), &report, ERR) != DPI_STATUS_OK ||
        dpi_report_verify(report, NULL, NULL, &v, ERR) != DPI_STATUS_OK)
        return SIZE_MAX;
    const size_t n = v.n_wrong;
    dpi_verification_free(&v);
    return n;
}
