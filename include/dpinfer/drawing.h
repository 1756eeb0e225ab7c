/* drawing.h - many texts after public prompts, drawn many at a time: from a model alone, or from
 * one that an adapter makes private. No record is read.
 *
 *     dpi_drawing_options o;
 *     dpi_drawing_options_init(&o);
 *     o.model = model, o.prompts = prompts, o.n_prompts = n, o.n_texts = 1000;
 *     dpi_drawing *d = NULL;
 *     dpi_drawn_text text;
 *     dpi_status status = dpi_drawing_open(&o, &d, &err);
 *     while (status == DPI_STATUS_OK &&
 *            (status = dpi_drawing_next(d, &text, &err)) == DPI_STATUS_OK && text.index >= 0)
 *         fwrite(text.data, 1, text.n_bytes, stdout);
 *     dpi_drawing_free(d);
 *
 * Each prompt is read once, when its first text begins (again where there are more than
 * DPI_DRAWING_PROMPTS of them, and texts alternate). How many texts are drawn at a time decides
 * time and memory alone. Threads: an object belongs to one thread at a time. */
#ifndef DPINFER_DRAWING_H
#define DPINFER_DRAWING_H

#include "dpinfer/generation.h"
#include "dpinfer/prompts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DPI_DRAWING_PARALLEL_MAX = 256, DPI_DRAWING_PROMPTS = 64 };

typedef struct dpi_drawing_options {
    size_t struct_size;
    /* All of these must outlive the object. */
    const dpi_model *model;
    dpi_prompts *const *prompts; /* [n_prompts], of which the public one is read */
    int32_t n_prompts;           /* 1.. */
    const int32_t *shares; /* [n_prompts] texts after each, which come in this order and are n_texts
                              together; NULL (default): text i stands after prompt i % n_prompts */
    dpi_mask *mask;        /* NULL (default): any text */
    const dpi_word_rules *rules; /* how texts are worded; NULL (default): as the model writes
                                    them */
    int32_t n_texts;       /* 1.. */
    int32_t n_parallel;    /* 1..DPI_DRAWING_PARALLEL_MAX; default 32 */
    dpi_sampler_options method;  /* PLAIN by default. n_tokens: most tokens of a text; 0 (default):
                                    dpi_tokens_default of the model's context. n_vocab is the
                                    model's, random is as `seeded` says */
    dpi_session_options session; /* of these n_threads, isa, kv_type, exact. Its cancel is also
                                    asked before a text begins: those that have begun are then
                                    finished and told */
    int32_t seeded; /* 1: random bits of text i follow from seed and i; 0 (default): the system's */
    uint64_t seed; /* with seeded */
    const int32_t *sets; /* [n_prompts] which set of the model's control vector steers each prompt
                            and its texts (dpi_session_steer); NULL (default): the only one */
} dpi_drawing_options;

DPI_API void dpi_drawing_options_init_size(dpi_drawing_options *options, size_t size);
#define dpi_drawing_options_init(o) dpi_drawing_options_init_size((o), sizeof *(o))

typedef struct dpi_drawing dpi_drawing;

/* Errors: ARG (the options), UNSUPPORTED, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_drawing_open(const dpi_drawing_options *options,
                                                   dpi_drawing **drawing, dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_drawing_free(dpi_drawing *drawing);

typedef struct dpi_drawn_text {
    int32_t index;  /* 0..n_texts - 1 in their order; -1: all have been told */
    int32_t prompt; /* which it stands after */
    int32_t n_drawn; /* tokens, end-of-generation included */
    int32_t ended;  /* 1: the text has ended; 0: it has as many tokens as it may have */
    const char *data; /* [n_bytes], the object's, until the next call */
    size_t n_bytes;
} dpi_drawn_text;

/* The next text, whole. Errors: CANCELLED (and the texts that follow have not begun), ENTROPY,
 * NUMERIC, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_drawing_next(dpi_drawing *drawing, dpi_drawn_text *text,
                                                   dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
