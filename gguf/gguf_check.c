/* gguf_check.c - walks a whole GGUF image and checks it, so that nothing later has to.
 *
 *     magic "GGUF" | u32 version | u64 n_tensors | u64 n_kv
 *     n_kv      x  key string | u32 type | value
 *     n_tensors x  name string | u32 n_dims | u64 shape[n_dims] | u32 type | u64 offset
 *     padding to general.alignment | tensor data (offsets count from here)
 *     string: u64 n_bytes | bytes        array: u32 item type | u64 n_items | items
 *
 * The metadata and the directory are each walked twice: once to check and measure them, once to
 * fill arrays of exactly the right size. So a count in a hostile file allocates nothing before
 * the entries have been seen, and memory is a small multiple of their bytes.
 */
#include "gguf/gguf_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "kernels/weight_types.h"

enum {
    MIN_KV_BYTES = 8 + 1 + 4 + 1,             /* key of one byte, type, one byte of value */
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8, /* name of one byte, one dimension */
    MAX_KEY_BYTES = 65535,
    MAX_NAME_BYTES = 63,
    MAX_DIMS = 4,
    DEFAULT_ALIGNMENT = 32,
    /* The format wants a multiple of 8. So tensor data is aligned to 8 bytes at least, which
     * is all that a user of the data may rely on. */
    MIN_ALIGNMENT = 8,
    MAX_ALIGNMENT = 1 << 20,
};

/* ---- Cursor: the only reader of the image ------------------------------------------------- */

typedef struct cursor {
    const unsigned char *base;
    uint64_t size, pos; /* pos <= size */
    dpi_error *err;
} cursor;

static uint64_t bytes_left(const cursor *c) { return c->size - c->pos; }

/* The next n_bytes; NULL, with a FORMAT error filled in, if they are not there. */
static const unsigned char *read_bytes(cursor *c, uint64_t n_bytes, const char *what) {
    if (n_bytes > bytes_left(c)) {
        dpi_fail_at(c->err, DPI_STATUS_FORMAT, c->pos,
                    "%s takes %" PRIu64 " bytes, %" PRIu64 " are left in the file", what, n_bytes,
                    bytes_left(c));
        return NULL;
    }
    const unsigned char *p = c->base + c->pos;
    c->pos += n_bytes;
    return p;
}

static dpi_status read_u32(cursor *c, const char *what, uint32_t *out) {
    const unsigned char *p = read_bytes(c, sizeof *out, what);
    if (!p)
        return DPI_STATUS_FORMAT;
    *out = load_u32(p);
    return DPI_STATUS_OK;
}

static dpi_status read_u64(cursor *c, const char *what, uint64_t *out) {
    const unsigned char *p = read_bytes(c, sizeof *out, what);
    if (!p)
        return DPI_STATUS_FORMAT;
    *out = load_u64(p);
    return DPI_STATUS_OK;
}

/* A count of things of at least `min_bytes` each. */
static dpi_status read_count(cursor *c, const char *what, uint64_t min_bytes, uint64_t *out) {
    uint64_t at = c->pos, n;
    DPI_TRY(read_u64(c, what, &n));
    if (n > bytes_left(c) / min_bytes)
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at,
                           "%s is %" PRIu64 ", the %" PRIu64 " bytes left hold at most %" PRIu64,
                           what, n, bytes_left(c), bytes_left(c) / min_bytes);
    *out = n;
    return DPI_STATUS_OK;
}

static dpi_status read_string(cursor *c, const char *what, dpi_str *out) {
    uint64_t n_bytes;
    DPI_TRY(read_u64(c, what, &n_bytes));
    const unsigned char *p = read_bytes(c, n_bytes, what);
    if (!p)
        return DPI_STATUS_FORMAT;
    *out = (dpi_str){(const char *)p, n_bytes};
    return DPI_STATUS_OK;
}

/* A key or a tensor's name: 1..max_bytes bytes, none of them NUL. */
static dpi_status read_name(cursor *c, const char *what, uint64_t max_bytes, dpi_str *out) {
    uint64_t at = c->pos;
    DPI_TRY(read_string(c, what, out));
    if (out->n_bytes == 0)
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at, "%s is empty", what);
    if (out->n_bytes > max_bytes)
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at,
                           "%s '%s' has %" PRIu64 " bytes, at most %" PRIu64 " are allowed", what,
                           dpi_gguf_printable(out->data, out->n_bytes).text, out->n_bytes,
                           max_bytes);
    if (memchr(out->data, '\0', out->n_bytes))
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at, "%s '%s' contains a NUL byte", what,
                           dpi_gguf_printable(out->data, out->n_bytes).text);
    return DPI_STATUS_OK;
}

/* Copies a name to *end, NUL-terminated; NULL if it does not fit before `limit`, which the
 * measuring walk has excluded unless a mapped file changes under it. */
static const char *keep_name(char **end, const char *limit, dpi_str name) {
    if (name.n_bytes >= (uint64_t)(limit - *end))
        return NULL;
    char *copy = *end;
    memcpy(copy, name.data, name.n_bytes);
    copy[name.n_bytes] = '\0';
    *end += name.n_bytes + 1;
    return copy;
}

static dpi_status fail_changed(const cursor *c) {
    return dpi_fail_at(c->err, DPI_STATUS_IO, c->pos, "the file changed while it was read");
}

/* ---- Header ------------------------------------------------------------------------------- */

/* What else weights come in; NULL: none of these. The header of safetensors is JSON after its
 * length; PyTorch's files are a ZIP archive or, older ones, begin with a pickled number; those of
 * llama.cpp before August 2023 begin with ggml, ggmf, ggjt or ggla as a number of 32 bits. */
static const char *other_form(const dpi_gguf *g) {
    static const char *const forms[][2] = {
        {"PK\3\4", "of PyTorch, or another ZIP archive"},
        {"\200\2\212\n", "of PyTorch"},
        {"lmgg", "of llama.cpp before there was GGUF"},
        {"fmgg", "of llama.cpp before there was GGUF"},
        {"tjgg", "of llama.cpp before there was GGUF"},
        {"algg", "of llama.cpp before there was GGUF"},
    };
    if (g->size > 8 && load_u64(g->base) < 1 << 27 && g->base[8] == '{')
        return "of safetensors";
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (memcmp(g->base, forms[i][0], 4) == 0)
            return forms[i][1];
    return NULL;
}

static dpi_status read_header(dpi_gguf *g, cursor *c) {
    uint32_t version;
    const unsigned char *magic = read_bytes(c, 4, "the magic number");
    if (!magic)
        return DPI_STATUS_FORMAT;
    const char *other = other_form(g);
    if (other)
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, 0, "is a file %s, " DPI_GGUF_CONVERT,
                           other);
    bool swapped = memcmp(magic, "FUGG", 4) == 0;
    if (!swapped && memcmp(magic, "GGUF", 4) != 0)
        /* The message has no byte of the file: by mistake it may be one of records. */
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, 0,
                           "is no GGUF file: it does not begin with \"GGUF\"");
    uint64_t at = c->pos;
    DPI_TRY(read_u32(c, "the version", &version));
    /* Versions are small: one that is a multiple of 2^16 has its bytes swapped. */
    if (swapped || (version != 0 && (version & 0xffff) == 0))
        return dpi_fail_at(c->err, DPI_STATUS_UNSUPPORTED, at,
                           "version is 0x%08" PRIx32 ": this is a big-endian file, only "
                           "little-endian files are supported",
                           version);
    if (version != 2 && version != 3)
        return dpi_fail_at(c->err, version ? DPI_STATUS_UNSUPPORTED : DPI_STATUS_FORMAT, at,
                           "GGUF version %" PRIu32 " is not supported, only 2 and 3 are", version);
    DPI_TRY(read_count(c, "the number of tensors", MIN_TENSOR_BYTES, &g->n_tensors));
    return read_count(c, "the number of metadata keys", MIN_KV_BYTES, &g->n_kv);
}

/* ---- Metadata ----------------------------------------------------------------------------- */

static dpi_status read_type(cursor *c, const char *what, dpi_gguf_type *out) {
    uint64_t at = c->pos;
    uint32_t type;
    DPI_TRY(read_u32(c, what, &type));
    if (type > DPI_GGUF_F64)
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at, "%s is %" PRIu32 ", must be 0..12", what,
                           type);
    *out = (dpi_gguf_type)type;
    return DPI_STATUS_OK;
}

static dpi_status read_items(cursor *c, dpi_gguf_type type, uint64_t n_items) {
    if (type == DPI_GGUF_STRING) {
        dpi_str s;
        for (uint64_t i = 0; i < n_items; i++)
            DPI_TRY(read_string(c, "a string", &s));
        return DPI_STATUS_OK;
    }
    uint64_t at = c->pos, n_bytes;
    if (!dpi_mul_u64(n_items, dpi_gguf_item_bytes(type), &n_bytes))
        n_bytes = UINT64_MAX; /* more than any file has: the next line says so */
    const unsigned char *p = read_bytes(c, n_bytes, "the value");
    if (!p)
        return DPI_STATUS_FORMAT;
    if (type == DPI_GGUF_BOOL)
        for (uint64_t i = 0; i < n_items; i++)
            if (p[i] > 1)
                return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at + i, "bool is %u, must be 0 or 1",
                                   p[i]);
    return DPI_STATUS_OK;
}

static dpi_status read_value(cursor *c, dpi_gguf_kv *kv) {
    DPI_TRY(read_type(c, "the value type", &kv->type));
    kv->item_type = kv->type;
    kv->n_items = 1;
    if (kv->type == DPI_GGUF_ARRAY) {
        uint64_t at = c->pos;
        DPI_TRY(read_type(c, "the array's item type", &kv->item_type));
        if (kv->item_type == DPI_GGUF_ARRAY)
            return dpi_fail_at(c->err, DPI_STATUS_UNSUPPORTED, at,
                               "arrays of arrays are not supported");
        bool strings = kv->item_type == DPI_GGUF_STRING;
        uint64_t min_bytes = strings ? sizeof(uint64_t) : dpi_gguf_item_bytes(kv->item_type);
        DPI_TRY(read_count(c, "the array's length", min_bytes, &kv->n_items));
    }
    kv->data = c->base + c->pos;
    kv->offset = c->pos;
    DPI_TRY(read_items(c, kv->item_type, kv->n_items));
    kv->n_bytes = c->pos - kv->offset;
    return DPI_STATUS_OK;
}

/* One entry; kv->key is left to the caller. */
static dpi_status read_kv(cursor *c, dpi_str *key, dpi_gguf_kv *kv) {
    DPI_TRY(read_name(c, "a metadata key", MAX_KEY_BYTES, key));
    dpi_status status = read_value(c, kv);
    if (status == DPI_STATUS_OK)
        return status;
    char context[128];
    snprintf(context, sizeof context, "key '%s'", dpi_gguf_printable(key->data, key->n_bytes).text);
    return dpi_fail_in(c->err, status, context);
}

static int compare_keys(const void *a, const void *b) {
    const dpi_gguf_kv *x = *(const dpi_gguf_kv *const *)a, *y = *(const dpi_gguf_kv *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x > y) - (x < y); /* equal keys in file order */
}

static dpi_status sort_keys(dpi_gguf *g, const cursor *c) {
    for (uint64_t i = 0; i < g->n_kv; i++)
        g->kv_by_key[i] = &g->kvs[i];
    qsort(g->kv_by_key, g->n_kv, sizeof g->kv_by_key[0], compare_keys);
    for (uint64_t i = 1; i < g->n_kv; i++) {
        const dpi_gguf_kv *kv = g->kv_by_key[i];
        uint64_t n = strlen(kv->key), header = kv->type == DPI_GGUF_ARRAY ? 16 : 4;
        if (strcmp(g->kv_by_key[i - 1]->key, kv->key) == 0)
            return dpi_fail_at(c->err, DPI_STATUS_FORMAT, kv->offset - header - n - 8,
                               "key '%s' occurs twice", dpi_gguf_printable(kv->key, n).text);
    }
    return DPI_STATUS_OK;
}

static dpi_status read_metadata(dpi_gguf *g, cursor *c) {
    uint64_t start = c->pos, keys_bytes = 0;
    dpi_gguf_kv kv;
    dpi_str key;
    for (uint64_t i = 0; i < g->n_kv; i++) {
        DPI_TRY(read_kv(c, &key, &kv));
        keys_bytes += key.n_bytes + 1;
    }
    g->kvs = dpi_calloc(g->n_kv, sizeof g->kvs[0]);
    g->kv_by_key = dpi_calloc(g->n_kv, sizeof g->kv_by_key[0]);
    g->keys = dpi_calloc(keys_bytes, 1);
    if (!g->kvs || !g->kv_by_key || !g->keys)
        return dpi_no_memory(c->err, "%" PRIu64 " metadata keys", g->n_kv);
    char *end = g->keys;
    c->pos = start;
    for (uint64_t i = 0; i < g->n_kv; i++) {
        DPI_TRY(read_kv(c, &key, &kv));
        kv.key = keep_name(&end, g->keys + keys_bytes, key);
        if (!kv.key)
            return fail_changed(c);
        g->kvs[i] = kv;
    }
    return sort_keys(g, c);
}

static dpi_status read_alignment(dpi_gguf *g, dpi_error *err) {
    g->alignment = DEFAULT_ALIGNMENT;
    const dpi_gguf_kv *kv = dpi_gguf_find(g, "general.alignment");
    if (!kv)
        return DPI_STATUS_OK;
    if (kv->type != DPI_GGUF_U32)
        return dpi_fail_at(err, DPI_STATUS_FORMAT, kv->offset,
                           "key 'general.alignment' is of type %s, must be u32",
                           dpi_gguf_type_name(kv->type));
    uint32_t alignment = load_u32(kv->data);
    if (alignment < MIN_ALIGNMENT || alignment > MAX_ALIGNMENT || (alignment & (alignment - 1)))
        return dpi_fail_at(err, DPI_STATUS_FORMAT, kv->offset,
                           "general.alignment is %" PRIu32 ", must be a power of two in %d..%d",
                           alignment, MIN_ALIGNMENT, MAX_ALIGNMENT);
    g->alignment = alignment;
    return DPI_STATUS_OK;
}

/* ---- Tensor directory ---------------------------------------------------------------------- */

static dpi_status read_shape(cursor *c, dpi_gguf_tensor *t, uint64_t *n_weights) {
    uint64_t at = c->pos;
    uint32_t n_dims;
    DPI_TRY(read_u32(c, "the number of dimensions", &n_dims));
    if (n_dims < 1 || n_dims > MAX_DIMS)
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at,
                           "has %" PRIu32 " dimensions, must be 1..%d", n_dims, MAX_DIMS);
    t->n_dims = (int32_t)n_dims;
    *n_weights = 1;
    for (uint32_t i = 0; i < MAX_DIMS; i++) {
        uint64_t n = 1;
        at = c->pos;
        if (i < n_dims)
            DPI_TRY(read_u64(c, "a dimension", &n));
        if (n < 1 || n > INT64_MAX)
            return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at,
                               "dimension %" PRIu32 " is %" PRIu64 ", must be 1..2^63-1", i, n);
        if (!dpi_mul_u64(*n_weights, n, n_weights) || *n_weights > INT64_MAX)
            return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at,
                               "the number of elements overflows 2^63-1");
        t->shape[i] = (int64_t)n;
    }
    return DPI_STATUS_OK;
}

static dpi_status read_tensor_type(cursor *c, dpi_gguf_tensor *t, uint64_t n_weights) {
    uint64_t at = c->pos;
    DPI_TRY(read_u32(c, "the tensor type", &t->type));
    const dpi_type *type = dpi_type_find(t->type);
    const char *name = dpi_type_name(t->type);
    if (!type && name)
        return dpi_fail_at(c->err, DPI_STATUS_UNSUPPORTED, at, "type %s is not supported", name);
    if (!type)
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at,
                           "type id %" PRId32 " is unknown or was removed from the format",
                           (int32_t)t->type);
    if (t->shape[0] % type->block != 0)
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at,
                           "has rows of %" PRId64 " elements, type %s needs a multiple of %d",
                           t->shape[0], type->name, type->block);
    if (!dpi_mul_u64(n_weights / (uint64_t)type->block, (uint64_t)type->block_bytes, &t->n_bytes))
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT, at, "the size in bytes overflows 2^64");
    return DPI_STATUS_OK;
}

/* One entry; t->name and t->data are left to the caller, t->offset counts from the data. */
static dpi_status read_tensor(cursor *c, uint64_t alignment, dpi_str *name, dpi_gguf_tensor *t) {
    DPI_TRY(read_name(c, "a tensor name", MAX_NAME_BYTES, name));
    uint64_t n_weights = 0, at = 0;
    dpi_status status = read_shape(c, t, &n_weights);
    if (status == DPI_STATUS_OK)
        status = read_tensor_type(c, t, n_weights);
    if (status == DPI_STATUS_OK) {
        at = c->pos;
        status = read_u64(c, "the data offset", &t->offset);
    }
    if (status == DPI_STATUS_OK && t->offset % alignment != 0)
        status = dpi_fail_at(c->err, DPI_STATUS_FORMAT, at,
                             "data offset is %" PRIu64 ", must be a multiple of %" PRIu64,
                             t->offset, alignment);
    if (status == DPI_STATUS_OK)
        return status;
    char context[128];
    snprintf(context, sizeof context, "tensor '%s'",
             dpi_gguf_printable(name->data, name->n_bytes).text);
    return dpi_fail_in(c->err, status, context);
}

/* Where the entry of tensor `index` begins; for messages. */
static uint64_t entry_offset(const dpi_gguf *g, uint64_t index) {
    uint64_t offset = g->directory_start;
    for (uint64_t i = 0; i < index; i++)
        offset += 8 + strlen(g->tensors[i].name) + 4 + 8 * (uint64_t)g->tensors[i].n_dims + 4 + 8;
    return offset;
}

static int compare_names(const void *a, const void *b) {
    const dpi_gguf_tensor *x = *(const dpi_gguf_tensor *const *)a;
    const dpi_gguf_tensor *y = *(const dpi_gguf_tensor *const *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x > y) - (x < y);
}

static int compare_offsets(const void *a, const void *b) {
    const dpi_gguf_tensor *x = *(const dpi_gguf_tensor *const *)a;
    const dpi_gguf_tensor *y = *(const dpi_gguf_tensor *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Makes pointers of offsets; all data must be in the file. */
static dpi_status place_tensors(dpi_gguf *g, const cursor *c) {
    if (g->n_tensors == 0)
        return DPI_STATUS_OK;
    if ((uintptr_t)g->base % MIN_ALIGNMENT != 0)
        return dpi_fail(c->err, DPI_STATUS_ARG,
                        "the buffer's address is %" PRIuPTR " modulo %d, it must be a multiple "
                        "of %d for a file with tensors",
                        (uintptr_t)g->base % MIN_ALIGNMENT, MIN_ALIGNMENT, MIN_ALIGNMENT);
    /* No overflow: pos is a position in memory and alignment <= 2^20. */
    uint64_t data_start = (c->pos + g->alignment - 1) / g->alignment * g->alignment;
    uint64_t data_bytes = data_start <= g->size ? g->size - data_start : 0;
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        dpi_gguf_tensor *t = &g->tensors[i];
        if (t->offset > data_bytes || t->n_bytes > data_bytes - t->offset)
            return dpi_fail_at(c->err, DPI_STATUS_FORMAT, entry_offset(g, i),
                               "tensor '%s': %" PRIu64 " bytes at data offset %" PRIu64
                               " go past the end, the file has %" PRIu64 " bytes of data",
                               dpi_gguf_printable(t->name, strlen(t->name)).text, t->n_bytes,
                               t->offset, data_bytes);
        t->offset += data_start;
        t->file = g->name;
        t->data = g->base + t->offset;
    }
    return DPI_STATUS_OK;
}

const dpi_gguf_tensor *dpi_gguf_sort_names(dpi_gguf *g) {
    for (uint64_t i = 0; i < g->n_tensors; i++)
        g->by_name[i] = &g->tensors[i];
    qsort(g->by_name, g->n_tensors, sizeof g->by_name[0], compare_names);
    for (uint64_t i = 1; i < g->n_tensors; i++)
        if (strcmp(g->by_name[i - 1]->name, g->by_name[i]->name) == 0)
            return g->by_name[i];
    return NULL;
}

/* Leaves by_name sorted by name; on the way it serves to find overlapping data. */
static dpi_status sort_tensors(dpi_gguf *g, const cursor *c) {
    const dpi_gguf_tensor **order = g->by_name;
    for (uint64_t i = 0; i < g->n_tensors; i++)
        order[i] = &g->tensors[i];
    qsort(order, g->n_tensors, sizeof order[0], compare_offsets);
    for (uint64_t i = 1; i < g->n_tensors; i++) {
        const dpi_gguf_tensor *a = order[i - 1], *b = order[i];
        if (b->offset - a->offset < a->n_bytes)
            return dpi_fail_at(c->err, DPI_STATUS_FORMAT, b->offset,
                               "the data of tensors '%s' and '%s' overlap",
                               dpi_gguf_printable(a->name, strlen(a->name)).text,
                               dpi_gguf_printable(b->name, strlen(b->name)).text);
    }
    const dpi_gguf_tensor *twice = dpi_gguf_sort_names(g);
    if (twice)
        return dpi_fail_at(c->err, DPI_STATUS_FORMAT,
                           entry_offset(g, (uint64_t)(twice - g->tensors)),
                           "tensor '%s' occurs twice",
                           dpi_gguf_printable(twice->name, strlen(twice->name)).text);
    return DPI_STATUS_OK;
}

static dpi_status read_tensors(dpi_gguf *g, cursor *c) {
    uint64_t names_bytes = 0;
    dpi_gguf_tensor t = {0};
    dpi_str name;
    g->directory_start = c->pos;
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        DPI_TRY(read_tensor(c, g->alignment, &name, &t));
        names_bytes += name.n_bytes + 1;
    }
    g->tensors = dpi_calloc(g->n_tensors, sizeof g->tensors[0]);
    g->by_name = dpi_calloc(g->n_tensors, sizeof g->by_name[0]);
    g->names = dpi_calloc(names_bytes, 1);
    if (!g->tensors || !g->by_name || !g->names)
        return dpi_no_memory(c->err, "%" PRIu64 " tensors", g->n_tensors);
    char *end = g->names;
    c->pos = g->directory_start;
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        DPI_TRY(read_tensor(c, g->alignment, &name, &t));
        t.name = keep_name(&end, g->names + names_bytes, name);
        if (!t.name)
            return fail_changed(c);
        g->tensors[i] = t;
    }
    DPI_TRY(place_tensors(g, c));
    return sort_tensors(g, c);
}

/* ---- The whole ------------------------------------------------------------------------------ */

dpi_status dpi_gguf_check(dpi_gguf *g, dpi_error *err) {
    cursor c = {.base = g->base, .size = g->size, .err = err};
    DPI_TRY(read_header(g, &c));
    DPI_TRY(read_metadata(g, &c));
    DPI_TRY(read_alignment(g, err));
    return read_tensors(g, &c);
}
