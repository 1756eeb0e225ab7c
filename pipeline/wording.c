/* wording.c - the settings of a wording: defaults, ranges, copies. See dpinfer/wording.h. */
#include "dpinfer/wording.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/utf8.h"
#include "dpinfer/prompt_texts.h"

DPI_STRUCT_DEFAULTS(dpi_wording, .repeat_penalty = 1)

/* ---- Ranges ---------------------------------------------------------------------------------- */

static dpi_status check_text(const char *name, dpi_bytes text, size_t most, dpi_error *err) {
    if (!text.data || text.n_bytes < 1 || text.n_bytes > most)
        return dpi_fail(err, DPI_STATUS_ARG, "%s: found a text of %zu bytes, allowed 1..%zu", name,
                        text.data ? text.n_bytes : 0, most);
    if (!dpi_is_utf8(text.data, text.n_bytes) || memchr(text.data, '\0', text.n_bytes))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "%s: found bytes that are no UTF-8, or a NUL, allowed is a text", name);
    return DPI_STATUS_OK;
}

static dpi_status check_texts(const char *name, const dpi_bytes *texts, int32_t n, int32_t most,
                              dpi_error *err) {
    DPI_TRY(dpi_check_range(name, n, 0, most, err));
    if (n > 0 && !texts)
        return dpi_fail(err, DPI_STATUS_ARG, "%s: found NULL, allowed is an array of %d", name,
                        (int)n);
    for (int32_t i = 0; i < n; i++)
        DPI_TRY(check_text(name, texts[i], DPI_WORDING_TEXT_MAX, err));
    return DPI_STATUS_OK;
}

/* U+FFFD is shown where bytes are no text. */
static dpi_status check_bans(const dpi_wording *w, dpi_error *err) {
    static const char none[] = "\xef\xbf\xbd";
    DPI_TRY(check_texts("bans", w->bans, w->n_bans, DPI_BANS_MAX, err));
    for (int32_t i = 0; i < w->n_bans; i++)
        for (size_t at = 0; at + 3 <= w->bans[i].n_bytes; at++)
            if (memcmp(w->bans[i].data + at, none, 3) == 0)
                return dpi_fail(err, DPI_STATUS_ARG, "bans: found U+FFFD, allowed is what a token "
                                "can write");
    return DPI_STATUS_OK;
}

static dpi_status check_biases(const dpi_wording *w, dpi_error *err) {
    DPI_TRY(dpi_check_range("biases", w->n_biases, 0, DPI_BIASES_MAX, err));
    if (w->n_biases > 0 && !w->biases)
        return dpi_fail(err, DPI_STATUS_ARG, "biases: found NULL, allowed is an array");
    for (int32_t i = 0; i < w->n_biases; i++) {
        const double bias = w->biases[i].bias;
        DPI_TRY(dpi_check_range("biases.token", w->biases[i].token, 0, INT32_MAX, err));
        if (!(bias >= -100 && bias <= 100))
            return dpi_fail(err, DPI_STATUS_ARG, "biases: found %g, allowed -100..100", bias);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_wording_check(const dpi_wording *w, dpi_error *err) {
    DPI_CHECK_FIXED(dpi_wording, w, err);
    if (w->answer.data)
        DPI_TRY(check_text("answer", w->answer, DPI_ANSWER_MAX, err));
    DPI_TRY(dpi_check_range("keep_answer", w->keep_answer, 0, w->answer.data ? 1 : 0, err));
    DPI_TRY(dpi_check_range("keep_space", w->keep_space, 0, 1, err));
    DPI_TRY(check_texts("stops", w->stops, w->n_stops, DPI_STOPS_MAX, err));
    DPI_TRY(dpi_check_range("min_words", w->min_words, 0, DPI_WORDS_MAX, err));
    DPI_TRY(dpi_check_range("max_words", w->max_words, 0, DPI_WORDS_MAX, err));
    if (w->max_words > 0)
        DPI_TRY(dpi_check_range("max_words", w->max_words, w->min_words, DPI_WORDS_MAX, err));
    DPI_TRY(check_bans(w, err));
    DPI_TRY(dpi_check_range("ban_refusals", w->ban_refusals, 0, 1, err));
    if (w->no_repeat != 0)
        DPI_TRY(dpi_check_range("no_repeat", w->no_repeat, 2, 16, err));
    if (!(w->repeat_penalty >= 1 && w->repeat_penalty <= 2))
        return dpi_fail(err, DPI_STATUS_ARG, "repeat_penalty: found %g, allowed 1..2",
                        w->repeat_penalty);
    return check_biases(w, err);
}

static dpi_bytes bytes_of(const char *string) { return (dpi_bytes){string, strlen(string)}; }

dpi_status dpi_wording_choose(const dpi_prompt_options *p, const dpi_model *model, dpi_wording *w,
                              dpi_bytes *stops, dpi_error *err) {
    dpi_model_info info;
    if (!p->description.data || p->private_prompt.data || w->answer.data)
        return DPI_STATUS_OK;
    if (w->n_stops == DPI_STOPS_MAX)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "stops: found %d, allowed %d beside that of a description, or an answer of "
                        "your own", w->n_stops, DPI_STOPS_MAX - 1);
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(model, &info, err));
    if (w->n_stops > 0)
        memmove(stops + 1, w->stops, (size_t)w->n_stops * sizeof *stops);
    const bool is_long = p->n_text > DPI_LISTED_TOKENS;
    const bool base = dpi_prompts_chat(p->chat, &info) == DPI_CHAT_NONE;
    stops[0] = bytes_of(!is_long ? DPI_LISTED_STOP : base ? DPI_HEADED_BASE_STOP : DPI_HEADED_STOP);
    w->stops = stops;
    w->n_stops++;
    w->answer =
        bytes_of(!is_long ? DPI_LISTED_ANSWER : base ? DPI_HEADED_BASE_ANSWER : DPI_HEADED_ANSWER);
    if (is_long && w->no_repeat == 0)
        w->no_repeat = DPI_HEADED_NO_REPEAT;
    if (!base)
        w->ban_refusals = 1;
    return DPI_STATUS_OK;
}

void dpi_wording_end_prompts(const dpi_wording *w, dpi_prompt_options *prompts) {
    const dpi_bytes none = {NULL, 0};
    prompts->answer = w ? w->answer : none;
    prompts->answer_end = w && w->n_stops > 0 ? w->stops[0] : none;
}

int32_t dpi_wording_is_default(const dpi_wording *w) {
    return !w->answer.data && !w->keep_space && w->n_stops == 0 && w->min_words == 0 &&
           w->max_words == 0 && w->n_bans == 0 && !w->ban_refusals && w->no_repeat == 0 &&
           !(w->repeat_penalty > 1) && w->n_biases == 0;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static size_t count_bytes(const dpi_bytes *texts, int32_t n) {
    size_t n_bytes = 0;
    for (int32_t i = 0; i < n; i++)
        n_bytes += texts[i].n_bytes;
    return n_bytes;
}

/* The texts of `from`, whose bytes go to *pool. */
static void copy_texts(const dpi_bytes *from, int32_t n, dpi_bytes *to, char **pool) {
    for (int32_t i = 0; i < n; i++) {
        memcpy(*pool, from[i].data, from[i].n_bytes);
        to[i] = (dpi_bytes){*pool, from[i].n_bytes};
        *pool += from[i].n_bytes;
    }
}

/* All in one piece of memory: the struct, biases, texts, and their bytes. */
dpi_status dpi_wording_copy(const dpi_wording *wording, dpi_wording **copy, dpi_error *err) {
    dpi_wording none;
    dpi_wording_init(&none);
    const dpi_wording *w = wording ? wording : &none;
    DPI_TRY(dpi_wording_check(w, err));
    const int32_t n_texts = w->n_stops + w->n_bans, n_answers = w->answer.data ? 1 : 0;
    const size_t n_biases = (size_t)w->n_biases * sizeof *w->biases;
    dpi_wording *made = dpi_calloc(
        sizeof *made + n_biases + (size_t)n_texts * sizeof(dpi_bytes) +
            count_bytes(w->stops, w->n_stops) + count_bytes(w->bans, w->n_bans) +
            count_bytes(&w->answer, n_answers), 1);
    if (!made)
        return dpi_no_memory(err, "a wording");
    dpi_token_bias *biases = (dpi_token_bias *)(made + 1);
    dpi_bytes *texts = (dpi_bytes *)(biases + w->n_biases);
    char *pool = (char *)(texts + n_texts);
    *made = *w;
    if (n_biases > 0)
        memcpy(biases, w->biases, n_biases);
    made->biases = biases, made->stops = texts, made->bans = texts + w->n_stops;
    copy_texts(w->stops, w->n_stops, texts, &pool);
    copy_texts(w->bans, w->n_bans, texts + w->n_stops, &pool);
    copy_texts(&w->answer, n_answers, &made->answer, &pool);
    *copy = made;
    return DPI_STATUS_OK;
}

void dpi_wording_free(dpi_wording *copy) { free(copy); }
