/* finetune_support.h - what the tests of fine-tuning share: trainings, and losses by the engine. */
#ifndef DPI_FINETUNE_SUPPORT_H
#define DPI_FINETUNE_SUPPORT_H

#include <math.h>

#include "base/mem.h"
#include "dpinfer/gaussian.h"
#include "pipeline/finetune/finetune.h"
#include "tests/pipeline/people.h"

OWNED(dpi_finetune, dpi_finetune_free)
#define OWN_INSTRUCTIONS __attribute__((cleanup(dpi_instructions_free))) dpi_instructions

static inline dpi_finetune_options say_options(const dpi_records *records) {
    DEFAULTS(dpi_finetune_options, o);
    o.model = model, o.records = records;
    o.instruction = (dpi_bytes){"say", 3}, o.chat = DPI_CHAT_NONE;
    o.n_positions = 24, o.sigma = 1.5, o.delta = 1e-3;
    o.n_units = 10, o.n_expected = 4, o.n_steps = 6, o.rank = 2, o.n_threads = 2;
    o.seeded = 1, o.seed = 42;
    return o;
}

static inline dpi_finetune *open_finetune(const dpi_finetune_options *o) {
    dpi_finetune *f;
    assert_ok(dpi_finetune_open(o, &f, ERR));
    return f;
}

static inline dpi_finetune *begin(const dpi_finetune_options *o) {
    dpi_finetune *f = open_finetune(o);
    assert_ok(dpi_finetune_begin(f, ERR));
    return f;
}

/* One more step after another until so many are done. */
static inline void steps(dpi_finetune *f, int32_t until) {
    while (dpi_finetune_steps_done(f) < until)
        assert_ok(dpi_finetune_step(f, ERR));
}

/* Fails unless the options are refused. */
static inline void assert_not_opened(const dpi_finetune_options *o, const char *part) {
    dpi_finetune *f = NULL;
    assert_error(dpi_finetune_open(o, &f, ERR), ARG, part);
    assert_null(f);
}

/* A value of the training. */
static inline double value_of(const dpi_claim *c, const char *key) {
    return dpi_claim_value(dpi_claim_find(c, "gradients"), key);
}

/* Epsilon of the steps alone, at delta 1e-3. */
static inline double epsilon_of(const dpi_claim *c, int32_t n_steps) {
    DEFAULTS(dpi_gaussian, g);
    double epsilon;
    g.sigma = value_of(c, "sigma"), g.sampling = value_of(c, "sampling"), g.n_steps = n_steps;
    assert_ok(dpi_gaussian_epsilon(&g, 1e-3, &epsilon, ERR));
    return epsilon;
}

/* A file with such a model. */
static inline void write_base(const tiny_spec *spec, const char *path) {
    OWN_ARRAY(void) built = NULL;
    size_t n;
    tiny_build(spec, 5, &built, &n);
    write_file(path, built, n);
}

/* The claim of a file. */
static inline dpi_claim read_claim(const char *path, int32_t *holds) {
    dpi_claim c;
    assert_ok(dpi_finetune_read_claim(path, &c, holds, ERR));
    return c;
}

/* The tokens that begin an example, of which there are n_public. */
static inline const int32_t *tokens_of(const dpi_prompts *prompts, size_t *n) {
    DEFAULTS(dpi_prompts_info, info);
    assert_ok(dpi_prompts_info_get(prompts, &info, ERR));
    *n = (size_t)info.n_public;
    return dpi_prompts_public(prompts);
}

/* Which instruction a row begins with. */
static inline int32_t label_of_row(const dpi_instructions *in, const dpi_row *row) {
    for (int32_t l = 0; l < in->n; l++) {
        size_t n;
        const int32_t *tokens = tokens_of(in->prompts[l], &n);
        if (memcmp(tokens, row->tokens, n * sizeof *tokens) == 0)
            return l;
    }
    fail_msg("a row without instruction");
    return -1;
}

/* The loss of tokens [first, n) by the engine's exact logits. */
static inline double engine_loss(const dpi_model *m, const int32_t *tokens, size_t first,
                                 size_t n) {
    enum { MOST = 32, N_VOCAB_MOST = 512 };
    static float logits[MOST * N_VOCAB_MOST];
    const int32_t n_vocab = m->n_vocab;
    DEFAULTS(dpi_session_options, o);
    double loss = 0;
    o.exact = 1;
    dpi_session *s = open_session(m, &o, 1, MOST);
    assert_ok(dpi_session_prefill(s, 0, tokens, n, logits, ERR));
    dpi_session_free(s);
    for (size_t t = first; t < n; t++) {
        const float *row = logits + (t - 1) * (size_t)n_vocab;
        double sum = 0;
        for (int y = 0; y < n_vocab; y++)
            sum += exp((double)row[y]);
        loss += log(sum) - (double)row[tokens[t]];
    }
    return loss;
}

/* Seven tokens, whose loss is that of the last six: by the engine, and by what is trained. */
static const int32_t seven[] = {1, 263, 270, 99, 300, 12, 31};

static inline double loss_of_seven(const dpi_model *m) { return engine_loss(m, seven, 1, 7); }

static inline double trained_loss(const dpi_finetune *f) {
    static const int32_t begins[] = {0, 6};
    static const float ones[] = {1, 1, 1, 1, 1, 1};
    return dpi_tuner_loss(f->tuner, &(dpi_row){6, 1, begins, seven, seven + 1, ones});
}

#endif
