/* audit.c - the list of all audits. */
#include "audit/lines.h"

dpi_status dpi_audit_run(const dpi_audit_options *options, dpi_audit_fn on_result, void *user,
                         int32_t *n_failed, dpi_error *err) {
    static dpi_status (*const audits[])(dpi_audit *) = {
        dpi_audit_invisibleink, dpi_audit_filter,     dpi_audit_pace,        dpi_audit_mask,
        dpi_audit_products,     dpi_audit_merge,      dpi_audit_accounting,  dpi_audit_amin,
        dpi_audit_tang,         dpi_audit_votes,      dpi_audit_model,       dpi_audit_random_bits,
        dpi_audit_draws,        dpi_audit_noise,      dpi_audit_assignment,  dpi_audit_game,
        dpi_audit_one_run,      dpi_audit_counts,     dpi_audit_path,        dpi_audit_evolution,
        dpi_audit_canaries,     dpi_audit_steer,
    };
    return dpi_audit_all(options, audits, sizeof audits / sizeof *audits, on_result, user, n_failed,
                         err);
}
