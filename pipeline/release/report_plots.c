/* report_plots.c - the plots of a report, as SVG: no script, nothing from outside. Functions of the
 * report's JSON. */
#include <math.h>
#include <stdio.h>

#include "base/format.h"
#include "base/text.h"
#include "pipeline/release/report.h"

enum { WIDTH = 640, LEFT = 60, RIGHT = 620 };

static double real_of(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static void write_to_text(void *to, const char *bytes, size_t n_bytes) {
    dpi_text_put(to, bytes, n_bytes);
}

dpi_draw dpi_report_draw(dpi_text *text) { return (dpi_draw){write_to_text, text}; }

/* ---- Shares of a whole ----------------------------------------------------------------------- */

/* A label above or below a share must not leave the plot. */
static const char *anchor_of(double share) {
    return share > .8 ? "end" : share < .2 ? "start" : "middle";
}

/* Two shares of a bar, of which the second is not less. */
static void put_bar(dpi_draw d, const char *title, const char *whole, double before,
                    const char *before_label, double after, const char *after_label) {
    const dpi_frame f = {d, LEFT, RIGHT, 34, 56};
    const double length = RIGHT - LEFT;
    dpi_plot_begin(d, title, WIDTH, 96);
    dpi_plot_bar(d, "rest", LEFT, f.top, length, 22, NULL, NULL);
    dpi_plot_bar(d, "c0", LEFT, f.top, before * length, 22, NULL, NULL);
    dpi_plot_bar(d, "c1", dpi_frame_x(&f, before), f.top, (after - before) * length, 22, NULL,
                 NULL);
    dpi_plot_label(d, NULL, dpi_frame_x(&f, before), 24, anchor_of(before), before_label);
    dpi_plot_label(d, NULL, dpi_frame_x(&f, after), 76, anchor_of(after), after_label);
    dpi_plot_label(d, NULL, RIGHT, 24, "end", whole);
    dpi_plot_end(d);
}

void dpi_report_plot_guess(dpi_text *t, const json_t *report) {
    const json_t *plain = json_object_get(report, "plain");
    const double after = real_of(plain, "guess_after");
    char text[64];
    if (!json_is_real(json_object_get(plain, "guess_after")))
        return;
    dpi_format(text, sizeof text, "with them, at most: %.1f", ceil(after * 1000 - 1e-6) / 10);
    put_bar(dpi_report_draw(t), "How often a guess about one of them is right, in 100 cases", "100",
            .5, "without the texts: 50", after, text);
}

void dpi_report_plot_budget(dpi_text *t, const json_t *report) {
    const json_t *ledger = json_object_get(json_object_get(report, "follows"), "ledger");
    const double budget = real_of(ledger, "budget");
    const double charge = real_of(ledger, "charge") / budget;
    const double after = real_of(ledger, "after") / budget;
    const double before = after > charge ? after - charge : 0;
    char text[2][64];
    if (!(budget > 0))
        return;
    dpi_format(text[0], sizeof text[0], "before: %.1f %%", 100 * before);
    dpi_format(text[1], sizeof text[1], "after: %.1f %%", 100 * after);
    put_bar(dpi_report_draw(t), "The budget of the dataset, before and after this run", "100 %",
            before, text[0], after, text[1]);
}

/* ---- The budget over time -------------------------------------------------------------------- */

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

/* Where charge i of n is on the axis of time, 0 to 1. */
static double time_of(const json_t *charges, size_t i, size_t n) {
    const double first = seconds_of(date_of(charges, 0));
    const double span = seconds_of(date_of(charges, n - 1)) - first;
    const double at = span > 0 ? (seconds_of(date_of(charges, i)) - first) / span
                               : (double)(i + 1) / (double)(n + 1);
    return .02 + .96 * fmin(fmax(at, 0), 1);
}

void dpi_report_plot_charges(dpi_text *t, const json_t *report) {
    const json_t *charges = json_object_get(report, "charges");
    const json_t *follows = json_object_get(report, "follows");
    const double budget = real_of(json_object_get(follows, "ledger"), "budget");
    const size_t n = json_array_size(charges);
    const dpi_frame f = {dpi_report_draw(t), LEFT, RIGHT, 30, 190};
    double x = f.left, y = f.bottom;
    char day[2][11];
    if (n == 0 || !(budget > 0))
        return;
    dpi_plot_begin(f.to, "The budget over time", WIDTH, 230);
    dpi_frame_tick_y(&f, 0, "0");
    dpi_frame_tick_y(&f, 1, "100 %");
    dpi_plot_line(f.to, "limit", f.left, f.top, f.right, f.top);
    dpi_frame_axes(&f);
    dpi_plot_curve_begin(f.to, "c0");
    dpi_plot_curve_point(f.to, x, y);
    for (size_t i = 0; i < n; i++) {
        const double share = real_of(json_array_get(charges, i), "after") / budget;
        x = dpi_frame_x(&f, time_of(charges, i, n));
        dpi_plot_curve_point(f.to, x, y);
        y = dpi_frame_y(&f, fmin(fmax(share, 0), 1));
        dpi_plot_curve_point(f.to, x, y);
    }
    dpi_plot_curve_point(f.to, f.right, y);
    dpi_plot_curve_end(f.to);
    dpi_plot_point(f.to, "c1", x, y);
    snprintf(day[0], sizeof day[0], "%s", date_of(charges, 0));
    snprintf(day[1], sizeof day[1], "%s", date_of(charges, n - 1));
    dpi_plot_label(f.to, NULL, f.left, f.bottom + 22, "start", day[0]);
    dpi_plot_label(f.to, NULL, f.right, f.bottom + 22, "end", day[1]);
    dpi_plot_end(f.to);
}

/* ---- The texts ------------------------------------------------------------------------------- */

void dpi_report_plot_lengths(dpi_text *t, const json_t *report) {
    const json_t *output = json_object_get(report, "output");
    const json_t *lengths = json_object_get(output, "lengths");
    const size_t n = json_array_size(lengths);
    const dpi_frame f = {dpi_report_draw(t), LEFT, RIGHT, 24, 150};
    const double step = (RIGHT - LEFT) / (double)(n ? n : 1);
    double most = 1;
    char text[64];
    size_t i;
    json_t *count;
    if (n == 0)
        return;
    json_array_foreach(lengths, i, count) most = fmax(most, json_number_value(count));
    dpi_plot_begin(f.to, "How long the texts are, in tokens", WIDTH, 186);
    dpi_format(text, sizeof text, "%.0f", most);
    dpi_frame_tick_y(&f, 1, text);
    json_array_foreach(lengths, i, count) {
        const double y = dpi_frame_y(&f, json_number_value(count) / most);
        dpi_plot_bar(f.to, "c0", f.left + (double)i * step + 1, y, step - 2, f.bottom - y, NULL,
                     NULL);
    }
    dpi_frame_axes(&f);
    dpi_plot_label(f.to, NULL, f.left, f.bottom + 20, "start", "1");
    dpi_format(text, sizeof text, "%.0f", real_of(output, "tokens_most"));
    dpi_plot_label(f.to, NULL, f.right, f.bottom + 20, "end", text);
    dpi_plot_end(f.to);
}

void dpi_report_plot_labels(dpi_text *t, const json_t *report) {
    enum { ROW = 24, SHOWN = 40, LABELS = 200, NUMBERS = 50 };
    const json_t *labels = json_object_get(json_object_get(report, "output"), "labels");
    const size_t n = json_object_size(labels);
    const dpi_draw d = dpi_report_draw(t);
    double most = 1, y = 10;
    const char *label;
    json_t *count;
    int left_over = SHOWN;
    char text[64];
    if (n == 0)
        return;
    json_object_foreach((json_t *)labels, label, count) most =
        fmax(most, json_number_value(count));
    dpi_plot_begin(d, "Texts of each label", WIDTH, (double)(n < SHOWN ? n : SHOWN) * ROW + 16);
    json_object_foreach((json_t *)labels, label, count) {
        const double length = json_number_value(count) / most * (RIGHT - LABELS - NUMBERS);
        if (left_over-- == 0)
            break;
        dpi_format(text, sizeof text, "%.0f", json_number_value(count));
        dpi_plot_label(d, NULL, LABELS - 8, y + 14, "end", label);
        dpi_plot_bar(d, "c0", LABELS, y, length, ROW - 6, NULL, NULL);
        dpi_plot_label(d, NULL, LABELS + length + 6, y + 14, "start", text);
        y += ROW;
    }
    dpi_plot_end(d);
}
