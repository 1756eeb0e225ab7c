#include "engine/arch.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "engine/config.h"

#define ADDRESS(name) &dpi_arch_##name,
static const dpi_arch *const archs[] = {DPI_ARCHS(ADDRESS)};

enum { N_ARCHS = sizeof archs / sizeof *archs };

/* What some others have that is missing here. The first that fits counts. */
static const struct {
    const char *begin, *end; /* of a name */
    const char *what;
} missing[] = {
    {"", "moe", "mixtures of experts"},
    {"gpt-oss", "", "mixtures of experts"},
    {"deepseek2", "", "mixtures of experts"},
    {"llama4", "", "mixtures of experts"},
    {"clip", "", "pictures"},
    {"", "vl", "pictures"},
    {"bert", "", "encoders"},
    {"", "bert", "encoders"},
    {"modern-bert", "", "encoders"},
    {"t5", "", "encoders"},
    {"gemma-embedding", "", "encoders"},
    {"qwen35", "", "layers with a recurrent state"},
    {"qwen3next", "", "layers with a recurrent state"},
    {"mamba", "", "layers with a recurrent state"},
    {"gemma4", "", "layers that differ in their heads"},
};

static bool fits(const char *name, size_t i) {
    const size_t n = strlen(name), n_end = strlen(missing[i].end);
    return strncmp(name, missing[i].begin, strlen(missing[i].begin)) == 0 && n >= n_end &&
           strcmp(name + n - n_end, missing[i].end) == 0;
}

static dpi_status refuse(const dpi_gguf *gguf, const char *name, dpi_error *err) {
    char names[160] = "";
    const char *what = NULL;
    for (size_t i = 0; !what && i < sizeof missing / sizeof *missing; i++)
        what = fits(name, i) ? missing[i].what : NULL;
    for (size_t i = 0, n = 0; i < N_ARCHS; i++, n = strlen(names))
        snprintf(names + n, sizeof names - n, "%s%s",
                 i == 0 ? "" : i + 1 < N_ARCHS ? ", " : " and ", archs[i]->name);
    return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                    "%s: general.architecture is '%s', only %s are supported%s%s",
                    dpi_gguf_name(gguf), name, names, what ? "; it has " : "", what ? what : "");
}

const dpi_arch *dpi_arch_find(const char *name) {
    size_t i = 0;
    while (i < N_ARCHS && strcmp(archs[i]->name, name) != 0)
        i++;
    return i < N_ARCHS ? archs[i] : NULL;
}

dpi_status dpi_arch_of(const dpi_gguf *gguf, const dpi_arch **arch, dpi_error *err) {
    dpi_str name = {"", 0};
    bool found = false;
    DPI_TRY(dpi_gguf_get_string(gguf, "general.architecture", &name, &found, err));
    if (!found)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: key general.architecture is missing",
                        dpi_gguf_name(gguf));
    char text[33];
    snprintf(text, sizeof text, "%.*s", (int)(name.n_bytes > 32 ? 32 : name.n_bytes), name.data);
    *arch = dpi_arch_find(text);
    return *arch ? DPI_STATUS_OK : refuse(gguf, text, err);
}

int64_t dpi_extent_of(const dpi_config *c, dpi_extent extent) {
    switch (extent) {
    case DPI_EXTENT_EMBD: return c->n_embd;
    case DPI_EXTENT_FF: return c->n_ff;
    case DPI_EXTENT_Q: return (int64_t)c->n_head * c->head_dim;
    case DPI_EXTENT_K: return (int64_t)c->n_kv_head * c->head_dim;
    case DPI_EXTENT_V: return (int64_t)c->n_kv_head * c->head_dim_v;
    case DPI_EXTENT_ATT: return (int64_t)c->n_head * c->head_dim_v;
    case DPI_EXTENT_HEAD: return c->head_dim;
    case DPI_EXTENT_NONE: break;
    }
    return 1;
}

const dpi_arch_tensor *dpi_arch_matrix(const dpi_arch *arch, int32_t i) {
    const dpi_arch_tensor *t = arch->tensors;
    while (!t->n_out || i-- > 0)
        t++;
    return t;
}

static const char *name_of(const dpi_arch_tensor *t, bool joined) {
    return joined ? t->joined : t->name;
}

static int32_t count(const dpi_arch *arch, const dpi_arch_tensor *t, bool joined) {
    int32_t n = 1;
    const dpi_arch_tensor *end = arch->tensors + arch->n_tensors;
    while (t + n < end && t->n_out && t[n].n_out &&
           strcmp(name_of(&t[n], joined), name_of(t, joined)) == 0)
        n++;
    return n;
}

int32_t dpi_arch_parts(const dpi_arch *arch, const dpi_arch_tensor *tensor) {
    return count(arch, tensor, false);
}

int32_t dpi_arch_joined(const dpi_arch *arch, const dpi_arch_tensor *tensor) {
    return count(arch, tensor, true);
}

static dpi_tensor_name of_layer(const char *name, int32_t layer, const char *suffix) {
    dpi_tensor_name whole;
    snprintf(whole.text, sizeof whole.text, "blk.%d.%s.%s", (int)layer, name, suffix);
    return whole;
}

dpi_tensor_name dpi_arch_tensor_name(const dpi_arch_tensor *tensor, int32_t layer,
                                     const char *suffix) {
    return of_layer(tensor->name, layer, suffix);
}

dpi_tensor_name dpi_arch_joined_name(const dpi_arch_tensor *tensor, int32_t layer,
                                     const char *suffix) {
    return of_layer(tensor->joined, layer, suffix);
}

int32_t dpi_arch_matrix_of(const dpi_arch *arch, const char *tensor, int32_t *layer, int32_t *n) {
    if (sscanf(tensor, "blk.%6d", layer) != 1)
        return -1;
    for (int32_t i = 0; i < 2 * arch->n_matrices; i++) {
        const dpi_arch_tensor *t = dpi_arch_matrix(arch, i / 2);
        if (strcmp(tensor, of_layer(name_of(t, i % 2), *layer, "weight").text) == 0) {
            *n = count(arch, t, i % 2);
            return i / 2;
        }
    }
    return -1;
}
