/* instructions.c - see examples.h: the public prompts of examples. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "dpinfer/prompt_texts.h"
#include "pipeline/finetune/attributes.h"

static dpi_status check_labels(const dpi_instruction_options *o, dpi_error *err) {
    for (int32_t i = 0; i < o->n_labels; i++) {
        const char *label = o->labels[i];
        if (!label || !label[strspn(label, " \t\r\n")] || strchr(label, '\n'))
            return dpi_fail(err, DPI_STATUS_ARG, "labels: found a blank one, or one of two lines");
        for (int32_t k = 0; k < i; k++)
            if (strcmp(label, o->labels[k]) == 0)
                return dpi_fail(err, DPI_STATUS_ARG, "labels: found '%s' more than once", label);
    }
    return DPI_STATUS_OK;
}

static dpi_status check_meanings(const dpi_instruction_options *o, dpi_error *err) {
    if (o->meanings && (o->n_labels == 0 || o->n_attributes > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "label_meanings: allowed with labels that are no "
                                             "attributes, as many as there are");
    for (int32_t i = 0; o->meanings && i < o->n_labels; i++) {
        const char *meaning = o->meanings[i];
        if (meaning && (!meaning[strspn(meaning, " \t\r")] || strchr(meaning, '\n')))
            return dpi_fail(err, DPI_STATUS_ARG, "label_meanings: found a blank one, or one of two "
                                                 "lines");
    }
    return DPI_STATUS_OK;
}

static dpi_status check(const dpi_instruction_options *o, dpi_error *err) {
    dpi_prompt_options p;
    dpi_prompt_options_init(&p);
    if (o->text.data && o->description.data)
        return dpi_fail(err, DPI_STATUS_ARG, "instruction and description: found both, allowed is "
                                             "one of them");
    p.public_prompt = o->text, p.description = o->description;
    const bool marked = dpi_prompt_options_have_label(&p) != 0;
    const bool wanted = o->n_labels > 0 && o->n_attributes == 0;
    DPI_TRY(dpi_attributes_check(o, err));
    if (marked != wanted)
        return dpi_fail(err, DPI_STATUS_ARG, "%s: found %s {label}, %s labels%s",
                        o->description.data ? "description" : "instruction",
                        marked ? "a" : "no", marked ? "allowed with" : "needed with",
                        o->n_attributes > 0 ? " that are no attributes" : "");
    DPI_TRY(check_labels(o, err));
    return check_meanings(o, err);
}

/* How texts of a description are worded, as those of a run are. */
static dpi_status make_rules(const dpi_model *model, const dpi_instruction_options *o,
                             dpi_word_rules **rules, dpi_error *err) {
    dpi_bytes stops[DPI_STOPS_MAX];
    dpi_prompt_options p;
    dpi_wording w;
    if (!o->description.data)
        return DPI_STATUS_OK;
    dpi_prompt_options_init(&p);
    dpi_wording_init(&w);
    p.description = o->description, p.chat = o->chat, p.n_text = o->n_positions;
    DPI_TRY(dpi_wording_choose(&p, model, &w, stops, err));
    return dpi_word_rules_create(&w, model, rules, err);
}

/* Of label i. */
static dpi_status make_prompts(const dpi_model *model, const dpi_instruction_options *o,
                               const dpi_word_rules *rules, int32_t i, int32_t most,
                               dpi_prompts **prompts, dpi_error *err) {
    const char *label = o->n_labels > 0 ? o->labels[i] : NULL;
    dpi_prompt_options p;
    char *text = NULL, *words = NULL;
    dpi_prompt_options_init(&p);
    p.public_prompt = o->text, p.description = o->description, p.chat = o->chat;
    dpi_wording_end_prompts(rules ? dpi_word_rules_wording(rules) : NULL, &p);
    if (label && o->n_attributes == 0) {
        words = dpi_label_in_prompt(label, o->meanings ? o->meanings[i] : NULL,
                                    o->description.data != NULL);
        if (!words)
            return dpi_no_memory(err, "the instructions");
        p.label = (dpi_bytes){words, strlen(words)};
    }
    if (label && o->n_attributes > 0) {
        DPI_TRY(dpi_attributes_fill(o->text, o->attributes, o->n_attributes, label, &text, err));
        p.public_prompt = (dpi_bytes){text, strlen(text)};
    }
    const dpi_status status = dpi_prompts_create(model, &p, most, prompts, err);
    free(text);
    free(words);
    return status;
}

static dpi_status make_one(const dpi_model *model, const dpi_instruction_options *o,
                           const dpi_word_rules *rules, int32_t i, dpi_prompts **prompts,
                           int32_t *longest, dpi_error *err) {
    dpi_prompts_info info;
    dpi_model_info m;
    dpi_prompts_info_init(&info);
    dpi_model_info_init(&m);
    DPI_TRY(dpi_model_info_get(model, &m, err));
    DPI_TRY(make_prompts(model, o, rules, i, m.n_ctx_train, prompts, err));
    DPI_TRY(dpi_prompts_info_get(*prompts, &info, err));
    if (info.n_public > *longest)
        *longest = info.n_public;
    return info.n_public < o->n_positions
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_ARG,
                          "positions: found %d, the instruction alone has %d tokens",
                          o->n_positions, info.n_public);
}

/* With `between` between each two; NULL for none of them, and one that is NULL is empty. */
static char *join(const char *const *texts, int32_t n, const char *between, bool *failed) {
    dpi_text joined = {0};
    for (int32_t i = 0; i < n; i++)
        dpi_text_add(&joined, "%s%s", i > 0 ? between : "", texts[i] ? texts[i] : "");
    *failed |= joined.failed;
    return joined.data;
}

static bool has_meaning(const dpi_instruction_options *o) {
    for (int32_t i = 0; o->meanings && i < o->n_labels; i++)
        if (o->meanings[i])
            return true;
    return false;
}

/* What a file says of them. */
static dpi_status keep_texts(dpi_instructions *made, const dpi_instruction_options *o,
                             dpi_error *err) {
    dpi_prompts_info info;
    bool failed = false;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(made->prompts[0], &info, err));
    made->chat = info.chat;
    made->n_text = o->n_positions > DPI_LISTED_TOKENS ? o->n_positions : 0;
    made->text = o->text.data ? strndup(o->text.data, o->text.n_bytes) : NULL;
    made->description =
        o->description.data ? strndup(o->description.data, o->description.n_bytes) : NULL;
    made->lines = join(o->labels, o->n_labels, "\n", &failed);
    made->meanings = has_meaning(o) ? join(o->meanings, o->n_labels, "\n", &failed) : NULL;
    made->attributes = join(o->attributes, o->n_attributes, "\t", &failed);
    return failed || (o->text.data && !made->text) || (o->description.data && !made->description)
               ? dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the instructions")
               : DPI_STATUS_OK;
}

/* Of label i. */
static dpi_status find_others(dpi_instructions *made, const dpi_instruction_options *o, int32_t i,
                              dpi_error *err) {
    int32_t *others = made->others[i] = dpi_calloc((size_t)o->n_labels, sizeof *others);
    if (!others)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the labels");
    for (int32_t k = 0; k < o->n_labels; k++)
        if (k != i && (o->n_attributes < 2 ||
                       dpi_attributes_differing(o->labels[i], o->labels[k]) == 1))
            others[made->n_others[i]++] = k;
    return DPI_STATUS_OK;
}

static dpi_status make(const dpi_model *model, const dpi_instruction_options *o,
                       dpi_instructions *made, dpi_error *err) {
    const int32_t n_labels = o->n_labels;
    made->n = n_labels > 0 ? n_labels : 1;
    made->prompts = dpi_calloc((size_t)made->n, sizeof *made->prompts);
    if (n_labels > 0) {
        made->labels = dpi_calloc((size_t)n_labels, sizeof *made->labels);
        made->others = dpi_calloc((size_t)n_labels, sizeof *made->others);
        made->n_others = dpi_calloc((size_t)n_labels, sizeof *made->n_others);
    }
    if (!made->prompts || (n_labels > 0 && (!made->labels || !made->others || !made->n_others)))
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the instructions");
    DPI_TRY(make_rules(model, o, &made->rules, err));
    for (int32_t i = 0; i < made->n; i++) {
        const char *label = n_labels > 0 ? o->labels[i] : NULL;
        if (label && !(made->labels[i] = strdup(label)))
            return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the labels");
        if (label)
            DPI_TRY(find_others(made, o, i, err));
        DPI_TRY(make_one(model, o, made->rules, i, &made->prompts[i], &made->longest, err));
    }
    return keep_texts(made, o, err);
}

dpi_status dpi_instructions_make(const dpi_model *model, const dpi_instruction_options *options,
                                 dpi_instructions *made, dpi_error *err) {
    *made = (dpi_instructions){0};
    DPI_TRY(check(options, err));
    const dpi_status status = make(model, options, made, err);
    if (status != DPI_STATUS_OK)
        dpi_instructions_free(made);
    return status;
}

void dpi_instructions_free(dpi_instructions *in) {
    for (int32_t i = 0; i < in->n; i++) {
        if (in->prompts)
            dpi_prompts_free(in->prompts[i]);
        if (in->labels)
            free(in->labels[i]);
        if (in->others)
            free(in->others[i]);
    }
    dpi_word_rules_free(in->rules);
    free(in->text), free(in->description), free(in->lines), free(in->attributes);
    free(in->meanings);
    free(in->prompts), free(in->labels), free(in->others), free(in->n_others);
    *in = (dpi_instructions){0};
}
