/* train.h - training a small LLaMA model from scratch: the public interface of libdpinfer_full.
 *
 * libdpinfer_full.a holds libdpinfer.a as well: a program that trains links it instead.
 *
 *     dpi_train_config_init(&config);
 *     dpi_train_config_read("model.conf", &config, &err);    or fill in the struct
 *     dpi_train_create(&config, &train, &err);               data, weights, or a checkpoint
 *     dpi_train_run(train, &hooks, &err);
 *     dpi_train_export(train, "model.gguf", "Q8_0", &err);
 *
 * Conventions are those of dpinfer.h. The same configuration gives the same weights, bit for bit,
 * on the same instruction set, whatever the number of threads and however often the run was
 * killed and resumed. It relies on OpenBLAS, which dpi_train_create sets to one thread of its own
 * for the whole process: rows of a batch are computed in parallel here.
 *
 * NOT PRIVATE: this is pretraining on public text. The weights remember what they were trained on.
 */
#ifndef DPINFER_TRAIN_H
#define DPINFER_TRAIN_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Processes that train the same adapter (finetune.h): each computes the gradients of its share of
 * the units, and rank 0 alone draws. All of them call the same functions in the same order. What is
 * passed is private: ranks and the network between them are trusted (dp/PRIVACY.md section 18). */
typedef struct dpi_train_ranks {
    int32_t index, count; /* 0..count-1 */
    /* On rank 0 sums [n] become the sums over all ranks; on others they may become anything.
     * Errors: CANCELLED, IO. */
    dpi_status (*add)(void *user, int64_t *sums, int64_t n, dpi_error *err);
    /* All ranks get the bytes that rank 0 has. Errors: CANCELLED, IO. */
    dpi_status (*share)(void *user, void *data, size_t n_bytes, dpi_error *err);
    void *user;
} dpi_train_ranks;

enum { DPI_TRAIN_PATH = 1024, DPI_TRAIN_FILES = 8 };

/* Every member has a key of the same name in a configuration file; ranges are in settings.c, which
 * the error messages quote. */
typedef struct dpi_train_config {
    size_t struct_size;
    /* Data: JSON lines {"user": .., "assistant": ..}. Key `data` may be given several times. */
    char data[DPI_TRAIN_FILES][DPI_TRAIN_PATH];
    char heldout[DPI_TRAIN_PATH]; /* "" (default): none */
    /* Pieces and scores as sentencepiece writes them: "piece TAB score", the line is the id; with
     * <unk>, <s>, <|im_start|>, <|im_end|>, and <0x00>..<0xFF>. Or a GGUF file with such a
     * vocabulary. */
    char vocab[DPI_TRAIN_PATH];
    /* GGUF file of the same shape and vocabulary whose weights a new run starts from; "" (default):
     * random ones. */
    char init[DPI_TRAIN_PATH];
    char checkpoint[DPI_TRAIN_PATH]; /* resumed from if it is there */
    char output[DPI_TRAIN_PATH];     /* GGUF file, for the program; "": none */
    char output_type[16];            /* as dpi_write_options.type; default Q8_0 */
    char name[64];                   /* general.name of the model */
    /* What the model recommends for text without a mechanism, general.sampling.top_k and .temp; 0
     * (default): nothing. */
    int32_t sampling_top_k;
    double sampling_temp;
    /* Model. */
    int32_t n_layer, dim, n_head, n_kv_head, ffn;
    int32_t context; /* positions of a row, and the model's context_length */
    int32_t tied;    /* 1 (default): the output head is the embedding */
    double rope_theta;
    /* Optimisation: AdamW, a linear warm-up and a cosine from lr to lr_floor. */
    int32_t batch_tokens;    /* positions of a step; a multiple of context */
    int64_t steps;           /* 0: from epochs. May be changed when a run is resumed */
    double epochs;           /* 0: from steps */
    double lr, lr_floor;     /* peak; what the cosine ends at */
    int64_t decay_steps;     /* where it ends; 0 (default): at the last step */
    int64_t warmup;          /* steps */
    double beta1, beta2;
    double weight_decay;     /* of matrices, decoupled */
    double clip;             /* largest norm of the gradient; 0: no limit */
    double prompt_weight;    /* weight of the loss on prompt tokens; 0 (default): masked */
    uint64_t seed;
    /* The run. */
    int32_t threads;         /* 0 (default): the processors this process may use */
    int64_t checkpoint_steps; /* default 100 */
    int64_t heldout_steps;    /* default 200 */
    int64_t heldout_rows;     /* packed rows that are evaluated; 0: all; default 32 */
} dpi_train_config;

DPI_API void dpi_train_config_init_size(dpi_train_config *config, size_t size);
#define dpi_train_config_init(o) dpi_train_config_init_size((o), sizeof *(o))

/* Reads `key = value` lines; # begins a comment. Keys that are absent keep what *config holds.
 * Errors: IO; FORMAT: file, line, key, value and what is allowed. *config is then unspecified. */
DPI_API DPI_MUST_CHECK dpi_status dpi_train_config_read(const char *path, dpi_train_config *config,
                                                        dpi_error *err);

typedef struct dpi_train dpi_train;

/* Reads vocabulary and data, makes or resumes the weights. The directories of `checkpoint` and
 * `output` must exist. *train is the caller's.
 * Errors: ARG (a member, as in a file), IO, FORMAT (data, by file and line; a checkpoint that is
 * truncated, damaged or of another run), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_train_create(const dpi_train_config *config,
                                                   dpi_train **train, dpi_error *err);
DPI_API void dpi_train_free(dpi_train *train); /* NULL is allowed */

typedef struct dpi_train_info {
    size_t struct_size;
    int64_t n_params;
    int64_t n_examples, n_too_long; /* those longer than the context are left out */
    int64_t n_tokens;               /* positions of one epoch */
    int64_t n_heldout;              /* examples */
    int64_t n_rows;                 /* packed rows of the first epoch */
    int64_t step, steps;            /* done, in all */
    int32_t n_vocab, threads;
} dpi_train_info;

DPI_API void dpi_train_info_init_size(dpi_train_info *info, size_t size);
#define dpi_train_info_init(o) dpi_train_info_init_size((o), sizeof *(o))

/* Fills in *info, after dpi_train_info_init. Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_train_info_get(const dpi_train *train, dpi_train_info *info,
                                                     dpi_error *err);

/* One step. */
typedef struct dpi_train_progress {
    int64_t step, steps;  /* 1..steps */
    int64_t n_tokens;     /* positions of this step */
    double loss;          /* mean over weights, nats per token, before the update */
    double heldout_loss;  /* mean over the assistant's tokens; NaN: not evaluated after this step */
    double lr, grad_norm; /* norm before clipping */
    double seconds;       /* of the step, without evaluation and checkpoint */
    double operations;    /* of the step, two for each multiply and add */
    int32_t saved;        /* 1: a checkpoint was written after this step */
} dpi_train_progress;

typedef struct dpi_train_hooks {
    size_t struct_size;
    void (*on_step)(void *user, const dpi_train_progress *progress); /* may be NULL */
    dpi_cancel_fn cancel; /* between steps; may be NULL */
    void *user;
} dpi_train_hooks;

DPI_API void dpi_train_hooks_init_size(dpi_train_hooks *hooks, size_t size);
#define dpi_train_hooks_init(o) dpi_train_hooks_init_size((o), sizeof *(o))

/* Trains to the last step. Writes a checkpoint every checkpoint_steps, at the end and when it is
 * cancelled. Errors: NUMERIC (a loss that is not finite, by step), IO, CANCELLED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_train_run(dpi_train *train, const dpi_train_hooks *hooks,
                                                dpi_error *err);

/* Mean loss over the assistant's tokens of the held-out examples, end of turn included, in
 * nats, and how many tokens that is. max_rows 0: all. Errors: STATE (no held-out file). */
DPI_API DPI_MUST_CHECK dpi_status dpi_train_evaluate(dpi_train *train, int64_t max_rows,
                                                     double *loss, int64_t *n_tokens,
                                                     dpi_error *err);

/* Writes the model with its tokenizer and chat template. `type` as in dpi_write_options.
 * Errors: ARG, IO, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_train_export(const dpi_train *train, const char *path,
                                                   const char *type, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
