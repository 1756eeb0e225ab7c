/* lines.h - what the audits of docs/spec.md section 5 share. Internal.
 *
 * AN AUDIT IS A FILE of its own, audit_<name>.c, with one function that plays records against the
 * functions that write texts and reports lines:
 *     dpi_audit_begin(a, "loss", "InvisibleInk, ...");
 *     ... dpi_audit_hold(a, condition, "what is wrong if it does not hold"); ...
 *     dpi_audit_end(a, "what was measured", measured, min, max);
 * What it expects is computed here a second time, from the formulas, in real arithmetic or by brute
 * force, never by the code under audit. A function returns an error only where the audited code
 * failed although no failure was planted.
 *
 * Everything in an audit is made up, so that nothing in it is private. Threads: one at a time. */
#ifndef DPI_AUDIT_LINES_H
#define DPI_AUDIT_LINES_H

#include <stdbool.h>

#include "dpinfer/account.h"
#include "audit/audit.h"
#include "dpinfer/batch.h"
#include "dpinfer/bounds.h"
#include "dpinfer/ledger.h"
#include "dpinfer/method.h"
#include "dp/exact/weights.h"
#include "dp/methods/sampler.h"

typedef enum dpi_audit_verdict {
    DPI_AUDIT_PASSED,
    DPI_AUDIT_SUSPICIOUS, /* statistics that a sound program has now and then */
    DPI_AUDIT_FAILED
} dpi_audit_verdict;

typedef struct dpi_audit {
    dpi_audit_options options;
    dpi_audit_fn on_result;
    void *user;
    dpi_error *err;
    uint64_t seed; /* state of the generator of cases */
    int32_t n_failed;
    int32_t n_looks; /* at the current audit: 0 or 1 looks before this one */
    dpi_audit_verdict verdict;
    /* of the current line */
    dpi_audit_result result;
    double started, chance; /* the smallest chance of its statistics */
} dpi_audit;

/* ---- lines.c -------------------------------------------------------------------------------- */

/* Starts a line; CANCELLED if the caller wants so. */
dpi_status dpi_audit_begin(dpi_audit *audit, const char *kind, const char *subject);
/* Notes `failure` (a static string) unless `holds`; returns `holds`. */
bool dpi_audit_hold(dpi_audit *audit, bool holds, const char *failure);
/* Reports the line. */
void dpi_audit_end(dpi_audit *audit, const char *quantity, double measured, double min, double max);

/* Statistics. A sound program fails a line of n chances with a chance of at most n false_alarm:
 * at once where a chance is below half of it (`certain`), and where it is below the root of that
 * half (`suspicious`) in two looks, which are independent. dpi_audit_all looks again, with four
 * times the effort. */
double dpi_audit_certain(const dpi_audit *audit);
double dpi_audit_suspicious(const dpi_audit *audit);
/* Chance that a normal deviate is as far from 0 as z. */
double dpi_audit_normal_tail(double z);
/* Chance that chi-square with n degrees of freedom exceeds x; and chi-square of n counts, of which
 * total p are expected. */
double dpi_chi_square_tail(double x, int32_t n);
double dpi_audit_chi_square(const int64_t *count, const double *p, int32_t n, double total);
/* p: how often a sound program's draws are at least as far from what is expected. */
void dpi_audit_chance(dpi_audit *audit, double p);
/* Reports a line whose measure is such a p. */
void dpi_audit_end_chance(dpi_audit *audit, const char *quantity, double p);
/* The same of chi-square with n degrees of freedom: two-sided, as counts that fit too well are no
 * random draws either. But few counts are now and then exactly what is expected (two free ones of
 * 480 draws: 2e-3): with n below 3 only a large x fails. */
void dpi_audit_end_chi_square(dpi_audit *audit, double x, int32_t n);
/* Reports a line of a lower confidence bound that has to be at most `max`, with its values at the
 * confidences `suspicious` and `certain`. */
void dpi_audit_end_bound(dpi_audit *audit, const char *quantity, double suspicious, double certain,
                         double max);
/* Checks the options of a run of audits and runs them one after the other, until one returns an
 * error. */
dpi_status dpi_audit_all(const dpi_audit_options *options, dpi_status (*const *audits)(dpi_audit *),
                         size_t n_audits, dpi_audit_fn on_result, void *user, int32_t *n_failed,
                         dpi_error *err);

/* Noise in cells -last..last, of which the outer ones have what is beyond. */
enum { DPI_AUDIT_LAST = 24 };
typedef struct dpi_audit_cells {
    int32_t last; /* at most DPI_AUDIT_LAST */
    int64_t n, count[2 * DPI_AUDIT_LAST + 1];
} dpi_audit_cells;

void dpi_audit_cells_add(dpi_audit_cells *cells, int64_t z);
/* Reports a line of chi-square against the law whose weights are weight(parameter, z). */
void dpi_audit_end_cells(dpi_audit *audit, const dpi_audit_cells *cells,
                         double (*weight)(double parameter, int64_t z), double parameter);
double dpi_audit_gaussian(double variance, int64_t z); /* such a weight */

/* n times the effort, at least 1. */
int32_t dpi_audit_count(const dpi_audit *audit, int32_t n);

/* Made-up data, reproducible. */
uint64_t dpi_audit_random(dpi_audit *audit);
int32_t dpi_audit_below(dpi_audit *audit, int32_t n); /* [0, n) */
double dpi_audit_uniform(dpi_audit *audit);           /* [0, 1) */
double dpi_audit_normal(dpi_audit *audit);

/* ---- case.c: records, their neighbours and what they add up to, by the formulas ------------- */

/* Vocabularies: DPI_AUDIT_VOCAB, or a wide one that takes more than one block of candidates. */
enum { DPI_AUDIT_VOCAB = 64, DPI_AUDIT_WIDE = 2100, DPI_AUDIT_REFS = 8 };

/* Public logits and those of records, options.n_vocab of each; pointers[i] is reference[i], or
 * NULL. Units of several records: n_ref max_per_unit are at most DPI_AUDIT_REFS. */
typedef struct dpi_audit_case {
    dpi_sampler_options options;
    float public_logits[DPI_AUDIT_WIDE];
    float reference[DPI_AUDIT_REFS][DPI_AUDIT_WIDE];
    const float *pointers[DPI_AUDIT_REFS];
} dpi_audit_case;

/* Defaults, with the bits of the audit's options. */
void dpi_audit_defaults(const dpi_audit *audit, dpi_sampler_options *o);
/* Made up: instruction set, n_ref from 3 on, denominator, top_k and tau; n_vocab stays, or is
 * DPI_AUDIT_VOCAB where it is 0. */
void dpi_audit_options_draw(dpi_audit *audit, dpi_sampler_options *o);
/* One of those that this processor runs. */
int32_t dpi_audit_isa(dpi_audit *audit);
double dpi_audit_tau(dpi_audit *audit);
/* Tokens that are drawn one after the other with the same logits, n times one of them or a pair:
 * count[token], or count[first * n_vocab + second]. */
dpi_status dpi_audit_count_draws(dpi_audit *audit, const dpi_sampler_options *o,
                                 const float *public_logits, const float *const *references,
                                 int32_t n, bool pairs, int64_t *count);

/* Random logits for the options, ragged: null slots, ties, infinities, NaN. */
void dpi_audit_logits(dpi_audit *audit, dpi_audit_case *c);
/* pointers[i] = reference[i] for every slot. */
void dpi_audit_fill(dpi_audit_case *c);

/* Tokens of DPI_AUDIT_VOCAB that a public rule allows: one to all, often one alone. */
typedef struct dpi_audit_tokens {
    uint64_t bits[(DPI_AUDIT_VOCAB + 63) / 64]; /* for dpi_sampler_allow */
    int32_t at[DPI_AUDIT_VOCAB], n;             /* the same, ascending */
} dpi_audit_tokens;

void dpi_audit_tokens_draw(dpi_audit *audit, dpi_audit_tokens *tokens);
bool dpi_audit_is_allowed(const dpi_audit_tokens *tokens, int32_t token); /* n 0: all are */
/* Records at both ends of the clip range on the tokens (n 0: all), so that eta is reached. */
void dpi_audit_loud(dpi_audit_case *c, const dpi_audit_tokens *tokens);

/* Samplers for records and for their neighbours in the sense of the adjacency, and what they made
 * of the last case. */
typedef struct dpi_audit_pair {
    dpi_sampler *with, *without;
    const float *neighbour[DPI_AUDIT_REFS];
    dpi_distribution d, e; /* of the next token, with the record and without; the samplers' own */
} dpi_audit_pair;

/* To be freed after a failure, too. */
dpi_status dpi_audit_pair_create(dpi_audit *audit, const dpi_sampler_options *o,
                                 dpi_audit_pair *pair);
void dpi_audit_pair_free(dpi_audit_pair *pair);
/* The neighbour's slots: those of c without unit j, in the sense of the adjacency. */
void dpi_audit_leave_out(const dpi_audit_case *c, int32_t j, const float *pointers[DPI_AUDIT_REFS]);
/* One more case: the records of c, and the neighbour without unit j. */
dpi_status dpi_audit_pair_compare(dpi_audit *audit, const dpi_audit_case *c, int32_t j,
                                  dpi_audit_pair *pair);
/* Both begin a text, allow some tokens (n 0: all), draw a token; *token: the one with all units. */
dpi_status dpi_audit_pair_begin(dpi_audit *audit, dpi_audit_pair *pair);
dpi_status dpi_audit_pair_allow(dpi_audit *audit, const dpi_audit_tokens *tokens,
                                dpi_audit_pair *pair);
dpi_status dpi_audit_pair_step(dpi_audit *audit, const dpi_audit_case *c, dpi_audit_pair *pair,
                               int32_t *token);
/* Holds that the step is free for both or none, and that the supports are the same. */
bool dpi_audit_same_support(dpi_audit *audit, const dpi_distribution *d, const dpi_distribution *e);
/* Holds that their loss is at most eta, and returns loss / eta. */
double dpi_audit_loss_ratio(dpi_audit *audit, const dpi_distribution *d, const dpi_distribution *e,
                            long double eta);

/* InvisibleInk: c[n_support] of logits `l` (NULL: of a null slot) on d's support. Returns by how
 * much the values may be off. */
int64_t dpi_audit_contribution(const dpi_audit_case *c, const float *l, const dpi_distribution *d,
                               int64_t K, int64_t *contribution);
/* A logit that is not finite counts as the least float. */
double dpi_audit_finite(float l);
/* Adds factor times the probabilities of `l` times scale on support [n] (NULL: 0..n-1). */
void dpi_audit_add_softmax(const float *l, const int32_t *support, int32_t n, float scale,
                           double factor, double *sum);
/* How many records the unit in slot j has. */
int32_t dpi_audit_n_records(const dpi_audit_case *c, int32_t j);
/* Records that a slot may hold, and draws so many for made-up options, with n_ref slots of them. */
int32_t dpi_audit_per_unit(const dpi_audit_case *c);
void dpi_audit_units(dpi_audit *audit, dpi_sampler_options *o);
/* The mean of m integers with this sum, in real arithmetic, to the nearest, ties to even. m 0:
 * 0. */
int64_t dpi_audit_mean(int64_t sum, int32_t m);
/* Length of the interval of log probability ratios of two distributions on the same support;
 * infinite if one of them has a weight of zero. */
long double dpi_audit_loss(const dpi_distribution *d, const dpi_distribution *e);
/* Holds `d` to what the formulas make of its sums S: V_k+ and the weights. public_scale: the factor
 * of P in utilities (D; 0 if public logits are no part of them); slack: that of V_k+. */
void dpi_audit_formulas(dpi_audit *audit, const dpi_audit_case *c, const dpi_sampler_plan *plan,
                        int64_t public_scale, int32_t top_k, int64_t slack,
                        const dpi_distribution *d);
/* docs/spec.md 4.1 and 2 for what `plan` charges: false if it is less than the integers cost.
 * `factor`: f of the plan's eta. */
bool dpi_audit_charges(const dpi_sampler_options *o, const dpi_sampler_plan *plan, int32_t factor);

/* ---- world.c: what audits of whole runs make in options.folder ------------------------------- */

/* A model of one layer, of random weights. */
dpi_status dpi_audit_make_model(dpi_audit *audit, int32_t n_embd, int32_t n_ctx, dpi_model **model);

/* A ledger with one dataset, whose delta is 1e-4. To be closed after a failure, too: it is removed
 * then. */
#define DPI_AUDIT_DATASET "made up"
typedef struct dpi_audit_ledger {
    char path[4096];
    dpi_ledger *ledger;
} dpi_audit_ledger;

dpi_status dpi_audit_ledger_open(dpi_audit *audit, double epsilon, int32_t scope,
                                 dpi_audit_ledger *ledger);
dpi_status dpi_audit_ledger_info(dpi_audit *audit, const dpi_audit_ledger *ledger,
                                 dpi_dataset_info *info);
void dpi_audit_ledger_close(dpi_audit_ledger *ledger);

/* ---- The audits ----------------------------------------------------------------------------- */

dpi_status dpi_audit_invisibleink(dpi_audit *audit); /* loss */
dpi_status dpi_audit_filter(dpi_audit *audit);       /* loss: a text under the accountant filter */
dpi_status dpi_audit_pace(dpi_audit *audit);         /* loss: texts with a pace */
dpi_status dpi_audit_mask(dpi_audit *audit);         /* loss: some tokens are allowed */
dpi_status dpi_audit_products(dpi_audit *audit);     /* loss: features together */
dpi_status dpi_audit_merge(dpi_audit *audit);        /* loss: references spread over parts */
dpi_status dpi_audit_accounting(dpi_audit *audit);   /* loss: plans against the formulas */
dpi_status dpi_audit_amin(dpi_audit *audit);         /* loss */
dpi_status dpi_audit_tang(dpi_audit *audit);         /* loss, draws */
dpi_status dpi_audit_votes(dpi_audit *audit);        /* loss, draws: AugPE's histogram */
dpi_status dpi_audit_random_bits(dpi_audit *audit);  /* draws: bits to tokens */
dpi_status dpi_audit_draws(dpi_audit *audit);        /* draws: frequencies */
dpi_status dpi_audit_noise(dpi_audit *audit);        /* draws: the sparse vector */
dpi_status dpi_audit_assignment(dpi_audit *audit);   /* draws: secret assignment */
dpi_status dpi_audit_game(dpi_audit *audit);         /* game */
dpi_status dpi_audit_one_run(dpi_audit *audit);      /* canaries */
dpi_status dpi_audit_model(dpi_audit *audit);        /* loss: logits of options.model */
dpi_status dpi_audit_counts(dpi_audit *audit);       /* releases: counts, and their charge */
dpi_status dpi_audit_path(dpi_audit *audit);         /* releases: from files of records to texts */
dpi_status dpi_audit_evolution(dpi_audit *audit);    /* releases: rounds of AugPE, their charge */
dpi_status dpi_audit_canaries(dpi_audit *audit);     /* canaries: training */
dpi_status dpi_audit_steer(dpi_audit *audit);        /* releases: steering vectors */

/* The game with samplers of bounded range eta per token against the claim `claimed`. */
dpi_status dpi_audit_play(dpi_audit *audit, double eta, double claimed);

/* The smallest 256-bit X that draws `index` from `weights`; the caller's bits for that token. */
void dpi_audit_bits(const dpi_u128 *weights, size_t n, size_t index, uint64_t bits[DPI_DRAW_WORDS]);

#endif
