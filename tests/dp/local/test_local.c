/* test_local.c - the mechanisms for words against the formulas of their papers, in doubles and from
 * the vectors; draws against their laws; certificates against enumeration. */
#include "dp/local/certify.h"
#include "tests/oracle/statistics.h"
#include "tests/support/support.h"

enum { N = 14, DIM = 3, GROUP = 5 };

/* Words in a box, one twice at the same place, one far from all; and a mechanism over them. */
static float vectors[N * DIM];
static double distance[N][N], diameter,
    range[DIM]; /* rounded to 2^-20, as the mechanism has them */
static uint32_t integer[N * N];
static dpi_perturb_options options;
static dpi_local *local;

SETUP {
    uint64_t seed = 7;
    for (int i = 0; i < N * DIM; i++) {
        uint32_t bits;
        dpi_random_insecure(&seed, &bits, sizeof bits);
        vectors[i] = (float)(bits / 0x1p32 - .5);
    }
    memcpy(vectors + 5 * DIM, vectors + 2 * DIM, DIM * sizeof *vectors);
    vectors[9 * DIM] = 3;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < DIM; k++) {
                const double d = (double)vectors[i * DIM + k] - (double)vectors[j * DIM + k];
                sum += d * d;
                range[k] = fmax(range[k], d);
            }
            distance[i][j] = round(sqrt(sum) * 0x1p20) / 0x1p20;
            diameter = fmax(diameter, distance[i][j]);
        }
    assert_ok(dpi_local_distances(vectors, N, DIM, 2, integer, ERR));
}

TEARDOWN_EACH {
    dpi_local_free(local);
    local = NULL;
}

/* In place of the mechanism before it. */
static void open_mechanism(int32_t mechanism, double epsilon) {
    dpi_local_free(local);
    dpi_perturb_options_init(&options);
    options.mechanism = mechanism, options.epsilon = epsilon, options.rare = .75;
    options.group_size = GROUP, options.n_threads = 2;
    assert_ok(dpi_local_create(&options, integer, N, range, DIM, &local, ERR));
}

static dpi_certificate certify(void) {
    dpi_certificate c;
    dpi_certificate_init(&c);
    assert_ok(dpi_local_certify(local, &c, ERR));
    return c;
}

TEST(test_distances) {
    for (int i = 0; i < N * N; i++)
        assert_true((double)integer[i] == distance[i / N][i % N] * 0x1p20);
    assert_true(integer[2 * N + 5] == 0);
}

/* ---- The papers' formulas -------------------------------------------------------------------- */

static void normalise(double *p) {
    double sum = 0;
    for (int y = 0; y < N; y++)
        sum += p[y];
    for (int y = 0; y < N; y++)
        p[y] /= sum;
}

static void exponential(int x, double exponent, double *p) {
    for (int y = 0; y < N; y++)
        p[y] = exp(-exponent * distance[x][y] / diameter);
    normalise(p);
}

/* The last 3/4 of the words are rare: 14 - round(10.5 to even) = 4 are not. */
static void santext(int x, double epsilon, double *p) {
    enum { FIRST_RARE = 4 };
    for (int y = 0; y < N; y++)
        p[y] = y < FIRST_RARE ? 0 : exp(-epsilon * distance[x][y] / 2);
    normalise(p);
    if (x >= FIRST_RARE)
        return;
    for (int y = 0; y < N; y++)
        p[y] = .3 * p[y] + (y == x ? .7 : 0);
}

/* The groups by the definition: the first word without one, and its nearest without one. */
static void custext(int x, double epsilon, double *p) {
    int group[N];
    double most = 0;
    memset(group, -1, sizeof group);
    for (int i = 0; i < N; i++) {
        if (group[i] >= 0)
            continue;
        group[i] = i;
        for (int k = 1; k < GROUP; k++) {
            int best = -1;
            for (int j = 0; j < N; j++)
                if (group[j] < 0 && (best < 0 || distance[i][j] < distance[i][best]))
                    best = j;
            if (best >= 0)
                group[best] = i;
        }
    }
    for (int y = 0; y < N; y++)
        most = group[y] == group[x] ? fmax(most, distance[x][y]) : most;
    for (int y = 0; y < N; y++)
        p[y] = group[y] == group[x] ? exp(epsilon / 2 * (1 - distance[x][y] / most)) : 0;
    normalise(p);
}

static void formula(int x, double *p) {
    if (options.mechanism == DPI_WORDS_EXPONENTIAL)
        exponential(x, options.epsilon / 2, p);
    else if (options.mechanism == DPI_WORDS_SANTEXT)
        santext(x, options.epsilon, p);
    else
        custext(x, options.epsilon, p);
}

TEST(test_probabilities) {
    static const double epsilons[] = {.01, 1, 6, 18, 60};
    for (int32_t m = DPI_WORDS_SANTEXT; m <= DPI_WORDS_EXPONENTIAL; m++)
        for (const double *e = epsilons; e < END(epsilons); e++) {
            dpi_local_rows rows;
            double row[N], p[N], n_candidates;
            open_mechanism(m, *e);
            assert_ok(dpi_local_rows_create(local, 0, &rows, ERR));
            for (int x = 0; x < N; x++) {
                dpi_local_row(&rows, x, row, &n_candidates);
                formula(x, p);
                for (int y = 0; y < N; y++) {
                    assert_true(fabs(exp(row[y]) - p[y]) < 1e-9);
                    assert_true((row[y] == -INFINITY) == (p[y] == 0));
                }
            }
            dpi_local_rows_free(&rows);
        }
}

/* Algorithm 2 of RANTEXT, given its threshold. */
TEST(test_rantext_list) {
    dpi_local_list list;
    open_mechanism(DPI_WORDS_RANTEXT, 6);
    assert_ok(dpi_local_list_create(local, &list, ERR));
    for (uint64_t threshold = 1 << 10; threshold < UINT64_C(1) << 33; threshold = threshold * 3 / 2)
        for (int x = 0; x < N; x++) {
            const double t = (double)threshold / 0x1p20;
            double p[N], sum = 0, covered = 0;
            for (int y = 0; y < N; y++)
                p[y] = distance[x][y] < t ? exp(3 * (1 - distance[x][y] / t)) : 0;
            normalise(p);
            dpi_local_scores(local, x, threshold, &list);
            for (size_t i = 0; i < list.n; i++)
                sum += exp2((double)list.score[i] / 0x1p40);
            for (size_t i = 0; i < list.n; i++) {
                const double found = exp2((double)list.score[i] / 0x1p40) / sum;
                assert_true(fabs(found - p[list.word[i]]) < 1e-9);
                covered += p[list.word[i]];
            }
            assert_true(fabs(covered - 1) < 1e-12);
        }
    dpi_local_list_free(local, &list);
}

/* Z by the formula of the authors, evaluated with 30 digits elsewhere. */
TEST(test_z) {
    assert_true(fabs(dpi_local_rantext_z(3) - 9.359963721483804) < 1e-12);
    assert_true(fabs(dpi_local_rantext_z(6) - 9.382950695578387) < 1e-12);
    assert_true(fabs(dpi_local_rantext_z(18) - 9.405937674512196) < 1e-12);
    assert_true(dpi_local_rantext_z(.01) == .01);
}

/* ---- Draws ----------------------------------------------------------------------------------- */

/* Of rantext as well: its rows integrate over the law of the threshold, its draws draw one. */
TEST(test_draws) {
    enum { DRAWS = 20000 };
    uint64_t seed = 11;
    for (int32_t m = 0; m <= DPI_WORDS_EXPONENTIAL; m++) {
        dpi_local_rows rows;
        /* Below 2 the noise is large and lists are long; at 40 they are of all sizes. */
        open_mechanism(m, m == DPI_WORDS_RANTEXT ? 40 : 6);
        assert_ok(dpi_local_rows_create(local, 0, &rows, ERR));
        for (int32_t x = 0, y; x < N; x += 3) {
            double row[N], n_candidates, count[N] = {0};
            dpi_local_row(&rows, x, row, &n_candidates);
            for (int i = 0; i < DRAWS; i++) {
                assert_ok(
                    dpi_local_draw(local, x, &rows.list, dpi_random_insecure, &seed, &y, ERR));
                count[y]++;
            }
            for (y = 0; y < N; y++)
                row[y] = DRAWS * exp(row[y]);
            const double p = counts_p(count, row, N);
            if (p < 1e-5)
                fail_msg("%s, word %d: p = %g", dpi_words_mechanism_name(m), x, p);
        }
        dpi_local_rows_free(&rows);
    }
}

/* The law of the threshold against 200,000 of them. */
TEST(test_threshold) {
    enum { DRAWS = 200000 };
    dpi_local_rows rows;
    uint64_t seed = 3, t;
    open_mechanism(DPI_WORDS_RANTEXT, 6);
    assert_ok(dpi_local_rows_create(local, 0, &rows, ERR));
    const dpi_threshold_law *law = &rows.law;
    double *count = calloc((size_t)law->n_cells + 1, sizeof *count), most = 0, sum = 0;
    assert_non_null(count);
    for (int i = 0; i < DRAWS; i++) {
        int32_t low = 0, high = law->n_cells + 1;
        assert_ok(dpi_local_threshold(local, dpi_random_insecure, &seed, &t, ERR));
        while (high - low > 1) /* the last edge that is not above t */
            *((double)t >= law->edge[(low + high) / 2] ? &low : &high) = (low + high) / 2;
        count[low]++;
    }
    for (int32_t m = 0; m < law->n_cells; m++) { /* Kolmogorov */
        sum += count[m] / DRAWS;
        most = fmax(most, fabs(sum - (1 - law->above[m + 1])));
    }
    assert_true(most * sqrt(DRAWS) < 2.5); /* p = 7e-6 of the law itself */
    free(count);
    dpi_local_rows_free(&rows);
}

/* ---- Certificates ---------------------------------------------------------------------------- */

TEST(test_certificates) {
    for (int32_t m = DPI_WORDS_SANTEXT; m <= DPI_WORDS_EXPONENTIAL; m++) {
        double p[N][N], finite = 0, guess = 0, kept = 0;
        bool infinite = false;
        open_mechanism(m, 6);
        for (int x = 0; x < N; x++) {
            formula(x, p[x]);
            kept += p[x][x] / N;
        }
        for (int y = 0; y < N; y++) {
            double best = 0;
            for (int x = 0; x < N; x++) {
                best = fmax(best, p[x][y]);
                for (int other = 0; other < N; other++) {
                    if (p[x][y] > 0 && p[other][y] > 0)
                        finite = fmax(finite, log(p[x][y] / p[other][y]));
                    infinite |= p[x][y] > 0 && p[other][y] == 0;
                }
            }
            guess += best / N;
        }
        const dpi_certificate c = certify();
        assert_true(c.nominal == 6 && isinf(c.epsilon) == infinite);
        assert_true(fabs(c.kept - kept) < 1e-9 && c.n_pairs == N * (N - 1) / 2);
        if (m == DPI_WORDS_EXPONENTIAL) {
            assert_true(fabs(c.best_guess - guess) < 1e-9);
            assert_true(fabs(c.finite - finite) < 1e-9); /* words outside add nothing to it */
            assert_true(c.epsilon <= 6 && c.infinite == 0);
        } else {
            assert_true(c.finite >= finite - 1e-9 && c.infinite > 0);
        }
    }
}

/* ---- Rantext's certificate against integrals over the law of the threshold ------------------- */

enum { N_ANGLES = 96, N_NODES = 12 };

static double simpson(int i, int n) { return (i == 0 || i == n ? 1 : i % 2 ? 4 : 2) / 3.; }

/* Density of the norm of three coordinates with densities e^(-z / s) / s, at t. */
static double norm_density(const double scale[DIM], double t) {
    const double angle = acos(0) / N_ANGLES;
    double sum = 0;
    for (int i = 0; i <= N_ANGLES; i++)
        for (int j = 0; j <= N_ANGLES; j++) {
            const double a = i * angle, b = j * angle;
            const double fall =
                sin(a) * cos(b) / scale[0] + sin(a) * sin(b) / scale[1] + cos(a) / scale[2];
            sum += simpson(i, N_ANGLES) * simpson(j, N_ANGLES) * sin(a) * exp(-t * fall);
        }
    return sum * angle * angle * t * t / (scale[0] * scale[1] * scale[2]);
}

static int upwards(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* p[x][y] gets what thresholds from `begin` to `end` add: no distance is between them. */
static void add_thresholds(const double scale[DIM], double begin, double end, double p[N][N]) {
    for (int i = begin > 0 ? 0 : 1; i <= N_NODES; i++) {
        const double t = begin + (end - begin) * i / N_NODES;
        const double mass = simpson(i, N_NODES) * (end - begin) / N_NODES * norm_density(scale, t);
        for (int x = 0; x < N; x++) {
            double worth[N];
            for (int y = 0; y < N; y++)
                worth[y] = distance[x][y] <= begin
                               ? exp(options.epsilon / 2 * (1 - distance[x][y] / t))
                               : 0;
            normalise(worth);
            for (int y = 0; y < N; y++)
                p[x][y] += mass * worth[y];
        }
    }
}

static void integrate(double p[N][N]) {
    enum { N_AT = N * N + 9 };
    double scale[DIM], at[N_AT], largest = 0;
    for (int k = 0; k < DIM; k++) {
        scale[k] = (double)local->noise_scale[k] / 0x1p20;
        largest = fmax(largest, scale[k]);
    }
    memcpy(at, distance, sizeof distance);
    qsort(at, N * N, sizeof *at, upwards);
    for (int n = N * N; n < N_AT; n++) /* beyond the farthest word: e^-36 is left */
        at[n] = at[n - 1] + 4 * largest;
    memset(p, 0, N * sizeof p[0]);
    for (int i = 0; i + 1 < N_AT; i++)
        if (at[i + 1] > at[i])
            add_thresholds(scale, at[i], at[i + 1], p);
}

TEST(test_rantext_certificate) {
    static const double epsilons[] = {.5, 2, 6, 14, 40};
    for (const double *e = epsilons; e < END(epsilons); e++) {
        double p[N][N], most = 0;
        open_mechanism(DPI_WORDS_RANTEXT, *e);
        integrate(p);
        for (int i = 0; i < N * N * N; i++)
            most = fmax(most, log(p[i / N % N][i % N] / p[i / N / N][i % N]));
        const double found = certify().epsilon;
        if (!(fabs(found - most) <= 8e-3))
            fail_msg("epsilon %g: certificate %.4f, by integrals %.4f", *e, found, most);
    }
}

/* A word that stays, and one that becomes what no word becomes, have no bound with any other. */
TEST(test_fates) {
    static const int32_t fates[] = {DPI_REPLACED_KEPT, DPI_REPLACED_NUMBER};
    for (int i = 0; i < 2; i++) {
        int8_t fate[N] = {0};
        open_mechanism(i == 0 ? DPI_WORDS_CUSTEXT : DPI_WORDS_RANTEXT, 2);
        local->options.group_size = N;
        fate[3] = (int8_t)fates[i];
        local->fate = fate;
        dpi_certificate c = certify();
        assert_true(isinf(c.epsilon) && c.infinite > 0 && c.kept < 1);
        memset(fate, fates[i], sizeof fate); /* numbers alone are alike, words that stay are not */
        c = certify();
        assert_true(i == 0 ? isinf(c.epsilon) && c.infinite == 1 && c.kept == 1
                           : c.epsilon == 0 && c.infinite == 0 && c.best_guess * N == 1);
    }
}

/* One word apart from 3,000 at one place: e^(epsilon / 2) for the score, and nearly the same again
 * for the sum of weights. */
TEST(test_exponential_is_tight) {
    enum { WORDS = 3001 };
    const double epsilon = .002;
    uint32_t *apart = calloc((size_t)WORDS * WORDS, sizeof *apart);
    assert_non_null(apart);
    for (size_t i = 1; i < WORDS; i++)
        apart[i] = apart[i * WORDS] = 1 << 20;
    dpi_perturb_options_init(&options);
    options.mechanism = DPI_WORDS_EXPONENTIAL, options.epsilon = epsilon;
    assert_ok(dpi_local_create(&options, apart, WORDS, NULL, 1, &local, ERR));
    const double found = certify().epsilon;
    assert_true(found <= epsilon && found > epsilon - 1e-6);
    free(apart);
}

/* By enumeration of the formula, with words outside, whose score is that of no distance. */
static double loss_by_formula(double exponent) {
    double p[N + 1][N], loss = 0;
    for (int x = 0; x < N; x++)
        exponential(x, exponent, p[x]);
    exponential(0, 0, p[N]);
    for (int a = 0; a <= N; a++)
        for (int b = 0; b <= N; b++)
            for (int y = 0; y < N; y++)
                loss = fmax(loss, log(p[a][y] / p[b][y]));
    return loss;
}

/* What is found is within epsilon, and 1e-3 more would not be. */
TEST(test_calibrated) {
    static const double epsilons[] = {.01, .5, 3, 12, 60};
    for (const double *e = epsilons; e < END(epsilons); e++) {
        open_mechanism(DPI_WORDS_CALIBRATED, *e);
        const double exponent = ldexp((double)local->h, -40) * log(2);
        assert_true(exponent > *e / 2); /* more than Theorem L gives */
        assert_true(loss_by_formula(exponent) <= *e);
        /* The most that weights have room for is 69 ln 2. */
        assert_true(exponent >= 47 || loss_by_formula(exponent * 1.001) > *e);
        const dpi_certificate c = certify();
        assert_true(c.epsilon <= *e && c.infinite == 0);
    }
}

TEST(test_refusals) {
    dpi_local *other;
    dpi_perturb_options o;
    open_mechanism(DPI_WORDS_RANTEXT, 6);
#define LOCAL_REFUSED(change)                                                                      \
    (o = options, change,                                                                          \
     assert_error(dpi_local_create(&o, integer, N, range, DIM, &other, ERR), ARG, ""))
    LOCAL_REFUSED(o.epsilon = 65);
    LOCAL_REFUSED(o.mechanism = DPI_N_WORDS_MECHANISMS);
    LOCAL_REFUSED(o.group_size = 1);
    LOCAL_REFUSED(o.rare = 0);
    vectors[4] = 5000;
    assert_error(dpi_local_distances(vectors, N, DIM, 1, integer, ERR), NUMERIC, "");
}
