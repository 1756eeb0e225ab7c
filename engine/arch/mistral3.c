#include "base/status.h"
#include "engine/arch/parts.h"

static const dpi_arch_tensor tensors[] = {
    DPI_ATTN_NORM, DPI_QKV, DPI_ATTN_OUTPUT, DPI_FFN_NORM, DPI_FFN,
};

static const char *const keys[] = {DPI_KEYS, "attention.temperature_scale",
                                   "rope.scaling.yarn_log_multiplier", NULL};

static dpi_status read(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    return dpi_config_number(gguf, c, "attention.temperature_scale", 0, 1e3,
                             &c->temperature_scale, NULL, err);
}

const dpi_arch dpi_arch_mistral3 = {.name = "mistral3", DPI_TENSORS(tensors), .keys = keys,
                                    .read = read};
