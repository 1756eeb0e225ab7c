/* words.c - pre-tokenization with PCRE2: the rules, and the search. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/words.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"

/* ---- Rules --------------------------------------------------------------------------------- */

/* The patterns are matched against one byte per character: an ASCII character itself, any other
 * 0x80 plus its dpi_char_class, plus 0x10 for Han and kana. So they are exact by our own tables,
 * whatever version of Unicode PCRE2 has. What follows are insides of character classes. */
enum { CLASS = 0x80, IDEOGRAPHIC = 0x10 };
#define CR_LF "\\r\\n"
#define BLANK "\\t\\x0b\\x0c\\x20\\x8a\\x9a"
#define SPACE BLANK CR_LF
#define UPPER "A-Z\\x81"
#define LOWER "a-z\\x82\\x83"
#define LETTER "A-Za-z\\x81-\\x84\\x94"
#define MARK "\\x85\\x95"
#define BOTH_CASES "\\x84\\x94" MARK /* letters without case, and marks */
#define NUMBER "0-9\\x86"
#define LATER_NUMBER "\\x87"
#define PUNCTUATION "!-#%-*,-/:;?@\\[-\\]_{}\\x88\\x98"
#define SYMBOL "$+<=>\\^`|~\\x89\\x99"

/* The published expressions, with possessive repeats where giving a character back cannot help:
 * no text then makes the search go back over more than the word that it finds. The last space
 * before a word belongs to the word, hence the two ends. */
#define SPACES_AT_END "|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]++"

#define GPT2_WORDS                                                       \
    "'(?:[sdmt]|ll|ve|re)| ?[" LETTER "]++| ?[" NUMBER "]++"             \
    "| ?[^" SPACE LETTER NUMBER "]++" SPACES_AT_END

/* (?:blanks line-ends)++ is \s*[\r\n]+: the white space up to its last line end. U+017F is an s. */
#define CONTRACTION "'(?:[sSdDmMtT\\x83]|[lL][lL]|[vV][eE]|[rR][eE])"
#define LINE_ENDS "|(?:[" BLANK "]*+[" CR_LF "]++)++"
#define ONE_BEFORE "[^" CR_LF LETTER NUMBER "]?"

#define LLAMA3_WORDS(digits)                                             \
    CONTRACTION "|" ONE_BEFORE "+[" LETTER "]++|[" NUMBER "]" digits     \
    "| ?[^" SPACE LETTER NUMBER "]++[" CR_LF "]*+" LINE_ENDS SPACES_AT_END

#define QWEN35_WORDS                                                     \
    CONTRACTION "|" ONE_BEFORE "[" LETTER MARK "]++|[" NUMBER "]"        \
    "| ?[^" SPACE LETTER MARK NUMBER "]++[" CR_LF "]*+" LINE_ENDS SPACES_AT_END

/* Upper case, then lower case; `end`: a contraction, which stays with its word. */
#define O200K_WORDS(end, digits)                                         \
    ONE_BEFORE "[" UPPER BOTH_CASES "]*[" LOWER BOTH_CASES "]++" end     \
    "|" ONE_BEFORE "[" UPPER BOTH_CASES "]++[" LOWER BOTH_CASES "]*+" end \
    "|[" NUMBER "]" digits "| ?[^" SPACE LETTER NUMBER "]++[" CR_LF "/]*+" LINE_ENDS SPACES_AT_END

#define DEEPSEEK_WORDS                                                   \
    "[!-/:-@\\[-`{-~][A-Za-z]++|[^" CR_LF LETTER PUNCTUATION SYMBOL "]?[" LETTER MARK "]++" \
    "| ?[" PUNCTUATION SYMBOL "]++[" CR_LF "]*+" LINE_ENDS SPACES_AT_END

static const dpi_words_rule rules[] = {
    {.names = {"default"},
     .patterns = {"[" PUNCTUATION "$+<=>^~|]++", GPT2_WORDS, "[" NUMBER "]++", "[0-9]{3}"}},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3"},
     .patterns = {LLAMA3_WORDS("{1,3}+")}, .whole_words = true, .add_bos = true},
    {.names = {"gpt-2", "phi-2", "gigachat"}, .patterns = {GPT2_WORDS}},
    {.names = {"smollm", "refact"}, .patterns = {"[" NUMBER LATER_NUMBER "]", GPT2_WORDS}},
    {.names = {"dbrx", "smaug-bpe"}, .patterns = {LLAMA3_WORDS("{1,3}+")}},
    {.names = {"qwen2"}, .patterns = {LLAMA3_WORDS("")}, .nfc = true},
    {.names = {"deepseek-r1-qwen"}, .patterns = {LLAMA3_WORDS("")}},
    {.names = {"qwen35"}, .patterns = {QWEN35_WORDS}, .nfc = true},
    {.names = {"gpt-4o", "llama4"},
     .patterns = {O200K_WORDS("(?:" CONTRACTION ")?", "{1,3}+")}},
    {.names = {"tekken"}, .patterns = {O200K_WORDS("", "")}, .whole_words = true, .add_bos = true},
    {.names = {"deepseek-v3"},
     .patterns = {"[" NUMBER "]{1,3}+", "[\\x90-\\x9f]++", DEEPSEEK_WORDS}},
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
    bool nfc;
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

static dpi_status compile(const dpi_words *w, const char *pattern, pcre2_code **compiled,
                          dpi_error *err) {
    pcre2_compile_context *context = pcre2_compile_context_create(w->memory);
    if (!context)
        return dpi_no_memory(err, "the words of a text");
    int code;
    PCRE2_SIZE offset;
    *compiled = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &code, &offset,
                              context);
    pcre2_compile_context_free(context);
    if (*compiled)
        return DPI_STATUS_OK;
    if (code == PCRE2_ERROR_HEAP_FAILED)
        return dpi_no_memory(err, "the words of a text");
    PCRE2_UCHAR text[128] = "";
    pcre2_get_error_message(code, text, sizeof text);
    return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "PCRE2 refuses a word pattern: %s",
                    (const char *)text);
}

dpi_status dpi_words_create(const dpi_words_rule *rule, dpi_words **words, dpi_error *err) {
    dpi_words *w = dpi_calloc(1, sizeof *w);
    if (!w)
        return dpi_no_memory(err, "the words of a text");
    w->nfc = rule->nfc;
    w->memory = pcre2_general_context_create(memory_get, memory_put, NULL);
    w->limits = w->memory ? pcre2_match_context_create(w->memory) : NULL;
    dpi_status status = DPI_STATUS_OK;
    if (!w->limits) {
        status = dpi_no_memory(err, "the words of a text");
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
    const char *text;        /* the next word begins here */
    dpi_word_fn emit;
    void *user;
    dpi_error *err;
} splitter;

static dpi_status emit_word(splitter *s, size_t n_chars) {
    size_t n_bytes = 0;
    for (size_t n; n_chars > 0; n_chars--, n_bytes += n)
        dpi_char_next(s->text + n_bytes, &n);
    const char *word = s->text;
    s->text += n_bytes;
    return s->emit(s->user, word, n_bytes, s->err);
}

/* Applies the patterns from `level` on; as deep as there are patterns. */
static dpi_status split(splitter *s, int32_t level, const unsigned char *chars, size_t n_chars) {
    if (n_chars == 0)
        return DPI_STATUS_OK;
    if (level == DPI_WORDS_MAX_PATTERNS || !s->words->patterns[level])
        return emit_word(s, n_chars);
    for (size_t done = 0; done < n_chars;) {
        size_t begin = n_chars, end = n_chars;
        int found = pcre2_match(s->words->patterns[level], chars, n_chars, done, PCRE2_NOTEMPTY,
                                s->match, s->words->limits);
        if (found >= 0) {
            begin = pcre2_get_ovector_pointer(s->match)[0];
            end = pcre2_get_ovector_pointer(s->match)[1];
        } else if (found != PCRE2_ERROR_NOMATCH) {
            /* of the limits only that of the heap can be met */
            return dpi_no_memory(s->err, "the words of a text");
        }
        DPI_TRY(split(s, level + 1, chars + done, begin - done));
        DPI_TRY(split(s, level + 1, chars + begin, end - begin));
        done = end;
    }
    return DPI_STATUS_OK;
}

static unsigned char byte_of(uint32_t code) {
    if (code < CLASS)
        return (unsigned char)code;
    const bool is_ideographic =
        (code >= 0x4e00 && code <= 0x9fa5) || (code >= 0x3040 && code <= 0x30ff);
    return (unsigned char)(CLASS + dpi_char_class_of(code) + (is_ideographic ? IDEOGRAPHIC : 0));
}

/* `text` is whole UTF-8 sequences. */
static dpi_status split_text(splitter *s, size_t n_bytes) {
    unsigned char *chars = dpi_calloc(n_bytes, 1);
    s->match = pcre2_match_data_create(1, s->words->memory);
    dpi_status status;
    if (!chars || !s->match) {
        status = dpi_no_memory(s->err, "the words of a text");
    } else {
        size_t n_chars = 0;
        for (size_t i = 0, n; i < n_bytes; i += n)
            chars[n_chars++] = byte_of(dpi_char_next(s->text + i, &n));
        status = split(s, 0, chars, n_chars);
    }
    pcre2_match_data_free(s->match);
    dpi_wipe_free(chars, n_bytes);
    return status;
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
    size_t n_repaired = repair(text, n_bytes, NULL), n_normal = 0;
    char *repaired = NULL, *normal = NULL;
    splitter s = {.words = words, .text = text, .emit = emit, .user = user, .err = err};
    if (n_repaired != n_bytes) { /* each replacement adds two bytes */
        repaired = dpi_calloc(n_repaired, 1);
        if (!repaired)
            return dpi_no_memory(err, "the words of a text");
        repair(text, n_bytes, repaired);
        s.text = repaired;
    }
    dpi_status status = DPI_STATUS_OK;
    if (words->nfc)
        status = dpi_nfc(s.text, n_repaired, &normal, &n_normal, err);
    if (normal)
        s.text = normal;
    if (status == DPI_STATUS_OK)
        status = split_text(&s, normal ? n_normal : n_repaired);
    dpi_wipe_free(normal, n_normal);
    dpi_wipe_free(repaired, n_repaired);
    return status;
}
