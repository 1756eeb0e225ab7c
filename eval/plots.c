/* plots.c - see plots.h. Synthetic texts have the first colour, real ones the second. */
#include "eval/plots.h"

#include <math.h>

#include "draw/draw.h"

enum { WIDTH = 640, HEIGHT = 300, MAP_POINTS = 2000 };
static const char *const colours[2] = {"c0", "c1"};

/* .001 to 1 as 0 to 1. */
static double log_at(double share) { return share > .001 ? 1 + log10(share) / 3 : 0; }

static dpi_frame begin(FILE *file, const char *title) {
    const dpi_frame f = {dpi_draw_to_file(file), 68, WIDTH - 12, 28, HEIGHT - 44};
    dpi_plot_begin(f.to, title, WIDTH, HEIGHT);
    dpi_frame_axes(&f);
    return f;
}

typedef void tick_at(const dpi_frame *f, double share, const char *text);

static void tick(const dpi_frame *f, tick_at *at, double share, const char *format, double value) {
    char text[32];
    snprintf(text, sizeof text, format, value);
    at(f, share, text);
}

/* The legend of two sets. */
static void end(const dpi_frame *f, const char *first, const char *second) {
    if (first)
        dpi_plot_key(f->to, colours[0], f->left, 14, first);
    if (second)
        dpi_plot_key(f->to, colours[1], f->left + 150, 14, second);
    dpi_plot_end(f->to);
}

void plot_lengths(const evaluation *e, FILE *file) {
    const int32_t n[2] = {e->n_synthetic, e->n_real};
    double most = 0;
    if (e->words_in_bin == 0)
        return;
    for (int32_t k = 0; k < 2; k++)
        for (int32_t b = 0; b < EVAL_BINS; b++)
            most = fmax(most, (double)e->lengths[k][b] / n[k]);
    const dpi_frame f = begin(file, "How long texts are");
    const double width = (f.right - f.left) / EVAL_BINS;
    tick(&f, dpi_frame_tick_y, 1, "%.0f %%", 100 * most);
    tick(&f, dpi_frame_tick_y, 0, "%.0f %%", 0);
    for (int32_t k = 0; k < 2; k++)
        for (int32_t b = 0; b < EVAL_BINS; b++) {
            const double y = dpi_frame_y(&f, (double)e->lengths[k][b] / n[k] / most);
            dpi_plot_bar(f.to, colours[k], f.left + (b + (k ? .52 : .08)) * width, y, width * .4,
                         f.bottom - y, NULL, NULL);
        }
    for (int32_t b = 0; b <= EVAL_BINS; b += 5)
        tick(&f, dpi_frame_tick_x, (double)b / EVAL_BINS, "%g", b * e->words_in_bin);
    dpi_frame_names(&f, "words of a text", "share of the texts");
    end(&f, "synthetic", "real");
}

void plot_frontier(const evaluation *e, FILE *file) {
    const dpi_frame f = begin(file, "The curve whose area is MAUVE: what the sets have of each "
                                    "other");
    for (int32_t i = 0; i <= 4; i++) {
        tick(&f, dpi_frame_tick_x, i / 4.0, "%g", i / 4.0);
        tick(&f, dpi_frame_tick_y, i / 4.0, "%g", i / 4.0);
    }
    dpi_plot_curve_begin(f.to, colours[0]);
    for (int32_t i = 0; i < MAUVE_WEIGHTS + 2; i++)
        dpi_plot_curve_point(f.to, dpi_frame_x(&f, e->mauve.x[i]), dpi_frame_y(&f, e->mauve.y[i]));
    dpi_plot_curve_end(f.to);
    dpi_frame_names(&f, "of the real texts: exp(-c KL(real, mixture))",
                    "synthetic: exp(-c KL(synthetic, mix))");
    end(&f, NULL, NULL);
}

void plot_map(const evaluation *e, FILE *file) {
    const int64_t n = (int64_t)e->n_synthetic + e->n_real;
    const int64_t step = n / MAP_POINTS + 1;
    double least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY};
    for (int64_t i = 0; i < n; i++)
        for (int32_t d = 0; d < 2; d++) {
            least[d] = fmin(least[d], e->map[2 * i + d]);
            most[d] = fmax(most[d], e->map[2 * i + d]);
        }
    const dpi_frame f = begin(file, "Texts by the two directions in which their features vary "
                                    "most");
    dpi_frame_names(&f, "first principal component", "second principal component");
    for (int64_t i = 0; i < n; i += step) {
        double at[2];
        for (int32_t d = 0; d < 2; d++)
            at[d] = most[d] > least[d]
                        ? (e->map[2 * i + d] - least[d]) / (most[d] - least[d])
                        : .5;
        dpi_plot_point(f.to, colours[i >= e->n_synthetic], dpi_frame_x(&f, at[0]),
                       dpi_frame_y(&f, at[1]));
    }
    end(&f, "synthetic", "real");
}

void plot_members(const evaluation *e, FILE *file) {
    const eval_ranking *const sets[] = {&e->members, &e->canaries};
    const bool has[] = {e->has_members, e->has_canaries};
    const dpi_frame f = begin(file, "Who was a record (both axes logarithmic; dashed: by chance)");
    for (int32_t i = 0; i <= 3; i++) {
        tick(&f, dpi_frame_tick_x, i / 3.0, "%g", pow(10, i - 3));
        tick(&f, dpi_frame_tick_y, i / 3.0, "%g", pow(10, i - 3));
    }
    dpi_plot_line(f.to, "c5 d1", f.left, f.bottom, f.right, f.top);
    for (int32_t k = 0; k < 2; k++) {
        if (!has[k])
            continue;
        dpi_plot_curve_begin(f.to, colours[k]);
        for (int32_t i = 0; i < EVAL_ROC_POINTS; i++)
            dpi_plot_curve_point(f.to, dpi_frame_x(&f, log_at(sets[k]->roc_fpr[i])),
                                 dpi_frame_y(&f, log_at(sets[k]->roc_tpr[i])));
        dpi_plot_curve_end(f.to);
    }
    dpi_frame_names(&f, "others that are taken for records", "records that are found");
    end(&f, has[0] ? "training texts" : NULL, has[1] ? "canaries" : NULL);
}
