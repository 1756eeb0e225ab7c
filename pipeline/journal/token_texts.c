/* token_texts.c - the tokens of a job in memory, by text. */
#include <string.h>

#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/journal/journal.h"

/* The text with the index, or the place where it would be. */
static int32_t find(const dpi_journal *j, int32_t index) {
    int32_t low = 0, high = j->n_texts;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (j->texts[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_there(const dpi_journal *j, int32_t at, int32_t index) {
    return at < j->n_texts && j->texts[at].index == index;
}

static bool insert(dpi_journal *j, int32_t at, int32_t index) {
    if (!dpi_private_grow(&j->texts, &j->texts_capacity, (size_t)j->n_texts + 1, sizeof *j->texts))
        return false;
    memmove(j->texts + at + 1, j->texts + at, (size_t)(j->n_texts - at) * sizeof *j->texts);
    j->texts[at] = (dpi_journal_text_tokens){.index = index};
    j->n_texts++;
    return true;
}

static bool reserve(dpi_journal_text_tokens *t) {
    return dpi_private_grow(&t->tokens, &t->capacity, (size_t)t->n + 1, sizeof *t->tokens);
}

dpi_status dpi_journal_add(dpi_journal *j, int32_t text, int32_t place, int32_t token,
                           dpi_error *err) {
    const int32_t at = find(j, text);
    const int32_t n = is_there(j, at, text) ? j->texts[at].n : 0;
    if (place != n)
        return dpi_fail(err, DPI_STATUS_ARG, "%s: token %d of text %d comes next, found token %d",
                        j->folder, n, text, place);
    if ((!is_there(j, at, text) && !insert(j, at, text)) || !reserve(&j->texts[at]))
        return dpi_no_memory(err, "the tokens of a job");
    j->texts[at].tokens[j->texts[at].n++] = token;
    return DPI_STATUS_OK;
}

void dpi_journal_text(const dpi_journal *j, int32_t text, const int32_t **tokens, int32_t *n) {
    const int32_t at = find(j, text);
    const bool found = is_there(j, at, text);
    *tokens = found ? j->texts[at].tokens : NULL;
    *n = found ? j->texts[at].n : 0;
}

void dpi_journal_count(const dpi_journal *j, int32_t *n_texts, int64_t *n_tokens) {
    *n_texts = j->n_texts;
    *n_tokens = j->n_records;
}

void dpi_journal_free_texts(dpi_journal *j) {
    for (int32_t i = 0; i < j->n_texts; i++)
        dpi_private_free(j->texts[i].tokens);
    dpi_private_free(j->texts);
    j->texts = NULL;
    j->n_texts = 0;
}
