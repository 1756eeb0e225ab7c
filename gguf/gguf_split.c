/* gguf_split.c - the parts of a split model: NAME-00001-of-0000N.gguf and the files beside it.
 *
 * The first part has the metadata; every part has its number (split.no, from 0), their count
 * (split.count) and some of the tensors, split.tensors.count in all. The other names are made from
 * the path that the caller gave, never from anything in a file. */
#include "gguf/gguf_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"

enum { SUFFIX_BYTES = sizeof "-00001-of-00001.gguf" - 1 };

static uint64_t offset_of(const dpi_gguf *g, const char *key) {
    const dpi_gguf_kv *kv = dpi_gguf_find(g, key);
    return kv ? kv->offset : DPI_NO_OFFSET;
}

/* A number that must be there and be `wanted`. */
static dpi_status check_number(const dpi_gguf *g, const char *key, int64_t wanted, dpi_error *err) {
    int64_t value = -1;
    bool found = false;
    DPI_TRY(dpi_gguf_get_int(g, key, 0, INT64_MAX, &value, &found, err));
    if (!found)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: key %s is missing, must be %" PRId64, g->name,
                        key, wanted);
    if (value != wanted)
        return dpi_fail_at(err, DPI_STATUS_FORMAT, offset_of(g, key),
                           "%s: %s is %" PRId64 ", must be %" PRId64, g->name, key, value, wanted);
    return DPI_STATUS_OK;
}

/* The path of part `index` of `count`; the caller frees it. NULL: no memory. */
static char *part_path(const char *first, int64_t index, int64_t count) {
    size_t n = strlen(first);
    char *path = dpi_calloc(n + 1, 1);
    if (path) {
        memcpy(path, first, n - SUFFIX_BYTES);
        snprintf(path + n - SUFFIX_BYTES, SUFFIX_BYTES + 1, "-%05" PRIu32 "-of-%05" PRIu32 ".gguf",
                 (uint32_t)(index + 1) % 100000, (uint32_t)count % 100000);
    }
    return path;
}

/* The first part is called what the first of `count` parts is called. */
static dpi_status check_name(const dpi_gguf *g, const char *path, int64_t count, dpi_error *err) {
    char suffix[SUFFIX_BYTES + 1];
    size_t n = strlen(path);
    snprintf(suffix, sizeof suffix, "-00001-of-%05" PRIu32 ".gguf", (uint32_t)count % 100000);
    if (n > SUFFIX_BYTES && strcmp(path + n - SUFFIX_BYTES, suffix) == 0)
        return DPI_STATUS_OK;
    return dpi_fail_at(err, DPI_STATUS_FORMAT, offset_of(g, "split.count"),
                       "%s: split.count is %" PRId64 ", so the name must end in %s", g->name, count,
                       suffix);
}

/* Opens part `index` into g->parts and checks that it is one. */
static dpi_status open_part(dpi_gguf *g, const char *first, int64_t index, int64_t count,
                            bool use_mmap, dpi_error *err) {
    dpi_gguf *part;
    char *path = part_path(first, index, count);
    if (!path)
        return dpi_fail(err, DPI_STATUS_MEMORY, "%s: no memory for a path", g->name);
    dpi_status status = dpi_gguf_open_one(path, use_mmap, &part, err);
    free(path);
    if (status != DPI_STATUS_OK)
        return status;
    g->parts[g->n_parts++] = part;
    DPI_TRY(check_number(part, "split.no", index, err));
    return check_number(part, "split.count", count, err);
}

/* The tensors of all parts in one list. */
static dpi_status merge(dpi_gguf *g, dpi_error *err) {
    uint64_t n = g->n_tensors;
    for (uint64_t i = 0; i < g->n_parts; i++)
        n += g->parts[i]->n_tensors; /* each is bounded by the size of its file */
    if (dpi_gguf_find(g, "split.tensors.count"))
        DPI_TRY(check_number(g, "split.tensors.count", (int64_t)n, err));
    dpi_gguf_tensor *all = dpi_calloc(n, sizeof *all);
    const dpi_gguf_tensor **by_name = dpi_calloc(n, sizeof *by_name);
    if (!all || !by_name) {
        free(all), free(by_name);
        return dpi_fail(err, DPI_STATUS_MEMORY, "%s: no memory for %" PRIu64 " tensors", g->name,
                        n);
    }
    dpi_gguf_tensor *end = all;
    memcpy(end, g->tensors, g->n_tensors * sizeof *all);
    end += g->n_tensors;
    for (uint64_t i = 0; i < g->n_parts; i++) {
        memcpy(end, g->parts[i]->tensors, g->parts[i]->n_tensors * sizeof *all);
        end += g->parts[i]->n_tensors;
    }
    free(g->tensors);
    free(g->by_name);
    g->tensors = all;
    g->by_name = by_name;
    g->n_tensors = n;
    const dpi_gguf_tensor *twice = dpi_gguf_sort_names(g);
    if (twice)
        return dpi_fail_at(err, DPI_STATUS_FORMAT, twice->offset,
                           "%s: tensor '%s' is in another part too", twice->file,
                           dpi_gguf_printable(twice->name, strlen(twice->name)).text);
    return DPI_STATUS_OK;
}

/* Opens the other parts if *g is the first part of a split model; refuses any other part. `path` is
 * that of *g; NULL: it is a buffer, which has no files beside it. */
static dpi_status open_parts(dpi_gguf *g, const char *path, bool use_mmap, dpi_error *err) {
    int64_t count = 1, index = 0;
    DPI_TRY(dpi_gguf_get_int(g, "split.count", 0, UINT16_MAX, &count, NULL, err));
    DPI_TRY(dpi_gguf_get_int(g, "split.no", 0, count > 1 ? count - 1 : 0, &index, NULL, err));
    if (count <= 1)
        return DPI_STATUS_OK;
    uint64_t at = offset_of(g, "split.count");
    if (!path)
        return dpi_fail_at(err, DPI_STATUS_UNSUPPORTED, at,
                           "%s: split.count is %" PRId64 ", a part of a split model: split files "
                           "are opened by the path of the first part, not from memory",
                           g->name, count);
    if (index != 0)
        return dpi_fail_at(err, DPI_STATUS_UNSUPPORTED, offset_of(g, "split.no"),
                           "%s: this is part %" PRId64 " of %" PRId64 ": open the first part, "
                           "whose name ends in -00001-of-%05" PRId64 ".gguf",
                           g->name, index + 1, count, count);
    DPI_TRY(check_number(g, "split.no", 0, err));
    DPI_TRY(check_name(g, path, count, err));
    g->parts = dpi_calloc((size_t)count - 1, sizeof *g->parts);
    if (!g->parts)
        return dpi_fail(err, DPI_STATUS_MEMORY, "%s: no memory for %" PRId64 " parts", g->name,
                        count);
    for (int64_t i = 1; i < count; i++)
        DPI_TRY(open_part(g, path, i, count, use_mmap, err));
    return merge(g, err);
}

/* Brings in the other parts, or closes the file. */
static dpi_status join(dpi_gguf *g, const char *path, bool use_mmap, dpi_gguf **gguf,
                       dpi_error *err) {
    dpi_status status = open_parts(g, path, use_mmap, err);
    if (status == DPI_STATUS_OK)
        *gguf = g;
    else
        dpi_gguf_close(g);
    return status;
}

dpi_status dpi_gguf_open(const char *path, bool use_mmap, dpi_gguf **gguf, dpi_error *err) {
    dpi_gguf *g;
    if (!path || !gguf)
        return dpi_fail(err, DPI_STATUS_ARG, "the path or the place for the result is NULL");
    DPI_TRY(dpi_gguf_open_one(path, use_mmap, &g, err));
    return join(g, path, use_mmap, gguf, err);
}

dpi_status dpi_gguf_open_buffer(const void *data, size_t n_bytes, dpi_gguf **gguf, dpi_error *err) {
    dpi_gguf *g;
    DPI_TRY(dpi_gguf_buffer_one(data, n_bytes, &g, err));
    return join(g, NULL, false, gguf, err);
}
