/* perturb.h - a document whose words are replaced by words like them, before it leaves the machine:
 * local differential privacy for prompts to a model elsewhere. Part of libdpinfer_full.
 *
 * This is another kind of guarantee than that of a release (release.h). Each word is perturbed by
 * itself, so a document of L words has L times the epsilon of a word; and of the five mechanisms
 * three have an epsilon in their papers that does not hold for all pairs of words.
 * dpi_perturb_certify computes the one that does. docs/inferdpt.md says when to use which. */
#ifndef DPINFER_PERTURB_H
#define DPINFER_PERTURB_H

#include "dpinfer/claim.h"
#include "dpinfer/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Vocabulary: words and their vectors, public --------------------------------------------- */

typedef struct dpi_vocabulary dpi_vocabulary;

#define DPI_VOCABULARY_MAX 65536 /* words */

/* From a text file: a word and its numbers in each line, set apart by spaces, as GloVe and
 * counter-fitted vectors have them; a first line of two numbers alone, as word2vec has it, is
 * passed over. The first `n_most` words (0: all). Frequent words come first. *vocabulary is the
 * caller's. Errors: IO, FORMAT (with the line), LIMIT, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_vocabulary_read(const char *path, int32_t n_most,
                                                      dpi_vocabulary **vocabulary, dpi_error *err);
/* The first n_most (0: all) tokens of a model that stand for text, and their embeddings
 * (token_embd.weight). The model must outlive it. Errors: FORMAT, LIMIT, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_vocabulary_of_model(const dpi_model *model, int32_t n_most,
                                                          dpi_vocabulary **vocabulary,
                                                          dpi_error *err);
/* Copies of n words and of vectors [n, dim]. Errors: ARG, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_vocabulary_create(const char *const *words,
                                                        const float *vectors, int32_t n,
                                                        int32_t dim, dpi_vocabulary **vocabulary,
                                                        dpi_error *err);
DPI_API void dpi_vocabulary_free(dpi_vocabulary *vocabulary); /* NULL is allowed */
DPI_API int32_t dpi_vocabulary_count(const dpi_vocabulary *vocabulary);
DPI_API int32_t dpi_vocabulary_dim(const dpi_vocabulary *vocabulary);
/* Of all words and vectors: tells vocabularies apart. Not cryptographic: collisions can be made. */
DPI_API uint64_t dpi_vocabulary_hash(const dpi_vocabulary *vocabulary);
/* Word i, the vocabulary's. */
DPI_API const char *dpi_vocabulary_word(const dpi_vocabulary *vocabulary, int32_t i);
/* The word with exactly these bytes; -1: none. */
DPI_API int32_t dpi_vocabulary_find(const dpi_vocabulary *vocabulary, const char *word,
                                    size_t n_bytes);

/* Computes the distances between all words, or maps them from `cache`, a file that an earlier call
 * made of the same vectors; one that is not there is made, one of other vectors is an error. NULL:
 * in memory. 4 n^2 bytes. n_threads 0: the
 * processors this process may use. Errors: IO, FORMAT, NUMERIC, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_vocabulary_measure(dpi_vocabulary *vocabulary,
                                                         const char *cache, int32_t n_threads,
                                                         dpi_error *err);

/* ---- Mechanisms ------------------------------------------------------------------------------ */

typedef enum dpi_words_mechanism {
    DPI_WORDS_RANTEXT = 0,     /* a list of random size around the word */
    DPI_WORDS_SANTEXT = 1,     /* SANTEXT+: all rare words, by distance */
    DPI_WORDS_CUSTEXT = 2,     /* CUSTEXT+: the word's group */
    DPI_WORDS_EXPONENTIAL = 3, /* all words, by distance over diameter */
    /* The same with the largest exponent whose certificate is at most epsilon, for the vocabulary
     * at hand: some 20 n^2 operations before the first word. */
    DPI_WORDS_CALIBRATED = 4
} dpi_words_mechanism;
enum { DPI_N_WORDS_MECHANISMS = 5 };

typedef struct dpi_perturb_options {
    size_t struct_size;
    int32_t mechanism; /* a dpi_words_mechanism */
    double epsilon;    /* nominal, of a word: 0.001..64 */
    double rare; /* santext+: share of the vocabulary, the rarest, that is sensitive: above 0, at
                    most 1 */
    double replaced;      /* santext+: probability that another word is replaced: 0..1 */
    int32_t group_size;   /* custext+: 2..1000 */
    int32_t n_threads;    /* 0: the processors this process may use */
    dpi_random_fn random; /* NULL: getrandom(2). Else NOT PRIVATE; one thread draws all words */
    void *random_user;
    uint64_t room[8]; /* all 0: for what is to come */
} dpi_perturb_options;

/* rantext, epsilon 6, .9, .3, groups of 20, all processors. */
DPI_API void dpi_perturb_options_init_size(dpi_perturb_options *options, size_t size);
#define dpi_perturb_options_init(o) dpi_perturb_options_init_size((o), sizeof *(o))
/* "rantext", "santext+", "custext+", "exponential", "calibrated"; NULL: no such mechanism. */
DPI_API const char *dpi_words_mechanism_name(int32_t mechanism);
/* santext+: how many words of a vocabulary are frequent, its first ones. */
DPI_API int32_t dpi_perturb_frequent(const dpi_perturb_options *options, int32_t n_words);

typedef struct dpi_perturber dpi_perturber;

/* `vocabulary` must have been measured and outlive the perturber. One thread at a time.
 * Errors: ARG, STATE (not measured), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_perturber_create(const dpi_vocabulary *vocabulary,
                                                       const dpi_perturb_options *options,
                                                       dpi_perturber **perturber, dpi_error *err);
DPI_API void dpi_perturber_free(dpi_perturber *perturber); /* wipes; NULL is allowed */

/* What became of a part of a text. */
typedef enum dpi_replaced {
    DPI_REPLACED_DRAWN = 0,   /* by a word that was drawn for it */
    DPI_REPLACED_UNKNOWN = 1, /* not in the vocabulary: by a word that was drawn alike from all */
    DPI_REPLACED_NUMBER = 2,  /* rantext: a number, by one of 1..1000 */
    DPI_REPLACED_KEPT = 3,    /* custext+: a stop word or a number, as it is */
    DPI_REPLACED_DROPPED = 4 /* rantext, custext+: not in the vocabulary */
} dpi_replaced;

typedef struct dpi_perturbed_word {
    const char *word; /* [n_bytes] of the document: PRIVATE */
    size_t n_bytes;
    const char *replacement; /* NUL-terminated; "" where it is dropped */
    int32_t from, to;        /* places in the vocabulary; -1: none. `from` is PRIVATE */
    int32_t how;             /* a dpi_replaced */
    int32_t n_list;          /* words that it was drawn from; 0: it was not drawn. PRIVATE */
} dpi_perturbed_word;

/* Perturbs a text, word by word. *words [*n] and what it points to are the perturber's, until its
 * next call. Words are what stands between white space, with punctuation apart; with the vocabulary
 * of a model, its tokens. A word that is not in the vocabulary is looked up in small letters.
 * Errors: MEMORY, ENTROPY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_perturb(dpi_perturber *perturber, const char *text,
                                              size_t n_bytes, const dpi_perturbed_word **words,
                                              size_t *n, dpi_error *err);
/* The replacements of the last text as one text, NUL-terminated, the perturber's. */
DPI_API const char *dpi_perturbed_text(const dpi_perturber *perturber);

/* ---- What is guaranteed ---------------------------------------------------------------------- */

/* Of one word. P(y | x) is the probability that x becomes y. A pair of words has the largest
 * |ln P(y | x) / P(y | x')| over all y, INFINITY if one of them can become what the other cannot.
 */
typedef struct dpi_certificate {
    size_t struct_size;
    double nominal;     /* what the mechanism's paper calls epsilon */
    double epsilon;     /* the largest of all pairs: the epsilon of local differential privacy */
    double finite;      /* the largest |ln P(y | x) / P(y | x')| where neither is 0 */
    double quantile[3]; /* of the pairs' epsilons: of 50, 90 and 99 % of n_pairs pairs */
    double infinite;    /* share of those pairs whose epsilon is INFINITY */
    int64_t n_pairs;
    double kept;       /* mean over words of P(x | x); of a number of rantext 0 */
    double best_guess; /* probability that the best guess from the replacement is right, if all
                        * words are equally likely: sum over y of max_x P(y | x), over n */
    double list;       /* mean number of candidates of a word that is drawn for */
    uint64_t room[8]; /* all 0: for what is to come */
} dpi_certificate;

DPI_API void dpi_certificate_init_size(dpi_certificate *certificate, size_t size);
#define dpi_certificate_init(o) dpi_certificate_init_size((o), sizeof *(o))

/* Computes it for the vocabulary at hand; some n^2 operations, for rantext 64 n^2. All words count
 * alike, also stop words and numbers, which custext+ keeps, and numbers of rantext, which become
 * other numbers: no pair of such a one and another word has a bound. Words outside the vocabulary
 * are left out where they are dropped. Rantext: the law of the threshold by Fourier transform on a
 * grid, cells of it as one value: good to 1e-3 of epsilon with few words, to some 1e-2 with 11,000,
 * and in its tail (above some 30) to its order. Errors: MEMORY; see gaussian.h for FFTW. */
DPI_API DPI_MUST_CHECK dpi_status dpi_perturb_certify(const dpi_perturber *perturber,
                                                      dpi_certificate *certificate, dpi_error *err);

/* ---- The claim ------------------------------------------------------------------------------- */

/* What was released: of each document the words that left something in their place. */
typedef struct dpi_words_released {
    int64_t n_documents, n_words;
    int64_t longest; /* words of the longest document */
} dpi_words_released;

/* Counts one document's words (dpi_perturb). */
DPI_API void dpi_words_count(dpi_words_released *released, const dpi_perturbed_word *words,
                             size_t n);
/* What is guaranteed of all documents, each by itself: a claim of words, settled. The certificate
 * is that of the options and the vocabulary. Errors: those of dpi_claim_settle. */
DPI_API DPI_MUST_CHECK dpi_status dpi_perturb_claim(const dpi_perturb_options *options,
                                                    const dpi_vocabulary *vocabulary,
                                                    const dpi_certificate *certificate,
                                                    const dpi_words_released *released,
                                                    dpi_claim *claim, dpi_error *err);
/* The claim of the same options and documents with the vocabulary at hand, which has been measured:
 * its certificate is computed. Errors: ARG (no such claim); those of dpi_perturber_create,
 * dpi_perturb_certify and dpi_claim_settle. */
DPI_API DPI_MUST_CHECK dpi_status dpi_perturb_certify_claim(const dpi_vocabulary *vocabulary,
                                                            const dpi_claim *claim,
                                                            dpi_claim *found, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
