/* struct.h - public structs that begin with struct_size, of callers whose header is older than this
 * library: theirs ends earlier. What it lacks has its default, and nothing is written behind its
 * end. A struct of a newer header is refused. Internal. */
#ifndef DPI_STRUCT_H
#define DPI_STRUCT_H

#include "base/status.h"

/* What NAME_init sets: as much of the defaults, [known] bytes, as a struct of `size` bytes has. */
void dpi_struct_init(void *to, size_t size, const void *defaults, size_t known);

/* ARG unless this library knows a struct of the size that `given` says, or if it is NULL. `name` is
 * that of its type. */
dpi_status dpi_struct_check(const void *given, size_t known, const char *name, dpi_error *err);

/* Sets in `to`, which has its defaults, what `given` has. */
dpi_status dpi_struct_copy(void *to, const void *given, size_t known, const char *name,
                           dpi_error *err);

/* Sets `to`, a struct that was checked, to as much of `made` as it has. */
void dpi_struct_give(void *to, const void *made, size_t known);

/* The same for structs that others hold by value, or that many functions take: they keep their size
 * and have `room` for what is to come, [n_room] numbers of `one` bytes, 8 at most. ARG unless these
 * are all 0. */
dpi_status dpi_struct_fixed(const void *given, size_t known, const void *room, size_t n_room,
                            size_t one, const char *name, dpi_error *err);

/* Defines NAME_init of a type whose defaults are constants, DPI_STRUCT_DEFAULTS(dpi_x, .n = 2); 0:
 * all are 0. */
#define DPI_STRUCT_DEFAULTS(type, ...)                         \
    void type##_init_size(type *to, size_t size) {             \
        static const type defaults = {__VA_ARGS__};            \
        dpi_struct_init(to, size, &defaults, sizeof defaults); \
    }

/* Declares `name`, the whole struct of what the caller has given. */
#define DPI_COPY_STRUCT(type, name, given, err) \
    type name;                                  \
    type##_init(&name);                         \
    DPI_TRY(dpi_struct_copy(&name, (given), sizeof name, #type, err))

/* The same; NULL: the defaults. */
#define DPI_COPY_STRUCT_IF(type, name, given, err) \
    type name;                                     \
    type##_init(&name);                            \
    if (given)                                     \
    DPI_TRY(dpi_struct_copy(&name, (given), sizeof name, #type, err))

#define DPI_CHECK_STRUCT(type, given, err) \
    DPI_TRY(dpi_struct_check((given), sizeof(type), #type, err))

#define DPI_CHECK_FIXED(type, given, err)                                                     \
    DPI_TRY(dpi_struct_fixed((given), sizeof(type), (given)->room,                            \
                             sizeof(given)->room / sizeof(given)->room[0],                    \
                             sizeof(given)->room[0], #type, err))

#endif
