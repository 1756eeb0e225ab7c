/* export.h - GGUF files of a model in training. Internal. */
#ifndef DPI_TRAIN_EXPORT_H
#define DPI_TRAIN_EXPORT_H

#include "train/graph.h"
#include "train/vocab_text.h"

/* params NULL: metadata and vocabulary only, for the tokenizer. Else every tensor in f32: the
 * layout of graph.h is that of the file, so each is a slice. Errors: IO, MEMORY. */
dpi_status dpi_export_gguf(const char *path, const char *name, const dpi_graph_shape *shape,
                           const dpi_vocab_text *vocab, const float *params, dpi_error *err);

#endif
