/* gguf_read.c - answers from a GGUF file that gguf.c has checked. */
#include "gguf/gguf_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

static const struct {
    const char *name;
    uint64_t n_bytes;
} types[] = {
    [DPI_GGUF_U8] = {"u8", 1},         [DPI_GGUF_I8] = {"i8", 1},
    [DPI_GGUF_U16] = {"u16", 2},       [DPI_GGUF_I16] = {"i16", 2},
    [DPI_GGUF_U32] = {"u32", 4},       [DPI_GGUF_I32] = {"i32", 4},
    [DPI_GGUF_F32] = {"f32", 4},       [DPI_GGUF_BOOL] = {"bool", 1},
    [DPI_GGUF_STRING] = {"string", 0}, [DPI_GGUF_ARRAY] = {"array", 0},
    [DPI_GGUF_U64] = {"u64", 8},       [DPI_GGUF_I64] = {"i64", 8},
    [DPI_GGUF_F64] = {"f64", 8},
};

static bool is_type(dpi_gguf_type type) { return (size_t)type < sizeof types / sizeof types[0]; }

const char *dpi_gguf_type_name(dpi_gguf_type type) {
    return is_type(type) ? types[type].name : "unknown";
}

uint64_t dpi_gguf_item_bytes(dpi_gguf_type type) { return is_type(type) ? types[type].n_bytes : 0; }

printable_text dpi_gguf_printable(const char *data, uint64_t n_bytes) {
    enum { MAX = 80 };
    printable_text out;
    size_t n = n_bytes < MAX ? (size_t)n_bytes : MAX;
    for (size_t i = 0; i < n; i++)
        out.text[i] = data[i] >= 0x20 && data[i] < 0x7f ? data[i] : '?';
    strcpy(out.text + n, n_bytes > MAX ? "..." : "");
    return out;
}

/* ---- Lookup -------------------------------------------------------------------------------- */

const char *dpi_gguf_name(const dpi_gguf *gguf) { return gguf->name; }

int64_t dpi_gguf_kv_count(const dpi_gguf *gguf) { return (int64_t)gguf->n_kv; }

const dpi_gguf_kv *dpi_gguf_kv_at(const dpi_gguf *gguf, int64_t index) {
    return index >= 0 && (uint64_t)index < gguf->n_kv ? &gguf->kvs[index] : NULL;
}

static int compare_key(const void *key, const void *entry) {
    return strcmp(key, (*(const dpi_gguf_kv *const *)entry)->key);
}

const dpi_gguf_kv *dpi_gguf_find(const dpi_gguf *gguf, const char *key) {
    const dpi_gguf_kv **entry =
        bsearch(key, gguf->kv_by_key, gguf->n_kv, sizeof gguf->kv_by_key[0], compare_key);
    return entry ? *entry : NULL;
}

int64_t dpi_gguf_tensor_count(const dpi_gguf *gguf) { return (int64_t)gguf->n_tensors; }

const dpi_gguf_tensor *dpi_gguf_tensor_at(const dpi_gguf *gguf, int64_t index) {
    return index >= 0 && (uint64_t)index < gguf->n_tensors ? &gguf->tensors[index] : NULL;
}

static int compare_name(const void *name, const void *entry) {
    return strcmp(name, (*(const dpi_gguf_tensor *const *)entry)->name);
}

const dpi_gguf_tensor *dpi_gguf_tensor_find(const dpi_gguf *gguf, const char *name) {
    const dpi_gguf_tensor **entry =
        bsearch(name, gguf->by_name, gguf->n_tensors, sizeof gguf->by_name[0], compare_name);
    return entry ? *entry : NULL;
}

/* ---- Items --------------------------------------------------------------------------------- */

/* Reads item `index` as an integer; false if the type is not an integer type. A u64 beyond
 * INT64_MAX saturates: every range that a caller can give ends there, so *beyond tells. */
static bool load_integer(const dpi_gguf_kv *kv, uint64_t index, int64_t *out, bool *beyond) {
    const unsigned char *p = kv->data + index * dpi_gguf_item_bytes(kv->item_type);
    uint16_t u16;
    *beyond = false;
    switch (kv->item_type) {
    case DPI_GGUF_U8:
        *out = p[0];
        return true;
    case DPI_GGUF_I8:
        *out = (int8_t)p[0];
        return true;
    case DPI_GGUF_U16:
    case DPI_GGUF_I16:
        memcpy(&u16, p, sizeof u16);
        *out = kv->item_type == DPI_GGUF_U16 ? (int64_t)u16 : (int64_t)(int16_t)u16;
        return true;
    case DPI_GGUF_U32:
        *out = load_u32(p);
        return true;
    case DPI_GGUF_I32:
        *out = (int32_t)load_u32(p);
        return true;
    case DPI_GGUF_U64:
        *beyond = load_u64(p) > INT64_MAX;
        *out = *beyond ? INT64_MAX : (int64_t)load_u64(p);
        return true;
    case DPI_GGUF_I64:
        *out = (int64_t)load_u64(p);
        return true;
    case DPI_GGUF_F32:
    case DPI_GGUF_F64:
    case DPI_GGUF_BOOL:
    case DPI_GGUF_STRING:
    case DPI_GGUF_ARRAY:
        break;
    }
    return false;
}

/* False if the type is not F32 or F64. */
static bool load_float(const dpi_gguf_kv *kv, uint64_t index, double *out) {
    float f32;
    if (kv->item_type == DPI_GGUF_F32) {
        memcpy(&f32, kv->data + index * sizeof f32, sizeof f32);
        *out = (double)f32;
        return true;
    }
    if (kv->item_type == DPI_GGUF_F64) {
        memcpy(out, kv->data + index * sizeof *out, sizeof *out);
        return true;
    }
    return false;
}

float dpi_gguf_item_f32(const dpi_gguf_kv *array, uint64_t index) {
    double value;
    int64_t integer;
    bool beyond;
    if (load_float(array, index, &value))
        return (float)value;
    return load_integer(array, index, &integer, &beyond) ? (float)integer : NAN;
}

int32_t dpi_gguf_item_i32(const dpi_gguf_kv *array, uint64_t index) {
    int64_t integer;
    bool beyond;
    if (!load_integer(array, index, &integer, &beyond))
        return 0;
    return (int32_t)(integer < INT32_MIN ? INT32_MIN : integer > INT32_MAX ? INT32_MAX : integer);
}

bool dpi_gguf_item_bool(const dpi_gguf_kv *array, uint64_t index) {
    return array->data[index] != 0;
}

dpi_str dpi_gguf_next_string(const dpi_gguf_kv *array, uint64_t *cursor) {
    /* The checks cannot fail on the bytes that were opened; they hold the line if a mapped file
     * is overwritten while it is in use. */
    if (*cursor > array->n_bytes || array->n_bytes - *cursor < sizeof(uint64_t))
        return (dpi_str){"", 0};
    uint64_t n_bytes = load_u64(array->data + *cursor);
    uint64_t start = *cursor + sizeof(uint64_t);
    if (n_bytes > array->n_bytes - start)
        return (dpi_str){"", 0};
    *cursor = start + n_bytes;
    return (dpi_str){(const char *)array->data + start, n_bytes};
}

/* ---- Typed reads --------------------------------------------------------------------------- */

static void set_found(bool *found, bool value) {
    if (found)
        *found = value;
}

static dpi_status fail_type(const dpi_gguf *gguf, const dpi_gguf_kv *kv, const char *wanted,
                            dpi_error *err) {
    bool array = kv->type == DPI_GGUF_ARRAY;
    return dpi_fail_at(err, DPI_STATUS_FORMAT, kv->offset, "%s: key '%s' is %s%s, must be %s",
                       gguf->name, dpi_gguf_printable(kv->key, strlen(kv->key)).text,
                       array ? "an array of " : "of type ", dpi_gguf_type_name(kv->item_type),
                       wanted);
}

dpi_status dpi_gguf_get_int(const dpi_gguf *gguf, const char *key, int64_t min, int64_t max,
                            int64_t *out, bool *found, dpi_error *err) {
    const dpi_gguf_kv *kv = dpi_gguf_find(gguf, key);
    int64_t value;
    bool beyond;
    if (!kv) {
        set_found(found, false);
        return DPI_STATUS_OK;
    }
    if (kv->type == DPI_GGUF_ARRAY || !load_integer(kv, 0, &value, &beyond))
        return fail_type(gguf, kv, "an integer", err);
    if (beyond || value < min || value > max)
        return dpi_fail_at(err, DPI_STATUS_FORMAT, kv->offset,
                           "%s: key '%s' is %s%" PRId64 ", must be %" PRId64 "..%" PRId64,
                           gguf->name, dpi_gguf_printable(key, strlen(key)).text,
                           beyond ? "more than " : "", value, min, max);
    *out = value;
    set_found(found, true);
    return DPI_STATUS_OK;
}

dpi_status dpi_gguf_get_float(const dpi_gguf *gguf, const char *key, double min, double max,
                              double *out, bool *found, dpi_error *err) {
    const dpi_gguf_kv *kv = dpi_gguf_find(gguf, key);
    double value;
    if (!kv) {
        set_found(found, false);
        return DPI_STATUS_OK;
    }
    if (kv->type == DPI_GGUF_ARRAY || !load_float(kv, 0, &value))
        return fail_type(gguf, kv, "f32 or f64", err);
    if (!isfinite(value) || value < min || value > max)
        return dpi_fail_at(err, DPI_STATUS_FORMAT, kv->offset, "%s: key '%s' is %g, must be %g..%g",
                           gguf->name, dpi_gguf_printable(key, strlen(key)).text, value, min, max);
    *out = value;
    set_found(found, true);
    return DPI_STATUS_OK;
}

dpi_status dpi_gguf_get_bool(const dpi_gguf *gguf, const char *key, bool *out, bool *found,
                             dpi_error *err) {
    const dpi_gguf_kv *kv = dpi_gguf_find(gguf, key);
    if (kv && kv->type != DPI_GGUF_BOOL)
        return fail_type(gguf, kv, "bool", err);
    if (kv)
        *out = kv->data[0] != 0;
    set_found(found, kv != NULL);
    return DPI_STATUS_OK;
}

dpi_status dpi_gguf_get_string(const dpi_gguf *gguf, const char *key, dpi_str *out, bool *found,
                               dpi_error *err) {
    const dpi_gguf_kv *kv = dpi_gguf_find(gguf, key);
    uint64_t cursor = 0;
    if (kv && kv->type != DPI_GGUF_STRING)
        return fail_type(gguf, kv, "a string", err);
    if (kv)
        *out = dpi_gguf_next_string(kv, &cursor);
    set_found(found, kv != NULL);
    return DPI_STATUS_OK;
}

dpi_status dpi_gguf_get_array(const dpi_gguf *gguf, const char *key, dpi_gguf_type item_type,
                              const dpi_gguf_kv **out, dpi_error *err) {
    const dpi_gguf_kv *kv = dpi_gguf_find(gguf, key);
    if (!kv)
        return DPI_STATUS_OK;
    if (kv->type != DPI_GGUF_ARRAY || kv->item_type != item_type) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "an array of %s", dpi_gguf_type_name(item_type));
        return fail_type(gguf, kv, wanted, err);
    }
    *out = kv;
    return DPI_STATUS_OK;
}

/* ---- Keys that nobody reads ---------------------------------------------------------------- */

static bool is_known(const char *key, const char *const *known) {
    for (; *known; known++) {
        const size_t n = strlen(*known);
        const bool is_family = (*known)[n - 1] == '*';
        if (is_family ? strncmp(key, *known, n - 1) == 0 : strcmp(key, *known) == 0)
            return true;
    }
    return false;
}

dpi_status dpi_gguf_check_keys(const dpi_gguf *gguf, const char *prefix, const char *const *known,
                               dpi_error *err) {
    const size_t n = strlen(prefix);
    for (uint64_t i = 0; i < gguf->n_kv; i++) {
        const dpi_gguf_kv *kv = &gguf->kvs[i];
        if (strncmp(kv->key, prefix, n) == 0 && !is_known(kv->key + n, known))
            return dpi_fail_at(err, DPI_STATUS_UNSUPPORTED, kv->offset,
                               "%s: key '%s' is unknown: allowed are keys %s* whose effect is "
                               "implemented", gguf->name,
                               dpi_gguf_printable(kv->key, strlen(kv->key)).text, prefix);
    }
    return DPI_STATUS_OK;
}
