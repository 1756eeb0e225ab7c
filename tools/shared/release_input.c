/* release_input.c - see release_input.h. */
#include "tools/shared/release_input.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/options/ledger_options.h"
#include "tools/options/records_options.h"
#include "tools/options/shard_options.h"
#include "tools/ranks/ranks.h"
#include "tools/shared/private_records.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"

static int open_records(const args *a, release_input *in, dpi_release_options *o) {
    const bool wanted = a->n_positional > 0 && (!a->v[OPT_PLAIN].i || o->reference >= 0);
    dpi_records_options options;
    dpi_error err;
    int code = records_options(a, &options);
    if (code == CLI_OK && wanted)
        code = records_open_private(a, 0, &options, &in->records);
    if (code != CLI_OK)
        return code;
    o->records = in->records;
    const int64_t n = in->records ? (int64_t)dpi_records_count(in->records) : 0;
    if (o->reference >= 0 && n > 0 && o->reference >= n) /* counted from 1 here */
        return cli_fail(CLI_USAGE, "--reference: found '%" PRId64 "', allowed 1..%" PRId64,
                        o->reference + 1, n);
    const dpi_status status = dpi_release_options_check(o, &err);
    if (status == DPI_STATUS_OK)
        return CLI_OK;
    return cli_fail_option(status == DPI_STATUS_FORMAT || status == DPI_STATUS_LIMIT ? CLI_RECORDS
                                                                                     : CLI_USAGE,
                           &err);
}

/* Which units have paid is known to the rank that has charged them alone. */
static int check_scope(const release_input *in) {
    dpi_dataset_info info;
    dpi_error err;
    dpi_dataset_info_init(&info);
    const dpi_status status = dpi_ledger_info(in->ledger, in->dataset, &info, &err);
    if (status != DPI_STATUS_OK)
        return ledger_fail(status, &err);
    return info.scope == DPI_SCOPE_DATASET
               ? CLI_OK
               : cli_fail(CLI_USAGE,
                          "a run over ranks cannot be charged to '%s', whose scope is unit",
                          in->dataset);
}

static int open_ledger(const args *a, release_input *in, dpi_release_options *o) {
    const bool read_only = a->command->bit == CMD_PLAN && !a->v[OPT_JOB].given;
    const int code = ledger_options_open(a, read_only, &in->ledger, in->dataset);
    o->ledger = in->ledger;
    o->dataset = in->ledger ? in->dataset : NULL;
    return code == CLI_OK && in->ledger && ranks_count() > 1 ? check_scope(in) : code;
}

/* Random, for the temporary files of a job; null: each then has a name of its own. */
static json_t *draw_ending(void) {
    uint32_t bits;
    return getentropy(&bits, sizeof bits) == 0 ? json_sprintf("%08" PRIx32, bits) : json_null();
}

/* What `resume` parses again: the words of this command, and where they are said. */
static json_t *describe_command(const args *a) {
    char *folder = getcwd(NULL, 0);
    json_t *words = json_array();
    bool ok = folder && words;
    for (int i = 1; i < a->argc && ok; i++)
        ok = json_array_append_new(words, json_string(a->argv[i])) == 0;
    json_t *object = ok ? json_pack("{s:s, s:O, s:o}", "folder", folder, "words", words, "ending",
                                    draw_ending())
                        : NULL;
    json_decref(words);
    free(folder);
    return object;
}

/* What comes from standard input is gone when the job goes on. */
static int check_job(const args *a) {
    static const option_id files[] = {OPT_PRIVATE_PROMPT_FILE, OPT_PUBLIC_PROMPT_FILE,
                                      OPT_QUERY_FILE, OPT_SYSTEM_FILE, OPT_ANSWER_FILE,
                                      OPT_GRAMMAR, OPT_JSON_SCHEMA};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (a->v[files[i]].given && strcmp(a->v[files[i]].s, "-") == 0)
            return cli_fail(CLI_USAGE, "--job and --%s -: standard input cannot be read again when "
                                       "the job goes on", option_name(files[i]));
    return CLI_OK;
}

/* A new journal; where the same command goes on, also one that has begun. */
static dpi_status open_journal(const char *folder, dpi_journal_options *options, bool goes_on,
                               dpi_journal **journal, dpi_error *err) {
    options->create = 1;
    const dpi_status status = dpi_journal_open(folder, options, journal, err);
    if (status != DPI_STATUS_ARG || !goes_on)
        return status;
    options->create = 0;
    return dpi_journal_open(folder, options, journal, err);
}

static int create_job(const args *a, release_input *in) {
    dpi_journal_options options;
    dpi_shards *shards;
    dpi_error err;
    if (dpi_shards_open(a->v[OPT_JOB].s, &shards, NULL) == DPI_STATUS_OK) {
        dpi_shards_close(shards);
        return cli_fail(CLI_USAGE, "--job: %s is a job in shards, which needs --shard",
                        a->v[OPT_JOB].s);
    }
    json_t *words = describe_command(a);
    char *text = words ? json_dumps(words, JSON_COMPACT) : NULL;
    json_decref(words);
    if (!text)
        return cli_fail(CLI_USAGE, "--job: the command line is not UTF-8, and cannot be kept");
    dpi_journal_options_init(&options);
    options.every = (int32_t)a->v[OPT_JOURNAL_EVERY].i;
    options.application = text;
    const dpi_status status =
        open_journal(a->v[OPT_JOB].s, &options, ranks_count() > 1, &in->journal, &err);
    dpi_private_free(text);
    if (status == DPI_STATUS_ARG) /* a job is there */
        return cli_fail(CLI_USAGE, "%s. 'dpinfer resume %s' goes on with it", err.message,
                        a->v[OPT_JOB].s);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_FAILED, &err);
}

/* That of a shard is in its folder: new, or it goes on. */
static int open_shard(const args *a, const dpi_release_options *o, release_input *in) {
    dpi_journal_options options;
    dpi_error err;
    if (!dpi_method_recalls(o->method.method))
        return !a->v[OPT_MAX_HOURS].given && !a->v[OPT_JOURNAL_EVERY].given
                   ? CLI_OK
                   : cli_fail(CLI_USAGE, "--%s: a shard with this method cannot go on",
                              option_name(a->v[OPT_MAX_HOURS].given ? OPT_MAX_HOURS
                                                                    : OPT_JOURNAL_EVERY));
    dpi_journal_options_init(&options);
    options.every = (int32_t)a->v[OPT_JOURNAL_EVERY].i;
    const dpi_status status =
        open_journal(dpi_shards_folder(in->shards), &options, true, &in->journal, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_FAILED, &err);
}

/* The temporary files of this job, whose lock this process has. */
static void own_parts(const dpi_journal *journal) {
    json_error_t why;
    json_t *application = json_loads(dpi_journal_application(journal), 0, &why);
    output_own_parts(json_string_value(json_object_get(application, "ending")));
    json_decref(application);
}

/* A new job, or that of `resume`, or of a shard. */
static int open_job(const args *a, release_input *in, dpi_release_options *o) {
    int code = CLI_OK;
    if (!a->journal && job_wanted(a) && ranks_own() == 0)
        code = create_job(a, in);
    else if (in->shards)
        code = open_shard(a, o, in);
    o->journal = a->journal ? a->journal : in->journal;
    if (code == CLI_OK && o->journal && !in->shards)
        own_parts(o->journal);
    o->model_path = a->model;
    return code;
}

/* A chat model without a record has to guess what is wanted, and C is for what it guesses wrong. A
 * base model goes on with a text, and so with an order. */
static void note_kind(const dpi_release_options *o, const dpi_model_info *info) {
    const dpi_prompt_options *p = &o->prompts;
    const bool chats = dpi_prompts_chat(p->chat, info) != DPI_CHAT_NONE;
    const bool said = p->description.data || p->public_prompt.data || p->query.data;
    if (chats && !said && o->method.method != DPI_METHOD_PLAIN)
        cli_note("warning: the public prompt does not say what kind of documents these are; say it "
                 "with --describe, in words such as 'hospital discharge letters'");
    if (!chats && dpi_prompt_is_order(p->public_prompt))
        cli_note("warning: the public prompt is an instruction, and the model has no chat format: "
                 "it goes on with the text and follows no order; use --describe or --example, or "
                 "begin the document, as 'Ticket:' does");
}

/* Where the public prompt leaves nothing open, records have nothing to say. */
static void note_public_texts(const dpi_release *release) {
    dpi_public_texts told;
    dpi_pace_texts_tell(dpi_release_public_texts(release), &told);
    if (told.are_same)
        cli_note("warning: all %d public texts that the pace is found from are the same: the "
                 "public prompt leaves nothing open for the records to say; a larger --temp or "
                 "--top-k makes texts differ", told.n_texts);
}

/* What records say is divided by B, whether they are there or not. */
static void note_batch(const dpi_run *run) {
    const int32_t B = run->method.denominator;
    if (run->n_records > 0 && run->n_records < B)
        cli_note("note: batches of -B %d have %" PRId64 " %s at most: each still counts as one of "
                 "%d, so a smaller -B lets them say more", (int)B, run->n_records,
                 run->method.max_per_unit > 0 ? "units" : "records", (int)B);
}

static int open_release(const dpi_release_options *o, bool quiet, release_input *in) {
    dpi_error err;
    if (!quiet)
        note_context(o->session.n_ctx, &in->info);
    if (!quiet && o->prompts.chat == DPI_CHAT_AUTO && in->info.chat_template == DPI_CHAT_UNKNOWN)
        cli_note("warning: the model's chat template is none of the known ones (the nearest is "
                 "%s), so prompts are written without one; choose the format with --template",
                 dpi_chat_name(in->info.chat_nearest));
    if (!quiet)
        note_kind(o, &in->info);
    const dpi_status status = dpi_release_open(o, &in->release, &err);
    if (status == DPI_STATUS_CANCELLED) { /* while a pace was found */
        cli_note("stopped before a record was read");
        return signals_code();
    }
    if (status == DPI_STATUS_OK && !quiet) {
        note_public_texts(in->release);
        note_batch(dpi_release_run(in->release));
    }
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_option(CLI_USAGE, &err);
}

int release_open(const args *a, bool quiet, dpi_cancel_fn cancel, release_input *in) {
    dpi_release_options o;
    const dpi_model_options model = options_model(a);
    *in = (release_input){0};
    int code = job_wanted(a) ? check_job(a) : CLI_OK;
    if (code == CLI_OK)
        code = release_options_read(a, &in->texts, &o);
    if (code == CLI_OK)
        code = shard_join(a, &o, &in->shards);
    if (code == CLI_OK && ranks_own() == 0)
        code = open_ledger(a, in, &o);
    if (code == CLI_OK)
        code = open_records(a, in, &o);
    if (code == CLI_OK)
        code = cli_open_model(a->model, &model, &in->model, &in->info);
    if (code == CLI_OK)
        code = release_options_draw(a, &in->info, &o);
    if (code == CLI_OK)
        code = wording_options_bind(a, in->model, &in->texts.wording);
    if (code == CLI_OK)
        code = open_job(a, in, &o);
    if (code == CLI_OK && (a->command->bit & CMD_RUN))
        code = ranks_join(a, &o);
    o.model = in->model;
    o.session.cancel = cancel;
    return code == CLI_OK ? open_release(&o, quiet, in) : code;
}

void release_close(release_input *in) {
    dpi_release_free(in->release);
    dpi_shards_close(in->shards);
    dpi_journal_close(in->journal);
    dpi_ledger_close(in->ledger);
    dpi_records_close(in->records);
    dpi_model_close(in->model);
    release_texts_free(&in->texts);
    *in = (release_input){0};
}
