/* measure_copies.c - see measure_copies.h. */
#include "eval/measure_copies.h"

#include <math.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/grams.h"
#include "eval/intervals.h"

/* Keys and labels of runs: the longest of all, of each text, of each real text. */
typedef struct runs {
    const char *key[3], *label;
} runs;

static const runs of_words = {{"longest_run", "longest_run_mean", "longest_run_mean_real"},
                              "longest run of words of a training text"};
static const runs of_tokens = {
    {"longest_token_run", "longest_token_run_mean", "longest_token_run_mean_real"},
    "longest run of the model's tokens of a training text"};

static dpi_status add_runs(evaluation *e, const runs *r, const eval_texts *synthetic,
                           const eval_texts *train, const eval_texts *real, dpi_error *err) {
    const size_t n = (size_t)synthetic->n, n_real = (size_t)real->n;
    double *x = dpi_private_malloc((n + n_real + 1) * sizeof *x), longest = 0;
    dpi_status status =
        x ? eval_longest_runs(synthetic, train, x, err) : eval_no_memory(err, "copies");
    if (status == DPI_STATUS_OK)
        status = eval_longest_runs(real, train, x + n, err);
    for (size_t i = 0; i < n && status == DPI_STATUS_OK; i++)
        longest = fmax(longest, x[i]);
    if (status == DPI_STATUS_OK) {
        eval_add(e, "copies", r->key[0], r->label, longest);
        status = eval_add_mean(e, "copies", r->key[1], "the same of each text, mean", x,
                               synthetic->n, err);
    }
    if (status == DPI_STATUS_OK)
        status = eval_add_mean(e, "copies", r->key[2], "the same of real texts", x + n, real->n,
                               err);
    dpi_private_free(x);
    return status;
}

static dpi_status add_token_runs(evaluation *e, const eval_sources *s, dpi_error *err) {
    const eval_texts *const sets[] = {s->synthetic, s->train, s->real};
    eval_texts tokens[3] = {{0}};
    dpi_status status = DPI_STATUS_OK;
    for (int32_t k = 0; k < 3 && status == DPI_STATUS_OK; k++)
        status = eval_tokenize(s->model, sets[k], &tokens[k], err);
    if (status == DPI_STATUS_OK)
        status = add_runs(e, &of_tokens, &tokens[0], &tokens[1], &tokens[2], err);
    for (int32_t k = 0; k < 3; k++)
        eval_texts_free(&tokens[k]);
    return status;
}

dpi_status eval_measure_copies(evaluation *e, const eval_sources *s, dpi_error *err) {
    eval_copies c, r;
    if (!s->train || s->train->n == 0)
        return DPI_STATUS_OK;
    EVAL_TRY(eval_compare(s->synthetic, s->train, s->real, &c, err));
    EVAL_TRY(eval_compare(s->real, s->train, NULL, &r, err));
    const int32_t n = s->synthetic->n;
    EVAL_TRY(eval_add_share(e, "copies", "near_copies",
                            "texts with half of the trigrams of a training text", c.n_near_copies,
                            n, err));
    EVAL_TRY(eval_add_share(e, "copies", "near_copies_real", "the same of real texts",
                            r.n_near_copies, s->real->n, err));
    eval_add(e, "copies", "exact_copies", "texts that are a training text", c.n_exact);
    EVAL_TRY(add_runs(e, &of_words, s->synthetic, s->train, s->real, err));
    if (s->model)
        EVAL_TRY(add_token_runs(e, s, err));
    EVAL_TRY(eval_add_share(e, "copies", "rare_copies",
                            "texts with five words in a row of one training text alone", c.n_rare,
                            n, err));
    eval_add(e, "copies", "rare_runs", "such runs", (double)c.n_rare_runs);
    return DPI_STATUS_OK;
}
