/* words_claim.c - what is claimed of documents whose words were replaced. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "dp/mechanism/replaced_words.h"
#include "dpinfer/perturb.h"

void dpi_words_count(dpi_words_released *r, const dpi_perturbed_word *words, size_t n) {
    int64_t n_left = 0;
    for (size_t i = 0; i < n; i++)
        n_left += words[i].how != DPI_REPLACED_DROPPED;
    r->n_documents++;
    r->n_words += n_left;
    r->longest = n_left > r->longest ? n_left : r->longest;
}

dpi_status dpi_perturb_claim(const dpi_perturb_options *o, const dpi_vocabulary *vocabulary,
                             const dpi_certificate *c, const dpi_words_released *r,
                             dpi_claim *claim, dpi_error *err) {
    dpi_claim_init(claim);
    claim->adjacency = DPI_ADJACENCY_WORD;
    claim->randomness = o->random ? DPI_RANDOMNESS_SEED : DPI_RANDOMNESS_SYSTEM;
    dpi_claim_part *p = dpi_claim_add(claim, "words");
    const double values[] = {
        [DPI_OF_WORDS_KIND] = o->mechanism,
        [DPI_OF_WORDS_NOMINAL] = o->epsilon,
        [DPI_OF_WORDS_RARE] = o->rare,
        [DPI_OF_WORDS_REPLACED] = o->replaced,
        [DPI_OF_WORDS_GROUP] = o->group_size,
        [DPI_OF_WORDS_SIZE] = dpi_vocabulary_count(vocabulary),
        [DPI_OF_WORDS_DIMENSIONS] = dpi_vocabulary_dim(vocabulary),
        [DPI_OF_WORDS_CERTIFIED] = c->epsilon,
        [DPI_OF_WORDS_FINITE] = c->finite,
        [DPI_OF_WORDS_INFINITE] = c->infinite,
        [DPI_OF_WORDS_KEPT] = c->kept,
        [DPI_OF_WORDS_GUESS] = c->best_guess,
        [DPI_OF_WORDS_DOCUMENTS] = (double)r->n_documents,
        [DPI_OF_WORDS_ALL] = (double)r->n_words,
    };
    p->n_runs = r->longest > 0 ? r->longest : 1;
    memcpy(p->values, values, sizeof values);
    snprintf(p->text, sizeof p->text, "%016" PRIx64, dpi_vocabulary_hash(vocabulary));
    return dpi_claim_settle(claim, err);
}

dpi_status dpi_perturb_certify_claim(const dpi_vocabulary *vocabulary, const dpi_claim *claim,
                                     dpi_claim *found, dpi_error *err) {
    const dpi_claim_part *p = dpi_claim_find(claim, "words");
    dpi_words_released released;
    dpi_perturb_options o;
    dpi_certificate c;
    dpi_perturber *perturber;
    if (!p)
        return dpi_fail(err, DPI_STATUS_ARG, "the claim is of no words");
    const double *v = p->values;
    dpi_perturb_options_init(&o);
    dpi_certificate_init(&c);
    o.mechanism = (int32_t)v[DPI_OF_WORDS_KIND];
    o.epsilon = v[DPI_OF_WORDS_NOMINAL];
    o.rare = v[DPI_OF_WORDS_RARE];
    o.replaced = v[DPI_OF_WORDS_REPLACED];
    o.group_size = (int32_t)v[DPI_OF_WORDS_GROUP];
    released = (dpi_words_released){(int64_t)v[DPI_OF_WORDS_DOCUMENTS],
                                    (int64_t)v[DPI_OF_WORDS_ALL], p->n_runs};
    DPI_TRY(dpi_perturber_create(vocabulary, &o, &perturber, err));
    dpi_status status = dpi_perturb_certify(perturber, &c, err);
    dpi_perturber_free(perturber);
    if (status != DPI_STATUS_OK)
        return status;
    status = dpi_perturb_claim(&o, vocabulary, &c, &released, found, err);
    found->randomness = claim->randomness;
    return status;
}
