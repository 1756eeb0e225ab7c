#include "base/status.h"
#include "engine/arch/gemma.h"

static const dpi_arch_tensor tensors[] = {
    DPI_ATTN_NORM,      DPI_QKV,      DPI_HEAD_NORMS, DPI_ATTN_OUTPUT,
    DPI_POST_ATTN_NORM, DPI_FFN_NORM, DPI_FFN,        DPI_POST_FFN_NORM,
};

static const char *const keys[] = {DPI_GEMMA_KEYS, "rope.freq_base_swa", NULL};

/* Of six layers five have windows, and a rotation of their own. */
static dpi_status read(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    enum { LAYERS_OF_27B = 62, PERIOD = 6 };
    double base = 10000;
    dpi_gemma_scales(c, LAYERS_OF_27B);
    DPI_TRY(dpi_config_read_caps(gguf, c, err));
    DPI_TRY(dpi_config_number(gguf, c, "rope.freq_base_swa", 1, 1e12, &base, NULL, err));
    c->window_rope_base = (float)base;
    return dpi_config_read_windows(gguf, c, 0, PERIOD, err);
}

const dpi_arch dpi_arch_gemma3 = {.name = "gemma3", DPI_TENSORS(tensors), .keys = keys,
                                  .read = read, .rotates_halves = true, .has_gelu = true,
                                  .has_windows = true};
