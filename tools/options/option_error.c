/* option_error.c - cli_fail_option and cli_fail_status of cli.h: errors of the library name
 * options. */
#include <stdio.h>
#include <string.h>

#include "dpinfer/registry.h"
#include "tools/terminal/cli.h"
#include "tools/terminal/signals.h"

static const struct {
    const char *field, *option;
} fields[] = {
    {"batch", "-B"}, {"n_texts", "--num"}, {"runs", "--num"}, {"n_records", "--records"},
    {"n_parallel", "--parallel"}, {"reference", "--reference"}, {"plain", "--plain"},
    {"query", "--query"}, {"delimiter", "--delimiter"},
    {"text_field", "--text-field"}, {"unit_field", "--unit-field"},
    {"label_field", "--label-field"}, {"labels", "--labels"}, {"label_names", "--label-names"},
    {"label_meanings", "--label-names"},
    {"label_texts", "--num-per-label"}, {"histogram_rho", "--histogram-rho"},
    {"private_prompt", "--private-prompt"}, {"public_prompt", "--public-prompt"},
    {"answer", "--answer"}, {"keep_answer", "--keep-answer"}, {"stops", "--stop"},
    {"bans", "--ban"}, {"no_repeat", "--no-repeat"}, {"repeat_penalty", "--repeat-penalty"},
    {"biases", "--logit-bias"}, {"min_words", "--min-words"}, {"max_words", "--max-words"},
    {"examples", "--example"}, {"released", "--released"}, {"description", "--describe"},
    {"steered", "--steer"},
    {"top_k", "--top-k"},
    {"variation_prompt", "--variation-prompt"}, {"n_candidates", "--candidates"},
    {"n_lookahead", "--lookahead"}, {"n_rounds", "--rounds"}, {"units", "--units"},
    {"n_clusters", "--cluster"}, {"positions", "--positions"}, {"held_out", "--held-out"},
    {"histogram_epsilon", "--histogram-epsilon"}, {"checkpoint_steps", "--checkpoint-steps"},
    {"max_reference_tokens", "--max-ref-tokens"}, {"max_per_unit", "--max-per-unit"},
    {"budget_rho", "--rho"}, {"budget_epsilon", "--epsilon"}, {"budget_delta", "--delta"},
    {"B", "-B"}, {"M", "--max-per-unit"}, {"T", "-n"},
    {"n_embd", "--embd"}, {"n_head", "--heads"}, {"n_kv_head", "--kv-heads"},
};

/* The option that sets a field of the library, or a parameter of one of its methods, into `option`.
 * Words that a sentence may have as well (without '_') are fields at the beginning alone. */
static bool find_option(const char *word, int n, bool begins, char option[64]) {
    const dpi_parameter *p;
    if (!begins && !memchr(word, '_', (size_t)n))
        return false;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strlen(fields[i].field) == (size_t)n && strncmp(word, fields[i].field, (size_t)n) == 0)
            return snprintf(option, 64, "%s", fields[i].option) > 0;
    for (int32_t id = 0; dpi_method_get(id); id++)
        for (int32_t k = 0; (p = dpi_method_parameter_get(id, k)) != NULL; k++)
            if (strlen(p->name) == (size_t)n && strncmp(word, p->name, (size_t)n) == 0)
                return snprintf(option, 64, "--%s", p->option) > 0;
    return false;
}

/* The length of the word that begins at `at` in `text`; 0: there is none, or it is a part of a path
 * or a name in quotes. */
static int word_at(const char *text, const char *at) {
    const size_t n = strspn(at, "BMTabcdefghijklmnopqrstuvwxyz_");
    const bool is_whole = (at == text || strchr(" (", at[-1])) && strchr(" ,:;)", at[n]);
    return is_whole ? (int)n : 0; /* the end of the text counts as one of them */
}

int cli_fail_status(dpi_status status, const dpi_error *err) {
    switch (status) {
    case DPI_STATUS_ARG: return cli_fail_option(CLI_USAGE, err);
    case DPI_STATUS_UNSUPPORTED: return cli_fail_library(CLI_USAGE, err);
    case DPI_STATUS_BUDGET: return cli_fail_library(CLI_BUDGET, err);
    case DPI_STATUS_CANCELLED: return signals_code();
    default: return cli_fail_library(CLI_FAILED, err);
    }
}

int cli_fail_option(int code, const dpi_error *err) {
    dpi_error named = *err;
    char option[64];
    bool begins = true; /* "a and b: ...": both begin it */
    size_t n = 0;
    for (const char *at = err->message; *at && n + 1 < sizeof named.message;) {
        const int length = word_at(err->message, at);
        const bool found = length > 0 && find_option(at, length, begins, option);
        const int taken = length > 0 ? length : 1;
        begins = begins && (found || *at == ' ' || strncmp(at, "and ", 4) == 0);
        n += (size_t)snprintf(named.message + n, sizeof named.message - n, "%.*s",
                              found ? (int)sizeof option : taken, found ? option : at);
        at += taken;
    }
    return cli_fail_library(code, &named);
}
