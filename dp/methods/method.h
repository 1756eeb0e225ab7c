/* method.h - the inside of a dpi_sampler, and what a method has to provide. Internal.
 *
 * A METHOD IS A FILE OF ITS OWN that defines one `const dpi_method_ops dpi_method_<name>`
 * (declared in registry.c). To add one:
 *   1. a value in `enum dpi_method` of dpinfer/method.h, and a field in dpi_sampler_options for
 *      each parameter of its own, of which 0 means the default;
 *   2. dp/methods/<name>.c with its description (info, parameters, facts) and its hooks, and its
 *      row in registry.c;
 *   3. its theorem in dp/PRIVACY.md, and its audit (audit/lines.h).
 * Command line, help, statement, report and verification follow from the description.
 * draws.c has what they share. sampler.c does the rest: checks of the common options, memory of the
 * arrays below, the state machine (begin, at most n_tokens tokens), random bits, wiping.
 *
 * Helpers for methods: dpi_sampler_fix, dpi_sampler_support, dpi_sampler_weigh, the inline integers
 * of exact.h, the bounds of account.h, dpi_random_fill (rng.h; always with
 * sampler->options.random and random_user). */
#ifndef DPI_METHOD_H
#define DPI_METHOD_H

#include <stdbool.h>
#include <string.h>

#include "dp/exact/public.h"
#include "dp/exact/weights.h"
#include "dp/methods/parameters.h"
#include "kernels/kernels.h"

typedef struct dpi_method_ops dpi_method_ops;

enum {
    DPI_REF_MAX = 4096,            /* slots, denominator */
    DPI_REF_PRIVATE_MAX = 1 << 20, /* records of a batch whose size is private */
    DPI_TOKENS_MAX = 1 << 20,      /* tokens of a text */
};

struct dpi_sampler {
    dpi_sampler_options options;
    dpi_sampler_plan plan;
    const dpi_method_ops *method;
    void *state; /* the method's own, or NULL: made by `create`, released by `free` */
    dpi_weight_tables tables;
    dpi_kernels kernels; /* of the processor: their results do not depend on the ISA */
    bool begun;
    bool used; /* private arrays are not all zero: there is something to forget */
    bool is_free; /* the step reads no reference: set with the candidates. Public */
    int64_t K; /* clip bound of the step, where a method has one; set with the candidates. Public */
    bool to_merge; /* dpi_sampler_partial was called for a token that is not drawn */
    dpi_part part; /* of the current text */
    int32_t n_drawn; /* of the current text */
    int32_t n_private; /* of these: the draw was private. Public */

    int64_t *fixed;   /* [n_vocab] P, the public logits below their maximum */
    int32_t *support; /* [n_vocab] the first n_support are the candidates, ascending */
    size_t n_support;
    int32_t *allowed; /* [n_allowed] the only tokens that may be drawn, ascending. Public */
    int32_t n_allowed; /* 0: all */

    /* Private; only the first n_support entries are used, and they are wiped after each step. */
    int64_t *sum;      /* [n_vocab] S */
    int64_t *utility;  /* [n_vocab] U */
    dpi_u128 *weights; /* [n_vocab] candidate i is drawn with weights[i] / sum */
};

/* Hooks in the order of their use. Errors go through dpi_fail; messages hold nothing private.
 * NULL where a method has nothing to do, but for plan and one of distribution and step. */
struct dpi_method_ops {
    /* What it is, and what is proven for it: whatever else is refused. A method without a guarantee
     * takes the accountant ZCDP and the adjacency REPLACE_BY_NULL. */
    dpi_method_info info;
    const dpi_parameter *const *parameters; /* ended by NULL, in the order of a report */
    /* facts[DPI_FACTS_MAX] = what is the method's own (dpi_method_facts). NULL: nothing. */
    int32_t (*facts)(const dpi_sampler_options *options, const dpi_sampler_plan *plan,
                     dpi_fact *facts);
    /* What stands in the place of a record, where that is the method's own; else NULL. May be
     * NULL. */
    const char *(*neighbours)(const dpi_sampler_options *options);
    /* The settings that cost nothing, in words (dpi_method_settings). */
    void (*settings)(const dpi_sampler_options *options, char *text, size_t size);
    /* Every private token has the range eta of the plan. NULL: none has. */
    bool (*has_equal_steps)(const dpi_sampler_options *options);
    /* The method finds the tokens that pay by itself, so that a pace is not looked for. NULL: it
     * does not. */
    bool (*finds_tokens)(const dpi_sampler_options *options);
    /* Its field for the most private tokens of a text. NULL: pace_tokens. */
    int32_t *(*quota)(dpi_sampler_options *options);
    /* The largest factor by which references that agree can raise a token beside another one. NULL:
     * not known. */
    double (*factor)(const dpi_sampler_options *options, const dpi_sampler_plan *plan);

    /* Checks what several of its parameters must hold and fills K, clip, eta, rho_token and
     * rho_total. Each parameter is in its range and common options are checked; `a` is set
     * (denominator and tau), and rho_budget, which is what rho_total must fit, however the budget
     * was given (0 with BR: it has none, see budget.h). The plan's epsilon and delta are filled in
     * later, from rho_total (finite) or BR's eta. */
    dpi_status (*plan)(const dpi_sampler_options *options, dpi_sampler_plan *plan, dpi_error *err);
    /* options, plan and tables are set, the arrays are there: allocates sampler->state. `free`
     * is called after a failure too. */
    dpi_status (*create)(dpi_sampler *sampler, dpi_error *err);
    /* A new text: state back to its start (new records, a full budget). */
    dpi_status (*begin)(dpi_sampler *sampler, dpi_error *err);
    /* Fills support and n_support, for a method that reads reference logits there only, K, and
     * is_free where it reads none. A function of public data: it is what `distribution` begins
     * with. NULL: it reads all. */
    dpi_status (*candidates)(dpi_sampler *sampler, const float *public_logits, dpi_error *err);
    /* No step that is left of this text reads a reference. A function of public data and of what
     * was released. NULL: one always may. */
    bool (*is_over)(const dpi_sampler *sampler);
    /* Fills support, n_support, sum and weights for the next token; nothing is charged. */
    dpi_status (*distribution)(dpi_sampler *sampler, const float *public_logits,
                               const float *const *reference_logits, dpi_error *err);
    /* The two parts of `distribution`, for a method whose sums merge. partial: support, n_support
     * and sum of this sampler's references. weigh: weights from these, where sum is that of all
     * samplers. NULL: sums do not merge. */
    dpi_status (*partial)(dpi_sampler *sampler, const float *public_logits,
                          const float *const *reference_logits, dpi_error *err);
    void (*weigh)(dpi_sampler *sampler);
    /* The token drawn from that distribution will be released: what it cost is booked. */
    void (*charge)(dpi_sampler *sampler);
    /* Instead of distribution, one draw and charge, for a method whose step is more than that.
     * Books before it releases; on error *token is unchanged. */
    dpi_status (*step)(dpi_sampler *sampler, const float *public_logits,
                       const float *const *reference_logits, int32_t *token, dpi_error *err);
    /* After each step: wipes what `state` holds of one token's private data. */
    void (*forget)(dpi_sampler *sampler);
    /* Wipes and frees sampler->state, which may be NULL. */
    void (*free)(dpi_sampler *sampler);
};

/* ---- sampler.c ------------------------------------------------------------------------------ */

/* weights from utility, on the first n_support entries, at inverse temperature `a`. */
void dpi_sampler_weigh(dpi_sampler *sampler, uint64_t a);

/* sampler->fixed = P of what is allowed (dpi_public_fix). */
dpi_status dpi_sampler_fix(dpi_sampler *sampler, const float *public_logits, dpi_error *err);
/* support and n_support = V_k+ of what is allowed (dpi_support_find), from sampler->fixed. */
void dpi_sampler_support(dpi_sampler *sampler, int32_t top_k, int64_t D, int64_t slack);

/* One index in [0, n_support) from sampler->weights, with 256 fresh bits. Errors: ENTROPY. */
dpi_status dpi_sampler_draw(dpi_sampler *sampler, size_t *index, dpi_error *err);

/* What utilities are multiplied by: the options' denominator, which is public. */
int32_t dpi_sampler_denominator(const dpi_sampler_options *options);
/* M: how many pointers to logits a slot has. */
int32_t dpi_sampler_per_unit(const dpi_sampler_options *options);
/* Whether n_ref is private (dpi_sampler_options): it must not show in messages or plans then. */
bool dpi_sampler_n_ref_private(const dpi_sampler_options *options);

/* ---- registry.c ------------------------------------------------------------------------------ */

/* NULL if there is no such method. */
const dpi_method_ops *dpi_method_ops_get(int32_t id);
/* T_p, where the method has it. */
int32_t *dpi_method_quota(dpi_sampler_options *options);
/* The parameter that stands under `key` in a report; NULL if the method has none. */
const dpi_parameter *dpi_method_parameter_of(int32_t id, const char *key);
/* Whether records are hashed or drawn to batches: how many there are is secret. False for a method
 * that reads none, or that is not known. */
bool dpi_method_is_assigned(const dpi_sampler_options *options);
/* The probability with which a record joins a batch where each record's is a draw of its own; 0: it
 * is not drawn. */
double dpi_method_joining(const dpi_sampler_options *options);

#endif
