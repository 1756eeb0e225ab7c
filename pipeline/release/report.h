/* report.h - the parts of a report, see dpinfer/report.h. Internal.
 *
 * docs/report.md lists the keys. A change of a key or of a text changes DPI_REPORT_SCHEMA. */
#ifndef DPI_RELEASE_REPORT_H
#define DPI_RELEASE_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "dpinfer/report.h"
#include "pipeline/claim/claim_json.h"
#include "draw/draw.h"
#include "pipeline/journal/json_text.h"
#include "pipeline/release/report_added.h"
#include "pipeline/release/run_claim.h"

enum { DPI_REPORT_SCHEMA = 6 };

struct dpi_report {
    dpi_claim claim; /* settled */
    dpi_run run;     /* of a run: the same */
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

/* A parsed report as one that can be written. */
void dpi_report_reopen(dpi_report *report);


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
/* Each value below a section, in the order of the file: path is where it is in the section,
 * "data.M", "mechanisms.1.T"; key the last part of it. */
typedef void (*dpi_report_row_fn)(void *user, const char *path, const char *key,
                                  const json_t *value);
void dpi_report_flatten(const json_t *section, dpi_report_row_fn on_row, void *user);
/* A number, flag or null as people read it: an upper bound is rounded up. Not for strings. */
void dpi_report_value(const char *key, const json_t *value, char *text, size_t size);
/* What the texts of the section `output` are, as far as somebody counted, in a sentence. */
struct dpi_text;
void dpi_report_put_texts(struct dpi_text *text, const json_t *output);

/* Plots, each an SVG element that is added to the text. */
void dpi_report_plot_guess(struct dpi_text *text, const json_t *report);
void dpi_report_plot_budget(struct dpi_text *text, const json_t *report);
void dpi_report_plot_charges(struct dpi_text *text, const json_t *report);
void dpi_report_plot_lengths(struct dpi_text *text, const json_t *report);
void dpi_report_plot_labels(struct dpi_text *text, const json_t *report);
/* What is drawn goes to the end of the text. */
dpi_draw dpi_report_draw(struct dpi_text *text);
#endif
