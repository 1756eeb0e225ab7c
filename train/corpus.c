#include "train/corpus.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"

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

static dpi_status encode(const reader *r, const json_t *user, const json_t *assistant, line *out,
                         dpi_error *err) {
    size_t n_user = json_string_length(user), n_answer = json_string_length(assistant);
    size_t prompt_bound = 4 * n_user + 256, answer_bound = 4 * n_answer + 5, n_prompt, n;
    int32_t *tokens = dpi_calloc(prompt_bound + answer_bound + 1, sizeof *tokens);
    if (!tokens)
        return no_memory(err);
    dpi_status status = dpi_prompt_encode(r->model, DPI_CHAT_CHATML, NULL, 0,
                                          json_string_value(user), n_user, tokens, prompt_bound,
                                          &n_prompt, err);
    if (status == DPI_STATUS_OK)
        status = dpi_tokenize(r->model, json_string_value(assistant), n_answer, 0,
                              tokens + n_prompt, answer_bound, &n, err);
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
    json_error_t reason;
    json_t *object = json_loadb(out->text, out->n_bytes, JSON_REJECT_DUPLICATES, &reason);
    if (!object)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s:%lld: not a JSON object (column %d)", r->path,
                        (long long)number, reason.column);
    const json_t *user = json_object_get(object, "user");
    const json_t *assistant = json_object_get(object, "assistant");
    dpi_status status;
    if (json_is_string(user) && json_is_string(assistant))
        status = encode(r, user, assistant, out, err);
    else
        status = dpi_fail(err, DPI_STATUS_FORMAT,
                          "%s:%lld: must be an object with strings user and assistant", r->path,
                          (long long)number);
    json_decref(object);
    return status;
}

/* ---- One file -------------------------------------------------------------------------------- */

static dpi_status read_file(const char *path, char **data, size_t *n_bytes, dpi_error *err) {
    FILE *file;
    DPI_TRY(dpi_file_open(path, &file, err));
    size_t capacity = 1 << 20, n = 0, got;
    char *text = malloc(capacity);
    while (text && (got = fread(text + n, 1, capacity - n, file)) > 0) {
        n += got;
        if (n < capacity)
            continue;
        char *grown = realloc(text, capacity *= 2);
        if (!grown)
            free(text);
        text = grown;
    }
    dpi_status status = DPI_STATUS_OK;
    if (!text)
        status = no_memory(err);
    else if (ferror(file))
        status = dpi_fail(err, dpi_status_of_errno(errno), "cannot read %s: %s", path,
                          dpi_reason(errno));
    fclose(file);
    if (status == DPI_STATUS_OK) {
        *data = text;
        *n_bytes = n;
    } else {
        free(text);
    }
    return status;
}

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
    DPI_TRY(read_file(r->path, &data, &n_bytes, err));
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
    free(data);
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
