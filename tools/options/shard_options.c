/* shard_options.c - see shard_options.h. */
#include "tools/options/shard_options.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct shard {
    int i, n;
} shard;

int shard_fail(dpi_status status, const dpi_error *err) {
    return cli_fail_option(status == DPI_STATUS_IO || status == DPI_STATUS_MEMORY ||
                                   status == DPI_STATUS_CANCELLED || status == DPI_STATUS_ENTROPY
                               ? CLI_FAILED
                               : CLI_USAGE,
                           err);
}

static int read_option(const char *text, shard *s) {
    int end = 0;
    if (sscanf(text, "%9d/%9d%n", &s->i, &s->n, &end) == 2 && text[end] == '\0' && s->i >= 0 &&
        s->i < s->n)
        return CLI_OK;
    return cli_fail(CLI_USAGE, "--shard: found '%s', allowed i/n with 0 <= i < n", text);
}

/* A number that Slurm has set, or `missing`. */
static long slurm(const char *name, long missing) {
    const char *text = getenv(name);
    char *end;
    const long value = text ? strtol(text, &end, 10) : 0;
    return text && *text && !*end ? value : missing;
}

/* The tasks of an array are numbered from its smallest ID in equal steps: 0-7, 1-8, 0-14:2. */
static int read_slurm(shard *s) {
    const long id = slurm("SLURM_ARRAY_TASK_ID", -1), n = slurm("SLURM_ARRAY_TASK_COUNT", -1);
    const long min = slurm("SLURM_ARRAY_TASK_MIN", 0), step = slurm("SLURM_ARRAY_TASK_STEP", 1);
    const long max = slurm("SLURM_ARRAY_TASK_MAX", min + step * (n - 1));
    if (id < 0 || n < 1)
        return cli_fail(CLI_USAGE, "--job needs --shard i/n, or an array of Slurm "
                                   "(SLURM_ARRAY_TASK_ID, SLURM_ARRAY_TASK_COUNT)");
    if (step < 1 || max - min != step * (n - 1) || id < min || id > max || (id - min) % step != 0 ||
        n > 1 << 30)
        return cli_fail(CLI_USAGE,
                        "SLURM_ARRAY_TASK_ID %ld is not one of %ld tasks in equal steps from %ld "
                        "to %ld: give --shard i/n", id, n, min, max);
    *s = (shard){(int)((id - min) / step), (int)n};
    return CLI_OK;
}

/* What belongs to the whole job. */
static int check_options(const args *a) {
    static const option_id of_merge[] = {OPT_OUTPUT, OPT_JSONL, OPT_REPORT, OPT_OVERWRITE,
                                         OPT_META, OPT_SIGN};
    for (size_t i = 0; i < sizeof of_merge / sizeof *of_merge; i++)
        if (a->v[of_merge[i]].given)
            return cli_fail(CLI_USAGE, "--%s is not allowed with --shard: the texts are put "
                                       "together by 'dpinfer merge'", option_name(of_merge[i]));
    if (a->v[OPT_LEDGER].given)
        return cli_fail(CLI_USAGE, "--ledger is not allowed with --shard: 'dpinfer plan --job' has "
                                   "charged the job");
    return CLI_OK;
}

bool job_wanted(const args *a) {
    return a->journal || ((a->command->bit & CMD_RUN) && a->v[OPT_JOB].given &&
                          !a->v[OPT_SHARD].given && !getenv("SLURM_ARRAY_TASK_ID"));
}

int shard_join(const args *a, dpi_release_options *options, dpi_shards **job) {
    shard s;
    dpi_error err;
    if (!(a->command->bit & CMD_RUN) || (!a->v[OPT_JOB].given && !a->v[OPT_SHARD].given) ||
        job_wanted(a))
        return CLI_OK;
    if (!a->v[OPT_JOB].given)
        return cli_fail(CLI_USAGE, "--shard needs --job DIR, which 'dpinfer plan --job DIR' makes");
    int code = check_options(a);
    if (code == CLI_OK)
        code = a->v[OPT_SHARD].given ? read_option(a->v[OPT_SHARD].s, &s) : read_slurm(&s);
    if (code != CLI_OK)
        return code;
    dpi_status status = dpi_shards_open(a->v[OPT_JOB].s, job, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_shards_join(*job, s.i, s.n, options, &err);
    return status == DPI_STATUS_OK ? CLI_OK : shard_fail(status, &err);
}
