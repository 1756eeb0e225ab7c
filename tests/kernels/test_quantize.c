/* Quantisers: what comes back is close, as close as it is known to be, and stays where it is. */
#include <math.h>

#include "kernels/weight_types.h"
#include "tests/support/nmse.h"
#include "tests/support/support.h"

enum { N = 256 * 64 };

static float x[N], y[N], z[N];
static unsigned char data[N * 4];

static void there_and_back(const dpi_type *type, const float *from, float *to) {
    memset(data, 0xa5, sizeof data); /* every byte must be written */
    type->quantize(from, data, N);
    type->dequantize(data, to, N);
}

/* The i-th type that has a quantiser, from i = 0; NULL beyond the last. */
static const dpi_type *quantised(int i) {
    const dpi_type *type;
    for (int32_t t = 0; (type = dpi_type_at(t)) != NULL; t++)
        if (type->quantize && i-- == 0)
            return type;
    return NULL;
}

static void fill_normal(uint64_t seed, double deviation) {
    for (int i = 0; i < N; i++)
        x[i] = (float)(deviation * random_normal(&seed));
}

/* NMSE on normal data. `known`: what llama.cpp's quantiser (without importance matrix) reaches on
 * 2^20 normal weights; for the floats with p bits after the point, the bound 2^-2p / 12. */
static const struct {
    uint32_t type;
    double known;
} figures[] = {
    {DPI_TYPE_F16, 7.95e-8},   {DPI_TYPE_BF16, 5.09e-6}, {DPI_TYPE_Q8_0, 2.867e-5},
    {DPI_TYPE_Q4_0, 7.39e-3},  {DPI_TYPE_Q4_1, 6.11e-3}, {DPI_TYPE_Q5_0, 1.824e-3},
    {DPI_TYPE_Q5_1, 1.434e-3}, {DPI_TYPE_Q4_K, 5.21e-3}, {DPI_TYPE_Q5_K, 1.487e-3},
    {DPI_TYPE_Q6_K, 3.19e-4},
};
enum { N_FIGURES = sizeof figures / sizeof figures[0] };

TEST(test_error) {
    fill_normal(1, 0.02);
    for (int i = 0; i < N_FIGURES; i++) {
        const dpi_type *type = dpi_type_find(figures[i].type);
        there_and_back(type, x, y);
        double error = nmse(y, x, N);
        /* 1 % for the sample; far below the figure, something would be wrong with it. */
        if (!(error <= 1.01 * figures[i].known && error >= 0.25 * figures[i].known))
            fail_msg("%s: NMSE %.4g, known %.4g", type->name, error, figures[i].known);
    }
}

/* Each weight within the worst step of a block whose values span what the type can have. */
TEST(test_bound) {
    uint64_t seed = 3;
    for (int i = 0; i < N; i++) /* uniform, so the range of a block is about -1..1 */
        x[i] = (float)(2 * random_uniform(&seed) - 1);
    static const struct {
        uint32_t type;
        double step;
    } steps[] = {
        {DPI_TYPE_Q8_0, 1.0 / 127}, {DPI_TYPE_Q4_0, 1.0 / 7},  {DPI_TYPE_Q4_1, 2.0 / 15},
        {DPI_TYPE_Q5_0, 1.0 / 15},  {DPI_TYPE_Q5_1, 2.0 / 31}, {DPI_TYPE_Q4_K, 2.0 / 15},
        {DPI_TYPE_Q5_K, 2.0 / 31},  {DPI_TYPE_Q6_K, 1.0 / 31},
    };
    for (size_t t = 0; t < sizeof steps / sizeof steps[0]; t++) {
        there_and_back(dpi_type_find(steps[t].type), x, y);
        for (int i = 0; i < N; i++) /* half a step, and half a step more where the end is clipped */
            if (!(fabs((double)(x[i] - y[i])) <= steps[t].step))
                fail_msg("%s: %g came back as %g", dpi_type_name(steps[t].type), (double)x[i],
                         (double)y[i]);
    }
}

/* What has been quantised once is exactly representable, and is found again. */
TEST(test_idempotent) {
    fill_normal(2, 3);
    const dpi_type *type;
    for (int t = 0; (type = quantised(t)) != NULL; t++) {
        there_and_back(type, x, y);
        there_and_back(type, y, z);
        /* The search of a K-quant is over sub-blocks first: it comes close. */
        double error = nmse(z, y, N), limit = type->block == 256 ? nmse(y, x, N) / 4 : 0;
        if (type->id == DPI_TYPE_Q4_1 || type->id == DPI_TYPE_Q5_1)
            limit = nmse(y, x, N) / 100; /* a few blocks do not span all values any more */
        if (!(error <= limit))
            fail_msg("%s: NMSE %.3g the second time, at most %.3g", type->name, error, limit);
    }
}

/* Fails unless each value comes back with an error of at most `error`, or (error 0) of the right
 * size: at most a quarter above `most`. */
static void check_values(const char *what, float error, float most) {
    const dpi_type *type;
    for (int t = 0; (type = quantised(t)) != NULL; t++) {
        there_and_back(type, x, y);
        for (int i = 0; i < N; i++)
            if (!(error > 0 ? fabsf(x[i] - y[i]) <= error
                            : fabsf(y[i]) <= 1.25f * most + 1e-7f * 64))
                fail_msg("%s, %s: %g came back as %g", type->name, what, (double)x[i],
                         (double)y[i]);
    }
}

TEST(test_special_values) {
    static const float sizes[] = {1e-45f, 1e-38f, 1e-20f, 1e-8f, 1e-4f, 1, 65504};
    static const char *const forms[] = {"zeros", "constants", "one weight of a block"};
    for (int form = 0; form < 3; form++) {
        for (int i = 0; i < N; i++)
            x[i] = form == 0 ? 0 : form == 1 ? (i < N / 2 ? 0.25f : -3) : (i % 32 == 7 ? -1.0f : 0);
        check_values(forms[form], 0.002f, 0); /* of values 3, 1 and 0: f16 scales */
    }
    /* Extremes: nothing but finite numbers of the right size comes back. */
    uint64_t seed = 9;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int i = 0; i < N; i++)
            x[i] = sizes[s] * (float)(2 * random_uniform(&seed) - 1);
        x[0] = sizes[s], x[1] = -sizes[s];
        check_values("extremes", 0, sizes[s]);
    }
}

/* Rounding to bfloat16: nearest, ties to even, and never to infinity. */
TEST(test_bf16) {
    static const struct {
        uint32_t bits;
        uint16_t wanted;
    } cases[] = {
        {0x3f800000, 0x3f80}, {0x3f807fff, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81},
        {0x3f818000, 0x3f82}, {0xbf818000, 0xbf82}, {0x00008000, 0x0000}, {0x00018000, 0x0002},
        {0x7f7fffff, 0x7f7f}, {0xff7f8000, 0xff7f}, {0x7f7f7fff, 0x7f7f}, {0x80000000, 0x8000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float value;
        uint16_t got;
        memcpy(&value, &cases[i].bits, 4);
        dpi_type_find(DPI_TYPE_BF16)->quantize(&value, &got, 1);
        assert_int_equal(got, cases[i].wanted);
    }
}
