/* texts_report.c - see texts_report.h. */
#include "tools/texts_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/output.h"
#include "tools/terminal.h"

static bool ends_in(const char *name, const char *end) {
    const size_t n = strlen(name), n_end = strlen(end);
    return n >= n_end && strcmp(name + n - n_end, end) == 0;
}

int texts_report_probe(const args *a, bool claimed) {
    if (a->n_reports > 0 && !claimed)
        return cli_fail(CLI_USAGE, "--report: the adapter says nothing of how it was made");
    for (int i = 0; i < a->n_reports; i++) {
        if (ends_in(a->reports[i], ".md") || ends_in(a->reports[i], ".html"))
            return cli_fail(CLI_USAGE, "--report: found %s, allowed is JSON here", a->reports[i]);
        if (output_probe(a->reports[i]) != CLI_OK)
            return CLI_FAILED;
    }
    return CLI_OK;
}

int texts_report_statement(const dpi_finetune_claim *claim, int32_t n_texts, int code) {
    char *statement = NULL;
    size_t n;
    dpi_error err;
    if (!claim) {
        fprintf(stderr, "\nPrivacy statement: NOT PRIVATE\n"
                        "  guarantee          none: the adapter says nothing of how it was made\n");
        return code;
    }
    if (dpi_finetune_statement(claim, &statement, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    char *shown = terminal_text(statement, strlen(statement), true, &n);
    free(statement);
    if (!shown)
        return cli_fail(CLI_FAILED, "out of memory for the statement");
    fprintf(stderr, "\n%s  texts              %d, by post-processing of this %s, as its file says: "
                    "no further cost\n", shown, n_texts, claim->full ? "model" : "adapter");
    free(shown);
    return code;
}

int texts_report_write(const args *a, const dpi_finetune_claim *claim,
                       const dpi_finetune_texts *texts) {
    char *json = NULL;
    dpi_error err;
    int code = CLI_OK;
    if (a->n_reports > 0 && dpi_finetune_report(claim, texts, &json, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    for (int i = 0; i < a->n_reports && code == CLI_OK; i++) {
        output out = {.fd = -1};
        code = output_open(&out, a->reports[i], a->v[OPT_OVERWRITE].i);
        if (code == CLI_OK)
            code = output_write(&out, json, strlen(json));
        if (code == CLI_OK)
            code = output_write(&out, "\n", 1);
        const int closed = output_close(&out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED);
        code = code == CLI_OK ? closed : code;
    }
    free(json);
    return code;
}
