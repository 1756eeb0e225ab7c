#include "dp/exact/poisson.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"

dpi_status dpi_poisson_draw(int64_t share, size_t n_units, dpi_random_fn random, void *user,
                            uint8_t *joins, dpi_error *err) {
    enum { PART = 1024 };
    uint32_t bits[PART];
    dpi_status status = DPI_STATUS_OK;
    memset(joins, 0, n_units);
    if (share < 1 || share > DPI_POISSON_ONE)
        return dpi_fail(err, DPI_STATUS_ARG, "a share of %lld of 2^32, must be 1..2^32",
                        (long long)share);
    for (size_t i = 0; i < n_units && status == DPI_STATUS_OK; i += PART) {
        const size_t n = n_units - i < PART ? n_units - i : PART;
        status = dpi_random_fill(random, user, bits, n * sizeof *bits, err);
        for (size_t j = 0; j < n && status == DPI_STATUS_OK; j++)
            joins[i + j] = (int64_t)bits[j] < share;
    }
    dpi_wipe(bits, sizeof bits);
    if (status != DPI_STATUS_OK)
        dpi_wipe(joins, n_units);
    return status;
}
