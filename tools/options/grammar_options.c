/* grammar_options.c - see grammar_options.h. */
#include "tools/options/grammar_options.h"

#include <stdlib.h>

#include "dpinfer/memory.h"
#include "dpinfer/schema.h"

enum { GRAMMAR_BYTES_MAX = 1 << 20 };

int grammar_options_read(const args *a, dpi_grammar **grammar) {
    const bool schema = a->v[OPT_JSON_SCHEMA].given;
    const option_id id = schema ? OPT_JSON_SCHEMA : OPT_GRAMMAR;
    const char *path = a->v[id].s;
    char *text = NULL;
    size_t n_bytes = 0;
    dpi_error err;
    *grammar = NULL;
    if (schema && a->v[OPT_GRAMMAR].given)
        return cli_fail(CLI_USAGE, "--grammar and --json-schema: allowed is one of them");
    if (!a->v[id].given)
        return CLI_OK;
    const int code = cli_read_text(option_name(id), path, GRAMMAR_BYTES_MAX, &text, &n_bytes);
    if (code != CLI_OK)
        return code;
    const dpi_status status = schema ? dpi_grammar_from_schema(text, n_bytes, grammar, &err)
                                     : dpi_grammar_parse(text, n_bytes, grammar, &err);
    dpi_private_free(text);
    return status == DPI_STATUS_OK ? CLI_OK
                                   : cli_fail(CLI_USAGE, "--%s: %s: %s", option_name(id), path,
                                              err.message);
}
