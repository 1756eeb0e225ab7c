/* curves_tmpl.h - GELU, soft caps and the rotation of halves, written once for every ISA. An ISA
 * file defines what attend_tmpl.h names, and beside it
 *     div_f(a, b)
 *     where_less(a, b, yes, no)   yes where a < b, no elsewhere
 * An element's lane depends on its index alone. Not a header to include elsewhere. */

/* tanh(x): 1 - 2 / (1 + exp(2x)), and where that would cancel, below .35, Taylor to x^9. Relative
 * error below 2e-6. */
INLINE vecf tanh_f(vecf x) {
    const vecf one = broadcast_f(1), two = broadcast_f(2), square = mul_f(x, x);
    const vecf by_exp = sub_f(one, div_f(two, add_f(one, exp_f(mul_f(two, x)))));
    vecf series = broadcast_f(62.0f / 2835);
    series = fma_f(series, square, broadcast_f(-17.0f / 315));
    series = fma_f(series, square, broadcast_f(2.0f / 15));
    series = fma_f(series, square, broadcast_f(-1.0f / 3));
    series = fma_f(mul_f(series, square), x, x);
    return where_less(square, broadcast_f(.1225f), series, by_exp);
}

INLINE vecf capped_f(vecf x, float cap) {
    return mul_f(broadcast_f(cap), tanh_f(div_f(x, broadcast_f(cap))));
}

INLINE void soft_cap(float *x, float cap, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES)
        store_part(x + i, capped_f(load_part(x + i, part_of(n - i)), cap), part_of(n - i));
}

/* (1 + tanh(a)) / 2 = 1 / (1 + exp(-2a)) */
INLINE void geglu(float *g, const float *u, int64_t n) {
    const float slope = -1.5957691216f; /* -2 sqrt(2 / pi) */
    for (int64_t i = 0; i < n; i += LANES) {
        const part lanes = part_of(n - i);
        const vecf z = load_part(g + i, lanes);
        const vecf cubic = fma_f(mul_f(mul_f(z, z), broadcast_f(.044715f)), z, z);
        const vecf e = exp_f(mul_f(cubic, broadcast_f(slope)));
        store_part(g + i, mul_f(div_f(z, add_f(broadcast_f(1), e)), load_part(u + i, lanes)),
                   lanes);
    }
}

INLINE void rope_halves(float *x, const float *cs, int32_t n_head, int32_t head_dim,
                        int32_t n_rot) {
    const int32_t half = n_rot / 2;
    for (int32_t i = 0; i < half; i += LANES) {
        const part lanes = part_of(half - i);
        const vecf cosines = load_part(cs + i, lanes), sines = load_part(cs + half + i, lanes);
        for (int32_t h = 0; h < n_head; h++) {
            float *at = x + (int64_t)h * head_dim + i;
            const vecf a = load_part(at, lanes), b = load_part(at + half, lanes);
            store_part(at, sub_f(mul_f(a, cosines), mul_f(b, sines)), lanes);
            store_part(at + half, fma_f(a, sines, mul_f(b, cosines)), lanes);
        }
    }
}
