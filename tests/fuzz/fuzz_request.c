/* fuzz_request.c - libFuzzer target: any bytes as the body of a request, by the first byte to one
 * of the two paths, and as a file of tokens. What is accepted is in its ranges. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "serve/principals.h"
#include "serve/request.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(bool holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    json_set_alloc_funcs(dpi_private_malloc, dpi_private_free);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    const request_defaults defaults = {.tau = 1};
    request r;
    refusal why = {0};
    principals *p = NULL;
    dpi_error err;
    if (n_bytes < 1 || n_bytes > REQUEST_BYTES_MAX)
        return 0;
    const char *text = (const char *)data + 1;
    const bool ok = request_parse(text, n_bytes - 1, data[0] & 1, &defaults, &r, &why);
    if (ok) {
        require(r.n_user > 0 && strlen(r.user) == r.n_user);
        require(!r.system || strlen(r.system) == r.n_system);
        require(r.n_tokens >= 0 && r.n_tokens <= REQUEST_TOKENS_MAX);
        require(r.tau == 0 || (r.tau >= .01 && r.tau <= 100));
        require(r.top_k >= 0 && r.top_k <= 1 << 18);
    } else {
        require(why.http == 400 && why.type && why.message[0]);
    }
    request_free(&r);
    if (principals_parse("tokens", text, n_bytes - 1, &p, &err) == DPI_STATUS_OK)
        require(!principals_find(p, "Bearer none of them"));
    else
        require(p == NULL && err.message[0]);
    principals_free(p);
    return 0;
}
