/* best_of.h - several texts for each one that is wanted, and those of them that together say what
 * the records of their label said: by the words in a file of steering vectors, which were released
 * with noise (steer.h, n_words). No record is read, and nothing but released numbers decides: it is
 * post-processing. Part of libdpinfer_full.
 *
 *     dpi_best_of *b;
 *     dpi_best_of_open("steer.gguf", &b, &err);
 *     for (int32_t i = 0, gone; i < 400; i++) {
 *         dpi_best_of_add(b, label, i, text_of(i), strlen(text_of(i)), &gone, &err);
 *         if (i % 4 == 3)
 *             puts(text_of(dpi_best_of_next(b, label))); // a hundred, the nearest together
 *     }
 *     dpi_best_of_free(b);
 *
 * A text is the weights of its words, as long together as 1. The one that is taken is that with
 * which the mean of all that were taken comes nearest to the mean of the records. Threads: an
 * object belongs to one thread at a time. */
#ifndef DPINFER_BEST_OF_H
#define DPINFER_BEST_OF_H

#include "dpinfer/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DPI_BEST_OF_MAX = 64,      /* texts that `dpinfer generate` draws for one */
    DPI_BEST_OF_WAITING = 1024 /* texts of a label that wait at most */
};

typedef struct dpi_best_of dpi_best_of;

/* *best_of: the caller's; NULL: the file has no words. Errors: IO, FORMAT (numbers that no such
 * file has), UNSUPPORTED, MEMORY. Nobody looks at the file's claim here: dpi_claim_verify_file. */
DPI_API DPI_MUST_CHECK dpi_status dpi_best_of_open(const char *path, dpi_best_of **best_of,
                                                   dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_best_of_free(dpi_best_of *best_of);
/* How many labels the file has words of; 1 without labels. */
DPI_API int32_t dpi_best_of_labels(const dpi_best_of *best_of);
/* How many words there are to choose by; 0: all texts are alike. */
DPI_API int32_t dpi_best_of_words(const dpi_best_of *best_of);
/* One more text [n_bytes] of a label, by its place in the file; `id`, 0.., is the caller's.
 * *forgotten: the id of the text that waits no more, the first of as many as may wait; -1: none.
 * Errors: ARG (label, id), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_best_of_add(dpi_best_of *best_of, int32_t label, int32_t id,
                                                  const char *text, size_t n_bytes,
                                                  int32_t *forgotten, dpi_error *err);
/* The id of the best text of a label that waits, which then waits no more; -1: there is none. */
DPI_API int32_t dpi_best_of_next(dpi_best_of *best_of, int32_t label);

#ifdef __cplusplus
}
#endif
#endif
