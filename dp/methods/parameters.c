/* parameters.c - see parameters.h; values of parameters, from and to options and texts. */
#include "dp/methods/parameters.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "dp/exact/mean.h"
#include "dp/methods/method.h"

/* ---- Common parameters ---------------------------------------------------------------------- */

static const char *const accountants[] = {"zcdp", "br", "filter", NULL};
static const char *const adjacencies[] = {"replace-by-null", "add-remove", "zero-out", NULL};

const dpi_parameter dpi_common[DPI_COMMON_COUNT] = {
    [DPI_COMMON_ACCOUNTANT] = {.name = "accountant", .option = "accountant", .key = "accountant",
        .label = "accounting", .unit = "", .type = DPI_PARAMETER_CHOICE,
        .offset = DPI_FIELD(accountant), .choices = accountants,
        .help = "how cost is counted: zcdp; br, exact composition; filter, a budget a record"},
    [DPI_COMMON_ADJACENCY] = {.name = "adjacency", .option = "adjacency", .key = "adjacency",
        .label = "adjacency", .unit = "", .type = DPI_PARAMETER_CHOICE,
        .offset = DPI_FIELD(adjacency), .choices = adjacencies,
        .help = "what neighbouring lists of records are"},
    [DPI_COMMON_RHO] = {.name = "rho", .option = "rho", .key = "budget_rho", .label = "rho, budget",
        .unit = "", .type = DPI_PARAMETER_REAL, .offset = DPI_FIELD(rho), .max = 1e6,
        .min_open = 1, .is_optional = 1, .default_text = "the budget is given as epsilon",
        .help = "privacy budget in zero-concentrated DP (zCDP)"},
    [DPI_COMMON_EPSILON] = {.name = "epsilon", .option = "epsilon", .key = "budget_epsilon",
        .label = "epsilon, budget", .unit = "", .type = DPI_PARAMETER_REAL,
        .offset = DPI_FIELD(epsilon), .max = 1e6, .min_open = 1, .is_optional = 1,
        .default_text = "the budget is given as rho", .help = "privacy budget as epsilon at delta"},
    [DPI_COMMON_DELTA] = {.name = "delta", .option = "delta", .key = "budget_delta",
        .label = "at delta", .unit = "", .type = DPI_PARAMETER_REAL, .offset = DPI_FIELD(delta),
        .max = 1, .min_open = 1, .max_open = 1, .default_text = "none: epsilon is not computed",
        .help = "delta; must be less than 1 / number of records"},
    [DPI_COMMON_SUBSAMPLE] = {.name = "subsample", .option = "subsample", .key = "subsample",
        .label = "q, of joining", .unit = "", .type = DPI_PARAMETER_REAL,
        .offset = DPI_FIELD(subsample), .max = 1, .min_open = 1, .is_optional = 1,
        .default_text = "each record is in one batch",
        .help = "each record joins a random batch with this probability, else none"},
    [DPI_COMMON_ALLOCATION] = {.name = "allocation", .option = "allocation", .key = "allocation",
        .label = "k, secret batches", .unit = "batches", .type = DPI_PARAMETER_INT,
        .offset = DPI_FIELD(allocation), .min = 2, .max = DPI_ALLOCATION_MAX, .is_optional = 2,
        .default_text = "which batch a record is in may be known",
        .help = "each record is in one of this many batches, and which one stays secret"},
    [DPI_COMMON_N_TOKENS] = {.name = "n_tokens", .option = "n-predict", .key = "T",
        .label = "T, tokens a text", .unit = "tokens", .type = DPI_PARAMETER_INT,
        .offset = DPI_FIELD(n_tokens), .min = 1, .max = DPI_TOKENS_MAX,
        .default_text = "none: it has to be given",
        .help = "the most tokens of one text"},
    [DPI_COMMON_DENOMINATOR] = {.name = "denominator", .option = "batch", .key = "B",
        .label = "B, slots a text", .unit = "records", .type = DPI_PARAMETER_INT,
        .offset = DPI_FIELD(denominator), .min = 1, .max = DPI_REF_MAX, .is_optional = 1,
        .default_text = "the number of slots",
        .help = "reference slots of a text, which sums over references are divided by"},
    [DPI_COMMON_TAU] = {.name = "tau", .option = "temp", .key = "tau", .label = "tau, temperature",
        .unit = "", .type = DPI_PARAMETER_REAL, .offset = DPI_FIELD(tau), .min = .01, .max = 100,
        .default_value = 1, .help = "temperature tau"},
    [DPI_COMMON_N_VOCAB] = {.name = "n_vocab", .option = "n-vocab", .key = "n_vocab",
        .label = "V, vocabulary", .unit = "tokens", .type = DPI_PARAMETER_INT,
        .offset = DPI_FIELD(n_vocab), .min = 1, .max = DPI_WEIGHTS_MAX,
        .default_text = "none: it has to be given", .help = "tokens of the vocabulary"},
    [DPI_COMMON_CLIP] = {.name = "clip", .option = "clip", .key = "clip", .label = "C, clip bound",
        .unit = "logits", .type = DPI_PARAMETER_REAL, .offset = DPI_FIELD(clip), .max = 2047,
        .min_open = 1, .is_optional = 1, .default_text = "twice that of zcdp",
        .help = "clip bound, with the accountant filter alone"},
    [DPI_COMMON_CENTER] = {.name = "center", .option = "center", .key = "center",
        .label = "centred", .unit = "", .type = DPI_PARAMETER_FLAG, .offset = DPI_FIELD(center),
        .help = "shift logits of a record to the public ones before they are clipped"},
    [DPI_COMMON_MAX_PER_UNIT] = {.name = "max_per_unit", .option = "max-per-unit", .key = "M",
        .label = "M, records a unit", .unit = "records", .type = DPI_PARAMETER_INT,
        .offset = DPI_FIELD(max_per_unit), .min = 1, .max = DPI_UNIT_RECORDS_MAX, .is_optional = 1,
        .default_text = "each record is a unit of its own",
        .help = "the most records of a unit that are used"},
};

static const char *const paces[] = {"none", "top", "change", "share", "auto", NULL};

const dpi_parameter dpi_pace_kind = {
    .name = "pace", .option = "pace", .key = "pace", .label = "pace", .unit = "",
    .type = DPI_PARAMETER_CHOICE, .offset = DPI_FIELD(pace), .choices = paces,
    .default_text = "auto in a run, none in a sampler of its own",
    .help = "which tokens pay, by the public logits alone: all (none), or the unsure ones"};
const dpi_parameter dpi_pace_theta = {
    .name = "pace_theta", .option = "pace-theta", .key = "pace_theta", .label = "theta of the pace",
    .unit = "", .type = DPI_PARAMETER_REAL, .offset = DPI_FIELD(pace_theta), .max = 1,
    .min_open = 1, .is_optional = 1, .default_text = "found from public texts",
    .help = "top, share: free where the likeliest token is likelier; change: where records could "
            "change less"};

/* ---- Values --------------------------------------------------------------------------------- */

static bool is_int(const dpi_parameter *p) { return p->type != DPI_PARAMETER_REAL; }

static int32_t count_choices(const dpi_parameter *p) {
    int32_t n = 0;
    while (p->choices[n])
        n++;
    return n;
}

static void print_choices(const dpi_parameter *p, char *text, size_t size) {
    size_t n = 0;
    for (int32_t i = 0; p->choices[i] && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i > 0 ? "|" : "", p->choices[i]);
}

void dpi_parameter_range(const dpi_parameter *p, char *text, size_t size) {
    size_t n = 0;
    if (p->type == DPI_PARAMETER_CHOICE)
        print_choices(p, text, size);
    else if (p->type == DPI_PARAMETER_FLAG)
        snprintf(text, size, "0..1");
    else if (p->type == DPI_PARAMETER_INT)
        n = (size_t)dpi_format(text, size, "%.0f..%.0f", p->min, p->max);
    else if (p->min_open || p->max_open)
        n = (size_t)dpi_format(text, size, "%g %s x %s %g", p->min, p->min_open ? "<" : "<=",
                               p->max_open ? "<" : "<=", p->max);
    else
        n = (size_t)dpi_format(text, size, "%g..%g", p->min, p->max);
    if (p->zero && n > 0 && n < size)
        snprintf(text + n, size - n, ", or 0 (%s)", p->zero);
}

/* Written so that a NaN is refused. */
static bool is_allowed(const dpi_parameter *p, double x) {
    if (is_int(p) && !(fabs(x) <= 0x1p53 && x == rint(x)))
        return false;
    if (p->type == DPI_PARAMETER_FLAG)
        return x >= 0 && x <= 1;
    if (p->type == DPI_PARAMETER_CHOICE)
        return x >= 0 && x < count_choices(p);
    if ((p->zero || p->is_optional) && x == 0)
        return true;
    return (p->min_open ? x > p->min : x >= p->min) && (p->max_open ? x < p->max : x <= p->max);
}

dpi_status dpi_parameter_check(const dpi_parameter *p, double value, dpi_error *err) {
    char range[128];
    if (is_allowed(p, value))
        return DPI_STATUS_OK;
    dpi_parameter_range(p, range, sizeof range);
    if (p->type == DPI_PARAMETER_CHOICE)
        return dpi_fail(err, DPI_STATUS_ARG, "%s is %.10g, must be 0..%d (%s)", p->name, value,
                        count_choices(p) - 1, range);
    if (p->is_optional && !p->zero)
        return dpi_fail(err, DPI_STATUS_ARG, "%s is %.10g, must be %s, or 0 (%s)", p->name, value,
                        range, p->default_text);
    return dpi_fail(err, DPI_STATUS_ARG, "%s is %.10g, must be %s", p->name, value, range);
}

double dpi_parameter_value(const dpi_parameter *p, const dpi_sampler_options *options) {
    const char *field = (const char *)options + p->offset;
    int32_t i;
    double x;
    if (is_int(p)) {
        memcpy(&i, field, sizeof i);
        return i;
    }
    memcpy(&x, field, sizeof x);
    return x;
}

static void store(const dpi_parameter *p, dpi_sampler_options *options, double value) {
    char *field = (char *)options + p->offset;
    const int32_t i = is_int(p) ? (int32_t)value : 0;
    if (is_int(p))
        memcpy(field, &i, sizeof i);
    else
        memcpy(field, &value, sizeof value);
}

void dpi_parameter_default(const dpi_parameter *p, dpi_sampler_options *options) {
    store(p, options, p->default_value);
}

dpi_status dpi_parameter_set(const dpi_parameter *p, dpi_sampler_options *options, double value,
                             dpi_error *err) {
    DPI_TRY(dpi_parameter_check(p, value, err));
    store(p, options, value);
    return DPI_STATUS_OK;
}

/* ---- Texts ---------------------------------------------------------------------------------- */

void dpi_parameter_print(const dpi_parameter *p, const dpi_sampler_options *options, char *text,
                         size_t size) {
    const double value = dpi_parameter_value(p, options);
    if (p->type == DPI_PARAMETER_CHOICE && is_allowed(p, value))
        snprintf(text, size, "%s", p->choices[(int32_t)value]);
    else
        dpi_format(text, size, "%.*g", is_int(p) ? 10 : 17, value);
}

/* Decimal digits, sign, point and exponent alone: no spaces, hex, inf or nan. */
static bool parse_number(const char *text, double *value) {
    if (text[0] == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0')
        return false;
    char *end;
    errno = 0;
    *value = dpi_strtod(text, &end);
    return *end == '\0' && isfinite(*value);
}

static bool parse(const dpi_parameter *p, const char *text, double *value) {
    if (p->type != DPI_PARAMETER_CHOICE)
        return parse_number(text, value) &&
               !(is_int(p) && text[strspn(text, "0123456789+-")] != '\0');
    for (int32_t i = 0; p->choices[i]; i++)
        if (strcmp(text, p->choices[i]) == 0) {
            *value = i;
            return true;
        }
    return false;
}

dpi_status dpi_parameter_read(const dpi_parameter *p, const char *text, double *value,
                              dpi_error *err) {
    char range[128];
    if (parse(p, text, value) && is_allowed(p, *value))
        return DPI_STATUS_OK;
    dpi_parameter_range(p, range, sizeof range);
    return dpi_fail(err, DPI_STATUS_ARG, "%s is '%.40s', must be %s", p->name, text, range);
}

dpi_status dpi_parameter_parse(const dpi_parameter *p, dpi_sampler_options *options,
                               const char *text, dpi_error *err) {
    double value;
    DPI_TRY(dpi_parameter_read(p, text, &value, err));
    store(p, options, value);
    return DPI_STATUS_OK;
}
