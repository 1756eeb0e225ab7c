/* signature.c - see signature.h. */
#include "tools/shared/signature.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/terminal/cli.h"
#include "tools/terminal/output.h"
#include "tools/terminal/program_system.h"

extern char **environ;

enum { KEY_BYTES_MAX = 1 << 16, ARGUMENTS_MOST = 16 };
#define NAMESPACE "dpinfer-report"

/* Runs ssh-keygen with these streams; -1 is /dev/null. Its exit code, or -1 with a message. Of the
 * output of a check nothing is shown. */
static int run_keygen(const char *const *arguments, int in, int out, bool silent) {
    char *own[ARGUMENTS_MOST];
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 0;
    memcpy(own, arguments, sizeof own);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return cli_fail(-1, "no memory for ssh-keygen");
    bool ok = in >= 0
                  ? posix_spawn_file_actions_adddup2(&actions, in, 0) == 0
                  : posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) == 0;
    ok = ok &&
         (out >= 0 ? posix_spawn_file_actions_adddup2(&actions, out, 1)
                   : posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)) == 0;
    if (silent)
        ok = ok && posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0) == 0;
    const int reason = ok ? posix_spawnp(&pid, "ssh-keygen", &actions, NULL, own, environ) : ENOMEM;
    posix_spawn_file_actions_destroy(&actions);
    if (reason != 0)
        return cli_fail(-1, "cannot run ssh-keygen, which signs and checks: %s%s", strerror(reason),
                        reason == ENOENT ? " (it is part of OpenSSH)" : "");
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return cli_fail(-1, "cannot wait for ssh-keygen: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int sign(const char *key, int in, int out) {
    const char *const arguments[ARGUMENTS_MOST] = {"ssh-keygen", "-Y",      "sign", "-q",
                                                   "-n",         NAMESPACE, "-f",   key};
    return run_keygen(arguments, in, out, false);
}

/* ssh-keygen reads all that it is given, and what has no end for ever. */
static bool is_readable(const char *path) {
    const int fd = cli_open_path(path);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Beside the key ssh-keygen reads its other half, if that is there: KEY.pub, or KEY of KEY.pub. */
static int check_half(const char *key) {
    char *other;
    struct stat st;
    const size_t n = strlen(key);
    const bool is_public = n > 4 && strcmp(key + n - 4, ".pub") == 0;
    if (asprintf(&other, "%.*s%s", (int)(is_public ? n - 4 : n), key, is_public ? "" : ".pub") < 0)
        return cli_no_memory("the name of the key");
    int code = CLI_OK;
    if (stat(other, &st) == 0 && !S_ISREG(st.st_mode))
        code = cli_fail(CLI_USAGE, "--sign: %s, beside the key, is not a regular file", other);
    free(other);
    return code;
}

int signature_try(const char *key) {
    if (!is_readable(key))
        return cli_fail(cli_read_code(CLI_USAGE), "--sign: cannot read %s: %s", key,
                        cli_read_reason());
    const int half = check_half(key);
    if (half != CLI_OK)
        return half;
    const int code = sign(key, -1, -1);
    if (code > 0)
        return cli_fail(CLI_USAGE, "--sign: ssh-keygen does not sign with %s", key);
    return code == 0 ? CLI_OK : CLI_USAGE;
}

char *signature_name(const char *report) {
    char *name;
    if (asprintf(&name, "%s.sig", report) >= 0)
        return name;
    cli_no_memory("the name of the signature");
    return NULL;
}

int signature_write(const char *key, const char *path, bool replaces) {
    output out = {.fd = -1};
    const int in = cli_open_path(path);
    if (in < 0)
        return cli_fail(CLI_FAILED, "cannot sign %s: %s", path, cli_read_reason());
    char *name = signature_name(path);
    if (!name) {
        close(in);
        return CLI_FAILED;
    }
    int code = output_open(&out, name, replaces);
    if (code == CLI_OK && sign(key, in, out.fd) != 0)
        code = cli_fail(CLI_FAILED, "%s is not signed", path);
    code = output_finish(&out, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
    close(in);
    free(name);
    return code;
}

/* "signer " and the public key, in a file at `path` that has no other name; -1 with a message. */
static int make_allowed(const char *public_key, char path[64]) {
    char *text;
    size_t n_bytes;
    if (cli_read_text("key", public_key, KEY_BYTES_MAX, &text, &n_bytes) != CLI_OK)
        return -1;
    const int fd = system_open_unnamed(path); /* ssh-keygen inherits it */
    const bool ok = fd >= 0 && dprintf(fd, "signer %s\n", text) > 0;
    dpi_private_free(text);
    if (ok)
        return fd;
    if (fd >= 0)
        close(fd);
    return cli_fail(-1, "no memory for the public key");
}

int signature_check(const char *public_key, const char *path, const char *signature) {
    char allowed[64];
    if (!is_readable(signature))
        return cli_fail(CLI_FAILED, "cannot read the signature %s: %s", signature,
                        cli_read_reason());
    const int in = cli_open_path(path);
    if (in < 0)
        return cli_fail(CLI_FAILED, "cannot read %s: %s", path, cli_read_reason());
    const int fd = make_allowed(public_key, allowed);
    const char *const arguments[ARGUMENTS_MOST] = {"ssh-keygen", "-Y",      "verify", "-q",
                                                   "-n",         NAMESPACE, "-I",     "signer",
                                                   "-f",         allowed,   "-s",     signature};
    const int code = fd >= 0 ? run_keygen(arguments, in, -1, true) : -1;
    close(in);
    if (fd < 0)
        return CLI_USAGE;
    close(fd);
    if (code > 0)
        return cli_fail(CLI_FAILED, "%s is no signature of %s by the key %s", signature, path,
                        public_key);
    return code == 0 ? CLI_OK : CLI_FAILED;
}
