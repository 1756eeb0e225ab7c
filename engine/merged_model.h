/* merged_model.h - a model and its adapter, as a change of the model's file. Internal. */
#ifndef DPI_ENGINE_MERGED_MODEL_H
#define DPI_ENGINE_MERGED_MODEL_H

#include "gguf/convert.h"

typedef struct dpi_merged {
    dpi_model *model;  /* with the adapter */
    dpi_gguf *adapter; /* its file */
    char name[64];     /* "base + adapter name" */
    /* What the file says of the training. NULL: what the adapter's does, but for the hash of its
     * own tensors. */
    void (*keys)(void *user, dpi_gguf_builder *builder);
    void *user;
} dpi_merged;

/* Opens both. *merge is ended in any case. Errors: those of dpi_model_open with an adapter. */
DPI_MUST_CHECK dpi_status dpi_merge_begin(const char *in_path, const char *adapter_path,
                                          float scale, dpi_merged *merge, dpi_error *err);
/* The change, which refers to *merge. */
dpi_conversion_change dpi_merge_change(dpi_merged *merge);
void dpi_merge_end(dpi_merged *merge);

#endif
