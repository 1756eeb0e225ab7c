/* path_world.c - made-up records, as files or in memory, and their prompts. What stands here is
 * written without the functions that it is held against: prompts.c, records.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "base/text.h"
#include "dpinfer/text.h"
#include "audit/path.h"

/* ---- Texts ----------------------------------------------------------------------------------- */

static dpi_status encode(path_world *w, const char *text, size_t n_bytes, path_prompt *p) {
    return dpi_prompt_encode(w->model, w->chat, NULL, 0, text, n_bytes, p->tokens,
                             sizeof p->tokens / sizeof *p->tokens, &p->n, w->audit->err);
}

/* The task of a label: what {label} stands for is written out. */
static void write_task(const path_world *w, int32_t label, char task[32]) {
    snprintf(task, 32, w->labels ? "Now another %c:" : DPI_PATH_TASK, 'a' + label);
}

static dpi_status encode_record(path_world *w, int32_t label, const char *text, size_t n_bytes,
                                path_prompt *p) {
    char whole[sizeof DPI_PATH_BEFORE + DPI_PATH_BYTES + 40], task[32];
    write_task(w, label, task);
    const int n = snprintf(whole, sizeof whole, DPI_PATH_BEFORE "%.*s\n\n%s", (int)n_bytes, text,
                           task);
    return encode(w, whole, (size_t)n, p);
}

/* The longest beginning of record i, in bytes, that does not have too many tokens. */
static dpi_status encode_cut(path_world *w, int32_t i) {
    const int32_t label = dpi_path_label(w, dpi_path_unit(w, i));
    size_t n_bytes = strlen(w->text[i]);
    path_prompt frame;
    DPI_TRY(encode_record(w, label, "", 0, &frame));
    do
        DPI_TRY(encode_record(w, label, w->text[i], n_bytes, &w->prompt[i]));
    while (w->prompt[i].n > frame.n + DPI_PATH_RECORD_TOKENS && n_bytes-- > 1);
    return DPI_STATUS_OK;
}

dpi_status dpi_path_encode(path_world *w) {
    for (int32_t label = 0; label < 2; label++) {
        char task[32];
        write_task(w, label, task);
        DPI_TRY(encode(w, task, strlen(task), &w->public_prompt[label]));
    }
    for (int32_t i = 0; i < w->n_records; i++)
        DPI_TRY(encode_cut(w, i));
    return DPI_STATUS_OK;
}

/* Lengths from one letter on. One record is longer than records may be (each digit is a token or
 * more), one has what files quote, one begins with what may merge with the prompt. */
static void write_texts(path_world *w) {
    static const size_t lengths[] = {6, 27, 1, 14, 9, 22, 3, 18};
    for (int32_t i = 0; i < w->n_records; i++) {
        char *text = w->text[i];
        const size_t n = lengths[(size_t)i % (sizeof lengths / sizeof *lengths)] + (size_t)i / 8;
        for (size_t k = 0; k < n; k++)
            text[k] = (char)('a' + dpi_audit_below(w->audit, 26));
        text[0] = (char)('a' + i); /* so that they differ */
        text[n] = '\0';
    }
    if (w->n_records > 5) {
        strcpy(w->text[3], "say \"no\", \xc3\xa9\n{2} \\ 'e'");
        for (int k = 0; k < 100; k++)
            w->text[5][k] = (char)('0' + dpi_audit_below(w->audit, 10));
        w->text[5][100] = '\0';
    }
}

/* ---- A whole world --------------------------------------------------------------------------- */

static int32_t likeliest(const float *logits, int32_t n_vocab) {
    int32_t best = 0;
    for (int32_t y = 1; y < n_vocab; y++)
        best = logits[y] > logits[best] ? y : best;
    return best;
}

/* A token after which a record wants its text to end: its likeliest token ends texts. -1: none. */
static dpi_status find_last_word(path_world *w, const path_prompt *p) {
    for (int32_t y = 0; y < w->n_vocab && w->last_word < 0; y++) {
        dpi_session_reset(w->session, 0);
        DPI_TRY(dpi_session_prefill(w->session, 0, p->tokens, p->n, NULL, w->audit->err));
        DPI_TRY(dpi_session_step(w->session, 1, &(int32_t){0}, &y, w->audit->err));
        const int32_t best = likeliest(dpi_session_logits(w->session, 0), w->n_vocab);
        if (dpi_token_is_eog(w->model, best) && !dpi_token_is_eog(w->model, y))
            w->last_word = y;
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_path_open(path_world *w, dpi_audit *a, const dpi_model *model, path_source source,
                         int32_t n_records) {
    dpi_model_info info;
    *w = (path_world){
        .audit = a, .model = model, .source = source, .n_records = n_records, .last_word = -1,
        .flipped = -1};
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(model, &info, a->err));
    w->n_vocab = info.n_vocab;
    w->chat = info.chat_template == DPI_CHAT_UNKNOWN ? DPI_CHAT_NONE : info.chat_template;
    write_texts(w);
    DPI_TRY(dpi_path_encode(w));
    dpi_session_options o = a->options.session;
    o.n_seq = 1;
    o.n_ctx = DPI_PATH_CTX;
    DPI_TRY(dpi_session_create(model, &o, &w->session, a->err));
    const bool is_small = info.n_vocab < 1000 && n_records > 0; /* else it takes too long */
    return is_small ? find_last_word(w, &w->prompt[0]) : DPI_STATUS_OK;
}

void dpi_path_close(path_world *w) {
    dpi_session_free(w->session);
    w->session = NULL;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void path_of(const path_world *w, const char *name, char *path, size_t size) {
    snprintf(path, size, "%s/%s", w->audit->options.folder, name);
}

static dpi_status write_file(const path_world *w, const char *name, const dpi_text *text) {
    char path[4096];
    path_of(w, name, path, sizeof path);
    FILE *f = text->failed ? NULL : fopen(path, "w");
    bool ok = f && fwrite(text->data ? text->data : "", 1, text->n_bytes, f) == text->n_bytes;
    if (f)
        ok = fclose(f) == 0 && ok;
    return ok ? DPI_STATUS_OK
              : dpi_fail(w->audit->err, DPI_STATUS_IO, "the audit cannot write %s", path);
}

static bool is_there(const path_world *w, int32_t i) { return w->state[i] != PATH_GONE; }

/* One file for each record that is there. Empty: no byte; white space; a link to nothing. */
static dpi_status write_folder(const path_world *w) {
    char path[4096], name[32];
    path_of(w, "records", path, sizeof path);
    if (mkdir(path, 0700) != 0)
        return dpi_fail(w->audit->err, DPI_STATUS_IO, "the audit cannot make the folder %s", path);
    for (int32_t i = 0; i < w->n_records; i++) {
        const bool empty = w->state[i] == PATH_EMPTY;
        dpi_text text = {0};
        if (!is_there(w, i))
            continue;
        snprintf(name, sizeof name, "records/%03d.txt", (int)i);
        path_of(w, name, path, sizeof path);
        if (empty && w->empty_form == 2 && symlink("nowhere", path) == 0)
            continue;
        dpi_text_add(&text, "%s\n", !empty ? w->text[i] : w->empty_form == 0 ? "" : " \t");
        dpi_status status = write_file(w, name, &text);
        free(text.data);
        DPI_TRY(status);
    }
    return DPI_STATUS_OK;
}

static void remove_folder(const path_world *w) {
    char path[4096], name[32];
    for (int32_t i = 0; i < w->n_records; i++) {
        snprintf(name, sizeof name, "records/%03d.txt", (int)i);
        path_of(w, name, path, sizeof path);
        unlink(path);
    }
    path_of(w, "records", path, sizeof path);
    rmdir(path);
}

static void add_quoted(dpi_text *f, const char *text, bool json) {
    dpi_text_put(f, "\"", 1);
    for (; *text; text++) {
        if (json && *text == '\n') {
            dpi_text_put(f, "\\n", 2);
            continue;
        }
        if (*text == '"' || (json && *text == '\\'))
            dpi_text_put(f, json ? "\\" : "\"", 1);
        dpi_text_put(f, text, 1);
    }
    dpi_text_put(f, "\"", 1);
}

/* With its unit and label, which an empty record keeps. */
static void add_unit_row(const path_world *w, dpi_text *f, int32_t i, bool json) {
    const int32_t unit = dpi_path_unit(w, i);
    const int32_t label = (dpi_path_label(w, unit) + !dpi_path_has_label(w, i)) % 2;
    dpi_text_add(f, json ? "{\"id\": \"u%d\", \"ward\": \"%c\", \"text\": " : "u%d,%c,", unit,
                 'a' + label);
    add_quoted(f, w->state[i] == PATH_EMPTY ? "" : w->text[i], json);
    dpi_text_add(f, json ? "}\n" : "\n");
}

/* A line or row for each record. Empty: no text; no line or row of the form; one that is cut off.
 */
static dpi_status write_table(const path_world *w, bool json) {
    static const char *const lines[] = {"{\"text\": \"\"}", "[\"text\"]",
                                        "{\"id\": 1, \"text\": \"cut"};
    static const char *const rows[] = {"7,\"\"", "7,a \"b\" c", "7,\"cut"};
    dpi_text f = {0};
    dpi_text_add(&f, json ? "" : w->n_units > 0 ? "id,ward,text\n" : "id,text\n");
    for (int32_t i = 0; i < w->n_records; i++) {
        if (!is_there(w, i))
            continue;
        if (w->n_units > 0) {
            add_unit_row(w, &f, i, json);
            continue;
        }
        if (w->state[i] == PATH_EMPTY) {
            dpi_text_add(&f, "%s\n", json ? lines[w->empty_form] : rows[w->empty_form]);
            continue;
        }
        dpi_text_add(&f, json ? "{\"id\": 7, \"text\": " : "7,");
        add_quoted(&f, w->text[i], json);
        dpi_text_add(&f, json ? "}\n" : "\n");
    }
    dpi_status status = write_file(w, json ? "records.jsonl" : "records.csv", &f);
    free(f.data);
    return status;
}

static dpi_status open_memory(const path_world *w, dpi_records **records) {
    const char *texts[DPI_PATH_RECORDS];
    size_t n_bytes[DPI_PATH_RECORDS], n = 0;
    for (int32_t i = 0; i < w->n_records; i++) {
        if (!is_there(w, i))
            continue;
        const bool empty = w->state[i] == PATH_EMPTY;
        texts[n] = !empty               ? w->text[i]
                   : w->empty_form == 0 ? NULL
                   : w->empty_form == 1 ? ""
                                        : " \n";
        n_bytes[n] = texts[n] ? strlen(texts[n]) : 0;
        n++;
    }
    return dpi_records_create(texts, n_bytes, n, records, w->audit->err);
}

static const char *const FILES[] = {
    [PATH_FOLDER] = "records", [PATH_JSONL] = "records.jsonl", [PATH_CSV] = "records.csv"};

dpi_status dpi_path_records_open(const path_world *w, dpi_records **records) {
    char path[4096];
    dpi_records_options o;
    dpi_records_options_init(&o);
    o.unit_field = w->n_units > 0 ? "id" : NULL;
    o.label_field = w->labels ? "ward" : NULL;
    if (w->source == PATH_MEMORY)
        return open_memory(w, records);
    dpi_status status =
        w->source == PATH_FOLDER ? write_folder(w) : write_table(w, w->source == PATH_JSONL);
    path_of(w, FILES[w->source], path, sizeof path);
    if (status == DPI_STATUS_OK)
        status = dpi_records_open(path, &o, records, w->audit->err);
    if (status != DPI_STATUS_OK)
        dpi_path_records_close(w, NULL);
    return status;
}

void dpi_path_records_close(const path_world *w, dpi_records *records) {
    char path[4096];
    dpi_records_close(records);
    if (w->source == PATH_FOLDER) {
        remove_folder(w);
    } else if (w->source != PATH_MEMORY) {
        path_of(w, FILES[w->source], path, sizeof path);
        unlink(path);
    }
}
