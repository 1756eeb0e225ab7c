/* Private training of adapters: sums that are those of the units alone, steps against Adam in
 * double precision, noise without units, threads. */
#include <math.h>

#include "dp/exact/gradient.h"
#include "tests/train/tuner_support.h"

/* ---- Sums ------------------------------------------------------------------------------------ */

static void check_sums(int32_t n_threads, bool hostile) {
    base b = open_base(0);
    world *w = make_world(b.spec.n_vocab);
    for (int i = 0; i < POSITIONS && hostile; i++) { /* NaN, infinite and huge gradients */
        w->weights[0][0][i] = NAN;
        w->weights[1][0][i] = i % 2 ? INFINITY : -INFINITY;
        w->weights[3][1][i] = 1e30f;
        w->weights[4][0][i] = 1e-40f;
    }
    dpi_tuner_options options = options_of(b.model);
    options.n_threads = n_threads;
    dpi_tuner *t = open_tuner(&options);
    spread(t);
    const int64_t n = dpi_tuner_lora(t)->n_params;
    const double most = (double)dpi_gradient_bound(n);
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    int64_t *alone[UNITS];
    for (int u = 0; u < UNITS; u++) {
        uint8_t joins[UNITS] = {0};
        double square = 0;
        joins[u] = 1;
        alone[u] = sum_of(t, &units, joins);
        for (int64_t i = 0; i < n; i++)
            square += (double)alone[u][i] * (double)alone[u][i];
        assert_true(square <= most * most);
    }
    uint64_t seed = 2;
    for (int k = 0; k < 6; k++) {
        uint8_t joins[UNITS];
        for (int u = 0; u < UNITS; u++)
            joins[u] = k == 0 || random_below(&seed, 2);
        int64_t *sum = sum_of(t, &units, joins);
        for (int64_t i = 0; i < n; i++) {
            int64_t wanted = 0;
            for (int u = 0; u < UNITS; u++)
                wanted += joins[u] ? alone[u][i] : 0;
            assert_int_equal(sum[i], wanted);
        }
        free(sum);
    }
    for (int u = 0; u < UNITS; u++)
        free(alone[u]);
    dpi_tuner_free(t);
    free(w);
    close_base(&b);
}

/* A unit more moves the sum by what it adds alone, at most D long, whatever its gradient is. */
static void test_sums(void **state) {
    (void)state;
    for (int32_t n_threads = 1; n_threads <= 4; n_threads++)
        check_sums(n_threads, n_threads % 2 == 0);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Adam in double on what each step releases. */
static void check_steps(int32_t unbiased, double sigma) {
    base b = open_base(0);
    world *w = make_world(b.spec.n_vocab);
    dpi_tuner_options options = options_of(b.model);
    uint64_t bits = 12;
    options.unbiased = unbiased, options.sigma = sigma;
    options.n_warmup = 2, options.lr_floor = .001;
    options.random = dpi_random_insecure, options.random_user = &bits;
    dpi_tuner *t = open_tuner(&options);
    spread(t);
    const int64_t n = dpi_tuner_lora(t)->n_params;
    double *x = dpi_calloc(3 * (size_t)n, sizeof *x), *m = x + n, *v = m + n;
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)dpi_tuner_adapters(t)[i];
    for (int step = 1; step <= 5; step++) {
        uint8_t all[UNITS];
        memset(all, 1, sizeof all);
        int64_t *sum = sum_of(t, &units, all);
        assert_ok(dpi_tuner_step(t, &units, NULL), NULL);
        assert_int_equal(dpi_tuner_steps_done(t), step);
        const double phase = 3.141592653589793 * (step - 2) / (20 - 2);
        const double rate = step <= 2 ? .01 * step / 2 : .001 + .009 * .5 * (1 + cos(phase));
        const double noise = pow(sigma * .7 / 5, 2);
        for (int64_t i = 0; i < n; i++) {
            const double g = (double)dpi_tuner_released(t)[i];
            if (sigma == 0) /* everyone joins: the sum over 5, a public number */
                assert_true(fabs(g - (double)sum[i] / (1 << 20) * .7 / 5) <= 1e-6 * fabs(g));
            m[i] = .9 * m[i] + .1 * g;
            v[i] = .999 * v[i] + .001 * g * g;
            const double mean = m[i] / (1 - pow(.9, step)), square = v[i] / (1 - pow(.999, step));
            x[i] -= rate * mean /
                    (unbiased ? sqrt(fmax(square - noise, .01 * noise)) : sqrt(square) + 1e-8);
            const double found = (double)dpi_tuner_adapters(t)[i];
            if (fabs(found - x[i]) > 1e-3 * rate + (unbiased ? .02 * fabs(x[i]) : 0))
                fail_msg("step %d, adapter %d: %.9g, wanted %.9g", step, (int)i, found, x[i]);
            x[i] = found; /* float and double part at most one step */
        }
        free(sum);
    }
    free(x);
    dpi_tuner_free(t);
    free(w);
    close_base(&b);
}

static void test_steps(void **state) {
    (void)state;
    check_steps(0, 0);
    check_steps(0, .5);
    check_steps(1, .5);
}

/* A step without units has its noise, of the deviation sigma D. */
static void test_empty_step(void **state) {
    (void)state;
    uint64_t seed = 3;
    base b = open_base(0);
    dpi_tuner_options options = options_of(b.model);
    options.sigma = 2;
    options.random = dpi_random_insecure;
    options.random_user = &seed;
    dpi_tuner *t = open_tuner(&options);
    const int64_t n = dpi_tuner_lora(t)->n_params;
    const dpi_tuner_units none = {.n = 0, .row = next_row, .user = NULL};
    for (int step = 0; step < 3; step++) {
        double square = 0;
        assert_ok(dpi_tuner_step(t, &none, NULL), NULL);
        for (int64_t i = 0; i < n; i++)
            square += pow((double)dpi_tuner_released(t)[i], 2);
        const double wanted = 2 * .7 / 5 * (double)dpi_gradient_bound(n) / (1 << 20);
        assert_true(fabs(square / (double)n / wanted / wanted - 1) < 5 * sqrt(2 / (double)n));
    }
    dpi_tuner_free(t);
    close_base(&b);
}

/* n_first steps, the state put into a second tuner, the rest: the adapters, the caller's. */
static float *train(const base *b, world *w, int32_t n_threads, int n_first, int n_steps) {
    dpi_tuner_options options = options_of(b->model);
    uint64_t bits = 77;
    options.n_threads = n_threads;
    options.sigma = .8, options.share = DPI_POISSON_ONE / 2;
    options.random = dpi_random_insecure, options.random_user = &bits;
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    dpi_tuner *t = open_tuner(&options);
    for (int i = 0; i < n_steps; i++) {
        if (i == n_first) {
            const float *arrays[3];
            int64_t done;
            options.seed++; /* must not matter any more */
            dpi_tuner *next = open_tuner(&options);
            dpi_tuner_state(t, arrays, &done);
            assert_ok(dpi_tuner_restore(next, arrays, done, NULL), NULL);
            dpi_tuner_free(t);
            t = next;
        }
        assert_ok(dpi_tuner_step(t, &units, NULL), NULL);
    }
    const size_t n = (size_t)dpi_tuner_lora(t)->n_params;
    float *adapters = dpi_calloc(n, sizeof *adapters);
    memcpy(adapters, dpi_tuner_adapters(t), n * sizeof *adapters);
    dpi_tuner_free(t);
    return adapters;
}

/* Of an adapter on Q8_0, or of the weights. */
static void test_resume(void **state) {
    (void)state;
    base b = open_base(full ? 0 : 8);
    world *w = make_world(b.spec.n_vocab);
    dpi_tuner_options options = options_of(b.model);
    dpi_tuner *t = open_tuner(&options);
    const size_t n = (size_t)dpi_tuner_lora(t)->n_params;
    float *wanted = train(&b, w, 1, -1, 5);
    assert_true(memcmp(wanted, dpi_tuner_adapters(t), n * sizeof *wanted) != 0);
    dpi_tuner_free(t);
    for (int32_t n_threads = 1; n_threads <= 8; n_threads += n_threads)
        for (int n_first = -1; n_first <= 3; n_first += 2) {
            float *found = train(&b, w, n_threads, n_first, 5);
            assert_memory_equal(found, wanted, n * sizeof *found);
            free(found);
        }
    free(wanted);
    free(w);
    close_base(&b);
}

/* Without noise, what is trained becomes likelier and what is to become less likely does. */
static void test_learns(void **state) {
    (void)state;
    base b = open_base(0);
    world *w = make_world(b.spec.n_vocab);
    dpi_tuner_options options = options_of(b.model);
    dpi_tuner *t = open_tuner(&options);
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    const int32_t first[] = {0, 9}, second[] = {0, POSITIONS - 9};
    float ones[POSITIONS];
    for (int i = 0; i < POSITIONS; i++)
        ones[i] = 1;
    const dpi_row good = {9, 1, first, w->tokens[0][0], w->targets[0][0], ones};
    const dpi_row bad = {POSITIONS - 9, 1, second, w->tokens[0][0] + 9, w->targets[0][0] + 9, ones};
    const double good_before = dpi_tuner_loss(t, &good), bad_before = dpi_tuner_loss(t, &bad);
    for (int i = 0; i < 20; i++)
        assert_ok(dpi_tuner_step(t, &units, NULL), NULL);
    assert_true(dpi_tuner_loss(t, &good) < good_before - 1);
    assert_true(dpi_tuner_loss(t, &bad) > bad_before);
    dpi_error err;
    assert_error(dpi_tuner_step(t, &units, &err), DPI_STATUS_STATE, &err, "all 20 steps");
    dpi_tuner_free(t);
    free(w);
    close_base(&b);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static int32_t cancel_at(void *user) { return --*(int *)user < 0; }

/* A step that fails leaves nothing behind. */
static void test_undone(void **state) {
    (void)state;
    base b = open_base(0);
    world *w = make_world(b.spec.n_vocab);
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    for (int kind = 0; kind < 5; kind++) {
        dpi_tuner_options options = options_of(b.model);
        limited_source source = {5, kind - 2}; /* of the draw, of the bits, of the noise */
        int n_calls = 3;
        if (kind == 0)
            options.cancel = cancel_at, options.cancel_user = &n_calls, options.n_threads = 1;
        else if (kind > 1)
            options.random = limited_bits, options.random_user = &source, options.sigma = 1;
        else
            options.clip = 1e6, options.expected = 1e-30;
        dpi_tuner *t = open_tuner(&options);
        const float *arrays[3];
        int64_t done;
        dpi_tuner_state(t, arrays, &done);
        const size_t n = (size_t)dpi_tuner_lora(t)->n_params;
        float *kept = dpi_calloc(n, sizeof *kept);
        memcpy(kept, arrays[0], n * sizeof *kept);
        const dpi_status wanted = kind == 0   ? DPI_STATUS_CANCELLED
                                  : kind == 1 ? DPI_STATUS_NUMERIC
                                              : DPI_STATUS_ENTROPY;
        assert_int_equal(dpi_tuner_step(t, &units, NULL), wanted);
        dpi_tuner_state(t, arrays, &done);
        assert_int_equal(done, 0);
        assert_memory_equal(arrays[0], kept, n * sizeof *kept);
        for (size_t i = 0; i < n; i++)
            assert_true(arrays[1][i] == 0 && arrays[2][i] == 0);
        free(kept);
        dpi_tuner_free(t);
    }
    free(w);
    close_base(&b);
}

static void test_refused(void **state) {
    (void)state;
    base b = open_base(0);
    dpi_tuner_options good = options_of(b.model), o = good;
    o.rank = 0;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "rank");
    o = good, o.targets = 128;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "targets");
    o = good, o.share = 0;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "share");
    o = good, o.expected = 0;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "expected");
    o = good, o.clip = NAN;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "clip is nan");
    o = good, o.sigma = -1;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "sigma is -1");
    o = good, o.lr_floor = .5;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "learning rates");
    close_base(&b);
}

/* All weights: the same steps and sums. */
static void test_full(void **state) {
    full = 1;
    test_sums(state), test_steps(state), test_empty_step(state);
    test_resume(state), test_learns(state), test_undone(state);
    full = 0;
}

/* It begins with the weights of the base, and refuses what is quantised. */
static void test_full_base(void **state) {
    (void)state;
    base b = open_base(1), coarse = open_base(8);
    dpi_tuner_options o = options_of(b.model);
    o.full = 1, o.rank = 0, o.targets = 0, o.alpha = 0;
    dpi_tuner *t = open_tuner(&o);
    const size_t n = (size_t)dpi_tuner_lora(t)->n_params;
    float *wanted = dpi_calloc(n, sizeof *wanted);
    dpi_base_read(b.model, dpi_tuner_shape(t), wanted);
    assert_memory_equal(dpi_tuner_adapters(t), wanted, n * sizeof *wanted);
    free(wanted);
    dpi_tuner_free(t);
    o.model = coarse.model;
    assert_refused_tuner(&o, DPI_STATUS_UNSUPPORTED, "full: found weights of type Q8_0");
    close_base(&b), close_base(&coarse);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),      cmocka_unit_test(test_steps),
        cmocka_unit_test(test_empty_step), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_learns),    cmocka_unit_test(test_undone),
        cmocka_unit_test(test_full),      cmocka_unit_test(test_full_base),
        cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
