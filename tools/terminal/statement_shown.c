/* statement_shown.c - see statement_shown.h. */
#include "tools/terminal/statement_shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/terminal/cli.h"
#include "tools/terminal/terminal.h"

char *statement_shown(char *text, const char *more) {
    size_t n;
    char *escaped = terminal_text(text, strlen(text), true, &n), *shown = NULL;
    free(text);
    if (!escaped || asprintf(&shown, "%s%s", escaped, more) < 0) {
        shown = NULL;
        cli_no_memory("the statement");
    }
    free(escaped);
    return shown;
}

char *statement_of_claim(const dpi_claim *claim, bool complete) {
    char *text;
    dpi_error err;
    if (dpi_claim_statement(claim, complete, &text, &err) == DPI_STATUS_OK)
        return statement_shown(text, "");
    cli_fail_library(CLI_FAILED, &err);
    return NULL;
}

/* To stderr. CLI_OK; or CLI_FAILED, and there is nowhere to say why. */
static int statement_write(const char *shown) {
    return fprintf(stderr, "\n%s", shown) < 0 || fflush(stderr) != 0 ? CLI_FAILED : CLI_OK;
}

int statement_end(char *shown, int code) {
    const int written = shown ? statement_write(shown) : CLI_FAILED;
    free(shown);
    return code != CLI_OK ? code : written;
}
