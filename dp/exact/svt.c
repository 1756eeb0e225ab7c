/* svt.c - see svt.h. */
#include "dp/exact/svt.h"

#include "base/mem.h"
#include "base/status.h"

dpi_status dpi_svt_arm(dpi_svt *svt, dpi_random_fn random, void *user, dpi_error *err) {
    int64_t noise;
    DPI_TRY(dpi_noise_laplace(svt->scale, random, user, &noise, err));
    svt->noisy = svt->threshold + noise;
    dpi_wipe(&noise, sizeof noise);
    return DPI_STATUS_OK;
}

dpi_status dpi_svt_query(const dpi_svt *svt, int64_t value, dpi_random_fn random, void *user,
                         bool *above, dpi_error *err) {
    int64_t noise;
    DPI_TRY(dpi_noise_laplace(2 * svt->scale, random, user, &noise, err));
    *above = value + noise >= svt->noisy;
    dpi_wipe(&noise, sizeof noise);
    return DPI_STATUS_OK;
}
