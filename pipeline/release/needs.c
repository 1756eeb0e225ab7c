/* needs.c - what a release needs: memory, and time (measure.c). */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/status.h"
#include "dpinfer/process.h"
#include "pipeline/release/release.h"

enum { DEFAULT_RECORD = 300 }; /* tokens: a page */

void dpi_release_plan_init(dpi_release_plan *plan) {
    *plan = (dpi_release_plan){.struct_size = sizeof *plan};
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Bytes a second that the threads read from memory, measured for 0.05 s; 0 if there
 * is no memory for it. */
static double measure_bandwidth(void) {
    enum { N_WORDS = 1 << 24 }; /* 128 MB, more than caches hold on most machines */
    uint64_t *words = malloc(N_WORDS * sizeof *words);
    if (!words)
        return 0;
    memset(words, 1, N_WORDS * sizeof *words);
    uint64_t sum = 0;
    const int32_t n_threads = dpi_process_threads(dpi_processors());
    double bytes = 0, begin = now(), seconds;
    do {
#pragma omp parallel for reduction(+ : sum) schedule(static) num_threads(n_threads)
        for (int i = 0; i < N_WORDS; i++)
            sum += words[i];
        bytes += (double)N_WORDS * sizeof *words;
        seconds = now() - begin;
    } while (seconds < 0.05);
    volatile uint64_t keep = sum; /* the reads are not optimised away */
    (void)keep;
    free(words);
    return bytes / seconds;
}

/* Each text has caches of its own, in which its own prompts share their beginning. */
dpi_status dpi_release_session_memory(const dpi_release *r, int32_t n_parallel, uint64_t *n_bytes,
                                      dpi_error *err) {
    dpi_session_options o = r->options.session;
    int32_t n_tokens = r->prompts_info.n_public;
    uint64_t all, one, shared;
    if (r->claim.record_in_prompt && r->prompts_info.n_limit > n_tokens)
        n_tokens = r->prompts_info.n_limit;
    n_tokens += r->claim.method.n_tokens;
    DPI_TRY(dpi_session_memory(r->options.model, &o, n_tokens, 0, &one, err));
    DPI_TRY(dpi_session_memory(r->options.model, &o, n_tokens, r->prompts_info.n_prefix, &shared,
                               err));
    o.n_seq *= n_parallel;
    DPI_TRY(dpi_session_memory(r->options.model, &o, n_tokens, 0, &all, err));
    /* A sampler has 40 bytes for each token; the first one is there already. */
    *n_bytes = all - (uint64_t)n_parallel * (one - shared) +
               (uint64_t)(n_parallel - 1) * 40 * (uint64_t)r->info.n_vocab;
    return DPI_STATUS_OK;
}

/* By content the prompts of all records are kept from the begin on: so many as the batches have
 * slots, as the number of records is secret. */
static uint64_t kept_memory(const dpi_release *r, int32_t n_prompt_most) {
    const dpi_sampler_options *m = &r->claim.method;
    const bool by_content = m->adjacency == DPI_ADJACENCY_ADD_REMOVE && m->subsample == 0;
    if (m->method == DPI_METHOD_PLAIN || !by_content)
        return 0;
    return (uint64_t)r->claim.n_texts * (uint64_t)(r->options.session.n_seq - 1) *
           ((uint64_t)n_prompt_most * sizeof(int32_t) + sizeof(dpi_prompt));
}

/* The peak: this process, which has opened the model, and what computing adds. */
static dpi_status plan_memory(const dpi_release *r, dpi_release_plan *plan, dpi_error *err) {
    const dpi_sampler_options *m = &r->claim.method;
    const dpi_session_options *session = &r->options.session;
    uint64_t session_bytes;
    plan->n_prompt_most = r->prompts_info.n_public;
    if (r->claim.record_in_prompt && r->prompts_info.n_limit > plan->n_prompt_most)
        plan->n_prompt_most = r->prompts_info.n_limit;
    DPI_TRY(dpi_release_session_memory(r, r->options.n_parallel, &session_bytes, err));
    const int64_t n_tokens = (int64_t)plan->n_prompt_most * session->n_seq + m->n_tokens;
    uint64_t model, opening;
    dpi_process_memory(&model, &opening);
    model = model ? model + dpi_model_unread_bytes(r->options.model, n_tokens)
                  : (uint64_t)r->info.weight_bytes;
    plan->weight_bytes = r->info.weight_bytes;
    plan->model_bytes = (int64_t)model;
    session_bytes += kept_memory(r, plan->n_prompt_most);
    plan->session_bytes = (int64_t)session_bytes;
    plan->memory_bytes =
        (int64_t)(model + session_bytes > opening ? model + session_bytes : opening);
    return DPI_STATUS_OK;
}

/* Every step reads every weight once, for all rows. */
static dpi_status plan_time(const dpi_release *r, dpi_release_plan *plan, dpi_error *err) {
    const double steps = (double)r->claim.n_texts * (double)r->claim.method.n_tokens /
                         (double)r->options.n_parallel;
    const dpi_prompts_info *info = &r->prompts_info;
    const int32_t usual = info->n_frame + plan->n_record_usual;
    plan->n_prompt_usual = usual < plan->n_prompt_most ? usual : plan->n_prompt_most;
    plan->read_bytes_per_second = measure_bandwidth();
    if (plan->read_bytes_per_second > 0)
        plan->seconds_at_least =
            steps * (double)r->info.weight_bytes / plan->read_bytes_per_second;
    return dpi_release_measure(r, plan, err);
}

static int32_t usual_record(const dpi_release *r, const dpi_release_plan *plan) {
    const int32_t most = r->options.prompts.max_reference_tokens;
    const int32_t usual = plan->n_record_usual > 0 ? plan->n_record_usual : DEFAULT_RECORD;
    return most > 0 && (usual > most || plan->n_record_usual == 0) ? most : usual;
}

dpi_status dpi_release_plan_get(const dpi_release *r, dpi_release_plan *plan, dpi_error *err) {
    if (plan->struct_size != sizeof *plan)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_release_plan: struct_size is %zu, must be %zu",
                        plan->struct_size, sizeof *plan);
    const bool plain = r->claim.method.method == DPI_METHOD_PLAIN;
    dpi_release_plan made = {.struct_size = sizeof made,
                             .n_ctx = r->options.session.n_ctx,
                             .n_prompt_public = r->prompts_info.n_public,
                             .n_prompt_shared = plain ? 0 : r->prompts_info.n_prefix,
                             .n_parallel = r->options.n_parallel,
                             .rows_per_step = r->options.session.n_seq * r->options.n_parallel,
                             .chat = r->prompts_info.chat};
    const int32_t most = r->claim.method.max_per_unit > 0 ? r->claim.method.max_per_unit : 1;
    made.n_record_usual = usual_record(r, plan);
    made.n_unit_usual = plan->n_unit_usual > 0 && plan->n_unit_usual < most ? plan->n_unit_usual
                                                                            : most;
    DPI_TRY(plan_memory(r, &made, err));
    DPI_TRY(plan_time(r, &made, err));
    *plan = made;
    return DPI_STATUS_OK;
}
