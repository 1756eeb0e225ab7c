#include "base/struct.h"

#include <string.h>

/* All structs have members of 8 bytes. */
enum { UNIT = 8 };

static size_t size_of(const void *given) {
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

void dpi_struct_init(void *to, size_t size, const void *defaults, size_t known) {
    if (size < sizeof size) /* not a struct of ours, and there is nobody to tell */
        return;
    memset(to, 0, size);
    memcpy(to, defaults, size < known ? size : known);
    memcpy(to, &size, sizeof size);
}

dpi_status dpi_struct_check(const void *given, size_t known, const char *name, dpi_error *err) {
    if (!given)
        return dpi_fail(err, DPI_STATUS_ARG, "%s is NULL, must be given", name);
    const size_t size = size_of(given);
    if (size <= sizeof size || size > known || size % UNIT)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "%s.struct_size is %zu, must be a multiple of %d from %d to %zu", name,
                        size, UNIT, 2 * UNIT, known);
    return DPI_STATUS_OK;
}

dpi_status dpi_struct_copy(void *to, const void *given, size_t known, const char *name,
                           dpi_error *err) {
    DPI_TRY(dpi_struct_check(given, known, name, err));
    memcpy(to, given, size_of(given));
    memcpy(to, &known, sizeof known);
    return DPI_STATUS_OK;
}

void dpi_struct_give(void *to, const void *made, size_t known) {
    const size_t size = size_of(to);
    memcpy(to, made, size < known ? size : known);
    memcpy(to, &size, sizeof size);
}

dpi_status dpi_struct_fixed(const void *given, size_t known, const void *room, size_t n_room,
                            size_t one, const char *name, dpi_error *err) {
    if (size_of(given) != known)
        return dpi_fail(err, DPI_STATUS_ARG, "%s.struct_size is %zu, must be %zu", name,
                        size_of(given), known);
    for (size_t i = 0; i < n_room; i++) {
        uint64_t value = 0;
        memcpy(&value, (const char *)room + i * one, one);
        if (value)
            return dpi_fail(err, DPI_STATUS_ARG,
                            "%s.room[%zu] is %llu, must be 0 with the headers of this library",
                            name, i, (unsigned long long)value);
    }
    return DPI_STATUS_OK;
}
