/* records.c - see dpinfer/records.h. Everything that comes from a record is private memory, also
 * what the parser of CSV allocates. */
#include "pipeline/records/records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/textfile.h"
#include "base/utf8.h"
#include "dpinfer/memory.h"
#include "pipeline/records/encoding.h"
#include "pipeline/records/gzip.h"

/* What one compressed file of a folder may hold; more is a null record. No context has so much. */
enum { PACKED_RECORD_BYTES_MAX = 1 << 26 };

static bool has_suffix(const char *name, const char *suffix) {
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && dpi_same_letters(name + n - m, suffix, m);
}

static bool is_packed(const char *name) { return has_suffix(name, ".gz"); }

/* Whether a name ends so, or so and in .gz. */
static bool has_form(const char *name, const char *suffix) {
    char packed[16];
    snprintf(packed, sizeof packed, "%s.gz", suffix);
    return has_suffix(name, suffix) || has_suffix(name, packed);
}

/* ---- Folder --------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b) {
    return strcmp(((const dpi_span *)a)->data, ((const dpi_span *)b)->data); /* as unsigned char */
}

/* A name that cannot be looked at (a dangling link) stays, to be null in its place. */
static bool is_record_file(int folder, const char *name) {
    struct stat st;
    if (name[0] == '.' || !has_form(name, ".txt"))
        return false;
    return fstatat(folder, name, &st, 0) != 0 || S_ISREG(st.st_mode);
}

static dpi_status list_folder(dpi_records *r, DIR *dir, dpi_error *err) {
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry && errno != 0)
            return dpi_fail(err, dpi_status_of_errno(errno), "cannot read the folder %s: %s",
                            r->path, dpi_reason(errno));
        if (!entry)
            return DPI_STATUS_OK;
        if (is_record_file(r->folder, entry->d_name) &&
            !dpi_spans_copy(&r->spans, entry->d_name, strlen(entry->d_name)))
            return dpi_no_memory(err, "the records");
    }
}

static dpi_status open_folder(dpi_records *r, dpi_error *err) {
    r->folder = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int listing = r->folder < 0 ? -1 : dup(r->folder);
    DIR *dir = listing < 0 ? NULL : fdopendir(listing);
    if (!dir) {
        int reason = errno;
        if (listing >= 0)
            close(listing);
        return dpi_fail(err, dpi_status_of_errno(reason), "cannot read the folder %s: %s", r->path,
                        dpi_reason(reason));
    }
    dpi_status status = list_folder(r, dir, err);
    closedir(dir);
    if (r->spans.n > 0)
        qsort(r->spans.at, r->spans.n, sizeof *r->spans.at, by_bytes);
    return status;
}

static size_t trim_line_end(const char *text, size_t n_bytes) {
    if (n_bytes > 0 && text[n_bytes - 1] == '\n') {
        n_bytes--;
        if (n_bytes > 0 && text[n_bytes - 1] == '\r')
            n_bytes--;
    }
    return n_bytes;
}

/* What a file of a folder holds, as it is there; *text NULL: what the file is itself makes the
 * record null. */
static dpi_status read_bytes(const dpi_records *r, const char *name, char **text, size_t *n_bytes,
                             dpi_error *err) {
    /* O_NONBLOCK: a name that has become a pipe since must not stop the program. */
    int fd = openat(r->folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    bool ok = fd >= 0 && fstat(fd, &st) == 0;
    if (ok && S_ISREG(st.st_mode))
        ok = dpi_private_read(fd, SIZE_MAX, text, n_bytes);
    int reason = errno;
    if (fd >= 0)
        close(fd);
    const dpi_status status = ok ? DPI_STATUS_OK : dpi_status_of_errno(reason);
    if (!ok && status != DPI_STATUS_IO)
        return dpi_fail(err, status, "cannot read a record: %s", dpi_reason(reason));
    return DPI_STATUS_OK;
}

/* What it is as UTF-8: of a compressed file what that holds. One that is no such file is null. */
static dpi_status expand_bytes(const dpi_records *r, const char *name, char **text,
                               size_t *n_bytes, int32_t *fault, dpi_error *err) {
    *fault = *text ? DPI_FAULT_NONE : DPI_FAULT_UNREADABLE;
    dpi_status status = DPI_STATUS_OK;
    if (*text && is_packed(name)) {
        status = dpi_gzip_expand("a record", PACKED_RECORD_BYTES_MAX, text, n_bytes, err);
        *fault = status == DPI_STATUS_OK ? DPI_FAULT_NONE : DPI_FAULT_UNREADABLE;
    }
    if (*fault == DPI_FAULT_NONE) {
        status = dpi_encoding_convert(r->encoding, "a record", text, n_bytes, err);
        *fault = status == DPI_STATUS_OK ? DPI_FAULT_NONE : DPI_FAULT_ENCODING;
    }
    if (*fault == DPI_FAULT_NONE)
        return DPI_STATUS_OK;
    dpi_private_free(*text);
    *text = NULL;
    return status == DPI_STATUS_FORMAT ? DPI_STATUS_OK : status;
}

static dpi_status read_file(const dpi_records *r, size_t i, char **text, size_t *n_bytes,
                            int32_t *fault, dpi_error *err) {
    const char *name = r->spans.at[i].data;
    DPI_TRY(read_bytes(r, name, text, n_bytes, err));
    DPI_TRY(expand_bytes(r, name, text, n_bytes, fault, err));
    if (*text)
        *n_bytes = trim_line_end(*text, *n_bytes);
    return DPI_STATUS_OK;
}

/* ---- JSON lines ----------------------------------------------------------------------------- */

static dpi_status open_jsonl(dpi_records *r, size_t n_bytes, dpi_error *err) {
    for (size_t at = 0; at < n_bytes;) {
        char *line = r->content + at;
        char *end = memchr(line, '\n', n_bytes - at);
        size_t n_line = end ? (size_t)(end - line) : n_bytes - at;
        if (!dpi_spans_add(&r->spans, (dpi_span){line, n_line}))
            return dpi_no_memory(err, "the records");
        at += n_line + 1;
    }
    return DPI_STATUS_OK;
}

static dpi_status read_line(const dpi_records *r, size_t i, char **text, size_t *n_bytes,
                            int32_t *fault, dpi_error *err) {
    dpi_json line, field;
    dpi_records_field(r, i, r->text_field, &line, &field);
    DPI_TRY(dpi_json_string(&field, text, n_bytes, err));
    *fault = *text                                        ? DPI_FAULT_NONE
             : dpi_units_is_blank(&r->spans.at[i])        ? DPI_FAULT_EMPTY
             : !dpi_is_utf8(field.text, field.n_bytes)    ? DPI_FAULT_ENCODING
             : field.type != DPI_JSON_NONE                ? DPI_FAULT_NOT_TEXT
             : line.type == DPI_JSON_OBJECT               ? DPI_FAULT_NO_FIELD
                                                          : DPI_FAULT_MALFORMED;
    return DPI_STATUS_OK;
}

/* ---- All of them ---------------------------------------------------------------------------- */

/* Only a regular file: it has an end. */
static dpi_status read_content(dpi_records *r, size_t *n_bytes, dpi_error *err) {
    struct stat st;
    int fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return dpi_fail(err, dpi_status_of_errno(errno), "cannot read %s: %s", r->path,
                        dpi_reason(errno));
    bool ok = fstat(fd, &st) == 0;
    const bool is_file = ok && S_ISREG(st.st_mode);
    if (is_file)
        ok = dpi_private_read(fd, SIZE_MAX, &r->content, n_bytes);
    int reason = errno;
    close(fd);
    if (ok && !is_file)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is not a regular file", r->path);
    return ok ? DPI_STATUS_OK
              : dpi_fail(err, dpi_status_of_errno(reason),
                         "cannot read %s: %s", r->path, dpi_reason(reason));
}

/* Of `content`, which has n_bytes. */
static dpi_status find_records(dpi_records *r, size_t n_bytes, dpi_error *err) {
    DPI_TRY(dpi_encoding_convert(r->encoding, r->path, &r->content, &n_bytes, err));
    const size_t mark = dpi_textfile_mark(r->content, n_bytes);
    memmove(r->content, r->content + mark, n_bytes - mark);
    n_bytes -= mark;
    if (r->kind == DPI_RECORD_LINE)
        return open_jsonl(r, n_bytes, err);
    dpi_csv_column columns[DPI_CSV_COLUMNS_MAX] = {{r->text_field, "text_field", &r->spans}};
    int32_t n = 1;
    if (r->unit_field)
        columns[n++] = (dpi_csv_column){r->unit_field, "unit_field", &r->units.ids};
    for (int32_t i = 0; i < r->n_label_fields; i++)
        columns[n++] = (dpi_csv_column){r->label_fields[i], "label_field", &r->parts[i]};
    DPI_TRY(dpi_csv_read(r->path, r->content, n_bytes, r->delimiter, columns, n, err));
    dpi_private_free(r->content); /* the fields were copied */
    r->content = NULL;
    return DPI_STATUS_OK;
}

static dpi_status open_file(dpi_records *r, dpi_error *err) {
    size_t n_bytes;
    DPI_TRY(read_content(r, &n_bytes, err));
    if (is_packed(r->path))
        DPI_TRY(dpi_gzip_expand(r->path, r->max_expanded, &r->content, &n_bytes, err));
    return find_records(r, n_bytes, err);
}

static dpi_status find_kind(const char *path, int32_t *kind, dpi_error *err) {
    struct stat st;
    if (stat(path, &st) != 0)
        return dpi_fail(err, dpi_status_of_errno(errno), "cannot open the records %s: %s", path,
                        dpi_reason(errno));
    *kind = S_ISDIR(st.st_mode)          ? DPI_RECORD_FILE
            : has_form(path, ".jsonl") ? DPI_RECORD_LINE
            : has_form(path, ".csv")   ? DPI_RECORD_ROW
                                         : DPI_RECORD_OTHER;
    return *kind != DPI_RECORD_OTHER
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_FORMAT,
                          "%s is not a folder of .txt files, a .jsonl or a .csv file, nor one of "
                          "these with .gz behind its name%s", path,
                          has_form(path, ".txt") ? ": a .txt file is one record of its folder, and "
                                                   "a file of several a .jsonl or a .csv"
                                                 : "");
}

static dpi_status create(int32_t kind, dpi_records **records, dpi_error *err) {
    dpi_records *r = *records = dpi_private_malloc(sizeof *r);
    if (!r)
        return dpi_no_memory(err, "the records");
    *r = (dpi_records){.kind = kind, .folder = -1};
    return DPI_STATUS_OK;
}

DPI_STRUCT_DEFAULTS(dpi_records_options,
    .text_field = "text", .delimiter = ',', .max_expanded = INT64_C(1) << 32)

static bool copy_label_fields(dpi_records *r, const dpi_records_options *o) {
    const char *const *fields = o->n_label_fields > 0 ? o->label_fields : &o->label_field;
    const int32_t n = o->n_label_fields > 0 ? o->n_label_fields : o->label_field != NULL;
    for (; r->n_label_fields < n; r->n_label_fields++) {
        const char *field = fields[r->n_label_fields];
        if (!(r->label_fields[r->n_label_fields] = dpi_span_copy(field, strlen(field))))
            return false;
    }
    return true;
}

static dpi_status check_options(const dpi_records_options *o, dpi_error *err) {
    if (!o->text_field)
        return dpi_fail(err, DPI_STATUS_ARG, "text_field is NULL, must be a string");
    if (o->delimiter < 1 || o->delimiter == '"' || o->delimiter == '\n' || o->delimiter == '\r')
        return dpi_fail(err, DPI_STATUS_ARG,
                        "delimiter: allowed is an ASCII character but quote and line end");
    DPI_TRY(dpi_check_range("public_fields", o->public_fields, 0, 1, err));
    DPI_TRY(dpi_check_range("encoding", o->encoding, 0, DPI_ENCODING_UTF16BE, err));
    DPI_TRY(dpi_check_range("n_label_fields", o->n_label_fields, 0, DPI_LABEL_FIELDS_MAX, err));
    return dpi_check_range("max_expanded", o->max_expanded, 1, INT64_C(1) << 40, err);
}

/* An object of these options, without records. */
static dpi_status begin(const char *path, int32_t kind, const dpi_records_options *o,
                        dpi_records **records, dpi_error *err) {
    dpi_records *r;
    DPI_TRY(create(kind, &r, err));
    r->delimiter = o->delimiter;
    r->encoding = o->encoding;
    r->public_fields = o->public_fields;
    r->max_expanded = (size_t)o->max_expanded;
    r->path = dpi_span_copy(path, strlen(path));
    r->text_field = dpi_span_copy(o->text_field, strlen(o->text_field));
    if (o->unit_field)
        r->unit_field = dpi_span_copy(o->unit_field, strlen(o->unit_field));
    if (copy_label_fields(r, o) && r->path && r->text_field && !r->unit_field == !o->unit_field) {
        *records = r;
        return DPI_STATUS_OK;
    }
    dpi_records_close(r);
    return dpi_no_memory(err, "the records");
}

static dpi_status finish(dpi_records *r, dpi_status status, dpi_records **records,
                         dpi_error *err) {
    if (status == DPI_STATUS_OK)
        status = dpi_records_find_units(r, err);
    if (status == DPI_STATUS_OK)
        *records = r;
    else
        dpi_records_close(r);
    return status;
}

dpi_status dpi_records_open(const char *path, const dpi_records_options *options,
                            dpi_records **records, dpi_error *err) {
    dpi_records *r;
    int32_t kind;
    DPI_COPY_STRUCT_IF(dpi_records_options, o, options, err);
    DPI_TRY(check_options(&o, err));
    DPI_TRY(find_kind(path, &kind, err));
    DPI_TRY(begin(path, kind, &o, &r, err));
    return finish(r, kind == DPI_RECORD_FILE ? open_folder(r, err) : open_file(r, err), records,
                  err);
}

dpi_status dpi_records_open_buffer(const void *data, size_t n_bytes, int32_t kind,
                                   const dpi_records_options *options, dpi_records **records,
                                   dpi_error *err) {
    dpi_records *r;
    DPI_COPY_STRUCT_IF(dpi_records_options, o, options, err);
    DPI_TRY(check_options(&o, err));
    DPI_TRY(dpi_check_range("kind", kind, DPI_RECORD_LINE, DPI_RECORD_ROW, err));
    DPI_TRY(begin("the text in memory", kind, &o, &r, err));
    r->content = dpi_span_copy(n_bytes > 0 ? data : "", n_bytes);
    return finish(r, r->content ? find_records(r, n_bytes, err)
                                : dpi_no_memory(err, "the records"), records, err);
}

dpi_status dpi_records_create(const char *const *texts, const size_t *n_bytes, size_t n_records,
                              dpi_records **records, dpi_error *err) {
    dpi_records *r;
    DPI_TRY(create(DPI_RECORD_OTHER, &r, err));
    for (size_t i = 0; i < n_records; i++) {
        const bool added = texts[i] ? dpi_spans_copy(&r->spans, texts[i], n_bytes[i])
                                    : dpi_spans_add(&r->spans, (dpi_span){NULL, 0});
        if (!added) {
            dpi_records_close(r);
            return dpi_no_memory(err, "the records");
        }
    }
    *records = r;
    return DPI_STATUS_OK;
}

void dpi_records_close(dpi_records *r) {
    if (!r)
        return;
    dpi_spans_free(&r->spans, r->kind != DPI_RECORD_LINE);
    dpi_private_free(r->content);
    dpi_private_free(r->path);
    dpi_private_free(r->text_field);
    dpi_private_free(r->unit_field);
    for (int32_t k = 0; k < r->n_label_fields; k++) {
        dpi_private_free(r->label_fields[k]);
        dpi_spans_free(&r->parts[k], true);
    }
    dpi_spans_free(&r->labels, true);
    dpi_units_free(&r->units);
    if (r->folder >= 0)
        close(r->folder);
    dpi_private_free(r);
}

size_t dpi_records_count(const dpi_records *r) { return r->spans.n; }

const char *dpi_records_unit_field(const dpi_records *r) { return r->unit_field; }
int32_t dpi_records_kind(const dpi_records *r) { return r->kind; }

const char *dpi_records_name(const dpi_records *r, size_t i) {
    return r->kind == DPI_RECORD_FILE && i < r->spans.n ? r->spans.at[i].data : NULL;
}

dpi_status dpi_records_refuse_empty(const dpi_records *r, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s holds no record%s", r->path ? r->path : "the list",
                    r->kind == DPI_RECORD_FILE ? ": no file whose name ends in .txt" : "");
}

static dpi_status read_field(const dpi_records *r, size_t i, char **text, size_t *n_bytes,
                             int32_t *fault, dpi_error *err) {
    const dpi_span *s = &r->spans.at[i];
    *n_bytes = s->n_bytes;
    *text = s->data ? dpi_span_copy(s->data, s->n_bytes) : NULL;
    *fault = s->data                           ? DPI_FAULT_NONE
             : s->n_bytes == DPI_SPAN_MALFORMED ? DPI_FAULT_MALFORMED
                                                : DPI_FAULT_NO_FIELD;
    return s->data && !*text ? dpi_no_memory(err, "the records") : DPI_STATUS_OK;
}

/* Without a mark; and what is in it. */
static int32_t finish_text(const dpi_records *r, size_t i, char *text, size_t *n_bytes) {
    const size_t mark = dpi_textfile_mark(text, *n_bytes);
    *n_bytes -= mark;
    memmove(text, text + mark, *n_bytes);
    text[*n_bytes] = '\0';
    return !dpi_is_utf8(text, *n_bytes)                         ? DPI_FAULT_ENCODING
           : dpi_units_is_blank(&(dpi_span){text, *n_bytes}) ? DPI_FAULT_EMPTY
           : !dpi_records_has_id(r, i)                                     ? DPI_FAULT_NO_ID
                                                               : DPI_FAULT_NONE;
}

dpi_status dpi_records_look(const dpi_records *r, size_t i, char **text, size_t *n_bytes,
                            int32_t *fault, dpi_error *err) {
    *text = NULL;
    *n_bytes = 0;
    if (i >= r->spans.n)
        return dpi_fail(err, DPI_STATUS_ARG, "there is no record at this position");
    DPI_TRY(r->kind == DPI_RECORD_FILE   ? read_file(r, i, text, n_bytes, fault, err)
            : r->kind == DPI_RECORD_LINE ? read_line(r, i, text, n_bytes, fault, err)
                                         : read_field(r, i, text, n_bytes, fault, err));
    if (*text)
        *fault = finish_text(r, i, *text, n_bytes);
    if (*fault == DPI_FAULT_NONE)
        return DPI_STATUS_OK;
    dpi_private_free(*text);
    *text = NULL;
    *n_bytes = 0;
    return DPI_STATUS_OK;
}

dpi_status dpi_records_read(const dpi_records *r, size_t i, char **text, size_t *n_bytes,
                            dpi_error *err) {
    int32_t fault;
    return dpi_records_look(r, i, text, n_bytes, &fault, err);
}

dpi_status dpi_records_prompt(const dpi_records *r, size_t i, const dpi_prompts *prompts,
                              int32_t **tokens, size_t *n_tokens, dpi_error *err) {
    char *text = NULL;
    size_t n_bytes = 0;
    if (i < r->spans.n)
        DPI_TRY(dpi_records_read(r, i, &text, &n_bytes, err));
    const dpi_status status = dpi_prompts_encode(prompts, text, n_bytes, tokens, n_tokens, err);
    dpi_private_free(text);
    return status;
}
