/* probe_journal.h - jobs of the mutant: a release that ends and goes on. */
#ifndef PROBE_JOURNAL_H
#define PROBE_JOURNAL_H

#include "dpinfer/release.h"

/* NULL, or what is wrong. The files are made in `folder`. */
const char *probe_journal(const char *folder);

#endif
