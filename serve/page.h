/* page.h - the page of GET /: one file, which is part of the program (page.html). */
#ifndef DPI_SERVE_PAGE_H
#define DPI_SERVE_PAGE_H

#include <stdbool.h>
#include <stddef.h>

enum { PAGE_POLICY_MAX = 320 };

/* The page as a string. Static. */
const char *page_text(void);
/* What it may do, as Content-Security-Policy says it: its own style and script, by their hashes,
 * and requests to its own server. False: it has none of them. */
bool page_policy(char policy[PAGE_POLICY_MAX]);

#endif
