/* forms.h - what the tests of grammars share: grammars and schemas, with ' for each " of theirs,
 * and the texts that they accept. */
#ifndef DPI_FORMS_H
#define DPI_FORMS_H

#include "grammar/automaton.h"
#include "tests/support/own.h"
#include "tests/support/support.h"

OWNED(dpi_grammar, dpi_grammar_free)

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A copy with " for each '; the caller's. */
static inline char *quoted(const char *text) {
    char *copy = strdup(text);
    for (char *c = copy; (c = strchr(c, '\'')) != NULL;)
        *c = '"';
    return copy;
}

static inline dpi_grammar *parse(const char *text) {
    OWN_ARRAY(char) q = quoted(text);
    dpi_grammar *g = NULL;
    assert_ok(dpi_grammar_parse(q, strlen(q), &g, ERR));
    return g;
}

OWNED(dpi_automaton, dpi_automaton_free)

/* The machine of a grammar, which keeps what it has found: for many texts. */
static inline dpi_automaton *machine_of(const dpi_grammar *g) {
    dpi_automaton *a;
    assert_ok(dpi_automaton_create(g, false, &a, ERR));
    return a;
}

static inline bool reads(dpi_automaton *a, const char *text, size_t n) {
    const int32_t state = dpi_automaton_read(a, (const uint8_t *)text, n);
    assert_true(state >= 0);
    return dpi_automaton_accepts(a, state);
}

static inline void assert_text(const dpi_grammar *g, const char *name, const char *text, size_t n,
                               int32_t wanted) {
    int32_t found = -1;
    assert_ok(dpi_grammar_accepts(g, text, n, &found, ERR));
    if (found != wanted)
        fail_msg("%s: '%s' must be %d", name, text, wanted);
}

/* Fails unless the grammar accepts the texts of `yes` and refuses those of `no`. */
static inline void assert_texts(const dpi_grammar *g, const char *name, const char *const *yes,
                                const char *const *no) {
    for (int32_t wanted = 1; wanted >= 0; wanted--)
        for (const char *const *text = wanted ? yes : no; *text; text++) {
            OWN_ARRAY(char) q = quoted(*text);
            assert_text(g, name, q, strlen(q), wanted);
        }
}

#endif
