/* read_file.c - see read_file.h. */
#include "pipeline/release/read_file.h"

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dpinfer/memory.h"

/* Room for what the system says that there is, and a byte to see that there is no more. */
static size_t first_capacity(int fd) {
    struct stat st;
    bool known = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
                 (uint64_t)st.st_size < SIZE_MAX / 2;
    return known ? (size_t)st.st_size + 2 : 1 << 16;
}

bool dpi_read_file(int fd, char **data, size_t *n_bytes) {
    size_t capacity = first_capacity(fd), n = 0;
    char *text = dpi_private_malloc(capacity);
    errno = ENOMEM;
    while (text) {
        if (n + 1 == capacity) {
            char *grown = dpi_private_realloc(text, 2 * capacity);
            errno = ENOMEM;
            if (!grown)
                break;
            text = grown;
            capacity *= 2;
        }
        ssize_t got = read(fd, text + n, capacity - n - 1);
        if (got == 0) {
            text[n] = '\0';
            *data = text;
            *n_bytes = n;
            return true;
        }
        if (got > 0)
            n += (size_t)got;
        else if (errno != EINTR)
            break;
    }
    int reason = errno;
    dpi_private_free(text);
    errno = reason;
    return false;
}
