/* test_bpe.c - byte-level BPE. Expected ids come from the golden files, from strings worked out by
 * hand, and from a slow encoder written here. */
#include "tests/support/support.h"

#include "tests/support/vocab_build.h"

#define KEY(name) "tokenizer.ggml." name
#define LLAMA3 "tokenizer/vocab-llama3-bpe.gguf"

/* ---- Golden data ---------------------------------------------------------------------------- */

static void encodes_golden_strings(void **state) {
    (void)state;
    check_golden_strings(LLAMA3, "tokenizer/llama-bpe.inp", "tokenizer/llama-bpe.out");
}

static void encodes_random_strings(void **state) {
    (void)state;
    check_random_strings(LLAMA3, "tokenizer/random-bpe.tokens");
}

/* Ids as in the model cards of Llama 3 and 3.1. */
static void knows_the_tokens_of_llama3(void **state) {
    (void)state;
    dpi_vocab *vocab = load_file(LLAMA3);
    assert_int_equal(dpi_vocab_size(vocab), 128256);
    assert_int_equal(dpi_vocab_bos(vocab), 128000);
    for (int32_t id = 127990; id < 128256; id++) {
        bool ends = id == 128001 || id == 128008 || id == 128009;
        assert_int_equal(dpi_vocab_is_eog(vocab, id), ends);
        assert_int_equal(dpi_vocab_is_control(vocab, id), id >= 128000);
    }
    int32_t ids[8];
    size_t n;
    dpi_error err = {0};
    assert_ok(dpi_vocab_encode(vocab, "Hello", 5, DPI_TOKENIZE_BOS, ids, 8, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(ids[0], 128000);
    assert_int_equal(ids[1], 9906);
    /* What looks like a special token is text. */
    static const char *const documents[] = {"<|eot_id|>", "a<|begin_of_text|>",
                                            "<|end_of_text|>\n"};
    for (int i = 0; i < 3; i++) {
        int32_t *document = encode(vocab, documents[i], strlen(documents[i]), &n);
        for (size_t k = 0; k < n; k++)
            assert_true(document[k] < 128000);
        free(document);
        check_round_trip(vocab, documents[i], strlen(documents[i]));
    }
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
    static const char letters[][3] = {"a", "b", "c", "\xc3\xa9"};
    begin_bpe(&m->s);
    m->n_merges = 0;
    int32_t pool[MAX_PIECES], n_pool = 0;
    for (int i = 0; i < 4; i++)
        for (const char *p = letters[i]; *p; p++)
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
    for (int32_t i = 0; i < m->n_merges; i++)
        m->lines[i] = m->merges[i];
    for (int32_t i = m->n_merges - 1; i > 0; i--) {
        int32_t k = random_below(rng, i + 1);
        const char *line = m->lines[i];
        m->lines[i] = m->lines[k];
        m->lines[k] = line;
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
            if (rank >= 0 && (best < 0 || rank < best)) {
                best = rank;
                joined = result;
                where = i;
            }
        }
        if (best < 0)
            return n;
        ids[where] = joined;
        n--;
        memmove(ids + where + 1, ids + where + 2, (n - where - 1) * sizeof *ids);
    }
}

static void agrees_with_a_slow_encoder(void **state) {
    (void)state;
    static model m;
    static const char letters[][3] = {"a", "b", "c", "\xc3\xa9", "d"};
    uint64_t rng = 5;
    int n_whole = 0, n_longer = 0;
    for (int round = 0; round < 40; round++) {
        bool whole_words = round % 2;
        random_model(&m, &rng);
        dpi_vocab *vocab = load_bpe(&m.s, whole_words ? "llama-bpe" : "gpt-2", m.lines,
                                    (size_t)m.n_merges);
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

static void writes_every_byte(void **state) {
    (void)state;
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

static void merges_by_rank(void **state) {
    (void)state;
    static pieces s;
    begin_bpe(&s);
    char space[8];
    add(&s, "ab", 0, NORMAL);                  /* 256 */
    add(&s, "bc", 0, NORMAL);                  /* 257 */
    add(&s, "abc", 0, NORMAL);                 /* 258: no merge makes it */
    add(&s, bpe_text(" a", 2, space), 0, NORMAL); /* 259 */
    add(&s, "<|end|>", 0, NORMAL);             /* 260: a control token by its looks */
    add(&s, "<|", 0, NORMAL);                  /* 261 */
    add(&s, "end|>", 0, UNUSED);               /* 262 */
    char merge[20];
    snprintf(merge, sizeof merge, "%s a", s.bytes[' ']);
    const char *merges[] = {"b c", "a b", merge, "<| end|>", "< |"};
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

static void cuts_out_user_defined_tokens(void **state) {
    (void)state;
    static pieces s;
    char two[8];
    begin_bpe(&s);
    add(&s, "  ", 0, USER);                    /* 256: literal text */
    add(&s, bpe_text("  ", 2, two), 0, NORMAL); /* 257: the same text in bytes */
    add(&s, "<br>", 0, USER);                  /* 258 */
    add(&s, "\xc3\xa9\xc4\xa0", 0, USER);      /* 259: U+00E9 U+0120, literally */
    char merge[20];
    snprintf(merge, sizeof merge, "%s %s", s.bytes[' '], s.bytes[' ']);
    dpi_vocab *vocab = load_bpe(&s, "gpt-2", (const char *[]){merge}, 1);
    assert_ids(vocab, "a  b", 'a', 256, 'b');
    assert_ids(vocab, "a\n  b", 'a', '\n', 256, 'b');
    assert_ids(vocab, "x <br> y", 'x', ' ', 258, ' ', 'y');
    assert_ids(vocab, "\xc3\xa9\xc4\xa0", 259);
    assert_text(vocab, "  |  |<br>|\xc3\xa9\xc4\xa0", 256, '|', 257, '|', 258, '|', 259);
    static const char *const texts[] = {" a", "   ", "a  <br>  b", "<br",
                                        "\xc3\xa9\xc4\xa0\xc3\xa9"};
    for (int i = 0; i < 5; i++)
        check_round_trip(vocab, texts[i], strlen(texts[i]));
    dpi_vocab_free(vocab);
}

/* A text loses what its vocabulary cannot write. The unknown token would end the text in models
 * whose <|endoftext|> is both. */
static void drops_bytes_without_a_token(void **state) {
    (void)state;
    static const char *const texts[] = {"a", "b", "<|endoftext|>"};
    gguf_build b;
    dpi_vocab *vocab = NULL;
    dpi_error err = {0};
    build_begin(&b);
    build_string(&b, KEY("model"), "gpt2");
    build_strings(&b, KEY("tokens"), texts, 3);
    build_strings(&b, KEY("merges"), NULL, 0);
    build_u32(&b, KEY("unknown_token_id"), 2);
    assert_ok(load_image(&b, &vocab, &err), &err);
    assert_ids(vocab, "axb", 0, 1);
    assert_ids(vocab, "b\xc3\xa9\n", 1);
    assert_int_equal(dpi_vocab_is_eog(vocab, 2), 1);
    dpi_vocab_free(vocab);
}

/* ---- What the file may say ------------------------------------------------------------------- */

static void build_sound(gguf_build *b, const char *pre) {
    static pieces s;
    begin_bpe(&s);
    add(&s, "<|bos|>", 0, CONTROL); /* 256 */
    add(&s, "ab", 0, NORMAL);       /* 257 */
    build_begin(b);
    build_bpe(b, &s, pre, (const char *[]){"a b"}, 1);
}

static void adds_bos_as_the_file_says(void **state) {
    (void)state;
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
        gguf_build b;
        dpi_vocab *vocab = NULL;
        dpi_error err = {0};
        int32_t ids[4];
        size_t n;
        build_sound(&b, cases[i].pre);
        if (cases[i].has_bos)
            build_u32(&b, KEY("bos_token_id"), 256);
        if (cases[i].says >= 0)
            build_bool(&b, KEY("add_bos_token"), cases[i].says);
        build_bool(&b, KEY("add_space_prefix"), true); /* means nothing here */
        assert_ok(load_image(&b, &vocab, &err), &err);
        assert_ok(dpi_vocab_encode(vocab, "ab", 2, DPI_TOKENIZE_BOS, ids, 4, &n, &err), &err);
        assert_int_equal(n, 1 + cases[i].adds);
        assert_int_equal(ids[0], cases[i].adds ? 256 : 257);
        assert_text(vocab, " ab", ' ', 257);
        assert_int_equal(dpi_vocab_bos(vocab), cases[i].has_bos ? 256 : -1);
        dpi_vocab_free(vocab);
    }
}

static void refuses_other_words_by_name(void **state) {
    (void)state;
    static const char *const names[] = {"tekken", "qwen2", "Llama-BPE", "a\033[2J"};
    static const char *const shown[] = {"\"tekken\"", "\"qwen2\"", "\"Llama-BPE\"", "\"a?[2J\""};
    for (int i = 0; i < 4; i++) {
        gguf_build b;
        build_sound(&b, names[i]);
        refused(&b, DPI_STATUS_UNSUPPORTED, shown[i], true);
        build_sound(&b, names[i]);
        refused(&b, DPI_STATUS_UNSUPPORTED, "must be one of default, llama-bpe, ", true);
    }
    gguf_build b;
    build_sound(&b, NULL);
    build_u32(&b, KEY("pre"), 1);
    refused(&b, DPI_STATUS_FORMAT, KEY("pre"), true);
}

/* The vocabulary of build_sound with other merges. */
static void build_merges(gguf_build *b, const char *merge) {
    static pieces s;
    const char *merges[] = {"a b", merge};
    begin_bpe(&s);
    add(&s, "ab", 0, NORMAL);
    build_begin(b);
    build_bpe(b, &s, "gpt-2", merges, 2);
}

static void refuses_bad_merges(void **state) {
    (void)state;
    /* no space, an empty part, parts or wholes that are no tokens, two spaces, one too long */
    char too_long[2100];
    memset(too_long, 'a', sizeof too_long);
    too_long[1000] = ' ';
    too_long[2099] = '\0';
    const char *const bad[] = {"ab", "", " ", "a ", " b", "a c", "x yz", "xy z", "a  b", "ab ab",
                               "a b b", too_long};
    gguf_build b;
    for (int i = 0; i < 12; i++) {
        build_merges(&b, bad[i]);
        refused(&b, DPI_STATUS_FORMAT, "merge 1 is not two tokens", true);
    }
    build_merges(&b, "a b"); /* twice is harmless */
    dpi_vocab *vocab = NULL;
    dpi_error err = {0};
    assert_ok(load_image(&b, &vocab, &err), &err);
    assert_ids(vocab, "aab", 'a', 256);
    dpi_vocab_free(vocab);

    static const char *const texts[] = {"a"};
    build_begin(&b);
    build_string(&b, KEY("model"), "gpt2");
    build_strings(&b, KEY("tokens"), texts, 1);
    refused(&b, DPI_STATUS_FORMAT, "tokenizer.ggml.merges is missing", false);
    static const int32_t numbers[] = {1, 2};
    build_begin(&b);
    build_string(&b, KEY("model"), "gpt2");
    build_strings(&b, KEY("tokens"), texts, 1);
    build_array(&b, KEY("merges"), DPI_GGUF_I32, numbers, 2, 4);
    refused(&b, DPI_STATUS_FORMAT, "tokenizer.ggml.merges", true);
    build_begin(&b);
    build_string(&b, KEY("model"), "gpt2");
    build_strings(&b, KEY("tokens"), texts, 1);
    build_key(&b, KEY("merges"), DPI_GGUF_ARRAY);
    build_put_u32(&b, DPI_GGUF_STRING);
    size_t n = (1 << 22) + 1;
    build_put_u64(&b, n);
    for (size_t i = 0; i < n; i++)
        build_put_u64(&b, 0);
    refused(&b, DPI_STATUS_FORMAT, "has 4194305 merges, at most 4194304", true);
}

/* ---- Time and memory ------------------------------------------------------------------------- */

/* One word of a megabyte. Eight times the text: a quadratic encoder would take 64 times as long. */
static void encodes_a_long_word_in_linear_time(void **state) {
    (void)state;
    static model m;
    uint64_t rng = 9;
    random_model(&m, &rng);
    dpi_vocab *vocab = load_bpe(&m.s, "llama-bpe", m.lines, (size_t)m.n_merges);
    size_t n_bytes = 1 << 20;
    char *text = malloc(n_bytes);
    assert_non_null(text);
    for (size_t i = 0; i < n_bytes; i++)
        text[i] = "abc"[random_below(&rng, 3)];
    double small = seconds_for(vocab, text, n_bytes / 8), large = seconds_for(vocab, text, n_bytes);
    check_round_trip(vocab, text, n_bytes);
    memset(text, 'a', n_bytes); /* one long chain of ties */
    double same = seconds_for(vocab, text, n_bytes);
    memset(text, ' ', n_bytes);
    double blank = seconds_for(vocab, text, n_bytes);
    free(text);
    dpi_vocab_free(vocab);
    assert_true(large < 30 * small + 0.1);
    assert_true(same < 30 * small + 0.1);
    assert_true(blank < 30 * small + 0.1);
}

static void survives_allocation_failures(void **state) {
    (void)state;
    static const char *const rules[] = {"llama-bpe", "default"};
    for (int r = 0; r < 2; r++) {
        gguf_build b;
        dpi_error err = {0};
        dpi_gguf *gguf;
        build_sound(&b, rules[r]);
        build_end(&b);
        assert_ok(dpi_gguf_open_buffer(b.data, b.n_bytes, &gguf, &err), &err);
        dpi_status status = DPI_STATUS_MEMORY;
        dpi_vocab *vocab = NULL;
        int64_t n;
        for (n = 1; status != DPI_STATUS_OK; n++) {
            assert_null(vocab);
            fail_allocation(n);
            status = dpi_vocab_create(gguf, &vocab, &err);
            fail_allocation(0);
            if (status != DPI_STATUS_OK)
                assert_error(status, DPI_STATUS_MEMORY, &err, "no memory");
        }
        assert_true(n > 16); /* PCRE2's are among them */
        dpi_gguf_close(gguf);
        build_free(&b);
        for (n = 1, status = DPI_STATUS_MEMORY; status != DPI_STATUS_OK; n++) {
            int32_t ids[64];
            size_t n_ids = 99;
            fail_allocation(n);
            status = dpi_vocab_encode(vocab, "abab\xff 12", 8, 0, ids, 64, &n_ids, &err);
            fail_allocation(0);
            if (status != DPI_STATUS_OK) {
                assert_error(status, DPI_STATUS_MEMORY, &err, "no memory");
                assert_int_equal(n_ids, 99);
            }
        }
        assert_true(n > 5);
        dpi_vocab_free(vocab);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_golden_strings),
        cmocka_unit_test(encodes_random_strings),
        cmocka_unit_test(knows_the_tokens_of_llama3),
        cmocka_unit_test(agrees_with_a_slow_encoder),
        cmocka_unit_test(writes_every_byte),
        cmocka_unit_test(merges_by_rank),
        cmocka_unit_test(cuts_out_user_defined_tokens),
        cmocka_unit_test(drops_bytes_without_a_token),
        cmocka_unit_test(adds_bos_as_the_file_says),
        cmocka_unit_test(refuses_other_words_by_name),
        cmocka_unit_test(refuses_bad_merges),
        cmocka_unit_test(encodes_a_long_word_in_linear_time),
        cmocka_unit_test(survives_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
