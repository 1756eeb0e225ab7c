/* directions.c - states of texts, and what is made of them. What a unit adds is a function of that
 * unit and of public data alone, to the last bit: its records are read one after the other, by
 * themselves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/exact/gradient.h"
#include "dp/mechanism/steering.h"
#include "dpinfer/memory.h"
#include "pipeline/steer/steer.h"

static dpi_status no_memory(dpi_error *err) { return dpi_no_memory(err, "the states of a text"); }

dpi_example_format dpi_steer_format(const dpi_steer *s) {
    const dpi_steer_options *o = &s->options;
    return (dpi_example_format){
        .model = o->model, .instructions = &s->instructions, .n_positions = o->n_positions,
        .max_per_unit = o->max_per_unit, .pays = s->pays,
        .cancel = o->cancel, .cancel_user = o->cancel_user};
}

/* ---- One text -------------------------------------------------------------------------------- */

static dpi_states states_of(const dpi_reader *r) {
    return (dpi_states){r->steer->layers, r->steer->n_layers, r->sums, r->sizes};
}

/* The text is read in a sequence behind those of the prompts. */
static int32_t text_sequence(const dpi_reader *r) { return r->steer->n_sets; }

static dpi_status read_prompt(dpi_reader *r, int32_t label, dpi_error *err) {
    const dpi_prompts *prompts = r->steer->instructions.prompts[label];
    const dpi_states states = states_of(r);
    dpi_prompts_info info;
    dpi_prompts_info_init(&info);
    DPI_TRY(dpi_prompts_info_get(prompts, &info, err));
    r->n_prompt[label] = info.n_public;
    return dpi_session_read_states(r->session, label, dpi_prompts_public(prompts),
                                   (size_t)info.n_public, &states, err);
}

dpi_status dpi_reader_open(const dpi_steer *s, dpi_reader *reader, dpi_error *err) {
    const dpi_steer_options *o = &s->options;
    dpi_session_options so;
    dpi_session_options_init(&so);
    so.n_seq = s->n_sets + 1, so.n_ctx = o->n_positions;
    so.n_threads = o->n_threads, so.isa = o->isa;
    so.cancel = o->cancel, so.cancel_user = o->cancel_user;
    dpi_reader r = {.steer = s};
    r.sums = dpi_private_malloc((size_t)s->n_states * sizeof *r.sums);
    r.sizes = dpi_private_malloc((size_t)s->n_layers * sizeof *r.sizes);
    r.n_prompt = dpi_calloc((size_t)s->n_sets, sizeof *r.n_prompt);
    dpi_status status = r.sums && r.sizes && r.n_prompt
                            ? dpi_session_create(o->model, &so, &r.session, err)
                            : no_memory(err);
    for (int32_t i = 0; i < s->n_sets && status == DPI_STATUS_OK; i++)
        status = read_prompt(&r, i, err);
    *reader = r;
    if (status != DPI_STATUS_OK)
        dpi_reader_close(reader);
    return status;
}

void dpi_reader_close(dpi_reader *r) {
    dpi_session_free(r->session);
    dpi_private_free(r->sums);
    dpi_private_free(r->sizes);
    free(r->n_prompt);
    *r = (dpi_reader){0};
}

/* *n_tokens that were read of an example, and sums and sizes over them; 0: it is null, or has no
 * token before its last one. That is the end of the text, or where it is cut: nothing follows from
 * its state. Errors: MEMORY, CANCELLED. */
static dpi_status read_text(dpi_reader *r, const dpi_example *x, int32_t *n_tokens,
                            dpi_error *err) {
    const dpi_steer *s = r->steer;
    const int32_t n_prompt = x->tokens ? r->n_prompt[x->label] : 0;
    const int32_t room = s->options.n_positions - n_prompt, seq = text_sequence(r);
    const int32_t n = x->tokens ? x->n - 1 : 0;
    const dpi_states states = states_of(r);
    memset(r->sums, 0, (size_t)s->n_states * sizeof *r->sums);
    memset(r->sizes, 0, (size_t)s->n_layers * sizeof *r->sizes);
    *n_tokens = n < room ? n : room;
    if (*n_tokens < 1) {
        *n_tokens = 0;
        return DPI_STATUS_OK;
    }
    dpi_session_reset(r->session, seq);
    DPI_TRY(dpi_session_fork(r->session, x->label, seq, n_prompt, err));
    return dpi_session_read_states(r->session, seq, x->tokens, (size_t)*n_tokens, &states, err);
}

/* ---- Public texts ---------------------------------------------------------------------------- */

void dpi_public_states_free(dpi_public_states *states) {
    free(states->mean);
    free(states->spread);
    free(states->size);
    free(states->basis);
    *states = (dpi_public_states){0};
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median distance of n texts [n, stride] from their mean, in n_embd numbers. */
static double spread_of(const double *texts, int64_t n, int64_t stride, const double *mean,
                        int32_t n_embd, double *distances) {
    for (int64_t i = 0; i < n; i++) {
        double square = 0;
        for (int32_t c = 0; c < n_embd; c++)
            square += pow(texts[i * stride + c] - mean[c], 2);
        distances[i] = sqrt(square);
    }
    qsort(distances, (size_t)n, sizeof *distances, by_value);
    return distances[n / 2];
}

/* texts [n_texts, n_states]: of those of a label each one's mean over its tokens. at: the label's.
 */
static dpi_status read_texts(dpi_reader *r, const dpi_examples *examples, int32_t label,
                             double *texts, int64_t *n_texts, const dpi_public_states *at,
                             dpi_error *err) {
    const dpi_steer *s = r->steer;
    double n_all = 0;
    for (size_t i = 0; i < examples->n_records; i++) {
        double *text = texts + *n_texts * s->n_states;
        int32_t n = 0;
        if (examples->of[i].label == label)
            DPI_TRY(read_text(r, &examples->of[i], &n, err));
        if (n == 0)
            continue;
        for (int64_t c = 0; c < s->n_states; c++)
            text[c] = r->sums[c] / n;
        for (int32_t l = 0; l < s->n_layers; l++)
            at->size[l] += r->sizes[l];
        n_all += n;
        ++*n_texts;
    }
    for (int32_t l = 0; l < s->n_layers && n_all > 0; l++)
        at->size[l] /= n_all;
    return DPI_STATUS_OK;
}

/* at: the label's. */
static dpi_status find_states(dpi_reader *r, const dpi_examples *examples, int32_t label,
                              double *texts, double *distances, const dpi_public_states *at,
                              dpi_error *err) {
    const dpi_steer *s = r->steer;
    const bool labelled = s->labels.n > 0;
    int64_t n = 0;
    DPI_TRY(read_texts(r, examples, label, texts, &n, at, err));
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < s->n_states; c++)
            at->mean[c] += texts[i * s->n_states + c] / (double)n;
    for (int32_t l = 0; l < s->n_layers && n > 1; l++)
        at->spread[l] = spread_of(texts + l * s->n_embd, n, s->n_states, at->mean + l * s->n_embd,
                                  s->n_embd, distances);
    for (int32_t l = 0; l < s->n_layers; l++)
        if (!(at->spread[l] > 0 && isfinite(at->spread[l]) && isfinite(at->size[l])))
            return dpi_fail(err, DPI_STATUS_ARG,
                            "public texts%s%s: found %lld that have tokens, which lie %g apart "
                            "after layer %d; needed are two or more that differ",
                            labelled ? " of " : "", labelled ? s->labels.names.at[label].data : "",
                            (long long)n, at->spread[l], (int)s->layers[l]);
    for (int32_t l = 0; l < s->n_layers && at->basis; l++)
        DPI_TRY(dpi_steer_basis_find(texts + l * s->n_embd, n, s->n_states,
                                     at->mean + l * s->n_embd, s->n_embd, s->width,
                                     at->basis + (int64_t)l * s->width * s->n_embd, err));
    return DPI_STATUS_OK;
}

dpi_status dpi_public_states_find(dpi_reader *r, const dpi_examples *examples,
                                  dpi_public_states *states, dpi_error *err) {
    const dpi_steer *s = r->steer;
    const size_t n_sets = (size_t)s->n_sets, n_layers = (size_t)s->n_layers;
    const size_t n_states = (size_t)s->n_states, n_basis = (size_t)s->n_one * (size_t)s->n_embd;
    const bool reduced = s->width < s->n_embd;
    dpi_public_states at = {.mean = dpi_calloc(n_sets * n_states, sizeof(double)),
                            .spread = dpi_calloc(n_sets * n_layers, sizeof(double)),
                            .size = dpi_calloc(n_sets * n_layers, sizeof(double))};
    double *texts = dpi_calloc(examples->n_records * n_states + 1, sizeof *texts);
    double *distances = dpi_calloc(examples->n_records + 1, sizeof *distances);
    at.basis = reduced ? dpi_calloc(n_sets * n_basis, sizeof *at.basis) : NULL;
    dpi_status status = at.mean && at.spread && at.size && texts && distances &&
                                (at.basis || !reduced)
                            ? DPI_STATUS_OK
                            : no_memory(err);
    for (size_t i = 0; i < n_sets && status == DPI_STATUS_OK; i++) {
        const dpi_public_states of_label = {at.mean + i * n_states, at.spread + i * n_layers,
                                            at.size + i * n_layers,
                                            reduced ? at.basis + i * n_basis : NULL};
        status = find_states(r, examples, (int32_t)i, texts, distances, &of_label, err);
    }
    free(texts);
    free(distances);
    *states = at;
    if (status != DPI_STATUS_OK)
        dpi_public_states_free(states);
    return status;
}

/* ---- Records --------------------------------------------------------------------------------- */

/* What is released of a state [n_embd] of layer `at`, counted over labels: its part in each
 * direction of the basis, or all of it. */
static void project(const dpi_steer *s, int64_t at, const double *state, double *released) {
    if (!s->at.basis) {
        memcpy(released, state, (size_t)s->n_embd * sizeof *state);
        return;
    }
    const double *basis = s->at.basis + at * s->width * s->n_embd;
    for (int32_t k = 0; k < s->width; k++) {
        released[k] = 0;
        for (int32_t c = 0; c < s->n_embd; c++)
            released[k] += basis[(int64_t)k * s->n_embd + c] * state[c];
    }
}

/* The longest direction beside words, in units of C. */
static double direction_most(const dpi_steer *s) {
    return s->options.n_words > 0 ? sqrt(1 - DPI_WORDS_LONG * DPI_WORDS_LONG) : 1;
}

/* Makes v [n] as long as `length` if it is longer, or in any case. Zeros stay zeros. */
static void set_length(double *v, int64_t n, double length, bool in_any_case) {
    double square = 0;
    for (int64_t c = 0; c < n; c++)
        square += v[c] * v[c];
    const double by = square > 0 ? length / sqrt(square) : 1;
    if (in_any_case || square > length * length)
        for (int64_t c = 0; c < n; c++)
            v[c] *= by;
}

/* C over all layers of a label together: each is as long as its public texts lie apart. */
static double clip_of(const dpi_steer *s) {
    return s->options.clip * sqrt((double)s->n_layers);
}

/* vector [n]: the mean over the records of a unit, from the mean of public texts of its label, in
 * units of their spread, and of it what is released; behind that of all labels their words, those
 * that its records have. Zeros for other labels, and of a unit without a record that has tokens.
 * mean [n_states] is for the work. */
static dpi_status read_unit(dpi_reader *r, const dpi_examples *examples, size_t unit, double *mean,
                            double *vector, dpi_error *err) {
    const dpi_steer *s = r->steer;
    double *words = vector + s->n_vectors;
    int32_t n_records = 0, label = 0;
    memset(vector, 0, (size_t)s->n * sizeof *vector);
    memset(mean, 0, (size_t)s->n_states * sizeof *mean);
    for (int32_t k = 0; k < s->options.max_per_unit; k++) {
        const size_t i = dpi_records_of_unit(examples->records, unit, (size_t)k);
        int32_t n;
        if (i == SIZE_MAX)
            break;
        DPI_TRY(read_text(r, &examples->of[i], &n, err));
        label = n > 0 ? examples->of[i].label : label;
        const double *at = s->at.mean + label * s->n_states;
        const double *spread = s->at.spread + (int64_t)label * s->n_layers;
        for (int64_t c = 0; c < s->n_states && n > 0; c++)
            mean[c] += (r->sums[c] / n - at[c]) / spread[c / s->n_embd];
        n_records += n > 0;
        if (n > 0 && s->options.n_words > 0)
            DPI_TRY(dpi_key_words_add(s, examples->records, i,
                                      words + (int64_t)label * s->options.n_words, err));
    }
    for (int64_t c = 0; c < s->n_states && n_records > 1; c++)
        mean[c] /= n_records;
    for (int32_t l = 0; l < s->n_layers && n_records > 0; l++)
        project(s, (int64_t)label * s->n_layers + l, mean + (int64_t)l * s->n_embd,
                vector + label * s->n_one + (int64_t)l * s->width);
    if (s->options.n_words > 0) {
        set_length(vector, s->n_vectors, direction_most(s) * clip_of(s), false);
        set_length(words + (int64_t)label * s->options.n_words, s->options.n_words,
                   DPI_WORDS_LONG * clip_of(s), true);
    }
    return DPI_STATUS_OK;
}

static dpi_status add_units(dpi_reader *r, const dpi_examples *examples, double *mean,
                            double *vector, float *narrow, int32_t *scratch, int64_t *sum,
                            dpi_error *err) {
    const dpi_steer *s = r->steer;
    const size_t n_units = dpi_records_unit_count(examples->records);
    for (size_t unit = 0; unit < n_units; unit++) {
        DPI_TRY(read_unit(r, examples, unit, mean, vector, err));
        for (int64_t c = 0; c < s->n; c++)
            narrow[c] = (float)vector[c];
        dpi_gradient_add(narrow, s->n, (float)clip_of(s), scratch, sum);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_directions_add(dpi_reader *r, const dpi_examples *examples, int64_t *sum,
                              dpi_error *err) {
    const size_t n = (size_t)r->steer->n;
    double *mean = dpi_private_malloc((size_t)r->steer->n_states * sizeof *mean);
    double *vector = dpi_private_malloc(n * sizeof *vector);
    float *narrow = dpi_private_malloc(n * sizeof *narrow);
    int32_t *scratch = dpi_private_malloc(n * sizeof *scratch);
    const dpi_status status =
        mean && vector && narrow && scratch
            ? add_units(r, examples, mean, vector, narrow, scratch, sum, err)
            : no_memory(err);
    dpi_private_free(mean);
    dpi_private_free(vector);
    dpi_private_free(narrow);
    dpi_private_free(scratch);
    return status;
}

/* ---- After the noise ------------------------------------------------------------------------- */

/* How much of a layer's sum is kept: noise alone has the square n deviation^2, with a deviation of
 * sqrt(2 n) deviation^2, and what is not two of these above it tells nothing; of what is the noise
 * is taken off (James and Stein 1961). No mean of clipped vectors is longer than one of them, which
 * is `longest` in a sum. From the noisy sum and public numbers: post-processing. */
static double kept_of(const int64_t *sum, int32_t n, double deviation, double longest) {
    const double noise = deviation * deviation;
    double square = 0;
    for (int32_t c = 0; c < n; c++)
        square += (double)sum[c] * (double)sum[c];
    if (!(square > (n + 2 * sqrt(2. * n)) * noise))
        return 0;
    return fmin(1 - (n > 2 ? n - 2 : 0) * noise / square, longest / sqrt(square));
}

/* Number c of a state of layer `at`, of what was released. */
static double restored(const dpi_steer *s, int64_t at, const int64_t *released, int32_t c) {
    double sum = 0;
    if (!s->at.basis)
        return (double)released[c];
    const double *basis = s->at.basis + at * s->width * s->n_embd;
    for (int32_t k = 0; k < s->width; k++)
        sum += basis[(int64_t)k * s->n_embd + c] * (double)released[k];
    return sum;
}

void dpi_directions_make(const dpi_steer *s, const int64_t *sum, float *vectors) {
    const double deviation =
        s->claim.parts[0].values[DPI_STEERING_SIGMA] * (double)dpi_gradient_bound(s->n);
    for (int32_t i = 0; i < s->n_sets * s->n_layers; i++) {
        const double one =
            (double)(INT64_C(1) << DPI_GRADIENT_SHIFT) * dpi_steer_units(s, i / s->n_layers);
        const int64_t *of_layer = sum + (int64_t)i * s->width;
        const double longest = one * direction_most(s);
        /* As long as without words, which have taken their part of the clip. */
        const double by = kept_of(of_layer, s->width, deviation, longest) * clip_of(s) / longest *
                          s->at.spread[i] * s->at.size[i];
        for (int32_t c = 0; c < s->n_embd; c++)
            vectors[(int64_t)i * s->n_embd + c] = (float)(restored(s, i, of_layer, c) * by);
    }
}
