/* test_amin.c - Amin et al. 2024: masses, the distance and the plan. The loss of the private token
 * and the sensitivity of the distance are audited (dp/audit/audit_amin.c, by test_audit). */
#include "tests/dp/methods/amin_world.h"

/* Records' worth of change: docs/spec.md 4.5. */
static int32_t moved_by(int32_t adjacency) {
    return adjacency == DPI_ADJACENCY_REPLACE_BY_NULL ? 2 : 1;
}

/* ---- Mass and distance ---------------------------------------------------------------------- */

static void check_mass(const float *logits, size_t n) {
    int64_t mass[V], sum = 0;
    dpi_mass(logits, n, mass);
    double top = -INFINITY, z = 0;
    for (size_t y = 0; y < n; y++)
        top = fmax(top, isfinite(logits[y]) ? (double)logits[y] : -0x1.fffffep127);
    for (size_t y = 0; y < n; y++)
        z += exp((isfinite(logits[y]) ? (double)logits[y] : -0x1.fffffep127) - top);
    for (size_t y = 0; y < n; y++) {
        double x = isfinite(logits[y]) ? (double)logits[y] : -0x1.fffffep127;
        double p = exp(x - top) / z * DPI_MASS_ONE;
        assert_true(mass[y] >= 0);
        assert_true(fabs((double)mass[y] - floor(p)) <= p * 0x1p-29 + 1);
        sum += mass[y];
    }
    assert_true(sum <= DPI_MASS_ONE);
    assert_true(sum > DPI_MASS_ONE - (int64_t)n - 1);
}

static void test_mass(void **state) {
    (void)state;
    uint64_t seed = 3;
    float logits[V];
    for (int i = 0; i < 3000; i++) {
        double spread = exp(8 * random_uniform(&seed) - 4);
        for (int y = 0; y < V; y++) {
            uint32_t bits = (uint32_t)random_u64(&seed);
            logits[y] = (float)(spread * random_normal(&seed));
            if (i % 3 == 0 && random_below(&seed, 4) == 0)
                memcpy(&logits[y], &bits, sizeof bits);
            if (i % 7 == 0)
                logits[y] = i % 2 ? NAN : 5.f;
        }
        check_mass(logits, 1 + (size_t)random_below(&seed, V));
    }
}

/* Equation (2) with null slots as the adjacency has them, in units of 2^-30 / D. */
static double oracle_distance(const world *w, double denominator) {
    double mean[V] = {0}, p[V], d = 0;
    for (int j = -1; j < w->options.n_ref; j++) {
        const float *l = j < 0 ? w->public_logits : w->pointers[j];
        if (!l && moved_by(w->options.adjacency) == 1)
            continue;
        if (!l)
            l = w->public_logits;
        double top = -INFINITY, z = 0;
        for (int y = 0; y < V; y++)
            top = fmax(top, isfinite(l[y]) ? (double)l[y] : -0x1.fffffep127);
        for (int y = 0; y < V; y++)
            z += p[y] = exp((isfinite(l[y]) ? (double)l[y] : -0x1.fffffep127) - top);
        for (int y = 0; y < V; y++)
            mean[y] += (j < 0 ? -denominator : 1) * p[y] / z;
    }
    for (int y = 0; y < V; y++)
        d += fabs(mean[y]);
    return d * DPI_MASS_ONE;
}

static int64_t distance(const world *w) {
    dpi_sampler *s = open_sampler(&w->options);
    int64_t d;
    dpi_amin_distance(s, w->public_logits, w->pointers, &d);
    dpi_sampler_free(s);
    return d;
}

static void test_distance(void **state) {
    (void)state;
    uint64_t seed = 4;
    for (int a = 0; a < 3; a++)
        for (int i = 0; i < 300; i++) {
            world w;
            random_world(&w, adjacencies[a], &seed);
            double D = w.options.n_ref, wanted = oracle_distance(&w, D);
            double slack = (2 * D + 1) * (V + DPI_MASS_ONE * 0x1p-28);
            assert_true(fabs((double)distance(&w) - wanted) <= slack);
        }
}

/* ---- The plan ------------------------------------------------------------------------------- */

static void test_plan(void **state) {
    (void)state;
    for (int a = 0; a < 3; a++) {
        dpi_sampler_options o = make_options(adjacencies[a], 100, .5);
        o.tau = 2;
        o.svt_sigma = .5;
        const double moved = moved_by(o.adjacency), s = 100, r = o.n_private;
        dpi_sampler_plan plan = {.struct_size = sizeof plan};
        dpi_error err;
        assert_ok(dpi_sampler_plan_make(&o, &plan, &err), &err);
        dpi_amin_plan amin = dpi_amin_plan_get(&o);
        assert_int_equal(amin.n_private, 10);
        assert_int_equal(amin.svt_scale, (int64_t)50 << 30);
        assert_int_equal(amin.svt_threshold, (int64_t)50 << 30);
        /* Theorem 1 of the paper, with 2c/s and 2/s where a record is exchanged. */
        double c = (double)plan.K / 1048576, eps = 2 * moved / (s * o.svt_sigma);
        double token = pow(moved * c / (s * o.tau), 2) / 2, svt = eps * tanh(eps / 2);
        assert_true(fabs(amin.svt_epsilon / eps - 1) < 1e-14 && amin.svt_epsilon >= eps);
        assert_true(fabs(amin.rho_svt / svt - 1) < 1e-13);
        assert_true(amin.rho_svt <= 2 * pow(moved / (s * o.svt_sigma), 2));
        assert_true(fabs(plan.rho_token / token - 1) < 1e-6);
        assert_true(plan.rho_total >= r * (plan.rho_token + amin.rho_svt) * (1 - 1e-15));
        assert_true(plan.rho_total <= o.rho && plan.rho_total > o.rho * (1 - 1e-4));
        assert_int_equal(plan.n_private, 10);
        assert_int_equal(plan.svt_threshold, (int64_t)50 << 30);
        assert_int_equal(plan.svt_scale, (int64_t)50 << 30);
        assert_int_equal(plan.svt_sensitivity, (int64_t)moved << 30);
        assert_true(fabs(plan.svt_epsilon / eps - 1) < 1e-14 && plan.svt_epsilon >= eps);
        assert_true(fabs(plan.rho_svt / svt - 1) < 1e-13);
        /* One unit more of K does not fit. */
        double more = pow(2 * moved * ((double)plan.K + 1) * (double)plan.a * log(2) * 0x1p-48, 2);
        assert_true(r * (more / 8 + amin.rho_svt) > o.rho);
        /* Without a sparse vector all of it goes to the tokens. */
        o.svt_sigma = 0;
        o.n_private = 0;
        assert_ok(dpi_sampler_plan_make(&o, &plan, &err), &err);
        amin = dpi_amin_plan_get(&o);
        assert_int_equal(amin.n_private, o.n_tokens);
        assert_true(amin.rho_svt == 0 && amin.svt_epsilon == 0);
        assert_int_equal(plan.n_private, o.n_tokens);
        assert_true(plan.rho_svt == 0 && plan.svt_epsilon == 0 && plan.svt_sensitivity == 0);
        double clip = s * o.tau * sqrt(2 * o.rho / o.n_tokens) / moved;
        assert_true(fabs(plan.clip / clip - 1) < 1e-9);
        assert_true(fabs((double)plan.K / 1048576 / clip - 1) < 1e-4);
    }
}

static void test_options_are_refused(void **state) {
    (void)state;
    const dpi_sampler_options good = make_options(DPI_ADJACENCY_REPLACE_BY_NULL, 8, 10);
    dpi_sampler_options o;
#define REFUSED(field, value, part)                                                                \
    (o = good, o.field = (value), assert_refused(&o, DPI_STATUS_ARG, part))
    REFUSED(n_private, -1, "n_private is -1, must be 1..1048576, or 0 (all of them)");
    REFUSED(n_private, 101, "must be 1..100");
    REFUSED(tau_public, .001, "tau_public is 0.001, must be 0.01..100, or 0 (that of private");
    REFUSED(svt_threshold, NAN, "svt_threshold is nan, must be -1000..1000");
    REFUSED(svt_sigma, -1, "svt_sigma is -1");
    REFUSED(svt_sigma, NAN, "svt_sigma is nan");
    REFUSED(svt_sigma, 1001, "must be 1e-06..1000");
    o = good;
    o.n_ref = 100;
    o.svt_sigma = 400;
    assert_refused(&o, DPI_STATUS_ARG,
                   "svt_sigma is 400, must be at most 327.68 with denominator 100");
    o = good;
    o.svt_sigma = .001;
    assert_refused(&o, DPI_STATUS_BUDGET, "go to the sparse vector");
    o = good;
    o.accountant = DPI_ACCOUNTANT_BR;
    o.rho = 0;
    o.epsilon = 1;
    o.delta = 1e-6;
    assert_refused(&o, DPI_STATUS_UNSUPPORTED, "amin");
    o = good;
    o.center = 1;
    assert_refused(&o, DPI_STATUS_UNSUPPORTED, "amin");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mass),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
