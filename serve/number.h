/* number.h - numbers of a command line or a file, as they stand in text. */
#ifndef DPI_SERVE_NUMBER_H
#define DPI_SERVE_NUMBER_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The decimal number that a text begins with, of digits, sign, point and exponent: no blanks, hex,
 * inf or nan, which strtod takes. What follows it; NULL: there is none. */
static inline const char *number_read(const char *text, double *number) {
    char *end;
    const size_t n = strspn(text, "0123456789+-.eE");
    *number = strtod(text, &end);
    return n > 0 && end == text + n && isfinite(*number) ? end : NULL;
}

#endif
