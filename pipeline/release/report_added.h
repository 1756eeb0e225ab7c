/* report_added.h - what a report has beside its claim: fields of the operator, the output, charges
 * of the ledger. All of it is believed by a reader; the output can be hashed a second time.
 * Internal. */
#ifndef DPI_RELEASE_REPORT_ADDED_H
#define DPI_RELEASE_REPORT_ADDED_H

#include <jansson.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdint.h>

#include "dpinfer/claim.h"

enum { DPI_REPORT_BINS = 20, DPI_REPORT_LABELS_MAX = 256, DPI_REPORT_CHARGES_MAX = 400 };

typedef struct dpi_report_added {
    json_t *meta;    /* name: text; never NULL */
    json_t *charges; /* [{"date", "method", "charge", "after"}] of the ledger, oldest first */
    json_t *wording; /* of the texts, in full; null where there is nothing to it */
    json_t *prompts; /* in full; null where the report is not to have them */
    json_t *labels;  /* label: number of texts; empty without labels */
    struct sha256_ctx digest; /* of the output so far */
    int64_t n_bytes, n_texts, n_tokens, n_ended;
    int64_t n_unknown;    /* texts whose tokens nobody counted */
    int32_t n_at_max_words, n_alike; /* of all texts; -1: nobody counted them */
    int64_t n_text_bytes; /* -1: the form of the output is not said */
    bool is_file;         /* the digest is that of a whole file */
    bool jsonl;
    int64_t lengths[DPI_REPORT_BINS]; /* texts by their tokens, in equal steps up to T */
    json_t *recorded;                 /* parsed: the section `output`; else NULL */
} dpi_report_added;

/* False: out of memory. dpi_report_added_free in any case. */
bool dpi_report_added_init(dpi_report_added *added);
void dpi_report_added_free(dpi_report_added *added);

/* The section `output`; null where nothing was written. NULL if out of memory. */
json_t *dpi_report_output_json(const dpi_report_added *added, const dpi_claim *claim);

/* The sections `meta`, `charges` and `output` of a parsed report. False: malformed, or out of
 * memory. */
bool dpi_report_added_read(dpi_report_added *added, const json_t *report);

/* The section `wording` of a parsed report. Errors: as dpi_wording_of_json. */
dpi_status dpi_report_added_wording(dpi_report_added *added, const json_t *report, dpi_error *err);
/* The section `prompts` of a parsed report. Errors: FORMAT. */
dpi_status dpi_report_added_prompts(dpi_report_added *added, const json_t *report, dpi_error *err);

/* How many texts a file with an empty line between them has, from its bytes and those of the
 * texts. */
int64_t dpi_report_texts_between(int64_t n_bytes, int64_t n_text_bytes);
/* Whether a run with this claim, which is settled, can have written the parsed `output`;
 * `complete`: to its end. */
bool dpi_report_output_fits(const dpi_report_added *added, const dpi_claim *claim, bool complete);
/* Whether work with this claim can have the parsed `wording` and `prompts`. */
bool dpi_report_wording_fits(const dpi_report_added *added, const dpi_claim *claim);
/* Whether the parsed `charges` can be those of the claim's dataset, with the one for this claim. */
bool dpi_report_charges_fit(const dpi_report_added *added, const dpi_claim *claim);

#endif
