/* adapter_build.h - low-rank adapters of random numbers for models of tiny_default, or what has its
 * dimensions. */
#ifndef DPI_ADAPTER_BUILD_H
#define DPI_ADAPTER_BUILD_H

#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

enum { RANK = 5, PARTS = 7, ALL_PARTS = (1 << PARTS) - 1 };

/* The matrices that have an adapter, with its numbers: A [RANK, n_in], B [n_out, RANK]. */
static struct adapted {
    char name[64];
    int64_t n_in, n_out;
    float a[RANK * 256], b[RANK * 256];
} adapted[2 * PARTS];
static int n_adapted;

static inline void begin_adapter(gguf_build *b, const char *type, const char *kind, float alpha,
                                 const char *arch) {
    build_begin(b);
    build_string(b, "general.architecture", arch);
    build_string(b, "general.name", "made up");
    build_string(b, "general.type", type);
    build_string(b, "adapter.type", kind);
    build_f32(b, "adapter.lora.alpha", alpha);
}

/* What is called lora_a and so on, if `which` is not NULL. */
static inline void add_part(gguf_build *b, const char *name, const char *which, int64_t columns,
                            int64_t rows, const float *data) {
    char whole[96];
    snprintf(whole, sizeof whole, "%s%s%s", name, which ? ".lora_" : "", which ? which : "");
    build_tensor(b, whole, 0, 2, (int64_t[]){columns, rows}, data, (size_t)(4 * columns * rows));
}

static inline void end_adapter(gguf_build *b, const char *path) {
    build_end(b);
    write_file(path, b->data, b->n_bytes);
    build_free(b);
}

/* An adapter in a file and in `adapted`, of the parts whose bit is set. For models of tiny_default
 * or what has its dimensions. */
static inline void write_adapter(const char *path, const tiny_spec *s, uint32_t parts,
                                 float alpha) {
    static const char *const part[PARTS] = {"attn_q",   "attn_k", "attn_v",  "attn_output",
                                            "ffn_gate", "ffn_up", "ffn_down"};
    const int64_t kv = s->n_kv_head * s->n_embd / s->n_head;
    gguf_build b;
    uint64_t seed = 21;
    n_adapted = 0;
    begin_adapter(&b, "adapter", "lora", alpha, "llama");
    for (int i = 0; i < s->n_layer * PARTS; i++) {
        struct adapted *a = &adapted[n_adapted];
        const int p = i % PARTS;
        if (!(parts >> p & 1))
            continue;
        n_adapted++;
        snprintf(a->name, sizeof a->name, "blk.%d.%s.weight", i / PARTS, part[p]);
        a->n_in = p == 6 ? s->n_ff : s->n_embd;
        a->n_out = p == 1 || p == 2 ? kv : p == 4 || p == 5 ? s->n_ff : s->n_embd;
        for (int64_t k = 0; k < RANK * a->n_in; k++)
            a->a[k] = (float)(.2 * random_normal(&seed));
        for (int64_t k = 0; k < RANK * a->n_out; k++)
            a->b[k] = (float)(.2 * random_normal(&seed));
        add_part(&b, a->name, "a", a->n_in, RANK, a->a);
        add_part(&b, a->name, "b", RANK, a->n_out, a->b);
    }
    end_adapter(&b, path);
}

#endif
