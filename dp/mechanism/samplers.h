/* samplers.h - token samplers as mechanisms: what a file of one says of it, and options to and from
 * a claim. Internal. */
#ifndef DPI_MECHANISM_SAMPLERS_H
#define DPI_MECHANISM_SAMPLERS_H

#include "base/text.h"
#include "dp/mechanism/mechanism.h"
#include "dp/methods/method.h"

/* The row of a method of dp/methods. */
#define DPI_SAMPLER_ROW(method)                                                                    \
    {                                                                                              \
        .info = {.proof = "dp/PRIVACY.md section 1", .is_parallel = 1, .runs = "texts"},          \
        .sampler = &(method),                                                                      \
        .output = "all tokens of all texts, in their order, and where each text ends"              \
    }
/* The hooks of dpi_mechanism_ops, which are the same for all methods: claim_parts.c calls them. */
dpi_status dpi_sampler_part_settle(const dpi_claim *claim, dpi_claim_part *part, dpi_error *err);
dpi_status dpi_sampler_part_cost(const dpi_claim *claim, const dpi_claim_part *part,
                                 dpi_cost *cost, dpi_error *err);
const char *dpi_sampler_part_warning(const dpi_claim *claim, const dpi_claim_part *part);
void dpi_sampler_part_facts(const dpi_claim *claim, const dpi_claim_part *part,
                            dpi_facts *facts);

void dpi_sampler_part_assume(const dpi_claim *claim, const dpi_claim_part *part,
                             const char *list[DPI_ASSUMPTIONS_MAX + 1]);
void dpi_sampler_part_done(const dpi_claim *claim, const dpi_claim_part *part, dpi_text *text);

/* rho and epsilon of a part from its plan: rho 0 where no bound in zCDP is proven, epsilon infinite
 * without a guarantee. */
void dpi_sampler_part_bound(const dpi_sampler_options *options, dpi_claim_part *part);
/* The values of a part from options of its method. */
void dpi_sampler_to_part(const dpi_sampler_options *options, dpi_claim_part *part);

#endif
