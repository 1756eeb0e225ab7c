/* Records from folders, JSON lines, CSV and memory: what each is, null in its place, and what is a
 * failure. */
#define ZLIB_CONST
#include <jansson.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "dpinfer/memory.h"
#include "dpinfer/records.h"
#include "tests/support/support.h"

static char folder[256];

static void put(const char *name, const char *text) {
    write_file(path_in(folder, name), text, strlen(text));
}

static dpi_records *open_records(const char *name) {
    dpi_records *records = NULL;
    dpi_error err;
    assert_ok(dpi_records_open(path_in(folder, name), NULL, &records, &err), &err);
    return records;
}

/* The records are these, "(null)" for a null one; ended by NULL. Closes them. */
static void expect(dpi_records *records, const char *const *wanted) {
    size_t n = 0;
    for (; wanted[n]; n++) {
        char *text;
        size_t n_bytes;
        dpi_error err;
        assert_true(n < dpi_records_count(records));
        assert_ok(dpi_records_read(records, n, &text, &n_bytes, &err), &err);
        assert_string_equal(text ? text : "(null)", wanted[n]);
        assert_int_equal(n_bytes, text ? strlen(text) : 0);
        dpi_private_free(text);
    }
    assert_int_equal(dpi_records_count(records), n);
    dpi_records_close(records);
}
#define EXPECT(records, ...) expect((records), (const char *const[]){__VA_ARGS__, NULL})

static void expect_csv(const char *content, const char *const *wanted) {
    put("x.csv", content);
    dpi_records *records = open_records("x.csv");
    assert_int_equal(dpi_records_kind(records), DPI_RECORD_ROW);
    expect(records, wanted);
}
#define EXPECT_CSV(content, ...) expect_csv(content, (const char *const[]){__VA_ARGS__, NULL})

static void refuse(const char *name, dpi_status status, const char *part) {
    dpi_records *records = NULL;
    dpi_error err;
    assert_error(dpi_records_open(path_in(folder, name), NULL, &records, &err), status, &err, part);
}

static void test_csv(void **state) {
    (void)state;
    EXPECT_CSV("text\na\nb\n", "a", "b");
    EXPECT_CSV("text\na\nb", "a", "b");
    EXPECT_CSV("\xef\xbb\xbfid,text\r\n1,\"a, \"\"b\"\"\nc\"\r\n2, d \r\n", "a, \"b\"\nc", " d ");
    EXPECT_CSV("text\r1\r2\r", "1", "2");
    EXPECT_CSV("id,text\n1,a\n\n2,b\n3\n4,\n5, \n", "a", "(null)", "b", "(null)", "(null)",
               "(null)");
    EXPECT_CSV("text,text\n1,2\n", "1");
    put("x.csv", "id,text\n");
    dpi_records *records = open_records("x.csv");
    assert_int_equal(dpi_records_count(records), 0);
    dpi_records_close(records);
    put("x.csv", "");
    refuse("x.csv", DPI_STATUS_FORMAT, "no column 'text'");
    put("x.csv", "te\"xt\na\n");
    refuse("x.csv", DPI_STATUS_FORMAT, "is not RFC 4180");
}

/* A quote out of place makes its row null, and no other. */
static void test_csv_stray_quotes(void **state) {
    (void)state;
    EXPECT_CSV("id,text\n1,a\n2,he said \"no\"\n3,c\n", "a", "(null)", "c");
    EXPECT_CSV("id,text\n1,\"a\" b\r\n2,b\r\n3,\"c\"\"\"\r\n", "(null)", "b", "c\"");
    EXPECT_CSV("id,text\n1,a\n2,x\"y", "a", "(null)");
    EXPECT_CSV("text\na\"\n\nb\"\nc\n", "(null)", "(null)", "(null)", "c");
    EXPECT_CSV("text,id\ngood,b\"ad\nnext,1\n", "(null)", "next");
    /* One that is never closed, or closed by what is another row's quote. */
    EXPECT_CSV("text\na\n\"open\n", "a", "(null)");
    EXPECT_CSV("text\n\"open\nb\n\"c\"\n", "(null)", "b", "c");
    EXPECT_CSV("id,text\r\n1,a\r\n2,\"open\r\n3,c\r\n4,\"d \"\"e\"\"\"", "a", "(null)", "c",
               "d \"e\"");
    EXPECT_CSV("text\n\"two\nlines\"\n\"open", "two\nlines", "(null)");
}

static double seconds_to_open(const char *name) {
    const clock_t begin = clock(); /* the processor's time: the machine may be busy */
    dpi_records_close(open_records(name));
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* A field of 8 MB, and a quote out of place in each of 200,000 rows: where the time grows with the
 * square these take minutes. */
static void test_csv_linear(void **state) {
    (void)state;
    enum { BYTES = 8 << 20, ROWS = 200000 };
    char *text = malloc(BYTES + 16);
    assert_non_null(text);
    memcpy(text, "text\n", 5);
    memset(text + 5, 'x', BYTES);
    write_file(path_in(folder, "long.csv"), text, BYTES + 5);
    assert_true(seconds_to_open("long.csv") < 10);
    size_t n = 5;
    for (int i = 0; i < ROWS; i++, n += 10)
        memcpy(text + n, "a \"b\" c d\n", 10);
    write_file(path_in(folder, "quotes.csv"), text, n);
    assert_true(seconds_to_open("quotes.csv") < 10);
    for (size_t i = 5; i + 10 <= n; i += 10)
        memcpy(text + i, "\"open \"\"\n", 10);
    write_file(path_in(folder, "open.csv"), text, n);
    assert_true(seconds_to_open("open.csv") < 10);
    free(text);
}

static void test_jsonl(void **state) {
    (void)state;
    put("x.jsonl", "{\"text\": \"a\"}\n\n{\"text\": 1}\n[1]\nno\n"
                   "{\"x\": 1, \"text\": \"\\u00e9\"}\n{\"text\": \" \\n\"}\n{\"text\": \"end\"}");
    dpi_records *records = open_records("x.jsonl");
    assert_int_equal(dpi_records_kind(records), DPI_RECORD_LINE);
    EXPECT(records, "a", "(null)", "(null)", "(null)", "(null)", "\xc3\xa9", "(null)", "end");
    put("x.jsonl", "{\"body\": \"b\"}\n");
    dpi_records_options o;
    dpi_error err;
    dpi_records_options_init(&o);
    o.text_field = "body";
    assert_ok(dpi_records_open(path_in(folder, "x.jsonl"), &o, &records, &err), &err);
    EXPECT(records, "b");
    put("x.jsonl", "");
    records = open_records("x.jsonl");
    assert_int_equal(dpi_records_count(records), 0);
    dpi_records_close(records);
}

static void test_folder(void **state) {
    (void)state;
    assert_int_equal(mkdir(path_in(folder, "d"), 0700), 0);
    put("d/b.txt", "two\r\n");
    put("d/a.TXT", "\xef\xbb\xbfone\n\n");
    put("d/c.txt", " \t\n");
    put("d/.h.txt", "hidden");
    put("d/e.md", "other");
    assert_int_equal(mkfifo(path_in(folder, "d/f.txt"), 0600), 0);
    assert_int_equal(symlink("nowhere", path_in(folder, "d/d.txt")), 0);
    dpi_records *records = open_records("d");
    assert_int_equal(dpi_records_kind(records), DPI_RECORD_FILE);
    EXPECT(records, "one\n", "two", "(null)", "(null)");
    assert_int_equal(mkfifo(path_in(folder, "f.jsonl"), 0600), 0);
    refuse("f.jsonl", DPI_STATUS_FORMAT, "not a regular file"); /* and does not wait for a writer */
    refuse("none.csv", DPI_STATUS_IO, "cannot open the records");
    put("x.txt", "a");
    refuse("x.txt", DPI_STATUS_FORMAT, "is not a folder of .txt files");
}

/* ---- Compressed ------------------------------------------------------------------------------ */

/* A member of a gzip file, behind what is in `to` [n]; the new n. */
static size_t pack(unsigned char *to, size_t room, size_t n, const char *text, size_t n_bytes) {
    z_stream z = {.next_in = (const unsigned char *)text, .avail_in = (uInt)n_bytes,
                  .next_out = to + n, .avail_out = (uInt)(room - n)};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&z), Z_OK);
    return room - z.avail_out;
}

static size_t put_packed(const char *name, const char *text) {
    unsigned char packed[1024];
    const size_t n = pack(packed, sizeof packed, 0, text, strlen(text));
    write_file(path_in(folder, name), packed, n);
    return n;
}

/* What gzip(1) takes: several members, and zero bytes behind them. */
static void test_packed(void **state) {
    (void)state;
    unsigned char packed[1024];
    put_packed("p.csv.gz", "id,text\n1,a\n2,\"b\nc\"\n");
    dpi_records *records = open_records("p.csv.gz");
    assert_int_equal(dpi_records_kind(records), DPI_RECORD_ROW);
    EXPECT(records, "a", "b\nc");
    size_t n = pack(packed, sizeof packed, 0, "{\"text\": \"a\"}\n{\"te", 18);
    n = pack(packed, sizeof packed, n, "xt\": \"b\"}\n", 10);
    memset(packed + n, 0, 100);
    write_file(path_in(folder, "p.JSONL.GZ"), packed, n + 100);
    records = open_records("p.JSONL.GZ");
    assert_int_equal(dpi_records_kind(records), DPI_RECORD_LINE);
    EXPECT(records, "a", "b");
    put_packed("p.jsonl.gz", "");
    records = open_records("p.jsonl.gz");
    assert_int_equal(dpi_records_count(records), 0);
    dpi_records_close(records);
    put("p.gz", "x");
    refuse("p.gz", DPI_STATUS_FORMAT, "with .gz behind its name");
}

/* Every cut, every changed byte of the checksums, and bytes that are no member. */
static void test_packed_damaged(void **state) {
    (void)state;
    unsigned char packed[1024];
    const char text[] = "text\none\ntwo\n";
    const size_t n = pack(packed, sizeof packed - 8, 0, text, strlen(text));
    for (size_t cut = 0; cut < n; cut++) {
        write_file(path_in(folder, "cut.csv.gz"), packed, cut);
        refuse("cut.csv.gz", DPI_STATUS_FORMAT, "cut short");
    }
    for (size_t i = n - 8; i < n; i++) {
        packed[i] ^= 1;
        write_file(path_in(folder, "sum.csv.gz"), packed, n);
        refuse("sum.csv.gz", DPI_STATUS_FORMAT, "damaged");
        packed[i] ^= 1;
    }
    memcpy(packed + n, "\0\0more", 6);
    write_file(path_in(folder, "more.csv.gz"), packed, n + 6);
    refuse("more.csv.gz", DPI_STATUS_FORMAT, "damaged");
    put("plain.csv.gz", text);
    refuse("plain.csv.gz", DPI_STATUS_FORMAT, "no gzip file");
}

/* 80 MB in 80 kB: as much as is allowed, and not a byte more. */
static void test_packed_large(void **state) {
    (void)state;
    enum { BYTES = 80000000, ROOM = 1 << 20 };
    char *text = malloc(BYTES);
    unsigned char *packed = malloc(ROOM);
    struct rlimit old, small;
    dpi_records_options o;
    dpi_records *records = NULL;
    dpi_error err;
    assert_true(text && packed);
    memset(text, 'x', BYTES);
    memcpy(text, "text\n", 5);
    const size_t n = pack(packed, ROOM, 0, text, BYTES);
    assert_true(n < 100000);
    write_file(path_in(folder, "large.csv.gz"), packed, n);
    assert_int_equal(mkdir(path_in(folder, "large"), 0700), 0);
    write_file(path_in(folder, "large/b.txt.gz"), packed, n); /* more than a record may hold */
    put_packed("large/a.txt.gz", "one\n");
    put("large/c.txt.gz", "no gzip file");
    put("large/d.txt", "two\n");
    free(text);
    free(packed);
    EXPECT(open_records("large"), "one", "(null)", "(null)", "two");
    dpi_records_options_init(&o);
    o.max_expanded = BYTES;
    assert_ok(dpi_records_open(path_in(folder, "large.csv.gz"), &o, &records, &err), &err);
    assert_int_equal(dpi_records_count(records), 1);
    dpi_records_close(records);
    records = NULL;
    o.max_expanded = BYTES - 1;
    assert_int_equal(getrlimit(RLIMIT_DATA, &old), 0);
    small = old;
    small.rlim_cur = 32 << 20; /* less than the file holds: it is counted first */
    assert_int_equal(setrlimit(RLIMIT_DATA, &small), 0);
    const dpi_status status = dpi_records_open(path_in(folder, "large.csv.gz"), &o, &records, &err);
    assert_int_equal(setrlimit(RLIMIT_DATA, &old), 0);
    assert_error(status, DPI_STATUS_FORMAT, &err, "it holds more than 79999999 bytes");
}

static void test_memory(void **state) {
    (void)state;
    const char *texts[] = {"a", NULL, " ", "bc"};
    const size_t n_bytes[] = {1, 0, 1, 2};
    dpi_records *records;
    dpi_error err;
    assert_ok(dpi_records_create(texts, n_bytes, 4, &records, &err), &err);
    assert_int_equal(dpi_records_kind(records), DPI_RECORD_OTHER);
    EXPECT(records, "a", "(null)", "(null)", "bc");
}

/* No file descriptor is left: that is no null record. */
static void test_machine_fails(void **state) {
    (void)state;
    assert_int_equal(mkdir(path_in(folder, "m"), 0700), 0);
    put("m/a.txt", "a");
    dpi_records *records = open_records("m");
    struct rlimit old, none;
    char *text;
    size_t n_bytes;
    dpi_error err;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const dpi_status status = dpi_records_read(records, 0, &text, &n_bytes, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_error(status, DPI_STATUS_SYSTEM, &err, "cannot read a record");
    assert_null(strstr(err.message, "a.txt"));
    EXPECT(records, "a");
}

/* The prompt of a record is that of its text; NULL where there is none. */
static void test_prompts(void **state) {
    (void)state;
    const char *const texts[] = {"a letter", NULL, " ", "another one"};
    const size_t sizes[] = {8, 0, 1, 11};
    dpi_model *model = NULL;
    dpi_prompts *prompts = NULL;
    dpi_prompt_options o;
    dpi_records *records;
    dpi_error err;
    dpi_prompt_options_init(&o);
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, &err), &err);
    assert_ok(dpi_prompts_create(model, &o, 200, &prompts, &err), &err);
    assert_ok(dpi_records_create(texts, sizes, 4, &records, &err), &err);
    for (size_t i = 0; i < 6; i++) {
        int32_t *tokens = NULL, *wanted = NULL;
        size_t n = 1, n_wanted = 0;
        const bool is_null = i != 0 && i != 3;
        assert_ok(dpi_records_prompt(records, i, prompts, &tokens, &n, &err), &err);
        if (!is_null)
            assert_ok(dpi_prompts_encode(prompts, texts[i], sizes[i], &wanted, &n_wanted, &err),
                      &err);
        assert_int_equal(tokens == NULL, is_null);
        assert_int_equal(n, n_wanted);
        assert_true(is_null || memcmp(tokens, wanted, n * sizeof *tokens) == 0);
        dpi_private_free(tokens);
        dpi_private_free(wanted);
    }
    dpi_records_close(records);
    dpi_prompts_free(prompts);
    dpi_model_close(model);
}

/* Each allocation fails once: a record is never null for that, and CSV and lists neither. */
static void test_no_memory(void **state) {
    (void)state;
    put("n.jsonl",
        "{\"text\": \"the text of a record that is longer\", \"more\": [1, {\"x\": 2}]}\n");
    const char *const names[] = {"n.csv", "n.csv.gz"};
    put(names[0], "id,text\n1,\"a field\"\n2,b\n");
    put_packed(names[1], "id,text\n1,\"a field\"\n2,b\n");
    dpi_records *records = open_records("n.jsonl");
    bool failed = true;
    for (int64_t i = 1; failed; i++) {
        char *text = NULL;
        size_t n_bytes;
        dpi_error err;
        fail_allocation(i);
        const dpi_status status = dpi_records_read(records, 0, &text, &n_bytes, &err);
        failed = fail_allocation(0) >= i;
        if (status == DPI_STATUS_OK)
            assert_non_null(text);
        else
            assert_int_equal(status, DPI_STATUS_MEMORY);
        if (status == DPI_STATUS_OK)
            dpi_private_free(text);
    }
    dpi_records_close(records);
    for (int k = 0; k < 2; k++) {
        failed = true;
        for (int64_t i = 1; failed; i++) {
            dpi_error err;
            fail_allocation(i);
            const dpi_status status =
                dpi_records_open(path_in(folder, names[k]), NULL, &records, &err);
            failed = fail_allocation(0) >= i;
            if (status == DPI_STATUS_OK)
                EXPECT(records, "a field", "b");
            else
                assert_int_equal(status, DPI_STATUS_MEMORY);
        }
    }
}

/* ---- Units ----------------------------------------------------------------------------------- */

static dpi_records *open_units(const char *name, const char *content) {
    dpi_records_options o;
    dpi_records *records = NULL;
    dpi_error err;
    dpi_records_options_init(&o);
    o.unit_field = "who";
    put(name, content);
    assert_ok(dpi_records_open(path_in(folder, name), &o, &records, &err), &err);
    assert_int_equal(dpi_records_has_units(records), 1);
    return records;
}

static void expect_unit(const dpi_records *r, size_t unit, const char *wanted_id,
                        const size_t *wanted, size_t n) {
    const char *id;
    size_t n_bytes;
    dpi_records_unit_id(r, unit, &id, &n_bytes);
    assert_int_equal(id != NULL, wanted_id != NULL);
    if (id) {
        assert_int_equal(n_bytes, strlen(wanted_id));
        assert_memory_equal(id, wanted_id, n_bytes);
    }
    for (size_t k = 0; k < n; k++)
        assert_int_equal(dpi_records_of_unit(r, unit, k), wanted[k]);
    assert_true(dpi_records_of_unit(r, unit, n) == SIZE_MAX);
}
#define EXPECT_UNIT(r, unit, id, ...) \
    expect_unit(r, unit, id, (const size_t[]){__VA_ARGS__}, \
                sizeof(size_t[]){__VA_ARGS__} / sizeof(size_t))

/* In the order of their first records; a record without an ID is null, and nobody else's. */
static void test_units(void **state) {
    (void)state;
    dpi_records *r = open_units("u.csv", "text,who\none,b\ntwo,a\nthree,b\nfour,\nfive, \n"
                                         "six\n\"s\"even,a\neight,bb\n,b\n");
    assert_int_equal(dpi_records_unit_count(r), 7);
    EXPECT_UNIT(r, 0, "b", 0, 2, 8);
    EXPECT_UNIT(r, 1, "a", 1);
    for (size_t u = 2; u < 6; u++)
        EXPECT_UNIT(r, u, NULL, u + 1);
    EXPECT_UNIT(r, 6, "bb", 7);
    assert_true(dpi_records_of_unit(r, 7, 0) == SIZE_MAX);
    EXPECT(r, "one", "two", "three", "(null)", "(null)", "(null)", "(null)", "eight", "(null)");

    r = open_units("u.jsonl",
                   "{\"text\":\"x\",\"who\":12}\n{\"text\":\"y\",\"who\":\"12\"}\n"
                   "{\"text\":\"z\",\"who\":1.5}\nnothing\n{\"text\":\"v\",\"who\":3}\n");
    assert_int_equal(dpi_records_unit_count(r), 4);
    EXPECT_UNIT(r, 0, "12", 0, 1);
    EXPECT_UNIT(r, 1, NULL, 2);
    EXPECT_UNIT(r, 2, NULL, 3);
    EXPECT_UNIT(r, 3, "3", 4);
    EXPECT(r, "x", "y", "(null)", "(null)", "v");

    r = open_records("u.csv"); /* without the field each is its own */
    assert_int_equal(dpi_records_has_units(r), 0);
    assert_int_equal(dpi_records_unit_count(r), 9);
    EXPECT_UNIT(r, 4, NULL, 4);
    dpi_records_close(r);
}

static void test_units_refused(void **state) {
    (void)state;
    dpi_records_options o;
    dpi_records *records = NULL;
    dpi_error err;
    dpi_records_options_init(&o);
    o.unit_field = "nobody";
    put("u.csv", "text,who\none,b\n");
    assert_error(dpi_records_open(path_in(folder, "u.csv"), &o, &records, &err), DPI_STATUS_FORMAT,
                 &err, "no column 'nobody' in the header row (unit_field)");
    assert_int_equal(mkdir(path_in(folder, "units"), 0700), 0);
    assert_error(dpi_records_open(path_in(folder, "units"), &o, &records, &err), DPI_STATUS_ARG,
                 &err, "files of a folder have no fields");
}

static void test_delimiter_and_encoding(void **state) {
    (void)state;
    dpi_records_options o;
    dpi_records *records = NULL;
    dpi_error err;
    put("s.csv", "who;text\nb;one, two\n");
    refuse("s.csv", DPI_STATUS_FORMAT, "set apart by ';' (delimiter)");
    dpi_records_options_init(&o);
    o.delimiter = ';';
    assert_ok(dpi_records_open(path_in(folder, "s.csv"), &o, &records, &err), &err);
    EXPECT(records, "one, two");
    o.delimiter = '"';
    assert_error(dpi_records_open(path_in(folder, "s.csv"), &o, &records, &err), DPI_STATUS_ARG,
                 &err, "delimiter");
    dpi_records_options_init(&o);
    o.latin1 = 1;
    put("l.csv", "text\nK\xf6ln \x7f\x80\xff\n");
    assert_ok(dpi_records_open(path_in(folder, "l.csv"), &o, &records, &err), &err);
    EXPECT(records, "K\xc3\xb6ln \x7f\xc2\x80\xc3\xbf");
    assert_int_equal(mkdir(path_in(folder, "latin"), 0700), 0);
    put("latin/a.txt", "caf\xe9\n");
    assert_ok(dpi_records_open(path_in(folder, "latin"), &o, &records, &err), &err);
    EXPECT(records, "caf\xc3\xa9");
}

static int setup(void **state) {
    (void)state;
    json_set_alloc_funcs(dpi_private_malloc, dpi_private_free);
    make_dir(folder, sizeof folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    remove_dir(folder);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),        cmocka_unit_test(test_csv_stray_quotes),
        cmocka_unit_test(test_csv_linear), cmocka_unit_test(test_jsonl),
        cmocka_unit_test(test_folder),     cmocka_unit_test(test_memory),
        cmocka_unit_test(test_packed),     cmocka_unit_test(test_packed_damaged),
        cmocka_unit_test(test_packed_large), cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_machine_fails), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_units),      cmocka_unit_test(test_units_refused),
        cmocka_unit_test(test_delimiter_and_encoding),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
