/* cmd_eval.c - `dpinfer eval`: what synthetic texts are worth beside real ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "eval/control.h"
#include "eval/evaluation_report.h"
#include "eval/released_counts.h"
#include "tools/command/commands.h"
#include "tools/options/grammar_options.h"
#include "tools/options/ledger_options.h"
#include "tools/options/paths.h"
#include "tools/options/records_options.h"
#include "tools/options/release_options.h"
#include "tools/terminal/output.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/signals.h"

/* What the command has open. */
typedef struct eval {
    const args *a;
    eval_texts synthetic, real, train, prompts, canaries, controls, control;
    dpi_grammar *grammar;
    dpi_model *model;
    dpi_ledger *ledger;
    dpi_counts *counts; /* --dp-epsilon; NULL: without */
    char dataset[DPI_DATASET_NAME_MAX + 1];
    int32_t record_kind; /* of the real texts */
    eval_sources sources;
    evaluation result;
    output out;
} eval;

/* ---- Options --------------------------------------------------------------------------------- */

static int check_options(const args *a) {
    static const option_id of_texts[] = {OPT_REAL,     OPT_TRAIN,       OPT_MODEL,
                                         OPT_CANARIES, OPT_CONTROLS,    OPT_LABEL_FIELD,
                                         OPT_GRAMMAR,  OPT_JSON_SCHEMA, OPT_CLAIMED_EPSILON,
                                         OPT_DOMAIN,   OPT_CONTROL};
    const bool features = a->v[OPT_FEATURES].i;
    if (a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no SYNTHETIC texts given; see 'dpinfer eval -h'");
    if (features && a->n_positional != 2)
        return cli_fail(CLI_USAGE, "--features: found %d files, allowed two: of the synthetic "
                                   "texts, and of the real ones", a->n_positional);
    if (features && !a->v[OPT_DIM].given)
        return cli_fail(CLI_USAGE, "--features needs --dim, the numbers of a vector");
    for (size_t i = 0; i < sizeof of_texts / sizeof *of_texts && features; i++)
        if (a->v[of_texts[i]].given)
            return cli_fail(CLI_USAGE, "--features: allowed without --%s, which is about texts",
                            option_name(of_texts[i]));
    if (!features && a->n_positional > 1)
        return cli_fail(CLI_USAGE, "unexpected argument '%s'; see 'dpinfer eval -h'",
                        a->positional[1]);
    if (!features && a->v[OPT_DIM].given)
        return cli_fail(CLI_USAGE, "--dim is allowed only with --features");
    if (a->v[OPT_CANARIES].given != a->v[OPT_CONTROLS].given)
        return cli_fail(CLI_USAGE, "--canaries and --controls need each other");
    if (!features && a->v[OPT_PROMPTS].given && !a->v[OPT_MODEL].given)
        return cli_fail(CLI_USAGE, "--prompts needs --model, which reads them, or --features");
    if (!features && !a->v[OPT_REAL].given)
        return cli_fail(CLI_USAGE, "no --real texts given; see 'dpinfer eval -h'");
    return CLI_OK;
}

/* What --dp-epsilon withholds is not asked for. */
static int check_released(const args *a) {
    static const option_id withheld[] = {OPT_TRAIN,    OPT_MODEL,    OPT_PROMPTS,
                                         OPT_CANARIES, OPT_FEATURES, OPT_REAL_IS_PUBLIC,
                                         OPT_NGRAM,    OPT_CLUSTERS, OPT_CLAIMED_EPSILON,
                                         OPT_DOMAIN,   OPT_CONTROL};
    const bool released = a->v[OPT_DP_EPSILON].given;
    if (!released && (a->v[OPT_LEDGER].given || a->v[OPT_DP_DELTA].given))
        return cli_fail(CLI_USAGE, "--ledger and --dp-delta need --dp-epsilon");
    if (a->v[OPT_DATASET].given && !a->v[OPT_LEDGER].given)
        return cli_fail(CLI_USAGE, "--dataset needs --ledger");
    for (size_t i = 0; i < sizeof withheld / sizeof *withheld && released; i++)
        if (a->v[withheld[i]].given)
            return cli_fail(CLI_USAGE, "--dp-epsilon: allowed without --%s, whose numbers are no "
                                       "counts", option_name(withheld[i]));
    return CLI_OK;
}

/* The form of the report by the end of its file's name; EVAL_FORMS: there is no such form. */
static eval_form form_of(const args *a) {
    static const struct {
        const char *end;
        eval_form form;
    } forms[] = {{".json", EVAL_JSON}, {".csv", EVAL_CSV},  {".html", EVAL_HTML},
                 {".htm", EVAL_HTML},  {".txt", EVAL_TEXT}, {"", EVAL_TEXT}};
    const char *slash = strrchr(a->v[OPT_OUTPUT].s, '/');
    const char *dot = strrchr(slash ? slash : a->v[OPT_OUTPUT].s, '.'), *end = dot ? dot : "";
    if (a->v[OPT_JSON].i)
        return EVAL_JSON;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(end, forms[i].end) == 0)
            return forms[i].form;
    return EVAL_FORMS;
}

static int check_form(const args *a) {
    return form_of(a) != EVAL_FORMS
               ? CLI_OK
               : cli_fail(CLI_USAGE, "-o: found '%s', allowed is a name that ends in .txt, .json, "
                                     ".csv, .html or .htm, or has no end", a->v[OPT_OUTPUT].s);
}

static int check_files(const args *a) {
    const int code = paths_check_command(a);
    return code == CLI_OK ? output_probe(a->v[OPT_OUTPUT].s) : code;
}

static mauve_options read_mauve(const args *a) {
    mauve_options o;
    mauve_options_init(&o);
    o.n_clusters = (int32_t)a->v[OPT_CLUSTERS].i;
    o.scaling = a->v[OPT_SCALING].d;
    return o;
}

static int fail(const dpi_error *err) {
    return cli_fail_option(err->code == DPI_STATUS_ARG ? CLI_RECORDS : CLI_FAILED, err);
}

/* ---- Vectors --------------------------------------------------------------------------------- */

enum { VECTOR_BYTES_MAX = 1 << 30 };

static int read_vectors(const char *path, int32_t dim, eval_vectors *v) {
    char *data;
    size_t n_bytes;
    if (!cli_read_path(path, VECTOR_BYTES_MAX, &data, &n_bytes))
        return cli_fail(cli_read_code(CLI_RECORDS), "cannot read %s: %s", path, cli_read_reason());
    v->at = (float *)(void *)data; /* as malloc gives it: of any type */
    v->dim = dim;
    const size_t row = (size_t)dim * sizeof *v->at;
    if (n_bytes == 0 || n_bytes % row != 0)
        return cli_fail(CLI_RECORDS, "%s: found %zu bytes, allowed a multiple of %zu, a vector of "
                                     "%d numbers", path, n_bytes, row, (int)dim);
    v->n = (int32_t)(n_bytes / row);
    return CLI_OK;
}

static int evaluate_vectors(eval *e) {
    const int32_t dim = (int32_t)e->a->v[OPT_DIM].i;
    const mauve_options mauve = read_mauve(e->a);
    const bool has_prompts = e->a->v[OPT_PROMPTS].given;
    eval_vectors synthetic = {0}, real = {0}, prompts = {0};
    dpi_error err;
    int code = read_vectors(e->a->positional[0], dim, &synthetic);
    if (code == CLI_OK)
        code = read_vectors(e->a->positional[1], dim, &real);
    if (code == CLI_OK && has_prompts)
        code = read_vectors(e->a->v[OPT_PROMPTS].s, dim, &prompts);
    if (code == CLI_OK &&
        evaluate_features(&synthetic, &real, has_prompts ? &prompts : NULL, &mauve, &e->result,
                          &err) != DPI_STATUS_OK)
        code = fail(&err);
    dpi_private_free(synthetic.at);
    dpi_private_free(real.at);
    dpi_private_free(prompts.at);
    return code;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* What a file of texts is to the command. */
typedef enum texts_role {
    TEXTS_MADE,     /* as run writes it, too */
    TEXTS_LABELLED, /* records */
    TEXTS_BARE,     /* nothing is asked about their labels */
} texts_role;

static int read_texts(const args *a, const char *path, texts_role role, eval_texts *texts) {
    dpi_records_options o;
    dpi_error err;
    const int code = records_options(a, &o);
    if (code != CLI_OK)
        return code;
    if (role == TEXTS_BARE)
        o.label_field = NULL;
    return (role == TEXTS_MADE ? eval_texts_read_made : eval_texts_read)(path, &o, texts, &err) ==
                   DPI_STATUS_OK
               ? CLI_OK
               : cli_fail_option(CLI_RECORDS, &err);
}

/* The texts of an option, if it is given; *found: NULL without it. */
static int read_option(const args *a, option_id id, texts_role role, eval_texts *texts,
                       const eval_texts **found) {
    *found = a->v[id].given ? texts : NULL;
    const int code = a->v[id].given ? read_texts(a, a->v[id].s, role, texts) : CLI_OK;
    if (code != CLI_OK || role != TEXTS_LABELLED || !a->v[OPT_LABEL_FIELD].given ||
        texts->n == 0 || eval_texts_have_labels(texts))
        return code;
    return cli_fail(CLI_RECORDS, "--label-field: found '%s', which no text of --%s has",
                    a->v[OPT_LABEL_FIELD].s, option_name(id));
}

static int open_sources(eval *e) {
    const args *a = e->a;
    eval_sources *s = &e->sources;
    *s = (eval_sources){.mauve = read_mauve(a),
                        .ngram = (int32_t)a->v[OPT_NGRAM].i,
                        .domain = a->v[OPT_DOMAIN].s,
                        .claimed_epsilon = a->v[OPT_CLAIMED_EPSILON].d,
                        .claimed_delta = a->v[OPT_CLAIMED_DELTA].d,
                        .synthetic = &e->synthetic};
    int code = read_texts(a, a->positional[0], TEXTS_MADE, &e->synthetic);
    if (code == CLI_OK)
        code = read_option(a, OPT_REAL, TEXTS_LABELLED, &e->real, &s->real);
    if (code == CLI_OK)
        code = read_option(a, OPT_TRAIN, TEXTS_LABELLED, &e->train, &s->train);
    if (code == CLI_OK)
        code = read_option(a, OPT_PROMPTS, TEXTS_BARE, &e->prompts, &s->prompts);
    if (code == CLI_OK)
        code = read_option(a, OPT_CANARIES, TEXTS_BARE, &e->canaries, &s->canaries);
    if (code == CLI_OK)
        code = read_option(a, OPT_CONTROLS, TEXTS_BARE, &e->controls, &s->controls);
    if (code == CLI_OK && a->v[OPT_CONTROL].given)
        code = read_texts(a, a->v[OPT_CONTROL].s, TEXTS_MADE, &e->control);
    if (code == CLI_OK)
        code = grammar_options_read(a, &e->grammar);
    s->grammar = e->grammar;
    if (code != CLI_OK || !a->v[OPT_MODEL].given)
        return code;
    dpi_model_info info;
    const dpi_model_options options = options_model(a);
    code = read_session_options(a, &e->sources.session);
    if (code == CLI_OK)
        code = cli_open_model(a->v[OPT_MODEL].s, &options, &e->model, &info);
    e->sources.model = e->model;
    if (code == CLI_OK && info.n_ctx_train > 4096) /* as `run` does */
        e->sources.session.n_ctx = 4096;
    return code;
}

/* A line that is written anew, where that is a terminal; what NULL: it goes. */
static void show(void *user, const char *what, int64_t n_done, int64_t n_all) {
    const bool *is_terminal = user;
    if (!*is_terminal)
        return;
    fprintf(stderr, "\r\033[K%s", what ? what : "");
    if (n_all > 0)
        fprintf(stderr, ": %lld of %lld", (long long)n_done, (long long)n_all);
    fflush(stderr);
}

/* Else accuracy 0 would look as if it told something of the texts. */
static void note_labels(const evaluation *found) {
    for (int32_t i = 0; i < found->n; i++)
        if (strcmp(found->at[i].key, "n_labels_shared") == 0 && found->at[i].value == 0)
            cli_note("note: no real text has a label of the synthetic texts, so that accuracy is "
                     "0: are labels written in the same way?");
}

static int evaluate_texts(eval *e) {
    bool is_terminal = progress_is_terminal();
    const eval_watch watch = {.progress = show, .user = &is_terminal};
    dpi_error err;
    const int code = open_sources(e);
    if (code != CLI_OK)
        return code;
    e->sources.watch = &watch;
    const dpi_status status =
        e->a->v[OPT_CONTROL].given
            ? evaluate_beside_control(&e->sources, &e->control, &e->result, &err)
            : evaluate(&e->sources, &e->result, &err);
    show(&is_terminal, NULL, 0, 0);
    if (status != DPI_STATUS_OK)
        return fail(&err);
    note_labels(&e->result);
    return CLI_OK;
}

/* ---- Counts with noise ----------------------------------------------------------------------- */

/* The charge is on the disk after it. */
static int open_counts(eval *e) {
    dpi_counts_options o;
    dpi_error err;
    dpi_counts_options_init(&o);
    o.epsilon = e->a->v[OPT_DP_EPSILON].d;
    o.delta = e->a->v[OPT_DP_DELTA].d;
    o.n_groups = eval_released_groups(&e->sources, e->a->v[OPT_LABEL_FIELD].given);
    o.ledger = e->ledger;
    o.dataset = e->ledger ? e->dataset : NULL;
    o.record_kind = e->record_kind;
    const dpi_status status = dpi_counts_open(&o, &e->counts, &err);
    return status == DPI_STATUS_OK ? CLI_OK : ledger_fail(status, &err);
}

/* How many real texts there are is public. */
static int check_real(eval *e) {
    const args *a = e->a;
    dpi_records_options o;
    dpi_records *records;
    int code = records_options(a, &o);
    if (code == CLI_OK)
        code = records_open(a->v[OPT_REAL].s, &o, &records);
    if (code != CLI_OK)
        return code;
    const size_t n = dpi_records_count(records);
    e->record_kind = dpi_records_kind(records);
    dpi_records_close(records);
    return a->v[OPT_DP_DELTA].d * (double)n < 1
               ? CLI_OK
               : cli_fail(CLI_USAGE, "--dp-delta: found %g, allowed less than 1 / number of "
                                     "records, %zu", a->v[OPT_DP_DELTA].d, n);
}

/* Everything that can fail without a real text is tried before the ledger is charged. */
static int evaluate_counts(eval *e) {
    const args *a = e->a;
    eval_sources *s = &e->sources;
    dpi_error err;
    *s = (eval_sources){.synthetic = &e->synthetic, .real = &e->real};
    int code = read_texts(a, a->positional[0], TEXTS_MADE, &e->synthetic);
    if (code == CLI_OK)
        code = grammar_options_read(a, &e->grammar);
    s->grammar = e->grammar;
    if (code == CLI_OK)
        code = check_real(e);
    if (code == CLI_OK)
        code = ledger_options_open(a, false, &e->ledger, e->dataset);
    if (code == CLI_OK) {
        signals_catch(); /* what is paid for is written */
        code = open_counts(e);
    }
    if (code == CLI_OK)
        code = read_texts(a, a->v[OPT_REAL].s, TEXTS_LABELLED, &e->real);
    if (code != CLI_OK)
        return code;
    return evaluate_released(s, a->v[OPT_LABEL_FIELD].given, e->counts, &e->result, &err) ==
                   DPI_STATUS_OK
               ? CLI_OK
               : fail(&err);
}

/* ---- All ------------------------------------------------------------------------------------- */

/* Counts that were paid for and could not be written go to the other stream. */
static void write_instead(const eval *e, const char *text, size_t n_bytes) {
    const bool to_file = strcmp(e->a->v[OPT_OUTPUT].s, "-") != 0;
    if (!e->counts)
        return;
    if (to_file)
        cli_note("note: the counts, which are paid for, go to standard output");
    FILE *stream = to_file ? stdout : stderr;
    fwrite(text, 1, n_bytes, stream);
    fflush(stream);
}

static int write_result(eval *e) {
    const args *a = e->a;
    if (!a->v[OPT_REAL_IS_PUBLIC].i && !e->counts)
        umask(077); /* the report is private */
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *stream = open_memstream(&text, &n_bytes);
    bool ok = stream && eval_print(&e->result, a->v[OPT_REAL_IS_PUBLIC].i, form_of(a), stream);
    if (stream && fclose(stream) != 0)
        ok = false;
    int code = ok ? output_open(&e->out, a->v[OPT_OUTPUT].s, a->v[OPT_OVERWRITE].i)
                  : cli_no_memory("the report");
    if (ok && code == CLI_OK)
        code = output_write(&e->out, text, n_bytes);
    const int closed = output_close(&e->out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED);
    if (ok && (code != CLI_OK || closed != CLI_OK))
        write_instead(e, text, n_bytes);
    if (text)
        explicit_bzero(text, n_bytes);
    free(text);
    return code != CLI_OK ? code : closed;
}

static int eval_main(const args *a) {
    eval e = {.a = a, .out = {.fd = -1}};
    signals_clean_up(); /* until there is something to finish */
    int code = check_files(a); /* first: what is an input is known without the rest */
    if (code == CLI_OK)
        code = check_options(a);
    if (code == CLI_OK)
        code = check_released(a);
    if (code == CLI_OK)
        code = check_form(a);
    if (code == CLI_OK)
        code = a->v[OPT_DP_EPSILON].given ? evaluate_counts(&e)
               : a->v[OPT_FEATURES].i     ? evaluate_vectors(&e)
                                          : evaluate_texts(&e);
    if (code == CLI_OK)
        code = write_result(&e);
    evaluation_free(&e.result);
    eval_texts_free(&e.synthetic);
    eval_texts_free(&e.real);
    eval_texts_free(&e.train);
    eval_texts_free(&e.prompts);
    eval_texts_free(&e.canaries);
    eval_texts_free(&e.controls);
    eval_texts_free(&e.control);
    dpi_grammar_free(e.grammar);
    dpi_model_close(e.model);
    dpi_counts_close(e.counts);
    dpi_ledger_close(e.ledger);
    return code;
}

const command command_eval = {
    .name = "eval",
    .bit = CMD_EVAL,
    .arguments = "SYNTHETIC",
    .max_positional = 2,
    .run = eval_main,
    .summary = "what synthetic texts are worth beside real ones",
    .details =
        "Compares texts with real ones that were held out: length, diversity, copies of training\n"
        "texts, things that name a person, and with --label-field what a classifier learns. With\n"
        "--model also MAUVE, neighbours and perplexity, by what this model makes of each text,\n"
        "and with --prompts how near texts are to them. Of JSON also what its fields hold. With\n"
        "--train and --canaries how well the texts tell who was a record, and a lower bound of\n"
        "epsilon by it. With --control whether the budget bought anything: the same metrics of\n"
        "texts of the public prompt, or at an epsilon near 0, and each difference. --dp-epsilon\n"
        "instead releases a few counts with noise.\n"
        "SYNTHETIC, --real and --train are what 'dpinfer run' takes as records, or has written.\n"
        "The report is text, or by its name a .json, a .csv or a page of .html (.htm). Its\n"
        "numbers come from the real texts as they stand: it is PRIVATE unless these are public.\n",
};
