/* document_grammar.c - the tables of a domain, looked up; see document_grammar.h. */
#include "corpus/document_grammar.h"

#include <string.h>

const corpus_domain *const corpus_domains[CORPUS_DOMAINS] = {&corpus_discharge, &corpus_review,
                                                             &corpus_court, &corpus_ticket};

int32_t corpus_domain_find(const char *name) {
    for (int32_t i = 0; i < CORPUS_DOMAINS; i++)
        if (strcmp(corpus_domains[i]->name, name) == 0)
            return i;
    return -1;
}

static bool is_name(const char *known, const char *name, size_t n_name) {
    return strncmp(known, name, n_name) == 0 && known[n_name] == '\0';
}

const corpus_rule *corpus_rule_find(const corpus_domain *d, const char *name, size_t n_name,
                                    int32_t *n_rows) {
    int32_t first = 0, end;
    while (first < d->n_rules && !is_name(d->rules[first].name, name, n_name))
        first++;
    for (end = first; end < d->n_rules && is_name(d->rules[end].name, name, n_name);)
        end++;
    *n_rows = end - first;
    if (*n_rows > 0)
        return &d->rules[first];
    *n_rows = 1;
    for (const corpus_rule *rule = corpus_common; rule->name; rule++)
        if (is_name(rule->name, name, n_name))
            return rule;
    return NULL;
}

bool corpus_facet_find(const corpus_domain *d, const char *name, size_t n_name,
                       int32_t *attribute, int32_t *facet) {
    const char *dot = memchr(name, '.', n_name);
    if (!dot)
        return false;
    size_t n_attr = (size_t)(dot - name), n_facet = n_name - n_attr - 1;
    for (int32_t a = 0; a < d->n_attributes; a++)
        for (int32_t f = 0; f < CORPUS_FACETS && d->attributes[a].facets[f]; f++)
            if (is_name(d->attributes[a].name, name, n_attr) &&
                is_name(d->attributes[a].facets[f], dot + 1, n_facet)) {
                *attribute = a;
                *facet = f;
                return true;
            }
    return false;
}

const corpus_rule *corpus_pool_find(const char *name, size_t n_name, int32_t *copy) {
    *copy = 0;
    if (n_name > 1 && name[n_name - 1] >= '2' && name[n_name - 1] <= '9')
        *copy = name[--n_name] - '0';
    for (const corpus_rule *pool = corpus_pools; pool->name; pool++)
        if (is_name(pool->name, name, n_name))
            return pool;
    return NULL;
}

bool corpus_numbers_find(const char *name, size_t n_name, uint32_t *low, uint32_t *high) {
    uint32_t bound[2] = {0, 0};
    int32_t i = 0;
    for (size_t at = 0; at < n_name; at++)
        if (name[at] >= '0' && name[at] <= '9')
            bound[i] = 10 * bound[i] + (uint32_t)(name[at] - '0');
        else if (name[at] == '-' && at > 0 && i == 0)
            i = 1;
        else
            return false;
    *low = bound[0];
    *high = bound[1];
    return i == 1;
}

const char *corpus_close(const char *p) {
    int32_t depth = 0;
    for (;; p++) {
        depth += *p == '(' || *p == '[' || *p == '{';
        depth -= *p == ')' || *p == ']' || *p == '}';
        if (depth == 0 || *p == '\0')
            return p;
    }
}

bool corpus_alternative(corpus_range *rest, bool *more, corpus_range *one) {
    if (!*more)
        return false;
    const char *p = rest->p;
    while (p < rest->end && *p != '|')
        p = (*p == '(' || *p == '[' || *p == '{' ? corpus_close(p) : p) + 1;
    *one = (corpus_range){rest->p, p};
    *more = p < rest->end;
    rest->p = *more ? p + 1 : p;
    return true;
}

bool corpus_wants_an(char c) { return c != '\0' && strchr("aeiouAEIOU8", c) != NULL; }
