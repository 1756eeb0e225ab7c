/* plots.c - see plots.h. Colours are those of the page: --a synthetic, --b real. */
#include "eval/plots.h"

#include <math.h>

enum { WIDTH = 640, HEIGHT = 300, LEFT = 68, BOTTOM = 40, TOP = 28, MAP_POINTS = 2000 };

static double x_at(double share) { return LEFT + (WIDTH - LEFT - 12) * share; }
static double y_at(double share) { return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share; }

/* .001 to 1 as 0 to 1. */
static double log_at(double share) { return share > .001 ? 1 + log10(share) / 3 : 0; }

static void begin(FILE *f, const char *title) {
    fprintf(f, "<figure><figcaption>%s</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" "
               "aria-label=\"%s\">\n", title, WIDTH, HEIGHT, title);
    fprintf(f, "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"var(--line)\"/>\n",
            x_at(0), y_at(1), y_at(0), x_at(1));
}

/* What the axes are: below, and along the left side. */
static void name_axes(FILE *f, const char *x, const char *y) {
    const double middle = (y_at(0) + y_at(1)) / 2;
    fprintf(f, "<text class=\"axis\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
            x_at(.5), HEIGHT - 4, x);
    fprintf(f, "<text class=\"axis\" x=\"14\" y=\"%.1f\" text-anchor=\"middle\" "
               "transform=\"rotate(-90 14 %.1f)\">%s</text>\n",
            middle, middle, y);
}

static void end(FILE *f, bool two_sets) {
    if (two_sets)
        fprintf(f, "<text x=\"%d\" y=\"16\" style=\"fill:var(--a)\">synthetic</text>"
                   "<text x=\"%d\" y=\"16\" style=\"fill:var(--b)\">real</text>\n",
                LEFT, LEFT + 80);
    fputs("</svg></figure>\n", f);
}

static void label(FILE *f, double x, double y, const char *anchor, const char *format,
                  double value) {
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    fprintf(f, format, value);
    fputs("</text>\n", f);
}

void plot_lengths(const evaluation *e, FILE *f) {
    const int32_t n[2] = {e->n_synthetic, e->n_real};
    double most = 0;
    if (e->words_in_bin == 0)
        return;
    for (int32_t k = 0; k < 2; k++)
        for (int32_t b = 0; b < EVAL_BINS; b++)
            most = fmax(most, (double)e->lengths[k][b] / n[k]);
    begin(f, "How long texts are");
    for (int32_t k = 0; k < 2; k++)
        for (int32_t b = 0; b < EVAL_BINS; b++) {
            const double share = (double)e->lengths[k][b] / n[k] / most;
            const double width = (x_at(1) - x_at(0)) / EVAL_BINS;
            fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                       "style=\"fill:var(--%c)\"/>\n",
                    x_at(0) + (b + (k ? .52 : .08)) * width, y_at(share), width * .4,
                    y_at(0) - y_at(share), k ? 'b' : 'a');
        }
    for (int32_t b = 0; b <= EVAL_BINS; b += 5)
        label(f, x_at((double)b / EVAL_BINS), HEIGHT - 22, "middle", "%g", b * e->words_in_bin);
    label(f, LEFT - 6, y_at(1) + 4, "end", "%.0f %%", 100 * most);
    label(f, LEFT - 6, y_at(0) + 4, "end", "%.0f %%", 0);
    name_axes(f, "words of a text", "share of the texts");
    end(f, true);
}

void plot_frontier(const evaluation *e, FILE *f) {
    begin(f, "The curve whose area is MAUVE: what the sets have of each other");
    fputs("<polyline fill=\"none\" stroke-width=\"2\" style=\"stroke:var(--a)\" points=\"", f);
    for (int32_t i = 0; i < MAUVE_WEIGHTS + 2; i++)
        fprintf(f, "%.1f,%.1f ", x_at(e->mauve.x[i]), y_at(e->mauve.y[i]));
    fputs("\"/>\n", f);
    for (int32_t i = 0; i <= 4; i++) {
        label(f, x_at(i / 4.0), HEIGHT - 22, "middle", "%g", i / 4.0);
        label(f, LEFT - 6, y_at(i / 4.0) + 4, "end", "%g", i / 4.0);
    }
    name_axes(f, "of the real texts: exp(-c KL(real, mixture))",
              "synthetic: exp(-c KL(synthetic, mix))");
    end(f, false);
}

void plot_map(const evaluation *e, FILE *f) {
    const int64_t n = (int64_t)e->n_synthetic + e->n_real;
    const int64_t step = n / MAP_POINTS + 1;
    double least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY};
    for (int64_t i = 0; i < n; i++)
        for (int32_t d = 0; d < 2; d++) {
            least[d] = fmin(least[d], e->map[2 * i + d]);
            most[d] = fmax(most[d], e->map[2 * i + d]);
        }
    begin(f, "Texts by the two directions in which their features vary most");
    name_axes(f, "first principal component", "second principal component");
    for (int64_t i = 0; i < n; i += step) {
        double at[2];
        for (int32_t d = 0; d < 2; d++)
            at[d] = most[d] > least[d]
                        ? (e->map[2 * i + d] - least[d]) / (most[d] - least[d])
                        : .5;
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill-opacity=\".6\" "
                   "style=\"fill:var(--%c)\"/>\n",
                x_at(at[0]), y_at(at[1]), i < e->n_synthetic ? 'a' : 'b');
    }
    end(f, true);
}

void plot_members(const evaluation *e, FILE *f) {
    const eval_ranking *const sets[] = {&e->members, &e->canaries};
    const bool has[] = {e->has_members, e->has_canaries};
    begin(f, "Who was a record (both axes logarithmic; dashed: by chance)");
    fprintf(f, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"var(--ink)\" "
               "stroke-opacity=\".5\" stroke-dasharray=\"4 4\"/>\n",
            x_at(0), y_at(0), x_at(1), y_at(1));
    for (int32_t k = 0; k < 2; k++) {
        if (!has[k])
            continue;
        fprintf(f, "<polyline fill=\"none\" stroke-width=\"2\" style=\"stroke:var(--%c)\" "
                   "points=\"", k ? 'b' : 'a');
        for (int32_t i = 0; i < EVAL_ROC_POINTS; i++)
            fprintf(f, "%.1f,%.1f ", x_at(log_at(sets[k]->roc_fpr[i])),
                    y_at(log_at(sets[k]->roc_tpr[i])));
        fputs("\"/>\n", f);
    }
    for (int32_t i = 0; i <= 3; i++) {
        label(f, x_at(i / 3.0), HEIGHT - 22, "middle", "%g", pow(10, i - 3));
        label(f, LEFT - 6, y_at(i / 3.0) + 4, "end", "%g", pow(10, i - 3));
    }
    name_axes(f, "others that are taken for records", "records that are found");
    if (has[0])
        fprintf(f, "<text x=\"%d\" y=\"16\" style=\"fill:var(--a)\">training texts</text>",
                LEFT);
    if (has[1])
        fprintf(f, "<text x=\"%d\" y=\"16\" style=\"fill:var(--b)\">canaries</text>",
                LEFT + 110);
    end(f, false);
}
