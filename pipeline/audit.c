/* audit.c - the list of all audits: those of the mechanisms (dp/audit/), and of a model's logits. */
#include <string.h>

#include "base/status.h"
#include "dp/audit/audit.h"
#include "pipeline/audit_model.h"

void dpi_audit_options_init(dpi_audit_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    dpi_session_options_init(&options->session);
    options->seed = 1;
    options->effort = 1;
    options->false_alarm = 1e-4;
}

void dpi_audit_result_init(dpi_audit_result *result) {
    *result = (dpi_audit_result){.struct_size = sizeof *result};
}

static dpi_status check_options(const dpi_audit_options *o, dpi_audit_fn on_result,
                                const int32_t *n_failed, dpi_error *err) {
    if (!o || !on_result || !n_failed)
        return dpi_fail(err, DPI_STATUS_ARG, "the options, on_result or n_failed are NULL");
    if (o->struct_size != sizeof *o)
        return dpi_fail(err, DPI_STATUS_ARG, "audit options of %zu bytes, must be %zu",
                        o->struct_size, sizeof *o);
    if (!(o->effort > 0 && o->effort <= 1))
        return dpi_fail(err, DPI_STATUS_ARG, "effort is %g, must be above 0 and at most 1",
                        o->effort);
    if (!(o->false_alarm >= 1e-12 && o->false_alarm <= .01))
        return dpi_fail(err, DPI_STATUS_ARG, "false_alarm is %g, must be 1e-12..0.01",
                        o->false_alarm);
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_run(const dpi_audit_options *options, dpi_audit_fn on_result, void *user,
                         int32_t *n_failed, dpi_error *err) {
    static dpi_status (*const audits[])(dpi_audit *) = {
        dpi_audit_invisibleink, dpi_audit_filter,      dpi_audit_pace,       dpi_audit_accounting, dpi_audit_amin,
        dpi_audit_model,        dpi_audit_random_bits, dpi_audit_draws,      dpi_audit_noise,
        dpi_audit_assignment,   dpi_audit_game,        dpi_audit_one_run,
    };
    DPI_TRY(check_options(options, on_result, n_failed, err));
    dpi_audit a = {.options = *options,
                   .on_result = on_result,
                   .user = user,
                   .err = err,
                   .seed = options->seed};
    *n_failed = 0;
    for (size_t i = 0; i < sizeof audits / sizeof *audits; i++) {
        dpi_status status = audits[i](&a);
        *n_failed = a.n_failed;
        if (status != DPI_STATUS_OK)
            return status;
    }
    return DPI_STATUS_OK;
}
