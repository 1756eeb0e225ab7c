/* terms.c - see terms.h. */
#include "eval/terms.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"

bool eval_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* FNV-1a of each word, into word, which has room for half as many as bytes, and one more. */
static int32_t hash_words(const char *text, size_t n_bytes, uint64_t *word) {
    int32_t n = 0;
    for (size_t i = 0; i < n_bytes;) {
        uint64_t hash = 0xcbf29ce484222325u;
        const size_t begin = i;
        for (; i < n_bytes && !eval_is_space(text[i]); i++)
            hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
        if (i > begin)
            word[n++] = hash;
        else
            i++;
    }
    return n;
}

dpi_status eval_words_find(const char *text, size_t n_bytes, uint64_t **word, int32_t *n,
                           dpi_error *err) {
    *n = 0;
    *word = dpi_private_malloc((n_bytes / 2 + 1) * sizeof **word);
    if (!*word)
        return eval_no_memory(err, "texts");
    *n = hash_words(text, n_bytes, *word);
    return DPI_STATUS_OK;
}

uint64_t eval_words_hash(const uint64_t *word, int32_t n) {
    uint64_t hash = 0;
    for (int32_t k = 0; k < n; k++)
        hash = (hash ^ word[k]) * 0x9e3779b97f4a7c15u + 1;
    return hash ^ (hash >> 32);
}

/* ---- Terms ----------------------------------------------------------------------------------- */

struct eval_terms {
    pcre2_code *word;
    pcre2_match_data *match;
};

dpi_status eval_terms_open(eval_terms **terms, dpi_error *err) {
    int code;
    size_t offset;
    eval_terms *t = calloc(1, sizeof *t);
    if (t) {
        t->word = pcre2_compile((PCRE2_SPTR) "[\\p{L}\\p{N}_]{2,}", PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_UCP, &code, &offset, NULL);
        t->match = pcre2_match_data_create(1, NULL);
    }
    *terms = t;
    if (t && t->word && t->match)
        return DPI_STATUS_OK;
    eval_terms_close(t);
    *terms = NULL;
    return eval_no_memory(err, "patterns");
}

void eval_terms_close(eval_terms *t) {
    if (!t)
        return;
    pcre2_match_data_free(t->match);
    pcre2_code_free(t->word);
    free(t);
}

/* The words in lower case, with a space behind each, into own [room]; *n_bytes of them. */
static dpi_status lower_words(const eval_terms *t, const char *text, size_t n_text, char *own,
                              size_t room, size_t *n_bytes, dpi_error *err) {
    *n_bytes = room;
    const int found = pcre2_substitute(
        t->word, (PCRE2_SPTR)text, n_text, 0,
        PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_EXTENDED | PCRE2_SUBSTITUTE_REPLACEMENT_ONLY,
        t->match, NULL, (PCRE2_SPTR) "\\L$0\\E ", PCRE2_ZERO_TERMINATED, (PCRE2_UCHAR *)own,
        n_bytes);
    if (found >= 0)
        return DPI_STATUS_OK;
    *n_bytes = 0;
    return found == PCRE2_ERROR_NOMEMORY
               ? eval_no_memory(err, "the words of a text")
               : eval_fail(err, DPI_STATUS_ARG, "a text with a label: allowed is UTF-8");
}

dpi_status eval_terms_find(const eval_terms *t, const char *text, size_t n_bytes, uint64_t **term,
                           int32_t *n, dpi_error *err) {
    const size_t room = 2 * n_bytes + 16; /* a letter grows by half at most: U+023A */
    size_t n_lower = 0;
    *n = 0;
    *term = NULL;
    char *lower = dpi_private_malloc(room);
    if (!lower)
        return eval_no_memory(err, "the words of a text");
    dpi_status status = lower_words(t, text, n_bytes, lower, room, &n_lower, err);
    if (status == DPI_STATUS_OK && !(*term = dpi_private_malloc((n_lower + 1) * sizeof **term)))
        status = eval_no_memory(err, "the words of a text");
    if (status == DPI_STATUS_OK) {
        const int32_t n_words = hash_words(lower, n_lower, *term);
        *n = n_words;
        for (int32_t i = 0; i + 1 < n_words; i++)
            (*term)[(*n)++] = eval_words_hash(*term + i, 2);
    }
    dpi_private_free(lower);
    return status;
}
