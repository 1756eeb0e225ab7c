/* training_keys.c - what a file says of the training that made it: its task, its claim, the hash of
 * its tensors. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "dp/mechanism/gradients.h"
#include "kernels/weight_types.h"
#include "pipeline/finetune/finetune.h"
#include "pipeline/finetune/task.h"
#include "pipeline/journal/digest.h"
#include "train/lora_file.h"

#define KEY DPI_TASK_KEY

static void visit(void *user, const char *name, int64_t n_columns, int64_t n_rows,
                  const float *data) {
    const int64_t shape[4] = {n_columns, n_rows, 1, 1};
    dpi_tensors_hash_head(user, name, DPI_TYPE_F32, shape);
    sha256_update(user, (size_t)(n_columns * n_rows) * sizeof(float), (const uint8_t *)data);
}

void dpi_finetune_hash(const dpi_lora *lora, const dpi_graph_shape *shape, const float *adapters,
                       char hex[DPI_DIGEST_HEX + 1]) {
    struct sha256_ctx hash;
    sha256_init(&hash);
    dpi_lora_visit(lora, shape, adapters, visit, &hash);
    dpi_digest_end(&hash, hex);
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

static void put_task(dpi_gguf_builder *w, const dpi_finetune *f) {
    dpi_task_put(w, &f->instructions);
    put_counts(w, f);
}

static dpi_status put_claim(dpi_gguf_builder *w, const dpi_claim *claim, double trained,
                            const char *hex, dpi_error *err) {
    dpi_claim c = *claim;
    for (int32_t i = 0; i < c.n_parts; i++)
        if (&claim->parts[i] == dpi_claim_find(claim, "gradients")) {
            c.parts[i].values[DPI_GRADIENTS_TRAINED] = trained;
            snprintf(c.parts[i].text, sizeof c.parts[i].text, "%s", hex);
        }
    return dpi_claim_file_put(w, &c, err);
}

dpi_status dpi_finetune_put_claim(dpi_gguf_builder *w, const dpi_finetune *f, const char *hex,
                                  dpi_error *err) {
    dpi_claim claim = f->claim;
    claim.ledger = (dpi_claim_ledger){0}; /* what was charged before is not the adapter's */
    put_task(w, f);
    return put_claim(w, &claim, f->options.full ? DPI_TRAINED_WEIGHTS : DPI_TRAINED_ADAPTER, hex,
                     err);
}

dpi_status dpi_finetune_put_merged(dpi_gguf_builder *w, const dpi_gguf *adapter,
                                   const dpi_claim *claim, const char *hex, dpi_error *err) {
    for (int64_t i = 0; i < dpi_gguf_kv_count(adapter); i++) {
        const dpi_gguf_kv *kv = dpi_gguf_kv_at(adapter, i);
        if (dpi_gguf_is_task(kv->key))
            dpi_gguf_put_kv(w, kv);
    }
    return put_claim(w, claim, DPI_TRAINED_MERGED, hex, err);
}
