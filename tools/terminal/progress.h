/* progress.h - how far a run is, on stderr. It tells public counts and times: nothing in it depends
 * on what is in a record but the pace. */
#ifndef DPI_PROGRESS_H
#define DPI_PROGRESS_H

#include "dpinfer/release.h"
#include "tools/terminal/cli.h"

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
    double begin, last;             /* of the run; of the last line, 0: none */
    double per_prompt;              /* seconds of one prompt, while nothing else was done */
    int64_t n_read;                 /* prompts that were read by then */
    double first_token;             /* seconds from the begin; 0: none yet */
} progress;

/* stderr is a terminal on which a line can be written anew. */
bool progress_is_terminal(void);

/* The choices of --progress, in their order. */
typedef enum progress_wish {
    PROGRESS_WISH_AUTO,
    PROGRESS_WISH_LINE,
    PROGRESS_WISH_PLAIN,
    PROGRESS_WISH_NONE
} progress_wish;

/* What the wish and the streams say. `below`: the text goes to a terminal, as it is drawn. */
progress_form progress_choose(progress_wish wish, bool quiet, bool below);

void progress_begin(progress *p, progress_form form);
/* After each event of the release. */
void progress_show(progress *p, const dpi_release *release, const dpi_release_event *event);
/* Text that was written to the terminal where the line is. */
void progress_text(progress *p, const char *text, size_t n_bytes);
/* Takes the line away; before anything else is written to the terminal. */
void progress_clear(progress *p);

#endif
