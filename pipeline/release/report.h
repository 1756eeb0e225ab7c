/* report.h - the parts of a report, see dpinfer/report.h. Internal.
 *
 * docs/report.md lists the keys. A change of a key or of a text changes DPI_REPORT_SCHEMA. */
#ifndef DPI_RELEASE_REPORT_H
#define DPI_RELEASE_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "dpinfer/report.h"
#include "pipeline/journal/json_text.h"

enum { DPI_REPORT_SCHEMA = 3 };

struct dpi_report {
    dpi_claim claim;
    json_t *software, *model; /* sections that are believed */
    json_t *recorded;         /* parsed: all of it, else NULL */
    bool complete;            /* parsed: the flag */
};

/* The whole report of a claim. Takes `software` and `model` (NULL: out of memory). NULL if out of
 * memory. A function of its arguments and nothing else. */
json_t *dpi_report_json(const dpi_claim *claim, bool complete, json_t *software, json_t *model);

/* The section `parameters`: everything that the guarantee is computed from. NULL if out of memory. */
json_t *dpi_report_parameters(const dpi_claim *claim);
/* The same back into a claim; its plan is not made. Errors: FORMAT. */
dpi_status dpi_report_read_parameters(const json_t *parameters, dpi_claim *claim, dpi_error *err);

/* The report in Markdown; the caller frees it with free. NULL if out of memory. */
char *dpi_report_markdown(const json_t *report);

#endif
