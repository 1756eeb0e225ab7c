/* report_html.c - a report as one page of HTML: plain words and plots first, then the checklist.
 * The JSON object in another form, so that the two cannot differ. */
#include <stdlib.h>

#include "base/text.h"
#include "pipeline/release/report.h"

/* Strings come from model files, the operator and the ledger: nothing in them is markup. */
static void put_text(dpi_text *t, const char *s) { dpi_draw_text(dpi_report_draw(t), s); }

static const json_t *get(const json_t *report, const char *section, const char *key) {
    return json_object_get(json_object_get(report, section), key);
}

static void put_string(dpi_text *t, const json_t *value) {
    const char *s = json_string_value(value);
    put_text(t, s ? s : "-");
}

static void put_value(dpi_text *t, const char *key, const json_t *value) {
    char text[40];
    if (json_is_string(value)) {
        put_string(t, value);
        return;
    }
    dpi_report_value(key, value, text, sizeof text);
    dpi_text_add(t, "%s", text);
}

static void put_list(dpi_text *t, const json_t *list) {
    size_t i;
    json_t *item;
    if (json_array_size(list) == 0) {
        dpi_text_add(t, "none");
        return;
    }
    dpi_text_add(t, "<ul>");
    json_array_foreach(list, i, item) {
        dpi_text_add(t, "<li>");
        put_string(t, item);
        dpi_text_add(t, "</li>");
    }
    dpi_text_add(t, "</ul>");
}

static void put_pair(dpi_text *t, const char *label, const char *key, const json_t *value) {
    if (!value || json_is_null(value))
        return;
    dpi_text_add(t, "<dt>");
    put_text(t, label);
    dpi_text_add(t, "</dt><dd>");
    if (json_is_array(value))
        put_list(t, value);
    else
        put_value(t, key, value);
    dpi_text_add(t, "</dd>\n");
}

/* ---- The first page -------------------------------------------------------------------------- */

static void put_meta(dpi_text *t, const json_t *meta) {
    const char *key;
    json_t *value;
    if (json_object_size(meta) == 0)
        return;
    dpi_text_add(t, "<dl>\n");
    json_object_foreach((json_t *)meta, key, value) put_pair(t, key, key, value);
    dpi_text_add(t, "</dl>\n");
}

static void put_paragraph(dpi_text *t, const char *heading, const json_t *text) {
    dpi_text_add(t, "<h2>%s</h2>\n<p>", heading);
    put_string(t, text);
    dpi_text_add(t, "</p>\n");
}

static void put_first(dpi_text *t, const json_t *report) {
    const bool is_private = json_is_true(json_object_get(report, "private"));
    dpi_text_add(t,
                 "<section class=\"first\">\n<h1>Privacy report</h1>\n<p><span class=\"label%s\">",
                 is_private ? "" : " no");
    put_string(t, json_object_get(report, "label"));
    dpi_text_add(t, "</span></p>\n");
    if (!json_is_true(json_object_get(report, "complete")))
        dpi_text_add(t, "<p class=\"early\">The work stopped early. The guarantee and its cost are "
                        "those of all of it.</p>\n");
    put_meta(t, json_object_get(report, "meta"));
    put_paragraph(t, "What was done", get(report, "plain", "done"));
    put_paragraph(t, "What can be learnt about one of them", get(report, "plain", "learnt"));
    dpi_report_plot_guess(t, report);
    put_paragraph(t, "Budget", get(report, "plain", "budget"));
    dpi_report_plot_budget(t, report);
    dpi_text_add(t, "<h2>What is not covered</h2>\n");
    put_list(t, get(report, "plain", "not_covered"));
    dpi_text_add(t, "</section>\n");
}

/* ---- The rest -------------------------------------------------------------------------------- */

static void put_checklist(dpi_text *t, const json_t *report) {
    bool open = false;
    dpi_text_add(t,
                 "<p>The checklist of Ponomareva et al. 2023, \"How to DP-fy ML\", section 5.3.3, "
                 "for work of dpinfer. Form %" JSON_INTEGER_FORMAT ".</p>\n",
                 json_integer_value(json_object_get(report, "dpinfer_report")));
    for (size_t i = 0; i < dpi_report_row_count(); i++) {
        const dpi_report_row *row = &dpi_report_rows[i];
        if (row->heading) {
            dpi_text_add(t, "%s<h2>%s</h2>\n<dl>\n", open ? "</dl>\n" : "", row->heading);
            open = true;
        }
        put_pair(t, row->label, row->key, get(report, row->section, row->key));
    }
    dpi_text_add(t, "</dl>\n");
}

static void put_hash(dpi_text *t, const char *name, const json_t *file) {
    dpi_text_add(t, "<tr><td>%s</td><td>%" JSON_INTEGER_FORMAT "</td><td><code>", name,
                 json_integer_value(json_object_get(file, "n_bytes")));
    put_string(t, json_object_get(file, "sha256"));
    dpi_text_add(t, "</code></td></tr>\n");
}

static void put_hashes(dpi_text *t, const json_t *report) {
    const json_t *output = json_object_get(report, "output");
    size_t i;
    json_t *file;
    dpi_text_add(t,
                 "<h2>Files</h2>\n<table><tr><th>file</th><th>bytes</th><th>SHA-256</th></tr>\n");
    if (json_is_object(output))
        put_hash(t, "output, the texts", output);
    json_array_foreach(get(report, "model", "files"), i, file) put_hash(t, "model", file);
    if (get(report, "model", "adapter"))
        put_hash(t, "adapter", get(report, "model", "adapter"));
    if (get(report, "model", "control_vector"))
        put_hash(t, "control vector", get(report, "model", "control_vector"));
    dpi_text_add(t, "</table>\n");
}

static void put_texts(dpi_text *t, const json_t *report) {
    const json_t *output = json_object_get(report, "output");
    if (!json_is_object(output))
        return;
    dpi_text_add(t, "<h2>The texts</h2>\n<p>");
    dpi_report_put_texts(t, output);
    dpi_text_add(t, "</p>\n");
    dpi_report_plot_labels(t, report);
    dpi_report_plot_lengths(t, report);
}

static void put_row(void *user, const char *path, const char *key, const json_t *value) {
    dpi_text *t = user;
    dpi_text_add(t, "<tr><td>");
    put_text(t, path);
    dpi_text_add(t, "</td><td>");
    put_value(t, key, value);
    dpi_text_add(t, "</td></tr>\n");
}

static void put_table(dpi_text *t, const char *title, const json_t *section) {
    if (json_object_size(section) == 0)
        return;
    dpi_text_add(t, "<h2>%s</h2>\n<table>\n", title);
    dpi_report_flatten(section, put_row, t);
    dpi_text_add(t, "</table>\n");
}

char *dpi_report_html(const json_t *report) {
    dpi_text t = {0};
    dpi_draw_page_begin(dpi_report_draw(&t), "Privacy report");
    put_first(&t, report);
    put_texts(&t, report);
    if (json_array_size(json_object_get(report, "charges")) > 0)
        dpi_text_add(&t, "<h2>The dataset's runs</h2>\n");
    dpi_report_plot_charges(&t, report);
    put_checklist(&t, report);
    put_hashes(&t, report);
    put_table(&t, "Claim", json_object_get(report, "claim"));
    put_table(&t, "How texts are worded", json_object_get(report, "wording"));
    put_table(&t, "What follows", json_object_get(report, "follows"));
    dpi_draw_page_end(dpi_report_draw(&t));
    if (!t.failed)
        return t.data;
    free(t.data);
    return NULL;
}
