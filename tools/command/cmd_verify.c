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

/* CLI_OK, or CLI_USAGE where an option is given that a report of this kind has no use for: what was
 * not looked at must not seem verified. `uses`: of these options, ended by N_OPTIONS. */
static int check_uses(const args *a, const char *kind, const option_id *uses) {
    static const option_id all[] = {OPT_VERIFIED, OPT_LORA,   OPT_STEER,
                                    OPT_VECTORS,  OPT_LEDGER, OPT_MODEL};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const option_id *use = uses;
        while (*use != N_OPTIONS && *use != all[i])
            use++;
        if (*use == N_OPTIONS && a->v[all[i]].given)
            return cli_fail(CLI_USAGE, "--%s: not looked at in %s", option_name(all[i]), kind);
    }
    return CLI_OK;
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

static int parse(const args *a, dpi_report **report) {
    const char *path = a->positional[0];
    char *text;
    size_t n_bytes;
    dpi_error err;
    if (!cli_read_path(path, REPORT_BYTES_MAX, &text, &n_bytes))
        return cli_fail(cli_read_code(CLI_REPORT), "cannot read %s: %s", path, cli_read_reason());
    const dpi_status status = dpi_report_parse(path, text, n_bytes, report, &err);
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
    dpi_claim claim;
    dpi_error err;
    verdict d;
    dpi_verification_init(&v);
    int code = verdict_open(&d, a);
    if (code == CLI_OK &&
        dpi_claim_verify_file(a->positional[0], &claim, &v, &err) != DPI_STATUS_OK)
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

/* ---- One report ------------------------------------------------------------------------------ */

/* Texts about records that were drawn with vectors of them: claims of both. */
static bool is_steered_run(const dpi_claim *c) {
    dpi_sampler_options o;
    return dpi_claim_find(c, "steering") && dpi_claim_sampler(c, &o);
}

/* What the options can be held against, by what the claim has: words have a vocabulary, what was
 * trained a file, work on a dataset a charge. */
static int check_options(const args *a, const dpi_claim *c) {
    static const option_id of_words[] = {OPT_VECTORS, OPT_MODEL, N_OPTIONS};
    static const option_id of_trained[] = {OPT_VERIFIED, OPT_LORA, OPT_MODEL, N_OPTIONS};
    static const option_id of_vectors[] = {OPT_VERIFIED, OPT_STEER, N_OPTIONS};
    static const option_id of_steered[] = {OPT_VERIFIED, OPT_LEDGER, OPT_MODEL, OPT_STEER,
                                           N_OPTIONS};
    static const option_id of_records[] = {OPT_VERIFIED, OPT_LEDGER, OPT_MODEL, N_OPTIONS};
    if (dpi_claim_find(c, "words"))
        return check_uses(a, "a report of perturbed words", of_words);
    if (is_steered_run(c))
        return check_uses(a, "a report of run --steer", of_steered);
    if (dpi_claim_find(c, "steering"))
        return check_uses(a, "a report of generate --steer", of_vectors);
    return dpi_claim_find(c, "gradients") ? check_uses(a, "a report of generate", of_trained)
                                            : check_uses(a, "a report of run or augpe", of_records);
}

/* The certificate of the vocabulary at hand. */
static int check_words(const args *a, const dpi_report *report, dpi_verification *v) {
    const dpi_claim *c = dpi_report_claimed(report);
    dpi_vocabulary *vocabulary = NULL;
    dpi_model *model = NULL;
    dpi_claim found;
    dpi_error err;
    const double n_words = dpi_claim_value(dpi_claim_find(c, "words"), "vocabulary_words");
    int code = words_report_vocabulary(a, (int32_t)n_words, &model, &vocabulary);
    if (code == CLI_OK) {
        dpi_status status = dpi_perturb_certify_claim(vocabulary, c, &found, &err);
        if (status == DPI_STATUS_OK)
            status = dpi_report_compare_claim(report, &found, v, &err);
        if (status != DPI_STATUS_OK)
            code = cli_fail_library(CLI_FAILED, &err);
    }
    dpi_vocabulary_free(vocabulary);
    dpi_model_close(model);
    return code;
}

static int show(const args *a, const dpi_claim *c, const dpi_verification *v) {
    if (dpi_claim_find(c, "words"))
        return show_of(a, v, "", a->model || a->v[OPT_VECTORS].given
                                     ? "; the certificate is that of the vocabulary"
                                     : "; the vocabulary was not looked at (--model FILE or "
                                       "--vectors FILE)");
    if (is_steered_run(c))
        return show_of(a, v,
                       a->v[OPT_STEER].given ? "; model and vectors are those named"
                                             : "; the model is the one named, the vectors were not "
                                               "looked at (--steer FILE)",
                       a->v[OPT_STEER].given ? "; the vectors are those named, the model was not "
                                               "looked at (--model FILE)"
                                             : "; model and vectors were not looked at (--model "
                                               "FILE, --steer FILE)");
    if (dpi_claim_find(c, "steering"))
        return show_of(a, v, "; the vectors are those named",
                       "; the vectors were not looked at (--steer FILE)");
    if (dpi_claim_find(c, "gradients"))
        return show_of(a, v, "; the adapter is the one named",
                       "; the adapter was not looked at (--lora FILE)");
    return show_of(a, v, "; the model is the one named",
                   "; the model was not looked at (--model FILE)");
}

static int verify_report(const args *a, const dpi_report *report) {
    const dpi_claim *c = dpi_report_claimed(report);
    const bool words = dpi_claim_find(c, "words") != NULL;
    const bool steered = is_steered_run(c);
    const char *model = words                   ? NULL
                        : steered               ? a->model
                        : a->v[OPT_STEER].given ? a->v[OPT_STEER].s
                        : a->v[OPT_LORA].given ? a->v[OPT_LORA].s
                                                : a->model;
    dpi_verification v;
    dpi_error err;
    dpi_verification_init(&v);
    int code = check_options(a, c);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_report_verify(report, model, a->v[OPT_VERIFIED].s, &v, &err);
    if (status != DPI_STATUS_OK)
        code = cli_fail_library(status == DPI_STATUS_IO && model ? CLI_MODEL : CLI_FAILED, &err);
    if (code == CLI_OK && steered && a->v[OPT_STEER].given &&
        dpi_report_compare_vectors(report, a->v[OPT_STEER].s, &v, &err) != DPI_STATUS_OK)
        code = cli_fail_library(CLI_MODEL, &err);
    if (code == CLI_OK && words && (a->model || a->v[OPT_VECTORS].given))
        code = check_words(a, report, &v);
    if (code == CLI_OK && v.n_wrong == 0 && a->v[OPT_LEDGER].given)
        code = check_ledger(a, report);
    if (code == CLI_OK)
        code = show(a, c, &v);
    dpi_verification_free(&v);
    return code;
}

static int verify_main(const args *a) {
    static const option_id none[] = {N_OPTIONS};
    dpi_report *report = NULL;
    if (a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no REPORT given; see 'dpinfer verify -h'");
    int code = check_signature(a);
    if (code == CLI_OK && is_adapter(a->positional[0])) {
        code = check_uses(a, "an adapter", none);
        return code == CLI_OK ? verify_adapter(a) : code;
    }
    if (code == CLI_OK)
        code = parse(a, &report);
    if (code == CLI_OK)
        code = verify_report(a, report);
    dpi_report_free(report);
    return code;
}

const command command_verify = {
    .name = "verify", .bit = CMD_VERIFY, .arguments = "REPORT", .max_positional = 1,
    .run = verify_main,
    .summary = "compute the statement of a report again",
    .details =
        "Takes the JSON that --report of any command wrote (-: standard input) and computes\n"
        "everything in it that follows from its claim a second time, without the model and the\n"
        "records. The first line is the verdict. Fields that do not hold follow, as recorded and\n"
        "as computed; with --verbose all of them. Exit code 1 if a field does not hold, 5 if it\n"
        "is not a report, or a claim that no work can have made.\n\n"
        "With --model FILE the hashes of the model are checked too, with --output FILE that of\n"
        "what was released, with --key FILE the signature (REPORT.sig, by 'run --sign';\n"
        "ssh-keygen -Y checks it as well), with --ledger FILE that the ledger has its charge,\n"
        "which an earlier copy of it has not. With --lora FILE the claim of the adapter is\n"
        "compared, and the file hashed. Where words were replaced, --model or --vectors has their\n"
        "certificate computed.\n\n"
        "An adapter of 'finetune' may stand for a report: it carries a claim, and its numbers are\n"
        "hashed.\n\n"
        "'given' are the parameters, and what only the operator can vouch for: that the run took\n"
        "place in this way, with this program. A NOT PRIVATE report is verified as such.\n",
};
