#include "engine/arch/parts.h"

static const dpi_arch_tensor tensors[] = {
    DPI_ATTN_NORM, DPI_QKV, DPI_ATTN_OUTPUT, DPI_FFN_NORM, DPI_FFN,
};

static const char *const keys[] = {DPI_KEYS, NULL};

const dpi_arch dpi_arch_qwen2 = {.name = "qwen2", DPI_TENSORS(tensors), .keys = keys,
                                 .rotates_halves = true, .has_output_bias = true};
