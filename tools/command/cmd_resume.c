/* cmd_resume.c - `dpinfer resume`: a job that was stopped goes on. The words of its command are in
 * the job: they are parsed again, and the run is that of `dpinfer run`. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpinfer/journal.h"
#include "dpinfer/memory.h"
#include "dpinfer/shards.h"
#include "tools/command/commands.h"
#include "tools/options/paths.h"
#include "tools/ranks/ranks.h"
#include "tools/shared/job_output.h"

/* What may be another one than before: no token depends on it. */
static const option_id own[] = {OPT_OUTPUT,   OPT_JSONL,     OPT_OVERWRITE,
                                OPT_QUIET,    OPT_THREADS,   OPT_ISA,
                                OPT_PARALLEL, OPT_MAX_HOURS, OPT_JOURNAL_EVERY};

typedef struct resumed {
    json_t *application;
    char **argv; /* [argc + 1] of the run */
    int argc;
    char *paths[1 + MAX_REPORTS]; /* of this command, from its own folder */
} resumed;

/* ---- The words of the run -------------------------------------------------------------------- */

static int read_words(const char *folder, const dpi_journal *journal, resumed *r) {
    static char name[] = "run";
    json_error_t why;
    const char *text = dpi_journal_application(journal);
    r->application = text ? json_loads(text, 0, &why) : NULL;
    const json_t *words = json_object_get(r->application, "words");
    const size_t n = json_array_size(words);
    bool ok = json_is_string(json_object_get(r->application, "folder")) && n > 0;
    r->argv = calloc(n + 2, sizeof *r->argv);
    if (!r->argv)
        return cli_no_memory("the job");
    r->argv[r->argc++] = name;
    for (size_t i = 0; i < n && ok; i++) {
        const char *word = json_string_value(json_array_get(words, i));
        ok = word;
        r->argv[r->argc++] = (char *)word; /* the parser changes no word */
    }
    return ok ? CLI_OK
              : cli_fail(CLI_FAILED, "%s: the job is that of a shard or of another program: the "
                                     "command that has begun it goes on with it", folder);
}

/* A path of this command from the root: the run has a folder of its own. */
static char *from_root(const char *path) {
    if (path[0] == '/' || strcmp(path, "-") == 0)
        return strdup(path);
    char *folder = getcwd(NULL, 0), *full = NULL;
    if (folder && asprintf(&full, "%s/%s", folder, path) < 0)
        full = NULL;
    free(folder);
    return full;
}

/* What this command says goes before what the run has said. */
static int override(const args *a, resumed *r, args *run) {
    int n = 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (a->v[own[i]].given)
            run->v[own[i]] = a->v[own[i]];
    if (a->v[OPT_OUTPUT].given) {
        run->v[OPT_JSONL] = a->v[OPT_JSONL];
        run->v[OPT_OUTPUT].s = r->paths[n++] = from_root(a->v[OPT_OUTPUT].s);
    }
    for (int i = 0; i < a->n_reports; i++)
        run->reports[i] = r->paths[n++] = from_root(a->reports[i]);
    run->n_reports = a->n_reports > 0 ? a->n_reports : run->n_reports;
    for (int i = 0; i < n; i++)
        if (!r->paths[i])
            return cli_fail(CLI_FAILED, "the name of the current folder is not known");
    return CLI_OK;
}

/* Why it is no job that goes on here. */
static int fail_open(const char *folder, const dpi_error *err) {
    dpi_shards *shards;
    if (dpi_shards_open(folder, &shards, NULL) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, err);
    dpi_shards_close(shards);
    return cli_fail(CLI_USAGE, "%s is a job in shards: each goes on with the 'dpinfer run --shard' "
                               "that has begun it, and 'dpinfer merge' puts the texts together",
                    folder);
}

/* ---- A job that is over ---------------------------------------------------------------------- */

/* All that is asked for is there: nothing is left to draw or to write. */
static bool is_over(const args *run, const dpi_journal *journal) {
    const char *path = run->v[OPT_OUTPUT].s;
    bool there = !run->v[OPT_OVERWRITE].i && paths_is_file(path);
    for (int i = 0; i < run->n_reports; i++)
        there = there && paths_is_file(run->reports[i]);
    return there && job_output_is_there(journal, text_form_of(run->v[OPT_JSONL].i, path), path);
}

/* By its whole name: it may have been said in another folder. */
static int tell_over(const args *run) {
    char *full = realpath(run->v[OPT_OUTPUT].s, NULL);
    cli_note("the job is over: all of its texts are in %s, and nothing is left to draw",
             full ? full : run->v[OPT_OUTPUT].s);
    free(full);
    return CLI_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int go_on(const args *a, dpi_journal *journal, resumed *r) {
    args run;
    bool done;
    int code = read_words(a->positional[0], journal, r);
    if (code == CLI_OK)
        code = options_parse(&command_run, r->argc, r->argv, &run, &done);
    if (code == CLI_OK)
        code = override(a, r, &run);
    if (code != CLI_OK)
        return code;
    const char *folder = json_string_value(json_object_get(r->application, "folder"));
    if (chdir(folder) != 0)
        return cli_fail(CLI_FAILED, "cannot go to the folder %s, where the job was begun: %s",
                        folder, strerror(errno));
    if (is_over(&run, journal))
        return tell_over(&run);
    run.v[OPT_JOB].s = a->positional[0]; /* as it is called here */
    run.journal = journal;
    return command_run.run(&run);
}

/* The files of the run are looked at when it goes on: from its own folder. */
static int check_outputs(const args *a) {
    paths p = {0};
    paths_own(&p, a->positional[0]);
    paths_options(&p, a);
    return paths_check(&p, true);
}

static int run_resume(const args *a) {
    dpi_journal_options options;
    dpi_journal *journal = NULL;
    dpi_error err;
    resumed r = {0};
    if (a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no DIR given; see 'dpinfer resume -h'");
    int code = ranks_open();
    if (code == CLI_OK && ranks_count() > 1)
        code = cli_fail(CLI_USAGE, "under mpirun 'dpinfer run' goes on: give its command again");
    if (code != CLI_OK) {
        ranks_close(code);
        return code;
    }
    code = check_outputs(a);
    if (code != CLI_OK)
        return code;
    dpi_journal_options_init(&options);
    options.every = (int32_t)a->v[OPT_JOURNAL_EVERY].i;
    if (dpi_journal_open(a->positional[0], &options, &journal, &err) != DPI_STATUS_OK)
        return fail_open(a->positional[0], &err);
    code = go_on(a, journal, &r);
    dpi_journal_close(journal);
    json_decref(r.application);
    free(r.argv);
    for (size_t i = 0; i < sizeof r.paths / sizeof *r.paths; i++)
        free(r.paths[i]);
    return code;
}

const command command_resume = {
    .name = "resume",
    .bit = CMD_RESUME,
    .arguments = "DIR",
    .takes_model = 0,
    .max_positional = 1,
    .run = run_resume,
    .summary = "go on with a run that was stopped",
    .details =
        "Goes on with the run that 'dpinfer run --job DIR' began, whatever has stopped it: a\n"
        "signal, --max-hours, kill -9, a power cut. Texts that are drawn are written again from\n"
        "the job, and the one that was cut goes on after its last token. There is no new\n"
        "charge: the run was paid for when it began. Of a job that is over, with its output and\n"
        "reports in their places, it says so: nothing is left to do.\n\n"
        "The model, the records, the prompts and all parameters must be those of the run; what\n"
        "has changed is named. What is given here goes before what was given to 'dpinfer run'.\n"
        "The folder is as secret as the records. Of a folder and its copies only one may go on.\n",
};
