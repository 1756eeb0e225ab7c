/* states.c - nodes to states, from the end to the beginning: what comes next is there already. */
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "grammar/grammar.h"

enum { STEPS_MAX = 1 << 20 }; /* of compile: repetitions of nothing make no state */

typedef struct maker {
    const dpi_rules *rules;
    dpi_grammar *grammar;
    size_t capacity;
    int32_t n_steps;
    dpi_error *err;
} maker;

static dpi_status add_state(maker *m, dpi_rule_state state, int32_t *index) {
    dpi_grammar *g = m->grammar;
    if (g->n_states == DPI_GRAMMAR_STATES_MAX)
        return dpi_fail(m->err, DPI_STATUS_LIMIT,
                        "a grammar of more than %d states once its repetitions are written out",
                        DPI_GRAMMAR_STATES_MAX);
    if (!dpi_grow(&g->states, &m->capacity, (size_t)g->n_states + 1, sizeof state))
        return dpi_no_memory(m->err, "the states of a grammar");
    *index = g->n_states++;
    g->states[*index] = state;
    return DPI_STATUS_OK;
}

/* ---- Characters ------------------------------------------------------------------------------ */

static int encode(uint32_t c, uint8_t bytes[4]) {
    const int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, c >>= 6)
        bytes[i] = (uint8_t)(0x80 | (c & 0x3f));
    bytes[0] = (uint8_t)(lead[n] | c);
    return n;
}

/* Code points whose UTF-8 differs by ranges of each byte alone: byte by byte, and *start reads them
 * or what it read before. */
static dpi_status add_bytes(maker *m, dpi_code_range r, int32_t next, int32_t *start) {
    uint8_t low[4], high[4];
    int32_t at = next;
    const int n = encode(r.low, low);
    (void)encode(r.high, high);
    for (int i = n - 1; i >= 0; i--)
        DPI_TRY(add_state(
            m, (dpi_rule_state){.kind = DPI_STATE_BYTE, .low = low[i], .high = high[i], .next = at},
            &at));
    if (*start < 0) {
        *start = at;
        return DPI_STATUS_OK;
    }
    return add_state(m, (dpi_rule_state){.kind = DPI_STATE_SPLIT, .next = at, .other = *start},
                     start);
}

/* Where a range has to be cut: its first part ends at *middle. */
static bool is_cut(dpi_code_range r, uint32_t *middle) {
    static const uint32_t ends[] = {0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (r.low <= ends[i] && ends[i] < r.high) {
            *middle = ends[i];
            return true;
        }
    const int n_tail = r.high < 0x80 ? 0 : r.high < 0x800 ? 1 : r.high < 0x10000 ? 2 : 3;
    for (int i = 1; i <= n_tail; i++) {
        const uint32_t m = (1u << (6 * i)) - 1;
        if ((r.low & ~m) == (r.high & ~m))
            continue;
        *middle = (r.low & m) != 0 ? r.low | m : (r.high & ~m) - 1;
        if ((r.low & m) != 0 || (r.high & m) != m)
            return true;
    }
    return false;
}

static dpi_status add_range(maker *m, dpi_code_range r, int32_t next, int32_t *start) {
    for (uint32_t middle; is_cut(r, &middle); r.low = middle + 1)
        DPI_TRY(add_range(m, (dpi_code_range){r.low, middle}, next, start));
    const bool surrogates = r.low >= 0xd800 && r.high <= 0xdfff; /* are no characters */
    return surrogates ? DPI_STATUS_OK : add_bytes(m, r, next, start);
}

static dpi_status add_chars(maker *m, const dpi_node *node, int32_t next, int32_t *start) {
    *start = -1;
    for (int32_t i = 0; i < node->n; i++)
        DPI_TRY(add_range(m, m->rules->ranges[node->first + i], next, start));
    return *start >= 0 ? DPI_STATUS_OK
                       : dpi_fail(m->err, DPI_STATUS_FORMAT,
                                  "a class of characters with surrogates alone");
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static dpi_status add_node(maker *m, int32_t node, int32_t next, int32_t *start);

static dpi_status add_choice(maker *m, const dpi_node *node, int32_t next, int32_t *start) {
    int32_t one;
    *start = -1;
    for (int32_t child = node->first; child >= 0; child = m->rules->nodes[child].before) {
        DPI_TRY(add_node(m, child, next, &one));
        if (*start < 0)
            *start = one;
        else
            DPI_TRY(add_state(
                m, (dpi_rule_state){.kind = DPI_STATE_SPLIT, .next = one, .other = *start}, start));
    }
    return DPI_STATUS_OK;
}

/* x{2,4} is x x (x (x)?)?, and x* is a loop. */
static dpi_status add_repeat(maker *m, const dpi_node *node, int32_t next, int32_t *start) {
    int32_t at = next, body;
    if (node->max < 0) {
        DPI_TRY(add_state(m, (dpi_rule_state){.kind = DPI_STATE_SPLIT, .other = next}, &at));
        DPI_TRY(add_node(m, node->first, at, &body));
        m->grammar->states[at].next = body;
    }
    for (int32_t i = node->min; i < node->max; i++) {
        DPI_TRY(add_node(m, node->first, at, &body));
        DPI_TRY(
            add_state(m, (dpi_rule_state){.kind = DPI_STATE_SPLIT, .next = body, .other = next},
                      &at));
    }
    for (int32_t i = 0; i < node->min; i++)
        DPI_TRY(add_node(m, node->first, at, &at));
    *start = at;
    return DPI_STATUS_OK;
}

static dpi_status add_node(maker *m, int32_t index, int32_t next, int32_t *start) {
    const dpi_node *node = &m->rules->nodes[index];
    if (++m->n_steps > STEPS_MAX)
        return dpi_fail(m->err, DPI_STATUS_LIMIT,
                        "a grammar of more than %d parts once its repetitions are written out",
                        STEPS_MAX);
    switch ((dpi_node_kind)node->kind) {
    case DPI_NODE_CHARS: return add_chars(m, node, next, start);
    case DPI_NODE_RULE:
        return add_state(
            m, (dpi_rule_state){.kind = DPI_STATE_CALL, .next = next, .other = node->first}, start);
    case DPI_NODE_CHOICE: return add_choice(m, node, next, start);
    case DPI_NODE_REPEAT: return add_repeat(m, node, next, start);
    case DPI_NODE_LIST: break;
    }
    for (int32_t child = node->first; child >= 0; child = m->rules->nodes[child].before)
        DPI_TRY(add_node(m, child, next, &next));
    *start = next;
    return DPI_STATUS_OK;
}

dpi_status dpi_states_make(dpi_rules *rules, dpi_grammar *grammar, dpi_error *err) {
    maker m = {.rules = rules, .grammar = grammar, .err = err};
    int32_t end = -1;
    DPI_TRY(add_state(&m, (dpi_rule_state){.kind = DPI_STATE_END}, &end));
    for (int32_t i = 0; i < rules->n_rules; i++)
        DPI_TRY(add_node(&m, rules->rules[i].node, end, &rules->rules[i].start));
    return DPI_STATUS_OK;
}
