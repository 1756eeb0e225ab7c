/* claim_file.c - see claim_file.h. */
#include "pipeline/claim/claim_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "dp/mechanism/gradients.h"
#include "dp/mechanism/steering.h"
#include "dpinfer/steer.h"
#include "gguf/gguf.h"
#include "kernels/weight_types.h"
#include "pipeline/claim/claim_json.h"
#include "pipeline/claim/compare.h"
#include "pipeline/journal/digest.h"
#include "pipeline/journal/json_text.h"

/* ---- The hash -------------------------------------------------------------------------------- */

void dpi_tensors_hash_head(struct sha256_ctx *hash, const char *name, uint32_t type,
                           const int64_t shape[4]) {
    sha256_update(hash, strlen(name) + 1, (const uint8_t *)name);
    sha256_update(hash, sizeof type, (const uint8_t *)&type);
    sha256_update(hash, 4 * sizeof *shape, (const uint8_t *)shape);
}

const char *const dpi_words_keys[DPI_WORDS_KEYS + 1] = {
    [DPI_KEY_WORDS] = DPI_TASK_KEY "key_words", [DPI_WORDS] = DPI_TASK_KEY "words",
    [DPI_WORD_WEIGHTS] = DPI_TASK_KEY "word_weights", [DPI_WORD_MEANS] = DPI_TASK_KEY "word_means"};

dpi_status dpi_words_find(const dpi_gguf *file, dpi_bytes parts[DPI_WORDS_KEYS], dpi_error *err) {
    uint64_t n[DPI_WORDS_KEYS] = {0};
    for (int i = 0; i < DPI_WORDS_KEYS; i++) {
        dpi_str text = {"", 0};
        const dpi_gguf_kv *array = NULL;
        if (i < DPI_WORD_WEIGHTS)
            DPI_TRY(dpi_gguf_get_string(file, dpi_words_keys[i], &text, NULL, err));
        else
            DPI_TRY(dpi_gguf_get_array(file, dpi_words_keys[i], DPI_GGUF_F32, &array, err));
        n[i] = array ? array->n_items : 0;
        parts[i] = array ? (dpi_bytes){(const char *)array->data, array->n_bytes}
                         : (dpi_bytes){text.data, text.n_bytes};
    }
    const int32_t n_lines = dpi_task_line_count(file, DPI_TASK_KEY "labels");
    const uint64_t n_labels = n_lines > 0 ? (uint64_t)n_lines : 1;
    if (n[DPI_WORD_WEIGHTS] > DPI_STEER_WORDS_MAX || n_labels > DPI_STEER_LABELS_MAX)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s: found %llu of %llu labels, allowed are %d "
                                                "of %d", dpi_gguf_name(file),
                        dpi_words_keys[DPI_WORD_WEIGHTS],
                        (unsigned long long)n[DPI_WORD_WEIGHTS], (unsigned long long)n_labels,
                        DPI_STEER_WORDS_MAX, DPI_STEER_LABELS_MAX);
    if (n[DPI_WORD_MEANS] != n_labels * n[DPI_WORD_WEIGHTS])
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s: found %llu, needed are %llu, of each word "
                                                "for each label", dpi_gguf_name(file),
                        dpi_words_keys[DPI_WORD_MEANS], (unsigned long long)n[DPI_WORD_MEANS],
                        (unsigned long long)(n_labels * n[DPI_WORD_WEIGHTS]));
    return DPI_STATUS_OK;
}

void dpi_words_hash(struct sha256_ctx *hash, const dpi_bytes parts[DPI_WORDS_KEYS],
                    int32_t n_asked) {
    if (n_asked == 0)
        return;
    sha256_update(hash, sizeof n_asked, (const uint8_t *)&n_asked);
    for (int i = 0; i < DPI_WORDS_KEYS; i++) {
        const uint64_t n_bytes = parts[i].n_bytes;
        sha256_update(hash, sizeof n_bytes, (const uint8_t *)&n_bytes);
        sha256_update(hash, parts[i].n_bytes, (const uint8_t *)parts[i].data);
    }
}

/* Of a file that nothing but its names is known of. ssm_dt.bias is an array of a delta net, and no
 * bias of a matrix. */
static bool may_be_trained(const char *tensor) {
    const char *dot = strrchr(tensor, '.');
    const bool is_bias = dot && strcmp(dot, ".bias") == 0 && !strstr(tensor, ".ssm_dt.");
    return strncmp(tensor, "rope_", 5) != 0 && strncmp(tensor, "per_layer_", 10) != 0 && !is_bias;
}

/* Hashes all tensors, and counts their numbers; of all weights those that may be trained. */
static double hash_tensors(const dpi_gguf *file, bool are_all, struct sha256_ctx *hash) {
    double n = 0;
    sha256_init(hash);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(file); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(file, i);
        dpi_tensors_hash_head(hash, t->name, t->type, t->shape);
        sha256_update(hash, t->n_bytes, t->data);
        dpi_gguf_release(file, t->data, t->n_bytes);
        if (are_all || may_be_trained(t->name))
            n += (double)t->shape[0] * (double)(t->shape[1] * t->shape[2] * t->shape[3]);
    }
    return n;
}

/* What the tensors say of their claim: of an adapter its numbers and rank too, of all weights their
 * number. Where an adapter was merged it is no longer to be seen. */
static dpi_status read_trained(const dpi_gguf *file, dpi_claim_part *p, dpi_error *err) {
    const int trained = (int)p->values[DPI_GRADIENTS_TRAINED];
    struct sha256_ctx hash;
    const double n = hash_tensors(file, trained == DPI_TRAINED_ADAPTER, &hash);
    double alpha = 0;
    dpi_digest_end(&hash, p->text);
    if (trained != DPI_TRAINED_MERGED)
        p->values[DPI_GRADIENTS_NUMBERS] = n;
    if (trained != DPI_TRAINED_ADAPTER)
        return DPI_STATUS_OK;
    if (dpi_gguf_tensor_count(file) > 0) {
        const int64_t *shape = dpi_gguf_tensor_at(file, 0)->shape;
        p->values[DPI_GRADIENTS_RANK] = (double)(shape[1] * shape[2] * shape[3]);
    }
    DPI_TRY(dpi_gguf_get_float(file, "adapter.lora.alpha", 0, 1e6, &alpha, NULL, err));
    p->values[DPI_GRADIENTS_ALPHA] = alpha;
    return DPI_STATUS_OK;
}

static dpi_status read_vectors(const dpi_gguf *file, dpi_claim_part *p, dpi_error *err) {
    struct sha256_ctx hash;
    dpi_bytes parts[DPI_WORDS_KEYS];
    p->values[DPI_STEERING_NUMBERS] = hash_tensors(file, true, &hash);
    DPI_TRY(dpi_words_find(file, parts, err));
    dpi_words_hash(&hash, parts, (int32_t)p->values[DPI_STEERING_WORDS]);
    dpi_digest_end(&hash, p->text);
    p->values[DPI_STEERING_LAYERS] = (double)dpi_gguf_tensor_count(file);
    return DPI_STATUS_OK;
}

/* The mechanisms whose output is the tensors of a file. */
static const struct {
    const char *mechanism;
    dpi_status (*read)(const dpi_gguf *file, dpi_claim_part *part, dpi_error *err);
} kinds[] = {{"gradients", read_trained}, {"steering", read_vectors}};

/* The place of the first part that is such a one in kinds; *part its place in the claim; -1. */
static int kind_of(const dpi_claim *claim, int32_t *part) {
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++) {
        const dpi_claim_part *found = dpi_claim_find(claim, kinds[k].mechanism);
        *part = found ? (int32_t)(found - claim->parts) : -1;
        if (found)
            return k;
    }
    return -1;
}

/* ---- The keys -------------------------------------------------------------------------------- */

/* What follows, with the label, which people look for. */
static json_t *follows_json(const dpi_claim *claim) {
    char label[160];
    json_t *o = dpi_claim_follows(claim);
    dpi_claim_label(claim, label, sizeof label);
    if (o && json_object_set_new(o, "label", json_string(label)) == 0)
        return o;
    json_decref(o);
    return NULL;
}

dpi_status dpi_claim_file_put(dpi_gguf_builder *w, const dpi_claim *claim, dpi_error *err) {
    char *json, *follows;
    size_t n_bytes;
    DPI_TRY(dpi_claim_write(claim, &json, err));
    json_t *o = follows_json(claim);
    follows = o ? dpi_json_text(o, JSON_COMPACT | JSON_REAL_PRECISION(17), &n_bytes) : NULL;
    if (follows) {
        dpi_gguf_put_string(w, DPI_CLAIM_KEY, json);
        dpi_gguf_put_string(w, DPI_FOLLOWS_KEY, follows);
    }
    const bool ok = follows != NULL;
    json_decref(o);
    free(follows);
    free(json);
    return ok ? DPI_STATUS_OK : dpi_no_memory(err, "the claim");
}

bool dpi_claim_file_has(const dpi_gguf *file) { return dpi_gguf_find(file, DPI_CLAIM_KEY) != NULL; }

/* Whether the file has a string of this key; else *text is empty. */
static bool find_string(const dpi_gguf *file, const char *key, dpi_str *text) {
    bool there = false;
    *text = (dpi_str){"", 0};
    return dpi_gguf_get_string(file, key, text, &there, NULL) == DPI_STATUS_OK && there;
}

int32_t dpi_task_line_count(const dpi_gguf *file, const char *key) {
    dpi_str text;
    if (!find_string(file, key, &text))
        return 0;
    int32_t n = 1;
    for (uint64_t i = 0; i < text.n_bytes; i++)
        n += text.data[i] == '\n';
    return n;
}

dpi_status dpi_task_check_lines(const dpi_gguf *file, const char *key, dpi_error *err) {
    const int32_t n = dpi_task_line_count(file, key);
    const int32_t needed = dpi_task_line_count(file, DPI_TASK_KEY "labels");
    return n == 0 || n == needed ? DPI_STATUS_OK
                                 : dpi_fail(err, DPI_STATUS_FORMAT,
                                            "%s: found %d lines, needed are %d", key, n, needed);
}

/* Vectors of labels are in the order of their names. */
static dpi_status check_sets(const dpi_gguf *file, const dpi_claim *c, dpi_error *err) {
    const int32_t n = dpi_task_line_count(file, DPI_TASK_KEY "labels");
    if (!dpi_claim_find(c, "steering"))
        return DPI_STATUS_OK;
    for (int64_t i = 0; i < dpi_gguf_tensor_count(file); i++) {
        const int64_t n_sets = dpi_gguf_tensor_at(file, i)->shape[1];
        if (n != c->n_labels || n_sets != (n > 0 ? n : 1))
            return dpi_fail(err, DPI_STATUS_ARG,
                            "the claim of %s does not hold: found %d labels in it, %d in "
                            DPI_TASK_KEY "labels and %lld vectors of a layer, needed are as many",
                            dpi_gguf_name(file), (int)c->n_labels, n, (long long)n_sets);
    }
    return DPI_STATUS_OK;
}

static bool is_text(dpi_str found, const char *text) {
    return found.n_bytes == strlen(text) && memcmp(found.data, text, found.n_bytes) == 0;
}

/* An adapter says that it is one, and it and vectors of which model they are: the claim's. */
static dpi_status check_model(const dpi_gguf *file, const dpi_claim *c, dpi_error *err) {
    enum { MARK = 17 }; /* before the name */
    const dpi_claim_part *p = dpi_claim_find(c, "gradients");
    dpi_str type, base;
    const bool is_adapter = find_string(file, "general.type", &type) && is_text(type, "adapter");
    (void)find_string(file, DPI_BASE_MARK, &base); /* too short if it is not there */
    if (p && is_adapter != (p->values[DPI_GRADIENTS_TRAINED] == DPI_TRAINED_ADAPTER))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the claim of %s does not hold: trained is of %s, and general.type says "
                        "%s", dpi_gguf_name(file), is_adapter ? "a model" : "an adapter",
                        is_adapter ? "adapter" : "nothing of an adapter");
    if (p && !is_adapter)
        return DPI_STATUS_OK;
    if (base.n_bytes >= MARK &&
        is_text((dpi_str){base.data + MARK, base.n_bytes - MARK}, c->model_name))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG,
                    "the claim of %s does not hold: it is of the model '%s', and " DPI_BASE_MARK
                    " says '%.*s'", dpi_gguf_name(file), c->model_name,
                    (int)(base.n_bytes > 80 ? 80 : base.n_bytes), base.data);
}

/* A key is there with what the claim says of it alone. */
static dpi_status check_both(const dpi_gguf *file, const char *key, bool is_claimed,
                             const char *what, dpi_error *err) {
    if ((dpi_gguf_find(file, key) != NULL) == is_claimed)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG,
                    "the claim of %s does not hold: %s and %s: allowed are both or none",
                    dpi_gguf_name(file), key, what);
}

/* A training says nothing in other keys, which nobody would read; what stands for each label is as
 * many lines; and counts of labels are there with their mechanism alone. */
static dpi_status check_keys(const dpi_gguf *file, const dpi_claim *c, dpi_error *err) {
    static const char *const known[] = {"template", "instruction", "description", "text_tokens",
                                        "labels", "label_meanings", "attributes", "label_counts",
                                        NULL};
    for (int64_t i = 0; i < dpi_gguf_kv_count(file); i++) {
        const char *key = dpi_gguf_kv_at(file, i)->key;
        if (dpi_gguf_is_task(key) && !dpi_is_one_of(known, key + sizeof DPI_TASK_KEY - 1) &&
            !dpi_is_one_of(dpi_words_keys, key))
            return dpi_fail(err, DPI_STATUS_ARG, "the claim of %s does not hold: the unknown key "
                                                 "%s", dpi_gguf_name(file), key);
    }
    dpi_error why;
    if (dpi_task_check_lines(file, DPI_TASK_KEY "label_meanings", &why) != DPI_STATUS_OK ||
        dpi_task_check_lines(file, DPI_TASK_KEY "label_counts", &why) != DPI_STATUS_OK ||
        dpi_task_check_lines(file, dpi_words_keys[DPI_KEY_WORDS], &why) != DPI_STATUS_OK)
        return dpi_fail(err, DPI_STATUS_ARG, "the claim of %s does not hold: %s",
                        dpi_gguf_name(file), why.message);
    const dpi_claim_part *vectors = dpi_claim_find(c, "steering");
    DPI_TRY(check_sets(file, c, err));
    DPI_TRY(check_model(file, c, err));
    const double n_words = vectors ? vectors->values[DPI_STEERING_WORDS] : 0;
    dpi_bytes words[DPI_WORDS_KEYS];
    for (int i = 0; i < DPI_WORDS_KEYS; i++)
        DPI_TRY(check_both(file, dpi_words_keys[i], n_words > 0, "words of the mechanism steering",
                           err));
    if (dpi_words_find(file, words, &why) != DPI_STATUS_OK)
        return dpi_fail(err, DPI_STATUS_ARG, "the claim of %s does not hold: %s",
                        dpi_gguf_name(file), why.message);
    if ((double)words[DPI_WORD_WEIGHTS].n_bytes > n_words * sizeof(float))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the claim of %s does not hold: %s: found %zu, allowed are the %.0f that "
                        "were asked for", dpi_gguf_name(file), dpi_words_keys[DPI_WORD_WEIGHTS],
                        words[DPI_WORD_WEIGHTS].n_bytes / sizeof(float), n_words);
    return check_both(file, DPI_TASK_KEY "label_counts", dpi_claim_find(c, "label_counts") != NULL,
                      "the mechanism label_counts", err);
}

/* The claim of a file, which comes from anywhere. */
static dpi_status read_claim(const dpi_gguf *file, dpi_claim *claim, dpi_error *err) {
    dpi_str text = {"", 0};
    bool there = false;
    dpi_error why;
    DPI_TRY(dpi_gguf_get_string(file, DPI_CLAIM_KEY, &text, &there, err));
    if (!there)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s has no %s: it is no adapter of 'dpinfer finetune', and no "
                        "vectors of 'dpinfer steer'", dpi_gguf_name(file), DPI_CLAIM_KEY);
    const dpi_status status = dpi_claim_read(text.data, text.n_bytes, claim, &why);
    if (status != DPI_STATUS_OK)
        return dpi_fail(err, status == DPI_STATUS_MEMORY ? status : DPI_STATUS_ARG,
                        "the claim of %s does not hold: %s", dpi_gguf_name(file), why.message);
    /* Texts are none of its tensors, and those about records have a report. */
    int32_t part;
    return kind_of(claim, &part) >= 0 && part == 0 && !dpi_claim_find(claim, "texts")
               ? check_keys(file, claim, err)
               : dpi_fail(err, DPI_STATUS_ARG,
                          "the claim of %s does not hold: it is of no training, and of no steering "
                          "vectors", dpi_gguf_name(file));
}

/* ---- What holds ------------------------------------------------------------------------------ */

static bool is_given(const dpi_verification *v, const char *path) {
    static const char *const of_tensors[] = {".tensors_sha256", ".numbers", ".rank", ".alpha",
                                             ".layers", NULL};
    const char *claim = strstr(path, "claim."), *dot = strrchr(path, '.');
    (void)v;
    return claim && !strstr(path, "follows.") && !dpi_is_one_of(of_tensors, dot);
}

static json_t *read_follows(const dpi_gguf *file) {
    dpi_str text;
    json_t *o = NULL;
    if (find_string(file, DPI_FOLLOWS_KEY, &text))
        o = json_loadb(text.data, text.n_bytes, JSON_REJECT_DUPLICATES, NULL);
    return o ? o : json_null();
}

static dpi_status compare(const dpi_gguf *file, const char *prefix, const dpi_claim *said,
                          const dpi_claim *found, dpi_verification *v, dpi_error *err) {
    char name[64];
    snprintf(name, sizeof name, "%s", prefix);
    json_t *recorded = json_pack("{s:o, s:o}", "claim", dpi_claim_json(said), "follows",
                                 read_follows(file));
    json_t *computed = json_pack("{s:o, s:o}", "claim", dpi_claim_json(found), "follows",
                                 follows_json(said));
    if (prefix[0]) {
        recorded = json_pack("{s:o}", name, recorded);
        computed = json_pack("{s:o}", name, computed);
    }
    const dpi_status status =
        recorded && computed
            ? dpi_compare(recorded, computed, &(dpi_compare_rules){is_given}, v, err)
            : dpi_no_memory(err, "the fields of the claim");
    json_decref(recorded), json_decref(computed);
    return status;
}

dpi_status dpi_claim_file_compare(const dpi_gguf *file, const char *prefix, dpi_claim *claim,
                                  dpi_verification *v, dpi_error *err) {
    dpi_claim found;
    DPI_TRY(read_claim(file, claim, err));
    found = *claim;
    int32_t part;
    const int kind = kind_of(claim, &part);
    DPI_TRY(kinds[kind].read(file, &found.parts[part], err));
    return compare(file, prefix, claim, &found, v, err);
}

dpi_status dpi_claim_verify_file(const char *path, dpi_claim *claim, dpi_verification *v,
                                   dpi_error *err) {
    dpi_gguf *file;
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    const dpi_status status = dpi_claim_file_compare(file, "", claim, v, err);
    dpi_gguf_close(file);
    if (status != DPI_STATUS_OK)
        return status;
    v->is_private = dpi_claim_is_private(claim);
    v->model_hashed = 1;
    dpi_claim_label(claim, v->label, sizeof v->label);
    return DPI_STATUS_OK;
}
