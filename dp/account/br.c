/* br.c - exact composition of n tokens of bounded range eta (docs/spec.md 4.2).
 *
 * Let l be the log likelihood ratio so far and W_k(l) the most that k further tokens can make of
 * E[(1 - e^(epsilon - L))+], so that delta = W_n(0). Then
 *     W_k(l) = max over t in [0, eta] of p_t W_{k-1}(l + t) + (1 - p_t) W_{k-1}(l + t - eta),
 *     p_t = (1 - e^(t - eta)) / (1 - e^-eta).
 * With x = e^l and V_k(x) = x W_k(l): V_k(x) is the highest chord of V_{k-1}, seen at x, over the
 * intervals [a, e^eta a] that contain x; and V_k is convex. W_1 has a closed form.
 *
 * An upper bound on the grid l = j h, h = eta / N, from an upper bound of W_{k-1} on the grid. A
 * convex function lies below its linear interpolation in x, so V_{k-1} may be replaced by
 * that. While a and e^eta a move through one grid cell each, the chord at x is
 * const - A a - B / a, which is above the straight line between its two ends by
 * B (a - a0)(a1 - a) / (a a0 a1) <= B (a0^-1/2 - a1^-1/2)^2. So the maximum over t between grid
 * points is at most the larger of the two ends plus that: `bonus` below. The error is of second
 * order in h, so N = 32 does what N = 2000 does with t rounded up to the grid.
 *
 * Outside a window of l the bounds are: below, W(l) <= W(lowest), W increases; above,
 * W(l) <= W(top) + e^(epsilon - top) - e^(epsilon - l), since W_k(l) - 1 + e^(epsilon - l)
 * decreases (it is the same game for the payoff (e^(epsilon - L) - 1)+). Windows only have to be
 * wide enough for the bound to be tight; any window gives a bound.
 *
 * Rounding: stored values are upper bounds and taken as exact in the next step; what a step adds
 * is a relative error of a few 2^-53 in sums of positive terms, covered by UP in the coefficients.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/account/account.h"

static const double UP = 1 + 0x1p-47, DOWN = 1 - 0x1p-47;

enum { CELLS_MIN = 8, CELLS_MAX = 256 };
enum { TILE = 32 }; /* grid points that a step computes side by side */

typedef struct game {
    double eta, epsilon, h;
    int32_t n_tokens, N;
    int32_t reach; /* W is wanted from l = -reach h to l = 0 */
    /* W and the next W at grid index j are w[j], next[j]: both point inside `memory`. */
    double *memory, *w, *next, *bonus;
    double *p, *q; /* [N + 1] p_t and 1 - p_t, rounded up */
} game;

/* Cells per eta: a power of two (so that N h = eta), by what the whole computation costs: n^1.5
 * N^2. A function of n alone, so that delta is continuous in the other arguments. */
static int32_t choose_cells(int32_t n_tokens) {
    int32_t N = CELLS_MAX;
    while (N > CELLS_MIN && pow(n_tokens, 1.5) * N * N > 35e6)
        N /= 2;
    return N;
}

/* Grid indices that are kept when `left` tokens remain. Below: 7 standard deviations of the
 * way already gone (a token's is at most eta / 2; values there are smaller than the result).
 * Above: 7 of the way that is left beyond epsilon, or 12 of the way gone. */
static int32_t window_low(const game *g, int32_t left) {
    int32_t gone = g->n_tokens - left;
    double low = (3.5 * sqrt(gone) + 2) * g->N;
    return -g->reach - (int32_t)fmin(ceil(low), (double)gone * g->N);
}

static int32_t window_top(const game *g, int32_t left) {
    int32_t gone = g->n_tokens - left;
    double drift = gone * g->eta / 8; /* of l, in units of eta */
    double top = fmin(g->epsilon / g->eta + 3.5 * sqrt(left) + 2, drift + 6 * sqrt(gone) + 2);
    return (int32_t)fmin(ceil(top * g->N), (double)gone * g->N);
}

static void free_game(game *g) {
    free(g->memory);
    free(g->p);
}

static dpi_status make_game(game *g, double eta, int32_t n_tokens, double epsilon, double reach,
                            dpi_error *err) {
    *g = (game){.eta = eta, .n_tokens = n_tokens, .N = choose_cells(n_tokens)};
    g->reach = (int32_t)ceil(reach / eta * g->N);
    /* Lower by more than the rounding of epsilon - j h, which only makes W larger. */
    g->epsilon = epsilon - 0x1p-48 * (epsilon + 16 * eta * sqrt(n_tokens));
    g->h = eta / g->N;
    int32_t low = 0, top = 0;
    for (int32_t left = 1; left <= n_tokens; left++) {
        low = window_low(g, left) < low ? window_low(g, left) : low;
        top = window_top(g, left) > top ? window_top(g, left) : top;
    }
    const int64_t margin = g->N + 2 + TILE;
    const size_t width = (size_t)(top - low + 2 * margin + 1);
    g->memory = dpi_calloc(3 * width, sizeof *g->memory);
    g->p = dpi_calloc(2 * (size_t)(g->N + 1), sizeof *g->p);
    if (!g->memory || !g->p) {
        free_game(g);
        return dpi_no_memory(err, "a grid of %zu points", width);
    }
    g->w = g->memory + (margin - low);
    g->next = g->w + width;
    g->bonus = g->next + width;
    g->q = g->p + g->N + 1;
    for (int32_t k = 0; k <= g->N; k++) {
        g->p[k] = UP * expm1((k - g->N) * g->h) / expm1(-eta);
        g->q[k] = UP * exp(-eta) * expm1(k * g->h) / -expm1(-eta);
    }
    return DPI_STATUS_OK;
}

/* W_1, the best t in closed form. */
static double last_token(const game *g, double l) {
    double below = g->epsilon - l, w;
    if (below >= g->eta)
        return 0;
    if (below <= -g->eta)
        w = -expm1(below);
    else
        w = pow(expm1((below - g->eta) / 2), 2) / -expm1(-g->eta);
    return UP * w;
}

/* w is known on [low, top]: bounds on the N + 1 cells that a step reaches beyond the new window. */
static void extend(game *g, int32_t low, int32_t top, int32_t new_low, int32_t new_top) {
    for (int32_t j = new_low - g->N - 1; j < low; j++)
        g->w[j] = g->w[low];
    const double scale = UP * exp(fmin(g->epsilon - top * g->h, 700));
    for (int32_t j = top + 1; j <= new_top + g->N + 1; j++)
        g->w[j] = fmin(1, UP * g->w[top] + scale * -expm1((top - j) * g->h));
}

/* The same operations with wider registers, where the processor has them: no result depends on it.
 * Not with sanitizers: what chooses is called before they are ready. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif
#if defined(__x86_64__) && defined(__linux__) && !defined(SANITIZED)
#define WIDE __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define WIDE
#endif

/* next[i] at least the chord of w over each interval that is split at a grid point 1 .. N - 1, for
 * i in [0, TILE). w, bonus and next begin at the grid index of the tile. */
WIDE static void raise_to_chords(const game *g, const double *restrict w,
                                 const double *restrict bonus, double *restrict next) {
    double most[TILE];
    memcpy(most, next, sizeof most);
    for (int32_t k = 1; k < g->N; k++) {
        const double p = g->p[k], q = g->q[k], *a = w + k - g->N, *b = w + k,
                     *extra = bonus + k - g->N - 1;
        for (int32_t i = 0; i < TILE; i++) {
            double value = q * a[i] + p * b[i] + extra[i];
            most[i] = value > most[i] ? value : most[i];
        }
    }
    memcpy(next, most, sizeof most);
}

/* One token more: next on [low, top] from w on [low - N - 1, top + N + 1]. What is computed beyond
 * top, to the end of a tile, is not read. */
WIDE static void step(game *g, int32_t low, int32_t top) {
    const int32_t N = g->N;
    const double *restrict w = g->w, back = DOWN * exp(-g->eta);
    const double half = expm1(-g->h / 2);
    const double kappa = UP * half * half / (expm1(-g->h) * expm1(-g->eta));
    double *restrict bonus = g->bonus, *restrict next = g->next;
    /* The cell [j, j + 1] of a with the cell [j + N, j + N + 1] of e^eta a. */
    for (int32_t j = low - N; j <= top; j++) {
        double b = kappa * (UP * (w[j + N + 1] - w[j + N]) - back * (w[j + 1] - w[j]));
        bonus[j] = b > 0 ? b : 0;
    }
    for (int32_t j = low; j <= top; j++) { /* t = 0 and t = eta: both are W itself */
        double b = bonus[j - N] > bonus[j - 1] ? bonus[j - N] : bonus[j - 1];
        next[j] = UP * w[j] + b;
    }
    for (int32_t j = low - N; j < top; j++) /* from here on: of the grid point j, either side */
        bonus[j] = bonus[j] > bonus[j + 1] ? bonus[j] : bonus[j + 1];
    for (int32_t j = low; j <= top; j += TILE)
        raise_to_chords(g, w + j, bonus + j, next + j);
}

/* W_n on the points that are wanted. */
static void play(game *g) {
    int32_t low = window_low(g, 1), top = window_top(g, 1);
    for (int32_t j = low; j <= top; j++)
        g->w[j] = last_token(g, j * g->h);
    for (int32_t left = 2; left <= g->n_tokens; left++) {
        int32_t new_low = window_low(g, left), new_top = window_top(g, left);
        extend(g, low, top, new_low, new_top);
        step(g, new_low, new_top);
        double *keep = g->w;
        g->w = g->next;
        g->next = keep;
        low = new_low;
        top = new_top;
    }
}

static dpi_status compute_delta(double eta, int32_t n_tokens, double epsilon, double *delta,
                                dpi_error *err) {
    if (epsilon >= n_tokens * eta * UP) { /* no loss is larger */
        *delta = 0;
        return DPI_STATUS_OK;
    }
    game g;
    DPI_TRY(make_game(&g, eta, n_tokens, epsilon, 0, err));
    play(&g);
    *delta = fmin(1, UP * g.w[0]);
    free_game(&g);
    return DPI_STATUS_OK;
}

/* W depends on l - epsilon alone, so that one game has delta at all epsilons: W_n(-epsilon) of the
 * game for 0. Between grid points e^l W(e^l) is below its chord. */
static double between(const game *g, double epsilon) {
    const double at = -epsilon / g->h;
    const int32_t j = (int32_t)fmax(floor(at), -g->reach), next = j < 0 ? j + 1 : 0;
    const double part = expm1((at - j) * g->h) / expm1(g->h);
    const double left = exp((j - at) * g->h), right = exp((next - at) * g->h);
    return UP * ((1 - part) * left * g->w[j] + part * right * g->w[next]);
}

dpi_status dpi_br_curve(double eta, int32_t n_tokens, const double *epsilon, size_t n,
                        double *delta, dpi_error *err) {
    const double most = n_tokens * eta * UP;
    game g;
    DPI_TRY(make_game(&g, eta, n_tokens, 0, fmin(epsilon[n - 1], most), err));
    play(&g);
    for (size_t i = 0; i < n; i++) /* 0x1p-40: the roundings of the place between two points */
        delta[i] = epsilon[i] >= most ? 0 : fmin(1, (1 + 0x1p-40) * between(&g, epsilon[i]));
    free_game(&g);
    return DPI_STATUS_OK;
}

/* ---- The three functions -------------------------------------------------------------------- */

static const double ETA_MAX = 1e3, EPSILON_MAX = 1e6;

static dpi_status check_tokens(int32_t n_tokens, dpi_error *err) {
    if (n_tokens >= 1 && n_tokens <= DPI_BR_TOKENS_MAX)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG,
                    "exact composition of %d tokens, must be 1..%d: count in zCDP beyond", n_tokens,
                    DPI_BR_TOKENS_MAX);
}

dpi_status dpi_br_delta(double eta, int32_t n_tokens, double epsilon, double *delta,
                        dpi_error *err) {
    DPI_TRY(dpi_account_check("eta", eta, ETA_MAX, false, err));
    DPI_TRY(dpi_account_check("epsilon", epsilon, EPSILON_MAX, false, err));
    DPI_TRY(check_tokens(n_tokens, err));
    return compute_delta(eta, n_tokens, epsilon, delta, err);
}

/* One argument is known, the other is looked for: delta at (eta, epsilon) must be at most target.
 */
typedef struct search {
    double eta, epsilon; /* the known one; 0: the one that is looked for */
    double target;       /* delta */
    int32_t n_tokens;
} search;

/* ln(delta / target): at most 0 where x fits. */
static dpi_status excess(const search *s, double x, double *y, dpi_error *err) {
    double delta, eta = s->eta > 0 ? s->eta : x, epsilon = s->epsilon > 0 ? s->epsilon : x;
    DPI_TRY(compute_delta(eta, s->n_tokens, epsilon, &delta, err));
    *y = log(fmax(delta, 1e-320) / s->target);
    if (*y == 0 && delta > s->target)
        *y = 0x1p-52;
    return DPI_STATUS_OK;
}

/* From an x that fits and one that does not to ones that are 1e-9 apart: secant steps, each nudged
 * to the side of the root that was not hit last, and bisection where they leave the bracket.
 * *fits has been put to the test itself. */
static dpi_status close_in(const search *s, double *fits, double y_fits, double fails,
                           double y_fails, dpi_error *err) {
    double x0 = *fits, y0 = y_fits, x1 = fails, y1 = y_fails; /* the last two points */
    for (int i = 0; i < 100 && fabs(fails - *fits) > 1e-9 * *fits; i++) {
        double nudge = copysign(0.4e-9 * *fits, fails - *fits);
        double x = x1 - y1 * (x1 - x0) / (y1 - y0) + (y1 <= 0 ? nudge : -nudge);
        double share = (x - *fits) / (fails - *fits);
        if (!(share > 0 && share < 1) || i > 20)
            x = *fits + (fails - *fits) / 2;
        x0 = x1, y0 = y1, x1 = x;
        DPI_TRY(excess(s, x, &y1, err));
        if (y1 <= 0)
            *fits = x;
        else
            fails = x;
    }
    return DPI_STATUS_OK;
}

/* From a first guess at the root, walking by `factor` (> 1: larger x are safer) until there is an
 * x that fits and one that does not. If every x tried fits, the last one is the answer. */
static dpi_status solve(const search *s, double guess, double factor, double *x, dpi_error *err) {
    double fits = guess, fails = guess, y, y_fits, y_fails;
    DPI_TRY(excess(s, guess, &y, err));
    y_fits = y_fails = y;
    if (y <= 0) {
        for (int i = 0; y_fails <= 0; i++, factor *= factor) {
            fits = fails, y_fits = y_fails;
            if (i == 8) {
                *x = fits;
                return DPI_STATUS_OK;
            }
            fails = fits / factor;
            DPI_TRY(excess(s, fails, &y_fails, err));
        }
    } else {
        /* Ends: delta is 0 from epsilon = n eta on. */
        for (; y_fits > 0; factor *= factor) {
            fails = fits, y_fails = y_fits;
            fits = fails * factor;
            DPI_TRY(excess(s, fits, &y_fits, err));
        }
    }
    DPI_TRY(close_in(s, &fits, y_fits, fails, y_fails, err));
    *x = fits;
    return DPI_STATUS_OK;
}

dpi_status dpi_br_epsilon(double eta, int32_t n_tokens, double delta, double *epsilon,
                          dpi_error *err) {
    DPI_TRY(dpi_account_check("eta", eta, ETA_MAX, false, err));
    DPI_TRY(dpi_account_check("delta", delta, 1, true, err));
    DPI_TRY(check_tokens(n_tokens, err));
    const search s = {.eta = eta, .target = delta, .n_tokens = n_tokens};
    const double rho = n_tokens * (eta * eta / 8); /* zCDP is 5 to 7 % off: a good guess */
    double guess = 0.95 * (rho + 2 * sqrt(rho * -log(delta))), tighter;
    if (dpi_zcdp_epsilon(fmin(rho, 1e6), delta, &tighter, NULL) == DPI_STATUS_OK)
        guess = 0.95 * tighter;
    return solve(&s, fmax(fmin(guess, n_tokens * eta), DBL_MIN), 1.05, epsilon, err);
}

dpi_status dpi_br_epsilon_below(double eta, int32_t n_tokens, double delta, double guess,
                                double *epsilon, dpi_error *err) {
    DPI_TRY(dpi_account_check("eta", eta, ETA_MAX, false, err));
    DPI_TRY(dpi_account_check("epsilon", guess, EPSILON_MAX, false, err));
    DPI_TRY(dpi_account_check("delta", delta, 1, true, err));
    DPI_TRY(check_tokens(n_tokens, err));
    const search s = {.eta = eta, .target = delta, .n_tokens = n_tokens};
    const double lower = guess / (1 + 1e-5);
    double fits = guess, y_fits, y_lower;
    DPI_TRY(excess(&s, guess, &y_fits, err));
    DPI_TRY(excess(&s, lower, &y_lower, err));
    if (y_fits > 0 || y_lower <= 0)
        return dpi_br_epsilon(eta, n_tokens, delta, epsilon, err);
    DPI_TRY(close_in(&s, &fits, y_fits, lower, y_lower, err));
    *epsilon = fits;
    return DPI_STATUS_OK;
}

dpi_status dpi_br_eta(double epsilon, double delta, int32_t n_tokens, double *eta, dpi_error *err) {
    DPI_TRY(dpi_account_check("epsilon", epsilon, EPSILON_MAX, false, err));
    DPI_TRY(dpi_account_check("delta", delta, 1, true, err));
    DPI_TRY(check_tokens(n_tokens, err));
    const search s = {.epsilon = epsilon, .target = delta, .n_tokens = n_tokens};
    double guess = epsilon / n_tokens, rho, found; /* fits: delta is 0 there */
    if (dpi_zcdp_rho(epsilon, delta, &rho, NULL) == DPI_STATUS_OK)
        guess = fmax(guess, 1.05 * sqrt(8 * rho / n_tokens));
    DPI_TRY(solve(&s, fmin(guess, ETA_MAX), 1 / 1.05, &found, err));
    *eta = fmin(found, ETA_MAX); /* all smaller ones fit too */
    return DPI_STATUS_OK;
}
