#include "base/status.h"
#include "engine/arch/parts.h"

static const dpi_arch_tensor tensors[] = {
    DPI_ATTN_NORM, DPI_QKV, DPI_ATTN_OUTPUT, DPI_FFN_NORM, DPI_FFN,
};

static const char *const keys[] = {DPI_KEYS, NULL};

static dpi_status read(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    (void)gguf, (void)err;
    c->still_period = 4; /* no key tells */
    return DPI_STATUS_OK;
}

const dpi_arch dpi_arch_smollm3 = {.name = "smollm3", DPI_TENSORS(tensors), .keys = keys,
                                   .read = read};
