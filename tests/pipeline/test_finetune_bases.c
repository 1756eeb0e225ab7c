/* Training on bases of all forms that are loaded: biases, heads of any width, turned in part. What
 * is written computes what was trained, and what is not trained is as it was. */
#include <math.h>

#include "base/mem.h"
#include "dpinfer/write.h"
#include "gguf/gguf.h"
#include "kernels/weight_types.h"
#include "pipeline/finetune/finetune.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static char dir[256];

static dpi_model *open_model(const char *path) {
    dpi_model *model;
    dpi_error err;
    assert_ok(dpi_model_open(path, NULL, &model, &err), &err);
    return model;
}

static dpi_records *open_records(void) {
    static const char texts[] = "text\none\ntwo\nthree\nfour\n";
    dpi_records_options o;
    dpi_records *records;
    dpi_error err;
    write_file(path_in(dir, "texts.csv"), texts, sizeof texts - 1);
    dpi_records_options_init(&o);
    assert_ok(dpi_records_open(path_in(dir, "texts.csv"), &o, &records, &err), &err);
    return records;
}

static const int32_t tokens[] = {1, 263, 270, 99, 300, 12, 31};

/* The loss of `tokens` by the engine's exact logits. */
static double engine_loss(const dpi_model *model) {
    dpi_session_options o;
    dpi_error err;
    double loss = 0;
    float *logits = malloc(6 * 320 * sizeof *logits);
    dpi_session_options_init(&o);
    o.exact = 1;
    dpi_session *s = open_session(model, &o, 1, 8);
    assert_ok(dpi_session_prefill(s, 0, tokens, 6, logits, &err), &err);
    for (int t = 0; t < 6; t++) {
        double sum = 0;
        for (int y = 0; y < 320; y++)
            sum += exp((double)logits[t * 320 + y]);
        loss += log(sum) - (double)logits[t * 320 + tokens[t + 1]];
    }
    dpi_session_free(s);
    free(logits);
    return loss;
}

static double trained_loss(const dpi_finetune *f) {
    static const int32_t begins[] = {0, 6};
    static const float ones[] = {1, 1, 1, 1, 1, 1};
    return dpi_tuner_loss(f->tuner, &(dpi_row){6, 1, begins, tokens, tokens + 1, ones});
}

/* The biases of two files are the same bytes; how many there are. */
static int same_biases(const char *a, const char *b) {
    dpi_gguf *one, *other;
    int n = 0;
    assert_ok(dpi_gguf_open(a, true, &one, NULL), NULL);
    assert_ok(dpi_gguf_open(b, true, &other, NULL), NULL);
    assert_int_equal(dpi_gguf_tensor_count(one), dpi_gguf_tensor_count(other));
    for (int64_t i = 0; i < dpi_gguf_tensor_count(one); i++) {
        const dpi_gguf_tensor *x = dpi_gguf_tensor_at(one, i);
        const dpi_gguf_tensor *y = dpi_gguf_tensor_find(other, x->name);
        const char *dot = strrchr(x->name, '.');
        assert_non_null(y);
        if (!dot || strcmp(dot, ".bias") != 0)
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
    const char *path = path_in(dir, f->claim.full ? "whole.gguf" : "adapter.gguf");
    dpi_write_options o;
    dpi_error err;
    assert_ok(dpi_finetune_write(f, path, -1, &err), &err);
    if (f->claim.full)
        return path;
    dpi_write_options_init(&o);
    o.type = "KEEP";
    const char *merged = path_in(dir, "merged.gguf");
    assert_ok(dpi_finetune_merge(base, path, 1, merged, &o, &err), &err);
    return merged;
}

/* What the file says is what was trained. */
static void check_claim(const dpi_finetune *f, const char *path, int32_t merged) {
    const dpi_finetune_claim *own = &f->claim;
    dpi_finetune_claim c;
    double recorded;
    int32_t intact;
    dpi_error err;
    dpi_finetune_claim_init(&c);
    assert_ok(dpi_finetune_read_claim(path, &c, &recorded, &intact, &err), &err);
    assert_true(intact && c.epsilon == recorded && c.epsilon == own->epsilon);
    assert_true(c.n_params == own->n_params && c.full == own->full && c.merged == merged);
    assert_true(c.rank == own->rank && c.alpha == own->alpha && c.sigma == own->sigma);
}

static void check_base(const tiny_spec *spec, int32_t full) {
    void *image;
    size_t n_bytes;
    const char *base = path_in(dir, "base.gguf");
    dpi_finetune_options o;
    dpi_finetune *f;
    dpi_error err;
    dpi_records *records = open_records();
    tiny_build(spec, 5, &image, &n_bytes);
    write_file(base, image, n_bytes);
    free(image);
    dpi_model *model = open_model(base);
    dpi_finetune_options_init(&o);
    o.model = model, o.records = records, o.full = full;
    o.instruction = (dpi_bytes){"say", 3}, o.chat = DPI_CHAT_NONE;
    o.n_positions = 24, o.n_units = 5, o.n_expected = 4, o.n_steps = 3, o.lr = .02;
    o.sigma = .1, o.delta = 1e-3, o.seeded = 1, o.seed = 4, o.n_threads = 2;
    assert_ok(dpi_finetune_open(&o, &f, &err), &err);
    const double before = trained_loss(f), begun = engine_loss(model);
    assert_true(fabs(before - begun) < 1e-4 * before);
    assert_ok(dpi_finetune_begin(f, &err), &err);
    while (dpi_finetune_steps_done(f) < o.n_steps)
        assert_ok(dpi_finetune_step(f, &err), &err);
    const char *path = write_whole(f, base);
    check_claim(f, path, !full);
    if (!full)
        check_claim(f, path_in(dir, "adapter.gguf"), 0);
    assert_int_equal(same_biases(base, path), spec->bias ? 4 * spec->n_layer : 0);
    dpi_model *whole = open_model(path);
    const double after = trained_loss(f), found = engine_loss(whole);
    const double rounding = spec->type == DPI_TYPE_F32 ? 1e-4 : 1e-2; /* what is written */
    assert_true(fabs(after - found) < rounding * after && fabs(after - before) > 1e-2);
    dpi_model_close(whole);
    dpi_finetune_free(f);
    dpi_model_close(model);
    dpi_records_close(records);
}

static void test_bases(void **state) {
    (void)state;
    for (int32_t full = 0; full < 2; full++) {
        tiny_spec spec = tiny_default();
        check_base(&spec, full);
        spec.type = full ? DPI_TYPE_F16 : DPI_TYPE_Q8_0;
        check_base(&spec, full);
        spec.type = DPI_TYPE_F32, spec.bias = 1;
        check_base(&spec, full);
        spec.n_rot = 8;
        check_base(&spec, full);
        spec.head_dim = 24, spec.head_dim_v = 40;
        check_base(&spec, full);
    }
}

static void test_plan(void **state) {
    (void)state;
    dpi_finetune_options o;
    dpi_finetune_plan plan;
    dpi_error err;
    dpi_finetune_options_init(&o);
    dpi_finetune_plan_init(&plan);
    assert_error(dpi_finetune_plan_of(NULL, &plan, &err), DPI_STATUS_ARG, &err, "must not be NULL");
    assert_error(dpi_finetune_plan_of(&o, NULL, &err), DPI_STATUS_ARG, &err, "must not be NULL");
    assert_error(dpi_finetune_plan_of(&o, &plan, &err), DPI_STATUS_ARG, &err, "model and records");
    plan.struct_size = 1;
    assert_error(dpi_finetune_plan_of(&o, &plan, &err), DPI_STATUS_ARG, &err, "struct_size is 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bases), cmocka_unit_test(test_plan)};
    make_dir(dir, sizeof dir);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_dir(dir);
    return failed;
}
