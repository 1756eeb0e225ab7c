/* report.c - see report.h. The sections are in the order of the checklist. */
#include "tools/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h" /* made by tools/commit.cmake */
#include "tools/facts.h"
#include "tools/hash.h"
#include "tools/statement.h"

/* Whether a method was used that has a guarantee, as long as its randomness is secret. */
static bool is_proven(const job *j) {
    return j->sampler.method == DPI_METHOD_INVISIBLEINK || j->sampler.method == DPI_METHOD_AMIN;
}

/* An array of the strings up to NULL. */
static json_t *make_list(const char *const *items) {
    json_t *list = json_array();
    for (; *items; items++)
        if (json_array_append_new(list, json_string(*items)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* ---- 1. DP setting -------------------------------------------------------------------------- */

static json_t *dp_setting(const job *j) {
    if (!is_proven(j))
        return json_pack("{s:n, s:s}", "model", "trust",
                         j->plain && j->reference < 0
                             ? "none: the texts are those of the public prompt, and no record was "
                               "used"
                             : "none: whoever sees the texts may learn what is in the records");
    return json_pack("{s:s, s:s}", "model", "central", "trust",
        "The operator, who runs the program and may read the records, is trusted to give the "
        "records to this program, to keep its memory, its time and its random bits from others, "
        "and to release nothing but its output. Whoever sees the output is not trusted: they may "
        "know the model, every option, all other records and all texts, and are not bounded in "
        "computation.");
}

/* ---- 2. The definition ---------------------------------------------------------------------- */

static json_t *covered(const job *j) {
    const char *const all[] = {
        "every use of the records by the model and by the sampler in this run, for all of its "
        "texts together; a text that ends early is paid for as a whole one",
        NULL};
    return is_proven(j) ? make_list(all) : json_array();
}

static json_t *not_covered(const job *j) {
    const char *const assigned =
        "the number of texts and B: public, and chosen without the records";
    const char *const by_position =
        "the number of records, and in a folder the order of the names: they are public";
    const char *const all[] = {
        "the choice of options, prompts, the query and hyper-parameters: inputs, which must not "
        "follow from what is in the records",
        "the choice of the records, for example by a search for the query: the guarantee begins "
        "with the records that the program was given",
        "other runs on the same records, also those made to choose options: their costs add up",
        "the data that the model was trained on",
        "the time and memory that the run took, and what it told its operator on stderr",
        "one person in several records: the unit is the record",
        j->sampler.adjacency == DPI_ADJACENCY_ADD_REMOVE ? assigned : by_position,
        NULL};
    const char *const none[] = {"everything", NULL};
    return make_list(is_proven(j) ? all : none);
}

/* "one record = one .txt file; 16 records", without the number where it is secret or there are
 * none. */
static void unit_text(const job *j, char *text, size_t size) {
    const bool is_known = strcmp(j->unit, "one record") != 0;
    int n = snprintf(text, size, "one record%s%s", is_known ? " = " : "", is_known ? j->unit : "");
    if (report_tells_n_records(j))
        snprintf(text + n, size - (size_t)n, "; %" PRId64 " records", j->n_records);
}

static json_t *dp_definition(const job *j) {
    const bool amin = j->sampler.method == DPI_METHOD_AMIN, proven = is_proven(j);
    char unit[96];
    unit_text(j, unit, sizeof unit);
    return json_pack("{s:o, s:o, s:s+, s:s, s:s?, s:s?, s:s?}",
        "accesses_covered", covered(j), "accesses_not_covered", not_covered(j),
        "mechanism_output", "all tokens of all texts, in their order, and where each text ends",
        amin ? ", and which tokens are private" : "",
        "unit", unit,
        "neighbours", proven ? statement_adjacency(j->sampler.adjacency) : NULL,
        "neighbours_meaning", proven ? statement_adjacency_text(&j->sampler) : NULL,
        "composition", proven ? statement_composition(j) : NULL);
}

/* ---- 3. Accounting -------------------------------------------------------------------------- */

static const char *const SOURCES[] = {
    [DPI_ACCOUNTANT_ZCDP] =
        "A draw of bounded range eta is eta^2/8-zCDP (Cesar and Rogers 2021); draws compose "
        "adaptively (Bun and Steinke 2016); rho-zCDP gives (epsilon, delta) by Canonne, Kamath and "
        "Steinke 2020, Proposition 12. Holds for any records.",
    [DPI_ACCOUNTANT_BR] =
        "T tokens of bounded range eta, each chosen knowing the ones before, compose to the exact "
        "worst case over adaptive adversaries, discretised upwards (dp/PRIVACY.md, Theorem 8). "
        "Holds for any records.",
    [DPI_ACCOUNTANT_FILTER] =
        "Each record has a budget of its own in zCDP, pays for what it moves each token by, and "
        "counts as null from the token on that it cannot pay for (Feldman and Zrnic 2021). What a "
        "record has spent is in no output. Holds for any records.",
};

static const char *sampling_assumption(const job *j) {
    return j->sampler.subsample > 0
               ? "Amplification needs that each record joins one of the batches with probability q "
                 "in all, independently of the others, and that assignment and sizes of batches "
                 "stay secret. Fulfilled by the program: a fresh draw for each record and run, "
                 "batches of any size; no shuffling."
           : j->assigned
               ? "No amplification by sampling is used. Batches are disjoint, and the batch of a "
                 "record depends on its own content and a fresh key only. Fulfilled by the program."
               : "No amplification by sampling is used. Batches are disjoint, and the batch of a "
                 "record depends on its position only. Fulfilled by the program.";
}

static json_t *accounting(const job *j) {
    if (!is_proven(j))
        return json_pack("{s:s, s:[]}", "type",
                         j->plain ? "none" : "none: what the method counts depends on the records",
                         "assumptions");
    const char *const assumptions[] = {
        SOURCES[j->sampler.accountant],
        sampling_assumption(j),
        "The logits of a record are a function of that record, the tokens drawn so far and public "
        "data, and of no other record. Fulfilled by the program, bit for bit.",
        j->sampler.random ? "256 independent uniform random bits for each draw. NOT fulfilled: "
                            "they follow from --seed."
                          : "256 independent uniform random bits for each draw. Provided by the "
                            "operating system, getrandom(2).",
        "Costs are those of the integers K and a that the sampler uses; its rounding is part of "
        "eta, and every bound is rounded up.",
        j->sampler.method == DPI_METHOD_AMIN
            ? "A threshold is paid for when it is drawn, a private token before it is drawn, and a "
              "text goes on without the records when its budget is used up. Public tokens cost "
              "nothing."
            : NULL,
        NULL};
    return json_pack("{s:s, s:o}", "type", statement_accounting(j->sampler.accountant),
                     "assumptions", make_list(assumptions));
}

/* The formal statement. Without a guarantee it has no numbers, lest someone take them for one. */
static json_t *formal_statement(const job *j) {
    char guarantee[128], texts[64], text[512];
    snprintf(texts, sizeof texts, "%d, of at most %d tokens each", j->n_texts, j->sampler.n_tokens);
    if (is_proven(j))
        statement_guarantee(j, guarantee, sizeof guarantee);
    if (!is_proven(j))
        snprintf(text, sizeof text, "No guarantee for the texts (%s).", texts);
    else if (!j->is_private)
        snprintf(text, sizeof text,
                 "No guarantee for the texts (%s). With secret randomness it would be %s.", texts,
                 guarantee);
    else
        snprintf(text, sizeof text,
                 "The texts of the run together (%s) are %s: for any two lists of records D and "
                 "D' that are neighbours, and any event E over all texts, Pr[E | D] <= e^epsilon "
                 "Pr[E | D'] + delta, and the same with D and D' exchanged.", texts, guarantee);
    const bool zcdp = j->is_private && statement_is_zcdp(&j->sampler);
    return json_pack("{s:s, s:o, s:o, s:o}", "text", text,
        "epsilon", j->is_private ? json_real(j->plan.epsilon) : json_null(),
        "delta", j->is_private ? json_real(j->delta) : json_null(),
        "rho", zcdp ? json_real(j->plan.rho_total) : json_null());
}

/* What the parameters come to in the sampler. */
static json_t *realised(const job *j) {
    const dpi_sampler_plan *p = &j->plan;
    if (!is_proven(j))
        return json_object();
    json_t *object = json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:o}",
        "K", (json_int_t)p->K, "a", (json_int_t)p->a, "C", p->clip, "eta", p->eta,
        "rho_token", p->rho_token, "rho_total", p->rho_total,
        "rho_allowed", p->rho_budget > 0 ? json_real(p->rho_budget) : json_null());
    if (j->sampler.method != DPI_METHOD_AMIN)
        return object;
    json_t *amin = json_pack("{s:i, s:I, s:I, s:I, s:f, s:f}",
        "private_tokens_most", p->n_private, "svt_threshold", (json_int_t)p->svt_threshold,
        "svt_scale", (json_int_t)p->svt_scale, "svt_sensitivity", (json_int_t)p->svt_sensitivity,
        "svt_epsilon", p->svt_epsilon, "rho_svt", p->rho_svt);
    if (!object || !amin || json_object_update(object, amin) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(amin);
    return object;
}

/* ---- 4. Transparency ------------------------------------------------------------------------ */

/* What the method does with the options that cost nothing. */
static void method_text(const job *j, char *text, size_t size) {
    const dpi_sampler_options *o = &j->sampler;
    const char *name = statement_method(o->method);
    if (o->method == DPI_METHOD_INVISIBLEINK)
        snprintf(text, size,
                 "%s: temperature %.10g, Top-k+ with k = %d of %d tokens, logits %scentred "
                 "before they are clipped",
                 name, o->tau, o->top_k, o->n_vocab, o->center ? "" : "not ");
    else if (o->method == DPI_METHOD_AMIN)
        snprintf(text, size, "%s: private tokens at temperature %.10g, of %d; public ones at "
                             "temperature %.10g, Top-k with k = %d", name, o->tau, o->n_vocab,
                 o->tau_public > 0 ? o->tau_public : o->tau, o->top_k);
    else
        snprintf(text, size, "%s: temperature %.10g, k = %d of %d tokens", name, o->tau, o->top_k,
                 o->n_vocab);
}

static json_t *transparency(const job *j) {
    char method[256];
    method_text(j, method, sizeof method);
    return json_pack("{s:s, s:s, s:s, s:s}",
        "method", method,
        "randomness", j->sampler.random ? "--seed: reproducible, and so insecure"
                                        : "getrandom(2), fresh for every draw",
        "proofs", "dp/PRIVACY.md of the source code, from each claim to its proof, its function "
                  "and its test",
        "verification", "'dpinfer verify' computes all sections but parameters, software and model "
                        "a second time from the parameters, and with --model the hashes. That the "
                        "run took place as the parameters say is the operator's word.");
}

static const char *compiler(void) {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

json_t *report_software(void) {
    char hex[HASH_HEX + 1];
    int64_t n_bytes;
    bool hashed = hash_file("/proc/self/exe", hex, &n_bytes);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?}", "program", "dpinfer", "version",
                     dpi_version(), "commit", DPI_COMMIT, "compiler", compiler(), "build",
                     DPI_BUILD_TYPE, "sha256", hashed ? hex : NULL);
}

/* Files of the model: the number in split.count, 1 without it. */
static int64_t count_files(const dpi_model *model) {
    const char *key, *type;
    char value[32];
    for (int64_t i = 0; i < dpi_model_metadata_count(model); i++)
        if (dpi_model_metadata_get(model, i, &key, &type, value, sizeof value, NULL) ==
                DPI_STATUS_OK && strcmp(key, "split.count") == 0)
            return strtoll(value, NULL, 10);
    return 1;
}

int report_model(const job *j, const char *path, json_t **model) {
    json_t *files;
    int code = hash_model(path, count_files(j->model), &files);
    if (code != CLI_OK)
        return code;
    *model = json_pack("{s:o, s:b, s:o}", "name", facts_string(j->info.name), "random_weights",
                       j->info.random_weights, "files", files);
    return *model ? CLI_OK : cli_fail(CLI_FAILED, "out of memory for the report");
}

/* ---- All of it ------------------------------------------------------------------------------ */

json_t *report_make(const job *j, bool complete, json_t *software, json_t *model) {
    return json_pack("{s:i, s:b, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "dpinfer_report", REPORT_SCHEMA,
        "private", j->is_private,
        "label", j->is_private ? "PRIVATE" : j->warning,
        "complete", complete,
        "dp_setting", dp_setting(j),
        "dp_definition", dp_definition(j),
        "accounting", accounting(j),
        "statement", formal_statement(j),
        "parameters", report_parameters(j),
        "realised", realised(j),
        "transparency", transparency(j),
        "software", software,
        "model", model);
}
