/* report_md.c - a report in Markdown: the JSON object in the order of the checklist, so that the
 * two forms cannot differ. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/facts.h"
#include "tools/report.h"

/* Strings may come from a model file: nothing in them is markup. */
static void put_text(FILE *f, const char *text) {
    for (; *text; text++) {
        if (strchr("\\`*_{}[]<>#|~", *text))
            fputc('\\', f);
        fputc(*text, f);
    }
}

/* Upper bounds are rounded up, never to nearest. */
static bool is_bound(const char *key) {
    static const char *const bounds[] = {"epsilon", "rho", "eta", "rho_token", "rho_total",
                                         "svt_epsilon", "rho_svt"};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (strcmp(key, bounds[i]) == 0)
            return true;
    return false;
}

static void put_value(FILE *f, const char *key, const json_t *value) {
    char text[40];
    switch (json_typeof(value)) {
    case JSON_STRING:
        put_text(f, json_string_value(value));
        break;
    case JSON_INTEGER:
        fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        if (is_bound(key))
            facts_round_up(json_real_value(value), 10, text, sizeof text);
        else
            snprintf(text, sizeof text, "%.10g", json_real_value(value));
        fputs(text, f);
        break;
    case JSON_TRUE:
        fputs("yes", f);
        break;
    case JSON_FALSE:
        fputs("no", f);
        break;
    default:
        fputs("-", f);
    }
}

/* "key: value" as an item, a list as items of its own. */
static void put_item(FILE *f, const char *label, const char *key, const json_t *value) {
    size_t i;
    json_t *item;
    if (!value || json_is_null(value))
        return;
    fprintf(f, "- **%s:**", label);
    if (json_is_array(value)) {
        fputs(json_array_size(value) == 0 ? " none" : "", f);
    } else {
        fputc(' ', f);
        put_value(f, key, value);
    }
    json_array_foreach(value, i, item) {
        fputs("\n    - ", f);
        put_value(f, key, item);
    }
    fputc('\n', f);
}

static void put_files(FILE *f, const json_t *files) {
    size_t i;
    json_t *file;
    json_array_foreach(files, i, file)
        fprintf(f, "- **SHA-256 of model file %zu (%" JSON_INTEGER_FORMAT " bytes):** `%s`\n",
                i + 1, json_integer_value(json_object_get(file, "n_bytes")),
                json_string_value(json_object_get(file, "sha256")));
}

/* Every value of a section, in a table. */
static void put_table(FILE *f, const char *title, const json_t *section) {
    const char *key;
    json_t *value;
    if (json_object_size(section) == 0)
        return;
    fprintf(f, "\n| %s | value |\n|---|---|\n", title);
    json_object_foreach((json_t *)section, key, value) {
        fputs("| ", f);
        put_text(f, key);
        fputs(" | ", f);
        put_value(f, key, value);
        fputs(" |\n", f);
    }
}

/* Headings, and the values that stand below them. */
static const struct row {
    const char *heading, *section, *key, *label;
} rows[] = {
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

static void put_report(FILE *f, const json_t *report) {
    const bool is_private = json_is_true(json_object_get(report, "private"));
    fprintf(f, "# Privacy report%s\n\n**", is_private ? "" : ": NOT PRIVATE");
    put_text(f, json_string_value(json_object_get(report, "label")));
    fprintf(f, "**\n\nThe checklist of Ponomareva et al. 2023, \"How to DP-fy ML\", section 5.3.3, "
               "for a run of dpinfer. Form %" JSON_INTEGER_FORMAT ".\n",
            json_integer_value(json_object_get(report, "dpinfer_report")));
    if (!json_is_true(json_object_get(report, "complete")))
        fputs("\nThe run stopped early. The guarantee and its cost are those of the whole run.\n",
              f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].heading)
            fprintf(f, "\n## %s\n\n", rows[i].heading);
        put_item(f, rows[i].label, rows[i].key,
                 json_object_get(json_object_get(report, rows[i].section), rows[i].key));
    }
    put_files(f, json_object_get(json_object_get(report, "model"), "files"));
    fputs("\n## Parameters and what they come to\n", f);
    put_table(f, "parameter", json_object_get(report, "parameters"));
    put_table(f, "realised", json_object_get(report, "realised"));
}

char *report_markdown(const json_t *report) {
    char *text = NULL;
    size_t n_text;
    FILE *f = open_memstream(&text, &n_text);
    if (!f)
        return NULL;
    put_report(f, report);
    bool failed = ferror(f);
    if (fclose(f) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}
