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
    assert_no_schema("{\"type\": \"int\"}", DPI_STATUS_FORMAT, "type must be");
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),      cmocka_unit_test(test_objects),
        cmocka_unit_test(test_arrays),      cmocka_unit_test(test_definitions),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_nested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
