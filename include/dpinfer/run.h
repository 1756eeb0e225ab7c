/* run.h - the settled numbers of a run: what a release settles before it reads a record.
 *
 * They are public facts alone: nothing in them depends on what is in a record. What is said of a
 * run (statement, report, verification, a ledger's charge) is said of its claim (claim.h), which
 * is made of them. */
#ifndef DPINFER_RUN_H
#define DPINFER_RUN_H

#include "dpinfer/account.h"
#include "dpinfer/registry.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DPI_DIGEST_HEX = 64 }; /* digits of a SHA-256 */

/* What one record is. */
typedef enum dpi_record_kind {
    DPI_RECORD_OTHER = 0, /* from memory, or not known */
    DPI_RECORD_FILE = 1,  /* a .txt file of a folder */
    DPI_RECORD_LINE = 2,  /* a line of a .jsonl file */
    DPI_RECORD_ROW = 3    /* a row of a .csv file */
} dpi_record_kind;

/* "one .txt file"; NULL for a kind that is not in the list. Static. */
DPI_API const char *dpi_record_kind_text(int32_t kind);

/* Where the random bits of the mechanism come from. */
typedef enum dpi_randomness {
    DPI_RANDOMNESS_SYSTEM = 0, /* getrandom(2), fresh for every token */
    DPI_RANDOMNESS_SEED = 1    /* anything else: whoever knows it can undo the mechanism */
} dpi_randomness;

/* What is known of labels (records.h). */
typedef enum dpi_labels {
    DPI_LABELS_NONE = 0,
    DPI_LABELS_PUBLIC = 1, /* which unit has which is public: batches by position within a label */
    DPI_LABELS_PRIVATE = 2 /* a unit is assigned to one of its label's batches; which labels there
                              are and their numbers of texts follow from no record, but by a
                              histogram */
} dpi_labels;

/* "public", "private"; NULL for another value. Static. */
DPI_API const char *dpi_labels_name(int32_t labels);

/* What a ledger counts of a run, at its dataset's order; amounts as in ledger.h. */
typedef struct dpi_claim_ledger {
    char dataset[64]; /* "": the run is in no ledger */
    double epsilon, delta;
    int32_t scope, order; /* scope: a dpi_scope */
    int64_t budget, charge;
    int64_t before; /* charged before the run; with scope UNIT what one unit was charged at most */
} dpi_claim_ledger;

/* Of theta and the quota of a pace, that which the operator gave. */
typedef enum dpi_pace_given {
    DPI_PACE_GIVEN_NONE = 0,
    DPI_PACE_GIVEN_THETA = 1,
    DPI_PACE_GIVEN_TOKENS = 2
} dpi_pace_given;

/* "pace_theta", "pace_tokens"; NULL for another value. Static. */
DPI_API const char *dpi_pace_given_name(int32_t given);

/* Steering vectors of the same records, with which texts are drawn: a mechanism of its own
 * (steer.h), whose cost adds up with that of the texts. */
typedef struct dpi_run_steering {
    double sigma, clip;           /* noise multiplier; longest vector of a unit */
    int32_t layers;               /* that have a vector; 0: there are none */
    int32_t width;                /* numbers of each */
    uint8_t tensors[DPI_DIGEST_HEX / 2]; /* SHA-256 of vectors and words */
} dpi_run_steering;

/* Made by dpi_run_init, filled in, settled; a value without owned memory. */
typedef struct dpi_run {
    size_t struct_size;
    /* Method, its parameters, budget, adjacency, accountant, B (as denominator), T (as n_tokens), k
     * and tau. random is NULL: see randomness; n_ref is B. */
    dpi_sampler_options method;
    dpi_sampler_plan plan; /* what the budget comes to; 0 for PLAIN */
    int32_t n_texts;
    int32_t record_kind;      /* a dpi_record_kind: what the guarantee protects one of */
    int64_t n_records;        /* units, if method.max_per_unit; 0: there are none, or their number
                                 is secret */
    int32_t record_in_prompt; /* 0: only PLAIN, from the public prompt alone */
    int32_t randomness;       /* a dpi_randomness */
    int32_t pace_texts;       /* the pace was found from so many public texts; 0: it was given */
    int32_t pace_given;       /* a dpi_pace_given: what was not found from them, with pace_texts */
    int32_t random_weights;   /* 1: the model says that its weights are random (timing only) */
    int32_t labels;          /* a dpi_labels */
    int32_t n_labels;        /* 0: there are none */
    int32_t cluster_texts;   /* labels are groups of similar records, and their centroids are found
                                from so many public texts; 0: they are not */
    int32_t histogram;       /* of units per label: variance of its discrete Gaussian noise in units
                                of 1/256; 0: there is none. What it costs is not in `plan` */
    int32_t released;         /* so many texts of the round before stand in the prompts of a text;
                                 0: there are no rounds */
    char grammar[20];         /* dpi_grammar_digest of that which texts are held to, in hexadecimal;
                                 "": there is none */
    char wording[DPI_DIGEST_HEX + 8]; /* SHA-256 of how texts are worded (wording.h), in
                                 hexadecimal; "": there is nothing to it */
    char prompts[DPI_DIGEST_HEX + 8]; /* SHA-256 of the prompts (dpi_release_prompts), in
                                 hexadecimal; "": not known */
    char model_name[64];      /* a string without characters that steer a terminal or a line */
    int32_t steering_rank;    /* of a steering vector so many numbers were released, those of public
                                 directions; 0: all */
    dpi_claim_ledger ledger; /* filled in when the run is charged */
    dpi_run_steering steering;
    int32_t steering_words; /* with steering vectors units were asked for so many words of public
                               texts, for each label; 0: for none */
    int32_t room[1]; /* all 0: for what is to come */
} dpi_run;

/* One text by the default method. */
DPI_API void dpi_run_init_size(dpi_run *run, size_t size);
#define dpi_run_init(o) dpi_run_init_size((o), sizeof *(o))

/* Makes the plan of a run of which the rest is filled in, and checks that there can be such a run:
 * ranges, delta against the number of records (secret: against the B * n_texts that are
 * expected, by q with subsample), texts against records.
 * Errors: ARG, UNSUPPORTED, BUDGET, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_run_settle(dpi_run *run, dpi_error *err);
/* Only the checks, for a plan that is already there. Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_run_check(const dpi_run *run, dpi_error *err);

/* 1: records are hashed or drawn to batches. How many there are, and how many a batch has, is then
 * secret, and B is what sums are divided by. 0: batches by position. */
DPI_API int32_t dpi_run_is_assigned(const dpi_run *run);
/* 1: a unit is all records with one ID; 0: each record is its own. */
DPI_API int32_t dpi_run_has_units(const dpi_run *run);
/* 1: the method has a guarantee, as long as its randomness is secret. */
DPI_API int32_t dpi_run_is_proven(const dpi_run *run);
/* 1: the guarantee holds: the method has one, and the randomness is secret. */
DPI_API int32_t dpi_run_is_private(const dpi_run *run);
/* Why it does not hold, static; NULL if it does. */
DPI_API const char *dpi_run_warning(const dpi_run *run);
/* rho and epsilon of the whole run, the histogram included. */
DPI_API double dpi_run_rho(const dpi_run *run);
DPI_API double dpi_run_epsilon(const dpi_run *run);
/* rho of the histogram, rounded up; 0: there is none. */
DPI_API double dpi_run_histogram_rho(const dpi_run *run);
/* "PRIVATE", or "NOT PRIVATE: " and why. As snprintf. */
DPI_API size_t dpi_run_label(const dpi_run *run, char *text, size_t size);

/* ---- Its words, static strings --------------------------------------------------------------- */

#define DPI_CLAIM_FACTS_MAX 64

/* The value of a fact, as people read it: numbers with 10 digits. As snprintf. */
DPI_API size_t dpi_fact_text(const dpi_fact *fact, char *text, size_t size);

/* Of a dpi_adjacency: "replace-by-null"; what it means is dpi_method_neighbours. */
DPI_API const char *dpi_adjacency_name(int32_t adjacency);

/* `value` with `digits` significant digits (1..17), rounded up: how a bound is shown. */
DPI_API void dpi_bound_text(double value, int32_t digits, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
