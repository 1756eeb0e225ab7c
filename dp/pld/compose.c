#include "dp/pld/compose.h"

#include <complex.h>
#include <fftw3.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/pld/bracket.h"

/* Share of delta that each of the parts that are only bounded may have. */
static const double SHARE = 1e-7;

/* ---- Moments: law->mass holds logarithms here ------------------------------------------------ */

/* ln of the sum of mass e^(lambda loss), with at most some 2^-40 of error. */
static double log_moment(const loss_law *law, double lambda) {
    const double slope = lambda * law->step;
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < law->n; i++)
        top = fmax(top, law->mass[i] + slope * (double)(law->first + (int64_t)i));
    for (size_t i = 0; i < law->n; i++) {
        const double below = law->mass[i] + slope * (double)(law->first + (int64_t)i) - top;
        if (below > -700) /* else less than the rounding, and slow */
            sum += exp(below);
    }
    return top + log(sum);
}

/* What lambda > 0 proves: the sum of n losses is above this with probability e^-decay at most. */
static double chernoff(const loss_law *law, int32_t n, double decay, double lambda) {
    return (n * log_moment(law, lambda) + decay) / lambda;
}

/* The lambda whose bound is best: it falls and then rises. */
static double best_lambda(const loss_law *law, int32_t n, double decay) {
    double low = log(1e-4), high = log(1e6);
    const double part = 0.3819660112501051;
    double a = low + part * (high - low), b = high - part * (high - low);
    double at_a = chernoff(law, n, decay, exp(a)), at_b = chernoff(law, n, decay, exp(b));
    while (high - low > 1e-3) {
        if (at_a < at_b) {
            high = b, b = a, at_b = at_a;
            a = low + part * (high - low);
            at_a = chernoff(law, n, decay, exp(a));
        } else {
            low = a, a = b, at_a = at_b;
            b = high - part * (high - low);
            at_b = chernoff(law, n, decay, exp(b));
        }
    }
    return exp((low + high) / 2);
}

/* ---- The sum --------------------------------------------------------------------------------- */

/* The tilted law of the sum of n_steps losses, modulo n * step. */
typedef struct sum_law {
    double lambda, log_moment; /* of the sum */
    double step;
    int64_t bottom; /* mass[i] stands at (bottom + i) * step */
    size_t n;
    double *mass; /* fftw_malloc */
    double error; /* bound of the sum of all errors of mass */
    double above; /* bound of the probability of all sums above the last point, not tilted */
} sum_law;

/* The next length that FFTW is fast at: 2^i, 3 2^i or 5 2^i. */
static size_t good_length(double at_least) {
    size_t best = SIZE_MAX / 2;
    for (size_t odd = 1; odd <= 5; odd += 2) {
        size_t n = odd * 16;
        while ((double)n < at_least)
            n *= 2;
        best = n < best ? n : best;
    }
    return best;
}

static size_t modulo(int64_t i, size_t n) {
    const int64_t r = i % (int64_t)n;
    return (size_t)(r < 0 ? r + (int64_t)n : r);
}

/* z^n by squares: at most 2 n roundings of 2^-51 deep. */
static double complex power(double complex z, int32_t n) {
    double complex result = 1;
    for (; n > 0; n >>= 1) {
        if (n & 1)
            result *= z;
        z *= z;
    }
    return result;
}

/* mass := its n_steps-fold circular convolution. */
static dpi_status convolve(sum_law *s, int32_t n_steps, dpi_error *err) {
    fftw_complex *spectrum = fftw_malloc((s->n / 2 + 1) * sizeof *spectrum);
    fftw_plan there = NULL, back = NULL;
    if (spectrum && dpi_plan_fits(s->n)) {
        fftw_make_planner_thread_safe(); /* it has a state of its own; each call says so again */
        there = fftw_plan_dft_r2c_1d((int)s->n, s->mass, spectrum, FFTW_ESTIMATE);
        back = fftw_plan_dft_c2r_1d((int)s->n, spectrum, s->mass, FFTW_ESTIMATE);
    }
    const bool ok = there && back;
    if (ok) {
        /* Each value of a transform is a sum of its input, with 8 log2(n) roundings at most on the
         * way of each: it is off by `unit` times the 1-norm. */
        const double unit = 8 * log2((double)s->n) * DBL_EPSILON;
        double norm = 0, off = 0, square = 0;
        for (size_t i = 0; i < s->n; i++)
            norm += s->mass[i];
        fftw_execute(there);
        for (size_t i = 0; i <= s->n / 2; i++) {
            const double twice = i > 0 && 2 * i < s->n ? 2 : 1; /* the other half is the same */
            const double most = cabs(spectrum[i]) + unit * norm;
            const double before = pow(most, n_steps - 1);
            const double e = n_steps * before * (unit * norm + 2 * 0x1p-51 * most);
            spectrum[i] = power(spectrum[i], n_steps) / (double)s->n;
            off += twice * e * e;
            square += twice * before * most * before * most;
        }
        fftw_execute(back);
        /* In the 1-norm a function of n values is at most sqrt(n) times its 2-norm, and that is the
         * one of its transform by sqrt(n). The way back loses as much of its input. Twice all that,
         * for the roundings of these sums. */
        s->error = 2 * (sqrt(off) + unit * sqrt(square));
    }
    if (there)
        fftw_destroy_plan(there);
    if (back)
        fftw_destroy_plan(back);
    fftw_free(spectrum);
    return ok ? DPI_STATUS_OK : dpi_no_memory(err, "a transform of %zu points", s->n);
}

/* How far the window of the sum goes: from `top` down by the width. What wraps from below then
 * counts e^(-lambda width) at most; what lies above epsilon + width and wraps counts for more
 * than it is, and its Chernoff bound keeps that below SHARE. */
static double window(const loss_law *law, int32_t n, double delta, double lambda, double top) {
    const double decay = -log(SHARE * delta), center = chernoff(law, n, -log(delta), lambda);
    double width = fmax(decay / lambda, 1.5 * (top - center));
    for (int i = 0; i < 40; i++) {
        double least = INFINITY;
        for (double more = 1; more <= 64; more *= 2)
            least = fmin(least, n * log_moment(law, lambda * more) -
                                    lambda * more * (center + width) + lambda * width);
        if (least <= -decay)
            break;
        width *= 1.5;
    }
    return width;
}

static dpi_status make_sum(const loss_law *law, int32_t n_steps, double delta, size_t n_max,
                           sum_law *s, dpi_error *err) {
    const double decay = -log(SHARE * delta);
    const double lambda = best_lambda(law, n_steps, -log(delta));
    const double most = best_lambda(law, n_steps, decay);
    const double top = chernoff(law, n_steps, decay, most);
    const double width = window(law, n_steps, delta, lambda, top);
    *s = (sum_law){.lambda = lambda, .step = law->step, .above = SHARE * delta};
    s->n = good_length(fmin(ceil(width / law->step), (double)n_max / 2));
    s->bottom = (int64_t)ceil(top / law->step) - (int64_t)s->n + 1;
    s->mass = fftw_malloc(s->n * sizeof *s->mass);
    if (!s->mass)
        return dpi_no_memory(err, "%zu privacy losses", s->n);
    for (size_t i = 0; i < s->n; i++)
        s->mass[i] = 0;
    const double moment = log_moment(law, lambda);
    s->log_moment = n_steps * moment;
    for (size_t i = 0; i < law->n; i++) {
        const int64_t at = law->first + (int64_t)i;
        s->mass[modulo(at, s->n)] += exp(law->mass[i] + lambda * law->step * (double)at - moment);
    }
    return convolve(s, n_steps, err);
}

/* delta at `epsilon`, but for the steps whose loss counts as infinite. */
static double delta_at(const sum_law *s, double epsilon) {
    double sum = s->error;
    for (size_t i = s->n; i-- > 0;) {
        const int64_t at = s->bottom + (int64_t)i;
        const double over = (double)at * s->step - epsilon;
        if (!(over > 0))
            break;
        const double mass = s->mass[modulo(at, s->n)];
        if (mass > 0)
            sum += mass * exp(-s->lambda * over) * -expm1(-over);
    }
    return exp(s->log_moment - s->lambda * epsilon) * sum + s->above;
}

/* What of a sum's delta is not in its law: it is `factor` times as large, and `infinite` more. */
typedef struct excess {
    const sum_law *law;
    double factor, infinite, delta;
} excess;

static double excess_at(const excess *e, double epsilon) {
    return bracket_value(e->factor * delta_at(e->law, epsilon) + e->infinite, e->delta);
}

/* The least epsilon from the window's bottom on that is enough, to 1e-9 of it; INFINITY if that of
 * the window's top is not. */
static double epsilon_of(const excess *e) {
    const sum_law *s = e->law;
    const double low = fmax(0, (double)s->bottom * s->step);
    const double high = (double)(s->bottom + (int64_t)s->n) * s->step;
    const double at_low = excess_at(e, low);
    if (at_low <= 0)
        return low;
    const double at_high = high > low ? excess_at(e, high) : INFINITY;
    if (at_high > 0)
        return INFINITY;
    bracket b = bracket_make(low, at_low, high, at_high);
    for (double least; least = 0.5e-9 * b.high, b.high - b.low > 2 * least;) {
        const double place = bracket_next(&b, least);
        bracket_put(&b, place, excess_at(e, place));
    }
    return b.high;
}

dpi_status loss_sum_epsilon(loss_law *law, int32_t n_steps, double delta, size_t n_max,
                            double *epsilon, dpi_error *err) {
    /* A step's tilted masses, and their moment, are good to 2^-40. */
    const double factor = exp(n_steps * 0x1p-40), infinite = n_steps * law->infinite;
    for (size_t i = 0; i < law->n; i++)
        law->mass[i] = log(law->mass[i]);
    sum_law s;
    dpi_status status = make_sum(law, n_steps, delta, n_max, &s, err);
    if (status == DPI_STATUS_OK) {
        const double found = epsilon_of(&(excess){&s, factor, infinite, delta});
        /* Losses stand within 2^-48 of their points. */
        *epsilon = found > 0 ? found + n_steps * 0x1p-48 : found;
    }
    fftw_free(s.mass);
    return status;
}
