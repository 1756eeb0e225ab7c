/* control.c - see control.h. */
#include "eval/control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/classify.h"
#include "eval/fail.h"
#include "eval/intervals.h"

/* Resamples of fewer texts than this say too little of how texts vary. */
enum { TEXTS_MIN = 10 };

/* ---- What is compared ------------------------------------------------------------------------ */

/* What says how near texts are to real ones, and in which direction. */
static const struct {
    const char *key;
    int32_t sign;
} judged[] = {{"mauve", 1},
              {"accuracy", 1},
              {"length_tv", -1},
              {"field_tv_mean", -1},
              {"attribute_tv_mean", -1}};

/* Values that are of the real or the training texts, or of how something was computed. */
static const char *const not_of_texts[] = {"accuracy_train",  "n_labels",   "n_cut",
                                           "n_clusters",      "n_dimensions", "mauve_deviation",
                                           "exposure_chance", "exposure_possible",
                                           "epsilon_claimed"};

static bool is_of_texts(const eval_value *v) {
    const size_t n = strlen(v->key);
    bool is = strcmp(v->group, "texts") != 0 && !(n > 5 && strcmp(v->key + n - 5, "_real") == 0);
    for (size_t i = 0; i < sizeof not_of_texts / sizeof *not_of_texts; i++)
        is &= strcmp(v->key, not_of_texts[i]) != 0;
    return is;
}

static int32_t sign_of(const char *key) {
    for (size_t i = 0; i < sizeof judged / sizeof *judged; i++)
        if (strcmp(key, judged[i].key) == 0)
            return judged[i].sign;
    return 0;
}

static eval_value *find_value(evaluation *e, const char *key) {
    for (int32_t i = 0; i < e->n; i++)
        if (strcmp(e->at[i].key, key) == 0)
            return &e->at[i];
    return NULL;
}

/* ---- A classifier ---------------------------------------------------------------------------- */

/* What classifiers are right about, of resamples of the texts and of the real ones. */
typedef struct learned {
    const eval_texts *texts, *real;
    eval_text *at;           /* [texts->n] scratch */
    int32_t *each, *which;   /* [2, real->n] as eval_classify has it; [real->n]; scratch */
    int32_t *counts;         /* [3, labels + 1] scratch of eval_macro_f1 */
    double *accuracy, *f1;   /* [EVAL_RESAMPLES] */
} learned;

/* Draws k, k + EVAL_TRAININGS, .. of one classifier. The resamples of the real texts are the same
 * for each classifier. */
static void draw_right(const learned *x, const eval_accuracy *a, int32_t k) {
    const int32_t *label = x->each, *found = x->each + x->real->n;
    for (int32_t r = k; r < EVAL_RESAMPLES; r += EVAL_TRAININGS) {
        uint64_t state = (uint64_t)r;
        int32_t n_right = 0;
        for (int32_t i = 0; i < a->n_test; i++) {
            const int32_t t = x->which[i] = eval_resample(&state, a->n_test);
            n_right += label[t] == found[t];
        }
        x->accuracy[r] = (double)n_right / a->n_test;
        x->f1[r] = eval_macro_f1(label, found, x->which, a->n_test, a->n_labels, x->counts);
    }
}

/* A resample with one label alone is drawn again. */
static dpi_status learn_resamples(const learned *x, uint64_t state, const eval_watch *watch,
                                  dpi_error *err) {
    eval_texts drawn = *x->texts;
    eval_accuracy a;
    drawn.at = x->at;
    for (int32_t k = 0; k < EVAL_TRAININGS; k++) {
        dpi_status status = DPI_STATUS_ARG;
        if (watch && watch->progress)
            watch->progress(watch->user, "classifiers of resamples", k, EVAL_TRAININGS);
        for (int32_t again = 0; again < 100 && status == DPI_STATUS_ARG; again++) {
            drawn.n_terms = 0;
            for (int32_t i = 0; i < drawn.n; i++) {
                x->at[i] = x->texts->at[eval_resample(&state, drawn.n)];
                drawn.n_terms += x->at[i].n_terms;
            }
            status = eval_classify(&drawn, x->real, &a, x->each, err);
        }
        EVAL_TRY(status);
        draw_right(x, &a, k);
    }
    return DPI_STATUS_OK;
}

/* Accuracy and F1 of e get draws of classifiers that learn anew. */
static dpi_status draw_classifiers(evaluation *e, const eval_texts *texts, const eval_texts *real,
                                   const eval_watch *watch, dpi_error *err) {
    const eval_value *accuracy = find_value(e, "accuracy"), *f1 = find_value(e, "macro_f1");
    const size_t n = (size_t)texts->n, n_real = (size_t)real->n;
    if (!accuracy || !f1)
        return DPI_STATUS_OK;
    learned x = {.texts = texts,
                 .real = real,
                 .at = dpi_private_malloc((n + 1) * sizeof *x.at),
                 .each = dpi_private_malloc(3 * (n_real + 1) * sizeof *x.each),
                 .counts = dpi_private_malloc(3 * (n + 1) * sizeof *x.counts),
                 .accuracy = accuracy->draws,
                 .f1 = f1->draws};
    x.which = x.each ? x.each + 2 * n_real : NULL;
    const dpi_status status = x.at && x.each && x.counts
                                  ? learn_resamples(&x, e->stream, watch, err)
                                  : eval_no_memory(err, "a classifier");
    dpi_private_free(x.at);
    dpi_private_free(x.each);
    dpi_private_free(x.counts);
    return status;
}

/* ---- Differences ----------------------------------------------------------------------------- */

static double deviation(const double *a, const double *b) {
    double mean = 0, squares = 0;
    for (int32_t r = 0; r < EVAL_RESAMPLES; r++)
        mean += (a[r] - b[r]) / EVAL_RESAMPLES;
    for (int32_t r = 0; r < EVAL_RESAMPLES; r++)
        squares += (a[r] - b[r] - mean) * (a[r] - b[r] - mean);
    return sqrt(squares / (EVAL_RESAMPLES - 1));
}

/* Resamples of two sets are further apart than the sets, on both sides alike: so the interval is
 * the difference and 1.96 deviations. */
static void add_difference(eval_control *c, const eval_value *a, const eval_value *b,
                           bool can_judge) {
    eval_difference *d = &c->at[c->n++];
    *d = (eval_difference){.key = a->key,
                           .label = a->label,
                           .synthetic = a->value,
                           .control = b->value,
                           .value = a->value - b->value,
                           .low = NAN,
                           .high = NAN};
    /* Who is whose neighbour differs with the texts, which resamples of the shares do not show. */
    const bool of_neighbours = strcmp(a->key, "precision") == 0 || strcmp(a->key, "recall") == 0;
    if (!a->draws || !b->draws || of_neighbours)
        return;
    const double away = 1.96 * deviation(a->draws, b->draws);
    d->low = d->value - away;
    d->high = d->value + away;
    d->is_judged = can_judge && sign_of(d->key) != 0;
    c->n_judged += d->is_judged;
}

/* The z beyond which a standard Gaussian is with this chance, on either side. */
static double z_of(double chance) {
    double low = 0, high = 40;
    for (int32_t i = 0; i < 60; i++) {
        const double z = (low + high) / 2;
        if (erfc(z / sqrt(2)) > chance)
            low = z;
        else
            high = z;
    }
    return high;
}

static void judge(eval_control *c) {
    c->z = z_of(.05 / (c->n_judged > 0 ? c->n_judged : 1));
    for (int32_t i = 0; i < c->n; i++) {
        eval_difference *d = &c->at[i];
        const double away = c->z / 1.96 * (d->high - d->low) / 2;
        if (d->is_judged && fabs(d->value) > away)
            d->verdict = d->value > 0 ? sign_of(d->key) : -sign_of(d->key);
    }
}

/* The keys of the metrics with a verdict, between commas; how many. */
static int32_t list_keys(const eval_control *c, int32_t verdict, char *text, size_t room) {
    int32_t n = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < c->n; i++)
        if (c->at[i].is_judged && c->at[i].verdict == verdict) {
            const size_t used = strlen(text);
            snprintf(text + used, room - used, "%s%s", n++ > 0 ? ", " : "", c->at[i].key);
        }
    return n;
}

static void say(eval_control *c, int32_t n_texts) {
    char better[160], worse[160];
    const int32_t n_better = list_keys(c, 1, better, sizeof better);
    const int32_t n_worse = list_keys(c, -1, worse, sizeof worse);
    if (c->n_judged == 0)
        snprintf(c->verdict, sizeof c->verdict,
                 "Too few texts to say whether the budget bought anything: found %d, and %d of the "
                 "control, needed %d of each.",
                 (int)n_texts, (int)c->n_control, TEXTS_MIN);
    else if (n_better > 0)
        snprintf(c->verdict, sizeof c->verdict,
                 "The budget bought something: beyond chance the texts are nearer to the real ones "
                 "than the control by %s%s%s (of %d that are judged, at 95 %% together).",
                 better, n_worse > 0 ? ", and further by " : "", worse, (int)c->n_judged);
    else
        snprintf(c->verdict, sizeof c->verdict,
                 "The budget bought nothing that shows: by none of %d measures the texts are "
                 "nearer to the real ones than the control beyond chance (at 95 %% together)%s%s.",
                 (int)c->n_judged, n_worse > 0 ? "; they are further by " : "", worse);
}

static dpi_status compare(evaluation *e, evaluation *beside, dpi_error *err) {
    eval_control *c = dpi_private_malloc(sizeof *c);
    if (!c)
        return eval_no_memory(err, "a control");
    *c = (eval_control){.n_control = beside->n_synthetic};
    const bool can_judge = e->n_synthetic >= TEXTS_MIN && c->n_control >= TEXTS_MIN;
    for (int32_t i = 0; i < e->n; i++) {
        const eval_value *b = find_value(beside, e->at[i].key);
        if (b && is_of_texts(&e->at[i]))
            add_difference(c, &e->at[i], b, can_judge);
    }
    judge(c);
    say(c, e->n_synthetic);
    e->control = c;
    return DPI_STATUS_OK;
}

/* ---- All ------------------------------------------------------------------------------------- */

dpi_status evaluate_beside_control(const eval_sources *sources, const eval_texts *control,
                                   evaluation *e, dpi_error *err) {
    eval_sources s = *sources;
    eval_reading reading = {0};
    evaluation beside = {0};
    dpi_status status = DPI_STATUS_OK;
    if (s.model) {
        status = eval_read(s.model, &s.session, s.real, "real texts read by the model", s.watch,
                           &reading, err);
        s.reading = &reading;
    }
    if (status == DPI_STATUS_OK)
        status = evaluate(&s, e, err);
    s.synthetic = control;
    s.is_control = true;
    s.prompts = NULL; /* they are of the other texts */
    if (status == DPI_STATUS_OK)
        status = evaluate(&s, &beside, err);
    if (status == DPI_STATUS_OK)
        status = draw_classifiers(e, sources->synthetic, s.real, s.watch, err);
    if (status == DPI_STATUS_OK)
        status = draw_classifiers(&beside, control, s.real, s.watch, err);
    if (status == DPI_STATUS_OK)
        status = compare(e, &beside, err);
    evaluation_free(&beside);
    eval_reading_free(&reading);
    return status;
}
