#include "pipeline/perturb/vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/textfile.h"
#include "engine/model.h"
#include "tokenizer/vocab.h"

/* ---- What all sources share ------------------------------------------------------------------ */

void dpi_vocabulary_free(dpi_vocabulary *v) {
    if (!v)
        return;
    for (int32_t i = 0; v->words && i < v->n; i++)
        free(v->words[i]);
    if (v->mapped)
        munmap(v->mapped, v->mapped_bytes);
    else
        free(v->distance);
    free(v->words);
    free(v->vectors);
    free(v->index);
    free(v->range);
    free(v->place);
    free(v->token);
    free(v);
}

/* The low bits: the high ones of short words are those of their first three letters. */
static uint64_t slot_of(const dpi_vocabulary *v, const char *word, size_t n_bytes) {
    return dpi_hash(DPI_HASH_INIT, word, n_bytes) & ((UINT64_C(1) << v->index_bits) - 1);
}

int32_t dpi_vocabulary_find(const dpi_vocabulary *v, const char *word, size_t n_bytes) {
    const uint64_t mask = (UINT64_C(1) << v->index_bits) - 1;
    for (uint64_t slot = slot_of(v, word, n_bytes); v->index[slot] >= 0; slot = (slot + 1) & mask)
        if (strncmp(v->words[v->index[slot]], word, n_bytes) == 0 &&
            v->words[v->index[slot]][n_bytes] == '\0')
            return v->index[slot];
    return -1;
}

static dpi_status make_index(dpi_vocabulary *v, dpi_error *err) {
    v->index_bits = 4;
    while ((INT32_C(1) << v->index_bits) < 2 * v->n)
        v->index_bits++;
    const size_t n_slots = (size_t)1 << v->index_bits;
    v->index = dpi_calloc(n_slots, sizeof *v->index);
    if (!v->index)
        return dpi_no_memory(err, "an index of %d words", v->n);
    for (size_t i = 0; i < n_slots; i++)
        v->index[i] = -1;
    for (int32_t i = 0; i < v->n; i++) {
        const size_t n_bytes = strlen(v->words[i]);
        if (dpi_vocabulary_find(v, v->words[i], n_bytes) >= 0)
            return dpi_fail(err, DPI_STATUS_FORMAT, "vectors: word %d stands there twice", i + 1);
        uint64_t slot = slot_of(v, v->words[i], n_bytes);
        while (v->index[slot] >= 0)
            slot = (slot + 1) & (n_slots - 1);
        v->index[slot] = i;
    }
    return DPI_STATUS_OK;
}

/* Index and ranges, when words and vectors are there. Errors: FORMAT (a word twice, a number that
 * is not finite), LIMIT, MEMORY. */
static dpi_status finish_words(dpi_vocabulary *v, dpi_error *err) {
    if (v->n < 2 || v->n > DPI_VOCABULARY_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "a vocabulary of %d words, must be 2..%d", v->n,
                        DPI_VOCABULARY_MAX);
    v->range = dpi_calloc((size_t)v->dim, sizeof *v->range);
    if (!v->range)
        return dpi_no_memory(err, "%d dimensions", v->dim);
    for (int32_t k = 0; k < v->dim; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int32_t i = 0; i < v->n; i++) {
            const double x = (double)v->vectors[(size_t)i * (size_t)v->dim + (size_t)k];
            if (!isfinite(x))
                return dpi_fail(err, DPI_STATUS_FORMAT,
                                "vectors: number %d of word %d is not finite", k + 1, i + 1);
            low = fmin(low, x);
            high = fmax(high, x);
        }
        v->range[k] = high - low;
    }
    v->hash =
        dpi_hash(DPI_HASH_INIT, v->vectors, (size_t)v->n * (size_t)v->dim * sizeof *v->vectors);
    for (int32_t i = 0; i < v->n; i++)
        v->hash = dpi_hash(v->hash, v->words[i], strlen(v->words[i]) + 1);
    return make_index(v, err);
}

int32_t dpi_vocabulary_count(const dpi_vocabulary *v) { return v->n; }
int32_t dpi_vocabulary_dim(const dpi_vocabulary *v) { return v->dim; }
uint64_t dpi_vocabulary_hash(const dpi_vocabulary *v) { return v->hash; }
const char *dpi_vocabulary_word(const dpi_vocabulary *v, int32_t i) { return v->words[i]; }

/* Room for n words of dim numbers. */
static dpi_vocabulary *make(int32_t n, int32_t dim) {
    dpi_vocabulary *v = dpi_calloc(1, sizeof *v);
    if (!v)
        return NULL;
    v->dim = dim;
    v->words = dpi_calloc((size_t)n, sizeof *v->words);
    v->vectors = dpi_calloc((size_t)n * (size_t)dim, sizeof *v->vectors);
    if (v->words && v->vectors)
        return v;
    dpi_vocabulary_free(v);
    return NULL;
}

static dpi_status conclude(dpi_vocabulary *v, dpi_status status, dpi_vocabulary **vocabulary,
                           dpi_error *err) {
    if (status == DPI_STATUS_OK)
        status = finish_words(v, err);
    if (status == DPI_STATUS_OK)
        *vocabulary = v;
    else
        dpi_vocabulary_free(v);
    return status;
}

dpi_status dpi_vocabulary_create(const char *const *words, const float *vectors, int32_t n,
                                 int32_t dim, dpi_vocabulary **vocabulary, dpi_error *err) {
    if (!words || !vectors || n < 1 || n > DPI_VOCABULARY_MAX || dim < 1 || dim > 1 << 14)
        return dpi_fail(err, DPI_STATUS_ARG, "a vocabulary of %d words of %d numbers", n, dim);
    dpi_vocabulary *v = make(n, dim);
    if (!v)
        return dpi_no_memory(err, "a vocabulary");
    memcpy(v->vectors, vectors, (size_t)n * (size_t)dim * sizeof *vectors);
    dpi_status status = DPI_STATUS_OK;
    for (; v->n < n && status == DPI_STATUS_OK; v->n++)
        if (!(v->words[v->n] = strdup(words[v->n])))
            status = dpi_no_memory(err, "a vocabulary");
    return conclude(v, status, vocabulary, err);
}

/* ---- A file of vectors ----------------------------------------------------------------------- */

typedef struct reader {
    FILE *file;
    const char *path;
    char *line;
    size_t capacity;
    int32_t n_lines;
    dpi_vocabulary *v;
    int32_t n_room; /* words */
} reader;

static dpi_status bad_line(const reader *r, const char *what, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s, line %d: %s", r->path, r->n_lines, what);
}

/* Numbers at p, at most `most`, into x unless it is NULL; -1: what stands there is none. */
static int32_t parse_numbers(const char *p, float *x, int32_t most) {
    int32_t n = 0;
    for (;;) {
        p += strspn(p, " \t\r\n");
        if (*p == '\0')
            return n;
        char *end;
        const float value = dpi_strtof(p, &end);
        if (end == p || !strchr(" \t\r\n", *end) || n == most)
            return -1;
        if (x)
            x[n] = value;
        n++;
        p = end;
    }
}

/* Room for twice as many words. */
static dpi_status grow(reader *r, dpi_error *err) {
    dpi_vocabulary *v = r->v;
    const int32_t n = 2 * r->n_room;
    char **words = realloc(v->words, (size_t)n * sizeof *words);
    if (words)
        v->words = words;
    float *vectors = realloc(v->vectors, (size_t)n * (size_t)v->dim * sizeof *vectors);
    if (vectors)
        v->vectors = vectors;
    r->n_room = n;
    return words && vectors ? DPI_STATUS_OK : dpi_no_memory(err, "a vocabulary");
}

static dpi_status add_line(reader *r, dpi_error *err) {
    enum { DIM_MAX = 1 << 14 };
    const size_t n_word = strcspn(r->line, " \t\r\n");
    const char *rest = r->line + n_word;
    if (n_word == 0)
        return bad_line(r, "no word at its start", err);
    if (!r->v) {
        const int32_t dim = parse_numbers(rest, NULL, DIM_MAX);
        if (r->n_lines == 1 && dim == 1 && strspn(r->line, "0123456789") == n_word)
            return DPI_STATUS_OK; /* word2vec: how many, how long */
        if (dim < 1)
            return bad_line(r, "must be a word and its numbers, at most 16384", err);
        r->n_room = 1024;
        if (!(r->v = make(r->n_room, dim)))
            return dpi_no_memory(err, "a vocabulary");
    }
    if (r->v->n == DPI_VOCABULARY_MAX)
        return bad_line(r, "more than 65536 words: must be fewer, or limited", err);
    if (r->v->n == r->n_room)
        DPI_TRY(grow(r, err));
    dpi_vocabulary *v = r->v;
    float *x = v->vectors + (size_t)v->n * (size_t)v->dim;
    if (parse_numbers(rest, x, v->dim) != v->dim)
        return bad_line(r, "must have as many numbers as the first word", err);
    if (!(v->words[v->n] = strndup(r->line, n_word)))
        return dpi_no_memory(err, "a vocabulary");
    v->n++;
    return DPI_STATUS_OK;
}

/* As other files of text (textfile.h), but line by line: this one may be large. */
static dpi_status check_line(reader *r, size_t n_bytes, dpi_error *err) {
    const size_t mark = r->n_lines == 1 ? dpi_textfile_mark(r->line, n_bytes) : 0;
    memmove(r->line, r->line + mark, n_bytes + 1 - mark);
    return dpi_textfile_refuse(r->path, r->line, n_bytes - mark, NULL) == DPI_STATUS_OK
               ? DPI_STATUS_OK
               : bad_line(r, "has a NUL byte, or one that is not UTF-8", err);
}

dpi_status dpi_vocabulary_read(const char *path, int32_t n_most, dpi_vocabulary **vocabulary,
                               dpi_error *err) {
    enum { LINE_MAX_BYTES = 1 << 20 };
    reader r = {.path = path};
    DPI_TRY(dpi_file_open(path, &r.file, err));
    dpi_status status = DPI_STATUS_OK;
    ssize_t n;
    while (status == DPI_STATUS_OK && (n_most == 0 || !r.v || r.v->n < n_most) &&
           (n = getline(&r.line, &r.capacity, r.file)) >= 0) {
        r.n_lines++;
        status = n > LINE_MAX_BYTES ? bad_line(&r, "longer than 1 MB", err)
                                    : check_line(&r, (size_t)n, err);
        if (status == DPI_STATUS_OK)
            status = add_line(&r, err);
    }
    if (status == DPI_STATUS_OK && ferror(r.file))
        status = dpi_fail(err, DPI_STATUS_IO, "cannot read %s", path);
    if (status == DPI_STATUS_OK && !r.v)
        status = dpi_fail(err, DPI_STATUS_FORMAT, "%s: no word in it", path);
    free(r.line);
    fclose(r.file);
    return conclude(r.v, status, vocabulary, err);
}

/* ---- A model's tokens ------------------------------------------------------------------------ */

/* Whether a token stands for whole characters by itself. */
static dpi_status is_whole(dpi_decoder *decoder, int32_t token, bool *whole, dpi_error *err) {
    const char *text;
    size_t n_bytes;
    DPI_TRY(dpi_decoder_push(decoder, token, &text, &n_bytes, err));
    dpi_decoder_finish(decoder, &text, &n_bytes);
    *whole = n_bytes == 0; /* else part of a character was left */
    return DPI_STATUS_OK;
}

static dpi_status add_tokens(dpi_vocabulary *v, const dpi_model *model, int32_t n_most,
                             dpi_error *err) {
    dpi_decoder *decoder;
    DPI_TRY(dpi_decoder_create(model, &decoder, err));
    dpi_status status = DPI_STATUS_OK;
    for (int32_t t = 0; t < model->n_vocab && v->n < n_most && status == DPI_STATUS_OK; t++) {
        const dpi_token *token = &model->vocab->tokens[t];
        bool whole = false;
        if (token->type == DPI_TOKEN_NORMAL && !dpi_token_is_eog(model, t))
            status = is_whole(decoder, t, &whole, err);
        if (!whole || token->n_bytes == 0 || memchr(token->text, '\0', token->n_bytes))
            continue;
        if (!(v->words[v->n] = strndup(token->text, token->n_bytes)))
            status = dpi_no_memory(err, "a vocabulary");
        dpi_matrix_row(&model->embedding, t, v->vectors + (size_t)v->n * (size_t)v->dim);
        v->place[t] = v->n;
        v->token[v->n++] = t;
    }
    dpi_decoder_free(decoder);
    return status;
}

dpi_status dpi_vocabulary_of_model(const dpi_model *model, int32_t n_most,
                                   dpi_vocabulary **vocabulary, dpi_error *err) {
    if (model->vocab_only)
        return dpi_fail(err, DPI_STATUS_ARG, "the model was opened without its weights");
    const int32_t room = n_most > 0 && n_most < model->n_vocab ? n_most : model->n_vocab;
    dpi_vocabulary *v = make(room, model->config.n_embd);
    if (!v)
        return dpi_no_memory(err, "a vocabulary");
    v->model = model;
    v->place = dpi_calloc((size_t)model->n_vocab, sizeof *v->place);
    v->token = dpi_calloc((size_t)room, sizeof *v->token);
    for (int32_t t = 0; v->place && t < model->n_vocab; t++)
        v->place[t] = -1;
    const dpi_status status =
        v->place && v->token ? add_tokens(v, model, room, err) : dpi_no_memory(err, "a vocabulary");
    return conclude(v, status, vocabulary, err);
}
