/* paths.c - see paths.h. */
#include "tools/options/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


/* ---- Whether two paths lead to one file ------------------------------------------------------ */

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

/* Both lead to the same regular file, or, where there is none yet, to the same name in the same
 * folder. */
static bool is_same_file(const char *a, const char *b) {
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
        found = is_same_file(path, part);
        free(part);
    }
    return found;
}

/* `path` is one of the files that SQLite keeps beside a ledger, and removes. */
static bool is_beside(const char *path, const char *input) {
    static const char *const suffixes[] = {"-journal", "-wal", "-shm"};
    bool found = false;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && !found; i++) {
        char *name;
        if (asprintf(&name, "%s%s", input, suffixes[i]) < 0)
            return false;
        found = is_same_file(path, name);
        free(name);
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

/* The folder, which is there, is one of those on the way to `path`. */
static bool is_above(const char *folder, const char *path) {
    struct stat own, st;
    char *real = stat(folder, &own) == 0 ? realpath(path, NULL) : NULL;
    bool found = false;
    while (real && real[0] && !found) {
        found = stat(real, &st) == 0 && same_inode(&st, &own);
        *strrchr(real, '/') = '\0';
    }
    free(real);
    return found;
}

/* `path` is or will be the folder, or in it at any depth. */
static bool is_below(const char *path, const char *folder) {
    char *parent = strdup(path), *slash = parent ? strrchr(parent, '/') : NULL;
    if (slash)
        slash[slash == parent] = '\0';
    const char *at = slash ? parent : ".";
    const bool found = is_same_file(path, folder) || is_same_file(at, folder) ||
                       is_above(folder, at) || is_above(folder, path);
    free(parent);
    return found;
}

/* `path` leads to what is read at `input`, or to a file in it. */
static bool is_read(const char *path, const char *input) {
    return is_same_file(path, input) || is_part(path, input) || is_beside(path, input) ||
           is_in_folder(path, input);
}

/* ---- The rules ------------------------------------------------------------------------------- */

static void add(paths *p, const char **list, int *n, const char *path) {
    if (!path || strcmp(path, "-") == 0)
        return;
    if (*n < PATHS_MAX)
        list[(*n)++] = path;
    else
        p->too_many = true;
}

void paths_read(paths *p, const char *path) { add(p, p->input, &p->n_inputs, path); }

void paths_own(paths *p, const char *path) { add(p, p->folder, &p->n_folders, path); }

void paths_write(paths *p, const char *option, const char *path) {
    if (!path)
        return;
    if (p->n_outputs == PATHS_MAX) {
        p->too_many = true;
        return;
    }
    snprintf(p->output[p->n_outputs].option, sizeof p->output->option, "%s", option);
    p->output[p->n_outputs++].path = path;
}

/* The name with the suffix; NULL: it is longer than what a system opens. */
static const char *name_beside(paths *p, const char *name, const char *suffix) {
    char *beside = p->beside[p->n_beside];
    const int n = snprintf(beside, PATH_BESIDE, "%s%s", name, suffix);
    p->n_beside += n < PATH_BESIDE;
    return n < PATH_BESIDE ? beside : NULL;
}

static void add_option(paths *p, const args *a, option_id id) {
    char name[32];
    switch (option_file_of(a->command, id)) {
    case FILE_READ: paths_read(p, a->v[id].s); break;
    case FILE_OWN: paths_own(p, a->v[id].s); break;
    case FILE_WRITTEN:
        snprintf(name, sizeof name, "--%s", option_name(id));
        paths_write(p, strcmp(name, "--output") == 0 ? "-o" : name, a->v[id].s);
        break;
    default: break;
    }
}

void paths_options(paths *p, const args *a) {
    paths_read(p, a->model);
    for (option_id id = 0; id < N_OPTIONS; id++)
        if (id != OPT_REPORT) /* there may be more than one */
            add_option(p, a, id);
    for (int i = 0; i < a->n_listed; i++)
        if (a->listed[i].id == OPT_EXAMPLE)
            paths_read(p, a->listed[i].text);
    for (int i = 0; i < a->n_reports; i++) {
        paths_write(p, "--report", a->reports[i]);
        if (a->v[OPT_SIGN].given)
            paths_write(p, "--sign", name_beside(p, a->reports[i], ".sig"));
    }
    if (a->v[OPT_SIGN].given) /* ssh-keygen reads it too */
        paths_read(p, name_beside(p, a->v[OPT_SIGN].s, ".pub"));
}

bool paths_is_file(const char *path) {
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* A symbolic link to what is not there: nothing can be compared with what it will lead to. */
static bool leads_nowhere(const char *path) {
    struct stat st;
    return strcmp(path, "-") != 0 && lstat(path, &st) == 0 && S_ISLNK(st.st_mode) &&
           stat(path, &st) != 0;
}

/* The name of the standard stream, of those from `fd` on, that is the regular file at `path`; NULL:
 * none is. Output does not replace what is read, or what a stream has been given. */
static const char *stream_of(const char *path, int fd) {
    static const char *const names[] = {"standard input", "standard output", "standard error"};
    struct stat st, stream;
    if (!path || strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return NULL;
    for (; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &stream) == 0 && same_inode(&st, &stream))
            return names[fd];
    return NULL;
}

static int check_input(const char *path) {
    const char *stream = stream_of(path, STDOUT_FILENO);
    return stream ? cli_fail(CLI_USAGE, "%s is an input, and %s is written there", path, stream)
                  : CLI_OK;
}

int paths_check_command(const args *a) {
    paths p = {0};
    for (int i = 0; i < a->n_positional; i++)
        paths_read(&p, a->positional[i]);
    paths_options(&p, a);
    return paths_check(&p, a->v[OPT_OVERWRITE].i);
}

int paths_check_streams(const args *a) {
    int code = check_input(a->model);
    for (int i = 0; i < a->n_positional && code == CLI_OK; i++)
        code = check_input(a->positional[i]);
    for (option_id id = 0; id < N_OPTIONS && code == CLI_OK; id++)
        if (option_file_of(a->command, id) == FILE_READ)
            code = check_input(a->v[id].s);
    return code;
}

int paths_check(const paths *p, bool may_replace) {
    if (p->too_many) /* what is not in the list would not be compared */
        return cli_fail(CLI_USAGE, "more than %d files are read or written", PATHS_MAX);
    for (int i = 0; i < p->n_outputs; i++) {
        const char *option = p->output[i].option, *path = p->output[i].path;
        const char *stream = stream_of(path, STDIN_FILENO);
        if (leads_nowhere(path))
            return cli_fail(CLI_USAGE, "%s: %s is a symbolic link to a file that is not there",
                            option, path);
        if (stream)
            return cli_fail(CLI_USAGE, "%s: %s is also %s", option, path, stream);
        for (int k = 0; k < p->n_inputs; k++)
            if (is_read(path, p->input[k]))
                return cli_fail(CLI_USAGE, "%s: %s is an input and would be overwritten", option,
                                path);
        for (int k = 0; k < p->n_folders; k++)
            if (strcmp(path, "-") != 0 && is_below(path, p->folder[k]))
                return cli_fail(CLI_USAGE, "%s: %s is in %s, whose files are the program's own",
                                option, path, p->folder[k]);
        for (int k = 0; k < i; k++)
            if (is_same_file(path, p->output[k].path))
                return cli_fail(CLI_USAGE, "%s and %s lead to the same file", p->output[k].option,
                                option);
        if (!may_replace && paths_is_file(path))
            return cli_fail(CLI_USAGE,
                            "%s: %s is there already: another name, or --overwrite to replace it",
                            option, path);
    }
    return CLI_OK;
}
