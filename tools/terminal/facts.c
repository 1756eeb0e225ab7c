/* facts.c - see facts.h. */
#include "tools/terminal/facts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/terminal/terminal.h"

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

static json_t *fact_value(const dpi_fact *x) {
    return x->type == DPI_FACT_TEXT   ? facts_string(x->text)
           : x->type == DPI_FACT_INT  ? json_integer(x->integer)
           : x->type == DPI_FACT_FLAG ? json_boolean(x->integer)
                                      : json_real(x->real);
}

/* A fact of the library. */
void facts_add(facts *f, const dpi_fact *fact) {
    char text[sizeof fact->text];
    dpi_fact_text(fact, text, sizeof text);
    if (fact->key)
        facts_json(f, fact->key, fact_value(fact));
    if (fact->label)
        facts_line(f, fact->label, "%s", text);
}

void facts_int(facts *f, const char *key, const char *label, int64_t value) {
    facts_add(f, &(dpi_fact){.key = key, .label = label, .type = DPI_FACT_INT, .integer = value});
}

void facts_real(facts *f, const char *key, const char *label, double value) {
    facts_add(f, &(dpi_fact){.key = key, .label = label, .type = DPI_FACT_REAL, .real = value});
}

void facts_bound(facts *f, const char *key, const char *label, double value) {
    facts_add(f, &(dpi_fact){.key = key, .label = label, .type = DPI_FACT_BOUND, .real = value});
}

void facts_bool(facts *f, const char *key, const char *label, bool value) {
    facts_add(f, &(dpi_fact){.key = key, .label = label, .type = DPI_FACT_FLAG, .integer = value});
}

/* Strings may come from a model file: bytes that would steer a terminal become '?', and if it is
 * not UTF-8 every byte that is not ASCII. */
static char *clean_text(const char *value) {
    json_t *valid = json_string(value);
    char *text = dpi_private_malloc(strlen(value) + 1);
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
    dpi_private_free(text);
    return string;
}

void facts_text(facts *f, const char *key, const char *label, const char *value) {
    char *text = clean_text(value);
    if (!text)
        f->failed = true;
    else if (label)
        facts_line(f, label, "%s", text);
    dpi_private_free(text);
    if (key)
        facts_json(f, key, facts_string(value));
}

char *facts_dump(facts *f) {
    if (f->failed)
        return NULL;
    return json_dumps(f->json, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
}

/* On a terminal nothing in it steers that. */
static int print_text(const char *text, size_t n_bytes, FILE *stream) {
    size_t n;
    char *shown = terminal_text(text, n_bytes, true, &n);
    if (shown)
        fwrite(shown, 1, n, stream);
    free(shown);
    return shown ? CLI_OK : cli_fail(CLI_FAILED, "out of memory while writing the result");
}

int facts_print(facts *f, bool as_json, FILE *stream) {
    const bool screen = isatty(fileno(stream));
    if (!f->failed && as_json) {
        char *dump = json_dumps(f->json, JSON_INDENT(2) | JSON_REAL_PRECISION(17) |
                                             (screen ? JSON_ENSURE_ASCII : 0));
        if (dump) {
            fprintf(stream, "%s\n", dump);
            dpi_private_free(dump);
            return CLI_OK;
        }
    } else if (!f->failed && fflush(f->stream) == 0) {
        if (screen)
            return print_text(f->text, f->n_text, stream);
        fwrite(f->text, 1, f->n_text, stream);
        return CLI_OK;
    }
    return cli_fail(CLI_FAILED, "out of memory while writing the result");
}
