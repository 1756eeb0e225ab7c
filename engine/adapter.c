#include "engine/adapter.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/utf8.h"
#include "engine/base_mark.h"
#include "engine/model.h"

/* ---- The file -------------------------------------------------------------------------------- */

static dpi_status check_kind(const dpi_gguf *file, const dpi_arch *of_model, double *alpha,
                             dpi_error *err) {
    const char *name = dpi_gguf_name(file);
    dpi_str type = {"", 0}, kind = {"", 0};
    static const char *const known[] = {"type", "lora.alpha", "alora.invocation_tokens",
                                        "lora.task_name",     /* what it was trained for */
                                        "lora.prompt_prefix", /* what its users may write first */
                                        NULL};
    *alpha = 0;
    const dpi_arch *arch = NULL;
    DPI_TRY(dpi_arch_of(file, &arch, err));
    if (arch != of_model)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "%s: general.architecture is '%s', that of the model is '%s'", name,
                        arch->name, of_model->name);
    DPI_TRY(dpi_gguf_check_keys(file, "adapter.", known, err));
    DPI_TRY(dpi_gguf_get_string(file, "general.type", &type, NULL, err));
    DPI_TRY(dpi_gguf_get_string(file, "adapter.type", &kind, NULL, err));
    if (!dpi_str_is(type, "adapter") || !dpi_str_is(kind, "lora"))
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s is no adapter: general.type is '%.*s', must be 'adapter'; adapter.type "
                        "is '%.*s', must be 'lora'",
                        name, (int)(type.n_bytes > 32 ? 32 : type.n_bytes), type.data,
                        (int)(kind.n_bytes > 32 ? 32 : kind.n_bytes), kind.data);
    if (dpi_gguf_find(file, "adapter.alora.invocation_tokens"))
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "%s: adapter.alora.invocation_tokens: adapters that tokens switch on are "
                        "not supported", name);
    return dpi_gguf_get_float(file, "adapter.lora.alpha", 0, 1e6, alpha, NULL, err);
}

/* A and B of n matrices that may be one tensor; NULL: none. */
typedef struct pair {
    const dpi_gguf_tensor *a, *b;
    int32_t n;
} pair;

static dpi_status refuse_tensor(const dpi_model *m, const dpi_gguf_tensor *t, dpi_error *err) {
    int32_t layer = 0; /* what others have is like it */
    if (sscanf(t->name, "blk.%6d", &layer) != 1 || layer < 0 || layer >= m->config.n_layer)
        layer = 0;
    const dpi_arch_table *table = dpi_config_table(&m->config, layer);
    char names[128] = "";
    for (int32_t i = 0; i < table->n_matrices;
         i += dpi_arch_parts(table, dpi_arch_matrix(table, i))) {
        const size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "",
                 dpi_arch_matrix(table, i)->name);
    }
    return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                    "%s: tensor %s: an adapter may be of %s, of layers 0..%d that have it",
                    t->file, t->name, names, (int)m->config.n_layer - 1);
}

static dpi_status refuse_second(const dpi_gguf_tensor *t, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s: tensor %s: another one is of the same weights",
                    t->file, t->name);
}

static dpi_status find_pairs(const dpi_model *m, const dpi_gguf *file, pair *pairs,
                             dpi_error *err) {
    if (dpi_gguf_tensor_count(file) == 0)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: an adapter without tensors",
                        dpi_gguf_name(file));
    for (int64_t i = 0; i < dpi_gguf_tensor_count(file); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(file, i);
        const char *end = strrchr(t->name, '.');
        const bool is_b = end && strcmp(end, ".lora_b") == 0;
        char name[64] = "";
        int32_t n = 0;
        if (is_b || (end && strcmp(end, ".lora_a") == 0))
            snprintf(name, sizeof name, "%.*s", (int)(end - t->name), t->name);
        const int32_t index = dpi_model_find(m, name, &n);
        if (index < 0)
            return refuse_tensor(m, t, err);
        pair *p = &pairs[index];
        if (p->n && p->n != n)
            return refuse_second(t, err);
        p->n = n;
        *(is_b ? &p->b : &p->a) = t;
    }
    return DPI_STATUS_OK;
}

/* `n_out`: of the whole tensor. */
static dpi_status check_pair(const pair *p, const dpi_matrix *w, int64_t n_out, dpi_error *err) {
    const dpi_gguf_tensor *t = p->a ? p->a : p->b;
    if (!p->a || !p->b)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: tensor %s has no lora_%c beside it", t->file,
                        t->name, p->a ? 'b' : 'a');
    const int64_t rank = p->a->shape[1];
    if (rank < 1 || rank > DPI_ADAPTER_RANK_MAX || p->a->shape[0] != w->n_in ||
        p->b->shape[0] != rank || p->b->shape[1] != n_out || p->a->n_dims > 2 ||
        p->b->n_dims > 2)
        return dpi_fail_at(err, DPI_STATUS_FORMAT, p->a->offset,
                           "%s: tensor %s is [%lld, %lld], its lora_b [%lld, %lld]: must be "
                           "[%lld, rank] and [rank, %lld], rank at most %d",
                           t->file, t->name, (long long)p->a->shape[0], (long long)rank,
                           (long long)p->b->shape[0], (long long)p->b->shape[1],
                           (long long)w->n_in, (long long)n_out, DPI_ADAPTER_RANK_MAX);
    return DPI_STATUS_OK;
}

/* ---- The model ------------------------------------------------------------------------------- */

static dpi_status read_tensor(const dpi_gguf_tensor *t, float *to, dpi_error *err) {
    const int64_t n = t->shape[0] * t->shape[1];
    dpi_type_find(t->type)->dequantize(t->data, to, n);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(to[i]))
            return dpi_fail_at(err, DPI_STATUS_NUMERIC, t->offset,
                               "%s: tensor %s, number %lld is %g, must be finite", t->file, t->name,
                               (long long)i, (double)to[i]);
    return DPI_STATUS_OK;
}

/* Rows of n matrices together, from the i-th of the model on. */
static int64_t rows_of(dpi_model *m, int32_t i, int32_t n) {
    int64_t n_out = 0;
    for (int32_t k = 0; k < n; k++)
        n_out += dpi_model_matrix(m, i + k)->n_out;
    return n_out;
}

static dpi_status check_pairs(dpi_model *m, const pair *pairs, int32_t n_matrices, uint64_t *n,
                              dpi_error *err) {
    *n = 0;
    for (int32_t i = 0; i < n_matrices; i++) {
        const dpi_matrix *w = dpi_model_matrix(m, i);
        if (!pairs[i].a && !pairs[i].b)
            continue;
        const int64_t n_out = rows_of(m, i, pairs[i].n);
        m->adapters->n += pairs[i].n;
        DPI_TRY(check_pair(&pairs[i], w, n_out, err));
        *n += (uint64_t)pairs[i].a->shape[1] * (uint64_t)(w->n_in + n_out);
    }
    return DPI_STATUS_OK;
}

/* Numbers of all pairs, one after the other; each matrix knows its adapter. */
static dpi_status fill(dpi_model *m, const pair *pairs, int32_t n_matrices, double alpha,
                       float scale, dpi_error *err) {
    dpi_adapters *all = m->adapters;
    uint64_t n = 0;
    DPI_TRY(check_pairs(m, pairs, n_matrices, &n, err));
    all->of = dpi_calloc((size_t)all->n, sizeof *all->of);
    all->numbers = dpi_calloc(n, sizeof *all->numbers);
    if (!all->of || !all->numbers)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for an adapter");
    dpi_adapter *adapter = all->of;
    float *next = all->numbers;
    for (int32_t i = 0; i < n_matrices; i++) {
        if (!pairs[i].a)
            continue;
        const int64_t rank = pairs[i].a->shape[1], n_in = dpi_model_matrix(m, i)->n_in;
        const float by = alpha > 0 ? (float)(scale * alpha / (double)rank) : scale;
        const float *a = next;
        DPI_TRY(read_tensor(pairs[i].a, next, err));
        DPI_TRY(read_tensor(pairs[i].b, next += rank * n_in, err));
        if (rank > all->max_rank) {
            all->max_rank = (int32_t)rank;
            all->scale = by;
        }
        for (int32_t k = 0; k < pairs[i].n; k++, adapter++) {
            dpi_matrix *w = dpi_model_matrix(m, i + k);
            if (w->adapter)
                return refuse_second(pairs[i].a, err);
            *adapter = (dpi_adapter){.a = a, .b = next, .rank = (int32_t)rank, .scale = by,
                                     .place = m->products[i + k].tensor->place};
            w->adapter = adapter;
            next += rank * w->n_out;
        }
    }
    return DPI_STATUS_OK;
}

static dpi_status read_file(dpi_model *m, const dpi_gguf *file, const char *path, float scale,
                            dpi_error *err) {
    const int32_t n_matrices = m->n_products;
    double alpha;
    dpi_str name = {"", 0};
    DPI_TRY(check_kind(file, m->config.arch, &alpha, err));
    DPI_TRY(dpi_base_mark_check(file, dpi_model_mark(m), err));
    DPI_TRY(dpi_gguf_get_string(file, "general.name", &name, NULL, err));
    pair *pairs = dpi_calloc((size_t)n_matrices, sizeof *pairs);
    m->adapters = dpi_calloc(1, sizeof *m->adapters);
    if (m->adapters)
        m->adapters->path = strdup(path);
    dpi_status status = pairs && m->adapters && m->adapters->path
                            ? find_pairs(m, file, pairs, err)
                            : dpi_fail(err, DPI_STATUS_MEMORY, "no memory for an adapter");
    if (status == DPI_STATUS_OK) {
        snprintf(m->adapters->name, sizeof m->adapters->name, "%.*s",
                 (int)(name.n_bytes < 63 ? name.n_bytes : 63), name.data);
        status = fill(m, pairs, n_matrices, alpha, scale, err);
    }
    free(pairs);
    return status;
}

dpi_status dpi_adapters_open(dpi_model *m, const char *path, float scale, dpi_error *err) {
    dpi_gguf *file;
    if (m->vocab_only)
        return dpi_fail(err, DPI_STATUS_ARG, "an adapter needs the weights of its model");
    if (!(fabsf(scale) <= 1e3f))
        return dpi_fail(err, DPI_STATUS_ARG, "adapter_scale is %g, must be -1000..1000",
                        (double)scale);
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    const dpi_status status = read_file(m, file, path, scale, err);
    dpi_gguf_close(file);
    return status;
}

bool dpi_adapter_has(const dpi_model *m, const char *tensor) {
    int32_t n = 0;
    bool has = false;
    for (int32_t i = dpi_model_find(m, tensor, &n); n > 0 && !has; i++, n--)
        has = i >= 0 && m->products[i].w->adapter;
    return has;
}

const dpi_adapter *dpi_adapter_of(const dpi_model *m, const char *tensor, int64_t *row) {
    const int32_t i = dpi_model_row(m, tensor, row);
    return i < 0 ? NULL : m->products[i].w->adapter;
}

const char *dpi_model_adapter(const dpi_model *m) { return m->adapters ? m->adapters->path : NULL; }

void dpi_adapters_free(dpi_adapters *adapters) {
    if (!adapters)
        return;
    free(adapters->of);
    free(adapters->numbers);
    free(adapters->path);
    free(adapters);
}

void dpi_model_adapted_name(const dpi_model_info *info, char name[64]) {
    static const char mark[] = "NOT PRIVATE";
    const bool adapted = info->adapter_rank > 0;
    char suffix[128];
    snprintf(suffix, sizeof suffix, "%s%s%s%s", adapted ? " + adapter " : "",
             adapted ? info->adapter_name : "",
             info->n_controlled ? " + control vector" : "",
             adapted && strstr(info->name, mark) && !strstr(info->adapter_name, mark)
                 ? " (NOT PRIVATE)" : "");
    dpi_name_join(name, 64, info->name, suffix);
}
