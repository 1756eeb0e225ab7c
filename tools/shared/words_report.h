/* words_report.h - the report of perturbed words, and its verification. A report of its own kind:
 * the unit is a word, there is no ledger, and the epsilon that holds follows from the vocabulary.
 */
#ifndef DPI_WORDS_REPORT_H
#define DPI_WORDS_REPORT_H

#include "tools/shared/words_options.h"

/* What was released. Of each document the words that left something in their place. */
typedef struct words_released {
    int64_t n_documents, n_words, longest;
} words_released;

/* Counts one document's words. */
void words_count(words_released *released, const dpi_perturbed_word *words, size_t n);

/* With --report: certifies the mechanism, which may take long, before anything is released.
 * CLI_OK, or a code with a message. */
int words_report_certify(const words_input *in, const dpi_perturber *perturber,
                         dpi_certificate *certificate);
/* Writes the report to the files of --report, if there are any. CLI_OK, or a code with a
 * message. */
int words_report_write(const words_input *in, const dpi_certificate *certificate,
                       const words_released *released);

/* Whether a text is such a report. */
bool words_report_is(const char *text, size_t n_bytes);
/* Checks it: what follows from its own numbers, and with --model or --vectors the certificate,
 * which is computed a second time. Prints the fields. CLI_OK, CLI_FAILED where one does not hold,
 * or CLI_REPORT. */
int words_report_verify(const args *a, const char *text, size_t n_bytes);

#endif
