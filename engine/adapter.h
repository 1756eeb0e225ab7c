/* adapter.h - a low-rank adapter of a model, from a GGUF file as llama.cpp has them. Internal.
 *
 * The matrix W [n_out, n_in] of a product becomes W + scale B A with A [rank, n_in] and B [n_out,
 * rank] in f32, whatever the type of W. Its product is computed beside that of W: rows are as pure
 * as before. Source: Hu et al. 2021; GGUF keys general.type, adapter.type, adapter.lora.alpha. */
#ifndef DPI_ADAPTER_H
#define DPI_ADAPTER_H

#include <stdbool.h>

#include "dpinfer/model.h"

enum { DPI_ADAPTER_RANK_MAX = 1024, DPI_ADAPTER_PLACES = 4 };

/* Of one matrix. */
typedef struct dpi_adapter {
    const float *a; /* [rank, n_in] */
    const float *b; /* [n_out, rank] */
    int32_t rank;
    int32_t place; /* 0..DPI_ADAPTER_PLACES-1: among the matrices that share its input */
    float scale;
} dpi_adapter;

typedef struct dpi_adapters {
    dpi_adapter *of; /* [n] of the matrices that have one */
    float *numbers;  /* all of A and B */
    int32_t n, max_rank;
    float scale; /* of the one with the largest rank: alpha / rank, times the caller's */
    char name[64], *path;
} dpi_adapters;

/* Reads the file, checks it against the model and hangs the adapters into its matrices. The model
 * owns *adapters. Errors: IO, FORMAT (no adapter; a shape; half of a pair), UNSUPPORTED (of another
 * architecture or another tensor than the matrices of a layer, by name), NUMERIC (a number
 * that is not finite), MEMORY; FORMAT also where DPI_BASE_MARK names another model. */
DPI_MUST_CHECK dpi_status dpi_adapters_open(dpi_model *model, const char *path, float scale,
                                            dpi_error *err);
void dpi_adapters_free(dpi_adapters *adapters);
/* "base + adapter NAME + control vector", without what there is not; the base's name is cut where
 * not all fits.
 * That the base or the adapter is NOT PRIVATE stands at the end. */
void dpi_model_adapted_name(const dpi_model_info *info, char name[64]);
/* Whether a tensor of the model's file, "blk.3.attn_qkv.weight", has one for any of its rows; and
 * that of a row, NULL if it has none. *row becomes the row of B. */
bool dpi_adapter_has(const dpi_model *model, const char *tensor);
const dpi_adapter *dpi_adapter_of(const dpi_model *model, const char *tensor, int64_t *row);

#endif
