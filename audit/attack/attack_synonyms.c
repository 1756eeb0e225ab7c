/* attack_synonyms.c - which words mean the same, by a list that the caller has (WordNet's, say). */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "audit/attack/inside.h"
#include "pipeline/perturb/text_words.h"

enum { LINE_WORDS_MOST = 4096 };

uint64_t dpi_attack_spelling(const char *word, size_t n_bytes) {
    uint64_t key = DPI_HASH_INIT;
    word = dpi_word_bare(word, &n_bytes);
    for (size_t i = 0; i < n_bytes; i++) {
        const char c = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] + 'a' - 'A') : word[i];
        key = dpi_hash(key, &c, 1);
    }
    return key;
}

static int by_key(const void *a, const void *b) {
    const synonym *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static dpi_status add(synonyms *s, uint64_t key, int32_t line, dpi_error *err) {
    if (!dpi_grow(&s->at, &s->capacity, s->n + 1, sizeof *s->at))
        return dpi_no_memory(err, "synonyms");
    s->at[s->n++] = (synonym){key, line};
    return DPI_STATUS_OK;
}

static dpi_status add_line(synonyms *s, const char *line, size_t n_bytes, int32_t number,
                           dpi_error *err) {
    int32_t n_words = 0;
    for (size_t i = 0, n; i < n_bytes; i += n + 1) {
        for (n = 0; i + n < n_bytes && !strchr(" \t\r", line[i + n]);)
            n++;
        if (n == 0)
            continue;
        if (++n_words > LINE_WORDS_MOST)
            return dpi_fail(err, DPI_STATUS_LIMIT, "line %d of the synonyms: more than %d words",
                            number, LINE_WORDS_MOST);
        DPI_TRY(add(s, dpi_attack_spelling(line + i, n), number, err));
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_attack_synonyms(dpi_attack *a, const char *text, size_t n_bytes, dpi_error *err) {
    if (!a || !text)
        return dpi_fail(err, DPI_STATUS_ARG, "attack or text is NULL");
    int32_t number = 1;
    for (size_t i = 0, n; i < n_bytes; i += n + 1, number++) {
        const char *end = memchr(text + i, '\n', n_bytes - i);
        n = end ? (size_t)(end - text) - i : n_bytes - i;
        DPI_TRY(add_line(&a->synonyms, text + i, n, number, err));
    }
    if (a->synonyms.n == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "no word in the synonyms");
    qsort(a->synonyms.at, a->synonyms.n, sizeof *a->synonyms.at, by_key);
    return DPI_STATUS_OK;
}

/* The first entry whose key is not below `key`. */
static size_t find(const synonyms *s, uint64_t key) {
    size_t low = 0, high = s->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (s->at[mid].key < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool dpi_attack_same_word(const char *a, const char *b) {
    return dpi_attack_spelling(a, strlen(a)) == dpi_attack_spelling(b, strlen(b));
}

bool dpi_attack_same_meaning(const dpi_attack *a, int32_t x, int32_t y) {
    const synonyms *s = &a->synonyms;
    const dpi_vocabulary *v = a->vocabulary;
    const uint64_t key[2] = {dpi_attack_spelling(v->words[x], strlen(v->words[x])),
                             dpi_attack_spelling(v->words[y], strlen(v->words[y]))};
    size_t i = find(s, key[0]), j = find(s, key[1]);
    if (key[0] == key[1])
        return true;
    while (i < s->n && j < s->n && s->at[i].key == key[0] && s->at[j].key == key[1]) {
        if (s->at[i].line == s->at[j].line)
            return true;
        if (s->at[i].line < s->at[j].line)
            i++;
        else
            j++;
    }
    return false;
}
