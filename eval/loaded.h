/* loaded.h - libraries that are loaded where they are used: with them comes OpenBLAS, whose threads
 * and memory no other command needs. */
#ifndef DPI_EVAL_LOADED_H
#define DPI_EVAL_LOADED_H

#include "dpinfer/status.h"

/* Opens the library `name` of the Debian package, with OpenBLAS on one thread: results do not
 * depend on their number then. n_bytes: what it will need; it does not say where it has no memory,
 * so this is tried before. *library is to be given to dlclose. Errors: UNSUPPORTED, MEMORY. */
dpi_status eval_library_open(const char *name, const char *package, size_t n_bytes, void **library,
                             dpi_error *err);
/* A function of it into the pointer at `function`. Errors: UNSUPPORTED. */
dpi_status eval_library_find(void *library, const char *name, void *function, dpi_error *err);

#endif
