/* keyed.c - random bits that several processes share, see keyed.h.
 *
 * HMAC-SHA-256 of a label and of the number of the block, under a key that is drawn for one
 * release. To whoever does not have the key they are as good as drawn (dp/PRIVACY.md section
 * 18). */
#include <nettle/hmac.h>
#include <string.h>

#include "base/mem.h"
#include "pipeline/release/keyed.h"

static const char label[] = "dpinfer: batches of a release";

static void make_block(const uint8_t *key, uint64_t n, uint8_t block[SHA256_DIGEST_SIZE]) {
    struct hmac_sha256_ctx keyed;
    uint8_t number[8];
    for (int i = 0; i < 8; i++)
        number[i] = (uint8_t)(n >> (8 * i));
    hmac_sha256_set_key(&keyed, DPI_RELEASE_KEY_BYTES, key);
    hmac_sha256_update(&keyed, sizeof label, (const uint8_t *)label);
    hmac_sha256_update(&keyed, sizeof number, number);
    hmac_sha256_digest(&keyed, SHA256_DIGEST_SIZE, block);
    dpi_wipe(&keyed, sizeof keyed);
}

/* Each call begins with a block of its own. */
int32_t dpi_keyed_random(void *user, void *bytes, size_t n_bytes) {
    dpi_keyed_bits *bits = user;
    uint8_t block[SHA256_DIGEST_SIZE], *to = bytes;
    while (n_bytes > 0) {
        const size_t n = n_bytes < sizeof block ? n_bytes : sizeof block;
        make_block(bits->key, bits->n_blocks++, block);
        memcpy(to, block, n);
        to += n;
        n_bytes -= n;
    }
    dpi_wipe(block, sizeof block);
    return 0;
}
