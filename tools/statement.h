/* statement.h - the privacy statement of a run, in one place for stderr and for --report. */
#ifndef DPI_STATEMENT_H
#define DPI_STATEMENT_H

#include "tools/facts.h"
#include "tools/job.h"

/* Everything that the guarantee rests on. It holds public values only: nothing in it depends on
 * what is in a record. `plan` shows the same before a run. */
void statement_add(facts *f, const job *j);

/* "0.5-zCDP, and so (5.2, 1e-06)-DP", or only the second where no zCDP is claimed. Rounded up. */
void statement_guarantee(const job *j, char *text, size_t size);
bool statement_is_zcdp(const dpi_sampler_options *options);

/* Static strings. Of a dpi_method, for people. */
const char *statement_method(int32_t method);
/* Of a dpi_adjacency: its name on the command line. */
const char *statement_adjacency(int32_t adjacency);
/* What is exchanged. The null slots of amin are its own (dp/PRIVACY.md). */
const char *statement_adjacency_text(const dpi_sampler_options *options);
/* How the texts of a run, and runs, add up. */
const char *statement_composition(const job *j);
/* How a dpi_accountant counts, in words. */
const char *statement_accounting(int32_t accountant);
/* What plan.rho_total is, in a label. */
const char *statement_rho_label(const dpi_sampler_options *options);

#endif
