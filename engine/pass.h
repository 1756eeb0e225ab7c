/* pass.h - one pass through a model: its threads, and the operations that they compute. Internal.
 *
 * All threads call every operation of a pass in the same order, as if it had one thread, and each
 * computes a part. A part is columns, or rows of some heads, never a piece of a sum. So neither the
 * number of threads nor which is first can change a bit.
 *
 * How an operation is divided:
 *   tiles    columns of a matrix product. A thread begins with its own share and then steals from
 *            slower ones (base/tiles.h)
 *   columns  of everything else: a thread's share of whole 8-bit blocks, which are mostly the
 *            columns that it has computed as tiles
 *   heads    attention: the rows of a KV head, with the query heads that share it
 * An operation that reads what other threads wrote meets them first (dpi_pass_meet). A product
 * reads all columns of its input, so it first writes its own columns of the input in 8 bits.
 *
 * Activations are arrays [rows, n] of the session's work space; an operation computes the rows of
 * the pass in them. */
#ifndef DPI_PASS_H
#define DPI_PASS_H

#include "engine/session.h"

typedef struct dpi_pass {
    dpi_session *s;
    const dpi_token_batch *batch;
    int32_t first, n_rows; /* the rows that operations compute, in every array of activations */
    int32_t thread, n_threads;
    const dpi_shape *shape; /* of the layer that is computed */
    dpi_spin spin;
    bool has_written; /* what other threads read, since they last met */
    int32_t n_tiled;  /* operations in tiles that this thread has begun */
} dpi_pass;

/* What the threads of a pass do. `context` is the caller's. */
typedef void dpi_pass_fn(dpi_pass *p, const void *context);

/* Runs a pass of n_products multiply-adds: alone if they take less time than waiting for other
 * threads may take on a busy machine. */
void dpi_pass_run(dpi_session *s, const dpi_token_batch *batch, int64_t n_products,
                  dpi_pass_fn *run, const void *context);

/* ---- Operations (ops.c, attention.c, delta.c) ------------------------------------------------ */

/* x = embedding_scale * embedding of each row's token [rows, n_embd]; cosines and sines of each
 * row's position. */
void dpi_pass_embed(dpi_pass *p, dpi_rows x, const dpi_matrix *embedding);

/* y = x / sqrt(mean(x^2) + eps) * weight. x is the residual stream. */
void dpi_pass_rms_norm(dpi_pass *p, dpi_rows y, dpi_rows x, const float *weight);

/* y = w x + bias. Every product below has the bias of its matrix, and its adapter. */
typedef struct dpi_linear {
    dpi_rows y; /* [rows, w->n_out] */
    const dpi_matrix *w;
} dpi_linear;

/* The inputs of layers [rows, n_layer * n_input], of the tokens and of x:
 * y = (norm(w x / sqrt(n_embd)) + sqrt(n_input) * embedding of each row's token) / sqrt(2), with
 * norm(z) = z / sqrt(mean(z^2) + eps) * weight in each layer's columns by themselves. */
void dpi_pass_inputs(dpi_pass *p, dpi_rows y, const dpi_matrix *w, dpi_rows x, const float *weight,
                     const dpi_matrix *embedding);

/* q = w_q x and so on, in the order of heads; without those whose matrix the layer lacks. */
void dpi_pass_project(dpi_pass *p, const dpi_linear *q, const dpi_linear *k, const dpi_linear *v,
                      dpi_rows x);

/* The same for n products of one input, at most 4. */
void dpi_pass_project_all(dpi_pass *p, const dpi_linear *const *products, int32_t n, dpi_rows x);

/* x += residual_scale * (w in). x is the residual stream. */
void dpi_pass_add_linear(dpi_pass *p, dpi_rows x, const dpi_matrix *w, dpi_rows in);

/* x += y / sqrt(mean(y^2) + eps) * weight with y = w in. x is the residual stream. */
void dpi_pass_add_normed(dpi_pass *p, dpi_rows x, const dpi_matrix *w, dpi_rows in,
                         const float *weight);

/* y = act(w_gate x) * (w_up x), by element; act is SiLU, or GELU in its tanh form. */
void dpi_pass_gated(dpi_pass *p, dpi_rows y, const dpi_matrix *w_gate, const dpi_matrix *w_up,
                    dpi_rows x);

/* y = act(w x) * inputs, by element, with the columns of inputs that are the layer's. */
void dpi_pass_gate_input(dpi_pass *p, dpi_rows y, const dpi_matrix *w, dpi_rows x, dpi_rows inputs,
                         int32_t layer);

/* x *= by. x is the residual stream. */
void dpi_pass_scale(dpi_pass *p, dpi_rows x, float by);

/* x += by [n_sets, n], of each row the set of its sequence. x is the residual stream. */
void dpi_pass_shift(dpi_pass *p, dpi_rows x, const float *by);
/* Adds the rows of x, after layer number `which` of those wanted, to their sums. */
void dpi_pass_states(dpi_pass *p, dpi_rows x, const dpi_states *wanted, int32_t which);

/* v = z / sqrt(mean(z^2) + eps) of each head. z may be v. */
void dpi_pass_norm_values(dpi_pass *p, dpi_rows v, dpi_rows z);

/* q = q / sqrt(mean(q^2) + eps) * q_weight, and so k: of each head, or where the architecture
 * norms_all_heads, of all of them together. */
void dpi_pass_norm_heads(dpi_pass *p, dpi_rows q, dpi_rows k, const float *q_weight,
                         const float *k_weight);

/* Rotates pairs of the first n_rot dimensions of each head by the row's position. */
void dpi_pass_rope(dpi_pass *p, dpi_rows q, dpi_rows k, dpi_rotation rotation);

/* Appends k and v to the KV caches of the rows' sequences. */
void dpi_pass_cache(dpi_pass *p, int32_t layer, dpi_rows k, dpi_rows v);

/* y = softmax(attention_scale q K^T) V, with K and V of `layer`, over positions up to the row's
 * own: all, or the last of a layer with a window. Scores have their cap and their scale by
 * position, where the config does. */
void dpi_pass_attend(dpi_pass *p, dpi_rows y, int32_t layer, dpi_rows q);

/* q [rows, n_head * head_dim] = the queries in qg [rows, n_head, 2, head_dim], where each has its
 * gate behind it. */
void dpi_pass_copy_queries(dpi_pass *p, dpi_rows q, dpi_rows qg);
/* y = y * sigmoid(gates of qg), by element. */
void dpi_pass_gate_heads(dpi_pass *p, dpi_rows y, dpi_rows qg);

/* Of a delta net u holds queries and keys [n_k_head, dim] and values [n_v_head, dim_v].
 * u = silu(filter * u): a weighted sum over each row and the n_tap - 1 positions before it. */
void dpi_pass_filter(dpi_pass *p, dpi_rows u, int32_t layer);

/* beta = sigmoid(beta); decay = exp(rate * log(1 + exp(decay + decay_bias))); by value head. */
void dpi_pass_gates(dpi_pass *p, dpi_rows beta, dpi_rows decay, int32_t layer);

/* q = q / |q| / sqrt(dim), k = k / |k|, by head. */
void dpi_pass_norm_keys(dpi_pass *p, dpi_rows u);

/* The delta rule: S = decay S, S += k (beta (v - S^T k))^T, o = S^T q, for the state S [dim, dim_v]
 * of each value head j, whose query and key are those of head j % n_k_head. */
void dpi_pass_delta(dpi_pass *p, dpi_rows o, dpi_rows u, dpi_rows beta, dpi_rows decay,
                    int32_t layer);

/* z = silu(z) * (o / sqrt(mean(o^2) + eps) * weight), by value head. */
void dpi_pass_gate_normed(dpi_pass *p, dpi_rows z, dpi_rows o, const float *weight);

/* From here on only the rows of which logits are wanted. */
void dpi_pass_select_head(dpi_pass *p);

/* Logits w x + bias, times logit_scale, with their cap, go to the rows' destinations: those of
 * tokens ids [n_ids], which ascend, and some beside them; NULL: all. */
void dpi_pass_logits(dpi_pass *p, const dpi_matrix *w, dpi_rows x, const int32_t *ids,
                     int32_t n_ids);

/* Multiply-adds of that for one row, at most. */
int64_t dpi_pass_logit_products(const dpi_matrix *w, const int32_t *ids, int32_t n_ids);

/* ---- For operations -------------------------------------------------------------------------- */

/* If threads have written since they last met: none goes on before all are here. Every thread of a
 * pass calls it at the same places. */
void dpi_pass_meet(dpi_pass *p);

/* This thread's share [*begin, *end) of n things. */
void dpi_pass_share(const dpi_pass *p, int64_t n, int64_t *begin, int64_t *end);

/* This thread's columns of n: whole blocks of 8-bit activations. The rows of a block stand side by
 * side in the same cache lines, so that no line is written by two threads. */
void dpi_pass_columns(const dpi_pass *p, int64_t n, int64_t *begin, int64_t *end);

/* Begins an operation in n tiles. */
dpi_tiles dpi_pass_tiles(dpi_pass *p, int64_t n);

/* Row r of the pass in an array. */
static inline float *dpi_pass_row(const dpi_pass *p, dpi_rows x, int64_t r) {
    return x.at + (p->first + r) * x.n;
}

#endif
