/* Split models: NAME-00001-of-0000N.gguf brings in the others; what does not belong together is
 * refused. The parts are made here, from a whole model or by hand. */
#include "gguf/gguf.h"
#include "gguf/gguf_write.h"
#include "kernels/weight_types.h"
#include "tests/support/failing.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static char dir[128];

SETUP_EACH { make_dir(dir, sizeof dir); }
TEARDOWN_EACH { remove_dir(dir); }

/* Path in the test's directory of part `index` (from 0) of `count`. */
static const char *part_path(int index, int count) {
    char name[32];
    snprintf(name, sizeof name, "m-%05d-of-%05d.gguf", index + 1, count);
    return path_in(dir, name);
}

/* ---- A whole model in parts ------------------------------------------------------------------ */

static void put_u16(dpi_gguf_builder *w, const char *key, int value) {
    unsigned char bytes[2] = {(unsigned char)value, (unsigned char)(value >> 8)};
    dpi_gguf_put_kv(w, &(dpi_gguf_kv){.key = key,
                                      .type = DPI_GGUF_U16,
                                      .item_type = DPI_GGUF_U16,
                                      .n_items = 1,
                                      .data = bytes,
                                      .n_bytes = 2});
}

/* Tensor i goes to part i % count, as a tool that splits a file writes them. */
static void split_model(const dpi_gguf *g, int count) {
    for (int part = 0; part < count; part++) {
        dpi_gguf_builder *w = NULL;
        assert_ok(dpi_gguf_builder_create(part_path(part, count), -1, &w, ERR));
        put_u16(w, "split.no", part);
        put_u16(w, "split.count", count);
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
        assert_ok(dpi_gguf_builder_finish(w, ERR));
    }
}

static void compute(dpi_model *model, float *logits) {
    static const int32_t tokens[] = {1, 300, 7, 270, 311};
    dpi_session *s = open_session(model, NULL, 1, 0);
    assert_ok(dpi_session_prefill(s, 0, tokens, 5, logits, ERR));
    dpi_session_free(s);
    dpi_model_close(model);
}

TEST(test_model) {
    static const int counts[] = {2, 3, 12};
    static float whole[5 * 320], parts[5 * 320];
    tiny_spec spec = tiny_of(DPI_TYPE_Q8_0);
    void *image;
    dpi_model *model = tiny_open(&spec, 3, &image);
    dpi_gguf *g = NULL;
    tiny_write(&spec, 3, path_in(dir, "whole.gguf"));
    assert_ok(dpi_gguf_open(path_in(dir, "whole.gguf"), true, &g, ERR));
    compute(model, whole);
    for (int i = 0; i < 6; i++) {
        dpi_model_options o;
        dpi_model_options_init(&o);
        o.use_mmap = i % 2;
        split_model(g, counts[i / 2]);
        assert_ok(dpi_model_open(part_path(0, counts[i / 2]), &o, &model, ERR));
        assert_int_equal(dpi_model_tensor_count(model), dpi_gguf_tensor_count(g));
        compute(model, parts);
        assert_memory_equal(parts, whole, sizeof whole);
    }
    /* Quantising puts the parts together. */
    const char *out = path_in(dir, "together.gguf");
    dpi_write_options w;
    dpi_write_options_init(&w);
    w.type = "Q8_0";
    assert_ok(dpi_model_quantize(part_path(0, 3), out, &w, ERR));
    assert_ok(dpi_model_open(out, NULL, &model, ERR));
    compute(model, parts);
    assert_memory_equal(parts, whole, sizeof whole);
    dpi_gguf_close(g);
    free(image);
}

/* ---- What is refused ------------------------------------------------------------------------- */

/* What a part says of itself; -1: nothing. */
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

static const part one = {0, 2, 2, "a"}, two = {1, 2, 2, "b"};

static void expect_open(const char *path, dpi_status wanted, const char *message) {
    dpi_gguf *g = NULL;
    dpi_status status = dpi_gguf_open(path, false, &g, ERR);
    assert_int_equal(g != NULL, wanted == DPI_STATUS_OK);
    dpi_gguf_close(g);
    if (wanted == DPI_STATUS_OK)
        assert_ok(status);
    else
        assert_status(status, wanted, message);
}

/* Two parts of which the first or the second says something odd. */
TEST(test_mismatch) {
    static const struct {
        int which;
        part odd;
        const char *message; /* NULL: it is accepted */
    } cases[] = {
        {0, {0, 2, 2, "a"}, NULL},
        {0, {0, 2, -1, "a"}, NULL}, /* a count that is absent is not checked */
        {0, {0, 2, 3, "a"}, "m-00001-of-00002.gguf: split.tensors.count is 3, must be 2"},
        {0, {-1, 2, 2, "a"}, "m-00001-of-00002.gguf: key split.no is missing, must be 0"},
        {0, {0, 3, 2, "a"}, "split.count is 3, so the name must end in -00001-of-00003.gguf"},
        {1, {0, 2, 2, "b"}, "m-00002-of-00002.gguf: split.no is 0, must be 1"},
        {1, {2, 2, 2, "b"}, "m-00002-of-00002.gguf: split.no is 2, must be 1"},
        {1, {-1, 2, 2, "b"}, "m-00002-of-00002.gguf: key split.no is missing, must be 1"},
        {1, {1, 5, 2, "b"}, "m-00002-of-00002.gguf: split.count is 5, must be 2"},
        {1, {1, -1, 2, "b"}, "m-00002-of-00002.gguf: key split.count is missing"},
        {1, {1, 2, 2, "a"}, "m-00002-of-00002.gguf: tensor 'a' is in another part too"},
        {0, {7, 2, 2, "a"}, "key 'split.no' is 7, must be 0..1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_part(part_path(0, 2), cases[i].which == 0 ? cases[i].odd : one);
        write_part(part_path(1, 2), cases[i].which == 1 ? cases[i].odd : two);
        expect_open(part_path(0, 2), cases[i].message ? DPI_STATUS_FORMAT : DPI_STATUS_OK,
                    cases[i].message);
    }
    /* A first part that claims to be another one. */
    write_part(part_path(0, 2), (part){1, 2, 2, "a"});
    expect_open(part_path(0, 2), DPI_STATUS_UNSUPPORTED,
                "this is part 2 of 2: open the first part, whose name ends in "
                "-00001-of-00002.gguf");
}

TEST(test_files) {
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
    write_part(part_path(0, 65535), (part){0, 65535, -1, "a"});
    expect_open(part_path(0, 65535), DPI_STATUS_IO, "m-00002-of-65535.gguf: cannot be opened");
}

TEST(test_failing_allocations) {
    write_part(part_path(0, 2), one);
    write_part(part_path(1, 2), two);
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        dpi_gguf *g = NULL;
        for (int64_t n = 1; fails(n, dpi_gguf_open(part_path(0, 2), use_mmap, &g, ERR), ""); n++)
            assert_true(g == NULL && n < 1000);
        dpi_gguf_close(g);
    }
}
