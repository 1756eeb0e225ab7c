/* job.c - see job.h. Structs are filled with a pattern first, so that what the library leaves is
 * seen, and memory with it lies behind them. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#ifdef DPI_OLDER
#include "dpinfer.abi2"
#define JOB older_job
#else
#include "dpinfer.h"
#include "dpinfer/augpe.h"
#include "dpinfer/bench.h"
#include "dpinfer/counts.h"
#include "dpinfer/extract.h"
#include "dpinfer/finetune.h"
#include "dpinfer/gaussian.h"
#include "dpinfer/perturb.h"
#include "dpinfer/release.h"
#include "dpinfer/statistic.h"
#include "dpinfer/train.h"
#define JOB present_job
#endif

enum { BEHIND = 64, PATTERN = 0x5a };

/* Declares a struct with its defaults, NAME, and what is behind it. */
#define HAVE(type, name)                              \
    struct {                                          \
        type it;                                      \
        unsigned char behind[BEHIND];                 \
    } name##_all;                                     \
    type *const name = &name##_all.it;                \
    memset(&name##_all, PATTERN, sizeof name##_all);  \
    type##_init_size(name, sizeof *name)

#define EXPECT(condition) \
    do {                  \
        if (!(condition)) \
            return __LINE__; \
    } while (0)
#define WORKS(call)                              \
    do {                                         \
        dpi_error err = {0};                     \
        const int status = call;                 \
        if (status != 0)                         \
            fprintf(stderr, "%s\n", err.message); \
        EXPECT(status == 0);                     \
    } while (0)
/* The library has written into it what it is for, and nothing behind it. */
#define WHOLE(type, name) \
    EXPECT(name->struct_size == sizeof(type) && is_left(name##_all.behind))

static int is_left(const unsigned char *behind) {
    for (int i = 0; i < BEHIND; i++)
        if (behind[i] != PATTERN)
            return 0;
    return 1;
}

#define STRUCTS(X)                                                                              \
    X(dpi_augpe_options) X(dpi_certificate) X(dpi_charge) X(dpi_charge_request) X(dpi_claim)    \
    X(dpi_cost) X(dpi_counts_info) X(dpi_counts_options) X(dpi_dataset_info)                    \
    X(dpi_dataset_options) X(dpi_drawing_options) X(dpi_extract_options)                        \
    X(dpi_finetune_options) X(dpi_finetune_plan) X(dpi_gaussian) X(dpi_generate_hooks)          \
    X(dpi_generate_input) X(dpi_generate_result) X(dpi_generation_options)                      \
    X(dpi_journal_options) X(dpi_kmeans_options) X(dpi_ledger_options) X(dpi_machine)           \
    X(dpi_model_info) X(dpi_model_options) X(dpi_model_shape) X(dpi_pace_search) X(dpi_part)    \
    X(dpi_perturb_options) X(dpi_prompt_options) X(dpi_prompts_info) X(dpi_records_options)     \
    X(dpi_release_options) X(dpi_release_plan) X(dpi_release_progress) X(dpi_run)               \
    X(dpi_sampler_options) X(dpi_sampler_plan) X(dpi_session_options) X(dpi_statistic_options)  \
    X(dpi_train_config) X(dpi_train_hooks) X(dpi_train_info) X(dpi_verification)                \
    X(dpi_wording) X(dpi_write_options)

static int init_all(void) {
#define INIT(type)            \
    {                         \
        HAVE(type, any);      \
        WHOLE(type, any);     \
    }
    STRUCTS(INIT)
    return 0;
}

static int make_model(const char *path) {
    HAVE(dpi_model_shape, shape);
    HAVE(dpi_write_options, write);
    shape->n_layer = 1, shape->n_embd = 32, shape->n_ff = 32, shape->n_head = 2;
    shape->n_kv_head = 1, shape->n_vocab = 300, shape->n_ctx_train = 256;
    shape->rope_freq_base = 10000;
    write->type = "F32";
    WORKS(dpi_model_make(shape, NULL, 7, path, write, &err));
    WORKS(dpi_model_shape_find("tinyllama-1.1b", shape, &err));
    WHOLE(dpi_model_shape, shape);
    EXPECT(shape->n_layer == 22);
    return 0;
}

static int tell_model(const dpi_model *model, FILE *out) {
    HAVE(dpi_model_info, info);
    WORKS(dpi_model_info_get(model, info, &err));
    WHOLE(dpi_model_info, info);
    fprintf(out, "model %s %d %lld\n", info->architecture, info->n_vocab,
            (long long)info->n_params);
    return 0;
}

static int open_records(dpi_records **records) {
    const char text[] = "{\"text\": \"one letter\"}\n{\"text\": \"another letter\"}\n"
                        "{\"text\": \"a third\"}\n{\"text\": \"a fourth\"}\n";
    HAVE(dpi_records_options, o);
    WORKS(dpi_records_open_buffer(text, sizeof text - 1, DPI_RECORD_LINE, o, records, &err));
    WHOLE(dpi_records_options, o);
    EXPECT(dpi_records_count(*records) == 4);
    return 0;
}

static int tell_release(const dpi_release *release, FILE *out) {
    HAVE(dpi_release_plan, plan);
    HAVE(dpi_release_progress, progress);
    WORKS(dpi_release_plan_get(release, plan, &err));
    WHOLE(dpi_release_plan, plan);
    EXPECT(plan->memory_bytes > 0);
    WORKS(dpi_release_progress_get(release, progress, &err));
    WHOLE(dpi_release_progress, progress);
    fprintf(out, "plan %d %d, %d of %d texts over\n", plan->n_ctx, plan->n_prompt_most,
            progress->n_ended, progress->n_texts);
    return 0;
}

static int draw(const dpi_model *model, const dpi_records *records, FILE *out) {
    dpi_release *release;
    dpi_release_event event = {0};
    HAVE(dpi_release_options, o);
    o->model = model, o->records = records;
    o->method.rho = 1, o->method.pace = DPI_PACE_NONE;
    o->batch = 2, o->n_tokens = 12, o->seeded = 1, o->seed = 5, o->session.n_threads = 1;
    WORKS(dpi_release_options_check(o, &err));
    WORKS(dpi_release_open(o, &release, &err));
    WHOLE(dpi_release_options, o);
    do {
        WORKS(dpi_release_advance(release, &event, &err));
        if (event.type == DPI_EVENT_TOKEN)
            fprintf(out, "%d ", event.token);
    } while (event.type != DPI_EVENT_NONE);
    const int at = tell_release(release, out);
    fprintf(out, "epsilon %.17g\n", dpi_run_epsilon(dpi_release_run(release)));
    dpi_release_free(release);
    return at;
}

/* A text without records, by a session and a sampler of the program. */
static int draw_alone(const dpi_model *model, FILE *out) {
    static const int32_t prompt[] = {1, 70, 80, 90};
    dpi_session *session;
    dpi_sampler *sampler;
    HAVE(dpi_session_options, s);
    HAVE(dpi_sampler_options, o);
    HAVE(dpi_generate_input, input);
    HAVE(dpi_generate_hooks, hooks);
    HAVE(dpi_generate_result, result);
    WORKS(dpi_session_create(model, s, &session, &err));
    o->method = DPI_METHOD_PLAIN, o->n_ref = 0, o->n_tokens = 5, o->n_vocab = 300, o->top_k = 0;
    o->tau = 0;
    WORKS(dpi_sampler_create(o, &sampler, &err));
    input->public_tokens = prompt, input->n_public = 4, input->n_tokens = 5;
    WORKS(dpi_generate(session, sampler, input, hooks, result, &err));
    WHOLE(dpi_generate_result, result);
    fprintf(out, "alone %d\n", result->n_drawn);
    dpi_sampler_free(sampler);
    dpi_session_free(session);
    return 0;
}

static int tell_dataset(dpi_ledger *ledger, FILE *out) {
    HAVE(dpi_dataset_info, info);
    WORKS(dpi_ledger_info(ledger, "letters", info, &err));
    WHOLE(dpi_dataset_info, info);
    fprintf(out, "%s: %lld of %lld\n", info->name, (long long)info->charged,
            (long long)info->left);
    WORKS(dpi_ledger_info_at(ledger, 0, info, &err));
    WHOLE(dpi_dataset_info, info);
    EXPECT(strcmp(info->name, "letters") == 0);
    return 0;
}

static int charge(const char *path, FILE *out) {
    dpi_ledger *ledger;
    HAVE(dpi_ledger_options, o);
    HAVE(dpi_dataset_options, dataset);
    HAVE(dpi_charge_request, request);
    HAVE(dpi_cost, cost);
    HAVE(dpi_charge, made);
    o->create = 1;
    WORKS(dpi_ledger_open(path, o, &ledger, &err));
    dataset->name = "letters", dataset->epsilon = 2, dataset->delta = 1e-6;
    WORKS(dpi_ledger_add(ledger, dataset, &err));
    WORKS(dpi_cost_add(cost, DPI_COST_ZCDP, 1, .001, 0, &err));
    request->cost = cost, request->method = "a program's own";
    WORKS(dpi_ledger_reserve(ledger, "letters", request, made, &err));
    WHOLE(dpi_charge, made);
    fprintf(out, "charge %lld %s\n", (long long)made->amount, made->cost);
    const int at = tell_dataset(ledger, out);
    dpi_ledger_close(ledger);
    return at;
}

static int count(FILE *out) {
    static const double points[] = {0, 1, 10, 11, 12, 30};
    double epsilon, centres[2];
    HAVE(dpi_kmeans_options, k);
    HAVE(dpi_gaussian, g);
    WORKS(dpi_kmeans(points, 6, 1, k, NULL, centres, NULL, &err));
    g->sigma = 2, g->n_steps = 10, g->accountant = DPI_GAUSSIAN_RENYI;
    WORKS(dpi_gaussian_epsilon(g, 1e-6, &epsilon, &err));
    fprintf(out, "centres %g %g, epsilon %.17g\n", centres[0], centres[1], epsilon);
    return 0;
}

static int count_records(const dpi_records *records, FILE *out) {
    dpi_counts *counts;
    dpi_statistic *statistic;
    static const char *const keys[] = {"word", "budget_epsilon"}, *const values[] = {"a", "1"};
    HAVE(dpi_counts_options, c);
    HAVE(dpi_counts_info, info);
    HAVE(dpi_statistic_options, s);
    c->epsilon = 1, c->delta = 1e-6;
    WORKS(dpi_counts_open(c, &counts, &err));
    dpi_counts_info_get(counts, info);
    WHOLE(dpi_counts_info, info);
    s->records = records, s->mechanism = "word_count", s->delta = 1e-6;
    s->keys = keys, s->values = values, s->n_values = 2;
    WORKS(dpi_statistic_open(s, &statistic, &err));
    fprintf(out, "noise %lld, numbers %d\n", (long long)info->variance,
            dpi_statistic_count(statistic));
    dpi_statistic_free(statistic);
    dpi_counts_close(counts);
    return 0;
}

static int with_model(const dpi_model *model, FILE *out) {
    dpi_records *records;
    int at = tell_model(model, out);
    if (at == 0)
        at = open_records(&records);
    if (at != 0)
        return at;
    at = draw(model, records, out);
    if (at == 0)
        at = count_records(records, out);
    dpi_records_close(records);
    return at == 0 ? draw_alone(model, out) : at;
}

int JOB(const char *folder, FILE *out) {
    char path[1100];
    dpi_model *model;
    int at = init_all();
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    if (at == 0)
        at = make_model(path);
    if (at != 0)
        return at;
    HAVE(dpi_model_options, o);
    WORKS(dpi_model_open(path, o, &model, &err));
    WHOLE(dpi_model_options, o);
    at = with_model(model, out);
    dpi_model_close(model);
    snprintf(path, sizeof path, "%s/l.ledger", folder);
    if (at == 0)
        at = charge(path, out);
    return at == 0 ? count(out) : at;
}
