/* private_answer.c - a private answer, from its request to its row on the disk. In this order:
 *
 *   begin     the clerk looks for the key: an answer that was released is sent again. What is new
 *             is settled, which may take seconds for its pace
 *   submit    it waits for room in the passes. Nothing is on the disk
 *   prepare   there is room: a row, then the charge, then the first record is read
 *   (draw)    the worker
 *   finish    the text and its report are in the row, and then the reply is there
 *
 * So a process that is killed leaves no row; or a row without a charge, which the next server
 * forgets; or a charge and no text, which is lost and not drawn again; or the answer. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/books.h"

struct private_answer {
    job job;
    books *b;
    private_answer *next; /* of b->live */
    char principal[PRINCIPAL_NAME_MAX + 1];
    request request;
    settled settled;
    stored row;
    size_t *units; /* [n_units] of its batch, private memory; NO_UNIT: one that cannot pay */
    size_t n_units;
    bool is_charged;
    int64_t before; /* what was charged to the dataset before it */
    answer *a;
    reply_head head;
};

#define NO_UNIT SIZE_MAX

static private_answer *of(job *j) { return (private_answer *)j; }

static void release(job *j) {
    private_answer *p = of(j);
    answer_leave(p->b->worker, p->a);
    request_free(&p->request);
    settled_free(&p->settled);
    dpi_private_free(p->units);
    stored_free(&p->row);
    free(p);
}

job *private_create(books *b, const char *principal, const char *key, const uint8_t *hash,
                    request *r) {
    private_answer *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    job_init(&p->job, NULL, release);
    p->b = b;
    p->request = *r;
    *r = (request){0};
    snprintf(p->principal, sizeof p->principal, "%s", principal);
    snprintf(p->row.principal, sizeof p->row.principal, "%s", principal);
    snprintf(p->row.key, sizeof p->row.key, "%s", key);
    memcpy(p->row.hash, hash, sizeof p->row.hash);
    return &p->job;
}

answer *private_answer_of(job *j) { return of(j)->a; }
const reply_head *private_head_of(job *j) { return &of(j)->head; }

static void set_head(private_answer *p, const stored *row) {
    snprintf(p->head.id, sizeof p->head.id, "%s", row->id);
    p->head.created = row->created;
    p->head.model = p->b->model_name;
    p->head.is_chat = p->request.is_chat;
    p->head.n_prompt = row->n_prompt;
    p->head.facts = row->facts;
}

static void end_refused(private_answer *p, const refusal *why) {
    job_end(p->b->clerk, &p->job, why, NULL);
}

/* ---- Begin ----------------------------------------------------------------------------------- */

/* What a stream of an answer that is released tells. */
static void reply_stored(private_answer *p) {
    const stored *row = &p->row;
    const answer_view view = {.is_over = true, .n_drawn = row->n_drawn, .end = row->end,
                              .text = row->text, .n_bytes = row->n_bytes};
    refusal why = {0};
    set_head(p, row);
    char *reply = p->request.is_streamed
                      ? reply_events(&p->head, &view, p->request.includes_usage)
                      : reply_answer(&p->head, &view);
    if (!reply)
        refuse(&why, 503, NULL, "no memory for an answer");
    if (!row->key[0]) /* with a key it is there */
        refusal_is_final(&why);
    job_end(p->b->clerk, &p->job, reply ? NULL : &why, reply);
}

static bool refuse_other(refusal *why) {
    return refuse(why, 422, "Idempotency-Key", "Idempotency-Key: another request had this key");
}

static void refuse_lost(refusal *why) {
    refuse(why, 409, "Idempotency-Key", "Idempotency-Key: the answer to this request was lost. Its "
                                        "charge is spent, and it is not drawn again: with another "
                                        "key it costs the same again");
    why->code = "answer_lost";
    refusal_is_final(why);
}

/* An earlier request with the same key. */
static void reply_known(private_answer *p, stored *row) {
    refusal why = {0};
    if (memcmp(row->hash, p->row.hash, sizeof row->hash) != 0)
        refuse_other(&why);
    else if (row->state == STORED_LOST)
        refuse_lost(&why);
    if (why.http) {
        end_refused(p, &why);
        return;
    }
    p->row = *row;
    *row = (stored){0};
    reply_stored(p);
}

static void run_prepare(job *j);
static void run_finish(job *j);
static void submit_prepare(void *user) {
    private_answer *p = user;
    clerk_submit(p->b->clerk, &p->job, run_prepare);
}
static void submit_finish(void *user) {
    private_answer *p = user;
    clerk_submit(p->b->clerk, &p->job, run_finish);
    job_leave(p->b->clerk, &p->job); /* the queue has it */
}

/* What the worker wants of it. */
static bool make_answer(private_answer *p, refusal *why) {
    const settled *s = &p->settled;
    const dpi_wording wording = request_wording(&p->request);
    answer *a = p->a = answer_create();
    if (!a)
        return refuse(why, 503, NULL, "no memory for an answer");
    a->n_tokens = (size_t)s->prompts_info.n_public;
    a->tokens = dpi_private_malloc((a->n_tokens + 1) * sizeof *a->tokens);
    a->method = s->claim.method;
    a->method.random = p->b->random;
    a->method.random_user = p->b->random_user;
    const int32_t M = a->method.max_per_unit > 0 ? a->method.max_per_unit : 1;
    a->n_seq = a->method.n_ref * M + 1;
    a->references = calloc((size_t)a->n_seq, sizeof *a->references);
    a->n_references = calloc((size_t)a->n_seq, sizeof *a->n_references);
    a->records = calloc((size_t)a->n_seq, sizeof *a->records);
    a->n_prefix = (size_t)s->prompts_info.n_prefix;
    p->units = dpi_private_malloc((size_t)a->method.n_ref * sizeof *p->units);
    if (!a->tokens || !a->references || !a->n_references || !a->records || !p->units)
        return refuse(why, 503, NULL, "no memory for an answer");
    memcpy(a->tokens, dpi_prompts_public(s->prompts), a->n_tokens * sizeof *a->tokens);
    if (!answer_shape(a, p->b->model, &wording, &p->request.grammar, why))
        return false;
    a->prepare = submit_prepare;
    a->ended = submit_finish;
    a->owner = p;
    return true;
}

static void join(private_answer *p) {
    p->next = p->b->live;
    p->b->live = p;
}

static void leave(private_answer *p) {
    private_answer **at = &p->b->live;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
}

/* An answer with this key waits or is drawn. */
static bool check_live(const private_answer *p, refusal *why) {
    const private_answer *q = p->b->live;
    while (q && (strcmp(q->row.key, p->row.key) != 0 || strcmp(q->principal, p->principal) != 0))
        q = q->next;
    if (!q)
        return true;
    if (memcmp(q->row.hash, p->row.hash, sizeof q->row.hash) != 0)
        return refuse_other(why);
    refuse(why, 409, "Idempotency-Key", "Idempotency-Key: the answer to this request is being "
                                        "drawn: send it again later");
    why->retry_after = 2;
    why->code = "answer_in_progress";
    return false;
}

/* The row of an earlier answer with this key. One that was begun and is not live is one whose end
 * the disk did not take: it is settled now. */
static bool find_row(private_answer *p, stored *row, refusal *why) {
    const datasets *d = &p->b->datasets;
    dpi_error err;
    dpi_status status = store_find(d->store, p->principal, p->row.key, row, &err);
    if (status == DPI_STATUS_OK && row->state == STORED_BEGUN) {
        status = datasets_settle(d, row, &err);
        if (status == DPI_STATUS_OK)
            status = store_find(d->store, p->principal, p->row.key, row, &err);
    }
    return status == DPI_STATUS_OK || refuse_error(why, &err);
}

static void run_submit(job *j) {
    private_answer *p = of(j);
    refusal why = p->settled.failure;
    if (!why.http && settle_cost(p->b, p->principal, &p->settled, &why) &&
        settle_budget(&p->settled, &why) && make_answer(p, &why) &&
        worker_submit(p->b->worker, p->a, &why))
        return;
    leave(p);
    end_refused(p, &why);
    job_leave(p->b->clerk, j);
}

void private_begin(job *j) {
    private_answer *p = of(j);
    const books *b = p->b;
    stored row = {0};
    refusal why;
    if (p->row.key[0] && (!check_live(p, &why) || !find_row(p, &row, &why))) {
        end_refused(p, &why);
        return;
    }
    if (row.state != STORED_NONE) {
        reply_known(p, &row);
        stored_free(&row);
        return;
    }
    if (!settle_begin(b, &p->request, &p->settled, &why)) {
        end_refused(p, &why);
        return;
    }
    job_keep(b->clerk, j); /* until it has ended */
    join(p);
    settle_claim(b, &p->request, &p->settled, j, run_submit);
}

/* ---- Prepare --------------------------------------------------------------------------------- */

/* Another answer was charged since this one was settled. */
static bool refuse_spent(private_answer *p, refusal *why) {
    settled *s = &p->settled;
    dpi_error err;
    dpi_status status = datasets_info(&p->b->datasets, s->dataset, &s->info, &err);
    if (status == DPI_STATUS_OK)
        status = store_spent(p->b->datasets.store, p->principal, s->dataset->name, &s->spent, &err);
    if (status != DPI_STATUS_OK)
        return refuse_error(why, &err);
    return settle_budget(s, why) && refuse(why, 503, NULL, "the budget has changed meanwhile");
}

/* The row is on the disk before the charge, so that no charge is without one. */
static bool write_row(private_answer *p, refusal *why) {
    const settled *s = &p->settled;
    dpi_error err;
    if (!reply_new_id(p->row.id, sizeof p->row.id, p->request.is_chat))
        return refuse(why, 500, NULL, "the system gives no random bits");
    snprintf(p->row.dataset, sizeof p->row.dataset, "%s", s->dataset->name);
    snprintf(p->row.label, sizeof p->row.label, "%s", p->request.label);
    p->row.amount = s->amount;
    p->row.created = (int64_t)time(NULL);
    p->row.n_prompt = s->prompts_info.n_public;
    const dpi_status status = store_begin(p->b->datasets.store, &p->row, s->most, &err);
    if (status == DPI_STATUS_BUDGET)
        return refuse_spent(p, why);
    return status == DPI_STATUS_OK || refuse_error(why, &err);
}

/* The next unit from *u on that has the label. */
static bool next_unit(const private_answer *p, size_t *u) {
    const dataset *d = p->settled.dataset;
    const char *wanted = p->request.label, *found;
    size_t n_bytes;
    for (; *u < (size_t)d->n_units; (*u)++) {
        if (!wanted[0])
            return true;
        dpi_records_unit_label(d->records, *u, &found, &n_bytes);
        if (found && n_bytes == strlen(wanted) && memcmp(found, wanted, n_bytes) == 0)
            return true;
    }
    return false;
}

/* Which batch answers follows from how many answers the dataset, or its label, had before: public
 * numbers. Batches are by position, within the label if there is one. */
static void find_batch(private_answer *p) {
    const settled *s = &p->settled;
    const size_t B = (size_t)s->claim.method.n_ref, n = (size_t)s->n_units;
    const size_t first = (size_t)(p->row.round - 1) % ((n + B - 1) / B) * B;
    size_t unit = 0;
    for (size_t i = 0; i < first + B && next_unit(p, &unit); i++, unit++)
        if (i >= first)
            p->units[p->n_units++] = unit;
}

/* The charge is that of the units of the batch, each for itself, and who cannot pay leaves it. One
 * without an ID has no record that can be read. */
static dpi_status charge_units(private_answer *p, dpi_charge_request *wanted, dpi_charge *charge,
                               dpi_error *err) {
    const dataset *d = p->settled.dataset;
    const size_t n = p->n_units + 1;
    const void **ids = dpi_private_malloc(n * sizeof *ids);
    size_t *n_bytes = dpi_private_malloc(n * sizeof *n_bytes);
    uint8_t *pays = dpi_private_malloc(n);
    dpi_ledger_units units = {.ids = ids, .n_bytes = n_bytes, .pays = pays};
    dpi_status status = ids && n_bytes && pays
                            ? DPI_STATUS_OK
                            : fail_with(err, DPI_STATUS_MEMORY, "no memory for an answer");
    for (size_t i = 0; i < p->n_units && status == DPI_STATUS_OK; i++) {
        const char *id;
        dpi_records_unit_id(d->records, p->units[i], &id, &n_bytes[units.n]);
        ids[units.n] = id;
        units.n += id != NULL;
    }
    wanted->units = &units;
    if (status == DPI_STATUS_OK)
        status = dpi_ledger_reserve(p->b->datasets.ledger, d->name, wanted, charge, err);
    for (size_t i = 0, k = 0; i < p->n_units && status == DPI_STATUS_OK; i++) {
        const char *id;
        size_t n_id;
        dpi_records_unit_id(d->records, p->units[i], &id, &n_id);
        if (!id || !pays[k++])
            p->units[i] = NO_UNIT;
    }
    dpi_private_free(ids);
    dpi_private_free(n_bytes);
    dpi_private_free(pays);
    return status;
}

/* What the ledger tells to be left after the charge; with the scope unit that of a new unit. */
static int64_t left_after(const private_answer *p) {
    const dpi_dataset_info *info = &p->settled.info;
    return info->scope == DPI_SCOPE_UNIT ? info->budget
                                         : info->budget - p->before - p->row.amount;
}

/* On the disk when it returns true: the first record may be read. */
static bool write_charge(private_answer *p, refusal *why) {
    const settled *s = &p->settled;
    const books *b = p->b;
    char note[DPI_CHARGE_NOTE_MAX + 1], guarantee[96], *text;
    dpi_charge_request wanted;
    dpi_charge charge;
    dpi_error err;
    dpi_run_guarantee(&s->claim, guarantee, sizeof guarantee);
    snprintf(note, sizeof note, "answer %s %s%s%s", p->row.id, p->principal[0] ? "for " : "",
             p->principal, p->principal[0] ? "" : "over HTTP");
    snprintf(note + strlen(note), sizeof note - strlen(note), ": %s", guarantee);
    dpi_charge_request_init(&wanted);
    dpi_charge_init(&charge);
    if (dpi_records_privacy_unit(s->dataset->records, s->claim.method.adjacency,
                                 s->claim.method.max_per_unit, &wanted.unit, &err) !=
        DPI_STATUS_OK)
        return refuse_error(why, &err);
    dpi_claim claim;
    dpi_claim_of_run(&s->claim, &claim);
    if (dpi_claim_charged(&claim, &text, &err) != DPI_STATUS_OK)
        return refuse_error(why, &err);
    wanted.claim = text;
    wanted.cost = &s->cost;
    wanted.method = dpi_method_get(s->claim.method.method)->name;
    wanted.note = note;
    const dpi_status status =
        s->dataset->scope == DPI_SCOPE_UNIT
            ? charge_units(p, &wanted, &charge, &err)
            : dpi_ledger_reserve(b->datasets.ledger, s->dataset->name, &wanted, &charge, &err);
    free(text);
    p->is_charged = status == DPI_STATUS_OK;
    p->row.charge = charge.id;
    p->before = charge.before;
    if (p->is_charged) {
        s->dataset->left = left_after(p);
        return true;
    }
    return status == DPI_STATUS_BUDGET || status == DPI_STATUS_STATE ? refuse_spent(p, why)
                                                                     : refuse_error(why, &err);
}

/* The k-th record of a unit into a slot: NULL where it is null, or there is none. */
static dpi_status read_record(private_answer *p, size_t unit, size_t k, size_t slot,
                              dpi_error *err) {
    const dataset *d = p->settled.dataset;
    const size_t i = dpi_records_of_unit(d->records, unit, k);
    if (i == SIZE_MAX)
        return DPI_STATUS_OK;
    p->a->records[slot] = (record_name){(int32_t)(d - p->b->datasets.v), i};
    return dpi_records_prompt(d->records, i, p->settled.prompts, &p->a->references[slot],
                              &p->a->n_references[slot], err);
}

static dpi_status read_batch(private_answer *p, dpi_error *err) {
    const int32_t most = p->settled.claim.method.max_per_unit;
    const size_t M = most > 0 ? (size_t)most : 1;
    for (size_t i = 0; i < p->n_units; i++)
        for (size_t k = 0; p->units[i] != NO_UNIT && k < M; k++) {
            const dpi_status status = read_record(p, p->units[i], k, i * M + k, err);
            if (status != DPI_STATUS_OK)
                return status;
        }
    return DPI_STATUS_OK;
}

static bool prepare(private_answer *p, refusal *why) {
    dpi_error err;
    if (!write_row(p, why))
        return false;
    find_batch(p);
    if (!write_charge(p, why)) {
        const dpi_status status = store_forget(p->b->datasets.store, p->row.id, &err);
        (void)status; /* if it fails, the next server forgets the row */
        return false;
    }
    return read_batch(p, &err) == DPI_STATUS_OK || refuse_error(why, &err);
}

static void run_prepare(job *j) {
    private_answer *p = of(j);
    refusal why;
    const bool ok = prepare(p, &why);
    set_head(p, &p->row);
    if (ok)
        job_begin(p->b->clerk, j);
    worker_prepared(p->b->worker, p->a, ok ? NULL : &why);
}

/* ---- Finish ---------------------------------------------------------------------------------- */

/* What an answer says of its privacy. */
static char *make_facts(const private_answer *p) {
    const settled *s = &p->settled;
    const dpi_run *c = &s->claim;
    char link[80], label[160];
    snprintf(link, sizeof link, "/v1/privacy/reports/%s", p->row.id);
    dpi_run_label(c, label, sizeof label);
    return reply_dump(json_pack(
        "{s:s, s:s, s:s, s:s, s:s*, s:f, s:f, s:i, s:i, s:I, s:f, s:f, s:i, s:s}", "dataset",
        s->dataset->name, "guarantee", label, "unit",
        dpi_run_has_units(c) ? s->dataset->unit : dpi_record_kind_text(c->record_kind),
        "adjacency", dpi_adjacency_name(c->method.adjacency), "label",
        p->request.label[0] ? p->request.label : NULL, "epsilon", dpi_run_epsilon(c), "delta",
        c->method.delta, "batch", (int)c->method.n_ref, "tokens", (int)c->method.n_tokens,
        "charge", (json_int_t)p->row.charge, "cost", books_divergence(p->row.amount), "remaining",
        books_divergence(left_after(p)), "order", (int)s->info.order,
        "report", link));
}

static dpi_run charged_claim(const private_answer *p) {
    const settled *s = &p->settled;
    dpi_run claim = s->claim;
    claim.ledger = (dpi_claim_ledger){.epsilon = s->info.epsilon, .delta = s->info.delta,
                                      .scope = s->info.scope, .order = s->info.order,
                                      .budget = s->info.budget, .charge = p->row.amount,
                                      .before = p->before};
    snprintf(claim.ledger.dataset, sizeof claim.ledger.dataset, "%s", s->info.name);
    return claim;
}

static char *make_report(const private_answer *p) {
    const stored *row = &p->row;
    const dpi_run claim = charged_claim(p);
    const dpi_wording wording = request_wording(&p->request);
    dpi_report *report;
    dpi_error err;
    char *text = NULL, *copy = NULL;
    size_t n_bytes = 0;
    if (dpi_report_again(p->b->report, &claim, &report, &err) != DPI_STATUS_OK)
        return NULL;
    dpi_report_output_add(report, row->text, row->n_bytes);
    if (dpi_report_wording(report, &wording, &err) == DPI_STATUS_OK &&
        dpi_report_text_add(report, p->request.label[0] ? p->request.label : NULL, row->n_drawn,
                            row->end, &err) == DPI_STATUS_OK &&
        dpi_report_text(report, 1, DPI_REPORT_JSON, &text, &n_bytes, &err) == DPI_STATUS_OK)
        copy = dpi_private_malloc(n_bytes + 1);
    if (copy)
        memcpy(copy, text, n_bytes + 1);
    free(text);
    dpi_report_free(report);
    return copy;
}

/* The text as JSON has it: what a report has the hash of is what a client sees. */
static bool copy_text(private_answer *p, answer_view *view) {
    json_t *string = reply_string(view->text ? view->text : "", view->n_bytes);
    const size_t n_bytes = json_string_length(string);
    p->row.text = string ? dpi_private_malloc(n_bytes + 1) : NULL;
    if (p->row.text)
        memcpy(p->row.text, json_string_value(string), n_bytes + 1);
    p->row.n_bytes = n_bytes;
    p->row.n_drawn = view->n_drawn;
    p->row.end = view->end;
    json_decref(string);
    return p->row.text != NULL;
}

/* What was drawn, into its row. */
static bool keep(private_answer *p, answer_view *view, refusal *why) {
    dpi_error err;
    if (!copy_text(p, view) || !(p->row.facts = make_facts(p)) ||
        !(p->row.report = make_report(p)))
        return refuse(why, 503, NULL, "no memory for an answer, whose charge is spent");
    if (store_finish(p->b->datasets.store, &p->row, &err) == DPI_STATUS_OK)
        return true;
    return refuse(why, 500, NULL, "the answer could not be kept, and is lost: its charge is spent");
}

static void run_finish(job *j) {
    private_answer *p = of(j);
    answer_view view;
    dpi_error err;
    answer_look(p->b->worker, p->a, 0, &view);
    leave(p);
    refusal why = view.failure;
    if (!why.http && keep(p, &view, &why)) {
        reply_stored(p);
    } else {
        if (p->is_charged) {
            const dpi_status status =
                store_lose(p->b->datasets.store, p->row.id, p->row.charge, &err);
            (void)status; /* if it fails, find_row or the next server does it */
            refusal_is_final(&why);
        }
        end_refused(p, &why);
    }
    dpi_private_free(view.text);
}
