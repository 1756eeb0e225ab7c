/* probe_ledger.c - see probe_ledger.h. Real files, as tests/pipeline/ledger/ has them. */
#include "tests/mutations/probe_ledger.h"

#include <pthread.h>
#include <stdbool.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/release/release.h"
#include "tests/mutations/probe_labels.h"
#include "tests/pipeline/ledger/form_1.h"

static dpi_ledger *open_ledger(const char *path) {
    dpi_ledger_options o;
    dpi_ledger *ledger = NULL;
    dpi_ledger_options_init(&o);
    o.create = 1;
    o.busy_ms = 300000; /* on a machine with much else to do, one waits for the disk of the other */
    return dpi_ledger_open(path, &o, &ledger, NULL) == DPI_STATUS_OK ? ledger : NULL;
}

dpi_status probe_add(dpi_ledger *ledger, const char *name, double epsilon, double delta,
                     int32_t scope) {
    dpi_dataset_options o;
    dpi_dataset_options_init(&o);
    o.name = name;
    o.epsilon = epsilon;
    o.delta = delta;
    o.scope = scope;
    return dpi_ledger_add(ledger, &o, NULL);
}

int64_t probe_charged(dpi_ledger *ledger, const char *name) {
    dpi_dataset_info info;
    dpi_dataset_info_init(&info);
    return dpi_ledger_info(ledger, name, &info, NULL) == DPI_STATUS_OK ? info.charged : -1;
}

dpi_status probe_reserve(dpi_ledger *ledger, const char *name, double rho,
                         const dpi_ledger_units *units) {
    dpi_charge_request r;
    dpi_cost cost;
    dpi_cost_init(&cost);
    if (dpi_cost_add(&cost, DPI_COST_ZCDP, 1, rho, 0, NULL) != DPI_STATUS_OK)
        return DPI_STATUS_ARG;
    dpi_charge_request_init(&r);
    r.cost = &cost;
    r.method = "probe";
    r.units = units;
    return dpi_ledger_reserve(ledger, name, &r, NULL, NULL);
}

/* Orders 22 and 5. Costs are products of a double and an order: exact as long double. */
static const char *check_amounts(dpi_ledger *ledger) {
    const double rho = .01;
    if (probe_add(ledger, "small", 1, 1e-6, DPI_SCOPE_DATASET) != DPI_STATUS_OK ||
        probe_add(ledger, "large", 5, 1e-5, DPI_SCOPE_DATASET) != DPI_STATUS_OK ||
        probe_reserve(ledger, "large", rho, NULL) != DPI_STATUS_OK ||
        probe_reserve(ledger, "small", rho, NULL) != DPI_STATUS_OK)
        return "a dataset or a charge was refused";
    if ((long double)probe_charged(ledger, "large") < 5.0L * rho * DPI_LEDGER_ONE ||
        (long double)probe_charged(ledger, "small") < 22.0L * rho * DPI_LEDGER_ONE)
        return "a charge is below its cost";
    /* .2 of .536 is spent: a charge of .44 does not fit. */
    return probe_reserve(ledger, "small", .02, NULL) != DPI_STATUS_BUDGET ? "the budget is exceeded"
                                                                    : NULL;
}

static const char *check_units(dpi_ledger *ledger) {
    const void *const ids[] = {"ann", "ben"};
    const size_t n_bytes[] = {3, 3};
    uint8_t pays[2];
    dpi_ledger_units units = {.n = 1, .ids = ids, .n_bytes = n_bytes, .pays = pays};
    if (probe_add(ledger, "units", 5, 1e-5, DPI_SCOPE_UNIT) != DPI_STATUS_OK ||
        probe_reserve(ledger, "units", .3, &units) != DPI_STATUS_OK)
        return "units were refused";
    units.n = 2;
    if (probe_reserve(ledger, "units", .3, &units) != DPI_STATUS_OK)
        return "units were refused";
    return pays[0] || !pays[1] ? "a unit pays more than its budget" : NULL;
}

/* ---- Two at once ----------------------------------------------------------------------------- */

typedef struct racer {
    const char *path, *name;
    dpi_status status;
} racer;

static void *race(void *user) {
    racer *r = user;
    dpi_ledger *ledger = open_ledger(r->path);
    r->status = ledger ? probe_reserve(ledger, r->name, .3, NULL) : DPI_STATUS_IO;
    dpi_ledger_close(ledger);
    return NULL;
}

/* One round. The write lock is held until both had time to look at the budget, if they look before
 * they have it. */
static const char *race_once(sqlite3 *lock, const char *path, const char *name) {
    const struct timespec moment = {.tv_nsec = 60000000};
    pthread_t threads[2];
    racer racers[2];
    int n_paid = 0;
    if (sqlite3_exec(lock, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return "the ledger cannot be locked";
    for (int i = 0; i < 2; i++) {
        racers[i] = (racer){.path = path, .name = name};
        if (pthread_create(&threads[i], NULL, race, &racers[i]) != 0)
            return "no thread";
    }
    nanosleep(&moment, NULL);
    const bool unlocked = sqlite3_exec(lock, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        n_paid += racers[i].status == DPI_STATUS_OK;
    }
    if (!unlocked)
        return "the ledger cannot be unlocked";
    for (int i = 0; i < 2; i++)
        if (racers[i].status != DPI_STATUS_OK && racers[i].status != DPI_STATUS_BUDGET)
            return dpi_status_text(racers[i].status); /* and nothing is known of the budget */
    return n_paid == 1 ? NULL : n_paid > 1 ? "two at once exceed the budget" : "neither can pay";
}

static const char *check_race(dpi_ledger *ledger, const char *path) {
    const char *fault = NULL;
    sqlite3 *lock = NULL;
    if (sqlite3_open(path, &lock) != SQLITE_OK)
        fault = "the ledger cannot be opened";
    sqlite3_busy_timeout(lock, 60000); /* a commit waits for those that read at that moment */
    for (int round = 0; round < 8 && !fault; round++) {
        char name[16];
        snprintf(name, sizeof name, "race %d", round);
        fault = probe_add(ledger, name, 5, 1e-5, DPI_SCOPE_DATASET) == DPI_STATUS_OK
                    ? race_once(lock, path, name)
                    : "a dataset was refused";
    }
    sqlite3_close(lock);
    return fault;
}

/* ---- A release ------------------------------------------------------------------------------- */

/* With an exhausted dataset a release must not begin. */
static const char *check_release(dpi_ledger *ledger, const dpi_model *model) {
    const char *const texts[] = {"one", "two"};
    const size_t n_bytes[] = {3, 3};
    dpi_release_options o;
    dpi_records *records = NULL;
    dpi_release *release = NULL;
    dpi_release_options_init(&o);
    o.model = model;
    o.n_tokens = 2;
    o.session.n_threads = 1;
    o.prompts.chat = DPI_CHAT_NONE;
    o.method.rho = .1;
    o.method.delta = 1e-3;
    o.ledger = ledger;
    o.dataset = "spent";
    if (probe_add(ledger, "spent", 5, 1e-5, DPI_SCOPE_DATASET) != DPI_STATUS_OK ||
        probe_reserve(ledger, "spent", .5, NULL) != DPI_STATUS_OK ||
        dpi_records_create(texts, n_bytes, 2, &records, NULL) != DPI_STATUS_OK)
        return "a dataset was refused";
    o.records = records;
    dpi_status status = dpi_release_open(&o, &release, NULL);
    const bool opened = status == DPI_STATUS_OK;
    if (opened)
        status = dpi_release_begin(release, NULL);
    dpi_release_free(release);
    dpi_records_close(records);
    return !opened                       ? "a release was refused"
           : status != DPI_STATUS_BUDGET ? "a release begins before it is charged"
                                         : NULL;
}

/* ---- A release whose units pay each for itself ----------------------------------------------- */

static dpi_records *open_letters(const char *folder, const char *rows) {
    char path[300];
    dpi_records_options o;
    dpi_records *records = NULL;
    snprintf(path, sizeof path, "%s/letters.csv", folder);
    FILE *f = fopen(path, "w");
    if (!f || fprintf(f, "unit,text\n%s", rows) < 0 || fclose(f) != 0)
        return NULL;
    dpi_records_options_init(&o);
    o.unit_field = "unit";
    return dpi_records_open(path, &o, &records, NULL) == DPI_STATUS_OK ? records : NULL;
}

static void letters_options(dpi_release_options *o, const dpi_model *model, dpi_ledger *ledger,
                            const char *name) {
    dpi_release_options_init(o);
    o->model = model;
    o->batch = 2;
    o->n_texts = 1;
    o->n_tokens = 2;
    o->session.n_threads = 1;
    o->prompts.chat = DPI_CHAT_NONE;
    o->method.rho = .3;
    o->method.delta = 1e-3;
    o->ledger = ledger;
    o->dataset = name;
}

/* The slots that a release fills, as bits: by position those of the units 0.. that it reads; -1: it
 * does not begin. *paid: the units that had paid when it had begun. */
static int read_by(const dpi_model *model, dpi_ledger *ledger, const char *name,
                   const char *folder, const char *rows, int32_t adjacency, int *paid) {
    static const void *const ids[] = {"ann", "ben", "cat"};
    static const size_t n_bytes[] = {3, 3, 3};
    uint8_t pays[3] = {0};
    const dpi_ledger_units units = {.n = 3, .ids = ids, .n_bytes = n_bytes, .pays = pays};
    int32_t *tokens[12] = {0};
    size_t n_tokens[12] = {0};
    dpi_place place = {.tokens = tokens, .n_tokens = n_tokens};
    dpi_release_options o;
    dpi_release *r = NULL;
    int read = -1;
    letters_options(&o, model, ledger, name);
    o.records = open_letters(folder, rows);
    o.method.adjacency = adjacency;
    const bool begun = o.records && dpi_release_open(&o, &r, NULL) == DPI_STATUS_OK &&
                       dpi_release_begin(r, NULL) == DPI_STATUS_OK;
    *paid = 0;
    if (begun && dpi_ledger_paid(ledger, name, r->charge, &units, NULL) == DPI_STATUS_OK)
        *paid = pays[0] | pays[1] << 1 | pays[2] << 2;
    if (begun && dpi_release_load_batch(r, 0, &place, NULL) == DPI_STATUS_OK) {
        read = 0;
        for (size_t slot = 0; slot < r->n_slots; slot++)
            read |= (tokens[slot] != NULL) << slot / 4; /* 4 records a unit */
        dpi_release_drop_batch(r, &place);
    }
    dpi_release_free(r);
    dpi_records_close((dpi_records *)o.records);
    return read;
}

/* Whether the file has a hash that two datasets share, or one that needs no key. */
static bool has_common_hash(const char *path) {
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    bool common = true;
    if (sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "SELECT COUNT(*) <> COUNT(DISTINCT hash) FROM unit", -1, &s, NULL) ==
            SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        common = sqlite3_column_int(s, 0) != 0;
    sqlite3_finalize(s);
    sqlite3_close(db);
    return common;
}

/* ann pays a run that ben is not in; then the budget is enough for ben alone. */
static const char *check_unit_release(dpi_ledger *ledger, const char *path, const dpi_model *model,
                                      const char *folder) {
    static const int32_t adjacencies[] = {DPI_ADJACENCY_REPLACE_BY_NULL, DPI_ADJACENCY_ADD_REMOVE};
    static const char *const names[] = {"by position", "by hash"};
    for (int i = 0; i < 2; i++) {
        int paid;
        if (probe_add(ledger, names[i], 4, 1e-5, DPI_SCOPE_UNIT) != DPI_STATUS_OK ||
            read_by(model, ledger, names[i], folder, "ann,first letter\n", adjacencies[i], &paid) !=
                1)
            return "a release of units was refused";
        if (paid != 1)
            return "a release begins before its unit is charged";
        const int read = read_by(model, ledger, names[i], folder,
                                 "ann,second letter\nann,third letter\nben,one letter\n",
                                 adjacencies[i], &paid);
        if (paid != 2)
            return "the units that pay are not those that can";
        if (read != (i == 0 ? 2 : 1)) /* by hash ann is in no slot */
            return "a unit that cannot pay is read";
    }
    return has_common_hash(path) ? "a unit can be recognised without the key" : NULL;
}

/* By hash a batch takes more units than it has slots: each of them pays, so that none is in or out
 * of the run because another one is. */
static const char *check_full_batch(dpi_ledger *ledger, const dpi_model *model,
                                    const char *folder) {
    int paid;
    if (probe_add(ledger, "full", 4, 1e-5, DPI_SCOPE_UNIT) != DPI_STATUS_OK)
        return "a dataset was refused";
    const int read = read_by(model, ledger, "full", folder,
                             "ann,one letter\nben,one letter\ncat,one letter\n",
                             DPI_ADJACENCY_ADD_REMOVE, &paid);
    return paid != 7 || read != 7 ? "a unit is not in the run because of others" : NULL;
}

/* One process of a job. The first one ends before it reads a record; of another, whether unit 0 and
 * unit 1 pay, as bits; -1: a failure. */
static int pay_in_job(dpi_release_options o, const char *folder, const char *rows, bool first) {
    char path[300];
    dpi_journal_options options;
    dpi_journal *journal = NULL;
    dpi_release *r = NULL;
    int pays = -1;
    snprintf(path, sizeof path, "%s/units.job", folder);
    dpi_journal_options_init(&options);
    options.create = first;
    o.records = open_letters(folder, rows);
    if (o.records && dpi_journal_open(path, &options, &journal, NULL) == DPI_STATUS_OK) {
        o.journal = journal;
        if (dpi_release_open(&o, &r, NULL) == DPI_STATUS_OK &&
            dpi_release_reserve(r, NULL) == DPI_STATUS_OK &&
            dpi_release_begin_job(r, NULL) == DPI_STATUS_OK)
            pays = dpi_release_unit_pays(r, 0) | dpi_release_unit_pays(r, 1) << 1;
    }
    dpi_release_free(r);
    dpi_journal_close(journal);
    dpi_records_close((dpi_records *)o.records);
    return pays;
}

/* ann has paid for another run: in a job of both she is null, wherever her letter stands. */
static const char *check_unit_job(dpi_ledger *ledger, const dpi_model *model, const char *folder) {
    dpi_release_options o;
    char path[300];
    int paid;
    snprintf(path, sizeof path, "%s/letters.gguf", folder); /* it is hashed, and no more */
    FILE *f = fopen(path, "w");
    if (!f || fclose(f) != 0)
        return "a file cannot be made";
    letters_options(&o, model, ledger, "job");
    o.model_path = path;
    if (probe_add(ledger, o.dataset, 4, 1e-5, DPI_SCOPE_UNIT) != DPI_STATUS_OK ||
        read_by(model, ledger, o.dataset, folder, "ann,first letter\n", 0, &paid) != 1)
        return "a release of units was refused";
    if (pay_in_job(o, folder, "ann,one letter\nben,one letter\n", true) != 2 ||
        pay_in_job(o, folder, "ann,one letter\nben,one letter\n", false) != 2 ||
        pay_in_job(o, folder, "ben,one letter\nann,one letter\n", false) != 1)
        return "the units that a job reads are not those that have paid for it";
    return NULL;
}

/* ann has spent 3 2^30 in a file of an earlier form. */
static const char *check_form_1(const char *folder) {
    const void *const ids[] = {"ann", "ben"};
    const size_t n_bytes[] = {3, 3};
    uint8_t pays[2];
    const dpi_ledger_units units = {.n = 2, .ids = ids, .n_bytes = n_bytes, .pays = pays};
    const double left = ((double)FORM_1_BUDGET - 0x1.8p31) / DPI_LEDGER_ONE; /* of ann */
    char path[300];
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/form_1.ledger", folder);
    const bool made = sqlite3_open(path, &db) == SQLITE_OK &&
                      sqlite3_exec(db, form_1_sql, NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(db);
    dpi_ledger *ledger = made ? open_ledger(path) : NULL;
    const char *fault = NULL;
    if (!ledger || probe_reserve(ledger, "letters", (left + 1e-4) / 5, &units) != DPI_STATUS_OK)
        fault = "a ledger of an earlier form is refused";
    else if (pays[0] || !pays[1])
        fault = "an earlier form's units do not keep their sums";
    dpi_ledger_close(ledger);
    return fault;
}

/* ---- A release that ends early --------------------------------------------------------------- */

/* n questions are answered with no, the next ones with yes; below 0: all with no. */
static int32_t cancel_later(void *user) {
    int32_t *n = user;
    const bool yes = *n == 0;
    *n -= *n > 0;
    return yes;
}

static dpi_status advance_to(dpi_release *r, int32_t type) {
    dpi_release_event e = {.type = -1};
    dpi_status status = DPI_STATUS_OK;
    while (e.type != type && e.type != DPI_EVENT_NONE && status == DPI_STATUS_OK)
        status = dpi_release_advance(r, &e, NULL);
    return status;
}

/* After the first token: it is freed, or cancelled and then freed. False: that token was the end of
 * the text. */
static bool end_in_text(dpi_release *r, bool cancel) {
    if (advance_to(r, DPI_EVENT_TOKEN) != DPI_STATUS_OK || r->n_ended > 0)
        return false;
    if (cancel)
        dpi_release_cancel(r);
    return !cancel || advance_to(r, DPI_EVENT_NONE) == DPI_STATUS_CANCELLED;
}

/* Records by content are read when it begins: of two the first, then it is cancelled. */
static bool end_in_reading(dpi_release *r, int32_t *n_questions) {
    *n_questions = 1;
    return dpi_release_begin(r, NULL) == DPI_STATUS_CANCELLED && r->n_kept == 1;
}

typedef enum ending { FREED, CANCELLED, IN_READING, N_ENDINGS } ending;

/* *ended: whether it came to that end. */
static const char *check_ending(dpi_ledger *ledger, const dpi_model *model, ending e, bool *ended) {
    static const char *const texts[] = {"one", "two"};
    static const size_t n_bytes[] = {3, 3};
    int32_t n_questions = -1;
    dpi_release_options o;
    dpi_records *records = NULL;
    dpi_release *r = NULL;
    letters_options(&o, model, ledger, "ends");
    o.method.adjacency = e == IN_READING ? DPI_ADJACENCY_ADD_REMOVE : DPI_ADJACENCY_REPLACE_BY_NULL;
    o.session.cancel = cancel_later, o.session.cancel_user = &n_questions;
    const int64_t before = probe_charged(ledger, o.dataset);
    if (dpi_records_create(texts, n_bytes, 2, &records, NULL) != DPI_STATUS_OK)
        return "records were refused";
    o.records = records;
    const bool opened = dpi_release_open(&o, &r, NULL) == DPI_STATUS_OK;
    *ended = opened && (e == IN_READING ? end_in_reading(r, &n_questions)
                                        : end_in_text(r, e == CANCELLED));
    dpi_release_free(r);
    dpi_records_close(records);
    return !opened                                ? "a release was refused"
           : probe_charged(ledger, o.dataset) > before ? NULL
           : e == IN_READING ? "a release that has read a record gets its charge back"
                             : "a release that has told a token gets its charge back";
}

/* The charge stays from the first record that is read. A text may end with its first token, by
 * chance: then another one is written. */
static const char *check_endings(dpi_ledger *ledger, const dpi_model *model) {
    const char *fault = NULL;
    if (probe_add(ledger, "ends", 5000, 1e-5, DPI_SCOPE_DATASET) != DPI_STATUS_OK)
        return "a dataset was refused";
    for (int e = 0; e < N_ENDINGS && !fault; e++) {
        bool ended = false;
        for (int i = 0; i < 30 && !ended && !fault; i++)
            fault = check_ending(ledger, model, (ending)e, &ended);
        if (!ended && !fault)
            fault = "a release does not end early";
    }
    return fault;
}

const char *probe_ledger(const dpi_model *model, const char *folder) {
    char path[300];
    snprintf(path, sizeof path, "%s/probe.ledger", folder);
    dpi_ledger *ledger = open_ledger(path);
    const char *fault = ledger ? check_amounts(ledger) : "the ledger cannot be made";
    if (!fault)
        fault = check_units(ledger);
    if (!fault)
        fault = check_release(ledger, model);
    if (!fault)
        fault = check_endings(ledger, model);
    if (!fault)
        fault = check_unit_release(ledger, path, model, folder);
    if (!fault)
        fault = check_full_batch(ledger, model, folder);
    if (!fault)
        fault = check_unit_job(ledger, model, folder);
    if (!fault)
        fault = check_form_1(folder);
    if (!fault)
        fault = probe_labels(ledger, model, folder);
    if (!fault)
        fault = check_race(ledger, path);
    dpi_ledger_close(ledger);
    return fault;
}
