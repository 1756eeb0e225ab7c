/* cmd_generate.c - `dpinfer generate`: texts from an adapter, many at a time. No record is read:
 * with an adapter that is (epsilon, delta)-DP this is post-processing. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpinfer/drawing.h"
#include "dpinfer/finetune.h"
#include "dpinfer/memory.h"
#include "dpinfer/steer.h"
#include "tools/command/best_texts.h"
#include "tools/command/commands.h"
#include "tools/command/task_labels.h"
#include "tools/command/texts_told.h"
#include "tools/options/grammar_options.h"
#include "tools/options/wording_options.h"
#include "tools/options/paths.h"
#include "tools/shared/report_files.h"
#include "tools/shared/text_sink.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/statement_shown.h"

typedef struct generating {
    const args *a;
    dpi_model *model;
    dpi_grammar *grammar; /* NULL: any text */
    wording_input worded;
    dpi_word_rules *rules;
    dpi_mask *mask;
    dpi_finetune_task task;
    char *description; /* of the file; NULL: it has none */
    char *meaning_lines; /* of the file; NULL: it has none */
    char *word_lines;    /* key words of vectors; NULL: the file has none */
    int32_t n_text;    /* with it, as in dpi_prompt_options */
    dpi_prompt_options asked; /* of all labels, as the command line and the file have it */
    dpi_claim claim;
    bool claimed;
    task_labels labels;
    int32_t *shares; /* [n_labels] texts of each; NULL: as many of each */
    dpi_prompts **prompts; /* [n_prompts]: [labels.n], or one */
    int32_t n_prompts;
    dpi_drawing *drawing;
    dpi_sampler_options drawn; /* how */
    best_texts best;
    int32_t n_texts;
    int32_t *n_drawn; /* [n_texts] tokens of those that are written */
    bool *ended;      /* [n_texts] by themselves */
    output out;
    text_sink sink;
    texts_told told;
} generating;

/* ---- The adapter ----------------------------------------------------------------------------- */

/* It has a file of its own, beside a model. */
static bool is_beside(const dpi_claim *claim) {
    return !dpi_claim_find(claim, "gradients") ||
           dpi_claim_value(dpi_claim_find(claim, "gradients"), "trained") < 1;
}

/* What the claim and the task are read of. */
static const char *file_of(const args *a) {
    return a->v[OPT_STEER].given ? a->v[OPT_STEER].s
           : a->v[OPT_LORA].given ? a->v[OPT_LORA].s
                                  : a->model;
}

/* Two claims would add up, and vectors of others would steer what a claim does not know of. */
static int check_one(const args *a) {
    static const option_id others[] = {OPT_LORA, OPT_CONTROL_VECTOR};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (a->v[OPT_STEER].given && a->v[others[i]].given)
            return cli_fail(CLI_USAGE, "--steer and --%s: allowed is one of them",
                            option_name(others[i]));
    return CLI_OK;
}

/* An adapter of another program has no claim, which is no failure. Without an adapter the model has
 * one: all its weights were trained. */
static int read_adapter(generating *g) {
    const char *path = file_of(g->a);
    const bool steers = g->a->v[OPT_STEER].given;
    int32_t holds = 0;
    dpi_error err;
    dpi_status status = dpi_finetune_read_claim(path, &g->claim, &holds, &err);
    g->claimed = status == DPI_STATUS_OK;
    if (path == g->a->model &&
        (status == DPI_STATUS_FORMAT || (g->claimed && is_beside(&g->claim))))
        return cli_fail(CLI_USAGE, "--lora FILE or --steer FILE: needed is the adapter, or the "
                                   "vectors, as %s is no model of 'dpinfer finetune --full' or "
                                   "'--merge'", path);
    if (g->claimed && steers != (dpi_claim_find(&g->claim, "steering") != NULL))
        return cli_fail(CLI_USAGE, "--%s: %s is %s", steers ? "steer" : "lora", path,
                        steers ? "an adapter, which needs --lora"
                               : "of 'dpinfer steer', which needs --steer");
    if (status == DPI_STATUS_ARG)
        return cli_fail_library(CLI_REPORT, &err);
    if (g->claimed && !holds)
        return cli_fail(CLI_REPORT, "the claim of %s does not hold; see 'dpinfer verify'", path);
    if (g->claimed)
        status = dpi_finetune_read_task(path, &g->task, &err);
    if (g->claimed && status == DPI_STATUS_OK)
        status = dpi_finetune_read_description(path, &g->description, &g->n_text, &err);
    if (g->claimed && status == DPI_STATUS_OK)
        status = dpi_finetune_read_meanings(path, &g->meaning_lines, &err);
    if (g->claimed && status == DPI_STATUS_OK)
        status = dpi_finetune_read_words(path, &g->word_lines, &err);
    return status == DPI_STATUS_OK || (status == DPI_STATUS_FORMAT && !g->claimed)
               ? task_labels_read(g->a, &(task_lines){g->task.labels, g->meaning_lines,
                                                      g->word_lines, g->task.attributes,
                                                      g->claimed}, &g->labels)
               : cli_fail_library(CLI_MODEL, &err);
}

/* ---- Prompts --------------------------------------------------------------------------------- */

/* The options of the prompt of label i; *made: what they refer to, the caller's. */
static dpi_status prompt_options(const generating *g, int32_t i, dpi_prompt_options *o, char **made,
                                 dpi_error *err) {
    *made = NULL;
    if (!g->labels.names)
        return DPI_STATUS_OK;
    if (g->labels.n_attributes == 0) {
        *made = task_label_in_prompt(&g->labels, i, o->description.data != NULL);
        o->label = (dpi_bytes){*made, *made ? strlen(*made) : 0};
        return *made ? DPI_STATUS_OK : DPI_STATUS_MEMORY;
    }
    const dpi_status status = dpi_finetune_instruction(o->public_prompt.data, g->labels.attributes,
                                                       g->labels.n_attributes, g->labels.names[i],
                                                       made, err);
    if (status == DPI_STATUS_OK)
        o->public_prompt = (dpi_bytes){*made, strlen(*made)};
    return status;
}

static int make_prompt(generating *g, const dpi_model_info *model,
                       const dpi_prompt_options *common, int32_t i) {
    dpi_prompt_options o = *common;
    dpi_error err = {.message = "no memory for the texts"};
    char *made;
    dpi_status status = prompt_options(g, i, &o, &made, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_prompts_create(g->model, &o, model->n_ctx_train - g->drawn.n_tokens,
                                    &g->prompts[i], &err);
    free(made);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_status(status, &err);
}

/* What the command line says, and else the file. */
static int read_prompt(generating *g) {
    dpi_prompt_options *o = &g->asked;
    const option_value *v = g->a->v;
    const bool says = v[OPT_INSTRUCTION].given || v[OPT_DESCRIBE].given;
    const char *instruction = says ? v[OPT_INSTRUCTION].s : g->task.instruction;
    const char *description = says ? v[OPT_DESCRIBE].s : g->description;
    dpi_error err;
    dpi_prompt_options_init(o);
    o->chat = g->claimed ? g->task.chat : DPI_CHAT_AUTO;
    if (v[OPT_INSTRUCTION].given && v[OPT_DESCRIBE].given)
        return cli_fail(CLI_USAGE, "--instruction and --describe: allowed is one of them");
    if (v[OPT_TEMPLATE].given && dpi_chat_parse(v[OPT_TEMPLATE].s, &o->chat, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    if (instruction)
        o->public_prompt = (dpi_bytes){instruction, strlen(instruction)};
    if (description)
        o->description = (dpi_bytes){description, strlen(description)};
    o->n_text = v[OPT_DESCRIBE].given ? g->drawn.n_tokens : g->n_text;
    return CLI_OK;
}

static int make_prompts(generating *g, const dpi_model_info *model) {
    dpi_prompt_options o = g->asked;
    dpi_wording_end_prompts(&g->worded.wording, &o);
    const bool placed = g->labels.n_attributes > 0 || dpi_prompt_options_have_label(&o) != 0;
    const bool labelled = g->labels.names != NULL;
    if (placed != labelled || (g->labels.n_attributes > 0 && !o.public_prompt.data))
        return cli_fail(CLI_USAGE, "the instruction has %s {label}, and there are %s labels",
                        labelled ? "no" : "a", labelled ? "some" : "no");
    g->n_prompts = labelled ? g->labels.n : 1;
    g->prompts = calloc((size_t)g->n_prompts, sizeof *g->prompts);
    int code = g->prompts ? CLI_OK : cli_no_memory("the texts");
    for (int32_t i = 0; i < g->n_prompts && code == CLI_OK; i++)
        code = make_prompt(g, model, &o, i);
    return code;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* {"NAME": value} of a label; NULL: out of memory. */
static char *attributes_of(const generating *g, const char *label) {
    json_t *values = json_object();
    int bad = !values;
    for (int32_t i = 0; i < g->labels.n_attributes && !bad; i++) {
        const size_t n = strcspn(label, "\t");
        bad = json_object_set_new(values, g->labels.attributes[i], json_stringn(label, n));
        label += label[n] ? n + 1 : n;
    }
    const size_t ascii = g->sink.screen ? JSON_ENSURE_ASCII : 0;
    char *json = bad ? NULL : json_dumps(values, JSON_COMPACT | ascii);
    json_decref(values);
    return json;
}

/* What a drawing tells of it: --max-words is an end of its own here. */
static int32_t end_of(int32_t ended) { return ended ? DPI_END_EOG : DPI_END_LENGTH; }

static int write_text(generating *g, const dpi_drawn_text *t) {
    const char *label = g->labels.names ? g->labels.names[t->prompt] : NULL;
    char *attributes = label && g->labels.n_attributes > 0 ? attributes_of(g, label) : NULL;
    if (label && g->labels.n_attributes > 0 && !attributes)
        return cli_no_memory("the texts");
    const text_head head = {t->index, label, label ? strlen(label) : 0, attributes};
    int code = text_sink_put(&g->sink, &head, t->data, t->n_bytes, t->n_drawn, t->ended);
    dpi_private_free(attributes);
    if (code == CLI_OK)
        code = texts_told_add(&g->told, t->data, t->n_bytes);
    return code == CLI_OK ? texts_told_end(&g->told, end_of(t->ended)) : code;
}

static int draw_texts(generating *g) {
    int code = CLI_OK;
    while (code == CLI_OK && g->sink.n_texts < g->n_texts) {
        dpi_drawn_text drawn, text;
        dpi_error err;
        const dpi_status status = dpi_drawing_next(g->drawing, &drawn, &err);
        if (status != DPI_STATUS_OK)
            return cli_fail_status(status, &err);
        if (drawn.index < 0)
            break;
        const int32_t *sets = g->labels.sets;
        code = best_texts_put(&g->best, &drawn, sets ? sets[drawn.prompt] : 0, &text);
        if (code != CLI_OK || text.index < 0)
            continue;
        g->n_drawn[text.index] = text.n_drawn;
        g->ended[text.index] = text.ended;
        code = write_text(g, &text);
    }
    return code;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* As the model's file recommends, unless the command line says otherwise. */
static int read_draw(generating *g, const dpi_model_info *info) {
    dpi_sampler_options *o = &g->drawn;
    dpi_error err;
    dpi_sampler_options_init(o);
    const dpi_status status = dpi_method_defaults(DPI_METHOD_PLAIN, o, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_status(status, &err);
    if (info->sampling_top_k > 0)
        o->top_k = info->sampling_top_k;
    o->n_tokens = dpi_tokens_default(info->n_ctx_train);
    const int code = options_parameters(g->a, o);
    if (info->sampling_temp > 0 && !g->a->v[OPT_TEMP].given)
        o->tau = info->sampling_temp;
    return code;
}

static int make_mask(generating *g) {
    dpi_error err;
    const int code = grammar_options_read(g->a, &g->grammar);
    if (code != CLI_OK || !g->grammar)
        return code;
    dpi_status status = dpi_mask_create(g->grammar, g->model, &g->mask, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_mask_check_length(g->mask, g->drawn.n_tokens, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_option(CLI_USAGE, &err);
}

static int make_rules(generating *g) {
    dpi_error err;
    int code = wording_options_read(g->a, &g->worded);
    if (code == CLI_OK)
        code = wording_options_bind(g->a, g->model, &g->worded);
    if (code != CLI_OK)
        return code;
    dpi_status status = DPI_STATUS_OK;
    if (!g->mask)
        status = dpi_wording_choose(&g->asked, g->model, &g->worded.wording, g->worded.stops, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_word_rules_create(&g->worded.wording, g->model, &g->rules, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_status(status, &err);
}

/* How many texts are drawn for each one: by the words of vectors, if they have some. */
static int open_best(generating *g) {
    const option_value *v = &g->a->v[OPT_BEST_OF];
    const int32_t n_each = v->given ? (int32_t)v->i : g->word_lines ? 0 : 1;
    return best_texts_open(&g->best, file_of(g->a), n_each);
}

/* As --num-per-label says, else as the adapter counted its units. */
static bool share_texts(generating *g) {
    const task_labels *l = &g->labels;
    const bool counted = g->task.counts && l->own.n == 0 && g->task.n_counts == l->n;
    if (!l->own.texts && !counted)
        return true;
    g->shares = calloc((size_t)l->n, sizeof *g->shares);
    if (g->shares && counted)
        dpi_finetune_share(g->task.counts, l->n, g->n_texts, g->shares);
    else if (g->shares)
        memcpy(g->shares, l->own.texts, (size_t)l->n * sizeof *g->shares);
    return g->shares != NULL;
}

static int count_texts(generating *g) {
    const option_value *v = g->a->v;
    int64_t n = v[OPT_NUM].given ? v[OPT_NUM].i : g->labels.names ? g->labels.n_names : 1;
    for (int32_t i = 0; g->labels.own.texts && i < g->labels.own.n; i++)
        n = i == 0 ? g->labels.own.texts[0] : n + g->labels.own.texts[i];
    if (g->labels.own.texts && v[OPT_NUM].given)
        return cli_fail(CLI_USAGE, "--num and --num-per-label: allowed is one of them");
    const int32_t most = (INT32_MAX / 2 - DPI_STEER_LABELS_MAX) / g->best.n_each;
    if (n < 1 || n > most)
        return cli_fail(CLI_USAGE, "texts: found %" PRId64 ", allowed 1..%d", n, (int)most);
    g->n_texts = (int32_t)n;
    g->n_drawn = calloc((size_t)n, sizeof *g->n_drawn);
    g->ended = calloc((size_t)n, sizeof *g->ended);
    return g->n_drawn && g->ended && share_texts(g) ? CLI_OK : cli_no_memory("the texts");
}

/* How many texts are drawn so that each label has n_each for each of its texts. Labels come in
 * turn; where there are fewer texts than labels, the prompts of the first ones alone. */
static bool count_drawn(generating *g, int32_t *n) {
    const int32_t n_each = g->best.n_each, n_labels = g->labels.names ? g->labels.n_names : 1;
    const bool few = n_each > 1 && !g->shares && g->n_texts < n_labels;
    *n = g->n_texts * n_each;
    if (n_each > 1 && !g->shares && !few)
        *n = (g->n_texts + n_labels - 1) / n_labels * n_labels * n_each;
    for (int32_t i = 0; g->shares && i < g->n_prompts; i++)
        g->shares[i] *= n_each;
    if (few && (g->shares = calloc((size_t)g->n_prompts, sizeof *g->shares)))
        for (int32_t i = 0; i < n_each; i++)
            for (int32_t label = 0; label < g->n_texts; label++)
                g->shares[i % (g->n_prompts / n_labels) * n_labels + label]++;
    return !few || g->shares;
}

static int open_drawing(generating *g) {
    const option_value *v = g->a->v;
    dpi_drawing_options o;
    dpi_error err;
    dpi_drawing_options_init(&o);
    o.model = g->model, o.mask = g->mask, o.rules = g->rules;
    if (!count_drawn(g, &o.n_texts))
        return cli_no_memory("the texts");
    o.prompts = g->prompts, o.n_prompts = g->n_prompts, o.shares = g->shares;
    o.sets = g->labels.sets, o.method = g->drawn;
    if (v[OPT_PARALLEL].given)
        o.n_parallel = (int32_t)(v[OPT_PARALLEL].i < DPI_DRAWING_PARALLEL_MAX
                                     ? v[OPT_PARALLEL].i
                                     : DPI_DRAWING_PARALLEL_MAX);
    o.session.n_threads = (int32_t)v[OPT_THREADS].i;
    o.session.isa = (int32_t)v[OPT_ISA].i;
    o.session.cancel = signals_cancel;
    o.seeded = v[OPT_DRAW_SEED].given, o.seed = (uint64_t)v[OPT_DRAW_SEED].i;
    const dpi_status status = dpi_drawing_open(&o, &g->drawing, &err);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_status(status, &err);
}

/* What would be reported of an adapter that says nothing? */
static int probe_reports(const generating *g) {
    if (g->a->n_reports > 0 && !g->claimed)
        return cli_fail(CLI_USAGE, "--report: the adapter says nothing of how it was made");
    return report_files_probe(g->a);
}

/* Where a prompt names the label, it takes more to move a text (docs/results.md). */
static dpi_model_options model_options(const generating *g) {
    dpi_model_options o = options_model(g->a);
    if (g->a->v[OPT_STEER].given && g->task.labels && !g->a->v[OPT_CONTROL_VECTOR_SCALE].given)
        o.control_vector_scale = 2;
    return o;
}

static int open_all(generating *g) {
    const args *a = g->a;
    dpi_model_options model;
    dpi_model_info info;
    int code = paths_check_command(a);
    if (code == CLI_OK)
        code = check_one(a);
    if (code == CLI_OK)
        code = read_adapter(g);
    if (code == CLI_OK)
        code = probe_reports(g);
    if (code == CLI_OK)
        code = open_best(g);
    if (code == CLI_OK)
        code = count_texts(g);
    model = model_options(g);
    if (code == CLI_OK)
        code = cli_open_model(a->model, &model, &g->model, &info);
    if (code == CLI_OK)
        code = read_draw(g, &info); /* which settles how many tokens a text has */
    if (code == CLI_OK)
        code = make_mask(g);
    if (code == CLI_OK)
        code = read_prompt(g);
    if (code == CLI_OK)
        code = make_rules(g);
    if (code == CLI_OK)
        code = make_prompts(g, &info);
    if (code == CLI_OK)
        code = open_drawing(g);
    if (code == CLI_OK)
        code = output_open(&g->out, a->v[OPT_OUTPUT].s, a->v[OPT_OVERWRITE].i);
    text_sink_open(&g->sink, &g->out, text_form_of(a->v[OPT_JSONL].i, a->v[OPT_OUTPUT].s), NULL);
    g->sink.screen = strcmp(a->v[OPT_OUTPUT].s, "-") == 0 && isatty(STDOUT_FILENO);
    g->sink.is_private = g->claimed && dpi_claim_is_private(&g->claim);
    return code;
}

/* The claim of the adapter, and the texts that cost nothing more. */
static dpi_status claim_texts(generating *g, dpi_error *err) {
    dpi_claim_part *p = dpi_claim_add(&g->claim, "texts");
    const struct {
        const char *key;
        double value;
    } set[] = {{"T", g->drawn.n_tokens}, {"temp", g->drawn.tau}, {"top_p", g->drawn.top_p},
               {"min_p", g->drawn.min_p}, {"best_of", g->best.n_each > 1 ? g->best.n_each : 0}};
    dpi_status status = DPI_STATUS_OK;
    p->n_runs = g->sink.n_texts;
    for (size_t i = 0; i < sizeof set / sizeof *set && status == DPI_STATUS_OK; i++)
        status = dpi_claim_set(p, set[i].key, set[i].value, err);
    if (status == DPI_STATUS_OK)
        status = dpi_claim_bind_wording(&g->claim, &g->worded.wording, err);
    return status == DPI_STATUS_OK ? dpi_claim_settle(&g->claim, err) : status;
}

/* Of a file; what is no file has no hash. */
static dpi_status fill_report(const generating *g, dpi_report *report, dpi_error *err) {
    const char *path = g->a->v[OPT_OUTPUT].s;
    dpi_status status = DPI_STATUS_OK;
    for (int32_t i = 0; i < g->sink.n_texts && status == DPI_STATUS_OK; i++)
        status = dpi_report_text_add(report, NULL, g->n_drawn[i], end_of(g->ended[i]), err);
    return status == DPI_STATUS_OK && paths_is_file(path)
               ? dpi_report_output_file(report, path, g->sink.form == TEXT_JSONL,
                                        g->sink.form == TEXT_CSV ? -1 : g->sink.n_bytes, err)
               : status;
}

/* As of the texts of a run; into the report, NULL: none. */
static int tell_texts(const generating *g, dpi_report *report) {
    return texts_told_say(&g->told, g->drawn.n_tokens, false, !g->a->v[OPT_QUIET].i, report);
}

static int write_reports(const generating *g) {
    dpi_report *report;
    dpi_error err;
    if (g->a->n_reports == 0)
        return tell_texts(g, NULL);
    dpi_status status =
        dpi_report_of(&g->claim, NULL, file_of(g->a), &report, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    status = dpi_report_wording(report, &g->worded.wording, &err);
    if (status == DPI_STATUS_OK)
        status = fill_report(g, report, &err);
    int code = status == DPI_STATUS_OK ? tell_texts(g, report) : cli_fail_library(CLI_FAILED, &err);
    if (code == CLI_OK)
        code = report_files_all(g->a, report);
    dpi_report_free(report);
    return code;
}

/* The statement as it is shown, for free; NULL after a failure. */
static char *make_statement(const generating *g, bool complete) {
    static const char none[] = "Privacy statement: NOT PRIVATE\n  guarantee          none: the "
                               "adapter says nothing of how it was made\n";
    return g->claimed ? statement_of_claim(&g->claim, complete) : strdup(none);
}

static void close_all(generating *g) {
    dpi_drawing_free(g->drawing);
    texts_told_free(&g->told);
    best_texts_free(&g->best);
    for (int32_t i = 0; i < g->n_prompts && g->prompts; i++)
        dpi_prompts_free(g->prompts[i]);
    free(g->prompts), free(g->shares);
    free(g->n_drawn), free(g->ended);
    dpi_mask_free(g->mask);
    dpi_word_rules_free(g->rules);
    wording_options_free(&g->worded);
    dpi_grammar_free(g->grammar);
    task_labels_free(&g->labels);
    free(g->description), free(g->meaning_lines), free(g->word_lines);
    dpi_finetune_task_free(&g->task);
    dpi_model_close(g->model);
}

static int generate_main(const args *a) {
    generating g = {.a = a, .out = {.fd = -1}};
    signals_clean_up(); /* until there is something to finish */
    int code = open_all(&g);
    const bool opened = code == CLI_OK;
    if (opened) {
        signals_catch();
        code = draw_texts(&g);
    }
    code = output_finish(&g.out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_PARTIAL, code);
    dpi_error err;
    if (code == CLI_OK && g.claimed && claim_texts(&g, &err) != DPI_STATUS_OK)
        code = cli_fail_library(CLI_FAILED, &err);
    if (code == CLI_OK)
        code = write_reports(&g);
    if (opened)
        code = statement_end(make_statement(&g, code == CLI_OK), code);
    close_all(&g);
    return code;
}

const command command_generate = {
    .name = "generate", .bit = CMD_GENERATE, .arguments = "MODEL",
    .takes_model = 1, .max_positional = 0, .run = generate_main,
    .summary = "texts from a private adapter or steering vectors, with no record",
    .details =
        "Draws --num texts from MODEL with an adapter of 'finetune', many at a time. No record is\n"
        "read: whatever the adapter guarantees is the guarantee of all texts, however many.\n"
        "Instruction, chat format and labels are those that the adapter was trained with. Of each\n"
        "label come as many texts, or in proportion to its units (finetune --histogram-epsilon),\n"
        "or as --num-per-label FILE says. A model of 'finetune --full'\n"
        "needs no --lora. --steer FILE has vectors of 'steer' in place of an adapter. With words\n"
        "of the records in it, four texts are drawn for each that is written (--best-of), and\n"
        "those are written that together say what the records said.\n\n"
        "--report FILE has the claim, what it guarantees of the texts and their hash, as JSON.\n"
        "The claim in the adapter's file is computed again, and its numbers are hashed; exit code\n"
        "5 if it does not hold. An adapter without a claim makes texts that are NOT PRIVATE.\n",
};
