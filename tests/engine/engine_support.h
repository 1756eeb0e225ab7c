/* engine_support.h - what the tests of engine/ share. */
#ifndef DPI_ENGINE_SUPPORT_H
#define DPI_ENGINE_SUPPORT_H

#include "engine/model.h"
#include "engine/session.h"
#include "tests/support/nmse.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

/* The default options of a session, but for the instruction set of DPI_ISA. */
static inline dpi_session_options isa_options(int32_t exact) {
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.isa = forced_isa(), o.exact = exact;
    return o;
}

/* Whether the instruction set is not this processor's best. What does not depend on it is then
 * skipped, and sweeps are thin: the run with the best one has them whole, and so has every run on
 * a processor without another. */
static inline bool is_thin(void) {
    return forced_isa() != DPI_ISA_AUTO && forced_isa() != dpi_isa_best();
}

static inline void random_tokens(int32_t *tokens, int32_t n, int32_t n_vocab, uint64_t *seed) {
    for (int32_t i = 0; i < n; i++)
        tokens[i] = random_below(seed, n_vocab);
}

static inline float *floats(size_t n) {
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    return x;
}

/* The model of a shared file. */
static inline dpi_model *open_shared(const char *relative) {
    dpi_model *model = NULL;
    assert_ok(dpi_model_open(data_path(relative), NULL, &model, ERR));
    return model;
}

/* A shared file in memory, with the n bytes `to` where `from` stands first. */
static inline char *patched_file(const char *relative, const char *from, const char *to, size_t n,
                                 size_t *n_bytes) {
    char *image = read_file(data_path(relative), n_bytes);
    size_t at = 0;
    while (at + n <= *n_bytes && memcmp(image + at, from, n) != 0)
        at++;
    assert_true(at + n <= *n_bytes);
    memcpy(image + at, to, n);
    return image;
}

/* The oracle's logits as floats. */
static inline float *exact_logits(const tiny_spec *spec, const dpi_model *model,
                                  const int32_t *tokens, int32_t n) {
    const size_t n_all = (size_t)n * (size_t)spec->n_vocab;
    double *exact = malloc(n_all * sizeof *exact);
    float *logits = floats(n_all);
    assert_non_null(exact);
    oracle_logits(spec, model, tokens, n, exact);
    for (size_t i = 0; i < n_all; i++)
        logits[i] = (float)exact[i];
    free(exact);
    return logits;
}

#endif
