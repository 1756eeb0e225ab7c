/* clusters.h - the groups of a release with n_clusters, which are its labels. Internal.
 *
 *     dpi_groups_open(plan, &groups, err);
 *         dpi_groups_add(groups, text, n_bytes, err)     the public texts of dpi_groups_texts
 *     dpi_groups_find(groups, err);                      before a record is read
 *         dpi_groups_of_record(groups, &prompt, &group, err) */
#ifndef DPI_RELEASE_CLUSTERS_H
#define DPI_RELEASE_CLUSTERS_H

#include "pipeline/release/plan.h"

typedef struct dpi_groups dpi_groups;

/* The plan must outlive the groups. Errors: MEMORY; those of dpi_session_create. */
dpi_status dpi_groups_open(const dpi_plan *plan, dpi_groups **groups, dpi_error *err);
/* Wipes. NULL is allowed. */
void dpi_groups_free(dpi_groups *groups);

/* A release of its own, of public texts alone, which centroids are found from: it has no
 * records. */
void dpi_groups_texts(const dpi_plan *plan, dpi_release_options *options);
/* One of these texts, claim.cluster_texts at most. Errors: MEMORY, CANCELLED. */
dpi_status dpi_groups_add(dpi_groups *groups, const char *text, size_t n_bytes, dpi_error *err);
/* The centroids of all of them. Errors: NUMERIC, MEMORY; they follow from public data. */
dpi_status dpi_groups_find(dpi_groups *groups, dpi_error *err);

/* The group of a unit whose first record has that prompt; -1: it is null. Errors: MEMORY,
 * CANCELLED. */
dpi_status dpi_groups_of_record(dpi_groups *groups, const dpi_prompt *prompt, int32_t *group,
                                dpi_error *err);

#endif
