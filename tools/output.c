/* output.c - see output.h. */
#include "tools/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_failed(output *o) {
    if (!o->failed)
        cli_fail(CLI_FAILED, "cannot write %s: %s", o->name, strerror(errno));
    o->failed = true;
    return CLI_FAILED;
}

/* A temporary file beside the target, so that rename does not cross file systems. */
static bool open_temporary(output *o, const char *path, mode_t mode) {
    if (path[0] == '\0') { /* its temporary file could be made, and only renaming would fail */
        errno = ENOENT;
        return false;
    }
    char *real = realpath(path, NULL); /* the file behind a symbolic link, if there is one */
    o->target = real ? real : strdup(path);
    if (!o->target || asprintf(&o->temporary, "%s.XXXXXX", o->target) < 0) {
        o->temporary = NULL;
        return false;
    }
    o->fd = mkostemp(o->temporary, O_CLOEXEC);
    if (o->fd < 0) {
        free(o->temporary);
        o->temporary = NULL;
        return false;
    }
    return fchmod(o->fd, mode) == 0;
}

/* Whether a file at `path` can be replaced as a whole. */
static bool is_replaceable(const char *path, mode_t *mode) {
    struct stat st;
    bool exists = stat(path, &st) == 0;
    mode_t mask = umask(0);
    umask(mask);
    *mode = exists ? st.st_mode & 0777 : 0666 & ~mask;
    return !exists || S_ISREG(st.st_mode);
}

int output_open(output *o, const char *path, bool atomic) {
    *o = (output){.fd = -1, .name = path};
    if (strcmp(path, "-") == 0) {
        o->name = "standard output";
        o->fd = STDOUT_FILENO;
        return CLI_OK;
    }
    mode_t mode;
    if (atomic && is_replaceable(path, &mode))
        return open_temporary(o, path, mode) ? CLI_OK : write_failed(o);
    o->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return o->fd >= 0 ? CLI_OK : write_failed(o);
}

int output_probe(const char *path) {
    mode_t mode;
    output o = {.fd = -1};
    if (strcmp(path, "-") == 0 || !is_replaceable(path, &mode))
        return CLI_OK;
    int code = output_open(&o, path, true);
    output_close(&o, false);
    return code;
}

int output_write(output *o, const void *data, size_t n_bytes) {
    const char *at = data;
    while (n_bytes > 0 && !o->failed) {
        ssize_t n = write(o->fd, at, n_bytes);
        if (n < 0 && errno != EINTR)
            return write_failed(o);
        if (n > 0) {
            at += n;
            n_bytes -= (size_t)n;
        }
    }
    return o->failed ? CLI_FAILED : CLI_OK;
}

int output_close(output *o, bool keep) {
    if (o->fd >= 0 && close(o->fd) != 0)
        write_failed(o);
    o->fd = -1;
    if (o->temporary) {
        bool ok = keep && !o->failed;
        if (ok && rename(o->temporary, o->target) != 0) {
            write_failed(o);
            ok = false;
        }
        if (!ok)
            unlink(o->temporary);
    }
    free(o->temporary);
    free(o->target);
    o->temporary = o->target = NULL;
    return o->failed ? CLI_FAILED : CLI_OK;
}

bool output_same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}
