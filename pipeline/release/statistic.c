/* statistic.c - see dpinfer/statistic.h. The order is that of the proof: the charge is on the disk,
 * then records are read, once. */
#include "dpinfer/statistic.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/mechanism/mechanism.h"
#include "dpinfer/memory.h"
#include "pipeline/release/payers.h"

struct dpi_statistic {
    dpi_statistic_options options;
    dpi_claim claim;
    const dpi_statistic_ops *ops;
    int64_t charge;   /* id; 0: none */
    bool is_released;
    uint64_t bits;    /* seeded: the state of the random bits */
    int32_t n;
    int64_t *numbers; /* [n] private until they are released */
};

DPI_STRUCT_DEFAULTS(dpi_statistic_options, .delta = 1e-6)

/* The claim, of which the first part is the mechanism. */
static dpi_status settle(dpi_statistic *s, dpi_error *err) {
    const dpi_statistic_options *o = &s->options;
    const int32_t id = o->mechanism ? dpi_mechanism_find(o->mechanism) : -1;
    dpi_claim *c = &s->claim;
    s->ops = id >= 0 ? dpi_mechanism_ops_get(id)->statistic : NULL;
    if (!s->ops)
        return dpi_fail(err, DPI_STATUS_ARG, "mechanism: found '%.40s', which releases no numbers "
                                             "by itself", o->mechanism ? o->mechanism : "");
    if (o->records && dpi_records_has_units(o->records))
        return dpi_fail(err, DPI_STATUS_ARG, "records: found units, allowed are records without: "
                                             "a statistic protects one record");
    dpi_claim_init(c);
    c->adjacency = DPI_ADJACENCY_REPLACE_BY_NULL;
    c->record_kind = o->records ? dpi_records_kind(o->records) : DPI_RECORD_OTHER;
    c->n_units = o->records ? (int64_t)dpi_records_count(o->records) : o->n_records;
    c->delta = o->delta;
    c->randomness = o->seeded ? DPI_RANDOMNESS_SEED : DPI_RANDOMNESS_SYSTEM;
    dpi_claim_part *p = dpi_claim_add(c, o->mechanism);
    for (int32_t i = 0; i < o->n_values; i++)
        DPI_TRY(dpi_claim_set_text(p, o->keys[i], o->values[i], err));
    DPI_TRY(dpi_claim_settle(c, err));
    s->n = s->ops->count(&c->parts[0]);
    return DPI_STATUS_OK;
}

dpi_status dpi_statistic_open(const dpi_statistic_options *options, dpi_statistic **statistic,
                              dpi_error *err) {
    *statistic = NULL;
    DPI_COPY_STRUCT(dpi_statistic_options, o, options, err);
    if (o.ledger && o.seeded)
        return dpi_fail(err, DPI_STATUS_ARG, "seed: not with a ledger, which counts no work whose "
                                             "noise somebody can know");
    dpi_statistic *s = calloc(1, sizeof *s);
    if (!s)
        return dpi_no_memory(err, "a statistic");
    s->options = o;
    s->bits = o.seed;
    dpi_status status = settle(s, err);
    if (status == DPI_STATUS_OK) {
        s->numbers = dpi_private_malloc((size_t)s->n * sizeof *s->numbers);
        status = s->numbers ? DPI_STATUS_OK : dpi_no_memory(err, "a statistic");
    }
    if (status != DPI_STATUS_OK) {
        dpi_statistic_free(s);
        return status;
    }
    *statistic = s;
    return DPI_STATUS_OK;
}

void dpi_statistic_free(dpi_statistic *s) {
    if (s)
        dpi_private_free(s->numbers);
    free(s);
}

const dpi_claim *dpi_statistic_claim(const dpi_statistic *s) { return &s->claim; }

int32_t dpi_statistic_count(const dpi_statistic *s) { return s->n; }

void dpi_statistic_name(const dpi_statistic *s, int32_t i, char *text, size_t size) {
    s->ops->name(&s->claim.parts[0], i, text, size);
}

dpi_status dpi_statistic_reserve(dpi_statistic *s, dpi_error *err) {
    const dpi_payers payers = {.records = s->options.records, .ledger = s->options.ledger,
                               .dataset = s->options.dataset};
    uint8_t *pays = NULL;
    if (s->charge > 0)
        return DPI_STATUS_OK;
    const dpi_status status =
        dpi_payers_charge_claim(&payers, &s->claim, &pays, &s->charge, err);
    dpi_private_free(pays);
    return status;
}

static dpi_status add_records(dpi_statistic *s, dpi_error *err) {
    const dpi_records *records = s->options.records;
    for (size_t i = 0; i < dpi_records_count(records); i++) {
        char *text = NULL;
        size_t n_bytes = 0;
        DPI_TRY(dpi_records_read(records, i, &text, &n_bytes, err));
        if (text)
            s->ops->add(&s->claim.parts[0], text, n_bytes, s->numbers);
        dpi_private_free(text);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_statistic_release(dpi_statistic *s, const int64_t **numbers, int32_t *n,
                              dpi_error *err) {
    if (!s->options.records)
        return dpi_fail(err, DPI_STATUS_ARG, "records: found none, needed to count them");
    if (s->is_released || (s->options.ledger && s->charge == 0))
        return dpi_fail(err, DPI_STATUS_STATE, s->is_released ? "the numbers were released before"
                                                           : "the ledger was not charged");
    s->is_released = true;
    for (int32_t i = 0; i < s->n; i++)
        s->numbers[i] = 0;
    dpi_status status = add_records(s, err);
    if (status == DPI_STATUS_OK)
        status = s->ops->release(&s->claim.parts[0], s->options.seeded ? dpi_random_insecure : NULL,
                                 &s->bits, s->numbers, s->n, err);
    if (status != DPI_STATUS_OK) {
        dpi_wipe(s->numbers, (size_t)s->n * sizeof *s->numbers);
        return status;
    }
    *numbers = s->numbers;
    *n = s->n;
    return DPI_STATUS_OK;
}
