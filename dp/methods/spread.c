/* spread.c - one token of a text whose references are spread over several samplers: the sums of
 * each, and the draw from their sum (dpinfer/method.h). */
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/exact/aggregate.h"
#include "dp/exact/parts.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"

static dpi_status check_method(const dpi_sampler *s, dpi_error *err) {
    if (!s->method->partial)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "the method %s has no sums that merge",
                        s->method->info.name);
    return DPI_STATUS_OK;
}

static dpi_status check(const dpi_sampler *s, dpi_error *err) {
    DPI_TRY(check_method(s, err));
    if (!s->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "a sampler's partial sums come after its begin");
    return DPI_STATUS_OK;
}

dpi_status dpi_sampler_begin_part(dpi_sampler *s, const dpi_part *part, dpi_error *err) {
    if (!s)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler is NULL");
    DPI_COPY_STRUCT(dpi_part, p, part, err);
    DPI_TRY(dpi_check_range("count", p.count, 1, DPI_PARTS_MAX, err));
    DPI_TRY(dpi_check_range("index", p.index, 0, p.count - 1, err));
    DPI_TRY(check_method(s, err));
    DPI_TRY(dpi_sampler_begin(s, err));
    s->part = p;
    return DPI_STATUS_OK;
}

/* What all parts must agree on: the text, the token after `n_before` others, what the draw and the
 * clip depend on. */
static dpi_parts_step step_of(const dpi_sampler *s, int32_t n_before) {
    const dpi_sampler_options *o = &s->options;
    uint64_t rho;
    memcpy(&rho, &s->plan.rho_total, sizeof rho);
    const uint64_t facts[] = {(uint64_t)s->part.text,     (uint64_t)s->part.count,
                              (uint64_t)n_before,         (uint64_t)s->K,
                              s->plan.a,                  rho,
                              (uint64_t)o->method,        (uint64_t)o->n_vocab,
                              (uint64_t)o->n_tokens,      (uint64_t)o->adjacency,
                              (uint64_t)o->accountant,    (uint64_t)dpi_sampler_denominator(o),
                              (uint64_t)(o->center != 0), (uint64_t)dpi_sampler_per_unit(o)};
    return (dpi_parts_step){.step = dpi_parts_digest(facts, sizeof facts),
                            .candidates =
                                dpi_parts_candidates(s->support, s->fixed, s->n_support)};
}

dpi_status dpi_sampler_partial(dpi_sampler *s, const float *public_logits,
                               const float *const *reference_logits, int64_t *sums, int32_t *n,
                               dpi_error *err) {
    if (!s || !public_logits || !sums || !n)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler, the public logits, sums or n is NULL");
    DPI_TRY(check(s, err));
    if (s->n_drawn >= s->options.n_tokens)
        return dpi_fail(err, DPI_STATUS_BUDGET, "all %d tokens of this text have been booked",
                        s->options.n_tokens);
    dpi_sampler_forget(s);
    s->used = true;
    s->to_merge = false;
    const dpi_status status = s->method->partial(s, public_logits, reference_logits, err);
    if (status == DPI_STATUS_OK) {
        if (s->method->charge)
            s->method->charge(s); /* before the sums leave */
        dpi_parts_mark(sums, s->part.index, step_of(s, s->n_drawn));
        s->n_drawn++;
        s->n_private += !s->is_free;
        s->to_merge = true;
        memcpy(sums + DPI_SUMS_HEADER, s->sum, s->n_support * sizeof *sums);
        *n = DPI_SUMS_HEADER + (int32_t)s->n_support;
    }
    dpi_sampler_forget(s);
    return status;
}

dpi_status dpi_sums_merge(int64_t *sums, const int64_t *others, int32_t n, dpi_error *err) {
    if (!sums || !others)
        return dpi_fail(err, DPI_STATUS_ARG, "the sums are NULL");
    if (n < DPI_SUMS_HEADER)
        return dpi_fail(err, DPI_STATUS_ARG, "%d entries, must be %d or more: the header of parts",
                        (int)n, DPI_SUMS_HEADER);
    DPI_TRY(dpi_parts_mergeable(sums, others, err));
    dpi_aggregate_merge(sums, others, (size_t)n);
    return DPI_STATUS_OK;
}

static dpi_status draw(dpi_sampler *s, const float *public_logits, const int64_t *sums, int32_t n,
                       int32_t *token, dpi_error *err) {
    size_t index;
    DPI_TRY(s->method->candidates(s, public_logits, err));
    if ((size_t)n != DPI_SUMS_HEADER + s->n_support)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "%d entries of sums, must be %zu: the header and one for each candidate",
                        (int)n, DPI_SUMS_HEADER + s->n_support);
    DPI_TRY(dpi_parts_check(sums, s->part.count, step_of(s, s->n_drawn - 1), err));
    memcpy(s->sum, sums + DPI_SUMS_HEADER, s->n_support * sizeof *sums);
    s->method->weigh(s);
    DPI_TRY(dpi_sampler_draw(s, &index, err));
    *token = s->support[index];
    return DPI_STATUS_OK;
}

dpi_status dpi_sampler_step_merged(dpi_sampler *s, const float *public_logits, const int64_t *sums,
                                   int32_t n, int32_t *token, dpi_error *err) {
    if (!s || !public_logits || !sums || !token || n < 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the sampler, the public logits, the sums or the token is NULL, or n is "
                        "negative");
    DPI_TRY(check(s, err));
    if (!s->to_merge)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "sums are drawn from once after each dpi_sampler_partial");
    dpi_sampler_forget(s);
    s->used = true;
    const dpi_status status = draw(s, public_logits, sums, n, token, err);
    s->to_merge = status != DPI_STATUS_OK;
    dpi_sampler_forget(s);
    return status;
}
