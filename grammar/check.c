/* check.c - what is refused before a grammar is used: rules that never end, and rules that begin
 * with themselves. And how many rules have to be open at once, for each state. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "grammar/grammar.h"

static dpi_status refuse_rule(const dpi_rule *rule, const char *why, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_FORMAT, "grammar: the rule '%.*s' %s",
                    rule->n_name < 60 ? (int)rule->n_name : 60, rule->name, why);
}

static dpi_status check_defined(const dpi_rules *rules, dpi_grammar *g, dpi_error *err) {
    g->root = -1;
    for (int32_t i = 0; i < rules->n_rules; i++) {
        const dpi_rule *rule = &rules->rules[i];
        if (rule->node < 0)
            return refuse_rule(rule, "is used and not defined", err);
        if (rule->n_name == 4 && memcmp(rule->name, "root", 4) == 0)
            g->root = i;
    }
    return g->root >= 0 ? DPI_STATUS_OK
                        : dpi_fail(err, DPI_STATUS_FORMAT, "grammar: there is no rule 'root'");
}

/* ---- Heights --------------------------------------------------------------------------------- */

enum { NEVER = DPI_GRAMMAR_DEPTH_MAX + 1 };

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }

/* A rule that is called last leaves nothing open behind it. */
static int32_t height_of(const dpi_grammar *g, const dpi_rules *rules, const dpi_rule_state *s) {
    if (s->kind == DPI_STATE_END)
        return 0;
    if (s->kind == DPI_STATE_BYTE)
        return g->states[s->next].height;
    if (s->kind == DPI_STATE_SPLIT)
        return least(g->states[s->next].height, g->states[s->other].height);
    const int32_t inside = g->states[rules->rules[s->other].start].height + (s->next != 0);
    return least(NEVER, most(inside, g->states[s->next].height));
}

/* Heights fall from NEVER to what they are. States stand behind those that come after them, so one
 * pass does a rule; there are at most as many passes as rules, and one more. */
static dpi_status find_heights(const dpi_rules *rules, dpi_grammar *g, dpi_error *err) {
    bool changed = true;
    for (int32_t i = 0; i < g->n_states; i++)
        g->states[i].height = i == 0 ? 0 : NEVER;
    while (changed) {
        changed = false;
        for (int32_t i = 0; i < g->n_states; i++) {
            const int32_t height = height_of(g, rules, &g->states[i]);
            changed = changed || height < g->states[i].height;
            g->states[i].height = least(height, g->states[i].height);
        }
    }
    for (int32_t i = 0; i < rules->n_rules; i++)
        if (g->states[rules->rules[i].start].height >= NEVER)
            return refuse_rule(&rules->rules[i],
                               "never ends, or only with more than 256 rules inside each other",
                               err);
    return DPI_STATUS_OK;
}

/* ---- Rules that begin with themselves -------------------------------------------------------- */

/* What one search over states needs. */
typedef struct search {
    int32_t *todo; /* [n_states] */
    int32_t *seen; /* [n_states] the number of the search that saw it */
    int32_t number;
    int32_t n;
} search;

static void add(search *s, int32_t state) {
    if (s->seen[state] == s->number)
        return;
    s->seen[state] = s->number;
    s->todo[s->n++] = state;
}

/* Calls `found` for each rule that `rule` may call before it reads a byte; true: it may read
 * nothing at all. */
static bool search_beginning(const dpi_rules *rules, const dpi_grammar *g, search *s, int32_t rule,
                             void (*found)(void *user, int32_t from, int32_t to), void *user) {
    bool is_empty_too = false;
    s->number++;
    s->n = 0;
    add(s, rules->rules[rule].start);
    while (s->n > 0) {
        const dpi_rule_state *state = &g->states[s->todo[--s->n]];
        is_empty_too = is_empty_too || state->kind == DPI_STATE_END;
        if (state->kind == DPI_STATE_SPLIT) {
            add(s, state->next);
            add(s, state->other);
        } else if (state->kind == DPI_STATE_CALL) {
            if (found)
                found(user, rule, state->other);
            if (rules->rules[state->other].is_empty_too)
                add(s, state->next);
        }
    }
    return is_empty_too;
}

/* A list of pairs (from, to), and how many lead to each rule. */
typedef struct edges {
    int32_t (*pairs)[2];
    int32_t *n_to; /* [n_rules] */
    int32_t n;
} edges;

static void count_edge(void *user, int32_t from, int32_t to) {
    edges *e = user;
    if (e->pairs) {
        e->pairs[e->n][0] = from;
        e->pairs[e->n][1] = to;
        e->n_to[to]++;
    }
    e->n++;
}

/* Leaves out, one after the other, the rules that no rule begins with. What is left goes in
 * circles. The pairs of one rule stand in a row, from first[rule] on. */
static int32_t find_circle(const edges *e, const int32_t *first, int32_t n_rules, int32_t *todo) {
    int32_t n_todo = 0, n_left = n_rules;
    for (int32_t i = 0; i < n_rules; i++)
        if (e->n_to[i] == 0)
            todo[n_todo++] = i;
    while (n_todo > 0) {
        const int32_t rule = todo[--n_todo];
        n_left--;
        for (int32_t i = first[rule]; i < first[rule + 1]; i++)
            if (--e->n_to[e->pairs[i][1]] == 0)
                todo[n_todo++] = e->pairs[i][1];
    }
    for (int32_t i = 0; i < n_rules && n_left > 0; i++)
        if (e->n_to[i] > 0)
            return i;
    return -1;
}

static void find_empty(dpi_rules *rules, const dpi_grammar *g, search *s) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t i = 0; i < rules->n_rules; i++)
            if (!rules->rules[i].is_empty_too && search_beginning(rules, g, s, i, NULL, NULL))
                changed = rules->rules[i].is_empty_too = true;
    }
}

static dpi_status find_left(dpi_rules *rules, const dpi_grammar *g, search *s, edges *e,
                            int32_t *first, dpi_error *err) {
    find_empty(rules, g, s);
    for (int32_t i = 0; i < rules->n_rules; i++)
        (void)search_beginning(rules, g, s, i, count_edge, e);
    e->pairs = dpi_calloc((size_t)e->n, sizeof *e->pairs);
    if (!e->pairs)
        return dpi_no_memory(err, "the check of a grammar");
    e->n = 0;
    for (int32_t i = 0; i < rules->n_rules; i++) {
        first[i] = e->n;
        (void)search_beginning(rules, g, s, i, count_edge, e);
    }
    first[rules->n_rules] = e->n;
    const int32_t circle = find_circle(e, first, rules->n_rules, s->todo);
    return circle < 0 ? DPI_STATUS_OK
                      : refuse_rule(&rules->rules[circle],
                                    "begins with itself (left recursion), or with such a rule: "
                                    "write it as a repetition",
                                    err);
}

/* ---- All ------------------------------------------------------------------------------------- */

/* Fills heights. Errors: FORMAT (a rule that never ends, or that begins with itself),
 * MEMORY. */
static dpi_status fill_heights(dpi_rules *rules, dpi_grammar *g, dpi_error *err) {
    const size_t n = (size_t)g->n_states + (size_t)rules->n_rules + 1;
    search s = {.todo = dpi_calloc(n, sizeof(int32_t)), .seen = dpi_calloc(n, sizeof(int32_t))};
    edges e = {.n_to = dpi_calloc(n, sizeof(int32_t))};
    int32_t *first = dpi_calloc(n, sizeof *first);
    dpi_status status = find_heights(rules, g, err);
    if (!s.todo || !s.seen || !e.n_to || !first)
        status = dpi_no_memory(err, "the check of a grammar");
    if (status == DPI_STATUS_OK)
        status = find_left(rules, g, &s, &e, first, err);
    free(s.todo);
    free(s.seen);
    free(e.n_to);
    free(e.pairs);
    free(first);
    return status;
}

static dpi_status make(dpi_rules *rules, dpi_grammar *g, dpi_error *err) {
    DPI_TRY(check_defined(rules, g, err));
    DPI_TRY(dpi_states_make(rules, g, err));
    DPI_TRY(fill_heights(rules, g, err));
    g->n_rules = rules->n_rules;
    g->most_bytes = UINT64_MAX;
    g->starts = dpi_calloc((size_t)rules->n_rules, sizeof *g->starts);
    if (!g->starts)
        return dpi_no_memory(err, "a grammar");
    for (int32_t i = 0; i < rules->n_rules; i++)
        g->starts[i] = rules->rules[i].start;
    return DPI_STATUS_OK;
}

dpi_status dpi_grammar_parse(const char *text, size_t n_bytes, dpi_grammar **grammar,
                             dpi_error *err) {
    if (!text || !grammar)
        return dpi_fail(err, DPI_STATUS_ARG, "the text of a grammar or the grammar is NULL");
    dpi_rules rules;
    dpi_grammar *g = dpi_calloc(1, sizeof *g);
    if (!g)
        return dpi_no_memory(err, "a grammar");
    dpi_status status = dpi_rules_read(text, n_bytes, &rules, err);
    if (status == DPI_STATUS_OK)
        status = make(&rules, g, err);
    dpi_rules_free(&rules);
    if (status != DPI_STATUS_OK) {
        dpi_grammar_free(g);
        return status;
    }
    *grammar = g;
    return DPI_STATUS_OK;
}

uint64_t dpi_grammar_digest(const dpi_grammar *g) {
    uint64_t hash = dpi_hash(DPI_HASH_INIT, &g->starts[g->root], sizeof *g->starts);
    hash = dpi_hash(hash, g->starts, (size_t)g->n_rules * sizeof *g->starts);
    return dpi_hash(hash, g->states, (size_t)g->n_states * sizeof *g->states);
}

void dpi_grammar_free(dpi_grammar *g) {
    if (!g)
        return;
    free(g->states);
    free(g->starts);
    free(g);
}
