/* statement.c - what an evolution guarantees, as lines of text. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "dp/exact/votes.h"
#include "pipeline/augpe/augpe.h"
#include "pipeline/claim.h"

static void add_guarantee(dpi_text *t, const dpi_augpe_claim *c) {
    char rho[40], epsilon[40];
    dpi_bound_text(c->rho_total, 7, rho, sizeof rho);
    dpi_bound_text(c->epsilon_total, 7, epsilon, sizeof epsilon);
    dpi_text_add(t,
                 dpi_augpe_is_private(c)
                     ? "  guarantee          %s-zCDP, and so (%s, %g)-DP, for all texts together\n"
                     : "  guarantee          none (with secret randomness: %s-zCDP, (%s, %g)-DP)\n",
                 rho, epsilon, c->delta);
}

static void add_unit(dpi_text *t, const dpi_augpe_claim *c) {
    const char *kind = dpi_record_kind_text(c->record_kind);
    const bool by_null = c->adjacency == DPI_ADJACENCY_REPLACE_BY_NULL;
    dpi_text_add(t, "  adjacency          %s: one unit %s\n", dpi_adjacency_name(c->adjacency),
                 by_null ? "replaced by nothing" : "more or less");
    if (c->max_per_unit > 0)
        dpi_text_add(t, "  unit               all records with one unit ID; one record = %s\n"
                        "  M, records a unit  %d\n", kind ? kind : "a record", c->max_per_unit);
    else
        dpi_text_add(t, "  unit               one record = %s\n", kind ? kind : "a record");
    dpi_text_add(t, by_null ? "  units              %" PRId64 "\n"
                            : "  units, about       %" PRId64 "\n", c->n_units);
}

dpi_status dpi_augpe_statement(const dpi_augpe_claim *c, char **text, dpi_error *err) {
    dpi_text t = {0};
    dpi_text_add(&t, "Privacy statement%s\n", dpi_augpe_is_private(c) ? "" : ": NOT PRIVATE");
    dpi_text_add(&t, "  model              %s%s\n", c->model_name,
                 c->remote ? ", which compares; a model elsewhere writes" : "");
    dpi_text_add(&t, "  method             augpe: units vote for candidates, with discrete "
                     "Gaussian noise\n");
    add_guarantee(&t, c);
    add_unit(&t, c);
    dpi_text_add(&t, "  accounting         zCDP of %d histograms, one after the other\n"
                     "  rho of a round     %.10g\n"
                     "  sigma, noise       %.10g votes (variance %" PRId64 " / 256 where a vote "
                     "counts %d)\n",
                 c->n_rounds, c->rho_round, sqrt((double)c->variance / 256) / DPI_VOTE_ONE,
                 c->variance, DPI_VOTE_ONE);
    dpi_text_add(&t, "  candidates         %d a round, of which %d stay (%s), threshold %g votes\n"
                     "  variations         %s, K = %d\n",
                 c->n_texts * c->n_candidates, c->n_texts, dpi_augpe_selection_name(c->selection),
                 c->threshold, dpi_augpe_variation_name(c->variation), c->n_lookahead);
    if (c->grammar[0])
        dpi_text_add(&t,
                     "  form of texts      a public grammar (%s) says which tokens may come; it "
                     "costs nothing\n",
                     c->grammar);
    dpi_claim_ledger_lines(&t, &c->ledger);
    dpi_text_add(&t, "  randomness         %s\n",
                 dpi_augpe_is_private(c) ? "getrandom(2), fresh for every count"
                                         : "--seed (insecure)");
    if (t.failed) {
        free(t.data);
        return dpi_no_memory(err, "the statement");
    }
    *text = t.data;
    return DPI_STATUS_OK;
}
