/* jobs.c - what it costs to keep a run: the journal, the ledger, and going on.
 *
 *     dpinfer-bench-jobs MODEL FOLDER [TOKENS ROUNDS]
 *
 * A text is drawn from 8 made-up records, as it is and as a job in a folder below FOLDER, in turns;
 * so FOLDER is on the disk that is meant. The disk's own time is measured beside it: a write of 32
 * bytes that it has kept. Prints a table in Markdown. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "dpinfer/ledger.h"
#include "dpinfer/release.h"

enum { N_RECORDS = 8, N_UNITS = 5000, N_CHARGES = 20, N_SYNCS = 200, ROUNDS_MAX = 99 };

typedef struct bench {
    const char *model_path;
    char folder[300];
    dpi_model *model;
    dpi_records *records;
    int32_t n_tokens, n_rounds;
} bench;

static double milliseconds(void) { return 1e3 * bench_seconds(CLOCK_MONOTONIC); }

static void print_row(const char *what, double ms, const char *rest) {
    printf("| %-44s | %9.3f | %s |\n", what, ms, rest);
}

/* ---- The disk -------------------------------------------------------------------------------- */

static void time_disk(const bench *b) {
    char path[400];
    double v[N_SYNCS];
    const char bytes[32] = {1};
    snprintf(path, sizeof path, "%s/disk", b->folder);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, 1 << 16) != 0 || fsync(fd) != 0)
        bench_die(path, strerror(errno));
    for (int i = 0; i < N_SYNCS; i++) {
        const double begin = milliseconds();
        if (pwrite(fd, bytes, sizeof bytes, 32 * i) != sizeof bytes || fdatasync(fd) != 0)
            bench_die(path, strerror(errno));
        v[i] = milliseconds() - begin;
    }
    close(fd);
    unlink(path);
    print_row("disk: 32 bytes kept, median", bench_median(v, N_SYNCS),
              "the limit of one token a sync");
    print_row("disk: the same, slowest of 200", v[N_SYNCS - 1], "");
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

typedef struct timing {
    double first_ms, token_ms; /* until the first new token; between tokens */
    int32_t n_drawn;
} timing;

static void set_options(const bench *b, dpi_release_options *o, dpi_journal *journal) {
    dpi_release_options_init(o);
    o->model = b->model;
    o->model_path = b->model_path;
    o->records = b->records;
    o->batch = N_RECORDS;
    o->n_tokens = b->n_tokens;
    o->n_parallel = 1;
    o->method.rho = 1;
    o->seeded = 1;
    o->seed = 1;
    o->journal = journal;
}

/* A release to its end, or until n tokens are told in all. Of those that are there `n_before` are
 * told first. */
static timing run_release(const bench *b, dpi_journal *journal, int32_t n_before, int32_t n) {
    dpi_release_options o;
    dpi_release *release;
    dpi_release_event e = {.type = DPI_EVENT_PROMPT};
    dpi_error err;
    timing t = {0};
    double first = 0, last = 0;
    const double begin = milliseconds();
    set_options(b, &o, journal);
    bench_check(dpi_release_open(&o, &release, &err), &err);
    while (e.type != DPI_EVENT_NONE && t.n_drawn < n) {
        bench_check(dpi_release_advance(release, &e, &err), &err);
        if (e.type != DPI_EVENT_TOKEN)
            continue;
        last = milliseconds();
        if (t.n_drawn++ == n_before)
            first = last;
    }
    dpi_release_free(release);
    t.first_ms = first - begin;
    t.token_ms = t.n_drawn > n_before + 1 ? (last - first) / (t.n_drawn - n_before - 1) : 0;
    return t;
}

static dpi_journal *open_journal(const bench *b, const char *name, int32_t create, int32_t every) {
    char path[400];
    dpi_journal_options o;
    dpi_journal *journal;
    dpi_error err;
    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    dpi_journal_options_init(&o);
    o.create = create;
    o.every = every;
    bench_check(dpi_journal_open(path, &o, &journal, &err), &err);
    return journal;
}

static void remove_job(const bench *b, const char *name) {
    static const char *const files[] = {"/tokens", "/job.json", "/records", ""};
    char path[400];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s%s", b->folder, name, files[i]);
        remove(path);
    }
}

static void time_tokens(const bench *b) {
    static const int32_t every[] = {0, 1, 8};
    static const char *const names[] = {"a token, no journal", "a token, --job",
                                        "a token, --job --journal-every 8"};
    double v[3][ROUNDS_MAX], ratio[ROUNDS_MAX];
    char rest[80];
    for (int r = 0; r < b->n_rounds; r++)
        for (int i = 0; i < 3; i++) {
            dpi_journal *journal = every[i] ? open_journal(b, "job", 1, every[i]) : NULL;
            v[i][r] = run_release(b, journal, 0, b->n_tokens).token_ms;
            dpi_journal_close(journal);
            remove_job(b, "job");
        }
    for (int i = 0; i < 3; i++) {
        for (int r = 0; r < b->n_rounds; r++) /* before v[0] is sorted */
            ratio[r] = v[i][r] / v[0][r];
        snprintf(rest, sizeof rest, "%+.2f %% of a step, median of %d rounds",
                 100 * (bench_median(ratio, b->n_rounds) - 1), b->n_rounds);
        double copy[ROUNDS_MAX];
        memcpy(copy, v[i], sizeof copy);
        print_row(names[i], bench_median(copy, b->n_rounds), i ? rest : "");
    }
}

/* ---- Going on -------------------------------------------------------------------------------- */

static void time_resume(const bench *b) {
    const int32_t n[] = {0, b->n_tokens / 4, b->n_tokens - 8};
    for (int i = 0; i < 3; i++) {
        char what[80];
        dpi_journal *journal = open_journal(b, "job", 1, 1);
        if (n[i] > 0) { /* stopped there */
            run_release(b, journal, 0, n[i]);
            dpi_journal_close(journal);
        }
        const double begin = milliseconds();
        if (n[i] > 0)
            journal = open_journal(b, "job", 0, 1);
        int32_t n_texts;
        int64_t n_kept;
        dpi_journal_count(journal, &n_texts, &n_kept);
        const double opened = milliseconds() - begin;
        const timing t = run_release(b, journal, (int32_t)n_kept, (int32_t)n_kept + 1);
        snprintf(what, sizeof what, n[i] ? "resume behind %d tokens, to the next" : "a new job, to "
                 "the first token", (int)n_kept);
        print_row(what, opened + t.first_ms, "model open, prompts read");
        dpi_journal_close(journal);
        remove_job(b, "job");
    }
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static dpi_ledger *open_ledger(const char *path) {
    dpi_ledger_options o;
    dpi_ledger *ledger;
    dpi_error err;
    dpi_ledger_options_init(&o);
    o.create = 1;
    bench_check(dpi_ledger_open(path, &o, &ledger, &err), &err);
    for (int32_t scope = DPI_SCOPE_DATASET; scope <= DPI_SCOPE_UNIT; scope++) {
        dpi_dataset_options d;
        dpi_dataset_options_init(&d);
        d.name = dpi_scope_name(scope);
        d.epsilon = 10;
        d.delta = 1e-5;
        d.scope = scope;
        bench_check(dpi_ledger_add(ledger, &d, &err), &err);
    }
    return ledger;
}

static void time_charges(dpi_ledger *ledger, const dpi_ledger_units *units, const char *what) {
    dpi_charge_request r;
    dpi_cost cost;
    dpi_error err;
    double v[N_CHARGES];
    char rest[80];
    dpi_cost_init(&cost);
    bench_check(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, 1e-3, 0, &err), &err);
    dpi_charge_request_init(&r);
    r.cost = &cost;
    r.method = "bench";
    r.units = units;
    for (int i = 0; i < N_CHARGES; i++) {
        const double begin = milliseconds();
        bench_check(dpi_ledger_reserve(ledger,
                                       dpi_scope_name(units ? DPI_SCOPE_UNIT : DPI_SCOPE_DATASET),
                                       &r, NULL, &err), &err);
        v[i] = milliseconds() - begin;
    }
    const double first = v[0];
    snprintf(rest, sizeof rest, "the first one %.1f, once a run", first);
    print_row(what, bench_median(v, N_CHARGES), rest);
}

static void time_ledger(const bench *b) {
    static char ids[N_UNITS][12];
    static const void *at[N_UNITS];
    static size_t n_bytes[N_UNITS];
    static uint8_t pays[N_UNITS];
    const dpi_ledger_units units = {.n = N_UNITS, .ids = at, .n_bytes = n_bytes, .pays = pays};
    char path[400];
    for (int i = 0; i < N_UNITS; i++) {
        n_bytes[i] = (size_t)snprintf(ids[i], sizeof ids[i], "patient%04d", i);
        at[i] = ids[i];
    }
    snprintf(path, sizeof path, "%s/ledger", b->folder);
    dpi_ledger *ledger = open_ledger(path);
    time_charges(ledger, NULL, "a charge, scope dataset");
    time_charges(ledger, &units, "a charge of 5000 units, scope unit");
    dpi_ledger_close(ledger);
    remove(path);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void make_records(bench *b) {
    static const char text[] =
        "You came to the ward with a cough and a fever, and went home after four days with a "
        "prescription for seven more. Drink enough, rest, and see your doctor on Monday. Number ";
    char texts[N_RECORDS][256];
    const char *at[N_RECORDS];
    size_t n_bytes[N_RECORDS];
    dpi_error err;
    for (int i = 0; i < N_RECORDS; i++) {
        n_bytes[i] = (size_t)snprintf(texts[i], sizeof texts[i], "%s%d.", text, i);
        at[i] = texts[i];
    }
    bench_check(dpi_records_create(at, n_bytes, N_RECORDS, &b->records, &err), &err);
}

int main(int argc, char **argv) {
    bench b = {.n_tokens = 96, .n_rounds = 7};
    dpi_error err;
    if (argc != 3 && argc != 5) {
        fputs("usage: dpinfer-bench-jobs MODEL FOLDER [TOKENS ROUNDS]\n", stderr);
        return 2;
    }
    if (argc == 5) {
        b.n_tokens = atoi(argv[3]);
        b.n_rounds = atoi(argv[4]);
    }
    if (b.n_tokens < 16 || b.n_rounds < 1 || b.n_rounds > ROUNDS_MAX)
        bench_die("TOKENS ROUNDS", "allowed are 16 or more, and 1..99");
    b.model_path = argv[1];
    snprintf(b.folder, sizeof b.folder, "%s/dpinfer-bench-XXXXXX", argv[2]);
    if (!mkdtemp(b.folder))
        bench_die(argv[2], strerror(errno));
    bench_check(dpi_model_open(b.model_path, NULL, &b.model, &err), &err);
    make_records(&b);
    run_release(&b, NULL, 0, 2); /* the model is in memory from here on */
    printf("| %-44s | %9s | |\n|---|---:|---|\n", "what", "ms");
    time_disk(&b);
    time_tokens(&b);
    time_resume(&b);
    time_ledger(&b);
    dpi_records_close(b.records);
    dpi_model_close(b.model);
    rmdir(b.folder);
    return 0;
}
