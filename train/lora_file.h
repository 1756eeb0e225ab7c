/* lora_file.h - adapters as a GGUF file, in the form of llama.cpp. Internal. */
#ifndef DPI_TRAIN_LORA_FILE_H
#define DPI_TRAIN_LORA_FILE_H

#include "gguf/gguf_write.h"
#include "train/lora.h"

/* SHA-256 is the caller's: this is what it goes over, tensor by tensor in the order of the file. */
typedef void dpi_lora_visit_fn(void *user, const char *name, int64_t n_columns, int64_t n_rows,
                               const float *data);
void dpi_lora_visit(const dpi_lora *lora, const dpi_graph_shape *shape, const float *adapters,
                    dpi_lora_visit_fn *visit, void *user);

/* general.architecture to adapter.lora.alpha, which is scale times rank. */
void dpi_lora_put_keys(dpi_gguf_builder *builder, const dpi_lora *lora, const char *name);
/* All tensors, in F32, and their data. */
void dpi_lora_put_tensors(dpi_gguf_builder *builder, const dpi_lora *lora,
                          const dpi_graph_shape *shape, const float *adapters);

#endif
