/* cmd_logits.c - `dpinfer logits`: token ids to logits, for comparisons. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/command/commands.h"
#include "tools/options/paths.h"
#include "tools/options/release_options.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"

enum { TOKENS_BYTES_MAX = 1 << 28 };

static bool is_space(char c) { return memchr(" \t\n\v\f\r", c, 6) != NULL; }

/* Ids separated by white space. *tokens is private memory. */
static int parse_tokens(const char *text, size_t n_bytes, int32_t n_vocab, int32_t **tokens,
                        size_t *n_tokens) {
    /* An id has at least a digit and a space. */
    int32_t *ids = dpi_private_malloc((n_bytes / 2 + 1) * sizeof *ids);
    if (!ids)
        return cli_no_memory("the token ids");
    size_t n = 0, at = 0;
    for (;;) {
        while (at < n_bytes && is_space(text[at]))
            at++;
        if (at == n_bytes)
            break;
        size_t begin = at;
        int64_t id = 0;
        for (; at < n_bytes && text[at] >= '0' && text[at] <= '9' && id < n_vocab; at++)
            id = 10 * id + (text[at] - '0');
        if (at == begin || id >= n_vocab || (at < n_bytes && !is_space(text[at]))) {
            dpi_private_free(ids);
            return cli_fail(CLI_USAGE, "--tokens: not a token id at byte %zu, allowed 0..%d", begin,
                            n_vocab - 1);
        }
        ids[n++] = (int32_t)id;
    }
    if (n == 0) {
        dpi_private_free(ids);
        return cli_fail(CLI_USAGE, "--tokens: found no token id, allowed 1 or more");
    }
    *tokens = ids;
    *n_tokens = n;
    return CLI_OK;
}

static int read_tokens(const char *path, int32_t n_vocab, int32_t **tokens, size_t *n_tokens) {
    char *text;
    size_t n_bytes;
    int code = cli_read_text("tokens", path, TOKENS_BYTES_MAX, &text, &n_bytes);
    if (code != CLI_OK)
        return code;
    code = parse_tokens(text, n_bytes, n_vocab, tokens, n_tokens);
    dpi_private_free(text);
    if (code == CLI_OK && *n_tokens > 1 << 20) {
        dpi_private_free(*tokens);
        code = cli_fail(CLI_USAGE, "--tokens: found %zu token ids, allowed %d", *n_tokens, 1 << 20);
    }
    return code;
}

/* logits [n_tokens, n_vocab], private memory. */
static int compute(const dpi_model *model, const dpi_session_options *options,
                   const int32_t *tokens, size_t n_tokens, size_t n_vocab, float **logits) {
    dpi_session *session = NULL;
    dpi_error err;
    float *values = dpi_private_malloc(n_tokens * n_vocab * sizeof *values);
    if (!values)
        return cli_no_memory("%zu rows of logits", n_tokens);
    dpi_status status = dpi_session_create(model, options, &session, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_prefill(session, 0, tokens, n_tokens, values, &err);
    dpi_session_free(session);
    if (status != DPI_STATUS_OK) {
        dpi_private_free(values);
        return cli_fail_library(CLI_FAILED, &err);
    }
    *logits = values;
    return CLI_OK;
}

static int write_logits(const args *a, const float *logits, size_t n) {
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the output is little-endian: swap the bytes here"
#endif
    output out;
    int code = output_open(&out, a->v[OPT_OUTPUT].s, a->v[OPT_OVERWRITE].i);
    if (code == CLI_OK)
        code = output_write(&out, logits, n * sizeof *logits);
    return output_finish(&out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
}

static int logits_main(const args *a) {
    signals_clean_up();
    dpi_session_options options;
    int code = read_session_options(a, &options);
    if (code == CLI_OK && !a->v[OPT_TOKENS].given)
        code = cli_fail(CLI_USAGE, "no --tokens FILE given; see 'dpinfer logits -h'");
    if (code == CLI_OK)
        code = paths_check_command(a);
    if (code == CLI_OK)
        code = output_probe(a->v[OPT_OUTPUT].s);
    if (code != CLI_OK)
        return code;
    dpi_model *model;
    dpi_model_info info;
    const dpi_model_options model_options = options_model(a);
    code = cli_open_model(a->model, &model_options, &model, &info);
    if (code != CLI_OK)
        return code;
    int32_t *tokens = NULL;
    float *logits = NULL;
    size_t n_tokens = 0, n_vocab = (size_t)info.n_vocab;
    code = read_tokens(a->v[OPT_TOKENS].s, info.n_vocab, &tokens, &n_tokens);
    if (code == CLI_OK) {
        options.n_ctx = (int32_t)n_tokens;
        note_context((int64_t)n_tokens, &info);
        code = compute(model, &options, tokens, n_tokens, n_vocab, &logits);
        dpi_private_free(tokens);
    }
    if (code == CLI_OK)
        code = write_logits(a, logits, n_tokens * n_vocab);
    dpi_private_free(logits);
    dpi_model_close(model);
    return code;
}

const command command_logits = {
    .name = "logits", .bit = CMD_LOGITS, .arguments = "MODEL", .takes_model = 1,
    .run = logits_main,
    .summary = "logits of a list of token ids",
    .details =
        "Writes float32 little-endian logits [n, n_vocab]: after each of the n token ids of\n"
        "--tokens. The default computes what 'run' computes; --exact takes f32 activations and\n"
        "an f32 KV cache. A file appears under its name only when it is whole.\n",
};
