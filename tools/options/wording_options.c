/* wording_options.c - see wording_options.h. */
#include "tools/options/wording_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "tools/options/text_option.h"

/* All values of an option that may be given several times. */
static int32_t read_list(const args *a, option_id id, dpi_bytes *texts) {
    int32_t n = 0;
    for (int i = 0; i < a->n_listed; i++)
        if (a->listed[i].id == id)
            texts[n++] = (dpi_bytes){a->listed[i].text, strlen(a->listed[i].text)};
    return n;
}

/* "refusals" is no text. */
static void read_bans(const args *a, wording_input *in) {
    dpi_wording *w = &in->wording;
    const int32_t n = read_list(a, OPT_BAN, in->bans);
    w->bans = in->bans;
    for (int32_t i = 0; i < n; i++) {
        const bool refusals = strcmp(in->bans[i].data, "refusals") == 0;
        w->ban_refusals |= refusals;
        if (!refusals)
            in->bans[w->n_bans++] = in->bans[i];
    }
}

/* TOKEN=X; TOKEN may have a '=' of its own. */
static int read_bias(const char *text, const dpi_model *model, dpi_token_bias *bias) {
    const char *sign = strrchr(text, '=');
    const size_t n = sign ? (size_t)(sign - text) : 0;
    dpi_model_info info;
    dpi_error err;
    char *end;
    if (n == 0)
        return cli_fail(CLI_USAGE, "--logit-bias: found '%s', allowed TOKEN=X", text);
    bias->bias = strtod(sign + 1, &end);
    if (end == sign + 1 || *end || !(fabs(bias->bias) <= 100))
        return cli_fail(CLI_USAGE, "--logit-bias: found '%s', allowed is a number of -100..100 "
                                   "behind the '='", text);
    dpi_model_info_init(&info);
    if (dpi_model_info_get(model, &info, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_MODEL, &err);
    const bool is_number = strspn(text, "0123456789") == n && n < 10;
    bias->token = is_number ? (int32_t)strtol(text, NULL, 10) : dpi_token_find(model, text, n);
    return bias->token >= 0 && bias->token < info.n_vocab
               ? CLI_OK
               : cli_fail(CLI_USAGE, "--logit-bias: found '%s', allowed is the text of a token of "
                                     "the model, or its number 0..%d (see 'dpinfer tokenize')",
                          text, (int)info.n_vocab - 1);
}

int wording_options_bind(const args *a, const dpi_model *model, wording_input *in) {
    dpi_wording *w = &in->wording;
    int code = CLI_OK;
    w->biases = in->biases;
    for (int i = 0; i < a->n_listed && code == CLI_OK; i++)
        if (a->listed[i].id == OPT_LOGIT_BIAS)
            code = read_bias(a->listed[i].text, model, &in->biases[w->n_biases++]);
    return code;
}

int wording_options_read(const args *a, wording_input *in) {
    dpi_wording *w = &in->wording;
    dpi_error err;
    dpi_wording_init(w);
    const int code = text_option_read(a, OPT_ANSWER, OPT_ANSWER_FILE, &in->answer, &w->answer);
    if (code != CLI_OK)
        return code;
    w->keep_answer = (int32_t)a->v[OPT_KEEP_ANSWER].i;
    w->keep_space = (int32_t)a->v[OPT_KEEP_SPACE].i;
    w->stops = in->stops;
    w->n_stops = read_list(a, OPT_STOP, in->stops);
    w->min_words = (int32_t)a->v[OPT_MIN_WORDS].i;
    w->max_words = (int32_t)a->v[OPT_MAX_WORDS].i;
    read_bans(a, in);
    w->no_repeat = (int32_t)a->v[OPT_NO_REPEAT].i;
    w->repeat_penalty = a->v[OPT_REPEAT_PENALTY].d;
    return dpi_wording_check(w, &err) == DPI_STATUS_OK ? CLI_OK : cli_fail_option(CLI_USAGE, &err);
}

void wording_options_free(wording_input *in) {
    dpi_private_free(in->answer);
    in->answer = NULL;
}
