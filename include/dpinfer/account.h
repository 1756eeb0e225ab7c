/* account.h - what a budget means: conversions between rho, epsilon and delta, and composition.
 * No model is needed. */
#ifndef DPINFER_ACCOUNT_H
#define DPINFER_ACCOUNT_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* zCDP to approximate DP, by the optimal order (docs/spec.md 4.1). Each returns the safe end:
 * delta and epsilon are upper bounds, rho is a lower bound.
 * Ranges: rho in (0, 1e6], epsilon in (0, 1e6], delta in (0, 1). Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_zcdp_delta(double rho, double epsilon, double *delta,
                                                 dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_zcdp_epsilon(double rho, double delta, double *epsilon,
                                                   dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_zcdp_rho(double epsilon, double delta, double *rho,
                                               dpi_error *err);

#define DPI_BR_TOKENS_MAX 10240

/* n_tokens tokens, each of bounded range eta and each chosen knowing the ones before: the exact
 * worst case over adaptive adversaries (docs/spec.md 4.2), discretised upwards. Tighter than zCDP.
 * delta and epsilon are upper bounds (epsilon within 1e-9 of what dpi_br_delta gives), eta is
 * the largest that fits, less 1e-9 of it at most.
 * Ranges: eta in (0, 1e3], n_tokens 1..DPI_BR_TOKENS_MAX, epsilon in (0, 1e6], delta in (0, 1).
 * Time: some 30 ms for delta at 500 tokens, ten times that for the other two.
 * Errors: ARG, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_br_delta(double eta, int32_t n_tokens, double epsilon,
                                               double *delta, dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_br_epsilon(double eta, int32_t n_tokens, double delta,
                                                 double *epsilon, dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_br_eta(double epsilon, double delta, int32_t n_tokens,
                                             double *eta, dpi_error *err);

/* Secret assignment: each record independently joins one of the batches with total probability
 * q in (0, 1], else none (docs/spec.md 4.4). If the mechanism without it is (epsilon, delta)-DP
 * against the absence of a record, in both directions, then with it the run is
 * (ln(1 + q (e^epsilon - 1)), q delta)-DP. The assignment and the sizes of batches must stay
 * secret and be drawn anew for each run.
 * dpi_subsample_outside: what the run has, upper bounds. dpi_subsample_inside: what the mechanism
 * without it may have so that the run has (epsilon, delta), lower bounds. Ranges as above.
 * Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_subsample_outside(double epsilon, double delta, double q,
                                                        double *epsilon_run, double *delta_run,
                                                        dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_subsample_inside(double epsilon_run, double delta_run,
                                                       double q, double *epsilon, double *delta,
                                                       dpi_error *err);

#define DPI_ALLOCATION_MAX (1 << 30)

/* Random allocation: each record joins one of n_batches batches (1..DPI_ALLOCATION_MAX), each with
 * the same probability and independently of all others, and which one stays secret. Whoever sees
 * what is released of all batches does not know where to look for a record, so that the run costs
 * less than a batch does (Feldman and Shenfeld 2026; dp/PRIVACY.md section 11). What is released of
 * a batch has, against the absence of a record and in both directions,
 *   rho-zCDP, n_tokens tokens of bounded range eta, or a sum with Gaussian noise of multiplier
 *   sigma (0.001..1e6).
 * _epsilon: what the run has at delta, an upper bound, discretised upwards (some 0.2 % above the
 * exact value; INFINITY: beyond 300, of Gaussian noise alone, as others have a bound without
 * secrecy, which also holds below a delta of 1e-100). _rho, _eta: the largest that fits, less 1e-5
 * of it; at least dpi_zcdp_rho and dpi_br_eta. Other ranges as above. With a probability q of
 * joining at all, dpi_subsample_outside applies to the result. Time: some 20 ms for _epsilon, ten
 * times that for the others. Errors: ARG, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_allocation_epsilon(double rho, int32_t n_batches,
                                                         double delta, double *epsilon,
                                                         dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_allocation_rho(double epsilon, double delta,
                                                     int32_t n_batches, double *rho,
                                                     dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_allocation_br_epsilon(double eta, int32_t n_tokens,
                                                            int32_t n_batches, double delta,
                                                            double *epsilon, dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_allocation_br_eta(double epsilon, double delta,
                                                        int32_t n_tokens, int32_t n_batches,
                                                        double *eta, dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_allocation_gaussian_epsilon(double sigma, int32_t n_batches,
                                                                  double delta, double *epsilon,
                                                                  dpi_error *err);

/* ---- Renyi divergences at one order ---------------------------------------------------------
 *
 * The currency of a ledger (ledger.h). At a fixed order A >= 2 the divergences of mechanisms that
 * are chosen one after the other add up. A sum of at most dpi_renyi_budget is (epsilon, delta)-DP.
 * Source: Mironov 2017; Canonne, Kamath and Steinke 2020, Proposition 12; Feldman and Zrnic 2021.
 */

#define DPI_RENYI_ORDER_MAX (1 << 20)

/* The integer order at which the largest rho fits (epsilon, delta), 2..DPI_RENYI_ORDER_MAX.
 * Errors: ARG (ranges as above, or no order has a budget above 0). */
DPI_API DPI_MUST_CHECK dpi_status dpi_renyi_order(double epsilon, double delta, int32_t *order,
                                                  dpi_error *err);
/* epsilon - ln(1 - 1/A) + (ln delta + ln A) / (A - 1), rounded down. Errors: ARG (also where it is
 * not above 0). */
DPI_API DPI_MUST_CHECK dpi_status dpi_renyi_budget(double epsilon, double delta, int32_t order,
                                                   double *budget, dpi_error *err);
/* The same backwards: the epsilon at delta that a divergence >= 0 comes to, rounded up; at least
 * 0. Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_renyi_epsilon(double divergence, double delta, int32_t order,
                                                    double *epsilon, dpi_error *err);

/* What is known of the cost of a mechanism. */
typedef enum dpi_cost_kind {
    DPI_COST_ZCDP = 0,     /* x: rho */
    DPI_COST_RANGE = 1,    /* x: eta, a bounded range, as of a token */
    DPI_COST_PURE = 2,     /* x: epsilon, pure DP */
    DPI_COST_GAUSSIAN = 3, /* x: noise multiplier sigma; q: each unit joins with this probability,
                              independently (Poisson), add/remove; 1: all of them */
    DPI_COST_APPROXIMATE = 4 /* x: epsilon, with a delta: refused, it bounds no divergence */
} dpi_cost_kind;

#define DPI_COST_PARTS_MAX 4

/* `n` mechanisms of one kind, each chosen knowing the results before it. */
typedef struct dpi_cost_part {
    int32_t kind; /* a dpi_cost_kind */
    int32_t n;    /* 1..2^30 */
    double x;     /* (0, 1e6] */
    double q;     /* GAUSSIAN: (0, 1]; else 0 */
} dpi_cost_part;

/* Parts one after the other; around all of them, random allocation and secret assignment. */
typedef struct dpi_cost {
    size_t struct_size;
    int32_t n_parts; /* 1..DPI_COST_PARTS_MAX */
    int32_t allocation; /* k, 2..DPI_ALLOCATION_MAX: the parts are those of one of k batches, and
                           which one a record is in stays secret; 0: no */
    double subsample; /* q in (0, 1]: a record joins one of the batches with this probability, else
                         none (dpi_assign_secret), and the parts hold against its absence; 0: no */
    dpi_cost_part parts[DPI_COST_PARTS_MAX];
    uint64_t room[4]; /* all 0: for what is to come */
} dpi_cost;

/* No parts. */
DPI_API void dpi_cost_init_size(dpi_cost *cost, size_t size);
#define dpi_cost_init(o) dpi_cost_init_size((o), sizeof *(o))
/* Adds a part, of which q is 0 unless it is GAUSSIAN. Errors: ARG (ranges, no room). */
DPI_API DPI_MUST_CHECK dpi_status dpi_cost_add(dpi_cost *cost, int32_t kind, int32_t n, double x,
                                               double q, dpi_error *err);
/* The Renyi divergence of order A of all of it, in both directions, rounded up:
 *   ZCDP         A rho
 *   RANGE        the worst law of two log ratios that lie eta apart, exact; at most A eta^2 / 8
 *   PURE         randomised response, exact; at most epsilon
 *   GAUSSIAN     1/(A-1) ln sum_k C(A,k) (1-q)^(A-k) q^k e^(k (k-1) / (2 sigma^2))
 *   allocation   ln E[M^A] / (A-1) for a record that goes, M the mean of k ratios whose moments are
 *                those of the parts; for one that comes less (dp/PRIVACY.md section 14). Above the
 *                order 512: that of the parts
 *   subsample    ln(1 + q (e^((A-1) D) - 1)) / (A-1), D that of the parts, or of allocation
 * dp/PRIVACY.md section 14 has the proofs. Time: GAUSSIAN with q < 1 takes A steps,
 * allocation A^2 ln k.
 * Errors: ARG, UNSUPPORTED (APPROXIMATE). */
DPI_API DPI_MUST_CHECK dpi_status dpi_cost_renyi(const dpi_cost *cost, int32_t order,
                                                 double *divergence, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
