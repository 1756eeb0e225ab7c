/* progress.h - how far a run is, on stderr. It tells public counts and times: nothing in it depends
 * on what is in a record but the pace. */
#ifndef DPI_PROGRESS_H
#define DPI_PROGRESS_H

#include <time.h>

#include "dpinfer/release.h"
#include "tools/options/options.h"

typedef enum progress_form {
    PROGRESS_NONE,
    PROGRESS_LINE,  /* one line of a terminal, written anew a few times a second */
    PROGRESS_BELOW, /* the same below the text that goes to this terminal */
    PROGRESS_PLAIN  /* lines for a log: one each ten seconds, and at the end of a text */
} progress_form;

enum { PROGRESS_LINE_BYTES = 160 };

typedef struct progress {
    progress_form form;
    bool shown;                     /* there is a line on the terminal */
    char line[PROGRESS_LINE_BYTES]; /* the last one */
    int column;                     /* of the text above it; -1: not known */
    struct timespec begin, last;    /* of the run; the last line */
    double per_prompt;              /* seconds of one prompt, while nothing else was done */
    int64_t n_read;                 /* prompts that were read by then */
    double first_token;             /* seconds from the begin; 0: none yet */
} progress;

/* stderr is a terminal on which a line can be written anew. */
bool progress_is_terminal(void);

/* What --progress and the streams say. `below`: the text goes to a terminal, as it is drawn. */
progress_form progress_choose(const args *a, bool below);

void progress_begin(progress *p, progress_form form);
/* After each event of the release. */
void progress_show(progress *p, const dpi_release *release, const dpi_release_event *event);
/* Text that was written to the terminal where the line is. */
void progress_text(progress *p, const char *text, size_t n_bytes);
/* Takes the line away; before anything else is written to the terminal. */
void progress_clear(progress *p);

#endif
