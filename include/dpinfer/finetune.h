/* finetune.h - a model learns from private records, under differential privacy: what is trained is
 * a low-rank adapter, or with `full` all weights, which are released. Part of libdpinfer_full.
 *
 *     dpi_finetune_options_init(&options);              model, records, n_units, epsilon, ...
 *     dpi_finetune_open(&options, &finetune, &err);     settles every number, reads no record
 *     dpi_finetune_begin(finetune, &err);               charges the ledger, then reads the records
 *     while (dpi_finetune_steps_done(finetune) < n_steps)
 *         dpi_finetune_step(finetune, &err);
 *     dpi_finetune_write(finetune, "adapter.gguf", -1, &err);
 *
 * Each record is the continuation of a public instruction, one for all records or one for each
 * label, which may be the values of several attributes; the loss is that of its tokens, less a part
 * of the loss after instructions of other labels (the paper's prompt mismatch). In each step a unit
 * joins with probability q = n_expected / n_units, its gradient is clipped and added in integers,
 * and noise is added (dp/PRIVACY.md sections 16 and 17). All steps together, and so the adapter and
 * every text that is written with it, are (epsilon, delta)-DP: one unit more or less. Source:
 * Mattern et al. 2022, with the arithmetic in integers.
 *
 * With `checkpoint` the training goes on where the file ends, without another charge. The file has
 * adapters and moments, which are as public as the adapter. It is on the disk before anything of
 * its steps is told. Two processes cannot have it open at once.
 *
 * The same seed, options and records give the same adapter, bit for bit, on the same instruction
 * set, with any number of threads and however often the training is stopped.
 *
 * Errors say nothing of what is in a record. Threads: an object belongs to one thread at a time. */
#ifndef DPINFER_FINETUNE_H
#define DPINFER_FINETUNE_H

#include "dpinfer/ledger.h"
#include "dpinfer/prompts.h"
#include "dpinfer/records.h"
#include "dpinfer/report.h"
#include "dpinfer/train.h"
#include "dpinfer/write.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Matrices of a layer that get an adapter, as bits. */
enum {
    DPI_FINETUNE_Q = 1,
    DPI_FINETUNE_K = 2,
    DPI_FINETUNE_V = 4,
    DPI_FINETUNE_O = 8,
    DPI_FINETUNE_GATE = 16,
    DPI_FINETUNE_UP = 32,
    DPI_FINETUNE_DOWN = 64,
    DPI_FINETUNE_ALL = 127
};

enum { DPI_FINETUNE_LABELS_MAX = 1024, DPI_FINETUNE_RANK_MAX = 1024 };

/* The largest noise multiplier whose noise is drawn exactly; the least is DPI_GAUSSIAN_SIGMA_MIN
 * (gaussian.h). */
#define DPI_FINETUNE_SIGMA_MAX 4096.0

typedef struct dpi_finetune_options {
    size_t struct_size;
    const dpi_model *model;     /* the base; its own adapter, if it has one, is not used */
    const dpi_records *records; /* both must outlive the object */
    const dpi_records *held_out; /* PUBLIC records, for dpi_finetune_held_out; with labels if the
                                    others have them; must outlive the object; NULL (default) */
    /* The task. */
    dpi_bytes instruction; /* PUBLIC; what stands before each record, with {label} if labels are
                              given; none: the default of prompt_texts.h. Outlives the object */
    int32_t chat;          /* a dpi_chat; default AUTO */
    int32_t n_positions;   /* a longer instruction and record is cut at its end; default 256 */
    int32_t max_per_unit;  /* records of a unit that are used, its first ones; default 4 */
    const char *const *labels; /* [n_labels] PUBLIC strings, all different: a unit whose label
                                  (records.h) is none of them adds nothing. Copied */
    int32_t n_labels;    /* 0 (default): records have no labels */
    const char *const *attributes; /* [n_attributes] PUBLIC names: a label is a value of each, with
                                      tabs between them (records.h, label_fields), and {NAME} stands
                                      for it in the instruction in place of {label}. The labels are
                                      the combinations that there can be. Copied */
    int32_t n_attributes; /* 0 (default), or 1..8 */
    double histogram_epsilon; /* 0 (default), or 2^-20..1: units of each label are counted, with
                                 Laplace noise of scale 1 / histogram_epsilon, rounded up to an
                                 integer; its inverse is a part of epsilon */
    double mismatch;     /* 0..1: a record's text is made less likely after the instructions of
                            n_wrong other labels, drawn anew in each step, in this proportion; of
                            attributes those with one other value; default .2, 0: not */
    int32_t n_wrong;     /* 1..16; default 4 */
    int32_t loss_on_all; /* 1: the loss is also that of the instruction's tokens; default 0 */
    /* The budget. */
    double epsilon; /* of all steps; 0 (default): sigma is given; INFINITY: no noise, NOT PRIVATE */
    double delta;   /* below 1 / n_units; default 1e-6 */
    double sigma;   /* noise multiplier, if epsilon is 0: .1..DPI_FINETUNE_SIGMA_MAX */
    int64_t n_units;   /* about how many units there are: a public number */
    double n_expected; /* units of a step, at most n_units; 0 (default): n_units / 20 */
    int32_t n_steps;   /* default 100 */
    /* The adapter. */
    int32_t full;     /* 1: there is none, all weights are trained: the model stores them as floats
                         (F32, F16, BF16), a whole model is written, and rank, alpha and targets are
                         not read. Biases stay as they are, and so does what makes the inputs of
                         layers (Gemma 4's per_layer_*). "Adapter" below is that model;
                         default 0 */
    int32_t rank;     /* default 1: see docs/commands.md */
    double alpha;     /* default 16 */
    uint32_t targets; /* default DPI_FINETUNE_ALL; of matrices that are one tensor of the model's
                         file all or none; a layer that lacks one has no adapter of
                         it. In a delta net the four that read its input have
                         adapters where q, k or v is a target, the output where o is one */
    /* The optimiser: Adam, a linear warm-up and a cosine to a tenth of lr. */
    double clip;      /* of a unit's gradient; default 1 */
    double lr;        /* 0 (default): 1e-3, with full 1e-5 */
    int32_t n_warmup; /* default 10 */
    int32_t unbiased; /* 1: the noise is taken off Adam's second moments; default 0 */
    /* The run. */
    int32_t n_threads; /* 0 (default): the processors this process may use */
    int32_t seeded;    /* 1: random bits follow from seed, NOT PRIVATE */
    uint64_t seed; /* with seeded: whoever knows it can undo the mechanism */
    dpi_ledger *ledger;      /* NULL: none */
    const char *dataset;     /* of the ledger; with scope UNIT records need IDs */
    const char *checkpoint;  /* NULL: none */
    int32_t checkpoint_steps; /* default 10 */
    dpi_cancel_fn cancel;    /* between units; may be NULL */
    void *cancel_user;
    const dpi_train_ranks *ranks; /* NULL (default): this process alone. Rank 0 has the ledger and
                                     the checkpoint; the others have none, the same records and
                                     the same other options. The adapter is that of one process,
                                     bit for bit. Outlives the object */
    dpi_bytes description; /* PUBLIC; in place of the instruction, without attributes: what the
                              records are. Each is then an item of a list, as texts of a run that
                              has a description are (dpi_wording_choose). Outlives the object */
    const char *const *label_meanings; /* [n_labels] PUBLIC strings of one line, what {label} stands
                                          for, without attributes. NULL (default), and each that is
                                          NULL: the label (dpi_label_in_prompt). Copied */
} dpi_finetune_options;

DPI_API void dpi_finetune_options_init_size(dpi_finetune_options *options, size_t size);
#define dpi_finetune_options_init(o) dpi_finetune_options_init_size((o), sizeof *(o))

/* What a training takes, before it is opened. */
typedef struct dpi_finetune_plan {
    size_t struct_size;
    int64_t memory_bytes;  /* of the process, with all below */
    int64_t program_bytes; /* the process, and what is not in memory yet: weights, OpenBLAS */
    int64_t state_bytes;   /* weights in f32, adapters, moments */
    int64_t step_bytes;    /* the sum of a step, and what a step that fails goes back to */
    int64_t thread_bytes;  /* of each thread: gradients, integers, activations of one example, what
                              OpenBLAS packs */
    int64_t record_bytes;  /* tokens of n_units units, at most */
    int32_t n_threads;
} dpi_finetune_plan;

DPI_API void dpi_finetune_plan_init_size(dpi_finetune_plan *plan, size_t size);
#define dpi_finetune_plan_init(o) dpi_finetune_plan_init_size((o), sizeof *(o))
/* Reads no record. *plan, after dpi_finetune_plan_init, is not to be read after a failure. Errors:
 * those of dpi_finetune_open, without what must be opened: OpenBLAS, memory for the training. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_plan_of(const dpi_finetune_options *options,
                                                       dpi_finetune_plan *plan, dpi_error *err);

typedef struct dpi_finetune dpi_finetune;

/* Settles sigma, q and epsilon and allocates. Errors: ARG (by the option's name, what was found and
 * what is allowed), UNSUPPORTED (full, and weights that are not stored as floats; a ledger, and no
 * guarantee; OpenBLAS is not installed), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_open(const dpi_finetune_options *options,
                                                    dpi_finetune **finetune, dpi_error *err);
/* Wipes what it holds of the records. NULL is allowed. */
DPI_API void dpi_finetune_free(dpi_finetune *finetune);
/* What it guarantees: a claim of gradients, and of label_counts with a histogram; the object's own.
 */
DPI_API const dpi_claim *dpi_finetune_claim_of(const dpi_finetune *finetune);

/* Opens the checkpoint or, where there is none, charges the ledger and makes it; then reads the
 * records, and counts the units of each label if there is a histogram. Errors: BUDGET and those of
 * dpi_ledger_reserve; STATE (it has begun already; another process has the checkpoint; this rank
 * has other options or records than rank 0); FORMAT (a checkpoint of another configuration, or
 * whose charge is not in the ledger); ENTROPY (of the histogram), IO, MEMORY, CANCELLED. What was
 * charged before a failure stays charged. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_begin(dpi_finetune *finetune, dpi_error *err);

/* Seconds of a step in which n_expected units join with rows of n_positions, at most: by measured
 * gradients of made-up tokens. Before dpi_finetune_begin. Errors: MEMORY, ENTROPY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_measure(dpi_finetune *finetune, double *seconds,
                                                       dpi_error *err);

/* One step. Where the adapter would not be finite after it, it stays as it was, and the step is
 * done all the same: no failure depends on a record. Errors: ENTROPY, MEMORY, CANCELLED (the step
 * is undone), IO (the checkpoint), STATE (not begun; all steps are done). */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_step(dpi_finetune *finetune, dpi_error *err);
DPI_API int32_t dpi_finetune_steps_done(const dpi_finetune *finetune);
/* Of the steps of this object, those that left the adapter as it was: the learning rate is too
 * high. It follows from the sums with their noise, as the adapter does. */
DPI_API int32_t dpi_finetune_steps_unchanged(const dpi_finetune *finetune);
/* The epsilon at the claim's delta of the steps done so far, as if training ended here: before the
 * first one 0, or the histogram's. A ledger is charged for all steps. INFINITY: a step was done
 * without noise. .1 to 1 s. Errors: MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_spent(const dpi_finetune *finetune, double *epsilon,
                                                     dpi_error *err);
/* The mean loss in nats of a token of the held-out records, as the adapter is now: public, as both
 * are. No loss of private records is ever computed. It tells of the steps that were done, so the
 * checkpoint is written first. Errors: STATE (no held-out records), IO,
 * NUMERIC (none of them has a token), MEMORY, CANCELLED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_held_out(dpi_finetune *finetune, double *loss,
                                                        dpi_error *err);
/* Writes the checkpoint now, for a run that ends here. Errors: IO. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_keep(dpi_finetune *finetune, dpi_error *err);

/* The adapter as a GGUF file that llama.cpp and dpi_model_options.adapter read, with the claim in
 * its metadata; with full the whole model, its weights in the types of the base. fd as in
 * dpi_write_options; a weight that its type cannot hold is the largest that it can. Errors: STATE
 * (steps are left), IO, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_write(const dpi_finetune *finetune, const char *path,
                                                     int fd, dpi_error *err);

/* The claim in an adapter's file, or in that of a model of which all weights were trained, or that
 * an adapter was merged into, settled. It comes from anywhere: *holds is 1 if what the file says
 * follows from it, and its tensors are those that it says; dpi_claim_verify_file (report.h) tells
 * what is not. Errors: those of dpi_claim_verify_file. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_read_claim(const char *path, dpi_claim *claim,
                                                          int32_t *holds, dpi_error *err);

/* As dpi_model_merge (write.h), of a file in which the adapter's claim stands with the hash of the
 * weights that are written: dpi_finetune_read_claim and _read_task read it as that of the adapter.
 * Errors: also FORMAT (the adapter's claim does not hold), UNSUPPORTED (the model has a claim of
 * its own, which would be lost). */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_merge(const char *in_path, const char *adapter_path,
                                                     float adapter_scale, const char *out_path,
                                                     const dpi_write_options *options,
                                                     dpi_error *err);

/* How an adapter of dpi_finetune_write was trained to write: public, but from a file, of which
 * nothing is trusted. Strings are the struct's. */
typedef struct dpi_finetune_task {
    char *instruction; /* NULL: the default of prompt_texts.h */
    char *labels;      /* lines; NULL: none */
    char *attributes;  /* their names, with tabs between; NULL: none */
    int64_t *counts;   /* [n_counts] how many units have each label, with noise; NULL: none */
    int32_t n_counts;
    int32_t chat;      /* a dpi_chat, never AUTO */
} dpi_finetune_task;

/* *task is empty after a failure. Errors: IO, FORMAT, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_read_task(const char *path, dpi_finetune_task *task,
                                                         dpi_error *err);
DPI_API void dpi_finetune_task_free(dpi_finetune_task *task);
/* What the texts are, as in dpi_finetune_options and dpi_steer_options, where a file has that and
 * no instruction, and their n_text as in dpi_prompt_options. *description is the caller's, to free
 * with free; NULL: it has none. Errors: as above. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_read_description(const char *path,
                                                                char **description,
                                                                int32_t *n_text, dpi_error *err);

/* What the labels of a file stand for in prompts: lines as those of the labels, an empty one for a
 * label that stands for itself. *meanings is the caller's, to free with free; NULL: all do. Errors:
 * as above; FORMAT also where there are more or fewer lines than labels. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_read_meanings(const char *path, char **meanings,
                                                             dpi_error *err);

/* The key words of each label of steering vectors (dpi_steer_options.n_words): lines as those of
 * the labels, of words with spaces between. *words is the caller's, to free with free; NULL: it has
 * none. Errors: as above. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_read_words(const char *path, char **words,
                                                          dpi_error *err);

/* The instruction for one label: *text is the caller's, to free with free. The attributes are names
 * [n_attributes], and the label has a value of each, with tabs between. Errors: ARG (an attribute
 * that the instruction or the label does not have), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_finetune_instruction(const char *instruction,
                                                           const char *const *attributes,
                                                           int32_t n_attributes, const char *label,
                                                           char **text, dpi_error *err);

/* shares [n]: n_texts in proportion to counts, of which those below 0 are 0; as many of each where
 * all are. counts are below 2^31. */
DPI_API void dpi_finetune_share(const int64_t *counts, int32_t n, int32_t n_texts, int32_t *shares);

#ifdef __cplusplus
}
#endif
#endif
