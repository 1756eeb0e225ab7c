/* pace.h - public pacing: the clip bound of each step, decided before a reference logit is read.
 * Internal.
 *
 * The public model is nearly sure of most tokens of a text. References can hardly move these, so
 * they need no budget. A pace gives each step a clip bound K from public logits and from what was
 * released. A step with K = 0 is FREE: it reads no reference logit and costs nothing.
 * K of a step is
 *
 *     NONE    plan K
 *     TOP     plan K if top <= theta, else 0;                        at most T_p steps, then 0
 *     CHANGE  plan K if dpi_pace_change(top, swing) >= theta, else 0; at most T_p steps, then 0
 *     SHARE   floor(plan K sqrt(1 - top)), or less: what the rest of the budget pays for
 *
 * where top is the probability of the likeliest token on the public distribution.
 *
 * Trusted: top is a function of public data and released tokens. Its value is not trusted: whatever
 * it is, T_p or the budget holds on every path.
 * Cost: a step of clip bound K has bounded range dpi_eta_bound(factor K, a), so it is
 * dpi_rho_token_bound of that in zCDP. Theorem P of dp/PRIVACY.md adds them up.
 * Threads: functions over the caller's objects; all of it is public. */
#ifndef DPI_PACE_H
#define DPI_PACE_H

#include <stdbool.h>

#include "dp/exact/weights.h"
#include "dpinfer/method.h"

/* What a text keeps to. */
typedef struct dpi_pacing {
    int32_t pace;      /* a dpi_pace */
    int32_t n_private; /* TOP, CHANGE: T_p >= 1, the most private steps of a text */
    int32_t factor;    /* a record moves utilities within an interval of length factor K */
    double theta;      /* TOP, CHANGE */
    double swing;      /* CHANGE: references move a log weight by at most this much, up or down */
    double rho;        /* SHARE: the budget of a text; INFINITY: counted elsewhere (filter) */
    int64_t K;         /* of the plan: no step has more */
    uint64_t a;        /* inverse temperature */
} dpi_pacing;

/* What a text has spent. All zero when it begins. */
typedef struct dpi_pace_spent {
    int32_t n_private; /* steps that were not free */
    double rho;        /* what they cost, rounded up */
} dpi_pace_spent;

/* The largest of n >= 1 public weights as a share of their sum, in (0, 1]. The weights are integers
 * that do not depend on the instruction set, and so is the result. */
double dpi_pace_top(const dpi_u128 *weights, size_t n);

/* An upper bound of the total variation distance by which a distribution whose likeliest token has
 * probability `top` can change, where each log weight moves by at most `swing`, up or down. It is
 * reached where the tokens are fine enough. In [0, 1]; never increases with top above 1/2. */
double dpi_pace_change(double top, double swing);

/* K of the next step, in [0, pacing->K]; 0: a free step. */
int64_t dpi_pace_clip(const dpi_pacing *pacing, const dpi_pace_spent *spent, double top);

/* No step that is left has another K than 0, whatever its `top`. */
bool dpi_pace_is_over(const dpi_pacing *pacing, const dpi_pace_spent *spent);

/* Adds a step of clip bound K, which dpi_pace_clip gave for `spent`, before its token is released.
 * Afterwards spent->n_private <= T_p and spent->rho <= rho hold if they held before. */
void dpi_pace_charge(const dpi_pacing *pacing, dpi_pace_spent *spent, int64_t K);

#endif
