/* world.c - what audits of whole runs make in their folder: models, ledgers. */
#include <stdio.h>
#include <unistd.h>

#include "audit/lines.h"
#include "base/status.h"
#include "dpinfer/write.h"

dpi_status dpi_audit_make_model(dpi_audit *a, int32_t n_embd, int32_t n_ctx, dpi_model **model) {
    char path[4096];
    dpi_model_shape shape;
    dpi_write_options write;
    dpi_model_shape_init(&shape);
    dpi_write_options_init(&write);
    shape.n_layer = 1;
    shape.n_embd = shape.n_ff = n_embd;
    shape.n_head = 2;
    shape.n_kv_head = 1;
    shape.n_vocab = 300;
    shape.n_ctx_train = n_ctx;
    shape.rope_freq_base = 10000;
    write.type = "F32";
    write.n_threads = 1;
    snprintf(path, sizeof path, "%s/made.gguf", a->options.folder);
    DPI_TRY(dpi_model_make(&shape, NULL, 2, path, &write, a->err));
    const dpi_status status = dpi_model_open(path, NULL, model, a->err);
    unlink(path);
    return status;
}

dpi_status dpi_audit_ledger_open(dpi_audit *a, double epsilon, int32_t scope,
                                 dpi_audit_ledger *ledger) {
    dpi_ledger_options options;
    dpi_dataset_options dataset;
    dpi_ledger_options_init(&options);
    dpi_dataset_options_init(&dataset);
    options.create = 1;
    dataset.name = DPI_AUDIT_DATASET;
    dataset.epsilon = epsilon;
    dataset.delta = 1e-4;
    dataset.scope = scope;
    snprintf(ledger->path, sizeof ledger->path, "%s/made.ledger", a->options.folder);
    DPI_TRY(dpi_ledger_open(ledger->path, &options, &ledger->ledger, a->err));
    return dpi_ledger_add(ledger->ledger, &dataset, a->err);
}

dpi_status dpi_audit_ledger_info(dpi_audit *a, const dpi_audit_ledger *ledger,
                                 dpi_dataset_info *info) {
    dpi_dataset_info_init(info);
    return dpi_ledger_info(ledger->ledger, DPI_AUDIT_DATASET, info, a->err);
}

void dpi_audit_ledger_close(dpi_audit_ledger *ledger) {
    dpi_ledger_close(ledger->ledger);
    unlink(ledger->path);
}
