/* ranks.h - the processes ("ranks") of one mpirun that draw one release. Without MPI in the build,
 * or outside of mpirun, there is one rank, and nothing here does anything.
 *
 * Texts are handed out to ranks as they become free; with --spread all ranks draw the same text,
 * and each has some of its references. A training adds the sums of all ranks (ranks_training). Rank
 * 0 has the ledger, the output and the reports, and alone tells of the run. The others print errors
 * and nothing else.
 *
 *     ranks_open  ->  ranks_join (options)  ->  ranks_agree  ->  charge of rank 0, ranks_go
 *         ->  begin of the release, ranks_begun  ->  rank 0: ranks_advance; others: ranks_work
 *         ->  ranks_close
 *
 * Trusted: the ranks, and the network between them (dp/PRIVACY.md section 18). */
#ifndef DPI_RANKS_H
#define DPI_RANKS_H

#include "dpinfer/shards.h"
#include "dpinfer/train.h"
#include "tools/options/options.h"

/* CLI_OK, or an exit code with a message: the program has no MPI, and was started by mpirun. */
int ranks_open(void);
/* Ends the program if another rank is left waiting: then it does not return. */
void ranks_close(int code);

int ranks_own(void);
int ranks_count(void);

/* For a training: how ranks add what they have; NULL: there is one rank. Static. */
const dpi_train_ranks *ranks_training(void);
/* Threads of a rank, where none are given; 0: all processors. */
int32_t ranks_threads(void);

/* Makes the options those of this rank, before the release is opened. With options->journal, which
 * rank 0 alone has, all ranks keep their tokens in it: rank 0 writes them. CLI_OK or CLI_USAGE. */
int ranks_join(const args *a, dpi_release_options *options);
/* Whether all ranks have the same claim, prompts and, with a report, model. */
int ranks_agree(const dpi_release *release, const dpi_report *report);
/* The exit code of rank 0 so far, on all ranks. */
int ranks_go(int code);
/* Whether all ranks have begun, and have the same records: CLI_OK, or what one of them has failed
 * with. */
int ranks_begun(const dpi_release *release, int code);

/* As dpi_release_advance, for the texts of all ranks: on rank 0. A text of another rank comes as
 * one END with all that it has. *code: the exit code of a rank that has failed, which has said why;
 * the status is then STATE. */
dpi_status ranks_advance(dpi_release *release, dpi_release_event *event, int *code, dpi_error *err);
/* Draws the texts that this rank is given. Its exit code. */
int ranks_work(dpi_release *release);

#endif
