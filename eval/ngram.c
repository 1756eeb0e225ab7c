/* ngram.c - see ngram.h. */
#include "eval/ngram.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"

/* Words that no text has. */
#define BEGIN_WORD UINT64_C(0x9ae16a3b2f90404f)
#define END_WORD UINT64_C(0xc949d7c7509e6557)

/* A list of words, and what follows it. */
typedef struct entry {
    uint64_t key; /* 0: empty */
    int32_t n;    /* how often it was seen */
    int32_t n_next, n_types; /* what follows: how often, and how many different words */
} entry;

struct eval_ngram {
    entry *at; /* [n_slots] by key, private */
    size_t n_slots, n_used;
    int32_t order;
};

/* The key of k words, the last one at `last`. */
static uint64_t key_of(const uint64_t *last, int32_t k) {
    uint64_t hash = 0x2545f4914f6cdd1du + (uint64_t)k;
    for (int32_t i = k - 1; i >= 0; i--) {
        hash = (hash ^ last[-i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash != 0 ? hash : 1;
}

static entry *slot_of(const eval_ngram *m, uint64_t key) {
    size_t i = (size_t)(key >> 16) & (m->n_slots - 1);
    while (m->at[i].key != 0 && m->at[i].key != key)
        i = (i + 1) & (m->n_slots - 1);
    return &m->at[i];
}

static bool grow(eval_ngram *m) {
    const eval_ngram old = *m;
    m->n_slots = old.n_slots ? 2 * old.n_slots : 1024;
    m->at = dpi_private_malloc(m->n_slots * sizeof *m->at);
    if (!m->at) {
        *m = old;
        return false;
    }
    memset(m->at, 0, m->n_slots * sizeof *m->at);
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.at[i].key != 0)
            *slot_of(m, old.at[i].key) = old.at[i];
    dpi_private_free(old.at);
    return true;
}

/* The entry of k words, made if it is not there. There is room for it. */
static entry *entry_of(eval_ngram *m, const uint64_t *last, int32_t k) {
    const uint64_t key = key_of(last, k);
    entry *e = slot_of(m, key);
    if (e->key == 0) {
        e->key = key;
        m->n_used++;
    }
    return e;
}

/* Counts the word at `last` after each list of up to order - 1 words before it. */
static bool count(eval_ngram *m, const uint64_t *last) {
    if (2 * (m->n_used + 2 * EVAL_NGRAM_MAX) > m->n_slots && !grow(m))
        return false;
    for (int32_t k = 1; k <= m->order; k++) {
        entry *gram = entry_of(m, last, k);
        const bool is_new = gram->n++ == 0;
        entry *before = entry_of(m, last - 1, k - 1);
        before->n_next++;
        before->n_types += is_new;
    }
    return true;
}

/* The words of a text between those of its beginning and its end, into padded
 * [n_words + EVAL_NGRAM_MAX]: the first of them, and how many with the end. */
static const uint64_t *pad(const eval_text *t, uint64_t *padded, int32_t *n) {
    for (int32_t i = 0; i < EVAL_NGRAM_MAX - 1; i++)
        padded[i] = BEGIN_WORD;
    uint64_t *first = padded + EVAL_NGRAM_MAX - 1;
    memcpy(first, t->word, (size_t)t->n_words * sizeof *first);
    first[t->n_words] = END_WORD;
    *n = t->n_words + 1;
    return first;
}

dpi_status eval_ngram_train(const eval_texts *texts, int32_t n, int32_t skip, eval_ngram **model,
                            dpi_error *err) {
    eval_ngram *m = dpi_private_malloc(sizeof *m);
    bool ok = m;
    *model = m;
    if (ok)
        *m = (eval_ngram){.order = n};
    ok = ok && grow(m);
    for (int32_t t = 0; t < texts->n && ok; t++) {
        if (t % 2 == skip)
            continue;
        const eval_text *text = &texts->at[t];
        uint64_t *padded =
            dpi_private_malloc(((size_t)text->n_words + EVAL_NGRAM_MAX) * sizeof *padded);
        int32_t n_words = 0;
        const uint64_t *word = padded ? pad(text, padded, &n_words) : NULL;
        ok = padded;
        for (int32_t i = 0; i < n_words && ok; i++)
            ok = count(m, word + i);
        dpi_private_free(padded);
    }
    return ok ? DPI_STATUS_OK : eval_no_memory(err, "a model of n-grams");
}

void eval_ngram_free(eval_ngram *m) {
    if (m)
        dpi_private_free(m->at);
    dpi_private_free(m);
}

/* p(word at `last` | those before it) */
static double probability(const eval_ngram *m, const uint64_t *last) {
    const entry *all = slot_of(m, key_of(last - 1, 0));
    double p = 1.0 / (all->n_types + 1);
    for (int32_t k = 1; k <= m->order; k++) {
        const entry *before = slot_of(m, key_of(last - 1, k - 1));
        if (before->n_next == 0)
            break; /* nothing that is longer was seen either */
        const int32_t n = slot_of(m, key_of(last, k))->n;
        p = (n + before->n_types * p) / ((double)before->n_next + before->n_types);
    }
    return p;
}

double eval_ngram_score(const eval_ngram *m, const eval_text *t) {
    uint64_t last[EVAL_NGRAM_MAX]; /* the words up to the one that is scored */
    double sum = 0;
    for (int32_t i = 0; i < EVAL_NGRAM_MAX; i++)
        last[i] = BEGIN_WORD;
    for (int32_t i = 0; i <= t->n_words; i++) {
        memmove(last, last + 1, (EVAL_NGRAM_MAX - 1) * sizeof *last);
        last[EVAL_NGRAM_MAX - 1] = i < t->n_words ? t->word[i] : END_WORD;
        sum += log(probability(m, last + EVAL_NGRAM_MAX - 1));
    }
    return sum / (t->n_words + 1);
}
