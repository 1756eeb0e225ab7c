/* report_sections.c - the sections of a report as functions of its claim, in the order of the
 * checklist. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dp/mechanism/samplers.h"
#include "dpinfer/ledger.h"
#include "pipeline/run.h"
#include "pipeline/release/report.h"

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

static bool is_local(const dpi_claim *c) { return c->adjacency == DPI_ADJACENCY_WORD; }
static bool is_proven(const dpi_claim *c) { return isfinite(c->epsilon); }

/* ---- 1. DP setting -------------------------------------------------------------------------- */

static json_t *dp_setting(const dpi_claim *c) {
    if (!is_proven(c))
        return json_pack("{s:n, s:s}", "model", "trust",
                         c->no_records
                             ? "none: the texts are those of the public prompt, and no record was "
                               "used"
                             : "none: whoever sees what is released may learn what is in the "
                               "records");
    if (is_local(c))
        return json_pack("{s:s, s:s}", "model", "local", "trust",
            "Nobody but this program sees a document. Whoever sees what is released is not "
            "trusted: they may know the vocabulary, every option and all other documents, and are "
            "not bounded in computation.");
    return json_pack("{s:s, s:s}", "model", "central", "trust",
        "The operator, who runs the program and may read the records, is trusted to give the "
        "records to this program, to keep its memory, its time and its random bits from others, "
        "and to release nothing but its output. Whoever sees the output is not trusted: they may "
        "know the model, every option, all other records and all that is released, and are not "
        "bounded in computation.");
}

/* ---- 2. The definition ---------------------------------------------------------------------- */

static json_t *covered(const dpi_claim *c) {
    const char *const all[] = {
        "every use of the records in this work, for all that is released of it together; what ends "
        "early is paid for as a whole",
        NULL};
    return is_proven(c) ? make_list(all) : json_array();
}

static json_t *not_covered(const dpi_claim *c) {
    const bool units = c->max_per_unit > 0;
    const char *const all[] = {
        "the choice of options, prompts, the query and hyper-parameters: inputs, which must not "
        "follow from what is in the records",
        "the choice of the records, for example by a search for the query: the guarantee begins "
        "with the records that the program was given",
        "other work on the same records, also that made to choose options: their costs add up",
        "the data that the model was trained on before",
        "the time and memory that the work took, and what it told its operator on stderr",
        is_local(c) ? "a person in several documents: the unit is the document"
        : units     ? "one person under several unit IDs: the unit is the ID"
                    : "one person in several records: the unit is the record",
        is_local(c) ? "how many words a document has, and which of them are in no vocabulary"
        : c->adjacency == DPI_ADJACENCY_ADD_REMOVE
            ? "what numbers were chosen without the records, such as about how many units there "
              "are: they are public"
        : units ? "the number of units and the order of their first records: they are public"
                : "the number of records, and in a folder the order of the names: they are public",
        NULL};
    const char *const none[] = {"everything", NULL};
    return make_list(is_proven(c) ? all : none);
}

/* "one record = one .txt file; 16 records", without the number where it is secret or there are
 * none. */
static void unit_text(const dpi_claim *c, char *text, size_t size) {
    const bool is_known = c->record_kind != DPI_RECORD_OTHER, units = c->max_per_unit > 0;
    int n = 0;
    if (is_local(c)) {
        snprintf(text, size, "all words of one document");
        return;
    }
    if (units)
        n = snprintf(text, size,
                     "all records with one unit ID, of which %d are used at most, or one without "
                     "an ID, which adds nothing; ", c->max_per_unit);
    n += snprintf(text + n, size - (size_t)n, "one record%s%s", is_known ? " = " : "",
                  is_known ? dpi_record_kind_text(c->record_kind) : "");
    if (c->n_units > 0)
        snprintf(text + n, size - (size_t)n, "; %s%" PRId64 " %s",
                 c->adjacency == DPI_ADJACENCY_ADD_REMOVE ? "about " : "", c->n_units,
                 units ? "units" : "records");
}

/* What all mechanisms release, one after the other. */
static void output_text(const dpi_claim *c, char *text, size_t size) {
    size_t n = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < c->n_parts && n < size; i++) {
        const dpi_mechanism_ops *m = dpi_mechanism_ops_get(c->parts[i].mechanism);
        n += (size_t)snprintf(text + n, size - n, "%s%s%s", i > 0 ? "; " : "", m->output,
                              m->sampler ? m->sampler->info.output : "");
    }
}

static json_t *dp_definition(const dpi_claim *c) {
    const bool proven = is_proven(c);
    char unit[256], output[400];
    unit_text(c, unit, sizeof unit);
    output_text(c, output, sizeof output);
    return json_pack("{s:o, s:o, s:s, s:s, s:s?, s:s?, s:s?}",
        "accesses_covered", covered(c), "accesses_not_covered", not_covered(c),
        "mechanism_output", output, "unit", unit,
        "neighbours", proven ? dpi_adjacency_name(c->adjacency) : NULL,
        "neighbours_meaning", proven ? dpi_claim_meaning(c) : NULL,
        "composition", proven ? dpi_claim_composition(c) : NULL);
}

/* ---- 3. Accounting -------------------------------------------------------------------------- */

static bool append(json_t *list, const char *text) {
    return !text || json_array_append_new(list, json_string(text)) == 0;
}

static bool add_assumptions(json_t *list, const dpi_claim *c, const dpi_claim_part *p) {
    const char *own[DPI_ASSUMPTIONS_MAX + 1];
    const char *const *all = dpi_part_assumptions(c, p, own);
    bool ok = list;
    for (; *all && ok; all++)
        ok = append(list, *all);
    return ok;
}

static void type_text(const dpi_claim *c, char *text, size_t size) {
    dpi_sampler_options o;
    size_t n = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < c->n_parts && n < size; i++) {
        const dpi_mechanism_ops *m = dpi_mechanism_ops_get(c->parts[i].mechanism);
        const char *type = m->accounting ? m->accounting
                           : m->sampler && dpi_claim_sampler(c, &o)
                               ? dpi_accountant_text(o.accountant)
                               : NULL;
        if (type)
            n += (size_t)snprintf(text + n, size - n, "%s%s", n > 0 ? "; " : "", type);
    }
}

static json_t *accounting(const dpi_claim *c) {
    json_t *list = json_array();
    char type[256];
    if (!is_proven(c))
        return json_pack("{s:s, s:o}", "type",
                         c->no_records ? "none"
                                       : "none: no number bounds what can be learnt",
                         "assumptions", list);
    bool ok = list;
    for (int32_t i = 0; i < c->n_parts && ok; i++)
        ok = add_assumptions(list, c, &c->parts[i]);
    ok = ok && append(list, c->randomness != DPI_RANDOMNESS_SYSTEM
                                ? "Independent uniform random bits for each draw. NOT fulfilled: "
                                  "they follow from --seed."
                                : "Independent uniform random bits for each draw. Provided by the "
                                  "operating system, getrandom(2).");
    type_text(c, type, sizeof type);
    if (ok)
        return json_pack("{s:s, s:o}", "type", type, "assumptions", list);
    json_decref(list);
    return NULL;
}

/* The formal statement. Without a guarantee it has no numbers, which could be taken for one. */
static json_t *formal_statement(const dpi_claim *c) {
    char guarantee[128], text[512];
    const bool is_private = dpi_claim_is_private(c);
    dpi_claim_guarantee(c, guarantee, sizeof guarantee);
    if (!is_proven(c))
        snprintf(text, sizeof text, "No guarantee.");
    else if (!is_private)
        snprintf(text, sizeof text, "No guarantee. With secret randomness it would be %s.",
                 guarantee);
    else
        snprintf(text, sizeof text,
                 "All that is released of this work together is %s: for any two %s D and D' that "
                 "are neighbours, and any event E over what is released, Pr[E | D] <= e^epsilon "
                 "Pr[E | D'] + delta, and the same with D and D' exchanged.", guarantee,
                 is_local(c) ? "documents" : "lists of records");
    return json_pack("{s:s, s:o, s:o, s:o}", "text", text,
        "epsilon", is_private ? json_real(c->epsilon) : json_null(),
        "delta", is_private ? json_real(c->delta) : json_null(),
        "rho", is_private && c->rho > 0 ? json_real(c->rho) : json_null());
}

/* ---- 4. Transparency ------------------------------------------------------------------------ */

/* Where the numbers of the pace come from; "" without a pace. */
static void pace_source(const dpi_claim *c, char *text, size_t size) {
    const char *given = dpi_pace_given_name(c->pace_given);
    dpi_sampler_options o;
    text[0] = '\0';
    if (c->pace_texts > 0)
        snprintf(text, size,
                 "found from %d texts that the model drew from the public prompt before a record "
                 "was read; they cost nothing%s%s%s", (int)c->pace_texts, given ? "; " : "",
                 given ? given : "", given ? " was given by the operator" : "");
    else if (dpi_claim_sampler(c, &o) && o.pace != DPI_PACE_NONE)
        snprintf(text, size, "given by the operator: an input, like the other options");
}

/* The same of groups of similar records. */
static void group_source(const dpi_claim *c, char *text, size_t size) {
    text[0] = '\0';
    if (c->cluster_texts > 0)
        snprintf(text, size,
                 "a unit is in the group of the nearest of %d public centroids, found from %d "
                 "texts that the model drew from the public prompt before a record was read; they "
                 "cost nothing",
                 (int)c->n_labels, (int)c->cluster_texts);
}

/* "" where texts have any form. */
static void form_source(const dpi_claim *c, char *text, size_t size) {
    text[0] = '\0';
    if (c->grammar[0])
        snprintf(text, size,
                 "a public grammar (%s) says which tokens may come, by those that were released: "
                 "it costs nothing", c->grammar);
}

/* What was used, with its source; of a sampler with the settings that cost nothing. */
static void method_text(const dpi_claim *c, char *text, size_t size) {
    dpi_sampler_options o;
    dpi_mechanism_info info;
    size_t n = 0;
    for (int32_t i = 0; i < c->n_parts && n < size; i++) {
        dpi_mechanism_info_get(c->parts[i].mechanism, &info);
        if (dpi_mechanism_ops_get(info.id)->sampler && dpi_claim_sampler(c, &o)) {
            dpi_method_settings(&o, text + n, size - n);
            n += strlen(text + n);
        } else {
            n += (size_t)snprintf(text + n, size - n, "%s%s (%s; %s)", n > 0 ? "; " : "",
                                  info.title, info.source, info.proof);
        }
    }
}

static json_t *transparency(const dpi_claim *c) {
    char method[700], pace[200], groups[240], form[160];
    method_text(c, method, sizeof method);
    pace_source(c, pace, sizeof pace);
    group_source(c, groups, sizeof groups);
    form_source(c, form, sizeof form);
    return json_pack("{s:s, s:s?, s:s?, s:s?, s:s, s:s, s:s}",
        "method", method,
        "pace", pace[0] ? pace : NULL,
        "groups", groups[0] ? groups : NULL,
        "form", form[0] ? form : NULL,
        "randomness", c->randomness != DPI_RANDOMNESS_SYSTEM
                          ? "--seed: reproducible, and so insecure"
                          : "getrandom(2), fresh for every draw",
        "proofs", "dp/PRIVACY.md of the source code, from each claim to its proof, its function "
                  "and its test",
        "verification", "'dpinfer verify' computes all sections but claim, wording, prompts, "
                        "software, model, meta, output and charges a second time from the claim; "
                        "with --model and --output the hashes, with --key the signature. That the "
                        "work took place as the claim says is the operator's word.");
}

/* ---- All of it ------------------------------------------------------------------------------ */

json_t *dpi_report_json(const dpi_claim *c, bool complete, json_t *software, json_t *model,
                        json_t *output, const dpi_report_added *added) {
    char label[160];
    dpi_claim_label(c, label, sizeof label);
    return json_pack("{s:i, s:b, s:s, s:b, s:O, s:o, s:o, s:o, s:o, s:o, s:o, s:O, s:O, s:o, s:o, "
                     "s:o, s:o, s:o, s:O}",
        "dpinfer_report", DPI_REPORT_SCHEMA,
        "private", dpi_claim_is_private(c),
        "label", label,
        "complete", complete,
        "meta", added->meta,
        "plain", dpi_report_plain(c),
        "dp_setting", dp_setting(c),
        "dp_definition", dp_definition(c),
        "accounting", accounting(c),
        "statement", formal_statement(c),
        "claim", dpi_claim_json(c),
        "wording", added->wording,
        "prompts", added->prompts,
        "follows", dpi_claim_follows(c),
        "transparency", transparency(c),
        "software", software,
        "model", model,
        "output", output,
        "charges", added->charges);
}
