/* texts_report.h - what is said of texts of an adapter: the statement, the files of --report. */
#ifndef DPI_TEXTS_REPORT_H
#define DPI_TEXTS_REPORT_H

#include "dpinfer/finetune.h"
#include "tools/options/options.h"

/* Whether the reports can be written, of an adapter with a claim (claimed). CLI_OK or a code with a
 * message; nothing is left behind. */
int texts_report_probe(const args *a, bool claimed);
/* The statement to stderr; `code`, or CLI_FAILED. claim NULL: the adapter says nothing. */
int texts_report_statement(const dpi_finetune_claim *claim, int32_t n_texts, int code);
/* Writes the reports, when the texts are whole. CLI_OK or CLI_FAILED. */
int texts_report_write(const args *a, const dpi_finetune_claim *claim,
                       const dpi_finetune_texts *texts);

#endif
