/* gguf_write.h - writes a GGUF v3 file: metadata, then the tensor directory, then the data,
 * tensor by tensor, so that a model is never in memory as a whole. Internal.
 *
 *     dpi_gguf_builder_create(path, -1, &w, err)
 *     dpi_gguf_put_u32(w, "llama.block_count", 22) ...            metadata, in file order
 *     dpi_gguf_put_tensor(w, "token_embd.weight", type, 2, shape)  ... every tensor
 *     dpi_gguf_put_data(w, bytes, n_bytes) ...                     all data, in the same order
 *     dpi_gguf_builder_finish(w, err)
 *
 * The put functions remember the first failure and then do nothing. finish reports it; long work
 * may call dpi_gguf_builder_failed before. In finish the whole file appears under its name. Until
 * then it is a temporary file beside it, which is removed on failure.
 * Source: the GGUF specification, version 3, little-endian; tensor data aligned to 32 bytes.
 */
#ifndef DPI_GGUF_WRITE_H
#define DPI_GGUF_WRITE_H

#include "dpinfer/write.h"
#include "gguf/gguf.h"

typedef struct dpi_gguf_builder dpi_gguf_builder;

/* fd -1: as above. Else what is written goes to that open file, which stays the caller's, and
 * `path` is a name for messages. Errors: IO (path and reason; something that is no regular file has
 * this name), MEMORY. The caller gives *builder to finish or discard. */
dpi_status dpi_gguf_builder_create(const char *path, int fd, dpi_gguf_builder **builder,
                                  dpi_error *err);

void dpi_gguf_put_u32(dpi_gguf_builder *builder, const char *key, uint32_t value);
void dpi_gguf_put_f32(dpi_gguf_builder *builder, const char *key, float value);
void dpi_gguf_put_bool(dpi_gguf_builder *builder, const char *key, bool value);
void dpi_gguf_put_string(dpi_gguf_builder *builder, const char *key, const char *value);
/* The hyperparameters of an architecture "llama". The tensors say whether the head is tied. */
void dpi_gguf_put_shape(dpi_gguf_builder *builder, const dpi_model_shape *shape, float rms_eps);
/* n_items items in the form of the file, n_bytes in all; a string is u64 length and bytes. */
void dpi_gguf_put_array(dpi_gguf_builder *builder, const char *key, dpi_gguf_type item_type,
                        uint64_t n_items, const void *items, uint64_t n_bytes);
/* An entry of another file as it is. */
void dpi_gguf_put_kv(dpi_gguf_builder *builder, const dpi_gguf_kv *kv);

/* `type` is in kernels/weight_types.def and its block divides shape[0]; n_dims 1..4. */
void dpi_gguf_put_tensor(dpi_gguf_builder *builder, const char *name, uint32_t type, int32_t n_dims,
                         const int64_t *shape);
/* The next bytes of tensor data; pieces may be of any size. Padding is put between tensors. */
void dpi_gguf_put_data(dpi_gguf_builder *builder, const void *data, uint64_t n_bytes);

bool dpi_gguf_builder_failed(const dpi_gguf_builder *builder);
/* Frees the builder in any case. Errors: the first failure of any put (IO, MEMORY, LIMIT), STATE
 * (data missing), IO. */
dpi_status dpi_gguf_builder_finish(dpi_gguf_builder *builder, dpi_error *err);
/* Removes what was written and frees the builder. NULL is allowed. */
void dpi_gguf_builder_discard(dpi_gguf_builder *builder);

#endif
