/* json.c - see dpinfer/json.h. */
#include "dpinfer/json.h"

#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "dpinfer/memory.h"

/* Places in a text are pointers up to `end`, at which nothing stands. A step is from the first byte
 * of something to the byte after it; NULL: it is not there, or malformed. */

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_of_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

static const char *skip_space(const char *p, const char *end) {
    while (p < end && is_space(*p))
        p++;
    return p;
}

static const char *skip_digits(const char *p, const char *end) {
    while (p < end && is_digit(*p))
        p++;
    return p;
}

static const char *skip_string(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\' && p + 1 < end)
            p++;
    return p < end ? p + 1 : NULL;
}

/* To the bracket that closes the first one, by their number alone. */
static const char *skip_brackets(const char *p, const char *end) {
    size_t depth = 0;
    while (p && p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        depth += *p == '{' || *p == '[';
        depth -= *p == '}' || *p == ']';
        p++;
        if (depth == 0)
            return p;
    }
    return NULL;
}

static const char *skip_word(const char *p, const char *end) {
    const char *begin = p;
    while (p < end && is_of_word(*p))
        p++;
    return p > begin ? p : NULL;
}

static const char *skip_value(const char *p, const char *end) {
    if (p == end)
        return NULL;
    return *p == '"'                ? skip_string(p, end)
           : *p == '{' || *p == '[' ? skip_brackets(p, end)
                                    : skip_word(p, end);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* (-)ABC.DEF e X: digits [n_digits], point before the last n_behind of them. */
typedef struct number {
    bool is_negative;
    const char *digits, *behind;
    size_t n_before, n_behind;
    long exponent; /* within a billion */
} number;

static const char *read_exponent(const char *p, const char *end, long *exponent) {
    enum { MOST = 1000000000 };
    const bool is_negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    const char *stop = skip_digits(p, end);
    if (stop == p)
        return NULL;
    for (*exponent = 0; p < stop; p++)
        *exponent = *exponent < MOST ? 10 * *exponent + (*p - '0') : MOST;
    *exponent = *exponent > MOST ? MOST : *exponent;
    if (is_negative)
        *exponent = -*exponent;
    return stop;
}

static bool read_number(const char *p, size_t n_bytes, number *x) {
    const char *end = p + n_bytes;
    *x = (number){.is_negative = n_bytes > 0 && *p == '-'};
    p += x->is_negative;
    x->digits = p;
    p = skip_digits(p, end);
    x->n_before = (size_t)(p - x->digits);
    if (x->n_before == 0 || (x->n_before > 1 && x->digits[0] == '0'))
        return false;
    x->behind = p;
    if (p < end && *p == '.') {
        x->behind = ++p;
        p = skip_digits(p, end);
        x->n_behind = (size_t)(p - x->behind);
        if (x->n_behind == 0)
            return false;
    }
    if (p < end && (*p == 'e' || *p == 'E'))
        p = read_exponent(p + 1, end, &x->exponent);
    return p == end;
}

static char digit_at(const number *x, size_t i) {
    return i < x->n_before ? x->digits[i] : x->behind[i - x->n_before];
}

dpi_status dpi_json_digits(const char *text, size_t n_bytes, char **digits, dpi_error *err) {
    number x;
    *digits = NULL;
    if (!read_number(text, n_bytes, &x))
        return DPI_STATUS_OK;
    const size_t n = x.n_before + x.n_behind;
    size_t first = 0, last = n; /* of the digits that are no zeros at an end */
    while (first < n && digit_at(&x, first) == '0')
        first++;
    while (last > first && digit_at(&x, last - 1) == '0')
        last--;
    /* Where the units are: n_before and the exponent. No text has a billion zeros. */
    const bool is_zero = first == n;
    const long long units = (long long)x.n_before + x.exponent;
    const size_t n_all = is_zero || units < 0 ? 0 : (size_t)units;
    if (!is_zero && (n_all < last || n_all > n + DPI_JSON_ZEROS_MAX))
        return DPI_STATUS_OK;
    char *to = *digits = dpi_private_malloc((is_zero ? 1 : n_all - first) + 2);
    if (!to)
        return dpi_no_memory(err, "a number");
    if (x.is_negative && !is_zero)
        *to++ = '-';
    if (is_zero)
        *to++ = '0';
    for (size_t i = first; i < n_all; i++)
        *to++ = i < n ? digit_at(&x, i) : '0';
    *to = '\0';
    return DPI_STATUS_OK;
}

/* ---- Strings --------------------------------------------------------------------------------- */

/* The four digits of \uXXXX at p; -1: there are not four. */
static int32_t read_code(const char *p, const char *end) {
    int32_t code = 0;
    for (int i = 0; i < 4; i++, p++) {
        if (p >= end)
            return -1;
        const int32_t digit = is_digit(*p)              ? *p - '0'
                              : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
                              : *p >= 'A' && *p <= 'F' ? *p - 'A' + 10
                                                       : -1;
        if (digit < 0)
            return -1;
        code = 16 * code + digit;
    }
    return code;
}

/* The character of an escape, *p at its backslash and then after it; -1: it is none. */
static int32_t read_escape(const char **p, const char *end) {
    static const char names[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    const char *at = *p + 1, *name;
    if (at >= end)
        return -1;
    if (*at != 'u') {
        *p = at + 1;
        name = *at ? strchr(names, *at) : NULL;
        return name ? (unsigned char)codes[name - names] : -1;
    }
    int32_t code = read_code(at + 1, end);
    *p = at + 5;
    if (code < 0xd800 || code > 0xdfff)
        return code;
    at += 5; /* a surrogate: \uXXXX\uXXXX is one character */
    const bool more = end - at >= 6 && at[0] == '\\' && at[1] == 'u';
    const int32_t low = more ? read_code(at + 2, end) : -1;
    *p = at + 6;
    return code < 0xdc00 && low >= 0xdc00 && low <= 0xdfff
               ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
               : -1;
}

/* The next character of a string, which ends at `end`, as UTF-8: its bytes; 0: it is none. */
static size_t read_character(const char **p, const char *end, char utf8[4]) {
    if (**p == '\\') {
        const int32_t code = read_escape(p, end);
        return code < 0 ? 0 : dpi_utf8_put((uint32_t)code, utf8);
    }
    const size_t n = (unsigned char)**p < ' ' ? 0 : dpi_utf8_bytes(*p, (size_t)(end - *p));
    memcpy(utf8, *p, n);
    *p += n;
    return n;
}

static bool is_name(const char *p, const char *end, const char *name) {
    char utf8[4];
    for (size_t n; p < end; name += n)
        if ((n = read_character(&p, end, utf8)) == 0 || memchr(utf8, '\0', n) ||
            strncmp(name, utf8, n) != 0)
            return false;
    return *name == '\0';
}

dpi_status dpi_json_string(const dpi_json *value, char **text, size_t *n_bytes, dpi_error *err) {
    *text = NULL;
    *n_bytes = 0;
    if (value->type != DPI_JSON_STRING)
        return DPI_STATUS_OK;
    const char *p = value->text + 1, *end = value->text + value->n_bytes - 1;
    char *to = dpi_private_malloc(value->n_bytes + 3), utf8[4]; /* no escape is shorter */
    size_t n = 0, step = 1;
    if (!to)
        return dpi_no_memory(err, "a text");
    while (p < end && (step = read_character(&p, end, utf8)) > 0) {
        memcpy(to + n, utf8, step);
        n += step;
    }
    to[n] = '\0';
    if (step == 0) {
        dpi_private_free(to);
        return DPI_STATUS_OK;
    }
    *text = to;
    *n_bytes = n;
    return DPI_STATUS_OK;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static int32_t type_of(const char *text, size_t n_bytes) {
    number x;
    switch (text[0]) {
    case '{': return DPI_JSON_OBJECT;
    case '[': return DPI_JSON_ARRAY;
    case '"': return DPI_JSON_STRING;
    default: break;
    }
    if (n_bytes == 4 && memcmp(text, "null", 4) == 0)
        return DPI_JSON_NULL;
    return read_number(text, n_bytes, &x) ? DPI_JSON_NUMBER : DPI_JSON_WORD;
}

static void set(dpi_json *value, const char *text, const char *end) {
    *value = (dpi_json){type_of(text, (size_t)(end - text)), text, (size_t)(end - text)};
}

void dpi_json_read(const char *text, size_t n_bytes, dpi_json *value) {
    const char *end = text + n_bytes, *begin = skip_space(text, end);
    const char *stop = skip_value(begin, end);
    *value = (dpi_json){0};
    if (stop && skip_space(stop, end) == end)
        set(value, begin, stop);
}

/* `name` : value, from p on; *value is that if the name is `wanted`. */
static const char *read_member(const char *p, const char *end, const char *wanted,
                               dpi_json *value) {
    const char *name = p;
    if (p == end || *p != '"' || !(p = skip_string(p, end)))
        return NULL;
    const bool found = is_name(name + 1, p - 1, wanted);
    p = skip_space(p, end);
    if (p == end || *p != ':')
        return NULL;
    const char *begin = skip_space(p + 1, end);
    p = skip_value(begin, end);
    if (p && found)
        set(value, begin, p);
    return p;
}

/* False: the object is malformed. */
static bool find_member(const char *p, const char *end, const char *name, dpi_json *value) {
    p = skip_space(p, end);
    while (p < end) {
        p = read_member(p, end, name, value);
        if (!p)
            return false;
        p = skip_space(p, end);
        if (p < end && (*p != ',' || (p = skip_space(p + 1, end)) == end))
            return false;
    }
    return true;
}

/* The bracket that ends a value of that type; NULL: it is another one. */
static const char *end_of(const dpi_json *value, int32_t type, char bracket) {
    const char *end = value->type == type ? value->text + value->n_bytes - 1 : NULL;
    return end && *end == bracket ? end : NULL;
}

void dpi_json_member(const dpi_json *object, const char *name, dpi_json *value) {
    const char *end = end_of(object, DPI_JSON_OBJECT, '}');
    dpi_json found = {0};
    if (!end || !find_member(object->text + 1, end, name, &found))
        found = (dpi_json){0};
    *value = found;
}

void dpi_json_first(const dpi_json *array, dpi_json *value) {
    const char *end = end_of(array, DPI_JSON_ARRAY, ']');
    const char *begin = end ? skip_space(array->text + 1, end) : NULL;
    const char *stop = begin ? skip_value(begin, end) : NULL;
    *value = (dpi_json){0};
    if (stop)
        set(value, begin, stop);
}
