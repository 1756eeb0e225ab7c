/* claim.h - what was done with records, and what that guarantees, as one record of all kinds of
 * work: a run, an evolution, a training, words that are replaced.
 *
 * A claim holds public facts alone: nothing in it depends on what is in a record. It has four
 * parts: whom the guarantee protects; the mechanisms that were used; what follows from both; what
 * binds it to the world. Its maker fills in the first two and the last, dpi_claim_settle the
 * rest. Statement, report, verification and a ledger's charge take a claim and nothing else. It is
 * written as JSON in one way, and read back strictly (dpi_claim_read). */
#ifndef DPINFER_CLAIM_H
#define DPINFER_CLAIM_H

#include "dpinfer/account.h"
#include "dpinfer/run.h"
#include "dpinfer/mechanism.h"
#include "dpinfer/wording.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DPI_CLAIM_PARTS_MAX = 4,
    DPI_MECHANISM_VALUES_MAX = 32,
    DPI_MECHANISM_RESULTS_MAX = 16,
    DPI_MECHANISM_TEXT_MAX = 79
};

/* A mechanism that was used. */
typedef struct dpi_claim_part {
    int32_t mechanism; /* its id (mechanism.h) */
    int32_t reserved;
    int64_t n_runs;    /* how often, 1..2^53 */
    double values[DPI_MECHANISM_VALUES_MAX]; /* of its parameters, in their order; a flag: 0 or 1; a
                                                choice: its index */
    char text[DPI_MECHANISM_TEXT_MAX + 1];   /* of its parameter of type TEXT; "": none */
    /* What follows, by dpi_claim_settle. */
    double rho;     /* of all runs, in zCDP; 0: no bound in zCDP is known */
    double epsilon; /* of all runs at the claim's delta, INFINITY: none */
    int32_t is_pure; /* 1: epsilon holds with delta 0 */
    int32_t n_cost;
    dpi_cost_part cost[2]; /* [n_cost] of all runs, as a ledger counts it */
    union {                    /* the mechanism's own */
        double results[DPI_MECHANISM_RESULTS_MAX];
        dpi_sampler_plan plan; /* of a token sampler (method.h) */
    };
} dpi_claim_part;

typedef struct dpi_claim {
    size_t struct_size;
    /* Whom it protects. */
    int32_t adjacency;    /* a dpi_adjacency */
    int32_t record_kind;  /* a dpi_record_kind */
    int32_t max_per_unit; /* records of a unit that are used; 0: each record is a unit of its own */
    int32_t labels, n_labels; /* a dpi_labels; 0: there are none */
    int32_t cluster_texts; /* labels are groups of similar records, and their centroids are found
                              from so many public texts; 0: they are not */
    int32_t no_records;    /* 1: no record was read: texts of a public prompt alone */
    int32_t released;      /* so many texts of the round before stand in the prompts of a text; 0:
                              there are no rounds */
    int64_t n_units;      /* 0: there are none, or their number is secret */
    double delta;         /* 0: pure */
    /* What was done, one after the other with the same units. */
    int32_t n_parts;
    int32_t randomness;   /* a dpi_randomness: of all mechanisms */
    dpi_claim_part parts[DPI_CLAIM_PARTS_MAX];
    /* What follows, by dpi_claim_settle: upper bounds. */
    double rho;           /* 0: no bound in zCDP is known */
    double epsilon;       /* at delta; INFINITY: none */
    /* What binds it. */
    int32_t pace_texts;      /* the pace was found from so many public texts; 0: it was given */
    int32_t pace_given;      /* a dpi_pace_given: what was not found from them, with pace_texts */
    char model_name[64];     /* without characters that steer a terminal or a line; "": none */
    char grammar[20];        /* dpi_grammar_digest in hexadecimal; "": none */
    char wording[DPI_DIGEST_HEX + 8]; /* SHA-256 of how texts are worded (wording.h), in
                                         hexadecimal; "": there is nothing to it */
    char prompts[DPI_DIGEST_HEX + 8]; /* SHA-256 of the prompts (dpi_release_prompts), in
                                         hexadecimal; "": there are none */
    dpi_claim_ledger ledger; /* filled in when it is charged */
    uint64_t room[8]; /* all 0: for what is to come */
} dpi_claim;

DPI_API void dpi_claim_init_size(dpi_claim *claim, size_t size);
#define dpi_claim_init(o) dpi_claim_init_size((o), sizeof *(o))

/* A part of a mechanism with each parameter at its default, n_runs 1; the claim's. NULL: there is
 * no room, or no such mechanism. */
DPI_API dpi_claim_part *dpi_claim_add(dpi_claim *claim, const char *mechanism);
/* The first part of a mechanism; NULL: there is none. */
DPI_API const dpi_claim_part *dpi_claim_find(const dpi_claim *claim, const char *mechanism);
/* A value by the parameter's key. ARG: there is no such parameter, or it is not in its range, which
 * the message has. dpi_claim_value: NaN without such a parameter. */
DPI_API DPI_MUST_CHECK dpi_status dpi_claim_set(dpi_claim_part *part, const char *key,
                                                double value, dpi_error *err);
/* The same from a text: a decimal number, 0 or 1, the name of a choice, or what a TEXT is. */
DPI_API DPI_MUST_CHECK dpi_status dpi_claim_set_text(dpi_claim_part *part, const char *key,
                                                     const char *text, dpi_error *err);
DPI_API double dpi_claim_value(const dpi_claim_part *part, const char *key);

/* Binds the claim to how its texts are worded. Errors: ARG (the wording), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_claim_bind_wording(dpi_claim *claim,
                                                         const dpi_wording *wording,
                                                         dpi_error *err);

/* The part that draws tokens, and its options as a sampler takes them: n_ref is B, random NULL.
 * NULL: no part does, or a value of it is out of range. */
DPI_API const dpi_claim_part *dpi_claim_sampler(const dpi_claim *claim,
                                                dpi_sampler_options *options);
/* 1: records are hashed or drawn to batches. How many there are, and how many a batch has, is then
 * secret, and B is what sums are divided by. 0: batches by position, or there are none. */
DPI_API int32_t dpi_claim_is_assigned(const dpi_claim *claim);
/* How the texts of a run, and runs, add up. Static. */
DPI_API const char *dpi_claim_composition(const dpi_claim *claim);

/* Checks that work can have been done as the claim says (ranges, combinations, delta against the
 * number of units) and fills in what follows, the ledger's sums too where it has a dataset. Errors:
 * ARG, UNSUPPORTED, BUDGET, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_claim_settle(dpi_claim *claim, dpi_error *err);

/* 1: the guarantee holds: there is one, and the randomness is secret. */
DPI_API int32_t dpi_claim_is_private(const dpi_claim *claim);
/* Why it does not, static; NULL if it does. */
DPI_API const char *dpi_claim_warning(const dpi_claim *claim);
/* "PRIVATE", or "NOT PRIVATE: " and why. As snprintf. */
DPI_API size_t dpi_claim_label(const dpi_claim *claim, char *text, size_t size);
/* "0.5-zCDP, and so (5.2, 1e-06)-DP", or only the second; rounded up. As snprintf. */
DPI_API size_t dpi_claim_guarantee(const dpi_claim *claim, char *text, size_t size);
/* What a ledger counts of all of it. Errors: UNSUPPORTED (no part of it can be counted), ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_claim_cost(const dpi_claim *claim, dpi_cost *cost,
                                                 dpi_error *err);

/* The statement as facts, in their order: facts [DPI_CLAIM_FACTS_MAX], *n_facts of them; and as
 * lines of text, from "Privacy statement" on, a string that the caller frees with free. complete 0:
 * the work stopped early. Errors: MEMORY. */
DPI_API void dpi_claim_facts(const dpi_claim *claim, dpi_fact *facts, size_t *n_facts);
DPI_API DPI_MUST_CHECK dpi_status dpi_claim_statement(const dpi_claim *claim, int32_t complete,
                                                      char **text, dpi_error *err);

/* The claim as JSON without what follows from it: a string that the caller frees with free; of one
 * claim always the same bytes, and numbers read back to the same bits. Errors: MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_claim_write(const dpi_claim *claim, char **json,
                                                  dpi_error *err);
/* The claim as a ledger has it: without what it says of a ledger. The same otherwise. */
DPI_API DPI_MUST_CHECK dpi_status dpi_claim_charged(const dpi_claim *claim, char **json,
                                                    dpi_error *err);
/* What dpi_claim_write has written back, settled. It comes from anywhere: a key that is missing,
 * not known, twice there, of another type or out of range is refused by its name. Errors: FORMAT,
 * LIMIT (more than 64 KiB), MEMORY; those of dpi_claim_settle (no work can have been done so). */
DPI_API DPI_MUST_CHECK dpi_status dpi_claim_read(const char *json, size_t n_bytes,
                                                 dpi_claim *claim, dpi_error *err);

/* ---- The claim of a run ------------------------------------------------------------------- */

/* *claim of a run that is settled, with what follows. */
DPI_API void dpi_claim_of_run(const dpi_run *run, dpi_claim *claim);
/* Everything that the guarantee rests on, in the order of the statement: facts
 * [DPI_CLAIM_FACTS_MAX], *n_facts of them. Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_run_facts(const dpi_run *run, dpi_fact *facts,
                                                size_t *n_facts, dpi_error *err);
/* The statement as lines of text, from "Privacy statement" on, a string that the caller frees with
 * free. complete 0: says that the run stopped early, which changes no cost. Errors: ARG, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_run_statement(const dpi_run *run, int32_t complete,
                                                    char **text, dpi_error *err);
/* "0.5-zCDP, and so (5.2, 1e-06)-DP", or only the second; rounded up. As snprintf. */
DPI_API size_t dpi_run_guarantee(const dpi_run *run, char *text, size_t size);
/* What a ledger counts of the whole run. Errors: UNSUPPORTED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_run_cost(const dpi_run *run, dpi_cost *cost,
                                               dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
