/* cmd_ledger.c - `dpinfer ledger`: what all runs about a dataset have cost. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/command/commands.h"
#include "tools/command/ledger_units.h"
#include "tools/options/ledger_options.h"
#include "tools/options/paths.h"
#include "tools/terminal/facts.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/terminal.h"

static double real(int64_t amount) { return (double)amount / DPI_LEDGER_ONE; }

/* How many runs like the last one what is left pays for; -1: there was none. */
static int64_t runs_left(const dpi_dataset_info *info) {
    return info->last > 0 ? info->left / info->last : -1;
}

/* ---- For programs ---------------------------------------------------------------------------- */

/* What is open is null. */
static json_t *json_of_unit(const dpi_privacy_unit *u) {
    static const char *const units[] = {"id", "record"};
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "adjacency",
                     u->adjacency >= 0 ? json_string(dpi_adjacency_name(u->adjacency))
                                       : json_null(),
                     "unit", u->is_record >= 0 ? json_string(units[u->is_record]) : json_null(),
                     "record",
                     u->record_kind > 0 ? json_string(dpi_record_kind_text(u->record_kind))
                                        : json_null(),
                     "unit_field", u->unit_field[0] ? facts_string(u->unit_field) : json_null(),
                     "max_per_unit",
                     u->max_per_unit > 0 ? json_integer(u->max_per_unit) : json_null());
}

static json_t *json_of_charge(const dpi_charge *c) {
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:f, s:I, s:I, s:b}", "id", (json_int_t)c->id,
                     "date", facts_string(c->date), "method", facts_string(c->method), "note",
                     facts_string(c->note), "cost", facts_string(c->cost), "amount",
                     real(c->amount), "amount_units", (json_int_t)c->amount, "before_units",
                     (json_int_t)c->before, "counted", c->counted);
}

static json_t *json_of_dataset(const dpi_dataset_info *d) {
    const int64_t n_runs = runs_left(d);
    return json_pack(
        "{s:o, s:s, s:f, s:f, s:i, s:o, s:o, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f, s:o, s:o}",
        "name",
        facts_string(d->name), "scope", dpi_scope_name(d->scope), "epsilon", d->epsilon, "delta",
        d->delta, "order", d->order, "opened", facts_string(d->opened), "closed",
        d->closed[0] ? facts_string(d->closed) : json_null(), "budget", real(d->budget), "charged",
        real(d->charged), "left", real(d->left), "budget_units", (json_int_t)d->budget,
        "charged_units", (json_int_t)d->charged, "left_units", (json_int_t)d->left, "n_charges",
        (json_int_t)d->n_charges, "epsilon_charged", d->epsilon_charged, "runs_like_last",
        n_runs < 0 ? json_null() : json_integer(n_runs), "protects", json_of_unit(&d->unit));
}

/* ---- For people ------------------------------------------------------------------------------ */

/* Words of others, without what would steer a terminal. */
static int print_words(const char *format, const char *words) {
    size_t n;
    char *shown = terminal_text(words, strlen(words), false, &n);
    if (!shown)
        return cli_no_memory("the ledger");
    printf(format, shown);
    free(shown);
    return CLI_OK;
}

static void print_bound(const char *label, int64_t amount, const char *rest) {
    char text[40];
    dpi_bound_text(real(amount), 7, text, sizeof text);
    printf("  %-10s %s%s\n", label, text, rest);
}

static int print_dataset(const dpi_dataset_info *d) {
    const bool unit = d->scope == DPI_SCOPE_UNIT;
    char epsilon[40], whom[2 * DPI_UNIT_FIELD_MAX];
    dpi_bound_text(d->epsilon_charged, 5, epsilon, sizeof epsilon);
    const size_t n_whom = dpi_privacy_unit_text(&d->unit, whom, sizeof whom);
    int code = print_words("dataset %s\n", d->name);
    printf("  %-10s (%g, %g)-DP for %s, in all runs together\n", "budget", d->epsilon, d->delta,
           unit ? "each unit" : "the dataset");
    printf("  %-10s %s\n", "scope",
           unit ? "unit: each unit pays for the runs that it is in, and is null when it cannot"
                : "dataset: all units pay for every run");
    code |= print_words("  protects   %s\n",
                        n_whom > 0 ? whom : "whom the first charge says: it fixes that for all");
    printf("  %-10s Renyi divergence of order %d, of which %.7g may be charged\n", "currency",
           d->order, real(d->budget));
    code |= print_words("  opened     %s\n", d->opened);
    if (d->closed[0])
        code |= print_words("  closed     %s\n", d->closed);
    print_bound("charged", d->charged, unit ? ", to a unit that was in every run" : "");
    printf("  %-10s epsilon %s at delta %g%s\n", "so far", epsilon, d->delta,
           unit ? ", at most" : "");
    printf("  %-10s %.7g%s\n", "left", real(d->left), unit ? ", for a new unit" : "");
    if (runs_left(d) >= 0)
        printf("  %-10s %" PRId64 "\n", "runs left", runs_left(d));
    return code;
}

static int print_charge(const dpi_charge *c) {
    char amount[40];
    dpi_bound_text(real(c->amount), 6, amount, sizeof amount);
    printf("  %6" PRId64 "  ", c->id);
    int code = print_words("%-20s  ", c->date);
    printf("%12s  ", c->counted ? amount : "given back");
    code |= print_words("%-12s  ", c->method);
    code |= print_words("%s\n", c->note);
    return code;
}

/* ---- show, budget ---------------------------------------------------------------------------- */

static int show_charges(dpi_ledger *ledger, const dpi_dataset_info *info, json_t *list) {
    dpi_charge c;
    dpi_error err;
    dpi_charge_init(&c);
    for (;;) {
        const dpi_status status = dpi_ledger_charge_next(ledger, info->name, c.id, &c, &err);
        if (status != DPI_STATUS_OK)
            return ledger_fail(status, &err);
        if (c.id == 0)
            return CLI_OK;
        if (list && json_array_append_new(list, json_of_charge(&c)) != 0)
            return cli_no_memory("the charges");
        if (!list && c.before == 0 && c.counted)
            printf("\n  %6s  %-20s  %12s  %-12s  %s\n", "id", "date", "charge", "method", "what");
        if (!list && print_charge(&c) != CLI_OK)
            return CLI_FAILED;
    }
}

static int show_dataset(dpi_ledger *ledger, const dpi_dataset_info *info, bool with_charges,
                        json_t *all) {
    json_t *object = all ? json_of_dataset(info) : NULL, *list = all ? json_array() : NULL;
    if (all && (!object || !list || json_array_append_new(all, object) != 0 ||
                (with_charges && json_object_set(object, "charges", list) != 0))) {
        json_decref(list);
        return cli_no_memory("the dataset");
    }
    int code = all ? CLI_OK : print_dataset(info);
    if (with_charges && code == CLI_OK)
        code = show_charges(ledger, info, list);
    json_decref(list);
    return code;
}

static int show_datasets(const args *a, dpi_ledger *ledger, bool with_charges, json_t *all) {
    dpi_dataset_info info;
    dpi_error err;
    int code = CLI_OK;
    dpi_dataset_info_init(&info);
    if (a->v[OPT_DATASET].given) {
        const dpi_status status = dpi_ledger_info(ledger, a->v[OPT_DATASET].s, &info, &err);
        return status == DPI_STATUS_OK ? show_dataset(ledger, &info, with_charges, all)
                                       : ledger_fail(status, &err);
    }
    for (int32_t i = 0; code == CLI_OK; i++) {
        const dpi_status status = dpi_ledger_info_at(ledger, i, &info, &err);
        if (status != DPI_STATUS_OK)
            return ledger_fail(status, &err);
        if (!info.name[0])
            break;
        if (i > 0 && !all)
            printf("\n");
        code = show_dataset(ledger, &info, with_charges, all);
    }
    return code;
}

static int show(const args *a, dpi_ledger *ledger, bool with_charges) {
    json_t *all = a->v[OPT_JSON].i ? json_array() : NULL;
    int code = show_datasets(a, ledger, with_charges, all);
    if (all && code == CLI_OK) {
        json_t *object = json_pack("{s:f, s:O}", "units_of_one", DPI_LEDGER_ONE, "datasets", all);
        const size_t ascii = isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0; /* names of others */
        char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17) | ascii)
                            : NULL;
        if (text)
            printf("%s\n", text);
        else
            code = cli_no_memory("the ledger");
        dpi_private_free(text);
        json_decref(object);
    }
    json_decref(all);
    return code;
}

/* ---- init, charge, close --------------------------------------------------------------------- */

/* What the options say of whom is protected: nothing is whom the dataset protects. CLI_OK, or an
 * exit code with a message. */
static int read_unit(const args *a, dpi_privacy_unit *u) {
    const option_value *v = a->v;
    dpi_privacy_unit_init(u);
    if (v[OPT_ADJACENCY].given)
        u->adjacency = (int32_t)v[OPT_ADJACENCY].i;
    if (v[OPT_MAX_PER_UNIT].given)
        u->max_per_unit = (int32_t)v[OPT_MAX_PER_UNIT].i;
    if (!v[OPT_UNIT_FIELD].given)
        return CLI_OK;
    if (!v[OPT_UNIT_FIELD].s[0] || strlen(v[OPT_UNIT_FIELD].s) > DPI_UNIT_FIELD_MAX)
        return cli_fail(CLI_USAGE, "--unit-field: found %zu bytes, allowed 1..%d",
                        strlen(v[OPT_UNIT_FIELD].s), DPI_UNIT_FIELD_MAX);
    u->is_record = 0;
    snprintf(u->unit_field, sizeof u->unit_field, "%s", v[OPT_UNIT_FIELD].s);
    return CLI_OK;
}

static int init(const args *a, dpi_ledger *ledger) {
    dpi_dataset_options o;
    dpi_error err;
    dpi_dataset_options_init(&o);
    o.name = a->v[OPT_DATASET].s;
    o.epsilon = a->v[OPT_EPSILON].d;
    o.delta = a->v[OPT_DELTA].d;
    o.scope = (int32_t)a->v[OPT_SCOPE].i;
    const int code = read_unit(a, &o.unit);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_ledger_add(ledger, &o, &err);
    return status == DPI_STATUS_OK ? show(a, ledger, false) : ledger_fail(status, &err);
}

static dpi_status read_cost(const args *a, dpi_cost *cost, dpi_error *err) {
    const option_value *v = a->v;
    const int32_t n = (int32_t)v[OPT_STEPS].i;
    dpi_cost_init(cost);
    if (v[OPT_RHO].given)
        return dpi_cost_add(cost, DPI_COST_ZCDP, n, v[OPT_RHO].d, 0, err);
    if (v[OPT_PURE].given)
        return dpi_cost_add(cost, DPI_COST_PURE, n, v[OPT_PURE].d, 0, err);
    return dpi_cost_add(cost, DPI_COST_GAUSSIAN, n, v[OPT_SIGMA].d, v[OPT_SAMPLING].d, err);
}

/* The file of the payers is opened first, and is there when the charge is. */
static int charge_units(const args *a, dpi_ledger *ledger, const char *dataset,
                        dpi_charge_request *r) {
    ledger_units u = {.text = NULL};
    output out = {.fd = -1};
    dpi_error err;
    umask(077); /* who can pay is private */
    int code = ledger_units_read(a->v[OPT_UNIT_IDS].s, &u);
    if (code == CLI_OK)
        code = output_open(&out, a->v[OPT_PAYERS].s, false);
    if (code == CLI_OK)
        code = output_reserve(&out, u.n_text);
    r->units = &u.units;
    if (code == CLI_OK) {
        const dpi_status status = dpi_ledger_reserve(ledger, dataset, r, NULL, &err);
        code = status == DPI_STATUS_OK ? ledger_units_write(&u, &out) : ledger_fail(status, &err);
    }
    code = output_finish(&out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
    ledger_units_free(&u);
    return code;
}

static int charge(const args *a, dpi_ledger *ledger) {
    char dataset[DPI_DATASET_NAME_MAX + 1];
    dpi_dataset_info info;
    dpi_charge_request r;
    dpi_cost cost;
    dpi_error err;
    int code = ledger_dataset(a, ledger, dataset);
    if (code != CLI_OK)
        return code;
    dpi_charge_request_init(&r);
    dpi_dataset_info_init(&info);
    r.cost = &cost;
    r.method = "outside";
    r.note = a->v[OPT_NOTE].s;
    dpi_status status = read_cost(a, &cost, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_ledger_info(ledger, dataset, &info, &err);
    if (status != DPI_STATUS_OK)
        return ledger_fail(status, &err);
    code = read_unit(a, &r.unit);
    if (code != CLI_OK)
        return code;
    if ((info.scope == DPI_SCOPE_UNIT) != a->v[OPT_UNIT_IDS].given)
        return info.scope == DPI_SCOPE_UNIT
                   ? cli_fail(CLI_USAGE, "the dataset '%s' has the scope unit: --unit-ids says "
                              "whom the charge is about, and --payers where those are told that "
                              "can pay", dataset)
                   : cli_fail(CLI_USAGE, "--unit-ids: the dataset '%s' has the scope dataset, so "
                              "that all units pay", dataset);
    if (a->v[OPT_UNIT_IDS].given) {
        code = charge_units(a, ledger, dataset, &r);
        return code == CLI_OK ? show(a, ledger, false) : code;
    }
    status = dpi_ledger_reserve(ledger, dataset, &r, NULL, &err);
    return status == DPI_STATUS_OK ? show(a, ledger, false) : ledger_fail(status, &err);
}

static int seal(const args *a, dpi_ledger *ledger) {
    char dataset[DPI_DATASET_NAME_MAX + 1];
    dpi_error err;
    const int code = ledger_dataset(a, ledger, dataset);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_ledger_seal(ledger, dataset, &err);
    return status == DPI_STATUS_OK ? show(a, ledger, false) : ledger_fail(status, &err);
}

/* ---- The command ----------------------------------------------------------------------------- */

typedef enum action { INIT, SHOW, BUDGET, CHARGE, CLOSE, N_ACTIONS } action;
static const struct {
    const char *name, *help;
} actions[N_ACTIONS] = {
    {"init", "make the ledger, or add a dataset to it: --dataset, --epsilon, --delta; whom it "
             "protects: --adjacency, --unit-field, --max-per-unit"},
    {"show", "datasets and all charges"},
    {"budget", "datasets: spent, left, and how many runs like the last one that pays for"},
    {"charge", "count what was done outside: --rho, --pure-epsilon or --sigma. With scope unit "
               "before it is done: --unit-ids names the units, --payers those that pay"},
    {"close", "nothing can be charged any more"},
};

static bool action_at(int i, const char **name, const char **help) {
    if (i < N_ACTIONS)
        *name = actions[i].name, *help = actions[i].help;
    return i < N_ACTIONS;
}

static int check(const args *a, action what) {
    const option_value *v = a->v;
    const int n_costs = v[OPT_RHO].given + v[OPT_PURE].given + v[OPT_SIGMA].given;
    if (what == INIT && (!v[OPT_DATASET].given || !v[OPT_EPSILON].given || !v[OPT_DELTA].given))
        return cli_fail(CLI_USAGE, "init needs --dataset, --epsilon and --delta");
    if (what != INIT && (v[OPT_EPSILON].given || v[OPT_DELTA].given || v[OPT_SCOPE].given))
        return cli_fail(CLI_USAGE, "--epsilon, --delta and --scope are allowed only with init%s",
                        what == CHARGE
                            ? ": an epsilon with a delta bounds no Renyi divergence; give "
                              "--rho, --pure-epsilon or --sigma"
                            : "");
    if (what == CHARGE ? n_costs != 1 : n_costs > 0)
        return cli_fail(CLI_USAGE,
                        "--rho, --pure-epsilon and --sigma: charge needs one of them, and "
                        "nothing else takes them");
    if (what != CHARGE && (v[OPT_NOTE].given || v[OPT_STEPS].given || v[OPT_SAMPLING].given))
        return cli_fail(CLI_USAGE, "--note, --steps and --sampling are allowed only with charge");
    if (v[OPT_UNIT_IDS].given != v[OPT_PAYERS].given ||
        (what != CHARGE && v[OPT_UNIT_IDS].given))
        return cli_fail(CLI_USAGE, "--unit-ids and --payers: allowed only with charge, and both");
    if (v[OPT_PAYERS].given && strcmp(v[OPT_PAYERS].s, "-") == 0)
        return cli_fail(CLI_USAGE,
                        "--payers: found '-', allowed is a file: who can pay is private");
    if (what != INIT && what != CHARGE &&
        (v[OPT_ADJACENCY].given || v[OPT_UNIT_FIELD].given || v[OPT_MAX_PER_UNIT].given))
        return cli_fail(CLI_USAGE, "--adjacency, --unit-field and --max-per-unit are allowed only "
                        "with init and charge");
    if (v[OPT_MAX_PER_UNIT].given && !v[OPT_UNIT_FIELD].given)
        return cli_fail(CLI_USAGE, "--max-per-unit needs --unit-field");
    if (v[OPT_SAMPLING].given && !v[OPT_SIGMA].given)
        return cli_fail(CLI_USAGE, "--sampling needs --sigma");
    return CLI_OK;
}

static int do_action(const args *a, action what, dpi_ledger *ledger) {
    switch (what) {
    case INIT:
        return init(a, ledger);
    case CHARGE:
        return charge(a, ledger);
    case CLOSE:
        return seal(a, ledger);
    default:
        return show(a, ledger, what == SHOW);
    }
}

static int ledger_main(const args *a) {
    int what = 0;
    if (a->n_positional < 2)
        return cli_fail(CLI_USAGE, "no %s given; see 'dpinfer ledger -h'",
                        a->n_positional == 0 ? "ACTION" : "LEDGER");
    while (what < N_ACTIONS && strcmp(actions[what].name, a->positional[0]) != 0)
        what++;
    if (what == N_ACTIONS)
        return cli_fail(CLI_USAGE, "ACTION: found '%s', allowed init|show|budget|charge|close",
                        a->positional[0]);
    paths p = {0};
    int code = check(a, (action)what);
    paths_options(&p, a);
    paths_read(&p, a->positional[1]);
    if (code == CLI_OK)
        code = paths_check(&p, false);
    if (code != CLI_OK)
        return code;
    signals_clean_up();
    dpi_ledger_options o;
    dpi_ledger *ledger;
    dpi_error err;
    dpi_ledger_options_init(&o);
    o.create = what == INIT;
    o.read_only = what == SHOW || what == BUDGET;
    const dpi_status status = dpi_ledger_open(a->positional[1], &o, &ledger, &err);
    if (status != DPI_STATUS_OK)
        return ledger_fail(status, &err);
    code = do_action(a, (action)what, ledger);
    dpi_ledger_close(ledger);
    return code;
}

const command command_ledger = {
    .name = "ledger",
    .bit = CMD_LEDGER,
    .arguments = "ACTION LEDGER",
    .max_positional = 2,
    .run = ledger_main,
    .names = action_at,
    .summary = "a budget over many runs: what is spent, what is left",
    .details =
        "A ledger is a file that counts what all runs about a dataset cost, however many there\n"
        "are. 'run --ledger LEDGER' charges it before a record is read, and is refused with exit\n"
        "code 6 where the budget does not allow it.\n"
        "All charges of a dataset protect the same: each record, or all records with one ID, in\n"
        "the same field, with the same adjacency. init fixes it, or the first charge; a charge\n"
        "that protects anyone else is refused with exit code 2. One from outside that does not\n"
        "say it is taken to protect whom the dataset does.\n"
        "Charges are Renyi divergences of one order, which adds up over runs that are chosen one\n"
        "after the other. The ledger belongs on a local disk; a copy of it is another budget.\n",
};
