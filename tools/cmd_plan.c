/* cmd_plan.c - `dpinfer plan`: what a run would guarantee and need, before it reads a record. */
#include "tools/commands.h"
#include "tools/facts.h"
#include "tools/release_options.h"

static int add_needs(facts *f, const release_input *in) {
    dpi_release_plan plan;
    dpi_release_plan_init(&plan);
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
    if (plan.read_bytes_per_second <= 0)
        return CLI_OK;
    const dpi_claim *claim = dpi_release_claim(in->release);
    facts_real(f, "read_bytes_per_second", NULL, plan.read_bytes_per_second);
    facts_real(f, "seconds_at_least", NULL, plan.seconds_at_least);
    facts_line(f, "time", "at least %.3g s for %.0f tokens, at the %.1f GB/s of this machine",
               plan.seconds_at_least, (double)claim->n_texts * (double)claim->method.n_tokens,
               plan.read_bytes_per_second / 1e9);
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
        code = add_needs(&f, &in);
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
        "texts, memory and a lower bound of the time. Of REFS it only counts the records: the\n"
        "files of a folder are not opened. --records N stands for REFS. The options for\n"
        "output (-o, --report, --jsonl) are accepted and do nothing.\n",
};
