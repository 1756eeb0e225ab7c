/* test_attack_language.c - guesses of a language model about perturbed words against the oracle. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/attack.h"
#include "dpinfer/text.h"
#include "engine/model.h"
#include "tests/pipeline/perturb/attack_support.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"
#include "tokenizer/vocab.h"

/* Tokens of a text with BOS; returns how many. */
static size_t tokens_of(const dpi_model *model, const char *text, int32_t tokens[256]) {
    size_t n;
    dpi_error err = {0};
    assert_ok(dpi_tokenize(model, text, strlen(text), DPI_TOKENIZE_BOS, tokens, 256, &n, &err),
              &err);
    return n;
}

static void run_language(const dpi_vocabulary *v, const dpi_model *model, const char *text,
                         const dpi_perturb_options *o, dpi_attack_result *r) {
    dpi_attack_options ao;
    dpi_attack *attack;
    dpi_error err = {0};
    dpi_attack_options_init(&ao);
    ao.language = 1;
    ao.model = model;
    assert_ok(dpi_attack_create(v, &ao, &attack, &err), &err);
    assert_ok(dpi_attack_add(attack, text, strlen(text), &err), &err);
    dpi_attack_result_init(r);
    assert_ok(dpi_attack_run(attack, o, r, &err), &err);
    dpi_attack_free(attack);
}

/* The language model reads what stays as it is: its guesses are those of the oracle. */
static void test_language(void **state) {
    (void)state;
    static const char text[] = "some letters and words of it";
    const tiny_spec spec = tiny_default();
    void *image;
    dpi_model *model = tiny_open(&spec, 3, &image);
    dpi_vocabulary *v;
    dpi_attack_result r;
    dpi_error err = {0};
    int32_t tokens[256];
    int64_t expected = 0, n_known = 0;
    assert_ok(dpi_vocabulary_of_model(model, 0, &v, &err), &err);
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, &err), &err);
    const size_t n = tokens_of(model, text, tokens);
    double *logits = calloc(n * (size_t)spec.n_vocab, sizeof *logits);
    int32_t *place = calloc((size_t)spec.n_vocab, sizeof *place);
    assert_true(logits && place);
    oracle_logits(&spec, model, tokens, (int32_t)n, logits);
    for (int32_t t = 0; t < spec.n_vocab; t++) { /* which tokens are words of the vocabulary */
        const dpi_token *token = &model->vocab->tokens[t];
        place[t] = dpi_vocabulary_find(v, token->text, token->n_bytes);
    }
    for (size_t i = 1; i < n; i++) {
        const double *row = logits + (i - 1) * (size_t)spec.n_vocab;
        int32_t best = -1;
        for (int32_t t = 0; t < spec.n_vocab; t++)
            if (place[t] >= 0 && (best < 0 || row[t] > row[best]))
                best = t;
        assert_true(place[tokens[i]] >= 0);
        n_known++;
        expected += best == tokens[i];
    }
    const dpi_perturb_options o = no_change(dpi_vocabulary_count(v));
    run_language(v, NULL, text, &o, &r);
    assert_int_equal(r.n_guessed[DPI_GUESS_LANGUAGE], n_known);
    assert_int_equal(r.n_right[DPI_GUESS_LANGUAGE], expected);
    assert_int_equal(r.n_right[DPI_GUESS_CONTEXT], n_known);
    dpi_vocabulary_free(v);
    dpi_model_close(model);
    free(image);
    free(logits);
    free(place);
}

/* The word that the oracle expects after a text, by the first token of each behind it. */
static int expect_word(const tiny_spec *spec, const dpi_model *model, const char *text,
                       const char *const *words, int n_words) {
    int32_t tokens[256], others[256];
    char longer[300];
    int best = 0;
    const size_t n = tokens_of(model, text, tokens);
    double *logits = calloc(n * (size_t)spec->n_vocab, sizeof *logits);
    double most = -INFINITY;
    assert_non_null(logits);
    oracle_logits(spec, model, tokens, (int32_t)n, logits);
    for (int x = 0; x < n_words; x++) {
        snprintf(longer, sizeof longer, "%s%s%s", text, *text ? " " : "", words[x]);
        assert_true(tokens_of(model, longer, others) > n);
        assert_memory_equal(tokens, others, n * sizeof *tokens);
        const double logit = logits[(n - 1) * (size_t)spec->n_vocab + (size_t)others[n]];
        best = logit > most ? x : best;
        most = fmax(logit, most);
    }
    free(logits);
    return best;
}

/* A model reads words that are not its tokens. Every other word is the one that it expects. */
static void test_language_of_vectors(void **state) {
    (void)state;
    enum { N_TEXT = 8, N_ALL = 10 };
    static const char *const all[N_ALL] = {"some", "letters", "and",  "words", "of",
                                           "it",   "zebra",   "quiz", "7",     "the"};
    static const float vectors[N_ALL] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const tiny_spec spec = tiny_default();
    char text[256] = "", longer[300];
    int64_t expected = 0;
    void *image;
    dpi_model *model = tiny_open(&spec, 3, &image);
    dpi_vocabulary *v;
    dpi_attack_result r;
    dpi_error err = {0};
    assert_ok(dpi_vocabulary_create(all, vectors, N_ALL, 1, &v, &err), &err);
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, &err), &err);
    for (int i = 0; i < N_TEXT; i++) {
        const int best = expect_word(&spec, model, text, all, N_ALL), next = i % 2 ? best : i;
        strcat(strcat(text, i > 0 ? " " : ""), all[next]);
        expected += next == best;
    }
    assert_in_range(expected, N_TEXT / 2, N_TEXT - 1);
    dpi_perturb_options o = no_change(N_ALL);
    run_language(v, model, text, &o, &r);
    assert_int_equal(r.n_guessed[DPI_GUESS_LANGUAGE], N_TEXT);
    assert_int_equal(r.n_right[DPI_GUESS_LANGUAGE], expected);
    assert_int_equal(r.n_right[DPI_GUESS_CONTEXT], N_TEXT);
    /* What stays and has no place is known; of numbers the only one of the vocabulary is. */
    char number[200];
    memset(number, '3', sizeof number);
    number[sizeof number - 1] = '\0'; /* more tokens than a word may have */
    snprintf(longer, sizeof longer, "%s of The", number);
    dpi_perturb_options_init(&o);
    o.mechanism = DPI_MECHANISM_CUSTEXT;
    run_language(v, model, longer, &o, &r);
    assert_true(r.n_words == 3 && r.n_right[DPI_GUESS_CONTEXT] == 3);
    o.mechanism = DPI_MECHANISM_RANTEXT;
    run_language(v, model, "7 7 7 7", &o, &r);
    assert_true(r.n_words == 4 && r.n_right[DPI_GUESS_CONTEXT] == 4);
    dpi_vocabulary_free(v);
    dpi_model_close(model);
    free(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_language),
        cmocka_unit_test(test_language_of_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
