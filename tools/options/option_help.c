/* option_help.c - the help of a command, from the option table. */
#include <stdio.h>
#include <string.h>

#include "tools/options/option_table.h"

enum { COLUMN = 30, WIDTH = 80 };

/* Bytes of the word that begins a text; of a list of choices longer than a line, as many choices as
 * a line holds. */
static int word_bytes(const char *text) {
    const int n = (int)strcspn(text, " ");
    for (int i = WIDTH - COLUMN; n > WIDTH - COLUMN && i > 0; i--)
        if (text[i - 1] == '|')
            return i;
    return n;
}

/* Words at COLUMN, wrapped; without the end of the last line. */
static void print_words(const char *text) {
    int at = COLUMN;
    while (*text) {
        const int n = word_bytes(text);
        if (at > COLUMN && at + 1 + n > WIDTH) {
            printf("\n%*s", COLUMN, "");
            at = COLUMN;
        }
        at += printf("%s%.*s", at > COLUMN ? " " : "", n, text);
        text += n + (text[n] == ' ');
    }
}

/* "(1..4096; default 8)", if there is something to say. */
static void print_allowed(const option_spec *o) {
    char allowed[OPTION_RANGE_BYTES] = "", number[32] = "";
    const dpi_parameter *own = o->methods[0] || !o->parameter ? o->own : NULL;
    const char *def = o->def;
    if (o->type != OPT_FLAG)
        option_range(o, allowed, sizeof allowed);
    if (own && !own->default_text && !def) {
        if (own->type == DPI_PARAMETER_CHOICE)
            snprintf(number, sizeof number, "%s", own->choices[(int)own->default_value]);
        else
            snprintf(number, sizeof number, "%g", own->default_value);
        def = number;
    }
    const char *without = own ? own->default_text : NULL;
    if (!allowed[0] && !def && !without)
        return;
    char text[OPTION_RANGE_BYTES + 128];
    snprintf(text, sizeof text, "(%s%s%s%s)", allowed, allowed[0] && (def || without) ? "; " : "",
             def ? "default " : without ? "without it " : "", def ? def : without ? without : "");
    printf("\n%*s", COLUMN, "");
    print_words(text);
}

bool option_is_shown(const option_spec *o, const command *cmd) {
    return (o->commands & cmd->bit) && !o->is_hidden;
}

void option_text(const option_spec *o, const command *cmd, char *text, size_t size) {
    if (o->other & cmd->bit) {
        snprintf(text, size, "%s", o->other_help);
        return;
    }
    const char *described = o->parameter && o->own ? o->own->help : "";
    snprintf(text, size, "%s%s%s%s%s", o->methods, o->methods[0] ? ": " : "", described,
             described[0] && o->help ? "; " : "", o->help ? o->help : "");
}

static void print_option(const option_spec *o, const command *cmd) {
    char left[64];
    int n = o->short_name ? snprintf(left, sizeof left, "  -%c, ", o->short_name)
                          : snprintf(left, sizeof left, "      ");
    n += snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s", o->name, o->arg ? " " : "",
                  o->arg ? o->arg : "");
    printf("%-*s", COLUMN, left);
    if (n >= COLUMN)
        printf("\n%*s", COLUMN, "");
    char text[OPTION_TEXT_BYTES];
    option_text(o, cmd, text, sizeof text);
    print_words(text);
    print_allowed(o);
    printf("\n");
}

static void print_rows(const option_table *t, const command *cmd, int group, int first, int end) {
    for (int i = first; i < end; i++) {
        const option_spec *o = &t->v[i];
        if (o->own_before && (int)o->group == group)
            print_rows(t, cmd, group, N_OPTIONS, t->n);
        if (option_is_shown(o, cmd) && (group < 0 || (int)o->group == group))
            print_option(o, cmd);
    }
}

/* The rows of a group, or all of them (-1), with those of methods where they belong. */
static void print_group(const option_table *t, const command *cmd, int group) {
    if (group < 0)
        print_rows(t, cmd, group, N_OPTIONS, t->n);
    print_rows(t, cmd, group, 0, N_OPTIONS);
}

/* What the first argument may be. */
static void print_names(const command *cmd) {
    const char *name, *help;
    printf("%.*s:\n", (int)strcspn(cmd->arguments, " "), cmd->arguments);
    for (int i = 0; cmd->names(i, &name, &help); i++) {
        printf("  %-*s", COLUMN - 2, name);
        print_words(help);
        printf("\n");
    }
    printf("\n");
}

void option_help(const option_table *t, const command *cmd) {
    static const char *const headings[] = {
        [GROUP_BUDGET] = "Budget: what the guarantee is",
        [GROUP_DATA] = "Data: model and records",
        [GROUP_PROMPT] = "Prompt: what the model is told",
        [GROUP_OUTPUT] = "Output: texts and files",
        [GROUP_EXPERT] = "Expert: methods, tests, machine",
    };
    printf("Usage: dpinfer %s [options]%s%s\n\n%s\n", cmd->name, cmd->arguments[0] ? " " : "",
           cmd->arguments, cmd->details);
    if (cmd->names)
        print_names(cmd);
    if (!(cmd->bit & CMD_GROUPED)) {
        printf("Options:\n");
        print_group(t, cmd, -1);
    }
    for (int group = 0; (cmd->bit & CMD_GROUPED) && group < N_GROUPS; group++) {
        printf("%s%s\n", group > 0 ? "\n" : "", headings[group]);
        print_group(t, cmd, group);
    }
    printf("\nExit codes: 0 success, 1 failure while running, 2 bad command line, 3 model file\n"
           "refused, 4 records refused, 5 report refused, 6 over the budget of a ledger,\n"
           "7 --max-hours are over, 129, 130, 138 and 143 stopped by SIGHUP, SIGINT,\n"
           "SIGUSR1 and SIGTERM.\n");
}
