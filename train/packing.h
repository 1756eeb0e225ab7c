/* packing.h - the order of an epoch: examples shuffled, packed into rows, rows shuffled. Internal.
 *
 * It follows from seed and epoch alone, so a checkpoint holds no order, only a place in it. */
#ifndef DPI_TRAIN_PACKING_H
#define DPI_TRAIN_PACKING_H

#include "train/corpus.h"
#include "train/graph.h"

typedef struct dpi_packing {
    int64_t n_rows;
    int64_t *begins;   /* [n_rows + 1] into examples */
    int64_t *examples; /* [corpus n], row after row */
} dpi_packing;

/* Best fit: each example in turn goes to the fullest row that still has room. On failure
 * *packing is unchanged. Errors: MEMORY. */
dpi_status dpi_packing_create(const dpi_corpus *corpus, int32_t context, uint64_t seed,
                              int64_t epoch, dpi_packing *packing, dpi_error *err);
void dpi_packing_free(dpi_packing *packing);

/* Arrays of one row, to be filled again and again. */
typedef struct dpi_row_buffer {
    int32_t *begins, *tokens, *targets; /* [context + 1], [context], [context] */
    float *weights;                     /* [context] */
} dpi_row_buffer;

dpi_status dpi_row_buffer_create(int32_t context, dpi_row_buffer *buffer, dpi_error *err);
void dpi_row_buffer_free(dpi_row_buffer *buffer);

/* Row `index` of a packing. Positions whose target is in the answer (end of turn included) have
 * weight 1, those whose target is in the prompt prompt_weight. The row points into the buffer. */
dpi_row dpi_row_fill(const dpi_row_buffer *buffer, const dpi_corpus *corpus,
                     const dpi_packing *packing, int64_t index, float prompt_weight);

#endif
