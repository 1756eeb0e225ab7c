#include "dp/pld/loss.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/status.h"

typedef long double wide;

/* What erfcl, expl and logl and the few operations around them may lose: units of their results.
 * glibc states at most 5 for each. */
static const wide LOSS = 64 * LDBL_EPSILON;
static const wide SQRT_HALF = 0.707106781186547524400844362104849039L;

typedef struct mechanism {
    wide sigma, q;
} mechanism;

/* A mass, and the sum of the magnitudes that it was computed from. */
typedef struct mass {
    wide value, size;
} mass;

/* A place, and what lies beyond it of the two normal laws: above it where it is right of the mean,
 * else below it, so that no digits are lost. */
typedef struct edge {
    wide x, tail[2];
} edge;

static edge edge_at(const mechanism *m, wide x) {
    const wide c = SQRT_HALF / m->sigma;
    return (edge){x, {erfcl(fabsl(x) * c) / 2, erfcl(fabsl(x - 1) * c) / 2}};
}

/* The mass of N(mean, sigma^2) between a and b, a <= b; mean is 0 or 1. */
static mass normal_between(const edge *a, const edge *b, int mean) {
    const wide left = a->tail[mean], right = b->tail[mean];
    if (a->x < mean && b->x > mean)
        return (mass){1 - left - right, 1};
    return (mass){fabsl(left - right), left + right};
}

/* Mixture of the two normal laws. */
static mass mixture_between(const mechanism *m, const edge *a, const edge *b) {
    const mass without = normal_between(a, b, 0), with = normal_between(a, b, 1);
    return (mass){(1 - m->q) * without.value + m->q * with.value,
                  (1 - m->q) * without.size + m->q * with.size};
}

/* ln(mixture / normal) at x: rises with x from ln(1 - q). */
static wide loss_at(const mechanism *m, wide x) {
    const wide u = (2 * x - 1) / (2 * m->sigma * m->sigma);
    if (u > 1)
        return u + logl(m->q + (1 - m->q) * expl(-u));
    if (u < -1)
        return logl(1 - m->q + m->q * expl(u));
    return log1pl(m->q * expm1l(u));
}

/* Where that loss is l; -infinity below its range. */
static wide place_of(const mechanism *m, wide l) {
    wide u;
    if (l > 1) {
        u = l + log1pl(-(1 - m->q) * expl(-l)) - logl(m->q);
    } else if (m->q >= 1) {
        u = l;
    } else {
        const wide rest = expm1l(l) + m->q;
        if (!(rest > 0))
            return -INFINITY;
        u = logl(rest / m->q);
    }
    return m->sigma * m->sigma * u + 0.5L;
}

/* The x above which the normal law around `mean` has at most the mass `tail`. */
static wide quantile(wide mean, wide sigma, wide tail) {
    wide low = 0, high = 160;
    for (int i = 0; i < 80; i++) {
        const wide mid = (low + high) / 2;
        if (erfcl(mid * SQRT_HALF) / 2 <= tail)
            high = mid;
        else
            low = mid;
    }
    return mean + sigma * high;
}

/* The losses between which all but `tail` of P at either end lies. */
static void ends(const mechanism *m, loss_direction direction, wide tail, wide *low, wide *high) {
    /* The mixture lies between the two normal laws, the one around 1 above. */
    const wide left = loss_at(m, -quantile(0, m->sigma, tail));
    const wide right = loss_at(m, quantile(direction == LOSS_REMOVE, m->sigma, tail));
    *low = direction == LOSS_REMOVE ? left : -right;
    *high = direction == LOSS_REMOVE ? right : -left;
}

double loss_range(double sigma, double q, double tail) {
    const mechanism m = {sigma, q};
    wide low, high;
    ends(&m, LOSS_REMOVE, tail, &low, &high);
    return (double)(high - low);
}

/* Where the loss in that direction is `loss`. */
static edge edge_of(const mechanism *m, loss_direction direction, wide loss) {
    return edge_at(m, place_of(m, direction == LOSS_REMOVE ? loss : -loss));
}

/* Masses of P and Q between two edges, the one of the lower loss first. */
static void cell(const mechanism *m, loss_direction direction, const edge *low, const edge *high,
                 mass *p, mass *q) {
    const bool remove = direction == LOSS_REMOVE;
    const edge *a = remove ? low : high, *b = remove ? high : low;
    const mass mixed = mixture_between(m, a, b), normal = normal_between(a, b, 0);
    *p = remove ? mixed : normal;
    *q = remove ? normal : mixed;
}

/* What lies below the grid goes to its first point and to the loss -infinity; what lies above
 * counts as infinite: a part of it could stay at the last point, but there is so little. */
static void fill_ends(const mechanism *m, loss_direction direction, loss_law *law) {
    const wide first = (wide)law->first * law->step;
    const wide last = (wide)(law->first + (int64_t)law->n - 1) * law->step;
    edge out = edge_of(m, direction, -INFINITY), in = edge_of(m, direction, first);
    mass p, q;
    cell(m, direction, &out, &in, &p, &q);
    law->mass[0] += (double)(p.value + LOSS * p.size);
    in = edge_of(m, direction, last), out = edge_of(m, direction, INFINITY);
    cell(m, direction, &in, &out, &p, &q);
    law->infinite = (double)(p.value + LOSS * p.size);
}

/* Cell i lies between the points i and i + 1. */
static void fill(const mechanism *m, loss_direction direction, loss_law *law) {
    const wide step = law->step, shrink = -expm1l(-step);
    wide low = (wide)law->first * step;
    edge at_low = edge_of(m, direction, low);
    for (size_t i = 0; i + 1 < law->n; i++) {
        const wide high = (wide)(law->first + (int64_t)i + 1) * step, ratio = expl(low);
        const edge at_high = edge_of(m, direction, high);
        mass p, q;
        cell(m, direction, &at_low, &at_high, &p, &q);
        const wide error = LOSS * (p.size + ratio * q.size), total = p.value + LOSS * p.size;
        wide upper = (p.value - ratio * q.value + error) / shrink;
        upper = upper < 0 ? 0 : upper > total ? total : upper;
        law->mass[i] += (double)(total - upper);
        law->mass[i + 1] += (double)upper;
        low = high, at_low = at_high;
    }
    fill_ends(m, direction, law);
}

dpi_status loss_law_make(double sigma, double q, loss_direction direction, double step, double tail,
                         size_t n_max, loss_law *law, dpi_error *err) {
    const mechanism m = {sigma, q};
    wide low, high;
    ends(&m, direction, tail, &low, &high);
    if ((high - low) / step > (wide)(n_max - 4))
        step = (double)((high - low) / (wide)(n_max - 4));
    const int64_t first = (int64_t)floorl(low / step), last = (int64_t)ceill(high / step);
    *law = (loss_law){.step = step, .first = first, .n = (size_t)(last - first) + 1};
    law->mass = dpi_calloc(law->n, sizeof *law->mass);
    if (!law->mass)
        return dpi_no_memory(err, "%zu privacy losses", law->n);
    fill(&m, direction, law);
    return DPI_STATUS_OK;
}
