/* instructions.c - see examples.h: the public prompts of examples. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "pipeline/finetune/examples.h"

static dpi_status check(dpi_bytes instruction, const char *const *labels, int32_t n_labels,
                        dpi_error *err) {
    dpi_prompt_options p;
    dpi_prompt_options_init(&p);
    p.public_prompt = instruction;
    const bool marked = dpi_prompt_options_have_label(&p) != 0;
    if (marked != (n_labels > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "instruction: found %s {label}, allowed %s labels",
                        marked ? "a" : "no", marked ? "with" : "without");
    for (int32_t i = 0; i < n_labels; i++) {
        if (!labels[i] || !labels[i][strspn(labels[i], " \t\r\n")] || strchr(labels[i], '\n'))
            return dpi_fail(err, DPI_STATUS_ARG, "labels: found a blank one, or one of two lines");
        for (int32_t k = 0; k < i; k++)
            if (strcmp(labels[i], labels[k]) == 0)
                return dpi_fail(err, DPI_STATUS_ARG, "labels: found '%s' more than once",
                                labels[i]);
    }
    return DPI_STATUS_OK;
}

static dpi_status make_one(const dpi_model *model, dpi_bytes instruction, int32_t chat,
                           const char *label, int32_t n_positions, dpi_prompts **prompts,
                           int32_t *longest, dpi_error *err) {
    dpi_prompt_options p;
    dpi_prompts_info info;
    dpi_model_info m;
    dpi_prompt_options_init(&p);
    dpi_prompts_info_init(&info);
    dpi_model_info_init(&m);
    p.public_prompt = instruction, p.chat = chat;
    if (label)
        p.label = (dpi_bytes){label, strlen(label)};
    DPI_TRY(dpi_model_info_get(model, &m, err));
    DPI_TRY(dpi_prompts_create(model, &p, m.n_ctx_train, prompts, err));
    DPI_TRY(dpi_prompts_info_get(*prompts, &info, err));
    if (info.n_public > *longest)
        *longest = info.n_public;
    return info.n_public < n_positions
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_ARG,
                          "positions: found %d, the instruction alone has %d tokens", n_positions,
                          info.n_public);
}

/* What a file says of them. */
static dpi_status keep_texts(dpi_instructions *made, dpi_bytes instruction, dpi_error *err) {
    dpi_prompts_info info;
    dpi_text lines = {0};
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(made->prompts[0], &info, err));
    made->chat = info.chat;
    made->text = instruction.data ? strndup(instruction.data, instruction.n_bytes) : NULL;
    for (int32_t i = 0; made->labels && i < made->n; i++)
        dpi_text_add(&lines, "%s%s", i > 0 ? "\n" : "", made->labels[i]);
    made->lines = lines.data;
    return lines.failed || (instruction.data && !made->text)
               ? dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the instructions")
               : DPI_STATUS_OK;
}

static dpi_status make(const dpi_model *model, dpi_bytes instruction, int32_t chat,
                       const char *const *labels, int32_t n_labels, int32_t n_positions,
                       dpi_instructions *made, dpi_error *err) {
    made->n = n_labels > 0 ? n_labels : 1;
    made->prompts = dpi_calloc((size_t)made->n, sizeof *made->prompts);
    made->labels = n_labels > 0 ? dpi_calloc((size_t)made->n, sizeof *made->labels) : NULL;
    if (!made->prompts || (n_labels > 0 && !made->labels))
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the instructions");
    for (int32_t i = 0; i < made->n; i++) {
        if (n_labels > 0 && !(made->labels[i] = strdup(labels[i])))
            return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the labels");
        DPI_TRY(make_one(model, instruction, chat, n_labels > 0 ? labels[i] : NULL, n_positions,
                         &made->prompts[i], &made->longest, err));
    }
    return keep_texts(made, instruction, err);
}

dpi_status dpi_instructions_make(const dpi_model *model, dpi_bytes instruction, int32_t chat,
                                 const char *const *labels, int32_t n_labels, int32_t n_positions,
                                 dpi_instructions *made, dpi_error *err) {
    *made = (dpi_instructions){0};
    DPI_TRY(check(instruction, labels, n_labels, err));
    const dpi_status status =
        make(model, instruction, chat, labels, n_labels, n_positions, made, err);
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
    }
    free(in->text);
    free(in->lines);
    free(in->prompts);
    free(in->labels);
    *in = (dpi_instructions){0};
}
