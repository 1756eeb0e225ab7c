/* cmd_verify.c - `dpinfer verify`: the sections of a report that follow from its parameters, made a
 * second time. The report comes from anywhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dpinfer/augpe.h"
#include "dpinfer/finetune.h"
#include "dpinfer/report.h"
#include "tools/command/commands.h"
#include "tools/options/ledger_options.h"
#include "tools/shared/signature.h"
#include "tools/shared/verdict.h"
#include "tools/shared/words_report.h"

/* More than any report has; the library says what is allowed. */
enum { REPORT_BYTES_MAX = 1 << 22 };

static void add_field(verdict *d, const dpi_verified_field *f) {
    if (f->verdict == DPI_VERDICT_GIVEN)
        verdict_add(d, VERDICT_GIVEN, f->path, "recorded %s", f->recorded);
    else
        verdict_add(d, f->verdict == DPI_VERDICT_WRONG ? VERDICT_WRONG : VERDICT_OK, f->path,
                    "recorded %s, computed %s", f->recorded, f->computed);
}

static int show_of(const args *a, const dpi_verification *v, const char *hashed,
                   const char *not_hashed) {
    verdict d;
    const int code = verdict_open(&d, a);
    if (code != CLI_OK)
        return code;
    for (size_t i = 0; i < v->n_fields; i++)
        add_field(&d, &v->fields[i]);
    const char *ledger = a->v[OPT_LEDGER].given ? a->v[OPT_LEDGER].s : "";
    return verdict_tell(&d, v->label,
                        "%zu fields follow from the parameters, as recorded%s%s%s%s%s%s", v->n_ok,
                        v->model_hashed ? hashed : not_hashed,
                        v->output_hashed ? "; the output is the one that was written" : "",
                        a->v[OPT_KEY].given ? "; signed with the key" : "", ledger[0] ? "; " : "",
                        ledger, ledger[0] ? " has its charge" : "");
}

static int show(const args *a, const dpi_verification *v) {
    return show_of(a, v, "; the model is the one named",
                   "; the model was not looked at (--model FILE)");
}

/* CLI_OK, or CLI_USAGE where an option is given that a report of this kind has no use for: what was
 * not looked at must not seem verified. `uses`: of these options, ended by N_OPTIONS. */
static int check_uses(const args *a, const char *kind, const option_id *uses) {
    static const option_id all[] = {OPT_VERIFIED, OPT_LORA, OPT_VECTORS, OPT_LEDGER, OPT_MODEL};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const option_id *use = uses;
        while (*use != N_OPTIONS && *use != all[i])
            use++;
        if (*use == N_OPTIONS && a->v[all[i]].given)
            return cli_fail(CLI_USAGE, "--%s: not looked at in %s", option_name(all[i]), kind);
    }
    return CLI_OK;
}

/* Of texts of an adapter. */
static int verify_texts(const args *a, const char *text, size_t n_bytes) {
    dpi_verification v;
    dpi_error err;
    dpi_verification_init(&v);
    static const option_id uses[] = {OPT_VERIFIED, OPT_LORA, OPT_MODEL, N_OPTIONS};
    const int fits = check_uses(a, "a report of generate", uses);
    if (fits != CLI_OK)
        return fits;
    const char *adapter = a->v[OPT_LORA].given ? a->v[OPT_LORA].s : a->model;
    const dpi_status status = dpi_finetune_report_verify(text, n_bytes, adapter,
                                                         a->v[OPT_VERIFIED].s, &v, &err);
    const int code =
        status == DPI_STATUS_OK
            ? show_of(a, &v, "; the adapter is the one named",
                      "; the adapter was not looked at (--lora FILE)")
            : cli_fail_library(status == DPI_STATUS_IO ? CLI_FAILED : CLI_REPORT, &err);
    dpi_verification_free(&v);
    return code;
}

/* ---- Reports --------------------------------------------------------------------------------- */

static int open_ledger(const args *a, dpi_ledger **ledger) {
    dpi_ledger_options o;
    dpi_error err;
    dpi_ledger_options_init(&o);
    o.read_only = 1;
    const dpi_status status = dpi_ledger_open(a->v[OPT_LEDGER].s, &o, ledger, &err);
    return status == DPI_STATUS_OK ? CLI_OK : ledger_fail(status, &err);
}

/* A report of augpe. */
static int verify_augpe(const args *a, const char *text, size_t n_bytes) {
    dpi_ledger *ledger = NULL;
    dpi_verification v;
    dpi_error err;
    dpi_verification_init(&v);
    static const option_id uses[] = {OPT_VERIFIED, OPT_LEDGER, OPT_MODEL, N_OPTIONS};
    int code = check_uses(a, "a report of augpe", uses);
    if (code == CLI_OK && a->v[OPT_LEDGER].given)
        code = open_ledger(a, &ledger);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_augpe_report_verify(text, n_bytes, a->model,
                                                      a->v[OPT_VERIFIED].s, ledger, &v, &err);
    if (status == DPI_STATUS_OK)
        code = show(a, &v);
    else
        code = cli_fail_library(status == DPI_STATUS_FORMAT || status == DPI_STATUS_LIMIT
                                    ? CLI_REPORT
                                : status == DPI_STATUS_IO && a->model ? CLI_MODEL
                                                                      : CLI_FAILED, &err);
    dpi_ledger_close(ledger);
    dpi_verification_free(&v);
    return code;
}

static int verify_words(const args *a, const char *text, size_t n_bytes) {
    static const option_id uses[] = {OPT_VECTORS, OPT_MODEL, N_OPTIONS};
    const int code = check_uses(a, "a report of perturbed words", uses);
    return code == CLI_OK ? words_report_verify(a, text, n_bytes) : code;
}

/* *other: the code of a report of another kind, which was verified here; else -1. */
static int parse(const args *a, dpi_report **report, int *other) {
    const char *path = a->positional[0];
    char *text;
    size_t n_bytes;
    dpi_error err;
    if (!cli_read_path(path, REPORT_BYTES_MAX, &text, &n_bytes))
        return cli_fail(cli_read_code(CLI_REPORT), "cannot read %s: %s", path, cli_read_reason());
    *other = words_report_is(text, n_bytes)       ? verify_words(a, text, n_bytes)
             : dpi_augpe_report_is(text, n_bytes) ? verify_augpe(a, text, n_bytes)
             : dpi_finetune_report_is(text, n_bytes) ? verify_texts(a, text, n_bytes)
                                                     : -1;
    const dpi_status status =
        *other < 0 ? dpi_report_parse(path, text, n_bytes, report, &err) : DPI_STATUS_OK;
    dpi_private_free(text);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_REPORT, &err);
}

/* The signature before what it signs. */
static int check_signature(const args *a) {
    const char *path = a->positional[0];
    if (!a->v[OPT_KEY].given)
        return a->v[OPT_SIGNATURE].given ? cli_fail(CLI_USAGE, "--signature needs --key") : CLI_OK;
    if (strcmp(path, "-") == 0)
        return cli_fail(CLI_USAGE, "--key: allowed with a file, found standard input");
    if (a->v[OPT_SIGNATURE].given)
        return signature_check(a->v[OPT_KEY].s, path, a->v[OPT_SIGNATURE].s);
    char *name = signature_name(path);
    if (!name)
        return CLI_FAILED;
    const int code = signature_check(a->v[OPT_KEY].s, path, name);
    free(name);
    return code;
}

static int check_ledger(const args *a, const dpi_report *report) {
    dpi_ledger *ledger;
    dpi_error err;
    const int code = open_ledger(a, &ledger);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_report_find_charge(report, ledger, &err);
    dpi_ledger_close(ledger);
    if (status != DPI_STATUS_OK)
        return ledger_fail(status, &err);
    return CLI_OK;
}

/* ---- Adapters -------------------------------------------------------------------------------- */

/* Of a pipe no byte may be read here: the report would lack it. */
static bool is_adapter(const char *path) {
    char magic[4] = "";
    struct stat st;
    FILE *file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
    const bool is = file && fread(magic, sizeof magic, 1, file) == 1 &&
                    memcmp(magic, "GGUF", sizeof magic) == 0;
    if (file)
        fclose(file);
    return is;
}

static int verify_adapter(const args *a) {
    dpi_verification v;
    dpi_error err;
    verdict d;
    dpi_verification_init(&v);
    int code = verdict_open(&d, a);
    if (code == CLI_OK && dpi_finetune_verify(a->positional[0], &v, &err) != DPI_STATUS_OK)
        code = cli_fail_library(CLI_REPORT, &err);
    for (size_t i = 0; i < v.n_fields && code == CLI_OK; i++)
        add_field(&d, &v.fields[i]);
    if (code == CLI_OK)
        code = verdict_tell(&d, v.label, "the guarantee follows from the parameters, as recorded");
    else
        verdict_close(&d);
    dpi_verification_free(&v);
    return code;
}

static int verify_main(const args *a) {
    if (a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no REPORT given; see 'dpinfer verify -h'");
    dpi_report *report = NULL;
    dpi_verification v;
    dpi_verification_init(&v);
    dpi_error err;
    int code = check_signature(a), other = -1;
    static const option_id none[] = {N_OPTIONS}, of_run[] = {OPT_VERIFIED, OPT_LEDGER, OPT_MODEL,
                                                            N_OPTIONS};
    if (code == CLI_OK && is_adapter(a->positional[0])) {
        code = check_uses(a, "an adapter", none);
        return code == CLI_OK ? verify_adapter(a) : code;
    }
    if (code == CLI_OK)
        code = parse(a, &report, &other);
    if (code != CLI_OK)
        return code;
    if (other >= 0)
        return other;
    code = check_uses(a, "a report of run", of_run);
    if (code != CLI_OK) {
        dpi_report_free(report);
        return code;
    }
    const dpi_status status = dpi_report_verify(report, a->model, a->v[OPT_VERIFIED].s, &v, &err);
    if (status != DPI_STATUS_OK)
        code = cli_fail_library(status == DPI_STATUS_IO && a->model ? CLI_MODEL : CLI_FAILED, &err);
    if (code == CLI_OK && v.n_wrong == 0 && a->v[OPT_LEDGER].given)
        code = check_ledger(a, report);
    if (code == CLI_OK)
        code = show(a, &v);
    dpi_verification_free(&v);
    dpi_report_free(report);
    return code;
}

const command command_verify = {
    .name = "verify", .bit = CMD_VERIFY, .arguments = "REPORT", .max_positional = 1,
    .run = verify_main,
    .summary = "compute the statement of a report again",
    .details =
        "Takes the JSON that 'run --report' wrote (-: standard input) and computes everything in\n"
        "it that follows from its parameters a second time, without the model and the records.\n"
        "The first line is the verdict. Fields that do not hold follow, as recorded and as\n"
        "computed; with --verbose all of them. With --model FILE the hashes of the model\n"
        "are checked too, with --output FILE that of the texts, with --key FILE the signature\n"
        "(REPORT.sig, by 'run --sign'; ssh-keygen -Y checks it as well), with --ledger FILE that\n"
        "the ledger has its charge, which an earlier copy of it has not. Exit code 1 if a field\n"
        "does not hold, 5 if it is not a report.\n"
        "A report of 'augpe' is verified in the same way. "
        "Of a report of perturbed words (perturb --report) what follows from its numbers is\n"
        "checked, and with --model or --vectors its certificate is computed a second time.\n\n"
        "Of a report of texts of an adapter (generate --report) epsilon is computed again, and\n"
        "with --lora FILE (or --model FILE, after finetune --full) the adapter is hashed and its\n"
        "claim compared.\n\n"
        "An adapter of 'finetune' may stand for a report: its epsilon is computed again, and its\n"
        "numbers are hashed.\n\n"
        "'given' are the parameters, and what only the operator can vouch for: that the run took\n"
        "place in this way, with this program. A NOT PRIVATE report is verified as such.\n",
};
