/* text_set.c - see text_set.h. */
#include "eval/text_set.h"

#include <stdbool.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"

enum { TEXTS_MAX = 1 << 20, WORDS_MAX = 1 << 27 };

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* FNV-1a of each word. A text has at most half as many words as bytes, and one. */
static dpi_status find_words(eval_text *t, dpi_error *err) {
    t->word = dpi_private_malloc((t->n_bytes / 2 + 1) * sizeof *t->word);
    if (!t->word)
        return eval_no_memory(err, "texts");
    for (size_t i = 0; i < t->n_bytes;) {
        uint64_t hash = 0xcbf29ce484222325u;
        const size_t begin = i;
        for (; i < t->n_bytes && !is_space(t->text[i]); i++)
            hash = (hash ^ (unsigned char)t->text[i]) * 0x100000001b3u;
        if (i > begin)
            t->word[t->n_words++] = hash;
        else
            i++;
    }
    return DPI_STATUS_OK;
}

static char *copy(const char *bytes, size_t n_bytes) {
    char *text = dpi_private_malloc(n_bytes + 1);
    if (text) {
        memcpy(text, bytes, n_bytes);
        text[n_bytes] = '\0';
    }
    return text;
}

/* Takes `text`. */
static dpi_status add(eval_texts *s, char *text, size_t n_bytes, const char *label, size_t n_label,
                      dpi_error *err) {
    eval_text *t = &s->at[s->n++];
    *t = (eval_text){.text = text, .n_bytes = n_bytes, .record = s->n - 1 + s->n_null};
    if (n_bytes > WORDS_MAX)
        return eval_fail(err, DPI_STATUS_LIMIT, "a text: more than %d bytes", WORDS_MAX);
    if (label && !(t->label = copy(label, n_label)))
        return eval_no_memory(err, "texts");
    EVAL_TRY(find_words(t, err));
    s->n_words += t->n_words;
    return s->n_words <= WORDS_MAX
               ? DPI_STATUS_OK
               : eval_fail(err, DPI_STATUS_LIMIT, "texts: more than %d words", WORDS_MAX);
}

static dpi_status make_room(eval_texts *s, size_t n, dpi_error *err) {
    if (n > TEXTS_MAX)
        return eval_fail(err, DPI_STATUS_LIMIT, "texts: found %zu, allowed %d", n, TEXTS_MAX);
    s->at = dpi_private_malloc((n + 1) * sizeof *s->at);
    return s->at ? DPI_STATUS_OK : eval_no_memory(err, "texts");
}

static dpi_status read_all(const dpi_records *records, eval_texts *s, dpi_error *err) {
    const size_t n = dpi_records_count(records);
    EVAL_TRY(make_room(s, n, err));
    for (size_t i = 0; i < n; i++) {
        char *text;
        const char *label = NULL;
        size_t n_bytes, n_label = 0;
        EVAL_TRY(dpi_records_read(records, i, &text, &n_bytes, err));
        if (!text) {
            s->n_null++;
            continue;
        }
        dpi_records_unit_label(records, i, &label, &n_label);
        EVAL_TRY(add(s, text, n_bytes, label, n_label, err));
    }
    return DPI_STATUS_OK;
}

dpi_status eval_texts_read(const char *path, const dpi_records_options *options, eval_texts *s,
                           dpi_error *err) {
    dpi_records *records;
    *s = (eval_texts){0};
    EVAL_TRY(dpi_records_open(path, options, &records, err));
    const dpi_status status = read_all(records, s, err);
    dpi_records_close(records);
    return status;
}

dpi_status eval_texts_make(const char *const *text, const char *const *label, int32_t n,
                           eval_texts *s, dpi_error *err) {
    *s = (eval_texts){0};
    EVAL_TRY(make_room(s, (size_t)n, err));
    for (int32_t i = 0; i < n; i++) {
        const size_t n_bytes = strlen(text[i]);
        const char *name = label ? label[i] : NULL;
        char *own = copy(text[i], n_bytes);
        if (!own)
            return eval_no_memory(err, "texts");
        EVAL_TRY(add(s, own, n_bytes, name, name ? strlen(name) : 0, err));
    }
    return DPI_STATUS_OK;
}

void eval_texts_free(eval_texts *s) {
    for (int32_t i = 0; i < s->n; i++) {
        dpi_private_free(s->at[i].text);
        dpi_private_free(s->at[i].label);
        dpi_private_free(s->at[i].word);
    }
    dpi_private_free(s->at);
    *s = (eval_texts){0};
}
