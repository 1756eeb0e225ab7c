/* draw.h - pages of HTML and plots in SVG: no script, nothing from outside, the same bytes in every
 * locale. Nothing here fails; the caller looks afterwards whether `to` has taken all. Internal.
 *
 * `kind` is the class of an element, by which the style knows it: c0 to c5 for the colours of
 * series, with d1 to d3 ("c1 d2") for their dashes; frame, grid, limit and rest; NULL: none. */
#ifndef DPI_DRAW_H
#define DPI_DRAW_H

#include <stddef.h>
#include <stdio.h>

enum { DPI_DRAW_COLOURS = 6, DPI_DRAW_DASHES = 4 };

/* Where the bytes go. */
typedef struct dpi_draw {
    void (*write)(void *to, const char *bytes, size_t n_bytes);
    void *to;
} dpi_draw;

dpi_draw dpi_draw_to_file(FILE *file);

/* Text of any origin: what is markup in it is escaped, a control character becomes '?'. */
void dpi_draw_text(dpi_draw d, const char *text);

/* A page up to its body, and its end. The style knows the classes first, label, no, early, note,
 * wide, values, beside (no word of it is broken), n, mark (a cell of one line) and small. */
void dpi_draw_page_begin(dpi_draw d, const char *title);
void dpi_draw_page_end(dpi_draw d);

/* ---- Plots ----------------------------------------------------------------------------------- */

/* A frame in a plot: x of its sides and y of its ends, in the plot's units; y grows downwards. */
typedef struct dpi_frame {
    dpi_draw to;
    double left, right, top, bottom;
} dpi_frame;

/* Where shares of a frame are: from its left side, and from its bottom. */
double dpi_frame_x(const dpi_frame *f, double share);
double dpi_frame_y(const dpi_frame *f, double share);
/* The left side and the bottom as lines. */
void dpi_frame_axes(const dpi_frame *f);
/* What stands below a place of the bottom; and beside one of the left side, with a line across. */
void dpi_frame_tick_x(const dpi_frame *f, double share, const char *text);
void dpi_frame_tick_y(const dpi_frame *f, double share, const char *text);
/* What the axes are. */
void dpi_frame_names(const dpi_frame *f, const char *x, const char *y);

/* A plot in a page: it has a caption. */
void dpi_plot_begin(dpi_draw d, const char *title, double width, double height);
void dpi_plot_end(dpi_draw d);
/* A small one, in a line of a table. */
void dpi_plot_begin_small(dpi_draw d, const char *title, double width, double height);
void dpi_plot_end_small(dpi_draw d);
/* An image of its own, as a file. */
void dpi_image_begin(dpi_draw d, const char *title, double width, double height);
void dpi_image_end(dpi_draw d);

/* A length below 0 counts as 0. Who points at the bar sees "name: value"; NULL: nothing. */
void dpi_plot_bar(dpi_draw d, const char *kind, double x, double y, double width, double height,
                  const char *name, const char *value);
void dpi_plot_line(dpi_draw d, const char *kind, double x1, double y1, double x2, double y2);
void dpi_plot_point(dpi_draw d, const char *kind, double x, double y);
/* A line through points: one call for each between begin and end. */
void dpi_plot_curve_begin(dpi_draw d, const char *kind);
void dpi_plot_curve_point(dpi_draw d, double x, double y);
void dpi_plot_curve_end(dpi_draw d);
/* anchor: start, middle or end, which is the part of the text that is at x. */
void dpi_plot_label(dpi_draw d, const char *kind, double x, double y, const char *anchor,
                    const char *text);
/* A line of the legend: how the kind looks, and its name. */
void dpi_plot_key(dpi_draw d, const char *kind, double x, double y, const char *name);

#endif
