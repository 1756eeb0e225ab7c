/* own.h - objects of a test that are given back where their block ends.
 *
 *     OWN(dpi_records) records = open_records(...);   a pointer, if OWNED has the type
 *     OWN_ARRAY(float) x = calloc(...);               a pointer for free(3)
 *     DEFAULTS(dpi_records_options, o);               a struct as TYPE_init fills it */
#ifndef DPI_OWN_H
#define DPI_OWN_H

#include <stdlib.h>
#include <string.h>

#define OWN(type) __attribute__((cleanup(end_##type))) type *
#define OWNED(type, close)                                                                         \
    static inline void end_##type(type **p) { close(*p); }

#define OWN_ARRAY(type) __attribute__((cleanup(end_array))) type *
static inline void end_array(void *p) {
    void *array;
    memcpy(&array, p, sizeof array);
    free(array);
}

#define DEFAULTS(type, name)                                                                       \
    type name;                                                                                     \
    type##_init(&name)

#endif
