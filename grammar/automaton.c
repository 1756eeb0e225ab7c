/* automaton.c - see automaton.h. */
#include "grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"

enum {
    SET_SLOTS = 2 * DPI_AUTOMATON_STATES,
    OPEN_SLOTS = 2 * DPI_AUTOMATON_OPEN,
    VISITS = 1 << 16,        /* items of one closure, those that read no byte included */
    VISIT_SLOTS = 2 * VISITS
};

/* A closure on its way: items that are not looked at yet, and those that were found. */
typedef struct dpi_automaton_walk {
    dpi_automaton_item todo[VISITS];
    dpi_automaton_item found[VISITS];
    uint32_t used[VISITS]; /* slots of `visited` */
    int32_t n_todo, n_found, n_used, n_lists;
    uint32_t number; /* of the closure */
    bool accepts, is_cut, failed;
} walk;

/* ---- Open rules ------------------------------------------------------------------------------ */

/* The list (back, outer), which is made once; -1: no room. */
static int32_t open_rule(dpi_automaton *a, int32_t back, int32_t outer) {
    const int32_t key[] = {back, outer};
    size_t slot = (size_t)dpi_hash(DPI_HASH_INIT, key, sizeof key) % OPEN_SLOTS;
    for (; a->open_slots[slot] != 0; slot = (slot + 1) % OPEN_SLOTS) {
        const dpi_automaton_open *o = &a->open[a->open_slots[slot]];
        if (o->back == back && o->outer == outer)
            return a->open_slots[slot];
    }
    if (a->n_open >= DPI_AUTOMATON_OPEN ||
        !dpi_grow(&a->open, &a->open_capacity, a->n_open + 1, sizeof *a->open))
        return -1;
    a->open[a->n_open] = (dpi_automaton_open){back, outer, a->open[outer].depth + 1, 0};
    return a->open_slots[slot] = (int32_t)a->n_open++;
}

/* ---- Closures -------------------------------------------------------------------------------- */

/* Whether the item is a new one of this closure. */
static bool visit(dpi_automaton *a, walk *w, dpi_automaton_item item) {
    const uint64_t key = ((uint64_t)item.open << 32 | (uint32_t)item.state) + 1;
    uint32_t slot = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 40) % VISIT_SLOTS;
    for (; a->visited[slot] != 0; slot = (slot + 1) % VISIT_SLOTS)
        if (a->visited[slot] == key)
            return false;
    if (w->n_used == VISITS) {
        w->is_cut = true;
        return false;
    }
    a->visited[slot] = key;
    w->used[w->n_used++] = slot;
    return true;
}

/* An item that can come to its end within the allowed depth. The last one added is the first one
 * looked at. */
static void push(dpi_automaton *a, walk *w, int32_t state, int32_t open) {
    const dpi_automaton_item item = {state, open};
    const int32_t depth = a->open[open].depth;
    if (depth + a->grammar->states[state].height <= DPI_GRAMMAR_DEPTH_MAX && visit(a, w, item))
        w->todo[w->n_todo++] = item;
}

static bool is_followed(dpi_automaton *a, walk *w, int32_t open) {
    uint32_t *closure = &a->open[open].closure;
    if (*closure != w->number) {
        if (w->n_lists == DPI_AUTOMATON_LISTS) {
            w->is_cut = true;
            return false;
        }
        w->n_lists++;
        *closure = w->number;
    }
    return true;
}

static void look_at(dpi_automaton *a, walk *w, dpi_automaton_item item) {
    const dpi_grammar *g = a->grammar;
    const dpi_rule_state s = g->states[item.state];
    const dpi_automaton_open o = a->open[item.open];
    switch ((dpi_state_kind)s.kind) {
    case DPI_STATE_BYTE:
        if (is_followed(a, w, item.open))
            w->found[w->n_found++] = item;
        return;
    case DPI_STATE_SPLIT:
        push(a, w, s.other, item.open);
        push(a, w, s.next, item.open);
        return;
    case DPI_STATE_CALL: { /* what is called last leaves nothing open */
        const int32_t inner = s.next == 0 ? item.open : open_rule(a, s.next, item.open);
        w->failed = w->failed || inner < 0;
        if (inner >= 0)
            push(a, w, g->starts[s.other], inner);
        return;
    }
    case DPI_STATE_END:
        if (item.open == 0)
            w->accepts = true;
        else
            push(a, w, o.back, o.outer);
        return;
    }
}

static void begin(walk *w) {
    w->n_todo = w->n_found = w->n_used = w->n_lists = 0;
    w->number++;
    w->accepts = w->is_cut = w->failed = false;
}

static void follow(dpi_automaton *a, walk *w) {
    while (w->n_todo > 0)
        look_at(a, w, w->todo[--w->n_todo]);
}

/* ---- States ---------------------------------------------------------------------------------- */

static int32_t find_set(const dpi_automaton *a, const walk *w, uint64_t hash, size_t *slot) {
    const size_t n_bytes = (size_t)w->n_found * sizeof *w->found;
    *slot = (size_t)(hash % SET_SLOTS);
    for (; a->set_slots[*slot] != 0; *slot = (*slot + 1) % SET_SLOTS) {
        const int32_t state = a->set_slots[*slot] - 1;
        const dpi_automaton_set *s = &a->sets[state];
        if (s->hash == hash && s->accepts == w->accepts && s->is_cut == w->is_cut &&
            s->n == (uint32_t)w->n_found &&
            memcmp(a->items + s->first, w->found, n_bytes) == 0)
            return state;
    }
    return -1;
}

static bool grow(dpi_automaton *a, size_t n_items) {
    const size_t n = (size_t)a->n_states + 1;
    const size_t row = (size_t)a->n_classes * sizeof *a->next;
    return n <= DPI_AUTOMATON_STATES && a->n_items + n_items < DPI_AUTOMATON_ITEMS &&
           dpi_grow(&a->next, &a->next_capacity, n, row) &&
           dpi_grow(&a->sets, &a->sets_capacity, n, sizeof *a->sets) &&
           dpi_grow(&a->items, &a->items_capacity, a->n_items + n_items + 1, sizeof *a->items);
}

/* The state of what the walk has found. */
static int32_t state_of(dpi_automaton *a, walk *w) {
    const uint64_t hash = dpi_hash(w->accepts ? DPI_HASH_INIT : 0, w->found,
                                   (size_t)w->n_found * sizeof *w->found);
    size_t slot;
    if (w->failed)
        return DPI_AUTOMATON_FULL;
    const int32_t known = find_set(a, w, hash, &slot);
    if (known >= 0)
        return known;
    if (!grow(a, (size_t)w->n_found))
        return DPI_AUTOMATON_FULL;
    const int32_t state = a->n_states++;
    a->sets[state] = (dpi_automaton_set){.first = (uint32_t)a->n_items, .n = (uint32_t)w->n_found,
                                         .hash = hash, .accepts = w->accepts,
                                         .is_cut = w->is_cut};
    memcpy(a->items + a->n_items, w->found, (size_t)w->n_found * sizeof *w->found);
    a->n_items += (size_t)w->n_found;
    for (int32_t i = 0; i < a->n_classes; i++)
        a->next[(size_t)state * (size_t)a->n_classes + (size_t)i] =
            w->n_found > 0 ? DPI_AUTOMATON_UNKNOWN : DPI_AUTOMATON_DEAD;
    a->set_slots[slot] = state + 1;
    return state;
}

static int32_t finish(dpi_automaton *a, walk *w) {
    follow(a, w);
    for (int32_t i = 0; i < w->n_used; i++)
        a->visited[w->used[i]] = 0;
    a->n_visits += (uint64_t)w->n_used;
    return state_of(a, w);
}

/* DEAD and BEGIN are the first states. What the walk has found stays. */
static bool make_first(dpi_automaton *a) {
    walk *w = a->walk;
    const int32_t n_found = w->n_found;
    const bool accepts = w->accepts, is_cut = w->is_cut;
    if (a->n_states > 0)
        return true;
    w->n_found = 0;
    w->accepts = w->is_cut = w->failed = false;
    bool ok = state_of(a, w) == DPI_AUTOMATON_DEAD;
    w->n_found = n_found;
    w->accepts = accepts;
    w->is_cut = is_cut;
    if (!a->drops_space || !ok)
        return ok;
    ok = grow(a, 0);
    for (int32_t i = 0; i < a->n_classes && ok; i++)
        a->next[a->n_classes + i] = DPI_AUTOMATON_UNKNOWN;
    if (ok)
        a->sets[a->n_states++] = (dpi_automaton_set){0};
    return ok;
}

/* The state of the grammar's beginning. */
static int32_t root_state(dpi_automaton *a) {
    walk *w = a->walk;
    if (!make_first(a))
        return DPI_AUTOMATON_FULL;
    begin(w);
    push(a, w, a->grammar->starts[a->grammar->root], 0);
    return finish(a, w);
}

int32_t dpi_automaton_start(dpi_automaton *a) {
    if (!a->drops_space)
        return root_state(a);
    return make_first(a) ? DPI_AUTOMATON_BEGIN : DPI_AUTOMATON_FULL;
}

static bool is_begin(const dpi_automaton *a, int32_t state) {
    return a->drops_space && state == DPI_AUTOMATON_BEGIN;
}

bool dpi_automaton_accepts(dpi_automaton *a, int32_t state) {
    const int32_t known = is_begin(a, state) ? root_state(a) : state;
    return known >= 0 && a->sets[known].accepts;
}

bool dpi_automaton_is_cut(dpi_automaton *a, int32_t state) {
    const int32_t known = is_begin(a, state) ? root_state(a) : state;
    return known >= 0 && a->sets[known].is_cut;
}

/* The items that read a byte of the class, in their order: what was added last is looked at first,
 * so they are added from the last one. */
static int32_t follow_items(dpi_automaton *a, int32_t state, uint8_t byte) {
    const dpi_automaton_set set = a->sets[state];
    walk *w = a->walk;
    begin(w);
    for (uint32_t i = set.n; i-- > 0;) {
        const dpi_automaton_item item = a->items[set.first + i];
        const dpi_rule_state *s = &a->grammar->states[item.state];
        if (s->low <= byte && byte <= s->high)
            push(a, w, s->next, item.open);
    }
    return finish(a, w);
}

int32_t dpi_automaton_compute(dpi_automaton *a, int32_t state, int32_t class) {
    const uint8_t byte = a->byte_of[class];
    int32_t next, root = state;
    if (is_begin(a, state) && (root = root_state(a)) == DPI_AUTOMATON_FULL)
        return DPI_AUTOMATON_FULL;
    if (root != state)
        next = byte == ' ' ? root : dpi_automaton_next(a, root, byte);
    else
        next = follow_items(a, state, byte);
    if (next != DPI_AUTOMATON_FULL)
        a->next[(size_t)state * (size_t)a->n_classes + (size_t)class] = next;
    return next;
}

static void reset(dpi_automaton *a) {
    memset(a->set_slots, 0, SET_SLOTS * sizeof *a->set_slots);
    memset(a->open_slots, 0, OPEN_SLOTS * sizeof *a->open_slots);
    a->n_states = 0;
    a->n_items = 0;
    a->n_open = 1; /* 0 is none */
    a->epoch++;
}

/* States as numbers that mean the same without the lists of before. */
typedef struct saved {
    int32_t *at;
    size_t n, capacity;
    bool failed;
} saved;

static void save(saved *to, int32_t number) {
    to->failed = to->failed || !dpi_grow(&to->at, &to->capacity, to->n + 1, sizeof *to->at);
    if (!to->failed)
        to->at[to->n++] = number;
}

/* accepts, is_cut, then for each item its state, the depth of its list and what is in it; -1. */
static void save_state(const dpi_automaton *a, int32_t state, saved *to) {
    const dpi_automaton_set set = a->sets[state];
    save(to, set.accepts);
    save(to, set.is_cut);
    for (uint32_t i = 0; i < set.n; i++) {
        const dpi_automaton_item item = a->items[set.first + i];
        save(to, item.state);
        save(to, a->open[item.open].depth);
        for (int32_t at = item.open; at != 0; at = a->open[at].outer)
            save(to, a->open[at].back);
    }
    save(to, -1);
}

static int32_t restore_state(dpi_automaton *a, const int32_t **from) {
    const int32_t *at = *from;
    walk *w = a->walk;
    begin(w);
    w->accepts = *at++;
    for (w->is_cut = *at++; *at >= 0;) {
        const int32_t state = *at++, depth = *at++;
        int32_t open = 0;
        for (int32_t k = depth; k-- > 0 && open >= 0;) /* the outermost one is the last */
            open = open_rule(a, at[k], open);
        at += depth;
        w->failed = w->failed || open < 0;
        w->found[w->n_found++] = (dpi_automaton_item){state, open};
    }
    *from = at + 1;
    return state_of(a, w);
}

bool dpi_automaton_renew(dpi_automaton *a, int32_t *states, int32_t n) {
    saved kept = {0};
    for (int32_t i = 0; i < n; i++)
        if (!is_begin(a, states[i]))
            save_state(a, states[i], &kept);
    const int32_t *from = kept.at;
    reset(a);
    bool ok = !kept.failed && make_first(a);
    for (int32_t i = 0; i < n && ok; i++) {
        if (is_begin(a, states[i]))
            continue;
        states[i] = restore_state(a, &from);
        ok = states[i] >= 0;
    }
    free(kept.at);
    return ok;
}

int32_t dpi_automaton_read(dpi_automaton *a, const uint8_t *bytes, size_t n) {
    int32_t state = dpi_automaton_start(a);
    for (size_t i = 0; i < n && state > DPI_AUTOMATON_DEAD; i++) {
        int32_t next = dpi_automaton_next(a, state, bytes[i]);
        if (next == DPI_AUTOMATON_FULL) {
            const bool ok = dpi_automaton_renew(a, &state, 1);
            next = ok ? dpi_automaton_next(a, state, bytes[i]) : DPI_AUTOMATON_FULL;
        }
        state = next;
    }
    return state;
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* Bytes between which no state of the grammar makes a difference. */
static void find_classes(dpi_automaton *a) {
    bool begins[257] = {true};
    for (int32_t i = 0; i < a->grammar->n_states; i++)
        if (a->grammar->states[i].kind == DPI_STATE_BYTE) {
            begins[a->grammar->states[i].low] = true;
            begins[a->grammar->states[i].high + 1] = true;
        }
    begins[' '] = begins[' '] || a->drops_space;
    begins[' ' + 1] = begins[' ' + 1] || a->drops_space;
    for (int32_t byte = 0; byte < 256; byte++) {
        if (begins[byte])
            a->byte_of[a->n_classes++] = (uint8_t)byte;
        a->class_of[byte] = (uint8_t)(a->n_classes - 1);
    }
}

dpi_status dpi_automaton_create(const dpi_grammar *grammar, bool drops_space,
                                dpi_automaton **automaton, dpi_error *err) {
    dpi_automaton *a = dpi_calloc(1, sizeof *a);
    if (a) {
        a->grammar = grammar;
        a->drops_space = drops_space;
        find_classes(a);
        /* Large, and mostly not touched: the system's zeros. */
        a->set_slots = calloc(SET_SLOTS, sizeof *a->set_slots);
        a->open_slots = calloc(OPEN_SLOTS, sizeof *a->open_slots);
        a->visited = calloc(VISIT_SLOTS, sizeof *a->visited);
        a->walk = calloc(1, sizeof *a->walk);
        a->open_capacity = 64;
        a->open = dpi_calloc(a->open_capacity, sizeof *a->open);
        a->n_open = 1;
    }
    if (!a || !a->set_slots || !a->open_slots || !a->visited || !a->walk || !a->open) {
        dpi_automaton_free(a);
        return dpi_no_memory(err, "the places of a grammar");
    }
    *automaton = a;
    return DPI_STATUS_OK;
}

void dpi_automaton_free(dpi_automaton *a) {
    if (!a)
        return;
    free(a->next);
    free(a->sets);
    free(a->items);
    free(a->open);
    free(a->set_slots);
    free(a->open_slots);
    free(a->visited);
    free(a->walk);
    free(a);
}

dpi_status dpi_grammar_accepts(const dpi_grammar *grammar, const char *text, size_t n_bytes,
                               int32_t *accepts, dpi_error *err) {
    dpi_automaton *a;
    if (!grammar || (!text && n_bytes > 0) || !accepts)
        return dpi_fail(err, DPI_STATUS_ARG, "the grammar, the text or accepts is NULL");
    DPI_TRY(dpi_automaton_create(grammar, false, &a, err));
    const int32_t state = dpi_automaton_read(a, (const uint8_t *)text, n_bytes);
    *accepts = state >= 0 && dpi_automaton_accepts(a, state) && n_bytes <= grammar->most_bytes;
    dpi_automaton_free(a);
    return state >= 0 ? DPI_STATUS_OK : dpi_no_memory(err, "the places of a grammar");
}
