/* JSON schemas as grammars: texts by hand, and what is refused. */
#include "dpinfer/schema.h"
#include "grammar/mask.h"
#include "tests/grammar/forms.h"

static dpi_status parse_schema(const char *schema, dpi_grammar **g) {
    OWN_ARRAY(char) q = quoted(schema);
    return dpi_grammar_from_schema(q, strlen(q), g, ERR);
}

static void assert_accepts(const char *schema, const char *const *yes, const char *const *no) {
    OWN(dpi_grammar) g = NULL;
    assert_ok(parse_schema(schema, &g));
    assert_texts(g, schema, yes, no);
}

TEST(test_values) {
    assert_accepts("{'type': 'string'}", LIST("''", "'a \xc3\xa4'", "'\\n\\'\\u00e4'", "'/'"),
                   LIST("", "a", "'", "'\n'", "'\\x'", "'\\u00e'", "'a'b'"));
    /* Escapes are characters: whole pairs, and no NUL. */
    assert_accepts(
        "{'type': 'string', 'maxLength': 1}",
        LIST("'\\u0001'", "'\\uD83D\\uDE00'", "'\\ud7ff'", "'\\uE000'", "'\\u0100'", "'\\u0010'"),
        LIST("'\\u0000'", "'\\ud83d'", "'\\ude00'", "'\\ud83dx'", "'\\ud83d\\u0041'"));
    assert_accepts("{'type': 'string', 'minLength': 1, 'maxLength': 2}",
                   LIST("'a'", "'\\n\xc3\xa4'"), LIST("''", "'abc'"));
    assert_accepts("{'type': 'string', 'format': 'date'}", LIST("'2024-02-29'"),
                   LIST("'2024-2-29'", "'2024-13-01'", "'2024-01-32'"));
    assert_accepts("{'type': 'integer'}", LIST("0", "-7", "123"), LIST("01", "+1", "1.0", "-"));
    assert_accepts("{'type': 'number'}", LIST("0", "-7.25", "1e-5", "1.5E+10"),
                   LIST(".5", "1.", "1e", "nan"));
    assert_accepts("{'type': ['boolean', 'null']}", LIST("true", "false", "null"),
                   LIST("True", "0", ""));
    assert_accepts("{'enum': ['a', 1, null, {'b': [1, '\\'']}]}",
                   LIST("'a'", "1", "null", "{'b':[1,'\\'']}"), LIST("a", "2", "'b'"));
    assert_accepts("{'enum': [0.1, 1e300, 2.0]}", LIST("0.1", "1e300"),
                   LIST("0.10000000000000001", "0.2"));
    assert_accepts("{'type': 'string', 'enum': [1, 'a', null]}", LIST("'a'"), LIST("1", "null"));
    assert_accepts("{'type': ['integer', 'null'], 'enum': [1, 'a', null, 0.5]}", LIST("1", "null"),
                   LIST("'a'", "0.5"));
    assert_accepts("{'const': '\\u00e4'}", LIST("'\xc3\xa4'"), LIST("'a'"));
    assert_accepts("{}", LIST("1", "{'a': [1, {}]}", "[]"), LIST("{a:1}", "[1,]", "{'a'}"));
}

TEST(test_objects) {
    const char *schema = "{'type': 'object', 'properties': {'a': {'type': 'integer'},"
                         "'b': {'type': 'boolean'}, 'c': {'type': 'null'}},"
                         "'required': ['b'], 'additionalProperties': false, "
                         "'title': 'x'}";
    assert_accepts(schema,
                   LIST("{'b': true}", "{'a':1,'b':false}", "{'b':true, 'c': null}",
                        "{'a': 1, 'b': true, 'c': null}"),
                   LIST("{}", "{'a': 1}", "{'b': 1}", "{'b': true, 'a': 1}", "{'b': true, 'd': 1}",
                        "{'b': true,}", "{ 'b': true}", "{'a': 1, 'c': null}"));
    assert_accepts("{'type': 'object', 'properties': {'a': true, 'b': true}}",
                   LIST("{}", "{'a': 1}", "{'b': 1}", "{'a': {}, 'b': []}"),
                   LIST("{'b': 1, 'a': 1}", "{,}"));
    assert_accepts("{'type': 'object', 'additionalProperties': false}", LIST("{}"),
                   LIST("{'a': 1}"));
}

TEST(test_arrays) {
    assert_accepts("{'type': 'array', 'items': {'type': 'integer'}, 'maxItems': 3}",
                   LIST("[]", "[1]", "[1, 2,3]"), LIST("[1,2,3,4]", "[true]", "[1,]"));
    assert_accepts("{'type': 'array', 'minItems': 2}", LIST("[1, 'a']", "[[], {}, null]"),
                   LIST("[]", "[1]"));
    assert_accepts("{'type': 'array', 'maxItems': 0}", LIST("[]"), LIST("[1]"));
}

TEST(test_definitions) {
    assert_accepts("{'$ref': '#/$defs/tree', '$defs': {'tree': {'type': 'array', "
                   "'items': {'anyOf': [{'type': 'integer'}, "
                   "{'$ref': '#/$defs/tree'}]}}}}",
                   LIST("[]", "[1, [2, []]]"), LIST("[", "[[]", "1", "[a]"));
    /* JSON pointers: of RFC 6901, section 6, and the file's own places. */
    static const char *const pointers[] = {"a~1b", "c%25d", "e%5Ef", "g%7ch", "i\\\\j", "k%22l",
                                           "%20",  "m~0n",  "%7E01", "~01",   "",        "%C3%A4"};
    static const char *const names[] = {"a/b", "c%d", "e^f", "g|h", "i\\\\j", "k\\'l",
                                        " ",   "m~n", "~1",  "~1",  "",        "\xc3\xa4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char schema[200];
        snprintf(schema, sizeof schema, "{'$ref': '#/$defs/%s', '$defs': {'%s': {'const': 1}}}",
                 pointers[i], names[i]);
        assert_accepts(schema, LIST("1"), LIST("2", "{}"));
    }
    assert_accepts("{'type': 'object', 'properties': {'a': {'anyOf': [{'const': 1}, "
                   "{'const': 2}]}, 'b': {'$ref': '#/properties/a/anyOf/1'}}, "
                   "'required': ['a', 'b']}",
                   LIST("{'a':1,'b':2}"), LIST("{'a':1,'b':1}"));
}

/* 1.0 is an integer, and the same as 1. */
TEST(test_whole_numbers) {
    assert_accepts("{'type': 'integer', 'enum': [1.0, 2.5, -3e2]}", LIST("1", "-300"),
                   LIST("1.0", "2.5", "-3e2"));
    assert_accepts("{'type': 'integer', 'const': 7.0}", LIST("7"), LIST("7.0"));
    assert_accepts("{'const': [1.0, {'a': 2.0}, 0.5]}", LIST("[1,{'a':2},0.5]"),
                   LIST("[1.0,{'a':2.0},0.5]"));
    assert_accepts("{'enum': [9007199254740993]}", LIST("9007199254740993"),
                   LIST("9007199254740992")); /* no double */
    assert_accepts("{'type': 'array', 'minItems': 1.0, 'maxItems': 2.0}", LIST("[1]", "[1,2]"),
                   LIST("[]", "[1,2,3]"));
    assert_accepts("{'type': 'string', 'minLength': 1e0, 'maxLength': 2e0}", LIST("'a'", "'ab'"),
                   LIST("''", "'abc'"));
}

/* Bounds that are too large to be written out hold for texts of so few tokens that they cannot be
 * reached, and no other length is allowed. Tokens are of one byte, but for one of 16. */
TEST(test_large_bounds) {
    static const struct {
        const char *schema;
        int32_t most; /* tokens */
    } cases[] = {
        {"{'type': 'string', 'maxLength': 10000}", INT32_MAX},
        {"{'type': 'string', 'maxLength': 160000}", 10000},
        {"{'type': 'string', 'maxLength': 1e9}", 62500000},
        {"{'type': 'string', 'maxLength': 1e300}", INT32_MAX},
        {"{'type': 'string', 'maxLength': 9223372036854775807}", INT32_MAX},
        {"{'type': 'array', 'maxItems': 80000, 'items': {'type': 'null'}}", 10000},
        {"{'type': 'array', 'items': {'type': 'string', 'maxLength': 40000}, 'maxItems': 16000}",
         2000},
        /* Each alone could be written. */
        {"{'type': 'array', 'minItems': 9000, 'items': {'type': 'string', 'maxLength': 9600}}",
         600},
    };
    uint8_t bytes[256];
    dpi_mask_token tokens[258] = {[256] = {(const uint8_t *)"aaaaaaaaaaaaaaaa", 16, false},
                                  [257] = {.is_end = true}};
    for (int i = 0; i < 256; i++) {
        bytes[i] = (uint8_t)i;
        tokens[i] = (dpi_mask_token){&bytes[i], 1, false};
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[80];
        dpi_mask *mask;
        OWN(dpi_grammar) g = NULL;
        assert_ok(parse_schema(cases[i].schema, &g));
        assert_ok(dpi_mask_make(g, tokens, 258, false, &mask, ERR));
        snprintf(message, sizeof message, "allowed at most %d", (int)cases[i].most);
        if (cases[i].most < INT32_MAX)
            assert_error(dpi_mask_check_length(mask, cases[i].most + 1, ERR), ARG, message);
        assert_ok(dpi_mask_check_length(mask, cases[i].most, ERR));
        dpi_mask_free(mask);
    }
}

static void assert_no_schema(const char *schema, dpi_status status, const char *part) {
    dpi_grammar *g = NULL;
    assert_status(parse_schema(schema, &g), status, part);
    assert_null(g);
}

TEST(test_refusals) {
    static const char *const wrong[][2] = {
        {"{", "no JSON"},
        {"1", "must be an object"},
        {"{'type': 'int'}", "found 'int', allowed object"},
        {"{'type': 'string', 'maxLength': -1}", "maxLength"},
        {"{'type': 'array', 'minItems': 3, 'maxItems': 2}", "maxItems"},
        {"{'type': 'object', 'properties': {}, 'required': ['a']}", "required"},
        {"{'type': 'object', 'additionalProperties': true}", "additionalProperties"},
        {"{'type': 'string', 'enum': [1, 2]}", "found [1,2], allowed values of the type"},
        {"{'type': 'integer', 'const': 'x'}", "[\"x\"]"},
        {"{'type': 'object', 'properties': "
         "{'age': {'type': 'array', 'items': {'type': 'Integer'}}}}",
         "property 'age': type: found 'Integer'"},
        {"{'enum': []}", "not empty"},
        {"{'$ref': 'other.json'}", "$ref"},
        {"{'$ref': '#/$defs/a%5', '$defs': {'a%5': true}}", "$ref"},
        {"{'$ref': '#$defs', '$defs': true}", "$ref"},
        {"{'type': 'string', 'maxLength': 1.5}", "found 1.5, allowed integers from 0 on"},
        {"{'type': 'string', 'minLength': 20000}", "found 20000, allowed integers 0..10000"},
        {"{'type': 'array', 'minItems': 30, 'maxItems': 20.0}", "maxItems is below minItems"},
        /* A definition that is itself, and one that needs itself without end. */
        {"{'$ref': '#'}", "never ends"},
        {"{'anyOf': [{'$ref': '#'}, {'type': 'null'}]}", "begins with itself"},
        {"{'type': 'array', 'items': {'$ref': '#'}, 'minItems': 1}", "never ends"},
    };
    static const char *const unknown[][2] = {
        {"{'type': 'string', 'pattern': 'a'}", "pattern"},
        {"{'type': 'integer', 'minimum': 1}", "minimum"},
        {"{'allOf': []}", "allOf"},
        {"{'type': ['string'], 'maxLength': 3}", "maxLength"},
        {"{'type': 'string', 'format': 'email'}", "email"},
        {"{'type': 'string', 'format': 'date', 'maxLength': 5}", "beside a format"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_no_schema(wrong[i][0], DPI_STATUS_FORMAT, wrong[i][1]);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_no_schema(unknown[i][0], DPI_STATUS_UNSUPPORTED, unknown[i][1]);
    assert_no_schema("{'type': 'array', 'minItems': 9000, "
                     "'items': {'type': 'string', 'minLength': 9000}}",
                     DPI_STATUS_LIMIT, "states");
    assert_no_schema("Anna", DPI_STATUS_FORMAT, "no JSON: line 1, column 4");
    assert_null(strstr(ERR->message, "Anna")); /* by mistake it may be one of records */
}

/* n times `open`, the middle, n times `close`; the caller's. */
static char *nest(int n, const char *open, const char *middle, const char *close) {
    char *text = malloc((size_t)n * (strlen(open) + strlen(close)) + strlen(middle) + 1);
    char *at = text;
    for (int i = 0; i < n; i++)
        at = stpcpy(at, open);
    at = stpcpy(at, middle);
    for (int i = 0; i < n; i++)
        at = stpcpy(at, close);
    return text;
}

TEST(test_nested) {
    OWN_ARRAY(char) schema = nest(200, "{'anyOf':[", "", "]}");
    assert_no_schema(schema, DPI_STATUS_LIMIT, "schemas in schemas");
}

/* Schemas in schemas of any shape: as long as they are themselves, and no more is written. */
TEST(test_deep) {
    OWN_ARRAY(char) arrays = nest(100, "{'type': 'array', 'items': ", "{'type': 'integer'}", "}");
    OWN_ARRAY(char) text = nest(100, "[", "1, 2", "]");
    assert_accepts(arrays, LIST(text, "[]", "[[],[[]]]"), LIST(text + 1, "[1]"));
    /* Six properties, the last one has the next object. */
    OWN_ARRAY(char)
    objects = nest(30,
                   "{'type': 'object', 'properties': {'p0': {'type': 'boolean'}, "
                   "'p1': {'type': 'boolean'}, 'p2': {'type': 'boolean'}, "
                   "'p3': {'type': 'boolean'}, 'p4': {'type': 'boolean'}, 'o': ",
                   "true", "}}");
    assert_accepts(objects, LIST("{}", "{'p0':true, 'p3':false,'o':{'o': {'p4':true}}}"),
                   LIST("{'p3':true, 'p1':true}", "{'o':{'o':{'o':1}}}"));
}

/* A hundred ways that begin alike. */
TEST(test_ways) {
    OWN_ARRAY(char) schema = malloc(100000);
    char *at = stpcpy(schema, "{'anyOf': [");
    for (int i = 0; i < 100; i++)
        at += sprintf(at,
                      "%s{'type': 'object', 'properties': {'name': {'type': 'string'}, "
                      "'list': {'type': 'array', 'items': {'type': 'string'}}, "
                      "'kind': {'const': 'k%d'}}, 'required': ['name', 'kind']}",
                      i > 0 ? ", " : "", i);
    stpcpy(at, "]}");
    assert_accepts(schema,
                   LIST("{'name': 'a', 'kind': 'k0'}", "{'name': 'a','kind':'k99'}",
                        "{'name': 'abc', 'list': ['x', 'y'], 'kind': 'k77'}"),
                   LIST("{'name': 'a', 'kind': 'k100'}"));
}
