/* prompt_forms.h - training examples in the two prompt forms of inference
 * (dpinfer/prompt_texts.h). */
#ifndef DPI_CORPUS_PROMPT_FORMS_H
#define DPI_CORPUS_PROMPT_FORMS_H

#include "corpus/document_grammar.h"

typedef struct corpus_example {
    char user[2 * CORPUS_TEXT_BYTES], assistant[CORPUS_TEXT_BYTES];
} corpus_example;

/* 3 in 10: a request for a document, answered by one of the public law. The others: a reference
 * and the request for another document, answered by one with the reference's attributes in fresh
 * words; those attributes come from the flat law or from random ones, so that only the reference
 * tells what to write. In 1 of 8 of these, some attributes of the answer differ, so that the
 * model goes on with what it wrote when the reference says something else. Half of the requests
 * name no domain. The private law is never used.
 *
 * heldout: the combinations of attributes are those of the held-out split. new_names: the names
 * are, so that losses say how well the model copes with names that it never saw, more than how well
 * it writes. form: of references and answers. */
void corpus_example_make(bool heldout, bool new_names, corpus_form form, uint64_t *rng,
                         corpus_example *example);

#endif
