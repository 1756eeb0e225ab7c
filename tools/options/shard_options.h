/* shard_options.h - the job of a command line, and which shard of it a process is. */
#ifndef DPI_SHARD_OPTIONS_H
#define DPI_SHARD_OPTIONS_H

#include "dpinfer/shards.h"
#include "tools/options/options.h"

/* Opens the job of --job for a shard, which --shard names or the variables of a Slurm array, and
 * makes the options those of that shard. *job stays NULL without --job, and for commands that have
 * no
 * --shard. CLI_OK, or an exit code with a message. */
int shard_join(const args *a, dpi_release_options *options, dpi_shards **job);

/* --job keeps the run of this process alone (dpinfer resume): there is no shard. */
bool job_wanted(const args *a);

/* The exit code of an error of a job or a merge, with its message. */
int shard_fail(dpi_status status, const dpi_error *err);

#endif
