/* Which tokens a place allows. The oracle: all words up to a length, over a vocabulary of short
 * ones. And models: what is written is what the grammar accepts. */
#include "grammar/mask.h"
#include "tests/support/support.h"

enum { LONGEST = 6 };

static const char *const words[] = {"a", "b", "ab", "ba", "aab", "bbb", "a", "", " ", " a", "  b"};
enum { WORDS = sizeof words / sizeof *words, END = WORDS, NONE = WORDS + 1, TOKENS = WORDS + 2 };

static dpi_mask *make_mask(const dpi_grammar *g, bool drops_space) {
    dpi_mask_token tokens[TOKENS] = {[END] = {.is_end = true}};
    dpi_mask *mask = NULL;
    dpi_error err;
    for (int i = 0; i < WORDS; i++)
        tokens[i] = (dpi_mask_token){(const uint8_t *)words[i], (uint32_t)strlen(words[i]), false};
    assert_ok(dpi_mask_make(g, tokens, TOKENS, drops_space, &mask, &err), &err);
    return mask;
}

static dpi_grammar *parse(const char *text) {
    dpi_grammar *g = NULL;
    dpi_error err;
    assert_ok(dpi_grammar_parse(text, strlen(text), &g, &err), &err);
    return g;
}

/* All texts of a grammar up to LONGEST, by trying all words of its letters. */
typedef struct texts {
    char at[512][LONGEST + 1];
    int n;
} texts;

static void list_texts(const dpi_grammar *g, char *word, size_t n, texts *all) {
    int32_t yes = 0;
    dpi_error err;
    assert_ok(dpi_grammar_accepts(g, word, n, &yes, &err), &err);
    if (yes) {
        assert_true(all->n < 512);
        memcpy(all->at[all->n], word, n);
        all->at[all->n++][n] = '\0';
    }
    for (int i = 0; i < 3 && n < LONGEST; i++) {
        word[n] = "ab "[i];
        list_texts(g, word, n + 1, all);
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
    dpi_error err;
    assert_ok(dpi_mask_text_allowed(t, &bits, &n, &err), &err);
    for (int32_t i = 0; i < TOKENS; i++)
        count += bits[i / 64] >> (i % 64) & 1;
    assert_int_equal(count, n);
    return bits[token / 64] >> (token % 64) & 1;
}

/* Follows one text of random tokens. `drops`: without the first space. */
static void check_text(const texts *all, dpi_mask *mask, bool drops, uint64_t *seed) {
    dpi_mask_text *t = NULL;
    dpi_error err;
    char text[64] = "";
    size_t n = 0; /* of the text as it was written, with a space that does not count */
    assert_ok(dpi_mask_text_create(mask, &t, &err), &err);
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
            const bool wanted = words[i][0] && has_end(all, trial + dropped, length - dropped,
                                                       &ignored);
            assert_int_equal(allowed(t, i), wanted);
            if (wanted)
                choices[n_choices++] = i;
            else
                assert_error(dpi_mask_text_push(t, i, &err), DPI_STATUS_ARG, &err, "not allowed");
        }
        if (n_choices == 0 || (is_text && random_below(seed, 3) == 0))
            break;
        const int32_t token = choices[random_below(seed, n_choices)];
        assert_ok(dpi_mask_text_push(t, token, &err), &err);
        memcpy(text + n, words[token], strlen(words[token]));
        n += strlen(words[token]);
    }
    assert_ok(dpi_mask_text_push(t, END, &err), &err);
    for (int32_t i = 0; i < TOKENS; i++) /* an end goes on as an end */
        assert_int_equal(allowed(t, i), i == END);
    dpi_mask_text_free(t);
}

static const char *const forms[] = {
    "root ::= \"ab\" | \"ba\" [ab]{0,4}",
    "root ::= (\"a\" | \"bb\"){1,2} \"b\"?",
    "root ::= [ab ]{2,5}",
    "root ::= \" a\" | \"b b\"",
    "root ::= \"a\" x \"b\" | \" \"\nx ::= \"a\" y \"b\" | y\ny ::= \" \"?",
    "root ::= \"aabba\"",
    "root ::= x x?\nx ::= \"a\" \" \"? \"b\" | \"ba\"",
};
enum { FORMS = sizeof forms / sizeof *forms };

static void test_tokens(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (size_t i = 0; i < FORMS; i++)
        for (int drops = 0; drops < 2; drops++) {
            static texts all;
            char word[LONGEST];
            dpi_grammar *g = parse(forms[i]);
            dpi_mask *mask = make_mask(g, drops);
            all.n = 0;
            list_texts(g, word, 0, &all);
            assert_true(all.n > 0);
            for (int k = 0; k < 30; k++)
                check_text(&all, mask, drops, &seed);
            dpi_mask_free(mask);
            dpi_grammar_free(g);
        }
}

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

static void test_shortest(void **state) {
    (void)state;
    enum { MOST = 5 };
    dpi_error err;
    for (size_t i = 0; i < FORMS; i++)
        for (int drops = 0; drops < 2; drops++) {
            static texts all;
            char word[LONGEST + 2];
            int32_t n;
            dpi_grammar *g = parse(forms[i]);
            dpi_mask *mask = make_mask(g, drops);
            all.n = 0;
            list_texts(g, word, 0, &all);
            assert_ok(dpi_mask_shortest(mask, 100, &n, &err), &err);
            assert_int_equal(n, least_words(&all, drops, word, 0, MOST));
            if (n > 0)
                assert_error(dpi_mask_check_length(mask, n - 1, &err), DPI_STATUS_ARG, &err,
                             "grammar has fewer tokens");
            assert_ok(dpi_mask_check_length(mask, n, &err), &err);
            dpi_mask_free(mask);
            dpi_grammar_free(g);
        }
    /* Too much to look at: a bound, of the 30 9001 / 3 tokens that there are at least. */
    dpi_grammar *g = parse("root ::= x{30}\nx ::= ([ab]{9000} | \" b\"{4500}) \"b\"");
    dpi_mask *mask = make_mask(g, false);
    int32_t n;
    assert_ok(dpi_mask_shortest(mask, 1 << 20, &n, &err), &err);
    assert_true(n > 100 && n <= 30 * 9001 / 3 + 1);
    dpi_mask_free(mask);
    dpi_grammar_free(g);
}

/* Two texts, by turns, of a grammar with more places than are kept: both stay where they are. */
static void test_many_places(void **state) {
    (void)state;
    dpi_grammar *g = parse("root ::= x{30} | \"b\" y{30}\n"
                           "x ::= \"a\"{9000} \"b\"\ny ::= \"b\"{9000} \"a\"");
    dpi_mask *mask = make_mask(g, false);
    dpi_mask_text *t[2] = {NULL, NULL};
    dpi_error err;
    assert_ok(dpi_mask_text_create(mask, &t[0], &err), &err);
    assert_ok(dpi_mask_text_create(mask, &t[1], &err), &err);
    assert_ok(dpi_mask_text_push(t[1], 1, &err), &err);
    for (int32_t i = 0; i < 30 * 9001; i++)
        for (int k = 0; k < 2; k++) {
            const int32_t token = (i % 9001 == 9000) ^ k;
            if (i % 997 == 1)
                assert_int_equal(allowed(t[k], !token), 0);
            assert_ok(dpi_mask_text_push(t[k], token, &err), &err);
        }
    assert_int_equal(allowed(t[0], END) + allowed(t[1], END), 2);
    dpi_mask_text_free(t[0]);
    dpi_mask_text_free(t[1]);
    dpi_mask_free(mask);
    dpi_grammar_free(g);
}

static void test_refusals(void **state) {
    (void)state;
    dpi_mask_token tokens[] = {{(const uint8_t *)"a", 1, false}, {.is_end = true}};
    dpi_grammar *g = parse("root ::= \"a\" | \"ac\"");
    dpi_mask *mask = NULL;
    dpi_error err;
    assert_error(dpi_mask_make(g, tokens, 2, false, &mask, &err), DPI_STATUS_UNSUPPORTED, &err,
                 "0x63..0x63");
    tokens[1] = (dpi_mask_token){(const uint8_t *)"c", 1, false};
    assert_error(dpi_mask_make(g, tokens, 2, false, &mask, &err), DPI_STATUS_UNSUPPORTED, &err,
                 "end-of-generation");
    dpi_grammar_free(g);
}

/* ---- Models ---------------------------------------------------------------------------------- */

/* One text of the model's own tokens: what its decoder makes of random allowed ones is accepted. */
static void write_text(const dpi_model *model, const dpi_grammar *g, dpi_mask *mask,
                       uint64_t *seed) {
    char out[8192];
    size_t n_out = 0;
    dpi_mask_text *t = NULL;
    dpi_decoder *decoder = NULL;
    dpi_model_info info;
    dpi_error err;
    dpi_model_info_init(&info);
    assert_ok(dpi_model_info_get(model, &info, &err), &err);
    assert_ok(dpi_mask_text_create(mask, &t, &err), &err);
    assert_ok(dpi_decoder_create(model, &decoder, &err), &err);
    for (bool ended = false; !ended;) {
        const uint64_t *bits;
        const char *text;
        size_t n_bytes;
        int32_t n, token = 0;
        assert_ok(dpi_mask_text_allowed(t, &bits, &n, &err), &err);
        for (int32_t left = random_below(seed, n); ; token++)
            if ((bits[token / 64] >> (token % 64) & 1) && left-- == 0)
                break;
        assert_ok(dpi_mask_text_push(t, token, &err), &err);
        ended = dpi_token_is_eog(model, token);
        assert_ok(dpi_decoder_push(decoder, token, &text, &n_bytes, &err), &err);
        assert_true(n_out + n_bytes < sizeof out);
        memcpy(out + n_out, text, n_bytes);
        n_out += n_bytes;
    }
    int32_t yes = 0;
    assert_ok(dpi_grammar_accepts(g, out, n_out, &yes, &err), &err);
    if (!yes)
        fail_msg("not accepted: %.*s", (int)n_out, out);
    dpi_decoder_free(decoder);
    dpi_mask_text_free(t);
}

static void test_models(void **state) {
    (void)state;
    static const char *const files[] = {"models/dpinfer-4m-q8_0.gguf"};
    static const char *const grammars[] = {
        // The parentheses say that these are one string, not two that a comma is missing between.
        ("root ::= \"{\\\"age\\\": \" [1-9] [0-9]? \", \\\"name\\\": \\\"\" [A-Z] [a-z]{1,9} "
         "\"\\\"}\""),
        "root ::= [^a-z]{1,30} \"\\u00e4\\U0001f600\"",
        "root ::= \" two  spaces \" | \"\xc2\xa0\"",
    };
    uint64_t seed = 8;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        dpi_model_options o;
        dpi_model *model = NULL;
        dpi_error err;
        dpi_model_options_init(&o);
        o.vocab_only = 1;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", DPI_SOURCE, files[i]);
        assert_ok(dpi_model_open(path, &o, &model, &err), &err);
        for (size_t k = 0; k < sizeof grammars / sizeof *grammars; k++) {
            dpi_grammar *g = parse(grammars[k]);
            dpi_mask *mask = NULL;
            assert_ok(dpi_mask_create(g, model, &mask, &err), &err);
            for (int n = 0; n < 40; n++)
                write_text(model, g, mask, &seed);
            dpi_mask_free(mask);
            dpi_grammar_free(g);
        }
        dpi_model_close(model);
    }
}

/* ---- Generations ----------------------------------------------------------------------------- */

/* One text of a method about two records; returns how many of its tokens were private. */
static int32_t generate(const dpi_model *model, const dpi_sampler_options *o, dpi_mask *mask,
                        char *text, size_t size) {
    static const int32_t prompts[3][3] = {{1, 300, 301}, {1, 310, 320}, {1, 330, 340}};
    const int32_t *references[] = {prompts[1], prompts[2]};
    const size_t n_tokens[] = {3, 3};
    dpi_session *session = open_session(model, NULL, 3, 256);
    dpi_sampler *sampler = open_sampler(o);
    dpi_generation *g = NULL;
    dpi_generation_event e = {0};
    dpi_generation_options options;
    dpi_error err;
    dpi_generation_options_init(&options);
    options.session = session;
    options.sampler = sampler;
    options.public_tokens = prompts[0];
    options.n_public = 3;
    options.reference_tokens = references;
    options.n_reference_tokens = n_tokens;
    options.n_ref = o->n_ref;
    options.text = DPI_TEXT_PIECES;
    options.mask = mask;
    assert_ok(dpi_generation_create(&options, &g, &err), &err);
    for (size_t n = 0; e.type != DPI_EVENT_END; n += e.n_bytes) {
        assert_ok(dpi_generation_advance(&g, 1, &e, &err), &err);
        assert_true(n + e.n_bytes < size);
        memcpy(text + n, e.text, e.n_bytes);
        text[n + e.n_bytes] = '\0';
    }
    assert_int_equal(e.end, DPI_END_EOG);
    const int32_t n_private = dpi_sampler_n_private(sampler);
    dpi_generation_free(g);
    dpi_sampler_free(sampler);
    dpi_session_free(session);
    return n_private;
}

/* A grammar with one text has it written, by every method; what it leaves open is drawn. */
static void test_generations(void **state) {
    (void)state;
    static const int32_t methods[] = {DPI_METHOD_PLAIN, DPI_METHOD_INVISIBLEINK, DPI_METHOD_AMIN};
    dpi_grammar *one = parse("root ::= \"{\\\"name\\\": \\\"\u00c4nne\\\"}\"");
    dpi_grammar *some = parse("root ::= \"(\" [0-9]{2} (\"-\" [a-z]{1,3})? \")\"");
    dpi_mask *mask = NULL, *masks = NULL;
    dpi_model *model = NULL;
    dpi_model_info info;
    dpi_error err;
    char text[1024];
    assert_ok(dpi_model_open(DPI_SOURCE "/models/dpinfer-4m-q8_0.gguf", NULL, &model, &err), &err);
    dpi_model_info_init(&info);
    assert_ok(dpi_model_info_get(model, &info, &err), &err);
    assert_ok(dpi_mask_create(one, model, &mask, &err), &err);
    assert_ok(dpi_mask_create(some, model, &masks, &err), &err);
    for (size_t i = 0; i < 3; i++) {
        const bool plain = methods[i] == DPI_METHOD_PLAIN;
        uint64_t seed = 3;
        dpi_sampler_options o = ink_options(info.n_vocab, plain ? 0 : 2, 64, 1, plain ? 0 : 1);
        o.method = methods[i];
        o.random = dpi_random_insecure;
        o.random_user = &seed;
        (void)generate(model, &o, mask, text, sizeof text);
        assert_string_equal(text, "{\"name\": \"\xc3\x84nne\"}");
        int32_t yes = 0;
        const int32_t n_private = generate(model, &o, masks, text, sizeof text);
        assert_ok(dpi_grammar_accepts(some, text, strlen(text), &yes, &err), &err);
        assert_int_equal(yes, 1);
        /* The end is forced, and so costs nothing; every other token has a byte at least. */
        assert_in_range(n_private, plain ? 0 : 1, plain ? 0 : strlen(text));
    }
    dpi_mask_free(mask);
    dpi_mask_free(masks);
    dpi_grammar_free(one);
    dpi_grammar_free(some);
    dpi_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_shortest),
        cmocka_unit_test(test_many_places),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_generations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
