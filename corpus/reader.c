/* reader.c - attributes and well-formedness from text; see document_grammar.h.
 *
 * A frame is matched by backtracking with a list of what is left to match. Tables are finite and
 * without recursion, and nearly all frames fail within a word, so that this is fast enough. */
#include <string.h>

#include "corpus/document_grammar.h"

typedef enum letter_case { AS_WRITTEN, CAPITAL, EITHER } letter_case;

typedef struct name { /* what stands in the slot of a pool */
    const corpus_rule *pool;
    int32_t copy;
    corpus_range text;
} name;

typedef struct rest { /* what must match after a range */
    corpus_range range;
    const struct rest *next;
    const name *begun; /* the name that ends before `range`, or NULL */
} rest;

enum { SENTENCE_NAMES = 16 };

typedef struct names {
    name of[SENTENCE_NAMES];
    int32_t n;
} names;

typedef struct matcher {
    const corpus_domain *d;
    const char *text;      /* NUL-terminated */
    bool sentence;         /* ends only where a sentence does, otherwise where a word does */
    const char *longest;   /* end of the longest match so far, or NULL */
    names seen, in_longest; /* names on the way here, and those of the longest match */
} matcher;

static bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static char to_upper(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c; }

static bool ends_sentence(const char *text, const char *s) {
    return s > text && (*s == '\0' || *s == '\n' || (strchr(".!?", s[-1]) && *s == ' '));
}

static void match(matcher *m, corpus_range range, const char *s, letter_case c, const rest *then);

static void match_each(matcher *m, corpus_range range, const char *s, letter_case c,
                       const rest *then) {
    corpus_range one;
    for (bool more = true; corpus_alternative(&range, &more, &one);)
        match(m, one, s, c, then);
}

static void match_string(matcher *m, const char *frame, const char *s, letter_case c,
                         const rest *then) {
    match_each(m, (corpus_range){frame, frame + strlen(frame)}, s, c, then);
}

static void match_number(matcher *m, uint32_t low, uint32_t high, const char *s,
                         const rest *then) {
    uint32_t n = 0;
    const char *p = s;
    while (*p >= '0' && *p <= '9' && p - s < 9)
        n = 10 * n + (uint32_t)(*p++ - '0');
    if (p > s && n >= low && n <= high && (*s != '0' || p == s + 1))
        match(m, (corpus_range){p, p}, p, AS_WRITTEN, then);
}

static void match_slot(matcher *m, corpus_range slot, const char *s, letter_case c,
                       const rest *then) {
    if (*slot.p == '^') {
        c = CAPITAL;
        slot.p++;
    }
    size_t n = (size_t)(slot.end - slot.p);
    int32_t a, f, n_rows, copy;
    uint32_t low, high;
    const corpus_rule *rule;
    if (corpus_numbers_find(slot.p, n, &low, &high))
        match_number(m, low, high, s, then);
    else if (corpus_facet_find(m->d, slot.p, n, &a, &f))
        for (int32_t v = 0; v < m->d->attributes[a].n_values; v++)
            match_string(m, m->d->attributes[a].values[v].facet[f], s, c, then);
    else if ((rule = corpus_rule_find(m->d, slot.p, n, &n_rows)) != NULL)
        for (int32_t i = 0; i < n_rows; i++)
            match_string(m, rule[i].frame, s, c, then);
    else if ((rule = corpus_pool_find(slot.p, n, &copy)) != NULL) {
        name begun = {rule, copy, {s, s}};
        rest after = {.next = then, .begun = &begun};
        match_string(m, rule->frame, s, c, &after);
    }
}

/* "a" or "an", as the next word wants. */
static const char *match_article(const char *s, letter_case c) {
    if (*s != (c == CAPITAL ? 'A' : 'a') && (c != EITHER || *s != 'A'))
        return NULL;
    s++;
    bool an = *s == 'n';
    s += an;
    return *s == ' ' && corpus_wants_an(s[1]) == an ? s : NULL;
}

static const char *match_letter(const matcher *m, char wanted, const char *s, letter_case c) {
    if (wanted == ' ' && (s == m->text || s[-1] == ' ' || s[-1] == '\n'))
        return s; /* an optional part before it was left out */
    bool same = c == CAPITAL  ? *s == to_upper(wanted)
                : c == EITHER ? to_upper(*s) == to_upper(wanted)
                              : *s == wanted;
    return same ? s + 1 : NULL;
}

static void match(matcher *m, corpus_range range, const char *s, letter_case c, const rest *then) {
    for (const char *p = range.p; p < range.end; p++) {
        if (*p == '(' || *p == '[' || *p == '{') {
            const char *close = corpus_close(p);
            rest after = {.range = {close + 1, range.end}, .next = then};
            if (*p == '{') {
                match_slot(m, (corpus_range){p + 1, close}, s, c, &after);
                return;
            }
            match_each(m, (corpus_range){p + 1, close}, s, c, &after);
            if (*p == '[')
                match(m, after.range, s, c, then);
            return;
        }
        const char *next = *p == '@' ? match_article(s, c) : match_letter(m, *p, s, c);
        if (!next)
            return;
        c = next > s ? AS_WRITTEN : c;
        s = next;
    }
    if (then) {
        int32_t n = m->seen.n;
        if (then->begun && n < SENTENCE_NAMES) {
            m->seen.of[n] = *then->begun;
            m->seen.of[m->seen.n++].text.end = s;
        }
        match(m, then->range, s, c, then->next);
        m->seen.n = n;
    } else if ((m->sentence ? ends_sentence(m->text, s) : !is_word(*s) || !is_word(s[-1])) &&
               (!m->longest || s > m->longest)) {
        m->longest = s;
        m->in_longest = m->seen;
    }
}

/* ---- Attributes ----------------------------------------------------------------------------- */

enum { WHOLE_VOTE = 27720 }; /* divisible by 2 to 12 */

typedef struct ballot {
    int64_t of[CORPUS_ATTRIBUTES][CORPUS_VALUES];
    int32_t shares[CORPUS_ATTRIBUTES][CORPUS_VALUES], n[CORPUS_ATTRIBUTES]; /* votes, counted */
    int64_t sum;
} ballot;

/* End of the longest wording of a value that starts at s, NULL if none does. */
static const char *longest_wording(const corpus_domain *d, const corpus_attribute *attribute,
                                   int32_t v, const char *text, const char *s) {
    matcher m = {.d = d, .text = text};
    for (int32_t f = 0; f < CORPUS_FACETS && attribute->facets[f]; f++)
        match_string(&m, attribute->values[v].facet[f], s, EITHER, NULL);
    return m.longest;
}

static void vote_at(const corpus_domain *d, const char *text, const char *s, ballot *votes) {
    for (int32_t a = 0; a < d->n_attributes; a++) {
        const corpus_attribute *attribute = &d->attributes[a];
        const char *end[CORPUS_VALUES] = {NULL}, *longest = s;
        int32_t n = 0;
        for (int32_t v = 0; v < attribute->n_values; v++) {
            end[v] = longest_wording(d, attribute, v, text, s);
            if (end[v] && end[v] > longest) {
                longest = end[v];
                n = 0;
            }
            n += end[v] != NULL && end[v] == longest;
        }
        for (int32_t v = 0; v < attribute->n_values; v++)
            if (end[v] && end[v] == longest) {
                votes->of[a][v] += WHOLE_VOTE / n;
                votes->shares[a][v]++;
            }
        votes->n[a] += n > 0;
        votes->sum += n > 0;
    }
}

static bool is_agreed(const corpus_domain *d, const ballot *votes, const int8_t *values) {
    for (int32_t a = 0; a < d->n_attributes; a++)
        if (values[a] < 0 || votes->shares[a][values[a]] < votes->n[a] ||
            !corpus_fits(d, values, a, values[a]))
            return false;
    return true;
}

static int64_t read_attributes(const corpus_domain *d, const char *text, corpus_reading *r) {
    int8_t *values = r->values;
    ballot votes = {0};
    for (const char *s = text; *s; s++)
        if (is_word(*s) && (s == text || !is_word(s[-1])))
            vote_at(d, text, s, &votes);
    for (int32_t a = 0; a < d->n_attributes; a++) {
        values[a] = -1;
        for (int32_t v = 0; v < d->attributes[a].n_values; v++)
            if (votes.of[a][v] > (values[a] < 0 ? 0 : votes.of[a][values[a]]))
                values[a] = (int8_t)v;
    }
    r->agrees = is_agreed(d, &votes, values);
    return votes.sum;
}

/* ---- Sentences ------------------------------------------------------------------------------ */

static bool has_prefix(const char *s, const char *prefix) {
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The rule whose row matches the longest stretch at s, NULL if none does. */
static const char *find_sentence(const corpus_domain *d, const char *text, const char *s,
                                 const char *prefix, const char **end, names *found) {
    matcher m = {.d = d, .text = text, .sentence = true};
    const char *rule = NULL;
    for (int32_t i = 0; i < d->n_rules; i++) {
        const char *before = m.longest;
        if (has_prefix(d->rules[i].name, prefix))
            match_string(&m, d->rules[i].frame, s, AS_WRITTEN, NULL);
        if (m.longest != before)
            rule = d->rules[i].name;
    }
    *end = m.longest;
    *found = m.in_longest;
    return rule;
}

static bool is_same_text(corpus_range a, corpus_range b) {
    return a.end - a.p == b.end - b.p && memcmp(a.p, b.p, (size_t)(a.end - a.p)) == 0;
}

/* False if a name of *found differs from the earlier one of its slot in `known`. Names of new slots
 * are added to `known`. */
static bool is_known(const names *found, name *known, int32_t *n_known) {
    bool same = true;
    for (int32_t i = 0; i < found->n; i++) {
        const name *is = &found->of[i];
        int32_t k = 0;
        while (k < *n_known && (known[k].pool != is->pool || known[k].copy != is->copy))
            k++;
        if (k == *n_known)
            known[(*n_known)++] = *is;
        same = same && is_same_text(known[k].text, is->text);
    }
    return same;
}

enum { MAX_SENTENCES = 64, MIN_SENTENCES = 6 };

static void read_sentences(const corpus_domain *d, const char *text, corpus_reading *r) {
    const char *rules[MAX_SENTENCES], *s = text, *end;
    name known[MAX_SENTENCES * SENTENCE_NAMES];
    names found;
    bool whole = true;
    int32_t n = 0, n_known = 0;
    r->names_agree = true;
    while (*s && n < MAX_SENTENCES) {
        rules[n] = find_sentence(d, text, s, n == 0 ? "title" : "s.", &end, &found);
        r->names_agree = is_known(&found, known, &n_known) && r->names_agree;
        r->n_recognised += rules[n] != NULL;
        for (int32_t i = 0; i < n && rules[n]; i++)
            whole = whole && (!rules[i] || strcmp(rules[i], rules[n]) != 0);
        for (end = end ? end : s + 1; !ends_sentence(text, end); end++)
            ;
        n++;
        s = end + strspn(end, " \n");
    }
    r->n_sentences = n;
    r->well_formed = whole && !*s && n >= MIN_SENTENCES && r->n_recognised == n &&
                     has_prefix(rules[1], "s.open") && has_prefix(rules[n - 1], "s.close");
}

void corpus_read(const char *text, size_t n_bytes, corpus_reading *r) {
    corpus_reading each[CORPUS_DOMAINS];
    int32_t most = 0;
    int64_t best = -1;
    *r = (corpus_reading){.domain = -1};
    if (strlen(text) != n_bytes)
        return; /* NUL bytes are no text */
    for (int32_t i = 0; i < CORPUS_DOMAINS; i++) {
        each[i] = (corpus_reading){.domain = i};
        read_sentences(corpus_domains[i], text, &each[i]);
        most = each[i].n_recognised > most ? each[i].n_recognised : most;
    }
    for (int32_t i = 0; i < CORPUS_DOMAINS; i++) {
        if (each[i].n_recognised < most)
            continue;
        int64_t n_votes = read_attributes(corpus_domains[i], text, &each[i]);
        if (n_votes > best)
            *r = each[i];
        best = n_votes > best ? n_votes : best;
    }
    for (int32_t a = 0; a < corpus_domains[r->domain]->n_attributes; a++)
        r->well_formed = r->well_formed && r->values[a] >= 0;
}
