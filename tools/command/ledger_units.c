/* ledger_units.c - see ledger_units.h. */
#include "tools/command/ledger_units.h"

#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"

enum { IDS_BYTES_MAX = 1 << 30 };

/* The line at *at, without its end; *at: the next one. */
static size_t next_line(const char *text, size_t n_bytes, size_t *at) {
    const char *line = text + *at, *end = memchr(line, '\n', n_bytes - *at);
    const size_t n = end ? (size_t)(end - line) + 1 : n_bytes - *at;
    *at += n;
    return cli_trim_line_end(line, n);
}

static bool is_blank(const char *line, size_t n_bytes) {
    return strspn(line, " \t\v\f\r") >= n_bytes;
}

int ledger_units_read(const char *path, ledger_units *u) {
    size_t n_bytes, n_lines = 1;
    *u = (ledger_units){.text = NULL};
    const int code = cli_read_text("unit-ids", path, IDS_BYTES_MAX, &u->text, &n_bytes);
    if (code != CLI_OK)
        return code;
    u->n_text = (int64_t)n_bytes + 1;
    for (size_t i = 0; i < n_bytes; i++)
        n_lines += u->text[i] == '\n';
    u->ids = dpi_private_malloc(n_lines * sizeof *u->ids);
    u->n_bytes = dpi_private_malloc(n_lines * sizeof *u->n_bytes);
    u->units = (dpi_ledger_units){
        .ids = u->ids, .n_bytes = u->n_bytes, .pays = dpi_private_malloc(n_lines)};
    if (!u->ids || !u->n_bytes || !u->units.pays)
        return cli_no_memory("the IDs of units");
    for (size_t at = 0; at < n_bytes;) {
        const char *line = u->text + at;
        const size_t n = next_line(u->text, n_bytes, &at);
        u->ids[u->units.n] = line;
        u->n_bytes[u->units.n] = n;
        u->units.n += !is_blank(line, n);
    }
    return u->units.n > 0 ? CLI_OK
                          : cli_fail(CLI_USAGE, "--unit-ids: %s has no ID: one a line", path);
}

void ledger_units_free(ledger_units *u) {
    dpi_private_free(u->text);
    dpi_private_free(u->ids);
    dpi_private_free(u->n_bytes);
    dpi_private_free(u->units.pays);
}

int ledger_units_write(const ledger_units *u, output *out) {
    int code = CLI_OK;
    for (size_t i = 0; i < u->units.n && code == CLI_OK; i++) {
        if (!u->units.pays[i])
            continue;
        code = output_write(out, u->ids[i], u->n_bytes[i]);
        if (code == CLI_OK)
            code = output_write(out, "\n", 1);
    }
    return code;
}
