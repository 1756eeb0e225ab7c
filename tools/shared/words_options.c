/* words_options.c - see words_options.h. */
#include "tools/shared/words_options.h"

#include <string.h>

#include "tools/options/paths.h"
#include "tools/options/records_options.h"
#include "tools/shared/report_files.h"
#include "tools/terminal/signals.h"

enum { DOCUMENT_BYTES_MAX = 1 << 26 };

static void read_perturb_options(const args *a, dpi_perturb_options *o) {
    dpi_perturb_options_init(o);
    if (a->command->bit != CMD_ATTACK) { /* which has lists of both */
        o->mechanism = (int32_t)a->v[OPT_MECHANISM].i;
        o->epsilon = a->v[OPT_WORD_EPSILON].d;
    }
    o->rare = a->v[OPT_RARE].d;
    o->replaced = a->v[OPT_REPLACED].d;
    o->group_size = (int32_t)a->v[OPT_GROUP_SIZE].i;
    if (a->v[OPT_THREADS].given)
        o->n_threads = (int32_t)a->v[OPT_THREADS].i;
}

static int count_models(const args *a, words_model model) {
    if (model == WORDS_MODEL || !a->v[OPT_VECTORS].given)
        return 1;
    return model == WORDS_MODEL_MAYBE && a->n_positional > 1;
}

int words_options(const args *a, words_model model, words_input *in) {
    const char *name = a->command->name;
    const int n_models = count_models(a, model);
    in->a = a;
    read_perturb_options(a, &in->options);
    if (a->n_positional < n_models)
        return cli_fail(CLI_USAGE, "no MODEL%s given; see 'dpinfer %s -h'",
                        model == WORDS_MODEL ? "" : " and no --vectors FILE", name);
    if (a->n_positional > n_models + 1)
        return cli_fail(CLI_USAGE, "unexpected argument '%s'; see 'dpinfer %s -h'",
                        a->positional[n_models + 1], name);
    in->path = n_models > 0 ? a->positional[0] : NULL;
    in->documents = a->n_positional > n_models ? a->positional[n_models] : NULL;
    const int code = paths_check_command(a);
    return code == CLI_OK ? report_files_probe(a) : code;
}

int words_open(words_input *in) {
    const args *a = in->a;
    const int32_t n_most = (int32_t)a->v[OPT_VOCABULARY].i;
    dpi_error err;
    dpi_status status;
    if (in->path) {
        const dpi_model_options options = options_model(a);
        const int code = cli_open_model(in->path, &options, &in->model, NULL);
        if (code != CLI_OK)
            return code;
    }
    if (a->v[OPT_VECTORS].given)
        status = dpi_vocabulary_read(a->v[OPT_VECTORS].s, n_most, &in->vocabulary, &err);
    else
        status = dpi_vocabulary_of_model(in->model, n_most, &in->vocabulary, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_vocabulary_measure(in->vocabulary, a->v[OPT_DISTANCES].s,
                                        in->options.n_threads, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_FAILED, &err);
}

void words_close(words_input *in) {
    dpi_records_close(in->records);
    dpi_vocabulary_free(in->vocabulary);
    dpi_model_close(in->model);
}

static int use_input(words_use use, void *user) {
    char *text;
    size_t n_bytes;
    if (!cli_read_path("-", DOCUMENT_BYTES_MAX, &text, &n_bytes))
        return cli_fail(cli_read_code(CLI_FAILED), "cannot read standard input: %s",
                        cli_read_reason());
    const int code = use(user, -1, text, n_bytes);
    dpi_private_free(text);
    return code;
}

int words_each(words_input *in, words_use use, void *user) {
    dpi_records_options o;
    dpi_error err;
    if (!in->documents)
        return use_input(use, user);
    int code = records_options(in->a, &o);
    if (code == CLI_OK)
        code = records_open(in->documents, &o, &in->records);
    if (code != CLI_OK)
        return code;
    const size_t n = dpi_records_count(in->records);
    for (size_t i = 0; i < n && code == CLI_OK && !signals_stop(); i++) {
        char *text;
        size_t n_bytes;
        if (dpi_records_read(in->records, i, &text, &n_bytes, &err) != DPI_STATUS_OK)
            return cli_fail_library(CLI_RECORDS, &err);
        code = use(user, (int64_t)i, text, n_bytes);
        dpi_private_free(text);
    }
    return code != CLI_OK ? code : signals_stop() ? signals_code() : CLI_OK;
}

const char *words_truth(const dpi_perturb_options *o, const dpi_vocabulary *v) {
    switch (o->mechanism) {
    case DPI_WORDS_EXPONENTIAL:
    case DPI_WORDS_CALIBRATED:
        return "holds for every pair of words";
    case DPI_WORDS_SANTEXT:
        return dpi_perturb_frequent(o, dpi_vocabulary_count(v)) > 0
                   ? "INFINITE: a frequent word stays with a probability that no other has"
                   : "another, which grows with the distance of two words: see --certify";
    case DPI_WORDS_CUSTEXT:
        return "INFINITE: words of two groups never become the same, stop words and numbers stay";
    default:
        return "another, which depends on the vocabulary (INFINITE, if it has numbers): see "
               "--certify";
    }
}

bool words_drop_unknown(const dpi_perturb_options *o) {
    return o->mechanism == DPI_WORDS_RANTEXT || o->mechanism == DPI_WORDS_CUSTEXT;
}

json_t *words_string(const char *text) {
    json_t *string = json_string(text);
    if (string) /* NULL: no UTF-8, or no memory */
        return string;
    char *copy = dpi_private_malloc(strlen(text) + 1);
    for (size_t i = 0; copy && (i == 0 || text[i - 1]); i++)
        copy[i] = (unsigned char)text[i] < 128 ? text[i] : '?';
    string = copy ? json_string(copy) : NULL;
    dpi_private_free(copy);
    return string;
}
