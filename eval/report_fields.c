/* report_fields.c - see report_fields.h. */
#include "eval/report_fields.h"

#include <math.h>

#include "draw/draw.h"

enum { PLOT_WIDTH = 300, PLOT_HEIGHT = 48 };

/* 95 % of a noisy count. */
static int64_t low_of(const eval_field *x, int32_t bin) {
    return x->count[1][bin] > x->noise ? x->count[1][bin] - x->noise : 0;
}
static int64_t high_of(const eval_field *x, int32_t bin) {
    return x->count[1][bin] > -x->noise ? x->count[1][bin] + x->noise : 0;
}

static bool has_interval(const eval_field *x) { return !isnan(x->tv_low); }

static const char *const kinds[EVAL_FIELD_KINDS] = {"values", "numbers", "words"};

/* ---- Text and CSV ---------------------------------------------------------------------------- */

/* Without what moves a terminal's cursor. */
void report_put_plain(const char *text, FILE *f) {
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, f);
}

/* A noisy histogram: its cells. */
static void print_counts(const eval_field *x, FILE *f) {
    char interval[64];
    fputs("\ncounts of ", f);
    report_put_plain(x->name, f);
    fputs("\n  real, with noise; 95 % by its law; synthetic; cell\n", f);
    for (int32_t b = 0; b < x->n_bins; b++) {
        snprintf(interval, sizeof interval, "%lld .. %lld", (long long)low_of(x, b),
                 (long long)high_of(x, b));
        fprintf(f, "  %-12lld %18s   ", (long long)x->count[1][b], interval);
        if (x->has_synthetic)
            fprintf(f, "%8lld   ", (long long)x->count[0][b]);
        else
            fprintf(f, "%8s   ", "");
        report_put_plain(x->bin[b], f);
        fputc('\n', f);
    }
}

void fields_print_text(const eval_structure *s, FILE *f) {
    if (s->n_fields > 0 && !s->field[0].is_released)
        fputs("\nfields\n  total variation, its 95 %, share of synthetic texts with it, of real "
              "ones, name\n", f);
    for (int32_t i = 0; i < s->n_fields; i++) {
        const eval_field *x = &s->field[i];
        if (x->is_released) {
            print_counts(x, f);
            continue;
        }
        fprintf(f, "  %-12.6g", x->tv);
        if (has_interval(x))
            fprintf(f, " %8.4g ..%8.4g", x->tv_low, x->tv_high);
        else
            fprintf(f, "%20s", "");
        fprintf(f, "   %8.4g   %8.4g   ", x->present[0], x->present[1]);
        report_put_plain(x->name, f);
        fputc('\n', f);
    }
}

static void put_doubled(const char *text, FILE *f) {
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, f);
}

void report_put_quoted(const char *text, FILE *f) {
    fputc('"', f);
    put_doubled(text, f);
    fputc('"', f);
}

/* A key "WHAT:NAME" or "WHAT:NAME:BIN". */
static void put_key(const char *what, const char *name, const char *bin, FILE *f) {
    fprintf(f, "\"%s:", what);
    put_doubled(name, f);
    if (bin)
        fputc(':', f);
    put_doubled(bin ? bin : "", f);
    fputc('"', f);
}

static void print_counts_csv(const eval_field *x, FILE *f) {
    for (int32_t b = 0; b < x->n_bins; b++) {
        put_key("count", x->name, x->bin[b], f);
        fprintf(f, ",%lld,%lld,%lld\n", (long long)x->count[1][b], (long long)low_of(x, b),
                (long long)high_of(x, b));
        if (!x->has_synthetic)
            continue;
        put_key("count_synthetic", x->name, x->bin[b], f);
        fprintf(f, ",%lld,,\n", (long long)x->count[0][b]);
    }
}

void fields_print_csv(const eval_structure *s, FILE *f) {
    for (int32_t i = 0; i < s->n_fields; i++) {
        if (s->field[i].is_released) {
            print_counts_csv(&s->field[i], f);
            continue;
        }
        put_key("field_tv", s->field[i].name, NULL, f);
        fprintf(f, ",%.17g,", s->field[i].tv);
        if (has_interval(&s->field[i]))
            fprintf(f, "%.17g,%.17g\n", s->field[i].tv_low, s->field[i].tv_high);
        else
            fputs(",\n", f);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Adds what a noisy histogram has beside its shares. */
static bool add_counts(json_t *object, const eval_field *x) {
    json_t *real = json_array(), *intervals = json_array(), *synthetic = json_array();
    for (int32_t b = 0; b < x->n_bins; b++) {
        json_array_append_new(real, json_integer(x->count[1][b]));
        json_array_append_new(synthetic, json_integer(x->count[0][b]));
        json_array_append_new(intervals, json_pack("[I, I]", (json_int_t)low_of(x, b),
                                                   (json_int_t)high_of(x, b)));
    }
    bool ok = json_object_set_new(object, "count_real", real) == 0;
    ok &= json_object_set_new(object, "count_real_intervals", intervals) == 0;
    ok &= json_object_set_new(object, "count_synthetic", synthetic) == 0;
    if (x->has_synthetic)
        return ok;
    for (size_t i = 0; i < 3; i++)
        ok &= json_object_del(object, (const char *[]){"tv", "synthetic", "count_synthetic"}[i]) ==
              0;
    return ok;
}

static json_t *json_of_field(const eval_field *x) {
    json_t *bins = json_array(), *share[2] = {json_array(), json_array()};
    for (int32_t b = 0; b < x->n_bins; b++) {
        json_array_append_new(bins, json_string(x->bin[b]));
        for (int32_t k = 0; k < 2; k++)
            json_array_append_new(share[k], json_real(x->share[k][b]));
    }
    json_t *object = json_pack("{s:s, s:f, s:f, s:f, s:o, s:o, s:o}", "kind", kinds[x->kind], "tv",
                               x->tv, "present", x->present[0], "present_real", x->present[1],
                               "bins", bins, "synthetic", share[0], "real", share[1]);
    bool ok = object;
    if (ok && has_interval(x) && (!x->is_released || x->has_synthetic))
        ok = json_object_set_new(object, "tv_interval",
                                 json_pack("[f, f]", x->tv_low, x->tv_high)) == 0;
    if (ok && x->is_released)
        ok = add_counts(object, x);
    if (object && !ok) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

json_t *fields_json(const eval_structure *s) {
    json_t *object = json_object();
    for (int32_t i = 0; i < s->n_fields && object; i++)
        if (json_object_set_new(object, s->field[i].name, json_of_field(&s->field[i])) != 0) {
            json_decref(object);
            object = NULL;
        }
    return object;
}

/* ---- HTML ------------------------------------------------------------------------------------ */

static void put_html(const char *text, FILE *f) { dpi_draw_text(dpi_draw_to_file(f), text); }

static void plot_field(const eval_field *x, FILE *f) {
    const dpi_draw d = dpi_draw_to_file(f);
    const double width = (double)PLOT_WIDTH / (x->n_bins > 0 ? x->n_bins : 1);
    double most = 1e-12;
    for (int32_t b = 0; b < x->n_bins; b++)
        most = fmax(most, fmax(x->share[0][b], x->share[1][b]));
    dpi_plot_begin_small(d, x->name, PLOT_WIDTH, PLOT_HEIGHT);
    for (int32_t b = 0; b < x->n_bins; b++)
        for (int32_t k = 0; k < 2; k++) {
            const double height = (PLOT_HEIGHT - 2) * x->share[k][b] / most;
            char percent[32];
            snprintf(percent, sizeof percent, "%.3g %%", 100 * x->share[k][b]);
            dpi_plot_bar(d, k ? "c1" : "c0", (b + (k ? .52 : .08)) * width, PLOT_HEIGHT - height,
                         width * .4, height, x->bin[b], percent);
        }
    dpi_plot_end_small(d);
}

static void print_counts_html(const eval_field *x, FILE *f) {
    fputs("<h2>counts of ", f);
    put_html(x->name, f);
    fputs("</h2>\n<table><tr><th class=\"n\">real, with noise</th><th class=\"n\">95 %</th>"
          "<th class=\"n\">synthetic</th><th>cell</th></tr>\n", f);
    for (int32_t b = 0; b < x->n_bins; b++) {
        fprintf(f, "<tr><td class=\"n\">%lld</td><td class=\"n\">%lld to %lld</td>"
                   "<td class=\"n\">",
                (long long)x->count[1][b], (long long)low_of(x, b), (long long)high_of(x, b));
        if (x->has_synthetic)
            fprintf(f, "%lld", (long long)x->count[0][b]);
        fputs("</td><td>", f);
        put_html(x->bin[b], f);
        fputs("</td></tr>\n", f);
    }
    fputs("</table>\n", f);
    if (x->has_synthetic)
        plot_field(x, f);
}

static bool is_released(const eval_structure *s) { return s->field[0].is_released; }

void fields_print_html(const eval_structure *s, FILE *f) {
    if (s->n_fields == 0)
        return;
    for (int32_t i = 0; i < s->n_fields && is_released(s); i++)
        print_counts_html(&s->field[i], f);
    if (is_released(s))
        return;
    fputs("<h2>fields</h2>\n<div class=\"wide\"><table><tr><th>field</th>"
          "<th class=\"n\">total variation</th><th class=\"n\">95 %</th>"
          "<th class=\"n\">synthetic texts with it</th><th class=\"n\">real texts with it</th>"
          "<th>what it holds, and how often</th></tr>\n",
          f);
    for (int32_t i = 0; i < s->n_fields; i++) {
        const eval_field *x = &s->field[i];
        fputs("<tr><td>", f);
        put_html(x->name, f);
        fprintf(f, "</td><td class=\"n\">%.4g</td><td class=\"n\">", x->tv);
        if (has_interval(x))
            fprintf(f, "%.4g to %.4g", x->tv_low, x->tv_high);
        fprintf(f, "</td><td class=\"n\">%.1f %%</td><td class=\"n\">%.1f %%</td><td>",
                100 * x->present[0], 100 * x->present[1]);
        plot_field(x, f);
        fputs("<br><small>", f);
        put_html(x->n_bins > 0 ? x->bin[0] : "", f);
        if (x->n_bins > 1) {
            fputs(x->kind == EVAL_FIELD_VALUES ? ", " : ", up to ", f);
            put_html(x->bin[x->kind == EVAL_FIELD_VALUES ? 1 : x->n_bins - 1], f);
            fputs(x->kind == EVAL_FIELD_VALUES && x->n_bins > 2 ? ", ..." : "", f);
        }
        fputs(x->kind == EVAL_FIELD_WORDS ? " words</small></td></tr>\n" : "</small></td></tr>\n",
              f);
    }
    fputs("</table></div>\n", f);
}
