#include "tools/command/account_training.h"

#include <math.h>
#include <stdio.h>

#include "dpinfer/gaussian.h"
#include "tools/terminal/facts.h"

bool account_training_wanted(const args *a) {
    const option_value *v = a->v;
    return v[OPT_SIGMA].given || v[OPT_SAMPLING].given || v[OPT_STEPS].given;
}

static int check(const args *a) {
    static const option_id others[] = {OPT_RHO,  OPT_N_PREDICT, OPT_BATCH,      OPT_TEMP,
                                       OPT_CLIP, OPT_SUBSAMPLE, OPT_ACCOUNTANT, OPT_ADJACENCY,
                                       OPT_ALLOCATION};
    const option_value *v = a->v;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (v[others[i]].given)
            return cli_fail(CLI_USAGE,
                            "--%s: not allowed with --sigma, --sampling and --steps, "
                            "which are about training",
                            option_name(others[i]));
    if (v[OPT_SIGMA].given == v[OPT_EPSILON].given)
        return cli_fail(CLI_USAGE, "--sigma and --epsilon: allowed is one of them, the other is "
                                   "computed");
    return CLI_OK;
}

/* sigma is that of --sigma, or the smallest for --epsilon by this accountant. */
static dpi_status add_accountant(const args *a, dpi_gaussian *g, const char *name, facts *f,
                                 dpi_error *err) {
    char key[32], label[48];
    double found;
    dpi_status status;
    if (a->v[OPT_SIGMA].given)
        status = dpi_gaussian_epsilon(g, a->v[OPT_DELTA].d, &found, err);
    else
        status = dpi_gaussian_sigma(g, a->v[OPT_EPSILON].d, a->v[OPT_DELTA].d, &found, err);
    if (status != DPI_STATUS_OK)
        return status;
    const char *what = a->v[OPT_SIGMA].given ? "epsilon" : "sigma";
    snprintf(key, sizeof key, "%s_%s", what, name);
    snprintf(label, sizeof label, "%s, %s", what, name);
    if (isfinite(found))
        facts_bound(f, key, label, found);
    return DPI_STATUS_OK;
}

/* A small epsilon can be out of reach of one accountant and not of the other: it is an error where
 * no accountant has a sigma for it. */
static int add_accountants(const args *a, dpi_gaussian *g, facts *f) {
    static const char *const names[] = {"rdp", "pld"};
    dpi_status failed = DPI_STATUS_OK;
    dpi_error err = {0}, reason = {0};
    int n_found = 0;
    for (g->accountant = DPI_GAUSSIAN_RENYI; g->accountant <= DPI_GAUSSIAN_PLD; g->accountant++) {
        const dpi_status status = add_accountant(a, g, names[g->accountant], f, &err);
        n_found += status == DPI_STATUS_OK;
        if (status == DPI_STATUS_OK)
            continue;
        failed = status, reason = err;
        if (status != DPI_STATUS_ARG)
            break;
    }
    if (failed == DPI_STATUS_OK)
        return CLI_OK;
    if (failed != DPI_STATUS_ARG || n_found == 0)
        return cli_fail_library(CLI_USAGE, &reason);
    cli_note("one accountant has no sigma for this: %s", reason.message);
    return CLI_OK;
}

int account_training(const args *a) {
    const option_value *v = a->v;
    int code = check(a);
    if (code != CLI_OK)
        return code;
    dpi_gaussian g;
    dpi_gaussian_init(&g);
    if (v[OPT_SIGMA].given)
        g.sigma = v[OPT_SIGMA].d;
    g.sampling = v[OPT_SAMPLING].d;
    g.n_steps = (int32_t)v[OPT_STEPS].i;
    facts f;
    facts_init(&f);
    if (v[OPT_SIGMA].given)
        facts_real(&f, "sigma", "sigma, noise", g.sigma);
    else
        facts_real(&f, "epsilon", "epsilon", v[OPT_EPSILON].d);
    facts_real(&f, "delta", "delta", v[OPT_DELTA].d);
    facts_real(&f, "sampling", "q, of joining", g.sampling);
    facts_int(&f, "steps", "steps", g.n_steps);
    facts_gap(&f);
    code = add_accountants(a, &g, &f);
    if (code == CLI_OK)
        code = facts_print(&f, v[OPT_JSON].i, stdout);
    facts_free(&f);
    return code;
}
