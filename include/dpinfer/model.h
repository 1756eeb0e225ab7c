/* model.h - a GGUF model: open it, and read what it says of itself. */
#ifndef DPINFER_MODEL_H
#define DPINFER_MODEL_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_model dpi_model;

/* When quantised weights are rearranged for the integer kernels, and the file's pages are released.
 * A pass that comes before that rearranges the weights for itself, so that logits are the same
 * bits. A file that is not mapped is rearranged at once. */
typedef enum dpi_repack {
    DPI_REPACK_NONE = 0,  /* never: for inspection (sessions compute with f32 activations) */
    DPI_REPACK_SOON = 1,  /* while the model opens, for half a second at most; the rest before the
                             second pass of a session. The first token does not wait for it */
    DPI_REPACK_LATER = 2 /* all before the second pass */
} dpi_repack;

/* Computes logits in place of a model: logits [n_vocab] after tokens [n_tokens >= 1], which are all
 * that one sequence holds. They are a function of these tokens alone, to the bit: of no other
 * sequence, whether it is computed at the same time or not (PURITY in session.h; many engines
 * change the bits of a row with the size of its batch). Called by the thread that uses the session.
 * A status that is not OK ends the call that needs the logits; it must not follow from tokens. */
typedef dpi_status (*dpi_logits_fn)(void *user, const int32_t *tokens, int32_t n_tokens,
                                    float *logits, dpi_error *err);

typedef struct dpi_model_options {
    size_t struct_size;
    int32_t use_mmap;   /* 1 (default): map the file; 0: read it into memory */
    int32_t vocab_only; /* 1: tokenizer and metadata only, the file may have no weights */
    int32_t check_weights; /* 1: read every weight first, and refuse non-finite ones by tensor, row
                              and offset (NUMERIC). Slow */
    int32_t repack;        /* a dpi_repack; default SOON */
    const char *adapter; /* a GGUF file with a low-rank adapter, as llama.cpp has them: what the
                            matrices of the layers are multiplied with becomes W + adapter_scale
                            (alpha / rank) B A, in every session on this model. It is read when the
                            model opens. NULL (default): none */
    float adapter_scale; /* default 1 */
    int32_t n_ctx; /* with logits: positions of a sequence, 2..2^20 */
    dpi_logits_fn logits; /* computes the logits of every session on this model: of the file the
                             tokenizer and the metadata alone are read, as with vocab_only. The
                             model's name then says so. NULL (default): the file's weights do */
    void *logits_user;
    const char *control_vector; /* a GGUF file with a control vector, as llama.cpp has them: after
                                   layer i the residual stream x [n_embd] of every position becomes
                                   x + control_vector_scale direction.i, in every session on this
                                   model. It is read when the model opens. NULL (default): none */
    float control_vector_scale; /* -1000..1000, default 1 */
} dpi_model_options;

typedef struct dpi_model_info {
    size_t struct_size;
    int32_t n_layer, n_embd, n_ff, n_head, n_kv_head;
    int32_t n_recurrent; /* layers with a recurrent state, of fixed size, in place of attention */
    int32_t head_dim;   /* of q and k: {arch}.attention.key_length, or n_embd / n_head */
    int32_t head_dim_v; /* of v: {arch}.attention.value_length, or n_embd / n_head */
    int32_t n_rot;      /* dimensions of a head that are rotated */
    int32_t n_vocab;
    int32_t n_ctx_train; /* {arch}.context_length */
    int32_t chat_template; /* recognised dpi_chat, DPI_CHAT_NONE if the file has none,
                              DPI_CHAT_UNKNOWN if it has one that is not recognised */
    int32_t tied_output;   /* 1: the output head is the embedding matrix */
    int32_t random_weights; /* 1: the file says that its weights are random (timing only) */
    int32_t adapter_rank; /* the largest one of the adapter; 0: there is none */
    int32_t n_adapted;    /* matrices that have one */
    float adapter_scale;  /* alpha / rank, times that of the options */
    int32_t chat_nearest; /* chat_template; for DPI_CHAT_UNKNOWN the dpi_chat that it looks most
                             like, DPI_CHAT_NONE if it looks like none */
    char adapter_name[64];
    int64_t n_params; /* without the adapter */
    int64_t weight_bytes; /* of all tensors, as stored in the file */
    float rope_freq_base, rope_freq_scale, rms_eps;
    /* What the file recommends for text without a mechanism (general.sampling.top_k and .temp); 0:
     * nothing. */
    int32_t sampling_top_k;
    double sampling_temp;
    char architecture[32];
    char name[64];
    char weight_types[96]; /* for example "Q4_K Q6_K F32", by share of bytes */
    int32_t n_controlled; /* layers after which a control vector is added; 0: there is none */
    float control_vector_scale; /* that of the options */
    int32_t n_control_sets; /* vectors after each of these layers, one for each label; 0: there is
                               no control vector */
    int32_t reserved;
} dpi_model_info;

DPI_API void dpi_model_options_init_size(dpi_model_options *options, size_t size);
#define dpi_model_options_init(o) dpi_model_options_init_size((o), sizeof *(o))
DPI_API void dpi_model_info_init_size(dpi_model_info *info, size_t size);
#define dpi_model_info_init(o) dpi_model_info_init_size((o), sizeof *(o))

/* Opens a GGUF v2 or v3 file of a dense model whose general.architecture is llama, qwen2, qwen3,
 * qwen35, gemma2, gemma3, gemma4, phi3, smollm3, granite, olmo2, mistral3 or vaultgemma. `options`
 * may be NULL for the defaults.
 * On success *model belongs to the caller, who closes it after every session on it. A mapped
 * file must not be truncated while the model is open (SIGBUS): use_mmap = 0 avoids that.
 * Errors: IO, FORMAT (with offset), UNSUPPORTED (a type or architecture, by name), MEMORY;
 * NUMERIC (an adapter or a control vector that is not finite). */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_open(const char *path, const dpi_model_options *options,
                                                 dpi_model **model, dpi_error *err);

/* The same from memory. `data` stays the caller's and must outlive the model. ARG if it is not
 * aligned to 8 bytes and the file has weights. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_open_buffer(const void *data, size_t n_bytes,
                                                        const dpi_model_options *options,
                                                        dpi_model **model, dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_model_close(dpi_model *model);

/* Fills in *info, after dpi_model_info_init. Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_info_get(const dpi_model *model, dpi_model_info *info,
                                                     dpi_error *err);

/* The path of the adapter, as the options had it; NULL: none. The model's. */
DPI_API const char *dpi_model_adapter(const dpi_model *model);
/* The same of the control vector. */
DPI_API const char *dpi_model_control_vector(const dpi_model *model);

/* Bytes of weights that computing will bring into memory and that opening the model did not:
 * matrices that are not rearranged yet; of a mapped file also those that are used in place; and of
 * an embedding that is only looked up about what n_tokens tokens need. */
DPI_API uint64_t dpi_model_unread_bytes(const dpi_model *model, int64_t n_tokens);

/* The metadata and tensors of the file, for inspection. Index in [0, count). The strings live
 * as long as the model. `value` renders scalars and strings in full and arrays shortened. */
DPI_API int64_t dpi_model_metadata_count(const dpi_model *model);
DPI_API DPI_MUST_CHECK dpi_status dpi_model_metadata_get(const dpi_model *model, int64_t index,
                                                         const char **key, const char **type,
                                                         char *value, size_t value_size,
                                                         dpi_error *err);
DPI_API int64_t dpi_model_tensor_count(const dpi_model *model);
/* shape: 4 dimensions, GGUF order (columns first), unused ones 1. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_tensor_get(const dpi_model *model, int64_t index,
                                                       const char **name, const char **type,
                                                       int64_t shape[4], uint64_t *offset,
                                                       uint64_t *n_bytes, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
