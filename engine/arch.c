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
    {"qwen3next", "", "layers with a recurrent state"},
    {"mamba", "", "layers with a recurrent state"},
};

static bool fits(const char *name, size_t i) {
    const size_t n = strlen(name), n_end = strlen(missing[i].end);
    return strncmp(name, missing[i].begin, strlen(missing[i].begin)) == 0 && n >= n_end &&
           strcmp(name + n - n_end, missing[i].end) == 0;
}

static dpi_status refuse(const dpi_gguf *gguf, const char *name, dpi_error *err) {
    char names[240] = "";
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

int64_t dpi_extent_of(const dpi_shape *s, dpi_extent extent) {
    switch (extent) {
    case DPI_EXTENT_EMBD: return s->n_embd;
    case DPI_EXTENT_FF: return s->n_ff;
    case DPI_EXTENT_Q: return (int64_t)s->n_head * s->head_dim;
    case DPI_EXTENT_K: return (int64_t)s->n_kv_head * s->head_dim;
    case DPI_EXTENT_V: return (int64_t)s->n_kv_head * s->head_dim_v;
    case DPI_EXTENT_ATT: return (int64_t)s->n_head * s->head_dim_v;
    case DPI_EXTENT_HEAD: return s->head_dim;
    case DPI_EXTENT_QG: return 2 * (int64_t)s->n_head * s->head_dim;
    case DPI_EXTENT_TAPS: return s->delta.n_tap;
    case DPI_EXTENT_KEYS:
        return 2 * (int64_t)s->delta.n_k_head * s->delta.dim +
               dpi_extent_of(s, DPI_EXTENT_VALUES);
    case DPI_EXTENT_VALUES: return (int64_t)s->delta.n_v_head * s->delta.dim_v;
    case DPI_EXTENT_V_HEADS: return s->delta.n_v_head;
    case DPI_EXTENT_DIM_V: return s->delta.dim_v;
    case DPI_EXTENT_INPUT: return s->n_input;
    case DPI_EXTENT_ONE:
    case DPI_EXTENT_NONE: break;
    }
    return 1;
}

const dpi_arch_tensor *dpi_arch_matrix(const dpi_arch_table *table, int32_t i) {
    const dpi_arch_tensor *t = table->tensors;
    while (t->is_array || i-- > 0)
        t++;
    return t;
}

static const char *name_of(const dpi_arch_tensor *t, bool joined) {
    return joined ? t->joined : t->name;
}

static int32_t count(const dpi_arch_table *table, const dpi_arch_tensor *t, bool joined) {
    int32_t n = 1;
    const dpi_arch_tensor *end = table->tensors + table->n_tensors;
    while (t + n < end && !t->is_array && !t[n].is_array &&
           strcmp(name_of(&t[n], joined), name_of(t, joined)) == 0)
        n++;
    return n;
}

int32_t dpi_arch_parts(const dpi_arch_table *table, const dpi_arch_tensor *tensor) {
    return count(table, tensor, false);
}

int32_t dpi_arch_joined(const dpi_arch_table *table, const dpi_arch_tensor *tensor) {
    return count(table, tensor, true);
}

dpi_tensor_name dpi_arch_tensor_name(const dpi_arch_tensor *tensor, int32_t layer,
                                     const char *suffix) {
    dpi_tensor_name name;
    snprintf(name.text, sizeof name.text, "blk.%d.%s%s%s", (int)layer, tensor->name,
             tensor->is_bare ? "" : ".", tensor->is_bare ? "" : suffix);
    return name;
}

dpi_tensor_name dpi_arch_joined_name(const dpi_arch_tensor *tensor, int32_t layer,
                                     const char *suffix) {
    dpi_tensor_name name;
    snprintf(name.text, sizeof name.text, "blk.%d.%s.%s", (int)layer, tensor->joined, suffix);
    return name;
}
