/* replaced_words.c - words of a document that are replaced by words like them, each by itself:
 * local differential privacy. The epsilon that holds follows from the vocabulary (its certificate),
 * which a reader without it has to believe. dp/PRIVACY.md section 21. */
#include "dp/mechanism/replaced_words.h"

#include <math.h>

#include "base/format.h"
#include "base/status.h"
#include "base/text.h"
#include "dp/mechanism/mechanism.h"
#include "dpinfer/perturb.h"

static const char *const kinds[] = {"rantext", "santext+", "custext+", "exponential", "calibrated",
                                    NULL};
_Static_assert(sizeof kinds / sizeof *kinds == DPI_N_WORDS_MECHANISMS + 1, "all have a name");

#define REAL .unit = "", .type = DPI_PARAMETER_REAL
#define COUNT .unit = "", .type = DPI_PARAMETER_INT, .max = 0x1p53
static const dpi_parameter list[] = {
    [DPI_OF_WORDS_KIND] = {.name = "mechanism", .key = "replaced_by", .unit = "",
        .type = DPI_PARAMETER_CHOICE, .choices = kinds, .help = "how a word is replaced"},
    [DPI_OF_WORDS_NOMINAL] = {.name = "epsilon", .key = "epsilon_nominal", .unit = "",
        .type = DPI_PARAMETER_REAL, .min = .001, .max = 64, .default_value = 6,
        .help = "what the mechanism's paper calls the epsilon of a word"},
    [DPI_OF_WORDS_RARE] = {.name = "rare", .key = "rare", REAL, .min_open = 1, .max = 1,
        .default_value = .9, .help = "santext+: share of the vocabulary that is sensitive"},
    [DPI_OF_WORDS_REPLACED] = {.name = "replaced", .key = "replaced", REAL, .max = 1,
        .default_value = .3, .help = "santext+: probability that another word is replaced"},
    [DPI_OF_WORDS_GROUP] = {.name = "group_size", .key = "group_size", .unit = "words",
        .type = DPI_PARAMETER_INT, .min = 2, .max = 1000, .default_value = 20,
        .help = "custext+: words of a group"},
    [DPI_OF_WORDS_SIZE] = {.name = "n_words", .key = "vocabulary_words", .unit = "words",
        .type = DPI_PARAMETER_INT, .min = 1, .max = DPI_VOCABULARY_MAX, .default_value = 1,
        .help = "words of the vocabulary"},
    [DPI_OF_WORDS_DIMENSIONS] = {.name = "n_dimensions", .key = "vocabulary_dimensions", .unit = "",
        .type = DPI_PARAMETER_INT, .min = 1, .max = 1 << 20, .default_value = 1,
        .help = "numbers of a word's vector"},
    [DPI_OF_WORDS_CERTIFIED] = {.name = "certified", .key = "certificate_epsilon", REAL,
        .max = INFINITY, .help = "the largest of all pairs of words"},
    [DPI_OF_WORDS_FINITE] = {.name = "finite", .key = "certificate_epsilon_finite", REAL,
        .max = 1e9, .help = "the largest of those that are finite"},
    [DPI_OF_WORDS_INFINITE] = {.name = "infinite", .key = "certificate_pairs_infinite", REAL,
        .max = 1, .help = "share of pairs that are not"},
    [DPI_OF_WORDS_KEPT] = {.name = "kept", .key = "certificate_kept", REAL, .max = 1,
        .help = "mean probability that a word stays"},
    [DPI_OF_WORDS_GUESS] = {.name = "best_guess", .key = "certificate_best_guess", REAL, .max = 1,
        .help = "probability that the best guess is right"},
    [DPI_OF_WORDS_DOCUMENTS] = {.name = "n_documents", .key = "n_documents", COUNT,
        .help = "documents that were released"},
    [DPI_OF_WORDS_ALL] = {.name = "n_words", .key = "n_words", COUNT,
        .help = "words of all documents"},
};
static const dpi_parameter hash = {
    .name = "vocabulary", .key = "vocabulary_hash", .unit = "", .type = DPI_PARAMETER_TEXT,
    .max = 16, .help = "tells vocabularies apart"};

static const dpi_parameter *const parameters[] = {
    &list[0], &list[1], &list[2], &list[3],  &list[4],  &list[5],  &list[6], &list[7],
    &list[8], &list[9], &list[10], &list[11], &list[12], &list[13], &hash,    NULL};

/* The most that best_guess (dpinfer/perturb.h) can be. Of the probabilities that N inputs, the n
 * words and what is none, become one y, each is at least e^-epsilon of the largest, and those of
 * all y add up to N at most: the largest ones to N / (1 + (N - 1) e^-epsilon). A number adds 1. */
static double guess_most(double n, double epsilon) {
    return (1 + (n + 1) / (1 + n * exp(-epsilon))) / n;
}

/* What holds of every certificate, up to rounding: a word that stays is a right guess, and one
 * who always guesses the same word is right once in as many times as there are words. */
static bool can_be(const double *v) {
    const double error = 1e-6, epsilon = v[DPI_OF_WORDS_CERTIFIED];
    return v[DPI_OF_WORDS_FINITE] <= epsilon + error &&
           v[DPI_OF_WORDS_GUESS] <= guess_most(v[DPI_OF_WORDS_SIZE], epsilon) + error &&
           v[DPI_OF_WORDS_KEPT] <= v[DPI_OF_WORDS_GUESS] + error &&
           v[DPI_OF_WORDS_GUESS] >= .5 / v[DPI_OF_WORDS_SIZE] &&
           (isinf(epsilon) || (v[DPI_OF_WORDS_FINITE] >= epsilon - error &&
                               !(v[DPI_OF_WORDS_INFINITE] > 0)));
}

/* The first words of santext+'s vocabulary are frequent, and one can stay. */
static bool has_frequent(const double *v) {
    dpi_perturb_options o;
    dpi_perturb_options_init(&o);
    o.rare = v[DPI_OF_WORDS_RARE];
    return v[DPI_OF_WORDS_REPLACED] < 1 &&
           dpi_perturb_frequent(&o, (int32_t)v[DPI_OF_WORDS_SIZE]) > 0;
}

/* Theorems L and C bound two of them for every vocabulary; two cannot have a finite one. */
static dpi_status check(const dpi_claim_part *p, dpi_error *err) {
    const double *v = p->values, epsilon = v[DPI_OF_WORDS_CERTIFIED];
    const int kind = (int)v[DPI_OF_WORDS_KIND];
    if ((kind == DPI_WORDS_EXPONENTIAL || kind == DPI_WORDS_CALIBRATED) &&
        epsilon > v[DPI_OF_WORDS_NOMINAL])
        return dpi_fail(err, DPI_STATUS_ARG, "certificate_epsilon: found %.10g, allowed at most "
                                             "epsilon_nominal, %.10g", epsilon,
                        v[DPI_OF_WORDS_NOMINAL]);
    if (kind == DPI_WORDS_SANTEXT && has_frequent(v) && !isinf(epsilon))
        return dpi_fail(err, DPI_STATUS_ARG, "certificate_epsilon: found %.10g, and it is "
                                             "infinite: a frequent word can stay", epsilon);
    if (kind == DPI_WORDS_CUSTEXT && v[DPI_OF_WORDS_SIZE] > v[DPI_OF_WORDS_GROUP] &&
        !isinf(epsilon))
        return dpi_fail(err, DPI_STATUS_ARG, "certificate_epsilon: found %.10g, and it is "
                                             "infinite: there are groups", epsilon);
    if (!can_be(v))
        return dpi_fail(err, DPI_STATUS_ARG, "certificate_epsilon: found %.10g with finite %.10g, "
                                             "infinite pairs %.10g, kept %.10g and guess %.10g, "
                                             "which no vocabulary has", epsilon,
                        v[DPI_OF_WORDS_FINITE], v[DPI_OF_WORDS_INFINITE], v[DPI_OF_WORDS_KEPT],
                        v[DPI_OF_WORDS_GUESS]);
    const double least = p->n_runs > 1 ? (double)p->n_runs : 0; /* those of the longest document */
    if (v[DPI_OF_WORDS_ALL] > (double)p->n_runs * v[DPI_OF_WORDS_DOCUMENTS] ||
        v[DPI_OF_WORDS_ALL] < least)
        return dpi_fail(err, DPI_STATUS_ARG, "n_words: found %.0f, allowed are %.0f documents of "
                                             "which the longest one has %.0f words",
                        v[DPI_OF_WORDS_ALL], v[DPI_OF_WORDS_DOCUMENTS], (double)p->n_runs);
    if (!dpi_is_hex(p->text, 16))
        return dpi_fail(err, DPI_STATUS_ARG, "vocabulary_hash: found '%s', allowed are 16 "
                                             "hexadecimal digits", p->text);
    return DPI_STATUS_OK;
}

/* Of a document: its longest one has n_runs words, each of which is drawn by itself. */
static dpi_status settle(const dpi_claim *c, dpi_claim_part *p, dpi_error *err) {
    (void)c;
    DPI_TRY(check(p, err));
    p->epsilon = p->values[DPI_OF_WORDS_CERTIFIED] * (double)p->n_runs;
    p->is_pure = 1;
    return DPI_STATUS_OK;
}

static const char *warning(const dpi_claim *c, const dpi_claim_part *p) {
    (void)c;
    return isinf(p->values[DPI_OF_WORDS_CERTIFIED])
               ? "two words have no bound: one of them can become what the other cannot"
               : NULL;
}

static void facts(const dpi_claim *c, const dpi_claim_part *p, dpi_facts *f) {
    const double *v = p->values;
    const int kind = (int)v[DPI_OF_WORDS_KIND];
    (void)c;
    dpi_facts_text(f, NULL, "words", "%s, epsilon %.10g by its paper", kinds[kind],
                   v[DPI_OF_WORDS_NOMINAL]);
    if (isinf(v[DPI_OF_WORDS_CERTIFIED]))
        dpi_facts_text(f, NULL, "epsilon of a word", "INFINITE for %.4g of pairs; else at most "
                                                     "%.10g", v[DPI_OF_WORDS_INFINITE],
                       v[DPI_OF_WORDS_FINITE]);
    else
        dpi_facts_bound(f, NULL, "epsilon of a word", v[DPI_OF_WORDS_CERTIFIED]);
    dpi_facts_text(f, NULL, "vocabulary", "%.0f words of %.0f numbers, %s", v[DPI_OF_WORDS_SIZE],
                   v[DPI_OF_WORDS_DIMENSIONS], p->text);
    dpi_facts_text(f, NULL, "unknown words", "%s",
                   kind == DPI_WORDS_RANTEXT || kind == DPI_WORDS_CUSTEXT
                       ? "dropped, which shows"
                       : "drawn from all words");
    dpi_facts_text(f, NULL, "documents", "%.0f, of %.0f words together, %.0f at most",
                   v[DPI_OF_WORDS_DOCUMENTS], v[DPI_OF_WORDS_ALL], (double)p->n_runs);
}

static void done(const dpi_claim *c, const dpi_claim_part *p, dpi_text *t) {
    (void)c;
    dpi_text_add(t,
                 "The words of %.0f documents were replaced by words like them, drawn at random, "
                 "each by itself. How many words a document has, and in which order, is given away "
                 "with them.", p->values[DPI_OF_WORDS_DOCUMENTS]);
}

static const char *const assumptions[] = {
    "The epsilon of a word is the largest |ln P(y | x) / P(y | x')| of all pairs x, x' of the "
    "vocabulary, computed from the law of the mechanism (the certificate); a document of L words "
    "has L times that. It has to be believed where the vocabulary is not at hand.",
    NULL};

const dpi_mechanism_ops dpi_mechanism_words = {
    .info = {.name = "words",
             .title = "words replaced by words like them, each by itself",
             .help = "words of documents are replaced by words like them",
             .source = "InferDPT",
             .proof = "dp/PRIVACY.md section 21",
             .runs = "words of the longest document"},
    .parameters = parameters,
    .adjacencies = 1u << DPI_ADJACENCY_WORD,
    .accounting = "local DP of a word, one after the other",
    .output = "each document with its words replaced",
    .assumptions = assumptions,
    .done = done,
    .settle = settle,
    .warning = warning,
    .facts = facts,
};
