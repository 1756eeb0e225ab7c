/* merge.c - one token of a text whose references are spread over several samplers: the sums of
 * each, and the draw from their sum (dpinfer/method.h). */
#include "base/mem.h"
#include "base/status.h"
#include "dp/exact/aggregate.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"

static dpi_status check(const dpi_sampler *s, dpi_error *err) {
    if (!s->method->partial)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "the method %s has no sums that merge",
                        s->method->info.name);
    if (!s->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "a sampler's partial sums come after its begin");
    return DPI_STATUS_OK;
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
        s->n_drawn++;
        s->to_merge = true;
        memcpy(sums, s->sum, s->n_support * sizeof *sums);
        *n = (int32_t)s->n_support;
    }
    dpi_sampler_forget(s);
    return status;
}

void dpi_sums_merge(int64_t *sums, const int64_t *others, int32_t n) {
    dpi_aggregate_merge(sums, others, n > 0 ? (size_t)n : 0);
}

static dpi_status draw(dpi_sampler *s, const float *public_logits, const int64_t *sums,
                       int32_t *token, dpi_error *err) {
    size_t index;
    DPI_TRY(s->method->candidates(s, public_logits, err));
    memcpy(s->sum, sums, s->n_support * sizeof *sums);
    s->method->weigh(s);
    DPI_TRY(dpi_sampler_draw(s, &index, err));
    *token = s->support[index];
    return DPI_STATUS_OK;
}

dpi_status dpi_sampler_step_merged(dpi_sampler *s, const float *public_logits, const int64_t *sums,
                                   int32_t *token, dpi_error *err) {
    if (!s || !public_logits || !sums || !token)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the sampler, the public logits, the sums or the token is NULL");
    DPI_TRY(check(s, err));
    if (!s->to_merge)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "sums are drawn from once after each dpi_sampler_partial");
    dpi_sampler_forget(s);
    s->used = true;
    const dpi_status status = draw(s, public_logits, sums, token, err);
    s->to_merge = status != DPI_STATUS_OK;
    dpi_sampler_forget(s);
    return status;
}
