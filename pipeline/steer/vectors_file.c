/* vectors_file.c - steering vectors as a GGUF file, in llama.cpp's form, with their claim. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "dp/mechanism/steering.h"
#include "engine/model.h"
#include "kernels/weight_types.h"
#include "pipeline/claim/claim_file.h"
#include "pipeline/finetune/task.h"
#include "pipeline/journal/digest.h"
#include "pipeline/steer/steer.h"

static void name_layer(int32_t layer, char name[32]) {
    snprintf(name, 32, "direction.%d", (int)layer);
}

/* The vectors of a layer, of one label after the other. */
static const float *vectors_of(const dpi_steer *s, int32_t label, int32_t layer) {
    return s->vectors + ((int64_t)label * s->n_layers + layer) * s->n_embd;
}

/* Each part of what there is of words. */
static void words_of(const dpi_steer *s, dpi_bytes parts[DPI_WORDS_KEYS]) {
    const size_t n = (size_t)s->n_key_words;
    memset(parts, 0, DPI_WORDS_KEYS * sizeof *parts);
    if (!s->words)
        return;
    parts[DPI_KEY_WORDS] = (dpi_bytes){s->words, strlen(s->words)};
    parts[DPI_WORDS] = (dpi_bytes){s->vocabulary, strlen(s->vocabulary)};
    parts[DPI_WORD_WEIGHTS] = (dpi_bytes){(const char *)s->said, n * sizeof *s->said};
    parts[DPI_WORD_MEANS] = (dpi_bytes){(const char *)(s->said + n),
                                        (size_t)s->n_sets * n * sizeof *s->said};
}

static void hash_vectors(const dpi_steer *s, char hex[DPI_DIGEST_HEX + 1]) {
    const int64_t shape[4] = {s->n_embd, s->n_sets, 1, 1};
    struct sha256_ctx hash;
    sha256_init(&hash);
    for (int32_t l = 0; l < s->n_layers; l++) {
        char name[32];
        name_layer(s->layers[l], name);
        dpi_tensors_hash_head(&hash, name, DPI_TYPE_F32, shape);
        for (int32_t label = 0; label < s->n_sets; label++)
            sha256_update(&hash, (size_t)s->n_embd * sizeof(float),
                          (const uint8_t *)vectors_of(s, label, l));
    }
    dpi_bytes parts[DPI_WORDS_KEYS];
    words_of(s, parts);
    dpi_words_hash(&hash, parts, s->options.n_words);
    dpi_digest_end(&hash, hex);
}

static dpi_status put_claim(dpi_gguf_builder *w, const dpi_steer *s, const char *hex,
                            dpi_error *err) {
    dpi_claim claim = s->claim;
    claim.ledger = (dpi_claim_ledger){0}; /* what was charged before is not the vectors' */
    snprintf(claim.parts[0].text, sizeof claim.parts[0].text, "%s", hex);
    return dpi_claim_file_put(w, &claim, err);
}

/* One for each tensor, as llama.cpp counts them. */
static void put_head(dpi_gguf_builder *w, const dpi_steer *s, const char *hex) {
    char name[96];
    snprintf(name, sizeof name, "%.12s%s", hex,
             dpi_claim_is_private(&s->claim) ? "" : " (NOT PRIVATE)");
    dpi_gguf_put_string(w, "general.architecture", "controlvector");
    dpi_gguf_put_string(w, "general.name", name);
    dpi_gguf_put_string(w, "controlvector.model_hint", s->options.model->config.arch->name);
    dpi_gguf_put_u32(w, "controlvector.layer_count", (uint32_t)s->n_layers);
    dpi_task_put_base(w, s->options.model, s->claim.model_name);
    dpi_task_put(w, &s->instructions);
    dpi_bytes words[DPI_WORDS_KEYS];
    words_of(s, words);
    for (int i = 0; i < DPI_WORDS_KEYS && s->words; i++)
        if (i < DPI_WORD_WEIGHTS)
            dpi_gguf_put_string(w, dpi_words_keys[i], words[i].data);
        else
            dpi_gguf_put_array(w, dpi_words_keys[i], DPI_GGUF_F32, words[i].n_bytes / sizeof(float),
                               words[i].data, words[i].n_bytes);
}

static void put_tensors(dpi_gguf_builder *w, const dpi_steer *s) {
    const int64_t shape[2] = {s->n_embd, s->n_sets};
    for (int32_t l = 0; l < s->n_layers; l++) {
        char name[32];
        name_layer(s->layers[l], name);
        dpi_gguf_put_tensor(w, name, DPI_TYPE_F32, s->labels.n > 0 ? 2 : 1, shape);
    }
    for (int32_t l = 0; l < s->n_layers; l++)
        for (int32_t label = 0; label < s->n_sets; label++)
            dpi_gguf_put_data(w, vectors_of(s, label, l), (uint64_t)s->n_embd * sizeof(float));
}

dpi_status dpi_steer_write(dpi_steer *s, const char *path, int fd, dpi_error *err) {
    char hex[DPI_DIGEST_HEX + 1];
    dpi_gguf_builder *w;
    if (!s->sum)
        return dpi_fail(err, DPI_STATUS_STATE, "no vectors were released");
    hash_vectors(s, hex);
    DPI_TRY(dpi_gguf_builder_create(path, fd, &w, err));
    put_head(w, s, hex);
    const dpi_status status = put_claim(w, s, hex, err);
    put_tensors(w, s);
    if (status == DPI_STATUS_OK)
        return dpi_gguf_builder_finish(w, err);
    dpi_gguf_builder_discard(w);
    return status;
}
