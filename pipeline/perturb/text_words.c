#include "pipeline/perturb/text_words.h"

#include <string.h>

#include "base/format.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_inside(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

static bool joins(char c) { return c == '\'' || c == '-' || c == '.' || c == ','; }

/* "don't" and "3.14" are words; the comma of "3, 4" and the point of "end." are not in them. */
static bool goes_on(const char *text, size_t n_bytes, size_t i) {
    if (is_inside(text[i]))
        return true;
    if (!joins(text[i]) || i + 1 >= n_bytes || !is_inside(text[i + 1]))
        return false;
    return text[i] == '\'' || text[i] == '-' || (is_digit(text[i - 1]) && is_digit(text[i + 1]));
}

bool dpi_word_next(const char *text, size_t n_bytes, size_t *at, size_t *n) {
    while (*at < n_bytes && dpi_is_space(text[*at]))
        ++*at;
    if (*at == n_bytes)
        return false;
    *n = 1;
    if (is_inside(text[*at]))
        while (*at + *n < n_bytes && goes_on(text, n_bytes, *at + *n))
            ++*n;
    return true;
}

bool dpi_word_is_number(const char *word, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++)
        if (!is_digit(word[i]) && word[i] != '.' && word[i] != ',')
            return false;
    return n_bytes > 0 && is_digit(word[0]);
}

bool dpi_word_is_stop(const char *word, size_t n_bytes) {
    static const char *const stop[] = {
        "a",       "about",  "above",  "after", "again",   "against",  "all",        "am",
        "an",      "and",    "any",    "are",   "as",      "at",       "be",         "because",
        "been",    "before", "being",  "below", "between", "both",     "but",        "by",
        "can",     "could",  "did",    "do",    "does",    "doing",    "don't",      "down",
        "during",  "each",   "few",    "for",   "from",    "further",  "had",        "has",
        "have",    "having", "he",     "her",   "here",    "hers",     "herself",    "him",
        "himself", "his",    "how",    "i",     "if",      "in",       "into",       "is",
        "it",      "its",    "itself", "just",  "me",      "more",     "most",       "my",
        "myself",  "no",     "nor",    "not",   "now",     "of",       "off",        "on",
        "once",    "only",   "or",     "other", "our",     "ours",     "ourselves",  "out",
        "over",    "own",    "same",   "she",   "should",  "so",       "some",       "such",
        "than",    "that",   "the",    "their", "theirs",  "them",     "themselves", "then",
        "there",   "these",  "they",   "this",  "those",   "through",  "to",         "too",
        "under",   "until",  "up",     "very",  "was",     "we",       "were",       "what",
        "when",    "where",  "which",  "while", "who",     "whom",     "why",        "will",
        "with",    "would",  "you",    "your",  "yours",   "yourself", "yourselves",
    };
    for (size_t i = 0; i < sizeof stop / sizeof *stop; i++)
        if (strlen(stop[i]) == n_bytes && dpi_same_letters(stop[i], word, n_bytes))
            return true;
    return false;
}

const char *dpi_word_bare(const char *word, size_t *n_bytes) {
    static const char *const marks[] = {"\xe2\x96\x81", "\xc4\xa0"}; /* SPM, byte-level BPE */
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(marks[i]);
        if (*n_bytes > n && memcmp(word, marks[i], n) == 0) {
            *n_bytes -= n;
            return word + n;
        }
    }
    return word;
}

int32_t dpi_word_fate(int32_t mechanism, const char *word) {
    size_t n_bytes = strlen(word);
    word = dpi_word_bare(word, &n_bytes);
    const bool number = dpi_word_is_number(word, n_bytes);
    if (mechanism == DPI_WORDS_RANTEXT && number)
        return DPI_REPLACED_NUMBER;
    if (mechanism == DPI_WORDS_CUSTEXT && (number || dpi_word_is_stop(word, n_bytes)))
        return DPI_REPLACED_KEPT;
    return DPI_REPLACED_DRAWN;
}
