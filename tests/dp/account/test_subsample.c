/* test_subsample.c - records to batches: SipHash's published vectors, secret assignment, and the
 * amplification table of docs/spec.md 4.4. */
#include "tests/oracle/accountant.h"
#include "tests/support/support.h"

/* The batch of an id. */
static int32_t hash(const uint8_t key[16], const void *id, size_t n_bytes, int32_t n_batches) {
    int32_t batch;
    assert_ok(dpi_assign_hash(key, id, n_bytes, n_batches, &batch, ERR));
    return batch;
}

/* The first of the vectors that come with the definition of SipHash-2-4: key 00 01 .. 0f, message
 * 00 01 .. of n bytes; and the one of 15 bytes worked out in the paper's appendix. */
TEST(test_siphash) {
    static const uint64_t wanted[9] = {
        UINT64_C(0x726fdb47dd0e0e31), UINT64_C(0x74f839c593dc67fd), UINT64_C(0x0d6c8009d9a94f5a),
        UINT64_C(0x85676696d7fb7e2d), UINT64_C(0xcf2794e0277187b7), UINT64_C(0x18765564cd99a68d),
        UINT64_C(0xcbc9466e58fee3ce), UINT64_C(0xab0200f58b01d137), UINT64_C(0x93f5f5799a932462)};
    uint8_t bytes[16];
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)i;
    for (size_t n = 0; n < 9; n++) {
        assert_int_equal(hash(bytes, bytes, n, 1 << 30), wanted[n] >> 34);
        assert_int_equal(hash(bytes, bytes, n, 7),
                         (int32_t)((long double)wanted[n] * 7 * 0x1p-64L));
    }
    assert_int_equal(hash(bytes, bytes, 15, 1 << 30), UINT64_C(0xa129ca6149be45e5) >> 34);
    assert_int_equal(hash(bytes, NULL, 0, 1 << 30), wanted[0] >> 34);
}

TEST(test_batches_are_even) {
    enum { N_BATCHES = 10, N_IDS = 20000 };
    int count[N_BATCHES] = {0}, same = 0;
    for (uint32_t id = 0; id < N_IDS; id++) {
        static const uint8_t key[16] = {1, 2, 3}, other[16] = {1, 2, 4};
        const int32_t batch = hash(key, &id, sizeof id, N_BATCHES);
        count[batch]++;
        same += batch == hash(other, &id, sizeof id, N_BATCHES);
    }
    for (int i = 0; i < N_BATCHES; i++)
        assert_in_range(count[i], 1800, 2200); /* 2000, deviation 42 */
    assert_in_range(same, 1800, 2200);
}

typedef struct script {
    uint64_t words[2];
    int32_t result;
} script;

static int32_t scripted(void *user, void *buffer, size_t n_bytes) {
    script *s = user;
    assert_int_equal(n_bytes, sizeof s->words);
    memcpy(buffer, s->words, n_bytes);
    return s->result;
}

static int32_t secret(double q, int32_t n_batches, dpi_random_fn random, void *user) {
    int32_t batch;
    assert_ok(dpi_assign_secret(q, n_batches, random, user, &batch, ERR));
    return batch;
}

TEST(test_secret_assignment) {
    script s = {{(UINT64_C(1) << 62) - 1, 0}, 0};
    int32_t batch = 77;
    assert_int_equal(secret(.25, 10, scripted, &s), 0);
    s.words[0]++; /* exactly q */
    assert_int_equal(secret(.25, 10, scripted, &s), -1);
    s = (script){{UINT64_MAX, UINT64_MAX}, 0};
    assert_int_equal(secret(1, 10, scripted, &s), 9);
    s.result = -1;
    assert_error(dpi_assign_secret(1, 10, scripted, &s, &batch, ERR), ENTROPY, "");
    assert_int_equal(batch, 77);

    int count[4] = {0};
    uint64_t seed = 70;
    for (int i = 0; i < 40000; i++)
        count[secret(.3, 3, dpi_random_insecure, &seed) + 1]++;
    assert_in_range(count[0], 27400, 28600); /* 28000, deviation 92 */
    for (int i = 1; i < 4; i++)
        assert_in_range(count[i], 3600, 4400); /* 4000, deviation 60 */

    int joined = 0; /* with the system's bits */
    for (int i = 0; i < 2000; i++)
        joined += secret(.5, 1, NULL, NULL) == 0;
    assert_in_range(joined, 800, 1200); /* 1000, deviation 22: fails by chance with 4e-19 */
}

TEST(test_amplification) {
    static const double q[3] = {.1, .01, .001}, runs[3] = {1, 3, 10};
    static const double inside[3][3] = {
        {2.900, 5.152, 7.450}, {5.257, 7.555, 9.857}, {12.303, 14.605, 16.908}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double epsilon, delta, back, delta_back;
            assert_ok(dpi_subsample_inside(runs[i], 1e-6, q[j], &epsilon, &delta, ERR));
            assert_true(fabs(epsilon - inside[i][j]) < 5.01e-4);
            assert_true(delta <= 1e-6 / q[j] && delta > 1e-6 / q[j] * (1 - 1e-15));
            assert_ok(dpi_subsample_outside(epsilon, delta, q[j], &back, &delta_back, ERR));
            assert_true(back <= runs[i] * (1 + 1e-12) && back >= runs[i] * (1 - 1e-12));
            assert_true(delta_back <= 1e-6 * (1 + 1e-15) && delta_back >= 1e-6 * (1 - 1e-15));
        }
}

/* Bounds on the safe side of long double, also where e^epsilon overflows. */
TEST(test_rounding) {
    uint64_t seed = 71;
    for (int i = 0; i < 20000; i++) {
        double q = exp(-12 * random_uniform(&seed)), epsilon = exp(16 * random_uniform(&seed) - 8);
        double out, delta, in;
        assert_ok(dpi_subsample_outside(epsilon, .01, q, &out, &delta, ERR));
        long double exact = epsilon > 5000 ? epsilon + logl(q) : log1pl(q * expm1l(epsilon));
        assert_true(out >= exact * (1 - 1e-18L) && out <= exact * (1 + 1e-12L) + 1e-13L);
        assert_true(out <= epsilon && delta >= q * .01L && delta <= q * (.01L + 1e-15L));
        assert_ok(dpi_subsample_inside(epsilon, 1e-7, q, &in, &delta, ERR));
        exact = epsilon > 5000 ? epsilon - logl(q) : log1pl(expm1l(epsilon) / q);
        assert_true(in <= exact * (1 + 1e-18L) && in >= exact * (1 - 1e-12L));
        assert_true(in >= epsilon && delta <= 1e-7L / q);
    }
    double in, out, delta;
    assert_ok(dpi_subsample_inside(2, .001, 1, &in, &delta, ERR));
    assert_ok(dpi_subsample_outside(2, .001, 1, &out, &delta, ERR));
    assert_true(in == 2 && out == 2 && delta == .001);
}

/* Worst case of the theorem, both directions, by numerical integration of two Gaussians: Q without
 * the record, (1 - q) Q + q P with it; delta of P against Q is known in closed form. */
TEST(test_theorem_on_gaussians) {
    static const double shift = 1.3;
    for (int k = 0; k < 12; k++) {
        const double q = k % 2 ? .05 : .4, epsilon = .5 + .5 * k;
        double run, delta_run, with = 0, without = 0;
        assert_ok(dpi_subsample_outside(epsilon, (double)gaussian_delta(shift, epsilon), q, &run,
                                        &delta_run, ERR));
        for (double x = -12; x < 14; x += 1e-3) {
            double Q = exp(-x * x / 2) / sqrt(2 * acos(-1));
            double P = Q * exp(x * shift - shift * shift / 2), mixed = (1 - q) * Q + q * P;
            with += 1e-3 * fmax(0, mixed - exp(run) * Q);
            without += 1e-3 * fmax(0, Q - exp(run) * mixed);
        }
        assert_true(with <= delta_run * (1 + 1e-6) && with >= delta_run * (1 - 1e-3)); /* tight */
        assert_true(without <= delta_run);
    }
}

TEST(test_refusals) {
    int32_t batch = 7;
    double x = 7, y = 7;
    const uint8_t key[16] = {0};
    assert_error(dpi_assign_hash(NULL, "a", 1, 2, &batch, ERR), ARG, "NULL");
    assert_error(dpi_assign_hash(key, NULL, 1, 2, &batch, ERR), ARG, "NULL");
    assert_error(dpi_assign_hash(key, "a", 1, 0, &batch, ERR), ARG, "1..");
    static const double bad[] = {0, -1, 1.1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_error(dpi_assign_secret(bad[i], 2, NULL, NULL, &batch, ERR), ARG, "q is");
        assert_error(dpi_subsample_inside(1, .1, bad[i], &x, &y, ERR), ARG, "q is");
        assert_error(dpi_subsample_outside(1, .1, bad[i], &x, &y, ERR), ARG, "q is");
    }
    assert_error(dpi_subsample_inside(1, .2, .1, &x, &y, ERR), ARG, "not below");
    assert_error(dpi_subsample_inside(0, .1, .5, &x, &y, ERR), ARG, "epsilon");
    assert_error(dpi_assign_secret(.5, 2, NULL, NULL, NULL, ERR), ARG, "NULL");
    assert_true(batch == 7 && x == 7 && y == 7);
}
