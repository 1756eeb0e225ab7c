/* eval_support.h - what the tests of measures share: texts, and numbers that are nearly right. */
#ifndef DPI_EVAL_SUPPORT_H
#define DPI_EVAL_SUPPORT_H

#include <math.h>

#include "eval/labelled_rows.h"
#include "tests/support/own.h"
#include "tests/support/support.h"

/* Texts that are given back where their block ends. */
#define OWN_TEXTS __attribute__((cleanup(eval_texts_free))) eval_texts
#define OWN_VOCABULARY __attribute__((cleanup(eval_vocabulary_free))) eval_vocabulary
#define OWN_ROWS __attribute__((cleanup(eval_rows_free))) eval_rows
#define OWN_EVALUATION __attribute__((cleanup(evaluation_free))) evaluation
/* OWN_TEXTS s = TEXTS("one", "two"); */
#define TEXTS(...)                                                                                 \
    make_texts((const char *const[]){__VA_ARGS__}, NULL,                                           \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static inline eval_texts make_texts(const char *const *text, const char *const *label, size_t n) {
    eval_texts s;
    assert_ok(eval_texts_make(text, label, (int32_t)n, &s, ERR));
    return s;
}

/* Labels of texts of eight words, of which `clear` in ten say the label; `other` (-1: none) says
 * another one with each word. */
enum { N_CLEAR = 60 };

static inline eval_texts make_clear(uint64_t *seed, int clear, int32_t other) {
    static const char *const names[] = {"fever", "heart", "skin"};
    static char text[N_CLEAR][80];
    const char *list[N_CLEAR], *label[N_CLEAR];
    for (int i = 0; i < N_CLEAR; i++) {
        const int own = i == other ? 1 : i % 3;
        text[i][0] = '\0';
        for (int w = 0; w < 8; w++) {
            const bool says = random_u64(seed) % 10 < (uint64_t)clear || i == other;
            const char word[] = {(char)(says ? 'a' + own : 'd'), (char)('a' + w), ' ', '\0'};
            strcat(text[i], word);
        }
        list[i] = text[i], label[i] = names[own];
    }
    return make_texts(list, label, N_CLEAR);
}

static inline void assert_within(double found, double wanted, double tolerance) {
    if (!(fabs(found - wanted) <= tolerance))
        fail_msg("found %.12g, wanted %.12g", found, wanted);
}

/* The same number, but for rounding. */
static inline void assert_near(double found, double wanted) {
    assert_within(found, wanted, 1e-9 * fmax(1, fabs(wanted)));
}

#endif
