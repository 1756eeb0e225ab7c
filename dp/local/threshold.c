#include "dp/local/threshold.h"

#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"

enum { N_GRID = 1 << 16 }; /* points of the sum of squares */

/* Masses are multiplied by e^(TILT j / N_GRID) before they are transformed and divided by it
 * afterwards, so that the transform's errors, of one size everywhere, are small beside the upper
 * tail. */
static const double TILT = 20;

/* Squares up to (37 scale)^2 have all but 1e-16 of their mass. */
static double grid_step(const dpi_threshold_law *law) {
    double largest = 0, variance = 0;
    for (int32_t k = 0; k < law->dim; k++) {
        const double square = (double)law->scale[k] * (double)law->scale[k];
        largest = fmax(largest, square);
        variance += 20 * square * square;
    }
    return (law->mean_square + 12 * sqrt(variance) + 1600 * largest) / N_GRID;
}

/* Integral of v^2 e^-v, the density of |noise| / scale, from v on. */
static double square_above(double v) { return (v * v + 2 * v + 2) * exp(-v); }

/* The law of noise^2 on the points j step: what is between two points goes to both of them, so that
 * its mean stays. Noise of real numbers. */
static void fill_square(double scale, double step, double *pmf) {
    const double unit = scale * scale / step;
    double above = 1, square = 2;
    for (size_t j = 0; j < N_GRID; j++)
        pmf[j] = 0;
    for (size_t j = 0; j + 1 < N_GRID && above > 0; j++) {
        const double v = sqrt((double)(j + 1) / unit), next = exp(-v),
                     next_square = square_above(v);
        const double mass = above - next;
        const double beyond = fmin(fmax((square - next_square) * unit - mass * (double)j, 0), mass);
        pmf[j] += mass - beyond;
        pmf[j + 1] += beyond;
        above = next;
        square = next_square;
    }
}

typedef struct transform {
    double *pmf;            /* [N_GRID] */
    fftw_complex *spectrum; /* [N_GRID / 2 + 1] of one square */
    fftw_complex *product;  /* of all */
    fftw_plan there, back;
} transform;

static void tilt(double *pmf, double by) {
    for (size_t j = 0; j < N_GRID; j++)
        pmf[j] *= exp(by * (double)j / N_GRID);
}

static void multiply_all(const dpi_threshold_law *law, double step, const transform *f) {
    for (size_t i = 0; i <= N_GRID / 2; i++)
        f->product[i] = 1;
    for (int32_t k = 0; k < law->dim; k++) {
        if (k == 0 || law->scale[k] != law->scale[k - 1]) {
            fill_square((double)law->scale[k], step, f->pmf);
            tilt(f->pmf, TILT);
            fftw_execute(f->there);
        }
        for (size_t i = 0; i <= N_GRID / 2; i++)
            f->product[i] *= f->spectrum[i];
    }
    fftw_execute(f->back);
    for (size_t j = 0; j < N_GRID; j++)
        f->pmf[j] = fmax(f->pmf[j] / N_GRID, 0);
    tilt(f->pmf, -TILT);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* P[t > at] at the end of cell i, descending. */
static double above_cell(int32_t i, int32_t n_cells) {
    const double tail = 1e-3, decades = 10;
    const int32_t n_low = n_cells / 8, n_high = n_cells / 4, n_middle = n_cells - n_low - n_high;
    if (i < n_low)
        return 1 - tail * pow(10, -decades * (n_low - 1 - i) / n_low);
    if (i < n_low + n_middle)
        return 1 - tail - (1 - 2 * tail) * (i + 1 - n_low) / n_middle;
    return tail * pow(10, -decades * (i + 1 - n_low - n_middle) / n_high);
}

/* The mass of a point is spread over the step around it. pmf becomes the sums from each point on:
 * P[t^2 > (j - 1/2) step]. */
static void cut_cells(dpi_threshold_law *law, double *pmf, double step, int32_t n_cells) {
    int32_t i = 0, n = 0;
    for (size_t j = N_GRID - 1; j-- > 0;)
        pmf[j] += pmf[j + 1];
    law->edge[0] = 0;
    law->above[0] = pmf[0];
    for (size_t j = 0; j + 1 < N_GRID; j++)
        for (; i < n_cells && above_cell(i, n_cells) >= pmf[j + 1]; i++) {
            const double at = above_cell(i, n_cells), mass = pmf[j] - pmf[j + 1];
            const double part = mass > 0 ? fmax(pmf[j] - at, 0) / mass : 1;
            const double edge = sqrt(step * (j > 0 ? (double)j + part - .5 : part / 2));
            if (edge <= law->edge[n] || at >= law->above[n])
                continue;
            law->edge[++n] = edge;
            law->above[n] = at;
        }
    law->n_cells = n;
}

dpi_status dpi_threshold_law_make(const int64_t *scale, int32_t dim, int32_t n_cells,
                                  dpi_threshold_law *law, dpi_error *err) {
    *law = (dpi_threshold_law){.scale = scale, .dim = dim};
    transform f = {
        .pmf = fftw_malloc(N_GRID * sizeof *f.pmf),
        .spectrum = fftw_malloc((N_GRID / 2 + 1) * sizeof *f.spectrum),
        .product = fftw_malloc((N_GRID / 2 + 1) * sizeof *f.product),
    };
    law->edge = dpi_calloc((size_t)n_cells + 1, sizeof *law->edge);
    law->above = dpi_calloc((size_t)n_cells + 1, sizeof *law->above);
    for (int32_t k = 0; k < dim; k++)
        law->mean_square += 2 * (double)scale[k] * (double)scale[k];
    if (f.pmf && f.spectrum && f.product && dpi_plan_fits(N_GRID)) {
        fftw_make_planner_thread_safe(); /* it has a state of its own; each call says so again */
        f.there = fftw_plan_dft_r2c_1d(N_GRID, f.pmf, f.spectrum, FFTW_ESTIMATE);
        f.back = fftw_plan_dft_c2r_1d(N_GRID, f.product, f.pmf, FFTW_ESTIMATE);
    }
    const bool ok = f.there && f.back && law->edge && law->above;
    if (ok) {
        const double step = grid_step(law);
        multiply_all(law, step, &f);
        cut_cells(law, f.pmf, step, n_cells);
    }
    if (f.there)
        fftw_destroy_plan(f.there);
    if (f.back)
        fftw_destroy_plan(f.back);
    fftw_free(f.pmf);
    fftw_free(f.spectrum);
    fftw_free(f.product);
    if (ok)
        return DPI_STATUS_OK;
    dpi_threshold_law_free(law);
    return dpi_no_memory(err, "the law of a threshold");
}

void dpi_threshold_law_free(dpi_threshold_law *law) {
    free(law->edge);
    free(law->above);
    law->edge = law->above = NULL;
}

double dpi_threshold_tail(const dpi_threshold_law *law, double at) {
    const double large = sqrt(fmax(at * at - law->mean_square, 0));
    double best = -INFINITY, sum = 0;
    for (int32_t k = 0; k < law->dim; k++)
        best = fmax(best, -large / (double)law->scale[k]);
    for (int32_t k = 0; k < law->dim; k++)
        sum += exp(-large / (double)law->scale[k] - best);
    return fmin(best + log(sum), log(1e-13));
}
