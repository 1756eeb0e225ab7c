/* page.c - see page.h. */
#include "serve/page.h"

#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

static const unsigned char page[] = {
#include "page.inc" /* made by cmake/embed.cmake */
    0};

const char *page_text(void) { return (const char *)page; }

enum { HASH_BASE64 = BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) };

/* The SHA-256 of what is between two marks. */
static bool hash_between(const char *first, const char *last, char text[HASH_BASE64 + 1]) {
    const char *begin = strstr(page_text(), first);
    const char *end = begin ? strstr(begin, last) : NULL;
    struct sha256_ctx sha;
    uint8_t hash[SHA256_DIGEST_SIZE];
    if (!end)
        return false;
    begin += strlen(first);
    sha256_init(&sha);
    sha256_update(&sha, (size_t)(end - begin), (const uint8_t *)begin);
    sha256_digest(&sha, sizeof hash, hash);
    base64_encode_raw(text, sizeof hash, hash);
    text[HASH_BASE64] = '\0';
    return true;
}

bool page_policy(char policy[PAGE_POLICY_MAX]) {
    char style[HASH_BASE64 + 1], script[HASH_BASE64 + 1];
    if (!hash_between("<style>", "</style>", style) ||
        !hash_between("<script>", "</script>", script))
        return false;
    const int n = snprintf(policy, PAGE_POLICY_MAX,
                           "default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; "
                           "connect-src 'self'; img-src data:; base-uri 'none'; form-action "
                           "'none'; frame-ancestors 'none'", style, script);
    return n > 0 && n < PAGE_POLICY_MAX;
}
