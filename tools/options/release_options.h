/* release_options.h - the options of a command line as options of a release, and the texts that
 * they name. */
#ifndef DPI_RELEASE_OPTIONS_H
#define DPI_RELEASE_OPTIONS_H

#include "dpinfer/release.h"
#include "tools/options/example_options.h"
#include "tools/options/label_options.h"
#include "tools/options/options.h"
#include "tools/options/wording_options.h"

/* Texts of the prompt options that come from files; private memory. */
typedef struct prompt_texts {
    char *file[4];
    example_input examples;
} prompt_texts;

/* The prompts of a command line, whose texts live as long as `texts`. CLI_OK or a code with a
 * message. prompt_texts_free in any case. */
int prompt_texts_read(const args *a, prompt_texts *texts, dpi_prompt_options *options);
void prompt_texts_free(prompt_texts *texts);

/* The method, its parameters and the budget alone. CLI_OK or CLI_USAGE. */
int read_budget(const args *a, dpi_sampler_options *options);
/* Session options from the options of a command. CLI_OK or CLI_USAGE. */
int read_session_options(const args *a, dpi_session_options *options);
/* Notes on stderr that n_ctx is beyond what the model was trained with, if it is. */
void note_context(int64_t n_ctx, const dpi_model_info *info);

/* What the options of a release refer to. */
typedef struct release_texts {
    label_input labels;
    prompt_texts prompts;
    dpi_grammar *grammar; /* of --grammar or --json-schema; NULL: none */
    wording_input wording;
} release_texts;

/* Checks all options, and reads them but for what has to be opened: records, ledger, model, job.
 * CLI_OK, or an exit code with a message. release_texts_free in any case. */
int release_options_read(const args *a, release_texts *texts, dpi_release_options *o);
void release_texts_free(release_texts *texts);
/* What the model's file recommends for plain text, where the command line says nothing else. CLI_OK
 * or CLI_USAGE. */
int release_options_draw(const args *a, const dpi_model_info *info, dpi_release_options *o);

#endif
