/* finetune.h - the state of a training, and the parts of its files. Internal. */
#ifndef DPI_PIPELINE_FINETUNE_H
#define DPI_PIPELINE_FINETUNE_H

#include <stdbool.h>

#include "dpinfer/finetune.h"
#include "gguf/convert.h"
#include "pipeline/claim/claim_file.h"
#include "pipeline/finetune/examples.h"

struct dpi_finetune {
    dpi_finetune_options options; /* n_threads and n_expected settled */
    dpi_claim claim; /* of gradients, then of label_counts if there is a histogram */
    dpi_tuner *tuner;
    dpi_instructions instructions;
    dpi_examples examples;
    dpi_examples held_out; /* PUBLIC */
    bool begun;
    int lock;          /* file descriptor beside the checkpoint, -1: none */
    int64_t charge;    /* of the ledger; 0: none */
    uint8_t *pays;     /* [units] with scope UNIT: 1: the unit has paid. PRIVATE */
    uint64_t bits;     /* with a seed: the state of the step's random bits */
    int32_t n_kept;    /* steps that the checkpoint has */
    int32_t *counts;   /* [1 + n_labels] with a histogram: 1 once it is drawn, and the noisy numbers
                          of units of each label; NULL: there is none */
};

/* Other prompts than the record's own, of which its text is made less likely. */
static inline int32_t dpi_finetune_wrong_count(const dpi_finetune_options *o) {
    const int32_t others = o->n_labels > 0 ? o->n_labels - 1 : 0;
    return !(o->mismatch > 0) ? 0 : o->n_wrong < others ? o->n_wrong : others;
}

/* Of the gradients, by its place in dp/mechanism/gradients.h. */
static inline double dpi_finetune_value(const dpi_finetune *f, int value) {
    return f->claim.parts[0].values[value];
}

/* Everything public that the steps depend on; of the model its name and its norms. */
uint64_t dpi_finetune_hash_task(const dpi_finetune *f);
/* *found: the training goes on where the checkpoint ends. Errors: STATE (another process has it),
 * IO, FORMAT, MEMORY. */
DPI_MUST_CHECK dpi_status dpi_finetune_resume(dpi_finetune *f, int32_t *found, dpi_error *err);

/* Fills the claim: q, sigma, epsilon. */
DPI_MUST_CHECK dpi_status dpi_finetune_settle(dpi_finetune *f, dpi_error *err);
/* Numbers of `counts`; 0: there is no histogram. */
int32_t dpi_finetune_count_size(const dpi_finetune *f);
/* Counts the units of each label, with noise, unless that is done: *drawn, to be kept then, as a
 * second draw would be a second release. Errors: MEMORY, ENTROPY. */
DPI_MUST_CHECK dpi_status dpi_finetune_draw_counts(dpi_finetune *f, bool *drawn, dpi_error *err);
/* What the histogram has of epsilon, rounded up; 0: there is none. */
double dpi_finetune_histogram_epsilon(const dpi_claim *claim);
/* The scale of its noise; 0: there is none. */
int32_t dpi_finetune_histogram_scale(const dpi_claim *claim);
/* Charges the ledger, if there is one. */
DPI_MUST_CHECK dpi_status dpi_finetune_charge(dpi_finetune *f, dpi_error *err);
/* After a checkpoint: what was charged then, from the ledger. Errors: FORMAT (the charge is not in
 * this ledger). */
DPI_MUST_CHECK dpi_status dpi_finetune_recall(dpi_finetune *f, dpi_error *err);
/* The keys of the claim, with the hash of the tensors, and of the task. Errors: MEMORY. */
DPI_MUST_CHECK dpi_status dpi_finetune_put_claim(dpi_gguf_builder *builder, const dpi_finetune *f,
                                                 const char *hex, dpi_error *err);
/* With full: as dpi_finetune_write. */
DPI_MUST_CHECK dpi_status dpi_finetune_write_whole(const dpi_finetune *f, const char *path, int fd,
                                                   dpi_error *err);
/* SHA-256 of the tensors of the file that a change of `file` makes, before it is written. Errors:
 * those of dpi_conversion_visit. */
DPI_MUST_CHECK dpi_status dpi_finetune_hash_change(const dpi_gguf *file,
                                                   const dpi_write_options *options,
                                                   const dpi_conversion_change *change,
                                                   char hex[DPI_DIGEST_HEX + 1], dpi_error *err);
/* The keys of a model that the adapter of a file was merged into, whose claim that is: what the
 * adapter's file says, but for what is said of its tensors. Errors: MEMORY. */
DPI_MUST_CHECK dpi_status dpi_finetune_put_merged(dpi_gguf_builder *builder,
                                                  const dpi_gguf *adapter,
                                                  const dpi_claim *claim, const char *hex,
                                                  dpi_error *err);
/* SHA-256 of an adapter's tensors, in hex. */
void dpi_finetune_hash(const dpi_lora *lora, const dpi_graph_shape *shape, const float *adapters,
                       char hex[DPI_DIGEST_HEX + 1]);

#endif
