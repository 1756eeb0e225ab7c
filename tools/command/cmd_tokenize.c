/* cmd_tokenize.c - `dpinfer tokenize`: text on stdin to token ids on stdout. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/command/commands.h"

static int print_tokens(const dpi_model *model, const char *text, size_t n_bytes, int32_t flags) {
    size_t capacity = 4 * n_bytes + 5, n; /* dpinfer.h: always suffices */
    int32_t *tokens = dpi_private_malloc(capacity * sizeof *tokens);
    if (!tokens)
        return cli_no_memory("%zu tokens", capacity);
    dpi_error err;
    int code = CLI_OK;
    if (dpi_tokenize(model, text, n_bytes, flags, tokens, capacity, &n, &err) != DPI_STATUS_OK) {
        code = cli_fail_library(CLI_FAILED, &err);
        n = 0;
    }
    for (size_t i = 0; i < n; i++)
        printf(i ? " %" PRId32 : "%" PRId32, tokens[i]);
    if (code == CLI_OK)
        putchar('\n');
    dpi_private_free(tokens);
    return code;
}

/* NUL ends a string; bytes after the last NUL are one more string. */
static int print_strings(const dpi_model *model, const char *text, size_t n_bytes, int32_t flags) {
    int code = CLI_OK;
    for (size_t at = 0; at < n_bytes && code == CLI_OK && !ferror(stdout);) {
        const char *end = memchr(text + at, '\0', n_bytes - at);
        size_t n = end ? (size_t)(end - (text + at)) : n_bytes - at;
        code = print_tokens(model, text + at, n, flags);
        at += n + 1;
    }
    return code;
}

static int tokenize_main(const args *a) {
    dpi_model *model;
    dpi_model_options options = options_model(a);
    options.vocab_only = 1;
    int code = cli_open_model(a->model, &options, &model, NULL);
    if (code != CLI_OK)
        return code;
    char *text = NULL;
    size_t n_bytes = 0;
    int32_t flags = a->v[OPT_BOS].i ? DPI_TOKENIZE_BOS : 0;
    if (!dpi_private_read(STDIN_FILENO, SIZE_MAX, &text, &n_bytes))
        code = cli_fail(CLI_FAILED, "cannot read standard input: %s", strerror(errno));
    else if (a->v[OPT_NUL].i)
        code = print_strings(model, text, n_bytes, flags);
    else
        code = print_tokens(model, text, n_bytes, flags);
    dpi_private_free(text);
    dpi_model_close(model);
    return code;
}

const command command_tokenize = {
    .name = "tokenize", .bit = CMD_TOKENIZE, .arguments = "MODEL", .takes_model = 1,
    .run = tokenize_main,
    .summary = "text on stdin to token ids",
    .details =
        "The whole of stdin is one string and gives one line of ids; a line feed at its end\n"
        "belongs to it (printf '%s' sends none, echo does). With --nul each string ends with\n"
        "a NUL byte and gives a line of its own. The text of special tokens is plain text.\n"
        "The model file may lack its weights.\n",
};
