#define _GNU_SOURCE
#include "gguf/gguf_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "kernels/weight_types.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF fields are written in place: a little-endian processor is needed"
#endif

enum {
    ALIGNMENT = 32, /* the format's default, so that no key has to say it */
    MAX_NAME_BYTES = 63,
    MAX_WRITE = 1 << 30, /* Linux writes at most 2^31 - 4096 bytes at once */
};

/* Bytes in memory that grow. */
typedef struct bytes {
    unsigned char *data;
    uint64_t n;
    size_t capacity;
} bytes;

struct dpi_gguf_builder {
    char *path, *temporary;
    int fd;
    dpi_status status; /* of the first failure */
    dpi_error error;
    bytes metadata, directory; /* until the first data */
    uint64_t n_kv, n_tensors;
    uint64_t *sizes;        /* [n_tensors] bytes of data */
    size_t sizes_capacity;
    uint64_t data_bytes;    /* of all tensors, with the padding between them */
    bool has_header;        /* it is in the file */
    uint64_t current, done; /* tensor whose data is being written, bytes of it so far */
};

/* ---- Files ----------------------------------------------------------------------------------- */

static dpi_status fail_io(const char *path, const char *what, dpi_error *err) {
    return dpi_fail(err, dpi_status_of_errno(errno), "%s: %s: %s", path, what, dpi_reason(errno));
}

/* The file that `path` leads to, through symbolic links. NULL: no memory. */
static char *resolve(const char *path) {
    char *real = realpath(path, NULL);
    return real ? real : strdup(path);
}

static dpi_status open_temporary(dpi_gguf_builder *w, dpi_error *err) {
    struct stat st;
    if (stat(w->path, &st) == 0 && !S_ISREG(st.st_mode))
        return dpi_fail(err, DPI_STATUS_IO, "%s: is there and is not a regular file", w->path);
    char *name = NULL;
    w->fd = dpi_file_make_beside(w->path, &name);
    w->temporary = w->fd >= 0 ? name : NULL;
    return w->fd < 0 ? fail_io(w->path, "cannot be created", err) : DPI_STATUS_OK;
}

dpi_status dpi_gguf_builder_create(const char *path, int fd, dpi_gguf_builder **builder,
                                  dpi_error *err) {
    dpi_gguf_builder *w = dpi_calloc(1, sizeof *w);
    if (!w)
        return dpi_no_memory(err, "a builder");
    w->fd = fd;
    w->path = fd < 0 ? resolve(path) : strdup(path);
    dpi_status status = !w->path ? dpi_no_memory(err, "a file name")
                        : fd < 0 ? open_temporary(w, err)
                                 : DPI_STATUS_OK;
    if (status != DPI_STATUS_OK) {
        dpi_gguf_builder_discard(w);
        return status;
    }
    *builder = w;
    return DPI_STATUS_OK;
}

static void free_builder(dpi_gguf_builder *w) {
    free(w->path);
    free(w->temporary);
    free(w->metadata.data);
    free(w->directory.data);
    free(w->sizes);
    free(w);
}

void dpi_gguf_builder_discard(dpi_gguf_builder *w) {
    if (!w)
        return;
    if (w->temporary && w->fd >= 0) {
        close(w->fd);
        unlink(w->temporary);
    }
    free_builder(w);
}

static void write_all(dpi_gguf_builder *w, const void *data, uint64_t n_bytes) {
    const unsigned char *p = data;
    while (n_bytes > 0 && w->status == DPI_STATUS_OK) {
        ssize_t n = write(w->fd, p, n_bytes < MAX_WRITE ? n_bytes : MAX_WRITE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            w->status = fail_io(w->path, "cannot be written", &w->error);
            return;
        }
        p += n;
        n_bytes -= (uint64_t)n;
    }
}

/* ---- Metadata and directory ------------------------------------------------------------------ */

static void put(dpi_gguf_builder *w, bytes *b, const void *data, uint64_t n) {
    if (w->status != DPI_STATUS_OK)
        return;
    uint64_t needed;
    if (!dpi_add_u64(b->n, n, &needed) || needed > PTRDIFF_MAX / 2) {
        w->status = dpi_fail(&w->error, DPI_STATUS_LIMIT, "%s: the metadata is too large", w->path);
        return;
    }
    if (!dpi_grow(&b->data, &b->capacity, needed, 1)) {
        w->status = dpi_fail(&w->error, DPI_STATUS_MEMORY,
                             "%s: no memory for %" PRIu64 " bytes of metadata", w->path, needed);
        return;
    }
    if (n > 0)
        memcpy(b->data + b->n, data, n);
    b->n = needed;
}

static void put_u32(dpi_gguf_builder *w, bytes *b, uint32_t v) { put(w, b, &v, sizeof v); }
static void put_u64(dpi_gguf_builder *w, bytes *b, uint64_t v) { put(w, b, &v, sizeof v); }

static void put_text(dpi_gguf_builder *w, bytes *b, const char *text) {
    uint64_t n = strlen(text);
    put_u64(w, b, n);
    put(w, b, text, n);
}

static void put_key(dpi_gguf_builder *w, const char *key, dpi_gguf_type type) {
    put_text(w, &w->metadata, key);
    put_u32(w, &w->metadata, (uint32_t)type);
    w->n_kv++;
}

void dpi_gguf_put_u32(dpi_gguf_builder *w, const char *key, uint32_t value) {
    put_key(w, key, DPI_GGUF_U32);
    put_u32(w, &w->metadata, value);
}

void dpi_gguf_put_f32(dpi_gguf_builder *w, const char *key, float value) {
    put_key(w, key, DPI_GGUF_F32);
    put(w, &w->metadata, &value, sizeof value);
}

void dpi_gguf_put_bool(dpi_gguf_builder *w, const char *key, bool value) {
    put_key(w, key, DPI_GGUF_BOOL);
    put(w, &w->metadata, &(unsigned char){value}, 1);
}

void dpi_gguf_put_string(dpi_gguf_builder *w, const char *key, const char *value) {
    put_key(w, key, DPI_GGUF_STRING);
    put_text(w, &w->metadata, value);
}

/* A key of the shape's architecture. */
typedef struct arch_key {
    char text[80];
} arch_key;

static arch_key key_of(const dpi_model_shape *s, const char *key) {
    arch_key full;
    snprintf(full.text, sizeof full.text, "%s.%s", s->architecture ? s->architecture : "llama",
             key);
    return full;
}

void dpi_gguf_put_shape(dpi_gguf_builder *w, const dpi_model_shape *s, float rms_eps) {
    enum { TAPS = 4 }; /* of all published models */
    const int32_t head_dim = s->head_dim ? s->head_dim : s->n_embd / s->n_head;
    const struct {
        const char *key;
        int32_t value; /* 0: no key */
    } counts[] = {
        {"block_count", s->n_layer},
        {"context_length", s->n_ctx_train},
        {"embedding_length", s->n_embd},
        {"feed_forward_length", s->n_ff},
        {"attention.head_count", s->n_head},
        {"attention.head_count_kv", s->n_kv_head},
        {"attention.key_length", s->head_dim},
        {"attention.value_length", s->head_dim},
        {"attention.sliding_window", s->window},
        {"rope.dimension_count", s->n_rot ? s->n_rot : head_dim},
        {"vocab_size", s->n_vocab},
        {"ssm.conv_kernel", s->delta_dim ? TAPS : 0},
        {"ssm.state_size", s->delta_dim},
        {"ssm.group_count", s->n_delta_k_head},
        {"ssm.time_step_rank", s->n_delta_v_head},
        {"ssm.inner_size", s->n_delta_v_head * s->delta_dim},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value)
            dpi_gguf_put_u32(w, key_of(s, counts[i].key).text, (uint32_t)counts[i].value);
    dpi_gguf_put_f32(w, key_of(s, "rope.freq_base").text, s->rope_freq_base);
    dpi_gguf_put_f32(w, key_of(s, "attention.layer_norm_rms_epsilon").text, rms_eps);
    /* llama.cpp demands it of such a model: one section of all pairs, as for text. */
    const int32_t sections[4] = {(s->n_rot ? s->n_rot : head_dim) / 2};
    if (s->delta_dim)
        dpi_gguf_put_array(w, key_of(s, "rope.dimension_sections").text, DPI_GGUF_I32, 4, sections,
                           sizeof sections);
}

void dpi_gguf_put_array(dpi_gguf_builder *w, const char *key, dpi_gguf_type item_type,
                        uint64_t n_items, const void *items, uint64_t n_bytes) {
    put_key(w, key, DPI_GGUF_ARRAY);
    put_u32(w, &w->metadata, (uint32_t)item_type);
    put_u64(w, &w->metadata, n_items);
    put(w, &w->metadata, items, n_bytes);
}

void dpi_gguf_put_kv(dpi_gguf_builder *w, const dpi_gguf_kv *kv) {
    if (kv->type == DPI_GGUF_ARRAY) {
        dpi_gguf_put_array(w, kv->key, kv->item_type, kv->n_items, kv->data, kv->n_bytes);
        return;
    }
    put_key(w, kv->key, kv->type);
    put(w, &w->metadata, kv->data, kv->n_bytes);
}

static uint64_t padding(uint64_t n) { return -n & (ALIGNMENT - 1); }

void dpi_gguf_put_tensor(dpi_gguf_builder *w, const char *name, uint32_t type, int32_t n_dims,
                         const int64_t *shape) {
    const dpi_type *t = dpi_type_find(type);
    uint64_t n = 1, n_bytes = 0, end = 0;
    bool fits = t && strlen(name) <= MAX_NAME_BYTES && shape[0] % t->block == 0;
    for (int32_t i = 0; i < n_dims; i++)
        fits = fits && dpi_mul_u64(n, (uint64_t)shape[i], &n);
    fits = fits && n <= INT64_MAX && dpi_mul_u64(n / (uint64_t)t->block, (uint64_t)t->block_bytes,
                                                 &n_bytes);
    fits = fits && dpi_add_u64(w->data_bytes, n_bytes, &end) && end <= INT64_MAX;
    if (w->status == DPI_STATUS_OK && !fits)
        w->status = dpi_fail(&w->error, DPI_STATUS_LIMIT, "%s: tensor %s does not fit the format",
                             w->path, name);
    if (w->status == DPI_STATUS_OK &&
        !dpi_grow(&w->sizes, &w->sizes_capacity, w->n_tensors + 1, sizeof *w->sizes))
        w->status = dpi_no_memory(&w->error, "a list of tensors");
    if (w->status != DPI_STATUS_OK)
        return;
    put_text(w, &w->directory, name);
    put_u32(w, &w->directory, (uint32_t)n_dims);
    for (int32_t i = 0; i < n_dims; i++)
        put_u64(w, &w->directory, (uint64_t)shape[i]);
    put_u32(w, &w->directory, type);
    put_u64(w, &w->directory, w->data_bytes);
    w->sizes[w->n_tensors++] = n_bytes;
    w->data_bytes = end + padding(end);
}

/* ---- Data ------------------------------------------------------------------------------------ */

static void write_header(dpi_gguf_builder *w) {
    static const unsigned char zeros[ALIGNMENT];
    uint32_t version = 3;
    write_all(w, "GGUF", 4);
    write_all(w, &version, sizeof version);
    write_all(w, &w->n_tensors, sizeof w->n_tensors);
    write_all(w, &w->n_kv, sizeof w->n_kv);
    write_all(w, w->metadata.data, w->metadata.n);
    write_all(w, w->directory.data, w->directory.n);
    if (w->n_tensors > 0)
        write_all(w, zeros, padding(24 + w->metadata.n + w->directory.n));
    w->has_header = true;
}

void dpi_gguf_put_data(dpi_gguf_builder *w, const void *data, uint64_t n_bytes) {
    static const unsigned char zeros[ALIGNMENT];
    const unsigned char *p = data;
    if (w->status == DPI_STATUS_OK && !w->has_header)
        write_header(w);
    while (n_bytes > 0 && w->status == DPI_STATUS_OK) {
        if (w->current == w->n_tensors) {
            w->status = dpi_fail(&w->error, DPI_STATUS_STATE,
                                 "%s: more data than the tensors take", w->path);
            return;
        }
        uint64_t size = w->sizes[w->current], left = size - w->done;
        uint64_t n = n_bytes < left ? n_bytes : left;
        write_all(w, p, n);
        p += n;
        n_bytes -= n;
        w->done += n;
        if (w->done == size) {
            write_all(w, zeros, padding(size));
            w->current++;
            w->done = 0;
        }
    }
}

bool dpi_gguf_builder_failed(const dpi_gguf_builder *w) { return w->status != DPI_STATUS_OK; }

/* Not every file system can be synced. */
static bool sync_file(int fd) {
    return fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
}

static void put_in_place(dpi_gguf_builder *w) {
    if (w->status == DPI_STATUS_OK && !sync_file(w->fd))
        w->status = fail_io(w->path, "cannot be written", &w->error);
    if (close(w->fd) != 0 && w->status == DPI_STATUS_OK)
        w->status = fail_io(w->path, "cannot be written", &w->error);
    if (w->status == DPI_STATUS_OK && rename(w->temporary, w->path) != 0)
        w->status = fail_io(w->path, "cannot be put in place", &w->error);
    if (w->status != DPI_STATUS_OK)
        unlink(w->temporary);
}

dpi_status dpi_gguf_builder_finish(dpi_gguf_builder *w, dpi_error *err) {
    if (w->status == DPI_STATUS_OK && !w->has_header)
        write_header(w);
    if (w->status == DPI_STATUS_OK && w->current != w->n_tensors)
        w->status = dpi_fail(&w->error, DPI_STATUS_STATE,
                             "%s: data of %" PRIu64 " of %" PRIu64 " tensors was given", w->path,
                             w->current, w->n_tensors);
    if (w->temporary)
        put_in_place(w);
    dpi_status status = w->status;
    if (status != DPI_STATUS_OK && err)
        *err = w->error;
    free_builder(w);
    return status;
}
