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
#include "base/text.h"
#include "dpinfer/memory.h"
#include "pipeline/centroids.h"
#include "pipeline/release/release.h"

/* Public texts: so many a group, but of the rows that a run computes at most one in SHARE_OF_ROWS,
 * as far as MIN_PER_GROUP allows. */
enum { PER_GROUP = 16, MIN_PER_GROUP = 4, SHARE_OF_ROWS = 8 };

static const uint64_t SEED = 0x636c7573746572; /* any constant: the texts are public */

struct dpi_groups {
    dpi_session *session;     /* one sequence; PRIVATE once a record was read */
    dpi_centroids *centroids; /* public; NULL: no public text has a feature: there is one group */
    float *features;          /* [n_embd] of a record; PRIVATE */
    size_t n_features;
};

int32_t dpi_release_cluster_texts(const dpi_claim *c) {
    const int32_t per_unit = c->method.max_per_unit > 0 ? c->method.max_per_unit : 1;
    const int64_t n_seq = (int64_t)c->method.denominator * per_unit + 1;
    const int64_t n = c->n_texts * n_seq / SHARE_OF_ROWS;
    const int64_t least = (int64_t)MIN_PER_GROUP * c->n_labels;
    const int64_t most = (int64_t)PER_GROUP * c->n_labels;
    return (int32_t)(n < least ? least : n < most ? n : most);
}

/* ---- Features -------------------------------------------------------------------------------- */

static dpi_status features_of(dpi_groups *g, const int32_t *tokens, size_t n_tokens,
                              float *features, dpi_error *err) {
    dpi_session_reset(g->session, 0);
    DPI_TRY(dpi_session_prefill(g->session, 0, tokens, n_tokens, NULL, err));
    return dpi_session_features(g->session, 0, features, err);
}

static dpi_status open_session(const dpi_release *r, dpi_groups *g, dpi_error *err) {
    dpi_session_options o = r->options.session;
    o.n_seq = 1;
    g->n_features = (size_t)r->info.n_embd;
    g->features = dpi_private_malloc(g->n_features * sizeof *g->features);
    if (!g->features)
        return dpi_no_memory(err, "the groups of records");
    return dpi_session_create(r->options.model, &o, &g->session, err);
}

/* ---- Public texts ---------------------------------------------------------------------------- */

/* The features of public texts, of which `n` have some. */
typedef struct points {
    float *at; /* [most, n_features] */
    int32_t n;
} points;

static dpi_status add_point(const dpi_release *r, dpi_groups *g, const dpi_text *text, points *p,
                            dpi_error *err) {
    int32_t *tokens = NULL;
    size_t n_tokens = 0;
    if (text->failed)
        return dpi_no_memory(err, "public texts");
    DPI_TRY(dpi_prompts_encode(dpi_release_prompts(r, -1), text->data ? text->data : "",
                               text->n_bytes, &tokens, &n_tokens, err));
    if (!tokens) /* as a record without a text it has no group */
        return DPI_STATUS_OK;
    const dpi_status status =
        features_of(g, tokens, n_tokens, p->at + (size_t)p->n * g->n_features, err);
    p->n += status == DPI_STATUS_OK;
    dpi_private_free(tokens);
    return status;
}

static dpi_status read_texts(const dpi_release *r, dpi_groups *g, dpi_release *plain, points *p,
                             dpi_error *err) {
    dpi_text text = {0};
    dpi_status status = DPI_STATUS_OK;
    for (dpi_release_event e = {.type = DPI_EVENT_PROMPT};
         status == DPI_STATUS_OK && e.type != DPI_EVENT_NONE;) {
        status = dpi_release_is_cancelled(r)
                     ? dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while public texts are drawn")
                     : dpi_release_advance(plain, &e, err);
        if (status == DPI_STATUS_OK && (e.type == DPI_EVENT_TOKEN || e.type == DPI_EVENT_END))
            dpi_text_put(&text, e.text, e.n_bytes);
        if (status == DPI_STATUS_OK && e.type == DPI_EVENT_END) {
            status = add_point(r, g, &text, p, err);
            text.n_bytes = 0;
        }
    }
    free(text.data);
    return status;
}

/* A release of its own, of public texts alone: it has no records. */
static dpi_status draw_texts(const dpi_release *r, dpi_groups *g, points *p, dpi_error *err) {
    dpi_release_options o;
    dpi_release *plain;
    dpi_release_options_init(&o);
    o.model = r->options.model;
    o.n_texts = r->claim.cluster_texts;
    o.n_tokens = r->options.n_tokens;
    o.top_k = r->claim.method.top_k;
    o.session = r->options.session;
    o.prompts = r->options.prompts;
    o.seeded = 1;
    o.seed = SEED;
    o.method.method = DPI_METHOD_PLAIN;
    o.method.tau = r->claim.method.tau;
    DPI_TRY(dpi_release_open(&o, &plain, err));
    const dpi_status status = read_texts(r, g, plain, p, err);
    dpi_release_free(plain);
    return status;
}

static dpi_status find_centroids(const dpi_release *r, dpi_groups *g, dpi_error *err) {
    points p = {.at = dpi_calloc((size_t)r->claim.cluster_texts * g->n_features, sizeof *p.at)};
    dpi_status status = p.at ? draw_texts(r, g, &p, err) : dpi_no_memory(err, "public texts");
    const int32_t n = p.n < r->labels.n ? p.n : r->labels.n;
    if (status == DPI_STATUS_OK && n > 0)
        status = dpi_centroids_make(p.at, p.n, (int32_t)g->n_features, n, &g->centroids, err);
    free(p.at);
    return status;
}

dpi_status dpi_groups_find(const dpi_release *r, dpi_groups **groups, dpi_error *err) {
    dpi_groups *g = dpi_private_malloc(sizeof *g);
    if (!g)
        return dpi_no_memory(err, "the groups of records");
    *g = (dpi_groups){0};
    dpi_status status = open_session(r, g, err);
    if (status == DPI_STATUS_OK)
        status = find_centroids(r, g, err);
    if (status == DPI_STATUS_OK)
        *groups = g;
    else
        dpi_groups_free(g);
    return status;
}

void dpi_groups_free(dpi_groups *g) {
    if (!g)
        return;
    dpi_session_free(g->session);
    dpi_centroids_free(g->centroids);
    dpi_private_free(g->features);
    dpi_private_free(g);
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
