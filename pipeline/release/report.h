/* report.h - the parts of a report, see dpinfer/report.h. Internal.
 *
 * docs/report.md lists the keys. A change of a key or of a text changes DPI_REPORT_SCHEMA. */
#ifndef DPI_RELEASE_REPORT_H
#define DPI_RELEASE_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "dpinfer/report.h"
#include "draw/draw.h"
#include "pipeline/journal/json_text.h"
#include "pipeline/release/report_added.h"

enum { DPI_REPORT_SCHEMA = 4 };

struct dpi_report {
    dpi_claim claim;
    json_t *software, *model; /* sections that are believed */
    dpi_report_added added;
    json_t *recorded;         /* parsed: all of it, else NULL */
    bool complete;            /* parsed: the flag */
};

/* The whole report of a claim. Takes `software`, `model` and `output` (NULL: out of memory). NULL
 * if out of memory. A function of its arguments and nothing else. */
json_t *dpi_report_json(const dpi_claim *claim, bool complete, json_t *software, json_t *model,
                        json_t *output, const dpi_report_added *added);

/* The section `plain`. NULL if out of memory. */
json_t *dpi_report_plain(const dpi_claim *claim);

/* The section `parameters`: everything that the guarantee is computed from. NULL if out of
 * memory. */
json_t *dpi_report_parameters(const dpi_claim *claim);
/* The same back into a claim; its plan is not made. Errors: FORMAT. */
dpi_status dpi_report_read_parameters(const json_t *parameters, dpi_claim *claim, dpi_error *err);

/* A parsed report as one that can be written: its plan and its charge are made again. Errors: those
 * of dpi_report_verify. */
dpi_status dpi_report_reopen(dpi_report *report, dpi_error *err);

/* The report in Markdown; the caller frees it with free. NULL if out of memory. */
char *dpi_report_markdown(const json_t *report);
/* The same as a page of HTML, with plots. */
char *dpi_report_html(const json_t *report);

/* ---- What both forms share ------------------------------------------------------------------- */

/* Headings of the checklist, and the values that stand below them; heading NULL: the same one. */
typedef struct dpi_report_row {
    const char *heading, *section, *key, *label;
} dpi_report_row;
extern const dpi_report_row dpi_report_rows[];
size_t dpi_report_row_count(void);
/* A number, flag or null as people read it: an upper bound is rounded up. Not for strings. */
void dpi_report_value(const char *key, const json_t *value, char *text, size_t size);

/* Plots, each an SVG element that is added to the text. */
struct dpi_text;
void dpi_report_plot_guess(struct dpi_text *text, const json_t *report);
void dpi_report_plot_budget(struct dpi_text *text, const json_t *report);
void dpi_report_plot_charges(struct dpi_text *text, const json_t *report);
void dpi_report_plot_lengths(struct dpi_text *text, const json_t *report);
void dpi_report_plot_labels(struct dpi_text *text, const json_t *report);
/* What is drawn goes to the end of the text. */
dpi_draw dpi_report_draw(struct dpi_text *text);
/* Text with what is markup escaped. */
void dpi_report_markdown_text(struct dpi_text *text, const char *string);

#endif
