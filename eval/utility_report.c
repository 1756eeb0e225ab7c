/* utility_report.c - results as a table, as CSV and as a plot; see utility.h. */
#include "eval/utility.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

enum { WIDTH = 720, HEIGHT = 440, LEFT = 70, RIGHT = 230, TOP = 40, BOTTOM = 60 };

static const char *const colours[] = {"#1b6ca8", "#2a9d5c", "#e08a1e", "#c0392b", "#7d3c98",
                                      "#555555"};
static const char *const dashes[] = {"none", "8 3", "2 3", "10 3 2 3"};

typedef struct plot {
    FILE *f;
    double min_b, max_b, low, high; /* of the axes; B on a logarithmic one */
} plot;

static double plot_x(const plot *p, double b) {
    double span = log(p->max_b / p->min_b);
    double at = span > 0 ? log(b / p->min_b) / span : 0.5;
    return LEFT + 20 + at * (WIDTH - LEFT - RIGHT - 40);
}

static double plot_y(const plot *p, double utility) {
    return TOP + (p->high - utility) / (p->high - p->low) * (HEIGHT - TOP - BOTTOM);
}

static plot plot_scale(FILE *f, const result *results, int32_t n_results) {
    plot p = {f, INFINITY, 1, 1, 0};
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
    fprintf(p->f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                  "font-family=\"sans-serif\" font-size=\"13\">\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                  "<text x=\"%d\" y=\"22\" font-size=\"15\">How well texts match the private "
                  "attributes (%s)</text>\n", WIDTH, HEIGHT, LEFT, t->d->name);
    for (double u = p->low; u < p->high + 0.01; u += 0.1)
        fprintf(p->f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#dddddd\"/>"
                      "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.1f</text>\n", LEFT,
                WIDTH - RIGHT, plot_y(p, u), plot_y(p, u), LEFT - 8, plot_y(p, u) + 4, u);
    fprintf(p->f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">references per text, B</text>\n"
                  "<text transform=\"translate(22 %d) rotate(-90)\" text-anchor=\"middle\">"
                  "utility: 1 - total variation</text>\n", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16,
            (TOP + HEIGHT - BOTTOM) / 2);
}

static void draw_baseline(const plot *p, const result *r, int32_t *n_legend) {
    char name[NAME_BYTES];
    double y = plot_y(p, 1 - r->of[0].value);
    setting_name(&r->s, name, sizeof name);
    fprintf(p->f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#999999\" "
                  "stroke-dasharray=\"%s\"/>\n"
                  "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#999999\" "
                  "stroke-dasharray=\"%s\"/><text x=\"%d\" y=\"%d\" font-size=\"11\">%s</text>\n",
            LEFT, WIDTH - RIGHT, y, y, dashes[r->s.kind % 4], WIDTH - RIGHT + 12,
            WIDTH - RIGHT + 40, TOP + 18 * *n_legend, TOP + 18 * *n_legend, dashes[r->s.kind % 4],
            WIDTH - RIGHT + 46, TOP + 18 * *n_legend + 4, name);
    (*n_legend)++;
}

static bool same_line(const setting *a, const setting *b) {
    return a->kind == TEXT_PRIVATE && b->kind == TEXT_PRIVATE && a->epsilon == b->epsilon &&
           a->v == b->v;
}

/* The line that starts with result `first`, if none before it belongs to the same. */
static void draw_line(const plot *p, const result *results, int32_t n, int32_t first,
                      int32_t colour, int32_t dash, int32_t *n_legend) {
    fprintf(p->f, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" "
                  "stroke-dasharray=\"%s\" points=\"", colours[colour % 6], dashes[dash % 4]);
    for (int32_t i = first; i < n; i++)
        if (same_line(&results[first].s, &results[i].s))
            fprintf(p->f, "%.1f,%.1f ", plot_x(p, results[i].s.n_ref),
                    plot_y(p, 1 - results[i].of[0].value));
    fputs("\"/>\n", p->f);
    for (int32_t i = first; i < n; i++) {
        const result *r = &results[i];
        if (!same_line(&results[first].s, &r->s))
            continue;
        double x = plot_x(p, r->s.n_ref), y = plot_y(p, 1 - r->of[0].value);
        double half = r->of[0].half / (p->high - p->low) * (HEIGHT - TOP - BOTTOM);
        fprintf(p->f, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>"
                      "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, x, y - half,
                y + half, colours[colour % 6], x, y, colours[colour % 6]);
    }
    int32_t y = TOP + 18 * (*n_legend)++;
    fprintf(p->f, "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke-width=\"2\" stroke=\"%s\" "
                  "stroke-dasharray=\"%s\"/><text x=\"%d\" y=\"%d\" font-size=\"11\">%s, eps = %g"
                  "</text>\n", WIDTH - RIGHT + 12, WIDTH - RIGHT + 40, y, y, colours[colour % 6],
            dashes[dash % 4], WIDTH - RIGHT + 46, y + 4, results[first].s.v->name,
            results[first].s.epsilon);
}

static void draw_results(const plot *p, const result *results, int32_t n) {
    int32_t n_legend = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t colour = 0, dash = 0, k = 0;
        const setting *s = &results[i].s;
        if (s->kind != TEXT_PRIVATE) {
            draw_baseline(p, &results[i], &n_legend);
            continue;
        }
        while (!same_line(&results[k].s, s))
            k++;
        if (k < i)
            continue;
        for (k = 0; k < i; k++) { /* a colour for each epsilon, a dash for each variant, in order */
            const setting *before = &results[k].s;
            bool is_new = before->kind == TEXT_PRIVATE;
            for (int32_t j = 0; j < k && is_new; j++)
                is_new = !same_line(&results[j].s, before);
            colour += is_new && before->v == s->v;
            dash += is_new && before->epsilon == s->epsilon;
        }
        draw_line(p, results, n, i, colour, dash, &n_legend);
    }
    for (int32_t i = 0; i < n; i++) {
        bool is_new = results[i].s.kind == TEXT_PRIVATE;
        for (int32_t k = 0; k < i && is_new; k++)
            is_new = results[k].s.n_ref != results[i].s.n_ref;
        if (is_new)
            fprintf(p->f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                    plot_x(p, results[i].s.n_ref), HEIGHT - BOTTOM + 20, (int)results[i].s.n_ref);
    }
    fputs("</svg>\n", p->f);
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
        plot p = plot_scale(f[2], results, n_results);
        draw_axes(&p, t);
        draw_results(&p, results, n_results);
    }
    for (int32_t i = 0; i < 3; i++)
        if (f[i] && fclose(f[i])) {
            fprintf(stderr, "dpinfer-utility: cannot write a report: %s\n", strerror(errno));
            code = -1;
        }
    return code;
}
