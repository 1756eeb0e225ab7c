/* samplers.h - what tests of samplers share: random logits, samplers that free themselves, calls
 * that must succeed, and a text whose references are spread over several samplers. */
#ifndef DPI_TEST_SAMPLERS_H
#define DPI_TEST_SAMPLERS_H

#include <math.h>

#include "dp/methods/sampler.h"
#include "tests/support/support.h"

/* ---- Logits ---------------------------------------------------------------------------------- */

enum { VOCAB_MAX = 1000, SLOTS_MAX = 20, SUMS_MAX = DPI_SUMS_HEADER + VOCAB_MAX };

/* The logits of one step. */
typedef struct batch {
    float public_logits[VOCAB_MAX], reference[SLOTS_MAX][VOCAB_MAX];
    const float *slots[SLOTS_MAX]; /* NULL or the reference of that number */
} batch;

/* How they are drawn. */
typedef struct batch_law {
    int32_t n_vocab, n_slots;
    double sure, spread; /* deviations of public logits, and of references from these */
    bool ties;           /* two public logits of three are multiples of 1/4 */
    int32_t null;        /* one slot in so many is NULL (0: none) */
    int32_t odd, n_odd;  /* one value in so many (0: none) is one of the first n_odd below */
} batch_law;

static inline void random_batch(batch *b, const batch_law *law, uint64_t *seed) {
    static const float odd[] = {NAN, -INFINITY, INFINITY, 3e38f, -3e38f, 1e-40f, -0.0f};
    for (int y = 0; y < law->n_vocab; y++) {
        double l = law->sure * random_normal(seed);
        b->public_logits[y] = (float)(law->ties && y % 3 ? rint(4 * l) / 4 : l);
    }
    for (int j = 0; j < law->n_slots; j++) {
        for (int y = 0; y < law->n_vocab; y++) {
            b->reference[j][y] = b->public_logits[y] + (float)(law->spread * random_normal(seed));
            if (law->odd && random_below(seed, law->odd) == 0)
                b->reference[j][y] = odd[random_below(seed, law->n_odd)];
        }
        b->slots[j] = law->null && random_below(seed, law->null) == 0 ? NULL : b->reference[j];
    }
}

/* ---- Samplers -------------------------------------------------------------------------------- */

static inline void free_sampler(dpi_sampler **s) { dpi_sampler_free(*s); }
/* SAMPLER a = ..., *b = ...; are freed where their block ends. */
#define SAMPLER __attribute__((cleanup(free_sampler))) dpi_sampler *

/* Fails unless the options `good` with changes of `o` are refused:
 * REFUSED(ARG, "part of the message", o.tau = 0, o.rho = 1). */
#define REFUSED(status, part, ...)                                                                 \
    (o = good, __VA_ARGS__, assert_refused(&o, DPI_STATUS_##status, part))

/* A sampler whose bits are those of the seed, at the beginning of a text. */
static inline dpi_sampler *begin_text(dpi_sampler_options o, uint64_t *seed) {
    o.random = dpi_random_insecure, o.random_user = seed;
    dpi_sampler *s = open_sampler(&o);
    assert_ok(dpi_sampler_begin(s, ERR));
    return s;
}

/* One that has part `index` of `count` of the references. */
static inline dpi_sampler *begin_part(dpi_sampler_options o, int32_t n_ref, int32_t index,
                                      int32_t count, uint64_t *seed) {
    dpi_part part;
    dpi_part_init(&part);
    part.index = index, part.count = count, part.text = 7;
    o.n_ref = n_ref;
    dpi_sampler *s = begin_text(o, seed);
    assert_ok(dpi_sampler_begin_part(s, &part, ERR));
    return s;
}

static inline dpi_sampler_plan make_plan(const dpi_sampler_options *o) {
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    assert_ok(dpi_sampler_plan_make(o, &plan, ERR));
    return plan;
}

/* The token of the next step. */
static inline int32_t step(dpi_sampler *s, const batch *b) {
    int32_t token = -1;
    assert_ok(dpi_sampler_step(s, b->public_logits, b->slots, &token, ERR));
    return token;
}

static inline dpi_distribution distribution(dpi_sampler *s, const batch *b) {
    dpi_distribution d;
    assert_ok(dpi_sampler_distribution(s, b->public_logits, b->slots, &d, ERR));
    return d;
}

/* How many reference logits the next step reads; *ids is NULL where it reads all. */
static inline int32_t candidates(dpi_sampler *s, const batch *b, const int32_t **ids) {
    int32_t n = -1;
    assert_ok(dpi_sampler_candidates(s, b->public_logits, ids, &n, ERR));
    return n;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* A text by one sampler has the tokens of one whose slots first[i]..first[i + 1] - 1 are those of
 * part i: `drawer` draws for all, with the same bits. Each part reads as many logits as the one
 * sampler does, also after a token that another part has drawn. */
static inline void compare_parts(const dpi_sampler_options *o, const batch *text, int32_t n_parts,
                                 const int32_t *first, int32_t drawer) {
    const int32_t per_slot = o->max_per_unit > 0 ? o->max_per_unit : 1;
    uint64_t bits = 5, parts_bits = 5, unused = 99;
    SAMPLER whole = begin_text(*o, &bits);
    dpi_sampler *parts[SLOTS_MAX];
    for (int32_t i = 0; i < n_parts; i++)
        parts[i] = begin_part(*o, first[i + 1] - first[i], i, n_parts,
                              i == drawer ? &parts_bits : &unused);
    for (const batch *b = text; b < text + o->n_tokens; b++) {
        static int64_t sums[SUMS_MAX], part[SUMS_MAX];
        const int32_t *all, *some;
        int32_t n, n_last = -1, token;
        memset(sums, 0, sizeof sums);
        for (int32_t i = n_parts - 1; i >= 0; i--, n_last = n) {
            assert_int_equal(candidates(whole, b, &all), candidates(parts[i], b, &some));
            assert_int_equal(all == NULL, some == NULL);
            assert_ok(dpi_sampler_partial(parts[i], b->public_logits,
                                          b->slots + first[i] * per_slot, part, &n, ERR));
            assert_true(n_last < 0 || n == n_last); /* the candidates are public */
            assert_ok(dpi_sums_merge(sums, part, n, ERR));
        }
        assert_ok(dpi_sampler_step_merged(parts[drawer], b->public_logits, sums, n, &token, ERR));
        assert_int_equal(token, step(whole, b));
        for (int32_t i = 0; i < n_parts; i++) {
            assert_int_equal(dpi_sampler_tokens_left(parts[i]), text + o->n_tokens - 1 - b);
            assert_int_equal(dpi_sampler_n_private(parts[i]), dpi_sampler_n_private(whole));
        }
    }
    assert_true(unused == 99); /* only one part draws */
    for (int32_t i = 0; i < n_parts; i++)
        dpi_sampler_free(parts[i]);
}

#endif
