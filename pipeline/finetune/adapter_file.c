/* adapter_file.c - the adapter's file, with the claim in its metadata; and the claim back from a
 * file, of which nothing is trusted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "engine/model.h"
#include "pipeline/finetune/finetune.h"
#include "pipeline/finetune/task.h"
#include "pipeline/journal/digest.h"
#include "train/lora_file.h"

#define KEY DPI_TASK_KEY

/* ---- Writing --------------------------------------------------------------------------------- */

dpi_status dpi_finetune_write(const dpi_finetune *f, const char *path, int fd, dpi_error *err) {
    const dpi_lora *lora = dpi_tuner_lora(f->tuner);
    const dpi_graph_shape *shape = dpi_tuner_shape(f->tuner);
    const float *adapters = dpi_tuner_adapters(f->tuner);
    char hex[DPI_DIGEST_HEX + 1], name[96];
    dpi_gguf_builder *w;
    if (dpi_finetune_steps_done(f) != f->options.n_steps)
        return dpi_fail(err, DPI_STATUS_STATE, "%d of %d steps are done: the adapter is not whole",
                        dpi_finetune_steps_done(f), f->options.n_steps);
    if (f->options.full)
        return dpi_finetune_write_whole(f, path, fd, err);
    dpi_finetune_hash(lora, shape, adapters, hex);
    snprintf(name, sizeof name, "%.12s%s", hex,
             dpi_claim_is_private(&f->claim) ? "" : " (NOT PRIVATE)");
    DPI_TRY(dpi_gguf_builder_create(path, fd, &w, err));
    dpi_lora_put_keys(w, lora, name);
    dpi_task_put_base(w, f->options.model, f->claim.model_name);
    const dpi_status status = dpi_finetune_put_claim(w, f, hex, err);
    dpi_lora_put_tensors(w, lora, shape, adapters);
    if (status == DPI_STATUS_OK)
        return dpi_gguf_builder_finish(w, err);
    (void)!dpi_gguf_builder_finish(w, NULL);
    return status;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The text of a key in a buffer. */
static dpi_status get_text(const dpi_gguf *file, const char *key, char *text, size_t size,
                           dpi_error *err) {
    dpi_str found = {"", 0};
    bool there = false;
    DPI_TRY(dpi_gguf_get_string(file, key, &found, &there, err));
    if (!there)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s has no %s: it is no adapter of 'dpinfer finetune'", dpi_gguf_name(file),
                        key);
    if (found.n_bytes >= size || memchr(found.data, '\0', found.n_bytes))
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s has %llu bytes, allowed below %zu",
                        dpi_gguf_name(file), key, (unsigned long long)found.n_bytes, size);
    for (uint64_t i = 0; i < found.n_bytes; i++) /* a statement has lines of its own alone */
        if ((unsigned char)found.data[i] < 0x20 || found.data[i] == 0x7f)
            return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s has a control character",
                            dpi_gguf_name(file), key);
    memcpy(text, found.data, found.n_bytes);
    text[found.n_bytes] = '\0';
    return DPI_STATUS_OK;
}

dpi_status dpi_finetune_read_claim(const char *path, dpi_claim *claim, int32_t *holds,
                                   dpi_error *err) {
    dpi_verification v;
    dpi_verification_init(&v);
    const dpi_status status = dpi_claim_verify_file(path, claim, &v, err);
    *holds = v.n_wrong == 0;
    dpi_verification_free(&v);
    return status;
}

/* ---- The task -------------------------------------------------------------------------------- */

/* A copy of an optional text; NULL: there is none. */
static dpi_status copy_text(const dpi_gguf *file, const char *key, char **text, dpi_error *err) {
    enum { TEXT_MAX = 1 << 20 };
    dpi_str found = {"", 0};
    bool there = false;
    DPI_TRY(dpi_gguf_get_string(file, key, &found, &there, err));
    if (!there)
        return DPI_STATUS_OK;
    if (found.n_bytes > TEXT_MAX || memchr(found.data, '\0', found.n_bytes))
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s has %llu bytes, allowed are %d without NUL",
                        dpi_gguf_name(file), key, (unsigned long long)found.n_bytes, TEXT_MAX);
    *text = strndup(found.data, found.n_bytes);
    return *text ? DPI_STATUS_OK : dpi_fail(err, DPI_STATUS_MEMORY, "no memory for %s", key);
}

/* A text that has a line for each label, as copy_text. */
static dpi_status copy_lines(const dpi_gguf *file, const char *key, char **lines, dpi_error *err) {
    DPI_TRY(copy_text(file, key, lines, err));
    const dpi_status status = dpi_task_check_lines(file, key, err);
    if (status == DPI_STATUS_OK)
        return status;
    free(*lines), *lines = NULL;
    return dpi_fail_in(err, status, dpi_gguf_name(file));
}

/* One for each label. */
static dpi_status read_counts(const dpi_gguf *file, dpi_finetune_task *task, dpi_error *err) {
    char *lines = NULL, *next;
    DPI_TRY(copy_lines(file, KEY "label_counts", &lines, err));
    if (!lines)
        return DPI_STATUS_OK;
    const int32_t n = dpi_task_line_count(file, KEY "label_counts");
    task->counts = dpi_calloc((size_t)n, sizeof *task->counts);
    dpi_status status = task->counts ? DPI_STATUS_OK : dpi_no_memory(err, "counts");
    next = lines;
    for (int32_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        char *line = strsep(&next, "\n"), *end;
        const long count = strtol(line, &end, 10);
        if (end == line || *end || count < -(1 << 30) || count > 1 << 30)
            status = dpi_fail(err, DPI_STATUS_FORMAT, "%s: " KEY "label_counts: line %d is no "
                              "number in -2^30..2^30", dpi_gguf_name(file), i + 1);
        else
            task->counts[task->n_counts++] = count > 0 ? count : 0;
    }
    free(lines);
    return status;
}

static dpi_status read_lines(const char *path, const char *key, char **lines, dpi_error *err) {
    dpi_gguf *file;
    *lines = NULL;
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    const dpi_status status = copy_lines(file, key, lines, err);
    dpi_gguf_close(file);
    return status;
}

dpi_status dpi_finetune_read_meanings(const char *path, char **meanings, dpi_error *err) {
    return read_lines(path, KEY "label_meanings", meanings, err);
}

dpi_status dpi_finetune_read_words(const char *path, char **words, dpi_error *err) {
    return read_lines(path, KEY "key_words", words, err);
}

static dpi_status read_task(const dpi_gguf *file, dpi_finetune_task *task, dpi_error *err) {
    char chat[32];
    DPI_TRY(get_text(file, KEY "template", chat, sizeof chat, err));
    if (dpi_chat_parse(chat, &task->chat, NULL) != DPI_STATUS_OK)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: " KEY "template is no chat format",
                        dpi_gguf_name(file));
    DPI_TRY(copy_text(file, KEY "instruction", &task->instruction, err));
    DPI_TRY(copy_text(file, KEY "attributes", &task->attributes, err));
    DPI_TRY(copy_text(file, KEY "labels", &task->labels, err));
    return read_counts(file, task, err);
}

dpi_status dpi_finetune_read_task(const char *path, dpi_finetune_task *task, dpi_error *err) {
    dpi_gguf *file;
    *task = (dpi_finetune_task){.chat = DPI_CHAT_AUTO};
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    const dpi_status status = read_task(file, task, err);
    dpi_gguf_close(file);
    if (status != DPI_STATUS_OK)
        dpi_finetune_task_free(task);
    return status;
}

dpi_status dpi_finetune_read_description(const char *path, char **description, int32_t *n_text,
                                         dpi_error *err) {
    dpi_gguf *file;
    *description = NULL;
    *n_text = 0;
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    int64_t n = 0;
    dpi_status status = dpi_gguf_get_int(file, KEY "text_tokens", 0, INT32_MAX, &n, NULL, err);
    *n_text = (int32_t)n;
    if (status == DPI_STATUS_OK)
        status = copy_text(file, KEY "description", description, err);
    dpi_gguf_close(file);
    return status;
}

void dpi_finetune_task_free(dpi_finetune_task *task) {
    free(task->instruction);
    free(task->labels);
    free(task->attributes);
    free(task->counts);
    *task = (dpi_finetune_task){.chat = DPI_CHAT_AUTO};
}
