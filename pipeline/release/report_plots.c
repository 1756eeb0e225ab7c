/* report_plots.c - the plots of a report, as SVG: no script, nothing from outside. Functions of the
 * report's JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/text.h"
#include "pipeline/release/report.h"

enum { WIDTH = 640, LEFT = 60, RIGHT = 620 };

static double real_of(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static void begin(dpi_text *t, int height, const char *title) {
    dpi_text_add(t,
                 "<figure><figcaption>%s</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" "
                 "aria-label=\"%s\">\n",
                 title, WIDTH, height, title);
}

static void end(dpi_text *t) { dpi_text_add(t, "</svg></figure>\n"); }

static void put_rect(dpi_text *t, const char *kind, double x, double y, double width,
                     double height) {
    dpi_text_add(t, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                 kind, x, y, width > 0 ? width : 0, height > 0 ? height : 0);
}

static void put_line(dpi_text *t, const char *kind, double x1, double y1, double x2, double y2) {
    dpi_text_add(t, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", kind,
                 x1, y1, x2, y2);
}

/* anchor: start, middle or end. */
static void put_label(dpi_text *t, double x, double y, const char *anchor, const char *label) {
    dpi_text_add(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    dpi_report_html_text(t, label);
    dpi_text_add(t, "</text>\n");
}

/* ---- A guess --------------------------------------------------------------------------------- */

void dpi_report_plot_guess(dpi_text *t, const json_t *report) {
    const json_t *plain = json_object_get(report, "plain");
    const double after = real_of(plain, "guess_after");
    const double scale = RIGHT - LEFT;
    char text[64];
    if (!json_is_real(json_object_get(plain, "guess_after")))
        return;
    begin(t, 96, "How often a guess about one of them is right, in 100 cases");
    put_rect(t, "all", LEFT, 34, scale, 22);
    put_rect(t, "before", LEFT, 34, .5 * scale, 22);
    put_rect(t, "more", LEFT + .5 * scale, 34, (after - .5) * scale, 22);
    put_label(t, LEFT + .5 * scale, 24, "middle", "without the texts: 50");
    dpi_format(text, sizeof text, "with them, at most: %.1f", ceil(after * 1000 - 1e-6) / 10);
    put_label(t, LEFT + after * scale, 76, after > .8 ? "end" : "middle", text);
    put_label(t, LEFT, 76, "start", "0");
    put_label(t, RIGHT, 24, "end", "100");
    end(t);
}

/* ---- The budget ------------------------------------------------------------------------------ */

void dpi_report_plot_budget(dpi_text *t, const json_t *report) {
    const json_t *ledger = json_object_get(json_object_get(report, "follows"), "ledger");
    const double budget = real_of(ledger, "budget");
    const double charge = real_of(ledger, "charge") / budget;
    const double after = real_of(ledger, "after") / budget;
    const double before = after > charge ? after - charge : 0, scale = RIGHT - LEFT;
    char text[64];
    if (!(budget > 0))
        return;
    begin(t, 96, "The budget of the dataset, before and after this run");
    put_rect(t, "all", LEFT, 34, scale, 22);
    put_rect(t, "before", LEFT, 34, before * scale, 22);
    put_rect(t, "more", LEFT + before * scale, 34, (after - before) * scale, 22);
    dpi_format(text, sizeof text, "before: %.1f %%", 100 * before);
    put_label(t, LEFT + before * scale, 24,
              before > .8   ? "end"
              : before < .2 ? "start"
                            : "middle",
              text);
    dpi_format(text, sizeof text, "after: %.1f %%", 100 * after);
    put_label(t, LEFT + after * scale, 76,
              after > .8   ? "end"
              : after < .2 ? "start"
                           : "middle",
              text);
    put_label(t, RIGHT, 24, "end", "100 %");
    end(t);
}

/* Seconds of a date such as 2026-01-31T23:59:59Z, of a calendar in which all months have 31 days:
 * near enough for a plot. */
static double seconds_of(const char *date) {
    int y = 0, mo = 1, d = 1, h = 0, mi = 0, s = 0;
    if (!date || sscanf(date, "%4d-%2d-%2dT%2d:%2d:%2d", &y, &mo, &d, &h, &mi, &s) != 6)
        return 0;
    return ((((y * 12. + mo) * 31 + d) * 24 + h) * 60 + mi) * 60 + s;
}

static const char *date_of(const json_t *charges, size_t i) {
    return json_string_value(json_object_get(json_array_get(charges, i), "date"));
}

void dpi_report_plot_charges(dpi_text *t, const json_t *report) {
    const json_t *charges = json_object_get(report, "charges");
    const double budget = real_of(json_object_get(json_object_get(report, "follows"), "ledger"), "budget");
    const size_t n = json_array_size(charges);
    const double top = 30, bottom = 190;
    if (n == 0 || !(budget > 0))
        return;
    const double first = seconds_of(date_of(charges, 0));
    const double span = seconds_of(date_of(charges, n - 1)) - first;
    double x = LEFT, y = bottom;
    char day[11];
    begin(t, 230, "The budget over time");
    put_line(t, "limit", LEFT, top, RIGHT, top);
    put_label(t, LEFT - 6, top + 4, "end", "100 %");
    put_label(t, LEFT - 6, bottom + 4, "end", "0");
    put_line(t, "axis", LEFT, bottom, RIGHT, bottom);
    dpi_text_add(t, "<path class=\"sum\" d=\"M %.1f %.1f", x, y);
    for (size_t i = 0; i < n; i++) {
        const double share = real_of(json_array_get(charges, i), "after") / budget;
        const double at = span > 0 ? (seconds_of(date_of(charges, i)) - first) / span
                                   : (double)(i + 1) / (double)(n + 1);
        x = LEFT + (at < 0 ? 0 : at > 1 ? 1 : at) * (RIGHT - LEFT - 20) + 10;
        dpi_text_add(t, " H %.1f", x);
        y = bottom - (share < 0 ? 0 : share > 1 ? 1 : share) * (bottom - top);
        dpi_text_add(t, " V %.1f", y);
    }
    dpi_text_add(t, " H %d\"/>\n", RIGHT);
    dpi_text_add(t, "<circle class=\"sum\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", x, y);
    snprintf(day, sizeof day, "%s", date_of(charges, 0));
    put_label(t, LEFT, bottom + 22, "start", day);
    snprintf(day, sizeof day, "%s", date_of(charges, n - 1));
    put_label(t, RIGHT, bottom + 22, "end", day);
    end(t);
}

/* ---- The texts ------------------------------------------------------------------------------- */

void dpi_report_plot_lengths(dpi_text *t, const json_t *report) {
    const json_t *output = json_object_get(report, "output");
    const json_t *lengths = json_object_get(output, "lengths");
    const size_t n = json_array_size(lengths);
    const double top = 24, bottom = 150, step = (double)(RIGHT - LEFT) / (double)(n ? n : 1);
    double most = 1;
    char text[64];
    size_t i;
    json_t *count;
    if (n == 0)
        return;
    json_array_foreach(lengths, i, count) most =
        json_number_value(count) > most ? json_number_value(count) : most;
    begin(t, 186, "How long the texts are, in tokens");
    json_array_foreach(lengths, i, count) {
        const double height = json_number_value(count) / most * (bottom - top);
        put_rect(t, "before", LEFT + (double)i * step + 1, bottom - height, step - 2, height);
    }
    put_line(t, "axis", LEFT, bottom, RIGHT, bottom);
    dpi_format(text, sizeof text, "%.0f", most);
    put_label(t, LEFT - 6, top + 4, "end", text);
    put_label(t, LEFT, bottom + 20, "start", "1");
    dpi_format(text, sizeof text, "%.0f", real_of(output, "tokens_most"));
    put_label(t, RIGHT, bottom + 20, "end", text);
    end(t);
}

void dpi_report_plot_labels(dpi_text *t, const json_t *report) {
    enum { ROW = 24, SHOWN = 40 };
    const json_t *labels = json_object_get(json_object_get(report, "output"), "labels");
    const size_t n = json_object_size(labels);
    const double left = 200;
    double most = 1, y = 10;
    const char *label;
    json_t *count;
    int left_over = SHOWN;
    char text[64];
    if (n == 0)
        return;
    json_object_foreach((json_t *)labels, label, count) most =
        json_number_value(count) > most ? json_number_value(count) : most;
    begin(t, (int)(n < SHOWN ? n : SHOWN) * ROW + 16, "Texts of each label");
    json_object_foreach((json_t *)labels, label, count) {
        if (left_over-- == 0)
            break;
        put_label(t, left - 8, y + 14, "end", label);
        put_rect(t, "before", left, y, json_number_value(count) / most * (RIGHT - left - 50),
                 ROW - 6);
        dpi_format(text, sizeof text, "%.0f", json_number_value(count));
        put_label(t, left + json_number_value(count) / most * (RIGHT - left - 50) + 6, y + 14,
                  "start", text);
        y += ROW;
    }
    end(t);
}
