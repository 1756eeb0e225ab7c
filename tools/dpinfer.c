/* dpinfer.c - main: finds the command and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/command/commands.h"
#include "tools/options/nearest.h"
#include "tools/options/paths.h"
#include "tools/terminal/signals.h"

/* What there is to do, and its commands, the first ones first. */
static const struct {
    const char *title;
    const command *commands[8];
} sections[] = {
    {"Private text from records",
     {&command_run, &command_records, &command_resume, &command_plan, &command_merge,
      &command_augpe, &command_preview, &command_statistic}},
    {"A model that learns from records privately",
     {&command_finetune, &command_steer, &command_generate}},
    {"Budgets and guarantees",
     {&command_ledger, &command_account, &command_verify, &command_audit}},
    {"Answers over HTTP; a model elsewhere",
     {&command_serve, &command_perturb, &command_infer, &command_attack}},
    {"What texts are worth", {&command_eval}},
    {"Models",
     {&command_inspect, &command_tokenize, &command_logits, &command_quantize,
      &command_make_model, &command_bench, &command_pretrain}},
    {"To begin with", {&command_demo, &command_completion}},
};
enum { N_SECTIONS = sizeof sections / sizeof sections[0] };

const command *command_at(int i) {
    for (int s = 0; s < N_SECTIONS; s++)
        for (int k = 0; k < 8 && sections[s].commands[k]; k++)
            if (i-- == 0)
                return sections[s].commands[k];
    return NULL;
}

static void print_usage(FILE *stream) {
    fprintf(stream, "dpinfer %s: text about sensitive documents, with differential privacy\n\n"
                    "Usage: dpinfer COMMAND [options] [arguments]\n", dpi_version());
    for (int s = 0; s < N_SECTIONS; s++) {
        fprintf(stream, "\n%s:\n", sections[s].title);
        for (int k = 0; k < 8 && sections[s].commands[k]; k++) {
            const command *c = sections[s].commands[k];
            fprintf(stream, "  %-10s %-14s %s\n", c->name, c->arguments, c->summary);
        }
    }
    fprintf(stream, "\n'dpinfer help COMMAND' explains a command, 'dpinfer version' tells the "
                    "version. For example:\n\n  dpinfer run model.gguf records/ --rho 0.5\n");
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
    const command *c;
    for (int i = 0; (c = command_at(i)) != NULL; i++)
        if (strcmp(word, c->name) == 0)
            return c;
    return NULL;
}

/* Words of the first argument: commands, and what main answers itself. */
static const char *word_at(const void *user, int i) {
    (void)user;
    static const char *const own[] = {"help", "version"};
    const int n_own = sizeof own / sizeof own[0];
    const command *c = i < n_own ? NULL : command_at(i - n_own);
    return i < n_own ? own[i] : c ? c->name : NULL;
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
    cli_set_command(cmd->bit);
    args a;
    bool done;
    int code = options_parse(cmd, argc, argv, &a, &done);
    dpi_error err;
    if (code == CLI_OK && !done && cmd->bit & CMD_HOLDS_TEXTS &&
        dpi_process_harden(&err) != DPI_STATUS_OK)
        code = cli_fail_library(CLI_FAILED, &err);
    if (code == CLI_OK && !done)
        code = paths_check_streams(&a);
    if (code == CLI_OK && !done)
        code = cmd->run(&a);
    code = finish_stdout(code);
    cli_set_name("dpinfer");
    return code;
}

/* OpenBLAS reads these where it is loaded. It starts no threads: ours are enough. */
static void set_up_openblas(void) {
    const char *kernels = dpi_isa_openblas();
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    if (kernels)
        setenv("OPENBLAS_CORETYPE", kernels, 0);
}

/* With less a call somewhere would end the program without a word. */
static bool has_stack(void) {
    enum { NEEDED_KIB = 512 };
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= NEEDED_KIB << 10)
        return true;
    cli_fail(CLI_FAILED, "the stack (ulimit -s): found %llu KiB, allowed %d or more",
             (unsigned long long)stack.rlim_cur >> 10, NEEDED_KIB);
    return false;
}

int main(int argc, char **argv) {
    if (!hold_standard_files() || !has_stack())
        return CLI_FAILED;
    setlocale(LC_ALL, "C"); /* whatever a library has set while it was loaded */
    set_up_openblas();
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
