/* probe_ledger.c - budgets and charges, see probes.h. Real files, as tests/pipeline/ledger/ has
 * them. */
#include "tests/mutants/probes.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <time.h>

#include "pipeline/release/release.h"
#include "tests/pipeline/ledger/form_1.h"

static dpi_status reserve_dataset(const char *dataset, double rho) {
    return reserve_of(the_ledger, dataset, rho, NULL);
}

/* Orders 22 and 5. Costs are products of a double and an order: exact as long double. */
static void check_amounts(void) {
    const double rho = .01;
    add_dataset("small", 1, 1e-6, DPI_SCOPE_DATASET);
    add_dataset("large", 5, 1e-5, DPI_SCOPE_DATASET);
    assert_ok(reserve_dataset("large", rho));
    assert_ok(reserve_dataset("small", rho));
    hold((long double)info_of("large").charged >= 5.0L * rho * DPI_LEDGER_ONE &&
             (long double)info_of("small").charged >= 22.0L * rho * DPI_LEDGER_ONE,
         "a charge is below its cost");
    /* .2 of .536 is spent: a charge of .44 does not fit. */
    assert_error(reserve_dataset("small", .02), BUDGET, "");
}

static void check_units(void) {
    add_dataset("units", 5, 1e-5, DPI_SCOPE_UNIT);
    assert_string_equal(pay("units", "ann", .3), "1");
    assert_string_equal(pay("units", "ann ben", .3), "01");
}

/* ann has spent 3 2^30 in a file of an earlier form. */
static void check_form_1(void) {
    const double left = ((double)FORM_1_BUDGET - 0x1.8p31) / DPI_LEDGER_ONE; /* of ann */
    make_ledger_of_form_1();
    reopen_ledger();
    assert_string_equal(pay("letters", "ann ben", (left + 1e-4) / 5), "01");
}

/* ---- Two at once ----------------------------------------------------------------------------- */

typedef struct racer {
    const char *dataset;
    dpi_status status;
    atomic_bool has_waited; /* for the lock of the other, or it has come to its end */
} racer;

static _Thread_local racer *me;
static int (*sleep_below)(sqlite3_vfs *, int);

/* SQLite sleeps where a file is locked. */
static int note_sleep(sqlite3_vfs *vfs, int microseconds) {
    if (me)
        me->has_waited = true;
    return sleep_below(vfs, microseconds);
}

static void *race(void *user) {
    dpi_ledger *own;
    me = user;
    me->status = open_ledger(path, OPEN, &own);
    if (me->status == DPI_STATUS_OK)
        me->status = reserve_of(own, me->dataset, .3, NULL);
    dpi_ledger_close(own);
    me->has_waited = true;
    return NULL;
}

/* The write lock is held until both wait for it, who have looked at the budget by then if they look
 * before they have the lock. */
static void race_once(sqlite3 *lock, const char *dataset) {
    const struct timespec moment = {.tv_nsec = 1000000};
    racer racers[2];
    pthread_t threads[2];
    int n_paid = 0;
    assert_int_equal(sqlite3_exec(lock, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 2; i++) {
        racers[i] = (racer){.dataset = dataset};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    while (!racers[0].has_waited || !racers[1].has_waited)
        nanosleep(&moment, NULL);
    const bool unlocked = sqlite3_exec(lock, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        n_paid += racers[i].status == DPI_STATUS_OK;
    }
    assert_true(unlocked);
    for (int i = 0; i < 2; i++)
        assert_true(racers[i].status == DPI_STATUS_OK || racers[i].status == DPI_STATUS_BUDGET);
    hold(n_paid >= 1, "neither can pay");
    hold(n_paid <= 1, "two at once exceed the budget");
}

static void check_race(void) {
    static sqlite3_vfs notes;
    sqlite3 *lock;
    notes = *sqlite3_vfs_find(NULL);
    notes.zName = "notes", sleep_below = notes.xSleep, notes.xSleep = note_sleep;
    assert_int_equal(sqlite3_vfs_register(&notes, 1), SQLITE_OK);
    assert_int_equal(sqlite3_open(path, &lock), SQLITE_OK);
    sqlite3_busy_timeout(lock, 60000); /* a commit waits for those that read at that moment */
    for (int round = 0; round < 3; round++) {
        char dataset[16];
        snprintf(dataset, sizeof dataset, "race %d", round);
        add_dataset(dataset, 5, 1e-5, DPI_SCOPE_DATASET);
        race_once(lock, dataset);
    }
    sqlite3_close(lock);
}

/* ---- A release ------------------------------------------------------------------------------- */

/* Two texts that name no unit, or the rows of a file with a unit for each. */
static dpi_release_options letters(const char *dataset, const char *rows) {
    dpi_records *records = rows ? make_records("letters.csv", rows, "unit", NULL)
                                : make_records("two.csv", "text\none\ntwo\n", NULL, NULL);
    dpi_release_options o = small_release(model, records);
    o.batch = 2, o.n_texts = 1, o.n_tokens = 2;
    o.method.rho = .3, o.ledger = the_ledger, o.dataset = dataset;
    return o;
}

/* With an exhausted dataset a release must not begin. */
static void check_release(void) {
    add_dataset("spent", 5, 1e-5, DPI_SCOPE_DATASET);
    assert_ok(reserve_dataset("spent", .5));
    dpi_release_options o = letters("spent", NULL);
    o.method.rho = .1;
    dpi_release *r = open_release(&o);
    assert_error(dpi_release_begin(r, ERR), BUDGET, "");
    dpi_release_free(r);
}

/* ---- A release whose units pay each for itself ----------------------------------------------- */

/* A release reads the units at these places, as "01", and these of ann, ben and cat have paid for
 * it when it has begun. */
static void assert_reads(const char *dataset, const char *rows, int32_t adjacency,
                         const char *payers, const char *read) {
    int32_t *tokens[12] = {0};
    size_t n_tokens[12] = {0};
    dpi_slots slots = {.tokens = tokens, .n_tokens = n_tokens};
    dpi_release_options o = letters(dataset, rows);
    char found[4] = "000";
    o.method.adjacency = adjacency;
    dpi_release *r = open_release(&o);
    assert_ok(dpi_release_begin(r, ERR));
    assert_string_equal(paid(dataset, "ann ben cat", r->books.charge), payers);
    assert_ok(dpi_source_load(&r->source, 0, NULL, &slots, ERR));
    for (size_t slot = 0; slot < r->source.n_slots; slot++)
        if (tokens[slot])
            found[slot / 4] = '1'; /* 4 records a unit */
    dpi_source_drop(&r->source, &slots);
    assert_string_equal(found, read);
    dpi_release_free(r);
}

/* ann pays a run that ben is not in; then the budget is enough for ben alone. */
static void check_unit_release(void) {
    static const char first[] = "unit,text\nann,first letter\n";
    static const char others[] = "unit,text\nann,second letter\nann,third letter\nben,one letter\n";
    add_dataset("by position", 4, 1e-5, DPI_SCOPE_UNIT);
    add_dataset("by hash", 4, 1e-5, DPI_SCOPE_UNIT);
    assert_reads("by position", first, DPI_ADJACENCY_REPLACE_BY_NULL, "100", "100");
    assert_reads("by position", others, DPI_ADJACENCY_REPLACE_BY_NULL, "010", "010");
    assert_reads("by hash", first, DPI_ADJACENCY_ADD_REMOVE, "100", "100");
    assert_reads("by hash", others, DPI_ADJACENCY_ADD_REMOVE, "010", "100"); /* ann is in no slot */
    /* No two datasets share a hash: it needs the key. */
    hold(read_sql("SELECT COUNT(*) - COUNT(DISTINCT hash) FROM unit") == 0,
         "a unit can be recognised without the key");
}

/* By hash a batch takes more units than it has slots: each of them pays, so that none is in or out
 * of the run because another one is. */
static void check_full_batch(void) {
    add_dataset("full", 4, 1e-5, DPI_SCOPE_UNIT);
    assert_reads("full", "unit,text\nann,one letter\nben,one letter\ncat,one letter\n",
                 DPI_ADJACENCY_ADD_REMOVE, "111", "111");
}

/* A process of the job, which ends before it reads a record: which of the units 0 and 1 pays. */
static void assert_pays_in_job(const char *rows, int unit) {
    process p;
    job.o = letters("job", rows);
    job.o.model_path = path_in(folder, "two.csv"); /* it is hashed, and no more */
    assert_ok(job_start(&p));
    assert_ok(dpi_release_reserve(p.release, ERR));
    assert_ok(dpi_books_begin_job(&p.release->books, ERR));
    for (int i = 0; i < 2; i++)
        hold(dpi_source_pays(&p.release->source, (size_t)i) == (i == unit),
             "the units that a job reads are not those that have paid for it");
    job_stop(&p);
}

/* ann has paid for another run: in a job of both she is null, wherever her letter stands. */
static void check_unit_job(void) {
    add_dataset("job", 4, 1e-5, DPI_SCOPE_UNIT);
    assert_reads("job", "unit,text\nann,first letter\n", 0, "100", "100");
    snprintf(job.folder, sizeof job.folder, "%s/units.job", folder);
    assert_pays_in_job("unit,text\nann,one letter\nben,one letter\n", 1);
    assert_pays_in_job("unit,text\nann,one letter\nben,one letter\n", 1);
    assert_pays_in_job("unit,text\nben,one letter\nann,one letter\n", 0);
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
        status = dpi_release_advance(r, &e, ERR);
    return status;
}

/* After the first token: it is freed, or cancelled and then freed. False: that token was the end of
 * the text. */
static bool end_in_text(dpi_release *r, bool cancel) {
    if (advance_to(r, DPI_EVENT_TOKEN) != DPI_STATUS_OK || r->texts.n_ended > 0)
        return false;
    if (cancel)
        dpi_release_cancel(r);
    return !cancel || advance_to(r, DPI_EVENT_NONE) == DPI_STATUS_CANCELLED;
}

/* Records by content are read when it begins: of two the first, then it is cancelled. */
static bool end_in_reading(dpi_release *r, int32_t *n_questions) {
    *n_questions = 1;
    return dpi_release_begin(r, ERR) == DPI_STATUS_CANCELLED && r->source.n_kept == 1;
}

typedef enum ending { FREED, CANCELLED, IN_READING, N_ENDINGS } ending;

/* Whether it came to that end. */
static bool try_ending(ending e) {
    int32_t n_questions = -1;
    const char *dataset = e == IN_READING ? "reading ends" : "ends";
    dpi_release_options o = letters(dataset, NULL);
    o.method.adjacency = e == IN_READING ? DPI_ADJACENCY_ADD_REMOVE : DPI_ADJACENCY_REPLACE_BY_NULL;
    o.session.cancel = cancel_later, o.session.cancel_user = &n_questions;
    const int64_t before = info_of(dataset).charged;
    dpi_release *r = open_release(&o);
    const bool ended =
        e == IN_READING ? end_in_reading(r, &n_questions) : end_in_text(r, e == CANCELLED);
    dpi_release_free(r);
    hold(info_of(dataset).charged > before,
         e == IN_READING ? "a release that has read a record gets its charge back"
                         : "a release that has told a token gets its charge back");
    return ended;
}

/* The charge stays from the first record that is read. A text may end with its first token, by
 * chance, and that is one of hundreds of candidates: then another text is written. */
static void check_endings(void) {
    add_dataset("ends", 5000, 1e-5, DPI_SCOPE_DATASET);
    add_dataset("reading ends", 5000, 1e-5, DPI_SCOPE_DATASET);
    for (int e = 0; e < N_ENDINGS; e++) {
        int n_tries = 0;
        while (!try_ending((ending)e))
            hold(++n_tries < 30, "a release does not end early");
    }
}

TEST(ledger) {
    static void (*const checks[])(void) = {
        check_amounts,    check_units,    check_release, check_endings, check_unit_release,
        check_full_batch, check_unit_job, probe_labels,  check_race,
    };
    check_form_1();
    make_ledger(DPI_SCOPE_DATASET);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        checks[i]();
}
