/* signals.h - what becomes of a run that a signal stops. */
#ifndef DPI_SIGNALS_H
#define DPI_SIGNALS_H

#include "tools/terminal/cli.h"

/* SIGINT, SIGTERM, SIGHUP and SIGUSR1 finish the token; a second one, and every other signal that
 * ends a program, ends this one at once: files that may appear do (output.h), and no temporary one
 * stays. */
void signals_catch(void);
/* A stopping signal ends a call of the system that waits, or not (as after signals_catch). */
void signals_interrupt(bool on);
/* Every signal that ends a program ends this one at once, in the same way. */
void signals_clean_up(void);
/* For every command, in its first thread: SIGBUS, which a mapped model file raises that has become
 * shorter, ends the program in the same way, with a message and CLI_FAILED. */
void signals_begin(void);
/* What is printed to stderr, after the reason, when the program cannot go on: after SIGBUS, or
 * without memory for jansson. The exit code is CLI_FAILED then. `words` is a string of malloc,
 * which is freed when others take its place; NULL: nothing is printed. */
void signals_last_words(char *words);

/* malloc of private memory for jansson, which goes on with what it did not get: it loses bytes of a
 * record or of a result. Without memory the program ends here. */
void *signals_json_malloc(size_t n_bytes);

/* FFTW calls it without memory for a plan, and ends the program after it: it ends here, in
 * order. */
__attribute__((visibility("default"))) void fftw_assertion_failed(const char *condition, int line,
                                                                   const char *file);

/* The run is to stop when so many seconds are over, whatever becomes of the time of day. */
void signals_stop_after(double seconds);
/* The signal that has asked to stop; 0: none. */
int signals_stop(void);
/* The exit code of a run that was stopped: 128 and the signal, or CLI_STOPPED. */
int signals_code(void);
/* The same as a dpi_cancel_fn. */
int32_t signals_cancel(void *user);

#endif
