/* cmd_steer.c - `dpinfer steer`: records in, private steering vectors out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/steer.h"
#include "tools/command/commands.h"
#include "tools/options/label_options.h"
#include "tools/options/ledger_options.h"
#include "tools/options/paths.h"
#include "tools/options/records_options.h"
#include "tools/shared/private_records.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/statement_shown.h"

enum { LAYERS_MAX = 256 };

/* What the command has open. */
typedef struct steering {
    const args *a;
    dpi_ledger *ledger;
    char dataset[DPI_DATASET_NAME_MAX + 1];
    int32_t layers[LAYERS_MAX];
    int32_t n_layers;
    label_input labels;
    dpi_records *records, *public_texts;
    dpi_model *model;
    dpi_steer *steer;
    output out;
} steering;

/* ---- Options --------------------------------------------------------------------------------- */

static int check_options(const args *a) {
    const option_value *v = a->v;
    if (a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no RECORDS given; see 'dpinfer steer -h'");
    if (!v[OPT_TUNE_PLAN].i && (!v[OPT_ADAPTER].given || strcmp(v[OPT_ADAPTER].s, "-") == 0))
        return cli_fail(CLI_USAGE, "-o FILE: needed for the vectors");
    if (v[OPT_TUNE_EPSILON].given == v[OPT_TUNE_SIGMA].given)
        return cli_fail(CLI_USAGE, "--epsilon and --sigma: needed is one of them");
    if (v[OPT_TUNE_UNITS].given != (v[OPT_AUGPE_ADJACENCY].i == 1))
        return cli_fail(CLI_USAGE, v[OPT_TUNE_UNITS].given
                                       ? "--units: allowed with --adjacency add-remove"
                                       : "--units N: needed with --adjacency add-remove");
    if (v[OPT_LABEL_NAMES].given && !v[OPT_LABEL_FIELD].given)
        return cli_fail(CLI_USAGE, "--label-names needs --label-field");
    if (v[OPT_MAX_PER_UNIT].given && !v[OPT_UNIT_FIELD].given)
        return cli_fail(CLI_USAGE, "--max-per-unit needs --unit-field");
    if (v[OPT_INSTRUCTION].given && v[OPT_DESCRIBE].given)
        return cli_fail(CLI_USAGE, "--instruction and --describe: allowed is one of them");
    if (v[OPT_STEER_TEXTS].given && v[OPT_STEER_PUBLIC].given)
        return cli_fail(CLI_USAGE, "--public and --public-texts: allowed is one of them");
    return CLI_OK;
}

static int read_layers(steering *s) {
    const char *list = s->a->v[OPT_STEER_LAYERS].s;
    while (list && *list) {
        char *end;
        const long layer = strtol(list, &end, 10);
        if (end == list || (*end && *end != ',') || (*end && !end[1]) || layer < 0 ||
            layer > INT32_MAX || s->n_layers == LAYERS_MAX)
            return cli_fail(CLI_USAGE, "--layers: found '%s', allowed are at most %d numbers with "
                                       "commas between", list, LAYERS_MAX);
        s->layers[s->n_layers++] = (int32_t)layer;
        list = *end ? end + 1 : NULL;
    }
    return CLI_OK;
}

static dpi_steer_options options_of(const steering *s) {
    const option_value *v = s->a->v;
    dpi_steer_options o;
    dpi_steer_options_init(&o);
    o.model = s->model, o.records = s->records, o.public_texts = s->public_texts;
    o.n_public = (int32_t)v[OPT_STEER_TEXTS].i;
    o.instruction.data = v[OPT_INSTRUCTION].s;
    o.instruction.n_bytes = v[OPT_INSTRUCTION].s ? strlen(v[OPT_INSTRUCTION].s) : 0;
    if (v[OPT_DESCRIBE].given)
        o.description = (dpi_bytes){v[OPT_DESCRIBE].s, strlen(v[OPT_DESCRIBE].s)};
    o.labels = s->labels.names, o.n_labels = s->labels.n;
    o.label_meanings = s->labels.n > 0 ? s->labels.meanings : NULL;
    if (v[OPT_STEER_WORDS].given)
        o.n_words = (int32_t)v[OPT_STEER_WORDS].i;
    if (v[OPT_RANK].given)
        o.rank = (int32_t)v[OPT_RANK].i;
    o.n_positions = (int32_t)v[OPT_POSITIONS].i;
    if (v[OPT_MAX_PER_UNIT].given)
        o.max_per_unit = (int32_t)v[OPT_MAX_PER_UNIT].i;
    o.layers = s->layers, o.n_layers = s->n_layers;
    o.adjacency = v[OPT_AUGPE_ADJACENCY].i == 1 ? DPI_ADJACENCY_ADD_REMOVE
                                                : DPI_ADJACENCY_REPLACE_BY_NULL;
    o.n_units = v[OPT_TUNE_UNITS].given ? v[OPT_TUNE_UNITS].i : 0;
    o.epsilon = v[OPT_TUNE_EPSILON].given ? v[OPT_TUNE_EPSILON].d : 0;
    o.sigma = v[OPT_TUNE_SIGMA].given ? v[OPT_TUNE_SIGMA].d : 0;
    o.delta = v[OPT_DELTA].d, o.clip = v[OPT_TUNE_CLIP].d;
    o.n_threads = (int32_t)v[OPT_THREADS].i, o.isa = (int32_t)v[OPT_ISA].i;
    o.seeded = v[OPT_SEED].given, o.seed = (uint64_t)v[OPT_SEED].i;
    o.ledger = s->ledger, o.dataset = s->ledger ? s->dataset : NULL;
    o.cancel = signals_cancel;
    return o;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int open_steer(steering *s) {
    dpi_steer_options o = options_of(s);
    dpi_error err;
    if (dpi_chat_parse(s->a->v[OPT_TEMPLATE].s, &o.chat, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    const dpi_status status = dpi_steer_open(&o, &s->steer, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_status(status, &err);
}

/* Everything that can fail is tried before the ledger is charged. */
static int open_all(steering *s) {
    const args *a = s->a;
    const dpi_model_options model = options_model(a);
    dpi_records_options records;
    dpi_release_options unused = {0};
    int code = a->n_positional > 0 ? paths_check_command(a) : CLI_OK;
    if (code == CLI_OK)
        code = check_options(a);
    if (code == CLI_OK)
        code = records_options(a, &records);
    if (code == CLI_OK)
        code = read_layers(s);
    if (code == CLI_OK)
        code = label_options_read(a, false, &s->labels, &unused);
    if (code == CLI_OK && !a->v[OPT_TUNE_PLAN].i)
        code = ledger_options_open(a, false, &s->ledger, s->dataset);
    if (code == CLI_OK)
        code = records_open_private(a, 0, &records, &s->records);
    records.unit_field = NULL;
    if (code == CLI_OK && a->v[OPT_STEER_PUBLIC].given)
        code = records_open(a->v[OPT_STEER_PUBLIC].s, &records, &s->public_texts);
    if (code == CLI_OK)
        code = cli_open_model(a->model, &model, &s->model, NULL);
    if (code == CLI_OK)
        code = open_steer(s);
    if (code == CLI_OK && !a->v[OPT_TUNE_PLAN].i)
        code = output_open(&s->out, a->v[OPT_ADAPTER].s, a->v[OPT_OVERWRITE].i);
    return code;
}

/* ---- The release ----------------------------------------------------------------------------- */

/* What a handler prints that cannot return. Before the charge it says more than was spent. */
static int prepare_end(steering *s) {
    char *words = statement_of_claim(dpi_steer_claim(s->steer), false);
    signals_last_words(words);
    return words ? CLI_OK : CLI_FAILED;
}

/* It follows from what is released. */
static void warn_of_drowned(const steering *s) {
    const int32_t n = dpi_steer_drowned(s->steer);
    const int32_t n_labels = dpi_steer_claim(s->steer)->n_labels;
    if (n > 0 && n_labels > 0)
        cli_note("the noise has drowned the vectors of %d of %d labels: they steer nothing. More "
                 "records of a label or a larger --epsilon would help", (int)n, (int)n_labels);
    else if (n > 0)
        cli_note("the noise has drowned the vectors: they steer nothing. More records or a larger "
                 "--epsilon would help");
}

/* What is released is no secret, and whoever sees the words sees what the budget has bought. */
static void tell_words(const steering *s) {
    const char *words = dpi_steer_words(s->steer);
    for (int32_t i = 0; words && !s->a->v[OPT_QUIET].i; i++) {
        const int n = (int)strcspn(words, "\n");
        cli_note("key words of '%s': %.*s", dpi_steer_label(s->steer, i), n > 0 ? n : 4,
                 n > 0 ? words : "none");
        words = words[n] ? words + n + 1 : NULL;
    }
}

static int release(steering *s) {
    dpi_error err;
    dpi_status status = dpi_steer_prepare(s->steer, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_status(status, &err);
    int code = prepare_end(s);
    if (code != CLI_OK)
        return code;
    status = dpi_steer_release(s->steer, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_steer_write(s->steer, s->a->v[OPT_ADAPTER].s, s->out.fd, &err);
    if (status == DPI_STATUS_OK) {
        warn_of_drowned(s);
        tell_words(s);
        return CLI_OK;
    }
    return status == DPI_STATUS_BUDGET ? ledger_fail(status, &err) : cli_fail_status(status, &err);
}

static int steer_main(const args *a) {
    steering s = {.a = a, .out = {.fd = -1}};
    signals_clean_up(); /* until there is something to finish */
    int code = open_all(&s);
    const bool releases = code == CLI_OK && !a->v[OPT_TUNE_PLAN].i;
    if (releases) {
        signals_catch();
        code = release(&s);
    }
    code = output_finish(&s.out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
    const bool charged = s.steer && dpi_steer_claim(s.steer)->ledger.dataset[0] != '\0';
    if (code == CLI_OK || charged)
        code = statement_end(statement_of_claim(dpi_steer_claim(s.steer), code == CLI_OK), code);
    signals_last_words(NULL);
    dpi_steer_free(s.steer);
    dpi_model_close(s.model);
    dpi_records_close(s.records);
    dpi_records_close(s.public_texts);
    dpi_ledger_close(s.ledger);
    label_options_free(&s.labels);
    return code;
}

const command command_steer = {
    .name = "steer",
    .bit = CMD_STEER,
    .arguments = "MODEL RECORDS",
    .takes_model = 1,
    .max_positional = 1,
    .run = steer_main,
    .summary = "private steering vectors from records, in one pass",
    .details =
        "Reads the records once and writes to -o in which direction the states of MODEL lie from\n"
        "those of public texts: vectors that --control-vector and llama.cpp add to its residual\n"
        "stream. Each unit (a record, or a person with --unit-field) has a vector; it is clipped\n"
        "and added in integers, and the sum gets noise once. Whatever is then written costs\n"
        "nothing more:\n"
        "  dpinfer generate MODEL --steer FILE --num 1000\n\n"
        "With --label-field each label has vectors of its own, for the same epsilon: {label} then\n"
        "stands in --describe or --instruction, and 'generate' writes as many texts of each.\n\n"
        "With --describe texts have the form of those of 'run --describe', and 'generate' finds\n"
        "in the file how.\n\n"
        "With labels the file has how often records say the words of public texts, too, from\n"
        "the same sum (--key-words). 'generate' chooses among texts by it; those that tell a\n"
        "label from the others are shown at the end, and it puts them into prompts.\n\n"
        "The noise is the least that --epsilon at --delta allows. --ledger is charged before a\n"
        "record is read. What the noise has drowned is left out: a vector of zeros steers\n"
        "nothing. 'dpinfer verify FILE' computes the guarantee again.\n",
};
