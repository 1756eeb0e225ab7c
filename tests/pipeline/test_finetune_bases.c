/* Training on bases of all forms that are loaded: biases, heads of any width, turned in part, and
 * tensors of other architectures. What is written computes what was trained, and what is not
 * trained is as it was. */
#include "dpinfer/write.h"
#include "gguf/gguf.h"
#include "kernels/weight_types.h"
#include "tests/engine/engine_support.h"
#include "tests/pipeline/finetune_support.h"

static dpi_model *open_model(const char *path, const char *adapter) {
    DEFAULTS(dpi_model_options, o);
    dpi_model *m;
    o.adapter = adapter;
    assert_ok(dpi_model_open(path, &o, &m, ERR));
    return m;
}

/* What is not trained: biases, and divisors of frequencies. */
static bool is_frozen(const char *tensor) {
    return strstr(tensor, ".bias") || strncmp(tensor, "rope_", 5) == 0;
}

/* The keys of the architecture and what is not trained are the same bytes in two files, which have
 * the same tensors; how many tensors are not trained. */
static int same_rest(const char *a, const char *b) {
    dpi_gguf *one, *other;
    const dpi_arch *arch = NULL;
    char keys[40];
    int n = 0;
    assert_ok(dpi_gguf_open(a, true, &one, ERR));
    assert_ok(dpi_gguf_open(b, true, &other, ERR));
    assert_ok(dpi_arch_of(one, &arch, ERR));
    snprintf(keys, sizeof keys, "%s.", arch->name);
    for (int64_t i = 0; i < dpi_gguf_kv_count(one); i++) {
        const dpi_gguf_kv *x = dpi_gguf_kv_at(one, i), *y = dpi_gguf_find(other, x->key);
        if (strncmp(x->key, keys, strlen(keys)) != 0 && strcmp(x->key, "general.architecture") != 0)
            continue;
        assert_true(y && x->type == y->type && x->n_bytes == y->n_bytes);
        assert_memory_equal(x->data, y->data, x->n_bytes);
    }
    assert_int_equal(dpi_gguf_tensor_count(one), dpi_gguf_tensor_count(other));
    for (int64_t i = 0; i < dpi_gguf_tensor_count(one); i++) {
        const dpi_gguf_tensor *x = dpi_gguf_tensor_at(one, i);
        const dpi_gguf_tensor *y = dpi_gguf_tensor_find(other, x->name);
        assert_non_null(y);
        assert_memory_equal(x->shape, y->shape, sizeof x->shape);
        if (!is_frozen(x->name))
            continue;
        n++;
        assert_int_equal(x->n_bytes, y->n_bytes);
        assert_memory_equal(x->data, y->data, x->n_bytes);
    }
    dpi_gguf_close(one), dpi_gguf_close(other);
    return n;
}

/* The whole model that comes of it: with an adapter, merged. */
static const char *write_whole(const dpi_finetune *f, const char *base) {
    const char *path = path_in(dir, f->options.full ? "whole.gguf" : "adapter.gguf");
    DEFAULTS(dpi_write_options, o);
    assert_ok(dpi_finetune_write(f, path, -1, ERR));
    if (f->options.full)
        return path;
    o.type = "KEEP";
    const char *merged = path_in(dir, "merged.gguf");
    assert_ok(dpi_finetune_merge(base, path, 1, merged, &o, ERR));
    return merged;
}

/* What the file says is what was trained. */
static void check_claim(const dpi_finetune *f, const char *path, int32_t merged) {
    static const char *const same[] = {"numbers", "rank", "alpha", "sigma", "sampling", "clip"};
    int32_t intact;
    const dpi_claim c = read_claim(path, &intact);
    assert_true(intact && c.epsilon == f->claim.epsilon);
    assert_true(value_of(&c, "trained") == (merged ? 2 : f->options.full));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_true(value_of(&c, same[i]) == value_of(&f->claim, same[i]));
}

static void join(const char *path) {
    gguf_build b;
    build_joined(&b, path);
    write_file(path, b.data, b.n_bytes);
    build_free(&b);
}

/* `n_frozen`: tensors that are not trained. `rounding`: of the loss, by what is written. */
static void check_file(const char *base, int32_t full, int n_frozen, double rounding) {
    OWN(dpi_model) trained = open_model(base, NULL);
    OWN(dpi_records) records = read_records("texts.csv", "text\none\ntwo\nthree\nfour\n", NULL);
    dpi_finetune_options o = say_options(records);
    o.model = trained, o.full = full, o.n_units = 5, o.n_steps = 3, o.lr = .02, o.sigma = .1;
    OWN(dpi_finetune) f = open_finetune(&o);
    const double before = trained_loss(f), begun = loss_of_seven(trained);
    assert_true(fabs(before - begun) < 1e-4 * before);
    assert_ok(dpi_finetune_begin(f, ERR));
    steps(f, o.n_steps);
    const char *path = write_whole(f, base), *adapter = path_in(dir, "adapter.gguf");
    check_claim(f, path, !full);
    assert_int_equal(same_rest(base, path), n_frozen);
    OWN(dpi_model) whole = open_model(path, NULL);
    const double after = trained_loss(f), found = loss_of_seven(whole);
    assert_true(fabs(after - found) < rounding * after && fabs(after - before) > 1e-2);
    if (full)
        return;
    check_claim(f, adapter, 0);
    OWN(dpi_model) adapted = open_model(base, adapter);
    DEFAULTS(dpi_model_info, info);
    assert_ok(dpi_model_info_get(adapted, &info, ERR));
    assert_true(info.adapter_rank == 2 && info.adapter_scale == 8);
    assert_int_equal(info.n_adapted, 7 * trained->config.n_layer);
    assert_true(fabs(loss_of_seven(adapted) - after) < 1e-4 * after);
}

static void check_base(const tiny_spec *spec, int32_t full, bool joined) {
    const char *base = path_in(dir, "base.gguf");
    const int n_biased = joined ? 5 : 7;
    write_base(spec, base);
    if (joined)
        join(base);
    check_file(base, full, spec->bias ? n_biased * spec->n_layer : 0,
               spec->type == DPI_TYPE_F32 ? 1e-4 : 1e-2);
}

TEST(test_bases) {
    for (int32_t full = 0; full < 2; full++) {
        tiny_spec spec = tiny_default();
        check_base(&spec, full, false);
        spec.type = full ? DPI_TYPE_F16 : DPI_TYPE_Q8_0;
        check_base(&spec, full, false);
        spec.type = DPI_TYPE_F32, spec.bias = 1;
        check_base(&spec, full, false);
        check_base(&spec, full, true);
        spec.n_rot = 8;
        check_base(&spec, full, false);
        spec.head_dim = 24, spec.head_dim_v = 40;
        check_base(&spec, full, false);
    }
}

/* Other tensors, and those that are one of the file. Training and the engine take the factors of
 * short contexts. */
TEST(test_architectures) {
    static const struct {
        const char *file;
        int n_frozen;
    } files[] = {{"qwen2-A", 9}, {"gemma3-A", 0}, {"olmo2-A", 0}, {"phi3-longrope-A", 2}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[64];
        snprintf(path, sizeof path, "arch/%s.gguf", files[i].file);
        require_data(path);
        check_file(data_path(path), 0, files[i].n_frozen, 1e-4);
        check_file(data_path(path), 1, files[i].n_frozen, 1e-4);
    }
}

TEST(test_plan) {
    DEFAULTS(dpi_finetune_options, o);
    DEFAULTS(dpi_finetune_plan, plan);
    assert_error(dpi_finetune_plan_of(NULL, &plan, ERR), ARG, "dpi_finetune_options is NULL");
    assert_error(dpi_finetune_plan_of(&o, NULL, ERR), ARG, "dpi_finetune_plan is NULL");
    assert_error(dpi_finetune_plan_of(&o, &plan, ERR), ARG, "model and records");
    plan.struct_size = 1;
    assert_error(dpi_finetune_plan_of(&o, &plan, ERR), ARG, "struct_size is 1");
}
