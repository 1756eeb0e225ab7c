/* pace_find.c - a pace from texts that a session draws, see dpinfer/pace.h. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dpinfer/text.h"
#include "engine/session.h"
#include "pipeline/pace_texts.h"
#include "pipeline/released_text.h"

enum { TEXTS = 8 };

/* The texts while they are drawn. */
typedef struct walk {
    const dpi_pace_search *search;
    dpi_pace_texts *texts;
    int32_t n_steps;
    int32_t live[DPI_PACE_TEXTS_MAX];  /* [n_live] texts that go on */
    int32_t token[DPI_PACE_TEXTS_MAX]; /* their last tokens */
    dpi_mask_text *masked[DPI_PACE_TEXTS_MAX]; /* places in the grammar; NULL: there is none */
    dpi_released released[DPI_PACE_TEXTS_MAX];
    int32_t n_live;
} walk;

DPI_STRUCT_DEFAULTS(dpi_pace_search, .n_texts = TEXTS)

static dpi_status check_search(const dpi_pace_search *x, dpi_error *err) {
    if (!x)
        return dpi_fail(err, DPI_STATUS_ARG, "the search of a pace is NULL");
    if (!x->session || !x->public_tokens || x->n_public == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "the session of a pace is NULL, or the "
                        "public prompt empty");
    DPI_TRY(dpi_check_range("n_texts", x->n_texts, 1, DPI_PACE_TEXTS_MAX, err));
    DPI_TRY(dpi_check_range("n_steps", x->n_steps, 0, INT32_MAX, err));
    DPI_TRY(dpi_check_range("n_answer", x->n_answer, 0, (int64_t)x->n_public, err));
    for (int32_t i = 0; i < x->n_texts; i++)
        if (dpi_session_length(x->session, i) != 0)
            return dpi_fail(err, DPI_STATUS_STATE,
                            "sequence %d is not the session's, or not empty: public texts need "
                            "sequences 0..%d", (int)i, (int)x->n_texts - 1);
    return DPI_STATUS_OK;
}

static dpi_status open_walk(walk *w, int32_t n_tokens, dpi_error *err) {
    const dpi_pace_search *x = w->search;
    const int32_t *answer = x->public_tokens + x->n_public - x->n_answer;
    w->n_steps = x->n_steps > 0 && x->n_steps < n_tokens ? x->n_steps : n_tokens;
    for (int32_t i = 0; i < x->n_texts; i++) {
        DPI_TRY(dpi_pace_texts_begin(w->texts, w->n_steps, err));
        if (x->mask)
            DPI_TRY(dpi_mask_text_create(x->mask, &w->masked[i], err));
        if (x->rules)
            DPI_TRY(dpi_released_open_ruled(x->rules, DPI_TEXT_WHOLE, answer, (size_t)x->n_answer,
                                            0, &w->released[i], err));
        else
            DPI_TRY(dpi_released_open(dpi_session_model(x->session), DPI_TEXT_WHOLE, w->n_steps,
                                      &w->released[i], err));
    }
    return DPI_STATUS_OK;
}

/* The prompt is read once. */
static dpi_status read_prompt(walk *w, dpi_error *err) {
    const dpi_pace_search *x = w->search;
    DPI_TRY(dpi_session_prefill(x->session, 0, x->public_tokens, x->n_public, NULL, err));
    for (int32_t i = 0; i < x->n_texts; i++) {
        if (i > 0)
            DPI_TRY(dpi_session_fork(x->session, 0, i, (int32_t)x->n_public, err));
        w->live[i] = i;
    }
    w->n_live = x->n_texts;
    return DPI_STATUS_OK;
}

/* The next token of a text, and how sure the public model was. */
static dpi_status draw(walk *w, int32_t text, int32_t *token, dpi_error *err) {
    float *logits = dpi_session_logits_row(w->search->session, text);
    dpi_sampler *sampler = dpi_pace_texts_sampler(w->texts);
    dpi_worded *worded = w->released[text].ruled;
    dpi_worded_shift(worded, logits);
    DPI_TRY(dpi_sampler_begin(sampler, err));
    DPI_TRY(dpi_worded_allow(w->masked[text], worded, sampler, err));
    DPI_TRY(dpi_pace_texts_step(w->texts, text, logits, err));
    DPI_TRY(dpi_sampler_step(sampler, logits, NULL, token, err));
    DPI_TRY(dpi_released_push(&w->released[text], *token, NULL, NULL, err));
    return w->masked[text] && !dpi_worded_is_cut(worded)
               ? dpi_mask_text_push(w->masked[text], *token, err)
               : DPI_STATUS_OK;
}

static dpi_status draw_all(walk *w, dpi_error *err) {
    const dpi_model *model = dpi_session_model(w->search->session);
    int32_t n = 0;
    for (int32_t i = 0; i < w->n_live; i++) {
        const int32_t text = w->live[i];
        int32_t token;
        DPI_TRY(draw(w, text, &token, err));
        w->live[n] = text;
        w->token[n] = token;
        if (dpi_released_end_of(&w->released[text], model, token) != DPI_END_NONE)
            dpi_pace_texts_end(w->texts, text);
        else
            n++;
    }
    w->n_live = n;
    return DPI_STATUS_OK;
}

static dpi_status end_texts(walk *w, dpi_error *err) {
    const char *said = "";
    size_t n_bytes = 0;
    for (int32_t i = 0; i < w->search->n_texts; i++) {
        DPI_TRY(dpi_released_end(&w->released[i], &said, &n_bytes, err));
        dpi_pace_texts_say(w->texts, i, said, n_bytes);
    }
    return DPI_STATUS_OK;
}

static dpi_status draw_texts(walk *w, dpi_error *err) {
    const dpi_pace_search *x = w->search;
    DPI_TRY(read_prompt(w, err));
    for (int32_t t = 0; t < w->n_steps && w->n_live > 0; t++) {
        if (x->cancel && x->cancel(x->cancel_user))
            return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled");
        if (t > 0)
            DPI_TRY(dpi_session_step(x->session, w->n_live, w->live, w->token, err));
        DPI_TRY(draw_all(w, err));
    }
    return end_texts(w, err);
}

static dpi_status find(walk *w, int32_t n_tokens, dpi_error *err) {
    DPI_TRY(check_search(w->search, err));
    dpi_status status = open_walk(w, n_tokens, err);
    if (status == DPI_STATUS_OK)
        status = draw_texts(w, err);
    for (int32_t i = 0; i < w->search->n_texts; i++) {
        dpi_session_reset(w->search->session, i);
        dpi_mask_text_free(w->masked[i]);
        dpi_released_close(&w->released[i]);
    }
    return status;
}

dpi_status dpi_pace_find(const dpi_pace_search *search, dpi_sampler_options *method,
                         dpi_error *err) {
    DPI_COPY_STRUCT_IF(dpi_pace_search, x, search, err);
    walk w = {.search = search ? &x : NULL};
    if (x.texts)
        *x.texts = NULL;
    DPI_TRY(dpi_pace_texts_create(method, &w.texts, err));
    dpi_status status = dpi_pace_texts_sampler(w.texts) ? find(&w, method->n_tokens, err)
                                                        : DPI_STATUS_OK;
    if (status == DPI_STATUS_OK)
        status = dpi_pace_texts_settle(w.texts, method, err);
    if (status == DPI_STATUS_OK && x.texts && dpi_pace_texts_sampler(w.texts))
        *x.texts = w.texts;
    else
        dpi_pace_texts_free(w.texts);
    return status;
}
