/* perturbed.c - see perturbed.h. */
#include "eval/perturbed.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "dpinfer/account.h"
#include "dpinfer/memory.h"
#include "eval/fail.h"

enum { ROUNDS_MAX = 2000 };

/* ---- Logistic regression --------------------------------------------------------------------- */

static double dot(const double *w, const struct feature_node *x) {
    double sum = 0;
    for (; x->index > 0; x++)
        sum += w[x->index - 1] * x->value;
    return sum;
}

/* g = w + C sum_i -y_i x_i / (1 + exp(y_i w.x_i)); its length. */
static double gradient(const eval_vocabulary *v, const eval_rows *r, int32_t label, double C,
                       const double *w, double *g) {
    double squares = 0;
    memcpy(g, w, (size_t)v->n * sizeof *g);
    for (int32_t i = 0; i < r->n; i++) {
        if (r->label[i] == 0)
            continue;
        const double y = (int32_t)r->label[i] == label ? 1 : -1;
        const double pull = -y * C / (1 + exp(y * dot(w, r->at[i])));
        for (const struct feature_node *x = r->at[i]; x->index > 0; x++)
            g[x->index - 1] += pull * x->value;
    }
    for (int32_t k = 0; k < v->n; k++)
        squares += g[k] * g[k];
    return sqrt(squares);
}

/* Nesterov's method: the Hessian lies between 1 and 1 + C n / 4. work [3, v->n]. True: the gradient
 * is so small that w is within C * slack of the minimum. */
static bool minimise(const eval_vocabulary *v, const eval_rows *r, int32_t label, double C,
                     double *w, double *work) {
    const double most = 1 + C * r->n / 4, root = sqrt(most), speed = (root - 1) / (root + 1);
    double *g = work, *at = work + v->n, *before = at + v->n;
    memset(at, 0, 2 * (size_t)v->n * sizeof *at);
    for (int32_t round = 0; round < ROUNDS_MAX; round++) {
        const double length = gradient(v, r, label, C, at, g);
        if (length <= C * EVAL_PERTURBED_SLACK) {
            memcpy(w, at, (size_t)v->n * sizeof *w);
            return true;
        }
        for (int32_t k = 0; k < v->n; k++) {
            const double next = at[k] - g[k] / most;
            at[k] = next + speed * (next - before[k]);
            before[k] = next;
        }
    }
    return false;
}

static double cost_of(int32_t n) { return 1 / (EVAL_PERTURBED_LAMBDA * (n > 0 ? n : 1)); }

dpi_status eval_logistic(const eval_vocabulary *v, const eval_rows *train, double *w,
                         dpi_error *err) {
    double *work = dpi_private_malloc((3 * (size_t)v->n + 1) * sizeof *work);
    dpi_status status = work ? DPI_STATUS_OK : eval_no_memory(err, "a classifier");
    for (int32_t label = 1; label <= v->n_labels && status == DPI_STATUS_OK; label++)
        if (!minimise(v, train, label, cost_of(train->n), w + (size_t)(label - 1) * (size_t)v->n,
                      work))
            status = eval_fail(err, DPI_STATUS_NUMERIC, "no convergence of a classifier");
    dpi_private_free(work);
    return status;
}

/* Strong convexity 1: a minimum moves by at most the change of the gradient, and a point whose
 * gradient has length g is within g of it. */
double eval_logistic_sensitivity(int32_t n, int32_t n_labels) {
    return (2 + 2 * EVAL_PERTURBED_SLACK) * cost_of(n) * sqrt(n_labels);
}

/* ---- Noise ----------------------------------------------------------------------------------- */

static double uniform(uint64_t *state) { /* in (0, 1] */
    uint64_t bits;
    (void)dpi_random_insecure(state, &bits, sizeof bits); /* it cannot fail */
    return ((double)(bits >> 11) + 1) / 9007199254740992.0;
}

void eval_noise_gaussian(double *b, size_t n, double sigma, uint64_t *state) {
    for (size_t i = 0; i < n; i++)
        b[i] = sigma * sqrt(-2 * log(uniform(state))) * cos(2 * acos(-1) * uniform(state));
}

/* The length has the law Gamma(n, scale): a sum of n exponential ones. */
void eval_noise_of_length(double *b, size_t n, double scale, uint64_t *state) {
    double length = 0, squares = 0;
    eval_noise_gaussian(b, n, 1, state);
    for (size_t i = 0; i < n; i++) {
        squares += b[i] * b[i];
        length -= scale * log(uniform(state));
    }
    for (size_t i = 0; i < n && squares > 0; i++)
        b[i] *= length / sqrt(squares);
}

/* ---- All ------------------------------------------------------------------------------------- */

typedef struct perturbed {
    eval_vocabulary v;
    eval_rows train, test;
    double *w, *noisy; /* [n_labels, v.n] */
} perturbed;

static int32_t find_label(const perturbed *p, const struct feature_node *x) {
    double best = -INFINITY;
    int32_t found = 0;
    for (int32_t k = 0; k < p->v.n_labels; k++) {
        const double score = dot(p->noisy + (size_t)k * (size_t)p->v.n, x);
        if (score > best) {
            best = score;
            found = k + 1;
        }
    }
    return found;
}

/* sigma of Gaussian noise in units of D; 0 for a pure guarantee. */
static dpi_status find_sigma(double epsilon, double delta, double *sigma, dpi_error *err) {
    double rho;
    *sigma = 0;
    if (delta == 0 || isinf(epsilon))
        return DPI_STATUS_OK;
    EVAL_TRY(dpi_zcdp_rho(epsilon, delta, &rho, err));
    *sigma = 1 / sqrt(2 * rho);
    return DPI_STATUS_OK;
}

static void draw(perturbed *p, double epsilon, double sigma, double *right) {
    const size_t n = (size_t)p->v.n_labels * (size_t)p->v.n;
    const double most = eval_logistic_sensitivity(p->train.n, p->v.n_labels);
    uint64_t state = 1; /* any constant */
    for (int32_t i = 0; i < p->test.n; i++)
        right[i] = 0;
    for (int32_t k = 0; k < EVAL_PERTURBED_DRAWS; k++) {
        if (isinf(epsilon))
            memset(p->noisy, 0, n * sizeof *p->noisy);
        else if (sigma > 0)
            eval_noise_gaussian(p->noisy, n, sigma * most, &state);
        else
            eval_noise_of_length(p->noisy, n, most / epsilon, &state);
        for (size_t i = 0; i < n; i++)
            p->noisy[i] += p->w[i];
        for (int32_t i = 0; i < p->test.n; i++)
            right[i] += (find_label(p, p->test.at[i]) == (int32_t)p->test.label[i]) /
                        (double)EVAL_PERTURBED_DRAWS;
    }
}

static dpi_status learn(perturbed *p, double epsilon, double delta, double *right, dpi_error *err) {
    const size_t n = (size_t)p->v.n_labels * (size_t)p->v.n + 1;
    double sigma;
    if (p->train.n == 0 || p->test.n == 0)
        return eval_fail(err, DPI_STATUS_ARG, "texts with a label: found %d and %d, allowed 1 or "
                         "more", (int)p->train.n, (int)p->test.n);
    p->w = dpi_private_malloc(n * sizeof *p->w);
    p->noisy = dpi_private_malloc(n * sizeof *p->noisy);
    if (!p->w || !p->noisy)
        return eval_no_memory(err, "a classifier");
    EVAL_TRY(find_sigma(epsilon, delta, &sigma, err));
    EVAL_TRY(eval_logistic(&p->v, &p->train, p->w, err));
    draw(p, epsilon, sigma, right);
    return DPI_STATUS_OK;
}

dpi_status eval_classify_perturbed(const eval_texts *synthetic, const eval_texts *train,
                                   const eval_texts *test, double epsilon, double delta,
                                   double *right, int32_t *n, dpi_error *err) {
    perturbed p = {0};
    dpi_status status = eval_vocabulary_make(&p.v, synthetic, err);
    if (status == DPI_STATUS_OK)
        status = eval_rows_make(&p.v, train, &p.train, err);
    if (status == DPI_STATUS_OK)
        status = eval_rows_make(&p.v, test, &p.test, err);
    if (status == DPI_STATUS_OK)
        status = learn(&p, epsilon, delta, right, err);
    *n = p.test.n;
    eval_rows_free(&p.train);
    eval_rows_free(&p.test);
    eval_vocabulary_free(&p.v);
    dpi_private_free(p.w);
    dpi_private_free(p.noisy);
    return status;
}
