/* method.h - the sampler: logits of any engine in, one private token out. */
#ifndef DPINFER_METHOD_H
#define DPINFER_METHOD_H

#include "dpinfer/isa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One session of a method, as a state machine that takes the logits of any engine:
 *
 *     create(options with the budget of a text)
 *         -> begin -> step(public logits, reference logits) -> token, at most n_tokens times
 *         -> begin again, or free
 *
 * A server has one sampler for each question in flight, with the budget, slots and length of that
 * question. It begins the sampler again for the next question with the same options. To create one
 * takes less than a millisecond with 32,000 tokens of vocabulary (half a second with ACCOUNTANT_BR,
 * for its plan), and at most 100 bytes per token of the vocabulary.
 * examples/other_engine.c is a whole program. */
typedef struct dpi_sampler dpi_sampler;

typedef enum dpi_method {
    DPI_METHOD_PLAIN = 0,        /* Top-k sampling of the public logits: no privacy claim */
    DPI_METHOD_INVISIBLEINK = 1, /* InvisibleInk, Algorithm 1 */
    DPI_METHOD_AMIN = 2,         /* Amin et al. 2024, Algorithm 1: private and public tokens */
    DPI_METHOD_ADAPMIXED = 3,    /* for comparison: its cost depends on the records, so it is NOT a
                                    DP guarantee; refused without acknowledge_not_dp */
    DPI_METHOD_TANG = 4 /* Tang et al. 2024, Algorithm 1: Gaussian noise on sums of probabilities */
    /* registry.h describes each of them. */
} dpi_method;

/* T where nobody says it, in a context that holds twice as much: most letters of a page fit. */
enum { DPI_TOKENS_DEFAULT = 256 };

/* Which two lists of records a guarantee cannot tell apart (dp/PRIVACY.md section 10). */
typedef enum dpi_adjacency {
    DPI_ADJACENCY_REPLACE_BY_NULL = 0, /* a record, and an empty slot in its place */
    DPI_ADJACENCY_ADD_REMOVE = 1,      /* a record, and one record less. Needs a denominator */
    DPI_ADJACENCY_ZERO_OUT = 2, /* a record, and logits that are all 0: so are a null slot's */
    DPI_ADJACENCY_WORD = 3 /* a document, and one with other words: of perturb.h alone */
} dpi_adjacency;

/* How the cost of a text is counted. */
typedef enum dpi_accountant {
    DPI_ACCOUNTANT_ZCDP = 0,   /* the same cost for every token and record, in zCDP */
    DPI_ACCOUNTANT_BR = 1,     /* the same for every token and record, exact (dpi_br_delta) */
    DPI_ACCOUNTANT_FILTER = 2 /* each record has a budget of its own and spends what it moves */
} dpi_accountant;

/* How much a step may cost, decided from public logits before a reference logit is read
 * (dp/PRIVACY.md section 13). A step that costs nothing is free: it draws from the public logits
 * alone. */
typedef enum dpi_pace {
    DPI_PACE_NONE = 0,   /* each step costs the same */
    DPI_PACE_TOP = 1,    /* free where the likeliest token is likelier than pace_theta */
    DPI_PACE_CHANGE = 2, /* free where references could change less than pace_theta */
    DPI_PACE_SHARE = 3,  /* in proportion to the probability of the other tokens */
    DPI_PACE_AUTO = 4    /* for dpi_pace_find and releases, which make it one of the others; a
                            sampler refuses it */
} dpi_pace;

typedef struct dpi_sampler_options {
    size_t struct_size;
    int32_t method;  /* a dpi_method; default INVISIBLEINK */
    int32_t n_vocab; /* 1..2^18 */
    int32_t n_ref;   /* reference slots: 1..4096 (0 for PLAIN). Public, fixed; but private, and
                        0..2^20, with ADD_REMOVE or subsample: the records of the batch */
    int32_t n_tokens; /* T, the most tokens of one text: 1..2^20 */
    int32_t top_k;   /* the k likeliest public tokens, 1..n_vocab; 0: the whole vocabulary. Default
                        100. What a method does with them is in its registry entry */
    double tau;      /* temperature, 0.01..100; default 1. PLAIN only: 0 is the most likely token */
    /* The budget of one text (and so of a run over disjoint batches), ignored by PLAIN: either
     * rho, in zCDP, or epsilon at delta. The other one is 0. */
    double rho;     /* (0, 1e6] */
    double epsilon; /* (0, 1e6]; BR and subsample need it */
    double delta;   /* (0, 1); with rho it may be 0: then the plan has no epsilon */
    dpi_random_fn random; /* NULL (default): getrandom(2). Anything else voids the guarantee */
    void *random_user;
    int32_t adjacency;   /* a dpi_adjacency; default REPLACE_BY_NULL */
    int32_t accountant;  /* a dpi_accountant; default ZCDP */
    int32_t denominator; /* 1..4096, public: what sums over references are divided by; 0 (default):
                            n_ref. With ADD_REMOVE or subsample it must be given */
    int32_t center;      /* 1: logits of a reference are shifted to the mass of the public ones on
                            the candidates before they are clipped; default 0 */
    double clip;         /* FILTER: the clip bound C in logits, public, (0, 2047]; 0 (default):
                            DPI_FILTER_CLIP_FACTOR times what ZCDP allows. Else 0 */
    double subsample;    /* q in (0, 1]: the records of each text come from dpi_assign_secret with
                            this q, the budget is that of the run; 0 (default): no such claim */
    int32_t max_per_unit; /* M, 1..64, public: records that a slot may hold, all of one unit, of
                             which the rounded mean counts (dp/PRIVACY.md section 15); 0 (default):
                             each record is a unit of its own */
    /* Of single methods; ignored by the others. */
    int32_t pace;       /* invisibleink: a dpi_pace; amin: NONE, TOP; default NONE */
    double pace_theta;  /* TOP: a probability, [0, 1]; invisibleink, CHANGE: a total variation
                           distance, [0, 1]; SHARE: as TOP, 0: no step is free by it */
    int32_t pace_tokens; /* invisibleink, TOP and CHANGE: T_p, the most private tokens of a text,
                            which share the budget; 0 (default): n_tokens */
    double pace_share;  /* invisibleink, SHARE: E, the expected number of other tokens that the
                           budget is divided by: a step costs (1 - top) / E of it; .01..2^20 */
    int32_t free_top_k; /* invisibleink: k of free steps; 0 (default): top_k */
    double free_tau;    /* invisibleink: temperature of free steps, .01..100; 0 (default): tau */
    double svt_threshold; /* amin: a token is private where the distance of the mean of the
                             references' distributions to the public one (L1: 0..2) is above it, up
                             to noise; -1000..1000 */
    double svt_sigma;     /* amin: Laplace noise of the threshold, twice that on each distance,
                             1e-6..1000; 0 (default): each token is private while the budget
                             lasts */
    double screen_threshold; /* adapmixed: Renyi divergence of screening; 0 (default): 4.5 */
    double screen_sigma;     /* adapmixed: noise of screening; 0 (default): .01 */
    double tau_public; /* amin: temperature of public tokens, .01..100; 0 (default): tau */
    double top_p; /* plain: draw from the likeliest tokens that have this part of the mass of the
                     top_k, (0, 1); 0 (default): of all of it */
    double min_p; /* plain: and from none that is less likely than this part of the likeliest one,
                     (0, 1]; 0 (default): from all */
    int32_t n_private; /* amin: the most private tokens of a text, which share rho; 0 (default):
                          n_tokens */
    int32_t acknowledge_not_dp; /* a method that is not DP: must be 1 */
    int32_t isa; /* a dpi_isa; default AUTO. Decides time, not one bit of what is drawn */
    int32_t allocation; /* k, 2..DPI_ALLOCATION_MAX: the records of each text come from
                           dpi_assign_secret with k batches (and with q 1 where subsample is 0), and
                           the budget is that of the run; 0 (default): no such claim. With
                           ADD_REMOVE or subsample, epsilon and delta */
    uint64_t room[8]; /* all 0: for what is to come */
} dpi_sampler_options;

/* dpi_sampler_candidates gives a list if at most one token in so many is a candidate. Then at least
 * half of the blocks of 16 tokens have none, and their logits need not be computed. */
#define DPI_CANDIDATES_FEW 32

/* See clip in dpi_sampler_options; dp/PRIVACY.md section 11 says why 2. */
#define DPI_FILTER_CLIP_FACTOR 2

/* What the budget comes to, computed from the integers that the sampler uses. D is the
 * denominator, f is 2 (4 with ZERO_OUT). Source: docs/spec.md 1, 2 and 4, dp/PRIVACY.md. */
typedef struct dpi_sampler_plan {
    size_t struct_size;
    int64_t K;        /* integer clip bound, units of 2^-20 logits */
    uint64_t a;       /* inverse temperature: tau_effective = 2^48 / (a ln2 2^20 D) */
    double clip;      /* C, the real clip bound that K realises */
    double eta;       /* bounded range of one token, rounded up: f K a ln2 / 2^48 + 2^-38 */
    double rho_token; /* eta^2 / 8, rounded up; with FILTER the most that a token can spend */
    double rho_total; /* zCDP of a text, rounded up: T * rho_token, with a pace n_private *
                         rho_token; with FILTER and SHARE the budget. With subsample and allocation:
                         of the mechanism inside */
    double rho_budget;    /* zCDP that the budget allows (inside, with subsample and allocation),
                             rounded down; 0 with BR */
    double epsilon, delta; /* what the accountant proves for the run at delta, rounded up, subsample
                              and allocation included; 0 if options.delta is 0 */
    int32_t n_private; /* amin, and with a pace: the most private tokens, which share the budget;
                          else 0. With SHARE and FILTER they are as many as the budget lasts for */
    int32_t reserved;
    /* amin, else 0: its sparse vector (0 without one) in integers. rho_total is then n_private
     * (rho_svt + rho_token), rounded up. */
    int64_t svt_threshold;   /* in units of 2^-30 / D, like the next two */
    int64_t svt_scale;       /* of the threshold's Laplace noise; twice that on each distance */
    int64_t svt_sensitivity; /* what a record moves a distance by, at most */
    double svt_epsilon;      /* of one instance: 2 svt_sensitivity / svt_scale, rounded up */
    double rho_svt;          /* the same in zCDP, rounded up; spent when an instance is armed */
    /* tang, else 0: the deviation of its noise, in units of 2^-36. K is then what a record may add
     * to all sums, 2^16; eta is 0, as the loss of Gaussian noise has no range. */
    int64_t noise_sigma;
    uint64_t room[8]; /* all 0: for what is to come */
} dpi_sampler_plan;

DPI_API void dpi_sampler_options_init_size(dpi_sampler_options *options, size_t size);
#define dpi_sampler_options_init(o) dpi_sampler_options_init_size((o), sizeof *(o))
DPI_API void dpi_sampler_plan_init_size(dpi_sampler_plan *plan, size_t size);
#define dpi_sampler_plan_init(o) dpi_sampler_plan_init_size((o), sizeof *(o))

/* Calibrates without making a sampler: the largest K whose cost over T tokens fits the budget.
 * Errors: ARG (with the allowed range), UNSUPPORTED (a combination
 * that is not proven, with the reason), BUDGET (no K >= 1 fits), MEMORY (BR). */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_plan_make(const dpi_sampler_options *options,
                                                        dpi_sampler_plan *plan, dpi_error *err);

/* Errors: as dpi_sampler_plan_make, MEMORY, and ARG or UNSUPPORTED for options->isa. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_create(const dpi_sampler_options *options,
                                                     dpi_sampler **sampler, dpi_error *err);
/* Wipes its buffers. NULL is allowed. */
DPI_API void dpi_sampler_free(dpi_sampler *sampler);

/* What the sampler was created with. The sampler's. */
DPI_API const dpi_sampler_options *dpi_sampler_options_get(const dpi_sampler *sampler);
/* What the sampler's options came to, as dpi_sampler_plan_make computes it: what a statement of the
 * guarantee is made of. The sampler's. */
DPI_API const dpi_sampler_plan *dpi_sampler_plan_get(const dpi_sampler *sampler);

/* Starts a text, at any time: the next n_tokens steps share one budget. The caller promises that
 * reference i is the same record in every step of a text, and that the references of different
 * texts are disjoint (parallel composition). So the budgets of records (FILTER) start anew too.
 * If a record is in several texts, of one sampler or of more, their costs add up: the rho_total of
 * the plans (dpi_zcdp_epsilon converts the sum), or with subsample their epsilons and deltas. The
 * caller keeps that sum below what the record may spend. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_begin(dpi_sampler *sampler, dpi_error *err);

/* Tokens that the next steps may draw: token i where bit i % 64 of allowed[i / 64] is 1, at least
 * one of them; NULL: all. `allowed` [(n_vocab + 63) / 64] is read here and not kept. It holds until
 * another call, or the end of the text. The other tokens are then no part of the vocabulary: top_k
 * counts allowed ones. A step with one allowed token is free. Cost: none.
 * Trusted: `allowed` is a function of public data and released tokens (grammar.h makes such ones;
 * dp/PRIVACY.md section 24). Errors: ARG, STATE (no begin), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_allow(dpi_sampler *sampler, const uint64_t *allowed,
                                                    dpi_error *err);

/* The tokens whose reference logits a step with these public logits [n_vocab] reads: *ids [*n],
 * ascending, the sampler's, valid until the next call on it. The others need not be computed. *ids
 * is NULL and *n is n_vocab if all may be read (AMIN, ADAPMIXED, PLAIN), or if more than n_vocab /
 * DPI_CANDIDATES_FEW are read: then it does not pay to leave out the others. *n is 0, and *ids is
 * not NULL, if the step is free (dpi_pace; AMIN when its budget is used up, too): it reads no
 * reference logit.
 * Trusted: public_logits must not depend on any reference. The candidates are a function of them,
 * of the options and of what the text has paid, so they are public. Nothing is charged. The token
 * of an earlier dpi_sampler_partial is over: dpi_sampler_step_merged refuses its sums then.
 * Errors: ARG, NUMERIC as step. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_candidates(dpi_sampler *sampler,
                                                         const float *public_logits,
                                                         const int32_t **ids, int32_t *n,
                                                         dpi_error *err);

/* Draws the next token. `public_logits` [n_vocab]; `reference_logits` n_ref pointers to
 * [n_vocab], NULL for a null slot (ignored by PLAIN; may be NULL if n_ref is 0). With max_per_unit
 * they are n_ref max_per_unit pointers, those of slot i from i max_per_unit on: NULL is no record,
 * and a slot without one is null. What they hold beside the candidates is not read, where
 * dpi_sampler_candidates gives some.
 * Trusted: public_logits must not depend on any reference, and reference_logits[i] on no
 * reference but i. Not trusted: the values of reference_logits, which may be anything.
 * Distribution: softmax(phi / tau_effective) on V_k+, exact to 2^-38 in log probability.
 * Errors: BUDGET (n_tokens were drawn: the text is over until the next begin), NUMERIC (a public
 * logit is not finite or is beyond 1e4 in magnitude), ENTROPY, STATE (no begin), ARG. No token is
 * drawn on error, *token is unchanged, and the step may be tried again. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_step(dpi_sampler *sampler, const float *public_logits,
                                                   const float *const *reference_logits,
                                                   int32_t *token, dpi_error *err);

/* Books a token that this text has released before, exactly as the step that drew it did, and draws
 * nothing: for a text that goes on after its process has ended. The logits must be those of that
 * step, bit for bit (the same model, prompts, records and instruction set), each token once, in
 * order, and all of them before the first step: then what comes after has the distribution and the
 * cost of a text that was never stopped. Trusted beside what step trusts: that. Errors: as
 * dpi_sampler_step but ENTROPY; FORMAT (the token is no candidate); UNSUPPORTED (see
 * dpi_method_recalls). */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_recall(dpi_sampler *sampler,
                                                     const float *public_logits,
                                                     const float *const *reference_logits,
                                                     int32_t token, dpi_error *err);

/* Whether texts of a method go on from their tokens: not those of AMIN and ADAPMIXED, whose steps
 * keep more than tokens tell, and not those of TANG. 0 for a method that is not known. */
DPI_API int32_t dpi_method_recalls(int32_t method);

/* One text whose references are spread over threads, processes or machines. Each part has a sampler
 * with the same options but n_ref, the slots that are there, and the same denominator, that of all.
 * All records of a unit are in one part. Each part begins the text with dpi_sampler_begin_part, and
 * a token then is
 *     dpi_sampler_partial on each part  ->  dpi_sums_merge of the others' sums, in any order
 *         ->  dpi_sampler_step_merged on one part, and its token to all
 * and has the distribution and, for the same random bits, the value of one sampler with all slots.
 *
 * Sums are int64[DPI_SUMS_HEADER + n_vocab], of which the first *n are used. The first
 * DPI_SUMS_HEADER entries are public: which parts it is the sum of, of which text and token, over
 * which candidates. The others are the clipped contributions of the parts' references. PRIVATE:
 * they go to the part that draws and nowhere else. All entries are added: an integer all-reduce
 * (MPI_INT64_T, MPI_SUM) of *n entries does the same as dpi_sums_merge, which checks more early.
 * dpi_sampler_step_merged refuses sums that are not those of all parts, each once, for its own
 * token, however they were added. */
enum { DPI_SUMS_HEADER = 11, DPI_PARTS_MAX = 256 };

typedef struct dpi_part {
    size_t struct_size;
    int32_t index; /* which part this is: 0..count-1; default 0 */
    int32_t count; /* how many there are: 1..DPI_PARTS_MAX; default 1 */
    int64_t text;  /* number of the text, the same in all parts and another for each text; default
                      0 */
} dpi_part;

DPI_API void dpi_part_init_size(dpi_part *part, size_t size);
#define dpi_part_init(o) dpi_part_init_size((o), sizeof *(o))

/* dpi_sampler_begin for a text that is spread. Each token is one dpi_sampler_partial, and the part
 * refuses dpi_sampler_step with STATE if there are others. After dpi_sampler_begin the part is the
 * only one. Errors: ARG, and UNSUPPORTED: the method has no sums that merge (it is not
 * INVISIBLEINK). */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_begin_part(dpi_sampler *sampler, const dpi_part *part,
                                                         dpi_error *err);
/* sums[*n] = those of this part's references, *n = DPI_SUMS_HEADER + the number of candidates,
 * which is that of each part. Books one token of the text, and under the filter what the token
 * costs each record; a text has n_tokens of these calls, whether a token is drawn or not.
 * Arguments, what is trusted, and errors as dpi_sampler_step, and UNSUPPORTED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_partial(dpi_sampler *sampler,
                                                      const float *public_logits,
                                                      const float *const *reference_logits,
                                                      int64_t *sums, int32_t *n, dpi_error *err);
/* sums[i] += others[i], i < n. Sums of no part are all zeros. Errors: ARG (a part that is in both;
 * another text, token or setting; other candidates), and `sums` is unchanged. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sums_merge(int64_t *sums, const int64_t *others, int32_t n,
                                                 dpi_error *err);
/* Draws the token of the last dpi_sampler_partial on this sampler, once, from sums[n] of all parts.
 * Trusted beside what step trusts: no record is in two parts. Errors: STATE (no partial since the
 * last token), ARG (the sums are not those of all parts, each once, for this token and these
 * public_logits), NUMERIC, ENTROPY. *token is unchanged on error, and the call may be made
 * again. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_step_merged(dpi_sampler *sampler,
                                                          const float *public_logits,
                                                          const int64_t *sums, int32_t n,
                                                          int32_t *token, dpi_error *err);

/* Tokens that the text may still have: n_tokens less those drawn since begin; 0 before the first
 * begin. At 0 step fails, with STATE or BUDGET. Public: it depends on the options and the number of
 * released tokens alone. There is no such number for the budget: a text that ends early costs the
 * same, because where it ends is part of what was released. */
DPI_API int32_t dpi_sampler_tokens_left(const dpi_sampler *sampler);

/* Tokens of this text so far whose draw was private. The others were free: they came from the
 * public logits alone. A function of public data and of the released tokens (INVISIBLEINK, AMIN;
 * which tokens are private is part of what AMIN releases), so it may be told; 0 for PLAIN, all for
 * ADAPMIXED. */
DPI_API int32_t dpi_sampler_n_private(const dpi_sampler *sampler);

/* 1 while a token that is left of this text may be private; 0: all that are left are free (T_p or
 * the budget is used up, or no token is left), so that the references' caches can go: their
 * pointers to logits may all be NULL then. Public, like n_private: what a record has spent under
 * FILTER does not show in it. */
DPI_API int32_t dpi_sampler_needs_references(const dpi_sampler *sampler);

#ifdef __cplusplus
}
#endif
#endif
