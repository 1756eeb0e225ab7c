/* parts.h - what the tables of architectures are put together from. Internal. */
#ifndef DPI_ARCH_PARTS_H
#define DPI_ARCH_PARTS_H

#include "engine/model.h"

#define DPI_AT(member) offsetof(dpi_layer, member)
#define DPI_MATRIX(name, in, out, member, place) DPI_PART(name, name, in, out, member, place)
#define DPI_NORM(name, in, member) DPI_NORM_OF(0, name, in, member)
/* Those that may be one tensor of the file, `joined`. */
#define DPI_PART(name, joined, in, out, member, place)                                             \
    DPI_PART_OF(0, name, joined, in, out, member, place)
/* Those of layers that have some parts. */
#define DPI_PART_OF(parts, name, joined, in, out, member, place)                                   \
    {name, joined, DPI_EXTENT_##in, DPI_EXTENT_##out, DPI_AT(member), place, false, false, parts}
#define DPI_MATRIX_OF(parts, name, in, out, member, place)                                         \
    DPI_PART_OF(parts, name, name, in, out, member, place)
#define DPI_NORM_OF(parts, name, in, member)                                                       \
    {name, NULL, DPI_EXTENT_##in, DPI_EXTENT_NONE, DPI_AT(member), 0, true, false, parts}

#define DPI_ATTN_NORM DPI_NORM("attn_norm", EMBD, attn_norm)
#define DPI_FFN_NORM DPI_NORM("ffn_norm", EMBD, ffn_norm)
#define DPI_POST_ATTN_NORM DPI_NORM("post_attention_norm", EMBD, post_attn_norm)
#define DPI_POST_FFN_NORM DPI_NORM("post_ffw_norm", EMBD, post_ffn_norm)

#define DPI_QKV                                                                                    \
    DPI_PART("attn_q", "attn_qkv", EMBD, Q, wq, 0),                                                \
        DPI_PART("attn_k", "attn_qkv", EMBD, K, wk, 1),                                            \
        DPI_PART("attn_v", "attn_qkv", EMBD, V, wv, 2)
#define DPI_HEAD_NORMS /* of each head of q and of k */                                            \
    DPI_NORM("attn_q_norm", HEAD, q_norm), DPI_NORM("attn_k_norm", HEAD, k_norm)
#define DPI_ATTN_OUTPUT DPI_MATRIX("attn_output", ATT, EMBD, wo, 0)
#define DPI_FFN                                                                                    \
    DPI_MATRIX("ffn_gate", EMBD, FF, w_gate, 0), DPI_MATRIX("ffn_up", EMBD, FF, w_up, 1),          \
        DPI_MATRIX("ffn_down", FF, EMBD, w_down, 0)

/* The tensors of layers of a kind, and how many they are. */
#define DPI_TENSORS_OF(kind, table, n_matrices)                                                    \
    .layers[DPI_LAYER_##kind] = {table, sizeof(table) / sizeof *(table), n_matrices}
#define DPI_TENSORS(table) DPI_TENSORS_OF(ATTENTION, table, 7)

/* Keys that every architecture knows. */
#define DPI_KEYS                                                                                   \
    /* config.c reads them */                                                                      \
    "block_count", "context_length", "embedding_length", "feed_forward_length",                    \
        "attention.head_count", "attention.head_count_kv", "attention.key_length",                 \
        "attention.value_length", "attention.layer_norm_rms_epsilon", "attention.sliding_window",  \
        "expert_count", "rope.dimension_count", "rope.freq_base", "rope.scale_linear",             \
        "rope.scaling.type", "rope.scaling.factor", "rope.scaling.low_freq_factor",                \
        "rope.scaling.high_freq_factor", "rope.scaling.original_context_length",                   \
        "rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor",                               \
        "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow",                              \
        "rope.scaling.yarn_ext_factor", /* the list of tokens has its own length: */               \
        "vocab_size", /* how the model was trained; in granite, whether it rotates: */             \
        "rope.scaling.finetuned", /* of mixtures of experts, which expert_count tells: */          \
        "expert_used_count",      /* where the file was converted from: */                         \
        "tensor_data_layout",     /* of embeddings of whole texts: */                              \
        "pooling_type"

#endif
