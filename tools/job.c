/* job.c - see job.h. */
#include "tools/job.h"

#include <inttypes.h>

enum {
    DEFAULT_N_PREDICT = 200,
    DEFAULT_MAX_CTX = 4096, /* larger contexts only when asked for: KV caches grow with it */
    DEFAULT_BATCH = 8,
    DEFAULT_ONE_BATCH = 16, /* up to so many records make one batch */
};

/* ---- Before anything is opened -------------------------------------------------------------- */

static int check_plain(const args *a) {
    static const option_id budget[] = {OPT_RHO,       OPT_EPSILON,   OPT_DELTA,
                                       OPT_BATCH,     OPT_METHOD,    OPT_ACCOUNTANT,
                                       OPT_ADJACENCY, OPT_SUBSAMPLE, OPT_CLIP,
                                       OPT_CENTER};
    for (size_t i = 0; i < sizeof budget / sizeof *budget; i++) {
        if (a->v[budget[i]].given)
            return cli_fail(CLI_USAGE, "--plain has no privacy: leave out --%s",
                            option_name(budget[i]));
    }
    if (a->v[OPT_REFERENCE].given && a->n_positional == 0)
        return cli_fail(CLI_USAGE, "--reference needs REFS, the records");
    return CLI_OK;
}

static int check_private(const args *a) {
    if (a->v[OPT_RHO].given && a->v[OPT_EPSILON].given)
        return cli_fail(CLI_USAGE, "--rho and --epsilon: allowed is one of them");
    if (!a->v[OPT_RHO].given && !a->v[OPT_EPSILON].given)
        return cli_fail(CLI_USAGE, "no privacy budget: give --rho, or --epsilon with --delta "
                                   "(--plain generates without privacy)");
    if (a->v[OPT_TEMP].d == 0)
        return cli_fail(CLI_USAGE, "--temp: found '0', allowed 0.01..100 (0 only with --plain)");
    if (a->v[OPT_REFERENCE].given)
        return cli_fail(CLI_USAGE, "--reference is allowed only with --plain");
    if (a->n_positional == 0 && !a->v[OPT_RECORDS].given)
        return cli_fail(CLI_USAGE, "no REFS given; see 'dpinfer %s -h'", a->command->name);
    if (a->n_positional > 0 && a->v[OPT_RECORDS].given)
        return cli_fail(CLI_USAGE, "REFS and --records: allowed is one of them");
    return CLI_OK;
}

/* The method, its parameters and the budget. */
static int settle_method(const args *a, job *j) {
    const dpi_method_info *m =
        j->plain ? dpi_method_get(DPI_METHOD_PLAIN) : dpi_method_find(a->v[OPT_METHOD].s);
    dpi_error err;
    if (m->needs_acknowledgement && !a->v[OPT_NOT_DP].i)
        return cli_fail(CLI_USAGE, "--method %s is for comparison alone: %s. To run it all the "
                                   "same add --%s", m->name, m->warning, option_name(OPT_NOT_DP));
    if (!m->needs_acknowledgement && a->v[OPT_NOT_DP].i)
        return cli_fail(CLI_USAGE, "--%s is allowed only with a method that guarantees nothing, "
                                   "found %s", option_name(OPT_NOT_DP), m->name);
    if (dpi_method_defaults(m->id, &j->sampler, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    j->sampler.acknowledge_not_dp = a->v[OPT_NOT_DP].i == 1;
    return options_parameters(a, &j->sampler);
}

static int settle_budget(const args *a, job *j) {
    j->delta = j->sampler.delta;
    j->assigned = j->sampler.adjacency == DPI_ADJACENCY_ADD_REMOVE || a->v[OPT_SUBSAMPLE].given;
    if (j->assigned && (!a->v[OPT_BATCH].given || !a->v[OPT_NUM].given))
        return cli_fail(CLI_USAGE,
                        "-B and --num must be given with --adjacency add-remove and with "
                        "--subsample: they must not follow from the records");
    return CLI_OK;
}

int job_session_options(const args *a, dpi_session_options *options) {
    dpi_session_options_init(options);
    options->n_threads = (int32_t)a->v[OPT_THREADS].i;
    options->kv_type = a->v[OPT_KV].i == 1 ? DPI_KV_F32 : DPI_KV_F16;
    options->exact = (int32_t)a->v[OPT_EXACT].i;
    dpi_error err;
    if (dpi_isa_parse(a->v[OPT_ISA].s, &options->isa, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    int32_t best = dpi_isa_best();
    if (options->isa > best)
        return cli_fail(CLI_USAGE, "--isa: found '%s', this processor runs up to %s",
                        dpi_isa_name(options->isa), dpi_isa_name(best));
    return CLI_OK;
}

void job_set_private(job *j) {
    bool not_dp = j->sampler.method == DPI_METHOD_ADAPMIXED, seeded = j->sampler.random != NULL;
    j->is_private = !j->plain && !not_dp && !seeded;
    j->warning = j->plain ? "NOT PRIVATE: --plain applies no privacy mechanism"
                 : not_dp  ? "NOT PRIVATE: adapmixed counts its cost on the records themselves; "
                               "what it counts is data-dependent and not a guarantee"
                 : seeded ? "NOT PRIVATE: whoever knows the --seed can undo the mechanism"
                          : NULL;
}

static int settle_options(const args *a, job *j) {
    j->plain = a->v[OPT_PLAIN].i;
    j->unit = "one record";
    j->reference = a->v[OPT_REFERENCE].given ? a->v[OPT_REFERENCE].i - 1 : -1;

    dpi_sampler_options_init(&j->sampler);
    if (a->v[OPT_SEED].given) {
        j->seed = (uint64_t)a->v[OPT_SEED].i;
        j->sampler.random = dpi_random_insecure;
        j->sampler.random_user = &j->seed;
    }
    int code = j->plain ? check_plain(a) : check_private(a);
    if (code == CLI_OK)
        code = settle_method(a, j);
    job_set_private(j);
    if (code == CLI_OK && !j->plain)
        code = settle_budget(a, j);
    if (code == CLI_OK)
        code = job_session_options(a, &j->session);
    j->sampler.isa = j->session.isa; /* what computes, not what comes out */
    return code == CLI_OK ? prompts_load(a, &j->prompts) : code;
}

/* ---- Records -------------------------------------------------------------------------------- */

static int settle_plain_records(const args *a, job *j) {
    j->sampler.n_ref = 0;
    j->sampler.rho = 0;
    j->n_texts = a->v[OPT_NUM].given ? (int32_t)a->v[OPT_NUM].i : 1;
    if (j->reference < 0)
        return CLI_OK; /* records are not touched */
    int code = records_open(a->positional[0], a->v[OPT_TEXT_FIELD].s, &j->docs);
    if (code != CLI_OK)
        return code;
    j->n_records = (int64_t)records_count(j->docs);
    j->unit = records_unit(j->docs);
    if (j->reference >= j->n_records)
        return cli_fail(CLI_USAGE, "--reference: found '%" PRId64 "', allowed 1..%" PRId64,
                        j->reference + 1, j->n_records);
    return CLI_OK;
}

static int settle_records(const args *a, job *j) {
    if (j->plain)
        return settle_plain_records(a, j);
    j->n_records = a->v[OPT_RECORDS].i;
    if (a->n_positional > 0) {
        int code = records_open(a->positional[0], a->v[OPT_TEXT_FIELD].s, &j->docs);
        if (code != CLI_OK)
            return code;
        j->n_records = (int64_t)records_count(j->docs);
        j->unit = records_unit(j->docs);
    }
    if (j->delta * (double)j->n_records >= 1)
        return cli_fail(CLI_USAGE, "--delta: found %g with %" PRId64 " records, allowed less than "
                                   "1 / number of records = %g",
                        j->delta, j->n_records, 1 / (double)j->n_records);
    int64_t batch = j->n_records <= DEFAULT_ONE_BATCH ? j->n_records : DEFAULT_BATCH;
    if (a->v[OPT_BATCH].given)
        batch = a->v[OPT_BATCH].i;
    int64_t n_texts = (j->n_records + batch - 1) / batch;
    if (a->v[OPT_NUM].given && (j->assigned || a->v[OPT_NUM].i < n_texts))
        n_texts = a->v[OPT_NUM].i;
    if (n_texts > INT32_MAX)
        return cli_fail(CLI_RECORDS, "%" PRId64 " records make %" PRId64 " texts, allowed %d: see "
                                     "--batch and --num", j->n_records, n_texts, INT32_MAX);
    j->sampler.n_ref = j->sampler.denominator = (int32_t)batch;
    j->n_texts = (int32_t)n_texts;
    return CLI_OK;
}

/* ---- With the model ------------------------------------------------------------------------- */

void job_note_context(int64_t n_ctx, const dpi_model_info *info) {
    if (n_ctx > info->n_ctx_train)
        cli_note("note: the context of %" PRId64 " tokens is beyond the %d that the model file "
                 "states", n_ctx, info->n_ctx_train);
}

static int settle_lengths(const args *a, bool quiet, job *j) {
    int32_t n_ctx = j->info.n_ctx_train < DEFAULT_MAX_CTX ? j->info.n_ctx_train : DEFAULT_MAX_CTX;
    if (a->v[OPT_CTX_SIZE].given)
        n_ctx = (int32_t)a->v[OPT_CTX_SIZE].i;
    if (!quiet)
        job_note_context(n_ctx, &j->info);
    int32_t n_tokens = n_ctx / 2 < DEFAULT_N_PREDICT ? n_ctx / 2 : DEFAULT_N_PREDICT;
    if (a->v[OPT_N_PREDICT].given)
        n_tokens = (int32_t)a->v[OPT_N_PREDICT].i;
    if (n_tokens >= n_ctx || n_tokens < 1)
        return cli_fail(CLI_USAGE, "--n-predict: found '%d', allowed 1..%d with a context of %d "
                                   "tokens", n_tokens, n_ctx - 1, n_ctx);
    if (j->sampler.top_k > j->info.n_vocab)
        j->sampler.top_k = j->info.n_vocab;
    j->session.n_ctx = n_ctx;
    j->session.n_seq = j->sampler.n_ref + 1;
    j->sampler.n_tokens = n_tokens;
    j->sampler.n_vocab = j->info.n_vocab;
    return CLI_OK;
}

static int settle_prompts(const args *a, bool quiet, job *j) {
    int32_t chat;
    dpi_error err;
    if (dpi_chat_parse(a->v[OPT_TEMPLATE].s, &chat, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    if (!quiet && chat == DPI_CHAT_AUTO && j->info.chat_template == DPI_CHAT_UNKNOWN)
        cli_note("warning: the model's chat template is not recognised, so prompts are written "
                 "without one; choose the format with --template");
    return prompts_prepare(&j->prompts, j->model, &j->info, chat,
                           (size_t)(j->session.n_ctx - j->sampler.n_tokens),
                           (size_t)a->v[OPT_MAX_REF_TOKENS].i);
}

static int settle_plan(job *j) {
    if (j->plain)
        return CLI_OK;
    dpi_error err;
    dpi_status status;
    j->plan.struct_size = sizeof j->plan;
    if (j->assigned) { /* the slots of a text are not known yet */
        status = dpi_sampler_plan_make(&j->sampler, &j->plan, &err);
    } else {
        status = dpi_sampler_create(&j->sampler, &j->made, &err);
        if (status == DPI_STATUS_OK)
            j->plan = *dpi_sampler_plan_get(j->made);
    }
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_USAGE, &err);
}

int job_prepare(const args *a, bool quiet, job *j) {
    *j = (job){0};
    dpi_model_options options;
    dpi_model_options_init(&options);
    options.use_mmap = !a->v[OPT_NO_MMAP].i;
    int code = settle_options(a, j);
    if (code == CLI_OK)
        code = settle_records(a, j);
    if (code == CLI_OK)
        code = cli_open_model(a->model, &options, &j->model, &j->info);
    if (code == CLI_OK)
        code = settle_lengths(a, quiet, j);
    if (code == CLI_OK)
        code = settle_prompts(a, quiet, j);
    return code == CLI_OK ? settle_plan(j) : code;
}

int32_t job_max_tokens(const job *j) {
    size_t n_prompt = j->prompts.n_public_tokens;
    bool with_records = !j->plain || j->reference >= 0;
    if (with_records && j->prompts.n_limit > n_prompt)
        n_prompt = j->prompts.n_limit;
    return (int32_t)n_prompt + j->sampler.n_tokens;
}

void job_free(job *j) {
    prompts_free(&j->prompts);
    records_close(j->docs);
    dpi_sampler_free(j->made);
    dpi_model_close(j->model);
    *j = (job){0};
}
