/* plan.c - a plan that is made: what is read from it, and its end. See plan.h. */
#include "pipeline/release/plan.h"

#include <stdlib.h>

#include "base/status.h"

void dpi_plan_free(dpi_plan *plan) {
    for (int32_t i = 0; i < plan->n_prompts; i++)
        dpi_prompts_free(plan->prompts[i]);
    free(plan->prompts);
    free(plan->sets);
    dpi_labels_free(&plan->labels);
    dpi_mask_free(plan->mask);
    dpi_word_rules_free(plan->rules);
    dpi_pace_texts_free(plan->public_texts);
}

bool dpi_plan_is_plain(const dpi_plan *plan) {
    return plan->claim.method.method == DPI_METHOD_PLAIN;
}

int32_t dpi_plan_n_texts(const dpi_plan *plan) {
    const dpi_release_options *o = &plan->options;
    return o->n_shards > 0 ? (plan->claim.n_texts - o->shard + o->n_shards - 1) / o->n_shards
                           : plan->claim.n_texts;
}

const dpi_prompts *dpi_plan_prompts(const dpi_plan *plan, int32_t label) {
    return plan->prompts[label >= 0 && plan->n_prompts > 1 ? label : 0];
}

dpi_bytes dpi_plan_label(const dpi_plan *plan, int32_t label) {
    const bool named = plan->labels.n > 0 && dpi_prompt_options_have_label(&plan->options.prompts);
    return named && label >= 0 ? dpi_labels_meaning(&plan->labels, label) : (dpi_bytes){NULL, 0};
}

void dpi_plan_random(const dpi_plan *plan, uint64_t *bits, dpi_random_fn *random, void **user) {
    *random = plan->options.seeded ? dpi_random_insecure : plan->options.method.random;
    *user = plan->options.seeded ? bits : plan->options.method.random_user;
}

bool dpi_plan_is_cancelled(const dpi_plan *plan) {
    const dpi_session_options *o = &plan->options.session;
    return o->cancel && o->cancel(o->cancel_user);
}

dpi_status dpi_plan_check_cancelled(const dpi_plan *plan, const char *what, dpi_error *err) {
    return dpi_plan_is_cancelled(plan)
               ? dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while %s", what)
               : DPI_STATUS_OK;
}
