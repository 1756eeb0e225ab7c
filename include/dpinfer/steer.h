/* steer.h - steering vectors: in which direction the states of a model that reads private records
 * lie from those of public texts. They are released once, with noise; then any number of texts
 * costs nothing more. Part of libdpinfer_full.
 *
 *     dpi_steer_options_init(&options);            model, records, epsilon, delta, ...
 *     dpi_steer_open(&options, &steer, &err);      settles every number, reads no record
 *     dpi_steer_prepare(steer, &err);              reads public texts
 *     dpi_steer_release(steer, &err);              charges the ledger, then reads the records
 *     dpi_steer_write(steer, "steer.gguf", -1, &err);
 *
 * Each record is read as the continuation of a public instruction, or as an item of a list of such
 * texts. Its vector is, for each layer, the mean over its tokens of the residual stream, divided by
 * its root mean square, less the mean of that over public texts, in units of how far these lie from
 * their mean. A unit's is the mean of those of its records; it is clipped over all layers together
 * and added in integers, the sum gets discrete Gaussian noise once, and is divided by a public
 * number of units (dp/PRIVACY.md section 29). What is written can be added to the residual stream
 * after the same layers (dpi_model_options.control_vector, llama.cpp's --control-vector). Source:
 * EPSVec (arXiv 2602.21218), with the arithmetic in integers.
 *
 * The same seed, options and records give the same file, bit for bit, on the same instruction set,
 * with any number of threads. Errors say nothing of what is in a record. Threads: an object belongs
 * to one thread at a time. */
#ifndef DPINFER_STEER_H
#define DPINFER_STEER_H

#include "dpinfer/claim.h"
#include "dpinfer/ledger.h"
#include "dpinfer/model.h"
#include "dpinfer/records.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DPI_STEER_PER_UNIT_MAX = 64,
    DPI_STEER_PUBLIC_MAX = 4096,
    DPI_STEER_LABELS_MAX = 1024,
    DPI_STEER_WORDS = 1000, /* docs/results.md */
    DPI_STEER_WORDS_MAX = 1 << 14,
    DPI_STEER_KEY_WORDS = 12 /* most of a label that are given away */
};

/* The largest noise multiplier whose noise is drawn exactly; the least is DPI_GAUSSIAN_SIGMA_MIN
 * (gaussian.h). */
#define DPI_STEER_SIGMA_MAX 4096.0

typedef struct dpi_steer_options {
    size_t struct_size;
    const dpi_model *model;     /* without an adapter and a control vector of its own */
    const dpi_records *records; /* both must outlive the object */
    const dpi_records *public_texts; /* PUBLIC; must outlive the object; NULL (default): the model
                                        writes n_public of them itself, after the instruction */
    int32_t n_public;        /* of each label, 2..DPI_STEER_PUBLIC_MAX; default 64 */
    int32_t n_public_tokens; /* of each, at most; default 128 */
    dpi_bytes instruction; /* PUBLIC; what stands before each record; none: the default of
                              prompt_texts.h. Outlives the object */
    int32_t chat;          /* a dpi_chat; default AUTO */
    int32_t n_positions;   /* a longer instruction and record is cut at its end; default 256 */
    int32_t max_per_unit;  /* records of a unit that are used, its first ones; default 4 */
    const int32_t *layers; /* [n_layers] after which vectors are added, from 0, ascending, neither
                              the first nor behind the last; NULL (default): the middle one */
    int32_t n_layers;
    /* The budget. */
    int32_t adjacency; /* a dpi_adjacency; REPLACE_BY_NULL (default) or ADD_REMOVE */
    int64_t n_units;   /* with ADD_REMOVE about how many units there are, a public number; else 0
                          (default): they are counted */
    double epsilon;    /* 0 (default): sigma is given; INFINITY: no noise, NOT PRIVATE */
    double delta;      /* below 1 / units; default 1e-6 */
    double sigma;      /* noise multiplier, if epsilon is 0: .1..DPI_STEER_SIGMA_MAX */
    double clip;       /* of a unit's vector, in units of how far public texts lie from their mean,
                          above 0; default 1 */
    /* The run. */
    int32_t n_threads; /* 0 (default): the processors this process may use */
    int32_t isa;       /* a dpi_isa; default AUTO */
    int32_t seeded;    /* 1: random bits follow from seed, NOT PRIVATE */
    uint64_t seed;       /* with seeded */
    dpi_ledger *ledger;  /* NULL: none */
    const char *dataset; /* of the ledger; with scope UNIT records need IDs */
    dpi_cancel_fn cancel; /* between records; may be NULL */
    void *cancel_user;
    dpi_bytes description; /* PUBLIC; in place of the instruction: what the records are. Texts are
                              then items of a list, as those of a run that has a description
                              (dpi_wording_choose). Outlives the object */
    /* Where records have labels (records.h) each label has vectors of its own, with its own prompt,
     * which {label} must stand in, and its own public texts; a unit is in those of its label. With
     * REPLACE_BY_NULL which unit has which label is public, and vectors are divided by how many
     * units have the label. With ADD_REMOVE it is a secret: each label counts for as many of
     * n_units. */
    const char *const *labels; /* [n_labels] PUBLIC; a unit with another one adds nothing. NULL
                                  (default): those that units have; needed with ADD_REMOVE */
    int32_t n_labels;          /* 0..DPI_STEER_LABELS_MAX */
    int32_t rank; /* numbers that are released of each layer: those of the directions in which the
                     public texts differ most, so that there is less noise; at most one fewer than
                     there are of these texts, on average for each label, or all, n_embd. 0
                     (default): what the noise and the number of units ask for (docs/commands.md) */
    const char *const *label_meanings; /* [n_labels] PUBLIC strings of one line, what {label} stands
                                          for. NULL (default), and each that is NULL: the label
                                          (dpi_label_in_prompt) */
    int32_t n_words; /* with labels: so many words of the public texts, those that stand in most of
                        them, are asked for in the records too, in the same sum, which their part of
                        the clip pays for. The file has how often they stand there, for best_of.h,
                        and those that tell a label from the others, DPI_STEER_KEY_WORDS at most,
                        for prompts of `dpinfer generate`. -1 (default): DPI_STEER_WORDS with
                        labels, none without; 0: none; at most DPI_STEER_WORDS_MAX */
} dpi_steer_options;

DPI_API void dpi_steer_options_init_size(dpi_steer_options *options, size_t size);
#define dpi_steer_options_init(o) dpi_steer_options_init_size((o), sizeof *(o))

typedef struct dpi_steer dpi_steer;

/* Errors: ARG (the options, which the message names), UNSUPPORTED (a model that was trained on
 * records, or has an adapter, whose cost would not be counted; a ledger without a guarantee),
 * MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_steer_open(const dpi_steer_options *options,
                                                 dpi_steer **steer, dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_steer_free(dpi_steer *steer);

/* What is guaranteed; the object's own. */
DPI_API const dpi_claim *dpi_steer_claim(const dpi_steer *steer);

/* Public texts are written, if they are not given, and read. Errors: STATE (a second time), ARG
 * (public texts that are all alike, or null), CANCELLED, ENTROPY, IO, NUMERIC, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_steer_prepare(dpi_steer *steer, dpi_error *err);
/* The ledger is charged first. Errors: STATE (it was not prepared; a second time), those of
 * dpi_ledger_reserve, CANCELLED, IO, ENTROPY, MEMORY; what was charged stays charged. */
DPI_API DPI_MUST_CHECK dpi_status dpi_steer_release(dpi_steer *steer, dpi_error *err);
/* Labels (without labels 1: all) whose vectors are zeros after each layer, as the noise is all that
 * there is of them: they steer nothing. Of what was released; 0 before. */
DPI_API int32_t dpi_steer_drowned(const dpi_steer *steer);
/* The key words of each label, a line of words with spaces between, in the order of how much they
 * tell; a line may be empty. The object's own; NULL before the release, or without n_words. */
DPI_API const char *dpi_steer_words(const dpi_steer *steer);
/* The name of label i, the object's own; NULL: there are not so many. */
DPI_API const char *dpi_steer_label(const dpi_steer *steer, int32_t i);
/* The vectors with their claim. fd -1: a file of that name appears whole; else it is written to
 * that open file, which stays the caller's. Errors: STATE (nothing was released), IO, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_steer_write(dpi_steer *steer, const char *path, int fd,
                                                  dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
