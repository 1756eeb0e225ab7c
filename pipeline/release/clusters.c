/* clusters.c - groups of similar records: the label of a unit is the public centroid that its
 * first record is nearest to. dp/PRIVACY.md section 22.
 *
 * The centroids come from texts that the model draws from the public prompt alone, before a record
 * is read. A text is looked at as a record is: in its place in the private prompt, by the last
 * hidden state after it. So the group of a unit is a function of its first record and of public
 * data. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/centroids.h"
#include "pipeline/release/clusters.h"

static const uint64_t SEED = 0x636c7573746572; /* any constant: the texts are public */

struct dpi_groups {
    const dpi_plan *plan;
    float *points;            /* [cluster_texts, n_embd] of public texts, until dpi_groups_find */
    int32_t n_points;         /* that have features */
    dpi_session *session;     /* one sequence; PRIVATE once a record was read */
    dpi_centroids *centroids; /* public; NULL: no public text has a feature: there is one group */
    float *features;          /* [n_embd] of a record; PRIVATE */
    size_t n_features;
};

/* ---- Features -------------------------------------------------------------------------------- */

static dpi_status features_of(dpi_groups *g, const int32_t *tokens, size_t n_tokens,
                              float *features, dpi_error *err) {
    dpi_session_reset(g->session, 0);
    DPI_TRY(dpi_session_prefill(g->session, 0, tokens, n_tokens, NULL, err));
    return dpi_session_features(g->session, 0, features, err);
}

static dpi_status open_all(dpi_groups *g, dpi_error *err) {
    dpi_session_options o = g->plan->options.session;
    o.n_seq = 1;
    g->n_features = (size_t)g->plan->info.n_embd;
    g->features = dpi_private_malloc(g->n_features * sizeof *g->features);
    g->points = dpi_calloc((size_t)g->plan->claim.cluster_texts * g->n_features, sizeof *g->points);
    if (!g->features || !g->points)
        return dpi_no_memory(err, "the groups of records");
    return dpi_session_create(g->plan->options.model, &o, &g->session, err);
}

dpi_status dpi_groups_open(const dpi_plan *plan, dpi_groups **groups, dpi_error *err) {
    dpi_groups *g = dpi_private_malloc(sizeof *g);
    if (!g)
        return dpi_no_memory(err, "the groups of records");
    *g = (dpi_groups){.plan = plan};
    const dpi_status status = open_all(g, err);
    if (status == DPI_STATUS_OK)
        *groups = g;
    else
        dpi_groups_free(g);
    return status;
}

void dpi_groups_free(dpi_groups *g) {
    if (!g)
        return;
    free(g->points);
    dpi_session_free(g->session);
    dpi_centroids_free(g->centroids);
    dpi_private_free(g->features);
    dpi_private_free(g);
}

/* ---- Public texts ---------------------------------------------------------------------------- */

void dpi_groups_texts(const dpi_plan *plan, dpi_release_options *o) {
    dpi_release_options_init(o);
    o->model = plan->options.model;
    o->n_texts = plan->claim.cluster_texts;
    o->n_tokens = plan->options.n_tokens;
    o->top_k = plan->claim.method.top_k;
    o->session = plan->options.session;
    o->prompts = plan->options.prompts;
    o->wording = plan->options.wording;
    o->seeded = 1;
    o->seed = SEED;
    o->method.method = DPI_METHOD_PLAIN;
    o->method.tau = plan->claim.method.tau;
}

dpi_status dpi_groups_add(dpi_groups *g, const char *text, size_t n_bytes, dpi_error *err) {
    int32_t *tokens = NULL;
    size_t n_tokens = 0;
    DPI_TRY(
        dpi_prompts_encode(dpi_plan_prompts(g->plan, -1), text, n_bytes, &tokens, &n_tokens, err));
    if (!tokens) /* as a record without a text it has no group */
        return DPI_STATUS_OK;
    float *point = g->points + (size_t)g->n_points * g->n_features;
    const dpi_status status = features_of(g, tokens, n_tokens, point, err);
    g->n_points += status == DPI_STATUS_OK;
    dpi_private_free(tokens);
    return status;
}

dpi_status dpi_groups_find(dpi_groups *g, dpi_error *err) {
    const int32_t n = g->n_points < g->plan->labels.n ? g->n_points : g->plan->labels.n;
    if (n > 0)
        DPI_TRY(dpi_centroids_make(g->points, g->n_points, (int32_t)g->n_features, n, &g->centroids,
                                   err));
    free(g->points);
    g->points = NULL;
    return DPI_STATUS_OK;
}

/* ---- A record -------------------------------------------------------------------------------- */

dpi_status dpi_groups_of_record(dpi_groups *g, const dpi_prompt *prompt, int32_t *group,
                                dpi_error *err) {
    *group = -1;
    if (!prompt->tokens)
        return DPI_STATUS_OK;
    DPI_TRY(features_of(g, prompt->tokens, prompt->n_tokens, g->features, err));
    *group = g->centroids ? dpi_centroids_nearest(g->centroids, g->features) : 0;
    return DPI_STATUS_OK;
}
