/* attend_tmpl.h - one block of attention, written once for every ISA.
 *
 * 8, 4, 2 or one of the heads that share K and V are computed at a time, so that K and V are read
 * and widened once for all of them. How many at a time depends on the number of heads alone. A
 * vector holds the scores of LANES positions, whose K stand side by side: no sum of products goes
 * over lanes.
 *
 * An ISA file defines, then includes this:
 *   LANES (divides DPI_KV_PANEL), SUMS (that registers hold, 8 or 16), vecf (LANES floats), part
 *   (which lanes of a vector), and the static functions
 *     part_of(n)                  the first n lanes, none if n < 0
 *     load_part(p, part) store_part(p, v, part)     zero elsewhere
 *     load_kv(p, i, part, f16)    from element i of p: float, or f16
 *     load_f(p) store_f(p, v) zero_f() broadcast_f(x) add_f sub_f mul_f max_f fma_f exp_f
 *     or_lowest(v, part)          v, and -infinity elsewhere
 *     reduce_add(v) reduce_max(v) of all lanes
 *     capped_f(x, cap)            of curves_tmpl.h
 * It gets attend(). Not a header to include elsewhere. */

enum { MOST_HEADS = SUMS / 2 };

/* Prefetches the bytes from `from` to `to` of what the next block reads, into L2. */
INLINE void prefetch_next(const void *next, int64_t from, int64_t to) {
    for (; from < to; from += 64)
        __builtin_prefetch((const unsigned char *)next + from, 0, 2);
}

/* sum[h * n + i] += x[h * stride] * kv[i] */
INLINE void add_products(const int heads, const int n, vecf *sum, const float *x, int64_t stride,
                         const vecf *kv) {
    for (int h = 0; h < heads; h++) {
        vecf by = broadcast_f(x[h * stride]);
        for (int i = 0; i < n; i++)
            sum[h * n + i] = fma_f(by, kv[i], sum[h * n + i]);
    }
}

/* p [heads, DPI_KV_BLOCK]: p[h][j] = scale * q[h] . k[j], and -infinity from n on to the next
 * multiple of LANES at least. */
INLINE void scores(const int heads, float *p, const float *q, const void *k, int32_t n,
                   int32_t head_dim, float scale, const void *next, const int f16) {
    const int vecs = SUMS / heads < DPI_KV_BLOCK / LANES ? SUMS / heads : DPI_KV_BLOCK / LANES;
    const int at_once = vecs * LANES; /* positions */
    const int64_t item = next == k ? 0 : f16 ? 2 : 4; /* bytes to prefetch */
    for (int32_t from = 0; from < n; from += at_once) {
        vecf s[SUMS];
        for (int i = 0; i < vecs * heads; i++)
            s[i] = zero_f();
        for (int64_t i = 0; i < head_dim; i++) {
            const int64_t ahead = (int64_t)from * head_dim + i * at_once;
            prefetch_next(next, ahead * item, (ahead + at_once) * item);
            vecf kv[DPI_KV_BLOCK / LANES];
            for (int t = 0; t < vecs; t++) { /* past n: what is there, it is not used */
                int64_t at = from + t * LANES, in_panel = at % DPI_KV_PANEL;
                kv[t] = load_kv(k, (at - in_panel) * head_dim + i * DPI_KV_PANEL + in_panel,
                                part_of(LANES), f16);
            }
            add_products(heads, vecs, s, q + i, head_dim, kv);
        }
        for (int h = 0; h < heads; h++)
            for (int t = 0; t < vecs; t++)
                store_f(p + h * DPI_KV_BLOCK + from + t * LANES,
                        or_lowest(mul_f(s[h * vecs + t], broadcast_f(scale)),
                                  part_of(n - from - t * LANES)));
    }
}

/* acc[h] = acc[h] * c[h] + sum_j p[h][j] v[j] for `chunks` times LANES dimensions, the last of
 * which may be fewer. */
INLINE void add_values(const int heads, const int chunks, float *acc, int32_t head_dim_v,
                       const float *c, const float *p, const void *v, int32_t from, int32_t first,
                       int32_t n, const void *next, const int f16) {
    const int64_t row_bytes = next == v || from > 0 ? 0 : head_dim_v * (f16 ? 2 : 4);
    vecf a[SUMS];
    part lanes[SUMS];
    for (int i = 0; i < chunks; i++) {
        lanes[i] = part_of(head_dim_v - from - LANES * i);
        for (int h = 0; h < heads; h++)
            a[h * chunks + i] = mul_f(load_part(acc + h * head_dim_v + from + LANES * i, lanes[i]),
                                     broadcast_f(c[h]));
    }
    for (int32_t j = first; j < n; j++) {
        prefetch_next(next, j * row_bytes, (j + 1) * row_bytes);
        vecf kv[SUMS];
        for (int i = 0; i < chunks; i++)
            kv[i] = load_kv(v, (int64_t)j * head_dim_v + from + LANES * i, lanes[i], f16);
        add_products(heads, chunks, a, p + j, DPI_KV_BLOCK, kv);
    }
    for (int i = 0; i < chunks; i++)
        for (int h = 0; h < heads; h++)
            store_part(acc + h * head_dim_v + from + LANES * i, a[h * chunks + i], lanes[i]);
}

/* p[h][j] = cap tanh(p[h][j] / cap) */
INLINE void cap_scores(const int heads, float *p, int32_t n, float cap) {
    for (int h = 0; h < heads; h++)
        for (int32_t j = 0; j < n; j += LANES)
            store_f(p + h * DPI_KV_BLOCK + j,
                    or_lowest(capped_f(load_f(p + h * DPI_KV_BLOCK + j), cap), part_of(n - j)));
}

/* The block for `heads` (1, 2, 4 or 8) heads. */
INLINE void attend_heads(const int heads, float *acc, float *m, float *l, const float *q,
                         const void *k, const void *v, int32_t first, int32_t n, int32_t head_dim,
                         int32_t head_dim_v, float scale, float cap, const void *next_k,
                         const void *next_v, const int f16) {
    float p[MOST_HEADS * DPI_KV_BLOCK], max[LANES] = {0}, c[LANES];
    scores(heads, p, q, k, n, head_dim, scale, next_k, f16);
    if (cap > 0)
        cap_scores(heads, p, n, cap);
    for (int h = 0; h < heads; h++)
        for (int32_t j = 0; j < first; j++)
            p[h * DPI_KV_BLOCK + j] = -INFINITY;
    for (int h = 0; h < heads; h++) {
        vecf most = broadcast_f(m[h]);
        for (int32_t j = 0; j < n; j += LANES)
            most = max_f(most, load_f(p + h * DPI_KV_BLOCK + j));
        max[h] = reduce_max(most);
    }
    store_f(c, exp_f(sub_f(load_part(m, part_of(heads)), load_f(max))));
    for (int h = 0; h < heads; h++) {
        vecf sum = zero_f();
        for (int32_t j = 0; j < n; j += LANES) {
            vecf e = exp_f(sub_f(load_f(p + h * DPI_KV_BLOCK + j), broadcast_f(max[h])));
            sum = add_f(sum, e);
            store_f(p + h * DPI_KV_BLOCK + j, e);
        }
        l[h] = l[h] * c[h] + reduce_add(sum);
        m[h] = max[h];
    }
    const int most = SUMS / heads < 8 ? SUMS / heads : 8; /* rarely more than there are */
    int32_t from = 0;
    for (; head_dim_v - from > LANES * most / 2; from += LANES * most)
        add_values(heads, most, acc, head_dim_v, c, p, v, from, first, n, next_v, f16);
    for (; head_dim_v - from > 0; from += LANES * most / 2)
        add_values(heads, most / 2, acc, head_dim_v, c, p, v, from, first, n, next_v, f16);
}

INLINE void attend(float *acc, float *m, float *l, const float *q, const void *k, const void *v,
                   int32_t n_q, int32_t first, int32_t n, int32_t head_dim, int32_t head_dim_v,
                   float scale, float cap, const void *next_k, const void *next_v,
                   const int f16) {
    int32_t h = 0;
/* The first heads prefetch what is next. */
#define HEADS(count)                                                                              \
    attend_heads(count, acc + h * head_dim_v, m + h, l + h, q + h * head_dim, k, v, first, n,     \
                 head_dim, head_dim_v, scale, cap, h == 0 ? next_k : k, h == 0 ? next_v : v, f16)
    for (; MOST_HEADS >= 8 && h + 8 <= n_q; h += 8)
        HEADS(8);
    for (; h + 4 <= n_q; h += 4)
        HEADS(4);
    for (; h + 2 <= n_q; h += 2)
        HEADS(2);
    for (; h < n_q; h++)
        HEADS(1);
#undef HEADS
}
