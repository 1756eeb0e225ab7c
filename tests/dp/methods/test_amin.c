/* test_amin.c - Amin et al. 2024: masses, the distance and the plan. The loss of the private token
 * and the sensitivity of the distance are audited (audit/audit_amin.c, by test_audit). */
#include "tests/dp/methods/amin_world.h"
#include "tests/oracle/law.h"

/* Records' worth of change: docs/spec.md 4.5. */
static int32_t moved_by(int32_t adjacency) {
    return adjacency == DPI_ADJACENCY_REPLACE_BY_NULL ? 2 : 1;
}

/* What is not finite counts as the least float. */
static void oracle_mass(const float *logits, int32_t n, real *p) {
    law_softmax(logits, NULL, n, 1, -0x1.fffffep127L, p);
}

/* ---- Mass and distance ---------------------------------------------------------------------- */

static void check_mass(const float *logits, int32_t n) {
    int64_t mass[V], sum = 0;
    real p[V];
    dpi_mass(logits, (size_t)n, mass);
    oracle_mass(logits, n, p);
    for (int32_t y = 0; y < n; y++) {
        const double wanted = (double)p[y] * DPI_MASS_ONE;
        assert_true(mass[y] >= 0);
        assert_true(fabs((double)mass[y] - floor(wanted)) <= wanted * 0x1p-29 + 1);
        sum += mass[y];
    }
    assert_true(sum <= DPI_MASS_ONE && sum > DPI_MASS_ONE - n - 1);
}

TEST(test_mass) {
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
        check_mass(logits, 1 + random_below(&seed, V));
    }
}

/* Equation (2) with null slots as the adjacency has them, in units of 2^-30 / D. */
static double oracle_distance(const dpi_sampler_options *o, const batch *b, double denominator) {
    real mean[V] = {0}, p[V], d = 0;
    for (int j = -1; j < o->n_ref; j++) {
        const float *l = j < 0 ? b->public_logits : b->slots[j];
        if (!l && moved_by(o->adjacency) == 1)
            continue;
        oracle_mass(l ? l : b->public_logits, V, p);
        for (int y = 0; y < V; y++)
            mean[y] += (j < 0 ? -denominator : 1) * p[y];
    }
    for (int y = 0; y < V; y++)
        d += fabsl(mean[y]);
    return (double)d * DPI_MASS_ONE;
}

TEST(test_distance) {
    uint64_t seed = 4;
    for (int i = 0; i < 900; i++) {
        dpi_sampler_options o;
        batch b;
        int64_t d;
        random_world(&o, &b, adjacencies[i % 3], &seed);
        SAMPLER s = open_sampler(&o);
        dpi_amin_distance(s, b.public_logits, b.slots, &d);
        const double D = o.n_ref, slack = (2 * D + 1) * (V + DPI_MASS_ONE * 0x1p-28);
        assert_true(fabs((double)d - oracle_distance(&o, &b, D)) <= slack);
    }
}

/* ---- The plan ------------------------------------------------------------------------------- */

TEST(test_plan) {
    for (int a = 0; a < 3; a++) {
        dpi_sampler_options o = make_options(adjacencies[a], 100, .5);
        o.tau = 2, o.svt_sigma = .5;
        const double moved = moved_by(o.adjacency), s = 100, r = o.n_private;
        dpi_sampler_plan plan = make_plan(&o);
        dpi_amin_plan amin = dpi_amin_plan_get(&o);
        /* Theorem 1 of the paper, with 2c/s and 2/s where a record is exchanged. */
        const double c = (double)plan.K / 1048576, eps = 2 * moved / (s * o.svt_sigma);
        const double token = pow(moved * c / (s * o.tau), 2) / 2, svt = eps * tanh(eps / 2);
        assert_true(amin.n_private == 10 && plan.n_private == 10);
        assert_true(amin.svt_scale == (int64_t)50 << 30 && plan.svt_scale == amin.svt_scale);
        assert_true(amin.svt_threshold == (int64_t)50 << 30);
        assert_true(plan.svt_threshold == amin.svt_threshold);
        assert_int_equal(plan.svt_sensitivity, (int64_t)moved << 30);
        assert_true(fabs(amin.svt_epsilon / eps - 1) < 1e-14 && amin.svt_epsilon >= eps);
        assert_true(fabs(plan.svt_epsilon / eps - 1) < 1e-14 && plan.svt_epsilon >= eps);
        assert_true(fabs(amin.rho_svt / svt - 1) < 1e-13 && fabs(plan.rho_svt / svt - 1) < 1e-13);
        assert_true(amin.rho_svt <= 2 * pow(moved / (s * o.svt_sigma), 2));
        assert_true(fabs(plan.rho_token / token - 1) < 1e-6);
        assert_true(plan.rho_total >= r * (plan.rho_token + amin.rho_svt) * (1 - 1e-15));
        assert_true(plan.rho_total <= o.rho && plan.rho_total > o.rho * (1 - 1e-4));
        /* One unit more of K does not fit. */
        double more = pow(2 * moved * ((double)plan.K + 1) * (double)plan.a * log(2) * 0x1p-48, 2);
        assert_true(r * (more / 8 + amin.rho_svt) > o.rho);
        /* Without a sparse vector all of it goes to the tokens. */
        o.svt_sigma = 0, o.n_private = 0;
        plan = make_plan(&o), amin = dpi_amin_plan_get(&o);
        assert_true(amin.n_private == o.n_tokens && plan.n_private == o.n_tokens);
        assert_true(amin.rho_svt == 0 && amin.svt_epsilon == 0);
        assert_true(plan.rho_svt == 0 && plan.svt_epsilon == 0 && plan.svt_sensitivity == 0);
        const double clip = s * o.tau * sqrt(2 * o.rho / o.n_tokens) / moved;
        assert_true(fabs(plan.clip / clip - 1) < 1e-9);
        assert_true(fabs((double)plan.K / 1048576 / clip - 1) < 1e-4);
    }
}

TEST(test_options_are_refused) {
    const dpi_sampler_options good = make_options(DPI_ADJACENCY_REPLACE_BY_NULL, 8, 10);
    dpi_sampler_options o;
    REFUSED(ARG, "n_private is -1, must be 1..1048576, or 0 (all of them)", o.n_private = -1);
    REFUSED(ARG, "must be 1..100", o.n_private = 101);
    REFUSED(ARG, "tau_public is 0.001, must be 0.01..100, or 0 (that of private",
            o.tau_public = .001);
    REFUSED(ARG, "svt_threshold is nan, must be -1000..1000", o.svt_threshold = NAN);
    REFUSED(ARG, "svt_sigma is -1", o.svt_sigma = -1);
    REFUSED(ARG, "svt_sigma is nan", o.svt_sigma = NAN);
    REFUSED(ARG, "must be 1e-06..1000", o.svt_sigma = 1001);
    REFUSED(ARG, "svt_sigma is 400, must be at most 327.68 with denominator 100", o.n_ref = 100,
            o.svt_sigma = 400);
    REFUSED(BUDGET, "go to the sparse vector", o.svt_sigma = .001);
    REFUSED(UNSUPPORTED, "amin", o.accountant = DPI_ACCOUNTANT_BR, o.rho = 0, o.epsilon = 1,
            o.delta = 1e-6);
    REFUSED(UNSUPPORTED, "amin", o.center = 1);
}
