/* ref.c - every kernel in readable scalar C: the definition that the others are tested against.
 * Sums are in double, so that this is also the more accurate version. */
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

#include "kernels/weight_types.h"

static void sum_squares_ref(float *sum, const float *x, int64_t n) {
    double all = 0;
    for (int64_t i = 0; i < n; i++)
        all += (double)x[i] * (double)x[i];
    *sum = (float)all;
}

static void scale_ref(float *y, const float *x, const float *w, float by, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * by * w[i];
}

static void rope_ref(float *x, const float *cs, int32_t n_head, int32_t head_dim, int32_t n_rot) {
    for (int32_t h = 0; h < n_head; h++, x += head_dim)
        for (int32_t i = 0; i < n_rot; i += 2) {
            float a = x[i], b = x[i + 1];
            x[i] = a * cs[i] - b * cs[i + 1];
            x[i + 1] = a * cs[i + 1] + b * cs[i];
        }
}

static void rope_halves_ref(float *x, const float *cs, int32_t n_head, int32_t head_dim,
                            int32_t n_rot) {
    const int32_t half = n_rot / 2;
    for (int32_t h = 0; h < n_head; h++, x += head_dim)
        for (int32_t i = 0; i < half; i++) {
            float a = x[i], b = x[half + i];
            x[i] = a * cs[i] - b * cs[half + i];
            x[half + i] = a * cs[half + i] + b * cs[i];
        }
}

static void add_ref(float *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void swiglu_ref(float *g, const float *u, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        g[i] = (float)(g[i] / (1.0 + exp(-(double)g[i]))) * u[i];
}

static void geglu_ref(float *g, const float *u, int64_t n) {
    const double slope = 0.79788456080286536; /* sqrt(2 / pi) */
    for (int64_t i = 0; i < n; i++) {
        const double z = (double)g[i];
        g[i] = (float)(z / (1.0 + exp(-2 * slope * (z + 0.044715 * z * z * z)))) * u[i];
    }
}

static double capped(double x, double cap) { return cap * tanh(x / cap); }

static void soft_cap_ref(float *x, float cap, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)capped((double)x[i], (double)cap);
}

static void f16_to_f32_ref(float *y, const uint16_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = dpi_f16_to_f32(x[i]);
}

static void f32_to_f16_ref(uint16_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = dpi_f32_to_f16(x[i]);
}

static double dot(const float *a, const float *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static void matmul_f32_ref(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                           int32_t n_rows, const float *w, int64_t n_in, int32_t n_out) {
    for (int32_t o = 0; o < n_out; o++)
        for (int32_t r = 0; r < n_rows; r++)
            y[r * y_stride + o] = (float)dot(x + r * x_stride, w + o * n_in, n_in);
}

/* k and v through `load`, which is all that differs between the cache types. */
static void attend(float *acc, float *m, float *l, const float *q, const void *k, const void *v,
                   int32_t n_q, int32_t first, int32_t n, int32_t head_dim, int32_t head_dim_v,
                   float scale, float cap, float (*load)(const void *, int64_t)) {
    double p[DPI_KV_BLOCK];
    for (int32_t h = 0; h < n_q; h++, q += head_dim, acc += head_dim_v) {
        double max = m[h];
        for (int32_t j = first; j < n; j++) {
            double s = 0;
            for (int32_t i = 0; i < head_dim; i++)
                s += (double)q[i] * load(k, dpi_kv_k_at(j, i, head_dim));
            p[j] = cap > 0 ? capped(scale * s, (double)cap) : scale * s;
            max = p[j] > max ? p[j] : max;
        }
        max = (float)max; /* what is kept for the next block must be what is used here */
        double correction = exp((double)m[h] - max), sum = l[h] * correction;
        for (int32_t j = first; j < n; j++) {
            p[j] = exp(p[j] - max);
            sum += p[j];
        }
        for (int32_t i = 0; i < head_dim_v; i++) {
            double a = acc[i] * correction;
            for (int32_t j = first; j < n; j++)
                a += p[j] * load(v, (int64_t)j * head_dim_v + i);
            acc[i] = (float)a;
        }
        m[h] = (float)max;
        l[h] = (float)sum;
    }
}

static float load_f32(const void *p, int64_t i) { return ((const float *)p)[i]; }
static float load_f16(const void *p, int64_t i) { return dpi_f16_to_f32(((const uint16_t *)p)[i]); }

static void attend_f32_ref(float *acc, float *m, float *l, const float *q, const float *k,
                           const float *v, int32_t n_q, int32_t first, int32_t n,
                           int32_t head_dim, int32_t head_dim_v, float scale, float cap,
                           const float *next_k, const float *next_v) {
    (void)next_k, (void)next_v;
    attend(acc, m, l, q, k, v, n_q, first, n, head_dim, head_dim_v, scale, cap, load_f32);
}

static void attend_f16_ref(float *acc, float *m, float *l, const float *q, const uint16_t *k,
                           const uint16_t *v, int32_t n_q, int32_t first, int32_t n,
                           int32_t head_dim, int32_t head_dim_v, float scale, float cap,
                           const uint16_t *next_k, const uint16_t *next_v) {
    (void)next_k, (void)next_v;
    attend(acc, m, l, q, k, v, n_q, first, n, head_dim, head_dim_v, scale, cap, load_f16);
}

static uint64_t probe_read_ref(const void *p, size_t n) {
    uint64_t sum = 0, word;
    for (size_t i = 0; i < n; i += sizeof word) {
        memcpy(&word, (const unsigned char *)p + i, sizeof word);
        sum += word;
    }
    return sum;
}

void dpi_kernels_init_ref(dpi_kernels *k) {
    k->probe_read = probe_read_ref;
    k->probe_int8 = NULL;
    k->probe_f32 = NULL;
    k->isa = DPI_ISA_REF;
    k->sum_squares = sum_squares_ref;
    k->scale = scale_ref;
    k->rope = rope_ref;
    k->add = add_ref;
    k->swiglu = swiglu_ref;
    k->geglu = geglu_ref;
    k->soft_cap = soft_cap_ref;
    k->rope_halves = rope_halves_ref;
    k->f16_to_f32 = f16_to_f32_ref;
    k->f32_to_f16 = f32_to_f16_ref;
    k->matmul_f32 = matmul_f32_ref;
    k->attend_f32 = attend_f32_ref;
    k->attend_f16 = attend_f16_ref;
    dpi_kernels_init_ref_q(k);
    dpi_kernels_init_ref_sampler(k);
}
