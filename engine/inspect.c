/* inspect.c - what a model file says about itself, and whether its weights are numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "engine/model.h"

DPI_STRUCT_DEFAULTS(dpi_model_info, 0)

/* ---- Summary --------------------------------------------------------------------------------- */

/* "Q4_K Q6_K F32": the types of the tensors, the one with the most bytes first. */
static void describe_types(const dpi_gguf *gguf, char *out, size_t size) {
    struct {
        uint32_t type;
        uint64_t n_bytes;
    } sums[64], swap;
    size_t n = 0, used = 0;
    for (int64_t i = 0; i < dpi_gguf_tensor_count(gguf); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(gguf, i);
        size_t j = 0;
        while (j < n && sums[j].type != t->type)
            j++;
        if (j == n) {
            if (n == sizeof sums / sizeof sums[0])
                continue;
            sums[n].type = t->type;
            sums[n++].n_bytes = 0;
        }
        sums[j].n_bytes += t->n_bytes;
        for (; j > 0 && sums[j].n_bytes > sums[j - 1].n_bytes; j--) {
            swap = sums[j];
            sums[j] = sums[j - 1];
            sums[j - 1] = swap;
        }
    }
    out[0] = '\0';
    for (size_t j = 0; j < n; j++) {
        const char *name = dpi_type_name(sums[j].type);
        int w = snprintf(out + used, size - used, "%s%s", j ? " " : "", name);
        if (w < 0 || (size_t)w >= size - used) {
            out[used] = '\0';
            return;
        }
        used += (size_t)w;
    }
}

static void copy_string(char *out, size_t size, dpi_str s) {
    size_t n = s.n_bytes < size - 1 ? (size_t)s.n_bytes : size - 1;
    memcpy(out, s.data, n);
    out[n] = '\0';
}

static const char outside[] = " (logits by the caller)";

static dpi_status tell(const dpi_model *model, dpi_model_info *info, dpi_error *err) {
    const dpi_config *c = &model->config;
    info->n_layer = c->n_layer;
    info->n_embd = c->n_embd;
    info->n_ff = c->n_ff;
    info->n_head = c->n_head;
    info->n_kv_head = c->n_kv_head;
    info->n_recurrent = dpi_config_count_layers(c, DPI_LAYER_DELTA);
    info->head_dim = c->head_dim;
    info->head_dim_v = c->head_dim_v;
    info->n_rot = c->n_rot;
    info->n_vocab = model->n_vocab;
    info->n_ctx_train = c->n_ctx_train;
    info->chat_template = dpi_vocab_chat(model->vocab);
    info->chat_nearest = dpi_vocab_chat_nearest(model->vocab);
    info->tied_output = model->tied_output;
    if (model->adapters) {
        info->adapter_rank = model->adapters->max_rank;
        info->n_adapted = model->adapters->n;
        info->adapter_scale = model->adapters->scale;
        memcpy(info->adapter_name, model->adapters->name, sizeof info->adapter_name);
    }
    if (model->control) {
        info->n_controlled = model->control->n;
        info->n_control_sets = model->control->n_sets;
        info->control_vector_scale = model->control->scale;
    }
    info->rope_freq_base = c->rope_freq_base;
    info->rope_freq_scale = c->rope_freq_scale;
    info->rms_eps = c->rms_eps;
    for (int64_t i = 0; i < dpi_gguf_tensor_count(model->gguf); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(model->gguf, i);
        info->n_params += t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
        info->weight_bytes += (int64_t)t->n_bytes;
    }
    bool random_weights = false;
    int64_t top_k = 0;
    double temp = 0;
    dpi_str name = {"", 0}, arch = {"", 0};
    DPI_TRY(dpi_gguf_get_bool(model->gguf, "dpinfer.random_weights", &random_weights, NULL, err));
    DPI_TRY(dpi_gguf_get_string(model->gguf, "general.name", &name, NULL, err));
    DPI_TRY(dpi_gguf_get_string(model->gguf, "general.architecture", &arch, NULL, err));
    DPI_TRY(
        dpi_gguf_get_int(model->gguf, "general.sampling.top_k", -1, INT32_MAX, &top_k, NULL, err));
    DPI_TRY(dpi_gguf_get_float(model->gguf, "general.sampling.temp", -1, 100, &temp, NULL, err));
    info->random_weights = random_weights;
    info->sampling_top_k = top_k > 0 ? (int32_t)top_k : 0;
    info->sampling_temp = temp > 0 ? round(temp * 1e6) / 1e6 : 0; /* .6, not the float beside it */
    copy_string(info->name, sizeof info->name - (model->logits ? sizeof outside - 1 : 0), name);
    if (model->logits) /* statements, claims and reports have the name */
        strcat(info->name, outside);
    copy_string(info->architecture, sizeof info->architecture, arch);
    describe_types(model->gguf, info->weight_types, sizeof info->weight_types);
    return DPI_STATUS_OK;
}

dpi_status dpi_model_info_get(const dpi_model *model, dpi_model_info *info, dpi_error *err) {
    dpi_model_info made = {0};
    DPI_CHECK_STRUCT(dpi_model_info, info, err);
    DPI_TRY(tell(model, &made, err));
    dpi_struct_give(info, &made, sizeof made);
    return DPI_STATUS_OK;
}

/* ---- Values of weights ----------------------------------------------------------------------- */

static dpi_status check_tensor(const dpi_gguf_tensor *t, float *row,
                               dpi_error *err) {
    const dpi_type *type = dpi_type_find(t->type);
    uint64_t row_bytes = dpi_type_row_bytes(type, t->shape[0]);
    int64_t n_rows = t->shape[1] * t->shape[2] * t->shape[3];
    for (int64_t r = 0; r < n_rows; r++) {
        uint64_t at = (uint64_t)r * row_bytes;
        type->dequantize((const unsigned char *)t->data + at, row, t->shape[0]);
        for (int64_t i = 0; i < t->shape[0]; i++)
            if (!isfinite(row[i]))
                return dpi_fail_at(err, DPI_STATUS_NUMERIC, t->offset + at,
                                   "%s: tensor %s (%s), row %lld, column %lld is %g, must be "
                                   "finite", t->file, t->name, type->name, (long long)r,
                                   (long long)i, (double)row[i]);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_model_check(const dpi_model *model, dpi_error *err) {
    int64_t widest = 1;
    for (int64_t i = 0; i < dpi_gguf_tensor_count(model->gguf); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(model->gguf, i);
        widest = t->shape[0] > widest ? t->shape[0] : widest;
    }
    float *row = dpi_calloc((size_t)widest, sizeof *row);
    if (!row)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a row of %lld weights",
                        (long long)widest);
    dpi_status status = DPI_STATUS_OK;
    for (int64_t i = 0; i < dpi_gguf_tensor_count(model->gguf) && status == DPI_STATUS_OK; i++)
        status = check_tensor(dpi_gguf_tensor_at(model->gguf, i), row, err);
    free(row);
    return status;
}

/* ---- Metadata and directory ------------------------------------------------------------------ */

/* Appends to a bounded string; drops what does not fit. */
typedef struct text {
    char *data;
    size_t size, used;
} text;

static void append(text *t, const char *data, size_t n) {
    size_t room = t->size - 1 - t->used;
    if (n > room)
        n = room;
    memcpy(t->data + t->used, data, n);
    t->used += n;
    t->data[t->used] = '\0';
}

static void append_number(text *t, const dpi_gguf_kv *kv, uint64_t index) {
    char number[40];
    static const unsigned char width[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    unsigned char bytes[8] = {0};
    memcpy(bytes, kv->data + index * width[kv->item_type], width[kv->item_type]);
    union {
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
        uint32_t u32;
        int32_t i32;
        uint16_t u16;
        int16_t i16;
        uint8_t u8;
        int8_t i8;
    } v;
    memcpy(&v, bytes, sizeof v);
    switch (kv->item_type) {
    case DPI_GGUF_U8: snprintf(number, sizeof number, "%u", v.u8); break;
    case DPI_GGUF_I8: snprintf(number, sizeof number, "%d", v.i8); break;
    case DPI_GGUF_U16: snprintf(number, sizeof number, "%u", v.u16); break;
    case DPI_GGUF_I16: snprintf(number, sizeof number, "%d", v.i16); break;
    case DPI_GGUF_U32: snprintf(number, sizeof number, "%u", v.u32); break;
    case DPI_GGUF_I32: snprintf(number, sizeof number, "%d", v.i32); break;
    case DPI_GGUF_F32: dpi_format(number, sizeof number, "%.9g", (double)v.f32); break;
    case DPI_GGUF_F64: dpi_format(number, sizeof number, "%.17g", v.f64); break;
    case DPI_GGUF_U64: snprintf(number, sizeof number, "%llu", (unsigned long long)v.u64); break;
    case DPI_GGUF_I64: snprintf(number, sizeof number, "%lld", (long long)v.i64); break;
    case DPI_GGUF_BOOL: snprintf(number, sizeof number, "%s", v.u8 ? "true" : "false"); break;
    case DPI_GGUF_STRING:
    case DPI_GGUF_ARRAY: number[0] = '\0'; break;
    }
    append(t, number, strlen(number));
}

int64_t dpi_model_metadata_count(const dpi_model *model) { return dpi_gguf_kv_count(model->gguf); }

dpi_status dpi_model_metadata_get(const dpi_model *model, int64_t index, const char **key,
                                  const char **type, char *value, size_t value_size,
                                  dpi_error *err) {
    enum { SHOWN = 8 }; /* items of an array */
    if (index < 0 || index >= dpi_gguf_kv_count(model->gguf) || value_size == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "metadata index %lld, must be 0..%lld",
                        (long long)index, (long long)dpi_gguf_kv_count(model->gguf) - 1);
    const dpi_gguf_kv *kv = dpi_gguf_kv_at(model->gguf, index);
    text t = {value, value_size, 0};
    value[0] = '\0';
    bool is_array = kv->type == DPI_GGUF_ARRAY;
    uint64_t cursor = 0, shown = is_array && kv->n_items > SHOWN ? SHOWN : kv->n_items;
    if (is_array)
        append(&t, "[", 1);
    for (uint64_t i = 0; i < shown; i++) {
        if (i)
            append(&t, ", ", 2);
        if (kv->item_type != DPI_GGUF_STRING) {
            append_number(&t, kv, i);
        } else if (is_array) {
            dpi_str s = dpi_gguf_next_string(kv, &cursor);
            append(&t, s.data, s.n_bytes);
        } else {
            dpi_str s = {"", 0};
            DPI_TRY(dpi_gguf_get_string(model->gguf, kv->key, &s, NULL, err));
            append(&t, s.data, s.n_bytes);
        }
    }
    if (is_array) {
        char end[48];
        snprintf(end, sizeof end, "%s] (%llu items)", kv->n_items > shown ? ", ..." : "",
                 (unsigned long long)kv->n_items);
        append(&t, end, strlen(end));
    }
    *key = kv->key;
    *type = dpi_gguf_type_name(kv->type);
    return DPI_STATUS_OK;
}

int64_t dpi_model_tensor_count(const dpi_model *model) {
    return dpi_gguf_tensor_count(model->gguf);
}

dpi_status dpi_model_tensor_get(const dpi_model *model, int64_t index, const char **name,
                                const char **type, int64_t shape[4], uint64_t *offset,
                                uint64_t *n_bytes, dpi_error *err) {
    if (index < 0 || index >= dpi_gguf_tensor_count(model->gguf))
        return dpi_fail(err, DPI_STATUS_ARG, "tensor index %lld, must be 0..%lld",
                        (long long)index, (long long)dpi_gguf_tensor_count(model->gguf) - 1);
    const dpi_gguf_tensor *t = dpi_gguf_tensor_at(model->gguf, index);
    *name = t->name;
    *type = dpi_type_name(t->type);
    memcpy(shape, t->shape, sizeof t->shape);
    *offset = t->offset;
    *n_bytes = t->n_bytes;
    return DPI_STATUS_OK;
}
