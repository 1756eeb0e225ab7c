/* report_render.c - the reports of other things than a run (texts of an adapter, private evolution,
 * perturbed words) in Markdown or as a page of HTML: each section of the JSON as a table, so that
 * the forms cannot differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "pipeline/release/report.h"

enum { DEPTH_MAX = 4, BYTES_MAX = 1 << 20, PATH_MAX_BYTES = 96 };

typedef struct page {
    dpi_text text;
    bool is_html, in_table;
} page;

static void put_string(page *p, const char *s) {
    if (p->is_html)
        dpi_draw_text(dpi_report_draw(&p->text), s);
    else
        dpi_report_markdown_text(&p->text, s);
}

static void end_table(page *p) {
    if (p->in_table && p->is_html)
        dpi_text_add(&p->text, "</table>\n");
    p->in_table = false;
}

/* "model_files" as "Model files". */
static void put_heading(page *p, const char *key) {
    end_table(p);
    dpi_text_add(&p->text, p->is_html ? "<h2>" : "\n## ");
    for (const char *c = key; *c; c++) {
        const char first = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        const char shown[] = {c == key ? first : *c == '_' ? ' ' : *c, '\0'};
        put_string(p, shown);
    }
    dpi_text_add(&p->text, p->is_html ? "</h2>\n" : "\n");
}

/* An epsilon that JSON has as null is infinite. */
static void put_value(page *p, const char *key, const json_t *value) {
    char text[40];
    if (json_is_string(value)) {
        put_string(p, json_string_value(value));
    } else if (json_is_null(value) && strncmp(key, "epsilon", 7) == 0) {
        dpi_text_add(&p->text, "infinite: no guarantee");
    } else {
        dpi_report_value(key, value, text, sizeof text);
        dpi_text_add(&p->text, "%s", text);
    }
}

static void put_row(page *p, const char *path, const char *key, const json_t *value) {
    if (!p->in_table)
        dpi_text_add(&p->text, p->is_html ? "<table>\n" : "\n| what | value |\n|---|---|\n");
    p->in_table = true;
    dpi_text_add(&p->text, p->is_html ? "<tr><td>" : "| ");
    put_string(p, path);
    dpi_text_add(&p->text, p->is_html ? "</td><td>" : " | ");
    put_value(p, key, value);
    dpi_text_add(&p->text, p->is_html ? "</td></tr>\n" : " |\n");
}

/* Every value below `value`, in the order of the file; path: where it is in its section. */
static void put_rows(page *p, const char *path, const char *key, const json_t *value, int depth) {
    const size_t n = json_is_array(value) ? json_array_size(value) : 0;
    char below[PATH_MAX_BYTES];
    const char *name;
    json_t *member;
    if (depth > DEPTH_MAX || (!json_is_object(value) && !json_is_array(value))) {
        put_row(p, path, key, value);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        snprintf(below, sizeof below, "%.60s%s%zu", path, *path ? "." : "", i + 1);
        put_rows(p, below, key, json_array_get(value, i), depth + 1);
    }
    json_object_foreach((json_t *)value, name, member) {
        snprintf(below, sizeof below, "%.60s%s%.30s", path, *path ? "." : "", name);
        put_rows(p, below, name, member, depth + 1);
    }
}

/* A statement in lines stays in lines. */
static void put_lines(page *p, const char *s) {
    if (p->is_html) {
        dpi_text_add(&p->text, "<pre>");
        put_string(p, s);
        dpi_text_add(&p->text, "</pre>\n");
        return;
    }
    for (; *s; s += *s == '\n') {
        const size_t n = strcspn(s, "\n");
        dpi_text_add(&p->text, "\n    %.*s", (int)n, s); /* indented: code, without markup */
        s += n;
    }
    dpi_text_add(&p->text, "\n");
}

/* Each kind says it in a place of its own. */
static bool is_private(const json_t *report) {
    const char *label = json_string_value(json_object_get(report, "label"));
    const json_t *statement = json_object_get(report, "statement");
    const json_t *flag = json_object_get(json_object_get(report, "realised"), "private");
    return label  ? strcmp(label, "PRIVATE") == 0
           : flag ? json_is_true(flag)
                  : json_is_number(json_object_get(statement, "epsilon_document"));
}

static void put_report(page *p, const json_t *report) {
    const bool ok = is_private(report), early = json_is_false(json_object_get(report, "complete"));
    const json_t *statement = json_object_get(report, "statement");
    const char *key;
    json_t *value;
    if (p->is_html)
        dpi_text_add(&p->text,
                     "<h1>Privacy report</h1>\n<p><span class=\"label%s\">%s</span></p>\n",
                     ok ? "" : " no", ok ? "PRIVATE" : "NOT PRIVATE");
    else
        dpi_text_add(&p->text, "# Privacy report%s\n", ok ? "" : ": NOT PRIVATE");
    if (early)
        dpi_text_add(&p->text, "%sThe run stopped early. The guarantee and its cost are those of "
                               "the whole run.%s", p->is_html ? "<p class=\"early\">" : "\n",
                     p->is_html ? "</p>\n" : "\n");
    json_object_foreach((json_t *)report, key, value)
        if (!json_is_object(value) && !json_is_array(value) && !json_is_null(value) &&
            value != statement)
            put_row(p, key, key, value);
    put_heading(p, "statement");
    if (json_is_string(statement))
        put_lines(p, json_string_value(statement));
    else
        put_rows(p, "", "statement", statement, 0);
    json_object_foreach((json_t *)report, key, value)
        if ((json_is_object(value) || json_array_size(value) > 0) && value != statement) {
            put_heading(p, key);
            put_rows(p, "", key, value, 0);
        }
    end_table(p);
    dpi_text_add(&p->text, "%s'dpinfer verify' computes the guarantee again from this report's "
                           "JSON.%s", p->is_html ? "<p>" : "\n", p->is_html ? "</p>\n" : "\n");
}

dpi_status dpi_report_render(const char *json, size_t n_bytes, int32_t format, char **text,
                             size_t *n_text, dpi_error *err) {
    page p = {.is_html = format == DPI_REPORT_HTML};
    json_error_t error;
    if (!json || !text || !n_text || (format != DPI_REPORT_MARKDOWN && format != DPI_REPORT_HTML))
        return dpi_fail(err, DPI_STATUS_ARG, "a report is rendered as Markdown or HTML: format is "
                                             "%d, allowed 1, 2", format);
    if (n_bytes > BYTES_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "a report of %zu bytes, allowed %d", n_bytes,
                        BYTES_MAX);
    json_t *report = json_loadb(json, n_bytes, 0, &error);
    const bool has_statement = json_object_get(report, "statement") != NULL;
    if (has_statement && p.is_html)
        dpi_draw_page_begin(dpi_report_draw(&p.text), "Privacy report");
    if (has_statement)
        put_report(&p, report);
    if (has_statement && p.is_html)
        dpi_draw_page_end(dpi_report_draw(&p.text));
    json_decref(report);
    if (!has_statement)
        return dpi_fail(err, DPI_STATUS_FORMAT, "the report is no JSON object with a statement");
    if (p.text.failed) {
        free(p.text.data);
        return dpi_no_memory(err, "the report");
    }
    *text = p.text.data;
    *n_text = p.text.n_bytes;
    return DPI_STATUS_OK;
}
