/* claim_parts.c - what a part of a claim says: its mechanism; or, of a token sampler, what all of
 * them say of their method. */
#include "base/status.h"
#include "dp/mechanism/samplers.h"

static const dpi_mechanism_ops of_samplers = {
    .settle = dpi_sampler_part_settle, .cost = dpi_sampler_part_cost,
    .warning = dpi_sampler_part_warning, .facts = dpi_sampler_part_facts,
    .assume = dpi_sampler_part_assume, .done = dpi_sampler_part_done};

static const dpi_mechanism_ops *hooks_of(const dpi_claim_part *p) {
    const dpi_mechanism_ops *m = dpi_mechanism_ops_get(p->mechanism);
    return m->sampler ? &of_samplers : m;
}

dpi_status dpi_part_settle(const dpi_claim *c, dpi_claim_part *p, dpi_error *err) {
    return hooks_of(p)->settle(c, p, err);
}

dpi_status dpi_part_cost_add(const dpi_claim *c, const dpi_claim_part *p, dpi_cost *cost,
                             dpi_error *err) {
    const dpi_mechanism_ops *m = hooks_of(p);
    if (m->cost)
        return m->cost(c, p, cost, err);
    if (p->n_cost == 0)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "what %s costs cannot be counted by a ledger",
                        dpi_mechanism_name(p->mechanism));
    for (int32_t k = 0; k < p->n_cost; k++)
        DPI_TRY(dpi_cost_add(cost, p->cost[k].kind, p->cost[k].n, p->cost[k].x, p->cost[k].q,
                             err));
    return DPI_STATUS_OK;
}

const char *dpi_part_warning(const dpi_claim *c, const dpi_claim_part *p) {
    const dpi_mechanism_ops *m = hooks_of(p);
    return m->warning ? m->warning(c, p) : NULL;
}

/* plain takes the public prompt, or one record without a guarantee. */
static uint32_t uses_of(const dpi_claim_part *p) {
    enum {
        OF_TEXTS = DPI_USES_UNITS | DPI_USES_MODEL | DPI_USES_FORM | DPI_USES_PROMPTS,
        OF_BATCHES = OF_TEXTS | DPI_USES_DELTA | DPI_USES_LABELS | DPI_USES_PACE
    };
    const dpi_mechanism_ops *m = dpi_mechanism_ops_get(p->mechanism);
    return !m->sampler                    ? m->uses
           : m->sampler->info.max_ref > 0 ? OF_BATCHES
                                          : OF_TEXTS;
}

uint32_t dpi_claim_uses(const dpi_claim *c) {
    uint32_t uses = 0;
    for (int32_t i = 0; i < c->n_parts; i++)
        uses |= uses_of(&c->parts[i]);
    return uses;
}

uint32_t dpi_part_leads(const dpi_claim_part *p) {
    const dpi_mechanism_ops *m = dpi_mechanism_ops_get(p->mechanism);
    return !m->sampler                       ? m->leads
           : m->sampler->info.has_guarantee ? DPI_BEHIND_SAMPLER
                                             : 0;
}

void dpi_part_facts(const dpi_claim *c, const dpi_claim_part *p, dpi_facts *facts) {
    hooks_of(p)->facts(c, p, facts);
}

const char *const *dpi_part_assumptions(const dpi_claim *c, const dpi_claim_part *p,
                                        const char *list[DPI_ASSUMPTIONS_MAX + 1]) {
    const dpi_mechanism_ops *m = hooks_of(p);
    list[0] = NULL;
    if (m->assume)
        m->assume(c, p, list);
    return m->assumptions ? m->assumptions : (const char *const *)list;
}

void dpi_part_done(const dpi_claim *c, const dpi_claim_part *p, dpi_text *text) {
    hooks_of(p)->done(c, p, text);
}
