/* fuzz_tokenizer.c - libFuzzer target: the first byte of the input chooses what is done with the
 * rest. The vocabulary is that of the GGUF file $DPI_FUZZ_VOCAB, else one made here in which
 * everything can happen (ties, user-defined tokens, tokens that are not UTF-8). */
#define _GNU_SOURCE /* memmem */
#include "vocab_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAX_BYTES = 4096, MAX_IDS = 4 * MAX_BYTES + 256 };

static dpi_vocab *vocab;
static int32_t ids[MAX_IDS], again[MAX_IDS];

static void require(bool holds) {
    if (!holds)
        abort();
}

static void load_vocab(void) {
    const char *path = getenv("DPI_FUZZ_VOCAB");
    dpi_error err = {0};
    if (path) {
        dpi_gguf *gguf;
        require(dpi_gguf_open(path, true, &gguf, &err) == DPI_STATUS_OK);
        require(dpi_vocab_create(gguf, &vocab, &err) == DPI_STATUS_OK);
        dpi_gguf_close(gguf);
        return;
    }
    static pieces s;
    static const char *const normal[] = {MARK, MARK MARK, MARK "a", "a", "b", "ab", "ba", "aa", "aab",
                                         "bab", "<", "s", ">", "</", "s>", "<|", "|>", "\xe2", "\x96",
                                         "\xe2\x96", "\xc3\xa9", "\xf0\x9f\x98\x80", "\xff\xff", "\n"};
    begin_pieces(&s, true);
    for (int i = 0; i < 24; i++)
        add(&s, normal[i], -(float)(i % 5), NORMAL);
    static const char *const user[] = {"x", "xy", "yx", "xyx", "  ", "\xe2\x96\xff", "aaaa"};
    for (int i = 0; i < 7; i++)
        add(&s, user[i], 0, USER);
    static const char *const special[] = {"<|im_start|>", "<|im_end|>", "<|eot_id|>",
                                          "<|start_header_id|>", "<|end_header_id|>"};
    for (int i = 0; i < 5; i++)
        add(&s, special[i], 0, CONTROL);
    vocab = load_pieces(&s);
}

/* The Unicode Standard, table 3-7. */
static bool is_utf8(const char *text, size_t n_bytes) {
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < n_bytes;) {
        unsigned char c = s[i];
        size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
        if (n == 0 || n > n_bytes - i)
            return false;
        for (size_t j = 1; j < n; j++)
            if ((s[i + j] & 0xc0) != 0x80)
                return false;
        if ((c == 0xe0 && s[i + 1] < 0xa0) || (c == 0xed && s[i + 1] > 0x9f) ||
            (c == 0xf0 && s[i + 1] < 0x90) || (c == 0xf4 && s[i + 1] > 0x8f))
            return false;
        i += n;
    }
    return true;
}

/* Every piece that comes out is whole UTF-8. `wanted` (may be NULL): what must come out. */
static void check_decoding(const int32_t *tokens, size_t n, const char *wanted, size_t n_wanted) {
    dpi_error err = {0};
    dpi_decoder *d;
    size_t used = 0;
    require(dpi_vocab_decoder(vocab, &d, &err) == DPI_STATUS_OK);
    for (size_t i = 0; i <= n; i++) {
        const char *text;
        size_t n_text;
        if (i < n)
            require(dpi_decoder_push(d, tokens[i], &text, &n_text, &err) == DPI_STATUS_OK);
        else
            dpi_decoder_finish(d, &text, &n_text);
        require(is_utf8(text, n_text));
        if (wanted)
            require(n_text <= n_wanted - used && memcmp(wanted + used, text, n_text) == 0);
        used += n_text;
    }
    require(!wanted || used == n_wanted);
    dpi_decoder_free(d);
}

static void fuzz_text(const char *text, size_t n_bytes, size_t capacity) {
    dpi_error err = {0};
    size_t n = 0, m = 0;
    require(dpi_vocab_encode(vocab, text, n_bytes, 0, ids, MAX_IDS, &n, &err) == DPI_STATUS_OK);
    require(n <= 4 * n_bytes + 4);
    for (size_t i = 0; i < n; i++) {
        require(ids[i] >= 0 && ids[i] < dpi_vocab_size(vocab));
        require(!dpi_vocab_is_control(vocab, ids[i]) && !dpi_vocab_is_eog(vocab, ids[i]));
    }
    bool lossy = !is_utf8(text, n_bytes) || memmem(text, n_bytes, MARK, 3);
    check_decoding(ids, n, lossy ? NULL : text, n_bytes);
    /* A smaller buffer holds the same beginning. */
    capacity %= n + 2;
    dpi_status status = dpi_vocab_encode(vocab, text, n_bytes, 0, again, capacity, &m, &err);
    require(m == n && (status == DPI_STATUS_OK) == (n <= capacity));
    require(memcmp(ids, again, (n < capacity ? n : capacity) * sizeof *ids) == 0);
}

static void fuzz_prompt(int32_t chat, const char *text, size_t n_bytes, size_t split) {
    dpi_error err = {0};
    size_t n = 0;
    split %= n_bytes + 1;
    dpi_status status = dpi_vocab_encode_prompt(vocab, chat, text, split, text + split,
                                                n_bytes - split, ids, MAX_IDS, &n, &err);
    if (status != DPI_STATUS_OK) {
        require(status == DPI_STATUS_UNSUPPORTED); /* only with a vocabulary from outside */
        return;
    }
    require(n <= 4 * n_bytes + 256);
    int32_t n_special = 0;
    for (size_t i = 0; i < n; i++)
        n_special += dpi_vocab_is_control(vocab, ids[i]);
    check_decoding(ids, n, NULL, 0);
    /* The count of special tokens depends on the format, not on what the texts say. */
    size_t n_plain = 0;
    int32_t n_plain_special = 0;
    require(dpi_vocab_encode_prompt(vocab, chat, "a", split ? 1 : 0, "a", 1, again, MAX_IDS, &n_plain,
                                    &err) == DPI_STATUS_OK);
    for (size_t i = 0; i < n_plain; i++)
        n_plain_special += dpi_vocab_is_control(vocab, again[i]);
    require(n_special == n_plain_special);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (!vocab)
        load_vocab();
    if (n_bytes < 3 || n_bytes > MAX_BYTES)
        return 0;
    uint8_t mode = data[0];
    size_t number = (size_t)data[1] << 8 | data[2];
    /* An exact copy, so that the sanitizer sees a read past the end. */
    size_t n = n_bytes - 3;
    char *text = malloc(n ? n : 1);
    if (!text)
        return 0;
    memcpy(text, data + 3, n);
    if (mode % 4 == 0) {
        for (size_t i = 0; i + 1 < n; i += 2)
            ids[i / 2] = (((unsigned char)text[i] << 8) | (unsigned char)text[i + 1]) %
                         dpi_vocab_size(vocab);
        check_decoding(ids, n / 2, NULL, 0);
    } else if (mode % 4 == 1) {
        fuzz_prompt(mode / 4 % 6, text, n, number);
    } else {
        fuzz_text(text, n, number);
    }
    free(text);
    return 0;
}
