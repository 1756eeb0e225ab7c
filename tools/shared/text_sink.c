/* text_sink.c - see text_sink.h. */
#include "tools/shared/text_sink.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dpinfer/memory.h"
#include "tools/terminal/terminal.h"

text_form text_form_of(bool jsonl, const char *path) {
    const size_t n = path ? strlen(path) : 0;
    return jsonl                                              ? TEXT_JSONL
           : n > 4 && strcasecmp(path + n - 4, ".csv") == 0 ? TEXT_CSV
                                                              : TEXT_LINES;
}

void text_sink_open(text_sink *s, output *out, text_form form, const dpi_run *claim) {
    *s = (text_sink){.out = out, .form = form, .counts = true};
    if (!claim)
        return;
    s->is_private = dpi_run_is_private(claim) != 0;
    if (!s->is_private)
        dpi_run_label(claim, s->label, sizeof s->label);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static int put_now(text_sink *s, const char *bytes, size_t n_bytes, const char *tail) {
    const int code = output_write_part(s->out, bytes, n_bytes, tail);
    if (code == CLI_OK && s->written)
        s->written(s->user, bytes, n_bytes);
    return code;
}

static int put(text_sink *s, const char *bytes, size_t n_bytes) {
    const bool bare = s->form == TEXT_LINES && s->goes_on;
    s->n_bytes += (int64_t)n_bytes;
    if (!s->is_whole)
        return put_now(s, bytes, n_bytes, bare ? "" : s->tail);
    if (!dpi_private_grow(&s->whole, &s->room, s->n_whole + n_bytes, 1))
        return cli_no_memory("the text");
    if (n_bytes > 0)
        memcpy(s->whole + s->n_whole, bytes, n_bytes);
    s->n_whole += n_bytes;
    return CLI_OK;
}

/* Private bytes, which are freed; NULL: there was no memory for them. */
static int put_private(text_sink *s, char *bytes, size_t from, size_t n_bytes) {
    const int code = bytes ? put(s, bytes + from, n_bytes) : cli_no_memory("the text");
    dpi_private_free(bytes);
    return code;
}

/* In quotes; NULL: out of memory. */
static char *json_of(const text_sink *s, const char *text, size_t n_bytes) {
    json_t *value = json_stringn(text, n_bytes);
    char *json = value ? json_dumps(value, JSON_ENCODE_ANY | (s->screen ? JSON_ENSURE_ASCII : 0))
                       : NULL;
    json_decref(value);
    return json;
}

/* Part of a text as it stands between quotes of CSV, which are doubled; NULL: out of memory. */
static char *csv_of(const char *text, size_t n_bytes, size_t *n_quoted) {
    char *quoted = n_bytes < SIZE_MAX / 2 ? dpi_private_malloc(2 * n_bytes + 1) : NULL;
    size_t n = 0;
    for (size_t i = 0; quoted && i < n_bytes; i++) {
        if (text[i] == '"')
            quoted[n++] = '"';
        quoted[n++] = text[i];
    }
    *n_quoted = n;
    return quoted;
}

/* What ends the text when it has n_drawn tokens. */
static void set_tail(text_sink *s, int32_t n_drawn, bool ended) {
    const char *over = ended ? "true" : "false", *is = s->is_private ? "true" : "false";
    char counts[64] = "", label[TEXT_LABEL_BYTES + 16] = "";
    if (s->form == TEXT_JSONL) {
        if (s->counts)
            snprintf(counts, sizeof counts, ",\"n_tokens\":%d,\"ended\":%s", n_drawn, over);
        if (s->label[0])
            snprintf(label, sizeof label, ",\"label\":\"%s\"", s->label);
        snprintf(s->tail, sizeof s->tail, "\"%s,\"private\":%s%s}\n", counts, is, label);
    } else if (s->form == TEXT_CSV) {
        if (s->label[0])
            snprintf(label, sizeof label, ",\"%s\"", s->label);
        if (s->counts)
            snprintf(counts, sizeof counts, ",%d,%s", n_drawn, over);
        snprintf(s->tail, sizeof s->tail, "\"%s,%s%s\r\n", counts, is, label);
    } else {
        snprintf(s->tail, sizeof s->tail, "%s", s->line_open ? "\n" : "");
    }
}

/* ---- A text ---------------------------------------------------------------------------------- */

/* {"index":0,"text":" */
static int begin_object(text_sink *s, const text_head *h) {
    char *label = h->label ? json_of(s, h->label, h->n_label) : NULL, *begin = NULL;
    const int n =
        h->label && !label
            ? -1
            : asprintf(&begin, "{\"index\":%d,%s%s%s%s%s%s\"text\":\"", h->index,
                       label ? "\"text_label\":" : "", label ? label : "", label ? "," : "",
                       h->attributes ? "\"attributes\":" : "", h->attributes ? h->attributes : "",
                       h->attributes ? "," : "");
    const int code = n < 0 ? cli_no_memory("the text") : put(s, begin, (size_t)n);
    dpi_private_free(label);
    if (n >= 0)
        free(begin);
    return code;
}

static int put_header(text_sink *s, bool labels) {
    char head[96];
    s->tail[0] = '\0';
    const int n = snprintf(head, sizeof head, "index,%stext%s,private%s\r\n",
                           labels ? "text_label," : "", s->counts ? ",n_tokens,ended" : "",
                           s->label[0] ? ",label" : "");
    return put(s, head, (size_t)n);
}

/* Up to the text, with the quote that opens it. */
static int begin_row(text_sink *s, const text_head *h, bool first) {
    size_t n_label = 0;
    int code = first ? put_header(s, h->label != NULL) : CLI_OK;
    char *label = h->label ? csv_of(h->label, h->n_label, &n_label) : NULL;
    char *row = h->label && !label ? NULL : dpi_private_malloc(n_label + 32);
    size_t n = 0;
    if (row) {
        n = (size_t)snprintf(row, 32, "%d,%s", h->index, h->label ? "\"" : "");
        memcpy(row + n, label ? label : "", n_label);
        n += n_label;
        n += (size_t)snprintf(row + n, 8, "%s", h->label ? "\",\"" : "\"");
    }
    dpi_private_free(label);
    set_tail(s, 0, false);
    const int written = put_private(s, row, 0, n);
    return code == CLI_OK ? written : code;
}

int text_sink_begin(text_sink *s, const text_head *head) {
    const bool first = s->n_texts++ == 0;
    int code = CLI_OK;
    s->open = true;
    s->line_open = true; /* an empty text is an empty line */
    if (s->form == TEXT_CSV) {
        code = begin_row(s, head, first);
    } else {
        set_tail(s, 0, false);
        if (s->form == TEXT_JSONL)
            code = begin_object(s, head);
        else if (!first)
            code = put(s, "\n", 1), s->n_bytes--;
    }
    s->open = code == CLI_OK; /* else nothing of it is there that had to end */
    return code;
}

int text_sink_add(text_sink *s, const char *text, size_t n_bytes, int32_t n_drawn, bool ended) {
    size_t n;
    if (n_bytes > 0)
        s->line_open = text[n_bytes - 1] != '\n';
    set_tail(s, n_drawn, ended);
    if (n_bytes == 0)
        return put(s, "", 0);
    if (s->form == TEXT_JSONL) { /* what stands between the quotes */
        char *json = json_of(s, text, n_bytes);
        return put_private(s, json, 1, json ? strlen(json) - 2 : 0);
    }
    if (s->form == TEXT_CSV) {
        char *quoted = csv_of(text, n_bytes, &n);
        return put_private(s, quoted, 0, n);
    }
    if (!s->screen)
        return put(s, text, n_bytes);
    char *shown = terminal_text(text, n_bytes, true, &n);
    const int code = shown ? put(s, shown, n) : cli_no_memory("the text");
    free(shown);
    return code;
}

int text_sink_end(text_sink *s) {
    char tail[OUTPUT_TAIL_BYTES];
    strcpy(tail, s->tail);
    s->tail[0] = '\0';
    s->open = false;
    return put(s, tail, strlen(tail));
}

int text_sink_put(text_sink *s, const text_head *head, const char *text, size_t n_bytes,
                  int32_t n_drawn, bool ended) {
    s->is_whole = true;
    int code = text_sink_begin(s, head);
    if (code == CLI_OK)
        code = text_sink_add(s, text, n_bytes, n_drawn, ended);
    if (code == CLI_OK)
        code = text_sink_end(s);
    if (code == CLI_OK)
        code = put_now(s, s->whole, s->n_whole, "");
    dpi_private_free(s->whole);
    s->whole = NULL;
    s->n_whole = s->room = 0;
    s->is_whole = false;
    return code;
}
