/* texts_report.c - see texts_report.h. */
#include "tools/texts_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report_files.h"
#include "tools/terminal.h"

int texts_report_probe(const args *a, bool claimed) {
    if (a->n_reports > 0 && !claimed)
        return cli_fail(CLI_USAGE, "--report: the adapter says nothing of how it was made");
    return report_files_probe(a);
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
    char *json;
    dpi_error err;
    if (a->n_reports == 0)
        return CLI_OK;
    if (dpi_finetune_report(claim, texts, &json, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    const int code = report_files_all(a, json);
    free(json);
    return code;
}
