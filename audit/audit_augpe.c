/* audit_augpe.c - rounds of private evolution: whole rounds over made-up records, beside their
 * neighbours. The audit knows the seed of the noise, and computes the histogram a second time. Runs
 * without a seed, whose noise nobody can compute, are held beside each other. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/status.h"
#include "audit/lines.h"
#include "dp/exact/noise.h"
#include "dp/mechanism/noisy_votes.h"
#include "dpinfer/augpe.h"
#include "dpinfer/memory.h"
#include "kernels/exact.h"
#include "pipeline/augpe/augpe.h"

enum { N_RECORDS = 9, N_UNITS = 4, N_TEXTS = 3, L = 3, N_ROUNDS = 3, N_ALL = N_TEXTS * L };

/* Of which units 0 to 3 have records 0, 4, 8; 1, 5; 2, 6; 3, 7. Record 5 says nothing. */
static const char *const TEXTS[N_RECORDS] = {
    "a house by the sea", "green green green", "1 2 3 4 5 6", "the long way home from the market",
    "x", " \n ", "snow, and then more snow", "zz zz", "a house by the lake"};

/* Unit `without` is not there, or, `empty`, has records that say nothing. */
typedef struct world {
    dpi_audit *audit;
    int without;
    bool empty;
    int32_t selection;
    double threshold;
    char path[4096];
} world;

static dpi_status open_records(world *w, dpi_records **records) {
    dpi_records_options o;
    dpi_text text = {0};
    dpi_text_add(&text, "who,text\n");
    for (int i = 0; i < N_RECORDS; i++)
        if (i % N_UNITS != w->without || w->empty)
            dpi_text_add(&text, "u%d,\"%s\"\n", i % N_UNITS,
                         i % N_UNITS == w->without ? " " : TEXTS[i]);
    FILE *file = fopen(w->path, "w");
    bool written = file && !text.failed && fwrite(text.data, text.n_bytes, 1, file) == 1;
    written &= file && fclose(file) == 0;
    free(text.data);
    if (!written)
        return dpi_fail(w->audit->err, DPI_STATUS_IO, "cannot write the records of an audit");
    dpi_records_options_init(&o);
    o.unit_field = "who";
    const dpi_status status = dpi_records_open(w->path, &o, records, w->audit->err);
    unlink(w->path);
    return status;
}

static dpi_augpe_options options_of(const dpi_audit *a, const dpi_records *records,
                                    int32_t adjacency) {
    dpi_augpe_options o;
    dpi_augpe_options_init(&o);
    o.model = a->options.model, o.records = records;
    o.n_texts = N_TEXTS, o.n_candidates = L, o.n_rounds = N_ROUNDS, o.n_tokens = 6;
    o.max_per_unit = 2;
    o.adjacency = adjacency, o.n_units = 10;
    o.rho = 30, o.delta = 1e-3; /* so that votes count beside the noise */
    o.session = a->options.session;
    o.seeded = 1, o.seed = 5;
    return o;
}

/* ---- The formulas ---------------------------------------------------------------------------- */

/* Features of text `i`, computed in a session that has read nothing else. */
static dpi_status look_alone(const dpi_augpe *f, dpi_audit *a, const char *text, float *features) {
    dpi_session_options o = f->options.session;
    dpi_session *session;
    int32_t *tokens;
    size_t n;
    DPI_TRY(dpi_prompts_encode(f->prompts, text, strlen(text), &tokens, &n, a->err));
    o.n_seq = 1;
    dpi_status status = dpi_session_create(f->options.model, &o, &session, a->err);
    if (status == DPI_STATUS_OK) {
        status = dpi_session_prefill(session, 0, tokens, n, NULL, a->err);
        if (status == DPI_STATUS_OK)
            status = dpi_session_features(session, 0, features, a->err);
        dpi_session_free(session);
    }
    dpi_private_free(tokens);
    return status;
}

/* The candidate that record i is nearest to, by the definition. */
static int find_nearest(const dpi_augpe *f, const float *x) {
    const int32_t dim = f->n_embd;
    int best = -1;
    long double least = HUGE_VALL;
    for (int c = 0; c < N_ALL; c++) {
        long double distance = 0;
        for (int32_t k = 0; k < dim; k++) {
            long double mean = 0, square = 0, n = 0;
            for (int i = 0; i < N_ALL; i++)
                if (f->usable[i])
                    mean += f->features[i * dim + k], n++;
            for (int i = 0; i < N_ALL; i++)
                if (f->usable[i])
                    square += powl(f->features[i * dim + k] - mean / n, 2);
            const long double d = (long double)x[k] - f->features[c * dim + k];
            distance += square > 0 ? d * d / (square / n) : 0;
        }
        /* Candidates that are the same text are as near: the first counts. */
        if (f->usable[c] && distance < least * (1 - 1e-9L))
            best = c, least = distance;
    }
    return best;
}

/* What unit u votes: at most two records of it, in units of 16. */
static dpi_status unit_votes(const dpi_augpe *f, dpi_audit *a, int u, int64_t votes[N_ALL]) {
    float *x = malloc((size_t)f->n_embd * sizeof *x);
    int found[2] = {-1, -1}, n = 0;
    dpi_status status = x ? DPI_STATUS_OK : dpi_no_memory(a->err, "an audit");
    memset(votes, 0, N_ALL * sizeof *votes);
    for (int i = u; i < N_RECORDS && n < 2 && status == DPI_STATUS_OK; i += N_UNITS, n++) {
        if (i == 5)
            continue;
        status = look_alone(f, a, TEXTS[i], x);
        found[n] = status == DPI_STATUS_OK ? find_nearest(f, x) : -1;
    }
    free(x);
    const bool both = found[0] >= 0 && found[1] >= 0 && found[0] != found[1];
    for (int j = 0; j < 2; j++)
        if (found[j] >= 0)
            votes[found[j]] = both ? 11 : 16; /* 16 / sqrt(2) */
    return status;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* What the caller is told until the round's votes are counted. */
static dpi_status advance_to_votes(dpi_augpe *f, dpi_audit *a, uint64_t *events) {
    while (f->phase != DPI_PHASE_CHOOSE) {
        dpi_augpe_event e;
        DPI_TRY(dpi_augpe_advance(f, &e, a->err));
        *events = dpi_hash(*events, &e, sizeof e);
    }
    return DPI_STATUS_OK;
}

/* The noise of a round, drawn a second time from the state `bits`. */
static dpi_status draw_noise(const dpi_augpe *f, dpi_audit *a, uint64_t *bits, int64_t z[N_ALL]) {
    for (int i = 0; i < N_ALL; i++)
        DPI_TRY(dpi_noise_gaussian((int64_t)f->claim.parts[0].results[DPI_VOTES_VARIANCE],
                                   dpi_random_insecure, bits, &z[i], a->err));
    return DPI_STATUS_OK;
}

/* The best one that is not taken, the first of several. */
static int best_of(const int64_t above[N_ALL], bool taken[N_ALL]) {
    int best = -1;
    for (int i = 0; i < N_ALL; i++)
        if (!taken[i] && (best < 0 || above[i] > above[best]))
            best = i;
    taken[best] = true;
    return best;
}

/* The first one whose share of [0, 1) ends above the next public number. */
static int draw_of(const int64_t above[N_ALL], int64_t sum, uint64_t *public_bits) {
    uint64_t bits;
    int i = 0;
    (void)!dpi_random_insecure(public_bits, &bits, sizeof bits); /* it cannot fail */
    for (int64_t end = above[0]; (dpi_u128)end << 64 <= (dpi_u128)bits * (uint64_t)sum;)
        end += above[++i];
    return i;
}

/* The candidates that stay: a function of the noisy votes and of public bits alone. */
static void find_wanted(const dpi_augpe *f, const int64_t noisy[N_ALL], int wanted[N_TEXTS]) {
    const double least = 16 * f->options.threshold; /* an integer in all settings */
    bool taken[N_ALL] = {false};
    uint64_t bits = f->public_bits;
    int64_t above[N_ALL], sum = 0;
    for (int i = 0; i < N_ALL; i++)
        sum += above[i] = (int64_t)fmax((double)noisy[i] - least, 0);
    for (int i = 0; i < N_ALL && sum == 0; i++)
        above[i] = 1; /* none has any: all are as good */
    sum = sum > 0 ? sum : N_ALL;
    for (int n = 0; n < N_TEXTS; n++)
        wanted[n] = f->options.selection == DPI_AUGPE_SAMPLE ? draw_of(above, sum, &bits)
                                                             : best_of(above, taken);
}

/* The round's noise, drawn a second time, on its count; and what stays by it. */
static dpi_status check_choice(dpi_augpe *f, dpi_audit *a) {
    int64_t noisy[N_ALL], z[N_ALL];
    int wanted[N_TEXTS];
    char *texts[N_TEXTS];
    uint64_t bits = f->bits;
    bool same = true;
    dpi_augpe_event e;
    DPI_TRY(dpi_augpe_count(f, a->err));
    DPI_TRY(draw_noise(f, a, &bits, z));
    for (int i = 0; i < N_ALL; i++)
        noisy[i] = f->votes[i] + z[i];
    find_wanted(f, noisy, wanted);
    for (int n = 0; n < N_TEXTS; n++) {
        const dpi_text *text = &f->candidates[wanted[n]];
        texts[n] = strdup(text->data ? text->data : "");
        if (!texts[n])
            return dpi_no_memory(a->err, "an audit");
    }
    const dpi_status status = dpi_augpe_advance(f, &e, a->err);
    dpi_audit_hold(a, memcmp(noisy, f->votes, sizeof noisy) == 0,
                   "the histogram is not that of the votes with the noise that is charged");
    dpi_audit_hold(a, f->bits == bits, "the noise of a round serves another one");
    for (int n = 0; n < N_TEXTS; n++) {
        same &= strcmp(texts[n], f->chosen[n].data ? f->chosen[n].data : "") == 0;
        free(texts[n]);
    }
    dpi_audit_hold(a, same, "the candidates that stay are not those of the noisy histogram");
    return status;
}

/* The records and their neighbours without unit `u`, with the same candidates. */
static dpi_status compare(dpi_augpe *f, dpi_augpe *g, dpi_audit *a, int u, double *norm) {
    int64_t own[N_ALL], square = 0;
    bool same = true, alike = true;
    DPI_TRY(dpi_augpe_count(f, a->err));
    DPI_TRY(dpi_augpe_count(g, a->err));
    DPI_TRY(unit_votes(f, a, u, own));
    for (int i = 0; i < N_ALL; i++) {
        const int64_t moved = f->votes[i] - g->votes[i];
        const dpi_text *x = &f->candidates[i], *y = &g->candidates[i];
        same &= moved == own[i];
        alike &= x->n_bytes == y->n_bytes && memcmp(x->data ? x->data : "", y->data ? y->data : "",
                                                    x->n_bytes) == 0;
        square += moved * moved;
    }
    dpi_audit_hold(a, alike, "the first candidates depend on the records");
    dpi_audit_hold(a, same, "a unit adds other than the votes of its own records");
    dpi_audit_hold(a, square <= 256, "a unit moves the histogram by more than one vote");
    *norm = fmax(*norm, sqrt((double)square) / 16);
    a->result.n_cases++;
    return DPI_STATUS_OK;
}

static dpi_status open_world(world *w, int32_t adjacency, dpi_records **records, dpi_augpe **f) {
    DPI_TRY(open_records(w, records));
    dpi_augpe_options o = options_of(w->audit, *records, adjacency);
    o.selection = w->selection, o.threshold = w->threshold;
    if (o.threshold > 0)
        o.rho = 1; /* noise as large as votes: what has none before it often stays after it */
    return dpi_augpe_open(&o, f, w->audit->err);
}

static dpi_status play(world *with, world *without, int32_t adjacency, double *norm) {
    dpi_audit *a = with->audit;
    dpi_records *records[2] = {NULL, NULL};
    dpi_augpe *f = NULL, *g = NULL;
    uint64_t events[2] = {0, 0};
    dpi_status status = open_world(with, adjacency, &records[0], &f);
    if (status == DPI_STATUS_OK)
        status = open_world(without, adjacency, &records[1], &g);
    if (status == DPI_STATUS_OK)
        status = advance_to_votes(f, a, &events[0]);
    if (status == DPI_STATUS_OK)
        status = advance_to_votes(g, a, &events[1]);
    if (status == DPI_STATUS_OK) {
        dpi_audit_hold(a, events[0] == events[1], "what the caller is told depends on a record");
        status = compare(f, g, a, without->without, norm);
    }
    for (int round = 1; round <= N_ROUNDS && status == DPI_STATUS_OK; round++) {
        status = check_choice(f, a);
        if (status == DPI_STATUS_OK && round < N_ROUNDS)
            status = advance_to_votes(f, a, &events[0]);
    }
    dpi_augpe_free(f), dpi_augpe_free(g);
    dpi_records_close(records[0]), dpi_records_close(records[1]);
    return status;
}

static dpi_status audit_neighbours(dpi_audit *a) {
    double norm = 0;
    DPI_TRY(dpi_audit_begin(a, "releases", "AugPE, rounds of neighbours"));
    for (int u = 0; u < N_UNITS; u++)
        for (int empty = 0; empty < 2; empty++) {
            /* Each selection with a threshold and without. */
            world with = {.audit = a,
                          .without = -1,
                          .selection = u % 2 ? DPI_AUGPE_SAMPLE : DPI_AUGPE_RANK,
                          .threshold = (u / 2 + empty) % 2 ? .125 : 0};
            snprintf(with.path, sizeof with.path, "%s/evolution.csv", a->options.folder);
            world without = with;
            without.without = u, without.empty = empty != 0;
            DPI_TRY(play(&with, &without, empty ? DPI_ADJACENCY_REPLACE_BY_NULL
                                                : DPI_ADJACENCY_ADD_REMOVE, &norm));
        }
    dpi_audit_end(a, "norm of what a unit adds", norm, .9, 1);
    return DPI_STATUS_OK;
}

/* ---- The noise of a run without a seed ------------------------------------------------------- */

/* Two runs, two rounds of each: the noise of these, then what it would be from a generator with the
 * state of a seed, and with that of public bits. */
enum { N_RUNS = 2, N_NOISY = 2, N_OWN = N_RUNS * N_NOISY, N_GUESSES = 2 * N_OWN };
typedef int64_t noise_table[N_OWN + N_GUESSES][N_ALL];

static dpi_status collect(dpi_augpe *f, dpi_audit *a, int run, noise_table z) {
    uint64_t events = 0;
    dpi_augpe_event e;
    for (int round = 0; round < N_NOISY; round++) {
        const int own = run * N_NOISY + round;
        DPI_TRY(advance_to_votes(f, a, &events));
        uint64_t seed = f->bits, public_bits = f->public_bits;
        DPI_TRY(draw_noise(f, a, &seed, z[N_OWN + own]));
        DPI_TRY(draw_noise(f, a, &public_bits, z[2 * N_OWN + own]));
        DPI_TRY(dpi_augpe_count(f, a->err));
        memcpy(z[own], f->votes, sizeof z[own]);
        DPI_TRY(dpi_augpe_advance(f, &e, a->err));
        for (int i = 0; i < N_ALL; i++)
            z[own][i] = f->votes[i] - z[own][i];
    }
    return DPI_STATUS_OK;
}

/* Two that are independent have the same noise for a candidate with chance 1 / (2 sqrt(pi s)),
 * which is 1/1800 with s = 256,000, and for 7 of 9 candidates with chance 6e-22. */
static dpi_status audit_noise(dpi_audit *a) {
    enum { EQUAL_MAX = 6 };
    noise_table z;
    int most = 0;
    DPI_TRY(dpi_audit_begin(a, "releases", "AugPE, noise of two runs"));
    for (int run = 0; run < N_RUNS; run++) {
        world w = {.audit = a, .without = -1};
        dpi_records *records = NULL;
        dpi_augpe *f = NULL;
        snprintf(w.path, sizeof w.path, "%s/evolution.csv", a->options.folder);
        dpi_status status = open_records(&w, &records);
        dpi_augpe_options o = options_of(a, records, DPI_ADJACENCY_ADD_REMOVE);
        o.seeded = 0, o.n_rounds = N_NOISY, o.rho = .001;
        if (status == DPI_STATUS_OK)
            status = dpi_augpe_open(&o, &f, a->err);
        if (status == DPI_STATUS_OK)
            status = collect(f, a, run, z);
        dpi_augpe_free(f);
        dpi_records_close(records);
        DPI_TRY(status);
    }
    for (int i = 0; i < N_OWN; i++)
        for (int j = i + 1; j < N_OWN + N_GUESSES; j++) {
            int n = 0;
            for (int k = 0; k < N_ALL; k++)
                n += z[i][k] == z[j][k];
            most = n > most ? n : most;
            dpi_audit_hold(a, n <= EQUAL_MAX,
                           j < N_OWN ? "two rounds of runs without a seed have the same noise"
                                     : "noise follows from a state of 64 bits, or of public ones");
            a->result.n_cases++;
        }
    dpi_audit_end(a, "share of counts with equal noise", (double)most / N_ALL, 0,
                  (double)EQUAL_MAX / N_ALL);
    return DPI_STATUS_OK;
}

/* ---- The charge ------------------------------------------------------------------------------ */

/* No record is read before the whole cost of all rounds is in the ledger. */
static dpi_status check_charge(dpi_audit *a, dpi_augpe *f, const dpi_audit_ledger *ledger,
                               bool fits, double *share) {
    dpi_dataset_info info;
    dpi_augpe_event e;
    dpi_status status = DPI_STATUS_OK;
    while (!f->records && f->phase != DPI_PHASE_OVER && status == DPI_STATUS_OK)
        status = dpi_augpe_advance(f, &e, a->err);
    if (!fits) {
        dpi_audit_hold(a, status == DPI_STATUS_BUDGET && !f->records && f->phase == 0,
                       "records are read that the budget does not allow");
        return status == DPI_STATUS_BUDGET ? DPI_STATUS_OK : status;
    }
    DPI_TRY(status);
    DPI_TRY(dpi_audit_ledger_info(a, ledger, &info));
    /* N_ROUNDS 256 / (2 s) at the order of the dataset. */
    const double variance = f->claim.parts[0].results[DPI_VOTES_VARIANCE];
    const double cost = N_ROUNDS * 256. * 256 / (2. * variance) * info.order;
    dpi_audit_hold(a, f->records != NULL, "no records are read");
    *share = (double)info.charged / DPI_LEDGER_ONE / cost;
    return DPI_STATUS_OK;
}

/* Unit 0 has spent nearly all of its budget. */
static dpi_status spend(dpi_audit *a, const dpi_audit_ledger *ledger) {
    static const void *const ids[] = {"u0"};
    static const size_t n_bytes[] = {2};
    uint8_t paid = 0;
    const dpi_ledger_units units = {.n = 1, .ids = ids, .n_bytes = n_bytes, .pays = &paid};
    dpi_charge_request request;
    dpi_dataset_info info;
    dpi_cost cost;
    dpi_charge_request_init(&request);
    dpi_cost_init(&cost);
    DPI_TRY(dpi_audit_ledger_info(a, ledger, &info));
    DPI_TRY(dpi_cost_add(&cost, DPI_COST_ZCDP, 1,
                         .99 * (double)info.budget / DPI_LEDGER_ONE / info.order, 0, a->err));
    request.cost = &cost, request.method = "outside", request.units = &units;
    return dpi_ledger_reserve(ledger->ledger, DPI_AUDIT_DATASET, &request, NULL, a->err);
}

/* It is not read, and votes nothing; the others do. */
static dpi_status check_payers(dpi_audit *a, dpi_augpe *f) {
    dpi_augpe_event e;
    int64_t votes = 0;
    while (f->phase != DPI_PHASE_CHOOSE)
        DPI_TRY(dpi_augpe_advance(f, &e, a->err));
    DPI_TRY(dpi_augpe_count(f, a->err));
    for (int i = 0; i < N_RECORDS; i++) {
        const bool read = isfinite(f->records[i * f->n_embd]) != 0;
        dpi_audit_hold(a, !read || i % N_UNITS != 0, "a unit that cannot pay is read");
    }
    for (int i = 0; i < N_ALL; i++)
        votes += f->votes[i];
    dpi_audit_hold(a, votes >= 3 * 16 && votes <= 3 * 22, "a unit that cannot pay votes, or one "
                                                          "that can does not");
    return DPI_STATUS_OK;
}

typedef enum budget { TOO_SMALL, LARGE, OF_UNITS, N_BUDGETS } budget;

/* A run with a ledger. */
typedef struct paid_run {
    int32_t n_calls; /* until the caller cancels; below 0: it never does */
    dpi_records *records;
    dpi_audit_ledger ledger;
    dpi_augpe *f;
} paid_run;

static int32_t cancel(void *user) {
    int32_t *n_calls = user;
    *n_calls -= *n_calls > 0;
    return *n_calls == 0;
}

/* To be closed after a failure, too. */
static dpi_status open_paid(dpi_audit *a, budget b, paid_run *run) {
    world w = {.audit = a, .without = -1};
    *run = (paid_run){.n_calls = -1};
    snprintf(w.path, sizeof w.path, "%s/evolution.csv", a->options.folder);
    DPI_TRY(dpi_audit_ledger_open(a, b == TOO_SMALL ? 1 : 40,
                                  b == OF_UNITS ? DPI_SCOPE_UNIT : DPI_SCOPE_DATASET,
                                  &run->ledger));
    if (b == OF_UNITS)
        DPI_TRY(spend(a, &run->ledger));
    DPI_TRY(open_records(&w, &run->records));
    dpi_augpe_options o = options_of(a, run->records, DPI_ADJACENCY_ADD_REMOVE);
    o.rho = 1, o.seeded = 0, o.ledger = run->ledger.ledger, o.dataset = DPI_AUDIT_DATASET;
    o.session.cancel = cancel, o.session.cancel_user = &run->n_calls;
    return dpi_augpe_open(&o, &run->f, a->err);
}

static void close_paid(paid_run *run) {
    dpi_augpe_free(run->f);
    dpi_records_close(run->records);
    dpi_audit_ledger_close(&run->ledger);
}

static dpi_status try_budget(dpi_audit *a, budget b, double *share) {
    paid_run run;
    dpi_status status = open_paid(a, b, &run);
    if (status == DPI_STATUS_OK)
        status = b == OF_UNITS ? check_payers(a, run.f)
                               : check_charge(a, run.f, &run.ledger, b == LARGE, share);
    a->result.n_cases++;
    close_paid(&run);
    return status;
}

/* Where a run ends early, and after how many questions it is cancelled; below 0: it is freed. */
typedef struct ending {
    int32_t phase, round, n_calls;
} ending;

static dpi_status end_early(dpi_audit *a, paid_run *run, const ending *end) {
    dpi_dataset_info before, after;
    dpi_augpe_event e;
    while (run->f->phase != end->phase || run->f->round != end->round)
        DPI_TRY(dpi_augpe_advance(run->f, &e, a->err));
    DPI_TRY(dpi_audit_ledger_info(a, &run->ledger, &before));
    run->n_calls = end->n_calls;
    if (end->n_calls >= 0) {
        const dpi_status status = dpi_augpe_advance(run->f, &e, a->err);
        if (status != DPI_STATUS_CANCELLED)
            return status == DPI_STATUS_OK
                       ? dpi_fail(a->err, DPI_STATUS_STATE, "a run goes on that was cancelled")
                       : status;
    }
    dpi_audit_hold(a, run->f->records != NULL, "a run has no records where it ends");
    dpi_augpe_free(run->f);
    run->f = NULL;
    DPI_TRY(dpi_audit_ledger_info(a, &run->ledger, &after));
    dpi_audit_hold(a, before.charged > 0 && after.charged == before.charged,
                   "a run that has read records gets its charge back");
    a->result.n_cases++;
    return DPI_STATUS_OK;
}

/* The charge stays from the first record that is read. */
static dpi_status check_endings(dpi_audit *a) {
    static const ending endings[] = {
        {DPI_PHASE_READ, 1, 3}, /* among the first records */
        {DPI_PHASE_CHOOSE, 1, -1}, {DPI_PHASE_CHOOSE, 1, 0}, {DPI_PHASE_WRITE, 2, -1},
        {DPI_PHASE_WRITE, 2, 0},   {DPI_PHASE_LOOK, 2, -1},  {DPI_PHASE_OVER, N_ROUNDS, -1},
    };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        paid_run run;
        dpi_status status = open_paid(a, LARGE, &run);
        if (status == DPI_STATUS_OK)
            status = end_early(a, &run, &endings[i]);
        close_paid(&run);
        DPI_TRY(status);
    }
    return DPI_STATUS_OK;
}

static dpi_status audit_charge(dpi_audit *a) {
    double share = 0;
    DPI_TRY(dpi_audit_begin(a, "releases", "AugPE, the charge"));
    for (int b = 0; b < N_BUDGETS; b++)
        DPI_TRY(try_budget(a, (budget)b, &share));
    DPI_TRY(check_endings(a));
    dpi_audit_end(a, "charge / cost of the noise", share, 1 - 1e-9, 1 + 1e-6);
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_evolution(dpi_audit *a) {
    if (!a->options.model || !a->options.folder)
        return DPI_STATUS_OK;
    DPI_TRY(audit_neighbours(a));
    DPI_TRY(audit_noise(a));
    return audit_charge(a);
}
