/* merge.c - a model and its adapter as one model, which claims of its training what the adapter
 * does: it is made of nothing else that is private. A base with a claim of its own is refused. */
#include "base/status.h"
#include "engine/merged_model.h"
#include "engine/model.h"
#include "pipeline/finetune/finetune.h"

typedef struct merged {
    dpi_merged merge;
    dpi_claim claim;
    dpi_status put; /* what came of the keys */
    char hex[DPI_DIGEST_HEX + 1]; /* of the tensors that are written */
} merged;

static void put_claim(void *user, dpi_gguf_builder *builder) {
    merged *m = user;
    m->put = dpi_finetune_put_merged(builder, m->merge.adapter, &m->claim, m->hex, NULL);
}

/* A claim that does not hold is not handed on: the file would say that it does. */
static dpi_status read_claim(merged *m, const char *path, dpi_error *err) {
    int32_t holds;
    DPI_TRY(dpi_finetune_read_claim(path, &m->claim, &holds, err));
    return holds
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_FORMAT, "the claim of %s does not hold", path);
}

static dpi_status write_merged(merged *m, const char *in_path, const char *adapter_path,
                               const char *out_path, const dpi_write_options *options,
                               dpi_error *err) {
    const dpi_conversion_change change = dpi_merge_change(&m->merge);
    if (dpi_claim_file_has(m->merge.model->gguf))
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "%s was trained on records itself: with an adapter in its weights it would "
                        "have two claims, and a file says one",
                        in_path);
    if (dpi_claim_file_has(m->merge.adapter)) {
        DPI_TRY(read_claim(m, adapter_path, err));
        DPI_TRY(dpi_finetune_hash_change(m->merge.model->gguf, options, &change, m->hex, err));
        m->merge.keys = put_claim, m->merge.user = m;
    }
    DPI_TRY(dpi_conversion_write(in_path, out_path, options, &change, err));
    return m->put == DPI_STATUS_OK ? DPI_STATUS_OK : dpi_no_memory(err, "the claim");
}

dpi_status dpi_finetune_merge(const char *in_path, const char *adapter_path, float scale,
                              const char *out_path, const dpi_write_options *options,
                              dpi_error *err) {
    merged m = {.put = DPI_STATUS_OK};
    dpi_status status = dpi_merge_begin(in_path, adapter_path, scale, &m.merge, err);
    if (status == DPI_STATUS_OK)
        status = write_merged(&m, in_path, adapter_path, out_path, options, err);
    dpi_merge_end(&m.merge);
    return status;
}
