/* Wanted values of JSON texts: found whatever stands beside them, exact, in linear time. */
#include "dpinfer/json.h"
#include "dpinfer/memory.h"
#include "tests/support/failing.h"
#include "tests/support/support.h"

enum { NONE = DPI_JSON_NONE, STRING = DPI_JSON_STRING };

/* The member "a" of a text: its string, "-" if that is none. */
static void expect_a(const char *text, size_t n_bytes, int32_t type, const char *wanted) {
    dpi_json value;
    char *string;
    size_t n;
    dpi_json_read(text, n_bytes, &value);
    dpi_json_member(&value, "a", &value);
    assert_int_equal(value.type, type);
    assert_ok(dpi_json_string(&value, &string, &n, ERR));
    assert_string_equal(string ? string : "-", wanted);
    assert_int_equal(n, string ? strlen(string) : 0);
    dpi_private_free(string);
}

TEST(test_members) {
    static const struct {
        const char *text;
        int32_t type;
        const char *wanted;
    } cases[] = {
        {"{\"a\": \"x\"}", STRING, "x"},
        {" \t\r\n{ \"a\" :\"x\" } \n", STRING, "x"},
        /* What is not wanted may be anything that has an end. */
        {"{\"i\": 18446744073709551616, \"x\": -1e400, \"n\": NaN, \"a\": \"x\"}", STRING, "x"},
        {"{\"s\": \"\\ud800 \\q \xff \x01\", \"a\": \"x\", \"t\": \"\\\"}\"}", STRING, "x"},
        {"{\"o\": {\"a\": \"no\", \"]\": [1, {}]}, \"a\": \"x\"}", STRING, "x"},
        {"{\"a\": \"first\", \"b\": 1, \"a\": \"last\"}", STRING, "last"},
        {"{\"\\u0061\": \"x\", \"aa\": 1, \"\": 2}", STRING, "x"},
        {"{\"a\": \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\uD83D\\uDE00\"}", STRING,
         "\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80"},
        {"{\"a\": \"\xc3\xa9\"}", STRING, "\xc3\xa9"},
        /* A string that is no text. */
        {"{\"a\": \"\\ud800\"}", STRING, "-"},
        {"{\"a\": \"\\ud800\\u0041\"}", STRING, "-"},
        {"{\"a\": \"\\udc00\"}", STRING, "-"},
        {"{\"a\": \"\\x\"}", STRING, "-"},
        {"{\"a\": \"\\u12g4\"}", STRING, "-"},
        {"{\"a\": \"\\u12\"}", STRING, "-"},
        {"{\"a\": \"\t\"}", STRING, "-"},
        {"{\"a\": \"\xff\"}", STRING, "-"},
        /* Other values. */
        {"{\"a\": -0.5E+3}", DPI_JSON_NUMBER, "-"},
        {"{\"a\": null}", DPI_JSON_NULL, "-"},
        {"{\"a\": true}", DPI_JSON_WORD, "-"},
        {"{\"a\": 01}", DPI_JSON_WORD, "-"},
        {"{\"a\": [\"x\"]}", DPI_JSON_ARRAY, "-"},
        {"{\"a\": {}}", DPI_JSON_OBJECT, "-"},
        /* None. */
        {"{}", NONE, "-"},
        {"", NONE, "-"},
        {"[\"a\", \"x\"]", NONE, "-"},
        {"{\"a\": \"x\"", NONE, "-"},
        {"{\"a\": \"x\"}}", NONE, "-"},
        {"{\"a\": \"x\",}", NONE, "-"},
        {"{\"a\": \"x\" \"b\": 1}", NONE, "-"},
        {"{\"a\" \"x\"}", NONE, "-"},
        {"{\"a\": \"x\", \"b\":}", NONE, "-"},
        {"{\"a\": \"x\", b: 1}", NONE, "-"},
        {"{\"a\": \"x\", \"b\": [}", NONE, "-"},
        {"{\"a\": \"x\"]", NONE, "-"},
        {"{\"a\": \"x\\\"}", NONE, "-"},
        {"{\"a\": \"x\\", NONE, "-"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* A copy of its size: a sanitizer sees what is read behind it. */
        const size_t n = strlen(cases[i].text);
        char *copy = malloc(n + (n == 0));
        assert_non_null(copy);
        memcpy(copy, cases[i].text, n);
        expect_a(copy, n, cases[i].type, cases[i].wanted);
        free(copy);
    }
    dpi_json value;
    dpi_json_read(" [ {\"b\": 1}, 2]", 15, &value);
    dpi_json_first(&value, &value);
    assert_int_equal(value.type, DPI_JSON_OBJECT);
    assert_int_equal(value.n_bytes, 8);
    dpi_json_first(&value, &value);
    assert_int_equal(value.type, DPI_JSON_NONE);
    dpi_json_read("[]", 2, &value);
    dpi_json_first(&value, &value);
    assert_int_equal(value.type, DPI_JSON_NONE);
}

/* Ten million brackets need no stack, and a million members no second look. */
TEST(test_deep_and_long) {
    enum { DEPTH = 10000000, ROOM = 2 * DEPTH + 64 };
    char *text = malloc(ROOM);
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "{\"d\": ");
    memset(text + n, '[', DEPTH);
    memset(text + n + DEPTH, ']', DEPTH);
    n += 2 * DEPTH;
    n += (size_t)sprintf(text + n, ", \"a\": \"x\"}");
    expect_a(text, n, DPI_JSON_STRING, "x");
    n = 0;
    for (int i = 0; i < 1000000; i++)
        n += (size_t)sprintf(text + n, "%s\"b\": [\"{\"]", i > 0 ? ", " : "{");
    n += (size_t)sprintf(text + n, ", \"a\": \"x\"}");
    expect_a(text, n, DPI_JSON_STRING, "x");
    free(text);
}

TEST(test_digits) {
    static const char *const cases[][2] = {
        {"1", "1"}, {"1.0", "1"}, {"1e0", "1"}, {"10e-1", "1"}, {"0.1E+1", "1"}, {"-1.000", "-1"},
        {"0", "0"}, {"-0.0", "0"}, {"0e999999999999", "0"}, {"0.00e-5", "0"}, {"120e-1", "12"},
        {"1.50e1", "15"}, {"0.0012e4", "12"}, {"1.5e3", "1500"}, {"100", "100"}, {"1e2", "100"},
        {"9007199254740993", "9007199254740993"}, {"9007199254740993.0", "9007199254740993"},
        {"18446744073709551615", "18446744073709551615"}, {"1e22", "10000000000000000000000"},
        {"123456789012345678901234567890e-10", NULL},
        {"123456789012345678900000000000e-10", "12345678901234567890"},
        {"1.5", NULL}, {"1e-1", NULL}, {"1e1001", NULL}, {"1e99999999999999999999", NULL},
        {"1e-99999999999999999999", NULL}, {"007", NULL}, {"+1", NULL}, {"1.", NULL}, {".5", NULL},
        {"1e", NULL}, {"1e+", NULL}, {"-", NULL}, {"", NULL}, {"1 ", NULL}, {"0x1", NULL},
        {"NaN", NULL}, {"12e5a", NULL},
    };
    char *digits;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(dpi_json_digits(cases[i][0], strlen(cases[i][0]), &digits, ERR));
        if (!cases[i][1])
            assert_null(digits);
        else
            assert_string_equal(digits, cases[i][1]);
        dpi_private_free(digits);
    }
    assert_ok(dpi_json_digits("1e1000", 6, &digits, ERR));
    assert_int_equal(strlen(digits), 1001);
    dpi_private_free(digits);
}

TEST(test_no_memory) {
    const dpi_json value = {STRING, "\"text\"", 6};
    char *text;
    size_t n;
    assert_true(fails(1, dpi_json_string(&value, &text, &n, ERR), "no memory"));
    assert_null(text);
    assert_true(fails(1, dpi_json_digits("1", 1, &text, ERR), "no memory"));
    assert_null(text);
}
