/* cmd_preview.c - `dpinfer preview`: prompts tried on public texts, without spending. */
#include <stdlib.h>
#include <string.h>

#include "eval/preview.h"
#include "tools/command/commands.h"
#include "tools/options/grammar_options.h"
#include "tools/options/paths.h"
#include "tools/options/records_options.h"
#include "tools/options/release_options.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"

/* What the command has open. */
typedef struct trying {
    const args *a;
    release_texts texts;
    dpi_release_options read; /* of which labels are used */
    dpi_model *model;
    eval_texts records;
    eval_preview_options options;
    eval_preview preview;
    output out;
} trying;

static eval_preview_form form_of(const args *a) {
    const char *path = a->v[OPT_OUTPUT].s;
    return a->v[OPT_JSON].i || cli_ends_in(path, ".json")               ? EVAL_PREVIEW_JSON
           : cli_ends_in(path, ".html") || cli_ends_in(path, ".htm") ? EVAL_PREVIEW_HTML
                                                                        : EVAL_PREVIEW_TEXT;
}

/* ---- Example records ------------------------------------------------------------------------- */

static int read_records(trying *t) {
    const char *path = t->a->v[OPT_EXAMPLE_RECORDS].s;
    dpi_records_options o;
    dpi_error err;
    if (!path) {
        cli_note("note: without --example-records made-up support tickets stand in their place");
        return eval_preview_tickets(t->options.n_texts, &t->records, &err) == DPI_STATUS_OK
                   ? CLI_OK
                   : cli_fail_library(CLI_FAILED, &err);
    }
    const int code = records_options(t->a, &o);
    if (code != CLI_OK)
        return code;
    if (eval_texts_read(path, &o, &t->records, &err) != DPI_STATUS_OK)
        return cli_fail_option(CLI_RECORDS, &err);
    return t->records.n > 0 ? CLI_OK
                            : cli_fail(CLI_RECORDS, "--example-records: found no text in %s", path);
}

/* ---- Options --------------------------------------------------------------------------------- */

static int read_options(trying *t) {
    const args *a = t->a;
    eval_preview_options *o = &t->options;
    dpi_sampler_options_init(&o->method);
    o->method.method = DPI_METHOD_PLAIN, o->method.n_ref = 0;
    o->method.tau = a->v[OPT_TEMP].d;
    o->method.top_k = (int32_t)a->v[OPT_TRIED_TOP_K].i;
    o->method.n_tokens = a->v[OPT_N_PREDICT].given ? (int32_t)a->v[OPT_N_PREDICT].i : 0;
    o->n_texts = (int32_t)a->v[OPT_TRIED_NUM].i;
    o->seeded = a->v[OPT_SEED].given, o->seed = (uint64_t)a->v[OPT_SEED].i;
    dpi_prompt_options_init(&o->prompts);
    int code = read_session_options(a, &o->session);
    o->session.cancel = signals_cancel;
    if (code == CLI_OK)
        code = label_options_read(a, false, &t->texts.labels, &t->read);
    o->labels = t->read.label_names, o->n_labels = t->read.n_labels;
    o->meanings = t->read.label_meanings;
    if (code == CLI_OK)
        code = grammar_options_read(a, &t->texts.grammar);
    o->grammar = t->texts.grammar;
    if (code == CLI_OK)
        code = wording_options_read(a, &t->texts.wording);
    o->wording = &t->texts.wording.wording;
    if (code == CLI_OK)
        code = prompt_texts_read(a, &t->texts.prompts, &o->prompts);
    return code;
}

/* ---- All ------------------------------------------------------------------------------------- */

static int write_preview(trying *t) {
    char *text = NULL;
    size_t n = 0;
    FILE *stream = open_memstream(&text, &n);
    bool ok = stream && eval_preview_print(&t->preview, form_of(t->a), stream);
    ok = stream && fclose(stream) == 0 && ok;
    int code = ok ? output_open(&t->out, t->a->v[OPT_OUTPUT].s, t->a->v[OPT_OVERWRITE].i)
                  : cli_no_memory("the preview");
    if (code == CLI_OK)
        code = output_show(&t->out, text, n);
    free(text);
    return output_finish(&t->out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
}

static int try_prompts(trying *t) {
    const dpi_model_options model = options_model(t->a);
    dpi_error err;
    int code = paths_check_command(t->a);
    if (code == CLI_OK)
        code = read_options(t);
    if (code == CLI_OK)
        code = read_records(t);
    if (code == CLI_OK)
        code = cli_open_model(t->a->model, &model, &t->model, NULL);
    if (code == CLI_OK)
        code = wording_options_bind(t->a, t->model, &t->texts.wording);
    if (code != CLI_OK)
        return code;
    t->options.model = t->model, t->options.records = &t->records;
    const dpi_status status = eval_preview_make(&t->options, &t->preview, &err);
    return status == DPI_STATUS_OK ? write_preview(t) : cli_fail_status(status, &err);
}

static int preview_main(const args *a) {
    trying t = {.a = a, .out = {.fd = -1}};
    signals_clean_up(); /* there is nothing to finish */
    const int code = try_prompts(&t);
    eval_preview_free(&t.preview);
    eval_texts_free(&t.records);
    release_texts_free(&t.texts);
    dpi_model_close(t.model);
    return code;
}

const command command_preview = {
    .name = "preview",
    .bit = CMD_PREVIEW,
    .arguments = "MODEL",
    .takes_model = 1,
    .run = preview_main,
    .summary = "prompts tried on public texts, for nothing",
    .details =
        "Shows what MODEL writes after the public prompt, and what single PUBLIC example records\n"
        "give (--example-records: made-up or public documents like yours), beside the prompts\n"
        "with their special tokens; then says in words what is wrong, and which option mends it.\n"
        "Nothing is spent: prompts must not be chosen by looking at private records, whose\n"
        "effect on the choice nobody would count.\n"
        "Takes the prompt options of 'run'. The output is text, or by its name a .json or a page\n"
        "of .html. docs/prompts.md says how to make a prompt.\n",
};
