/* texts_told.c - see texts_told.h. */
#include "tools/command/texts_told.h"

#include <string.h>

#include "dpinfer/generation.h"
#include "dpinfer/memory.h"
#include "eval/grams.h"
#include "tools/terminal/cli.h"

int texts_told_add(texts_told *t, const char *text, size_t n_bytes) {
    if (!dpi_private_grow(&t->open, &t->n_room, t->n_open + n_bytes + 1, 1))
        return cli_no_memory("the text");
    if (n_bytes > 0)
        memcpy(t->open + t->n_open, text, n_bytes);
    t->open[t->n_open += n_bytes] = '\0';
    return CLI_OK;
}

int texts_told_end(texts_told *t, int32_t end) {
    const int code = texts_told_add(t, "", 0); /* an empty text is one, too */
    if (code != CLI_OK)
        return code;
    if (!dpi_private_grow(&t->text, &t->n_most, (size_t)t->n + 1, sizeof *t->text))
        return cli_no_memory("the text");
    t->text[t->n++] = t->open;
    t->open = NULL;
    t->n_open = t->n_room = 0;
    t->n_cut += end == DPI_END_LENGTH;
    t->n_at_max_words += end == DPI_END_WORDS;
    return CLI_OK;
}

static void say(const texts_told *t, int32_t n_tokens, int32_t n_alike) {
    if (t->n_cut > 0)
        cli_note("note: %d of %d texts end at -n %d and came to no end of their own: a larger -n, "
                 "--stop TEXT or --max-words ends them where they should", t->n_cut, t->n,
                 n_tokens);
    if (t->n_at_max_words > 0)
        cli_note("note: %d of %d texts end at --max-words", t->n_at_max_words, t->n);
    if (n_alike > 0)
        cli_note("note: %d of %d texts are near copies of another one: they share half of their "
                 "runs of three words", n_alike, t->n);
}

int texts_told_say(const texts_told *t, int32_t n_tokens, bool knows_words, bool note,
                   dpi_report *report) {
    eval_texts texts = {0};
    int32_t n_alike = 0;
    dpi_error err;
    dpi_status status =
        eval_texts_make((const char *const *)t->text, NULL, t->n, &texts, &err);
    if (status == DPI_STATUS_OK)
        status = eval_count_alike(&texts, &n_alike, &err);
    eval_texts_free(&texts);
    if (status == DPI_STATUS_LIMIT) /* too many to compare */
        n_alike = -1;
    else if (status != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    if (report)
        dpi_report_texts_told(report, knows_words ? t->n_at_max_words : -1, n_alike);
    if (note)
        say(t, n_tokens, n_alike);
    return CLI_OK;
}

void texts_told_free(texts_told *t) {
    for (int32_t i = 0; i < t->n; i++)
        dpi_private_free(t->text[i]);
    dpi_private_free(t->text);
    dpi_private_free(t->open);
    *t = (texts_told){0};
}
