/* dpinfer.c - main: finds the command and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/commands.h"

static const command *const commands[] = {
    &command_run,     &command_plan,     &command_account,
    &command_inspect, &command_tokenize, &command_logits, &command_quantize,
    &command_make_model, &command_bench,  &command_verify, &command_audit,
    &command_pretrain, &command_demo,
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *stream) {
    fprintf(stream, "dpinfer %s: text about sensitive documents, with differential privacy\n\n"
                    "Usage: dpinfer COMMAND [options] [arguments]\n\n", dpi_version());
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(stream, "  %-10s %-12s %s\n", commands[i]->name, commands[i]->arguments,
                commands[i]->summary);
    fprintf(stream, "\n'dpinfer COMMAND -h' explains a command. The main job:\n\n"
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

static int run_command(const command *cmd, int argc, char **argv) {
    char name[32];
    snprintf(name, sizeof name, "dpinfer %s", cmd->name);
    cli_set_name(name);
    args a;
    bool done;
    int code = options_parse(cmd, argc, argv, &a, &done);
    if (code == CLI_OK && !done)
        code = cmd->run(&a);
    code = finish_stdout(code);
    cli_set_name("dpinfer");
    return code;
}

int main(int argc, char **argv) {
    if (!hold_standard_files())
        return CLI_FAILED;
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error like any other */
    json_set_alloc_funcs(private_malloc, private_free);
    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("dpinfer %s\n", dpi_version());
        return finish_stdout(CLI_OK);
    }
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "help") == 0) {
        print_usage(stdout);
        return finish_stdout(CLI_OK);
    }
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(word, commands[i]->name) == 0)
            return run_command(commands[i], argc - 1, argv + 1);
    }
    return cli_fail(CLI_USAGE, "'%s' is not a command; see 'dpinfer -h'", word);
}
