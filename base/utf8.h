/* utf8.h - where a UTF-8 sequence ends, and what one is. Internal. */
#ifndef DPI_UTF8_H
#define DPI_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the UTF-8 sequence (Unicode Standard, table 3-7) that begins a text of n_bytes (>= 1), 0
 * if none does. */
static inline size_t dpi_utf8_bytes(const char *text, size_t n_bytes) {
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (n == 0 || n > n_bytes)
        return 0;
    unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* The UTF-8 sequence of a code point that is no surrogate, and its bytes, 1..4. */
static inline size_t dpi_utf8_put(uint32_t code, char out[4]) {
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(marks[n] | code);
    return n;
}

/* `base`, cut where a sequence ends, then the whole `suffix`: the end of a name says what it is. */
static inline void dpi_name_join(char *name, size_t size, const char *base, const char *suffix) {
    const size_t n_suffix = strlen(suffix), n_base = strlen(base);
    const size_t room = size > n_suffix + 1 ? size - n_suffix - 1 : 0;
    size_t n = 0;
    for (size_t step; n < n_base; n += step) {
        step = dpi_utf8_bytes(base + n, n_base - n);
        step = step > 0 ? step : 1;
        if (n + step > room)
            break;
    }
    memcpy(name, base, n);
    const size_t n_kept = n_suffix < size - n ? n_suffix : size - n - 1;
    memcpy(name + n, suffix, n_kept);
    name[n + n_kept] = '\0';
}

/* Whether the whole text is UTF-8. */
static inline bool dpi_is_utf8(const char *text, size_t n_bytes) {
    size_t step;
    for (size_t i = 0; i < n_bytes; i += step)
        if ((step = dpi_utf8_bytes(text + i, n_bytes - i)) == 0)
            return false;
    return true;
}

#endif
