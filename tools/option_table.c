/* option_table.c - see option_table.h. */
#include "tools/option_table.h"

#include <stdio.h>
#include <string.h>

#define GENERATES (CMD_RUN | CMD_PLAN)
#define LOADS (GENERATES | CMD_INSPECT | CMD_TOKENIZE | CMD_LOGITS | CMD_BENCH | CMD_AUDIT | \
               CMD_SERVE)
#define COMPUTES (GENERATES | CMD_LOGITS | CMD_BENCH | CMD_AUDIT | CMD_SERVE)
#define ADAPTS (GENERATES | CMD_INSPECT | CMD_LOGITS | CMD_SERVE)
#define PERTURBS (CMD_PERTURB | CMD_INFER)
#define READS_WORDS (PERTURBS | CMD_ATTACK)
#define WRITES_MODEL (CMD_QUANTIZE | CMD_MAKE_MODEL)
#define WRITABLE_TYPES "F32|F16|BF16|Q8_0|Q4_0|Q4_1|Q5_0|Q5_1|Q4_K|Q5_K|Q6_K|Q4_K_M|Q5_K_M"

/* In the order of the help. */
static const option_spec specs[N_OPTIONS] = {
    [OPT_MODEL] = {.name = "model", .group = GROUP_DATA, .short_name = 'm', .type = OPT_STRING,
        .commands = CMD_EVAL | LOADS | CMD_QUANTIZE | CMD_VERIFY,
        .arg = "FILE", .help = "the GGUF model, instead of MODEL"},
    [OPT_RHO] = {.name = "rho", .commands = GENERATES | CMD_ACCOUNT | CMD_BENCH | CMD_LEDGER,
        .arg = "RHO",
        .parameter = "rho", .group = GROUP_BUDGET},
    [OPT_EPSILON] = {.name = "epsilon", .commands = GENERATES | CMD_ACCOUNT | CMD_LEDGER,
        .arg = "EPS",
        .parameter = "epsilon", .group = GROUP_BUDGET},
    [OPT_DELTA] = {.name = "delta", .commands = GENERATES | CMD_ACCOUNT | CMD_LEDGER,
        .arg = "DELTA",
        .parameter = "delta", .def = "1e-6", .group = GROUP_BUDGET},
    [OPT_ACCOUNTANT] = {.name = "accountant", .commands = GENERATES | CMD_ACCOUNT, .arg = "NAME",
        .parameter = "accountant", .def = "zcdp", .group = GROUP_BUDGET,
        .help = "br needs --epsilon"},
    [OPT_ADJACENCY] = {.name = "adjacency", .commands = GENERATES | CMD_ACCOUNT, .arg = "NAME",
        .parameter = "adjacency", .def = "replace-by-null", .group = GROUP_BUDGET,
        .help = "add-remove needs -B and --num"},
    [OPT_SUBSAMPLE] = {.name = "subsample", .commands = GENERATES | CMD_ACCOUNT, .arg = "Q",
        .parameter = "subsample", .group = GROUP_BUDGET,
        .help = "needs --epsilon, -B and --num"},
    [OPT_CLIP] = {.name = "clip", .commands = GENERATES | CMD_ACCOUNT, .arg = "C",
        .parameter = "clip", .group = GROUP_EXPERT, .help = "without it twice that of zcdp"},
    [OPT_CENTER] = {.name = "center", .commands = GENERATES, .parameter = "center",
        .group = GROUP_EXPERT},
    [OPT_BATCH] = {.name = "batch", .short_name = 'B', .commands = GENERATES | CMD_ACCOUNT,
        .arg = "B", .parameter = "denominator", .group = GROUP_DATA,
        .help = "without it all records up to 16, else 8"},
    [OPT_NUM] = {.name = "num", .group = GROUP_OUTPUT, .type = OPT_INT, .commands = GENERATES,
        .arg = "N", .min = 1,
        .max = 1 << 30,
        .help = "texts, at most one for each batch; without it one for each (1 with --plain)"},
    [OPT_N_PREDICT] = {.name = "n-predict", .short_name = 'n', .commands = GENERATES | CMD_ACCOUNT,
        .arg = "T", .parameter = "n_tokens", .group = GROUP_OUTPUT,
        .help = "without it 200, or half the context if that is less"},
    [OPT_TEMP] = {.name = "temp", .commands = GENERATES | CMD_ACCOUNT, .arg = "TAU",
        .parameter = "tau", .zero = "the likeliest token, in a plain run", .def = "1",
        .group = GROUP_OUTPUT},
    [OPT_TOP_K] = {.name = "top-k", .type = OPT_INT, .commands = CMD_BENCH, .arg = "K",
        .min = 0, .max = 1 << 18,
        .help = "likeliest public tokens that are drawn from; 0: all; without it 100"},
    [OPT_SEED] = {.name = "seed", .group = GROUP_EXPERT, .type = OPT_INT,
        .commands = GENERATES | CMD_MAKE_MODEL,
        .arg = "N", .min = 0, .max = 9007199254740992.0,
        .help = "reproducible randomness: generated text is NOT PRIVATE"},
    [OPT_PLAIN] = {.name = "plain", .group = GROUP_EXPERT, .type = OPT_FLAG,
        .commands = GENERATES,
        .help = "no privacy: from the public prompt, or from one "
                "record with --reference; NOT PRIVATE"},
    [OPT_REFERENCE] = {.name = "reference", .group = GROUP_EXPERT, .type = OPT_INT,
        .commands = GENERATES, .arg = "N",
        .min = 1, .max = 1 << 30,
        .help = "with --plain: from the private prompt of record N, counted from 1"},
    [OPT_METHOD] = {.name = "method", .type = OPT_ENUM, .commands = GENERATES, .arg = "NAME",
        .def = "invisibleink", .group = GROUP_EXPERT},
    [OPT_NOT_DP] = {.name = "i-know-this-is-not-dp", .type = OPT_FLAG, .commands = GENERATES,
        .group = GROUP_EXPERT,
        .help = "a method that guarantees nothing runs with this alone: NOT PRIVATE"},
    [OPT_RECORDS] = {.name = "records", .group = GROUP_DATA, .type = OPT_INT,
        .commands = GENERATES, .arg = "N", .min = 1, .max = 1 << 30,
        .help = "plan: number of records, instead of REFS. With add-remove or --subsample: there "
                "are at most so many, and delta must be below 1/N"},
    [OPT_UNITS] = {.name = "units", .group = GROUP_DATA, .type = OPT_INT,
        .commands = CMD_PLAN, .arg = "N", .min = 1, .max = 1 << 30,
        .help = "number of units, instead of REFS with --unit-field"},
    [OPT_SUGGEST] = {.name = "suggest", .group = GROUP_DATA, .type = OPT_FLAG,
        .commands = CMD_PLAN,
        .help = "a table of B and T for --num texts about --units N or --records N, and which one "
                "would be taken. Needs no MODEL"},
    [OPT_TEXT_FIELD] = {.name = "text-field", .group = GROUP_DATA, .type = OPT_STRING,
        .commands = CMD_EVAL | GENERATES | READS_WORDS,
        .arg = "NAME", .def = "text", .help = "field of a .jsonl, column of a .csv with the text"},
    [OPT_UNIT_FIELD] = {.name = "unit-field", .group = GROUP_DATA, .type = OPT_STRING,
        .commands = GENERATES, .arg = "NAME",
        .help = "field or column with the ID of the person: all records with one ID are protected "
                "together; without it each record is"},
    [OPT_LABEL_FIELD] = {.name = "label-field", .group = GROUP_DATA, .type = OPT_STRING,
        .commands = CMD_EVAL | GENERATES, .arg = "NAME",
        .help = "field or column with a label: each text is for one, which {label} in a prompt "
                "names"},
    [OPT_LABELS] = {.name = "labels", .group = GROUP_DATA, .type = OPT_ENUM,
        .commands = GENERATES, .arg = "WHAT", .choices = "public|private",
        .help = "which unit has which label is public (batches by position), or a secret (hash or "
                "draw); without it what the batches need"},
    [OPT_LABEL_NAMES] = {.name = "label-names", .group = GROUP_DATA, .type = OPT_STRING,
        .commands = GENERATES, .arg = "FILE",
        .help = "labels, one a line; needed where they are private. --num texts, as many of each"},
    [OPT_NUM_PER_LABEL] = {.name = "num-per-label", .group = GROUP_DATA, .type = OPT_STRING,
        .commands = GENERATES, .arg = "FILE",
        .help = "lines of a number of texts and a label, instead of --num"},
    [OPT_CLUSTER] = {.name = "cluster", .group = GROUP_DATA, .type = OPT_INT,
        .commands = GENERATES, .arg = "K", .min = 2, .max = 1024,
        .help = "batches of similar records: each goes to a text of the nearest of K groups of "
                "public texts. Needs --adjacency add-remove"},
    [OPT_HISTOGRAM_RHO] = {.name = "histogram-rho", .group = GROUP_DATA, .type = OPT_DOUBLE,
        .commands = GENERATES, .arg = "RHO", .min = 6.2e-5, .max = 8,
        .help = "private labels: --num texts in proportion to the units of each, counted with "
                "noise at this part of the budget"},
    [OPT_DELIMITER] = {.name = "delimiter", .group = GROUP_DATA, .type = OPT_STRING,
        .commands = CMD_EVAL | GENERATES | READS_WORDS, .arg = "CHAR", .def = ",",
        .help = "between the columns of a .csv; tab: a tab"},
    [OPT_ENCODING] = {.name = "encoding", .group = GROUP_DATA, .type = OPT_ENUM,
        .commands = CMD_EVAL | GENERATES | READS_WORDS, .arg = "NAME",
        .choices = "utf8|latin1", .def = "utf8",
        .help = "of the records; latin1 is converted"},
    [OPT_MAX_PER_UNIT] = {.name = "max-per-unit", .commands = GENERATES, .arg = "M",
        .parameter = "max_per_unit", .group = GROUP_DATA,
        .help = "its first ones; needs --unit-field, without it 4"},
    [OPT_MAX_REF_TOKENS] = {.name = "max-ref-tokens", .group = GROUP_DATA, .type = OPT_INT,
        .commands = GENERATES,
        .arg = "N", .min = 1, .max = 1 << 30,
        .help = "cut each record to at most N tokens; without it to what the context leaves"},
    [OPT_REF_TOKENS] = {.name = "ref-tokens", .group = GROUP_DATA, .type = OPT_INT,
        .commands = GENERATES, .arg = "N", .min = 1, .max = 1 << 20,
        .help = "plan: tokens of a usual record, for the time; without it 300, or "
                "--max-ref-tokens"},
    [OPT_UNIT_RECORDS] = {.name = "unit-records", .group = GROUP_DATA, .type = OPT_INT,
        .commands = GENERATES, .arg = "N", .min = 1, .max = 64,
        .help = "plan: records of a usual unit, for the time; without it --max-per-unit"},
    [OPT_PRIVATE_PROMPT] = {.name = "private-prompt", .group = GROUP_PROMPT, .type = OPT_STRING,
        .commands = GENERATES,
        .arg = "TEXT", .help = "prompt of a record, {reference} stands for its text"},
    [OPT_PRIVATE_PROMPT_FILE] = {.name = "private-prompt-file", .group = GROUP_PROMPT,
        .type = OPT_STRING,
        .commands = GENERATES, .arg = "FILE", .help = "the same from a file"},
    [OPT_PUBLIC_PROMPT] = {.name = "public-prompt", .group = GROUP_PROMPT, .type = OPT_STRING,
        .commands = GENERATES,
        .arg = "TEXT", .help = "the same task without any record"},
    [OPT_PUBLIC_PROMPT_FILE] = {.name = "public-prompt-file", .group = GROUP_PROMPT,
        .type = OPT_STRING,
        .commands = GENERATES, .arg = "FILE", .help = "the same from a file"},
    [OPT_DESCRIBE] = {.name = "describe", .group = GROUP_PROMPT, .type = OPT_STRING,
        .commands = GENERATES, .arg = "TEXT",
        .help = "what kind of documents these are, such as 'hospital discharge letters': makes "
                "both prompts; it is public"},
    [OPT_QUERY] = {.name = "query", .group = GROUP_PROMPT, .type = OPT_STRING,
        .commands = GENERATES, .arg = "TEXT",
        .help = "answer this question about the records, instead of "
                "writing more of their kind; it is public"},
    [OPT_QUERY_FILE] = {.name = "query-file", .group = GROUP_PROMPT, .type = OPT_STRING,
        .commands = GENERATES,
        .arg = "FILE", .help = "the same from a file"},
    [OPT_SYSTEM] = {.name = "system", .group = GROUP_PROMPT, .type = OPT_STRING,
        .commands = GENERATES, .arg = "TEXT",
        .help = "system message of every prompt"},
    [OPT_SYSTEM_FILE] = {.name = "system-file", .group = GROUP_PROMPT, .type = OPT_STRING,
        .commands = GENERATES,
        .arg = "FILE", .help = "the same from a file"},
    [OPT_TEMPLATE] = {.name = "template", .group = GROUP_PROMPT, .type = OPT_ENUM,
        .commands = GENERATES | CMD_SERVE,
        .arg = "NAME", .choices = "auto|none|zephyr|llama2|llama3|chatml|mistral", .def = "auto",
        .help = "chat format"},
    [OPT_CTX_SIZE] = {.name = "ctx-size", .own_before = true, .group = GROUP_EXPERT,
        .short_name = 'c', .type = OPT_INT,
        .commands = GENERATES | CMD_SERVE | CMD_INFER, .arg = "N", .min = 8, .max = 1 << 20,
        .help = "tokens of one prompt and its text together; without "
                "it the model's, 4096 at most"},
    [OPT_PARALLEL] = {.name = "parallel", .group = GROUP_EXPERT, .type = OPT_INT,
        .commands = GENERATES | CMD_RESUME, .arg = "N", .min = 1, .max = 4096,
        .help = "texts that are drawn at a time, the same ones; without it what processors and "
                "memory allow"},
    [OPT_THREADS] = {.name = "threads", .group = GROUP_EXPERT, .short_name = 't', .type = OPT_INT,
        .commands = CMD_EVAL | (COMPUTES & ~CMD_BENCH) | WRITES_MODEL | CMD_RESUME | READS_WORDS,
        .arg = "N", .min = 1, .max = 1024,
        .help = "threads; without it all processors"},
    [OPT_ISA] = {.name = "isa", .group = GROUP_EXPERT, .type = OPT_ENUM,
        .commands = CMD_EVAL | COMPUTES | CMD_RESUME | CMD_INFER,
        .arg = "NAME", .choices = "auto|ref|avx2|avx512", .def = "auto",
        .help = "instruction set; the environment's DPI_ISA is used if the option is not given"},
    [OPT_EXACT] = {.name = "exact", .group = GROUP_EXPERT, .type = OPT_FLAG,
        .commands = COMPUTES | CMD_INFER,
        .help = "f32 activations and f32 KV cache (slow)"},
    [OPT_KV] = {.name = "kv", .group = GROUP_EXPERT, .type = OPT_ENUM,
        .commands = COMPUTES | CMD_INFER,
        .arg = "TYPE",
        .choices = "f16|f32", .def = "f16", .help = "number type of the KV cache"},
    [OPT_NO_MMAP] = {.name = "no-mmap", .group = GROUP_EXPERT, .type = OPT_FLAG,
        .commands = CMD_EVAL | LOADS | READS_WORDS,
        .help = "read the model into memory instead of mapping it"},
    [OPT_LORA] = {.name = "lora", .group = GROUP_DATA, .type = OPT_STRING, .commands = ADAPTS,
        .arg = "FILE", .help = "low-rank adapter of the model, a GGUF file as llama.cpp has them"},
    [OPT_LORA_SCALE] = {.name = "lora-scale", .group = GROUP_EXPERT, .type = OPT_DOUBLE,
        .commands = ADAPTS, .arg = "X", .min = -1000, .max = 1000, .def = "1",
        .help = "what the adapter is multiplied with"},
    [OPT_SHAPE] = {.name = "shape", .type = OPT_ENUM, .commands = CMD_MAKE_MODEL, .arg = "NAME",
        .choices = "tinyllama-1.1b|llama-3.2-1b|llama-3-8b|custom", .def = "custom",
        .help = "shape of the model"},
    [OPT_TYPE] = {.name = "type", .type = OPT_ENUM, .commands = CMD_MAKE_MODEL, .arg = "TYPE",
        .choices = WRITABLE_TYPES, .def = "Q8_0", .help = "type of the weights"},
    [OPT_VOCAB] = {.name = "vocab", .type = OPT_STRING, .commands = CMD_MAKE_MODEL, .arg = "FILE",
        .help = "GGUF file whose vocabulary is taken; without it a synthetic one"},
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
        .arg = "LIST", .def = "plain,invisibleink", .help = "methods, between commas"},
    [OPT_LIST_B] = {.name = "batch", .short_name = 'B', .type = OPT_STRING, .commands = CMD_BENCH,
        .arg = "LIST", .def = "1,4,8,16,32", .help = "numbers of references, between commas"},
    [OPT_LIST_TEXTS] = {.name = "texts", .type = OPT_STRING, .commands = CMD_BENCH, .arg = "LIST",
        .def = "1", .help = "numbers of texts drawn side by side, in shared steps"},
    [OPT_LIST_P] = {.name = "prompt", .short_name = 'p', .type = OPT_STRING,
        .commands = CMD_BENCH, .arg = "LIST", .def = "128", .help = "tokens of each prompt"},
    [OPT_PREFIX] = {.name = "prefix", .type = OPT_INT, .commands = CMD_BENCH, .arg = "N",
        .min = 0, .max = 1 << 20, .def = "0",
        .help = "tokens that the prompts of all references begin with, and that are read once"},
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
    [OPT_OUTPUT] = {.name = "output", .own_before = true, .group = GROUP_OUTPUT,
        .short_name = 'o', .type = OPT_STRING,
        .commands = CMD_EVAL | GENERATES | CMD_RESUME | CMD_LOGITS | CMD_MAKE_MODEL | PERTURBS,
        .arg = "FILE", .def = "-",
        .help = "output file; - is stdout"},
    [OPT_JSONL] = {.name = "jsonl", .group = GROUP_OUTPUT, .type = OPT_FLAG,
        .commands = GENERATES | CMD_MERGE | CMD_RESUME,
        .help = "one JSON object per text instead of the bare text; so does -o x.jsonl, and "
                "-o x.csv a row"},
    [OPT_REPORT] = {.name = "report", .group = GROUP_OUTPUT, .type = OPT_STRING, .is_list = true,
        .commands = GENERATES | CMD_MERGE | CMD_RESUME | PERTURBS, .arg = "FILE",
        .help = "also write a report of the privacy statement: as "
                "Markdown if the name ends in .md, as a page of HTML in .html, else as JSON. May "
                "be given more than once"},
    [OPT_META] = {.name = "meta", .group = GROUP_OUTPUT, .type = OPT_STRING,
        .commands = GENERATES, .arg = "FILE",
        .help = "fields for the report, such as organisation and purpose: a JSON object of texts"},
    [OPT_SIGN] = {.name = "sign", .group = GROUP_OUTPUT, .type = OPT_STRING,
        .commands = GENERATES, .arg = "KEY",
        .help = "sign each report with this SSH key, by ssh-keygen -Y: REPORT.sig"},
    [OPT_KEY] = {.name = "key", .type = OPT_STRING, .commands = CMD_VERIFY, .arg = "FILE",
        .help = "the public SSH key that the report must be signed with"},
    [OPT_SIGNATURE] = {.name = "signature", .type = OPT_STRING, .commands = CMD_VERIFY,
        .arg = "FILE", .help = "with --key; without it REPORT.sig"},
    [OPT_VERIFIED] = {.name = "output", .type = OPT_STRING, .commands = CMD_VERIFY, .arg = "FILE",
        .help = "the texts: their hash must be the one of the report"},
    [OPT_OVERWRITE] = {.name = "overwrite", .group = GROUP_OUTPUT, .type = OPT_FLAG,
        .commands = CMD_EVAL | GENERATES | CMD_MERGE | CMD_RESUME | CMD_LOGITS | CMD_AUDIT |
            WRITES_MODEL | CMD_PRETRAIN | PERTURBS,
        .help = "replace files that are written and are there already"},
    [OPT_QUIET] = {.name = "quiet", .group = GROUP_OUTPUT, .short_name = 'q', .type = OPT_FLAG,
        .commands = GENERATES | CMD_RESUME | WRITES_MODEL | CMD_PRETRAIN,
        .help = "no progress and no notes; the statement stays"},
    [OPT_PROGRESS] = {.name = "progress", .group = GROUP_OUTPUT, .type = OPT_ENUM,
        .commands = GENERATES, .arg = "FORM", .choices = "auto|line|plain|none", .def = "auto",
        .help = "on stderr: auto is a line where that is a terminal; plain is lines for a log"},
    [OPT_JSON] = {.name = "json", .group = GROUP_OUTPUT, .type = OPT_FLAG,
        .commands = CMD_EVAL | CMD_PLAN | CMD_ACCOUNT | CMD_INSPECT | CMD_AUDIT | CMD_LEDGER | PERTURBS,
        .help = "JSON with full precision"},
    [OPT_LEDGER] = {.name = "ledger", .group = GROUP_BUDGET, .type = OPT_STRING,
        .commands = GENERATES | CMD_VERIFY, .arg = "FILE",
        .help = "charge the run to this ledger ('dpinfer help ledger') before a record is read; "
                "plan charges it with --job alone, and verify looks for the charge in it"},
    [OPT_DATASET] = {.name = "dataset", .group = GROUP_BUDGET, .type = OPT_STRING,
        .commands = GENERATES | CMD_LEDGER, .arg = "NAME",
        .help = "of the ledger; without it the only one"},
    [OPT_VECTORS] = {.name = "vectors", .type = OPT_STRING,
        .commands = READS_WORDS | CMD_VERIFY, .arg = "FILE", .group = GROUP_DATA,
        .help = "a word and its numbers in each line, frequent words first, instead of MODEL"},
    [OPT_MECHANISM] = {.name = "mechanism", .type = OPT_ENUM, .commands = PERTURBS,
        .arg = "NAME", .choices = "rantext|santext+|custext+|exponential|calibrated",
        .def = "rantext",
        .group = GROUP_BUDGET,
        .help = "that draws a word"},
    [OPT_WORD_EPSILON] = {.name = "epsilon", .type = OPT_DOUBLE, .commands = PERTURBS,
        .arg = "EPS", .min = .001, .max = 64, .def = "6", .group = GROUP_BUDGET,
        .help = "of a word, as the mechanism's paper counts it"},
    [OPT_LIST_MECHANISM] = {.name = "mechanism", .type = OPT_STRING, .commands = CMD_ATTACK,
        .arg = "LIST", .def = "rantext,santext+,custext+,exponential,calibrated",
        .group = GROUP_BUDGET,
        .help = "mechanisms, between commas"},
    [OPT_LIST_EPSILON] = {.name = "epsilon", .type = OPT_STRING, .commands = CMD_ATTACK,
        .arg = "LIST", .def = "0.01,2,6,10,14,18", .group = GROUP_BUDGET,
        .help = "of a word, as each paper counts it: numbers 0.001..64, between commas"},
    [OPT_NO_LANGUAGE] = {.name = "no-language", .type = OPT_FLAG, .commands = CMD_ATTACK,
        .group = GROUP_EXPERT, .help = "no guesses of MODEL as a language model"},
    [OPT_TABLE] = {.name = "output", .short_name = 'o', .type = OPT_ENUM, .commands = CMD_ATTACK,
        .arg = "FORMAT", .choices = "md|csv|json|jsonl|svg", .def = "md", .group = GROUP_OUTPUT,
        .help = "form of the table; svg: plots of it"},
    [OPT_REMOTE] = {.name = "remote", .type = OPT_STRING, .commands = CMD_INFER, .arg = "URL",
        .group = GROUP_DATA, .help = "the server: https://HOST[:PORT][/v1]"},
    [OPT_REMOTE_MODEL] = {.name = "remote-model", .type = OPT_STRING, .commands = CMD_INFER,
        .arg = "NAME", .group = GROUP_DATA, .help = "of the model there"},
    [OPT_KEY_ENV] = {.name = "api-key-env", .type = OPT_STRING, .commands = CMD_INFER,
        .arg = "VAR", .group = GROUP_DATA, .help = "environment variable that holds the key"},
    [OPT_KEY_FILE] = {.name = "api-key-file", .type = OPT_STRING, .commands = CMD_INFER,
        .arg = "FILE", .group = GROUP_DATA, .help = "file that holds the key"},
    [OPT_CA_FILE] = {.name = "ca-file", .type = OPT_STRING, .commands = CMD_INFER,
        .arg = "FILE", .group = GROUP_DATA,
        .help = "certificates that are trusted (PEM); without it the system's"},
    [OPT_DRY_RUN] = {.name = "dry-run", .type = OPT_FLAG, .commands = CMD_INFER,
        .group = GROUP_OUTPUT, .help = "write what would be sent, and send nothing"},
    [OPT_REMOTE_PROMPT] = {.name = "remote-prompt-file", .type = OPT_STRING,
        .commands = CMD_INFER, .arg = "FILE", .group = GROUP_PROMPT,
        .help = "prompt that is sent; {document} stands for the perturbed one"},
    [OPT_EXTRACT_PROMPT] = {.name = "extract-prompt-file", .type = OPT_STRING,
        .commands = CMD_INFER, .arg = "FILE", .group = GROUP_PROMPT,
        .help = "prompt of MODEL; {document} stands for the true one, {generation} for the answer"},
    [OPT_DOCUMENT_TOKENS] = {.name = "document-tokens", .type = OPT_INT, .commands = CMD_INFER,
        .arg = "N", .min = 0, .max = 1 << 20, .def = "0", .group = GROUP_DATA,
        .help = "of each document its first N tokens; 0: all"},
    [OPT_INFER_TOKENS] = {.name = "n-predict", .short_name = 'n', .type = OPT_INT,
        .commands = CMD_INFER, .arg = "T", .min = 1, .max = 1 << 20, .def = "100",
        .group = GROUP_OUTPUT, .help = "most tokens of a text"},
    [OPT_INFER_TEMP] = {.name = "temp", .type = OPT_DOUBLE, .commands = CMD_INFER, .arg = "TAU",
        .min = .01, .max = 100, .group = GROUP_OUTPUT,
        .help = "temperature of MODEL; without it what its file recommends, else 0.7"},
    [OPT_REMOTE_TEMP] = {.name = "remote-temp", .type = OPT_DOUBLE, .commands = CMD_INFER,
        .arg = "TAU", .min = 0, .max = 2, .def = "0.5", .group = GROUP_DATA,
        .help = "temperature there"},
    [OPT_REMOTE_TOKENS] = {.name = "remote-tokens", .type = OPT_INT, .commands = CMD_INFER,
        .arg = "N", .min = 1, .max = 1 << 20, .def = "150", .group = GROUP_DATA,
        .help = "most tokens of an answer"},
    [OPT_IN_FLIGHT] = {.name = "in-flight", .type = OPT_INT, .commands = CMD_INFER, .arg = "N",
        .min = 1, .max = 64, .def = "4", .group = GROUP_EXPERT, .help = "requests at a time"},
    [OPT_RETRIES] = {.name = "retries", .type = OPT_INT, .commands = CMD_INFER, .arg = "N",
        .min = 0, .max = 100, .def = "4", .group = GROUP_EXPERT,
        .help = "after 429, 5xx and failures of the network"},
    [OPT_RETRY_WAIT] = {.name = "retry-wait", .type = OPT_DOUBLE, .commands = CMD_INFER,
        .arg = "S", .min = .01, .max = 60, .def = "1", .group = GROUP_EXPERT,
        .help = "seconds before the first retry, each time twice as many, at most 60; longer if "
                "the server says so"},
    [OPT_TIMEOUT] = {.name = "timeout", .type = OPT_DOUBLE, .commands = CMD_INFER, .arg = "S",
        .min = .01, .max = 86400, .def = "120", .group = GROUP_EXPERT,
        .help = "seconds of one request"},
    [OPT_VOCABULARY] = {.name = "vocabulary", .type = OPT_INT, .commands = READS_WORDS, .arg = "N",
        .min = 0, .max = 65536, .def = "11000", .group = GROUP_DATA,
        .help = "words, the first ones; 0: all. Distances take 4 N^2 bytes"},
    [OPT_DISTANCES] = {.name = "distances", .type = OPT_STRING, .commands = READS_WORDS,
        .arg = "FILE", .group = GROUP_DATA,
        .help = "where distances between words are kept for the next time; made if it is not "
                "there"},
    [OPT_RARE] = {.name = "rare", .type = OPT_DOUBLE, .commands = READS_WORDS, .arg = "W", .min = 0,
        .open = true, .max = 1, .def = "0.9", .group = GROUP_EXPERT,
        .help = "santext+: share of the vocabulary, the rarest words, that is sensitive"},
    [OPT_REPLACED] = {.name = "replaced", .type = OPT_DOUBLE, .commands = READS_WORDS, .arg = "P",
        .min = 0, .max = 1, .def = "0.3", .group = GROUP_EXPERT,
        .help = "santext+: probability that another word is replaced"},
    [OPT_GROUP_SIZE] = {.name = "group-size", .type = OPT_INT, .commands = READS_WORDS, .arg = "K",
        .min = 2, .max = 1000, .def = "20", .group = GROUP_EXPERT,
        .help = "custext+: words of a group"},
    [OPT_CERTIFY] = {.name = "certify", .type = OPT_FLAG, .commands = CMD_PERTURB,
        .group = GROUP_BUDGET,
        .help = "reads no document: computes the true epsilon of a word on this vocabulary"},
    [OPT_JOB] = {.name = "job", .group = GROUP_OUTPUT, .type = OPT_STRING, .commands = GENERATES,
        .arg = "DIR",
        .help = "run: keep the run in this new folder, so that 'dpinfer resume DIR' goes on with "
                "it when it was stopped; files appear when it is over. plan: make the folder of a "
                "job in shards, and charge it to --ledger; run --shard: draw a shard of it"},
    [OPT_SHARD] = {.name = "shard", .group = GROUP_OUTPUT, .type = OPT_STRING, .commands = CMD_RUN,
        .arg = "i/n",
        .help = "with --job: draw the texts i, i + n, ..., from 0 on; without it the task of a "
                "Slurm array. 'dpinfer merge' puts them together"},
    [OPT_SPREAD] = {.name = "spread", .group = GROUP_OUTPUT, .type = OPT_FLAG, .commands = CMD_RUN,
        .help = "under mpirun: ranks share the references of each text; without it they share "
                "texts"},
    [OPT_PARTIAL] = {.name = "partial", .type = OPT_FLAG, .commands = CMD_MERGE,
        .help = "the texts that are there, though shards are missing"},
    [OPT_SCOPE] = {.name = "scope", .type = OPT_ENUM, .commands = CMD_LEDGER, .arg = "NAME",
        .choices = "dataset|unit", .def = "dataset",
        .help = "init: one sum for all units, or one for each"},
    [OPT_PURE] = {.name = "pure-epsilon", .type = OPT_DOUBLE, .commands = CMD_LEDGER, .arg = "EPS",
        .min = 0, .open = true, .max = 1e6, .help = "charge: epsilon of a mechanism with delta 0"},
    [OPT_SIGMA] = {.name = "sigma", .type = OPT_DOUBLE, .commands = CMD_LEDGER | CMD_ACCOUNT,
        .arg = "SIGMA",
        .min = 0, .open = true, .max = 1e6, .group = GROUP_BUDGET,
        .help = "noise multiplier of a Gaussian mechanism, as in training"},
    [OPT_SAMPLING] = {.name = "sampling", .type = OPT_DOUBLE, .commands = CMD_LEDGER | CMD_ACCOUNT,
        .arg = "Q",
        .min = 0, .open = true, .max = 1, .def = "1",
        .group = GROUP_BUDGET,
        .help = "with --sigma: probability with which a unit is in a step"},
    [OPT_STEPS] = {.name = "steps", .type = OPT_INT, .commands = CMD_LEDGER | CMD_ACCOUNT,
        .arg = "N", .min = 1, .max = 1 << 30, .def = "1", .group = GROUP_BUDGET,
        .help = "how often it is done"},
    [OPT_NOTE] = {.name = "note", .type = OPT_STRING, .commands = CMD_LEDGER, .arg = "TEXT",
        .help = "charge: what it was, for those who read the ledger"},
    [OPT_UNIT_IDS] = {.name = "unit-ids", .type = OPT_STRING, .commands = CMD_LEDGER, .arg = "FILE",
        .help = "charge, scope unit: IDs of the units that it is about, one a line"},
    [OPT_PAYERS] = {.name = "payers", .type = OPT_STRING, .commands = CMD_LEDGER, .arg = "FILE",
        .help = "charge, scope unit: the IDs of those that have paid are written there. Only they "
                "may take part; who they are is PRIVATE"},
    [OPT_JOURNAL_EVERY] = {.name = "journal-every", .group = GROUP_EXPERT, .type = OPT_INT,
        .commands = CMD_RUN | CMD_RESUME, .arg = "N", .min = 1, .max = 1 << 20, .def = "1",
        .help = "with --job: show N tokens at a time, where a disk is slow"},
    [OPT_MAX_HOURS] = {.name = "max-hours", .group = GROUP_OUTPUT, .type = OPT_DOUBLE,
        .commands = CMD_RUN | CMD_RESUME, .arg = "H", .min = 0, .open = true, .max = 1e5,
        .help = "with --job: stop before so many hours are over, with exit code 7"},
    [OPT_HOST] = {.name = "host", .type = OPT_STRING, .commands = CMD_SERVE, .arg = "ADDRESS",
        .def = "127.0.0.1",
        .help = "numeric address that is listened on. One that other machines reach needs "
                "--tokens, and a proxy with TLS before it"},
    [OPT_PORT] = {.name = "port", .type = OPT_INT, .commands = CMD_SERVE, .arg = "N",
        .min = 0, .max = 65535, .def = "8080",
        .help = "0: any that is free; the address is printed"},
    [OPT_AT_A_TIME] = {.name = "parallel", .type = OPT_INT, .commands = CMD_SERVE, .arg = "N",
        .min = 1, .max = 256, .def = "8",
        .help = "answers that are drawn at a time, in shared passes"},
    [OPT_WAITING] = {.name = "waiting", .type = OPT_INT, .commands = CMD_SERVE, .arg = "N",
        .min = 0, .max = 65536, .def = "64",
        .help = "requests that may wait for that; more are refused with 503"},
    [OPT_MAX_TOKENS] = {.name = "max-tokens", .type = OPT_INT, .commands = CMD_SERVE, .arg = "T",
        .min = 1, .max = 1 << 20,
        .help = "most tokens of an answer; without it what the context leaves"},
    [OPT_PRINCIPALS] = {.name = "tokens", .type = OPT_STRING, .commands = CMD_SERVE, .arg = "FILE",
        .help = "who may send requests: lines of a name and the SHA-256 of a bearer token"},
    [OPT_REAL] = {.name = "real", .type = OPT_STRING, .commands = CMD_EVAL, .arg = "FILE",
        .group = GROUP_DATA,
        .help = "texts that the synthetic ones are compared with: records that were held out"},
    [OPT_TRAIN] = {.name = "train", .type = OPT_STRING, .commands = CMD_EVAL, .arg = "FILE",
        .group = GROUP_DATA, .help = "the records that the synthetic texts come from: copies of "
                                     "them are counted"},
    [OPT_FEATURES] = {.name = "features", .type = OPT_FLAG, .commands = CMD_EVAL,
        .group = GROUP_DATA,
        .help = "SYNTHETIC and the argument after it are vectors of --dim f32 numbers, "
                "little-endian: MAUVE and neighbours alone"},
    [OPT_DIM] = {.name = "dim", .type = OPT_INT, .commands = CMD_EVAL, .arg = "D", .min = 1,
        .max = 8192, .group = GROUP_DATA, .help = "with --features: numbers of a vector"},
    [OPT_CLUSTERS] = {.name = "clusters", .type = OPT_INT, .commands = CMD_EVAL, .arg = "K",
        .min = 2, .max = 1 << 20, .group = GROUP_EXPERT,
        .help = "of MAUVE; without it a tenth of the smaller set"},
    [OPT_SCALING] = {.name = "scaling", .type = OPT_DOUBLE, .commands = CMD_EVAL, .arg = "C",
        .min = 0, .open = true, .max = 1000, .def = "5", .group = GROUP_EXPERT,
        .help = "c of MAUVE: of another c scores do not compare"},
    [OPT_REAL_IS_PUBLIC] = {.name = "real-is-public", .type = OPT_FLAG, .commands = CMD_EVAL,
        .group = GROUP_DATA,
        .help = "--real and --train are public; without it the report says that its numbers are "
                "private"},
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
    [OPT_HELP] = {.name = "help", .group = GROUP_OUTPUT, .short_name = 'h', .type = OPT_FLAG,
        .commands = ~0,
        .help = "this text"},
};

const char *option_name(option_id id) { return specs[id].name; }

option_file option_file_of(const struct command *cmd, option_id id) {
    static const option_id written[] = {OPT_OUTPUT, OPT_REPORT, OPT_AUDIT_REPORT, OPT_PAYERS};
    const char *arg = specs[id].arg ? specs[id].arg : "";
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (id == written[i])
            return specs[id].commands & cmd->bit ? FILE_WRITTEN : FILE_NONE;
    if (strcmp(arg, "DIR") == 0)
        return FILE_OWN;
    return strcmp(arg, "FILE") == 0 || strcmp(arg, "KEY") == 0 ? FILE_READ : FILE_NONE;
}

const char *option_parameter(option_id id) { return specs[id].parameter; }

/* ---- What the library says ------------------------------------------------------------------ */

static void add_name(char *list, size_t size, const char *between, const char *name) {
    size_t n = strlen(list);
    snprintf(list + n, size - n, "%s%s", n > 0 ? between : "", name);
}

/* Type and range of a parameter. */
static void describe(const dpi_parameter *p, option_spec *spec) {
    static const option_type types[] = {
        [DPI_PARAMETER_INT] = OPT_INT,
        [DPI_PARAMETER_REAL] = OPT_DOUBLE,
        [DPI_PARAMETER_FLAG] = OPT_FLAG,
        [DPI_PARAMETER_CHOICE] = OPT_ENUM,
    };
    spec->type = types[p->type];
    spec->min = p->min;
    spec->max = p->max;
    spec->open = p->min_open;
    spec->open_max = p->max_open;
    if (!spec->zero)
        spec->zero = p->zero;
}

/* Methods in the order in which their options are told: the default one first. */
static int32_t method_at(int32_t i) {
    return i == 0 ? DPI_METHOD_INVISIBLEINK : i <= DPI_METHOD_INVISIBLEINK ? i - 1 : i;
}

/* The parameter that a row names, of whichever method has it. */
static const dpi_parameter *find_parameter(const char *name) {
    const dpi_parameter *p = NULL;
    for (int32_t i = 0; i < dpi_method_count() && !p; i++)
        p = dpi_method_parameter_find(method_at(i), name);
    return p;
}

static bool has_row(const char *parameter) {
    for (int id = 0; id < N_OPTIONS; id++)
        if (specs[id].parameter && strcmp(specs[id].parameter, parameter) == 0)
            return true;
    return false;
}

/* The row of methods' options with this name, a new one if there is none; NULL: no room. */
static option_spec *own_row(option_table *t, const char *name) {
    for (int i = N_OPTIONS; i < t->n; i++)
        if (strcmp(t->v[i].name, name) == 0)
            return &t->v[i];
    if (t->n == N_OPTIONS + MAX_METHOD_OPTIONS)
        return NULL;
    t->v[t->n] = (option_spec){.name = name, .type = OPT_STRING, .commands = GENERATES, .arg = "X",
                               .group = GROUP_EXPERT, .is_hidden = true};
    return &t->v[t->n++];
}

/* What a method takes and no row has. Values are read when the method is known. */
static void add_own(option_table *t, const dpi_method_info *m, const dpi_parameter *p) {
    option_spec *row = own_row(t, p->option);
    if (row && row->is_hidden) {
        describe(p, row);
        row->own = p;
        row->is_hidden = false;
        row->arg = p->type == DPI_PARAMETER_FLAG ? NULL : p->type == DPI_PARAMETER_INT ? "N" : "X";
        row->help = p->help;
    }
    if (row && !dpi_method_parameter_find(DPI_METHOD_INVISIBLEINK, p->name) && m->max_ref > 0)
        add_name(row->methods, sizeof row->methods, ", ", m->name);
    if (row && m->id == DPI_METHOD_INVISIBLEINK)
        row->group = GROUP_OUTPUT;
    if (p->old_option)
        own_row(t, p->old_option);
}

void option_table_make(option_table *t) {
    *t = (option_table){.n = N_OPTIONS};
    memcpy(t->v, specs, sizeof specs);
    for (int id = 0; id < N_OPTIONS; id++) {
        const dpi_parameter *p = specs[id].parameter ? find_parameter(specs[id].parameter) : NULL;
        if (p)
            describe(p, &t->v[id]);
        t->v[id].own = p;
    }
    for (int32_t i = 0; i < dpi_method_count(); i++) {
        const dpi_method_info *m = dpi_method_get(method_at(i));
        const dpi_parameter *p;
        for (int32_t k = 0; (p = dpi_method_parameter_get(m->id, k)) != NULL; k++)
            if (!has_row(p->name) && strcmp(p->name, "n_vocab") != 0) /* the model's */
                add_own(t, m, p);
        m = dpi_method_get(i); /* choices in the order of their ids */
        if (m->max_ref > 0) {
            add_name(t->private_methods, sizeof t->private_methods, "|", m->name);
            add_name(t->method_help, sizeof t->method_help, "; ", m->name);
            add_name(t->method_help, sizeof t->method_help, ": ", m->help);
        }
        if (!m->needs_acknowledgement)
            add_name(t->bench_methods, sizeof t->bench_methods, "|", m->name);
    }
    t->v[OPT_METHOD].choices = t->private_methods;
    t->v[OPT_METHOD].help = t->method_help;
    t->v[OPT_LIST_METHOD].choices = t->bench_methods;
}

void option_range(const option_spec *o, char *text, size_t size) {
    int n;
    text[0] = '\0';
    if (o->own && !o->zero) {
        dpi_parameter_range(o->own, text, size);
        return;
    }
    if (o->choices)
        snprintf(text, size, "%s", o->choices);
    if (o->type != OPT_INT && o->type != OPT_DOUBLE)
        return;
    n = o->type == OPT_INT ? snprintf(text, size, "%.0f..%.0f", o->min, o->max)
        : o->open ? snprintf(text, size, "%g < x %s %g", o->min, o->open_max ? "<" : "<=", o->max)
                  : snprintf(text, size, "%g..%g", o->min, o->max);
    if (o->zero && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", or 0 (%s)", o->zero);
}
