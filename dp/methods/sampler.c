/* sampler.c - what all methods share: options and plan, memory, the state machine, the draw.
 * A method is a file of its own (method.h). */
#include "dp/methods/sampler.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/account/budget.h"
#include "dp/methods/method.h"

/* ---- Options and plan ----------------------------------------------------------------------- */

void dpi_sampler_options_init_size(dpi_sampler_options *options, size_t size) {
    dpi_sampler_options made = {0};
    dpi_status status = dpi_method_defaults(DPI_METHOD_INVISIBLEINK, &made, NULL);
    (void)status; /* there is that method */
    dpi_struct_init(options, size, &made, sizeof made);
}

DPI_STRUCT_DEFAULTS(dpi_sampler_plan, 0)

static dpi_status check_references(const dpi_sampler_options *o, const dpi_method_ops *m,
                                   dpi_error *err) {
    if (!dpi_sampler_n_ref_private(o))
        return dpi_check_range("n_ref", o->n_ref, m->info.min_ref, m->info.max_ref, err);
    if (o->n_ref < 0 || o->n_ref > DPI_REF_PRIVATE_MAX) /* its value is not named */
        return dpi_fail(err, DPI_STATUS_ARG, "n_ref must be 0..%d", DPI_REF_PRIVATE_MAX);
    if (o->denominator == 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "denominator is 0: with add/remove or subsample the records of a batch are "
                        "private, and the denominator must be a public number 1..%d",
                        DPI_REF_MAX);
    return DPI_STATUS_OK;
}

/* What is proven, and nothing else (dp/PRIVACY.md section 11). */
static dpi_status check_combination(const dpi_sampler_options *o, const dpi_method_ops *m,
                                    dpi_error *err) {
    const char *what = NULL, *kind = "";
    if (o->accountant != DPI_ACCOUNTANT_ZCDP && !(m->info.accountants >> o->accountant & 1))
        what = dpi_common[DPI_COMMON_ACCOUNTANT].choices[o->accountant], kind = "the accountant ";
    else if (o->adjacency != DPI_ADJACENCY_REPLACE_BY_NULL &&
             !(m->info.adjacencies >> o->adjacency & 1))
        what = dpi_common[DPI_COMMON_ADJACENCY].choices[o->adjacency], kind = "the adjacency ";
    else if (o->center && !m->info.centers)
        what = "centring";
    else if ((o->subsample != 0 || o->allocation != 0) && !m->info.subsamples)
        what = "secret assignment";
    else if (o->max_per_unit > 1 && !m->info.units)
        what = "a unit of several records";
    if (what)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "%s%s is not proven for the method %s", kind,
                        what, m->info.name);
    if (o->subsample != 0 && o->adjacency == DPI_ADJACENCY_ZERO_OUT)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "secret assignment with zero-out: a zeroed record that joins a batch still "
                        "moves it, so its presence is not hidden and nothing is amplified");
    if (o->allocation != 0 && !dpi_sampler_n_ref_private(o))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "allocation is %d: which batch a record is in is secret with add/remove "
                        "and with subsample alone; it must be 0",
                        (int)o->allocation);
    if (o->clip != 0 && o->accountant != DPI_ACCOUNTANT_FILTER)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "clip is %g: only the accountant filter leaves it free, the others compute "
                        "it; it must be 0",
                        o->clip);
    return DPI_STATUS_OK;
}

/* Its range. Whether delta may be 0 is a matter of the budget. */
static dpi_status check_parameter(const dpi_parameter *p, const dpi_sampler_options *o,
                                  dpi_error *err) {
    if (p == &dpi_common[DPI_COMMON_DELTA])
        return DPI_STATUS_OK;
    return dpi_parameter_check(p, dpi_parameter_value(p, o), err);
}

static dpi_status check_options(const dpi_sampler_options *o, dpi_error *err) {
    if (!o)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler options are NULL");
    DPI_CHECK_FIXED(dpi_sampler_options, o, err);
    const dpi_method_ops *m = dpi_method_ops_get(o->method);
    if (!m)
        return dpi_fail(err, DPI_STATUS_ARG, "method is %d, must be 0..%d", o->method,
                        dpi_method_count() - 1);
    for (int32_t i = 0; m->parameters[i]; i++)
        DPI_TRY(check_parameter(m->parameters[i], o, err));
    DPI_TRY(dpi_check_range("top_k", o->top_k, 0, o->n_vocab, err));
    if (m->info.max_ref == 0)
        return dpi_check_range("n_ref", o->n_ref, 0, 0, err);
    for (int32_t i = 0; i < DPI_COMMON_COUNT; i++) /* those too that the method does not have */
        DPI_TRY(check_parameter(&dpi_common[i], o, err));
    DPI_TRY(dpi_budget_check(o, err));
    DPI_TRY(check_references(o, m, err));
    return check_combination(o, m, err);
}

DPI_STRUCT_DEFAULTS(dpi_part, .count = 1)

static dpi_status make_plan(const dpi_sampler_options *o, dpi_sampler_plan *plan, dpi_error *err) {
    DPI_TRY(check_options(o, err));
    const dpi_method_ops *m = dpi_method_ops_get(o->method);
    dpi_sampler_plan made;
    dpi_sampler_plan_init(&made);
    made.a = dpi_weights_scale(dpi_sampler_denominator(o), o->tau > 0 ? o->tau : 1);
    if (m->info.max_ref > 0 && o->accountant != DPI_ACCOUNTANT_BR)
        DPI_TRY(dpi_budget_rho(o, &made.rho_budget, err));
    DPI_TRY(m->plan(o, &made, err));
    if (m->info.max_ref > 0)
        DPI_TRY(dpi_budget_realise(o, &made, err));
    *plan = made;
    return DPI_STATUS_OK;
}

dpi_status dpi_sampler_plan_make(const dpi_sampler_options *options, dpi_sampler_plan *plan,
                                 dpi_error *err) {
    if (!plan)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler plan is NULL");
    DPI_CHECK_FIXED(dpi_sampler_plan, plan, err);
    return make_plan(options, plan, err);
}

/* ---- Life cycle and state machine ----------------------------------------------------------- */

dpi_status dpi_sampler_create(const dpi_sampler_options *options, dpi_sampler **sampler,
                              dpi_error *err) {
    dpi_sampler_plan plan;
    DPI_TRY(make_plan(options, &plan, err));
    return dpi_sampler_create_planned(options, &plan, sampler, err);
}

dpi_status dpi_sampler_create_planned(const dpi_sampler_options *options,
                                      const dpi_sampler_plan *plan, dpi_sampler **sampler,
                                      dpi_error *err) {
    DPI_TRY(check_options(options, err));
    dpi_sampler *s = dpi_calloc(1, sizeof *s);
    if (!s)
        return dpi_no_memory(err, "a sampler");
    dpi_status status = dpi_kernels_init(&s->kernels, options->isa, err);
    if (status != DPI_STATUS_OK) {
        free(s);
        return status;
    }
    s->options = *options;
    s->plan = *plan;
    s->method = dpi_method_ops_get(options->method);
    dpi_weights_tables(&s->tables);
    const size_t n = (size_t)options->n_vocab;
    s->fixed = dpi_calloc(n, sizeof *s->fixed);
    s->support = dpi_calloc(n, sizeof *s->support);
    s->sum = dpi_calloc(n, sizeof *s->sum);
    s->utility = dpi_calloc(n, sizeof *s->utility);
    s->weights = dpi_calloc(n, sizeof *s->weights);
    if (!s->fixed || !s->support || !s->sum || !s->utility || !s->weights) {
        dpi_sampler_free(s);
        return dpi_no_memory(err, "a sampler of %zu tokens", n);
    }
    status = s->method->create ? s->method->create(s, err) : DPI_STATUS_OK;
    if (status != DPI_STATUS_OK) {
        dpi_sampler_free(s);
        return status;
    }
    *sampler = s;
    return DPI_STATUS_OK;
}

void dpi_sampler_free(dpi_sampler *s) {
    if (!s)
        return;
    if (s->method->free)
        s->method->free(s);
    const size_t n = (size_t)s->options.n_vocab;
    /* The public arrays too: a plain run may have been given a reference as its prompt. */
    dpi_wipe_free(s->fixed, n * sizeof *s->fixed);
    dpi_wipe_free(s->support, n * sizeof *s->support);
    dpi_wipe_free(s->allowed, n * sizeof *s->allowed);
    dpi_wipe_free(s->sum, n * sizeof *s->sum);
    dpi_wipe_free(s->utility, n * sizeof *s->utility);
    dpi_wipe_free(s->weights, n * sizeof *s->weights);
    dpi_wipe_free(s, sizeof *s);
}

dpi_status dpi_sampler_begin(dpi_sampler *sampler, dpi_error *err) {
    if (!sampler)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler is NULL");
    sampler->begun = false;
    if (sampler->method->begin)
        DPI_TRY(sampler->method->begin(sampler, err));
    sampler->begun = true;
    sampler->to_merge = false;
    sampler->n_drawn = sampler->n_private = 0;
    sampler->n_allowed = 0;
    dpi_part_init(&sampler->part);
    return DPI_STATUS_OK;
}

void dpi_sampler_forget(dpi_sampler *s) {
    if (!s->used)
        return;
    dpi_wipe(s->sum, s->n_support * sizeof *s->sum);
    dpi_wipe(s->utility, s->n_support * sizeof *s->utility);
    dpi_wipe(s->weights, s->n_support * sizeof *s->weights);
    if (s->method->forget)
        s->method->forget(s);
    s->used = false;
}

dpi_status dpi_sampler_candidates(dpi_sampler *s, const float *public_logits, const int32_t **ids,
                                  int32_t *n, dpi_error *err) {
    if (!s || !public_logits || !ids || !n)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the sampler, the public logits, ids or n is NULL");
    const int32_t n_vocab = s->options.n_vocab;
    /* A step may read nothing at all. */
    const bool paced = s->options.pace != DPI_PACE_NONE || s->n_allowed > 0;
    bool few = s->method->candidates && (s->options.top_k > 0 || paced);
    s->is_free = false;
    s->to_merge = false; /* another part has drawn from the sums of this one */
    if (few) {
        dpi_sampler_forget(s); /* while n_support is still that of the arrays in use */
        DPI_TRY(s->method->candidates(s, public_logits, err));
        few = s->is_free || s->n_support <= (size_t)(n_vocab / DPI_CANDIDATES_FEW);
    }
    *ids = few ? s->support : NULL;
    *n = s->is_free ? 0 : few ? (int32_t)s->n_support : n_vocab;
    return DPI_STATUS_OK;
}

dpi_status dpi_sampler_distribution(dpi_sampler *s, const float *public_logits,
                                    const float *const *reference_logits,
                                    dpi_distribution *distribution, dpi_error *err) {
    dpi_sampler_forget(s);
    if (!s->method->distribution)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a step of %s is not one draw from one "
                        "distribution",
                        s->method->info.name);
    s->used = true;
    DPI_TRY(s->method->distribution(s, public_logits, reference_logits, err));
    *distribution = (dpi_distribution){.n_support = (int64_t)s->n_support,
                                       .support = s->support,
                                       .sum = s->sum,
                                       .weights = s->weights,
                                       .is_free = s->is_free};
    return DPI_STATUS_OK;
}

static bool allows_some(const uint64_t *allowed, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (allowed[i / 64] >> (i % 64) & 1)
            return true;
    return false;
}

dpi_status dpi_sampler_allow(dpi_sampler *s, const uint64_t *allowed, dpi_error *err) {
    if (!s || !s->begun)
        return dpi_fail(err, s ? DPI_STATUS_STATE : DPI_STATUS_ARG,
                        "a sampler is NULL, or is told which tokens are allowed before its begin");
    const int32_t n = s->options.n_vocab;
    if (allowed && !s->allowed)
        s->allowed = dpi_calloc((size_t)n, sizeof *s->allowed);
    if (allowed && !s->allowed)
        return dpi_no_memory(err, "the tokens that are allowed");
    int32_t n_allowed = 0;
    if (allowed && !allows_some(allowed, n))
        return dpi_fail(err, DPI_STATUS_ARG, "no token is allowed");
    for (int32_t i = 0; allowed && i < n; i += 64)
        for (uint64_t word = allowed[i / 64]; word != 0; word &= word - 1) {
            const int32_t token = i + __builtin_ctzll(word);
            if (token < n)
                s->allowed[n_allowed++] = token;
        }
    s->n_allowed = n_allowed;
    return DPI_STATUS_OK;
}

static dpi_status draw_token(dpi_sampler *s, const float *public_logits,
                             const float *const *reference_logits, int32_t *token, dpi_error *err) {
    dpi_distribution d;
    size_t index;
    DPI_TRY(dpi_sampler_distribution(s, public_logits, reference_logits, &d, err));
    DPI_TRY(dpi_sampler_draw(s, &index, err));
    if (s->method->charge)
        s->method->charge(s);
    s->n_private += !s->is_free && s->method->info.max_ref > 0;
    *token = d.support[index];
    return DPI_STATUS_OK;
}

dpi_status dpi_sampler_step(dpi_sampler *s, const float *public_logits,
                            const float *const *reference_logits, int32_t *token, dpi_error *err) {
    if (!s || !public_logits || !token)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler, the public logits or the token is NULL");
    if (!s->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "a sampler's step comes after its begin");
    if (s->part.count > 1)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "this is one of %d parts of a text: a step needs the sums of all",
                        (int)s->part.count);
    if (s->n_drawn >= s->options.n_tokens)
        return dpi_fail(err, DPI_STATUS_BUDGET, "all %d tokens of this text have been drawn",
                        s->options.n_tokens);
    s->used = true;
    s->to_merge = false; /* partial sums that nobody drew from */
    dpi_status status = s->method->step
                            ? s->method->step(s, public_logits, reference_logits, token, err)
                            : draw_token(s, public_logits, reference_logits, token, err);
    if (status == DPI_STATUS_OK)
        s->n_drawn++;
    dpi_sampler_forget(s);
    return status;
}

/* The same as draw_token, but for the draw. */
static dpi_status recall_token(dpi_sampler *s, const float *public_logits,
                               const float *const *reference_logits, int32_t token,
                               dpi_error *err) {
    dpi_distribution d;
    DPI_TRY(dpi_sampler_distribution(s, public_logits, reference_logits, &d, err));
    int64_t i = 0;
    while (i < d.n_support && d.support[i] < token)
        i++;
    if (i == d.n_support || d.support[i] != token)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "token %d of the text is no candidate where it is said to have been drawn: "
                        "the model or the prompts are not those that it was drawn with",
                        s->n_drawn);
    if (s->method->charge)
        s->method->charge(s);
    s->n_private += !s->is_free && s->method->info.max_ref > 0;
    return DPI_STATUS_OK;
}

int32_t dpi_method_recalls(int32_t method) {
    const dpi_method_ops *ops = dpi_method_ops_get(method);
    return ops && !ops->step;
}

dpi_status dpi_sampler_recall(dpi_sampler *s, const float *public_logits,
                              const float *const *reference_logits, int32_t token, dpi_error *err) {
    if (!s || !public_logits)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler or the public logits are NULL");
    if (!dpi_method_recalls(s->options.method))
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a text of %s cannot go on from its tokens: its steps keep random numbers "
                        "that are in no token",
                        s->method->info.name);
    if (!s->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "a sampler's recall comes after its begin");
    if (s->n_drawn >= s->options.n_tokens)
        return dpi_fail(err, DPI_STATUS_BUDGET, "all %d tokens of this text have been drawn",
                        s->options.n_tokens);
    s->to_merge = false;
    const dpi_status status = recall_token(s, public_logits, reference_logits, token, err);
    if (status == DPI_STATUS_OK)
        s->n_drawn++;
    dpi_sampler_forget(s);
    return status;
}

int32_t dpi_sampler_tokens_left(const dpi_sampler *s) {
    return s && s->begun ? s->options.n_tokens - s->n_drawn : 0;
}

int32_t dpi_sampler_n_private(const dpi_sampler *s) { return s && s->begun ? s->n_private : 0; }

int32_t dpi_sampler_needs_references(const dpi_sampler *s) {
    return dpi_sampler_tokens_left(s) > 0 && s->method->info.max_ref > 0 &&
           !(s->method->is_over && s->method->is_over(s));
}

const dpi_sampler_options *dpi_sampler_options_get(const dpi_sampler *sampler) {
    return &sampler->options;
}

const dpi_sampler_plan *dpi_sampler_plan_get(const dpi_sampler *sampler) { return &sampler->plan; }
