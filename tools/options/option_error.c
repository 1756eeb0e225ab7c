/* option_error.c - cli_fail_option and cli_fail_status of cli.h: errors of the library name
 * options. */
#include <stdio.h>
#include <string.h>

#include "dpinfer/registry.h"
#include "tools/options/option_table.h"
#include "tools/terminal/cli.h"
#include "tools/terminal/signals.h"

/* A field that stands here twice is what the command at hand has; without dashes it is a key of
 * serve --dataset. */
static const struct {
    const char *field, *option;
} fields[] = {
    {"batch", "-B"}, {"n_texts", "--num"}, {"runs", "--num"}, {"n_records", "--records"},
    {"n_parallel", "--parallel"}, {"reference", "--reference"}, {"plain", "--plain"},
    {"query", "--query"}, {"delimiter", "--delimiter"}, {"encoding", "--encoding"},
    {"text_field", "--text-field"}, {"text_field", "text"}, {"unit_field", "--unit-field"},
    {"unit_field", "unit"}, {"label_field", "--label-field"}, {"label_field", "label"},
    {"labels", "--labels"}, {"label_names", "--label-names"},
    {"labels", "--label-names"}, {"label_meanings", "--label-names"},
    {"label_texts", "--num-per-label"}, {"histogram_rho", "--histogram-rho"},
    {"private_prompt", "--private-prompt"}, {"public_prompt", "--public-prompt"},
    {"answer", "--answer"}, {"keep_answer", "--keep-answer"}, {"stops", "--stop"},
    {"bans", "--ban"}, {"no_repeat", "--no-repeat"}, {"repeat_penalty", "--repeat-penalty"},
    {"biases", "--logit-bias"}, {"min_words", "--min-words"}, {"max_words", "--max-words"},
    {"examples", "--example"}, {"released", "--released"}, {"description", "--describe"},
    {"steered", "--steer"}, {"control_vector", "--control-vector"}, {"top_k", "--top-k"},
    {"word", "--word"}, {"n_words", "--key-words"},
    {"variation_prompt", "--variation-prompt"}, {"n_candidates", "--candidates"},
    {"n_lookahead", "--lookahead"}, {"n_rounds", "--rounds"}, {"units", "--units"},
    {"n_clusters", "--cluster"}, {"positions", "--positions"}, {"held_out", "--held-out"},
    {"histogram_epsilon", "--histogram-epsilon"}, {"checkpoint_steps", "--checkpoint-steps"},
    {"max_reference_tokens", "--max-ref-tokens"}, {"max_per_unit", "--max-per-unit"},
    {"budget_rho", "--rho"}, {"budget_epsilon", "--epsilon"}, {"budget_delta", "--delta"},
    {"B", "-B"}, {"M", "--max-per-unit"}, {"T", "-n"},
    {"n_embd", "--embd"}, {"n_head", "--heads"}, {"n_kv_head", "--kv-heads"},
};

static int command_bit; /* 0: no command is at hand, and none of the options is ruled out */

void cli_set_command(int bit) { command_bit = bit; }

/* Whether the command at hand has an option, which is "-B" or "--num". One that is in no row is of
 * a mechanism. */
static bool is_here(const char *option) {
    const bool is_short = option[1] != '-';
    bool in_row = option[0] != '-' && !(command_bit & CMD_SERVE);
    for (int id = 0; id < N_OPTIONS && option[0] == '-'; id++) {
        const option_spec *o = &option_rows[id];
        if (is_short ? o->short_name != option[1] : strcmp(o->name, option + 2) != 0)
            continue;
        if (o->commands & command_bit)
            return true;
        in_row = true;
    }
    return command_bit == 0 || !in_row;
}

/* The option that sets a field of the library, or a parameter of one of its methods, into `option`.
 * Words that a sentence may have as well (without '_') are fields only where they are `marked`. */
static bool find_option(const char *word, int n, bool marked, char option[64]) {
    const dpi_parameter *p;
    if (!marked && !memchr(word, '_', (size_t)n))
        return false;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strlen(fields[i].field) == (size_t)n &&
            strncmp(word, fields[i].field, (size_t)n) == 0 && is_here(fields[i].option))
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
        /* Or the last word, in brackets: "... by ';' (delimiter)". */
        const bool ends = at > err->message && at[-1] == '(' && strcmp(at + length, ")") == 0;
        const bool found = length > 0 && find_option(at, length, begins || ends, option);
        const int taken = length > 0 ? length : 1;
        begins = begins && (found || *at == ' ' || strncmp(at, "and ", 4) == 0);
        n += (size_t)snprintf(named.message + n, sizeof named.message - n, "%.*s",
                              found ? (int)sizeof option : taken, found ? option : at);
        at += taken;
    }
    return cli_fail_library(code, &named);
}
