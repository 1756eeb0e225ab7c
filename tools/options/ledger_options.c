/* ledger_options.c - see ledger_options.h. */
#include "tools/options/ledger_options.h"

#include <stdio.h>
#include <string.h>

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
    const dpi_status status = dpi_ledger_open(a->v[OPT_LEDGER].s, &o, ledger, &err);
    return status == DPI_STATUS_OK ? ledger_dataset(a, *ledger, dataset)
                                   : ledger_fail(status, &err);
}

/* ---- Which smaller job would fit ------------------------------------------------------------- */

/* Whether the run with another budget, rho or epsilon, fits into what is left. */
static bool fits(const dpi_claim *claim, const dpi_dataset_info *info, double rho,
                 double epsilon) {
    dpi_claim smaller = *claim;
    dpi_sampler_options *o = &smaller.method;
    dpi_cost cost;
    double divergence;
    o->rho = rho;
    o->epsilon = epsilon;
    return dpi_sampler_plan_make(o, &smaller.plan, NULL) == DPI_STATUS_OK &&
           dpi_claim_cost(&smaller, &cost, NULL) == DPI_STATUS_OK &&
           dpi_cost_renyi(&cost, info->order, &divergence, NULL) == DPI_STATUS_OK &&
           divergence * DPI_LEDGER_ONE <= (double)info->left - 1;
}

/* A number that is at most x, in three digits. */
static double three_digits(double x) {
    char text[40];
    double found = 0;
    snprintf(text, sizeof text, "%.2e", x * .995);
    sscanf(text, "%lf", &found);
    return found;
}

/* The largest that was found: 0 if none was. What fits in zCDP is known; other accountants spend
 * more at the same epsilon. */
static double find_budget(const dpi_claim *claim, const dpi_dataset_info *info) {
    const bool with_rho = claim->method.rho > 0;
    const double share = claim->method.subsample > 0 ? .5 : .93;
    double rho = (double)info->left / DPI_LEDGER_ONE / info->order, budget = rho;
    if (!(rho > 0) ||
        (!with_rho && dpi_zcdp_epsilon(rho, claim->method.delta, &budget, NULL) != DPI_STATUS_OK))
        return 0;
    for (int i = 0; i < 8; i++, budget *= share) {
        const double found = three_digits(budget);
        if (fits(claim, info, with_rho ? found : 0, with_rho ? 0 : found))
            return found;
    }
    return 0;
}

int ledger_fail_budget(dpi_ledger *ledger, const char *dataset, const dpi_claim *claim,
                       const dpi_error *err) {
    dpi_dataset_info info;
    double found = 0;
    dpi_dataset_info_init(&info);
    if (dpi_ledger_info(ledger, dataset, &info, NULL) == DPI_STATUS_OK)
        found = find_budget(claim, &info);
    const int code = cli_fail_library(CLI_BUDGET, err);
    if (found > 0)
        cli_note("no record was read. The same run with --%s %g would fit",
                 claim->method.rho > 0 ? "rho" : "epsilon", found);
    else
        cli_note("no record was read. No smaller budget of this run would fit");
    return code;
}
