/* control_vector.h - vectors that are added to the residual stream, from a GGUF file as llama.cpp
 * has them. Internal.
 *
 * After layer i, x becomes x + scale direction.i, the same at every position. Layer 0 has none. A
 * file of dpinfer steer may have such vectors for each of several labels: the rows of direction.i
 * [n_sets, n_embd]. Then each sequence has one set (dpi_session_steer). Source: Zou et al.,
 * "Representation Engineering", 2023; general.architecture 'controlvector'. */
#ifndef DPI_CONTROL_VECTOR_H
#define DPI_CONTROL_VECTOR_H

#include "dpinfer/model.h"

enum { DPI_CONTROL_SETS_MAX = 1 << 16 };

typedef struct dpi_control_vector {
    float *numbers;    /* [tensors of the file, n_sets, n_embd] times scale */
    const float **of;  /* [n_layer] of each layer [n_sets, n_embd]; NULL: it has none */
    int32_t n_sets;    /* 1.. */
    int32_t n;         /* layers that have one */
    float scale;
    char *labels; /* of the sets, one a line (DPI_TASK_KEY "labels"); NULL: they have none */
    char *path;
} dpi_control_vector;

/* Reads the file and checks it against the model, which owns *control; mark: its dpi_model_mark.
 * Errors: IO, FORMAT (no control vector; another tensor than direction.1 to
 * direction.[n_layer - 1]; not F32 [n_embd] or, all alike, [n_sets, n_embd]; layer_count is not
 * that of the file; it is of another model), UNSUPPORTED (a key of control vectors that is not
 * known, by name), NUMERIC (a number that is not finite), MEMORY. */
DPI_MUST_CHECK dpi_status dpi_control_vector_open(dpi_model *model, const char *path, float scale,
                                                  uint64_t mark, dpi_error *err);
void dpi_control_vector_free(dpi_control_vector *control);

#endif
