/* ledger_support.h - what tests of ledgers share. */
#ifndef LEDGER_SUPPORT_H
#define LEDGER_SUPPORT_H

#include "dpinfer/ledger.h"
#include "tests/support/support.h"

/* R of (5, 1e-5) at its order 5, by 60-digit arithmetic: budget = floor(R 2^40). */
#define BUDGET_5 2.7472716631801777444

/* A ledger file in a folder of its own. */
typedef struct bench {
    char folder[256], path[300];
} bench;

void bench_make(bench *b);
void bench_remove(bench *b);

dpi_ledger *open_ledger(const char *path, int32_t create);
/* In a child process, where nothing of cmocka is called. */
dpi_status open_in_child(const char *path, dpi_ledger **ledger);
/* Adds "letters" with epsilon 5 at delta 1e-5. */
void add_letters(dpi_ledger *ledger, int32_t scope);
dpi_dataset_info info_of(dpi_ledger *ledger, const char *dataset);

/* Runs SQL on a file, past the library. */
void exec_sql(const char *path, const char *sql);
/* The file of form_1.h. */
void make_ledger_of_form_1(const char *path);

/* rho that costs exactly `amount` at order 5. */
double rho_of(int64_t amount);
dpi_status reserve_rho(dpi_ledger *ledger, const char *dataset, double rho, dpi_charge *charge,
                       dpi_error *err);
/* The sum of all charges that count, one by one. */
int64_t sum_charges(dpi_ledger *ledger, const char *dataset, int64_t *n);

#endif
