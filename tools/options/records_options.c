/* records_options.c - see records_options.h. */
#include "tools/options/records_options.h"

#include <string.h>

int records_delimiter(const char *source, const char *text, dpi_records_options *options) {
    const char *delimiter = strcmp(text, "tab") == 0 ? "\t" : text;
    if (strlen(delimiter) != 1)
        return cli_fail(CLI_USAGE, "%s: found '%s', allowed one character, or tab", source, text);
    if ((unsigned char)delimiter[0] > 0x7f || strchr("\"\n\r", delimiter[0]))
        return cli_fail(CLI_USAGE, "%s: found '%s', allowed an ASCII character but quote and line "
                                   "end", source, text);
    options->delimiter = delimiter[0];
    return CLI_OK;
}

void records_encoding(const option_value *encoding, dpi_records_options *options) {
    options->encoding = (int32_t)encoding->i; /* in the order of the choices */
}

int records_options(const args *a, dpi_records_options *options) {
    dpi_records_options_init(options);
    options->text_field = a->v[OPT_TEXT_FIELD].s;
    options->unit_field = a->v[OPT_UNIT_FIELD].given ? a->v[OPT_UNIT_FIELD].s : NULL;
    options->label_field = a->v[OPT_LABEL_FIELD].given ? a->v[OPT_LABEL_FIELD].s : NULL;
    options->public_fields = a->v[OPT_PUBLIC_FIELDS].i != 0;
    records_encoding(&a->v[OPT_ENCODING], options);
    return records_delimiter("--delimiter", a->v[OPT_DELIMITER].s, options);
}

int records_open(const char *path, const dpi_records_options *options, dpi_records **records) {
    dpi_error err;
    return dpi_records_open(path, options, records, &err) == DPI_STATUS_OK
               ? CLI_OK
               : cli_fail_option(CLI_RECORDS, &err);
}
