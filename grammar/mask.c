/* mask.c - see mask.h. */
#include "grammar/mask.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "grammar/automaton.h"

enum { KEPT_BYTES = 1 << 25, KEPT_MOST = 1 << 14 }; /* sets of allowed tokens */

/* The tree of the bytes of all tokens, from the root down, each node before its children. */
typedef struct tree {
    uint8_t *byte;    /* [n] of the edge to this node */
    uint16_t *depth;  /* [n] bytes before that */
    uint32_t *behind; /* [n] the next node that is not below this one */
    uint32_t *first;  /* [n + 1] the tokens that end here are ids[first[i]..first[i + 1]) */
    int32_t *ids;     /* [n_ids] */
    uint32_t n, n_ids;
    uint32_t max_depth;
} tree;


struct dpi_mask {
    dpi_automaton *automaton;
    tree tree;
    uint8_t *pool;    /* the bytes of all tokens */
    uint32_t *starts; /* [n_tokens + 1] where those of a token stand in it */
    uint64_t *ends;   /* [n_words] tokens that end a text */
    uint64_t *bits;   /* [n_kept_most, n_words] what places allow */
    int32_t *n_allowed; /* [n_kept_most] */
    int32_t *kept_of; /* [DPI_AUTOMATON_STATES] which of these a place has, plus 1; 0: none */
    int32_t *path;    /* [max_depth + 1] places on the way to a node, the root's first */
    uint8_t *way;     /* [max_depth] the bytes between */
    int32_t n_tokens, n_words, n_kept, n_kept_most;
    uint32_t epoch; /* of the automaton, that kept_of belongs to */
    dpi_mask_text *texts; /* all that there are */
    int32_t n_texts;
};

struct dpi_mask_text {
    dpi_mask *mask;
    dpi_mask_text *before, *after; /* in the mask's list */
    int32_t place;                 /* a state of the automaton */
    bool ended;
};

/* ---- Tree ------------------------------------------------------------------------------------ */

typedef struct entry {
    const uint8_t *bytes;
    uint32_t n_bytes;
    int32_t id;
} entry;

static int by_bytes(const void *a, const void *b) {
    const entry *x = a, *y = b;
    const uint32_t n = x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes;
    const int order = memcmp(x->bytes, y->bytes, n);
    return order                      ? order
           : x->n_bytes != y->n_bytes ? (x->n_bytes < y->n_bytes ? -1 : 1)
                                      : (x->id > y->id) - (x->id < y->id);
}

static uint32_t in_common(const entry *a, const entry *b) {
    uint32_t n = 0;
    while (n < a->n_bytes && n < b->n_bytes && a->bytes[n] == b->bytes[n])
        n++;
    return n;
}

/* Nodes of the entry behind what it has in common with the one before. */
static void add_entry(tree *t, const entry *e, uint32_t n_common) {
    for (uint32_t d = n_common; d < e->n_bytes; d++) {
        t->byte[t->n] = e->bytes[d];
        t->depth[t->n] = (uint16_t)d;
        t->first[t->n++] = t->n_ids;
    }
    t->ids[t->n_ids++] = e->id;
    t->max_depth = e->n_bytes > t->max_depth ? e->n_bytes : t->max_depth;
}

/* The node behind i is the next one that is no deeper. `open` [max_depth] has the last node of each
 * depth on the way to i. */
static void find_behind(tree *t, int32_t *open) {
    uint32_t n_open = 0;
    for (uint32_t i = 0; i <= t->n; i++) {
        const uint32_t d = i < t->n ? t->depth[i] : 0;
        while (n_open > d)
            t->behind[open[--n_open]] = i;
        if (i < t->n)
            open[n_open++] = (int32_t)i;
    }
}

static dpi_status make_tree(dpi_mask *m, entry *entries, uint32_t n, dpi_error *err) {
    tree *t = &m->tree;
    size_t n_nodes = 0;
    qsort(entries, n, sizeof *entries, by_bytes);
    for (uint32_t i = 0; i < n; i++)
        n_nodes += entries[i].n_bytes - (i > 0 ? in_common(&entries[i - 1], &entries[i]) : 0);
    t->byte = dpi_calloc(n_nodes, sizeof *t->byte);
    t->depth = dpi_calloc(n_nodes, sizeof *t->depth);
    t->behind = dpi_calloc(n_nodes, sizeof *t->behind);
    t->first = dpi_calloc(n_nodes + 1, sizeof *t->first);
    t->ids = dpi_calloc(n, sizeof *t->ids);
    if (!t->byte || !t->depth || !t->behind || !t->first || !t->ids)
        return dpi_no_memory(err, "the tokens that a grammar allows");
    for (uint32_t i = 0; i < n; i++)
        add_entry(t, &entries[i], i > 0 ? in_common(&entries[i - 1], &entries[i]) : 0);
    t->first[t->n] = t->n_ids;
    m->path = dpi_calloc((size_t)t->max_depth + 1, sizeof *m->path);
    m->way = dpi_calloc((size_t)t->max_depth + 1, sizeof *m->way);
    if (!m->path || !m->way)
        return dpi_no_memory(err, "the tokens that a grammar allows");
    find_behind(t, m->path);
    return DPI_STATUS_OK;
}

/* ---- What a place allows --------------------------------------------------------------------- */

static void forget_kept(dpi_mask *m) {
    memset(m->kept_of, 0, DPI_AUTOMATON_STATES * sizeof *m->kept_of);
    m->n_kept = 0;
    m->epoch = m->automaton->epoch;
}

/* Makes room in the automaton: the places of all texts get new numbers. */
static bool renew(dpi_mask *m) {
    int32_t *places = dpi_calloc((size_t)m->n_texts, sizeof *places), n = 0;
    if (!places)
        return false;
    for (const dpi_mask_text *t = m->texts; t; t = t->after)
        places[n++] = t->place;
    const bool ok = dpi_automaton_renew(m->automaton, places, n);
    n = 0;
    for (dpi_mask_text *t = m->texts; t; t = t->after)
        t->place = ok ? places[n++] : DPI_AUTOMATON_DEAD;
    free(places);
    return ok;
}

/* The same on the way from the text's place to a node: the places of its `depth` bytes too. */
static bool renew_path(dpi_mask *m, const dpi_mask_text *t, uint32_t depth) {
    if (!renew(m))
        return false;
    int32_t place = m->path[0] = t->place;
    for (uint32_t d = 0; d < depth && place >= 0; d++)
        place = m->path[d + 1] = dpi_automaton_next(m->automaton, place, m->way[d]);
    return place >= 0;
}

static void allow(uint64_t *bits, int32_t token) {
    bits[token / 64] |= UINT64_C(1) << (token % 64);
}

/* bits [n_words] = the tokens that the text's place allows: nodes in their order, and behind those
 * that it does not. False: no memory. */
static bool find_allowed(dpi_mask *m, const dpi_mask_text *text, uint64_t *bits) {
    const tree *t = &m->tree;
    m->path[0] = text->place;
    for (uint32_t i = 0; i < t->n;) {
        const uint32_t d = t->depth[i];
        int32_t next = dpi_automaton_next(m->automaton, m->path[d], t->byte[i]);
        if (next == DPI_AUTOMATON_FULL) {
            if (!renew_path(m, text, d))
                return false;
            next = dpi_automaton_next(m->automaton, m->path[d], t->byte[i]);
            if (next == DPI_AUTOMATON_FULL)
                return false;
        }
        if (next == DPI_AUTOMATON_DEAD) {
            i = t->behind[i];
            continue;
        }
        m->path[d + 1] = next;
        m->way[d] = t->byte[i];
        for (uint32_t k = t->first[i]; k < t->first[i + 1]; k++)
            allow(bits, t->ids[k]);
        i++;
    }
    return true;
}

/* Which kept set is that of the text's place; -1: no memory. */
static int32_t find_kept(dpi_mask *m, const dpi_mask_text *text) {
    if (m->epoch == m->automaton->epoch && m->kept_of[text->place] > 0)
        return m->kept_of[text->place] - 1;
    if (m->epoch != m->automaton->epoch || m->n_kept == m->n_kept_most)
        forget_kept(m);
    uint64_t *bits = m->bits + (size_t)m->n_kept * (size_t)m->n_words;
    memset(bits, 0, (size_t)m->n_words * sizeof *bits);
    const bool ok = find_allowed(m, text, bits);
    if (m->epoch != m->automaton->epoch) { /* what was kept is of other places */
        if (m->n_kept > 0)
            memcpy(m->bits, bits, (size_t)m->n_words * sizeof *bits);
        bits = m->bits;
        forget_kept(m);
    }
    if (!ok)
        return -1;
    int32_t n = 0;
    const bool accepts = dpi_automaton_accepts(m->automaton, text->place);
    for (int32_t i = 0; i < m->n_words; i++) {
        bits[i] |= accepts ? m->ends[i] : 0;
        n += __builtin_popcountll(bits[i]);
    }
    m->n_allowed[m->n_kept] = n;
    m->kept_of[text->place] = ++m->n_kept;
    return m->n_kept - 1;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

dpi_status dpi_mask_text_create(dpi_mask *mask, dpi_mask_text **text, dpi_error *err) {
    if (!mask || !text)
        return dpi_fail(err, DPI_STATUS_ARG, "the mask or the text is NULL");
    dpi_mask_text *t = dpi_calloc(1, sizeof *t);
    if (!t)
        return dpi_no_memory(err, "the tokens that a grammar allows");
    t->mask = mask;
    t->place = dpi_automaton_start(mask->automaton);
    if (t->place < 0 && renew(mask))
        t->place = dpi_automaton_start(mask->automaton);
    if (t->place < 0) {
        free(t);
        return dpi_no_memory(err, "the tokens that a grammar allows");
    }
    t->after = mask->texts;
    if (mask->texts)
        mask->texts->before = t;
    mask->texts = t;
    mask->n_texts++;
    *text = t;
    return DPI_STATUS_OK;
}

void dpi_mask_text_free(dpi_mask_text *t) {
    if (!t)
        return;
    if (t->before)
        t->before->after = t->after;
    else
        t->mask->texts = t->after;
    if (t->after)
        t->after->before = t->before;
    t->mask->n_texts--;
    dpi_wipe_free(t, sizeof *t);
}

dpi_status dpi_mask_text_allowed(dpi_mask_text *t, const uint64_t **bits, int32_t *n_allowed,
                                 dpi_error *err) {
    if (!t || !bits || !n_allowed)
        return dpi_fail(err, DPI_STATUS_ARG, "the text, bits or n_allowed is NULL");
    dpi_mask *m = t->mask;
    if (t->ended) { /* an end goes on as an end */
        *bits = m->ends;
        *n_allowed = 0;
        for (int32_t i = 0; i < m->n_words; i++)
            *n_allowed += __builtin_popcountll(m->ends[i]);
        return DPI_STATUS_OK;
    }
    const int32_t which = find_kept(m, t);
    if (which < 0)
        return dpi_no_memory(err, "the tokens that a grammar allows");
    *bits = m->bits + (size_t)which * (size_t)m->n_words;
    *n_allowed = m->n_allowed[which];
    return *n_allowed > 0 ? DPI_STATUS_OK
                          : dpi_fail(err, DPI_STATUS_LIMIT,
                                     "no token goes on with a text of this grammar: it is too "
                                     "ambiguous to follow");
}

static dpi_status advance(dpi_mask_text *t, const uint8_t *bytes, size_t n, dpi_error *err) {
    int32_t place = DPI_AUTOMATON_FULL;
    for (int attempt = 0; attempt < 2 && place == DPI_AUTOMATON_FULL; attempt++) {
        if (attempt > 0 && !renew(t->mask))
            break;
        place = t->place;
        for (size_t i = 0; i < n && place >= 0; i++)
            place = dpi_automaton_next(t->mask->automaton, place, bytes[i]);
    }
    if (place < 0)
        return dpi_no_memory(err, "the tokens that a grammar allows");
    t->place = place;
    return DPI_STATUS_OK;
}

dpi_status dpi_mask_text_push(dpi_mask_text *t, int32_t token, dpi_error *err) {
    const uint64_t *bits;
    int32_t n_allowed;
    DPI_TRY(dpi_mask_text_allowed(t, &bits, &n_allowed, err));
    const dpi_mask *m = t->mask;
    if (token < 0 || token >= m->n_tokens || !(bits[token / 64] >> (token % 64) & 1))
        return dpi_fail(err, DPI_STATUS_ARG, "token %d is not allowed by the grammar",
                        (int)token);
    if (m->ends[token / 64] >> (token % 64) & 1) {
        t->ended = true;
        return DPI_STATUS_OK;
    }
    return advance(t, m->pool + m->starts[token], m->starts[token + 1] - m->starts[token], err);
}

dpi_status dpi_mask_text_create_begun(dpi_mask *mask, const int32_t *tokens, size_t n,
                                      dpi_mask_text **text, dpi_error *err) {
    dpi_mask_text *t;
    DPI_TRY(dpi_mask_text_create(mask, &t, err));
    dpi_status status = DPI_STATUS_OK;
    for (size_t i = 0; i < n && status == DPI_STATUS_OK; i++)
        status = dpi_mask_text_push(t, tokens[i], err);
    if (status == DPI_STATUS_OK)
        *text = t;
    else
        dpi_mask_text_free(t);
    return status;
}

/* ---- The shortest text ----------------------------------------------------------------------- */

/* Places, as many tokens behind the beginning as are needed: layer by layer. */
typedef struct layers {
    int32_t *todo;  /* [DPI_AUTOMATON_STATES] */
    uint64_t *seen; /* bits [DPI_AUTOMATON_STATES] */
    int32_t n, n_steps;
    uint64_t visits_most; /* of the automaton */
    bool found; /* a place where a text may end */
    bool is_cut; /* one that not all ways are followed from: there may be shorter texts */
} layers;

enum { STEPS_MOST = 1 << 20, VISITS_MOST = 1 << 23, SHORTEST_MOST = 1 << 20 };

static void add_place(layers *l, dpi_automaton *a, int32_t place) {
    if (l->seen[place / 64] >> (place % 64) & 1)
        return;
    allow(l->seen, place);
    l->todo[l->n++] = place;
    l->found = l->found || dpi_automaton_accepts(a, place);
    l->is_cut = l->is_cut || dpi_automaton_is_cut(a, place);
}

/* Adds the places that are a token behind one. False: there is too much to do. */
static bool add_behind(dpi_mask *m, layers *l, int32_t place) {
    const tree *t = &m->tree;
    m->path[0] = place;
    for (uint32_t i = 0; i < t->n;) {
        const uint32_t d = t->depth[i];
        const int32_t next = dpi_automaton_next(m->automaton, m->path[d], t->byte[i]);
        if (next == DPI_AUTOMATON_FULL || ++l->n_steps > STEPS_MOST ||
            m->automaton->n_visits > l->visits_most)
            return false;
        m->path[d + 1] = next;
        if (next != DPI_AUTOMATON_DEAD && t->first[i] < t->first[i + 1])
            add_place(l, m->automaton, next);
        i = next == DPI_AUTOMATON_DEAD ? t->behind[i] : i + 1;
    }
    return true;
}

static int32_t count_layers(dpi_mask *m, layers *l) {
    const int32_t start = dpi_automaton_start(m->automaton);
    int32_t n = 0;
    if (start < 0)
        return 0;
    add_place(l, m->automaton, start);
    for (int32_t i = 0; n < SHORTEST_MOST && !l->found; n++) {
        const int32_t end = l->n;
        for (; i < end && !l->found; i++)
            if (!add_behind(m, l, l->todo[i]))
                return n + 1; /* of the places that are n tokens behind the beginning none ends */
    }
    return n;
}

/* *n_tokens: a text of the grammar has so many tokens at least, without the one that ends it; where
 * little work finds the shortest it has just so many. *l says then what was found on the way; its
 * arrays are gone. */
static dpi_status find_shortest(dpi_mask *m, layers *l, int32_t *n_tokens, dpi_error *err) {
    *l = (layers){.todo = dpi_calloc(DPI_AUTOMATON_STATES, sizeof *l->todo),
                  .seen = dpi_calloc(DPI_AUTOMATON_STATES / 64, sizeof *l->seen),
                  .visits_most = m->automaton->n_visits + VISITS_MOST};
    const bool ok = l->todo && l->seen;
    *n_tokens = ok ? count_layers(m, l) : 0;
    free(l->todo);
    free(l->seen);
    return ok ? DPI_STATUS_OK : dpi_no_memory(err, "the tokens that a grammar allows");
}

dpi_status dpi_mask_check_length(dpi_mask *mask, int32_t n_tokens, dpi_error *err) {
    layers l;
    int32_t least;
    if (!mask)
        return dpi_fail(err, DPI_STATUS_ARG, "the mask is NULL");
    const uint64_t room = mask->automaton->grammar->most_bytes / mask->tree.max_depth;
    if (n_tokens > 0 && (uint64_t)n_tokens > room)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_tokens: found %d, allowed at most %llu: with tokens of up to %u bytes "
                        "more could pass a maxLength or maxItems that is too large to be written "
                        "out",
                        (int)n_tokens, (unsigned long long)room, (unsigned)mask->tree.max_depth);
    DPI_TRY(find_shortest(mask, &l, &least, err));
    if (l.is_cut && (!l.found || least > n_tokens))
        return dpi_fail(err, DPI_STATUS_LIMIT,
                        "a grammar that is too ambiguous: it goes on in more than %d ways at once, "
                        "and no text of at most %d tokens was found by the first of them",
                        DPI_AUTOMATON_LISTS, (int)n_tokens);
    return n_tokens >= least ? DPI_STATUS_OK
                             : dpi_fail(err, DPI_STATUS_ARG,
                                        "n_tokens: found %d, allowed %d or more: no text of the "
                                        "grammar has fewer tokens of this model",
                                        (int)n_tokens, (int)least);
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* Tokens that a text may have, into the pool and `entries`. *n_entries of them. */
static dpi_status copy_tokens(dpi_mask *m, const dpi_mask_token *tokens, entry *entries,
                              uint32_t *n_entries, dpi_error *err) {
    size_t n_bytes = 0;
    for (int32_t i = 0; i < m->n_tokens; i++)
        n_bytes += tokens[i].bytes && !tokens[i].is_end ? tokens[i].n_bytes : 0;
    m->pool = dpi_calloc(n_bytes, 1);
    m->starts = dpi_calloc((size_t)m->n_tokens + 1, sizeof *m->starts);
    m->ends = dpi_calloc((size_t)m->n_words, sizeof *m->ends);
    if (!m->pool || !m->starts || !m->ends || n_bytes > UINT32_MAX)
        return dpi_no_memory(err, "the tokens that a grammar allows");
    uint32_t at = 0, n = 0;
    for (int32_t i = 0; i < m->n_tokens; i++) {
        const dpi_mask_token *t = &tokens[i];
        m->starts[i] = at;
        if (t->is_end)
            allow(m->ends, i);
        if (t->is_end || !t->bytes || t->n_bytes == 0 || t->n_bytes > UINT16_MAX)
            continue;
        memcpy(m->pool + at, t->bytes, t->n_bytes);
        entries[n++] = (entry){m->pool + at, t->n_bytes, i};
        at += t->n_bytes;
    }
    m->starts[m->n_tokens] = at;
    *n_entries = n;
    return DPI_STATUS_OK;
}

/* So that no text comes to a place where nothing goes on. */
static dpi_status check_tokens(const dpi_mask *m, const dpi_grammar *g, const entry *entries,
                               uint32_t n, dpi_error *err) {
    bool has[256] = {false}, has_end = false;
    for (uint32_t i = 0; i < n; i++)
        if (entries[i].n_bytes == 1)
            has[entries[i].bytes[0]] = true;
    for (int32_t i = 0; i < m->n_words; i++)
        has_end = has_end || m->ends[i] != 0;
    if (!has_end)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a grammar with a model that has no end-of-generation token");
    for (int32_t i = 0; i < g->n_states; i++) {
        const dpi_rule_state *s = &g->states[i];
        int32_t byte = s->low;
        while (s->kind == DPI_STATE_BYTE && byte <= s->high && !has[byte])
            byte++;
        if (s->kind == DPI_STATE_BYTE && byte > s->high)
            return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                            "the grammar needs one of the bytes 0x%02x..0x%02x, and no token of "
                            "the model is such a byte alone", s->low, s->high);
    }
    return DPI_STATUS_OK;
}

static dpi_status make(dpi_mask *m, const dpi_grammar *grammar, const dpi_mask_token *tokens,
                       bool drops_space, entry *entries, dpi_error *err) {
    uint32_t n = 0;
    DPI_TRY(copy_tokens(m, tokens, entries, &n, err));
    DPI_TRY(check_tokens(m, grammar, entries, n, err));
    DPI_TRY(make_tree(m, entries, n, err));
    DPI_TRY(dpi_automaton_create(grammar, drops_space, &m->automaton, err));
    m->n_kept_most = KEPT_BYTES / (m->n_words * (int32_t)sizeof *m->bits);
    m->n_kept_most = m->n_kept_most < KEPT_MOST ? m->n_kept_most : KEPT_MOST;
    m->bits = malloc((size_t)m->n_kept_most * (size_t)m->n_words * sizeof *m->bits);
    m->n_allowed = dpi_calloc((size_t)m->n_kept_most, sizeof *m->n_allowed);
    m->kept_of = dpi_calloc(DPI_AUTOMATON_STATES, sizeof *m->kept_of);
    return m->bits && m->n_allowed && m->kept_of
               ? DPI_STATUS_OK
               : dpi_no_memory(err, "the tokens that a grammar allows");
}

dpi_status dpi_mask_make(const dpi_grammar *grammar, const dpi_mask_token *tokens, int32_t n,
                         bool drops_space, dpi_mask **mask, dpi_error *err) {
    dpi_mask *m = dpi_calloc(1, sizeof *m);
    entry *entries = dpi_calloc((size_t)n, sizeof *entries);
    dpi_status status =
        m && entries ? DPI_STATUS_OK : dpi_no_memory(err, "the tokens that a grammar allows");
    if (status == DPI_STATUS_OK) {
        m->n_tokens = n;
        m->n_words = (n + 63) / 64;
        status = make(m, grammar, tokens, drops_space, entries, err);
    }
    free(entries);
    if (status != DPI_STATUS_OK) {
        dpi_mask_free(m);
        return status;
    }
    *mask = m;
    return DPI_STATUS_OK;
}

void dpi_mask_free(dpi_mask *m) {
    if (!m)
        return;
    dpi_automaton_free(m->automaton);
    free(m->tree.byte);
    free(m->tree.depth);
    free(m->tree.behind);
    free(m->tree.first);
    free(m->tree.ids);
    free(m->pool);
    free(m->starts);
    free(m->ends);
    free(m->bits);
    free(m->n_allowed);
    free(m->kept_of);
    free(m->path);
    free(m->way);
    free(m);
}
