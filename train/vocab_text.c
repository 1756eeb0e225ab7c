#include "train/vocab_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "dpinfer/textfile.h"
#include "tokenizer/tokenizer.h"

enum {
    TYPE_NORMAL = 1,
    TYPE_UNKNOWN = 2,
    TYPE_CONTROL = 3,
    TYPE_BYTE = 6,
};

static const char chat_template[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

static int32_t type_of(const char *piece, size_t n) {
    unsigned byte;
    int used = 0;
    if (strcmp(piece, "<unk>") == 0)
        return TYPE_UNKNOWN;
    if (strcmp(piece, "<s>") == 0 || strcmp(piece, "</s>") == 0 || strcmp(piece, "<pad>") == 0)
        return TYPE_CONTROL;
    if (n > 4 && memcmp(piece, "<|", 2) == 0 && memcmp(piece + n - 2, "|>", 2) == 0)
        return TYPE_CONTROL;
    return n == 6 && sscanf(piece, "<0x%2X>%n", &byte, &used) == 1 && used == 6 ? TYPE_BYTE
                                                                               : TYPE_NORMAL;
}

/* Room for one more token of n bytes. */
static bool reserve(dpi_vocab_text *v, size_t n) {
    uint64_t wanted = v->n_bytes + sizeof(uint64_t) + n;
    if (wanted > v->n_capacity) {
        unsigned char *texts = realloc(v->texts, wanted * 2);
        if (!texts)
            return false;
        v->texts = texts;
        v->n_capacity = wanted * 2;
    }
    if (v->n == v->capacity) {
        int32_t capacity = v->capacity ? 2 * v->capacity : 4096;
        float *scores = realloc(v->scores, (size_t)capacity * sizeof *scores);
        v->scores = scores ? scores : v->scores;
        int32_t *types = realloc(v->types, (size_t)capacity * sizeof *types);
        v->types = types ? types : v->types;
        if (!scores || !types)
            return false;
        v->capacity = capacity;
    }
    return true;
}

/* `piece` [n] is followed by a NUL. */
static dpi_status add_piece(dpi_vocab_text *v, const char *path, const char *piece, size_t n,
                            float score, dpi_error *err) {
    if (v->n == DPI_VOCAB_MAX_TOKENS)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: more than %d pieces", path,
                        (int)DPI_VOCAB_MAX_TOKENS);
    if (!reserve(v, n))
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the vocabulary");
    uint64_t length = n;
    memcpy(v->texts + v->n_bytes, &length, sizeof length);
    memcpy(v->texts + v->n_bytes + sizeof length, piece, n);
    v->n_bytes += sizeof length + n;
    v->scores[v->n] = score;
    v->types[v->n] = type_of(piece, n);
    if (strcmp(piece, "<unk>") == 0)
        v->unk = v->n;
    else if (strcmp(piece, "<s>") == 0)
        v->bos = v->n;
    else if (strcmp(piece, "<|im_end|>") == 0)
        v->eos = v->n;
    v->n++;
    return DPI_STATUS_OK;
}

static dpi_status add_line(dpi_vocab_text *v, const char *path, char *line, dpi_error *err) {
    char *tab = strrchr(line, '\t'), *end = NULL;
    float score = tab ? dpi_strtof(tab + 1, &end) : 0;
    size_t n = tab ? (size_t)(tab - line) : 0;
    if (!tab || end == tab + 1 || *end != '\0' || !isfinite(score) || n == 0 ||
        n > DPI_TOKEN_MAX_BYTES)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s:%d: must be a piece of 1..%d bytes, a tab and a score", path,
                        (int)v->n + 1, (int)DPI_TOKEN_MAX_BYTES);
    *tab = '\0';
    return add_piece(v, path, line, n, score, err);
}

static dpi_status read_lines(dpi_vocab_text *v, const char *path, dpi_error *err) {
    enum { BYTES_MAX = 1 << 26 };
    char *text, *line;
    size_t n_bytes;
    DPI_TRY(dpi_textfile_read(path, BYTES_MAX, &text, &n_bytes, err));
    dpi_status status = DPI_STATUS_OK;
    for (char *next = text; status == DPI_STATUS_OK && next && *next;) {
        line = strsep(&next, "\n");
        status = add_line(v, path, line, err);
    }
    dpi_private_free(text);
    return status;
}

static dpi_status add_tokens(dpi_vocab_text *v, const dpi_gguf *file, dpi_error *err) {
    const dpi_gguf_kv *tokens = NULL, *scores = NULL;
    DPI_TRY(dpi_gguf_get_array(file, "tokenizer.ggml.tokens", DPI_GGUF_STRING, &tokens, err));
    DPI_TRY(dpi_gguf_get_array(file, "tokenizer.ggml.scores", DPI_GGUF_F32, &scores, err));
    if (!tokens || !scores || tokens->n_items != scores->n_items)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: must have as many scores as tokens",
                        dpi_gguf_name(file));
    uint64_t cursor = 0;
    for (uint64_t i = 0; i < tokens->n_items; i++) {
        char piece[DPI_TOKEN_MAX_BYTES + 1];
        dpi_str token = dpi_gguf_next_string(tokens, &cursor);
        float score = dpi_gguf_item_f32(scores, i);
        if (token.n_bytes == 0 || token.n_bytes > DPI_TOKEN_MAX_BYTES || !isfinite(score))
            return dpi_fail(err, DPI_STATUS_FORMAT,
                            "%s: token %d has %d bytes and score %g, must have 1..%d and be finite",
                            dpi_gguf_name(file), (int)i, (int)token.n_bytes, (double)score,
                            (int)DPI_TOKEN_MAX_BYTES);
        memcpy(piece, token.data, token.n_bytes);
        piece[token.n_bytes] = '\0';
        DPI_TRY(add_piece(v, dpi_gguf_name(file), piece, token.n_bytes, score, err));
    }
    return DPI_STATUS_OK;
}

static dpi_status read_gguf(dpi_vocab_text *v, const char *path, dpi_error *err) {
    dpi_gguf *file;
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    dpi_status status = add_tokens(v, file, err);
    dpi_gguf_close(file);
    return status;
}

dpi_status dpi_vocab_text_read(const char *path, dpi_vocab_text *vocab, dpi_error *err) {
    dpi_vocab_text v = {.unk = -1, .bos = -1, .eos = -1};
    size_t n = strlen(path);
    bool is_gguf = n > 5 && strcmp(path + n - 5, ".gguf") == 0;
    dpi_status status = is_gguf ? read_gguf(&v, path, err) : read_lines(&v, path, err);
    if (status == DPI_STATUS_OK && (v.unk < 0 || v.bos < 0 || v.eos < 0))
        status = dpi_fail(err, DPI_STATUS_FORMAT, "%s: has no piece %s", path,
                          v.unk < 0 ? "<unk>" : v.bos < 0 ? "<s>" : "<|im_end|>");
    if (status == DPI_STATUS_OK)
        *vocab = v;
    else
        dpi_vocab_text_free(&v);
    return status;
}

void dpi_vocab_text_free(dpi_vocab_text *vocab) {
    free(vocab->texts);
    free(vocab->scores);
    free(vocab->types);
    *vocab = (dpi_vocab_text){0};
}

void dpi_vocab_text_put(dpi_gguf_builder *w, const dpi_vocab_text *v) {
    uint64_t n = (uint64_t)v->n;
    dpi_gguf_put_string(w, "tokenizer.ggml.model", "llama");
    dpi_gguf_put_array(w, "tokenizer.ggml.tokens", DPI_GGUF_STRING, n, v->texts, v->n_bytes);
    dpi_gguf_put_array(w, "tokenizer.ggml.scores", DPI_GGUF_F32, n, v->scores,
                       n * sizeof *v->scores);
    dpi_gguf_put_array(w, "tokenizer.ggml.token_type", DPI_GGUF_I32, n, v->types,
                       n * sizeof *v->types);
    dpi_gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", (uint32_t)v->unk);
    dpi_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)v->bos);
    dpi_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)v->eos);
    dpi_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", true);
    dpi_gguf_put_bool(w, "tokenizer.ggml.add_eos_token", false);
    dpi_gguf_put_string(w, "tokenizer.chat_template", chat_template);
}
