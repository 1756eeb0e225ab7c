/* audit_noise.c - draws of noise: the laws of discrete Laplace and Gaussian noise; of the sparse
 * vector, its answers, and that its threshold is noisy anew for each instance. */
#include <math.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/exact/svt.h"
#include "dp/methods/amin.h"

enum { SCALE = 3, REACH = 400, N_DRAWS = 300000 };

/* P[Z = z], noise.h. */
static double law(double scale, int32_t z) {
    return tanh(1 / (2 * scale)) * exp(-fabs((double)z) / scale);
}

static double laplace(double scale, int64_t z) { return exp(-fabs((double)z) / scale); }

static dpi_status audit_laplace(dpi_audit *a) {
    dpi_audit_cells cells = {.last = 12};
    const int32_t n = dpi_audit_count(a, N_DRAWS);
    DPI_TRY(dpi_audit_begin(a, "draws", "discrete Laplace noise"));
    for (int32_t i = 0; i < n; i++) {
        int64_t z;
        DPI_TRY(dpi_noise_laplace(SCALE, a->options.random, a->options.random_user, &z, a->err));
        dpi_audit_cells_add(&cells, z);
    }
    dpi_audit_end_cells(a, &cells, laplace, SCALE);
    return DPI_STATUS_OK;
}

/* Of variance v / 256. */
static dpi_status audit_gaussian(dpi_audit *a, int64_t v, const char *subject) {
    dpi_audit_cells cells = {.last = 9};
    const int32_t n = dpi_audit_count(a, N_DRAWS);
    DPI_TRY(dpi_audit_begin(a, "draws", subject));
    for (int32_t i = 0; i < n; i++) {
        int64_t z;
        DPI_TRY(dpi_noise_gaussian(v, a->options.random, a->options.random_user, &z, a->err));
        dpi_audit_cells_add(&cells, z);
    }
    dpi_audit_end_cells(a, &cells, dpi_audit_gaussian, (double)v / 256);
    return DPI_STATUS_OK;
}

/* P[x + Lap(2 SCALE) >= Lap(SCALE)]. */
static double above_chance(int32_t x) {
    double sum = 0, tail = 0; /* tail: P[Lap(2 SCALE) >= z - x], from above */
    for (int32_t z = 2 * REACH; z >= -REACH; z--) {
        tail += law(2 * SCALE, z - x);
        if (z <= REACH)
            sum += law(SCALE, z) * tail;
    }
    return sum;
}

/* The first query of fresh instances, below, at and above the threshold. */
static dpi_status audit_answers(dpi_audit *a) {
    enum { N_OFFSETS = 9 };
    const int32_t n = dpi_audit_count(a, N_DRAWS / N_OFFSETS);
    double x = 0;
    DPI_TRY(dpi_audit_begin(a, "draws", "sparse vector, answers"));
    for (int i = 0; i < N_OFFSETS; i++) {
        dpi_svt svt = {.scale = SCALE, .threshold = 1000};
        const int32_t offset = 2 * (i - N_OFFSETS / 2);
        const double p = above_chance(offset);
        int32_t n_above = 0;
        for (int32_t k = 0; k < n; k++) {
            bool above;
            DPI_TRY(dpi_svt_arm(&svt, a->options.random, a->options.random_user, a->err));
            DPI_TRY(dpi_svt_query(&svt, 1000 + offset, a->options.random, a->options.random_user,
                                  &above, a->err));
            n_above += above;
        }
        x += pow(n_above - n * p, 2) / (n * p * (1 - p));
    }
    a->result.n_cases = (int64_t)n * N_OFFSETS;
    dpi_audit_end_chi_square(a, x, N_OFFSETS);
    return DPI_STATUS_OK;
}

/* The number of times that an instance and the next one both fire at once, or both do not. */
static dpi_status play(dpi_audit *a, dpi_sampler *s, const float *logits, int32_t n_instances,
                       int64_t *n_same, int64_t *n_pairs) {
    const float *pointers[] = {logits, logits};
    dpi_amin_spent before = {0};
    bool last = false;
    int32_t n_seen = 0, n_fired = 0;
    DPI_TRY(dpi_sampler_begin(s, a->err));
    /* Noise that makes an instance wait for all that is left of a text is rare, and no fault. */
    while (n_fired < n_instances && dpi_sampler_tokens_left(s) > 0) {
        int32_t token;
        DPI_TRY(dpi_sampler_step(s, logits, pointers, &token, a->err));
        const dpi_amin_spent spent = dpi_amin_spent_get(s);
        const bool fires = spent.n_private > before.n_private;
        n_fired += fires;
        if (spent.n_armed > before.n_armed) { /* the first query of an instance */
            *n_same += n_seen > 0 && fires == last;
            *n_pairs += n_seen > 0;
            last = fires;
            n_seen++;
        }
        before = spent;
    }
    return DPI_STATUS_OK;
}

/* Texts of two records that agree with the public text, with a threshold of 0. */
static void text_options(const dpi_audit *a, int32_t n_vocab, int32_t n_tokens,
                         dpi_sampler_options *o) {
    dpi_audit_defaults(a, o);
    o->method = DPI_METHOD_AMIN;
    o->n_vocab = n_vocab;
    o->n_ref = 2;
    o->n_tokens = n_tokens;
    o->top_k = 0;
    o->rho = 1000;
    o->svt_sigma = 2;
}

/* P[the first k queries at the threshold are below, the next is not], of Laplace noise with scales
 * 1 and 2 as the integers of a text have them: over the noise z of the threshold, by Simpson's
 * rule. */
static double waiting_chance(int32_t k) {
    enum { N_STEPS = 8000 };
    const double reach = 60, h = 2 * reach / N_STEPS;
    double sum = 0;
    for (int i = 0; i <= N_STEPS; i++) {
        const double z = -reach + i * h;
        const double below = z < 0 ? .5 * exp(z / 2) : 1 - .5 * exp(-z / 2);
        const double weight = i == 0 || i == N_STEPS ? 1 : i % 2 ? 4 : 2;
        sum += weight * .5 * exp(-fabs(z)) * pow(below, k) * (1 - below);
    }
    return sum * h / 3;
}

/* How many queries an instance answers until it fires: all against one noisy threshold. With one
 * that is drawn anew for each query, half of them would fire each time. */
static dpi_status audit_queries(dpi_audit *a) {
    enum { V = 8, N_CELLS = 6, N_TOKENS = 4000 };
    const int32_t n_texts = dpi_audit_count(a, 40);
    float logits[V] = {3, 2, 1};
    const float *pointers[] = {logits, logits};
    int64_t count[N_CELLS] = {0}, n = 0;
    double p[N_CELLS], rest = 1;
    dpi_sampler *s = NULL;
    dpi_sampler_options o;
    text_options(a, V, N_TOKENS, &o);
    o.n_private = N_TOKENS;
    o.rho = 1e5;
    DPI_TRY(dpi_audit_begin(a, "draws", "sparse vector, queries of an instance"));
    DPI_TRY(dpi_sampler_create(&o, &s, a->err));
    dpi_status status = DPI_STATUS_OK;
    for (int32_t i = 0; i < n_texts && status == DPI_STATUS_OK; i++) {
        int32_t n_below = 0, token;
        status = dpi_sampler_begin(s, a->err);
        /* An instance that is armed late may not end with the text: the last ones are not counted.
         */
        for (int32_t t = 0, begun = 0; t < N_TOKENS && status == DPI_STATUS_OK; t++) {
            const dpi_amin_spent before = dpi_amin_spent_get(s);
            status = dpi_sampler_step(s, logits, pointers, &token, a->err);
            const bool fires = dpi_amin_spent_get(s).n_private > before.n_private;
            n_below += !fires;
            if (fires && begun < N_TOKENS / 2) {
                count[n_below < N_CELLS ? n_below : N_CELLS - 1]++;
                n++;
            }
            begun = fires ? t + 1 : begun;
            n_below = fires ? 0 : n_below;
        }
    }
    dpi_sampler_free(s);
    DPI_TRY(status);
    for (int32_t k = 0; k < N_CELLS; k++) {
        p[k] = k < N_CELLS - 1 ? waiting_chance(k) : rest;
        rest -= p[k];
    }
    a->result.n_cases = n;
    dpi_audit_end_chi_square(a, dpi_audit_chi_square(count, p, N_CELLS, (double)n), N_CELLS - 1);
    return DPI_STATUS_OK;
}

/* Records that agree with the public text are at distance 0; with a threshold of 0 each instance
 * fires at once with chance 1/2, whatever the one before did. One noise for a whole text would make
 * neighbours alike. */
static dpi_status audit_thresholds(dpi_audit *a) {
    enum { V = 8, N_INSTANCES = 40 };
    const int32_t n_texts = dpi_audit_count(a, 1500);
    float logits[V] = {3, 2, 1};
    int64_t n_same = 0, n_pairs = 0;
    dpi_sampler *s = NULL;
    dpi_sampler_options o;
    text_options(a, V, 100 * N_INSTANCES, &o);
    o.n_private = N_INSTANCES;
    DPI_TRY(dpi_audit_begin(a, "draws", "sparse vector, thresholds"));
    DPI_TRY(dpi_sampler_create(&o, &s, a->err));
    dpi_status status = DPI_STATUS_OK;
    for (int32_t i = 0; i < n_texts && status == DPI_STATUS_OK; i++)
        status = play(a, s, logits, N_INSTANCES, &n_same, &n_pairs);
    dpi_sampler_free(s);
    DPI_TRY(status);
    const double z = (2 * (double)n_same - (double)n_pairs) / sqrt((double)n_pairs);
    a->result.n_cases = n_pairs;
    dpi_audit_end_chance(a, "p of agreement", dpi_audit_normal_tail(z));
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_noise(dpi_audit *a) {
    DPI_TRY(audit_laplace(a));
    DPI_TRY(audit_gaussian(a, 256 * 13, "discrete Gaussian noise"));
    DPI_TRY(audit_gaussian(a, 256 * 16 + 77, "discrete Gaussian noise, another variance"));
    DPI_TRY(audit_answers(a));
    DPI_TRY(audit_queries(a));
    return audit_thresholds(a);
}
