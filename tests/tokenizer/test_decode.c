/* test_decode.c - streaming decoding: what is not UTF-8, what is not finished, the prefix space. */
#include "tests/support/support.h"

#include "tests/support/vocab_build.h"

#define BAD "\xef\xbf\xbd" /* U+FFFD */

static void push_bytes(const dpi_vocab *vocab, const char *bytes, size_t n_bytes,
                       const char *wanted) {
    int32_t ids[64];
    for (size_t i = 0; i < n_bytes; i++)
        ids[i] = FIRST_BYTE + (unsigned char)bytes[i];
    check_text(vocab, ids, n_bytes, wanted);
}

static void replaces_what_is_not_utf8(void **state) {
    (void)state;
    static pieces s;
    begin_pieces(&s, true);
    dpi_vocab *vocab = load_pieces(&s);
    /* The Unicode Standard, tables 3-8 to 3-11. */
    push_bytes(vocab, "\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", 9,
               BAD BAD BAD BAD BAD BAD BAD BAD "A");
    push_bytes(vocab, "\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", 9,
               BAD BAD BAD BAD BAD BAD BAD BAD "A");
    push_bytes(vocab, "\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", 9,
               BAD BAD BAD BAD BAD "A" BAD BAD "B");
    push_bytes(vocab, "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", 9, BAD BAD BAD BAD "A");
    /* Held back at the end, and in front of a whole sequence. */
    push_bytes(vocab, "a\xf0\x9f\x98", 4, "a" BAD);
    push_bytes(vocab, "\xe2\xe2\x82\xac", 4, BAD "\xe2\x82\xac");
    /* The ends of each range. */
    push_bytes(vocab, "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 16,
               "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf");
    push_bytes(vocab, "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8, "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
    push_bytes(vocab, "\xf5\x80\xc1\x80", 4, BAD BAD BAD BAD);
    /* The space mark in bytes is a space, and the first one is dropped. */
    push_bytes(vocab, MARK "a" MARK "b", 8, "a b");
    dpi_vocab_free(vocab);
}

static void holds_back_unfinished_sequences(void **state) {
    (void)state;
    static pieces s;
    begin_pieces(&s, true);
    add(&s, "\xc3\xa9x\xe2\x82", 0, NORMAL); /* 259: ends in the middle of U+20AC */
    add(&s, MARK "b", 0, NORMAL);            /* 260 */
    dpi_vocab *vocab = load_pieces(&s);
    dpi_error err = {0};
    dpi_decoder *d;
    assert_ok(dpi_vocab_decoder(vocab, &d, &err), &err);
    const struct {
        int32_t id;
        const char *text;
    } steps[] = {
        {1, ""},       {260, "b"},   {259, "\xc3\xa9x"}, {FIRST_BYTE + 0xac, "\xe2\x82\xac"},
        {260, " b"},   {FIRST_BYTE + 0xf0, ""}, {FIRST_BYTE + 0x9f, ""}, {FIRST_BYTE + 0x98, ""},
        {FIRST_BYTE + 0x80, "\xf0\x9f\x98\x80"}, {259, "\xc3\xa9x"}, {260, BAD " b"},
        {FIRST_BYTE + 0xe2, ""}, {2, BAD}, {0, ""},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const char *text = NULL;
        size_t n_bytes = 99;
        assert_ok(dpi_decoder_push(d, steps[i].id, &text, &n_bytes, &err), &err);
        assert_int_equal(n_bytes, strlen(steps[i].text));
        assert_memory_equal(text, steps[i].text, n_bytes);
    }
    const char *text = NULL;
    size_t n_bytes = 99;
    for (int round = 0; round < 2; round++) { /* a finished decoder starts a new text */
        assert_ok(dpi_decoder_push(d, 260, &text, &n_bytes, &err), &err);
        assert_int_equal(n_bytes, 1);
        assert_memory_equal(text, "b", 1);
        assert_ok(dpi_decoder_push(d, FIRST_BYTE + 0xc3, &text, &n_bytes, &err), &err);
        assert_int_equal(n_bytes, 0);
        dpi_decoder_finish(d, &text, &n_bytes);
        assert_int_equal(n_bytes, 3);
        assert_memory_equal(text, BAD, 3);
    }
    dpi_decoder_finish(d, &text, &n_bytes);
    assert_int_equal(n_bytes, 0);
    assert_error(dpi_decoder_push(d, -1, &text, &n_bytes, &err), DPI_STATUS_ARG, &err, "0..260");
    assert_error(dpi_decoder_push(d, 261, &text, &n_bytes, &err), DPI_STATUS_ARG, &err, "261");
    dpi_decoder_free(d);
    dpi_decoder_free(NULL);
    dpi_vocab_free(vocab);
}

/* Any Unicode text comes back, spaces at its ends and line breaks included. U+2581 is the one
 * character that this tokenizer model cannot tell from another. */
static void decodes_what_it_encodes(void **state) {
    (void)state;
    dpi_vocab *vocab = load_file("models/stories260K.gguf");
    uint64_t rng = 3;
    for (int round = 0; round < 2000; round++) {
        char text[256];
        size_t n = 0;
        int32_t n_chars = random_below(&rng, 50);
        while (n_chars-- > 0) {
            uint32_t c, kind = (uint32_t)random_below(&rng, 6);
            do
                c = kind == 0   ? (uint32_t)random_below(&rng, 0x110000)
                    : kind == 1 ? (uint32_t)random_below(&rng, 0x3000)
                    : kind == 2 ? (uint32_t)" \n\t\0\r "[random_below(&rng, 6)]
                                : (uint32_t)(0x20 + random_below(&rng, 0x5f));
            while ((c >= 0xd800 && c < 0xe000) || c == 0x2581);
            if (c < 0x80) {
                text[n++] = (char)c;
            } else if (c < 0x800) {
                text[n++] = (char)(0xc0 | c >> 6);
                text[n++] = (char)(0x80 | (c & 63));
            } else if (c < 0x10000) {
                text[n++] = (char)(0xe0 | c >> 12);
                text[n++] = (char)(0x80 | (c >> 6 & 63));
                text[n++] = (char)(0x80 | (c & 63));
            } else {
                text[n++] = (char)(0xf0 | c >> 18);
                text[n++] = (char)(0x80 | (c >> 12 & 63));
                text[n++] = (char)(0x80 | (c >> 6 & 63));
                text[n++] = (char)(0x80 | (c & 63));
            }
        }
        check_round_trip(vocab, text, n);
    }
    dpi_vocab_free(vocab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces_what_is_not_utf8),
        cmocka_unit_test(holds_back_unfinished_sequences),
        cmocka_unit_test(decodes_what_it_encodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
