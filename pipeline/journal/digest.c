/* digest.c - see digest.h. */
#include "pipeline/journal/digest.h"

#include "base/format.h"

void dpi_digest_end(struct sha256_ctx *hash, char hex[DPI_DIGEST_HEX + 1]) {
    uint8_t bytes[SHA256_DIGEST_SIZE];
    sha256_digest(hash, sizeof bytes, bytes);
    dpi_to_hex(bytes, sizeof bytes, hex);
}

void dpi_digest(const void *bytes, size_t n, char hex[DPI_DIGEST_HEX + 1]) {
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, n, bytes);
    dpi_digest_end(&hash, hex);
}
