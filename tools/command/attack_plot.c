/* attack_plot.c - see attack_plot.h. The epsilons stand at even distances, as in Tong et al. 2025,
 * Figures 6 and 7. */
#include "tools/command/attack_plot.h"

#include <stdbool.h>
#include <stdio.h>

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

/* The i-th of the epsilons of the first mechanism has the i-th place. */
static double x_of(const attack_row *rows, int n_rows, double epsilon) {
    int n = 0, at = 0;
    for (; n < n_rows && rows[n].mechanism == rows[0].mechanism; n++)
        at = rows[n].epsilon <= epsilon ? n : at;
    return LEFT + (PANEL - LEFT - RIGHT) * (n > 1 ? (double)at / (n - 1) : .5);
}

static double y_of(double share) { return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share); }

static void plot_axes(const attack_row *rows, int n_rows, int panel) {
    printf("<text x=\"%d\" y=\"20\" class=\"title\">%s%s</text>\n", LEFT,
           panel == PANEL_LISTS ? "drawn from, share of the words" : "protected from: ",
           panel == PANEL_LISTS ? "" : attack_guess_name(panel));
    for (int i = 0; i <= 4; i++)
        printf("<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
               "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
               LEFT, PANEL - RIGHT, y_of(i / 4.), y_of(i / 4.), LEFT - 6, y_of(i / 4.) + 4, i / 4.);
    for (int i = 0; i < n_rows && rows[i].mechanism == rows[0].mechanism; i++)
        printf("<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
               x_of(rows, n_rows, rows[i].epsilon), HEIGHT - BOTTOM + 18, rows[i].epsilon);
}

static void plot_line(const attack_row *rows, int n_rows, int first, int n, int panel) {
    double low, high;
    printf("<polyline class=\"m%d\" points=\"", rows[first].mechanism);
    for (int i = first; i < first + n; i++)
        printf("%.1f,%.1f ", x_of(rows, n_rows, rows[i].epsilon),
               y_of(value_of(&rows[i], panel, &low, &high)));
    printf("\"/>\n");
    for (int i = first; i < first + n; i++) {
        const double x = x_of(rows, n_rows, rows[i].epsilon);
        value_of(&rows[i], panel, &low, &high);
        printf("<line class=\"m%d\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
               rows[i].mechanism, x, x, y_of(low), y_of(high));
    }
}

static void plot_panel(const attack_row *rows, int n_rows, int panel, int place) {
    printf("<g transform=\"translate(%d %d)\">\n", PANEL * (place % N_COLUMNS),
           HEIGHT * (place / N_COLUMNS));
    plot_axes(rows, n_rows, panel);
    for (int first = 0, n; first < n_rows; first += n) {
        for (n = 1; first + n < n_rows && rows[first + n].mechanism == rows[first].mechanism;)
            n++;
        plot_line(rows, n_rows, first, n, panel);
    }
    printf("</g>\n");
}

static void plot_legend(const attack_row *rows, int n_rows, int y) {
    int x = LEFT;
    for (int i = 0; i < n_rows; i++) {
        if (i > 0 && rows[i].mechanism == rows[i - 1].mechanism)
            continue;
        printf("<line class=\"m%d\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>"
               "<text x=\"%d\" y=\"%d\">%s</text>\n",
               rows[i].mechanism, x, x + 24, y, y, x + 30, y + 4,
               dpi_words_mechanism_name(rows[i].mechanism));
        x += 130;
    }
}

void attack_plot(const attack_row *rows, int n_rows) {
    int n_panels = 0, height;
    for (int panel = 0; panel < N_PANELS; panel++)
        n_panels += has_panel(&rows[0], panel);
    height = HEIGHT * ((n_panels + N_COLUMNS - 1) / N_COLUMNS) + 30;
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
           "aria-label=\"share of words that each attack does not guess right, by epsilon\">\n"
           "<style>text{font:12px sans-serif}.title{font-weight:bold}.grid{stroke:#ddd}"
           "polyline{fill:none}.m0{stroke:#1b6ca8}.m1{stroke:#c0392b}.m2{stroke:#2e8b57}"
           ".m3{stroke:#7d3c98}.m4{stroke:#b7950b}.m0,.m1,.m2,.m3,.m4{stroke-width:2}</style>\n",
           PANEL * N_COLUMNS, height);
    for (int panel = 0, place = 0; panel < N_PANELS; panel++)
        if (has_panel(&rows[0], panel))
            plot_panel(rows, n_rows, panel, place++);
    plot_legend(rows, n_rows, height - 14);
    printf("</svg>\n");
}
