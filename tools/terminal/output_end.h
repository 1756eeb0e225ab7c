/* output_end.h - what a signal that ends the program finds of the outputs (output.h) that are open:
 * for output.c and signals.c. */
#ifndef DPI_OUTPUT_END_H
#define DPI_OUTPUT_END_H

#include <signal.h>

#include "tools/terminal/output.h"

/* Between hold and release no handler runs in this thread, which is the one that they run in. A
 * signal waits that long: nothing there may wait for a reader. */
sigset_t output_hold(void);
void output_release(sigset_t before);
/* Of the outputs that are open, 16 at most; both while signals are held. */
void output_remember(output *o);
void output_forget(const output *o);

/* The temporary file under its name: as a new file, unless the output replaces. 0, or -1 with
 * errno. */
int output_appear(const output *o);
/* A pipe that has room has it for so many bytes. */
size_t output_chunk(size_t n_bytes);
/* Waits so long; -1: for as long as it takes, or a signal. */
bool output_has_room(int fd, int milliseconds);
/* Nothing to a pipe that is full: its reader may be gone for good. */
void output_put(int fd, const char *text, size_t n_bytes);
/* The temporary file. */
bool output_is_empty(const output *o);

/* For handlers of signals that end the program, in the thread that writes: files that may appear
 * do, other temporary ones go. A file that is there already stays as it is: the temporary one is
 * left beside it, and stderr says where. Async-signal-safe. */
void output_end_all(void);
/* To stderr, and async-signal-safe. NULL is nothing. */
void output_say(const char *text);

#endif
