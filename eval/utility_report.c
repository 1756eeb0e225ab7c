/* utility_report.c - results as a table, as CSV and as a plot; see utility.h. */
#include "eval/utility.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "draw/draw.h"

void setting_name(const setting *s, char *name, size_t size) {
    static const char *const names[] = {"documents of the private law",
                                        "documents of the public law", "public",
                                        "plain, one reference"};
    if (s->kind != TEXT_PRIVATE)
        snprintf(name, size, "%s", names[s->kind]);
    else
        snprintf(name, size, "%s, B = %d, eps = %g", s->v->title, (int)s->n_ref, s->epsilon);
}

/* ---- Table ---------------------------------------------------------------------------------- */

static void print_estimate(FILE *f, const metric *m, estimate e) {
    if (isnan(e.value)) {
        fputs(" |", f);
        return;
    }
    fputc(' ', f);
    fprintf(f, m->format, e.value * m->scale);
    if (!isnan(e.half)) {
        fputs(" ± ", f);
        fprintf(f, m->format, e.half * m->scale);
    }
    fputs(" |", f);
}

static void write_table(FILE *f, const maker_options *o, const target *t, const result *results,
                        int32_t n_results) {
    fprintf(f, "Texts of the domain \"%s\"; T = %d, top-k %d, tau %g, delta %g, seed %llu.\n"
               "TV: total variation between what the grammar reads from the texts and the private "
               "law, or the\nreferences themselves: mean of %d attributes, 0 is perfect. The first "
               "row is what independent\ndocuments of that law reach with so many texts. "
               "± : 95 %%, bootstrap over the texts.\n\n",
            t->d->name, (int)o->n_tokens, (int)o->top_k, o->tau, o->delta,
            (unsigned long long)o->seed, (int)t->d->n_attributes);
    fputs("| setting | texts |", f);
    for (int32_t i = 0; i < N_METRICS; i++)
        fprintf(f, " %s |", metrics[i].title);
    fputs("\n|---|---|", f);
    for (int32_t i = 0; i < N_METRICS; i++)
        fputs("---|", f);
    for (const result *r = results; r < results + n_results; r++) {
        char name[NAME_BYTES];
        setting_name(&r->s, name, sizeof name);
        fprintf(f, "\n| %s | %d |", name, (int)r->n);
        for (int32_t i = 0; i < N_METRICS; i++)
            print_estimate(f, &metrics[i], r->of[i]);
    }
    fputs("\n\nTotal variation to the private law, attribute by attribute:\n\n| setting |", f);
    for (int32_t a = 0; a < t->d->n_attributes; a++)
        fprintf(f, " %s |", t->d->attributes[a].name);
    fputs("\n|---|", f);
    for (int32_t a = 0; a < t->d->n_attributes; a++)
        fputs("---|", f);
    for (const result *r = results; r < results + n_results; r++) {
        char name[NAME_BYTES];
        setting_name(&r->s, name, sizeof name);
        fprintf(f, "\n| %s |", name);
        for (int32_t a = 0; a < t->d->n_attributes; a++)
            print_estimate(f, &metrics[0], r->distance[a]);
    }
    fputc('\n', f);
}

/* ---- CSV ------------------------------------------------------------------------------------ */

static void write_row(FILE *f, const result *r, const char *name, const char *part, estimate e) {
    static const char *const kinds[] = {"documents_private", "documents_public", "public",
                                        "plain_reference"};
    const setting *s = &r->s;
    if (isnan(e.value))
        return;
    fprintf(f, "%s,%d,%g,%d,%s%s,%.6g,", s->kind == TEXT_PRIVATE ? s->v->name : kinds[s->kind],
            (int)s->n_ref, s->epsilon, (int)r->n, name, part, e.value);
    fprintf(f, isnan(e.half) ? "\n" : "%.4g\n", e.half);
}

static void write_csv(FILE *f, const target *t, const result *results, int32_t n_results) {
    fputs("setting,B,epsilon,texts,metric,value,half_width_95\n", f);
    for (const result *r = results; r < results + n_results; r++) {
        for (int32_t i = 0; i < N_METRICS; i++)
            write_row(f, r, metrics[i].name, "", r->of[i]);
        for (int32_t a = 0; a < t->d->n_attributes; a++) {
            write_row(f, r, "tv_law_", t->d->attributes[a].name, r->distance[a]);
            write_row(f, r, "tv_references_", t->d->attributes[a].name, r->reference_distance[a]);
        }
    }
}

/* ---- Plot: 1 - TV against B, a line per variant and epsilon --------------------------------- */

enum { WIDTH = 720, HEIGHT = 440, LEFT = 70, RIGHT = 230, TOP = 40, BOTTOM = 60, MARGIN = 20 };

typedef struct plot {
    dpi_frame frame;
    double min_b, max_b, low, high; /* of the axes; B on a logarithmic one */
    int32_t n_legend;
} plot;

static double share_of_b(const plot *p, double b) {
    const double span = log(p->max_b / p->min_b), width = p->frame.right - p->frame.left;
    const double at = span > 0 ? log(b / p->min_b) / span : 0.5;
    return (MARGIN + at * (width - 2 * MARGIN)) / width;
}

static double plot_x(const plot *p, double b) {
    return dpi_frame_x(&p->frame, share_of_b(p, b));
}

static double share_of_utility(const plot *p, double utility) {
    return (utility - p->low) / (p->high - p->low);
}

static double plot_y(const plot *p, double utility) {
    return dpi_frame_y(&p->frame, share_of_utility(p, utility));
}

static plot plot_scale(FILE *f, const result *results, int32_t n_results) {
    plot p = {{dpi_draw_to_file(f), LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM},
              INFINITY, 1, 1, 0, 0};
    for (const result *r = results; r < results + n_results; r++) {
        double u = 1 - r->of[0].value;
        p.low = u - 0.05 < p.low ? u - 0.05 : p.low;
        p.high = u + 0.05 > p.high ? u + 0.05 : p.high;
        if (r->s.kind == TEXT_PRIVATE) {
            p.min_b = r->s.n_ref < p.min_b ? r->s.n_ref : p.min_b;
            p.max_b = r->s.n_ref > p.max_b ? r->s.n_ref : p.max_b;
        }
    }
    p.low = floor(10 * (p.low > 0 ? p.low : 0)) / 10;
    p.high = ceil(10 * (p.high < 1 ? p.high : 1)) / 10;
    p.min_b = p.min_b > p.max_b ? 1 : p.min_b;
    return p;
}

static void draw_axes(const plot *p, const target *t) {
    char text[128];
    snprintf(text, sizeof text, "How well texts match the private attributes (%s)", t->d->name);
    dpi_image_begin(p->frame.to, text, WIDTH, HEIGHT);
    dpi_plot_label(p->frame.to, "title", LEFT, 22, "start", text);
    for (double u = p->low; u < p->high + 0.01; u += 0.1) {
        snprintf(text, sizeof text, "%.1f", u);
        dpi_frame_tick_y(&p->frame, share_of_utility(p, u), text);
    }
    dpi_frame_names(&p->frame, "references per text, B", "utility: 1 - total variation");
}

static void draw_key(plot *p, const char *kind, const char *name) {
    dpi_plot_key(p->frame.to, kind, WIDTH - RIGHT + 12, TOP + 18 * p->n_legend++, name);
}

static void draw_baseline(plot *p, const result *r) {
    char name[NAME_BYTES], kind[8];
    const double y = plot_y(p, 1 - r->of[0].value);
    setting_name(&r->s, name, sizeof name);
    snprintf(kind, sizeof kind, "c%d d%d", DPI_DRAW_COLOURS - 1, (int)r->s.kind % DPI_DRAW_DASHES);
    dpi_plot_line(p->frame.to, kind, p->frame.left, y, p->frame.right, y);
    draw_key(p, kind, name);
}

static bool same_line(const setting *a, const setting *b) {
    return a->kind == TEXT_PRIVATE && b->kind == TEXT_PRIVATE && a->epsilon == b->epsilon &&
           a->v == b->v;
}

/* The line that starts with result `first`, if none before it belongs to the same. */
static void draw_line(plot *p, const result *results, int32_t n, int32_t first, int32_t colour,
                      int32_t dash) {
    const dpi_draw d = p->frame.to;
    char plain[4], kind[8], name[NAME_BYTES];
    snprintf(plain, sizeof plain, "c%d", (int)colour % (DPI_DRAW_COLOURS - 1));
    snprintf(kind, sizeof kind, "%s d%d", plain, (int)dash % DPI_DRAW_DASHES);
    dpi_plot_curve_begin(d, kind);
    for (int32_t i = first; i < n; i++)
        if (same_line(&results[first].s, &results[i].s))
            dpi_plot_curve_point(d, plot_x(p, results[i].s.n_ref),
                                 plot_y(p, 1 - results[i].of[0].value));
    dpi_plot_curve_end(d);
    for (int32_t i = first; i < n; i++) {
        const result *r = &results[i];
        if (!same_line(&results[first].s, &r->s))
            continue;
        const double x = plot_x(p, r->s.n_ref), u = 1 - r->of[0].value, half = r->of[0].half;
        dpi_plot_line(d, plain, x, plot_y(p, u - half), x, plot_y(p, u + half));
        dpi_plot_point(d, plain, x, plot_y(p, u));
    }
    snprintf(name, sizeof name, "%s, eps = %g", results[first].s.v->name,
             results[first].s.epsilon);
    draw_key(p, kind, name);
}

/* The line of result i, if it is the first of it: a colour for each epsilon, a dash for each
 * variant, in order. */
static void draw_line_of(plot *p, const result *results, int32_t n, int32_t i) {
    const setting *s = &results[i].s;
    int32_t colour = 0, dash = 0, k = 0;
    while (!same_line(&results[k].s, s))
        k++;
    if (k < i)
        return;
    for (k = 0; k < i; k++) {
        const setting *before = &results[k].s;
        bool is_new = before->kind == TEXT_PRIVATE;
        for (int32_t j = 0; j < k && is_new; j++)
            is_new = !same_line(&results[j].s, before);
        colour += is_new && before->v == s->v;
        dash += is_new && before->epsilon == s->epsilon;
    }
    draw_line(p, results, n, i, colour, dash);
}

/* The places of B that any result has. */
static void draw_ticks(const plot *p, const result *results, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        bool is_new = results[i].s.kind == TEXT_PRIVATE;
        char text[16];
        for (int32_t k = 0; k < i && is_new; k++)
            is_new = results[k].s.n_ref != results[i].s.n_ref;
        snprintf(text, sizeof text, "%d", (int)results[i].s.n_ref);
        if (is_new)
            dpi_frame_tick_x(&p->frame, share_of_b(p, results[i].s.n_ref), text);
    }
}

static void draw_plot(FILE *f, const target *t, const result *results, int32_t n) {
    plot p = plot_scale(f, results, n);
    draw_axes(&p, t);
    for (int32_t i = 0; i < n; i++) {
        if (results[i].s.kind == TEXT_PRIVATE)
            draw_line_of(&p, results, n, i);
        else
            draw_baseline(&p, &results[i]);
    }
    draw_ticks(&p, results, n);
    dpi_image_end(p.frame.to);
}

/* ---- Files ---------------------------------------------------------------------------------- */

static FILE *open_file(const char *prefix, const char *end) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", prefix, end);
    FILE *f = fopen(path, "w");
    if (!f)
        fprintf(stderr, "dpinfer-utility: %s: %s\n", path, strerror(errno));
    return f;
}

int report_write(const char *prefix, const maker_options *o, const target *t, const result *results,
                 int32_t n_results) {
    FILE *f[3] = {open_file(prefix, ".md"), open_file(prefix, ".csv"), open_file(prefix, ".svg")};
    int code = f[0] && f[1] && f[2] ? 0 : -1;
    if (code == 0) {
        write_table(f[0], o, t, results, n_results);
        write_csv(f[1], t, results, n_results);
        draw_plot(f[2], t, results, n_results);
    }
    for (int32_t i = 0; i < 3; i++)
        if (f[i] && fclose(f[i])) {
            fprintf(stderr, "dpinfer-utility: cannot write a report: %s\n", strerror(errno));
            code = -1;
        }
    return code;
}
