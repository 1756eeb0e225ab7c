/* gguf_build.h - writes GGUF images in memory, good ones and malformed ones, for tests.
 *
 *     gguf_build b;
 *     build_begin(&b);                                  version 3, counts of zero
 *     build_string(&b, "general.architecture", "llama");
 *     build_tensor(&b, "token_embd.weight", 0, 2, (int64_t[]){64, 512}, weights, n_bytes);
 *     build_end(&b);                                    padding and tensor data
 *     dpi_gguf_open_buffer(b.data, b.n_bytes, ...);
 *     build_free(&b);
 *
 * Keys and tensors count themselves in the header. All keys go before the first tensor. Every
 * function that appends returns the offset of what a reader would blame: the value of a key,
 * the entry of a tensor. To damage an image: the raw put functions, in place of the others or
 * between them, and build_poke over what is written.
 */
#ifndef DPI_GGUF_BUILD_H
#define DPI_GGUF_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gguf_build {
    unsigned char *data; /* [n_bytes], aligned as malloc does; moves as it grows */
    size_t n_bytes, capacity;
    unsigned char *body; /* [n_body], tensor data until build_end appends it */
    size_t n_body, body_capacity;
    uint32_t alignment; /* of tensor data; set it after build_begin to change it */
} gguf_build;

/* Offsets of the header's fields, for build_poke. */
enum { BUILD_VERSION = 4, BUILD_N_TENSORS = 8, BUILD_N_KV = 16, BUILD_HEADER_BYTES = 24 };

void build_begin(gguf_build *b);
void build_end(gguf_build *b);
void build_free(gguf_build *b);

/* Raw little-endian bytes, no counting. Each returns where they are. */
size_t build_put(gguf_build *b, const void *data, size_t n_bytes);
size_t build_put_u8(gguf_build *b, uint8_t v);
size_t build_put_u32(gguf_build *b, uint32_t v);
size_t build_put_u64(gguf_build *b, uint64_t v);
/* u64 length, bytes. */
size_t build_put_string(gguf_build *b, const void *data, size_t n_bytes);
/* Overwrites. */
void build_poke(gguf_build *b, size_t offset, const void *data, size_t n_bytes);
void build_poke_u32(gguf_build *b, size_t offset, uint32_t v);
void build_poke_u64(gguf_build *b, size_t offset, uint64_t v);

/* Key and type of an entry whose value follows by put; counted. Returns where the key begins. */
size_t build_key(gguf_build *b, const char *key, uint32_t type);

/* Whole entries, counted. Each returns the offset of the value (of the first item): build_u8(b,
 * key, value) and so on. The type numbers are the specification's: a second source beside gguf.h.
 */
size_t build_scalar(gguf_build *b, const char *key, uint32_t type, const void *v, size_t n_bytes);
#define BUILD_SCALAR(name, type, c_type)                                                           \
    static inline size_t build_##name(gguf_build *b, const char *key, c_type v) {                  \
        return build_scalar(b, key, type, &v, sizeof v);                                           \
    }
BUILD_SCALAR(u8, 0, uint8_t)
BUILD_SCALAR(i8, 1, int8_t)
BUILD_SCALAR(u16, 2, uint16_t)
BUILD_SCALAR(i16, 3, int16_t)
BUILD_SCALAR(u32, 4, uint32_t)
BUILD_SCALAR(i32, 5, int32_t)
BUILD_SCALAR(f32, 6, float)
BUILD_SCALAR(bool, 7, bool)
BUILD_SCALAR(u64, 10, uint64_t)
BUILD_SCALAR(i64, 11, int64_t)
BUILD_SCALAR(f64, 12, double)
size_t build_string(gguf_build *b, const char *key, const char *v);
/* items: n_items values of `item_bytes` each. */
size_t build_array(gguf_build *b, const char *key, uint32_t item_type, const void *items,
                   size_t n_items, size_t item_bytes);
size_t build_strings(gguf_build *b, const char *key, const char *const *items, size_t n_items);

/* A tensor's entry with any values, counted; no data. Returns where the entry begins. */
size_t build_entry(gguf_build *b, const char *name, uint32_t n_dims, const int64_t *shape,
                   uint32_t type, uint64_t offset);
/* A tensor with its data (zeros if NULL) at the next aligned offset. */
size_t build_tensor(gguf_build *b, const char *name, uint32_t type, uint32_t n_dims,
                    const int64_t *shape, const void *data, size_t n_bytes);

#endif
