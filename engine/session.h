/* session.h - the mutable side of inference: caches, logits, work space. Internal. */
#ifndef DPI_SESSION_H
#define DPI_SESSION_H

#include "base/barrier.h"
#include "base/tiles.h"
#include "engine/kv.h"
#include "engine/model.h"
#include "engine/states.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"

enum {
    DPI_CHUNK = 64,   /* positions of one sequence that prefill computes at a time */
    DPI_ATTEND_ROWS = 8, /* rows of them that attend together */
};

/* An array of activations [rows, n], row-major. */
typedef struct dpi_rows {
    float *at;
    int64_t n;
} dpi_rows;

/* The work space of a pass. Rows: those of a batch, at most max_rows. Sizes are the most of any
 * layer. */
typedef struct dpi_work {
    dpi_rows x;       /* [rows, n_embd] the residual stream */
    dpi_rows squares; /* [rows, dpi_n_tiles(n_embd)] sums of squares of x, tile by tile */
    dpi_rows norm;    /* [rows, n_embd] x, normalised */
    dpi_rows q;       /* [rows, n_head * head_dim] queries */
    dpi_rows qg;      /* [rows, n_head * 2 * head_dim] of each head the query and its gate */
    dpi_rows k;       /* [rows, n_kv_head * head_dim] keys */
    dpi_rows v;       /* [rows, n_kv_head * head_dim_v] values */
    dpi_rows att;     /* [rows, n_head * head_dim_v] what attention gives */
    dpi_rows u;       /* [rows, 2 n_k_head dim + n_v_head dim_v] of a delta net q, k and v */
    dpi_rows z, o;    /* [rows, n_v_head * dim_v] its gate; what its state gives */
    dpi_rows beta, decay; /* [rows, n_v_head] */
    dpi_rows out;     /* [rows, n_embd] what a product adds to x */
    dpi_rows out_squares; /* its squares, where it is normalised */
    dpi_rows qk_squares; /* [rows, 2] sums of squares of q and of k */
    dpi_rows gate;    /* [rows, n_ff], or [rows, n_input] */
    dpi_rows up;      /* [rows, n_ff] */
    dpi_rows inputs;  /* [rows, n_layer * n_input] the inputs of layers */
    dpi_rows input_embd; /* [rows, n_layer * n_input] what tokens add to them */
    dpi_rows cs;      /* [rows, rotations, n_rot] cosines and sines of each row's position, as the
                         kernels have them */
    dpi_q8 q8;        /* the input of a product in 8 bits, up to [rows, max_in] */
    dpi_rows low;     /* [rows, DPI_ADAPTER_PLACES, max_rank] what adapters make of an input */
    float *scratch;   /* [n_threads, DPI_TILE_OUT, max_in] weights on their way to a kernel */
    float *head;      /* [n_threads, rows, DPI_TILE_OUT] logits, or what adapters add, on their
                         way */
    float *ml;        /* [n_threads, n_ml] softmax maxima and sums */
    float *gathered;  /* [n_threads, n_gathered] queries and results of rows that attend together */
    int64_t n_ml, n_gathered;
    int64_t max_in;   /* the longest row of any weight matrix */
} dpi_work;

/* One pass through the model. Rows r in [0, n_rows) stand at buffer row first + r; row_seq,
 * row_pos and row_token (indexed by r) say what they are. Logits are wanted of n_head of them, from
 * r = head_first on, and go to dest[r]. */
typedef struct dpi_token_batch {
    int32_t first, n_rows;
    int32_t head_first, n_head;
    int32_t is_prompt; /* rows are consecutive positions of one sequence, at row p % DPI_CHUNK */
} dpi_token_batch;

struct dpi_session {
    const dpi_model *model;
    dpi_kernels kernels;
    int32_t n_seq, n_ctx, n_threads;
    int32_t n_kept;
    int32_t exact;
    dpi_blas blas; /* open: prompts go through gemm.h where activations are f32 */
    int64_t worth_sharing; /* multiply-adds from which a pass uses all threads */
    int32_t max_rows; /* rows of the work buffers: max(n_seq, DPI_CHUNK) */
    dpi_kv_cache kv;
    dpi_barrier barrier; /* of the pass that is running */
    dpi_share_state *shares; /* [2, n_threads] of the pass's operations */
    dpi_work work;
    unsigned char *memory; /* all of the work buffers */
    uint64_t memory_bytes;
    double *freqs;  /* [rotations, n_rot / 2] radians per position */
    double magnitudes[DPI_ROTATIONS]; /* of their cosines and sines */
    float *logits;  /* [n_seq, n_vocab] */
    unsigned char *ready; /* [n_seq] 1: logits are those after the sequence's last token */
    float **dest;   /* [max_rows] where the logits of a row go */
    dpi_token_batch rest; /* the last step; rows from head_first on came without logits. n_rows 0:
                             the last pass was no step, or there was none */
    int32_t read_seq; /* the sequence of the last pass, if it ended a prefill; else -1 */
    int32_t n_read; /* of it the last rows, whose normalised states are in work.norm */
    int32_t *row_seq, *row_pos, *row_token; /* [max_rows] */
    int32_t *vectors; /* [n_seq + n_kept] which set of the control vector a sequence has; -1: none
                         was chosen yet */
    unsigned char *seen; /* [n_seq] scratch of the duplicate check */
    const dpi_states *states; /* of the prompt that is read; NULL: none are wanted */
    double attention_seconds, attention_operations; /* dpinfer/bench.h */
    dpi_cancel_fn cancel;
    void *cancel_user;
};

/* The pass. The caches have room; lengths are the caller's to advance. */
void dpi_forward(dpi_session *session, const dpi_token_batch *batch);

/* dpi_session_logits, for a caller who changes them before they are read. No later pass depends on
 * them. */
float *dpi_session_logits_row(dpi_session *session, int32_t seq);

/* Logits of other rows of the last pass: `batch` is that pass's but for head_first and n_head.
 * Those of tokens ids [n_ids], ascending, and of some beside them; NULL: all. */
void dpi_forward_head(dpi_session *session, const dpi_token_batch *batch, const int32_t *ids,
                      int32_t n_ids);

#endif
