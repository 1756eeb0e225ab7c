/* attack_plot.c - see attack_plot.h. The epsilons stand at even distances, as in Tong et al. 2025,
 * Figures 6 and 7. */
#include "tools/command/attack_plot.h"

#include <stdbool.h>
#include <stdio.h>

#include "draw/draw.h"

enum { PANEL = 300, HEIGHT = 220, LEFT = 44, RIGHT = 16, TOP = 34, BOTTOM = 34, N_COLUMNS = 3 };

const char *attack_guess_name(int guess) {
    static const char *const names[DPI_N_GUESSES] = {"nearest", "nearest_10", "bayes", "language",
                                                     "context", "remote"};
    return names[guess];
}

double attack_protection(const dpi_attack_result *r, int guess, double *low, double *high) {
    double a, b;
    const int64_t n = r->n_guessed[guess];
    dpi_attack_interval(r->n_right[guess], n, &a, &b);
    *low = 1 - b;
    *high = 1 - a;
    return n > 0 ? 1 - (double)r->n_right[guess] / (double)n : 1;
}

/* A panel for each attack, and one for the lists that words are drawn from (Figure 9). */
enum { PANEL_LISTS = DPI_N_GUESSES, N_PANELS };

static bool has_panel(const attack_row *row, int panel) {
    return panel == PANEL_LISTS || row->result.n_guessed[panel] > 0;
}

static double value_of(const attack_row *row, int panel, double *low, double *high) {
    if (panel < PANEL_LISTS)
        return attack_protection(&row->result, panel, low, high);
    *low = row->result.list[0];
    *high = row->result.list[2];
    return row->result.list[1];
}

/* The i-th of the epsilons of the first mechanism has the i-th place, as a share of the width. */
static double place_of(const attack_row *rows, int n_rows, double epsilon) {
    int n = 0, at = 0;
    for (; n < n_rows && rows[n].mechanism == rows[0].mechanism; n++)
        at = rows[n].epsilon <= epsilon ? n : at;
    return n > 1 ? (double)at / (n - 1) : .5;
}

/* What a mechanism looks like. */
static const char *kind_of(int32_t mechanism) {
    static const char *const kinds[DPI_DRAW_COLOURS] = {"c0", "c1", "c2", "c3", "c4", "c5"};
    return kinds[mechanism % DPI_DRAW_COLOURS];
}

static void plot_axes(const dpi_frame *f, const attack_row *rows, int n_rows, int panel) {
    char text[64];
    snprintf(text, sizeof text, "protected from: %s",
             panel == PANEL_LISTS ? "" : attack_guess_name(panel));
    dpi_plot_label(f->to, "title", f->left, f->top - 14, "start",
                   panel == PANEL_LISTS ? "drawn from, share of the words" : text);
    for (int i = 0; i <= 4; i++) {
        snprintf(text, sizeof text, "%g", i / 4.);
        dpi_frame_tick_y(f, i / 4., text);
    }
    for (int i = 0; i < n_rows && rows[i].mechanism == rows[0].mechanism; i++) {
        snprintf(text, sizeof text, "%g", rows[i].epsilon);
        dpi_frame_tick_x(f, place_of(rows, n_rows, rows[i].epsilon), text);
    }
}

static void plot_line(const dpi_frame *f, const attack_row *rows, int n_rows, int first, int n,
                      int panel) {
    const char *kind = kind_of(rows[first].mechanism);
    double low, high;
    dpi_plot_curve_begin(f->to, kind);
    for (int i = first; i < first + n; i++)
        dpi_plot_curve_point(f->to, dpi_frame_x(f, place_of(rows, n_rows, rows[i].epsilon)),
                             dpi_frame_y(f, value_of(&rows[i], panel, &low, &high)));
    dpi_plot_curve_end(f->to);
    for (int i = first; i < first + n; i++) {
        const double x = dpi_frame_x(f, place_of(rows, n_rows, rows[i].epsilon));
        value_of(&rows[i], panel, &low, &high);
        dpi_plot_line(f->to, kind, x, dpi_frame_y(f, low), x, dpi_frame_y(f, high));
    }
}

static void plot_panel(dpi_draw d, const attack_row *rows, int n_rows, int panel, int place) {
    const double x = PANEL * (place % N_COLUMNS), y = HEIGHT * (place / N_COLUMNS);
    const dpi_frame f = {d, x + LEFT, x + PANEL - RIGHT, y + TOP, y + HEIGHT - BOTTOM};
    plot_axes(&f, rows, n_rows, panel);
    for (int first = 0, n; first < n_rows; first += n) {
        for (n = 1; first + n < n_rows && rows[first + n].mechanism == rows[first].mechanism;)
            n++;
        plot_line(&f, rows, n_rows, first, n, panel);
    }
}

static void plot_legend(dpi_draw d, const attack_row *rows, int n_rows, int y) {
    int x = LEFT;
    for (int i = 0; i < n_rows; i++) {
        if (i > 0 && rows[i].mechanism == rows[i - 1].mechanism)
            continue;
        dpi_plot_key(d, kind_of(rows[i].mechanism), x, y,
                     dpi_words_mechanism_name(rows[i].mechanism));
        x += 130;
    }
}

void attack_plot(const attack_row *rows, int n_rows) {
    const dpi_draw d = dpi_draw_to_file(stdout);
    int n_panels = 0, height;
    for (int panel = 0; panel < N_PANELS; panel++)
        n_panels += has_panel(&rows[0], panel);
    height = HEIGHT * ((n_panels + N_COLUMNS - 1) / N_COLUMNS) + 30;
    dpi_image_begin(d, "share of words that each attack does not guess right, by epsilon",
                    PANEL * N_COLUMNS, height);
    for (int panel = 0, place = 0; panel < N_PANELS; panel++)
        if (has_panel(&rows[0], panel))
            plot_panel(d, rows, n_rows, panel, place++);
    plot_legend(d, rows, n_rows, height - 14);
    dpi_image_end(d);
}
