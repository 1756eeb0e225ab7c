/* convert.h - what quantising a model and making one share. Internal. */
#ifndef DPI_CONVERT_H
#define DPI_CONVERT_H

#include "gguf/gguf_write.h"
#include "gguf/recipe.h"

/* Weights that are in memory at a time. */
enum { DPI_PIECE_WEIGHTS = 1 << 20 };

/* What is changed while a model is written in other types; NULL: nothing. */
typedef struct dpi_conversion_change {
    bool (*is_changed)(void *user, const char *tensor);
    /* weights [n_in] of a row, in f32. Called by several threads at once. */
    void (*row)(void *user, const char *tensor, int64_t row, float *weights, int64_t n_in);
    /* general.name, and what else the file says. */
    void (*keys)(void *user, dpi_gguf_builder *builder);
    void *user;
} dpi_conversion_change;

/* What gets the tensors as they would be written, in their order, in place of a file. */
typedef struct dpi_conversion_sink {
    void (*begin)(void *user, const dpi_gguf_tensor *tensor, uint32_t type);
    void (*data)(void *user, const void *data, uint64_t n_bytes); /* the next bytes of it */
    void *user;
} dpi_conversion_sink;

/* A file being written, and how. */
typedef struct dpi_conversion {
    const dpi_recipe *recipe; /* NULL: each tensor keeps its type */
    const dpi_conversion_change *change;
    int32_t n_threads;
    int64_t n_done, n_weights; /* for progress */
    dpi_write_options options;
    dpi_gguf_builder *builder;
    const dpi_conversion_sink *sink; /* NULL: the builder */
} dpi_conversion;

/* Checks the options, creates the file. may_keep: the type may be KEEP. Errors: ARG, IO, MEMORY. */
dpi_status dpi_conversion_begin(dpi_conversion *c, const dpi_write_options *options, bool may_keep,
                                const char *out_path, dpi_error *err);
/* Writes a piece of tensor data of n_weights, reports progress. Errors: CANCELLED, or any failure
 * (then told by dpi_conversion_end). */
dpi_status dpi_conversion_put(dpi_conversion *c, const void *data, uint64_t n_bytes,
                              int64_t n_weights, dpi_error *err);
/* Puts the file in place if `status` is OK, else removes it; the status of the whole. */
dpi_status dpi_conversion_end(dpi_conversion *c, dpi_status status, dpi_error *err);

/* The model in in_path, with options.type. As dpi_model_quantize; UNSUPPORTED: the type KEEP and a
 * tensor that is changed, of a type that can only be read. */
dpi_status dpi_conversion_write(const char *in_path, const char *out_path,
                                const dpi_write_options *options,
                                const dpi_conversion_change *change, dpi_error *err);

/* The same of a file that is open. */
dpi_status dpi_conversion_write_open(const dpi_gguf *gguf, const char *out_path,
                                     const dpi_write_options *options,
                                     const dpi_conversion_change *change, dpi_error *err);

/* The tensors that dpi_conversion_write_open would write, to a sink: before the file, for what its
 * keys say of them. No progress is told. */
dpi_status dpi_conversion_visit(const dpi_gguf *gguf, const dpi_write_options *options,
                                const dpi_conversion_change *change,
                                const dpi_conversion_sink *sink, dpi_error *err);

/* general.file_type and quantization_version, which describe the weights. */
void dpi_conversion_put_kind(dpi_conversion *c);

/* Rows of n_in weights that make a piece: at least 1, at most n_rows. */
int64_t dpi_piece_rows(int64_t n_in, int64_t n_rows);

#endif
