/* output_end.c - see output_end.h. Nothing but async-signal-safe functions. */
#include "tools/terminal/output_end.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/terminal/program_system.h"

enum { MAX_OPEN = 16 };
static output *volatile opened[MAX_OPEN];

sigset_t output_hold(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    return before;
}

void output_release(sigset_t before) { pthread_sigmask(SIG_SETMASK, &before, NULL); }

void output_remember(output *o) {
    for (int i = 0; i < MAX_OPEN; i++)
        if (!opened[i]) {
            opened[i] = o;
            return;
        }
}

void output_forget(const output *o) {
    for (int i = 0; i < MAX_OPEN; i++)
        if (opened[i] == o)
            opened[i] = NULL;
}

/* The temporary file under its name, if no file has that. 0, or -1 with errno. */
static int appear_new(const output *o) {
    if (system_rename_new(o->temporary, o->target) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(o->temporary, o->target) == 0) /* a file system without it */
        return unlink(o->temporary);
    if (errno == EEXIST || access(o->target, F_OK) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename(o->temporary, o->target); /* and without links */
}

int output_appear(const output *o) {
    return o->replaces ? rename(o->temporary, o->target) : appear_new(o);
}

size_t output_chunk(size_t n_bytes) { return n_bytes < PIPE_BUF ? n_bytes : PIPE_BUF; }

bool output_has_room(int fd, int milliseconds) {
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    return poll(&ready, 1, milliseconds) == 1;
}

void output_put(int fd, const char *text, size_t n_bytes) {
    while (n_bytes > 0 && output_has_room(fd, 0)) {
        const ssize_t written = write(fd, text, output_chunk(n_bytes));
        if (written <= 0)
            return;
        text += written;
        n_bytes -= (size_t)written;
    }
}

void output_say(const char *text) {
    if (text)
        output_put(STDERR_FILENO, text, strlen(text));
}

bool output_is_empty(const output *o) {
    struct stat st;
    return stat(o->temporary, &st) == 0 && st.st_size == 0;
}

void output_end_all(void) {
    for (int i = 0; i < MAX_OPEN; i++) {
        const output *o = opened[i];
        if (o && (o->appears || !o->temporary)) {
            output_put(o->fd, o->pending, o->n_pending);
            output_put(o->fd, o->tail, strlen(o->tail));
        }
        if (!o || !o->temporary)
            continue;
        if (!o->appears || output_is_empty(o))
            unlink(o->temporary);
        else if (appear_new(o) != 0)
            output_say(o->told);
    }
}
