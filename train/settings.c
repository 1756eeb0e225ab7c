/* settings.c - the configuration of a training run: one table of keys, their ranges, and the
 * reader. */
#include "train/settings.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/struct.h"
#include "dpinfer/memory.h"
#include "dpinfer/textfile.h"

typedef enum kind { INT32, INT64, DOUBLE, TEXT } kind;

typedef struct key_spec {
    const char *name;
    kind type;
    size_t offset, size; /* of the member; size for TEXT */
    double min, max;     /* numbers; for TEXT the least number of bytes */
    bool trains;         /* decides what a step does */
} key_spec;

#define MEMBER(name) offsetof(dpi_train_config, name), sizeof(((dpi_train_config *)0)->name)

static const key_spec keys[] = {
    {"data", TEXT, offsetof(dpi_train_config, data), DPI_TRAIN_PATH, 1, 0, false},
    {"heldout", TEXT, MEMBER(heldout), 0, 0, false},
    {"vocab", TEXT, MEMBER(vocab), 1, 0, false},
    {"init", TEXT, MEMBER(init), 0, 0, false},
    {"checkpoint", TEXT, MEMBER(checkpoint), 1, 0, false},
    {"output", TEXT, MEMBER(output), 0, 0, false},
    {"output_type", TEXT, MEMBER(output_type), 1, 0, false},
    {"name", TEXT, MEMBER(name), 1, 0, false},
    {"sampling_top_k", INT32, MEMBER(sampling_top_k), 0, 1 << 18, false},
    {"sampling_temp", DOUBLE, MEMBER(sampling_temp), 0, 100, false},
    {"n_layer", INT32, MEMBER(n_layer), 1, 256, true},
    {"dim", INT32, MEMBER(dim), 2, 1 << 14, true},
    {"n_head", INT32, MEMBER(n_head), 1, 256, true},
    {"n_kv_head", INT32, MEMBER(n_kv_head), 1, 256, true},
    {"ffn", INT32, MEMBER(ffn), 1, 1 << 16, true},
    {"context", INT32, MEMBER(context), 8, 1 << 16, true},
    {"tied", INT32, MEMBER(tied), 0, 1, true},
    {"rope_theta", DOUBLE, MEMBER(rope_theta), 1, 1e9, true},
    {"batch_tokens", INT32, MEMBER(batch_tokens), 8, 1 << 24, true},
    {"steps", INT64, MEMBER(steps), 0, 1e9, false},
    {"epochs", DOUBLE, MEMBER(epochs), 0, 1e6, false},
    {"lr", DOUBLE, MEMBER(lr), 0, 1, true},
    {"lr_floor", DOUBLE, MEMBER(lr_floor), 0, 1, true},
    {"decay_steps", INT64, MEMBER(decay_steps), 0, 1e9, false},
    {"warmup", INT64, MEMBER(warmup), 0, 1e9, true},
    {"beta1", DOUBLE, MEMBER(beta1), 0, 0.9999, true},
    {"beta2", DOUBLE, MEMBER(beta2), 0, 0.99999, true},
    {"weight_decay", DOUBLE, MEMBER(weight_decay), 0, 10, true},
    {"clip", DOUBLE, MEMBER(clip), 0, 1e6, true},
    {"prompt_weight", DOUBLE, MEMBER(prompt_weight), 0, 1, true},
    {"seed", INT64, MEMBER(seed), 0, 9007199254740992.0, true},
    {"threads", INT32, MEMBER(threads), 0, 1024, false},
    {"checkpoint_steps", INT64, MEMBER(checkpoint_steps), 1, 1e9, false},
    {"heldout_steps", INT64, MEMBER(heldout_steps), 1, 1e9, false},
    {"heldout_rows", INT64, MEMBER(heldout_rows), 0, 1e9, false},
};
enum { N_KEYS = sizeof keys / sizeof keys[0] };

DPI_STRUCT_DEFAULTS(dpi_train_config,
    .output_type = "Q8_0", .name = "dpinfer", .n_layer = 5, .dim = 256, .n_head = 8, .n_kv_head = 4,
    .ffn = 640, .context = 1024, .tied = 1, .rope_theta = 10000, .batch_tokens = 8192, .lr = 2e-3,
    .lr_floor = 2e-5, .warmup = 100, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1, .clip = 1,
    .checkpoint_steps = 100, .heldout_steps = 200, .heldout_rows = 32)

/* ---- Values ---------------------------------------------------------------------------------- */

static const void *member_of(const dpi_train_config *config, const key_spec *key) {
    return (const char *)config + key->offset;
}

static double number_of(const dpi_train_config *config, const key_spec *key) {
    const void *p = member_of(config, key);
    if (key->type == DOUBLE)
        return *(const double *)p;
    return key->type == INT32 ? (double)*(const int32_t *)p : (double)*(const int64_t *)p;
}

static bool in_range(const key_spec *key, double x) { return x >= key->min && x <= key->max; }

/* What a value may be: "1..256", "a whole number in 1..256", "text of 1..1023 bytes". */
static void allowed_text(const key_spec *key, char *text, size_t size) {
    if (key->type == TEXT)
        dpi_format(text, size, "text of %.0f..%zu bytes", key->min, key->size - 1);
    else
        dpi_format(text, size, "%s%.10g..%.16g", key->type == DOUBLE ? "" : "a whole number in ",
                   key->min, key->max);
}

static bool set_number(dpi_train_config *config, const key_spec *key, const char *text) {
    char *end;
    void *p = (char *)config + key->offset;
    if (text[0] == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0')
        return false;
    errno = 0;
    if (key->type == DOUBLE) {
        double x = dpi_strtod(text, &end);
        *(double *)p = x;
        return *end == '\0' && isfinite(x) && in_range(key, x);
    }
    long long i = strtoll(text, &end, 10);
    if (*end != '\0' || errno != 0 || !in_range(key, (double)i))
        return false;
    if (key->type == INT32)
        *(int32_t *)p = (int32_t)i;
    else
        *(int64_t *)p = i;
    return true;
}

static bool set_text(char *p, size_t size, double min, const char *text) {
    size_t n = strlen(text);
    if ((double)n < min || n >= size)
        return false;
    memcpy(p, text, n + 1);
    return true;
}

/* `data` may come several times: each fills the next slot. */
static bool set_value(dpi_train_config *config, const key_spec *key, int32_t n_data,
                      const char *text) {
    if (key->type != TEXT)
        return set_number(config, key, text);
    if (key->offset == offsetof(dpi_train_config, data))
        return n_data < DPI_TRAIN_FILES &&
               set_text(config->data[n_data], DPI_TRAIN_PATH, key->min, text);
    return set_text((char *)config + key->offset, key->size, key->min, text);
}

/* ---- The file -------------------------------------------------------------------------------- */

static char *trim(char *text) {
    text += strspn(text, " \t\r\n");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1]))
        n--;
    text[n] = '\0';
    return text;
}

static const key_spec *find_key(const char *name) {
    for (int i = 0; i < N_KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static dpi_status read_line(const char *path, int line, char *text, int32_t *n_data, uint64_t *seen,
                            dpi_train_config *config, dpi_error *err) {
    text[strcspn(text, "#")] = '\0';
    char *equals = strchr(text, '='), *name = trim(text);
    if (name[0] == '\0')
        return DPI_STATUS_OK;
    if (!equals)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s:%d: found no '=', must be key = value", path,
                        line);
    *equals = '\0';
    char *value = trim(equals + 1);
    name = trim(text);
    const key_spec *key = find_key(name);
    if (!key)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s:%d: key '%.64s' is unknown", path, line, name);
    bool is_data = key == keys;
    uint64_t bit = (uint64_t)1 << (key - keys);
    if (!is_data && (*seen & bit))
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s:%d: key %s is given twice", path, line, name);
    *seen |= bit;
    if (!set_value(config, key, *n_data, value)) {
        char allowed[96];
        allowed_text(key, allowed, sizeof allowed);
        if (is_data && *n_data >= DPI_TRAIN_FILES)
            snprintf(allowed, sizeof allowed, "%d data files at most", DPI_TRAIN_FILES);
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s:%d: %s is '%.64s', allowed: %s", path, line,
                        name, value, allowed);
    }
    *n_data += is_data;
    return DPI_STATUS_OK;
}

dpi_status dpi_train_config_read(const char *path, dpi_train_config *config, dpi_error *err) {
    if (!path)
        return dpi_fail(err, DPI_STATUS_ARG, "path must not be NULL");
    DPI_COPY_STRUCT(dpi_train_config, read, config, err);
    enum { BYTES_MAX = 1 << 20 };
    char *text, *line;
    size_t n_bytes;
    DPI_TRY(dpi_textfile_read(path, BYTES_MAX, &text, &n_bytes, err));
    int32_t n_data = 0;
    uint64_t seen = 0;
    dpi_status status = DPI_STATUS_OK;
    char *next = text;
    for (int i = 1; status == DPI_STATUS_OK && (line = strsep(&next, "\n")) != NULL; i++)
        status = read_line(path, i, line, &n_data, &seen, &read, err);
    dpi_private_free(text);
    if (status == DPI_STATUS_OK)
        dpi_struct_give(config, &read, sizeof read);
    return status;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static dpi_status check_member(const dpi_train_config *config, const key_spec *key,
                               dpi_error *err) {
    char allowed[96];
    allowed_text(key, allowed, sizeof allowed);
    if (key->type == TEXT) {
        size_t n = strnlen(member_of(config, key), key->size);
        if ((double)n < key->min || n >= key->size)
            return dpi_fail(err, DPI_STATUS_ARG, "%s has %zu bytes, allowed: %s", key->name, n,
                            allowed);
    } else if (!in_range(key, number_of(config, key))) {
        return dpi_fail(err, DPI_STATUS_ARG, "%s is %.16g, allowed: %s", key->name,
                        number_of(config, key), allowed);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_train_config_check(const dpi_train_config *c, dpi_error *err) {
    for (int i = 0; i < N_KEYS; i++)
        DPI_TRY(check_member(c, &keys[i], err));
    if (c->dim % c->n_head || c->dim / c->n_head % 2)
        return dpi_fail(err, DPI_STATUS_ARG, "dim is %d, must be an even multiple of n_head, %d",
                        (int)c->dim, (int)c->n_head);
    if (c->n_head % c->n_kv_head)
        return dpi_fail(err, DPI_STATUS_ARG, "n_head is %d, must be a multiple of n_kv_head, %d",
                        (int)c->n_head, (int)c->n_kv_head);
    if (c->batch_tokens % c->context)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "batch_tokens is %d, must be a multiple of context, %d",
                        (int)c->batch_tokens, (int)c->context);
    if ((c->steps > 0) == (c->epochs > 0))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "steps is %lld and epochs %g, one of them must be given and the other 0",
                        (long long)c->steps, c->epochs);
    if (c->lr_floor > c->lr)
        return dpi_fail(err, DPI_STATUS_ARG, "lr_floor is %g, must be at most lr, %g", c->lr_floor,
                        c->lr);
    return DPI_STATUS_OK;
}

uint64_t dpi_train_config_hash(const dpi_train_config *config) {
    uint64_t hash = DPI_HASH_INIT;
    for (int i = 0; i < N_KEYS; i++) {
        double x = keys[i].trains ? number_of(config, &keys[i]) : 0;
        hash = dpi_hash(hash, &x, sizeof x);
    }
    return hash;
}
