/* text_set.c - see text_set.h. */
#include "eval/text_set.h"

#include <stdbool.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/terms.h"

enum { TEXTS_MAX = 1 << 20, WORDS_MAX = 1 << 27 };

static char *copy(const char *bytes, size_t n_bytes) {
    char *text = dpi_private_malloc(n_bytes + 1);
    if (text) {
        memcpy(text, bytes, n_bytes);
        text[n_bytes] = '\0';
    }
    return text;
}

/* Takes `text`. */
static dpi_status add(eval_texts *s, const eval_terms *terms, char *text, size_t n_bytes,
                      const char *label, size_t n_label, dpi_error *err) {
    eval_text *t = &s->at[s->n++];
    *t = (eval_text){.text = text, .n_bytes = n_bytes, .record = s->n - 1 + s->n_null};
    if (n_bytes > WORDS_MAX)
        return eval_fail(err, DPI_STATUS_LIMIT, "a text: more than %d bytes", WORDS_MAX);
    if (label && !(t->label = copy(label, n_label)))
        return eval_no_memory(err, "texts");
    EVAL_TRY(eval_words_find(text, n_bytes, &t->word, &t->n_words, err));
    if (label)
        EVAL_TRY(eval_terms_find(terms, text, n_bytes, &t->term, &t->n_terms, err));
    s->n_words += t->n_words;
    s->n_terms += t->n_terms;
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

static dpi_status read_all(const dpi_records *records, const eval_terms *terms, eval_texts *s,
                           dpi_error *err) {
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
        EVAL_TRY(add(s, terms, text, n_bytes, label, n_label, err));
    }
    return DPI_STATUS_OK;
}

dpi_status eval_texts_read(const char *path, const dpi_records_options *options, eval_texts *s,
                           dpi_error *err) {
    dpi_records *records;
    eval_terms *terms = NULL;
    *s = (eval_texts){0};
    EVAL_TRY(dpi_records_open(path, options, &records, err));
    dpi_status status = eval_terms_open(&terms, err);
    if (status == DPI_STATUS_OK)
        status = read_all(records, terms, s, err);
    eval_terms_close(terms);
    dpi_records_close(records);
    return status;
}

bool eval_texts_have_labels(const eval_texts *s) {
    bool found = false;
    for (int32_t i = 0; i < s->n; i++)
        found |= s->at[i].label != NULL;
    return found;
}

/* Whether a file has what the options ask for; *status: of reading it, which is no error where it
 * has another form. */
static bool fits(const char *path, const dpi_records_options *options, eval_texts *s,
                 dpi_status *status, dpi_error *err) {
    *status = eval_texts_read(path, options, s, err);
    if (*status == DPI_STATUS_OK && s->n > 0 &&
        (!options->label_field || eval_texts_have_labels(s)))
        return true;
    eval_texts_free(s);
    return false;
}

dpi_status eval_texts_read_made(const char *path, const dpi_records_options *options,
                                eval_texts *s, dpi_error *err) {
    dpi_records_options labelled = *options, written;
    dpi_status status;
    dpi_records_options_init(&written);
    if (options->label_field)
        written.label_field = labelled.label_field = "text_label";
    const dpi_records_options *const others[] = {&labelled, &written};
    for (int32_t i = 0; i < 2; i++) {
        if (fits(path, others[i], s, &status, err))
            return DPI_STATUS_OK;
        if (status != DPI_STATUS_OK && status != DPI_STATUS_FORMAT && status != DPI_STATUS_ARG)
            return status;
    }
    EVAL_TRY(eval_texts_read(path, options, s, err));
    return s->n == 0 || !options->label_field || eval_texts_have_labels(s)
               ? DPI_STATUS_OK
               : eval_fail(err, DPI_STATUS_ARG, "%s: no text has a label: found neither '%s' nor "
                           "'text_label', which dpinfer run writes", path, options->label_field);
}

dpi_status eval_texts_make(const char *const *text, const char *const *label, int32_t n,
                           eval_texts *s, dpi_error *err) {
    eval_terms *terms;
    *s = (eval_texts){0};
    EVAL_TRY(make_room(s, (size_t)n, err));
    EVAL_TRY(eval_terms_open(&terms, err));
    dpi_status status = DPI_STATUS_OK;
    for (int32_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        const size_t n_bytes = strlen(text[i]);
        const char *name = label ? label[i] : NULL;
        char *own = copy(text[i], n_bytes);
        status = own ? add(s, terms, own, n_bytes, name, name ? strlen(name) : 0, err)
                     : eval_no_memory(err, "texts");
    }
    eval_terms_close(terms);
    return status;
}

void eval_texts_free(eval_texts *s) {
    for (int32_t i = 0; i < s->n; i++) {
        dpi_private_free(s->at[i].text);
        dpi_private_free(s->at[i].label);
        dpi_private_free(s->at[i].word);
        dpi_private_free(s->at[i].term);
    }
    dpi_private_free(s->at);
    *s = (eval_texts){0};
}
