/* path_runs.c - many releases: how many texts there are, how often a record or a
 * label is where. See path.h. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "audit/path.h"

/* A path and what is seen of one release. */
typedef struct seen {
    path_world world;
    path_trace trace;
    path_layout layout;
} seen;

static void seen_close(seen *x) {
    if (x) {
        dpi_path_trace_free(&x->trace);
        dpi_path_close(&x->world);
    }
    free(x);
}

/* *out: NULL without memory. seen_close in any case. */
static dpi_status seen_open(dpi_audit *a, const dpi_model *model, path_source source,
                            int32_t n_records, seen **out) {
    seen *x = *out = calloc(1, sizeof *x);
    if (!x)
        return dpi_no_memory(a->err, "an audit");
    DPI_TRY(dpi_path_open(&x->world, a, model, source, n_records));
    return dpi_path_trace_create(&x->world, &x->trace);
}

/* ---- Numbers of records ---------------------------------------------------------------------- */

/* The number of texts, and what a caller is told, for any number of records, null ones too. */
static dpi_status audit_counts(dpi_audit *a, const dpi_model *model) {
    static const path_setup setups[] = {
        {.batch = 3, .n_texts = 2, .n_tokens = 1, .bits = 1,
         .adjacency = DPI_ADJACENCY_ADD_REMOVE},
        {.batch = 3, .n_texts = 2, .n_tokens = 1, .bits = 1, .subsample = .5},
        {.batch = 3, .n_tokens = 1},
    };
    static const int32_t counts[] = {0, 1, 3, 16};
    DPI_TRY(dpi_audit_begin(a, "releases", "the path, numbers of records"));
    for (size_t i = 0; i < 24; i++) {
        const path_setup *s = &setups[i % 3];
        const int32_t n = counts[i / 3 % 4];
        seen *x;
        if (n == 0 && !dpi_path_is_assigned(s))
            continue;
        dpi_status status = seen_open(a, model, PATH_MEMORY, n, &x);
        for (int32_t k = 0; status == DPI_STATUS_OK && k < n && i >= 12; k++)
            x->world.state[k] = PATH_EMPTY;
        if (status == DPI_STATUS_OK)
            status = dpi_path_check(&x->world, s, &x->trace, &x->layout);
        seen_close(x);
        DPI_TRY(status);
    }
    dpi_audit_end(a, "releases", (double)a->result.n_cases, 1, INFINITY);
    return DPI_STATUS_OK;
}

/* ---- Assignments of many runs ---------------------------------------------------------------- */

enum { N_ASSIGNED = 12, N_CELLS = 4, N_RUNS = 400 };

typedef struct cells {
    int64_t one[N_ASSIGNED][N_CELLS]; /* of a record: its text, the last cell is none */
    int64_t two[N_CELLS][N_CELLS];    /* of the records 0 and 1, 2 and 3, .. */
} cells;

static void count_places(const path_layout *layout, cells *c) {
    for (int32_t i = 0; i < N_ASSIGNED; i++) {
        const int32_t own = layout->n_places[i] ? layout->text[i] : N_CELLS - 1;
        const int32_t next = i % 2                     ? 0
                             : layout->n_places[i + 1] ? layout->text[i + 1]
                                                       : N_CELLS - 1;
        c->one[i][own]++;
        if (i % 2 == 0)
            c->two[own][next]++;
    }
}

/* Each record is in each of 3 texts with probability q / 3 (by content, and where all are drawn,
 * q is 1), whatever the record beside it does, and whatever its place is. */
static dpi_status audit_assigned(dpi_audit *a, const dpi_model *model, double q, bool secret,
                                 int32_t n_shards, const char *of_one, const char *of_two) {
    const path_setup s = {
        .batch = 4, .n_texts = N_CELLS - 1, .n_tokens = 1, .n_shards = n_shards,
        .subsample = q < 1 ? q : 0, .secret = secret,
        .adjacency = q < 1 ? DPI_ADJACENCY_REPLACE_BY_NULL : DPI_ADJACENCY_ADD_REMOVE};
    const int32_t n_runs = dpi_audit_count(a, N_RUNS);
    cells c = {0};
    seen *x;
    DPI_TRY(dpi_audit_begin(a, "releases", of_one));
    dpi_status status = seen_open(a, model, PATH_MEMORY, N_ASSIGNED, &x);
    for (int32_t i = 0; i < n_runs && status == DPI_STATUS_OK; i++) {
        status = dpi_path_check(&x->world, &s, &x->trace, &x->layout);
        count_places(&x->layout, &c);
    }
    seen_close(x);
    DPI_TRY(status);
    const int32_t n_free = q < 1 ? N_CELLS - 1 : N_CELLS - 2;
    double p[N_CELLS], one = 0, two = 0;
    for (int32_t k = 0; k < N_CELLS; k++)
        p[k] = k < N_CELLS - 1 ? q / (N_CELLS - 1) : 1 - q;
    for (int32_t i = 0; i < N_ASSIGNED; i++)
        one += dpi_audit_chi_square(c.one[i], p, N_CELLS, n_runs);
    for (int32_t k = 0; k < N_CELLS; k++)
        two += dpi_audit_chi_square(c.two[k], p, N_CELLS, N_ASSIGNED / 2 * n_runs * p[k]);
    dpi_audit_end_chi_square(a, one, N_ASSIGNED * n_free);
    DPI_TRY(dpi_audit_begin(a, "releases", of_two));
    a->result.n_cases = N_ASSIGNED / 2 * (int64_t)n_runs;
    dpi_audit_end_chi_square(a, two, (n_free + 1) * (n_free + 1) - 1);
    return DPI_STATUS_OK;
}

/* With private labels, of which each has 2 of 4 texts, a unit is in each of its label's with q / 2:
 * q is the chance of all of them together, whichever its label. */
static dpi_status audit_labeled(dpi_audit *a, const dpi_model *model) {
    enum { NONE = 2, N_OWN = 3 };
    static const path_setup s = {
        .batch = 4, .n_texts = 4, .n_tokens = 1, .per_unit = 1, .subsample = .6};
    const int32_t n_runs = dpi_audit_count(a, N_RUNS);
    const double expected[N_OWN] = {s.subsample / 2, s.subsample / 2, 1 - s.subsample};
    int64_t count[N_OWN] = {0};
    seen *x;
    DPI_TRY(dpi_audit_begin(a, "releases", "the path, secret batches with labels"));
    dpi_status status = seen_open(a, model, PATH_CSV, N_ASSIGNED, &x);
    if (status == DPI_STATUS_OK) {
        x->world.n_units = N_ASSIGNED;
        x->world.labels = DPI_LABELS_PRIVATE;
        status = dpi_path_encode(&x->world);
    }
    for (int32_t i = 0; i < n_runs && status == DPI_STATUS_OK; i++) {
        status = dpi_path_check(&x->world, &s, &x->trace, &x->layout);
        for (int32_t k = 0; k < N_ASSIGNED; k++)
            count[x->layout.n_places[k] ? x->layout.text[k] % 2 : NONE]++;
    }
    seen_close(x);
    DPI_TRY(status);
    dpi_audit_end_chi_square(a, dpi_audit_chi_square(count, expected, N_OWN, N_ASSIGNED * n_runs),
                             N_OWN - 1);
    return DPI_STATUS_OK;
}

/* ---- A histogram of units -------------------------------------------------------------------- */

enum { N_LABELED = 11, N_UNITS = 5, N_TEXTS = 8, REACH = 60, N_ALONE = 80 };

/* Of N_TEXTS the texts of the first label, for such counts: the label with the larger count / (2 s
 * + 1) gets the next one, s those that it has. */
static int32_t share_of_first(int64_t first, int64_t second) {
    int64_t a = 0, b = 0;
    first = first > 0 ? first : 0;
    second = second > 0 ? second : 0;
    while (a + b < N_TEXTS) {
        const int64_t x = first * (2 * b + 1), y = second * (2 * a + 1);
        if (x > y || (x == y && a <= b))
            a++;
        else
            b++;
    }
    return (int32_t)a;
}

/* By the definition: 3 units have the first label and 2 the second, and noise z has the weight
 * e^(-128 z^2 / v). */
static void expect_shares(int64_t v, double n, double expected[N_TEXTS + 1]) {
    double sum = 0;
    for (int64_t z = -REACH; z <= REACH; z++)
        sum += exp(-128.0 * (double)(z * z) / (double)v);
    for (int64_t z = -REACH; z <= REACH; z++)
        for (int64_t y = -REACH; y <= REACH; y++)
            expected[share_of_first(3 + z, 2 + y)] +=
                n * exp(-128.0 * (double)(z * z + y * y) / (double)v) / (sum * sum);
}

static dpi_status draw_shares(seen *x, int32_t n_units, int32_t n, int64_t count[N_TEXTS + 1]) {
    const path_setup s = {.batch = 2, .n_texts = N_TEXTS, .n_tokens = 1, .per_unit = 3,
                          .histogram = .1, .adjacency = DPI_ADJACENCY_ADD_REMOVE};
    x->world.n_units = n_units;
    x->world.labels = DPI_LABELS_PRIVATE;
    DPI_TRY(dpi_path_encode(&x->world));
    for (int32_t i = 0; i < n; i++) {
        int32_t n_first = 0;
        DPI_TRY(dpi_path_check(&x->world, &s, &x->trace, &x->layout));
        for (int32_t b = 0; b < N_TEXTS; b++)
            n_first += x->trace.text[b].label == 0;
        count[n_first]++;
    }
    return DPI_STATUS_OK;
}

/* Units are counted, not records, and with the noise that is charged: rho .1, so v = 1280. Cells
 * that are expected less than 8 times are one. */
static dpi_status audit_histogram(dpi_audit *a, const dpi_model *model) {
    const int32_t n_runs = dpi_audit_count(a, N_RUNS);
    int64_t count[N_TEXTS + 1] = {0};
    double expected[N_TEXTS + 1] = {0}, rare = 0;
    int32_t n_cells = 0;
    seen *x;
    DPI_TRY(dpi_audit_begin(a, "releases", "the path, a histogram of labels"));
    dpi_status status = seen_open(a, model, PATH_CSV, N_LABELED, &x);
    if (status == DPI_STATUS_OK)
        status = draw_shares(x, N_UNITS, n_runs, count);
    seen_close(x);
    DPI_TRY(status);
    expect_shares(1280, n_runs, expected);
    int64_t n_rare = n_runs;
    for (int32_t k = 0; k <= N_TEXTS; k++) {
        if (expected[k] < 8) {
            rare += expected[k];
            continue;
        }
        n_rare -= count[k];
        count[n_cells] = count[k], expected[n_cells++] = expected[k];
    }
    if (n_cells <= N_TEXTS) /* the rare ones are one cell */
        count[n_cells] = n_rare, expected[n_cells++] = rare;
    dpi_audit_end_chi_square(a, dpi_audit_chi_square(count, expected, n_cells, 1), n_cells - 1);
    return DPI_STATUS_OK;
}

/* The first label has one unit and the second none, which a neighbour may have: its count has noise
 * as any other. Without noise the second label has no text, or where the first count is not above 0
 * half of them. It has another number with chance .348 in each run. */
static dpi_status audit_no_unit(dpi_audit *a, const dpi_model *model) {
    int64_t count[N_TEXTS + 1] = {0};
    seen *x;
    DPI_TRY(dpi_audit_begin(a, "releases", "the path, a histogram with an empty label"));
    dpi_status status = seen_open(a, model, PATH_CSV, N_LABELED, &x);
    if (status == DPI_STATUS_OK)
        status = draw_shares(x, 1, N_ALONE, count);
    seen_close(x);
    DPI_TRY(status);
    const int64_t n_noisy = N_ALONE - count[N_TEXTS] - count[N_TEXTS / 2];
    dpi_audit_hold(a, n_noisy > 0, "the count of a label without a unit has no noise");
    dpi_audit_end(a, "runs in which it has noise", (double)n_noisy, 1, N_ALONE);
    return DPI_STATUS_OK;
}

/* ---- All of them ----------------------------------------------------------------------------- */

dpi_status dpi_path_audit_runs(dpi_audit *a, const dpi_model *model) {
    DPI_TRY(audit_counts(a, model));
    DPI_TRY(audit_assigned(a, model, 1, false, 0, "the path, batches of a record by content",
                           "the path, batches of two records by content"));
    DPI_TRY(audit_assigned(a, model, .6, false, 0, "the path, secret batches of a record",
                           "the path, secret batches of two records"));
    DPI_TRY(audit_assigned(a, model, 1, true, 0, "the path, one of many batches of a record",
                           "the path, one of many batches of two records"));
    DPI_TRY(audit_assigned(a, model, .6, true, 1, "the path, secret batches under a key",
                           "the path, secret batches of two records under a key"));
    DPI_TRY(audit_histogram(a, model));
    DPI_TRY(audit_no_unit(a, model));
    return audit_labeled(a, model);
}
