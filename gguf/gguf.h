/* gguf.h - reads a GGUF file: metadata and tensor directory, every count and offset checked
 * against the bytes that are there. Knows the container, not the model. Internal.
 *
 * A file is untrusted input (docs/spec.md section 6): no field of it can cause an abort, an
 * overflow, an unbounded allocation or a read outside the file. Errors name the file, the key
 * or tensor, what was found and what is allowed, with the byte offset.
 * Source: the GGUF specification, versions 2 and 3, little-endian.
 */
#ifndef DPI_GGUF_H
#define DPI_GGUF_H

#include <stdbool.h>
#include <string.h>

#include "dpinfer/status.h"

typedef enum dpi_gguf_type {
    DPI_GGUF_U8 = 0,
    DPI_GGUF_I8 = 1,
    DPI_GGUF_U16 = 2,
    DPI_GGUF_I16 = 3,
    DPI_GGUF_U32 = 4,
    DPI_GGUF_I32 = 5,
    DPI_GGUF_F32 = 6,
    DPI_GGUF_BOOL = 7,
    DPI_GGUF_STRING = 8,
    DPI_GGUF_ARRAY = 9,
    DPI_GGUF_U64 = 10,
    DPI_GGUF_I64 = 11,
    DPI_GGUF_F64 = 12,
} dpi_gguf_type;

/* The keys of private work: how an adapter, a model or vectors were trained to write
 * (pipeline/finetune/task.h), its claim, and what follows from it (pipeline/claim/claim_file.h). */
#define DPI_TASK_KEY "dpinfer.finetune."
#define DPI_CLAIM_KEY "dpinfer.claim"
#define DPI_FOLLOWS_KEY "dpinfer.follows"
/* Of which model an adapter, or vectors, are, where a file says so: dpi_model_mark in 16
 * hexadecimal digits, a blank, the model's name. What was made for another model would write
 * another text. */
#define DPI_BASE_MARK "dpinfer.adapter.base"

static inline bool dpi_gguf_is_task(const char *key) {
    return strncmp(key, DPI_TASK_KEY, sizeof DPI_TASK_KEY - 1) == 0;
}

/* Bytes inside the file image; not NUL-terminated. */
typedef struct dpi_str {
    const char *data;
    uint64_t n_bytes;
} dpi_str;

static inline bool dpi_str_is(dpi_str s, const char *text) {
    return s.n_bytes == strlen(text) && memcmp(s.data, text, s.n_bytes) == 0;
}

typedef struct dpi_gguf_kv {
    const char *key; /* NUL-terminated copy */
    dpi_gguf_type type;
    dpi_gguf_type item_type; /* of an array; equals type otherwise */
    uint64_t n_items;        /* of an array; 1 otherwise */
    const unsigned char *data; /* first item, unaligned little-endian, in the file image; a
                                  string begins with its u64 length */
    uint64_t n_bytes;          /* of all items */
    uint64_t offset;           /* of data in the file */
} dpi_gguf_kv;

typedef struct dpi_gguf_tensor {
    const char *name;     /* NUL-terminated copy, 1..63 bytes */
    uint32_t type;        /* GGML type id; known to kernels/weight_types.h, its block divides
                             shape[0] */
    int32_t n_dims;       /* 1..4 */
    int64_t shape[4];     /* columns first; each >= 1; unused dimensions are 1 */
    const char *file;     /* name, for messages, of the file that has the data */
    uint64_t offset;      /* of the data in that file, aligned to general.alignment */
    uint64_t n_bytes;
    const void *data; /* in the file image, aligned to 8 bytes at least */
} dpi_gguf_tensor;

typedef struct dpi_gguf dpi_gguf;

/* Opens and checks the whole container. With use_mmap the file is mapped read-only, else read
 * into memory. The first part of a split model (NAME-00001-of-0000N.gguf) brings the tensors of the
 * others, which stand beside it. *gguf belongs to the caller. Errors: IO, FORMAT, UNSUPPORTED,
 * MEMORY. */
dpi_status dpi_gguf_open(const char *path, bool use_mmap, dpi_gguf **gguf, dpi_error *err);
/* The same over memory that outlives *gguf. ARG if it is not aligned to 8 bytes and has tensors. */
dpi_status dpi_gguf_open_buffer(const void *data, size_t n_bytes, dpi_gguf **gguf, dpi_error *err);
void dpi_gguf_close(dpi_gguf *gguf);

/* Whether tensor data comes into memory page by page as it is read. */
bool dpi_gguf_is_mapped(const dpi_gguf *gguf);
/* Whether tensor data still reads the same after dpi_gguf_release. */
bool dpi_gguf_keeps(const dpi_gguf *gguf);

/* These bytes of tensor data will hardly be read again. Releases their memory, if the file is
 * mapped or was read into memory of its own. */
void dpi_gguf_release(const dpi_gguf *gguf, const void *data, uint64_t n_bytes);

/* The name for messages: the last component of the path, or "buffer". */
const char *dpi_gguf_name(const dpi_gguf *gguf);

int64_t dpi_gguf_kv_count(const dpi_gguf *gguf);
const dpi_gguf_kv *dpi_gguf_kv_at(const dpi_gguf *gguf, int64_t index);
/* By key, NULL if absent. O(log n). */
const dpi_gguf_kv *dpi_gguf_find(const dpi_gguf *gguf, const char *key);

int64_t dpi_gguf_tensor_count(const dpi_gguf *gguf);
const dpi_gguf_tensor *dpi_gguf_tensor_at(const dpi_gguf *gguf, int64_t index);
/* By name, NULL if absent. O(log n). */
const dpi_gguf_tensor *dpi_gguf_tensor_find(const dpi_gguf *gguf, const char *name);

/* Typed reads. Each leaves *out alone and returns OK if the key is absent, so *out holds the
 * default; *found (may be NULL) tells. A wrong type or a value outside [min, max] is a FORMAT
 * error with the offset. Integers of any width and sign are accepted where they fit. */
dpi_status dpi_gguf_get_int(const dpi_gguf *gguf, const char *key, int64_t min, int64_t max,
                            int64_t *out, bool *found, dpi_error *err);
/* F32 or F64, finite and in [min, max]. */
dpi_status dpi_gguf_get_float(const dpi_gguf *gguf, const char *key, double min, double max,
                              double *out, bool *found, dpi_error *err);
dpi_status dpi_gguf_get_bool(const dpi_gguf *gguf, const char *key, bool *out, bool *found,
                             dpi_error *err);
/* The bytes stay in the file image. */
dpi_status dpi_gguf_get_string(const dpi_gguf *gguf, const char *key, dpi_str *out, bool *found,
                               dpi_error *err);
/* *out = the array's kv if the key is present, with item type `item_type`. */
dpi_status dpi_gguf_get_array(const dpi_gguf *gguf, const char *key, dpi_gguf_type item_type,
                              const dpi_gguf_kv **out, dpi_error *err);

/* Walks a string array: *cursor starts at 0. Each call yields the next string. The container
 * check has proven every length, so this cannot fail within n_items calls. */
dpi_str dpi_gguf_next_string(const dpi_gguf_kv *array, uint64_t *cursor);
/* Item of an array as a float (NaN if it is no number) or an integer (saturated; 0 if it is none);
 * index < n_items, checked by the caller. */
float dpi_gguf_item_f32(const dpi_gguf_kv *array, uint64_t index);
int32_t dpi_gguf_item_i32(const dpi_gguf_kv *array, uint64_t index);
/* Of an array of BOOL. */
bool dpi_gguf_item_bool(const dpi_gguf_kv *array, uint64_t index);

/* Static name of a value type ("u32", "string"), for messages and inspection. */
const char *dpi_gguf_type_name(dpi_gguf_type type);

/* That every key which begins with `prefix` goes on as one of `known` does, a list that NULL ends;
 * a name that ends with '*' stands for all that begin as it does. What else a file says could
 * change what it means. Errors: UNSUPPORTED, by name. */
dpi_status dpi_gguf_check_keys(const dpi_gguf *gguf, const char *prefix, const char *const *known,
                               dpi_error *err);

#endif
