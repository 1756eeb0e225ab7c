/* cmd_plan.c - `dpinfer plan`: what a run would guarantee and need, before it reads a record. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/commands.h"
#include "tools/facts.h"
#include "tools/statement.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Bytes a second that all threads together read from memory, measured for 0.2 s; 0 if there
 * is no memory for it. */
static double read_bandwidth(void) {
    enum { N_WORDS = 1 << 24 }; /* 128 MB, more than caches hold on most machines */
    uint64_t *words = malloc(N_WORDS * sizeof *words);
    if (!words)
        return 0;
    memset(words, 1, N_WORDS * sizeof *words);
    uint64_t sum = 0;
    int32_t n_threads = dpi_process_threads(omp_get_max_threads());
    double bytes = 0, begin = now(), seconds;
    do {
#pragma omp parallel for reduction(+ : sum) schedule(static) num_threads(n_threads)
        for (int i = 0; i < N_WORDS; i++)
            sum += words[i];
        bytes += (double)N_WORDS * sizeof *words;
        seconds = now() - begin;
    } while (seconds < 0.2);
    volatile uint64_t keep = sum; /* the reads are not optimised away */
    (void)keep;
    free(words);
    return bytes / seconds;
}

/* The peak of a run: this process, which has opened the model as a run does, and what computing
 * adds. */
static int add_memory(facts *f, const job *j) {
    uint64_t session;
    int32_t n_tokens = job_max_tokens(j);
    dpi_error err;
    if (dpi_session_memory(j->model, &j->session, n_tokens, (int32_t)j->prompts.n_prefix, &session,
                           &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    int64_t n_prompt = n_tokens - j->sampler.n_tokens;
    uint64_t model = cli_memory("VmRSS"), opening = cli_memory("VmHWM");
    model = model ? model + dpi_model_unread_bytes(j->model, n_prompt * j->session.n_seq +
                                                                 j->sampler.n_tokens)
                  : (uint64_t)j->info.weight_bytes;
    uint64_t total = model + session > opening ? model + session : opening;
    facts_int(f, "n_ctx", "context", j->session.n_ctx);
    facts_int(f, "max_prompt_tokens", "longest prompt", n_prompt);
    facts_int(f, "public_prompt_tokens", "public prompt", (int64_t)j->prompts.n_public_tokens);
    facts_int(f, "shared_prompt_tokens", "shared beginning",
              j->plain ? 0 : (int64_t)j->prompts.n_prefix);
    facts_int(f, "rows_per_step", "rows per step", j->session.n_seq);
    facts_json(f, "weight_bytes", json_integer(j->info.weight_bytes));
    facts_json(f, "model_bytes", json_integer((json_int_t)model));
    facts_json(f, "session_bytes", json_integer((json_int_t)session));
    facts_json(f, "memory_bytes", json_integer((json_int_t)total));
    double mib = 1024 * 1024;
    facts_line(f, "memory", "%.1f MiB: program and model %.1f, caches and work space %.1f",
               (double)total / mib, (double)model / mib, (double)session / mib);
    return CLI_OK;
}

/* Every token reads every weight once, for all rows. */
static void add_time(facts *f, const job *j) {
    double bandwidth = read_bandwidth();
    if (bandwidth <= 0)
        return;
    double tokens = (double)j->n_texts * (double)j->sampler.n_tokens;
    double seconds = tokens * (double)j->info.weight_bytes / bandwidth;
    facts_real(f, "read_bytes_per_second", NULL, bandwidth);
    facts_real(f, "seconds_at_least", NULL, seconds);
    facts_line(f, "time", "at least %.3g s for %.0f tokens, at the %.1f GB/s of this machine",
               seconds, tokens, bandwidth / 1e9);
}

static int plan_main(const args *a) {
    job j;
    facts f;
    facts_init(&f);
    int code = job_prepare(a, a->v[OPT_QUIET].i, &j);
    if (code == CLI_OK) {
        statement_add(&f, &j);
        code = add_memory(&f, &j);
    }
    if (code == CLI_OK) {
        add_time(&f, &j);
        code = facts_print(&f, a->v[OPT_JSON].i, stdout);
    }
    facts_free(&f);
    job_free(&j);
    return code;
}

const command command_plan = {
    .name = "plan", .bit = CMD_PLAN, .arguments = "MODEL [REFS]", .takes_model = 1,
    .max_positional = 1, .run = plan_main,
    .summary = "what a run would guarantee and need",
    .details =
        "Takes the options of 'run' and shows the guarantee, the clip bound, the number of\n"
        "texts, memory and a lower bound of the time. Of REFS it only counts the records: the\n"
        "files of a folder are not opened. --records N stands for REFS. The options for\n"
        "output (-o, --report, --jsonl) are accepted and do nothing.\n",
};
