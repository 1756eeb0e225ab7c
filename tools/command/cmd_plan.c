/* cmd_plan.c - `dpinfer plan`: what a run would guarantee and need, before it reads a record. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dpinfer/suggest.h"
#include "tools/command/commands.h"
#include "tools/options/ledger_options.h"
#include "tools/options/release_options.h"
#include "tools/options/shard_options.h"
#include "tools/shared/release_input.h"
#include "tools/shared/report_files.h"
#include "tools/shared/facts_claim.h"
#include "tools/terminal/facts.h"
#include "tools/terminal/table.h"

/* "2 h 10 min" */
static const char *time_text(double seconds, char *text, size_t size) {
    const double hours = seconds / 3600;
    if (hours >= 48)
        snprintf(text, size, "%.3g days", hours / 24);
    else if (hours >= 1)
        snprintf(text, size, "%d h %d min", (int)hours, (int)(seconds / 60) % 60);
    else if (seconds >= 60)
        snprintf(text, size, "%d min %d s", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(text, size, "%.3g s", seconds);
    return text;
}

/* As the public texts are, of which the time is that of the run. */
static void add_lengths(facts *f, const dpi_release *release) {
    dpi_public_texts told;
    dpi_pace_texts_tell(dpi_release_public_texts(release), &told);
    if (told.n_texts == 0)
        return;
    facts_int(f, "public_texts_ended", NULL, told.n_ended);
    facts_int(f, "longest_public_text", NULL, told.n_longest);
    facts_line(f, "public texts", "%d, of %d tokens on average and %d at most; %d end before -n",
               told.n_texts, told.n_mean, told.n_longest, told.n_ended);
    if (told.n_enough == 0)
        return;
    facts_int(f, "tokens_enough", NULL, told.n_enough);
    facts_line(f, "", "a smaller -n would do for texts like these: -n %d", told.n_enough);
}

static void add_time(facts *f, const dpi_run *claim, const dpi_release_plan *plan) {
    char all[40], reading[40], most[40];
    facts_real(f, "read_bytes_per_second", NULL, plan->read_bytes_per_second);
    facts_real(f, "seconds_at_least", NULL, plan->seconds_at_least);
    facts_int(f, "usual_prompt_tokens", NULL, plan->n_prompt_usual);
    facts_int(f, "usual_text_tokens", NULL, plan->n_text_usual);
    facts_real(f, "prompt_tokens_per_second", NULL, plan->prompt_tokens_per_second);
    facts_real(f, "step_seconds", NULL, plan->step_seconds);
    facts_real(f, "seconds", NULL, plan->seconds);
    facts_real(f, "seconds_reading", NULL, plan->seconds_reading);
    facts_real(f, "seconds_most", NULL, plan->seconds_most);
    facts_line(f, "measured", "%.0f prompt tokens a second; %.3g s a step of %d rows",
               plan->prompt_tokens_per_second, plan->step_seconds, plan->rows_usual);
    facts_line(f, "time", "%s, %s of it for prompts: %d text%s of %d tokens",
               time_text(plan->seconds, all, sizeof all),
               time_text(plan->seconds_reading, reading, sizeof reading), claim->n_texts,
               claim->n_texts == 1 ? "" : "s", plan->n_text_usual);
    if (dpi_run_has_units(claim))
        facts_line(f, "", "with units of %d records (--unit-records)", plan->n_unit_usual);
    if (claim->record_in_prompt)
        facts_line(f, "", "with records of %d tokens (--ref-tokens); the longest that fit: %s",
                   plan->n_record_usual, time_text(plan->seconds_most, most, sizeof most));
}

static void add_memory(facts *f, const dpi_run *claim, const dpi_release_plan *plan) {
    const double mib = 1024 * 1024;
    facts_int(f, "weight_bytes", NULL, plan->weight_bytes);
    facts_int(f, "model_bytes", NULL, plan->model_bytes);
    facts_int(f, "session_bytes", NULL, plan->session_bytes);
    facts_int(f, "memory_bytes", NULL, plan->memory_bytes);
    facts_int(f, "memory_usual_bytes", NULL, plan->memory_usual_bytes);
    facts_line(f, "memory", "%.1f MiB, %.1f of it for program and model",
               (double)plan->memory_usual_bytes / mib, (double)plan->model_bytes / mib);
    if (claim->record_in_prompt)
        facts_line(f, "", "with records of %d tokens (--ref-tokens); the longest that fit: %.1f "
                   "MiB", plan->n_record_usual, (double)plan->memory_bytes / mib);
}

static void add_pace(facts *f, const dpi_run *claim) {
    const int64_t n_tokens = claim->method.n_tokens;
    if (claim->method.pace_theta > 0)
        facts_real(f, "pace_theta", NULL, claim->method.pace_theta);
    if (claim->method.pace_tokens > 0)
        facts_int(f, "pace_tokens", NULL, claim->method.pace_tokens);
    if (claim->method.pace_share > 0)
        facts_real(f, "pace_share", NULL, claim->method.pace_share);
    if (claim->pace_texts == 0)
        return;
    facts_line(f, "finding the pace",
               "at most %" PRId64 " rows before the run's %" PRId64 ", which is done now and again "
               "by the run", claim->pace_texts * n_tokens,
               claim->n_texts * n_tokens * (claim->method.denominator + 1));
}

static int add_needs(facts *f, const args *a, const release_input *in) {
    dpi_release_plan plan;
    dpi_release_plan_init(&plan);
    plan.n_record_usual = (int32_t)a->v[OPT_REF_TOKENS].i;
    plan.n_unit_usual = (int32_t)a->v[OPT_UNIT_RECORDS].i;
    dpi_error err;
    if (dpi_release_plan_get(in->release, &plan, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    facts_int(f, "n_ctx", "context", plan.n_ctx);
    facts_int(f, "max_prompt_tokens", "longest prompt", plan.n_prompt_most);
    facts_int(f, "public_prompt_tokens", "public prompt", plan.n_prompt_public);
    facts_int(f, "shared_prompt_tokens", "shared beginning", plan.n_prompt_shared);
    facts_int(f, "parallel", "texts at a time", plan.n_parallel);
    facts_int(f, "rows_per_step", "rows per step", plan.rows_per_step);
    add_memory(f, dpi_release_run(in->release), &plan);
    add_pace(f, dpi_release_run(in->release));
    add_lengths(f, in->release);
    add_time(f, dpi_release_run(in->release), &plan);
    return CLI_OK;
}

/* What C can do. */
static void add_hearing(facts *f, const dpi_run *claim) {
    const double factor = dpi_hearing_factor(&claim->method, &claim->plan);
    if (factor <= 0)
        return;
    facts_real(f, "factor", NULL, factor);
    facts_text(f, "references_are", NULL, dpi_hearing_text(dpi_hearing_of(factor)));
    facts_line(f, "what C can do", "where all references agree, a token gets at most %.3g times "
               "likelier beside", factor);
    facts_line(f, "", "another one: %s (--suggest)",
               dpi_hearing_of(factor) == DPI_HEARING_HARDLY
                   ? "they can hardly be told from none"
                   : dpi_hearing_text(dpi_hearing_of(factor)));
}

/* What a pace buys: C for the same charge, and the charge for the same C. */
static void add_gain(facts *f, const dpi_run *claim) {
    double clip, epsilon;
    if (!dpi_pace_gain(&claim->method, &claim->plan, &clip, &epsilon))
        return;
    facts_real(f, "clip_without_pace", NULL, clip);
    facts_line(f, "what the pace buys", "C %.3g; without it %.3g for the same charge",
               claim->plan.clip, clip);
    if (epsilon <= 0)
        return;
    facts_real(f, "epsilon_without_pace", NULL, epsilon);
    facts_line(f, "", "epsilon %.3g; without it %.3g for the same C", claim->plan.epsilon,
               epsilon);
}

/* What no text begins with, in lines. */
static void add_refusals(facts *f) {
    enum { WIDTH = 64 };
    char line[2 * WIDTH] = "";
    json_t *list = json_array();
    const char *next;
    bool first = true;
    for (int32_t i = 0; (next = dpi_refusal(i)) != NULL; i++) {
        const size_t n = strlen(line);
        json_array_append_new(list, facts_string(next));
        snprintf(line + n, sizeof line - n, "%s\"%s\"", n > 0 ? ", " : "", next);
        if (strlen(line) < WIDTH && dpi_refusal(i + 1))
            continue;
        facts_line(f, first ? "no text begins with" : "", "%s", line);
        first = false;
        line[0] = '\0';
    }
    facts_json(f, "refusals", list);
}

/* What may not stand in a text, and what its tokens gain. */
static void add_shaping(facts *f, const dpi_wording *w) {
    if (w->n_bans > 0)
        facts_line(f, "no text has", "%d text%s of --ban", (int)w->n_bans,
                   w->n_bans > 1 ? "s" : "");
    if (w->ban_refusals)
        add_refusals(f);
    if (w->no_repeat > 0)
        facts_line(f, "no text repeats", "%d words that follow each other", (int)w->no_repeat);
    if (w->repeat_penalty > 1)
        facts_line(f, "a token that came", "loses %.3g of its logit",
                   DPI_REPEAT_SCALE * log(w->repeat_penalty));
    for (int32_t i = 0; i < w->n_biases; i++)
        facts_line(f, i == 0 ? "tokens gain" : "", "token %d: %g of its logit",
                   (int)w->biases[i].token, w->biases[i].bias);
}

static int show_plan(const args *a, const release_input *in) {
    facts f;
    facts_init(&f);
    int code = facts_claim(&f, dpi_release_run(in->release));
    if (code == CLI_OK) {
        add_hearing(&f, dpi_release_run(in->release));
        add_gain(&f, dpi_release_run(in->release));
        add_shaping(&f, dpi_release_wording(in->release));
        code = add_needs(&f, a, in);
    }
    if (code == CLI_OK)
        code = facts_print(&f, a->v[OPT_JSON].i, stdout);
    facts_free(&f);
    return code;
}

/* The folder of the job, which is charged from then on. */
static int make_job(const args *a, release_input *in) {
    dpi_report *report;
    dpi_error err;
    const int code = report_of_release(a, in->release, dpi_release_run(in->release), in->model,
                                       &report);
    dpi_status status = DPI_STATUS_OK;
    if (code == CLI_OK)
        status = dpi_shards_create(a->v[OPT_JOB].s, in->release, report, &err);
    dpi_report_free(report);
    if (code != CLI_OK)
        return code;
    if (status == DPI_STATUS_BUDGET)
        return ledger_fail_budget(in->ledger, in->dataset, dpi_release_run(in->release), &err);
    return status == DPI_STATUS_OK ? CLI_OK : shard_fail(status, &err);
}

/* The plan is shown too where the budget does not allow it. */
static int make_plan(const args *a, release_input *in) {
    static const option_id of_merge[] = {OPT_META, OPT_SIGN};
    dpi_error err;
    if (a->v[OPT_JOB].given && a->n_positional == 0)
        return cli_fail(CLI_USAGE, "--job needs REFS: every shard is held to them");
    for (size_t i = 0; i < sizeof of_merge / sizeof *of_merge; i++)
        if (a->v[OPT_JOB].given && a->v[of_merge[i]].given)
            return cli_fail(CLI_USAGE, "--%s is not allowed with --job: 'dpinfer merge', which "
                                       "writes the report of all shards, takes it",
                            option_name(of_merge[i]));
    int code = release_open(a, a->v[OPT_QUIET].i, NULL, in);
    if (code != CLI_OK)
        return code;
    const dpi_status status = dpi_release_preview(in->release, &err);
    if (status != DPI_STATUS_OK && status != DPI_STATUS_BUDGET)
        return ledger_fail(status, &err);
    code = show_plan(a, in);
    if (code == CLI_OK && status == DPI_STATUS_OK && a->v[OPT_JOB].given)
        return make_job(a, in);
    if (code != CLI_OK || status == DPI_STATUS_OK)
        return code;
    fflush(stdout);
    return ledger_fail_budget(in->ledger, in->dataset, dpi_release_run(in->release), &err);
}

/* ---- Suggestions ----------------------------------------------------------------------------- */

static void add_row(table *t, const dpi_suggestion *s, int64_t n_units, bool chosen) {
    table_number(t, "texts", 0, s->n_texts);
    table_number(t, "B", 0, s->batch);
    table_number(t, "T", 0, s->n_tokens);
    if (s->n_private > 0)
        table_number(t, "T_p", 0, s->n_private);
    table_number(t, "left over", 0, (double)(n_units - s->n_units));
    table_number(t, "C", 3, s->clip);
    if (t->format == TABLE_MD)
        table_text(t, "e^(2C/tau)", "%.3g", s->factor);
    else
        table_number(t, "factor", 6, s->factor);
    table_text(t, "references", "%s", dpi_hearing_text(s->hearing));
    table_number(t, "work", 2, s->work);
    table_text(t, "taken", "%s", chosen ? "x" : "");
    table_print_row(t);
}

/* Why this one: what it gives up. */
static void explain(const dpi_suggestion *all, int32_t chosen, const dpi_sampler_options *o,
                    int32_t n_texts) {
    const dpi_suggestion *s = &all[chosen];
    printf("\n-B %d -n %d --num %d: ", s->batch, s->n_tokens, s->n_texts);
    if (s->hearing == DPI_HEARING_HARDLY)
        printf("no setting lets references be heard; this one has the largest factor. More "
               "epsilon, more\nunits or fewer texts would help.\n");
    else if (s->n_texts < n_texts)
        printf("with %d texts references are heard in no batch that the units make; with these "
               "fewer they are.\n", n_texts);
    else if (s->n_tokens < o->n_tokens)
        printf("references are heard in texts of this length, and not in longer ones.\n");
    else
        printf("all texts with all tokens, in the smallest of these batches in which references "
               "are heard.\n");
}

/* A release of this setting, whose public texts have the pace of each row in them. */
static int open_setting(const args *a, const dpi_suggestion *s, release_input *in) {
    args set = *a;
    set.v[OPT_BATCH].i = s->batch, set.v[OPT_NUM].i = s->n_texts;
    set.v[OPT_BATCH].given = set.v[OPT_NUM].given = true;
    return release_open(&set, a->v[OPT_QUIET].i, NULL, in);
}

/* all[*n] for the budget o; with a model of the pace that it finds: *in is open then. */
static int find_settings(const args *a, dpi_sampler_options *o, int64_t n_units,
                         release_input *in, dpi_suggestion *all, int32_t *n, int32_t *chosen) {
    const int32_t n_texts = (int32_t)a->v[OPT_NUM].i;
    const bool is_open = dpi_pace_is_open(o) && (a->model || o->pace == DPI_PACE_AUTO);
    dpi_error err;
    dpi_status status = DPI_STATUS_OK;
    if (is_open)
        dpi_pace_drop(o); /* to begin with; without a model there is none to find */
    else
        status = dpi_pace_find(NULL, o, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_suggest(o, NULL, n_units, n_texts, all, n, chosen, &err);
    if (status == DPI_STATUS_OK && is_open && a->model) {
        const int code = open_setting(a, &all[*chosen], in);
        if (code != CLI_OK)
            return code;
        o->n_tokens = dpi_release_run(in->release)->method.n_tokens;
        status = dpi_suggest(o, dpi_release_public_texts(in->release), n_units, n_texts, all, n,
                             chosen, &err);
    }
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_option(CLI_USAGE, &err);
}

static int suggest(const args *a, release_input *in) {
    dpi_suggestion all[DPI_SUGGESTIONS_MAX];
    const int64_t n_units = a->v[OPT_UNITS].given ? a->v[OPT_UNITS].i : a->v[OPT_RECORDS].i;
    const int32_t n_texts = (int32_t)a->v[OPT_NUM].i;
    table t = {.format = a->v[OPT_JSON].i ? TABLE_JSON : TABLE_MD};
    dpi_sampler_options o;
    int32_t n, chosen;
    int code = read_budget(a, &o);
    if (code != CLI_OK)
        return code;
    if (n_units == 0 || n_texts == 0)
        return cli_fail(CLI_USAGE, "--suggest needs --units N or --records N, and --num");
    if (dpi_method_get(o.method)->subsamples && o.epsilon > 0 && !a->v[OPT_KNOWN_BATCHES].given &&
        (o.adjacency == DPI_ADJACENCY_ADD_REMOVE || o.subsample > 0))
        o.allocation = n_texts;
    o.n_tokens = a->v[OPT_N_PREDICT].given ? (int32_t)a->v[OPT_N_PREDICT].i : DPI_TOKENS_DEFAULT;
    o.n_vocab = 1 << 18; /* without influence on C */
    code = find_settings(a, &o, n_units, in, all, &n, &chosen);
    if (code != CLI_OK)
        return code;
    for (int32_t i = 0; i < n; i++)
        add_row(&t, &all[i], n_units, i == chosen);
    table_end(&t);
    if (!a->v[OPT_JSON].i)
        explain(all, chosen, &o, n_texts);
    return CLI_OK;
}

static int plan_main(const args *a) {
    release_input in = {0};
    const int code = a->v[OPT_SUGGEST].i ? suggest(a, &in) : make_plan(a, &in);
    release_close(&in);
    return code;
}

const command command_plan = {
    .name = "plan", .bit = CMD_PLAN, .arguments = "MODEL [REFS]", .takes_model = 1,
    .max_positional = 1, .run = plan_main,
    .summary = "what a run would guarantee and need",
    .details =
        "Takes the options of 'run' and shows the guarantee, the clip bound and what it can do,\n"
        "the number of texts, memory, and the time from a few measured passes with made-up\n"
        "prompts. Of REFS it only counts the records: the files of a folder are not opened.\n"
        "--records N stands for REFS. With --ledger it shows the budget before and after, and\n"
        "charges nothing. The options for output (-o, --report, --jsonl) are accepted and do\n"
        "nothing.\n\n"
        "With --job DIR makes the folder of a job, whose texts several processes draw, each with\n"
        "'run --job DIR --shard i/n' and the same options. Charges it to --ledger, if one is\n"
        "given, and reads the records, so that every shard can be held to them.\n",
};
