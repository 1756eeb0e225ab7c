/* texts_report.c - see texts_report.h. */
#include "tools/shared/texts_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/report_files.h"
#include "tools/terminal/statement_shown.h"

int texts_report_probe(const args *a, bool claimed) {
    if (a->n_reports > 0 && !claimed)
        return cli_fail(CLI_USAGE, "--report: the adapter says nothing of how it was made");
    return report_files_probe(a);
}

/* The statement as it is shown, for free; NULL after a failure. */
static char *make_statement(const dpi_finetune_claim *claim, int32_t n_texts) {
    char *text, more[160];
    dpi_error err;
    if (!claim)
        return strdup("Privacy statement: NOT PRIVATE\n"
                      "  guarantee          none: the adapter says nothing of how it was made\n");
    if (dpi_finetune_statement(claim, &text, &err) != DPI_STATUS_OK) {
        cli_fail_library(CLI_FAILED, &err);
        return NULL;
    }
    snprintf(more, sizeof more, "  texts              %d, by post-processing of this %s, as its "
                                "file says: no further cost\n", (int)n_texts,
             claim->full || claim->merged ? "model" : "adapter");
    return statement_shown(text, more);
}

int texts_report_statement(const dpi_finetune_claim *claim, int32_t n_texts, int code) {
    char *shown = make_statement(claim, n_texts);
    const int written = shown ? statement_write(shown) : CLI_FAILED;
    free(shown);
    return code != CLI_OK ? code : written;
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
