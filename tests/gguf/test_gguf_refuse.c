/* test_gguf_refuse.c - malformed GGUF files: one test per item of the list in docs/spec.md 6
 * that concerns the container, each asserting the error, its text and its offset. */
#include "tests/support/support.h"

#include "gguf/gguf.h"
#include "tests/support/gguf_build.h"

enum { F32 = 0, Q8_0 = 8 }; /* GGML type ids */

#define ANY_OFFSET (UINT64_MAX - 1)
#define P62 ((int64_t)1 << 62)
#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
#define STRINGS(...) ((const char *const[]){__VA_ARGS__})

/* Opens an exact heap copy, so that a sanitizer sees a read past the end. */
static dpi_status open_copy(const gguf_build *b, size_t n_bytes) {
    unsigned char *copy = malloc(n_bytes ? n_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, b->data, n_bytes);
    dpi_gguf *gguf = NULL;
    dpi_status status = dpi_gguf_open_buffer(copy, n_bytes, &gguf, ERR);
    assert_true((status == DPI_STATUS_OK) == (gguf != NULL));
    dpi_gguf_close(gguf);
    free(copy);
    return status;
}

static void check(gguf_build *b, dpi_status wanted, uint64_t offset, const char *part) {
    dpi_status status = open_copy(b, b->n_bytes);
    if (wanted == DPI_STATUS_OK)
        assert_ok(status);
    else {
        assert_status(status, wanted, part);
        assert_ptr_equal(strstr(ERR->message, "buffer: "), ERR->message);
        assert_null(strstr(ERR->message + 1, "buffer: "));
        if (offset != ANY_OFFSET)
            assert_int_equal(ERR->offset, offset);
    }
    build_free(b);
}

/* The file b of these statements, which may set the offset `at`, must be refused with this status,
 * at this offset, with `part` in the message; or accepted. */
#define REFUSED(status, offset, part, ...)                                                         \
    do {                                                                                           \
        gguf_build b;                                                                              \
        size_t at = 0;                                                                             \
        build_begin(&b);                                                                           \
        __VA_ARGS__;                                                                               \
        check(&b, DPI_STATUS_##status, at + (offset), part);                                       \
    } while (0)
#define ACCEPTED(...) REFUSED(OK, 0, NULL, __VA_ARGS__)

TEST(refuses_bad_magic_and_versions) {
    static const struct {
        const char *magic;
        uint32_t version;
        dpi_status status;
        uint64_t offset;
        const char *part;
    } cases[] = {
        {"Anna", 3, DPI_STATUS_FORMAT, 0, "is no GGUF file: it does not begin with \"GGUF\""},
        {"\177ELF", 3, DPI_STATUS_FORMAT, 0, "does not begin with \"GGUF\""},
        {"tjgg", 3, DPI_STATUS_FORMAT, 0, "is a file of llama.cpp before there was GGUF, must be"},
        {"algg", 3, DPI_STATUS_FORMAT, 0, "of llama.cpp before there was GGUF"},
        {"PK\3\4", 3, DPI_STATUS_FORMAT, 0, "of PyTorch, or another ZIP archive, must be a GGUF"},
        {"\200\2\212\12", 3, DPI_STATUS_FORMAT, 0, "is a file of PyTorch, must be a GGUF file"},
        {"GGUF", 0, DPI_STATUS_FORMAT, 4, "version 0 is not supported"},
        {"GGUF", 1, DPI_STATUS_UNSUPPORTED, 4, "GGUF version 1 is not supported, only 2 and 3"},
        {"GGUF", 2, DPI_STATUS_OK, 0, NULL},
        {"GGUF", 4, DPI_STATUS_UNSUPPORTED, 4, "GGUF version 4 is not supported"},
        {"GGUF", 0x03000000, DPI_STATUS_UNSUPPORTED, 4, "version is 0x03000000: this is a big-end"},
        {"GGUF", 0x02000000, DPI_STATUS_UNSUPPORTED, 4, "big-endian"},
        {"FUGG", 0x03000000, DPI_STATUS_UNSUPPORTED, 4, "big-endian"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gguf_build b;
        build_begin(&b);
        build_poke(&b, 0, cases[i].magic, 4);
        build_poke_u32(&b, BUILD_VERSION, cases[i].version);
        check(&b, cases[i].status, cases[i].offset, cases[i].part);
        if (i == 0) /* this and no byte of the file: by mistake it may be one of records */
            assert_string_equal(ERR->message,
                                "buffer: is no GGUF file: it does not begin with \"GGUF\"");
    }
}

TEST(refuses_safetensors) {
    gguf_build b;
    build_begin(&b);
    b.n_bytes = 0;
    build_put_u64(&b, 2);
    build_put(&b, "{}", 2);
    check(&b, DPI_STATUS_FORMAT, 0,
          "is a file of safetensors, must be a GGUF file. llama.cpp makes one of a folder of "
          "Hugging Face: python convert_hf_to_gguf.py FOLDER --outfile model.gguf");
}

TEST(refuses_counts_beyond_the_file) {
    static const uint64_t counts[] = {1, 1000000000, (uint64_t)1 << 61, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        REFUSED(FORMAT, BUILD_N_KV, "the number of metadata keys is ",
                build_poke_u64(&b, BUILD_N_KV, counts[i]));
        REFUSED(FORMAT, BUILD_N_TENSORS, "the number of tensors is ",
                build_poke_u64(&b, BUILD_N_TENSORS, counts[i]));
    }
    REFUSED(FORMAT, BUILD_N_KV, "is 8, the 100 bytes left hold at most 7", build_put(&b, NULL, 100),
            build_poke_u64(&b, BUILD_N_KV, 8));
    REFUSED(FORMAT, 1, "a metadata key is empty", at = build_u8(&b, "a", 1),
            build_poke_u64(&b, BUILD_N_KV, 2),
            build_put(&b, NULL, 14)); /* room for a second entry, but zeros are none */
}

TEST(refuses_lengths_beyond_the_file) {
    REFUSED(FORMAT, 8, "a metadata key takes 9223372036854775808 bytes, 11 are",
            at = build_key(&b, "key", 4), build_put_u32(&b, 0),
            build_poke_u64(&b, at, (uint64_t)1 << 63));
    /* a string, one byte too long; then the longest; one inside an array; a tensor's name */
    REFUSED(FORMAT, 8, "key 'name': a string takes 4 bytes, 3 are left",
            at = build_string(&b, "name", "abc"), build_poke_u64(&b, at, 4));
    REFUSED(FORMAT, 8, "key 'name': a string takes 18446744073709551615 bytes",
            at = build_string(&b, "name", "abc"), build_poke_u64(&b, at, UINT64_MAX));
    REFUSED(FORMAT, 8, "key 'words': a string takes 1000 bytes, 14 are left",
            at = build_strings(&b, "words", STRINGS("one", "two"), 2),
            build_poke_u64(&b, at, 1000));
    REFUSED(FORMAT, 8, "a tensor name takes 1048576 bytes",
            at = build_entry(&b, "w", 1, SHAPE(4), F32, 0), build_poke_u64(&b, at, 1u << 20));
    static const uint64_t counts[] = {4, (uint64_t)1 << 62, UINT64_MAX / 4 + 1, UINT64_MAX};
    for (size_t i = 0; i < 4; i++) { /* arrays; 2^62 * 4 would be 0 in 64 bits */
        REFUSED(FORMAT, 0, "key 'list': the array's length is ",
                at = build_array(&b, "list", 6, (float[]){1, 2, 3}, 3, 4) - 8,
                build_poke_u64(&b, at, counts[i]));
        REFUSED(FORMAT, 0, "key 'words': the array's length is ",
                at = build_strings(&b, "words", STRINGS("", "", ""), 3) - 8,
                build_poke_u64(&b, at, counts[i]));
    }
}

TEST(refuses_bad_value_types) {
    static const uint32_t bad[] = {13, 255, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        REFUSED(FORMAT, 0, "key 'key': the value type is ", at = build_u32(&b, "key", 1) - 4,
                build_poke_u32(&b, at, bad[i]));
        REFUSED(FORMAT, 0, "key 'key': the array's item type is ",
                at = build_array(&b, "key", bad[i], "abcdefgh", 1, 8) - 12);
    }
    REFUSED(UNSUPPORTED, 0, "key 'key': arrays of arrays are not supported",
            at = build_array(&b, "key", 9, "abcdefgh", 1, 8) - 12);
    REFUSED(FORMAT, 0, "key 'flag': bool is 2, must be 0 or 1", at = build_u8(&b, "flag", 2),
            build_poke_u32(&b, at - 4, 7));
    REFUSED(FORMAT, 2, "key 'flags': bool is 255, must be 0 or 1",
            at = build_array(&b, "flags", 7, "\1\0\377\1", 4, 1));
}

TEST(refuses_bad_alignment) {
    static const uint32_t bad[] = {0, 1, 4, 24, 33, 1u << 21, 0x80000000u, UINT32_MAX};
    static const char key[] = "general.alignment";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        REFUSED(FORMAT, 0, "must be a power of two in 8..1048576", at = build_u32(&b, key, bad[i]));
    REFUSED(FORMAT, 0, "'general.alignment' is of type u64, must be u32",
            at = build_u64(&b, key, 32));
    REFUSED(FORMAT, 0, "'general.alignment' is of type i32, must be u32",
            at = build_i32(&b, key, 32));
    REFUSED(FORMAT, 0, "'general.alignment' is of type array, must be u32",
            at = build_array(&b, key, 4, (uint32_t[]){32}, 1, 4));
}

TEST(refuses_bad_keys) {
    static const char odd[] = "\33[2J\r\n\200";
    enum { BEFORE_VALUE = 8 + 4, LIST_HEAD = 4 + 8 }; /* key's length and type; an array's own */
    static char key[65537];
    memset(key, 'k', 65536);
    REFUSED(FORMAT, 0, "a metadata key is empty", at = build_key(&b, "", 0), build_put_u32(&b, 0));
    REFUSED(FORMAT, 0, "a metadata key 'a?b' contains a NUL byte",
            at = build_u8(&b, "a-b", 1) - BEFORE_VALUE - 3, build_poke(&b, at + 8 + 1, "", 1));
    REFUSED(FORMAT, 0, "kkk...' has 65536 bytes, at most 65535 are allowed",
            at = build_key(&b, key, 0), build_put_u8(&b, 0));
    ACCEPTED(build_u8(&b, key + 1, 0));
    REFUSED(FORMAT, 0, "key 'twice' occurs twice", build_u8(&b, "twice", 1),
            build_string(&b, "other", "x"),
            at = build_array(&b, "twice", 4, NULL, 2, 4) - LIST_HEAD - BEFORE_VALUE - 5);
    REFUSED(FORMAT, 0, "key 'twice' occurs twice", build_u8(&b, "twice", 1),
            at = build_u8(&b, "twice", 1) - BEFORE_VALUE - 5);
    /* names of a file must not reach a terminal as they are */
    REFUSED(FORMAT, ANY_OFFSET, "key '?[2J\?\?\?' occurs twice", build_u8(&b, odd, 1),
            build_u8(&b, odd, 1));
}

TEST(refuses_bad_tensor_names) {
    char name[65] = {0};
    memset(name, 'n', 64);
    REFUSED(FORMAT, 0, "a tensor name is empty",
            at = build_tensor(&b, "", F32, 1, SHAPE(4), NULL, 16), build_put(&b, NULL, 8));
    REFUSED(FORMAT, 0, "has 64 bytes, at most 63 are allowed",
            at = build_tensor(&b, name, F32, 1, SHAPE(4), NULL, 16));
    ACCEPTED(build_tensor(&b, name + 1, F32, 1, SHAPE(4), NULL, 16), build_end(&b));
    REFUSED(FORMAT, 0, "a tensor name 'a?c' contains a NUL byte",
            at = build_tensor(&b, "abc", F32, 1, SHAPE(4), NULL, 16),
            build_poke(&b, at + 9, "", 1));
    REFUSED(FORMAT, 0, "tensor 'w' occurs twice", build_tensor(&b, "w", F32, 1, SHAPE(4), NULL, 16),
            build_tensor(&b, "v", F32, 1, SHAPE(4), NULL, 16),
            at = build_tensor(&b, "w", F32, 1, SHAPE(4), NULL, 16), build_end(&b));
}

TEST(refuses_bad_dimensions) {
    static const uint32_t counts[] = {0, 5, UINT32_MAX};
    for (size_t i = 0; i < 3; i++)
        REFUSED(FORMAT, 9, "tensor 'w': has ",
                at = build_entry(&b, "w", 4, SHAPE(1, 1, 1, 1), F32, 0),
                build_poke_u32(&b, at + 9, counts[i]));
    for (size_t i = 0; i < 4; i++) {
        int64_t shape[] = {1, 1, 1, 1};
        shape[i] = 0;
        REFUSED(FORMAT, 13 + 8 * i, " is 0, must be 1..2^63-1",
                at = build_entry(&b, "w", 4, shape, F32, 0));
        shape[i] = -1;
        REFUSED(FORMAT, 13 + 8 * i, " is 18446744073709551615, must be 1..",
                at = build_entry(&b, "w", 4, shape, F32, 0));
    }
}

TEST(refuses_overflowing_sizes) {
    static const struct {
        int64_t shape[4];
        uint32_t type;
        uint64_t field; /* offset of the fault in the entry */
        const char *part;
    } cases[] = {
        {{P62, 2, 1, 1}, F32, 21, "tensor 'w': the number of elements overflows"},
        {{(int64_t)1 << 32, (int64_t)1 << 32, 1, 1}, F32, 21, "the number of elements overflows"},
        {{3, 3, INT64_MAX, 1}, F32, 29, "the number of elements overflows"},
        {{(int64_t)1 << 40, 1 << 20, 1, 16}, F32, 37, "the number of elements overflows"},
        {{P62, 1, 1, 1}, F32, 45, "tensor 'w': the size in bytes overflows 2^64"},
        {{INT64_MAX, 1, 1, 1}, F32, 45, "the size in bytes overflows 2^64"},
        /* 2^62 weights are 2^62 / 32 * 34 bytes: no overflow, but no such file. */
        {{P62, 1, 1, 1}, Q8_0, 0, "4899916394579099648 bytes at data offset 0 go past"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        REFUSED(FORMAT, cases[i].field, cases[i].part,
                at = build_entry(&b, "w", 4, cases[i].shape, cases[i].type, 0),
                build_put(&b, NULL, 128));
}

TEST(refuses_bad_tensor_types) {
    static const struct {
        uint32_t type;
        const char *part;
    } unknown[] = {
        {UINT32_MAX, "tensor 'w': type id -1 is unknown or was removed"},
        {0x80000000u, "type id -2147483648 is unknown"},
        {4, "type id 4 is unknown or was removed"},
        {5, "type id 5 is"},
        {31, "type id 31 is"},
        {38, "type id 38 is"},
        {4711, "type id 4711 is"},
    };
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        REFUSED(FORMAT, 21, unknown[i].part,
                at = build_tensor(&b, "w", unknown[i].type, 1, SHAPE(32), NULL, 128),
                build_end(&b));
    REFUSED(UNSUPPORTED, 21, "tensor 'w': type IQ1_S is not supported",
            at = build_tensor(&b, "w", 19, 1, SHAPE(32), NULL, 128), build_end(&b));
    REFUSED(UNSUPPORTED, 21, "type I32 is not supported",
            at = build_tensor(&b, "w", 26, 1, SHAPE(32), NULL, 128), build_end(&b));
    /* 48 weights divide into blocks only if rows may be cut */
    REFUSED(FORMAT, 29, "tensor 'w': has rows of 48 elements, type Q8_0 needs a multiple of 32",
            at = build_tensor(&b, "w", Q8_0, 2, SHAPE(48, 2), NULL, 102), build_end(&b));
}

/* Two tensors of 16 floats; the second at `offset`, data of n_bytes. Returns the second's entry. */
static size_t build_pair(gguf_build *b, uint64_t offset, size_t n_bytes) {
    build_entry(b, "a", 1, SHAPE(16), F32, 64);
    size_t at = build_entry(b, "b", 2, SHAPE(8, 2), F32, offset);
    build_put(b, NULL, -b->n_bytes & 31);
    build_put(b, NULL, n_bytes);
    return at;
}

TEST(refuses_bad_offsets) {
    static const uint64_t misaligned[] = {1, 8, 16, 31, UINT64_MAX}, overlapping[] = {32, 64, 96};
    static const uint64_t beyond[] = {224, 256, 288, (uint64_t)1 << 62, (uint64_t)0 - 32};
    for (size_t i = 0; i < 5; i++)
        REFUSED(FORMAT, 33, "must be a multiple of 32", at = build_pair(&b, misaligned[i], 256));
    for (size_t i = 0; i < 3; i++)
        REFUSED(FORMAT, ANY_OFFSET, "overlap", build_pair(&b, overlapping[i], 256));
    for (size_t i = 0; i < 5; i++)
        REFUSED(FORMAT, 0, "go past the end, the file has 256 bytes of data",
                at = build_pair(&b, beyond[i], 256));
    REFUSED(FORMAT, 0, "tensor 'b': 64 bytes at data offset 128 go past the end",
            at = build_pair(&b, 128, 191)); /* one byte is missing */
    ACCEPTED(build_pair(&b, 128, 192));
    ACCEPTED(build_pair(&b, 0, 128)); /* any order, gaps allowed */
    /* 32 + (2^64 - 4) would be 28 in 64 bits */
    REFUSED(FORMAT, 0, "18446744073709551612 bytes at data offset 32 go past",
            at = build_entry(&b, "a", 1, SHAPE(P62 - 1), F32, 32), build_put(&b, NULL, 128));
    /* the padding before the data is not there */
    REFUSED(FORMAT, 0, "the file has 0 bytes of data",
            at = build_entry(&b, "a", 1, SHAPE(16), F32, 0));
}

TEST(refuses_split_files) {
    REFUSED(UNSUPPORTED, 0, "split.count is 2, a part of a split model: split files",
            build_u16(&b, "split.no", 0), at = build_u16(&b, "split.count", 2));
    REFUSED(FORMAT, 0, "key 'split.no' is 1, must be 0..0", at = build_u16(&b, "split.no", 1),
            build_u16(&b, "split.count", 1));
    REFUSED(FORMAT, 0, "key 'split.count' is of type string, must be an integer",
            at = build_string(&b, "split.count", "2"));
    REFUSED(FORMAT, 0, "key 'split.count' is -1, must be 0..65535",
            at = build_i32(&b, "split.count", -1));
    ACCEPTED(build_u16(&b, "split.no", 0), build_u16(&b, "split.count", 1));
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
    build_strings(b, "words", STRINGS("one", "", "three"), 3);
    build_array(b, "scores", 6, (float[]){1, 2, 3}, 3, 4);
    build_tensor(b, "a", F32, 2, SHAPE(4, 3), NULL, 48);
    build_tensor(b, "b", Q8_0, 3, SHAPE(32, 1, 2), NULL, 68);
    build_end(b);
}

TEST(refuses_every_truncation) {
    gguf_build b;
    build_sample(&b);
    for (size_t n = 0; n < b.n_bytes; n++) {
        assert_int_equal(open_copy(&b, n), DPI_STATUS_FORMAT);
        assert_true(ERR->offset <= n);
    }
    check(&b, DPI_STATUS_OK, 0, NULL);
}

TEST(survives_every_flipped_byte) {
    static const unsigned char masks[] = {0x01, 0x02, 0x08, 0x20, 0x40, 0x80, 0x7f, 0xff};
    gguf_build b;
    build_sample(&b);
    size_t n_refused = 0;
    for (size_t i = 0; i < (b.n_bytes - b.n_body) * sizeof masks; i++) {
        unsigned char *byte = &b.data[i / sizeof masks], mask = masks[i % sizeof masks];
        *byte ^= mask;
        dpi_status status = open_copy(&b, b.n_bytes);
        assert_true(status == DPI_STATUS_OK || status == DPI_STATUS_FORMAT ||
                    status == DPI_STATUS_UNSUPPORTED);
        n_refused += status != DPI_STATUS_OK;
        *byte ^= mask;
    }
    assert_true(n_refused > 1000);
    check(&b, DPI_STATUS_OK, 0, NULL);
}
