/* key_words.c - the words that tell the records of a label from those of the others. Which words
 * there are to choose from is public: those of public texts. What a unit says of them stands beside
 * its direction in the same clipped vector, so that one sum and one noise hide both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "dp/exact/gradient.h"
#include "dp/mechanism/steering.h"
#include "dpinfer/memory.h"
#include "pipeline/perturb/text_words.h"
#include "pipeline/steer/steer.h"

enum { LEAST_TEXTS = 2 }; /* public texts that have a word: one alone may be a slip */

static dpi_status no_memory(dpi_error *err) { return dpi_no_memory(err, "the words of texts"); }

/* ---- Words of a text ------------------------------------------------------------------------- */

/* The next word of a text that says what it is about, with small ASCII letters. false: there is
 * none. */
static bool next_word(const char *text, size_t n_bytes, size_t *at, char word[DPI_KEY_WORD_MAX]) {
    for (size_t n = 0; dpi_word_next(text, n_bytes, at, &n); *at += n) {
        const char *from = text + *at;
        const bool is_letter = (unsigned char)*from >= 0x80 || ((*from | 32) >= 'a' &&
                                                                (*from | 32) <= 'z');
        if (!is_letter || n < 2 || n >= DPI_KEY_WORD_MAX || dpi_word_is_stop(from, n))
            continue;
        for (size_t i = 0; i < n; i++)
            word[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] | 32) : from[i];
        word[n] = '\0';
        *at += n;
        return true;
    }
    return false;
}

static int by_name(const void *a, const void *b) {
    const dpi_key_word *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->text > y->text) - (x->text < y->text);
}

/* Those that most texts have come first; of as many, in the order of the alphabet. */
static int by_texts(const void *a, const void *b) {
    const dpi_key_word *x = a, *y = b;
    return x->n_texts != y->n_texts ? (x->n_texts < y->n_texts) - (x->n_texts > y->n_texts)
                                    : strcmp(x->name, y->name);
}

/* ---- The vocabulary -------------------------------------------------------------------------- */

/* Words as they come, to be freed with free. */
typedef struct word_list {
    dpi_key_word *at;
    size_t n, room;
} word_list;

static dpi_status list_text(word_list *l, const dpi_records *texts, size_t i, dpi_error *err) {
    char *text;
    size_t n_bytes, at = 0;
    dpi_key_word word = {.text = (int64_t)i};
    DPI_TRY(dpi_records_read(texts, i, &text, &n_bytes, err));
    bool failed = false;
    while (text && !failed && next_word(text, n_bytes, &at, word.name)) {
        failed = !dpi_grow((void **)&l->at, &l->room, l->n + 1, sizeof *l->at);
        if (!failed)
            l->at[l->n++] = word;
    }
    dpi_private_free(text);
    return failed ? no_memory(err) : DPI_STATUS_OK;
}

/* Each word once, with the texts that have it. */
static void count_texts(word_list *l) {
    size_t n = 0;
    qsort(l->at, l->n, sizeof *l->at, by_name);
    for (size_t i = 0; i < l->n; i++) {
        const bool is_same = n > 0 && strcmp(l->at[n - 1].name, l->at[i].name) == 0;
        if (!is_same)
            l->at[n] = l->at[i], l->at[n++].n_texts = 1;
        else if (l->at[n - 1].text != l->at[i].text)
            l->at[n - 1].text = l->at[i].text, l->at[n - 1].n_texts++;
    }
    l->n = n;
}

dpi_status dpi_key_words_find(dpi_steer *s, const dpi_records *texts, dpi_error *err) {
    const size_t n_texts = dpi_records_count(texts);
    word_list l = {0};
    dpi_status status = DPI_STATUS_OK;
    for (size_t i = 0; i < n_texts && status == DPI_STATUS_OK; i++)
        status = list_text(&l, texts, i, err);
    if (status != DPI_STATUS_OK) {
        free(l.at);
        return status;
    }
    if (l.n > 0) {
        count_texts(&l);
        qsort(l.at, l.n, sizeof *l.at, by_texts);
    }
    while (l.n > 0 && (l.n > (size_t)s->options.n_words || l.at[l.n - 1].n_texts < LEAST_TEXTS))
        l.n--;
    for (size_t i = 0; i < l.n; i++)
        l.at[i].text = 0, l.at[i].weight = log((double)n_texts / (double)l.at[i].n_texts);
    if (l.n > 0)
        qsort(l.at, l.n, sizeof *l.at, by_name);
    s->key_words = l.at, s->n_key_words = (int32_t)l.n;
    return DPI_STATUS_OK;
}

/* ---- Records --------------------------------------------------------------------------------- */

int32_t dpi_key_words_in(const dpi_key_word *words, int32_t n_words, const char *text,
                         size_t n_bytes, uint8_t *seen, int32_t *found) {
    dpi_key_word word = {0};
    size_t at = 0;
    int32_t n = 0;
    while (n_words > 0 && next_word(text, n_bytes, &at, word.name)) {
        const dpi_key_word *known = bsearch(&word, words, (size_t)n_words, sizeof word, by_name);
        if (known && !seen[known - words]) {
            found[n++] = (int32_t)(known - words);
            seen[known - words] = 1;
        }
    }
    for (int32_t i = 0; i < n; i++)
        seen[found[i]] = 0;
    dpi_wipe(&word, sizeof word);
    return n;
}

dpi_status dpi_key_words_add(const dpi_steer *s, const dpi_records *records, size_t i,
                             double *said, dpi_error *err) {
    const size_t room = (size_t)s->n_key_words + 1;
    char *text;
    size_t n_bytes;
    uint8_t *seen = dpi_private_malloc(room);
    int32_t *found = dpi_private_malloc(room * sizeof *found);
    const dpi_status status = seen && found ? dpi_records_read(records, i, &text, &n_bytes, err)
                                            : no_memory(err);
    if (status == DPI_STATUS_OK && text) {
        memset(seen, 0, room);
        const int32_t n = dpi_key_words_in(s->key_words, s->n_key_words, text, n_bytes, seen,
                                           found);
        for (int32_t k = 0; k < n; k++)
            said[found[k]] += s->key_words[found[k]].weight;
        dpi_private_free(text);
    }
    dpi_private_free(seen);
    dpi_private_free(found);
    return status;
}

/* ---- After the noise ------------------------------------------------------------------------- */

/* A word of a label, and how much more its records say it than those of other labels, in standard
 * deviations of the noise. */
typedef struct telling {
    int32_t word;
    double more;
} telling;

static int by_more(const void *a, const void *b) {
    const telling *x = a, *y = b;
    return x->more != y->more ? (x->more < y->more) - (x->more > y->more)
                              : (x->word > y->word) - (x->word < y->word);
}

/* Noise alone exceeds this for one of 2,000 words. */
static const double LEAST_MORE = 3.3;

/* What the units of labels say, in units of the longest vector, and the noise of that. */
typedef struct all_said {
    const int64_t *sum;
    double *of_all;  /* [n_key_words] added up over labels */
    double variance; /* of that */
} all_said;

static double unit_of(const dpi_steer *s, int32_t label) {
    return (double)(INT64_C(1) << DPI_GRADIENT_SHIFT) * dpi_steer_units(s, label);
}

static double deviation_of(const dpi_steer *s, int32_t label) {
    return s->claim.parts[0].values[DPI_STEERING_SIGMA] * (double)dpi_gradient_bound(s->n) /
           unit_of(s, label);
}

static double said_of(const dpi_steer *s, const int64_t *sum, int32_t label, int32_t word) {
    return (double)sum[s->n_vectors + (int64_t)label * s->options.n_words + word] /
           unit_of(s, label);
}

static void add_up(const dpi_steer *s, all_said *said) {
    for (int32_t label = 0; label < s->n_sets; label++) {
        said->variance += deviation_of(s, label) * deviation_of(s, label);
        for (int32_t word = 0; word < s->n_key_words; word++)
            said->of_all[word] += said_of(s, said->sum, label, word);
    }
}

/* By how many deviations a label says a word more than the others do on average. */
static double more_of(const dpi_steer *s, const all_said *said, int32_t label, int32_t word) {
    const int32_t n_others = s->n_sets > 1 ? s->n_sets - 1 : 1;
    const double own = said_of(s, said->sum, label, word), deviation = deviation_of(s, label);
    const double more = own - (said->of_all[word] - own) / n_others;
    const double square = deviation * deviation;
    const double noise = sqrt(square + (said->variance - square) / n_others / n_others);
    if (noise > 0)
        return more / noise;
    return more > 1e-9 ? LEAST_MORE + more : 0; /* without noise, all but what rounding says */
}

/* The line of a label. */
static void add_line(const dpi_steer *s, const all_said *said, int32_t label, telling *all,
                     dpi_text *lines) {
    int32_t n = 0;
    for (int32_t word = 0; word < s->n_key_words; word++) {
        const telling t = {word, more_of(s, said, label, word)};
        if (t.more > LEAST_MORE)
            all[n++] = t;
    }
    if (n > 0)
        qsort(all, (size_t)n, sizeof *all, by_more);
    dpi_text_add(lines, "%s", label > 0 ? "\n" : "");
    for (int32_t i = 0; i < n && i < DPI_STEER_KEY_WORDS; i++)
        dpi_text_add(lines, "%s%s", i > 0 ? " " : "", s->key_words[all[i].word].name);
}

dpi_status dpi_key_words_choose(dpi_steer *s, const int64_t *sum, dpi_error *err) {
    dpi_text lines = {0};
    telling *all = dpi_calloc((size_t)s->n_key_words + 1, sizeof *all);
    all_said said = {sum, dpi_calloc((size_t)s->n_key_words + 1, sizeof(double)), 0};
    const bool failed = !all || !said.of_all;
    if (!failed)
        add_up(s, &said);
    for (int32_t label = 0; label < s->n_sets && !failed; label++)
        add_line(s, &said, label, all, &lines);
    free(all), free(said.of_all);
    if (failed || lines.failed || !lines.data) {
        free(lines.data);
        return no_memory(err);
    }
    s->words = lines.data;
    return DPI_STATUS_OK;
}

dpi_status dpi_key_words_keep(dpi_steer *s, const int64_t *sum, dpi_error *err) {
    const size_t n = (size_t)s->n_key_words;
    dpi_text names = {0};
    dpi_text_add(&names, "%s", "");
    for (size_t i = 0; i < n; i++)
        dpi_text_add(&names, "%s%s", i > 0 ? " " : "", s->key_words[i].name);
    s->vocabulary = names.data;
    s->said = dpi_calloc((size_t)(1 + s->n_sets) * n + 1, sizeof *s->said);
    if (names.failed || !s->vocabulary || !s->said)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        s->said[i] = (float)s->key_words[i].weight;
    for (int32_t label = 0; label < s->n_sets; label++)
        for (size_t i = 0; i < n; i++)
            s->said[(size_t)(1 + label) * n + i] =
                (float)(said_of(s, sum, label, (int32_t)i) / DPI_WORDS_LONG);
    return DPI_STATUS_OK;
}
