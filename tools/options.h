/* options.h - the command line of every command, from one table (options.c). */
#ifndef DPI_OPTIONS_H
#define DPI_OPTIONS_H

#include "tools/cli.h"

typedef enum option_id {
    OPT_MODEL, OPT_RHO, OPT_EPSILON, OPT_DELTA, OPT_ACCOUNTANT, OPT_ADJACENCY, OPT_SUBSAMPLE,
    OPT_CLIP, OPT_CENTER, OPT_BATCH, OPT_NUM, OPT_N_PREDICT, OPT_TEMP,
    OPT_TOP_K, OPT_SEED, OPT_PLAIN, OPT_REFERENCE,
    OPT_METHOD, OPT_PRIVATE_TOKENS, OPT_PUBLIC_TEMP, OPT_THRESHOLD, OPT_SIGMA, OPT_NOT_DP,
    OPT_RECORDS, OPT_TEXT_FIELD, OPT_MAX_REF_TOKENS,
    OPT_PRIVATE_PROMPT, OPT_PRIVATE_PROMPT_FILE, OPT_PUBLIC_PROMPT, OPT_PUBLIC_PROMPT_FILE,
    OPT_QUERY, OPT_QUERY_FILE, OPT_SYSTEM, OPT_SYSTEM_FILE, OPT_TEMPLATE,
    OPT_CTX_SIZE, OPT_THREADS, OPT_ISA, OPT_EXACT, OPT_KV, OPT_NO_MMAP,
    OPT_SHAPE, OPT_TYPE, OPT_VOCAB, OPT_LAYERS, OPT_EMBD, OPT_FF, OPT_HEADS, OPT_KV_HEADS,
    OPT_VOCAB_SIZE, OPT_TIED,
    OPT_LIST_METHOD, OPT_LIST_B, OPT_LIST_P, OPT_PREFIX, OPT_LIST_N, OPT_LIST_T, OPT_REPEATS,
    OPT_FORMAT,
    OPT_TOKENS, OPT_OUTPUT, OPT_JSONL, OPT_REPORT, OPT_QUIET, OPT_JSON,
    OPT_CHECK, OPT_NUL, OPT_BOS, OPT_AUDIT_SEED, OPT_AUDIT_REPORT, OPT_HELP,
    N_OPTIONS
} option_id;

/* Commands as bits, for the table's "which commands take this option". */
enum {
    CMD_RUN = 1, CMD_PLAN = 2, CMD_ACCOUNT = 4, CMD_INSPECT = 8, CMD_TOKENIZE = 16,
    CMD_LOGITS = 32, CMD_QUANTIZE = 64, CMD_MAKE_MODEL = 128,
    CMD_BENCH = 256, CMD_VERIFY = 512, CMD_AUDIT = 1024,
    CMD_PRETRAIN = 2048, CMD_DEMO = 4096, CMD_COMPLETION = 8192,
};

/* Choices of --method, in the order of dpi_method from DPI_METHOD_INVISIBLEINK on. */
enum { METHOD_INVISIBLEINK, METHOD_AMIN, METHOD_ADAPMIXED };

enum { MAX_REPORTS = 8 };

/* The value of one option: `given` on the command line, else the default of the table. */
typedef struct option_value {
    bool given;
    int64_t i;     /* INT, FLAG (0 or 1), ENUM (index of the choice) */
    double d;      /* DOUBLE, and INT as a double */
    const char *s; /* STRING, ENUM: the text; NULL without a default */
} option_value;

struct command;

typedef struct args {
    const struct command *command;
    option_value v[N_OPTIONS];
    const char *model;         /* -m, or the first positional; NULL if the command takes none */
    const char *positional[2]; /* what follows MODEL */
    int n_positional;
    const char *reports[MAX_REPORTS]; /* --report, which may be given more than once */
    int n_reports;
} args;

typedef struct command {
    const char *name;      /* "run" */
    int bit;               /* CMD_RUN */
    const char *arguments; /* "MODEL REFS", for the usage line */
    const char *summary;   /* one line for the list of commands */
    const char *details;   /* paragraphs for -h, ended by a newline */
    int takes_model;       /* 1: MODEL is needed */
    int max_positional;    /* positional arguments after MODEL */
    int (*run)(const args *a);
} command;

/* "rho" */
const char *option_name(option_id id);

/* What completion and documents show of an option. Strings are static. */
typedef struct option_view {
    const char *name;
    char short_name; /* 0: none */
    bool takes_value;
    const char *arg;     /* placeholder of the value, such as "FILE"; NULL without one */
    const char *choices; /* "a|b|c"; NULL: any value of its kind */
    const char *help;    /* lines separated by newlines */
} option_view;

/* False if the command does not have this option; *view is then unchanged. */
bool option_view_get(const command *command, int id, option_view *view);

/* Parses argv[1..] of a command. CLI_OK: go on. Anything else is the program's exit code, with
 * the message printed; *done = true if the command was -h and its help is on stdout. */
int options_parse(const command *command, int argc, char **argv, args *a, bool *done);

#endif
