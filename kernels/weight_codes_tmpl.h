/* weight_codes_tmpl.h - how the codes and scales of each weight type lie in packed words, and what
 * products need to know of a type. Included by q_products_tmpl.h, which says what an ISA file
 * defines before. Not a header to include elsewhere. */

/* ---- What differs between the types; `type` is always a constant here ------------------------ */

/* What weight_types.def says of them. */
typedef struct product_traits {
    int words, sub_blocks, parts, bias, most, stream, interleave, unroll, unroll_words;
    bool has_block_scale, has_min, is_signed;
} product_traits;

static const product_traits traits[] = {
#define WEIGHT(NAME_, name, id, block, bytes, quantize, product, scale_at, order, parts_, min_,  \
               signed_, bias_, most_, stream_, interleave_, unroll_, unroll_words_)              \
    [id] = {                                                                                     \
        .words = ((bytes) - ((scale_at) < 0 ? 0 : 2)) / 4,                                       \
        .sub_blocks = (block) / 32,                                                              \
        .parts = parts_,                                                                         \
        .bias = bias_,                                                                           \
        .most = most_,                                                                           \
        .stream = stream_,                                                                       \
        .interleave = interleave_,                                                               \
        .unroll = unroll_,                                                                       \
        .unroll_words = unroll_words_,                                                           \
        .has_block_scale = (scale_at) >= 0,                                                      \
        .has_min = min_,                                                                         \
        .is_signed = signed_,                                                                    \
    },
#include "kernels/weight_types.def"
#undef WEIGHT
};

INLINE int sub_blocks(const int type) { return traits[type].sub_blocks; } /* of 32 in a block */
INLINE int block_words(const int type) { return traits[type].words; }
INLINE int has_block_scale(const int type) { return traits[type].has_block_scale; }
INLINE int scales_per_32(const int type) { return traits[type].parts; }
INLINE int has_min(const int type) { return traits[type].has_min; }
INLINE int signed_values(const int type) { return traits[type].is_signed; }

/* Codes are 0 to 15 (dpi_type.is_narrow). */
INLINE int is_narrow(const int type) {
    return traits[type].most == 15 && !traits[type].is_signed;
}

/* Codes of 3, 5 or 6 bits, which come of two words each. */
INLINE int is_composed(const int type) {
    const int most = traits[type].most;
    return most == 7 || most == 31 || most == 63;
}

/* Dots whose sums of two products, of at most 127 times the largest code each, stay below 2^15 in
 * one sum: of those that share a scale. */
INLINE int dots_at_once(const int type) {
    const int two = 2 * 127 * traits[type].most, all = 8 / traits[type].parts;
    return all * two < 1 << 15       ? all
           : all / 2 * two < 1 << 15 ? all / 2
           : all / 4 * two < 1 << 15 ? all / 4
                                     : 1;
}

/* A weight's value is code - 2^bits; 0: it is the code. */
INLINE int bias_bits(const int type) {
    return SIGNED_CODES && signed_values(type) ? 0 : traits[type].bias;
}

/* Whether n sequences read weights as one stream: each line once, all in their order, and one soon
 * after the other, that is within four dots. */
INLINE bool is_stream(const int type, const int32_t n) {
    if (LANES != DPI_PANEL_ROWS && (n > 1 || sub_blocks(type) > 1))
        return false; /* lines in two parts, or words that are read again */
    return n <= traits[type].stream;
}

/* Blocks that one call of add_blocks() multiplies with: of 32 weights two, whose scales stand side
 * by side. */
INLINE int blocks_at_once(const int type) { return sub_blocks(type) == 1 ? 2 : 1; }

/* Of `subs` sub-blocks, those whose dots are interleaved where registers are left for it. With one
 * sequence they are those that share words, so that each word is read only once. With more they
 * are two, or a core would wait for sums: a dot takes up to six cycles, in which it could begin
 * twelve. */
INLINE int interleaved(const int type, const int n, const int subs) {
    if (LANES != DPI_PANEL_ROWS)
        return 1;
    if (n > 1)
        return subs % 2 ? 1 : 2;
    return traits[type].interleave;
}

/* Vectors of LANES outputs in one pass of n sequences: one sequence reads all of a panel, so that
 * weights are one stream of whole lines. More would need more registers than AVX2 has. */
INLINE int vectors(const int n) { return n == 1 ? DPI_PANEL_ROWS / LANES : 1; }

/* Sub-blocks, of `subs`, in one round of a loop. The next round has its codes in the same places,
 * unrolled_words() further on. With many sequences a whole block is thousands of instructions, more
 * than a core can keep decoded, and two threads of one core least of all. Types whose sub-blocks
 * all differ unroll the whole block. */
INLINE int unrolled(const int type, const int n, const int subs) {
    return n > 1 && traits[type].unroll ? traits[type].unroll : subs;
}

INLINE int unrolled_words(const int type, const int n, const int subs) {
    if (unrolled(type, n, subs) == subs)
        return block_words(type) * subs / sub_blocks(type);
    return traits[type].unroll_words;
}

/* ---- Codes ----------------------------------------------------------------------------------- */

/* Weights of LANES outputs, on their way through a kernel. */
typedef struct source {
    const unsigned char *panel;
    int lane; /* of the panel: the first */
    int32_t passes; /* how often a panel is read */
    /* Several times, for more sequences than one tile holds: memory would rest from the second time
     * on, so each pass prefetches its share of the next panel into L2. */
    const unsigned char *next;
    dpi_prefetch ahead;
} source;

/* A block of LANES of the panel's 16 rows, or blocks_at_once() of them. */
typedef struct words {
    const unsigned char *scales; /* block scales, if there are any */
    const unsigned char *at;
    const unsigned char *l1, *l2; /* what is prefetched: a distance further on */
    int prefetch; /* PREFETCH_.., known when it is compiled */
} words;

/* Into which caches. DONE: the vector before has prefetched the same lines. */
enum { PREFETCH_NONE, PREFETCH_DONE, PREFETCH_L1, PREFETCH_L2_L1 };

INLINE words words_at(const unsigned char *scales, const unsigned char *at,
                      const unsigned char *line, const dpi_prefetch *ahead, const int prefetch) {
    return (words){scales, at, line + ahead->l1, line + ahead->l2, prefetch};
}

INLINE void words_skip(words *w, const int n) {
    w->at += 4 * DPI_PANEL_ROWS * n;
    w->l1 += 4 * DPI_PANEL_ROWS * n;
    w->l2 += 4 * DPI_PANEL_ROWS * n;
}

INLINE vec word(const words *w, const int i) {
    const unsigned char *at = w->at + 4 * DPI_PANEL_ROWS * i;
    vec v = load_word(at);
    /* Where the hardware prefetches: the line is read this once, so that it need not go through
     * the last cache (3 to 6 % less time of one sequence on Zen 4). */
    if (w->prefetch == PREFETCH_NONE)
        PREFETCH_ONCE(v, *at);
    return v;
}

/* One half of each byte. */
INLINE vec nibble(vec v, const int high) { return and_bytes(high ? shift_right16(v, 4) : v, 15); }

/* Bits [from, from + n) of each byte moved to bits [to, to + n), the others 0; mask is those n bits
 * in place. The shift may cross bytes, the mask takes away what came over. */
INLINE vec move_bits(vec v, const int from, const int to, const int mask) {
    if (to > from)
        v = shift_left16(v, to - from);
    if (from > to)
        v = shift_right16(v, from - to);
    return and_bytes(v, mask);
}

/* Weights 4g..4g+3 of sub-block `sub` of LANES rows, from the words of their block; of types whose
 * blocks have 32 weights, of block `sub`. The layouts are those of dequantize.c and
 * dequantize_k.c, their words in the order of weight_types.c. */
INLINE vec code(const int type, const words *w, const int sub, const int g) {
    const int half = sub / 4, quarter = sub % 4, at = sub * block_words(type);
    switch (type) {
    case DPI_TYPE_Q8_0:
        return SIGNED_CODES ? word(w, at + g) : flip_sign(word(w, at + g));
    case DPI_TYPE_Q4_0:
        return nibble(word(w, at + g % 4), g / 4);
    case DPI_TYPE_IQ4_NL:
        return iq4_values(nibble(word(w, at + g % 4), g / 4));
    case DPI_TYPE_Q4_1:
        return nibble(word(w, at + 1 + g % 4), g / 4);
    case DPI_TYPE_Q5_0:
        return add_high_bits(nibble(word(w, at + 1 + g % 4), g / 4), word(w, at), g);
    case DPI_TYPE_Q5_1:
        return add_high_bits(nibble(word(w, at + 2 + g % 4), g / 4), word(w, at + 1), g);
    case DPI_TYPE_Q4_K:
        return nibble(word(w, 4 + 8 * (sub / 2) + g), sub % 2);
    case DPI_TYPE_Q5_K:
        return or_bits(nibble(word(w, 5 * g + 1 + sub / 2), sub % 2),
                       move_bits(word(w, 5 * g), sub, 4, 0x10));
    case DPI_TYPE_Q6_K:
        return or_bits(nibble(word(w, 26 * half + 3 * g + (quarter % 2 ? 4 : 2)), quarter / 2),
                       move_bits(word(w, 26 * half + 3 * g + 3), 2 * quarter, 4, 0x30));
    case DPI_TYPE_Q2_K:
        return move_bits(word(w, 5 + 8 * half + g), 2 * quarter, 0, 3);
    case DPI_TYPE_Q3_K:
        return or_bits(move_bits(word(w, half ? 19 + g : 3 + 2 * g), 2 * quarter, 0, 3),
                       move_bits(word(w, 4 + 2 * g), sub, 2, 4));
    default: /* IQ4_XS */
        return iq4_values(nibble(word(w, 2 + 4 * sub + g % 4), g / 4));
    }
}

/* ---- Scales ---------------------------------------------------------------------------------- */

typedef struct scales {
    vecf scale; /* a weight is scale * value - min */
    vecf min;
} scales;

/* Bits [from, from + n) of each word as a number. */
INLINE vec bits(vec v, const int from, const int n) {
    return and_words(shift_right32(v, from), (1 << n) - 1);
}

INLINE vec join(vec low, vec high, const int at) { return or_bits(low, shift_left32(high, at)); }

/* Scale and minimum of sub-block `sub` of Q4_K and Q5_K, from the word with the block's two and
 * those with 6 bits for each sub-block. */
INLINE scales k_scales(vec d, vec low_scales, vec low_mins, vec high, const int sub) {
    const int at = 8 * (sub % 4);
    vec scale, min;
    if (sub < 4) {
        scale = bits(low_scales, at, 6);
        min = bits(low_mins, at, 6);
    } else {
        scale = join(bits(high, at, 4), bits(low_scales, at + 6, 2), 4);
        min = join(bits(high, at + 4, 4), bits(low_mins, at + 6, 2), 4);
    }
    return (scales){mul_f(low_f16(d), to_float(scale)), mul_f(high_f16(d), to_float(min))};
}

/* Of weights [32 sub, 32 sub + 32) of a block or two, or of 16 of those from 16 h on where
 * scales_per_32 is 2. */
INLINE scales scales_of(const int type, const words *w, const int sub, const int h) {
    const int half = sub / 4, k = 2 * sub + h, at = 8 * (k % 4);
    vec n, d;
    switch (type) {
    case DPI_TYPE_Q4_1:
    case DPI_TYPE_Q5_1:
        d = word(w, sub * block_words(type));
        return (scales){low_f16(d), sub_f(zero_f(), high_f16(d))};
    case DPI_TYPE_Q4_K:
        return k_scales(word(w, 0), word(w, 1), word(w, 2), word(w, 3), sub);
    case DPI_TYPE_Q5_K:
        return k_scales(word(w, 40), word(w, 41), word(w, 42), word(w, 43), sub);
    case DPI_TYPE_Q2_K:
        n = word(w, 1 + k / 4);
        return (scales){mul_f(low_f16(word(w, 0)), to_float(bits(n, at, 4))),
                        mul_f(high_f16(word(w, 0)), to_float(bits(n, at + 4, 4)))};
    case DPI_TYPE_Q3_K:
        n = join(bits(word(w, k % 8 / 4), at + 4 * (k / 8), 4),
                 bits(word(w, 2), at + 2 * (k / 4), 2), 4);
        return (scales){mul_f(load_f16s(w->scales), to_float(sub_words(n, 32))), zero_f()};
    case DPI_TYPE_Q6_K:
        n = shift_right32_signed(shift_left32(word(w, 26 * half + k % 8 / 4), 24 - at), 24);
        return (scales){mul_f(load_f16s(w->scales), to_float(n)), zero_f()};
    case DPI_TYPE_IQ4_XS:
        n = join(bits(word(w, 1), 4 * sub, 4), bits(word(w, 0), 16 + 2 * sub, 2), 4);
        return (scales){mul_f(low_f16(word(w, 0)), to_float(sub_words(n, 32))), zero_f()};
    default:
        return (scales){load_f16s(w->scales + 2 * DPI_PANEL_ROWS * sub), zero_f()};
    }
}
