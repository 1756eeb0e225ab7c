/* schema.c - a JSON schema to the text of a grammar (dpinfer/schema.h; docs/grammar.md has what is
 * understood). What is not understood is refused by name: a text must never be called valid by a
 * keyword that was passed over. */
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/schema.h"
#include "grammar/grammar.h"
#include "grammar/schema/values.h"

enum { NESTING_MAX = 64, CHOICES_MAX = 1000, WRITTEN_MIN = 64 };

/* What the rule d<i> is: the values of a schema, or the properties of an object's schema from one
 * on, each with its comma. Whatever stands in more than one place is a rule, so that the grammar is
 * as long as the schema. */
typedef struct part {
    const json_t *schema;
    const char *from; /* the first one; NULL: the values */
    const char *property; /* that it is in, for messages; NULL: none */
} part;

typedef struct output {
    char *text; /* [n] of the grammar */
    size_t n, capacity;
    const json_t *root;
    part *parts; /* [n_parts]; the first n_written of them are written */
    size_t n_parts, n_written, parts_capacity;
    const char *property; /* that is written now */
    int32_t nesting;
    int32_t written_max; /* of maxLength and maxItems: a larger one is not written */
    uint64_t most_bytes; /* texts up to here have all that was not written */
    bool no_memory;
    dpi_error *err;
} output;

static const char basics[] =
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "char ::= [^\"\\\\\\x00-\\x1f\\x7f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" unicode)\n"
    /* No half of a pair alone, and not NUL, which strings of C end at. */
    "unicode ::= [1-9a-cA-Ce-fE-F] hex{3} | [dD] [0-7] hex{2} | \"0\" ([1-9a-fA-F] hex{2} | \"0\" "
    "([1-9a-fA-F] hex | \"0\" [1-9a-fA-F])) | [dD] [89abAB] hex{2} \"\\\\u\" [dD] [c-fC-F] hex{2}\n"
    "hex ::= [0-9a-fA-F]\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,14})\n"
    "number ::= integer (\".\" [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?\n"
    "boolean ::= \"true\" | \"false\"\n"
    "null ::= \"null\"\n"
    "any ::= string | number | boolean | null | any-object | any-array\n"
    "any-object ::= \"{\" (string \":\" sp any (\",\" sp string \":\" sp any)*)? \"}\"\n"
    "any-array ::= \"[\" (any (\",\" sp any)*)? \"]\"\n"
    "sp ::= \" \"?\n"
    "date ::= [0-9]{4} \"-\" (\"0\" [1-9] | \"1\" [0-2]) \"-\" (\"0\" [1-9] | [12] [0-9] | \"3\" "
    "[01])\n"
    "time ::= ([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9] \":\" [0-5] [0-9] (\".\" [0-9]{1,6})? "
    "(\"Z\" | [-+] ([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9])\n"
    "date-time ::= date \"T\" time\n"
    "uuid ::= hex{8} \"-\" hex{4} \"-\" hex{4} \"-\" hex{4} \"-\" hex{12}\n";

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_bytes(output *w, const char *bytes, size_t n) {
    w->no_memory = w->no_memory || w->n > DPI_GRAMMAR_BYTES_MAX ||
                   !dpi_grow(&w->text, &w->capacity, w->n + n + 1, 1);
    if (w->no_memory)
        return;
    memcpy(w->text + w->n, bytes, n);
    w->n += n;
}

static void put(output *w, const char *format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    const int n = dpi_vformat(line, sizeof line, format, args);
    va_end(args);
    put_bytes(w, line, (size_t)n);
}

/* JSON text as a literal of the grammar. */
static void put_literal(output *w, const char *bytes, size_t n) {
    put(w, "\"");
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c == '"' || c == '\\')
            put(w, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            put(w, "\\x%02x", c);
        else
            put_bytes(w, bytes + i, 1);
    }
    put(w, "\"");
}

static dpi_status put_value(output *w, json_t *value) {
    char *text = dpi_schema_text(value);
    if (!text)
        return dpi_no_memory(w->err, "the grammar of a schema");
    put_literal(w, text, strlen(text));
    free(text);
    return DPI_STATUS_OK;
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static dpi_status refuse_as(const output *w, dpi_status status, const char *format, ...) {
    char what[160];
    va_list args;
    va_start(args, format);
    (void)dpi_vformat(what, sizeof what, format, args);
    va_end(args);
    return w->property ? dpi_fail(w->err, status, "JSON schema, property '%.40s': %s",
                                  w->property, what)
                       : dpi_fail(w->err, status, "JSON schema: %s", what);
}

static dpi_status refuse(const output *w, const char *what) {
    return refuse_as(w, DPI_STATUS_FORMAT, "%s", what);
}

/* The value of a schema as JSON, for a message. */
static dpi_status refuse_value(const output *w, const char *key, const json_t *found,
                               const char *allowed) {
    char *text = found ? dpi_schema_text((json_t *)found) : NULL;
    const dpi_status status = refuse_as(w, DPI_STATUS_FORMAT, "%s: found %.40s, allowed %s", key,
                                        text ? text : "a value", allowed);
    free(text);
    return status;
}

/* Only these keywords, beside those that say nothing about texts. */
static dpi_status check_keys(const output *w, const json_t *schema, const char *const *allowed) {
    static const char *const silent[] = {"title",   "description", "default",     "examples",
                                         "$schema", "$id",         "$comment",    "$defs",
                                         "definitions", "deprecated", "readOnly", "writeOnly",
                                         NULL};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)schema, key, value) {
        bool known = false;
        for (const char *const *s = silent; *s; s++)
            known = known || strcmp(key, *s) == 0;
        for (const char *const *s = allowed; *s; s++)
            known = known || strcmp(key, *s) == 0;
        if (!known)
            return refuse_as(w, DPI_STATUS_UNSUPPORTED, "the keyword '%.60s' is not understood "
                             "here (docs/grammar.md has what is)", key);
    }
    return DPI_STATUS_OK;
}

/* An optional count; *value keeps its default where there is none. */
static dpi_status read_least(const output *w, const json_t *schema, const char *key,
                             int32_t *value) {
    const json_t *found = json_object_get(schema, key);
    const double count = found ? json_number_value(found) : *value;
    if (found && (!dpi_schema_is_whole(found) || count < 0 || count > DPI_GRAMMAR_REPEAT_MAX))
        return refuse_value(w, key, found, "integers 0..10000");
    *value = (int32_t)count;
    return DPI_STATUS_OK;
}

/* The same for the most that there may be of what has n_bytes or more. -1: there is no such bound,
 * or none that is written. */
static dpi_status read_most(output *w, const json_t *schema, const char *key, int32_t n_bytes,
                            int32_t *value) {
    const json_t *found = json_object_get(schema, key);
    const double count = found ? json_number_value(found) : 0;
    *value = -1;
    if (!found)
        return DPI_STATUS_OK;
    if (!dpi_schema_is_whole(found) || count < 0)
        return refuse_value(w, key, found, "integers from 0 on");
    if (count <= w->written_max)
        *value = (int32_t)count;
    else if (count * n_bytes < (double)w->most_bytes)
        w->most_bytes = (uint64_t)(count * n_bytes);
    return DPI_STATUS_OK;
}

/* Which is above the least that there may be. */
static dpi_status check_counts(const output *w, const json_t *schema, const char *least,
                               const char *most) {
    const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);
    return low && high && json_number_value(high) < json_number_value(low)
               ? refuse_as(w, DPI_STATUS_FORMAT, "%s is below %s", most, least)
               : DPI_STATUS_OK;
}

static void put_times(output *w, int32_t least, int32_t most) {
    if (most < 0)
        put(w, "{%d,}", (int)least);
    else
        put(w, "{%d,%d}", (int)least, (int)most);
}

/* ---- Kinds of values ------------------------------------------------------------------------- */

static dpi_status put_schema(output *w, const json_t *schema);

/* The name of a rule, which is written later. */
static dpi_status put_part(output *w, const json_t *schema, const char *from) {
    size_t i = 0;
    while (i < w->n_parts && (w->parts[i].schema != schema || w->parts[i].from != from))
        i++;
    if (i == DPI_GRAMMAR_RULES_MAX)
        return refuse_as(w, DPI_STATUS_LIMIT, "more than %d schemas and properties",
                         DPI_GRAMMAR_RULES_MAX);
    if (i == w->n_parts) {
        if (!dpi_grow(&w->parts, &w->parts_capacity, w->n_parts + 1, sizeof *w->parts))
            return dpi_no_memory(w->err, "the grammar of a schema");
        w->parts[w->n_parts++] = (part){schema, from, w->property};
    }
    put(w, "d%zu", i);
    return DPI_STATUS_OK;
}

/* A schema in a place that is written more than once. A value without parts is as short as a name,
 * and opens no rule. */
static dpi_status put_inner(output *w, const json_t *schema) {
    const char *type = json_string_value(json_object_get(schema, "type"));
    const bool has_parts = !json_is_object(schema) || !type || strcmp(type, "object") == 0 ||
                           strcmp(type, "array") == 0 || json_object_get(schema, "enum");
    return has_parts ? put_part(w, schema, NULL) : put_schema(w, schema);
}

static dpi_status put_string(output *w, const json_t *schema) {
    static const char *const keys[] = {"type", "minLength", "maxLength", "format", NULL};
    static const char *const formats[] = {"date", "time", "date-time", "uuid", NULL};
    const char *format = json_string_value(json_object_get(schema, "format"));
    int32_t least = 0, most = -1;
    DPI_TRY(check_keys(w, schema, keys));
    DPI_TRY(read_least(w, schema, "minLength", &least));
    DPI_TRY(read_most(w, schema, "maxLength", 1, &most));
    DPI_TRY(check_counts(w, schema, "minLength", "maxLength"));
    if (json_object_get(schema, "format") &&
        (least > 0 || json_object_get(schema, "maxLength")))
        return refuse_as(w, DPI_STATUS_UNSUPPORTED,
                         "minLength and maxLength beside a format are not understood here");
    if (!json_object_get(schema, "format")) {
        put(w, "\"\\\"\" char");
        put_times(w, least, most);
        put(w, " \"\\\"\"");
        return DPI_STATUS_OK;
    }
    for (const char *const *f = formats; format && *f; f++)
        if (strcmp(format, *f) == 0) {
            put(w, "\"\\\"\" %s \"\\\"\"", *f);
            return DPI_STATUS_OK;
        }
    return refuse_as(w, DPI_STATUS_UNSUPPORTED,
                     "format: found '%.40s', allowed date, time, date-time and uuid",
                     format ? format : "?");
}

static dpi_status put_array(output *w, const json_t *schema) {
    static const char *const keys[] = {"type", "items", "minItems", "maxItems", NULL};
    const json_t *items = json_object_get(schema, "items");
    int32_t least = 0, most = -1;
    DPI_TRY(check_keys(w, schema, keys));
    DPI_TRY(read_least(w, schema, "minItems", &least));
    DPI_TRY(read_most(w, schema, "maxItems", 2, &most)); /* with its comma */
    DPI_TRY(check_counts(w, schema, "minItems", "maxItems"));
    if (most == 0) {
        put(w, "\"[]\"");
        return DPI_STATUS_OK;
    }
    put(w, "\"[\" (");
    DPI_TRY(items ? put_inner(w, items) : (put(w, "any"), DPI_STATUS_OK));
    put(w, " (\",\" sp ");
    DPI_TRY(items ? put_inner(w, items) : (put(w, "any"), DPI_STATUS_OK));
    put(w, ")");
    put_times(w, least > 0 ? least - 1 : 0, most < 0 ? -1 : most - 1);
    put(w, least == 0 ? ")? \"]\"" : ") \"]\"");
    return DPI_STATUS_OK;
}

static bool is_required(const json_t *required, const char *key) {
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)required, i, name)
        if (json_is_string(name) && strcmp(json_string_value(name), key) == 0)
            return true;
    return false;
}

static dpi_status put_property(output *w, const char *key, const json_t *value) {
    const char *outer = w->property;
    json_t *name = json_string(key);
    dpi_status status = put_value(w, name);
    json_decref(name);
    put(w, " \":\" sp ");
    w->property = key;
    if (status == DPI_STATUS_OK)
        status = put_inner(w, value);
    w->property = outer;
    return status;
}

/* The name of the rule of the properties behind one, if there are any. */
static dpi_status put_rest(output *w, const json_t *schema, const json_t *properties,
                           const char *key) {
    void *at = json_object_key_to_iter(key);
    at = json_object_iter_next((json_t *)properties, at);
    put(w, " ");
    return at ? put_part(w, schema, json_object_iter_key(at)) : DPI_STATUS_OK;
}

/* The rule of these: one with its comma, then those behind it. */
static dpi_status put_properties_from(output *w, const json_t *schema, const char *key) {
    const json_t *properties = json_object_get(schema, "properties");
    put(w, "(\",\" sp ");
    DPI_TRY(put_property(w, key, json_object_get(properties, key)));
    put(w, is_required(json_object_get(schema, "required"), key) ? ")" : ")?");
    return put_rest(w, schema, properties, key);
}

/* One choice for each property that may be the first one. */
static dpi_status put_properties(output *w, const json_t *schema, const json_t *properties,
                                 const json_t *required) {
    const char *key;
    json_t *value;
    bool first = true, needed = false;
    json_object_foreach((json_t *)properties, key, value) {
        if (needed)
            break;
        put(w, first ? "(" : " | ");
        DPI_TRY(put_property(w, key, value));
        DPI_TRY(put_rest(w, schema, properties, key));
        first = false;
        needed = is_required(required, key);
    }
    if (!first)
        put(w, needed ? ")" : ")?");
    return DPI_STATUS_OK;
}

static dpi_status put_object(output *w, const json_t *schema) {
    static const char *const keys[] = {"type", "properties", "required", "additionalProperties",
                                       NULL};
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *required = json_object_get(schema, "required");
    const json_t *others = json_object_get(schema, "additionalProperties");
    size_t i;
    json_t *name;
    DPI_TRY(check_keys(w, schema, keys));
    if (others && !json_is_false(others))
        return refuse_value(w, "additionalProperties", others, "false");
    if ((properties && !json_is_object(properties)) || (required && !json_is_array(required)))
        return refuse(w, "properties must be an object, required an array");
    json_array_foreach((json_t *)required, i, name)
        if (!json_is_string(name) || !json_object_get(properties, json_string_value(name)))
            return refuse(w, "a required property is not among the properties");
    if (!properties && !others) {
        put(w, "any-object");
        return DPI_STATUS_OK;
    }
    put(w, "\"{\" ");
    DPI_TRY(put_properties(w, schema, properties, required));
    put(w, " \"}\"");
    return DPI_STATUS_OK;
}

/* ---- Schemas --------------------------------------------------------------------------------- */

static bool is_of_type(const json_t *value, const char *type) {
    return strcmp(type, "object") == 0    ? json_is_object(value)
           : strcmp(type, "array") == 0   ? json_is_array(value)
           : strcmp(type, "string") == 0  ? json_is_string(value)
           : strcmp(type, "integer") == 0 ? dpi_schema_is_whole(value)
           : strcmp(type, "number") == 0  ? json_is_number(value)
           : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
                                          : strcmp(type, "null") == 0 && json_is_null(value);
}

/* Whether a value is of the type that stands beside it, if there is one. */
static bool is_typed(const json_t *value, const json_t *type) {
    size_t i;
    json_t *one;
    if (json_is_string(type))
        return is_of_type(value, json_string_value(type));
    json_array_foreach((json_t *)type, i, one)
        if (json_is_string(one) && is_of_type(value, json_string_value(one)))
            return true;
    return type == NULL;
}

/* Values of another type than `type` (NULL: any) are no choices. */
static dpi_status put_choices(output *w, const json_t *choices, bool are_schemas,
                              const json_t *type) {
    size_t i, n = 0;
    json_t *choice;
    if (!json_is_array(choices) || json_array_size(choices) == 0)
        return refuse(w, "enum, anyOf and oneOf must be arrays that are not empty");
    if (are_schemas && json_array_size(choices) > CHOICES_MAX)
        return refuse_as(w, DPI_STATUS_LIMIT, "anyOf or oneOf of more than %d schemas",
                         CHOICES_MAX);
    put(w, "(");
    json_array_foreach((json_t *)choices, i, choice) {
        if (!are_schemas && !is_typed(choice, type))
            continue;
        put(w, n++ > 0 ? " | " : "");
        DPI_TRY(are_schemas ? put_schema(w, choice) : put_value(w, choice));
    }
    put(w, ")");
    return n > 0 ? DPI_STATUS_OK
                 : refuse_value(w, "enum or const", choices, "values of the type beside it");
}

static dpi_status put_ref(output *w, const json_t *schema) {
    static const char *const keys[] = {"$ref", NULL};
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    char *pointer = strdup(ref ? ref : "");
    if (!pointer)
        return dpi_no_memory(w->err, "the grammar of a schema");
    const json_t *target = dpi_schema_find(w->root, pointer);
    free(pointer);
    DPI_TRY(check_keys(w, schema, keys));
    if (!target)
        return refuse_value(w, "$ref", json_object_get(schema, "$ref"),
                            "'#' and pointers such as '#/$defs/NAME' to a schema that is there");
    return put_part(w, target, NULL);
}

static dpi_status put_type(output *w, const json_t *schema, const char *type) {
    static const char *const keys[] = {"type", NULL};
    if (strcmp(type, "object") == 0)
        return put_object(w, schema);
    if (strcmp(type, "array") == 0)
        return put_array(w, schema);
    if (strcmp(type, "string") == 0)
        return put_string(w, schema);
    DPI_TRY(check_keys(w, schema, keys));
    if (strcmp(type, "integer") != 0 && strcmp(type, "number") != 0 &&
        strcmp(type, "boolean") != 0 && strcmp(type, "null") != 0)
        return refuse_as(w, DPI_STATUS_FORMAT, "type: found '%.40s', allowed object, array, "
                         "string, integer, number, boolean and null", type);
    put(w, "%s", type);
    return DPI_STATUS_OK;
}

/* A list of types: names alone, without keywords of one of them. */
static dpi_status put_types(output *w, const json_t *types) {
    size_t i;
    json_t *type;
    put(w, "(");
    json_array_foreach((json_t *)types, i, type) {
        json_t *alone = json_pack("{s:O}", "type", type);
        put(w, i > 0 ? " | " : "");
        const dpi_status status = json_is_string(type)
                                      ? put_type(w, alone, json_string_value(type))
                                      : refuse(w, "type must be a name, or a list of names");
        json_decref(alone);
        DPI_TRY(status);
    }
    put(w, ")");
    return DPI_STATUS_OK;
}

static dpi_status put_kind(output *w, const json_t *schema) {
    static const char *const of_enum[] = {"enum", "type", NULL};
    static const char *const of_const[] = {"const", "type", NULL};
    static const char *const of_any[] = {"anyOf", "oneOf", NULL};
    static const char *const of_type[] = {"type", NULL};
    const json_t *any = json_object_get(schema, "anyOf"), *one = json_object_get(schema, "oneOf");
    const json_t *type = json_object_get(schema, "type");
    if (json_object_get(schema, "$ref"))
        return put_ref(w, schema);
    if (any || one) {
        DPI_TRY(check_keys(w, schema, of_any));
        return any && one ? refuse(w, "anyOf and oneOf in one schema")
                          : put_choices(w, any ? any : one, true, NULL);
    }
    if (json_object_get(schema, "enum")) {
        DPI_TRY(check_keys(w, schema, of_enum));
        return put_choices(w, json_object_get(schema, "enum"), false, type);
    }
    if (json_object_get(schema, "const")) {
        DPI_TRY(check_keys(w, schema, of_const));
        json_t *choices = json_pack("[O]", json_object_get(schema, "const"));
        const dpi_status status = put_choices(w, choices, false, type);
        json_decref(choices);
        return status;
    }
    if (json_is_string(type))
        return put_type(w, schema, json_string_value(type));
    DPI_TRY(check_keys(w, schema, of_type));
    if (json_is_array(type) && json_array_size(type) > 0)
        return put_types(w, type);
    if (type)
        return refuse(w, "type must be a name, or a list of names");
    put(w, "any");
    return DPI_STATUS_OK;
}

static dpi_status put_schema(output *w, const json_t *schema) {
    if (json_is_true(schema)) {
        put(w, "any");
        return DPI_STATUS_OK;
    }
    if (!json_is_object(schema))
        return refuse(w, "a schema must be an object, or true");
    if (++w->nesting > NESTING_MAX / 2) /* an object opens two groups */
        return refuse_as(w, DPI_STATUS_LIMIT, "more than %d schemas in schemas", NESTING_MAX / 2);
    put(w, "(");
    DPI_TRY(put_kind(w, schema));
    put(w, ")");
    w->nesting--;
    return DPI_STATUS_OK;
}

static dpi_status put_all(output *w) {
    put_bytes(w, basics, sizeof basics - 1);
    put(w, "root ::= ");
    DPI_TRY(put_schema(w, w->root));
    while (w->n_written < w->n_parts && !w->no_memory) {
        const part p = w->parts[w->n_written];
        put(w, "\nd%zu ::= ", w->n_written++);
        w->property = p.property;
        DPI_TRY(p.from ? put_properties_from(w, p.schema, p.from) : put_schema(w, p.schema));
    }
    put(w, "\n");
    if (!w->no_memory)
        return DPI_STATUS_OK;
    return w->n > DPI_GRAMMAR_BYTES_MAX ? dpi_fail(w->err, DPI_STATUS_LIMIT,
                                                   "JSON schema: its grammar has more than %d "
                                                   "bytes",
                                                   DPI_GRAMMAR_BYTES_MAX)
                                        : dpi_no_memory(w->err, "the grammar of a schema");
}

static dpi_status make(const json_t *root, int32_t written_max, dpi_grammar **grammar,
                       dpi_error *err) {
    output w = {.root = root, .written_max = written_max, .most_bytes = UINT64_MAX, .err = err};
    dpi_status status = put_all(&w);
    if (status == DPI_STATUS_OK)
        status = dpi_grammar_parse(w.text, w.n, grammar, err);
    if (status == DPI_STATUS_OK)
        (*grammar)->most_bytes = w.most_bytes;
    free(w.text);
    free(w.parts);
    return status;
}

dpi_status dpi_grammar_from_schema(const char *json, size_t n_bytes, dpi_grammar **grammar,
                                   dpi_error *err) {
    json_error_t why;
    if (!json || !grammar)
        return dpi_fail(err, DPI_STATUS_ARG, "the schema or the grammar is NULL");
    json_t *root = json_loadb(json, n_bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!root) /* a place and no word: by mistake the file may be one of records */
        return dpi_fail(err, DPI_STATUS_FORMAT, "JSON schema: no JSON: line %d, column %d",
                        why.line, why.column);
    /* A bound that is too large to be written is none, for texts that cannot reach it. */
    int32_t written_max = DPI_GRAMMAR_REPEAT_MAX;
    dpi_status status = make(root, written_max, grammar, err);
    while (status == DPI_STATUS_LIMIT && written_max > WRITTEN_MIN)
        status = make(root, written_max /= 2, grammar, err);
    json_decref(root);
    return status;
}
