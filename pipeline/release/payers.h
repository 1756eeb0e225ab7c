/* payers.h - units of records that pay each for itself, to a dataset of scope UNIT. All of it is
 * private. Internal. */
#ifndef DPI_RELEASE_PAYERS_H
#define DPI_RELEASE_PAYERS_H

#include <stdbool.h>

#include "dpinfer/claim.h"
#include "dpinfer/ledger.h"
#include "dpinfer/records.h"

/* What is charged, and to which units. */
typedef struct dpi_payers {
    const dpi_records *records;
    const uint8_t *in; /* [units] 1: the unit takes part; NULL: all of them */
    dpi_ledger *ledger;
    const char *dataset;
    dpi_charge_request *request; /* without its units */
    int64_t paid; /* above 0: not charged again. A process of the same job has made this charge, and
                     the ledger tells who has paid for it, wherever its records stand by now */
} dpi_payers;

/* A ledger that counts units recognises them by their IDs. Errors: ARG (records without). */
DPI_MUST_CHECK dpi_status dpi_payers_check(const dpi_payers *payers, dpi_error *err);

/* *pays [units], the caller's, freed with dpi_private_free: 1: the unit has paid; 0: it cannot, or
 * does not take part, or has no ID, and must be null. *charge is filled in if it is charged now.
 * Errors: those of dpi_payers_check, and of dpi_ledger_reserve or dpi_ledger_paid; MEMORY. */
DPI_MUST_CHECK dpi_status dpi_payers_charge(const dpi_payers *payers, uint8_t **pays,
                                            dpi_charge *charge, dpi_error *err);

/* What a ledger is asked for a claim: what it costs, whom that protects, and words for people. */
typedef struct dpi_claim_charge {
    dpi_charge_request request; /* without its units; points into this */
    dpi_cost cost;
    char note[DPI_CHARGE_NOTE_MAX + 1];
    char *claim; /* freed with dpi_claim_charge_free */
} dpi_claim_charge;

/* *charge, which must not move. records NULL: only the adjacency is known. It holds nothing after
 * an error. Errors: those of dpi_claim_cost and dpi_records_privacy_unit; MEMORY. */
DPI_MUST_CHECK dpi_status dpi_claim_charge_of(const dpi_claim *claim, const dpi_records *records,
                                              dpi_claim_charge *charge, dpi_error *err);
void dpi_claim_charge_free(dpi_claim_charge *charge);
/* The one charge of a claim, if there is a ledger: the claim has the sums before and after from
 * then on, *charge is its id, and *pays [units] as above with scope UNIT. Errors: also those of
 * dpi_claim_cost and dpi_ledger_info. */
DPI_MUST_CHECK dpi_status dpi_payers_charge_claim(const dpi_payers *payers, dpi_claim *claim,
                                                  uint8_t **pays, int64_t *charge, dpi_error *err);

/* What a claim says of a charge. */
void dpi_payers_keep(dpi_claim_ledger *ledger, const dpi_dataset_info *info,
                     const dpi_charge *charge);
/* A charge of which no record was read; *charge becomes 0, and 0 is none. If it fails, as it does
 * for units, the charge stays, which is safe: false. */
bool dpi_payers_give_back(dpi_ledger *ledger, int64_t *charge);

#endif
