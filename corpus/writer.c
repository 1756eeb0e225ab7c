/* writer.c - a document from its attributes; see document_grammar.h. */
#include <stdio.h>
#include <string.h>

#include "corpus/document_grammar.h"

enum { MAX_POOLS = 32, MAX_COPIES = 10 }; /* {pool9} is the last */

typedef struct draft {
    const corpus_domain *d;
    const int8_t *values;
    bool heldout;
    uint64_t *rng;
    uint64_t names; /* seeds the choices that hold for the document */
    char *text;
    size_t n;
    bool capital, article; /* for the next character: upper case; "a" or "an" is due before it */
    const char *unknown;
    uint8_t n_uses[MAX_POOLS][MAX_COPIES], n_mentions[CORPUS_ATTRIBUTES];
} draft;

static void put_char(draft *w, char c) {
    if (w->n + 4 > CORPUS_TEXT_BYTES)
        return;
    if (w->article && c != ' ') {
        w->article = false;
        if (corpus_wants_an(c))
            w->text[w->n++] = 'n';
        w->text[w->n++] = ' ';
    } else if (w->article)
        return;
    if (w->capital && c >= 'a' && c <= 'z')
        c = (char)(c - 'a' + 'A');
    w->capital = false;
    w->text[w->n++] = c;
}

static void put_range(draft *w, corpus_range range);

static int32_t count_alternatives(corpus_range range) {
    corpus_range one;
    int32_t n = 0;
    for (bool more = true; corpus_alternative(&range, &more, &one);)
        n++;
    return n;
}

static void put_alternative(draft *w, corpus_range range, int32_t index) {
    corpus_range one = range;
    bool more = true;
    for (int32_t i = 0; i <= index; i++)
        corpus_alternative(&range, &more, &one);
    put_range(w, one);
}

static void put_any(draft *w, corpus_range range) {
    int32_t n = count_alternatives(range);
    put_alternative(w, range, (int32_t)corpus_below(w->rng, (uint32_t)n));
}

static corpus_range whole(const char *s) { return (corpus_range){s, s + strlen(s)}; }

enum { MIN_DIVIDED = 24 }; /* names of a pool that is divided between the splits */

/* Every eighth name of a large pool is held out; the copies of a pool are different names. */
static void put_name(draft *w, const corpus_rule *pool, int32_t copy) {
    corpus_range items = whole(pool->frame);
    uint64_t hash = w->names + (uint64_t)(pool - corpus_pools) * 0x1234567;
    uint32_t n = (uint32_t)count_alternatives(items);
    uint32_t n_heldout = n < MIN_DIVIDED ? 0 : n / 8;
    bool rare = w->heldout && n_heldout > 0;
    uint32_t n_mine = rare ? n_heldout : n - n_heldout;
    uint32_t first = corpus_below(&hash, n_mine), step = 1 + corpus_below(&hash, (n_mine + 4) / 5);
    uint32_t i = (first + (uint32_t)copy * step) % n_mine;
    uint32_t index = rare ? 8 * i + 7 : i < 7 * n_heldout ? i + i / 7 : i + n_heldout;
    w->n_uses[pool - corpus_pools][copy]++;
    uint64_t *rng = w->rng;
    w->rng = &hash; /* so that a name's ending stays the same too */
    put_alternative(w, items, (int32_t)index);
    w->rng = rng;
}

static void put_slot(draft *w, const char *name, size_t n_name) {
    int32_t a, f, n_rows, copy;
    uint32_t low, high;
    const corpus_rule *rule;
    if (*name == '^') {
        w->capital = true;
        name++;
        n_name--;
    }
    if (corpus_numbers_find(name, n_name, &low, &high)) {
        char digits[16];
        snprintf(digits, sizeof digits, "%u", low + corpus_below(w->rng, high - low + 1));
        put_range(w, whole(digits));
    } else if (corpus_facet_find(w->d, name, n_name, &a, &f)) {
        w->n_mentions[a]++;
        put_any(w, whole(w->d->attributes[a].values[w->values[a]].facet[f]));
    } else if ((rule = corpus_rule_find(w->d, name, n_name, &n_rows)) != NULL) {
        put_any(w, whole(rule[corpus_below(w->rng, (uint32_t)n_rows)].frame));
    } else if ((rule = corpus_pool_find(name, n_name, &copy)) != NULL) {
        put_name(w, rule, copy);
    } else {
        w->unknown = name;
    }
}

static void put_range(draft *w, corpus_range range) {
    for (const char *p = range.p; p < range.end; p++) {
        const char *close = strchr("([{", *p) ? corpus_close(p) : p;
        corpus_range inner = {p + 1, close};
        if (*p == '(' || (*p == '[' && corpus_below(w->rng, 2) == 0))
            put_any(w, inner);
        else if (*p == '{')
            put_slot(w, inner.p, (size_t)(close - inner.p));
        else if (*p == '@') {
            put_char(w, 'a');
            w->article = true;
        } else if (*p != '[')
            put_char(w, *p);
        p = close;
    }
}

/* An optional part that is left out may leave two spaces, or one at an end. */
static void tidy(char *text) {
    char *to = text;
    for (const char *p = text; *p; p++)
        if (*p != ' ' || (to > text && to[-1] != ' ' && to[-1] != '\n' && p[1] != '\n' && p[1]))
            *to++ = *p;
    *to = '\0';
}

static draft begin(const corpus_domain *d, const int8_t *values, bool heldout, uint64_t *rng,
                   char *text) {
    draft w = {.d = d, .values = values, .heldout = heldout, .rng = rng, .text = text};
    w.names = corpus_random(rng);
    return w;
}

static void end(draft *w) {
    w->text[w->n] = '\0';
    tidy(w->text);
}

static draft write_document(const corpus_domain *d, const int8_t *values, bool heldout,
                            uint64_t *rng, char *text) {
    draft w = begin(d, values, heldout, rng, text);
    put_slot(&w, "doc", 3);
    end(&w);
    return w;
}

/* Names and attributes that are there more than once. */
static int32_t count_repeated(const draft *w) {
    int32_t n = 0;
    for (int32_t pool = 0; pool < MAX_POOLS; pool++)
        for (int32_t copy = 0; copy < MAX_COPIES; copy++)
            n += w->n_uses[pool][copy] > 1;
    for (int32_t a = 0; a < CORPUS_ATTRIBUTES; a++)
        n += w->n_mentions[a] > 1;
    return n;
}

enum { DRAFTS = 8 };

static draft write_repeating(const corpus_domain *d, const int8_t *values, bool heldout,
                             uint64_t *rng, char *text) {
    char other[CORPUS_TEXT_BYTES];
    draft best = write_document(d, values, heldout, rng, text);
    for (int32_t i = 1; i < DRAFTS; i++) {
        draft w = write_document(d, values, heldout, rng, other);
        if (count_repeated(&w) > count_repeated(&best)) {
            strcpy(text, other);
            w.text = text;
            best = w;
        }
    }
    return best;
}

/* A row of a sentence has a {pool} in it, if only in an optional part. */
static bool has_name(const char *frame) {
    int32_t copy;
    for (const char *p = frame; (p = strchr(p, '{')) != NULL;) {
        p += 1 + (p[1] == '^');
        if (corpus_pool_find(p, strcspn(p, "}"), &copy))
            return true;
    }
    return false;
}

enum { MAX_ROWS = 400, JUMBLED = 18 };

static draft write_jumbled(const corpus_domain *d, const int8_t *values, bool heldout,
                           uint64_t *rng, char *text) {
    const char *rows[MAX_ROWS];
    int32_t n = 0;
    for (int32_t i = 0; i < d->n_rules && n < MAX_ROWS; i++)
        if (strncmp(d->rules[i].name, "s.", 2) == 0)
            rows[n++] = d->rules[i].frame;
    draft w = begin(d, values, heldout, rng, text);
    put_slot(&w, "title", 5);
    for (int32_t i = 0; i < JUMBLED && n > 0; i++) {
        int32_t k = (int32_t)corpus_below(rng, (uint32_t)n), left = n;
        while (i % 2 == 0 && !has_name(rows[k]) && --left > 0)
            k = (k + 1) % n;
        put_char(&w, i == 0 ? '\n' : ' ');
        put_range(&w, whole(rows[k]));
        rows[k] = rows[--n];
    }
    end(&w);
    return w;
}

const char *corpus_write_as(corpus_form form, const corpus_domain *d, const int8_t *values,
                            bool heldout, uint64_t *rng, char *text) {
    switch (form) {
    case CORPUS_REPEATING: return write_repeating(d, values, heldout, rng, text).unknown;
    case CORPUS_JUMBLED: return write_jumbled(d, values, heldout, rng, text).unknown;
    default: return write_document(d, values, heldout, rng, text).unknown;
    }
}

const char *corpus_write(const corpus_domain *d, const int8_t *values, bool heldout,
                         uint64_t *rng, char *text) {
    return corpus_write_as(CORPUS_DOCUMENT, d, values, heldout, rng, text);
}
