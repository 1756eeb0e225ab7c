/* lines.c - the lines of audits, and their generator of cases. */
#include "audit/lines.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/struct.h"

/* ---- Lines ---------------------------------------------------------------------------------- */

dpi_status dpi_audit_begin(dpi_audit *a, const char *kind, const char *subject) {
    if (a->options.cancel && a->options.cancel(a->options.cancel_user))
        return dpi_fail(a->err, DPI_STATUS_CANCELLED, "cancelled between audits");
    a->result =
        (dpi_audit_result){.struct_size = sizeof a->result, .audit = kind, .subject = subject};
    a->started = dpi_seconds();
    a->chance = 1;
    return DPI_STATUS_OK;
}

bool dpi_audit_hold(dpi_audit *a, bool holds, const char *failure) {
    if (!holds && !a->result.failure)
        a->result.failure = failure;
    return holds;
}

double dpi_audit_certain(const dpi_audit *a) { return a->options.false_alarm / 2; }

double dpi_audit_suspicious(const dpi_audit *a) { return sqrt(dpi_audit_certain(a)); }

void dpi_audit_chance(dpi_audit *a, double p) {
    a->chance = p < a->chance || isnan(p) ? p : a->chance;
}

static dpi_audit_verdict verdict_of(const dpi_audit *a) {
    if (a->result.failure || !(a->chance >= dpi_audit_certain(a))) /* NaN too */
        return DPI_AUDIT_FAILED;
    return a->chance >= dpi_audit_suspicious(a) ? DPI_AUDIT_PASSED : DPI_AUDIT_SUSPICIOUS;
}

void dpi_audit_end(dpi_audit *a, const char *quantity, double measured, double min, double max) {
    dpi_audit_result *r = &a->result;
    r->quantity = quantity;
    r->measured = measured;
    r->min = min;
    r->max = max;
    if (a->chance == 1)
        dpi_audit_hold(a, measured >= min && measured <= max, "outside the bounds"); /* NaN too */
    a->verdict = verdict_of(a);
    if (a->verdict != DPI_AUDIT_PASSED)
        dpi_audit_hold(a, false, "outside the bounds");
    r->passed = r->failure == NULL;
    r->n_looks = a->n_looks + 1;
    r->seconds = dpi_seconds() - a->started;
    if (a->on_result)
        a->on_result(a->user, r);
}

void dpi_audit_end_chance(dpi_audit *a, const char *quantity, double p) {
    dpi_audit_chance(a, p);
    dpi_audit_end(a, quantity, p, dpi_audit_suspicious(a), 1);
}

/* Q(n/2, x/2), from Q(1/2, x) = erfc(sqrt x), Q(1, x) = e^-x and
 * Q(s+1, x) = Q(s, x) + x^s e^-x / Gamma(s+1). */
double dpi_chi_square_tail(double x, int32_t n) {
    const double h = x / 2;
    double s = n % 2 ? .5 : 1, q = n % 2 ? erfc(sqrt(h)) : exp(-h);
    if (isinf(x))
        return 0;
    double term = exp(-h) * (n % 2 ? sqrt(h) * M_2_SQRTPI : h);
    for (; s < n / 2. - .25; s++) {
        q += term;
        term *= h / (s + 1);
    }
    return q;
}

double dpi_audit_normal_tail(double z) { return erfc(fabs(z) * M_SQRT1_2); }

double dpi_audit_chi_square(const int64_t *count, const double *p, int32_t n, double total) {
    double x = 0;
    for (int32_t i = 0; i < n; i++) {
        const double expected = total * p[i];
        if (expected > 0)
            x += pow((double)count[i] - expected, 2) / expected;
        else if (count[i] > 0)
            return INFINITY;
    }
    return x;
}

void dpi_audit_end_chi_square(dpi_audit *a, double x, int32_t n) {
    const double p = dpi_chi_square_tail(x, n), least = dpi_audit_suspicious(a) / (n < 3 ? 1 : 2);
    dpi_audit_chance(a, n < 3 ? p : 2 * fmin(p, 1 - p));
    dpi_audit_end(a, "p of chi-square", p, least, n < 3 ? 1 : 1 - least);
}

void dpi_audit_end_bound(dpi_audit *a, const char *quantity, double suspicious, double certain,
                         double max) {
    dpi_audit_chance(a, !(certain <= max)      ? 0
                        : !(suspicious <= max) ? dpi_audit_certain(a)
                                               : .5);
    dpi_audit_end(a, quantity, suspicious, -INFINITY, max);
}

static int32_t cell_of(const dpi_audit_cells *cells, int64_t z) {
    const int32_t last = cells->last;
    return last + (int32_t)(z < -last ? -last : z > last ? last : z);
}

void dpi_audit_cells_add(dpi_audit_cells *cells, int64_t z) {
    cells->count[cell_of(cells, z)]++;
    cells->n++;
}

double dpi_audit_gaussian(double variance, int64_t z) {
    return exp(-(double)(z * z) / (2 * variance));
}

void dpi_audit_end_cells(dpi_audit *a, const dpi_audit_cells *cells,
                         double (*weight)(double, int64_t), double parameter) {
    enum { REACH = 400 }; /* beyond, no law that is audited has a weight that counts */
    double p[2 * DPI_AUDIT_LAST + 1] = {0}, sum = 0;
    for (int32_t z = -REACH; z <= REACH; z++)
        sum += weight(parameter, z);
    for (int32_t z = -REACH; z <= REACH; z++)
        p[cell_of(cells, z)] += weight(parameter, z) / sum;
    a->result.n_cases = cells->n;
    dpi_audit_end_chi_square(
        a, dpi_audit_chi_square(cells->count, p, 2 * cells->last + 1, (double)cells->n),
        2 * cells->last);
}

int32_t dpi_audit_count(const dpi_audit *a, int32_t n) {
    return (int32_t)fmax(1, rint(n * a->options.effort));
}

void dpi_audit_options_init_size(dpi_audit_options *options, size_t size) {
    dpi_audit_options made = {0};
    dpi_session_options_init(&made.session);
    made.seed = 1;
    made.effort = 1;
    made.false_alarm = 1e-9;
    dpi_struct_init(options, size, &made, sizeof made);
}

DPI_STRUCT_DEFAULTS(dpi_audit_result, 0)

/* ---- A run ---------------------------------------------------------------------------------- */

static dpi_status check_options(const dpi_audit_options *o, dpi_audit_fn on_result,
                                const int32_t *n_failed, dpi_error *err) {
    if (!on_result || !n_failed)
        return dpi_fail(err, DPI_STATUS_ARG, "on_result or n_failed are NULL");
    if (!(o->effort >= .1 && o->effort <= 1)) /* with fewer cases a sound program fails some */
        return dpi_fail(err, DPI_STATUS_ARG, "effort is %g, must be in .1..1",
                        o->effort);
    if (!(o->false_alarm >= 1e-12 && o->false_alarm <= .01))
        return dpi_fail(err, DPI_STATUS_ARG, "false_alarm is %g, must be 1e-12..0.01",
                        o->false_alarm);
    return DPI_STATUS_OK;
}

/* The lines of an audit, in one or two looks. */
enum { MOST_LINES = 64 };
typedef struct lines {
    dpi_audit *audit;
    dpi_audit_fn on_result;
    void *user;
    dpi_audit_verdict first[MOST_LINES]; /* of the first look */
    int32_t n, n_suspicious;             /* lines of this look; suspicious ones of the first */
} lines;

/* A suspicion is for the second look to say; there, of other lines, only what is no chance. */
static void on_line(void *user, const dpi_audit_result *result) {
    lines *l = user;
    const dpi_audit_verdict verdict = l->audit->verdict;
    const int32_t at = l->n++;
    if (at >= MOST_LINES)
        return; /* `look` sees it */
    bool counts = verdict != DPI_AUDIT_SUSPICIOUS;
    if (l->audit->n_looks == 0) {
        l->first[at] = verdict;
        l->n_suspicious += !counts;
    } else {
        counts = l->first[at] == DPI_AUDIT_SUSPICIOUS ||
                 (l->first[at] == DPI_AUDIT_PASSED && verdict == DPI_AUDIT_FAILED);
    }
    if (!counts)
        return;
    l->audit->n_failed += !result->passed;
    l->on_result(l->user, result);
}

/* Looks at one audit, twice if the first look is suspicious. */
static dpi_status look(dpi_audit *a, dpi_status (*audit)(dpi_audit *), dpi_audit_fn on_result,
                       void *user) {
    lines l = {.audit = a, .on_result = on_result, .user = user};
    const double effort = a->options.effort;
    a->on_result = on_line;
    a->user = &l;
    a->n_looks = 0;
    dpi_status status = audit(a);
    if (status == DPI_STATUS_OK && l.n_suspicious > 0) {
        l.n = 0;
        a->n_looks = 1;
        a->options.effort = 4 * effort;
        status = audit(a);
        a->options.effort = effort;
    }
    if (status == DPI_STATUS_OK && l.n > MOST_LINES)
        status = dpi_fail(a->err, DPI_STATUS_LIMIT, "an audit has more than %d lines", MOST_LINES);
    return status;
}

dpi_status dpi_audit_all(const dpi_audit_options *options, dpi_status (*const *audits)(dpi_audit *),
                         size_t n_audits, dpi_audit_fn on_result, void *user, int32_t *n_failed,
                         dpi_error *err) {
    DPI_COPY_STRUCT(dpi_audit_options, o, options, err);
    DPI_TRY(check_options(&o, on_result, n_failed, err));
    dpi_audit a = {.options = o, .err = err, .seed = o.seed};
    *n_failed = 0;
    for (size_t i = 0; i < n_audits; i++) {
        a.seed = o.seed; /* the same cases, whatever ran before */
        const dpi_status status = look(&a, audits[i], on_result, user);
        *n_failed = a.n_failed;
        if (status != DPI_STATUS_OK)
            return status;
    }
    return DPI_STATUS_OK;
}

/* ---- Cases ---------------------------------------------------------------------------------- */

uint64_t dpi_audit_random(dpi_audit *a) {
    uint64_t z = 0;
    (void)!dpi_random_insecure(&a->seed, &z, sizeof z); /* it cannot fail */
    return z;
}

int32_t dpi_audit_below(dpi_audit *a, int32_t n) {
    return (int32_t)(dpi_audit_random(a) % (uint64_t)n);
}

double dpi_audit_uniform(dpi_audit *a) { return (double)(dpi_audit_random(a) >> 11) * 0x1p-53; }

double dpi_audit_normal(dpi_audit *a) {
    double u = 1 - dpi_audit_uniform(a), v = dpi_audit_uniform(a);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
