/* mauve.h - how far two sets of texts are from each other, by features of them: MAUVE, and the
 * nearest neighbours.
 *
 * Sources: Pillutla et al. 2021 and 2023 (MAUVE, the frontier integral); Kynkaanniemi et al. 2019
 * (precision and recall). */
#ifndef DPI_EVAL_MAUVE_H
#define DPI_EVAL_MAUVE_H

#include "dpinfer/status.h"

/* Features of a set of texts: at [n, dim]. */
typedef struct eval_vectors {
    float *at;
    int32_t n, dim;
} eval_vectors;

enum {
    MAUVE_WEIGHTS = 25,
    MAUVE_SEEDS_MAX = 16,
    MAUVE_STARTS = 5, /* of k-means, and its rounds */
    MAUVE_ROUNDS = 500,
};

typedef struct mauve_options {
    int32_t n_clusters; /* 0: max(2, round(min(n_p, n_q) / 10)) */
    int32_t n_seeds;    /* scores of so many k-means: 1..MAUVE_SEEDS_MAX */
    uint64_t seed;      /* of the first */
    double scaling;     /* c */
    dpi_cancel_fn cancel;
    void *cancel_user;
} mauve_options;

/* 5 seeds from 25 on, c = 5. */
void mauve_options_init(mauve_options *options);

typedef struct mauve_score {
    double mauve, deviation;  /* mean over seeds, standard deviation */
    double integral;          /* frontier integral, mean over seeds; 0: equal, 1: far */
    double integral_deviation;
    double of_seed[MAUVE_SEEDS_MAX];
    int32_t n_seeds, n_clusters;
    int32_t n_dims; /* that hold 90 % of the variance */
    double x[MAUVE_WEIGHTS + 2], y[MAUVE_WEIGHTS + 2]; /* the curve of the first seed */
} mauve_score;

/* Of the histograms p and q [n], each with sum 1. curve: its x and y are set; may be NULL. */
void mauve_of_histograms(const double *p, const double *q, int32_t n, double scaling,
                         double *mauve, double *integral, mauve_score *curve);

/* Vectors as units of length 1, their principal components that hold 90 % of the variance, k-means
 * on both sets, histograms. map [n_p + n_q, 2], p first, gets the first two components, group
 * [n_p + n_q] the cluster of each, 0..n_clusters-1, by the first seed; NULL: none.
 * Errors: ARG (fewer than 2 vectors, dims that differ), NUMERIC, MEMORY, UNSUPPORTED, CANCELLED. */
dpi_status eval_mauve(const eval_vectors *p, const eval_vectors *q, const mauve_options *options,
                      mauve_score *score, double *map, int32_t *group, dpi_error *err);

/* Share of p in the balls around vectors of q that reach to their k-th nearest neighbour, and the
 * other way. p is what was made, q what is real. Errors: ARG, MEMORY. */
dpi_status eval_neighbours(const eval_vectors *p, const eval_vectors *q, int32_t k,
                           double *precision, double *recall, dpi_error *err);

#endif
