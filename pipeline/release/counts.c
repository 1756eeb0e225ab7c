/* counts.c - see dpinfer/counts.h. The order is that of the proof: the charge is on the disk, then
 * groups are released, each once. */
#include "dpinfer/counts.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/exact/noise.h"
#include "dp/mechanism/noisy_counts.h"
#include "pipeline/release/payers.h"

struct dpi_counts {
    dpi_counts_info info;
    dpi_random_fn random;
    void *random_user;
};

DPI_STRUCT_DEFAULTS(dpi_counts_options, .n_groups = 1)

void dpi_counts_info_init_size(dpi_counts_info *info, size_t size) {
    dpi_counts_info made = {0};
    dpi_charge_init(&made.charge);
    dpi_struct_init(info, size, &made, sizeof made);
}

/* As a claim of counts has it (dp/mechanism/). */
static dpi_status settle(const dpi_counts_options *o, dpi_claim *c, dpi_counts_info *info,
                         dpi_error *err) {
    dpi_claim_init(c);
    c->adjacency = DPI_ADJACENCY_REPLACE_BY_NULL;
    c->record_kind = o->record_kind;
    c->delta = o->delta;
    dpi_claim_part *p = dpi_claim_add(c, "counts");
    p->n_runs = o->n_groups;
    p->values[DPI_COUNTS_EPSILON] = o->epsilon;
    DPI_TRY(dpi_claim_settle(c, err));
    info->n_groups = info->n_left = o->n_groups;
    info->variance = (int64_t)p->results[DPI_COUNTS_VARIANCE];
    info->rho = c->rho;
    info->epsilon = c->epsilon, info->delta = c->delta;
    info->deviation = sqrt((double)info->variance / 256);
    return DPI_STATUS_OK;
}

/* Charges all groups at once, before a record is read. */
static dpi_status charge(const dpi_counts_options *o, const dpi_claim *c, dpi_counts_info *info,
                         dpi_error *err) {
    dpi_claim_charge asked;
    if (!o->ledger)
        return DPI_STATUS_OK;
    if (!o->dataset)
        return dpi_fail(err, DPI_STATUS_ARG, "dataset: found none, needed with a ledger");
    DPI_TRY(dpi_claim_charge_of(c, NULL, &asked, err));
    asked.request.unit.is_record = 1;
    asked.request.unit.record_kind = o->record_kind;
    const dpi_status status =
        dpi_ledger_reserve(o->ledger, o->dataset, &asked.request, &info->charge, err);
    dpi_claim_charge_free(&asked);
    return status;
}

dpi_status dpi_counts_open(const dpi_counts_options *options, dpi_counts **counts, dpi_error *err) {
    *counts = NULL;
    DPI_COPY_STRUCT(dpi_counts_options, o, options, err);
    DPI_TRY(dpi_check_range("n_groups", o.n_groups, 1, DPI_COUNTS_GROUPS_MAX, err));
    dpi_counts *c = malloc(sizeof *c);
    if (!c)
        return dpi_no_memory(err, "counts");
    *c = (dpi_counts){.random = o.random, .random_user = o.random_user};
    dpi_counts_info_init(&c->info);
    dpi_claim claim;
    dpi_status status = settle(&o, &claim, &c->info, err);
    if (status == DPI_STATUS_OK)
        status = charge(&o, &claim, &c->info, err);
    if (status != DPI_STATUS_OK) {
        free(c);
        return status;
    }
    *counts = c;
    return DPI_STATUS_OK;
}

void dpi_counts_close(dpi_counts *counts) { free(counts); }

void dpi_counts_info_get(const dpi_counts *counts, dpi_counts_info *info) {
    dpi_struct_give(info, &counts->info, sizeof *info);
}

static dpi_status add_noise(dpi_counts *c, int64_t *cells, int32_t n, dpi_error *err) {
    for (int32_t i = 0; i < n; i++) {
        int64_t noise;
        DPI_TRY(dpi_noise_gaussian(c->info.variance, c->random, c->random_user, &noise, err));
        cells[i] += noise;
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_counts_release(dpi_counts *c, int64_t *cells, int32_t n, dpi_error *err) {
    dpi_status status = DPI_STATUS_OK;
    if (!cells || n < 1)
        return dpi_fail(err, DPI_STATUS_ARG, "cells: found %d, allowed 1 or more", (int)n);
    if (c->info.n_left == 0)
        status = dpi_fail(err, DPI_STATUS_STATE, "all %d groups were released",
                          (int)c->info.n_groups);
    if (status == DPI_STATUS_OK) {
        c->info.n_left--;
        status = add_noise(c, cells, n, err);
    }
    if (status != DPI_STATUS_OK)
        dpi_wipe(cells, (size_t)n * sizeof *cells);
    return status;
}
