/* ledger_support.h - what tests of ledgers share. */
#ifndef LEDGER_SUPPORT_H
#define LEDGER_SUPPORT_H

#include "dpinfer/ledger.h"
#include "tests/support/support.h"

/* R of (5, 1e-5) at its order 5, by 60-digit arithmetic: budget = floor(R 2^40). */
#define BUDGET_5 2.7472716631801777444

/* Of the running test: its folder, a ledger file in it, and what is open of it (NULL: nothing). */
extern char folder[256], path[300];
extern dpi_ledger *the_ledger;

/* The folder; who makes a ledger or a job makes it, too. After each test: all of these. */
void folder_make(void);
void folder_remove(void);

/* A new file at `path`; with the dataset "letters" of epsilon 5 at delta 1e-5. */
void new_ledger(void);
void make_ledger(int32_t scope);
void add_dataset(const char *dataset, double epsilon, double delta, int32_t scope);
/* Opens the file again. */
void reopen_ledger(void);
void close_ledger(void);
dpi_dataset_info info_of(const char *dataset);

/* Another object; it waits for as long as many others, and a slow disk, may take. No call of cmocka
 * is in it, so that threads and children may use it, as reserve_of. */
typedef enum open_mode { OPEN, CREATE, READ_ONLY } open_mode;
dpi_status open_ledger(const char *at, open_mode mode, dpi_ledger **l);

/* Runs SQL on a file, past the library; the number that a statement reads in `path`. */
void exec_sql(const char *at, const char *sql);
int64_t read_sql(const char *sql);
/* The file of form_1.h. */
void make_ledger_of_form_1(void);

/* A charge of zCDP. units NULL: of a dataset as a whole. */
dpi_status reserve_of(dpi_ledger *l, const char *dataset, double rho,
                      const dpi_ledger_units *units);
/* The same of a whole dataset; what was charged. */
dpi_charge charge(const char *dataset, double rho);
/* Of "letters" as a whole, by rho, or by what it costs at order 5. */
dpi_status reserve(double rho);
double rho_of(int64_t amount);

/* Units by their IDs, such as "ann ben", until the next call. */
const dpi_ledger_units *units_of(const char *ids);
/* Charges them; who pays, as "01". */
const char *pay(const char *dataset, const char *ids, double rho);
/* The same for a charge that was made. */
const char *paid(const char *dataset, const char *ids, int64_t id);

/* The sum of all charges to "letters" that count, one by one. */
int64_t sum_charges(int64_t *n);

#endif
