#include "engine/arch/parts.h"

static const dpi_arch_tensor tensors[] = {
    DPI_QKV,
    DPI_NORM("attn_q_norm", Q, q_norm),
    DPI_NORM("attn_k_norm", K, k_norm),
    DPI_ATTN_OUTPUT,
    DPI_POST_ATTN_NORM,
    DPI_FFN,
    DPI_POST_FFN_NORM,
};

static const char *const keys[] = {DPI_KEYS, "attention.sliding_window_pattern",
                                   "rope.freq_base_swa", /* windows turn with the one base */
                                   NULL};

/* OLMo 3: of four layers three have windows, and a rotation without scaling. */
static dpi_status read(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    enum { PERIOD = 4 };
    c->window_rope_base = c->rope_freq_base;
    return dpi_config_read_windows(gguf, c, 0, PERIOD, err);
}

const dpi_arch dpi_arch_olmo2 = {.name = "olmo2", DPI_TENSORS(tensors), .keys = keys, .read = read,
                                 .rotates_halves = true, .norms_all_heads = true,
                                 .needs_output = true, .has_windows = true};
