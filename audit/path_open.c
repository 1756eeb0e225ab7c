/* path_open.c - releases that no trace watches: what is refused before a record is
 * read, texts that are drawn side by side, and texts whose batches are spread over parts. See
 * path.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "audit/path.h"

/* ---- Refusals -------------------------------------------------------------------------------- */

/* The status of a release of n records up to its first text, and why it is refused. */
static dpi_status begin_with(path_world *w, const path_setup *s, double delta, int32_t n,
                             dpi_error *why) {
    dpi_release_options o;
    dpi_records *records = NULL;
    dpi_release *release = NULL;
    for (int32_t i = 0; i < w->n_records; i++)
        w->state[i] = i < n ? PATH_PRESENT : PATH_GONE;
    *why = (dpi_error){0};
    DPI_TRY(dpi_path_records_open(w, &records));
    dpi_path_options(w, s, records, &o);
    o.method.delta = delta;
    dpi_status status = dpi_release_open(&o, &release, why);
    if (status == DPI_STATUS_OK)
        status = dpi_release_begin(release, why);
    dpi_release_free(release);
    dpi_path_records_close(w, records);
    w->audit->result.n_cases++;
    return status;
}

/* Whether a release is refused, and what is said, is the same for any secret number of records. The
 * values of delta are such that 1 / n is on both sides of them. */
static dpi_status audit_refusals(dpi_audit *a, path_world *w) {
    static const path_setup setups[] = {
        {.batch = 3, .n_texts = 2, .n_tokens = 1, .adjacency = DPI_ADJACENCY_ADD_REMOVE},
        {.batch = 3, .n_texts = 2, .n_tokens = 1, .subsample = .5},
    };
    static const double deltas[] = {.3, .07};
    DPI_TRY(dpi_audit_begin(a, "releases", "the path, refusals"));
    for (int k = 0; k < 4; k++) {
        dpi_error first, other;
        const dpi_status wanted = begin_with(w, &setups[k / 2], deltas[k % 2], 1, &first);
        for (int32_t n = 0; n <= w->n_records; n++) {
            const dpi_status found = begin_with(w, &setups[k / 2], deltas[k % 2], n, &other);
            dpi_audit_hold(a, found == wanted && strcmp(first.message, other.message) == 0,
                           "whether a release is refused depends on the secret number of records");
        }
    }
    dpi_audit_end(a, "releases", (double)a->result.n_cases, 1, INFINITY);
    return DPI_STATUS_OK;
}

/* ---- Texts side by side ---------------------------------------------------------------------- */

enum { N_BESIDE = 8, N_DRAWN = 8 }; /* texts, tokens of one */

/* -1: there is no such token, the text has ended. */
typedef struct drawn {
    int32_t token[N_BESIDE][N_DRAWN];
} drawn;

/* All texts, two at a time, with random bits that nobody has chosen. */
static dpi_status draw_beside(path_world *w, drawn *d) {
    const path_setup s = {.batch = 1, .n_tokens = N_DRAWN, .tau = 10};
    const dpi_audit_options *of = &w->audit->options;
    dpi_release_options o;
    dpi_records *records = NULL;
    dpi_release *release = NULL;
    dpi_release_event e = {0};
    memset(d, -1, sizeof *d);
    DPI_TRY(dpi_path_records_open(w, &records));
    dpi_path_options(w, &s, records, &o);
    o.n_texts = N_BESIDE;
    o.n_parallel = 2;
    o.method.random = of->random;
    o.method.random_user = of->random_user;
    dpi_status status = dpi_release_open(&o, &release, w->audit->err);
    do {
        if (status == DPI_STATUS_OK)
            status = dpi_release_advance(release, &e, w->audit->err);
        if (status == DPI_STATUS_OK && e.type == DPI_EVENT_TOKEN)
            d->token[e.index][e.n_drawn - 1] = e.token;
    } while (status == DPI_STATUS_OK && e.type != DPI_EVENT_NONE);
    dpi_release_free(release);
    dpi_path_records_close(w, records);
    w->audit->result.n_cases++;
    return status;
}

/* The temperature is high: some 300 tokens have much the same chance. Two texts begin alike with
 * about 2^-8, and are the same with less than 2^-15: the next tokens are alike too, or both texts
 * end at once, which is as rare. So two releases of 8 texts are the same with less than 2^-120, and
 * the 4 even texts of a release are its odd ones with less than 2^-60. */
static dpi_status audit_beside(dpi_audit *a, path_world *w) {
    drawn first, second;
    bool alike = true;
    for (int32_t i = 0; i < w->n_records; i++)
        w->state[i] = PATH_PRESENT;
    DPI_TRY(dpi_audit_begin(a, "releases", "the path, texts side by side"));
    DPI_TRY(draw_beside(w, &first));
    DPI_TRY(draw_beside(w, &second));
    dpi_audit_hold(a, memcmp(&first, &second, sizeof first) != 0,
                   "two releases have the same random bits");
    for (int b = 0; b < N_BESIDE; b += 2)
        alike &= memcmp(first.token[b], first.token[b + 1], sizeof *first.token) == 0;
    dpi_audit_hold(a, !alike, "texts side by side have the same random bits");
    dpi_audit_end(a, "releases", (double)a->result.n_cases, 1, INFINITY);
    return DPI_STATUS_OK;
}

/* ---- Spread texts ---------------------------------------------------------------------------- */

enum { N_PARTS = 3, N_SPREAD = 12, N_UNITS = 5 };

/* Where the records are in all parts together. A place is the room of one unit. */
typedef struct spread_places {
    int32_t place[N_SPREAD]; /* of a record, n_places times in all */
    int32_t n_places[N_SPREAD];
    int32_t n_before; /* places of the texts and parts so far */
} spread_places;

/* The record with that prompt; -1: none. */
static int32_t find_record(const path_world *w, const int32_t *tokens, size_t n) {
    for (int32_t i = 0; i < w->n_records; i++)
        if (w->prompt[i].n == n && memcmp(w->prompt[i].tokens, tokens, n * sizeof *tokens) == 0)
            return i;
    return -1;
}

static dpi_status load_text(const path_world *w, dpi_release *r, int32_t text, size_t per_unit,
                            spread_places *p) {
    dpi_slots *slots = &r->texts.places[0].prompts;
    DPI_TRY(dpi_source_load(&r->source, text, NULL, slots, w->audit->err));
    for (size_t k = 0; k < r->source.n_slots; k++) {
        if (!slots->tokens[k])
            continue;
        const int32_t i = find_record(w, slots->tokens[k], slots->n_tokens[k]);
        if (!dpi_audit_hold(w->audit, i >= 0, "a slot of a spread text has no record's prompt"))
            continue;
        p->place[i] = p->n_before + (int32_t)(k / per_unit);
        p->n_places[i]++;
    }
    p->n_before += (int32_t)(r->source.n_slots / per_unit);
    dpi_source_drop(&r->source, slots);
    return DPI_STATUS_OK;
}

static dpi_status load_part(const path_world *w, const path_setup *s, int32_t part,
                            spread_places *p) {
    static const uint8_t key[DPI_RELEASE_KEY_BYTES] = {9};
    const dpi_spread spread = {.index = part, .count = N_PARTS};
    dpi_release_options o;
    dpi_records *records = NULL;
    dpi_release *release = NULL;
    DPI_TRY(dpi_path_records_open(w, &records));
    dpi_path_options(w, s, records, &o);
    o.spread = &spread;
    o.key = dpi_path_is_assigned(s) ? key : NULL;
    dpi_status status = dpi_release_open(&o, &release, w->audit->err);
    if (status == DPI_STATUS_OK)
        status = dpi_release_begin(release, w->audit->err);
    const int32_t n_texts = status == DPI_STATUS_OK ? dpi_plan_n_texts(&release->plan) : 0;
    for (int32_t b = 0; b < n_texts && status == DPI_STATUS_OK; b++)
        status = load_text(w, release, b, s->per_unit > 0 ? (size_t)s->per_unit : 1, p);
    dpi_release_free(release);
    dpi_path_records_close(w, records);
    return status;
}

/* A record that is used is in one place; those of a unit are in the same one, where no other unit
 * is. By a secret draw a unit may be in none. */
static void check_spread(const path_world *w, const path_setup *s, const spread_places *p) {
    const int32_t n_units = w->n_units > 0 ? w->n_units : w->n_records;
    const int32_t M = s->per_unit > 0 ? s->per_unit : 1;
    for (int32_t i = 0; i < w->n_records; i++) {
        const int32_t wanted = i / n_units < M;
        dpi_audit_hold(w->audit,
                       p->n_places[i] == wanted || (s->subsample > 0 && p->n_places[i] == 0),
                       "a record of a spread text is in two parts, or in none");
        for (int32_t j = 0; j < i && p->n_places[i] > 0; j++)
            dpi_audit_hold(w->audit,
                           p->n_places[j] == 0 ||
                               (p->place[i] == p->place[j]) ==
                                   (dpi_path_unit(w, i) == dpi_path_unit(w, j)),
                           "a unit of a spread text is in two slots, or two units are in one");
    }
}

/* Batches are larger than there are parts, and smaller. */
static dpi_status audit_spread(dpi_audit *a, path_world *w) {
    enum { BY_CONTENT = DPI_ADJACENCY_ADD_REMOVE };
    static const path_setup setups[] = {
        {.batch = 5, .n_tokens = 1},
        {.batch = 4, .n_texts = 2, .n_tokens = 1, .adjacency = BY_CONTENT},
        {.batch = 4, .n_tokens = 1, .per_unit = 2},
        {.batch = 3, .n_texts = 1, .n_tokens = 1, .per_unit = 3, .adjacency = BY_CONTENT},
        {.batch = 3, .n_texts = 2, .n_tokens = 1, .per_unit = 2, .subsample = .7},
    };
    DPI_TRY(dpi_audit_begin(a, "releases", "the path, spread texts"));
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        spread_places p = {.n_before = 0};
        w->n_units = setups[i].per_unit > 0 ? N_UNITS : 0;
        for (int32_t part = 0; part < N_PARTS; part++)
            DPI_TRY(load_part(w, &setups[i], part, &p));
        check_spread(w, &setups[i], &p);
        a->result.n_cases++;
    }
    dpi_audit_end(a, "releases", (double)a->result.n_cases, 1, INFINITY);
    return DPI_STATUS_OK;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static dpi_status with_world(dpi_audit *a, const dpi_model *model, path_source source, int32_t n,
                             dpi_status (*audit)(dpi_audit *, path_world *)) {
    path_world *w = calloc(1, sizeof *w);
    if (!w)
        return dpi_no_memory(a->err, "an audit");
    dpi_status status = dpi_path_open(w, a, model, source, n);
    if (status == DPI_STATUS_OK)
        status = audit(a, w);
    dpi_path_close(w);
    free(w);
    return status;
}

dpi_status dpi_path_audit_open(dpi_audit *a, const dpi_model *model) {
    DPI_TRY(with_world(a, model, PATH_MEMORY, 16, audit_refusals));
    DPI_TRY(with_world(a, model, PATH_MEMORY, N_BESIDE, audit_beside));
    return with_world(a, model, PATH_JSONL, N_SPREAD, audit_spread);
}
