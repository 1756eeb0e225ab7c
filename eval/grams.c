/* grams.c - see grams.h. */
#include "eval/grams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/terms.h"

/* An n-gram and the text that it is in. */
typedef struct gram {
    uint64_t hash;
    int32_t text, count;
} gram;

static int compare_hash(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_gram(const void *a, const void *b) {
    const gram *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash)
                              : (x->text > y->text) - (x->text < y->text);
}

/* The hashes of a text's n-grams, in order; how many. hash [n_words]. */
static int32_t hashes_of(const eval_text *t, int32_t n, uint64_t *hash) {
    int32_t n_grams = 0;
    for (int32_t i = 0; i + n <= t->n_words; i++)
        hash[n_grams++] = eval_words_hash(t->word + i, n);
    return n_grams;
}

/* Sorts and drops what is there twice; how many are left. */
static int32_t make_set(uint64_t *hash, int32_t n) {
    int32_t n_set = 0;
    qsort(hash, (size_t)n, sizeof *hash, compare_hash);
    for (int32_t i = 0; i < n; i++)
        if (i == 0 || hash[i] != hash[i - 1])
            hash[n_set++] = hash[i];
    return n_set;
}

/* The n-grams of all texts by hash and text, each once a text with its count. *grams is private
 * memory of the caller's. */
static dpi_status grams_of(const eval_texts *texts, int32_t n, gram **grams, int64_t *n_grams,
                           dpi_error *err) {
    gram *all = dpi_private_malloc(((size_t)texts->n_words + 1) * sizeof *all);
    int64_t n_all = 0, n_set = 0;
    if (!all)
        return eval_no_memory(err, "n-grams");
    for (int32_t t = 0; t < texts->n; t++)
        for (int32_t i = 0; i + n <= texts->at[t].n_words; i++)
            all[n_all++] = (gram){eval_words_hash(texts->at[t].word + i, n), t, 1};
    qsort(all, (size_t)n_all, sizeof *all, compare_gram);
    for (int64_t i = 0; i < n_all; i++) {
        if (n_set > 0 && compare_gram(&all[i], &all[n_set - 1]) == 0)
            all[n_set - 1].count++;
        else
            all[n_set++] = all[i];
    }
    *grams = all;
    *n_grams = n_set;
    return DPI_STATUS_OK;
}

/* The first of the grams with a hash that is not less. */
static int64_t find_hash(const gram *grams, int64_t n, uint64_t hash) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (grams[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- Diversity ------------------------------------------------------------------------------- */

dpi_status eval_distinct(const eval_texts *texts, int32_t n, double *of_all, double *of_text,
                         double *each, dpi_error *err) {
    uint64_t *all = dpi_private_malloc(((size_t)texts->n_words + 1) * sizeof *all);
    uint64_t *own = dpi_private_malloc(((size_t)texts->n_words + 1) * sizeof *own);
    int32_t n_all = 0, n_texts = 0;
    double sum = 0;
    for (int32_t t = 0; t < texts->n && all && own; t++) {
        const int32_t n_own = hashes_of(&texts->at[t], n, own);
        memcpy(all + n_all, own, (size_t)n_own * sizeof *own);
        n_all += n_own;
        n_texts += n_own > 0;
        const double share = n_own > 0 ? (double)make_set(own, n_own) / n_own : NAN;
        sum += n_own > 0 ? share : 0;
        if (each)
            each[t] = share;
    }
    *of_text = n_texts > 0 ? sum / n_texts : 0;
    *of_all = n_all > 0 && all && own ? (double)make_set(all, n_all) / n_all : 0;
    const bool ok = all && own;
    dpi_private_free(all);
    dpi_private_free(own);
    return ok ? DPI_STATUS_OK : eval_no_memory(err, "n-grams");
}

/* ---- Self-BLEU ------------------------------------------------------------------------------- */

/* For each text: how many of its n-grams another one has, and how many it has. */
typedef struct matches {
    int64_t shared, all;
} matches;

/* Of an n-gram count as many as another text has at most: of the one text with the most, as many as
 * the second has. */
static void count_shared(const gram *grams, int64_t n_grams, matches *m) {
    for (int64_t begin = 0, end; begin < n_grams; begin = end) {
        int32_t most = 0, second = 0;
        int64_t owner = begin;
        for (end = begin; end < n_grams && grams[end].hash == grams[begin].hash; end++) {
            if (grams[end].count > most) {
                second = most;
                most = grams[end].count;
                owner = end;
            } else if (grams[end].count > second) {
                second = grams[end].count;
            }
        }
        for (int64_t i = begin; i < end; i++) {
            const int32_t others = i == owner ? second : most;
            m[grams[i].text].all += grams[i].count;
            m[grams[i].text].shared += grams[i].count < others ? grams[i].count : others;
        }
    }
}

static int compare_length(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The closest to `own` of the sorted lengths without one that is `own`; the shorter of two. */
static int32_t closest_length(const int32_t *length, int32_t n, int32_t own) {
    int32_t best = -1;
    bool skipped = false;
    for (int32_t i = 0; i < n; i++) {
        if (length[i] == own && !skipped) {
            skipped = true;
            continue;
        }
        if (best < 0 || abs(length[i] - own) < abs(best - own))
            best = length[i];
    }
    return best;
}

/* m [4, texts->n]; each [texts->n] may be NULL. */
static double mean_bleu(const eval_texts *texts, const matches *m, const int32_t *length,
                        int32_t n_lengths, double *each) {
    double sum = 0;
    int32_t n = 0;
    for (int32_t t = 0; t < texts->n; t++) {
        const int32_t n_words = texts->at[t].n_words;
        if (each)
            each[t] = NAN;
        if (n_words < 4 || n_lengths < 2)
            continue;
        double logs = 0;
        for (int32_t k = 0; k < 4; k++) {
            const matches *x = &m[k * texts->n + t];
            logs += log((x->shared > 0 ? (double)x->shared : .1) / (double)x->all) / 4;
        }
        const int32_t other = closest_length(length, n_lengths, n_words);
        const double bleu = exp(logs + (n_words < other ? 1 - (double)other / n_words : 0));
        if (each)
            each[t] = bleu;
        sum += bleu;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

dpi_status eval_self_bleu(const eval_texts *texts, double *bleu, double *each, dpi_error *err) {
    const size_t n = (size_t)texts->n;
    matches *m = calloc(4 * n + 1, sizeof *m);
    int32_t *length = calloc(n + 1, sizeof *length), n_lengths = 0;
    dpi_status status = m && length ? DPI_STATUS_OK : eval_no_memory(err, "n-grams");
    for (int32_t k = 1; k <= 4 && status == DPI_STATUS_OK; k++) {
        gram *grams = NULL;
        int64_t n_grams = 0;
        status = grams_of(texts, k, &grams, &n_grams, err);
        if (status == DPI_STATUS_OK) {
            count_shared(grams, n_grams, m + (size_t)(k - 1) * n);
            dpi_private_free(grams);
        }
    }
    if (status == DPI_STATUS_OK) {
        for (size_t t = 0; t < n; t++)
            if (texts->at[t].n_words >= 4)
                length[n_lengths++] = texts->at[t].n_words;
        qsort(length, (size_t)n_lengths, sizeof *length, compare_length);
        *bleu = mean_bleu(texts, m, length, n_lengths, each);
    }
    free(m);
    free(length);
    return status;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

dpi_status eval_is_near_copy(const eval_text *a, const eval_text *b, bool *is_near_copy,
                             dpi_error *err) {
    const size_t n = (size_t)a->n_words + (size_t)b->n_words;
    uint64_t *x = dpi_private_malloc((n + 1) * sizeof *x), *y = x ? x + a->n_words : NULL;
    if (!x)
        return eval_no_memory(err, "n-grams");
    const int32_t n_x = make_set(x, hashes_of(a, 3, x)), n_y = make_set(y, hashes_of(b, 3, y));
    int32_t n_shared = 0;
    for (int32_t i = 0, k = 0; i < n_x && k < n_y;) {
        const bool left = x[i] <= y[k], right = y[k] <= x[i];
        n_shared += left && right;
        i += left;
        k += right;
    }
    const int32_t fewer = n_x < n_y ? n_x : n_y;
    *is_near_copy = fewer > 0 && 2 * n_shared >= fewer;
    dpi_private_free(x);
    return DPI_STATUS_OK;
}

/* The trigrams of texts, and what one text shares with each of them. */
typedef struct trigrams {
    gram *grams; /* [n_grams] by hash and text */
    int64_t n_grams;
    int32_t *n_own, *n_shared; /* [n] of each text; shared: 0 but while a text is compared */
    int32_t *met;              /* [n] texts with which something is shared */
} trigrams;

static void free_trigrams(trigrams *x) {
    dpi_private_free(x->grams);
    free(x->n_own);
    free(x->n_shared);
    free(x->met);
}

static dpi_status make_trigrams(const eval_texts *texts, trigrams *x, dpi_error *err) {
    const size_t n = (size_t)texts->n + 1;
    *x = (trigrams){.n_own = calloc(n, sizeof *x->n_own),
                    .n_shared = calloc(n, sizeof *x->n_shared),
                    .met = calloc(n, sizeof *x->met)};
    if (!x->n_own || !x->n_shared || !x->met)
        return eval_no_memory(err, "n-grams");
    EVAL_TRY(grams_of(texts, 3, &x->grams, &x->n_grams, err));
    for (int64_t i = 0; i < x->n_grams; i++)
        x->n_own[x->grams[i].text]++;
    return DPI_STATUS_OK;
}

/* Whether one of the texts, other than `but`, shares half of the trigrams with t. */
static dpi_status is_copied(const trigrams *x, const eval_text *t, int32_t but, bool *found,
                            dpi_error *err) {
    uint64_t *hash = dpi_private_malloc(((size_t)t->n_words + 1) * sizeof *hash);
    int32_t n_met = 0;
    if (!hash)
        return eval_no_memory(err, "n-grams");
    const int32_t n = make_set(hash, hashes_of(t, 3, hash));
    for (int32_t i = 0; i < n; i++)
        for (int64_t k = find_hash(x->grams, x->n_grams, hash[i]);
             k < x->n_grams && x->grams[k].hash == hash[i]; k++)
            if (x->n_shared[x->grams[k].text]++ == 0)
                x->met[n_met++] = x->grams[k].text;
    *found = false;
    for (int32_t i = 0; i < n_met; i++) {
        const int32_t k = x->met[i];
        *found |= k != but && 2 * x->n_shared[k] >= (n < x->n_own[k] ? n : x->n_own[k]);
        x->n_shared[k] = 0;
    }
    dpi_private_free(hash);
    return DPI_STATUS_OK;
}

/* Texts of which one of `train` is a near copy; same: where texts are `train`, another one. */
static dpi_status count_near_copies(const eval_texts *texts, const eval_texts *train, bool same,
                                    int32_t *n_near_copies, dpi_error *err) {
    trigrams x;
    dpi_status status = make_trigrams(train, &x, err);
    *n_near_copies = 0;
    for (int32_t t = 0; t < texts->n && status == DPI_STATUS_OK; t++) {
        bool found = false;
        status = is_copied(&x, &texts->at[t], same ? t : -1, &found, err);
        *n_near_copies += found;
    }
    free_trigrams(&x);
    return status;
}

dpi_status eval_count_alike(const eval_texts *texts, int32_t *n_alike, dpi_error *err) {
    return count_near_copies(texts, texts, true, n_alike, err);
}

/* The whole text as one gram. */
static dpi_status count_exact(const eval_texts *texts, const eval_texts *train, int32_t *n_exact,
                              dpi_error *err) {
    uint64_t *hash = dpi_private_malloc(((size_t)train->n + 1) * sizeof *hash);
    if (!hash)
        return eval_no_memory(err, "n-grams");
    for (int32_t k = 0; k < train->n; k++)
        hash[k] = eval_words_hash(train->at[k].word, train->at[k].n_words);
    qsort(hash, (size_t)train->n, sizeof *hash, compare_hash);
    *n_exact = 0;
    for (int32_t t = 0; t < texts->n; t++) {
        const uint64_t own = eval_words_hash(texts->at[t].word, texts->at[t].n_words);
        *n_exact += texts->at[t].n_words > 0 &&
                    bsearch(&own, hash, (size_t)train->n, sizeof *hash, compare_hash) != NULL;
    }
    dpi_private_free(hash);
    return DPI_STATUS_OK;
}

static bool has_hash(const gram *grams, int64_t n, uint64_t hash) {
    const int64_t i = find_hash(grams, n, hash);
    return i < n && grams[i].hash == hash;
}

/* Runs of five words: those of one text of `train` alone that `other` has not. */
static dpi_status count_rare(const eval_texts *texts, const eval_texts *train,
                             const eval_texts *other, eval_copies *c, dpi_error *err) {
    const eval_texts none = {0};
    gram *of_train = NULL, *of_other = NULL, *own = NULL;
    int64_t n_train = 0, n_other = 0, n_own = 0;
    int32_t *found = calloc((size_t)texts->n + 1, sizeof *found);
    dpi_status status =
        found ? grams_of(train, 5, &of_train, &n_train, err) : eval_no_memory(err, "n-grams");
    if (status == DPI_STATUS_OK)
        status = grams_of(other ? other : &none, 5, &of_other, &n_other, err);
    if (status == DPI_STATUS_OK)
        status = grams_of(texts, 5, &own, &n_own, err);
    for (int64_t i = 0; i < n_own && status == DPI_STATUS_OK; i++) {
        const int64_t k = find_hash(of_train, n_train, own[i].hash);
        const bool is_there = k < n_train && of_train[k].hash == own[i].hash;
        const bool is_rare = is_there &&
                             (k + 1 == n_train || of_train[k + 1].hash != own[i].hash) &&
                             !has_hash(of_other, n_other, own[i].hash);
        found[own[i].text] |= is_rare;
        c->n_rare_runs += is_rare && (i == 0 || own[i - 1].hash != own[i].hash);
    }
    for (int32_t t = 0; t < texts->n && found; t++)
        c->n_rare += found[t];
    dpi_private_free(of_train);
    dpi_private_free(of_other);
    dpi_private_free(own);
    free(found);
    return status;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* A place in `train`: a suffix of a text. */
typedef struct place {
    const uint64_t *word;
    int32_t n;
} place;

static int32_t common(const place *a, const place *b) {
    const int32_t most = a->n < b->n ? a->n : b->n;
    int32_t n = 0;
    while (n < most && a->word[n] == b->word[n])
        n++;
    return n;
}

static int compare_place(const void *a, const void *b) {
    const place *x = a, *y = b;
    const int32_t n = common(x, y);
    if (n == x->n || n == y->n)
        return (x->n > y->n) - (x->n < y->n);
    return (x->word[n] > y->word[n]) - (x->word[n] < y->word[n]);
}

/* The longest run from x on that stands in one of the sorted places: the neighbours of where it
 * would be have it. */
static int32_t longest_at(const place *places, int64_t n, const place *x) {
    int64_t low = 0, high = n;
    int32_t longest = 0;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (compare_place(&places[middle], x) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (int64_t i = low - 1; i <= low; i++) {
        const int32_t own = i >= 0 && i < n ? common(&places[i], x) : 0;
        longest = own > longest ? own : longest;
    }
    return longest;
}

dpi_status eval_longest_runs(const eval_texts *texts, const eval_texts *train, double *longest,
                             dpi_error *err) {
    place *places = dpi_private_malloc(((size_t)train->n_words + 1) * sizeof *places);
    int64_t n = 0;
    if (!places)
        return eval_no_memory(err, "n-grams");
    for (int32_t t = 0; t < train->n; t++)
        for (int32_t i = 0; i < train->at[t].n_words; i++)
            places[n++] = (place){train->at[t].word + i, train->at[t].n_words - i};
    qsort(places, (size_t)n, sizeof *places, compare_place);
    for (int32_t t = 0; t < texts->n; t++) {
        int32_t own = 0;
        for (int32_t i = 0; i + own < texts->at[t].n_words; i++) {
            const place x = {texts->at[t].word + i, texts->at[t].n_words - i};
            const int32_t here = longest_at(places, n, &x);
            own = here > own ? here : own;
        }
        longest[t] = own;
    }
    dpi_private_free(places);
    return DPI_STATUS_OK;
}

dpi_status eval_compare(const eval_texts *texts, const eval_texts *train, const eval_texts *other,
                        eval_copies *c, dpi_error *err) {
    *c = (eval_copies){0};
    EVAL_TRY(count_near_copies(texts, train, false, &c->n_near_copies, err));
    EVAL_TRY(count_exact(texts, train, &c->n_exact, err));
    return count_rare(texts, train, other, c, err);
}
