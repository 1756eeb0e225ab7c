/* task.h - how texts are written after an adapter, or with steering vectors, in the metadata of its
 * file: public, and what `generate` begins with. Internal. */
#ifndef DPI_FINETUNE_TASK_H
#define DPI_FINETUNE_TASK_H

#include "gguf/gguf_write.h"
#include "pipeline/finetune/examples.h"

/* Chat format, instruction, labels, what they mean, and their attributes. */
void dpi_task_put(dpi_gguf_builder *builder, const dpi_instructions *instructions);
/* Of which model it is: another one refuses it (engine/adapter.h). */
void dpi_task_put_base(dpi_gguf_builder *builder, const dpi_model *model, const char *name);

#endif
