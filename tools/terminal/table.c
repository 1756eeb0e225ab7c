/* table.c - see table.h. */
#include "tools/terminal/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/terminal/facts.h"
#include "tools/terminal/terminal.h"

static table_cell *add_cell(table *t, const char *name) {
    /* Rows are fixed in the source; the last cell takes what does not fit rather than none. */
    table_cell *c = &t->cells[t->n_cells < TABLE_MAX_CELLS ? t->n_cells++ : TABLE_MAX_CELLS - 1];
    *c = (table_cell){.name = name, .spread = -1};
    return c;
}

/* On a terminal nothing in it steers that; JSON escapes it in its own way. */
static void escape(table_cell *c) {
    size_t n;
    char *shown = isatty(STDOUT_FILENO) ? terminal_text(c->text, strlen(c->text), false, &n) : NULL;
    if (shown)
        snprintf(c->text, sizeof c->text, "%s", shown);
    free(shown);
}

void table_text(table *t, const char *name, const char *format, ...) {
    table_cell *c = add_cell(t, name);
    c->digits = -1;
    va_list list;
    va_start(list, format);
    vsnprintf(c->text, sizeof c->text, format, list);
    va_end(list);
    if (t->format == TABLE_MD || t->format == TABLE_CSV)
        escape(c);
}

void table_spread(table *t, const char *name, int digits, double value, double spread) {
    table_cell *c = add_cell(t, name);
    c->digits = digits;
    c->value = value;
    c->spread = spread;
}

void table_number(table *t, const char *name, int digits, double value) {
    table_spread(t, name, digits, value, -1);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void print_md_head(const table *t) {
    for (int i = 0; i < t->n_cells; i++)
        printf("| %s ", t->cells[i].name);
    printf("|\n");
    for (int i = 0; i < t->n_cells; i++)
        printf("|%s", t->cells[i].digits < 0 ? "---" : "---:");
    printf("|\n");
}

static void print_md_row(const table *t) {
    for (int i = 0; i < t->n_cells; i++) {
        const table_cell *c = &t->cells[i];
        if (c->digits < 0)
            printf("| %s ", c->text);
        else
            printf("| %.*f ", c->digits, c->value);
        if (c->spread >= 0)
            printf("± %.*f ", c->digits, c->spread);
    }
    printf("|\n");
}

/* ---- CSV (RFC 4180) -------------------------------------------------------------------------- */

static void print_quoted(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_csv_head(const table *t) {
    for (int i = 0; i < t->n_cells; i++) {
        printf("%s%s", i ? "," : "", t->cells[i].name);
        if (t->cells[i].spread >= 0)
            printf(",%s_sd", t->cells[i].name);
    }
    printf("\n");
}

static void print_csv_row(const table *t) {
    for (int i = 0; i < t->n_cells; i++) {
        const table_cell *c = &t->cells[i];
        if (i)
            putchar(',');
        if (c->digits < 0)
            print_quoted(c->text);
        else
            printf("%.*f", c->digits, c->value);
        if (c->spread >= 0)
            printf(",%.*f", c->digits, c->spread);
    }
    printf("\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The number as the other formats print it. */
static json_t *number(const table_cell *c, double value) {
    double unit = pow(10, c->digits);
    return c->digits == 0 ? json_integer((json_int_t)llround(value))
                          : json_real(round(value * unit) / unit);
}

static void print_json_row(const table *t) {
    json_t *object = json_object();
    for (int i = 0; i < t->n_cells; i++) {
        const table_cell *c = &t->cells[i];
        json_object_set_new(object, c->name, c->digits < 0 ? facts_string(c->text)
                                                           : number(c, c->value));
        if (c->spread >= 0) {
            char name[TABLE_MAX_TEXT];
            snprintf(name, sizeof name, "%s_sd", c->name);
            json_object_set_new(object, name, number(c, c->spread));
        }
    }
    const size_t ascii = isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0;
    char *line = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12) | ascii);
    printf("%s", line ? line : "{}");
    dpi_private_free(line);
    json_decref(object);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

void table_print_row(table *t) {
    switch (t->format) {
    case TABLE_MD:
        if (t->n_rows == 0)
            print_md_head(t);
        print_md_row(t);
        break;
    case TABLE_CSV:
        if (t->n_rows == 0)
            print_csv_head(t);
        print_csv_row(t);
        break;
    case TABLE_JSON:
        printf("%s", t->n_rows ? ",\n " : "[");
        print_json_row(t);
        break;
    case TABLE_JSONL:
        print_json_row(t);
        printf("\n");
        break;
    }
    fflush(stdout);
    t->n_rows++;
    t->n_cells = 0;
}

void table_end(table *t) {
    if (t->format == TABLE_JSON)
        printf(t->n_rows ? "]\n" : "[]\n");
    t->n_rows = 0;
}
