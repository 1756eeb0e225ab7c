/* Split models: NAME-00001-of-0000N.gguf brings in the others; what does not belong together is
 * refused. The parts are made here, from a whole model or by hand. */
#include "gguf/gguf.h"
#include "gguf/gguf_write.h"
#include "kernels/weight_types.h"
#include "tests/support/gguf_build.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static char dir[128];

static int make_test_dir(void **state) {
    (void)state;
    make_dir(dir, sizeof dir);
    return 0;
}
static int remove_test_dir(void **state) {
    (void)state;
    remove_dir(dir);
    return 0;
}

/* Path in the test's directory of part `index` (from 0) of `count`. */
static const char *part_path(int index, int count) {
    static char paths[4][192];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/m-%05d-of-%05d.gguf", dir, index + 1, count);
    return path;
}

/* ---- A whole model in parts ------------------------------------------------------------------ */

static void put_u16(dpi_gguf_builder *w, const char *key, uint16_t value) {
    unsigned char bytes[2] = {(unsigned char)value, (unsigned char)(value >> 8)};
    dpi_gguf_kv kv = {.key = key, .type = DPI_GGUF_U16, .item_type = DPI_GGUF_U16, .n_items = 1,
                      .data = bytes, .n_bytes = 2};
    dpi_gguf_put_kv(w, &kv);
}

/* Tensor i goes to part i % count, as a tool that splits a file writes them. */
static void split_model(const dpi_gguf *g, int count) {
    for (int part = 0; part < count; part++) {
        dpi_gguf_builder *w = NULL;
        dpi_error err;
        assert_ok(dpi_gguf_builder_create(part_path(part, count), -1, &w, &err), &err);
        put_u16(w, "split.no", (uint16_t)part);
        put_u16(w, "split.count", (uint16_t)count);
        dpi_gguf_put_u32(w, "split.tensors.count", (uint32_t)dpi_gguf_tensor_count(g));
        for (int64_t i = 0; part == 0 && i < dpi_gguf_kv_count(g); i++)
            dpi_gguf_put_kv(w, dpi_gguf_kv_at(g, i));
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = part; i < dpi_gguf_tensor_count(g); i += count) {
                const dpi_gguf_tensor *t = dpi_gguf_tensor_at(g, i);
                if (pass == 0)
                    dpi_gguf_put_tensor(w, t->name, t->type, t->n_dims, t->shape);
                else
                    dpi_gguf_put_data(w, t->data, t->n_bytes);
            }
        assert_ok(dpi_gguf_builder_finish(w, &err), &err);
    }
}

static void compute(const dpi_model *model, float *logits) {
    static const int32_t tokens[] = {1, 300, 7, 270, 311};
    dpi_session *s = NULL;
    dpi_error err;
    assert_ok(dpi_session_create(model, NULL, &s, &err), &err);
    assert_ok(dpi_session_prefill(s, 0, tokens, 5, logits, &err), &err);
    dpi_session_free(s);
}

static void test_model(void **state) {
    (void)state;
    static float whole[5 * 320], parts[5 * 320];
    tiny_spec spec = tiny_default();
    spec.type = DPI_TYPE_Q8_0;
    void *image;
    size_t n_bytes;
    dpi_error err;
    dpi_gguf *g = NULL;
    dpi_model *model = NULL;
    tiny_build(&spec, 3, &image, &n_bytes);
    assert_ok(dpi_gguf_open_buffer(image, n_bytes, &g, &err), &err);
    assert_ok(dpi_model_open_buffer(image, n_bytes, NULL, &model, &err), &err);
    compute(model, whole);
    dpi_model_close(model);
    static const int counts[] = {2, 3, 12};
    for (int i = 0; i < 3; i++)
        for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
            split_model(g, counts[i]);
            dpi_model_options o;
            dpi_model_options_init(&o);
            o.use_mmap = use_mmap;
            assert_ok(dpi_model_open(part_path(0, counts[i]), &o, &model, &err), &err);
            assert_int_equal(dpi_model_tensor_count(model), dpi_gguf_tensor_count(g));
            compute(model, parts);
            assert_memory_equal(parts, whole, sizeof whole);
            dpi_model_close(model);
        }
    /* Quantising puts the parts together. */
    char out[192];
    snprintf(out, sizeof out, "%s/whole.gguf", dir);
    dpi_write_options w;
    dpi_write_options_init(&w);
    w.type = "Q8_0";
    assert_ok(dpi_model_quantize(part_path(0, 3), out, &w, &err), &err);
    assert_ok(dpi_model_open(out, NULL, &model, &err), &err);
    compute(model, parts);
    assert_memory_equal(parts, whole, sizeof whole);
    dpi_model_close(model);
    dpi_gguf_close(g);
    free(image);
}

/* ---- What is refused ------------------------------------------------------------------------- */

/* What part `index` says of itself; -1: nothing. */
typedef struct part {
    int no, count, tensors;
    const char *tensor; /* its one tensor */
} part;

static void write_part(const char *path, part p) {
    gguf_build b;
    float data[4] = {1, 2, 3, 4};
    build_begin(&b);
    if (p.no >= 0)
        build_u16(&b, "split.no", (uint16_t)p.no);
    if (p.count >= 0)
        build_u16(&b, "split.count", (uint16_t)p.count);
    if (p.tensors >= 0)
        build_i32(&b, "split.tensors.count", p.tensors);
    build_tensor(&b, p.tensor, DPI_TYPE_F32, 1, (int64_t[]){4}, data, sizeof data);
    build_end(&b);
    write_file(path, b.data, b.n_bytes);
    build_free(&b);
}

/* Two parts, then the same with one fault in the first or in the second. */
static void expect(part first, part second, dpi_status wanted, const char *message) {
    dpi_gguf *g = NULL;
    dpi_error err;
    write_part(part_path(0, 2), first);
    write_part(part_path(1, 2), second);
    dpi_status status = dpi_gguf_open(part_path(0, 2), true, &g, &err);
    if (wanted == DPI_STATUS_OK)
        assert_ok(status, &err);
    else
        assert_error(status, wanted, &err, message);
    dpi_gguf_close(g);
}

static const part one = {0, 2, 2, "a"}, two = {1, 2, 2, "b"};

static void test_mismatch(void **state) {
    (void)state;
    part p;
    expect(one, two, DPI_STATUS_OK, NULL);
    p = one, p.tensors = -1; /* a count that is absent is not checked */
    expect(p, two, DPI_STATUS_OK, NULL);
    p = one, p.tensors = 3;
    expect(p, two, DPI_STATUS_FORMAT, "m-00001-of-00002.gguf: split.tensors.count is 3, must be 2");
    p = one, p.no = -1;
    expect(p, two, DPI_STATUS_FORMAT, "m-00001-of-00002.gguf: key split.no is missing, must be 0");
    p = one, p.count = 3;
    expect(p, two, DPI_STATUS_FORMAT,
           "split.count is 3, so the name must end in -00001-of-00003.gguf");
    p = two, p.no = 0;
    expect(one, p, DPI_STATUS_FORMAT, "m-00002-of-00002.gguf: split.no is 0, must be 1");
    p = two, p.no = 2;
    expect(one, p, DPI_STATUS_FORMAT, "m-00002-of-00002.gguf: split.no is 2, must be 1");
    p = two, p.no = -1;
    expect(one, p, DPI_STATUS_FORMAT, "m-00002-of-00002.gguf: key split.no is missing, must be 1");
    p = two, p.count = 5;
    expect(one, p, DPI_STATUS_FORMAT, "m-00002-of-00002.gguf: split.count is 5, must be 2");
    p = two, p.count = -1;
    expect(one, p, DPI_STATUS_FORMAT, "m-00002-of-00002.gguf: key split.count is missing");
    p = two, p.tensor = "a";
    expect(one, p, DPI_STATUS_FORMAT, "m-00002-of-00002.gguf: tensor 'a' is in another part too");
    /* A first part that claims to be another one. */
    p = one, p.no = 1;
    expect(p, two, DPI_STATUS_UNSUPPORTED, "this is part 2 of 2: open the first part, whose name "
                                           "ends in -00001-of-00002.gguf");
    p = one, p.no = 7;
    expect(p, two, DPI_STATUS_FORMAT, "key 'split.no' is 7, must be 0..1");
}

static void expect_open(const char *path, dpi_status wanted, const char *message) {
    dpi_gguf *g = NULL;
    dpi_error err;
    assert_error(dpi_gguf_open(path, false, &g, &err), wanted, &err, message);
    assert_null(g);
}

static void test_files(void **state) {
    (void)state;
    write_part(part_path(0, 2), one);
    expect_open(part_path(0, 2), DPI_STATUS_IO, "m-00002-of-00002.gguf: cannot be opened");
    write_file(part_path(1, 2), "GGUF", 4);
    expect_open(part_path(0, 2), DPI_STATUS_FORMAT, "m-00002-of-00002.gguf: the version");
    write_part(part_path(1, 2), two);
    expect_open(part_path(1, 2), DPI_STATUS_UNSUPPORTED, "this is part 2 of 2");
    /* Other names: nothing is looked for beside a file that is not called like a first part. */
    static const char *const names[] = {"m.gguf", "-00001-of-00002.gguf", "m-00001-of-00002",
                                        "m-00001-of-00002.gguf.gguf", "m-1-of-2.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = path_in(dir, names[i]);
        write_part(path, one);
        if (i != 1)
            expect_open(path, DPI_STATUS_FORMAT, "the name must end in -00001-of-00002.gguf");
        else /* a name of its own, of no bytes */
            expect_open(path, DPI_STATUS_IO, "-00002-of-00002.gguf: cannot be opened");
    }
    /* 65535 parts are looked for one after the other. */
    part many = {0, 65535, -1, "a"};
    write_part(part_path(0, 65535), many);
    expect_open(part_path(0, 65535), DPI_STATUS_IO, "m-00002-of-65535.gguf: cannot be opened");
}

static void test_failing_allocations(void **state) {
    (void)state;
    write_part(part_path(0, 2), one);
    write_part(part_path(1, 2), two);
    for (int use_mmap = 0; use_mmap < 2; use_mmap++)
        for (int64_t n = 1;; n++) {
            dpi_gguf *g = NULL;
            dpi_error err;
            fail_allocation(n);
            dpi_status status = dpi_gguf_open(part_path(0, 2), use_mmap, &g, &err);
            bool failed = fail_allocation(0) >= n;
            assert_int_equal(status, failed ? DPI_STATUS_MEMORY : DPI_STATUS_OK);
            dpi_gguf_close(g);
            if (!failed)
                break;
            assert_true(n < 1000);
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_test_dir, remove_test_dir)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_model),
        TEST(test_mismatch),
        TEST(test_files),
        TEST(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
