/* statement.c - words and numbers of statements; see dpinfer/run.h. */
#include "pipeline/run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "base/text.h"
#include "dpinfer/ledger.h"

/* ---- Words ----------------------------------------------------------------------------------- */

static const char *const ADJACENCY[] = {
    [DPI_ADJACENCY_REPLACE_BY_NULL] = "replace-by-null",
    [DPI_ADJACENCY_ADD_REMOVE] = "add-remove",
    [DPI_ADJACENCY_ZERO_OUT] = "zero-out",
    [DPI_ADJACENCY_WORD] = "another-word",
};

const char *dpi_adjacency_name(int32_t adjacency) { return ADJACENCY[adjacency]; }

void dpi_bound_text(double value, int32_t digits, char *text, size_t size) {
    dpi_format(text, size, "%.*g", digits, value);
    /* Half a unit in the last digit is at most this share of the value. */
    double step = 1;
    for (int32_t i = 0; i < digits; i++)
        step /= 10;
    for (double x = value; dpi_strtod(text, NULL) < value;) {
        x += value * step;
        dpi_format(text, size, "%.*g", digits, x);
    }
}

size_t dpi_fact_text(const dpi_fact *fact, char *text, size_t size) {
    char bound[40];
    int n = 0;
    switch (fact->type) {
    case DPI_FACT_TEXT:
        n = snprintf(text, size, "%s", fact->text);
        break;
    case DPI_FACT_INT:
        n = snprintf(text, size, "%" PRId64, fact->integer);
        break;
    case DPI_FACT_REAL:
        n = dpi_format(text, size, "%.10g", fact->real);
        break;
    case DPI_FACT_BOUND:
        dpi_bound_text(fact->real, 10, bound, sizeof bound);
        n = snprintf(text, size, "%s", bound);
        break;
    default:
        n = snprintf(text, size, "%s", fact->integer ? "yes" : "no");
    }
    return n > 0 ? (size_t)n : 0;
}
