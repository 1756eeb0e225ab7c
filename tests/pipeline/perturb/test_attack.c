/* test_attack.c - attacks against what they must find: the best guess and its mean by enumeration
 * of the papers' formulas, n-grams and nearest words by hand. */
#include "dpinfer/attack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/text.h"
#include "tests/pipeline/perturb/attack_support.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

enum { N = 12, DIM = 2 };

static const char *const words[N] = {"ant", "bee", "cat", "dog", "eel", "fox",
                                     "gnu", "hen", "ibex", "jay", "koi", "lynx"};
/* How often each stands in the document. */
static const int counts[N] = {90, 5, 40, 1, 60, 0, 10, 33, 2, 70, 8, 25};

static dpi_vocabulary *open_words(double place[N][DIM]) {
    float vectors[N * DIM];
    uint64_t seed = 5;
    dpi_vocabulary *v;
    dpi_error err = {0};
    for (int i = 0; i < N; i++)
        for (int k = 0; k < DIM; k++) {
            vectors[DIM * i + k] = (float)(2 * random_uniform(&seed));
            place[i][k] = (double)vectors[DIM * i + k];
        }
    assert_ok(dpi_vocabulary_create(words, vectors, N, DIM, &v, &err), &err);
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, &err), &err);
    return v;
}

static double distance(double place[N][DIM], int x, int y) {
    return hypot(place[x][0] - place[y][0], place[x][1] - place[y][1]);
}

/* All words of the document, in an order that mixes them; returns how many. */
static int write_document(char *text) {
    int left[N], n = 0;
    memcpy(left, counts, sizeof left);
    text[0] = '\0';
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < N; i++) {
            if (left[i] == 0)
                continue;
            left[i]--, n++;
            any = true;
            strcat(strcat(text, words[i]), " ");
        }
    }
    return n;
}

/* P(y | x) of the exponential mechanism. */
static void fill_law(double place[N][DIM], double epsilon, double p[N][N]) {
    double diameter = 0;
    for (int x = 0; x < N; x++)
        for (int y = 0; y < N; y++)
            diameter = fmax(diameter, distance(place, x, y));
    for (int x = 0; x < N; x++) {
        double sum = 0;
        for (int y = 0; y < N; y++)
            sum += p[x][y] = exp(-epsilon * distance(place, x, y) / (2 * diameter));
        for (int y = 0; y < N; y++)
            p[x][y] /= sum;
    }
}

/* Whether fewer than 10 words are nearer to y than x. */
static bool among_ten(double place[N][DIM], int y, int x) {
    int nearer = 0;
    for (int z = 0; z < N; z++)
        nearer += distance(place, y, z) < distance(place, y, x);
    return nearer < 10;
}

static void expect_share(int64_t k, int64_t n, double p, const char *what) {
    const double deviation = sqrt((double)n * p * (1 - p)) + 1e-9;
    if (fabs((double)k - (double)n * p) > 6 * deviation)
        fail_msg("%s: %lld of %lld, expected a share of %g", what, (long long)k, (long long)n, p);
}

static void run_one(const dpi_vocabulary *v, const char *text, int times,
                    const dpi_perturb_options *o, dpi_attack_result *r) {
    dpi_attack_options ao;
    dpi_attack *attack;
    dpi_error err = {0};
    dpi_attack_options_init(&ao);
    ao.n_threads = 3;
    assert_ok(dpi_attack_create(v, &ao, &attack, &err), &err);
    for (int i = 0; i < times; i++)
        assert_ok(dpi_attack_add(attack, text, strlen(text), &err), &err);
    dpi_attack_result_init(r);
    assert_ok(dpi_attack_run(attack, o, r, &err), &err);
    dpi_attack_free(attack);
}

static void test_guesses(void **state) {
    (void)state;
    enum { TIMES = 40 };
    double place[N][DIM], p[N][N];
    char text[4096];
    dpi_vocabulary *v = open_words(place);
    const int n = write_document(text);
    dpi_perturb_options o;
    dpi_attack_result r;
    dpi_perturb_options_init(&o);
    o.mechanism = DPI_MECHANISM_EXPONENTIAL;
    for (double epsilon = 1; epsilon <= 25; epsilon *= 5) {
        double best = 0, same = 0, ten = 0, mean = 0;
        o.epsilon = epsilon;
        fill_law(place, epsilon, p);
        for (int y = 0; y < N; y++) {
            double most = 0;
            for (int x = 0; x < N; x++) {
                const double share = (double)counts[x] / n * p[x][y];
                most = fmax(most, share);
                same += x == y ? share : 0;
                ten += among_ten(place, y, x) ? share : 0;
                mean += share * distance(place, x, y);
            }
            best += most;
        }
        run_one(v, text, TIMES, &o, &r);
        assert_int_equal(r.n_words, n * TIMES);
        assert_int_equal(r.n_drawn, n * TIMES);
        assert_int_equal(r.n_dropped, 0);
        assert_true(fabs(r.best - best) < 1e-6);
        expect_share(r.n_right[DPI_GUESS_NEAREST], r.n_words, same, "nearest");
        expect_share(r.n_right[DPI_GUESS_NEAREST_10], r.n_words, ten, "nearest 10");
        expect_share(r.n_right[DPI_GUESS_BAYES], r.n_words, best, "bayes");
        assert_true(fabs(r.distance - mean) < 6 * 2 / sqrt((double)r.n_words));
        assert_true(r.n_guessed[DPI_GUESS_LANGUAGE] == 0 && r.n_guessed[DPI_GUESS_CONTEXT] == 0);
    }
    dpi_vocabulary_free(v);
}

static void test_what_stays(void **state) {
    (void)state;
    double place[N][DIM];
    dpi_vocabulary *v = open_words(place);
    dpi_perturb_options o = no_change(N);
    dpi_attack_result r;
    run_one(v, "ant bee cat bee Cat", 1, &o, &r); /* Cat is found as cat */
    for (int guess = DPI_GUESS_NEAREST; guess <= DPI_GUESS_BAYES; guess++)
        assert_int_equal(r.n_right[guess], 5);
    assert_true(r.best == 1 && r.distance == 0 && r.n_alike == 5);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r.n_grams[i], 5 - i);
        assert_int_equal(r.n_leaked[i], 5 - i);
    }
    /* Rantext drops the unknown word: "ant bee" is no 2-gram of the document, "ant" is a 1-gram. */
    dpi_perturb_options_init(&o);
    o.epsilon = .001;
    run_one(v, "ant zebra 17 bee", 1, &o, &r);
    assert_int_equal(r.n_words, 3);
    assert_int_equal(r.n_dropped, 1);
    assert_int_equal(r.n_grams[0], 4);
    assert_int_equal(r.n_drawn, 2);
    assert_true(r.n_leaked[1] <= r.n_grams[1] && r.n_grams[1] == 3);
    /* Custext+ keeps numbers: everybody knows them. */
    o.mechanism = DPI_MECHANISM_CUSTEXT;
    run_one(v, "1 2 3", 1, &o, &r);
    assert_true(r.best == 1 && r.n_right[DPI_GUESS_BAYES] == 3 && r.n_leaked[2] == 1);
    dpi_vocabulary_free(v);
}

static void repeat(char *text, const char *word, int times) {
    for (int i = 0; i < times; i++)
        strcat(strcat(text, word), " ");
}

/* Words without a place are drawn for alike: the most frequent of them is the best guess where no
 * word of the vocabulary is likelier. A guess of "zebra" alone is right 80 times of 107. */
static void test_unknown(void **state) {
    (void)state;
    enum { TIMES = 40, ZEBRA = 80, GIRAFFE = 9, ANT = 10, BEE = 8 };
    double place[N][DIM], p[N][N];
    dpi_vocabulary *v = open_words(place);
    dpi_perturb_options o;
    dpi_attack_result r;
    dpi_perturb_options_init(&o);
    o.mechanism = DPI_MECHANISM_EXPONENTIAL;
    for (o.epsilon = .01; o.epsilon < 64; o.epsilon *= 80) {
        char text[4096] = "";
        double best = 0;
        const double n = ZEBRA + GIRAFFE + ANT + BEE;
        repeat(text, "zebra", ZEBRA / 2); /* words are the same in small and in capital letters */
        repeat(text, "Zebra", ZEBRA / 2);
        repeat(text, "giraffe", GIRAFFE);
        repeat(text, "ant", ANT);
        repeat(text, "bee", BEE);
        fill_law(place, o.epsilon, p);
        for (int y = 0; y < N; y++)
            best += fmax((double)ZEBRA / N, fmax(ANT * p[0][y], BEE * p[1][y])) / n;
        run_one(v, text, TIMES, &o, &r);
        assert_int_equal(r.n_words, n * TIMES);
        assert_true(best >= ZEBRA / n && fabs(r.best - best) < 1e-6);
        expect_share(r.n_right[DPI_GUESS_BAYES], r.n_words, best, "bayes");
    }
    dpi_vocabulary_free(v);
}

/* Numbers of rantext are drawn for alike, whether they have a place or not. A word that becomes one
 * of the vocabulary may also be the word that became it. */
static void test_numbers(void **state) {
    (void)state;
    static const char *const names[3] = {"7", "1001", "ant"};
    static const float vectors[3] = {0, 1, 100};
    char text[16384] = "";
    dpi_vocabulary *v;
    dpi_perturb_options o;
    dpi_attack_result r;
    dpi_error err = {0};
    assert_ok(dpi_vocabulary_create(names, vectors, 3, 1, &v, &err), &err);
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, &err), &err);
    dpi_perturb_options_init(&o);
    repeat(text, "17", 100);
    run_one(v, text, 1, &o, &r);
    assert_true(r.n_right[DPI_GUESS_BAYES] == 100 && fabs(r.best - 1) < 1e-9);
    text[0] = '\0';
    repeat(text, "7", 50);
    repeat(text, "8", 30);
    repeat(text, "8.5", 20);
    run_one(v, text, 20, &o, &r);
    assert_true(r.n_right[DPI_GUESS_BAYES] == 1000 && fabs(r.best - .5) < 1e-9);
    /* "ant" is 7 in one draw of some, "8" in one of a thousand. */
    repeat(text, "ant", 2000);
    o.epsilon = .001;
    run_one(v, text, 1, &o, &r);
    const double most = (2000 + 50 * .999) / 2100;
    assert_true(fabs(r.best - most) < 1e-4);
    expect_share(r.n_right[DPI_GUESS_BAYES], r.n_words, most, "bayes");
    dpi_vocabulary_free(v);
}

/* Custext+: a stop word that is spelled as no word of the vocabulary was not drawn. */
static void test_known(void **state) {
    (void)state;
    static const char *const names[2] = {"the", "ant"};
    static const float vectors[2] = {0, 1};
    enum { TIMES = 100, CAPITAL = 50, SMALL = 5, ANT = 40, OF = 7, DROPPED = 3 };
    char text[4096] = "";
    dpi_vocabulary *v;
    dpi_perturb_options o;
    dpi_attack_result r;
    dpi_error err = {0};
    assert_ok(dpi_vocabulary_create(names, vectors, 2, 1, &v, &err), &err);
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, &err), &err);
    repeat(text, "The", CAPITAL);
    repeat(text, "the", SMALL);
    repeat(text, "ant", ANT);
    repeat(text, "of", OF);
    repeat(text, "zebra", DROPPED);
    dpi_perturb_options_init(&o);
    o.mechanism = DPI_MECHANISM_CUSTEXT;
    o.epsilon = .5;
    run_one(v, text, TIMES, &o, &r);
    const double to_the = 1 / (1 + exp(o.epsilon / 2)), n = CAPITAL + SMALL + ANT + OF;
    const double best = (CAPITAL + OF + fmax(SMALL, ANT * to_the) + ANT * (1 - to_the)) / n;
    assert_int_equal(r.n_words, n * TIMES);
    assert_int_equal(r.n_dropped, DROPPED * TIMES);
    assert_true(fabs(r.best - best) < 1e-9);
    expect_share(r.n_right[DPI_GUESS_BAYES], r.n_words, best, "bayes");
    dpi_vocabulary_free(v);
}

/* Tokens that have no place in a small vocabulary are different words. */
static void test_unknown_tokens(void **state) {
    (void)state;
    static const char text[] = "some letters and words of it";
    const tiny_spec spec = tiny_default();
    void *image;
    dpi_model *model = tiny_open(&spec, 3, &image);
    dpi_vocabulary *v;
    dpi_perturb_options o;
    dpi_attack_result r;
    dpi_error err = {0};
    int32_t tokens[256];
    size_t n, most = 0;
    assert_ok(dpi_vocabulary_of_model(model, 3, &v, &err), &err);
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, &err), &err);
    assert_ok(dpi_tokenize(model, text, strlen(text), 0, tokens, 256, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        size_t n_same = 0;
        for (size_t k = 0; k < n; k++)
            n_same += tokens[k] == tokens[i];
        most = n_same > most ? n_same : most;
    }
    assert_true(most > 1 && most < n);
    dpi_perturb_options_init(&o);
    o.mechanism = DPI_MECHANISM_EXPONENTIAL;
    o.epsilon = .001;
    run_one(v, text, 100, &o, &r);
    const double best = (double)most / (double)n;
    assert_true(fabs(r.best - best) < .001);
    expect_share(r.n_right[DPI_GUESS_BAYES], r.n_words, r.best, "bayes");
    dpi_vocabulary_free(v);
    dpi_model_close(model);
    free(image);
}

/* Over all rules from y to x none is right more often: each of 500 at random is worse. */
static void test_no_rule_is_better(void **state) {
    (void)state;
    double place[N][DIM], p[N][N];
    char text[4096];
    uint64_t seed = 9;
    dpi_vocabulary *v = open_words(place);
    const int n = write_document(text);
    dpi_perturb_options o;
    dpi_attack_result r;
    dpi_perturb_options_init(&o);
    o.mechanism = DPI_MECHANISM_EXPONENTIAL;
    run_one(v, text, 1, &o, &r);
    fill_law(place, o.epsilon, p);
    for (int i = 0; i < 500; i++) {
        double right = 0;
        for (int y = 0; y < N; y++) {
            const int x = random_below(&seed, N);
            right += (double)counts[x] / n * p[x][y];
        }
        assert_true(right <= r.best + 1e-9);
    }
    dpi_vocabulary_free(v);
}

/* Opens an attack on `times` copies of a text and runs it. */
static dpi_attack *run_kept(const dpi_vocabulary *v, const char *text, int times,
                            const char *synonyms, const dpi_perturb_options *o,
                            dpi_attack_result *r) {
    dpi_attack_options ao;
    dpi_attack *attack;
    dpi_error err = {0};
    dpi_attack_options_init(&ao);
    assert_ok(dpi_attack_create(v, &ao, &attack, &err), &err);
    for (int i = 0; i < times; i++)
        assert_ok(dpi_attack_add(attack, text, strlen(text), &err), &err);
    if (synonyms)
        assert_ok(dpi_attack_synonyms(attack, synonyms, strlen(synonyms), &err), &err);
    dpi_attack_result_init(r);
    assert_ok(dpi_attack_run(attack, o, r, &err), &err);
    return attack;
}

/* As often as the law says: of ant itself, bee and cat; of koi itself alone. */
static void test_synonyms(void **state) {
    (void)state;
    enum { TIMES = 4000 };
    double place[N][DIM], p[N][N];
    dpi_vocabulary *v = open_words(place);
    dpi_perturb_options o;
    dpi_attack_result r;
    dpi_perturb_options_init(&o);
    o.mechanism = DPI_MECHANISM_EXPONENTIAL;
    fill_law(place, o.epsilon, p);
    dpi_attack_free(run_kept(v, "ant koi", TIMES, "dog eel\nCat  fly ant\nbee\tant\r\n", &o, &r));
    const double share = (p[0][0] + p[0][1] + p[0][2] + p[10][10]) / 2;
    expect_share(r.n_synonyms, r.n_drawn, share, "synonyms");
    dpi_attack_free(run_kept(v, "ant koi", 1, NULL, &o, &r));
    assert_int_equal(r.n_synonyms, 0);
    dpi_vocabulary_free(v);
}

static double laplace(uint64_t *seed, double scale) {
    const double u = 2 * random_uniform(seed) - 1;
    return (u < 0 ? -1 : 1) * scale * -log(1 - fabs(u));
}

static int compare_int(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Sizes of the lists: all words, the rare ones, the group; of rantext those that Algorithm 2 of the
 * paper gives with noise of our own. */
static void test_lists(void **state) {
    (void)state;
    enum { TIMES = 4000 };
    static int sizes[TIMES];
    double place[N][DIM], range[DIM], z;
    dpi_vocabulary *v = open_words(place);
    dpi_perturb_options o;
    dpi_attack_result r;
    uint64_t seed = 77;
    dpi_perturb_options_init(&o);
    o.group_size = 4;
    for (o.mechanism = DPI_MECHANISM_SANTEXT; o.mechanism < DPI_N_MECHANISMS; o.mechanism++) {
        const double expected[] = {0, 11. / N, 4. / N, 1, 1}; /* .9 of 12 words: 10.8 */
        dpi_attack_free(run_kept(v, "ant koi cat", 50, NULL, &o, &r));
        for (int i = 0; i < 3; i++)
            assert_true(fabs(r.list[i] - expected[o.mechanism]) < 1e-12);
    }
    o.mechanism = DPI_MECHANISM_RANTEXT;
    o.epsilon = z = 1.5; /* below 2 the scale is range / epsilon */
    for (int k = 0; k < DIM; k++) {
        double low = place[0][k], high = low;
        for (int x = 1; x < N; x++)
            low = fmin(low, place[x][k]), high = fmax(high, place[x][k]);
        range[k] = high - low;
    }
    for (int i = 0; i < TIMES; i++) {
        const double most = hypot(laplace(&seed, range[0] / z), laplace(&seed, range[1] / z));
        sizes[i] = 0;
        for (int y = 0; y < N; y++)
            sizes[i] += distance(place, 4, y) < most;
    }
    qsort(sizes, TIMES, sizeof *sizes, compare_int);
    dpi_attack_free(run_kept(v, "eel", TIMES, NULL, &o, &r));
    for (int i = 0; i < 3; i++) { /* a word more or less where two sizes are as likely */
        const int expected = sizes[(int)((.1 + .4 * i) * (TIMES - 1) + .5)];
        assert_true(fabs(r.list[i] * N - expected) <= 1.001);
    }
    assert_true(r.list[0] < r.list[2]);
    dpi_vocabulary_free(v);
}

/* Who guesses what it is shown finds what stayed; in any letters, and no more than there is. */
static void test_shown(void **state) {
    (void)state;
    const char *shown[8], *guesses[8];
    char large[8][16];
    double place[N][DIM];
    dpi_vocabulary *v = open_words(place);
    dpi_perturb_options o;
    dpi_attack_result r;
    dpi_error err = {0};
    size_t n;
    dpi_perturb_options_init(&o);
    dpi_attack *attack = run_kept(v, "ant zebra 17 bee", 200, NULL, &o, &r);
    assert_int_equal(dpi_attack_documents(attack), 200);
    for (size_t d = 0; d < 200; d++) {
        assert_ok(dpi_attack_shown(attack, d, shown, 8, &n, &err), &err);
        assert_int_equal(n, 3);
        for (size_t i = 0; i < n; i++) {
            snprintf(large[i], sizeof large[i], "%s", shown[i]);
            large[i][0] = large[i][0] >= 'a' ? (char)(large[i][0] - 32) : large[i][0];
            guesses[i] = large[i];
        }
        assert_ok(dpi_attack_guess(attack, d, guesses, n, &r, &err), &err);
    }
    assert_int_equal(r.n_guessed[DPI_GUESS_REMOTE], 600);
    assert_int_equal(r.n_right[DPI_GUESS_REMOTE], r.n_right[DPI_GUESS_NEAREST]);
    assert_true(r.n_right[DPI_GUESS_REMOTE] > 0 && r.n_right[DPI_GUESS_REMOTE] < 600);
    const int64_t before = r.n_right[DPI_GUESS_REMOTE];
    guesses[0] = NULL;
    assert_ok(dpi_attack_guess(attack, 0, guesses, 1, &r, &err), &err); /* and two are missing */
    assert_int_equal(r.n_guessed[DPI_GUESS_REMOTE], 603);
    assert_int_equal(r.n_right[DPI_GUESS_REMOTE], before);
    assert_error(dpi_attack_shown(attack, 200, shown, 8, &n, &err), DPI_STATUS_ARG, &err,
                 "no such");
    dpi_attack_free(attack);
    dpi_vocabulary_free(v);
}

/* Clopper and Pearson 1934, as in the usual tables. */
static void test_interval(void **state) {
    (void)state;
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

static void test_refusals(void **state) {
    (void)state;
    double place[N][DIM];
    dpi_vocabulary *v = open_words(place);
    dpi_attack_options o;
    dpi_attack *attack;
    dpi_error err = {0};
    dpi_attack_options_init(&o);
    o.language = 1;
    assert_error(dpi_attack_create(v, &o, &attack, &err), DPI_STATUS_STATE, &err, "need a model");
    o.language = 2;
    assert_error(dpi_attack_create(v, &o, &attack, &err), DPI_STATUS_ARG, &err, "language 2");
    o.language = 0, o.n_threads = -1;
    assert_error(dpi_attack_create(v, &o, &attack, &err), DPI_STATUS_ARG, &err, "n_threads -1");
    dpi_vocabulary_free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_what_stays),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_unknown_tokens),
        cmocka_unit_test(test_no_rule_is_better),
        cmocka_unit_test(test_synonyms),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
