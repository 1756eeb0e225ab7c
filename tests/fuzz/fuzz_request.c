/* fuzz_request.c - libFuzzer target: any bytes as the body of a request, of a form that the
 * first byte says, as a file of tokens and as a --dataset. What is accepted is in its ranges. */
#include <jansson.h>

#include "dpinfer/memory.h"
#include "serve/datasets.h"
#include "serve/principals.h"
#include "serve/request.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    json_set_alloc_funcs(dpi_private_malloc, dpi_private_free);
    return 0;
}

static void parse_dataset(const char *text, size_t n_bytes) {
    char *copy = copy_text(text, n_bytes);
    dataset d;
    dpi_error err;
    if (dataset_parse(copy, &d, &err) == DPI_STATUS_OK)
        require(d.name[0] && d.path && d.epsilon > 0 && d.delta > 0 && d.delta < 1 && d.batch >= 1);
    else
        require(err.message[0]);
    dataset_free(&d);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    const request_defaults defaults = {.tau = 1, .n_vocab = 1000};
    request r;
    refusal why = {0};
    principals *p = NULL;
    dpi_error err;
    if (n_bytes < 1 || n_bytes > REQUEST_BYTES_MAX)
        return 0;
    const char *text = (const char *)data + 1;
    const bool ok = request_parse(text, n_bytes - 1, data[0] % 3, &defaults, &r, &why);
    if (ok) {
        require(r.n_user > 0 && strlen(r.user) == r.n_user);
        require(!r.system || strlen(r.system) == r.n_system);
        require(r.n_turns <= REQUEST_TURNS_MAX && r.top_p > 0 && r.top_p <= 1);
        for (size_t i = 0; i < r.n_turns; i++)
            require(r.turns[i].user && strlen(r.turns[i].answer) == r.turns[i].n_answer);
        require(r.n_tokens >= 0 && r.n_tokens <= REQUEST_TOKENS_MAX);
        require(r.tau == 0 || (r.tau >= .01 && r.tau <= 100));
        require(r.top_k >= 0 && r.top_k <= 1 << 18);
        require(!r.dataset[0] || (r.epsilon > 0 && r.epsilon <= 1e6 && !r.is_seeded));
        require(r.delta >= 0 && r.delta < 1 && r.batch >= 0 && r.batch <= 4096);
    } else {
        require(why.http == 400 && why.type && why.message[0]);
    }
    request_free(&r);
    if (principals_parse("tokens", text, n_bytes - 1, &p, &err) == DPI_STATUS_OK)
        require(!principals_find(p, "Bearer none of them"));
    else
        require(p == NULL && err.message[0]);
    principals_free(p);
    parse_dataset(text, n_bytes - 1);
    return 0;
}
