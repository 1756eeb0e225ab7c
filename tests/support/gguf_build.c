#include "tests/support/gguf_build.h"

#include "tests/support/support.h"

static void append(unsigned char **data, size_t *n_bytes, size_t *capacity, const void *src,
                   size_t n) {
    if (n == 0)
        return;
    if (*n_bytes + n > *capacity) {
        *capacity = 2 * (*n_bytes + n);
        *data = realloc(*data, *capacity);
        assert_non_null(*data);
    }
    if (src)
        memcpy(*data + *n_bytes, src, n);
    else
        memset(*data + *n_bytes, 0, n);
    *n_bytes += n;
}

size_t build_put(gguf_build *b, const void *data, size_t n_bytes) {
    size_t at = b->n_bytes;
    append(&b->data, &b->n_bytes, &b->capacity, data, n_bytes);
    return at;
}

size_t build_put_u8(gguf_build *b, uint8_t v) { return build_put(b, &v, sizeof v); }
size_t build_put_u32(gguf_build *b, uint32_t v) { return build_put(b, &v, sizeof v); }
size_t build_put_u64(gguf_build *b, uint64_t v) { return build_put(b, &v, sizeof v); }

size_t build_put_string(gguf_build *b, const void *data, size_t n_bytes) {
    size_t at = build_put_u64(b, n_bytes);
    build_put(b, data, n_bytes);
    return at;
}

void build_poke(gguf_build *b, size_t offset, const void *data, size_t n_bytes) {
    assert_true(offset + n_bytes <= b->n_bytes);
    memcpy(b->data + offset, data, n_bytes);
}

void build_poke_u32(gguf_build *b, size_t offset, uint32_t v) {
    build_poke(b, offset, &v, sizeof v);
}

void build_poke_u64(gguf_build *b, size_t offset, uint64_t v) {
    build_poke(b, offset, &v, sizeof v);
}

static void count_one(gguf_build *b, size_t offset) {
    uint64_t n;
    memcpy(&n, b->data + offset, sizeof n);
    build_poke_u64(b, offset, n + 1);
}

void build_begin(gguf_build *b) {
    *b = (gguf_build){.alignment = 32};
    build_put(b, "GGUF", 4);
    build_put_u32(b, 3);
    build_put_u64(b, 0);
    build_put_u64(b, 0);
}

static void pad_body(gguf_build *b) {
    append(&b->body, &b->n_body, &b->body_capacity, NULL, -b->n_body & (b->alignment - 1));
}

void build_end(gguf_build *b) {
    if (b->n_body == 0)
        return;
    build_put(b, NULL, -b->n_bytes & (b->alignment - 1));
    build_put(b, b->body, b->n_body);
}

void build_free(gguf_build *b) {
    free(b->data);
    free(b->body);
    *b = (gguf_build){0};
}

size_t build_key(gguf_build *b, const char *key, uint32_t type) {
    count_one(b, BUILD_N_KV);
    size_t at = build_put_string(b, key, strlen(key));
    build_put_u32(b, type);
    return at;
}

size_t build_scalar(gguf_build *b, const char *key, uint32_t type, const void *v, size_t n_bytes) {
    build_key(b, key, type);
    return build_put(b, v, n_bytes);
}

size_t build_string(gguf_build *b, const char *key, const char *v) {
    build_key(b, key, 8);
    return build_put_string(b, v, strlen(v));
}

static void array_header(gguf_build *b, const char *key, uint32_t item_type, size_t n_items) {
    build_key(b, key, 9);
    build_put_u32(b, item_type);
    build_put_u64(b, n_items);
}

size_t build_array(gguf_build *b, const char *key, uint32_t item_type, const void *items,
                   size_t n_items, size_t item_bytes) {
    array_header(b, key, item_type, n_items);
    return build_put(b, items, n_items * item_bytes);
}

size_t build_strings(gguf_build *b, const char *key, const char *const *items, size_t n_items) {
    array_header(b, key, 8, n_items);
    size_t at = b->n_bytes;
    for (size_t i = 0; i < n_items; i++)
        build_put_string(b, items[i], strlen(items[i]));
    return at;
}

size_t build_entry(gguf_build *b, const char *name, uint32_t n_dims, const int64_t *shape,
                   uint32_t type, uint64_t offset) {
    count_one(b, BUILD_N_TENSORS);
    size_t at = build_put_string(b, name, strlen(name));
    build_put_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims; i++)
        build_put_u64(b, (uint64_t)shape[i]);
    build_put_u32(b, type);
    build_put_u64(b, offset);
    return at;
}

size_t build_tensor(gguf_build *b, const char *name, uint32_t type, uint32_t n_dims,
                    const int64_t *shape, const void *data, size_t n_bytes) {
    pad_body(b);
    size_t at = build_entry(b, name, n_dims, shape, type, b->n_body);
    append(&b->body, &b->n_body, &b->body_capacity, data, n_bytes);
    return at;
}
