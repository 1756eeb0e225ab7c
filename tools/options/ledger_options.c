/* ledger_options.c - see ledger_options.h. */
#include "tools/options/ledger_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dpinfer/suggest.h"

int ledger_fail(dpi_status status, const dpi_error *err) {
    return cli_fail_option(status == DPI_STATUS_BUDGET ? CLI_BUDGET
                           : status == DPI_STATUS_ARG || status == DPI_STATUS_UNSUPPORTED
                               ? CLI_USAGE
                               : CLI_FAILED,
                           err);
}

int ledger_dataset(const args *a, dpi_ledger *ledger, char name[DPI_DATASET_NAME_MAX + 1]) {
    dpi_dataset_info first, second;
    dpi_error err;
    dpi_dataset_info_init(&first);
    dpi_dataset_info_init(&second);
    if (a->v[OPT_DATASET].given && strlen(a->v[OPT_DATASET].s) > DPI_DATASET_NAME_MAX)
        return cli_fail(CLI_USAGE, "--dataset: found %zu bytes, allowed 1..%d",
                        strlen(a->v[OPT_DATASET].s), DPI_DATASET_NAME_MAX);
    if (a->v[OPT_DATASET].given) {
        snprintf(name, DPI_DATASET_NAME_MAX + 1, "%s", a->v[OPT_DATASET].s);
        return CLI_OK;
    }
    dpi_status status = dpi_ledger_info_at(ledger, 0, &first, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_ledger_info_at(ledger, 1, &second, &err);
    if (status != DPI_STATUS_OK)
        return ledger_fail(status, &err);
    if (!first.name[0])
        return cli_fail(CLI_USAGE, "the ledger has no dataset; 'dpinfer ledger init' adds one");
    if (second.name[0])
        return cli_fail(CLI_USAGE, "the ledger has more than one dataset: give --dataset NAME");
    memcpy(name, first.name, sizeof first.name);
    return CLI_OK;
}

int ledger_options_open(const args *a, bool read_only, dpi_ledger **ledger,
                        char dataset[DPI_DATASET_NAME_MAX + 1]) {
    dpi_ledger_options o;
    dpi_error err;
    if (!a->v[OPT_LEDGER].given)
        return a->v[OPT_DATASET].given ? cli_fail(CLI_USAGE, "--dataset needs --ledger") : CLI_OK;
    dpi_ledger_options_init(&o);
    o.read_only = read_only;
    const char *path = a->v[OPT_LEDGER].s;
    const dpi_status status = dpi_ledger_open(path, &o, ledger, &err);
    if (status == DPI_STATUS_OK)
        return ledger_dataset(a, *ledger, dataset);
    const int code = ledger_fail(status, &err);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        cli_note("advice: 'dpinfer ledger init %s --dataset NAME --epsilon E --delta D' makes it",
                 path);
    return code;
}

int ledger_fail_budget(dpi_ledger *ledger, const char *dataset, const dpi_run *claim,
                       const dpi_error *err) {
    dpi_dataset_info info;
    double found = 0;
    dpi_dataset_info_init(&info);
    if (dpi_ledger_info(ledger, dataset, &info, NULL) == DPI_STATUS_OK)
        found = dpi_suggest_budget(claim, &info);
    const int code = cli_fail_library(CLI_BUDGET, err);
    if (found > 0)
        cli_note("no record was read. The same run with --%s %g would fit",
                 claim->method.rho > 0 ? "rho" : "epsilon", found);
    else
        cli_note("no record was read. No smaller budget of this run would fit");
    return code;
}
