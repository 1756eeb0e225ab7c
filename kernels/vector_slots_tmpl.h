/* vector_slots_tmpl.h - the kernels of curves_tmpl.h and attend_tmpl.h as functions for the
 * dispatch table. Included after both, where NAME(kernel), the function's name in profiles, is
 * defined; gives init_vectors(). Not a header to include elsewhere. */

static void NAME(geglu)(float *g, const float *u, int64_t n) { geglu(g, u, n); }
static void NAME(soft_cap)(float *x, float cap, int64_t n) { soft_cap(x, cap, n); }
static void NAME(rope_halves)(float *x, const float *cs, int32_t n_head, int32_t head_dim,
                              int32_t n_rot) {
    rope_halves(x, cs, n_head, head_dim, n_rot);
}

#define ATTEND(name, type, f16)                                                                    \
    static void NAME(name)(float *acc, float *m, float *l, const float *q, const type *k,          \
                           const type *v, int32_t n_q, int32_t first, int32_t n, int32_t head_dim, \
                           int32_t head_dim_v, float scale, float cap, const type *next_k,         \
                           const type *next_v) {                                                   \
        attend(acc, m, l, q, k, v, n_q, first, n, head_dim, head_dim_v, scale, cap, next_k,        \
               next_v, f16);                                                                       \
    }
ATTEND(attend_f32, float, 0)
ATTEND(attend_f16, uint16_t, 1)
#undef ATTEND

static void init_vectors(dpi_kernels *k) {
    k->geglu = NAME(geglu);
    k->soft_cap = NAME(soft_cap);
    k->rope_halves = NAME(rope_halves);
    k->attend_f32 = NAME(attend_f32);
    k->attend_f16 = NAME(attend_f16);
}
