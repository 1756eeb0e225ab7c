#include "train/corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/json.h"
#include "dpinfer/memory.h"
#include "dpinfer/textfile.h"

typedef struct line {
    const char *text;
    size_t n_bytes;
    int32_t *tokens;    /* NULL: left out */
    int32_t n, n_prompt;
} line;

typedef struct reader {
    const dpi_model *model;
    int32_t end, context, n_threads;
    const char *path;
} reader;

static dpi_status no_memory(dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the training data");
}

/* ---- One line -------------------------------------------------------------------------------- */

typedef struct string {
    char *data; /* private memory; NULL: it is no string */
    size_t n_bytes;
} string;

static dpi_status encode(const reader *r, const string *user, const string *assistant, line *out,
                         dpi_error *err) {
    size_t prompt_bound = 4 * user->n_bytes + DPI_PROMPT_FRAME;
    size_t answer_bound = 4 * assistant->n_bytes + 5;
    size_t n_prompt, n;
    int32_t *tokens = dpi_calloc(prompt_bound + answer_bound + 1, sizeof *tokens);
    if (!tokens)
        return no_memory(err);
    dpi_status status = dpi_prompt_encode(r->model, DPI_CHAT_CHATML, NULL, 0, user->data,
                                          user->n_bytes, tokens, prompt_bound, &n_prompt, err);
    if (status == DPI_STATUS_OK)
        status = dpi_tokenize(r->model, assistant->data, assistant->n_bytes, 0, tokens + n_prompt,
                              answer_bound, &n, err);
    if (status == DPI_STATUS_OK && n_prompt + n <= (size_t)r->context) {
        tokens[n_prompt + n] = r->end;
        out->n = (int32_t)(n_prompt + n + 1);
        out->n_prompt = (int32_t)n_prompt;
        out->tokens = malloc((size_t)out->n * sizeof *tokens);
        if (out->tokens)
            memcpy(out->tokens, tokens, (size_t)out->n * sizeof *tokens);
        else
            status = no_memory(err);
    }
    free(tokens);
    return status;
}

static dpi_status read_line(const reader *r, int64_t number, line *out, dpi_error *err) {
    static const char *const names[2] = {"user", "assistant"};
    string texts[2] = {{0}};
    dpi_json object, value;
    dpi_json_read(out->text, out->n_bytes, &object);
    if (object.type != DPI_JSON_OBJECT)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s:%lld: not a JSON object", r->path,
                        (long long)number);
    dpi_status status = DPI_STATUS_OK;
    for (int i = 0; i < 2 && status == DPI_STATUS_OK; i++) {
        dpi_json_member(&object, names[i], &value);
        status = dpi_json_string(&value, &texts[i].data, &texts[i].n_bytes, err);
    }
    if (status == DPI_STATUS_OK)
        status = texts[0].data && texts[1].data
                     ? encode(r, &texts[0], &texts[1], out, err)
                     : dpi_fail(err, DPI_STATUS_FORMAT,
                                "%s:%lld: must be an object with strings user and assistant",
                                r->path, (long long)number);
    dpi_private_free(texts[0].data);
    dpi_private_free(texts[1].data);
    return status;
}

/* ---- One file -------------------------------------------------------------------------------- */

static int64_t count_lines(const char *text, size_t n_bytes) {
    int64_t n = n_bytes > 0 && text[n_bytes - 1] != '\n';
    for (size_t i = 0; i < n_bytes; i++)
        n += text[i] == '\n';
    return n;
}

static void split_lines(const char *text, size_t n_bytes, line *lines) {
    const char *end = text + n_bytes;
    for (int64_t i = 0; text < end; i++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        lines[i].text = text;
        lines[i].n_bytes = (size_t)((stop ? stop : end) - text);
        text = stop ? stop + 1 : end;
    }
}

static bool is_blank(const line *l) {
    for (size_t i = 0; i < l->n_bytes; i++)
        if (!strchr(" \t\r", l->text[i]))
            return false;
    return true;
}

/* Threads share the lines; the first line with an error is read once more for its message. */
static dpi_status read_lines(const reader *r, line *lines, int64_t n, dpi_error *err) {
    int64_t first_bad = n;
#pragma omp parallel for schedule(dynamic, 64) num_threads(r->n_threads) reduction(min : first_bad)
    for (int64_t i = 0; i < n; i++)
        if (!is_blank(&lines[i]) && read_line(r, i + 1, &lines[i], NULL) != DPI_STATUS_OK)
            first_bad = i < first_bad ? i : first_bad;
    if (first_bad == n)
        return DPI_STATUS_OK;
    free(lines[first_bad].tokens);
    lines[first_bad].tokens = NULL;
    return read_line(r, first_bad + 1, &lines[first_bad], err);
}

/* ---- All ------------------------------------------------------------------------------------- */

static dpi_status append(dpi_corpus *c, const line *lines, int64_t n, dpi_error *err) {
    int64_t n_examples = c->n, n_tokens = c->n ? c->begins[c->n] : 0;
    for (int64_t i = 0; i < n; i++) {
        n_examples += lines[i].tokens != NULL;
        n_tokens += lines[i].n;
        c->n_too_long += !lines[i].tokens && !is_blank(&lines[i]);
    }
    int32_t *tokens = realloc(c->tokens, (size_t)(n_tokens + 1) * sizeof *tokens);
    c->tokens = tokens ? tokens : c->tokens;
    int64_t *begins = realloc(c->begins, (size_t)(n_examples + 1) * sizeof *begins);
    c->begins = begins ? begins : c->begins;
    int32_t *n_prompt = realloc(c->n_prompt, (size_t)(n_examples + 1) * sizeof *n_prompt);
    c->n_prompt = n_prompt ? n_prompt : c->n_prompt;
    if (!tokens || !begins || !n_prompt)
        return no_memory(err);
    if (c->n == 0)
        c->begins[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!lines[i].tokens)
            continue;
        int64_t begin = c->begins[c->n];
        memcpy(c->tokens + begin, lines[i].tokens, (size_t)lines[i].n * sizeof *tokens);
        c->n_prompt[c->n++] = lines[i].n_prompt;
        c->begins[c->n] = begin + lines[i].n;
    }
    return DPI_STATUS_OK;
}

static dpi_status add_file(const reader *r, dpi_corpus *corpus, dpi_error *err) {
    char *data = NULL;
    size_t n_bytes = 0;
    DPI_TRY(dpi_textfile_read(r->path, SIZE_MAX, &data, &n_bytes, err));
    int64_t n = count_lines(data, n_bytes);
    line *lines = dpi_calloc((size_t)n, sizeof *lines);
    dpi_status status = lines ? DPI_STATUS_OK : no_memory(err);
    if (status == DPI_STATUS_OK) {
        split_lines(data, n_bytes, lines);
        status = read_lines(r, lines, n, err);
    }
    if (status == DPI_STATUS_OK)
        status = append(corpus, lines, n, err);
    for (int64_t i = 0; lines && i < n; i++)
        free(lines[i].tokens);
    free(lines);
    dpi_private_free(data);
    return status;
}

dpi_status dpi_corpus_read(const dpi_model *model, int32_t end, const char *const *paths,
                           int32_t n_paths, int32_t context, int32_t n_threads, dpi_corpus *corpus,
                           dpi_error *err) {
    dpi_corpus c = {0};
    dpi_status status = DPI_STATUS_OK;
    for (int32_t i = 0; i < n_paths && status == DPI_STATUS_OK; i++) {
        reader r = {model, end, context, n_threads, paths[i]};
        status = add_file(&r, &c, err);
    }
    if (status == DPI_STATUS_OK && c.n == 0)
        status = dpi_fail(err, DPI_STATUS_FORMAT, "%s: no example fits into %d positions",
                          n_paths > 0 ? paths[0] : "no files", (int)context);
    if (status == DPI_STATUS_OK)
        *corpus = c;
    else
        dpi_corpus_free(&c);
    return status;
}

void dpi_corpus_free(dpi_corpus *corpus) {
    free(corpus->tokens);
    free(corpus->begins);
    free(corpus->n_prompt);
    *corpus = (dpi_corpus){0};
}

uint64_t dpi_corpus_hash(const dpi_corpus *c) {
    uint64_t hash = DPI_HASH_INIT;
    hash = dpi_hash(hash, c->tokens, (size_t)c->begins[c->n] * sizeof *c->tokens);
    hash = dpi_hash(hash, c->begins, (size_t)(c->n + 1) * sizeof *c->begins);
    return dpi_hash(hash, c->n_prompt, (size_t)c->n * sizeof *c->n_prompt);
}
