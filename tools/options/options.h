/* options.h - the command line of every command, from one table (option_table.c). */
#ifndef DPI_OPTIONS_H
#define DPI_OPTIONS_H

#include "tools/terminal/cli.h"

typedef enum option_id {
    OPT_MODEL, OPT_RHO, OPT_EPSILON, OPT_DELTA, OPT_ACCOUNTANT, OPT_ADJACENCY, OPT_SUBSAMPLE,
    OPT_KNOWN_BATCHES, OPT_ALLOCATION,
    OPT_CLIP, OPT_CENTER, OPT_BATCH, OPT_NUM, OPT_N_PREDICT, OPT_TEMP,
    OPT_TOP_K, OPT_SEED, OPT_PLAIN, OPT_REFERENCE,
    OPT_METHOD, OPT_NOT_DP,
    OPT_RECORDS, OPT_UNITS, OPT_SUGGEST, OPT_TEXT_FIELD, OPT_UNIT_FIELD, OPT_MAX_PER_UNIT,
    OPT_LABEL_FIELD, OPT_LABELS, OPT_LABEL_NAMES, OPT_NUM_PER_LABEL, OPT_CLUSTER, OPT_HISTOGRAM_RHO,
    OPT_DELIMITER, OPT_ENCODING, OPT_PUBLIC_FIELDS, OPT_MAX_REF_TOKENS, OPT_REF_TOKENS,
    OPT_UNIT_RECORDS,
    OPT_PRIVATE_PROMPT, OPT_PRIVATE_PROMPT_FILE, OPT_PUBLIC_PROMPT, OPT_PUBLIC_PROMPT_FILE,
    OPT_DESCRIBE, OPT_QUERY, OPT_QUERY_FILE, OPT_SYSTEM, OPT_SYSTEM_FILE, OPT_TEMPLATE,
    OPT_EXAMPLE, OPT_EXAMPLE_IN, OPT_RELEASED,
    OPT_ANSWER, OPT_ANSWER_FILE, OPT_KEEP_ANSWER, OPT_STOP, OPT_MIN_WORDS, OPT_MAX_WORDS,
    OPT_KEEP_SPACE, OPT_BAN, OPT_NO_REPEAT, OPT_REPEAT_PENALTY, OPT_LOGIT_BIAS,
    OPT_GRAMMAR, OPT_JSON_SCHEMA,
    OPT_CTX_SIZE, OPT_PARALLEL, OPT_THREADS, OPT_ISA, OPT_EXACT, OPT_KV, OPT_NO_MMAP, OPT_LORA,
    OPT_LORA_SCALE, OPT_CONTROL_VECTOR, OPT_CONTROL_VECTOR_SCALE,
    OPT_SHAPE, OPT_TYPE, OPT_VOCAB, OPT_LAYERS, OPT_EMBD, OPT_FF, OPT_HEADS,
    OPT_KV_HEADS, OPT_VOCAB_SIZE, OPT_TIED,
    OPT_LIST_METHOD, OPT_LIST_B, OPT_LIST_TEXTS, OPT_LIST_P, OPT_PREFIX, OPT_LIST_N, OPT_LIST_T,
    OPT_REPEATS, OPT_FORMAT,
    OPT_TOKENS, OPT_OUTPUT, OPT_JSONL, OPT_REPORT, OPT_REPORT_PROMPTS, OPT_META,
    OPT_SIGN, OPT_KEY, OPT_SIGNATURE,
    OPT_VERIFIED, OPT_VERBOSE, OPT_OVERWRITE, OPT_QUIET, OPT_PROGRESS, OPT_JSON,
    OPT_LEDGER, OPT_DATASET, OPT_SCOPE, OPT_PURE, OPT_SIGMA, OPT_SAMPLING, OPT_STEPS, OPT_NOTE,
    OPT_UNIT_IDS, OPT_PAYERS,
    OPT_VECTORS, OPT_MECHANISM, OPT_WORD_EPSILON, OPT_LIST_MECHANISM, OPT_LIST_EPSILON,
    OPT_NO_LANGUAGE, OPT_SYNONYMS, OPT_TABLE,
    OPT_REMOTE, OPT_REMOTE_MODEL, OPT_KEY_ENV, OPT_KEY_FILE, OPT_CA_FILE, OPT_DRY_RUN,
    OPT_REMOTE_PROMPT, OPT_EXTRACT_PROMPT, OPT_DOCUMENT_TOKENS, OPT_INFER_TOKENS, OPT_INFER_TEMP,
    OPT_REMOTE_TEMP, OPT_REMOTE_TOKENS, OPT_REMOTE_LIMIT, OPT_IN_FLIGHT, OPT_RETRIES,
    OPT_RETRY_WAIT, OPT_TIMEOUT, OPT_VOCABULARY, OPT_DISTANCES, OPT_RARE,
    OPT_REPLACED, OPT_GROUP_SIZE, OPT_CERTIFY, OPT_EFFORT,
    OPT_JOB, OPT_SHARD, OPT_SPREAD, OPT_PARTIAL, OPT_JOURNAL_EVERY, OPT_MAX_HOURS,
    OPT_HOST, OPT_PORT, OPT_AT_A_TIME, OPT_WAITING, OPT_MAX_TOKENS, OPT_PRINCIPALS,
    OPT_SERVED, OPT_SERVE_CONFIG, OPT_SERVED_LEDGER, OPT_ALLOW_STREAM, OPT_RECORD_CACHE,
    OPT_REAL, OPT_TRAIN, OPT_CONTROL, OPT_PROMPTS, OPT_CANARIES, OPT_CONTROLS, OPT_NGRAM,
    OPT_CLAIMED_EPSILON, OPT_CLAIMED_DELTA, OPT_DP_EPSILON, OPT_DP_DELTA, OPT_FEATURES,
    OPT_DIM, OPT_CLUSTERS, OPT_SCALING, OPT_REAL_IS_PUBLIC, OPT_DOMAIN,
    OPT_INSTRUCTION, OPT_TUNE_UNITS, OPT_EXPECTED, OPT_TUNE_STEPS, OPT_POSITIONS, OPT_RANK,
    OPT_FULL, OPT_ALPHA, OPT_TARGETS, OPT_TUNE_CLIP, OPT_LR, OPT_WARMUP, OPT_OPTIMIZER,
    OPT_TUNE_EPSILON, OPT_TUNE_SIGMA, OPT_CHECKPOINT, OPT_CHECKPOINT_STEPS, OPT_ADAPTER,
    OPT_MISMATCH, OPT_WRONG, OPT_LOSS_ON, OPT_ATTRIBUTES, OPT_HISTOGRAM_EPSILON,
    OPT_TUNE_PLAN,
    OPT_TOP_P, OPT_MIN_P, OPT_HELD_OUT, OPT_DRAW_SEED,
    OPT_STEER_LAYERS, OPT_STEER_PUBLIC, OPT_STEER_TEXTS, OPT_STEER_WORDS, OPT_BEST_OF,
    OPT_STEER,
    OPT_MERGE,
    OPT_AUGPE_ADJACENCY, OPT_AUGPE_NUM, OPT_AUGPE_TOKENS, OPT_AUGPE_TEMP, OPT_AUGPE_TOP_K,
    OPT_ROUNDS, OPT_CANDIDATES, OPT_LOOKAHEAD, OPT_SELECT, OPT_THRESHOLD, OPT_VARIATION,
    OPT_CHANGE, OPT_VARIATION_PROMPT,
    OPT_EXAMPLE_RECORDS, OPT_TRIED_NUM, OPT_TRIED_TOP_K,
    OPT_CHECK, OPT_NUL, OPT_BOS, OPT_AUDIT_SEED, OPT_AUDIT_REPORT, OPT_HELP,
    N_OPTIONS
} option_id;

/* Commands as bits, for the table's "which commands take this option". */
enum {
    CMD_RUN = 1,
    CMD_PLAN = 2,
    CMD_ACCOUNT = 4,
    CMD_INSPECT = 8,
    CMD_TOKENIZE = 16,
    CMD_LOGITS = 32,
    CMD_QUANTIZE = 64,
    CMD_MAKE_MODEL = 128,
    CMD_BENCH = 256,
    CMD_VERIFY = 512,
    CMD_AUDIT = 1024,
    CMD_PRETRAIN = 2048,
    CMD_DEMO = 4096,
    CMD_COMPLETION = 8192,
    CMD_LEDGER = 16384,
    CMD_MERGE = 32768,
    CMD_RESUME = 65536,
    CMD_FINETUNE = 1 << 17,
    CMD_PERTURB = 1 << 18,
    CMD_ATTACK = 1 << 19,
    CMD_SERVE = 1 << 20,
    CMD_INFER = 1 << 21,
    CMD_GENERATE = 1 << 22,
    CMD_AUGPE = 1 << 23,
    CMD_EVAL = 1 << 24,
    CMD_RECORDS = 1 << 25,
    CMD_STATISTIC = 1 << 26,
    CMD_PREVIEW = 1 << 27,
    CMD_STEER = 1 << 28,
    CMD_HOLDS_TEXTS = CMD_RUN | CMD_RESUME | CMD_PLAN | CMD_TOKENIZE | CMD_LOGITS | CMD_PERTURB |
                      CMD_ATTACK | CMD_SERVE | CMD_INFER | CMD_FINETUNE | CMD_EVAL |
                      CMD_AUGPE | CMD_LEDGER | CMD_MERGE |
                      CMD_RECORDS | CMD_STATISTIC | CMD_PREVIEW |
                      CMD_STEER, /* of others, or their IDs */
    CMD_GROUPED = CMD_RUN | CMD_PLAN | CMD_AUGPE | CMD_PREVIEW, /* whose help has headings */
};

enum { MAX_REPORTS = 8, MAX_SERVED = 32, MAX_LISTED = 512, MAX_OWN = 32, MAX_WORDS = 1024 };

/* The value of one option: `given` on the command line, else the default of the table, if any. */
typedef struct option_value {
    bool given, is_default;
    int64_t i;     /* INT, FLAG (0 or 1), ENUM (index of the choice) */
    double d;      /* DOUBLE, and INT as a double */
    const char *s; /* STRING, ENUM: the text; NULL without a default */
} option_value;

/* An option that methods have and no row of the table, as it stands on the command line. */
typedef struct own_option {
    const char *option, *text;
} own_option;

/* A value of an option that may be given several times. */
typedef struct listed_option {
    option_id id;
    const char *text;
} listed_option;

struct command;

typedef struct args {
    const struct command *command;
    option_value v[N_OPTIONS];
    own_option own[MAX_OWN];
    int n_own;
    const char *words[MAX_WORDS]; /* arguments that are no options */
    int n_words;
    const char *model;         /* -m, or the first positional; NULL if the command takes none */
    const char **positional; /* [n_positional] the words that follow MODEL */
    int n_positional;
    int argc; /* the words that all of this comes from, the command first */
    char **argv;
    struct dpi_journal *journal; /* resume: of the job that goes on; NULL: none */
    const char *reports[MAX_REPORTS]; /* --report, which may be given more than once */
    int n_reports;
    const char *served[MAX_SERVED]; /* serve: --dataset, the same */
    int n_served;
    listed_option listed[MAX_LISTED]; /* all that may, in the order of the command line */
    int n_listed;
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
    /* What the first positional argument may be: *name and what it is, for i from 0; false: no
     * more. NULL: it is no name of a list. */
    bool (*names)(int i, const char **name, const char **help);
} command;

/* What the value of an option is the path of. FILE, KEY and DIR in its help say that it is one: a
 * new option is read from unless option_table.c says that it is written. */
typedef enum option_file {
    FILE_NONE, /* or the command does not have it */
    FILE_READ,
    FILE_WRITTEN, /* or "-" */
    FILE_OWN,     /* a folder of files that are the program's own */
} option_file;
option_file option_file_of(const struct command *cmd, option_id id);

/* "rho" */
const char *option_name(option_id id);
/* How a command opens its model: --no-mmap, and --lora where it has that. */
dpi_model_options options_model(const args *a);

/* The value of an option as it stands in a file. CLI_OK, or CLI_USAGE with a message that names
 * `source`. */
int option_parse(option_id id, const char *source, const char *text, option_value *value);

/* The library's parameter that the option sets ("denominator" for --batch); NULL: none. */
const char *option_parameter(option_id id);

/* Sets each parameter of options->method that the command line gives or has a default for. CLI_OK,
 * or CLI_USAGE with a message: an option that the method does not have, a value out of range. */
int options_parameters(const args *a, dpi_sampler_options *options);

/* Parses argv[1..] of a command. CLI_OK: go on. Anything else is the program's exit code, with
 * the message printed; *done = true if the command was -h and its help is on stdout. */
int options_parse(const command *command, int argc, char **argv, args *a, bool *done);

#endif
