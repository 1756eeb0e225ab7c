/* cmd_completion.c - `dpinfer completion`: the shell's completion of commands, options and choices,
 * from the tables that the parser reads. */
#include "tools/commands.h"

#include <stdio.h>
#include <string.h>

/* The option's value is a file: so its placeholder says. */
static bool is_file(const option_view *o) { return o->arg && strcmp(o->arg, "FILE") == 0; }

/* "a|b|c" with `separator` for each bar. */
static void print_choices(const char *choices, char separator) {
    for (const char *c = choices; *c; c++)
        putchar(*c == '|' ? separator : *c);
}

/* ---- bash ------------------------------------------------------------------------------------- */

/* "-o|--output" */
static void print_pattern(const option_view *o) {
    if (o->short_name)
        printf("-%c|", o->short_name);
    printf("--%s", o->name);
}

static void print_bash_command(const command *cmd) {
    option_view o;
    printf("    %s)\n        case $prev in\n", cmd->name);
    for (int id = 0; id < N_OPTIONS; id++) {
        if (!option_view_get(cmd, id, &o) || !o.takes_value)
            continue;
        printf("        ");
        print_pattern(&o);
        printf(") ");
        if (o.choices) {
            printf("_dpinfer_words \"");
            print_choices(o.choices, ' ');
            printf("\"; ");
        } else if (is_file(&o)) {
            printf("_dpinfer_files; ");
        }
        printf("return ;;\n");
    }
    printf("        esac\n        options=\"");
    for (int id = 0; id < N_OPTIONS; id++) {
        if (option_view_get(cmd, id, &o))
            printf("--%s ", o.name);
    }
    printf("\" ;;\n");
}

static void print_bash(void) {
    printf("# Completion of dpinfer in bash: `dpinfer completion bash` wrote it.\n"
           "_dpinfer_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
           "_dpinfer_files() { mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); }\n"
           "_dpinfer() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options=\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [ \"$prev\" = help ]; }; then\n"
           "        _dpinfer_words \"");
    const command *cmd;
    for (int i = 0; (cmd = command_at(i)) != NULL; i++)
        printf("%s ", cmd->name);
    printf("help version\"\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (int i = 0; (cmd = command_at(i)) != NULL; i++)
        print_bash_command(cmd);
    printf("    esac\n"
           "    if [[ $cur == -* ]]; then _dpinfer_words \"$options\"; else _dpinfer_files; fi\n"
           "}\n"
           "complete -o filenames -F _dpinfer dpinfer\n");
}

/* ---- zsh -------------------------------------------------------------------------------------- */

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

static void print_zsh_option(const option_view *o) {
    printf(" \\\n            ");
    if (o->short_name)
        printf("'(-%c --%s)'{-%c,--%s}", o->short_name, o->name, o->short_name, o->name);
    else
        printf("--%s", o->name);
    printf("'[");
    print_zsh_text(o->help);
    printf("]");
    if (o->takes_value) {
        printf(":%s:", o->arg);
        if (o->choices) {
            putchar('(');
            print_choices(o->choices, ' ');
            putchar(')');
        } else if (is_file(o)) {
            printf("_files");
        }
    }
    putchar('\'');
}

static void print_zsh(void) {
    const command *cmd;
    option_view o;
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
        for (int id = 0; id < N_OPTIONS; id++) {
            if (option_view_get(cmd, id, &o))
                print_zsh_option(&o);
        }
        printf(" '*:file:_files' ;;\n");
    }
    printf("    esac\n}\n_dpinfer \"$@\"\n");
}

static int run_completion(const args *a) {
    const char *shell = a->n_positional ? a->positional[0] : "";
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else
        return cli_fail(CLI_USAGE, "SHELL: found '%s', allowed bash|zsh", shell);
    return CLI_OK;
}

const command command_completion = {
    .name = "completion",
    .bit = CMD_COMPLETION,
    .arguments = "SHELL",
    .summary = "completion of commands and options for bash or zsh",
    .details = "Writes a script for the shell to stdout. An installation has both scripts. Else:\n\n"
               "  source <(dpinfer completion bash)                 in ~/.bashrc\n"
               "  dpinfer completion zsh > DIRECTORY/_dpinfer       a directory of zsh's $fpath\n",
    .max_positional = 1,
    .run = run_completion,
};
