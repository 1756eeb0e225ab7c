/* Which tokens a place allows. The oracle: all words up to a length, over a vocabulary of short
 * ones. And models: what is written is what the grammar accepts. */
#include "grammar/mask.h"
#include "tests/grammar/forms.h"

OWNED(dpi_mask, dpi_mask_free)
OWNED(dpi_mask_text, dpi_mask_text_free)
OWNED(dpi_model, dpi_model_close)
OWNED(dpi_session, dpi_session_free)
OWNED(dpi_sampler, dpi_sampler_free)
OWNED(dpi_generation, dpi_generation_free)
OWNED(dpi_decoder, dpi_decoder_free)

enum { LONGEST = 6 };

static const char *const words[] = {"a", "b", "ab", "ba", "aab", "bbb", "a", "", " ", " a", "  b"};
enum { WORDS = sizeof words / sizeof *words, END = WORDS, NONE = WORDS + 1, TOKENS = WORDS + 2 };

static dpi_mask *make_mask(const dpi_grammar *g, bool drops_space) {
    dpi_mask_token tokens[TOKENS] = {[END] = {.is_end = true}};
    dpi_mask *mask = NULL;
    for (int i = 0; i < WORDS; i++)
        tokens[i] = (dpi_mask_token){(const uint8_t *)words[i], (uint32_t)strlen(words[i]), false};
    assert_ok(dpi_mask_make(g, tokens, TOKENS, drops_space, &mask, ERR));
    return mask;
}

static dpi_mask_text *begin_text(dpi_mask *mask) {
    dpi_mask_text *t = NULL;
    assert_ok(dpi_mask_text_create(mask, &t, ERR));
    return t;
}

/* All texts of a grammar up to LONGEST, by trying all words of its letters. */
typedef struct texts {
    char at[512][LONGEST + 1];
    int n;
} texts;

static void list_texts(dpi_automaton *a, char *word, size_t n, texts *all) {
    if (reads(a, word, n)) {
        assert_true(all->n < 512);
        memcpy(all->at[all->n], word, n);
        all->at[all->n++][n] = '\0';
    }
    for (int i = 0; i < 3 && n < LONGEST; i++) {
        word[n] = "ab "[i];
        list_texts(a, word, n + 1, all);
    }
}

/* Whether some text begins with these bytes; *is_text: one ends there. */
static bool has_end(const texts *all, const char *text, size_t n, bool *is_text) {
    bool found = false;
    *is_text = false;
    for (int i = 0; i < all->n; i++)
        if (strlen(all->at[i]) >= n && memcmp(all->at[i], text, n) == 0) {
            found = true;
            *is_text = *is_text || all->at[i][n] == '\0';
        }
    return found;
}

static int32_t allowed(dpi_mask_text *t, int32_t token) {
    const uint64_t *bits;
    int32_t n = 0, count = 0;
    assert_ok(dpi_mask_text_allowed(t, &bits, &n, ERR));
    for (int32_t i = 0; i < TOKENS; i++)
        count += bits[i / 64] >> (i % 64) & 1;
    assert_int_equal(count, n);
    return bits[token / 64] >> (token % 64) & 1;
}

/* Follows one text of random tokens. `drops`: without the first space. */
static void check_text(const texts *all, dpi_mask *mask, bool drops, uint64_t *seed) {
    OWN(dpi_mask_text) t = begin_text(mask);
    char text[64] = "";
    size_t n = 0; /* of the text as it was written, with a space that does not count */
    for (;;) {
        int32_t choices[TOKENS], n_choices = 0;
        bool is_text, ignored;
        const size_t lost = drops && n > 0 && text[0] == ' ';
        char trial[64];
        memcpy(trial, text + lost, n - lost);
        (void)has_end(all, trial, n - lost, &is_text);
        assert_int_equal(allowed(t, END), is_text);
        assert_int_equal(allowed(t, NONE), 0);
        for (int32_t i = 0; i < WORDS; i++) {
            memcpy(trial, text, n);
            memcpy(trial + n, words[i], strlen(words[i]));
            const size_t length = n + strlen(words[i]);
            const size_t dropped = drops && length > 0 && trial[0] == ' ';
            const bool wanted =
                words[i][0] && has_end(all, trial + dropped, length - dropped, &ignored);
            assert_int_equal(allowed(t, i), wanted);
            if (wanted)
                choices[n_choices++] = i;
            else
                assert_error(dpi_mask_text_push(t, i, ERR), ARG, "not allowed");
        }
        if (n_choices == 0 || (is_text && random_below(seed, 3) == 0))
            break;
        const int32_t token = choices[random_below(seed, n_choices)];
        assert_ok(dpi_mask_text_push(t, token, ERR));
        memcpy(text + n, words[token], strlen(words[token]));
        n += strlen(words[token]);
    }
    assert_ok(dpi_mask_text_push(t, END, ERR));
    for (int32_t i = 0; i < TOKENS; i++) /* an end goes on as an end */
        assert_int_equal(allowed(t, i), i == END);
}

/* Runs a check for some grammars, with a first space that counts and with one that does not. */
static void check_forms(void (*check)(const texts *all, dpi_mask *mask, bool drops)) {
    static const char *const forms[] = {
        "root ::= 'ab' | 'ba' [ab]{0,4}",
        "root ::= ('a' | 'bb'){1,2} 'b'?",
        "root ::= [ab ]{2,5}",
        "root ::= ' a' | 'b b'",
        "root ::= 'a' x 'b' | ' '\nx ::= 'a' y 'b' | y\ny ::= ' '?",
        "root ::= 'aabba'",
        "root ::= x x?\nx ::= 'a' ' '? 'b' | 'ba'",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        static texts all;
        char word[LONGEST];
        OWN(dpi_grammar) g = parse(forms[i]);
        OWN(dpi_automaton) a = machine_of(g);
        all.n = 0;
        list_texts(a, word, 0, &all);
        assert_true(all.n > 0);
        for (int drops = 0; drops < 2; drops++) {
            OWN(dpi_mask) mask = make_mask(g, drops);
            check(&all, mask, drops);
        }
    }
}

static void check_texts(const texts *all, dpi_mask *mask, bool drops) {
    uint64_t seed = 5;
    for (int k = 0; k < 30; k++)
        check_text(all, mask, drops, &seed);
}

TEST(test_tokens) { check_forms(check_texts); }

/* The least number of words that make one of the texts, of at most `most`; text [n] is there. */
static int least_words(const texts *all, bool drops, char *text, size_t n, int most) {
    const size_t lost = drops && n > 0 && text[0] == ' ';
    bool is_text;
    (void)has_end(all, text + lost, n - lost, &is_text);
    int found = is_text ? 0 : most;
    for (int i = 0; i < WORDS && found > 0 && most > 0; i++) {
        const size_t length = strlen(words[i]);
        if (length == 0 || n + length > LONGEST + 1)
            continue;
        memcpy(text + n, words[i], length);
        const int behind = 1 + least_words(all, drops, text, n + length, most - 1);
        found = behind < found ? behind : found;
    }
    return found;
}

static void check_shortest(const texts *all, dpi_mask *mask, bool drops) {
    enum { MOST = 5 };
    char word[LONGEST + 2];
    const int32_t n = least_words(all, drops, word, 0, MOST);
    if (n > 0)
        assert_error(dpi_mask_check_length(mask, n - 1, ERR), ARG, "grammar has fewer tokens");
    assert_ok(dpi_mask_check_length(mask, n, ERR));
}

TEST(test_shortest) {
    check_forms(check_shortest);
    /* Too much to look at: a bound, of the 30 9001 / 3 tokens that there are at least. */
    OWN(dpi_grammar) g = parse("root ::= x{30}\nx ::= ([ab]{9000} | ' b'{4500}) 'b'");
    OWN(dpi_mask) mask = make_mask(g, false);
    assert_error(dpi_mask_check_length(mask, 100, ERR), ARG, "grammar has fewer tokens");
    assert_ok(dpi_mask_check_length(mask, 30 * 9001 / 3 + 1, ERR));
}

/* Doublings of something that may be nothing: 2^16 ways from the beginning, of which the first ones
 * are followed. There is a text of no token, but not among these. */
TEST(test_ambiguous) {
    static const char *const last[] = {"'a'?", "'a'*", "''", "'a'? | 'b'"};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        char text[2000], *at = text + sprintf(text, "root ::= r0 'b'?\n");
        for (int k = 0; k < 16; k++)
            at += sprintf(at, "r%d ::= r%d r%d\n", k, k + 1, k + 1);
        sprintf(at, "r16 ::= %s", last[i]);
        OWN(dpi_grammar) g = parse(text);
        OWN(dpi_mask) mask = make_mask(g, false);
        assert_error(dpi_mask_check_length(mask, 40, ERR), LIMIT, "more than 1024 ways at once");
    }
    /* The first ways end. */
    OWN(dpi_grammar) g = parse("root ::= r0 | r0 r0\nr0 ::= 'a' | 'b' r0 | 'b' r0 'a'");
    OWN(dpi_mask) mask = make_mask(g, false);
    assert_ok(dpi_mask_check_length(mask, 1, ERR));
}

/* Two texts, by turns, of a grammar with more places than are kept: both stay where they are. */
TEST(test_many_places) {
    OWN(dpi_grammar)
    g = parse("root ::= x{30} | 'b' y{30}\n"
              "x ::= 'a'{9000} 'b'\ny ::= 'b'{9000} 'a'");
    OWN(dpi_mask) mask = make_mask(g, false);
    OWN(dpi_mask_text) one = begin_text(mask);
    OWN(dpi_mask_text) other = begin_text(mask);
    assert_ok(dpi_mask_text_push(other, 1, ERR));
    for (int32_t i = 0; i < 30 * 9001; i++)
        for (int k = 0; k < 2; k++) {
            const int32_t token = (i % 9001 == 9000) ^ k;
            if (i % 997 == 1)
                assert_int_equal(allowed(k ? other : one, !token), 0);
            assert_ok(dpi_mask_text_push(k ? other : one, token, ERR));
        }
    assert_int_equal(allowed(one, END) + allowed(other, END), 2);
}

TEST(test_refusals) {
    dpi_mask_token tokens[] = {{(const uint8_t *)"a", 1, false}, {.is_end = true}};
    OWN(dpi_grammar) g = parse("root ::= 'a' | 'ac'");
    dpi_mask *mask = NULL;
    assert_error(dpi_mask_make(g, tokens, 2, false, &mask, ERR), UNSUPPORTED, "0x63..0x63");
    tokens[1] = (dpi_mask_token){(const uint8_t *)"c", 1, false};
    assert_error(dpi_mask_make(g, tokens, 2, false, &mask, ERR), UNSUPPORTED, "end-of-generation");
}

/* ---- Models ---------------------------------------------------------------------------------- */

/* One text of the model's own tokens: what its decoder makes of random allowed ones is accepted. */
static void write_text(const dpi_model *model, const dpi_grammar *g, dpi_mask *mask,
                       uint64_t *seed) {
    char out[8192];
    size_t n_out = 0;
    OWN(dpi_mask_text) t = begin_text(mask);
    OWN(dpi_decoder) decoder = NULL;
    assert_ok(dpi_decoder_create(model, &decoder, ERR));
    for (bool ended = false; !ended;) {
        const uint64_t *bits;
        const char *text;
        size_t n_bytes;
        int32_t n, token = 0;
        assert_ok(dpi_mask_text_allowed(t, &bits, &n, ERR));
        for (int32_t left = random_below(seed, n);; token++)
            if ((bits[token / 64] >> (token % 64) & 1) && left-- == 0)
                break;
        assert_ok(dpi_mask_text_push(t, token, ERR));
        ended = dpi_token_is_eog(model, token);
        assert_ok(dpi_decoder_push(decoder, token, &text, &n_bytes, ERR));
        assert_true(n_out + n_bytes < sizeof out);
        memcpy(out + n_out, text, n_bytes);
        n_out += n_bytes;
    }
    assert_text(g, "the model's tokens", out, n_out, 1);
}

static dpi_model *open_builtin(int32_t vocab_only) {
    DEFAULTS(dpi_model_options, o);
    dpi_model *model = NULL;
    o.vocab_only = vocab_only;
    assert_ok(dpi_model_open(DPI_SOURCE "/models/dpinfer-4m-q8_0.gguf", &o, &model, ERR));
    return model;
}

static dpi_mask *mask_of(const dpi_grammar *g, const dpi_model *model) {
    dpi_mask *mask = NULL;
    assert_ok(dpi_mask_create(g, model, &mask, ERR));
    return mask;
}

TEST(test_models) {
    static const char *const grammars[] = {
        "root ::= '{\\'age\\': ' [1-9] [0-9]? ', \\'name\\': \\'' [A-Z] [a-z]{1,9} '\\'}'",
        "root ::= [^a-z]{1,30} '\\u00e4\\U0001f600'",
        "root ::= ' two  spaces ' | '\xc2\xa0'",
    };
    uint64_t seed = 8;
    OWN(dpi_model) model = open_builtin(1);
    for (size_t k = 0; k < sizeof grammars / sizeof *grammars; k++) {
        OWN(dpi_grammar) g = parse(grammars[k]);
        OWN(dpi_mask) mask = mask_of(g, model);
        for (int n = 0; n < 40; n++)
            write_text(model, g, mask, &seed);
    }
}

/* ---- Generations ----------------------------------------------------------------------------- */

/* One text of a method about two records; returns how many of its tokens were private. */
static int32_t generate(const dpi_model *model, const dpi_sampler_options *o, dpi_mask *mask,
                        char *text, size_t size) {
    static const int32_t prompts[3][3] = {{1, 300, 301}, {1, 310, 320}, {1, 330, 340}};
    const int32_t *references[] = {prompts[1], prompts[2]};
    const size_t n_tokens[] = {3, 3};
    OWN(dpi_session) session = open_session(model, NULL, 3, 256);
    OWN(dpi_sampler) sampler = open_sampler(o);
    OWN(dpi_generation) g = NULL;
    dpi_generation_event e = {0};
    DEFAULTS(dpi_generation_options, options);
    options.session = session, options.sampler = sampler, options.mask = mask;
    options.public_tokens = prompts[0], options.n_public = 3;
    options.reference_tokens = references, options.n_reference_tokens = n_tokens;
    options.n_ref = o->n_ref, options.text = DPI_TEXT_PIECES;
    assert_ok(dpi_generation_create(&options, &g, ERR));
    for (size_t n = 0; e.type != DPI_EVENT_END; n += e.n_bytes) {
        assert_ok(dpi_generation_advance(&g, 1, &e, ERR));
        assert_true(n + e.n_bytes < size);
        memcpy(text + n, e.text, e.n_bytes);
        text[n + e.n_bytes] = '\0';
    }
    assert_int_equal(e.end, DPI_END_EOG);
    return dpi_sampler_n_private(sampler);
}

/* A grammar with one text has it written, by every method; what it leaves open is drawn. */
TEST(test_generations) {
    static const int32_t methods[] = {DPI_METHOD_PLAIN, DPI_METHOD_INVISIBLEINK, DPI_METHOD_AMIN};
    OWN(dpi_grammar) one = parse("root ::= '{\\'name\\': \\'\u00c4nne\\'}'");
    OWN(dpi_grammar) some = parse("root ::= '(' [0-9]{2} ('-' [a-z]{1,3})? ')'");
    OWN(dpi_model) model = open_builtin(0);
    OWN(dpi_mask) mask = mask_of(one, model);
    OWN(dpi_mask) masks = mask_of(some, model);
    DEFAULTS(dpi_model_info, info);
    char text[1024];
    assert_ok(dpi_model_info_get(model, &info, ERR));
    for (size_t i = 0; i < 3; i++) {
        const bool plain = methods[i] == DPI_METHOD_PLAIN;
        uint64_t seed = 3;
        dpi_sampler_options o = ink_options(info.n_vocab, plain ? 0 : 2, 64, 1, plain ? 0 : 1);
        o.method = methods[i], o.random = dpi_random_insecure, o.random_user = &seed;
        (void)generate(model, &o, mask, text, sizeof text);
        assert_string_equal(text, "{\"name\": \"\xc3\x84nne\"}");
        const int32_t n_private = generate(model, &o, masks, text, sizeof text);
        assert_text(some, "generated", text, strlen(text), 1);
        /* The end is forced, and so costs nothing; every other token has a byte at least. */
        assert_in_range(n_private, plain ? 0 : 1, plain ? 0 : strlen(text));
    }
}
