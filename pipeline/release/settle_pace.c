/* settle_pace.c - the pace of a plan, from public texts, and how many of these a run may draw. No
 * record is read, and none was. */
#include "base/status.h"
#include "dp/methods/method.h"
#include "pipeline/release/plan.h"

/* Public texts take at most one in so many of the rows that a run computes for its tokens, and no
 * more memory than the run, but there are two of them at least: they differ, and a text that is cut
 * says little about its length. */
enum { SHARE_OF_ROWS = 8, TEXTS_LEAST = 2 };

/* Of a text, in a step. */
static int64_t count_rows(const dpi_run *c) {
    return (int64_t)c->method.denominator * dpi_sampler_per_unit(&c->method) + 1;
}

int64_t dpi_plan_public_texts(const dpi_run *c) {
    return c->n_texts * count_rows(c) / SHARE_OF_ROWS;
}

static int32_t count_texts(const dpi_run *c, int32_t most) {
    const int64_t n_seq = count_rows(c), n = dpi_plan_public_texts(c);
    most = n_seq < most ? (int32_t)n_seq : most;
    return n < TEXTS_LEAST ? TEXTS_LEAST : n < most ? (int32_t)n : most;
}

/* What dpi_pace_find leaves as it is. */
static int32_t given_in(dpi_sampler_options *m) {
    return m->pace_theta > 0            ? DPI_PACE_GIVEN_THETA
           : *dpi_method_quota(m) > 0 ? DPI_PACE_GIVEN_TOKENS
                                        : DPI_PACE_GIVEN_NONE;
}

static dpi_status find(dpi_plan *plan, dpi_sampler_options *method, dpi_error *err) {
    dpi_pace_search search;
    dpi_session_options session = plan->options.session;
    dpi_session *public_session;
    const dpi_prompts *prompts = dpi_plan_prompts(plan, 0); /* with labels those of the first */
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(prompts, &info, err));
    dpi_pace_search_init(&search);
    session.n_seq = search.n_texts = count_texts(&plan->claim, search.n_texts);
    DPI_TRY(dpi_session_create(plan->options.model, &session, &public_session, err));
    dpi_status status = dpi_plan_steer(plan, public_session, 0, session.n_seq, -1, err);
    search.session = public_session;
    search.public_tokens = dpi_prompts_public(prompts);
    search.n_public = (size_t)info.n_public;
    search.cancel = session.cancel;
    search.cancel_user = session.cancel_user;
    search.mask = plan->mask;
    search.rules = plan->rules, search.n_answer = info.n_answer;
    search.texts = &plan->public_texts;
    plan->claim.pace_given = given_in(method);
    if (status == DPI_STATUS_OK)
        status = dpi_pace_find(&search, method, err);
    if (status == DPI_STATUS_OK)
        plan->claim.pace_texts = search.n_texts;
    dpi_session_free(public_session);
    return status;
}

dpi_status dpi_plan_settle_pace(dpi_plan *plan, dpi_error *err) {
    dpi_sampler_options *method = &plan->claim.method;
    /* More than T would leave each token less, and pay for tokens that never come. */
    DPI_TRY(dpi_check_range("pace_tokens", method->pace_tokens, 0, method->n_tokens, err));
    return dpi_pace_is_open(method) ? find(plan, method, err) : dpi_pace_find(NULL, method, err);
}
