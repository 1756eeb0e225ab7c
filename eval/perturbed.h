/* perturbed.h - a classifier whose weights get noise: output perturbation, a baseline to compare
 * synthetic texts with. In floating point and from a public seed: NOT a private release.
 *
 * Logistic regression of each label against the rest, by rows of length at most 1: the minimum of
 * |w|^2 / 2 + C sum_i ln(1 + exp(-y_i w.x_i)), C = 1 / (n L), L = EVAL_PERTURBED_LAMBDA. A record
 * that is another one moves it by at most 2 C, and all labels' weights, as one vector, by
 * 2 C sqrt(labels); what the solver leaves open adds to it (EVAL_PERTURBED_SLACK). The noise b has
 * density proportional to exp(-epsilon |b| / D), D this bound: epsilon-DP. With a delta it is
 * Gaussian, by zCDP. Words, their weights and the labels are those of the synthetic texts, so they
 * cost nothing.
 *
 * Source: Chaudhuri, Monteleoni, Sarwate 2011, Algorithm 1 and Corollary 8; Mattern et al. 2022,
 * tables 1 and 2. */
#ifndef DPI_EVAL_PERTURBED_H
#define DPI_EVAL_PERTURBED_H

#include "eval/labelled_rows.h"

#define EVAL_PERTURBED_LAMBDA .01
#define EVAL_PERTURBED_SLACK 1e-3 /* of D: gradients that are left, in units of C, one record's */

/* w [n_labels, v->n] of the rows with a label (1..n_labels). Errors: NUMERIC (no convergence),
 * MEMORY. */
dpi_status eval_logistic(const eval_vocabulary *v, const eval_rows *train, double *w,
                         dpi_error *err);

/* D for n rows: how far w moves at most where one row is another one. */
double eval_logistic_sensitivity(int32_t n, int32_t n_labels);

/* b [n] with density proportional to exp(-|b| / scale), or Gaussian. *state: of
 * dpi_random_insecure. */
void eval_noise_of_length(double *b, size_t n, double scale, uint64_t *state);
void eval_noise_gaussian(double *b, size_t n, double sigma, uint64_t *state);

/* Trained on `train` with the words and labels of `synthetic`, tested on `test`: right [test->n],
 * the share of EVAL_PERTURBED_DRAWS draws of noise in which the label of each test text that has
 * one is found; *n of them. epsilon INFINITY: no noise. Errors: ARG (labels, or no test text),
 * NUMERIC, MEMORY; those of dpi_zcdp_rho. */
enum { EVAL_PERTURBED_DRAWS = 5 };
dpi_status eval_classify_perturbed(const eval_texts *synthetic, const eval_texts *train,
                                   const eval_texts *test, double epsilon, double delta,
                                   double *right, int32_t *n, dpi_error *err);

#endif
