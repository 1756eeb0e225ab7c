/* whole.c - all weights that were trained, as a whole model: the base's file with other numbers and
 * the claim. Its hash is of the numbers as they stand in the file, in its own weight types. */
#include <math.h>
#include <stdio.h>

#include "base/status.h"
#include "base/utf8.h"
#include "engine/model.h"
#include "pipeline/finetune/finetune.h"
#include "pipeline/journal/digest.h"
#include "train/tensors.h"

typedef struct whole {
    const dpi_finetune *f;
    char hex[DPI_DIGEST_HEX + 1];
    char name[64];
    dpi_status put; /* what came of the claim's keys */
} whole;

/* What is trained of a row of a tensor of the base's file, of which it is *row: in training those
 * that the file has joined are tensors of their own. False: nothing. */
static bool find(const dpi_finetune *f, const char *tensor, int64_t *row,
                 dpi_train_tensor *found) {
    const dpi_graph_shape *shape = dpi_tuner_shape(f->tuner);
    const dpi_model *m = f->options.model;
    if (dpi_train_tensor_find(shape, tensor, found))
        return true;
    const int32_t i = dpi_model_row(m, tensor, row);
    return i >= 0 && dpi_train_tensor_find(shape, dpi_arch_tensor_name(m->products[i].tensor,
                                                                       m->products[i].layer,
                                                                       "weight").text, found);
}

static bool is_trained(void *user, const char *tensor) {
    dpi_train_tensor found;
    return find(((const whole *)user)->f, tensor, &(int64_t){0}, &found);
}

/* What the type cannot hold is its largest number: a training that is paid for has a model. */
static void put_row(void *user, const char *tensor, int64_t row, float *weights, int64_t n) {
    const dpi_finetune *f = ((const whole *)user)->f;
    const dpi_gguf_tensor *t = dpi_gguf_tensor_find(f->options.model->gguf, tensor);
    const float most = t && t->type == DPI_TYPE_F16 ? 65504 : 0x1.fep127f; /* of BF16 */
    dpi_train_tensor found;
    if (!find(f, tensor, &row, &found))
        return;
    const float *trained = dpi_tuner_adapters(f->tuner) + found.offset + row * n;
    for (int64_t i = 0; i < n; i++)
        weights[i] = fmaxf(fminf(trained[i], most), -most);
}

static void put_keys(void *user, dpi_gguf_builder *builder) {
    whole *w = user;
    dpi_gguf_put_string(builder, "general.name", w->name);
    w->put = dpi_finetune_put_claim(builder, w->f, w->hex, NULL);
}

/* ---- The hash -------------------------------------------------------------------------------- */

static void hash_begin(void *user, const dpi_gguf_tensor *t, uint32_t type) {
    dpi_tensors_hash_head(user, t->name, type, t->shape);
}

static void hash_data(void *user, const void *data, uint64_t n_bytes) {
    sha256_update(user, n_bytes, data);
}

dpi_status dpi_finetune_hash_change(const dpi_gguf *file, const dpi_write_options *options,
                                    const dpi_conversion_change *change,
                                    char hex[DPI_DIGEST_HEX + 1], dpi_error *err) {
    struct sha256_ctx hash;
    const dpi_conversion_sink sink = {hash_begin, hash_data, &hash};
    sha256_init(&hash);
    DPI_TRY(dpi_conversion_visit(file, options, change, &sink, err));
    dpi_digest_end(&hash, hex);
    return DPI_STATUS_OK;
}

/* ---- The file -------------------------------------------------------------------------------- */

dpi_status dpi_finetune_write_whole(const dpi_finetune *f, const char *path, int fd,
                                    dpi_error *err) {
    whole w = {.f = f, .put = DPI_STATUS_OK};
    dpi_write_options o;
    dpi_write_options_init(&o);
    o.type = "KEEP", o.fd = fd, o.n_threads = f->options.n_threads;
    const dpi_gguf *base = f->options.model->gguf;
    const dpi_conversion_change change = {is_trained, put_row, put_keys, &w};
    DPI_TRY(dpi_finetune_hash_change(base, &o, &change, w.hex, err));
    char suffix[48];
    snprintf(suffix, sizeof suffix, " + training %.12s%s", w.hex,
             dpi_claim_is_private(&f->claim) ? "" : " (NOT PRIVATE)");
    dpi_name_join(w.name, sizeof w.name, f->claim.model_name, suffix);
    DPI_TRY(dpi_conversion_write_open(base, path, &o, &change, err));
    return w.put == DPI_STATUS_OK ? DPI_STATUS_OK : dpi_no_memory(err, "the claim");
}
