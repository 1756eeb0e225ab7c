/* test_attack_language.c - guesses of a language model about perturbed words against the oracle. */
#include <math.h>

#include "dpinfer/text.h"
#include "engine/model.h"
#include "tests/audit/attack_support.h"
#include "tests/support/tiny_model.h"
#include "tokenizer/vocab.h"

static tiny_spec spec;
static void *image;
static dpi_model *model;

SETUP {
    spec = tiny_default();
    model = tiny_open(&spec, 3, &image);
}

TEARDOWN {
    dpi_model_close(model);
    free(image);
}

/* Tokens of a text with BOS; returns how many. */
static size_t tokens_of(const char *text, int32_t tokens[256]) {
    size_t n;
    assert_ok(dpi_tokenize(model, text, strlen(text), DPI_TOKENIZE_BOS, tokens, 256, &n, ERR));
    return n;
}

/* Logits of the oracle after each of n tokens, [n, n_vocab]; the caller frees them. */
static double *logits_after(const int32_t *tokens, size_t n) {
    double *logits = calloc(n * (size_t)spec.n_vocab, sizeof *logits);
    assert_non_null(logits);
    oracle_logits(&spec, model, tokens, (int32_t)n, NULL, logits);
    return logits;
}

/* language: the model that reads the words, NULL for that of the vocabulary. */
static dpi_attack_result run(const dpi_vocabulary *v, const dpi_model *language, const char *text,
                             dpi_perturb_options o) {
    dpi_attack_options ao;
    dpi_attack_result r;
    dpi_attack_options_init(&ao);
    ao.language = 1, ao.model = language;
    dpi_attack_free(attack(v, &ao, text, 1, NULL, o, &r));
    return r;
}

static void expect_guesses(const dpi_attack_result *r, int64_t n, int64_t right, int64_t context) {
    assert_int_equal(r->n_guessed[DPI_GUESS_LANGUAGE], n);
    assert_int_equal(r->n_right[DPI_GUESS_LANGUAGE], right);
    assert_int_equal(r->n_right[DPI_GUESS_CONTEXT], context);
}

/* The language model reads what stays as it is: its guesses are those of the oracle. */
TEST(test_language) {
    static const char text[] = "some letters and words of it";
    dpi_vocabulary *v = vocabulary_of_model(model, 0);
    int32_t tokens[256];
    int64_t expected = 0;
    const size_t n = tokens_of(text, tokens);
    double *logits = logits_after(tokens, n);
    for (size_t i = 1; i < n; i++) {
        const double *row = logits + (i - 1) * (size_t)spec.n_vocab;
        int32_t best = -1;
        for (int32_t t = 0; t < spec.n_vocab; t++) {
            const dpi_token *token = &model->vocab->tokens[t];
            const bool is_word = dpi_vocabulary_find(v, token->text, token->n_bytes) >= 0;
            assert_true(is_word || t != tokens[i]);
            if (is_word && (best < 0 || row[t] > row[best]))
                best = t;
        }
        expected += best == tokens[i];
    }
    const dpi_attack_result r = run(v, NULL, text, no_change(dpi_vocabulary_count(v)));
    expect_guesses(&r, (int64_t)n - 1, expected, (int64_t)n - 1);
    dpi_vocabulary_free(v);
    free(logits);
}

/* The word that the oracle expects after a text, by the first token of each behind it. */
static int expect_word(const char *text, const char *const *words, int n_words) {
    int32_t tokens[256], others[256];
    char longer[300];
    int best = 0;
    double most = -INFINITY;
    const size_t n = tokens_of(text, tokens);
    double *logits = logits_after(tokens, n);
    for (int x = 0; x < n_words; x++) {
        snprintf(longer, sizeof longer, "%s%s%s", text, *text ? " " : "", words[x]);
        assert_true(tokens_of(longer, others) > n);
        assert_memory_equal(tokens, others, n * sizeof *tokens);
        const double logit = logits[(n - 1) * (size_t)spec.n_vocab + (size_t)others[n]];
        best = logit > most ? x : best;
        most = fmax(logit, most);
    }
    free(logits);
    return best;
}

/* A model reads words that are not its tokens. Every other word is the one that it expects. */
TEST(test_language_of_vectors) {
    enum { N_TEXT = 8, N_ALL = 10 };
    static const char *const all[N_ALL] = {"some", "letters", "and",  "words", "of",
                                           "it",   "zebra",   "quiz", "7",     "the"};
    static const float vectors[N_ALL] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    char text[256] = "";
    int64_t expected = 0;
    dpi_vocabulary *v = vocabulary_of(all, vectors, N_ALL, 1);
    for (int i = 0; i < N_TEXT; i++) {
        const int best = expect_word(text, all, N_ALL), next = i % 2 ? best : i;
        strcat(strcat(text, i > 0 ? " " : ""), all[next]);
        expected += next == best;
    }
    assert_in_range(expected, N_TEXT / 2, N_TEXT - 1);
    dpi_attack_result r = run(v, model, text, no_change(N_ALL));
    expect_guesses(&r, N_TEXT, expected, N_TEXT);
    /* What stays and has no place is known; of numbers the only one of the vocabulary is. The
     * first word has more tokens than a word may have. */
    snprintf(text, sizeof text, "%0199d of The", 3);
    r = run(v, model, text, mechanism(DPI_WORDS_CUSTEXT, 0));
    assert_true(r.n_words == 3 && r.n_right[DPI_GUESS_CONTEXT] == 3);
    r = run(v, model, "7 7 7 7", mechanism(DPI_WORDS_RANTEXT, 0));
    assert_true(r.n_words == 4 && r.n_right[DPI_GUESS_CONTEXT] == 4);
    dpi_vocabulary_free(v);
}
