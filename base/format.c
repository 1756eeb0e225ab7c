#include "base/format.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The calling thread in the locale "C", and what it was in. */
typedef struct plain {
    locale_t c, before;
} plain;

/* The C library has the locale "C" ready: this neither allocates nor fails. */
static plain enter(void) {
    plain p = {.c = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    p.before = uselocale(p.c);
    return p;
}

static void leave(plain p) {
    uselocale(p.before);
    if (p.c)
        freelocale(p.c);
}

int dpi_vformat(char *text, size_t size, const char *format, va_list values) {
    const plain p = enter();
    const int n = vsnprintf(text, size, format, values);
    leave(p);
    return n;
}

int dpi_format(char *text, size_t size, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int n = dpi_vformat(text, size, format, values);
    va_end(values);
    return n;
}

const char *dpi_reason(int reason) {
    const plain p = enter();
    const char *text = strerror_l(reason, p.c);
    leave(p);
    return text;
}

double dpi_strtod(const char *text, char **end) {
    const plain p = enter();
    const double value = strtod(text, end);
    leave(p);
    return value;
}

float dpi_strtof(const char *text, char **end) {
    const plain p = enter();
    const float value = strtof(text, end);
    leave(p);
    return value;
}

void dpi_to_hex(const void *bytes, size_t n, char *hex) {
    static const char digits[] = "0123456789abcdef";
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < n; i++) {
        hex[2 * i] = digits[byte[i] >> 4];
        hex[2 * i + 1] = digits[byte[i] & 15];
    }
    hex[2 * n] = '\0';
}

bool dpi_is_hex(const char *text, size_t n) {
    return text && strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

bool dpi_from_hex(const char *hex, uint8_t *bytes, size_t n) {
    if (!dpi_is_hex(hex, 2 * n))
        return false;
    for (size_t i = 0; i < n; i++) {
        const char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return true;
}
