/* gguf.c - opens and closes a GGUF file: mapped, read into memory, or the caller's buffer. */
#define _DEFAULT_SOURCE
#include "gguf/gguf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"

enum {
    IMAGE_ALIGNMENT = 64,
    MAX_READ = 1 << 30, /* Linux reads at most 2^31 - 4096 bytes at once */
};

static dpi_status map_image(dpi_gguf *g, int fd, dpi_error *err) {
    void *p = mmap(NULL, g->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return dpi_fail(err, dpi_status_of_errno(errno),
                        "cannot map %" PRIu64 " bytes: %s", g->size, dpi_reason(errno));
    g->base = p;
    g->owner = IMAGE_MAPPED;
    return DPI_STATUS_OK;
}

static dpi_status read_image(dpi_gguf *g, int fd, dpi_error *err) {
    /* Not dpi_calloc: it would write gigabytes of zeros that are overwritten at once. */
    uint64_t padded = (g->size + IMAGE_ALIGNMENT - 1) / IMAGE_ALIGNMENT * IMAGE_ALIGNMENT;
    unsigned char *p = aligned_alloc(IMAGE_ALIGNMENT, padded);
    if (!p)
        return dpi_no_memory(err, "a file of %" PRIu64 " bytes", g->size);
    g->base = p;
    g->owner = IMAGE_ALLOCATED;
    for (uint64_t done = 0; done < g->size;) {
        uint64_t wanted = g->size - done < MAX_READ ? g->size - done : MAX_READ;
        ssize_t n = read(fd, p + done, wanted);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dpi_fail_at(err, dpi_status_of_errno(errno), done, "cannot be read: %s",
                               dpi_reason(errno));
        if (n == 0)
            return dpi_fail_at(err, DPI_STATUS_IO, done,
                               "the file shrank from %" PRIu64 " to %" PRIu64
                               " bytes while it was read",
                               g->size, done);
        done += (uint64_t)n;
    }
    return DPI_STATUS_OK;
}

static dpi_status refuse_folder(int fd, dpi_error *err) {
    static const char *const of_model[] = {"config.json", "model.safetensors",
                                           "model.safetensors.index.json", "adapter_config.json"};
    bool is_model = false;
    for (size_t i = 0; i < sizeof of_model / sizeof *of_model; i++)
        is_model |= faccessat(fd, of_model[i], F_OK, 0) == 0;
    return is_model ? dpi_fail(err, DPI_STATUS_IO, "is a model's folder, " DPI_GGUF_CONVERT)
                    : dpi_fail(err, DPI_STATUS_IO, "is a directory, must be a GGUF file");
}

static dpi_status load_image(dpi_gguf *g, const char *path, bool use_mmap, dpi_error *err) {
    /* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return dpi_fail(err, dpi_status_of_errno(errno), "cannot be opened: %s", dpi_reason(errno));
    struct stat st;
    dpi_status status;
    if (fstat(fd, &st) != 0)
        status = dpi_fail(err, dpi_status_of_errno(errno), "cannot be examined: %s",
                          dpi_reason(errno));
    else if (S_ISDIR(st.st_mode))
        status = refuse_folder(fd, err);
    else if (!S_ISREG(st.st_mode))
        status = dpi_fail(err, DPI_STATUS_IO, "is not a regular file");
    else if (st.st_size <= 0)
        status = dpi_fail(err, DPI_STATUS_IO, "the file is empty");
    else {
        g->size = (uint64_t)st.st_size;
        status = use_mmap ? map_image(g, fd, err) : read_image(g, fd, err);
    }
    close(fd);
    return status;
}

static dpi_gguf *create(const char *name) {
    dpi_gguf *g = dpi_calloc(1, sizeof *g);
    char *copy = dpi_calloc(strlen(name) + 1, 1);
    if (!g || !copy) {
        free(copy);
        free(g);
        return NULL;
    }
    g->name = strcpy(copy, name);
    return g;
}

/* Hands the file over, or closes it and puts its name before the error's message. */
static dpi_status finish(dpi_status status, dpi_gguf *g, dpi_gguf **gguf, dpi_error *err) {
    if (status == DPI_STATUS_OK)
        status = dpi_gguf_check(g, err);
    if (status == DPI_STATUS_OK) {
        *gguf = g;
        return status;
    }
    dpi_fail_in(err, status, g->name);
    dpi_gguf_close(g);
    return status;
}

dpi_status dpi_gguf_open_one(const char *path, bool use_mmap, dpi_gguf **gguf, dpi_error *err) {
    const char *slash = strrchr(path, '/');
    const char *name = slash && slash[1] ? slash + 1 : path;
    dpi_gguf *g = create(name);
    if (!g)
        return dpi_fail(err, DPI_STATUS_MEMORY, "%s: no memory to open the file", name);
    return finish(load_image(g, path, use_mmap, err), g, gguf, err);
}

dpi_status dpi_gguf_buffer_one(const void *data, size_t n_bytes, dpi_gguf **gguf, dpi_error *err) {
    if (!data || !gguf)
        return dpi_fail(err, DPI_STATUS_ARG, "the buffer or the place for the result is NULL");
    if (n_bytes > PTRDIFF_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "a buffer of %zu bytes cannot exist", n_bytes);
    dpi_gguf *g = create("buffer");
    if (!g)
        return dpi_fail(err, DPI_STATUS_MEMORY, "buffer: no memory to open it");
    g->base = data;
    g->size = n_bytes;
    g->owner = IMAGE_BORROWED;
    return finish(DPI_STATUS_OK, g, gguf, err);
}

bool dpi_gguf_is_mapped(const dpi_gguf *gguf) { return gguf->owner == IMAGE_MAPPED; }
bool dpi_gguf_keeps(const dpi_gguf *gguf) { return gguf->owner != IMAGE_ALLOCATED; }

void dpi_gguf_release(const dpi_gguf *gguf, const void *data, uint64_t n_bytes) {
    if (gguf->owner == IMAGE_BORROWED)
        return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)data + n_bytes) / page * page;
    if (begin < end) /* whole pages only: the others hold something else too */
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void dpi_gguf_close(dpi_gguf *gguf) {
    if (!gguf)
        return;
    if (gguf->owner == IMAGE_MAPPED)
        munmap((void *)(uintptr_t)gguf->base, gguf->size);
    else if (gguf->owner == IMAGE_ALLOCATED)
        free((void *)(uintptr_t)gguf->base);
    for (uint64_t i = 0; i < gguf->n_parts; i++)
        dpi_gguf_close(gguf->parts[i]);
    free(gguf->parts);
    free(gguf->kvs);
    free(gguf->kv_by_key);
    free(gguf->keys);
    free(gguf->tensors);
    free(gguf->by_name);
    free(gguf->names);
    free(gguf->name);
    free(gguf);
}
