/* audit_counts.c - counts with noise (dpinfer/counts.h): the noise is that of the
 * charge, each cell has its own, and there are no more groups than were charged. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "dpinfer/counts.h"
#include "audit/lines.h"

enum { N_GROUPS = 3, N_CELLS = 20000, TRUE_COUNT = 1000, LAST = 12, REACH = 400 };

/* Some room for one charge, not for two. */
static dpi_status make_ledger(dpi_audit *a, const char *path, dpi_ledger **ledger) {
    dpi_ledger_options options;
    dpi_dataset_options dataset;
    dpi_ledger_options_init(&options);
    dpi_dataset_options_init(&dataset);
    options.create = 1;
    dataset.name = "made up";
    dataset.epsilon = 1.2;
    dataset.delta = 1e-4;
    DPI_TRY(dpi_ledger_open(path, &options, ledger, a->err));
    return dpi_ledger_add(*ledger, &dataset, a->err);
}

static dpi_counts_options options_of(dpi_audit *a, dpi_ledger *ledger) {
    dpi_counts_options o;
    dpi_counts_options_init(&o);
    o.epsilon = 1;
    o.delta = 1e-4;
    o.n_groups = N_GROUPS;
    o.random = a->options.random;
    o.random_user = a->options.random_user;
    o.ledger = ledger;
    o.dataset = "made up";
    return o;
}

/* rho that the ledger has of it. Nothing more fits. */
static dpi_status read_charge(dpi_audit *a, dpi_ledger *ledger, double *rho) {
    const dpi_counts_options o = options_of(a, ledger);
    dpi_dataset_info info;
    dpi_counts *other;
    dpi_dataset_info_init(&info);
    DPI_TRY(dpi_ledger_info(ledger, "made up", &info, a->err));
    *rho = (double)info.charged / DPI_LEDGER_ONE / info.order;
    const dpi_status status = dpi_counts_open(&o, &other, a->err);
    dpi_audit_hold(a, status == DPI_STATUS_BUDGET && !other,
                   "counts are released that the budget does not allow");
    dpi_counts_close(other);
    return DPI_STATUS_OK;
}

/* The noise of all groups into cells -LAST..LAST, what is beyond in the outer ones. */
static dpi_status draw(dpi_audit *a, dpi_counts *c, int64_t *cells, int64_t count[2 * LAST + 1]) {
    uint64_t first[N_GROUPS];
    for (int g = 0; g < N_GROUPS; g++) {
        int64_t same = 0;
        for (int i = 0; i < N_CELLS; i++)
            cells[i] = TRUE_COUNT;
        DPI_TRY(dpi_counts_release(c, cells, N_CELLS, a->err));
        first[g] = 0;
        for (int i = 0; i < N_CELLS; i++) {
            const int64_t z = cells[i] - TRUE_COUNT, w = z / 2;
            count[LAST + (w < -LAST ? -LAST : w > LAST ? LAST : w)]++;
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

/* Noise of variance N_GROUPS / (2 rho), from the definition; halves of z as it is drawn. */
static double chi_square(double rho, const int64_t count[2 * LAST + 1]) {
    const double variance = N_GROUPS / (2 * rho);
    double expected[2 * LAST + 1] = {0}, sum = 0, x = 0;
    for (int64_t z = -REACH; z <= REACH; z++)
        sum += exp(-(double)(z * z) / (2 * variance));
    for (int64_t z = -REACH; z <= REACH; z++) {
        const int64_t w = z / 2;
        expected[LAST + (w < -LAST ? -LAST : w > LAST ? LAST : w)] +=
            (double)N_GROUPS * N_CELLS * exp(-(double)(z * z) / (2 * variance)) / sum;
    }
    for (int i = 0; i < 2 * LAST + 1; i++)
        x += pow((double)count[i] - expected[i], 2) / expected[i];
    return x;
}

static dpi_status audit_noise(dpi_audit *a, dpi_ledger *ledger, int64_t *cells) {
    const dpi_counts_options o = options_of(a, ledger);
    int64_t count[2 * LAST + 1] = {0};
    double rho = 0;
    dpi_counts *c;
    DPI_TRY(dpi_counts_open(&o, &c, a->err));
    dpi_status status = read_charge(a, ledger, &rho);
    if (status == DPI_STATUS_OK && dpi_audit_hold(a, rho > 0, "counts are not charged"))
        status = draw(a, c, cells, count);
    dpi_counts_close(c);
    a->result.n_cases = N_GROUPS * N_CELLS;
    if (status == DPI_STATUS_OK)
        dpi_audit_end_chi_square(a, rho > 0 ? chi_square(rho, count) : 1e9, 2 * LAST);
    return status;
}

dpi_status dpi_audit_counts(dpi_audit *a) {
    char path[4096];
    dpi_ledger *ledger = NULL;
    if (!a->options.folder)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_audit_begin(a, "releases", "counts with noise, the charge"));
    int64_t *cells = malloc(N_CELLS * sizeof *cells);
    if (!cells)
        return dpi_no_memory(a->err, "an audit");
    snprintf(path, sizeof path, "%s/counts.ledger", a->options.folder);
    dpi_status status = make_ledger(a, path, &ledger);
    if (status == DPI_STATUS_OK)
        status = audit_noise(a, ledger, cells);
    dpi_ledger_close(ledger);
    unlink(path);
    free(cells);
    return status;
}
