/* own_ledger.c - the ledger of a job that was given none: a file in its folder with one dataset,
 * which this job fits and no other run beside it. It is made and charged before a record is read,
 * so that what the job has spent stands on the disk in the same form as everywhere else. See
 * books.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/status.h"
#include "pipeline/ledger/amount.h"
#include "pipeline/release/books.h"

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

static dpi_status name_file(dpi_books *b, const char *folder, dpi_error *err) {
    free(b->own_path);
    if (asprintf(&b->own_path, "%s/" FILE_NAME, folder) < 0) {
        b->own_path = NULL;
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

static dpi_status open_file(dpi_books *b, bool create, dpi_error *err) {
    dpi_ledger_options options;
    dpi_ledger_options_init(&options);
    options.create = create;
    DPI_TRY(dpi_ledger_open(b->own_path, &options, &b->ledger, err));
    b->owns_ledger = true;
    b->dataset = DPI_DATASET_OF_JOB;
    return DPI_STATUS_OK;
}

/* A file that is there is that of a process that was stopped before the job began. It has read no
 * record, so that its charge has paid for nothing. */
static dpi_status make_file(dpi_books *b, double epsilon, dpi_error *err) {
    dpi_dataset_options dataset;
    dpi_dataset_options_init(&dataset);
    dataset.name = DPI_DATASET_OF_JOB;
    dataset.epsilon = epsilon;
    dataset.delta = b->plan->claim.method.delta;
    if (!remove_files(b->own_path))
        return dpi_fail(err, DPI_STATUS_IO, "cannot remove %s: %s", b->own_path, dpi_reason(errno));
    DPI_TRY(open_file(b, true, err));
    return dpi_ledger_add(b->ledger, &dataset, err);
}

dpi_status dpi_books_own_ledger(dpi_books *b, const char *folder, dpi_error *err) {
    dpi_cost cost;
    if (b->ledger || b->plan->options.charged)
        return DPI_STATUS_OK;
    DPI_TRY(name_file(b, folder, err));
    if (dpi_books_goes_on(b)) /* a job that has begun without one goes on without one */
        return access(b->own_path, F_OK) == 0 ? open_file(b, false, err) : DPI_STATUS_OK;
    const dpi_run *c = &b->plan->claim;
    if (dpi_run_warning(c) || dpi_run_cost(c, &cost, NULL) != DPI_STATUS_OK)
        return DPI_STATUS_OK;
    const double epsilon = find_epsilon(&cost, c->method.delta);
    return epsilon > 0 ? make_file(b, epsilon, err) : DPI_STATUS_OK;
}

void dpi_books_end_ledger(dpi_books *b, bool keep) {
    if (b->owns_ledger) {
        dpi_ledger_close(b->ledger);
        b->ledger = NULL;
        b->owns_ledger = false;
        b->charge = 0;
        if (!keep)
            remove_files(b->own_path);
    }
    free(b->own_path);
    b->own_path = NULL;
}
