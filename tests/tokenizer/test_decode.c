/* test_decode.c - streaming decoding: what is not UTF-8, what is not finished, the prefix space. */
#include "tests/support/support.h"

#include "tests/support/vocab_build.h"

#define BAD "\xef\xbf\xbd" /* U+FFFD */
#define BAD4 BAD BAD BAD BAD

TEST(replaces_what_is_not_utf8) {
    static pieces s;
    static const char *const cases[][2] = {
        /* The Unicode Standard, tables 3-8 to 3-11. */
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", BAD4 BAD4 "A"},
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", BAD4 BAD4 "A"},
        {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", BAD4 BAD "A" BAD BAD "B"},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", BAD4 "A"},
        /* Held back at the end, and in front of a whole sequence. */
        {"a\xf0\x9f\x98", "a" BAD},
        {"\xe2\xe2\x82\xac", BAD "\xe2\x82\xac"},
        /* The ends of each range. */
        {"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf", "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf"},
        {"\xee\x80\x80\xef\xbf\xbf", "\xee\x80\x80\xef\xbf\xbf"},
        {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
        {"\xf5\x80\xc1\x80", BAD4},
        /* The space mark in bytes is a space, and the first one is dropped. */
        {MARK "a" MARK "b", "a b"},
    };
    begin_pieces(&s, true);
    dpi_vocab *vocab = load_pieces(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t ids[64];
        size_t n = strlen(cases[i][0]);
        for (size_t k = 0; k < n; k++)
            ids[k] = FIRST_BYTE + (unsigned char)cases[i][0][k];
        check_text(vocab, ids, n, cases[i][1]);
    }
    dpi_vocab_free(vocab);
}

static void check_push(dpi_decoder *d, int32_t id, const char *wanted) {
    const char *text = NULL;
    size_t n_bytes = 99;
    assert_ok(dpi_decoder_push(d, id, &text, &n_bytes, ERR));
    assert_int_equal(n_bytes, strlen(wanted));
    assert_memory_equal(text, wanted, n_bytes);
}

static void check_finish(dpi_decoder *d, const char *wanted) {
    const char *text = NULL;
    size_t n_bytes = 99;
    dpi_decoder_finish(d, &text, &n_bytes);
    assert_int_equal(n_bytes, strlen(wanted));
    assert_memory_equal(text, wanted, n_bytes);
}

TEST(holds_back_unfinished_sequences) {
    static pieces s;
    static const struct {
        int32_t id;
        const char *text;
    } steps[] = {{1, ""},
                 {260, "b"},
                 {259, "\xc3\xa9x"},
                 {FIRST_BYTE + 0xac, "\xe2\x82\xac"},
                 {260, " b"},
                 {FIRST_BYTE + 0xf0, ""},
                 {FIRST_BYTE + 0x9f, ""},
                 {FIRST_BYTE + 0x98, ""},
                 {FIRST_BYTE + 0x80, "\xf0\x9f\x98\x80"},
                 {259, "\xc3\xa9x"},
                 {260, BAD " b"},
                 {FIRST_BYTE + 0xe2, ""},
                 {2, BAD},
                 {0, ""}};
    begin_pieces(&s, true);
    add(&s, "\xc3\xa9x\xe2\x82", 0, NORMAL); /* 259: ends in the middle of U+20AC */
    add(&s, MARK "b", 0, NORMAL);            /* 260 */
    dpi_vocab *vocab = load_pieces(&s);
    dpi_decoder *d;
    assert_ok(dpi_vocab_decoder(vocab, &d, ERR));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        check_push(d, steps[i].id, steps[i].text);
    for (int round = 0; round < 2; round++) { /* a finished decoder starts a new text */
        check_push(d, 260, "b");
        check_push(d, FIRST_BYTE + 0xc3, "");
        check_finish(d, BAD);
    }
    check_finish(d, "");
    const char *text;
    size_t n_bytes;
    assert_error(dpi_decoder_push(d, -1, &text, &n_bytes, ERR), ARG, "0..260");
    assert_error(dpi_decoder_push(d, 261, &text, &n_bytes, ERR), ARG, "261");
    dpi_decoder_free(d);
    dpi_decoder_free(NULL);
    dpi_vocab_free(vocab);
}

/* Of 1 to 4 bytes; returns how many. */
static size_t put_utf8(char *out, uint32_t c) {
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 63));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* Any Unicode text comes back, spaces at its ends and line breaks included. U+2581 is the one
 * character that this tokenizer model cannot tell from another. */
TEST(decodes_what_it_encodes) {
    dpi_vocab *vocab = load_file("models/stories260K.gguf");
    uint64_t rng = 3;
    for (int round = 0; round < 2000; round++) {
        char text[256];
        size_t n = 0;
        for (int32_t left = random_below(&rng, 50); left > 0; left--) {
            uint32_t c, kind = (uint32_t)random_below(&rng, 6);
            do
                c = kind == 0   ? (uint32_t)random_below(&rng, 0x110000)
                    : kind == 1 ? (uint32_t)random_below(&rng, 0x3000)
                    : kind == 2 ? (uint32_t) " \n\t\0\r "[random_below(&rng, 6)]
                                : (uint32_t)(0x20 + random_below(&rng, 0x5f));
            while ((c >= 0xd800 && c < 0xe000) || c == 0x2581);
            n += put_utf8(text + n, c);
        }
        check_round_trip(vocab, text, n);
    }
    dpi_vocab_free(vocab);
}
