/* quantize_k.c - f32 to Q4_K, Q5_K, Q6_K. Layouts: dequantize_k.c.
 *
 * Each sub-block first gets the scale (and minimum) it would like best. The super-block's d (and
 * dmin) follow from the largest of them; then each sub-block takes the small integers next to its
 * wish that fit best; last, d and dmin are fitted again to the integers that were chosen. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/quant_fit.h"
#include "kernels/weight_blocks.h"

enum { SUPER = DPI_MAX_BLOCK, N_AFFINE = 8, N_SYMMETRIC = 16 };

static float f16_value(float value) { return dpi_f16_to_f32(finite_f16(value)); }

/* value / unit to the nearest integer in low..high; 0 if the unit is 0. */
static int nearest(float value, float unit, int low, int high) {
    float v = unit != 0 ? value / unit : 0;
    return v <= (float)low ? low : v >= (float)high ? high : (int)floorf(v + 0.5f);
}

/* ---- Q4_K and Q5_K: weight = d * scale * q - dmin * min -------------------------------------- */

typedef struct affine {
    float d, dmin; /* exact in f16 */
    uint8_t scale[N_AFFINE], min[N_AFFINE];
    int8_t q[SUPER];
} affine;

/* q of every sub-block for d, dmin, scale, min; the error. */
static float round_affine(affine *a, const float *x, const float *w, int top) {
    float error = 0;
    for (int s = 0; s < N_AFFINE; s++)
        error += dpi_fit_round(x + 32 * s, w + 32 * s, 32, a->d * (float)a->scale[s],
                               -a->dmin * (float)a->min[s], 0, top, a->q + 32 * s);
    return error;
}

/* The integers around the wish that fit best. */
static void choose_scale_min(affine *a, int s, const float *x, const float *w, int top,
                             dpi_fit wish) {
    int scale = nearest(wish.scale, a->d, 0, 63), min = nearest(-wish.offset, a->dmin, 0, 63);
    float best = INFINITY;
    for (int i = scale > 0 ? scale - 1 : 0; i <= scale + 1 && i <= 63; i++)
        for (int j = min > 0 ? min - 1 : 0; j <= min + 1 && j <= 63; j++) {
            float error =
                dpi_fit_round(x, w, 32, a->d * (float)i, -a->dmin * (float)j, 0, top, NULL);
            if (error < best) {
                best = error;
                a->scale[s] = (uint8_t)i;
                a->min[s] = (uint8_t)j;
            }
        }
}

/* d and dmin by least squares: x ~ d u - dmin v with u = scale * q, v = min. */
static void refit_affine(affine *a, const float *x, const float *w) {
    double uu = 0, uv = 0, vv = 0, xu = 0, xv = 0;
    for (int i = 0; i < SUPER; i++) {
        double u = a->scale[i / 32] * a->q[i], v = a->min[i / 32], wi = (double)w[i];
        uu += wi * u * u;
        uv += wi * u * v;
        vv += wi * v * v;
        xu += wi * (double)x[i] * u;
        xv += wi * (double)x[i] * v;
    }
    double determinant = uu * vv - uv * uv;
    if (determinant > 1e-9 * uu * vv) {
        a->d = f16_value((float)((vv * xu - uv * xv) / determinant));
        a->dmin = f16_value((float)((uv * xu - uu * xv) / determinant));
    } else if (uu > 0 && vv == 0) {
        a->d = f16_value((float)(xu / uu));
    }
}

static void quantize_affine(affine *a, const float *x, int top) {
    float w[SUPER], most_scale = 0, most_min = 0;
    dpi_fit wish[N_AFFINE];
    memset(a, 0, sizeof *a);
    dpi_fit_weights(w, x, SUPER);
    for (int s = 0; s < N_AFFINE; s++) {
        wish[s] = dpi_fit_affine(x + 32 * s, w + 32 * s, 32, top, 1);
        most_scale = wish[s].scale > most_scale ? wish[s].scale : most_scale;
        most_min = -wish[s].offset > most_min ? -wish[s].offset : most_min;
    }
    a->d = f16_value(most_scale / 63);
    a->dmin = f16_value(most_min / 63);
    for (int s = 0; s < N_AFFINE; s++)
        choose_scale_min(a, s, x + 32 * s, w + 32 * s, top, wish[s]);
    float error = round_affine(a, x, w, top);
    affine again = *a;
    refit_affine(&again, x, w);
    if (again.d >= 0 && again.dmin >= 0 && round_affine(&again, x, w, top) < error)
        *a = again;
}

/* { f16 d; f16 dmin; u8 scales[12] } */
static void put_affine_header(unsigned char *p, const affine *a) {
    store_u16(p, dpi_f32_to_f16(a->d));
    store_u16(p + 2, dpi_f32_to_f16(a->dmin));
    dpi_k_scales_put(p + 4, a->scale, a->min);
}

void dpi_q4_k_quantize(const float *src, void *dst, int64_t n) {
    unsigned char *p = dst;
    affine a;
    for (int64_t i = 0; i < n; i += SUPER, p += 144) {
        quantize_affine(&a, src + i, 15);
        put_affine_header(p, &a);
        for (int g = 0; g < 4; g++)
            for (int l = 0; l < 32; l++)
                p[16 + 32 * g + l] = (unsigned char)(a.q[64 * g + l] | a.q[64 * g + 32 + l] << 4);
    }
}

void dpi_q5_k_quantize(const float *src, void *dst, int64_t n) {
    unsigned char *p = dst;
    affine a;
    for (int64_t i = 0; i < n; i += SUPER, p += 176) {
        quantize_affine(&a, src + i, 31);
        put_affine_header(p, &a);
        memset(p + 16, 0, 32);
        for (int g = 0; g < 4; g++)
            for (int l = 0; l < 32; l++) {
                int q0 = a.q[64 * g + l], q1 = a.q[64 * g + 32 + l];
                p[48 + 32 * g + l] = (unsigned char)((q0 & 15) | (q1 & 15) << 4);
                p[16 + l] |= (unsigned char)((q0 >> 4) << 2 * g | (q1 >> 4) << (2 * g + 1));
            }
    }
}

/* ---- Q6_K: weight = d * scale * (q - 32) ----------------------------------------------------- */

typedef struct symmetric {
    float d; /* exact in f16 */
    int8_t scale[N_SYMMETRIC];
    int8_t q[SUPER]; /* -32..31 */
} symmetric;

static float round_symmetric(symmetric *b, const float *x, const float *w) {
    float error = 0;
    for (int s = 0; s < N_SYMMETRIC; s++)
        error += dpi_fit_round(x + 16 * s, w + 16 * s, 16, b->d * (float)b->scale[s], 0, -32, 31,
                               b->q + 16 * s);
    return error;
}

static void choose_scale(symmetric *b, int s, const float *x, const float *w, float wish) {
    int scale = nearest(wish, b->d, -128, 127);
    float best = INFINITY;
    for (int i = scale > -128 ? scale - 1 : -128; i <= scale + 1 && i <= 127; i++) {
        float error = dpi_fit_round(x, w, 16, b->d * (float)i, 0, -32, 31, NULL);
        if (error < best) {
            best = error;
            b->scale[s] = (int8_t)i;
        }
    }
}

/* d by least squares: x ~ d u with u = scale * q. */
static void refit_symmetric(symmetric *b, const float *x, const float *w) {
    double uu = 0, xu = 0;
    for (int i = 0; i < SUPER; i++) {
        double u = b->scale[i / 16] * b->q[i];
        uu += (double)w[i] * u * u;
        xu += (double)w[i] * (double)x[i] * u;
    }
    if (uu > 0)
        b->d = f16_value((float)(xu / uu));
}

static void quantize_symmetric(symmetric *b, const float *x) {
    float w[SUPER], wish[N_SYMMETRIC], most = 0;
    memset(b, 0, sizeof *b);
    dpi_fit_weights(w, x, SUPER);
    for (int s = 0; s < N_SYMMETRIC; s++) {
        wish[s] = dpi_fit_symmetric(x + 16 * s, w + 16 * s, 16, 32).scale;
        most = fabsf(wish[s]) > fabsf(most) ? wish[s] : most;
    }
    b->d = f16_value(most / -128);
    for (int s = 0; s < N_SYMMETRIC; s++)
        choose_scale(b, s, x + 16 * s, w + 16 * s, wish[s]);
    float error = round_symmetric(b, x, w);
    symmetric again = *b;
    refit_symmetric(&again, x, w);
    if (round_symmetric(&again, x, w) < error)
        *b = again;
}

void dpi_q6_k_quantize(const float *src, void *dst, int64_t n) {
    unsigned char *p = dst;
    symmetric b;
    for (int64_t i = 0; i < n; i += SUPER, p += 210) {
        quantize_symmetric(&b, src + i);
        memset(p, 0, 192);
        for (int e = 0; e < SUPER; e++) {
            int h = e / 128, j = e % 128 / 32, l = e % 32, q = b.q[e] + 32;
            p[64 * h + 32 * (j % 2) + l] |= (unsigned char)((q & 15) << j / 2 * 4);
            p[128 + 32 * h + l] |= (unsigned char)((q >> 4) << 2 * j);
        }
        memcpy(p + 192, b.scale, sizeof b.scale);
        store_u16(p + 208, dpi_f32_to_f16(b.d));
    }
}
