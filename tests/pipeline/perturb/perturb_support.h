/* perturb_support.h - what tests of perturbed words and of attacks on them share. */
#ifndef DPI_PERTURB_SUPPORT_H
#define DPI_PERTURB_SUPPORT_H

#include "dpinfer/perturb.h"
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

#endif
