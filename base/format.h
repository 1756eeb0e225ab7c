/* format.h - numbers to text and back, and letters, the same in every locale: that of the calling
 * program is never looked at. What has no number with a point needs no dpi_format. Internal. */
#ifndef DPI_BASE_FORMAT_H
#define DPI_BASE_FORMAT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As snprintf, vsnprintf, strtod and strtof in the locale "C". Any thread; nothing is kept. */
int dpi_format(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int dpi_vformat(char *text, size_t size, const char *format, va_list values)
    __attribute__((format(printf, 3, 0)));
double dpi_strtod(const char *text, char **end);
float dpi_strtof(const char *text, char **end);

/* n bytes as lower-case hexadecimal digits: hex [2 n + 1]. */
void dpi_to_hex(const void *bytes, size_t n, char *hex);
/* Whether a text is n such digits; NULL is not. */
bool dpi_is_hex(const char *text, size_t n);
/* bytes [n] from 2 n such digits; false, and bytes unchanged, where they are something else. */
bool dpi_from_hex(const char *hex, uint8_t *bytes, size_t n);

/* What an errno means, in English. It is there until the next call in this thread. */
const char *dpi_reason(int reason);

/* White space of ASCII. */
static inline bool dpi_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Whether n bytes are the same but for the case of ASCII letters. */
static inline bool dpi_same_letters(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char lower = (char)(a[i] | 0x20);
        const bool is_letter = lower >= 'a' && lower <= 'z';
        if (a[i] != b[i] && !(is_letter && lower == (b[i] | 0x20)))
            return false;
    }
    return true;
}

#endif
