/* automaton.h - a grammar as a machine that reads bytes. Internal.
 *
 * A place of a text is a set of items (state of the grammar, rules that are open). Each such set is
 * a state here, a number, made when a text first comes to it. Open rules are a list that shares
 * its ends, so equal lists are one number.
 *
 * At most DPI_AUTOMATON_LISTS lists are followed from a place, the first ones in the order of the
 * grammar, and no more than DPI_GRAMMAR_DEPTH_MAX rules are open: an item that is followed can
 * always come to its end. So the set of a place is a function of the grammar and the bytes before
 * it, and time is linear in the bytes, whatever the grammar is.
 * Trusted: nothing. Threads: belongs to one at a time. */
#ifndef DPI_AUTOMATON_H
#define DPI_AUTOMATON_H

#include "grammar/grammar.h"

typedef struct dpi_automaton dpi_automaton;

enum {
    DPI_AUTOMATON_DEAD = 0,   /* the state without items that does not accept */
    DPI_AUTOMATON_BEGIN = 1,  /* drops_space: of the empty text */
    DPI_AUTOMATON_FULL = -1,  /* dpi_automaton_next: no memory left, or none allowed */
    DPI_AUTOMATON_UNKNOWN = -2,
    DPI_AUTOMATON_LISTS = 1024, /* of open rules, that are followed from one place */
    DPI_AUTOMATON_ITEMS = 1 << 22,
    DPI_AUTOMATON_OPEN = 1 << 18,
    DPI_AUTOMATON_STATES = 1 << 17
};

/* The items of a place. */
typedef struct dpi_automaton_set {
    uint32_t first, n; /* in dpi_automaton.items */
    uint64_t hash;
    bool accepts; /* the text may end here */
    bool is_cut;  /* there are more items than are followed */
} dpi_automaton_set;

typedef struct dpi_automaton_item {
    int32_t state; /* of the grammar, a BYTE */
    int32_t open;  /* a dpi_automaton_open; 0: none */
} dpi_automaton_item;

/* A rule that is open: it goes on at `back`, in what `outer` has. */
typedef struct dpi_automaton_open {
    int32_t back, outer;
    int32_t depth;    /* of it and its outer ones */
    uint32_t closure; /* the last one that followed the list */
} dpi_automaton_open;

struct dpi_automaton {
    const dpi_grammar *grammar;
    uint8_t class_of[256]; /* bytes of one class lead from everywhere to the same places */
    uint8_t byte_of[256];  /* one of each class */
    int32_t n_classes;
    int32_t *next; /* [n_states, n_classes] */
    dpi_automaton_set *sets; /* [n_states] */
    dpi_automaton_item *items;
    dpi_automaton_open *open;
    int32_t *set_slots, *open_slots; /* hash tables; 0: empty */
    uint64_t *visited; /* a hash table: (state, open) + 1 of this closure, else 0 */
    struct dpi_automaton_walk *walk;
    size_t next_capacity, sets_capacity, items_capacity, open_capacity;
    size_t n_items, n_open;
    int32_t n_states;
    bool drops_space;
    uint64_t n_visits; /* of items, in all closures: what following has cost */
    uint32_t epoch; /* grows with each renew: the numbers of before mean nothing */
};

/* The grammar stays the caller's. `drops_space`: a space at the beginning of a text does not count.
 * Errors: MEMORY. */
dpi_status dpi_automaton_create(const dpi_grammar *grammar, bool drops_space,
                                dpi_automaton **automaton, dpi_error *err);
void dpi_automaton_free(dpi_automaton *automaton); /* NULL is allowed */

/* The state of the empty text; FULL without memory. */
int32_t dpi_automaton_start(dpi_automaton *automaton);
/* Whether a text may end there; whether the grammar has more ways from there than are followed. */
bool dpi_automaton_accepts(dpi_automaton *automaton, int32_t state);
bool dpi_automaton_is_cut(dpi_automaton *automaton, int32_t state);
/* Forgets all states but states[n], which get new numbers. False: no memory; all are forgotten. */
bool dpi_automaton_renew(dpi_automaton *automaton, int32_t *states, int32_t n);

/* automaton.c: what next has not got yet. */
int32_t dpi_automaton_compute(dpi_automaton *automaton, int32_t state, int32_t class);

/* The state after one more byte, or FULL: then a renew makes room. */
static inline int32_t dpi_automaton_next(dpi_automaton *a, int32_t state, uint8_t byte) {
    const int32_t class = a->class_of[byte];
    const int32_t next = a->next[(size_t)state * (size_t)a->n_classes + (size_t)class];
    return next != DPI_AUTOMATON_UNKNOWN ? next : dpi_automaton_compute(a, state, class);
}

/* The state after a whole text, with renews where they are needed; FULL: no memory. */
int32_t dpi_automaton_read(dpi_automaton *automaton, const uint8_t *bytes, size_t n);

#endif
