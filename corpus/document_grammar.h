/* document_grammar.h - documents written from latent attributes, and the attributes read back
 * from text.
 *
 * A domain is three tables of strings: attributes with their values, rules (sentence frames), and
 * the pools of names that all domains share (pools.c). A frame is text in which
 *
 *     {rule}        stands for one of the rule's rows, drawn anew
 *     {attr.facet}  for a wording of the document's value of an attribute
 *     {pool}        for a name, date or number that stays the same throughout the document;
 *                   {pool2}, {pool3} for others of the same pool
 *     {2-9}         for a number between the two
 *     {^...}        for the same with a capital letter
 *     (a|b|c)       for one of the alternatives, [a] for a or nothing
 *     @             for "a" or "an", whichever the next word wants
 *
 * and every wording, rule and pool is such a text too, with its alternatives separated by |.
 * Rules whose name starts with "s." are whole sentences. No rule refers to itself.
 *
 * Everything is a function of a seed (SplitMix64) in integer arithmetic: the same bytes on any
 * machine. */
#ifndef DPI_CORPUS_DOCUMENT_GRAMMAR_H
#define DPI_CORPUS_DOCUMENT_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CORPUS_DOMAINS = 4, CORPUS_ATTRIBUTES = 7, CORPUS_VALUES = 20, CORPUS_FACETS = 4 };

typedef struct corpus_value {
    const char *name;
    int32_t public_weight, private_weight; /* of the two laws, before `likes` */
    const char *likes; /* names of values of later attributes that go with this one, or "" */
    const char *facet[CORPUS_FACETS];
    const char *fits; /* what a value drawn before must be, or "": any; see corpus_fits */
} corpus_value;

typedef struct corpus_attribute {
    const char *name;
    const char *facets[CORPUS_FACETS]; /* names of the columns facet[] */
    const corpus_value *values;
    int32_t n_values;
} corpus_attribute;

typedef struct corpus_rule { /* rows of one rule stand side by side */
    const char *name, *frame;
} corpus_rule;

typedef struct corpus_domain {
    const char *name;
    const char *tasks[6]; /* requests for a document; the first is the canonical one */
    int32_t n_tasks;
    const corpus_attribute *attributes;
    int32_t n_attributes;
    const corpus_rule *rules;
    int32_t n_rules;
} corpus_domain;

extern const corpus_domain corpus_discharge, corpus_review, corpus_court, corpus_ticket;
extern const corpus_domain *const corpus_domains[CORPUS_DOMAINS];
extern const corpus_rule corpus_pools[]; /* {name, items}; ends with a NULL name */
extern const corpus_rule corpus_common[]; /* rules of all domains; likewise */

/* Index in corpus_domains, -1 if there is none of this name. */
int32_t corpus_domain_find(const char *name);

typedef struct corpus_range { /* [p, end) of a table's string */
    const char *p, *end;
} corpus_range;

/* The rows of a rule of `d`: the first, and how many. NULL if there is none. */
const corpus_rule *corpus_rule_find(const corpus_domain *d, const char *name, size_t n_name,
                                    int32_t *n_rows);
/* Column `facet` of attribute `*attribute` for "attr.facet"; false if there is none. */
bool corpus_facet_find(const corpus_domain *d, const char *name, size_t n_name,
                       int32_t *attribute, int32_t *facet);
/* The pool of "pool" or "pool2" with *copy = 0, 2, ...; NULL if there is none. */
const corpus_rule *corpus_pool_find(const char *name, size_t n_name, int32_t *copy);
/* "2-9": true, with the two bounds. */
bool corpus_numbers_find(const char *name, size_t n_name, uint32_t *low, uint32_t *high);

/* The next alternative of a text: everything of *rest up to a | outside of brackets, which is
 * skipped. False when there is none left; at first *rest is the text and *more = true. */
bool corpus_alternative(corpus_range *rest, bool *more, corpus_range *one);
/* The bracket that closes the one at p. */
const char *corpus_close(const char *p);
/* Starts with a vowel letter: "an". */
bool corpus_wants_an(char c);

/* ---- Laws ----------------------------------------------------------------------------------- */

/* A law over the attributes: each is drawn after those before it in the table, value v with odds
 * weight[v], times `boost` if a value drawn before likes v, and 0 unless v fits those before it. */
typedef struct corpus_law {
    uint32_t weight[CORPUS_ATTRIBUTES][CORPUS_VALUES];
    uint32_t boost;
} corpus_law;

typedef enum corpus_law_id { CORPUS_PUBLIC, CORPUS_PRIVATE, CORPUS_FLAT } corpus_law_id;
/* Value v of attribute `a` goes with the values before it, so that no document has a medicine for
 * another illness. `fits` has clauses with commas between them, all of which must hold. A clause
 * names values, of which one must be among those before; after "not", none may be. */
bool corpus_fits(const corpus_domain *d, const int8_t *values, int32_t a, int32_t v);
corpus_law corpus_law_of(const corpus_domain *d, corpus_law_id id);
corpus_law corpus_law_random(const corpus_domain *d, uint64_t *rng);

/* Attributes of a document. Combinations are divided between the splits by a hash of all
 * values: no combination of one is in the other. */
void corpus_draw(const corpus_domain *d, const corpus_law *law, bool heldout, uint64_t *rng,
                 int8_t values[CORPUS_ATTRIBUTES]);
/* The same with each attribute drawn anew at odds 2 in 5, kept otherwise. */
void corpus_redraw(const corpus_domain *d, const corpus_law *law, bool heldout, uint64_t *rng,
                   int8_t values[CORPUS_ATTRIBUTES]);

uint64_t corpus_random(uint64_t *rng);
uint32_t corpus_below(uint64_t *rng, uint32_t n);

/* ---- Writing -------------------------------------------------------------------------------- */

enum { CORPUS_TEXT_BYTES = 4096 };

/* A document of these attributes into text [CORPUS_TEXT_BYTES], NUL-terminated. Of every pool an
 * eighth of the names is used in the held-out split alone. NULL, or the name of something that
 * the grammar uses and does not define. */
const char *corpus_write(const corpus_domain *d, const int8_t *values, bool heldout,
                         uint64_t *rng, char *text);
/* Forms of training texts. The last two teach a model to keep names and facts.
 *
 * Document: as corpus_write. Repeating: eight documents are written, and the one that mentions the
 * most names and attributes more than once is kept, the first of several. Jumbled: a title and 18
 * sentences of the domain in any order, no row twice, every second one from a row with a {pool}. It
 * is no document, but half of its names and more stand in it more than once. */
typedef enum corpus_form { CORPUS_DOCUMENT, CORPUS_REPEATING, CORPUS_JUMBLED } corpus_form;
const char *corpus_write_as(corpus_form form, const corpus_domain *d, const int8_t *values,
                            bool heldout, uint64_t *rng, char *text);

/* ---- Reading -------------------------------------------------------------------------------- */

typedef struct corpus_reading {
    int32_t domain;                      /* index in corpus_domains */
    int8_t values[CORPUS_ATTRIBUTES];    /* -1: not read */
    int32_t n_sentences, n_recognised;   /* the title counts as a sentence */
    bool well_formed, agrees, names_agree;
} corpus_reading;

/* Reads a text (n_bytes, NUL-terminated) with the grammar.
 *
 * Sentences: at the start of a sentence the reader looks for the longest stretch that is exactly a
 * `title` (at the start of the text) or a sentence rule of the domain, with any values, names and
 * numbers in its slots. Where there is none, it skips one sentence. Well-formed: all is
 * recognised, the first stretch is a title, the second of a rule s.open*, the last of a rule
 * s.close*, no rule occurs twice, there are at least six sentences, and every attribute is read.
 *
 * Attributes: at every word, the longest wording of an attribute that starts there and ends at a
 * word's end gives one vote, divided among the values that share it; the value with the most
 * votes is read, the earliest seen of several. A text agrees with itself if, of each attribute, one
 * value has a share in every vote, and all values fit. The domain is the one with the most
 * recognised sentences, then votes.
 *
 * Names agree if what stands in the slots of {pool} is the same in all recognised sentences, and
 * so for {pool2} and the others. Where a sentence can be read in several ways, the first counts. */
void corpus_read(const char *text, size_t n_bytes, corpus_reading *r);

#endif
