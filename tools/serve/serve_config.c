/* serve_config.c - see serve_config.h. */
#include "tools/serve/serve_config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "tools/options/records_options.h"

enum { CONFIG_BYTES_MAX = 1 << 20, VALUE_BYTES = 64 };

static int code_of(dpi_status status, const dpi_error *err) {
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_USAGE, err);
}

static const char *kind_of(const json_t *value) {
    static const char *const kinds[] = {"an object", "a list", "a string", "a number", "a number",
                                        "true", "false", "null"};
    return kinds[json_typeof(value)];
}

static int expect_kind(const char *where, const json_t *value, bool ok, const char *allowed) {
    return ok ? CLI_OK
              : cli_fail(CLI_USAGE, "%s: found %s, allowed %s", where, kind_of(value), allowed);
}

/* A path of the file, from where the file is; the caller frees it. */
static int resolve(const char *config, const char *path, char **whole) {
    const char *slash = strrchr(config, '/');
    const int n = path[0] == '/' || !slash ? 0 : (int)(slash - config) + 1;
    if (asprintf(whole, "%.*s%s", n, config, path) >= 0)
        return CLI_OK;
    *whole = NULL;
    return cli_no_memory("datasets");
}

/* ---- A dataset ------------------------------------------------------------------------------- */

static int set_path(dataset *d, const char *config, const char *text) {
    dpi_error err;
    char *whole = NULL;
    int code = resolve(config, text, &whole);
    if (code == CLI_OK)
        code = code_of(dataset_path(d, text[0] ? whole : "", &err), &err);
    free(whole);
    return code;
}

/* A value that is a string, of one of the keys that only a file has. */
static int set_text(dataset *d, const char *where, const char *config, const char *key,
                    const char *text) {
    dpi_error err;
    option_value encoding = {0};
    if (strcmp(key, "name") == 0)
        return code_of(dataset_name(d, text, &err), &err);
    if (strcmp(key, "path") == 0)
        return set_path(d, config, text);
    if (strcmp(key, "delimiter") == 0)
        return records_delimiter(where, text, &d->form);
    const int code = option_parse(OPT_ENCODING, where, text, &encoding);
    if (code == CLI_OK)
        records_encoding(&encoding, &d->form);
    return code;
}

static bool is_of_file(const char *key) {
    return strcmp(key, "name") == 0 || strcmp(key, "path") == 0 || strcmp(key, "delimiter") == 0 ||
           strcmp(key, "encoding") == 0;
}

static int set_value(dataset *d, const char *config, const char *key, const json_t *value) {
    char where[128], number[VALUE_BYTES];
    const char *text = json_string_value(value);
    dpi_error err;
    snprintf(where, sizeof where, "%s.%.60s", d->source.where, key);
    int code = expect_kind(where, value, text || json_is_number(value), "a string or a number");
    if (code == CLI_OK && is_of_file(key)) {
        code = expect_kind(where, value, text != NULL, "a string");
        return code == CLI_OK ? set_text(d, where, config, key, text) : code;
    }
    if (code != CLI_OK)
        return code;
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        snprintf(number, sizeof number, "%.17g", json_number_value(value));
    code = code_of(dataset_set(d, key, text ? text : number, &err), &err); /* knows the key */
    if (code != CLI_OK)
        return code;
    return dataset_key_is_text(key) ? expect_kind(where, value, text != NULL, "a string")
                                   : expect_kind(where, value, text == NULL, "a number");
}

static int read_dataset(json_t *object, int index, const char *config, dataset *d) {
    dataset_source source = {.keys = "name, path, delimiter, encoding, "};
    const char *key;
    json_t *value;
    dpi_error err;
    snprintf(source.where, sizeof source.where, "--config: datasets[%d]", index);
    dataset_init(d, &source);
    int code = expect_kind(source.where, object, json_is_object(object), "an object");
    json_object_foreach(object, key, value)
        code = code == CLI_OK ? set_value(d, config, key, value) : code;
    return code == CLI_OK ? code_of(dataset_check(d, &err), &err) : code;
}

/* ---- The file -------------------------------------------------------------------------------- */

static int no_room(void) {
    return cli_fail(CLI_USAGE, "datasets: found more than %d", DATASETS_MAX);
}

static int read_datasets(const json_t *list, const char *config, serve_config *c) {
    int code = expect_kind("--config: datasets", list, json_is_array(list), "a list");
    for (size_t i = 0; i < json_array_size(list) && code == CLI_OK; i++)
        code = c->n == DATASETS_MAX ? no_room()
                                    : read_dataset(json_array_get(list, i), (int)i, config,
                                                   &c->sets[c->n++]);
    return code;
}

static int read_ledger(const json_t *value, const args *a, serve_config *c) {
    const char *path = json_string_value(value);
    if (a->v[OPT_SERVED_LEDGER].given)
        return cli_fail(CLI_USAGE, "--ledger and --config: ledger: allowed is one of them");
    const int code = expect_kind("--config: ledger", value, path && path[0], "a path");
    return code == CLI_OK ? resolve(a->v[OPT_SERVE_CONFIG].s, path, &c->ledger) : code;
}

static int read_member(const args *a, const char *key, const json_t *value, serve_config *c) {
    if (strcmp(key, "datasets") == 0)
        return read_datasets(value, a->v[OPT_SERVE_CONFIG].s, c);
    if (strcmp(key, "ledger") == 0)
        return read_ledger(value, a, c);
    if (strcmp(key, "$schema") == 0) /* for editors */
        return CLI_OK;
    return cli_fail(CLI_USAGE, "--config: found '%.60s', allowed datasets, ledger", key);
}

static int read_root(const args *a, json_t *root, serve_config *c) {
    const char *key;
    json_t *value;
    int code = expect_kind("--config", root, json_is_object(root), "an object");
    json_object_foreach(root, key, value)
        code = code == CLI_OK ? read_member(a, key, value, c) : code;
    if (code == CLI_OK && !json_object_get(root, "datasets"))
        code = cli_fail(CLI_USAGE, "--config: datasets is not there");
    return code;
}

static int read_file(const args *a, serve_config *c) {
    const char *path = a->v[OPT_SERVE_CONFIG].s;
    char *text;
    size_t n_bytes;
    json_error_t why;
    if (!cli_read_path(path, CONFIG_BYTES_MAX, &text, &n_bytes))
        return cli_fail(cli_read_code(CLI_USAGE), "--config: cannot read %s: %s", path,
                        cli_read_reason());
    json_t *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    dpi_private_free(text);
    const int code = root ? read_root(a, root, c)
                          : cli_fail(CLI_USAGE, "--config: %s is no JSON: line %d, column %d",
                                     path, why.line, why.column);
    json_decref(root);
    return code;
}

int serve_config_read(const args *a, serve_config *c) {
    dpi_error err;
    int code = CLI_OK;
    for (int i = 0; i < a->n_served && code == CLI_OK; i++)
        code = code_of(dataset_parse(a->served[i], &c->sets[c->n++], &err), &err);
    return code == CLI_OK && a->v[OPT_SERVE_CONFIG].given ? read_file(a, c) : code;
}

void serve_config_free(serve_config *c) {
    for (int i = 0; i < c->n; i++)
        dataset_free(&c->sets[i]);
    free(c->ledger);
}
