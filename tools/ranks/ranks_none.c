/* ranks_none.c - ranks.h in a program without MPI. */
#include <stdlib.h>

#include "tools/ranks/ranks.h"

/* Each process would draw the whole release: its cost once for each of them. */
int ranks_open(void) {
    const char *count = getenv("OMPI_COMM_WORLD_SIZE");
    if (!count || atoi(count) <= 1)
        return CLI_OK;
    return cli_fail(CLI_USAGE,
                    "this program was built without MPI (-DDPI_MPI=ON): under mpirun each of %s "
                    "processes would be a run of its own",
                    count);
}

void ranks_close(int code) { (void)code; }

int ranks_own(void) { return 0; }

int ranks_count(void) { return 1; }

const dpi_train_ranks *ranks_training(void) { return NULL; }

int32_t ranks_threads(void) { return 0; }

int ranks_join(const args *a, dpi_release_options *options) {
    (void)options;
    return a->v[OPT_SPREAD].given
               ? cli_fail(CLI_USAGE, "--spread needs mpirun, and a program built with -DDPI_MPI=ON")
               : CLI_OK;
}

int ranks_agree(const dpi_release *release, const dpi_report *report) {
    (void)release;
    (void)report;
    return CLI_OK;
}

int ranks_go(int code) { return code; }

int ranks_begun(const dpi_release *release, int code) {
    (void)release;
    return code;
}

dpi_status ranks_advance(dpi_release *release, dpi_release_event *event, int *code,
                         dpi_error *err) {
    (void)code;
    return dpi_release_advance(release, event, err);
}

int ranks_work(dpi_release *release) {
    (void)release;
    return CLI_OK;
}
