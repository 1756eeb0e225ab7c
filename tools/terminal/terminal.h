/* terminal.h - text of others on a terminal: what would steer it is shown, not sent. */
#ifndef DPI_TERMINAL_H
#define DPI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* The text with control characters (C0, DEL, C1), bidirectional overrides and bytes that are not
 * UTF-8 as \x1b or \u202e, a string that the caller frees with free. keep_lines: line feeds and
 * tabs stay. NULL if out of memory. */
char *terminal_text(const char *text, size_t n_bytes, bool keep_lines, size_t *n_escaped);

#endif
