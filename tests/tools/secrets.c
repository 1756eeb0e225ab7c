/* secrets.c - a library to preload: every block that is given back (free, realloc, munmap) is
 * looked through first for a secret, in text or in token ids, that should have been wiped.
 *   DPI_SECRET      the text
 *   DPI_SECRET_IDS  ids, between blanks: four or more that follow each other
 *   DPI_SECRET_LOG  a file: a line for each block that still holds it, with its size */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_IDS = 64 };

static const char *text, *log_path;
static size_t n_text;
static int32_t ids[MAX_IDS];
static size_t n_ids;

__attribute__((constructor)) static void set_up(void) {
    log_path = getenv("DPI_SECRET_LOG");
    text = getenv("DPI_SECRET");
    n_text = text ? strlen(text) : 0;
    const char *list = getenv("DPI_SECRET_IDS");
    for (char *end; list && n_ids < MAX_IDS; list = end) {
        long id = strtol(list, &end, 10);
        if (end == list)
            break;
        ids[n_ids++] = (int32_t)id;
    }
}

static void report(const char *what, const char *how, size_t n_bytes, const void *caller) {
    char line[256];
    Dl_info from = {0};
    dladdr(caller, &from);
    int n = snprintf(line, sizeof line, "%s in a block of %zu bytes at %s, called from %s+%#zx\n",
                     what, n_bytes, how, from.dli_fname ? from.dli_fname : "?",
                     (size_t)((const char *)caller - (const char *)from.dli_fbase));
    int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        abort();
    close(fd);
}

static void look(const void *block, size_t n_bytes, const char *how, const void *caller) {
    if (!log_path || !block)
        return;
    if (n_text > 0 && memmem(block, n_bytes, text, n_text))
        report("text", how, n_bytes, caller);
    if (n_ids > 0 && memmem(block, n_bytes, ids, n_ids * sizeof *ids))
        report("token ids", how, n_bytes, caller);
}

/* The next function of that name into the pointer at `function`: C has no cast from data to one. */
static void find_next(const char *name, void *function) {
    void *symbol = dlsym(RTLD_NEXT, name);
    if (!symbol)
        abort();
    memcpy(function, &symbol, sizeof symbol);
}

void free(void *block) {
    static void (*next)(void *);
    if (!next)
        find_next("free", &next);
    look(block, malloc_usable_size(block), "free", __builtin_return_address(0));
    next(block);
}

/* Always to another block, so that the old one is given back where it can be looked at. */
void *realloc(void *block, size_t n_bytes) {
    if (!block)
        return malloc(n_bytes);
    size_t n_old = malloc_usable_size(block);
    look(block, n_old, "realloc", __builtin_return_address(0));
    void *fresh = malloc(n_bytes);
    if (!fresh)
        return NULL;
    memcpy(fresh, block, n_old < n_bytes ? n_old : n_bytes);
    static void (*next)(void *);
    if (!next)
        find_next("free", &next);
    next(block);
    return fresh;
}

int munmap(void *address, size_t n_bytes) {
    static int (*next)(void *, size_t);
    if (!next)
        find_next("munmap", &next);
    unsigned char resident;
    /* Of anonymous memory alone, one page at a time: what was never touched, or is a file's, is not
     * read. */
    for (size_t at = 0; log_path && at < n_bytes; at += 4096)
        if (mincore((char *)address + at, 1, &resident) == 0 && resident & 1)
            look((char *)address + at, n_bytes - at < 4096 ? n_bytes - at : 4096, "munmap",
                 __builtin_return_address(0));
    return next(address, n_bytes);
}
