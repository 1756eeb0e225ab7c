/* attack.c - see attack.h: documents, their perturbation, and what is counted of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/local/local.h"
#include "dpinfer/bounds.h"
#include "dpinfer/memory.h"
#include "dpinfer/process.h"
#include "dpinfer/text.h"
#include "audit/attack/inside.h"

enum { K = 10 }; /* nearest words */

DPI_STRUCT_DEFAULTS(dpi_attack_options, 0)

DPI_STRUCT_DEFAULTS(dpi_attack_result, 0)

/* ---- Life cycle ------------------------------------------------------------------------------ */

static dpi_status check_options(const dpi_vocabulary *v, const dpi_attack_options *o,
                                dpi_error *err) {
    if (o->language != 0 && o->language != 1)
        return dpi_fail(err, DPI_STATUS_ARG, "language %d, must be 0 or 1", o->language);
    if (o->n_threads < 0 || o->n_threads > 1024)
        return dpi_fail(err, DPI_STATUS_ARG, "n_threads %d, must be 0..1024", o->n_threads);
    if (!v->distance)
        return dpi_fail(err, DPI_STATUS_STATE, "the vocabulary has not been measured");
    if (o->model && v->model)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "model: must be NULL, the vocabulary is that of a model");
    if (o->language && !v->model && !o->model)
        return dpi_fail(err, DPI_STATUS_STATE,
                        "guesses of a language model need a model, or the vocabulary of a model");
    return DPI_STATUS_OK;
}

dpi_status dpi_attack_create(const dpi_vocabulary *v, const dpi_attack_options *options,
                             dpi_attack **attack, dpi_error *err) {
    if (!v || !attack)
        return dpi_fail(err, DPI_STATUS_ARG, "vocabulary or attack is NULL");
    DPI_COPY_STRUCT(dpi_attack_options, o, options, err);
    DPI_TRY(check_options(v, &o, err));
    dpi_attack *a = dpi_calloc(1, sizeof *a);
    if (!a)
        return dpi_no_memory(err, "an attack");
    a->vocabulary = v;
    a->options = o;
    a->options.n_threads = dpi_process_threads(o.n_threads ? o.n_threads : dpi_processors());
    *attack = a;
    return DPI_STATUS_OK;
}

static void forget_words(attacked_document *d) {
    for (size_t i = 0; d->numbers && i < d->n; i++)
        dpi_private_free(d->numbers[i]);
    free(d->numbers);
    dpi_private_free(d->words);
    d->numbers = NULL;
    d->words = NULL;
    d->n = 0;
}

void dpi_attack_free(dpi_attack *a) {
    if (!a)
        return;
    for (size_t i = 0; i < a->n; i++) {
        forget_words(&a->documents[i]);
        dpi_private_free(a->documents[i].text);
    }
    free(a->documents);
    free(a->synonyms.at);
    free(a);
}

dpi_status dpi_attack_add(dpi_attack *a, const char *text, size_t n_bytes, dpi_error *err) {
    if (!a || (!text && n_bytes > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "attack or text is NULL");
    if (!dpi_grow(&a->documents, &a->capacity, a->n + 1, sizeof *a->documents))
        return dpi_no_memory(err, "an attack");
    char *copy = dpi_private_malloc(n_bytes + 1);
    if (!copy)
        return dpi_no_memory(err, "an attack");
    if (n_bytes > 0)
        memcpy(copy, text, n_bytes);
    a->documents[a->n++] = (attacked_document){.text = copy, .n_bytes = n_bytes};
    return DPI_STATUS_OK;
}

/* ---- Perturbation ---------------------------------------------------------------------------- */

static uint64_t key_of(const dpi_vocabulary *v, int32_t place, const char *text, size_t n_bytes) {
    if (place >= 0)
        return dpi_hash(DPI_HASH_INIT, v->words[place], strlen(v->words[place]));
    return dpi_attack_spelling(text, n_bytes);
}

static dpi_status copy_text(const char *text, size_t n_bytes, char **copy, dpi_error *err) {
    if (!(*copy = dpi_private_malloc(n_bytes + 1)))
        return dpi_no_memory(err, "an attack");
    memcpy(*copy, text, n_bytes);
    (*copy)[n_bytes] = '\0';
    return DPI_STATUS_OK;
}

/* What is kept can be told from what was drawn where no word of the vocabulary is spelled so. */
static bool is_known(const dpi_vocabulary *v, const dpi_perturbed_word *w) {
    return w->how == DPI_REPLACED_KEPT && (w->from < 0 || strlen(v->words[w->from]) != w->n_bytes ||
                                           memcmp(v->words[w->from], w->word, w->n_bytes) != 0);
}

/* Where it stands in the vocabulary; a number that was drawn may be a word of it too. */
static int32_t place_shown(const dpi_vocabulary *v, const dpi_perturbed_word *w) {
    if (w->how == DPI_REPLACED_NUMBER)
        return dpi_vocabulary_find(v, w->replacement, strlen(w->replacement));
    return w->to;
}

/* A token without a place has no text of its own (perturb.c): its id tells it from others. */
static dpi_status key_tokens(const dpi_vocabulary *v, attacked_document *d, dpi_error *err) {
    const size_t room = 4 * d->n_bytes + 5; /* text.h: always suffices */
    size_t n;
    int32_t *tokens = dpi_private_malloc(room * sizeof *tokens);
    if (!tokens)
        return dpi_no_memory(err, "an attack");
    const dpi_status status = dpi_tokenize(v->model, d->text, d->n_bytes, 0, tokens, room, &n, err);
    for (size_t i = 0; status == DPI_STATUS_OK && i < d->n && i < n; i++)
        if (d->words[i].from < 0)
            d->words[i].old_key = dpi_hash(~DPI_HASH_INIT, &tokens[i], sizeof tokens[i]);
    dpi_private_free(tokens);
    return status;
}

static dpi_status keep_words(const dpi_vocabulary *v, attacked_document *d,
                             const dpi_perturbed_word *words, size_t n, dpi_error *err) {
    d->n = n;
    d->words = dpi_private_malloc((n + 1) * sizeof *d->words);
    d->numbers = dpi_calloc(n + 1, sizeof *d->numbers);
    if (!d->words || !d->numbers)
        return dpi_no_memory(err, "an attack");
    for (size_t i = 0; i < n; i++) {
        const dpi_perturbed_word *w = &words[i];
        const bool kept = w->how == DPI_REPLACED_KEPT;
        d->words[i] = (attacked_word){
            .from = w->from,
            .to = place_shown(v, w),
            .how = w->how,
            .n_list = w->n_list,
            .known = is_known(v, w),
            .old_key = key_of(v, w->from, w->word, w->n_bytes),
            .new_key = kept ? key_of(v, w->from, w->word, w->n_bytes)
                            : key_of(v, w->to, w->replacement, strlen(w->replacement)),
        };
        if (w->how == DPI_REPLACED_NUMBER)
            DPI_TRY(copy_text(w->replacement, strlen(w->replacement), &d->numbers[i], err));
        else if (kept && w->from < 0)
            DPI_TRY(copy_text(w->word, w->n_bytes, &d->numbers[i], err));
    }
    return v->model ? key_tokens(v, d, err) : DPI_STATUS_OK;
}

static dpi_status perturb_documents(dpi_attack *a, const dpi_perturb_options *perturb,
                                    dpi_error *err) {
    dpi_perturber *p;
    DPI_TRY(dpi_perturber_create(a->vocabulary, perturb, &p, err));
    dpi_status status = DPI_STATUS_OK;
    for (size_t i = 0; i < a->n && status == DPI_STATUS_OK; i++) {
        attacked_document *d = &a->documents[i];
        const dpi_perturbed_word *words;
        size_t n;
        forget_words(d);
        status = dpi_perturb(p, d->text, d->n_bytes, &words, &n, err);
        if (status == DPI_STATUS_OK)
            status = keep_words(a->vocabulary, d, words, n, err);
    }
    dpi_perturber_free(p);
    return status;
}

/* ---- Counting -------------------------------------------------------------------------------- */

/* How many words are nearer to y than x is; y itself is the nearest, then the order of places. */
static int32_t rank_of(const dpi_vocabulary *v, int32_t y, int32_t x) {
    const uint32_t *row = v->distance + (size_t)y * (size_t)v->n;
    int32_t rank = 0;
    if (x == y)
        return 0;
    for (int32_t z = 0; z < v->n; z++)
        rank += z == y || row[z] < row[x] || (row[z] == row[x] && z < x && z != y);
    return rank;
}

static void count_drawn(const dpi_attack *a, const attacked_word *w, dpi_attack_result *r,
                        double *distance) {
    const dpi_vocabulary *v = a->vocabulary;
    r->n_drawn++;
    r->n_alike += rank_of(v, w->from, w->to) <= K;
    r->n_synonyms += a->synonyms.n > 0 && dpi_attack_same_meaning(a, w->from, w->to);
    *distance += ldexp((double)v->distance[(size_t)w->from * (size_t)v->n + (size_t)w->to],
                       -DPI_LOCAL_SHIFT);
}

static bool is_guessed(const dpi_channel *c, const attacked_word *w) {
    const int32_t guess = c->guess[dpi_channel_seen(c, w)];
    if (w->known)
        return true;
    return guess == c->n ? w->old_key == c->other_key : guess >= 0 && guess == w->from;
}

static void count_word(const dpi_attack *a, const dpi_channel *c, const attacked_word *w,
                       dpi_attack_result *r, double *distance) {
    const dpi_vocabulary *v = a->vocabulary;
    const bool placed = w->from >= 0 && w->to >= 0;
    const bool same = w->old_key == w->new_key;
    if (w->how == DPI_REPLACED_DROPPED) {
        r->n_dropped++;
        return;
    }
    r->n_words++;
    r->n_right[DPI_GUESS_NEAREST] += same;
    r->n_right[DPI_GUESS_NEAREST_10] += placed ? rank_of(v, w->to, w->from) < K : same;
    r->n_right[DPI_GUESS_BAYES] += is_guessed(c, w);
    if (w->how == DPI_REPLACED_DRAWN)
        count_drawn(a, w, r, distance);
}

static int by_size(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* From how much of the vocabulary words were drawn: Figure 9 of the paper. */
static dpi_status measure_lists(const dpi_attack *a, dpi_attack_result *r, dpi_error *err) {
    static const double at[3] = {.1, .5, .9};
    size_t n = 0;
    int32_t *sizes = dpi_private_malloc(((size_t)r->n_drawn + 1) * sizeof *sizes);
    if (!sizes)
        return dpi_no_memory(err, "an attack");
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < a->documents[i].n; j++) {
            const attacked_word *w = &a->documents[i].words[j];
            if (w->how == DPI_REPLACED_DRAWN && w->n_list > 0)
                sizes[n++] = w->n_list;
        }
    qsort(sizes, n, sizeof *sizes, by_size);
    for (int i = 0; i < 3 && n > 0; i++)
        r->list[i] = (double)sizes[(size_t)(at[i] * (double)(n - 1) + .5)] / a->vocabulary->n;
    dpi_private_free(sizes);
    return DPI_STATUS_OK;
}

static dpi_status count_all(const dpi_attack *a, const dpi_channel *c, dpi_attack_result *r,
                            dpi_error *err) {
    double distance = 0;
    int64_t n_known = 0;
    for (size_t i = 0; i < a->n; i++) {
        const attacked_document *d = &a->documents[i];
        for (size_t j = 0; j < d->n; j++) {
            count_word(a, c, &d->words[j], r, &distance);
            n_known += d->words[j].known;
        }
        DPI_TRY(dpi_attack_grams(d, r, err));
    }
    r->distance = r->n_drawn > 0 ? distance / (double)r->n_drawn : 0;
    r->best = (double)n_known;
    for (int32_t y = 0; y <= c->n; y++)
        r->best += c->score[y];
    r->best /= (double)(r->n_words > 0 ? r->n_words : 1);
    for (int i = DPI_GUESS_NEAREST; i <= DPI_GUESS_BAYES; i++)
        r->n_guessed[i] = r->n_words;
    return measure_lists(a, r, err);
}

dpi_status dpi_attack_run(dpi_attack *a, const dpi_perturb_options *perturb,
                          dpi_attack_result *result, dpi_error *err) {
    dpi_attack_result r;
    dpi_channel channel;
    if (!a || !perturb)
        return dpi_fail(err, DPI_STATUS_ARG, "attack or perturb is NULL");
    DPI_CHECK_STRUCT(dpi_attack_result, result, err);
    dpi_attack_result_init(&r);
    DPI_TRY(perturb_documents(a, perturb, err));
    DPI_TRY(dpi_channel_create(a, perturb, a->options.language, &channel, err));
    dpi_status status = count_all(a, &channel, &r, err);
    if (status == DPI_STATUS_OK && a->options.language)
        status = dpi_attack_language(a, &channel, &r, err);
    dpi_channel_free(&channel);
    if (status == DPI_STATUS_OK)
        dpi_struct_give(result, &r, sizeof r);
    return status;
}

void dpi_attack_interval(int64_t k, int64_t n, double *low, double *high) {
    const int32_t most = INT32_MAX;
    if (n > most) { /* the same share of fewer: wider */
        k = (int64_t)((double)k * most / (double)n);
        n = most;
    }
    *low = dpi_binomial_lower((int32_t)n, (int32_t)k, .025);
    *high = dpi_binomial_upper((int32_t)n, (int32_t)k, .025);
}
