/* amin.h - the parts of Amin et al. 2024 (Algorithm 1), for tests and audits. Internal.
 *
 * A step, while a sparse vector instance is armed:
 *     dpi_amin_distance   logits -> d, the distance of the mean distribution to the public one
 *     dpi_svt_query       d -> above the noisy threshold or not
 *     above:  dpi_sampler_distribution, a draw: a PRIVATE token, and the instance is spent
 *     below:  a token from the public logits, free of charge
 * The theorems are in dp/PRIVACY.md. Threads: a sampler belongs to one thread at a time. */
#ifndef DPI_AMIN_H
#define DPI_AMIN_H

#include "dp/exact/mass.h"
#include "dp/methods/method.h"

/* *distance = sum over y of |sum_i P_i(y) - D P_pub(y)|, P = dpi_mass over the whole
 * vocabulary, D the denominator: 2^30 D times the distance of the paper's equation (2), with the
 * UNCLIPPED distributions. Null slots: see amin.c. Sensitivity: svt_sensitivity below.
 * The arguments are those of dpi_sampler_step; *distance is PRIVATE. */
void dpi_amin_distance(dpi_sampler *sampler, const float *public_logits,
                       const float *const *reference_logits, int64_t *distance);

/* What the options come to beyond dpi_sampler_plan. Distances are integers, in units of 2^-30 / D.
 * All of it is public. */
typedef struct dpi_amin_plan {
    int32_t n_private;       /* private tokens that the budget is divided by */
    int64_t svt_scale;       /* Laplace scale of the threshold; twice that on each distance */
    int64_t svt_threshold;
    int64_t svt_sensitivity; /* what one record moves a distance by, at most */
    double svt_epsilon; /* of one instance, rounded up: 2 svt_sensitivity / svt_scale */
    double rho_svt;          /* the same in zCDP, rounded up; charged when an instance is armed */
} dpi_amin_plan;

/* Of options that dpi_sampler_plan_make accepts. */
dpi_amin_plan dpi_amin_plan_get(const dpi_sampler_options *options);

/* What the current text has spent so far. It is public: whether a token was private is part of the
 * mechanism's output. */
typedef struct dpi_amin_spent {
    int32_t n_armed;   /* sparse vector instances, charged when armed */
    int32_t n_private; /* private tokens */
    double rho;        /* upper bound */
} dpi_amin_spent;

dpi_amin_spent dpi_amin_spent_get(const dpi_sampler *sampler);

/* The armed instance's threshold with its noise; 0: none is armed. PRIVATE: for audits alone. */
int64_t dpi_amin_noisy_threshold(const dpi_sampler *sampler);

#endif
