/* writer.h - draws the texts of a job, one after the other, and hands out their bytes. */
#ifndef DPI_WRITER_H
#define DPI_WRITER_H

#include "tools/job.h"

typedef struct writer_hooks {
    /* Bytes of the text, which are released. CLI_OK, or an exit code, after a message, that stops
     * it. */
    int (*on_text)(void *user, const char *text, size_t n_bytes);
    /* Public progress, as dpi_generate_hooks has it. */
    void (*on_progress)(void *user, int32_t n_drawn, int32_t n_tokens);
    dpi_cancel_fn cancel; /* between tokens and prompts; may be NULL */
    void *user;
} writer_hooks;

typedef struct writer_result {
    int32_t n_drawn; /* tokens, end-of-text included */
    bool ended;      /* by an end-of-text token */
    bool cancelled;  /* by hooks->cancel */
} writer_result;

typedef struct writer writer;

/* Makes the engine of a job, which must outlive it, and reads the records if that settles which
 * text they go to. CLI_OK, or an exit code with a message. */
int writer_open(const job *j, const writer_hooks *hooks, writer **out);

/* Text `index` of the job, from 0; each once. *result is filled in either way. CLI_OK (cancelled or
 * not), or an exit code with a message. */
int writer_text(writer *w, int32_t index, writer_result *result);

/* Records so far that were empty or unreadable: private. */
int64_t writer_null_records(const writer *w);

/* NULL is allowed. */
void writer_close(writer *w);

#endif
