/* cmd_audit.c - `dpinfer audit`: tries to catch this program leaking, on this machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "tools/command/commands.h"
#include "tools/options/paths.h"
#include "tools/options/release_options.h"
#include "tools/terminal/facts.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"

typedef struct audit {
    bool json; /* nothing on stdout but the JSON at the end */
    double seconds;
    json_t *results;
    bool failed; /* out of memory */
} audit;

/* A bound as JSON: null if there is none. */
static json_t *bound(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static void bounds_text(const dpi_audit_result *r, char *text, size_t size) {
    if (isinf(r->min))
        snprintf(text, size, "<= %.6g", r->max);
    else if (isinf(r->max))
        snprintf(text, size, ">= %.6g", r->min);
    else
        snprintf(text, size, "%.6g..%.6g", r->min, r->max);
}

static void print_result(const dpi_audit_result *r) {
    char bounds[48], measured[32];
    bounds_text(r, bounds, sizeof bounds);
    snprintf(measured, sizeof measured, "%.9g", r->measured);
    printf("%-8s  %-46s  %-28s  %12s  %-17s  %7.2f  %s\n", r->audit, r->subject, r->quantity,
           measured, bounds, r->seconds, r->passed ? "pass" : "FAIL");
    if (r->n_looks > 1)
        printf("%10sthe first look was suspicious: looked again, with four times the draws\n", "");
    if (!r->passed)
        printf("%10s%s\n", "", r->failure);
    fflush(stdout);
}

static void add_result(void *user, const dpi_audit_result *r) {
    audit *x = user;
    x->seconds += r->seconds;
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:i, s:b, s:s?, s:f}", "audit", r->audit,
                  "subject", r->subject, "quantity", r->quantity, "measured", bound(r->measured),
                  "min", bound(r->min), "max", bound(r->max), "cases", (json_int_t)r->n_cases,
                  "looks", (int)r->n_looks, "passed", r->passed, "failure", r->failure, "seconds",
                  r->seconds);
    if (json_array_append_new(x->results, row) != 0)
        x->failed = true;
    if (!x->json)
        print_result(r);
}

static void describe(facts *f, const dpi_model_info *info, const dpi_audit_options *o) {
    facts_text(f, "program", NULL, "dpinfer");
    facts_text(f, "version", NULL, dpi_version());
    facts_text(f, "model", NULL, info->name);
    facts_text(f, "weight_types", NULL, info->weight_types);
    facts_int(f, "n_params", NULL, info->n_params);
    facts_int(f, "seed", NULL, (int64_t)o->seed);
    facts_real(f, "effort", NULL, o->effort);
    facts_real(f, "false_alarm", NULL, o->false_alarm);
}

static int write_report(facts *f, const args *a) {
    output out;
    int code = output_open(&out, a->v[OPT_AUDIT_REPORT].s, a->v[OPT_OVERWRITE].i);
    if (code != CLI_OK)
        return code;
    char *text = facts_dump(f);
    if (!text)
        code = cli_fail(CLI_FAILED, "out of memory while writing the report");
    else if ((code = output_write(&out, text, strlen(text))) == CLI_OK)
        code = output_write(&out, "\n", 1);
    dpi_private_free(text);
    return output_finish(&out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
}

static int run_audits(const args *a, const dpi_audit_options *options, audit *x, facts *f) {
    int32_t n_failed;
    dpi_error err;
    if (!x->json)
        printf("%-8s  %-46s  %-28s  %12s  %-17s  %7s  %s\n", "audit", "of", "measured", "value",
               "bounds", "seconds", "verdict");
    if (dpi_audit_run(options, add_result, x, &n_failed, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    const int n = (int)json_array_size(x->results);
    if (!x->json)
        printf("%d of %d passed in %.1f s\n", n - n_failed, n, x->seconds);
    facts_bool(f, "passed", NULL, n_failed == 0);
    facts_json(f, "results", json_incref(x->results));
    f->failed |= x->failed;
    int code = x->json ? facts_print(f, true, stdout) : CLI_OK;
    if (code == CLI_OK && a->v[OPT_AUDIT_REPORT].given)
        code = write_report(f, a);
    if (code == CLI_OK && n_failed > 0)
        code = cli_fail(CLI_FAILED, "%d of %d audits failed", (int)n_failed, n);
    return code;
}

/* The folder that audits write files in, in $TMPDIR or /tmp. It is empty again when the audit
 * ends. */
static int make_folder(char *path, size_t size) {
    const char *parent = getenv("TMPDIR");
    const int n =
        snprintf(path, size, "%s/dpinfer-audit-XXXXXX", parent && *parent ? parent : "/tmp");
    if (n < 0 || (size_t)n >= size || !mkdtemp(path))
        return cli_fail(CLI_FAILED, "cannot make a folder for files of made-up records: %s", path);
    return CLI_OK;
}

static int check_report(const args *a) {
    const char *path = a->v[OPT_AUDIT_REPORT].s;
    const int code = paths_check_command(a);
    return code == CLI_OK && path ? output_probe(path) : code;
}

static int audit_main(const args *a) {
    signals_clean_up();
    dpi_audit_options options;
    dpi_model_options model_options;
    dpi_model *model;
    dpi_model_info info;
    dpi_audit_options_init(&options);
    options.seed = (uint64_t)a->v[OPT_AUDIT_SEED].i;
    options.effort = a->v[OPT_EFFORT].d;
    int code = read_session_options(a, &options.session);
    if (code == CLI_OK)
        code = check_report(a);
    if (code != CLI_OK)
        return code;
    dpi_model_options_init(&model_options);
    model_options.use_mmap = !a->v[OPT_NO_MMAP].i;
    code = cli_open_model(a->model, &model_options, &model, &info);
    if (code != CLI_OK)
        return code;
    options.model = model;
    audit x = {.json = a->v[OPT_JSON].i, .results = json_array()};
    facts f;
    facts_init(&f);
    describe(&f, &info, &options);
    char folder[4096];
    code = make_folder(folder, sizeof folder);
    options.folder = folder;
    if (code == CLI_OK) {
        code = run_audits(a, &options, &x, &f);
        rmdir(folder);
    }
    facts_free(&f);
    json_decref(x.results);
    dpi_model_close(model);
    return code;
}

const command command_audit = {
    .name = "audit",
    .bit = CMD_AUDIT,
    .arguments = "MODEL",
    .takes_model = 1,
    .run = audit_main,
    .summary = "try to catch this program leaking, on this machine",
    .details =
        "Plays made-up records against the code that writes texts, and the model's logits against\n"
        "each other, and holds what one record changes to what is claimed:\n"
        "  loss      the distribution of the next token and what plans charge, from inside; the\n"
        "            model's logits, bit for bit\n"
        "  draws     random bits, and the laws of tokens and noise\n"
        "  game      an attacker who reads the texts of many runs\n"
        "  canaries  the same of one run, and of one training\n"
        "  releases  whole releases, from made-up files to texts, and their neighbours\n"
        "No record of yours is read. The exit code is 1 if an audit fails. Draws come from the\n"
        "operating system: a statistical line that is suspicious is looked at again, with four\n"
        "times the draws. It fails by bad luck once in a billion runs. dp/PRIVACY.md says what\n"
        "audits cannot show.\n",
};
