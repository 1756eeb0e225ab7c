/* cmd_verify.c - `dpinfer verify`: the sections of a report that follow from its parameters, made a
 * second time. The report comes from anywhere. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/facts.h"
#include "tools/hash.h"
#include "tools/report.h"

/* ---- Reading -------------------------------------------------------------------------------- */

enum { REPORT_BYTES_MAX = 1 << 20 };

static int parse(const char *path, json_t **report) {
    char *text;
    size_t n_bytes;
    if (!cli_read_path(path, &text, &n_bytes))
        return cli_fail(CLI_REPORT, "cannot read %s: %s", path, strerror(errno));
    json_error_t error;
    json_t *root = NULL;
    int code = CLI_OK;
    if (n_bytes > REPORT_BYTES_MAX)
        code = cli_fail(CLI_REPORT, "%s has %zu bytes, allowed %d", path, n_bytes,
                        REPORT_BYTES_MAX);
    else if (!(root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error)))
        code = cli_fail(CLI_REPORT, "%s is not a JSON report: line %d, column %d: %s%s", path,
                        error.line, error.column,
                        json_error_code(&error) == json_error_premature_end_of_input
                            ? "it ends too early" : "it is malformed",
                        n_bytes > 0 && text[0] == '#' ? " (Markdown cannot be verified)" : "");
    private_free(text);
    *report = root;
    return code;
}

/* The version comes first: nothing else is looked at in a form that is not known. */
static int check_schema(const char *path, const json_t *report) {
    const json_t *schema = json_object_get(report, "dpinfer_report");
    if (!json_is_integer(schema))
        return cli_fail(CLI_REPORT, "%s is not a dpinfer report: it has no 'dpinfer_report'", path);
    if (json_integer_value(schema) != REPORT_SCHEMA)
        return cli_fail(CLI_REPORT,
                        "%s has dpinfer_report %" JSON_INTEGER_FORMAT
                        ", this program knows %d: use the version of dpinfer that wrote it",
                        path, json_integer_value(schema), REPORT_SCHEMA);
    return CLI_OK;
}

/* What is taken from `software` and `model` as it is has at least the form that it was written in.
 * New references, or NULL. */
static json_t *copy_software(const json_t *report) {
    static const char *const keys[] = {"program",  "version", "commit",
                                       "compiler", "build",   "sha256"};
    const json_t *found = json_object_get(report, "software");
    json_t *copy = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys && copy; i++) {
        json_t *value = json_object_get(found, keys[i]);
        bool ok = json_is_string(value) || (strcmp(keys[i], "sha256") == 0 && json_is_null(value));
        if (!ok || json_object_set(copy, keys[i], value) != 0) {
            json_decref(copy);
            copy = NULL;
        }
    }
    return copy;
}

static bool is_file(const json_t *file) {
    const json_t *n_bytes = json_object_get(file, "n_bytes");
    const char *hex = json_string_value(json_object_get(file, "sha256"));
    return json_is_integer(n_bytes) && json_integer_value(n_bytes) >= 0 && hex &&
           strlen(hex) == HASH_HEX && strspn(hex, "0123456789abcdef") == HASH_HEX &&
           json_object_size(file) == 2;
}

static json_t *copy_model(const json_t *report) {
    const json_t *found = json_object_get(report, "model");
    json_t *name = json_object_get(found, "name"), *files = json_object_get(found, "files"), *file;
    json_t *is_random = json_object_get(found, "random_weights");
    bool ok = json_is_string(name) && json_is_boolean(is_random) && json_array_size(files) > 0 &&
              json_array_size(files) <= UINT16_MAX;
    size_t i;
    json_array_foreach(files, i, file)
        ok = ok && is_file(file);
    return ok ? json_pack("{s:O, s:O, s:O}", "name", name, "random_weights", is_random, "files",
                          files)
              : NULL;
}

/* ---- Computing a second time ---------------------------------------------------------------- */

/* What the parameters say of each other, beyond what the plan asks of them. */
static int check_parameters(const job *j) {
    if (j->plain)
        return CLI_OK;
    if (j->delta * (double)j->n_records >= 1)
        return cli_fail(CLI_FAILED,
                        "parameters.budget_delta is %g with %" PRId64
                        " records, must be less than 1 / number of records",
                        j->delta, j->n_records);
    const int32_t B = j->sampler.denominator;
    if (!j->assigned && j->n_texts > (j->n_records + B - 1) / B)
        return cli_fail(CLI_FAILED,
                        "parameters.n_texts is %d, must be at most %" PRId64 ": %" PRId64
                        " records in batches of %d",
                        j->n_texts, (j->n_records + B - 1) / B, j->n_records, B);
    return CLI_OK;
}

/* The report as it must be. */
static int recompute(const json_t *report, const char *model_path, json_t **expected) {
    job j;
    dpi_error err;
    const json_t *complete = json_object_get(report, "complete");
    int code = report_read_parameters(json_object_get(report, "parameters"), &j);
    if (code != CLI_OK)
        return code;
    json_t *software = copy_software(report), *model = copy_model(report), *files;
    if (!software || !model || !json_is_boolean(complete))
        code = cli_fail(CLI_REPORT, "the section '%s' is missing or malformed",
                        !software ? "software" : !model ? "model" : "complete");
    j.plan.struct_size = sizeof j.plan;
    if (code == CLI_OK && dpi_sampler_plan_make(&j.sampler, &j.plan, &err) != DPI_STATUS_OK)
        code = cli_fail(CLI_FAILED, "no run has these parameters: %s", err.message);
    if (code == CLI_OK)
        code = check_parameters(&j);
    if (code == CLI_OK && model_path) {
        code = hash_model(model_path, (int64_t)json_array_size(json_object_get(model, "files")),
                          &files);
        if (code == CLI_OK)
            json_object_set_new(model, "files", files);
    }
    if (code != CLI_OK) {
        json_decref(software);
        json_decref(model);
        return code;
    }
    *expected = report_make(&j, json_is_true(complete), software, model);
    return *expected ? CLI_OK : cli_fail(CLI_FAILED, "out of memory for the report");
}

/* ---- Comparing ------------------------------------------------------------------------------ */

typedef struct comparison {
    bool hashed;  /* the model's files were there */
    int n_wrong, n_ok;
    char wrong[256]; /* names of fields that do not hold */
} comparison;

/* One line of a value, without what would steer a terminal. */
static void show(const json_t *value, char *text, size_t size) {
    if (!value) {
        snprintf(text, size, "(none)");
    } else if (json_is_real(value)) {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, size, "%.*g", digits, json_real_value(value));
            if (strtod(text, NULL) == json_real_value(value))
                break;
        }
    } else {
        char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
        snprintf(text, size, "%s", dump ? dump : "?");
        if (dump && strlen(dump) >= size)
            memcpy(text + size - 4, "...", 4);
        private_free(dump);
    }
}

/* Reals may differ by what another mathematical library, or the end of a search, makes of them. */
static bool is_same(const json_t *a, const json_t *b) {
    if (json_is_real(b) && json_is_number(a)) {
        double x = json_number_value(a), y = json_real_value(b);
        return x == y || fabs(x - y) <= 2e-9 * fabs(y);
    }
    return a && b && json_equal(a, b);
}

/* Sections that are not computed but believed. */
static bool is_given(const comparison *c, const char *path) {
    if (strncmp(path, "model.files", 11) == 0)
        return !c->hashed;
    return strcmp(path, "complete") == 0 || strncmp(path, "parameters.", 11) == 0 ||
           strncmp(path, "software.", 9) == 0 || strncmp(path, "model.", 6) == 0;
}

static void compare_leaf(comparison *c, const char *path, const json_t *recorded,
                         const json_t *expected) {
    char left[80], right[80];
    show(recorded, left, sizeof left);
    show(expected, right, sizeof right);
    if (!is_same(recorded, expected)) {
        printf("  WRONG  %s: recorded %s, computed %s\n", path, left, right);
        size_t n = strlen(c->wrong);
        if (n + strlen(path) + 8 < sizeof c->wrong)
            snprintf(c->wrong + n, sizeof c->wrong - n, "%s%s", c->n_wrong > 0 ? ", " : "", path);
        c->n_wrong++;
    } else if (is_given(c, path)) {
        printf("  given  %s: recorded %s\n", path, left);
    } else {
        printf("  ok     %s: recorded %s, computed %s\n", path, left,
               json_is_string(expected) ? "the same" : right);
        c->n_ok++;
    }
}

static void compare(comparison *c, const char *path, const json_t *recorded,
                    const json_t *expected);

/* A key that may be anything, behind the path. */
static void compare_key(comparison *c, const char *path, const char *key, const json_t *recorded,
                        const json_t *expected) {
    char longer[128];
    snprintf(longer, sizeof longer, "%s%s%.40s", path, path[0] ? "." : "", key);
    for (char *at = longer; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            *at = '?';
    compare(c, longer, recorded, expected);
}

static void compare(comparison *c, const char *path, const json_t *recorded,
                    const json_t *expected) {
    const char *key;
    json_t *value;
    if (json_is_object(recorded) && json_is_object(expected)) {
        json_object_foreach((json_t *)expected, key, value)
            compare_key(c, path, key, json_object_get(recorded, key), value);
        json_object_foreach((json_t *)recorded, key, value)
            if (!json_object_get(expected, key))
                compare_key(c, path, key, value, NULL);
    } else if (json_is_array(recorded) && json_is_array(expected)) {
        size_t n = json_array_size(recorded), m = json_array_size(expected);
        for (size_t i = 0; i < (n > m ? n : m); i++) {
            char longer[160];
            snprintf(longer, sizeof longer, "%s[%zu]", path, i);
            compare(c, longer, json_array_get(recorded, i), json_array_get(expected, i));
        }
    } else {
        compare_leaf(c, path, recorded, expected);
    }
}

/* ---- The command ---------------------------------------------------------------------------- */

static int conclude(const comparison *c, const json_t *expected) {
    if (c->n_wrong > 0)
        return cli_fail(CLI_FAILED, "%d field%s not hold: %s", c->n_wrong,
                        c->n_wrong == 1 ? " does" : "s do", c->wrong);
    printf("\n%s\nverified: %d fields follow from the parameters, as recorded%s\n",
           json_string_value(json_object_get(expected, "label")), c->n_ok,
           c->hashed ? "; the model is the one named"
                     : "; the model was not looked at (--model FILE)");
    return CLI_OK;
}

static int verify_main(const args *a) {
    if (a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no REPORT given; see 'dpinfer verify -h'");
    json_t *report = NULL, *expected = NULL;
    comparison c = {.hashed = a->model};
    int code = parse(a->positional[0], &report);
    if (code == CLI_OK)
        code = check_schema(a->positional[0], report);
    if (code == CLI_OK)
        code = recompute(report, a->model, &expected);
    if (code == CLI_OK) {
        compare(&c, "", report, expected);
        code = conclude(&c, expected);
    }
    json_decref(report);
    json_decref(expected);
    return code;
}

const command command_verify = {
    .name = "verify", .bit = CMD_VERIFY, .arguments = "REPORT", .max_positional = 1,
    .run = verify_main,
    .summary = "compute the statement of a report again",
    .details =
        "Takes the JSON that 'run --report' wrote (-: standard input) and computes everything in\n"
        "it that follows from its parameters a second time, without the model and the records.\n"
        "Shows each field as recorded and as computed. With --model FILE the hashes of the model\n"
        "are checked too. Exit code 1 if a field does not hold, 5 if it is not a report.\n\n"
        "'given' are the parameters, and what only the operator can vouch for: that the run took\n"
        "place in this way, with this program. A NOT PRIVATE report is verified as such.\n",
};
