#include "pipeline/finetune/task.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/base_mark.h"
#include "engine/model.h"

void dpi_task_put(dpi_gguf_builder *w, const dpi_instructions *in) {
    dpi_gguf_put_string(w, DPI_TASK_KEY "template", dpi_chat_name(in->chat));
    if (in->text)
        dpi_gguf_put_string(w, DPI_TASK_KEY "instruction", in->text);
    if (in->description)
        dpi_gguf_put_string(w, DPI_TASK_KEY "description", in->description);
    if (in->description && in->n_text > 0)
        dpi_gguf_put_u32(w, DPI_TASK_KEY "text_tokens", (uint32_t)in->n_text);
    if (in->labels)
        dpi_gguf_put_string(w, DPI_TASK_KEY "labels", in->lines);
    if (in->meanings)
        dpi_gguf_put_string(w, DPI_TASK_KEY "label_meanings", in->meanings);
    if (in->attributes)
        dpi_gguf_put_string(w, DPI_TASK_KEY "attributes", in->attributes);
}

void dpi_task_put_base(dpi_gguf_builder *w, const dpi_model *model, const char *name) {
    char text[16 + 1 + 64]; /* a mark, and a claim's model_name */
    snprintf(text, sizeof text, "%016" PRIx64 " %s", dpi_model_mark(model), name);
    dpi_gguf_put_string(w, DPI_BASE_MARK, text);
}
