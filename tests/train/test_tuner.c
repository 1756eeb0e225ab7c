/* Private training of adapters: sums that are those of the units alone, steps against Adam in
 * double precision, noise without units, threads. */
#include <math.h>

#include "dp/exact/gradient.h"
#include "tests/train/tuner_support.h"

enum { ALL_UNITS = (1 << UNITS) - 1 };

/* ---- Sums ------------------------------------------------------------------------------------ */

static void check_sums(int32_t n_threads, bool hostile) {
    OWN(base) b = open_base(0);
    for (int i = 0; i < POSITIONS && hostile; i++) { /* NaN, infinite and huge gradients */
        b->w->weights[0][0][i] = NAN;
        b->w->weights[1][0][i] = i % 2 ? INFINITY : -INFINITY;
        b->w->weights[3][1][i] = 1e30f;
        b->w->weights[4][0][i] = 1e-40f;
    }
    dpi_tuner_options options = options_of(b->model);
    options.n_threads = n_threads;
    OWN(dpi_tuner) t = open_tuner(&options);
    spread(t);
    const size_t n = n_params(t);
    const double most = (double)dpi_gradient_bound((int64_t)n);
    int64_t *alone[UNITS];
    for (int u = 0; u < UNITS; u++) {
        double square = 0;
        alone[u] = sum_of(t, &b->units, 1u << u);
        for (size_t i = 0; i < n; i++)
            square += (double)alone[u][i] * (double)alone[u][i];
        assert_true(square <= most * most);
    }
    uint64_t seed = 2;
    for (int k = 0; k < 6; k++) {
        const unsigned set = k == 0 ? ALL_UNITS : (unsigned)random_below(&seed, ALL_UNITS + 1);
        OWN_ARRAY(int64_t) sum = sum_of(t, &b->units, set);
        for (size_t i = 0; i < n; i++) {
            int64_t wanted = 0;
            for (int u = 0; u < UNITS; u++)
                wanted += set >> u & 1 ? alone[u][i] : 0;
            assert_int_equal(sum[i], wanted);
        }
    }
    for (int u = 0; u < UNITS; u++)
        free(alone[u]);
}

/* A unit more moves the sum by what it adds alone, at most D long, whatever its gradient is. */
TEST(test_sums) {
    for (int32_t n_threads = 1; n_threads <= 4; n_threads++)
        check_sums(n_threads, n_threads % 2 == 0);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Adam in double on what each step releases, down the gradient of test_tuner_graph.c. */
static void check_steps(int32_t unbiased, double sigma) {
    OWN(base) b = open_base(0);
    dpi_tuner_options options = options_of(b->model);
    uint64_t bits = 12;
    options.unbiased = unbiased, options.sigma = sigma;
    options.n_warmup = 2, options.lr_floor = .001, options.n_steps = 5;
    options.random = dpi_random_insecure, options.random_user = &bits;
    OWN(dpi_tuner) t = open_tuner(&options);
    spread(t);
    const size_t n = n_params(t);
    OWN_ARRAY(double) x = dpi_calloc(3 * n, sizeof *x);
    double *m = x + n, *v = m + n;
    for (size_t i = 0; i < n; i++)
        x[i] = (double)dpi_tuner_adapters(t)[i];
    for (int step = 1; step <= 5; step++) {
        OWN_ARRAY(int64_t) sum = sum_of(t, &b->units, ALL_UNITS);
        assert_ok(dpi_tuner_step(t, &b->units, ERR));
        assert_int_equal(dpi_tuner_steps_done(t), step);
        const double phase = 3.141592653589793 * (step - 2) / (5 - 2);
        const double rate = step <= 2 ? .01 * step / 2 : .001 + .009 * .5 * (1 + cos(phase));
        const double noise = pow(sigma * .7 / 5, 2);
        for (size_t i = 0; i < n; i++) {
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
    }
    assert_error(dpi_tuner_step(t, &b->units, ERR), STATE, "all 5 steps");
}

TEST(test_steps) {
    check_steps(0, 0);
    check_steps(0, .5);
    check_steps(1, .5);
}

/* A step without units has its noise, of the deviation sigma D. */
TEST(test_empty_step) {
    uint64_t seed = 3;
    OWN(base) b = open_base(0);
    dpi_tuner_options options = options_of(b->model);
    options.sigma = 2, options.random = dpi_random_insecure, options.random_user = &seed;
    OWN(dpi_tuner) t = open_tuner(&options);
    const size_t n = n_params(t);
    b->units.n = 0;
    for (int step = 0; step < 3; step++) {
        double square = 0;
        assert_ok(dpi_tuner_step(t, &b->units, ERR));
        for (size_t i = 0; i < n; i++)
            square += pow((double)dpi_tuner_released(t)[i], 2);
        const double wanted = 2 * .7 / 5 * (double)dpi_gradient_bound((int64_t)n) / (1 << 20);
        assert_true(fabs(square / (double)n / wanted / wanted - 1) < 5 * sqrt(2 / (double)n));
    }
}

/* n_first steps, the state put into a second tuner, the rest of 5: the adapters, the caller's. */
static float *train(const base *b, int32_t n_threads, int n_first) {
    dpi_tuner_options options = options_of(b->model);
    uint64_t bits = 77;
    options.n_threads = n_threads;
    options.sigma = .8, options.share = DPI_POISSON_ONE / 2;
    options.random = dpi_random_insecure, options.random_user = &bits;
    OWN(dpi_tuner) t = open_tuner(&options);
    for (int i = 0; i < 5; i++) {
        if (i == n_first) {
            const float *arrays[3];
            int64_t done;
            options.seed++; /* must not matter any more */
            dpi_tuner *next = open_tuner(&options);
            dpi_tuner_state(t, arrays, &done);
            assert_ok(dpi_tuner_restore(next, arrays, done, ERR));
            dpi_tuner_free(t);
            t = next;
        }
        assert_ok(dpi_tuner_step(t, &b->units, ERR));
    }
    float *adapters = copy_adapters(t);
    return adapters;
}

/* Of an adapter on Q8_0, or of the weights. */
TEST(test_resume) {
    OWN(base) b = open_base(full ? 0 : 8);
    dpi_tuner_options options = options_of(b->model);
    OWN(dpi_tuner) t = open_tuner(&options);
    OWN_ARRAY(float) wanted = train(b, 1, -1);
    assert_memory_not_equal(wanted, dpi_tuner_adapters(t), n_params(t) * sizeof *wanted);
    for (int32_t n_threads = 1; n_threads <= 8; n_threads += n_threads)
        for (int n_first = -1; n_first <= 3; n_first += 2) {
            OWN_ARRAY(float) found = train(b, n_threads, n_first);
            assert_memory_equal(found, wanted, n_params(t) * sizeof *found);
        }
}

/* ---- Failures -------------------------------------------------------------------------------- */

static int32_t cancel_at(void *user) { return --*(int *)user < 0; }

/* A step that fails leaves nothing behind. */
TEST(test_undone) {
    OWN(base) b = open_base(0);
    for (int kind = 0; kind < 4; kind++) {
        dpi_tuner_options options = options_of(b->model);
        limited_source source = {5, kind - 1}; /* of the draw, of the bits, of the noise */
        int n_calls = 3;
        dpi_status wanted = DPI_STATUS_ENTROPY;
        if (kind == 0) {
            options.cancel = cancel_at, options.cancel_user = &n_calls, options.n_threads = 1;
            wanted = DPI_STATUS_CANCELLED;
        } else {
            options.random = limited_bits, options.random_user = &source, options.sigma = 1;
        }
        OWN(dpi_tuner) t = open_tuner(&options);
        OWN_ARRAY(float) kept = copy_adapters(t);
        const float *arrays[3];
        int64_t done;
        assert_int_equal(dpi_tuner_step(t, &b->units, NULL), wanted);
        dpi_tuner_state(t, arrays, &done);
        assert_int_equal(done, 0);
        assert_memory_equal(arrays[0], kept, n_params(t) * sizeof *kept);
        for (size_t i = 0; i < n_params(t); i++)
            assert_true(arrays[1][i] == 0 && arrays[2][i] == 0);
    }
}

TEST(test_refused) {
    OWN(base) b = open_base(0);
    dpi_tuner_options o;
#define REFUSES(change, part)                                                                      \
    o = options_of(b->model), change, assert_refused_tuner(&o, DPI_STATUS_ARG, part)
    REFUSES(o.rank = 0, "rank");
    REFUSES(o.targets = 128, "targets");
    REFUSES(o.share = 0, "share");
    REFUSES(o.expected = 0, "expected");
    REFUSES(o.clip = NAN, "clip is nan");
    REFUSES(o.sigma = -1, "sigma is -1");
    REFUSES(o.lr_floor = .5, "learning rates");
}

/* A tensor of layers that the graph has no place for would be left out: it is refused by name. */
TEST(test_unknown_tensor) {
    static const dpi_arch_tensor tensors[] = {
        {.name = "attn_norm", .n_in = DPI_EXTENT_EMBD, .at = offsetof(dpi_layer, attn_norm)},
        {.name = "attn_twist", .n_in = DPI_EXTENT_EMBD, .at = sizeof(dpi_layer)},
    };
    const dpi_arch other = {.name = "other",
                            .layers[DPI_LAYER_ATTENTION] = {.tensors = tensors, .n_tensors = 2}};
    OWN(base) b = open_base(0);
    dpi_tuner_options o = options_of(b->model);
    b->model->config.arch = &other, o.full = 1;
    assert_refused_tuner(&o, DPI_STATUS_UNSUPPORTED, "'other', whose layers have a tensor that "
                                                     "training does not know, attn_twist");
    b->model->config.arch = &dpi_arch_llama;
}

/* All weights: the same steps and sums. */
TEST(test_full) {
    full = 1;
    test_sums(NULL), test_steps(NULL), test_empty_step(NULL);
    test_resume(NULL), test_undone(NULL);
    full = 0;
}

/* With all weights it begins with those of the base, and refuses what is quantised. */
TEST(test_full_base) {
    OWN(base) b = open_base(1);
    OWN(base) coarse = open_base(8);
    dpi_tuner_options o = options_of(b->model);
    o.full = 1, o.rank = 0, o.targets = 0, o.alpha = 0;
    OWN(dpi_tuner) t = open_tuner(&o);
    OWN_ARRAY(float) wanted = dpi_calloc(n_params(t), sizeof *wanted);
    dpi_base_read(b->model, dpi_tuner_shape(t), wanted);
    assert_memory_equal(dpi_tuner_adapters(t), wanted, n_params(t) * sizeof *wanted);
    o.model = coarse->model;
    assert_refused_tuner(&o, DPI_STATUS_UNSUPPORTED, "full: found weights of type Q8_0");
}
