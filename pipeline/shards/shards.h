/* shards.h - the inside of a job, see dpinfer/shards.h. Internal. */
#ifndef DPI_SHARDS_SHARDS_H
#define DPI_SHARDS_SHARDS_H

#include <jansson.h>
#include <stdbool.h>

#include "dpinfer/shards.h"
#include "pipeline/shards/seal.h"

/* 2: shards keep a journal */
#define DPI_SHARDS_FORMAT 2

/* All of it but the key is public or keyed. Private memory. */
struct dpi_shards {
    uint8_t key[DPI_RELEASE_KEY_BYTES];
    char *folder;
    json_t *root; /* shards.json, of which the seal was checked */
    dpi_report *report;
    int32_t shard, n_shards; /* n_shards 0: not joined */
    char *shard_folder, *texts; /* from join on */
    const dpi_journal *journal; /* of the release that has begun; NULL: none */
    bool begun, is_over;
};

/* "shard-I-of-N"; the caller frees it with free. Errors: MEMORY. */
dpi_status dpi_shard_name(int32_t i, int32_t n, char **name, dpi_error *err);
/* The number of shards that the folder was begun with; 0: none has begun. Errors: IO, FORMAT. */
dpi_status dpi_shards_count(const char *folder, int32_t *n_shards, dpi_error *err);
/* An object from a file of the job, whose seal holds; *object is the caller's. Errors: IO, FORMAT,
 * MEMORY. */
dpi_status dpi_shards_load(const uint8_t *key, const char *folder, const char *name,
                           json_t **object, dpi_error *err);

#endif
