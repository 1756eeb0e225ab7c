/* release_options.c - see release_options.h. */
#include "tools/shared/release_options.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/options/grammar_options.h"
#include "tools/options/ledger_options.h"
#include "tools/options/shard_options.h"
#include "tools/ranks/ranks.h"
#include "tools/terminal/signals.h"

/* ---- Before anything is opened -------------------------------------------------------------- */

static int check_plain(const args *a) {
    static const option_id budget[] = {OPT_RHO,       OPT_EPSILON,   OPT_DELTA,
                                       OPT_BATCH,     OPT_METHOD,    OPT_ACCOUNTANT,
                                       OPT_ADJACENCY, OPT_SUBSAMPLE, OPT_CLIP,
                                       OPT_CENTER};
    for (size_t i = 0; i < sizeof budget / sizeof *budget; i++) {
        if (a->v[budget[i]].given)
            return cli_fail(CLI_USAGE, "--plain has no privacy: leave out --%s",
                            option_name(budget[i]));
    }
    if (a->v[OPT_REFERENCE].given && a->n_positional == 0)
        return cli_fail(CLI_USAGE, "--reference needs REFS, the records");
    return CLI_OK;
}

/* How many records there are is secret. */
static bool is_assigned(const args *a) {
    return a->v[OPT_ADJACENCY].i == DPI_ADJACENCY_ADD_REMOVE || a->v[OPT_SUBSAMPLE].given;
}

static int check_assigned(const args *a) {
    if (is_assigned(a) && (!a->v[OPT_BATCH].given ||
                           (!a->v[OPT_NUM].given && !a->v[OPT_NUM_PER_LABEL].given)))
        return cli_fail(CLI_USAGE,
                        "-B and --num must be given with --adjacency add-remove and with "
                        "--subsample: they must not follow from the records");
    return CLI_OK;
}

static int check_private(const args *a) {
    if (a->v[OPT_RHO].given && a->v[OPT_EPSILON].given)
        return cli_fail(CLI_USAGE, "--rho and --epsilon: allowed is one of them");
    if (!a->v[OPT_RHO].given && !a->v[OPT_EPSILON].given)
        return cli_fail(CLI_USAGE, "no privacy budget: give --rho, or --epsilon with --delta "
                                   "(--plain generates without privacy)");
    if (a->v[OPT_TEMP].d == 0)
        return cli_fail(CLI_USAGE, "--temp: found '0', allowed 0.01..100 (0 only with --plain)");
    if (a->v[OPT_REFERENCE].given)
        return cli_fail(CLI_USAGE, "--reference is allowed only with --plain");
    if (a->v[OPT_UNITS].given && (a->n_positional > 0 || a->v[OPT_RECORDS].given))
        return cli_fail(CLI_USAGE, "--units: allowed without REFS and without --records");
    if (a->n_positional == 0 && !a->v[OPT_RECORDS].given && !a->v[OPT_UNITS].given)
        return cli_fail(CLI_USAGE, "no REFS given; see 'dpinfer %s -h'", a->command->name);
    if (a->n_positional > 0 && a->v[OPT_RECORDS].given && !is_assigned(a))
        return cli_fail(CLI_USAGE, "REFS and --records: allowed is one of them, but with "
                                   "--adjacency add-remove and with --subsample");
    return CLI_OK;
}

/* The method, its parameters and the budget. */
static int read_method(const args *a, dpi_sampler_options *o) {
    const dpi_method_info *m = a->v[OPT_PLAIN].i ? dpi_method_get(DPI_METHOD_PLAIN)
                                                 : dpi_method_find(a->v[OPT_METHOD].s);
    dpi_error err;
    if (m->needs_acknowledgement && !a->v[OPT_NOT_DP].i)
        return cli_fail(CLI_USAGE, "--method %s is for comparison alone: %s. To run it all the "
                                   "same add --%s", m->name, m->warning, option_name(OPT_NOT_DP));
    if (!m->needs_acknowledgement && a->v[OPT_NOT_DP].i)
        return cli_fail(CLI_USAGE, "--%s is allowed only with a method that guarantees nothing, "
                                   "found %s", option_name(OPT_NOT_DP), m->name);
    if (dpi_method_defaults(m->id, o, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    o->pace = DPI_PACE_AUTO;
    o->acknowledge_not_dp = a->v[OPT_NOT_DP].i == 1;
    return options_parameters(a, o);
}

int read_budget(const args *a, dpi_sampler_options *o) {
    int code = a->v[OPT_PLAIN].i ? check_plain(a) : check_private(a);
    dpi_sampler_options_init(o);
    if (code == CLI_OK)
        code = read_method(a, o);
    if (o->pace == DPI_PACE_AUTO) /* there is no model to find one with */
        o->pace = DPI_PACE_NONE;
    return code;
}

int read_session_options(const args *a, dpi_session_options *options) {
    dpi_session_options_init(options);
    options->n_threads = (int32_t)a->v[OPT_THREADS].i;
    options->kv_type = a->v[OPT_KV].i == 1 ? DPI_KV_F32 : DPI_KV_F16;
    options->exact = (int32_t)a->v[OPT_EXACT].i;
    dpi_error err;
    if (dpi_isa_parse(a->v[OPT_ISA].s, &options->isa, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    int32_t best = dpi_isa_best();
    if (options->isa > best)
        return cli_fail(CLI_USAGE, "--isa: found '%s', this processor runs up to %s",
                        dpi_isa_name(options->isa), dpi_isa_name(best));
    return CLI_OK;
}

/* ---- Prompts --------------------------------------------------------------------------------- */

enum { PROMPT_BYTES_MAX = 1 << 28 }; /* no context holds more */

/* A text from its option or its file, into texts->file[slot]. */
static int load_text(const args *a, option_id inline_id, option_id file_id, prompt_texts *texts,
                     int slot, dpi_bytes *text) {
    const option_value *direct = &a->v[inline_id], *file = &a->v[file_id];
    const char *name = option_name(inline_id);
    int code = CLI_OK;
    char **loaded = &texts->file[slot].text;
    size_t *n_bytes = &texts->file[slot].n_bytes;
    if (direct->given && file->given)
        return cli_fail(CLI_USAGE, "--%s and --%s-file: allowed is one of them", name, name);
    if (direct->given)
        *text = (dpi_bytes){direct->s, strlen(direct->s)};
    if (file->given) {
        code = cli_read_text(option_name(file_id), file->s, PROMPT_BYTES_MAX, loaded, n_bytes);
        if (code == CLI_OK)
            *text = (dpi_bytes){*loaded, cli_trim_line_end(*loaded, *n_bytes)};
    }
    return code;
}

int prompt_texts_read(const args *a, prompt_texts *loaded, dpi_prompt_options *p) {
    const struct {
        option_id direct, file;
        dpi_bytes *text;
    } texts[] = {
        {OPT_PRIVATE_PROMPT, OPT_PRIVATE_PROMPT_FILE, &p->private_prompt},
        {OPT_PUBLIC_PROMPT, OPT_PUBLIC_PROMPT_FILE, &p->public_prompt},
        {OPT_QUERY, OPT_QUERY_FILE, &p->query},
        {OPT_SYSTEM, OPT_SYSTEM_FILE, &p->system},
    };
    dpi_error err;
    for (int i = 0; i < 4; i++) {
        int code = load_text(a, texts[i].direct, texts[i].file, loaded, i, texts[i].text);
        if (code != CLI_OK)
            return code;
    }
    if (a->v[OPT_DESCRIBE].given)
        p->description = (dpi_bytes){a->v[OPT_DESCRIBE].s, strlen(a->v[OPT_DESCRIBE].s)};
    p->max_reference_tokens = (int32_t)a->v[OPT_MAX_REF_TOKENS].i;
    if (dpi_chat_parse(a->v[OPT_TEMPLATE].s, &p->chat, &err) != DPI_STATUS_OK ||
        dpi_prompt_options_check(p, &err) != DPI_STATUS_OK)
        return cli_fail_option(CLI_USAGE, &err);
    return CLI_OK;
}

void prompt_texts_free(prompt_texts *texts) {
    for (int i = 0; i < 4; i++)
        dpi_private_free(texts->file[i].text);
    *texts = (prompt_texts){0};
}

/* ---- All options ----------------------------------------------------------------------------- */

static void read_numbers(const args *a, dpi_release_options *o) {
    if (a->v[OPT_SEED].given) {
        o->seeded = 1;
        o->seed = (uint64_t)a->v[OPT_SEED].i;
    }
    if (a->v[OPT_REFERENCE].given)
        o->reference = a->v[OPT_REFERENCE].i - 1;
    o->n_records = a->v[OPT_UNITS].given ? a->v[OPT_UNITS].i : a->v[OPT_RECORDS].i;
    if (a->v[OPT_UNITS].given && o->method.max_per_unit == 0)
        o->method.max_per_unit = DPI_MAX_PER_UNIT_DEFAULT;
    o->batch = (int32_t)a->v[OPT_BATCH].i;
    o->n_texts = (int32_t)a->v[OPT_NUM].i;
    o->n_tokens = (int32_t)a->v[OPT_N_PREDICT].i;
    o->n_parallel = (int32_t)a->v[OPT_PARALLEL].i;
}

static int read_options(const args *a, release_input *in, dpi_release_options *o) {
    const bool plain = a->v[OPT_PLAIN].i;
    dpi_release_options_init(o);
    int code = plain ? check_plain(a) : check_private(a);
    if (code == CLI_OK)
        code = read_method(a, &o->method);
    o->top_k = o->method.top_k;
    if (code == CLI_OK && !plain)
        code = check_assigned(a);
    if (code == CLI_OK)
        code = read_session_options(a, &o->session);
    read_numbers(a, o);
    o->session.n_ctx = (int32_t)a->v[OPT_CTX_SIZE].i;
    if (code == CLI_OK)
        code = label_options_read(a, &in->labels, o);
    if (code == CLI_OK)
        code = grammar_options_read(a, &in->grammar);
    o->grammar = in->grammar;
    return code == CLI_OK ? prompt_texts_read(a, &in->prompts, &o->prompts) : code;
}

/* ---- Opening --------------------------------------------------------------------------------- */

int records_delimiter(const char *source, const char *text, dpi_records_options *options) {
    const char *delimiter = strcmp(text, "tab") == 0 ? "\t" : text;
    if (strlen(delimiter) != 1)
        return cli_fail(CLI_USAGE, "%s: found '%s', allowed one character, or tab", source, text);
    options->delimiter = delimiter[0];
    return CLI_OK;
}

void records_encoding(const option_value *encoding, dpi_records_options *options) {
    options->encoding = (int32_t)encoding->i; /* in the order of the choices */
}

int records_options(const args *a, dpi_records_options *options) {
    dpi_records_options_init(options);
    options->text_field = a->v[OPT_TEXT_FIELD].s;
    options->unit_field = a->v[OPT_UNIT_FIELD].given ? a->v[OPT_UNIT_FIELD].s : NULL;
    options->label_field = a->v[OPT_LABEL_FIELD].given ? a->v[OPT_LABEL_FIELD].s : NULL;
    options->public_fields = a->v[OPT_PUBLIC_FIELDS].i != 0;
    records_encoding(&a->v[OPT_ENCODING], options);
    return records_delimiter("--delimiter", a->v[OPT_DELIMITER].s, options);
}

int records_open(const char *path, const dpi_records_options *options, dpi_records **records) {
    dpi_error err;
    return dpi_records_open(path, options, records, &err) == DPI_STATUS_OK
               ? CLI_OK
               : cli_fail_option(CLI_RECORDS, &err);
}

static int open_records(const args *a, release_input *in, dpi_release_options *o) {
    const bool wanted = a->n_positional > 0 && (!a->v[OPT_PLAIN].i || o->reference >= 0);
    dpi_records_options options;
    dpi_error err;
    int code = records_options(a, &options);
    if (code == CLI_OK && wanted)
        code = records_open(a->positional[0], &options, &in->records);
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

void note_context(int64_t n_ctx, const dpi_model_info *info) {
    if (n_ctx > info->n_ctx_train)
        cli_note("note: the context of %" PRId64 " tokens is beyond the %d that the model file "
                 "states", n_ctx, info->n_ctx_train);
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

/* What `resume` parses again: the words of this command, and where they are said. */
static json_t *describe_command(const args *a) {
    char *folder = getcwd(NULL, 0);
    json_t *words = json_array();
    bool ok = folder && words;
    for (int i = 1; i < a->argc && ok; i++)
        ok = json_array_append_new(words, json_string(a->argv[i])) == 0;
    json_t *object = ok ? json_pack("{s:s, s:O}", "folder", folder, "words", words) : NULL;
    json_decref(words);
    free(folder);
    return object;
}

/* What comes from standard input is gone when the job goes on. */
static int check_job(const args *a) {
    static const option_id files[] = {OPT_PRIVATE_PROMPT_FILE, OPT_PUBLIC_PROMPT_FILE,
                                      OPT_QUERY_FILE, OPT_SYSTEM_FILE, OPT_GRAMMAR,
                                      OPT_JSON_SCHEMA};
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

/* A new job, or that of `resume`, or of a shard. */
static int open_job(const args *a, release_input *in, dpi_release_options *o) {
    int code = CLI_OK;
    if (!a->journal && job_wanted(a) && ranks_own() == 0)
        code = create_job(a, in);
    else if (in->shards)
        code = open_shard(a, o, in);
    o->journal = a->journal ? a->journal : in->journal;
    o->model_path = a->model;
    return code;
}

/* A chat model without a record has to guess what is wanted, and C is for what it guesses wrong. */
static void note_kind(const dpi_release_options *o, const dpi_model_info *info) {
    const dpi_prompt_options *p = &o->prompts;
    const bool chats = p->chat == DPI_CHAT_AUTO ? info->chat_template > DPI_CHAT_NONE
                                                : p->chat != DPI_CHAT_NONE;
    const bool said = p->description.data || p->public_prompt.data || p->query.data;
    if (chats && !said && o->method.method != DPI_METHOD_PLAIN)
        cli_note("warning: the public prompt does not say what kind of documents these are; say it "
                 "with --describe, in words such as 'hospital discharge letters'");
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
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_option(CLI_USAGE, &err);
}

/* Plain text is drawn as the model's file recommends, unless the command line says otherwise. */
static int read_draw(const args *a, const dpi_model_info *info, dpi_release_options *o) {
    if (o->method.method != DPI_METHOD_PLAIN)
        return CLI_OK;
    if (info->sampling_top_k > 0)
        o->method.top_k = info->sampling_top_k;
    int code = options_parameters(a, &o->method);
    if (info->sampling_temp > 0 && !a->v[OPT_TEMP].given)
        o->method.tau = info->sampling_temp;
    o->top_k = o->method.top_k;
    return code;
}

int release_open(const args *a, bool quiet, dpi_cancel_fn cancel, release_input *in) {
    dpi_release_options o;
    const dpi_model_options model = options_model(a);
    *in = (release_input){0};
    int code = job_wanted(a) ? check_job(a) : CLI_OK;
    if (code == CLI_OK)
        code = read_options(a, in, &o);
    if (code == CLI_OK)
        code = shard_join(a, &o, &in->shards);
    if (code == CLI_OK && ranks_own() == 0)
        code = open_ledger(a, in, &o);
    if (code == CLI_OK)
        code = open_records(a, in, &o);
    if (code == CLI_OK)
        code = cli_open_model(a->model, &model, &in->model, &in->info);
    if (code == CLI_OK)
        code = read_draw(a, &in->info, &o);
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
    dpi_grammar_free(in->grammar);
    dpi_shards_close(in->shards);
    dpi_journal_close(in->journal);
    dpi_ledger_close(in->ledger);
    dpi_records_close(in->records);
    dpi_model_close(in->model);
    label_options_free(&in->labels);
    prompt_texts_free(&in->prompts);
    *in = (release_input){0};
}
