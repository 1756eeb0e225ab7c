/* lookup.c - finds tokens by their text, and answers for single ones. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer/vocab.h"

int dpi_token_compare(const dpi_token *token, const char *text, size_t n_bytes) {
    if (token->n_bytes != n_bytes)
        return token->n_bytes < n_bytes ? -1 : 1;
    return memcmp(token->text, text, n_bytes);
}

/* Polynomial hashes of short texts differ in their low bits only: spread them. */
uint32_t dpi_vocab_bucket(const dpi_vocab *v, uint64_t hash) {
    return (uint32_t)(hash * 0xd6e8feb86659fd93u >> (64 - v->bucket_bits));
}

int32_t dpi_vocab_find_hash(const dpi_vocab *v, const char *text, size_t n_bytes, uint64_t hash) {
    if (n_bytes == 0 || n_bytes > v->max_bytes)
        return -1;
    uint32_t b = dpi_vocab_bucket(v, hash), low = v->buckets[b], high = v->buckets[b + 1];
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const dpi_vocab_entry *e = &v->entries[mid];
        int order = e->hash != hash ? (e->hash < hash ? -1 : 1)
                                    : dpi_token_compare(&v->tokens[e->id], text, n_bytes);
        if (order == 0)
            return e->id;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return -1;
}

int32_t dpi_vocab_find(const dpi_vocab *v, const char *text, size_t n_bytes) {
    if (n_bytes > v->max_bytes)
        return -1;
    return dpi_vocab_find_hash(v, text, n_bytes, dpi_text_hash(text, n_bytes));
}

int32_t dpi_vocab_find_plain(const dpi_vocab *v, const char *text, size_t n_bytes) {
    int32_t id = dpi_vocab_find(v, text, n_bytes);
    if (id < 0)
        return -1;
    uint8_t type = v->tokens[id].type;
    bool special = type == DPI_TOKEN_CONTROL || type == DPI_TOKEN_UNKNOWN ||
                   type == DPI_TOKEN_BYTE || (type == DPI_TOKEN_UNUSED && v->kind->byte_level);
    return special ? -1 : id;
}

size_t dpi_unmark_spaces(char *text, size_t n_bytes) {
    const size_t n_mark = strlen(DPI_SPACE_MARK);
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; n++) {
        const bool is_mark = n_bytes - i >= n_mark && memcmp(text + i, DPI_SPACE_MARK, n_mark) == 0;
        text[n] = is_mark ? ' ' : text[i];
        i += is_mark ? n_mark : 1;
    }
    return n;
}

void dpi_str_printable(dpi_str text, char *out, size_t size) {
    size_t n = 0;
    for (; n + 1 < size && n < text.n_bytes; n++)
        out[n] = text.data[n] > ' ' && text.data[n] <= '~' ? text.data[n] : '?';
    out[n] = '\0';
}

/* ---- Answers ------------------------------------------------------------------------------- */

static const dpi_token *token_at(const dpi_vocab *vocab, int32_t token) {
    return token >= 0 && token < vocab->n_tokens ? &vocab->tokens[token] : NULL;
}

int32_t dpi_vocab_size(const dpi_vocab *vocab) { return vocab->n_tokens; }

int32_t dpi_vocab_bos(const dpi_vocab *vocab) { return vocab->bos; }

int32_t dpi_vocab_is_eog(const dpi_vocab *vocab, int32_t token) {
    const dpi_token *t = token_at(vocab, token);
    return t && t->is_eog;
}

int32_t dpi_vocab_is_control(const dpi_vocab *vocab, int32_t token) {
    const dpi_token *t = token_at(vocab, token);
    return t && (t->type == DPI_TOKEN_CONTROL || t->type == DPI_TOKEN_UNKNOWN);
}

int32_t dpi_vocab_chat(const dpi_vocab *vocab) { return vocab->chat; }

int32_t dpi_vocab_chat_nearest(const dpi_vocab *vocab) { return vocab->nearest; }
