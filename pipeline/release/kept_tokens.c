/* kept_tokens.c - the tokens of a job and what was drawn for its records, to the journal and back.
 * Without a job nothing is kept. See books.h. */
#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/release/books.h"

bool dpi_books_goes_on(const dpi_books *b) {
    return b->plan->options.journal && dpi_journal_facts(b->plan->options.journal);
}

dpi_status dpi_books_keep_list(const dpi_books *b, const char *name, const int32_t *list, size_t n,
                               dpi_error *err) {
    return b->plan->options.journal
               ? dpi_journal_keep(b->plan->options.journal, name, list, n * sizeof *list, err)
               : DPI_STATUS_OK;
}

dpi_status dpi_books_kept_list(const dpi_books *b, const char *name, size_t n, int32_t **list,
                               dpi_error *err) {
    void *kept = NULL;
    size_t n_bytes = 0;
    if (b->plan->options.journal)
        DPI_TRY(dpi_journal_kept(b->plan->options.journal, name, &kept, &n_bytes, err));
    *list = kept;
    if (!kept || n_bytes == n * sizeof **list)
        return DPI_STATUS_OK;
    dpi_private_free(kept);
    *list = NULL;
    return dpi_fail(err, DPI_STATUS_FORMAT, "the job's file '%s' is not that of these records",
                    name);
}

void dpi_books_recall(const dpi_books *b, int32_t text, const int32_t **tokens, int32_t *n) {
    const dpi_release_options *o = &b->plan->options;
    *n = 0;
    if (o->journal)
        dpi_journal_text(o->journal, text, tokens, n);
    else if (o->recalled)
        o->recalled(o->recalled_user, text, tokens, n);
}

dpi_status dpi_books_put(const dpi_books *b, int32_t text, int32_t place, int32_t token,
                         bool is_last, int64_t *sequence, dpi_error *err) {
    *sequence = 0;
    if (!b->plan->options.journal)
        return DPI_STATUS_OK;
    return dpi_journal_put(b->plan->options.journal, text, place, token, is_last, sequence, err);
}

void dpi_books_look(dpi_books *b) {
    if (b->plan->options.journal)
        b->n_durable = dpi_journal_durable(b->plan->options.journal);
}

dpi_status dpi_books_wait(dpi_books *b, dpi_error *err) {
    const dpi_status status = dpi_journal_wait(b->plan->options.journal, 0, err);
    if (status == DPI_STATUS_OK)
        return status;
    dpi_books_look(b);
    b->lost = true;
    return status;
}
