/* cmd_demo.c - `dpinfer demo`: the built-in model and sample texts, with privacy and without. */
#include "tools/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tools/release_options.h"
#include "tools/terminal.h"

/* What the demo shows: shipped in the source tree and installed under share/dpinfer. */
static const char model_path[] = "models/dpinfer-4m-q8_0.gguf";
static const char refs_path[] = "examples/refs/discharge";
static const char task[] = "Write hospital discharge instructions.";

enum { PATH_BYTES = 4096, MIN_WIDTH = 40, MAX_WIDTH = 100, INDENT = 4 };
#define N_REFERENCES "32"
#define N_TOKENS "220"

/* ---- Finding the files ----------------------------------------------------------------------- */

/* The folder that holds both: ROOT/bin/dpinfer has ROOT/share/dpinfer, a build folder in the source
 * tree is next to them. */
static int find_data(char *folder) {
    static const char *const places[] = {"../share/dpinfer", "..", "."};
    char program[PATH_BYTES], candidate[3 * PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0)
        return cli_fail(CLI_FAILED, "cannot find the program's own folder: %s", strerror(errno));
    program[n] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(folder, 2 * PATH_BYTES, "%s/%s", program, places[i]);
        snprintf(candidate, sizeof candidate, "%s/%s", folder, model_path);
        if (access(candidate, R_OK) == 0)
            return CLI_OK;
    }
    return cli_fail(CLI_MODEL, "no %s in %s/{%s,%s,%s}: the demo needs the source tree or an "
                               "installation", model_path, program, places[0], places[1],
                    places[2]);
}

/* ---- The terminal ---------------------------------------------------------------------------- */

typedef struct screen {
    bool terminal, colour;
    int width;
    /* The paragraph that is being written word by word. */
    int column; /* 0: no line is open */
    char word[256];
    size_t n_word;
} screen;

static void screen_init(screen *s) {
    struct winsize size;
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    bool terminal = isatty(STDOUT_FILENO);
    *s = (screen){.terminal = terminal, .width = 80};
    s->colour = terminal && term && strcmp(term, "dumb") != 0 && !(no_colour && no_colour[0]);
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        s->width = size.ws_col;
    s->width = s->width < MIN_WIDTH ? MIN_WIDTH : s->width > MAX_WIDTH ? MAX_WIDTH : s->width;
}

static const char *style(const screen *s, const char *code) { return s->colour ? code : ""; }
static const char *bold(const screen *s) { return style(s, "\033[1m"); }
static const char *dim(const screen *s) { return style(s, "\033[2m"); }
static const char *red(const screen *s) { return style(s, "\033[31m"); }
static const char *green(const screen *s) { return style(s, "\033[32m"); }
static const char *plain(const screen *s) { return style(s, "\033[0m"); }

/* Characters of UTF-8 text: one column each in the texts of the demo. */
static int columns(const char *text, size_t n_bytes) {
    int n = 0;
    for (size_t i = 0; i < n_bytes; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static void end_line(screen *s) {
    if (s->column > 0)
        putchar('\n');
    s->column = 0;
}

static void put_word(screen *s) {
    int n = columns(s->word, s->n_word);
    if (n == 0)
        return;
    if (s->column > 0 && s->column + 1 + n > s->width)
        end_line(s);
    if (s->column == 0)
        s->column = printf("  %s|%s ", dim(s), plain(s)) > 0 ? INDENT : 0;
    else
        s->column += printf(" ");
    fwrite(s->word, 1, s->n_word, stdout);
    s->column += n;
    s->n_word = 0;
}

/* Wraps words as they come. */
static void wrap_text(screen *s, const char *text, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++) {
        bool space = text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r';
        if (space || s->n_word == sizeof s->word)
            put_word(s);
        if (text[i] == '\n')
            end_line(s);
        if (!space)
            s->word[s->n_word++] = text[i];
    }
    fflush(stdout);
}

static void put_text(screen *s, const char *text, size_t n_bytes) {
    size_t n;
    char *shown = s->terminal ? terminal_text(text, n_bytes, true, &n) : NULL;
    wrap_text(s, shown ? shown : text, shown ? n : n_bytes);
    free(shown);
}

static void end_text(screen *s) {
    put_word(s);
    end_line(s);
    putchar('\n');
}

/* ---- One text -------------------------------------------------------------------------------- */

typedef struct shown {
    const char *name;
    char guarantee[64];
    bool is_private, reads_records;
    int32_t n_tokens;
    double prompt_ms, token_ms;
} shown;

typedef struct scene {
    screen screen;
    struct timespec begun, first, last;
    char model[3 * PATH_BYTES], refs[3 * PATH_BYTES];
    shown rows[4];
    int n_rows;
} scene;

static double ms_between(const struct timespec *a, const struct timespec *b) {
    return 1e3 * (double)(b->tv_sec - a->tv_sec) + 1e-6 * (double)(b->tv_nsec - a->tv_nsec);
}

static void guarantee_text(const dpi_claim *c, shown *row) {
    if (dpi_claim_is_proven(c))
        snprintf(row->guarantee, sizeof row->guarantee, "(%g, %g)-DP", c->method.epsilon,
                 c->method.delta);
    else
        snprintf(row->guarantee, sizeof row->guarantee, "%s",
                 c->record_in_prompt ? "NONE" : "nothing private is read");
}

/* Shows the text of a release as it is drawn; its last event. */
static int draw_text(scene *d, dpi_release *release, dpi_release_event *event) {
    dpi_error err;
    clock_gettime(CLOCK_MONOTONIC, &d->begun);
    do {
        if (dpi_release_advance(release, event, &err) != DPI_STATUS_OK)
            return cli_fail_library(CLI_FAILED, &err);
        if (event->type == DPI_EVENT_TOKEN)
            clock_gettime(CLOCK_MONOTONIC, event->n_drawn == 1 ? &d->first : &d->last);
        put_text(&d->screen, event->text, event->n_bytes);
    } while (event->type != DPI_EVENT_END);
    end_text(&d->screen);
    return CLI_OK;
}

static int show_release(scene *d, dpi_release *release, const char *name) {
    const dpi_claim *c = dpi_release_claim(release);
    dpi_release_event event;
    dpi_error err;
    if (dpi_release_begin(release, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    int code = draw_text(d, release, &event);
    if (code != CLI_OK)
        return code;
    shown *row = &d->rows[d->n_rows++];
    *row = (shown){.name = name, .is_private = dpi_claim_is_private(c), .n_tokens = event.n_drawn,
                   .reads_records = c->record_in_prompt};
    guarantee_text(c, row);
    row->prompt_ms = ms_between(&d->begun, &d->first);
    row->token_ms =
        event.n_drawn > 1 ? ms_between(&d->first, &d->last) / (event.n_drawn - 1) : 0;
    return CLI_OK;
}

/* The document that a plain text is about. The samples are fiction. */
static int show_record(scene *d, const dpi_records *records, size_t i) {
    char *text;
    size_t n_bytes;
    dpi_error err;
    if (dpi_records_read(records, i, &text, &n_bytes, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    if (!text)
        return cli_fail(CLI_RECORDS, "%s: record %zu is empty or unreadable", d->refs, i + 1);
    printf("  %sthe document:%s\n", dim(&d->screen), plain(&d->screen));
    put_text(&d->screen, text, n_bytes);
    end_text(&d->screen);
    dpi_private_free(text);
    printf("  %sthe text:%s\n", dim(&d->screen), plain(&d->screen));
    return CLI_OK;
}

/* Runs `dpinfer run` with these arguments (ended by NULL) and shows its text under a headline. */
static int show(scene *d, const char *name, const char *what, const char *const *arguments) {
    char *argv[24];
    int argc = 0;
    argv[argc++] = (char[]){"run"};
    for (int i = 0; arguments[i]; i++)
        argv[argc++] = (char *)arguments[i];
    argv[argc] = NULL;
    args a;
    bool done;
    release_input in = {0};
    printf("%s%s%s: %s\n", bold(&d->screen), name, plain(&d->screen), what);
    int code = options_parse(&command_run, argc, argv, &a, &done);
    if (code == CLI_OK)
        code = release_open(&a, true, NULL, &in);
    if (code == CLI_OK && in.records && a.v[OPT_PLAIN].i)
        code = show_record(d, in.records, (size_t)a.v[OPT_REFERENCE].i - 1);
    if (code == CLI_OK)
        code = show_release(d, in.release, name);
    release_close(&in);
    return code;
}

/* ---- The demo -------------------------------------------------------------------------------- */

static int show_all(scene *d) {
    const char *m = d->model, *refs = d->refs;
    int code = show(d, "Public", "from the model alone",
                    (const char *[]){m, "--plain", "--public-prompt", task, "-n", N_TOKENS, NULL});
    if (code == CLI_OK)
        code = show(d, "Private, epsilon 1", "from " N_REFERENCES " documents",
                    (const char *[]){m, refs, "--epsilon", "1", "-B", N_REFERENCES, "--num", "1",
                                     "--public-prompt", task, "-n", N_TOKENS, NULL});
    if (code == CLI_OK)
        code = show(d, "Private, epsilon 10", "from " N_REFERENCES " documents",
                    (const char *[]){m, refs, "--epsilon", "10", "-B", N_REFERENCES, "--num", "1",
                                     "--public-prompt", task, "-n", N_TOKENS, NULL});
    if (code == CLI_OK)
        code = show(d, "Not private", "from one document, which may be given away",
                    (const char *[]){m, refs, "--plain", "--reference", "1", "--public-prompt",
                                     task, "-n", N_TOKENS, NULL});
    return code;
}

static void print_costs(const scene *d) {
    const screen *s = &d->screen;
    printf("%sCost%s\n", bold(s), plain(s));
    printf("  %s%-20s %-24s %6s %9s %9s%s\n", dim(s), "", "guarantee", "tokens", "prompts",
           "a token", plain(s));
    for (int i = 0; i < d->n_rows; i++) {
        const shown *r = &d->rows[i];
        const char *colour = !r->reads_records ? "" : r->is_private ? green(s) : red(s);
        printf("  %-20s %s%-24s%s %6d %6.0f ms %6.2f ms\n", r->name, colour, r->guarantee,
               plain(s), (int)r->n_tokens, r->prompt_ms, r->token_ms);
    }
    printf("\nThe same on your documents:\n  dpinfer run MODEL REFS --epsilon 10 -B "
           N_REFERENCES "\n");
}

static int demo_main(const args *a) {
    (void)a;
    char folder[2 * PATH_BYTES];
    scene *d = calloc(1, sizeof *d);
    if (!d)
        return cli_fail(CLI_FAILED, "out of memory for the demo");
    int code = find_data(folder);
    if (code == CLI_OK) {
        screen_init(&d->screen);
        snprintf(d->model, sizeof d->model, "%s/%s", folder, model_path);
        snprintf(d->refs, sizeof d->refs, "%s/%s", folder, refs_path);
        printf("%s, asked to: %s\nThe documents are fictional, in %s.\n\n", model_path, task,
               refs_path);
        code = show_all(d);
    }
    if (code == CLI_OK)
        print_costs(d);
    free(d);
    return code;
}

const command command_demo = {
    .name = "demo", .bit = CMD_DEMO, .arguments = "", .run = demo_main,
    .summary = "see what privacy does to a text",
    .details =
        "Writes hospital discharge instructions with the built-in model: from the model alone,\n"
        "from " N_REFERENCES " fictional documents under two privacy budgets, and without privacy\n"
        "from one document, and shows what each costs. Randomness comes from the operating\n"
        "system, so that every demo is another.\n",
};
