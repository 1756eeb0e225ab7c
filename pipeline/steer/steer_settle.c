/* steer_settle.c - the numbers of steering vectors, before a record is read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/text.h"
#include "dp/exact/gradient.h"
#include "dp/mechanism/steering.h"
#include "dpinfer/gaussian.h"
#include "dpinfer/process.h"
#include "engine/model.h"
#include "pipeline/claim/claim_file.h"
#include "pipeline/run.h"
#include "pipeline/steer/steer.h"

DPI_STRUCT_DEFAULTS(dpi_steer_options,
    .n_public = 64, .n_public_tokens = 128, .chat = DPI_CHAT_AUTO, .n_positions = 256,
    .max_per_unit = 4, .adjacency = DPI_ADJACENCY_REPLACE_BY_NULL, .delta = 1e-6, .clip = 1,
    .n_words = -1)

_Static_assert((int)DPI_STEER_SIGMA_MAX <= (int)DPI_GRADIENT_NOISE_MAX &&
                   (int)DPI_STEER_SIGMA_MAX <= (int)DPI_GAUSSIAN_SIGMA_MAX,
               "the noise is drawn and accounted for");

static dpi_status check(const dpi_steer_options *o, dpi_error *err) {
    if (!o->model || !o->records)
        return dpi_fail(err, DPI_STATUS_ARG, "model and records must not be NULL");
    DPI_TRY(dpi_check_range("n_public", o->n_public, 2, DPI_STEER_PUBLIC_MAX, err));
    DPI_TRY(dpi_check_range("n_public_tokens", o->n_public_tokens, 1, 1 << 20, err));
    DPI_TRY(dpi_check_range("max_per_unit", o->max_per_unit, 1, DPI_STEER_PER_UNIT_MAX, err));
    if (o->adjacency != DPI_ADJACENCY_REPLACE_BY_NULL && o->adjacency != DPI_ADJACENCY_ADD_REMOVE)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "adjacency: allowed are replace-by-null and add-remove");
    if ((o->n_units > 0) != (o->adjacency == DPI_ADJACENCY_ADD_REMOVE))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "units: %s", o->n_units > 0
                                         ? "allowed with add-remove, else they are counted"
                                         : "found none, needed with add-remove is about how many "
                                           "there are, a public number");
    if (!(o->epsilon >= 0 && o->sigma >= 0) || (o->epsilon > 0) == (o->sigma > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "epsilon: found %g with sigma %g, allowed is one of "
                                             "them", o->epsilon, o->sigma);
    DPI_TRY(dpi_check_range("n_words", o->n_words, -1, DPI_STEER_WORDS_MAX, err));
    if (o->n_words > 0 && !dpi_records_has_labels(o->records))
        return dpi_fail(err, DPI_STATUS_ARG, "n_words: found %d, allowed with labels",
                        (int)o->n_words);
    if (!(o->clip > 0 && o->clip <= 1e6))
        return dpi_fail(err, DPI_STATUS_ARG, "clip: found %g, allowed above 0 and at most 1e6",
                        o->clip);
    if (o->ledger && !o->dataset)
        return dpi_fail(err, DPI_STATUS_ARG, "dataset: found none, needed with a ledger");
    if (dpi_claim_file_has(o->model->gguf))
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the model was trained on records itself: the vectors would not count what "
                        "that cost; allowed is a model without such a claim");
    if (o->model->adapters)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the model has an adapter, and what records it was trained on is not known "
                        "here: allowed is a model without one");
    if (o->model->control)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "the model has a control vector: allowed is "
                                                     "one without");
    if (o->ledger && (o->seeded || isinf(o->epsilon)))
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a ledger counts guarantees, and these vectors have none");
    return DPI_STATUS_OK;
}

/* llama.cpp has no vector for layer 0. */
static dpi_status read_layers(dpi_steer *s, dpi_error *err) {
    const dpi_steer_options *o = &s->options;
    const int32_t n_layer = s->options.model->config.n_layer, middle = n_layer / 2;
    const int32_t *layers = o->n_layers > 0 ? o->layers : &middle;
    DPI_TRY(dpi_check_range("the model's layers", n_layer, 2, 1 << 20, err));
    s->n_layers = o->n_layers > 0 ? o->n_layers : 1;
    for (int32_t i = 0; i < s->n_layers; i++)
        if (layers[i] < 1 || layers[i] >= n_layer || (i > 0 && layers[i] <= layers[i - 1]))
            return dpi_fail(err, DPI_STATUS_ARG, "layers: found %d, allowed are 1..%d, each once, "
                                                 "ascending", (int)layers[i], (int)n_layer - 1);
    s->layers = dpi_calloc((size_t)s->n_layers, sizeof *s->layers);
    if (!s->layers)
        return dpi_no_memory(err, "the layers");
    memcpy(s->layers, layers, (size_t)s->n_layers * sizeof *layers);
    s->options.layers = s->layers, s->options.n_layers = s->n_layers;
    s->n_embd = o->model->config.n_embd;
    s->n_states = (int64_t)s->n_layers * s->n_embd;
    return DPI_STATUS_OK;
}

static dpi_status find_sigma(const dpi_steer_options *o, double *sigma, dpi_error *err) {
    dpi_gaussian g;
    *sigma = o->sigma;
    if (o->epsilon > 0 && !isinf(o->epsilon)) {
        dpi_gaussian_init(&g);
        DPI_TRY(dpi_gaussian_sigma(&g, o->epsilon, o->delta, sigma, err));
    }
    if (isinf(o->epsilon) || (*sigma >= DPI_GAUSSIAN_SIGMA_MIN && *sigma <= DPI_STEER_SIGMA_MAX))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG, "%s: found %g, which is a sigma of %g, allowed %g..%g",
                    o->sigma > 0 ? "sigma" : "epsilon", o->sigma > 0 ? o->sigma : o->epsilon,
                    *sigma, DPI_GAUSSIAN_SIGMA_MIN, DPI_STEER_SIGMA_MAX);
}

/* The noise on a mean of vectors that are at most 1 long has the length sigma sqrt(width) / units.
 * Where that is more than NOISE_OF_ALL with all numbers, it is better to release fewer, so that it
 * is about NOISE: what public texts do not tell of the direction is then lost. */
#define NOISE_OF_ALL .4
#define NOISE .25

static int32_t choose_rank(const dpi_steer *s, double sigma, int64_t most) {
    double n_units = dpi_steer_units(s, 0);
    for (int32_t i = 1; i < s->n_sets; i++)
        n_units = fmin(n_units, dpi_steer_units(s, i));
    const double one = sigma / n_units; /* of a number */
    if (one * sqrt(s->n_embd) <= NOISE_OF_ALL)
        return s->n_embd;
    const double width = NOISE / one * (NOISE / one);
    return width < 1 ? 1 : width < (double)most ? (int32_t)width : (int32_t)most;
}

static dpi_status settle_rank(dpi_steer *s, double sigma, dpi_error *err) {
    const dpi_steer_options *o = &s->options;
    const int64_t n_texts = o->public_texts
                                ? (int64_t)dpi_records_count(o->public_texts) / s->n_sets
                                : o->n_public;
    const int64_t most = n_texts - 1 < s->n_embd ? n_texts - 1 : s->n_embd;
    if (o->rank < 0 || (o->rank > most && o->rank != s->n_embd))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "rank: found %d, allowed 1..%lld, fewer than public texts of a label, or "
                        "%d, all", (int)o->rank, (long long)most, (int)s->n_embd);
    s->width = o->rank > 0 ? o->rank : choose_rank(s, sigma, most > 1 ? most : 1);
    s->n_one = (int64_t)s->n_layers * s->width;
    s->n_vectors = s->n_sets * s->n_one;
    s->n = s->n_vectors + (int64_t)s->n_sets * o->n_words;
    return DPI_STATUS_OK;
}

dpi_status dpi_steer_settle(dpi_steer *s, dpi_error *err) {
    dpi_steer_options *o = &s->options;
    dpi_claim *c = &s->claim;
    dpi_model_info info;
    double sigma;
    DPI_TRY(check(o, err));
    if (o->n_words < 0)
        o->n_words = dpi_records_has_labels(o->records) ? DPI_STEER_WORDS : 0;
    if (o->adjacency == DPI_ADJACENCY_REPLACE_BY_NULL)
        o->n_units = (int64_t)dpi_records_unit_count(o->records);
    if (o->n_units < 1)
        return dpi_fail(err, DPI_STATUS_ARG, "records: found none");
    if (!(o->delta > 0 && o->delta * (double)o->n_units < 1))
        return dpi_fail(err, DPI_STATUS_ARG, "delta: found %g, allowed below 1 / units = %g",
                        o->delta, 1 / (double)o->n_units);
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(o->model, &info, err));
    DPI_TRY(dpi_check_range("positions", o->n_positions, 3, info.n_ctx_train, err));
    if (o->n_threads == 0)
        o->n_threads = dpi_processors();
    DPI_TRY(dpi_steer_labels_make(o, &s->labels, err));
    s->n_sets = s->labels.n > 0 ? s->labels.n : 1;
    DPI_TRY(dpi_check_range("public texts", (int64_t)o->n_public * s->n_sets, 2, 1 << 20, err));
    DPI_TRY(read_layers(s, err));
    DPI_TRY(find_sigma(o, &sigma, err));
    DPI_TRY(settle_rank(s, sigma, err));
    dpi_claim_init(c);
    c->adjacency = o->adjacency;
    c->record_kind = dpi_records_kind(o->records);
    c->max_per_unit = dpi_records_has_units(o->records) ? o->max_per_unit : 0;
    c->n_units = o->n_units;
    if (s->labels.n > 0)
        c->labels = o->adjacency == DPI_ADJACENCY_ADD_REMOVE ? DPI_LABELS_PRIVATE
                                                             : DPI_LABELS_PUBLIC;
    c->n_labels = s->labels.n;
    c->delta = o->delta;
    c->randomness = o->seeded ? DPI_RANDOMNESS_SEED : DPI_RANDOMNESS_SYSTEM;
    dpi_claim_name_text(c->model_name, sizeof c->model_name, info.name);
    double *values = dpi_claim_add(c, "steering")->values;
    values[DPI_STEERING_SIGMA] = sigma;
    values[DPI_STEERING_CLIP] = o->clip;
    values[DPI_STEERING_LAYERS] = s->n_layers;
    values[DPI_STEERING_NUMBERS] = (double)(s->n_sets * s->n_states);
    values[DPI_STEERING_WORDS] = o->n_words;
    values[DPI_STEERING_RANK] = s->width < s->n_embd ? s->width : 0;
    return dpi_claim_settle(c, err);
}
