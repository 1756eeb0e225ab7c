/* cost_text.c - see cost_text.h. */
#include "pipeline/ledger/cost_text.h"

#include <math.h>
#include <string.h>

#include "base/format.h"
#include "dp/account/account.h"
#include "dpinfer/ledger.h"

/* By dpi_cost_kind. */
static const char *const kinds[] = {"zcdp", "range", "pure", "gaussian"};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

void dpi_cost_print(const dpi_cost *cost, char *text, size_t size) {
    size_t n = 0;
    for (int32_t i = 0; i < cost->n_parts && n < size; i++) {
        const dpi_cost_part *p = &cost->parts[i];
        n += (size_t)dpi_format(text + n, size - n, "%s%s %d %.17g", i > 0 ? "; " : "",
                                kinds[p->kind], p->n, p->x);
        if (p->kind == DPI_COST_GAUSSIAN && n < size)
            n += (size_t)dpi_format(text + n, size - n, " %.17g", p->q);
    }
    if (cost->allocation > 0 && n < size)
        n += (size_t)dpi_format(text + n, size - n, "; allocation %d", cost->allocation);
    if (cost->subsample > 0 && n < size)
        dpi_format(text + n, size - n, "; subsample %.17g", cost->subsample);
}

/* A part at *at, which goes behind it. dpi_cost_add has its ranges. */
static bool parse_part(const char **at, dpi_cost *cost) {
    int32_t kind = 0;
    char *end;
    const size_t length = strcspn(*at, " ");
    while (kind < N_KINDS && strncmp(kinds[kind], *at, length) != 0)
        kind++;
    const double n = dpi_strtod(*at + length, &end);
    if (kind == N_KINDS || !(n >= 1 && n <= 1 << 30))
        return false;
    const double x = dpi_strtod(end, &end);
    const double q = kind == DPI_COST_GAUSSIAN ? dpi_strtod(end, &end) : 0;
    *at = end;
    return dpi_cost_add(cost, kind, (int32_t)n, x, q, NULL) == DPI_STATUS_OK;
}

/* What stands around the parts, by its word. */
static bool parse_around(const char **at, const char *word, double *value) {
    char *end;
    if (strncmp(*at, word, strlen(word)) != 0)
        return false;
    *value = dpi_strtod(*at + strlen(word), &end);
    *at = end;
    return *value > 0 && *value <= DPI_ALLOCATION_MAX;
}

bool dpi_cost_parse(const char *text, dpi_cost *cost) {
    char again[sizeof((dpi_charge *)NULL)->cost];
    const char *at = text;
    double allocation = 0;
    dpi_cost_init(cost);
    do {
        if (!parse_around(&at, "allocation ", &allocation) &&
            !parse_around(&at, "subsample ", &cost->subsample) && !parse_part(&at, cost))
            return false;
    } while (strncmp(at, "; ", 2) == 0 && (at += 2));
    cost->allocation = (int32_t)allocation;
    /* No other text than that of a cost, and the whole of it. */
    dpi_cost_print(cost, again, sizeof again);
    return cost->n_parts > 0 && strcmp(again, text) == 0;
}

static double part_rho(const dpi_cost_part *p) {
    switch (p->kind) {
    case DPI_COST_ZCDP:
        return p->x;
    case DPI_COST_RANGE:
        return dpi_rho_token_bound(p->x);
    case DPI_COST_PURE: /* its range is at most twice that */
        return dpi_rho_token_bound(2 * p->x);
    case DPI_COST_GAUSSIAN:
        return dpi_rho_sum_bound(p->x);
    default:
        return INFINITY;
    }
}

double dpi_cost_rho(const dpi_cost *cost) {
    double rho = 0;
    for (int32_t i = 0; i < cost->n_parts; i++)
        rho = nextafter(
            rho + dpi_rho_total_bound(part_rho(&cost->parts[i]), cost->parts[i].n), INFINITY);
    return rho;
}
