/* finetune.h - the state of a training, and the parts of its files. Internal. */
#ifndef DPI_PIPELINE_FINETUNE_H
#define DPI_PIPELINE_FINETUNE_H

#include <nettle/sha2.h>
#include <stdbool.h>

#include "dpinfer/finetune.h"
#include "gguf/convert.h"
#include "pipeline/finetune/examples.h"

enum { DPI_FINETUNE_HEX = 64 };

/* What all claims say, as those who check it want it. */
#define DPI_FINETUNE_ADJACENCY "add-remove"
#define DPI_FINETUNE_ACCOUNTANT "pld"

struct dpi_finetune {
    dpi_finetune_options options; /* n_threads and n_expected settled */
    dpi_finetune_claim claim;
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

/* Fills the claim: q, sigma, epsilon. */
DPI_MUST_CHECK dpi_status dpi_finetune_settle(dpi_finetune *f, dpi_error *err);
/* Numbers of `counts`; 0: there is no histogram. */
int32_t dpi_finetune_count_size(const dpi_finetune *f);
/* Counts the units of each label, with noise, unless that is done. Errors: MEMORY, ENTROPY. */
DPI_MUST_CHECK dpi_status dpi_finetune_draw_counts(dpi_finetune *f, dpi_error *err);
/* What the histogram has of epsilon, rounded up; 0: there is none. */
double dpi_finetune_histogram_epsilon(const dpi_finetune_claim *claim);
/* Charges the ledger, if there is one. */
DPI_MUST_CHECK dpi_status dpi_finetune_charge(dpi_finetune *f, dpi_error *err);
/* After a checkpoint: what was charged then, from the ledger. Errors: FORMAT (the charge is not in
 * this ledger). */
DPI_MUST_CHECK dpi_status dpi_finetune_recall(dpi_finetune *f, dpi_error *err);
enum { DPI_FINETUNE_WHY = 160 };
/* What a file says beside the claim's numbers, and the hash that its tensors have. */
typedef struct dpi_finetune_said {
    double epsilon;
    bool is_private;
    char label[32], adjacency[32], accountant[32];
    char hash[DPI_FINETUNE_HEX + 2], tensors[DPI_FINETUNE_HEX + 1];
    char contradiction[DPI_FINETUNE_WHY]; /* of dpi_finetune_check_claim */
} dpi_finetune_said;

/* Why no training has such a claim; "": one can have it. */
void dpi_finetune_check_claim(const dpi_finetune_claim *claim, char why[DPI_FINETUNE_WHY]);

/* As dpi_finetune_read_claim. */
DPI_MUST_CHECK dpi_status dpi_finetune_read_said(const char *path, dpi_finetune_claim *claim,
                                                 dpi_finetune_said *said, dpi_error *err);
/* A finished hash in hex. */
void dpi_finetune_hex(struct sha256_ctx *hash, char hex[DPI_FINETUNE_HEX + 1]);
/* The keys of the claim and of the task. */
void dpi_finetune_put_claim(dpi_gguf_builder *builder, const dpi_finetune *f, const char *hex);
/* With full: as dpi_finetune_write. */
DPI_MUST_CHECK dpi_status dpi_finetune_write_whole(const dpi_finetune *f, const char *path, int fd,
                                                   dpi_error *err);
/* SHA-256 of the tensors of a whole model, in hex; how many weights were trained. */
int64_t dpi_finetune_hash_whole(const dpi_gguf *file, char hex[DPI_FINETUNE_HEX + 1]);
/* The same of the file that a change of `file` makes, before it is written. Errors: those of
 * dpi_conversion_visit. */
DPI_MUST_CHECK dpi_status dpi_finetune_hash_change(const dpi_gguf *file,
                                                   const dpi_write_options *options,
                                                   const dpi_conversion_change *change,
                                                   char hex[DPI_FINETUNE_HEX + 1], dpi_error *err);
/* The keys of a model that the adapter of a file was merged into, whose claim that is: what the
 * adapter's file says, but for what is said of its tensors. */
void dpi_finetune_put_merged(dpi_gguf_builder *builder, const dpi_gguf *adapter,
                             const dpi_finetune_claim *claim, const char *hex);
/* Whether a file has a claim, whatever it is. */
bool dpi_finetune_is_claimed(const dpi_gguf *file);
/* SHA-256 of an adapter's tensors, in hex. */
void dpi_finetune_hash(const dpi_lora *lora, const dpi_graph_shape *shape, const float *adapters,
                       char hex[DPI_FINETUNE_HEX + 1]);

#endif
