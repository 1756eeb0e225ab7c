/* audit_path.c - whole releases of made-up records and of their neighbours: files,
 * batches, prompts, generations, with random bits that the audit chooses. It sees which record is
 * in which slot by its logits, which it computes a second time. It holds that each record is in at
 * most one text, that taking one away moves no other and changes no other text, that public
 * prompts, public logits and the number of texts are the same, and that secret assignment has its
 * probabilities (dp/PRIVACY.md section 9). See path.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/path.h"
#include "base/status.h"

/* ---- Neighbours ------------------------------------------------------------------------------ */

/* What becomes of a unit on the other side: null; not there; only its first record; with private
 * labels another unit, which has the same records and the other label. */
typedef enum path_change { CHANGE_EMPTY, CHANGE_GONE, CHANGE_FEWER, CHANGE_LABEL } path_change;

/* Both sides of a pair. `moved` is the unit in which they differ: a record, or all records of one
 * ID. */
typedef struct pair {
    path_world *world;
    path_trace with, without;
    path_layout here, there;
    int32_t moved;
    path_change change;
    int64_t most_moved;    /* by which a sum may differ, in units of K */
    long double most_eta;  /* by which a loss may exceed one eta */
    double max_ratio;      /* of a loss to eta */
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
        dpi_audit_hold(a, most <= p->most_moved * plan->K,
                       "a sum moves by more than a record may move it");
        p->max_ratio = fmax(p->max_ratio, dpi_audit_loss_ratio(a, &d, &e, p->most_eta * plan->eta));
    }
}

/* Every other record is in the text and slot where it was; where batches are not by position, in
 * the same text. */
static void check_layouts(const pair *p, bool by_position) {
    const path_world *w = p->world;
    for (int32_t i = 0; i < w->n_records; i++) {
        if (dpi_path_unit(w, i) == p->moved) {
            dpi_audit_hold(w->audit, p->change >= CHANGE_FEWER || p->there.n_places[i] == 0,
                           "a record that is null is in a text");
            continue;
        }
        dpi_audit_hold(w->audit,
                       p->here.n_places[i] == p->there.n_places[i] &&
                           p->here.text[i] == p->there.text[i] &&
                           (!by_position || p->here.slot[i] == p->there.slot[i]),
                       "a record that is taken away moves another one");
    }
}

/* The text that the unit is in: one, with all of its records that are used. -1: none. */
static int32_t text_of_unit(const pair *p, const path_layout *layout) {
    const path_world *w = p->world;
    int32_t text = -1;
    for (int32_t i = 0; i < w->n_records; i++) {
        if (dpi_path_unit(w, i) != p->moved || layout->n_places[i] == 0)
            continue;
        dpi_audit_hold(w->audit, text < 0 || text == layout->text[i], "a unit is in two texts");
        text = layout->text[i];
    }
    return text;
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

static void compare(pair *p, const path_setup *s) {
    dpi_audit *a = p->world->audit;
    const bool paced = s->pace != DPI_PACE_NONE, placed = dpi_path_has_layout(s);
    if (placed)
        check_layouts(p, !dpi_path_is_assigned(s));
    dpi_audit_hold(a, p->with.n_texts == p->without.n_texts,
                   "a record changes the number of texts");
    dpi_audit_hold(a, p->with.events == p->without.events,
                   "a record changes what a caller is told");
    dpi_audit_hold(a, p->with.claim == p->without.claim, "a record changes the statement");
    /* Where logits do not tell which text a record is in: by position it follows, else it may be
     * any. */
    const bool any = !placed && dpi_path_is_assigned(s);
    const int32_t own = placed ? text_of_unit(p, &p->here) : p->moved / s->batch;
    const int32_t other = placed ? text_of_unit(p, &p->there) : own;
    dpi_audit_hold(a, own == other || other < 0 || p->change == CHANGE_LABEL,
                   "a unit goes to another text");
    for (int32_t b = 0; b < p->with.n_texts && b < DPI_PATH_TEXTS; b++) {
        if (paced)
            check_decisions(p, &p->with.text[b], &p->without.text[b]);
        if (any || b == own || (b == other && other >= 0))
            check_own_text(p, &p->with.text[b], &p->without.text[b]);
        else
            check_other_text(p, &p->with.text[b], &p->without.text[b]);
    }
}

/* ---- One setup, and all of its neighbours ---------------------------------------------------- */

/* The other side of a pair: `here` has observed the records as they are. */
static dpi_status observe_change(path_world *w, const path_setup *s, pair *p) {
    path_state before[DPI_PATH_RECORDS];
    memcpy(before, w->state, sizeof before);
    const path_state state = p->change == CHANGE_EMPTY ? PATH_EMPTY : PATH_GONE;
    for (int32_t i = p->moved; i < w->n_records && p->change != CHANGE_LABEL; i++)
        if (dpi_path_unit(w, i) == p->moved && (p->change != CHANGE_FEWER || i != p->moved))
            w->state[i] = state;
    if (p->change == CHANGE_LABEL) {
        w->flipped = p->moved;
        DPI_TRY(dpi_path_encode(w));
    }
    const dpi_status status = dpi_path_check(w, s, &p->without, &p->there);
    memcpy(w->state, before, sizeof before);
    w->flipped = -1;
    return p->change == CHANGE_LABEL && status == DPI_STATUS_OK ? dpi_path_encode(w) : status;
}

static bool is_neighbour(const path_world *w, const path_setup *s, const pair *p) {
    return p->change == CHANGE_GONE    ? s->adjacency == DPI_ADJACENCY_ADD_REMOVE
           : p->change == CHANGE_FEWER ? w->n_units > 0
           : p->change == CHANGE_LABEL ? w->labels == DPI_LABELS_PRIVATE
                                       : true;
}

/* Groups of similar records: each record goes where it goes when it is the only one. */
static dpi_status check_alone(path_world *w, const path_setup *s, pair *p, int32_t step) {
    for (int32_t i = 0; i < w->n_records; i += step) {
        path_state before[DPI_PATH_RECORDS];
        if (w->state[i] != PATH_PRESENT)
            continue;
        memcpy(before, w->state, sizeof before);
        for (int32_t k = 0; k < w->n_records; k++)
            w->state[k] = k == i ? PATH_PRESENT : PATH_GONE;
        const dpi_status status = dpi_path_check(w, s, &p->without, &p->there);
        memcpy(w->state, before, sizeof before);
        DPI_TRY(status);
        dpi_audit_hold(w->audit, p->there.text[i] == p->here.text[i],
                       "a record's group depends on other records");
    }
    return DPI_STATUS_OK;
}

/* The records against themselves without each unit. step: every so many units. */
static dpi_status check_neighbours(path_world *w, const path_setup *s, pair *p, int32_t step) {
    const int32_t n = w->n_units > 0 ? w->n_units : w->n_records;
    const bool zero_out = s->adjacency == DPI_ADJACENCY_ZERO_OUT;
    p->world = w;
    DPI_TRY(dpi_path_check(w, s, &p->with, &p->here));
    for (p->moved = 0; p->moved < n; p->moved += step) {
        if (w->n_units == 0 && w->state[p->moved] != PATH_PRESENT)
            continue;
        for (p->change = CHANGE_EMPTY; p->change <= CHANGE_LABEL; p->change++) {
            const bool twice = p->change == CHANGE_FEWER; /* c against another c, not against 0 */
            p->most_moved = zero_out || twice ? 2 : 1;
            p->most_eta = twice && !zero_out ? 2 : 1;
            if (!is_neighbour(w, s, p))
                continue;
            w->empty_form = p->moved / step % 3;
            DPI_TRY(observe_change(w, s, p));
            compare(p, s);
        }
    }
    return s->n_clusters > 0 ? check_alone(w, s, p, step) : DPI_STATUS_OK;
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

enum { N_SETUPS = 5, BY_CONTENT = DPI_ADJACENCY_ADD_REMOVE };

typedef struct path_line {
    const char *subject;
    int32_t n_records, empty; /* records, and one of them that is null from the start; -1: none */
    int32_t n_units, labels; /* 0: each record is a unit, no labels; else only files with fields */
    path_setup setups[N_SETUPS]; /* up to the first without a batch */
} path_line;

static const path_line LINES[] = {
    {"the path, records by position", 8, 2, 0, 0,
     {{.batch = 3, .n_tokens = 3},
      {.batch = 3, .n_tokens = 3, .adjacency = DPI_ADJACENCY_ZERO_OUT},
      {.batch = 3, .n_tokens = 3, .stop_after = 2, .top_k = 40},
      {.batch = 3, .n_texts = 2, .n_tokens = 2, .top_k = 5},
      {.batch = 8, .n_tokens = 1}}},
    /* Low temperatures, so that a model that is made of random weights is sure here and there. */
    {"the path, a pace from public texts", 6, 1, 0, 0,
     {{.batch = 3, .n_tokens = 3, .pace = DPI_PACE_AUTO, .tau = .03},
      {.batch = 2, .n_tokens = 3, .pace = DPI_PACE_AUTO, .tau = .06, .top_k = 9},
      {.batch = 8, .n_tokens = 3, .pace = DPI_PACE_TOP, .tau = .03,
       .adjacency = DPI_ADJACENCY_ZERO_OUT}}},
    {"the path, a pace and private labels", 11, 3, 5, DPI_LABELS_PRIVATE,
     {{.batch = 2, .n_texts = 4, .n_tokens = 2, .bits = 2, .pace = DPI_PACE_AUTO, .tau = .03,
       .per_unit = 2, .adjacency = BY_CONTENT}}},
    {"the path, a pace and records by content", 6, 1, 0, 0,
     {{.batch = 2, .n_texts = 2, .n_tokens = 3, .bits = 1, .pace = DPI_PACE_AUTO, .tau = .06,
       .top_k = 9, .adjacency = BY_CONTENT},
      {.batch = 3, .n_texts = 2, .n_tokens = 3, .bits = 2, .pace = DPI_PACE_TOP, .tau = .06,
       .adjacency = BY_CONTENT}}},
    {"the path, a pace and units", 12, 7, 5, DPI_LABELS_NONE,
     {{.batch = 2, .n_tokens = 3, .pace = DPI_PACE_AUTO, .tau = .03, .per_unit = 2},
      {.batch = 3, .n_tokens = 3, .pace = DPI_PACE_TOP, .tau = .05, .per_unit = 3}}},
    /* Prompts with texts that other records have written. */
    {"the path, texts of earlier rounds", 7, 3, 0, 0,
     {{.batch = 2, .n_tokens = 3, .n_released = 1},
      {.batch = 1, .n_tokens = 2, .n_released = 3, .adjacency = DPI_ADJACENCY_ZERO_OUT},
      {.batch = 2, .n_texts = 3, .n_tokens = 2, .n_released = 1, .bits = 6,
       .adjacency = BY_CONTENT},
      {.batch = 1, .n_texts = 4, .n_tokens = 2, .n_released = 2, .bits = 7, .subsample = .8}}},
    {"the path, rounds, a pace and units", 12, 7, 5, DPI_LABELS_NONE,
     {{.batch = 2, .n_tokens = 3, .n_released = 1, .pace = DPI_PACE_AUTO, .tau = .03,
       .per_unit = 2},
      {.batch = 2, .n_tokens = 3, .n_released = 1, .pace = DPI_PACE_TOP, .tau = .07,
       .per_unit = 2}}},
    /* Units of two or three records, which stand apart in the file; with M below that, some are not
     * used. */
    {"the path, units of records", 12, 7, 5, DPI_LABELS_NONE,
     {{.batch = 2, .n_tokens = 2, .per_unit = 2},
      {.batch = 2, .n_tokens = 1, .per_unit = 3, .adjacency = DPI_ADJACENCY_ZERO_OUT},
      {.batch = 2, .n_texts = 3, .n_tokens = 1, .per_unit = 2, .bits = 1,
       .adjacency = BY_CONTENT}}},
    {"the path, public labels", 11, 3, 5, DPI_LABELS_PUBLIC,
     {{.batch = 2, .n_tokens = 2, .per_unit = 2}, {.batch = 1, .n_tokens = 1, .per_unit = 1}}},
    {"the path, private labels", 11, 3, 5, DPI_LABELS_PRIVATE,
     {{.batch = 2, .n_texts = 4, .n_tokens = 2, .per_unit = 2, .bits = 2, .adjacency = BY_CONTENT},
      {.batch = 2, .n_texts = 3, .n_tokens = 1, .per_unit = 3, .bits = 3, .n_shards = 2,
       .adjacency = BY_CONTENT}}},
    {"the path, records by their content", 14, 4, 0, 0,
     {{.batch = 2, .n_texts = 3, .n_tokens = 2, .bits = 1, .adjacency = BY_CONTENT},
      {.batch = 2, .n_texts = 1, .n_tokens = 1, .bits = 2, .adjacency = BY_CONTENT},
      {.batch = 5, .n_texts = 7, .n_tokens = 1, .bits = 3, .adjacency = BY_CONTENT}}},
    /* More records than slots, so that a cap would show; 2 texts a group, groups with 3 and 2. */
    {"the path, groups of similar records", 14, 4, 0, 0,
     {{.batch = 2, .n_texts = 6, .n_tokens = 1, .bits = 7, .n_clusters = 3,
       .adjacency = BY_CONTENT},
      {.batch = 1, .n_texts = 5, .n_tokens = 1, .bits = 8, .n_clusters = 2,
       .adjacency = BY_CONTENT}}},
    {"the path, secret assignment", 10, 1, 0, 0,
     {{.batch = 2, .n_texts = 2, .n_tokens = 2, .subsample = .6, .bits = 4},
      {.batch = 1, .n_texts = 3, .n_tokens = 1, .subsample = .9, .bits = 5,
       .adjacency = BY_CONTENT}}},
    {"the path, one of many batches", 10, 1, 0, 0,
     {{.batch = 2, .n_texts = 3, .n_tokens = 2, .secret = true, .bits = 4, .adjacency = BY_CONTENT},
      {.batch = 1, .n_texts = 3, .n_tokens = 1, .subsample = .9, .secret = true, .bits = 5},
      {.batch = 1, .n_texts = 4, .n_tokens = 2, .n_released = 2, .secret = true, .bits = 7,
       .adjacency = BY_CONTENT},
      {.batch = 2, .n_texts = 2, .n_tokens = 2, .pace = DPI_PACE_TOP, .tau = .06, .secret = true,
       .bits = 2, .adjacency = BY_CONTENT},
      {.batch = 2, .n_texts = 5, .n_tokens = 1, .bits = 1, .n_shards = 3, .subsample = 1,
       .secret = true}}},
    {"the path, one of many batches of a label", 11, 3, 5, DPI_LABELS_PRIVATE,
     {{.batch = 2, .n_texts = 4, .n_tokens = 2, .per_unit = 2, .secret = true, .bits = 2,
       .adjacency = BY_CONTENT}}},
    /* Several processes: the same holds for the texts of all of them. */
    {"the path, shards", 8, 1, 0, 0,
     {{.batch = 3, .n_tokens = 2, .n_shards = 2},
      {.batch = 2, .n_texts = 5, .n_tokens = 1, .bits = 1, .n_shards = 3, .adjacency = BY_CONTENT},
      {.batch = 2, .n_texts = 2, .n_tokens = 1, .bits = 2, .n_shards = 2, .subsample = .6}}},
};

static dpi_status run_setups(dpi_audit *a, const dpi_model *model, const path_line *l,
                             path_source source, double *max_ratio, int64_t *n_free) {
    path_world *w = calloc(1, sizeof *w);
    pair *p = calloc(1, sizeof *p);
    dpi_status status = w && p ? dpi_path_open(w, a, model, source, l->n_records)
                               : dpi_no_memory(a->err, "an audit");
    if (status == DPI_STATUS_OK)
        status = open_pair(w, p);
    if (status == DPI_STATUS_OK) {
        w->n_units = l->n_units;
        w->labels = l->labels;
        status = dpi_path_encode(w);
    }
    if (status == DPI_STATUS_OK && l->empty >= 0)
        w->state[l->empty] = PATH_EMPTY;
    for (int i = 0; i < N_SETUPS && l->setups[i].batch > 0 && status == DPI_STATUS_OK; i++)
        status = check_neighbours(w, &l->setups[i], p, a->options.effort < 1 ? 3 : 1);
    if (p) {
        *max_ratio = fmax(*max_ratio, p->max_ratio);
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
    double max_ratio = 0;
    int64_t n_free = 0;
    DPI_TRY(dpi_audit_begin(a, "releases", l->subject));
    for (path_source source = l->n_units > 0 ? PATH_JSONL : PATH_MEMORY; source < PATH_SOURCES;
         source++)
        DPI_TRY(run_setups(a, model, l, source, &max_ratio, &n_free));
    dpi_audit_hold(a, l->setups[0].pace == DPI_PACE_NONE || n_free > 0, "no step is free");
    dpi_audit_end(a, "largest loss / eta", max_ratio, .05, 1 + 1e-9);
    return DPI_STATUS_OK;
}

/* ---- The user's model ------------------------------------------------------------------------ */

static dpi_status audit_user_model(dpi_audit *a) {
    static const path_line l = {
        "the path of this model", 4, -1, 0, 0,
        {{.batch = 2, .n_tokens = 2, .top_k = 100},
         {.batch = 1, .n_texts = 2, .n_tokens = 1, .bits = 6, .adjacency = BY_CONTENT}}};
    double max_ratio = 0;
    int64_t n_free = 0;
    if (!a->options.model)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_audit_begin(a, "releases", l.subject));
    DPI_TRY(run_setups(a, a->options.model, &l, a->options.folder ? PATH_CSV : PATH_MEMORY,
                       &max_ratio, &n_free));
    dpi_audit_end(a, "largest loss / eta", max_ratio, 0, 1 + 1e-9);
    return DPI_STATUS_OK;
}

/* ---- A model that is made -------------------------------------------------------------------- */

static dpi_status run_made(dpi_audit *a, const dpi_model *model) {
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        DPI_TRY(run_line(a, model, &LINES[i]));
    DPI_TRY(dpi_path_audit_open(a, model));
    return dpi_path_audit_runs(a, model);
}

static dpi_status audit_made_model(dpi_audit *a) {
    dpi_model *model;
    if (!a->options.folder)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_audit_make_model(a, 32, 2 * DPI_PATH_CTX, &model));
    dpi_session_options session = a->options.session;
    a->options.session.n_threads = 1;
    const dpi_status status = run_made(a, model);
    a->options.session = session;
    dpi_model_close(model);
    return status;
}

dpi_status dpi_audit_path(dpi_audit *a) {
    DPI_TRY(audit_made_model(a));
    return audit_user_model(a);
}
