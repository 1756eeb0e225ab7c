/* attack_support.h - what tests of perturbed words and of attacks share. */
#ifndef DPI_ATTACK_SUPPORT_H
#define DPI_ATTACK_SUPPORT_H

#include "dpinfer/attack.h"
#include "tests/support/support.h"

/* These words, measured. */
static inline dpi_vocabulary *vocabulary_of(const char *const *words, const float *vectors,
                                            int32_t n, int32_t dim) {
    dpi_vocabulary *v;
    assert_ok(dpi_vocabulary_create(words, vectors, n, dim, &v, ERR));
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, ERR));
    return v;
}

/* The first n tokens of a model, 0: all of them, measured. */
static inline dpi_vocabulary *vocabulary_of_model(const dpi_model *model, int32_t n) {
    dpi_vocabulary *v;
    assert_ok(dpi_vocabulary_of_model(model, n, &v, ERR));
    assert_ok(dpi_vocabulary_measure(v, NULL, 1, ERR));
    return v;
}

/* epsilon 0: the default. */
static inline dpi_perturb_options mechanism(int32_t which, double epsilon) {
    dpi_perturb_options o;
    dpi_perturb_options_init(&o);
    o.mechanism = which;
    o.epsilon = epsilon > 0 ? epsilon : o.epsilon;
    return o;
}

/* SANTEXT+ that replaces no frequent word, over all n words but the last one: nothing changes. */
static inline dpi_perturb_options no_change(int32_t n) {
    dpi_perturb_options o = mechanism(DPI_WORDS_SANTEXT, 0);
    o.replaced = 0, o.rare = 1. / n;
    return o;
}

/* An attack on so many copies of a text, and what came of it. The caller frees the attack. NULL:
 * default options, no synonyms. */
static inline dpi_attack *attack(const dpi_vocabulary *v, const dpi_attack_options *options,
                                 const char *text, int times, const char *synonyms,
                                 dpi_perturb_options o, dpi_attack_result *r) {
    dpi_attack_options defaults;
    dpi_attack *a;
    dpi_attack_options_init(&defaults);
    assert_ok(dpi_attack_create(v, options ? options : &defaults, &a, ERR));
    for (int i = 0; i < times; i++)
        assert_ok(dpi_attack_add(a, text, strlen(text), ERR));
    if (synonyms)
        assert_ok(dpi_attack_synonyms(a, synonyms, strlen(synonyms), ERR));
    dpi_attack_result_init(r);
    assert_ok(dpi_attack_run(a, &o, r, ERR));
    return a;
}

#endif
