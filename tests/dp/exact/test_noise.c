/* test_noise.c - the discrete Laplace sampler against its closed form: frequencies, moments at
 * large scales, bounds and a source that fails; the sparse vector against its exact law. */
#include "dp/exact/svt.h"
#include "tests/oracle/statistics.h"
#include "tests/support/support.h"

typedef dpi_status sampler(int64_t parameter, dpi_random_fn random, void *user, int64_t *z,
                           dpi_error *err);

static int64_t draw(sampler *of, int64_t parameter, uint64_t *seed) {
    int64_t z;
    assert_ok(of(parameter, seed ? dpi_random_insecure : NULL, seed, &z, ERR));
    return z;
}

/* P[Z = z] and P[Z >= z] (z >= 1) of the closed form, r = e^(-1/t):
 * (1 - r) / (1 + r) r^|z| and r^z / (1 + r). */
static double law(double t, int64_t z) {
    return -expm1(-1 / t) / (1 + exp(-1 / t)) * exp(-(double)llabs(z) / t);
}

static double tail(double t, int64_t z) { return exp(-(double)z / t) / (1 + exp(-1 / t)); }

/* Mass above x, which is no integer. */
static double above(double t, double x) {
    const int64_t z = (int64_t)ceil(x);
    return z > 0 ? tail(t, z) : 1 - tail(t, 1 - z);
}

/* p-value of n draws at `scale` under the law of scale t. */
static double p_value(int64_t scale, double t, int64_t width, int64_t radius, int n,
                      uint64_t seed) {
    static int64_t z[1000000];
    for (int i = 0; i < n; i++)
        z[i] = draw(dpi_noise_laplace, scale, &seed);
    return cells_p(z, n, width, radius, above, t);
}

TEST(test_frequencies) {
    static const struct row {
        int64_t scale, width, radius;
        int n;
    } cases[] = {{1, 1, 8, 200000},  {2, 1, 15, 200000},    {3, 1, 20, 1000000},
                 {7, 1, 50, 200000}, {100, 25, 20, 200000}, {1000, 301, 20, 200000}};
    for (const struct row *r = cases; r < END(cases); r++) {
        const uint64_t seed = 500 + (uint64_t)(r - cases);
        const double p = p_value(r->scale, (double)r->scale, r->width, r->radius, r->n, seed);
        if (!(p > 1e-4 && p < 1 - 1e-4))
            fail_msg("scale %d: p = %g", (int)r->scale, p);
    }
}

/* The test has power: the law of a neighbouring scale is told apart. */
TEST(test_a_wrong_scale_is_seen) {
    const double p = p_value(50, 52, 1, 10, 200000, 1);
    assert_true(p > 0 && p < 1e-4);
}

/* ---- Gaussian -------------------------------------------------------------------------------- */

/* Its law on -reach..reach from the definition, which brute force sums; the variance is claimed /
 * 256. What is beyond is one cell. */
static double gaussian_p_value(int64_t v, int32_t reach, int32_t n, uint64_t seed, double claimed) {
    enum { REACH_MAX = 600 };
    double count[2 * REACH_MAX + 2] = {0}, expected[2 * REACH_MAX + 2], sum = 0, rest = n;
    for (int32_t z = -4 * REACH_MAX; z <= 4 * REACH_MAX; z++)
        sum += exp(-128.0 * z * z / claimed);
    for (int32_t z = -reach; z <= reach; z++)
        rest -= expected[z + reach] = n * exp(-128.0 * z * z / claimed) / sum;
    expected[2 * reach + 1] = rest;
    for (int32_t i = 0; i < n; i++) {
        const int64_t z = draw(dpi_noise_gaussian, v, &seed);
        count[llabs(z) <= reach ? z + reach : 2 * reach + 1]++;
    }
    return counts_p(count, expected, 2 * reach + 2);
}

/* Variances below, at and above squares, small and large ones. */
TEST(test_gaussian) {
    enum { FINE = DPI_NOISE_VARIANCE_FINE };
    static const struct row {
        int64_t v;
        int32_t reach;
    } cases[] = {{16, 3},    {100, 5},    {255, 7},      {256, 7},    {257, 7},         {1000, 12},
                 {2304, 18}, {25603, 60}, {300000, 200}, {FINE, 500}, {FINE + 256, 500}};
    for (const struct row *r = cases; r < END(cases); r++) {
        const double p = gaussian_p_value(r->v, r->reach, r->reach == 60 ? 1000000 : 200000,
                                          900 + (uint64_t)(r - cases), (double)r->v);
        if (!(p > 1e-4 && p < 1 - 1e-4))
            fail_msg("variance %d / 256: p = %g", (int)r->v, p);
    }
    assert_true(gaussian_p_value(256 * 9, 18, 200000, 1, 256 * 9.4) < 1e-4); /* it has power */
}

/* rho = 1/(2 s), never below; the variance of a rho costs no more than that. */
TEST(test_gaussian_rho) {
    assert_true(dpi_rho_gaussian_bound(256) == .5);
    for (int64_t v = DPI_NOISE_VARIANCE_MIN; v < 5000; v++) {
        const long double rho = dpi_rho_gaussian_bound(v), exact = 128.0L / (long double)v;
        assert_true(rho >= exact && rho <= exact * (1 + 0x1p-52L));
    }
    static const double rhos[] = {1.3e-7, 1e-5, 6.1e-5, 1e-4, .001, .0123, .1, .5, 1, 3.3, 8};
    for (const double *rho = rhos; rho < END(rhos); rho++) {
        const int64_t v = dpi_noise_variance_for(*rho);
        assert_in_range(v, DPI_NOISE_VARIANCE_MIN, DPI_NOISE_VARIANCE_MAX);
        assert_true(dpi_rho_gaussian_bound(v) <= *rho);
        const int64_t unit = v > DPI_NOISE_VARIANCE_FINE ? 256 : 1;
        assert_int_equal(v % unit, 0);
        assert_true(v <= 17 || 128.0L / (long double)(v - 2 * unit) > (long double)*rho);
    }
    static const double none[] = {9, 1e-7, 0, NAN};
    for (const double *rho = none; rho < END(none); rho++)
        assert_int_equal(dpi_noise_variance_for(*rho), 0);
}

/* ---- Arguments and sources ------------------------------------------------------------------- */

TEST(test_arguments) {
    static const struct row {
        sampler *of;
        int64_t parameter;
        const char *part;
    } rows[] = {
        {dpi_noise_gaussian, 15, "15 / 256"},
        {dpi_noise_gaussian, DPI_NOISE_VARIANCE_MAX + 1, "16..1073741824"},
        {dpi_noise_gaussian, DPI_NOISE_VARIANCE_FINE + 1, "it must be whole"},
        {dpi_noise_laplace, 0, "scale of 0"},
        {dpi_noise_laplace, DPI_NOISE_SCALE_MAX + 1, "must be 1..70368744177664"},
    };
    int64_t z = 99;
    for (const struct row *r = rows; r < END(rows); r++)
        assert_error(r->of(r->parameter, NULL, NULL, &z, ERR), ARG, r->part);
    assert_int_equal(z, 99);
}

TEST(test_a_source_that_fails) {
    for (int gaussian = 0; gaussian < 2; gaussian++) {
        dpi_status status = DPI_STATUS_ENTROPY;
        int32_t n = 0;
        for (; status != DPI_STATUS_OK; n++) {
            limited_source l = {.seed = 5, .n = n};
            int64_t z = 99;
            status = gaussian ? dpi_noise_gaussian(5000, limited_bits, &l, &z, ERR)
                              : dpi_noise_laplace(10, limited_bits, &l, &z, ERR);
            if (status == DPI_STATUS_OK)
                break;
            assert_error(status, ENTROPY, "random source");
            assert_int_equal(z, 99);
        }
        assert_true(gaussian || n >= 4);
    }
}

/* From the operating system: nothing to compare with but its symmetry and spread. 7 standard
 * deviations: each bound fails by chance with less than 1e-11, the larger tail of sums of
 * exponentials included. */
TEST(test_system_source) {
    enum { N = 4000 };
    double sum = 0, size = 0;
    for (int i = 0; i < N; i++) {
        const double z = (double)draw(dpi_noise_laplace, 1000, NULL);
        sum += z, size += fabs(z);
    }
    assert_true(fabs(sum / N) < 7 * 1000 * sqrt(2.0 / N));
    assert_true(fabs(size / N - 1000) < 7 * 1000 / sqrt(N));
}

/* At scales as the sparse vector uses them: E|Z| = t, E Z^2 = 2 t^2, a fair sign, and |Z|/t is
 * exponential (Kolmogorov-Smirnov). */
static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

TEST(test_large_scales) {
    enum { N = 50000 };
    static const int64_t scales[] = {(INT64_C(1) << 31) + 12345, DPI_NOISE_SCALE_MAX};
    static double u[N];
    for (int k = 0; k < 2; k++) {
        uint64_t seed = 77;
        double n_minus = 0, ks = 0;
        for (int i = 0; i < N; i++) {
            const int64_t z = draw(dpi_noise_laplace, scales[k], &seed);
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

/* ---- The sparse vector ---------------------------------------------------------------------- */

enum { N_QUERIES = 4, N_TEXTS = 150000, SVT_SCALE = 4 };

/* expected[k]: how often of N_TEXTS the first "above" is query k (N_QUERIES: none), summed over the
 * threshold's noise; count[k]: how often it was. */
static void run_svt(int64_t threshold, const int64_t *query, uint64_t seed, double *expected,
                    double *count) {
    const double t = SVT_SCALE;
    for (int64_t z = -60 * SVT_SCALE; z <= 60 * SVT_SCALE; z++) {
        double p = N_TEXTS * law(t, z);
        for (int k = 0; k < N_QUERIES; k++) {
            const double q = above(2 * t, (double)(threshold + z - query[k]) - .5);
            expected[k] += p * q;
            p *= 1 - q;
        }
        expected[N_QUERIES] += p;
    }
    for (int i = 0; i < N_TEXTS; i++) {
        dpi_svt svt = {.scale = SVT_SCALE, .threshold = threshold};
        bool above = false;
        int k = 0;
        assert_ok(dpi_svt_arm(&svt, dpi_random_insecure, &seed, ERR));
        for (; k < N_QUERIES && !above; k += !above)
            assert_ok(dpi_svt_query(&svt, query[k], dpi_random_insecure, &seed, &above, ERR));
        count[k]++;
    }
}

/* Frequencies against the exact law, the exact law against 2 D / scale, and frequencies of
 * neighbours against each other (four standard deviations of each logarithm). */
TEST(test_sparse_vector) {
    enum { DELTA = 2 };
    static const struct row {
        int64_t threshold, query[N_QUERIES], sign[N_QUERIES];
    } cases[] = {{5, {5, 5, 5, 5}, {1, 1, 1, 1}},
                 {5, {0, 3, 9, 2}, {-1, -1, 1, -1}},
                 {0, {12, 12, 12, -8}, {1, 1, 1, -1}},
                 {0, {8, 8, 20, -2}, {-1, -1, -1, 1}}};
    const double eps = 2.0 * DELTA / SVT_SCALE;
    double largest = 0;
    for (const struct row *r = cases; r < END(cases); r++) {
        const uint64_t seed = 10 + (uint64_t)(r - cases);
        int64_t other[N_QUERIES];
        double count[2][N_QUERIES + 1] = {{0}}, first[2][N_QUERIES + 1] = {{0}};
        for (int k = 0; k < N_QUERIES; k++)
            other[k] = r->query[k] + DELTA * r->sign[k];
        run_svt(r->threshold, r->query, seed, first[0], count[0]);
        run_svt(r->threshold, other, seed + 10, first[1], count[1]);
        for (int k = 0; k <= N_QUERIES; k++) {
            const double loss = fabs(log(first[0][k] / first[1][k]));
            const double spread = sqrt(1 / count[0][k] + 1 / count[1][k]);
            assert_true(first[0][k] > 5 && loss <= eps + 1e-12);
            assert_true(fabs(log(count[0][k] / count[1][k])) <= eps + 4 * spread);
            largest = fmax(largest, loss / eps);
        }
        assert_true(counts_p(count[0], first[0], N_QUERIES + 1) > 1e-4);
    }
    assert_true(largest > .9); /* the cases do strain the bound */
}

/* rho of pure DP against the Renyi divergence of randomised response, whose log-likelihood ratio is
 * +-eps: D_a <= rho a at every order, and nearly reached at order 1. */
TEST(test_rho_of_pure_dp) {
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
