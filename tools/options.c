/* options.c - one table of options, and its parser on getopt_long. */
#include "tools/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum option_type { OPT_INT, OPT_DOUBLE, OPT_STRING, OPT_ENUM, OPT_FLAG } option_type;

typedef struct option_spec {
    const char *name;
    char short_name; /* 0: none */
    option_type type;
    int commands;
    const char *arg;    /* placeholder in the help */
    double min, max;    /* INT, DOUBLE */
    bool open;          /* DOUBLE: min itself is not allowed */
    bool open_max;      /* DOUBLE: nor is max */
    const char *zero;   /* if not NULL: 0 is allowed too, and when */
    const char *choices; /* ENUM: "a|b|c" */
    const char *def;    /* default, in the words of the command line; NULL: none */
    const char *help;   /* lines separated by newlines */
} option_spec;

#define GENERATES (CMD_RUN | CMD_PLAN)
#define LOADS (GENERATES | CMD_INSPECT | CMD_TOKENIZE | CMD_LOGITS | CMD_BENCH | CMD_AUDIT)
#define COMPUTES (GENERATES | CMD_LOGITS | CMD_BENCH | CMD_AUDIT)
#define WRITES_MODEL (CMD_QUANTIZE | CMD_MAKE_MODEL)
#define WRITABLE_TYPES "F32|F16|BF16|Q8_0|Q4_0|Q4_1|Q5_0|Q5_1|Q4_K|Q5_K|Q6_K|Q4_K_M|Q5_K_M"

/* In the order of the help. */
static const option_spec specs[N_OPTIONS] = {
    [OPT_MODEL] = {.name = "model", .short_name = 'm', .type = OPT_STRING,
        .commands = LOADS | CMD_QUANTIZE | CMD_VERIFY,
        .arg = "FILE", .help = "the GGUF model, instead of MODEL"},
    [OPT_RHO] = {.name = "rho", .type = OPT_DOUBLE,
        .commands = GENERATES | CMD_ACCOUNT | CMD_BENCH,
        .arg = "RHO", .min = 0, .max = 1e6, .open = true,
        .help = "privacy budget in zero-concentrated DP (zCDP)"},
    [OPT_EPSILON] = {.name = "epsilon", .type = OPT_DOUBLE, .commands = GENERATES | CMD_ACCOUNT,
        .arg = "EPS", .min = 0, .max = 1e6, .open = true,
        .help = "privacy budget as epsilon at --delta"},
    [OPT_DELTA] = {.name = "delta", .type = OPT_DOUBLE, .commands = GENERATES | CMD_ACCOUNT,
        .arg = "DELTA", .min = 0, .max = 1, .open = true, .open_max = true, .def = "1e-6",
        .help = "delta; must be less than 1 / number of records"},
    [OPT_ACCOUNTANT] = {.name = "accountant", .type = OPT_ENUM, .commands = GENERATES | CMD_ACCOUNT,
        .arg = "NAME", .choices = "zcdp|br|filter", .def = "zcdp",
        .help = "how cost is counted: zcdp; br, exact composition\n"
                "(needs --epsilon); filter, a budget for each record"},
    [OPT_ADJACENCY] = {.name = "adjacency", .type = OPT_ENUM, .commands = GENERATES | CMD_ACCOUNT,
        .arg = "NAME", .choices = "replace-by-null|add-remove|zero-out", .def = "replace-by-null",
        .help = "what neighbouring records are; add-remove needs -B\nand --num"},
    [OPT_SUBSAMPLE] = {.name = "subsample", .type = OPT_DOUBLE, .commands = GENERATES | CMD_ACCOUNT,
        .arg = "Q", .min = 0, .max = 1, .open = true,
        .help = "each record joins a random batch with probability Q,\n"
                "else none; needs --epsilon, -B and --num"},
    [OPT_CLIP] = {.name = "clip", .type = OPT_DOUBLE, .commands = GENERATES | CMD_ACCOUNT,
        .arg = "C", .min = 0, .max = 2047, .open = true,
        .help = "with --accountant filter: the clip bound; without it\ntwice that of zcdp"},
    [OPT_CENTER] = {.name = "center", .type = OPT_FLAG, .commands = GENERATES,
        .help = "shift logits of a record to the public ones before\nthey are clipped"},
    [OPT_BATCH] = {.name = "batch", .short_name = 'B', .type = OPT_INT,
        .commands = GENERATES | CMD_ACCOUNT, .arg = "B", .min = 1, .max = 4096,
        .help = "reference slots per text; without it all records\nup to 16, else 8"},
    [OPT_NUM] = {.name = "num", .type = OPT_INT, .commands = GENERATES, .arg = "N", .min = 1,
        .max = 1 << 30,
        .help = "write at most N texts; without it one per batch\n(1 with --plain)"},
    [OPT_N_PREDICT] = {.name = "n-predict", .short_name = 'n', .type = OPT_INT,
        .commands = GENERATES | CMD_ACCOUNT, .arg = "T", .min = 1, .max = 1 << 20,
        .help = "the most tokens of one text; without it 200, or\n"
                "half the context if that is less"},
    [OPT_TEMP] = {.name = "temp", .type = OPT_DOUBLE, .commands = GENERATES | CMD_ACCOUNT,
        .arg = "TAU", .min = 0.01, .max = 100, .zero = "the likeliest token, with --plain",
        .def = "1", .help = "temperature tau"},
    [OPT_TOP_K] = {.name = "top-k", .type = OPT_INT, .commands = GENERATES | CMD_BENCH, .arg = "K",
        .min = 0, .max = 1 << 18,
        .help = "draw from the K likeliest tokens of the public\n"
                "prompt and those as likely within the clip bound;\n"
                "0: from all; without it 100"},
    [OPT_SEED] = {.name = "seed", .type = OPT_INT, .commands = GENERATES | CMD_MAKE_MODEL,
        .arg = "N", .min = 0, .max = 9007199254740992.0,
        .help = "reproducible randomness: generated text is NOT PRIVATE"},
    [OPT_PLAIN] = {.name = "plain", .type = OPT_FLAG, .commands = GENERATES,
        .help = "no privacy: from the public prompt, or from one\n"
                "record with --reference; NOT PRIVATE"},
    [OPT_REFERENCE] = {.name = "reference", .type = OPT_INT, .commands = GENERATES, .arg = "N",
        .min = 1, .max = 1 << 30,
        .help = "with --plain: from the private prompt of record N,\ncounted from 1"},
    [OPT_METHOD] = {.name = "method", .type = OPT_ENUM, .commands = GENERATES, .arg = "NAME",
        .choices = "invisibleink|amin|adapmixed", .def = "invisibleink",
        .help = "how tokens are drawn; adapmixed guarantees nothing"},
    [OPT_PRIVATE_TOKENS] = {.name = "private-tokens", .type = OPT_INT, .commands = GENERATES,
        .arg = "N", .min = 1, .max = 1 << 20,
        .help = "amin: the most private tokens of a text, which share\nthe budget; without it "
                "all of them"},
    [OPT_PUBLIC_TEMP] = {.name = "public-temp", .type = OPT_DOUBLE, .commands = GENERATES,
        .arg = "TAU", .min = 0.01, .max = 100,
        .help = "amin: temperature of public tokens; without it that\nof --temp"},
    [OPT_THRESHOLD] = {.name = "threshold", .type = OPT_DOUBLE, .commands = GENERATES, .arg = "X",
        .min = -1000, .max = 1000,
        .help = "amin: distance (0..2) of records to the public text\nabove which a token is "
                "private, needs --sigma; without\nit all are while the budget lasts. adapmixed: "
                "of\nscreening, without it 4.5"},
    [OPT_SIGMA] = {.name = "sigma", .type = OPT_DOUBLE, .commands = GENERATES, .arg = "SIGMA",
        .min = 1e-6, .max = 1000,
        .help = "amin: noise of the threshold; adapmixed: of\nscreening, without it 0.01"},
    [OPT_NOT_DP] = {.name = "i-know-this-is-not-dp", .type = OPT_FLAG, .commands = GENERATES,
        .help = "adapmixed runs only with this: NOT PRIVATE"},
    [OPT_RECORDS] = {.name = "records", .type = OPT_INT, .commands = CMD_PLAN, .arg = "N",
        .min = 1, .max = 1 << 30, .help = "number of records, instead of REFS"},
    [OPT_TEXT_FIELD] = {.name = "text-field", .type = OPT_STRING, .commands = GENERATES,
        .arg = "NAME", .def = "text", .help = "field of a .jsonl, column of a .csv with the text"},
    [OPT_MAX_REF_TOKENS] = {.name = "max-ref-tokens", .type = OPT_INT, .commands = GENERATES,
        .arg = "N", .min = 1, .max = 1 << 30,
        .help = "cut each record to at most N tokens; without it to\nwhat the context leaves"},
    [OPT_PRIVATE_PROMPT] = {.name = "private-prompt", .type = OPT_STRING, .commands = GENERATES,
        .arg = "TEXT", .help = "prompt of a record, {reference} stands for its text"},
    [OPT_PRIVATE_PROMPT_FILE] = {.name = "private-prompt-file", .type = OPT_STRING,
        .commands = GENERATES, .arg = "FILE", .help = "the same from a file"},
    [OPT_PUBLIC_PROMPT] = {.name = "public-prompt", .type = OPT_STRING, .commands = GENERATES,
        .arg = "TEXT", .help = "the same task without any record"},
    [OPT_PUBLIC_PROMPT_FILE] = {.name = "public-prompt-file", .type = OPT_STRING,
        .commands = GENERATES, .arg = "FILE", .help = "the same from a file"},
    [OPT_QUERY] = {.name = "query", .type = OPT_STRING, .commands = GENERATES, .arg = "TEXT",
        .help = "answer this question about the records, instead of\n"
                "writing more of their kind; it is public"},
    [OPT_QUERY_FILE] = {.name = "query-file", .type = OPT_STRING, .commands = GENERATES,
        .arg = "FILE", .help = "the same from a file"},
    [OPT_SYSTEM] = {.name = "system", .type = OPT_STRING, .commands = GENERATES, .arg = "TEXT",
        .help = "system message of every prompt"},
    [OPT_SYSTEM_FILE] = {.name = "system-file", .type = OPT_STRING, .commands = GENERATES,
        .arg = "FILE", .help = "the same from a file"},
    [OPT_TEMPLATE] = {.name = "template", .type = OPT_ENUM, .commands = GENERATES,
        .arg = "NAME", .choices = "auto|none|zephyr|llama2|llama3|chatml|mistral", .def = "auto",
        .help = "chat format"},
    [OPT_CTX_SIZE] = {.name = "ctx-size", .short_name = 'c', .type = OPT_INT,
        .commands = GENERATES, .arg = "N", .min = 8, .max = 1 << 20,
        .help = "tokens of one prompt and its text together; without\n"
                "it the model's, 4096 at most"},
    [OPT_THREADS] = {.name = "threads", .short_name = 't', .type = OPT_INT,
        .commands = (COMPUTES & ~CMD_BENCH) | WRITES_MODEL, .arg = "N", .min = 1, .max = 1024,
        .help = "threads; without it all processors"},
    [OPT_ISA] = {.name = "isa", .type = OPT_ENUM, .commands = COMPUTES,
        .arg = "NAME", .choices = "auto|ref|avx2|avx512", .def = "auto",
        .help = "instruction set; the environment's DPI_ISA is used\nif the option is not given"},
    [OPT_EXACT] = {.name = "exact", .type = OPT_FLAG, .commands = COMPUTES,
        .help = "f32 activations and f32 KV cache (slow)"},
    [OPT_KV] = {.name = "kv", .type = OPT_ENUM, .commands = COMPUTES, .arg = "TYPE",
        .choices = "f16|f32", .def = "f16", .help = "number type of the KV cache"},
    [OPT_NO_MMAP] = {.name = "no-mmap", .type = OPT_FLAG, .commands = LOADS,
        .help = "read the model into memory instead of mapping it"},
    [OPT_SHAPE] = {.name = "shape", .type = OPT_ENUM, .commands = CMD_MAKE_MODEL, .arg = "NAME",
        .choices = "tinyllama-1.1b|llama-3.2-1b|llama-3-8b|custom", .def = "custom",
        .help = "shape of the model"},
    [OPT_TYPE] = {.name = "type", .type = OPT_ENUM, .commands = CMD_MAKE_MODEL, .arg = "TYPE",
        .choices = WRITABLE_TYPES, .def = "Q8_0", .help = "type of the weights"},
    [OPT_VOCAB] = {.name = "vocab", .type = OPT_STRING, .commands = CMD_MAKE_MODEL, .arg = "FILE",
        .help = "GGUF file whose vocabulary is taken; without it a\nsynthetic one"},
    [OPT_LAYERS] = {.name = "layers", .type = OPT_INT, .commands = CMD_MAKE_MODEL, .arg = "N",
        .min = 1, .max = 4096, .help = "layers; like the next ones, instead of the shape's"},
    [OPT_EMBD] = {.name = "embd", .type = OPT_INT, .commands = CMD_MAKE_MODEL, .arg = "N",
        .min = 2, .max = 1 << 16, .help = "width of the model"},
    [OPT_FF] = {.name = "ff", .type = OPT_INT, .commands = CMD_MAKE_MODEL, .arg = "N", .min = 1,
        .max = 1 << 18, .help = "width of the feed-forward part"},
    [OPT_HEADS] = {.name = "heads", .type = OPT_INT, .commands = CMD_MAKE_MODEL, .arg = "N",
        .min = 1, .max = 4096, .help = "attention heads"},
    [OPT_KV_HEADS] = {.name = "kv-heads", .type = OPT_INT, .commands = CMD_MAKE_MODEL, .arg = "N",
        .min = 1, .max = 4096, .help = "heads of keys and values"},
    [OPT_VOCAB_SIZE] = {.name = "vocab-size", .type = OPT_INT, .commands = CMD_MAKE_MODEL,
        .arg = "N", .min = 260, .max = 1 << 18, .help = "tokens of a synthetic vocabulary"},
    [OPT_TIED] = {.name = "tied", .type = OPT_FLAG, .commands = CMD_MAKE_MODEL,
        .help = "the output head is the embedding matrix"},
    [OPT_LIST_METHOD] = {.name = "method", .type = OPT_STRING, .commands = CMD_BENCH,
        .arg = "LIST", .def = "plain,invisibleink",
        .help = "of plain, invisibleink and amin, between commas"},
    [OPT_LIST_B] = {.name = "batch", .short_name = 'B', .type = OPT_STRING, .commands = CMD_BENCH,
        .arg = "LIST", .def = "1,4,8,16,32", .help = "numbers of references, between commas"},
    [OPT_LIST_P] = {.name = "prompt", .short_name = 'p', .type = OPT_STRING,
        .commands = CMD_BENCH, .arg = "LIST", .def = "128", .help = "tokens of each prompt"},
    [OPT_PREFIX] = {.name = "prefix", .type = OPT_INT, .commands = CMD_BENCH, .arg = "N",
        .min = 0, .max = 1 << 20, .def = "0",
        .help = "tokens that the prompts of all references begin\nwith, and that are read once"},
    [OPT_LIST_N] = {.name = "n-predict", .short_name = 'n', .type = OPT_STRING,
        .commands = CMD_BENCH, .arg = "LIST", .def = "32", .help = "drawn tokens"},
    [OPT_LIST_T] = {.name = "threads", .short_name = 't', .type = OPT_STRING,
        .commands = CMD_BENCH, .arg = "LIST", .def = "0", .help = "threads; 0: all processors"},
    [OPT_REPEATS] = {.name = "repeats", .short_name = 'r', .type = OPT_INT, .commands = CMD_BENCH,
        .arg = "N", .min = 1, .max = 100, .def = "5", .help = "runs, after one to warm up"},
    [OPT_FORMAT] = {.name = "output", .short_name = 'o', .type = OPT_ENUM, .commands = CMD_BENCH,
        .arg = "FORMAT", .choices = "md|csv|json|jsonl", .def = "md", .help = "form of the table"},
    [OPT_TOKENS] = {.name = "tokens", .type = OPT_STRING, .commands = CMD_LOGITS, .arg = "FILE",
        .help = "token ids separated by white space (-: stdin)"},
    [OPT_OUTPUT] = {.name = "output", .short_name = 'o', .type = OPT_STRING,
        .commands = GENERATES | CMD_LOGITS | CMD_MAKE_MODEL, .arg = "FILE", .def = "-",
        .help = "output file; - is stdout"},
    [OPT_JSONL] = {.name = "jsonl", .type = OPT_FLAG, .commands = GENERATES,
        .help = "one JSON object per text instead of the bare text"},
    [OPT_REPORT] = {.name = "report", .type = OPT_STRING, .commands = GENERATES, .arg = "FILE",
        .help = "also write a report of the privacy statement: as\n"
                "Markdown if the name ends in .md, else as JSON. May be\n"
                "given more than once"},
    [OPT_QUIET] = {.name = "quiet", .short_name = 'q', .type = OPT_FLAG,
        .commands = GENERATES | WRITES_MODEL | CMD_PRETRAIN,
        .help = "no progress and no notes; the statement stays"},
    [OPT_JSON] = {.name = "json", .type = OPT_FLAG,
        .commands = CMD_PLAN | CMD_ACCOUNT | CMD_INSPECT | CMD_AUDIT,
        .help = "JSON with full precision"},
    [OPT_CHECK] = {.name = "check", .type = OPT_FLAG, .commands = CMD_INSPECT,
        .help = "read every weight and refuse non-finite ones"},
    [OPT_NUL] = {.name = "nul", .type = OPT_FLAG, .commands = CMD_TOKENIZE,
        .help = "strings end with a NUL byte; one line of ids each"},
    [OPT_BOS] = {.name = "bos", .type = OPT_FLAG, .commands = CMD_TOKENIZE,
        .help = "begin with BOS if the model wants one"},
    [OPT_AUDIT_SEED] = {.name = "seed", .type = OPT_INT, .commands = CMD_AUDIT, .arg = "N",
        .min = 0, .max = 9007199254740992.0, .def = "1",
        .help = "which records are made up; draws are never seeded"},
    [OPT_AUDIT_REPORT] = {.name = "output", .short_name = 'o', .type = OPT_STRING,
        .commands = CMD_AUDIT, .arg = "FILE", .help = "also write the report to FILE, as JSON"},
    [OPT_HELP] = {.name = "help", .short_name = 'h', .type = OPT_FLAG, .commands = ~0,
        .help = "this text"},
};

const char *option_name(option_id id) { return specs[id].name; }

bool option_view_get(const command *cmd, int id, option_view *view) {
    const option_spec *o = &specs[id];
    if (!(o->commands & cmd->bit))
        return false;
    *view = (option_view){.name = o->name, .short_name = o->short_name,
                          .takes_value = o->type != OPT_FLAG, .arg = o->arg,
                          .choices = o->type == OPT_ENUM ? o->choices : NULL, .help = o->help};
    return true;
}

/* ---- Values --------------------------------------------------------------------------------- */

/* What a number may be: "0.01..100", "0 < x < 1". */
static void range_text(const option_spec *o, char *text, size_t size) {
    int n;
    if (o->type == OPT_INT)
        n = snprintf(text, size, "%.0f..%.0f", o->min, o->max);
    else if (o->open)
        n = snprintf(text, size, "%g < x %s %g", o->min, o->open_max ? "<" : "<=", o->max);
    else
        n = snprintf(text, size, "%g..%g", o->min, o->max);
    if (o->zero && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", or 0 (%s)", o->zero);
}

static bool in_range(const option_spec *o, double x) {
    if (o->zero && x == 0)
        return true;
    return (o->open ? x > o->min : x >= o->min) && (o->open_max ? x < o->max : x <= o->max);
}

static bool parse_number(const option_spec *o, const char *text, option_value *value) {
    /* Only decimal digits, sign, point and exponent: no spaces, hex, inf or nan. */
    if (text[0] == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0')
        return false;
    char *end;
    errno = 0;
    if (o->type == OPT_INT) {
        long long i = strtoll(text, &end, 10);
        if (*end != '\0' || errno != 0)
            return false;
        value->i = i;
        value->d = (double)i;
    } else {
        value->d = strtod(text, &end);
        if (*end != '\0' || !isfinite(value->d))
            return false;
    }
    return in_range(o, value->d);
}

static bool parse_choice(const option_spec *o, const char *text, option_value *value) {
    size_t n = strlen(text);
    int64_t index = 0;
    for (const char *c = o->choices; n > 0; c++, index++) {
        size_t n_choice = strcspn(c, "|");
        if (n_choice == n && memcmp(c, text, n) == 0) {
            value->i = index;
            value->s = text;
            return true;
        }
        c += n_choice;
        if (*c == '\0')
            break;
    }
    return false;
}

static int parse_value(const option_spec *o, const char *text, const char *source,
                       option_value *value) {
    char allowed[96];
    bool ok = true;
    if (o->type == OPT_FLAG) {
        value->i = 1;
    } else if (o->type == OPT_STRING) {
        value->s = text;
    } else if (o->type == OPT_ENUM) {
        ok = parse_choice(o, text, value);
        snprintf(allowed, sizeof allowed, "%s", o->choices);
    } else {
        ok = parse_number(o, text, value);
        range_text(o, allowed, sizeof allowed);
    }
    if (!ok)
        return cli_fail(CLI_USAGE, "%s: found '%s', allowed %s", source, text, allowed);
    return CLI_OK;
}

static int set_default(const option_spec *o, option_value *value) {
    *value = (option_value){0};
    return o->def ? parse_value(o, o->def, o->name, value) : CLI_OK;
}

/* ---- Help ----------------------------------------------------------------------------------- */

static void print_help_lines(const char *help, int column) {
    for (;;) {
        size_t n = strcspn(help, "\n");
        printf("%.*s\n", (int)n, help);
        if (help[n] == '\0')
            break;
        help += n + 1;
        printf("%*s", column, "");
    }
}

static void print_option(const option_spec *o) {
    enum { COLUMN = 30 };
    char left[64];
    int n = o->short_name ? snprintf(left, sizeof left, "  -%c, ", o->short_name)
                          : snprintf(left, sizeof left, "      ");
    n += snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s", o->name, o->arg ? " " : "",
                  o->arg ? o->arg : "");
    printf("%-*s", COLUMN, left);
    if (n >= COLUMN)
        printf("\n%*s", COLUMN, "");
    print_help_lines(o->help, COLUMN);
    char allowed[96] = "";
    if (o->type == OPT_ENUM)
        snprintf(allowed, sizeof allowed, "%s", o->choices);
    else if (o->type == OPT_INT || o->type == OPT_DOUBLE)
        range_text(o, allowed, sizeof allowed);
    if (allowed[0] || o->def)
        printf("%*s(%s%s%s%s)\n", COLUMN, "", allowed, allowed[0] && o->def ? "; " : "",
               o->def ? "default " : "", o->def ? o->def : "");
}

static void print_help(const command *cmd) {
    printf("Usage: dpinfer %s [options]%s%s\n\n%s\nOptions:\n", cmd->name,
           cmd->arguments[0] ? " " : "", cmd->arguments, cmd->details);
    for (int id = 0; id < N_OPTIONS; id++) {
        if (specs[id].commands & cmd->bit)
            print_option(&specs[id]);
    }
    printf("\nExit codes: 0 success, 1 failure while running, 2 bad command line, 3 model file\n"
           "refused, 4 records refused, 5 report refused, 130 and 143 stopped by\n"
           "SIGINT and SIGTERM.\n");
}

/* ---- The parser ----------------------------------------------------------------------------- */

/* getopt_long's view of the options of one command. val = 256 + id tells them apart. */
typedef struct getopt_tables {
    struct option longs[N_OPTIONS + 1];
    char shorts[2 * N_OPTIONS + 2];
} getopt_tables;

static void make_tables(const command *cmd, getopt_tables *t) {
    size_t n_long = 0, n_short = 0;
    t->shorts[n_short++] = ':'; /* tells a missing value from an unknown option */
    for (int id = 0; id < N_OPTIONS; id++) {
        const option_spec *o = &specs[id];
        if (!(o->commands & cmd->bit))
            continue;
        int has_arg = o->type == OPT_FLAG ? no_argument : required_argument;
        t->longs[n_long++] = (struct option){o->name, has_arg, NULL, 256 + id};
        if (o->short_name) {
            t->shorts[n_short++] = o->short_name;
            if (has_arg == required_argument)
                t->shorts[n_short++] = ':';
        }
    }
    t->longs[n_long] = (struct option){0};
    t->shorts[n_short] = '\0';
}

static int find_option(const command *cmd, int c) {
    if (c >= 256)
        return c - 256;
    for (int id = 0; id < N_OPTIONS; id++) {
        if (specs[id].short_name == c && (specs[id].commands & cmd->bit))
            return id;
    }
    return -1;
}

static int take_positionals(const command *cmd, int argc, char **argv, args *a) {
    int at = optind;
    a->model = a->v[OPT_MODEL].s;
    if (cmd->takes_model && !a->model && at < argc)
        a->model = argv[at++];
    if (cmd->takes_model && !a->model)
        return cli_fail(CLI_USAGE, "no MODEL given; see 'dpinfer %s -h'", cmd->name);
    while (at < argc && a->n_positional < cmd->max_positional)
        a->positional[a->n_positional++] = argv[at++];
    if (at < argc)
        return cli_fail(CLI_USAGE, "unexpected argument '%s'; see 'dpinfer %s -h'", argv[at],
                        cmd->name);
    return CLI_OK;
}

int options_parse(const command *cmd, int argc, char **argv, args *a, bool *done) {
    getopt_tables tables;
    make_tables(cmd, &tables);
    *done = false;
    *a = (args){.command = cmd};
    for (int id = 0; id < N_OPTIONS; id++) {
        int code = set_default(&specs[id], &a->v[id]);
        if (code != CLI_OK)
            return code;
    }
    opterr = 0;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1;) {
        int id = find_option(cmd, c);
        if (id < 0) {
            const char *problem = c == ':' ? "needs a value" : "is not an option here";
            return cli_fail(CLI_USAGE, "'%s' %s; see 'dpinfer %s -h'", argv[optind - 1], problem,
                            cmd->name);
        }
        if (id == OPT_HELP) {
            print_help(cmd);
            *done = true;
            return CLI_OK;
        }
        char source[32];
        snprintf(source, sizeof source, "--%s", specs[id].name);
        int code = parse_value(&specs[id], optarg, source, &a->v[id]);
        if (code != CLI_OK)
            return code;
        a->v[id].given = true;
        if (id == OPT_REPORT && a->n_reports == MAX_REPORTS)
            return cli_fail(CLI_USAGE, "--report: given more than %d times", MAX_REPORTS);
        if (id == OPT_REPORT)
            a->reports[a->n_reports++] = optarg;
    }
    /* One place for the one option whose default the environment may change. */
    const char *isa = getenv("DPI_ISA");
    if ((specs[OPT_ISA].commands & cmd->bit) && !a->v[OPT_ISA].given && isa && isa[0]) {
        int code = parse_value(&specs[OPT_ISA], isa, "DPI_ISA", &a->v[OPT_ISA]);
        if (code != CLI_OK)
            return code;
    }
    return take_positionals(cmd, argc, argv, a);
}
