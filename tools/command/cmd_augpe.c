/* cmd_augpe.c - `dpinfer augpe`: texts by private evolution. A model writes candidates, here or
 * elsewhere, and records vote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpinfer/augpe.h"
#include "dpinfer/memory.h"
#include "tools/command/commands.h"
#include "tools/options/grammar_options.h"
#include "tools/options/ledger_options.h"
#include "tools/options/paths.h"
#include "tools/options/records_options.h"
#include "tools/options/release_options.h"
#include "tools/remote/remote.h"
#include "tools/remote/remote_options.h"
#include "tools/shared/private_records.h"
#include "tools/shared/report_files.h"
#include "tools/shared/text_sink.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/statement_shown.h"

/* What the command opens, in the order in which it is opened. */
typedef struct evolving {
    const args *a;
    prompt_texts prompts;
    dpi_ledger *ledger;
    char dataset[DPI_DATASET_NAME_MAX + 1];
    dpi_records *records;
    dpi_grammar *grammar;
    wording_input wording;
    dpi_model *model;
    remote_options remote_options;
    remote *remote; /* NULL: the model writes */
    int remote_code; /* of what failed there, whose message is printed */
    dpi_augpe *augpe;
    output out;
    report_files *reports;
    bool jsonl, quiet, screen, charged, written;
    double shown;
} evolving;

static int fail(const evolving *t, dpi_status status, const dpi_error *err) {
    return t->remote_code != CLI_OK ? t->remote_code : cli_fail_status(status, err);
}

/* ---- A model elsewhere ----------------------------------------------------------------------- */

/* Prompts are public, or made of candidates, which are released. */
static dpi_status write_elsewhere(void *user, const dpi_bytes *prompts, int32_t n, char **texts,
                                  dpi_error *err) {
    evolving *t = user;
    int places[REMOTE_MOST_IN_FLIGHT];
    (void)err;
    for (int32_t i = 0; i < n && t->remote_code == CLI_OK; i++)
        t->remote_code = remote_send(t->remote, prompts[i].data, &places[i]);
    for (int32_t i = 0; i < n && t->remote_code == CLI_OK; i++) {
        char *answer = NULL;
        t->remote_code = remote_answer_of(t->remote, places[i], &answer);
        if (t->remote_code == CLI_OK && answer && !(texts[i] = strdup(answer)))
            t->remote_code = cli_no_memory("an answer");
        dpi_private_free(answer);
    }
    return t->remote_code == CLI_OK ? DPI_STATUS_OK : DPI_STATUS_IO;
}

static int open_remote(evolving *t) {
    remote_options *o = &t->remote_options;
    if (!t->a->v[OPT_REMOTE].given)
        return t->a->v[OPT_REMOTE_MODEL].given
                   ? cli_fail(CLI_USAGE, "--remote-model needs --remote")
                   : CLI_OK;
    const int code = remote_options_read(t->a, REMOTE_ALL, o);
    if (t->a->v[OPT_AUGPE_TEMP].given)
        o->temperature = t->a->v[OPT_AUGPE_TEMP].d;
    o->n_tokens = t->a->v[OPT_AUGPE_TOKENS].given ? (int)t->a->v[OPT_AUGPE_TOKENS].i
                                                  : DPI_TOKENS_DEFAULT;
    if (code == CLI_OK && o->temperature > 2)
        return cli_fail(CLI_USAGE, "--temp: found %g, allowed 0.01..2 with --remote",
                        o->temperature);
    return code == CLI_OK ? remote_open(o, &t->remote) : code;
}

/* ---- Options --------------------------------------------------------------------------------- */

static int check_options(const args *a) {
    static const struct {
        int option;
        const char *name;
    } local[] = {{OPT_SYSTEM, "--system"}, {OPT_AUGPE_TOP_K, "--top-k"},
                 {OPT_PARALLEL, "--parallel"}, {OPT_GRAMMAR, "--grammar"},
                 {OPT_JSON_SCHEMA, "--json-schema"}, {OPT_ANSWER, "--answer"},
                 {OPT_ANSWER_FILE, "--answer-file"}, {OPT_STOP, "--stop"},
                 {OPT_MIN_WORDS, "--min-words"}, {OPT_MAX_WORDS, "--max-words"},
                 {OPT_KEEP_SPACE, "--keep-space"}, {OPT_BAN, "--ban"},
                 {OPT_NO_REPEAT, "--no-repeat"}, {OPT_REPEAT_PENALTY, "--repeat-penalty"},
                 {OPT_LOGIT_BIAS, "--logit-bias"}};
    const option_value *v = a->v;
    if (a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no RECORDS given; see 'dpinfer augpe -h'");
    if (!v[OPT_AUGPE_NUM].given)
        return cli_fail(CLI_USAGE, "--num N: needed is the number of texts");
    if (v[OPT_RHO].given == v[OPT_EPSILON].given)
        return cli_fail(CLI_USAGE, "--epsilon and --rho: needed is one of them");
    if (v[OPT_TUNE_UNITS].given && v[OPT_AUGPE_ADJACENCY].i != DPI_ADJACENCY_ADD_REMOVE)
        return cli_fail(CLI_USAGE, "--units: allowed with --adjacency add-remove; without it how "
                                   "many units there are is public");
    if (v[OPT_MAX_PER_UNIT].given && !v[OPT_UNIT_FIELD].given)
        return cli_fail(CLI_USAGE, "--max-per-unit needs --unit-field");
    if (v[OPT_REMOTE].given)
        for (size_t i = 0; i < sizeof local / sizeof *local; i++)
            if (v[local[i].option].given)
                return cli_fail(CLI_USAGE, "%s: not with --remote, whose model is elsewhere",
                                local[i].name);
    return CLI_OK;
}

static dpi_augpe_options options_of(evolving *t) {
    const option_value *v = t->a->v;
    dpi_augpe_options o;
    dpi_augpe_options_init(&o);
    o.model = t->model, o.records = t->records;
    o.n_texts = (int32_t)v[OPT_AUGPE_NUM].i;
    o.n_rounds = (int32_t)v[OPT_ROUNDS].i;
    o.n_candidates = (int32_t)v[OPT_CANDIDATES].i;
    o.n_lookahead = (int32_t)v[OPT_LOOKAHEAD].i;
    o.selection = (int32_t)v[OPT_SELECT].i, o.threshold = v[OPT_THRESHOLD].d;
    o.variation = (int32_t)v[OPT_VARIATION].i, o.change = v[OPT_CHANGE].d;
    o.n_tokens = v[OPT_AUGPE_TOKENS].given ? (int32_t)v[OPT_AUGPE_TOKENS].i : 0;
    o.top_k = (int32_t)v[OPT_AUGPE_TOP_K].i, o.tau = v[OPT_AUGPE_TEMP].d;
    if (v[OPT_VARIATION_PROMPT].given)
        o.variation_prompt = (dpi_bytes){v[OPT_VARIATION_PROMPT].s,
                                         strlen(v[OPT_VARIATION_PROMPT].s)};
    if (v[OPT_PARALLEL].given)
        o.n_parallel = v[OPT_PARALLEL].i < 256 ? (int32_t)v[OPT_PARALLEL].i : 256;
    o.grammar = t->grammar;
    o.wording = &t->wording.wording;
    o.rho = v[OPT_RHO].given ? v[OPT_RHO].d : 0;
    o.epsilon = v[OPT_EPSILON].given ? v[OPT_EPSILON].d : 0;
    o.delta = v[OPT_DELTA].d;
    o.adjacency = (int32_t)v[OPT_AUGPE_ADJACENCY].i;
    o.n_units = v[OPT_TUNE_UNITS].i;
    if (v[OPT_MAX_PER_UNIT].given)
        o.max_per_unit = (int32_t)v[OPT_MAX_PER_UNIT].i;
    o.seeded = v[OPT_SEED].given, o.seed = (uint64_t)v[OPT_SEED].i;
    o.ledger = t->ledger, o.dataset = t->ledger ? t->dataset : NULL;
    if (t->remote) {
        o.write = write_elsewhere, o.write_user = t;
        o.n_parallel = t->remote_options.n_in_flight;
    }
    return o;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int open_augpe(evolving *t) {
    dpi_augpe_options o = options_of(t);
    dpi_error err;
    int code = read_session_options(t->a, &o.session);
    o.session.n_ctx = (int32_t)t->a->v[OPT_CTX_SIZE].i;
    o.session.cancel = signals_cancel;
    if (code == CLI_OK)
        code = prompt_texts_read(t->a, &t->prompts, &o.prompts);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_augpe_open(&o, &t->augpe, &err);
    return status == DPI_STATUS_OK ? CLI_OK : fail(t, status, &err);
}

/* Everything that can fail is tried before the ledger is charged. */
static int open_all(evolving *t) {
    const args *a = t->a;
    const dpi_model_options model = options_model(a);
    dpi_records_options records;
    int code = check_options(a);
    if (code == CLI_OK)
        code = paths_check_command(a);
    if (code == CLI_OK)
        code = records_options(a, &records);
    if (code == CLI_OK)
        code = grammar_options_read(a, &t->grammar);
    if (code == CLI_OK)
        code = wording_options_read(a, &t->wording);
    if (code == CLI_OK)
        code = open_remote(t);
    if (code == CLI_OK)
        code = ledger_options_open(a, false, &t->ledger, t->dataset);
    if (code == CLI_OK)
        code = records_open_private(a, 0, &records, &t->records);
    if (code == CLI_OK)
        code = cli_open_model(a->model, &model, &t->model, NULL);
    if (code == CLI_OK)
        code = wording_options_bind(a, t->model, &t->wording);
    if (code == CLI_OK)
        code = open_augpe(t);
    if (code == CLI_OK)
        code = output_open(&t->out, a->v[OPT_OUTPUT].s, a->v[OPT_OVERWRITE].i);
    return code == CLI_OK ? report_files_open(a, &t->reports) : code;
}

/* ---- Progress -------------------------------------------------------------------------------- */

/* Public counts: rounds, and candidates that are written. A line of a terminal a few times a
 * second; of a log at the end of each round. */
static void show(evolving *t, const dpi_augpe_event *e) {
    const int32_t n_rounds = (int32_t)dpi_augpe_claim_of(t->augpe)->parts[0].n_runs;
    if (t->quiet)
        return;
    if (e->type == DPI_AUGPE_ROUND) {
        fprintf(stderr, "%sround %d of %d is over%s\n", t->screen ? "\r" : "", e->round, n_rounds,
                t->screen ? "                          " : "");
        return;
    }
    const double now = cli_now();
    if (!t->screen || now - t->shown < .2 ||
        (e->type != DPI_AUGPE_WRITING && e->type != DPI_AUGPE_LOOKING))
        return;
    t->shown = now;
    fprintf(stderr, "\rround %d of %d: %d of %d candidates %s  ", e->round, n_rounds, e->n_done,
            e->n, e->type == DPI_AUGPE_WRITING ? "written" : "compared");
}

/* ---- What is written ------------------------------------------------------------------------- */

static int32_t n_texts_of(const evolving *t) {
    return (int32_t)dpi_claim_value(&dpi_augpe_claim_of(t->augpe)->parts[0], "n_texts");
}

static int write_all(const evolving *t, output *o) {
    text_sink texts;
    int code = CLI_OK;
    text_sink_open(&texts, o, text_form_of(t->jsonl, t->a->v[OPT_OUTPUT].s), NULL);
    texts.screen = o->fd >= 0 && isatty(o->fd);
    texts.is_private = dpi_claim_is_private(dpi_augpe_claim_of(t->augpe)) != 0;
    texts.counts = false;
    for (int32_t i = 0; i < n_texts_of(t) && code == CLI_OK; i++) {
        const text_head head = {.index = i};
        const char *text;
        size_t n_bytes;
        dpi_augpe_text(t->augpe, i, &text, &n_bytes);
        code = text_sink_put(&texts, &head, text, n_bytes, 0, false);
    }
    return output_finish(o, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_PARTIAL, code);
}

/* What a handler prints that cannot return; NULL: what it was. */
static bool set_last_words(char *words) {
    if (words)
        signals_last_words(words);
    return words != NULL;
}

/* The texts are paid for: what a full disk has no room for goes to standard output. */
static int write_texts(evolving *t) {
    output instead;
    t->out.appears = true;
    t->written = true;
    set_last_words(statement_of_claim(dpi_augpe_claim_of(t->augpe), true));
    const int code = write_all(t, &t->out);
    if (code == CLI_OK || strcmp(t->a->v[OPT_OUTPUT].s, "-") == 0)
        return code;
    cli_note("note: all texts, which are paid for, go to standard output");
    if (output_open(&instead, "-", false) == CLI_OK)
        (void)write_all(t, &instead);
    return code;
}

/* The hash is that of a file, which is there now. */
static dpi_status fill_report(const evolving *t, bool complete, dpi_report *report,
                              dpi_error *err) {
    const char *out = t->a->v[OPT_OUTPUT].s;
    dpi_status status = DPI_STATUS_OK;
    for (int32_t i = 0; i < n_texts_of(t) && complete && status == DPI_STATUS_OK; i++)
        status = dpi_report_text_add(report, NULL, -1, 0, err);
    if (status != DPI_STATUS_OK)
        return status;
    return complete && strcmp(out, "-") != 0
               ? dpi_report_output_file(report, out, t->jsonl, t->jsonl ? 0 : -1, err)
               : DPI_STATUS_OK;
}

static int write_report(evolving *t, bool complete) {
    const args *a = t->a;
    dpi_report *report;
    dpi_error err;
    if (a->n_reports == 0)
        return CLI_OK;
    dpi_status status =
        dpi_report_of(dpi_augpe_claim_of(t->augpe), t->model, a->model, &report, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    if (dpi_augpe_wording(t->augpe))
        status = dpi_report_wording(report, dpi_augpe_wording(t->augpe), &err);
    if (status == DPI_STATUS_OK)
        status = fill_report(t, complete, report, &err);
    const int code = status == DPI_STATUS_OK ? report_files_write(t->reports, report, complete)
                                             : cli_fail_library(CLI_FAILED, &err);
    dpi_report_free(report);
    const int closed =
        report_files_close(t->reports, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, NULL);
    t->reports = NULL;
    return code == CLI_OK ? closed : code;
}

/* Owed once the ledger is charged: the budget counts as spent. */
static int write_statement(const evolving *t, int code) {
    const bool complete = code == CLI_OK || t->written;
    return statement_end(statement_of_claim(dpi_augpe_claim_of(t->augpe), complete), code);
}

/* ---- All ------------------------------------------------------------------------------------- */

/* No record was read. */
static bool is_given_back(const evolving *t) {
    return t->ledger && dpi_augpe_claim_of(t->augpe)->ledger.charge == 0;
}

static int evolve(evolving *t) {
    dpi_augpe_event e = {.type = DPI_AUGPE_CHARGED};
    dpi_error err;
    while (e.type != DPI_AUGPE_NONE) {
        const dpi_status status = dpi_augpe_advance(t->augpe, &e, &err);
        if (status != DPI_STATUS_OK) {
            t->charged = t->charged && !is_given_back(t);
            return fail(t, status, &err);
        }
        const bool first = !t->charged; /* event: it says that the ledger is charged */
        t->charged = true;
        if (first && !set_last_words(statement_of_claim(dpi_augpe_claim_of(t->augpe), false)))
            return CLI_FAILED;
        show(t, &e);
    }
    return CLI_OK;
}

static int run_augpe(evolving *t) {
    int code = evolve(t);
    if (!t->charged)
        return code;
    if (code == CLI_OK)
        code = write_texts(t);
    const int reported = write_report(t, code == CLI_OK);
    return write_statement(t, code == CLI_OK ? reported : code);
}

static int augpe_main(const args *a) {
    evolving t = {.a = a, .out = {.fd = -1},
                  .jsonl = a->v[OPT_JSONL].i != 0,
                  .quiet = a->v[OPT_QUIET].i != 0, .screen = isatty(STDERR_FILENO) != 0};
    signals_clean_up(); /* until there is something to finish */
    int code = open_all(&t);
    if (code == CLI_OK) {
        signals_catch();
        code = run_augpe(&t);
    }
    const int closed = output_close(&t.out, OUTPUT_DROPPED);
    const int reported = report_files_close(t.reports, OUTPUT_DROPPED, NULL);
    code = code != CLI_OK ? code : closed != CLI_OK ? closed : reported;
    dpi_augpe_free(t.augpe);
    signals_last_words(NULL);
    dpi_grammar_free(t.grammar);
    wording_options_free(&t.wording);
    remote_close(t.remote);
    dpi_private_free(t.remote_options.key);
    dpi_model_close(t.model);
    dpi_records_close(t.records);
    dpi_ledger_close(t.ledger);
    prompt_texts_free(&t.prompts);
    return code;
}

const command command_augpe = {
    .name = "augpe",
    .bit = CMD_AUGPE,
    .arguments = "MODEL RECORDS",
    .takes_model = 1,
    .max_positional = 1,
    .run = augpe_main,
    .summary = "texts that records vote for",
    .details =
        "Private evolution (AugPE): MODEL writes --candidates L for each of --num N texts from "
        "the\n"
        "public prompt. In each of --rounds R rounds every unit (a record, or a person with\n"
        "--unit-field) votes for the candidates that its records are nearest to, in what MODEL "
        "makes\n"
        "of texts; the votes get discrete Gaussian noise; the N best candidates stay, and MODEL\n"
        "writes variations of them. The votes of all rounds cost --epsilon or --rho, however many\n"
        "texts there are.\n\n"
        "No text is drawn from a record: with --remote URL a server that speaks OpenAI's "
        "interface\n"
        "writes, and sees the public prompts and candidates alone. MODEL compares, here.\n\n"
        "--ledger is charged for all rounds before a record is read. A run that is stopped has\n"
        "written nothing and cannot go on: the next one is charged anew. 'dpinfer verify REPORT'\n"
        "computes the guarantee of a report again.\n",
};
