/* audit.c - the lines of audits, and their generator of cases. */
#include "dp/audit/audit.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/status.h"

/* ---- Lines ---------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

dpi_status dpi_audit_begin(dpi_audit *a, const char *letter, const char *subject) {
    if (a->options.cancel && a->options.cancel(a->options.cancel_user))
        return dpi_fail(a->err, DPI_STATUS_CANCELLED, "cancelled between audits");
    a->result =
        (dpi_audit_result){.struct_size = sizeof a->result, .audit = letter, .subject = subject};
    a->started = now();
    return DPI_STATUS_OK;
}

bool dpi_audit_hold(dpi_audit *a, bool holds, const char *failure) {
    if (!holds && !a->result.failure)
        a->result.failure = failure;
    return holds;
}

void dpi_audit_end(dpi_audit *a, const char *quantity, double measured, double min, double max) {
    dpi_audit_result *r = &a->result;
    r->quantity = quantity;
    r->measured = measured;
    r->min = min;
    r->max = max;
    dpi_audit_hold(a, measured >= min && measured <= max, "outside the bounds"); /* NaN too */
    r->passed = r->failure == NULL;
    r->seconds = now() - a->started;
    a->n_failed += !r->passed;
    if (a->on_result)
        a->on_result(a->user, r);
}

void dpi_audit_end_chi_square(dpi_audit *a, double x, int32_t n) {
    const double alarm = a->options.false_alarm;
    dpi_audit_end(a, "p of chi-square", dpi_chi_square_tail(x, n), alarm, n < 3 ? 1 : 1 - alarm);
}

int32_t dpi_audit_count(const dpi_audit *a, int32_t n) {
    return (int32_t)fmax(1, rint(n * a->options.effort));
}

/* ---- A run ---------------------------------------------------------------------------------- */

static dpi_status check_options(const dpi_audit_options *o, dpi_audit_fn on_result,
                                const int32_t *n_failed, dpi_error *err) {
    if (!o || !on_result || !n_failed)
        return dpi_fail(err, DPI_STATUS_ARG, "the options, on_result or n_failed are NULL");
    if (o->struct_size != sizeof *o)
        return dpi_fail(err, DPI_STATUS_ARG, "audit options of %zu bytes, must be %zu",
                        o->struct_size, sizeof *o);
    if (!(o->effort >= .1 && o->effort <= 1)) /* with fewer cases a sound program fails some */
        return dpi_fail(err, DPI_STATUS_ARG, "effort is %g, must be in .1..1",
                        o->effort);
    if (!(o->false_alarm >= 1e-12 && o->false_alarm <= .01))
        return dpi_fail(err, DPI_STATUS_ARG, "false_alarm is %g, must be 1e-12..0.01",
                        o->false_alarm);
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_all(const dpi_audit_options *options, dpi_status (*const *audits)(dpi_audit *),
                         size_t n_audits, dpi_audit_fn on_result, void *user, int32_t *n_failed,
                         dpi_error *err) {
    DPI_TRY(check_options(options, on_result, n_failed, err));
    dpi_audit a = {.options = *options,
                   .on_result = on_result,
                   .user = user,
                   .err = err,
                   .seed = options->seed};
    *n_failed = 0;
    for (size_t i = 0; i < n_audits; i++) {
        dpi_status status = audits[i](&a);
        *n_failed = a.n_failed;
        if (status != DPI_STATUS_OK)
            return status;
    }
    return DPI_STATUS_OK;
}

/* ---- Cases ---------------------------------------------------------------------------------- */

uint64_t dpi_audit_random(dpi_audit *a) {
    uint64_t z = (a->seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int32_t dpi_audit_below(dpi_audit *a, int32_t n) {
    return (int32_t)(dpi_audit_random(a) % (uint64_t)n);
}

double dpi_audit_uniform(dpi_audit *a) { return (double)(dpi_audit_random(a) >> 11) * 0x1p-53; }

double dpi_audit_normal(dpi_audit *a) {
    double u = 1 - dpi_audit_uniform(a), v = dpi_audit_uniform(a);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
