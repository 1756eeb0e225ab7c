#include "base/status.h"
#include "engine/arch/gemma.h"

static const dpi_arch_tensor tensors[] = {
    DPI_ATTN_NORM, DPI_QKV, DPI_ATTN_OUTPUT, DPI_POST_ATTN_NORM,
    DPI_FFN_NORM,  DPI_FFN, DPI_POST_FFN_NORM,
};

static const char *const keys[] = {DPI_GEMMA_KEYS, "attn_logit_softcapping", NULL};

/* Of two layers the first has a window. */
static dpi_status read(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    enum { LAYERS_OF_27B = 46, WINDOW = 4096, PERIOD = 2 };
    dpi_gemma_scales(c, LAYERS_OF_27B);
    c->attention_cap = 50, c->final_cap = 30;
    DPI_TRY(dpi_config_read_caps(gguf, c, err));
    return dpi_config_read_windows(gguf, c, WINDOW, PERIOD, err);
}

const dpi_arch dpi_arch_gemma2 = {.name = "gemma2", DPI_TENSORS(tensors), .keys = keys,
                                  .read = read, .rotates_halves = true, .has_gelu = true,
                                  .has_windows = true};
