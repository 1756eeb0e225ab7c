/* audit_draws.c - draws from outside: what is drawn, against frequencies from the formulas in
 * real arithmetic, and against an exact sampler of another kind. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/methods/sampler.h"

enum { CELLS_MAX = 16, N_REF = 3, N_DRAWS = 1000000, N_PAIRS = 500000 };

/* A batch in which clipping bites, and softmax(p + mean of clipped l - p) on the whole vocabulary.
 */
typedef struct batch {
    int32_t n;
    dpi_sampler_options options;
    dpi_sampler_plan plan;
    float public_logits[CELLS_MAX];
    float reference[N_REF][CELLS_MAX];
    const float *pointers[N_REF];
    double probability[CELLS_MAX];
} batch;

static dpi_status make_batch(dpi_audit *a, int32_t n, batch *b) {
    memset(b, 0, sizeof *b);
    b->n = n;
    dpi_sampler_plan_init(&b->plan);
    dpi_audit_defaults(a, &b->options);
    b->options.n_vocab = n;
    b->options.n_ref = N_REF;
    b->options.n_tokens = 1 << 20;
    b->options.top_k = 0;
    b->options.rho = 2e4; /* C = 0.59 */
    DPI_TRY(dpi_sampler_plan_make(&b->options, &b->plan, a->err));
    double sum = 0;
    for (int32_t y = 0; y < n; y++) {
        b->public_logits[y] = (float)fmax(-1.5, fmin(.7 * dpi_audit_normal(a), 1.5));
        double phi = b->public_logits[y];
        for (int j = 0; j < N_REF; j++) {
            b->reference[j][y] = b->public_logits[y] + (float)dpi_audit_normal(a);
            double d = (double)b->reference[j][y] - (double)b->public_logits[y];
            phi += fmax(-b->plan.clip, fmin(d, b->plan.clip)) / N_REF;
        }
        sum += b->probability[y] = exp(phi);
    }
    for (int j = 0; j < N_REF; j++)
        b->pointers[j] = b->reference[j];
    for (int32_t y = 0; y < n; y++)
        b->probability[y] /= sum;
    return DPI_STATUS_OK;
}

static dpi_status start(dpi_audit *a, const batch *b, dpi_sampler **s) {
    *s = NULL;
    DPI_TRY(dpi_sampler_create(&b->options, s, a->err));
    return dpi_sampler_begin(*s, a->err);
}

static dpi_status draw(dpi_audit *a, const batch *b, dpi_sampler *s, int32_t *token) {
    return dpi_sampler_step(s, b->public_logits, b->pointers, token, a->err);
}

/* ---- The reference sampler: Canonne, Kamath and Steinke 2020, exact integer rejection ------- */

static uint64_t below(dpi_audit *a, uint64_t n) {
    uint64_t limit = UINT64_MAX - UINT64_MAX % n, x;
    do
        x = dpi_audit_random(a);
    while (x >= limit);
    return x % n;
}

/* True with probability exp(-num / den), num <= den. */
static bool bernoulli_exp_unit(dpi_audit *a, uint64_t num, uint64_t den) {
    uint64_t k = 1;
    while (below(a, den * k) < num)
        k++;
    return k % 2 == 1;
}

static bool bernoulli_exp(dpi_audit *a, uint64_t num, uint64_t den) {
    for (; num > den; num -= den)
        if (!bernoulli_exp_unit(a, 1, 1))
            return false;
    return bernoulli_exp_unit(a, num, den);
}

/* tau = 1: the exponent is gap / (2^20 B). A common offset of p is free. */
static void count_reference(dpi_audit *a, const batch *b, int32_t n_draws, int64_t *count) {
    int64_t utility[CELLS_MAX], top = INT64_MIN;
    const int64_t K = b->plan.K;
    for (int32_t y = 0; y < b->n; y++) {
        utility[y] = N_REF * llrint((double)b->public_logits[y] * 1048576);
        for (int j = 0; j < N_REF; j++) {
            double d = ((double)b->reference[j][y] - (double)b->public_logits[y]) * 1048576;
            utility[y] += d >= (double)K ? K : d <= -(double)K ? -K : llrint(d);
        }
        top = utility[y] > top ? utility[y] : top;
    }
    for (int32_t i = 0; i < n_draws; i++) {
        int32_t y;
        do
            y = dpi_audit_below(a, b->n);
        while (!bernoulli_exp(a, (uint64_t)(top - utility[y]), N_REF << 20));
        count[y]++;
    }
}

/* ---- Lines ---------------------------------------------------------------------------------- */

static dpi_status audit_frequencies(dpi_audit *a) {
    const int32_t n = dpi_audit_count(a, N_DRAWS);
    int64_t ours[CELLS_MAX] = {0}, theirs[CELLS_MAX] = {0};
    double x = 0;
    batch b;
    DPI_TRY(make_batch(a, 16, &b));
    DPI_TRY(dpi_audit_begin(a, "draws", "draws against the formula"));
    DPI_TRY(dpi_audit_count_draws(a, &b.options, b.public_logits, b.pointers, n, false, ours));
    dpi_audit_end_chi_square(a, dpi_audit_chi_square(ours, b.probability, 16, n), 15);

    DPI_TRY(dpi_audit_begin(a, "draws", "draws against the reference sampler"));
    count_reference(a, &b, n, theirs);
    for (int y = 0; y < 16; y++)
        if (ours[y] + theirs[y] > 0)
            x += (double)((ours[y] - theirs[y]) * (ours[y] - theirs[y])) /
                 (double)(ours[y] + theirs[y]);
    a->result.n_cases = n;
    dpi_audit_end_chi_square(a, x, 15);
    return DPI_STATUS_OK;
}

/* Consecutive draws are independent: 8 x 8 pairs. */
static dpi_status audit_pairs(dpi_audit *a) {
    const int32_t n = dpi_audit_count(a, N_PAIRS);
    int64_t count[64] = {0};
    double probability[64];
    batch b;
    DPI_TRY(make_batch(a, 8, &b));
    DPI_TRY(dpi_audit_begin(a, "draws", "pairs of consecutive draws"));
    DPI_TRY(dpi_audit_count_draws(a, &b.options, b.public_logits, b.pointers, n, true, count));
    for (int i = 0; i < 64; i++)
        probability[i] = b.probability[i / 8] * b.probability[i % 8];
    dpi_audit_end_chi_square(a, dpi_audit_chi_square(count, probability, 64, n), 63);
    return DPI_STATUS_OK;
}

enum { TEXT = 20 };

static dpi_status draw_text(dpi_audit *a, const batch *b, dpi_sampler *s, int32_t text[TEXT]) {
    DPI_TRY(dpi_sampler_begin(s, a->err));
    for (int i = 0; i < TEXT; i++)
        DPI_TRY(draw(a, b, s, &text[i]));
    return DPI_STATUS_OK;
}

/* Two batches with the same references agree as often as independent draws do, whether one sampler
 * draws both or each has its own. */
static dpi_status audit_batches(dpi_audit *a, bool same_sampler) {
    const int32_t n = dpi_audit_count(a, 10000);
    double collision = 0;
    int64_t n_agree = 0;
    batch b;
    dpi_sampler *s, *t = NULL;
    DPI_TRY(make_batch(a, 16, &b));
    DPI_TRY(dpi_audit_begin(
        a, "draws", same_sampler ? "two texts of one sampler" : "two samplers side by side"));
    dpi_status status = start(a, &b, &s);
    if (status == DPI_STATUS_OK)
        status = start(a, &b, &t);
    for (int32_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        int32_t x[TEXT], y[TEXT];
        status = draw_text(a, &b, s, x);
        if (status == DPI_STATUS_OK)
            status = draw_text(a, &b, same_sampler ? s : t, y);
        for (int k = 0; k < TEXT && status == DPI_STATUS_OK; k++)
            n_agree += x[k] == y[k];
    }
    dpi_sampler_free(s);
    dpi_sampler_free(t);
    DPI_TRY(status);
    for (int y = 0; y < 16; y++)
        collision += b.probability[y] * b.probability[y];
    const double total = (double)n * TEXT;
    const double z =
        ((double)n_agree - total * collision) / sqrt(total * collision * (1 - collision));
    a->result.n_cases = (int64_t)n * TEXT;
    dpi_audit_end_chance(a, "p of agreement", dpi_audit_normal_tail(z));
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_draws(dpi_audit *a) {
    DPI_TRY(audit_frequencies(a));
    DPI_TRY(audit_pairs(a));
    DPI_TRY(audit_batches(a, true));
    return audit_batches(a, false);
}

/* Each record joins batch 0..4 with probability q / 5 or none, whatever the record before did:
 * pairs of consecutive records, 6 x 6. */
dpi_status dpi_audit_assignment(dpi_audit *a) {
    enum { N_BATCHES = 5, N = N_BATCHES + 1 };
    const double q = .6;
    const int32_t n = dpi_audit_count(a, 300000);
    int64_t count[N * N] = {0};
    double probability[N * N];
    DPI_TRY(dpi_audit_begin(a, "draws", "secret assignment"));
    for (int32_t i = 0; i < n; i++) {
        int32_t x, y;
        DPI_TRY(
            dpi_assign_secret(q, N_BATCHES, a->options.random, a->options.random_user, &x, a->err));
        DPI_TRY(
            dpi_assign_secret(q, N_BATCHES, a->options.random, a->options.random_user, &y, a->err));
        count[N * (x + 1) + y + 1]++;
    }
    for (int i = 0; i < N * N; i++)
        probability[i] = (i / N ? q / N_BATCHES : 1 - q) * (i % N ? q / N_BATCHES : 1 - q);
    a->result.n_cases = n;
    dpi_audit_end_chi_square(a, dpi_audit_chi_square(count, probability, N * N, n), N * N - 1);
    return DPI_STATUS_OK;
}
