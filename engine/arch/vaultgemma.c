#include "base/status.h"
#include "engine/arch/gemma.h"

static const dpi_arch_tensor tensors[] = {
    DPI_ATTN_NORM, DPI_QKV, DPI_ATTN_OUTPUT, DPI_FFN_NORM, DPI_FFN,
};

static const char *const keys[] = {DPI_GEMMA_KEYS, "attn_logit_softcapping", NULL};

/* As gemma2, but that an absent key is no cap. */
static dpi_status read(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    enum { NO_LAYERS = 0, WINDOW = 4096, PERIOD = 2 };
    dpi_gemma_scales(c, NO_LAYERS);
    DPI_TRY(dpi_config_read_caps(gguf, c, err));
    return dpi_config_read_windows(gguf, c, WINDOW, PERIOD, err);
}

const dpi_arch dpi_arch_vaultgemma = {.name = "vaultgemma", DPI_TENSORS(tensors), .keys = keys,
                                      .read = read, .rotates_halves = true, .has_gelu = true,
                                      .has_windows = true};
