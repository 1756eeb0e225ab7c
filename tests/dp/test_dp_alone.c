/* dp/ is linked here with base/ and kernels/ alone: that it links is the test. A token is drawn, so
 * that nobody can say that nothing was used. */
#include <stdio.h>

#include "dpinfer/method.h"

int main(void) {
    const float public_logits[4] = {0, 1, 2, 3}, record[4] = {3, 2, 1, 0};
    const float *references[1] = {record};
    dpi_sampler_options o;
    dpi_sampler *sampler = NULL;
    dpi_error err = {0};
    int32_t token = -1;
    dpi_sampler_options_init(&o);
    o.n_vocab = 4;
    o.n_ref = 1;
    o.n_tokens = 1;
    o.top_k = 0;
    o.rho = 1;
    if (dpi_sampler_create(&o, &sampler, &err) != DPI_STATUS_OK ||
        dpi_sampler_begin(sampler, &err) != DPI_STATUS_OK ||
        dpi_sampler_step(sampler, public_logits, references, &token, &err) != DPI_STATUS_OK) {
        printf("%s\n0 passed, 1 failed\n", err.message);
        return 1;
    }
    dpi_sampler_free(sampler);
    const int failed = token < 0 || token > 3;
    printf("%d passed, %d failed\n", !failed, failed);
    return failed;
}
