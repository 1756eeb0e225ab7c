/* json.h - the values of a JSON text (RFC 8259) that are wanted, and nothing else of it.
 *
 * No tree is made, and what is not wanted is stepped over as text: its numbers may have any size
 * (1e400) or be none (NaN), its strings any escapes and bytes (a lone surrogate), its arrays and
 * objects any depth; of these only strings and brackets are looked at. Time is linear in the bytes
 * and in the depth of what is wanted; memory and stack are constant. Texts may be private: what is
 * copied is private memory. Any thread. */
#ifndef DPINFER_JSON_H
#define DPINFER_JSON_H

#include <stddef.h>

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpi_json_type {
    DPI_JSON_NONE, /* there is none, or what stands there is malformed */
    DPI_JSON_OBJECT,
    DPI_JSON_ARRAY,
    DPI_JSON_STRING,
    DPI_JSON_NUMBER,
    DPI_JSON_NULL,
    DPI_JSON_WORD /* true, false, and words that are no JSON, such as NaN */
} dpi_json_type;

/* A value where it stands in a text, which must outlive it. */
typedef struct dpi_json {
    int32_t type;     /* a dpi_json_type */
    const char *text; /* [n_bytes] with its quotes or brackets */
    size_t n_bytes;
} dpi_json;

/* The one value of a whole text, white space around it. */
DPI_API void dpi_json_read(const char *text, size_t n_bytes, dpi_json *value);
/* The member of an object with that name; of several the last. NONE also of what is no object, and
 * of one that is malformed. */
DPI_API void dpi_json_member(const dpi_json *object, const char *name, dpi_json *value);
/* The first value of an array; NONE also of what is no array. */
DPI_API void dpi_json_first(const dpi_json *array, dpi_json *value);

/* What a string says, *text [*n_bytes] with a NUL behind it, which the caller frees with
 * dpi_private_free. NULL: it is no string, or one that is no text (a lone surrogate, an escape that
 * JSON has not, a control character, bytes that are not UTF-8). Errors: MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_json_string(const dpi_json *value, char **text,
                                                  size_t *n_bytes, dpi_error *err);

/* Zeros that a number may stand for and not have: 1e1000 is written, 1e1001 is not. */
enum { DPI_JSON_ZEROS_MAX = 1000 };

/* The digits of the integer that `text` [n_bytes] is as a JSON number, whatever its form: 1, 1.0,
 * 1e0 and 10e-1 are "1", -0 is "0". Exact, however many there are. *digits, with a NUL behind
 * them, are the caller's for dpi_private_free. NULL: it is no number, or none of the integers, or
 * one with more than DPI_JSON_ZEROS_MAX zeros that are not there. Errors: MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_json_digits(const char *text, size_t n_bytes, char **digits,
                                                  dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
