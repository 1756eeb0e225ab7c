/* cmd_statistic.c - `dpinfer statistic`: numbers of records, by a mechanism that releases them by
 * itself. What each takes is in the library's registry. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "dpinfer/report.h"
#include "dpinfer/statistic.h"
#include "tools/command/commands.h"
#include "tools/options/ledger_options.h"
#include "tools/options/nearest.h"
#include "tools/options/paths.h"
#include "tools/options/records_options.h"
#include "tools/shared/report_files.h"
#include "tools/terminal/facts.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/statement_shown.h"

/* What the command has open. */
typedef struct counting {
    const args *a;
    dpi_ledger *ledger;
    char dataset[DPI_DATASET_NAME_MAX + 1];
    dpi_records *records;
    dpi_statistic *statistic;
    const char *keys[MAX_OWN], *values[MAX_OWN];
    output out;
} counting;

/* ---- Options --------------------------------------------------------------------------------- */

static const dpi_parameter *find_option(int32_t mechanism, const char *option) {
    const dpi_parameter *p;
    for (int32_t i = 0; (p = dpi_mechanism_parameter_get(mechanism, i)) != NULL; i++)
        if (strcmp(p->option, option) == 0)
            return p;
    return NULL;
}

static bool name_at(int i, const char **name, const char **help) {
    dpi_mechanism_info m;
    for (int32_t id = 0; id < dpi_mechanism_count(); id++) {
        dpi_mechanism_info_get(id, &m);
        if (m.is_statistic && i-- == 0) {
            *name = m.name, *help = m.help;
            return true;
        }
    }
    return false;
}

static const char *one_name(const void *user, int i) {
    const char *name, *help;
    (void)user;
    return name_at(i, &name, &help) ? name : NULL;
}

/* Its id, or -1 with a message. */
static int32_t find_statistic(const char *word) {
    dpi_mechanism_info m;
    const int32_t id = dpi_mechanism_find(word);
    if (id >= 0)
        dpi_mechanism_info_get(id, &m);
    if (id >= 0 && m.is_statistic)
        return id;
    const char *meant = nearest_name(word, one_name, NULL);
    cli_fail(CLI_USAGE, "'%s' is not a statistic%s%s%s; see 'dpinfer statistic -h'", word,
             meant ? ": did you mean " : "", meant ? meant : "", meant ? "?" : "");
    return -1;
}

static int read_values(counting *c) {
    const args *a = c->a;
    if (a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no NAME of a statistic given; see 'dpinfer statistic -h'");
    const int32_t id = find_statistic(a->positional[0]);
    if (id < 0)
        return CLI_USAGE;
    for (int i = 0; i < a->n_own; i++) {
        const dpi_parameter *p = find_option(id, a->own[i].option);
        if (!p)
            return cli_fail(CLI_USAGE, "--%s: %s has no such parameter", a->own[i].option,
                            a->positional[0]);
        for (int k = 0; k < i; k++)
            if (c->keys[k] == p->key)
                return cli_fail(CLI_USAGE, "--%s is given more than once", p->option);
        c->keys[i] = p->key, c->values[i] = a->own[i].text;
    }
    if (a->v[OPT_TUNE_PLAN].i == (a->n_positional > 1))
        return cli_fail(CLI_USAGE, a->v[OPT_TUNE_PLAN].i
                                       ? "--plan reads no RECORDS; say how many with --records N"
                                       : "no RECORDS given; see 'dpinfer statistic -h'");
    if (a->v[OPT_RECORDS].given && !a->v[OPT_TUNE_PLAN].i)
        return cli_fail(CLI_USAGE, "--records N needs --plan; without it RECORDS are counted");
    return CLI_OK;
}

static int open_statistic(counting *c) {
    const args *a = c->a;
    dpi_statistic_options o;
    dpi_error err;
    dpi_statistic_options_init(&o);
    o.mechanism = a->positional[0];
    o.keys = c->keys, o.values = c->values, o.n_values = a->n_own;
    o.delta = a->v[OPT_DELTA].d;
    o.records = c->records, o.n_records = a->v[OPT_RECORDS].i;
    o.seeded = a->v[OPT_SEED].given, o.seed = (uint64_t)a->v[OPT_SEED].i;
    o.ledger = c->ledger, o.dataset = c->dataset;
    return dpi_statistic_open(&o, &c->statistic, &err) == DPI_STATUS_OK
               ? CLI_OK
               : cli_fail_option(CLI_USAGE, &err);
}

/* ---- What is written ------------------------------------------------------------------------- */

/* The numbers are paid for: what a file does not take goes to standard output. */
static int write_numbers(counting *c, const int64_t *numbers, int32_t n) {
    char name[160];
    facts f;
    facts_init(&f);
    for (int32_t i = 0; i < n; i++) {
        dpi_statistic_name(c->statistic, i, name, sizeof name);
        facts_int(&f, name, NULL, numbers[i]);
        fprintf(f.stream, "%" PRId64 "\t%s\n", numbers[i], name);
    }
    char *json = facts_dump(&f);
    int code = json && !f.failed && fflush(f.stream) == 0 ? CLI_OK : cli_no_memory("a statistic");
    const bool as_json = c->a->v[OPT_JSON].i || cli_ends_in(c->a->v[OPT_OUTPUT].s, ".json");
    const char *text = as_json ? json : f.text;
    c->out.appears = true;
    if (code == CLI_OK)
        code = output_write(&c->out, text, strlen(text));
    if (code == CLI_OK && as_json)
        code = output_write(&c->out, "\n", 1);
    code = output_finish(&c->out, OUTPUT_APPEARS, code);
    if (code != CLI_OK && text && strcmp(c->a->v[OPT_OUTPUT].s, "-") != 0)
        fputs(text, stdout);
    dpi_private_free(json);
    facts_free(&f);
    return code;
}

static int write_report(counting *c) {
    const char *out = c->a->v[OPT_OUTPUT].s;
    dpi_report *report;
    dpi_error err;
    if (c->a->n_reports == 0)
        return CLI_OK;
    if (dpi_report_of(dpi_statistic_claim(c->statistic), NULL, NULL, &report, &err) !=
        DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    const dpi_status status = strcmp(out, "-") != 0
                                  ? dpi_report_output_file(report, out, 0, -1, &err)
                                  : DPI_STATUS_OK;
    const int code = status == DPI_STATUS_OK ? report_files_all(c->a, report)
                                             : cli_fail_library(CLI_FAILED, &err);
    dpi_report_free(report);
    return code;
}

static int write_statement(const counting *c, int code) {
    return statement_end(statement_of_claim(dpi_statistic_claim(c->statistic), code == CLI_OK),
                         code);
}

/* ---- All ------------------------------------------------------------------------------------- */

static int open_all(counting *c) {
    const args *a = c->a;
    dpi_records_options records;
    int code = read_values(c);
    if (code == CLI_OK)
        code = paths_check_command(a);
    if (code == CLI_OK)
        code = records_options(a, &records);
    if (code == CLI_OK)
        code = ledger_options_open(a, a->v[OPT_TUNE_PLAN].i, &c->ledger, c->dataset);
    if (code == CLI_OK && a->n_positional > 1)
        code = records_open(a->positional[1], &records, &c->records);
    if (code == CLI_OK)
        code = open_statistic(c);
    if (code == CLI_OK)
        code = report_files_probe(a);
    return code == CLI_OK ? output_open(&c->out, a->v[OPT_OUTPUT].s, a->v[OPT_OVERWRITE].i) : code;
}

static int release(counting *c) {
    const int64_t *numbers = NULL;
    int32_t n = 0;
    dpi_error err;
    const dpi_status status = dpi_statistic_reserve(c->statistic, &err);
    if (status != DPI_STATUS_OK)
        return ledger_fail(status, &err);
    int code = dpi_statistic_release(c->statistic, &numbers, &n, &err) == DPI_STATUS_OK
                   ? write_numbers(c, numbers, n)
                   : cli_fail_library(CLI_FAILED, &err);
    const int reported = code == CLI_OK ? write_report(c) : CLI_OK;
    return write_statement(c, code == CLI_OK ? reported : code);
}

static int statistic_main(const args *a) {
    counting c = {.a = a, .out = {.fd = -1}};
    signals_clean_up(); /* there is nothing to finish */
    int code = open_all(&c);
    if (code == CLI_OK)
        code = a->v[OPT_TUNE_PLAN].i ? write_statement(&c, CLI_OK) : release(&c);
    const int closed = output_close(&c.out, OUTPUT_DROPPED);
    dpi_statistic_free(c.statistic);
    dpi_records_close(c.records);
    dpi_ledger_close(c.ledger);
    return code == CLI_OK ? closed : code;
}

const command command_statistic = {
    .name = "statistic",
    .bit = CMD_STATISTIC,
    .arguments = "NAME RECORDS",
    .max_positional = 2,
    .run = statistic_main,
    .names = name_at,
    .summary = "numbers of records, with exact noise",
    .details =
        "Releases numbers of RECORDS (a folder of .txt files, a .jsonl or a .csv) with exact "
        "noise.\n"
        "NAME says which; each has options of its own, told below with its name before them.\n"
        "The statement goes to stderr; --report writes it, and 'dpinfer verify' computes it again."
        "\n"
        "--ledger is charged before a record is read. --plan tells the guarantee and reads "
        "nothing.\n",
};
