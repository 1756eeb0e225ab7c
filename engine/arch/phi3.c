#include "engine/arch/parts.h"

static const dpi_arch_tensor tensors[] = {
    DPI_ATTN_NORM,
    DPI_MATRIX("attn_qkv", EMBD, Q, wq, 0),
    DPI_MATRIX("attn_qkv", EMBD, K, wk, 1),
    DPI_MATRIX("attn_qkv", EMBD, V, wv, 2),
    DPI_ATTN_OUTPUT,
    DPI_FFN_NORM,
    DPI_MATRIX("ffn_up", EMBD, FF, w_gate, 0),
    DPI_MATRIX("ffn_up", EMBD, FF, w_up, 1),
    DPI_MATRIX("ffn_down", FF, EMBD, w_down, 0),
};

static const char *const keys[] = {DPI_KEYS, NULL};

/* A window is one of all layers, as in the original. */
static dpi_status read(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    enum { ALL = 0 };
    return dpi_config_read_windows(gguf, c, 0, ALL, err);
}

const dpi_arch dpi_arch_phi3 = {.name = "phi3", DPI_TENSORS(tensors), .keys = keys, .read = read,
                                .rotates_halves = true, .has_windows = true,
                                .has_rope_factors = true};
