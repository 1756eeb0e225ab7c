#define _GNU_SOURCE /* MAP_NORESERVE */
#include "kernels/gemm.h"

#include <cblas.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/status.h"
#include "base/system.h"

_Static_assert(DPI_BLAS_ROW_MAJOR == (int)CblasRowMajor && DPI_BLAS_PLAIN == (int)CblasNoTrans &&
                   DPI_BLAS_TRANSPOSED == (int)CblasTrans,
               "the numbers of cblas.h");

/* OpenBLAS maps a buffer for each thread that computes, and tries again for ever where that fails:
 * its size in Debian's build, and what else it may need. */
enum { BUFFER_BYTES = 128 << 20, OTHER_BYTES = 16 << 20 };

static dpi_status check_room(int32_t n_threads, dpi_error *err) {
    size_t n_bytes = (size_t)n_threads * BUFFER_BYTES + OTHER_BYTES;
    void *room = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return dpi_no_memory(err, "OpenBLAS: %d threads need %zu bytes of address space",
                             (int)n_threads, n_bytes);
    munmap(room, n_bytes);
    return DPI_STATUS_OK;
}

#ifdef DPI_BLAS_LINK

static dpi_status find(dpi_blas *blas, dpi_error *err) {
    (void)err;
    blas->sgemm = (dpi_sgemm_fn *)cblas_sgemm;
    blas->dgemm = (dpi_dgemm_fn *)cblas_dgemm;
    blas->set_n_threads = openblas_set_num_threads;
    return DPI_STATUS_OK;
}

#else

#define LIBRARY "libopenblas.so.0"

/* A function of the library into the pointer at `function`. */
static dpi_status find_one(dpi_blas *blas, const char *name, void *function, dpi_error *err) {
    void *symbol = dlsym(blas->library, name);
    if (!symbol)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "%s has no %s", LIBRARY, name);
    memcpy(function, &symbol, sizeof symbol); /* C has no cast from data to a function */
    return DPI_STATUS_OK;
}

/* A library that is not there; or a machine that has no memory or file left for one that is. */
static dpi_status fail_load(const char *reason, dpi_error *err) {
    const bool is_there = reason && !strstr(reason, "No such file");
    return dpi_fail(err, is_there ? DPI_STATUS_SYSTEM : DPI_STATUS_UNSUPPORTED,
                    "cannot load OpenBLAS for products in f32: %s", reason ? reason : LIBRARY);
}

static dpi_status find(dpi_blas *blas, dpi_error *err) {
    if (dpi_system_is_static()) /* dlopen of a library that has its own libc would crash */
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "cannot load OpenBLAS for products in f32: this program is linked "
                        "statically, and dpinfer was not built with -DDPI_BLAS=link");
    blas->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!blas->library)
        return fail_load(dlerror(), err);
    DPI_TRY(find_one(blas, "cblas_sgemm", &blas->sgemm, err));
    DPI_TRY(find_one(blas, "cblas_dgemm", &blas->dgemm, err));
    return find_one(blas, "openblas_set_num_threads", &blas->set_n_threads, err);
}

#endif

dpi_status dpi_blas_open(dpi_blas *blas, int32_t n_threads, dpi_error *err) {
    *blas = (dpi_blas){0};
    DPI_TRY(check_room(n_threads, err)); /* without memory, loading libgfortran ends in a crash */
    dpi_status status = find(blas, err);
    if (status == DPI_STATUS_OK)
        status = check_room(n_threads, err);
    if (status != DPI_STATUS_OK)
        dpi_blas_close(blas);
    return status;
}

void dpi_blas_close(dpi_blas *blas) {
    if (blas->library)
        dlclose(blas->library);
    *blas = (dpi_blas){0};
}

void dpi_gemm_f32(const dpi_blas *blas, float *y, int64_t y_stride, const float *x,
                  int64_t x_stride, const float *w, int64_t n_in, int32_t n_out) {
    /* Every stride here is below 2^31 (config.c). */
    blas->sgemm(DPI_BLAS_ROW_MAJOR, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, DPI_GEMM_ROWS, n_out,
                (int)n_in, 1.0f, x, (int)x_stride, w, (int)n_in, 0.0f, y, (int)y_stride);
}
