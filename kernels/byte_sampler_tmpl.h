/* byte_sampler_tmpl.h - the kernels of ref_sampler.c, with tables by bytes (byte_slices.h). The ISA
 * file defines, beside what fixed63.h needs, and then includes this:
 *   NAME(kernel)     the function's name in profiles
 *   STEP             64-bit lanes of a vec
 *   VECTORS          8: the indices of so many fill the bytes of one
 *   load_i64(p), store_i64(p, v), min_i64(a, b), max_i64(a, b)
 *   clipper, make_clipper(centre, K)
 *   moved(c, x, p, null, i)        clip(x, p) - null of candidates i .. i + STEP - 1
 *   moved_rest(c, x, p, null, i, n)     the same of those that there are of n, at least one; other
 *                    lanes are not used
 *   look_up(tables, t, e, value)   table t at bits 40 - 8 t .. 47 - 8 t of each lane of e[VECTORS],
 *                    to value[VECTORS] in an order of its own; every entry is read
 *   in_order(v)      v[VECTORS] from that order to the lanes' own
 *   store_weights(w, mant, q)      max(mant * 2^46 >> q, 2^40) of each lane to w[STEP]
 * It gets init_sampler(). Not a header to include elsewhere. */

/* ---- Clipping ------------------------------------------------------------------------------- */

static void NAME(clip_add)(int64_t *sum, const float *x, const float *p, const int64_t *null,
                           double centre, int64_t K, uint64_t mask, int64_t n) {
    const clipper c = make_clipper(centre, K);
    int64_t i = 0, rest[STEP];
    for (; i + STEP <= n; i += STEP) {
        const u64s add = (u64s)moved(&c, x, p, null, i) & mask;
        store_i64(sum + i, (vec)((u64s)load_i64(sum + i) + add));
    }
    if (i == n)
        return;
    store_i64(rest, (vec)((u64s)moved_rest(&c, x, p, null, i, n) & mask));
    for (int64_t k = i; k < n; k++)
        sum[k] += rest[k - i];
    dpi_wipe(rest, sizeof rest);
}

static void NAME(clip_range)(int64_t range[2], const float *x, const float *p, const int64_t *null,
                             double centre, int64_t K, int64_t n) {
    const clipper c = make_clipper(centre, K);
    vec low = (vec)((u64s){0} + (uint64_t)range[0]), high = (vec)((u64s){0} + (uint64_t)range[1]);
    int64_t i = 0, lanes[3][STEP];
    for (; i + STEP <= n; i += STEP) {
        const vec v = moved(&c, x, p, null, i);
        low = min_i64(low, v);
        high = max_i64(high, v);
    }
    store_i64(lanes[0], low);
    store_i64(lanes[1], high);
    for (int k = 0; k < STEP; k++) {
        range[0] = dpi_i64_min(range[0], lanes[0][k]);
        range[1] = dpi_i64_max(range[1], lanes[1][k]);
    }
    if (i < n)
        store_i64(lanes[2], moved_rest(&c, x, p, null, i, n));
    for (int64_t k = 0; k < n - i; k++) {
        range[0] = dpi_i64_min(range[0], lanes[2][k]);
        range[1] = dpi_i64_max(range[1], lanes[2][k]);
    }
    dpi_wipe(lanes, sizeof lanes);
}

/* ---- Weights -------------------------------------------------------------------------------- */

enum { LANES = VECTORS * STEP };

/* LANES weights. */
INLINE void weigh(dpi_u128 *w, const int64_t *u, const slices *tables, int64_t top, uint64_t a) {
    const vec tops = (vec)((u64s){0} + (uint64_t)top);
    const vec gap_max = (vec)((u64s){0} + (uint64_t)dpi_gap_max(a));
    const u64s scale = (u64s){0} + a;
    vec e[VECTORS], mant[VECTORS], factor[VECTORS];
    for (int k = 0; k < VECTORS; k++) {
        const vec gap_any = (vec)((u64s)tops - (u64s)load_i64(u + STEP * k));
        const u64s gap = (u64s)min_i64(gap_any, gap_max);
        const u64s cross = mul_32(gap, scale >> 32) + mul_32(gap >> 32, scale);
        e[k] = (vec)(mul_32(gap, scale) + (cross << 32));
    }
    look_up(tables, 0, e, mant);
    for (int t = 1; t < 3; t++) {
        look_up(tables, t, e, factor);
        for (int k = 0; k < VECTORS; k++)
            mant[k] = multiply_63(mant[k], factor[k]);
    }
    in_order(mant);
    for (int k = 0; k < VECTORS; k++)
        store_weights(w + STEP * k, multiply_63(mant[k], last_factor(e[k])),
                      (vec)((u64s)e[k] >> 48));
}

static int64_t maximum(const int64_t *u, int64_t n) {
    vec top = (vec)((u64s){0} + (uint64_t)u[0]);
    int64_t i = 0, lanes[STEP];
    for (; i + STEP <= n; i += STEP)
        top = max_i64(top, load_i64(u + i));
    store_i64(lanes, top);
    for (int k = 1; k < STEP; k++)
        lanes[0] = dpi_i64_max(lanes[0], lanes[k]);
    for (; i < n; i++)
        lanes[0] = dpi_i64_max(lanes[0], u[i]);
    return lanes[0];
}

static void NAME(exp2_weights)(dpi_u128 *w, const int64_t *u, uint64_t a,
                               const uint64_t table[3][256], int64_t n) {
    slices tables;
    slice(table, &tables);
    const int64_t top = maximum(u, n);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        weigh(w + i, u + i, &tables, top, a);
    if (i == n)
        return;
    int64_t rest[LANES];
    dpi_u128 weights[LANES];
    for (int64_t k = 0; k < LANES; k++)
        rest[k] = i + k < n ? u[i + k] : top;
    weigh(weights, rest, &tables, top, a);
    memcpy(w + i, weights, (size_t)(n - i) * sizeof *w);
    dpi_wipe(rest, sizeof rest);
    dpi_wipe(weights, sizeof weights);
}

static void init_sampler(dpi_kernels *k) {
    k->clip_add = NAME(clip_add);
    k->clip_range = NAME(clip_range);
    k->exp2_weights = NAME(exp2_weights);
}
