/* cmd_merge.c - `dpinfer merge`: the texts of all shards of a job as one output, with its
 * report. */
#include <string.h>
#include <unistd.h>

#include "dpinfer/journal.h"
#include "tools/command/commands.h"
#include "tools/command/texts_told.h"
#include "tools/options/paths.h"
#include "tools/options/shard_options.h"
#include "tools/shared/report_files.h"
#include "tools/shared/text_sink.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/statement_shown.h"

/* Into the hash that the report has of the output. */
static void add_written(void *user, const char *bytes, size_t n_bytes) {
    dpi_report_output_add(user, bytes, n_bytes);
}

/* The lines of shards do not say what --max-words has ended. */
static int tell_texts(const dpi_merge *merge, const texts_told *told) {
    dpi_report *report = dpi_merge_report(merge);
    return texts_told_say(told, dpi_report_run(report)->method.n_tokens, false, true, report);
}

static int write_texts(const dpi_merge *merge, text_form form, output *out, texts_told *told) {
    dpi_report *report = dpi_merge_report(merge);
    int32_t n_present;
    const int32_t n = dpi_merge_count(merge, &n_present);
    text_sink texts;
    int code = CLI_OK;
    text_sink_open(&texts, out, form, dpi_report_run(report));
    texts.screen = isatty(out->fd);
    texts.written = add_written, texts.user = report;
    for (int32_t i = 0; i < n && code == CLI_OK; i++) {
        dpi_merged_text t;
        dpi_error err;
        if (dpi_merge_text(merge, i, &t, &err) != DPI_STATUS_OK)
            return cli_fail_library(CLI_FAILED, &err);
        if (!t.line)
            continue;
        if (dpi_report_text_add(report, t.label, t.n_tokens, t.end, &err) != DPI_STATUS_OK)
            return cli_fail_library(CLI_FAILED, &err);
        const text_head head = {i, t.label, t.label ? strlen(t.label) : 0, NULL};
        code = text_sink_put(&texts, &head, t.text, t.n_bytes, t.n_tokens, dpi_end_is_own(t.end));
        if (code == CLI_OK)
            code = texts_told_add(told, t.text, t.n_bytes);
        if (code == CLI_OK)
            code = texts_told_end(told, t.end);
    }
    return code;
}

static int write_statement(const dpi_merge *merge, bool complete) {
    char *text;
    dpi_error err;
    if (dpi_run_statement(dpi_report_run(dpi_merge_report(merge)), complete, &text, &err) !=
        DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    return statement_end(statement_shown(text, ""), CLI_OK);
}

static int check_outputs(const args *a) {
    paths p = {0};
    for (int i = 1; i < a->n_positional; i++)
        paths_own(&p, a->positional[i]);
    paths_write(&p, "OUT", a->positional[0]);
    paths_options(&p, a);
    return paths_check(&p, a->v[OPT_OVERWRITE].i);
}

static int write_all(const args *a, const dpi_merge *merge) {
    const char *path = a->positional[0];
    const bool jsonl = a->v[OPT_JSONL].i || cli_ends_in(path, ".jsonl");
    int32_t n_present;
    const bool complete = dpi_merge_count(merge, &n_present) == n_present;
    report_files *reports = NULL;
    output out = {.fd = -1};
    texts_told told = {0};
    int code = report_files_meta(a, a->n_reports > 0 ? dpi_merge_report(merge) : NULL);
    if (code == CLI_OK)
        code = report_files_try_key(a);
    if (code == CLI_OK)
        code = report_files_probe(a); /* of signatures, too, which come last */
    if (code == CLI_OK)
        code = report_files_open(a, &reports);
    if (code == CLI_OK)
        code = output_open(&out, path, a->v[OPT_OVERWRITE].i);
    if (code == CLI_OK)
        code = write_texts(merge, text_form_of(jsonl, path), &out, &told);
    if (code == CLI_OK)
        code = tell_texts(merge, &told);
    texts_told_free(&told);
    if (code == CLI_OK && reports)
        code = report_files_write(reports, dpi_merge_report(merge), complete);
    const output_end end = code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED;
    code = output_finish(&out, end, code);
    if (report_files_close(reports, end, a->v[OPT_SIGN].s) != CLI_OK)
        code = CLI_FAILED;
    return code == CLI_OK ? write_statement(merge, complete) : code;
}

/* A job of one process has a folder, too, and its own command for its texts. */
static int fail_open(const args *a, const dpi_error *err) {
    const int code = cli_fail_library(CLI_FAILED, err);
    dpi_journal_options options;
    dpi_journal *journal;
    dpi_journal_options_init(&options);
    options.read_only = 1;
    if (dpi_journal_open(a->positional[1], &options, &journal, NULL) != DPI_STATUS_OK)
        return code;
    dpi_journal_close(journal);
    cli_note("advice: %s is a job of one process, whose texts 'dpinfer resume' writes",
             a->positional[1]);
    return code;
}

static int merge_main(const args *a) {
    dpi_merge *merge;
    dpi_error err;
    if (a->n_positional < 2)
        return cli_fail(CLI_USAGE, "no %s given; see 'dpinfer merge -h'",
                        a->n_positional == 0 ? "OUT" : "DIR");
    int code = check_outputs(a);
    if (code != CLI_OK)
        return code;
    signals_clean_up();
    const dpi_status status =
        dpi_merge_open(a->positional + 1, (size_t)a->n_positional - 1,
                       (int32_t)a->v[OPT_PARTIAL].i, &merge, &err);
    if (status != DPI_STATUS_OK)
        return fail_open(a, &err);
    code = write_all(a, merge);
    dpi_merge_close(merge);
    return code;
}

const command command_merge = {
    .name = "merge", .bit = CMD_MERGE, .arguments = "OUT DIR...", .max_positional = MAX_WORDS,
    .run = merge_main,
    .summary = "the texts of all shards of a job as one",
    .details =
        "Puts the texts of a job together that 'run --job DIR --shard i/n' has written, in their\n"
        "order, and writes one report. DIR is the folder of the job; where shards have run with\n"
        "copies of it, all of them. OUT - is standard output; a name that ends in .jsonl gets one\n"
        "JSON object per text, one that ends in .csv a row. --meta and --sign are given here, and\n"
        "not to 'plan --job' or a shard. Fails if a shard is missing or there twice, if texts\n"
        "were changed, or if the folders are not of one job.\n",
};
