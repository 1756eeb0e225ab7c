/* privacy.c - what is told of budgets: plans, sums, reports. All of it is public. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/suggest.h"
#include "serve/books.h"

enum { HISTORY = 100 /* charges of a dataset that are told */ };

/* One of these requests. */
typedef struct query {
    job job;
    const books *b;
    char principal[PRINCIPAL_NAME_MAX + 1];
    char name[DATASET_NAME_MAX + 1];
    request request;
    settled settled; /* of a plan */
} query;

static query *of(job *j) { return (query *)j; }

static void release(job *j) {
    request_free(&of(j)->request);
    settled_free(&of(j)->settled);
    free(j);
}

static job *create(const books *b, const char *principal, const char *name,
                   void (*run)(job *j)) {
    query *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    job_init(&q->job, run, release);
    q->b = b;
    snprintf(q->principal, sizeof q->principal, "%s", principal);
    snprintf(q->name, sizeof q->name, "%s", name);
    return &q->job;
}

/* The reply; object NULL: no memory for it. */
static void end(const query *q, job *j, json_t *object) {
    refusal why;
    char *text = reply_dump(object);
    if (!text)
        refuse(&why, 503, NULL, "no memory for a reply");
    job_end(q->b->clerk, j, text ? NULL : &why, text);
}

static void end_error(const query *q, job *j, const dpi_error *err) {
    refusal why;
    refuse_error(&why, err);
    job_end(q->b->clerk, j, &why, NULL);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static int64_t left_of(const settled *s) {
    if (s->info.closed[0])
        return 0;
    const int64_t own = s->most < 0 ? s->info.left : s->most > s->spent ? s->most - s->spent : 0;
    return own < s->info.left ? own : s->info.left;
}

static json_t *plan_object(const settled *s) {
    const dpi_run *c = &s->claim;
    const double factor = dpi_hearing_factor(&c->method, &c->plan);
    char label[160];
    dpi_run_label(c, label, sizeof label);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:i, s:i, s:f, s:f, s:i, s:I, s:f, s:f, s:i, s:I, "
        "s:o, s:s, s:f, s:i, s:f}",
        "dataset", s->dataset->name, "guarantee", label, "scope",
        dpi_scope_name(s->dataset->scope), "pace", dataset_pace(c->method.pace), "epsilon",
        dpi_run_epsilon(c), "delta", c->method.delta, "rho", dpi_run_rho(c), "batch",
        (int)c->method.n_ref, "tokens", (int)c->method.n_tokens, "clip", c->plan.clip, "eta",
        c->plan.eta, "prompt_tokens", (int)s->prompts_info.n_public, "batches",
        (json_int_t)((s->n_units + c->method.n_ref - 1) / c->method.n_ref), "cost",
        books_divergence(s->amount), "remaining", books_divergence(left_of(s)), "order",
        (int)s->info.order, "answers_left",
        (json_int_t)(s->amount > 0 ? left_of(s) / s->amount : 0), "factor",
        isfinite(factor) ? json_real(factor) : json_null(), "references_are",
        dpi_hearing_text(dpi_hearing_of(factor)), "pace_theta", c->method.pace_theta, "pace_tokens",
        (int)c->method.pace_tokens, "pace_share", c->method.pace_share);
}

static void tell_plan(job *j) {
    query *q = of(j);
    refusal why = q->settled.failure;
    if (!why.http && settle_cost(q->b, q->principal, &q->settled, &why))
        end(q, j, plan_object(&q->settled));
    else
        job_end(q->b->clerk, j, &why, NULL);
}

static void run_plan(job *j) {
    query *q = of(j);
    refusal why;
    if (settle_begin(q->b, &q->request, &q->settled, &why))
        settle_claim(q->b, &q->request, &q->settled, j, tell_plan);
    else
        job_end(q->b->clerk, j, &why, NULL);
}

job *plan_create(const books *b, const char *principal, request *r) {
    job *j = create(b, principal, "", run_plan);
    if (j) {
        of(j)->request = *r;
        *r = (request){0};
    }
    return j;
}

/* ---- Budgets --------------------------------------------------------------------------------- */

/* Who has spent what: through this server, and the rest. */
typedef struct spenders {
    const query *q;
    const dpi_dataset_info *info;
    json_t *list;
    int64_t sum;
} spenders;

static void tell_spender(void *user, const char *principal, int64_t amount, int64_t n_answers) {
    spenders *p = user;
    const double share = principals_share(p->q->b->principals, principal, p->info->name);
    json_t *one = json_pack("{s:s, s:f, s:I}", "principal", principal, "spent",
                            books_divergence(amount), "answers", (json_int_t)n_answers);
    if (one && share >= 0)
        json_object_set_new(one, "share", json_real(share));
    json_array_append_new(p->list, one);
    p->sum += amount;
}

static json_t *dataset_object(const query *q, const dpi_dataset_info *info, dpi_error *err) {
    spenders p = {.q = q, .info = info, .list = json_array()};
    const dataset *d = datasets_find(&q->b->datasets, info->name);
    if (store_spenders(q->b->datasets.store, info->name, tell_spender, &p, err) != DPI_STATUS_OK) {
        json_decref(p.list);
        return NULL;
    }
    const int64_t others = info->charged > p.sum ? info->charged - p.sum : 0;
    return json_pack("{s:s, s:s, s:s?, s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:I, s:b, s:i, s:b, s:b, "
                     "s:o, s:f}",
                     "dataset", info->name, "scope", dpi_scope_name(info->scope), "unit",
                     d ? d->unit : NULL, "epsilon", info->epsilon, "delta", info->delta, "order",
                     (int)info->order, "total", books_divergence(info->budget), "spent",
                     books_divergence(info->charged), "left", books_divergence(info->left),
                     "epsilon_spent", info->epsilon_charged, "charges",
                     (json_int_t)info->n_charges, "closed", info->closed[0] != '\0', "batch",
                     d ? (int)d->batch : 0, "labels", d && d->label, "streams", q->b->allows_stream,
                     "principals", p.list, "others", books_divergence(others));
}

/* Where the report of a charge is: "" unless it paid for an answer of this principal that is
 * released. */
static dpi_status find_report(const query *q, const dpi_charge *c, char link[80], dpi_error *err) {
    char id[STORE_ID_MAX + 1], whose[PRINCIPAL_NAME_MAX + 16];
    int n = 0;
    bool is_done = false;
    link[0] = '\0';
    if (sscanf(c->note, "answer %47[a-z0-9-] %n", id, &n) != 1 || n == 0)
        return DPI_STATUS_OK;
    snprintf(whose, sizeof whose, "%s%s:", q->principal[0] ? "for " : "over HTTP", q->principal);
    if (strncmp(c->note + n, whose, strlen(whose)) != 0)
        return DPI_STATUS_OK;
    const dpi_status status = store_is_done(q->b->datasets.store, id, &is_done, err);
    if (is_done)
        snprintf(link, 80, "/v1/privacy/reports/%s", id);
    return status;
}

static json_t *charge_object(const dpi_charge *c, const char *link) {
    return json_pack("{s:I, s:s, s:f, s:s, s:o, s:b, s:s*}", "id", (json_int_t)c->id, "date",
                     c->date, "cost", books_divergence(c->amount), "method", c->method, "note",
                     reply_string(c->note, strlen(c->note)), "counted", c->counted, "report",
                     link[0] ? link : NULL);
}

/* The last charges, the newest first. */
static dpi_status add_history(const query *q, const dpi_dataset_info *info, json_t *object,
                              dpi_error *err) {
    json_t *list = json_array();
    dpi_charge c = {.id = INT64_MAX};
    char link[80];
    dpi_status status = DPI_STATUS_OK;
    while (status == DPI_STATUS_OK && json_array_size(list) < HISTORY) {
        const int64_t before = c.id;
        dpi_charge_init(&c);
        status = dpi_ledger_charge_before(q->b->datasets.ledger, info->name, before, &c, err);
        if (status != DPI_STATUS_OK || c.id == 0)
            break;
        status = find_report(q, &c, link, err);
        json_array_append_new(list, charge_object(&c, link));
    }
    json_object_set_new(object, "history", list);
    return status;
}

static void run_one_budget(job *j) {
    const query *q = of(j);
    dataset *d = datasets_find(&q->b->datasets, q->name);
    dpi_dataset_info info;
    dpi_error err = {.code = DPI_STATUS_MEMORY, .message = "no memory for a reply"};
    refusal why;
    if (!d) {
        refuse(&why, 404, NULL, "there is no dataset '%s' here", q->name);
        job_end(q->b->clerk, j, &why, NULL);
        return;
    }
    dpi_status status = datasets_info(&q->b->datasets, d, &info, &err);
    json_t *object = status == DPI_STATUS_OK ? dataset_object(q, &info, &err) : NULL;
    if (object && add_history(q, &info, object, &err) == DPI_STATUS_OK) {
        end(q, j, object);
        return;
    }
    json_decref(object);
    end_error(q, j, &err);
}

static void run_budgets(job *j) {
    const query *q = of(j);
    dpi_dataset_info info;
    dpi_error err = {.code = DPI_STATUS_MEMORY, .message = "no memory for a reply"};
    json_t *list = json_array();
    for (int i = 0; i < q->b->datasets.n; i++) {
        json_t *one = NULL;
        if (datasets_info(&q->b->datasets, &q->b->datasets.v[i], &info, &err) == DPI_STATUS_OK)
            one = dataset_object(q, &info, &err);
        if (!one || json_array_append_new(list, one) != 0) {
            json_decref(list);
            end_error(q, j, &err);
            return;
        }
    }
    end(q, j, json_pack("{s:s, s:o}", "object", "list", "data", list));
}

job *budget_create(const books *b, const char *principal, const char *name) {
    return create(b, principal, name, name[0] ? run_one_budget : run_budgets);
}

/* ---- Reports --------------------------------------------------------------------------------- */

static void run_report(job *j) {
    const query *q = of(j);
    dpi_error err;
    refusal why;
    char *report;
    if (store_report(q->b->datasets.store, q->principal, q->name, &report, &err) != DPI_STATUS_OK) {
        end_error(q, j, &err);
        return;
    }
    if (!report)
        refuse(&why, 404, NULL, "you have no report '%s' here", q->name);
    job_end(q->b->clerk, j, report ? NULL : &why, report);
}

job *report_create(const books *b, const char *principal, const char *name) {
    return create(b, principal, name, run_report);
}

/* ---- The books ------------------------------------------------------------------------------- */

static dpi_status check_shares(const books *b, dpi_error *err) {
    const char *name, *of_dataset;
    for (int i = 0; principals_share_at(b->principals, i, &name, &of_dataset); i++)
        if (!datasets_find(&b->datasets, of_dataset))
            return fail_with(err, DPI_STATUS_ARG,
                             "--tokens: '%s' has a share of '%s', and there is no such --dataset",
                             name, of_dataset);
    return DPI_STATUS_OK;
}

dpi_status books_begin(books *b, const char *model_path, dpi_error *err) {
    dpi_release_options o;
    dpi_release *release;
    dpi_status status = check_shares(b, err);
    if (status != DPI_STATUS_OK || b->datasets.n == 0)
        return status;
    dpi_release_options_init(&o); /* any claim has the model's name */
    o.model = b->model;
    o.n_tokens = 1;
    o.method.method = DPI_METHOD_PLAIN;
    o.method.pace = DPI_PACE_NONE;
    o.session = b->session;
    status = dpi_release_open(&o, &release, err);
    if (status != DPI_STATUS_OK)
        return status;
    status = dpi_report_create(dpi_release_run(release), b->model, model_path, &b->report, err);
    dpi_release_free(release);
    if (status != DPI_STATUS_OK)
        return status;
    b->clerk = clerk_create();
    b->finder = b->clerk ? clerk_create() : NULL;
    return b->finder ? DPI_STATUS_OK
                     : fail_with(err, DPI_STATUS_SYSTEM, "the system starts no thread");
}

void books_free(books *b) {
    dpi_report_free(b->report);
    b->report = NULL;
}
