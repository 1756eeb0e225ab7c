/* prompts_json.c - see prompts_json.h. Everything in it is public. */
#include "pipeline/release/prompts_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "pipeline/prompts.h"

/* A text that is no UTF-8, or has a NUL, has its bytes in hexadecimal. */
static json_t *text_json(dpi_bytes text) {
    dpi_text hex = {0};
    const bool has_nul = text.n_bytes > 0 && memchr(text.data, '\0', text.n_bytes);
    json_t *made = !text.data ? json_null()
                   : has_nul  ? NULL
                              : json_stringn(text.data, text.n_bytes);
    for (size_t i = 0; !made && i < text.n_bytes; i++)
        dpi_text_add(&hex, "%02x", (unsigned char)text.data[i]);
    if (!made && !hex.failed)
        made = json_pack("{s:s}", "bytes", hex.data);
    free(hex.data);
    return made;
}

static json_t *examples_json(const dpi_prompt_options *o) {
    json_t *list = json_array();
    bool ok = list;
    for (int32_t i = 0; i < o->n_examples && ok; i++)
        ok = json_array_append_new(list, text_json(o->examples[i])) == 0;
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

/* [label, what {label} stands for], where a prompt names it. */
static json_t *labels_json(const dpi_plan *plan) {
    json_t *list = json_array();
    bool ok = list;
    const bool named = dpi_prompt_options_have_label(&plan->options.prompts) != 0;
    for (int32_t i = 0; named && i < plan->labels.n && ok; i++) {
        const dpi_span *name = &plan->labels.names.at[i];
        ok = json_array_append_new(
                 list, json_pack("[o, o]", text_json((dpi_bytes){name->data, name->n_bytes}),
                                 text_json(dpi_labels_meaning(&plan->labels, i)))) == 0;
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

dpi_status dpi_plan_prompts_json(const dpi_plan *plan, json_t **object, dpi_error *err) {
    dpi_prompt_options o = plan->options.prompts;
    dpi_prompts *p;
    o.label = (dpi_bytes){NULL, 0}; /* {label} as it stands */
    DPI_TRY(dpi_prompts_sketch(plan->options.model, &o, &p, err));
    *object = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:i}", "chat",
        dpi_chat_name(plan->prompts_info.chat), "system", text_json(o.system), "public_prompt",
        text_json(dpi_prompts_public_text(p)), "private_prompt",
        text_json(dpi_prompts_private_text(p)), "description", text_json(o.description), "query",
        text_json(o.query), "examples", examples_json(&o), "example_in",
        o.example_in == DPI_EXAMPLE_IN_BOTH ? "both" : "public", "labels", labels_json(plan),
        "max_reference_tokens", (int)o.max_reference_tokens);
    dpi_prompts_free(p);
    return *object ? DPI_STATUS_OK : dpi_no_memory(err, "the prompts");
}
