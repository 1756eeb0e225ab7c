/* release_options.h - the options of a command line as options of a release, and what they name,
 * opened. */
#ifndef DPI_RELEASE_OPTIONS_H
#define DPI_RELEASE_OPTIONS_H

#include "dpinfer/release.h"
#include "dpinfer/shards.h"
#include "tools/options/label_options.h"
#include "tools/options/options.h"

/* Texts of the prompt options that come from files; private memory. */
typedef struct prompt_texts {
    struct {
        char *text;
        size_t n_bytes;
    } file[4];
} prompt_texts;

/* The prompts of a command line, whose texts live as long as `texts`. CLI_OK or a code with a
 * message. prompt_texts_free in any case. */
int prompt_texts_read(const args *a, prompt_texts *texts, dpi_prompt_options *options);
void prompt_texts_free(prompt_texts *texts);

/* What `run`, `plan` and `demo` have open. Must not move while it is open. */
typedef struct release_input {
    dpi_model *model;
    dpi_model_info info;
    dpi_records *records;
    dpi_release *release;
    label_input labels;
    dpi_grammar *grammar; /* of --grammar or --json-schema; NULL: none */
    dpi_ledger *ledger; /* of --ledger; NULL: none */
    dpi_shards *shards; /* of --job, joined for a shard; NULL: none */
    dpi_journal *journal; /* of --job, made here, or of the shard; NULL: none */
    char dataset[DPI_DATASET_NAME_MAX + 1];
    prompt_texts prompts;
} release_input;

/* Checks the options, finds the records, opens the model, settles every number; no record is read.
 * CLI_OK, or an exit code with a message. release_close in any case. `quiet` suppresses notes;
 * cancel may be NULL. */
int release_open(const args *a, bool quiet, dpi_cancel_fn cancel, release_input *in);
void release_close(release_input *in);

/* The method, its parameters and the budget alone. CLI_OK or CLI_USAGE. */
int read_budget(const args *a, dpi_sampler_options *options);
/* Session options from the options of a command. CLI_OK or CLI_USAGE. */
int read_session_options(const args *a, dpi_session_options *options);
/* How records are read. CLI_OK, or CLI_USAGE with a message. */
int records_options(const args *a, dpi_records_options *options);
/* Opens them. CLI_OK, or CLI_RECORDS with a message. */
int records_open(const char *path, const dpi_records_options *options, dpi_records **records);
/* The same for one of them, as --delimiter and --encoding have it; messages name `source`. */
int records_delimiter(const char *source, const char *text, dpi_records_options *options);
void records_encoding(const option_value *encoding, dpi_records_options *options);
/* Notes on stderr that n_ctx is beyond what the model was trained with, if it is. */
void note_context(int64_t n_ctx, const dpi_model_info *info);

#endif
