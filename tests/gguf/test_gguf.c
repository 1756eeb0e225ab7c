/* test_gguf.c - good GGUF files: what is read out of them, typed reads, ways to open, memory.
 * Malformed files are in test_gguf_refuse.c. Files that other programs wrote are read by
 * tests/engine/test_forward.c and tokenizer/, whose logits and ids are golden. */
#define _DEFAULT_SOURCE
#include "tests/support/support.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf/gguf.h"
#include "tests/support/failing.h"
#include "tests/support/gguf_build.h"

enum { F32 = 0, F16 = 1, Q8_0 = 8 }; /* GGML type ids */

static gguf_build b; /* the image of this test */
static char dir[256];

SETUP_EACH {
    build_begin(&b);
    make_dir(dir, sizeof dir);
}

TEARDOWN_EACH {
    build_free(&b);
    remove_dir(dir);
}

static dpi_gguf *open_image(void) {
    dpi_gguf *gguf = NULL;
    build_end(&b);
    assert_ok(dpi_gguf_open_buffer(b.data, b.n_bytes, &gguf, ERR));
    return gguf;
}

static dpi_gguf *open_file(const char *path, bool use_mmap) {
    dpi_gguf *gguf = NULL;
    assert_ok(dpi_gguf_open(path, use_mmap, &gguf, ERR));
    return gguf;
}

static bool equals(dpi_str s, const char *text) {
    return s.n_bytes == strlen(text) && memcmp(s.data, text, s.n_bytes) == 0;
}

/* ---- Typed reads --------------------------------------------------------------------------- */

TEST(reads_integers_of_every_width) {
    static const struct {
        const char *key;
        int64_t value;
    } cases[] = {{"u8", 200},         {"i8", -100},         {"u16", 60000},     {"i16", -30000},
                 {"u32", 4000000000}, {"i32", -2000000000}, {"u64", INT64_MAX}, {"i64", INT64_MIN}};
    build_u8(&b, "u8", 200), build_i8(&b, "i8", -100);
    build_u16(&b, "u16", 60000), build_i16(&b, "i16", -30000);
    build_u32(&b, "u32", 4000000000u), build_i32(&b, "i32", -2000000000);
    build_u64(&b, "u64", INT64_MAX), build_i64(&b, "i64", INT64_MIN);
    build_u64(&b, "u64.huge", UINT64_MAX);
    build_f32(&b, "f32", 0.1f), build_bool(&b, "yes", true);
    build_array(&b, "bytes", 0, "\377\1", 2, 1);
    dpi_gguf *g = open_image();
    int64_t v;
    bool found = false;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *key = cases[i].key;
        const int64_t want = cases[i].value;
        assert_ok(dpi_gguf_get_int(g, key, INT64_MIN, INT64_MAX, &v, &found, ERR));
        assert_true(found && v == want);
        assert_ok(dpi_gguf_get_int(g, key, want, want, &v, NULL, ERR));
        v = 7;
        if (want < INT64_MAX)
            assert_error(dpi_gguf_get_int(g, key, want + 1, INT64_MAX, &v, &found, ERR), FORMAT,
                         "must be ");
        if (want > INT64_MIN)
            assert_error(dpi_gguf_get_int(g, key, INT64_MIN, want - 1, &v, &found, ERR), FORMAT,
                         "must be ");
        assert_int_equal(v, 7);
    }
    static const struct {
        const char *key, *message;
        int64_t max;
    } bad[] = {
        {"u64.huge", "key 'u64.huge' is more than 9223372036854775807", INT64_MAX},
        {"f32", "buffer: key 'f32' is of type f32, must be an integer", 9},
        {"yes", "of type bool", 9},
        {"bytes", "key 'bytes' is an array of u8, must be an integer", 255},
        {"u8", "buffer: key 'u8' is 200, must be 0..100", 100},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_error(dpi_gguf_get_int(g, bad[i].key, 0, bad[i].max, &v, NULL, ERR), FORMAT,
                     bad[i].message);
    assert_int_equal(ERR->offset, dpi_gguf_find(g, "u8")->offset);
    assert_ok(dpi_gguf_get_int(g, "absent", 1, 2, &v, &found, ERR));
    assert_true(!found && v == 7);
    dpi_gguf_close(g);
}

TEST(reads_floats_bools_and_strings) {
    build_f32(&b, "f32", 0.1f), build_f64(&b, "f64", 0.1);
    build_f32(&b, "nan", NAN), build_f64(&b, "inf", INFINITY);
    build_u8(&b, "u8", 200), build_bool(&b, "yes", true), build_bool(&b, "no", false);
    build_string(&b, "text", "h\xc3\xa9llo"), build_string(&b, "empty", "");
    dpi_gguf *g = open_image();
    double d = 7;
    bool found = false, flag = false;
    assert_ok(dpi_gguf_get_float(g, "f32", 0, 1, &d, &found, ERR));
    assert_true(found && d == (double)0.1f);
    assert_ok(dpi_gguf_get_float(g, "f64", 0, 1, &d, &found, ERR));
    assert_true(found && d == 0.1);
    assert_error(dpi_gguf_get_float(g, "f64", 0.5, 1, &d, NULL, ERR), FORMAT,
                 "buffer: key 'f64' is 0.1, must be 0.5..1");
    assert_error(dpi_gguf_get_float(g, "nan", -1, 1, &d, NULL, ERR), FORMAT, "key 'nan' is ");
    assert_error(dpi_gguf_get_float(g, "inf", 0, (double)INFINITY, &d, NULL, ERR), FORMAT,
                 "key 'inf' is inf");
    assert_error(dpi_gguf_get_float(g, "u8", 0, 1000, &d, NULL, ERR), FORMAT,
                 "key 'u8' is of type u8, must be f32 or f64");
    assert_ok(dpi_gguf_get_float(g, "absent", 0, 1, &d, &found, ERR));
    assert_true(!found && d == 0.1);

    assert_ok(dpi_gguf_get_bool(g, "yes", &flag, &found, ERR));
    assert_true(found && flag);
    assert_ok(dpi_gguf_get_bool(g, "no", &flag, &found, ERR));
    assert_true(found && !flag);
    assert_ok(dpi_gguf_get_bool(g, "absent", &flag, &found, ERR));
    assert_true(!found && !flag);
    assert_error(dpi_gguf_get_bool(g, "u8", &flag, NULL, ERR), FORMAT,
                 "key 'u8' is of type u8, must be bool");

    dpi_str s = {"old", 3};
    assert_ok(dpi_gguf_get_string(g, "absent", &s, &found, ERR));
    assert_true(!found && equals(s, "old"));
    assert_ok(dpi_gguf_get_string(g, "text", &s, &found, ERR));
    assert_true(found && equals(s, "h\xc3\xa9llo"));
    assert_ok(dpi_gguf_get_string(g, "empty", &s, NULL, ERR));
    assert_true(equals(s, ""));
    assert_error(dpi_gguf_get_string(g, "u8", &s, NULL, ERR), FORMAT,
                 "key 'u8' is of type u8, must be a string");
    dpi_gguf_close(g);
}

TEST(reads_arrays) {
    static const char *const words[] = {"one", "", "three"};
    const struct {
        const char *key;
        uint32_t type;
        const void *items;
        size_t item_bytes;
        int32_t read[2];
    } ints[] = {
        {"u8", 0, "\377\1", 1, {255, 1}},
        {"i8", 1, "\377\1", 1, {-1, 1}},
        {"i16", 3, (int16_t[]){-5, 5}, 2, {-5, 5}},
        {"u32", 4, (uint32_t[]){3000000000u, 8}, 4, {INT32_MAX, 8}}, /* saturates */
        {"i64", 11, (int64_t[]){INT64_MIN, -9}, 8, {INT32_MIN, -9}},
    };
    build_strings(&b, "words", words, 3);
    build_array(&b, "none", 8, NULL, 0, 8);
    build_array(&b, "f32", 6, (float[]){0.5f, -2, 1e30f}, 3, 4);
    build_array(&b, "f64", 12, (double[]){0.5, 1e30}, 2, 8);
    for (size_t i = 0; i < 5; i++)
        build_array(&b, ints[i].key, ints[i].type, ints[i].items, 2, ints[i].item_bytes);
    build_u32(&b, "scalar", 3);
    dpi_gguf *g = open_image();
    const dpi_gguf_kv *kv = NULL;
    assert_ok(dpi_gguf_get_array(g, "words", DPI_GGUF_STRING, &kv, ERR));
    assert_int_equal(kv->n_items, 3);
    uint64_t cursor = 0;
    for (int i = 0; i < 3; i++)
        assert_true(equals(dpi_gguf_next_string(kv, &cursor), words[i]));
    assert_int_equal(cursor, kv->n_bytes);
    assert_int_equal(dpi_gguf_next_string(kv, &cursor).n_bytes, 0); /* past the end: harmless */
    assert_ok(dpi_gguf_get_array(g, "none", DPI_GGUF_STRING, &kv, ERR));
    assert_true(kv->n_items == 0 && kv->n_bytes == 0);
    assert_ok(dpi_gguf_get_array(g, "f32", DPI_GGUF_F32, &kv, ERR));
    assert_true(kv->n_items == 3 && dpi_gguf_item_f32(kv, 1) == -2 &&
                dpi_gguf_item_f32(kv, 2) == 1e30f);
    assert_true(dpi_gguf_item_f32(dpi_gguf_find(g, "f64"), 0) == 0.5f);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(dpi_gguf_item_i32(dpi_gguf_find(g, ints[i / 2].key), i % 2),
                         ints[i / 2].read[i % 2]);
    const dpi_gguf_kv *before = kv;
    assert_ok(dpi_gguf_get_array(g, "absent", DPI_GGUF_F32, &kv, ERR));
    assert_ptr_equal(kv, before);
    assert_error(dpi_gguf_get_array(g, "f64", DPI_GGUF_F32, &kv, ERR), FORMAT,
                 "buffer: key 'f64' is an array of f64, must be an array of f32");
    assert_error(dpi_gguf_get_array(g, "scalar", DPI_GGUF_U32, &kv, ERR), FORMAT,
                 "key 'scalar' is of type u32, must be an array of u32");
    dpi_gguf_close(g);
}

/* ---- Tensors ------------------------------------------------------------------------------- */

TEST(places_tensors_at_the_file_s_alignment) {
    static const uint32_t alignments[] = {8, 32, 128, 4096};
    float data[6] = {1, 2, 3, 4, 5, 6};
    for (size_t i = 0; i < 4; i++) {
        build_free(&b);
        build_begin(&b);
        b.alignment = alignments[i];
        build_u32(&b, "general.alignment", alignments[i]);
        build_tensor(&b, "z", F32, 2, (int64_t[]){3, 2}, data, sizeof data);
        build_tensor(&b, "a", Q8_0, 4, (int64_t[]){64, 2, 1, 3}, NULL, 6 * 2 * 34);
        build_tensor(&b, "m", F16, 1, (int64_t[]){5}, "\0\1\2\3\4\5\6\7\10\11", 10);
        dpi_gguf *g = open_image();
        assert_int_equal(dpi_gguf_tensor_count(g), 3);
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(g, 0);
        assert_string_equal(t->name, "z");
        assert_int_equal(t->type, F32);
        assert_int_equal(t->n_dims, 2);
        assert_memory_equal(t->shape, ((int64_t[]){3, 2, 1, 1}), sizeof t->shape);
        assert_int_equal(t->n_bytes, 24);
        assert_int_equal(t->offset % alignments[i], 0);
        assert_memory_equal(t->data, data, sizeof data);
        t = dpi_gguf_tensor_find(g, "a");
        assert_ptr_equal(t, dpi_gguf_tensor_at(g, 1));
        assert_int_equal(t->n_bytes, 408);
        t = dpi_gguf_tensor_find(g, "m");
        assert_ptr_equal(t->data, b.data + t->offset);
        assert_memory_equal(t->data, "\0\1\2\3\4\5\6\7\10\11", 10);
        assert_null(dpi_gguf_tensor_find(g, "b"));
        assert_null(dpi_gguf_tensor_at(g, 3));
        assert_null(dpi_gguf_tensor_at(g, -1));
        assert_null(dpi_gguf_kv_at(g, 1));
        dpi_gguf_close(g);
    }
}

TEST(wants_an_aligned_buffer_for_tensors) {
    dpi_gguf *g = NULL;
    build_u32(&b, "key", 5);
    unsigned char *shifted = malloc(4096);
    assert_non_null(shifted);
    memcpy(shifted + 1, b.data, b.n_bytes); /* no tensors: any address */
    assert_ok(dpi_gguf_open_buffer(shifted + 1, b.n_bytes, &g, ERR));
    dpi_gguf_close(g);
    build_tensor(&b, "w", F32, 1, (int64_t[]){4}, NULL, 16);
    build_end(&b);
    for (size_t i = 1; i < 9; i++) {
        memcpy(shifted + i, b.data, b.n_bytes);
        dpi_status status = dpi_gguf_open_buffer(shifted + i, b.n_bytes, &g, ERR);
        if (i < 8)
            assert_error(status, ARG, "it must be a multiple of 8 for a file with tensors");
        else
            assert_ok(status);
    }
    dpi_gguf_close(g);
    free(shifted);
    assert_error(dpi_gguf_open_buffer(NULL, 0, &g, ERR), ARG, "NULL");
    assert_error(dpi_gguf_open(NULL, true, &g, ERR), ARG, "NULL");
    dpi_gguf_close(NULL);
}

/* ---- Size ---------------------------------------------------------------------------------- */

static const char *hashed_key(uint32_t i) {
    static char key[32];
    snprintf(key, sizeof key, "%u", i * 2654435761u); /* odd factor: all different */
    return key;
}

/* Quadratic would be hours, and end at the limit of time of every test. */
TEST(opens_a_million_keys) {
    enum { N = 1000000 };
    for (uint32_t i = 0; i < N; i++)
        build_u32(&b, hashed_key(i), i);
    dpi_gguf *g = open_image();
    assert_int_equal(dpi_gguf_kv_count(g), N);
    for (uint32_t i = 0; i < N; i += 997) {
        int64_t v = -1;
        assert_ok(dpi_gguf_get_int(g, hashed_key(i), 0, N, &v, NULL, ERR));
        assert_int_equal(v, i);
    }
    dpi_gguf_close(g);
    build_u32(&b, hashed_key(N / 2), 0);
    assert_error(dpi_gguf_open_buffer(b.data, b.n_bytes, &g, ERR), FORMAT, "occurs twice");
}

/* A count that a large file allows must not allocate before its entries have been seen. */
TEST(allocates_nothing_for_a_claimed_count) {
    const char *path = path_in(dir, "sparse.gguf");
    dpi_gguf *g = NULL;
    for (int i = 0; i < 2; i++) {
        build_poke_u64(&b, BUILD_N_KV, i ? 0 : 30000000);
        build_poke_u64(&b, BUILD_N_TENSORS, i ? 30000000 : 0);
        write_file(path, b.data, b.n_bytes);
        assert_int_equal(truncate(path, (off_t)1 << 30), 0);
        fail_allocation(0);
        dpi_status status = dpi_gguf_open(path, true, &g, ERR);
        int64_t n = fail_allocation(0);
        assert_error(status, FORMAT,
                     i ? "sparse.gguf: a tensor name is empty"
                       : "sparse.gguf: a metadata key is empty");
        assert_int_equal(ERR->offset, BUILD_HEADER_BYTES);
        assert_in_range(n, 1, 6); /* the handle, its name, the map, arrays for no keys */
    }
}

/* ---- Files --------------------------------------------------------------------------------- */

/* A small file, also in the image. */
static const char *write_small(void) {
    build_string(&b, "general.architecture", "llama");
    build_strings(&b, "words", (const char *const[]){"one", "two"}, 2);
    build_tensor(&b, "w", F32, 1, (int64_t[]){4}, (float[]){1, 2, 3, 4}, 16);
    build_tensor(&b, "v", F32, 1, (int64_t[]){4}, (float[]){5, 6, 7, 8}, 16);
    build_end(&b);
    write_file(path_in(dir, "small.gguf"), b.data, b.n_bytes);
    return path_in(dir, "small.gguf");
}

TEST(opens_files_mapped_and_read) {
    const char *path = write_small();
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        dpi_gguf *g = open_file(path, use_mmap);
        assert_string_equal(dpi_gguf_name(g), "small.gguf");
        const dpi_gguf_tensor *t = dpi_gguf_tensor_find(g, "v");
        assert_memory_equal(t->data, ((float[]){5, 6, 7, 8}), 16);
        assert_int_equal((uintptr_t)t->data % 32, 0);
        dpi_gguf_close(g);
        g = NULL;
        assert_int_equal(truncate(path, (off_t)b.n_bytes - 8), 0);
        assert_error(dpi_gguf_open(path, use_mmap, &g, ERR), FORMAT,
                     "small.gguf: tensor 'v': 16 bytes at data offset 32 go past the end");
        assert_null(g);
        write_file(path, b.data, b.n_bytes);
    }
}

TEST(refuses_what_is_no_regular_file) {
    assert_int_equal(mkfifo(path_in(dir, "fifo.gguf"), 0600), 0);
    assert_int_equal(mkdir(path_in(dir, "hf"), 0700), 0);
    write_file(path_in(dir, "hf/config.json"), "{}", 2);
    write_file(path_in(dir, "empty.gguf"), "", 0);
    const char *const cases[][2] = {
        {dir, ": is a directory, must be a GGUF file"},
        {path_in(dir, "hf"), "hf: is a model's folder, must be a GGUF file. llama.cpp makes one"},
        {path_in(dir, "fifo.gguf"), "fifo.gguf: is not a regular file"},
        {"/dev/null", "null: is not a regular file"},
        {path_in(dir, "empty.gguf"), "empty.gguf: the file is empty"},
        {path_in(dir, "absent.gguf"), "absent.gguf: cannot be opened: "},
        {"", "cannot be opened: "},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        dpi_gguf *g = NULL;
        assert_error(dpi_gguf_open(cases[i / 2][0], i % 2, &g, ERR), IO, cases[i / 2][1]);
        assert_int_equal(dpi_gguf_open(cases[i / 2][0], i % 2, &g, NULL), DPI_STATUS_IO);
        assert_null(g);
    }
}

/* Each allocation fails once: an error every time, and no leak (under a leak checker). */
TEST(survives_failing_allocations) {
    enum { READ, MAP, BUFFER, WAYS };
    const char *path = write_small();
    for (int way = 0; way < WAYS; way++) {
        dpi_gguf *g = NULL;
        int64_t n = 1;
        for (; fails(n,
                     way == BUFFER ? dpi_gguf_open_buffer(b.data, b.n_bytes, &g, ERR)
                                   : dpi_gguf_open(path, way == MAP, &g, ERR),
                     way == BUFFER ? "buffer: " : "small.gguf: ");
             n++)
            assert_null(g);
        dpi_gguf_close(g);
        assert_int_equal(n, way == BUFFER ? 9 : 10); /* 2 for the handle, 3 + 3 arrays, the image */
    }
}
