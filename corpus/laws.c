/* laws.c - laws over the attributes of a domain, and draws from them; see document_grammar.h. */
#include "corpus/document_grammar.h"

#include <string.h>

#include "dpinfer.h"

uint64_t corpus_random(uint64_t *rng) {
    uint64_t bits;
    dpi_random_insecure(rng, &bits, sizeof bits);
    return bits;
}

uint32_t corpus_below(uint64_t *rng, uint32_t n) {
    return (uint32_t)((corpus_random(rng) >> 32) * n >> 32);
}

corpus_law corpus_law_of(const corpus_domain *d, corpus_law_id id) {
    corpus_law law = {.boost = id == CORPUS_FLAT ? 12 : 300};
    for (int32_t a = 0; a < d->n_attributes; a++)
        for (int32_t v = 0; v < d->attributes[a].n_values; v++) {
            const corpus_value *value = &d->attributes[a].values[v];
            law.weight[a][v] = id == CORPUS_FLAT      ? 1
                               : id == CORPUS_PUBLIC ? (uint32_t)value->public_weight
                                                     : (uint32_t)value->private_weight;
        }
    return law;
}

corpus_law corpus_law_random(const corpus_domain *d, uint64_t *rng) {
    static const uint32_t boosts[] = {2, 10, 40, 200};
    corpus_law law = {.boost = boosts[corpus_below(rng, 4)]};
    for (int32_t a = 0; a < d->n_attributes; a++)
        for (int32_t v = 0; v < d->attributes[a].n_values; v++)
            law.weight[a][v] = 1u << corpus_below(rng, 7);
    return law;
}

/* `name` is one of the words of the list [list, end). */
static bool in_list(const char *list, const char *end, const char *name) {
    size_t n = strlen(name);
    for (const char *p = list; (p = strstr(p, name)) != NULL && p + n <= end; p += n)
        if ((p == list || p[-1] == ' ') && (p + n == end || p[n] == ' '))
            return true;
    return false;
}

bool corpus_fits(const corpus_domain *d, const int8_t *values, int32_t a, int32_t v) {
    static const char not[] = "not ";
    const char *clause = d->attributes[a].values[v].fits;
    while (clause && *clause) {
        const char *comma = strchr(clause, ','), *end = comma ? comma : clause + strlen(clause);
        bool negative = strncmp(clause, not, sizeof not - 1) == 0, found = false;
        for (int32_t b = 0; b < a; b++)
            found = found || in_list(clause, end, d->attributes[b].values[values[b]].name);
        if (found == negative)
            return false;
        clause = comma ? comma + 2 : NULL;
    }
    return true;
}

static bool liked(const corpus_domain *d, const int8_t *values, int32_t a, int32_t v) {
    for (int32_t b = 0; b < a; b++) {
        const char *likes = d->attributes[b].values[values[b]].likes;
        if (in_list(likes, likes + strlen(likes), d->attributes[a].values[v].name))
            return true;
    }
    return false;
}

static int8_t draw_one(const corpus_domain *d, const corpus_law *law, int32_t a, uint64_t *rng,
                       const int8_t *values) {
    uint32_t odds[CORPUS_VALUES], sum = 0;
    int32_t n = d->attributes[a].n_values, v = 0;
    for (int32_t i = 0; i < n; i++) {
        odds[i] = law->weight[a][i] * (liked(d, values, a, i) ? law->boost : 1);
        odds[i] *= corpus_fits(d, values, a, i);
        sum += odds[i];
    }
    for (uint32_t at = corpus_below(rng, sum); v < n - 1 && at >= odds[v]; v++)
        at -= odds[v];
    return (int8_t)v;
}

/* An eighth of all combinations is held out. */
static bool is_heldout(const corpus_domain *d, const int8_t *values) {
    uint64_t hash = (uint64_t)d->name[0];
    for (int32_t a = 0; a < d->n_attributes; a++) {
        hash += (uint64_t)values[a];
        hash = corpus_random(&hash);
    }
    return hash >> 61 == 0;
}

void corpus_draw(const corpus_domain *d, const corpus_law *law, bool heldout, uint64_t *rng,
                 int8_t values[CORPUS_ATTRIBUTES]) {
    memset(values, -1, CORPUS_ATTRIBUTES);
    do
        for (int32_t a = 0; a < d->n_attributes; a++)
            values[a] = draw_one(d, law, a, rng, values);
    while (is_heldout(d, values) != heldout);
}

void corpus_redraw(const corpus_domain *d, const corpus_law *law, bool heldout, uint64_t *rng,
                   int8_t values[CORPUS_ATTRIBUTES]) {
    do
        for (int32_t a = 0; a < d->n_attributes; a++)
            if (corpus_below(rng, 5) < 2 || !corpus_fits(d, values, a, values[a]))
                values[a] = draw_one(d, law, a, rng, values);
    while (is_heldout(d, values) != heldout);
}
