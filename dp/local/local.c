/* local.c - see local.h. The proofs are in dp/PRIVACY.md section 21. */
#include "dp/local/local.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/struct.h"
#include "dpinfer/process.h"

/* A score is at most `most` below the best one: weights are not less than 2^-69 of the largest. */
enum { DIM_MAX = 1 << 14 };
#define SCORE_MOST (INT64_C(80) << DPI_LOCAL_BITS)

DPI_STRUCT_DEFAULTS(dpi_perturb_options,
    .mechanism = DPI_WORDS_RANTEXT, .epsilon = 6, .rare = .9, .replaced = .3, .group_size = 20)

const char *dpi_words_mechanism_name(int32_t mechanism) {
    static const char *const names[] = {"rantext", "santext+", "custext+", "exponential",
                                        "calibrated"};
    return mechanism >= 0 && mechanism < DPI_N_WORDS_MECHANISMS ? names[mechanism] : NULL;
}

int32_t dpi_perturb_frequent(const dpi_perturb_options *o, int32_t n_words) {
    return (int32_t)(n_words - fmax(1, rint(o->rare * n_words)));
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static dpi_status check_options(const dpi_perturb_options *o, dpi_error *err) {
    DPI_CHECK_FIXED(dpi_perturb_options, o, err);
    if (!dpi_words_mechanism_name(o->mechanism))
        return dpi_fail(err, DPI_STATUS_ARG, "mechanism %d, must be 0..%d", o->mechanism,
                        DPI_N_WORDS_MECHANISMS - 1);
    if (!(o->epsilon >= .001 && o->epsilon <= 64))
        return dpi_fail(err, DPI_STATUS_ARG, "epsilon of a word %g, must be .001..64", o->epsilon);
    if (!(o->rare > 0 && o->rare <= 1))
        return dpi_fail(err, DPI_STATUS_ARG, "rare %g, must be above 0 and at most 1", o->rare);
    if (!(o->replaced >= 0 && o->replaced <= 1))
        return dpi_fail(err, DPI_STATUS_ARG, "replaced %g, must be 0..1", o->replaced);
    if (o->group_size < 2 || o->group_size > 1000)
        return dpi_fail(err, DPI_STATUS_ARG, "group_size %d, must be 2..1000", o->group_size);
    if (o->n_threads < 0 || o->n_threads > 1024)
        return dpi_fail(err, DPI_STATUS_ARG, "n_threads %d, must be 0..1024", o->n_threads);
    return DPI_STATUS_OK;
}

/* The exponent epsilon / 2 in bits of 2^-40, less than its worth by the range of the weights'
 * rounding (2^-38) and of the draw, and rounded down: see the theorem. */
static int64_t score_of(double epsilon) {
    const double log2e = 0x1.71547652b82fep0;
    return (int64_t)floor(ldexp((epsilon - 0x1p-34) / 2 * log2e, DPI_LOCAL_BITS) * (1 - 0x1p-50));
}

double dpi_local_rantext_z(double epsilon) {
    if (epsilon < 2)
        return epsilon;
    return .01658160142 * log(19.064721649556482 * epsilon - 38.1294334077209) + 9.311083811697406;
}

static dpi_status set_noise(dpi_local *l, const double *range, dpi_error *err) {
    const double z = dpi_local_rantext_z(l->options.epsilon);
    l->noise_scale = dpi_calloc((size_t)l->dim, sizeof *l->noise_scale);
    if (!l->noise_scale)
        return dpi_no_memory(err, "noise of %d dimensions", l->dim);
    for (int32_t k = 0; k < l->dim; k++) {
        const double scale = rint(ldexp(range[k] / z, DPI_LOCAL_SHIFT));
        if (!(scale <= 0x1p42))
            return dpi_fail(err, DPI_STATUS_NUMERIC,
                            "dimension %d of the vectors has a range of %g", k, range[k]);
        l->noise_scale[k] = scale < 1 ? 1 : (int64_t)scale;
    }
    return DPI_STATUS_OK;
}

typedef struct candidate {
    uint32_t distance;
    int32_t word;
} candidate;

static int by_distance(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return x->word < y->word ? -1 : x->word > y->word;
}

/* The words of a group, in their order, as a list. */
static void link_group(dpi_local *l, candidate *members, int32_t n) {
    int32_t first = members[0].word;
    for (int32_t i = 0; i < n; i++) /* members hold some 20 words: insertion */
        for (int32_t j = i; j > 0 && members[j - 1].word > members[j].word; j--) {
            const candidate swap = members[j];
            members[j] = members[j - 1];
            members[j - 1] = swap;
        }
    first = members[0].word;
    for (int32_t i = 0; i < n; i++) {
        l->group[members[i].word] = first;
        l->next[members[i].word] = i + 1 < n ? members[i + 1].word : -1;
    }
}

/* A word that has no group yet, in the order of the vocabulary, and its nearest that have none. */
static dpi_status make_groups(dpi_local *l, dpi_error *err) {
    const size_t n = (size_t)l->n;
    candidate *open = dpi_calloc(n, sizeof *open);
    l->group = dpi_calloc(n, sizeof *l->group);
    l->next = dpi_calloc(n, sizeof *l->next);
    if (!open || !l->group || !l->next) {
        free(open);
        return dpi_no_memory(err, "groups of %d words", l->n);
    }
    for (size_t i = 0; i < n; i++)
        l->group[i] = -1;
    for (size_t x = 0; x < n; x++) {
        int32_t n_open = 0;
        if (l->group[x] >= 0)
            continue;
        for (size_t y = x + 1; y < n; y++)
            if (l->group[y] < 0)
                open[1 + n_open++] = (candidate){l->distance[x * n + y], (int32_t)y};
        qsort(open + 1, (size_t)n_open, sizeof *open, by_distance);
        open[0] = (candidate){0, (int32_t)x};
        n_open++;
        link_group(l, open, n_open < l->options.group_size ? n_open : l->options.group_size);
    }
    free(open);
    return DPI_STATUS_OK;
}

static dpi_status set_up(dpi_local *l, const double *range, dpi_error *err) {
    const size_t n = (size_t)l->n;
    for (size_t i = 0; i < n * n; i++)
        l->diameter = l->distance[i] > l->diameter ? l->distance[i] : l->diameter;
    if (l->diameter == 0) /* all words at one place */
        l->diameter = 1;
    l->h = score_of(l->options.epsilon);
    l->first_rare = dpi_perturb_frequent(&l->options, l->n);
    l->replaced = (uint64_t)rint(ldexp(l->options.replaced, 32));
    dpi_weights_tables(&l->tables);
    dpi_magnitude_tables_fill(&l->magnitudes);
    DPI_TRY(dpi_kernels_init(&l->kernels, DPI_ISA_AUTO, err));
    if (l->options.mechanism == DPI_WORDS_RANTEXT)
        return set_noise(l, range, err);
    if (l->options.mechanism == DPI_WORDS_CALIBRATED)
        return dpi_local_calibrate(l, l->options.epsilon, err);
    return l->options.mechanism == DPI_WORDS_CUSTEXT ? make_groups(l, err) : DPI_STATUS_OK;
}

dpi_status dpi_local_create(const dpi_perturb_options *options, const uint32_t *distance, int32_t n,
                            const double *range, int32_t dim, dpi_local **local, dpi_error *err) {
    DPI_TRY(check_options(options, err));
    if (n < 2 || n > DPI_VOCABULARY_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "a vocabulary of %d words, must be 2..%d", n,
                        DPI_VOCABULARY_MAX);
    if (dim < 1 || dim > DIM_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "vectors of %d numbers, must be 1..%d", dim, DIM_MAX);
    dpi_local *l = dpi_calloc(1, sizeof *l);
    if (!l)
        return dpi_no_memory(err, "a mechanism");
    l->options = *options;
    l->options.n_threads =
        dpi_process_threads(options->n_threads ? options->n_threads : dpi_processors());
    l->distance = distance;
    l->n = n;
    l->dim = dim;
    const dpi_status status = set_up(l, range, err);
    if (status != DPI_STATUS_OK) {
        dpi_local_free(l);
        return status;
    }
    *local = l;
    return DPI_STATUS_OK;
}

void dpi_local_free(dpi_local *l) {
    if (!l)
        return;
    free(l->noise_scale);
    free(l->group);
    free(l->next);
    free(l);
}

/* ---- One word -------------------------------------------------------------------------------- */

dpi_status dpi_local_list_create(const dpi_local *l, dpi_local_list *list, dpi_error *err) {
    const size_t n = (size_t)l->n;
    *list = (dpi_local_list){
        .word = dpi_calloc(n, sizeof *list->word),
        .score = dpi_calloc(n, sizeof *list->score),
        .weight = dpi_calloc(n, sizeof *list->weight),
    };
    if (list->word && list->score && list->weight)
        return DPI_STATUS_OK;
    dpi_local_list_free(l, list);
    return dpi_no_memory(err, "a list of %zu words", n);
}

void dpi_local_list_free(const dpi_local *l, dpi_local_list *list) {
    const size_t n = (size_t)l->n;
    if (list->word)
        dpi_wipe(list->word, n * sizeof *list->word);
    if (list->score)
        dpi_wipe(list->score, n * sizeof *list->score);
    if (list->weight)
        dpi_wipe(list->weight, n * sizeof *list->weight);
    free(list->word);
    free(list->score);
    free(list->weight);
    *list = (dpi_local_list){0};
}

/* floor(sqrt(s)). */
static uint64_t root(dpi_u128 s) {
    uint64_t r = (uint64_t)fmin(sqrtl((long double)s), 0x1p64L - 1024);
    while ((dpi_u128)r * r > s)
        r--;
    while ((dpi_u128)(r + 1) * (r + 1) <= s)
        r++;
    return r;
}

/* |noise| < 2^15 scale and scales of at most 2^42: the squares of DIM_MAX dimensions stay below
 * 2^128. */
dpi_status dpi_local_threshold(const dpi_local *l, dpi_random_fn random, void *user,
                               uint64_t *threshold, dpi_error *err) {
    dpi_u128 sum = 0;
    DPI_TRY(dpi_magnitude_squares(&l->magnitudes, l->noise_scale, l->dim, random, user, &sum, err));
    const uint64_t t = root(sum);
    *threshold = t > 0 ? t : 1;
    return DPI_STATUS_OK;
}

static void add_range(const dpi_local *l, int32_t x, int32_t first, double s, int64_t most,
                      dpi_local_list *list) {
    const uint32_t *row = l->distance + (size_t)x * (size_t)l->n;
    for (int32_t y = first; y < l->n; y++) {
        list->word[list->n] = y;
        list->score[list->n++] = dpi_local_score(row[y], (double)l->h, s, most);
    }
}

/* Distances of most words are not below the threshold: a block of none is left at a glance. */
static void add_nearer(const dpi_local *l, int32_t x, uint64_t threshold, dpi_local_list *list) {
    enum { BLOCK = 64 };
    const uint32_t *row = l->distance + (size_t)x * (size_t)l->n;
    const uint32_t most = threshold > UINT32_MAX ? UINT32_MAX : (uint32_t)(threshold - 1);
    for (int32_t begin = 0; begin < l->n; begin += BLOCK) {
        const int32_t end = l->n - begin < BLOCK ? l->n : begin + BLOCK;
        uint32_t any = 0;
        for (int32_t y = begin; y < end; y++)
            any |= row[y] <= most;
        for (int32_t y = begin; any && y < end; y++) {
            list->word[list->n] = y;
            list->n += row[y] <= most;
        }
    }
    for (size_t i = 0; i < list->n; i++)
        list->score[i] =
            dpi_local_score(row[list->word[i]], (double)l->h, (double)threshold, l->h);
}

static void add_group(const dpi_local *l, int32_t x, dpi_local_list *list) {
    const uint32_t *row = l->distance + (size_t)x * (size_t)l->n;
    uint32_t most = 0;
    for (int32_t y = l->group[x]; y >= 0; y = l->next[y])
        most = row[y] > most ? row[y] : most;
    for (int32_t y = l->group[x]; y >= 0; y = l->next[y]) {
        list->word[list->n] = y;
        list->score[list->n++] = dpi_local_score(row[y], (double)l->h, most ? most : 1, l->h);
    }
}

static void add_all_alike(const dpi_local *l, dpi_local_list *list) {
    for (; list->n < (size_t)l->n; list->n++) {
        list->word[list->n] = (int32_t)list->n;
        list->score[list->n] = 0;
    }
}

void dpi_local_scores(const dpi_local *l, int32_t x, uint64_t threshold, dpi_local_list *list) {
    const int32_t mechanism = l->options.mechanism;
    list->n = 0;
    if (x < 0)
        add_all_alike(l, list);
    else if (mechanism == DPI_WORDS_RANTEXT)
        add_nearer(l, x, threshold, list);
    else if (mechanism == DPI_WORDS_CUSTEXT)
        add_group(l, x, list);
    else if (mechanism == DPI_WORDS_EXPONENTIAL || mechanism == DPI_WORDS_CALIBRATED)
        add_range(l, x, 0, l->diameter, l->h, list);
    else
        add_range(l, x, l->first_rare, 1 << DPI_LOCAL_SHIFT, SCORE_MOST, list);
}

/* santext+: whether a word that is not rare stays as it is. */
static dpi_status stays(const dpi_local *l, int32_t x, dpi_random_fn random, void *user,
                        bool *stays, dpi_error *err) {
    uint32_t bits;
    *stays = false;
    if (l->options.mechanism != DPI_WORDS_SANTEXT || x < 0 || x >= l->first_rare)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_random_fill(random, user, &bits, sizeof bits, err));
    *stays = bits >= l->replaced;
    return DPI_STATUS_OK;
}

dpi_status dpi_local_draw(const dpi_local *l, int32_t x, dpi_local_list *list, dpi_random_fn random,
                          void *user, int32_t *y, dpi_error *err) {
    uint64_t bits[DPI_DRAW_WORDS], threshold = 0;
    bool same;
    list->n = 0;
    DPI_TRY(stays(l, x, random, user, &same, err));
    if (same) {
        *y = x;
        return DPI_STATUS_OK;
    }
    if (l->options.mechanism == DPI_WORDS_RANTEXT)
        DPI_TRY(dpi_local_threshold(l, random, user, &threshold, err));
    dpi_local_scores(l, x, threshold, list);
    DPI_TRY(dpi_random_fill(random, user, bits, sizeof bits, err));
    l->kernels.exp2_weights(list->weight, list->score, 1 << (48 - DPI_LOCAL_BITS), l->tables.table,
                            (int64_t)list->n);
    *y = list->word[dpi_weights_draw(list->weight, list->n, bits)];
    dpi_wipe(bits, sizeof bits);
    return DPI_STATUS_OK;
}
