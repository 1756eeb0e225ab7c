/* statement.h - the privacy statement of a run, in one place for stderr and for --report. */
#ifndef DPI_STATEMENT_H
#define DPI_STATEMENT_H

#include "facts.h"
#include "job.h"

/* Everything that the guarantee rests on. It holds public values only: nothing in it depends on
 * what is in a record. `plan` shows the same before a run. */
void statement_add(facts *f, const job *j);

/* How a dpi_accountant counts, in words. */
const char *statement_accounting(int32_t accountant);
/* What plan.rho_total is, in a label. */
const char *statement_rho_label(const dpi_sampler_options *options);

#endif
