/* read.c - attributes and well-formedness from text; see grammar.h.
 *
 * A frame is matched by backtracking with a list of what is left to match. Tables are finite and
 * without recursion, and nearly all frames fail within a word, so that this is fast enough. */
#include <string.h>

#include "corpus/grammar.h"

typedef enum letter_case { AS_WRITTEN, CAPITAL, EITHER } letter_case;

typedef struct rest { /* what must match after a range */
    corpus_range range;
    const struct rest *next;
} rest;

typedef struct matcher {
    const corpus_domain *d;
    const char *text;      /* NUL-terminated */
    bool sentence;         /* ends only where a sentence does, otherwise where a word does */
    const char *longest;   /* end of the longest match so far, or NULL */
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
    else if ((rule = corpus_pool_find(slot.p, n, &copy)) != NULL)
        match_string(m, rule->frame, s, c, then);
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
            rest after = {{close + 1, range.end}, then};
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
    if (then)
        match(m, then->range, s, c, then->next);
    else if ((m->sentence ? ends_sentence(m->text, s) : !is_word(*s) || !is_word(s[-1])) &&
             (!m->longest || s > m->longest))
        m->longest = s;
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
                                 const char *prefix, const char **end) {
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
    return rule;
}

enum { MAX_SENTENCES = 64, MIN_SENTENCES = 6 };

static void read_sentences(const corpus_domain *d, const char *text, corpus_reading *r) {
    const char *rules[MAX_SENTENCES], *s = text, *end;
    bool whole = true;
    int32_t n = 0;
    while (*s && n < MAX_SENTENCES) {
        rules[n] = find_sentence(d, text, s, n == 0 ? "title" : "s.", &end);
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
