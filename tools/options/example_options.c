/* example_options.c - see example_options.h. A .txt file is one example; of a .jsonl, a .csv and a
 * folder each record is one. */
#include "tools/options/example_options.h"

#include <string.h>

#include "tools/options/records_options.h"

enum { EXAMPLE_BYTES_MAX = 1 << 26 };

/* Takes the text, which is private memory. */
static int add_example(example_input *in, char *text, size_t n_bytes) {
    if (in->n == DPI_EXAMPLES_MAX) {
        dpi_private_free(text);
        return cli_fail(CLI_USAGE, "--example: found more than %d examples", DPI_EXAMPLES_MAX);
    }
    in->texts[in->n++] = (dpi_bytes){text, n_bytes};
    return CLI_OK;
}

static int add_text(const char *path, example_input *in) {
    char *text = NULL;
    size_t n_bytes = 0;
    const int code = cli_read_text("example", path, EXAMPLE_BYTES_MAX, &text, &n_bytes);
    return code == CLI_OK ? add_example(in, text, cli_trim_line_end(text, n_bytes)) : code;
}

static int add_record(const char *path, const dpi_records *records, size_t i, example_input *in) {
    char *text;
    size_t n_bytes;
    dpi_error err;
    if (dpi_records_read(records, i, &text, &n_bytes, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_RECORDS, &err);
    if (!text)
        return cli_fail(CLI_RECORDS, "--example: %s: number %zu has no text; 'dpinfer records' "
                                     "says why", path, i + 1);
    return add_example(in, text, n_bytes);
}

/* They are public: that a field is missing, and where, may be told. */
static int add_records(const args *a, const char *path, example_input *in) {
    dpi_records_options o;
    dpi_records *records = NULL;
    int code = records_options(a, &o);
    o.unit_field = o.label_field = NULL;
    o.public_fields = 1;
    if (code == CLI_OK)
        code = records_open(path, &o, &records);
    for (size_t i = 0; code == CLI_OK && i < dpi_records_count(records); i++)
        code = add_record(path, records, i, in);
    dpi_records_close(records);
    return code;
}

int example_options_read(const args *a, example_input *in, dpi_prompt_options *p) {
    int code = CLI_OK;
    if (a->v[OPT_EXAMPLE_IN].given && !a->v[OPT_EXAMPLE].given)
        return cli_fail(CLI_USAGE, "--example-in needs --example");
    for (int i = 0; i < a->n_listed && code == CLI_OK; i++) {
        const char *path = a->listed[i].text;
        if (a->listed[i].id != OPT_EXAMPLE)
            continue;
        code = strcmp(path, "-") == 0
                   ? cli_fail(CLI_USAGE, "--example: found '-', allowed is a file")
               : cli_ends_in(path, ".txt") ? add_text(path, in)
                                           : add_records(a, path, in);
    }
    if (code == CLI_OK && a->v[OPT_EXAMPLE].given && in->n == 0)
        code = cli_fail(CLI_RECORDS, "--example: %s holds no record", a->v[OPT_EXAMPLE].s);
    p->examples = in->texts;
    p->n_examples = in->n;
    p->example_in = (int32_t)a->v[OPT_EXAMPLE_IN].i;
    return code;
}

void example_options_free(example_input *in) {
    for (int32_t i = 0; i < in->n; i++)
        dpi_private_free((char *)in->texts[i].data);
    *in = (example_input){0};
}
