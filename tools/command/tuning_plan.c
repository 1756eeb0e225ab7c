#include "tools/command/tuning_plan.h"

#include <math.h>

#include "tools/terminal/facts.h"

static void add_memory(facts *f, const dpi_finetune_plan *p) {
    const double mib = 1 << 20;
    facts_int(f, "memory_bytes", NULL, p->memory_bytes);
    facts_int(f, "program_bytes", NULL, p->program_bytes);
    facts_int(f, "state_bytes", NULL, p->state_bytes);
    facts_int(f, "step_bytes", NULL, p->step_bytes);
    facts_int(f, "thread_bytes", NULL, p->thread_bytes);
    facts_int(f, "record_bytes", NULL, p->record_bytes);
    facts_int(f, "threads", NULL, p->n_threads);
    facts_line(f, "memory", "%.1f MiB: program and model %.1f, weights in f32 and moments %.1f, a "
                            "step %.1f, %d threads with %.1f each, records %.1f at most",
               (double)p->memory_bytes / mib, (double)p->program_bytes / mib,
               (double)p->state_bytes / mib, (double)p->step_bytes / mib, p->n_threads,
               (double)p->thread_bytes / mib, (double)p->record_bytes / mib);
}

static void add_claim(facts *f, const dpi_claim *c) {
    const dpi_claim_part *p = dpi_claim_find(c, "gradients");
    char label[160];
    dpi_claim_label(c, label, sizeof label);
    facts_text(f, "label", "label", label);
    if (isfinite(c->epsilon))
        facts_bound(f, "epsilon", "epsilon", c->epsilon);
    facts_real(f, "delta", "delta", c->delta);
    facts_real(f, "sigma", "sigma, noise", dpi_claim_value(p, "sigma"));
    facts_real(f, "sampling", "q, of joining", dpi_claim_value(p, "sampling"));
    facts_int(f, "steps", "steps", p->n_runs);
    facts_int(f, "numbers", dpi_claim_value(p, "rank") > 0 ? "numbers of the adapter" : "weights",
              (int64_t)dpi_claim_value(p, "numbers"));
}

int tuning_plan_print(const args *a, const dpi_finetune_options *options) {
    dpi_finetune_plan plan;
    dpi_finetune *finetune = NULL;
    dpi_error err;
    double seconds = 0;
    facts f;
    dpi_finetune_plan_init(&plan);
    dpi_status status = dpi_finetune_plan_of(options, &plan, &err);
    if (status != DPI_STATUS_OK)
        return cli_fail_status(status, &err);
    facts_init(&f);
    status = dpi_finetune_open(options, &finetune, &err);
    if (status == DPI_STATUS_OK)
        status = dpi_finetune_measure(finetune, &seconds, &err);
    if (status == DPI_STATUS_OK)
        add_claim(&f, dpi_finetune_claim_of(finetune));
    add_memory(&f, &plan);
    if (status == DPI_STATUS_OK) {
        facts_real(&f, "step_seconds", NULL, seconds);
        facts_real(&f, "seconds", NULL, seconds * options->n_steps);
        facts_line(&f, "time", "%.3g s a step, %.3g s in all, where every row has %d tokens",
                   seconds, seconds * options->n_steps, options->n_positions);
    }
    int code = facts_print(&f, a->v[OPT_JSON].i, stdout);
    if (status != DPI_STATUS_OK) /* memory is told all the same */
        code = cli_fail_status(status, &err);
    facts_free(&f);
    dpi_finetune_free(finetune);
    return code;
}
