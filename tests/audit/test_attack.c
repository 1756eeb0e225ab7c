/* test_attack.c - attacks against what they must find: the best guess and its mean by enumeration
 * of the papers' formulas, n-grams and nearest words by hand. */
#include <math.h>

#include "dpinfer/text.h"
#include "tests/audit/attack_support.h"
#include "tests/support/tiny_model.h"

enum { N = 12, DIM = 2 };

static const char *const words[N] = {"ant", "bee", "cat",  "dog", "eel", "fox",
                                     "gnu", "hen", "ibex", "jay", "koi", "lynx"};
/* How often each stands in the document. */
static const int counts[N] = {90, 5, 40, 1, 60, 0, 10, 33, 2, 70, 8, 25};
enum { N_DOCUMENT = 344 };

static dpi_vocabulary *vocabulary;
static double place[N][DIM], distance[N][N], p[N][N]; /* p: P(y | x), see fill_law */

SETUP {
    float vectors[N * DIM];
    uint64_t seed = 5;
    for (int i = 0; i < N * DIM; i++)
        place[i / DIM][i % DIM] = (double)(vectors[i] = (float)(2 * random_uniform(&seed)));
    for (int i = 0; i < N * N; i++) {
        const double *x = place[i / N], *y = place[i % N];
        distance[i / N][i % N] = hypot(x[0] - y[0], x[1] - y[1]);
    }
    vocabulary = vocabulary_of(words, vectors, N, DIM);
}

TEARDOWN { dpi_vocabulary_free(vocabulary); }

typedef struct repeated {
    const char *word;
    int n;
} repeated;

/* Each word as often as its number says, up to one that is NULL. The next call overwrites it. */
static const char *text_of(const repeated *parts) {
    static char text[1 << 14];
    size_t n = 0;
    text[0] = '\0';
    for (; parts->word; parts++)
        for (int i = 0; i < parts->n; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s ", parts->word);
    assert_true(n < sizeof text);
    return text;
}
#define TEXT(...) text_of((const repeated[]){__VA_ARGS__, {NULL, 0}})

/* All words of the document, in an order that mixes them. */
static const char *document(void) {
    repeated mixed[N_DOCUMENT + 1] = {{NULL, 0}};
    int n = 0;
    for (int round = 0; n < N_DOCUMENT; round++)
        for (int i = 0; i < N; i++)
            if (counts[i] > round)
                mixed[n++] = (repeated){words[i], 1};
    return text_of(mixed);
}

/* P(y | x) of the exponential mechanism. */
static void fill_law(double epsilon) {
    double diameter = 0;
    for (int i = 0; i < N * N; i++)
        diameter = fmax(diameter, distance[i / N][i % N]);
    for (int x = 0; x < N; x++) {
        double sum = 0;
        for (int y = 0; y < N; y++)
            sum += p[x][y] = exp(-epsilon * distance[x][y] / (2 * diameter));
        for (int y = 0; y < N; y++)
            p[x][y] /= sum;
    }
}

/* Whether fewer than 10 words are nearer to y than x. */
static bool among_ten(int y, int x) {
    int nearer = 0;
    for (int z = 0; z < N; z++)
        nearer += distance[y][z] < distance[y][x];
    return nearer < 10;
}

/* The words' bits are the system's, and each word draws alone: by Hoeffding's inequality a share is
 * this far from its mean p with a chance of at most 2 exp(-26) = 1e-11; of the 20 shares of this
 * file one is, with a chance below 1e-9. */
static void expect_share(int64_t k, int64_t n, double mean, const char *what) {
    const double x = (double)k / (double)n, y = 1 - x;
    const double divergence =
        (k > 0 ? x * log(x / mean) : 0) + (k < n ? y * log(y / (1 - mean)) : 0);
    if (mean < 1 - 1e-9 ? (double)n * divergence > 26 : k < n)
        fail_msg("%s: %lld of %lld, expected a share of %g", what, (long long)k, (long long)n,
                 mean);
}

static dpi_attack_result run(const dpi_vocabulary *v, const char *text, int times,
                             dpi_perturb_options o) {
    dpi_attack_options ao;
    dpi_attack_result r;
    dpi_attack_options_init(&ao);
    ao.n_threads = 3;
    dpi_attack_free(attack(v, &ao, text, times, NULL, o, &r));
    return r;
}

/* The best guess is right as often as it can be by the law, and so often in these draws. */
static void expect_best(const dpi_attack_result *r, int64_t n_words, double best,
                        double tolerance) {
    assert_int_equal(r->n_words, n_words);
    assert_true(fabs(r->best - best) < tolerance);
    expect_share(r->n_right[DPI_GUESS_BAYES], n_words, best, "bayes");
}

TEST(test_guesses) {
    enum { TIMES = 60 };
    for (double epsilon = 1; epsilon <= 25; epsilon *= 5) {
        double best = 0, same = 0, ten = 0, mean = 0;
        fill_law(epsilon);
        for (int y = 0; y < N; y++) {
            double most = 0;
            for (int x = 0; x < N; x++) {
                const double share = (double)counts[x] / N_DOCUMENT * p[x][y];
                most = fmax(most, share);
                same += x == y ? share : 0;
                ten += among_ten(y, x) ? share : 0;
                mean += share * distance[x][y];
            }
            best += most;
        }
        const dpi_attack_result r =
            run(vocabulary, document(), TIMES, mechanism(DPI_WORDS_EXPONENTIAL, epsilon));
        assert_true(r.n_drawn == N_DOCUMENT * TIMES && r.n_dropped == 0);
        expect_best(&r, N_DOCUMENT * TIMES, best, 1e-6);
        expect_share(r.n_right[DPI_GUESS_NEAREST], r.n_words, same, "nearest");
        expect_share(r.n_right[DPI_GUESS_NEAREST_10], r.n_words, ten, "nearest 10");
        assert_true(fabs(r.distance - mean) < 6 * 2 / sqrt((double)r.n_words)); /* exp(-36) */
        assert_true(r.n_guessed[DPI_GUESS_LANGUAGE] == 0 && r.n_guessed[DPI_GUESS_CONTEXT] == 0);
    }
}

TEST(test_what_stays) {
    dpi_attack_result r = run(vocabulary, "ant bee cat bee Cat", 1, no_change(N));
    for (int guess = DPI_GUESS_NEAREST; guess <= DPI_GUESS_BAYES; guess++)
        assert_int_equal(r.n_right[guess], 5); /* Cat is found as cat */
    assert_true(r.best == 1 && r.distance == 0 && r.n_alike == 5);
    for (int i = 0; i < 3; i++)
        assert_true(r.n_grams[i] == 5 - i && r.n_leaked[i] == 5 - i);
    /* Rantext drops the unknown word: "ant bee" is no 2-gram of the document, "ant" is a 1-gram. */
    r = run(vocabulary, "ant zebra 17 bee", 1, mechanism(DPI_WORDS_RANTEXT, .001));
    assert_true(r.n_words == 3 && r.n_dropped == 1 && r.n_drawn == 2);
    assert_true(r.n_grams[0] == 4 && r.n_grams[1] == 3 && r.n_leaked[1] <= 3);
    /* Custext+ keeps numbers: everybody knows them. */
    r = run(vocabulary, "1 2 3", 1, mechanism(DPI_WORDS_CUSTEXT, .001));
    assert_true(r.best == 1 && r.n_right[DPI_GUESS_BAYES] == 3 && r.n_leaked[2] == 1);
}

/* Words without a place are drawn for alike: the most frequent of them is the best guess where no
 * word of the vocabulary is likelier. A guess of "zebra" alone is right 80 times of 107. */
TEST(test_unknown) {
    enum { TIMES = 60, ZEBRA = 80, GIRAFFE = 9, ANT = 10, BEE = 8 };
    const int n = ZEBRA + GIRAFFE + ANT + BEE;
    for (double epsilon = .01; epsilon < 64; epsilon *= 80) {
        double best = 0;
        fill_law(epsilon);
        for (int y = 0; y < N; y++)
            best += fmax((double)ZEBRA / N, fmax(ANT * p[0][y], BEE * p[1][y])) / n;
        assert_true(best >= (double)ZEBRA / n);
        /* Words are the same in small and in capital letters. */
        const char *text = TEXT({"zebra", ZEBRA / 2}, {"Zebra", ZEBRA / 2}, {"giraffe", GIRAFFE},
                                {"ant", ANT}, {"bee", BEE});
        const dpi_attack_result r =
            run(vocabulary, text, TIMES, mechanism(DPI_WORDS_EXPONENTIAL, epsilon));
        expect_best(&r, n * TIMES, best, 1e-6);
    }
}

/* Numbers of rantext are drawn for alike, whether they have a place or not. A word that becomes one
 * of the vocabulary may also be the word that became it. */
TEST(test_numbers) {
    static const char *const names[3] = {"7", "1001", "ant"};
    static const float vectors[3] = {0, 1, 100};
    dpi_vocabulary *v = vocabulary_of(names, vectors, 3, 1);
    dpi_attack_result r = run(v, TEXT({"17", 100}), 1, mechanism(DPI_WORDS_RANTEXT, 0));
    expect_best(&r, 100, 1, 1e-9);
    r = run(v, TEXT({"7", 50}, {"8", 30}, {"8.5", 20}), 20, mechanism(DPI_WORDS_RANTEXT, 0));
    assert_true(r.n_right[DPI_GUESS_BAYES] == 1000 && fabs(r.best - .5) < 1e-9);
    /* "ant" is 7 in one draw of some, "8" in one of a thousand. */
    const char *text = TEXT({"7", 50}, {"8", 30}, {"8.5", 20}, {"ant", 2000});
    r = run(v, text, 1, mechanism(DPI_WORDS_RANTEXT, .001));
    expect_best(&r, 2100, (2000 + 50 * .999) / 2100, 1e-4);
    dpi_vocabulary_free(v);
}

/* Custext+: a stop word that is spelled as no word of the vocabulary was not drawn. */
TEST(test_known) {
    static const char *const names[2] = {"the", "ant"};
    static const float vectors[2] = {0, 1};
    enum { TIMES = 150, CAPITAL = 50, SMALL = 5, ANT = 40, OF = 7, DROPPED = 3 };
    const int n = CAPITAL + SMALL + ANT + OF;
    const double to_the = 1 / (1 + exp(.5 / 2));
    const char *text =
        TEXT({"The", CAPITAL}, {"the", SMALL}, {"ant", ANT}, {"of", OF}, {"zebra", DROPPED});
    dpi_vocabulary *v = vocabulary_of(names, vectors, 2, 1);
    const dpi_attack_result r = run(v, text, TIMES, mechanism(DPI_WORDS_CUSTEXT, .5));
    expect_best(&r, n * TIMES, (CAPITAL + OF + fmax(SMALL, ANT * to_the) + ANT * (1 - to_the)) / n,
                1e-9);
    assert_int_equal(r.n_dropped, DROPPED * TIMES);
    dpi_vocabulary_free(v);
}

/* Tokens that have no place in a small vocabulary are different words. */
TEST(test_unknown_tokens) {
    static const char text[] = "some letters and words of it";
    const tiny_spec spec = tiny_default();
    void *image;
    dpi_model *model = tiny_open(&spec, 3, &image);
    dpi_vocabulary *v = vocabulary_of_model(model, 3);
    int32_t tokens[256];
    size_t n, most = 0;
    assert_ok(dpi_tokenize(model, text, strlen(text), 0, tokens, 256, &n, ERR));
    for (size_t i = 0; i < n; i++) {
        size_t n_same = 0;
        for (size_t k = 0; k < n; k++)
            n_same += tokens[k] == tokens[i];
        most = n_same > most ? n_same : most;
    }
    assert_true(most > 1 && most < n);
    const dpi_attack_result r = run(v, text, 150, mechanism(DPI_WORDS_EXPONENTIAL, .001));
    assert_true(fabs(r.best - (double)most / (double)n) < .001);
    expect_share(r.n_right[DPI_GUESS_BAYES], r.n_words, r.best, "bayes");
    dpi_vocabulary_free(v);
    dpi_model_close(model);
    free(image);
}

/* As often as the law says: of ant itself, bee and cat; of koi itself alone. */
TEST(test_synonyms) {
    const dpi_perturb_options o = mechanism(DPI_WORDS_EXPONENTIAL, 0);
    dpi_attack_result r;
    fill_law(o.epsilon);
    dpi_attack_free(
        attack(vocabulary, NULL, "ant koi", 6000, "dog eel\nCat  fly ant\nbee\tant\r\n", o, &r));
    expect_share(r.n_synonyms, r.n_drawn, (p[0][0] + p[0][1] + p[0][2] + p[10][10]) / 2,
                 "synonyms");
    dpi_attack_free(attack(vocabulary, NULL, "ant koi", 1, NULL, o, &r));
    assert_int_equal(r.n_synonyms, 0);
}

static double laplace(uint64_t *seed, double scale) {
    const double u = 2 * random_uniform(seed) - 1;
    return (u < 0 ? -1 : 1) * scale * -log(1 - fabs(u));
}

static int compare_int(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Sizes of the lists: all words, the rare ones, the group; of rantext those that Algorithm 2 of the
 * paper gives with noise of our own, and bits of a seed. */
TEST(test_lists) {
    enum { TIMES = 4000 };
    static int sizes[TIMES];
    static const double epsilon = 1.5, expected[] = {0, 11. / N, 4. / N, 1, 1};
    double range[DIM];
    dpi_attack_result r;
    uint64_t seed = 77, bits = 78;
    for (int32_t m = DPI_WORDS_SANTEXT; m < DPI_N_WORDS_MECHANISMS; m++) {
        dpi_perturb_options o = mechanism(m, 0);
        o.group_size = 4;
        dpi_attack_free(attack(vocabulary, NULL, "ant koi cat", 50, NULL, o, &r));
        for (int i = 0; i < 3; i++)
            assert_true(fabs(r.list[i] - expected[m]) < 1e-12); /* .9 of 12 words: 10.8 */
    }
    for (int k = 0; k < DIM; k++) {
        double low = place[0][k], high = low;
        for (int x = 1; x < N; x++)
            low = fmin(low, place[x][k]), high = fmax(high, place[x][k]);
        range[k] = (high - low) / epsilon; /* the scale where epsilon is below 2 */
    }
    for (int i = 0; i < TIMES; i++) {
        const double most = hypot(laplace(&seed, range[0]), laplace(&seed, range[1]));
        for (int y = 0; y < N; y++)
            sizes[i] += distance[4][y] < most;
    }
    qsort(sizes, TIMES, sizeof *sizes, compare_int);
    dpi_perturb_options o = mechanism(DPI_WORDS_RANTEXT, epsilon);
    o.random = dpi_random_insecure, o.random_user = &bits;
    dpi_attack_free(attack(vocabulary, NULL, "eel", TIMES, NULL, o, &r));
    for (int i = 0; i < 3; i++) { /* a word more or less where two sizes are as likely */
        const int wanted = sizes[(int)((.1 + .4 * i) * (TIMES - 1) + .5)];
        assert_true(fabs(r.list[i] * N - wanted) <= 1.001);
    }
    assert_true(r.list[0] < r.list[2]);
}

/* Who guesses what it is shown finds what stayed; in any letters, and no more than there is. */
TEST(test_shown) {
    const char *shown[8], *guesses[8];
    char large[8][16];
    dpi_perturb_options o = mechanism(DPI_WORDS_RANTEXT, 0);
    dpi_attack_result r;
    uint64_t bits = 79; /* some words stay */
    size_t n;
    o.random = dpi_random_insecure, o.random_user = &bits;
    dpi_attack *a = attack(vocabulary, NULL, "ant zebra 17 bee", 200, NULL, o, &r);
    assert_int_equal(dpi_attack_documents(a), 200);
    for (size_t d = 0; d < 200; d++) {
        assert_ok(dpi_attack_shown(a, d, shown, 8, &n, ERR));
        assert_int_equal(n, 3);
        for (size_t i = 0; i < n; i++) {
            snprintf(large[i], sizeof large[i], "%s", shown[i]);
            large[i][0] = large[i][0] >= 'a' ? (char)(large[i][0] - 32) : large[i][0];
            guesses[i] = large[i];
        }
        assert_ok(dpi_attack_guess(a, d, guesses, n, &r, ERR));
    }
    const int64_t right = r.n_right[DPI_GUESS_REMOTE];
    assert_int_equal(r.n_guessed[DPI_GUESS_REMOTE], 600);
    assert_true(right == r.n_right[DPI_GUESS_NEAREST] && right > 0 && right < 600);
    guesses[0] = NULL;
    assert_ok(dpi_attack_guess(a, 0, guesses, 1, &r, ERR)); /* and two are missing */
    assert_int_equal(r.n_guessed[DPI_GUESS_REMOTE], 603);
    assert_int_equal(r.n_right[DPI_GUESS_REMOTE], right);
    assert_error(dpi_attack_shown(a, 200, shown, 8, &n, ERR), ARG, "no such");
    dpi_attack_free(a);
}

/* Clopper and Pearson 1934, as in the usual tables. */
TEST(test_interval) {
    static const struct {
        int64_t k, n;
        double low, high;
    } known[] = {{8, 10, .4439045, .9747893}, {0, 20, 0, .1684335}, {1, 1, .025, 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double low, high;
        dpi_attack_interval(known[i].k, known[i].n, &low, &high);
        assert_true(fabs(low - known[i].low) < 1e-6 && fabs(high - known[i].high) < 1e-6);
    }
}

TEST(test_refusals) {
    dpi_attack_options o;
    dpi_attack *a;
    dpi_attack_options_init(&o);
    o.language = 1;
    assert_error(dpi_attack_create(vocabulary, &o, &a, ERR), STATE, "need a model");
    o.language = 2;
    assert_error(dpi_attack_create(vocabulary, &o, &a, ERR), ARG, "language 2");
    o.language = 0, o.n_threads = -1;
    assert_error(dpi_attack_create(vocabulary, &o, &a, ERR), ARG, "n_threads -1");
}
