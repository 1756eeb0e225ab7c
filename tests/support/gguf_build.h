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

/* Whole entries, counted. Each returns the offset of the value (of the first item). */
size_t build_u8(gguf_build *b, const char *key, uint8_t v);
size_t build_i8(gguf_build *b, const char *key, int8_t v);
size_t build_u16(gguf_build *b, const char *key, uint16_t v);
size_t build_i16(gguf_build *b, const char *key, int16_t v);
size_t build_u32(gguf_build *b, const char *key, uint32_t v);
size_t build_i32(gguf_build *b, const char *key, int32_t v);
size_t build_u64(gguf_build *b, const char *key, uint64_t v);
size_t build_i64(gguf_build *b, const char *key, int64_t v);
size_t build_f32(gguf_build *b, const char *key, float v);
size_t build_f64(gguf_build *b, const char *key, double v);
size_t build_bool(gguf_build *b, const char *key, bool v);
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
