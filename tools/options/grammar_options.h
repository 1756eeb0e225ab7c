/* grammar_options.h - the form of texts: --grammar and --json-schema. */
#ifndef DPI_GRAMMAR_OPTIONS_H
#define DPI_GRAMMAR_OPTIONS_H

#include "dpinfer/grammar.h"
#include "tools/options/options.h"

/* *grammar is that of the options, the caller's, also after a failure; NULL: there is none. CLI_OK
 * or CLI_USAGE with a message. */
int grammar_options_read(const args *a, dpi_grammar **grammar);

#endif
