/* progress.c - see progress.h. */
#include "tools/terminal/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const double LINE_SECONDS = 0.2, PLAIN_SECONDS = 10, PLAIN_TEXT_SECONDS = 1;

static bool is_dumb(void) {
    const char *term = getenv("TERM");
    return !term || !term[0] || strcmp(term, "dumb") == 0;
}

bool progress_is_terminal(void) { return isatty(STDERR_FILENO) && !is_dumb(); }

progress_form progress_choose(progress_wish wish, bool quiet, bool below) {
    const bool terminal = isatty(STDERR_FILENO);
    if (wish == PROGRESS_WISH_PLAIN)
        return PROGRESS_PLAIN;
    if (wish == PROGRESS_WISH_NONE || (wish != PROGRESS_WISH_LINE && (quiet || !terminal)))
        return PROGRESS_NONE;
    return !below ? PROGRESS_LINE : is_dumb() ? PROGRESS_NONE : PROGRESS_BELOW;
}

void progress_begin(progress *p, progress_form form) {
    *p = (progress){.form = form};
    p->begin = cli_now();
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* ", about 2:03:10 left" */
static int add_left(char *line, int n, double seconds) {
    const int64_t s = seconds < 1e9 ? (int64_t)seconds : 0;
    if (seconds <= 0 || seconds >= 1e9)
        return n;
    return n + snprintf(line + n, (size_t)(PROGRESS_LINE_BYTES - n),
                        ", about %" PRId64 ":%02d:%02d left", s / 3600, (int)(s / 60 % 60),
                        (int)(s % 60));
}

/* Prompts that are left cost what the first ones did, tokens what they cost so far. */
static double seconds_left(const progress *p, const dpi_release_progress *r, double seconds) {
    const double prompts = p->per_prompt * (double)(r->n_prompts - r->n_read);
    const double drawing =
        seconds - p->first_token - p->per_prompt * (double)(r->n_read - p->n_read);
    if (p->first_token <= 0 || r->n_drawn < 2 || drawing <= 0)
        return 0;
    return (prompts > 0 ? prompts : 0) +
           drawing / (double)(r->n_drawn - 1) * (double)r->n_tokens_left;
}

static void describe_reading(const progress *p, const dpi_release_event *e,
                             const dpi_release_progress *r, double seconds, char *line) {
    int n = snprintf(line, PROGRESS_LINE_BYTES, "text %d/%d: reading the prompts", e->index + 1,
                     r->n_texts);
    if (e->n_prompts == 0 || r->n_read == 0)
        return;
    const double rate = p->per_prompt > 0 ? 1 / p->per_prompt : (double)r->n_read / seconds;
    n += snprintf(line + n, (size_t)(PROGRESS_LINE_BYTES - n), ", %d of %d, %.3g a second",
                  e->n_read, e->n_prompts, rate);
    /* Before the first token nothing is known but the time to it. */
    add_left(line, n,
             p->first_token > 0 ? seconds_left(p, r, seconds) : (e->n_prompts - e->n_read) / rate);
}

static void describe_drawing(const progress *p, const dpi_release_event *e,
                             const dpi_release_progress *r, double seconds, char *line) {
    int n = snprintf(line, PROGRESS_LINE_BYTES, "text %d/%d: %d token%s", e->index + 1, r->n_texts,
                     e->n_drawn, e->n_drawn == 1 ? "" : "s");
    if (seconds > p->first_token && r->n_drawn > 1)
        n += snprintf(line + n, (size_t)(PROGRESS_LINE_BYTES - n), ", %.3g tokens a second",
                      (double)(r->n_drawn - 1) / (seconds - p->first_token));
    add_left(line, n, seconds_left(p, r, seconds));
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static size_t columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

/* Characters that are no ASCII may have any width: then the column is known again with the next
 * line. */
void progress_text(progress *p, const char *text, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++)
        p->column = text[i] == '\n'                                   ? 0
                    : (unsigned char)text[i] >= 0x80 || p->column < 0 ? -1
                    : text[i] == '\t'                                 ? (p->column / 8 + 1) * 8
                                                                      : p->column + 1;
}

/* At the end of a row a terminal waits for the next character before it goes on, and forgets that
 * where the cursor is moved. */
static bool may_move(const progress *p) {
    return p->column == 0 || (p->column > 0 && (size_t)p->column % (columns() + 1) != 0);
}

/* Below the text: a line feed that scrolls if it has to, and back; the cursor is kept. */
static void put_line(progress *p) {
    const int n = (int)columns();
    const char *line = p->line;
    if (p->form == PROGRESS_PLAIN)
        cli_note("%s", line);
    else if (p->form == PROGRESS_LINE)
        fprintf(stderr, "\r\033[K%.*s", n, line);
    else if (!may_move(p))
        return;
    else
        fprintf(stderr, "\033D\033[A\0337\033[B\r\033[K%.*s\0338", n, line);
    fflush(stderr);
    p->shown = p->form != PROGRESS_PLAIN;
}

void progress_clear(progress *p) {
    if (!p->shown)
        return;
    fputs(p->form == PROGRESS_LINE ? "\r\033[K" : "\0337\033[B\r\033[K\0338", stderr);
    fflush(stderr);
    p->shown = false;
}

static bool is_due(const progress *p, const dpi_release_event *e, double seconds) {
    const bool ends = e->type == DPI_EVENT_END;
    if (p->last == 0)
        return true;
    if (p->form == PROGRESS_PLAIN)
        return seconds >= (ends ? PLAIN_TEXT_SECONDS : PLAIN_SECONDS);
    return seconds >= LINE_SECONDS || (e->type == DPI_EVENT_TOKEN && e->n_drawn == 1);
}

static void note_first_token(progress *p, const dpi_release_progress *r, double seconds) {
    if (p->first_token > 0 || r->n_drawn == 0)
        return;
    p->first_token = seconds;
    p->n_read = r->n_read;
    p->per_prompt = r->n_read > 0 ? seconds / (double)r->n_read : 0;
}

void progress_show(progress *p, const dpi_release *release, const dpi_release_event *event) {
    dpi_release_progress r;
    if (p->form == PROGRESS_NONE || event->type == DPI_EVENT_NONE)
        return;
    dpi_release_progress_init(&r);
    if (dpi_release_progress_get(release, &r, NULL) != DPI_STATUS_OK)
        return;
    const double now = cli_now(), seconds = now - p->begin;
    note_first_token(p, &r, seconds);
    const bool last = event->type == DPI_EVENT_END && event->index + 1 == r.n_texts;
    if (!(last && p->form == PROGRESS_PLAIN) && !is_due(p, event, now - p->last)) {
        if (p->form == PROGRESS_BELOW && !p->shown)
            put_line(p); /* the text was written over it */
        return;
    }
    p->last = now;
    if (event->type == DPI_EVENT_PROMPT)
        describe_reading(p, event, &r, seconds, p->line);
    else
        describe_drawing(p, event, &r, seconds, p->line);
    put_line(p);
}
