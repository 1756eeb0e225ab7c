/* private_memory.c - see dpinfer/memory.h. */
#include "dpinfer/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* The size is kept before the block, so that dpi_private_free knows what to wipe. */
enum { PRIVATE_HEADER = 16 };

void *dpi_private_malloc(size_t n_bytes) {
    if (n_bytes > SIZE_MAX - PRIVATE_HEADER)
        return NULL;
    char *block = malloc(PRIVATE_HEADER + n_bytes);
    if (!block)
        return NULL;
    memcpy(block, &n_bytes, sizeof n_bytes);
    return block + PRIVATE_HEADER;
}

static size_t private_size(const void *p) {
    size_t n_bytes;
    memcpy(&n_bytes, (const char *)p - PRIVATE_HEADER, sizeof n_bytes);
    return n_bytes;
}

void *dpi_private_realloc(void *p, size_t n_bytes) {
    void *fresh = dpi_private_malloc(n_bytes);
    if (!fresh || !p)
        return fresh;
    size_t old_bytes = private_size(p);
    memcpy(fresh, p, old_bytes < n_bytes ? old_bytes : n_bytes);
    dpi_private_free(p);
    return fresh;
}

int32_t dpi_private_grow(void *array, size_t *capacity, size_t n, size_t size) {
    return dpi_grow_by(dpi_private_realloc, array, capacity, n, size);
}

void dpi_private_free(void *p) {
    if (p)
        dpi_wipe_free((char *)p - PRIVATE_HEADER, PRIVATE_HEADER + private_size(p));
}

/* Room for what the system says that there is, and a byte to see that there is no more. */
static size_t first_capacity(int fd, size_t most) {
    struct stat st;
    const bool known = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
                       (uint64_t)st.st_size <= most && (uint64_t)st.st_size < SIZE_MAX / 2;
    return known ? (size_t)st.st_size + 2 : 1 << 16;
}

int32_t dpi_private_read(int fd, size_t most, char **data, size_t *n_bytes) {
    size_t capacity = first_capacity(fd, most), n = 0;
    char *text = dpi_private_malloc(capacity);
    errno = ENOMEM;
    while (text && n <= most) {
        if (n + 1 == capacity) {
            char *grown = dpi_private_realloc(text, 2 * capacity);
            errno = ENOMEM;
            if (!grown)
                break;
            text = grown;
            capacity *= 2;
        }
        const ssize_t got = read(fd, text + n, capacity - n - 1);
        if (got == 0) {
            text[n] = '\0';
            *data = text;
            *n_bytes = n;
            return 1;
        }
        if (got > 0)
            n += (size_t)got;
        else if (errno != EINTR)
            break;
    }
    const int reason = n > most ? EFBIG : errno;
    dpi_private_free(text);
    errno = reason;
    return 0;
}
