/* statement_shown.h - the privacy statement, which goes to stderr. */
#ifndef DPI_STATEMENT_SHOWN_H
#define DPI_STATEMENT_SHOWN_H

#include <stdbool.h>

#include "dpinfer.h"
#include "dpinfer/claim.h"

/* The statement `text`, a string of malloc that is freed here, as it is shown, and `more` lines
 * after it. For free; NULL after a failure, with a message. */
char *statement_shown(char *text, const char *more);
/* The same of a claim; complete: the work has ended. */
char *statement_of_claim(const dpi_claim *claim, bool complete);

/* A statement that is owed to stderr when a command ends with `code`, and freed: that code, or
 * CLI_FAILED where it was CLI_OK; NULL: it could not be made. */
int statement_end(char *shown, int code);

#endif
