/* cmd_run.c - `dpinfer run`: records in, text out. */
#include "tools/command/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/command/texts_told.h"
#include "tools/options/ledger_options.h"
#include "tools/options/paths.h"
#include "tools/options/shard_options.h"
#include "tools/ranks/ranks.h"
#include "tools/shared/job_output.h"
#include "tools/shared/release_input.h"
#include "tools/shared/report_files.h"
#include "tools/shared/text_sink.h"
#include "tools/terminal/output.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/statement_shown.h"

/* ---- The state of a run --------------------------------------------------------------------- */

typedef struct run {
    release_input in;
    const dpi_run *claim;
    text_form form;
    bool quiet;
    progress progress;
    const char *job; /* its folder, which has the texts until all are there; NULL: none */
    output out;
    job_output whole; /* of out */
    report_files *reports;
    dpi_report *report;
    text_sink texts; /* of out */
    texts_told told;
    bool released;  /* a token is drawn */
    bool shard_begun, begun; /* the shard; the release: its statement is owed */
    bool is_cut;    /* the job: a text that is not over was the last one */
    char *last_words; /* what a handler prints that cannot return */
} run;

/* ---- Texts ---------------------------------------------------------------------------------- */

/* Into the hash that the report has of the output. */
static void add_written(void *user, const char *bytes, size_t n_bytes) {
    run *r = user;
    if (r->report)
        dpi_report_output_add(r->report, bytes, n_bytes);
    if (r->job)
        sha256_update(&r->whole.hash, n_bytes, (const uint8_t *)bytes);
    progress_text(&r->progress, bytes, n_bytes);
}

static int begin_text(run *r, int32_t index) {
    text_head head = {.index = index};
    dpi_release_label(r->in.release, index, &head.label, &head.n_label);
    return text_sink_begin(&r->texts, &head);
}

/* The text is whole. */
static int close_text(run *r, const dpi_release_event *event) {
    const char *label;
    size_t n_label;
    dpi_error err;
    int code = text_sink_end(&r->texts);
    if (code == CLI_OK)
        code = texts_told_end(&r->told, event->end);
    dpi_release_label(r->in.release, event->index, &label, &n_label);
    if (!r->report || dpi_report_text_add(r->report, label, event->n_drawn, event->end, &err) ==
                          DPI_STATUS_OK)
        return code;
    return code == CLI_OK ? cli_fail_library(CLI_FAILED, &err) : code;
}

/* A token that is released is written at once. */
static int write_event(run *r, const dpi_release_event *event) {
    int code = CLI_OK;
    if (event->type == DPI_EVENT_PROMPT || r->is_cut)
        return CLI_OK;
    if (r->progress.form != PROGRESS_LINE || event->type == DPI_EVENT_END)
        progress_clear(&r->progress);
    r->released = true;
    if (!r->texts.open && (code = begin_text(r, event->index)) != CLI_OK)
        return code;
    if (r->job && event->end == DPI_END_CANCELLED) { /* the job has the rest, and goes on here */
        r->is_cut = true;
        return r->texts.form == TEXT_LINES ? CLI_OK : text_sink_end(&r->texts); /* a whole line */
    }
    code = text_sink_add(&r->texts, event->text, event->n_bytes, event->n_drawn,
                         dpi_end_is_own(event->end));
    if (code == CLI_OK)
        code = texts_told_add(&r->told, event->text, event->n_bytes);
    if (event->type != DPI_EVENT_END)
        return code;
    r->texts.open = false;
    return code == CLI_OK ? close_text(r, event) : code;
}

/* After a failure of the output: the END of the text that is open, so that it ends as a line. */
static void finish_text(run *r) {
    dpi_release_event event;
    dpi_release_cancel(r->in.release);
    while (r->texts.open && dpi_release_advance(r->in.release, &event, NULL) == DPI_STATUS_OK)
        write_event(r, &event);
}

static int write_texts(run *r) {
    dpi_release_event event = {.type = DPI_EVENT_PROMPT};
    dpi_error err;
    for (;;) {
        int code = CLI_OK; /* of another rank, which has said why */
        const dpi_status status = ranks_advance(r->in.release, &event, &code, &err);
        if (status != DPI_STATUS_OK || event.type == DPI_EVENT_NONE)
            progress_clear(&r->progress);
        if (code != CLI_OK)
            return code;
        if (status == DPI_STATUS_CANCELLED)
            return signals_code();
        if (status != DPI_STATUS_OK)
            return cli_fail_option(status == DPI_STATUS_FORMAT ? CLI_RECORDS : CLI_FAILED, &err);
        if (event.type == DPI_EVENT_NONE)
            return CLI_OK;
        code = write_event(r, &event);
        progress_show(&r->progress, r->in.release, &event);
        if (code != CLI_OK) {
            progress_clear(&r->progress);
            if (r->texts.open)
                finish_text(r);
            return code;
        }
    }
}

/* ---- The whole run -------------------------------------------------------------------------- */

/* The statement as it is shown, to be freed with free; NULL after a failure. */
static char *make_statement(const run *r, bool complete) {
    char *text;
    dpi_error err;
    if (dpi_run_statement(r->claim, complete, &text, &err) == DPI_STATUS_OK)
        return statement_shown(text, "");
    cli_fail_library(CLI_FAILED, &err);
    return NULL;
}

/* The statement is owed once the release has begun, also when the run fails after that: its budget
 * has to be counted as spent. */
static int write_statement(const run *r, int code) {
    const bool complete = code == CLI_OK;
    const int64_t n_null = dpi_release_null_records(r->in.release);
    if (n_null > 0 && r->claim->n_records > 0 && !r->quiet &&
        r->claim->method.method != DPI_METHOD_PLAIN)
        cli_note("note: %" PRId64 " of %" PRId64 " records are empty or unreadable and add "
                 "nothing; 'dpinfer records' says why", n_null, r->claim->n_records);
    int result = CLI_OK;
    if (r->told.n > 0)
        result = texts_told_say(&r->told, r->claim->method.n_tokens, true, !r->quiet, r->report);
    result = statement_end(make_statement(r, complete), result);
    if (r->reports && report_files_write(r->reports, r->report, complete) != CLI_OK)
        result = CLI_FAILED;
    return code != CLI_OK ? code : result;
}

/* A shard of a job is marked as begun before it reads a batch. */
static int begin_shard(run *r) {
    dpi_error err;
    const dpi_status status = dpi_shards_begin(r->in.shards, r->in.release, r->report, &err);
    r->shard_begun = status == DPI_STATUS_OK;
    if (status == DPI_STATUS_CANCELLED)
        return signals_code();
    if (r->shard_begun && dpi_shards_is_over(r->in.shards))
        cli_note("all texts of this shard are there: nothing is left to draw");
    return r->shard_begun ? CLI_OK : shard_fail(status, &err);
}

static bool is_over(const run *r) { return r->shard_begun && dpi_shards_is_over(r->in.shards); }

static int end_shard(const run *r, int code) {
    const int32_t end = code == CLI_OK ? DPI_SHARD_COMPLETE
                        : r->released  ? DPI_SHARD_STOPPED
                                       : DPI_SHARD_UNDRAWN;
    dpi_error err;
    const dpi_status status = dpi_shards_end(r->in.shards, end, &err);
    return status == DPI_STATUS_OK ? CLI_OK : shard_fail(status, &err);
}

/* Everything that can fail is tried before a record is read: the model is hashed, the files of the
 * reports are made, the output is opened. */
static int open_outputs(const args *a, run *r) {
    const bool hashed = a->n_reports > 0 || r->in.shards;
    const char *path = a->v[OPT_OUTPUT].s;
    if (hashed && !r->quiet && r->in.info.weight_bytes > INT64_C(1) << 30)
        cli_note("note: reading the model once for its hash in the report");
    dpi_run claim = *r->claim;
    if (r->in.shards) /* the job's charge may not fit other options: dpi_shards_begin names them */
        claim.ledger = (dpi_claim_ledger){0};
    int code = hashed ? report_of_release(a, r->in.release, &claim, r->in.model, &r->report)
                      : CLI_OK;
    if (code == CLI_OK)
        code = report_files_meta(a, r->report);
    if (code == CLI_OK && a->v[OPT_REPORT_PROMPTS].i && !hashed)
        code = cli_fail(CLI_USAGE, "--report-prompts needs --report");
    if (code == CLI_OK)
        code = report_files_try_key(a);
    if (code == CLI_OK)
        code = report_files_open(a, &r->reports);
    if (code == CLI_OK && r->in.shards) {
        code = begin_shard(r);
        path = code == CLI_OK ? dpi_shards_texts(r->in.shards) : NULL;
        if (r->in.journal) /* whose lock this process has: no other one writes in the folder */
            output_own_parts("shard");
    }
    if (code == CLI_OK && !is_over(r)) /* the journal of a shard has all texts of its file */
        code = output_open(&r->out, path, a->v[OPT_OVERWRITE].i || (r->in.shards && r->in.journal));
    return code;
}

/* What is left when the program cannot go on: a statement and reports of a run that stopped early,
 * which are written anew when it ends well. */
static int prepare_end(run *r) {
    if (!(r->last_words = make_statement(r, false)))
        return CLI_FAILED;
    return r->reports ? report_files_write(r->reports, r->report, false) : CLI_OK;
}

/* The charge is on the disk before a record is read. */
static int reserve(run *r) {
    dpi_error err;
    const dpi_status status = dpi_release_reserve(r->in.release, &err);
    if (status == DPI_STATUS_BUDGET)
        return ledger_fail_budget(r->in.ledger, r->in.dataset, r->claim, &err);
    if (status != DPI_STATUS_OK)
        return ledger_fail(status, &err);
    if (r->report && dpi_report_update(r->report, r->claim, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    if (r->report && r->in.ledger &&
        dpi_report_charges(r->report, r->in.ledger, r->in.dataset, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    return CLI_OK;
}

static int begin_release(run *r) {
    dpi_error err;
    const dpi_status status = dpi_release_begin(r->in.release, &err);
    if (status == DPI_STATUS_CANCELLED)
        return signals_code();
    return status == DPI_STATUS_OK ? CLI_OK
                                   : cli_fail_option(status == DPI_STATUS_LIMIT ? CLI_RECORDS
                                                                                : CLI_FAILED, &err);
}

/* Ranks go on together: none reads a record before rank 0 has charged the run. */
static int begin(run *r) {
    const bool first = ranks_own() == 0;
    int code = ranks_agree(r->in.release, r->report);
    if (code == CLI_OK && first)
        code = reserve(r);
    if (code == CLI_OK && first)
        code = prepare_end(r);
    code = ranks_go(code);
    if (code == CLI_OK) {
        code = begin_release(r);
        r->begun = code == CLI_OK;
        code = ranks_begun(r->in.release, code);
    }
    if (code != CLI_OK) { /* nothing was spent that a handler would have to tell */
        free(r->last_words);
        r->last_words = NULL;
    }
    return code;
}

/* From the first private pass on: the budget counts as spent. */
static int draw_texts(const args *a, run *r) {
    text_sink_open(&r->texts, &r->out, r->form, r->claim);
    sha256_init(&r->whole.hash);
    r->texts.screen = isatty(r->out.fd);
    r->texts.goes_on = r->job != NULL;
    r->texts.written = add_written, r->texts.user = r;
    progress_begin(&r->progress, progress_choose((progress_wish)a->v[OPT_PROGRESS].i,
                                                 a->v[OPT_QUIET].i,
                                                 r->texts.screen && r->form != TEXT_JSONL));
    r->out.appears = !r->job;
    if (!r->job)
        report_files_keep(r->reports);
    signals_last_words(r->last_words);
    if (r->texts.label[0])
        cli_note("%s", r->texts.label);
    return write_texts(r);
}

/* A rank that is not the first draws what it is given, and writes nothing. */
static int run_rank(const args *a, run *r) {
    signals_catch();
    int code = a->n_reports > 0
                   ? report_of_release(a, r->in.release, r->claim, r->in.model, &r->report)
                   : CLI_OK;
    if (code == CLI_OK)
        code = begin(r);
    return code == CLI_OK ? ranks_work(r->in.release) : code;
}

/* A run leaves what it has to leave, whatever ended it; but a job goes on. */
static output_end end_of(const run *r, int code, bool leaves) {
    if (!leaves || (r->job && code != CLI_OK))
        return OUTPUT_DROPPED;
    return code == CLI_FAILED ? OUTPUT_PARTIAL : OUTPUT_APPEARS;
}

static int run_release(const args *a, run *r) {
    signals_catch();
    int code = open_outputs(a, r);
    if (code == CLI_OK && is_over(r))
        return CLI_OK;
    if (code == CLI_OK)
        code = begin(r);
    if (code == CLI_OK)
        code = draw_texts(a, r);
    dpi_journal *journal = a->journal ? a->journal : r->in.journal;
    if (code == CLI_OK && r->job && r->out.temporary)
        job_output_keep(&r->whole, journal, r->form);
    code = output_finish(&r->out, end_of(r, code, code == CLI_OK || r->released), code);
    if (r->shard_begun && end_shard(r, code) != CLI_OK && code == CLI_OK)
        code = CLI_FAILED;
    if (r->begun)
        code = write_statement(r, code);
    if (report_files_close(r->reports, end_of(r, code, r->begun), a->v[OPT_SIGN].s) != CLI_OK &&
        code == CLI_OK)
        code = CLI_FAILED;
    return code;
}

/* Not where a job was refused. */
static void note_job(const args *a, const run *r, int code) {
    const bool stopped = code == CLI_STOPPED || code > 128;
    const bool waits = a->journal || r->in.shards
                           ? stopped || r->begun
                           : r->in.journal && dpi_journal_facts(r->in.journal);
    if (code == CLI_OK || !waits || !(a->journal || r->in.journal))
        return;
    if (r->in.shards || ranks_count() > 1)
        cli_note("the %s is not over: the same command goes on with it",
                 r->in.shards ? "shard" : "job");
    else
        cli_note("the job is not over: 'dpinfer resume %s' goes on with it", r->job);
}

static int run_records(const args *a) {
    const bool first = ranks_own() == 0;
    run r = {.form = text_form_of(a->v[OPT_JSONL].i, a->v[OPT_OUTPUT].s),
             .quiet = a->v[OPT_QUIET].i, .out = {.fd = -1}};
    if (!a->v[OPT_PLAIN].i && a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no REFS given; see 'dpinfer run -h'");
    if (a->v[OPT_MAX_HOURS].given && !job_wanted(a) && !a->v[OPT_JOB].given)
        return cli_fail(CLI_USAGE,
                        "--max-hours needs --job: what is not drawn by then would be lost");
    if (job_wanted(a))
        r.job = a->v[OPT_JOB].s;
    if (a->v[OPT_MAX_HOURS].given && first) /* the last token and the files take time too */
        signals_stop_after(.99 * 3600 * a->v[OPT_MAX_HOURS].d);
    int code = first ? paths_check_command(a) : CLI_OK;
    r.quiet |= !first;
    if (code == CLI_OK && first)
        code = report_files_probe(a);
    if (code != CLI_OK)
        return code;
    code = release_open(a, r.quiet, signals_cancel, &r.in);
    if (code == CLI_OK) {
        r.claim = dpi_release_run(r.in.release);
        r.form = r.in.shards ? TEXT_JSONL : r.form;
        code = first ? run_release(a, &r) : run_rank(a, &r);
    }
    note_job(a, &r, code);
    texts_told_free(&r.told);
    dpi_report_free(r.report);
    release_close(&r.in);
    return code;
}

static int run_main(const args *a) {
    signals_clean_up(); /* until there is something to finish */
    int code = ranks_open();
    if (code != CLI_OK)
        return code;
    code = run_records(a);
    ranks_close(code);
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
        "names), a .jsonl (one line) or a .csv with a header row (one row), or one of these\n"
        "with .gz behind its name. Records go to batches by position and each batch gives one\n"
        "text. A record that is empty or cannot be read keeps its place and adds nothing. With\n"
        "--adjacency add-remove a record goes to a random batch, with --subsample to a random\n"
        "one or to none; there are then --num texts, sums are divided by -B, and how many records\n"
        "a text has stays secret. With --epsilon that nobody knows a record's batch counts too:\n"
        "the more texts, the more each may spend. With --rho or --known-batches it does not, and\n"
        "with add-remove a keyed hash of a record's content says which batch it is in.\n\n"
        "Only the text goes to stdout, token by token; texts are set apart by a blank line,\n"
        "or see --jsonl. The privacy statement goes to stderr, and to --report.\n"
        "Files appear when they are whole. SIGINT, SIGTERM and SIGHUP finish the token, write\n"
        "what is released and the statement; so does SIGUSR1. With --job nothing is lost whatever\n"
        "stops the run: 'dpinfer resume' goes on, for the same budget.\n",
};
