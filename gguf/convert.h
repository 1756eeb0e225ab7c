/* convert.h - what quantising a model and making one share. Internal. */
#ifndef DPI_CONVERT_H
#define DPI_CONVERT_H

#include "gguf/gguf_write.h"
#include "gguf/recipe.h"

/* Weights that are in memory at a time. */
enum { DPI_PIECE_WEIGHTS = 1 << 20 };

/* A file being written, and how. */
typedef struct dpi_conversion {
    const dpi_recipe *recipe;
    int32_t n_threads;
    int64_t n_done, n_weights; /* for progress */
    const dpi_write_options *options;
    dpi_gguf_writer *writer;
} dpi_conversion;

/* Checks the options, creates the file. Errors: ARG, IO, MEMORY. */
dpi_status dpi_conversion_begin(dpi_conversion *c, const dpi_write_options *options,
                                const char *out_path, dpi_error *err);
/* Writes a piece of tensor data of n_weights, reports progress. Errors: CANCELLED, or any failure
 * (then told by dpi_conversion_end). */
dpi_status dpi_conversion_put(dpi_conversion *c, const void *data, uint64_t n_bytes,
                              int64_t n_weights, dpi_error *err);
/* Puts the file in place if `status` is OK, else removes it; the status of the whole. */
dpi_status dpi_conversion_end(dpi_conversion *c, dpi_status status, dpi_error *err);

/* general.file_type and quantization_version, which describe the weights. */
void dpi_conversion_put_kind(dpi_conversion *c);

/* Rows of n_in weights that make a piece: at least 1, at most n_rows. */
int64_t dpi_piece_rows(int64_t n_in, int64_t n_rows);

#endif
