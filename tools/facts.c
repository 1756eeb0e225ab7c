/* facts.c - see facts.h. */
#include "tools/facts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void facts_init(facts *f) {
    *f = (facts){.json = json_object()};
    f->stream = open_memstream(&f->text, &f->n_text);
    f->failed = !f->json || !f->stream;
}

void facts_free(facts *f) {
    if (f->stream)
        fclose(f->stream);
    free(f->text);
    json_decref(f->json);
    *f = (facts){0};
}

void facts_json(facts *f, const char *key, json_t *value) {
    /* json_object_set_new takes the reference in any case, and refuses NULL. */
    if (json_object_set_new(f->json, key, value) != 0)
        f->failed = true;
}

void facts_line(facts *f, const char *label, const char *format, ...) {
    if (!f->stream)
        return;
    fprintf(f->stream, "  %-18s ", label);
    va_list list;
    va_start(list, format);
    vfprintf(f->stream, format, list);
    va_end(list);
    fputc('\n', f->stream);
}

void facts_gap(facts *f) {
    if (f->stream)
        fputc('\n', f->stream);
}

void facts_int(facts *f, const char *key, const char *label, int64_t value) {
    if (key)
        facts_json(f, key, json_integer(value));
    if (label)
        facts_line(f, label, "%" PRId64, value);
}

void facts_real(facts *f, const char *key, const char *label, double value) {
    if (key)
        facts_json(f, key, json_real(value));
    if (label)
        facts_line(f, label, "%.10g", value);
}

void facts_round_up(double value, int digits, char *text, size_t size) {
    snprintf(text, size, "%.*g", digits, value);
    /* Half a unit in the last digit is at most this share of the value. */
    double step = 1;
    for (int i = 0; i < digits; i++)
        step /= 10;
    for (double x = value; strtod(text, NULL) < value;) {
        x += value * step;
        snprintf(text, size, "%.*g", digits, x);
    }
}

void facts_bound(facts *f, const char *key, const char *label, double value) {
    char text[40];
    facts_round_up(value, 10, text, sizeof text);
    if (key)
        facts_json(f, key, json_real(value));
    if (label)
        facts_line(f, label, "%s", text);
}

void facts_bool(facts *f, const char *key, const char *label, bool value) {
    if (key)
        facts_json(f, key, json_boolean(value));
    if (label)
        facts_line(f, label, "%s", value ? "yes" : "no");
}

/* Strings may come from a model file: bytes that would steer a terminal become '?', and if it is
 * not UTF-8 every byte that is not ASCII. */
static char *clean_text(const char *value) {
    json_t *valid = json_string(value);
    char *text = private_malloc(strlen(value) + 1);
    if (text)
        strcpy(text, value);
    for (char *c = text; c && *c; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !valid))
            *c = '?';
    }
    json_decref(valid);
    return text;
}

json_t *facts_string(const char *value) {
    char *text = clean_text(value);
    json_t *string = text ? json_string(text) : NULL;
    private_free(text);
    return string;
}

void facts_text(facts *f, const char *key, const char *label, const char *value) {
    char *text = clean_text(value);
    if (!text)
        f->failed = true;
    else if (label)
        facts_line(f, label, "%s", text);
    private_free(text);
    if (key)
        facts_json(f, key, facts_string(value));
}

char *facts_dump(facts *f) {
    if (f->failed)
        return NULL;
    return json_dumps(f->json, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
}

int facts_print(facts *f, bool as_json, FILE *stream) {
    if (!f->failed && as_json) {
        char *dump = facts_dump(f);
        if (dump) {
            fprintf(stream, "%s\n", dump);
            private_free(dump);
            return CLI_OK;
        }
    } else if (!f->failed && fflush(f->stream) == 0) {
        fwrite(f->text, 1, f->n_text, stream);
        return CLI_OK;
    }
    return cli_fail(CLI_FAILED, "out of memory while writing the result");
}
