/* dpinfer.c - main: finds the command and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/commands.h"
#include "tools/nearest.h"
#include "tools/signals.h"

static const command *const commands[] = {
    &command_run,        &command_resume,     &command_plan,       &command_merge,
    &command_ledger,     &command_account,    &command_finetune,   &command_generate,
    &command_perturb,    &command_infer,      &command_attack,     &command_serve,
    &command_eval,       &command_inspect,    &command_tokenize,   &command_logits,
    &command_quantize,   &command_make_model, &command_bench,      &command_verify,
    &command_audit,      &command_pretrain,   &command_demo,       &command_completion,
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

const command *command_at(int i) { return i < N_COMMANDS ? commands[i] : NULL; }

static void print_usage(FILE *stream) {
    fprintf(stream, "dpinfer %s: text about sensitive documents, with differential privacy\n\n"
                    "Usage: dpinfer COMMAND [options] [arguments]\n\n", dpi_version());
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(stream, "  %-10s %-12s %s\n", commands[i]->name, commands[i]->arguments,
                commands[i]->summary);
    fprintf(stream, "\n'dpinfer help COMMAND' explains a command. To begin with:\n\n"
                    "  dpinfer run model.gguf records/ --rho 0.5\n");
}

/* A closed stdin, stdout or stderr must not become the next file that is opened. The stand-ins
 * fail where the closed ones would have: on reading and on writing. */
static bool hold_standard_files(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return false;
    }
    return true;
}

/* What a command printed with stdio has reached the system, or it has failed. */
static int finish_stdout(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    int failed = cli_fail(CLI_FAILED, "cannot write standard output: %s", strerror(errno));
    return code != CLI_OK ? code : failed;
}

static const command *find_command(const char *word) {
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(word, commands[i]->name) == 0)
            return commands[i];
    }
    return NULL;
}

/* Words of the first argument: commands, and what main answers itself. */
static const char *word_at(const void *user, int i) {
    (void)user;
    static const char *const own[] = {"help", "version", NULL};
    return i < N_COMMANDS ? commands[i]->name : own[i - N_COMMANDS];
}

static int unknown_command(const char *word) {
    const char *name = nearest_name(word, word_at, NULL);
    if (name)
        return cli_fail(CLI_USAGE, "'%s' is not a command; did you mean '%s'? See 'dpinfer -h'",
                        word, name);
    return cli_fail(CLI_USAGE, "'%s' is not a command; see 'dpinfer -h'", word);
}

static int run_command(const command *cmd, int argc, char **argv) {
    char name[32];
    snprintf(name, sizeof name, "dpinfer %s", cmd->name);
    cli_set_name(name);
    args a;
    bool done;
    int code = options_parse(cmd, argc, argv, &a, &done);
    dpi_error err;
    if (code == CLI_OK && !done && cmd->bit & CMD_HOLDS_TEXTS &&
        dpi_process_harden(&err) != DPI_STATUS_OK)
        code = cli_fail_library(CLI_FAILED, &err);
    if (code == CLI_OK && !done)
        code = cmd->run(&a);
    code = finish_stdout(code);
    cli_set_name("dpinfer");
    return code;
}

int main(int argc, char **argv) {
    if (!hold_standard_files())
        return CLI_FAILED;
    /* OpenBLAS, where it is loaded, starts no threads: ours are enough. It reads this as it
     * starts. */
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    signals_begin();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error like any other */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that may not grow */
    json_set_alloc_funcs(signals_json_malloc, dpi_private_free);
    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ||
        strcmp(word, "version") == 0) {
        printf("dpinfer %s\n", dpi_version());
        return finish_stdout(CLI_OK);
    }
    bool help = strcmp(word, "help") == 0;
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || (help && argc < 3)) {
        print_usage(stdout);
        return finish_stdout(CLI_OK);
    }
    if (help)
        word = argv[2];
    const command *cmd = find_command(word);
    if (!cmd)
        return unknown_command(word);
    if (help) {
        char option[] = "-h", *arguments[] = {argv[2], option, NULL};
        return run_command(cmd, 2, arguments);
    }
    return run_command(cmd, argc - 1, argv + 1);
}
