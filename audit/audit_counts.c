/* audit_counts.c - counts with noise (dpinfer/counts.h): the noise is that of the
 * charge, each cell has its own, and there are no more groups than were charged. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "dpinfer/counts.h"
#include "audit/lines.h"

enum { N_GROUPS = 3, N_CELLS = 20000, TRUE_COUNT = 1000 };

static dpi_counts_options options_of(dpi_audit *a, const dpi_audit_ledger *ledger) {
    dpi_counts_options o;
    dpi_counts_options_init(&o);
    o.epsilon = 1;
    o.delta = 1e-4;
    o.n_groups = N_GROUPS;
    o.random = a->options.random;
    o.random_user = a->options.random_user;
    o.ledger = ledger->ledger;
    o.dataset = DPI_AUDIT_DATASET;
    return o;
}

/* rho that the ledger has of it. Nothing more fits. */
static dpi_status read_charge(dpi_audit *a, const dpi_audit_ledger *ledger, double *rho) {
    const dpi_counts_options o = options_of(a, ledger);
    dpi_dataset_info info;
    dpi_counts *other;
    DPI_TRY(dpi_audit_ledger_info(a, ledger, &info));
    *rho = (double)info.charged / DPI_LEDGER_ONE / info.order;
    const dpi_status status = dpi_counts_open(&o, &other, a->err);
    dpi_audit_hold(a, status == DPI_STATUS_BUDGET && !other,
                   "counts are released that the budget does not allow");
    dpi_counts_close(other);
    return DPI_STATUS_OK;
}

/* The noise of all groups. */
static dpi_status draw(dpi_audit *a, dpi_counts *c, int64_t *cells, dpi_audit_cells *noise) {
    uint64_t first[N_GROUPS];
    for (int g = 0; g < N_GROUPS; g++) {
        int64_t same = 0;
        for (int i = 0; i < N_CELLS; i++)
            cells[i] = TRUE_COUNT;
        DPI_TRY(dpi_counts_release(c, cells, N_CELLS, a->err));
        first[g] = 0;
        for (int i = 0; i < N_CELLS; i++) {
            const int64_t z = cells[i] - TRUE_COUNT;
            dpi_audit_cells_add(noise, z);
            same += i > 0 && cells[i] == cells[i - 1];
            first[g] = first[g] * 31 + (uint64_t)z;
        }
        dpi_audit_hold(a, same < N_CELLS / 4, "cells share their noise");
    }
    dpi_audit_hold(a, first[0] != first[1] && first[1] != first[2], "groups share their noise");
    cells[0] = TRUE_COUNT;
    dpi_audit_hold(a, dpi_counts_release(c, cells, 1, a->err) == DPI_STATUS_STATE && cells[0] == 0,
                   "more groups are released than were charged");
    return DPI_STATUS_OK;
}

/* It has variance N_GROUPS / (2 rho). */
static dpi_status audit_noise(dpi_audit *a, const dpi_audit_ledger *ledger, int64_t *cells) {
    const dpi_counts_options o = options_of(a, ledger);
    dpi_audit_cells noise = {.last = DPI_AUDIT_LAST};
    double rho = 0;
    dpi_counts *c;
    DPI_TRY(dpi_counts_open(&o, &c, a->err));
    dpi_status status = read_charge(a, ledger, &rho);
    if (status == DPI_STATUS_OK && dpi_audit_hold(a, rho > 0, "counts are not charged"))
        status = draw(a, c, cells, &noise);
    dpi_counts_close(c);
    if (status == DPI_STATUS_OK)
        dpi_audit_end_cells(a, &noise, dpi_audit_gaussian, N_GROUPS / (2 * rho));
    return status;
}

dpi_status dpi_audit_counts(dpi_audit *a) {
    dpi_audit_ledger ledger = {.ledger = NULL};
    if (!a->options.folder)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_audit_begin(a, "releases", "counts with noise, the charge"));
    int64_t *cells = malloc(N_CELLS * sizeof *cells);
    if (!cells)
        return dpi_no_memory(a->err, "an audit");
    /* Some room for one charge, not for two. */
    dpi_status status = dpi_audit_ledger_open(a, 1.2, DPI_SCOPE_DATASET, &ledger);
    if (status == DPI_STATUS_OK)
        status = audit_noise(a, &ledger, cells);
    dpi_audit_ledger_close(&ledger);
    free(cells);
    return status;
}
