/* report_md.c - a report in Markdown: the JSON object in the order of the checklist, so that the
 * two forms cannot differ. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/text.h"
#include "pipeline/release/report.h"

/* Strings may come from a model file: nothing in them is markup. */
static void put_text(dpi_text *f, const char *text) {
    for (; *text; text++) {
        if (strchr("\\`*_{}[]<>#|~", *text))
            dpi_text_add(f, "\\");
        dpi_text_put(f, text, 1);
    }
}

/* Upper bounds are rounded up, never to nearest. */
static bool is_bound(const char *key) {
    static const char *const bounds[] = {"epsilon", "rho", "eta", "rho_token", "rho_total",
                                         "svt_epsilon", "rho_svt", "rho_round", "rho_histogram",
                                         "certificate_epsilon", "certificate_epsilon_finite", NULL};
    return dpi_is_one_of(bounds, key);
}

void dpi_report_value(const char *key, const json_t *value, char *text, size_t size) {
    switch (json_typeof(value)) {
    case JSON_INTEGER:
        snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        if (is_bound(key))
            dpi_bound_text(json_real_value(value), 10, text, size);
        else
            dpi_format(text, size, "%.10g", json_real_value(value));
        break;
    default:
        snprintf(text, size, "%s", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "-");
    }
}

static void put_value(dpi_text *f, const char *key, const json_t *value) {
    char text[40];
    if (json_is_string(value)) {
        put_text(f, json_string_value(value));
        return;
    }
    dpi_report_value(key, value, text, sizeof text);
    dpi_text_add(f, "%s", text);
}

/* "key: value" as an item, a list as items of its own. */
static void put_item(dpi_text *f, const char *label, const char *key, const json_t *value) {
    size_t i;
    json_t *item;
    if (!value || json_is_null(value))
        return;
    dpi_text_add(f, "- **%s:**", label);
    if (json_is_array(value)) {
        dpi_text_add(f, "%s", json_array_size(value) == 0 ? " none" : "");
    } else {
        dpi_text_add(f, " ");
        put_value(f, key, value);
    }
    json_array_foreach(value, i, item) {
        dpi_text_add(f, "\n    - ");
        put_value(f, key, item);
    }
    dpi_text_add(f, "\n");
}

/* One that the model is changed by; NULL: there is none. */
static void put_file(dpi_text *f, const char *is, const json_t *file) {
    if (file)
        dpi_text_add(f, "- **SHA-256 of the %s (%" JSON_INTEGER_FORMAT " bytes):** `%s`\n", is,
                     json_integer_value(json_object_get(file, "n_bytes")),
                     json_string_value(json_object_get(file, "sha256")));
}

static void put_files(dpi_text *f, const json_t *model) {
    const json_t *files = json_object_get(model, "files");
    size_t i;
    json_t *file;
    json_array_foreach(files, i, file)
        dpi_text_add(f, "- **SHA-256 of model file %zu (%" JSON_INTEGER_FORMAT " bytes):** `%s`\n",
                i + 1, json_integer_value(json_object_get(file, "n_bytes")),
                json_string_value(json_object_get(file, "sha256")));
    put_file(f, "adapter", json_object_get(model, "adapter"));
    put_file(f, "control vector", json_object_get(model, "control_vector"));
}

/* Deeper than any section is. */
enum { DEPTH_MAX = 6 };

/* A text with line ends as JSON has it: it stands in one row. */
static void put_leaf(const char *path, const char *key, const json_t *value,
                     dpi_report_row_fn on_row, void *user) {
    const char *text = json_string_value(value);
    size_t n;
    if (!text || !strpbrk(text, "\n\r\t")) {
        on_row(user, path, key, value);
        return;
    }
    char *line = dpi_json_text(value, JSON_ENCODE_ANY, &n);
    json_t *shown = line ? json_string(line) : NULL;
    on_row(user, path, key, shown ? shown : value);
    json_decref(shown);
    free(line);
}

static void flatten(const char *path, const char *key, const json_t *value, int depth,
                    dpi_report_row_fn on_row, void *user) {
    char below[160];
    const char *name, *dot = *path ? "." : "";
    json_t *member;
    size_t i;
    if (depth == DEPTH_MAX || (!json_is_object(value) && !json_is_array(value))) {
        put_leaf(path, key, value, on_row, user);
        return;
    }
    json_array_foreach(value, i, member) {
        snprintf(below, sizeof below, "%.120s%s%zu", path, dot, i + 1);
        flatten(below, key, member, depth + 1, on_row, user);
    }
    json_object_foreach((json_t *)value, name, member) {
        snprintf(below, sizeof below, "%.100s%s%.40s", path, dot, name);
        flatten(below, name, member, depth + 1, on_row, user);
    }
}

void dpi_report_flatten(const json_t *section, dpi_report_row_fn on_row, void *user) {
    flatten("", "", section, 0, on_row, user);
}

static void put_row(void *user, const char *path, const char *key, const json_t *value) {
    dpi_text *f = user;
    dpi_text_add(f, "| ");
    put_text(f, path);
    dpi_text_add(f, " | ");
    put_value(f, key, value);
    dpi_text_add(f, " |\n");
}

/* Every value of a section, in a table. */
static void put_table(dpi_text *f, const char *title, const json_t *section) {
    if (json_object_size(section) == 0)
        return;
    dpi_text_add(f, "\n| %s | value |\n|---|---|\n", title);
    dpi_report_flatten(section, put_row, f);
}

const dpi_report_row dpi_report_rows[] = {
    {"1. DP setting", "dp_setting", "model", "Setting"},
    {NULL, "dp_setting", "trust", "Trust"},
    {"2. Instantiating the DP definition", "dp_definition", "accesses_covered",
     "(a) Data accesses covered"},
    {NULL, "dp_definition", "accesses_not_covered", "Not covered"},
    {NULL, "dp_definition", "mechanism_output", "(b) Final mechanism output"},
    {NULL, "dp_definition", "unit", "(c) Unit of privacy"},
    {NULL, "dp_definition", "neighbours", "(d) Adjacency"},
    {NULL, "dp_definition", "neighbours_meaning", "Which means"},
    {NULL, "dp_definition", "composition", "Composition"},
    {"3. Privacy accounting", "accounting", "type", "(a) Type of accounting"},
    {NULL, "accounting", "assumptions", "(b) Assumptions"},
    {NULL, "statement", "text", "(c) Formal DP statement"},
    {NULL, "statement", "epsilon", "epsilon"},
    {NULL, "statement", "delta", "delta"},
    {NULL, "statement", "rho", "rho (zCDP)"},
    {"4. Transparency and verifiability", "transparency", "method", "Method"},
    {NULL, "transparency", "randomness", "Randomness"},
    {NULL, "transparency", "proofs", "Proofs"},
    {NULL, "transparency", "verification", "Verification"},
    {NULL, "software", "version", "Version of dpinfer"},
    {NULL, "software", "commit", "Source commit"},
    {NULL, "software", "compiler", "Compiler"},
    {NULL, "software", "build", "Build"},
    {NULL, "software", "sha256", "SHA-256 of the program"},
    {NULL, "model", "name", "Model"},
    {NULL, "model", "random_weights", "Random weights"},
};

size_t dpi_report_row_count(void) { return sizeof dpi_report_rows / sizeof *dpi_report_rows; }

/* What was done, in words, before the checklist. */
static void put_plain(dpi_text *f, const json_t *report) {
    const json_t *plain = json_object_get(report, "plain");
    const char *key;
    json_t *value;
    dpi_text_add(f, "\n## In plain words\n\n");
    json_object_foreach(json_object_get(report, "meta"), key, value) {
        dpi_text_add(f, "- **");
        put_text(f, key);
        dpi_text_add(f, ":** ");
        put_text(f, json_string_value(value));
        dpi_text_add(f, "\n");
    }
    put_item(f, "What was done", "done", json_object_get(plain, "done"));
    put_item(f, "What can be learnt about one of them", "learnt", json_object_get(plain, "learnt"));
    put_item(f, "Budget", "budget", json_object_get(plain, "budget"));
    put_item(f, "Not covered", "not_covered", json_object_get(plain, "not_covered"));
}

static void put_count(dpi_text *t, const json_t *output, const char *key, const char *format) {
    const json_t *value = json_object_get(output, key);
    char count[24];
    if (!json_is_integer(value))
        return;
    snprintf(count, sizeof count, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    for (const char *c = format; *c; c++)
        dpi_text_put(t, *c == '#' ? count : c, *c == '#' ? strlen(count) : 1);
}

void dpi_report_put_texts(dpi_text *t, const json_t *output) {
    put_count(t, output, "texts", "# texts");
    put_count(t, output, "tokens", " of # tokens in all");
    put_count(t, output, "ended", "; # came to an end of their own");
    put_count(t, output, "at_max_words", ", # of them at --max-words");
    put_count(t, output, "alike", "; # are near copies of another one");
    dpi_text_add(t, ".");
}

static void put_output(dpi_text *f, const json_t *output) {
    if (!json_is_object(output))
        return;
    dpi_text_add(f, "- **The texts:** ");
    dpi_report_put_texts(f, output);
    dpi_text_add(f, "\n");
    dpi_text_add(f, "- **SHA-256 of the output (%" JSON_INTEGER_FORMAT " bytes, %"
                    JSON_INTEGER_FORMAT " texts):** `%s`\n",
                 json_integer_value(json_object_get(output, "n_bytes")),
                 json_integer_value(json_object_get(output, "texts")),
                 json_string_value(json_object_get(output, "sha256")));
}

static void put_report(dpi_text *f, const json_t *report) {
    const bool is_private = json_is_true(json_object_get(report, "private"));
    dpi_text_add(f, "# Privacy report%s\n\n**", is_private ? "" : ": NOT PRIVATE");
    put_text(f, json_string_value(json_object_get(report, "label")));
    dpi_text_add(f,
                 "**\n\nThe checklist of Ponomareva et al. 2023, \"How to DP-fy ML\", section "
                 "5.3.3, for work of dpinfer. Form %" JSON_INTEGER_FORMAT ".\n",
                 json_integer_value(json_object_get(report, "dpinfer_report")));
    if (!json_is_true(json_object_get(report, "complete")))
        dpi_text_add(f,
                     "\nThe work stopped early. The guarantee and its cost are those of all of "
                     "it.\n");
    put_plain(f, report);
    for (size_t i = 0; i < dpi_report_row_count(); i++) {
        const dpi_report_row *row = &dpi_report_rows[i];
        if (row->heading)
            dpi_text_add(f, "\n## %s\n\n", row->heading);
        put_item(f, row->label, row->key,
                 json_object_get(json_object_get(report, row->section), row->key));
    }
    put_output(f, json_object_get(report, "output"));
    put_files(f, json_object_get(report, "model"));
    dpi_text_add(f, "\n## The claim and what follows from it\n");
    put_table(f, "claim", json_object_get(report, "claim"));
    put_table(f, "wording", json_object_get(report, "wording"));
    put_table(f, "follows", json_object_get(report, "follows"));
}

char *dpi_report_markdown(const json_t *report) {
    dpi_text text = {0};
    put_report(&text, report);
    if (!text.failed)
        return text.data;
    free(text.data);
    return NULL;
}
