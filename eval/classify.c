/* classify.c - see classify.h. */
#include "eval/classify.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/loaded.h"
#include "eval/labelled_rows.h"

/* ---- liblinear ------------------------------------------------------------------------------- */

typedef struct liblinear {
    void *library;
    struct model *(*train)(const struct problem *, const struct parameter *);
    double (*predict)(const struct model *, const struct feature_node *);
    void (*free_model)(struct model **);
    void (*set_print)(void (*)(const char *));
} liblinear;

static dpi_status open_liblinear(liblinear *l, size_t n_bytes, dpi_error *err) {
    EVAL_TRY(eval_library_open("liblinear.so.4", "liblinear4", n_bytes, &l->library, err));
    dpi_status status = eval_library_find(l->library, "train", &l->train, err);
    if (status == DPI_STATUS_OK)
        status = eval_library_find(l->library, "predict", &l->predict, err);
    if (status == DPI_STATUS_OK)
        status = eval_library_find(l->library, "free_and_destroy_model", &l->free_model, err);
    if (status == DPI_STATUS_OK)
        status = eval_library_find(l->library, "set_print_string_function", &l->set_print, err);
    if (status != DPI_STATUS_OK)
        dlclose(l->library);
    return status;
}

static void be_silent(const char *text) { (void)text; }

double eval_macro_f1(const int32_t *label, const int32_t *predicted, const int32_t *which,
                     int32_t n, int32_t n_labels, int32_t *counts) {
    int32_t *right = counts, *found = right + n_labels + 1, *there = found + n_labels + 1;
    double sum = 0;
    memset(counts, 0, 3 * ((size_t)n_labels + 1) * sizeof *counts);
    for (int32_t i = 0; i < n; i++) {
        const int32_t t = which ? which[i] : i;
        there[label[t]]++;
        found[predicted[t]]++;
        right[label[t]] += label[t] == predicted[t];
    }
    for (int32_t k = 1; k <= n_labels; k++)
        sum += there[k] + found[k] > 0 ? 2.0 * right[k] / (there[k] + found[k]) : 0;
    return sum / n_labels;
}

/* label and predicted [test->n] */
static void test_rows(const liblinear *l, const struct model *m, const eval_rows *test,
                      int32_t *label, int32_t *predicted, eval_accuracy *a) {
    int32_t n_right = 0;
    for (int32_t i = 0; i < test->n; i++) {
        label[i] = (int32_t)test->label[i];
        predicted[i] = (int32_t)l->predict(m, test->at[i]);
        n_right += label[i] == predicted[i];
    }
    a->accuracy = (double)n_right / test->n;
}

static double share_of_majority(const eval_rows *train, const eval_rows *test, int32_t n_labels,
                                int32_t *counts) {
    int32_t most = 1, n = 0;
    for (int32_t i = 0; i < train->n; i++)
        counts[(int32_t)train->label[i]]++;
    for (int32_t k = 2; k <= n_labels; k++)
        most = counts[k] > counts[most] ? k : most;
    for (int32_t i = 0; i < test->n; i++)
        n += (int32_t)test->label[i] == most;
    return (double)n / test->n;
}

/* Behind each row the constant 1, whose weight is the intercept. */
static void add_intercept(const eval_rows *r, int32_t index) {
    for (int32_t i = 0; i < r->n; i++) {
        struct feature_node *node = r->at[i];
        while (node->index > 0)
            node++;
        *node = (struct feature_node){index, 1};
    }
}

static dpi_status learn(const eval_vocabulary *v, const eval_rows *train, const eval_rows *test,
                        eval_accuracy *a, int32_t *label, int32_t *predicted, dpi_error *err) {
    liblinear l;
    if (test->n == 0)
        return eval_fail(err, DPI_STATUS_ARG, "test texts with a label: found 0, allowed 1 or "
                         "more");
    int32_t *counts = calloc(4 * ((size_t)v->n_labels + 1), sizeof *counts);
    if (!counts)
        return eval_no_memory(err, "a classifier");
    /* Weights of each label, vectors of its Newton steps, and the rows by label. */
    const size_t n_bytes = (size_t)v->n * ((size_t)v->n_labels + 16) * sizeof(double) +
                           (size_t)train->n * 128 + (1 << 20);
    const dpi_status status = open_liblinear(&l, n_bytes, err);
    if (status == DPI_STATUS_OK) {
        const struct problem problem = {
            .l = train->n, .n = v->n + 1, .y = train->label, .x = train->at, .bias = 1};
        const struct parameter parameter = {.solver_type = L2R_LR, .eps = 1e-4, .C = 1};
        add_intercept(train, v->n + 1);
        add_intercept(test, v->n + 1);
        l.set_print(be_silent);
        struct model *m = l.train(&problem, &parameter);
        test_rows(&l, m, test, label, predicted, a);
        a->macro_f1 = eval_macro_f1(label, predicted, NULL, test->n, v->n_labels, counts);
        l.free_model(&m);
        dlclose(l.library);
        a->majority = share_of_majority(train, test, v->n_labels, counts + 3 * (v->n_labels + 1));
    }
    free(counts);
    return status;
}

dpi_status eval_classify(const eval_texts *train, const eval_texts *test, eval_accuracy *a,
                         int32_t *each, dpi_error *err) {
    int32_t *own = dpi_private_malloc(2 * ((size_t)test->n + 1) * sizeof *own);
    int32_t *const found = each ? each : own;
    eval_vocabulary v;
    eval_rows of_train = {0}, of_test = {0};
    *a = (eval_accuracy){0};
    if (!own)
        return eval_no_memory(err, "a classifier");
    dpi_status status = eval_vocabulary_make(&v, train, err);
    if (status == DPI_STATUS_OK)
        status = eval_rows_make(&v, train, &of_train, err);
    if (status == DPI_STATUS_OK)
        status = eval_rows_make(&v, test, &of_test, err);
    if (status == DPI_STATUS_OK)
        status = learn(&v, &of_train, &of_test, a, found, found + test->n, err);
    a->n_train = of_train.n;
    a->n_test = of_test.n;
    a->n_labels = v.n_labels;
    eval_rows_free(&of_train);
    eval_rows_free(&of_test);
    eval_vocabulary_free(&v);
    dpi_private_free(own);
    return status;
}
