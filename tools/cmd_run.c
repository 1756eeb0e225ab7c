/* cmd_run.c - `dpinfer run`: records in, text out. */
#include "tools/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/facts.h"
#include "tools/job.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/statement.h"
#include "tools/writer.h"

/* ---- Signals -------------------------------------------------------------------------------- */

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) { stop_signal = number; }

/* The first SIGINT or SIGTERM finishes the token; SA_RESETHAND: the second one kills. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int32_t is_cancelled(void *user) {
    (void)user;
    return stop_signal != 0;
}

/* ---- The state of a run --------------------------------------------------------------------- */

typedef struct run {
    const job *j;
    bool jsonl, quiet, show_progress;
    output out;
    writer *writer;
    /* the text that is being written */
    int32_t index;
    char *text; /* jsonl: all of it so far; private until its last token is out */
    size_t n_text, text_capacity;
    bool line_open; /* text mode: the last byte was not a line feed */
    struct timespec first, shown; /* its first token; the last progress line */
} run;

/* ---- Output --------------------------------------------------------------------------------- */

static int keep_text(run *r, const char *text, size_t n_bytes) {
    if (n_bytes > r->text_capacity - r->n_text) {
        size_t capacity = 2 * (r->n_text + n_bytes) + 256;
        char *grown = private_realloc(r->text, capacity);
        if (!grown)
            return cli_fail(CLI_FAILED, "out of memory for the text");
        r->text = grown;
        r->text_capacity = capacity;
    }
    memcpy(r->text + r->n_text, text, n_bytes);
    r->n_text += n_bytes;
    return CLI_OK;
}

static int on_text(void *user, const char *text, size_t n_bytes) {
    run *r = user;
    if (r->jsonl)
        return keep_text(r, text, n_bytes);
    r->line_open = text[n_bytes - 1] != '\n';
    return output_write(&r->out, text, n_bytes);
}

/* Texts end with a line feed and are set apart by a blank line. */
static bool begin_text(run *r) {
    r->n_text = 0;
    r->line_open = true; /* an empty text is an empty line */
    return r->jsonl || r->index == 0 || output_write(&r->out, "\n", 1) == CLI_OK;
}

static int end_text(run *r, const writer_result *result) {
    if (!r->jsonl)
        return r->line_open ? output_write(&r->out, "\n", 1) : CLI_OK;
    json_t *object = json_pack("{s:i, s:s%, s:i, s:b, s:b}", "index", r->index, "text",
                               r->text ? r->text : "", r->n_text, "n_tokens", result->n_drawn,
                               "ended", result->ended, "private", r->j->is_private);
    if (object && r->j->warning)
        json_object_set_new(object, "label", json_string(r->j->warning));
    char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    int code = line ? output_write(&r->out, line, strlen(line))
                    : cli_fail(CLI_FAILED, "out of memory for the text");
    if (code == CLI_OK)
        code = output_write(&r->out, "\n", 1);
    private_free(line);
    return code;
}

/* ---- Progress ------------------------------------------------------------------------------- */

static double seconds_between(const struct timespec *a, const struct timespec *b) {
    return (double)(b->tv_sec - a->tv_sec) + 1e-9 * (double)(b->tv_nsec - a->tv_nsec);
}

/* One line on a terminal, rewritten a few times a second. */
static void on_progress(void *user, int32_t n_drawn, int32_t n_tokens) {
    run *r = user;
    if (!r->show_progress)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (n_drawn == 0) {
        fprintf(stderr, "\r\033[Ktext %d/%d: reading the prompts", r->index + 1, r->j->n_texts);
        return;
    }
    if (n_drawn == 1)
        r->first = now;
    double seconds = seconds_between(&r->first, &now);
    if (seconds <= 0 || (seconds_between(&r->shown, &now) < 0.2 && n_drawn < n_tokens))
        return;
    r->shown = now;
    double rate = (double)(n_drawn - 1) / seconds;
    int64_t eta = (int64_t)((double)(n_tokens - n_drawn) / rate);
    fprintf(stderr, "\r\033[Ktext %d/%d: %d/%d tokens, %.1f tokens/s, at most %" PRId64
                    ":%02" PRId64 " left for this text",
            r->index + 1, r->j->n_texts, n_drawn, n_tokens, rate, eta / 60, eta % 60);
}

static void clear_progress(const run *r) {
    if (r->show_progress)
        fputs("\r\033[K", stderr);
}

/* ---- Generating ----------------------------------------------------------------------------- */

static int generate_text(run *r) {
    if (!begin_text(r))
        return CLI_FAILED;
    writer_result result;
    int code = writer_text(r->writer, r->index, &result);
    clear_progress(r);
    if (code == CLI_OK && result.cancelled)
        code = 128 + (int)stop_signal;
    /* What was released is written, whatever happened. */
    if (result.n_drawn > 0 && end_text(r, &result) != CLI_OK)
        code = CLI_FAILED;
    return code;
}

/* ---- The whole run -------------------------------------------------------------------------- */

/* No file is written twice, or over an input. */
static int check_output_paths(const args *a) {
    const char *paths[1 + MAX_REPORTS] = {a->v[OPT_OUTPUT].s};
    const int n = 1 + a->n_reports;
    memcpy(paths + 1, a->reports, (size_t)a->n_reports * sizeof *paths);
    for (int i = 0; i < n; i++) {
        if (output_same_file(paths[i], a->model) ||
            (a->n_positional > 0 && output_same_file(paths[i], a->positional[0])))
            return cli_fail(CLI_USAGE, "%s is an input of this run and would be overwritten",
                            paths[i]);
        for (int k = 0; k < i; k++)
            if (strcmp(paths[i], paths[k]) == 0 || output_same_file(paths[i], paths[k]))
                return cli_fail(CLI_USAGE, "--report and %s lead to the same file",
                                k == 0 ? "--output" : "--report");
    }
    return CLI_OK;
}

static int write_texts(run *r) {
    const job *j = r->j;
    int code = CLI_OK;
    for (r->index = 0; r->index < j->n_texts && code == CLI_OK; r->index++) {
        code = generate_text(r);
        /* A signal after the last token of a text that is not the last one. */
        if (code == CLI_OK && stop_signal && r->index + 1 < j->n_texts)
            code = 128 + (int)stop_signal;
    }
    return code;
}

/* The statement is owed once the first text has begun, also when the run fails after that: its
 * budget has to be taken as spent. Takes `model`, the report's section. */
static int write_statement(const run *r, int code, report_files *reports, json_t *model) {
    const job *j = r->j;
    int64_t n_null = writer_null_records(r->writer);
    if (n_null > 0 && !j->plain && !r->quiet)
        cli_note("note: %" PRId64 " of %" PRId64 " records are empty or unreadable and add nothing",
                 n_null, j->n_records);
    facts f;
    facts_init(&f);
    statement_add(&f, j);
    if (code != CLI_OK)
        facts_line(&f, "stopped early", "the guarantee and its cost are those of the whole run");
    fprintf(stderr, "\nPrivacy statement%s\n", j->is_private ? "" : ": NOT PRIVATE");
    int result = facts_print(&f, false, stderr);
    facts_free(&f);
    if (reports) {
        json_t *report = report_make(j, code == CLI_OK, report_software(), model);
        if (!report)
            result = cli_fail(CLI_FAILED, "out of memory for the report");
        else if (report_files_write(reports, report) != CLI_OK)
            result = CLI_FAILED;
        json_decref(report);
    }
    return code != CLI_OK ? code : result;
}

/* Everything that can fail is tried before a record is read: the model is hashed, the files of the
 * reports are made, the output is opened. */
static int open_outputs(const args *a, run *r, report_files **reports, json_t **model) {
    int code = CLI_OK;
    if (a->n_reports > 0 && !r->quiet && r->j->info.weight_bytes > INT64_C(1) << 30)
        cli_note("note: reading the model once for its hash in the report");
    if (a->n_reports > 0)
        code = report_model(r->j, a->model, model);
    if (code == CLI_OK)
        code = report_files_open(a, reports);
    if (code == CLI_OK)
        code = output_open(&r->out, a->v[OPT_OUTPUT].s, false);
    return code;
}

static int run_job(const args *a, run *r) {
    report_files *reports = NULL;
    json_t *model = NULL;
    int code = open_outputs(a, r, &reports, &model);
    if (code == CLI_OK)
        code =
            writer_open(r->j, &(writer_hooks){on_text, on_progress, is_cancelled, r}, &r->writer);
    bool begun = code == CLI_OK;
    if (begun) {
        bool to_terminal = !r->jsonl && isatty(r->out.fd);
        r->show_progress = !r->quiet && isatty(STDERR_FILENO) && !to_terminal;
        catch_signals();
        if (r->j->warning)
            cli_note("%s", r->j->warning);
        code = write_texts(r);
    }
    if (output_close(&r->out, true) != CLI_OK && code == CLI_OK)
        code = CLI_FAILED;
    if (begun)
        code = write_statement(r, code, reports, json_incref(model));
    json_decref(model);
    if (report_files_close(reports, begun) != CLI_OK && code == CLI_OK)
        code = CLI_FAILED;
    return code;
}

static int run_main(const args *a) {
    run r = {.jsonl = a->v[OPT_JSONL].i, .quiet = a->v[OPT_QUIET].i, .out = {.fd = -1}};
    if (!a->v[OPT_PLAIN].i && a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no REFS given; see 'dpinfer run -h'");
    job j;
    r.j = &j;
    int code = check_output_paths(a);
    if (code == CLI_OK)
        code = report_files_probe(a);
    if (code != CLI_OK)
        return code;
    code = job_prepare(a, r.quiet, &j);
    if (code == CLI_OK)
        code = run_job(a, &r);
    writer_close(r.writer);
    private_free(r.text);
    job_free(&j);
    return code;
}

const command command_run = {
    .name = "run", .bit = CMD_RUN, .arguments = "MODEL REFS", .takes_model = 1,
    .max_positional = 1, .run = run_main,
    .summary = "write private text about records",
    .details =
        "Writes text that resembles the records without giving any one of them away. Needs a\n"
        "privacy budget: --rho, or --epsilon with --delta.\n\n"
        "REFS is a folder of .txt files (one file is one record, in the byte order of the\n"
        "names), a .jsonl (one line) or a .csv with a header row (one row). Records go to\n"
        "batches by position and each batch gives one text. A record that is empty or cannot\n"
        "be read keeps its place and adds nothing. With --adjacency add-remove a record goes\n"
        "to the batch that a keyed hash of its content says, with --subsample to a random one\n"
        "or to none; there are then --num texts, sums are divided by -B, and how many records\n"
        "a text has stays secret.\n\n"
        "Only the text goes to stdout, token by token; texts are set apart by a blank line,\n"
        "or see --jsonl. The privacy statement goes to stderr, and to --report.\n"
        "SIGINT and SIGTERM finish the token, write what is released and the statement.\n",
};
