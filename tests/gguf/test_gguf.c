/* test_gguf.c - good GGUF files: what is read out of them, typed reads, ways to open, memory.
 * Malformed files are in test_gguf_refuse.c. */
#define _DEFAULT_SOURCE
#include "tests/support/support.h"

#include <math.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gguf/gguf.h"
#include "tests/support/gguf_build.h"

enum { F32 = 0, F16 = 1, Q8_0 = 8 }; /* GGML type ids */

static dpi_gguf *open_image(const gguf_build *b) {
    dpi_error err = {0};
    dpi_gguf *gguf = NULL;
    assert_ok(dpi_gguf_open_buffer(b->data, b->n_bytes, &gguf, &err), &err);
    return gguf;
}

static bool equals(dpi_str s, const char *text) {
    return s.n_bytes == strlen(text) && memcmp(s.data, text, s.n_bytes) == 0;
}

/* ---- Typed reads --------------------------------------------------------------------------- */

static void build_scalars(gguf_build *b) {
    build_begin(b);
    build_u8(b, "u8", 200);
    build_i8(b, "i8", -100);
    build_u16(b, "u16", 60000);
    build_i16(b, "i16", -30000);
    build_u32(b, "u32", 4000000000u);
    build_i32(b, "i32", -2000000000);
    build_u64(b, "u64", INT64_MAX);
    build_u64(b, "u64.huge", UINT64_MAX);
    build_i64(b, "i64", INT64_MIN);
    build_f32(b, "f32", 0.1f);
    build_f64(b, "f64", 0.1);
    build_f32(b, "nan", NAN);
    build_f64(b, "inf", INFINITY);
    build_bool(b, "yes", true);
    build_bool(b, "no", false);
    build_string(b, "text", "h\xc3\xa9llo");
    build_string(b, "empty", "");
}

static void reads_integers_of_every_width(void **state) {
    (void)state;
    static const struct {
        const char *key;
        int64_t value;
    } cases[] = {{"u8", 200},         {"i8", -100},         {"u16", 60000},     {"i16", -30000},
                 {"u32", 4000000000}, {"i32", -2000000000}, {"u64", INT64_MAX}, {"i64", INT64_MIN}};
    gguf_build b;
    build_scalars(&b);
    dpi_gguf *g = open_image(&b);
    dpi_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t v = 7, want = cases[i].value;
        bool found = false;
        assert_ok(dpi_gguf_get_int(g, cases[i].key, INT64_MIN, INT64_MAX, &v, &found, &err), &err);
        assert_true(found);
        assert_int_equal(v, want);
        assert_ok(dpi_gguf_get_int(g, cases[i].key, want, want, &v, NULL, &err), &err);
        v = 7;
        if (want < INT64_MAX)
            assert_error(dpi_gguf_get_int(g, cases[i].key, want + 1, INT64_MAX, &v, &found, &err),
                         DPI_STATUS_FORMAT, &err, "must be ");
        if (want > INT64_MIN)
            assert_error(dpi_gguf_get_int(g, cases[i].key, INT64_MIN, want - 1, &v, &found, &err),
                         DPI_STATUS_FORMAT, &err, "must be ");
        assert_int_equal(v, 7);
    }
    int64_t v = 7;
    bool found = true;
    assert_error(dpi_gguf_get_int(g, "u8", 1, 100, &v, NULL, &err), DPI_STATUS_FORMAT, &err,
                 "buffer: key 'u8' is 200, must be 1..100");
    assert_int_equal(err.offset, dpi_gguf_find(g, "u8")->offset);
    assert_error(dpi_gguf_get_int(g, "u64.huge", 0, INT64_MAX, &v, NULL, &err), DPI_STATUS_FORMAT,
                 &err, "key 'u64.huge' is more than 9223372036854775807");
    assert_error(dpi_gguf_get_int(g, "f32", 0, 9, &v, NULL, &err), DPI_STATUS_FORMAT, &err,
                 "buffer: key 'f32' is of type f32, must be an integer");
    assert_error(dpi_gguf_get_int(g, "yes", 0, 9, &v, NULL, &err), DPI_STATUS_FORMAT, &err,
                 "of type bool");
    assert_ok(dpi_gguf_get_int(g, "absent", 1, 2, &v, &found, &err), &err);
    assert_false(found);
    assert_int_equal(v, 7);
    dpi_gguf_close(g);
    build_free(&b);
}

static void reads_floats_bools_and_strings(void **state) {
    (void)state;
    gguf_build b;
    build_scalars(&b);
    dpi_gguf *g = open_image(&b);
    dpi_error err;
    double d = 7;
    bool found = false, flag = false;
    assert_ok(dpi_gguf_get_float(g, "f32", 0, 1, &d, &found, &err), &err);
    assert_true(found && d == (double)0.1f);
    assert_ok(dpi_gguf_get_float(g, "f64", 0, 1, &d, &found, &err), &err);
    assert_true(found && d == 0.1);
    assert_error(dpi_gguf_get_float(g, "f64", 0.5, 1, &d, NULL, &err), DPI_STATUS_FORMAT, &err,
                 "buffer: key 'f64' is 0.1, must be 0.5..1");
    assert_error(dpi_gguf_get_float(g, "nan", -1, 1, &d, NULL, &err), DPI_STATUS_FORMAT, &err,
                 "key 'nan' is ");
    assert_error(dpi_gguf_get_float(g, "inf", 0, (double)INFINITY, &d, NULL, &err),
                 DPI_STATUS_FORMAT, &err, "key 'inf' is inf");
    assert_error(dpi_gguf_get_float(g, "u8", 0, 1000, &d, NULL, &err), DPI_STATUS_FORMAT, &err,
                 "key 'u8' is of type u8, must be f32 or f64");
    assert_ok(dpi_gguf_get_float(g, "absent", 0, 1, &d, &found, &err), &err);
    assert_true(!found && d == 0.1);

    assert_ok(dpi_gguf_get_bool(g, "yes", &flag, &found, &err), &err);
    assert_true(found && flag);
    assert_ok(dpi_gguf_get_bool(g, "no", &flag, &found, &err), &err);
    assert_true(found && !flag);
    assert_ok(dpi_gguf_get_bool(g, "absent", &flag, &found, &err), &err);
    assert_true(!found && !flag);
    assert_error(dpi_gguf_get_bool(g, "u8", &flag, NULL, &err), DPI_STATUS_FORMAT, &err,
                 "key 'u8' is of type u8, must be bool");

    dpi_str s = {"old", 3};
    assert_ok(dpi_gguf_get_string(g, "absent", &s, &found, &err), &err);
    assert_true(!found && equals(s, "old"));
    assert_ok(dpi_gguf_get_string(g, "text", &s, &found, &err), &err);
    assert_true(found && equals(s, "h\xc3\xa9llo"));
    assert_ok(dpi_gguf_get_string(g, "empty", &s, NULL, &err), &err);
    assert_true(equals(s, ""));
    assert_error(dpi_gguf_get_string(g, "u8", &s, NULL, &err), DPI_STATUS_FORMAT, &err,
                 "key 'u8' is of type u8, must be a string");
    dpi_gguf_close(g);
    build_free(&b);
}

static void reads_arrays(void **state) {
    (void)state;
    static const char *const words[] = {"one", "", "three"};
    gguf_build b;
    build_begin(&b);
    build_strings(&b, "words", words, 3);
    build_array(&b, "none", 8, NULL, 0, 8);
    build_array(&b, "f32", 6, (float[]){0.5f, -2, 1e30f}, 3, 4);
    build_array(&b, "f64", 12, (double[]){0.5, 1e30}, 2, 8);
    build_array(&b, "u8", 0, "\377\1", 2, 1);
    build_array(&b, "i8", 1, "\377\1", 2, 1);
    build_array(&b, "i16", 3, (int16_t[]){-5, 5}, 2, 2);
    build_array(&b, "u32", 4, (uint32_t[]){3000000000u, 8}, 2, 4);
    build_array(&b, "i64", 11, (int64_t[]){INT64_MIN, -9}, 2, 8);
    build_u32(&b, "scalar", 3);
    dpi_gguf *g = open_image(&b);
    dpi_error err;
    const dpi_gguf_kv *kv = NULL;
    assert_ok(dpi_gguf_get_array(g, "words", DPI_GGUF_STRING, &kv, &err), &err);
    assert_int_equal(kv->n_items, 3);
    uint64_t cursor = 0;
    for (int i = 0; i < 3; i++)
        assert_true(equals(dpi_gguf_next_string(kv, &cursor), words[i]));
    assert_int_equal(cursor, kv->n_bytes);
    assert_int_equal(dpi_gguf_next_string(kv, &cursor).n_bytes, 0); /* past the end: harmless */
    assert_ok(dpi_gguf_get_array(g, "none", DPI_GGUF_STRING, &kv, &err), &err);
    assert_int_equal(kv->n_items, 0);
    assert_int_equal(kv->n_bytes, 0);
    assert_ok(dpi_gguf_get_array(g, "f32", DPI_GGUF_F32, &kv, &err), &err);
    assert_true(kv->n_items == 3 && dpi_gguf_item_f32(kv, 1) == -2 &&
                dpi_gguf_item_f32(kv, 2) == 1e30f);
    assert_true(dpi_gguf_item_f32(dpi_gguf_find(g, "f64"), 0) == 0.5f);
    static const struct {
        const char *key;
        int32_t a, b;
    } ints[] = {{"u8", 255, 1},
                {"i8", -1, 1},
                {"i16", -5, 5},
                {"u32", INT32_MAX, 8}, /* saturates */
                {"i64", INT32_MIN, -9}};
    for (size_t i = 0; i < 5; i++) {
        kv = dpi_gguf_find(g, ints[i].key);
        assert_int_equal(dpi_gguf_item_i32(kv, 0), ints[i].a);
        assert_int_equal(dpi_gguf_item_i32(kv, 1), ints[i].b);
    }
    const dpi_gguf_kv *before = kv;
    assert_ok(dpi_gguf_get_array(g, "absent", DPI_GGUF_F32, &kv, &err), &err);
    assert_ptr_equal(kv, before);
    assert_error(dpi_gguf_get_array(g, "f64", DPI_GGUF_F32, &kv, &err), DPI_STATUS_FORMAT, &err,
                 "buffer: key 'f64' is an array of f64, must be an array of f32");
    assert_error(dpi_gguf_get_array(g, "scalar", DPI_GGUF_U32, &kv, &err), DPI_STATUS_FORMAT, &err,
                 "key 'scalar' is of type u32, must be an array of u32");
    int64_t v;
    assert_error(dpi_gguf_get_int(g, "u8", 0, 255, &v, NULL, &err), DPI_STATUS_FORMAT, &err,
                 "key 'u8' is an array of u8, must be an integer");
    dpi_gguf_close(g);
    build_free(&b);
}

/* ---- Tensors ------------------------------------------------------------------------------- */

static void places_tensors_at_the_file_s_alignment(void **state) {
    (void)state;
    static const uint32_t alignments[] = {8, 32, 128, 4096};
    float data[6] = {1, 2, 3, 4, 5, 6};
    for (size_t i = 0; i < 4; i++) {
        gguf_build b;
        build_begin(&b);
        b.alignment = alignments[i];
        build_u32(&b, "general.alignment", alignments[i]);
        build_tensor(&b, "z", F32, 2, (int64_t[]){3, 2}, data, sizeof data);
        build_tensor(&b, "a", Q8_0, 4, (int64_t[]){64, 2, 1, 3}, NULL, 6 * 2 * 34);
        build_tensor(&b, "m", F16, 1, (int64_t[]){5}, "\0\1\2\3\4\5\6\7\10\11", 10);
        build_end(&b);
        dpi_gguf *g = open_image(&b);
        assert_int_equal(dpi_gguf_tensor_count(g), 3);
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(g, 0);
        assert_string_equal(t->name, "z");
        assert_true(t->type == F32 && t->n_dims == 2 && t->shape[0] == 3 && t->shape[1] == 2 &&
                    t->shape[2] == 1 && t->shape[3] == 1);
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
        build_free(&b);
    }
}

static void wants_an_aligned_buffer_for_tensors(void **state) {
    (void)state;
    gguf_build b;
    dpi_error err;
    dpi_gguf *g = NULL;
    build_begin(&b);
    build_u32(&b, "key", 5);
    unsigned char *shifted = malloc(4096);
    assert_non_null(shifted);
    memcpy(shifted + 1, b.data, b.n_bytes); /* no tensors: any address */
    assert_ok(dpi_gguf_open_buffer(shifted + 1, b.n_bytes, &g, &err), &err);
    dpi_gguf_close(g);
    g = NULL;
    build_tensor(&b, "w", F32, 1, (int64_t[]){4}, NULL, 16);
    build_end(&b);
    for (size_t i = 1; i < 8; i++) {
        memcpy(shifted + i, b.data, b.n_bytes);
        assert_error(dpi_gguf_open_buffer(shifted + i, b.n_bytes, &g, &err), DPI_STATUS_ARG, &err,
                     "it must be a multiple of 8 for a file with tensors");
    }
    memcpy(shifted + 8, b.data, b.n_bytes);
    assert_ok(dpi_gguf_open_buffer(shifted + 8, b.n_bytes, &g, &err), &err);
    dpi_gguf_close(g);
    free(shifted);
    build_free(&b);
    assert_error(dpi_gguf_open_buffer(NULL, 0, &g, &err), DPI_STATUS_ARG, &err, "NULL");
    assert_error(dpi_gguf_open(NULL, true, &g, &err), DPI_STATUS_ARG, &err, "NULL");
    dpi_gguf_close(NULL);
}

/* ---- Size ---------------------------------------------------------------------------------- */

static void opens_a_million_keys(void **state) {
    (void)state;
    enum { N = 1000000 };
    gguf_build b;
    char key[32];
    build_begin(&b);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(key, sizeof key, "%u", i * 2654435761u); /* odd factor: all different */
        build_u32(&b, key, i);
    }
    clock_t start = clock();
    dpi_gguf *g = open_image(&b);
    assert_int_equal(dpi_gguf_kv_count(g), N);
    for (uint32_t i = 0; i < N; i += 997) {
        int64_t v = -1;
        dpi_error err;
        snprintf(key, sizeof key, "%u", i * 2654435761u);
        assert_ok(dpi_gguf_get_int(g, key, 0, N, &v, NULL, &err), &err);
        assert_int_equal(v, i);
    }
    dpi_gguf_close(g);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 20); /* quadratic would be hours */

    snprintf(key, sizeof key, "%u", (N / 2) * 2654435761u);
    build_u32(&b, key, 0);
    dpi_error err;
    assert_error(dpi_gguf_open_buffer(b.data, b.n_bytes, &g, &err), DPI_STATUS_FORMAT, &err,
                 "occurs twice");
    build_free(&b);
}

/* A count that a large file allows must not allocate before its entries have been seen. */
static void allocates_nothing_for_a_claimed_count(void **state) {
    (void)state;
    char dir[256], path[300];
    gguf_build b;
    dpi_error err;
    dpi_gguf *g = NULL;
    make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/sparse.gguf", dir);
    for (int i = 0; i < 2; i++) {
        build_begin(&b);
        build_poke_u64(&b, i ? BUILD_N_TENSORS : BUILD_N_KV, 30000000);
        write_file(path, b.data, b.n_bytes);
        build_free(&b);
        assert_int_equal(truncate(path, (off_t)1 << 30), 0);
        fail_allocation(0);
        dpi_status status = dpi_gguf_open(path, true, &g, &err);
        int64_t n = fail_allocation(0);
        assert_error(status, DPI_STATUS_FORMAT, &err,
                     i ? "sparse.gguf: a tensor name is empty"
                       : "sparse.gguf: a metadata key is empty");
        assert_int_equal(err.offset, BUILD_HEADER_BYTES);
        assert_in_range(n, 1, 6); /* the handle, its name, the map, arrays for no keys */
    }
    remove_dir(dir);
}

/* ---- Files --------------------------------------------------------------------------------- */

static void build_small(gguf_build *b) {
    build_begin(b);
    build_string(b, "general.architecture", "llama");
    build_strings(b, "words", (const char *const[]){"one", "two"}, 2);
    build_tensor(b, "w", F32, 1, (int64_t[]){4}, (float[]){1, 2, 3, 4}, 16);
    build_tensor(b, "v", F32, 1, (int64_t[]){4}, (float[]){5, 6, 7, 8}, 16);
    build_end(b);
}

static void opens_files_mapped_and_read(void **state) {
    (void)state;
    char dir[256], path[300];
    gguf_build b;
    build_small(&b);
    make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/small.gguf", dir);
    write_file(path, b.data, b.n_bytes);
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        dpi_error err;
        dpi_gguf *g = NULL;
        assert_ok(dpi_gguf_open(path, use_mmap, &g, &err), &err);
        assert_string_equal(dpi_gguf_name(g), "small.gguf");
        const dpi_gguf_tensor *t = dpi_gguf_tensor_find(g, "v");
        assert_memory_equal(t->data, ((float[]){5, 6, 7, 8}), 16);
        assert_int_equal((uintptr_t)t->data % 32, 0);
        dpi_gguf_close(g);
        g = NULL;
        assert_int_equal(truncate(path, (off_t)b.n_bytes - 8), 0);
        assert_error(dpi_gguf_open(path, use_mmap, &g, &err), DPI_STATUS_FORMAT, &err,
                     "small.gguf: tensor 'v': 16 bytes at data offset 32 go past the end");
        assert_null(g);
        write_file(path, b.data, b.n_bytes);
    }
    remove_dir(dir);
    build_free(&b);
}

static void refuses_what_is_no_regular_file(void **state) {
    (void)state;
    char dir[256], fifo[300], empty[300], absent[300];
    make_dir(dir, sizeof dir);
    snprintf(fifo, sizeof fifo, "%s/fifo.gguf", dir);
    snprintf(empty, sizeof empty, "%s/empty.gguf", dir);
    snprintf(absent, sizeof absent, "%s/absent.gguf", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    write_file(empty, "", 0);
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        dpi_error err;
        dpi_gguf *g = NULL;
        assert_error(dpi_gguf_open(dir, use_mmap, &g, &err), DPI_STATUS_IO, &err,
                     ": is a directory, must be a GGUF file");
        assert_error(dpi_gguf_open(fifo, use_mmap, &g, &err), DPI_STATUS_IO, &err,
                     "fifo.gguf: is not a regular file");
        assert_error(dpi_gguf_open("/dev/null", use_mmap, &g, &err), DPI_STATUS_IO, &err,
                     "null: is not a regular file");
        assert_error(dpi_gguf_open(empty, use_mmap, &g, &err), DPI_STATUS_IO, &err,
                     "empty.gguf: the file is empty");
        assert_error(dpi_gguf_open(absent, use_mmap, &g, &err), DPI_STATUS_IO, &err,
                     "absent.gguf: cannot be opened: ");
        assert_error(dpi_gguf_open("", use_mmap, &g, &err), DPI_STATUS_IO, &err,
                     "cannot be opened: ");
        assert_int_equal(dpi_gguf_open(absent, use_mmap, &g, NULL), DPI_STATUS_IO);
        assert_null(g);
    }
    remove_dir(dir);
}

/* Each allocation fails once: an error every time, and no leak (under a leak checker). */
static void survives_failing_allocations(void **state) {
    (void)state;
    enum { BUFFER, READ, MAP, WAYS };
    char dir[256], path[300];
    gguf_build b;
    build_small(&b);
    make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/small.gguf", dir);
    write_file(path, b.data, b.n_bytes);
    for (int way = 0; way < WAYS; way++) {
        int64_t n = 1;
        for (;; n++) {
            dpi_error err = {0};
            dpi_gguf *g = NULL;
            fail_allocation(n);
            dpi_status status = way == BUFFER ? dpi_gguf_open_buffer(b.data, b.n_bytes, &g, &err)
                                              : dpi_gguf_open(path, way == MAP, &g, &err);
            int64_t seen = fail_allocation(0);
            if (seen < n) {
                assert_ok(status, &err);
                dpi_gguf_close(g);
                break;
            }
            assert_error(status, DPI_STATUS_MEMORY, &err,
                         way == BUFFER ? "buffer: " : "small.gguf: ");
            assert_null(g);
        }
        assert_int_equal(n, way == BUFFER ? 9 : 10); /* 2 for the handle, 3 + 3 arrays, the image */
    }
    remove_dir(dir);
    build_free(&b);
}

/* ---- The golden models --------------------------------------------------------------------- */

/* Values read with an independent program. */
static const struct golden {
    const char *path;
    int64_t n_kv, n_tensors, n_ctx, n_embd;
    const char *tensor; /* one of them: */
    uint32_t type;
    int64_t shape[2];
    uint64_t offset, n_bytes;
    const char *first; /* its first 8 bytes */
} goldens[] = {
    {"models/stories260K.gguf",
     19,
     48,
     128,
     64,
     "output_norm.weight",
     F32,
     {64, 1},
     145248,
     256,
     "\xef\x54\x1d\x40"},
    {"models/tiny-gqa-F32.gguf",
     22,
     21,
     512,
     256,
     "blk.0.attn_k.weight",
     F32,
     {256, 64},
     1326464,
     65536,
     "\x4d\xf9\x0a\x3e\xc6\xeb\x42\x3e"},
    {"models/tiny-gqa-F16.gguf",
     23,
     21,
     512,
     256,
     "blk.0.attn_k.weight",
     F16,
     {256, 64},
     538048,
     32768,
     "\x58\x30\x17\x32\xc4\x92\x17\x25"},
    {"models/tiny-gqa-Q8_0.gguf",
     23,
     21,
     512,
     256,
     "blk.0.attn_k.weight",
     Q8_0,
     {256, 64},
     292288,
     17408,
     "\x24\x16\x5b\x7f\xff\x0d\x05\x1c"},
    {"models/tiny-llama3-F32.gguf",
     22,
     21,
     2048,
     256,
     "blk.0.attn_k.weight",
     F32,
     {256, 64},
     802304,
     65536,
     "\x5f\xa2\x44\xbd\x67\x74\x2c\x3d"},
    {"tokenizer/vocab-llama-spm.gguf", 22, 0, 4096, 4096, NULL, 0, {0, 0}, 0, 0, ""},
    {"tokenizer/vocab-llama3-bpe.gguf", 18, 0, 8192, 64, NULL, 0, {0, 0}, 0, 0, ""},
};

static void check_golden(const struct golden *want, bool use_mmap) {
    dpi_error err;
    dpi_gguf *g = NULL;
    assert_ok(dpi_gguf_open(data_path(want->path), use_mmap, &g, &err), &err);
    assert_int_equal(dpi_gguf_kv_count(g), want->n_kv);
    assert_int_equal(dpi_gguf_tensor_count(g), want->n_tensors);
    int64_t v = 0;
    dpi_str s = {"", 0};
    double eps = 0;
    assert_ok(dpi_gguf_get_int(g, "llama.context_length", 1, 1 << 20, &v, NULL, &err), &err);
    assert_int_equal(v, want->n_ctx);
    assert_ok(dpi_gguf_get_int(g, "llama.embedding_length", 1, 1 << 20, &v, NULL, &err), &err);
    assert_int_equal(v, want->n_embd);
    assert_ok(
        dpi_gguf_get_float(g, "llama.attention.layer_norm_rms_epsilon", 0, 1, &eps, NULL, &err),
        &err);
    assert_true(eps == (double)1e-5f);
    assert_ok(dpi_gguf_get_string(g, "general.architecture", &s, NULL, &err), &err);
    assert_true(equals(s, "llama"));
    if (want->tensor) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_find(g, want->tensor);
        assert_non_null(t);
        assert_true(t->type == want->type && t->shape[0] == want->shape[0] &&
                    t->shape[1] == want->shape[1] && t->shape[2] == 1 && t->shape[3] == 1);
        assert_int_equal(t->offset, want->offset);
        assert_int_equal(t->n_bytes, want->n_bytes);
        assert_memory_equal(t->data, want->first, want->type == F32 ? 4 : 8);
    }
    dpi_gguf_close(g);
}

static void reads_the_golden_models(void **state) {
    (void)state;
    require_data(goldens[0].path);
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        check_golden(&goldens[i], true);
        check_golden(&goldens[i], false);
    }
}

/* Token `index`, and the bytes of all of them. */
static void check_tokens(const char *path, uint64_t n_items, uint64_t index, const char *token,
                         uint64_t n_bytes) {
    dpi_error err;
    dpi_gguf *g = NULL;
    const dpi_gguf_kv *tokens = NULL;
    require_data(path);
    assert_ok(dpi_gguf_open(data_path(path), true, &g, &err), &err);
    assert_ok(dpi_gguf_get_array(g, "tokenizer.ggml.tokens", DPI_GGUF_STRING, &tokens, &err), &err);
    assert_int_equal(tokens->n_items, n_items);
    uint64_t cursor = 0, sum = 0;
    for (uint64_t i = 0; i < n_items; i++) {
        dpi_str s = dpi_gguf_next_string(tokens, &cursor);
        assert_true(i != index || equals(s, token));
        sum += s.n_bytes;
    }
    assert_int_equal(sum, n_bytes);
    dpi_gguf_close(g);
}

static void reads_the_golden_vocabularies(void **state) {
    (void)state;
    check_tokens("models/stories260K.gguf", 512, 400,
                 "\xe2\x96\x81"
                 "do",
                 2305);
    check_tokens("tokenizer/vocab-llama-spm.gguf", 32000, 15043, "\xe2\x96\x81Hello", 210919);
    check_tokens("tokenizer/vocab-llama3-bpe.gguf", 128256, 128009, "<|eot_id|>", 1073404);
    dpi_error err;
    dpi_gguf *g = NULL;
    const dpi_gguf_kv *scores = NULL, *types = NULL;
    assert_ok(dpi_gguf_open(data_path("models/stories260K.gguf"), false, &g, &err), &err);
    assert_ok(dpi_gguf_get_array(g, "tokenizer.ggml.scores", DPI_GGUF_F32, &scores, &err), &err);
    assert_ok(dpi_gguf_get_array(g, "tokenizer.ggml.token_type", DPI_GGUF_I32, &types, &err), &err);
    assert_true(dpi_gguf_item_f32(scores, 400) == -141);
    static const int32_t first[] = {2, 3, 3, 6, 6, 6};
    for (uint64_t i = 0; i < 6; i++)
        assert_int_equal(dpi_gguf_item_i32(types, i), first[i]);
    dpi_gguf_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_integers_of_every_width),
        cmocka_unit_test(reads_floats_bools_and_strings),
        cmocka_unit_test(reads_arrays),
        cmocka_unit_test(places_tensors_at_the_file_s_alignment),
        cmocka_unit_test(wants_an_aligned_buffer_for_tensors),
        cmocka_unit_test(opens_a_million_keys),
        cmocka_unit_test(allocates_nothing_for_a_claimed_count),
        cmocka_unit_test(opens_files_mapped_and_read),
        cmocka_unit_test(refuses_what_is_no_regular_file),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(reads_the_golden_models),
        cmocka_unit_test(reads_the_golden_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
