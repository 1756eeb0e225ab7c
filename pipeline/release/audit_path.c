/* audit_path.c - audit F: whole releases and their neighbours. See audit_path.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "dpinfer/audit_path.h"
#include "dpinfer/write.h"
#include "pipeline/release/audit_path.h"

/* ---- Neighbours ------------------------------------------------------------------------------ */

/* Both sides of a pair. `moved` is the record that one of them does not have. */
typedef struct pair {
    path_world *world;
    path_trace with, without;
    path_layout here, there;
    int32_t moved;
    int64_t most_moved;    /* by which a sum may differ, in units of K */
    long double max_ratio; /* of a loss to eta */
    int64_t n_free;        /* steps */
} pair;

static bool same_step(const path_text *x, const path_text *y, int32_t t) {
    const size_t n = x->n_support[t];
    return n == y->n_support[t] && x->token[t] == y->token[t] &&
           memcmp(x->support[t], y->support[t], n * sizeof(int32_t)) == 0 &&
           memcmp(x->sum[t], y->sum[t], n * sizeof(int64_t)) == 0 &&
           memcmp(x->weights[t], y->weights[t], n * sizeof(dpi_u128)) == 0;
}

/* A text that the record is not in: nothing changes at all. */
static void check_other_text(const pair *p, const path_text *x, const path_text *y) {
    bool same = x->n_seen == y->n_seen && x->n_slots <= DPI_PATH_SLOTS;
    for (int32_t t = 0; t < x->n_seen && same; t++)
        same = same_step(x, y, t);
    dpi_audit_hold(p->world->audit, same, "a record changes a text that it is not in");
}

/* Its own text: the same support, sums that differ by c of the record, a loss that eta allows. */
static void check_own_text(pair *p, const path_text *x, const path_text *y) {
    dpi_audit *a = p->world->audit;
    const dpi_sampler_plan *plan = &p->with.plan;
    for (int32_t t = 0; t < x->n_seen; t++) {
        const size_t n = x->n_support[t];
        if (!dpi_audit_hold(a,
                            n == y->n_support[t] && t < y->n_seen && x->token[t] == y->token[t] &&
                                memcmp(x->support[t], y->support[t], n * sizeof(int32_t)) == 0,
                            "the supports of neighbours differ"))
            return;
        int64_t most = 0;
        for (size_t i = 0; i < n; i++) {
            const int64_t moved = llabs(x->sum[t][i] - y->sum[t][i]);
            most = moved > most ? moved : most;
        }
        const dpi_distribution d = {.n_support = (int64_t)n, .weights = x->weights[t]};
        const dpi_distribution e = {.n_support = (int64_t)n, .weights = y->weights[t]};
        const long double loss = dpi_audit_loss(&d, &e);
        dpi_audit_hold(a, most <= p->most_moved * plan->K,
                       "a sum moves by more than a record may move it");
        dpi_audit_hold(a, loss <= (long double)plan->eta + 0x1p-55L, "a loss exceeds eta");
        p->max_ratio = fmaxl(p->max_ratio, loss / plan->eta);
    }
}

static bool is_assigned(const path_setup *s) {
    return s->subsample > 0 || s->adjacency == DPI_ADJACENCY_ADD_REMOVE;
}

/* Every other record is in the text and slot where it was; where batches are not by position, in
 * the same text. */
static void check_layouts(const pair *p, bool by_position) {
    const path_world *w = p->world;
    for (int32_t i = 0; i < w->n_records; i++) {
        if (i == p->moved)
            continue;
        dpi_audit_hold(w->audit,
                       p->here.n_places[i] == p->there.n_places[i] &&
                           p->here.text[i] == p->there.text[i] &&
                           (!by_position || p->here.slot[i] == p->there.slot[i]),
                       "a record that is taken away moves another one");
    }
    dpi_audit_hold(w->audit, p->there.n_places[p->moved] == 0,
                   "a record that is null is in a text");
}

/* With a pace: the same steps are private, and no more of them than the quota. */
static void check_decisions(pair *p, const path_text *x, const path_text *y) {
    int32_t n_private = 0;
    for (int32_t t = 0; t < x->n_seen; t++) {
        dpi_audit_hold(p->world->audit, x->is_free[t] == y->is_free[t],
                       "a decision depends on a record");
        n_private += !x->is_free[t];
    }
    p->n_free += x->n_seen - n_private;
    dpi_audit_hold(p->world->audit, n_private <= p->with.plan.n_private,
                   "more private tokens than the quota");
}

/* The text of the record that is moved; -1: none. With a pace logits do not tell it. */
static int32_t own_text(const pair *p, const path_setup *s) {
    return s->pace != DPI_PACE_NONE              ? p->moved / s->batch
           : p->here.n_places[p->moved] > 0 ? p->here.text[p->moved]
                                            : -1;
}

static void compare(pair *p, const path_setup *s) {
    dpi_audit *a = p->world->audit;
    const bool paced = s->pace != DPI_PACE_NONE;
    if (!paced)
        check_layouts(p, !is_assigned(s));
    dpi_audit_hold(a, p->with.n_texts == p->without.n_texts,
                   "a record changes the number of texts");
    dpi_audit_hold(a, p->with.events == p->without.events,
                   "a record changes what a caller is told");
    dpi_audit_hold(a, p->with.claim == p->without.claim, "a record changes the statement");
    const int32_t own = own_text(p, s);
    for (int32_t b = 0; b < p->with.n_texts && b < DPI_PATH_TEXTS; b++) {
        if (paced)
            check_decisions(p, &p->with.text[b], &p->without.text[b]);
        if (b == own)
            check_own_text(p, &p->with.text[b], &p->without.text[b]);
        else
            check_other_text(p, &p->with.text[b], &p->without.text[b]);
    }
}

/* ---- One setup, and all of its neighbours ---------------------------------------------------- */

/* Where the records have to be. By position: in their places, and null ones in none. By content:
 * each in one text, however many there are. By a draw: at most in one, which dpi_path_layout has
 * seen. */
static void check_places(const path_world *w, const path_setup *s, const path_trace *trace,
                         const path_layout *layout) {
    for (int32_t i = 0; i < w->n_records; i++) {
        const bool present = w->state[i] == PATH_PRESENT;
        if (is_assigned(s)) {
            dpi_audit_hold(w->audit, s->subsample > 0 || layout->n_places[i] == present,
                           "a record is in no text");
            continue;
        }
        const int32_t text = i / s->batch;
        const bool wanted = present && text < trace->n_texts;
        dpi_audit_hold(
            w->audit,
            layout->n_places[i] == wanted &&
                (!wanted || (layout->text[i] == text && layout->slot[i] == i % s->batch)),
            "a record is not in its place");
    }
    const int32_t n_batches = (w->n_records + s->batch - 1) / s->batch;
    const int32_t n_texts =
        s->n_texts > 0 && (is_assigned(s) || s->n_texts < n_batches) ? s->n_texts : n_batches;
    dpi_audit_hold(w->audit, trace->n_texts == n_texts,
                   "the number of texts is not the public one");
}

static dpi_status observe(path_world *w, const path_setup *s, path_trace *trace,
                          path_layout *layout) {
    DPI_TRY(dpi_path_observe(w, s, trace));
    if (s->pace != DPI_PACE_NONE)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_path_layout(w, trace, layout));
    check_places(w, s, trace, layout);
    return DPI_STATUS_OK;
}

/* The records against themselves without each of them: empty in its place, and where places are not
 * what counts, not there at all. step: every so many records. */
static dpi_status check_neighbours(path_world *w, const path_setup *s, pair *p, int32_t step) {
    p->world = w;
    p->most_moved = s->adjacency == DPI_ADJACENCY_ZERO_OUT ? 2 : 1;
    DPI_TRY(observe(w, s, &p->with, &p->here));
    for (p->moved = 0; p->moved < w->n_records; p->moved += step) {
        const path_state before = w->state[p->moved];
        if (before != PATH_PRESENT)
            continue;
        for (int32_t gone = 0; gone <= (s->adjacency == DPI_ADJACENCY_ADD_REMOVE); gone++) {
            w->state[p->moved] = gone ? PATH_GONE : PATH_EMPTY;
            w->empty_form = p->moved / step % 3;
            dpi_status status = observe(w, s, &p->without, &p->there);
            w->state[p->moved] = before;
            DPI_TRY(status);
            compare(p, s);
        }
    }
    return DPI_STATUS_OK;
}

static dpi_status open_pair(const path_world *w, pair *p) {
    DPI_TRY(dpi_path_trace_create(w, &p->with));
    return dpi_path_trace_create(w, &p->without);
}

static void close_pair(pair *p) {
    dpi_path_trace_free(&p->with);
    dpi_path_trace_free(&p->without);
}

/* ---- A line: setups, from each kind of source ------------------------------------------------ */

typedef struct path_line {
    const char *subject;
    int32_t n_records, empty; /* records, and one of them that is null from the start; -1: none */
    const path_setup *setups;
    size_t n_setups;
} path_line;

static dpi_status run_setups(dpi_audit *a, const dpi_model *model, const path_line *l,
                             path_source source, long double *max_ratio, int64_t *n_free) {
    path_world *w = calloc(1, sizeof *w);
    pair *p = calloc(1, sizeof *p);
    dpi_status status = w && p ? dpi_path_open(w, a, model, source, l->n_records)
                               : dpi_fail(a->err, DPI_STATUS_MEMORY, "no memory for audit F");
    if (status == DPI_STATUS_OK)
        status = open_pair(w, p);
    if (status == DPI_STATUS_OK && l->empty >= 0)
        w->state[l->empty] = PATH_EMPTY;
    for (size_t i = 0; i < l->n_setups && status == DPI_STATUS_OK; i++)
        status = check_neighbours(w, &l->setups[i], p, a->options.effort < 1 ? 3 : 1);
    if (p) {
        *max_ratio = fmaxl(*max_ratio, p->max_ratio);
        *n_free += p->n_free;
        close_pair(p);
    }
    if (w)
        dpi_path_close(w);
    free(w);
    free(p);
    return status;
}

static dpi_status run_line(dpi_audit *a, const dpi_model *model, const path_line *l) {
    long double max_ratio = 0;
    int64_t n_free = 0;
    DPI_TRY(dpi_audit_begin(a, "F", l->subject));
    for (path_source source = PATH_MEMORY; source < PATH_SOURCES; source++)
        DPI_TRY(run_setups(a, model, l, source, &max_ratio, &n_free));
    dpi_audit_hold(a, l->setups[0].pace == DPI_PACE_NONE || n_free > 0, "no step is free");
    dpi_audit_end(a, "largest loss / eta", (double)max_ratio, .05, 1 + 1e-9);
    return DPI_STATUS_OK;
}

static dpi_status audit_position(dpi_audit *a, const dpi_model *model) {
    static const path_setup setups[] = {
        {.batch = 3, .n_tokens = 3, .stop_at = -1},
        {.batch = 3, .n_tokens = 3, .stop_at = -1, .adjacency = DPI_ADJACENCY_ZERO_OUT},
        {.batch = 3, .n_tokens = 3, .stop_at = 1, .top_k = 40},
        {.batch = 3, .n_texts = 2, .n_tokens = 2, .stop_at = -1, .top_k = 5},
        {.batch = 8, .n_tokens = 1, .stop_at = -1},
    };
    return run_line(a, model,
                    &(path_line){"the path, records by position", 8, 2, setups,
                                 sizeof setups / sizeof *setups});
}

/* The temperatures are low, so that the model, which is made of random weights, is sure here and
 * there. */
static dpi_status audit_paced(dpi_audit *a, const dpi_model *model) {
    static const path_setup setups[] = {
        {.batch = 3, .n_tokens = 3, .stop_at = -1, .pace = DPI_PACE_AUTO, .tau = .03},
        {.batch = 2, .n_tokens = 3, .stop_at = -1, .pace = DPI_PACE_AUTO, .tau = .06, .top_k = 9},
        {.batch = 8,
         .n_tokens = 3,
         .stop_at = -1,
         .pace = DPI_PACE_TOP,
         .tau = .03,
         .adjacency = DPI_ADJACENCY_ZERO_OUT},
    };
    return run_line(a, model,
                    &(path_line){"the path, a pace from public texts", 6, 1, setups,
                                 sizeof setups / sizeof *setups});
}

static dpi_status audit_content(dpi_audit *a, const dpi_model *model) {
    enum { BY_CONTENT = DPI_ADJACENCY_ADD_REMOVE };
    static const path_setup setups[] = {
        {.batch = 2,
         .n_texts = 3,
         .n_tokens = 2,
         .stop_at = -1,
         .adjacency = BY_CONTENT,
         .bits = 1},
        {.batch = 2,
         .n_texts = 1,
         .n_tokens = 1,
         .stop_at = -1,
         .adjacency = BY_CONTENT,
         .bits = 2},
        {.batch = 5,
         .n_texts = 7,
         .n_tokens = 1,
         .stop_at = -1,
         .adjacency = BY_CONTENT,
         .bits = 3},
    };
    return run_line(a, model,
                    &(path_line){"the path, records by their content", 14, 4, setups,
                                 sizeof setups / sizeof *setups});
}

static dpi_status audit_secret(dpi_audit *a, const dpi_model *model) {
    static const path_setup setups[] = {
        {.batch = 2, .n_texts = 2, .n_tokens = 2, .stop_at = -1, .subsample = .6, .bits = 4},
        {.batch = 1,
         .n_texts = 3,
         .n_tokens = 1,
         .stop_at = -1,
         .subsample = .9,
         .bits = 5,
         .adjacency = DPI_ADJACENCY_ADD_REMOVE},
    };
    return run_line(
        a, model,
        &(path_line){"the path, secret assignment", 10, 1, setups, sizeof setups / sizeof *setups});
}

/* ---- Numbers of records ---------------------------------------------------------------------- */

/* The number of texts, and what a caller is told, for any number of records, null ones too. */
static dpi_status audit_counts(dpi_audit *a, const dpi_model *model) {
    static const path_setup setups[] = {
        {.batch = 3,
         .n_texts = 2,
         .n_tokens = 1,
         .stop_at = -1,
         .bits = 1,
         .adjacency = DPI_ADJACENCY_ADD_REMOVE},
        {.batch = 3, .n_texts = 2, .n_tokens = 1, .stop_at = -1, .bits = 1, .subsample = .5},
        {.batch = 3, .n_tokens = 1, .stop_at = -1},
    };
    static const int32_t counts[] = {0, 1, 3, 16};
    DPI_TRY(dpi_audit_begin(a, "F", "the path, numbers of records"));
    path_world *w = calloc(1, sizeof *w);
    pair *p = calloc(1, sizeof *p);
    dpi_status status =
        w && p ? DPI_STATUS_OK : dpi_fail(a->err, DPI_STATUS_MEMORY, "no memory for audit F");
    for (size_t i = 0; i < 24 && status == DPI_STATUS_OK; i++) {
        const path_setup *s = &setups[i % 3];
        const int32_t n = counts[i / 3 % 4];
        if (n == 0 && !is_assigned(s))
            continue;
        status = dpi_path_open(w, a, model, PATH_MEMORY, n);
        for (int32_t k = 0; k < n && i >= 12; k++)
            w->state[k] = PATH_EMPTY;
        if (status == DPI_STATUS_OK)
            status = dpi_path_trace_create(w, &p->with);
        if (status == DPI_STATUS_OK)
            status = observe(w, s, &p->with, &p->here);
        dpi_path_close(w);
        close_pair(p);
    }
    free(w);
    free(p);
    DPI_TRY(status);
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

static double deviation(int64_t count, double expected) {
    return expected > 0 ? ((double)count - expected) * ((double)count - expected) / expected
           : count > 0  ? INFINITY
                        : 0;
}

/* Shards: the same holds for the texts of all of them. */
static dpi_status audit_shards(dpi_audit *a, const dpi_model *model) {
    static const path_setup setups[] = {
        {.batch = 3, .n_tokens = 2, .stop_at = -1, .n_shards = 2},
        {.batch = 2, .n_texts = 5, .n_tokens = 1, .stop_at = -1, .bits = 1, .n_shards = 3,
         .adjacency = DPI_ADJACENCY_ADD_REMOVE},
        {.batch = 2, .n_texts = 2, .n_tokens = 1, .stop_at = -1, .bits = 2, .n_shards = 2,
         .subsample = .6},
    };
    return run_line(a, model,
                    &(path_line){"the path, shards", 8, 1, setups, sizeof setups / sizeof *setups});
}

/* Each record is in each of 3 texts with probability q / 3 (by content q is 1), whatever the record
 * beside it does, and whatever its place is. */
static dpi_status audit_assigned(dpi_audit *a, const dpi_model *model, double q, int32_t n_shards,
                                 const char *of_one, const char *of_two) {
    const path_setup s = {.batch = 4,
                          .n_texts = N_CELLS - 1,
                          .n_tokens = 1,
                          .stop_at = -1,
                          .n_shards = n_shards,
                          .subsample = q < 1 ? q : 0,
                          .adjacency =
                              q < 1 ? DPI_ADJACENCY_REPLACE_BY_NULL : DPI_ADJACENCY_ADD_REMOVE};
    const int32_t n_runs = dpi_audit_count(a, N_RUNS);
    path_world *w = calloc(1, sizeof *w);
    pair *p = calloc(1, sizeof *p);
    cells c = {0};
    DPI_TRY(dpi_audit_begin(a, "F", of_one));
    dpi_status status = w && p ? dpi_path_open(w, a, model, PATH_MEMORY, N_ASSIGNED)
                               : dpi_fail(a->err, DPI_STATUS_MEMORY, "no memory for audit F");
    if (status == DPI_STATUS_OK)
        status = dpi_path_trace_create(w, &p->with);
    for (int32_t i = 0; i < n_runs && status == DPI_STATUS_OK; i++) {
        status = observe(w, &s, &p->with, &p->here);
        count_places(&p->here, &c);
    }
    if (p)
        close_pair(p);
    if (w)
        dpi_path_close(w);
    free(w);
    free(p);
    DPI_TRY(status);
    const int32_t n_free = q < 1 ? N_CELLS - 1 : N_CELLS - 2;
    double one = 0, two = 0;
    for (int32_t k = 0; k < N_CELLS; k++) {
        const double of_k = k < N_CELLS - 1 ? q / (N_CELLS - 1) : 1 - q;
        for (int32_t i = 0; i < N_ASSIGNED; i++)
            one += deviation(c.one[i][k], n_runs * of_k);
        for (int32_t m = 0; m < N_CELLS; m++)
            two += deviation(c.two[k][m], N_ASSIGNED / 2 * n_runs * of_k *
                                              (m < N_CELLS - 1 ? q / (N_CELLS - 1) : 1 - q));
    }
    dpi_audit_end_chi_square(a, one, N_ASSIGNED * n_free);
    DPI_TRY(dpi_audit_begin(a, "F", of_two));
    a->result.n_cases = N_ASSIGNED / 2 * (int64_t)n_runs;
    dpi_audit_end_chi_square(a, two, (n_free + 1) * (n_free + 1) - 1);
    return DPI_STATUS_OK;
}

/* ---- The user's model ------------------------------------------------------------------------ */

static dpi_status audit_user_model(dpi_audit *a) {
    static const path_setup setups[] = {
        {.batch = 2, .n_tokens = 2, .stop_at = -1, .top_k = 100},
        {.batch = 1,
         .n_texts = 2,
         .n_tokens = 1,
         .stop_at = -1,
         .bits = 6,
         .adjacency = DPI_ADJACENCY_ADD_REMOVE},
    };
    const path_line l = {"the path of this model", 4, -1, setups, sizeof setups / sizeof *setups};
    long double max_ratio = 0;
    int64_t n_free = 0;
    if (!a->options.model)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_audit_begin(a, "F", l.subject));
    DPI_TRY(run_setups(a, a->options.model, &l, a->options.folder ? PATH_CSV : PATH_MEMORY,
                       &max_ratio, &n_free));
    dpi_audit_end(a, "largest loss / eta", (double)max_ratio, 0, 1 + 1e-9);
    return DPI_STATUS_OK;
}

/* ---- A model that is made -------------------------------------------------------------------- */

static dpi_status run_made(dpi_audit *a, const dpi_model *model) {
    DPI_TRY(audit_position(a, model));
    DPI_TRY(audit_paced(a, model));
    DPI_TRY(audit_content(a, model));
    DPI_TRY(audit_secret(a, model));
    DPI_TRY(audit_counts(a, model));
    DPI_TRY(audit_shards(a, model));
    DPI_TRY(audit_assigned(a, model, 1, 0, "the path, batches of a record by content",
                           "the path, batches of two records by content"));
    DPI_TRY(audit_assigned(a, model, .6, 0, "the path, secret batches of a record",
                           "the path, secret batches of two records"));
    return audit_assigned(a, model, .6, 1, "the path, secret batches under a key",
                          "the path, secret batches of two records under a key");
}

static dpi_status audit_made_model(dpi_audit *a) {
    char path[4096];
    dpi_model_shape shape;
    dpi_write_options write;
    dpi_model *model = NULL;
    if (!a->options.folder)
        return DPI_STATUS_OK;
    dpi_model_shape_init(&shape);
    dpi_write_options_init(&write);
    shape.n_layer = 1;
    shape.n_embd = shape.n_ff = 32;
    shape.n_head = 2;
    shape.n_kv_head = 1;
    shape.n_vocab = 300;
    shape.n_ctx_train = 2 * DPI_PATH_CTX;
    shape.rope_freq_base = 10000;
    write.type = "F32";
    write.n_threads = 1;
    snprintf(path, sizeof path, "%s/made.gguf", a->options.folder);
    DPI_TRY(dpi_model_make(&shape, NULL, 2, path, &write, a->err));
    dpi_status status = dpi_model_open(path, NULL, &model, a->err);
    unlink(path);
    dpi_session_options session = a->options.session;
    a->options.session.n_threads = 1;
    if (status == DPI_STATUS_OK)
        status = run_made(a, model);
    a->options.session = session;
    dpi_model_close(model);
    return status;
}

dpi_status dpi_audit_path_run(const dpi_audit_options *options, dpi_audit_fn on_result, void *user,
                              int32_t *n_failed, dpi_error *err) {
    static dpi_status (*const audits[])(dpi_audit *) = {audit_made_model, audit_user_model};
    return dpi_audit_all(options, audits, sizeof audits / sizeof *audits, on_result, user, n_failed,
                         err);
}
