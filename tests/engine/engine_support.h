/* engine_support.h - what the tests of engine/ share. */
#ifndef DPI_ENGINE_SUPPORT_H
#define DPI_ENGINE_SUPPORT_H

#include "engine/model.h"
#include "engine/session.h"
#include "tests/support/golden.h"
#include "tests/support/nmse.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

/* The default options of a session, but for the instruction set of DPI_ISA. */
static inline dpi_session_options isa_options(int32_t exact) {
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.isa = forced_isa(), o.exact = exact;
    return o;
}

/* Whether the instruction set is not this processor's best. What does not depend on it is then
 * skipped, and sweeps are thin: the run with the best one has them whole, and so has every run on
 * a processor without another. */
static inline bool is_thin(void) {
    return forced_isa() != DPI_ISA_AUTO && forced_isa() != dpi_isa_best();
}

static inline void random_tokens(int32_t *tokens, int32_t n, int32_t n_vocab, uint64_t *seed) {
    for (int32_t i = 0; i < n; i++)
        tokens[i] = random_below(seed, n_vocab);
}

static inline float *floats(size_t n) {
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    return x;
}

/* The keys of a file but one; NULL: all. */
static inline void build_metadata(gguf_build *b, const dpi_gguf *from, const char *without) {
    for (int64_t i = 0; i < dpi_gguf_kv_count(from); i++) {
        const dpi_gguf_kv *kv = dpi_gguf_kv_at(from, i);
        if (without && strcmp(kv->key, without) == 0)
            continue;
        build_key(b, kv->key, (uint32_t)kv->type);
        if (kv->type == DPI_GGUF_ARRAY) {
            build_put_u32(b, (uint32_t)kv->item_type);
            build_put_u64(b, kv->n_items);
        }
        build_put(b, kv->data, kv->n_bytes);
    }
}

/* A file with attn_qkv in place of attn_q, attn_k and attn_v, `kind` "weight" or "bias": rows of q,
 * then of k, then of v. A layer that has one of them alone has its rows. */
static inline void build_qkv(gguf_build *b, const dpi_gguf *from, const dpi_gguf_tensor *q,
                             int layer, const char *kind) {
    unsigned char *data = NULL;
    size_t n_bytes = 0;
    int64_t n = 0;
    char name[64];
    for (const char *part = "qkv"; *part; part++) {
        snprintf(name, sizeof name, "blk.%d.attn_%c.%s", layer, *part, kind);
        const dpi_gguf_tensor *t = dpi_gguf_tensor_find(from, name);
        if (!t)
            continue;
        assert_true(t->type == q->type);
        data = realloc(data, n_bytes + t->n_bytes);
        assert_non_null(data);
        memcpy(data + n_bytes, t->data, t->n_bytes);
        n_bytes += t->n_bytes, n += t->shape[t->n_dims - 1];
    }
    const int64_t shape[2] = {q->n_dims == 1 ? n : q->shape[0], n};
    snprintf(name, sizeof name, "blk.%d.attn_qkv.%s", layer, kind);
    build_tensor(b, name, q->type, (uint32_t)q->n_dims, shape, data, n_bytes);
    free(data);
}

/* Not where values are made of what keys are made of: there is no attn_v. */
static inline bool is_joined(const dpi_gguf *from, int layer) {
    char k[64], v[64];
    snprintf(k, sizeof k, "blk.%d.attn_k.weight", layer);
    snprintf(v, sizeof v, "blk.%d.attn_v.weight", layer);
    return !dpi_gguf_tensor_find(from, k) || dpi_gguf_tensor_find(from, v);
}

static inline void build_joined(gguf_build *b, const char *path) {
    dpi_gguf *from;
    assert_ok(dpi_gguf_open(path, true, &from, ERR));
    build_begin(b);
    build_metadata(b, from, NULL);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(from); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(from, i);
        char part, kind[8];
        int layer, end = 0;
        sscanf(t->name, "blk.%d.attn_%c.%7[a-z]%n", &layer, &part, kind, &end);
        if (end == 0 || t->name[end] || !is_joined(from, layer))
            build_tensor(b, t->name, t->type, (uint32_t)t->n_dims, t->shape, t->data, t->n_bytes);
        else if (part == 'q')
            build_qkv(b, from, t, layer, kind);
    }
    build_end(b);
    dpi_gguf_close(from);
}

/* Puts the n bytes `to` where `from` stands first. */
static inline void patch(char *image, size_t n_bytes, const char *from, const char *to, size_t n) {
    size_t at = 0;
    while (at + n <= n_bytes && memcmp(image + at, from, n) != 0)
        at++;
    assert_true(at + n <= n_bytes);
    memcpy(image + at, to, n);
}

/* A shared file in memory, patched. */
static inline char *patched_file(const char *relative, const char *from, const char *to, size_t n,
                                 size_t *n_bytes) {
    char *image = read_file(data_path(relative), n_bytes);
    patch(image, *n_bytes, from, to, n);
    return image;
}

/* The oracle's logits as floats. */
static inline float *exact_logits(const tiny_spec *spec, const dpi_model *model,
                                  const int32_t *tokens, int32_t n, const float *added) {
    const size_t n_all = (size_t)n * (size_t)spec->n_vocab;
    double *exact = malloc(n_all * sizeof *exact);
    float *logits = floats(n_all);
    assert_non_null(exact);
    oracle_logits(spec, model, tokens, n, added, exact);
    for (size_t i = 0; i < n_all; i++)
        logits[i] = (float)exact[i];
    free(exact);
    return logits;
}

#endif
