/* records.c - see records.h. Everything that comes from a record is private memory, also what
 * the parsers of JSON (main sees to it) and CSV allocate. */
#include "tools/records.h"

#include <csv.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum record_kind { KIND_FOLDER, KIND_JSONL, KIND_CSV } record_kind;

/* A piece of private memory: a file name, a line, a field. data = NULL: a null record. */
typedef struct span {
    char *data;
    size_t n_bytes;
} span;

struct records {
    record_kind kind;
    const char *path;
    const char *text_field;
    int folder;    /* file descriptor, -1 if none */
    char *content; /* of a .jsonl file; its spans point into it */
    span *spans;   /* [n], private; a folder's names and a CSV's fields own their data */
    size_t n, capacity;
};

static bool has_suffix(const char *name, const char *suffix) {
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcasecmp(name + n - m, suffix) == 0;
}

static bool append_span(records *r, span s) {
    if (r->n == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 64;
        span *grown = private_realloc(r->spans, capacity * sizeof *grown);
        if (!grown)
            return false;
        r->spans = grown;
        r->capacity = capacity;
    }
    r->spans[r->n++] = s;
    return true;
}

static char *private_copy(const char *data, size_t n_bytes) {
    char *copy = private_malloc(n_bytes + 1);
    if (copy) {
        memcpy(copy, data, n_bytes);
        copy[n_bytes] = '\0';
    }
    return copy;
}

static int out_of_memory(void) { return cli_fail(CLI_FAILED, "out of memory for the records"); }

/* ---- Folder --------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b) {
    return strcmp(((const span *)a)->data, ((const span *)b)->data); /* as unsigned char */
}

/* A name that cannot be looked at (a dangling link) stays, to be null in its place. */
static bool is_record_file(int folder, const char *name) {
    struct stat st;
    if (name[0] == '.' || !has_suffix(name, ".txt"))
        return false;
    return fstatat(folder, name, &st, 0) != 0 || S_ISREG(st.st_mode);
}

static int open_folder(records *r) {
    r->folder = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int listing = r->folder < 0 ? -1 : dup(r->folder);
    DIR *dir = listing < 0 ? NULL : fdopendir(listing);
    if (!dir) {
        int reason = errno;
        if (listing >= 0)
            close(listing);
        return cli_fail(CLI_RECORDS, "cannot read the folder %s: %s", r->path, strerror(reason));
    }
    int code = CLI_OK;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry) {
            if (errno != 0)
                code = cli_fail(CLI_RECORDS, "cannot read the folder %s: %s", r->path,
                                strerror(errno));
            break;
        }
        if (!is_record_file(r->folder, entry->d_name))
            continue;
        size_t n_bytes = strlen(entry->d_name);
        span name = {private_copy(entry->d_name, n_bytes), n_bytes};
        if (!name.data || !append_span(r, name)) {
            private_free(name.data);
            code = out_of_memory();
            break;
        }
    }
    closedir(dir);
    if (r->n > 0)
        qsort(r->spans, r->n, sizeof *r->spans, by_bytes);
    return code;
}

static bool read_folder(const records *r, size_t i, char **text, size_t *n_bytes) {
    /* O_NONBLOCK: a name that has become a pipe since must not stop the program. */
    int fd = openat(r->folder, r->spans[i].data, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
              cli_read_fd(fd, text, n_bytes);
    if (fd >= 0)
        close(fd);
    if (ok)
        *n_bytes = cli_trim_line_end(*text, *n_bytes);
    return ok;
}

/* ---- JSON lines ----------------------------------------------------------------------------- */

static int open_jsonl(records *r, size_t n_bytes) {
    for (size_t at = 0; at < n_bytes;) {
        char *line = r->content + at;
        char *end = memchr(line, '\n', n_bytes - at);
        size_t n_line = end ? (size_t)(end - line) : n_bytes - at;
        if (!append_span(r, (span){line, n_line}))
            return out_of_memory();
        at += n_line + 1;
    }
    return CLI_OK;
}

static bool read_jsonl(const records *r, size_t i, char **text, size_t *n_bytes) {
    json_t *object = json_loadb(r->spans[i].data, r->spans[i].n_bytes, JSON_ALLOW_NUL, NULL);
    json_t *field = json_object_get(object, r->text_field); /* NULL if it is no object */
    char *copy = NULL;
    if (json_is_string(field)) {
        *n_bytes = json_string_length(field);
        copy = private_copy(json_string_value(field), *n_bytes);
    }
    json_decref(object);
    if (copy)
        *text = copy;
    return copy != NULL;
}

/* ---- CSV ------------------------------------------------------------------------------------ */

typedef struct csv_state {
    records *r;
    size_t column;     /* of the next field */
    int64_t wanted;    /* column of the text, -1 until the header row has named it */
    bool in_header;
    bool memory_failed;
    int last_end;      /* what ended the row before; '\r' may be the first half of CRLF */
    span field;        /* the text of this row */
} csv_state;

static void end_of_field(void *data, size_t n_bytes, void *user) {
    csv_state *s = user;
    const records *r = s->r;
    if (s->in_header) {
        if (s->wanted < 0 && n_bytes == strlen(r->text_field) &&
            memcmp(data, r->text_field, n_bytes) == 0)
            s->wanted = (int64_t)s->column;
    } else if ((int64_t)s->column == s->wanted) {
        s->field = (span){private_copy(data, n_bytes), n_bytes};
        s->memory_failed |= !s->field.data;
    }
    s->column++;
}

/* end: the byte that ended the row, -1 at the end of the file. */
static void end_of_row(int end, void *user) {
    csv_state *s = user;
    bool second_half = s->column == 0 && end == '\n' && s->last_end == '\r';
    s->last_end = second_half ? -1 : end;
    if (second_half || (s->column == 0 && end == -1))
        return;
    if (s->in_header)
        s->in_header = false;
    else if (!append_span(s->r, s->field)) /* also a blank line: null in place */
        s->memory_failed = true;
    else
        s->field = (span){NULL, 0};
    s->column = 0;
}

static int keep_spaces(unsigned char c) {
    (void)c;
    return 0; /* RFC 4180: spaces are part of a field */
}

static int open_csv(records *r, size_t n_bytes) {
    struct csv_parser parser;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL) != 0)
        return out_of_memory();
    csv_set_realloc_func(&parser, private_realloc);
    csv_set_free_func(&parser, private_free);
    csv_set_space_func(&parser, keep_spaces);

    csv_state s = {.r = r, .wanted = -1, .in_header = true, .last_end = -1};
    size_t done = csv_parse(&parser, r->content, n_bytes, end_of_field, end_of_row, &s);
    bool ok = done == n_bytes && csv_fini(&parser, end_of_field, end_of_row, &s) == 0;
    bool memory_failed = s.memory_failed || csv_error(&parser) == CSV_ENOMEM;
    csv_free(&parser);
    private_free(s.field.data); /* of an unfinished row */
    if (memory_failed)
        return out_of_memory();
    if (!ok)
        return cli_fail(CLI_RECORDS, "%s is not RFC 4180: a quote is out of place (at byte %zu)",
                        r->path, done);
    if (s.wanted < 0)
        return cli_fail(CLI_RECORDS, "%s: no column '%s' in the header row; see --text-field",
                        r->path, r->text_field);
    /* The fields were copied. */
    private_free(r->content);
    r->content = NULL;
    return CLI_OK;
}

/* ---- All of them ---------------------------------------------------------------------------- */

static size_t mark_bytes(const char *text, size_t n_bytes) {
    return n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static int open_file(records *r) {
    size_t n_bytes;
    if (!cli_read_path(r->path, &r->content, &n_bytes))
        return cli_fail(CLI_RECORDS, "cannot read %s: %s", r->path, strerror(errno));
    size_t mark = mark_bytes(r->content, n_bytes);
    memmove(r->content, r->content + mark, n_bytes - mark);
    n_bytes -= mark;
    return r->kind == KIND_JSONL ? open_jsonl(r, n_bytes) : open_csv(r, n_bytes);
}

int records_open(const char *path, const char *text_field, records **out) {
    struct stat st;
    if (stat(path, &st) != 0)
        return cli_fail(CLI_RECORDS, "cannot open the records %s: %s", path, strerror(errno));
    record_kind kind = KIND_FOLDER;
    if (has_suffix(path, ".jsonl"))
        kind = KIND_JSONL;
    else if (has_suffix(path, ".csv"))
        kind = KIND_CSV;
    if (S_ISDIR(st.st_mode))
        kind = KIND_FOLDER;
    else if (kind == KIND_FOLDER)
        return cli_fail(CLI_RECORDS, "%s is not a folder of .txt files, a .jsonl or a .csv file",
                        path);

    records *r = private_malloc(sizeof *r);
    if (!r)
        return out_of_memory();
    *r = (records){.kind = kind, .path = path, .text_field = text_field, .folder = -1};
    int code = kind == KIND_FOLDER ? open_folder(r) : open_file(r);
    if (code == CLI_OK && r->n == 0)
        code = cli_fail(CLI_RECORDS, "%s holds no record%s", path,
                        kind == KIND_FOLDER ? ": no file whose name ends in .txt" : "");
    if (code != CLI_OK) {
        records_close(r);
        return code;
    }
    *out = r;
    return CLI_OK;
}

void records_close(records *r) {
    if (!r)
        return;
    for (size_t i = 0; i < r->n && r->kind != KIND_JSONL; i++)
        private_free(r->spans[i].data);
    private_free(r->spans);
    private_free(r->content);
    if (r->folder >= 0)
        close(r->folder);
    private_free(r);
}

size_t records_count(const records *r) { return r->n; }

const char *const records_units[] = {"one .txt file", "one line of a .jsonl file",
                                     "one row of a .csv file", "one record", NULL};

const char *records_unit(const records *r) { return records_units[r->kind]; }

static bool is_blank(const char *text, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++) {
        if (!memchr(" \t\n\v\f\r", text[i], 6))
            return false;
    }
    return true;
}

bool records_read(const records *r, size_t i, char **text, size_t *n_bytes) {
    char *data = NULL;
    size_t n = 0;
    bool ok;
    if (r->kind == KIND_FOLDER) {
        ok = read_folder(r, i, &data, &n);
    } else if (r->kind == KIND_JSONL) {
        ok = read_jsonl(r, i, &data, &n);
    } else {
        n = r->spans[i].n_bytes;
        data = r->spans[i].data ? private_copy(r->spans[i].data, n) : NULL;
        ok = data != NULL;
    }
    if (!ok)
        return false;
    size_t mark = mark_bytes(data, n);
    memmove(data, data + mark, n - mark);
    n -= mark;
    if (is_blank(data, n)) {
        private_free(data);
        return false;
    }
    *text = data;
    *n_bytes = n;
    return true;
}
