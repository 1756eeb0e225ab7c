/* table.h - rows of named values, printed as Markdown, CSV, JSON or JSON lines. */
#ifndef DPI_TABLE_H
#define DPI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of the choices of -o. */
typedef enum table_format { TABLE_MD, TABLE_CSV, TABLE_JSON, TABLE_JSONL } table_format;

enum { TABLE_MAX_CELLS = 64, TABLE_MAX_TEXT = 96 };

typedef struct table_cell {
    const char *name;
    int digits; /* after the point; -1: a text */
    double value;
    double spread; /* a standard deviation ("value ± spread", or a value of its own); < 0: none */
    char text[TABLE_MAX_TEXT];
} table_cell;

typedef struct table {
    table_format format;
    int n_rows; /* printed so far; columns must be the same in all of them */
    int n_cells; /* of the row that is being filled */
    table_cell cells[TABLE_MAX_CELLS];
} table;

/* Cells of the next row, from left to right. */
void table_text(table *t, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void table_number(table *t, const char *name, int digits, double value);
/* A value and its standard deviation: one cell in Markdown, elsewhere also NAME_sd. */
void table_spread(table *t, const char *name, int digits, double value, double spread);

/* Prints the row to stdout, before the first one also the head, and empties it. */
void table_print_row(table *t);
/* Ends the table. A table without rows is empty, in JSON an empty list. */
void table_end(table *t);

#endif
