/* grammar.h - the inside of a dpi_grammar: rules as nodes, as they are written, and as states, as
 * they are followed. Internal; the public contract is in dpinfer/grammar.h.
 *
 *     text  -> gbnf.c: nodes  -> states.c: states  -> check.c: what is refused
 *
 * States read bytes, not characters: a class of characters is states for the UTF-8 of its ranges,
 * so whatever is accepted is UTF-8. Trusted: nothing. Every count has a limit below, and all work
 * is linear in them. Threads: a grammar that is made never changes. */
#ifndef DPI_GRAMMAR_H
#define DPI_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dpinfer/grammar.h"

enum {
    DPI_GRAMMAR_BYTES_MAX = 1 << 20,  /* of a grammar's text */
    DPI_GRAMMAR_RULES_MAX = 4096,
    DPI_GRAMMAR_STATES_MAX = 1 << 16, /* after repetitions are written out */
    DPI_GRAMMAR_NESTING_MAX = 64,     /* parentheses */
    DPI_GRAMMAR_REPEAT_MAX = 10000,   /* m and n of {m,n} */
    DPI_GRAMMAR_DEPTH_MAX = 256,      /* rules that are open at a place of a text */
    DPI_CODE_POINT_MAX = 0x10ffff
};

/* ---- Nodes ----------------------------------------------------------------------------------- */

typedef enum dpi_node_kind {
    DPI_NODE_CHARS,  /* one character of the ranges [first, first + n) */
    DPI_NODE_RULE,   /* the rule `first` */
    DPI_NODE_LIST,   /* the children one after the other; without any: nothing */
    DPI_NODE_CHOICE, /* one of the children */
    DPI_NODE_REPEAT  /* the child min to max times; max -1: without end */
} dpi_node_kind;

typedef struct dpi_node {
    int32_t kind;   /* a dpi_node_kind */
    int32_t first;  /* CHARS: range. RULE: rule. Else the last child, or -1 */
    int32_t before; /* the child before this one, of the same node; -1: it is the first */
    int32_t n;      /* CHARS: ranges */
    int32_t min, max;
} dpi_node;

typedef struct dpi_code_range {
    uint32_t low, high; /* code points, both included */
} dpi_code_range;

typedef struct dpi_rule {
    const char *name; /* [n_name] in the grammar's text */
    size_t n_name;
    int32_t node; /* -1: used and not defined */
    int32_t start; /* its first state */
    bool is_empty_too; /* it may read nothing */
} dpi_rule;

typedef struct dpi_rules {
    dpi_rule *rules; /* [n_rules] */
    dpi_node *nodes;
    dpi_code_range *ranges;
    int32_t *slots; /* [DPI_RULE_SLOTS] rules by the hash of their name; -1: none */
    int32_t n_rules, n_nodes, n_ranges;
    size_t rules_capacity, nodes_capacity, ranges_capacity;
} dpi_rules;

enum { DPI_RULE_SLOTS = 4 * DPI_GRAMMAR_RULES_MAX };

/* gbnf.c: the rules of a text, which must stay while they are used. Freed by the caller, after a
 * failure too. Errors: FORMAT with the line, LIMIT, MEMORY. */
dpi_status dpi_rules_read(const char *text, size_t n_bytes, dpi_rules *rules, dpi_error *err);
void dpi_rules_free(dpi_rules *rules);

/* ---- States ---------------------------------------------------------------------------------- */

typedef enum dpi_state_kind {
    DPI_STATE_END,   /* of a rule */
    DPI_STATE_BYTE,  /* reads one byte of low..high */
    DPI_STATE_SPLIT, /* next or other */
    DPI_STATE_CALL   /* the rule `other`, then next */
} dpi_state_kind;

typedef struct dpi_rule_state {
    uint8_t kind, low, high;
    uint8_t reserved;
    int32_t next, other;
    int32_t height; /* rules that have to be open at once from here to the end of this rule */
} dpi_rule_state;

struct dpi_grammar {
    dpi_rule_state *states; /* [n_states]; 0 is END, of all rules */
    int32_t *starts;   /* [n_rules] */
    int32_t n_states, n_rules;
    int32_t root; /* a rule */
    uint64_t most_bytes; /* longer texts may pass a bound of a schema that the states have not */
};

/* states.c: fills the grammar's states, and rules[].start. Errors: LIMIT, MEMORY. */
dpi_status dpi_states_make(dpi_rules *rules, dpi_grammar *grammar, dpi_error *err);

#endif
