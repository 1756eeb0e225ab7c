/* tensors.h - the tensors of a model in training, by their names in a GGUF file. Internal. */
#ifndef DPI_TRAIN_TENSORS_H
#define DPI_TRAIN_TENSORS_H

#include "dpinfer/status.h"
#include "engine/arch.h"
#include "train/graph.h"

/* A tensor of the file is a slice of the flat array of parameters: both have the same layout. */
typedef struct dpi_train_tensor {
    char name[64];
    int64_t offset;       /* into the parameters */
    int64_t n_in, n_rows; /* n_rows 0: a vector */
} dpi_train_tensor;

static inline int64_t dpi_train_tensor_size(const dpi_train_tensor *t) {
    return t->n_in * (t->n_rows ? t->n_rows : 1);
}

int32_t dpi_train_tensor_count(const dpi_graph_shape *shape);
/* An entry of the architecture's table of a kind: its sides, and its offset from the layer's begin.
 * It has no name. */
dpi_train_tensor dpi_train_layer_tensor(const dpi_graph_shape *shape, dpi_layer_kind kind,
                                        const dpi_arch_tensor *tensor);
/* The tensor of the file that begins with this entry, which may be of several: their rows. */
dpi_train_tensor dpi_train_file_tensor(const dpi_graph_shape *shape, dpi_layer_kind kind,
                                       const dpi_arch_tensor *tensor);
/* index 0..count-1, in the order of a file. */
dpi_train_tensor dpi_train_tensor_at(const dpi_graph_shape *shape, int32_t index);
/* That of a name. False: no tensor of this name is trained. */
bool dpi_train_tensor_find(const dpi_graph_shape *shape, const char *name, dpi_train_tensor *found);

/* The tensors of a GGUF file of any weight type into params [n_params], to start from. Their names
 * and shapes must be those of `shape`. Errors: IO, FORMAT (the tensor, what it is and must be),
 * UNSUPPORTED, MEMORY. */
dpi_status dpi_train_tensors_read(const char *path, const dpi_graph_shape *shape, float *params,
                                  dpi_error *err);

#endif
