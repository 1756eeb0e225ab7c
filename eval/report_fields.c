/* report_fields.c - see report_fields.h. */
#include "eval/report_fields.h"

#include <math.h>

enum { PLOT_WIDTH = 300, PLOT_HEIGHT = 48 };

static const char *const kinds[EVAL_FIELD_KINDS] = {"values", "numbers", "words"};

/* ---- Text and CSV ---------------------------------------------------------------------------- */

/* Without what moves a terminal's cursor. */
static void put_plain(const char *text, FILE *f) {
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, f);
}

void fields_print_text(const eval_structure *s, FILE *f) {
    if (s->n_fields > 0)
        fputs("\nfields\n  total variation, share of synthetic texts with it, of real ones, name\n",
              f);
    for (int32_t i = 0; i < s->n_fields; i++) {
        const eval_field *x = &s->field[i];
        fprintf(f, "  %-12.6g %8.4g   %8.4g   ", x->tv, x->present[0], x->present[1]);
        put_plain(x->name, f);
        fputc('\n', f);
    }
}

void fields_print_csv(const eval_structure *s, FILE *f) {
    for (int32_t i = 0; i < s->n_fields; i++) {
        fputs("\"field_tv:", f);
        for (const char *c = s->field[i].name; *c; c++)
            fputs(*c == '"' ? "\"\"" : (char[]){*c, '\0'}, f);
        fprintf(f, "\",%.17g,,\n", s->field[i].tv);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_of_field(const eval_field *x) {
    json_t *bins = json_array(), *share[2] = {json_array(), json_array()};
    for (int32_t b = 0; b < x->n_bins; b++) {
        json_array_append_new(bins, json_string(x->bin[b]));
        for (int32_t k = 0; k < 2; k++)
            json_array_append_new(share[k], json_real(x->share[k][b]));
    }
    return json_pack("{s:s, s:f, s:f, s:f, s:o, s:o, s:o}", "kind", kinds[x->kind], "tv", x->tv,
                     "present", x->present[0], "present_real", x->present[1], "bins", bins,
                     "synthetic", share[0], "real", share[1]);
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

static void put_html(const char *text, FILE *f) {
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, f);
        }
}

static void plot_field(const eval_field *x, FILE *f) {
    const double width = (double)PLOT_WIDTH / (x->n_bins > 0 ? x->n_bins : 1);
    double most = 1e-12;
    for (int32_t b = 0; b < x->n_bins; b++)
        most = fmax(most, fmax(x->share[0][b], x->share[1][b]));
    fprintf(f, "<svg class=\"field\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", PLOT_WIDTH,
            PLOT_HEIGHT);
    put_html(x->name, f);
    fputs("\">", f);
    for (int32_t b = 0; b < x->n_bins; b++)
        for (int32_t k = 0; k < 2; k++) {
            const double height = (PLOT_HEIGHT - 2) * x->share[k][b] / most;
            fprintf(f,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                    "style=\"fill:var(--%c)\"><title>",
                    (b + (k ? .52 : .08)) * width, PLOT_HEIGHT - height, width * .4, height,
                    k ? 'b' : 'a');
            put_html(x->bin[b], f);
            fprintf(f, ": %.3g %%</title></rect>", 100 * x->share[k][b]);
        }
    fputs("</svg>", f);
}

void fields_print_html(const eval_structure *s, FILE *f) {
    if (s->n_fields == 0)
        return;
    fputs("<h2>fields</h2>\n<div class=\"wide\"><table><tr><th>field</th>"
          "<th class=\"n\">total variation</th><th class=\"n\">synthetic texts with it</th>"
          "<th class=\"n\">real texts with it</th>"
          "<th>what it holds, and how often</th></tr>\n",
          f);
    for (int32_t i = 0; i < s->n_fields; i++) {
        const eval_field *x = &s->field[i];
        fputs("<tr><td>", f);
        put_html(x->name, f);
        fprintf(f,
                "</td><td class=\"n\">%.4g</td><td class=\"n\">%.1f %%</td><td class=\"n\">"
                "%.1f %%</td><td>",
                x->tv, 100 * x->present[0], 100 * x->present[1]);
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
