/* attend.h - one block of attention, written once for every ISA.
 *
 * Heads that share K and V go through it four, two or one together, so that K and V are read and
 * widened once for all of them. How the heads of a model are grouped depends on their number alone.
 *
 * An ISA file defines, then includes this:
 *   LANES, VALUES (sums of values that registers hold, a multiple of 4), vecf (LANES floats), part
 *   (which lanes of a vector), and the static functions
 *     part_of(n)                  the first n lanes, none if n < 0
 *     load_part(p, part) store_part(p, v, part)     zero elsewhere
 *     load_kv(p, i, part, half)   from element i of p: float, or half precision
 *     load_f(p) store_f(p, v) zero_f() broadcast_f(x) add_f sub_f mul_f max_f fma_f exp_f
 *     repeat_4(v)                 four floats over and over
 *     swap_pairs(v) swap_neighbours(v)   lanes 2 3 0 1 and 1 0 3 2 of each four
 *     sums(v)                     lane i: the sum of the lanes of v[i], in the same order for all
 *   and the macro FOLD_FOURS(op, v), op over lanes i, i + 4, i + 8 ..., in all of them.
 * It gets attend(). Not a header to include elsewhere. */

/* Values of `heads` heads over all lanes: lane i belongs to head i % heads. */
INLINE vecf repeat(const float *x, const int heads) {
    if (heads == 1)
        return broadcast_f(x[0]);
    return repeat_4(heads == 2 ? _mm_setr_ps(x[0], x[1], x[0], x[1]) : _mm_loadu_ps(x));
}

/* op over the lanes of each head, in all of its lanes. */
#define FOLD(op, v, heads)                                                                        \
    do {                                                                                          \
        FOLD_FOURS(op, v);                                                                        \
        if (heads <= 2)                                                                           \
            v = op(v, swap_pairs(v));                                                             \
        if (heads == 1)                                                                           \
            v = op(v, swap_neighbours(v));                                                        \
    } while (0)

/* Asks for the bytes from `from` to `to` of what the next block reads, into L2. */
INLINE void ask_for(const void *next, int64_t from, int64_t to) {
    for (; from < to; from += 64)
        __builtin_prefetch((const unsigned char *)next + from, 0, 2);
}

/* p[j * heads + h] = scale * q[h] . k[j], LANES at a time, and -infinity in LANES behind them. */
INLINE void scores(const int heads, float *p, const float *q, const void *k, int32_t n,
                   int32_t head_dim, float scale, const void *next, const int half) {
    const int at_once = LANES / heads; /* positions */
    const int64_t row_bytes = next == k ? 0 : head_dim * (half ? 2 : 4); /* to ask for */
    for (int32_t j = 0; j < n; j += at_once) {
        ask_for(next, j * row_bytes, (j + at_once) * row_bytes);
        vecf s[LANES];
        for (int i = 0; i < LANES; i++)
            s[i] = zero_f();
        for (int32_t i = 0; i < head_dim; i += LANES) {
            part lanes = part_of(head_dim - i);
            for (int t = 0; t < at_once; t++) {
                int64_t at = j + t < n ? j + t : j; /* past the end: any, it is not used */
                vecf kv = load_kv(k, at * head_dim + i, lanes, half);
                for (int h = 0; h < heads; h++)
                    s[t * heads + h] =
                        fma_f(load_part(q + h * head_dim + i, lanes), kv, s[t * heads + h]);
            }
        }
        store_f(p + j * heads, mul_f(sums(s), broadcast_f(scale)));
    }
    store_f(p + n * heads, broadcast_f(-INFINITY));
}

/* acc[h] = acc[h] * c[h] + sum_j p[j * heads + h] v[j] for `chunks` times LANES dimensions, the
 * last of which may be fewer. */
INLINE void add_values(const int heads, const int chunks, float *acc, int32_t head_dim_v,
                       const float *c, const float *p, const void *v, int32_t from, int32_t n,
                       const void *next, const int half) {
    const int64_t row_bytes = next == v || from > 0 ? 0 : head_dim_v * (half ? 2 : 4);
    vecf a[VALUES];
    part lanes[VALUES];
    for (int i = 0; i < chunks; i++) {
        lanes[i] = part_of(head_dim_v - from - LANES * i);
        for (int h = 0; h < heads; h++)
            a[i * heads + h] = mul_f(load_part(acc + h * head_dim_v + from + LANES * i, lanes[i]),
                                     broadcast_f(c[h]));
    }
    for (int32_t j = 0; j < n; j++) {
        ask_for(next, j * row_bytes, (j + 1) * row_bytes);
        for (int i = 0; i < chunks; i++) {
            vecf kv = load_kv(v, (int64_t)j * head_dim_v + from + LANES * i, lanes[i], half);
            for (int h = 0; h < heads; h++)
                a[i * heads + h] = fma_f(broadcast_f(p[j * heads + h]), kv, a[i * heads + h]);
        }
    }
    for (int i = 0; i < chunks; i++)
        for (int h = 0; h < heads; h++)
            store_part(acc + h * head_dim_v + from + LANES * i, a[i * heads + h], lanes[i]);
}

/* The block for `heads` (1, 2 or 4) heads. */
INLINE void attend_heads(const int heads, float *acc, float *m, float *l, const float *q,
                         const void *k, const void *v, int32_t n, int32_t head_dim,
                         int32_t head_dim_v, float scale, const void *next_k, const void *next_v,
                         const int half) {
    float p[4 * DPI_KV_BLOCK + LANES], c[LANES], total[LANES], new_max[LANES];
    scores(heads, p, q, k, n, head_dim, scale, next_k, half);
    vecf old = repeat(m, heads), max = old, sum = zero_f();
    for (int32_t i = 0; i < n * heads; i += LANES)
        max = max_f(max, load_f(p + i));
    FOLD(max_f, max, heads);
    for (int32_t i = 0; i < n * heads; i += LANES) {
        vecf e = exp_f(sub_f(load_f(p + i), max));
        sum = add_f(sum, e);
        store_f(p + i, e);
    }
    FOLD(add_f, sum, heads);
    store_f(c, exp_f(sub_f(old, max)));
    store_f(total, sum);
    store_f(new_max, max);
    const int most = VALUES / heads < 8 ? VALUES / heads : 8; /* rarely more than there are */
    int32_t from = 0;
    for (; head_dim_v - from > LANES * most / 2; from += LANES * most)
        add_values(heads, most, acc, head_dim_v, c, p, v, from, n, next_v, half);
    for (; head_dim_v - from > 0; from += LANES * most / 2)
        add_values(heads, most / 2, acc, head_dim_v, c, p, v, from, n, next_v, half);
    for (int h = 0; h < heads; h++) {
        l[h] = l[h] * c[h] + total[h];
        m[h] = new_max[h];
    }
}

INLINE void attend(float *acc, float *m, float *l, const float *q, const void *k, const void *v,
                   int32_t n_q, int32_t n, int32_t head_dim, int32_t head_dim_v, float scale,
                   const void *next_k, const void *next_v, const int half) {
    int32_t h = 0;
/* The first heads ask for what is next. */
#define HEADS(count)                                                                              \
    attend_heads(count, acc + h * head_dim_v, m + h, l + h, q + h * head_dim, k, v, n, head_dim,  \
                 head_dim_v, scale, h == 0 ? next_k : k, h == 0 ? next_v : v, half)
    for (; h + 4 <= n_q; h += 4)
        HEADS(4);
    for (; h + 2 <= n_q; h += 2)
        HEADS(2);
    for (; h < n_q; h++)
        HEADS(1);
#undef HEADS
}
