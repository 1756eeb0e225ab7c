/* Weight types: halves against the definition, Q8_0 against its formula, names and sizes. */
#include <math.h>

#include "quant.h"
#include "support.h"

/* The definition of IEEE binary16. */
static double half_value(uint16_t h) {
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double v = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
               : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                              : ldexp(mantissa, -24);
    return h & 0x8000 ? -v : v;
}

static void test_f16(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        double want = half_value((uint16_t)h), got = (double)dpi_f16_to_f32((uint16_t)h);
        assert_true(isnan(want) ? isnan(got) : want == got && signbit(want) == signbit(got));
        if (!isnan(want)) /* and back */
            assert_int_equal(dpi_f32_to_f16((float)want), h);
    }
    /* Between two neighbours: the nearer, and at the middle the even one. */
    for (uint32_t h = 0; h < 0x7bff; h++) {
        double a = half_value((uint16_t)h), b = half_value((uint16_t)(h + 1));
        assert_int_equal(dpi_f32_to_f16((float)((a + b) / 2)), h % 2 ? h + 1 : h);
        assert_int_equal(dpi_f32_to_f16(nextafterf((float)((a + b) / 2), 0)), h);
        assert_int_equal(dpi_f32_to_f16(nextafterf((float)((a + b) / 2), INFINITY)), h + 1);
    }
    assert_int_equal(dpi_f32_to_f16(65519.0f), 0x7bff);
    assert_int_equal(dpi_f32_to_f16(65520.0f), 0x7c00);
    assert_true(isnan(dpi_f16_to_f32(dpi_f32_to_f16(NAN))));
}

static void test_q8_0(void **state) {
    (void)state;
    unsigned char block[2 * 34];
    float out[64];
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)random_u64(&seed);
    block[1] &= 0x3f, block[35] &= 0x3f; /* finite scales */
    const dpi_type *type = dpi_type_find(DPI_TYPE_Q8_0);
    type->dequantize(block, out, 64);
    for (int i = 0; i < 64; i++) {
        const unsigned char *b = block + i / 32 * 34;
        double scale = half_value((uint16_t)(b[0] | b[1] << 8));
        assert_true((double)out[i] == (double)(float)(scale * (int8_t)b[2 + i % 32]));
    }
    assert_int_equal(dpi_type_row_bytes(type, 64), 68);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(dpi_type_name(8), "Q8_0");
    assert_string_equal(dpi_type_name(12), "Q4_K");
    assert_null(dpi_type_name(4)); /* removed from the format */
    assert_null(dpi_type_name(1000));
    assert_null(dpi_type_find(9));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_q8_0),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
