/* gbnf.c - the text of a grammar to nodes. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/utf8.h"
#include "grammar/grammar.h"

typedef struct reader {
    const char *text;
    size_t n_bytes, at;
    int32_t nesting;
    dpi_rules *rules;
    dpi_error *err;
} reader;

static dpi_status refuse(const reader *r, const char *why) {
    int32_t line = 1;
    size_t at = r->at < r->n_bytes ? r->at : r->n_bytes;
    if (at == r->n_bytes) /* the end is that of the last line, not a line behind it */
        while (at > 0 && (r->text[at - 1] == '\n' || r->text[at - 1] == '\r'))
            at--;
    for (size_t i = 0; i < at; i++)
        line += r->text[i] == '\n';
    return dpi_fail_at(r->err, DPI_STATUS_FORMAT, r->at, "grammar, line %d: %s", (int)line, why);
}

static dpi_status add_node(reader *r, dpi_node node, int32_t *index) {
    dpi_rules *rules = r->rules;
    if (!dpi_grow(&rules->nodes, &rules->nodes_capacity, (size_t)rules->n_nodes + 1, sizeof node))
        return dpi_no_memory(r->err, "the rules of a grammar");
    node.before = -1;
    *index = rules->n_nodes++;
    rules->nodes[*index] = node;
    return DPI_STATUS_OK;
}

static dpi_status add_range(reader *r, uint32_t low, uint32_t high) {
    dpi_rules *rules = r->rules;
    if (!dpi_grow(&rules->ranges, &rules->ranges_capacity, (size_t)rules->n_ranges + 1,
                  sizeof *rules->ranges))
        return dpi_no_memory(r->err, "the rules of a grammar");
    rules->ranges[rules->n_ranges++] = (dpi_code_range){low, high};
    return DPI_STATUS_OK;
}

/* The children of one node, as they come. */
typedef struct children {
    int32_t last, n;
} children;

static void add_child(const reader *r, children *c, int32_t node) {
    r->rules->nodes[node].before = c->last;
    c->last = node;
    c->n++;
}

/* One child alone is itself. */
static dpi_status close_children(reader *r, int32_t kind, const children *c, int32_t *node) {
    if (c->n == 1) {
        *node = c->last;
        return DPI_STATUS_OK;
    }
    return add_node(r, (dpi_node){.kind = kind, .first = c->last}, node);
}

/* ---- Characters ------------------------------------------------------------------------------ */

static char peek(const reader *r) { return r->at < r->n_bytes ? r->text[r->at] : '\0'; }

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* Spaces and comments, and ends of lines where a rule may go on. */
static void skip(reader *r, bool lines) {
    for (; r->at < r->n_bytes; r->at++) {
        const char c = r->text[r->at];
        if (c == '#')
            while (r->at + 1 < r->n_bytes && r->text[r->at + 1] != '\n')
                r->at++;
        else if (c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r')))
            return;
    }
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool is_code_point(uint32_t c) {
    return c <= DPI_CODE_POINT_MAX && !(c >= 0xd800 && c <= 0xdfff);
}

static dpi_status read_hex(reader *r, int n_digits, uint32_t *c) {
    *c = 0;
    for (int i = 0; i < n_digits; i++, r->at++) {
        const int digit = r->at < r->n_bytes ? hex_digit(r->text[r->at]) : -1;
        if (digit < 0)
            return refuse(r, "an escape needs more hexadecimal digits: \\xHH, \\uHHHH or "
                             "\\UHHHHHHHH");
        *c = *c << 4 | (uint32_t)digit;
    }
    return is_code_point(*c) ? DPI_STATUS_OK : refuse(r, "an escape that is no character");
}

static dpi_status read_escape(reader *r, uint32_t *c) {
    static const char plain[] = "\\\"[]-^/", letters[] = "nrt", meant[] = "\n\r\t";
    const char e = r->at < r->n_bytes ? r->text[r->at++] : '\0';
    const char *at = e ? strchr(letters, e) : NULL;
    *c = at ? (unsigned char)meant[at - letters] : (unsigned char)e;
    if (at || (e && strchr(plain, e)))
        return DPI_STATUS_OK;
    if (e == 'x' || e == 'u' || e == 'U')
        return read_hex(r, e == 'x' ? 2 : e == 'u' ? 4 : 8, c);
    return refuse(r, "an escape that is not known: \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\/ \\xHH "
                     "\\uHHHH \\UHHHHHHHH are");
}

/* The caller has looked: there is a byte. */
static dpi_status read_char(reader *r, uint32_t *c) {
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    if (peek(r) == '\\') {
        r->at++;
        return read_escape(r, c);
    }
    const size_t n = dpi_utf8_bytes(r->text + r->at, r->n_bytes - r->at);
    if (n == 0)
        return refuse(r, "a byte that is no UTF-8");
    *c = (unsigned char)r->text[r->at] & mask[n];
    for (size_t i = 1; i < n; i++)
        *c = *c << 6 | ((unsigned char)r->text[r->at + i] & 0x3f);
    r->at += n;
    return DPI_STATUS_OK;
}

static dpi_status add_chars(reader *r, int32_t first, int32_t *node) {
    return add_node(
        r, (dpi_node){.kind = DPI_NODE_CHARS, .first = first, .n = r->rules->n_ranges - first},
        node);
}

static dpi_status read_literal(reader *r, int32_t *node) {
    children c = {.last = -1};
    for (r->at++; r->at < r->n_bytes && peek(r) != '"' && peek(r) != '\n';) {
        uint32_t code;
        int32_t child = -1;
        const int32_t first = r->rules->n_ranges;
        DPI_TRY(read_char(r, &code));
        DPI_TRY(add_range(r, code, code));
        DPI_TRY(add_chars(r, first, &child));
        add_child(r, &c, child);
    }
    if (peek(r) != '"')
        return refuse(r, "a literal without its end: \" is missing");
    r->at++;
    return close_children(r, DPI_NODE_LIST, &c, node);
}

static int by_low(const void *a, const void *b) {
    const dpi_code_range *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

/* All characters but those of the ranges from `first` on, in their place. */
static dpi_status invert(reader *r, int32_t first) {
    dpi_rules *rules = r->rules;
    const int32_t n = rules->n_ranges - first;
    uint32_t low = 0;
    if (n > 0)
        qsort(rules->ranges + first, (size_t)n, sizeof *rules->ranges, by_low);
    for (int32_t i = 0; i < n; i++) {
        const dpi_code_range range = rules->ranges[first + i];
        if (range.low > low)
            DPI_TRY(add_range(r, low, range.low - 1));
        low = range.high + 1 > low ? range.high + 1 : low;
    }
    if (low <= DPI_CODE_POINT_MAX)
        DPI_TRY(add_range(r, low, DPI_CODE_POINT_MAX));
    rules->n_ranges -= n;
    memmove(rules->ranges + first, rules->ranges + first + n,
            (size_t)(rules->n_ranges - first) * sizeof *rules->ranges);
    return DPI_STATUS_OK;
}

static dpi_status read_class(reader *r, int32_t *node) {
    const int32_t first = r->rules->n_ranges;
    r->at++;
    const bool inverted = peek(r) == '^';
    r->at += inverted;
    while (r->at < r->n_bytes && peek(r) != ']' && peek(r) != '\n') {
        uint32_t low, high;
        DPI_TRY(read_char(r, &low));
        high = low;
        if (peek(r) == '-' && r->at + 1 < r->n_bytes && r->text[r->at + 1] != ']') {
            r->at++;
            DPI_TRY(read_char(r, &high));
        }
        if (high < low)
            return refuse(r, "a range of characters whose end is before its beginning");
        DPI_TRY(add_range(r, low, high));
    }
    if (peek(r) != ']')
        return refuse(r, "a class of characters without its end: ] is missing");
    r->at++;
    if (inverted)
        DPI_TRY(invert(r, first));
    if (r->rules->n_ranges == first)
        return refuse(r, "a class without characters");
    return add_chars(r, first, node);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static dpi_status find_rule(reader *r, const char *name, size_t n, int32_t *rule) {
    dpi_rules *rules = r->rules;
    size_t slot = (size_t)dpi_hash(DPI_HASH_INIT, name, n) % DPI_RULE_SLOTS;
    for (; rules->slots[slot] >= 0; slot = (slot + 1) % DPI_RULE_SLOTS) {
        const dpi_rule *known = &rules->rules[rules->slots[slot]];
        *rule = rules->slots[slot];
        if (known->n_name == n && memcmp(known->name, name, n) == 0)
            return DPI_STATUS_OK;
    }
    if (rules->n_rules == DPI_GRAMMAR_RULES_MAX)
        return dpi_fail(r->err, DPI_STATUS_LIMIT, "a grammar of more than %d rules",
                        DPI_GRAMMAR_RULES_MAX);
    if (!dpi_grow(&rules->rules, &rules->rules_capacity, (size_t)rules->n_rules + 1,
                  sizeof *rules->rules))
        return dpi_no_memory(r->err, "the rules of a grammar");
    *rule = rules->slots[slot] = rules->n_rules++;
    rules->rules[*rule] = (dpi_rule){.name = name, .n_name = n, .node = -1};
    return DPI_STATUS_OK;
}

static dpi_status read_name(reader *r, int32_t *rule) {
    const size_t from = r->at;
    while (r->at < r->n_bytes && is_name(r->text[r->at]))
        r->at++;
    return find_rule(r, r->text + from, r->at - from, rule);
}

static dpi_status read_choice(reader *r, int32_t *node);

static dpi_status read_group(reader *r, int32_t *node) {
    if (++r->nesting > DPI_GRAMMAR_NESTING_MAX)
        return dpi_fail(r->err, DPI_STATUS_LIMIT, "a grammar of more than %d groups in groups",
                        DPI_GRAMMAR_NESTING_MAX);
    r->at++;
    skip(r, true);
    DPI_TRY(read_choice(r, node));
    if (peek(r) != ')')
        return refuse(r, "a group without its end: ) is missing");
    r->at++;
    r->nesting--;
    return DPI_STATUS_OK;
}

static dpi_status read_number(reader *r, int32_t *number) {
    const size_t from = r->at;
    int64_t n = 0;
    for (; peek(r) >= '0' && peek(r) <= '9'; r->at++)
        n = n <= DPI_GRAMMAR_REPEAT_MAX ? 10 * n + (peek(r) - '0') : n;
    if (r->at == from)
        return refuse(r, "a repetition without its numbers: {m}, {m,} or {m,n}");
    if (n > DPI_GRAMMAR_REPEAT_MAX)
        return dpi_fail(r->err, DPI_STATUS_LIMIT, "a repetition of more than %d times",
                        DPI_GRAMMAR_REPEAT_MAX);
    *number = (int32_t)n;
    return DPI_STATUS_OK;
}

/* {m}, {m,} and {m,n}, spaces allowed. */
static dpi_status read_bounds(reader *r, dpi_node *repeat) {
    r->at++;
    skip(r, false);
    DPI_TRY(read_number(r, &repeat->min));
    repeat->max = repeat->min;
    skip(r, false);
    if (peek(r) == ',') {
        r->at++;
        skip(r, false);
        repeat->max = -1;
        if (peek(r) != '}')
            DPI_TRY(read_number(r, &repeat->max));
        skip(r, false);
    }
    if (peek(r) != '}')
        return refuse(r, "a repetition without its end: } is missing");
    if (repeat->max >= 0 && repeat->max < repeat->min)
        return refuse(r, "a repetition whose most is below its least");
    r->at++;
    return DPI_STATUS_OK;
}

/* One repetition at most: a second one would be of a repetition, whose nesting has no end. */
static dpi_status read_repetition(reader *r, int32_t *node) {
    dpi_node repeat = {.kind = DPI_NODE_REPEAT, .first = *node, .max = -1};
    skip(r, r->nesting > 0);
    const char c = peek(r);
    if (c == '{')
        DPI_TRY(read_bounds(r, &repeat));
    else if (c != '*' && c != '+' && c != '?')
        return DPI_STATUS_OK;
    else
        r->at++;
    repeat.min = c == '+' ? 1 : repeat.min;
    repeat.max = c == '?' ? 1 : repeat.max;
    DPI_TRY(add_node(r, repeat, node));
    skip(r, r->nesting > 0);
    const char then = peek(r);
    return then && strchr("*+?{", then) ? refuse(r, "a repetition of a repetition: use a group")
                                        : DPI_STATUS_OK;
}

static dpi_status read_part(reader *r, int32_t *node) {
    int32_t rule = -1;
    switch (peek(r)) {
    case '"': DPI_TRY(read_literal(r, node)); break;
    case '[': DPI_TRY(read_class(r, node)); break;
    case '(': DPI_TRY(read_group(r, node)); break;
    case '.':
        r->at++;
        DPI_TRY(add_range(r, 0, DPI_CODE_POINT_MAX));
        DPI_TRY(add_chars(r, r->rules->n_ranges - 1, node));
        break;
    default:
        if (!is_name(peek(r)))
            return refuse(r, "found neither a literal, a class, a group, '.' nor a name");
        DPI_TRY(read_name(r, &rule));
        DPI_TRY(add_node(r, (dpi_node){.kind = DPI_NODE_RULE, .first = rule}, node));
    }
    return read_repetition(r, node);
}

/* Parts one after the other, until the end of the line, of the choice or of the group. */
static dpi_status read_list(reader *r, int32_t *node) {
    children c = {.last = -1};
    while (r->at < r->n_bytes && !strchr("|)\n\r", peek(r))) {
        int32_t child = -1;
        DPI_TRY(read_part(r, &child));
        add_child(r, &c, child);
    }
    return close_children(r, DPI_NODE_LIST, &c, node);
}

static dpi_status read_choice(reader *r, int32_t *node) {
    children c = {.last = -1};
    for (;;) {
        int32_t child = -1;
        DPI_TRY(read_list(r, &child));
        add_child(r, &c, child);
        if (peek(r) != '|')
            return close_children(r, DPI_NODE_CHOICE, &c, node);
        r->at++;
        skip(r, true);
    }
}

static dpi_status read_rule(reader *r) {
    int32_t rule = -1, node = -1;
    if (!is_name(peek(r)))
        return refuse(r, "found no name of a rule: name ::= ...");
    DPI_TRY(read_name(r, &rule));
    skip(r, false);
    if (r->n_bytes - r->at < 3 || memcmp(r->text + r->at, "::=", 3) != 0)
        return refuse(r, "found no ::= behind the name of a rule");
    r->at += 3;
    skip(r, true);
    if (r->rules->rules[rule].node >= 0)
        return refuse(r, "a rule that is defined already");
    DPI_TRY(read_choice(r, &node));
    r->rules->rules[rule].node = node;
    return peek(r) == ')' ? refuse(r, "a ) without its (") : DPI_STATUS_OK;
}

dpi_status dpi_rules_read(const char *text, size_t n_bytes, dpi_rules *rules, dpi_error *err) {
    reader r = {.text = text, .n_bytes = n_bytes, .rules = rules, .err = err};
    memset(rules, 0, sizeof *rules);
    if (n_bytes > DPI_GRAMMAR_BYTES_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "a grammar of %zu bytes, allowed are %d", n_bytes,
                        DPI_GRAMMAR_BYTES_MAX);
    rules->slots = malloc(DPI_RULE_SLOTS * sizeof *rules->slots);
    if (!rules->slots)
        return dpi_no_memory(r.err, "the rules of a grammar");
    memset(rules->slots, 0xff, DPI_RULE_SLOTS * sizeof *rules->slots);
    for (skip(&r, true); r.at < n_bytes; skip(&r, true))
        DPI_TRY(read_rule(&r));
    return DPI_STATUS_OK;
}

void dpi_rules_free(dpi_rules *rules) {
    free(rules->rules);
    free(rules->nodes);
    free(rules->ranges);
    free(rules->slots);
}
