/* cmd_plan.c - `dpinfer plan`: what a run would guarantee and need, before it reads a record. */
#include <stdio.h>

#include "tools/commands.h"
#include "tools/facts.h"
#include "tools/release_options.h"

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

static void add_time(facts *f, const dpi_claim *claim, const dpi_release_plan *plan) {
    char all[40], reading[40], most[40];
    facts_real(f, "read_bytes_per_second", NULL, plan->read_bytes_per_second);
    facts_real(f, "seconds_at_least", NULL, plan->seconds_at_least);
    facts_int(f, "usual_prompt_tokens", NULL, plan->n_prompt_usual);
    facts_real(f, "prompt_tokens_per_second", NULL, plan->prompt_tokens_per_second);
    facts_real(f, "step_seconds", NULL, plan->step_seconds);
    facts_real(f, "seconds", NULL, plan->seconds);
    facts_real(f, "seconds_reading", NULL, plan->seconds_reading);
    facts_real(f, "seconds_most", NULL, plan->seconds_most);
    facts_line(f, "measured", "%.4g prompt tokens a second; %.3g s a step of %d rows",
               plan->prompt_tokens_per_second, plan->step_seconds, plan->rows_per_step);
    facts_line(f, "time", "%s, %s of it for prompts: %d text%s of %d tokens",
               time_text(plan->seconds, all, sizeof all),
               time_text(plan->seconds_reading, reading, sizeof reading), claim->n_texts,
               claim->n_texts == 1 ? "" : "s", claim->method.n_tokens);
    if (claim->record_in_prompt)
        facts_line(f, "", "with records of %d tokens (--ref-tokens); the longest that fit: %s",
                   plan->n_record_usual, time_text(plan->seconds_most, most, sizeof most));
}

static int add_needs(facts *f, const args *a, const release_input *in) {
    dpi_release_plan plan;
    dpi_release_plan_init(&plan);
    plan.n_record_usual = (int32_t)a->v[OPT_REF_TOKENS].i;
    dpi_error err;
    if (dpi_release_plan_get(in->release, &plan, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_FAILED, &err);
    facts_int(f, "n_ctx", "context", plan.n_ctx);
    facts_int(f, "max_prompt_tokens", "longest prompt", plan.n_prompt_most);
    facts_int(f, "public_prompt_tokens", "public prompt", plan.n_prompt_public);
    facts_int(f, "shared_prompt_tokens", "shared beginning", plan.n_prompt_shared);
    facts_int(f, "parallel", "texts at a time", plan.n_parallel);
    facts_int(f, "rows_per_step", "rows per step", plan.rows_per_step);
    facts_int(f, "weight_bytes", NULL, plan.weight_bytes);
    facts_int(f, "model_bytes", NULL, plan.model_bytes);
    facts_int(f, "session_bytes", NULL, plan.session_bytes);
    facts_int(f, "memory_bytes", NULL, plan.memory_bytes);
    const double mib = 1024 * 1024;
    facts_line(f, "memory", "%.1f MiB: program and model %.1f, caches and work space %.1f",
               (double)plan.memory_bytes / mib, (double)plan.model_bytes / mib,
               (double)plan.session_bytes / mib);
    add_time(f, dpi_release_claim(in->release), &plan);
    return CLI_OK;
}

static int plan_main(const args *a) {
    release_input in;
    facts f;
    facts_init(&f);
    int code = release_open(a, a->v[OPT_QUIET].i, NULL, &in);
    if (code == CLI_OK)
        code = facts_claim(&f, dpi_release_claim(in.release));
    if (code == CLI_OK)
        code = add_needs(&f, a, &in);
    if (code == CLI_OK)
        code = facts_print(&f, a->v[OPT_JSON].i, stdout);
    facts_free(&f);
    release_close(&in);
    return code;
}

const command command_plan = {
    .name = "plan", .bit = CMD_PLAN, .arguments = "MODEL [REFS]", .takes_model = 1,
    .max_positional = 1, .run = plan_main,
    .summary = "what a run would guarantee and need",
    .details =
        "Takes the options of 'run' and shows the guarantee, the clip bound, the number of\n"
        "texts, memory and the time, from a few measured passes with made-up prompts. Of REFS it only counts the records: the\n"
        "files of a folder are not opened. --records N stands for REFS. The options for\n"
        "output (-o, --report, --jsonl) are accepted and do nothing.\n",
};
