/* attack_shown.c - what stands in the place of words, for an attacker outside the library, and its
 * guesses. */
#include <string.h>

#include "base/status.h"
#include "audit/attack/inside.h"
#include "pipeline/perturb/text_words.h"

size_t dpi_attack_documents(const dpi_attack *a) { return a ? a->n : 0; }

/* The words of a document that left something in their place. */
static bool is_shown(const attacked_word *w) { return w->how != DPI_REPLACED_DROPPED; }

/* Without the mark of a space before it. */
static const char *shown(const dpi_attack *a, const attacked_document *d, size_t i) {
    const attacked_word *w = &d->words[i];
    if (w->to >= 0) {
        size_t n_bytes = strlen(a->vocabulary->words[w->to]);
        return dpi_word_bare(a->vocabulary->words[w->to], &n_bytes);
    }
    return d->numbers[i] ? d->numbers[i] : "";
}

dpi_status dpi_attack_shown(const dpi_attack *a, size_t document, const char **words, size_t room,
                            size_t *n, dpi_error *err) {
    if (!a || !n || (!words && room > 0) || document >= a->n)
        return dpi_fail(err, DPI_STATUS_ARG, "attack, words or n is NULL, or no such document");
    const attacked_document *d = &a->documents[document];
    *n = 0;
    for (size_t i = 0; i < d->n; i++) {
        if (!is_shown(&d->words[i]))
            continue;
        if (*n < room)
            words[*n] = shown(a, d, i);
        ++*n;
    }
    return DPI_STATUS_OK;
}

/* A word of the vocabulary counts in any spelling that has its place: with the mark of a space
 * before it or without, in small letters. */
static bool is_right(const dpi_attack *a, const attacked_word *w, const char *guess) {
    if (w->from < 0)
        return w->old_key == dpi_attack_spelling(guess, strlen(guess));
    return dpi_attack_same_word(a->vocabulary->words[w->from], guess);
}

dpi_status dpi_attack_guess(const dpi_attack *a, size_t document, const char *const *guesses,
                            size_t n, dpi_attack_result *result, dpi_error *err) {
    size_t n_shown = 0;
    if (!a || !result || (!guesses && n > 0) || document >= a->n)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "attack, guesses or result is NULL, or no such document");
    const attacked_document *d = &a->documents[document];
    for (size_t i = 0; i < d->n; i++) {
        if (!is_shown(&d->words[i]))
            continue;
        result->n_guessed[DPI_GUESS_REMOTE]++;
        if (n_shown < n && guesses[n_shown])
            result->n_right[DPI_GUESS_REMOTE] += is_right(a, &d->words[i], guesses[n_shown]);
        n_shown++;
    }
    return DPI_STATUS_OK;
}
