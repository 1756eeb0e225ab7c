/* word_rules.c - see dpinfer/wording.h and word_rules.h. */
#include "pipeline/word_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/generation.h"
#include "engine/model.h"
#include "pipeline/model_tokens.h"
#include "pipeline/shaping.h"
#include "tokenizer/unicode.h"

struct dpi_word_rules {
    const dpi_model *model;
    dpi_wording *wording;
    int32_t n_vocab;
    uint64_t *others; /* [(n_vocab + 63) / 64] a bit for each token that ends no text */
    dpi_shaping *shaping; /* NULL: nothing is banned, no token gains or loses logits */
};

struct dpi_worded {
    const dpi_word_rules *rules;
    dpi_decoder *decoder;
    char *data; /* [n] the answer where it is kept, then the text */
    size_t n, capacity;
    size_t n_answer;   /* bytes of the answer in `data` */
    size_t n_shown;    /* bytes that were shown, or never will be */
    bool begun;        /* some were shown */
    size_t end;        /* over: bytes before the end */
    int32_t n_words;   /* that have begun */
    bool in_word;      /* the last character is of a word */
    int32_t over;      /* a dpi_end */
    uint64_t *allowed; /* as `others` */
    dpi_shaped *shaped; /* NULL as rules->shaping */
    bool is_cut;        /* no token was left, so that an end comes */
};

/* ---- Rules ----------------------------------------------------------------------------------- */

static size_t n_blocks(const dpi_word_rules *r) { return ((size_t)r->n_vocab + 63) / 64; }

static dpi_status find_ends(dpi_word_rules *r, dpi_error *err) {
    r->others = dpi_calloc(n_blocks(r), sizeof *r->others);
    if (!r->others)
        return dpi_no_memory(err, "the rules of a wording");
    for (int32_t i = 0; i < r->n_vocab; i++)
        if (!dpi_vocab_is_eog(r->model->vocab, i))
            r->others[i / 64] |= UINT64_C(1) << (i % 64);
    return DPI_STATUS_OK;
}

static dpi_status make_shaping(dpi_word_rules *r, dpi_error *err) {
    dpi_model_tokens tokens;
    if (!dpi_shaping_is_wanted(r->wording))
        return DPI_STATUS_OK;
    DPI_TRY(dpi_model_tokens_read(r->model, &tokens, err));
    const dpi_status status =
        dpi_shaping_make(r->wording, tokens.at, tokens.n, dpi_vocab_marks_spaces(r->model->vocab),
                         &r->shaping, err);
    dpi_model_tokens_free(&tokens);
    return status;
}

dpi_status dpi_word_rules_create(const dpi_wording *wording, const dpi_model *model,
                                 dpi_word_rules **rules, dpi_error *err) {
    if (!model || !rules)
        return dpi_fail(err, DPI_STATUS_ARG, "the model or the rules are NULL");
    dpi_word_rules *r = dpi_calloc(1, sizeof *r);
    if (!r)
        return dpi_no_memory(err, "the rules of a wording");
    r->model = model;
    r->n_vocab = dpi_vocab_size(model->vocab);
    dpi_status status = dpi_wording_copy(wording, &r->wording, err);
    if (status == DPI_STATUS_OK)
        status = find_ends(r, err);
    if (status == DPI_STATUS_OK)
        status = make_shaping(r, err);
    if (status == DPI_STATUS_OK)
        *rules = r;
    else
        dpi_word_rules_free(r);
    return status;
}

void dpi_word_rules_free(dpi_word_rules *r) {
    if (!r)
        return;
    dpi_shaping_free(r->shaping);
    dpi_wording_free(r->wording);
    free(r->others);
    free(r);
}

const dpi_wording *dpi_word_rules_wording(const dpi_word_rules *rules) { return rules->wording; }

/* ---- Where a text ends ----------------------------------------------------------------------- */

static bool ends_with(const dpi_worded *t, size_t at, const char *text, size_t n) {
    return n <= at - t->n_answer && memcmp(t->data + at - n, text, n) == 0;
}

/* Words of the text before a place. */
static int32_t count_words(const dpi_worded *t, size_t before) {
    int32_t n_words = 0;
    bool in_word = false;
    for (size_t i = t->n_answer, step; i < before; i += step) {
        const size_t space = dpi_space_bytes(t->data + i, before - i);
        step = space > 0 ? space : 1;
        n_words += space == 0 && !in_word;
        in_word = space == 0;
    }
    return n_words;
}

/* Bytes of the longest stop that is complete at a place, and counts there; 0: none is. */
static size_t find_stop(const dpi_worded *t, size_t at) {
    const dpi_wording *w = t->rules->wording;
    size_t longest = 0;
    for (int32_t i = 0; i < w->n_stops; i++) {
        const dpi_bytes *stop = &w->stops[i];
        if (stop->n_bytes > longest && ends_with(t, at, stop->data, stop->n_bytes) &&
            count_words(t, at - stop->n_bytes) >= w->min_words)
            longest = stop->n_bytes;
    }
    return longest;
}

/* The most bytes at the end that a stop may begin with. */
static size_t begun_stop(const dpi_worded *t) {
    const dpi_wording *w = t->rules->wording;
    size_t most = 0;
    for (int32_t i = 0; i < w->n_stops; i++)
        for (size_t n = w->stops[i].n_bytes - 1; n > most; n--)
            if (ends_with(t, t->n, w->stops[i].data, n))
                most = n;
    return most;
}

/* One more character of n bytes, at the place `at`. A stop comes before the last word's end. */
static void add_character(dpi_worded *t, size_t at, size_t n) {
    const bool is_space = dpi_space_bytes(t->data + at, n) > 0;
    const int32_t most = t->rules->wording->max_words;
    const size_t stop = find_stop(t, at + n);
    const bool is_last = most > 0 && is_space && t->in_word && t->n_words == most;
    t->over = stop > 0 ? DPI_END_STOP : is_last ? DPI_END_WORDS : DPI_END_NONE;
    t->end = stop > 0 ? at + n - stop : at;
    t->n_words += !is_space && !t->in_word;
    t->in_word = !is_space;
}

/* There is room for the piece. */
static void add_piece(dpi_worded *t, const char *piece, size_t n_bytes) {
    if (n_bytes > 0)
        memcpy(t->data + t->n, piece, n_bytes);
    for (const size_t all = t->n + n_bytes; t->n < all && !t->over;) {
        size_t n;
        (void)dpi_char_next(t->data + t->n, &n);
        t->n += n;
        add_character(t, t->n - n, n);
    }
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* The tokens of a grammar (NULL: all) that the rules leave; NULL: all. */
static const uint64_t *leave(dpi_worded *t, const uint64_t *bits) {
    const dpi_word_rules *r = t->rules;
    uint64_t any = 0;
    if (t->n_words >= r->wording->min_words)
        return bits;
    for (size_t i = 0; i < n_blocks(r); i++) {
        t->allowed[i] = r->others[i] & (bits ? bits[i] : UINT64_MAX);
        any |= t->allowed[i];
    }
    return any ? t->allowed : bits;
}

/* Room for what a token may give comes first, so that a push cannot fail. */
static dpi_status reserve(dpi_worded *t, dpi_error *err) {
    const size_t most = 3 * ((size_t)DPI_TOKEN_MAX_BYTES + 2); /* all of it as U+FFFD */
    return dpi_grow(&t->data, &t->capacity, t->n + most, 1) ? dpi_shaped_reserve(t->shaped, err)
                                                            : dpi_no_memory(err, "a text");
}

dpi_status dpi_worded_allow(dpi_mask_text *masked, dpi_worded *text, dpi_sampler *sampler,
                           dpi_error *err) {
    const uint64_t *bits = NULL;
    int32_t n;
    if (!masked && !text)
        return DPI_STATUS_OK;
    if (text)
        DPI_TRY(reserve(text, err));
    if (masked)
        DPI_TRY(dpi_mask_text_allowed(masked, &bits, &n, err));
    if (text)
        bits = dpi_shaped_allow(text->shaped, leave(text, bits), &text->is_cut);
    return dpi_sampler_allow(sampler, bits, err);
}

dpi_status dpi_worded_push(dpi_worded *t, int32_t token, dpi_error *err) {
    const char *piece;
    size_t n_bytes;
    DPI_TRY(reserve(t, err));
    DPI_TRY(dpi_decoder_push(t->decoder, token, &piece, &n_bytes, err));
    add_piece(t, piece, n_bytes);
    dpi_shaped_push(t->shaped, token);
    return DPI_STATUS_OK;
}

void dpi_worded_shift(const dpi_worded *t, float *logits) {
    if (t && logits)
        dpi_shaped_shift(t->shaped, logits);
}

bool dpi_worded_is_cut(const dpi_worded *t) { return t && t->is_cut; }
int32_t dpi_worded_end_of(const dpi_worded *t) { return t->over; }

/* ---- What is shown --------------------------------------------------------------------------- */

static void show(dpi_worded *t, size_t ready, const char **shown, size_t *n_bytes) {
    const bool trims = !t->rules->wording->keep_space;
    if (trims)
        dpi_trim_end(t->data, &ready);
    for (size_t n; trims && !t->begun && t->n_shown < ready &&
                   (n = dpi_space_bytes(t->data + t->n_shown, ready - t->n_shown)) > 0;)
        t->n_shown += n;
    *shown = t->data + t->n_shown;
    *n_bytes = ready > t->n_shown ? ready - t->n_shown : 0;
    t->n_shown += *n_bytes;
    t->begun |= *n_bytes > 0;
}

void dpi_worded_show(dpi_worded *t, const char **shown, size_t *n_bytes) {
    show(t, t->over ? t->end : t->n - begun_stop(t), shown, n_bytes);
}

dpi_status dpi_worded_end(dpi_worded *t, const char **shown, size_t *n_bytes,
                              dpi_error *err) {
    const char *piece;
    size_t n;
    DPI_TRY(reserve(t, err));
    dpi_decoder_finish(t->decoder, &piece, &n);
    if (!t->over)
        add_piece(t, piece, n);
    show(t, t->over ? t->end : t->n, shown, n_bytes);
    return DPI_STATUS_OK;
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* The decoder goes on behind the answer, whether or not that is kept. */
static dpi_status begin(dpi_worded *t, const int32_t *answer, size_t n_answer,
                        dpi_error *err) {
    const bool kept = t->rules->wording->keep_answer;
    DPI_TRY(dpi_shaped_create(t->rules->shaping, &t->shaped, err));
    DPI_TRY(reserve(t, err));
    DPI_TRY(dpi_decoder_create(t->rules->model, &t->decoder, err));
    for (size_t i = 0; i < n_answer; i++) {
        const char *piece;
        size_t n;
        DPI_TRY(dpi_decoder_push(t->decoder, answer[i], &piece, &n, err));
        if (kept && n > 0)
            memcpy(t->data + t->n, piece, n);
        t->n = t->n_answer += kept ? n : 0;
        dpi_shaped_begin(t->shaped, answer[i], kept);
        DPI_TRY(reserve(t, err));
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_worded_create(const dpi_word_rules *rules, const int32_t *answer, size_t n_answer,
                                 dpi_worded **text, dpi_error *err) {
    dpi_worded *t = dpi_calloc(1, sizeof *t);
    if (!t)
        return dpi_no_memory(err, "a text");
    t->rules = rules;
    t->allowed = dpi_calloc(n_blocks(rules), sizeof *t->allowed);
    const dpi_status status =
        t->allowed ? begin(t, answer, n_answer, err) : dpi_no_memory(err, "a text");
    if (status == DPI_STATUS_OK)
        *text = t;
    else
        dpi_worded_free(t);
    return status;
}

void dpi_worded_free(dpi_worded *t) {
    if (!t)
        return;
    dpi_decoder_free(t->decoder);
    dpi_shaped_free(t->shaped);
    free(t->data);
    free(t->allowed);
    free(t);
}
