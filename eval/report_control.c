/* report_control.c - see report_control.h. */
#include "eval/report_control.h"

#include <math.h>

#include "draw/draw.h"
#include "eval/report_fields.h"

static bool has_interval(const eval_difference *d) { return !isnan(d->low); }

static const char *verdict_of(const eval_difference *d) {
    return d->verdict > 0 ? "better" : d->verdict < 0 ? "worse" : "";
}

void control_print_text(const eval_control *c, FILE *f) {
    if (!c)
        return;
    fprintf(f, "\nbeside a control of %d texts: difference, its 95 %%, synthetic, control\n",
            (int)c->n_control);
    for (int32_t i = 0; i < c->n; i++) {
        const eval_difference *d = &c->at[i];
        fprintf(f, "  %-12.4g", d->value);
        if (has_interval(d))
            fprintf(f, " %8.4g ..%8.4g", d->low, d->high);
        else
            fprintf(f, "%20s", "");
        fprintf(f, " %10.5g %10.5g   %s%s%s\n", d->synthetic, d->control, d->key,
                d->verdict != 0 ? ": " : "", verdict_of(d));
    }
    fprintf(f, "\n%s\n", c->verdict);
}

void control_print_csv(const eval_control *c, FILE *f) {
    if (!c)
        return;
    fprintf(f, "n_control,%d,,\ncontrol_verdict,", (int)c->n_control);
    report_put_quoted(c->verdict, f);
    fputs(",,\n", f);
    for (int32_t i = 0; i < c->n; i++) {
        const eval_difference *d = &c->at[i];
        fprintf(f, "control:%s,%.17g,,\ndifference:%s,%.17g,", d->key, d->control, d->key,
                d->value);
        if (has_interval(d))
            fprintf(f, "%.17g,%.17g\n", d->low, d->high);
        else
            fputs(",\n", f);
    }
}

static json_t *json_of_difference(const eval_difference *d) {
    json_t *object = json_pack("{s:f, s:f, s:f}", "synthetic", d->synthetic, "control", d->control,
                               "difference", d->value);
    if (object && has_interval(d))
        json_object_set_new(object, "interval", json_pack("[f, f]", d->low, d->high));
    if (object && d->is_judged)
        json_object_set_new(object, "verdict", json_integer(d->verdict));
    return object;
}

json_t *control_json(const eval_control *c) {
    json_t *metrics = json_object();
    for (int32_t i = 0; i < c->n; i++)
        json_object_set_new(metrics, c->at[i].key, json_of_difference(&c->at[i]));
    return json_pack("{s:i, s:s, s:i, s:f, s:o}", "n_control", (int)c->n_control, "verdict",
                     c->verdict, "n_judged", (int)c->n_judged, "z", c->z, "metrics", metrics);
}

void control_print_html(const eval_control *c, FILE *f) {
    const dpi_draw d = dpi_draw_to_file(f);
    if (!c)
        return;
    fprintf(f, "<h2>beside a control of %d texts</h2>\n<p class=\"note\">", (int)c->n_control);
    dpi_draw_text(d, c->verdict);
    fputs("</p>\n<div class=\"wide\"><table class=\"beside\"><tr><th class=\"n\">difference</th>"
          "<th class=\"n\">95 %</th><th class=\"n\">synthetic</th><th class=\"n\">control</th>"
          "<th>what</th><th></th></tr>\n", f);
    for (int32_t i = 0; i < c->n; i++) {
        const eval_difference *x = &c->at[i];
        fprintf(f, "<tr><td class=\"n\">%.4g</td><td class=\"n\">", x->value);
        if (has_interval(x))
            fprintf(f, "%.4g to %.4g", x->low, x->high);
        fprintf(f, "</td><td class=\"n\">%.5g</td><td class=\"n\">%.5g</td><td>", x->synthetic,
                x->control);
        dpi_draw_text(d, x->label);
        fprintf(f, " (%s)</td><td>%s</td></tr>\n", x->key, verdict_of(x));
    }
    fputs("</table></div>\n", f);
}
