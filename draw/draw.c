/* draw.c - see draw.h. */
#include "draw/draw.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Colours by `color` alone, so that a page in the dark has others. */
static const char plot_style[] =
    "svg{color:#1b1f24}svg text{font:13px 'DejaVu Sans',Verdana,sans-serif;fill:currentColor}\n"
    "svg line,svg polyline{fill:none;stroke:currentColor;stroke-width:2}"
    "svg rect,svg circle{fill:currentColor}svg circle{fill-opacity:.7}text.title{font-weight:bold}"
    "\n.c0{color:#1b6ca8}.c1{color:#c0392b}.c2{color:#2e8b57}.c3{color:#7d3c98}.c4{color:#b7950b}"
    ".c5{color:#57606a}.d1{stroke-dasharray:8 3}.d2{stroke-dasharray:2 3}"
    ".d3{stroke-dasharray:10 3 2 3}\n"
    "svg .frame,svg .grid,svg .limit{stroke-width:1}.frame{color:#57606a}.grid{color:#d0d7de}"
    ".limit{color:#a40e26;stroke-dasharray:5 4}.rest{color:#e4e9ee}\n";

static const char page_style[] =
    ":root{color-scheme:light dark}body{font:16px/1.5 'DejaVu Sans',Verdana,sans-serif;"
    "color:#1b1f24;background:#fff;margin:0 auto;max-width:52rem;padding:1.5rem}\n"
    "h1{font-size:1.7rem;margin:0 0 .5rem}h2{font-size:1.15rem;margin:1.6rem 0 .4rem;"
    "border-bottom:1px solid #d0d7de;padding-bottom:.2rem}\n"
    ".label{display:inline-block;padding:.15rem .7rem;border-radius:1rem;font-weight:bold;"
    "background:#dafbe1;color:#116329}.label.no{background:#ffebe9;color:#a40e26}\n"
    ".early{background:#fff8c5;color:#1b1f24;padding:.5rem .8rem}"
    ".note{border-left:.3rem solid #c0392b;padding:.3rem .8rem}\n"
    "dl{display:grid;grid-template-columns:11rem 1fr;gap:.25rem 1rem;margin:.5rem 0}"
    "dt{color:#6a737d}dd{margin:0;overflow-wrap:anywhere}dd ul{margin:0;padding-left:1.1rem}\n"
    "table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.5rem 0 1rem}"
    "td,th{border-bottom:1px solid #d0d7de;padding:.25rem .5rem;text-align:left;"
    "overflow-wrap:anywhere}\n"
    "th.n,td.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}"
    "table.values{table-layout:fixed}table.values th.n{width:9rem}.wide{overflow-x:auto}\n"
    "table.beside th,table.beside td{overflow-wrap:break-word}td.mark{white-space:nowrap}\n"
    "pre,code{font-family:'DejaVu Sans Mono',monospace;font-size:.82rem;overflow-wrap:anywhere}"
    "pre{white-space:pre-wrap}\n"
    "figure{margin:1rem 0}figcaption{font-weight:bold;font-size:.95rem}"
    "svg{width:100%;max-width:40rem;height:auto}svg.small{width:300px;max-width:none}\n"
    "@media screen and (prefers-color-scheme:dark){body{color:#e6eaf0;background:#14181e}"
    "h2,td,th{border-color:#38414d}svg{color:#e6eaf0}.c0{color:#6cb3ea}.c1{color:#f0877b}"
    ".frame{color:#8b949e}.grid,.rest{color:#38414d}dt{color:#8b949e}}\n"
    "@media print{.first{break-after:page}body{max-width:none;padding:0}}\n";

static void write_to_file(void *to, const char *bytes, size_t n_bytes) {
    fwrite(bytes, 1, n_bytes, to);
}

dpi_draw dpi_draw_to_file(FILE *file) { return (dpi_draw){write_to_file, file}; }

/* Markup as it stands. */
static void put(dpi_draw d, const char *markup) { d.write(d.to, markup, strlen(markup)); }

void dpi_draw_text(dpi_draw d, const char *text) {
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        const bool is_control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
        if (c == '&')
            put(d, "&amp;");
        else if (c == '<')
            put(d, "&lt;");
        else if (c == '>')
            put(d, "&gt;");
        else if (c == '"')
            put(d, "&quot;");
        else if (c == '\'')
            put(d, "&#39;");
        else
            d.write(d.to, is_control ? "?" : text, 1);
    }
}

/* A number with one decimal: written in integers, since the caller's locale may have a comma. */
static void put_number(dpi_draw d, double x) {
    const long long tenths = isfinite(x) ? llround(x * 10) : 0;
    char text[40];
    snprintf(text, sizeof text, "%s%lld.%lld", tenths < 0 ? "-" : "", llabs(tenths) / 10,
             llabs(tenths) % 10);
    put(d, text);
}

static void put_attribute(dpi_draw d, const char *name, const char *value) {
    put(d, " ");
    put(d, name);
    put(d, "=\"");
    dpi_draw_text(d, value);
    put(d, "\"");
}

static void put_length(dpi_draw d, const char *name, double value) {
    put(d, " ");
    put(d, name);
    put(d, "=\"");
    put_number(d, value);
    put(d, "\"");
}

/* The start of an element: "<line". */
static void open_element(dpi_draw d, const char *tag, const char *kind) {
    put(d, tag);
    if (kind)
        put_attribute(d, "class", kind);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

void dpi_draw_page_begin(dpi_draw d, const char *title) {
    put(d, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
           "style-src 'unsafe-inline'\"/>\n"
           "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>");
    dpi_draw_text(d, title);
    put(d, "</title>\n<style>\n");
    put(d, plot_style);
    put(d, page_style);
    put(d, "</style>\n</head>\n<body>\n");
}

void dpi_draw_page_end(dpi_draw d) { put(d, "</body>\n</html>\n"); }

/* ---- Plots ----------------------------------------------------------------------------------- */

static void open_svg(dpi_draw d, const char *before, const char *title, double width,
                     double height) {
    put(d, before);
    put(d, " viewBox=\"0 0 ");
    put_number(d, width);
    put(d, " ");
    put_number(d, height);
    put(d, "\" role=\"img\"");
    put_attribute(d, "aria-label", title);
    put(d, ">\n");
}

void dpi_plot_begin(dpi_draw d, const char *title, double width, double height) {
    put(d, "<figure><figcaption>");
    dpi_draw_text(d, title);
    open_svg(d, "</figcaption>\n<svg", title, width, height);
}

void dpi_plot_end(dpi_draw d) { put(d, "</svg></figure>\n"); }

void dpi_plot_begin_small(dpi_draw d, const char *title, double width, double height) {
    open_svg(d, "<svg class=\"small\"", title, width, height);
}

void dpi_plot_end_small(dpi_draw d) { put(d, "</svg>"); }

void dpi_image_begin(dpi_draw d, const char *title, double width, double height) {
    open_svg(d, "<svg xmlns=\"http://www.w3.org/2000/svg\"", title, width, height);
    put(d, "<style>");
    put(d, plot_style);
    put(d, "</style>\n<rect width=\"100%\" height=\"100%\" style=\"fill:#fff\"/>\n");
}

void dpi_image_end(dpi_draw d) { put(d, "</svg>\n"); }

void dpi_plot_bar(dpi_draw d, const char *kind, double x, double y, double width, double height,
                  const char *name, const char *value) {
    open_element(d, "<rect", kind);
    put_length(d, "x", x);
    put_length(d, "y", y);
    put_length(d, "width", fmax(width, 0));
    put_length(d, "height", fmax(height, 0));
    put(d, ">");
    if (name) {
        put(d, "<title>");
        dpi_draw_text(d, name);
        put(d, ": ");
        dpi_draw_text(d, value);
        put(d, "</title>");
    }
    put(d, "</rect>\n");
}

void dpi_plot_line(dpi_draw d, const char *kind, double x1, double y1, double x2, double y2) {
    open_element(d, "<line", kind);
    put_length(d, "x1", x1);
    put_length(d, "y1", y1);
    put_length(d, "x2", x2);
    put_length(d, "y2", y2);
    put(d, "/>\n");
}

void dpi_plot_point(dpi_draw d, const char *kind, double x, double y) {
    open_element(d, "<circle", kind);
    put_length(d, "cx", x);
    put_length(d, "cy", y);
    put(d, " r=\"3.5\"/>\n");
}

void dpi_plot_curve_begin(dpi_draw d, const char *kind) {
    open_element(d, "<polyline", kind);
    put(d, " points=\"");
}

void dpi_plot_curve_point(dpi_draw d, double x, double y) {
    put_number(d, x);
    put(d, ",");
    put_number(d, y);
    put(d, " ");
}

void dpi_plot_curve_end(dpi_draw d) { put(d, "\"/>\n"); }

void dpi_plot_label(dpi_draw d, const char *kind, double x, double y, const char *anchor,
                    const char *text) {
    open_element(d, "<text", kind);
    put_length(d, "x", x);
    put_length(d, "y", y);
    put_attribute(d, "text-anchor", anchor);
    put(d, ">");
    dpi_draw_text(d, text);
    put(d, "</text>\n");
}

void dpi_plot_key(dpi_draw d, const char *kind, double x, double y, const char *name) {
    dpi_plot_line(d, kind, x, y, x + 24, y);
    dpi_plot_label(d, NULL, x + 30, y + 4, "start", name);
}

/* ---- Frames ---------------------------------------------------------------------------------- */

double dpi_frame_x(const dpi_frame *f, double share) {
    return f->left + (f->right - f->left) * share;
}

double dpi_frame_y(const dpi_frame *f, double share) {
    return f->bottom - (f->bottom - f->top) * share;
}

void dpi_frame_axes(const dpi_frame *f) {
    dpi_plot_curve_begin(f->to, "frame");
    dpi_plot_curve_point(f->to, f->left, f->top);
    dpi_plot_curve_point(f->to, f->left, f->bottom);
    dpi_plot_curve_point(f->to, f->right, f->bottom);
    dpi_plot_curve_end(f->to);
}

void dpi_frame_tick_x(const dpi_frame *f, double share, const char *text) {
    dpi_plot_label(f->to, NULL, dpi_frame_x(f, share), f->bottom + 18, "middle", text);
}

void dpi_frame_tick_y(const dpi_frame *f, double share, const char *text) {
    const double y = dpi_frame_y(f, share);
    dpi_plot_line(f->to, "grid", f->left, y, f->right, y);
    dpi_plot_label(f->to, NULL, f->left - 6, y + 4, "end", text);
}

void dpi_frame_names(const dpi_frame *f, const char *x, const char *y) {
    const double middle = dpi_frame_y(f, .5);
    dpi_plot_label(f->to, NULL, dpi_frame_x(f, .5), f->bottom + 38, "middle", x);
    put(f->to, "<g transform=\"translate(");
    put_number(f->to, f->left - 52);
    put(f->to, " ");
    put_number(f->to, middle);
    put(f->to, ") rotate(-90)\">");
    dpi_plot_label(f->to, NULL, 0, 0, "middle", y);
    put(f->to, "</g>\n");
}
