/* needs.c - what a release needs: memory, and time (measure.c). */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/methods/method.h"
#include "dpinfer/process.h"
#include "pipeline/release/plan.h"

enum { DEFAULT_RECORD = 300 }; /* tokens: a page */

DPI_STRUCT_DEFAULTS(dpi_release_plan, 0)

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
    double bytes = 0, begin = dpi_seconds(), seconds;
    do {
#pragma omp parallel for reduction(+ : sum) schedule(static) num_threads(n_threads)
        for (int i = 0; i < N_WORDS; i++)
            sum += words[i];
        bytes += (double)N_WORDS * sizeof *words;
        seconds = dpi_seconds() - begin;
    } while (seconds < 0.05);
    volatile uint64_t keep = sum; /* the reads are not optimised away */
    (void)keep;
    free(words);
    return bytes / seconds;
}

/* Private prompts of one length, and how many of them a text has beside the public one. */
typedef struct prompts_held {
    int32_t n_tokens, n_rows; /* n_rows: with the public prompt */
} prompts_held;

static prompts_held most_held(const dpi_plan *plan) {
    return (prompts_held){plan->claim.record_in_prompt ? plan->prompts_info.n_limit
                                                       : plan->prompts_info.n_public,
                          dpi_plan_rows(plan, dpi_sampler_per_unit(&plan->claim.method))};
}

/* Caches of n_parallel texts: each has its own, in which its prompts share their beginning. The
 * public prompt may be the longest. */
static dpi_status cache_memory(const dpi_plan *plan, int32_t n_parallel, prompts_held held,
                               uint64_t *n_bytes, dpi_error *err) {
    const dpi_prompts_info *info = &plan->prompts_info;
    const int32_t n_drawn = plan->claim.method.n_tokens;
    const int32_t n_public = n_drawn + info->n_public, n_private = n_drawn + held.n_tokens;
    dpi_session_options o = plan->options.session;
    uint64_t none, one, longer = 0, all;
    o.n_seq = 1;
    DPI_TRY(dpi_session_memory(plan->options.model, &o, n_private, 0, &one, err));
    if (n_public > n_private)
        DPI_TRY(dpi_session_memory(plan->options.model, &o, n_public, 0, &longer, err));
    o.n_seq = held.n_rows;
    DPI_TRY(dpi_session_memory(plan->options.model, &o, 0, 0, &none, err));
    DPI_TRY(dpi_session_memory(plan->options.model, &o, n_private, info->n_prefix, &all, err));
    *n_bytes = (uint64_t)n_parallel * (all - none + (longer > one ? longer - one : 0));
    return DPI_STATUS_OK;
}

static dpi_status held_memory(const dpi_plan *plan, int32_t n_parallel, prompts_held held,
                              uint64_t *n_bytes, dpi_error *err) {
    dpi_session_options o = plan->options.session;
    uint64_t fixed;
    o.n_seq *= n_parallel;
    DPI_TRY(dpi_session_memory(plan->options.model, &o, 0, 0, &fixed, err));
    DPI_TRY(cache_memory(plan, n_parallel, held, n_bytes, err));
    /* A sampler has 40 bytes for each token. */
    *n_bytes += fixed + (uint64_t)n_parallel * 40 * (uint64_t)plan->info.n_vocab;
    return DPI_STATUS_OK;
}

dpi_status dpi_plan_session_memory(const dpi_plan *plan, int32_t n_parallel, uint64_t *n_bytes,
                                   dpi_error *err) {
    return held_memory(plan, n_parallel, most_held(plan), n_bytes, err);
}

/* By content the prompts of all records are kept from the begin on: so many as the batches have
 * slots, as the number of records is secret. Where there are rounds their texts are, which take no
 * more, but for records that are cut to fit. */
static uint64_t kept_memory(const dpi_plan *plan, int32_t n_prompt_most) {
    const dpi_sampler_options *m = &plan->claim.method;
    const bool by_content = m->adjacency == DPI_ADJACENCY_ADD_REMOVE && dpi_method_joining(m) == 0;
    if (dpi_plan_is_plain(plan) || !by_content)
        return 0;
    return (uint64_t)plan->claim.n_texts * (uint64_t)(plan->options.session.n_seq - 1) *
           ((uint64_t)n_prompt_most * sizeof(int32_t) + sizeof(dpi_kept));
}

/* The peak: this process, which has opened the model, and what computing adds. */
static dpi_status peak_memory(const dpi_plan *plan, prompts_held held, dpi_release_plan *needs,
                              int64_t *peak, dpi_error *err) {
    uint64_t session_bytes, model, opening;
    DPI_TRY(held_memory(plan, plan->options.n_parallel, held, &session_bytes, err));
    const int64_t n_tokens =
        (int64_t)held.n_tokens * held.n_rows + plan->claim.method.n_tokens;
    dpi_process_memory(&model, &opening);
    model = model ? model + dpi_model_unread_bytes(plan->options.model, n_tokens)
                  : (uint64_t)plan->info.weight_bytes;
    session_bytes += kept_memory(plan, held.n_tokens);
    needs->model_bytes = (int64_t)model;
    needs->session_bytes = (int64_t)session_bytes;
    *peak = (int64_t)(model + session_bytes > opening ? model + session_bytes : opening);
    return DPI_STATUS_OK;
}

/* With usual prompts, and the most: what is left in needs besides is that of the most. */
static dpi_status plan_memory(const dpi_plan *plan, dpi_release_plan *needs, dpi_error *err) {
    const prompts_held most = most_held(plan);
    const dpi_prompts_info *info = &plan->prompts_info;
    const int32_t usual = info->n_frame + needs->n_record_usual;
    needs->n_prompt_most = most.n_tokens > info->n_public ? most.n_tokens : info->n_public;
    needs->n_prompt_usual = usual < most.n_tokens ? usual : most.n_tokens;
    const prompts_held held = {needs->n_prompt_usual, dpi_plan_rows(plan, needs->n_unit_usual)};
    needs->weight_bytes = plan->info.weight_bytes;
    DPI_TRY(peak_memory(plan, held, needs, &needs->memory_usual_bytes, err));
    return peak_memory(plan, most, needs, &needs->memory_bytes, err);
}

/* Every step reads every weight once, for all rows. */
static dpi_status plan_time(const dpi_plan *plan, dpi_release_plan *needs, dpi_error *err) {
    const double steps = (double)plan->claim.n_texts * (double)needs->n_text_usual /
                         (double)plan->options.n_parallel;
    needs->read_bytes_per_second = measure_bandwidth();
    if (needs->read_bytes_per_second > 0)
        needs->seconds_at_least =
            steps * (double)plan->info.weight_bytes / needs->read_bytes_per_second;
    return dpi_plan_measure(plan, needs, err);
}

/* Private texts may be longer than public ones: what they may need at most is said, too. */
static int32_t usual_text(const dpi_plan *plan) {
    dpi_public_texts told;
    dpi_pace_texts_tell(plan->public_texts, &told);
    return told.n_texts > 0 ? told.n_mean : plan->claim.method.n_tokens;
}

static int32_t usual_record(const dpi_plan *plan, const dpi_release_plan *needs) {
    const int32_t most = plan->options.prompts.max_reference_tokens;
    const int32_t usual = needs->n_record_usual > 0 ? needs->n_record_usual : DEFAULT_RECORD;
    return most > 0 && (usual > most || needs->n_record_usual == 0) ? most : usual;
}

dpi_status dpi_plan_needs(const dpi_plan *plan, dpi_release_plan *result, dpi_error *err) {
    DPI_COPY_STRUCT(dpi_release_plan, needs, result, err);
    const bool plain = dpi_plan_is_plain(plan);
    dpi_release_plan made = {.n_ctx = plan->options.session.n_ctx,
                             .n_prompt_public = plan->prompts_info.n_public,
                             .n_prompt_shared = plain ? 0 : plan->prompts_info.n_prefix,
                             .n_parallel = plan->options.n_parallel,
                             .rows_per_step =
                                 most_held(plan).n_rows * plan->options.n_parallel,
                             .chat = plan->prompts_info.chat};
    const int32_t most = dpi_sampler_per_unit(&plan->claim.method);
    made.n_text_usual = usual_text(plan);
    made.n_record_usual = usual_record(plan, &needs);
    made.n_unit_usual =
        needs.n_unit_usual > 0 && needs.n_unit_usual < most ? needs.n_unit_usual : most;
    DPI_TRY(plan_memory(plan, &made, err));
    DPI_TRY(plan_time(plan, &made, err));
    dpi_struct_give(result, &made, sizeof made);
    return DPI_STATUS_OK;
}
