/* file.c - the adapter's file, with the claim in its metadata; and the claim back from a file, of
 * which nothing is trusted. */
#include <inttypes.h>
#include <math.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "engine/model.h"
#include "kernels/weight_types.h"
#include "pipeline/finetune/finetune.h"
#include "train/lora_file.h"

#define KEY "dpinfer.finetune."

/* What `trained` says of a file: an adapter, all weights, or an adapter that is now in the weights
 * of a model. */
static const char ADAPTER[] = "adapter", WEIGHTS[] = "weights", MERGED[] = "merged";

/* ---- The hash -------------------------------------------------------------------------------- */

static void hash_tensor(struct sha256_ctx *hash, const char *name, int64_t n_columns,
                        int64_t n_rows, const void *data) {
    const int64_t shape[] = {n_columns, n_rows};
    sha256_update(hash, strlen(name) + 1, (const uint8_t *)name);
    sha256_update(hash, sizeof shape, (const uint8_t *)shape);
    sha256_update(hash, (size_t)(n_columns * n_rows) * sizeof(float), data);
}

static void visit(void *user, const char *name, int64_t n_columns, int64_t n_rows,
                  const float *data) {
    hash_tensor(user, name, n_columns, n_rows, data);
}

void dpi_finetune_hex(struct sha256_ctx *hash, char hex[DPI_FINETUNE_HEX + 1]) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

void dpi_finetune_hash(const dpi_lora *lora, const dpi_graph_shape *shape, const float *adapters,
                       char hex[DPI_FINETUNE_HEX + 1]) {
    struct sha256_ctx hash;
    sha256_init(&hash);
    dpi_lora_visit(lora, shape, adapters, visit, &hash);
    dpi_finetune_hex(&hash, hex);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Reals as text, to the last bit: GGUF readers differ in what they make of 64-bit floats. */
static void put_real(dpi_gguf_builder *w, const char *key, double value) {
    char text[40];
    dpi_format(text, sizeof text, "%.17g", value);
    dpi_gguf_put_string(w, key, text);
}

static void put_integer(dpi_gguf_builder *w, const char *key, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    dpi_gguf_put_string(w, key, text);
}

static void put_base(dpi_gguf_builder *w, const dpi_finetune *f) {
    char text[16 + 1 + sizeof f->claim.model_name];
    snprintf(text, sizeof text, "%016" PRIx64 " %s", dpi_model_mark(f->options.model),
             f->claim.model_name);
    dpi_gguf_put_string(w, DPI_ADAPTER_BASE, text);
}

static void put_numbers(dpi_gguf_builder *w, const dpi_finetune_claim *c, const char *hex) {
    dpi_gguf_put_string(w, KEY "trained", c->full ? WEIGHTS : ADAPTER);
    dpi_gguf_put_bool(w, KEY "private", dpi_finetune_is_private(c) != 0);
    dpi_gguf_put_string(w, KEY "label", dpi_finetune_label(c));
    put_real(w, KEY "epsilon", c->epsilon);
    put_real(w, KEY "delta", c->delta);
    put_real(w, KEY "sigma", c->sigma);
    put_real(w, KEY "sampling", c->sampling);
    put_real(w, KEY "expected", c->n_expected);
    put_real(w, KEY "clip", c->clip);
    put_integer(w, KEY "units", c->n_units);
    put_integer(w, KEY "steps", c->n_steps);
    put_integer(w, KEY "max_per_unit", c->max_per_unit);
    if (c->histogram_scale > 0)
        put_integer(w, KEY "histogram_scale", c->histogram_scale);
    put_integer(w, KEY "record_kind", c->record_kind);
    put_integer(w, KEY "randomness", c->randomness);
    dpi_gguf_put_string(w, KEY "adjacency", DPI_FINETUNE_ADJACENCY);
    dpi_gguf_put_string(w, KEY "accountant", DPI_FINETUNE_ACCOUNTANT);
    dpi_gguf_put_string(w, KEY "model", c->model_name);
    dpi_gguf_put_string(w, KEY "tensors_sha256", hex);
}

/* Lines, as the labels are. */
static void put_counts(dpi_gguf_builder *w, const dpi_finetune *f) {
    dpi_text lines = {0};
    for (int32_t i = 1; f->counts && i < dpi_finetune_count_size(f); i++)
        dpi_text_add(&lines, "%s%d", i > 1 ? "\n" : "", f->counts[i]);
    if (lines.data && !lines.failed)
        dpi_gguf_put_string(w, KEY "label_counts", lines.data);
    free(lines.data);
}

/* How texts are written: public, and what `generate` begins with. */
static void put_task(dpi_gguf_builder *w, const dpi_finetune *f) {
    const dpi_bytes instruction = f->options.instruction;
    dpi_gguf_put_string(w, KEY "template", dpi_chat_name(f->instructions.chat));
    if (instruction.data)
        dpi_gguf_put_string(w, KEY "instruction", f->instructions.text);
    if (f->instructions.labels)
        dpi_gguf_put_string(w, KEY "labels", f->instructions.lines);
    if (f->instructions.attributes)
        dpi_gguf_put_string(w, KEY "attributes", f->instructions.attributes);
    put_counts(w, f);
}

void dpi_finetune_put_claim(dpi_gguf_builder *w, const dpi_finetune *f, const char *hex) {
    put_numbers(w, &f->claim, hex);
    put_task(w, f);
}

/* ---- A model with the adapter in its weights ------------------------------------------------- */

/* What is said of tensors. */
static bool is_of_tensors(const char *key) {
    static const char *const keys[] = {KEY "trained", KEY "tensors_sha256", KEY "rank",
                                       KEY "alpha", KEY "numbers", NULL};
    return dpi_is_one_of(keys, key);
}

bool dpi_finetune_is_claimed(const dpi_gguf *file) {
    return dpi_gguf_find(file, KEY "epsilon") != NULL;
}

void dpi_finetune_put_merged(dpi_gguf_builder *w, const dpi_gguf *adapter,
                             const dpi_finetune_claim *c, const char *hex) {
    for (int64_t i = 0; i < dpi_gguf_kv_count(adapter); i++) {
        const dpi_gguf_kv *kv = dpi_gguf_kv_at(adapter, i);
        if (strncmp(kv->key, KEY, sizeof KEY - 1) == 0 && !is_of_tensors(kv->key))
            dpi_gguf_put_kv(w, kv);
    }
    dpi_gguf_put_string(w, KEY "trained", MERGED);
    put_integer(w, KEY "rank", c->rank);
    put_real(w, KEY "alpha", c->alpha);
    put_integer(w, KEY "numbers", c->n_params);
    dpi_gguf_put_string(w, KEY "tensors_sha256", hex);
}

dpi_status dpi_finetune_write(const dpi_finetune *f, const char *path, int fd, dpi_error *err) {
    const dpi_lora *lora = dpi_tuner_lora(f->tuner);
    const dpi_graph_shape *shape = dpi_tuner_shape(f->tuner);
    const float *adapters = dpi_tuner_adapters(f->tuner);
    char hex[DPI_FINETUNE_HEX + 1], name[96];
    dpi_gguf_builder *w;
    if (dpi_finetune_steps_done(f) != f->options.n_steps)
        return dpi_fail(err, DPI_STATUS_STATE, "%d of %d steps are done: the adapter is not whole",
                        dpi_finetune_steps_done(f), f->options.n_steps);
    if (f->claim.full)
        return dpi_finetune_write_whole(f, path, fd, err);
    dpi_finetune_hash(lora, shape, adapters, hex);
    snprintf(name, sizeof name, "%.12s%s", hex,
             dpi_finetune_is_private(&f->claim) ? "" : " (NOT PRIVATE)");
    DPI_TRY(dpi_gguf_builder_create(path, fd, &w, err));
    dpi_lora_put_keys(w, lora, name);
    put_base(w, f);
    dpi_finetune_put_claim(w, f, hex);
    dpi_lora_put_tensors(w, lora, shape, adapters);
    return dpi_gguf_builder_finish(w, err);
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

static dpi_status get_real(const dpi_gguf *file, const char *key, double min, double max,
                           double *value, dpi_error *err) {
    char text[64], *end;
    DPI_TRY(get_text(file, key, text, sizeof text, err));
    *value = dpi_strtod(text, &end);
    if (end != text && *end == '\0' && *value >= min && *value <= max)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s: allowed %g..%g", dpi_gguf_name(file), key, min,
                    max);
}

static dpi_status get_integer(const dpi_gguf *file, const char *key, int64_t min, int64_t max,
                              int64_t *value, dpi_error *err) {
    double real;
    DPI_TRY(get_real(file, key, (double)min, (double)max, &real, err));
    *value = (int64_t)real;
    return (double)*value >= real && (double)*value <= real
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s must be an integer", dpi_gguf_name(file),
                          key);
}

/* Where there is a histogram. */
static dpi_status read_scale(const dpi_gguf *file, dpi_finetune_claim *c, dpi_error *err) {
    int64_t scale;
    dpi_str text;
    bool there = false;
    DPI_TRY(dpi_gguf_get_string(file, KEY "histogram_scale", &text, &there, err));
    if (!there)
        return DPI_STATUS_OK;
    DPI_TRY(get_integer(file, KEY "histogram_scale", 1, 1 << 20, &scale, err));
    c->histogram_scale = (int32_t)scale;
    return DPI_STATUS_OK;
}

static dpi_status read_numbers(const dpi_gguf *file, dpi_finetune_claim *c, dpi_error *err) {
    int64_t steps, most, kind, randomness;
    DPI_TRY(get_real(file, KEY "delta", 1e-100, 1 - 0x1p-53, &c->delta, err));
    DPI_TRY(get_real(file, KEY "sigma", 0, DPI_FINETUNE_SIGMA_MAX, &c->sigma, err));
    DPI_TRY(get_real(file, KEY "sampling", 0x1p-32, 1, &c->sampling, err));
    DPI_TRY(get_real(file, KEY "expected", 0, 1e12, &c->n_expected, err));
    DPI_TRY(get_real(file, KEY "clip", 0, 1e6, &c->clip, err));
    DPI_TRY(get_integer(file, KEY "units", 1, INT64_C(1) << 40, &c->n_units, err));
    DPI_TRY(get_integer(file, KEY "steps", 1, 1 << 24, &steps, err));
    DPI_TRY(get_integer(file, KEY "max_per_unit", 0, 64, &most, err));
    DPI_TRY(get_integer(file, KEY "record_kind", 0, DPI_RECORD_ROW, &kind, err));
    DPI_TRY(get_integer(file, KEY "randomness", 0, DPI_RANDOMNESS_SEED, &randomness, err));
    DPI_TRY(read_scale(file, c, err));
    c->n_steps = (int32_t)steps, c->max_per_unit = (int32_t)most;
    c->record_kind = (int32_t)kind, c->randomness = (int32_t)randomness;
    return get_text(file, KEY "model", c->model_name, sizeof c->model_name, err);
}

static bool is_known(const char *key, bool merged) {
    static const char *const keys[] = {
        "trained", "private", "label", "epsilon", "delta", "sigma", "sampling", "expected", "clip",
        "units", "steps", "max_per_unit", "histogram_scale", "record_kind", "randomness",
        "adjacency", "accountant", "model", "tensors_sha256", "template", "instruction", "labels",
        "attributes", "label_counts", NULL};
    static const char *const of_merged[] = {"rank", "alpha", "numbers", NULL};
    return dpi_is_one_of(keys, key) || (merged && dpi_is_one_of(of_merged, key));
}

/* A claim says nothing that this program does not read. */
static dpi_status check_keys(const dpi_gguf *file, const dpi_finetune_claim *c, dpi_error *err) {
    for (int64_t i = 0; i < dpi_gguf_kv_count(file); i++) {
        const char *key = dpi_gguf_kv_at(file, i)->key;
        if (strncmp(key, KEY, sizeof KEY - 1) == 0 &&
            !is_known(key + sizeof KEY - 1, c->merged != 0))
            return dpi_fail(err, DPI_STATUS_FORMAT, "%s: the claim has the unknown key %s",
                            dpi_gguf_name(file), key);
    }
    if (!dpi_gguf_find(file, KEY "label_counts") == !(c->histogram_scale > 0))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_FORMAT,
                    "%s: " KEY "label_counts and " KEY "histogram_scale: allowed are both or none",
                    dpi_gguf_name(file));
}

/* What is said of the numbers: who checks it compares. */
static dpi_status read_words(const dpi_gguf *file, dpi_finetune_said *said, dpi_error *err) {
    bool there = false;
    DPI_TRY(get_real(file, KEY "epsilon", 0, INFINITY, &said->epsilon, err));
    DPI_TRY(get_text(file, KEY "label", said->label, sizeof said->label, err));
    DPI_TRY(get_text(file, KEY "adjacency", said->adjacency, sizeof said->adjacency, err));
    DPI_TRY(get_text(file, KEY "accountant", said->accountant, sizeof said->accountant, err));
    DPI_TRY(get_text(file, KEY "tensors_sha256", said->hash, sizeof said->hash, err));
    DPI_TRY(dpi_gguf_get_bool(file, KEY "private", &said->is_private, &there, err));
    return there ? DPI_STATUS_OK
                 : dpi_fail(err, DPI_STATUS_FORMAT, "%s has no " KEY "private",
                            dpi_gguf_name(file));
}

/* Only F32 is written. */
static dpi_status hash_adapter(const dpi_gguf *file, dpi_finetune_claim *c,
                               char hex[DPI_FINETUNE_HEX + 1], dpi_error *err) {
    struct sha256_ctx hash;
    double alpha = 0;
    sha256_init(&hash);
    DPI_TRY(dpi_gguf_get_float(file, "adapter.lora.alpha", 0, 1e6, &alpha, NULL, err));
    c->alpha = alpha;
    for (int64_t i = 0; i < dpi_gguf_tensor_count(file); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(file, i);
        if (t->type != DPI_TYPE_F32 || t->shape[2] != 1 || t->shape[3] != 1)
            return dpi_fail(err, DPI_STATUS_FORMAT, "%s: tensor %s is no matrix in F32",
                            dpi_gguf_name(file), t->name);
        c->n_params += t->shape[0] * t->shape[1];
        c->rank = i == 0 && t->shape[1] <= INT32_MAX ? (int32_t)t->shape[1] : c->rank;
        hash_tensor(&hash, t->name, t->shape[0], t->shape[1], t->data);
    }
    dpi_finetune_hex(&hash, hex);
    return DPI_STATUS_OK;
}

/* Of the adapter, which is no longer to be seen. */
static dpi_status read_merged(const dpi_gguf *file, dpi_finetune_claim *c, dpi_error *err) {
    int64_t rank;
    DPI_TRY(get_integer(file, KEY "rank", 1, 1024, &rank, err));
    DPI_TRY(get_integer(file, KEY "numbers", 1, INT64_C(1) << 50, &c->n_params, err));
    c->rank = (int32_t)rank;
    return get_real(file, KEY "alpha", 0, 1e6, &c->alpha, err);
}

/* The tensors as they stand in the file. */
static dpi_status hash_tensors(const dpi_gguf *file, dpi_finetune_claim *c,
                               char hex[DPI_FINETUNE_HEX + 1], dpi_error *err) {
    char trained[16] = "";
    if (dpi_gguf_find(file, KEY "trained")) /* the first adapters do not say it */
        DPI_TRY(get_text(file, KEY "trained", trained, sizeof trained, err));
    c->full = strcmp(trained, WEIGHTS) == 0;
    c->merged = strcmp(trained, MERGED) == 0;
    if (!c->full && !c->merged)
        return hash_adapter(file, c, hex, err);
    c->n_params = dpi_finetune_hash_whole(file, hex);
    return c->merged ? read_merged(file, c, err) : DPI_STATUS_OK;
}

dpi_status dpi_finetune_read_said(const char *path, dpi_finetune_claim *claim,
                                  dpi_finetune_said *said, dpi_error *err) {
    dpi_gguf *file;
    dpi_finetune_claim c;
    if (claim->struct_size != sizeof *claim)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_finetune_claim.struct_size is %zu, must be %zu",
                        claim->struct_size, sizeof *claim);
    dpi_finetune_claim_init(&c);
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    dpi_status status = read_numbers(file, &c, err);
    if (status == DPI_STATUS_OK)
        status = read_words(file, said, err);
    if (status == DPI_STATUS_OK)
        status = hash_tensors(file, &c, said->tensors, err);
    if (status == DPI_STATUS_OK)
        status = check_keys(file, &c, err);
    if (status == DPI_STATUS_OK)
        dpi_finetune_check_claim(&c, said->contradiction);
    dpi_gguf_close(file);
    if (status == DPI_STATUS_OK)
        status = dpi_finetune_epsilon(&c, &c.epsilon, err);
    if (status == DPI_STATUS_OK)
        *claim = c;
    return status;
}

dpi_status dpi_finetune_read_claim(const char *path, dpi_finetune_claim *claim, double *recorded,
                                   int32_t *intact, dpi_error *err) {
    dpi_finetune_said said;
    DPI_TRY(dpi_finetune_read_said(path, claim, &said, err));
    *recorded = said.epsilon;
    *intact = !said.contradiction[0] && strcmp(said.hash, said.tensors) == 0 &&
              said.is_private == (dpi_finetune_is_private(claim) != 0) &&
              strcmp(said.label, dpi_finetune_label(claim)) == 0 &&
              strcmp(said.adjacency, DPI_FINETUNE_ADJACENCY) == 0 &&
              strcmp(said.accountant, DPI_FINETUNE_ACCOUNTANT) == 0;
    return DPI_STATUS_OK;
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

/* One for each label. */
static dpi_status read_counts(const dpi_gguf *file, dpi_finetune_task *task, dpi_error *err) {
    char *lines = NULL, *next;
    int32_t n = 1, n_labels = 1;
    DPI_TRY(copy_text(file, KEY "label_counts", &lines, err));
    if (!lines)
        return DPI_STATUS_OK;
    for (const char *c = lines; *c; c++)
        n += *c == '\n';
    for (const char *c = task->labels ? task->labels : ""; *c; c++)
        n_labels += *c == '\n';
    task->counts = dpi_calloc((size_t)n, sizeof *task->counts);
    dpi_status status = !task->counts ? dpi_fail(err, DPI_STATUS_MEMORY, "no memory for counts")
                        : !task->labels || n != n_labels
                            ? dpi_fail(err, DPI_STATUS_FORMAT,
                                       "%s: " KEY "label_counts: found %d lines, needed are %d",
                                       dpi_gguf_name(file), n, n_labels)
                            : DPI_STATUS_OK;
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

void dpi_finetune_task_free(dpi_finetune_task *task) {
    free(task->instruction);
    free(task->labels);
    free(task->attributes);
    free(task->counts);
    *task = (dpi_finetune_task){.chat = DPI_CHAT_AUTO};
}
