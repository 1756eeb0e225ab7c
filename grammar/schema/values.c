#include "grammar/schema/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ------------------------------------------------------------------------------------ */

bool dpi_schema_is_whole(const json_t *value) {
    const double real = json_real_value(value);
    return json_is_integer(value) || (json_is_real(value) && floor(real) == real);
}

/* The value with 1.0 as 1: JSON Schema says that they are the same. NULL: no memory. */
static json_t *plain(json_t *value) {
    const double real = json_real_value(value);
    const char *key;
    json_t *item, *copy = NULL;
    size_t i;
    if (json_is_real(value) && dpi_schema_is_whole(value) && fabs(real) < 0x1p53)
        return json_integer((json_int_t)real);
    if (json_is_array(value) && (copy = json_array()))
        json_array_foreach(value, i, item)
            if (copy && json_array_append_new(copy, plain(item)) != 0)
                json_decref(copy), copy = NULL;
    if (json_is_object(value) && (copy = json_object()))
        json_object_foreach(value, key, item)
            if (copy && json_object_set_new(copy, key, plain(item)) != 0)
                json_decref(copy), copy = NULL;
    return json_is_array(value) || json_is_object(value) ? copy : json_incref(value);
}

/* A value as text that the caller frees, not in jansson's memory, which a program may have
 * replaced. NULL: no memory. */
static char *dump(const json_t *value, size_t flags) {
    const size_t n = json_dumpb(value, NULL, 0, flags);
    char *text = n > 0 ? malloc(n + 1) : NULL;
    if (!text)
        return NULL;
    (void)json_dumpb(value, text, n, flags);
    text[n] = '\0';
    return text;
}

/* 15 digits where they say the number, so that .1 is no .10000000000000001. */
static char *digits_of(const json_t *value) {
    const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT;
    char *text = dump(value, flags | JSON_REAL_PRECISION(15));
    json_t *read = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    const bool same = read && json_equal(read, value);
    json_decref(read);
    if (!text || same)
        return text;
    free(text);
    return dump(value, flags);
}

char *dpi_schema_text(json_t *value) {
    json_t *shown = plain(value);
    char *text = shown ? digits_of(shown) : NULL;
    json_decref(shown);
    return text;
}

/* ---- Pointers -------------------------------------------------------------------------------- */

/* %5B as [, in place (RFC 3986). False: no two digits behind a %. */
static bool decode_percent(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        char digits[3] = "";
        if (*from == '%') {
            memcpy(digits, from + 1, strnlen(from + 1, 2));
            if (strspn(digits, "0123456789abcdefABCDEF") != 2)
                return false;
            from += 2;
        }
        *to++ = digits[0] ? (char)strtol(digits, NULL, 16) : *from;
    }
    *to = '\0';
    return true;
}

/* ~1 as /, ~0 as ~, in place. */
static void decode_tilde(char *name) {
    char *to = name;
    for (const char *from = name; *from; from++) {
        const bool is_escape = *from == '~' && (from[1] == '0' || from[1] == '1');
        *to++ = !is_escape ? *from : *++from == '1' ? '/' : '~';
    }
    *to = '\0';
}

const json_t *dpi_schema_find(const json_t *root, char *pointer) {
    const json_t *at = root;
    if (pointer[0] != '#' || !decode_percent(++pointer) || (*pointer && *pointer != '/'))
        return NULL;
    while (at && *pointer == '/') {
        char *name = pointer + 1, *end = name + strcspn(name, "/");
        const char next = *end;
        *end = '\0';
        decode_tilde(name);
        at = json_is_array(at) && strspn(name, "0123456789") == strlen(name) && *name
                 ? json_array_get(at, (size_t)strtoull(name, NULL, 10))
                 : json_object_get(at, name);
        *end = next;
        pointer = end;
    }
    return at;
}
