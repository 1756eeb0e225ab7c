/* test_gguf_refuse.c - malformed GGUF files: one test per item of the list in docs/spec.md 6
 * that concerns the container, each asserting the error, its text and its offset. */
#include "tests/support/support.h"

#include "gguf/gguf.h"
#include "tests/support/gguf_build.h"

enum { F32 = 0, Q8_0 = 8 }; /* GGML type ids */

#define ANY_OFFSET (UINT64_MAX - 1)

/* Opens an exact heap copy, so that a sanitizer sees a read past the end. */
static dpi_status open_copy(const gguf_build *b, size_t n_bytes, dpi_error *err) {
    unsigned char *copy = malloc(n_bytes ? n_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, b->data, n_bytes);
    dpi_gguf *gguf = NULL;
    dpi_status status = dpi_gguf_open_buffer(copy, n_bytes, &gguf, err);
    assert_true((status == DPI_STATUS_OK) == (gguf != NULL));
    dpi_gguf_close(gguf);
    free(copy);
    return status;
}

/* The built file must be refused; frees it. */
static void refused(gguf_build *b, dpi_status wanted, uint64_t offset, const char *part) {
    dpi_error err = {0};
    dpi_status status = open_copy(b, b->n_bytes, &err);
    assert_error(status, wanted, &err, part);
    assert_ptr_equal(strstr(err.message, "buffer: "), err.message);
    assert_null(strstr(err.message + 1, "buffer: "));
    if (offset != ANY_OFFSET)
        assert_int_equal(err.offset, offset);
    build_free(b);
}

static void accepted(gguf_build *b) {
    dpi_error err = {0};
    assert_ok(open_copy(b, b->n_bytes, &err), &err);
    build_free(b);
}

static void refuses_bad_magic_and_versions(void **state) {
    (void)state;
    static const struct {
        const char *magic;
        uint32_t version;
        dpi_status status;
        uint64_t offset;
        const char *part;
    } cases[] = {
        {"GGML", 3, DPI_STATUS_FORMAT, 0, "magic number is 47 47 4d 4c"},
        {"\177ELF", 3, DPI_STATUS_FORMAT, 0, "magic number is 7f 45 4c 46"},
        {"GGUF", 0, DPI_STATUS_FORMAT, 4, "version 0 is not supported"},
        {"GGUF", 1, DPI_STATUS_UNSUPPORTED, 4, "GGUF version 1 is not supported, only 2 and 3"},
        {"GGUF", 4, DPI_STATUS_UNSUPPORTED, 4, "GGUF version 4 is not supported"},
        {"GGUF", 0x03000000, DPI_STATUS_UNSUPPORTED, 4,
         "version is 0x03000000: this is a big-endian"},
        {"GGUF", 0x02000000, DPI_STATUS_UNSUPPORTED, 4, "big-endian"},
        {"FUGG", 0x03000000, DPI_STATUS_UNSUPPORTED, 4, "big-endian"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gguf_build b;
        build_begin(&b);
        build_poke(&b, 0, cases[i].magic, 4);
        build_poke_u32(&b, BUILD_VERSION, cases[i].version);
        refused(&b, cases[i].status, cases[i].offset, cases[i].part);
    }
    gguf_build b;
    build_begin(&b);
    build_poke_u32(&b, BUILD_VERSION, 2);
    accepted(&b);
}

static void refuses_counts_beyond_the_file(void **state) {
    (void)state;
    static const uint64_t counts[] = {1, 1000000000, (uint64_t)1 << 61, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        gguf_build b;
        build_begin(&b);
        build_poke_u64(&b, BUILD_N_KV, counts[i]);
        refused(&b, DPI_STATUS_FORMAT, BUILD_N_KV, "the number of metadata keys is ");
        build_begin(&b);
        build_poke_u64(&b, BUILD_N_TENSORS, counts[i]);
        refused(&b, DPI_STATUS_FORMAT, BUILD_N_TENSORS, "the number of tensors is ");
    }
    gguf_build b;
    build_begin(&b);
    build_put(&b, NULL, 100);
    build_poke_u64(&b, BUILD_N_KV, 8);
    refused(&b, DPI_STATUS_FORMAT, BUILD_N_KV, "is 8, the 100 bytes left hold at most 7");
    build_begin(&b);
    size_t at = build_u8(&b, "a", 1);
    build_poke_u64(&b, BUILD_N_KV, 2);
    build_put(&b, NULL, 14); /* room for a second entry, but zeros are none */
    refused(&b, DPI_STATUS_FORMAT, at + 1, "a metadata key is empty");
}

static void refuses_lengths_beyond_the_file(void **state) {
    (void)state;
    gguf_build b;
    build_begin(&b); /* a key */
    size_t at = build_key(&b, "key", 4);
    build_put_u32(&b, 0);
    build_poke_u64(&b, at, (uint64_t)1 << 63);
    refused(&b, DPI_STATUS_FORMAT, at + 8,
            "a metadata key takes 9223372036854775808 bytes, 11 are");

    build_begin(&b); /* a string, one byte too long; then the longest */
    at = build_string(&b, "name", "abc");
    build_poke_u64(&b, at, 4);
    refused(&b, DPI_STATUS_FORMAT, at + 8, "key 'name': a string takes 4 bytes, 3 are left");
    build_begin(&b);
    at = build_string(&b, "name", "abc");
    build_poke_u64(&b, at, UINT64_MAX);
    refused(&b, DPI_STATUS_FORMAT, at + 8, "key 'name': a string takes 18446744073709551615 bytes");

    static const uint64_t counts[] = {4, (uint64_t)1 << 62, UINT64_MAX / 4 + 1, UINT64_MAX};
    for (size_t i = 0; i < 4; i++) { /* arrays; 2^62 * 4 would be 0 in 64 bits */
        build_begin(&b);
        at = build_array(&b, "list", 6, (float[]){1, 2, 3}, 3, 4);
        build_poke_u64(&b, at - 8, counts[i]);
        refused(&b, DPI_STATUS_FORMAT, at - 8, "key 'list': the array's length is ");
        build_begin(&b);
        at = build_strings(&b, "words", (const char *const[]){"", "", ""}, 3);
        build_poke_u64(&b, at - 8, counts[i]);
        refused(&b, DPI_STATUS_FORMAT, at - 8, "key 'words': the array's length is ");
    }
    build_begin(&b); /* a string inside an array */
    at = build_strings(&b, "words", (const char *const[]){"one", "two"}, 2);
    build_poke_u64(&b, at, 1000);
    refused(&b, DPI_STATUS_FORMAT, at + 8, "key 'words': a string takes 1000 bytes, 14 are left");
    build_begin(&b); /* a tensor's name */
    at = build_entry(&b, "w", 1, (int64_t[]){4}, F32, 0);
    build_poke_u64(&b, at, 1u << 20);
    refused(&b, DPI_STATUS_FORMAT, at + 8, "a tensor name takes 1048576 bytes");
}

static void refuses_bad_value_types(void **state) {
    (void)state;
    static const uint32_t bad[] = {13, 255, 0x80000000u, UINT32_MAX};
    gguf_build b;
    size_t at;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        build_begin(&b);
        at = build_u32(&b, "key", 1);
        build_poke_u32(&b, at - 4, bad[i]);
        refused(&b, DPI_STATUS_FORMAT, at - 4, "key 'key': the value type is ");
        build_begin(&b);
        at = build_array(&b, "key", bad[i], "abcdefgh", 1, 8);
        refused(&b, DPI_STATUS_FORMAT, at - 12, "key 'key': the array's item type is ");
    }
    build_begin(&b);
    at = build_array(&b, "key", 9, "abcdefgh", 1, 8);
    refused(&b, DPI_STATUS_UNSUPPORTED, at - 12, "key 'key': arrays of arrays are not supported");
    build_begin(&b);
    at = build_u8(&b, "flag", 2);
    build_poke_u32(&b, at - 4, 7);
    refused(&b, DPI_STATUS_FORMAT, at, "key 'flag': bool is 2, must be 0 or 1");
    build_begin(&b);
    at = build_array(&b, "flags", 7, "\1\0\377\1", 4, 1);
    refused(&b, DPI_STATUS_FORMAT, at + 2, "key 'flags': bool is 255, must be 0 or 1");
}

static void refuses_bad_alignment(void **state) {
    (void)state;
    static const uint32_t bad[] = {0, 1, 4, 24, 33, 1u << 21, 0x80000000u, UINT32_MAX};
    gguf_build b;
    size_t at;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        build_begin(&b);
        at = build_u32(&b, "general.alignment", bad[i]);
        refused(&b, DPI_STATUS_FORMAT, at, "must be a power of two in 8..1048576");
    }
    build_begin(&b);
    at = build_u64(&b, "general.alignment", 32);
    refused(&b, DPI_STATUS_FORMAT, at, "'general.alignment' is of type u64, must be u32");
    build_begin(&b);
    at = build_i32(&b, "general.alignment", 32);
    refused(&b, DPI_STATUS_FORMAT, at, "'general.alignment' is of type i32, must be u32");
    build_begin(&b);
    at = build_array(&b, "general.alignment", 4, (uint32_t[]){32}, 1, 4);
    refused(&b, DPI_STATUS_FORMAT, at, "'general.alignment' is of type array, must be u32");
}

static void refuses_bad_keys(void **state) {
    (void)state;
    gguf_build b;
    build_begin(&b);
    size_t at = build_key(&b, "", 0);
    build_put_u32(&b, 0);
    refused(&b, DPI_STATUS_FORMAT, at, "a metadata key is empty");
    build_begin(&b);
    at = build_u8(&b, "a-b", 1) - 4 - 3;
    build_poke(&b, at + 1, "", 1);
    refused(&b, DPI_STATUS_FORMAT, at - 8, "a metadata key 'a?b' contains a NUL byte");

    char *key = malloc(65537);
    assert_non_null(key);
    memset(key, 'k', 65536);
    key[65536] = '\0';
    build_begin(&b);
    at = build_key(&b, key, 0);
    build_put_u8(&b, 0);
    refused(&b, DPI_STATUS_FORMAT, at, "kkk...' has 65536 bytes, at most 65535 are allowed");
    build_begin(&b);
    build_u8(&b, key + 1, 0);
    accepted(&b);
    free(key);

    build_begin(&b);
    build_u8(&b, "twice", 1);
    build_string(&b, "other", "x");
    at = build_array(&b, "twice", 4, NULL, 2, 4) - 16 - 5 - 8;
    refused(&b, DPI_STATUS_FORMAT, at, "key 'twice' occurs twice");
    build_begin(&b);
    build_u8(&b, "twice", 1);
    at = build_u8(&b, "twice", 1) - 4 - 5 - 8;
    refused(&b, DPI_STATUS_FORMAT, at, "key 'twice' occurs twice");
    build_begin(&b); /* names of a file must not reach a terminal as they are */
    build_u8(&b, "\33[2J\r\n\200", 1);
    build_u8(&b, "\33[2J\r\n\200", 1);
    refused(&b, DPI_STATUS_FORMAT, ANY_OFFSET,
            "key '?[2J?"
            "?"
            "?' occurs twice");
}

static void refuses_bad_tensor_names(void **state) {
    (void)state;
    char name[65];
    memset(name, 'n', 64);
    name[64] = '\0';
    int64_t shape[] = {4};
    gguf_build b;
    build_begin(&b);
    size_t at = build_tensor(&b, "", F32, 1, shape, NULL, 16);
    build_put(&b, NULL, 8);
    refused(&b, DPI_STATUS_FORMAT, at, "a tensor name is empty");
    build_begin(&b);
    at = build_tensor(&b, name, F32, 1, shape, NULL, 16);
    refused(&b, DPI_STATUS_FORMAT, at, "has 64 bytes, at most 63 are allowed");
    build_begin(&b);
    build_tensor(&b, name + 1, F32, 1, shape, NULL, 16);
    build_end(&b);
    accepted(&b);
    build_begin(&b);
    at = build_tensor(&b, "abc", F32, 1, shape, NULL, 16);
    build_poke(&b, at + 9, "", 1);
    refused(&b, DPI_STATUS_FORMAT, at, "a tensor name 'a?c' contains a NUL byte");
    build_begin(&b);
    build_tensor(&b, "w", F32, 1, shape, NULL, 16);
    build_tensor(&b, "v", F32, 1, shape, NULL, 16);
    at = build_tensor(&b, "w", F32, 1, shape, NULL, 16);
    build_end(&b);
    refused(&b, DPI_STATUS_FORMAT, at, "tensor 'w' occurs twice");
}

static void refuses_bad_dimensions(void **state) {
    (void)state;
    static const uint32_t counts[] = {0, 5, UINT32_MAX};
    gguf_build b;
    for (size_t i = 0; i < 3; i++) {
        build_begin(&b);
        size_t at = build_entry(&b, "w", 4, (int64_t[]){1, 1, 1, 1}, F32, 0);
        build_poke_u32(&b, at + 9, counts[i]);
        refused(&b, DPI_STATUS_FORMAT, at + 9, "tensor 'w': has ");
    }
    for (size_t i = 0; i < 4; i++) {
        int64_t shape[] = {1, 1, 1, 1};
        shape[i] = 0;
        build_begin(&b);
        size_t at = build_entry(&b, "w", 4, shape, F32, 0);
        refused(&b, DPI_STATUS_FORMAT, at + 13 + 8 * i, " is 0, must be 1..2^63-1");
        shape[i] = -1;
        build_begin(&b);
        build_entry(&b, "w", 4, shape, F32, 0);
        refused(&b, DPI_STATUS_FORMAT, at + 13 + 8 * i, " is 18446744073709551615, must be 1..");
    }
}

static void refuses_overflowing_sizes(void **state) {
    (void)state;
    static const struct {
        int64_t shape[4];
        uint32_t type;
        uint64_t field; /* offset of the fault in the entry */
        const char *part;
    } cases[] = {
        {{(int64_t)1 << 62, 2, 1, 1}, F32, 21, "tensor 'w': the number of elements overflows"},
        {{(int64_t)1 << 32, (int64_t)1 << 32, 1, 1}, F32, 21, "the number of elements overflows"},
        {{3, 3, INT64_MAX, 1}, F32, 29, "the number of elements overflows"},
        {{(int64_t)1 << 40, 1 << 20, 1, 16}, F32, 37, "the number of elements overflows"},
        {{(int64_t)1 << 62, 1, 1, 1}, F32, 45, "tensor 'w': the size in bytes overflows 2^64"},
        {{INT64_MAX, 1, 1, 1}, F32, 45, "the size in bytes overflows 2^64"},
        /* 2^62 weights are 2^62 / 32 * 34 bytes: no overflow, but no such file. */
        {{(int64_t)1 << 62, 1, 1, 1},
         Q8_0,
         0,
         "4899916394579099648 bytes at data offset 0 go past"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gguf_build b;
        build_begin(&b);
        size_t at = build_entry(&b, "w", 4, cases[i].shape, cases[i].type, 0);
        build_put(&b, NULL, 128);
        refused(&b, DPI_STATUS_FORMAT, at + cases[i].field, cases[i].part);
    }
}

static void refuses_bad_tensor_types(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        dpi_status status;
        const char *part;
    } cases[] = {
        {UINT32_MAX, DPI_STATUS_FORMAT, "tensor 'w': type id -1 is unknown or was removed"},
        {0x80000000u, DPI_STATUS_FORMAT, "type id -2147483648 is unknown"},
        {4, DPI_STATUS_FORMAT, "type id 4 is unknown or was removed"},
        {5, DPI_STATUS_FORMAT, "type id 5 is"},
        {31, DPI_STATUS_FORMAT, "type id 31 is"},
        {38, DPI_STATUS_FORMAT, "type id 38 is"},
        {4711, DPI_STATUS_FORMAT, "type id 4711 is"},
        {19, DPI_STATUS_UNSUPPORTED, "tensor 'w': type IQ1_S is not supported"},
        {26, DPI_STATUS_UNSUPPORTED, "type I32 is not supported"},
    };
    gguf_build b;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        build_begin(&b);
        size_t at = build_tensor(&b, "w", cases[i].type, 1, (int64_t[]){32}, NULL, 128);
        build_end(&b);
        refused(&b, cases[i].status, at + 21, cases[i].part);
    }
    build_begin(&b); /* 48 weights divide into blocks only if rows may be cut */
    size_t at = build_tensor(&b, "w", Q8_0, 2, (int64_t[]){48, 2}, NULL, 102);
    build_end(&b);
    refused(&b, DPI_STATUS_FORMAT, at + 29,
            "tensor 'w': has rows of 48 elements, type Q8_0 needs a multiple of 32");
}

/* Two tensors of 16 floats; the second at `offset`, data of n_bytes. */
static void build_pair(gguf_build *b, uint64_t offset, size_t n_bytes, size_t *second) {
    build_begin(b);
    build_entry(b, "a", 1, (int64_t[]){16}, F32, 64);
    *second = build_entry(b, "b", 2, (int64_t[]){8, 2}, F32, offset);
    build_put(b, NULL, -b->n_bytes & 31);
    build_put(b, NULL, n_bytes);
}

static void refuses_bad_offsets(void **state) {
    (void)state;
    gguf_build b;
    size_t at;
    static const uint64_t misaligned[] = {1, 8, 16, 31, UINT64_MAX};
    for (size_t i = 0; i < 5; i++) {
        build_pair(&b, misaligned[i], 256, &at);
        refused(&b, DPI_STATUS_FORMAT, at + 33, "must be a multiple of 32");
    }
    static const uint64_t overlapping[] = {32, 64, 96};
    for (size_t i = 0; i < 3; i++) {
        build_pair(&b, overlapping[i], 256, &at);
        refused(&b, DPI_STATUS_FORMAT, ANY_OFFSET, "overlap");
    }
    static const uint64_t beyond[] = {224, 256, 288, (uint64_t)1 << 62, (uint64_t)0 - 32};
    for (size_t i = 0; i < 5; i++) {
        build_pair(&b, beyond[i], 256, &at);
        refused(&b, DPI_STATUS_FORMAT, at, "go past the end, the file has 256 bytes of data");
    }
    build_pair(&b, 128, 191, &at); /* one byte is missing */
    refused(&b, DPI_STATUS_FORMAT, at, "tensor 'b': 64 bytes at data offset 128 go past the end");
    build_pair(&b, 128, 192, &at);
    accepted(&b);
    build_pair(&b, 0, 128, &at); /* any order, gaps allowed */
    accepted(&b);
    build_begin(&b); /* 32 + (2^64 - 4) would be 28 in 64 bits */
    at = build_entry(&b, "a", 1, (int64_t[]){((int64_t)1 << 62) - 1}, F32, 32);
    build_put(&b, NULL, 128);
    refused(&b, DPI_STATUS_FORMAT, at, "18446744073709551612 bytes at data offset 32 go past");
    build_begin(&b); /* the padding before the data is not there */
    at = build_entry(&b, "a", 1, (int64_t[]){16}, F32, 0);
    refused(&b, DPI_STATUS_FORMAT, at, "the file has 0 bytes of data");
}

static void refuses_split_files(void **state) {
    (void)state;
    gguf_build b;
    build_begin(&b);
    build_u16(&b, "split.no", 0);
    size_t at = build_u16(&b, "split.count", 2);
    refused(&b, DPI_STATUS_UNSUPPORTED, at,
            "split.count is 2, a part of a split model: split files");
    build_begin(&b);
    at = build_u16(&b, "split.no", 1);
    build_u16(&b, "split.count", 1);
    refused(&b, DPI_STATUS_FORMAT, at, "key 'split.no' is 1, must be 0..0");
    build_begin(&b);
    at = build_string(&b, "split.count", "2");
    refused(&b, DPI_STATUS_FORMAT, at, "key 'split.count' is of type string, must be an integer");
    build_begin(&b);
    at = build_i32(&b, "split.count", -1);
    refused(&b, DPI_STATUS_FORMAT, at, "key 'split.count' is -1, must be 0..65535");
    build_begin(&b);
    build_u16(&b, "split.no", 0);
    build_u16(&b, "split.count", 1);
    accepted(&b);
}

/* A little of everything. */
static void build_sample(gguf_build *b) {
    build_begin(b);
    build_string(b, "general.architecture", "llama");
    build_u32(b, "general.alignment", 64);
    b->alignment = 64;
    build_f32(b, "eps", 1e-5f);
    build_bool(b, "flag", true);
    build_array(b, "flags", 7, "\1\0\1", 3, 1);
    build_strings(b, "words", (const char *const[]){"one", "", "three"}, 3);
    build_array(b, "scores", 6, (float[]){1, 2, 3}, 3, 4);
    build_tensor(b, "a", F32, 2, (int64_t[]){4, 3}, NULL, 48);
    build_tensor(b, "b", Q8_0, 3, (int64_t[]){32, 1, 2}, NULL, 68);
    build_end(b);
}

static void refuses_every_truncation(void **state) {
    (void)state;
    gguf_build b;
    dpi_error err;
    build_sample(&b);
    for (size_t n = 0; n < b.n_bytes; n++) {
        dpi_status status = open_copy(&b, n, &err);
        assert_int_equal(status, DPI_STATUS_FORMAT);
        assert_true(err.offset <= n);
    }
    accepted(&b);
}

static void survives_every_flipped_byte(void **state) {
    (void)state;
    static const unsigned char masks[] = {0x01, 0x02, 0x08, 0x20, 0x40, 0x80, 0x7f, 0xff};
    gguf_build b;
    build_sample(&b);
    size_t n_refused = 0;
    for (size_t i = 0; i < b.n_bytes - b.n_body; i++) {
        for (size_t j = 0; j < sizeof masks; j++) {
            dpi_error err = {0};
            b.data[i] ^= masks[j];
            dpi_status status = open_copy(&b, b.n_bytes, &err);
            assert_true(status == DPI_STATUS_OK || status == DPI_STATUS_FORMAT ||
                        status == DPI_STATUS_UNSUPPORTED);
            n_refused += status != DPI_STATUS_OK;
            b.data[i] ^= masks[j];
        }
    }
    assert_true(n_refused > 1000);
    accepted(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_bad_magic_and_versions),
        cmocka_unit_test(refuses_counts_beyond_the_file),
        cmocka_unit_test(refuses_lengths_beyond_the_file),
        cmocka_unit_test(refuses_bad_value_types),
        cmocka_unit_test(refuses_bad_alignment),
        cmocka_unit_test(refuses_bad_keys),
        cmocka_unit_test(refuses_bad_tensor_names),
        cmocka_unit_test(refuses_bad_dimensions),
        cmocka_unit_test(refuses_overflowing_sizes),
        cmocka_unit_test(refuses_bad_tensor_types),
        cmocka_unit_test(refuses_bad_offsets),
        cmocka_unit_test(refuses_split_files),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(survives_every_flipped_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
