/* cmd_account.c - `dpinfer account`: what a budget means, without a model or records. */
#include <stdio.h>

#include "tools/command/account_training.h"
#include "tools/command/commands.h"
#include "tools/terminal/facts.h"

static int check(const args *a) {
    const option_value *v = a->v;
    int n = v[OPT_RHO].given + v[OPT_EPSILON].given + v[OPT_DELTA].given;
    if (!v[OPT_RHO].given && !v[OPT_EPSILON].given)
        return cli_fail(CLI_USAGE, "give --rho, or --epsilon with --delta, or --rho and --epsilon");
    if (n == 3)
        return cli_fail(CLI_USAGE, "--rho, --epsilon and --delta: allowed are two of them, the "
                                   "third is computed");
    n = v[OPT_N_PREDICT].given + v[OPT_BATCH].given + v[OPT_TEMP].given;
    if (n != 0 && n != 3)
        return cli_fail(CLI_USAGE, "-n, -B and --temp: allowed are all three, or none");
    if (n == 0 && (v[OPT_CLIP].given || v[OPT_SUBSAMPLE].given || v[OPT_ACCOUNTANT].given ||
                   v[OPT_ADJACENCY].given))
        return cli_fail(CLI_USAGE, "--accountant, --adjacency, --clip and --subsample need -n, -B "
                                   "and --temp");
    if (v[OPT_TEMP].d == 0)
        return cli_fail(CLI_USAGE, "--temp: found '0', allowed 0.01..100");
    if (v[OPT_ALLOCATION].given && v[OPT_RHO].given && (v[OPT_EPSILON].given || n == 3))
        return cli_fail(CLI_USAGE, "--allocation: allowed with one of --rho and --epsilon, and for "
                                   "a plan with --epsilon");
    return CLI_OK;
}

/* Any two of rho, epsilon, delta give the third; a lone one goes with the default delta. */
static int solve(const args *a, double *rho, double *epsilon, double *delta) {
    const option_value *v = a->v;
    *rho = v[OPT_RHO].d;
    *epsilon = v[OPT_EPSILON].d;
    *delta = v[OPT_DELTA].d;
    dpi_error err;
    dpi_status status;
    const int32_t k = v[OPT_ALLOCATION].given ? (int32_t)v[OPT_ALLOCATION].i : 0;
    if (k > 0 && v[OPT_RHO].given)
        status = dpi_allocation_epsilon(*rho, k, *delta, epsilon, &err);
    else if (k > 0)
        status = dpi_allocation_rho(*epsilon, *delta, k, rho, &err);
    else if (v[OPT_RHO].given && v[OPT_EPSILON].given)
        status = dpi_zcdp_delta(*rho, *epsilon, delta, &err);
    else if (v[OPT_RHO].given)
        status = dpi_zcdp_epsilon(*rho, *delta, epsilon, &err);
    else
        status = dpi_zcdp_rho(*epsilon, *delta, rho, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_USAGE, &err);
}

/* What the accounting options and the budget come to. */
static int make_options(const args *a, double rho, double epsilon, double delta,
                        dpi_sampler_options *made) {
    dpi_sampler_options options;
    dpi_sampler_options_init(&options);
    int code = options_parameters(a, &options);
    options.n_vocab = 2; /* any: the cost does not depend on it */
    options.top_k = 0;
    options.n_ref = options.denominator;
    /* The smallest deltas have no epsilon within the accountant's range. */
    options.delta = delta < 1 ? delta : 0;
    bool in_epsilon = options.accountant == DPI_ACCOUNTANT_BR || options.subsample > 0 ||
                      options.allocation > 0;
    options.rho = in_epsilon ? 0 : rho;
    options.epsilon = in_epsilon ? epsilon : 0;
    *made = options;
    return code;
}

/* C of every accountant for the same budget, and how much that is of what zCDP gives where it is
 * known which batch a record is in. What cannot be computed (exact composition of too many tokens)
 * is left out. */
static int add_comparison(facts *f, dpi_sampler_options options, double epsilon) {
    const char *const *names = dpi_method_parameter_find(options.method, "accountant")->choices;
    const dpi_sampler_options given = options;
    const bool has_secret = given.subsample > 0 || given.allocation > 0;
    const char *what = given.allocation > 0 ? "secret" : "subsample";
    dpi_sampler_plan base;
    dpi_error err;
    double rho;
    dpi_sampler_plan_init(&base);
    options.clip = 0;
    if (dpi_zcdp_rho(epsilon, options.delta, &rho, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    for (int secret = 0; secret <= has_secret; secret++)
        for (int32_t i = DPI_ACCOUNTANT_ZCDP; i <= DPI_ACCOUNTANT_FILTER; i++) {
            dpi_sampler_plan plan;
            dpi_sampler_plan_init(&plan);
            const bool in_epsilon = secret || i == DPI_ACCOUNTANT_BR;
            options.accountant = i;
            options.subsample = secret ? given.subsample : 0;
            options.allocation = secret ? given.allocation : 0;
            options.rho = in_epsilon ? 0 : rho;
            options.epsilon = in_epsilon ? epsilon : 0;
            if (dpi_sampler_plan_make(&options, &plan, NULL) != DPI_STATUS_OK)
                continue;
            if (i == DPI_ACCOUNTANT_ZCDP && !secret)
                base = plan;
            char key[40], label[40];
            snprintf(key, sizeof key, "C_%s%s%s", names[i], secret ? "_" : "", secret ? what : "");
            snprintf(label, sizeof label, "C, %s%s", names[i],
                     !secret                ? ""
                     : given.allocation > 0 ? " with k"
                                            : " with q");
            facts_json(f, key, json_real(plan.clip));
            facts_line(f, label, "%.10g%s", plan.clip,
                       i == DPI_ACCOUNTANT_FILTER ? ", until a record's budget is used up" : "");
            if (base.clip > 0 && i != DPI_ACCOUNTANT_FILTER && plan.clip != base.clip) {
                snprintf(key, sizeof key, "gain_%s%s%s", names[i], secret ? "_" : "",
                         secret ? what : "");
                facts_real(f, key, "   gain over zcdp", plan.clip / base.clip);
            }
        }
    return CLI_OK;
}

static int add_plan(const args *a, double rho, double epsilon, double delta, facts *f) {
    dpi_sampler_options options;
    dpi_sampler_plan plan;
    dpi_sampler_plan_init(&plan);
    dpi_error err;
    int code = make_options(a, rho, epsilon, delta, &options);
    if (code != CLI_OK)
        return code;
    if (dpi_sampler_plan_make(&options, &plan, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    facts_text(f, "adjacency", "adjacency", a->v[OPT_ADJACENCY].s);
    facts_int(f, "T", "T, tokens a text", options.n_tokens);
    facts_int(f, "B", "B, slots a text", options.n_ref);
    facts_real(f, "tau", "tau, temperature", options.tau);
    if (options.subsample > 0)
        facts_real(f, "subsample", "q, of joining", options.subsample);
    if (options.allocation > 0)
        facts_int(f, "allocation", "k, secret batches", options.allocation);
    facts_real(f, "C", "C, clip bound", plan.clip);
    facts_int(f, "K", "K, C as integer", plan.K);
    facts_int(f, "a", "a, 1/tau as integer", (int64_t)plan.a);
    facts_bound(f, "eta", "eta, range a token", plan.eta);
    facts_bound(f, "rho_token", "rho, of one token", plan.rho_token);
    facts_bound(f, "rho_total", dpi_rho_label(&options), plan.rho_total);
    if (plan.delta > 0)
        facts_bound(f, "epsilon_realised", "epsilon, realised", plan.epsilon);
    facts_gap(f);
    return plan.delta > 0 ? add_comparison(f, options, epsilon) : CLI_OK;
}

static int account_main(const args *a) {
    if (account_training_wanted(a))
        return account_training(a);
    double rho, epsilon, delta;
    int code = check(a);
    if (code == CLI_OK)
        code = solve(a, &rho, &epsilon, &delta);
    if (code != CLI_OK)
        return code;
    facts f;
    facts_init(&f);
    facts_text(&f, "accounting", "accounting",
               dpi_accountant_text((int32_t)a->v[OPT_ACCOUNTANT].i));
    if (a->v[OPT_ALLOCATION].given)
        facts_int(&f, "batches", "secret batches", a->v[OPT_ALLOCATION].i);
    facts_real(&f, "rho", a->v[OPT_ALLOCATION].given ? "rho, of a text" : "rho", rho);
    facts_bound(&f, "epsilon", "epsilon", epsilon);
    facts_bound(&f, "delta", "delta", delta);
    if (a->v[OPT_N_PREDICT].given)
        code = add_plan(a, rho, epsilon, delta, &f);
    if (code == CLI_OK)
        code = facts_print(&f, a->v[OPT_JSON].i, stdout);
    facts_free(&f);
    return code;
}

const command command_account = {
    .name = "account", .bit = CMD_ACCOUNT, .arguments = "", .run = account_main,
    .summary = "rho, epsilon, delta, and the clip bound that they allow",
    .details =
        "Computes the third of rho, epsilon and delta:\n"
        "  --rho R [--delta D]      epsilon\n"
        "  --epsilon E [--delta D]  rho\n"
        "  --rho R --epsilon E      delta\n"
        "With -n, -B and --temp also what InvisibleInk makes of the budget: the clip bound C\n"
        "and the integers K and a that the sampler uses, and what they cost exactly; with\n"
        "--accountant, --subsample and --allocation as they count. Below that, C of every\n"
        "accountant for the same budget.\n"
        "With --allocation K rho is that of a text, and epsilon that of K texts whose batches\n"
        "stay secret.\n"
        "\nTraining with Gaussian noise on random samples, by two accountants (rdp, pld):\n"
        "  --sigma S --sampling Q --steps N [--delta D]    epsilon\n"
        "  --epsilon E --sampling Q --steps N [--delta D]  the smallest sigma\n"
        "Upper bounds are rounded up.\n",
};
