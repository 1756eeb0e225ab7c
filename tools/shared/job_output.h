/* job_output.h - what a job has written when it is over. The job keeps the hash of it
 * (docs/job.md), so that whoever asks the job to go on learns that all of its texts are there. */
#ifndef DPI_JOB_OUTPUT_H
#define DPI_JOB_OUTPUT_H

#include <nettle/sha2.h>

#include "dpinfer/journal.h"
#include "tools/shared/text_sink.h"

typedef struct job_output {
    struct sha256_ctx hash; /* of all bytes that are written; sha256_init, sha256_update */
} job_output;

/* Once all is written, and before it appears under its name: a process that is killed between the
 * two has told of no file that is not there. Once for each form. Where it cannot be kept nothing is
 * lost: texts are in the job. Ends the hash. */
void job_output_keep(job_output *o, dpi_journal *journal, text_form form);

/* Whether the regular file that is at `path` is what the job has written in this form when it was
 * over. */
bool job_output_is_there(const dpi_journal *journal, text_form form, const char *path);

#endif
