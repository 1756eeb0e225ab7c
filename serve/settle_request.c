/* settle_request.c - what a request about a dataset comes to: every number, before a record is
 * read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/books.h"

/* ---- The claim ------------------------------------------------------------------------------- */

/* Units with the label; all of them without one. Labels are public, and so is their number. */
static int64_t count_units(const dataset *d, const char *label) {
    int64_t n = 0;
    for (size_t u = 0; label[0] && u < (size_t)d->n_units; u++) {
        const char *found;
        size_t n_bytes;
        dpi_records_unit_label(d->records, u, &found, &n_bytes);
        n += found && n_bytes == strlen(label) && memcmp(found, label, n_bytes) == 0;
    }
    return label[0] ? n : d->n_units;
}

static void set_method(const books *b, const request *r, const dataset *d,
                       dpi_sampler_options *m) {
    m->epsilon = r->epsilon;
    m->delta = r->delta > 0 ? r->delta : d->delta;
    m->max_per_unit = d->max_per_unit;
    m->pace = d->pace;
    m->pace_theta = d->pace_theta;
    m->pace_share = d->pace_share;
    m->pace_tokens = d->pace_tokens < r->n_tokens ? d->pace_tokens : r->n_tokens;
    m->tau = r->has_tau ? r->tau : 1;
    m->random = b->random;
    m->random_user = b->random_user;
}

static void set_prompts(const request *r, dpi_prompt_options *o, int32_t chat) {
    const dpi_bytes text = {r->user, r->n_user};
    o->chat = chat;
    if (r->is_chat)
        o->query = text;
    else
        o->public_prompt = text;
    o->turns = r->turns;
    o->n_turns = (int32_t)r->n_turns;
    if (r->system)
        o->system = (dpi_bytes){r->system, r->n_system};
}

/* A release of one text settles its claim; nothing else of it is used. */
static dpi_status make_claim(const books *b, const request *r, settled *s, dpi_error *err) {
    const dataset *d = s->dataset;
    const dpi_wording wording = request_wording(r);
    dpi_release_options o;
    dpi_release *release;
    dpi_release_options_init(&o);
    o.model = b->model;
    o.n_records = d->n_units;
    o.batch = r->batch;
    o.n_texts = o.n_parallel = 1;
    o.n_tokens = r->n_tokens;
    o.top_k = r->has_top_k ? r->top_k : -1;
    o.session = b->session;
    set_method(b, r, d, &o.method);
    set_prompts(r, &o.prompts, b->chat);
    o.wording = &wording;
    o.grammar = r->grammar;
    dpi_status status = dpi_release_open(&o, &release, err);
    if (status != DPI_STATUS_OK)
        return status;
    s->claim = *dpi_release_run(release);
    dpi_release_free(release);
    s->claim.record_kind = dpi_records_kind(d->records);
    if (r->label[0]) {
        s->claim.labels = DPI_LABELS_PUBLIC;
        s->claim.n_labels = 1;
    }
    status = dpi_run_check(&s->claim, err);
    return status == DPI_STATUS_OK
               ? dpi_prompts_create(b->model, &o.prompts, b->session.n_ctx - r->n_tokens,
                                    &s->prompts, err)
               : status;
}

/* ---- What it costs --------------------------------------------------------------------------- */

double books_divergence(int64_t amount) { return (double)amount / DPI_LEDGER_ONE; }

static dpi_status find_cost(const books *b, settled *s, dpi_error *err) {
    double divergence;
    dpi_cost_init(&s->cost);
    dpi_status status = dpi_run_cost(&s->claim, &s->cost, err);
    if (status == DPI_STATUS_OK)
        status = datasets_info(&b->datasets, s->dataset, &s->info, err);
    if (status == DPI_STATUS_OK)
        status = dpi_cost_renyi(&s->cost, s->info.order, &divergence, err);
    if (status != DPI_STATUS_OK)
        return status;
    const double amount = ceil(divergence * DPI_LEDGER_ONE); /* as the ledger rounds it */
    s->amount = amount < 0x1p62 ? (int64_t)amount : INT64_MAX;
    return DPI_STATUS_OK;
}

/* What the principal has of the dataset's budget. */
static dpi_status find_share(const books *b, const char *principal, settled *s, dpi_error *err) {
    const double share = principals_share(b->principals, principal, s->dataset->name);
    s->most = share < 0 ? -1 : (int64_t)floorl((long double)share * (long double)s->info.budget);
    return store_spent(b->datasets.store, principal, s->dataset->name, &s->spent, err);
}

bool settle_budget(const settled *s, refusal *why) {
    const double cost = books_divergence(s->amount);
    if (s->info.closed[0])
        return refuse_budget(why, 0, cost, s->info.order, "the dataset '%s' is closed",
                             s->dataset->name);
    if (s->amount > s->info.left)
        return refuse_budget(why, books_divergence(s->info.left), cost, s->info.order,
                             "the budget of the dataset '%s' does not allow this: it costs %.6g, "
                             "left is %.6g (Renyi divergence of order %d)", s->dataset->name, cost,
                             books_divergence(s->info.left), (int)s->info.order);
    const int64_t left = s->most < 0 ? s->info.left : s->most > s->spent ? s->most - s->spent : 0;
    if (s->amount > left)
        return refuse_budget(why, books_divergence(left), cost, s->info.order,
                             "your share of the dataset '%s' does not allow this: it costs %.6g, "
                             "left is %.6g (Renyi divergence of order %d)", s->dataset->name, cost,
                             books_divergence(left), (int)s->info.order);
    return true;
}

/* ---- All ------------------------------------------------------------------------------------- */

static bool check_request(const books *b, request *r, settled *s, refusal *why) {
    const dataset *d = s->dataset;
    if (r->label[0] && !d->label)
        return refuse(why, 400, "privacy", "privacy.label: the dataset '%s' has no labels",
                      d->name);
    s->n_units = count_units(d, r->label);
    if (s->n_units == 0)
        return refuse(why, 400, "privacy", "privacy.label: no record of the dataset '%s' has it",
                      d->name);
    if (r->batch > d->batch)
        return refuse(why, 400, "privacy", "privacy.batch: found %d, allowed 1..%d",
                      (int)r->batch, (int)d->batch);
    if (r->batch == 0)
        r->batch = s->n_units < d->batch ? (int32_t)s->n_units : d->batch;
    const int32_t most = b->n_tokens > 0 && b->n_tokens < b->session.n_ctx ? b->n_tokens
                                                                           : b->session.n_ctx - 1;
    if (r->n_tokens == 0)
        r->n_tokens = dpi_tokens_default(most);
    return r->n_tokens <= most || refuse(why, 400, "max_tokens",
                                         "max_tokens: found %d, allowed 1..%d",
                                         (int)r->n_tokens, (int)most);
}

bool settle_begin(const books *b, request *r, settled *s, refusal *why) {
    *s = (settled){.dataset = datasets_find(&b->datasets, r->dataset)};
    dpi_prompts_info_init(&s->prompts_info);
    return s->dataset ? check_request(b, r, s, why)
                      : refuse(why, 404, "dataset", "there is no dataset '%s' here", r->dataset);
}

bool settle_cost(const books *b, const char *principal, settled *s, refusal *why) {
    dpi_error err;
    dpi_status status = find_cost(b, s, &err);
    if (status == DPI_STATUS_OK)
        status = find_share(b, principal, s, &err);
    return status == DPI_STATUS_OK || refuse_error(why, &err);
}

/* ---- Where it takes long --------------------------------------------------------------------- */

/* A job of the finder's. It reads nothing that changes while the server runs, and writes *s. */
typedef struct search {
    job job;
    const books *b;
    const request *r;
    settled *s;
    struct job *of; /* kept */
    void (*then)(struct job *j);
} search;

static void release_search(job *j) { free(j); }

static void make(const books *b, const request *r, settled *s) {
    dpi_error err;
    dpi_status status = make_claim(b, r, s, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_prompts_info_get(s->prompts, &s->prompts_info, &err);
    if (status != DPI_STATUS_OK)
        refuse_error(&s->failure, &err);
}

static void run_search(job *j) {
    const search *x = (search *)j;
    make(x->b, x->r, x->s);
    clerk_submit(x->b->clerk, x->of, x->then);
    job_leave(x->b->clerk, x->of);
}

/* False: the finder has ended, or there is no memory; *why. */
static bool begin_search(const books *b, const request *r, settled *s, job *of,
                         void (*then)(job *j), refusal *why) {
    search *x = calloc(1, sizeof *x);
    if (!x)
        return refuse(why, 503, NULL, "no memory for a request");
    *x = (search){.b = b, .r = r, .s = s, .of = of, .then = then};
    job_init(&x->job, run_search, release_search);
    job_keep(b->clerk, of);
    clerk_submit(b->finder, &x->job, run_search);
    const refusal refused = x->job.failure; /* of the submit; nobody else sets it */
    job_leave(b->finder, &x->job);
    if (!refused.http)
        return true; /* and *s, which *why may be in, is the finder's from now on */
    job_leave(b->clerk, of);
    *why = refused;
    return false;
}

void settle_claim(const books *b, const request *r, settled *s, job *j, void (*then)(job *j)) {
    if (s->dataset->pace != DPI_PACE_AUTO)
        make(b, r, s);
    else if (begin_search(b, r, s, j, then, &s->failure))
        return;
    then(j);
}

void settled_free(settled *s) {
    dpi_prompts_free(s->prompts);
    s->prompts = NULL;
}
