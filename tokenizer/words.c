/* words.c - pre-tokenization with PCRE2: the rules, and the search. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/words.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/utf8.h"

/* ---- Rules --------------------------------------------------------------------------------- */

/* Insides of character classes. White space is the Unicode property, written out because PCRE2's
 * \s also matches U+180E. Letters, numbers and punctuation that Unicode 15 added are listed, so
 * that a PCRE2 with older tables cuts the same words. */
#define CR_LF "\\r\\n"
#define BLANK                                                                                     \
    "\\t\\x0b\\x0c\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}" \
    "\\x{3000}"
#define SPACE BLANK CR_LF
#define LETTER                                                                                    \
    "A-Za-z\\p{L}\\x{1123f}\\x{11240}\\x{11f02}\\x{11f04}-\\x{11f10}\\x{11f12}-\\x{11f33}"        \
    "\\x{1342f}\\x{13441}-\\x{13446}\\x{1b132}\\x{1b155}\\x{1df25}-\\x{1df2a}"                 \
    "\\x{1e030}-\\x{1e06d}\\x{1e4d0}-\\x{1e4eb}\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}"
#define NUMBER "0-9\\p{N}\\x{11f50}-\\x{11f59}\\x{1d2c0}-\\x{1d2d3}\\x{1e4f0}-\\x{1e4f9}"
#define PUNCTUATION "\\p{P}\\x{11b00}-\\x{11b09}\\x{11f43}-\\x{11f4f}"

/* The published expressions, with possessive repeats where giving a character back cannot help:
 * no text then makes the search go back more than one character. The last space before a word
 * belongs to the word, hence the two ends. */
#define SPACES_AT_END "|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]++"

#define GPT2_WORDS                                                       \
    "'(?:[sdmt]|ll|ve|re)| ?[" LETTER "]++| ?[" NUMBER "]++"             \
    "| ?[^" SPACE LETTER NUMBER "]++" SPACES_AT_END

/* (?:blanks line-ends)++ is \s*[\r\n]+: the white space up to its last line end. */
#define LLAMA3_WORDS                                                     \
    "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])"                         \
    "|[^" CR_LF LETTER NUMBER "]?+[" LETTER "]++|[" NUMBER "]{1,3}+"     \
    "| ?[^" SPACE LETTER NUMBER "]++[" CR_LF "]*+"                       \
    "|(?:[" BLANK "]*+[" CR_LF "]++)++" SPACES_AT_END

static const dpi_words_rule rules[] = {
    {.names = {"default"},
     .patterns = {"[" PUNCTUATION "$+<=>^~|]++", GPT2_WORDS, "[" NUMBER "]++", "[0-9]{3}"}},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3"},
     .patterns = {LLAMA3_WORDS}, .whole_words = true, .add_bos = true},
    {.names = {"gpt-2", "phi-2", "gigachat"}, .patterns = {GPT2_WORDS}},
    {.names = {"smollm"}, .patterns = {"[" NUMBER "]", GPT2_WORDS}},
};
enum {
    N_RULES = sizeof rules / sizeof rules[0],
    MAX_NAMES = sizeof rules[0].names / sizeof(char *),
};

const dpi_words_rule *dpi_words_rule_find(dpi_str name) {
    if (name.n_bytes == 0)
        return &rules[0];
    for (int i = 0; i < N_RULES; i++)
        for (int k = 0; k < MAX_NAMES && rules[i].names[k]; k++)
            if (name.n_bytes == strlen(rules[i].names[k]) &&
                memcmp(name.data, rules[i].names[k], name.n_bytes) == 0)
                return &rules[i];
    return NULL;
}

void dpi_words_rule_names(char *names, size_t size) {
    size_t n = 0;
    for (int i = 0; i < N_RULES; i++)
        for (int k = 0; k < MAX_NAMES && rules[i].names[k]; k++) {
            const char *name = rules[i].names[k];
            size_t length = strlen(name), comma = n > 0 ? 2 : 0;
            if (n + comma + length >= size)
                continue;
            memcpy(names + n, ", ", comma);
            memcpy(names + n + comma, name, length);
            n += comma + length;
        }
    names[n] = '\0';
}

/* ---- Compiling ------------------------------------------------------------------------------ */

struct dpi_words {
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_code *patterns[DPI_WORDS_MAX_PATTERNS]; /* NULL beyond the last */
};

/* Memory for PCRE2 that is wiped when freed: positions in a text are private too. */
enum { HEADER_BYTES = 16 };

static void *memory_get(size_t n_bytes, void *user) {
    (void)user;
    uint64_t total;
    if (!dpi_add_u64(n_bytes, HEADER_BYTES, &total))
        return NULL;
    char *p = dpi_calloc(total, 1);
    if (!p)
        return NULL;
    memcpy(p, &total, sizeof total);
    return p + HEADER_BYTES;
}

static void memory_put(void *block, void *user) {
    (void)user;
    if (!block)
        return;
    char *p = (char *)block - HEADER_BYTES;
    uint64_t total;
    memcpy(&total, p, sizeof total);
    dpi_wipe_free(p, total);
}

static dpi_status no_memory(dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "no memory to cut a text into words");
}

static dpi_status compile(const dpi_words *w, const char *pattern, pcre2_code **compiled,
                          dpi_error *err) {
    pcre2_compile_context *context = pcre2_compile_context_create(w->memory);
    if (!context)
        return no_memory(err);
    int code;
    PCRE2_SIZE offset;
    *compiled = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &code,
                              &offset, context);
    pcre2_compile_context_free(context);
    if (*compiled)
        return DPI_STATUS_OK;
    if (code == PCRE2_ERROR_HEAP_FAILED)
        return no_memory(err);
    PCRE2_UCHAR text[128] = "";
    pcre2_get_error_message(code, text, sizeof text);
    return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "PCRE2 refuses a word pattern: %s",
                    (const char *)text);
}

dpi_status dpi_words_create(const dpi_words_rule *rule, dpi_words **words, dpi_error *err) {
    dpi_words *w = dpi_calloc(1, sizeof *w);
    if (!w)
        return no_memory(err);
    w->memory = pcre2_general_context_create(memory_get, memory_put, NULL);
    w->limits = w->memory ? pcre2_match_context_create(w->memory) : NULL;
    dpi_status status = DPI_STATUS_OK;
    if (!w->limits) {
        status = no_memory(err);
    } else {
        /* The default is meant for patterns that may explode; ours need one step per character. */
        pcre2_set_match_limit(w->limits, UINT32_MAX);
        for (int i = 0; status == DPI_STATUS_OK && i < DPI_WORDS_MAX_PATTERNS && rule->patterns[i];
             i++)
            status = compile(w, rule->patterns[i], &w->patterns[i], err);
    }
    if (status != DPI_STATUS_OK) {
        dpi_words_free(w);
        return status;
    }
    *words = w;
    return DPI_STATUS_OK;
}

void dpi_words_free(dpi_words *words) {
    if (!words)
        return;
    for (int i = 0; i < DPI_WORDS_MAX_PATTERNS; i++)
        pcre2_code_free(words->patterns[i]);
    pcre2_match_context_free(words->limits);
    pcre2_general_context_free(words->memory);
    free(words);
}

/* ---- Splitting ------------------------------------------------------------------------------ */

typedef struct splitter {
    const dpi_words *words;
    pcre2_match_data *match; /* read before the next search overwrites it */
    dpi_word_fn emit;
    void *user;
    dpi_error *err;
} splitter;

/* Applies the patterns from `level` on; as deep as there are patterns. */
static dpi_status split(const splitter *s, int32_t level, const char *text, size_t n_bytes) {
    if (n_bytes == 0)
        return DPI_STATUS_OK;
    if (level == DPI_WORDS_MAX_PATTERNS || !s->words->patterns[level])
        return s->emit(s->user, text, n_bytes, s->err);
    for (size_t done = 0; done < n_bytes;) {
        size_t begin = n_bytes, end = n_bytes;
        int found = pcre2_match(s->words->patterns[level], (PCRE2_SPTR)text, n_bytes, done,
                                PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, s->match, s->words->limits);
        if (found >= 0) {
            begin = pcre2_get_ovector_pointer(s->match)[0];
            end = pcre2_get_ovector_pointer(s->match)[1];
        } else if (found != PCRE2_ERROR_NOMATCH) {
            return no_memory(s->err); /* of the limits only that of the heap can be met */
        }
        DPI_TRY(split(s, level + 1, text + done, begin - done));
        DPI_TRY(split(s, level + 1, text + begin, end - begin));
        done = end;
    }
    return DPI_STATUS_OK;
}

/* Copies the text with U+FFFD for each byte outside a sequence; only counts if `out` is NULL. */
static size_t repair(const char *text, size_t n_bytes, char *out) {
    size_t n_out = 0;
    for (size_t i = 0; i < n_bytes;) {
        size_t n = dpi_utf8_bytes(text + i, n_bytes - i);
        if (out)
            memcpy(out + n_out, n > 0 ? text + i : "\xef\xbf\xbd", n > 0 ? n : 3);
        n_out += n > 0 ? n : 3;
        i += n > 0 ? n : 1;
    }
    return n_out;
}

dpi_status dpi_words_split(const dpi_words *words, const char *text, size_t n_bytes,
                           dpi_word_fn emit, void *user, dpi_error *err) {
    size_t n_repaired = repair(text, n_bytes, NULL);
    char *repaired = NULL;
    if (n_repaired != n_bytes) { /* each replacement adds two bytes */
        repaired = dpi_calloc(n_repaired, 1);
        if (!repaired)
            return no_memory(err);
        repair(text, n_bytes, repaired);
        text = repaired;
    }
    splitter s = {words, pcre2_match_data_create(1, words->memory), emit, user, err};
    dpi_status status = s.match ? split(&s, 0, text, n_repaired) : no_memory(err);
    pcre2_match_data_free(s.match);
    dpi_wipe_free(repaired, n_repaired);
    return status;
}
