/* The choice of texts by the words of a file of steering vectors: against an oracle that has all
 * vectors whole, and tries each choice. */
#include <math.h>

#include "dpinfer/best_of.h"
#include "gguf/gguf_write.h"
#include "tests/pipeline/steering.h"

enum { N_LABELS = 2, N_WORDS = 4, N_TEXTS = 40 };
static const char *const NAMES[N_WORDS] = {"card", "fee", "lost", "paid"};
static const float WEIGHTS[N_WORDS] = {.25f, .5f, 1, 2};
static const float MEANS[N_LABELS * N_WORDS] = {.6f, .3f, -.5f, 0, 0, .1f, .2f, .7f};

/* A file of words alone: NULL for what it has not. */
static const char *words_file(const char *names, const float *weights, uint64_t n_weights,
                              const float *means, uint64_t n_means) {
    static char path[300];
    dpi_gguf_builder *w;
    snprintf(path, sizeof path, "%s", path_in(dir, "words.gguf"));
    assert_ok(dpi_gguf_builder_create(path, -1, &w, ERR));
    dpi_gguf_put_string(w, "dpinfer.finetune.labels", "x\ny");
    if (names)
        dpi_gguf_put_string(w, "dpinfer.finetune.words", names);
    if (weights)
        dpi_gguf_put_array(w, "dpinfer.finetune.word_weights", DPI_GGUF_F32, n_weights, weights,
                           n_weights * sizeof *weights);
    if (means)
        dpi_gguf_put_array(w, "dpinfer.finetune.word_means", DPI_GGUF_F32, n_means, means,
                           n_means * sizeof *means);
    assert_ok(dpi_gguf_builder_finish(w, ERR));
    return path;
}

static dpi_best_of *opened(void) {
    dpi_best_of *b = NULL;
    assert_ok(dpi_best_of_open(words_file("card fee lost paid", WEIGHTS, N_WORDS, MEANS,
                                          N_LABELS * N_WORDS), &b, ERR));
    assert_int_equal(dpi_best_of_labels(b), N_LABELS);
    assert_int_equal(dpi_best_of_words(b), N_WORDS);
    return b;
}

static void add(dpi_best_of *b, int32_t label, int32_t id, const char *text) {
    int32_t forgotten;
    assert_ok(dpi_best_of_add(b, label, id, text, strlen(text), &forgotten, ERR));
    assert_int_equal(forgotten, id < DPI_BEST_OF_WAITING ? -1 : id - DPI_BEST_OF_WAITING);
}

/* A text of the words whose bits are set, and one that the file does not have; the words of each
 * text stand in another order, and some twice. */
static const char *text_of(unsigned set, int i) {
    static char text[200];
    int n = snprintf(text, sizeof text, "Hello");
    for (int k = 0; k < 2 * N_WORDS; k++) {
        const int word = (k + i) % N_WORDS;
        if (set >> word & 1 && (k < N_WORDS || i % 3 == 0))
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", k % 2 ? ", " : " the ",
                          NAMES[word]);
    }
    return text;
}

static void vector_of(unsigned set, double vector[N_WORDS]) {
    double square = 0;
    for (int w = 0; w < N_WORDS; w++) {
        vector[w] = set >> w & 1 ? (double)WEIGHTS[w] : 0;
        square += vector[w] * vector[w];
    }
    for (int w = 0; w < N_WORDS && square > 0; w++)
        vector[w] /= sqrt(square);
}

/* Which one, with those that were chosen, has the mean that is nearest to that of the label. */
static int nearest(const unsigned *sets, const bool *waits, int n, const double chosen[N_WORDS],
                   int n_chosen, int label) {
    double least = INFINITY;
    int best = -1;
    for (int i = 0; i < n; i++) {
        double vector[N_WORDS], d = 0;
        vector_of(sets[i], vector);
        for (int w = 0; w < N_WORDS; w++) {
            const double mean = fmax((double)MEANS[label * N_WORDS + w], 0);
            d += pow((chosen[w] + vector[w]) / (n_chosen + 1) - mean, 2);
        }
        if (waits[i] && d < least - 1e-12)
            least = d, best = i;
    }
    return best;
}

/* Labels in turn, each with texts of its own; one of three is taken at a time. */
TEST(test_nearest) {
    dpi_best_of *b = opened();
    for (int label = 0; label < N_LABELS; label++) {
        unsigned sets[N_TEXTS];
        bool waits[N_TEXTS] = {false};
        double chosen[N_WORDS] = {0};
        int n_chosen = 0;
        for (int i = 0; i < N_TEXTS; i++) {
            sets[i] = (unsigned)(i * 7 + label * 3) % (1u << N_WORDS);
            add(b, label, i, text_of(sets[i], i));
            waits[i] = true;
            if (i % 3 != 2)
                continue;
            const int best = nearest(sets, waits, i + 1, chosen, n_chosen, label);
            assert_int_equal(dpi_best_of_next(b, label), best);
            double vector[N_WORDS];
            vector_of(sets[best], vector);
            for (int w = 0; w < N_WORDS; w++)
                chosen[w] += vector[w];
            waits[best] = false, n_chosen++;
        }
        assert_true(n_chosen == N_TEXTS / 3);
    }
    dpi_best_of_free(b);
}

/* Of texts that are as good the first comes first; a text without words may be the best. */
TEST(test_equal) {
    dpi_best_of *b = opened();
    add(b, 0, 5, "card"), add(b, 0, 6, "a card"), add(b, 0, 7, "Cards");
    assert_int_equal(dpi_best_of_next(b, 1), -1);
    assert_int_equal(dpi_best_of_next(b, 0), 5); /* .6 less, now .2 of a card is wanted */
    assert_int_equal(dpi_best_of_next(b, 0), 7);
    assert_int_equal(dpi_best_of_next(b, 0), 6);
    assert_int_equal(dpi_best_of_next(b, 0), -1);
    assert_int_equal(dpi_best_of_next(b, N_LABELS), -1);
    assert_int_equal(dpi_best_of_next(b, -1), -1);
    int32_t gone;
    assert_error(dpi_best_of_add(b, 2, 0, "", 0, &gone, ERR), ARG, "label is 2, must be 0..1");
    assert_error(dpi_best_of_add(b, 0, -1, "", 0, &gone, ERR), ARG, "id is -1, must be 0");
    dpi_best_of_free(b);
}

/* Of more than may wait the first is forgotten. */
TEST(test_waiting) {
    dpi_best_of *b = opened();
    for (int i = 0; i <= DPI_BEST_OF_WAITING; i++)
        add(b, 1, i, i == 0 ? "paid lost" : i < 3 ? "paid" : "card");
    assert_int_equal(dpi_best_of_next(b, 1), 1);
    dpi_best_of_free(b);
}

static void refused(const char *names, const float *weights, uint64_t n_weights,
                    const float *means, uint64_t n_means, const char *message) {
    dpi_best_of *b;
    assert_error(dpi_best_of_open(words_file(names, weights, n_weights, means, n_means), &b, ERR),
                 FORMAT, message);
    assert_null(b);
}

TEST(test_files) {
    static const char ALL[] = "card fee lost paid";
    static const char LONG[] = "card fee lost paid-paid-paid-paid-paid-paid-paid-paid";
    static const float MANY[DPI_STEER_WORDS_MAX + 1];
    const float bad[N_LABELS * N_WORDS] = {0, 0, 0, 0, 0, 0, 0, INFINITY};
    const uint64_t n = N_LABELS * N_WORDS;
    dpi_best_of *b;
    assert_ok(dpi_best_of_open(words_file(NULL, NULL, 0, NULL, 0), &b, ERR));
    assert_null(b);
    assert_error(dpi_best_of_open(path_in(dir, "not there.gguf"), &b, ERR), IO, "not there");
    refused(ALL, WEIGHTS, N_WORDS, NULL, 0, "word_means: found 0, needed are 8");
    refused(ALL, NULL, 0, MEANS, n, "word_means: found 8, needed are 0");
    refused(ALL, WEIGHTS, N_WORDS, MEANS, n - 1, "word_means: found 7, needed are 8");
    refused(ALL, MANY, DPI_STEER_WORDS_MAX + 1, MEANS, n, "word_weights: found 16385 of 2 labels");
    refused(ALL, WEIGHTS, N_WORDS, bad, n, "word_means: number 7 is inf, must be finite");
    refused(ALL, bad + N_WORDS, N_WORDS, MEANS, n, "word_weights: number 3 is inf");
    refused("card fee lost", WEIGHTS, N_WORDS, MEANS, n, "words: word 2 has 4 bytes and is the la");
    refused("card fee lost paid up", WEIGHTS, N_WORDS, MEANS, n, "words: word 3 has 4 bytes, ");
    refused("card fee  paid", WEIGHTS, N_WORDS, MEANS, n, "words: word 2 has 0 bytes, allowed are");
    refused(LONG, WEIGHTS, N_WORDS, MEANS, n, "words: word 3 has 39 bytes and is the last");
    refused("card", WEIGHTS, 0, MEANS, 0, "words: found 4 bytes, allowed are words with weights");
    refused("card lost fee paid", WEIGHTS, N_WORDS, MEANS, n, "words: word 2 stands behind one");
    refused("card fee fee paid", WEIGHTS, N_WORDS, MEANS, n, "words: word 2 stands behind one");
}
