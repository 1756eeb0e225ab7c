/* preview.c - see preview.h. */
#include "eval/preview.h"

#include <stdlib.h>
#include <string.h>

#include "corpus/document_grammar.h"
#include "dpinfer/drawing.h"
#include "dpinfer/memory.h"
#include "eval/fail.h"

/* What is open while texts are drawn. */
typedef struct work {
    const eval_preview_options *o;
    dpi_prompts **of_label;  /* [n_labels] or one */
    dpi_prompts **of_record; /* [n_records] */
    dpi_wording wording; /* as a run has it */
    dpi_bytes stops[DPI_STOPS_MAX];
    dpi_prompt_options prompts;
    dpi_word_rules *rules;
    dpi_mask *mask;
    int32_t n_labels, n_records;
} work;

dpi_status eval_preview_tickets(int32_t n, eval_texts *records, dpi_error *err) {
    char text[EVAL_PREVIEW_TEXTS_MAX][CORPUS_TEXT_BYTES];
    const char *at[EVAL_PREVIEW_TEXTS_MAX];
    const corpus_law law = corpus_law_of(&corpus_ticket, CORPUS_FLAT);
    uint64_t bits = 1;
    for (int32_t i = 0; i < n; i++) {
        int8_t values[CORPUS_ATTRIBUTES];
        corpus_draw(&corpus_ticket, &law, false, &bits, values);
        corpus_write(&corpus_ticket, values, false, &bits, text[i]);
        at[i] = text[i];
    }
    return eval_texts_make(at, NULL, n, records, err);
}

/* ---- Prompts --------------------------------------------------------------------------------- */

static int32_t label_of(const work *w, int32_t record) {
    const char *label = w->o->records->at[record].label;
    for (int32_t i = 0; label && i < w->o->n_labels; i++)
        if (strcmp(w->o->labels[i], label) == 0)
            return i;
    return record % w->n_labels;
}

/* `call` says no more than that a text of so many tokens fits. */
static dpi_status make_prompts(work *w, int32_t n_room, dpi_error *err) {
    w->n_labels = w->o->n_labels > 0 ? w->o->n_labels : 1;
    w->of_label = calloc((size_t)w->n_labels, sizeof *w->of_label);
    w->of_record = calloc((size_t)w->n_records, sizeof *w->of_record);
    if (!w->of_label || !w->of_record)
        return eval_no_memory(err, "the prompts");
    for (int32_t i = 0; i < w->n_labels; i++) {
        dpi_prompt_options o = w->prompts;
        char *label = w->o->n_labels > 0
                          ? dpi_label_in_prompt(w->o->labels[i],
                                                w->o->meanings ? w->o->meanings[i] : NULL,
                                                o.description.data != NULL)
                          : NULL;
        if (w->o->n_labels > 0 && !label)
            return eval_no_memory(err, "the prompts");
        if (label)
            o.label = (dpi_bytes){label, strlen(label)};
        const dpi_status status =
            dpi_prompts_create(w->o->model, &o, n_room, &w->of_label[i], err);
        free(label);
        EVAL_TRY(status);
    }
    for (int32_t i = 0; i < w->n_records; i++) {
        const eval_text *r = &w->o->records->at[i];
        EVAL_TRY(dpi_prompts_of_record(w->of_label[label_of(w, i)], r->text, r->n_bytes,
                                       &w->of_record[i], err));
    }
    return DPI_STATUS_OK;
}

static dpi_status show_prompt(const work *w, const dpi_prompts *prompts, char **text, int32_t *n,
                              dpi_error *err) {
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    EVAL_TRY(dpi_prompts_info_get(prompts, &info, err));
    *n = info.n_public;
    return dpi_tokens_show(w->o->model, dpi_prompts_public(prompts), (size_t)info.n_public, text,
                           err);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* n texts after `prompts` [n_prompts] in turn. */
static dpi_status draw(const work *w, dpi_prompts *const *prompts, int32_t n_prompts, int32_t n,
                       uint64_t seed, eval_texts *texts, bool *cut, dpi_error *err) {
    char *at[EVAL_PREVIEW_TEXTS_MAX] = {NULL};
    dpi_drawing_options o;
    dpi_drawing *d;
    dpi_drawn_text t;
    dpi_drawing_options_init(&o);
    o.model = w->o->model, o.prompts = prompts, o.n_prompts = n_prompts, o.n_texts = n;
    o.method = w->o->method, o.session = w->o->session;
    o.rules = w->rules, o.mask = w->mask;
    o.seeded = w->o->seeded, o.seed = seed;
    EVAL_TRY(dpi_drawing_open(&o, &d, err));
    dpi_status status = DPI_STATUS_OK;
    for (int32_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        status = dpi_drawing_next(d, &t, err);
        if (status == DPI_STATUS_OK) {
            at[i] = strndup(t.data, t.n_bytes);
            cut[i] = !t.ended;
            status = at[i] ? DPI_STATUS_OK : eval_no_memory(err, "the texts");
        }
    }
    if (status == DPI_STATUS_OK)
        status = eval_texts_make((const char *const *)at, NULL, n, texts, err);
    for (int32_t i = 0; i < n; i++)
        free(at[i]);
    dpi_drawing_free(d);
    return status;
}

static dpi_status copy_records(const work *w, eval_texts *records, dpi_error *err) {
    const char *at[EVAL_PREVIEW_TEXTS_MAX];
    for (int32_t i = 0; i < w->n_records; i++)
        at[i] = w->o->records->at[i].text;
    return eval_texts_make(at, NULL, w->n_records, records, err);
}

static dpi_status advise(const work *w, eval_preview *p, dpi_error *err) {
    const eval_preview_options *o = w->o;
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    EVAL_TRY(dpi_prompts_info_get(w->of_label[0], &info, err));
    const eval_tried tried = {
        .public_texts = &p->public_texts, .public_cut = p->public_cut,
        .record_texts = &p->record_texts, .record_cut = p->record_cut, .records = &p->records,
        .n_tokens = p->n_tokens, .is_base = info.chat == DPI_CHAT_NONE,
        .is_instruction = dpi_prompt_is_order(o->prompts.public_prompt) != 0,
        .has_answer = w->wording.answer.data != NULL,
        .has_stop = o->grammar || w->wording.n_stops > 0};
    return eval_advise(&tried, p->advice, &p->n_advice, err);
}

/* ---- All ------------------------------------------------------------------------------------- */

static dpi_status choose_wording(work *w, dpi_error *err) {
    const eval_preview_options *o = w->o;
    dpi_wording_init(&w->wording);
    if (o->wording)
        w->wording = *o->wording;
    w->prompts = o->prompts;
    w->prompts.n_text = o->method.n_tokens;
    if (!o->grammar)
        EVAL_TRY(dpi_wording_choose(&w->prompts, o->model, &w->wording, w->stops, err));
    dpi_wording_end_prompts(&w->wording, &w->prompts);
    return DPI_STATUS_OK;
}

static dpi_status make(work *w, eval_preview *p, dpi_error *err) {
    const eval_preview_options *o = w->o;
    dpi_model_info info;
    dpi_model_info_init(&info);
    EVAL_TRY(dpi_model_info_get(o->model, &info, err));
    p->n_tokens =
        o->method.n_tokens > 0 ? o->method.n_tokens : dpi_tokens_default(info.n_ctx_train);
    EVAL_TRY(choose_wording(w, err));
    EVAL_TRY(make_prompts(w, info.n_ctx_train - p->n_tokens, err));
    EVAL_TRY(dpi_word_rules_create(&w->wording, o->model, &w->rules, err));
    if (o->grammar)
        EVAL_TRY(dpi_mask_create(o->grammar, o->model, &w->mask, err));
    EVAL_TRY(show_prompt(w, w->of_label[0], &p->public_prompt, &p->n_public, err));
    EVAL_TRY(show_prompt(w, w->of_record[0], &p->private_prompt, &p->n_private, err));
    EVAL_TRY(copy_records(w, &p->records, err));
    EVAL_TRY(draw(w, w->of_label, w->n_labels, o->n_texts, o->seed, &p->public_texts,
                  p->public_cut, err));
    EVAL_TRY(draw(w, w->of_record, w->n_records, w->n_records, o->seed + 1, &p->record_texts,
                  p->record_cut, err));
    return advise(w, p, err);
}

dpi_status eval_preview_make(const eval_preview_options *o, eval_preview *p, dpi_error *err) {
    *p = (eval_preview){0};
    if (o->n_texts < 1 || o->n_texts > EVAL_PREVIEW_TEXTS_MAX)
        return eval_fail(err, DPI_STATUS_ARG, "n_texts: found %d, allowed 1..%d", (int)o->n_texts,
                         EVAL_PREVIEW_TEXTS_MAX);
    if (!o->records || o->records->n < 1)
        return eval_fail(err, DPI_STATUS_ARG, "records: found none, needed is an example");
    work w = {.o = o, .n_records = o->records->n < o->n_texts ? o->records->n : o->n_texts};
    const dpi_status status = make(&w, p, err);
    for (int32_t i = 0; w.of_label && i < w.n_labels; i++)
        dpi_prompts_free(w.of_label[i]);
    for (int32_t i = 0; w.of_record && i < w.n_records; i++)
        dpi_prompts_free(w.of_record[i]);
    free(w.of_label);
    free(w.of_record);
    dpi_mask_free(w.mask);
    dpi_word_rules_free(w.rules);
    return status;
}

void eval_preview_free(eval_preview *p) {
    dpi_private_free(p->public_prompt);
    dpi_private_free(p->private_prompt);
    eval_texts_free(&p->public_texts);
    eval_texts_free(&p->record_texts);
    eval_texts_free(&p->records);
    *p = (eval_preview){0};
}
