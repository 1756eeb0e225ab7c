/* attack_grams.c - n-grams of a document that its perturbed text has too (Tong et al. 2025, Table
 * VI, where the text is what a model elsewhere wrote). */
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/memory.h"
#include "audit/attack/inside.h"

int dpi_attack_by_key(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* keys[i] = key of the gram of `n` words from i on; returns how many there are. */
static size_t make_grams(const uint64_t *words, size_t n_words, size_t n, uint64_t *keys) {
    if (n_words < n)
        return 0;
    for (size_t i = 0; i + n <= n_words; i++)
        keys[i] = dpi_hash(DPI_HASH_INIT, words + i, n * sizeof *words);
    return n_words - n + 1;
}

dpi_status dpi_attack_grams(const attacked_document *d, dpi_attack_result *r, dpi_error *err) {
    /* Old words, new ones, and grams of each. */
    uint64_t *keys = dpi_private_malloc((4 * d->n + 1) * sizeof *keys);
    if (!keys)
        return dpi_no_memory(err, "n-grams of %zu words", d->n);
    uint64_t *old = keys, *new = keys + d->n, *old_grams = keys + 2 * d->n;
    uint64_t *new_grams = keys + 3 * d->n;
    size_t n_new = 0;
    for (size_t i = 0; i < d->n; i++) {
        old[i] = d->words[i].old_key;
        if (d->words[i].how != DPI_REPLACED_DROPPED)
            new[n_new++] = d->words[i].new_key;
    }
    for (size_t n = 1; n <= 3; n++) {
        const size_t n_grams = make_grams(old, d->n, n, old_grams);
        const size_t n_left = make_grams(new, n_new, n, new_grams);
        qsort(new_grams, n_left, sizeof *new_grams, dpi_attack_by_key);
        r->n_grams[n - 1] += (int64_t)n_grams;
        for (size_t i = 0; i < n_grams && n_left > 0; i++)
            r->n_leaked[n - 1] += bsearch(&old_grams[i], new_grams, n_left, sizeof *new_grams,
                                          dpi_attack_by_key) != NULL;
    }
    dpi_private_free(keys);
    return DPI_STATUS_OK;
}
