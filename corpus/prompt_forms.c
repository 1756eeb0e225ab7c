/* prompt_forms.c - see prompt_forms.h. */
#include "corpus/prompt_forms.h"

#include <stdio.h>
#include <string.h>

#include "dpinfer/prompt_texts.h"

static const char *pick_task(const corpus_domain *d, uint64_t *rng) {
    if (corpus_below(rng, 2) == 0)
        return DPI_CHAT_TASK;
    int32_t i = (int32_t)corpus_below(rng, (uint32_t)(2 * d->n_tasks));
    return d->tasks[i < d->n_tasks ? i : 0];
}

void corpus_example_make(bool heldout, bool new_names, corpus_form form, uint64_t *rng,
                         corpus_example *e) {
    const corpus_domain *d = corpus_domains[corpus_below(rng, CORPUS_DOMAINS)];
    const char *task = pick_task(d, rng);
    bool with_reference = corpus_below(rng, 10) >= 3;
    corpus_law law = !with_reference                ? corpus_law_of(d, CORPUS_PUBLIC)
                     : corpus_below(rng, 3) == 0 ? corpus_law_of(d, CORPUS_FLAT)
                                                 : corpus_law_random(d, rng);
    int8_t values[CORPUS_ATTRIBUTES];
    corpus_draw(d, &law, heldout, rng, values);
    if (with_reference) {
        char reference[CORPUS_TEXT_BYTES];
        corpus_write_as(form, d, values, new_names, rng, reference);
        snprintf(e->user, sizeof e->user, DPI_CHAT_BEFORE "%s" DPI_CHAT_AFTER "%s", reference,
                 task);
        if (corpus_below(rng, 8) == 0)
            corpus_redraw(d, &law, heldout, rng, values);
    } else
        snprintf(e->user, sizeof e->user, "%s", task);
    corpus_write_as(form, d, values, new_names, rng, e->assistant);
}
