/* settle.c - makes the plan of a release: from its options every number, before a record is read.
 * See plan.h. */
#include <inttypes.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/process.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/system.h"
#include "dp/account/budget.h"
#include "dp/exact/noise.h"
#include "dp/methods/method.h"
#include "dp/methods/sampling.h"
#include "engine/adapter.h"
#include "pipeline/run.h"
#include "pipeline/claim/wording_json.h"
#include "pipeline/records/records.h"
#include "pipeline/release/plan.h"
#include "pipeline/release/prompts_json.h"

enum {
    DEFAULT_CTX_MOST = 4096, /* KV caches grow with the context: larger ones on request */
    DEFAULT_BATCH = 8,
    DEFAULT_ONE_BATCH = 16, /* up to so many units make one batch */
    /* Sequences in a step for each thread, beyond which more of them bring little
     * (bench/results/texts_side_by_side.csv). */
    DEFAULT_ROWS = 8,
    SEQUENCES_MOST = 4097, /* of several texts at a time */
};

void dpi_release_options_init_size(dpi_release_options *o, size_t size) {
    dpi_release_options made = {.reference = -1, .top_k = -1};
    dpi_sampler_options_init(&made.method);
    made.method.delta = 1e-6;
    made.method.pace = DPI_PACE_AUTO;
    dpi_session_options_init(&made.session);
    made.session.n_ctx = 0;
    dpi_prompt_options_init(&made.prompts);
    dpi_struct_init(o, size, &made, sizeof made);
}

/* ---- Records --------------------------------------------------------------------------------- */

static bool is_plain(const dpi_release_options *o) { return o->method.method == DPI_METHOD_PLAIN; }

/* A record stands in a prompt. */
static bool reads_records(const dpi_release_options *o) {
    return !is_plain(o) || o->reference >= 0;
}

static int64_t count_records(const dpi_release_options *o) {
    return !o->records ? o->n_records
                       : (int64_t)(is_plain(o) ? dpi_records_count(o->records)
                                               : dpi_records_unit_count(o->records));
}

/* What the guarantee protects, and M. */
static dpi_status settle_units(const dpi_release_options *o, dpi_run *c, dpi_error *err) {
    const bool units = o->records && dpi_records_has_units(o->records);
    if (units && is_plain(o))
        return dpi_fail(err, DPI_STATUS_ARG, "plain and unit_field: allowed is one of them");
    if (o->records && !units && o->method.max_per_unit > 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "max_per_unit: found '%d', allowed only with unit_field",
                        o->method.max_per_unit);
    if (units && c->method.max_per_unit == 0)
        c->method.max_per_unit = DPI_MAX_PER_UNIT_DEFAULT;
    return DPI_STATUS_OK;
}

static dpi_status settle_plain(const dpi_release_options *o, dpi_run *c, dpi_error *err) {
    const int64_t n = count_records(o);
    c->n_texts = o->n_texts > 0 ? o->n_texts : 1;
    c->method.n_ref = 0;
    c->method.rho = 0;
    c->record_in_prompt = o->reference >= 0;
    if (o->reference < 0) {
        c->record_kind = DPI_RECORD_OTHER; /* records are not touched */
        return DPI_STATUS_OK;
    }
    if (!o->records)
        return dpi_fail(err, DPI_STATUS_ARG, "reference: needs records");
    if (o->reference >= n)
        return dpi_fail(err, DPI_STATUS_ARG, "reference: found '%lld', allowed 0..%lld",
                        (long long)o->reference, (long long)n - 1);
    c->n_records = n;
    return DPI_STATUS_OK;
}

/* Fewer texts than were wanted would be found out at the end. */
static dpi_status refuse_shortfall(int64_t n, int64_t batch, int64_t n_texts, int64_t found,
                                   const char *units, dpi_error *err) {
    char smaller[48] = "";
    const int64_t fits = (n - 1) / (found - 1); /* of this many a batch, n make `found` texts */
    if (fits > 0)
        snprintf(smaller, sizeof smaller, ", or batches of at most %lld", (long long)fits);
    return dpi_fail(err, DPI_STATUS_ARG,
                    "n_texts: found '%lld', allowed 1..%lld: each text has a batch of its own, and "
                    "%lld %s make %lld batches of %lld. %lld texts need %lld %s%s",
                    (long long)found, (long long)n_texts, (long long)n, units, (long long)n_texts,
                    (long long)batch, (long long)found, (long long)((found - 1) * batch + 1), units,
                    smaller);
}

/* Public texts that centroids are found from: a share of the run, as far as each group has enough
 * of them. */
static int32_t count_cluster_texts(const dpi_run *c) {
    const int64_t n = dpi_plan_public_texts(c);
    const int64_t least = (int64_t)DPI_GROUP_TEXTS_LEAST * c->n_labels;
    const int64_t most = (int64_t)DPI_GROUP_TEXTS_MOST * c->n_labels;
    return (int32_t)(n < least ? least : n < most ? n : most);
}

/* The batches that a record can be in, of which nobody knows which: those of its label, at least as
 * many as the label with fewest texts has. 0: their secrecy is not counted. */
static int32_t count_secret_batches(const dpi_release_options *o, const dpi_run *c,
                                    const dpi_label_list *labels) {
    int32_t least = c->labels ? c->n_texts / labels->n : c->n_texts;
    if (!dpi_run_is_assigned(c) || !dpi_method_get(c->method.method)->subsamples ||
        o->known_batches || o->method.epsilon == 0 || c->histogram > 0 || c->cluster_texts > 0)
        return 0;
    for (int32_t i = 0; c->labels && i < labels->n; i++)
        if (labels->n_texts[i] > 0 && labels->n_texts[i] < least)
            least = labels->n_texts[i];
    return least > 1 ? least : 0;
}

/* What a ledger would count at its order for the run's budget, with that many secret batches. */
static dpi_status counted_cost(const dpi_sampler_options *m, int32_t allocation, int32_t order,
                               double *divergence, dpi_error *err) {
    dpi_sampler_options o = *m;
    dpi_cost cost;
    double rho;
    o.allocation = allocation;
    DPI_TRY(dpi_budget_rho(&o, &rho, err));
    dpi_cost_init(&cost);
    cost.subsample = m->subsample;
    cost.allocation = allocation;
    DPI_TRY(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, rho, 0, err));
    return dpi_cost_renyi(&cost, order, divergence, err);
}

/* A ledger counts at one order, where secrecy may be worth less than in epsilon: a run that would
 * cost the dataset more for it does without. */
static dpi_status settle_allocation(const dpi_release_options *o, dpi_run *c,
                                    const dpi_label_list *labels, dpi_error *err) {
    const int32_t k = count_secret_batches(o, c, labels);
    dpi_dataset_info info;
    double secret, known;
    dpi_dataset_info_init(&info);
    c->method.allocation = k;
    if (k == 0 || !o->ledger || !o->dataset ||
        dpi_ledger_info(o->ledger, o->dataset, &info, NULL) != DPI_STATUS_OK)
        return DPI_STATUS_OK; /* the charge will say what is wrong */
    DPI_TRY(counted_cost(&c->method, k, info.order, &secret, err));
    DPI_TRY(counted_cost(&c->method, 0, info.order, &known, err));
    if (secret > known)
        c->method.allocation = 0;
    return DPI_STATUS_OK;
}

/* B and the number of texts. Where records are assigned both must be given: what follows from the
 * records is secret. */
static dpi_status settle_batches(const dpi_release_options *o, dpi_run *c,
                                 dpi_label_list *labels, dpi_error *err) {
    const int64_t n = count_records(o);
    const bool assigned = dpi_run_is_assigned(c);
    if (assigned && (o->batch == 0 || (o->n_texts == 0 && !o->label_texts)))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "batch and n_texts must be given with add/remove and with subsample: they "
                        "must not follow from the records");
    /* How many records there are is secret where they are assigned. A bound that the caller states
     * is public. */
    if (assigned)
        DPI_TRY(dpi_delta_check(o->method.delta, o->n_records, o->method.max_per_unit, err));
    const bool one_batch = n <= DEFAULT_ONE_BATCH && !c->labels;
    const int64_t batch = o->batch > 0 ? o->batch : one_batch ? n : DEFAULT_BATCH;
    int64_t n_texts = assigned ? o->n_texts : (n + batch - 1) / batch;
    if (!assigned && !c->labels && o->n_texts > n_texts)
        return refuse_shortfall(n, batch, n_texts, o->n_texts,
                                dpi_run_has_units(c) ? "units" : "records", err);
    if (!assigned && o->n_texts > 0)
        n_texts = o->n_texts;
    if (c->labels) {
        DPI_TRY(dpi_labels_make(o, c->labels, (int32_t)batch, labels, err));
        c->n_labels = labels->n;
        n_texts = dpi_labels_texts(labels);
    }
    if (n_texts > INT32_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT,
                        "%lld records make %lld texts, allowed %d: give a larger batch, or n_texts",
                        (long long)n, (long long)n_texts, INT32_MAX);
    c->method.n_ref = c->method.denominator = (int32_t)batch;
    c->n_texts = (int32_t)n_texts;
    if (o->n_clusters > n_texts)
        return dpi_fail(err, DPI_STATUS_ARG, "n_clusters: found %d, allowed 2..%lld, the texts",
                        o->n_clusters, (long long)n_texts);
    c->cluster_texts = o->n_clusters > 0 ? count_cluster_texts(c) : 0;
    c->n_records = assigned ? 0 : n;
    DPI_TRY(settle_allocation(o, c, labels, err));
    return dpi_run_check(c, err);
}

/* What of the budget the histogram takes. */
static dpi_status settle_histogram(const dpi_release_options *o, dpi_run *c, dpi_error *err) {
    double rho = o->method.rho;
    if (o->histogram_rho == 0)
        return DPI_STATUS_OK;
    c->histogram = (int32_t)dpi_noise_variance_for(o->histogram_rho);
    if (c->histogram == 0 || o->label_texts)
        return dpi_fail(err, DPI_STATUS_ARG, "histogram_rho: found %g, allowed %.3g..8, and no "
                                             "label_texts beside it",
                        o->histogram_rho, 128.0 / DPI_NOISE_VARIANCE_MAX);
    if (o->method.epsilon > 0)
        DPI_TRY(dpi_zcdp_rho(o->method.epsilon, o->method.delta, &rho, err));
    const double texts = nextafter(rho - dpi_run_histogram_rho(c), 0);
    if (!(texts > 0))
        return dpi_fail(err, DPI_STATUS_BUDGET,
                        "histogram_rho: found %g, allowed less than the budget, rho %g",
                        o->histogram_rho, rho);
    c->method.rho = texts;
    c->method.epsilon = 0;
    return DPI_STATUS_OK;
}

/* Groups of similar records. Another process would have to find the same centroids to the last bit,
 * or a record could be in two texts. */
static dpi_status settle_clusters(const dpi_release_options *o, dpi_run *c, dpi_error *err) {
    const bool labels = o->n_labels > 0 || o->label_texts || o->labels == DPI_LABELS_PUBLIC ||
                        (o->records && dpi_records_has_labels(o->records)) ||
                        dpi_prompt_options_have_label(&o->prompts);
    if (is_plain(o) || c->method.adjacency != DPI_ADJACENCY_ADD_REMOVE || c->method.subsample > 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_clusters: found %d, allowed with add/remove and without subsample",
                        o->n_clusters);
    if (labels)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_clusters: found %d, allowed without labels of the records, label_names "
                        "and label_texts, and without {label} in a prompt", o->n_clusters);
    if (o->key || o->spread || o->n_shards > 0 || o->next_text || o->journal)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "n_clusters: found %d, allowed in one process that is not a job: others "
                        "could find other centroids", o->n_clusters);
    DPI_TRY(dpi_check_range("n_clusters", o->n_clusters, 2, DPI_LABELS_MAX, err));
    c->labels = DPI_LABELS_PRIVATE;
    return settle_histogram(o, c, err);
}

/* How labels are read. */
static dpi_status settle_labels(const dpi_release_options *o, dpi_run *c, dpi_error *err) {
    if (o->n_clusters != 0)
        return settle_clusters(o, c, err);
    const bool given = o->n_labels > 0 || o->labels || o->label_texts || o->histogram_rho != 0;
    const bool there = o->records ? dpi_records_has_labels(o->records)
                                  : given && dpi_run_is_assigned(c);
    if (!there && (given || dpi_prompt_options_have_label(&o->prompts)))
        return dpi_fail(err, DPI_STATUS_ARG, "label_field: found none, needed for labels%s",
                        given ? "" : ": {label} stands in a prompt");
    if (!there)
        return DPI_STATUS_OK;
    if (is_plain(o))
        return dpi_fail(err, DPI_STATUS_ARG, "plain and label_field: allowed is one of them");
    c->labels = dpi_run_is_assigned(c) ? DPI_LABELS_PRIVATE : DPI_LABELS_PUBLIC;
    if (o->labels && o->labels != c->labels)
        return dpi_fail(err, DPI_STATUS_ARG, "labels: found %s, allowed %s %s",
                        dpi_labels_name(o->labels), dpi_labels_name(c->labels),
                        c->labels == DPI_LABELS_PUBLIC
                            ? "by position; private ones need add/remove or subsample"
                            : "with add/remove and with subsample");
    return settle_histogram(o, c, err);
}

static dpi_status settle_records(const dpi_release_options *o, dpi_run *c,
                                 dpi_label_list *labels, dpi_error *err) {
    DPI_TRY(settle_units(o, c, err));
    DPI_TRY(dpi_check_range("labels", o->labels, 0, DPI_LABELS_PRIVATE, err));
    DPI_TRY(dpi_check_range("n_labels", o->n_labels, 0, DPI_LABELS_MAX, err));
    DPI_TRY(settle_labels(o, c, err));
    c->record_kind = o->records ? dpi_records_kind(o->records) : DPI_RECORD_OTHER;
    if (o->records && reads_records(o) && count_records(o) == 0 && !dpi_run_is_assigned(c))
        return dpi_records_refuse_empty(o->records, err);
    if (is_plain(o))
        return settle_plain(o, c, err);
    if (!o->records && o->n_records == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "records: found none, nor n_records");
    return settle_batches(o, c, labels, err);
}

/* ---- Without the model ----------------------------------------------------------------------- */

static dpi_status check_structs(const dpi_release_options *o, dpi_error *err) {
    DPI_CHECK_FIXED(dpi_sampler_options, &o->method, err);
    DPI_CHECK_FIXED(dpi_session_options, &o->session, err);
    return dpi_prompt_options_check(&o->prompts, err);
}

static dpi_status check_numbers(const dpi_release_options *o, dpi_error *err) {
    DPI_TRY(dpi_check_range("n_records", o->n_records, 0, INT32_MAX, err));
    DPI_TRY(dpi_check_range("reference", o->reference, -1, INT32_MAX, err));
    DPI_TRY(dpi_check_range("batch", o->batch, 0, 4096, err));
    DPI_TRY(dpi_check_range("n_texts", o->n_texts, 0, INT32_MAX, err));
    DPI_TRY(dpi_check_range("n_tokens", o->n_tokens, 0, 1 << 20, err));
    DPI_TRY(dpi_check_range("top_k", o->top_k, -1, 1 << 18, err));
    DPI_TRY(dpi_check_range("n_parallel", o->n_parallel, 0, 4096, err));
    DPI_TRY(dpi_check_range("seeded", o->seeded, 0, 1, err));
    DPI_TRY(dpi_check_range("n_shards", o->n_shards, 0, INT32_MAX, err));
    DPI_TRY(dpi_check_range("shard", o->shard, 0, o->n_shards > 0 ? o->n_shards - 1 : 0, err));
    DPI_TRY(dpi_check_range("as_drawn", o->as_drawn, 0, 1, err));
    DPI_TRY(dpi_plan_check_released(o, err));
    if (o->reference >= 0 && !is_plain(o))
        return dpi_fail(err, DPI_STATUS_ARG, "reference: found %lld, allowed in a plain run alone",
                        (long long)o->reference);
    return DPI_STATUS_OK;
}

/* Each part of a batch by position has a slot. */
static dpi_status check_spread(const dpi_release_options *o, const dpi_run *c, dpi_error *err) {
    if (!o->spread)
        return DPI_STATUS_OK;
    if (!dpi_method_ops_get(o->method.method)->partial || o->n_parallel > 1 || o->n_shards > 0 ||
        o->next_text)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "spread is allowed with a method whose sums merge, one text at a time, "
                        "and without shards");
    DPI_TRY(dpi_check_range("spread.count", o->spread->count, 1,
                            dpi_run_is_assigned(c) || c->method.n_ref > DPI_PARTS_MAX
                                ? DPI_PARTS_MAX
                                : c->method.n_ref, err));
    return dpi_check_range("spread.index", o->spread->index, 0, o->spread->count - 1, err);
}

/* Whether a release with these options can be a job. */
static dpi_status check_job(const dpi_release_options *o, dpi_error *err) {
    if (!o->journal)
        return DPI_STATUS_OK;
    if (!dpi_method_recalls(o->method.method))
        return dpi_fail(
            err, DPI_STATUS_UNSUPPORTED,
            "a job with the method %s: its steps keep random numbers that are in no token, so "
            "that a text could not go on from its tokens",
            dpi_method_get(o->method.method)->name);
    if (o->spread && o->spread->index > 0)
        return dpi_fail(err, DPI_STATUS_ARG, "journal: allowed with part 0 of spread, which draws");
    if (!o->model_path)
        return dpi_fail(err, DPI_STATUS_ARG, "model_path: found none, needed with a journal");
    return DPI_STATUS_OK;
}

/* The claim, but for what needs the model. */
static dpi_status settle_options(const dpi_release_options *o, dpi_run *c,
                                 dpi_label_list *labels, dpi_error *err) {
    DPI_TRY(check_numbers(o, err));
    dpi_run_init(c);
    c->method = o->method;
    c->method.random = NULL;
    c->method.random_user = NULL;
    c->randomness = o->method.random || o->seeded ? DPI_RANDOMNESS_SEED : DPI_RANDOMNESS_SYSTEM;
    c->released = o->n_released;
    DPI_TRY(settle_records(o, c, labels, err));
    DPI_TRY(dpi_run_check_released(c->released, c->n_texts, err));
    return check_spread(o, c, err);
}

static dpi_status settle_answer(dpi_release_options *o, dpi_error *err) {
    DPI_TRY(check_structs(o, err));
    if (o->wording)
        DPI_TRY(dpi_wording_check(o->wording, err));
    dpi_wording_end_prompts(o->wording, &o->prompts);
    return DPI_STATUS_OK;
}

dpi_status dpi_release_options_check(const dpi_release_options *options, dpi_error *err) {
    dpi_run claim;
    dpi_label_list labels = {0};
    DPI_COPY_STRUCT(dpi_release_options, o, options, err);
    DPI_TRY(settle_answer(&o, err));
    const dpi_status status = settle_options(&o, &claim, &labels, err);
    dpi_labels_free(&labels);
    return status;
}

/* ---- With the model -------------------------------------------------------------------------- */

static dpi_status settle_lengths(dpi_plan *plan, dpi_error *err) {
    dpi_release_options *o = &plan->options;
    const int32_t n_vocab = plan->info.n_vocab;
    if (o->session.n_ctx == 0)
        o->session.n_ctx =
            plan->info.n_ctx_train < DEFAULT_CTX_MOST ? plan->info.n_ctx_train : DEFAULT_CTX_MOST;
    const int32_t n_ctx = o->session.n_ctx;
    if (o->n_tokens == 0)
        o->n_tokens = dpi_tokens_default(n_ctx);
    if (o->n_tokens >= n_ctx || o->n_tokens < 1)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_tokens: found '%d', allowed 1..%d with a context of %d tokens",
                        o->n_tokens, n_ctx - 1, n_ctx);
    if (o->top_k < 0) {
        const dpi_parameter *p = dpi_method_parameter_of(o->method.method, "top_k");
        o->top_k = p ? (int32_t)p->default_value : 0;
    }
    o->top_k = o->top_k < n_vocab ? o->top_k : n_vocab;
    dpi_sampler_options *m = &plan->claim.method;
    m->n_tokens = o->n_tokens;
    m->top_k = o->top_k;
    m->n_vocab = n_vocab;
    m->isa = o->session.isa; /* what computes, not what comes out */
    o->session.n_seq = m->n_ref * dpi_sampler_per_unit(m) + 1;
    return DPI_STATUS_OK;
}

/* Of texts with the label; data NULL: of all texts. */
static dpi_status add_prompts(dpi_plan *plan, dpi_bytes label, dpi_error *err) {
    dpi_prompt_options o = plan->options.prompts;
    dpi_prompts_info info, *all = &plan->prompts_info;
    if (label.data)
        o.label = label;
    dpi_prompts_info_init(&info);
    const int32_t n_room = plan->options.session.n_ctx - plan->options.n_tokens;
    dpi_prompts **made = &plan->prompts[plan->n_prompts];
    DPI_TRY(dpi_prompts_create(plan->options.model, &o, n_room, made, err));
    plan->n_prompts++;
    DPI_TRY(dpi_prompts_info_get(*made, &info, err));
    DPI_TRY(dpi_plan_released_length(plan, &o, &info, err));
    if (plan->n_prompts == 1) {
        *all = info;
        return DPI_STATUS_OK;
    }
    all->n_public = info.n_public > all->n_public ? info.n_public : all->n_public;
    all->n_frame = info.n_frame > all->n_frame ? info.n_frame : all->n_frame;
    all->n_limit = info.n_limit > all->n_limit ? info.n_limit : all->n_limit;
    all->n_prefix = info.n_prefix < all->n_prefix ? info.n_prefix : all->n_prefix;
    return DPI_STATUS_OK;
}

static dpi_status settle_prompts(dpi_plan *plan, dpi_error *err) {
    const bool differ = plan->labels.n > 0 && dpi_prompt_options_have_label(&plan->options.prompts);
    const int32_t n = differ ? plan->labels.n : 1;
    plan->prompts = calloc((size_t)n, sizeof *plan->prompts);
    if (!plan->prompts)
        return dpi_no_memory(err, "the prompts");
    for (int32_t i = 0; i < n; i++)
        DPI_TRY(add_prompts(plan, differ ? dpi_plan_label(plan, i) : (dpi_bytes){0}, err));
    return dpi_plan_hash_prompts(plan, err);
}

/* By position a sampler is made at once: whatever could be wrong with it is known before a charge.
 * Where records are assigned its slots are not known yet. */
static dpi_status settle_sampler(dpi_plan *plan, dpi_error *err) {
    dpi_run *c = &plan->claim;
    dpi_sampler *sampler;
    if (dpi_run_is_assigned(c)) {
        const dpi_status status = dpi_run_settle(c, err);
        plan->sampler = c->plan;
        return status;
    }
    dpi_sampler_options m = c->method;
    DPI_TRY(dpi_sampler_create(&m, &sampler, err));
    plan->sampler = *dpi_sampler_plan_get(sampler);
    dpi_sampler_free(sampler);
    if (!is_plain(&plan->options))
        c->plan = plan->sampler;
    return dpi_run_check(c, err);
}

/* As many texts as fill the steps, in at most half of the memory that is there. */
static dpi_status choose_parallel(dpi_plan *plan, int32_t n_rows, dpi_error *err) {
    dpi_release_options *o = &plan->options;
    const int32_t n_threads = o->session.n_threads > 0 ? o->session.n_threads : dpi_processors();
    const uint64_t most = dpi_system_memory_available() / 2;
    uint64_t n_bytes;
    int32_t n = (DEFAULT_ROWS * n_threads + n_rows / 2) / n_rows;
    n = n < plan->claim.n_texts ? n : plan->claim.n_texts;
    for (o->n_parallel = 1; o->n_parallel < n; o->n_parallel++) {
        DPI_TRY(dpi_plan_session_memory(plan, o->n_parallel + 1, &n_bytes, err));
        if (n_bytes > most)
            break;
    }
    return DPI_STATUS_OK;
}

static dpi_status settle_parallel(dpi_plan *plan, dpi_error *err) {
    dpi_release_options *o = &plan->options;
    const int32_t n_rows = o->session.n_seq, most = SEQUENCES_MOST / n_rows;
    if (o->spread)
        o->n_parallel = 1;
    if (o->n_parallel > most)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_parallel: found '%d', allowed 1..%d with texts of %d sequences",
                        o->n_parallel, most, n_rows);
    if (o->n_parallel == 0 && o->method.random)
        o->n_parallel = 1;
    if (o->n_parallel == 0)
        DPI_TRY(choose_parallel(plan, n_rows, err));
    if (o->n_parallel > plan->claim.n_texts)
        o->n_parallel = plan->claim.n_texts;
    if (o->n_released > 0 && o->n_parallel > o->n_released) /* the next round waits for the last */
        o->n_parallel = o->n_released;
    return DPI_STATUS_OK;
}

static void name_model(dpi_plan *plan) {
    char name[64];
    dpi_model_adapted_name(&plan->info, name);
    dpi_run_name_model(&plan->claim, name);
}

/* The plan's own from here on. */
static dpi_status settle_wording(dpi_plan *plan, dpi_error *err) {
    dpi_release_options *o = &plan->options;
    dpi_wording chosen;
    dpi_bytes stops[DPI_STOPS_MAX];
    dpi_wording_init(&chosen);
    if (o->wording)
        chosen = *o->wording;
    o->prompts.n_text = o->n_tokens;
    if (!o->grammar)
        DPI_TRY(dpi_wording_choose(&o->prompts, o->model, &chosen, stops, err));
    DPI_TRY(dpi_word_rules_create(&chosen, o->model, &plan->rules, err));
    o->wording = dpi_word_rules_wording(plan->rules);
    dpi_wording_end_prompts(o->wording, &o->prompts);
    return dpi_wording_digest(o->wording, plan->claim.wording, err);
}

/* Whether the model's tokens can write such texts is known before a record is read. */
static dpi_status settle_grammar(dpi_plan *plan, dpi_error *err) {
    const dpi_grammar *grammar = plan->options.grammar;
    if (!grammar)
        return DPI_STATUS_OK;
    snprintf(plan->claim.grammar, sizeof plan->claim.grammar, "%016" PRIx64,
             dpi_grammar_digest(grammar));
    return dpi_mask_create(grammar, plan->options.model, &plan->mask, err);
}

static dpi_status settle(dpi_plan *plan, dpi_error *err) {
    DPI_TRY(settle_answer(&plan->options, err));
    DPI_TRY(settle_options(&plan->options, &plan->claim, &plan->labels, err));
    DPI_TRY(check_job(&plan->options, err));
    if (!plan->options.model)
        return dpi_fail(err, DPI_STATUS_ARG, "model: found none");
    DPI_TRY(settle_wording(plan, err));
    DPI_TRY(settle_grammar(plan, err));
    dpi_model_info_init(&plan->info);
    DPI_TRY(dpi_model_info_get(plan->options.model, &plan->info, err));
    name_model(plan);
    plan->claim.random_weights = plan->info.random_weights;
    if (plan->options.charged && plan->options.charged->scope != DPI_SCOPE_DATASET)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "charged: the scope must be that of a dataset");
    if (plan->options.charged)
        plan->claim.ledger = *plan->options.charged;
    DPI_TRY(settle_lengths(plan, err));
    DPI_TRY(dpi_plan_settle_steering(plan, err));
    if (plan->mask)
        DPI_TRY(dpi_mask_check_length(plan->mask, plan->claim.method.n_tokens, err));
    DPI_TRY(settle_prompts(plan, err));
    DPI_TRY(dpi_plan_settle_pace(plan, err));
    DPI_TRY(settle_parallel(plan, err));
    return settle_sampler(plan, err);
}

dpi_status dpi_plan_make(const dpi_release_options *options, dpi_plan *plan, dpi_error *err) {
    *plan = (dpi_plan){.options = *options};
    const dpi_status status = settle(plan, err);
    if (status != DPI_STATUS_OK)
        dpi_plan_free(plan);
    return status;
}
