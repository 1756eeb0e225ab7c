/* JSON schemas as grammars: texts by hand, and what is refused. */
#include "dpinfer/schema.h"
#include "tests/support/support.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static dpi_status parse(const char *schema, dpi_grammar **g, dpi_error *err) {
    return dpi_grammar_from_schema(schema, strlen(schema), g, err);
}

static void assert_accepts(const char *schema, const char *const *yes, const char *const *no) {
    dpi_grammar *g = NULL;
    dpi_error err;
    assert_ok(parse(schema, &g, &err), &err);
    for (int wanted = 1; wanted >= 0; wanted--)
        for (const char *const *text = wanted ? yes : no; *text; text++) {
            int32_t found = -1;
            assert_ok(dpi_grammar_accepts(g, *text, strlen(*text), &found, &err), &err);
            if (found != wanted)
                fail_msg("%s: '%s' must be %d", schema, *text, wanted);
        }
    dpi_grammar_free(g);
}

static void test_values(void **state) {
    (void)state;
    assert_accepts("{\"type\": \"string\"}",
                   LIST("\"\"", "\"a \xc3\xa4\"", "\"\\n\\\"\\u00e4\"", "\"/\""),
                   LIST("", "a", "\"", "\"\n\"", "\"\\x\"", "\"\\u00e\"", "\"a\"b\""));
    /* Escapes are characters: whole pairs, and no NUL. */
    assert_accepts("{\"type\": \"string\", \"maxLength\": 1}",
                   LIST("\"\\u0001\"", "\"\\uD83D\\uDE00\"", "\"\\ud7ff\"", "\"\\uE000\"",
                        "\"\\u0100\"", "\"\\u0010\""),
                   LIST("\"\\u0000\"", "\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83dx\"",
                        "\"\\ud83d\\u0041\""));
    assert_accepts("{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 2}",
                   LIST("\"a\"", "\"\\n\xc3\xa4\""), LIST("\"\"", "\"abc\""));
    assert_accepts("{\"type\": \"string\", \"format\": \"date\"}", LIST("\"2024-02-29\""),
                   LIST("\"2024-2-29\"", "\"2024-13-01\"", "\"2024-01-32\""));
    assert_accepts("{\"type\": \"integer\"}", LIST("0", "-7", "123"), LIST("01", "+1", "1.0", "-"));
    assert_accepts("{\"type\": \"number\"}", LIST("0", "-7.25", "1e-5", "1.5E+10"),
                   LIST(".5", "1.", "1e", "nan"));
    assert_accepts("{\"type\": [\"boolean\", \"null\"]}", LIST("true", "false", "null"),
                   LIST("True", "0", ""));
    assert_accepts("{\"enum\": [\"a\", 1, null, {\"b\": [1, \"\\\"\"]}]}",
                   LIST("\"a\"", "1", "null", "{\"b\":[1,\"\\\"\"]}"), LIST("a", "2", "\"b\""));
    assert_accepts("{\"enum\": [0.1, 1e300, 2.0]}", LIST("0.1", "1e300"),
                   LIST("0.10000000000000001", "0.2"));
    assert_accepts("{\"type\": \"string\", \"enum\": [1, \"a\", null]}", LIST("\"a\""),
                   LIST("1", "null"));
    assert_accepts("{\"type\": [\"integer\", \"null\"], \"enum\": [1, \"a\", null, 0.5]}",
                   LIST("1", "null"), LIST("\"a\"", "0.5"));
    assert_accepts("{\"const\": \"\\u00e4\"}", LIST("\"\xc3\xa4\""), LIST("\"a\""));
    assert_accepts("{}", LIST("1", "{\"a\": [1, {}]}", "[]"), LIST("{a:1}", "[1,]", "{\"a\"}"));
}

static void test_objects(void **state) {
    (void)state;
    const char *schema = "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"},"
                         "\"b\": {\"type\": \"boolean\"}, \"c\": {\"type\": \"null\"}},"
                         "\"required\": [\"b\"], \"additionalProperties\": false, "
                         "\"title\": \"x\"}";
    assert_accepts(schema,
                   LIST("{\"b\": true}", "{\"a\":1,\"b\":false}", "{\"b\":true, \"c\": null}",
                        "{\"a\": 1, \"b\": true, \"c\": null}"),
                   LIST("{}", "{\"a\": 1}", "{\"b\": 1}", "{\"b\": true, \"a\": 1}",
                        "{\"b\": true, \"d\": 1}", "{\"b\": true,}", "{ \"b\": true}",
                        "{\"a\": 1, \"c\": null}"));
    assert_accepts("{\"type\": \"object\", \"properties\": {\"a\": true, \"b\": true}}",
                   LIST("{}", "{\"a\": 1}", "{\"b\": 1}", "{\"a\": {}, \"b\": []}"),
                   LIST("{\"b\": 1, \"a\": 1}", "{,}"));
    assert_accepts("{\"type\": \"object\", \"additionalProperties\": false}", LIST("{}"),
                   LIST("{\"a\": 1}"));
}

static void test_arrays(void **state) {
    (void)state;
    assert_accepts("{\"type\": \"array\", \"items\": {\"type\": \"integer\"}, \"maxItems\": 3}",
                   LIST("[]", "[1]", "[1, 2,3]"), LIST("[1,2,3,4]", "[true]", "[1,]"));
    assert_accepts("{\"type\": \"array\", \"minItems\": 2}", LIST("[1, \"a\"]", "[[], {}, null]"),
                   LIST("[]", "[1]"));
    assert_accepts("{\"type\": \"array\", \"maxItems\": 0}", LIST("[]"), LIST("[1]"));
}

static void test_definitions(void **state) {
    (void)state;
    assert_accepts("{\"$ref\": \"#/$defs/tree\", \"$defs\": {\"tree\": {\"type\": \"array\", "
                   "\"items\": {\"anyOf\": [{\"type\": \"integer\"}, "
                   "{\"$ref\": \"#/$defs/tree\"}]}}}}",
                   LIST("[]", "[1, [2, []]]"), LIST("[", "[[]", "1", "[a]"));
}

static void assert_no_schema(const char *schema, dpi_status status, const char *part) {
    dpi_grammar *g = NULL;
    dpi_error err;
    assert_error(parse(schema, &g, &err), status, &err, part);
    assert_null(g);
}

static void test_refusals(void **state) {
    (void)state;
    assert_no_schema("{", DPI_STATUS_FORMAT, "no JSON");
    assert_no_schema("1", DPI_STATUS_FORMAT, "must be an object");
    assert_no_schema("{\"type\": \"int\"}", DPI_STATUS_FORMAT, "found 'int', allowed object");
    assert_no_schema("{\"type\": \"string\", \"pattern\": \"a\"}",
                   DPI_STATUS_UNSUPPORTED, "pattern");
    assert_no_schema("{\"type\": \"integer\", \"minimum\": 1}", DPI_STATUS_UNSUPPORTED, "minimum");
    assert_no_schema("{\"allOf\": []}", DPI_STATUS_UNSUPPORTED, "allOf");
    assert_no_schema("{\"type\": [\"string\"], \"maxLength\": 3}", DPI_STATUS_UNSUPPORTED,
                   "maxLength");
    assert_no_schema("{\"type\": \"string\", \"format\": \"email\"}", DPI_STATUS_UNSUPPORTED,
                   "email");
    assert_no_schema("{\"type\": \"string\", \"maxLength\": -1}", DPI_STATUS_FORMAT, "maxLength");
    assert_no_schema("{\"type\": \"array\", \"minItems\": 3, \"maxItems\": 2}", DPI_STATUS_FORMAT,
                   "maxItems");
    assert_no_schema("{\"type\": \"object\", \"properties\": {}, \"required\": [\"a\"]}",
                   DPI_STATUS_FORMAT, "required");
    assert_no_schema("{\"type\": \"object\", \"additionalProperties\": true}", DPI_STATUS_FORMAT,
                   "additionalProperties");
    assert_no_schema("{\"type\": \"string\", \"enum\": [1, 2]}", DPI_STATUS_FORMAT,
                     "found [1,2], allowed values of the type");
    assert_no_schema("{\"type\": \"integer\", \"const\": \"x\"}", DPI_STATUS_FORMAT, "[\"x\"]");
    assert_no_schema("{\"type\": \"string\", \"format\": \"date\", \"maxLength\": 5}",
                     DPI_STATUS_UNSUPPORTED, "beside a format");
    assert_no_schema("{\"type\": \"object\", \"properties\": {\"age\": {\"type\": \"array\", "
                     "\"items\": {\"type\": \"Integer\"}}}}", DPI_STATUS_FORMAT,
                     "property 'age': type: found 'Integer'");
    assert_no_schema("{\"enum\": []}", DPI_STATUS_FORMAT, "not empty");
    assert_no_schema("{\"$ref\": \"other.json\"}", DPI_STATUS_FORMAT, "$ref");
    /* A definition that is itself, and one that needs itself without end. */
    assert_no_schema("{\"$ref\": \"#\"}", DPI_STATUS_FORMAT, "never ends");
    assert_no_schema("{\"anyOf\": [{\"$ref\": \"#\"}, {\"type\": \"null\"}]}", DPI_STATUS_FORMAT,
                   "begins with itself");
    assert_no_schema("{\"type\": \"array\", \"items\": {\"$ref\": \"#\"}, \"minItems\": 1}",
                   DPI_STATUS_FORMAT, "never ends");
    assert_no_schema("{\"type\": \"array\", \"minItems\": 9000, \"items\": {\"type\": \"string\", "
                   "\"maxLength\": 9000}}", DPI_STATUS_LIMIT, "states");
}

static void test_nested(void **state) {
    (void)state;
    char schema[8192] = "", *at = schema;
    for (int i = 0; i < 200; i++)
        at = stpcpy(at, "{\"anyOf\":[");
    for (int i = 0; i < 200; i++)
        at = stpcpy(at, "]}");
    assert_no_schema(schema, DPI_STATUS_LIMIT, "schemas in schemas");
}

/* Schemas in schemas of any shape: as long as they are themselves, and no more is written. */
static void test_deep(void **state) {
    (void)state;
    char *schema = malloc(100000), *text = malloc(1000), *at = schema, *to = text;
    for (int i = 0; i < 100; i++) {
        at = stpcpy(at, "{\"type\": \"array\", \"items\": ");
        to = stpcpy(to, "[");
    }
    at = stpcpy(at, "{\"type\": \"integer\"}");
    to = stpcpy(to, "1, 2");
    for (int i = 0; i < 100; i++) {
        at = stpcpy(at, "}");
        to = stpcpy(to, "]");
    }
    assert_accepts(schema, LIST(text, "[]", "[[],[[]]]"), LIST(text + 1, "[1]"));
    at = schema;
    for (int i = 0; i < 30; i++) { /* six properties, the last one has the next object */
        at = stpcpy(at, "{\"type\": \"object\", \"properties\": {");
        for (int k = 0; k < 5; k++)
            at += sprintf(at, "\"p%d\": {\"type\": \"boolean\"}, ", k);
        at = stpcpy(at, "\"o\": ");
    }
    at = stpcpy(at, "true");
    for (int i = 0; i < 30; i++)
        at = stpcpy(at, "}}");
    assert_accepts(schema, LIST("{}", "{\"p0\":true, \"p3\":false,\"o\":{\"o\": {\"p4\":true}}}"),
                   LIST("{\"p3\":true, \"p1\":true}", "{\"o\":{\"o\":{\"o\":1}}}"));
    free(schema);
    free(text);
}

/* A hundred ways that begin alike. */
static void test_ways(void **state) {
    (void)state;
    char *schema = malloc(100000), *at = stpcpy(schema, "{\"anyOf\": [");
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "%s{\"type\": \"object\", \"properties\": "
                          "{\"name\": {\"type\": \"string\"}, "
                          "\"list\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, "
                          "\"kind\": {\"const\": \"k%d\"}}, \"required\": [\"name\", \"kind\"]}",
                      i > 0 ? ", " : "", i);
    stpcpy(at, "]}");
    assert_accepts(schema,
                   LIST("{\"name\": \"a\", \"kind\": \"k0\"}", "{\"name\": \"a\",\"kind\":\"k99\"}",
                        "{\"name\": \"abc\", \"list\": [\"x\", \"y\"], \"kind\": \"k77\"}"),
                   LIST("{\"name\": \"a\", \"kind\": \"k100\"}"));
    free(schema);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),      cmocka_unit_test(test_objects),
        cmocka_unit_test(test_arrays),      cmocka_unit_test(test_definitions),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_nested),
        cmocka_unit_test(test_deep),        cmocka_unit_test(test_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
