/* terminal.c - see terminal.h. */
#include "tools/terminal/terminal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes of the UTF-8 sequence that begins the text, and its code point; 0: none does. */
static size_t decode(const unsigned char *s, size_t n_bytes, uint32_t *code) {
    const size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3
                                                   : s[0] < 0xf5 ? 4 : 0;
    if (n == 0 || n > n_bytes)
        return 0;
    *code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3fu);
    }
    const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff) ? 0 : n;
}

static bool is_control(uint32_t code, bool keep_lines) {
    if (keep_lines && (code == '\n' || code == '\t'))
        return false;
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

char *terminal_text(const char *text, size_t n_bytes, bool keep_lines, size_t *n_escaped) {
    const unsigned char *s = (const unsigned char *)text;
    char *out = malloc(6 * n_bytes + 1); /* the longest form is \u202e */
    size_t n = 0;
    for (size_t i = 0; out && i < n_bytes;) {
        uint32_t code = s[i];
        size_t step = decode(s + i, n_bytes - i, &code);
        if (step > 0 && !is_control(code, keep_lines)) {
            for (size_t k = 0; k < step; k++)
                out[n++] = text[i + k];
        } else {
            code = step > 0 ? code : s[i];
            n += (size_t)snprintf(out + n, 7, code < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)code);
        }
        i += step > 0 ? step : 1;
    }
    if (out)
        out[n] = '\0';
    *n_escaped = n;
    return out;
}
