/* audit_merge.c - loss of texts whose references are spread over parts (dp/PRIVACY.md section 2,
 * "Sums of parts"). For every way to cut the slots: the sums that parts add up to are those of one
 * sampler with all slots, to the last bit, and the same random bits draw the same token. And sums
 * that are not those of all parts, each once, for this token, are refused. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/methods/method.h"

enum {
    V = DPI_AUDIT_VOCAB,
    N_SETTINGS = 96,
    N_TOKENS = 4,
    SLOTS_MAX = 6,
    SUMS = DPI_SUMS_HEADER + V,
};

/* Bits that a run draws, of which two runs get the same. */
typedef struct source {
    uint64_t state;
    int32_t n_calls;
} source;

/* One text: all slots in one sampler, and the same slots in parts. */
typedef struct text {
    dpi_audit *audit;
    dpi_audit_case world[N_TOKENS]; /* logits of each token; options in the first */
    int32_t order[SLOTS_MAX];       /* slots of the parts, one part after the other */
    int32_t n_parts, first[SLOTS_MAX + 1];
    const float *slots[DPI_AUDIT_REFS]; /* of this token, in that order */
    source whole_bits, part_bits[SLOTS_MAX];
    dpi_sampler *whole, *part[SLOTS_MAX];
    dpi_sampler *stranger; /* part 0 once more, which is given other public logits */
    int64_t sums[SLOTS_MAX][SUMS], strange[SUMS];
    int64_t earlier[2][N_TOKENS][SUMS]; /* of part 0: text and token */
    int32_t n_earlier[2][N_TOKENS];
    int32_t n; /* entries of sums, of this token */
} text;

static int32_t give(void *user, void *buffer, size_t n_bytes) {
    source *s = user;
    unsigned char *out = buffer;
    s->n_calls++;
    for (size_t i = 0; i < n_bytes; i++) {
        s->state = s->state * 6364136223846793005u + 1442695040888963407u;
        out[i] = (unsigned char)(s->state >> 56);
    }
    return 0;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void random_options(dpi_audit *a, dpi_sampler_options *o, int32_t i) {
    dpi_sampler_options_init(o);
    o->accountant = i % 2 ? DPI_ACCOUNTANT_FILTER : DPI_ACCOUNTANT_ZCDP;
    o->adjacency = i / 2 % 3;
    o->center = i / 6 % 2;
    o->pace = (i / 2 + i / 12) % 4; /* each in the first few, too */
    dpi_audit_options_draw(a, o);
    o->n_ref = 1 + dpi_audit_below(a, SLOTS_MAX);
    if (dpi_audit_below(a, 3) == 0)
        dpi_audit_units(a, o);
    o->n_tokens = N_TOKENS;
    o->top_k *= dpi_audit_below(a, 2);
    o->rho = exp(5 * dpi_audit_uniform(a) - 3);
    if (o->pace == DPI_PACE_TOP || o->pace == DPI_PACE_CHANGE)
        o->pace_theta = o->pace == DPI_PACE_TOP ? .5 : .05;
    if (o->pace_theta > 0 && (i < 12 || dpi_audit_below(a, 2)))
        o->pace_tokens = 1 + dpi_audit_below(a, N_TOKENS - 1); /* a quota that ends */
    if (i % 8 == 0) { /* a clip bound so large that sums are beyond 32 bits */
        o->rho = 1e6;
        o->denominator = 64;
    }
}

/* Public logits stay as they are for some tokens, so that only the token's number tells them
 * apart. Records are often beyond the clip bound, all on one side. */
static void random_world(text *x) {
    dpi_audit *a = x->audit;
    for (int t = 0; t < N_TOKENS; t++) {
        dpi_audit_case *w = &x->world[t];
        w->options = x->world[0].options;
        dpi_audit_logits(a, w);
        if (t > 0 && dpi_audit_below(a, 2))
            memcpy(w->public_logits, w[-1].public_logits, sizeof w->public_logits);
        for (int j = 0; j < DPI_AUDIT_REFS && dpi_audit_below(a, 8); j++)
            for (int y = 0; y < V; y += 3)
                w->reference[j][y] = y % 2 ? 1e5f : -1e5f;
    }
    for (int32_t i = 0; i < x->world[0].options.n_ref; i++) { /* a random order */
        const int32_t j = dpi_audit_below(a, i + 1);
        x->order[i] = x->order[j];
        x->order[j] = i;
    }
}

/* The parts whose borders are the bits of `cuts`. */
static dpi_status open_parts(text *x, uint32_t cuts) {
    dpi_sampler_options o = x->world[0].options;
    const int32_t n_ref = o.n_ref;
    x->n_parts = 0;
    for (int32_t j = 0; j < n_ref; j++)
        if (j == 0 || cuts >> (j - 1) & 1)
            x->first[x->n_parts++] = j;
    x->first[x->n_parts] = n_ref;
    o.random = give;
    o.random_user = &x->whole_bits;
    DPI_TRY(dpi_sampler_create(&o, &x->whole, x->audit->err));
    for (int32_t i = x->n_parts - 1; i >= 0; i--) {
        o.n_ref = x->first[i + 1] - x->first[i];
        o.random_user = &x->part_bits[i];
        DPI_TRY(dpi_sampler_create(&o, &x->part[i], x->audit->err));
    }
    return dpi_sampler_create(&o, &x->stranger, x->audit->err);
}

static void close_parts(text *x) {
    dpi_sampler_free(x->whole);
    dpi_sampler_free(x->stranger);
    for (int32_t i = 0; i < SLOTS_MAX; i++) {
        dpi_sampler_free(x->part[i]);
        x->part[i] = NULL;
    }
    x->whole = x->stranger = NULL;
}

static dpi_status begin(text *x, int32_t number) {
    dpi_error *err = x->audit->err;
    dpi_part part;
    dpi_part_init(&part);
    part.count = x->n_parts;
    part.text = number;
    DPI_TRY(dpi_sampler_begin(x->whole, err));
    DPI_TRY(dpi_sampler_begin_part(x->stranger, &part, err));
    for (part.index = 0; part.index < part.count; part.index++)
        DPI_TRY(dpi_sampler_begin_part(x->part[part.index], &part, err));
    x->whole_bits = (source){.state = dpi_audit_random(x->audit)};
    for (int32_t i = 0; i < x->n_parts; i++)
        x->part_bits[i] = x->whole_bits;
    return DPI_STATUS_OK;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* The sums of each part, and of a part with other public logits: one candidate's by 2^-10. */
static dpi_status part_sums(text *x, int32_t number, int32_t t) {
    const dpi_audit_case *w = &x->world[t];
    const int32_t M = dpi_audit_per_unit(w);
    dpi_error *err = x->audit->err;
    float other[V];
    for (int32_t i = 0; i < w->options.n_ref; i++)
        memcpy(x->slots + i * M, w->pointers + x->order[i] * M, (size_t)M * sizeof *x->slots);
    for (int32_t i = 0; i < x->n_parts; i++) {
        int32_t n;
        DPI_TRY(dpi_sampler_partial(x->part[i], w->public_logits, x->slots + x->first[i] * M,
                                    x->sums[i], &n, err));
        dpi_audit_hold(x->audit, i == 0 || n == x->n, "parts have other candidates");
        x->n = n;
    }
    memcpy(x->earlier[number][t], x->sums[0], sizeof x->sums[0]);
    x->n_earlier[number][t] = x->n;
    memcpy(other, w->public_logits, sizeof other);
    const dpi_sampler *s = x->part[0];
    other[s->support[dpi_audit_below(x->audit, (int32_t)s->n_support)]] -= 0x1p-10f;
    return dpi_sampler_partial(x->stranger, other, x->slots, x->strange, &(int32_t){0}, err);
}

static void add(int64_t *sums, const int64_t *others, int32_t n, int64_t times) {
    for (int32_t i = 0; i < n; i++)
        sums[i] += times * others[i];
}

/* Added as an all-reduce does it. */
static void reduce(const text *x, int64_t *sums) {
    memset(sums, 0, SUMS * sizeof *sums);
    for (int32_t i = 0; i < x->n_parts; i++)
        add(sums, x->sums[i], x->n, 1);
}

/* ---- What must be refused -------------------------------------------------------------------- */

static void hold_no_draw(text *x, int32_t t, const int64_t *sums, const char *failure) {
    dpi_error err;
    int32_t token = -1;
    const dpi_status status = dpi_sampler_step_merged(x->part[0], x->world[t].public_logits, sums,
                                                      x->n, &token, &err);
    dpi_audit_hold(x->audit, status == DPI_STATUS_ARG && token == -1, failure);
}

/* `odd` stands for the sums of part 0, or comes to those of part 1. */
static void hold_odd(text *x, int32_t t, const int64_t *odd, const char *failure) {
    int64_t sums[SUMS], before[SUMS];
    dpi_error err;
    reduce(x, sums);
    add(sums, x->sums[0], x->n, -1);
    add(sums, odd, x->n, 1);
    hold_no_draw(x, t, sums, failure);
    if (x->n_parts == 1)
        return;
    memcpy(sums, x->sums[1], sizeof sums);
    memcpy(before, sums, sizeof before);
    dpi_audit_hold(x->audit, dpi_sums_merge(sums, odd, x->n, &err) == DPI_STATUS_ARG &&
                                 memcmp(sums, before, sizeof sums) == 0,
                   failure);
}

static void check_refused(text *x, int32_t number, int32_t t) {
    int64_t sums[SUMS];
    dpi_error err;
    if (x->part[0]->n_support > 1) /* a single one has no other logit beside it */
        hold_odd(x, t, x->strange, "sums over other candidates are drawn from");
    if (t > 0 && x->n_earlier[number][t - 1] == x->n)
        hold_odd(x, t, x->earlier[number][t - 1], "sums of another token are drawn from");
    if (number > 0 && x->n_earlier[0][t] == x->n)
        hold_odd(x, t, x->earlier[0][t], "sums of another text are drawn from");
    reduce(x, sums);
    add(sums, x->sums[0], x->n, 1);
    hold_no_draw(x, t, sums, "a part counts twice");
    add(sums, x->sums[x->n_parts - 1], x->n, -1);
    if (x->n_parts > 1) /* as many as there should be */
        hold_no_draw(x, t, sums, "a part counts twice in the place of another");
    add(sums, x->sums[0], x->n, -1);
    hold_no_draw(x, t, sums, "a part is missing");
    memcpy(sums, x->sums[0], sizeof sums);
    dpi_audit_hold(x->audit, dpi_sums_merge(sums, x->sums[0], x->n, &err) == DPI_STATUS_ARG,
                   "a part merges with itself");
}

/* ---- One text -------------------------------------------------------------------------------- */

/* One token in both. */
static dpi_status compare_token(text *x, int32_t number, int32_t t) {
    dpi_audit *a = x->audit;
    const dpi_audit_case *w = &x->world[t];
    const float *p = w->public_logits;
    int64_t merged[SUMS] = {0}, reduced[SUMS];
    int32_t token, expected;
    dpi_distribution d;
    DPI_TRY(part_sums(x, number, t));
    reduce(x, reduced);
    for (int32_t i = x->n_parts - 1; i >= 0; i--)
        DPI_TRY(dpi_sums_merge(merged, x->sums[i], x->n, a->err));
    DPI_TRY(dpi_sampler_distribution(x->whole, p, w->pointers, &d, a->err));
    const size_t n_bytes = (size_t)d.n_support * sizeof *d.sum;
    dpi_audit_hold(a, x->n == DPI_SUMS_HEADER + d.n_support, "parts have other candidates");
    dpi_audit_hold(a, memcmp(merged, reduced, (size_t)x->n * sizeof *merged) == 0,
                   "merged sums are not those that an all-reduce adds");
    dpi_audit_hold(a, memcmp(reduced + DPI_SUMS_HEADER, d.sum, n_bytes) == 0,
                   "the sums of parts are not those of the whole");
    check_refused(x, number, t);
    if (a->result.failure) /* whatever was drawn, the two have parted */
        return DPI_STATUS_OK;
    DPI_TRY(dpi_sampler_step(x->whole, p, w->pointers, &expected, a->err));
    DPI_TRY(dpi_sampler_step_merged(x->part[0], p, t % 2 ? merged : reduced, x->n, &token, a->err));
    dpi_audit_hold(a, token == expected, "the same bits draw another token from merged sums");
    dpi_error err;
    dpi_audit_hold(a, dpi_sampler_step_merged(x->part[0], p, merged, x->n, &token, &err) ==
                          DPI_STATUS_STATE,
                   "two tokens are drawn from the same sums");
    a->result.n_cases++;
    return DPI_STATUS_OK;
}

/* A part alone never draws, and only the one that draws uses bits. */
static void check_parts(text *x) {
    dpi_error err;
    for (int32_t i = 0; i < x->n_parts; i++) {
        int32_t token;
        dpi_audit_hold(x->audit, x->part_bits[i].n_calls == (i == 0 ? N_TOKENS : 0),
                       "a part that does not draw uses random bits");
        dpi_audit_hold(x->audit, dpi_sampler_tokens_left(x->part[i]) == 0, "a token is not booked");
        dpi_audit_hold(x->audit, x->n_parts == 1 ||
                                     dpi_sampler_step(x->part[i], x->world[0].public_logits,
                                                      x->slots, &token, &err) == DPI_STATUS_STATE,
                       "a part draws from its own sums alone");
    }
}

static dpi_status play(text *x, uint32_t cuts) {
    DPI_TRY(open_parts(x, cuts));
    for (int32_t number = 0; number < 2; number++) { /* a second text: full budgets */
        DPI_TRY(begin(x, number));
        for (int32_t t = 0; t < N_TOKENS && !x->audit->result.failure; t++)
            DPI_TRY(compare_token(x, number, t));
        if (x->audit->result.failure)
            return DPI_STATUS_OK;
        check_parts(x);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_merge(dpi_audit *a) {
    const int32_t n = dpi_audit_count(a, N_SETTINGS);
    int32_t n_same = 0;
    DPI_TRY(dpi_audit_begin(a, "loss", "InvisibleInk, sums of parts"));
    for (int32_t i = 0; i < n && !a->result.failure; i++) {
        text x = {.audit = a};
        random_options(a, &x.world[0].options, i);
        random_world(&x);
        for (uint32_t cuts = 0; cuts < 1u << (x.world[0].options.n_ref - 1); cuts++) {
            const dpi_status status = play(&x, cuts);
            close_parts(&x);
            DPI_TRY(status);
        }
        n_same += a->result.failure == NULL;
    }
    dpi_audit_end(a, "settings without a difference", n_same, n, n);
    return DPI_STATUS_OK;
}
