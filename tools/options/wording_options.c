/* wording_options.c - see wording_options.h. */
#include "tools/options/wording_options.h"

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
    return dpi_wording_check(w, &err) == DPI_STATUS_OK ? CLI_OK : cli_fail_option(CLI_USAGE, &err);
}

void wording_options_free(wording_input *in) {
    dpi_private_free(in->answer);
    in->answer = NULL;
}
