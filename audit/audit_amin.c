/* audit_amin.c - loss of Amin et al.: the private token's loss, the sensitivity of the distance,
 * and the ledger of a text. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/exact/svt.h"
#include "dp/methods/amin.h"

enum { V = DPI_AUDIT_VOCAB, N_SETTINGS = 100, N_CASES = 20, N_TEXT_TOKENS = 100 };

/* Records' worth of change between neighbours (docs/spec.md 4.5). */
static int32_t records_moved(const dpi_sampler_options *o) {
    return o->adjacency == DPI_ADJACENCY_REPLACE_BY_NULL && o->subsample == 0 ? 2 : 1;
}

typedef struct setting {
    dpi_audit *audit;
    dpi_audit_pair pair;
    double token_ratio;         /* largest loss / eta */
    long double distance_ratio; /* largest |d - d'| / sensitivity */
} setting;

/* ---- The formulas ---------------------------------------------------------------------------- */

static double top_of(const float *l) {
    double top = -INFINITY;
    for (int y = 0; y < V; y++)
        top = fmax(top, dpi_audit_finite(l[y]));
    return top;
}

/* c = clip_C(l) of the paper's equation (1); `l` NULL: nothing. */
static void clip(const float *l, int64_t K, int64_t c[V]) {
    const double top = l ? top_of(l) : 0;
    for (int y = 0; y < V; y++) {
        const double below = l ? (dpi_audit_finite(l[y]) - top) * 1048576 : 0;
        c[y] = !l ? 0 : below < -2. * (double)K ? -K : (int64_t)rint(below) + K;
    }
}

/* What stands in a slot that holds no record. */
static const float *null_logits(const dpi_audit_case *w) {
    return records_moved(&w->options) == 2 ? w->public_logits : NULL;
}

/* c of the unit in slot j: the mean of its records' c, or what stands in an empty slot. */
static void clip_unit(const dpi_audit_case *w, int32_t j, int64_t K, int64_t c[V]) {
    const int32_t M = dpi_audit_per_unit(w);
    int64_t sum[V] = {0};
    int32_t m = 0;
    for (int32_t k = 0; k < M; k++) {
        clip(w->pointers[j * M + k], K, c);
        for (int y = 0; y < V; y++)
            sum[y] += c[y];
        m += w->pointers[j * M + k] != NULL;
    }
    clip(null_logits(w), K, c);
    for (int y = 0; y < V && m > 0; y++)
        c[y] = dpi_audit_mean(sum[y], m);
}

/* Equation (2), of unclipped distributions, in units of 2^-30 / D. */
static double distance(const dpi_audit_case *w, double D) {
    double sum[V] = {0}, d = 0;
    const int32_t M = dpi_audit_per_unit(w);
    for (int32_t j = 0; j < w->options.n_ref; j++) {
        const int32_t m = dpi_audit_n_records(w, j);
        for (int32_t k = 0; k < M; k++)
            if (w->pointers[j * M + k])
                dpi_audit_add_softmax(w->pointers[j * M + k], NULL, V, 1, 1. / m, sum);
        if (m == 0 && null_logits(w))
            dpi_audit_add_softmax(null_logits(w), NULL, V, 1, 1, sum);
    }
    dpi_audit_add_softmax(w->public_logits, NULL, V, 1, -D, sum);
    for (int y = 0; y < V; y++)
        d += fabs(sum[y]);
    return d * DPI_MASS_ONE;
}

/* ---- Neighbours ------------------------------------------------------------------------------ */

static void check_token(setting *s, const dpi_audit_case *w, int32_t j, const dpi_distribution *d,
                        const dpi_distribution *e) {
    dpi_audit *a = s->audit;
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(s->pair.with);
    int64_t own[V], null[V];
    bool exact = true, bounded = true;
    if (!dpi_audit_hold(a, d->n_support == V && e->n_support == V, "a support is not everything"))
        return;
    clip(null_logits(w), plan->K, null);
    clip_unit(w, j, plan->K, own);
    for (int y = 0; y < V; y++) {
        bounded &= own[y] <= plan->K && own[y] >= -plan->K;
        exact &= d->sum[y] - e->sum[y] == own[y] - null[y];
    }
    dpi_audit_hold(a, bounded && exact, "S differs by other than c of the record");
    s->token_ratio = fmax(s->token_ratio, dpi_audit_loss_ratio(a, d, e, plan->eta));
    dpi_audit_formulas(a, w, plan, 0, 0, 0, d);
}

static void check_distance(setting *s, const dpi_audit_case *w) {
    dpi_audit *a = s->audit;
    const int32_t D = w->options.denominator;
    const int64_t bound = (int64_t)records_moved(&w->options) << 30;
    int64_t d, e;
    dpi_amin_distance(s->pair.with, w->public_logits, w->pointers, &d);
    dpi_amin_distance(s->pair.without, w->public_logits, s->pair.neighbour, &e);
    const int64_t moved = d > e ? d - e : e - d;
    dpi_audit_hold(a, moved <= bound, "the distance moves by more than its sensitivity");
    /* Masses are rounded down, to 2^-30 relative and a unit. */
    const double slack = (w->options.n_ref + D) * (2 * V + DPI_MASS_ONE * 0x1p-28);
    dpi_audit_hold(a, fabs((double)d - distance(w, D)) <= slack,
                   "the distance is not that of the unclipped means");
    s->distance_ratio = fmaxl(s->distance_ratio, (long double)moved / bound);
}

static dpi_status compare(setting *s, const dpi_audit_case *w, int32_t j) {
    DPI_TRY(dpi_audit_pair_compare(s->audit, w, j, &s->pair));
    check_token(s, w, j, &s->pair.d, &s->pair.e);
    check_distance(s, w);
    return DPI_STATUS_OK;
}

/* A record that wants what the public text (and so a null) likes least, among others that are
 * spread, that want the same, or null. All mass is in one place each: the corners of the simplex.
 */
static dpi_status crafted(setting *s, dpi_audit_case *w) {
    const int32_t M = dpi_audit_per_unit(w);
    for (int kind = 0; kind < 5; kind++) {
        dpi_audit_fill(w);
        for (int y = 0; y < V; y++) {
            w->public_logits[y] = y ? 0 : 1000;
            for (int j = 1; j < DPI_AUDIT_REFS; j++)
                w->reference[j][y] = kind == 0 ? (float)(-y) / 8 : kind == 1 && y == 1 ? 1000 : 0;
            w->reference[0][y] = kind == 3 ? NAN : y == 1 ? 1000 : 0;
        }
        for (int j = 1; j < DPI_AUDIT_REFS && kind == 2; j++)
            w->pointers[j] = NULL;
        /* A unit in several corners, alone. */
        for (int j = 0; j < DPI_AUDIT_REFS && kind == 4; j++) {
            for (int y = 0; y < V; y++)
                w->reference[j][y] = y == 1 + j ? 1000 : 0;
            w->pointers[j] = j < M ? w->reference[j] : NULL;
        }
        DPI_TRY(compare(s, w, 0));
    }
    memset(w->pointers, 0, sizeof w->pointers);
    return compare(s, w, 0);
}

static void random_options(dpi_audit *a, dpi_sampler_options *o) {
    o->method = DPI_METHOD_AMIN;
    dpi_audit_options_draw(a, o);
    o->n_ref = 2 + dpi_audit_below(a, DPI_AUDIT_REFS - 1);
    if (o->max_per_unit > 1)
        dpi_audit_units(a, o);
    o->denominator =
        o->adjacency == DPI_ADJACENCY_ADD_REMOVE ? 1 + dpi_audit_below(a, 9) : o->n_ref;
    o->n_tokens = N_TEXT_TOKENS;
    o->n_private = 1 + dpi_audit_below(a, N_TEXT_TOKENS);
    o->rho = exp(8 * dpi_audit_uniform(a) - 3);
    if (o->subsample > 0) { /* it has no budget of rho */
        o->epsilon = 3 + 30 * dpi_audit_uniform(a);
        o->delta = 1e-6;
        o->rho = 0;
    }
    o->svt_sigma = 1e3; /* leaves the budget to the tokens */
    o->svt_threshold = .5;
}

static dpi_status run_setting(setting *s, dpi_audit_case *w) {
    dpi_audit *a = s->audit;
    random_options(a, &w->options);
    DPI_TRY(dpi_audit_pair_create(a, &w->options, &s->pair));
    const int32_t factor = 2 * records_moved(&w->options);
    dpi_audit_hold(a, dpi_audit_charges(&w->options, dpi_sampler_plan_get(s->pair.with), factor),
                   "the plan charges less than its integers cost");
    for (int i = 0; i < N_CASES; i++) {
        dpi_audit_logits(a, w);
        DPI_TRY(compare(s, w, dpi_audit_below(a, w->options.n_ref)));
    }
    return crafted(s, w);
}

/* subsample 0: batches are not secret. */
static dpi_status audit_adjacency(dpi_audit *a, int32_t adjacency, double subsample, bool units,
                                  const char *subject) {
    setting s = {.audit = a};
    const int32_t n = dpi_audit_count(a, N_SETTINGS);
    DPI_TRY(dpi_audit_begin(a, "loss", subject));
    for (int32_t i = 0; i < n; i++) {
        dpi_audit_case w;
        memset(&w, 0, sizeof w);
        dpi_sampler_options_init(&w.options);
        w.options.adjacency = adjacency;
        w.options.subsample = subsample;
        w.options.max_per_unit = units ? 2 : 0;
        dpi_status status = run_setting(&s, &w);
        dpi_audit_pair_free(&s.pair);
        DPI_TRY(status);
    }
    dpi_audit_hold(a, s.distance_ratio > .999, "the distance's sensitivity is not reached");
    dpi_audit_end(a, "largest loss / eta", s.token_ratio, .999, 1 + 1e-9);
    return DPI_STATUS_OK;
}

/* ---- The ledger ------------------------------------------------------------------------------ */

/* What instances and tokens cost, from the integers: Lemmas A1, A4 and A5 of dp/PRIVACY.md. */
static long double by_hand(const dpi_sampler *s, int32_t n_armed, int32_t n_private) {
    const dpi_sampler_options *o = dpi_sampler_options_get(s);
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(s);
    const long double ln2 = 0.693147180559945309417232121458176568L, m = records_moved(o);
    const long double eta = 2 * m * (long double)plan->K * (long double)plan->a * ln2 * 0x1p-48L;
    const long double scale = o->denominator * (long double)o->svt_sigma;
    const long double epsilon = o->svt_sigma > 0 ? 2 * m / scale : 0;
    return n_armed * epsilon * tanhl(epsilon / 2) + n_private * eta * eta / 8;
}

/* A private token is one that the public logits, all on token 0, never give. */
static dpi_status check_text(dpi_audit *a, dpi_sampler *s, const dpi_audit_case *w, bool is_public,
                             long double *most) {
    const dpi_amin_plan plan = dpi_amin_plan_get(&w->options);
    const bool has_svt = w->options.svt_sigma > 0;
    int32_t token, n_private = 0;
    DPI_TRY(dpi_sampler_begin(s, a->err));
    for (int32_t t = 0; t < N_TEXT_TOKENS; t++) {
        const dpi_amin_spent before = dpi_amin_spent_get(s);
        DPI_TRY(dpi_sampler_step(s, w->public_logits, w->pointers, &token, a->err));
        const dpi_amin_spent spent = dpi_amin_spent_get(s);
        a->result.n_cases++;
        n_private += token != 0;
        const bool affordable = before.n_private < plan.n_private;
        /* Private tokens that show in the text were booked. */
        dpi_audit_hold(a, n_private <= spent.n_private, "a private token is not booked");
        dpi_audit_hold(a, n_private <= plan.n_private, "more private tokens than agreed");
        dpi_audit_hold(a, !has_svt || spent.n_armed >= spent.n_private,
                       "a private token without a sparse vector");
        dpi_audit_hold(a, !(has_svt && affordable && t == 0) || spent.n_armed == 1,
                       "the sparse vector is not charged when it is armed");
        dpi_audit_hold(a, spent.rho >= by_hand(s, spent.n_armed, spent.n_private) * (1 - 1e-9L),
                       "the ledger holds less than was spent");
        dpi_audit_hold(a, spent.rho <= w->options.rho, "more than rho is spent");
        dpi_audit_hold(a, !is_public || spent.n_private == 0,
                       "a private token below the threshold");
        *most = fmaxl(*most,
                      by_hand(s, spent.n_armed, fmax(spent.n_private, n_private)) / w->options.rho);
    }
    dpi_audit_hold(
        a, dpi_sampler_step(s, w->public_logits, w->pointers, &token, NULL) == DPI_STATUS_BUDGET,
        "a text goes on after its last token");
    return DPI_STATUS_OK;
}

/* Options of a text with a sparse vector, or without (sigma 0), and with a record in each slot. */
static void text_case(dpi_audit *a, int32_t adjacency, double threshold, double sigma,
                      dpi_audit_case *w) {
    memset(w, 0, sizeof *w);
    dpi_audit_defaults(a, &w->options);
    w->options.adjacency = adjacency;
    random_options(a, &w->options);
    w->options.n_private = 1 + dpi_audit_below(a, 20);
    w->options.svt_threshold = threshold;
    w->options.svt_sigma = sigma;
    w->options.rho = 20 + 200 * dpi_audit_uniform(a);
    w->options.tau = 1;
    w->options.denominator = w->options.n_ref = DPI_AUDIT_REFS;
    dpi_audit_fill(w);
}

/* Public logits that want token 0, records that want token 1, and a sparse vector that always
 * (0), never (1) or sometimes (2) fires, or is not there (3). */
static dpi_status audit_text(dpi_audit *a, int32_t adjacency, int32_t kind, long double *most) {
    static const double thresholds[] = {-1000, 1000, 1, 0};
    dpi_audit_case w;
    dpi_sampler *s = NULL;
    text_case(a, adjacency, thresholds[kind], kind == 3 ? 0 : 2, &w);
    for (int y = 0; y < V; y++) {
        w.public_logits[y] = y == 0 ? 100 : 0;
        for (int j = 0; j < DPI_AUDIT_REFS; j++)
            w.reference[j][y] = y == 1 ? 100 : 0;
    }
    DPI_TRY(dpi_sampler_create(&w.options, &s, a->err));
    dpi_status status = DPI_STATUS_OK;
    for (int i = 0; i < 3 && status == DPI_STATUS_OK; i++)
        status = check_text(a, s, &w, kind == 1, most);
    dpi_sampler_free(s);
    return status;
}

/* ---- With a pace ----------------------------------------------------------------------------- */

/* One token in both worlds: free where the public logits are sure, and after the quota. */
static dpi_status compare_paced(dpi_audit *a, setting *s, dpi_audit_case *w, bool is_sure) {
    const int32_t *ids;
    int32_t n, tokens[2];
    for (int y = 0; y < V; y++)
        w->public_logits[y] = is_sure && y == 0 ? 100 : 0;
    const float *const *references[] = {w->pointers, s->pair.neighbour};
    dpi_sampler *samplers[] = {s->pair.with, s->pair.without};
    for (int i = 0; i < 2; i++) {
        const int32_t n_private = dpi_sampler_n_private(samplers[i]);
        const bool is_free = is_sure || n_private == w->options.n_private;
        DPI_TRY(dpi_sampler_candidates(samplers[i], w->public_logits, &ids, &n, a->err));
        dpi_audit_hold(a, (ids && n == 0) == is_free, "a decision is not that of the pace");
        dpi_audit_hold(a, dpi_sampler_needs_references(samplers[i]) ==
                              (n_private < w->options.n_private),
                       "references are needed after the quota, or not before");
        DPI_TRY(dpi_sampler_step(samplers[i], w->public_logits, references[i], &tokens[i], a->err));
        dpi_audit_hold(a, dpi_sampler_n_private(samplers[i]) == n_private + !is_free,
                       "a private token is counted as free, or a free one as private");
        dpi_audit_hold(a, !is_sure || tokens[i] == 0, "a reference is in a free step");
    }
    a->result.n_cases++;
    return DPI_STATUS_OK;
}

/* Texts with all tokens private but the free ones; the neighbour is without record 0. */
static dpi_status audit_paced_text(dpi_audit *a, int32_t adjacency, double *most) {
    setting s = {.audit = a};
    dpi_audit_case w;
    memset(&w, 0, sizeof w);
    dpi_sampler_options_init(&w.options);
    w.options.adjacency = adjacency;
    random_options(a, &w.options);
    w.options.svt_sigma = w.options.svt_threshold = 0;
    w.options.tau = 1;
    w.options.n_private = 1 + dpi_audit_below(a, 20);
    w.options.pace = DPI_PACE_TOP;
    w.options.pace_theta = .5;
    dpi_audit_fill(&w);
    for (int j = 0; j < DPI_AUDIT_REFS; j++)
        for (int y = 0; y < V; y++)
            w.reference[j][y] = y == 1 ? 100 : 0;
    DPI_TRY(dpi_audit_pair_create(a, &w.options, &s.pair));
    dpi_status status = dpi_audit_pair_compare(a, &w, 0, &s.pair); /* makes the neighbour */
    if (status == DPI_STATUS_OK)
        status = dpi_audit_pair_begin(a, &s.pair);
    for (int32_t t = 0; t < N_TEXT_TOKENS && status == DPI_STATUS_OK; t++)
        status = compare_paced(a, &s, &w, dpi_audit_below(a, 2));
    *most = fmax(*most, (double)dpi_sampler_n_private(s.pair.with) / w.options.n_private);
    dpi_audit_pair_free(&s.pair);
    return status;
}

/* Free tokens and others, with a sparse vector: a threshold that has other noise than before was
 * charged once more. */
static dpi_status audit_paced_thresholds(dpi_audit *a, int32_t adjacency) {
    dpi_audit_case w;
    dpi_sampler *s = NULL;
    int32_t token;
    text_case(a, adjacency, dpi_audit_below(a, 2) ? 1 : 1000, 2, &w);
    w.options.pace = DPI_PACE_TOP;
    w.options.pace_theta = .5;
    dpi_audit_logits(a, &w);
    dpi_audit_fill(&w); /* no slot is null */
    DPI_TRY(dpi_sampler_create(&w.options, &s, a->err));
    dpi_status status = dpi_sampler_begin(s, a->err);
    for (int32_t t = 0; t < N_TEXT_TOKENS && status == DPI_STATUS_OK; t++) {
        const int64_t before = dpi_amin_noisy_threshold(s);
        const int32_t n_armed = dpi_amin_spent_get(s).n_armed;
        const bool is_sure = dpi_audit_below(a, 2);
        for (int y = 0; y < V; y++)
            w.public_logits[y] = is_sure && y == 0 ? 100 : 0;
        status = dpi_sampler_step(s, w.public_logits, w.pointers, &token, a->err);
        const int64_t now = dpi_amin_noisy_threshold(s); /* 0: it is spent, and wiped */
        dpi_audit_hold(a, now == before || now == 0 ||
                              dpi_amin_spent_get(s).n_armed == n_armed + 1,
                       "a threshold has new noise that is not charged");
        a->result.n_cases++;
    }
    dpi_sampler_free(s);
    return status;
}

dpi_status dpi_audit_amin(dpi_audit *a) {
    double n_most = 0;
    long double most = 0;
    static const char *const subjects[2][3] = {
        {"Amin, replace-by-null", "Amin, add-remove", "Amin, zero-out"},
        {"Amin, units, replace-by-null", "Amin, units, add-remove", "Amin, units, zero-out"}};
    for (int units = 0; units < 2; units++)
        for (int32_t adjacency = 0; adjacency <= DPI_ADJACENCY_ZERO_OUT; adjacency++)
            DPI_TRY(audit_adjacency(a, adjacency, 0, units, subjects[units][adjacency]));
    DPI_TRY(
        audit_adjacency(a, DPI_ADJACENCY_REPLACE_BY_NULL, .3, false, "Amin, secret assignment"));
    DPI_TRY(dpi_audit_begin(a, "loss", "Amin, ledgers of texts"));
    for (int32_t i = 0, n = dpi_audit_count(a, 20); i < n; i++)
        for (int32_t adjacency = 0; adjacency <= DPI_ADJACENCY_ZERO_OUT; adjacency++)
            for (int32_t kind = 0; kind < 4; kind++)
                DPI_TRY(audit_text(a, adjacency, kind, &most));
    dpi_audit_end(a, "largest spending / rho", (double)most, .999, 1);
    DPI_TRY(dpi_audit_begin(a, "loss", "Amin, texts with a pace"));
    for (int32_t i = 0, n = dpi_audit_count(a, 20); i < n; i++)
        for (int32_t adjacency = 0; adjacency <= DPI_ADJACENCY_ZERO_OUT; adjacency++) {
            DPI_TRY(audit_paced_text(a, adjacency, &n_most));
            DPI_TRY(audit_paced_thresholds(a, adjacency));
        }
    dpi_audit_end(a, "private tokens / quota", n_most, 1, 1);
    return DPI_STATUS_OK;
}
