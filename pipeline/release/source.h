/* source.h - whose words a text is written from: records, units and labels, and which of them are
 * in which batch, in which slot. All of it is private. Internal.
 *
 *     dpi_source_init(source, plan);
 *         dpi_source_set_payers(source, pays)                 where each unit pays for itself
 *     dpi_source_open(source, books, groups, err);            once it is paid for
 *         dpi_source_load(source, text, prompts, &slots, err), dpi_source_drop */
#ifndef DPI_RELEASE_SOURCE_H
#define DPI_RELEASE_SOURCE_H

#include "pipeline/partition.h"
#include "pipeline/release/books.h"
#include "pipeline/release/clusters.h"
#include "pipeline/release/keyed.h"

typedef struct dpi_source {
    const dpi_plan *plan;
    const dpi_books *books; /* from open on: what was drawn for records stays the same in a job */
    const dpi_records *records; /* those of the options; NULL: none */
    dpi_keyed_bits keyed;       /* with options.key: what batches follow from */
    uint8_t *pays; /* [units] with scope UNIT: 1: the unit has paid; NULL: all take part */

    /* From open on. */
    dpi_label_list labels; /* those of the plan; their numbers of texts are its own */
    dpi_partition *partition;
    int32_t *group_of; /* [units] with n_clusters, else NULL: their labels */
    dpi_kept *kept;    /* [units, max_per_unit] by content: records that were read; else NULL */
    size_t n_kept;
    size_t n_slots; /* prompts of references: with max_per_unit so many for each unit */
    int64_t n_null;
    uint64_t bits; /* seeded: the state of the random bits that no text has */
} dpi_source;

/* The prompts of a batch. */
typedef struct dpi_slots {
    int32_t **tokens; /* [n_slots] private memory; NULL: null */
    size_t *n_tokens; /* [n_slots] */
} dpi_slots;

/* The plan must outlive the source. */
void dpi_source_init(dpi_source *source, const dpi_plan *plan);
/* pays [units] is the source's from now on. */
void dpi_source_set_payers(dpi_source *source, uint8_t *pays);
/* Records to batches. With n_clusters the groups are needed until it returns; else NULL. Errors: as
 * dpi_release_begin. */
dpi_status dpi_source_open(dpi_source *source, const dpi_books *books, dpi_groups *groups,
                           dpi_error *err);
/* Wipes. */
void dpi_source_free(dpi_source *source);

/* Slots of the sampler: units. */
int32_t dpi_source_n_ref(const dpi_source *source);
/* Whether a unit may be read: with scope UNIT only if it has paid. */
bool dpi_source_pays(const dpi_source *source, size_t unit);
/* The label of a text; -1: there are none. */
int32_t dpi_source_label(const dpi_source *source, int32_t text);

/* The private prompts of a text, as `prompts` makes them (NULL: those of the plan), into slots that
 * are null. Errors: IO, MEMORY, FORMAT, CANCELLED. */
dpi_status dpi_source_load(dpi_source *source, int32_t text, const dpi_prompts *prompts,
                           dpi_slots *slots, dpi_error *err);
/* Wipes them. */
void dpi_source_drop(const dpi_source *source, dpi_slots *slots);

#endif
