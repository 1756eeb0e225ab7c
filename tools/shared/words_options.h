/* words_options.h - what commands about perturbed words share: their options, the vocabulary, the
 * documents. */
#ifndef DPI_WORDS_OPTIONS_H
#define DPI_WORDS_OPTIONS_H

#include <jansson.h>

#include "dpinfer/perturb.h"
#include "dpinfer/records.h"
#include "tools/options/options.h"

/* What the command has open; {0} at first. */
typedef struct words_input {
    const args *a;
    const char *path;      /* of the model; NULL: none */
    const char *documents; /* NULL: standard input is one */
    dpi_model *model;      /* NULL: none, or not open */
    dpi_vocabulary *vocabulary;
    dpi_perturb_options options;
    dpi_records *records;
} words_input;

/* When there is a MODEL before [DOCS]. */
typedef enum words_model {
    WORDS_MODEL,            /* always */
    WORDS_MODEL_OR_VECTORS, /* without --vectors */
    WORDS_MODEL_MAYBE       /* with --vectors too, where two files are given */
} words_model;

/* Options and arguments, [MODEL] [DOCS]. CLI_OK or CLI_USAGE with a message, also where files do
 * not go together (paths.h). */
int words_options(const args *a, words_model model, words_input *in);
/* Opens model and vocabulary, and measures it. CLI_OK or an exit code with a message. */
int words_open(words_input *in);
void words_close(words_input *in);

/* Calls `use` for each document: index -1 for that of standard input, text NULL for a record that
 * is null. Ends at the first code that is not CLI_OK, and when a signal says so. */
typedef int (*words_use)(void *user, int64_t index, const char *text, size_t n_bytes);
int words_each(words_input *in, words_use use, void *user);

/* What the epsilon that is given is worth, in words. */
const char *words_truth(const dpi_perturb_options *options, const dpi_vocabulary *vocabulary);

/* Words outside the vocabulary leave a gap, which shows; else they are drawn for. */
bool words_drop_unknown(const dpi_perturb_options *options);

/* A JSON string of a text; bytes that are not UTF-8 as '?'. NULL: no memory. */
json_t *words_string(const char *text);

#endif
