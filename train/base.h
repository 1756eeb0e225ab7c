/* base.h - an open model as the graph of training sees it: its shape, and its weights as f32, all
 * at once or a few rows at a time.
 * Internal. */
#ifndef DPI_TRAIN_BASE_H
#define DPI_TRAIN_BASE_H

#include "dpinfer/model.h"
#include "train/graph.h"

/* What a shape points to; zeroed before its first use. */
typedef struct dpi_base_tables {
    double *frequencies;
    dpi_graph_layer *layers;
    float *biases; /* zeros where only other matrices have some; NULL: the model has none */
} dpi_base_tables;

/* The shape of a model whose rows have at most `context` positions. *tables is filled in, must
 * outlive the shape, and is the caller's to free, also after a failure; lora and blas are NULL.
 * Errors: ARG (context; no weights), UNSUPPORTED (layers have a tensor that the graph has no place
 * for, by name), MEMORY. */
DPI_MUST_CHECK dpi_status dpi_base_shape(const dpi_model *model, int32_t context,
                                         dpi_base_tables *tables, dpi_graph_shape *shape,
                                         dpi_error *err);
void dpi_base_tables_free(dpi_base_tables *tables);

/* Whether all weights can be trained. Errors: UNSUPPORTED (a matrix that is not stored as
 * floats). */
DPI_MUST_CHECK dpi_status dpi_base_check_floats(const dpi_model *model, dpi_error *err);

/* All weights into params [layout.n_params], of any weight type: for a shape without a base. */
void dpi_base_read(const dpi_model *model, const dpi_graph_shape *shape, float *params);
/* The model's matrices as the base of a shape, whose params are its norms and other
 * arrays; it must outlive them. */
dpi_graph_base dpi_base_of(const dpi_model *model);
void dpi_base_norms(const dpi_model *model, const dpi_graph_shape *shape, float *params);

#endif
