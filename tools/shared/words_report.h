/* words_report.h - the report of perturbed words. */
#ifndef DPI_WORDS_REPORT_H
#define DPI_WORDS_REPORT_H

#include "tools/shared/words_options.h"

/* With --report: certifies the mechanism, which may take long, before anything is released.
 * CLI_OK, or a code with a message. */
int words_report_certify(const words_input *in, const dpi_perturber *perturber,
                         dpi_certificate *certificate);
/* Writes the report to the files of --report, if there are any. CLI_OK, or a code with a
 * message. */
int words_report_write(const words_input *in, const dpi_certificate *certificate,
                       const dpi_words_released *released);
/* The first n_words of --vectors, else of --model, measured. Both are the caller's, also after a
 * failure. CLI_OK, or a code with a message. */
int words_report_vocabulary(const args *a, int32_t n_words, dpi_model **model,
                            dpi_vocabulary **vocabulary);

#endif
