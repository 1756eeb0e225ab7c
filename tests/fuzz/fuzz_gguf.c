/* fuzz_gguf.c - libFuzzer target: opens any bytes as a GGUF file, then uses every answer. */
#include "gguf/gguf.h"
#include "tests/fuzz/fuzz.h"

/* Reads every byte, so that the sanitizer sees a range that is too long. */
static void touch(const void *data, uint64_t n_bytes) {
    const volatile uint8_t *p = data;
    for (uint64_t i = 0; i < n_bytes; i++)
        (void)p[i];
}

static void walk_kv(const dpi_gguf *gguf, const dpi_gguf_kv *kv, size_t size) {
    touch(kv->data, kv->n_bytes);
    require(kv->offset <= size && kv->n_bytes <= size - kv->offset);
    require(dpi_gguf_find(gguf, kv->key) == kv);
    if (kv->item_type == DPI_GGUF_STRING) {
        uint64_t cursor = 0;
        for (uint64_t i = 0; i < kv->n_items; i++) {
            dpi_str s = dpi_gguf_next_string(kv, &cursor);
            touch(s.data, s.n_bytes);
        }
        require(cursor == kv->n_bytes);
    } else {
        for (uint64_t i = 0; i < kv->n_items; i++) {
            volatile float f = dpi_gguf_item_f32(kv, i);
            volatile int32_t n = dpi_gguf_item_i32(kv, i);
            (void)f, (void)n;
        }
    }
    int64_t integer;
    double real;
    bool boolean, found;
    dpi_str string = {"", 0};
    const dpi_gguf_kv *array;
    dpi_error err;
    dpi_status status = dpi_gguf_get_int(gguf, kv->key, -100, 1 << 20, &integer, &found, &err);
    require(status != DPI_STATUS_OK || (found && integer >= -100 && integer <= 1 << 20));
    status = dpi_gguf_get_float(gguf, kv->key, 0, 1e9, &real, &found, &err);
    require(status != DPI_STATUS_OK || (found && real >= 0 && real <= 1e9));
    status = dpi_gguf_get_bool(gguf, kv->key, &boolean, &found, &err);
    require((status == DPI_STATUS_OK) == (kv->type == DPI_GGUF_BOOL));
    status = dpi_gguf_get_string(gguf, kv->key, &string, &found, &err);
    require((status == DPI_STATUS_OK) == (kv->type == DPI_GGUF_STRING));
    status = dpi_gguf_get_array(gguf, kv->key, DPI_GGUF_STRING, &array, &err);
    require((status == DPI_STATUS_OK) ==
            (kv->type == DPI_GGUF_ARRAY && kv->item_type == DPI_GGUF_STRING));
    touch(string.data, string.n_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    dpi_gguf *gguf = NULL;
    dpi_error err = {0};
    if (!is_ok(dpi_gguf_open_buffer(data, n_bytes, &gguf, &err), &err)) {
        require(!gguf);
        return 0;
    }
    for (int64_t i = 0; i < dpi_gguf_kv_count(gguf); i++)
        walk_kv(gguf, dpi_gguf_kv_at(gguf, i), n_bytes);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(gguf); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(gguf, i);
        require(t->offset <= n_bytes && t->n_bytes <= n_bytes - t->offset);
        require(dpi_gguf_tensor_find(gguf, t->name) == t && strlen(t->name) <= 63);
        touch(t->data, t->n_bytes);
    }
    dpi_gguf_close(gguf);
    return 0;
}
