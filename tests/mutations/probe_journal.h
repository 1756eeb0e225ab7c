/* probe_journal.h - jobs of the mutant: a release that ends and goes on. */
#ifndef PROBE_JOURNAL_H
#define PROBE_JOURNAL_H

#include "dpinfer/release.h"

/* NULL, or what is wrong. Files are made in `folder`; a model of its own among them. */
const char *probe_journal(const dpi_model *model, const char *folder);

#endif
