/* settle_released.c - whether a plan can have rounds, and how long prompts are with the texts of
 * one. No record is read. */
#include "base/status.h"
#include "pipeline/prompts.h"
#include "pipeline/release/plan.h"

enum { ANY_ROOM = 1 << 30 };

dpi_status dpi_plan_check_shared(const dpi_release_options *o, dpi_error *err) {
    return o->n_released == 0
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                          "released: found %d, allowed where one process draws all texts: another "
                          "one does not have the texts of the round before", o->n_released);
}

dpi_status dpi_plan_check_released(const dpi_release_options *o, dpi_error *err) {
    const int32_t most = DPI_EXAMPLES_MAX - o->prompts.n_examples - o->prompts.n_turns;
    DPI_TRY(dpi_check_range("released", o->n_released, 0, most, err)); /* each is a turn, too */
    if (o->n_released == 0)
        return DPI_STATUS_OK;
    if (o->n_shards > 0 || o->next_text)
        DPI_TRY(dpi_plan_check_shared(o, err));
    if (o->wording && o->wording->keep_answer)
        return dpi_fail(err, DPI_STATUS_ARG, "released and keep_answer: allowed is one of them: in "
                                             "prompts each text has its answer before it");
    return DPI_STATUS_OK;
}

/* Each text counts with T tokens: one character of the prompts that are made is less. */
dpi_status dpi_plan_released_length(const dpi_plan *plan, const dpi_prompt_options *o,
                                    dpi_prompts_info *info, dpi_error *err) {
    const int32_t n = plan->options.n_released, n_ctx = plan->options.session.n_ctx;
    const int32_t n_room = n_ctx - plan->options.n_tokens;
    const int64_t more = (int64_t)n * plan->options.n_tokens;
    dpi_bytes texts[DPI_EXAMPLES_MAX];
    dpi_prompts *prompts;
    if (n == 0)
        return DPI_STATUS_OK;
    for (int32_t i = 0; i < n; i++)
        texts[i] = (dpi_bytes){"x", 1};
    DPI_TRY(dpi_prompts_create_released(plan->options.model, o, texts, n, ANY_ROOM, &prompts, err));
    const dpi_status status = dpi_prompts_info_get(prompts, info, err);
    dpi_prompts_free(prompts);
    if (status != DPI_STATUS_OK)
        return status;
    const int64_t longer = info->n_public > info->n_frame ? info->n_public : info->n_frame;
    if (longer + more >= n_room)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "released: found %d, whose prompts may have %lld tokens before a record, "
                        "allowed less than %d (the context less n_tokens): with fewer texts, a "
                        "smaller -n or a larger context they fit", n, (long long)(longer + more),
                        n_room);
    const int32_t n_record = info->n_limit - info->n_frame;
    info->n_public += (int32_t)more;
    info->n_frame += (int32_t)more;
    info->n_prefix += (int32_t)more;
    info->n_limit = n_record < n_room - info->n_frame ? info->n_frame + n_record : n_room;
    return DPI_STATUS_OK;
}
