#include "gguf/recipe.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

static const dpi_recipe recipes[] = {
    {"F32", DPI_TYPE_F32, DPI_TYPE_F32, 0},      {"F16", DPI_TYPE_F16, DPI_TYPE_F16, 1},
    {"BF16", DPI_TYPE_BF16, DPI_TYPE_BF16, 32},  {"Q8_0", DPI_TYPE_Q8_0, DPI_TYPE_Q8_0, 7},
    {"Q4_0", DPI_TYPE_Q4_0, DPI_TYPE_Q4_0, 2},   {"Q4_1", DPI_TYPE_Q4_1, DPI_TYPE_Q4_1, 3},
    {"Q5_0", DPI_TYPE_Q5_0, DPI_TYPE_Q5_0, 8},   {"Q5_1", DPI_TYPE_Q5_1, DPI_TYPE_Q5_1, 9},
    {"Q4_K", DPI_TYPE_Q4_K, DPI_TYPE_Q4_K, 14},  {"Q5_K", DPI_TYPE_Q5_K, DPI_TYPE_Q5_K, 16},
    {"Q6_K", DPI_TYPE_Q6_K, DPI_TYPE_Q6_K, 18},  {"Q4_K_M", DPI_TYPE_Q4_K, DPI_TYPE_Q6_K, 15},
    {"Q5_K_M", DPI_TYPE_Q5_K, DPI_TYPE_Q6_K, 17},
};

enum { N_RECIPES = sizeof recipes / sizeof recipes[0] };

dpi_status dpi_recipe_find(const char *name, const dpi_recipe **recipe, dpi_error *err) {
    char names[128] = "";
    for (int i = 0; i < N_RECIPES; i++) {
        if (strcmp(recipes[i].name, name) == 0) {
            *recipe = &recipes[i];
            return DPI_STATUS_OK;
        }
        size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", i ? " " : "", recipes[i].name);
    }
    return dpi_fail(err, DPI_STATUS_ARG, "type '%.32s' cannot be written, allowed: %s", name,
                    names);
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* attn_v, or attn_qkv, and ffn_down of these layers decide the most. */
static bool is_sensitive_layer(int32_t layer, int32_t n_layer) {
    int32_t eighth = n_layer / 8;
    return layer < eighth || layer >= 7 * n_layer / 8 || (layer - eighth) % 3 == 2;
}

static bool needs_more(const char *tensor, int32_t n_layer, bool tied) {
    int layer;
    if (strcmp(tensor, tied ? "token_embd.weight" : "output.weight") == 0)
        return true;
    if (!ends_with(tensor, ".attn_v.weight") && !ends_with(tensor, ".attn_qkv.weight") &&
        !ends_with(tensor, ".ffn_down.weight"))
        return false;
    return sscanf(tensor, "blk.%d.", &layer) == 1 && is_sensitive_layer(layer, n_layer);
}

/* The type where rows are not a multiple of 256 (or of 32). */
static uint32_t with_smaller_blocks(uint32_t type) {
    switch (type) {
    case DPI_TYPE_Q4_K: return DPI_TYPE_Q5_0;
    case DPI_TYPE_Q5_K: return DPI_TYPE_Q5_1;
    case DPI_TYPE_Q6_K: return DPI_TYPE_Q8_0;
    default: return DPI_TYPE_F16;
    }
}

const dpi_type *dpi_recipe_type(const dpi_recipe *recipe, const char *tensor, int32_t n_dims,
                                int64_t n_in, int32_t n_layer, bool tied) {
    if (n_dims < 2 || !ends_with(tensor, ".weight") || ends_with(tensor, "_norm.weight") ||
        ends_with(tensor, ".ssm_conv1d.weight")) /* a filter, which no product reads */
        return NULL;
    uint32_t type = needs_more(tensor, n_layer, tied) ? recipe->more : recipe->type;
    while (n_in % dpi_type_find(type)->block != 0)
        type = with_smaller_blocks(type);
    return dpi_type_find(type);
}
