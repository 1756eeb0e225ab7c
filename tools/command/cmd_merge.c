/* cmd_merge.c - `dpinfer merge`: the texts of all shards of a job as one output, with its
 * report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "tools/command/commands.h"
#include "tools/options/paths.h"
#include "tools/options/shard_options.h"
#include "tools/shared/csv_texts.h"
#include "tools/shared/report_files.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/terminal.h"

/* To the output, and into the hash that the report has of it. */
static int put(const dpi_merge *merge, output *out, const char *bytes, size_t n_bytes) {
    dpi_report_output_add(dpi_merge_report(merge), bytes, n_bytes);
    return output_show(out, bytes, n_bytes);
}

/* As `run` writes texts: a line feed at the end of each, a blank line between two. */
static int write_text(const dpi_merge *merge, output *out, const dpi_merged_text *t, bool first) {
    int code = first ? CLI_OK : put(merge, out, "\n", 1);
    if (code == CLI_OK)
        code = put(merge, out, t->text, t->n_bytes);
    const bool ended = t->n_bytes > 0 && t->text[t->n_bytes - 1] == '\n';
    return code == CLI_OK && !ended ? put(merge, out, "\n", 1) : code;
}

static int write_line(const dpi_merge *merge, output *out, const dpi_merged_text *t) {
    const int code = put(merge, out, t->line, t->n_line);
    return code == CLI_OK ? put(merge, out, "\n", 1) : code;
}

/* The bytes are private memory, which is freed; NULL: there was no memory for them. */
static int put_private(const dpi_merge *merge, output *out, char *bytes, size_t n_bytes) {
    const int code = bytes ? put(merge, out, bytes, n_bytes) : cli_no_memory("the texts");
    dpi_private_free(bytes);
    return code;
}

static int write_row(const dpi_merge *merge, output *out, int32_t i, const dpi_merged_text *t,
                     bool first) {
    const dpi_claim *claim = dpi_report_claim(dpi_merge_report(merge));
    char head[CSV_BYTES], end[CSV_BYTES];
    size_t n_begin = 0, n_quoted = 0;
    csv_head(claim, t->label != NULL, head);
    csv_end(claim, t->n_tokens, t->end == DPI_END_EOG, end);
    int code = first ? put(merge, out, head, strlen(head)) : CLI_OK;
    char *begin = csv_begin(i, t->label, t->label ? strlen(t->label) : 0, &n_begin);
    const int begun = put_private(merge, out, begin, n_begin);
    char *quoted = csv_quote(t->text, t->n_bytes, &n_quoted);
    const int written = put_private(merge, out, quoted, n_quoted);
    code = code != CLI_OK ? code : begun != CLI_OK ? begun : written;
    return code == CLI_OK ? put(merge, out, end, strlen(end)) : code;
}

static int write_texts(const dpi_merge *merge, bool jsonl, bool csv, output *out) {
    int32_t n_present;
    const int32_t n = dpi_merge_count(merge, &n_present);
    bool first = true;
    int code = CLI_OK;
    for (int32_t i = 0; i < n && code == CLI_OK; i++) {
        dpi_merged_text t;
        dpi_error err;
        if (dpi_merge_text(merge, i, &t, &err) != DPI_STATUS_OK)
            return cli_fail_library(CLI_FAILED, &err);
        if (!t.line)
            continue;
        if (dpi_report_text_add(dpi_merge_report(merge), t.label, t.n_tokens, t.end, &err) !=
            DPI_STATUS_OK)
            return cli_fail_library(CLI_FAILED, &err);
        code = jsonl ? write_line(merge, out, &t)
               : csv ? write_row(merge, out, i, &t, first)
                     : write_text(merge, out, &t, first);
        first = false;
    }
    return code;
}

static int write_statement(const dpi_merge *merge, bool complete) {
    char *text, *shown;
    size_t n;
    dpi_error err;
    if (dpi_claim_statement(dpi_report_claim(dpi_merge_report(merge)), complete, &text, &err) !=
        DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    shown = terminal_text(text, strlen(text), true, &n);
    free(text);
    if (!shown)
        return cli_no_memory("the statement");
    const bool written = fprintf(stderr, "\n%s", shown) >= 0 && fflush(stderr) == 0;
    free(shown);
    return written ? CLI_OK : CLI_FAILED;
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
    const size_t n = strlen(a->positional[0]);
    const bool jsonl =
        a->v[OPT_JSONL].i || (n > 6 && strcmp(a->positional[0] + n - 6, ".jsonl") == 0);
    int32_t n_present;
    const bool complete = dpi_merge_count(merge, &n_present) == n_present;
    report_files *reports = NULL;
    output out = {.fd = -1};
    int code = report_files_open(a, &reports);
    if (code == CLI_OK)
        code = output_open(&out, a->positional[0], a->v[OPT_OVERWRITE].i);
    if (code == CLI_OK)
        code = write_texts(merge, jsonl, csv_wanted(a->positional[0]), &out);
    if (code == CLI_OK && reports)
        code = report_files_write(reports, dpi_merge_report(merge), complete);
    const output_end end = code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED;
    if (output_close(&out, end) != CLI_OK)
        code = CLI_FAILED;
    if (report_files_close(reports, end, NULL) != CLI_OK)
        code = CLI_FAILED;
    return code == CLI_OK ? write_statement(merge, complete) : code;
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
        return cli_fail_library(CLI_FAILED, &err);
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
        "JSON object per text, one that ends in .csv a row. Fails if a shard is missing or there\n"
        "twice, if texts were changed, or if the folders are not of one job.\n",
};
