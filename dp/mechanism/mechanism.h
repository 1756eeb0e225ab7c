/* mechanism.h - what a mechanism has to say of itself. Internal.
 *
 * A MECHANISM IS A FILE OF ITS OWN, dp/mechanism/NAME.c, that defines
 * `const dpi_mechanism_ops dpi_mechanism_NAME`; the build makes the registry from the names of the
 * files (mechanisms.inc). Its theorem is in dp/PRIVACY.md. Plan, claim, statement, report,
 * verification, ledger and completion follow from the description. */
#ifndef DPI_MECHANISM_MECHANISM_H
#define DPI_MECHANISM_MECHANISM_H

#include <stdbool.h>

#include "dpinfer/claim.h"

/* The list of facts that a statement is made of. */
typedef struct dpi_facts {
    dpi_fact *facts; /* [DPI_CLAIM_FACTS_MAX] */
    size_t n;
} dpi_facts;

/* A fact for people and for programs; key NULL: for people alone, label NULL: for programs alone.
 * _REALISED facts stand in the section `follows` of a report too. */
dpi_fact *dpi_facts_add(dpi_facts *facts, const char *key, const char *label, int32_t type,
                        int32_t where);
void dpi_facts_int(dpi_facts *facts, const char *key, const char *label, int64_t value);
void dpi_facts_real(dpi_facts *facts, const char *key, const char *label, double value);
void dpi_facts_bound(dpi_facts *facts, const char *key, const char *label, double value);
void dpi_facts_flag(dpi_facts *facts, const char *key, const char *label, int32_t value);
__attribute__((format(printf, 4, 5))) void dpi_facts_text(dpi_facts *facts, const char *key,
                                                          const char *label, const char *format,
                                                          ...);

/* Labels of a claim that has some, and what they are to this mechanism. */
void dpi_facts_labels(dpi_facts *facts, const dpi_claim *claim, const char *what);

enum { DPI_ASSUMPTIONS_MAX = 6 };
struct dpi_text; /* base/text.h */

/* Parts of a claim that only some mechanisms use. */
enum {
    DPI_USES_UNITS = 1,   /* records of a kind, and how many units there are */
    DPI_USES_DELTA = 2,
    DPI_USES_LABELS = 4,
    DPI_USES_MODEL = 8,
    DPI_USES_FORM = 16,   /* of texts that are written: grammar and wording */
    DPI_USES_PROMPTS = 32,
    DPI_USES_PACE = 64
};

/* Kinds of mechanisms that come first in a claim, as those behind them name them. */
enum {
    DPI_BEHIND_NOTHING = 1,
    DPI_BEHIND_SAMPLER = 2, /* a token sampler with a guarantee */
    DPI_BEHIND_TRAINING = 4,
    DPI_BEHIND_VECTORS = 8
};

/* How a mechanism releases numbers of records by itself (dpinfer/statistic.h). */
typedef struct dpi_statistic_ops {
    /* How many numbers there are, and what number i is called, as snprintf: from the part alone. */
    int32_t (*count)(const dpi_claim_part *part);
    void (*name)(const dpi_claim_part *part, int32_t i, char *text, size_t size);
    /* Adds what one record adds to the true numbers: a function of the record and the part alone.
     * It is not called for a record that is null, which adds nothing. */
    void (*add)(const dpi_claim_part *part, const char *record, size_t n_bytes, int64_t *numbers);
    /* Makes released numbers of true ones. The part is settled. Errors: ENTROPY. */
    dpi_status (*release)(const dpi_claim_part *part, dpi_random_fn random, void *user,
                          int64_t *numbers, int32_t n, dpi_error *err);
} dpi_statistic_ops;

typedef struct dpi_mechanism_ops {
    dpi_mechanism_info info;
    const struct dpi_method_ops *sampler; /* a token sampler, whose name, words and parameters are
                                             those of its method, and whose hooks are those of
                                             samplers.h; else NULL */
    const dpi_parameter *const *parameters; /* ended by NULL; at most DPI_MECHANISM_VALUES_MAX */
    uint32_t adjacencies; /* bits 1 << dpi_adjacency: those that it is proven for */
    bool has_records; /* it takes several records of a unit: max_per_unit may be above 0 */
    uint32_t uses;    /* bits of DPI_USES_UNITS, ..; of a token sampler they follow from its method,
                         and so does `leads` */
    uint32_t leads;   /* the bit of DPI_BEHIND_SAMPLER, .. that it is, where it comes first; 0: it
                         stands alone */
    uint32_t behind;  /* bits of what it may stand behind; 0: it comes first */
    const char *accounting; /* how it is counted: "zCDP of histograms, one after the other"; NULL:
                               its facts say it */
    const char *output;     /* what is released: "all tokens of all texts" */
    const char *const *assumptions; /* ended by NULL: what its cost rests on, in sentences. NULL:
                                       `assume` says it */
    void (*assume)(const dpi_claim *claim, const dpi_claim_part *part,
                   const char *list[DPI_ASSUMPTIONS_MAX + 1]);
    /* What was done, in plain words: whole sentences for somebody who knows no epsilon. */
    void (*done)(const dpi_claim *claim, const dpi_claim_part *part, struct dpi_text *text);
    /* What is more than ranges; fills rho, epsilon, is_pure, cost and results of the part, whose
     * values are in their ranges. Errors: ARG, UNSUPPORTED, BUDGET, MEMORY. */
    dpi_status (*settle)(const dpi_claim *claim, dpi_claim_part *part, dpi_error *err);
    /* Adds what the part costs a ledger, where that is more than its cost list: NULL: it is not. */
    dpi_status (*cost)(const dpi_claim *claim, const dpi_claim_part *part, dpi_cost *cost,
                       dpi_error *err);
    /* Why there is no guarantee, static; NULL: there is one. May be NULL: there always is. */
    const char *(*warning)(const dpi_claim *claim, const dpi_claim_part *part);
    const dpi_statistic_ops *statistic; /* NULL: another part of the program draws */
    /* Its lines of the statement, beside those of its parameters with a label. */
    void (*facts)(const dpi_claim *claim, const dpi_claim_part *part, dpi_facts *facts);
} dpi_mechanism_ops;

/* ---- What a part of a claim says: its mechanism's hooks (claim_parts.c) ---------------------- */

dpi_status dpi_part_settle(const dpi_claim *claim, dpi_claim_part *part, dpi_error *err);
/* Adds what it costs a ledger. Errors: UNSUPPORTED (that cannot be counted), LIMIT. */
dpi_status dpi_part_cost_add(const dpi_claim *claim, const dpi_claim_part *part, dpi_cost *cost,
                             dpi_error *err);
/* NULL: there is a guarantee. */
const char *dpi_part_warning(const dpi_claim *claim, const dpi_claim_part *part);
void dpi_part_facts(const dpi_claim *claim, const dpi_claim_part *part, dpi_facts *facts);
/* Bits of DPI_USES_UNITS, .. of all parts; the bit of DPI_BEHIND_SAMPLER, .. that one is, or 0. */
uint32_t dpi_claim_uses(const dpi_claim *claim);
uint32_t dpi_part_leads(const dpi_claim_part *part);
/* Ended by NULL: static sentences, or `list`. */
const char *const *dpi_part_assumptions(const dpi_claim *claim, const dpi_claim_part *part,
                                        const char *list[DPI_ASSUMPTIONS_MAX + 1]);
void dpi_part_done(const dpi_claim *claim, const dpi_claim_part *part, struct dpi_text *text);

/* ---- The registry ---------------------------------------------------------------------------- */

/* NULL if there is no such mechanism. */
const dpi_mechanism_ops *dpi_mechanism_ops_get(int32_t id);
/* The name of one that there is. */
const char *dpi_mechanism_name(int32_t id);

/* A part whose output is the tensors of a file has their SHA-256 as its text, or "" before they are
 * made: texts are of what is there. Errors: ARG. */
dpi_status dpi_part_check_tensors(const dpi_claim *claim, const dpi_claim_part *part,
                                  dpi_error *err);

/* Adds to what a part costs a ledger. */
void dpi_part_cost(dpi_claim_part *part, int32_t kind, int64_t n, double x, double q);

#endif
