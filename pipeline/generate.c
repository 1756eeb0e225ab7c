/* generate.c - one text in one call: a loop over its generation. */
#include "dpinfer.h"
#include "base/status.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"

void dpi_generate_input_init(dpi_generate_input *input) {
    *input = (dpi_generate_input){.struct_size = sizeof *input};
}

void dpi_generate_hooks_init(dpi_generate_hooks *hooks) {
    *hooks = (dpi_generate_hooks){.struct_size = sizeof *hooks};
}

void dpi_generate_result_init(dpi_generate_result *result) {
    *result = (dpi_generate_result){.struct_size = sizeof *result};
}

static dpi_status check_structs(const dpi_generate_input *in, const dpi_generate_hooks *hooks,
                                const dpi_generate_result *result, dpi_error *err) {
    if (result && result->struct_size != sizeof *result)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_generate_result.struct_size is %zu, must be %zu",
                        result->struct_size, sizeof *result);
    if (in->struct_size != sizeof *in || hooks->struct_size != sizeof *hooks)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "dpi_generate: struct_size of input is %zu (must be %zu), of hooks %zu "
                        "(must be %zu)",
                        in->struct_size, sizeof *in, hooks->struct_size, sizeof *hooks);
    return DPI_STATUS_OK;
}

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
    static const dpi_generate_hooks none = {.struct_size = sizeof none};
    dpi_generate_result drawn = {0};
    dpi_generation *g = NULL;
    DPI_TRY(check_structs(input, hooks ? hooks : &none, result, err));
    DPI_TRY(create(session, sampler, input, &g, err));
    const int32_t n_references =
        input->n_ref * dpi_sampler_per_unit(dpi_sampler_options_get(sampler));
    for (int32_t i = 0; i <= n_references; i++)
        dpi_session_reset(session, i);
    dpi_status status = run(g, input, hooks ? hooks : &none, &drawn, err);
    dpi_generation_free(g);
    if (result) {
        result->n_drawn = drawn.n_drawn;
        result->ended = drawn.ended;
    }
    return status;
}
