/* output.c - see output.h. */
#include "tools/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Temporary files that a signal must not leave behind -------------------------------------- */

enum { MAX_OPEN = 16 };
static output *volatile temporaries[MAX_OPEN];

static void remember(output *o) {
    for (int i = 0; i < MAX_OPEN; i++)
        if (!temporaries[i]) {
            temporaries[i] = o;
            return;
        }
}

static void forget(const output *o) {
    for (int i = 0; i < MAX_OPEN; i++)
        if (temporaries[i] == o)
            temporaries[i] = NULL;
}

/* The temporary file under its name. A file that has come there meanwhile stays, unless it may be
 * replaced. 0, or -1 with errno. */
static int appear(const output *o) {
    if (!o->replaces) {
        if (renameat2(AT_FDCWD, o->temporary, AT_FDCWD, o->target, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EINVAL && errno != ENOSYS) /* a file system without it */
            return -1;
    }
    return rename(o->temporary, o->target);
}

void output_end_all(void) {
    for (int i = 0; i < MAX_OPEN; i++) {
        const output *o = temporaries[i];
        if (o && !(o->appears && appear(o) == 0) && !o->appears)
            unlink(o->temporary);
    }
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int write_failed(output *o) {
    if (!o->failed)
        cli_fail(CLI_FAILED, "cannot write %s: %s", o->name, strerror(errno));
    o->failed = true;
    return CLI_FAILED;
}

/* What a killed program has left. */
static void tell_leftovers(const char *target) {
    const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    const size_t n = strlen(name);
    char *folder = slash ? strndup(target, (size_t)(slash - target) + 1) : strdup(".");
    DIR *dir = folder ? opendir(folder) : NULL;
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (strncmp(entry->d_name, name, n) == 0 && strncmp(entry->d_name + n, ".part-", 6) == 0)
            cli_note("note: %s%s holds what a run that was killed, or still runs, has written of %s",
                     slash ? folder : "", entry->d_name, target);
    if (dir)
        closedir(dir);
    free(folder);
}

/* A temporary file beside the target, so that rename does not cross file systems. */
static bool open_temporary(output *o, const char *path, mode_t mode) {
    if (path[0] == '\0') { /* its temporary file could be made, and only renaming would fail */
        errno = ENOENT;
        return false;
    }
    char *real = realpath(path, NULL); /* the file behind a symbolic link, if there is one */
    o->target = real ? real : strdup(path);
    if (!o->target || asprintf(&o->temporary, "%s.part-XXXXXX", o->target) < 0) {
        o->temporary = NULL;
        return false;
    }
    if (!o->probes)
        tell_leftovers(o->target);
    o->fd = mkostemp(o->temporary, O_CLOEXEC);
    if (o->fd < 0) {
        free(o->temporary);
        o->temporary = NULL;
        return false;
    }
    remember(o);
    return fchmod(o->fd, mode) == 0;
}

/* Whether a file at `path` can appear as a whole. */
static bool is_regular(const char *path, mode_t *mode) {
    struct stat st;
    bool exists = stat(path, &st) == 0;
    mode_t mask = umask(0);
    umask(mask);
    *mode = exists ? st.st_mode & 0777 : 0666 & ~mask;
    return !exists || S_ISREG(st.st_mode);
}

int output_open(output *o, const char *path, bool replaces) {
    mode_t mode;
    *o = (output){.fd = -1, .name = path, .replaces = replaces};
    if (strcmp(path, "-") == 0) {
        o->name = "standard output";
        o->fd = STDOUT_FILENO;
        return CLI_OK;
    }
    if (is_regular(path, &mode)) {
        if (open_temporary(o, path, mode))
            return CLI_OK;
        write_failed(o);
        output_close(o, OUTPUT_DROPPED);
        return CLI_FAILED;
    }
    o->fd = open(path, O_WRONLY | O_CLOEXEC);
    return o->fd >= 0 ? CLI_OK : write_failed(o);
}

int output_probe(const char *path) {
    mode_t mode;
    output o = {.fd = -1, .name = path, .probes = true};
    if (strcmp(path, "-") == 0 || !is_regular(path, &mode))
        return CLI_OK;
    int code = open_temporary(&o, path, mode) ? CLI_OK : write_failed(&o);
    output_close(&o, OUTPUT_DROPPED);
    return code;
}

int output_check_absent(const char *path, bool may_replace) {
    struct stat st;
    if (may_replace || strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return CLI_OK;
    return cli_fail(CLI_USAGE, "%s is there already: another name, or --overwrite to replace it",
                    path);
}

/* ---- Writing --------------------------------------------------------------------------------- */

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

int output_rewind(output *o) {
    if (!o->temporary)
        return CLI_OK;
    return ftruncate(o->fd, 0) == 0 && lseek(o->fd, 0, SEEK_SET) == 0 ? CLI_OK : write_failed(o);
}

/* On disk, and its name too, as far as the file system can say. */
static bool sync_file(int fd) {
    return fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
}

static void sync_folder(const char *target) {
    const char *slash = strrchr(target, '/');
    char *folder = slash ? strndup(target, (size_t)(slash - target) + 1) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

static void end_temporary(output *o, output_end end) {
    struct stat st;
    if (end == OUTPUT_PARTIAL && stat(o->target, &st) == 0) {
        cli_note("note: %s is as it was; what was written is in %s", o->target, o->temporary);
    } else if (end == OUTPUT_DROPPED) {
        unlink(o->temporary);
    } else if (appear(o) == 0) {
        sync_folder(o->target);
    } else {
        write_failed(o);
        cli_note("note: what was written is in %s", o->temporary);
    }
}

int output_close(output *o, output_end end) {
    if (o->fd >= 0 && o->temporary && end != OUTPUT_DROPPED && !sync_file(o->fd))
        write_failed(o);
    if (o->failed && end == OUTPUT_APPEARS)
        end = o->appears ? OUTPUT_PARTIAL : OUTPUT_DROPPED;
    if (o->fd >= 0 && close(o->fd) != 0)
        write_failed(o);
    o->fd = -1;
    if (o->temporary)
        end_temporary(o, end);
    forget(o);
    free(o->temporary);
    free(o->target);
    o->temporary = o->target = NULL;
    return o->failed ? CLI_FAILED : CLI_OK;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

static bool find_file(const char *path, struct stat *st) {
    return (strcmp(path, "-") == 0 ? fstat(STDOUT_FILENO, st) : stat(path, st)) == 0;
}

static bool same_inode(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The folder that a path is in, and its name there. False: there is no such folder. */
static bool find_parent(const char *path, struct stat *folder, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash)
        return stat(".", folder) == 0;
    char *parent = strndup(path, (size_t)(slash - path) + 1);
    bool found = parent && stat(parent, folder) == 0;
    free(parent);
    return found;
}

bool output_same_file(const char *a, const char *b) {
    struct stat x, y;
    const char *name, *other;
    if (strcmp(a, b) == 0)
        return true;
    const bool is_a = find_file(a, &x), is_b = find_file(b, &y);
    if (is_a && is_b)
        return S_ISREG(x.st_mode) && same_inode(&x, &y);
    if (is_a || is_b || strcmp(a, "-") == 0 || strcmp(b, "-") == 0)
        return false;
    return find_parent(a, &x, &name) && find_parent(b, &y, &other) && same_inode(&x, &y) &&
           strcmp(name, other) == 0;
}

/* `path` is one of the parts of the model whose first part is `first`. */
static bool is_part(const char *path, const char *first) {
    enum { SUFFIX = sizeof "-00001-of-00002.gguf" - 1 };
    const size_t n = strlen(first);
    int n_parts = 0;
    char *part = NULL;
    bool found = false;
    if (n <= SUFFIX || sscanf(first + n - SUFFIX, "-00001-of-%5d.gguf", &n_parts) != 1)
        return false;
    for (int i = 2; i <= n_parts && !found; i++) {
        if (asprintf(&part, "%.*s-%05d-of-%05d.gguf", (int)(n - SUFFIX), first, i, n_parts) < 0)
            return false;
        found = output_same_file(path, part);
        free(part);
    }
    return found;
}

static bool is_in_folder(const char *path, const char *folder) {
    struct stat st, entry_st;
    struct dirent *entry;
    bool found = false;
    DIR *dir = find_file(path, &st) && S_ISREG(st.st_mode) ? opendir(folder) : NULL;
    while (dir && !found && (entry = readdir(dir)))
        found = fstatat(dirfd(dir), entry->d_name, &entry_st, 0) == 0 && same_inode(&st, &entry_st);
    if (dir)
        closedir(dir);
    return found;
}

bool output_is_input(const char *path, const char *input) {
    return strcmp(input, "-") != 0 && (output_same_file(path, input) || is_part(path, input) ||
                                       is_in_folder(path, input));
}
