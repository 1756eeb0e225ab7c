/* Records from folders, JSON lines, CSV and memory: what each is, null in its place, and what is a
 * failure. */
#define ZLIB_CONST
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "dpinfer/memory.h"
#include "dpinfer/records.h"
#include "tests/pipeline/records_of.h"

static char folder[256];
static dpi_records_options defaults;

static void put(const char *name, const char *text) {
    write_file(path_in(folder, name), text, strlen(text));
}

static void put_folder(const char *name) {
    assert_int_equal(mkdir(path_in(folder, name), 0700), 0);
}

/* The bytes of a file give the records that the file gives. */
static void expect_from_memory(const char *name, const dpi_records_options *o,
                               const dpi_records *records) {
    dpi_records *same = NULL;
    size_t n_file, n[2], n_all[2], n_used[2];
    char *bytes = read_file(path_in(folder, name), &n_file), *text[2];
    assert_ok(dpi_records_open_buffer(bytes, n_file, dpi_records_kind(records), o, &same, ERR));
    memset(bytes, 'x', n_file); /* they were copied */
    free(bytes);
    assert_int_equal(dpi_records_count(same), dpi_records_count(records));
    for (size_t i = 0; i < dpi_records_count(records); i++) {
        assert_ok(dpi_records_read(records, i, &text[0], &n[0], ERR));
        assert_ok(dpi_records_read(same, i, &text[1], &n[1], ERR));
        assert_int_equal(n[0], n[1]);
        assert_true(!text[0] == !text[1] && (!text[0] || memcmp(text[0], text[1], n[0]) == 0));
        dpi_private_free(text[0]);
        dpi_private_free(text[1]);
    }
    assert_int_equal(dpi_records_unit_count(same), dpi_records_unit_count(records));
    for (size_t u = 0; u < dpi_records_unit_count(records); u++) {
        dpi_records_unit_size(records, u, &n_all[0], &n_used[0]);
        dpi_records_unit_size(same, u, &n_all[1], &n_used[1]);
        assert_true(n_all[0] == n_all[1] && n_used[0] == n_used[1]);
    }
    dpi_records_close(same);
}

static dpi_records *open_records(const char *name, dpi_records_options o, int32_t kind) {
    dpi_records *records = NULL;
    assert_ok(dpi_records_open(path_in(folder, name), &o, &records, ERR));
    assert_int_equal(dpi_records_kind(records), kind);
    if (kind != DPI_RECORD_FILE && !strstr(name, ".gz") && !strstr(name, ".GZ"))
        expect_from_memory(name, &o, records);
    return records;
}

/* The records are these, joined by '|'; "-" is a null one. Closes them. */
static void expect(dpi_records *records, const char *wanted) {
    char joined[512], *at = joined;
    *at = '\0';
    for (size_t i = 0; i < dpi_records_count(records); i++) {
        char *text;
        size_t n_bytes;
        assert_ok(dpi_records_read(records, i, &text, &n_bytes, ERR));
        assert_int_equal(n_bytes, text ? strlen(text) : 0);
        at += sprintf(at, "%s%s", i > 0 ? "|" : "", text ? text : "-");
        dpi_private_free(text);
    }
    assert_string_equal(joined, wanted);
    dpi_records_close(records);
}

static void refuse(const char *name, dpi_records_options o, dpi_status status, const char *part) {
    dpi_records *records = NULL;
    assert_status(dpi_records_open(path_in(folder, name), &o, &records, ERR), status, part);
}

TEST(test_csv) {
    static const struct {
        const char *content, *wanted;
    } files[] = {
        {"text\na\nb\n", "a|b"},
        {"text\na\nb", "a|b"},
        {"\xef\xbb\xbfid,text\r\n1,\"a, \"\"b\"\"\nc\"\r\n2, d \r\n", "a, \"b\"\nc| d "},
        {"text\r1\r2\r", "1|2"},
        {"id,text\n1,a\n\n2,b\n3\n4,\n5, \n", "a|-|b|-|-|-"},
        {"id,text\n", ""},
        /* A quote out of place makes its row null, and no other. */
        {"id,text\n1,a\n2,he said \"no\"\n3,c\n", "a|-|c"},
        {"id,text\n1,\"a\" b\r\n2,b\r\n3,\"c\"\"\"\r\n", "-|b|c\""},
        {"id,text\n1,a\n2,x\"y", "a|-"},
        {"text\na\"\n\nb\"\nc\n", "-|-|-|c"},
        {"text,id\ngood,b\"ad\nnext,1\n", "-|next"},
        /* One that is never closed, or closed by what is another row's quote. */
        {"text\na\n\"open\n", "a|-"},
        {"text\n\"open\nb\n\"c\"\n", "-|b|c"},
        {"id,text\r\n1,a\r\n2,\"open\r\n3,c\r\n4,\"d \"\"e\"\"\"", "a|-|c|d \"e\""},
        {"text\n\"two\nlines\"\n\"open", "two\nlines|-"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        put("x.csv", files[i].content);
        expect(open_records("x.csv", defaults, DPI_RECORD_ROW), files[i].wanted);
    }
    put("x.csv", "");
    refuse("x.csv", defaults, DPI_STATUS_FORMAT, "x.csv is empty: a .csv begins with a header row");
    put("x.csv", "body\n1\n");
    refuse("x.csv", defaults, DPI_STATUS_FORMAT, "no column 'text'");
    put("x.csv", "text,text\n1,2\n");
    refuse("x.csv", defaults, DPI_STATUS_FORMAT, "the column 'text' more than once (text_field)");
    put("x.csv", "te\"xt\na\n");
    refuse("x.csv", defaults, DPI_STATUS_FORMAT, "is not RFC 4180");
}

/* A field of 1 MB is not copied for every 128 bytes. And a quote is out of place in each of 2
 * million rows: if each of them were looked for to the end of the file, this would take hours, and
 * ctest ends it. */
TEST(test_csv_linear) {
    enum { BYTES = 1 << 20, ROWS = 2000000 };
    static const char *const rows[] = {"a \"b\" c d\n", "\"open \"\"\n"};
    char *text = malloc(10 * ROWS + 5);
    assert_non_null(text);
    memcpy(text, "text\n", 5);
    memset(text + 5, 'x', BYTES);
    write_file(path_in(folder, "long.csv"), text, BYTES + 5);
    fail_allocation(0);
    dpi_records_close(open_records("long.csv", defaults, DPI_RECORD_ROW));
    assert_in_range(fail_allocation(0), 1, 100);
    for (int k = 0; k < 2; k++) {
        const size_t n = strlen(rows[k]);
        for (size_t i = 0; i < ROWS; i++)
            memcpy(text + 5 + n * i, rows[k], n);
        write_file(path_in(folder, "quotes.csv"), text, 5 + n * ROWS);
        dpi_records *records = open_records("quotes.csv", defaults, DPI_RECORD_ROW);
        assert_int_equal(dpi_records_count(records), ROWS);
        dpi_records_close(records);
    }
    free(text);
}

TEST(test_jsonl) {
    dpi_records_options o = defaults;
    put("x.jsonl", "{\"text\": \"a\"}\n\n{\"text\": 1}\n[1]\nno\n"
                   "{\"x\": 1, \"text\": \"\\u00e9\"}\n{\"text\": \" \\n\"}\n{\"text\": \"end\"}");
    expect(open_records("x.jsonl", o, DPI_RECORD_LINE), "a|-|-|-|-|\xc3\xa9|-|end");
    put("x.jsonl", "{\"body\": \"b\"}\n");
    o.text_field = "body";
    expect(open_records("x.jsonl", o, DPI_RECORD_LINE), "b");
    put("x.jsonl", "");
    expect(open_records("x.jsonl", defaults, DPI_RECORD_LINE), "");
    /* What stands in fields that are not wanted does not matter. */
    put("x.jsonl", "{\"id\": 18446744073709551615, \"text\": \"a\"}\n"
                   "{\"text\": \"b\", \"score\": 1e400}\n{\"score\": NaN, \"text\": \"c\"}\n"
                   "{\"other\": \"\\ud800 \xff\", \"text\": \"d\"}\n"
                   "{\"deep\": [[[{}]]], \"text\": \"e\", \"text\": \"f\"}\n"
                   "{\"text\": \"\\ud800\"}\n{\"text\": \"\xff\"}\n{\"text\": \"z\",}\n");
    expect(open_records("x.jsonl", defaults, DPI_RECORD_LINE), "a|b|c|d|f|-|-|-");
}

TEST(test_folder) {
    put_folder("d");
    put("d/b.txt", "two\r\n");
    put("d/a.TXT", "\xef\xbb\xbfone\n\n");
    put("d/c.txt", " \t\n");
    put("d/.h.txt", "hidden");
    put("d/e.md", "other");
    assert_int_equal(mkfifo(path_in(folder, "d/f.txt"), 0600), 0);
    assert_int_equal(symlink("nowhere", path_in(folder, "d/d.txt")), 0);
    expect(open_records("d", defaults, DPI_RECORD_FILE), "one\n|two|-|-");
    assert_int_equal(mkfifo(path_in(folder, "f.jsonl"), 0600), 0);
    /* And does not wait for a writer. */
    refuse("f.jsonl", defaults, DPI_STATUS_FORMAT, "not a regular file");
    refuse("none.csv", defaults, DPI_STATUS_IO, "cannot open the records");
    put("x.txt", "a");
    refuse("x.txt", defaults, DPI_STATUS_FORMAT, "is not a folder of .txt files");
}

/* ---- Compressed ------------------------------------------------------------------------------ */

/* A member of a gzip file, behind what is in `to` [n]; the new n. */
static size_t pack(unsigned char *to, size_t room, size_t n, const char *text, size_t n_bytes) {
    z_stream z = {.next_in = (const unsigned char *)text,
                  .avail_in = (uInt)n_bytes,
                  .next_out = to + n,
                  .avail_out = (uInt)(room - n)};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&z), Z_OK);
    return room - z.avail_out;
}

static void put_packed(const char *name, const char *text) {
    unsigned char packed[1024];
    write_file(path_in(folder, name), packed, pack(packed, sizeof packed, 0, text, strlen(text)));
}

/* What gzip(1) takes: several members, and zero bytes behind them. */
TEST(test_packed) {
    unsigned char packed[1024] = {0};
    put_packed("p.csv.gz", "id,text\n1,a\n2,\"b\nc\"\n");
    expect(open_records("p.csv.gz", defaults, DPI_RECORD_ROW), "a|b\nc");
    size_t n = pack(packed, sizeof packed, 0, "{\"text\": \"a\"}\n{\"te", 18);
    n = pack(packed, sizeof packed, n, "xt\": \"b\"}\n", 10);
    write_file(path_in(folder, "p.JSONL.GZ"), packed, n + 100);
    expect(open_records("p.JSONL.GZ", defaults, DPI_RECORD_LINE), "a|b");
    put_packed("p.jsonl.gz", "");
    expect(open_records("p.jsonl.gz", defaults, DPI_RECORD_LINE), "");
    put("p.gz", "x");
    refuse("p.gz", defaults, DPI_STATUS_FORMAT, "with .gz behind its name");
}

/* Every cut, every changed byte of the checksums, and bytes that are no member. */
TEST(test_packed_damaged) {
    unsigned char packed[1024];
    const char text[] = "text\none\ntwo\n";
    const size_t n = pack(packed, sizeof packed - 8, 0, text, strlen(text));
    for (size_t cut = 0; cut < n; cut++) {
        write_file(path_in(folder, "cut.csv.gz"), packed, cut);
        refuse("cut.csv.gz", defaults, DPI_STATUS_FORMAT, "cut short");
    }
    for (size_t i = n - 8; i < n; i++) {
        packed[i] ^= 1;
        write_file(path_in(folder, "sum.csv.gz"), packed, n);
        refuse("sum.csv.gz", defaults, DPI_STATUS_FORMAT, "damaged");
        packed[i] ^= 1;
    }
    memcpy(packed + n, "\0\0more", 6);
    write_file(path_in(folder, "more.csv.gz"), packed, n + 6);
    refuse("more.csv.gz", defaults, DPI_STATUS_FORMAT, "damaged");
    put("plain.csv.gz", text);
    refuse("plain.csv.gz", defaults, DPI_STATUS_FORMAT, "no gzip file");
}

/* Opens them or reads the first where a limit of the process is so low for the time of it. */
static dpi_status with_limit(__rlimit_resource_t which, rlim_t limit, const char *name,
                             const dpi_records_options *o, dpi_records *records) {
    struct rlimit old, low;
    char *text;
    size_t n_bytes;
    assert_int_equal(getrlimit(which, &old), 0);
    low = (struct rlimit){limit, old.rlim_max};
    assert_int_equal(setrlimit(which, &low), 0);
    const dpi_status status = records ? dpi_records_read(records, 0, &text, &n_bytes, ERR)
                                      : dpi_records_open(name, o, &records, ERR);
    assert_int_equal(setrlimit(which, &old), 0);
    return status;
}

/* 80 MB in 80 kB, in members of 1 MB: as much as is allowed, and not a byte more. */
TEST(test_packed_large) {
    enum { MEMBER = 1000000, N_MEMBERS = 80, BYTES = 5 + N_MEMBERS * MEMBER, ROOM = 100000 };
    static unsigned char packed[ROOM];
    char *text = malloc(MEMBER);
    dpi_records_options o = defaults;
    assert_non_null(text);
    memset(text, 'x', MEMBER);
    size_t n = pack(packed, ROOM, 0, "text\n", 5);
    const size_t n_member = pack(packed, ROOM, n, text, MEMBER) - n;
    assert_true(n + N_MEMBERS * n_member < ROOM);
    for (int i = 1; i < N_MEMBERS; i++)
        memcpy(packed + n + (size_t)i * n_member, packed + n, n_member);
    n += N_MEMBERS * n_member;
    write_file(path_in(folder, "large.csv.gz"), packed, n);
    put_folder("large");
    write_file(path_in(folder, "large/b.txt.gz"), packed, n); /* more than a record may hold */
    put_packed("large/a.txt.gz", "one\n");
    put("large/c.txt.gz", "no gzip file");
    put("large/d.txt", "two\n");
    free(text);
    expect(open_records("large", o, DPI_RECORD_FILE), "one|-|-|two");
    o.max_expanded = BYTES;
    dpi_records *records = open_records("large.csv.gz", o, DPI_RECORD_ROW);
    assert_int_equal(dpi_records_count(records), 1);
    dpi_records_close(records);
    o.max_expanded--; /* memory for less than the file holds: it is counted first */
    assert_error(with_limit(RLIMIT_DATA, 32 << 20, path_in(folder, "large.csv.gz"), &o, NULL),
                 FORMAT, "it holds more than 80000004 bytes");
}

/* No file descriptor is left: that is no null record. */
TEST(test_machine_fails) {
    put_folder("m");
    put("m/a.txt", "a");
    dpi_records *records = open_records("m", defaults, DPI_RECORD_FILE);
    assert_error(with_limit(RLIMIT_NOFILE, 3, NULL, NULL, records), SYSTEM, "cannot read a record");
    assert_null(strstr(ERR->message, "a.txt"));
    expect(records, "a");
}

/* Records in memory: the prompt of one is that of its text; NULL where there is none. */
TEST(test_memory_and_prompts) {
    const char *const texts[] = {"a letter", NULL, " ", "another one"};
    dpi_model *model = NULL;
    dpi_prompts *prompts = NULL;
    dpi_prompt_options o;
    dpi_records *records = records_of(texts, 4);
    dpi_prompt_options_init(&o);
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, ERR));
    assert_ok(dpi_prompts_create(model, &o, 200, &prompts, ERR));
    for (size_t i = 0; i < 6; i++) {
        int32_t *tokens = NULL, *wanted = NULL;
        size_t n = 1, n_wanted = 0;
        const bool is_null = i != 0 && i != 3;
        assert_ok(dpi_records_prompt(records, i, prompts, &tokens, &n, ERR));
        if (!is_null)
            assert_ok(
                dpi_prompts_encode(prompts, texts[i], strlen(texts[i]), &wanted, &n_wanted, ERR));
        assert_int_equal(tokens == NULL, is_null);
        assert_int_equal(n, n_wanted);
        assert_true(is_null || memcmp(tokens, wanted, n * sizeof *tokens) == 0);
        dpi_private_free(tokens);
        dpi_private_free(wanted);
    }
    assert_int_equal(dpi_records_kind(records), DPI_RECORD_OTHER);
    expect(records, "a letter|-|-|another one");
    dpi_prompts_free(prompts);
    dpi_model_close(model);
}

/* Each allocation fails once: a record is never null or shorter for that, nor CSV and lists. */
TEST(test_no_memory) {
    static const char csv[] = "id,text\n1,\"a field\"\n2,b\n";
    const char *const names[] = {"n.csv", "n.csv.gz"};
    put("n.jsonl",
        "{\"text\": \"the text of a record \\u00e9 that is longer\", \"more\": [1, {\"x\": 2}]}\n");
    put(names[0], csv);
    put_packed(names[1], csv);
    dpi_records *lines = open_records("n.jsonl", defaults, DPI_RECORD_LINE), *records;
    for (int k = 0; k < 3; k++) {
        dpi_status status = DPI_STATUS_MEMORY;
        bool failed = true;
        for (int64_t i = 1; failed; i++) {
            char *text = NULL;
            size_t n_bytes;
            fail_allocation(i);
            status = k == 2 ? dpi_records_read(lines, 0, &text, &n_bytes, ERR)
                            : dpi_records_open(path_in(folder, names[k]), NULL, &records, ERR);
            failed = fail_allocation(0) >= i;
            if (status != DPI_STATUS_OK)
                assert_error(status, MEMORY, "");
            else if (k == 2)
                assert_string_equal(text, "the text of a record \xc3\xa9 that is longer");
            else
                expect(records, "a field|b");
            dpi_private_free(text);
        }
        assert_ok(status);
    }
    dpi_records_close(lines);
}

/* ---- Units ----------------------------------------------------------------------------------- */

/* All units, each as "its ID: its records; ". */
static void expect_units(const dpi_records *r, const char *wanted) {
    char all[256], *at = all;
    size_t u = 0;
    for (; u < dpi_records_unit_count(r); u++) {
        const char *id;
        size_t n_bytes, record;
        dpi_records_unit_id(r, u, &id, &n_bytes);
        at += sprintf(at, "%.*s:", id ? (int)n_bytes : 1, id ? id : "-");
        for (size_t k = 0; (record = dpi_records_of_unit(r, u, k)) != SIZE_MAX; k++)
            at += sprintf(at, " %zu", record);
        at += sprintf(at, "; ");
    }
    assert_string_equal(all, wanted);
    assert_true(dpi_records_of_unit(r, u, 0) == SIZE_MAX);
}

/* In the order of their first records; a record without an ID is null, and nobody else's. */
TEST(test_units) {
    dpi_records_options o = defaults;
    o.unit_field = "who";
    put("u.csv", "text,who\none,b\ntwo,a\nthree,b\nfour,\nfive, \n"
                 "six\n\"s\"even,a\neight,bb\n,b\n");
    dpi_records *r = open_records("u.csv", o, DPI_RECORD_ROW);
    assert_int_equal(dpi_records_has_units(r), 1);
    expect_units(r, "b: 0 2 8; a: 1; -: 3; -: 4; -: 5; -: 6; bb: 7; ");
    expect(r, "one|two|three|-|-|-|-|eight|-");
    put("u.jsonl", "{\"text\":\"x\",\"who\":12}\n{\"text\":\"y\",\"who\":\"12\"}\n"
                   "{\"text\":\"z\",\"who\":1.5}\nnothing\n{\"text\":\"v\",\"who\":3}\n");
    r = open_records("u.jsonl", o, DPI_RECORD_LINE);
    assert_int_equal(dpi_records_has_units(r), 1);
    expect_units(r, "12: 0 1; -: 2; -: 3; 3: 4; ");
    expect(r, "x|y|-|-|v");
    /* Forms of an integer are one ID, and no other number or text is. */
    put("u.jsonl", "{\"text\":\"a\",\"who\":0.0}\n{\"text\":\"b\",\"who\":1.0}\n"
                   "{\"text\":\"c\",\"who\":1e0}\n{\"text\":\"d\",\"who\":\"1.0\"}\n"
                   "{\"text\":\"e\",\"who\":9007199254740993.0}\n"
                   "{\"text\":\"f\",\"who\":9007199254740992}\n"
                   "{\"text\":\"g\",\"who\":18446744073709551616}\n"
                   "{\"text\":\"h\",\"who\":\"1.5\"}\n{\"text\":\"i\",\"who\":1e1001}\n"
                   "{\"text\":\"j\",\"who\":\"01\"}\n");
    r = open_records("u.jsonl", o, DPI_RECORD_LINE);
    expect_units(r, "0: 0; 1: 1 2 3; 9007199254740993: 4; 9007199254740992: 5; "
                    "18446744073709551616: 6; 1.5: 7; -: 8; 01: 9; ");
    expect(r, "a|b|c|d|e|f|g|h|-|j");
    put("p.csv", "text,who\na,1.0\nb,2.0\nc,1\nd,1.0a\n"); /* as pandas writes a column with gaps */
    r = open_records("p.csv", o, DPI_RECORD_ROW);
    expect_units(r, "1: 0 2; 2: 1; 1.0a: 3; ");
    dpi_records_close(r);
    r = open_records("u.csv", defaults, DPI_RECORD_ROW); /* without the field each is its own */
    assert_int_equal(dpi_records_has_units(r), 0);
    expect_units(r, "-: 0; -: 1; -: 2; -: 3; -: 4; -: 5; -: 6; -: 7; -: 8; ");
    dpi_records_close(r);
    o.unit_field = "nobody";
    refuse("u.csv", o, DPI_STATUS_FORMAT, "no column 'nobody' in the header row (unit_field)");
    put_folder("units");
    refuse("units", o, DPI_STATUS_ARG, "files of a folder have no fields");
}

/* A field that no line has: nobody is told, unless the names of fields are public. */
TEST(test_public_fields) {
    dpi_records_options o = defaults;
    put("n.jsonl", "no object\n{\"text\": \"a\", \"pid\": 1}\n{\"text\": \"b\", \"ward\": null}\n");
    for (o.public_fields = 0; o.public_fields < 2; o.public_fields++) {
        o.unit_field = "pid", o.label_field = "ward";
        expect(open_records("n.jsonl", o, DPI_RECORD_LINE), "-|a|-");
        o.unit_field = "pidd";
        if (!o.public_fields)
            expect(open_records("n.jsonl", o, DPI_RECORD_LINE), "-|-|-");
    }
    o.public_fields = 1;
    refuse("n.jsonl", o, DPI_STATUS_FORMAT, "no line has a field 'pidd' (unit_field)");
    o.unit_field = NULL, o.label_field = "warp";
    refuse("n.jsonl", o, DPI_STATUS_FORMAT, "no line has a field 'warp' (label_field)");
    o.label_field = NULL, o.text_field = "body";
    refuse("n.jsonl", o, DPI_STATUS_FORMAT, "no line has a field 'body' (text_field)");
    o.public_fields = 2;
    refuse("n.jsonl", o, DPI_STATUS_ARG, "public_fields is 2");
}

TEST(test_delimiter) {
    dpi_records_options o = defaults;
    put("s.csv", "who;text\nb;one, two\n");
    refuse("s.csv", o, DPI_STATUS_FORMAT, "set apart by ';' (delimiter)");
    o.delimiter = ';';
    expect(open_records("s.csv", o, DPI_RECORD_ROW), "one, two");
    o.delimiter = '"';
    refuse("s.csv", o, DPI_STATUS_ARG, "delimiter");
}

#define BYTES(text) text, sizeof(text) - 1
#define LE_AB "t\0e\0x\0t\0\n\0a\0\xac\x20"

/* What is not of the encoding is null, also where it is only an ID. */
TEST(test_encoding) {
    static const struct {
        int32_t encoding;
        const char *name, *bytes;
        size_t n_bytes;
        const char *wanted;
    } files[] = {
        {DPI_ENCODING_UTF8, "e.csv", BYTES("text\n\xe2\x82\xac\n\x80\nx\n"), "\xe2\x82\xac|-|x"},
        {DPI_ENCODING_LATIN1, "e.csv", BYTES("text\nK\xf6ln \x7f\x80\xff\n"),
         "K\xc3\xb6ln \x7f\xc2\x80\xc3\xbf"},
        /* All bytes but five are characters: the table of Unicode.org. */
        {DPI_ENCODING_WINDOWS_1252, "e.csv",
         BYTES("text\n\x80\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8e\x91\x92\x93\x94\x95"
               "\x96\x97\x98\x99\x9a\x9b\x9c\x9e\x9f\xa0\xe9\xff\n\x81\n\x8d\n\x8f\n\x90\n\x9d\n"),
         "\u20ac\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u017d\u2018"
         "\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u017e\u0178\u00a0"
         "\u00e9\u00ff|-|-|-|-|-"},
        {DPI_ENCODING_UTF16, "e.csv", BYTES("\xff\xfe" LE_AB), "a\u20ac"},
        {DPI_ENCODING_UTF16LE, "e.csv", BYTES("\xff\xfe" LE_AB), "a\u20ac"},
        {DPI_ENCODING_UTF16LE, "e.csv", BYTES(LE_AB "\n\0\x3d\xd8\x00\xde\n\0\x3d\xd8\n\0b\0\n\0c"),
         "a\u20ac|\U0001f600|-|b|-"},
        {DPI_ENCODING_UTF16, "e.jsonl",
         BYTES("\xfe\xff\0{\0\"\0t\0e\0x\0t\0\"\0:\0\"\0b\0\"\0}\0\r\0\n\xdc\0\0x"), "b|-"},
        {DPI_ENCODING_UTF16BE, "e.jsonl", BYTES("\0{\0\"\0t\0e\0x\0t\0\"\0:\0\"\0b\0\"\0}"), "b"},
        {DPI_ENCODING_UTF16, "e.jsonl", BYTES(""), ""},
    };
    dpi_records_options o = defaults;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const bool is_csv = strcmp(files[i].name, "e.csv") == 0;
        write_file(path_in(folder, files[i].name), files[i].bytes, files[i].n_bytes);
        o.encoding = files[i].encoding;
        expect(open_records(files[i].name, o, is_csv ? DPI_RECORD_ROW : DPI_RECORD_LINE),
               files[i].wanted);
    }
    put_folder("enc");
    write_file(path_in(folder, "enc/a.txt"), "\xff\xfe" "a\0\n", 6);
    put("enc/b.txt", "no mark");
    o.encoding = DPI_ENCODING_UTF16;
    expect(open_records("enc", o, DPI_RECORD_FILE), "a|-");
    refuse("e.csv", (put("e.csv", "text\na\n"), o), DPI_STATUS_FORMAT, "has no byte order mark");
    o.encoding = DPI_ENCODING_LATIN1;
    put("e.csv", "\xef\xbb\xbftext\na\n");
    refuse("e.csv", o, DPI_STATUS_FORMAT, "begins with the mark of UTF-8");
    o.encoding = DPI_ENCODING_UTF8;
    write_file(path_in(folder, "e.csv"), BYTES("\xff\xfe" LE_AB));
    refuse("e.csv", o, DPI_STATUS_FORMAT, "begins with the mark of UTF-16");
    put("e.csv", "te\xe9,text\na\n");
    refuse("e.csv", o, DPI_STATUS_FORMAT, "windows-1252 is what Excel calls ANSI");
    o.unit_field = o.label_field = "who";
    put("e.csv", "text,who\na,\xe9\nb,\xc3\xa9\n");
    dpi_records *r = open_records("e.csv", o, DPI_RECORD_ROW);
    expect_units(r, "-: 0; \xc3\xa9: 1; ");
    expect(r, "-|b");
    o.encoding = DPI_ENCODING_UTF16BE + 1;
    refuse("e.csv", o, DPI_STATUS_ARG, "encoding is 6");
}

/* What the owner is told: "\x93" is a quote of Windows alone, a control character in Latin-1. */
TEST(test_guesses) {
    static const struct {
        const char *bytes;
        int32_t given, wanted;
    } files[] = {
        {"{\"text\":\"caf\xc3\xa9\"}\n", DPI_ENCODING_UTF8, DPI_ENCODING_UTF8},
        {"{\"text\":\"caf\xc3\xa9\"}\n", DPI_ENCODING_LATIN1, DPI_ENCODING_UTF8},
        {"{\"text\":\"caf\xe9 \x93x\"}\n", DPI_ENCODING_UTF8, DPI_ENCODING_WINDOWS_1252},
        {"{\"text\":\"cafe\"}\n", DPI_ENCODING_LATIN1, DPI_ENCODING_LATIN1},
    };
    dpi_records_options o;
    int32_t found = -1;
    dpi_records_options_init(&o);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        put("g.jsonl", files[i].bytes);
        o.encoding = files[i].given;
        assert_ok(dpi_records_guess_encoding(path_in(folder, "g.jsonl"), &o, &found, ERR));
        assert_int_equal(found, files[i].wanted);
    }
    found = -1;
    assert_error(dpi_records_guess_encoding(path_in(folder, "none"), &o, &found, ERR), IO, "");
    assert_int_equal(found, -1);
    dpi_records_options_init(&o);
    put("g.csv", "id;text\n1;one\n");
    assert_int_equal(dpi_records_guess_delimiter(path_in(folder, "g.csv"), &o), ';');
    o.delimiter = ';';
    assert_int_equal(dpi_records_guess_delimiter(path_in(folder, "g.csv"), &o), 0);
    assert_int_equal(dpi_records_guess_delimiter(path_in(folder, "g.jsonl"), &o), 0);
}

/* Why each record is null, as digits of dpi_record_fault. */
/* What is from memory is refused by its bytes, and is a .jsonl or a .csv. */
TEST(test_memory_refused) {
    dpi_records *records = NULL;
    assert_error(dpi_records_open_buffer("a", 1, DPI_RECORD_FILE, NULL, &records, ERR), ARG,
                 "kind is 1");
    assert_error(dpi_records_open_buffer("a\nb\n", 4, DPI_RECORD_ROW, NULL, &records, ERR),
                 FORMAT, "the text in memory");
    assert_ok(dpi_records_open_buffer(NULL, 0, DPI_RECORD_LINE, NULL, &records, ERR));
    assert_int_equal(dpi_records_count(records), 0);
    dpi_records_close(records);
}

TEST(test_faults) {
    dpi_records_options o = defaults;
    o.unit_field = "who";
    put("why.csv", "text,who\na,b\n\"\",b\n\xff,b\nx\"y,b\n,\n\nz,\n");
    put("why.jsonl", "{\"text\": \"a\", \"who\": 1}\n{\"text\": \" \", \"who\": 1}\n"
                     " \n{\n{\"who\": 1}\n{\"text\": 1, \"who\": 1}\n"
                     "{\"text\": \"\\ud800\", \"who\": 1}\n{\"text\": \"\xe9\", \"who\": 1}\n"
                     "{\"text\": \"b\", \"who\": 1.5}\n");
    put_folder("why");
    put("why/a.txt", "a");
    put("why/b.txt", "\n");
    put("why/c.txt.gz", "x");
    put("why/d.txt", "\xe9");
    assert_int_equal(symlink("nowhere", path_in(folder, "why/e.txt")), 0);
    static const char *const files[][2] = {
        {"why.csv", "0163147"}, {"why.jsonl", "011345567"}, {"why", "01262"}};
    for (int k = 0; k < 3; k++) {
        char found[32] = "", *text;
        dpi_records *r;
        assert_ok(dpi_records_open(path_in(folder, files[k][0]), k < 2 ? &o : NULL, &r, ERR));
        for (size_t i = 0, n; i < dpi_records_count(r); i++) {
            int32_t fault;
            assert_ok(dpi_records_look(r, i, &text, &n, &fault, ERR));
            assert_true(!text == (fault != DPI_FAULT_NONE));
            sprintf(found + i, "%d", fault);
            dpi_private_free(text);
        }
        assert_string_equal(found, files[k][1]);
        dpi_records_close(r);
    }
}

SETUP {
    dpi_records_options_init(&defaults);
    make_dir(folder, sizeof folder);
}

TEARDOWN { remove_dir(folder); }
