/* advice.c - see advice.h. A fault is told where it is in more than a few texts: one of twenty is
 * what a good prompt leaves, too. */
#include "eval/advice.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/fail.h"
#include "eval/grams.h"
#include "eval/openings.h"

/* A share of texts above which something is wrong with the prompt, and not with a text. */
static const double FEW = .1, MANY = .25;

const char *eval_fault_name(eval_fault fault) {
    static const char *const names[] = {
        [EVAL_FAULT_BASE] = "base-model", [EVAL_FAULT_OPENING] = "opening",
        [EVAL_FAULT_CUT] = "cut",         [EVAL_FAULT_CIRCLES] = "circles",
        [EVAL_FAULT_ALIKE] = "alike",     [EVAL_FAULT_COPIES] = "copies",
        [EVAL_FAULT_DEAF] = "no-effect"};
    return names[fault];
}

__attribute__((format(printf, 4, 5))) static void tell(eval_advice *advice, int32_t *n,
                                                       eval_fault fault, const char *format, ...) {
    va_list values;
    va_start(values, format);
    advice[*n].fault = fault;
    vsnprintf(advice[*n].text, sizeof advice[*n].text, format, values);
    va_end(values);
    ++*n;
}

/* ---- Openings -------------------------------------------------------------------------------- */

static dpi_status count_openings(const eval_texts *texts, int32_t *n, dpi_error *err) {
    double *found = malloc(((size_t)texts->n + 1) * sizeof *found);
    dpi_status status = found ? DPI_STATUS_OK : eval_no_memory(err, "how texts begin");
    *n = 0;
    for (int32_t k = 0; k < EVAL_OPENINGS && status == DPI_STATUS_OK; k++) {
        status = eval_openings_find(texts, (eval_opening)k, found, err);
        for (int32_t i = 0; i < texts->n && status == DPI_STATUS_OK; i++)
            *n += found[i] > 0;
    }
    free(found);
    return status;
}

static dpi_status look_at_openings(const eval_tried *t, eval_advice *advice, int32_t *n,
                                   dpi_error *err) {
    int32_t open, shown;
    EVAL_TRY(count_openings(t->public_texts, &open, err));
    EVAL_TRY(count_openings(t->record_texts, &shown, err));
    if (open <= FEW * t->public_texts->n && shown <= FEW * t->record_texts->n)
        return DPI_STATUS_OK;
    tell(advice, n, EVAL_FAULT_OPENING,
         "%d of %d public texts and %d of %d texts of examples begin with a refusal or a sentence "
         "about the task: %s", open, t->public_texts->n, shown, t->record_texts->n,
         t->has_answer ? "--ban refusals keeps these beginnings away"
                       : "--answer TEXT gives the answer its beginning, and --ban refusals keeps "
                         "these away");
    return DPI_STATUS_OK;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static int32_t count_set(const bool *flags, int32_t n) {
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++)
        count += flags[i];
    return count;
}

static void look_at_ends(const eval_tried *t, eval_advice *advice, int32_t *n) {
    const int32_t of = t->public_texts->n + t->record_texts->n;
    const int32_t cut = count_set(t->public_cut, t->public_texts->n) +
                        count_set(t->record_cut, t->record_texts->n);
    if (cut <= MANY * of)
        return;
    tell(advice, n, EVAL_FAULT_CUT, "%d of %d texts end at -n %d, in the middle of a sentence: a "
         "larger -n%s or --max-words ends them where they should", cut, of, t->n_tokens,
         t->has_stop ? "" : ", --stop TEXT");
}

/* ---- Circles --------------------------------------------------------------------------------- */

/* Texts of some length in which most runs of three words have been there before. */
enum { CIRCLE_WORDS = 12 };
static const double CIRCLE = .5;

static dpi_status count_circles(const eval_texts *texts, int32_t *n, dpi_error *err) {
    double *distinct = malloc(((size_t)texts->n + 1) * sizeof *distinct), all, mean;
    dpi_status status = distinct ? DPI_STATUS_OK : eval_no_memory(err, "the words of texts");
    *n = 0;
    if (status == DPI_STATUS_OK)
        status = eval_distinct(texts, 3, &all, &mean, distinct, err);
    for (int32_t i = 0; i < texts->n && status == DPI_STATUS_OK; i++)
        *n += texts->at[i].n_words >= CIRCLE_WORDS && distinct[i] < CIRCLE;
    free(distinct);
    return status;
}

static dpi_status look_at_circles(const eval_tried *t, eval_advice *advice, int32_t *n,
                                  dpi_error *err) {
    const int32_t of = t->public_texts->n + t->record_texts->n;
    int32_t open, shown;
    EVAL_TRY(count_circles(t->public_texts, &open, err));
    EVAL_TRY(count_circles(t->record_texts, &shown, err));
    if (open + shown > FEW * of)
        tell(advice, n, EVAL_FAULT_CIRCLES,
             "%d of %d texts say the same words over and over: --repeat-penalty 1.1 or "
             "--no-repeat 8 keeps a text from it, and costs nothing", open + shown, of);
    return DPI_STATUS_OK;
}

/* ---- What records change --------------------------------------------------------------------- */

static bool are_alike(const eval_texts *texts) {
    for (int32_t i = 1; i < texts->n; i++)
        if (strcmp(texts->at[i].text, texts->at[0].text) != 0)
            return false;
    return texts->n > 1;
}

static int compare_hashes(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The different words of a text, sorted: *word [*n]. */
static dpi_status list_words(const eval_text *t, uint64_t **word, int32_t *n, dpi_error *err) {
    *word = malloc(((size_t)t->n_words + 1) * sizeof **word);
    *n = 0;
    if (!*word)
        return eval_no_memory(err, "the words of a text");
    if (t->n_words > 0)
        memcpy(*word, t->word, (size_t)t->n_words * sizeof **word);
    qsort(*word, (size_t)t->n_words, sizeof **word, compare_hashes);
    for (int32_t i = 0; i < t->n_words; i++)
        if (i == 0 || (*word)[i] != (*word)[i - 1])
            (*word)[(*n)++] = (*word)[i];
    return DPI_STATUS_OK;
}

/* Jaccard's index of the words of two texts, 0..1. */
static dpi_status find_overlap(const eval_text *a, const eval_text *b, double *overlap,
                               dpi_error *err) {
    uint64_t *x = NULL, *y = NULL;
    int32_t n_x = 0, n_y = 0, both = 0;
    dpi_status status = list_words(a, &x, &n_x, err);
    if (status == DPI_STATUS_OK)
        status = list_words(b, &y, &n_y, err);
    for (int32_t i = 0, k = 0; status == DPI_STATUS_OK && i < n_x && k < n_y;) {
        both += x[i] == y[k];
        const bool next_x = x[i] <= y[k], next_y = y[k] <= x[i];
        i += next_x, k += next_y;
    }
    *overlap = n_x + n_y > both ? (double)both / (n_x + n_y - both) : 0;
    free(x);
    free(y);
    return status;
}

/* Mean over public texts. */
static dpi_status find_public(const eval_tried *t, const eval_text *record, double *mean,
                              dpi_error *err) {
    double overlap;
    *mean = 0;
    for (int32_t i = 0; i < t->public_texts->n; i++) {
        EVAL_TRY(find_overlap(&t->public_texts->at[i], record, &overlap, err));
        *mean += overlap / t->public_texts->n;
    }
    return DPI_STATUS_OK;
}

/* Texts of a record are nearer to it than public ones where it has an effect: by more than two
 * standard errors of the mean of all, which chance reaches once in 40 times. */
static dpi_status look_at_effect(const eval_tried *t, eval_advice *advice, int32_t *n,
                                 dpi_error *err) {
    const int32_t of = t->record_texts->n;
    double sum = 0, squares = 0, own = 0, others = 0;
    for (int32_t i = 0; i < of; i++) {
        const eval_text *record = &t->records->at[i % t->records->n];
        double overlap, usual;
        EVAL_TRY(find_overlap(&t->record_texts->at[i], record, &overlap, err));
        EVAL_TRY(find_public(t, record, &usual, err));
        own += overlap / of, others += usual / of;
        sum += overlap - usual, squares += (overlap - usual) * (overlap - usual);
    }
    const double mean = sum / of, variance = squares / of - mean * mean;
    if (mean > 2 * sqrt(fmax(variance, 0) / of))
        return DPI_STATUS_OK;
    tell(advice, n, EVAL_FAULT_DEAF,
         "texts of examples are no nearer to their examples than public ones (they share %.0f %% "
         "of the words, public ones %.0f %%): the private prompt has no effect. --private-prompt "
         "should show {reference} as an example of what is wanted", 100 * own, 100 * others);
    return DPI_STATUS_OK;
}

static dpi_status look_at_copies(const eval_tried *t, eval_advice *advice, int32_t *n,
                                 dpi_error *err) {
    const int32_t of = t->record_texts->n;
    int32_t copies = 0;
    for (int32_t i = 0; i < of; i++) {
        bool is_copy;
        EVAL_TRY(eval_is_near_copy(&t->record_texts->at[i], &t->records->at[i % t->records->n],
                                   &is_copy, err));
        copies += is_copy;
    }
    if (copies > MANY * of)
        tell(advice, n, EVAL_FAULT_COPIES,
             "%d of %d texts of examples are copies of them: the model repeats the record. "
             "--private-prompt should ask for another one like it; --example FILE shows what is "
             "wanted without it", copies, of);
    return DPI_STATUS_OK;
}

/* ---- All ------------------------------------------------------------------------------------- */

dpi_status eval_advise(const eval_tried *t, eval_advice *advice, int32_t *n, dpi_error *err) {
    dpi_status status = DPI_STATUS_OK;
    *n = 0;
    if (t->is_base && t->is_instruction)
        tell(advice, n, EVAL_FAULT_BASE,
             "the model has no chat format, so it continues texts, and the prompt is an "
             "instruction: --describe has prompts for base models; --template NAME names the "
             "format if it has one");
    EVAL_TRY(look_at_openings(t, advice, n, err));
    look_at_ends(t, advice, n);
    EVAL_TRY(look_at_circles(t, advice, n, err));
    if (are_alike(t->public_texts))
        tell(advice, n, EVAL_FAULT_ALIKE,
             "all %d public texts are the same: a larger --temp or --top-k makes them differ",
             t->public_texts->n);
    if (t->record_texts->n > 0)
        status = look_at_copies(t, advice, n, err);
    if (status == DPI_STATUS_OK && t->record_texts->n > 0)
        status = look_at_effect(t, advice, n, err);
    return status;
}
