/* facts_claim.h - what a claim says, as facts of a command. */
#ifndef DPI_FACTS_CLAIM_H
#define DPI_FACTS_CLAIM_H

#include "dpinfer/run.h"
#include "tools/terminal/facts.h"

/* Those of its statement. CLI_OK, or CLI_FAILED with a message. */
int facts_claim(facts *f, const dpi_run *claim);

#endif
