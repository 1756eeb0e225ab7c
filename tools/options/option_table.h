/* option_table.h - what the options of all commands are: rows of one table, and behind them what
 * the methods of the library take beyond that (dpinfer/registry.h). */
#ifndef DPI_OPTION_TABLE_H
#define DPI_OPTION_TABLE_H

#include "tools/options/options.h"

typedef enum option_type { OPT_INT, OPT_DOUBLE, OPT_STRING, OPT_ENUM, OPT_FLAG } option_type;

/* Headings of the help of a command with many options, in their order. */
typedef enum option_group {
    GROUP_BUDGET, GROUP_DATA, GROUP_PROMPT, GROUP_OUTPUT, GROUP_EXPERT, N_GROUPS
} option_group;

typedef struct option_spec {
    const char *name;
    char short_name; /* 0: none */
    option_type type;
    option_group group;
    int commands;
    const char *arg;    /* placeholder in the help */
    double min, max;    /* INT, DOUBLE */
    bool open;          /* DOUBLE: min itself is not allowed */
    bool open_max;      /* DOUBLE: nor is max */
    bool is_list;       /* may be given more than once; a flag may anyway */
    bool is_hidden;     /* an older spelling: accepted, and not in the help */
    bool own_before;    /* options of methods in this group stand before this one */
    const char *zero;   /* if not NULL: 0 is allowed too, and when */
    const char *choices; /* ENUM: "a|b|c". In the help of a STRING: what it is made of */
    const char *def;    /* default, in the words of the command line; NULL: none */
    const char *parameter; /* the library's, which has type, range and help; NULL: none */
    const char *help;   /* words, wrapped when printed; after those of the parameter */
    int other;          /* commands in which other_help stands in place of all other words */
    const char *other_help;
    /* Of methods alone: */
    const dpi_parameter *own; /* NULL: a row of the table */
    char methods[64]; /* "a, b": which have it; "" if the default method does */
} option_spec;

/* In the order of the help (option_table.c). */
extern const option_spec option_rows[N_OPTIONS];

enum { MAX_METHOD_OPTIONS = 48, OPTION_RANGE_BYTES = 640, OPTION_TEXT_BYTES = 400 };

typedef struct option_table {
    option_spec v[N_OPTIONS + MAX_METHOD_OPTIONS]; /* by option_id, then of methods */
    int n;
    /* What rows point to: */
    char private_methods[64], bench_methods[64];
    char method_help[OPTION_TEXT_BYTES];
} option_table;

void option_table_make(option_table *table);

/* What an option may be: "0.01..100", "0 < x < 1", "a|b". */
void option_range(const option_spec *spec, char *text, size_t size);

/* Whether a command has the option, in its name of today. */
bool option_is_shown(const option_spec *spec, const command *cmd);
/* What the option is to a command, in words without line ends. */
void option_text(const option_spec *spec, const command *cmd, char *text, size_t size);

/* Prints the help of a command to stdout. */
void option_help(const option_table *table, const command *cmd);

#endif
