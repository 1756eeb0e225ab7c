/* evaluation_report.c - see evaluation_report.h. */
#include "eval/evaluation_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "draw/draw.h"
#include "eval/plots.h"
#include "eval/report_control.h"
#include "eval/report_fields.h"

#define PRIVATE_NOTE                                                                           \
    "PRIVATE: computed from real texts as they stand. Do not give this away: a number here may " \
    "tell whether a text was among them."
#define PUBLIC_NOTE                                                                        \
    "The real texts, those of training and the canaries are public, says who asked for this."

/* What the page says first. */
static void print_note(const evaluation *e, bool is_public, FILE *f) {
    const dpi_counts_info *r = &e->released;
    if (!e->is_released)
        fputs(is_public ? PUBLIC_NOTE : PRIVATE_NOTE, f);
    else
        fprintf(f, "Released with noise: (%.6g, %.3g)-differentially private, rho %.6g; unit: a "
                   "record, neighbours: it is there or null. Each of %d histograms has discrete "
                   "Gaussian noise of deviation %.4g in each cell%s. The synthetic texts count as "
                   "public; numbers of real texts that are not here are withheld.",
                r->epsilon, r->delta, r->rho, (int)r->n_groups, r->deviation,
                r->charge.id > 0 ? "; charged to a ledger" : "; charged to no ledger");
}

/* Whose numbers those of a model are. */
static void print_model(const evaluation *e, const char *before, const char *behind,
                        void (*put)(const char *text, FILE *f), FILE *f) {
    if (!e->model_name[0])
        return;
    fputs(before, f);
    put(e->model_name, f);
    fputs(behind, f);
}

/* What the metric's authors use (github.com/krishnap25/mauve, README). */
enum { MAUVE_TEXTS = 5000 };

/* Scores of other settings do not compare. */
static void print_settings(const evaluation *e, FILE *f) {
    fprintf(f, "MAUVE: c = %g, %d weights, %d clusters, %d dimensions, %d seeds from %" PRIu64
               " (deviation %.3g), %d starts, %d rounds. Scores of other settings do not compare.",
            e->settings.scaling, MAUVE_WEIGHTS, (int)e->mauve.n_clusters, (int)e->mauve.n_dims,
            (int)e->mauve.n_seeds, e->settings.seed, e->mauve.deviation, MAUVE_STARTS,
            MAUVE_ROUNDS);
    if (e->n_synthetic < MAUVE_TEXTS || e->n_real < MAUVE_TEXTS)
        fprintf(f, " Too few texts for a score by itself: %d and %d, where the metric's authors "
                   "ask for a few thousand on each side and use %d. Fewer give a higher score: "
                   "compare it only with that of as many other texts.",
                (int)e->n_synthetic, (int)e->n_real, MAUVE_TEXTS);
}

static bool has_lengths(const evaluation *e) { return !e->is_released && e->words_in_bin > 0; }

static bool has_interval(const eval_value *v) { return !isnan(v->low); }

/* ---- Text and CSV ---------------------------------------------------------------------------- */

static bool is_first_of_group(const evaluation *e, int32_t i) {
    return i == 0 || strcmp(e->at[i].group, e->at[i - 1].group) != 0;
}

static void print_text(const evaluation *e, bool is_public, FILE *f) {
    print_note(e, is_public, f);
    print_model(e, "\nModel: ", ".", report_put_plain, f);
    fputc('\n', f);
    for (int32_t i = 0; i < e->n; i++) {
        const eval_value *v = &e->at[i];
        if (is_first_of_group(e, i))
            fprintf(f, "\n%s\n", v->group);
        fprintf(f, "  %-12.6g", v->value);
        if (has_interval(v))
            fprintf(f, " %8.4g ..%8.4g", v->low, v->high);
        else
            fprintf(f, "%20s", "");
        fprintf(f, "   %s\n", v->label);
    }
    fields_print_text(&e->structure, f);
    control_print_text(e->control, f);
    if (!e->has_mauve)
        return;
    fputc('\n', f);
    print_settings(e, f);
    fputc('\n', f);
}

/* The features' first two components: a row for each text and component. */
static void print_csv_map(const evaluation *e, FILE *f) {
    for (int32_t i = 0; i < e->n_synthetic + e->n_real; i++)
        for (int32_t c = 0; c < 2; c++)
            fprintf(f, "map:%s:%d:%c,%.17g,,\n", i < e->n_synthetic ? "synthetic" : "real",
                    (int)(i < e->n_synthetic ? i : i - e->n_synthetic), "xy"[c],
                    e->map[2 * i + c]);
}

/* How MAUVE was computed. */
static void print_csv_settings(const evaluation *e, FILE *f) {
    for (int32_t i = 0; i < e->mauve.n_seeds; i++)
        fprintf(f, "mauve_seeds:%" PRIu64 ",%.17g,,\n", e->settings.seed + (uint64_t)i,
                e->mauve.of_seed[i]);
    fprintf(f, "settings:scaling,%.17g,,\nsettings:n_weights,%d,,\nsettings:n_starts,%d,,\n"
               "settings:n_rounds,%d,,\nsettings:n_texts_wanted,%d,,\n",
            e->settings.scaling, MAUVE_WEIGHTS, MAUVE_STARTS, MAUVE_ROUNDS, MAUVE_TEXTS);
}

/* What the plots show. */
static void print_csv_points(const evaluation *e, FILE *f) {
    static const char *const sides[] = {"synthetic", "real"};
    static const char *const rocs[] = {"membership", "canary"};
    const eval_ranking *const ranking[] = {&e->members, &e->canaries};
    const bool has[] = {e->has_members, e->has_canaries};
    for (int32_t k = 0; k < 2 && has_lengths(e); k++)
        for (int32_t b = 0; b < EVAL_BINS; b++)
            fprintf(f, "lengths:%s:%d .. %d,%d,,\n", sides[k], (int)(b * e->words_in_bin),
                    (int)((b + 1) * e->words_in_bin - 1), (int)e->lengths[k][b]);
    for (int32_t i = 0; i < MAUVE_WEIGHTS + 2 && e->has_mauve; i++)
        fprintf(f, "mauve_curve:%.17g,%.17g,,\n", e->mauve.x[i], e->mauve.y[i]);
    if (e->map)
        print_csv_map(e, f);
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < EVAL_ROC_POINTS && has[k]; i++)
            fprintf(f, "%s_roc:%.17g,%.17g,,\n", rocs[k], ranking[k]->roc_fpr[i],
                    ranking[k]->roc_tpr[i]);
}

static void print_csv(const evaluation *e, bool is_public, FILE *f) {
    const dpi_counts_info *r = &e->released;
    fprintf(f, "key,value,low,high\nprivate,%d,,\n", !is_public && !e->is_released);
    print_model(e, "model,", ",,\n", report_put_quoted, f);
    if (e->is_released)
        fprintf(f, "epsilon,%.17g,,\ndelta,%.17g,,\nrho,%.17g,,\ndeviation,%.17g,,\ncharge,"
                   "%lld,,\n",
                r->epsilon, r->delta, r->rho, r->deviation, (long long)r->charge.id);
    for (int32_t i = 0; i < e->n; i++) {
        const eval_value *v = &e->at[i];
        fprintf(f, "%s,%.17g,", v->key, v->value);
        if (has_interval(v))
            fprintf(f, "%.17g,%.17g\n", v->low, v->high);
        else
            fputs(",\n", f);
    }
    if (e->has_mauve)
        print_csv_settings(e, f);
    print_csv_points(e, f);
    fields_print_csv(&e->structure, f);
    control_print_csv(e->control, f);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_of_reals(const double *x, int32_t n) {
    json_t *list = json_array();
    for (int32_t i = 0; list && i < n; i++)
        json_array_append_new(list, json_real(x[i]));
    return list;
}

static json_t *json_of_name(const char *name) {
    json_t *text = json_string(name);
    return text ? text : json_string("unnamed"); /* not UTF-8 */
}

static json_t *json_of_counts(const int32_t *x, int32_t n) {
    json_t *list = json_array();
    for (int32_t i = 0; list && i < n; i++)
        json_array_append_new(list, json_integer(x[i]));
    return list;
}

/* [[x, y], ..] of points n from `first` on. */
static json_t *json_of_points(const double *map, int32_t first, int32_t n) {
    json_t *list = json_array();
    for (int32_t i = first; list && i < first + n; i++)
        json_array_append_new(list, json_of_reals(map + 2 * (int64_t)i, 2));
    return list;
}

static json_t *json_of_roc(const eval_ranking *r) {
    return json_pack("{s:o, s:o}", "fpr", json_of_reals(r->roc_fpr, EVAL_ROC_POINTS), "tpr",
                     json_of_reals(r->roc_tpr, EVAL_ROC_POINTS));
}

/* What the plots show. */
static bool add_points(json_t *object, const evaluation *e) {
    bool ok = true;
    if (has_lengths(e))
        ok = json_object_set_new(object, "lengths",
                                 json_pack("{s:i, s:o, s:o}", "words_in_bin", (int)e->words_in_bin,
                                           "synthetic", json_of_counts(e->lengths[0], EVAL_BINS),
                                           "real", json_of_counts(e->lengths[1], EVAL_BINS))) == 0;
    if (e->has_mauve)
        ok &= json_object_set_new(object, "mauve_curve",
                                  json_pack("{s:o, s:o}", "x",
                                            json_of_reals(e->mauve.x, MAUVE_WEIGHTS + 2), "y",
                                            json_of_reals(e->mauve.y, MAUVE_WEIGHTS + 2))) == 0;
    if (e->map)
        ok &= json_object_set_new(
                  object, "map",
                  json_pack("{s:o, s:o}", "synthetic", json_of_points(e->map, 0, e->n_synthetic),
                            "real", json_of_points(e->map, e->n_synthetic, e->n_real))) == 0;
    if (e->has_members)
        ok &= json_object_set_new(object, "membership_roc", json_of_roc(&e->members)) == 0;
    if (e->has_canaries)
        ok &= json_object_set_new(object, "canary_roc", json_of_roc(&e->canaries)) == 0;
    return ok;
}

static json_t *json_of_guarantee(const dpi_counts_info *r) {
    return json_pack("{s:f, s:f, s:f, s:s, s:s, s:i, s:I, s:f, s:I}", "epsilon", r->epsilon,
                     "delta", r->delta, "rho", r->rho, "unit", "record", "adjacency",
                     "replace-by-null", "histograms", (int)r->n_groups, "variance_256",
                     (json_int_t)r->variance, "deviation", r->deviation, "charge",
                     (json_int_t)r->charge.id);
}

static bool print_json(const evaluation *e, bool is_public, FILE *f) {
    json_t *object = json_object(), *intervals = json_object();
    bool ok = object && intervals &&
              json_object_set_new(object, "private",
                                  json_boolean(!is_public && !e->is_released)) == 0;
    if (ok && e->is_released)
        ok = json_object_set_new(object, "guarantee", json_of_guarantee(&e->released)) == 0;
    for (int32_t i = 0; i < e->n && ok; i++) {
        const eval_value *v = &e->at[i];
        ok = json_object_set_new(object, v->key, json_real(v->value)) == 0;
        if (ok && has_interval(v))
            ok = json_object_set_new(intervals, v->key, json_pack("[f, f]", v->low, v->high)) == 0;
    }
    ok = ok && json_object_set(object, "intervals", intervals) == 0 && add_points(object, e);
    if (ok && e->model_name[0]) /* any bytes: its file is not ours */
        ok = json_object_set_new(object, "model", json_of_name(e->model_name)) == 0;
    if (ok && e->structure.n_fields > 0)
        ok = json_object_set_new(object, "fields", fields_json(&e->structure)) == 0;
    if (ok && e->control)
        ok = json_object_set_new(object, "control", control_json(e->control)) == 0;
    if (ok && e->has_mauve)
        ok = json_object_set_new(object, "mauve_seeds",
                                 json_of_reals(e->mauve.of_seed, e->mauve.n_seeds)) == 0 &&
             json_object_set_new(object, "settings",
                                 json_pack("{s:f, s:I, s:i, s:i, s:i, s:i}", "scaling",
                                           e->settings.scaling, "first_seed",
                                           (json_int_t)e->settings.seed, "n_weights",
                                           MAUVE_WEIGHTS, "n_starts", MAUVE_STARTS, "n_rounds",
                                           MAUVE_ROUNDS, "n_texts_wanted", MAUVE_TEXTS)) == 0;
    char *text = ok ? json_dumps(object, JSON_INDENT(2)) : NULL;
    json_decref(object);
    json_decref(intervals);
    if (!text)
        return false;
    fprintf(f, "%s\n", text);
    dpi_private_free(text); /* jansson's memory: main sees to it */
    return true;
}

/* ---- HTML ------------------------------------------------------------------------------------ */

static void print_rows(const evaluation *e, FILE *f) {
    for (int32_t i = 0; i < e->n; i++) {
        const eval_value *v = &e->at[i];
        if (is_first_of_group(e, i))
            fprintf(f, "%s<h2>%s</h2>\n<table class=\"values\"><tr><th class=\"n\">value</th>"
                       "<th class=\"n\">95 %%</th><th>what</th></tr>\n",
                    i > 0 ? "</table>\n" : "", v->group);
        fprintf(f, "<tr><td class=\"n\">%.6g</td><td class=\"n\">", v->value);
        if (has_interval(v))
            fprintf(f, "%.4g to %.4g", v->low, v->high);
        fprintf(f, "</td><td>%s</td></tr>\n", v->label);
    }
    fputs("</table>\n", f);
}

static void put_html(const char *text, FILE *f) { dpi_draw_text(dpi_draw_to_file(f), text); }

static void print_html(const evaluation *e, bool is_public, FILE *f) {
    const dpi_draw d = dpi_draw_to_file(f);
    dpi_draw_page_begin(d, "What the texts are worth");
    fputs("<h1>What the texts are worth</h1>\n<p class=\"note\">", f);
    print_note(e, is_public, f);
    fputs("</p>\n", f);
    print_model(e, "<p>Model: ", ".</p>\n", put_html, f);
    if (!e->is_released)
        plot_lengths(e, f);
    if (e->has_mauve)
        plot_frontier(e, f);
    if (e->map)
        plot_map(e, f);
    if (e->has_members || e->has_canaries)
        plot_members(e, f);
    print_rows(e, f);
    fields_print_html(&e->structure, f);
    control_print_html(e->control, f);
    if (e->has_mauve) {
        fputs("<p>", f);
        print_settings(e, f);
        fputs("</p>\n", f);
    }
    dpi_draw_page_end(d);
}

bool eval_print(const evaluation *e, bool is_public, eval_form form, FILE *stream) {
    bool ok = true;
    switch (form) {
    case EVAL_JSON: ok = print_json(e, is_public, stream); break;
    case EVAL_CSV: print_csv(e, is_public, stream); break;
    case EVAL_HTML: print_html(e, is_public, stream); break;
    default: print_text(e, is_public, stream); break;
    }
    return ok && fflush(stream) == 0 && !ferror(stream);
}
