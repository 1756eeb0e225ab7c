/* test_local.c - the mechanisms for words against the formulas of their papers, in doubles and from
 * the vectors; draws against their laws; certificates against enumeration. */
#include "dp/local/certify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

enum { N = 14, DIM = 3, GROUP = 5 };

typedef struct world {
    float vectors[N * DIM];
    double distance[N][N]; /* rounded to 2^-20, as the mechanism has them */
    uint32_t integer[N * N];
    double range[DIM];
    dpi_perturb_options options;
    dpi_local *local;
} world;

/* Words in a box, one twice at the same place, one far from all. */
static void make_vectors(world *w) {
    uint64_t seed = 7;
    for (int i = 0; i < N * DIM; i++) {
        uint32_t bits;
        dpi_random_insecure(&seed, &bits, sizeof bits);
        w->vectors[i] = (float)(bits / 0x1p32 - .5);
    }
    memcpy(w->vectors + 5 * DIM, w->vectors + 2 * DIM, DIM * sizeof *w->vectors);
    w->vectors[9 * DIM] = 3;
    for (int k = 0; k < DIM; k++) {
        double low = 1e9, high = -1e9;
        for (int i = 0; i < N; i++) {
            low = fmin(low, (double)w->vectors[i * DIM + k]);
            high = fmax(high, (double)w->vectors[i * DIM + k]);
        }
        w->range[k] = high - low;
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < DIM; k++)
                sum += pow((double)w->vectors[i * DIM + k] - (double)w->vectors[j * DIM + k], 2);
            w->distance[i][j] = round(sqrt(sum) * 0x1p20) / 0x1p20;
        }
}

static void open_world(world *w, int32_t mechanism, double epsilon) {
    dpi_error err = {0};
    make_vectors(w);
    assert_ok(dpi_local_distances(w->vectors, N, DIM, 2, w->integer, &err), &err);
    dpi_perturb_options_init(&w->options);
    w->options.mechanism = mechanism;
    w->options.epsilon = epsilon;
    w->options.rare = .75;
    w->options.group_size = GROUP;
    w->options.n_threads = 2;
    assert_ok(dpi_local_create(&w->options, w->integer, N, w->range, DIM, &w->local, &err), &err);
}

static void test_distances(void **state) {
    (void)state;
    world w;
    open_world(&w, DPI_MECHANISM_EXPONENTIAL, 1);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            assert_true((double)w.integer[i * N + j] == w.distance[i][j] * 0x1p20);
    assert_true(w.integer[2 * N + 5] == 0);
    dpi_local_free(w.local);
}

/* ---- The papers' formulas -------------------------------------------------------------------- */

static void normalise(double *p) {
    double sum = 0;
    for (int y = 0; y < N; y++)
        sum += p[y];
    for (int y = 0; y < N; y++)
        p[y] /= sum;
}

static void exponential(const world *w, int x, double epsilon, double *p) {
    double diameter = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            diameter = fmax(diameter, w->distance[i][j]);
    for (int y = 0; y < N; y++)
        p[y] = exp(-epsilon * w->distance[x][y] / (2 * diameter));
    normalise(p);
}

/* The last 3/4 of the words are rare: 14 - round(10.5 to even) = 4 are not. */
static void santext(const world *w, int x, double epsilon, double *p) {
    enum { FIRST_RARE = 4 };
    memset(p, 0, N * sizeof *p);
    for (int y = FIRST_RARE; y < N; y++)
        p[y] = exp(-epsilon * w->distance[x][y] / 2);
    normalise(p);
    if (x >= FIRST_RARE)
        return;
    for (int y = 0; y < N; y++)
        p[y] *= .3;
    p[x] += .7;
}

/* The groups by the definition: the first word without one, and its nearest without one. */
static void custext(const world *w, int x, double epsilon, double *p) {
    int group[N], n_groups = 0;
    for (int i = 0; i < N; i++)
        group[i] = -1;
    for (int i = 0; i < N; i++) {
        if (group[i] >= 0)
            continue;
        group[i] = n_groups;
        for (int k = 1; k < GROUP; k++) {
            int best = -1;
            for (int j = 0; j < N; j++)
                if (group[j] < 0 && (best < 0 || w->distance[i][j] < w->distance[i][best]))
                    best = j;
            if (best >= 0)
                group[best] = n_groups;
        }
        n_groups++;
    }
    double most = 0;
    for (int y = 0; y < N; y++)
        most = group[y] == group[x] ? fmax(most, w->distance[x][y]) : most;
    for (int y = 0; y < N; y++)
        p[y] = group[y] == group[x] ? exp(epsilon / 2 * (1 - w->distance[x][y] / most)) : 0;
    normalise(p);
}

static void formula(const world *w, int x, double *p) {
    const double epsilon = w->options.epsilon;
    if (w->options.mechanism == DPI_MECHANISM_EXPONENTIAL)
        exponential(w, x, epsilon, p);
    else if (w->options.mechanism == DPI_MECHANISM_SANTEXT)
        santext(w, x, epsilon, p);
    else
        custext(w, x, epsilon, p);
}

static void test_probabilities(void **state) {
    (void)state;
    static const double epsilons[] = {.01, 1, 6, 18, 60};
    for (int32_t mechanism = DPI_MECHANISM_SANTEXT; mechanism <= DPI_MECHANISM_EXPONENTIAL;
         mechanism++)
        for (size_t e = 0; e < sizeof epsilons / sizeof *epsilons; e++) {
            world w;
            dpi_local_rows rows;
            double row[N], p[N], n_candidates;
            open_world(&w, mechanism, epsilons[e]);
            assert_ok(dpi_local_rows_create(w.local, 0, &rows, NULL), NULL);
            for (int x = 0; x < N; x++) {
                dpi_local_row(&rows, x, row, &n_candidates);
                formula(&w, x, p);
                for (int y = 0; y < N; y++) {
                    assert_true(fabs(exp(row[y]) - p[y]) < 1e-9);
                    assert_true((row[y] == -INFINITY) == (p[y] == 0));
                }
            }
            dpi_local_rows_free(&rows);
            dpi_local_free(w.local);
        }
}

/* Algorithm 2 of RANTEXT, given its threshold. */
static void test_rantext_list(void **state) {
    (void)state;
    world w;
    dpi_local_list list;
    open_world(&w, DPI_MECHANISM_RANTEXT, 6);
    assert_ok(dpi_local_list_create(w.local, &list, NULL), NULL);
    for (uint64_t threshold = 1 << 10; threshold < UINT64_C(1) << 33;
         threshold = threshold * 3 / 2) {
        const double t = (double)threshold / 0x1p20;
        for (int x = 0; x < N; x++) {
            double p[N], sum = 0;
            for (int y = 0; y < N; y++)
                p[y] = w.distance[x][y] < t ? exp(3 * (1 - w.distance[x][y] / t)) : 0;
            normalise(p);
            dpi_local_scores(w.local, x, threshold, &list);
            for (size_t i = 0; i < list.n; i++)
                sum += exp2((double)list.score[i] / 0x1p40);
            double covered = 0;
            for (size_t i = 0; i < list.n; i++) {
                assert_true(fabs(exp2((double)list.score[i] / 0x1p40) / sum - p[list.word[i]]) <
                            1e-9);
                covered += p[list.word[i]];
            }
            assert_true(fabs(covered - 1) < 1e-12);
        }
    }
    dpi_local_list_free(w.local, &list);
    dpi_local_free(w.local);
}

/* Z by the formula of the authors, evaluated with 30 digits elsewhere. */
static void test_z(void **state) {
    (void)state;
    assert_true(fabs(dpi_local_rantext_z(3) - 9.359963721483804) < 1e-12);
    assert_true(fabs(dpi_local_rantext_z(6) - 9.382950695578387) < 1e-12);
    assert_true(fabs(dpi_local_rantext_z(18) - 9.405937674512196) < 1e-12);
    assert_true(dpi_local_rantext_z(.01) == .01);
}

/* ---- Draws ----------------------------------------------------------------------------------- */

/* p-value of a chi-square statistic, by the Wilson-Hilferty cube root. */
static double chi_square_p(double x, double df) {
    const double z = (cbrt(x / df) - (1 - 2 / (9 * df))) / sqrt(2 / (9 * df));
    return erfc(z / sqrt(2)) / 2;
}

static double draws_p(const world *w, dpi_local_rows *rows, int x, int32_t n, uint64_t *seed) {
    double row[N], n_candidates, count[N] = {0}, statistic = 0, rest = 0, rest_count = 0;
    int cells = 0;
    dpi_local_row(rows, x, row, &n_candidates);
    for (int32_t i = 0; i < n; i++) {
        int32_t y;
        assert_ok(dpi_local_draw(w->local, x, &rows->list, dpi_random_insecure, seed, &y, NULL),
                  NULL);
        count[y]++;
    }
    for (int y = 0; y < N; y++) {
        const double expected = n * exp(row[y]);
        if (expected < 5) { /* in one cell */
            rest += expected;
            rest_count += count[y];
            continue;
        }
        statistic += pow(count[y] - expected, 2) / expected;
        cells++;
    }
    if (rest >= 5) {
        statistic += pow(rest_count - rest, 2) / rest;
        cells++;
    } else {
        assert_true(rest_count < 30);
    }
    return cells > 1 ? chi_square_p(statistic, cells - 1) : 1;
}

/* Of rantext as well: its rows integrate over the law of the threshold, its draws draw one. */
static void test_draws(void **state) {
    (void)state;
    uint64_t seed = 11;
    for (int32_t mechanism = 0; mechanism <= DPI_MECHANISM_EXPONENTIAL; mechanism++) {
        world w;
        dpi_local_rows rows;
        /* Below 2 the noise is large and lists are long; at 40 they are of all sizes. */
        open_world(&w, mechanism, mechanism == DPI_MECHANISM_RANTEXT ? 40 : 6);
        assert_ok(dpi_local_rows_create(w.local, 0, &rows, NULL), NULL);
        for (int x = 0; x < N; x += 3) {
            const double p = draws_p(&w, &rows, x, 20000, &seed);
            if (p < 1e-5)
                fail_msg("%s, word %d: p = %g", dpi_mechanism_name(mechanism), x, p);
        }
        dpi_local_rows_free(&rows);
        dpi_local_free(w.local);
    }
}

/* ---- Certificates ---------------------------------------------------------------------------- */

static void test_certificates(void **state) {
    (void)state;
    for (int32_t mechanism = DPI_MECHANISM_SANTEXT; mechanism <= DPI_MECHANISM_EXPONENTIAL;
         mechanism++) {
        world w;
        double p[N][N], finite = 0, guess = 0, kept = 0;
        bool infinite = false;
        dpi_certificate c;
        dpi_certificate_init(&c);
        open_world(&w, mechanism, 6);
        for (int x = 0; x < N; x++)
            formula(&w, x, p[x]);
        for (int x = 0; x < N; x++) {
            kept += p[x][x] / N;
            for (int other = 0; other < N; other++)
                for (int y = 0; y < N; y++) {
                    if (p[x][y] > 0 && p[other][y] > 0)
                        finite = fmax(finite, log(p[x][y] / p[other][y]));
                    infinite |= p[x][y] > 0 && p[other][y] == 0;
                }
        }
        for (int y = 0; y < N; y++) {
            double best = 0;
            for (int x = 0; x < N; x++)
                best = fmax(best, p[x][y]);
            guess += best / N;
        }
        assert_ok(dpi_local_certify(w.local, &c, NULL), NULL);
        assert_true(c.nominal == 6);
        assert_true(isinf(c.epsilon) == infinite);
        assert_true(fabs(c.kept - kept) < 1e-9);
        assert_true(c.n_pairs == N * (N - 1) / 2);
        if (mechanism == DPI_MECHANISM_EXPONENTIAL) {
            assert_true(fabs(c.best_guess - guess) < 1e-9);
            assert_true(fabs(c.finite - finite) < 1e-9); /* words outside add nothing to it */
            assert_true(c.epsilon <= 6 && c.infinite == 0);
        } else {
            assert_true(c.finite >= finite - 1e-9 && c.infinite > 0);
        }
        dpi_local_free(w.local);
    }
}

/* One word apart from 3,000 at one place: e^(epsilon / 2) for the score, and nearly the same again
 * for the sum of weights. */
/* ---- Rantext's certificate against integrals over the law of the threshold ------------------- */

enum { N_ANGLES = 96, N_NODES = 12 };

static double simpson(int i, int n) { return (i == 0 || i == n ? 1 : i % 2 ? 4 : 2) / 3.; }

/* Density of the norm of three coordinates with densities e^(-z / s) / s, at t. */
static double norm_density(const double scale[DIM], double t) {
    const double step = acos(0) / N_ANGLES;
    double sum = 0;
    for (int i = 0; i <= N_ANGLES; i++)
        for (int j = 0; j <= N_ANGLES; j++) {
            const double a = i * step, b = j * step;
            const double fall = sin(a) * cos(b) / scale[0] + sin(a) * sin(b) / scale[1] +
                                cos(a) / scale[2];
            sum += simpson(i, N_ANGLES) * simpson(j, N_ANGLES) * sin(a) * exp(-t * fall);
        }
    return sum * step * step * t * t / (scale[0] * scale[1] * scale[2]);
}

static int upwards(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* p[x][y] gets what thresholds from `begin` to `end` add: no distance is between them. */
static void add_thresholds(const world *w, const double scale[DIM], double begin, double end,
                           double p[N][N]) {
    for (int i = 0; i <= N_NODES; i++) {
        const double t = begin + (end - begin) * i / N_NODES;
        if (t <= 0)
            continue;
        const double mass = simpson(i, N_NODES) * (end - begin) / N_NODES * norm_density(scale, t);
        for (int x = 0; x < N; x++) {
            double worth[N], sum = 0;
            for (int y = 0; y < N; y++) {
                const double d = w->distance[x][y];
                worth[y] = d <= begin ? exp(w->options.epsilon / 2 * (1 - d / t)) : 0;
                sum += worth[y];
            }
            for (int y = 0; y < N; y++)
                p[x][y] += mass * worth[y] / sum;
        }
    }
}

static void integrate(const world *w, double p[N][N]) {
    double scale[DIM], at[N * N + 9], largest = 0;
    int n = 0;
    for (int k = 0; k < DIM; k++) {
        scale[k] = (double)w->local->noise_scale[k] / 0x1p20;
        largest = fmax(largest, scale[k]);
    }
    for (int x = 0; x < N; x++)
        for (int y = 0; y < N; y++)
            at[n++] = w->distance[x][y];
    qsort(at, (size_t)n, sizeof *at, upwards);
    for (int i = 1; i < 10; i++, n++) /* beyond the farthest word: e^-36 is left */
        at[n] = at[n - 1] + 4 * largest;
    memset(p, 0, N * sizeof p[0]);
    for (int i = 0; i + 1 < n; i++)
        if (at[i + 1] > at[i])
            add_thresholds(w, scale, at[i], at[i + 1], p);
}

static void test_rantext_certificate(void **state) {
    (void)state;
    static const double epsilons[] = {.5, 2, 6, 14, 40};
    for (size_t e = 0; e < sizeof epsilons / sizeof *epsilons; e++) {
        world w;
        double p[N][N], most = 0;
        dpi_certificate c;
        open_world(&w, DPI_MECHANISM_RANTEXT, epsilons[e]);
        integrate(&w, p);
        for (int y = 0; y < N; y++) {
            double high = 0, low = 1;
            for (int x = 0; x < N; x++) {
                high = fmax(high, p[x][y]);
                low = fmin(low, p[x][y]);
            }
            most = fmax(most, log(high / low));
        }
        dpi_certificate_init(&c);
        assert_ok(dpi_local_certify(w.local, &c, NULL), NULL);
        if (fabs(c.epsilon - most) > 8e-3)
            fail_msg("epsilon %g: certificate %.4f, by integrals %.4f", epsilons[e], c.epsilon,
                     most);
        dpi_local_free(w.local);
    }
}

/* A word that stays, and one that becomes what no word becomes, have no bound with any other. */
static void test_fates(void **state) {
    (void)state;
    static const int32_t fates[] = {DPI_REPLACED_KEPT, DPI_REPLACED_NUMBER};
    for (int i = 0; i < 2; i++) {
        world w;
        int8_t fate[N] = {0};
        dpi_certificate c;
        open_world(&w, i == 0 ? DPI_MECHANISM_CUSTEXT : DPI_MECHANISM_RANTEXT, 2);
        w.local->options.group_size = N;
        fate[3] = (int8_t)fates[i];
        w.local->fate = fate;
        dpi_certificate_init(&c);
        assert_ok(dpi_local_certify(w.local, &c, NULL), NULL);
        assert_true(isinf(c.epsilon) && c.infinite > 0 && c.kept < 1);
        memset(fate, fates[i], sizeof fate); /* numbers alone are alike, words that stay are not */
        assert_ok(dpi_local_certify(w.local, &c, NULL), NULL);
        assert_true(i == 0 ? isinf(c.epsilon) && c.infinite == 1 && c.kept == 1
                           : c.epsilon == 0 && c.infinite == 0 && c.best_guess * N == 1);
        dpi_local_free(w.local);
    }
}

static void test_exponential_is_tight(void **state) {
    (void)state;
    enum { WORDS = 3001 };
    const double epsilon = .002;
    uint32_t *distance = calloc((size_t)WORDS * WORDS, sizeof *distance);
    dpi_perturb_options o;
    dpi_certificate c;
    dpi_local *local;
    assert_non_null(distance);
    for (size_t i = 1; i < WORDS; i++)
        distance[i] = distance[i * WORDS] = 1 << 20;
    dpi_perturb_options_init(&o);
    dpi_certificate_init(&c);
    o.mechanism = DPI_MECHANISM_EXPONENTIAL;
    o.epsilon = epsilon;
    assert_ok(dpi_local_create(&o, distance, WORDS, NULL, 1, &local, NULL), NULL);
    assert_ok(dpi_local_certify(local, &c, NULL), NULL);
    assert_true(c.epsilon <= epsilon && c.epsilon > epsilon - 1e-6);
    dpi_local_free(local);
    free(distance);
}

/* What is found is within epsilon by enumeration of the formula, with words outside, and 1e-3 more
 * would not be. */
static double loss_by_formula(const world *w, double exponent) {
    double diameter = 0, p[N + 1][N], loss = 0;
    for (int i = 0; i < N * N; i++)
        diameter = fmax(diameter, w->distance[i / N][i % N]);
    for (int x = 0; x <= N; x++) {
        for (int y = 0; y < N; y++)
            p[x][y] = x == N ? 1 : exp(-exponent * w->distance[x][y] / diameter);
        normalise(p[x]);
    }
    for (int a = 0; a <= N; a++)
        for (int b = 0; b <= N; b++)
            for (int y = 0; y < N; y++)
                loss = fmax(loss, log(p[a][y] / p[b][y]));
    return loss;
}

static void test_calibrated(void **state) {
    (void)state;
    static const double epsilons[] = {.01, .5, 3, 12, 60};
    for (size_t e = 0; e < sizeof epsilons / sizeof *epsilons; e++) {
        const double epsilon = epsilons[e];
        world w;
        dpi_certificate c;
        dpi_certificate_init(&c);
        open_world(&w, DPI_MECHANISM_CALIBRATED, epsilon);
        const double exponent = ldexp((double)w.local->h, -40) * log(2);
        assert_true(exponent > epsilon / 2); /* more than Theorem L gives */
        assert_true(loss_by_formula(&w, exponent) <= epsilon);
        if (exponent < 47) /* the most that weights have room for is 69 ln 2 */
            assert_true(loss_by_formula(&w, exponent * 1.001) > epsilon);
        assert_ok(dpi_local_certify(w.local, &c, NULL), NULL);
        assert_true(c.epsilon <= epsilon && c.infinite == 0);
        dpi_local_free(w.local);
    }
}

/* The law of the threshold against 200,000 of them. */
static void test_threshold(void **state) {
    (void)state;
    enum { DRAWS = 200000 };
    world w;
    dpi_local_rows rows;
    uint64_t seed = 3, t;
    open_world(&w, DPI_MECHANISM_RANTEXT, 6);
    assert_ok(dpi_local_rows_create(w.local, 0, &rows, NULL), NULL);
    const dpi_threshold_law *law = &rows.law;
    double *count = calloc((size_t)law->n_cells + 1, sizeof *count);
    assert_non_null(count);
    for (int i = 0; i < DRAWS; i++) {
        int32_t low = 0, high = law->n_cells + 1;
        assert_ok(dpi_local_threshold(w.local, dpi_random_insecure, &seed, &t, NULL), NULL);
        while (high - low > 1) /* the last edge that is not above t */
            *((double)t >= law->edge[(low + high) / 2] ? &low : &high) = (low + high) / 2;
        count[low]++;
    }
    double most = 0, sum = 0, expected = 0;
    for (int32_t m = 0; m < law->n_cells; m++) { /* Kolmogorov */
        sum += count[m] / DRAWS;
        expected = 1 - law->above[m + 1];
        most = fmax(most, fabs(sum - expected));
    }
    assert_true(most * sqrt(DRAWS) < 2.5); /* p = 7e-6 of the law itself */
    free(count);
    dpi_local_rows_free(&rows);
    dpi_local_free(w.local);
}

static void test_refusals(void **state) {
    (void)state;
    world w;
    open_world(&w, DPI_MECHANISM_RANTEXT, 6);
    dpi_local *local;
    dpi_perturb_options o = w.options;
    o.epsilon = 65;
    assert_true(dpi_local_create(&o, w.integer, N, w.range, DIM, &local, NULL) == DPI_STATUS_ARG);
    o = w.options, o.mechanism = DPI_N_MECHANISMS;
    assert_true(dpi_local_create(&o, w.integer, N, w.range, DIM, &local, NULL) == DPI_STATUS_ARG);
    o = w.options, o.group_size = 1;
    assert_true(dpi_local_create(&o, w.integer, N, w.range, DIM, &local, NULL) == DPI_STATUS_ARG);
    o = w.options, o.rare = 0;
    assert_true(dpi_local_create(&o, w.integer, N, w.range, DIM, &local, NULL) == DPI_STATUS_ARG);
    w.vectors[4] = 5000;
    assert_true(dpi_local_distances(w.vectors, N, DIM, 1, w.integer, NULL) == DPI_STATUS_NUMERIC);
    dpi_local_free(w.local);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_probabilities),
        cmocka_unit_test(test_rantext_list),
        cmocka_unit_test(test_z),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_rantext_certificate),
        cmocka_unit_test(test_fates),
        cmocka_unit_test(test_exponential_is_tight),
        cmocka_unit_test(test_calibrated),
        cmocka_unit_test(test_threshold),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
