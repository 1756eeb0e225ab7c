/* csv.c - see csv.h. The parser is libcsv's. */
#include "pipeline/records/csv.h"

#include <csv.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "dpinfer/memory.h"

/* ---- Spans ----------------------------------------------------------------------------------- */

char *dpi_span_copy(const char *data, size_t n_bytes) {
    char *copy = dpi_private_malloc(n_bytes + 1);
    if (copy) {
        memcpy(copy, data, n_bytes);
        copy[n_bytes] = '\0';
    }
    return copy;
}

bool dpi_spans_add(dpi_spans *spans, dpi_span span) {
    if (!dpi_private_grow(&spans->at, &spans->capacity, spans->n + 1, sizeof span))
        return false;
    spans->at[spans->n++] = span;
    return true;
}

bool dpi_spans_copy(dpi_spans *spans, const char *data, size_t n_bytes) {
    dpi_span span = {dpi_span_copy(data, n_bytes), n_bytes};
    if (!span.data)
        return false;
    bool ok = dpi_spans_add(spans, span);
    if (!ok)
        dpi_private_free(span.data);
    return ok;
}

void dpi_spans_free(dpi_spans *spans, bool with_data) {
    for (size_t i = 0; i < spans->n && with_data; i++)
        dpi_private_free(spans->at[i].data);
    dpi_private_free(spans->at);
    *spans = (dpi_spans){0};
}

/* ---- Memory of the parser -------------------------------------------------------------------- */

/* libcsv asks for 128 bytes more each time. Its buffer grows to twice its size instead, or a long
 * field would be copied again and again. */
enum { BUFFER_HEADER = 16 };

static void *grow_buffer(void *p, size_t n_bytes) {
    char *block = p ? (char *)p - BUFFER_HEADER : NULL;
    size_t capacity = 0;
    if (block)
        memcpy(&capacity, block, sizeof capacity);
    if (block && n_bytes <= capacity)
        return p;
    if (n_bytes > SIZE_MAX / 4)
        return NULL;
    capacity = n_bytes > 2 * capacity ? n_bytes : 2 * capacity;
    block = dpi_private_realloc(block, BUFFER_HEADER + capacity);
    if (!block)
        return NULL;
    memcpy(block, &capacity, sizeof capacity);
    return block + BUFFER_HEADER;
}

static void free_buffer(void *p) { dpi_private_free(p ? (char *)p - BUFFER_HEADER : NULL); }

static int keep_spaces(unsigned char c) {
    (void)c;
    return 0; /* RFC 4180: spaces are part of a field */
}

static bool start_parser(struct csv_parser *parser, char delimiter) {
    if (csv_init(parser, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL) != 0)
        return false;
    csv_set_delim(parser, (unsigned char)delimiter);
    csv_set_realloc_func(parser, grow_buffer);
    csv_set_free_func(parser, free_buffer);
    csv_set_space_func(parser, keep_spaces);
    return true;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

typedef struct csv_state {
    char delimiter;
    const dpi_csv_column *columns;
    int32_t n_columns;
    size_t column; /* of the next field */
    int64_t wanted[DPI_CSV_COLUMNS_MAX]; /* where each is, -1 until the header row has named it */
    bool named_twice[DPI_CSV_COLUMNS_MAX];
    bool in_header;
    bool memory_failed;
    bool row_ended; /* since the line began that is being read */
    int last_end;   /* what ended the row before; '\r' may begin a CRLF */
    dpi_span fields[DPI_CSV_COLUMNS_MAX]; /* of this row */
} csv_state;

static void drop_fields(csv_state *s, size_t why) {
    for (int32_t c = 0; c < s->n_columns; c++) {
        dpi_private_free(s->fields[c].data);
        s->fields[c] = (dpi_span){NULL, why};
    }
}

static void keep_field(csv_state *s, int32_t c, const char *data, size_t n_bytes) {
    const char *name = s->columns[c].name;
    if (s->in_header) {
        if (n_bytes != strlen(name) || memcmp(data, name, n_bytes) != 0)
            return;
        s->named_twice[c] = s->wanted[c] >= 0;
        s->wanted[c] = (int64_t)s->column;
    } else if ((int64_t)s->column == s->wanted[c]) {
        dpi_private_free(s->fields[c].data);
        s->fields[c] = (dpi_span){dpi_span_copy(data, n_bytes), n_bytes};
        s->memory_failed |= !s->fields[c].data;
    }
}

static void end_of_field(void *data, size_t n_bytes, void *user) {
    csv_state *s = user;
    for (int32_t c = 0; c < s->n_columns; c++)
        keep_field(s, c, n_bytes > 0 ? data : "", n_bytes);
    s->column++;
}

static void end_row(csv_state *s) {
    for (int32_t c = 0; c < s->n_columns && !s->in_header; c++) {
        if (!dpi_spans_add(s->columns[c].spans, s->fields[c]))
            s->memory_failed = true;
        else
            s->fields[c] = (dpi_span){NULL, DPI_SPAN_ABSENT};
    }
    s->in_header = false;
    s->column = 0;
}

/* end: the byte that ended the row, -1 at the end of the file. A blank line is a row too. */
static void end_of_row(int end, void *user) {
    csv_state *s = user;
    bool second_of_crlf = s->column == 0 && end == '\n' && s->last_end == '\r';
    s->last_end = second_of_crlf ? -1 : end;
    s->row_ended = true;
    if (!second_of_crlf && !(s->column == 0 && end == -1))
        end_row(s);
}

/* The first byte after the line end that follows content[at]. */
static size_t next_line(const char *content, size_t n_bytes, size_t at) {
    while (at < n_bytes && content[at] != '\n' && content[at] != '\r')
        at++;
    if (at + 1 < n_bytes && content[at] == '\r' && content[at + 1] == '\n')
        at++;
    return at < n_bytes ? at + 1 : n_bytes;
}

/* Line by line from *at, to the end or to a quote that is out of place. *row: where the row begins
 * that was not ended. */
static bool parse_lines(struct csv_parser *parser, const char *content, size_t n_bytes, size_t *at,
                        size_t *row, csv_state *s) {
    for (*row = *at; *at < n_bytes;) {
        const size_t end = next_line(content, n_bytes, *at);
        s->row_ended = false;
        const size_t done =
            csv_parse(parser, content + *at, end - *at, end_of_field, end_of_row, s);
        *at += done;
        if (*at < end)
            return false;
        *row = s->row_ended ? end : *row;
    }
    return csv_fini(parser, end_of_field, end_of_row, s) == 0;
}

/* Parses from *at to the end, or to a row in which a quote is out of place or never closed: this
 * one is null, and the next row begins on the next line, so that it costs no other row its place.
 * Lines that such a row has gone through hold no such quote, and are read twice at most. */
static dpi_status parse_rows(const char *name, const char *content, size_t n_bytes, size_t *at,
                             csv_state *s, dpi_error *err) {
    struct csv_parser parser;
    size_t row;
    if (!start_parser(&parser, s->delimiter))
        return dpi_no_memory(err, "the records");
    const bool whole = parse_lines(&parser, content, n_bytes, at, &row, s);
    s->memory_failed |= csv_error(&parser) == CSV_ENOMEM;
    csv_free(&parser);
    if (s->memory_failed)
        return dpi_no_memory(err, "the records");
    if (!whole && s->in_header)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s is not RFC 4180: a quote is out of place (at byte %zu)", name, *at);
    if (!whole) {
        drop_fields(s, DPI_SPAN_MALFORMED);
        end_row(s);
        s->last_end = -1;
        *at = next_line(content, n_bytes, row);
    }
    return s->memory_failed ? dpi_no_memory(err, "the records") : DPI_STATUS_OK;
}

/* What the header row is probably set apart by, if it is not the delimiter; or a mark of UTF-8 that
 * another encoding has made characters of. */
static const char *column_hint(const char *content, size_t n_bytes, char delimiter) {
    static const char mark[] = "\xc3\xaf\xc2\xbb\xc2\xbf";
    const size_t n = next_line(content, n_bytes, 0);
    if (n >= sizeof mark - 1 && memcmp(content, mark, sizeof mark - 1) == 0)
        return ": it begins with the mark of UTF-8 (encoding)";
    if (memchr(content, delimiter, n))
        return "";
    return memchr(content, ';', n)    ? ": its columns seem to be set apart by ';' (delimiter)"
           : memchr(content, '\t', n) ? ": its columns seem to be set apart by tabs (delimiter)"
                                      : "";
}

/* What a header row that is not UTF-8 probably is. */
static const char *encoding_hint(const char *content, size_t n_bytes) {
    const bool has_mark = n_bytes >= 2 && (memcmp(content, "\xff\xfe", 2) == 0 ||
                                           memcmp(content, "\xfe\xff", 2) == 0);
    return has_mark ? ": it begins with the mark of UTF-16 (the encoding utf16)"
                    : ", UTF-8 (windows-1252 is what Excel calls ANSI, latin1 ISO 8859-1)";
}

dpi_status dpi_csv_read(const char *name, const char *content, size_t n_bytes, char delimiter,
                        const dpi_csv_column *columns, int32_t n_columns, dpi_error *err) {
    csv_state s = {.delimiter = delimiter, .columns = columns, .n_columns = n_columns,
                   .in_header = true, .last_end = -1};
    dpi_status status = DPI_STATUS_OK;
    size_t at = 0;
    if (n_bytes == 0)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is empty: a .csv begins with a header row",
                        name);
    for (int32_t c = 0; c < n_columns; c++)
        s.wanted[c] = -1;
    if (!dpi_is_utf8(content, next_line(content, n_bytes, 0)))
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: its header row is not of the encoding%s", name,
                        encoding_hint(content, n_bytes));
    do
        status = parse_rows(name, content, n_bytes, &at, &s, err);
    while (status == DPI_STATUS_OK && at < n_bytes);
    drop_fields(&s, DPI_SPAN_ABSENT); /* of an unfinished row */
    for (int32_t c = 0; c < n_columns && status == DPI_STATUS_OK; c++)
        if (s.wanted[c] < 0)
            status = dpi_fail(err, DPI_STATUS_FORMAT, "%s: no column '%s' in the header row (%s)%s",
                              name, columns[c].name, columns[c].option,
                              column_hint(content, n_bytes, delimiter));
        else if (s.named_twice[c])
            status = dpi_fail(err, DPI_STATUS_FORMAT,
                              "%s: the header row has the column '%s' more than once (%s)", name,
                              columns[c].name, columns[c].option);
    return status;
}
