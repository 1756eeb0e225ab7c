/* release_options.c - see release_options.h. */
#include "tools/options/release_options.h"

#include <inttypes.h>
#include <string.h>

#include "tools/options/grammar_options.h"
#include "tools/options/text_option.h"

/* ---- Before anything is opened -------------------------------------------------------------- */

static int check_plain(const args *a) {
    static const option_id budget[] = {OPT_RHO,       OPT_EPSILON,   OPT_DELTA,
                                       OPT_BATCH,     OPT_METHOD,    OPT_ACCOUNTANT,
                                       OPT_ADJACENCY, OPT_SUBSAMPLE, OPT_KNOWN_BATCHES,
                                       OPT_CLIP,      OPT_CENTER,    OPT_STEER};
    for (size_t i = 0; i < sizeof budget / sizeof *budget; i++) {
        if (a->v[budget[i]].given)
            return cli_fail(CLI_USAGE, "--plain has no privacy: leave out --%s",
                            option_name(budget[i]));
    }
    if (a->v[OPT_REFERENCE].given && a->n_positional == 0)
        return cli_fail(CLI_USAGE, "--reference needs REFS, the records");
    return CLI_OK;
}

/* How many records there are is secret. */
static bool is_assigned(const args *a) {
    return a->v[OPT_ADJACENCY].i == DPI_ADJACENCY_ADD_REMOVE || a->v[OPT_SUBSAMPLE].given;
}

static int check_assigned(const args *a) {
    if (is_assigned(a) && (!a->v[OPT_BATCH].given ||
                           (!a->v[OPT_NUM].given && !a->v[OPT_NUM_PER_LABEL].given)))
        return cli_fail(CLI_USAGE,
                        "-B and --num must be given with --adjacency add-remove and with "
                        "--subsample: they must not follow from the records");
    if (a->v[OPT_STEER].given && a->v[OPT_CONTROL_VECTOR].given)
        return cli_fail(CLI_USAGE, "--steer and --control-vector: allowed is one of them");
    if (!is_assigned(a) && a->v[OPT_KNOWN_BATCHES].given)
        return cli_fail(CLI_USAGE, "--known-batches: allowed with --adjacency add-remove and with "
                                   "--subsample; without them batches are by position, and known");
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
    if (a->v[OPT_UNITS].given && (a->n_positional > 0 || a->v[OPT_RECORDS].given))
        return cli_fail(CLI_USAGE, "--units: allowed without REFS and without --records");
    if (a->n_positional == 0 && !a->v[OPT_RECORDS].given && !a->v[OPT_UNITS].given)
        return cli_fail(CLI_USAGE, "no REFS given%s; see 'dpinfer %s -h'",
                        a->command->bit == CMD_PLAN ? ", and no --records N or --units N" : "",
                        a->command->name);
    if (a->n_positional > 0 && a->v[OPT_RECORDS].given && !is_assigned(a))
        return cli_fail(CLI_USAGE, "REFS and --records: allowed is one of them, but with "
                                   "--adjacency add-remove and with --subsample");
    return CLI_OK;
}

/* The method, its parameters and the budget. */
static int read_method(const args *a, dpi_sampler_options *o) {
    const dpi_method_info *m = a->v[OPT_PLAIN].i ? dpi_method_get(DPI_METHOD_PLAIN)
                                                 : dpi_method_find(a->v[OPT_METHOD].s);
    dpi_error err;
    if (m->needs_acknowledgement && !a->v[OPT_NOT_DP].i)
        return cli_fail(CLI_USAGE, "--method %s is for comparison alone: %s. To run it all the "
                                   "same add --%s", m->name, m->warning, option_name(OPT_NOT_DP));
    if (!m->needs_acknowledgement && a->v[OPT_NOT_DP].i)
        return cli_fail(CLI_USAGE, "--%s is allowed only with a method that guarantees nothing, "
                                   "found %s", option_name(OPT_NOT_DP), m->name);
    if (dpi_method_defaults(m->id, o, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    o->pace = DPI_PACE_AUTO;
    o->acknowledge_not_dp = a->v[OPT_NOT_DP].i == 1;
    return options_parameters(a, o);
}

int read_budget(const args *a, dpi_sampler_options *o) {
    int code = a->v[OPT_PLAIN].i ? check_plain(a) : check_private(a);
    dpi_sampler_options_init(o);
    if (code == CLI_OK)
        code = read_method(a, o);
    return code;
}

int read_session_options(const args *a, dpi_session_options *options) {
    dpi_session_options_init(options);
    options->n_threads = (int32_t)a->v[OPT_THREADS].i;
    options->kv_type = a->v[OPT_KV].i == 1 ? DPI_KV_F32 : DPI_KV_F16;
    options->exact = (int32_t)a->v[OPT_EXACT].i;
    dpi_error err;
    if (dpi_isa_parse(a->v[OPT_ISA].s, &options->isa, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    if (!dpi_isa_runs(options->isa))
        return cli_fail(CLI_USAGE, "--isa: found '%s', this processor runs up to %s",
                        dpi_isa_name(options->isa), dpi_isa_name(dpi_isa_best()));
    return CLI_OK;
}

/* ---- Prompts --------------------------------------------------------------------------------- */

int prompt_texts_read(const args *a, prompt_texts *loaded, dpi_prompt_options *p) {
    const struct {
        option_id direct, file;
        dpi_bytes *text;
    } texts[] = {
        {OPT_PRIVATE_PROMPT, OPT_PRIVATE_PROMPT_FILE, &p->private_prompt},
        {OPT_PUBLIC_PROMPT, OPT_PUBLIC_PROMPT_FILE, &p->public_prompt},
        {OPT_QUERY, OPT_QUERY_FILE, &p->query},
        {OPT_SYSTEM, OPT_SYSTEM_FILE, &p->system},
    };
    dpi_error err;
    for (int i = 0; i < 4; i++) {
        const int code = text_option_read(a, texts[i].direct, texts[i].file, &loaded->file[i],
                                          texts[i].text);
        if (code != CLI_OK)
            return code;
    }
    if (a->v[OPT_DESCRIBE].given)
        p->description = (dpi_bytes){a->v[OPT_DESCRIBE].s, strlen(a->v[OPT_DESCRIBE].s)};
    const int code = example_options_read(a, &loaded->examples, p);
    if (code != CLI_OK)
        return code;
    p->max_reference_tokens = (int32_t)a->v[OPT_MAX_REF_TOKENS].i;
    if (dpi_chat_parse(a->v[OPT_TEMPLATE].s, &p->chat, &err) != DPI_STATUS_OK ||
        dpi_prompt_options_check(p, &err) != DPI_STATUS_OK)
        return cli_fail_option(CLI_USAGE, &err);
    return CLI_OK;
}

void release_texts_free(release_texts *texts) {
    dpi_grammar_free(texts->grammar);
    wording_options_free(&texts->wording);
    label_options_free(&texts->labels);
    prompt_texts_free(&texts->prompts);
    *texts = (release_texts){0};
}

void prompt_texts_free(prompt_texts *texts) {
    for (int i = 0; i < 4; i++)
        dpi_private_free(texts->file[i]);
    example_options_free(&texts->examples);
    *texts = (prompt_texts){0};
}

/* ---- All options ----------------------------------------------------------------------------- */

static void read_numbers(const args *a, dpi_release_options *o) {
    if (a->v[OPT_SEED].given) {
        o->seeded = 1;
        o->seed = (uint64_t)a->v[OPT_SEED].i;
    }
    if (a->v[OPT_REFERENCE].given)
        o->reference = a->v[OPT_REFERENCE].i - 1;
    o->n_records = a->v[OPT_UNITS].given ? a->v[OPT_UNITS].i : a->v[OPT_RECORDS].i;
    if (a->v[OPT_UNITS].given && o->method.max_per_unit == 0)
        o->method.max_per_unit = DPI_MAX_PER_UNIT_DEFAULT;
    o->batch = (int32_t)a->v[OPT_BATCH].i;
    o->n_texts = (int32_t)a->v[OPT_NUM].i;
    o->n_tokens = (int32_t)a->v[OPT_N_PREDICT].i;
    o->n_parallel = (int32_t)a->v[OPT_PARALLEL].i;
    o->steered = a->v[OPT_STEER].given;
    o->known_batches = a->v[OPT_KNOWN_BATCHES].i == 1;
    o->n_released = a->v[OPT_RELEASED].given ? (int32_t)a->v[OPT_RELEASED].i : 0;
}

int release_options_read(const args *a, release_texts *in, dpi_release_options *o) {
    const bool plain = a->v[OPT_PLAIN].i;
    dpi_release_options_init(o);
    int code = plain ? check_plain(a) : check_private(a);
    if (code == CLI_OK)
        code = read_method(a, &o->method);
    o->top_k = o->method.top_k;
    if (code == CLI_OK && !plain)
        code = check_assigned(a);
    if (code == CLI_OK)
        code = read_session_options(a, &o->session);
    read_numbers(a, o);
    o->session.n_ctx = (int32_t)a->v[OPT_CTX_SIZE].i;
    if (code == CLI_OK)
        code = label_options_read(a, false, &in->labels, o);
    if (code == CLI_OK)
        code = grammar_options_read(a, &in->grammar);
    o->grammar = in->grammar;
    if (code == CLI_OK)
        code = wording_options_read(a, &in->wording);
    o->wording = &in->wording.wording;
    return code == CLI_OK ? prompt_texts_read(a, &in->prompts, &o->prompts) : code;
}

/* Plain text is drawn as the model's file recommends, unless the command line says otherwise. */
int release_options_draw(const args *a, const dpi_model_info *info, dpi_release_options *o) {
    if (o->method.method != DPI_METHOD_PLAIN)
        return CLI_OK;
    if (info->sampling_top_k > 0)
        o->method.top_k = info->sampling_top_k;
    int code = options_parameters(a, &o->method);
    if (info->sampling_temp > 0 && !a->v[OPT_TEMP].given)
        o->method.tau = info->sampling_temp;
    o->top_k = o->method.top_k;
    return code;
}

void note_context(int64_t n_ctx, const dpi_model_info *info) {
    if (n_ctx > info->n_ctx_train)
        cli_note("note: the context of %" PRId64 " tokens is beyond the %d that the model file "
                 "states", n_ctx, info->n_ctx_train);
}
