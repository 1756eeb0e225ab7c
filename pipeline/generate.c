/* generate.c - one text in one call: a loop over its generation. */
#include "dpinfer.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"

DPI_STRUCT_DEFAULTS(dpi_generate_input, 0)

DPI_STRUCT_DEFAULTS(dpi_generate_hooks, 0)

DPI_STRUCT_DEFAULTS(dpi_generate_result, 0)

/* Draws the text; *result counts along. */
static dpi_status run(dpi_generation *g, const dpi_generate_input *input,
                      const dpi_generate_hooks *h, dpi_generate_result *result, dpi_error *err) {
    dpi_generation_event e = {0};
    if (h->on_progress)
        h->on_progress(h->user, 0, input->n_tokens);
    while (e.end == DPI_END_NONE) {
        if (h->cancel && h->cancel(h->user))
            return dpi_fail(err, DPI_STATUS_CANCELLED,
                            e.n_read < e.n_prompts || e.n_prompts == 0
                                ? "cancelled while reading prompts"
                                : "cancelled between tokens");
        DPI_TRY(dpi_generation_advance(&g, 1, &e, err));
        if (e.type != DPI_EVENT_TOKEN)
            continue;
        result->n_drawn = e.n_drawn;
        if (h->on_token && h->on_token(h->user, e.token))
            return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled after a token");
        if (h->on_progress)
            h->on_progress(h->user, e.n_drawn, input->n_tokens);
    }
    result->ended = dpi_end_is_own(e.end);
    return DPI_STATUS_OK;
}

static dpi_status create(dpi_session *session, dpi_sampler *sampler, const dpi_generate_input *in,
                         dpi_generation **g, dpi_error *err) {
    dpi_generation_options o;
    dpi_generation_options_init(&o);
    o.session = session;
    o.sampler = sampler;
    o.public_tokens = in->public_tokens;
    o.n_public = in->n_public;
    o.reference_tokens = in->reference_tokens;
    o.n_reference_tokens = in->n_reference_tokens;
    o.n_ref = in->n_ref;
    o.n_prefix = in->n_prefix;
    DPI_TRY(dpi_generation_create(&o, g, err));
    const int32_t n_tokens = dpi_sampler_options_get(sampler)->n_tokens;
    if (in->n_tokens == n_tokens)
        return DPI_STATUS_OK;
    dpi_generation_free(*g);
    return dpi_fail(err, DPI_STATUS_ARG, "dpi_generate: n_tokens is %d, must be the sampler's %d",
                    (int)in->n_tokens, (int)n_tokens);
}

dpi_status dpi_generate(dpi_session *session, dpi_sampler *sampler, const dpi_generate_input *input,
                        const dpi_generate_hooks *hooks, dpi_generate_result *result,
                        dpi_error *err) {
    dpi_generate_result drawn = {0};
    dpi_generation *g = NULL;
    DPI_COPY_STRUCT(dpi_generate_input, in, input, err);
    DPI_COPY_STRUCT_IF(dpi_generate_hooks, h, hooks, err);
    if (result)
        DPI_CHECK_STRUCT(dpi_generate_result, result, err);
    DPI_TRY(create(session, sampler, &in, &g, err));
    const int32_t n_references =
        in.n_ref * dpi_sampler_per_unit(dpi_sampler_options_get(sampler));
    for (int32_t i = 0; i <= n_references; i++)
        dpi_session_reset(session, i);
    dpi_status status = run(g, &in, &h, &drawn, err);
    dpi_generation_free(g);
    if (result)
        dpi_struct_give(result, &drawn, sizeof drawn);
    return status;
}
