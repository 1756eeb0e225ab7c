/* run.c - the settled numbers of a run, see dpinfer/run.h. */
#include "pipeline/run.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/struct.h"
#include "base/utf8.h"
#include "dp/account/account.h"
#include "dp/exact/noise.h"
#include "dp/methods/method.h"
#include "dp/methods/sampling.h"
#include "dpinfer/pace.h"
#include "dpinfer/prompts.h"
#include "dpinfer/release.h"
#include "dpinfer/steer.h"

static const char *const KINDS[] = {
    [DPI_RECORD_OTHER] = "one record",
    [DPI_RECORD_FILE] = "one .txt file",
    [DPI_RECORD_LINE] = "one line of a .jsonl file",
    [DPI_RECORD_ROW] = "one row of a .csv file",
};

const char *dpi_record_kind_text(int32_t kind) {
    return kind >= 0 && (size_t)kind < sizeof KINDS / sizeof *KINDS ? KINDS[kind] : NULL;
}

void dpi_run_init_size(dpi_run *run, size_t size) {
    dpi_run made = {.n_texts = 1, .record_in_prompt = 1};
    dpi_sampler_options_init(&made.method);
    dpi_sampler_plan_init(&made.plan);
    dpi_struct_init(run, size, &made, sizeof made);
}

/* A character that could steer what shows the name: a control character, a line or paragraph
 * separator, a change of direction. */
static bool is_control(const char *text, size_t n_bytes) {
    const unsigned char *s = (const unsigned char *)text;
    if (n_bytes == 1)
        return s[0] < 0x20 || s[0] == 0x7f;
    if (n_bytes == 2)
        return (s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xd8 && s[1] == 0x9c); /* C1; U+061C */
    return n_bytes == 3 && s[0] == 0xe2 &&
           ((s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae))) ||
            (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)); /* U+200E.., U+2028.., U+2066.. */
}

/* As many whole characters as there is room for; '?' for one that is not fit to be shown. */
void dpi_claim_name_text(char *text, size_t size, const char *name) {
    const size_t n_bytes = strlen(name), most = size - 1;
    size_t n = 0;
    for (size_t i = 0, step; i < n_bytes; i += step) {
        step = dpi_utf8_bytes(name + i, n_bytes - i);
        const bool bad = step == 0 || is_control(name + i, step);
        step = step > 0 ? step : 1;
        const size_t n_shown = bad ? 1 : step;
        if (n + n_shown > most)
            break;
        memcpy(text + n, bad ? "?" : name + i, n_shown);
        n += n_shown;
    }
    text[n] = '\0';
}

void dpi_run_name_model(dpi_run *run, const char *name) {
    dpi_claim_name_text(run->model_name, sizeof run->model_name, name);
}

const char *dpi_pace_given_name(int32_t given) {
    return given == DPI_PACE_GIVEN_THETA    ? "pace_theta"
           : given == DPI_PACE_GIVEN_TOKENS ? "pace_tokens"
                                            : NULL;
}

/* ---- What it comes to ------------------------------------------------------------------------ */

int32_t dpi_run_is_assigned(const dpi_run *c) {
    return dpi_method_is_assigned(&c->method);
}

int32_t dpi_run_has_units(const dpi_run *c) { return c->method.max_per_unit > 0; }

double dpi_run_histogram_rho(const dpi_run *c) {
    return c->histogram > 0 ? dpi_rho_gaussian_bound(c->histogram) : 0;
}

double dpi_run_rho(const dpi_run *c) {
    double rho = c->plan.rho_total;
    if (c->histogram > 0)
        rho = nextafter(rho + dpi_run_histogram_rho(c), INFINITY);
    if (c->steering.layers > 0)
        rho = nextafter(rho + dpi_rho_sum_bound(c->steering.sigma), INFINITY);
    return rho;
}

double dpi_run_epsilon(const dpi_run *c) {
    double epsilon = INFINITY;
    if (c->histogram == 0 && c->steering.layers == 0)
        return c->plan.epsilon;
    const dpi_status status = dpi_zcdp_epsilon(dpi_run_rho(c), c->method.delta, &epsilon, NULL);
    return status == DPI_STATUS_OK ? epsilon : INFINITY;
}

int32_t dpi_run_is_proven(const dpi_run *c) {
    const dpi_method_info *m = dpi_method_get(c->method.method);
    return m && m->has_guarantee;
}

int32_t dpi_run_is_private(const dpi_run *c) { return dpi_run_warning(c) == NULL; }

const char *dpi_randomness_warning(int32_t randomness) {
    return randomness == DPI_RANDOMNESS_SYSTEM ? NULL
                                               : "whoever knows the --seed can undo the mechanism";
}

const char *dpi_run_warning(const dpi_run *c) {
    const dpi_method_info *m = dpi_method_get(c->method.method);
    return !m                 ? "the method is not known"
           : !m->has_guarantee ? m->warning
                               : dpi_randomness_warning(c->randomness);
}

size_t dpi_warning_label(const char *warning, char *text, size_t size) {
    return (size_t)(warning ? snprintf(text, size, "NOT PRIVATE: %s", warning)
                            : snprintf(text, size, "PRIVATE"));
}

size_t dpi_run_label(const dpi_run *c, char *text, size_t size) {
    return dpi_warning_label(dpi_run_warning(c), text, size);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static dpi_status check_histogram(const dpi_run *c, dpi_error *err) {
    if (c->histogram == 0)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_check_range("histogram", c->histogram, DPI_NOISE_VARIANCE_MIN,
                            DPI_NOISE_VARIANCE_MAX, err));
    if (c->histogram > DPI_NOISE_VARIANCE_FINE && c->histogram % 256 != 0)
        return dpi_fail(err, DPI_STATUS_ARG, "histogram: found %d / 256, above %d it is whole",
                        c->histogram, DPI_NOISE_VARIANCE_FINE / 256);
    return DPI_STATUS_OK;
}

dpi_status dpi_run_check_released(int32_t released, int64_t n_texts, dpi_error *err) {
    const int64_t others = n_texts > 0 ? n_texts - 1 : 0;
    const int64_t most = others < DPI_EXAMPLES_MAX ? others : DPI_EXAMPLES_MAX;
    return released >= 0 && released <= most
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_ARG,
                          "released: found %d, allowed 0..%d (with %lld texts: some must be of a "
                          "second round)", released, (int)most, (long long)n_texts);
}

dpi_status dpi_run_check(const dpi_run *c, dpi_error *err) {
    DPI_CHECK_FIXED(dpi_run, c, err);
    DPI_TRY(dpi_check_range("n_texts", c->n_texts, 1, INT32_MAX, err));
    DPI_TRY(dpi_run_check_released(c->released, c->n_texts, err));
    DPI_TRY(dpi_check_range("adjacency", c->method.adjacency, 0, DPI_ADJACENCY_ZERO_OUT, err));
    DPI_TRY(dpi_check_range("accountant", c->method.accountant, 0, DPI_ACCOUNTANT_FILTER, err));
    DPI_TRY(dpi_check_range("randomness", c->randomness, 0, DPI_RANDOMNESS_SEED, err));
    DPI_TRY(dpi_check_range("record_kind", c->record_kind, 0, DPI_RECORD_ROW, err));
    DPI_TRY(dpi_check_range("n_records", c->n_records, 0, INT64_MAX, err));
    DPI_TRY(dpi_check_range("pace_texts", c->pace_texts, 0,
                            c->method.pace == DPI_PACE_NONE ? 0 : DPI_PACE_TEXTS_MAX, err));
    DPI_TRY(dpi_check_range("pace_given", c->pace_given, 0,
                            c->pace_texts > 0 ? DPI_PACE_GIVEN_TOKENS : 0, err));
    const dpi_method_info *m = dpi_method_get(c->method.method);
    if (!m)
        return dpi_fail(err, DPI_STATUS_ARG, "method is %d, must be 0..%d", c->method.method,
                        dpi_method_count() - 1);
    if (m->max_ref == 0)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_check_range("record_in_prompt", c->record_in_prompt, 1, 1, err));
    DPI_TRY(dpi_check_range("steering_words", c->steering_words, 0,
                            c->steering.layers > 0 ? DPI_STEER_WORDS_MAX : 0, err));
    DPI_TRY(dpi_check_range("labels", c->labels, 0, DPI_LABELS_PRIVATE, err));
    DPI_TRY(dpi_check_range("n_labels", c->n_labels, c->labels ? 1 : 0,
                            c->labels ? DPI_LABELS_MAX : 0, err));
    DPI_TRY(check_histogram(c, err));
    const dpi_sampling sampling = {.texts_key = "n_texts", .n_texts = c->n_texts,
                                   .n_units = c->n_records, .labels = c->labels,
                                   .n_labels = c->n_labels, .cluster_texts = c->cluster_texts,
                                   .has_histogram = c->histogram > 0};
    return dpi_sampling_check(&c->method, &sampling, err);
}

dpi_status dpi_run_settle(dpi_run *run, dpi_error *err) {
    dpi_sampler_plan plan;
    dpi_sampler_plan_init(&plan);
    DPI_CHECK_FIXED(dpi_run, run, err);
    DPI_TRY(dpi_sampler_plan_make(&run->method, &plan, err));
    DPI_TRY(dpi_run_check(run, err));
    run->plan = plan;
    return DPI_STATUS_OK;
}
