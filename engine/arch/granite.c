#include "base/status.h"
#include "engine/arch/parts.h"

static const dpi_arch_tensor tensors[] = {
    DPI_ATTN_NORM, DPI_QKV, DPI_ATTN_OUTPUT, DPI_FFN_NORM, DPI_FFN,
};

/* Dense models of Granite 4.0 are converted as mixtures of which all layers attend, and the files
 * keep sizes of parts that they lack. A file that has such a part has tensors, ssm_* or *_shexp,
 * and is refused by their names. */
static const char *const keys[] = {DPI_KEYS,
                                   "embedding_scale",
                                   "residual_scale",
                                   "attention.scale",
                                   "logit_scale",
                                   "expert_shared_feed_forward_length",
                                   "ssm.conv_kernel",
                                   "ssm.state_size",
                                   "ssm.group_count",
                                   "ssm.inner_size",
                                   "ssm.time_step_rank",
                                   NULL};

/* A scale that is absent, or 0, is what the config has already. */
static dpi_status scale(const dpi_gguf *gguf, dpi_config *c, const char *key, float *out,
                        dpi_error *err) {
    double value = 0;
    DPI_TRY(dpi_config_number(gguf, c, key, 0, 1e6, &value, NULL, err));
    *out = value > 0 ? (float)value : *out;
    return DPI_STATUS_OK;
}

static dpi_status read(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    double divisor = 0;
    bool rotates = true;
    DPI_TRY(scale(gguf, c, "embedding_scale", &c->embedding_scale, err));
    DPI_TRY(scale(gguf, c, "residual_scale", &c->residual_scale, err));
    DPI_TRY(scale(gguf, c, "attention.scale", &c->attention_scale, err));
    DPI_TRY(dpi_config_demand(gguf, c, "logit_scale", err));
    DPI_TRY(dpi_config_number(gguf, c, "logit_scale", 1e-6, 1e6, &divisor, NULL, err));
    c->logit_scale = (float)(1 / divisor);
    DPI_TRY(dpi_gguf_get_bool(gguf, "granite.rope.scaling.finetuned", &rotates, NULL, err));
    c->still_period = rotates ? 0 : 1;
    return DPI_STATUS_OK;
}

const dpi_arch dpi_arch_granite = {.name = "granite", DPI_TENSORS(tensors), .keys = keys,
                                   .read = read};
