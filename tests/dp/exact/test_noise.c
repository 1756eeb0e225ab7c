/* test_noise.c - the discrete Laplace sampler against its closed form: frequencies, moments at
 * large scales, bounds and a source that fails; the sparse vector against its exact law. */
#include "dp/exact/svt.h"

#include <math.h>

#include "tests/support/support.h"

/* p-value of a chi-square statistic x with an even or odd number df of degrees of freedom, by
 * the Wilson-Hilferty cube root: good to a few percent of p, where 1e-4 is the question. */
static double chi_square_p(double x, double df) {
    double z = (cbrt(x / df) - (1 - 2 / (9 * df))) / sqrt(2 / (9 * df));
    return erfc(z / sqrt(2)) / 2;
}

/* P[Z = z] and P[Z >= z] (z >= 1) of the closed form, r = e^(-1/t):
 * (1 - r) / (1 + r) r^|z| and r^z / (1 + r). */
static double law(double t, int64_t z) {
    return -expm1(-1 / t) / (1 + exp(-1 / t)) * exp(-(double)llabs(z) / t);
}

static double tail(double t, int64_t z) { return exp(-(double)z / t) / (1 + exp(-1 / t)); }

/* n draws at `scale`; cells of width `width` from -radius to radius, and the two tails. */
static double p_value(int64_t scale, int64_t width, int64_t radius, int32_t n, uint64_t seed) {
    enum { CELLS_MAX = 128 };
    int64_t n_cells = 2 * radius + 1;
    double count[CELLS_MAX + 2] = {0};
    assert_true(n_cells <= CELLS_MAX);
    assert_true(width % 2 == 1);
    for (int32_t i = 0; i < n; i++) {
        int64_t z;
        assert_ok(dpi_noise_laplace(scale, dpi_random_insecure, &seed, &z, NULL), NULL);
        /* Cell c holds the width integers around c * width. */
        int64_t c = (z >= 0 ? z + width / 2 : z - width / 2) / width;
        c = c > radius ? radius + 1 : c < -radius ? -radius - 1 : c;
        count[c + radius + 1]++;
    }
    double x = 0, t = (double)scale;
    for (int64_t c = -radius - 1; c <= radius + 1; c++) {
        double p = 0;
        if (llabs(c) > radius)
            p = tail(t, radius * width + width / 2 + 1);
        else
            for (int64_t z = c * width - width / 2; z <= c * width + width / 2; z++)
                p += law(t, z);
        double expected = n * p, d = count[c + radius + 1] - expected;
        assert_true(expected > 5);
        x += d * d / expected;
    }
    return chi_square_p(x, (double)(n_cells + 1));
}

static void test_frequencies(void **state) {
    (void)state;
    static const struct {
        int64_t scale, width, radius;
    } cases[] = {{1, 1, 8}, {2, 1, 15}, {3, 1, 20}, {7, 1, 50}, {100, 25, 20}, {1000, 301, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double p = p_value(cases[i].scale, cases[i].width, cases[i].radius,
                           i == 2 ? 1000000 : 200000, 500 + i);
        if (!(p > 1e-4 && p < 1 - 1e-4))
            fail_msg("scale %d: p = %g", (int)cases[i].scale, p);
    }
}

/* ---- Gaussian -------------------------------------------------------------------------------- */

/* Its law on -reach..reach from the definition, which brute force sums. */
static double gaussian_p_value(int64_t v, int32_t reach, int32_t n, uint64_t seed, double claimed) {
    enum { REACH_MAX = 600 };
    double count[2 * REACH_MAX + 1] = {0}, sum = 0, x = 0, rest = n, n_rest = n;
    int n_cells = 0;
    for (int32_t z = -4 * REACH_MAX; z <= 4 * REACH_MAX; z++)
        sum += exp(-128.0 * z * z / claimed);
    for (int32_t i = 0; i < n; i++) {
        int64_t z;
        assert_ok(dpi_noise_gaussian(v, dpi_random_insecure, &seed, &z, NULL), NULL);
        if (llabs(z) <= reach)
            count[z + reach]++;
    }
    for (int32_t z = -reach; z <= reach; z++) {
        const double expected = n * exp(-128.0 * z * z / claimed) / sum;
        if (expected < 5)
            continue;
        x += pow(count[z + reach] - expected, 2) / expected;
        rest -= expected;
        n_rest -= count[z + reach];
        n_cells++;
    }
    if (rest > 5)
        x += pow(n_rest - rest, 2) / rest;
    return chi_square_p(x, n_cells - (rest > 5 ? 0 : 1));
}

/* Variances below, at and above squares, small and large ones. */
static void test_gaussian(void **state) {
    (void)state;
    static const struct {
        int64_t v;
        int32_t reach;
    } cases[] = {{16, 3},     {100, 5},     {255, 7},           {256, 7},
                 {257, 7},    {1000, 12},   {256 * 9, 18},      {256 * 100 + 3, 60},
                 {300000, 200}, {DPI_NOISE_VARIANCE_FINE, 500},
                 {DPI_NOISE_VARIANCE_FINE + 256, 500}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double p = gaussian_p_value(cases[i].v, cases[i].reach, i == 7 ? 1000000 : 200000,
                                          900 + i, (double)cases[i].v);
        if (!(p > 1e-4 && p < 1 - 1e-4))
            fail_msg("variance %d / 256: p = %g", (int)cases[i].v, p);
    }
    assert_true(gaussian_p_value(256 * 9, 18, 200000, 1, 256 * 9.4) < 1e-4); /* it has power */
}

/* rho = 1/(2 s), never below; the variance of a rho costs no more than that. */
static void test_gaussian_rho(void **state) {
    (void)state;
    assert_true(dpi_rho_gaussian_bound(256) == .5);
    for (int64_t v = DPI_NOISE_VARIANCE_MIN; v < 5000; v++) {
        const long double rho = dpi_rho_gaussian_bound(v), exact = 128.0L / (long double)v;
        assert_true(rho >= exact && rho <= exact * (1 + 0x1p-52L));
    }
    static const double rhos[] = {1.3e-7, 1e-5, 6.1e-5, 1e-4, .001, .0123, .1, .5, 1, 3.3, 8};
    for (size_t i = 0; i < sizeof rhos / sizeof *rhos; i++) {
        const int64_t v = dpi_noise_variance_for(rhos[i]);
        assert_in_range(v, DPI_NOISE_VARIANCE_MIN, DPI_NOISE_VARIANCE_MAX);
        assert_true(dpi_rho_gaussian_bound(v) <= rhos[i]);
        const int64_t step = v > DPI_NOISE_VARIANCE_FINE ? 256 : 1;
        assert_int_equal(v % step, 0);
        assert_true(v <= 17 || 128.0L / (long double)(v - 2 * step) > (long double)rhos[i]);
    }
    assert_int_equal(dpi_noise_variance_for(9), 0);
    assert_int_equal(dpi_noise_variance_for(1e-7), 0);
    assert_int_equal(dpi_noise_variance_for(0), 0);
    assert_int_equal(dpi_noise_variance_for(NAN), 0);
}

static void test_gaussian_arguments(void **state) {
    (void)state;
    dpi_error err;
    int64_t z = 99;
    assert_error(dpi_noise_gaussian(15, NULL, NULL, &z, &err), DPI_STATUS_ARG, &err, "15 / 256");
    assert_error(dpi_noise_gaussian(DPI_NOISE_VARIANCE_MAX + 1, NULL, NULL, &z, &err),
                 DPI_STATUS_ARG, &err, "16..1073741824");
    assert_error(dpi_noise_gaussian(DPI_NOISE_VARIANCE_FINE + 1, NULL, NULL, &z, &err),
                 DPI_STATUS_ARG, &err, "it must be whole");
    for (int32_t n = 0;; n++) {
        limited_source l = {.seed = 5, .n = n};
        const dpi_status status = dpi_noise_gaussian(5000, limited_bits, &l, &z, &err);
        if (status == DPI_STATUS_OK)
            break;
        assert_error(status, DPI_STATUS_ENTROPY, &err, "random source");
        assert_int_equal(z, 99);
    }
}

/* The test has power: the law of a neighbouring scale is told apart. */
static void test_a_wrong_scale_is_seen(void **state) {
    (void)state;
    uint64_t seed = 1;
    double x = 0;
    enum { N = 200000 };
    double count[21] = {0};
    for (int i = 0; i < N; i++) {
        int64_t z;
        assert_ok(dpi_noise_laplace(50, dpi_random_insecure, &seed, &z, NULL), NULL);
        if (llabs(z) <= 10)
            count[z + 10]++;
    }
    for (int z = -10; z <= 10; z++) {
        double expected = N * law(52, z), d = count[z + 10] - expected;
        x += d * d / expected;
    }
    assert_true(chi_square_p(x, 21) < 1e-4);
}

/* At scales as the sparse vector uses them: E|Z| = t, E Z^2 = 2 t^2, a fair sign, and |Z|/t is
 * exponential (Kolmogorov-Smirnov). */
static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void test_large_scales(void **state) {
    (void)state;
    enum { N = 50000 };
    static const int64_t scales[] = {(INT64_C(1) << 31) + 12345, DPI_NOISE_SCALE_MAX};
    static double u[N];
    for (int k = 0; k < 2; k++) {
        uint64_t seed = 77;
        double n_minus = 0, ks = 0;
        for (int i = 0; i < N; i++) {
            int64_t z;
            assert_ok(dpi_noise_laplace(scales[k], dpi_random_insecure, &seed, &z, NULL), NULL);
            n_minus += z < 0;
            u[i] = -expm1(-fabs((double)z) / (double)scales[k]);
        }
        qsort(u, N, sizeof *u, ascending);
        for (int i = 0; i < N; i++)
            ks = fmax(ks, fmax((i + 1.0) / N - u[i], u[i] - (double)i / N));
        assert_true(ks * sqrt(N) < 2.23); /* 2 e^(-2 x^2) = 1e-4 */
        assert_true(fabs(n_minus - N / 2.0) < 3.9 * sqrt(N / 4.0));
    }
}

static void test_scale_is_checked(void **state) {
    (void)state;
    dpi_error err;
    int64_t z = 99;
    assert_error(dpi_noise_laplace(0, NULL, NULL, &z, &err), DPI_STATUS_ARG, &err, "scale of 0");
    assert_error(dpi_noise_laplace(DPI_NOISE_SCALE_MAX + 1, NULL, NULL, &z, &err), DPI_STATUS_ARG,
                 &err, "must be 1..70368744177664");
    assert_int_equal(z, 99);
}

static void test_a_source_that_fails(void **state) {
    (void)state;
    int32_t n_failed = 0;
    dpi_error err;
    for (int32_t n = 0;; n++) {
        limited_source l = {.seed = 5, .n = n};
        int64_t z = 99;
        dpi_status status = dpi_noise_laplace(10, limited_bits, &l, &z, &err);
        if (status == DPI_STATUS_OK)
            break;
        assert_error(status, DPI_STATUS_ENTROPY, &err, "random source");
        assert_int_equal(z, 99);
        n_failed++;
    }
    assert_true(n_failed >= 4);
}

/* From the operating system: nothing to compare with but its symmetry and spread. */
static void test_system_source(void **state) {
    (void)state;
    double sum = 0, size = 0;
    enum { N = 4000 };
    for (int i = 0; i < N; i++) {
        int64_t z;
        assert_ok(dpi_noise_laplace(1000, NULL, NULL, &z, NULL), NULL);
        sum += (double)z;
        size += fabs((double)z);
    }
    assert_true(fabs(sum / N) < 6 * 1000 * sqrt(2.0 / N)); /* 6 standard deviations: 2e-9 */
    assert_true(fabs(size / N - 1000) < 6 * 1000 / sqrt(N));
}

/* ---- The sparse vector ---------------------------------------------------------------------- */

/* P[Z >= z] for every integer z. */
static double above_law(double t, int64_t z) { return z > 0 ? tail(t, z) : 1 - tail(t, 1 - z); }

enum { N_QUERIES = 4 };

/* first[k]: the first "above" is query k (N_QUERIES: none), summed over the threshold's noise. */
static void exact_law(int64_t scale, int64_t threshold, const int64_t *query, double *first) {
    double t = (double)scale;
    for (int k = 0; k <= N_QUERIES; k++)
        first[k] = 0;
    for (int64_t z = -60 * scale; z <= 60 * scale; z++) {
        double p = law(t, z);
        for (int k = 0; k < N_QUERIES; k++) {
            double above = above_law(2 * t, threshold + z - query[k]);
            first[k] += p * above;
            p *= 1 - above;
        }
        first[N_QUERIES] += p;
    }
}

static void run_svt(int64_t scale, int64_t threshold, const int64_t *query, int32_t n,
                    uint64_t seed, int32_t *count) {
    memset(count, 0, (N_QUERIES + 1) * sizeof *count);
    for (int32_t i = 0; i < n; i++) {
        dpi_svt svt = {.scale = scale, .threshold = threshold};
        bool above = false;
        int k = 0;
        assert_ok(dpi_svt_arm(&svt, dpi_random_insecure, &seed, NULL), NULL);
        for (; k < N_QUERIES && !above; k += !above)
            assert_ok(dpi_svt_query(&svt, query[k], dpi_random_insecure, &seed, &above, NULL),
                      NULL);
        count[k]++;
    }
}

/* Frequencies against the exact law, the exact law against 2 D / scale, and frequencies of
 * neighbours against each other (four standard deviations of each logarithm). */
static void test_sparse_vector(void **state) {
    (void)state;
    static const struct {
        int64_t scale, threshold, query[N_QUERIES], sign[N_QUERIES];
    } cases[] = {{4, 5, {5, 5, 5, 5}, {1, 1, 1, 1}},
                 {4, 5, {0, 3, 9, 2}, {-1, -1, 1, -1}},
                 {4, 0, {12, 12, 12, -8}, {1, 1, 1, -1}},
                 {4, 0, {8, 8, 20, -2}, {-1, -1, -1, 1}}};
    enum { N = 150000, DELTA = 2 };
    double largest = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t other[N_QUERIES];
        double first[N_QUERIES + 1], first2[N_QUERIES + 1];
        const double eps = 2.0 * DELTA / (double)cases[i].scale;
        int32_t count[N_QUERIES + 1], count2[N_QUERIES + 1];
        for (int k = 0; k < N_QUERIES; k++)
            other[k] = cases[i].query[k] + DELTA * cases[i].sign[k];
        exact_law(cases[i].scale, cases[i].threshold, cases[i].query, first);
        exact_law(cases[i].scale, cases[i].threshold, other, first2);
        run_svt(cases[i].scale, cases[i].threshold, cases[i].query, N, 10 + i, count);
        run_svt(cases[i].scale, cases[i].threshold, other, N, 20 + i, count2);
        double x = 0;
        for (int k = 0; k <= N_QUERIES; k++) {
            double d = count[k] - N * first[k];
            assert_true(N * first[k] > 5);
            x += d * d / (N * first[k]);
            assert_true(fabs(log(first[k] / first2[k])) <= eps + 1e-12);
            largest = fmax(largest, fabs(log(first[k] / first2[k])) / eps);
            double spread = sqrt(1.0 / count[k] + 1.0 / count2[k]);
            assert_true(fabs(log((double)count[k] / count2[k])) <= eps + 4 * spread);
        }
        assert_true(x < 23.5); /* chi-square, 4 degrees of freedom, 1e-4 */
    }
    assert_true(largest > .9); /* the cases do strain the bound */
}

/* rho of pure DP against the Renyi divergence of randomised response, whose log-likelihood ratio is
 * +-eps: D_a <= rho a at every order, and nearly reached at order 1. */
static void test_rho_of_pure_dp(void **state) {
    (void)state;
    for (long double eps = 1e-3L; eps < 40; eps *= 1.7L) {
        long double rho = dpi_rho_pure_bound((double)eps), p = 1 / (1 + expl(-eps)), largest = 0;
        assert_true(rho <= eps * eps / 2 * (1 + 1e-9L));
        for (long double a = 1.001L; a < 1e4; a = 1 + (a - 1) * 1.5L) {
            /* ln(p^a q^(1-a) + q^a p^(1-a)), q = p e^-eps */
            long double log_sum = logl(p) + eps * (a - 1) + log1pl(expl(-eps * (2 * a - 1)));
            long double order_rho = log_sum / (a - 1) / a, rounding = 1e-18L / (a - 1);
            assert_true(order_rho <= rho + rounding);
            largest = fmaxl(largest, order_rho);
        }
        assert_true(largest > .99L * rho);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_gaussian),
        cmocka_unit_test(test_gaussian_rho),
        cmocka_unit_test(test_gaussian_arguments),     cmocka_unit_test(test_a_wrong_scale_is_seen),
        cmocka_unit_test(test_large_scales),    cmocka_unit_test(test_scale_is_checked),
        cmocka_unit_test(test_a_source_that_fails), cmocka_unit_test(test_system_source),
        cmocka_unit_test(test_sparse_vector),   cmocka_unit_test(test_rho_of_pure_dp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
