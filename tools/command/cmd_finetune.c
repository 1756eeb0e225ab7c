/* cmd_finetune.c - `dpinfer finetune`: records in, a private adapter out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpinfer/finetune.h"
#include "dpinfer/write.h"
#include "tools/command/commands.h"
#include "tools/command/tuning_plan.h"
#include "tools/options/label_options.h"
#include "tools/options/ledger_options.h"
#include "tools/options/paths.h"
#include "tools/options/records_options.h"
#include "tools/ranks/ranks.h"
#include "tools/shared/private_records.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/statement_shown.h"

/* What the command opens, in the order in which it is opened. */
typedef struct tuning {
    const args *a;
    dpi_ledger *ledger;
    char dataset[DPI_DATASET_NAME_MAX + 1];
    label_input labels;
    char *names; /* of the attributes, cut into pieces */
    const char *attributes[DPI_LABEL_FIELDS_MAX];
    int32_t n_attributes;
    uint32_t targets;
    dpi_records *records, *held_out;
    dpi_model *model;
    dpi_finetune *finetune;
    output out, merged;
    double spent_at; /* when the spent budget was shown last; 0: not yet */
    bool quiet, screen, whole; /* the adapter is written, whatever becomes of the statement */
} tuning;

/* Rank 0 has ledger, checkpoint and files, and alone tells. */
static bool is_first(void) { return ranks_own() == 0; }

/* ---- Options --------------------------------------------------------------------------------- */

static int check_options(const args *a) {
    const option_value *v = a->v;
    if (a->n_positional == 0)
        return cli_fail(CLI_USAGE, "no RECORDS given; see 'dpinfer finetune -h'");
    const bool plans = v[OPT_TUNE_PLAN].i != 0;
    if (!plans && (!v[OPT_ADAPTER].given || strcmp(v[OPT_ADAPTER].s, "-") == 0))
        return cli_fail(CLI_USAGE, "-o FILE: needed for the adapter");
    if (!v[OPT_TUNE_UNITS].given)
        return cli_fail(CLI_USAGE, "--units N: needed is about how many units there are, a public "
                                   "number");
    if (v[OPT_TUNE_EPSILON].given == v[OPT_TUNE_SIGMA].given)
        return cli_fail(CLI_USAGE, "--epsilon and --sigma: needed is one of them");
    if ((v[OPT_LABEL_FIELD].given || v[OPT_ATTRIBUTES].given) != v[OPT_LABEL_NAMES].given)
        return cli_fail(CLI_USAGE, "--label-field (or --attributes) and --label-names: needed are "
                                   "both, or none");
    if (v[OPT_LABEL_FIELD].given && v[OPT_ATTRIBUTES].given)
        return cli_fail(CLI_USAGE, "--label-field and --attributes: allowed is one of them");
    if (v[OPT_RANK].given && v[OPT_RANK].i > DPI_FINETUNE_RANK_MAX)
        return cli_fail(CLI_USAGE, "--rank: found '%lld', allowed 1..%d", (long long)v[OPT_RANK].i,
                        DPI_FINETUNE_RANK_MAX);
    if (v[OPT_DESCRIBE].given && (v[OPT_INSTRUCTION].given || v[OPT_ATTRIBUTES].given))
        return cli_fail(CLI_USAGE, "--describe and --%s: allowed is one of them",
                        v[OPT_INSTRUCTION].given ? "instruction" : "attributes");
    if (v[OPT_MAX_PER_UNIT].given && !v[OPT_UNIT_FIELD].given)
        return cli_fail(CLI_USAGE, "--max-per-unit needs --unit-field");
    if (v[OPT_JSON].i && !plans)
        return cli_fail(CLI_USAGE, "--json needs --plan");
    static const option_id of_adapters[] = {OPT_RANK, OPT_ALPHA, OPT_TARGETS, OPT_MERGE};
    for (size_t i = 0; v[OPT_FULL].i && i < sizeof of_adapters / sizeof *of_adapters; i++)
        if (v[of_adapters[i]].given)
            return cli_fail(CLI_USAGE, "--%s: not allowed with --full, which has no adapter",
                            option_name(of_adapters[i]));
    return CLI_OK;
}

static int split_attributes(tuning *t) {
    const option_value *v = &t->a->v[OPT_ATTRIBUTES];
    if (!v->given)
        return CLI_OK;
    char *next = t->names = strdup(v->s);
    if (!t->names)
        return cli_no_memory("the attributes");
    for (char *name; (name = strsep(&next, ",")) != NULL;) {
        if (t->n_attributes == DPI_LABEL_FIELDS_MAX)
            return cli_fail(CLI_USAGE, "--attributes: found more than %d", DPI_LABEL_FIELDS_MAX);
        t->attributes[t->n_attributes++] = name;
    }
    return CLI_OK;
}

/* The matrices that a name stands for; 0: none. */
static uint32_t targets_of(const char *name, size_t n) {
    static const struct {
        const char *name;
        uint32_t bits;
    } all[] = {{"all", DPI_FINETUNE_ALL},
               {"attention", DPI_FINETUNE_Q | DPI_FINETUNE_K | DPI_FINETUNE_V | DPI_FINETUNE_O},
               {"qv", DPI_FINETUNE_Q | DPI_FINETUNE_V},
               {"q", DPI_FINETUNE_Q}, {"k", DPI_FINETUNE_K}, {"v", DPI_FINETUNE_V},
               {"o", DPI_FINETUNE_O}, {"gate", DPI_FINETUNE_GATE}, {"up", DPI_FINETUNE_UP},
               {"down", DPI_FINETUNE_DOWN}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i].name) == n && memcmp(all[i].name, name, n) == 0)
            return all[i].bits;
    return 0;
}

static int read_targets(tuning *t) {
    for (const char *name = t->a->v[OPT_TARGETS].s; name;) {
        const size_t n = strcspn(name, ",");
        const uint32_t bits = targets_of(name, n);
        if (bits == 0)
            return cli_fail(CLI_USAGE,
                            "--targets: found '%.*s', allowed are all, attention, qv and q, k, v, "
                            "o, gate, up, down", (int)n, name);
        t->targets |= bits;
        name = name[n] ? name + n + 1 : NULL;
    }
    return CLI_OK;
}

/* The checkpoint is read, and replaced: no other file, and not the adapter. Nor is its lock. */
static int check_files(const args *a) {
    char lock[PATH_BESIDE] = "";
    paths all = {0}, own = {0};
    const bool locks =
        a->v[OPT_CHECKPOINT].given &&
        snprintf(lock, sizeof lock, "%s.lock", a->v[OPT_CHECKPOINT].s) < PATH_BESIDE;
    paths_options(&all, a);
    paths_read(&all, a->positional[0]);
    paths_read(&all, locks ? lock : NULL);
    const int code = paths_check(&all, a->v[OPT_OVERWRITE].i);
    paths_read(&own, a->model);
    paths_read(&own, a->positional[0]);
    paths_read(&own, a->v[OPT_LEDGER].s);
    paths_read(&own, a->v[OPT_LABEL_NAMES].s);
    paths_read(&own, a->v[OPT_HELD_OUT].s);
    paths_write(&own, "--checkpoint", a->v[OPT_CHECKPOINT].s);
    paths_write(&own, "the lock of --checkpoint", locks ? lock : NULL);
    return code == CLI_OK ? paths_check(&own, true) : code;
}

static dpi_finetune_options options_of(const tuning *t) {
    const option_value *v = t->a->v;
    dpi_finetune_options o;
    dpi_finetune_options_init(&o);
    o.model = t->model, o.records = t->records, o.held_out = t->held_out;
    o.instruction.data = v[OPT_INSTRUCTION].s;
    o.instruction.n_bytes = v[OPT_INSTRUCTION].s ? strlen(v[OPT_INSTRUCTION].s) : 0;
    if (v[OPT_DESCRIBE].given)
        o.description = (dpi_bytes){v[OPT_DESCRIBE].s, strlen(v[OPT_DESCRIBE].s)};
    o.labels = t->labels.names, o.n_labels = t->labels.n;
    o.label_meanings = t->n_attributes == 0 && t->labels.n > 0 ? t->labels.meanings : NULL;
    o.attributes = t->attributes, o.n_attributes = t->n_attributes;
    o.histogram_epsilon = v[OPT_HISTOGRAM_EPSILON].given ? v[OPT_HISTOGRAM_EPSILON].d : 0;
    o.mismatch = v[OPT_MISMATCH].d, o.n_wrong = (int32_t)v[OPT_WRONG].i;
    o.loss_on_all = v[OPT_LOSS_ON].i == 1;
    o.n_positions = (int32_t)v[OPT_POSITIONS].i;
    if (v[OPT_MAX_PER_UNIT].given)
        o.max_per_unit = (int32_t)v[OPT_MAX_PER_UNIT].i;
    o.epsilon = v[OPT_TUNE_EPSILON].given ? v[OPT_TUNE_EPSILON].d : 0;
    o.sigma = v[OPT_TUNE_SIGMA].given ? v[OPT_TUNE_SIGMA].d : 0;
    o.delta = v[OPT_DELTA].d;
    o.n_units = v[OPT_TUNE_UNITS].i;
    o.n_expected = v[OPT_EXPECTED].given ? v[OPT_EXPECTED].d : 0;
    o.n_steps = (int32_t)v[OPT_TUNE_STEPS].i;
    o.rank = v[OPT_RANK].given ? (int32_t)v[OPT_RANK].i : 1, o.alpha = v[OPT_ALPHA].d;
    o.targets = t->targets;
    o.full = (int32_t)v[OPT_FULL].i;
    o.clip = v[OPT_TUNE_CLIP].d, o.lr = v[OPT_LR].given ? v[OPT_LR].d : 0;
    o.n_warmup = (int32_t)v[OPT_WARMUP].i, o.unbiased = v[OPT_OPTIMIZER].i == 1;
    o.n_threads = v[OPT_THREADS].given ? (int32_t)v[OPT_THREADS].i : ranks_threads();
    o.ranks = ranks_training();
    o.seeded = v[OPT_SEED].given, o.seed = (uint64_t)v[OPT_SEED].i;
    o.ledger = t->ledger, o.dataset = t->ledger ? t->dataset : NULL;
    o.checkpoint = is_first() ? v[OPT_CHECKPOINT].s : NULL;
    o.checkpoint_steps = (int32_t)v[OPT_CHECKPOINT_STEPS].i;
    o.cancel = signals_cancel;
    return o;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int open_finetune(tuning *t) {
    dpi_finetune_options o = options_of(t);
    dpi_error err;
    if (dpi_chat_parse(t->a->v[OPT_TEMPLATE].s, &o.chat, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    if (t->a->v[OPT_TUNE_PLAN].i) {
        o.ledger = NULL, o.checkpoint = NULL;
        return tuning_plan_print(t->a, &o);
    }
    const dpi_status status = dpi_finetune_open(&o, &t->finetune, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_status(status, &err);
}

/* All that is read, and the training; with --plan this is all. */
static int open_inputs(tuning *t) {
    const args *a = t->a;
    const dpi_model_options model = options_model(a);
    dpi_records_options records;
    dpi_release_options unused = {0};
    int code = a->n_positional > 0 ? check_files(a) : CLI_OK;
    if (code == CLI_OK)
        code = check_options(a);
    if (code == CLI_OK)
        code = records_options(a, &records);
    if (code == CLI_OK)
        code = split_attributes(t);
    if (code == CLI_OK)
        code = read_targets(t);
    records.label_fields = t->attributes, records.n_label_fields = t->n_attributes;
    if (code == CLI_OK)
        code = label_options_read(a, t->n_attributes > 0, &t->labels, &unused);
    if (code == CLI_OK && is_first())
        code = ledger_options_open(a, false, &t->ledger, t->dataset);
    if (code == CLI_OK)
        code = records_open_private(a, 0, &records, &t->records);
    records.unit_field = NULL;
    if (code == CLI_OK && a->v[OPT_HELD_OUT].given && is_first())
        code = records_open(a->v[OPT_HELD_OUT].s, &records, &t->held_out);
    if (code == CLI_OK)
        code = cli_open_model(a->model, &model, &t->model, NULL);
    if (code == CLI_OK)
        code = open_finetune(t);
    return code;
}

static double value_of(const tuning *t, const char *key) {
    return dpi_claim_value(&dpi_finetune_claim_of(t->finetune)->parts[0], key);
}

/* Of the file that is written at the end, about: weights in f32, names, the claim. */
static int64_t adapter_bytes(const tuning *t) {
    enum { OTHER_BYTES = 1 << 16 };
    return (int64_t)value_of(t, "numbers") * (int64_t)sizeof(float) + OTHER_BYTES;
}

/* Everything that can fail is tried before the ledger is charged. */
static int open_all(tuning *t) {
    const args *a = t->a;
    dpi_error err;
    double loss; /* whether public records have one is known before the charge */
    dpi_status status = DPI_STATUS_OK;
    int code = open_inputs(t);
    if (a->v[OPT_TUNE_PLAN].i)
        return code;
    if (code == CLI_OK && t->held_out)
        status = dpi_finetune_held_out(t->finetune, &loss, &err);
    if (status != DPI_STATUS_OK)
        code = status == DPI_STATUS_NUMERIC ? cli_fail_library(CLI_RECORDS, &err)
                                            : cli_fail_status(status, &err);
    if (!is_first())
        return code;
    if (code == CLI_OK && a->v[OPT_CHECKPOINT].given)
        output_tell_leftovers(a->v[OPT_CHECKPOINT].s);
    if (code == CLI_OK)
        code = output_open(&t->out, a->v[OPT_ADAPTER].s, a->v[OPT_OVERWRITE].i);
    if (code == CLI_OK && (t->out.temporary || !a->v[OPT_CHECKPOINT].given))
        code = output_reserve(&t->out, adapter_bytes(t));
    if (code == CLI_OK && a->v[OPT_MERGE].given)
        code = output_open(&t->merged, a->v[OPT_MERGE].s, a->v[OPT_OVERWRITE].i);
    return code;
}

/* ---- Training -------------------------------------------------------------------------------- */

/* What was spent takes up to a second to find: it is shown no more often than this. */
static const double SPENT_SECONDS = 5;

/* How many steps are done and when the rest will be: no loss, which would be the records'. */
static void show(const tuning *t, int32_t done, int32_t first, double begin) {
    const int32_t n_steps = (int32_t)dpi_finetune_claim_of(t->finetune)->parts[0].n_runs;
    const double each = (cli_now() - begin) / (double)(done - first);
    const int left = (int)(each * (double)(n_steps - done));
    if (t->quiet || (!t->screen && done % 10 != 0 && done != n_steps))
        return;
    fprintf(stderr, "%sstep %d of %d, %.3g s each, %d:%02d:%02d left%s", t->screen ? "\r" : "",
            done, n_steps, each, left / 3600, left / 60 % 60, left % 60,
            t->screen && done != n_steps ? "  " : "\n");
}

/* Each ten steps and at the end: a public number, as the steps are. */
static int show_spent(tuning *t, int32_t done, int32_t n_steps) {
    const dpi_claim *c = dpi_finetune_claim_of(t->finetune);
    double epsilon;
    dpi_error err;
    if (t->quiet || !isfinite(c->epsilon) || (done % 10 != 0 && done != n_steps) ||
        (done < n_steps && t->spent_at > 0 && cli_now() - t->spent_at < SPENT_SECONDS))
        return CLI_OK;
    t->spent_at = cli_now();
    const dpi_status status = dpi_finetune_spent(t->finetune, &epsilon, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_status(status, &err);
    fprintf(stderr, "%sstep %d: epsilon %.4g of %.4g\n", t->screen ? "\n" : "", done, epsilon,
            c->epsilon);
    return CLI_OK;
}

/* Of public records, at the begin, each ten steps and at the end. */
static int show_loss(const tuning *t, int32_t done, int32_t n_steps) {
    double loss;
    dpi_error err;
    if (!t->held_out || (done % 10 != 0 && done != n_steps))
        return CLI_OK;
    const dpi_status status = dpi_finetune_held_out(t->finetune, &loss, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_status(status, &err);
    if (!t->quiet)
        fprintf(stderr, "%sstep %d: %.4f nats a token of the held-out public records\n",
                t->screen ? "\n" : "", done, loss);
    return CLI_OK;
}

static int train(tuning *t) {
    const int32_t n_steps = (int32_t)dpi_finetune_claim_of(t->finetune)->parts[0].n_runs;
    const int32_t first = dpi_finetune_steps_done(t->finetune);
    const double begin = cli_now();
    dpi_error err;
    if (first > 0 && is_first())
        cli_note("going on after step %d", first);
    int code = show_loss(t, first, n_steps);
    for (int32_t done = first; done < n_steps && code == CLI_OK; done++) {
        const dpi_status status = dpi_finetune_step(t->finetune, &err);
        if (status != DPI_STATUS_OK) {
            code = cli_fail_status(status, &err);
            break;
        }
        show(t, done + 1, first, begin);
        code = show_loss(t, done + 1, n_steps);
        if (code == CLI_OK)
            code = show_spent(t, done + 1, n_steps);
    }
    const int32_t n_unchanged = dpi_finetune_steps_unchanged(t->finetune);
    if (n_unchanged > 0 && is_first())
        cli_note("%d steps left the weights as they were, which would not be finite: the learning "
                 "rate is too high", n_unchanged);
    if (code != CLI_OK && dpi_finetune_keep(t->finetune, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    return code;
}

/* Owed once the ledger is charged: the budget counts as spent. */
static int write_statement(const tuning *t, int code) {
    const dpi_claim *claim = dpi_finetune_claim_of(t->finetune);
    return statement_end(statement_of_claim(claim, code == CLI_OK), code);
}

/* What a handler prints that cannot return. */
static int prepare_end(tuning *t) {
    const dpi_claim *claim = dpi_finetune_claim_of(t->finetune);
    char *words = is_first() ? statement_of_claim(claim, false) : NULL;
    if (is_first() && !words)
        return CLI_FAILED;
    signals_last_words(words);
    return CLI_OK;
}

/* Before the charge the last words say more than was spent, and never less. */
static int begin(tuning *t) {
    dpi_error err;
    int code = prepare_end(t);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_finetune_begin(t->finetune, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_status(status, &err);
    return prepare_end(t);
}

/* What is trained is not lost where there is a checkpoint. */
static int write_adapter(tuning *t) {
    dpi_error err;
    const char *checkpoint = t->a->v[OPT_CHECKPOINT].s;
    if (dpi_finetune_write(t->finetune, t->a->v[OPT_ADAPTER].s, t->out.fd, &err) == DPI_STATUS_OK)
        return CLI_OK;
    const int code = cli_fail_library(CLI_FAILED, &err);
    if (checkpoint)
        cli_note("note: what was trained is in %s: the same command writes it at no further cost",
                 checkpoint);
    return code;
}

static int run_tuning(tuning *t) {
    int code = begin(t);
    if (code != CLI_OK) {
        const bool charged = dpi_finetune_claim_of(t->finetune)->ledger.dataset[0] != '\0';
        return charged && is_first() ? write_statement(t, code) : code;
    }
    code = train(t);
    if (!is_first())
        return code;
    if (code == CLI_OK)
        code = write_adapter(t);
    t->whole = code == CLI_OK;
    return write_statement(t, code);
}

/* The adapter's file is there already, whatever becomes of this. */
static int write_merged(tuning *t) {
    const option_value *v = t->a->v;
    dpi_write_options o;
    dpi_error err;
    dpi_write_options_init(&o);
    o.type = "KEEP", o.fd = t->merged.fd, o.cancel = signals_cancel;
    o.n_threads = (int32_t)v[OPT_THREADS].i;
    const dpi_status status =
        dpi_finetune_merge(t->a->model, v[OPT_ADAPTER].s, 1, v[OPT_MERGE].s, &o, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_status(status, &err);
}

static int finetune_alone(const args *a) {
    tuning t = {.a = a, .out = {.fd = -1}, .merged = {.fd = -1},
                .quiet = a->v[OPT_QUIET].i != 0 || !is_first(),
                .screen = isatty(STDERR_FILENO) != 0};
    signals_clean_up(); /* until there is something to finish */
    int code = open_all(&t);
    const bool trains = a->v[OPT_TUNE_PLAN].i == 0;
    if (code == CLI_OK && trains) {
        signals_catch();
        code = run_tuning(&t);
    }
    code = output_finish(&t.out, t.whole ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
    dpi_finetune_free(t.finetune); /* before another model is opened */
    dpi_model_close(t.model);
    if (code == CLI_OK && a->v[OPT_MERGE].given && is_first() && trains)
        code = write_merged(&t);
    code = output_finish(&t.merged, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
    label_options_free(&t.labels);
    free(t.names);
    signals_last_words(NULL);
    dpi_records_close(t.records);
    dpi_records_close(t.held_out);
    dpi_ledger_close(t.ledger);
    return code;
}

static int finetune_main(const args *a) {
    int code = ranks_open();
    if (code == CLI_OK)
        code = finetune_alone(a);
    ranks_close(code);
    return code;
}

const command command_finetune = {
    .name = "finetune",
    .bit = CMD_FINETUNE,
    .arguments = "MODEL RECORDS",
    .takes_model = 1,
    .max_positional = 1,
    .run = finetune_main,
    .summary = "a private adapter from records",
    .details =
        "Trains a low-rank adapter of MODEL on the records, under differential privacy, and "
        "writes\n"
        "it to -o as a GGUF file that --lora and llama.cpp read. Each record is the answer to\n"
        "--instruction, or an item of a list of what --describe names; with --label-field (or\n"
        "--attributes) and --label-names, to that of its label, and less to those of others\n"
        "(--mismatch). Whatever is then written costs nothing more:\n"
        "  dpinfer generate MODEL --lora ADAPTER --num 1000\n\n"
        "In each of --steps steps each unit (a record, or a person with --unit-field) joins with\n"
        "probability L/N, its gradient is clipped and added in integers, and noise is added. The\n"
        "noise is the least that --epsilon at --delta allows for all steps. --ledger is charged "
        "for\n"
        "all of them before a record is read. With --checkpoint FILE the same command goes on\n"
        "where it was stopped. No loss of the records is shown; --held-out FILE has public ones\n"
        "for that. 'dpinfer verify ADAPTER' computes the guarantee of an adapter again.\n"
        "--plan tells the noise, the memory and about how long it takes, and trains nothing.\n"
        "With --full there is no adapter: all weights are trained, and -o is a whole model.\n",
};
