/* best_of.c - of several texts for each one that is wanted, those that together say what records
 * said. Each choice is the one that leaves the least between the mean of what was chosen and that
 * of the records (herding: Welling, ICML 2009), in words. Everything here is released. */
#include "dpinfer/best_of.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "gguf/gguf.h"
#include "pipeline/claim/claim_file.h"
#include "pipeline/finetune/task.h"
#include "pipeline/steer/steer.h"

/* A word of a text, and its share of the text's length. */
typedef struct said_word {
    int32_t word;
    double value;
} said_word;

typedef struct candidate {
    int32_t id, n;
    said_word *words; /* [n] own */
} candidate;

typedef struct label_texts {
    candidate *waiting; /* [n of room] in the order they came */
    size_t n, room;
    double *ahead; /* [n_words] by how much the records are ahead of what was taken */
} label_texts;

struct dpi_best_of {
    int32_t n_words, n_labels;
    dpi_key_word *words; /* [n_words] in the order of the alphabet */
    double *means;       /* [n_labels, n_words] of records, none below 0 */
    label_texts *labels; /* [n_labels] */
    int32_t *found;      /* [n_words] for the work */
    uint8_t *seen;       /* [n_words] for the work, zeros between */
};

static dpi_status no_memory(dpi_error *err) { return dpi_no_memory(err, "texts to choose from"); }

/* ---- The file -------------------------------------------------------------------------------- */

/* Words with a space between, in the order of the alphabet. */
static dpi_status read_names(const dpi_gguf *file, dpi_bytes text, dpi_best_of *b, dpi_error *err) {
    const char *at = text.data, *end = at + text.n_bytes;
    if (b->n_words == 0 && text.n_bytes > 0)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s: found %zu bytes, allowed are words with "
                                                "weights, of which there are none",
                        dpi_gguf_name(file), dpi_words_keys[DPI_WORDS], text.n_bytes);
    for (int32_t i = 0; i < b->n_words; i++) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        const size_t n = (size_t)((space ? space : end) - at);
        if (n == 0 || n >= DPI_KEY_WORD_MAX || (space == NULL) != (i == b->n_words - 1))
            return dpi_fail(err, DPI_STATUS_FORMAT,
                            "%s: %s: word %d has %zu bytes%s, allowed are %d words of 1..%d bytes",
                            dpi_gguf_name(file), dpi_words_keys[DPI_WORDS], (int)i, n,
                            space ? "" : " and is the last", (int)b->n_words,
                            DPI_KEY_WORD_MAX - 1);
        memcpy(b->words[i].name, at, n);
        if (i > 0 && strcmp(b->words[i - 1].name, b->words[i].name) >= 0)
            return dpi_fail(err, DPI_STATUS_FORMAT,
                            "%s: %s: word %d stands behind one that does not come before it in the "
                            "alphabet", dpi_gguf_name(file), dpi_words_keys[DPI_WORDS], (int)i);
        at += n + (space != NULL);
    }
    return DPI_STATUS_OK;
}

/* A finite number; one below 0 is 0, as no record says a word less than not at all. */
static dpi_status read_number(const dpi_gguf *file, int key, dpi_bytes array, size_t i, double *to,
                              dpi_error *err) {
    float x;
    memcpy(&x, array.data + i * sizeof x, sizeof x);
    if (!isfinite(x))
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s: number %zu is %g, must be finite",
                        dpi_gguf_name(file), dpi_words_keys[key], i, (double)x);
    *to = x > 0 ? (double)x : 0;
    return DPI_STATUS_OK;
}

static dpi_status make_room(dpi_best_of *b, dpi_error *err) {
    const size_t n = (size_t)b->n_words + 1, n_labels = (size_t)b->n_labels;
    b->words = dpi_calloc(n, sizeof *b->words);
    b->means = dpi_calloc(n_labels * n, sizeof *b->means);
    b->labels = dpi_calloc(n_labels, sizeof *b->labels);
    b->found = dpi_calloc(n, sizeof *b->found);
    b->seen = dpi_calloc(n, sizeof *b->seen);
    bool failed = !b->words || !b->means || !b->labels || !b->found || !b->seen;
    for (size_t i = 0; i < n_labels && !failed; i++)
        failed = !(b->labels[i].ahead = dpi_calloc(n, sizeof(double)));
    return failed ? no_memory(err) : DPI_STATUS_OK;
}

static dpi_status read_words(const dpi_gguf *file, dpi_best_of *b, dpi_error *err) {
    dpi_bytes parts[DPI_WORDS_KEYS];
    DPI_TRY(dpi_words_find(file, parts, err));
    const int32_t n_lines = dpi_task_line_count(file, DPI_TASK_KEY "labels");
    b->n_labels = n_lines > 0 ? n_lines : 1;
    b->n_words = (int32_t)(parts[DPI_WORD_WEIGHTS].n_bytes / sizeof(float));
    DPI_TRY(make_room(b, err));
    DPI_TRY(read_names(file, parts[DPI_WORDS], b, err));
    const size_t n = (size_t)b->n_words;
    for (size_t i = 0; i < n; i++)
        DPI_TRY(read_number(file, DPI_WORD_WEIGHTS, parts[DPI_WORD_WEIGHTS], i,
                            &b->words[i].weight, err));
    for (size_t i = 0; i < (size_t)b->n_labels * n; i++) {
        DPI_TRY(read_number(file, DPI_WORD_MEANS, parts[DPI_WORD_MEANS], i, &b->means[i], err));
        b->labels[i / n].ahead[i % n] = b->means[i];
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_best_of_open(const char *path, dpi_best_of **best_of, dpi_error *err) {
    dpi_gguf *file;
    *best_of = NULL;
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    dpi_status status = DPI_STATUS_OK;
    if (dpi_gguf_find(file, dpi_words_keys[DPI_WORDS])) {
        *best_of = dpi_calloc(1, sizeof **best_of);
        status = *best_of ? read_words(file, *best_of, err) : no_memory(err);
    }
    dpi_gguf_close(file);
    if (status != DPI_STATUS_OK) {
        dpi_best_of_free(*best_of);
        *best_of = NULL;
    }
    return status;
}

void dpi_best_of_free(dpi_best_of *b) {
    if (!b)
        return;
    for (int32_t label = 0; label < b->n_labels && b->labels; label++) {
        label_texts *l = &b->labels[label];
        for (size_t i = 0; i < l->n; i++)
            free(l->waiting[i].words);
        free(l->waiting), free(l->ahead);
    }
    free(b->words), free(b->means);
    free(b->labels), free(b->found), free(b->seen);
    free(b);
}

int32_t dpi_best_of_labels(const dpi_best_of *b) { return b->n_labels; }

int32_t dpi_best_of_words(const dpi_best_of *b) { return b->n_words; }

/* ---- Texts ----------------------------------------------------------------------------------- */

/* The words of a text, n of them in b->found, as long together as 1, if there are any that tell
 * something. */
static void weigh(const dpi_best_of *b, int32_t n, said_word *words) {
    double square = 0;
    for (int32_t i = 0; i < n; i++) {
        words[i] = (said_word){b->found[i], b->words[b->found[i]].weight};
        square += words[i].value * words[i].value;
    }
    for (int32_t i = 0; i < n; i++)
        words[i].value = square > 0 ? words[i].value / sqrt(square) : 0;
}

static void forget(label_texts *l, size_t i) {
    free(l->waiting[i].words);
    memmove(l->waiting + i, l->waiting + i + 1, (--l->n - i) * sizeof *l->waiting);
}

dpi_status dpi_best_of_add(dpi_best_of *b, int32_t label, int32_t id, const char *text,
                           size_t n_bytes, int32_t *forgotten, dpi_error *err) {
    *forgotten = -1;
    DPI_TRY(dpi_check_range("label", label, 0, b->n_labels - 1, err));
    DPI_TRY(dpi_check_range("id", id, 0, INT32_MAX, err));
    label_texts *l = &b->labels[label];
    const int32_t n = dpi_key_words_in(b->words, b->n_words, text, n_bytes, b->seen, b->found);
    said_word *words = dpi_calloc((size_t)n + 1, sizeof *words);
    if (!words || !dpi_grow((void **)&l->waiting, &l->room, l->n + 1, sizeof *l->waiting)) {
        free(words);
        return no_memory(err);
    }
    weigh(b, n, words);
    if (l->n == DPI_BEST_OF_WAITING) {
        *forgotten = l->waiting[0].id;
        forget(l, 0);
    }
    l->waiting[l->n++] = (candidate){id, n, words};
    return DPI_STATUS_OK;
}

/* |ahead - text|^2 but for what all texts have of it. */
static double distance(const label_texts *l, const candidate *text) {
    double sum = 0;
    for (int32_t i = 0; i < text->n; i++) {
        const said_word *w = &text->words[i];
        sum += w->value * (w->value - 2 * l->ahead[w->word]);
    }
    return sum;
}

int32_t dpi_best_of_next(dpi_best_of *b, int32_t label) {
    if (label < 0 || label >= b->n_labels || b->labels[label].n == 0)
        return -1;
    label_texts *l = &b->labels[label];
    size_t best = 0;
    double least = INFINITY;
    for (size_t i = 0; i < l->n; i++) {
        const double d = distance(l, &l->waiting[i]);
        if (d < least)
            least = d, best = i;
    }
    for (int32_t i = 0; i < b->n_words; i++) /* as far as the records are ahead of the next one */
        l->ahead[i] += b->means[(size_t)label * (size_t)b->n_words + (size_t)i];
    const candidate taken = l->waiting[best];
    for (int32_t i = 0; i < taken.n; i++)
        l->ahead[taken.words[i].word] -= taken.words[i].value;
    forget(l, best);
    return taken.id;
}
