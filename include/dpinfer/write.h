/* write.h - making model files. */
#ifndef DPINFER_WRITE_H
#define DPINFER_WRITE_H

#include "dpinfer/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_write_options {
    size_t struct_size;
    /* What the weights become: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K for
     * every matrix, or a mixture: Q4_K_M or Q5_K_M, in which the output head and the more
     * sensitive half of attn_v and ffn_down are Q6_K. Rows that are not a multiple of 256 become
     * Q5_0, Q5_1, Q8_0 in place of Q4_K, Q5_K, Q6_K. Vectors (norms, biases) stay as they are.
     * KEEP: each tensor keeps its type. Not for dpi_model_make. */
    const char *type;
    int32_t n_threads; /* 0 (default): the processors this process may use */
    /* -1 (default): the file appears under its name when it is whole; until then it is a temporary
     * file beside it, removed on failure. Else a descriptor, open for writing, that gets the bytes
     * in their order; out_path is then a name for messages. It stays the caller's, open. */
    int32_t fd;
    /* Weights written so far, and in all. May be NULL. */
    void (*on_progress)(void *user, int64_t n_done, int64_t n_weights);
    dpi_cancel_fn cancel; /* may be NULL */
    void *user;
} dpi_write_options;

DPI_API void dpi_write_options_init_size(dpi_write_options *options, size_t size);
#define dpi_write_options_init(o) dpi_write_options_init_size((o), sizeof *(o))

/* The functions below write tensor by tensor and hold some rows at a time. The bytes written do
 * not depend on n_threads. */

/* Writes the model in `in_path` with its weights as options->type. Errors: those of
 * dpi_model_open; ARG (out_path is in_path; a type that is not in the list), NUMERIC (a weight is
 * not finite or beyond what the type holds, by tensor and offset), IO, MEMORY, CANCELLED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_quantize(const char *in_path, const char *out_path,
                                                     const dpi_write_options *options,
                                                     dpi_error *err);

/* The same of the model in `in_path` with a low-rank adapter (dpi_model_options.adapter): its
 * weights become W + scale B A, each rounded to f32 once and then to options->type. The file says
 * what the adapter claims of its training, without a hash of what was written, so that nobody can
 * check it; dpi_finetune_merge (finetune.h) writes one. Errors: those above and of the adapter;
 * UNSUPPORTED (the type KEEP and a matrix with an adapter, of a type that can only be read). */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_merge(const char *in_path, const char *adapter_path,
                                                  float adapter_scale, const char *out_path,
                                                  const dpi_write_options *options,
                                                  dpi_error *err);

typedef struct dpi_model_shape {
    size_t struct_size;
    int32_t n_layer, n_embd, n_ff; /* without head_dim n_embd is a multiple of n_head, and n_embd /
                                      n_head even */
    int32_t n_head, n_kv_head;     /* n_head a multiple of n_kv_head */
    int32_t n_vocab;               /* 260..2^18: <unk>, <s>, </s>, 256 bytes and made-up words */
    int32_t n_ctx_train;
    int32_t tied_output; /* 1: the output head is the embedding matrix */
    float rope_freq_base;
    const char *architecture; /* llama (NULL: the same), qwen2, qwen3, qwen35, gemma3 or phi3;
                                 static */
    int32_t head_dim;         /* even; 0: n_embd / n_head */
    int32_t n_rot;            /* rotated dimensions of a head, even; 0: all */
    int32_t window;           /* of layers that have one (gemma3); 0: none has */
    /* Of qwen35, else 0: of four layers three are delta nets with so many heads of keys and of
     * values (a multiple), of delta_dim each. */
    int32_t n_delta_k_head, n_delta_v_head, delta_dim;
} dpi_model_shape;

DPI_API void dpi_model_shape_init_size(dpi_model_shape *shape, size_t size);
#define dpi_model_shape_init(o) dpi_model_shape_init_size((o), sizeof *(o))

/* Fills *shape, after dpi_model_shape_init, with that of "tinyllama-1.1b", "qwen3-0.6b" and so
 * on, static strings in it. Errors: ARG, with the list. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_shape_find(const char *name, dpi_model_shape *shape,
                                                       dpi_error *err);

/* Writes a model of that shape with random weights, for timing and tests: its metadata says
 * dpinfer.random_weights = true. The weights follow from `seed` and are scaled so that logits are
 * about normal with deviation 3. `vocab_path`: a GGUF file whose vocabulary (and its size) the
 * model gets; NULL: a synthetic SPM vocabulary, with dpinfer.synthetic_vocabulary = true.
 * Errors: ARG, those of reading the vocabulary, IO, MEMORY, CANCELLED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_make(const dpi_model_shape *shape,
                                                 const char *vocab_path, uint64_t seed,
                                                 const char *out_path,
                                                 const dpi_write_options *options, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
