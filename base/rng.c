#include "base/rng.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/system.h"

int32_t dpi_random_read(dpi_getrandom_fn source, void *buffer, size_t n_bytes) {
    unsigned char *p = buffer;
    while (n_bytes > 0) {
        ssize_t n = source(p, n_bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || (size_t)n > n_bytes) {
            if (n >= 0)
                errno = EIO;
            return -1;
        }
        p += n;
        n_bytes -= (size_t)n;
    }
    return 0;
}

dpi_status dpi_random_fill(dpi_random_fn random, void *user, void *buffer, size_t n_bytes,
                           dpi_error *err) {
    if (random) {
        if (random(user, buffer, n_bytes) == 0)
            return DPI_STATUS_OK;
        dpi_wipe(buffer, n_bytes);
        return dpi_fail(err, DPI_STATUS_ENTROPY,
                        "the caller's random source failed to give %zu bytes", n_bytes);
    }
    if (dpi_random_read(dpi_system_random, buffer, n_bytes) == 0)
        return DPI_STATUS_OK;
    int code = errno;
    dpi_wipe(buffer, n_bytes);
    return dpi_fail(err, DPI_STATUS_ENTROPY, "getrandom failed to give %zu bytes (errno %d)",
                    n_bytes, code);
}

/* SplitMix64 (Steele, Lea, Flood 2014): with the seed the run can be replayed. */
int32_t dpi_random_insecure(void *state, void *buffer, size_t n_bytes) {
    uint64_t *s = state;
    unsigned char *p = buffer;
    if (!s)
        return -1;
    while (n_bytes > 0) {
        uint64_t z = (*s += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        size_t n = n_bytes < sizeof z ? n_bytes : sizeof z;
        memcpy(p, &z, n);
        p += n;
        n_bytes -= n;
    }
    return 0;
}
