/* test_words.c - cutting texts into words. Expected words come from the published expressions,
 * worked out by hand and by a matcher written here over characters of known category. */
#include "tests/support/support.h"

#include "tokenizer/words.h"

/* ---- Words of one text ---------------------------------------------------------------------- */

enum { MAX_WORDS = 512, MAX_TEXT = 2048 };

typedef struct cut {
    char text[3 * MAX_TEXT]; /* the words, end to end */
    size_t ends[MAX_WORDS];
    size_t n;
} cut;

static dpi_status collect(void *user, const char *word, size_t n_bytes, dpi_error *err) {
    cut *c = user;
    size_t begin = c->n > 0 ? c->ends[c->n - 1] : 0;
    (void)err;
    assert_true(n_bytes > 0 && c->n < MAX_WORDS && begin + n_bytes <= sizeof c->text);
    memcpy(c->text + begin, word, n_bytes);
    c->ends[c->n++] = begin + n_bytes;
    return DPI_STATUS_OK;
}

static dpi_words *words_of(const char *name) {
    dpi_words *words = NULL;
    const dpi_words_rule *rule = dpi_words_rule_find((dpi_str){name, strlen(name)});
    assert_non_null(rule);
    assert_ok(dpi_words_create(rule, &words, ERR));
    return words;
}

/* Words are written one after the other with '|' between them ('|' itself does not occur). */
static void check(const char *rule, const char *text, const char *wanted) {
    static cut c;
    char joined[4 * MAX_TEXT];
    size_t n = 0, begin = 0;
    dpi_words *words = words_of(rule);
    c.n = 0;
    assert_ok(dpi_words_split(words, text, strlen(text), collect, &c, ERR));
    dpi_words_free(words);
    for (size_t i = 0; i < c.n; begin = c.ends[i++])
        n += (size_t)sprintf(joined + n, "%s%.*s", i > 0 ? "|" : "", (int)(c.ends[i] - begin),
                             c.text + begin);
    joined[n] = '\0';
    assert_string_equal(joined, wanted);
}

#define THAI "\xe0\xb8\x81\xe0\xb9\x89\xe0\xb8\x81" /* a letter, a mark, a letter */
#define BAD "\xef\xbf\xbd"
#define IDEOGRAPHS "\xf0\xb1\x8d\x90\xf0\xae\xaf\xb0"

static const struct {
    const char *rule, *text, *words;
} cases[] = {
    /* llama-bpe: any case of a contraction, three digits, one character before letters, line ends
     * with the punctuation or the blanks before them */
    {"llama-bpe", "Hello, world! It's 12345", "Hello|,| world|!| It|'s| |123|45"},
    {"llama-bpe", "THEY'RE WE'Ve x'y", "THEY|'RE| WE|'Ve| x|'y"},
    {"llama-bpe", "a  b   1", "a| | b|  | |1"},
    {"llama-bpe", "a.\r\n\n b \n\t c ", "a|.\r\n\n| b| \n|\t| c| "},
    {"llama-bpe", "  \n \n  x", "  \n \n| | x"},
    {"llama-bpe", "\tfoo\nbar  ", "\tfoo|\n|bar|  "},
    {"llama-bpe", "1234567", "123|456|7"},
    {"llama-bpe", "e\xcc\x81t\xc3\xa9", "e|\xcc\x81t\xc3\xa9"}, /* a mark is no letter */
    {"llama-bpe", "", ""},
    /* gpt-2: lower-case contractions, a space before letters, digits or others */
    {"gpt-2", "Hello, world! It's 12345", "Hello|,| world|!| It|'s| 12345"},
    {"gpt-2", "WE'RE we're", "WE|'|RE| we|'re"},
    {"gpt-2", "a.\r\n\n b", "a|.|\r\n\n| b"},
    {"gpt-2", "a  1 \n", "a| | 1| \n"},
    /* smollm: each digit first, and what lies between is a text of its own */
    {"smollm", "Hello 123", "Hello| |1|2|3"},
    {"smollm", "a  1 'll2", "a|  |1| '|ll|2"},
    /* default: punctuation first, then gpt-2, then numbers, then triples of digits */
    {"default", "Hello, it's 12345!", "Hello|,| it|'|s| |123|45|!"},
    {"default", "a  $<`-x", "a|  |$<|`|-|x"},
    {"", "7 12\xd9\xa3\x34\x35\x36\x37\x38", "7| |12\xd9\xa3|456|78"}, /* U+0663 is no [0-9] */
    /* U+180E has not been white space since Unicode 6.3; U+0085 and U+3000 are. */
    {"gpt-2", "a\xe1\xa0\x8e\x62", "a|\xe1\xa0\x8e|b"},
    {"gpt-2", "a\xc2\x85\x62", "a|\xc2\x85|b"},
    {"gpt-2", "a \xc2\x85 b", "a| \xc2\x85| b"},
    {"gpt-2", "a\xe3\x80\x80\xe3\x80\x80\x62", "a|\xe3\x80\x80|\xe3\x80\x80|b"},
    /* New in Unicode 15.0 and 15.1: U+31350 and U+2EBF0 are letters, U+1D2C0 a number, U+11B00
     * punctuation. */
    {"gpt-2", "a" IDEOGRAPHS, "a" IDEOGRAPHS},
    {"gpt-2", "1\xf0\x9d\x8b\x80", "1\xf0\x9d\x8b\x80"},
    {"default", "\xe2\x82\xac\xf0\x91\xac\x80", "\xe2\x82\xac|\xf0\x91\xac\x80"},
    /* U+11DE0 is a digit since Unicode 17: for the rule of single digits alone. U+10D40 is one
     * since 16. */
    {"smollm", "1\xf0\x91\xb7\xa0", "1|\xf0\x91\xb7\xa0"},
    {"gpt-2", "1\xf0\x90\xb5\x80\xf0\x91\xb7\xa0",
     "1\xf0\x90\xb5\x80|\xf0\x91\xb7\xa0"},
    /* qwen2: single digits, é composed; qwen35: marks are of the word, or before it */
    {"qwen2", "12e\xcc\x81t", "1|2|\xc3\xa9t"},
    {"deepseek-r1-qwen", "12e\xcc\x81t", "1|2|e|\xcc\x81t"},
    {"qwen2", THAI "1", "\xe0\xb8\x81|\xe0\xb9\x89\xe0\xb8\x81|1"},
    {"qwen35", THAI "1", THAI "|1"},
    {"qwen35", "\xe0\xb9\x89 \xe0\xb9\x89!", "\xe0\xb9\x89| \xe0\xb9\x89|!"},
    {"dbrx", "1234 x'S", "123|4| x|'S"},
    /* gpt-4o: case begins words, contractions stay, a slash after a line end; tekken */
    {"gpt-4o", "HelloWORLD's ACCI\xc3\x93N " THAI, "Hello|WORLD's| ACCI\xc3\x93N| " THAI},
    {"gpt-4o", "\xe4\xb8\xad\x41\x41" "b1234 ./\n/x", "\xe4\xb8\xad\x41\x41" "b|123|4| ./\n/|x"},
    {"tekken", "HelloWorld's 12", "Hello|World|'s| |1|2"},
    {"deepseek-v3", "a.b\xe4\xb8\x96\xe7\x95\x8c" "ab 1234",
     "a|.b|\xe4\xb8\x96\xe7\x95\x8c|ab| |123|4"},
    {"deepseek-v3", "\x01\nx", "\x01|\n|x"},
    /* Normal form C: a mark of Unicode 14 (U+089C) stays where it is, others are sorted and
     * composed; Hangul; U+0344 and U+0958 never come back, U+212B is U+00C5. */
    {"qwen2", "a\xcc\xa3\xcc\x82 a\xcc\x82\xcc\xa3", "\xe1\xba\xad| \xe1\xba\xad"},
    {"qwen35", "a\xe0\xa2\x9c\xcc\xa3", "a\xe0\xa2\x9c\xcc\xa3"},
    {"qwen2", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c"},
    {"qwen2", "\xea\xb0\x80\xe1\x86\xa8\xe1\x86\xa8", "\xea\xb0\x81\xe1\x86\xa8"},
    {"qwen35", "\xcd\x84" "b\xe0\xa5\x98\xe2\x84\xab",
     "\xcc\x88\xcc\x81" "b\xe0\xa4\x95\xe0\xa4\xbc\xc3\x85"},
    /* What is no UTF-8: overlong, past the end, a surrogate. */
    {"llama-bpe", "a\xff\x62", "a|" BAD "b"},
    {"llama-bpe", "\xe2\x82 \xc3", BAD BAD "| " BAD},
    {"gpt-2", "\xc0\xaf\xf5\x80", BAD BAD BAD BAD},
    {"gpt-2", "\xed\xa0\x80\xe0\x80", BAD BAD BAD BAD BAD},
    {"gpt-2", "\xf0\x9f\x98", BAD BAD BAD},
    {"gpt-2", "\xed\x9f\xbf\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xf4\x8f\xbf\xbf"},
};

TEST(cuts_as_published) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].rule, cases[i].text, cases[i].words);
}

/* ---- Against a matcher written here ---------------------------------------------------------- */

/* Characters by their category in the Unicode Standard: letter, number, punctuation, symbol or
 * other, white space. */
typedef struct sample {
    char text[5], category;
} sample;

static const struct {
    char category; /* L N P O W */
    const char *text;
} categories[] = {
    {'L', "asStlLvEredM\xc3\xa9\xe4\xb8\xad\xd7\x90\xe3\x81\x82\xf0\x9d\x92\x9c\xc5\xbf"},
    {'N', "019\xd9\xa3\xc2\xb2\xe2\x85\xa7\xc2\xbd"},
    {'P', "'!\"-_\\\xe2\x80\x94\xe3\x80\x82"},
    {'O', "$`~^\xe2\x82\xac\xf0\x9f\x98\x80\xcc\x81\xe0\xa4\x83\x01\x7f\xe2\x80\x8b\xef\xbb\xbf"
          "\xe1\xa0\x8e\xee\x80\x80\xcd\xb8"},
    {'W', "  \t\n\r\x0b\xc2\x85\xc2\xa0\xe2\x80\xa8\xe3\x80\x80"},
};
enum { N_SAMPLES = 58, FIRST_N = 18, FIRST_W = 48 };
static sample samples[N_SAMPLES];

SETUP {
    sample *next = samples;
    for (int i = 0; i < 5; i++)
        for (const char *p = categories[i].text; *p; next++) {
            int n = (unsigned char)*p < 0xc0 ? 1 : (unsigned char)*p < 0xe0 ? 2 : 3;
            n += (unsigned char)*p >= 0xf0;
            assert_true(next < samples + N_SAMPLES);
            *next = (sample){.category = categories[i].category};
            memcpy(next->text, p, (size_t)n);
            p += n;
        }
    assert_ptr_equal(next, samples + N_SAMPLES);
    assert_true(samples[FIRST_N].category == 'N' && samples[FIRST_W - 1].category == 'O' &&
                samples[FIRST_W].category == 'W');
}

/* Characters [i, end) of a piece. */
typedef struct piece {
    const sample *const *c;
    size_t end;
} piece;

static char at(const piece *p, size_t i) { return i < p->end ? p->c[i]->category : 0; }
static char ascii(const piece *p, size_t i) {
    return i < p->end && !p->c[i]->text[1] ? p->c[i]->text[0] : 0;
}
static bool is_line_end(char c) { return c == '\r' || c == '\n'; }
static bool is_other(char category) { return category == 'P' || category == 'O'; }

static size_t run(const piece *p, size_t i, const char *categories_of_run) {
    while (at(p, i) && strchr(categories_of_run, at(p, i)))
        i++;
    return i;
}

/* Each returns where the match that begins at i ends, i if there is none. */
static size_t match_contraction(const piece *p, size_t i, bool any_case) {
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (ascii(p, i) != '\'')
        return i;
    if (any_case && i + 1 < p->end && strcmp(p->c[i + 1]->text, "\xc5\xbf") == 0)
        return i + 2; /* U+017F is an s */
    for (int k = 0; k < 7; k++) {
        size_t n = 0;
        while (ends[k][n] && (ascii(p, i + 1 + n) | (any_case ? 0x20 : 0)) == ends[k][n])
            n++;
        if (!ends[k][n])
            return i + 1 + n;
    }
    return i;
}

static size_t match_spaces(const piece *p, size_t i) {
    size_t end = run(p, i, "W");
    return end < p->end && end > i + 1 ? end - 1 : end;
}

static size_t match_gpt2(const piece *p, size_t i) {
    size_t end = match_contraction(p, i, false);
    if (end > i)
        return end;
    size_t j = ascii(p, i) == ' ' ? i + 1 : i;
    if (at(p, j) && at(p, j) != 'W')
        return run(p, j, at(p, j) == 'L' ? "L" : at(p, j) == 'N' ? "N" : "PO");
    return match_spaces(p, i);
}

static size_t match_llama3(const piece *p, size_t i) {
    size_t end = match_contraction(p, i, true);
    if (end > i)
        return end;
    if (at(p, i) == 'L')
        return run(p, i, "L");
    if (at(p, i) != 'N' && !is_line_end(ascii(p, i)) && at(p, i + 1) == 'L')
        return run(p, i + 1, "L");
    if (at(p, i) == 'N') {
        for (end = i; end < i + 3 && at(p, end) == 'N';)
            end++;
        return end;
    }
    size_t j = ascii(p, i) == ' ' ? i + 1 : i;
    if (is_other(at(p, j))) {
        for (end = run(p, j, "PO"); is_line_end(ascii(p, end));)
            end++;
        return end;
    }
    for (end = run(p, i, "W"); end > i; end--)
        if (is_line_end(ascii(p, end - 1)))
            return end;
    return match_spaces(p, i);
}

static size_t match_number(const piece *p, size_t i) { return at(p, i) == 'N' ? i + 1 : i; }
static size_t match_numbers(const piece *p, size_t i) { return run(p, i, "N"); }
static size_t match_punctuation(const piece *p, size_t i) {
    while (at(p, i) == 'P' || (ascii(p, i) && strchr("$+<=>^~|", ascii(p, i))))
        i++;
    return i;
}
static size_t match_digits(const piece *p, size_t i) {
    for (size_t k = i; k < i + 3; k++)
        if (ascii(p, k) < '0' || ascii(p, k) > '9')
            return i;
    return i + 3;
}

typedef size_t (*matcher)(const piece *p, size_t i);

static const struct {
    const char *name;
    matcher steps[5];
} oracles[] = {
    {"llama-bpe", {match_llama3}},
    {"gpt-2", {match_gpt2}},
    {"smollm", {match_number, match_gpt2}},
    {"default", {match_punctuation, match_gpt2, match_numbers, match_digits}},
};

/* Marks where pieces end, one step after the other. */
static void apply(matcher step, const sample *const *c, size_t n, bool *is_end) {
    bool before[MAX_WORDS];
    memcpy(before, is_end, n * sizeof *before);
    for (size_t i = 0; i < n;) {
        piece p = {c, i};
        while (!before[p.end++])
            ;
        while (i < p.end) {
            size_t end = step(&p, i);
            if (end > i) {
                is_end[end - 1] = true;
                if (i > 0)
                    is_end[i - 1] = true;
            }
            i = end > i ? end : i + 1;
        }
    }
}

TEST(agrees_with_the_matcher) {
    uint64_t rng = 11;
    size_t n_words = 0;
    for (int o = 0; o < 4; o++) {
        dpi_words *words = words_of(oracles[o].name);
        for (int round = 0; round < 8000; round++) {
            const sample *c[64];
            bool is_end[64] = {false};
            char text[256] = "";
            size_t n = 1 + (size_t)random_below(&rng, 60), offset = 0, word = 0;
            /* mostly blanks; digits */
            int32_t from = round % 4 == 1 ? FIRST_W : round % 4 == 2 ? FIRST_N : 0;
            for (size_t i = 0; i < n; i++) {
                int32_t first = random_below(&rng, 8) ? from : 0;
                c[i] = &samples[first + random_below(&rng, N_SAMPLES - first)];
                strcat(text, c[i]->text);
            }
            is_end[n - 1] = true;
            for (int k = 0; k < 5 && oracles[o].steps[k]; k++)
                apply(oracles[o].steps[k], c, n, is_end);
            static cut got;
            got.n = 0;
            assert_ok(dpi_words_split(words, text, strlen(text), collect, &got, ERR));
            assert_memory_equal(got.text, text, strlen(text));
            for (size_t i = 0; i < n; i++) {
                offset += strlen(c[i]->text);
                bool found = word < got.n && got.ends[word] == offset;
                if (found != is_end[i])
                    fail_msg("%s: \"%s\": byte %zu %s", oracles[o].name, text, offset,
                             found ? "ends a word" : "ends no word");
                word += found;
            }
            assert_int_equal(word, got.n);
            n_words += got.n;
        }
        dpi_words_free(words);
    }
    assert_true(n_words > 200000); /* or nothing was tried */
}

/* ---- Names, errors, long texts --------------------------------------------------------------- */

static const dpi_words_rule *find(const char *name) {
    return dpi_words_rule_find((dpi_str){name, strlen(name)});
}

TEST(knows_its_names) {
    static const char *const same[][3] = {
        {"llama-bpe", "llama3", "llama-v3"}, {"gpt-2", "phi-2", "gigachat"}, {"default", "", ""}};
    static const char *const unknown[] = {"llama", "Llama-bpe", "llama-bpe ", "tekken2", "qwen"};
    char names[256], few[16];
    for (int i = 0; i < 6; i++)
        assert_ptr_equal(find(same[i / 2][0]), find(same[i / 2][1 + i % 2]));
    for (int i = 0; i < 5; i++)
        assert_null(find(unknown[i]));
    dpi_words_rule_names(names, sizeof names);
    assert_string_equal(names, "default, llama-bpe, llama3, llama-v3, falcon3, gpt-2, phi-2, "
                               "gigachat, smollm, refact, dbrx, smaug-bpe, qwen2, "
                               "deepseek-r1-qwen, qwen35, gpt-4o, llama4, tekken, deepseek-v3");
    dpi_words_rule_names(few, sizeof few);
    assert_string_equal(few, "default, llama3"); /* those that fit, whole */
}

static dpi_status refuse(void *user, const char *word, size_t n_bytes, dpi_error *err) {
    (void)word, (void)n_bytes, (void)err;
    return --*(int *)user < 0 ? DPI_STATUS_LIMIT : DPI_STATUS_OK;
}

TEST(hands_errors_on) {
    dpi_words *words = words_of("default");
    for (int left = 0; left <= 6; left++) { /* six words */
        int calls = left;
        assert_int_equal(dpi_words_split(words, "a b! 1234", 9, refuse, &calls, ERR),
                         left < 6 ? DPI_STATUS_LIMIT : DPI_STATUS_OK);
        assert_int_equal(calls, left < 6 ? -1 : 0);
    }
    dpi_words_free(words);
    dpi_words_free(NULL);
}

static dpi_status count(void *user, const char *word, size_t n_bytes, dpi_error *err) {
    (void)word, (void)err;
    ((size_t *)user)[0]++;
    ((size_t *)user)[1] += n_bytes;
    return DPI_STATUS_OK;
}

/* Words that are found twice, marks in the wrong order. */
TEST(goes_back_over_a_word_at_most) {
    static const char *const names[] = {"gpt-4o", "tekken", "qwen35", "deepseek-v3", "qwen2"};
    static const char *const units[] = {"A", "\xe4\xb8\xad\x41", "\xcc\x81",
                                        "a\xcc\x81\xcc\xa3"};
    enum { N_UNITS = 1 << 17 };
    char *text = malloc(N_UNITS * 5 + 1);
    assert_non_null(text);
    for (int i = 0; i < 20; i++) {
        dpi_words *words = words_of(names[i % 5]);
        size_t n_unit = strlen(units[i / 5]), found[2] = {0, 0};
        for (size_t k = 0; k < N_UNITS; k++)
            memcpy(text + k * n_unit, units[i / 5], n_unit);
        assert_ok(dpi_words_split(words, text, N_UNITS * n_unit, count, found, ERR));
        assert_true(found[0] > 0 && found[1] <= N_UNITS * n_unit);
        dpi_words_free(words);
    }
    free(text);
}

/* In time that allows no going back, and with a longer one past PCRE2's default limit of 10^7. */
TEST(cuts_long_runs) {
    static const struct {
        const char *unit, *end;
        size_t n_words[4]; /* by oracle */
    } runs[] = {
        {" ", "x", {2, 2, 2, 2}},       {"\t \n", "", {1, 1, 1, 1}}, {" \n", "  x", {3, 2, 2, 2}},
        {"\xc3\xa9", "", {1, 1, 1, 1}}, {"~", "\n", {1, 2, 2, 2}},
    };
    char *text = malloc((22 << 20) + 8);
    assert_non_null(text);
    for (int o = 0; o < 4; o++) {
        dpi_words *words = words_of(oracles[o].name);
        for (int i = 0; i < 5; i++) {
            size_t n_unit = strlen(runs[i].unit), found[2] = {0, 0};
            size_t n = (size_t)(o == 0 && i == 2 ? 22 << 20 : 1 << 20) / n_unit * n_unit;
            for (size_t k = 0; k < n; k++)
                text[k] = runs[i].unit[k % n_unit];
            memcpy(text + n, runs[i].end, strlen(runs[i].end));
            n += strlen(runs[i].end);
            assert_ok(dpi_words_split(words, text, n, count, found, ERR));
            assert_int_equal(found[0], runs[i].n_words[o]);
            assert_int_equal(found[1], n);
        }
        dpi_words_free(words);
    }
    free(text);
}
