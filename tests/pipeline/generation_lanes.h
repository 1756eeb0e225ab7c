/* generation_lanes.h - six texts with what comes of them by hand, and lanes of a session in which
 * generations of them run and are checked, event by event. For the tests of generations. */
#ifndef DPI_TEST_GENERATION_LANES_H
#define DPI_TEST_GENERATION_LANES_H

#include "engine/model.h"
#include "engine/session.h"
#include "tests/support/support.h"

enum {
    MAX_REF = 3,
    LANE = MAX_REF + 1, /* sequences of a text */
    MAX_T = 12,
    N_TEXTS = 6,
    MAX_PROMPT = 100,
    N_CTX = MAX_PROMPT + MAX_T,
    EOG = 2 /* of a tiny model */
};

/* A text, and what comes of it by hand. */
typedef struct text {
    dpi_sampler_options options;
    dpi_sampler *sampler; /* draws with `seed` */
    uint64_t seed, first_seed;
    int32_t prompts[LANE][MAX_PROMPT];
    size_t n_prompt[LANE];
    const int32_t *references[MAX_REF]; /* NULL: null */
    size_t n_prefix;
    const dpi_wording *wording; /* of it what shapes a text (shaping.h); NULL: none */
    int32_t tokens[MAX_T], n;
    int32_t n_needed;    /* the references are in the first so many tokens, and in no other */
    float *logits;       /* [MAX_T, LANE, n_vocab] before each token */
    unsigned char *read; /* [MAX_T, n_vocab] 1: a step reads the references' logits of the token */
    char written[16 * MAX_T];
    size_t n_written;
} text;

extern dpi_model *model;
/* 0: InvisibleInk, zcdp, 3 slots of which the second is null. 1: plain. 2: InvisibleInk, filter.
 * 3: Amin, with the same null slot. 4: InvisibleInk, br. 5: InvisibleInk with a pace, of which the
 * first 4 tokens are private. */
extern text texts[N_TEXTS];

/* Of a cmocka group. */
void lanes_setup(void);
void lanes_teardown(void);

/* A text with the prompts, options and first seed of another one, of which nothing has come yet:
 * what is changed of it before write_by_hand counts; its wording is none. Freed by free_text. */
void copy_text(text *to, const text *from);
void write_by_hand(text *x);
void free_text(text *x);

typedef struct lane {
    text *x; /* NULL: the lane is free */
    dpi_generation *g;
    int32_t first_seq, n, n_failed, failure; /* the status of the last one that failed */
    char written[16 * MAX_T];
    size_t n_written;
} lane;

/* A session of so many lanes, whose passes are shared by all threads. */
dpi_session *open_lanes(int32_t n_lanes, int32_t n_threads);
dpi_generation_options options_of(text *x, dpi_session *s, int32_t first_seq);
dpi_generation *create(const dpi_generation_options *o);
/* With bits from the beginning of x. */
lane begin_with(text *x, const dpi_generation_options *o);
lane begin(text *x, dpi_session *s, int32_t first_seq, int32_t n_piece);
/* One advance of one generation, which succeeds. */
dpi_generation_event advance(dpi_generation *g);
/* The lane's sequences hold no token and no logit. */
void assert_wiped(const dpi_session *s, int32_t first_seq);
/* An event is what the text by hand wants next; errors are counted. After END the lane is free. */
void check_event(lane *l, const dpi_session *s, const dpi_generation_event *e);
/* One advance of all lanes that have a text, in random order. */
dpi_status try_lanes(lane *lanes, int32_t n, const dpi_session *s, uint64_t *seed);
/* The same, which succeeds; how many had a text. */
int32_t advance_lanes(lane *lanes, int32_t n, const dpi_session *s, uint64_t *seed);
/* Until all texts are over. */
void finish_lanes(lane *lanes, int32_t n, const dpi_session *s);

#endif
