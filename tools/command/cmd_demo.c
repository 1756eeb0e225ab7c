/* cmd_demo.c - `dpinfer demo`: the built-in model on sample documents, with privacy and without. */
#include "tools/command/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/shared/release_input.h"
#include "tools/terminal/program_system.h"
#include "tools/terminal/screen.h"

/* What the demo shows: shipped in the source tree and installed under share/dpinfer. */
static const char model_path[] = "models/dpinfer-4m-q8_0.gguf";
static const char refs_path[] = "examples/discharge.jsonl";
static const char task[] = "Write hospital discharge instructions.";

/* N_TEXTS batches of BATCH documents each. */
enum { PATH_BYTES = 4096, N_TEXTS = 12 };
#define TEXTS "12"
#define BATCH "24"
#define N_TOKENS "256"
#define TEMP "0.7" /* of private texts: it keeps their form (bench/UTILITY.md) */

/* ---- Finding the files ----------------------------------------------------------------------- */

/* The folder that holds both: ROOT/bin/dpinfer has ROOT/share/dpinfer, a build folder in the source
 * tree is next to them. */
static int find_data(const char *program, char folder[PATH_BYTES]) {
    static const char *const places[] = {"../share/dpinfer", "..", "."};
    char candidate[PATH_BYTES + 64];
    int n = (int)(strrchr(program, '/') - program);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(candidate, sizeof candidate, "%.*s/%s", n, program, places[i]);
        if (!realpath(candidate, folder))
            continue;
        snprintf(candidate, sizeof candidate, "%s/%s", folder, model_path);
        if (access(candidate, R_OK) == 0)
            return CLI_OK;
    }
    return cli_fail(CLI_MODEL, "no %s in %.*s/{%s,%s,%s}: the demo needs the source tree or an "
                               "installation", model_path, n, program, places[0], places[1],
                    places[2]);
}

/* ---- What is counted ------------------------------------------------------------------------- */

/* Something that documents say, each in one of these wordings. */
typedef struct trait {
    const char *name, *wordings[12];
} trait;

static const trait traits[] = {
    {"a burn, sepsis, an allergy or a kidney infection",
     {"burn", "scald", "sepsis", "blood infection", "kidney infection", "infected kidney",
      "allergic reaction"}},
    {"a diet rich in protein or without nuts",
     {"eggs fish or beans", "more protein", "high protein diet", "avoid nuts", "avoid all nuts",
      "nut free diet"}},
    {"the next visit after two, five or ten days",
     {"in two days", "within 48 hours", "two day", "in five days", "five days from now", "five day",
      "in ten days", "ten days from now", "ten day"}},
    {"help at home by a neighbour, a nurse or a flatmate",
     {"your neighbour", "the district nurse", "the visiting nurse", "the home carer", "your carer",
      "your roommate", "your flatmate"}},
};
enum { N_TRAITS = sizeof traits / sizeof *traits };

static bool has_trait(const words *w, const trait *t) {
    for (int i = 0; t->wordings[i]; i++)
        if (words_have(w, t->wordings[i]))
            return true;
    return false;
}

/* The texts of one kind, counted. */
typedef struct tally {
    const char *name;
    style colour;
    int n, of[N_TRAITS];
} tally;

static bool count_text(tally *t, const char *text, size_t n_bytes) {
    words w = {0};
    if (!words_add(&w, text, n_bytes))
        return false;
    t->n++;
    for (int i = 0; i < N_TRAITS; i++)
        t->of[i] += has_trait(&w, &traits[i]);
    free(w.text);
    return true;
}

/* ---- The texts of one kind ------------------------------------------------------------------- */

typedef struct shown {
    char guarantee[64];
    bool is_private, reads_records;
    double seconds;
} shown;

/* A kind of texts: how it is called, and the options of `dpinfer run` that are its own. */
typedef struct kind {
    const char *name, *what;
    const char *options[8];
    bool is_document; /* after one document, which is shown first */
    style colour;
} kind;

static const kind kinds[] = {
    {"Public", "from the model alone",
     {"--plain"}, false, STYLE_DIM},
    {"Private, epsilon 1", BATCH " documents a text",
     {"--epsilon", "1", "-B", BATCH, "--temp", TEMP}, false, STYLE_GREEN},
    {"Private, epsilon 10", BATCH " documents a text",
     {"--epsilon", "10", "-B", BATCH, "--temp", TEMP}, false, STYLE_GREEN},
    {"Not private", "from one document, which is given away",
     {"--plain", "--reference", "1"}, true, STYLE_RED},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

typedef struct scene {
    screen screen;
    char model[PATH_BYTES + 64], refs[PATH_BYTES + 64];
    words document, public_texts;
    shown rows[N_KINDS];
    tally tallies[1 + N_KINDS]; /* the documents first */
    char text[1 << 16]; /* the text that is being drawn */
    size_t n_text;
} scene;

static void guarantee_text(const dpi_run *c, shown *row) {
    if (dpi_run_is_proven(c))
        snprintf(row->guarantee, sizeof row->guarantee, "(%g, %g)-DP", c->method.epsilon,
                 c->method.delta);
    else
        snprintf(row->guarantee, sizeof row->guarantee, "%s",
                 c->record_in_prompt ? "NONE" : "nothing private is read");
}

/* A finished text. */
static int end_text(scene *d, int which) {
    tally *t = &d->tallies[1 + which];
    if (which == 0 && !words_add(&d->public_texts, d->text, d->n_text))
        return cli_no_memory("the demo");
    if (!count_text(t, d->text, d->n_text))
        return cli_no_memory("the demo");
    if (t->n == 1)
        screen_end(&d->screen);
    if (t->n < N_TEXTS) {
        char line[64];
        snprintf(line, sizeof line, "%d of " TEXTS " texts like this one ...", t->n);
        screen_progress(&d->screen, line);
    }
    d->n_text = 0;
    return CLI_OK;
}

/* Shows the first text of a release as it is drawn, and counts them all. */
static int draw_texts(scene *d, int which, dpi_release *release) {
    dpi_release_event event;
    dpi_error err;
    int code = CLI_OK;
    while (code == CLI_OK) {
        if (dpi_release_advance(release, &event, &err) != DPI_STATUS_OK)
            return cli_fail_library(CLI_FAILED, &err);
        if (event.type == DPI_EVENT_NONE)
            break;
        if (event.index == 0)
            screen_text(&d->screen, event.text, event.n_bytes);
        size_t room = sizeof d->text - d->n_text;
        size_t n = event.n_bytes < room ? event.n_bytes : room;
        memcpy(d->text + d->n_text, event.text, n);
        d->n_text += n;
        if (event.type == DPI_EVENT_END)
            code = end_text(d, which);
    }
    screen_clear(&d->screen);
    return code;
}

/* The document that the texts of the last kind are about. The samples are fiction. */
static int show_document(scene *d, const dpi_records *records) {
    char *text;
    size_t n_bytes;
    dpi_error err;
    if (dpi_records_read(records, 0, &text, &n_bytes, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    if (!text)
        return cli_fail(CLI_RECORDS, "%s: the first record is empty or unreadable", d->refs);
    screen *s = &d->screen;
    printf("  %sthe document:%s\n", screen_style(s, STYLE_DIM), screen_style(s, STYLE_PLAIN));
    screen_text(s, text, n_bytes);
    screen_end(s);
    bool added = words_add(&d->document, text, n_bytes);
    dpi_private_free(text);
    if (!added)
        return cli_no_memory("the demo");
    s->in = &d->document;
    s->not_in = &d->public_texts;
    printf("  %sthe text; %s: words of the document that no public text above has:%s\n",
           screen_style(s, STYLE_DIM), s->colour ? "marked" : "*so*",
           screen_style(s, STYLE_PLAIN));
    return CLI_OK;
}

/* The share of the documents themselves. */
static int count_documents(scene *d, const dpi_records *records) {
    dpi_error err;
    for (size_t i = 0; i < dpi_records_count(records); i++) {
        char *text;
        size_t n_bytes;
        if (dpi_records_read(records, i, &text, &n_bytes, &err) != DPI_STATUS_OK)
            return cli_fail_library(CLI_FAILED, &err);
        bool counted = !text || count_text(&d->tallies[0], text, n_bytes);
        dpi_private_free(text);
        if (!counted)
            return cli_no_memory("the demo");
    }
    return CLI_OK;
}

static int show_release(scene *d, int which, const release_input *in) {
    const dpi_run *c = dpi_release_run(in->release);
    shown *row = &d->rows[which];
    const double begin = cli_now();
    dpi_error err;
    if (dpi_release_begin(in->release, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    int code = draw_texts(d, which, in->release);
    *row = (shown){.is_private = dpi_run_is_private(c), .reads_records = c->record_in_prompt,
                   .seconds = cli_now() - begin};
    guarantee_text(c, row);
    return code;
}

/* Runs `dpinfer run` with the options of a kind and shows its first text under a headline. */
static int show(scene *d, int which) {
    const kind *k = &kinds[which];
    const screen *s = &d->screen;
    const char *common[] = {"--public-prompt", task, "-n", N_TOKENS, "--num", TEXTS};
    char *argv[24];
    int argc = 0;
    argv[argc++] = (char[]){"run"};
    argv[argc++] = d->model;
    if (which > 0)
        argv[argc++] = d->refs;
    for (int i = 0; k->options[i]; i++)
        argv[argc++] = (char *)k->options[i];
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        argv[argc++] = (char *)common[i];
    argv[argc] = NULL;
    args a;
    bool done;
    release_input in = {0};
    printf("%s%s%s: %s\n", screen_style(s, STYLE_BOLD), k->name, screen_style(s, STYLE_PLAIN),
           k->what);
    int code = options_parse(&command_run, argc, argv, &a, &done);
    if (code == CLI_OK)
        code = release_open(&a, true, NULL, &in);
    if (code == CLI_OK && k->is_document)
        code = count_documents(d, in.records);
    if (code == CLI_OK && k->is_document)
        code = show_document(d, in.records);
    if (code == CLI_OK)
        code = show_release(d, which, &in);
    release_close(&in);
    return code;
}

/* ---- The end --------------------------------------------------------------------------------- */

static void print_shares(const scene *d) {
    enum { NAME = 24, PERCENT = 8 };
    const screen *s = &d->screen;
    int width = s->width - NAME - PERCENT;
    printf("%sHow many say it%s: of all %d documents, and of " TEXTS " texts of each kind\n",
           screen_style(s, STYLE_BOLD), screen_style(s, STYLE_PLAIN), d->tallies[0].n);
    for (int i = 0; i < N_TRAITS; i++) {
        printf("  %s\n", traits[i].name);
        for (int k = 0; k <= N_KINDS; k++) {
            const tally *t = &d->tallies[k];
            printf("    %-*s", NAME - 4, t->name);
            screen_bar(s, t->colour, t->n > 0 ? (double)t->of[i] / t->n : 0, width);
        }
    }
    printf("  (" TEXTS " texts are few: a share of theirs may be off by 14 points.)\n\n");
}

/* A shell's word. */
static void print_quoted(const char *text) {
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789/._-+";
    if (text[0] && text[strspn(text, safe)] == '\0') {
        fputs(text, stdout);
        return;
    }
    putchar('\'');
    for (const char *p = text; *p; p++)
        if (*p == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*p);
    putchar('\'');
}

static void print_costs(const scene *d, const char *program) {
    const screen *s = &d->screen;
    printf("%sWhat is guaranteed%s, for the " TEXTS " texts of a kind as a whole\n",
           screen_style(s, STYLE_BOLD), screen_style(s, STYLE_PLAIN));
    for (int i = 0; i < N_KINDS; i++) {
        const shown *r = &d->rows[i];
        style colour = !r->reads_records ? STYLE_PLAIN : r->is_private ? STYLE_GREEN : STYLE_RED;
        printf("  %-22s %s%-24s%s %6.1f s\n", kinds[i].name, screen_style(s, colour), r->guarantee,
               screen_style(s, STYLE_PLAIN), r->seconds);
    }
    fputs("\nThe same on your own documents, a folder of .txt files, a .jsonl or a .csv\n"
          "file in place of these:\n  ", stdout);
    print_quoted(program);
    fputs(" run ", stdout);
    print_quoted(d->model);
    fputs(" \\\n    ", stdout);
    print_quoted(d->refs);
    printf(" \\\n    --epsilon 10 -B " BATCH " -n " N_TOKENS " --temp " TEMP
           " --public-prompt '%s'\n", task);
}

static int find_program(char *program, size_t size) {
    if (system_find_program(program, size))
        return CLI_OK;
    return cli_fail(CLI_FAILED, "cannot find the program's own folder: %s", strerror(errno));
}

static void name_tallies(scene *d) {
    d->tallies[0] = (tally){.name = "the documents", .colour = STYLE_BOLD};
    for (int i = 0; i < N_KINDS; i++)
        d->tallies[1 + i] = (tally){.name = kinds[i].name, .colour = kinds[i].colour};
}

static int demo_main(const args *a) {
    (void)a;
    char folder[PATH_BYTES], program[PATH_BYTES];
    scene *d = calloc(1, sizeof *d);
    if (!d)
        return cli_no_memory("the demo");
    int code = find_program(program, sizeof program);
    if (code == CLI_OK)
        code = find_data(program, folder);
    if (code == CLI_OK) {
        screen_init(&d->screen);
        name_tallies(d);
        snprintf(d->model, sizeof d->model, "%s/%s", folder, model_path);
        snprintf(d->refs, sizeof d->refs, "%s/%s", folder, refs_path);
        printf("%s, asked to: %s\nThe documents are fictional, in %s.\n\n", model_path, task,
               refs_path);
    }
    for (int i = 0; code == CLI_OK && i < N_KINDS; i++)
        code = show(d, i);
    if (code == CLI_OK) {
        print_shares(d);
        print_costs(d, program);
    }
    free(d->document.text);
    free(d->public_texts.text);
    free(d);
    return code;
}

const command command_demo = {
    .name = "demo", .bit = CMD_DEMO, .arguments = "", .run = demo_main,
    .summary = "see what privacy does to a text",
    .details =
        "Writes hospital discharge instructions with the built-in model: from the model alone,\n"
        "from 288 fictional documents under two privacy budgets, and without privacy from one\n"
        "document, whose own words are marked. Of each kind one text is shown and " TEXTS " are\n"
        "counted: how many say what the documents say. Randomness comes from the operating\n"
        "system, so that every demo is another. Takes less than a minute on two processors.\n",
};
