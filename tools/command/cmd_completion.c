/* cmd_completion.c - `dpinfer completion`: the shell's completion of commands, options and choices,
 * from the tables that the parser reads. */
#include <stdio.h>
#include <string.h>

#include "tools/command/commands.h"
#include "tools/options/option_table.h"

/* The option's value is a file: so its placeholder says. */
static bool is_file(const option_spec *o) { return o->arg && strcmp(o->arg, "FILE") == 0; }

/* What a choice is made between, with spaces between. */
static void print_choices(const option_spec *o) {
    char choices[OPTION_RANGE_BYTES];
    option_range(o, choices, sizeof choices);
    for (const char *c = choices; *c; c++)
        putchar(*c == '|' ? ' ' : *c);
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* "-o|--output" */
static void print_pattern(const option_spec *o) {
    if (o->short_name)
        printf("-%c|", o->short_name);
    printf("--%s", o->name);
}

static void print_bash_command(const option_table *t, const command *cmd) {
    printf("    %s)\n        case $prev in\n", cmd->name);
    for (int i = 0; i < t->n; i++) {
        const option_spec *o = &t->v[i];
        if (!option_is_shown(o, cmd) || !o->arg)
            continue;
        printf("        ");
        print_pattern(o);
        printf(") ");
        if (o->type == OPT_ENUM) {
            printf("_dpinfer_words \"");
            print_choices(o);
            printf("\"; ");
        } else if (is_file(o)) {
            printf("_dpinfer_files; ");
        }
        printf("return ;;\n");
    }
    printf("        esac\n        ");
    const char *name, *help;
    for (int i = 0; cmd->names && cmd->names(i, &name, &help); i++)
        printf("%s%s", i == 0 ? "((COMP_CWORD > 2)) || names=\"" : " ", name);
    printf("%soptions=\"", cmd->names ? "\"\n        " : "");
    for (int i = 0; i < t->n; i++) {
        if (option_is_shown(&t->v[i], cmd))
            printf("--%s ", t->v[i].name);
    }
    printf("\" ;;\n");
}

static void print_bash(const option_table *t) {
    printf("# Completion of dpinfer in bash: `dpinfer completion bash` wrote it.\n"
           "_dpinfer_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
           "_dpinfer_files() { mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); }\n"
           "_dpinfer() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local options= names=\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [ \"$prev\" = help ]; }; then\n"
           "        _dpinfer_words \"");
    const command *cmd;
    for (int i = 0; (cmd = command_at(i)) != NULL; i++)
        printf("%s ", cmd->name);
    printf("help version\"\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (int i = 0; (cmd = command_at(i)) != NULL; i++)
        print_bash_command(t, cmd);
    printf("    esac\n"
           "    if [[ $cur == -* ]]; then _dpinfer_words \"$options\"\n"
           "    elif [ \"$names\" ]; then _dpinfer_words \"$names\"\n"
           "    else _dpinfer_files; fi\n"
           "}\n"
           "complete -o filenames -F _dpinfer dpinfer\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* In single quotes, for _arguments and _describe. */
static void print_zsh_text(const char *text) {
    for (const char *c = text; *c; c++) {
        if (*c == '\n')
            putchar(' ');
        else if (*c == '\'')
            printf("'\\''");
        else if (strchr("[]:\\", *c))
            printf("\\%c", *c);
        else
            putchar(*c);
    }
}

static void print_zsh_option(const option_spec *o, const command *cmd) {
    printf(" \\\n            ");
    if (o->short_name)
        printf("'(-%c --%s)'{-%c,--%s}", o->short_name, o->name, o->short_name, o->name);
    else
        printf("--%s", o->name);
    printf("'[");
    char text[OPTION_TEXT_BYTES];
    option_text(o, cmd, text, sizeof text);
    print_zsh_text(text);
    printf("]");
    if (o->arg) {
        printf(":%s:", o->arg);
        if (o->type == OPT_ENUM) {
            putchar('(');
            print_choices(o);
            putchar(')');
        } else if (is_file(o)) {
            printf("_files");
        }
    }
    putchar('\'');
}

static void print_zsh(const option_table *t) {
    const command *cmd;
    printf("#compdef dpinfer\n"
           "# Completion of dpinfer in zsh: `dpinfer completion zsh` wrote it.\n"
           "_dpinfer() {\n"
           "    local -a commands\n"
           "    commands=(\n");
    for (int i = 0; (cmd = command_at(i)) != NULL; i++) {
        printf("        '%s:", cmd->name);
        print_zsh_text(cmd->summary);
        printf("'\n");
    }
    printf("        'help:explain a command'\n        'version:the version'\n    )\n"
           "    if (( CURRENT == 2 )) || [[ $CURRENT -eq 3 && $words[2] == help ]]; then\n"
           "        _describe 'command' commands\n"
           "        return\n"
           "    fi\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case $words[1] in\n");
    for (int i = 0; (cmd = command_at(i)) != NULL; i++) {
        printf("    %s)\n        _arguments", cmd->name);
        for (int k = 0; k < t->n; k++) {
            if (option_is_shown(&t->v[k], cmd))
                print_zsh_option(&t->v[k], cmd);
        }
        const char *name, *help;
        for (int k = 0; cmd->names && cmd->names(k, &name, &help); k++)
            printf("%s%s", k == 0 ? " '1:name:(" : " ", name);
        printf("%s '*:file:_files' ;;\n", cmd->names ? ")'" : "");
    }
    printf("    esac\n}\n_dpinfer \"$@\"\n");
}

static bool shell_at(int i, const char **name, const char **help) {
    static const char *const shells[][2] = {
        {"bash", "source <(dpinfer completion bash) in ~/.bashrc"},
        {"zsh", "dpinfer completion zsh > DIRECTORY/_dpinfer, a directory of zsh's $fpath"},
    };
    if (i < 2)
        *name = shells[i][0], *help = shells[i][1];
    return i < 2;
}

static int run_completion(const args *a) {
    const char *shell = a->n_positional ? a->positional[0] : "";
    option_table t;
    option_table_make(&t);
    if (strcmp(shell, "bash") == 0)
        print_bash(&t);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(&t);
    else
        return cli_fail(CLI_USAGE, "SHELL: found '%s', allowed bash|zsh", shell);
    return CLI_OK;
}

const command command_completion = {
    .name = "completion",
    .bit = CMD_COMPLETION,
    .arguments = "SHELL",
    .summary = "completion of commands and options for bash or zsh",
    .details = "Writes a script for the shell to stdout. An installation has both.\n",
    .names = shell_at,
    .max_positional = 1,
    .run = run_completion,
};
