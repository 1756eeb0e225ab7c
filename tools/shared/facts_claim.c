/* facts_claim.c - see facts_claim.h. */
#include "tools/shared/facts_claim.h"

#include "dpinfer/claim.h"
#include "tools/terminal/cli.h"

int facts_claim(facts *f, const dpi_run *claim) {
    dpi_fact all[DPI_CLAIM_FACTS_MAX];
    size_t n;
    dpi_error err;
    if (dpi_run_facts(claim, all, &n, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    for (size_t i = 0; i < n; i++)
        if (all[i].where & DPI_FACT_STATEMENT)
            facts_add(f, &all[i]);
    return CLI_OK;
}
