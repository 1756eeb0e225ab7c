/* dp/ is linked here with base/ and kernels/ alone: that it links is the test. Each method draws a
 * token, so that nobody can say that nothing was used. */
#include <stdio.h>

#include "dpinfer/method.h"
#include "dpinfer/registry.h"

static dpi_status draw(int32_t method, int32_t *token, dpi_error *err) {
    const float public_logits[4] = {0, 1, 2, 3}, record[4] = {3, 2, 1, 0};
    const float *references[1] = {record};
    dpi_sampler_options o;
    dpi_sampler *sampler = NULL;
    dpi_sampler_options_init(&o);
    dpi_status status = dpi_method_defaults(method, &o, err);
    o.n_vocab = 4;
    o.n_ref = dpi_method_get(method)->max_ref > 0 ? 1 : 0;
    o.n_tokens = 1;
    o.top_k = 0;
    o.acknowledge_not_dp = dpi_method_get(method)->needs_acknowledgement;
    if (dpi_method_get(method)->has_guarantee)
        o.rho = 1;
    else if (o.n_ref > 0)
        o.epsilon = 1, o.delta = 1e-6;
    if (status == DPI_STATUS_OK)
        status = dpi_sampler_create(&o, &sampler, err);
    if (status == DPI_STATUS_OK)
        status = dpi_sampler_begin(sampler, err);
    if (status == DPI_STATUS_OK)
        status = dpi_sampler_step(sampler, public_logits, references, token, err);
    dpi_sampler_free(sampler);
    return status;
}

int main(void) {
    int n_failed = 0;
    for (int32_t method = 0; method < dpi_method_count(); method++) {
        dpi_error err = {0};
        int32_t token = -1;
        if (draw(method, &token, &err) == DPI_STATUS_OK && token >= 0 && token <= 3)
            continue;
        printf("%s: %s\n", dpi_method_get(method)->name, err.message);
        n_failed++;
    }
    printf("%d passed, %d failed\n", dpi_method_count() - n_failed, n_failed);
    return n_failed > 0 || dpi_method_count() < 5;
}
