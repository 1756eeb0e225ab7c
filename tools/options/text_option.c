/* text_option.c - see text_option.h. */
#include "tools/options/text_option.h"

#include <string.h>

enum { TEXT_BYTES_MAX = 1 << 28 }; /* no context holds more */

int text_option_read(const args *a, option_id direct, option_id file, char **loaded,
                     dpi_bytes *text) {
    const char *name = option_name(direct);
    size_t n_bytes;
    if (a->v[direct].given && a->v[file].given)
        return cli_fail(CLI_USAGE, "--%s and --%s-file: allowed is one of them", name, name);
    if (a->v[direct].given)
        *text = (dpi_bytes){a->v[direct].s, strlen(a->v[direct].s)};
    if (!a->v[file].given)
        return CLI_OK;
    const int code =
        cli_read_text(option_name(file), a->v[file].s, TEXT_BYTES_MAX, loaded, &n_bytes);
    if (code == CLI_OK)
        *text = (dpi_bytes){*loaded, cli_trim_line_end(*loaded, n_bytes)};
    return code;
}
