/* loaded.c - see loaded.h. */
#include "eval/loaded.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include "eval/fail.h"

/* OpenBLAS maps a buffer where it computes, and tries again for ever where that fails: its size in
 * Debian's build, and what loading needs. */
enum { BLAS_BYTES = (128 + 16) << 20 };

dpi_status eval_library_find(void *library, const char *name, void *function, dpi_error *err) {
    void *symbol = dlsym(library, name);
    if (!symbol)
        return eval_fail(err, DPI_STATUS_UNSUPPORTED, "a library has no %s", name);
    memcpy(function, &symbol, sizeof symbol); /* C has no cast from data to a function */
    return DPI_STATUS_OK;
}

static dpi_status check_room(size_t n_bytes, dpi_error *err) {
    void *room = mmap(NULL, n_bytes + BLAS_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return eval_no_memory(err, "OpenBLAS and what uses it: %zu bytes of address space",
                              n_bytes + BLAS_BYTES);
    munmap(room, n_bytes + BLAS_BYTES);
    return DPI_STATUS_OK;
}

dpi_status eval_library_open(const char *name, const char *package, size_t n_bytes, void **library,
                             dpi_error *err) {
    void (*set_n_threads)(int) = NULL;
    EVAL_TRY(check_room(n_bytes, err)); /* loading needs some of it */
    *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!*library) {
        const char *reason = dlerror();
        return eval_fail(err, DPI_STATUS_UNSUPPORTED, "cannot load %s (package %s): %s", name,
                         package, reason ? reason : name);
    }
    /* With another BLAS there is no such function, and nothing to set. */
    if (eval_library_find(*library, "openblas_set_num_threads", &set_n_threads, NULL) ==
        DPI_STATUS_OK)
        set_n_threads(1);
    const dpi_status status = check_room(n_bytes, err);
    if (status != DPI_STATUS_OK)
        dlclose(*library);
    return status;
}
