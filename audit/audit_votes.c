/* audit_votes.c - loss and draws of votes for candidates (AugPE): what one unit can do to the
 * histogram, what a histogram is charged, and the law of its noise. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/exact/votes.h"

enum { N_MAX = 40, DIM = 3, UNITS = 6, M = 5, N_CASES = 3000, N_DRAWS = 100000 };

/* Candidates and the records of some units. Coordinates are small integers, so that distances are
 * exact and many are equal. */
typedef struct scene {
    float candidates[N_MAX][DIM];
    uint8_t usable[N_MAX];
    double weights[DIM];
    float records[UNITS][M][DIM];
    int32_t n, n_records[UNITS];
} scene;

static void make_scene(dpi_audit *a, scene *s) {
    static const float hostile[] = {NAN, INFINITY, -INFINITY, 3e38f};
    s->n = 1 + dpi_audit_below(a, N_MAX);
    for (int i = 0; i < N_MAX; i++) {
        s->usable[i] = dpi_audit_below(a, 8) > 0;
        for (int k = 0; k < DIM; k++)
            s->candidates[i][k] = (float)dpi_audit_below(a, 4);
    }
    for (int k = 0; k < DIM; k++)
        s->weights[k] = dpi_audit_below(a, 3);
    for (int u = 0; u < UNITS; u++) {
        s->n_records[u] = dpi_audit_below(a, M + 1);
        for (int j = 0; j < M; j++)
            for (int k = 0; k < DIM; k++)
                s->records[u][j][k] = (float)dpi_audit_below(a, 4);
    }
    if (dpi_audit_below(a, 4) == 0)
        s->records[0][dpi_audit_below(a, M)][dpi_audit_below(a, DIM)] =
            hostile[dpi_audit_below(a, 4)];
    if (dpi_audit_below(a, 4) == 0)
        s->candidates[dpi_audit_below(a, s->n)][0] = hostile[dpi_audit_below(a, 3)];
}

/* ---- The formulas ---------------------------------------------------------------------------- */

/* By sorting nothing: the candidate that no other one is nearer than, the first of such. */
static int32_t find_nearest(const scene *s, const float *x) {
    for (int k = 0; k < DIM; k++)
        if (!isfinite(x[k]))
            return -1;
    int32_t best = -1;
    long double least = HUGE_VALL;
    for (int32_t i = 0; i < s->n; i++) {
        long double distance = 0;
        for (int k = 0; k < DIM; k++)
            distance += powl(((long double)x[k] - s->candidates[i][k]) * s->weights[k], 2);
        if (s->usable[i] && distance < least)
            best = i, least = distance;
    }
    return best;
}

/* What unit u adds: its records' votes, each one as large as the others, of norm one together. */
static void unit_votes(const scene *s, int u, int64_t votes[N_MAX]) {
    long double count[N_MAX] = {0}, square = 0;
    memset(votes, 0, N_MAX * sizeof *votes);
    for (int j = 0; j < s->n_records[u]; j++) {
        const int32_t i = find_nearest(s, s->records[u][j]);
        if (i >= 0)
            count[i]++;
    }
    for (int i = 0; i < N_MAX; i++)
        square += count[i] * count[i];
    for (int i = 0; i < N_MAX && square > 0; i++)
        votes[i] = (int64_t)floorl(16 * count[i] / sqrtl(square) + 1e-12L);
}

/* ---- Sensitivity ----------------------------------------------------------------------------- */

/* The histogram of all units but `without`, through the functions that a run uses. */
static void count_votes(const scene *s, int without, int64_t votes[N_MAX]) {
    memset(votes, 0, N_MAX * sizeof *votes);
    for (int u = 0; u < UNITS; u++) {
        int32_t nearest[M];
        for (int j = 0; j < s->n_records[u]; j++)
            nearest[j] = dpi_votes_nearest(&s->candidates[0][0], s->usable, s->n, DIM, s->weights,
                                           s->records[u][j]);
        if (u != without)
            dpi_votes_add(nearest, s->n_records[u], votes, s->n);
    }
}

static dpi_status audit_neighbours(dpi_audit *a) {
    const int32_t n = dpi_audit_count(a, N_CASES);
    double most = 0;
    DPI_TRY(dpi_audit_begin(a, "loss", "AugPE, votes of neighbours"));
    for (int32_t c = 0; c < n; c++) {
        scene s;
        int64_t all[N_MAX], others[N_MAX], own[N_MAX], square = 0;
        const int u = dpi_audit_below(a, UNITS);
        bool same = true, positive = true;
        make_scene(a, &s);
        count_votes(&s, -1, all);
        count_votes(&s, u, others);
        unit_votes(&s, u, own);
        for (int i = 0; i < N_MAX; i++) {
            const int64_t moved = all[i] - others[i];
            same &= moved == own[i];
            positive &= moved >= 0;
            square += moved * moved;
        }
        dpi_audit_hold(a, same, "a unit adds other than the votes of its records");
        dpi_audit_hold(a, positive, "a unit lowers a count");
        dpi_audit_hold(a, square <= 256, "a unit moves the histogram by more than one vote");
        most = fmax(most, sqrt((double)square) / 16);
    }
    a->result.n_cases = n;
    dpi_audit_end(a, "norm of what a unit adds", most, .999, 1);
    return DPI_STATUS_OK;
}

/* 16^2 / (2 s) from the integers, never less, and the least variance that a budget allows. */
static dpi_status audit_cost(dpi_audit *a) {
    const int32_t n = dpi_audit_count(a, N_CASES);
    double most = 0;
    DPI_TRY(dpi_audit_begin(a, "loss", "AugPE, cost of a histogram"));
    for (int32_t c = 0; c < n; c++) {
        const double rho = exp(-9 + 14 * dpi_audit_uniform(a));
        const int64_t v = dpi_votes_variance_for(rho);
        const long double exact = 256 * 256.L / (2 * (long double)v);
        dpi_audit_hold(a, v > 0, "no variance for a budget in range");
        dpi_audit_hold(a, dpi_rho_votes_bound(v) >= (double)exact, "a charge below the cost");
        most = fmax(most, (double)(exact / (long double)rho));
    }
    a->result.n_cases = n;
    dpi_audit_end(a, "cost / budget", most, .9, 1);
    return DPI_STATUS_OK;
}

/* ---- The law --------------------------------------------------------------------------------- */

/* Four candidates at a time, of which two have votes: the noise of each against the definition, and
 * that of neighbours against each other. */
static dpi_status audit_law(dpi_audit *a) {
    enum { N = 4, V = 256 * 16 };
    dpi_audit_cells cells = {.last = 9};
    const int32_t n = dpi_audit_count(a, N_DRAWS);
    double product = 0;
    DPI_TRY(dpi_audit_begin(a, "draws", "AugPE, noise of a histogram"));
    for (int32_t c = 0; c < n; c++) {
        const int64_t before[N] = {0, 1000, 0, -7};
        int64_t votes[N];
        memcpy(votes, before, sizeof votes);
        DPI_TRY(dpi_votes_release(votes, N, V, a->options.random, a->options.random_user, a->err));
        for (int i = 0; i < N; i++) {
            dpi_audit_cells_add(&cells, votes[i] - before[i]);
            if (i % 2 == 0)
                product += (double)(votes[i] - before[i]) * (double)(votes[i + 1] - before[i + 1]);
        }
    }
    /* 2 n products of independent draws have variance (V / 256)^2 each. */
    const double p = dpi_audit_normal_tail(product / (V / 256.) / sqrt(2. * n));
    dpi_audit_hold(a, p >= dpi_audit_certain(a), "noise of one candidate tells that of another");
    dpi_audit_chance(a, p);
    dpi_audit_end_cells(a, &cells, dpi_audit_gaussian, V / 256.);
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_votes(dpi_audit *a) {
    DPI_TRY(audit_neighbours(a));
    DPI_TRY(audit_cost(a));
    return audit_law(a);
}
