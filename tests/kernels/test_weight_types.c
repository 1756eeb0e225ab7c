/* Weight types to f32: halves against the definition, blocks against the position of every bit,
 * names and sizes. */
#include <math.h>

#include "kernels/weight_types.h"
#include "tests/support/support.h"

/* The definition of IEEE binary16. */
static double half_value(uint16_t h) {
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double v = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
               : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                              : ldexp(mantissa, -24);
    return h & 0x8000 ? -v : v;
}

TEST(test_f16) {
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

/* ---- Blocks: every type by the position of each weight's bits ------------------------------- */

/* n bits of a little-endian bit string, from bit `at` of byte `byte` on. */
static int bits(const unsigned char *p, int byte, int at, int n) {
    int v = 0;
    for (int i = 0; i < n; i++, at++)
        v |= (p[byte + at / 8] >> at % 8 & 1) << i;
    return v;
}

static double half_at(const unsigned char *p, int byte) {
    return half_value((uint16_t)bits(p, byte, 0, 16));
}

/* Nibble of weight i in groups of 2 * half weights: a group's first half is in the low nibbles. */
static int nibble(const unsigned char *p, int byte, int half, int i) {
    return bits(p, byte + i / (2 * half) * half + i % half, i / half % 2 * 4, 4);
}

static const int iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                            1,    13,   25,  38,  53,  69,  89,  113};

/* Scale and minimum of a sub-block of Q4_K and Q5_K. */
static void scale_min(const unsigned char *p, int k, int *scale, int *min) {
    *scale = k < 4 ? bits(p, k, 0, 6) : bits(p, k + 4, 0, 4) + 16 * bits(p, k - 4, 6, 2);
    *min = k < 4 ? bits(p, k + 4, 0, 6) : bits(p, k + 4, 4, 4) + 16 * bits(p, k, 6, 2);
}

static double weight_32(uint32_t type, const unsigned char *p, int i) {
    switch (type) {
    case DPI_TYPE_Q8_0:
        return half_at(p, 0) * (int8_t)p[2 + i];
    case DPI_TYPE_Q4_0:
        return half_at(p, 0) * (nibble(p, 2, 16, i) - 8);
    case DPI_TYPE_Q4_1:
        return half_at(p, 0) * nibble(p, 4, 16, i) + half_at(p, 2);
    case DPI_TYPE_Q5_0:
        return half_at(p, 0) * (nibble(p, 6, 16, i) + 16 * bits(p, 2, i, 1) - 16);
    case DPI_TYPE_Q5_1:
        return half_at(p, 0) * (nibble(p, 8, 16, i) + 16 * bits(p, 4, i, 1)) + half_at(p, 2);
    case DPI_TYPE_IQ4_NL:
        return half_at(p, 0) * iq4[nibble(p, 2, 16, i)];
    default:
        fail_msg("no definition of type %u", (unsigned)type);
        return 0;
    }
}

static double weight_256(uint32_t type, const unsigned char *p, int i) {
    int scale, min, h = i / 128, j = i % 128 / 32, l = i % 32, s = i / 16;
    switch (type) {
    case DPI_TYPE_Q2_K:
        return half_at(p, 80) * bits(p, s, 0, 4) * bits(p, 16 + 32 * h + l, 2 * j, 2) -
               half_at(p, 82) * bits(p, s, 4, 4);
    case DPI_TYPE_Q3_K:
        scale = bits(p, 96 + s % 8, s / 8 * 4, 4) + 16 * bits(p, 104 + s % 4, s / 4 * 2, 2) - 32;
        return half_at(p, 108) * scale *
               (bits(p, 32 + 32 * h + l, 2 * j, 2) + 4 * bits(p, l, 4 * h + j, 1) - 4);
    case DPI_TYPE_Q4_K:
        scale_min(p + 4, i / 32, &scale, &min);
        return half_at(p, 0) * scale * nibble(p, 16, 32, i) - half_at(p, 2) * min;
    case DPI_TYPE_Q5_K:
        scale_min(p + 4, i / 32, &scale, &min);
        return half_at(p, 0) * scale * (nibble(p, 48, 32, i) + 16 * bits(p, 16 + l, i / 32, 1)) -
               half_at(p, 2) * min;
    case DPI_TYPE_Q6_K:
        return half_at(p, 208) * (int8_t)p[192 + s] *
               (nibble(p + 64 * h, 0, 64, i % 128) + 16 * bits(p, 128 + 32 * h + l, 2 * j, 2) - 32);
    case DPI_TYPE_IQ4_XS:
        scale = bits(p, 4, i / 32 * 4, 4) + 16 * bits(p, 2, i / 32 * 2, 2) - 32;
        return half_at(p, 0) * scale * iq4[nibble(p, 8, 16, i)];
    default:
        fail_msg("no definition of type %u", (unsigned)type);
        return 0;
    }
}

static double weight_at(const dpi_type *type, const unsigned char *p, int i) {
    float f32;
    uint32_t u32;
    switch (type->id) {
    case DPI_TYPE_F32:
        memcpy(&f32, p, 4);
        return (double)f32;
    case DPI_TYPE_F16:
        return half_at(p, 0);
    case DPI_TYPE_BF16:
        u32 = (uint32_t)bits(p, 0, 0, 16) << 16;
        memcpy(&f32, &u32, 4);
        return (double)f32;
    default:
        return type->block == 32 ? weight_32(type->id, p, i) : weight_256(type->id, p, i);
    }
}

/* Random bytes, so any scale, infinities and NaN included; a misaligned source of exactly the right
 * size (the address sanitizer sees a byte too many). Exact products and one rounding. */
TEST(test_blocks) {
    enum { N_BLOCKS = 3, ROUNDS = 200 };
    float out[N_BLOCKS * DPI_MAX_BLOCK];
    uint64_t seed = 5;
    const dpi_type *type;
    int64_t n_finite = 0, n_types = 0;
    for (; (type = dpi_type_at((int32_t)n_types)) != NULL; n_types++)
        for (int round = 0; round < ROUNDS; round++) {
            int64_t n_bytes = N_BLOCKS * type->block_bytes, n = N_BLOCKS * type->block;
            unsigned char *raw = malloc((size_t)n_bytes + 1), *data = raw + 1;
            assert_non_null(raw);
            for (int64_t i = 0; i < n_bytes; i++)
                data[i] = (unsigned char)random_u64(&seed);
            type->dequantize(data, out, n);
            for (int64_t i = 0; i < n; i++) {
                const unsigned char *block = data + i / type->block * type->block_bytes;
                double wanted = weight_at(type, block, (int)(i % type->block));
                n_finite += isfinite(wanted) != 0;
                if (!(isnan(wanted) ? isnan(out[i]) : (double)out[i] == (double)(float)wanted))
                    fail_msg("%s, weight %d is %a, must be %a", type->name, (int)i, (double)out[i],
                             wanted);
            }
            free(raw);
        }
    assert_int_equal(n_types, 15);
    assert_true(n_finite > 100000);
}

/* By hand from the tables of the format, one weight each. */
TEST(test_block_examples) {
    unsigned char q4_k[144] = {0x00, 0x3c, 0x00, 0x38}; /* d 1, dmin 1/2 */
    q4_k[4 + 1] = 5 | 2 << 6;                           /* scale 1: 5; top of scale 5: 2 */
    q4_k[4 + 5] = 7 | 1 << 6;                           /* min 1: 7; top of min 5: 1 */
    q4_k[4 + 9] = 3 | 9 << 4;                           /* scale 5: 3 + 32; min 5: 9 + 16 */
    q4_k[16 + 4] = 0xb2;                                /* weights 4 and 36 */
    q4_k[16 + 64 + 31] = 0xe1;                          /* weights 159 and 191 */
    float out[256];
    dpi_type_find(DPI_TYPE_Q4_K)->dequantize(q4_k, out, 256);
    assert_true(out[4] == 0 && out[36] == 5 * 11 - 3.5f && out[37] == -3.5f);
    assert_true(out[159] == 0 && out[191] == 35 * 14 - 12.5f && out[190] == -12.5f);

    unsigned char q6_k[210] = {0};
    q6_k[208 + 1] = 0x3c;               /* d 1 */
    q6_k[192 + 11] = (unsigned char)-3; /* of weights 176..191 = 128 + 32 + 16 */
    q6_k[64 + 32 + 16 + 2] = 0x0d;      /* low bits of weight 178 and of 242 */
    q6_k[128 + 32 + 16 + 2] = 2 << 2;   /* high bits of 178: j = 1 */
    dpi_type_find(DPI_TYPE_Q6_K)->dequantize(q6_k, out, 256);
    assert_true(out[178] == -3 * (13 + 32 - 32) && out[179] == -3 * -32 && out[242] == 0);
}

TEST(test_row_bytes) {
    /* From the format's bits per weight: 8.5, 4.5, 2.625, 3.4375, 6.5625, 4.25. */
    assert_int_equal(dpi_type_row_bytes(dpi_type_find(DPI_TYPE_Q8_0), 64), 68);
    assert_int_equal(dpi_type_row_bytes(dpi_type_find(DPI_TYPE_Q4_0), 256), 144);
    assert_int_equal(dpi_type_row_bytes(dpi_type_find(DPI_TYPE_Q2_K), 1024), 336);
    assert_int_equal(dpi_type_row_bytes(dpi_type_find(DPI_TYPE_Q3_K), 1024), 440);
    assert_int_equal(dpi_type_row_bytes(dpi_type_find(DPI_TYPE_Q6_K), 1024), 840);
    assert_int_equal(dpi_type_row_bytes(dpi_type_find(DPI_TYPE_IQ4_XS), 1024), 544);
}

TEST(test_names) {
    assert_string_equal(dpi_type_name(8), "Q8_0");
    assert_string_equal(dpi_type_name(12), "Q4_K");
    assert_null(dpi_type_name(4)); /* removed from the format */
    assert_null(dpi_type_name(1000));
    assert_null(dpi_type_find(9));
    const dpi_type *type;
    for (int32_t i = 0; (type = dpi_type_at(i)) != NULL; i++) {
        assert_ptr_equal(dpi_type_find(type->id), type);
        assert_string_equal(dpi_type_name(type->id), type->name);
    }
}
