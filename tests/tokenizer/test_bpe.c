/* test_bpe.c - byte-level BPE. Expected ids come from the golden files, from strings worked out by
 * hand, and from a slow encoder written here. */
#include "tests/support/support.h"

#include "tests/support/failing.h"
#include "tests/support/vocab_build.h"

#define KEY(name) "tokenizer.ggml." name
#define LLAMA3 "tokenizer/vocab-llama3-bpe.gguf"

/* ---- Golden data ---------------------------------------------------------------------------- */

TEST(encodes_golden_strings) {
    check_golden_strings(LLAMA3, "tokenizer/llama-bpe.inp", "tokenizer/llama-bpe.out");
}

TEST(encodes_random_strings) { check_random_strings(LLAMA3, "tokenizer/random-bpe.tokens"); }

/* Ids as in the model cards of Llama 3 and 3.1. */
TEST(knows_the_tokens_of_llama3) {
    dpi_vocab *vocab = load_file(LLAMA3);
    assert_int_equal(dpi_vocab_size(vocab), 128256);
    assert_int_equal(dpi_vocab_bos(vocab), 128000);
    for (int32_t id = 127990; id < 128256; id++) {
        bool ends = id == 128001 || id == 128008 || id == 128009;
        assert_int_equal(dpi_vocab_is_eog(vocab, id), ends);
        assert_int_equal(dpi_vocab_is_control(vocab, id), id >= 128000);
    }
    assert_ids_bos(vocab, "Hello", 128000, 9906);
    /* What looks like a special token is text. */
    static const char *const documents[] = {"<|eot_id|>", "a<|begin_of_text|>",
                                            "<|end_of_text|>\n"};
    for (int i = 0; i < 3; i++) {
        size_t n;
        int32_t *ids = encode(vocab, documents[i], strlen(documents[i]), &n);
        for (size_t k = 0; k < n; k++)
            assert_true(ids[k] < 128000);
        free(ids);
    }
    check_round_trips(vocab, documents, 3);
    dpi_vocab_free(vocab);
}

/* ---- Against a slow encoder ------------------------------------------------------------------ */

enum { MAX_MERGES = 200, MAX_LENGTH = 24 };

typedef struct model {
    pieces s;
    char texts[MAX_PIECES][MAX_LENGTH];
    char merges[MAX_MERGES][2 * MAX_LENGTH + 2];
    const char *lines[MAX_MERGES];
    int32_t n_merges;
} model;

static int32_t find_text(const pieces *s, const char *text) {
    for (int32_t i = 0; i < s->n; i++)
        if (strcmp(s->p[i].text, text) == 0)
            return i;
    return -1;
}

/* Letters only, so that every text is one word; merges in any order, so that ranks do not rise with
 * length; two ways to one token; merges twice; tokens that text must not become. */
static void random_model(model *m, uint64_t *rng) {
    static const char letters[] = "abc\xc3\xa9";
    int32_t pool[MAX_PIECES], n_pool = 0;
    begin_bpe(&m->s);
    m->n_merges = 0;
    for (const char *p = letters; *p; p++)
        pool[n_pool++] = (unsigned char)*p;
    for (int i = 0; i < 120; i++) {
        const char *left = m->s.p[pool[random_below(rng, n_pool)]].text;
        const char *right = m->s.p[pool[random_below(rng, n_pool)]].text;
        if (strlen(left) + strlen(right) >= MAX_LENGTH)
            continue;
        char joined[2 * MAX_LENGTH];
        snprintf(joined, sizeof joined, "%s%s", left, right);
        if (find_text(&m->s, joined) < 0) {
            strcpy(m->texts[m->s.n], joined);
            pool[n_pool++] = m->s.n;
            add(&m->s, m->texts[m->s.n], 0, random_below(rng, 25) ? NORMAL : CONTROL);
        }
        snprintf(m->merges[m->n_merges++], sizeof m->merges[0], "%s %s", left, right);
    }
    for (int32_t i = 0; i < m->n_merges; i++) { /* shuffled */
        int32_t k = random_below(rng, i + 1);
        m->lines[i] = m->lines[k];
        m->lines[k] = m->merges[i];
    }
}

static int32_t rank_of(const model *m, int32_t left, int32_t right, int32_t *result) {
    char line[2 * MAX_LENGTH + 2], joined[2 * MAX_LENGTH];
    snprintf(line, sizeof line, "%s %s", m->s.p[left].text, m->s.p[right].text);
    snprintf(joined, sizeof joined, "%s%s", m->s.p[left].text, m->s.p[right].text);
    for (int32_t i = 0; i < m->n_merges; i++)
        if (strcmp(m->lines[i], line) == 0) {
            *result = find_text(&m->s, joined);
            return m->s.p[*result].type == CONTROL ? -1 : i;
        }
    return -1;
}

/* While there is a pair with a merge: the earliest merge, the leftmost of equals. */
static size_t slow_encode(const model *m, const char *text, bool whole_words, int32_t *ids) {
    char word[1024];
    int32_t whole = find_text(&m->s, bpe_text(text, strlen(text), word));
    if (whole_words && whole >= 0 && m->s.p[whole].type != CONTROL) {
        ids[0] = whole;
        return 1;
    }
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        ids[i] = (unsigned char)text[i];
    for (;;) {
        int32_t best = -1, joined = -1;
        size_t where = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            int32_t result, rank = rank_of(m, ids[i], ids[i + 1], &result);
            if (rank >= 0 && (best < 0 || rank < best))
                best = rank, joined = result, where = i;
        }
        if (best < 0)
            return n;
        ids[where] = joined;
        n--;
        memmove(ids + where + 1, ids + where + 2, (n - where - 1) * sizeof *ids);
    }
}

TEST(agrees_with_a_slow_encoder) {
    static model m;
    static const char letters[][3] = {"a", "b", "c", "\xc3\xa9", "d"};
    uint64_t rng = 5;
    int n_whole = 0, n_longer = 0;
    for (int round = 0; round < 40; round++) {
        bool whole_words = round % 2;
        random_model(&m, &rng);
        dpi_vocab *vocab =
            load_bpe(&m.s, whole_words ? "llama-bpe" : "gpt-2", m.lines, (size_t)m.n_merges);
        for (int k = 0; k < 40; k++) {
            char text[128] = "";
            int32_t ids[128], n_letters = 1 + random_below(&rng, k % 2 ? 40 : 5);
            while (n_letters-- > 0)
                strcat(text, letters[random_below(&rng, 20) ? random_below(&rng, 4) : 4]);
            size_t n = slow_encode(&m, text, whole_words, ids);
            n_whole += whole_words && n == 1;
            for (size_t i = 0; i < n; i++)
                n_longer += ids[i] >= FIRST_BPE;
            check_ids(vocab, text, strlen(text), ids, n);
            check_round_trip(vocab, text, strlen(text));
        }
        dpi_vocab_free(vocab);
    }
    assert_true(n_whole > 20 && n_longer > 2000); /* or nothing was tried */
}

/* ---- Cases by hand --------------------------------------------------------------------------- */

TEST(writes_every_byte) {
    static pieces s;
    begin_bpe(&s);
    dpi_vocab *vocab = load_bpe(&s, "gpt-2", NULL, 0);
    /* Every character of two bytes, and with them every byte that they can hold. */
    for (int32_t c = 0; c < 0x800; c++) {
        char text[2] = {(char)(c < 0x80 ? c : 0xc0 | c >> 6), (char)(0x80 | (c & 0x3f))};
        int32_t ids[2] = {(unsigned char)text[0], (unsigned char)text[1]};
        size_t n = c < 0x80 ? 1 : 2;
        check_ids(vocab, text, n, ids, n);
        check_round_trip(vocab, text, n);
    }
    /* A byte that is no part of a character is U+FFFD. */
    assert_ids(vocab, "a\xff\xe2\x82", 'a', 0xef, 0xbf, 0xbd, 0xef, 0xbf, 0xbd, 0xef, 0xbf, 0xbd);
    dpi_vocab_free(vocab);
}

/* The space in tokens and merges. */
#define SP "\xc4\xa0"

TEST(merges_by_rank) {
    static pieces s;
    static const char *const merges[] = {"b c", "a b", SP " a", "<| end|>", "< |"};
    begin_bpe(&s);
    add(&s, "ab", 0, NORMAL);      /* 256 */
    add(&s, "bc", 0, NORMAL);      /* 257 */
    add(&s, "abc", 0, NORMAL);     /* 258: no merge makes it */
    add(&s, SP "a", 0, NORMAL);    /* 259 */
    add(&s, "<|end|>", 0, NORMAL); /* 260: a control token by its looks */
    add(&s, "<|", 0, NORMAL);      /* 261 */
    add(&s, "end|>", 0, UNUSED);   /* 262 */
    dpi_vocab *vocab = load_bpe(&s, "gpt-2", merges, 5);
    assert_ids(vocab, "abc", 'a', 257);
    assert_ids(vocab, "ab", 256);
    assert_ids(vocab, " ab", ' ', 256); /* " a" has a later merge */
    assert_ids(vocab, " ac", 259, 'c');
    assert_ids(vocab, "<|end|>", 261, 'e', 'n', 'd', '|', '>');
    assert_text(vocab, "ab a", 256, 259);
    assert_text(vocab, "a", 'a', 260);
    assert_int_equal(dpi_vocab_is_eog(vocab, 260), 1);
    dpi_vocab_free(vocab);
    /* Llama 3 takes a word that is a token as it is, whatever the merges say. */
    vocab = load_bpe(&s, "llama-bpe", merges, 5);
    assert_ids(vocab, "abc", 258);
    assert_ids(vocab, "abcab", 'a', 257, 256);
    assert_ids(vocab, "abc1abc", 258, '1', 258);
    dpi_vocab_free(vocab);
}

/* A byte without a token is out before words are merged; some words have no other. */
TEST(merges_over_bytes_without_a_token) {
    static pieces s;
    static const char *const merges[] = {"! -"};
    begin_bpe(&s);
    s.p[6].type = s.p[14].type = CONTROL; /* what text may not become */
    add(&s, "!-", 0, NORMAL);             /* 256 */
    dpi_vocab *vocab = load_bpe(&s, "gpt-2", merges, 1);
    assert_ids(vocab, "!\x06\x0e-!", 256, '!');
    assert_ids(vocab, "\x06\x0e-\x06", '-');
    int32_t ids[8];
    size_t n = 99;
    assert_ok(dpi_vocab_encode(vocab, "\x06\x0e", 2, 0, ids, 8, &n, ERR));
    assert_int_equal(n, 0);
    dpi_vocab_free(vocab);
    /* Ids by Hugging Face's tokenizers. */
    vocab = load_file("tokenizer/vocab-smollm.gguf");
    assert_ids(vocab, "<|vision_start|><issue_start>\x06<unused5>", 44, 108, 4671, 79, 3738, 108,
               21198, 2195, 79, 3738, 21198, 419, 3447, 37, 46);
    assert_ids(vocab, "-\x06't", 42086, 100);
    assert_ids(vocab, " \x06*", 1672);
    assert_ids(vocab, "in\x14g \x04\x1d", 254, 87, 216);
    dpi_vocab_free(vocab);
}

TEST(cuts_out_user_defined_tokens) {
    static pieces s;
    static const char *const texts[] = {" a", "   ", "a  <br>  b", "<br",
                                        "\xc3\xa9\xc4\xa0\xc3\xa9"};
    begin_bpe(&s);
    add(&s, "  ", 0, USER);               /* 256: literal text */
    add(&s, SP SP, 0, NORMAL);            /* 257: the same text in bytes */
    add(&s, "<br>", 0, USER);             /* 258 */
    add(&s, "\xc3\xa9\xc4\xa0", 0, USER); /* 259: U+00E9 U+0120, literally */
    dpi_vocab *vocab = load_bpe(&s, "gpt-2", (const char *[]){SP " " SP}, 1);
    assert_ids(vocab, "a  b", 'a', 256, 'b');
    assert_ids(vocab, "a\n  b", 'a', '\n', 256, 'b');
    assert_ids(vocab, "x <br> y", 'x', ' ', 258, ' ', 'y');
    assert_ids(vocab, "\xc3\xa9\xc4\xa0", 259);
    assert_text(vocab, "  |  |<br>|\xc3\xa9\xc4\xa0", 256, '|', 257, '|', 258, '|', 259);
    check_round_trips(vocab, texts, 5);
    dpi_vocab_free(vocab);
}

/* A text loses what its vocabulary cannot write. The unknown token would end the text in models
 * whose <|endoftext|> is both. */
TEST(drops_bytes_without_a_token) {
    static const char *const texts[] = {"a", "b", "<|endoftext|>"};
    dpi_vocab *vocab;
    LOAD(vocab, build_string(&b, KEY("model"), "gpt2"), build_strings(&b, KEY("tokens"), texts, 3),
         build_strings(&b, KEY("merges"), NULL, 0), build_u32(&b, KEY("unknown_token_id"), 2));
    assert_ids(vocab, "axb", 0, 1);
    assert_ids(vocab, "b\xc3\xa9\n", 1);
    assert_int_equal(dpi_vocab_is_eog(vocab, 2), 1);
    dpi_vocab_free(vocab);
}

/* ---- What the file may say ------------------------------------------------------------------- */

/* A sound vocabulary, with the merge of "ab" and, if it is not NULL, another. */
static void build_sound(gguf_build *b, const char *pre, const char *merge) {
    static pieces s;
    begin_bpe(&s);
    add(&s, "<|bos|>", 0, CONTROL); /* 256 */
    add(&s, "ab", 0, NORMAL);       /* 257 */
    build_bpe(b, &s, pre, (const char *[]){"a b", merge}, merge ? 2 : 1);
}

TEST(adds_bos_as_the_file_says) {
    static const struct {
        const char *pre;
        bool has_bos;
        int32_t says; /* -1: nothing */
        bool adds;
    } cases[] = {
        {"llama-bpe", true, -1, true},   {"llama-bpe", true, 0, false},
        {"llama-bpe", false, -1, false}, {"smollm", true, -1, false},
        {"smollm", true, 1, true},       {"gpt-2", true, -1, false},
        {"default", true, -1, false},    {NULL, true, -1, false},
        {"falcon3", true, -1, true},
    };
    for (int i = 0; i < 9; i++) {
        dpi_vocab *vocab;
        LOAD(vocab, build_sound(&b, cases[i].pre, NULL);
             if (cases[i].has_bos) build_u32(&b, KEY("bos_token_id"), 256);
             if (cases[i].says >= 0) build_bool(&b, KEY("add_bos_token"), cases[i].says);
             build_bool(&b, KEY("add_space_prefix"), true)); /* means nothing here */
        if (cases[i].adds)
            assert_ids_bos(vocab, "ab", 256, 257);
        else
            assert_ids_bos(vocab, "ab", 257);
        assert_text(vocab, " ab", ' ', 257);
        assert_int_equal(dpi_vocab_bos(vocab), cases[i].has_bos ? 256 : -1);
        dpi_vocab_free(vocab);
    }
}

TEST(refuses_other_words_by_name) {
    static const char *const names[][2] = {{"tekken2", "\"tekken2\""},
                                           {"qwen", "\"qwen\""},
                                           {"Llama-BPE", "\"Llama-BPE\""},
                                           {"a\033[2J", "\"a?[2J\""}};
    for (int i = 0; i < 4; i++) {
        REFUSED(UNSUPPORTED, names[i][1], true, build_sound(&b, names[i][0], NULL));
        assert_non_null(strstr(ERR->message, "must be one of default, llama-bpe, "));
    }
    REFUSED(FORMAT, KEY("pre"), true, build_sound(&b, NULL, NULL), build_u32(&b, KEY("pre"), 1));
}

static void build_one_token(gguf_build *b) {
    build_string(b, KEY("model"), "gpt2");
    build_strings(b, KEY("tokens"), (const char *[]){"a"}, 1);
}

TEST(refuses_bad_merges) {
    /* no space, an empty part, parts or wholes that are no tokens, two spaces, one too long */
    static char too_long[2100];
    static const char *const bad[] = {"ab",   "",     " ",    "a ",    " b",    "a c",
                                      "x yz", "xy z", "a  b", "ab ab", "a b b", too_long};
    static const int32_t numbers[] = {1, 2};
    enum { TOO_MANY = (1 << 22) + 1 };
    memset(too_long, 'a', sizeof too_long - 1);
    too_long[1000] = ' ';
    for (int i = 0; i < 12; i++)
        REFUSED(FORMAT, "merge 1 is not two tokens", true, build_sound(&b, "gpt-2", bad[i]));
    dpi_vocab *vocab;
    LOAD(vocab, build_sound(&b, "gpt-2", "a b")); /* twice is harmless */
    assert_ids(vocab, "aab", 'a', 257);
    dpi_vocab_free(vocab);
    REFUSED(FORMAT, "tokenizer.ggml.merges is missing", false, build_one_token(&b));
    REFUSED(FORMAT, "tokenizer.ggml.merges", true, build_one_token(&b),
            build_array(&b, KEY("merges"), DPI_GGUF_I32, numbers, 2, 4));
    REFUSED(FORMAT, "has 4194305 merges, at most 4194304", true, build_one_token(&b);
            build_key(&b, KEY("merges"), DPI_GGUF_ARRAY); build_put_u32(&b, DPI_GGUF_STRING);
            build_put_u64(&b, TOO_MANY);
            for (size_t i = 0; i < TOO_MANY; i++) build_put_u64(&b, 0));
}

/* ---- Time and memory ------------------------------------------------------------------------- */

/* One word: of many letters, of one letter (a long chain of ties), of blanks. */
TEST(encodes_a_long_word_in_linear_time) {
    static model m;
    uint64_t rng = 9;
    random_model(&m, &rng);
    dpi_vocab *vocab = load_bpe(&m.s, "llama-bpe", m.lines, (size_t)m.n_merges);
    char *text = malloc(MANY);
    assert_non_null(text);
    for (int way = 0; way < 3; way++) {
        for (size_t i = 0; i < MANY; i++)
            text[i] = way == 0 ? "abc"[random_below(&rng, 3)] : way == 1 ? 'a' : ' ';
        check_round_trip(vocab, text, MANY);
    }
    free(text);
    dpi_vocab_free(vocab);
}

TEST(survives_allocation_failures) {
    static const char *const rules[] = {"llama-bpe", "default"};
    for (int r = 0; r < 2; r++) {
        gguf_build b;
        dpi_gguf *gguf;
        build_begin(&b);
        build_sound(&b, rules[r], NULL);
        build_end(&b);
        assert_ok(dpi_gguf_open_buffer(b.data, b.n_bytes, &gguf, ERR));
        dpi_vocab *vocab = NULL;
        int64_t n = 1;
        for (; fails(n, dpi_vocab_create(gguf, &vocab, ERR), "no memory"); n++)
            assert_null(vocab);
        assert_true(n > 15); /* PCRE2's are among them */
        dpi_gguf_close(gguf);
        build_free(&b);
        int32_t ids[64];
        size_t n_ids = 99;
        for (n = 1; fails(n, dpi_vocab_encode(vocab, "abab\xff 12", 8, 0, ids, 64, &n_ids, ERR),
                          "no memory");
             n++)
            assert_int_equal(n_ids, 99);
        assert_true(n > 4);
        dpi_vocab_free(vocab);
    }
}
