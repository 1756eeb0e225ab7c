/* own_ledger.c - the ledger of a job that was given none: a file in its folder with one dataset,
 * which this job fits and no other run beside it. It is made and charged before a record is read,
 * so that what the job has spent stands on the disk in the same form as everywhere else. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/status.h"
#include "pipeline/journal/journal.h"
#include "pipeline/ledger/amount.h"
#include "pipeline/release/release.h"

#define FILE_NAME "ledger"

/* ---- How large it is ------------------------------------------------------------------------- */

/* Whether the run fits a budget of epsilon at the order that such a budget has. */
static bool fits(const dpi_cost *cost, double epsilon, double delta) {
    int32_t order;
    double budget, divergence;
    return dpi_renyi_order(epsilon, delta, &order, NULL) == DPI_STATUS_OK &&
           dpi_renyi_budget(epsilon, delta, order, &budget, NULL) == DPI_STATUS_OK &&
           dpi_cost_renyi(cost, order, &divergence, NULL) == DPI_STATUS_OK &&
           dpi_ledger_amount_up(divergence) <= dpi_ledger_amount_down(budget);
}

/* The least epsilon that holds the run, to one part in 1000; 0: a ledger cannot count the run. No
 * order needs less than the least of all orders, so the search begins there. */
static double find_epsilon(const dpi_cost *cost, double delta) {
    const double most = 1e6, step = 1.001;
    double least = INFINITY;
    for (int32_t order = 2; order < 1 << 16; order += 1 + order / 4) {
        double divergence, epsilon;
        if (dpi_cost_renyi(cost, order, &divergence, NULL) == DPI_STATUS_OK &&
            dpi_renyi_epsilon(divergence, delta, order, &epsilon, NULL) == DPI_STATUS_OK &&
            epsilon < least)
            least = epsilon;
    }
    least = fmax(least / 1.1, 1e-6); /* not all orders were tried */
    for (; least < most; least *= step)
        if (fits(cost, least, delta))
            return least;
    return 0;
}

/* ---- The file -------------------------------------------------------------------------------- */

static dpi_status name_file(dpi_release *r, const char *folder, dpi_error *err) {
    free(r->own_path);
    if (asprintf(&r->own_path, "%s/" FILE_NAME, folder) < 0) {
        r->own_path = NULL;
        return dpi_no_memory(err, "the ledger of a job");
    }
    return DPI_STATUS_OK;
}

/* The file and the one that SQLite keeps beside it while it writes. */
static bool remove_files(const char *path) {
    char *journal;
    if (asprintf(&journal, "%s-journal", path) < 0)
        return false;
    bool ok = unlink(journal) == 0 || errno == ENOENT;
    ok = ok && (unlink(path) == 0 || errno == ENOENT);
    free(journal);
    return ok;
}

static dpi_status open_file(dpi_release *r, bool create, dpi_error *err) {
    dpi_ledger_options options;
    dpi_ledger_options_init(&options);
    options.create = create;
    DPI_TRY(dpi_ledger_open(r->own_path, &options, &r->own_ledger, err));
    r->options.ledger = r->own_ledger;
    r->options.dataset = DPI_DATASET_OF_JOB;
    return DPI_STATUS_OK;
}

/* A file that is there is that of a process that was stopped before the job began. It has read no
 * record, so that its charge has paid for nothing. */
static dpi_status make_file(dpi_release *r, double epsilon, dpi_error *err) {
    dpi_dataset_options dataset;
    dpi_dataset_options_init(&dataset);
    dataset.name = DPI_DATASET_OF_JOB;
    dataset.epsilon = epsilon;
    dataset.delta = r->claim.method.delta;
    if (!remove_files(r->own_path))
        return dpi_fail(err, DPI_STATUS_IO, "cannot remove %s: %s", r->own_path, dpi_reason(errno));
    DPI_TRY(open_file(r, true, err));
    return dpi_ledger_add(r->own_ledger, &dataset, err);
}

dpi_status dpi_release_own_ledger(dpi_release *r, const char *folder, dpi_error *err) {
    dpi_cost cost;
    if (r->options.ledger || r->options.charged)
        return DPI_STATUS_OK;
    DPI_TRY(name_file(r, folder, err));
    if (dpi_release_goes_on(r)) /* a job that has begun without one goes on without one */
        return access(r->own_path, F_OK) == 0 ? open_file(r, false, err) : DPI_STATUS_OK;
    if (dpi_claim_warning(&r->claim) || dpi_claim_cost(&r->claim, &cost, NULL) != DPI_STATUS_OK)
        return DPI_STATUS_OK;
    const double epsilon = find_epsilon(&cost, r->claim.method.delta);
    return epsilon > 0 ? make_file(r, epsilon, err) : DPI_STATUS_OK;
}

void dpi_release_end_ledger(dpi_release *r, bool keep) {
    if (r->own_ledger) {
        dpi_ledger_close(r->own_ledger);
        r->own_ledger = r->options.ledger = NULL;
        r->charge = 0;
        if (!keep)
            remove_files(r->own_path);
    }
    free(r->own_path);
    r->own_path = NULL;
}
