/* Every step of a training is alike, the first and the last ones, too: its noise, whom it counts,
 * and how much of each. */
#include <math.h>

#include "dp/exact/gradient.h"
#include "dp/exact/poisson.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"
#include "train/tuner.h"

enum { N_STEPS = 6, MOST_UNITS = 9 };

static dpi_model *model;
static void *image;

SETUP {
    tiny_spec spec = tiny_default();
    spec.n_layer = 1;
    model = tiny_open(&spec, 2, &image);
}

TEARDOWN {
    dpi_model_close(model);
    free(image);
}

static dpi_tuner *open_with(double sigma, int32_t n_threads, double expected) {
    const dpi_tuner_options o = {.model = model, .rank = 2, .alpha = 1, .targets = DPI_LORA_ALL,
                                 .seed = 1, .n_positions = 2, .n_threads = n_threads,
                                 .share = DPI_POISSON_ONE, .expected = expected, .clip = .5f,
                                 .sigma = sigma, .n_steps = N_STEPS, .lr = .01f, .least = .01f};
    dpi_tuner *t;
    assert_ok(dpi_tuner_create(&o, &t, ERR));
    return t;
}

static dpi_tuner *open_tuner(double sigma, int32_t n_threads) {
    return open_with(sigma, n_threads, 2);
}

/* Unit i: far above the clip bound, in coordinate 3 i alone. */
static bool large_gradient(void *user, int64_t unit, float *gradient) {
    memset(gradient, 0, (size_t)*(int64_t *)user * sizeof *gradient);
    gradient[3 * unit] = 1e4f;
    return true;
}

/* Each unit counts with the clip bound, in each step, whatever thread has it. The noise is a
 * thousandth of that, from the system: 9 deviations. */
TEST(test_units) {
    for (int32_t n_threads = 1; n_threads <= 3; n_threads++)
        for (int64_t n = 1; n <= MOST_UNITS; n++) {
            dpi_tuner *t = open_tuner(1e-3, n_threads);
            int64_t n_params = dpi_tuner_lora(t)->n_params;
            const dpi_tuner_units units = {.n = n, .gradient = large_gradient, .user = &n_params};
            for (int s = 0; s < N_STEPS; s++) {
                assert_ok(dpi_tuner_step(t, &units, ERR));
                for (int64_t i = 0; i < n_params && i < 3 * MOST_UNITS; i++) {
                    const double wanted = i % 3 == 0 && i / 3 < n ? .5 / 2 : 0;
                    assert_true(fabs((double)dpi_tuner_released(t)[i] - wanted) < .009 * .5 / 2);
                }
            }
            dpi_tuner_free(t);
        }
}

static bool no_gradient(void *user, int64_t unit, float *gradient) {
    (void)user, (void)unit, (void)gradient;
    return false;
}

/* Moments that are not finite are no failure, after which one could draw again: each step is done,
 * with its noise, and the adapters stay what they were. */
TEST(test_not_finite) {
    dpi_tuner *t = open_with(2, 1, 1e-30);
    const size_t n_bytes = (size_t)dpi_tuner_lora(t)->n_params * sizeof(float);
    const dpi_tuner_units units = {.n = 2, .gradient = no_gradient};
    float *first = malloc(n_bytes);
    memcpy(first, dpi_tuner_adapters(t), n_bytes);
    for (int s = 1; s <= N_STEPS; s++) {
        assert_ok(dpi_tuner_step(t, &units, ERR));
        assert_int_equal(dpi_tuner_steps_done(t), s);
        assert_int_equal(dpi_tuner_steps_unchanged(t), s);
        assert_memory_equal(dpi_tuner_adapters(t), first, n_bytes);
    }
    free(first);
    dpi_tuner_free(t);
}

/* The noise of each step has its deviation, and is another one in each; where nobody joins as
 * where some do. By 8 deviations of a mean of squares and of products. */
TEST(test_noise) {
    for (int64_t n = 0; n <= 2; n += 2) {
        dpi_tuner *t = open_tuner(2, 2);
        const int64_t n_params = dpi_tuner_lora(t)->n_params;
        const dpi_tuner_units units = {.n = n, .gradient = no_gradient};
        double *z = calloc((size_t)(N_STEPS * n_params), sizeof *z);
        for (int s = 0; s < N_STEPS; s++) {
            double square = 0;
            assert_ok(dpi_tuner_step(t, &units, ERR));
            for (int64_t i = 0; i < n_params; i++) {
                z[s * n_params + i] = (double)dpi_tuner_released(t)[i] / (2 * .5 / 2);
                square += pow(z[s * n_params + i], 2);
            }
            assert_true(fabs(square / (double)n_params - 1) < 8 * sqrt(2. / (double)n_params));
            for (int before = 0; before < s; before++) {
                double product = 0;
                for (int64_t i = 0; i < n_params; i++)
                    product += z[s * n_params + i] * z[before * n_params + i];
                assert_true(fabs(product) < 8 * sqrt((double)n_params));
            }
        }
        free(z);
        dpi_tuner_free(t);
    }
}

enum { BITS_UNITS = 64 };

/* The bits that a unit is told; of no unit a row. */
static bool note_bits(void *user, int64_t unit, int32_t k, uint64_t bits, const dpi_row_buffer *b,
                      dpi_row *row) {
    (void)k, (void)b, (void)row;
    ((uint64_t *)user)[unit] = bits;
    return false;
}

/* Each unit has bits of its own in each step, from the system: 384 words of 64 bits, of which two
 * are the same with a chance of 4e-15. */
TEST(test_bits_of_units) {
    static uint64_t all[N_STEPS * BITS_UNITS];
    dpi_tuner *t = open_tuner(1, 1);
    for (int s = 0; s < N_STEPS; s++) {
        const dpi_tuner_units units = {
            .n = BITS_UNITS, .row = note_bits, .user = all + s * BITS_UNITS};
        assert_ok(dpi_tuner_step(t, &units, ERR));
    }
    for (int i = 0; i < N_STEPS * BITS_UNITS; i++)
        for (int j = 0; j < i; j++)
            assert_true(all[i] != all[j]);
    dpi_tuner_free(t);
}
