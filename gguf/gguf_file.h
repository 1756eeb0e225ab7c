/* gguf_file.h - what gguf.c (opens), gguf_check.c (checks) and gguf_read.c (answers) share.
 * Private to them. */
#ifndef DPI_GGUF_FILE_H
#define DPI_GGUF_FILE_H

#include <string.h>

#include "gguf/gguf.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF fields and tensors are read in place: a little-endian processor is needed"
#endif
_Static_assert(sizeof(size_t) == sizeof(uint64_t), "file sizes and offsets are used as sizes");

typedef enum image_owner {
    IMAGE_BORROWED, /* the caller's buffer */
    IMAGE_MAPPED,
    IMAGE_ALLOCATED,
} image_owner;

struct dpi_gguf {
    char *name;                /* for messages */
    const unsigned char *base; /* [size], the file image */
    uint64_t size;
    image_owner owner;

    uint64_t alignment; /* of tensor data, a power of two */
    uint64_t n_kv, n_tensors;
    dpi_gguf_kv *kvs;                /* [n_kv], file order */
    const dpi_gguf_kv **kv_by_key;   /* [n_kv], sorted by key */
    char *keys;                      /* all keys, each with its NUL */
    dpi_gguf_tensor *tensors;        /* [n_tensors], file order */
    const dpi_gguf_tensor **by_name; /* [n_tensors], sorted by name */
    char *names;
    uint64_t directory_start; /* offset of the first tensor's entry */

    /* The other parts of a split model, whose tensors are among those above. */
    dpi_gguf **parts; /* [n_parts] */
    uint64_t n_parts;
};

/* Opens and checks one file, whether or not it is a part of a split model. */
dpi_status dpi_gguf_open_one(const char *path, bool use_mmap, dpi_gguf **gguf, dpi_error *err);
/* The same of a buffer, which stays the caller's. */
dpi_status dpi_gguf_buffer_one(const void *data, size_t n_bytes, dpi_gguf **gguf, dpi_error *err);

/* Fills by_name: the tensors sorted by name. The second of two with the same name, or NULL. */
const dpi_gguf_tensor *dpi_gguf_sort_names(dpi_gguf *gguf);

/* What a message says of a model in the form of Hugging Face, after what it is. */
#define DPI_GGUF_CONVERT                                                                           \
    "must be a GGUF file. llama.cpp makes one of a folder of Hugging Face: python "                \
    "convert_hf_to_gguf.py FOLDER --outfile model.gguf (of an adapter: convert_lora_to_gguf.py)"

/* Checks the image [base, size] and fills in the rest; what it allocated stays with *gguf, also on
 * failure. Errors: FORMAT, UNSUPPORTED, ARG (alignment of the image), MEMORY. */
dpi_status dpi_gguf_check(dpi_gguf *gguf, dpi_error *err);

/* Bytes of one item of a type; 0 for strings and arrays, which have no fixed size. */
uint64_t dpi_gguf_item_bytes(dpi_gguf_type type);

/* A name from a file, for a message: short, and without control characters that would steer a
 * terminal. Use as printable(...).text within one expression. */
typedef struct printable_text {
    char text[84];
} printable_text;
printable_text dpi_gguf_printable(const char *data, uint64_t n_bytes);

static inline uint32_t load_u32(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t load_u64(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

#endif
