/* export.h - GGUF files of a model in training. Internal. */
#ifndef DPI_TRAIN_EXPORT_H
#define DPI_TRAIN_EXPORT_H

#include "dpinfer/train.h"
#include "train/graph.h"
#include "train/vocab_text.h"

/* Of the configuration, the name and what the model recommends. params NULL: metadata and
 * vocabulary only, for the tokenizer. Else every tensor in f32: the layout of graph.h is that of
 * the file, so each is a slice. Errors: IO, MEMORY. */
dpi_status dpi_export_gguf(const char *path, const dpi_train_config *config,
                           const dpi_graph_shape *shape, const dpi_vocab_text *vocab,
                           const float *params, dpi_error *err);

#endif
