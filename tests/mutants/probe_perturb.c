/* probe_perturb.c - words that are replaced: draws against the papers' formulas, 8 deviations apart
 * at most; what must not leave as it is. See probes.h. */
#include "tests/mutants/probes.h"

#include <math.h>

#include "dp/local/local.h"

enum { N = 6, DIM = 2, N_DRAWS = 20000 };

static const char *const words[N] = {"the", "cat", "dog", "sat", "ran", "7"};
static const float vectors[N * DIM] = {0, 0, 1, 0, 1, .5f, 0, 2, .25f, 2, 3, 3};

static double distance(int x, int y) {
    return hypot((double)vectors[DIM * x] - (double)vectors[DIM * y],
                 (double)vectors[DIM * x + 1] - (double)vectors[DIM * y + 1]);
}

/* Of vectors that every test has, or of others. */
static dpi_vocabulary *vocabulary;
static dpi_perturber *perturber;

static void close_perturber(void) {
    dpi_perturber_free(perturber);
    dpi_vocabulary_free(vocabulary);
}

static void open_perturber(int32_t mechanism, double epsilon, const float *of, int32_t dim) {
    dpi_perturb_options o;
    dpi_perturb_options_init(&o);
    o.mechanism = mechanism, o.epsilon = epsilon, o.rare = 4. / 6, o.group_size = 3;
    o.n_threads = 2;
    assert_ok(dpi_vocabulary_create(words, of, N, dim, &vocabulary, ERR));
    assert_ok(dpi_vocabulary_measure(vocabulary, NULL, 1, ERR));
    assert_ok(dpi_perturber_create(vocabulary, &o, &perturber, ERR));
}

static const dpi_perturbed_word *words_of(const char *text, size_t n_wanted) {
    const dpi_perturbed_word *w;
    size_t n;
    assert_ok(dpi_perturb(perturber, text, strlen(text), &w, &n, ERR));
    assert_int_equal(n, n_wanted);
    return w;
}

/* n times a word; the caller frees it. */
static char *repeat(const char *word, size_t n) {
    char *text = malloc(n * (strlen(word) + 1) + 1), *end = text;
    assert_non_null(text);
    while (n-- > 0)
        end = stpcpy(stpcpy(end, word), " ");
    return text;
}

/* How often `word` becomes each word, of N_DRAWS times; what is none of them is lost. */
static void count(const char *word, double counts[N]) {
    char *text = repeat(word, N_DRAWS);
    const dpi_perturbed_word *w = words_of(text, N_DRAWS);
    memset(counts, 0, N * sizeof *counts);
    for (size_t i = 0; i < N_DRAWS; i++)
        if (w[i].to >= 0)
            counts[w[i].to]++;
    free(text);
}

/* By the binomial law all of these, the rarest words too, miss once in 10^11 runs. */
static bool agrees(double counted, double p) {
    const double deviation = sqrt(N_DRAWS * p * (1 - p));
    return fabs(counted - N_DRAWS * p) <= 8 * deviation + 1e-9;
}

/* The exponential mechanism and SANTEXT+ by their formulas; the words 0 and 1 are frequent. */
static double formula(int32_t mechanism, double epsilon, int x, int y) {
    const bool santext = mechanism == DPI_WORDS_SANTEXT;
    const double divisor = santext ? 1 : distance(0, 5);
    const int first = santext ? 2 : 0;
    double sum = 0, p = 0;
    for (int i = first; i < N; i++)
        sum += exp(-epsilon * distance(x, i) / (2 * divisor));
    if (y >= first)
        p = exp(-epsilon * distance(x, y) / (2 * divisor)) / sum;
    return santext && x < 2 ? .3 * p + .7 * (x == y) : p;
}

static void check_law(int32_t mechanism, const char *fault) {
    double counts[N];
    open_perturber(mechanism, 3, vectors, DIM);
    for (int x = 0; x < N; x++) {
        count(words[x], counts);
        for (int y = 0; y < N; y++)
            hold(agrees(counts[y], formula(mechanism, 3, x, y)), fault);
    }
    count("elephant", counts);
    for (int y = 0; y < N; y++)
        hold(agrees(counts[y], 1. / N),
             "a word that is not in the vocabulary is not drawn from all alike");
    close_perturber();
}

/* The certificate is of the scores that are drawn by: a loss by the definition, of all words. */
static double certified(int32_t mechanism) {
    dpi_certificate c;
    dpi_certificate_init(&c);
    open_perturber(mechanism, 3, vectors, DIM);
    assert_ok(dpi_perturb_certify(perturber, &c, ERR));
    close_perturber();
    return c.epsilon;
}

/* Cells that a power of e^(-1/s) cuts: their first bits cannot say what |z| is. And of noise with
 * scale 1, (e - 1) / (e + 1) are zero. */
static void check_magnitudes(void) {
    static const int64_t one = 1;
    dpi_magnitude_tables t;
    uint64_t m;
    double zeros = 0;
    dpi_magnitude_tables_fill(&t);
    for (int k = 1; k <= 2000; k++)
        hold(!dpi_magnitude_of(&t, 20000, (uint32_t)floorl(expl(-k / 20000.0L) * 0x1p32L), &m),
             "noise is told by bits that do not say it");
    for (int i = 0; i < N_DRAWS; i++) {
        dpi_u128 sum;
        assert_ok(dpi_magnitude_squares(&t, &one, 1, NULL, NULL, &sum, ERR));
        zeros += sum == 0;
    }
    hold(agrees(zeros, tanh(.5)), "noise of another law than discrete Laplace's");
}

/* The mean of t^2 is 2 sum of scale^2; t^2 of 2 dimensions has some 2 of relative deviation. */
static void check_threshold(void) {
    static const double range[DIM] = {3, 3};
    static const uint32_t none[4] = {0};
    dpi_perturb_options o;
    dpi_local *local;
    double sum = 0;
    dpi_perturb_options_init(&o);
    assert_ok(dpi_local_create(&o, none, 2, range, DIM, &local, ERR));
    for (int i = 0; i < N_DRAWS; i++) {
        uint64_t t;
        assert_ok(dpi_local_threshold(local, NULL, NULL, &t, ERR));
        sum += (double)t * (double)t;
    }
    const double scale = (double)local->noise_scale[0], mean = sum / N_DRAWS / (4 * scale * scale);
    hold(fabs(mean - 1) < 8 * 2 / sqrt(N_DRAWS), "another threshold than rantext's");
    dpi_local_free(local);
}

static void check_what_leaves(void) {
    open_perturber(DPI_WORDS_RANTEXT, 6, vectors, DIM);
    words_of("secretword 123456", 2);
    const char *text = dpi_perturbed_text(perturber);
    const long number = strtol(text, NULL, 10);
    hold(!strstr(text, "secretword"), "rantext lets a word out that is not in the vocabulary");
    hold(number >= 1 && number <= 1000, "rantext lets a number out");
    close_perturber();
}

/* Two threads have bits of their own: of 200 words that are the same, the first 100 do not become
 * what the others do. By chance some 80 of 100 differ. */
static void check_threads(void) {
    enum { N_SAME = 200 };
    static const float apart[N] = {0, 1, 2, 3, 4, 5};
    char *text = repeat("cat", N_SAME);
    open_perturber(DPI_WORDS_EXPONENTIAL, 1, apart, 1);
    const dpi_perturbed_word *w = words_of(text, N_SAME);
    for (int shift = 99; shift <= 101; shift++) { /* where the second one begins is its matter */
        int differ = 0;
        for (int i = 0; i + shift < N_SAME; i++)
            differ += w[i].to != w[i + shift].to;
        hold(differ >= 20, "two threads draw by the same bits");
    }
    close_perturber();
    free(text);
}

TEST(perturb) {
    check_law(DPI_WORDS_SANTEXT, "santext+ draws by another law than its paper's");
    check_law(DPI_WORDS_EXPONENTIAL,
              "the exponential mechanism draws by another law than its theorem's");
    hold(certified(DPI_WORDS_EXPONENTIAL) <= 3,
         "the exponential mechanism has more than its epsilon");
    hold(certified(DPI_WORDS_CALIBRATED) <= 3,
         "the calibrated mechanism has more than its epsilon");
    /* "7" becomes a number, which no other word does */
    hold(isinf(certified(DPI_WORDS_RANTEXT)), "a number has a bound that it has not");
    check_magnitudes();
    check_threshold();
    check_threads();
    check_what_leaves();
}
