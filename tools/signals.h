/* signals.h - what becomes of a run that a signal stops. */
#ifndef DPI_SIGNALS_H
#define DPI_SIGNALS_H

#include "tools/cli.h"

/* SIGINT, SIGTERM and SIGHUP finish the token; a second one, and every other signal that ends a
 * program, ends this one at once: files that may appear do (output.h), and no temporary one stays. */
void signals_catch(void);
/* Every signal that ends a program ends this one at once, in the same way. */
void signals_clean_up(void);
/* SIGBUS, which a mapped model file raises that has become shorter, prints last_words to stderr and
 * exits with CLI_FAILED. The string must stay until the program ends. */
void signals_catch_bus(const char *last_words);

/* The signal that has asked to stop; 0: none. */
int signals_stop(void);
/* The same as a dpi_cancel_fn. */
int32_t signals_cancel(void *user);

#endif
