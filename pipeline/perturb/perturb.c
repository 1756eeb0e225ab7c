/* perturb.c - see dpinfer/perturb.h: a text, word by word. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "dp/local/certify.h"
#include "dpinfer/memory.h"
#include "dpinfer/text.h"
#include "pipeline/perturb/vocabulary.h"
#include "pipeline/perturb/text_words.h"

/* FEW words are done before another thread has begun. */
enum { POOL = 1 << 14, NUMBER_BYTES = 12, FEW = 8 };

/* Random bits, many at a time: noise for 1,536 dimensions reads 6 kB of them. */
typedef struct pool {
    dpi_random_fn random;
    void *user;
    size_t at; /* bytes before it were used, and are wiped */
    unsigned char bytes[POOL];
} pool;

/* Words are drawn independently, so that threads share a text's; each has bits of its own. */
typedef struct worker {
    dpi_local_list list;
    pool pool;
    dpi_status status;
    dpi_error err;
} worker;

struct dpi_perturber {
    const dpi_vocabulary *vocabulary;
    dpi_local *local;
    int8_t *fate; /* [n words of the vocabulary] */
    worker *workers; /* [n_workers] */
    int32_t n_workers;
    dpi_perturbed_word *words; /* [n], of the last text. PRIVATE */
    size_t n, n_room;
    char (*numbers)[NUMBER_BYTES]; /* [n] replacements of words that are numbers */
    char *copy; /* the text that words point to. PRIVATE */
    char *text; /* the perturbed one */
    size_t n_text, n_text_room;
};

static int32_t read_pool(void *user, void *buffer, size_t n_bytes) {
    pool *p = user;
    unsigned char *to = buffer;
    while (n_bytes > 0) {
        if (p->at == sizeof p->bytes) {
            if (dpi_random_fill(p->random, p->user, p->bytes, sizeof p->bytes, NULL) !=
                DPI_STATUS_OK)
                return -1;
            p->at = 0;
        }
        const size_t left = sizeof p->bytes - p->at, n = n_bytes < left ? n_bytes : left;
        memcpy(to, p->bytes + p->at, n);
        dpi_wipe(p->bytes + p->at, n);
        p->at += n;
        to += n;
        n_bytes -= n;
    }
    return 0;
}

/* ---- Life cycle ------------------------------------------------------------------------------ */

/* A caller's random bits come in one order: one worker. */
static dpi_status make_workers(dpi_perturber *p, const dpi_perturb_options *o, dpi_error *err) {
    const int32_t n = o->random ? 1 : p->local->options.n_threads;
    if (!(p->workers = dpi_calloc((size_t)n, sizeof *p->workers)))
        return dpi_no_memory(err, "%d threads", n);
    for (; p->n_workers < n; p->n_workers++) {
        worker *w = &p->workers[p->n_workers];
        w->pool = (pool){.random = o->random, .user = o->random_user, .at = POOL};
        DPI_TRY(dpi_local_list_create(p->local, &w->list, err));
    }
    return DPI_STATUS_OK;
}

static dpi_status find_fates(dpi_perturber *p, dpi_error *err) {
    const dpi_vocabulary *v = p->vocabulary;
    if (!(p->fate = dpi_calloc((size_t)v->n, sizeof *p->fate)))
        return dpi_no_memory(err, "%d words", v->n);
    for (int32_t i = 0; i < v->n; i++)
        p->fate[i] = (int8_t)dpi_word_fate(p->local->options.mechanism, v->words[i]);
    p->local->fate = p->fate;
    return DPI_STATUS_OK;
}

dpi_status dpi_perturber_create(const dpi_vocabulary *v, const dpi_perturb_options *options,
                                dpi_perturber **perturber, dpi_error *err) {
    if (!v || !options || !perturber)
        return dpi_fail(err, DPI_STATUS_ARG, "vocabulary, options or perturber is NULL");
    if (!v->distance)
        return dpi_fail(err, DPI_STATUS_STATE, "the vocabulary has not been measured");
    dpi_perturber *p = dpi_calloc(1, sizeof *p);
    if (!p)
        return dpi_no_memory(err, "a perturber");
    p->vocabulary = v;
    dpi_status status =
        dpi_local_create(options, v->distance, v->n, v->range, v->dim, &p->local, err);
    if (status == DPI_STATUS_OK)
        status = find_fates(p, err);
    if (status == DPI_STATUS_OK)
        status = make_workers(p, options, err);
    if (status != DPI_STATUS_OK) {
        dpi_perturber_free(p);
        return status;
    }
    *perturber = p;
    return DPI_STATUS_OK;
}

static void forget(dpi_perturber *p) {
    dpi_private_free(p->words);
    dpi_private_free(p->copy);
    dpi_private_free(p->text);
    free(p->numbers);
    p->words = NULL;
    p->copy = p->text = NULL;
    p->numbers = NULL;
    p->n = p->n_room = p->n_text = p->n_text_room = 0;
}

void dpi_perturber_free(dpi_perturber *p) {
    if (!p)
        return;
    forget(p);
    for (int32_t i = 0; i < p->n_workers; i++)
        dpi_local_list_free(p->local, &p->workers[i].list);
    dpi_wipe_free(p->workers, (size_t)p->n_workers * sizeof *p->workers);
    dpi_local_free(p->local);
    free(p->fate);
    dpi_wipe_free(p, sizeof *p);
}

const char *dpi_perturbed_text(const dpi_perturber *p) { return p->text ? p->text : ""; }

dpi_status dpi_perturb_certify(const dpi_perturber *p, dpi_certificate *certificate,
                               dpi_error *err) {
    return dpi_local_certify(p->local, certificate, err);
}

/* ---- One word -------------------------------------------------------------------------------- */

/* The place of a word, or of the same in small ASCII letters; -1: none. */
static int32_t find_word(const dpi_vocabulary *v, const char *word, size_t n_bytes) {
    char small[256];
    const int32_t place = dpi_vocabulary_find(v, word, n_bytes);
    if (place >= 0 || n_bytes > sizeof small)
        return place;
    for (size_t i = 0; i < n_bytes; i++)
        small[i] = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] + 'a' - 'A') : word[i];
    const int32_t found = dpi_vocabulary_find(v, small, n_bytes);
    dpi_wipe(small, sizeof small);
    return found;
}

/* Uniform in 1..1000: of 10 bits those below 1000. */
static dpi_status draw_number(worker *by, char text[NUMBER_BYTES], dpi_error *err) {
    uint16_t bits;
    do {
        DPI_TRY(dpi_random_fill(read_pool, &by->pool, &bits, sizeof bits, err));
        bits &= 1023;
    } while (bits >= 1000);
    snprintf(text, NUMBER_BYTES, "%d", bits + 1);
    return DPI_STATUS_OK;
}

static dpi_status draw_word(const dpi_perturber *p, worker *by, dpi_perturbed_word *w,
                            dpi_error *err) {
    DPI_TRY(dpi_local_draw(p->local, w->from, &by->list, read_pool, &by->pool, &w->to, err));
    w->replacement = p->vocabulary->words[w->to];
    w->n_list = (int32_t)by->list.n;
    w->how = w->from >= 0 ? DPI_REPLACED_DRAWN : DPI_REPLACED_UNKNOWN;
    return DPI_STATUS_OK;
}

static dpi_status replace(const dpi_perturber *p, worker *by, size_t i, dpi_error *err) {
    const int32_t mechanism = p->local->options.mechanism;
    dpi_perturbed_word *w = &p->words[i];
    size_t n_bytes = w->n_bytes;
    const char *word = dpi_word_bare(w->word, &n_bytes);
    const bool number = dpi_word_is_number(word, n_bytes);
    if (mechanism == DPI_WORDS_RANTEXT && number) {
        w->how = DPI_REPLACED_NUMBER;
        w->replacement = p->numbers[i];
        return draw_number(by, p->numbers[i], err);
    }
    if (mechanism == DPI_WORDS_CUSTEXT && (number || dpi_word_is_stop(word, n_bytes))) {
        w->how = DPI_REPLACED_KEPT;
        w->to = w->from;
        return DPI_STATUS_OK;
    }
    if (w->from < 0 && (mechanism == DPI_WORDS_RANTEXT || mechanism == DPI_WORDS_CUSTEXT)) {
        w->how = DPI_REPLACED_DROPPED;
        return DPI_STATUS_OK;
    }
    return draw_word(p, by, w, err);
}

static dpi_status replace_all(dpi_perturber *p, dpi_error *err) {
    const int32_t n_workers = p->n <= FEW ? 1 : p->n_workers;
    const int64_t n = (int64_t)p->n, share = n / n_workers + 1;
#pragma omp parallel for num_threads(n_workers) schedule(static, 1)
    for (int32_t k = 0; k < n_workers; k++) {
        worker *by = &p->workers[k];
        const int64_t end = (k + 1) * share > n ? n : (k + 1) * share;
        by->status = DPI_STATUS_OK;
        for (int64_t i = k * share; i < end && by->status == DPI_STATUS_OK; i++)
            by->status = replace(p, by, (size_t)i, &by->err);
    }
    for (int32_t k = 0; k < n_workers; k++)
        if (p->workers[k].status != DPI_STATUS_OK)
            return dpi_fail(err, p->workers[k].status, "%s", p->workers[k].err.message);
    return DPI_STATUS_OK;
}

/* ---- A text ---------------------------------------------------------------------------------- */

static dpi_status add_word(dpi_perturber *p, const char *word, size_t n_bytes, int32_t from,
                           dpi_error *err) {
    if (!dpi_private_grow(&p->words, &p->n_room, p->n + 1, sizeof *p->words))
        return dpi_no_memory(err, "a perturbed text");
    p->words[p->n++] = (dpi_perturbed_word){
        .word = word, .n_bytes = n_bytes, .replacement = "", .from = from, .to = -1};
    return DPI_STATUS_OK;
}

static dpi_status split_words(dpi_perturber *p, size_t n_bytes, dpi_error *err) {
    size_t n;
    for (size_t at = 0; dpi_word_next(p->copy, n_bytes, &at, &n); at += n)
        DPI_TRY(add_word(p, p->copy + at, n, find_word(p->vocabulary, p->copy + at, n), err));
    return DPI_STATUS_OK;
}

/* The tokens of a model: their texts are those of the vocabulary, not pieces of the document. */
static dpi_status split_tokens(dpi_perturber *p, size_t n_bytes, dpi_error *err) {
    const dpi_model *model = p->vocabulary->model;
    const size_t room = 4 * n_bytes + 5; /* text.h: always suffices */
    int32_t *tokens = dpi_private_malloc(room * sizeof *tokens);
    size_t n = 0;
    if (!tokens)
        return dpi_no_memory(err, "a perturbed text");
    dpi_status status = dpi_tokenize(model, p->copy, n_bytes, 0, tokens, room, &n, err);
    for (size_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        const int32_t place = p->vocabulary->place[tokens[i]];
        const char *word = place >= 0 ? p->vocabulary->words[place] : "";
        status = add_word(p, word, strlen(word), place, err);
    }
    dpi_private_free(tokens);
    return status;
}

static dpi_status append(dpi_perturber *p, const char *text, size_t n_bytes, dpi_error *err) {
    if (!dpi_private_grow(&p->text, &p->n_text_room, p->n_text + n_bytes + 1, 1))
        return dpi_no_memory(err, "a perturbed text");
    memcpy(p->text + p->n_text, text, n_bytes);
    p->n_text += n_bytes;
    p->text[p->n_text] = '\0';
    return DPI_STATUS_OK;
}

/* The word that stands in the place of w; *n_bytes 0: none. */
static const char *text_of(const dpi_perturbed_word *w, size_t *n_bytes) {
    const bool kept = w->how == DPI_REPLACED_KEPT;
    *n_bytes = kept ? w->n_bytes : strlen(w->replacement);
    return kept ? w->word : w->replacement;
}

static dpi_status join_words(dpi_perturber *p, dpi_error *err) {
    DPI_TRY(append(p, "", 0, err));
    for (size_t i = 0; i < p->n; i++) {
        size_t n_bytes;
        const char *text = text_of(&p->words[i], &n_bytes);
        if (n_bytes > 0 && p->n_text > 0)
            DPI_TRY(append(p, " ", 1, err));
        DPI_TRY(append(p, text, n_bytes, err));
    }
    return DPI_STATUS_OK;
}

static dpi_status push_token(dpi_perturber *p, dpi_decoder *decoder, const dpi_perturbed_word *w,
                             dpi_error *err) {
    const char *text;
    size_t n_bytes;
    if (w->to < 0) {
        text = text_of(w, &n_bytes);
        return append(p, text, n_bytes, err);
    }
    DPI_TRY(dpi_decoder_push(decoder, p->vocabulary->token[w->to], &text, &n_bytes, err));
    return append(p, text, n_bytes, err);
}

static dpi_status join_tokens(dpi_perturber *p, dpi_error *err) {
    dpi_decoder *decoder;
    const char *text;
    size_t n_bytes;
    DPI_TRY(append(p, "", 0, err));
    DPI_TRY(dpi_decoder_create(p->vocabulary->model, &decoder, err));
    dpi_status status = DPI_STATUS_OK;
    for (size_t i = 0; i < p->n && status == DPI_STATUS_OK; i++)
        status = push_token(p, decoder, &p->words[i], err);
    dpi_decoder_finish(decoder, &text, &n_bytes);
    if (status == DPI_STATUS_OK)
        status = append(p, text, n_bytes, err);
    dpi_decoder_free(decoder);
    return status;
}

static dpi_status perturb(dpi_perturber *p, const char *text, size_t n_bytes, dpi_error *err) {
    const bool tokens = p->vocabulary->model != NULL;
    if (!(p->copy = dpi_private_malloc(n_bytes + 1)))
        return dpi_no_memory(err, "a perturbed text");
    memcpy(p->copy, text, n_bytes);
    DPI_TRY(tokens ? split_tokens(p, n_bytes, err) : split_words(p, n_bytes, err));
    if (!(p->numbers = dpi_calloc(p->n + 1, sizeof *p->numbers)))
        return dpi_no_memory(err, "a perturbed text");
    DPI_TRY(replace_all(p, err));
    return tokens ? join_tokens(p, err) : join_words(p, err);
}

dpi_status dpi_perturb(dpi_perturber *p, const char *text, size_t n_bytes,
                       const dpi_perturbed_word **words, size_t *n, dpi_error *err) {
    if (!p || (!text && n_bytes > 0) || !words || !n)
        return dpi_fail(err, DPI_STATUS_ARG, "perturber, text, words or n is NULL");
    forget(p);
    const dpi_status status = perturb(p, text, n_bytes, err);
    if (status != DPI_STATUS_OK) {
        forget(p);
        return status;
    }
    *words = p->words;
    *n = p->n;
    return DPI_STATUS_OK;
}
