/* claim_settle.c - what follows from a claim, and whether work can have been done as it says. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/exact/mean.h"
#include "dp/mechanism/mechanism.h"
#include "dp/methods/method.h"
#include "dp/methods/parameters.h"
#include "dpinfer/pace.h"
#include "dpinfer/release.h"
#include "pipeline/run.h"
#include "pipeline/ledger/amount.h"

DPI_STRUCT_DEFAULTS(dpi_claim, .epsilon = INFINITY)

dpi_claim_part *dpi_claim_add(dpi_claim *claim, const char *mechanism) {
    const int32_t id = dpi_mechanism_find(mechanism);
    if (id < 0 || claim->n_parts >= DPI_CLAIM_PARTS_MAX)
        return NULL;
    dpi_claim_part *p = &claim->parts[claim->n_parts++];
    *p = (dpi_claim_part){.mechanism = id, .n_runs = 1};
    for (int32_t i = 0; i < dpi_mechanism_parameter_count(id); i++)
        p->values[i] = dpi_mechanism_parameter_get(id, i)->default_value;
    return p;
}

const dpi_claim_part *dpi_claim_find(const dpi_claim *claim, const char *mechanism) {
    for (int32_t i = 0; i < claim->n_parts; i++)
        if (strcmp(dpi_mechanism_name(claim->parts[i].mechanism), mechanism) == 0)
            return &claim->parts[i];
    return NULL;
}

static int32_t find_key(const dpi_claim_part *part, const char *key) {
    const dpi_parameter *p;
    for (int32_t i = 0; (p = dpi_mechanism_parameter_get(part->mechanism, i)); i++)
        if (strcmp(p->key, key) == 0)
            return i;
    return -1;
}

dpi_status dpi_claim_set(dpi_claim_part *part, const char *key, double value, dpi_error *err) {
    const int32_t i = find_key(part, key);
    if (i < 0)
        return dpi_fail(err, DPI_STATUS_ARG, "%s: %s has no such parameter", key,
                        dpi_mechanism_name(part->mechanism));
    DPI_TRY(dpi_parameter_check(dpi_mechanism_parameter_get(part->mechanism, i), value, err));
    part->values[i] = value;
    return DPI_STATUS_OK;
}

dpi_status dpi_claim_set_text(dpi_claim_part *part, const char *key, const char *text,
                              dpi_error *err) {
    const int32_t i = find_key(part, key);
    const dpi_parameter *p = i >= 0 ? dpi_mechanism_parameter_get(part->mechanism, i) : NULL;
    if (!p)
        return dpi_claim_set(part, key, 0, err);
    if (p->type != DPI_PARAMETER_TEXT)
        return dpi_parameter_read(p, text, &part->values[i], err);
    const size_t n = strlen(text);
    if (n < 1 || n > (size_t)p->max)
        return dpi_fail(err, DPI_STATUS_ARG, "%s: found %zu bytes, allowed 1..%.0f", key, n,
                        p->max);
    memcpy(part->text, text, n + 1);
    return DPI_STATUS_OK;
}

double dpi_claim_value(const dpi_claim_part *part, const char *key) {
    const int32_t i = find_key(part, key);
    return i >= 0 ? part->values[i] : (double)NAN;
}

void dpi_part_cost(dpi_claim_part *part, int32_t kind, int64_t n, double x, double q) {
    part->cost[part->n_cost++] =
        (dpi_cost_part){.kind = kind, .n = (int32_t)n, .x = x, .q = q};
}

dpi_status dpi_part_check_tensors(const dpi_claim *c, const dpi_claim_part *p, dpi_error *err) {
    const bool may_lack = p == &c->parts[0] && !dpi_claim_find(c, "texts");
    if ((!p->text[0] && may_lack) || dpi_is_hex(p->text, DPI_DIGEST_HEX))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG, "tensors_sha256: found '%s', allowed are %d hexadecimal "
                                         "digits", p->text, DPI_DIGEST_HEX);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static dpi_status check_units(const dpi_claim *c, dpi_error *err) {
    DPI_TRY(dpi_check_range("adjacency", c->adjacency, 0, DPI_ADJACENCY_WORD, err));
    DPI_TRY(dpi_check_range("unit", c->record_kind, 0, DPI_RECORD_ROW, err));
    DPI_TRY(dpi_check_range("M", c->max_per_unit, 0, DPI_UNIT_RECORDS_MAX, err));
    DPI_TRY(dpi_check_range("n_units", c->n_units, 0, INT64_C(1) << 53, err));
    DPI_TRY(dpi_check_range("labels", c->labels, 0, DPI_LABELS_PRIVATE, err));
    DPI_TRY(dpi_check_range("n_labels", c->n_labels, c->labels ? 1 : 0,
                            c->labels ? DPI_LABELS_MAX : 0, err));
    DPI_TRY(dpi_check_range("cluster_texts", c->cluster_texts, 0, c->labels ? INT32_MAX : 0, err));
    DPI_TRY(dpi_check_range("no_records", c->no_records, 0, 1, err));
    if (!(c->delta >= 0 && c->delta < 1))
        return dpi_fail(err, DPI_STATUS_ARG, "delta: found %g, allowed 0 <= x < 1", c->delta);
    const bool has_fields = c->max_per_unit > 0 || (c->labels && c->cluster_texts == 0);
    if (c->record_kind == DPI_RECORD_FILE && has_fields)
        return dpi_fail(err, DPI_STATUS_ARG, "unit: found %s, which has no fields for IDs and "
                                             "labels", dpi_record_kind_text(c->record_kind));
    /* Else a mechanism that gives one of them away has a chance. */
    if (c->delta * (double)c->n_units >= 1)
        return dpi_fail(err, DPI_STATUS_ARG, "delta: found %g, allowed below 1 / units = %g",
                        c->delta, 1 / (double)c->n_units);
    return DPI_STATUS_OK;
}

/* "": there is none. */
static dpi_status check_digest(const char *key, const char *hex, size_t n, dpi_error *err) {
    return !hex[0] || dpi_is_hex(hex, n)
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_ARG, "%s: found '%.20s', allowed are %zu hexadecimal "
                                               "digits", key, hex, n);
}

static dpi_status check_bound(const dpi_claim *c, dpi_error *err) {
    char name[sizeof c->model_name];
    DPI_TRY(dpi_check_range("pace_texts", c->pace_texts, 0, DPI_PACE_TEXTS_MAX, err));
    DPI_TRY(dpi_check_range("pace_given", c->pace_given, 0,
                            c->pace_texts > 0 ? DPI_PACE_GIVEN_TOKENS : 0, err));
    DPI_TRY(dpi_check_range("randomness", c->randomness, 0, DPI_RANDOMNESS_SEED, err));
    if (!memchr(c->model_name, '\0', sizeof c->model_name))
        return dpi_fail(err, DPI_STATUS_ARG, "model: found a name without an end");
    dpi_claim_name_text(name, sizeof name, c->model_name);
    if (strcmp(name, c->model_name) != 0)
        return dpi_fail(err, DPI_STATUS_ARG, "model: found a name with bytes that steer a terminal "
                                             "or are no UTF-8");
    DPI_TRY(check_digest("grammar", c->grammar, 16, err));
    DPI_TRY(check_digest("wording", c->wording, DPI_DIGEST_HEX, err));
    return check_digest("prompts", c->prompts, DPI_DIGEST_HEX, err);
}

/* Only texts that are drawn have prompts, and only a run has rounds. */
static dpi_status check_released(const dpi_claim *c, dpi_error *err) {
    dpi_sampler_options o;
    const dpi_claim_part *texts = dpi_claim_sampler(c, &o);
    return dpi_run_check_released(c->released, texts ? texts->n_runs : 0, err);
}

static dpi_status check_part(const dpi_claim *c, const dpi_claim_part *p, dpi_error *err) {
    const dpi_mechanism_ops *m = dpi_mechanism_ops_get(p->mechanism);
    DPI_TRY(dpi_check_range("runs", p->n_runs, 1, INT64_C(1) << 53, err));
    for (int32_t i = 0; i < dpi_mechanism_parameter_count(p->mechanism); i++) {
        const dpi_parameter *q = dpi_mechanism_parameter_get(p->mechanism, i);
        if (q->type != DPI_PARAMETER_TEXT)
            DPI_TRY(dpi_parameter_check(q, p->values[i], err));
    }
    uint32_t proven = m->adjacencies;
    if (m->sampler) /* without a guarantee it is the one that options begin with */
        proven = m->sampler->info.has_guarantee ? m->sampler->info.adjacencies
                                                : 1u << DPI_ADJACENCY_REPLACE_BY_NULL;
    if (!(proven >> c->adjacency & 1))
        return dpi_fail(err, DPI_STATUS_ARG, "adjacency: found %s, for which nothing is proven of "
                                             "%s", dpi_adjacency_name(c->adjacency),
                        dpi_mechanism_name(p->mechanism));
    if (c->max_per_unit > 0 && !(m->sampler ? m->sampler->info.units : m->has_records))
        return dpi_fail(err, DPI_STATUS_ARG, "M: found %d, and %s takes no units of several "
                                             "records", (int)c->max_per_unit,
                        dpi_mechanism_name(p->mechanism));
    return DPI_STATUS_OK;
}

/* ---- What follows ---------------------------------------------------------------------------- */

/* All parts with the same units: in zCDP the sum, where each has a bound in it; else the sum of
 * epsilons, of which one at most needs delta. */
static dpi_status compose(dpi_claim *c, dpi_error *err) {
    double rho = 0, epsilon = 0;
    int32_t n_parts = 0, n_rho = 0, n_delta = 0;
    for (int32_t i = 0; i < c->n_parts; i++) {
        const dpi_claim_part *p = &c->parts[i];
        if (p->is_pure && p->epsilon == 0)
            continue; /* it costs nothing */
        rho = n_parts > 0 ? nextafter(rho + p->rho, INFINITY) : p->rho;
        epsilon = n_parts > 0 ? nextafter(epsilon + p->epsilon, INFINITY) : p->epsilon;
        n_parts++;
        n_rho += p->rho > 0;
        n_delta += !p->is_pure && isfinite(p->epsilon);
    }
    if ((c->delta > 0) != ((dpi_claim_uses(c) & DPI_USES_DELTA) != 0))
        return dpi_fail(err, DPI_STATUS_ARG, "delta: found %g, allowed is %s", c->delta,
                        c->delta > 0 ? "0: what was done needs none" : "0 < x < 1");
    c->rho = n_rho == n_parts ? rho : 0;
    c->epsilon = epsilon;
    if (n_parts <= 1 || isinf(epsilon))
        return DPI_STATUS_OK;
    if (c->rho > 0)
        return dpi_zcdp_epsilon(c->rho, c->delta, &c->epsilon, err);
    return n_delta <= 1 ? DPI_STATUS_OK
                        : dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                                   "mechanisms: found %d that need delta and have no bound in "
                                   "zCDP, allowed is one", (int)n_delta);
}

dpi_status dpi_claim_cost(const dpi_claim *c, dpi_cost *cost, dpi_error *err) {
    dpi_cost made;
    int32_t n_costly = 0;
    dpi_cost_init(&made);
    for (int32_t i = 0; i < c->n_parts; i++) {
        const dpi_claim_part *p = &c->parts[i];
        n_costly += !(p->is_pure && p->epsilon == 0);
        DPI_TRY(dpi_part_cost_add(c, p, &made, err));
    }
    if ((made.subsample > 0 || made.allocation > 0) && n_costly > 1)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "secret batches are of the texts alone: a ledger cannot count another "
                        "mechanism in one claim with them");
    *cost = made;
    return DPI_STATUS_OK;
}

static dpi_status settle_ledger(dpi_claim *c, dpi_error *err) {
    dpi_cost cost;
    if (!c->ledger.dataset[0])
        return DPI_STATUS_OK;
    if (c->ledger.scope == DPI_SCOPE_UNIT && c->max_per_unit == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "the ledger's scope: found unit, allowed where all "
                                             "records with one ID are a unit");
    DPI_TRY(dpi_claim_cost(c, &cost, err));
    return dpi_claim_ledger_settle(&c->ledger, &cost, err);
}

/* Only texts can be of no record, and which of them may be their mechanism says. */
static dpi_status check_no_records(const dpi_claim *c, dpi_error *err) {
    const dpi_mechanism_ops *m = dpi_mechanism_ops_get(c->parts[0].mechanism);
    const bool may_be = c->n_parts == 1 && m && m->sampler;
    return dpi_check_range("no_records", c->no_records, 0, may_be, err);
}

/* Each mechanism is there once, and behind what it belongs to: a second sampler would be settled
 * with the values of the first, and texts of a file come of what was released of it. */
static dpi_status check_places(const dpi_claim *c, dpi_error *err) {
    for (int32_t i = 0; i < c->n_parts; i++) {
        const dpi_claim_part *p = &c->parts[i];
        const dpi_mechanism_ops *m = dpi_mechanism_ops_get(p->mechanism);
        if (!m)
            return dpi_fail(err, DPI_STATUS_ARG, "mechanism: found %d, allowed 0..%d",
                            (int)p->mechanism, (int)dpi_mechanism_count() - 1);
        const uint32_t first = i == 0 ? DPI_BEHIND_NOTHING : dpi_part_leads(&c->parts[0]);
        const char *name = dpi_mechanism_name(p->mechanism);
        if (!((m->behind ? m->behind : DPI_BEHIND_NOTHING) & first))
            return dpi_fail(err, DPI_STATUS_ARG,
                            "mechanisms: found %s behind %s, where it has no place", name,
                            i == 0 ? "nothing" : dpi_mechanism_name(c->parts[0].mechanism));
        if (dpi_claim_find(c, name) != p)
            return dpi_fail(err, DPI_STATUS_ARG, "mechanisms: found %s twice, allowed is once",
                            name);
    }
    return DPI_STATUS_OK;
}

#define OF(member) offsetof(dpi_claim, member), sizeof((dpi_claim *)0)->member
/* What a claim may have only if one of its mechanisms uses it. compose looks at delta. */
static const struct {
    const char *key;
    uint32_t use;
    size_t offset, size;
} used[] = {{"unit", DPI_USES_UNITS, OF(record_kind)}, {"n_units", DPI_USES_UNITS, OF(n_units)},
            {"labels", DPI_USES_LABELS, OF(labels)},   {"model", DPI_USES_MODEL, OF(model_name)},
            {"grammar", DPI_USES_FORM, OF(grammar)},   {"wording", DPI_USES_FORM, OF(wording)},
            {"prompts", DPI_USES_PROMPTS, OF(prompts)},
            {"pace_texts", DPI_USES_PACE, OF(pace_texts)}};
#undef OF

/* A number is not 0, a text not "". */
static bool is_set(const dpi_claim *c, size_t offset, size_t size) {
    static const char zeros[sizeof(int64_t)];
    return memcmp((const char *)c + offset, zeros, size <= sizeof zeros ? size : 1) != 0;
}

static dpi_status check_used(const dpi_claim *c, dpi_error *err) {
    const uint32_t uses = dpi_claim_uses(c);
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        if (!(uses & used[i].use) && is_set(c, used[i].offset, used[i].size))
            return dpi_fail(err, DPI_STATUS_ARG, "%s: found one, and %s does not use it",
                            used[i].key, dpi_mechanism_name(c->parts[0].mechanism));
    return DPI_STATUS_OK;
}

dpi_status dpi_claim_settle(dpi_claim *c, dpi_error *err) {
    DPI_CHECK_FIXED(dpi_claim, c, err);
    DPI_TRY(dpi_check_range("n_parts", c->n_parts, 1, DPI_CLAIM_PARTS_MAX, err));
    DPI_TRY(check_units(c, err));
    DPI_TRY(check_no_records(c, err));
    DPI_TRY(check_places(c, err));
    DPI_TRY(check_used(c, err));
    DPI_TRY(check_bound(c, err));
    for (int32_t i = 0; i < c->n_parts; i++) {
        dpi_claim_part *p = &c->parts[i];
        DPI_TRY(check_part(c, p, err));
        p->rho = p->epsilon = 0;
        p->is_pure = p->n_cost = 0;
        DPI_TRY(dpi_part_settle(c, p, err));
    }
    DPI_TRY(check_released(c, err));
    DPI_TRY(compose(c, err));
    return settle_ledger(c, err);
}

/* ---- Whether it holds ------------------------------------------------------------------------ */

const char *dpi_claim_warning(const dpi_claim *c) {
    const char *why = NULL;
    for (int32_t i = 0; i < c->n_parts && !why; i++)
        why = dpi_part_warning(c, &c->parts[i]);
    if (!why)
        why = dpi_randomness_warning(c->randomness);
    return !why && isinf(c->epsilon) ? "no bound of epsilon is known" : why;
}

int32_t dpi_claim_is_private(const dpi_claim *c) { return dpi_claim_warning(c) == NULL; }

size_t dpi_claim_label(const dpi_claim *c, char *text, size_t size) {
    return dpi_warning_label(dpi_claim_warning(c), text, size);
}

size_t dpi_claim_guarantee(const dpi_claim *c, char *text, size_t size) {
    char rho[40], epsilon[40], delta[40];
    dpi_bound_text(c->rho, 7, rho, sizeof rho);
    dpi_bound_text(c->epsilon, 7, epsilon, sizeof epsilon);
    dpi_bound_text(c->delta, 7, delta, sizeof delta);
    if (c->rho > 0)
        return (size_t)snprintf(text, size, "%s-zCDP, and so (%s, %s)-DP", rho, epsilon, delta);
    return (size_t)snprintf(text, size, c->delta > 0 ? "(%s, %s)-DP" : "%s-DP", epsilon, delta);
}
